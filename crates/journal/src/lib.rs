//! The journal of a vault: an append-only log with one JSON event on each line, and the ledger of uses that is made of
//! it. The weight of a memory is not computed here.
//!
//! Lines never change, except that `compaction` shortens the uses of old months.

mod compaction;
pub mod event;
pub mod event_id;
pub mod folders;
pub mod projection;
pub mod reader;
mod snapshot;
mod undo_retention;
mod visible_events;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};
use sidenote_markdown::edit::{ChangeSet, FileLocation};
use sidenote_markdown::path::NotePath;
use sidenote_vault::Vault;
use sidenote_vault::apply_result::Applied;
use sidenote_vault::authority::{RecordedEvent, authority_of};
use sidenote_vault::undo_log::UndoLog;
use sidenote_vault::write_lock::WriteLock;

use crate::event::{Event, OP_MOVED, TouchedFile};
use crate::event_id::id_millis;
use crate::folders::{JournalFile, JournalFolder, JournalFolders, LocalLock};
use crate::reader::{Events, FolderEvents, ReadOrder};

/// The maximum size of the file of one month in bytes.
const MAX_MONTH: u64 = 1 << 31;
/// The number of months without events after which a single event does not start a new month, because the clock may be
/// wrong.
const LONGEST_PAUSE: i64 = 24;
/// The length of the longest month in milliseconds.
const LONGEST_MONTH: i64 = 31 * 86_400_000;
/// The number of before-images, or their time span in milliseconds, after a gap that shows that the clock is right.
const ESTABLISHED: (usize, i64) = (10, 86_400_000);

/// The number of recent changes among which [`Journal::current_path`] looks for a move.
const RECENT: usize = 1000;

/// The journal of one vault.
#[derive(Debug)]
pub struct Journal {
    vault: Vault,
    records: PathBuf,
    folders: JournalFolders,
}

impl Journal {
    /// Opens the journal in a records folder, which need not exist yet.
    pub fn open(vault: &Vault, records: &Path) -> Self {
        Self {
            vault: vault.clone(),
            records: records.to_owned(),
            folders: JournalFolders::new(vault, records),
        }
    }

    /// Takes the lock of the local folder, and waits some seconds if another process holds it.
    ///
    /// # Errors
    /// `Conflict` naming the holder if it keeps the lock; `Io` if the folder cannot be written.
    pub fn lock_local(&self) -> Result<LocalLock> {
        self.folders.lock_local()
    }

    /// Returns the folder to which this clone appends operations and votes.
    ///
    /// # Errors
    /// `Io` if the clone has no name yet and gets none.
    pub fn own_folder(&self) -> Result<PathBuf> {
        Ok(self.folders.path_of(&JournalFolder::Clone(self.folders.clone_name()?)))
    }

    /// Appends an event and flushes it to the disk.
    ///
    /// # Errors
    /// `Io` if it cannot be written.
    pub fn append(&self, event: &Event) -> Result<()> {
        self.append_all(std::slice::from_ref(event))
    }

    /// Appends events in one write.
    ///
    /// # Errors
    /// `Io` if they cannot be written.
    pub fn append_all(&self, events: &[Event]) -> Result<()> {
        if self.share(events, true)? { Ok(()) } else { self.write(events, true) }
    }

    /// Passes events to the vault's authority if it keeps the journal. Returns whether it does.
    fn share(&self, events: &[Event], durable: bool) -> Result<bool> {
        if !authority_of(&self.vault).is_shared() {
            return Ok(false);
        }
        let mut deeds = events.iter().map(|event| {
            let line = serde_json::to_string(event).map_err(unserializable)?;
            Ok(RecordedEvent { id: event.id.clone(), line })
        });
        authority_of(&self.vault).record(&mut deeds, durable)?;
        Ok(true)
    }

    fn write(&self, events: &[Event], waits: bool) -> Result<()> {
        for (folder, events) in self.folders.by_folder(events)? {
            self.write_to(&folder, &events, waits)?;
        }
        Ok(())
    }

