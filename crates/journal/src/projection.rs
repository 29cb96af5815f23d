//! The projection of the journal: a [`UsageLedger`] that is folded once, cached in the index folder and extended by new
//! events.
//!
//! If the cache is missing, damaged or does not match the journal, the whole journal is folded again.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::{parallel, platform, safe_open};
use sidenote_markdown::edit::FileLocation;
use sidenote_memory::context::WorkContext;
use sidenote_memory::tier::Tier;
use sidenote_memory::usage::{EventId, MemoryEvent, NoteRef, UsageEvent, UsageEventKind, UsageLedger};

use crate::event::{Event, OP_MOVED, OP_RESTORE_BACKUP};
use crate::event_id::event_number;
use crate::folders::JournalFile;
use crate::reader::objects;
use crate::snapshot::{SNAPSHOT, uses_of};
use crate::{Journal, MAX_MONTH};

/// The name of the cache file in the index folder.
const FILE_NAME: &str = "ledger";
/// The maximum size of the cache file in bytes.
const MAX_FILE_LEN: u64 = 1 << 31;
/// The number of new events after which the cache file is written again.
const SAVE_THRESHOLD: usize = 500;
/// The version of the cache format.
const FORMAT_VERSION: u8 = 6;
/// The minimum number of lines for one thread.
const LINES_PER_CORE: usize = 2000;
/// The number of bytes before the read position whose hash must be unchanged.
const TAIL_LEN: usize = 4096;

/// The position up to which a file of the journal was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ReadPosition {
    /// The offset, which is the start of a line.
    len: u64,
    /// The hash of the bytes before the offset.
    tail: [u8; 32],
    /// Size and times of the file when it was read.
    stat: (u64, i64, i64, i64, i64),
}

/// The ledger of a journal, and the positions up to which the journal was read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Projection {
    ledger: UsageLedger,
    marks: BTreeMap<String, ReadPosition>,
    corrupt: usize,
}

