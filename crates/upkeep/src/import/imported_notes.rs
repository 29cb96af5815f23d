//! Decides what becomes of each note of an import: it is new, it has grown, it is as it was, or a person has edited it.
//!
//! The property `source` says of what a note was made, and `source_hash` is the hash of the text that the import wrote. A
//! note whose text has another hash was edited, and is left.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{FileId, Filter};
use sidenote_change::free_names::FreeNames;
use sidenote_change::naming::{UNNAMED, file_name};
use sidenote_change::properties::with_properties;
use sidenote_markdown::edit::{ChangeSet, ContentHash, Edit, FileChange, single_edit};
use sidenote_markdown::frontmatter;
use sidenote_markdown::frontmatter::edit::set;
use sidenote_markdown::name_rules::NameRules;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::span::Span;
use sidenote_memory::duplicate::digest;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::redaction::Cleaned;

use super::export_files::ReadCount;
use crate::Upkeep;

/// The property that says of what a note was made.
const SOURCE: &str = "source";
/// The property with the hash of the text that the import wrote.
const SOURCE_HASH: &str = "source_hash";
/// The digits of that hash that are kept. 64 bits do not agree by accident, and nobody gains by making them agree.
const HASH_DIGITS: usize = 16;
/// The properties that an import sets again when the text of a note has changed. Others may be a person's.
const RENEWED: [&str; 3] = ["updated_at", "model", SOURCE_HASH];
/// The longest id of a conversation, document or memory, in bytes. It is usually a UUID.
const MAX_ID: usize = 300;

/// A program whose export becomes notes that know where they came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteSource {
    /// The conversations of ChatGPT.
    ChatGpt,
    /// The conversations, projects and memories of Claude.
    Claude,
    /// The memory files and sessions of Claude Code.
    ClaudeCode,
    /// The memories of Mem0 or OpenMemory.
    Mem0,
    /// The concepts of a bundle in the Open Knowledge Format.
    Okf,
}

impl NoteSource {
    /// All sources.
    pub const ALL: [Self; 5] = [Self::ChatGpt, Self::Claude, Self::ClaudeCode, Self::Mem0, Self::Okf];

    /// Returns the name, with which the property `source` begins.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChatGpt => "chatgpt",
            Self::Claude => "claude",
            Self::ClaudeCode => "claude-code",
            Self::Mem0 => "mem0",
            Self::Okf => "okf",
        }
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// What an import of notes is asked to do.
#[derive(Debug, Clone, Default)]
pub struct NotesImportRequest {
    /// The folder of the new notes, in place of that of the source.
    pub into: Option<String>,
    /// Whether what was said in sessions of a coding agent is imported in short.
    pub sessions: bool,
    /// Whether nothing is written.
    pub dry_run: bool,
}

/// The result of an import of notes, or of a dry run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct NotesImportReply {
    /// The number of conversations, documents and memories that were read.
    pub total: usize,
    /// The paths of the new notes.
    pub imported: Vec<String>,
    /// The paths of the notes that got what is new.
    pub updated: Vec<String>,
    /// The number of those whose notes are as they were.
    pub unchanged: usize,
    /// The paths of the notes that a person edited and that are left, though the export has something new.
    pub edited: Vec<String>,
    /// What is not imported, and how often.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, usize>,
    /// The number of secrets that were removed.
    pub redacted: usize,
    /// Notices for the caller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A note as the export has it.
#[derive(Debug, Default)]
pub(super) struct ImportedNote {
    /// What it is made of, without the name of the program.
    pub(super) id: String,
    /// The folder of the new note.
    pub(super) folder: String,
    /// The title, of which the name of the file is made; `None` if `stem` is the name and there is no title.
    pub(super) title: Option<String>,
    /// The name of the file, if the title is not to give it.
    pub(super) stem: Option<String>,
    /// The frontmatter that it has, with its delimiters.
    pub(super) frontmatter: String,
    /// More properties, in order.
    pub(super) properties: Vec<(&'static str, Value)>,
    /// The text.
    pub(super) body: String,
}

impl ImportedNote {
    /// Adds the property of a time, if it is known.
    pub(super) fn add_time(&mut self, name: &'static str, time: Option<Timestamp>) {
        self.properties.extend(time.map(|time| (name, Value::from(time.exact_rfc3339()))));
    }
}

/// A note of the vault that an import made.
#[derive(Debug, Clone)]
struct KnownNote {
    path: NotePath,
    hash: Option<String>,
}

/// Collects the notes of an import in one plan.
pub(super) struct NoteImport<'a> {
    upkeep: &'a Upkeep<'a>,
    source: NoteSource,
    names: FreeNames<'a>,
    known: HashMap<String, KnownNote>,
    seen: HashSet<String>,
    plan: ChangeSet,
    cleaned: Cleaned,
    pub(super) request: &'a NotesImportRequest,
    pub(super) reply: NotesImportReply,
    told: &'a dyn Fn(u64, u64),
}