    /// Appends events to a folder of the journal.
    fn write_to(&self, folder: &JournalFolder, events: &[&Event], waits: bool) -> Result<()> {
        let Some(first) = events.first() else { return Ok(()) };
        let opened = self.folders.create(folder)?;
        let month = self.month_for(folder, first.at)?;
        let path = self.folders.path_of(folder).join(&month);
        let failed = |error| safe_open::failed("write the journal", &path, error);
        let mut file = opened.open_append(&month).map_err(failed)?;
        let mut lines = Vec::new();
        if !ends_whole(&mut file).map_err(failed)? {
            lines.push(b'\n');
        }
        for event in events {
            serde_json::to_writer(&mut lines, event).map_err(unserializable)?;
            lines.push(b'\n');
        }
        file.write_all(&lines).map_err(failed)?;
        if waits { file.sync_data().map_err(failed) } else { Ok(()) }
    }

    /// Returns the name of the file for an event. If the clock went back, the event still goes into the newest file; if the
    /// clock jumped ahead, a single event does not start a new month.
    fn month_for(&self, folder: &JournalFolder, at: Timestamp) -> Result<String> {
        let month = month_of(at);
        let Some(newest) = self.folders.months(folder)?.pop() else { return Ok(month) };
        if newest >= month || months_between(&newest, &month).is_none_or(|months| months <= LONGEST_PAUSE) {
            return Ok(newest.max(month));
        }
        let last = self.last_of(folder, &newest)?;
        let goes_on = last.is_none_or(|last| (at.millis() - last.at.millis()).abs() <= LONGEST_MONTH);
        Ok(if goes_on { month } else { newest })
    }

