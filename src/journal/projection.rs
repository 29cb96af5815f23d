//! Owns the ledger's upkeep: folded from the journal once, kept beside the index, and extended by what is appended.
//!
//! The kept ledger is a cache: where it is missing, damaged, or the journal is not what it was made of, all is folded
//! again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::journal::compaction::{SNAPSHOT, uses_of};
use crate::journal::{BROUGHT_BACK, Event, Journal, MAX_MONTH, MOVED};
use crate::memory::recall::Context;
use crate::memory::state::Tier;
use crate::memory::usage::{Deed, DeedId, Happening, Ledger, Subject, What};
use crate::parallel;
use crate::safe_open;
use crate::text::edit::Place;

/// The name of the kept ledger, in the index folder.
const NAME: &str = "ledger";
/// How many bytes it may have.
const MAX_KEPT: u64 = 1 << 31;
/// It is kept again where so much came to it since.
const KEEP: usize = 500;
/// Changes where the form of the kept ledger does.
const FORM: u8 = 3;
/// So many lines are worth a core of their own.
const LINES: usize = 2000;
/// So many bytes before the end of what was read must be as they were.
const TAIL: usize = 4096;

/// How far a file of the journal was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    /// To here, which is behind a line's end.
    len: u64,
    /// The hash of what stands before it.
    tail: [u8; 32],
    /// Size and times of the file then.
    stat: (u64, i64, i64, i64, i64),
}

/// The ledger of a journal, and how far that was read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Book {
    ledger: Ledger,
    marks: BTreeMap<String, Mark>,
    corrupt: usize,
}

impl Book {
    /// Brings a book in line with the journal. Where there is none yet, it begins with the one that is kept in `folder`,
    /// and leaves a better one there for the next process, unless that folder is to be read only (`keeps`).
    ///
    /// # Errors
    /// `Io` where the journal cannot be read.
    pub fn renew(book: &mut Option<Self>, folder: &Path, keeps: bool, journal: &Journal) -> Result<()> {
        let path = folder.join(NAME);
        let (mut held, is_first) =
            book.take().map_or_else(|| (Self::load(&path), true), |book| (book, false));
        let before = held.ledger.len();
        let refreshed = held.refresh(journal);
        let is_anew = *refreshed.as_ref().unwrap_or(&false);
        // What was kept does not go with the journal any more where all was folded anew, as after a compaction.
        let grown = if is_anew { held.ledger.len() } else { held.ledger.len().saturating_sub(before) };
        if keeps
            && (is_first || is_anew)
            && grown >= KEEP
            && let Err(error) = held.keep(&path)
        {
            tracing::debug!("the ledger is not kept: {error}");
        }
        *book = Some(held);
        refreshed.map(drop)
    }

    /// Takes what was kept; an empty book where there is nothing, or nothing sound.
    fn load(path: &Path) -> Self {
        let Ok(bytes) = safe_open::read_in_place(path, MAX_KEPT) else { return Self::default() };
        let sound = bytes.split_at_checked(33).filter(|(head, body)| {
            head.first() == Some(&FORM) && head.get(1..) == Some(blake3::hash(body).as_bytes().as_slice())
        });
        sound.and_then(|(_, body)| postcard::from_bytes(body).ok()).unwrap_or_default()
    }

    fn keep(&self, path: &Path) -> Result<()> {
        let body = postcard::to_stdvec(self)
            .map_err(|error| Error::internal("the ledger cannot be written down").with_source(error))?;
        let bytes = [[FORM].as_slice(), blake3::hash(&body).as_bytes(), &body].concat();
        // Two processes may keep theirs at once.
        let fresh = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = safe_open::create(&fresh).and_then(|mut file| file.write_all(&bytes));
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
        let written = written.and_then(|()| std::fs::rename(&fresh, path));
        written.map_err(|error| Error::io("write", path, error))
    }

    /// Gives what the journal tells of every note.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Counts lines of the journal that were no events.
    pub fn corrupt(&self) -> usize {
        self.corrupt
    }

