//! Plans the edit of one note's text or properties, or of several as one operation.

use serde_json::Value;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_markdown::edit::{ChangeSet, ContentHash, Edit, Remark, apply};
use sidenote_markdown::frontmatter::edit;
use sidenote_markdown::frontmatter::edit::Refusal;
use sidenote_markdown::note::{Note, Task};
use sidenote_markdown::path::key;
use sidenote_markdown::piece_table::PieceTable;
use sidenote_markdown::source_edit::source_edits;
use sidenote_markdown::tag::tag_name;
use sidenote_markdown::tag_conversion::{ORIGINALS, StoredTags, sanitize};
use sidenote_markdown::{body_edit, tag_edit};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::parts::heading;
use sidenote_open_vault::source::{Source, body_of};

use crate::Planner;
use crate::merge_properties::value_of;
use crate::move_files::add_edits;
use crate::properties::{converted, titled};

/// Parses the value of a property as JSON if it is valid JSON, and returns it as text otherwise.
pub fn json_or_text(value: &str) -> Value {
    match serde_json::from_str::<Value>(value) {
        // A number that JSON would write differently is text: a version such as 1.10, or an id with many digits.
        Ok(Value::Number(number)) if number.to_string() != value => Value::from(value),
        Ok(parsed) => parsed,
        Err(_) => Value::from(value),
    }
}

/// A change of a note's text or properties.
#[derive(Debug, Clone)]
pub enum NoteEdit {
    /// Appends text to the note, or to the section of a heading.
    Append(String, Option<String>),
    /// Inserts text at the beginning: after the frontmatter, or after a heading.
    Prepend(String, Option<String>),
    /// Replaces a text.
    Replace {
        /// The text to replace.
        old: String,
        /// The new text.
        new: String,
        /// The number of times that the text must occur.
        count: usize,
    },
    /// Replaces the matches of a regular expression in the body.
    ReplacePattern {
        /// The expression, in the syntax of the `regex` crate.
        pattern: String,
        /// The new text. `$1` is what the first group matched.
        new: String,
        /// The number of matches that there must be. Without it, any number is accepted.
        count: Option<usize>,
    },
    /// Replaces the text of a section, given by its heading.
    ReplaceSection(String, String),
    /// Sets a property.
    Set(String, Value),
    /// Removes a property.
    Unset(String),
    /// Adds an item to a list property.
    Add(String, Value),
    /// Changes the status of a task.
    Task {
        /// The line, counted from 1, or a part of the text that only one task has.
        task: String,
        /// The new status. Without it, an open task is completed, and any other task is opened again.
        status: Option<char>,
    },
    /// Adds and removes tags in the property `tags`.
    Tags {
        /// The tags to add.
        add: Vec<String>,
        /// The tags to remove.
        remove: Vec<String>,
    },
    /// Replaces the whole source, properties included, by what an editor made of it. The line ends of the note are kept where
    /// the new source has no carriage return.
    Source(String),
}

/// An edit of a note.
#[derive(Debug, Clone)]
pub struct EditRequest {
    /// The note, by any of its names.
    pub note: String,
    /// The change.
    pub edit: NoteEdit,
    /// The hash that the note must have before the edit.
    pub expect: Option<ContentHash>,
}

impl NoteEdit {
    fn operation(&self) -> &'static str {
        match self {
            Self::Append(..) => "append",
            Self::Prepend(..) => "prepend",
            Self::Replace { .. } | Self::ReplacePattern { .. } | Self::ReplaceSection(..) => "replace",
            Self::Set(..) => "set",
            Self::Unset(..) => "unset",
            Self::Add(..) => "add",
            Self::Task { .. } => "task",
            Self::Tags { .. } => "tag",
            Self::Source(_) => "edit",
        }
    }
}

