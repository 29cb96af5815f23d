//! Sessions of a coding agent, which are searched beside the memories. What they say is kept in
//! `.sidenote/local/conversations/`, in this working copy alone, and never in a note.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};
use sidenote_config::expand_home;
use sidenote_language::terms::{CachedStemmer, TermKind, is_stop_word, terms};
use sidenote_memory::recall::without_injected;
use sidenote_open_vault::Core;
use sidenote_vault::STATE_DIR;
use sidenote_vault::dir::Dir;
use sidenote_vault::write_lock::{create_local_dir, local_folder};

use crate::scope::is_uuid;
use crate::transcript::{Message, Speaker, each_message};

/// The folder in the local folder of the vault.
const FOLDER: &str = "conversations";
/// What the name of the file of a session ends with.
const EXTENSION: &str = ".session";
/// The most bytes of all sessions that are kept. Each search reads them, in less than a second.
const MAX_TOTAL: u64 = 32 << 20;
/// The most bytes of the messages of one session: a book. Its last messages are kept.
const MAX_SESSION: usize = 1 << 20;
/// The most bytes of one message: some pages. What follows is left out.
const MAX_MESSAGE: usize = 16 << 10;
/// The most bytes of the line that tells about a session.
const MAX_HEADER: u64 = 64 << 10;
/// The depth of the folders in which sessions are looked for: an agent has one for each project.
const DEPTH: usize = 3;
/// The most files that are looked at, so that a wrong folder does not take an hour.
const MAX_FILES: usize = 20_000;
/// The usual parameters of BM25: how soon a repeated word says nothing new.
const K1: f64 = 1.2;
/// And how much less a word is worth in a long message.
const B: f64 = 0.75;

/// A session that is indexed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationSession {
    /// The id, which is the name of its transcript.
    pub id: String,
    /// The folder in which the agent worked, or the name of the folder of the transcript.
    pub project: String,
    /// The branch at the end.
    pub branch: Option<String>,
    /// The path of the transcript.
    path: PathBuf,
    /// When the transcript was written, in milliseconds.
    modified: i64,
    /// The number of messages that are searched.
    pub messages: usize,
    first_at: i64,
    last_at: i64,
    indexed_at: i64,
}

impl ConversationSession {
    /// Returns the times of the first and the last message.
    pub fn period(&self) -> (Timestamp, Timestamp) {
        (Timestamp::from_millis(self.first_at), Timestamp::from_millis(self.last_at))
    }

    /// Returns when it was indexed.
    pub fn indexed(&self) -> Timestamp {
        Timestamp::from_millis(self.indexed_at)
    }
}

/// A message as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct KeptMessage {
    role: String,
    at: i64,
    text: String,
}

/// What indexing did.
#[derive(Debug, Default)]
pub struct IndexedConversations {
    /// The number of sessions that were read.
    pub indexed: usize,
    /// The number of sessions that are as they were.
    pub skipped: usize,
    /// What could not be indexed, and why.
    pub errors: Vec<String>,
}

/// A search in conversations.
#[derive(Debug, Clone, Default)]
pub struct ConversationRequest {
    /// What to look for, in words.
    pub query: String,
    /// Only what was said in this session.
    pub session: Option<String>,
    /// Only what one of both said.
    pub speaker: Option<Speaker>,
    /// Only what was said at these times or later.
    pub after: Vec<Timestamp>,
    /// Only what was said before these times.
    pub before: Vec<Timestamp>,
    /// At most this many messages.
    pub limit: usize,
}

/// A message that was found.
#[derive(Debug, Clone)]
pub struct ConversationHit {
    /// An id of the message, which is the same at each search.
    pub id: String,
    /// Its session.
    pub session: ConversationSession,
    /// Its number in the session, from 0.
    pub index: usize,
    /// Who said it.
    pub speaker: Speaker,
    /// When.
    pub at: Timestamp,
    /// The text.
    pub text: String,
}

/// A transcript that was found.
struct TranscriptFile {
    path: PathBuf,
    id: String,
    modified: i64,
}

