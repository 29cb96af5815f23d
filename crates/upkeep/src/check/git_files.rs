//! The files of a check by git: those of the next commit, and those that changed since a revision.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_git::{ObjectId, Repository, TreeFile};
use sidenote_markdown::path::NotePath;
use sidenote_vault::Vault;

use crate::check::files::CheckedFiles;

/// The files that changed between two states of a vault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct VaultChanges {
    /// The files that are new or different.
    pub(super) changed: BTreeSet<NotePath>,
    /// The files that are gone, also by a move.
    pub(super) removed: BTreeSet<NotePath>,
}

/// The git repository of a vault, for one check.
pub(super) struct CheckedRepository {
    repository: Repository,
}

impl CheckedRepository {
    /// Finds the repository that a vault is in. The index of a commit in progress counts where a hook of the same
    /// repository runs the check.
    ///
    /// # Errors
    /// `NotFound` if the vault is in no repository; `Io` if it cannot be read.
    pub(super) fn of(vault: &Vault) -> Result<Self> {
        let Some(repository) = Repository::discover(vault.root())? else {
            let message = format!("{} is in no git repository", vault.root().display());
            return Err(Error::not_found(message).with_hints(
                "leave out --since and --staged, which compare with what git has",
                "ask the user whether the vault is meant to be in git",
            ));
        };
        let is_in_hook = std::env::var_os("GIT_INDEX_FILE").is_some() && is_same_repository(&repository);
        Ok(Self { repository: if is_in_hook { repository.in_hook() } else { repository } })
    }

    /// Lists the files that git has staged, which are those of the next commit, with their staged contents.
    ///
    /// # Errors
    /// `Conflict` if files are in conflict; otherwise those of running git.
    pub(super) fn staged(&self) -> Result<CheckedFiles<'static>> {
        if let Some(path) = self.repository.conflicted()?.first() {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("{path} is in conflict, so nothing of it is staged"),
            )
            .with_hints(
                "resolve the conflict and run `git add`, or check the files on the disk without --staged",
                "ask the user to resolve the conflict",
            ));
        }
        let (mut paths, mut notes, mut blobs) = (Vec::new(), Vec::new(), Vec::new());
        for file in self.repository.staged()? {
            let Some(path) = NotePath::from_disk(&file.path) else { continue };
            // The content of a symbolic link is a path and no note.
            if (path.is_note() || path.is_canvas()) && !file.is_link {
                notes.push(path.clone());
                blobs.push(file.blob);
            }
            paths.push(path);
        }
        let contents = self.repository.objects()?.blobs(&blobs)?;
        let contents: HashMap<NotePath, Option<Vec<u8>>> = notes.into_iter().zip(contents).collect();
        let read = move |path: &NotePath| match contents.get(path) {
            Some(Some(content)) => Ok(content.clone()),
            Some(None) => {
                Err(Error::new(ErrorKind::Io, format!("git does not have the staged content of {path}"))
                    .with_hint("fetch it; a partial clone leaves contents out"))
            }
            None => Err(Error::not_found(format!("{path} has no staged content"))),
        };
        Ok(CheckedFiles::given(paths, Box::new(read)))
    }

    /// Finds the files that changed since a revision: since the commit at which the present branch left it.
    ///
    /// # Errors
    /// `NotFound` if there is no such revision; otherwise those of running git.
    pub(super) fn changes_since(
        &self,
        revision: &str,
        files: &CheckedFiles<'_>,
        is_staged: bool,
    ) -> Result<VaultChanges> {
        let before: HashMap<NotePath, TreeFile> = match self.base_of(revision)? {
            Some(base) => {
                let files = self.repository.tree(&base)?.into_iter();
                files.filter_map(|file| Some((NotePath::from_disk(&file.path)?, file))).collect()
            }
            None => HashMap::new(),
        };
        let removed = before.keys().filter(|path| !files.has_file(path.as_str())).cloned().collect();
        let added = files.paths().iter().filter(|path| !before.contains_key(*path)).cloned();
        let mut changed: BTreeSet<NotePath> = added.collect();
        changed.extend(match is_staged {
            true => self.changed_in_index(&before)?,
            false => self.changed_on_disk(&before, files)?,
        });
        Ok(VaultChanges { changed, removed })
    }

    /// Finds the commit at which the present branch left a revision. Returns `None` for HEAD before the first commit: all files
    /// are new then.
    fn base_of(&self, revision: &str) -> Result<Option<ObjectId>> {
        let head = self.repository.head()?;
        if head.is_none() && revision == "HEAD" {
            return Ok(None);
        }
        let Some(named) = self.repository.commit(revision)? else {
            let message =
                format!("git knows no revision {revision:?} in {}", self.repository.work_tree().display());
            return Err(Error::not_found(message).with_hint(
                "in a shallow clone, fetch it first; a checkout in CI often has one commit alone",
            ));
        };
        Ok(Some(match head {
            // A shallow clone may lack the common ancestor.
            Some(head) => self.repository.merge_base(&named, &head)?.unwrap_or(named),
            None => named,
        }))
    }

    /// Lists the files whose staged content differs from that of a commit.
    fn changed_in_index(&self, before: &HashMap<NotePath, TreeFile>) -> Result<Vec<NotePath>> {
        let staged = self.repository.staged()?.into_iter();
        let different = staged.filter_map(|file| {
            let path = NotePath::from_disk(&file.path)?;
            before.get(&path).is_some_and(|before| before.blob != file.blob).then_some(path)
        });
        Ok(different.collect())
    }

    /// Lists the notes and canvases whose bytes on the disk differ from those in a commit by more than line ends, which git
    /// may convert. The contents of attachments change no link.
    fn changed_on_disk(
        &self,
        before: &HashMap<NotePath, TreeFile>,
        files: &CheckedFiles<'_>,
    ) -> Result<Vec<NotePath>> {
        let known: Vec<(&NotePath, &ObjectId)> = files
            .paths()
            .iter()
            .filter(|path| path.is_note() || path.is_canvas())
            .filter_map(|path| Some((path, &before.get(path)?.blob)))
            .collect();
        let mut objects = self.repository.objects()?;
        let mut changed = Vec::new();
        // A few contents are in memory at a time.
        for batch in known.chunks(256) {
            let ids: Vec<ObjectId> = batch.iter().map(|(_, blob)| (*blob).clone()).collect();
            for ((path, _), content) in batch.iter().zip(objects.blobs(&ids)?) {
                // A file that cannot be read is a problem of its own, and counts as changed.
                let now = files.read(path).ok().flatten();
                if now.zip(content).is_none_or(|(now, before)| !is_same_text(&now, &before)) {
                    changed.push((*path).clone());
                }
            }
        }
        Ok(changed)
    }
}

/// Returns whether two contents are equal, line ends aside.
fn is_same_text(one: &[u8], other: &[u8]) -> bool {
    let lines = |bytes: &[u8]| -> Vec<u8> {
        let mut kept = bytes.to_vec();
        let mut next = bytes.iter().skip(1).copied();
        kept.retain(|byte| {
            let next = next.next();
            *byte != b'\r' || next != Some(b'\n')
        });
        kept
    };
    one == other || lines(one) == lines(other)
}

/// Returns whether the variables of git name this repository, or none.
fn is_same_repository(repository: &Repository) -> bool {
    let Some(named) = std::env::var_os("GIT_DIR") else { return true };
    let real = |path: &Path| sidenote_base::platform::canonicalize(path).ok();
    // A hook runs at the top of the working tree, or names the folder by its whole path.
    let named = repository.work_tree().join(named);
    real(&named).is_some_and(|named| Some(named) == real(repository.git_dir()))
}
