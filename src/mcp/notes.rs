//! Our own tools: names, arguments and texts; the work is `Store`'s.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::{schemars, tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Server;
use crate::error::Result;
use crate::index::catalog::{Filter, PutAway};
use crate::search::Mode;
use crate::store::{ListRequest, NoteItem, ReadReply, ReadRequest, SearchRequest, SortBy, Store};

/// Replies are cut at about this many characters.
const LONGEST: usize = 20_000;
/// A note's links each way are cut at this many.
const MOST_LINKS: usize = 200;

/// Conditions on notes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct FilterInput {
    /// Only notes with all of these tags (or tags below them), with or without `#`.
    #[serde(default)]
    tags: Vec<String>,
    /// Only notes whose frontmatter `type` is this.
    #[serde(rename = "type")]
    note_type: Option<String>,
    /// Only notes whose frontmatter `category` is this.
    category: Option<String>,
    /// Only notes made on or after this date, such as `2026-11-21`.
    created_after: Option<String>,
    /// Only notes made before this date.
    created_before: Option<String>,
    /// Only notes changed on or after this date.
    updated_after: Option<String>,
    /// Only notes changed before this date.
    updated_before: Option<String>,
}

impl FilterInput {
    fn filter(&self) -> Result<Filter> {
        Ok(Filter {
            tags: self.tags.clone(),
            note_type: self.note_type.clone(),
            category: self.category.clone(),
            created_after: Store::date_bound("created_after", self.created_after.as_deref())?,
            created_before: Store::date_bound("created_before", self.created_before.as_deref())?,
            updated_after: Store::date_bound("updated_after", self.updated_after.as_deref())?,
            updated_before: Store::date_bound("updated_before", self.updated_before.as_deref())?,
            ..Filter::default()
        })
    }
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ModeInput {
    Hybrid,
    Bm25,
    Vector,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchInput {
    /// Words to look for; `"a phrase"` must occur, `-word` must not.
    #[serde(alias = "q", alias = "text")]
    query: String,
    /// hybrid (words and meaning, default), bm25 (words) or vector (meaning).
    mode: Option<ModeInput>,
    #[serde(flatten)]
    filter: FilterInput,
    /// Only notes whose path matches this glob or lies in this folder, such as `Projects/**`.
    path: Option<String>,
    /// Every word must occur.
    #[serde(default)]
    all: bool,
    /// At most this many notes (default 10, at most 100).
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// concise (default) or full: the whole passage.
    detail: Option<DetailInput>,
    /// Tell how scores came about.
    #[serde(default)]
    explain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DetailInput {
    Concise,
    Full,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SearchOutput {
    results: Vec<FoundOutput>,
    mode: String,
    /// Whether files changed that the index does not hold yet.
    stale: bool,
    /// Passages that wait for their vector.
    pending: usize,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// What the reply lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FoundOutput {
    path: String,
    id: String,
    title: String,
    heading: String,
    /// First and last line of the passage.
    lines: [usize; 2],
    snippet: String,
    score: f32,
    /// bm25, vector or both.
    match_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ReadInput {
    /// One note or several: path, id, title, alias, file name or `[[wikilink]]`.
    #[serde(alias = "path", alias = "note", alias = "identifier")]
    notes: OneOrMany,
    /// Only this section: a heading (nested ones joined by `#`) or `^block`.
    section: Option<String>,
    /// Only from this line, counted from 1.
    first_line: Option<usize>,
    /// Only to this line.
    last_line: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReadOutput {
    notes: Vec<NoteOutput>,
    truncated: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct NoteOutput {
    path: String,
    id: String,
    title: String,
    /// BLAKE3 of the file.
    hash: String,
    lines: [usize; 2],
    text: String,
    frontmatter: Option<serde_json::Map<String, serde_json::Value>>,
    /// Vault paths that the note's links mean.
    outgoing: Vec<String>,
    /// Where other notes link to it, as `path:line`.
    backlinks: Vec<String>,
    /// The line to go on from, where the text was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ListInput {
    /// Only notes below this folder.
    folder: Option<String>,
    #[serde(flatten)]
    filter: FilterInput,
    /// Only notes with this property, or with this value of it: `status` or `status=active`.
    property: Option<String>,
    /// path (default), title, created or updated (newest first).
    sort: Option<SortInput>,
    /// At most this many notes (default 50, at most 500).
    limit: Option<usize>,
    /// `next_cursor` of the page before.
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

#[derive(Debug, Serialize, JsonSchema)]
struct ListOutput {
    notes: Vec<ListedOutput>,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ListedOutput {
    path: String,
    id: String,
    title: String,
    created: String,
    updated: String,
    tags: Vec<String>,
}

#[tool_router(router = notes_router, vis = "pub(super)")]
impl Server {
    /// Search the notes by words and meaning. Gives the best passage of each note with its path and lines; read on with
    /// read_note.
    #[tool(
        name = "search_notes",
        annotations(read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false),
        output_schema = rmcp::handler::server::common::schema_for_output::<SearchOutput>()
    )]
    async fn search_notes(&self, Parameters(input): Parameters<SearchInput>) -> CallToolResult {
        self.call(move |store| search(store, &input), show_search).await
    }

    /// Read notes, or one section or some lines of them, with frontmatter, links both ways and the content hash.
    #[tool(
        name = "read_note",
        annotations(read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false),
        output_schema = rmcp::handler::server::common::schema_for_output::<ReadOutput>()
    )]
    async fn read_note(&self, Parameters(input): Parameters<ReadInput>) -> CallToolResult {
        self.call(move |store| read(store, input), show_read).await
    }

    /// List notes by folder, tag, type, date or property.
    #[tool(
        name = "list_notes",
        annotations(read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false),
        output_schema = rmcp::handler::server::common::schema_for_output::<ListOutput>()
    )]
    async fn list_notes(&self, Parameters(input): Parameters<ListInput>) -> CallToolResult {
        self.call(move |store| list(store, &input), show_list).await
    }
}

fn offset(cursor: Option<&str>) -> Result<usize> {
    cursor.map_or(Ok(0), |text| {
        text.parse().ok().filter(|start| *start <= 1_000_000).ok_or_else(|| {
            crate::error::Error::invalid(format!("{text:?} is no cursor"))
                .with_hint("give next_cursor of the page before, or none for the first page")
        })
    })
}

fn search(store: &Store, input: &SearchInput) -> Result<SearchOutput> {
    let start = offset(input.cursor.as_deref())?;
    let limit = input.limit.unwrap_or(10).clamp(1, 100);
    let reply = store.search(&SearchRequest {
        include: PutAway::default(),
        query: input.query.clone(),
        mode: input.mode.map(|mode| match mode {
            ModeInput::Hybrid => Mode::Hybrid,
            ModeInput::Bm25 => Mode::Bm25,
            ModeInput::Vector => Mode::Vector,
        }),
        // One more than asked for tells whether there is a next page.
        limit: Some(limit + 1),
        skip: start,
        filter: input.filter.filter()?,
        path: input.path.clone(),
        all: input.all,
        explain: input.explain,
        no_sync: false,
    })?;
    let more = reply.results.len() > limit;
    let mut results = Vec::new();
    let mut length = 0;
    let mut truncated = false;
    for result in reply.results.into_iter().take(limit) {
        let snippet = match input.detail {
            Some(DetailInput::Full) => {
                let lines = Some(result.lines);
                let read = store.read(&ReadRequest { note: result.path.clone(), section: None, lines });
                // A note that shrank since it was found still has its snippet.
                cut_lines(read.map_or(result.snippet, |reply| reply.text), LONGEST, 1).0
            }
            _ => result.snippet,
        };
        length += snippet.len() + result.path.len() + result.heading.len() + 160;
        if length > LONGEST && !results.is_empty() {
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
            score: result.score,
            match_type: format!("{:?}", result.match_type).to_lowercase(),
            explain: result.explain.and_then(|parts| serde_json::to_value(parts).ok()),
        });
    }
    let next = start + results.len();
    Ok(SearchOutput {
        next_cursor: (more || truncated).then(|| next.to_string()),
        results,
        mode: format!("{:?}", reply.mode).to_lowercase(),
        stale: reply.stale,
        pending: reply.pending,
        truncated,
        notes: reply.notes,
    })
}

fn show_search(output: &SearchOutput) -> String {
    let mut text = String::new();
    for found in &output.results {
        let [first, last] = found.lines;
        text.push_str(&format!("{}:{first}-{last}  {}\n{}\n\n", found.path, found.title, found.snippet));
    }
    if output.results.is_empty() {
        text.push_str("nothing found\n");
    }
    if let Some(cursor) = &output.next_cursor {
        text.push_str(&format!("more with cursor {cursor}\n"));
    }
    text
}

fn read(store: &Store, input: ReadInput) -> Result<ReadOutput> {
    let names = match input.notes {
        OneOrMany::One(name) => vec![name],
        OneOrMany::Many(names) => names,
    };
    store.freshen()?;
    let lines = match (input.first_line, input.last_line) {
        (None, None) => None,
        (first, last) => Some((first.unwrap_or(1), last.unwrap_or(usize::MAX))),
    };
    let mut notes = Vec::new();
    let mut left = LONGEST;
    let mut truncated = false;
    for name in names {
        let reply = store.read(&ReadRequest { note: name, section: input.section.clone(), lines })?;
        store.used(&reply.path, "read");
        let note = describe(store, reply, left)?;
        left = left.saturating_sub(note.text.len());
        truncated |= note.next_line.is_some();
        notes.push(note);
    }
    Ok(ReadOutput { notes, truncated })
}

fn describe(store: &Store, reply: ReadReply, left: usize) -> Result<NoteOutput> {
    let (mut outgoing, backlinks) = store.neighbours(&reply.path)?;
    outgoing.truncate(MOST_LINKS);
    let backlinks = backlinks.into_iter().take(MOST_LINKS).map(|(path, line)| format!("{path}:{line}"));
    let frontmatter = store.inspect(&reply.path)?.frontmatter;
    let (text, next_line) = cut_lines(reply.text, left, reply.lines.0);
    Ok(NoteOutput {
        path: reply.path,
        id: reply.id,
        title: reply.title,
        hash: reply.hash,
        lines: [reply.lines.0, next_line.map_or(reply.lines.1, |next| next - 1)],
        text,
        frontmatter: frontmatter
            .filter(|map| serde_json::to_string(map).is_ok_and(|text| text.len() <= LONGEST)),
        outgoing,
        backlinks: backlinks.collect(),
        next_line,
    })
}

/// Cuts a text to about `most` bytes at a line end; gives the line to go on from, where there is one.
fn cut_lines(text: String, most: usize, first_line: usize) -> (String, Option<usize>) {
    if text.len() <= most {
        return (text, None);
    }
    let mut end = 0;
    let mut line = first_line;
    for piece in text.split_inclusive('\n') {
        if end + piece.len() > most {
            break;
        }
        end += piece.len();
        line += 1;
    }
    if end == 0 {
        // One line longer than a reply: its beginning, and on with the next line.
        end = text.floor_char_boundary(most);
        line += 1;
    }
    let whole = end >= text.len();
    (text.get(..end).unwrap_or("").to_owned(), (!whole).then_some(line))
}

fn show_read(output: &ReadOutput) -> String {
    let mut text = String::new();
    for note in &output.notes {
        let [first, last] = note.lines;
        text.push_str(&format!("{}:{first}-{last}\n{}\n", note.path, note.text));
        if let Some(line) = note.next_line {
            text.push_str(&format!("cut here; go on with first_line {line}\n"));
        }
    }
    text
}

fn list(store: &Store, input: &ListInput) -> Result<ListOutput> {
    let start = offset(input.cursor.as_deref())?;
    let limit = input.limit.unwrap_or(50).clamp(1, 500);
    store.freshen()?;
    let mut filter = input.filter.filter()?;
    filter.folder.clone_from(&input.folder);
    let page = store.list(&ListRequest {
        filter,
        property: input.property.as_deref().map(|text| match text.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (text.to_owned(), None),
        }),
        sort: match input.sort {
            None | Some(SortInput::Path) => SortBy::Path,
            Some(SortInput::Title) => SortBy::Title,
            Some(SortInput::Created) => SortBy::Created,
            Some(SortInput::Updated) => SortBy::Updated,
        },
        skip: start,
        limit: Some(limit),
    })?;
    let total = page.total;
    let mut length = 0;
    let fits = |note: &NoteItem| {
        let first = length == 0;
        length += note.path.len() + note.title.len() + note.tags.iter().map(String::len).sum::<usize>() + 120;
        first || length <= LONGEST
    };
    let page: Vec<NoteItem> = page.notes.into_iter().take_while(fits).collect();
    let next = start + page.len();
    Ok(ListOutput {
        notes: page
            .into_iter()
            .map(|note| ListedOutput {
                path: note.path,
                id: note.id,
                title: note.title,
                created: note.created.rfc3339(),
                updated: note.updated.rfc3339(),
                tags: note.tags,
            })
            .collect(),
        total,
        next_cursor: (next < total).then(|| next.to_string()),
    })
}

fn show_list(output: &ListOutput) -> String {
    let mut text = format!("{} notes\n", output.total);
    for note in &output.notes {
        text.push_str(&format!("{}  {}\n", note.path, note.title));
    }
    if let Some(cursor) = &output.next_cursor {
        text.push_str(&format!("more with cursor {cursor}\n"));
    }
    text
}