impl<'a> NoteImport<'a> {
    /// Begins an import.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the notes of earlier imports cannot be listed.
    pub(super) fn begin(
        upkeep: &'a Upkeep<'a>,
        view: &'a View<'a>,
        source: NoteSource,
        request: &'a NotesImportRequest,
        told: &'a dyn Fn(u64, u64),
    ) -> Result<Self> {
        Ok(Self {
            upkeep,
            source,
            names: FreeNames::without_captures(&upkeep.core.vault, view),
            known: notes_from(upkeep, source)?,
            seen: HashSet::new(),
            plan: ChangeSet::new("import"),
            cleaned: Cleaned::default(),
            request,
            reply: NotesImportReply::default(),
            told,
        })
    }

    /// Returns the plan, and the reply to the import.
    pub(super) fn finish(self) -> (ChangeSet, NotesImportReply) {
        let Self { plan, cleaned, mut reply, .. } = self;
        reply.redacted = cleaned.keys;
        reply.notices.extend(cleaned.notices());
        (plan, reply)
    }
}

impl NoteImport<'_> {
    /// Returns the folder of new notes.
    pub(super) fn folder(&self, usual: &str) -> String {
        self.request.into.as_deref().unwrap_or(usual).trim_matches('/').to_owned()
    }

    /// Returns the folder of memories.
    pub(super) fn memory_folder(&self) -> String {
        self.upkeep.core.config.memory.folder.trim_matches('/').to_owned()
    }

    /// Returns the open vault.
    pub(super) fn upkeep(&self) -> &Upkeep<'_> {
        self.upkeep
    }

    /// Says how much was read.
    pub(super) fn tell(&self, count: &ReadCount, total: u64) {
        (self.told)(count.total().min(total), total);
    }

    /// Counts what is not imported.
    pub(super) fn leave_out(&mut self, what: impl Into<String>, count: usize) {
        if count > 0 {
            *self.reply.left_out.entry(what.into()).or_default() += count;
        }
    }

    /// Takes a note of the export into the plan, and returns the path of the note; `None` if it was taken before.
    ///
    /// # Errors
    /// `Invalid` if it has no id, or cannot be written; `Io` or `Invalid` if the note that was made of it cannot be read.
    pub(super) fn take(&mut self, mut note: ImportedNote) -> Result<Option<NotePath>> {
        if note.id.trim().is_empty() || note.id.len() > MAX_ID || note.id.contains(char::is_control) {
            return Err(Error::invalid(format!("{:?} is no id", one_of(&note.id))));
        }
        let source = format!("{}:{}", self.source.name(), note.id);
        if !self.seen.insert(source.clone()) {
            self.leave_out("the same a second time", 1);
            return Ok(None);
        }
        self.clean(&mut note);
        let hash = hash_of(&note.body);
        self.reply.total += 1;
        match self.known.get(&source).cloned() {
            Some(known) => {
                self.renew(&known, &note, &hash)?;
                Ok(Some(known.path))
            }
            None => self.create(note, source, hash).map(Some),
        }
    }

    fn create(&mut self, note: ImportedNote, source: String, hash: String) -> Result<NotePath> {
        let ImportedNote { folder, title, stem, frontmatter, properties, mut body, .. } = note;
        let names = [stem.as_deref(), title.as_deref(), Some(UNNAMED)].into_iter().flatten();
        let fits = |name: &String| NameRules::default().check(&format!("{name}.md")).is_ok();
        let name = names.filter_map(|name| file_name(name).ok()).find(fits);
        let path = self.names.take(&folder, name.as_deref().unwrap_or(UNNAMED))?;
        let mut all: Vec<(String, Value)> = Vec::new();
        all.extend(title.map(|title| ("title".to_owned(), Value::from(title))));
        all.extend(properties.into_iter().map(|(name, value)| (name.to_owned(), value)));
        all.push((SOURCE.to_owned(), Value::from(source)));
        all.push((SOURCE_HASH.to_owned(), Value::from(hash)));
        let mut text = match with_properties(frontmatter.clone(), &path, all.clone()) {
            Ok(text) => text,
            // The block of another program may be one that cannot be edited; it becomes a part of the text.
            Err(_) if !frontmatter.is_empty() => {
                body = format!("{frontmatter}{body}");
                all.retain(|(name, _)| name != SOURCE_HASH);
                all.push((SOURCE_HASH.to_owned(), Value::from(hash_of(&body))));
                with_properties(String::new(), &path, all)?
            }
            Err(error) => return Err(error),
        };
        text.push_str(&body);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.reply.imported.push(path.to_string());
        self.plan.files.push(FileChange::create(path.clone(), text.into_bytes()));
        Ok(path)
    }

    /// Adds to a note what is new, unless a person edited it.
    fn renew(&mut self, known: &KnownNote, note: &ImportedNote, hash: &str) -> Result<()> {
        if known.hash.as_deref() == Some(hash) {
            self.reply.unchanged += 1;
            return Ok(());
        }
        let bytes = self.upkeep.core.read_bytes(&known.path)?;
        let edits = std::str::from_utf8(&bytes).ok().and_then(|text| renewal(text, known, note, hash));
        let Some(edits) = edits else {
            self.reply.edited.push(known.path.to_string());
            return Ok(());
        };
        self.reply.updated.push(known.path.to_string());
        self.plan.files.push(FileChange::edit(known.path.clone(), ContentHash::of(&bytes), edits));
        Ok(())
    }

    /// Removes private passages and secrets, and characters that no note can have.
    fn clean(&mut self, note: &mut ImportedNote) {
        let core = self.upkeep.core;
        for text in note.title.iter_mut().chain([&mut note.body, &mut note.frontmatter]) {
            if text.contains('\0') {
                text.retain(|c| c != '\0');
            }
            self.cleaned += core.clean(text);
        }
        for (_, value) in &mut note.properties {
            self.cleaned += core.clean_value(value);
        }
    }
}