impl Projection {
    /// Updates a projection from the journal. If there is none yet, it is loaded from the cache file in `folder`, and with
    /// `may_write` the file is updated for the next process.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn refresh(
        projection: &mut Option<Self>,
        folder: &Path,
        may_write: bool,
        journal: &Journal,
    ) -> Result<()> {
        let path = folder.join(FILE_NAME);
        let (mut held, is_first) =
            projection.take().map_or_else(|| (Self::load(&path), true), |projection| (projection, false));
        let before = held.ledger.len();
        let refreshed = held.update(journal);
        let was_refolded = *refreshed.as_ref().unwrap_or(&false);
        // After a full fold, as after a compaction, the cache file no longer matches the journal.
        let grown = if was_refolded { held.ledger.len() } else { held.ledger.len().saturating_sub(before) };
        if may_write
            && (is_first || was_refolded)
            && grown >= SAVE_THRESHOLD
            && let Err(error) = held.save(&path)
        {
            tracing::debug!("the ledger could not be cached: {error}");
        }
        *projection = Some(held);
        refreshed.map(drop)
    }

    /// Loads the cache file; the projection is empty if the file is missing or damaged.
    fn load(path: &Path) -> Self {
        let Ok(bytes) = safe_open::read_in_place(path, MAX_FILE_LEN) else { return Self::default() };
        let sound = bytes.split_at_checked(33).filter(|(head, body)| {
            head.first() == Some(&FORMAT_VERSION)
                && head.get(1..) == Some(blake3::hash(body).as_bytes().as_slice())
        });
        sound.and_then(|(_, body)| postcard::from_bytes(body).ok()).unwrap_or_default()
    }

    fn save(&self, path: &Path) -> Result<()> {
        let body = postcard::to_stdvec(self)
            .map_err(|error| Error::internal("the ledger cannot be serialized").with_source(error))?;
        let bytes = [[FORMAT_VERSION].as_slice(), blake3::hash(&body).as_bytes(), &body].concat();
        AtomicFile::new(path).write_bytes(&bytes).map_err(|error| Error::io("write", path, error))
    }

    /// Returns the ledger.
    pub fn ledger(&self) -> &UsageLedger {
        &self.ledger
    }

    /// Returns the number of lines that are not valid events.
    pub fn corrupt(&self) -> usize {
        self.corrupt
    }

    /// Updates the ledger from the journal; says whether the whole journal was folded again.
    fn update(&mut self, journal: &Journal) -> Result<bool> {
        let files = journal.folders.files()?;
        let keys: HashSet<String> = files.iter().map(ToString::to_string).collect();
        if self.marks.keys().all(|name| keys.contains(name)) && self.extend(journal, &files)? {
            return Ok(false);
        }
        *self = Self::default();
        let mut events = Vec::new();
        for file in &files {
            events.extend(self.read(journal, file)?.into_iter().flatten());
        }
        self.ledger = UsageLedger::fold(events);
        Ok(true)
    }

    /// Adds appended events; `false` if the journal changed in another way.
    fn extend(&mut self, journal: &Journal, files: &[JournalFile]) -> Result<bool> {
        let mut events = Vec::new();
        for file in files {
            match self.read(journal, file)? {
                Some(read) => events.extend(read),
                None => return Ok(false),
            }
        }
        Ok(self.ledger.extend(events))
    }

    /// Reads the events appended to one file; `None` if the part that was read has changed.
    fn read(&mut self, journal: &Journal, file: &JournalFile) -> Result<Option<Vec<MemoryEvent>>> {
        let (path, name) = (journal.folders.file_path(file), file.to_string());
        let failed = |error| Error::io("read the journal", &path, error);
        let found = platform::entry_metadata(&path).map_err(failed)?;
        let stat = (found.size, found.modified.0, found.modified.1, found.changed.0, found.changed.1);
        let old = self.marks.get(&name);
        if old.is_some_and(|mark| mark.stat == stat) {
            return Ok(Some(Vec::new()));
        }
        // What was read before is not read again, except its end, which shows that the file was appended to.
        let first = old.map_or(0, |mark| mark.len.saturating_sub(TAIL_LEN as u64));
        let bytes = safe_open::read_in_place_from(&path, first, MAX_MONTH)
            .map_err(|error| safe_open::failed("read the journal", &path, error))?;
        let begin = old.map_or(0, |mark| usize::try_from(mark.len - first).unwrap_or(usize::MAX));
        let is_as_it_was = |before: &[u8]| old.is_none_or(|mark| mark.tail == tail(before));
        let appended = bytes.get(..begin).is_some_and(is_as_it_was);
        if !appended {
            return Ok(None);
        }
        // An incomplete last line is read later. A complete one without a line end is read now.
        let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1).max(begin);
        let rest = bytes.get(end..).unwrap_or_default();
        let end = if rest.is_empty() || parse_line(rest).is_none() { end } else { bytes.len() };
        let lines = bytes.get(begin..end).unwrap_or_default().split(|&byte| byte == b'\n');
        let lines: Vec<&[u8]> = lines.filter(|line| !line.trim_ascii().is_empty()).collect();
        let told = parallel::map(&lines, LINES_PER_CORE, || (), |(), line| parse_line(line));
        self.corrupt += told.iter().filter(|told| told.is_none()).count();
        let mark =
            ReadPosition { len: first + end as u64, tail: tail(bytes.get(..end).unwrap_or_default()), stat };
        self.marks.insert(name, mark);
        Ok(Some(told.into_iter().flatten().flatten().collect()))
    }
}

/// The fields of a line that records uses, which most lines do.
#[derive(Deserialize)]
struct UseLine<'a> {
    id: Cow<'a, str>,
    at: Cow<'a, str>,
    op: Cow<'a, str>,
    #[serde(default)]
    notes: Vec<NoteField<'a>>,
    // A line with one of these fields is not a plain use.
    files: Option<IgnoredAny>,
    folders: Option<IgnoredAny>,
    undoes: Option<IgnoredAny>,
    note: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct NoteField<'a> {
    id: Option<Cow<'a, str>>,
    path: Option<Cow<'a, str>>,
}

/// Parses a line of the journal; `None` if it is not an event, nor several in one line. Uses have a fast path.
fn parse_line(line: &[u8]) -> Option<Vec<MemoryEvent>> {
    let parse = |line| {
        parse_use_line(line).or_else(|| Some(memory_events(&serde_json::from_slice::<Event>(line).ok()?)))
    };
    parse(line).or_else(|| {
        let joined = Some(objects(line)).filter(|objects| objects.len() > 1)?;
        let events: Option<Vec<_>> = joined.into_iter().map(parse).collect();
        Some(events?.into_iter().flatten().collect())
    })
}