    /// Renames the newest files if a wrong clock gave them a name in the future. Otherwise all later events would go into
    /// them.
    ///
    /// # Errors
    /// `Io` if a folder cannot be listed or a file cannot be renamed.
    pub fn rename_future_months(&self, _lock: &WriteLock, now: Timestamp) -> Result<()> {
        let present = month_of(now);
        for folder in self.folders.list()? {
            let is_own = match &folder {
                JournalFolder::Root => false,
                JournalFolder::Clone(name) => *name == self.folders.clone_name()?,
                JournalFolder::Uses | JournalFolder::Moves => true,
            };
            let mut months = if is_own { self.folders.months(&folder)? } else { Vec::new() };
            let Some(newest) = months.pop() else { continue };
            // One month ahead may come from a machine in another time zone.
            if months_between(&present, &newest).is_none_or(|ahead| ahead < 2) {
                continue;
            }
            let before = months.pop();
            if before.as_ref().is_none_or(|before| *before > present) {
                continue;
            }
            let last = self.last_of(&folder, &newest)?;
            let Some(name) =
                following(before.as_ref().unwrap_or(&present).max(&present)).filter(|name| *name < newest)
            else {
                continue;
            };
            if last.is_none_or(|last| last.at <= now)
                && let Some(opened) = self.folders.open(&folder)?
            {
                let failed = |error| Error::io("rename", self.folders.path_of(&folder).join(&newest), error);
                opened.rename_no_replace(&newest, &opened, &name).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Appends an event without flushing it. It may be lost in a power failure, which is acceptable for a use.
    ///
    /// # Errors
    /// `Io` if it cannot be written.
    pub fn append_without_sync(&self, event: &Event) -> Result<()> {
        let event = std::slice::from_ref(event);
        if self.share(event, false)? { Ok(()) } else { self.write(event, false) }
    }

    /// Records a committed operation, unless it did nothing.
    ///
    /// # Errors
    /// `Io` if it cannot be written. The next [`Journal::record_missing`] records it then.
    pub fn record(&self, event: &Event) -> Result<()> {
        if event.id.is_empty() {
            return Ok(());
        }
        // An authority that keeps the journal got the event with the change.
        if !authority_of(&self.vault).is_shared() {
            self.write(std::slice::from_ref(event), true)?;
        }
        UndoLog::open(&self.records)?.mark_journaled(&event.id)
    }

    /// Records committed operations that are missing because the process ended before [`Journal::record`]. Returns their
    /// number.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read or written.
    pub fn record_missing(&self, _lock: &WriteLock) -> Result<usize> {
        let kept = UndoLog::open(&self.records)?;
        let unsettled = kept.unjournaled()?;
        if unsettled.is_empty() {
            return Ok(0);
        }
        let mut known = HashSet::new();
        for event in self.all_events(ReadOrder::NewestFirst)?.of_changes() {
            known.insert(event?.id);
            if unsettled.iter().all(|id| known.contains(id)) {
                break;
            }
        }
        let mut recorded = 0;
        for id in unsettled {
            if !known.contains(&id) {
                if !authority_of(&self.vault).is_shared() {
                    self.write(&[Event::of(&kept.applied(&id)?)], true)?;
                }
                recorded += 1;
            }
            kept.mark_journaled(&id)?;
        }
        Ok(recorded)
    }

    /// Removes all lines, because the journal is a copy that is written again.
    ///
    /// # Errors
    /// `Io` if a file cannot be removed.
    pub fn clear(&self) -> Result<()> {
        for file in self.folders.files()? {
            let path = self.folders.file_path(&file);
            if let Some(folder) = self.folders.open(&file.folder)? {
                folder.remove(&file.month).map_err(|error| Error::io("remove", &path, error))?;
            }
        }
        Ok(())
    }

    /// Restores the lines of one file of the journal in a backup that are missing in the journal. `name` is the path of
    /// the file among the journal's files in the backup. Operations go to the folder of this clone.
    ///
    /// # Errors
    /// `Io` if they cannot be written.
    pub fn restore_lines(&self, _lock: &WriteLock, name: &str, bytes: &[u8]) -> Result<()> {
        let month = name.rsplit('/').next().unwrap_or(name);
        if !is_month(month) {
            return Ok(());
        }
        let mut known: HashSet<Vec<u8>> = HashSet::new();
        for file in self.folders.files()?.iter().filter(|file| file.month == month) {
            let path = self.folders.file_path(file);
            let read = match self.folders.open(&file.folder)? {
                Some(folder) => folder.read_at_most(&file.month, MAX_MONTH),
                None => Ok(Vec::new()),
            };
            let read = read.map_err(|error| safe_open::failed("read the journal", &path, error))?;
            known.extend(read.split(|&byte| byte == b'\n').map(<[u8]>::to_vec));
        }
        let (mut own, mut lines) = (None, BTreeMap::<JournalFolder, Vec<u8>>::new());
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !known.contains(*line)) {
            // A line that cannot be read is restored as well.
            let event = serde_json::from_slice::<Event>(line).ok();
            let folder = match &event {
                Some(event) => self.folders.folder_of(event, &mut own)?,
                None => JournalFolder::Uses,
            };
            let lines = lines.entry(folder).or_default();
            lines.extend_from_slice(line);
            lines.push(b'\n');
        }
        for (folder, mut lines) in lines {
            let failed =
                |error| Error::io("write the journal", self.folders.path_of(&folder).join(month), error);
            let mut file = self.folders.create(&folder)?.open_append(month).map_err(failed)?;
            if !ends_whole(&mut file).map_err(failed)? {
                lines.insert(0, b'\n');
            }
            // One write appends all lines, because other processes may append too. The order of lines has no meaning.
            file.write_all(&lines).and_then(|()| file.sync_data()).map_err(failed)?;
        }
        Ok(())
    }

    /// Reads the last event of a file.
    fn last_of(&self, folder: &JournalFolder, month: &str) -> Result<Option<Event>> {
        let file = JournalFile { folder: folder.clone(), month: month.to_owned() };
        self.events_of(vec![file], ReadOrder::NewestFirst)?.next().transpose()
    }

    /// Returns each file with unreadable lines, and their number.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn damage(&self) -> Result<Vec<(PathBuf, usize)>> {
        let mut damaged = Vec::new();
        for file in self.folders.files()? {
            let path = self.folders.file_path(&file);
            let mut events = self.events_of(vec![file], ReadOrder::OldestFirst)?;
            events.by_ref().try_for_each(|event| event.map(drop))?;
            if events.corrupt() > 0 {
                damaged.push((path, events.corrupt()));
            }
        }
        Ok(damaged)
    }

    /// Reads the events of all clones, and those of this working copy, as far as the files of the events exist for the reader
    /// of the vault.
    ///
    /// # Errors
    /// `Io` if a folder cannot be listed.
    pub fn events(&self, order: ReadOrder) -> Result<Events> {
        Ok(self.all_events(order)?.seen_in(&self.vault))
    }

    /// Reads the events whatever exists for the reader, for what nobody is shown.
    fn all_events(&self, order: ReadOrder) -> Result<Events> {
        self.events_of(self.folders.files()?, order)
    }

    /// Lists the files that hold changes, each with its length. Events are only appended, so equal lengths mean that there
    /// is no new one.
    ///
    /// # Errors
    /// `Io` if a folder cannot be listed, or a file cannot be looked at.
    pub fn lengths_of_changes(&self) -> Result<Vec<(String, u64)>> {
        let mut lengths = Vec::new();
        for file in self.folders.files()? {
            if file.folder != JournalFolder::Uses {
                let path = self.folders.file_path(&file);
                let found =
                    platform::entry_metadata(&path).map_err(|error| Error::io("read", &path, error))?;
                lengths.push((file.to_string(), found.size));
            }
        }
        Ok(lengths)
    }

    /// Reads the events of some files.
    fn events_of(&self, files: Vec<JournalFile>, order: ReadOrder) -> Result<Events> {
        let mut months: BTreeMap<JournalFolder, Vec<String>> = BTreeMap::new();
        for file in files {
            months.entry(file.folder).or_default().push(file.month);
        }
        let mut streams = Vec::new();
        for (folder, months) in months {
            if let Some(opened) = self.folders.open(&folder)? {
                let holds_changes = folder != JournalFolder::Uses;
                streams.push(FolderEvents::new(
                    self.folders.path_of(&folder),
                    opened,
                    order,
                    months,
                    holds_changes,
                ));
            }
        }
        Ok(Events::new(order, streams))
    }

    /// Lists the events of the note that has this path now, or had it last, through all its moves, oldest first.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn history(&self, path: &NotePath) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for event in self.events(ReadOrder::OldestFirst)?.of_changes() {
            events.push(event?);
        }
        let mut name = Some(FileLocation::Vault(path.clone()));
        // The last event with this path identifies the note. The later paths follow from there.
        let last = events.iter().rposition(|event| {
            name.as_ref().is_some_and(|name| {
                follow_backward(event, name).is_some() || follow_forward(event, name).is_some()
            })
        });
        let mut life = Vec::new();
        let Some(last) = last else { return Ok(life) };
        let moved_on = events
            .get(last)
            .zip(name.as_ref())
            .is_some_and(|(event, name)| follow_backward(event, name).is_none());
        let middle = if moved_on { last } else { last + 1 };
        for event in events.get(middle..).unwrap_or_default() {
            if let Some(step) = name.as_ref().and_then(|name| follow_forward(event, name)) {
                life.push(event.clone());
                name = step.next;
            }
        }
        let mut name = Some(FileLocation::Vault(path.clone()));
        let mut before = Vec::new();
        for event in events.get(..middle).unwrap_or_default().iter().rev() {
            if let Some(step) = name.as_ref().and_then(|name| follow_backward(event, name)) {
                before.push(event.clone());
                name = step.next;
            }
        }
        before.reverse();
        before.append(&mut life);
        Ok(before)
    }

    /// Returns the present path of a note that recently had `path`; `None` if no recent change moved it, or if it was
    /// removed.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn current_path(&self, path: &NotePath) -> Result<Option<NotePath>> {
        let first = FileLocation::Vault(path.clone());
        let mut later = Vec::new();
        for event in self.events(ReadOrder::NewestFirst)?.of_changes().take(RECENT) {
            let event = event?;
            let Some(step) = follow_forward(&event, &first) else {
                later.push(event);
                continue;
            };
            let mut name = step.next;
            for event in later.iter().rev() {
                if let Some(step) = name.as_ref().and_then(|name| follow_forward(event, name)) {
                    name = step.next;
                }
            }
            return Ok(name.filter(|name| *name != first).and_then(|name| name.in_vault().cloned()));
        }
        Ok(None)
    }

    /// Returns those of some moves that no recent change recorded, so that another program made them.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn unrecorded(&self, moves: Vec<(NotePath, NotePath)>) -> Result<Vec<(NotePath, NotePath)>> {
        self.moves_without(moves, |_| true)
    }

    /// Returns those of some moves that no recent operation of sidenote made, whether or not the index saw them.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn not_by_sidenote(&self, moves: Vec<(NotePath, NotePath)>) -> Result<Vec<(NotePath, NotePath)>> {
        self.moves_without(moves, |event| event.op != OP_MOVED)
    }

    /// Returns those of some moves that are in no recent event that counts.
    fn moves_without(
        &self,
        moves: Vec<(NotePath, NotePath)>,
        counts: impl Fn(&Event) -> bool,
    ) -> Result<Vec<(NotePath, NotePath)>> {
        let located = |(from, to): &(NotePath, NotePath)| {
            (FileLocation::Vault(from.clone()), FileLocation::Vault(to.clone()))
        };
        let mut left: Vec<_> = moves.into_iter().map(|one| (located(&one), one)).collect();
        for event in self.events(ReadOrder::NewestFirst)?.of_changes().take(RECENT) {
            let event = event?;
            if !counts(&event) {
                continue;
            }
            let recorded: HashSet<(&FileLocation, &FileLocation)> =
                event.files.iter().filter_map(|file| Some((&file.path, file.to.as_ref()?))).collect();
            left.retain(|((from, to), _)| {
                let mut folders = event.folders.iter();
                let is_with_folder =
                    folders.any(|folder| replaced(from, &folder.from, &folder.to).as_ref() == Some(to));
                !is_with_folder && !recorded.contains(&(from, to))
            });
            if left.is_empty() {
                break;
            }
        }
        Ok(left.into_iter().map(|(_, one)| one).collect())
    }

    /// Reads which files were moved or removed after some operations.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn moves_since<'i>(&self, ids: impl IntoIterator<Item = &'i str>) -> Result<LaterMoves> {
        let mut unknown: HashSet<&str> = ids.into_iter().collect();
        let mut moves = LaterMoves::default();
        for event in self.events(ReadOrder::NewestFirst)?.of_changes() {
            if unknown.is_empty() {
                break;
            }
            let mut event = event?;
            if unknown.remove(event.id.as_str()) {
                moves.newer.insert(event.id.clone(), moves.events.len());
            }
            event.files.retain(|file| file.before.is_some() && file.after.is_none() || file.to.is_some());
            if !event.files.is_empty() || !event.folders.is_empty() {
                moves.events.push(event);
            }
        }
        Ok(moves)
    }

    /// Lists the events after an operation, oldest first; `None` if the operation is not in the journal.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn events_since(&self, id: &str) -> Result<Option<Vec<Event>>> {
        let mut later = Vec::new();
        for event in self.events(ReadOrder::NewestFirst)?.of_changes() {
            let event = event?;
            if event.id == id {
                later.reverse();
                return Ok(Some(later));
            }
            later.push(event);
        }
        Ok(None)
    }

    /// Returns the change set that undoes an event. It expects the files to be as the event left them, so that
    /// [`Vault::apply`] fails otherwise and names the file.
    ///
    /// # Errors
    /// `NotFound` if the before-images were removed.
    pub fn inverse(&self, event: &Event) -> Result<ChangeSet> {
        UndoLog::open(&self.records)?.inverse(&event.id)
    }

    /// Undoes an event: restores the bytes and locations of its files, and removes folders that it created if they are
    /// empty. The undo is an event of its own, which can be undone.
    ///
    /// # Errors
    /// The errors of [`Journal::inverse`] and [`Vault::apply`].
    pub fn undo(&self, lock: &WriteLock, event: &Event, now: Timestamp) -> Result<(Applied, Event)> {
        let applied = self.vault.apply(lock, &self.inverse(event)?, now)?;
        let undo = Event::of(&applied);
        self.record(&undo)?;
        Ok((applied, undo))
    }

    /// Lists the operations that can be undone, newest first: those with before-images that were not undone and are not
    /// undos themselves.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn undoable(&self) -> Result<Vec<Event>> {
        let active = self.active_operations()?;
        Ok(active
            .into_iter()
            .filter(|operation| operation.is_undoable)
            .map(|operation| operation.event)
            .collect())
    }

    /// Lists the operations that were not undone and are not undos themselves, newest first.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub(crate) fn active_operations(&self) -> Result<Vec<ActiveOperation>> {
        Ok(self.operation_history(|_| false)?.active)
    }

    /// Lists the operations, newest first, up to the first for which `enough` holds.
    ///
    /// If a line of the journal cannot be read, its operation is reconstructed from the before-images.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn operation_history(
        &self,
        mut enough: impl FnMut(&ActiveOperation) -> bool,
    ) -> Result<OperationHistory> {
        let store = UndoLog::open(&self.records)?;
        let kept = store.ids()?;
        let mut undone = HashSet::new();
        let mut events = self.events(ReadOrder::NewestFirst)?.of_changes();
        let (mut found, mut lost) = (OperationHistory::default(), None);
        while let Some(event) = events.next() {
            let event = event?;
            if events.corrupt() > 0 && lost.is_none() {
                lost = Some(self.lost(&store, &kept)?);
            }
            // Ids contain the time. At the same time, an operation of a lost line counts as newer than one that was read.
            while let Some(newer) =
                lost.as_mut().and_then(|lost| lost.pop_if(|lost| id_millis(&lost.id) >= id_millis(&event.id)))
            {
                found.take(newer, &kept, &mut undone);
                if found.active.last().is_some_and(&mut enough) {
                    return Ok(found.ended(&events));
                }
            }
            let before = found.active.len();
            found.take(event, &kept, &mut undone);
            if found.active.len() > before && found.active.last().is_some_and(&mut enough) {
                break;
            }
        }
        if events.corrupt() > 0 && lost.is_none() {
            lost = Some(self.lost(&store, &kept)?);
        }
        for older in lost.into_iter().flatten().rev() {
            found.take(older, &kept, &mut undone);
        }
        Ok(found.ended(&events))
    }

    /// Lists the operations that have before-images but no readable line, oldest first.
    fn lost(&self, store: &UndoLog, kept: &BTreeSet<String>) -> Result<Vec<Event>> {
        let mut lost = kept.clone();
        for event in self.all_events(ReadOrder::NewestFirst)?.of_changes() {
            lost.remove(&event?.id);
            if lost.is_empty() {
                break;
            }
        }
        lost.iter().map(|id| Ok(Event::of(&store.applied(id)?))).collect()
    }
}

