//! Stores handoffs: one note for each project with the state of its work.

use serde::Serialize;
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::wording::Wording;
use sidenote_catalog::{FileRow, Filter, Inactive, path_id_at};
use sidenote_change::naming::file_name;
use sidenote_change::operation::ChangeReply;
use sidenote_change::properties::with_properties;
use sidenote_change::{Changes, Planner};
use sidenote_journal::reader::ReadOrder;
use sidenote_markdown::edit::{ChangeSet, FileChange, apply, single_edit};
use sidenote_markdown::frontmatter;
use sidenote_markdown::frontmatter::edit::unset;
use sidenote_markdown::name_rules::NameRules;
use sidenote_markdown::path::{NotePath, key};
pub use sidenote_memory::handoff::Handoff;
use sidenote_memory::handoff::markdown;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::redaction::Cleaned;
use sidenote_open_vault::source::{Source, body_of};
use sidenote_open_vault::sync::IndexSync;
use sidenote_query::memory_weights::{Memory, MemoryWeights};

use crate::{Handoffs, Memories};

/// The type of a handoff.
const KIND: &str = "handoff";

/// The properties of a former handoff that a new one does not keep.
const REPLACED: &[&str] = &["metadata", "forgotten"];

/// A handoff to store.
#[derive(Debug, Clone, Default)]
pub struct HandoffRequest {
    /// The content of the handoff.
    pub handoff: Handoff,
    /// Other properties of its note.
    pub properties: Map<String, Value>,
}

/// The result of storing a handoff.
#[derive(Debug, Clone, Serialize)]
pub struct HandoffReply {
    /// The note of the handoff; `None` after a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The change.
    pub change: ChangeReply,
}

/// A stored handoff.
#[derive(Debug, Clone, Serialize)]
pub struct HandoffText {
    /// The id of the note.
    pub id: String,
    /// The path of the note.
    pub path: String,
    /// The project.
    pub project: String,
    /// When the handoff was written.
    pub updated: Timestamp,
    /// The text as Markdown.
    pub text: String,
    /// The ids of the memories that it names, each with its text; `None` if the memory no longer exists.
    pub memories: Vec<(String, Option<String>)>,
}

impl HandoffText {
    /// Returns the Markdown, followed by the memories that it names.
    pub fn with_memories(&self) -> String {
        let mut text = self.text.trim_end().to_owned();
        if !self.memories.is_empty() {
            text.push_str("\n\n## Referenced Memories");
        }
        for (id, content) in &self.memories {
            let content = content.as_deref().unwrap_or("(gone)").trim();
            text.push_str(&format!("\n\n### Memory: {id}\n\n{content}"));
        }
        text + "\n"
    }
}

