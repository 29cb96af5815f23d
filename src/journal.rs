//! Owns the journal: what happened, one JSON event a line, appended; and what of it can be undone.
//!
//! Lines stay as they were written, but for the uses of old months, which `compact` writes shorter.

mod compaction;
pub mod event;
mod event_id;
pub mod projection;
pub mod reader;
mod snapshot;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::text::edit::{ChangeSet, FileLocation};
use crate::text::path::NotePath;
use crate::vault::Vault;
use crate::vault::applied::Applied;
use crate::vault::dir::Dir;
use crate::vault::undo_log::UndoLog;
use crate::vault::write_lock::WriteLock;

use crate::journal::event::{Event, TouchedFile};
use crate::journal::event_id::id_millis;
use crate::journal::reader::{Events, ReadOrder};

/// How many bytes the events of one month may take.
const MAX_MONTH: u64 = 1 << 31;
/// After so many months without an event the clock is not believed at once.
const LONGEST_PAUSE: i64 = 24;
/// Events so far apart are of a month and the next one at most.
const LONGEST_MONTH: i64 = 31 * 86_400_000;
/// Before-images are as many or over as long a time, in milliseconds, on the far side of a gap before the clock is
/// believed that made it.
const ESTABLISHED: (usize, i64) = (10, 86_400_000);

/// So many changes back a note is looked for that was moved while somebody was about to change it.
const RECENT: usize = 1000;

/// The journal of one vault.
#[derive(Debug)]
pub struct Journal {
    vault: Vault,
    records: PathBuf,
}

impl Journal {
    /// Opens the journal in a records folder, which need not be there yet.
    pub fn open(vault: &Vault, records: &Path) -> Self {
        Self { vault: vault.clone(), records: records.to_owned() }
    }

    /// Appends an event and waits until it is on the disk.
    ///
    /// # Errors
    /// `Io` where it cannot be written.
    pub fn append(&self, event: &Event) -> Result<()> {
        self.append_all(std::slice::from_ref(event))
    }

    /// Appends events in one write.
    ///
    /// # Errors
    /// `Io` where they cannot be written.
    pub fn append_all(&self, events: &[Event]) -> Result<()> {
        self.write(events, true)
    }

    fn write(&self, events: &[Event], waits: bool) -> Result<()> {
        let Some(first) = events.first() else { return Ok(()) };
        let folder = self.vault.create_records_dir(&self.records)?;
        let name = self.month_for(first.at)?;
        let failed = |error| Error::io("write the journal", self.records.join(&name), error);
        let mut file = folder.open_append(&name).map_err(failed)?;
        let mut lines = Vec::new();
        if !ends_whole(&mut file).map_err(failed)? {
            lines.push(b'\n');
        }
        for event in events {
            serde_json::to_writer(&mut lines, event)
                .map_err(|error| Error::internal("an event cannot be written").with_source(error))?;
            lines.push(b'\n');
        }
        file.write_all(&lines).map_err(failed)?;
        if waits { file.sync_data().map_err(failed) } else { Ok(()) }
    }

    /// Names the file that an event goes into. A clock that went back does not put it in front of older ones, and one that
    /// jumped ahead opens no month by a single event.
    fn month_for(&self, at: Timestamp) -> Result<String> {
        let month = month_of(at);
        let Some(newest) = self.months()?.pop() else { return Ok(month) };
        if newest >= month || months_between(&newest, &month).is_none_or(|months| months <= LONGEST_PAUSE) {
            return Ok(newest.max(month));
        }
        let last = self.last_of(&newest)?;
        let goes_on = last.is_none_or(|last| (at.millis() - last.at.millis()).abs() <= LONGEST_MONTH);
        Ok(if goes_on { month } else { newest })
    }

    /// Gives the newest file a name of the present, where a clock that was wrong for a while gave it one of the future, and
    /// all that comes would go into it.
    ///
    /// # Errors
    /// `Io` where the folder cannot be listed or the file not renamed.
    pub fn rename_future_month(&self, lock: &WriteLock, now: Timestamp) -> Result<()> {
        let mut months = self.months()?;
        let (Some(newest), Some(before), present) = (months.pop(), months.pop(), month_of(now)) else {
            return Ok(());
        };
        // A month ahead may be another machine's, in another zone.
        if months_between(&present, &newest).is_none_or(|ahead| ahead < 2) || before > present {
            return Ok(());
        }
        let last = self.last_of(&newest)?;
        let Some(name) = following(&before.max(present)).filter(|name| *name < newest) else { return Ok(()) };
        if last.is_none_or(|last| last.at <= now) {
            let failed = |error| Error::io("rename", self.records.join(&newest), error);
            lock.folder.rename_no_replace(&newest, &lock.folder, &name).map_err(failed)?;
        }
        Ok(())
    }