/// Returns the newest plausible time of the operations. A few operations that are more than `span` after all others may
/// come from a wrong clock, and must not make the others expire.
pub(crate) fn newest_plausible_time(ids: &[String], now: Timestamp, span: i64) -> i64 {
    let mut times: Vec<i64> =
        ids.iter().filter_map(|id| id_millis(id)).filter(|at| *at <= now.millis()).collect();
    times.push(now.millis());
    times.sort_unstable();
    let mut end = times.len();
    for at in (1..times.len()).rev() {
        let (Some(before), Some(behind)) = (times.get(at - 1), times.get(at)) else { break };
        if behind.saturating_sub(*before) <= span {
            continue;
        }
        let newest = times.get(end - 1).unwrap_or(behind);
        if end - at >= ESTABLISHED.0 || newest.saturating_sub(*behind) >= ESTABLISHED.1 {
            break;
        }
        end = at;
    }
    times.get(end - 1).copied().unwrap_or(now.millis())
}

/// An operation that was not undone.
#[derive(Debug, Clone)]
pub struct ActiveOperation {
    /// The event of the operation.
    pub event: Event,
    /// Whether its before-images exist, so that it can be undone.
    pub is_undoable: bool,
}

/// The moves and removals of files after some operations.
#[derive(Debug, Default)]
pub struct LaterMoves {
    /// The events that moved or removed files, newest first.
    events: Vec<Event>,
    /// The number of these events that are newer than an operation, by its id.
    newer: HashMap<String, usize>,
}

