//! The tools that change notes. Each call is one operation, which `undo` takes back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidenote_base::error::{Error, Result};
use sidenote_markdown::control::plain;
use sidenote_markdown::path::{NotePath, typed_path};
use sidenote_store::{
    ChangeReply, DanglingLinks, DeleteRequest, EditRequest, LinkRequest, MoveRequest, NewRequest, NoteEdit,
    Operation, Store, WriteRequest, json_or_text,
};

use super::super::tool::Answer;
use super::TARGET_LENGTH;
use crate::reply_limit::truncate;

/// The largest number of changed files that a reply names.
const MAX_FILES: usize = 100;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WriteInput {
    title: String,
    content: String,
    #[serde(default)]
    #[schemars(extend("x-comma-list" = true))]
    tags: Vec<String>,
    category: Option<String>,
    #[serde(rename = "type")]
    note_type: Option<String>,
    #[schemars(range(min = 1, max = 10))]
    importance: Option<f64>,
    /// Other properties
    #[schemars(extend("x-open-object" = true, "properties" = { "status": { "type": "string" } }))]
    metadata: Option<Map<String, Value>>,
    #[schemars(extend("x-place" = true))]
    folder: Option<String>,
    #[serde(default)]
    allow_duplicate: bool,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EditActionInput {
    Append,
    Prepend,
    Replace,
    ReplaceSection,
    Set,
    Remove,
}

impl EditActionInput {
    /// Returns the name of the action, and a valid call of it.
    fn example(self) -> (&'static str, &'static str) {
        match self {
            Self::Append => {
                ("append", r#"{"note": "Boat", "action": "append", "text": "- oars", "heading": "To do"}"#)
            }
            Self::Prepend => {
                ("prepend", r#"{"note": "Boat", "action": "prepend", "text": "- oars", "heading": "To do"}"#)
            }
            Self::Replace => (
                "replace",
                r#"{"note": "Boat", "action": "replace", "old": "Tuesdays", "text": "Mondays"}; an empty text removes what old names"#,
            ),
            Self::ReplaceSection => (
                "replace_section",
                r#"{"note": "Boat", "action": "replace_section", "heading": "To do", "text": "- [ ] oars"}"#,
            ),
            Self::Set => ("set", r#"{"note": "Boat", "action": "set", "key": "status", "value": "active"}"#),
            Self::Remove => ("remove", r#"{"note": "Boat", "action": "remove", "key": "status"}"#),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct EditInput {
    note: String,
    /// set, remove: a frontmatter key
    action: EditActionInput,
    #[schemars(extend("x-empty-counts" = true))]
    text: Option<String>,
    /// What text replaces
    old: Option<String>,
    expected_replacements: Option<usize>,
    /// The section
    heading: Option<String>,
    key: Option<String>,
    /// Text or JSON
    #[schemars(extend("x-empty-counts" = true, "x-json-text" = true))]
    value: Option<String>,
    expected_hash: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MoveInput {
    from: String,
    /// New name, path or Folder/
    to: String,
    #[serde(default)]
    keep_alias: bool,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DeleteModeInput {
    #[default]
    Trash,
    Forget,
    Permanent,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DeleteInput {
    note: String,
    /// forget: kept, out of search
    how: Option<DeleteModeInput>,
    #[serde(default)]
    restore: bool,
    /// Links to it become text
    #[serde(default)]
    unlink: bool,
    /// For permanent
    #[serde(default)]
    confirm: bool,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct LinkInput {
    a: String,
    b: String,
    /// Shown in a
    text: Option<String>,
    /// Unlink
    #[serde(default)]
    remove: bool,
}

/// The result of a change, or of a dry run.
#[derive(Debug, Default, Serialize)]
pub(super) struct ChangeOutput {
    applied: bool,
    /// The path of the note after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The content hash of the note after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// The id of the operation in the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    /// The changed files, as `a.md` or `a.md -> b.md`.
    files: Vec<String>,
    /// The number of changed files, if not all are named.
    #[serde(skip_serializing_if = "Option::is_none")]
    files_total: Option<usize>,
    /// The numbers of files that were made and that were changed, if there are both.
    #[serde(skip)]
    counts: Option<(usize, usize)>,
    /// A note with nearly the same text, which the new note links to.
    #[serde(skip_serializing_if = "Option::is_none")]
    near_duplicate: Option<NearDuplicate>,
    /// Links without a target after the change, as `path:line`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dangling: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    /// The changes that a dry run would make.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

#[derive(Debug, Serialize)]
struct NearDuplicate {
    path: String,
    id: String,
    title: String,
    cosine: f32,
}

impl ChangeOutput {
    pub(super) fn new(reply: &ChangeReply) -> Self {
        let folders = reply.plan.folders.iter().map(|folder| format!("{}/ -> {}/", folder.from, folder.to));
        let files = reply.plan.files.iter().map(|file| match (&file.from, &file.to) {
            (Some(from), Some(to)) if from != to => format!("{from} -> {to}"),
            (Some(from), None) => format!("{from} -> nothing"),
            (Some(place), _) | (None, Some(place)) => place.to_string(),
            (None, None) => String::new(),
        });
        let total = reply.plan.folders.len() + reply.plan.files.len();
        let remarks = reply.plan.remarks.iter().map(ToString::to_string);
        Self {
            applied: reply.applied,
            operation: reply.id.clone(),
            files: folders.chain(files).take(MAX_FILES).collect(),
            files_total: (total > MAX_FILES).then_some(total),
            counts: Some(reply.counts()).filter(|(made, changed)| *made > 0 && *changed > 0),
            notices: remarks.take(MAX_FILES).chain(reply.notices.iter().cloned()).collect(),
            diff: reply.diff.as_deref().map(shorten_diff),
            ..Self::default()
        }
    }

    /// Describes a change with the path, id and hash that it left the note at `path` with, regardless of later changes.
    pub(super) fn for_note(reply: &ChangeReply, store: &Store, path: &str) -> Self {
        let output = Self::new(reply);
        if !output.applied && output.diff.is_some() {
            return output;
        }
        match store.memories().left(reply, path) {
            Some((path, id, hash)) => Self { path: Some(path), id: Some(id), hash, ..output },
            None => Self { path: Some(path.to_owned()), ..output },
        }
    }

    pub(super) fn into_answer(self) -> Result<Answer> {
        let mut lines = Vec::new();
        match (&self.diff, self.applied, &self.path) {
            (Some(diff), ..) if diff.is_empty() => lines.push("nothing would change".to_owned()),
            (Some(diff), ..) => lines.push(diff.clone()),
            (None, false, _) => lines.push("nothing to change".to_owned()),
            (None, true, Some(path)) => lines.push(plain(&format!("done: {path}"))),
            (None, true, None) => lines.push("done".to_owned()),
        }
        if self.diff.is_none() {
            let others = self.files.iter().filter(|file| Some(*file) != self.path.as_ref());
            lines.extend(others.map(|file| plain(file)));
        }
        if let (Some((made, changed)), true) = (self.counts, self.applied) {
            lines.push(format!("files created: {made}, changed: {changed}"));
        }
        if let Some(hash) = &self.hash {
            lines.push(format!("hash {hash}"));
        }
        if let Some(near) = &self.near_duplicate {
            lines.push(plain(&format!("near duplicate: {}", near.path)));
        }
        if !self.dangling.is_empty() {
            lines.push(plain(&format!("links without a target now: {}", self.dangling.join(", "))));
        }
        lines.extend(self.notices.iter().map(|notice| plain(&format!("notice: {notice}"))));
        Answer::text(lines.join("\n")).with_structured(&self)
    }
}

/// Cuts a diff that is too long for a reply.
fn shorten_diff(diff: &str) -> String {
    let mut shown = diff.to_owned();
    // The rest of the reply is for the names of the files.
    if truncate(&mut shown, TARGET_LENGTH / 2) {
        shown.push_str(&format!("\n(cut: the diff has {} bytes)\n", diff.len()));
    }
    shown
}

/// Returns a folder without the name of a note: a path to the new note stands for its folder.
pub(super) fn folder_only(folder: String) -> String {
    if !folder.to_lowercase().ends_with(".md") {
        return folder;
    }
    folder.rsplit_once('/').map_or_else(|| "/".to_owned(), |(folder, _)| folder.to_owned())
}

pub(super) fn write(store: &Store, input: WriteInput) -> Result<Answer> {
    let mut properties: Vec<(String, Value)> = Vec::new();
    if let Some(importance) = input.importance {
        let importance = super::super::tool::within("importance", importance, 1.0, 10.0)?;
        properties.push(("importance".to_owned(), sidenote_store::number(importance)));
    }
    properties.extend(input.metadata.into_iter().flatten());
    let is_misplaced_memory = (input.importance.is_some() || input.note_type.is_some())
        && input.folder.is_none()
        && input.category.is_none();
    let without_sign = |tag: &String| tag.trim().trim_start_matches('#').to_owned();
    let new = NewRequest {
        title: input.title,
        content: input.content,
        folder: input.folder.map(folder_only),
        category: input.category,
        tags: input.tags.iter().map(without_sign).collect(),
        note_type: input.note_type,
        properties,
        ..NewRequest::default()
    };
    let request = WriteRequest { new, allow_duplicate: input.allow_duplicate };
    let reply = store.memory_writes().write_note(&request, input.dry_run)?;
    let near = reply.near.map(|near| NearDuplicate {
        path: near.path,
        id: near.id,
        title: near.title,
        cosine: near.cosine,
    });
    let mut output =
        ChangeOutput { near_duplicate: near, ..ChangeOutput::for_note(&reply.change, store, &reply.path) };
    let memories = store.config().memory.folder.trim_matches('/');
    if is_misplaced_memory && store.root().join(memories).is_dir() && !memories.is_empty() {
        output
            .notices
            .push(format!("memories are in {memories}/; to put one there, give folder: {memories:?}"));
    }
    output.into_answer()
}

pub(super) fn edit(store: &Store, input: EditInput) -> Result<Answer> {
    store.index().refresh()?;
    let needs = |name: &str| {
        let (action, example) = input.action.example();
        Error::invalid(format!("edit_note needs {name} for the action {action}"))
            .with_hint(format!("A valid call: {example}"))
    };
    let text = || input.text.clone().ok_or_else(|| needs("text"));
    let key = || input.key.clone().ok_or_else(|| needs("key"));
    let edit = match input.action {
        EditActionInput::Append => NoteEdit::Append(text()?, input.heading.clone()),
        EditActionInput::Prepend => NoteEdit::Prepend(text()?, input.heading.clone()),
        EditActionInput::Replace => NoteEdit::Replace {
            old: input.old.clone().ok_or_else(|| needs("old"))?,
            new: text()?,
            count: input.expected_replacements.unwrap_or(1),
        },
        EditActionInput::ReplaceSection => {
            NoteEdit::ReplaceSection(input.heading.clone().ok_or_else(|| needs("heading"))?, text()?)
        }
        EditActionInput::Set => {
            NoteEdit::Set(key()?, json_or_text(input.value.as_deref().ok_or_else(|| needs("value"))?))
        }
        EditActionInput::Remove => NoteEdit::Unset(key()?),
    };
    let expect = input.expected_hash.as_deref().map(str::parse).transpose()?;
    let path = store.lookup().find(&input.note)?.path.to_string();
    let request = EditRequest { note: path.clone(), edit, expect };
    let reply = store.changes().change(&Operation::Edit(request), input.dry_run)?;
    // A memory that is named by the beginning of its text may have been renamed.
    let own_change =
        reply.plan.files.iter().find(|file| file.from.as_ref().is_some_and(|from| from.to_string() == path));
    let path = own_change
        .and_then(|file| file.to.as_ref())
        .filter(|_| reply.applied)
        .map_or(path, ToString::to_string);
    ChangeOutput::for_note(&reply, store, &path).into_answer()
}

pub(super) fn move_note(store: &Store, input: MoveInput) -> Result<Answer> {
    store.index().refresh()?;
    // A bare name is a new name, as in a file manager, unless it names a folder to move into.
    let given = input.to.trim();
    let is_folder = || NotePath::parse(given).is_ok_and(|to| store.root().join(to.as_str()).is_dir());
    let typed = typed_path(given);
    // A slash at the end says that a folder is meant, and alone the root.
    let slash = if typed.is_empty() || given.ends_with(['/', '\\']) { "/" } else { "" };
    let request = MoveRequest {
        from: input.from,
        in_place: !given.contains(['/', '\\']) && !is_folder(),
        to: if given.is_empty() { String::new() } else { format!("{typed}{slash}") },
        keep_alias: input.keep_alias,
        ..MoveRequest::default()
    };
    let reply = store.changes().change(&Operation::Move(request), input.dry_run)?;
    let moved = reply.plan.files.iter().find(|file| file.from != file.to && file.from.is_some());
    let to = moved.and_then(|file| file.to.as_ref()).map(ToString::to_string);
    let is_note = reply.plan.folders.is_empty();
    match to.filter(|_| is_note && reply.applied) {
        Some(to) => ChangeOutput::for_note(&reply, store, &to).into_answer(),
        None => ChangeOutput::new(&reply).into_answer(),
    }
}

pub(super) fn delete(store: &Store, input: DeleteInput) -> Result<Answer> {
    store.index().refresh()?;
    if input.restore {
        let reply = store.memory_writes().restore_memory(&input.note, input.dry_run)?;
        let restored = reply.plan.files.first().and_then(|file| file.to.as_ref()).map(ToString::to_string);
        return match restored.filter(|_| reply.applied) {
            Some(path) => ChangeOutput::for_note(&reply, store, &path).into_answer(),
            None => ChangeOutput::new(&reply).into_answer(),
        };
    }
    let mode = input.how.unwrap_or_default();
    let path = store.lookup().find(&input.note)?.path.to_string();
    if mode == DeleteModeInput::Forget {
        let reply = store.memory_writes().forget(&path, false, input.dry_run)?;
        let path = reply.changed().unwrap_or(path);
        return ChangeOutput::for_note(&reply, store, &path).into_answer();
    }
    if mode == DeleteModeInput::Permanent && !input.confirm && !input.dry_run {
        return Err(Error::invalid(format!("{path} is not deleted: a permanent deletion cannot be undone"))
            .with_hint("Give confirm: true once the user agrees, or omit how to move it to the trash"));
    }
    let request = DeleteRequest {
        note: path.clone(),
        permanent: mode == DeleteModeInput::Permanent,
        links: if input.unlink { DanglingLinks::Plain } else { DanglingLinks::Leave },
    };
    let reply = store.changes().change(&Operation::Delete(request), input.dry_run)?;
    let is_dangling = |remark: &&sidenote_markdown::edit::Remark| remark.code == "dangling";
    let dangling = reply.plan.remarks.iter().filter(is_dangling);
    let dangling =
        dangling.map(|remark| format!("{}:{}", remark.path, remark.line)).take(MAX_FILES).collect();
    let mut output = ChangeOutput { dangling, ..ChangeOutput::new(&reply) };
    // `dangling` lists these already.
    output.notices.retain(|notice| !notice.ends_with("(dangling)"));
    output.into_answer()
}

pub(super) fn link(store: &Store, input: LinkInput) -> Result<Answer> {
    store.index().refresh()?;
    let request = LinkRequest { a: input.a, b: input.b, text: input.text };
    let operation = if input.remove { Operation::Unlink(request) } else { Operation::Link(request) };
    ChangeOutput::new(&store.changes().change(&operation, false)?).into_answer()
}
