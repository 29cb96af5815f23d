//! The exchange of a shared vault with folders that are kept equal to it: the changes that it gives to them and takes from them.
//!
//! Contents are passed on byte for byte: nothing is redacted, formatted or merged here.

pub mod protocol;

use std::collections::HashSet;

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_change::Changes;
use sidenote_change::apply::OP_SYNC;
use sidenote_markdown::edit::{ChangeSet, Content, ContentHash, FileChange};
use sidenote_markdown::path::check_shared_name;
use sidenote_open_vault::Core;
use sidenote_open_vault::idempotency::Calls;
use sidenote_open_vault::sync::IndexSync;
use sidenote_vault::Vault;
use sidenote_vault::authority::{SharedChanges, SharedContents, SharedPosition, authority_of};
use sidenote_vault::copy::{SharedFiles, SharedPath};

use crate::replication::protocol::{
    ChangesHead, CommitReply, CommitRequest, CommittedContent, ConflictingFile, NewContent,
};
/// How often a change is tried whose files in the copy were not as the authority has them, and were put right.
const ATTEMPTS: usize = 3;

/// The exchange of a shared vault with the folders of people.
#[derive(Debug, Clone, Copy)]
pub struct Replication<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Replication<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self { core }
    }

    fn contents(&self) -> Result<&'a dyn SharedContents> {
        authority_of(&self.core.vault)
            .shared_contents()
            .ok_or_else(|| Error::invalid("this vault is not shared by a team"))
    }

    /// Returns the largest file in bytes that the vault takes.
    ///
    /// # Errors
    /// `Invalid` if the vault is not shared.
    pub fn max_file(&self) -> Result<u64> {
        Ok(self.contents()?.max_file())
    }

    /// Returns what changed after a position, and the state that this leads to. With an operation id of this call, the state
    /// says whether the operation was carried out.
    ///
    /// # Errors
    /// `Invalid` if the vault is not shared; `Io` if its authority cannot be asked.
    pub fn changes(&self, since: Option<&SharedPosition>) -> Result<(ChangesHead, SharedChanges)> {
        let contents = self.contents()?;
        let is_done = match &self.core.call.once {
            Some(_) => Some(self.is_done()?),
            None => None,
        };
        let changes = contents.changes(since)?;
        let head = ChangesHead {
            position: changes.position.clone(),
            is_full: changes.is_full,
            files: changes.files.len(),
            max_file: contents.max_file(),
            is_done,
        };
        Ok((head, changes))
    }

    /// Returns whether the journal has the operation of this call.
    fn is_done(&self) -> Result<bool> {
        IndexSync::of(self.core).catch_up_copy()?;
        Ok(Calls::of(self.core).earlier()?.is_some())
    }

    /// Returns the bytes that a file has now, by their hash.
    ///
    /// # Errors
    /// `NotFound` if no file has them; `Io` if the authority cannot be asked.
    pub fn content(&self, hash: ContentHash) -> Result<Vec<u8>> {
        let found = self.contents()?.content(hash)?;
        found.ok_or_else(|| Error::not_found(format!("no file of the vault has the hash {hash} now")))
    }

    /// Returns bytes that a file has or had, by their hash. Whoever knows the hash had them.
    ///
    /// # Errors
    /// `NotFound` if no file had them, or they were cleaned up; `Io` if the authority cannot be asked.
    pub fn earlier_content(&self, hash: ContentHash) -> Result<Vec<u8>> {
        let found = self.contents()?.earlier_content(hash)?;
        found.ok_or_else(|| Error::not_found(format!("the vault does not have the content {hash} any more")))
    }

    /// Carries out a commit as one change, or not at all. A file that has the wanted content already is not a conflict.
    ///
    /// # Errors
    /// `Invalid` if a path is not shared or is named twice, or a file is too large; `Conflict` if the turn is not given;
    /// `Io` if the change cannot be stored.
    pub fn commit(&self, request: &CommitRequest) -> Result<CommitReply> {
        let largest = self.max_file()?;
        request.check(largest)?;
        let mut attempt = 1;
        loop {
            match self.try_commit(request) {
                Err(error)
                    if error.kind() == ErrorKind::Conflict
                        && error.message().contains("changed-on-disk")
                        && attempt < ATTEMPTS =>
                {
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    fn try_commit(&self, request: &CommitRequest) -> Result<CommitReply> {
        if self.core.call.once.is_some() && self.is_done()? {
            return Ok(CommitReply::default());
        }
        let mut conflicts = Vec::new();
        let planned = Changes::of(self.core).apply_planned(
            |_| {
                let (plan, differing) = self.plan(request)?;
                conflicts = differing;
                if conflicts.is_empty() {
                    return Ok(plan);
                }
                Err(Error::new(ErrorKind::Conflict, "files of the vault are not as the commit expects them"))
            },
            false,
        );
        match planned {
            Err(_) if !conflicts.is_empty() => Ok(CommitReply { conflicts, ..CommitReply::default() }),
            Err(error) => Err(error),
            Ok(reply) => {
                let removed = request.files.iter().filter(|file| file.is_removal());
                self.remove_empty_folders(removed.map(|file| file.path.as_str()));
                Ok(CommitReply { id: reply.id, conflicts, notices: reply.notices })
            }
        }
    }

    /// Plans a commit, and returns the plan with the files that the authority has in another state than the commit
    /// expects. If a file of the copy differs from the authority's, the change fails, and the file is then corrected.
    fn plan(&self, request: &CommitRequest) -> Result<(ChangeSet, Vec<ConflictingFile>)> {
        let contents = self.contents()?;
        let mut paths: Vec<SharedPath> = request.files.iter().map(|file| file.path.clone()).collect();
        paths.extend(request.files.iter().flat_map(|file| folders_of(&file.path)));
        let shared = contents.hashes(&paths)?;
        let leaving: HashSet<&SharedPath> =
            request.files.iter().filter(|file| file.is_removal()).map(|file| &file.path).collect();
        let vault = Vault::clone(&self.core.vault).with_max_file_size(contents.max_file());
        let mut copy = SharedFiles::open(&vault)?;
        let mut plan = ChangeSet { repeats_names: true, ..ChangeSet::new(OP_SYNC) };
        let mut conflicts = Vec::new();
        for file in &request.files {
            let present = shared.get(&file.path).copied();
            let wanted = file.content.hash();
            if present == wanted {
                continue;
            }
            if present != file.base {
                conflicts.push(ConflictingFile { path: file.path.as_str().to_owned(), hash: present });
                continue;
            }
            let is_in_file = folders_of(&file.path)
                .any(|folder| shared.contains_key(&folder) && !leaving.contains(&folder));
            if present.is_none() && (is_in_file || is_folder(&mut copy, &file.path)?) {
                // The name is needed for a folder, or a folder of it for a file.
                conflicts.push(ConflictingFile { path: file.path.as_str().to_owned(), hash: None });
                continue;
            }
            let location = file.path.location();
            let here = copy.hash(&file.path)?;
            let content = match &file.content {
                NewContent::Bytes(bytes) => Content::Whole(bytes.clone()),
                NewContent::Removed => Content::Keep,
            };
            plan.files.push(FileChange {
                from: here.and(location.clone()),
                to: wanted.and(location),
                before: here,
                content,
            });
        }
        Ok((plan, conflicts))
    }

    /// Removes the folders of the copy that a commit emptied. The database has no folders, so a failure only leaves one here.
    fn remove_empty_folders<'p>(&self, removed: impl Iterator<Item = &'p str>) {
        let cleared = SharedFiles::open(&self.core.vault).and_then(|mut shared| {
            let mut folders: Vec<&str> = removed.collect();
            folders.dedup_by_key(|path| path.rsplit_once('/').map_or("", |(folder, _)| folder));
            folders.into_iter().try_for_each(|path| shared.remove_empty_folders(path))
        });
        if let Err(error) = cleared {
            tracing::debug!("an empty folder of the copy stays: {error}");
        }
    }
}

/// Lists the folders of a path that could be files.
fn folders_of(path: &SharedPath) -> impl Iterator<Item = SharedPath> {
    let text = path.as_str();
    text.match_indices('/').filter_map(|(at, _)| SharedPath::parse(text.get(..at)?))
}

/// Says whether a folder with files has a name. A folder without files is removed.
fn is_folder(copy: &mut SharedFiles, path: &SharedPath) -> Result<bool> {
    // A folder above that is a file was looked at before.
    let is_there = copy.entry(path).is_ok_and(|entry| entry.is_some_and(|entry| entry.is_dir()));
    Ok(is_there && !copy.remove_folder_without_files(path.as_str())?)
}

impl CommittedContent {
    fn is_removal(&self) -> bool {
        self.content == NewContent::Removed
    }
}

impl CommitRequest {
    /// Checks everything that does not depend on the present files.
    fn check(&self, largest: u64) -> Result<()> {
        let mut seen: HashSet<&SharedPath> = HashSet::new();
        for file in &self.files {
            check_shared_name(file.path.as_str())?;
            if !seen.insert(&file.path) {
                return Err(Error::invalid(format!("the commit names {} twice", file.path.as_str())));
            }
            if let NewContent::Bytes(bytes) = &file.content
                && bytes.len() as u64 > largest
            {
                return Err(Error::invalid(format!(
                    "{} is larger than {} MB, which this team does not store",
                    file.path.as_str(),
                    largest / 1_000_000
                )));
            }
        }
        Ok(())
    }
}