impl LaterMoves {
    /// Returns the present location of each file that was at one of `places` right after an operation and moved since;
    /// `None` for one that was removed. The map is empty if the operation is not in the journal.
    pub fn of(
        &self,
        id: &str,
        places: impl Iterator<Item = FileLocation>,
    ) -> HashMap<FileLocation, Option<FileLocation>> {
        let later = self.events.get(..self.newer.get(id).copied().unwrap_or(0)).unwrap_or_default();
        let mut moved = HashMap::new();
        // Maps each present location to the one right after the operation.
        let mut now: HashMap<FileLocation, FileLocation> =
            places.map(|place| (place.clone(), place)).collect();
        for event in later.iter().rev() {
            let named = |file: &TouchedFile| Some((now.get(&file.path)?.clone(), file.to.clone()));
            let mut steps: Vec<(FileLocation, Option<FileLocation>)> =
                event.files.iter().filter_map(named).collect();
            let files: HashSet<&FileLocation> = event.files.iter().map(|file| &file.path).collect();
            if !event.folders.is_empty() {
                let inside = |place: &FileLocation| {
                    event.folders.iter().find_map(|folder| replaced(place, &folder.from, &folder.to))
                };
                let others = now.iter().filter(|(place, _)| !files.contains(place));
                steps.extend(others.filter_map(|(place, then)| Some((then.clone(), Some(inside(place)?)))));
            }
            if steps.is_empty() {
                continue;
            }
            let gone: HashSet<&FileLocation> = steps.iter().map(|(then, _)| then).collect();
            now.retain(|_, then| !gone.contains(then));
            for (then, to) in steps {
                if let Some(to) = &to {
                    now.insert(to.clone(), then.clone());
                }
                moved.insert(then, to);
            }
        }
        // A file that moved back has not moved.
        moved.retain(|then, now| now.as_ref() != Some(then));
        moved
    }
}

