//! Tools that find: search, reading, lists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::tool::{Answer, IntentInput, within};
use super::LONGEST;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::index::catalog::{Filter, PutAway};
use crate::search::Mode;
use crate::store::{
    Fallback, Intent, ListRequest, Memory, MemoryListRequest, MemorySearchRequest, MemorySort, NoteItem,
    ReadReply, ReadRequest, SearchRequest, SearchResult, SortBy, Store, Tier,
};

/// A note's links each way are cut at this many.
const MOST_LINKS: usize = 200;
/// Nobody turns pages so far.
const FARTHEST: usize = 1_000_000;

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum TierInput {
    #[serde(alias = "hot")]
    Hot,
    #[serde(alias = "warm")]
    Warm,
    #[serde(alias = "cold")]
    Cold,
    #[serde(alias = "archive")]
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
                created_after: Store::date_bound("created_after", self.created_after.as_deref(), now)?,
                created_before: Store::date_bound("created_before", self.created_before.as_deref(), now)?,
                updated_after: Store::date_bound("updated_after", self.updated_after.as_deref(), now)?,
                updated_before: Store::date_bound("updated_before", self.updated_before.as_deref(), now)?,
                ..Filter::default()
            },
            include: PutAway {
                forgotten: self.include.contains(&IncludeInput::Forgotten),
                archived: self.include.contains(&IncludeInput::Archived),
            },
            path: self.path.clone(),
            explain: self.explain,
            // An agent may hand over a person's message, whose signs mean nothing.
            fallback: Fallback::IfEmptyOrInvalid,
            ..SearchRequest::default()
        })
    }
}

#[derive(Debug, Serialize)]
pub(super) struct SearchOutput {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReadInput {
    /// Paths, ids, titles, aliases or wikilinks
    notes: OneOrMany,
    /// Heading or ^block
    section: Option<String>,
    first_line: Option<usize>,
    last_line: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Serialize)]
pub(super) struct ReadOutput {
    notes: Vec<NoteOutput>,
    truncated: bool,
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
    frontmatter: Option<serde_json::Map<String, serde_json::Value>>,
    /// Vault paths that the note's links mean.
    outgoing: Vec<String>,
    /// Where other notes link to it, as `path:line`.
    backlinks: Vec<String>,
    /// The line to go on from, where the text was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WhatInput {
    #[default]
    Notes,
    Tags,
    Properties,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListInput {
    what: Option<WhatInput>,
    folder: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(rename = "type")]
    note_type: Option<String>,
    tier: Option<TierInput>,
    /// status=active
    property: Option<String>,
    /// Made before and after this note
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
    /// Tags or properties, and how many notes have each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counts: Vec<CountOutput>,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
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

/// Reads where a page begins.
///
/// # Errors
/// `Invalid` for what is no cursor.
pub(super) fn offset(cursor: Option<&str>) -> Result<usize> {
    cursor.map_or(Ok(0), |text| {
        text.parse().ok().filter(|start| *start <= FARTHEST).ok_or_else(|| {
            Error::invalid(format!("{text:?} is no cursor"))
                .with_hint("Give next_cursor of the page before, or none for the first page")
        })
    })
}

/// What a search found, whichever way it was ranked.
struct Ranked {
    results: Vec<(SearchResult, Option<serde_json::Value>)>,
    mode: String,
    stale: bool,
    pending: usize,
    notes: Vec<String>,
}

fn ranked(store: &Store, input: &SearchInput, limit: usize, start: usize) -> Result<Ranked> {
    let tier = input.tier.map(TierInput::tier);
    if input.intent.is_none() && tier.is_none() {
        let reply = store.search(&input.request(limit, start, store.now())?)?;
        let shown = |mut result: SearchResult| {
            let parts = result.explain.take().and_then(|parts| serde_json::to_value(parts).ok());
            (result, parts)
        };
        return Ok(Ranked {
            results: reply.results.into_iter().map(shown).collect(),
            mode: format!("{:?}", reply.mode).to_lowercase(),
            stale: reply.stale,
            pending: reply.pending,
            notes: reply
                .notes
                .into_iter()
                .chain(reply.did_you_mean.map(|better| format!("did you mean: {better}")))
                .collect(),
        });
    }
    let intent = input.intent.map(Intent::from);
    let search = input.request(limit.saturating_add(start), 0, store.now())?;
    let mode = search
        .mode
        .map_or_else(|| store.config().search.mode.clone(), |mode| format!("{mode:?}").to_lowercase());
    let found = store.search_memories(&MemorySearchRequest { search, intent, tier, seed: None })?;
    let results = found.hits.into_iter().skip(start).map(|hit| {
        let parts = hit.parts.filter(|_| input.explain).and_then(|parts| serde_json::to_value(parts).ok());
        (hit.found, parts)
    });
    let (_, pending) = store.totals()?;
    Ok(Ranked { results: results.collect(), mode, stale: false, pending, notes: found.notices })
}

pub(super) fn search(store: &Store, input: SearchInput) -> Result<Answer> {
    let start = offset(input.cursor.as_deref())?;
    let limit = within("limit", input.limit.unwrap_or(10), 1, 100)?;
    // One more than asked for tells whether there is a next page.
    let found = ranked(store, &input, limit + 1, start)?;
    let more = found.results.len() > limit;
    let mut results = Vec::new();
    let mut length = 0;
    let mut truncated = false;
    for (result, explain) in found.results.into_iter().take(limit) {
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
            score: f64::from(result.score),
            match_type: format!("{:?}", result.match_type).to_lowercase(),
            explain,
        });
    }
    let next = start + results.len();
    let output = SearchOutput {
        next_cursor: (more || truncated).then(|| next.to_string()),
        results,
        mode: found.mode,
        stale: found.stale,
        pending: found.pending,
        truncated,
        notes: found.notes,
    };
    Answer::text(show_search(&output)).with(&output)
}