    /// Brings the ledger in line with the journal; says whether all was folded anew.
    fn refresh(&mut self, journal: &Journal) -> Result<bool> {
        let months = journal.months()?;
        if self.marks.keys().all(|name| months.contains(name)) && self.extend(journal, &months)? {
            return Ok(false);
        }
        *self = Self::default();
        let mut happenings = Vec::new();
        for name in &months {
            happenings.extend(self.read(journal, name)?.into_iter().flatten());
        }
        self.ledger = Ledger::fold(happenings);
        Ok(true)
    }

    /// Takes what was appended; `false` where more than that happened.
    fn extend(&mut self, journal: &Journal, months: &[String]) -> Result<bool> {
        let mut happenings = Vec::new();
        for name in months {
            match self.read(journal, name)? {
                Some(read) => happenings.extend(read),
                None => return Ok(false),
            }
        }
        Ok(self.ledger.extend(happenings))
    }

    /// Reads what came to one file of the journal since; `None` where it is not the one that was read.
    fn read(&mut self, journal: &Journal, name: &str) -> Result<Option<Vec<Happening>>> {
        let path = journal.records.join(name);
        let failed = |error| Error::io("read the journal", &path, error);
        let found = std::fs::symlink_metadata(&path).map_err(failed)?;
        let stat = (found.len(), found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
        let old = self.marks.get(name);
        if old.is_some_and(|mark| mark.stat == stat) {
            return Ok(Some(Vec::new()));
        }
        let bytes = safe_open::read_in_place(&path, MAX_MONTH)
            .map_err(|error| safe_open::failed("read the journal", &path, error))?;
        let begin = old.map_or(0, |mark| usize::try_from(mark.len).unwrap_or(usize::MAX));
        let is_as_it_was = |before: &[u8]| old.is_none_or(|mark| mark.tail == tail(before));
        let appended = bytes.get(..begin).is_some_and(is_as_it_was);
        if !appended {
            return Ok(None);
        }
        // A line that is being written this moment is read when it is whole, be it without its end.
        let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1).max(begin);
        let rest = bytes.get(end..).unwrap_or_default();
        let end = if rest.is_empty() || tell(rest).is_none() { end } else { bytes.len() };
        let lines = bytes.get(begin..end).unwrap_or_default().split(|&byte| byte == b'\n');
        let lines: Vec<&[u8]> = lines.filter(|line| !line.trim_ascii().is_empty()).collect();
        let told = parallel::each(&lines, LINES, || (), |(), line| tell(line));
        self.corrupt += told.iter().filter(|told| told.is_none()).count();
        let mark = Mark { len: end as u64, tail: tail(bytes.get(..end).unwrap_or_default()), stat };
        self.marks.insert(name.to_owned(), mark);
        Ok(Some(told.into_iter().flatten().flatten().collect()))
    }
}

/// What most lines say: which notes were used.
#[derive(Deserialize)]
struct Used<'a> {
    id: Cow<'a, str>,
    at: Cow<'a, str>,
    op: Cow<'a, str>,
    #[serde(default)]
    notes: Vec<Named<'a>>,
    // Nothing of this belongs to a use.
    files: Option<IgnoredAny>,
    folders: Option<IgnoredAny>,
    undoes: Option<IgnoredAny>,
    note: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Named<'a> {
    id: Option<Cow<'a, str>>,
    path: Option<Cow<'a, str>>,
}

/// Reads a line of the journal; nothing where it is no event. Uses, which most lines are, take a short way.
fn tell(line: &[u8]) -> Option<Vec<Happening>> {
    quick(line).or_else(|| Some(happenings(&serde_json::from_slice::<Event>(line).ok()?)))
}

fn quick(line: &[u8]) -> Option<Vec<Happening>> {
    let used: Used<'_> = serde_json::from_slice(line).ok()?;
    let bare = used.files.is_none() && used.folders.is_none() && used.undoes.is_none() && used.note.is_none();
    if used.op != "use" || !bare {
        return None;
    }
    let (at, id) = (Timestamp::parse(&used.at)?.millis(), number(&used.id));
    let deed = Deed { at, id, what: What::Use };
    let subject = |note: Named<'_>| {
        let own = note.id.map(|id| Subject::Id(id.into_owned()));
        own.or_else(|| note.path.map(|path| Subject::Path(path.into_owned())))
    };
    let subjects = used.notes.into_iter().filter_map(subject);
    Some(subjects.map(|subject| Happening::Deed(subject, deed)).collect())
}