    /// Appends an event without waiting for the disk: for what may be lost with the power, such as a use.
    ///
    /// # Errors
    /// `Io` where it cannot be written.
    pub fn append_without_sync(&self, event: &Event) -> Result<()> {
        self.write(std::slice::from_ref(event), false)
    }

    /// Records an operation that landed; nothing where it did nothing.
    ///
    /// # Errors
    /// `Io` where it cannot be written: the next [`Journal::record_missing`] does it.
    pub fn record(&self, event: &Event) -> Result<()> {
        if event.id.is_empty() {
            return Ok(());
        }
        self.append(event)?;
        UndoLog::open(&self.records)?.mark_journaled(&event.id)
    }

    /// Records operations that landed, but of which the process could not tell the journal any more. Gives how many.
    ///
    /// # Errors
    /// `Io` where the journal cannot be read or written.
    pub fn record_missing(&self, _lock: &WriteLock) -> Result<usize> {
        let kept = UndoLog::open(&self.records)?;
        let unsettled = kept.unjournaled()?;
        if unsettled.is_empty() {
            return Ok(0);
        }
        let mut known = HashSet::new();
        for event in self.events(ReadOrder::NewestFirst)?.of_changes() {
            known.insert(event?.id);
            if unsettled.iter().all(|id| known.contains(id)) {
                break;
            }
        }
        let mut recorded = 0;
        for id in unsettled {
            if !known.contains(&id) {
                self.append(&Event::of(&kept.applied(&id)?))?;
                recorded += 1;
            }
            kept.mark_journaled(&id)?;
        }
        Ok(recorded)
    }