fn parse_use_line(line: &[u8]) -> Option<Vec<MemoryEvent>> {
    let used: UseLine<'_> = serde_json::from_slice(line).ok()?;
    let bare = used.files.is_none() && used.folders.is_none() && used.undoes.is_none() && used.note.is_none();
    if used.op != "use" || !bare {
        return None;
    }
    let (at, id) = (Timestamp::parse(&used.at)?.millis(), event_number(&used.id));
    let usage_event = UsageEvent { at, id, what: UsageEventKind::Use };
    let subject = |note: NoteField<'_>| {
        let own = note.id.map(|id| NoteRef::Id(id.into_owned()));
        own.or_else(|| note.path.map(|path| NoteRef::Path(path.into_owned())))
    };
    let subjects = used.notes.into_iter().filter_map(subject);
    Some(subjects.map(|subject| MemoryEvent::Usage(subject, usage_event)).collect())
}

fn tail(bytes: &[u8]) -> [u8; 32] {
    let from = bytes.len().saturating_sub(TAIL_LEN);
    *blake3::hash(bytes.get(from..).unwrap_or_default()).as_bytes()
}

/// Lists the notes of an event.
pub(super) fn subjects(event: &Event) -> Vec<NoteRef> {
    let notes = event.more.get("notes").and_then(|notes| notes.as_array());
    let subject = |note: &serde_json::Value| {
        let text = |name: &str| note.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        text("id").map(NoteRef::Id).or_else(|| text("path").map(NoteRef::Path))
    };
    notes.into_iter().flatten().filter_map(subject).collect()
}

fn tenths(event: &Event) -> u8 {
    let tenths = event.more.get("tenths").and_then(serde_json::Value::as_u64);
    tenths.and_then(|tenths| u8::try_from(tenths).ok()).unwrap_or(0)
}

/// Converts an event of the journal to the events that matter to memory.
pub(crate) fn memory_events(event: &Event) -> Vec<MemoryEvent> {
    let (at, id) = (event.at.millis(), event_number(&event.id));
    let mut found = Vec::new();
    let what = match event.op.as_str() {
        "use" => Some(UsageEventKind::Use),
        "vote" => event
            .more
            .get("useful")
            .and_then(serde_json::Value::as_bool)
            .map(|useful| UsageEventKind::Vote { useful }),
        "importance" => event.more.get("importance").and_then(serde_json::Value::as_f64).map(|importance| {
            UsageEventKind::Checkpoint {
                importance,
                tenths: tenths(event),
                idle: event.more.get("idle").and_then(serde_json::Value::as_i64).unwrap_or(0).max(0),
            }
        }),
        "promote" | "demote" => event
            .more
            .get("to")
            .and_then(|tier| tier.as_str())
            .and_then(Tier::parse)
            .map(UsageEventKind::Tier),
        "maintain" => {
            found.push(MemoryEvent::Maintained { at, id });
            None
        }
        SNAPSHOT => {
            let uses = uses_of(event);
            let usage_event = |subject: &NoteRef, &(at, id): &(i64, EventId)| {
                MemoryEvent::Usage(subject.clone(), UsageEvent { at, id, what: UsageEventKind::Use })
            };
            let subjects = subjects(event);
            found.extend(
                subjects.iter().flat_map(|subject| uses.iter().map(|used| usage_event(subject, used))),
            );
            None
        }
        "context" => {
            let text = event.more.get("text").and_then(|text| text.as_str());
            let until = event.more.get("expires_at").and_then(|until| until.as_str());
            let context = text.map(|text| WorkContext {
                text: text.to_owned(),
                expires_at: until.and_then(Timestamp::parse),
            });
            found.push(MemoryEvent::Context { at, id, context });
            None
        }
        _ => None,
    };
    if let Some(what) = what {
        let usage_event = UsageEvent { at, id, what };
        found.extend(subjects(event).into_iter().map(|subject| MemoryEvent::Usage(subject, usage_event)));
    }
    let moved = |file: &&crate::event::TouchedFile| file.to.is_some();
    let path = |place: &FileLocation| place.to_string();
    let files =
        event.files.iter().filter(moved).filter_map(|file| Some((path(&file.path), path(file.to.as_ref()?))));
    let files: Vec<_> = files.collect();
    let folders: Vec<_> =
        event.folders.iter().map(|folder| (folder.from.to_string(), folder.to.to_string())).collect();
    let is_new = |file: &&crate::event::TouchedFile| {
        file.before.is_none() && file.to.is_none() && file.after.is_some()
    };
    let made =
        event.files.iter().filter(is_new).filter(|_| event.undoes.is_none() && event.op != OP_RESTORE_BACKUP);
    let made: Vec<_> = made.map(|file| path(&file.path)).collect();
    if !(files.is_empty() && folders.is_empty() && made.is_empty()) {
        let is_seen = event.op == OP_MOVED;
        found.push(MemoryEvent::Moves { at, id, files, folders, made, is_seen });
    }
    found
}