fn tail(bytes: &[u8]) -> [u8; 32] {
    let from = bytes.len().saturating_sub(TAIL);
    *blake3::hash(bytes.get(from..).unwrap_or_default()).as_bytes()
}

/// Gives the number that an event's name stands for.
pub(super) fn number(id: &str) -> DeedId {
    uuid::Uuid::parse_str(id).map_or_else(
        |_| {
            let hash = blake3::hash(id.as_bytes());
            let (half, _) = hash.as_bytes().split_at(16);
            half.try_into().map_or(0, DeedId::from_be_bytes)
        },
        |id| id.as_u128(),
    )
}

/// Lists the notes that an event names.
pub(super) fn subjects(event: &Event) -> Vec<Subject> {
    let notes = event.more.get("notes").and_then(|notes| notes.as_array());
    let subject = |note: &serde_json::Value| {
        let text = |name: &str| note.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        text("id").map(Subject::Id).or_else(|| text("path").map(Subject::Path))
    };
    notes.into_iter().flatten().filter_map(subject).collect()
}

fn tenths(event: &Event) -> u8 {
    let tenths = event.more.get("tenths").and_then(serde_json::Value::as_u64);
    tenths.and_then(|tenths| u8::try_from(tenths).ok()).unwrap_or(0)
}

/// Says what an event means for the weight of notes.
pub fn happenings(event: &Event) -> Vec<Happening> {
    let (at, id) = (event.at.millis(), number(&event.id));
    let mut found = Vec::new();
    let what = match event.op.as_str() {
        "use" => Some(What::Use),
        "vote" => {
            event.more.get("useful").and_then(serde_json::Value::as_bool).map(|useful| What::Vote { useful })
        }
        "importance" => event
            .more
            .get("importance")
            .and_then(serde_json::Value::as_f64)
            .map(|importance| What::Checkpoint { importance, tenths: tenths(event) }),
        "promote" | "demote" => {
            event.more.get("to").and_then(|tier| tier.as_str()).and_then(Tier::parse).map(What::Tier)
        }
        "maintain" => {
            found.push(Happening::Maintained { at, id });
            None
        }
        SNAPSHOT => {
            let uses = uses_of(event);
            let deed = |subject: &Subject, &(at, id): &(i64, DeedId)| {
                Happening::Deed(subject.clone(), Deed { at, id, what: What::Use })
            };
            let subjects = subjects(event);
            found.extend(subjects.iter().flat_map(|subject| uses.iter().map(|used| deed(subject, used))));
            None
        }
        "context" => {
            let text = event.more.get("text").and_then(|text| text.as_str());
            let until = event.more.get("expires_at").and_then(|until| until.as_str());
            let context = text
                .map(|text| Context { text: text.to_owned(), expires_at: until.and_then(Timestamp::parse) });
            found.push(Happening::Context { at, id, context });
            None
        }
        _ => None,
    };
    if let Some(what) = what {
        let deed = Deed { at, id, what };
        found.extend(subjects(event).into_iter().map(|subject| Happening::Deed(subject, deed)));
    }
    let moved = |file: &&crate::journal::Touched| file.to.is_some();
    let path = |place: &Place| place.to_string();
    let files =
        event.files.iter().filter(moved).filter_map(|file| Some((path(&file.path), path(file.to.as_ref()?))));
    let files: Vec<_> = files.collect();
    let folders: Vec<_> =
        event.folders.iter().map(|folder| (folder.from.to_string(), folder.to.to_string())).collect();
    let is_new =
        |file: &&crate::journal::Touched| file.before.is_none() && file.to.is_none() && file.after.is_some();
    let made =
        event.files.iter().filter(is_new).filter(|_| event.undoes.is_none() && event.op != BROUGHT_BACK);
    let made: Vec<_> = made.map(|file| path(&file.path)).collect();
    if !(files.is_empty() && folders.is_empty() && made.is_empty()) {
        let is_seen = event.op == MOVED;
        found.push(Happening::Moves { at, id, files, folders, made, is_seen });
    }
    found
}