impl Handoffs<'_> {
    /// Stores a handoff, which replaces the former one of its project; `undo` restores that. The memories that it names
    /// count as used.
    ///
    /// # Errors
    /// `Invalid` if the project gives no file name or the summary is empty.
    #[tracing::instrument(skip_all)]
    pub fn store_handoff(&self, request: &HandoffRequest, dry_run: bool) -> Result<HandoffReply> {
        let mut request = request.clone();
        let Handoff { project, branch, summary, completed, in_progress, decisions, next, memories } =
            &mut request.handoff;
        let texts = [project, summary].into_iter().chain(branch);
        let mut lists = [completed, in_progress, decisions, next, memories];
        let mut cleaned: Cleaned = texts.map(|text| self.core.clean(text)).sum();
        for list in &mut lists {
            for text in list.iter_mut() {
                // A single carriage return is replaced by a space.
                *text = text.replace("\r\n", "\n").replace('\r', "\n");
                cleaned += self.core.clean(text);
            }
            list.retain(|text| !text.trim().is_empty());
        }
        cleaned += request.properties.values_mut().map(|value| self.core.clean_value(value)).sum();
        let handoff = &mut request.handoff;
        handoff.project = handoff.project.trim().to_owned();
        if handoff.summary.trim().is_empty() {
            return Err(Error::invalid("the handoff has no summary").with_hint("say where the work stands"));
        }
        let folder = self.core.config.memory.handoffs.trim_matches('/');
        let name = file_name(&handoff.project)?;
        let path = if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") };
        let path = self.core.vault.new_path(&path, NameRules::default())?;
        IndexSync::of(self.core).refresh()?;
        let mut notices = Vec::new();
        let mut named: Vec<FileRow> = Vec::new();
        for id in &mut handoff.memories {
            match Lookup::of(self.core).find(id) {
                Ok(row) => {
                    id.clone_from(&row.note_id);
                    named.push(row);
                }
                Err(error) => notices.push(format!("{error}; it is named all the same")),
            }
        }
        let now = self.core.clock.now();
        let mut change =
            Changes::of(self.core).apply_planned(|_| self.plan_handoff(&request, &path, now), dry_run)?;
        notices.extend(cleaned.notices());
        change.notices.extend(notices);
        if dry_run {
            return Ok(HandoffReply { memory: None, change });
        }
        MemoryWeights::of(self.core).note_use(named.iter(), KIND);
        Ok(HandoffReply {
            memory: Some(Memories::of(self.core).memory_of_reply(&change, path.as_str())?),
            change,
        })
    }

    fn plan_handoff(&self, request: &HandoffRequest, path: &NotePath, now: Timestamp) -> Result<ChangeSet> {
        let view = View::new(self.core)?;
        let handoff = &request.handoff;
        let mut plan = ChangeSet::new(KIND);
        let old = match view.source(path) {
            Ok(source) => Some(source),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let Some(refusal) = old.as_ref().and_then(|old| old.refusal()) {
            return Err(Error::invalid(refusal.to_string()));
        }
        if let Some(old) = &old {
            let get = |name: &str| old.note.frontmatter.as_ref()?.get(name)?.value.as_str();
            let is_ours =
                get("type") == Some(KIND) && get("project").is_none_or(|own| own == handoff.project);
            if !is_ours {
                return Err(Error::new(
                    ErrorKind::Exists,
                    format!("{path} is no handoff of {}", handoff.project),
                )
                .with_hint("move that note away, or name the project otherwise"));
            }
        }
        let mut properties: Vec<(String, Value)> = Vec::new();
        if old.is_none() {
            Planner::of(self.core).refuse_taken(path, None)?;
            if Planner::of(self.core).memory_gets_id(&view, path) {
                properties.push(("id".to_owned(), Value::from(path_id_at(path, now))));
                properties.push(("created_at".to_owned(), Value::from(now.rfc3339())));
            }
        }
        properties.push(("type".to_owned(), Value::from(KIND)));
        properties.push(("project".to_owned(), Value::from(handoff.project.as_str())));
        let branch = handoff.branch.as_deref().map_or(Value::Null, Value::from);
        properties.push(("branch".to_owned(), branch));
        properties.push(("updated_at".to_owned(), Value::from(now.rfc3339())));
        properties.push(("memories".to_owned(), Value::from(handoff.memories.clone())));
        properties.extend(request.properties.iter().map(|(name, value)| (name.clone(), value.clone())));
        let head = old.as_ref().map_or("", |old| {
            let begin = frontmatter::read(&old.text).1;
            old.text.get(..begin).unwrap_or("")
        });
        let body = markdown(handoff, now);
        let body = if head.contains("\r\n") { body.replace('\n', "\r\n") } else { body };
        let mut text = format!("{head}{body}");
        for name in REPLACED.iter().filter(|name| !request.properties.contains_key(**name)) {
            let edits = unset(&text, name)
                .map_err(|refusal| Error::invalid(format!("{path}: {}", refusal.message)))?;
            text = String::from_utf8(apply(text.as_bytes(), &edits)?)
                .map_err(|error| Error::internal("an edit produced invalid UTF-8").with_source(error))?;
        }
        let text = with_properties(text, path, properties)?;
        plan.files.extend(match &old {
            Some(old) => {
                single_edit(&old.text, &text).map(|edit| FileChange::edit(path.clone(), old.hash, vec![edit]))
            }
            None => Some(FileChange::create(path.clone(), text.into_bytes())),
        });
        Ok(plan)
    }

    /// Chooses the latest of the handoffs of the same second by the journal, otherwise the first by path.
    fn stored_last(&self, mut rows: Vec<FileRow>) -> Result<Option<FileRow>> {
        if rows.len() > 1 {
            for event in self.core.journal().events(ReadOrder::NewestFirst)?.of_changes() {
                let files = event?.files;
                let is_touched =
                    |row: &FileRow| files.iter().any(|file| file.end().in_vault() == Some(&row.path));
                if let Some(at) = rows.iter().position(is_touched) {
                    return Ok(Some(rows.swap_remove(at)));
                }
            }
        }
        rows.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(rows.into_iter().next())
    }

    /// Returns the handoff of a project, or the newest one of all projects.
    ///
    /// # Errors
    /// `NotFound` if there is no handoff.
    #[tracing::instrument(skip_all)]
    pub fn handoff(&self, project: Option<&str>) -> Result<HandoffText> {
        // A forgotten handoff is ignored.
        let hidden = Inactive { forgotten: true, archived: false };
        let filter = Filter { note_type: Some(KIND.to_owned()), hidden, ..Filter::default() };
        let mut rows = self.core.index.catalog().select(&filter)?;
        let wanted = project.map(|project| file_name(project).map(|name| key(&name))).transpose()?;
        rows.retain(|row| wanted.as_ref().is_none_or(|wanted| key(row.path.stem()) == *wanted));
        let newest = rows.iter().map(|row| row.updated).max();
        rows.retain(|row| Some(row.updated) == newest);
        let row = self.stored_last(rows)?.ok_or_else(|| {
            Error::not_found(project.map_or_else(
                || "there is no handoff".to_owned(),
                |project| format!("there is no handoff of {project}"),
            ))
            .with_hint(
                Wording::new("`sidenote handoff store` keeps one", "")
                    .with_tool("session", "session with the action handoff_store keeps one"),
            )
        })?;
        let source = Source::unplaced(row.path.clone(), &self.core.read_bytes(&row.path)?);
        let front = source.note.frontmatter.as_ref();
        let get = |name: &str| front.and_then(|front| front.get(name)).map(|property| &property.value);
        let ids = get("memories").and_then(Value::as_array).into_iter().flatten();
        let read = |id: &str| {
            let row = Lookup::of(self.core).find(id).ok()?;
            Some(body_of(&self.core.read_bytes(&row.path).ok()?))
        };
        let memories = ids.filter_map(Value::as_str).map(|id| (id.to_owned(), read(id))).collect();
        Ok(HandoffText {
            project: get("project").and_then(Value::as_str).unwrap_or(row.path.stem()).to_owned(),
            text: source.body().to_owned(),
            id: row.note_id,
            path: row.path.to_string(),
            updated: row.updated,
            memories,
        })
    }
}
