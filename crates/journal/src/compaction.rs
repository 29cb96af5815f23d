//! Journal compaction: merges the uses of an old month, one line each, into one line for each note.
//!
//! Every use keeps its id, its time and its source; the session, the agent and its tool are dropped. A journal that was
//! compacted on one git branch therefore merges with one that was not.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde_json::{Value, json};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};

use crate::event::Event;
use crate::event_id::id_millis;
use crate::folders::{JournalFile, JournalFolder, LocalLock};
use crate::reader::{Events, ReadOrder};
use crate::snapshot::{SNAPSHOT, uses_of};
use crate::{Journal, MAX_MONTH};

/// The number of months before the present one that are not compacted.
const KEPT_MONTHS: i64 = 2;
/// The fields of a use that compaction knows. A use with other fields is kept as it is, and so is one with the person who made
/// it (`caller`): a team has these recorded.
const KNOWN: &[&str] =
    &["notes", "by", "session", "states", "client", "tool", "toolset", "operation_id", "call"];

/// Formats a use as its id, followed by its time if the id does not contain it.
fn name(id: &str, at: Timestamp) -> String {
    if id_millis(id) == Some(at.millis()) { id.to_owned() } else { format!("{id}@{}", at.millis()) }
}

/// Uses by note and source, each with its time and its name.
#[derive(Default)]
struct GroupedUses(BTreeMap<UseKey, NamedUses>);

/// The note of a use as JSON, and its source.
type UseKey = (String, Option<String>);
/// Times of uses in milliseconds since 1970, and their names.
type NamedUses = Vec<(i64, String)>;

impl GroupedUses {
    /// Adds those uses of a plain event for whose times `is_wanted` holds.
    fn add(&mut self, event: &Event, is_wanted: impl Fn(i64) -> bool) {
        let mut named: NamedUses = if event.op == SNAPSHOT {
            let texts = event.more.get("uses").and_then(Value::as_array).into_iter().flatten();
            let texts = texts.filter_map(Value::as_str).map(str::to_owned);
            uses_of(event).into_iter().map(|(at, _)| at).zip(texts).collect()
        } else {
            vec![(event.at.millis(), name(&event.id, event.at))]
        };
        named.retain(|(at, _)| is_wanted(*at));
        let by = event.more.get("by").and_then(Value::as_str).map(str::to_owned);
        for note in event.more.get("notes").and_then(Value::as_array).into_iter().flatten() {
            if !named.is_empty() {
                self.0.entry((note.to_string(), by.clone())).or_default().extend(named.iter().cloned());
            }
        }
    }

    /// Returns a snapshot for each note and source.
    fn into_snapshots(self) -> Result<Vec<Event>> {
        let snapshot = |((note, by), mut named): (UseKey, NamedUses)| {
            named.sort_unstable();
            named.dedup();
            let last = named.last().map_or(0, |(at, _)| *at);
            let names: Vec<&str> = named.iter().map(|(_, name)| name.as_str()).collect();
            let note: Value = serde_json::from_str(&note)
                .map_err(|error| Error::internal("a note of a use is not valid JSON").with_source(error))?;
            let mut event = Event::new(SNAPSHOT, Timestamp::from_millis(last));
            // The id is a hash, so that two machines that compact the same uses write the same line.
            let digest = blake3::hash(json!([note, by, names]).to_string().as_bytes()).to_hex();
            event.id = digest.as_str().get(..32).unwrap_or_default().to_owned();
            event.more.insert("notes".to_owned(), Value::from(vec![note]));
            event.more.extend(by.map(|by| ("by".to_owned(), Value::from(by))));
            event.more.insert("uses".to_owned(), Value::from(names));
            Ok(event)
        };
        self.0.into_iter().map(snapshot).collect()
    }
}

/// Compacts the lines of one month; `None` if there is nothing to compact.
fn compacted(bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    let (mut kept, mut uses, mut lines) = (Vec::new(), GroupedUses::default(), 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let event = serde_json::from_slice::<Event>(line).ok().filter(is_plain);
        let Some(event) = event else {
            // Unreadable lines are kept.
            kept.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                kept.push(b'\n');
            }
            continue;
        };
        lines += usize::from(event.op != SNAPSHOT);
        uses.add(&event, |_| true);
    }
    if lines == 0 {
        return Ok(None);
    }
    for event in uses.into_snapshots()? {
        serde_json::to_writer(&mut kept, &event)
            .map_err(|error| Error::internal("an event cannot be serialized").with_source(error))?;
        kept.push(b'\n');
    }
    Ok(Some(kept))
}