    /// Brings the lines of a month of a backup back that are not there any more.
    ///
    /// # Errors
    /// `Io` where it cannot be written.
    pub fn restore_lines(&self, lock: &WriteLock, month: &str, bytes: &[u8]) -> Result<()> {
        if !is_month(month) {
            return Ok(());
        }
        let failed = |error| Error::io("write the journal", self.records.join(month), error);
        let there = match lock.folder.read_at_most(month, MAX_MONTH) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        let known: HashSet<&[u8]> = there.split(|&byte| byte == b'\n').collect();
        let mut lines = Vec::new();
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !known.contains(line)) {
            lines.extend_from_slice(line);
            lines.push(b'\n');
        }
        if lines.is_empty() {
            return Ok(());
        }
        let mut file = lock.folder.open_append(month).map_err(failed)?;
        if !ends_whole(&mut file).map_err(failed)? {
            lines.insert(0, b'\n');
        }
        // Appended at once, whoever else appends; the order of lines means nothing.
        file.write_all(&lines).and_then(|()| file.sync_data()).map_err(failed)
    }

    fn months(&self) -> Result<Vec<String>> {
        self.months_in(self.folder()?.as_ref())
    }

    fn folder(&self) -> Result<Option<Dir>> {
        self.vault.open_records(&self.records)
    }

    fn months_in(&self, folder: Option<&Dir>) -> Result<Vec<String>> {
        let Some(folder) = folder else { return Ok(Vec::new()) };
        let names = folder.names().map_err(|error| Error::io("list", &self.records, error))?;
        let mut months: Vec<String> = names
            .iter()
            .filter_map(|name| name.to_str())
            .filter(|name| is_month(name))
            .map(str::to_owned)
            .collect();
        months.sort();
        Ok(months)
    }

    /// Reads the last event of a file.
    fn last_of(&self, month: &str) -> Result<Option<Event>> {
        let months = vec![month.to_owned()];
        Events::new(&self.records, self.folder()?, ReadOrder::NewestFirst, months).next().transpose()
    }

    /// Counts the lines of each file that cannot be read, where there are any.
    ///
    /// # Errors
    /// `Io` where the journal cannot be read.
    pub fn damage(&self) -> Result<Vec<(String, usize)>> {
        let mut damaged = Vec::new();
        for month in self.months()? {
            let mut events =
                Events::new(&self.records, self.folder()?, ReadOrder::OldestFirst, vec![month.clone()]);
            events.by_ref().try_for_each(|event| event.map(drop))?;
            if events.corrupt() > 0 {
                damaged.push((month, events.corrupt()));
            }
        }
        Ok(damaged)
    }

    /// Reads the events.
    ///
    /// # Errors
    /// `Io` where the folder cannot be listed.
    pub fn events(&self, order: ReadOrder) -> Result<Events> {
        let folder = self.folder()?;
        let months = self.months_in(folder.as_ref())?;
        Ok(Events::new(&self.records, folder, order, months))
    }

    /// Tells a note's life, oldest event first: the note that has this path now, or had it last, through all its moves.
    ///
    /// # Errors
    /// `Io` where the journal cannot be read.
    pub fn history(&self, path: &NotePath) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for event in self.events(ReadOrder::OldestFirst)?.of_changes() {
            events.push(event?);
        }
        let mut name = Some(FileLocation::Vault(path.clone()));
        // The last event that knows the name tells which note it was; from there on forwards its later names.
        let last = events.iter().rposition(|event| {
            name.as_ref()
                .is_some_and(|name| ends_at(event, name).is_some() || begins_at(event, name).is_some())
        });
        let mut life = Vec::new();
        let Some(last) = last else { return Ok(life) };
        let moved_on =
            events.get(last).zip(name.as_ref()).is_some_and(|(event, name)| ends_at(event, name).is_none());
        let middle = if moved_on { last } else { last + 1 };
        for event in events.get(middle..).unwrap_or_default() {
            if let Some(step) = name.as_ref().and_then(|name| begins_at(event, name)) {
                life.push(event.clone());
                name = step.next;
            }
        }
        let mut name = Some(FileLocation::Vault(path.clone()));
        let mut before = Vec::new();
        for event in events.get(..middle).unwrap_or_default().iter().rev() {
            if let Some(step) = name.as_ref().and_then(|name| ends_at(event, name)) {
                before.push(event.clone());
                name = step.next;
            }
        }
        before.reverse();
        before.append(&mut life);
        Ok(before)
    }

    /// Says where the note is now that had a path some changes ago; nothing where no change since then moved one from
    /// there, or the note was removed.
    ///
    /// # Errors
    /// `Io` where the journal cannot be read.
    pub fn current_path(&self, path: &NotePath) -> Result<Option<NotePath>> {
        let first = FileLocation::Vault(path.clone());
        let mut later = Vec::new();
        for event in self.events(ReadOrder::NewestFirst)?.of_changes().take(RECENT) {
            let event = event?;
            let Some(step) = begins_at(&event, &first) else {
                later.push(event);
                continue;
            };
            let mut name = step.next;
            for event in later.iter().rev() {
                if let Some(step) = name.as_ref().and_then(|name| begins_at(event, name)) {
                    name = step.next;
                }
            }
            return Ok(name.filter(|name| *name != first).and_then(|name| name.in_vault().cloned()));
        }
        Ok(None)
    }

    /// Says where files are that lay at `places` right after an operation, of those that were moved since: nothing for
    /// one that was removed. Empty where the journal does not know the operation.
    ///
    /// # Errors
    /// `Io` where the journal cannot be read.
    pub fn moves_since(
        &self,
        id: &str,
        places: impl Iterator<Item = FileLocation>,
    ) -> Result<HashMap<FileLocation, Option<FileLocation>>> {
        let mut later = Vec::new();
        let mut is_known = false;
        for event in self.events(ReadOrder::NewestFirst)?.of_changes() {
            let mut event = event?;
            if event.id == id {
                is_known = true;
                break;
            }
            event.files.retain(|file| file.before.is_some() && file.after.is_none() || file.to.is_some());
            if !event.files.is_empty() || !event.folders.is_empty() {
                later.push(event);
            }
        }
        let mut moved = HashMap::new();
        if !is_known || later.is_empty() {
            return Ok(moved);
        }
        // Each place of now, with that of then.
        let mut now: HashMap<FileLocation, FileLocation> =
            places.map(|place| (place.clone(), place)).collect();
        for event in later.into_iter().rev() {
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
        // What came back is where it was.
        moved.retain(|then, now| now.as_ref() != Some(then));
        Ok(moved)
    }

    /// Plans the opposite of an event; it expects the files to be as the event left them, so that [`Vault::apply`]
    /// refuses by name where they are not.
    ///
    /// # Errors
    /// `NotFound` where the before-images are not kept any more.
    pub fn inverse(&self, event: &Event) -> Result<ChangeSet> {
        UndoLog::open(&self.records)?.inverse(&event.id)
    }

    /// Takes back an event: files get their former bytes and places, and folders made for it go if they are empty.
    /// The undo is an event of its own, which can be undone.
    ///
    /// # Errors
    /// As [`Journal::inverse`] and [`Vault::apply`].
    pub fn undo(&self, lock: &WriteLock, event: &Event, now: Timestamp) -> Result<(Applied, Event)> {
        let applied = self.vault.apply(lock, &self.inverse(event)?, now)?;
        let undo = Event::of(&applied);
        self.record(&undo)?;
        Ok((applied, undo))
    }

    /// Lists what can be undone, newest first: what was not undone yet, and is itself no undo.
    ///
    /// # Errors
    /// `Io` where the journal cannot be read.
    pub fn undoable(&self) -> Result<Vec<Event>> {
        let standing = self.active_operations()?;
        Ok(standing
            .into_iter()
            .filter(|standing| standing.is_undoable)
            .map(|standing| standing.event)
            .collect())
    }

    /// Lists operations that were not undone, and are themselves no undo, newest first.
    ///
    /// # Errors
    /// `Io` where the journal cannot be read.
    pub fn active_operations(&self) -> Result<Vec<ActiveOperation>> {
        Ok(self.operation_history(|_| false)?.standing)
    }

    /// Looks back over the operations, newest first, until one is `enough`: that one is the last which is listed.
    ///
    /// Where a line of the journal cannot be read, the before-images tell of the operation that stood there.
    ///
    /// # Errors
    /// `Io` where the journal cannot be read.
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
            // Ids tell the time; of one moment, what stood in a lost line is newer than what was found before it.
            while let Some(newer) =
                lost.as_mut().and_then(|lost| lost.pop_if(|lost| id_millis(&lost.id) >= id_millis(&event.id)))
            {
                found.take(newer, &kept, &mut undone);
                if found.standing.last().is_some_and(&mut enough) {
                    return Ok(found.ended(&events));
                }
            }
            let before = found.standing.len();
            found.take(event, &kept, &mut undone);
            if found.standing.len() > before && found.standing.last().is_some_and(&mut enough) {
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

    /// Lists the operations that only their before-images tell of any more, oldest first.
    fn lost(&self, store: &UndoLog, kept: &BTreeSet<String>) -> Result<Vec<Event>> {
        let mut lost = kept.clone();
        for event in self.events(ReadOrder::NewestFirst)?.of_changes() {
            lost.remove(&event?.id);
            if lost.is_empty() {
                break;
            }
        }
        lost.iter().map(|id| Ok(Event::of(&store.applied(id)?))).collect()
    }

    /// Forgets before-images: those of operations that were undone and of undos, of all others but the newest `keep`, and
    /// those older than `days`. Gives how many went.
    ///
    /// A tenth more than `keep` may stay in all, so that most calls only count names.
    ///
    /// # Errors
    /// `Io` where they cannot be removed, or the journal cannot be read.
    pub fn prune(&self, lock: &WriteLock, keep: usize, days: u32, now: Timestamp) -> Result<usize> {
        let kept = UndoLog::open(&self.records)?;
        // The ids are UUIDs of version 7, which tell the time.
        let mut ids = kept.names()?;
        ids.retain(|id| id_millis(id).is_some());
        let span = i64::from(days).saturating_mul(86_400_000);
        let oldest = believed(&ids, now, span).saturating_sub(span);
        let is_old = |id: &str| id_millis(id).is_none_or(|at| at < oldest);
        let is_full = ids.len().saturating_sub(keep) > keep / 10;
        if !is_full && !ids.iter().any(|id| is_old(id)) {
            return Ok(0);
        }
        // An undo must not push out what is still to be undone.
        let staying: Option<HashSet<String>> = if is_full {
            let standing = self.active_operations()?.into_iter().filter(|standing| standing.is_undoable);
            Some(standing.take(keep).map(|standing| standing.event.id).collect())
        } else {
            None
        };
        let unsettled = kept.unjournaled()?;
        let goes = |id: &String| is_old(id) || staying.as_ref().is_some_and(|staying| !staying.contains(id));
        ids.retain(|id| goes(id) && !unsettled.contains(id));
        ids.iter().try_for_each(|id| kept.remove(lock, id))?;
        Ok(ids.len())
    }
}

/// Gives the newest moment that the times of operations bear out: a single time that lies more than `span` behind all
/// others may be that of a clock that jumped ahead, and takes nothing away.
fn believed(ids: &[String], now: Timestamp, span: i64) -> i64 {
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
    /// What was done.
    pub event: Event,
    /// Whether its before-images are there, so that it can be undone.
    pub is_undoable: bool,
}

/// What was found by looking back.
#[derive(Debug, Default)]
pub struct OperationHistory {
    /// Operations that were not undone, and are themselves no undo, newest first.
    pub standing: Vec<ActiveOperation>,
    /// Undos and what took back others, newest first, but for those that were taken back themselves; each with the number
    /// of standing operations that are newer.
    pub undos: Vec<(usize, Event)>,
    /// Lines that could not be read.
    pub corrupt: usize,
    /// Bytes of the journal that were read.
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
                self.undos.push((self.standing.len(), event));
            }
            None => self.standing.push(ActiveOperation { is_undoable: kept.contains(&event.id), event }),
        }
    }

    fn ended(self, events: &Events) -> Self {
        Self { corrupt: events.corrupt(), bytes: events.bytes_read(), ..self }
    }
}

