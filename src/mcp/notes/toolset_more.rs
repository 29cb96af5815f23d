//! Our toolset `more`: batches of edits, renames across the vault, merging and splitting of notes, templates, outlines,
//! queries of properties, and checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::index::catalog::Filter;
use crate::mcp::notes::LONGEST;
use crate::mcp::notes::change::Changed;
use crate::mcp::notes::find::{offset, unmet};
use crate::mcp::tool::{Answer, Effect, Tool, within};
use crate::store::{
    EditRequest, ExtractRequest, FieldsItem, ListRequest, MergeRequest, NewRequest, NoteEdit, Operation,
    PartKind, PartRequest, Problem, RenameRequest, Renamed, SortBy, Store,
};

/// One call makes at most this many edits.
const MOST_EDITS: usize = 500;

/// Lists its tools.
pub(in crate::mcp) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "edit_notes",
            Effect::Destructive,
            "Make many edits in many notes as one operation: all land, or none. Edits of one note are made in order.",
            r#"{"edits": [{"note": "Boat", "action": "append", "text": "- oars", "heading": "To do"}, {"note": "River", "action": "replace_pattern", "old": "(\\d+) m", "text": "$1 metres"}]}"#,
            edit,
        )
        .giving_data()
        .strict(),
        Tool::new(
            "rename_part",
            Effect::Destructive,
            "Rename a tag or property in all notes, or a heading or block of one; links follow.",
            r##"{"kind": "tag", "old": "boat", "new": "sport/boat"}"##,
            rename,
        )
        .giving_data()
        .also(&[("from", "old"), ("to", "new")])
        .strict(),
        Tool::new(
            "merge_notes",
            Effect::Destructive,
            "Put the text of one note behind that of another; links follow, the one goes to the trash.",
            r#"{"from": "Boat draft", "into": "Boat"}"#,
            merge,
        )
        .giving_data()
        .strict(),
        Tool::new(
            "extract_section",
            Effect::Destructive,
            "Make a note of a section, which links to it in its place.",
            r#"{"note": "Boat", "section": "Repairs", "title": "Boat repairs"}"#,
            extract,
        )
        .giving_data()
        .also(&[("heading", "section")])
        .strict(),
        Tool::new(
            "new_from_template",
            Effect::Additive,
            "Create a note from a template, or today's daily note.",
            r#"{"title": "Regatta", "template": "Event", "content": "On the lake."}"#,
            create,
        )
        .giving_data()
        .strict(),
        Tool::new(
            "outline_note",
            Effect::ReadOnly,
            "Headings of a note with their lines, its blocks and its tasks.",
            r#"{"note": "Boat"}"#,
            outline,
        )
        .giving_data()
        .also(&[("path", "note"), ("id", "note")])
        .strict(),
        Tool::new(
            "query_properties",
            Effect::ReadOnly,
            "List notes with the properties that you choose.",
            r#"{"fields": ["status", "due"], "folder": "Projects", "property": "status=active"}"#,
            query,
        )
        .giving_data()
        .strict(),
        Tool::new(
            "check_vault",
            Effect::ReadOnly,
            "Find broken and ambiguous links, clashing names, unreadable frontmatter and other problems.",
            r#"{"codes": ["broken-link"], "path": "Projects"}"#,
            check,
        )
        .giving_data()
        .strict(),
    ]
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum BatchAction {
    Append,
    Prepend,
    InsertAfterHeading,
    Replace,
    ReplacePattern,
    ReplaceSection,
    Set,
    Remove,
    AddTags,
    RemoveTags,
    ToggleTask,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct BatchEdit {
    note: String,
    action: BatchAction,
    /// What comes in; $1 is a group of replace_pattern
    text: Option<String>,
    /// The text or pattern that text replaces
    old: Option<String>,
    /// replace: 1; replace_pattern: any number
    expected_replacements: Option<usize>,
    heading: Option<String>,
    /// Its line, or part of its text
    task: Option<String>,
    /// Of the task: x, a space, or another character; else it is toggled
    status: Option<char>,
    /// set, remove: a frontmatter key
    key: Option<String>,
    value: Option<Value>,
    #[serde(default)]
    tags: Vec<String>,
    /// Before this call
    expected_hash: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct BatchInput {
    edits: Vec<BatchEdit>,
    #[serde(default)]
    dry_run: bool,
}

impl BatchEdit {
    fn request(self, number: usize) -> Result<EditRequest> {
        let needs = |name: &str| {
            Error::invalid(format!("edit {number} needs {name} for its action"))
                .with_hint(r#"A valid edit: {"note": "Boat", "action": "append", "text": "- oars"}"#)
        };
        let edit = match self.action {
            BatchAction::Append => NoteEdit::Append(self.text.ok_or_else(|| needs("text"))?, self.heading),
            BatchAction::Prepend => NoteEdit::Prepend(self.text.ok_or_else(|| needs("text"))?, self.heading),
            BatchAction::InsertAfterHeading => NoteEdit::Prepend(
                self.text.ok_or_else(|| needs("text"))?,
                Some(self.heading.ok_or_else(|| needs("heading"))?),
            ),
            BatchAction::Replace => NoteEdit::Replace {
                old: self.old.ok_or_else(|| needs("old"))?,
                new: self.text.ok_or_else(|| needs("text"))?,
                count: self.expected_replacements.unwrap_or(1),
            },
            BatchAction::ReplacePattern => NoteEdit::ReplacePattern {
                pattern: self.old.ok_or_else(|| needs("old"))?,
                new: self.text.ok_or_else(|| needs("text"))?,
                count: self.expected_replacements,
            },
            BatchAction::ReplaceSection => NoteEdit::ReplaceSection(
                self.heading.ok_or_else(|| needs("heading"))?,
                self.text.ok_or_else(|| needs("text"))?,
            ),
            BatchAction::Set => NoteEdit::Set(
                self.key.ok_or_else(|| needs("key"))?,
                self.value.ok_or_else(|| needs("value"))?,
            ),
            BatchAction::Remove => NoteEdit::Unset(self.key.ok_or_else(|| needs("key"))?),
            BatchAction::ToggleTask => {
                NoteEdit::Task { task: self.task.ok_or_else(|| needs("task"))?, status: self.status }
            }
            BatchAction::AddTags | BatchAction::RemoveTags if self.tags.is_empty() => {
                return Err(needs("tags"));
            }
            BatchAction::AddTags => NoteEdit::Tags { add: self.tags, remove: Vec::new() },
            BatchAction::RemoveTags => NoteEdit::Tags { add: Vec::new(), remove: self.tags },
        };
        let expect = self.expected_hash.as_deref().map(str::parse).transpose()?;
        Ok(EditRequest { note: self.note, edit, expect })
    }
}

fn edit(store: &Store, input: BatchInput) -> Result<Answer> {
    store.index().refresh()?;
    if input.edits.is_empty() || input.edits.len() > MOST_EDITS {
        return Err(Error::invalid(format!("edit_notes got {} edits", input.edits.len()))
            .with_hint(format!("Give 1 to {MOST_EDITS} in one call")));
    }
    let edits = input.edits.into_iter().enumerate().map(|(at, edit)| edit.request(at + 1));
    let operation = Operation::EditMany(edits.collect::<Result<_>>()?);
    Changed::of(&store.changes().change(&operation, input.dry_run)?).answer()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PartName {
    Tag,
    Property,
    Heading,
    Block,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RenameInput {
    kind: PartName,
    old: String,
    new: String,
    /// Of a heading or block
    note: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

fn rename(store: &Store, input: RenameInput) -> Result<Answer> {
    store.index().refresh()?;
    let RenameInput { kind, old, new, note, dry_run } = input;
    let operation = match kind {
        PartName::Tag | PartName::Property => {
            if note.is_some() {
                return Err(Error::invalid("a tag or property is renamed in all notes").with_hint(
                    "Leave note out; edit_notes changes the tags and properties of single notes",
                ));
            }
            let kind = if kind == PartName::Tag { Renamed::Tag } else { Renamed::Property };
            Operation::RenameEverywhere(RenameRequest { kind, old, new })
        }
        PartName::Heading | PartName::Block => {
            let note = note.ok_or_else(|| {
                Error::invalid("rename_part needs the note of a heading or block").with_hint(
                    r#"A valid call: {"kind": "heading", "note": "Boat", "old": "Plan", "new": "Plans"}"#,
                )
            })?;
            let kind = if kind == PartName::Heading { PartKind::Heading } else { PartKind::Block };
            Operation::RenamePart(PartRequest { note, kind, old, new, force: false })
        }
    };
    Changed::of(&store.changes().change(&operation, dry_run)?).answer()
}

#[derive(Debug, Deserialize, JsonSchema)]
struct MergeInput {
    from: String,
    into: String,
    #[serde(default)]
    dry_run: bool,
}

fn merge(store: &Store, input: MergeInput) -> Result<Answer> {
    store.index().refresh()?;
    let request = MergeRequest { from: input.from, into: input.into };
    Changed::of(&store.changes().change(&Operation::Merge(request), input.dry_run)?).answer()
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ExtractInput {
    note: String,
    /// Its heading
    section: String,
    title: String,
    #[serde(default)]
    dry_run: bool,
}

fn extract(store: &Store, input: ExtractInput) -> Result<Answer> {
    store.index().refresh()?;
    let request = ExtractRequest { note: input.note, section: input.section, title: input.title };
    Changed::of(&store.changes().change(&Operation::Extract(request), input.dry_run)?).answer()
}

#[derive(Debug, Deserialize, JsonSchema)]
struct CreateInput {
    title: Option<String>,
    /// A note, by any of its names
    template: Option<String>,
    /// Today's note, by its own template
    #[serde(default)]
    daily: bool,
    #[serde(default)]
    content: String,
    folder: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

fn create(store: &Store, input: CreateInput) -> Result<Answer> {
    store.index().refresh()?;
    let valid = r#"A valid call: {"title": "Regatta", "template": "Event"}, or {"daily": true}"#;
    let title = match (input.daily, input.title) {
        (true, None) => String::new(),
        (false, Some(title)) => title,
        (true, Some(_)) => {
            return Err(Error::invalid("a daily note is named by its date").with_hint(valid));
        }
        (false, None) => return Err(Error::invalid("the note needs a title").with_hint(valid)),
    };
    let new = NewRequest {
        title,
        content: input.content,
        folder: input.folder,
        template: input.template,
        daily: input.daily,
        ..NewRequest::default()
    };
    let reply = store.changes().change(&Operation::New(new), input.dry_run)?;
    Changed::of(&reply).answer()
}

#[derive(Debug, Deserialize, JsonSchema)]
struct OutlineInput {
    note: String,
    cursor: Option<String>,
}

/// A heading, block or task, and its line.
#[derive(Debug, Serialize)]
struct OutlineItem {
    line: usize,
    /// 1 to 6, of a heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u8>,
    /// The character between the brackets of a task; a space means open.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<char>,
    text: String,
}

#[derive(Debug, Serialize)]
struct OutlineOutput {
    path: String,
    hash: String,
    headings: Vec<OutlineItem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<OutlineItem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<OutlineItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

fn outline(store: &Store, input: OutlineInput) -> Result<Answer> {
    let start = offset(input.cursor.as_deref())?;
    store.index().refresh()?;
    let note = store.reads().inspect(&input.note)?;
    let headings = note.headings.into_iter().map(|heading| {
        (
            "heading",
            OutlineItem { line: heading.line, level: Some(heading.level), status: None, text: heading.text },
        )
    });
    let blocks = note.blocks.into_iter().map(|block| {
        ("block", OutlineItem { line: block.lines.0, level: None, status: None, text: block.id })
    });
    let tasks = note.tasks.into_iter().map(|task| {
        ("task", OutlineItem { line: task.line, level: None, status: Some(task.status), text: task.text })
    });
    let items: Vec<(&str, OutlineItem)> = headings.chain(blocks).chain(tasks).collect();
    let (page, next_cursor) = page(items, start, |(_, item)| item.text.len() + 40);
    let (mut headings, mut blocks, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
    let mut text = format!("{}\n", note.path);
    for (kind, item) in page {
        let sign = match (item.level, item.status) {
            (Some(level), _) => "#".repeat(usize::from(level)),
            (None, Some(status)) => format!("[{status}]"),
            (None, None) => "^".to_owned(),
        };
        text.push_str(&format!("{}: {sign} {}\n", item.line, item.text));
        match kind {
            "heading" => headings.push(item),
            "block" => blocks.push(item),
            _ => tasks.push(item),
        }
    }
    let output = OutlineOutput { path: note.path, hash: note.hash, headings, blocks, tasks, next_cursor };
    Answer::text(with_cursor(text, output.next_cursor.as_deref())).with(&output)
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OrderInput {
    Path,
    Title,
    Created,
    Updated,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct QueryInput {
    /// Property names; also tags, created, updated
    fields: Vec<String>,
    folder: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(rename = "type")]
    note_type: Option<String>,
    /// status=active, or a name alone
    property: Option<String>,
    sort: Option<OrderInput>,
    /// 1 to 500; 100
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct QueryOutput {
    notes: Vec<FieldsItem>,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

fn query(store: &Store, input: QueryInput) -> Result<Answer> {
    let start = offset(input.cursor.as_deref())?;
    let limit = within("limit", input.limit.unwrap_or(100), 1, 500)?;
    store.index().refresh()?;
    let named = input.property.clone();
    let property = input.property.map(|text| match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (text, None),
    });
    let filter =
        Filter { folder: input.folder, tags: input.tags, note_type: input.note_type, ..Filter::default() };
    let sort = match input.sort {
        None | Some(OrderInput::Path) => SortBy::Path,
        Some(OrderInput::Title) => SortBy::Title,
        Some(OrderInput::Created) => SortBy::Created,
        Some(OrderInput::Updated) => SortBy::Updated,
    };
    let request = ListRequest { filter: filter.clone(), property, sort, skip: start, limit: Some(limit) };
    let (found, total) = store.reads().fields(&request, &input.fields)?;
    let (notes, _) = page(found, 0, |note| {
        note.path.len() + note.title.len() + Value::Object(note.fields.clone()).to_string().len() + 40
    });
    let next = start + notes.len();
    let next_cursor = (next < total).then(|| next.to_string());
    let lines = notes.iter().map(|note| format!("{}  {}\n", note.path, shown(&note.fields)));
    let mut text = with_cursor(lines.collect(), next_cursor.as_deref());
    if notes.is_empty() {
        text.push_str(&format!("{total} notes\n"));
    }
    if total == 0 {
        text.push_str(&unmet(store, filter, named.as_deref())?);
    }
    Answer::text(text).with(&QueryOutput { notes, total, next_cursor })
}

fn shown(fields: &Map<String, Value>) -> String {
    let shown = fields.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    });
    shown.collect::<Vec<_>>().join("  ")
}

#[derive(Debug, Deserialize, JsonSchema)]
struct CheckInput {
    #[serde(default)]
    codes: Vec<String>,
    /// A note or folder
    path: Option<String>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct CheckOutput {
    problems: Vec<Problem>,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

fn check(store: &Store, input: CheckInput) -> Result<Answer> {
    let start = offset(input.cursor.as_deref())?;
    let known = crate::store::PROBLEM_CODES;
    if let Some(unknown) = input.codes.iter().find(|code| !known.iter().any(|known| known.code == **code)) {
        let codes: Vec<&str> = known.iter().map(|known| known.code).collect();
        return Err(Error::invalid(format!("{unknown:?} is no code of a problem"))
            .with_hint(format!("The codes are {}", codes.join(", "))));
    }
    let mut problems = store.upkeep().check(false)?.problems;
    let folder = input.path.as_deref().map(|path| path.trim_matches('/'));
    problems.retain(|problem| {
        let is_meant = input.codes.is_empty() || input.codes.iter().any(|code| code == problem.code);
        is_meant
            && folder.is_none_or(|folder| {
                let below = problem.path.strip_prefix(folder);
                folder.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
    });
    let total = problems.len();
    let (problems, next_cursor) =
        page(problems, start, |problem| problem.path.len() + problem.message.len() + 80);
    let lines = problems.iter().map(|problem| {
        format!("{}:{}: {} ({})\n", problem.path, problem.line, problem.message, problem.code)
    });
    let mut text: String = lines.collect();
    if text.is_empty() {
        text.push_str("no problems\n");
    }
    Answer::text(with_cursor(text, next_cursor.as_deref())).with(&CheckOutput {
        problems,
        total,
        next_cursor,
    })
}

/// Takes from a list, from `start` on, as many items as a reply has room for and one at least, and says where the next
/// page begins.
fn page<T>(items: Vec<T>, start: usize, len: impl Fn(&T) -> usize) -> (Vec<T>, Option<String>) {
    let total = items.len();
    let mut room = LONGEST;
    let mut page = Vec::new();
    for item in items.into_iter().skip(start) {
        let taken = len(&item);
        if taken > room && !page.is_empty() {
            break;
        }
        room = room.saturating_sub(taken);
        page.push(item);
    }
    let next = start + page.len();
    (page, (next < total).then(|| next.to_string()))
}

fn with_cursor(mut text: String, cursor: Option<&str>) -> String {
    if let Some(cursor) = cursor {
        text.push_str(&format!("more with cursor {cursor}\n"));
    }
    text
}
