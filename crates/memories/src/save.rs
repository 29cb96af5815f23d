//! Saves, captures, forgets, restores, pins and archives memories, and finds duplicates.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::wording::Wording;
use sidenote_catalog::{FileRow, Filter, Inactive};
use sidenote_change::Changes;
use sidenote_change::create::{NewRequest, number_title};
use sidenote_change::delete::DeleteRequest;
use sidenote_change::edit::{EditRequest, NoteEdit};
use sidenote_change::free_names::FreeNames;
use sidenote_change::link::LinkRequest;
use sidenote_change::naming::{named_after, number, title_of};
use sidenote_change::operation::{ChangeReply, FORGET, Operation};
use sidenote_embed::{Effort, Embed};
use sidenote_index::Snapshot;
use sidenote_markdown::path::NotePath;
use sidenote_memory::capture::{MOST as MOST_CAPTURED, pick};
use sidenote_memory::duplicate::{agree, digest};
use sidenote_memory::preview::preview;
use sidenote_memory::privacy::without_private;
use sidenote_memory::recall::{key_terms, without_injected};
use sidenote_memory::state::{DEFAULT_IMPORTANCE, check_importance};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::source::{Source, body_of};
use sidenote_open_vault::sync::IndexSync;
use sidenote_query::memory_weights::{Memory, MemoryWeights};
use sidenote_query::search::hide;
use sidenote_search::Mode;
use sidenote_search::query::Query;

use crate::note_from_memory::IncomingMemory;
use crate::{Memories, MemoryWrites, Recalls};

/// The number of similar notes that are compared with a new one.
const ALIKE: usize = 20;

/// The number of notes with the same words that are compared with a text.
const SAME: usize = 50;

/// The longest text, in bytes, that is searched by all its words. A longer one is searched by its key terms.
const SHORT: usize = 1000;

/// The difference that titles can make between the similarity of two passages and that of their texts (docs/dev/memory.md, Near
/// duplicates).
const TITLED: f32 = 0.4;

/// The `source` of captured memories.
const CAPTURED: &str = "auto-capture";

/// A memory to save.
#[derive(Debug, Clone, Default)]
pub struct SaveRequest {
    /// The text.
    pub text: String,
    /// The title. Without it, the first heading of the text or its first words.
    pub title: Option<String>,
    /// The type. Without it, the words of the text determine it.
    pub kind: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// The importance, from 1 to 10.
    pub importance: Option<f64>,
    /// The source of the memory.
    pub source: Option<String>,
    /// The session of the memory.
    pub session: Option<String>,
    /// Whether the memory is saved even if another note has exactly the same text.
    pub allow_duplicate: bool,
}

/// A note with nearly the same text as a new one.
#[derive(Debug, Clone, Serialize)]
pub struct NearDuplicate {
    /// The id of the note.
    pub id: String,
    /// The path of the note.
    pub path: String,
    /// The title of the note.
    pub title: String,
    /// The similarity of the two texts: 0 for unrelated ones, 1 for the same.
    pub cosine: f32,
}

/// The result of saving a memory.
#[derive(Debug, Clone, Serialize)]
pub struct SaveReply {
    /// The memory; `None` after a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The beginning of the text.
    pub preview: String,
    /// A note with nearly the same text, which the memory links to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<NearDuplicate>,
    /// The number of secrets that were removed from the text.
    #[serde(skip_serializing_if = "is_zero")]
    pub redacted: usize,
    /// The change.
    pub change: ChangeReply,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The notes with the same or nearly the same text, and the generation of the index in which they were found.
pub(crate) struct Comparison {
    /// The note with exactly the same text.
    pub(crate) same: Option<FileRow>,
    /// The note with nearly the same text.
    pub(crate) near: Option<NearDuplicate>,
    generation: i64,
}

impl Comparison {
    /// Returns the comparison of an empty text.
    pub(crate) fn none() -> Self {
        Self { same: None, near: None, generation: i64::MIN }
    }

    /// Returns whether there is a note with the same or nearly the same text.
    pub(crate) fn is_known(&self) -> bool {
        self.same.is_some() || self.near.is_some()
    }