impl Planner<'_> {
    /// Plans an edit of a note.
    ///
    /// # Errors
    /// `Conflict` if the note has another hash than expected; `Invalid`, with a code of docs/spec/obsidian.md 4.7, if
    /// the edit cannot be made safely; `NotFound` if there is no such section or text.
    pub(super) fn plan_edit(&self, view: &View<'_>, request: &EditRequest) -> Result<ChangeSet> {
        let source = editable(view, request)?;
        let path = source.path.clone();
        let edits = edits_of(&source, &request.edit)?;
        let remarks = remarks_of(&source, &request.edit, &edits);
        let mut plan = ChangeSet::new(request.edit.operation());
        if matches!(
            request.edit,
            NoteEdit::Replace { .. } | NoteEdit::ReplacePattern { .. } | NoteEdit::ReplaceSection(..)
        ) {
            let text = apply(source.text.as_bytes(), &edits)?;
            // Text that is removed from a memory must not stay in a file name that was made from it.
            if let Some(title) = self.retitled(&source, Some(&body_of(&text))) {
                let to = self.retitled_place(&path, &title)?;
                self.plan_text(view, &mut plan, &source, &to, |followed| {
                    let edits =
                        edits_of(&Source::unplaced(path.clone(), followed.as_bytes()), &request.edit)?;
                    let text = String::from_utf8(apply(followed.as_bytes(), &edits)?).map_err(|error| {
                        Error::internal("an edit produced invalid UTF-8").with_source(error)
                    })?;
                    titled(text, &to, &title)
                })?;
                return Ok(plan);
            }
        }
        add_edits(&mut plan, &source, None, edits, remarks);
        Ok(plan)
    }

    /// Plans edits of any number of notes as one operation, of which either all are applied or none. Edits of the same
    /// note are made in order, each on the result of the one before. Expected hashes are those before the operation.
    ///
    /// # Errors
    /// `Conflict` if a note has another hash than expected; `Invalid` if an edit cannot be made safely; `NotFound` if
    /// there is no such note, section or text. The message names the number of the edit.
    pub(super) fn plan_edits(&self, view: &View<'_>, requests: &[EditRequest]) -> Result<ChangeSet> {
        let mut sources: Vec<(Source, Vec<(usize, &NoteEdit)>)> = Vec::new();
        let numbered = |at: usize, error: Error| error.of(&format!("edit {} of {}", at + 1, requests.len()));
        for (at, request) in requests.iter().enumerate() {
            let source = editable(view, request).map_err(|error| numbered(at, error))?;
            match sources.iter_mut().find(|(known, _)| known.path == source.path) {
                Some((_, edits)) => edits.push((at, &request.edit)),
                None => sources.push((source, vec![(at, &request.edit)])),
            }
        }
        let mut plan = ChangeSet::new("edit");
        for (source, edits) in sources {
            let mut remarks = Vec::new();
            let mut table = PieceTable::new(&source.text);
            let mut current = Source::unplaced(source.path.clone(), source.text.as_bytes());
            for (at, edit) in edits {
                let edits = edits_of(&current, edit).map_err(|error| numbered(at, error))?;
                remarks.extend(remarks_of(&current, edit, &edits));
                table.apply(&edits)?;
                current = Source::unplaced(source.path.clone(), table.text().as_bytes());
            }
            add_edits(&mut plan, &source, None, table.edits(), remarks);
        }
        Ok(plan)
    }
}

