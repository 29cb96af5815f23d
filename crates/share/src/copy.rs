//! The copy of a vault on this server: its position, and catching up with the database.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open;
use sidenote_journal::Journal;
use sidenote_journal::event::{Event, TouchedFile};
use sidenote_journal::reader::ReadOrder;
use sidenote_markdown::edit::ContentHash;
use sidenote_markdown::path::NotePath;
use sidenote_vault::apply_result::{Applied, CommittedFile};
use sidenote_vault::copy::{SharedFiles, SharedPath};
use sidenote_vault::undo_log::{FetchedContents, UndoLog};
use sidenote_vault::{Vault, failpoint};
use uuid::Uuid;

use crate::postgres::tables::{self, FileEntry, Head, JournalLine, VaultFacts};
use crate::postgres::{Database, Reading};

/// The name of the file with the position.
const POSITION: &str = "position.json";
/// The maximum size of the file with the position, in bytes.
const MAX_POSITION: u64 = 65_536;
/// The number of changes of others that can be undone, of those that a copy catches up at once.
const MAX_UNDO: usize = 100;
/// The most files of a change of others that can be undone.
const MAX_UNDO_FILES: usize = 2_000;

/// How far a copy has come. It is stored after the files and the journal, so that what it names is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    origin: Uuid,
    generation: i64,
    /// The id of the event at the generation; `None` at generation 0.
    event: Option<String>,
    /// The number of the last deed.
    deeds: i64,
    /// The id of a change of this server whose commit was sent. Its files may be here although they are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pending: Option<String>,
}

impl Position {
    /// Says whether the database has gone on from here, and not from an earlier state.
    fn leads_to(&self, head: &Head) -> bool {
        self.origin == head.origin
            && self.generation <= head.generation
            && self.event == head.event
            && self.deeds <= head.deeds
            && (self.pending.is_none() || head.has_pending)
    }

    fn is_at(&self, head: &Head) -> bool {
        self.leads_to(head) && self.generation == head.generation && self.deeds == head.deeds
    }
}

/// The copy of one vault.
#[derive(Debug)]
pub(crate) struct VaultCopy {
    /// The folder of the copy, as a vault of its own.
    vault: Vault,
    position_file: PathBuf,
    position: Option<Position>,
    /// What the database said of the vault when it was last asked.
    facts: Option<VaultFacts>,
    /// Whether the journal may have lines that the position does not count, because a process was killed.
    may_repeat: bool,
    /// Files that are not as the database has them, because somebody changed them here.
    wrong: BTreeSet<SharedPath>,
}

impl VaultCopy {
    /// Opens a copy. What a killed process left of a change is finished or rolled back; then the database decides.
    ///
    /// # Errors
    /// `Io` if the folder cannot be read or written; `Conflict` if another process has it open.
    pub(crate) fn open(folder: &Path, max_file: u64) -> Result<Self> {
        let files = folder.join("files");
        #[expect(clippy::disallowed_methods, reason = "the folder of a copy belongs to this server")]
        std::fs::create_dir_all(&files).map_err(|error| Error::io("make", &files, error))?;
        let vault = Vault::open(&files)?.with_max_file_size(max_file);
        let lock = vault.lock(&vault.records())?;
        for notice in vault.recover(&lock)?.notices {
            tracing::info!("{notice}");
        }
        drop(lock);
        let position_file = folder.join(POSITION);
        let position = read_position(&position_file)?;
        Ok(Self { vault, position_file, position, facts: None, may_repeat: true, wrong: BTreeSet::new() })
    }

    /// Returns the folder with the files.
    pub(crate) fn root(&self) -> &Path {
        self.vault.root()
    }

    /// Returns the generation that the copy has.
    pub(crate) fn generation(&self) -> i64 {
        self.position.as_ref().map_or(0, |position| position.generation)
    }

    /// Returns what the database said of the vault when it was last asked.
    pub(crate) fn facts(&self) -> Option<&VaultFacts> {
        self.facts.as_ref()
    }

    /// Lists the hashes that a file had, by the journal of the copy, the newest first.
    pub(crate) fn earlier_hashes(&self, path: &str) -> Result<Vec<ContentHash>> {
        let journal = Journal::open(&self.vault, &self.vault.records());
        let mut hashes = Vec::new();
        for event in journal.events(ReadOrder::NewestFirst)?.of_changes() {
            for file in event?.files.iter().filter(|file| file.path.to_string() == path) {
                for hash in [file.after, file.before].into_iter().flatten() {
                    if !hashes.contains(&hash) {
                        hashes.push(hash);
                    }
                }
            }
        }
        Ok(hashes)
    }

    /// Makes the next catch-up compare a file, because the database has other bytes.
    pub(crate) fn distrust(&mut self, path: SharedPath) {
        self.wrong.insert(path);
    }