/// Says whether an event is a use or a snapshot of uses, without other fields.
fn is_plain(event: &Event) -> bool {
    let is_bare =
        event.files.is_empty() && event.folders.is_empty() && event.undoes.is_none() && event.note.is_none();
    let is_known = |known: &[&str]| event.more.keys().all(|key| known.contains(&key.as_str()));
    let notes = event.more.get("notes").and_then(Value::as_array);
    let names = |note: &Value| ["id", "path"].iter().any(|name| note.get(name).is_some_and(Value::is_string));
    if !notes.is_some_and(|notes| !notes.is_empty() && notes.iter().all(names)) {
        return false;
    }
    match event.op.as_str() {
        "use" => is_bare && is_known(KNOWN),
        SNAPSHOT => {
            let uses = event.more.get("uses").and_then(Value::as_array);
            is_bare && is_known(&["notes", "by", "uses"]) && uses.map(Vec::len) == Some(uses_of(event).len())
        }
        _ => false,
    }
}

impl Journal {
    /// Compacts the uses of old months in the local folder; returns the number of files that were rewritten. All other
    /// lines are kept. Files that git may track are never rewritten.
    ///
    /// # Errors
    /// `Io` if a file cannot be read or written. That file is then unchanged.
    pub fn compact(&self, lock: &LocalLock, now: Timestamp) -> Result<usize> {
        let months = self.folders.months(&JournalFolder::Uses)?;
        // Events are only appended to the newest month.
        let Some((newest, older)) = months.split_last() else { return Ok(0) };
        let today = now.rfc3339();
        let mut done = 0;
        for month in older.iter().filter(|month| is_old(month, &today) && *month < newest) {
            let path = self.folders.path_of(&JournalFolder::Uses).join(month);
            let failed = |error| Error::io("compact the journal", &path, error);
            let bytes = lock.folder.read_at_most(month, MAX_MONTH).map_err(failed)?;
            let Some(shorter) = compacted(&bytes)? else { continue };
            let fresh = format!("{month}.tmp");
            match lock.folder.remove(&fresh) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
            let mut file = lock.folder.create(&fresh, 0o666).map_err(failed)?;
            file.write_all(&shorter).and_then(|()| file.sync_all()).map_err(failed)?;
            lock.folder.rename_replace(&fresh, &lock.folder, month).map_err(failed)?;
            lock.folder.sync().map_err(failed)?;
            done += 1;
        }
        Ok(done)
    }
}

/// The number of milliseconds of a day.
const DAY: i64 = 86_400_000;

impl Journal {
    /// Writes the uses of past days to the folder of this clone, which git can track, one line for each note; returns the
    /// number of lines. Uses that were written before are left out.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read or written.
    pub fn share_uses(&self, _lock: &LocalLock, now: Timestamp) -> Result<usize> {
        let own = JournalFolder::Clone(self.folders.clone_name()?);
        let day = |millis: i64| millis.div_euclid(DAY);
        let of_folder = |folder: &JournalFolder| -> Result<Events> {
            let file = |month| JournalFile { folder: folder.clone(), month };
            let files = self.folders.months(folder)?.into_iter().map(file).collect();
            self.events_of(files, ReadOrder::NewestFirst)
        };
        let mut shared = None;
        for event in of_folder(&own)?.with_any(&["\"snapshot\""]) {
            shared = shared.max(Some(day(event?.at.millis())));
        }
        let is_wanted = |at: i64| day(at) < day(now.millis()) && shared.is_none_or(|shared| day(at) > shared);
        let mut uses = GroupedUses::default();
        for event in of_folder(&JournalFolder::Uses)?.with_any(&["\"use\"", "\"snapshot\""]) {
            let event = event?;
            if is_plain(&event) {
                uses.add(&event, is_wanted);
            }
        }
        let snapshots = uses.into_snapshots()?;
        self.write_to(&own, &snapshots.iter().collect::<Vec<_>>(), true)?;
        Ok(snapshots.len())
    }
}

/// Says whether a file such as `2026-09.jsonl` is old enough to be compacted.
fn is_old(month: &str, today: &str) -> bool {
    let count = |text: &str| -> Option<i64> {
        let (year, rest) = text.split_once('-')?;
        Some(year.parse::<i64>().ok()? * 12 + rest.get(..2)?.parse::<i64>().ok()?)
    };
    count(month).zip(count(today)).is_some_and(|(month, today)| month + KEPT_MONTHS < today)
}