/// Returns remarks about tags that an edit stores in another form, and about added text that is inside an open block.
fn remarks_of(source: &Source, edit: &NoteEdit, edits: &[Edit]) -> Vec<Remark> {
    match edit {
        NoteEdit::Tags { add, .. } => converted(&source.path, &StoredTags::of(&bare(add))),
        NoteEdit::Append(..) | NoteEdit::Prepend(..) => open_block(source, edits).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns a remark if the place of added text is inside a block that is open, such as code without its closing fence.
pub(super) fn open_block(source: &Source, edits: &[Edit]) -> Option<Remark> {
    let added = edits.first()?;
    let what = body_edit::open_block(&source.text, added.span.start)?;
    let message = format!(
        "{what} above is not closed, so the added text is a part of it; close it, then undo and repeat"
    );
    let line = 1 + source.text.get(..added.span.start)?.matches('\n').count();
    Some(source.remark("open-block", line, added.span.start, message))
}

/// Reads the note that an edit is about.
///
/// # Errors
/// `Conflict` if the note has another hash than expected; `Invalid` if its text cannot be edited.
fn editable(view: &View<'_>, request: &EditRequest) -> Result<Source> {
    let path = view.find(&request.note)?;
    let source = view.source(&path)?;
    if request.expect.is_some_and(|expect| expect != source.hash) {
        return Err(Error::new(ErrorKind::Conflict, format!("{path} changed: its hash is {}", source.hash))
            .with_hint("read it again, and repeat the change"));
    }
    if !path.is_note() {
        return Err(Error::invalid(format!("{path} is not a Markdown note, so its text cannot be edited")));
    }
    if let Some(refusal) = source.refusal() {
        return Err(Error::invalid(refusal.to_string()));
    }
    Ok(source)
}

fn edits_of(source: &Source, edit: &NoteEdit) -> Result<Vec<Edit>> {
    let (text, note) = (source.text.as_str(), &source.note);
    let planned = match edit {
        NoteEdit::Append(added, None) => body_edit::append(text, added),
        NoteEdit::Append(added, Some(section)) => {
            body_edit::append_to_section(text, note, heading(note, &source.path, section)?, added)
        }
        NoteEdit::Prepend(added, None) => body_edit::prepend(text, added),
        NoteEdit::Prepend(added, Some(section)) => {
            body_edit::prepend_to_section(text, note, heading(note, &source.path, section)?, added)
        }
        NoteEdit::Replace { old, new, count } => body_edit::replace(text, old, new, Some(*count)),
        NoteEdit::ReplacePattern { pattern, new, count } => {
            body_edit::replace_pattern(text, pattern, new, *count)
        }
        NoteEdit::ReplaceSection(section, new) => {
            let heading = heading(note, &source.path, section)?;
            body_edit::replace_section(text, note, heading, without_heading(note, heading, new))
        }
        NoteEdit::Set(name, value) => edit::set(text, name, &without_signs(name, value)),
        NoteEdit::Unset(name) => edit::unset(text, name),
        NoteEdit::Add(name, value) => edit::add(text, name, &[without_signs(name, value)]),
        NoteEdit::Task { task, status } => return Ok(vec![task_edit(source, task, *status)?]),
        NoteEdit::Tags { add, remove } => return tags(source, add, remove),
        NoteEdit::Source(new) => return Ok(source_edits(text, new)),
    };
    planned.map_err(|refusal| refused(source, &refusal))
}

/// Plans a new status of a task.
fn task_edit(source: &Source, name: &str, status: Option<char>) -> Result<Edit> {
    let tasks = &source.note.tasks;
    let line: Option<usize> = name.trim().parse().ok();
    let wanted = key(name);
    let fits =
        |task: &&Task| line.map_or_else(|| key(&task.text).contains(&wanted), |line| task.line == line);
    let found: Vec<&Task> = tasks.iter().filter(fits).collect();
    let listed = |tasks: &[&Task]| {
        let tasks = tasks.iter().take(12).map(|task| format!("{}: {}", task.line, task.text));
        tasks.collect::<Vec<_>>().join(" / ")
    };
    let task = match found.as_slice() {
        [task] => *task,
        [] => {
            let all: Vec<&Task> = tasks.iter().collect();
            let hint = if all.is_empty() { "the note has no tasks".to_owned() } else { listed(&all) };
            return Err(Error::not_found(format!("{} has no task {name:?}", source.path)).with_hint(hint));
        }
        several => {
            let said = format!("{} tasks of {} hold {name:?}", several.len(), source.path);
            return Err(Error::new(ErrorKind::Exists, said)
                .with_hint(format!("give the line of one: {}", listed(several))));
        }
    };
    let status = status.unwrap_or(if task.status == ' ' { 'x' } else { ' ' });
    if status.is_control() || matches!(status, '[' | ']') {
        return Err(Error::invalid(format!("{status:?} is not a status of a task"))
            .with_hint("a status is one character, such as x, / or a space"));
    }
    let bracket = format!("[{}]", task.status);
    let at = task.span.of(&source.text).find(&bracket);
    let start = task.span.start + 1 + at.ok_or_else(|| Error::internal("a task has no brackets"))?;
    let span = sidenote_markdown::span::Span::new(start, start + task.status.len_utf8());
    Ok(Edit::replace(span, status.to_string()))
}

/// Returns tags without a leading `#`.
fn bare(tags: &[String]) -> Vec<&str> {
    tags.iter().map(|tag| bare_one(tag)).collect()
}

/// Removes the heading of a section from its new text, if the text begins with it.
fn without_heading<'a>(note: &Note, heading: usize, new: &'a str) -> &'a str {
    let begun = Note::parse(new);
    let Some((kept, first)) = note.headings.get(heading).zip(begun.headings.first()) else { return new };
    let opens = new.get(..first.span.start).is_some_and(|before| before.trim().is_empty());
    if !opens || (first.level, &first.text) != (kept.level, &kept.text) {
        return new;
    }
    new.get(first.span.end..).unwrap_or("").trim_start_matches(['\n', '\r'])
}