    /// Notes that the commit of a change is about to be sent, after which its files may be here. So a copy is recognised whose
    /// change the database has lost.
    pub(crate) fn expect(&mut self, event: &str) -> Result<()> {
        let position = self.position.clone();
        self.store_position(position.map(|position| Position { pending: Some(event.to_owned()), ..position }))
    }

    /// Forgets [`Self::expect`], because the change was not committed.
    pub(crate) fn give_up(&mut self) {
        if let Some(position) = &mut self.position {
            position.pending = None;
        }
    }

    /// Brings the copy up to the database, and returns the visible files that changed.
    pub(crate) fn catch_up(&mut self, database: &Database, id: Uuid) -> Result<Vec<NotePath>> {
        database.read(Some(id), |transaction| {
            let pending = self.position.as_ref().and_then(|position| position.pending.as_deref());
            let head = tables::head(transaction, id, self.generation(), pending)?;
            self.facts = Some(head.facts.clone());
            let known = self.position.clone().filter(|known| known.leads_to(&head));
            if let Some(known) = &known
                && known.is_at(&head)
                && self.wrong.is_empty()
            {
                return Ok(Vec::new());
            }
            let (generation, deeds) = known.as_ref().map_or((0, 0), |known| (known.generation, known.deeds));
            let mut files = match &known {
                Some(_) if generation == head.generation => Vec::new(),
                Some(_) => tables::files(transaction, id, generation)?,
                None => tables::files(transaction, id, 0)?,
            };
            let mut shared = SharedFiles::open(&self.vault)?;
            if known.is_none() {
                if let Some(position) = &self.position {
                    self.say_why_anew(position, &head);
                }
                // What is here and not there is removed.
                self.begin_anew()?;
                let there: HashSet<SharedPath> = files.iter().map(|file| file.path.clone()).collect();
                let here = shared.list()?.into_iter().filter(|path| !there.contains(path));
                files.extend(here.map(|path| FileEntry { path, hash: None }));
            }
            let wrong: Vec<String> = self.wrong.iter().map(|path| path.as_str().to_owned()).collect();
            if !wrong.is_empty() {
                let hashes = tables::hashes(transaction, id, &wrong)?;
                for path in &self.wrong {
                    let hash = hashes.get(path.as_str()).copied();
                    if shared.hash(path)? != hash {
                        tracing::warn!("{} was changed in the copy, and is put right", path.as_str());
                    }
                    files.push(FileEntry { path: path.clone(), hash });
                }
            }
            let mut changed: Vec<NotePath> = files.iter().filter_map(|file| file.path.in_vault()).collect();
            write_files(transaction, id, &mut shared, &files)?;
            let events = tables::events(transaction, id, generation)?;
            let deeds = tables::deeds(transaction, id, deeds)?;
            let last_event = events.last().map(|event| event.id.clone());
            let appended = self.append(&[events, deeds].concat())?;
            self.fetch_before_images(transaction, id, &appended)?;
            let event = last_event.or_else(|| known.and_then(|known| known.event));
            self.store_position(Some(Position {
                origin: head.origin,
                generation: head.generation,
                event,
                deeds: head.deeds,
                pending: None,
            }))?;
            self.wrong.clear();
            changed.sort_unstable();
            changed.dedup();
            Ok(changed)
        })
    }

    /// Removes what the copy records of people, who may have been forgotten: its journal, and before-images, which name
    /// who changed a file. The position is removed first, so that the copy does not count until it has caught up. Its
    /// files and its index stay, to be compared.
    pub(crate) fn begin_anew(&mut self) -> Result<()> {
        self.store_position(None)?;
        let records = self.vault.records();
        Journal::open(&self.vault, &records).clear()?;
        UndoLog::open(&records)?.clear()
    }

    /// Logs why a copy is compared with the database in full.
    fn say_why_anew(&self, position: &Position, head: &Head) {
        let copy = self.position_file.display();
        if (Position { pending: None, ..position.clone() }).leads_to(head) {
            tracing::info!(
                "the last change of this server was not committed; {copy} is compared with the database"
            );
        } else if position.origin == head.origin {
            tracing::warn!(
                "the database is at an earlier state than {copy}, as after a restore, or a failover to a standby that lagged; the copy is made again, and what was changed after that state is not in the vault any more"
            );
        } else {
            tracing::info!(
                "the vault was restored, or a person in it forgotten; {copy} is compared with the database, and nothing has to be done"
            );
        }
    }

