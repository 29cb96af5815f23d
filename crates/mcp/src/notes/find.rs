//! The tools that find and read notes: `search_notes`, `read_note` and `list_notes`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{Filter, Inactive};
use sidenote_language::graphemes::{beginning, shortened};
use sidenote_markdown::control::plain_lines;
use sidenote_markdown::media_type::{is_shown_image, media_type};
use sidenote_memory::validity::Invalidity;
use sidenote_search::Mode;
use sidenote_store::{
    Attachment, Fallback, FileContent, FileItem, Intent, ListRequest, Memory, MemoryListRequest,
    MemoryRanking, MemorySort, NoteItem, PropertyCondition, ReadReply, ReadRequest, RelationStatement,
    SearchRequest, Searches, SortBy, Store, Tier,
};

use super::super::error_text::message_for_agent;
use super::super::resources::uri_of;
use super::super::tool::{Answer, IntentInput, text_line, within};
use super::TARGET_LENGTH;
use super::named_lines::{MAX_POSITION, place_of};
use crate::reply_limit::{json_char_length, json_length, json_value_length};

/// The largest number of characters that the links of a note take in a reply.
const MAX_LINKS_LENGTH: usize = 2_500;
/// The largest number of characters that the frontmatter of a note takes in a reply.
const MAX_FRONTMATTER_LENGTH: usize = 4_000;
/// The largest number of notes that a reply names as not read, and as left out.
const MAX_NAMED: usize = 50;
/// The most characters that a reply repeats of such a name.
const MAX_NAME_SHOWN: usize = 200;
/// The largest image that is shown, in bytes. Larger ones are only named.
const MAX_IMAGE: u64 = 3 << 20;
/// The tools that hints may name, because every server with these tools has them.
const ALWAYS_SERVED: [&str; 5] = ["search_notes", "read_note", "list_notes", "explore_links", "read_session"];

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum TierInput {
    Hot,
    Warm,
    Cold,
    Archive,
}

