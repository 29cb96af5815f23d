//! Saves, captures, forgets, restores, pins and archives memories, and finds near duplicates.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::index::catalog::{FileRow, Filter, Inactive};
use crate::index::embed::Embed;
use crate::memory::capture::{MOST as MOST_CAPTURED, pick};
use crate::memory::duplicate::{agree, digest};
use crate::memory::preview::preview;
use crate::memory::privacy::without_private;
use crate::memory::recall::{key_terms, without_injected};
use crate::memory::state::{DEFAULT_IMPORTANCE, check_importance};
use crate::search::Mode;
use crate::search::query::Query;
use crate::store::catalog_overlay::View;
use crate::store::change::Changes;
use crate::store::change::create::{NewRequest, number_title};
use crate::store::change::delete::DeleteRequest;
use crate::store::change::edit::{EditRequest, NoteEdit};
use crate::store::change::free_names::FreeNames;
use crate::store::change::link::LinkRequest;
use crate::store::change::naming::{named_after, number, title_of};
use crate::store::change::operation::{ChangeReply, Operation};
use crate::store::lookup::Lookup;
use crate::store::memory::note_from_memory::Incoming;
use crate::store::memory::{Memories, MemoryWrites, Recalls};
use crate::store::memory_weights::{Memory, MemoryWeights};
use crate::store::query::search::hide;
use crate::store::source::{Source, body_of};
use crate::store::sync::IndexSync;
use crate::text::path::NotePath;
use crate::wording::Wording;

/// So many notes that are like a new one are compared with it.
const ALIKE: usize = 20;

/// So many notes with the same words as a text are compared with it.
const SAME: usize = 50;

/// Of a text longer than this, in bytes, the key terms alone are looked for.
const SHORT: usize = 1000;

/// So much lower than that of their texts may be the cosine of notes with titles of their own.
const TITLED: f32 = 0.35;

/// The source of what was captured.
const CAPTURED: &str = "auto-capture";

/// A memory that is to be kept.
#[derive(Debug, Clone, Default)]
pub struct SaveRequest {
    /// Its text.
    pub text: String,
    /// Its title; else its first heading, or its first words.
    pub title: Option<String>,
    /// Its type; else what its words tell.
    pub kind: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// 1 to 10.
    pub importance: Option<f64>,
    /// Where it comes from.
    pub source: Option<String>,
    /// The session that it comes from.
    pub session: Option<String>,
    /// Whether it is kept although another note says exactly the same.
    pub allow_duplicate: bool,
}

/// A note that says nearly the same as a new one.
#[derive(Debug, Clone, Serialize)]
pub struct NearDuplicate {
    /// Its id.
    pub id: String,
    /// Its path.
    pub path: String,
    /// Its title.
    pub title: String,
    /// How alike the model finds them.
    pub cosine: f32,
}

/// What became of a memory.
#[derive(Debug, Clone, Serialize)]
pub struct SaveReply {
    /// The memory; nothing after a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// How its text begins.
    pub preview: String,
    /// The note that says nearly the same, which is linked to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<NearDuplicate>,
    /// How many keys were taken out of the text.
    #[serde(skip_serializing_if = "is_zero")]
    pub redacted: usize,
    /// What changed, or would.
    pub change: ChangeReply,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What other notes say of a text, and in which batch of the index that was found.
pub(in crate::store) struct Comparison {
    /// The note that says exactly the same.
    pub(in crate::store) same: Option<FileRow>,
    /// The note that says nearly the same.
    pub(in crate::store) near: Option<NearDuplicate>,
    generation: i64,
}

impl Comparison {
    /// The comparison of a text that says nothing.
    pub(in crate::store) fn none() -> Self {
        Self { same: None, near: None, generation: i64::MIN }
    }

    /// Says whether a note says the same, or nearly so.
    pub(in crate::store) fn is_known(&self) -> bool {
        self.same.is_some() || self.near.is_some()
    }