/// The operations of a journal, newest first, without those that were undone.
#[derive(Debug, Default)]
pub struct OperationHistory {
    /// The operations that were not undone and are not undos themselves, newest first.
    pub active: Vec<ActiveOperation>,
    /// The undos that were not undone themselves, newest first, each with the number of newer active operations.
    pub undos: Vec<(usize, Event)>,
    /// The number of lines that could not be read.
    pub corrupt: usize,
    /// The number of bytes that were read.
    pub bytes: u64,
}

impl OperationHistory {
    fn take(&mut self, event: Event, kept: &BTreeSet<String>, undone: &mut HashSet<String>) {
        if undone.contains(&event.id) {
            return;
        }
        match &event.undoes {
            Some(id) => {
                undone.insert(id.clone());
                self.undos.push((self.active.len(), event));
            }
            None => self.active.push(ActiveOperation { is_undoable: kept.contains(&event.id), event }),
        }
    }

    fn ended(self, events: &Events) -> Self {
        Self { corrupt: events.corrupt(), bytes: events.bytes_read(), ..self }
    }
}

/// What one event did to a file.
#[derive(Debug, Clone)]
pub struct FileStep<'e> {
    /// The event.
    pub event: &'e Event,
    /// The location before it.
    pub from: FileLocation,
    /// The location after it; `None` for a removed file.
    pub to: Option<FileLocation>,
}