    /// Saves the before-images of the newest changes of other servers, so that they can be undone here.
    fn fetch_before_images(&self, transaction: &mut Reading<'_>, id: Uuid, events: &[Event]) -> Result<()> {
        let known = UndoLog::open(&self.vault.records())?;
        let is_change = |event: &&Event| !event.files.is_empty() || !event.folders.is_empty();
        let newest = events.iter().filter(is_change).rev().take(MAX_UNDO);
        for event in newest.filter(|event| event.files.len() <= MAX_UNDO_FILES) {
            if known.has(&event.id)? {
                continue;
            }
            let applied = applied_of(event);
            let files = || applied.files.iter();
            let mut wanted: Vec<ContentHash> =
                files().flat_map(|file| [file.before, file.after]).flatten().collect();
            wanted.sort_unstable_by_key(|hash| hash.to_bytes());
            wanted.dedup();
            let mut found: HashMap<ContentHash, Vec<u8>> = HashMap::new();
            // What is missing was cleaned up, and its file cannot be undone.
            tables::find_contents(transaction, id, &wanted, |hash, bytes| {
                found.insert(hash, bytes.to_vec());
                Ok(())
            })?;
            let bytes = |hash: Option<ContentHash>| hash.and_then(|hash| found.get(&hash).cloned());
            let fetched = |file: &CommittedFile| FetchedContents {
                before: bytes(file.before),
                after: bytes(file.after),
            };
            let contents: Vec<FetchedContents> = files().map(fetched).collect();
            let lacks = |(file, contents): (&CommittedFile, &FetchedContents)| {
                file.before.is_some() && file.before != file.after && contents.before.is_none()
            };
            if !files().zip(&contents).any(lacks) {
                UndoLog::save_fetched(&self.vault, &applied, &contents)?;
            }
        }
        Ok(())
    }

    /// Appends lines to the copy's own journal, and returns their events.
    fn append(&mut self, lines: &[JournalLine]) -> Result<Vec<Event>> {
        let journal = Journal::open(&self.vault, &self.vault.records());
        let mut known = HashSet::new();
        if self.may_repeat && !lines.is_empty() {
            for event in journal.events(ReadOrder::NewestFirst)? {
                known.insert(event?.id);
            }
        }
        let mut events = Vec::new();
        for line in lines.iter().filter(|line| !known.contains(&line.id)) {
            let event: Event = serde_json::from_str(&line.line).map_err(|error| {
                Error::corrupt(format!("the database has an event {} that cannot be read", line.id))
                    .with_source(error)
            })?;
            events.push(event);
        }
        journal.append_all(&events)?;
        Ok(events)
    }

    fn store_position(&mut self, position: Option<Position>) -> Result<()> {
        let failed = |error| Error::io("write", &self.position_file, error);
        let bytes = serde_json::to_vec(&position)
            .map_err(|error| Error::internal("a position cannot be serialized").with_source(error))?;
        failpoint();
        AtomicFile::new(&self.position_file).single_writer().sync().write_bytes(&bytes).map_err(failed)?;
        // Lines that were appended before this are counted.
        self.may_repeat = position.is_none();
        self.position = position;
        Ok(())
    }
}

/// Returns the origin of the copy in a folder; `None` if there is none, or if it is being made.
pub(crate) fn copy_origin(folder: &Path) -> Result<Option<Uuid>> {
    Ok(read_position(&folder.join(POSITION))?.map(|position| position.origin))
}

fn read_position(file: &Path) -> Result<Option<Position>> {
    match safe_open::read_in_place(file, MAX_POSITION) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", file, error)),
    }
}

/// Converts the event of a change to what the change did.
fn applied_of(event: &Event) -> Applied {
    let file = |file: &TouchedFile| {
        let is_new = file.before.is_none() && file.after.is_some();
        let is_gone = file.before.is_some() && file.after.is_none();
        CommittedFile {
            from: (!is_new).then(|| file.path.clone()),
            to: (!is_gone).then(|| file.end().clone()),
            before: file.before,
            after: file.after,
        }
    };
    Applied {
        id: event.id.clone(),
        operation: event.op.clone(),
        undoes: event.undoes.clone(),
        at: event.at,
        folders: event.folders.clone(),
        made: Vec::new(),
        files: event.files.iter().map(file).collect(),
        more: event.more.clone(),
        notices: Vec::new(),
    }
}

/// Removes and writes files whose bytes here differ from those of the database.
fn write_files(
    transaction: &mut Reading<'_>,
    id: Uuid,
    shared: &mut SharedFiles,
    files: &[FileEntry],
) -> Result<()> {
    // A folder may take the name of a removed file, and a file that of an emptied folder.
    for file in files.iter().filter(|file| file.hash.is_none()) {
        shared.remove(&file.path)?;
    }
    let mut wanted: HashMap<ContentHash, Vec<&SharedPath>> = HashMap::new();
    for file in files {
        if let Some(hash) = file.hash
            && shared.hash(&file.path)? != Some(hash)
        {
            wanted.entry(hash).or_default().push(&file.path);
        }
    }
    let hashes: Vec<ContentHash> = wanted.keys().copied().collect();
    tables::contents(transaction, id, &hashes, |hash, bytes| {
        for path in wanted.get(&hash).into_iter().flatten() {
            shared.write(path, bytes)?;
        }
        Ok(())
    })?;
    shared.flush()
}