    /// Refuses what a note says already, unless that is allowed; `what` is the word for a note.
    pub(super) fn refuse(&self, is_allowed: bool, what: &str) -> Result<()> {
        let Some(same) = self.same.as_ref().filter(|_| !is_allowed) else { return Ok(()) };
        Err(Error::new(
            ErrorKind::Exists,
            format!("{} says exactly the same ({what} {})", same.path, same.note_id),
        )
        .with_hint(
            Wording::new("change that note, or allow the duplicate (--allow-duplicate)", "change that note")
                .with_tool("write_note", "write_note takes allow_duplicate: true"),
        ))
    }
}

impl MemoryWrites<'_> {
    /// Keeps a memory as a note in the folder of memories. What is private in its text goes, and so does what looks like
    /// a key.
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
        // Looked up first, so that no model is asked under the lock; and there again, if anything changed meanwhile.
        let mut alike = self.alike(&text)?;
        alike.refuse(request.allow_duplicate, "memory")?;
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
            // Said although the file says it: this title stays when the text changes.
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
        let prepare = |operation: &mut Operation| {
            self.renew(&mut alike, &text)?;
            alike.refuse(request.allow_duplicate, "memory")?;
            match operation {
                Operation::New(new) => number_title(&self.core.vault, new),
                _ => Ok(()),
            }
        };
        let mut change = Changes::of(self.core).change_prepared(&Operation::New(new), dry_run, prepare)?;
        let near = alike.near;
        change.notices.extend(cleaned.notices());
        let made = change.made().ok_or_else(|| Error::internal("a new note has no place"))?;
        if dry_run {
            return Ok(SaveReply { memory: None, preview, near, redacted, change });
        }
        if let Some(near) = &near {
            let link = LinkRequest { a: made.clone(), b: near.path.clone(), text: None };
            match Changes::of(self.core).change(&Operation::Link(link), false) {
                Ok(linked) => change.notices.extend(linked.notices),
                Err(error) => change.notices.push(format!("it is not linked to {}: {error}", near.path)),
            }
        }
        Ok(SaveReply {
            memory: Some(Memories::of(self.core).written_memory(&change, &made)?),
            preview,
            near,
            redacted,
            change,
        })
    }

    /// Keeps the best parts of what an agent said, three of one conversation at most, each as a memory of its own. What
    /// was recalled for it is not kept again, nor what a note says already. Gives what was kept.
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
        let mut room = MOST_CAPTURED.saturating_sub(self.captured_in(session)?);
        let now = self.core.clock.now();
        let mut parts_left: Vec<(String, Comparison)> = Vec::new();
        for part in parts {
            if room == 0 {
                break;
            }
            let mut content = part.text.trim().to_owned();
            self.core.clean(&mut content);
            let alike = self.alike(&content)?;
            if alike.is_known() {
                continue;
            }
            parts_left.push((content, alike));
            room -= 1;
        }
        if parts_left.is_empty() {
            return Ok(Vec::new());
        }
        let mut made: Vec<(NotePath, Vec<u8>)> = Vec::new();
        let plan = |_: Option<&_>| {
            let view = View::new(self.core)?;
            let mut names = FreeNames::new(&self.core.vault);
            for (content, mut alike) in parts_left {
                self.renew(&mut alike, &content)?;
                if !alike.is_known() {
                    made.push(self.captured(content, session, &mut names, now)?);
                }
            }
            self.plan_notes(&view, "capture", &made)
        };
        let change = Changes::of(self.core).carry_out(plan, false)?;
        made.iter().map(|(path, _)| Memories::of(self.core).written_memory(&change, path.as_str())).collect()
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
        let memory = Incoming {
            content,
            importance: Some(DEFAULT_IMPORTANCE),
            properties: properties.map(|(name, value)| (name.to_owned(), Value::from(value))).collect(),
            ..Incoming::default()
        };
        self.note_of(memory, names, now)
    }

    /// Counts what was captured in a session.
    fn captured_in(&self, session: &str) -> Result<usize> {
        let mut count = 0;
        if !session.is_empty() {
            self.core.index.catalog().properties().each(|_, map| {
                let says = |name: &str, value: &str| map.get(name).and_then(Value::as_str) == Some(value);
                count += usize::from(says("source", CAPTURED) && says("session", session));
            })?;
        }
        Ok(count)
    }

    /// Finds a live note, other than that of an id, that says exactly the same as a text once that is cleaned.
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

    /// Finds the note that says exactly the same as a text, and the one that says nearly so.
    pub(in crate::store) fn alike(&self, text: &str) -> Result<Comparison> {
        let generation = self.core.index.generation()?;
        let words = key_terms(text).join(" ");
        let query = Query {
            text_to_embed: text.to_owned(),
            ..Query::plain(if words.is_empty() { text } else { &words })
        };
        let model = self.core.index.snapshot()?.model.clone();
        let threshold = model.as_ref().map_or(1.0, |embedder| embedder.duplicate_threshold());
        let (wanted, mut near) = (digest(text), None);
        let live = hide(&Filter::default(), Inactive { archived: true, forgotten: false });
        let mut found = Vec::new();
        for hit in Recalls::of(self.core).candidates(&query, None, live, ALIKE)?.found {
            // The vectors of passages have titles in them, which take them apart, but not so far.
            let is_far = hit.components.cosine.is_some_and(|cosine| cosine < threshold - TITLED);
            found.push((hit.row, is_far));
        }
        if !Lookup::of(self.core).unindexed_files().is_empty() {
            // Of what the index has not seen, only what says about the same is worth a closer look.
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
                && let Some(cosine) =
                    self.likeness(model.as_ref(), &body, text)?.filter(|cosine| *cosine >= threshold)
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

    /// Compares a text again where something changed since it was compared. Asked under the write lock, when the index is
    /// in line with the files, or what it has not seen is known.
    pub(super) fn renew(&self, comparison: &mut Comparison, text: &str) -> Result<()> {
        if self.core.index.generation()? != comparison.generation
            || !Lookup::of(self.core).unindexed_files().is_empty()
        {
            *comparison = self.alike(text)?;
        }
        Ok(())
    }

    /// Gives the cosine of two texts, whatever their titles; nothing without a model.
    fn likeness(&self, model: Option<&Arc<dyn Embed>>, one: &str, other: &str) -> Result<Option<f32>> {
        let (Some(one), Some(other)) =
            (self.core.query_vector(model, one)?, self.core.query_vector(model, other)?)
        else {
            return Ok(None);
        };
        Ok(Some(one.iter().zip(other.iter()).map(|(one, other)| one * other).sum()))
    }

    pub(in crate::store) fn say(
        &self,
        memory: &Memory,
        edit: NoteEdit,
        dry_run: bool,
    ) -> Result<ChangeReply> {
        Changes::of(self.core)
            .change(&Operation::Edit(EditRequest { note: memory.path.clone(), edit, expect: None }), dry_run)
    }

    /// Takes a memory out of search and recall; `hard` moves it to the trash.
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
                .with_hint("it can be moved to the trash, or brought back"));
        }
        self.say(&memory, NoteEdit::Set("forgotten".to_owned(), Value::Bool(true)), dry_run)
    }

    /// Brings back what was forgotten, archived or moved to the trash.
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
                // Where the trash does not hold it either, the name is what is wrong.
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
        self.say(&memory, NoteEdit::Unset(key.to_owned()), dry_run)
    }

    /// Pins a memory: it does not fade, and is warm at least, which also ends its being archived.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it, or if the memory is pinned already.
    #[tracing::instrument(skip_all)]
    pub fn pin(&self, name: &str, dry_run: bool) -> Result<ChangeReply> {
        let memory = Memories::of(self.core).memory(name)?;
        if memory.state.pinned {
            return Err(Error::new(ErrorKind::Exists, format!("{} is pinned already", memory.path)));
        }
        let mut pinned = self.say(&memory, NoteEdit::Set("pinned".to_owned(), Value::Bool(true)), dry_run)?;
        if memory.said.archived && !dry_run {
            let unset = self.say(&memory, NoteEdit::Unset("tier".to_owned()), false)?;
            pinned.notices.extend(unset.notices);
            pinned.rows = unset.rows;
        }
        Ok(pinned)
    }

    /// Ends the pinning of a memory.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it, or if the memory is not pinned.
    #[tracing::instrument(skip_all)]
    pub fn unpin(&self, name: &str, dry_run: bool) -> Result<ChangeReply> {
        let memory = Memories::of(self.core).memory(name)?;
        if !memory.state.pinned {
            return Err(Error::new(ErrorKind::Exists, format!("{} is not pinned", memory.path)));
        }
        self.say(&memory, NoteEdit::Unset("pinned".to_owned()), dry_run)
    }

    /// Puts a memory into the archive.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it, or if the memory is archived already.
    #[tracing::instrument(skip_all)]
    pub fn archive(&self, name: &str, dry_run: bool) -> Result<ChangeReply> {
        let memory = Memories::of(self.core).memory(name)?;
        if memory.said.archived {
            return Err(Error::new(ErrorKind::Exists, format!("{} is archived already", memory.path)));
        }
        self.say(&memory, NoteEdit::Set("tier".to_owned(), Value::from("archive")), dry_run)
    }
}