impl FileStep<'_> {
    /// Returns the file as the event names it; `None` if only its folder moved.
    pub fn touched(&self) -> Option<&TouchedFile> {
        self.event.files.iter().find(|file| file.path == self.from)
    }

    /// Returns whether the event moved the file.
    pub fn is_move(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to != self.from)
    }
}

/// Follows the file at `place` through events, oldest first, until one removes it.
pub fn steps_of_file<'e>(events: &'e [Event], place: &FileLocation) -> Vec<FileStep<'e>> {
    let mut steps = Vec::new();
    let mut place = place.clone();
    for event in events {
        let Some(step) = follow_forward(event, &place) else { continue };
        steps.push(FileStep { event, from: place.clone(), to: step.next.clone() });
        match step.next {
            Some(next) => place = next,
            None => break,
        }
    }
    steps
}

/// The effect of an event on one path.
struct PathStep {
    /// The path on the other side of the event; `None` if the note was created or removed by it.
    next: Option<FileLocation>,
}

/// Follows a path forward through an event; `None` if the event does not concern it.
fn follow_forward(event: &Event, name: &FileLocation) -> Option<PathStep> {
    if let Some(file) = event.files.iter().find(|file| file.path == *name && file.before.is_some()) {
        let is_removed = file.after.is_none();
        return Some(PathStep { next: (!is_removed).then(|| file.end().clone()) });
    }
    // A large file that only moved has no hashes.
    if let Some(to) = event.files.iter().find(|file| file.path == *name).and_then(|file| file.to.clone()) {
        return Some(PathStep { next: Some(to) });
    }
    let moved = event.folders.iter().find_map(|folder| replaced(name, &folder.from, &folder.to))?;
    Some(PathStep { next: Some(moved) })
}