    /// Returns an error if there is a note with the same text, unless duplicates are allowed. `what` is the word for a
    /// note.
    pub(super) fn refuse(&self, is_allowed: bool, what: &str) -> Result<()> {
        let Some(same) = self.same.as_ref().filter(|_| !is_allowed) else { return Ok(()) };
        Err(Error::new(
            ErrorKind::Exists,
            format!("{} has exactly the same text ({what} {})", same.path, same.note_id),
        )
        .with_hint(
            Wording::new("change that note, or allow the duplicate (--allow-duplicate)", "change that note")
                .with_tool("write_note", "write_note takes allow_duplicate: true"),
        ))
    }
}

/// A text that others are compared with by the model of one state of the index.
struct NearText<'a> {
    snapshot: &'a Snapshot,
    text: &'a str,
    /// Its vector, once the first text is compared.
    vector: OnceCell<Vec<f32>>,
}

impl NearText<'_> {
    /// Returns the similarity of a text without its title, or `None` without a model.
    fn similarity(&self, other: &str) -> Result<Option<f32>> {
        let Some(model) = &self.snapshot.model else { return Ok(None) };
        let vector = match self.vector.get() {
            Some(vector) => vector,
            None => {
                let vector = vector_of(&**model, self.text)?;
                self.vector.get_or_init(|| vector)
            }
        };
        Ok(Some(self.snapshot.vectors.similarity(vector, &vector_of(&**model, other)?)))
    }
}

/// Returns the vector of a text as a passage.
fn vector_of(model: &dyn Embed, text: &str) -> Result<Vec<f32>> {
    let vector = model.embed(&[text], Effort::Foreground)?.pop();
    vector.ok_or_else(|| Error::internal("the embedder returned no vector"))
}