impl TierInput {
    fn tier(self) -> Tier {
        match self {
            Self::Hot => Tier::Hot,
            Self::Warm => Tier::Warm,
            Self::Cold => Tier::Cold,
            Self::Archive => Tier::Archive,
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ModeInput {
    Hybrid,
    Bm25,
    Vector,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum IncludeInput {
    Forgotten,
    Archived,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DetailInput {
    Concise,
    Full,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SearchInput {
    /// Words, or Obsidian's search syntax
    query: String,
    mode: Option<ModeInput>,
    intent: Option<IntentInput>,
    #[serde(default)]
    #[schemars(extend("x-comma-list" = true))]
    tags: Vec<String>,
    #[serde(rename = "type")]
    note_type: Option<String>,
    category: Option<String>,
    /// Glob or folder
    path: Option<String>,
    /// 2026-11-21
    created_after: Option<String>,
    created_before: Option<String>,
    updated_after: Option<String>,
    updated_before: Option<String>,
    as_of: Option<String>,
    tier: Option<TierInput>,
    #[serde(default)]
    include: Vec<IncludeInput>,
    limit: Option<usize>,
    cursor: Option<String>,
    detail: Option<DetailInput>,
    #[serde(default)]
    explain: bool,
}

impl SearchInput {
    fn request(&self, limit: usize, skip: usize, now: Timestamp) -> Result<SearchRequest> {
        Ok(SearchRequest {
            query: self.query.clone(),
            mode: self.mode.map(|mode| match mode {
                ModeInput::Hybrid => Mode::Hybrid,
                ModeInput::Bm25 => Mode::Bm25,
                ModeInput::Vector => Mode::Vector,
            }),
            limit: Some(limit),
            skip,
            filter: Filter {
                tags: self.tags.clone(),
                note_type: self.note_type.clone(),
                category: self.category.clone(),
                created_after: Searches::date_bound("created_after", self.created_after.as_deref(), now)?,
                created_before: Searches::date_bound("created_before", self.created_before.as_deref(), now)?,
                updated_after: Searches::date_bound("updated_after", self.updated_after.as_deref(), now)?,
                updated_before: Searches::date_bound("updated_before", self.updated_before.as_deref(), now)?,
                ..Filter::default()
            },
            include: Inactive {
                forgotten: self.include.contains(&IncludeInput::Forgotten),
                archived: self.include.contains(&IncludeInput::Archived),
            },
            path: self.path.clone(),
            as_of: Searches::as_of("as_of", self.as_of.as_deref(), now)?,
            explain: self.explain,
            // An agent may hand over a person's message, whose signs mean nothing.
            fallback: Fallback::IfEmptyOrInvalid,
            memories: (self.intent.is_some() || self.tier.is_some()).then(|| MemoryRanking {
                intent: self.intent.map(Intent::from),
                tier: self.tier.map(TierInput::tier),
                seed: None,
            }),
            ..SearchRequest::default()
        })
    }
}

#[derive(Debug, Serialize)]
pub(super) struct SearchOutput {
    results: Vec<FoundOutput>,
    mode: String,
    /// Whether files changed that the index does not contain yet.
    stale: bool,
    /// The number of passages without a vector.
    pending: usize,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stages: Vec<sidenote_search::stage::Stage>,
    /// Notices about what the results lack.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FoundOutput {
    path: String,
    id: String,
    title: String,
    heading: String,
    lines: [usize; 2],
    snippet: String,
    score: f64,
    match_type: String,
    #[serde(flatten)]
    invalidity: Invalidity,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReadInput {
    /// Paths, ids, titles, aliases or wikilinks
    notes: Vec<String>,
    /// Heading or ^block
    section: Option<String>,
    first_line: Option<usize>,
    last_line: Option<usize>,
    first_column: Option<usize>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct ReadOutput {
    notes: Vec<NoteOutput>,
    /// Files other than text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileOutput>,
    /// The notes that could not be read, each with its error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FailedOutput>,
    /// The notes for which the reply had no room, to be read by another call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    truncated: bool,
}

#[derive(Debug, Serialize)]
struct FileOutput {
    path: String,
    media_type: &'static str,
    bytes: u64,
    updated: String,
    /// The resource that gives its bytes.
    uri: String,
    /// Why a file that could have text has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct FailedOutput {
    note: String,
    error: String,
}

#[derive(Debug, Serialize)]
struct NoteOutput {
    path: String,
    id: String,
    title: String,
    /// BLAKE3 of the file.
    hash: String,
    lines: [usize; 2],
    text: String,
    frontmatter: Option<Map<String, Value>>,
    /// Paths of the notes that this note links to.
    outgoing: Vec<String>,
    /// The links of other notes to this one, as `path:line`.
    backlinks: Vec<String>,
    /// The line to continue from, if the text was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<usize>,
    /// The column to continue from, if the line itself was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_column: Option<usize>,
    /// Notices about what the text does not show as it is in the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ListKindInput {
    #[default]
    Notes,
    Tags,
    Properties,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListInput {
    what: Option<ListKindInput>,
    folder: Option<String>,
    #[serde(default)]
    #[schemars(extend("x-comma-list" = true))]
    tags: Vec<String>,
    #[serde(rename = "type")]
    note_type: Option<String>,
    tier: Option<TierInput>,
    /// status=active
    property: Option<String>,
    created_after: Option<String>,
    created_before: Option<String>,
    /// today, 7d, 2026-11-21
    updated_after: Option<String>,
    updated_before: Option<String>,
    /// Made near this note
    around: Option<String>,
    window: Option<usize>,
    sort: Option<SortInput>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SortInput {
    Path,
    Title,
    Created,
    Updated,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct ListOutput {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<ListedOutput>,
    /// Tags or properties, each with its number of notes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counts: Vec<CountOutput>,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// The filters that no note meets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ListedOutput {
    path: String,
    id: String,
    title: String,
    created: String,
    updated: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<String>,
}

#[derive(Debug, Serialize)]
struct CountOutput {
    name: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    notes: usize,
}

/// Parses a cursor as the offset of a page.
///
/// # Errors
/// `Invalid` if the text is not a cursor.
pub(super) fn parse_cursor(cursor: Option<&str>) -> Result<usize> {
    cursor.map_or(Ok(0), |text| {
        text.parse().ok().filter(|start| *start <= MAX_POSITION).ok_or_else(|| {
            Error::invalid(format!("{text:?} is not a cursor"))
                .with_hint("Give next_cursor of the page before, or omit cursor for the first page")
        })
    })
}

pub(super) fn search(store: &Store, input: SearchInput) -> Result<Answer> {
    let start = parse_cursor(input.cursor.as_deref())?;
    let limit = within("limit", input.limit.unwrap_or(10), 1, 100)?;
    // One more result than asked for shows whether there is a next page.
    let found = store.searches().search(&input.request(limit + 1, start, store.now())?)?;
    let more = found.results.len() > limit;
    let mut results = Vec::new();
    let mut used = 0;
    let mut truncated = false;
    for result in found.results.into_iter().take(limit) {
        let explain = match result.intent_score.filter(|_| input.explain) {
            Some(parts) => serde_json::to_value(parts).ok(),
            None => result.explain.and_then(|parts| serde_json::to_value(parts).ok()),
        };
        let snippet = match input.detail {
            Some(DetailInput::Full) => {
                let lines = Some(result.lines);
                let read =
                    store.reads().read(&ReadRequest { note: result.path.clone(), section: None, lines });
                // The note may have become shorter since it was found.
                TruncatedText::new(read.map_or(result.snippet, |reply| reply.text), TARGET_LENGTH / 2, 1, 1)
                    .text
            }
            // What another note states about this one says more than a passage of it.
            _ => match result.statement.filter(|statement| statement.path != result.path) {
                Some(RelationStatement { path, line, text }) => format!("{path}:{line}: {text}"),
                None => result.snippet,
            },
        };
        used += json_length(&snippet) + json_length(&result.title) + result.path.len() + result.id.len();
        used += json_length(&result.heading) + explain.as_ref().map_or(0, json_value_length) + 160;
        if used > TARGET_LENGTH && !results.is_empty() {
            truncated = true;
            break;
        }
        results.push(FoundOutput {
            path: result.path,
            id: result.id,
            title: result.title,
            heading: result.heading,
            lines: result.lines.into(),
            snippet,
            score: f64::from(result.score),
            match_type: format!("{:?}", result.match_type).to_lowercase(),
            invalidity: result.invalidity,
            explain,
        });
    }
    let next = start + results.len();
    let output = SearchOutput {
        next_cursor: (more || truncated).then(|| next.to_string()),
        results,
        mode: format!("{:?}", found.mode).to_lowercase(),
        stale: found.stale,
        pending: found.pending,
        truncated,
        stages: found.explain.map_or_else(Vec::new, |explain| explain.stages),
        notes: found
            .notes
            .iter()
            .map(|note| note.for_agent(|tool| ALWAYS_SERVED.contains(&tool)))
            .chain(found.did_you_mean.map(|better| format!("did you mean: {better}")))
            .collect(),
    };
    Answer::text(format_search(&output)).with_structured(&output)
}

fn format_search(output: &SearchOutput) -> String {
    let mut text: String = output.notes.iter().map(|note| format!("notice: {note}\n")).collect();
    for found in &output.results {
        let [first, last] = found.lines;
        let invalid = found.invalidity.phrase();
        let invalid = if invalid.is_empty() { invalid } else { format!("  ({invalid})") };
        text.push_str(&text_line(&format!("{}:{first}-{last}  {}{invalid}", found.path, found.title)));
        text.push_str(&format!("{}\n\n", found.snippet));
    }
    if output.results.is_empty() {
        text.push_str("nothing found\n");
    }
    if output.stale {
        text.push_str("notice: some changed files are not in the index yet\n");
    }
    if let Some(cursor) = &output.next_cursor {
        text.push_str(&format!("more with cursor {cursor}\n"));
    }
    text
}

pub(super) fn read(store: &Store, input: ReadInput) -> Result<Answer> {
    let names = input.notes;
    if names.is_empty() {
        return Err(Error::invalid("read_note: notes is empty")
            .with_hint(r#"Name at least one. A valid call: {"notes": ["Projects/Boat.md"]}"#));
    }
    store.index().refresh()?;
    let lines = match (input.first_line, input.last_line) {
        (None, None) => None,
        (first, last) => {
            let first = within("first_line", first.unwrap_or(1), 1, MAX_POSITION)?;
            Some((first, within("last_line", last.unwrap_or(MAX_POSITION), first, MAX_POSITION)?))
        }
    };
    let column = within("first_column", input.first_column.unwrap_or(1), 1, usize::MAX)?;
    let is_one = names.len() == 1;
    let mut output = ReadOutput::default();
    let mut images = Vec::new();
    let mut left = TARGET_LENGTH;
    for name in names {
        if left == 0 && output.notes.len() + output.files.len() >= MAX_NAMED {
            output.truncated = true;
            if output.left_out.len() < MAX_NAMED {
                output.left_out.push(shortened(&name, MAX_NAME_SHOWN));
            }
            continue;
        }
        let is_range_free = lines.is_none() && input.section.is_none();
        let place = place_of(&name).filter(|_| is_range_free && store.lookup().find(&name).is_err());
        let (note, lines) = match place {
            Some((note, range)) => (note.to_owned(), Some(range)),
            None => (name.clone(), lines),
        };
        let request = ReadRequest { note, section: input.section.clone(), lines };
        match read_item(store, &request, column, left) {
            Ok(ReadItem::Note(note)) => {
                left = left.saturating_sub(json_length(&note.text));
                output.truncated |= note.next_line.is_some();
                output.notes.push(*note);
            }
            Ok(ReadItem::File(file, image)) => {
                if let Some(image) = image.filter(|_| images.is_empty() || !is_one) {
                    images.push((image, file.media_type));
                }
                output.files.push(file);
            }
            Err(error) if is_one => return Err(error),
            Err(error) if output.errors.len() < MAX_NAMED => {
                let error = plain_lines(&message_for_agent(&error, |tool| ALWAYS_SERVED.contains(&tool)));
                output.errors.push(FailedOutput { note: shortened(&name, MAX_NAME_SHOWN), error });
            }
            Err(_) => output.truncated = true,
        }
    }
    if let (true, true, Some(failed)) =
        (output.notes.is_empty(), output.files.is_empty(), output.errors.first())
    {
        return Ok(Answer::error(failed.error.clone()));
    }
    let mut answer = Answer::text(format_read(&output)).with_structured(&output)?;
    let mut bytes = MAX_IMAGE;
    for (image, media_type) in images {
        // The limit holds for the sum of all images.
        let size = image.len() as u64;
        if size <= bytes {
            bytes -= size;
            answer = answer.with_image(&image, media_type);
        }
    }
    Ok(answer)
}

/// A file that was read.
enum ReadItem {
    Note(Box<NoteOutput>),
    /// A file other than text, with its bytes if they are to be shown.
    File(FileOutput, Option<Vec<u8>>),
}

fn read_item(store: &Store, request: &ReadRequest, column: usize, left: usize) -> Result<ReadItem> {
    if let Some(Attachment { file, content, problem }) = store.reads().attachment(&request.note, MAX_IMAGE)? {
        let kind = media_type(&file.path);
        return Ok(match content {
            FileContent::Text(text) => {
                let text_reply = read_text_file(&file, text, request.lines)?;
                ReadItem::Note(Box::new(note_output(text_reply, column, left)))
            }
            FileContent::Bytes(bytes) if is_shown_image(kind) => {
                ReadItem::File(FileOutput::of(file, problem), Some(bytes))
            }
            FileContent::Bytes(_) | FileContent::TooLarge => {
                ReadItem::File(FileOutput::of(file, problem), None)
            }
        });
    }
    let reply = store.reads().read(request)?;
    store.memories().record_use(&reply.path, "read");
    note_output_with_links(store, reply, column, left).map(|note| ReadItem::Note(Box::new(note)))
}

impl FileOutput {
    fn of(file: FileItem, problem: Option<String>) -> Self {
        Self {
            problem,
            media_type: media_type(&file.path),
            bytes: file.size,
            updated: file.updated.local_rfc3339(),
            uri: uri_of("", &file.path),
            path: file.path,
        }
    }
}

/// Returns a range of lines of a text file other than a note.
///
/// # Errors
/// `Invalid` if the file ends before the first line of the range.
fn read_text_file(file: &FileItem, text: String, lines: Option<(usize, usize)>) -> Result<ReadReply> {
    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    let count = text.lines().count().max(1);
    let (first, last) = lines.unwrap_or((1, count));
    if first > count {
        return Err(Error::invalid(format!("{} ends at line {count}; there is no line {first}", file.path)));
    }
    let text: String = text.split_inclusive('\n').skip(first - 1).take(last - first + 1).collect();
    Ok(ReadReply {
        path: file.path.clone(),
        id: String::new(),
        title: String::new(),
        hash,
        lines: (first, last.min(count)),
        text,
        notices: Vec::new(),
    })
}

fn note_output(reply: ReadReply, column: usize, left: usize) -> NoteOutput {
    let cut = TruncatedText::new(reply.text, left, reply.lines.0, column);
    let last = match (cut.next_line, cut.next_column) {
        (Some(next), None) => next.saturating_sub(1),
        (Some(next), Some(_)) => next,
        (None, _) => reply.lines.1,
    };
    NoteOutput {
        path: reply.path,
        id: reply.id,
        title: reply.title,
        hash: reply.hash,
        lines: [reply.lines.0, last],
        text: cut.text,
        frontmatter: None,
        outgoing: Vec::new(),
        backlinks: Vec::new(),
        next_line: cut.next_line,
        next_column: cut.next_column,
        notices: reply.notices,
    }
}

fn note_output_with_links(store: &Store, reply: ReadReply, column: usize, left: usize) -> Result<NoteOutput> {
    let (outgoing, backlinks) = store.reads().neighbours(&reply.path)?;
    let frontmatter = store.reads().inspect(&reply.path)?.frontmatter;
    let frontmatter =
        frontmatter.map(Value::Object).filter(|map| json_value_length(map) <= MAX_FRONTMATTER_LENGTH);
    let frontmatter = match frontmatter {
        Some(Value::Object(map)) => Some(map),
        _ => None,
    };
    let backlinks = backlinks.into_iter().map(|(path, line)| format!("{path}:{line}"));
    Ok(NoteOutput {
        frontmatter,
        // A reply without room for the text has none for the links.
        outgoing: take_fitting_texts(outgoing.into_iter(), MAX_LINKS_LENGTH.min(left)),
        backlinks: take_fitting_texts(backlinks, MAX_LINKS_LENGTH.min(left)),
        ..note_output(reply, column, left)
    })
}

/// Takes texts as long as they fit into `left` characters.
fn take_fitting_texts(texts: impl Iterator<Item = String>, mut left: usize) -> Vec<String> {
    let fits = |text: &String| {
        let length = json_length(text) + 1;
        let fits = length <= left;
        left = left.saturating_sub(length);
        fits
    };
    texts.take_while(fits).collect()
}

/// A text, cut to the room that a reply has for it.
pub(super) struct TruncatedText {
    pub(super) text: String,
    /// The line to continue from, if the text was cut.
    pub(super) next_line: Option<usize>,
    /// The column to continue from, if the line itself was cut.
    pub(super) next_column: Option<usize>,
}

impl TruncatedText {
    /// Cuts a text to about `max` characters of JSON: at the end of a line, or within the first line if that alone is too
    /// long. The first line begins at `column`.
    pub(super) fn new(text: String, max: usize, first_line: usize, column: usize) -> Self {
        let text = match text.char_indices().nth(column - 1).filter(|_| column > 1) {
            Some((start, _)) => text.get(start..).unwrap_or("").to_owned(),
            None => text,
        };
        if json_length(&text) <= max {
            return Self { text, next_line: None, next_column: None };
        }
        let (mut end, mut line, mut left) = (0, first_line, max);
        for piece in text.split_inclusive('\n') {
            let length = piece.chars().map(json_char_length).sum::<usize>();
            if length > left {
                break;
            }
            (end, line, left) = (end + piece.len(), line + 1, left - length);
        }
        if end > 0 || max < TARGET_LENGTH / 2 {
            // A line for which there is no room is left to the next call.
            let text = text.get(..end).unwrap_or("").to_owned();
            let next_column = (end == 0 && column > 1).then_some(column);
            return Self { text, next_line: Some(line), next_column };
        }
        let mut taken = 0;
        for c in text.chars() {
            if json_char_length(c) > left {
                break;
            }
            (taken, left) = (taken + 1, left - json_char_length(c));
        }
        let kept = beginning(&text, taken).to_owned();
        let next_column = column + kept.chars().count();
        Self { text: kept, next_line: Some(first_line), next_column: Some(next_column) }
    }
}

fn format_read(output: &ReadOutput) -> String {
    let mut text = String::new();
    for note in &output.notes {
        let [first, last] = note.lines;
        text.push_str(&text_line(&format!("{}:{first}-{last}  hash {}", note.path, note.hash)));
        text.push_str(&format!("{}\n", note.text));
        note.notices.iter().for_each(|notice| text.push_str(&text_line(&format!("notice: {notice}"))));
        match (note.next_line, note.next_column) {
            (Some(next), Some(column)) => {
                text.push_str(&format!("cut here; continue with first_line {next}, first_column {column}\n"));
            }
            (Some(next), None) => text.push_str(&format!("cut here; continue with first_line {next}\n")),
            (None, _) => {}
        }
    }
    for file in &output.files {
        let FileOutput { path, media_type, bytes, uri, problem, .. } = file;
        let problem = problem.as_ref().map(|problem| format!("; {problem}")).unwrap_or_default();
        text.push_str(&text_line(&format!(
            "{path}: {media_type}, {bytes} bytes; read them as the resource {uri}{problem}"
        )));
    }
    for failed in &output.errors {
        text.push_str(&format!("not read: {}\n", failed.error));
    }
    if !output.left_out.is_empty() {
        text.push_str(&text_line(&format!("no room for: {}", output.left_out.join(", "))));
    }
    text
}

pub(super) fn list(store: &Store, input: ListInput) -> Result<Answer> {
    let start = parse_cursor(input.cursor.as_deref())?;
    let limit = within("limit", input.limit.unwrap_or(50), 1, 500)?;
    store.index().refresh()?;
    let counts = |counts: Vec<CountOutput>| {
        let total = counts.len();
        let counts =
            take_fitting(counts.into_iter().skip(start).take(limit), |count| json_length(&count.name) + 60);
        let next = start + counts.len();
        ListOutput {
            counts,
            total,
            next_cursor: (next < total).then(|| next.to_string()),
            ..ListOutput::default()
        }
    };
    let output = match (input.what.unwrap_or_default(), &input.around) {
        (ListKindInput::Tags, _) => {
            let tags = store.reads().tags()?.into_iter();
            counts(tags.map(|item| CountOutput { name: item.tag, kind: None, notes: item.notes }).collect())
        }
        (ListKindInput::Properties, _) => {
            let properties = store.reads().properties()?.into_iter();
            let shown = properties.map(|item| CountOutput {
                name: item.property,
                kind: Some(item.kind),
                notes: item.notes,
            });
            counts(shown.collect())
        }
        (ListKindInput::Notes, Some(around)) => {
            let window = within("window", input.window.unwrap_or(5), 0, 100)?;
            let near = store.memories().timeline(around, window)?.memories.into_iter();
            let notes: Vec<ListedOutput> = near.map(ListedOutput::of_memory).collect();
            let total = notes.len();
            ListOutput {
                notes: take_fitting(notes.into_iter(), listed_json_length),
                total,
                ..ListOutput::default()
            }
        }
        (ListKindInput::Notes, None) => notes(store, &input, start, limit)?,
    };
    let dates = input.shown_dates();
    Answer::text(format_list(&output, dates)).with_structured(&output)
}

/// The dates that a list shows of each note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShownDates {
    None,
    Created,
    Updated,
}

impl ListInput {
    fn filter(&self, now: Timestamp) -> Result<Filter> {
        Ok(Filter {
            folder: self.folder.clone(),
            tags: self.tags.clone(),
            note_type: self.note_type.clone(),
            created_after: Searches::date_bound("created_after", self.created_after.as_deref(), now)?,
            created_before: Searches::date_bound("created_before", self.created_before.as_deref(), now)?,
            updated_after: Searches::date_bound("updated_after", self.updated_after.as_deref(), now)?,
            updated_before: Searches::date_bound("updated_before", self.updated_before.as_deref(), now)?,
            ..Filter::default()
        })
    }

    /// Returns the dates that the order or a filter of the list is about.
    fn shown_dates(&self) -> ShownDates {
        let is_by_update = self.updated_after.is_some() || self.updated_before.is_some();
        let is_by_creation = self.created_after.is_some() || self.created_before.is_some();
        match self.sort {
            Some(SortInput::Updated) => ShownDates::Updated,
            Some(SortInput::Created) => ShownDates::Created,
            _ if is_by_update => ShownDates::Updated,
            _ if is_by_creation || self.around.is_some() => ShownDates::Created,
            _ => ShownDates::None,
        }
    }
}

fn notes(store: &Store, input: &ListInput, start: usize, limit: usize) -> Result<ListOutput> {
    let filter = input.filter(store.now())?;
    let property = input.property.as_deref().map(PropertyCondition::parse).transpose()?;
    let absent = |total: usize| match total {
        0 => store.reads().absent(&filter, property.as_ref(), None),
        _ => Ok(Vec::new()),
    };
    let (listed, total): (Vec<ListedOutput>, usize) = match input.tier {
        Some(tier) => {
            if input.property.is_some() || input.sort.is_some() {
                return Err(Error::invalid("a list by tier cannot be filtered by property or sorted")
                    .with_hint("It is newest first; omit property and sort, or the tier"));
            }
            let request = MemoryListRequest {
                filter: filter.clone(),
                tier: Some(tier.tier()),
                sort: MemorySort::Created,
                ..MemoryListRequest::default()
            };
            let found = store.memories().list(&request)?;
            let total = found.len();
            (found.into_iter().skip(start).take(limit).map(ListedOutput::of_memory).collect(), total)
        }
        None => {
            let page = store.reads().list(&ListRequest {
                filter: filter.clone(),
                property: property.clone(),
                sort: match input.sort {
                    None | Some(SortInput::Path) => SortBy::Path,
                    Some(SortInput::Title) => SortBy::Title,
                    Some(SortInput::Created) => SortBy::Created,
                    Some(SortInput::Updated) => SortBy::Updated,
                },
                skip: start,
                limit: Some(limit),
                ..ListRequest::default()
            })?;
            (page.notes.into_iter().map(ListedOutput::of_note).collect(), page.total)
        }
    };
    let notes = take_fitting(listed.into_iter(), listed_json_length);
    let next = start + notes.len();
    Ok(ListOutput {
        notes,
        total,
        next_cursor: (next < total).then(|| next.to_string()),
        notices: absent(total)?,
        ..ListOutput::default()
    })
}

/// Takes items as long as a reply has room for them, and at least one.
fn take_fitting<T>(items: impl Iterator<Item = T>, length: impl Fn(&T) -> usize) -> Vec<T> {
    let mut used = 0;
    let fits = |item: &T| {
        let is_first = used == 0;
        used += length(item);
        is_first || used <= TARGET_LENGTH
    };
    items.take_while(fits).collect()
}

fn listed_json_length(note: &ListedOutput) -> usize {
    let tags = note.tags.iter().map(|tag| json_length(tag) + 1).sum::<usize>();
    json_length(&note.path) + json_length(&note.title) + json_length(&note.id) + tags + 140
}

impl ListedOutput {
    fn of_note(note: NoteItem) -> Self {
        Self {
            path: note.path,
            id: note.id,
            title: note.title,
            created: note.created.local_rfc3339(),
            updated: note.updated.local_rfc3339(),
            tags: note.tags,
            tier: None,
        }
    }

    fn of_memory(memory: Memory) -> Self {
        Self {
            created: memory.created.local_rfc3339(),
            updated: memory.updated.local_rfc3339(),
            tier: Some(memory.state.tier.to_string()),
            path: memory.path,
            id: memory.id,
            title: memory.title,
            tags: memory.tags,
        }
    }
}

fn format_list(output: &ListOutput, dates: ShownDates) -> String {
    let mut text = if output.counts.is_empty() { format!("{} notes\n", output.total) } else { String::new() };
    for note in &output.notes {
        let date = match dates {
            ShownDates::None => String::new(),
            ShownDates::Created => format!("  created {}", note.created),
            ShownDates::Updated => format!("  updated {}", note.updated),
        };
        text.push_str(&text_line(&format!("{}  {}{date}", note.path, note.title)));
    }
    for count in &output.counts {
        text.push_str(&text_line(&format!("{}  {}", count.name, count.notes)));
    }
    output.notices.iter().for_each(|notice| text.push_str(&format!("notice: {notice}\n")));
    if let Some(cursor) = &output.next_cursor {
        text.push_str(&format!("more with cursor {cursor}\n"));
    }
    text
}