/// Follows a path backward through an event; `None` if the event does not concern it.
fn follow_backward(event: &Event, name: &FileLocation) -> Option<PathStep> {
    let ends = |file: &&TouchedFile| file.end() == name && (file.after.is_some() || file.to.is_some());
    if let Some(file) = event.files.iter().find(ends) {
        let is_new = file.before.is_none() && file.to.is_none();
        return Some(PathStep { next: (!is_new).then(|| file.path.clone()) });
    }
    Some(PathStep { next: Some(path_before_folders(event, name)?) })
}

/// Returns the path that a file had before the folders of an event moved; `None` if it was in none of them.
pub fn path_before_folders(event: &Event, name: &FileLocation) -> Option<FileLocation> {
    event.folders.iter().find_map(|folder| replaced(name, &folder.to, &folder.from))
}

fn replaced(name: &FileLocation, from: &NotePath, to: &NotePath) -> Option<FileLocation> {
    let rest = name.in_vault()?.as_str().strip_prefix(from.as_str())?;
    if !rest.starts_with('/') {
        return None;
    }
    NotePath::from_disk(&format!("{to}{rest}")).map(FileLocation::Vault)
}

/// Returns the name of the file for the month of a time.
fn month_of(at: Timestamp) -> String {
    format!("{}.jsonl", at.rfc3339().get(..7).unwrap_or("0000-00"))
}

/// Returns the number of months since the year 0; `None` if the name is not that of a month.
fn month_number(name: &str) -> Option<i64> {
    let (year, rest) = name.split_once('-')?;
    Some(year.parse::<i64>().ok()? * 12 + rest.get(..2)?.parse::<i64>().ok()? - 1)
}

fn months_between(from: &str, to: &str) -> Option<i64> {
    Some(month_number(to)? - month_number(from)?)
}

/// Returns the name of the file for the next month.
fn following(name: &str) -> Option<String> {
    let next = month_number(name)? + 1;
    Some(format!("{:04}-{:02}.jsonl", next / 12, next % 12 + 1))
}

fn is_month(name: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_suffix(".jsonl")
        .and_then(|month| month.split_once('-'))
        .is_some_and(|(year, month)| year.len() == 4 && month.len() == 2 && digits(year) && digits(month))
}

fn unserializable(error: serde_json::Error) -> Error {
    Error::internal("an event cannot be serialized").with_source(error)
}

/// Says whether a file ends with a line end. If not, the next event starts on a new line.
fn ends_whole(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