/// What an event means for one name.
struct PathStep {
    /// The name beyond it; nothing where the note began or ended there.
    next: Option<FileLocation>,
}

/// Says what became of the note that had `name` before an event; `None` where the event does not concern it.
fn begins_at(event: &Event, name: &FileLocation) -> Option<PathStep> {
    if let Some(file) = event.files.iter().find(|file| file.path == *name && file.before.is_some()) {
        let is_removed = file.after.is_none();
        return Some(PathStep { next: (!is_removed).then(|| file.end().clone()) });
    }
    // A large file that was only moved has no hashes.
    if let Some(to) = event.files.iter().find(|file| file.path == *name).and_then(|file| file.to.clone()) {
        return Some(PathStep { next: Some(to) });
    }
    let moved = event.folders.iter().find_map(|folder| replaced(name, &folder.from, &folder.to))?;
    Some(PathStep { next: Some(moved) })
}

/// Says which name the note that had `name` after an event had before it; `None` where the event does not concern it.
fn ends_at(event: &Event, name: &FileLocation) -> Option<PathStep> {
    let ends = |file: &&TouchedFile| file.end() == name && (file.after.is_some() || file.to.is_some());
    if let Some(file) = event.files.iter().find(ends) {
        let is_new = file.before.is_none() && file.to.is_none();
        return Some(PathStep { next: (!is_new).then(|| file.path.clone()) });
    }
    let moved = event.folders.iter().find_map(|folder| replaced(name, &folder.to, &folder.from))?;
    Some(PathStep { next: Some(moved) })
}

fn replaced(name: &FileLocation, from: &NotePath, to: &NotePath) -> Option<FileLocation> {
    let rest = name.in_vault()?.as_str().strip_prefix(from.as_str())?;
    if !rest.starts_with('/') {
        return None;
    }
    NotePath::from_disk(&format!("{to}{rest}")).map(FileLocation::Vault)
}

/// Names the file of the month of a moment.
fn month_of(at: Timestamp) -> String {
    format!("{}.jsonl", at.rfc3339().get(..7).unwrap_or("0000-00"))
}

/// Counts months since the year 0; nothing for what names no month.
fn month_number(name: &str) -> Option<i64> {
    let (year, rest) = name.split_once('-')?;
    Some(year.parse::<i64>().ok()? * 12 + rest.get(..2)?.parse::<i64>().ok()? - 1)
}

fn months_between(from: &str, to: &str) -> Option<i64> {
    Some(month_number(to)? - month_number(from)?)
}

/// Names the file of the month behind another.
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

/// Says whether the last line of a file is whole; a torn one is left as it is, and ended.
fn ends_whole(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