/// The sessions that are kept.
#[derive(Default)]
struct KeptSessions {
    /// Each by its id, with the size of its file.
    sessions: HashMap<String, (ConversationSession, u64)>,
    /// The size of all files.
    total: u64,
}

/// Indexes and searches the sessions of a coding agent.
#[derive(Debug, Clone, Copy)]
pub struct Conversations<'a> {
    core: &'a Core,
}

impl<'a> Conversations<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

impl Conversations<'_> {
    /// Returns the folder of sessions in the settings.
    ///
    /// # Errors
    /// `Invalid` if there is none, or if the caller is an agent that a rule limits, or a person who logged in: a conversation
    /// quotes notes, and says what is in none.
    pub fn folder(&self) -> Result<&Path> {
        let folder = &self.core.config.memory.conversations;
        if folder.as_os_str().is_empty() {
            return Err(Error::invalid("Conversation history indexing is not enabled").with_hints(
                "set memory.conversations in your own settings to the folder of the sessions, such as ~/.claude/projects",
                "ask the user to set memory.conversations in their own settings to the folder of the sessions, such as \
                 ~/.claude/projects",
            ));
        }
        let is_person = self.core.origin.as_ref().is_some_and(|origin| origin.caller.is_some());
        if self.core.agent.is_some() || is_person {
            return Err(Error::invalid(
                "Conversation history is not given to an agent that a rule limits, or to people who log in",
            ));
        }
        Ok(folder)
    }

    /// Indexes the sessions in the folder of the settings, or in a folder in it, that changed since they were indexed. Those
    /// that were not written after `since` are left alone.
    ///
    /// # Errors
    /// `Invalid` if the folder is not in that of the settings, and as [`Conversations::folder`]; `Io` if it cannot be listed,
    /// or the index cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn index(&self, path: Option<&str>, since: Option<Timestamp>) -> Result<IndexedConversations> {
        let given = self.folder()?;
        let outside = |path: &Path| {
            Error::invalid(format!("{} is no folder in that of memory.conversations", path.display()))
                .with_hint("leave path out, or name a folder in it")
        };
        let base = platform::canonicalize(given).map_err(|error| Error::io("read", given, error))?;
        let from = match path.map(|path| expand_home(Path::new(path))) {
            None => base.clone(),
            Some(path) => platform::canonicalize(&path)
                .ok()
                .filter(|place| place.starts_with(&base))
                .ok_or_else(|| outside(&path))?,
        };
        let mut files = transcripts_in(&from)?;
        files.retain(|file| since.is_none_or(|since| file.modified > since.millis()));
        // The newest are kept if there is not enough room for all.
        files.sort_by(|one, other| other.modified.cmp(&one.modified).then(one.id.cmp(&other.id)));
        let KeptSessions { sessions: known, mut total } = self.known()?;
        let mut done = IndexedConversations::default();
        let mut seen = HashSet::new();
        for file in files {
            self.core.check_cancelled()?;
            if !seen.insert(file.id.clone()) {
                continue;
            }
            let old = known.get(&file.id);
            if old.is_some_and(|(session, _)| session.modified >= file.modified && session.path == file.path)
            {
                done.skipped += 1;
                continue;
            }
            let room = MAX_TOTAL.saturating_sub(total - old.map_or(0, |(_, size)| *size));
            match self.keep(&file, room) {
                Ok((_, size)) => {
                    total = total - old.map_or(0, |(_, size)| *size) + size;
                    done.indexed += 1;
                }
                Err(error) => done.errors.push(format!("{}: {error}", file.id)),
            }
        }
        Ok(done)
    }

    /// Reads a session that is indexed again, and returns the number of its messages.
    ///
    /// # Errors
    /// `NotFound` if it is not indexed; `Io` if its transcript cannot be read; and as [`Conversations::folder`].
    pub fn index_again(&self, id: &str) -> Result<usize> {
        let given = self.folder()?;
        let absent = || Error::not_found("Session not found in index state");
        let KeptSessions { mut sessions, total } = self.known()?;
        let (session, size) = sessions.remove(id.trim()).ok_or_else(absent)?;
        let base = platform::canonicalize(given).map_err(|error| Error::io("read", given, error))?;
        let path = platform::canonicalize(&session.path).ok().filter(|path| path.starts_with(&base));
        let path = path.ok_or_else(|| Error::not_found("its transcript is not there any more"))?;
        let modified = modified_of(&path).map_err(|error| Error::io("read", &path, error))?;
        let file = TranscriptFile { path, id: session.id, modified };
        Ok(self.keep(&file, MAX_TOTAL.saturating_sub(total - size))?.0)
    }

    /// Lists the sessions that are indexed, those first that were indexed last.
    ///
    /// # Errors
    /// As [`Conversations::folder`]; `Io` if the index cannot be read.
    pub fn sessions(&self) -> Result<Vec<ConversationSession>> {
        self.folder()?;
        let mut sessions: Vec<ConversationSession> =
            self.known()?.sessions.into_values().map(|(session, _)| session).collect();
        sessions.sort_by(|one, other| {
            (other.indexed_at, other.last_at, &one.id).cmp(&(one.indexed_at, one.last_at, &other.id))
        });
        Ok(sessions)
    }

    /// Finds the messages that have at least half of the words of a query, the best first.
    ///
    /// # Errors
    /// As [`Conversations::folder`]; `Io` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn search(&self, request: &ConversationRequest) -> Result<Vec<ConversationHit>> {
        self.folder()?;
        let mut stemmer = CachedStemmer::default();
        let wanted = wanted_stems(&request.query, &mut stemmer);
        let (mut found, mut frequencies) = (Vec::new(), vec![0_usize; wanted.len()]);
        let (mut messages, mut words) = (0_usize, 0_usize);
        let Some(folder) = self.open()? else { return Ok(Vec::new()) };
        for name in session_names(&folder).map_err(|error| self.failed("list", error))? {
            self.core.check_cancelled()?;
            if request.session.as_deref().is_some_and(|id| name.strip_suffix(EXTENSION) != Some(id.trim())) {
                continue;
            }
            let bytes = match folder.read_at_most(&name, MAX_TOTAL) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(self.failed("read", error)),
            };
            let Some((session, kept)) = parsed(&bytes) else { continue };
            for (index, message) in kept.into_iter().enumerate() {
                let Some(speaker) = Speaker::parse(&message.role) else { continue };
                let at = Timestamp::from_millis(message.at);
                let is_in_time = request.after.iter().all(|from| at >= *from)
                    && request.before.iter().all(|until| at < *until);
                if !is_in_time || request.speaker.is_some_and(|only| only != speaker) {
                    continue;
                }
                let (counts, length) = counted(&message.text, &wanted, &mut stemmer);
                messages += 1;
                words += length;
                for (frequency, count) in frequencies.iter_mut().zip(&counts) {
                    *frequency += usize::from(*count > 0);
                }
                let has = counts.iter().filter(|count| **count > 0).count();
                if has > 0 && has >= wanted.len().div_ceil(2) {
                    let id = id_of(&session.id, index);
                    let (session, text) = (session.clone(), message.text);
                    let hit = ConversationHit { id, session, index, speaker, at, text };
                    found.push((hit, counts, length));
                }
            }
        }
        let mean = words as f64 / messages.max(1) as f64;
        let score = |counts: &[usize], length: usize| -> f64 {
            let of_word = |(count, frequency): (&usize, &usize)| {
                let rarity =
                    (1.0 + (messages as f64 - *frequency as f64 + 0.5) / (*frequency as f64 + 0.5)).ln();
                let count = *count as f64;
                rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length as f64 / mean.max(1.0)))
            };
            counts.iter().zip(&frequencies).map(of_word).sum()
        };
        let mut scored: Vec<(f64, ConversationHit)> =
            found.into_iter().map(|(hit, counts, length)| (score(&counts, length), hit)).collect();
        scored.sort_by(|(one, a), (other, b)| {
            other.total_cmp(one).then(b.at.cmp(&a.at)).then_with(|| a.id.cmp(&b.id))
        });
        scored.truncate(request.limit);
        Ok(scored.into_iter().map(|(_, hit)| hit).collect())
    }

    /// Opens the folder of what is kept without following a symbolic link; `None` if there is none.
    fn open(&self) -> Result<Option<Dir>> {
        match safe_open::folder(self.core.vault.root(), &Path::new(STATE_DIR).join("local").join(FOLDER)) {
            Ok(folder) => Ok(Some(folder.into())),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(error) => Err(safe_open::failed("open", &self.place(), error)),
        }
    }

    fn place(&self) -> PathBuf {
        local_folder(&self.core.vault).join(FOLDER)
    }

    fn failed(&self, doing: &str, error: io::Error) -> Error {
        safe_open::failed(doing, &self.place(), error)
    }

    /// Reads what is known of each session.
    fn known(&self) -> Result<KeptSessions> {
        let mut known = KeptSessions::default();
        let Some(folder) = self.open()? else { return Ok(known) };
        for name in session_names(&folder).map_err(|error| self.failed("list", error))? {
            let Ok(file) = folder.file(&name) else { continue };
            let size = file.metadata().map_err(|error| self.failed("read", error))?.len();
            known.total += size;
            let mut line = Vec::new();
            BufReader::new(file.take(MAX_HEADER))
                .read_until(b'\n', &mut line)
                .map_err(|error| self.failed("read", error))?;
            // What another version or a crash left is written anew.
            if let Ok(session) = serde_json::from_slice::<ConversationSession>(&line) {
                known.sessions.insert(session.id.clone(), (session, size));
            }
        }
        Ok(known)
    }

    /// Keeps what is said in a session, if there is room for it. Returns the number of its messages, and their size.
    fn keep(&self, file: &TranscriptFile, room: u64) -> Result<(usize, u64)> {
        let mut messages = Vec::new();
        each_message(&file.path, |message| messages.push(message))?;
        let last = |of: fn(&Message) -> Option<&String>| messages.iter().rev().find_map(of).cloned();
        let above = file.path.parent().and_then(Path::file_name);
        let project = last(|message| message.folder.as_ref())
            .unwrap_or_else(|| above.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
        let branch = last(|message| message.branch.as_ref());
        let mut kept: Vec<KeptMessage> =
            messages.into_iter().filter_map(|message| self.kept(message, file.modified)).collect();
        let mut size = 0;
        let is_kept = |message: &&KeptMessage| {
            size += message.text.len();
            size <= MAX_SESSION
        };
        let first = kept.len() - kept.iter().rev().take_while(is_kept).count();
        kept.drain(..first);
        let at = |message: Option<&KeptMessage>| message.map_or(file.modified, |message| message.at);
        let session = ConversationSession {
            id: file.id.clone(),
            project,
            branch,
            path: file.path.clone(),
            modified: file.modified,
            messages: kept.len(),
            first_at: at(kept.first()),
            last_at: at(kept.last()),
            indexed_at: self.core.clock.now().millis(),
        };
        let mut bytes = line_of(&session)?;
        for message in &kept {
            bytes.extend(line_of(message)?);
        }
        if bytes.len() as u64 > room {
            return Err(Error::invalid(format!(
                "left out, because {} MiB of conversations are kept already",
                MAX_TOTAL >> 20
            )));
        }
        self.write(&format!("{}{EXTENSION}", file.id), &bytes)?;
        Ok((kept.len(), bytes.len() as u64))
    }

    /// Returns a message as it is kept: without secrets, private passages and what was recalled into it. `None` if nothing is
    /// left.
    fn kept(&self, message: Message, modified: i64) -> Option<KeptMessage> {
        if message.is_sidechain {
            return None;
        }
        let mut text = without_injected(&message.text);
        self.core.clean(&mut text);
        let mut text = text.trim().to_owned();
        text.truncate(text.floor_char_boundary(MAX_MESSAGE));
        let at = message.at.map_or(modified, Timestamp::millis);
        (!text.is_empty()).then(|| KeptMessage { role: message.speaker.name().to_owned(), at, text })
    }

    /// Replaces the file of a session.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let local = create_local_dir(&self.core.vault, &local_folder(&self.core.vault))?;
        // Two processes can write the same session.
        let new = format!("{name}.{}.new", std::process::id());
        let write = || {
            let folder = local.open_or_create_dir(FOLDER)?;
            if folder.entry(&new)?.is_some() {
                folder.remove(&new)?;
            }
            folder.create(&new, 0o600)?.write_all(bytes)?;
            folder.rename_replace(&new, &folder, name)
        };
        write().map_err(|error| Error::io("write", self.place().join(name), error))
    }
}

