//! Our toolset `more`: batches of edits, renames across the vault, merging and splitting of notes, templates, outlines,
//! queries of properties, and checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidenote_base::error::{Error, Result};
use sidenote_catalog::Filter;
use sidenote_markdown::path::typed_path;
use sidenote_store::{
    Certainty, CheckRequest, EditRequest, ExtractRequest, FieldsItem, ListRequest, MergeRequest, NewRequest,
    NoteEdit, Operation, PROBLEM_CODES, PartKind, PartRequest, Problem, PropertyCondition, RenameKind,
    RenameRequest, RepairItem, RepairRequest, Severity, SortBy, Store, json_or_text,
};

use crate::notes::TARGET_LENGTH;
use crate::notes::change::{ChangeOutput, folder_only};
use crate::notes::find::parse_cursor;
use crate::notes::proposals::proposals;
use crate::tool::{Answer, Effect, Tool, text_line, within};

/// The largest number of edits of one call.
const MAX_EDITS: usize = 500;

/// Returns the tools of the toolset.
#[expect(clippy::too_many_lines, reason = "a table with one entry for each tool")]
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "edit_notes",
            Effect::Destructive,
            "Make many edits in many notes as one operation: all are applied, or none. Edits of one note are made in order.",
            r#"{"edits": [{"note": "Boat", "action": "append", "text": "- oars", "heading": "To do"}, {"note": "River", "action": "replace_pattern", "old": "(\\d+) m", "text": "$1 metres"}]}"#,
            edit,
        )
        .with_structured_output()
        .with_aliases(&[("path", "note"), ("id", "note"), ("content", "text"), ("new", "text")])
        .proposable()
        .strict(),
        Tool::new(
            "rename_part",
            Effect::Destructive,
            "Rename a tag or property in all notes, or a heading or block of one; links follow.",
            r##"{"kind": "tag", "old": "boat", "new": "sport/boat"}"##,
            rename,
        )
        .with_structured_output()
        .with_aliases(&[("from", "old"), ("to", "new")])
        .proposable()
        .strict(),
        Tool::new(
            "merge_notes",
            Effect::Destructive,
            "Append a note to another and move it to the trash; links follow.",
            r#"{"from": "Boat draft", "into": "Boat"}"#,
            merge,
        )
        .with_structured_output()
        .with_aliases(&[("source", "from"), ("to", "into"), ("target", "into")])
        .proposable()
        .strict(),
        Tool::new(
            "extract_section",
            Effect::Destructive,
            "Move a section to a new note, and leave a link to it.",
            r#"{"note": "Boat", "section": "Repairs", "title": "Boat repairs"}"#,
            extract,
        )
        .with_structured_output()
        .with_aliases(&[("heading", "section")])
        .proposable()
        .strict(),
        Tool::new(
            "new_from_template",
            Effect::Additive,
            "Create a note from a template, or today's daily note.",
            r#"{"title": "Regatta", "template": "Event", "content": "On the lake."}"#,
            create,
        )
        .with_structured_output()
        .proposable()
        .strict(),
        Tool::new(
            "outline_note",
            Effect::ReadOnly,
            "Headings of a note with their lines, its blocks and its tasks.",
            r#"{"note": "Boat"}"#,
            outline,
        )
        .with_structured_output()
        .with_aliases(&[("path", "note"), ("id", "note")])
        .strict(),
        Tool::new(
            "query_properties",
            Effect::ReadOnly,
            "List notes with the properties that you choose.",
            r#"{"fields": ["status", "due"], "folder": "Projects", "property": "status=active"}"#,
            query,
        )
        .with_structured_output()
        .strict(),
        Tool::new(
            "check_vault",
            Effect::ReadOnly,
            "Find broken and ambiguous links, names that differ only in case or accents, unreadable frontmatter and other problems.",
            r#"{"paths": ["Projects"], "severity": "warning"}"#,
            check,
        )
        .with_structured_output()
        .with_aliases(&[("path", "paths")])
        .strict(),
        Tool::new(
            "repair_links",
            Effect::IdempotentDestructive,
            "Repair links that are broken because files moved without this server, as by git mv. Without apply, lists what each link meant, with the evidence. A certain meaning is proven, a strong one very likely.",
            r#"{"apply": "certain", "paths": ["Projects"], "dry_run": true}"#,
            repair,
        )
        .with_structured_output()
        .strict(),
        Tool::new(
            "proposals",
            Effect::Destructive,
            "List or show changes that wait for the user, word one better (edit), or look for duplicates and replaced facts (consolidate). The user accepts.",
            r#"{"action": "show", "id": "3fa9"}"#,
            proposals,
        )
        .with_structured_output()
        .strict(),
    ]
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum BatchActionInput {
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
struct BatchEditInput {
    note: String,
    action: BatchActionInput,
    /// The new text; $1 is a group of replace_pattern
    #[schemars(extend("x-empty-counts" = true))]
    text: Option<String>,
    /// The text or pattern that text replaces
    old: Option<String>,
    /// replace: 1; replace_pattern: any number
    expected_replacements: Option<usize>,
    heading: Option<String>,
    /// Its line, or part of its text
    task: Option<String>,
    /// Of the task: x, a space, or another character; else it is toggled
    #[schemars(extend("x-empty-counts" = true))]
    status: Option<String>,
    /// set, remove: a frontmatter key
    key: Option<String>,
    /// Text, or JSON such as ["a", "b"]
    #[schemars(extend("x-empty-counts" = true, "x-json-text" = true))]
    value: Option<String>,
    #[serde(default)]
    #[schemars(extend("x-comma-list" = true))]
    tags: Vec<String>,
    /// The note's hash before this call
    expected_hash: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct BatchInput {
    edits: Vec<BatchEditInput>,
    #[serde(default)]
    dry_run: bool,
}

impl BatchEditInput {
    fn request(self, number: usize) -> Result<EditRequest> {
        let needs = |name: &str| {
            Error::invalid(format!("edit {number} needs {name} for its action"))
                .with_hint(r#"A valid edit: {"note": "Boat", "action": "append", "text": "- oars"}"#)
        };
        let edit = match self.action {
            BatchActionInput::Append => {
                NoteEdit::Append(self.text.ok_or_else(|| needs("text"))?, self.heading)
            }
            BatchActionInput::Prepend => {
                NoteEdit::Prepend(self.text.ok_or_else(|| needs("text"))?, self.heading)
            }
            BatchActionInput::InsertAfterHeading => NoteEdit::Prepend(
                self.text.ok_or_else(|| needs("text"))?,
                Some(self.heading.ok_or_else(|| needs("heading"))?),
            ),
            BatchActionInput::Replace => NoteEdit::Replace {
                old: self.old.ok_or_else(|| needs("old"))?,
                new: self.text.ok_or_else(|| needs("text"))?,
                count: self.expected_replacements.unwrap_or(1),
            },
            BatchActionInput::ReplacePattern => NoteEdit::ReplacePattern {
                pattern: self.old.ok_or_else(|| needs("old"))?,
                new: self.text.ok_or_else(|| needs("text"))?,
                count: self.expected_replacements,
            },
            BatchActionInput::ReplaceSection => NoteEdit::ReplaceSection(
                self.heading.ok_or_else(|| needs("heading"))?,
                self.text.ok_or_else(|| needs("text"))?,
            ),
            BatchActionInput::Set => {
                let value = self.value.ok_or_else(|| needs("value"))?;
                NoteEdit::Set(self.key.ok_or_else(|| needs("key"))?, json_or_text(&value))
            }
            BatchActionInput::Remove => NoteEdit::Unset(self.key.ok_or_else(|| needs("key"))?),
            BatchActionInput::ToggleTask => {
                let status = self.status.filter(|status| !status.is_empty());
                let status = status.map(|status| task_status(&status)).transpose()?;
                NoteEdit::Task { task: self.task.ok_or_else(|| needs("task"))?, status }
            }
            BatchActionInput::AddTags | BatchActionInput::RemoveTags if self.tags.is_empty() => {
                return Err(needs("tags"));
            }
            BatchActionInput::AddTags => NoteEdit::Tags { add: self.tags, remove: Vec::new() },
            BatchActionInput::RemoveTags => NoteEdit::Tags { add: Vec::new(), remove: self.tags },
        };
        let expect = self.expected_hash.as_deref().map(str::parse).transpose()?;
        Ok(EditRequest { note: self.note, edit, expect })
    }
}

/// Parses the status of a task: one character.
///
/// # Errors
/// `Invalid` if the text has several characters.
fn task_status(status: &str) -> Result<char> {
    let mut characters = status.chars();
    characters.next().filter(|_| characters.next().is_none()).ok_or_else(|| {
        Error::invalid(format!("status is {status:?}")).with_hint(
            "Give the one character that is between the brackets of the task: x, or a space for open",
        )
    })
}

fn edit(store: &Store, input: BatchInput) -> Result<Answer> {
    store.index().refresh()?;
    if input.edits.is_empty() || input.edits.len() > MAX_EDITS {
        return Err(Error::invalid(format!("edit_notes got {} edits", input.edits.len()))
            .with_hint(format!("Give 1 to {MAX_EDITS} in one call")));
    }
    let edits = input.edits.into_iter().enumerate().map(|(at, edit)| edit.request(at + 1));
    let operation = Operation::EditMany(edits.collect::<Result<_>>()?);
    ChangeOutput::new(&store.changes().change(&operation, input.dry_run)?).into_answer()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PartKindInput {
    Tag,
    Property,
    Heading,
    Block,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RenameInput {
    kind: PartKindInput,
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
        PartKindInput::Tag | PartKindInput::Property => {
            if note.is_some() {
                return Err(Error::invalid("a tag or property is renamed in all notes").with_hint(
                    "Leave note out; edit_notes changes the tags and properties of single notes",
                ));
            }
            let kind = if kind == PartKindInput::Tag { RenameKind::Tag } else { RenameKind::Property };
            Operation::RenameEverywhere(RenameRequest { kind, old, new })
        }
        PartKindInput::Heading | PartKindInput::Block => {
            let note = note.ok_or_else(|| {
                Error::invalid("rename_part needs the note of a heading or block").with_hint(
                    r#"A valid call: {"kind": "heading", "note": "Boat", "old": "Plan", "new": "Plans"}"#,
                )
            })?;
            let kind = if kind == PartKindInput::Heading { PartKind::Heading } else { PartKind::Block };
            Operation::RenamePart(PartRequest { note, kind, old, new, force: false })
        }
    };
    ChangeOutput::new(&store.changes().change(&operation, dry_run)?).into_answer()
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
    let request = MergeRequest { from: vec![input.from], into: input.into, ..MergeRequest::default() };
    ChangeOutput::new(&store.changes().change(&Operation::Merge(request), input.dry_run)?).into_answer()
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
    ChangeOutput::new(&store.changes().change(&Operation::Extract(request), input.dry_run)?).into_answer()
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
    #[schemars(extend("x-place" = true))]
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
        folder: input.folder.map(folder_only),
        template: input.template,
        daily: input.daily,
        ..NewRequest::default()
    };
    let reply = store.changes().change(&Operation::New(new), input.dry_run)?;
    ChangeOutput::new(&reply).into_answer()
}

#[derive(Debug, Deserialize, JsonSchema)]
struct OutlineInput {
    note: String,
    cursor: Option<String>,
}

/// A heading, block or task, with its line.
#[derive(Debug, Serialize)]
struct OutlineItem {
    line: usize,
    /// The level of a heading, from 1 to 6.
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
    let start = parse_cursor(input.cursor.as_deref())?;
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
    let mut text = text_line(&note.path);
    for (kind, item) in page {
        let sign = match (item.level, item.status) {
            (Some(level), _) => "#".repeat(usize::from(level)),
            (None, Some(status)) => format!("[{status}]"),
            (None, None) => "^".to_owned(),
        };
        text.push_str(&text_line(&format!("{}: {sign} {}", item.line, item.text)));
        match kind {
            "heading" => headings.push(item),
            "block" => blocks.push(item),
            _ => tasks.push(item),
        }
    }
    let output = OutlineOutput { path: note.path, hash: note.hash, headings, blocks, tasks, next_cursor };
    Answer::text(with_cursor(text, output.next_cursor.as_deref())).with_structured(&output)
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
    #[schemars(extend("x-comma-list" = true))]
    fields: Vec<String>,
    folder: Option<String>,
    #[serde(default)]
    #[schemars(extend("x-comma-list" = true))]
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
    /// The filters that no note meets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
}

fn query(store: &Store, input: QueryInput) -> Result<Answer> {
    let start = parse_cursor(input.cursor.as_deref())?;
    let limit = within("limit", input.limit.unwrap_or(100), 1, 500)?;
    store.index().refresh()?;
    let property = input.property.as_deref().map(PropertyCondition::parse).transpose()?;
    let filter =
        Filter { folder: input.folder, tags: input.tags, note_type: input.note_type, ..Filter::default() };
    let sort = match input.sort {
        None | Some(OrderInput::Path) => SortBy::Path,
        Some(OrderInput::Title) => SortBy::Title,
        Some(OrderInput::Created) => SortBy::Created,
        Some(OrderInput::Updated) => SortBy::Updated,
    };
    let request = ListRequest {
        filter: filter.clone(),
        property: property.clone(),
        sort,
        skip: start,
        limit: Some(limit),
        ..ListRequest::default()
    };
    let (found, total) = store.reads().fields(&request, &input.fields)?;
    let (notes, _) = page(found, 0, |note| {
        note.path.len() + note.title.len() + Value::Object(note.fields.clone()).to_string().len() + 40
    });
    let next = start + notes.len();
    let next_cursor = (next < total).then(|| next.to_string());
    let lines = notes.iter().map(|note| text_line(&format!("{}  {}", note.path, shown(&note.fields))));
    let mut text = with_cursor(lines.collect(), next_cursor.as_deref());
    if notes.is_empty() {
        text.push_str(&format!("{total} notes\n"));
    }
    let absent = match total {
        0 => store.reads().absent(&filter, property.as_ref(), None)?,
        _ => Vec::new(),
    };
    absent.iter().for_each(|notice| text.push_str(&format!("notice: {notice}\n")));
    Answer::text(text).with_structured(&QueryOutput { notes, total, next_cursor, notices: absent })
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
    #[schemars(extend("x-comma-list" = true))]
    codes: Vec<String>,
    /// Notes or folders
    #[serde(default)]
    paths: Vec<String>,
    /// The least; info
    severity: Option<SeverityInput>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SeverityInput {
    Info,
    Warning,
    Error,
}

impl From<SeverityInput> for Severity {
    fn from(severity: SeverityInput) -> Self {
        match severity {
            SeverityInput::Info => Self::Info,
            SeverityInput::Warning => Self::Warning,
            SeverityInput::Error => Self::Error,
        }
    }
}

#[derive(Debug, Serialize)]
struct CheckOutput {
    problems: Vec<Problem>,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

fn check(store: &Store, input: CheckInput) -> Result<Answer> {
    let start = parse_cursor(input.cursor.as_deref())?;
    if let Some(unknown) =
        input.codes.iter().find(|code| !PROBLEM_CODES.iter().any(|known| known.code == **code))
    {
        let codes: Vec<&str> = PROBLEM_CODES.iter().map(|known| known.code).collect();
        return Err(Error::invalid(format!("there is no problem code {unknown:?}"))
            .with_hint(format!("The codes are {}", codes.join(", "))));
    }
    let paths = typed_paths(&input.paths);
    let request = CheckRequest { paths: (!paths.is_empty()).then_some(paths), ..CheckRequest::default() };
    let mut problems = store.upkeep().check_with(&request)?.problems;
    let least = input.severity.map_or(Severity::Info, Severity::from);
    problems.retain(|problem| {
        let is_meant = input.codes.is_empty() || input.codes.iter().any(|code| code == problem.code);
        is_meant && problem.severity >= least
    });
    let total = problems.len();
    let (mut problems, mut next_cursor) =
        page(problems, start, |problem| problem.path.len() + problem.message.len() + 240);
    let limit = input.limit.map(|limit| within("limit", limit, 1, 500)).transpose()?;
    if let Some(limit) = limit.filter(|limit| *limit < problems.len()) {
        problems.truncate(limit);
        next_cursor = Some((start + limit).to_string());
    }
    let lines = problems.iter().map(|problem| {
        text_line(&format!("{}:{}: {} ({})", problem.path, problem.line, problem.message, problem.code))
    });
    let mut text: String = lines.collect();
    if text.is_empty() {
        text.push_str("no problems\n");
    }
    Answer::text(with_cursor(text, next_cursor.as_deref())).with_structured(&CheckOutput {
        problems,
        total,
        next_cursor,
    })
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum LeastCertaintyInput {
    Certain,
    Strong,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RepairInput {
    /// Only links in these notes and folders
    #[serde(default)]
    paths: Vec<String>,
    /// Repair links of at least this certainty
    apply: Option<LeastCertaintyInput>,
    #[serde(default)]
    dry_run: bool,
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct RepairOutput {
    links: Vec<RepairItem>,
    total: usize,
    unexplained: usize,
    repaired: usize,
    applied: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
    /// What could not be repaired, and what was no evidence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

fn repair(store: &Store, input: RepairInput) -> Result<Answer> {
    let start = parse_cursor(input.cursor.as_deref())?;
    let request = RepairRequest {
        paths: typed_paths(&input.paths),
        apply: input.apply.map(|least| match least {
            LeastCertaintyInput::Certain => Certainty::Certain,
            LeastCertaintyInput::Strong => Certainty::Strong,
        }),
        dry_run: input.dry_run,
        ..RepairRequest::default()
    };
    let reply = store.repairs().repair(&request)?;
    let total = reply.links.len();
    let (links, next_cursor) =
        page(reply.links, start, |item| item.path.len() + item.link.len() + 160 * (1 + item.evidence.len()));
    let mut text: String = links.iter().map(repair_line).collect();
    let repaired = reply.repaired;
    text.push_str(&match reply.change.applied {
        true => format!("{repaired} links repaired\n"),
        false => format!("{repaired} links would follow\n"),
    });
    let remarks = reply.change.plan.remarks.iter().map(ToString::to_string);
    let notices: Vec<String> = remarks.chain(reply.change.notices).collect();
    for notice in &notices {
        text.push_str(&format!("{notice}\n"));
    }
    Answer::text(with_cursor(text, next_cursor.as_deref())).with_structured(&RepairOutput {
        links,
        total,
        unexplained: reply.unexplained,
        repaired,
        applied: reply.change.applied,
        operation_id: reply.change.id,
        notices,
        next_cursor,
    })
}

/// Formats what one link meant.
fn repair_line(item: &RepairItem) -> String {
    let place = format!("{}:{}: {}", item.path, item.line, item.link);
    match (&item.to, &item.deleted) {
        (Some(to), _) => {
            let certainty = item.certainty.map_or("weak", Certainty::name);
            let why = item.evidence.first().map_or("", |evidence| evidence.detail.as_str());
            let new = item.new_link.as_deref().map_or(String::new(), |new| format!(", written {new}"));
            let anchor = match &item.dead_anchor {
                Some(anchor) => format!("; {to} has no {anchor}, so the link still breaks"),
                None => String::new(),
            };
            text_line(&format!("{place} -> {to}{new} ({certainty}: {why}){anchor}"))
        }
        (None, Some(by)) => text_line(&format!("{place}: its file was deleted by {by}")),
        (None, None) => {
            let targets: Vec<&str> = item.evidence.iter().map(|evidence| evidence.to.as_str()).collect();
            text_line(&format!("{place} could mean {}", targets.join(" or ")))
        }
    }
}

/// Normalizes the notes and folders to which a call is limited. The root of the vault is no limit.
fn typed_paths(paths: &[String]) -> Vec<String> {
    let typed: Vec<String> = paths.iter().map(|path| typed_path(path)).collect();
    if typed.iter().any(String::is_empty) { Vec::new() } else { typed }
}

/// Returns the items from `start` on that a reply has room for, at least one, and the cursor of the next page.
fn page<T>(items: Vec<T>, start: usize, len: impl Fn(&T) -> usize) -> (Vec<T>, Option<String>) {
    let total = items.len();
    let mut room = TARGET_LENGTH;
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