/// Plans the removal and addition of tags as a single edit.
fn tags(source: &Source, add: &[String], remove: &[String]) -> Result<Vec<Edit>> {
    let mut text = source.text.clone();
    let mut step = |plan: &dyn Fn(&str) -> std::result::Result<Vec<Edit>, Refusal>| -> Result<()> {
        let edits = plan(&text).map_err(|refusal| refused(source, &refusal))?;
        let changed = apply(text.as_bytes(), &edits)?;
        text = String::from_utf8(changed)
            .map_err(|error| Error::internal("an edit produced invalid UTF-8").with_source(error))?;
        Ok(())
    };
    let originals = source.note.frontmatter.as_ref().and_then(|front| front.get(ORIGINALS));
    let originals = originals.and_then(|property| property.value.as_array()).into_iter().flatten();
    let originals: Vec<&str> = originals.filter_map(Value::as_str).collect();
    let mut going: Vec<String> = bare(remove).into_iter().map(str::to_owned).collect();
    if !going.is_empty() {
        let names: Vec<String> = going.iter().map(|tag| key(tag)).collect();
        let goes = |original: &str| names.contains(&key(bare_one(original)));
        let (gone, kept): (Vec<&str>, Vec<&str>) = originals.into_iter().partition(|text| goes(text));
        // A tag stays if another original is stored as the same tag.
        let stays: Vec<String> = kept.iter().filter_map(|text| sanitize(text)).collect();
        going.extend(gone.iter().filter_map(|text| sanitize(text)).filter(|tag| !stays.contains(tag)));
        let going: Vec<&str> = going.iter().map(String::as_str).collect();
        step(&|text| tag_edit::remove_tags(text, &going))?;
        step(&|text| edit::remove_items(text, ORIGINALS, |item| item.as_str().is_some_and(goes)))?;
    }
    let coming = StoredTags::of(&bare(add));
    if !coming.tags.is_empty() {
        let tags: Vec<&str> = coming.tags.iter().map(String::as_str).collect();
        step(&|text| tag_edit::add_tags(text, &tags))?;
    }
    if !coming.originals.is_empty() {
        let held = value_of(&source.text, ORIGINALS);
        let is_held = |text: &&String| {
            let held = held.as_ref().and_then(Value::as_array).into_iter().flatten();
            held.filter_map(Value::as_str).any(|held| held == text.as_str())
        };
        let new: Vec<Value> =
            coming.originals.iter().filter(|text| !is_held(text)).map(|text| text.as_str().into()).collect();
        step(&|text| edit::add(text, ORIGINALS, &new))?;
    }
    Ok(sidenote_markdown::edit::single_edit(&source.text, &text).into_iter().collect())
}

/// Returns the value of a property as it is written: tags in `tags` have no `#`.
fn without_signs(name: &str, value: &Value) -> Value {
    if key(name) != "tags" {
        return value.clone();
    }
    match value {
        Value::String(tag) => tag_name(tag).map_or_else(|| value.clone(), Value::from),
        Value::Array(tags) => tags.iter().map(|tag| without_signs(name, tag)).collect(),
        other => other.clone(),
    }
}

fn bare_one(tag: &str) -> &str {
    tag.trim().trim_start_matches('#')
}

fn refused(source: &Source, refusal: &Refusal) -> Error {
    let remark = refusal.remark(source.path.clone(), &source.text);
    let kind = match refusal.code {
        "text-not-found" | "no-heading" => ErrorKind::NotFound,
        _ => ErrorKind::Invalid,
    };
    Error::new(kind, remark.to_string())
}