/// Returns the edits by which a note gets a new text; `None` if its text is not the one that the import wrote.
fn renewal(text: &str, known: &KnownNote, note: &ImportedNote, hash: &str) -> Option<Vec<Edit>> {
    let start = frontmatter::read(text).1;
    let old = text.get(start..)?;
    if known.hash.as_deref() != Some(hash_of(old).as_str()) {
        return None;
    }
    let mut edits = Vec::new();
    let hash = Value::from(hash);
    let properties = note.properties.iter().map(|(name, value)| (*name, value)).chain([(SOURCE_HASH, &hash)]);
    for (name, value) in properties.filter(|(name, _)| RENEWED.contains(name)) {
        edits.extend(set(text, name, value).ok()?);
    }
    let new = format!("{}\n", note.body.trim_end());
    let same = old.trim_end().len();
    edits.extend(match new.strip_prefix(old.trim_end()) {
        Some(rest) => Some(Edit::replace(Span::new(start + same, text.len()), rest)),
        None => single_edit(old, &new).map(|edit| Edit {
            span: Span::new(start + edit.span.start, start + edit.span.end),
            text: edit.text,
        }),
    });
    Some(edits)
}

/// Returns the hash by which the text of an import is recognised. Line ends and blank lines around do not count.
fn hash_of(text: &str) -> String {
    let mut hash = digest(text);
    hash.truncate(HASH_DIGITS);
    hash
}

/// Returns the beginning of a text for a message.
fn one_of(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Returns the notes that imports of a program have made, by what they were made of.
fn notes_from(upkeep: &Upkeep<'_>, source: NoteSource) -> Result<HashMap<String, KnownNote>> {
    let prefix = format!("{}:", source.name());
    let of = |properties: &Map<String, Value>| {
        let text = |name: &str| properties.get(name).and_then(Value::as_str).map(str::to_owned);
        let source = text(SOURCE).filter(|source| source.starts_with(&prefix))?;
        Some((source, text(SOURCE_HASH)))
    };
    let catalog = upkeep.core.index.catalog();
    let mut by_file: HashMap<FileId, (String, Option<String>)> = HashMap::new();
    catalog.properties().each(|id, properties| by_file.extend(of(&properties).map(|found| (id, found))))?;
    for (id, properties) in catalog.properties().of_hidden()? {
        by_file.extend(of(&properties).map(|found| (id, found)));
    }
    // Notes that differ from the index are included.
    let rows = Lookup::of(upkeep.core).with_unindexed(catalog.select(&Filter::default())?, |_| true)?;
    let mut known = HashMap::new();
    for row in rows {
        let found = match &row.unindexed {
            Some(details) => of(&details.properties),
            None => by_file.remove(&row.id),
        };
        if let Some((source, hash)) = found {
            known.entry(source).or_insert(KnownNote { path: row.path, hash });
        }
    }
    Ok(known)
}