/// Finds the transcripts in a folder: files that are named by the id of their session. Symbolic links are not followed.
fn transcripts_in(from: &Path) -> Result<Vec<TranscriptFile>> {
    let (mut files, mut looked) = (Vec::new(), 0);
    let mut folders = vec![(from.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| Error::io("list", &folder, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| Error::io("list", &folder, error))?;
            looked += 1;
            if looked > MAX_FILES {
                return Err(Error::invalid(format!("{} has more than {MAX_FILES} files", from.display()))
                    .with_hint("name a folder of one project"));
            }
            let kind = entry.file_type().map_err(|error| Error::io("read", entry.path(), error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() && depth < DEPTH && name != "subagents" {
                folders.push((entry.path(), depth + 1));
            }
            let id = name.strip_suffix(".jsonl").filter(|id| kind.is_file() && is_uuid(id));
            if let Some(id) = id {
                let path = entry.path();
                let modified = modified_of(&path).map_err(|error| Error::io("read", &path, error))?;
                files.push(TranscriptFile { path, id: id.to_lowercase(), modified });
            }
        }
    }
    Ok(files)
}

fn modified_of(path: &Path) -> io::Result<i64> {
    let modified = std::fs::symlink_metadata(path)?.modified()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Lists the names of the files of sessions, in order.
fn session_names(folder: &Dir) -> io::Result<Vec<String>> {
    let names = folder.names()?.into_iter().filter_map(|name| name.into_string().ok());
    let mut names: Vec<String> =
        names.filter(|name| name.strip_suffix(EXTENSION).is_some_and(is_uuid)).collect();
    names.sort_unstable();
    Ok(names)
}

fn line_of(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)
        .map_err(|error| Error::internal("a conversation cannot be written as JSON").with_source(error))?;
    line.push(b'\n');
    Ok(line)
}

/// Reads the file of a session. `None` if another version wrote it.
fn parsed(bytes: &[u8]) -> Option<(ConversationSession, Vec<KeptMessage>)> {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let session = serde_json::from_slice(lines.next()?).ok()?;
    Some((session, lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()))
}

/// Returns the distinct stems of a query, without words that say nothing, if others are left.
fn wanted_stems(query: &str, stemmer: &mut CachedStemmer) -> Vec<String> {
    let all: Vec<String> = terms(query)
        .into_iter()
        .filter(|term| !matches!(term.kind, TermKind::Part | TermKind::LastCharacter))
        .map(|term| term.text)
        .collect();
    let telling: Vec<&String> = all.iter().filter(|term| !is_stop_word(term)).collect();
    let taken = if telling.is_empty() { all.iter().collect() } else { telling };
    let mut stems: Vec<String> = Vec::new();
    for term in taken {
        let stem = stemmer.of(term).to_owned();
        if !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    stems
}

/// Counts how often a text has each of some stems, and its words.
fn counted(text: &str, wanted: &[String], stemmer: &mut CachedStemmer) -> (Vec<usize>, usize) {
    let (mut counts, mut length) = (vec![0; wanted.len()], 0);
    for term in terms(text) {
        length += 1;
        let stem = stemmer.of(&term.text);
        if let Some(count) = wanted.iter().position(|own| own == stem).and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
    (counts, length)
}

/// Returns the id of a message.
fn id_of(session: &str, index: usize) -> String {
    /// The digits of a hash that tell messages apart.
    const DIGITS: usize = 32;
    let hash = blake3::hash(format!("{session}:{index}").as_bytes()).to_hex();
    hash.get(..DIGITS).unwrap_or_default().to_owned()
}