fn show_search(output: &SearchOutput) -> String {
    let mut text: String = output.notes.iter().map(|note| format!("notice: {note}\n")).collect();
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

pub(super) fn read(store: &Store, input: ReadInput) -> Result<Answer> {
    let names = match input.notes {
        OneOrMany::One(name) => vec![name],
        OneOrMany::Many(names) => names,
    };
    store.freshen()?;
    let lines = match (input.first_line, input.last_line) {
        (None, None) => None,
        (first, last) => {
            Some((within("first_line", first.unwrap_or(1), 1, FARTHEST)?, last.unwrap_or(usize::MAX)))
        }
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
    let output = ReadOutput { notes, truncated };
    Answer::text(show_read(&output)).with(&output)
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
        if most < LONGEST {
            // Other notes took the room: this one begins with the next call.
            return (String::new(), Some(first_line));
        }
        // One line longer than a reply is given whole, for no call could ask for the rest of it.
        end = text.find('\n').map_or(text.len(), |end| end + 1);
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

pub(super) fn list(store: &Store, input: ListInput) -> Result<Answer> {
    let start = offset(input.cursor.as_deref())?;
    let limit = within("limit", input.limit.unwrap_or(50), 1, 500)?;
    store.freshen()?;
    let counts = |counts: Vec<CountOutput>| {
        let total = counts.len();
        let counts: Vec<CountOutput> = counts.into_iter().skip(start).take(limit).collect();
        let next = start + counts.len();
        ListOutput {
            counts,
            total,
            next_cursor: (next < total).then(|| next.to_string()),
            ..ListOutput::default()
        }
    };
    let output = match (input.what.unwrap_or_default(), &input.around) {
        (WhatInput::Tags, _) => {
            let tags = store.tags()?.into_iter();
            counts(tags.map(|item| CountOutput { name: item.tag, kind: None, notes: item.notes }).collect())
        }
        (WhatInput::Properties, _) => {
            let properties = store.properties()?.into_iter();
            let shown = properties.map(|item| CountOutput {
                name: item.property,
                kind: Some(item.kind),
                notes: item.notes,
            });
            counts(shown.collect())
        }
        (WhatInput::Notes, Some(around)) => {
            let window = within("window", input.window.unwrap_or(5), 0, 100)?;
            let near = store.timeline(around, window)?.memories.into_iter();
            let notes: Vec<ListedOutput> = near.map(ListedOutput::of_memory).collect();
            let total = notes.len();
            ListOutput { notes: fitting(notes), total, ..ListOutput::default() }
        }
        (WhatInput::Notes, None) => notes(store, &input, start, limit)?,
    };
    let mut text = show_list(&output);
    let is_notes = matches!(input.what.unwrap_or_default(), WhatInput::Notes) && input.around.is_none();
    if is_notes && output.total == 0 {
        for told in unmet(store, &input)? {
            text.push_str(&format!("{told}\n"));
        }
    }
    Answer::text(text).with(&output)
}

/// Tells which conditions of an empty list no note meets, so that it is not taken for an answer.
fn unmet(store: &Store, input: &ListInput) -> Result<Vec<String>> {
    let filter = Filter { tags: input.tags.clone(), note_type: input.note_type.clone(), ..Filter::default() };
    let property = input.property.as_deref().map(|text| text.split('=').next().unwrap_or(text));
    let missing = input.folder.as_deref().and_then(|folder| store.refuse_missing_folder(folder).err());
    let mut told: Vec<String> = missing.iter().map(ToString::to_string).collect();
    told.extend(store.absent(&filter, property, None)?);
    Ok(told)
}

fn notes(store: &Store, input: &ListInput, start: usize, limit: usize) -> Result<ListOutput> {
    let filter = Filter {
        folder: input.folder.clone(),
        tags: input.tags.clone(),
        note_type: input.note_type.clone(),
        ..Filter::default()
    };
    let property = input.property.as_deref().map(|text| match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    });
    let (listed, total): (Vec<ListedOutput>, usize) = match input.tier {
        Some(tier) => {
            if input.property.is_some() || input.sort.is_some() {
                return Err(Error::invalid("a list by tier has neither property nor sort")
                    .with_hint("It is newest first; leave them out, or the tier"));
            }
            let request = MemoryListRequest {
                filter,
                tier: Some(tier.tier()),
                sort: MemorySort::Created,
                ..MemoryListRequest::default()
            };
            let found = store.memories(&request)?;
            let total = found.len();
            (found.into_iter().skip(start).take(limit).map(ListedOutput::of_memory).collect(), total)
        }
        None => {
            let page = store.list(&ListRequest {
                filter,
                property,
                sort: match input.sort {
                    None | Some(SortInput::Path) => SortBy::Path,
                    Some(SortInput::Title) => SortBy::Title,
                    Some(SortInput::Created) => SortBy::Created,
                    Some(SortInput::Updated) => SortBy::Updated,
                },
                skip: start,
                limit: Some(limit),
            })?;
            (page.notes.into_iter().map(ListedOutput::of_note).collect(), page.total)
        }
    };
    let notes = fitting(listed);
    let next = start + notes.len();
    Ok(ListOutput {
        notes,
        total,
        next_cursor: (next < total).then(|| next.to_string()),
        ..ListOutput::default()
    })
}

/// Takes as many notes as a reply has room for, and one at least.
fn fitting(listed: Vec<ListedOutput>) -> Vec<ListedOutput> {
    let mut length = 0;
    let fits = |note: &ListedOutput| {
        let first = length == 0;
        length += note.path.len() + note.title.len() + note.tags.iter().map(String::len).sum::<usize>() + 160;
        first || length <= LONGEST
    };
    listed.into_iter().take_while(fits).collect()
}

impl ListedOutput {
    fn of_note(note: NoteItem) -> Self {
        Self {
            path: note.path,
            id: note.id,
            title: note.title,
            created: note.created.rfc3339(),
            updated: note.updated.rfc3339(),
            tags: note.tags,
            tier: None,
        }
    }

    fn of_memory(memory: Memory) -> Self {
        Self {
            created: memory.created.rfc3339(),
            updated: memory.updated.rfc3339(),
            tier: Some(memory.state.tier.to_string()),
            path: memory.path,
            id: memory.id,
            title: memory.title,
            tags: memory.tags,
        }
    }
}

fn show_list(output: &ListOutput) -> String {
    let mut text = if output.counts.is_empty() { format!("{} notes\n", output.total) } else { String::new() };
    for note in &output.notes {
        text.push_str(&format!("{}  {}\n", note.path, note.title));
    }
    for count in &output.counts {
        text.push_str(&format!("{}  {}\n", count.name, count.notes));
    }
    if let Some(cursor) = &output.next_cursor {
        text.push_str(&format!("more with cursor {cursor}\n"));
    }
    text
}