impl MemoryWrites<'_> {
    /// Saves a memory as a note in the folder of memories. Private passages and secrets are removed from its text.
    ///
    /// # Errors
    /// `Exists` if another note has exactly the same text; `Invalid` for an empty text or an importance out of range.
    #[tracing::instrument(skip_all)]
    pub fn save_memory(&self, request: &SaveRequest, dry_run: bool) -> Result<SaveReply> {
        let mut text = request.text.clone();
        let cleaned = self.core.clean(&mut text);
        let redacted = cleaned.keys;
        let text = text.trim().to_owned();
        let preview = preview(&text);
        if text.is_empty() {
            return Err(Error::invalid("there is no text to keep")
                .with_hint("give the text, or - for standard input"));
        }
        check_importance(request.importance)?;
        IndexSync::of(self.core).refresh()?;
        // The comparison runs before the write lock is taken, because it may embed the text. It runs again under the
        // lock if the index changed.
        let mut comparison = self.compare(&text)?;
        comparison.refuse(request.allow_duplicate, "memory")?;
        let folder = self.core.config.memory.folder.trim_matches('/').to_owned();
        let kind = match &request.kind {
            Some(kind) => kind.clone(),
            None => MemoryWeights::of(self.core).kinds().classify(&text).to_owned(),
        };
        let session = request.session.clone().or_else(|| self.core.session.clone());
        let mut properties: Vec<(String, Value)> = Vec::new();
        properties.extend(request.importance.map(|importance| ("importance".to_owned(), number(importance))));
        properties.extend(session.map(|session| ("session".to_owned(), Value::from(session))));
        properties.extend(request.source.clone().map(|source| ("source".to_owned(), Value::from(source))));
        let title = request
            .title
            .clone()
            .map_or_else(|| named_after(&text), |title| without_private(&title).into_owned());
        if request.title.is_some() && title == title_of(&text) {
            // The title is written even if the file name is the same, so that it stays when the text changes.
            properties.insert(0, ("title".to_owned(), Value::from(title.clone())));
        }
        let new = NewRequest {
            title,
            content: text.clone(),
            folder: Some(folder),
            note_type: Some(kind),
            tags: request.tags.clone(),
            properties,
            identified: true,
            ..NewRequest::default()
        };
        let prepare = |view: &View<'_>, operation: &mut Operation| {
            self.update_comparison(&mut comparison, &text)?;
            comparison.refuse(request.allow_duplicate, "memory")?;
            match operation {
                Operation::New(new) => number_title(&self.core.vault, view, new),
                _ => Ok(()),
            }
        };
        let mut change = Changes::of(self.core).change_prepared(&Operation::New(new), dry_run, prepare)?;
        let near = comparison.near;
        change.notices.extend(cleaned.notices());
        let made = change.made().ok_or_else(|| Error::internal("the new note has no path"))?;
        if dry_run {
            return Ok(SaveReply { memory: None, preview, near, redacted, change });
        }
        if let Some(near) = &near {
            let link = LinkRequest { a: made.clone(), b: near.path.clone(), text: None };
            match Changes::of(self.core).change(&Operation::Link(link), false) {
                Ok(linked) => change.notices.extend(linked.notices),
                Err(error) => {
                    change.notices.push(format!("the new note cannot be linked to {}: {error}", near.path))
                }
            }
        }
        Ok(SaveReply {
            memory: Some(Memories::of(self.core).memory_of_reply(&change, &made)?),
            preview,
            near,
            redacted,
            change,
        })
    }

    /// Saves the best parts of an agent's answer as memories, at most three in a session. Parts that were recalled for
    /// the answer, or that a note has already, are left out. Returns the saved memories.
    ///
    /// # Errors
    /// `Conflict` if another process holds the write lock; `Io` if the notes cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn capture(&self, text: &str, session: &str) -> Result<Vec<Memory>> {
        let text = without_private(text).into_owned();
        let mut session = session.to_owned();
        self.core.clean(&mut session);
        let session = session.as_str();
        let parts = pick(&without_injected(&text));
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        IndexSync::of(self.core).refresh()?;
        let mut room = MOST_CAPTURED.saturating_sub(self.captured_count(session)?);
        let now = self.core.clock.now();
        let mut parts_left: Vec<(String, Comparison)> = Vec::new();
        for part in parts {
            if room == 0 {
                break;
            }
            let mut content = part.text.trim().to_owned();
            self.core.clean(&mut content);
            let comparison = self.compare(&content)?;
            if comparison.is_known() {
                continue;
            }
            parts_left.push((content, comparison));
            room -= 1;
        }
        if parts_left.is_empty() {
            return Ok(Vec::new());
        }
        let mut made: Vec<(NotePath, Vec<u8>)> = Vec::new();
        let plan = |_: Option<&_>| {
            let view = View::new(self.core)?;
            let mut names = FreeNames::without_captures(&self.core.vault, &view);
            for (content, mut comparison) in parts_left {
                self.update_comparison(&mut comparison, &content)?;
                if !comparison.is_known() {
                    made.push(self.captured(content, session, &mut names, now)?);
                }
            }
            self.plan_notes(&view, "capture", &made)
        };
        let change = Changes::of(self.core).apply_planned(plan, false)?;
        made.iter().map(|(path, _)| Memories::of(self.core).memory_of_reply(&change, path.as_str())).collect()
    }

    /// Makes the note of a captured part of an answer.
    fn captured(
        &self,
        content: String,
        session: &str,
        names: &mut FreeNames<'_>,
        now: Timestamp,
    ) -> Result<(NotePath, Vec<u8>)> {
        let properties = [("session", session), ("source", CAPTURED)].into_iter();
        let properties = properties.filter(|(_, value)| !value.is_empty());
        let memory = IncomingMemory {
            content,
            importance: Some(DEFAULT_IMPORTANCE),
            properties: properties.map(|(name, value)| (name.to_owned(), Value::from(value))).collect(),
            ..IncomingMemory::default()
        };
        self.new_note(memory, names, now)
    }

    /// Counts the captured memories of a session.
    fn captured_count(&self, session: &str) -> Result<usize> {
        let mut count = 0;
        if !session.is_empty() {
            self.core.index.catalog().properties().each(|_, map| {
                let says = |name: &str, value: &str| map.get(name).and_then(Value::as_str) == Some(value);
                count += usize::from(says("source", CAPTURED) && says("session", session));
            })?;
        }
        Ok(count)
    }

    /// Finds an active note with exactly the same text after redaction, other than the note with the id `except`.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    pub(super) fn duplicate_of(&self, text: &str, except: Option<&str>) -> Result<Option<Memory>> {
        let mut text = text.to_owned();
        self.core.clean(&mut text);
        let wanted = digest(&text);
        let words = if text.len() > SHORT { key_terms(&text).join(" ") } else { String::new() };
        let query = Query::plain(if words.is_empty() { &text } else { &words });
        let live = hide(
            &Recalls::of(self.core).scoped(Filter::default()),
            Inactive { archived: true, forgotten: false },
        );
        let found = Recalls::of(self.core).candidates(&query, Some(Mode::Bm25), live, SAME)?.found;
        let mut rows: Vec<FileRow> = found.into_iter().map(|hit| hit.row).collect();
        rows = Lookup::of(self.core).with_unindexed(rows, |source| digest(source.body()) == wanted)?;
        for row in rows {
            let is_other = except.is_none_or(|except| row.note_id != except);
            let is_live =
                !row.inactive.forgotten && !row.excluded && Recalls::of(self.core).is_in_scope(&row);
            if is_other
                && is_live
                && self.core.read_bytes(&row.path).is_ok_and(|bytes| digest(&body_of(&bytes)) == wanted)
            {
                return Ok(MemoryWeights::of(self.core).weigh(vec![row], self.core.clock.now())?.pop());
            }
        }
        Ok(None)
    }

    /// Compares a text with the notes that are most similar to it.
    pub(crate) fn compare(&self, text: &str) -> Result<Comparison> {
        let generation = self.core.index.generation()?;
        let words = key_terms(text).join(" ");
        let query = Query::plain(if words.is_empty() { text } else { &words }).with_prompt(text);
        let snapshot = self.core.index.snapshot()?;
        let near_text = NearText { snapshot: &snapshot, text, vector: OnceCell::new() };
        let threshold = snapshot.model.as_ref().map_or(1.0, |embedder| embedder.duplicate_threshold());
        let (wanted, mut near) = (digest(text), None);
        let live = hide(&Filter::default(), Inactive { archived: true, forgotten: false });
        let mut found = Vec::new();
        for hit in Recalls::of(self.core).candidates(&query, None, live, ALIKE)?.found {
            // The titles in the vectors of passages make them less similar, but only to this degree.
            let is_far = hit.components.cosine.is_some_and(|cosine| cosine < threshold - TITLED);
            found.push((hit.row, is_far));
        }
        if !Lookup::of(self.core).unindexed_files().is_empty() {
            // Of the notes that differ from the index, only those with about the same words are compared by meaning.
            let far: HashMap<NotePath, bool> =
                found.iter().map(|(row, is_far)| (row.path.clone(), *is_far)).collect();
            let rows = found.into_iter().map(|(row, _)| row).collect();
            let answers = |source: &Source| digest(source.body()) == wanted || agree(source.body(), text);
            let mut rows = Lookup::of(self.core).with_unindexed(rows, answers)?;
            rows.retain(|row| !row.inactive.forgotten && !row.excluded);
            let is_far = |row: &FileRow| far.get(&row.path).copied().unwrap_or(false);
            found = rows.into_iter().map(|row| (is_far(&row), row)).map(|(far, row)| (row, far)).collect();
        }
        for (row, is_far) in found {
            let Ok(bytes) = self.core.read_bytes(&row.path) else { continue };
            let body = body_of(&bytes);
            if digest(&body) == wanted {
                return Ok(Comparison { same: Some(row), near: None, generation });
            }
            if near.is_none()
                && !is_far
                && agree(&body, text)
                && let Some(cosine) = near_text.similarity(&body)?.filter(|cosine| *cosine >= threshold)
            {
                near = Some(NearDuplicate {
                    id: row.note_id.clone(),
                    path: row.path.to_string(),
                    title: row.title.clone(),
                    cosine,
                });
            }
        }
        Ok(Comparison { same: None, near, generation })
    }

    /// Repeats a comparison if the index changed since. Called under the write lock, when the files that differ from
    /// the index are known.
    pub(super) fn update_comparison(&self, comparison: &mut Comparison, text: &str) -> Result<()> {
        if self.core.index.generation()? != comparison.generation
            || !Lookup::of(self.core).unindexed_files().is_empty()
        {
            *comparison = self.compare(text)?;
        }
        Ok(())
    }

    /// Edits a property of a memory. The journal has the operation under `name`, such as `forget`.
    fn edit_property(
        &self,
        name: &str,
        memory: &Memory,
        edit: NoteEdit,
        dry_run: bool,
    ) -> Result<ChangeReply> {
        let request = EditRequest { note: memory.path.clone(), edit, expect: None };
        Changes::of(self.core).change_as(name, &Operation::Edit(request), dry_run)
    }

    /// Takes a memory out of search and recall. With `hard`, moves it to the trash.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it, or if the memory is forgotten already.
    #[tracing::instrument(skip_all)]
    pub fn forget(&self, name: &str, hard: bool, dry_run: bool) -> Result<ChangeReply> {
        let memory = Memories::of(self.core).memory(name)?;
        if hard {
            let request = DeleteRequest { note: memory.path, ..DeleteRequest::default() };
            return Changes::of(self.core).change(&Operation::Delete(request), dry_run);
        }
        if memory.state.forgotten {
            return Err(Error::new(ErrorKind::Exists, format!("{} is forgotten already", memory.path))
                .with_hint("it can be moved to the trash or restored"));
        }
        self.edit_property(FORGET, &memory, NoteEdit::Set("forgotten".to_owned(), Value::Bool(true)), dry_run)
    }

    /// Restores a memory that was forgotten, archived or moved to the trash.
    ///
    /// # Errors
    /// `NotFound` if no note has the name, and no file of the trash; `Exists` if several notes have it; `Invalid` if
    /// the memory is neither forgotten nor archived.
    #[tracing::instrument(skip_all)]
    pub fn restore_memory(&self, name: &str, dry_run: bool) -> Result<ChangeReply> {
        let memory = match Memories::of(self.core).memory(name) {
            Ok(memory) => memory,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let restored = Changes::of(self.core).change(&Operation::Restore(name.to_owned()), dry_run);
                // If it is not in the trash either, the first error is the helpful one.
                return restored.map_err(|refusal| match refusal.kind() {
                    ErrorKind::NotFound => error,
                    _ => refusal,
                });
            }
            Err(error) => return Err(error),
        };
        let key = match () {
            () if memory.state.forgotten => "forgotten",
            () if memory.said.archived => "tier",
            () => {
                return Err(Error::invalid(format!("{} is not forgotten", memory.path)).with_hint(
                    Wording::new("`sidenote memory list --forgotten` shows what is", "").with_tool(
                        "search_notes",
                        "search_notes with include: [\"forgotten\"] shows what is",
                    ),
                ));
            }
        };
        self.edit_property("restore", &memory, NoteEdit::Unset(key.to_owned()), dry_run)
    }

    /// Pins a memory: it does not fade, has at least the tier WARM, and is no longer archived.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it, or if the memory is pinned already.
    #[tracing::instrument(skip_all)]
    pub fn pin(&self, name: &str, dry_run: bool) -> Result<ChangeReply> {
        let memory = Memories::of(self.core).memory(name)?;
        if memory.state.pinned {
            return Err(Error::new(ErrorKind::Exists, format!("{} is pinned already", memory.path)));
        }
        let mut pinned = self.edit_property(
            "pin",
            &memory,
            NoteEdit::Set("pinned".to_owned(), Value::Bool(true)),
            dry_run,
        )?;
        if memory.said.archived && !dry_run {
            let unset = self.edit_property("pin", &memory, NoteEdit::Unset("tier".to_owned()), false)?;
            pinned.notices.extend(unset.notices);
            pinned.rows = unset.rows;
        }
        Ok(pinned)
    }

    /// Unpins a memory.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it, or if the memory is not pinned.
    #[tracing::instrument(skip_all)]
    pub fn unpin(&self, name: &str, dry_run: bool) -> Result<ChangeReply> {
        let memory = Memories::of(self.core).memory(name)?;
        if !memory.state.pinned {
            return Err(Error::new(ErrorKind::Exists, format!("{} is not pinned", memory.path)));
        }
        self.edit_property("unpin", &memory, NoteEdit::Unset("pinned".to_owned()), dry_run)
    }

    /// Archives a memory.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it, or if the memory is archived already.
    #[tracing::instrument(skip_all)]
    pub fn archive(&self, name: &str, dry_run: bool) -> Result<ChangeReply> {
        let memory = Memories::of(self.core).memory(name)?;
        if memory.said.archived {
            return Err(Error::new(ErrorKind::Exists, format!("{} is archived already", memory.path)));
        }
        self.edit_property(
            "archive",
            &memory,
            NoteEdit::Set("tier".to_owned(), Value::from("archive")),
            dry_run,
        )
    }
}
