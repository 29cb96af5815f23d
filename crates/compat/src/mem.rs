//! The toolset `mem` (docs/spec/toolsets.md): Markdown memories.
//! Its tool names, arguments and reply texts; `Store` does the work.

mod about;
mod fix;
mod lists;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::Filter;
use sidenote_config::Layout;
use sidenote_mcp::tool::{Answer, Effect, Tool};
use sidenote_store::{
    ChangeReply, LinkRequest, Memory, MemoryText, NewRequest, Operation, ReviseRequest, SearchRequest, Store,
    display_text,
};

#[derive(Debug, Deserialize, JsonSchema)]
struct WriteInput {
    /// What the memory is called.
    title: String,
    /// Its text, in Markdown.
    content: String,
    /// Tags.
    #[serde(default)]
    #[schemars(extend("x-comma-list" = true))]
    tags: Vec<String>,
    /// What it belongs to, such as `work`.
    category: Option<String>,
    #[serde(flatten)]
    more: MoreInput,
}

/// What a memory has besides its text.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct MoreInput {
    /// Where it comes from, such as addresses.
    #[schemars(extend("x-comma-list" = true))]
    sources: Option<Vec<String>>,
    /// What it says, in a sentence or two.
    #[serde(rename = "abstract")]
    #[schemars(extend("x-empty-counts" = true))]
    summary: Option<String>,
    /// More properties, such as `{"status": "draft"}`.
    #[schemars(extend("x-open-object" = true, "properties" = { "status": { "type": "string" } }))]
    template: Option<Map<String, Value>>,
}

impl MoreInput {
    /// Returns the properties. Those that other arguments set are not taken from the template.
    fn properties(self) -> Vec<(String, Value)> {
        const SET: [&str; 8] =
            ["id", "title", "tags", "category", "created_at", "updated_at", "last_reviewed", "links"];
        let template = self.template.unwrap_or_default().into_iter();
        let mut properties: Vec<(String, Value)> =
            template.filter(|(name, _)| !SET.contains(&name.as_str())).collect();
        properties.extend(self.sources.map(|sources| ("sources".to_owned(), Value::from(sources))));
        properties.extend(self.summary.map(|text| ("abstract".to_owned(), Value::from(text.trim()))));
        properties
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FormatInput {
    #[default]
    Markdown,
    Plain,
    Json,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ReadInput {
    /// The memory's id, title, or the slug of its title.
    identifier: String,
    /// markdown (default), plain: without markup, or json: with all properties.
    format: Option<FormatInput>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct EditInput {
    /// The memory's id, title, or the slug of its title.
    id: String,
    /// Its new title; its file is renamed, and links follow.
    title: Option<String>,
    /// Its new text, whole.
    content: Option<String>,
    /// Its new tags, all of them.
    #[schemars(extend("x-comma-list" = true))]
    tags: Option<Vec<String>>,
    /// Its new category.
    #[schemars(extend("x-empty-counts" = true))]
    category: Option<String>,
    #[serde(flatten)]
    more: MoreInput,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchInput {
    /// What to look for.
    query: String,
    /// At most this many (default 10).
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// Only memories of this category.
    category: Option<String>,
    /// Only memories with all of these tags.
    #[serde(default)]
    #[schemars(extend("x-comma-list" = true))]
    tags: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct LinkInput {
    /// The id of the one memory.
    source_id: String,
    /// The id of the other.
    target_id: String,
    /// The text of the link (default: the target's title).
    link_text: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UnlinkInput {
    /// The id of the one memory.
    source_id: String,
    /// The id of the other.
    target_id: String,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DateFormatInput {
    #[default]
    Iso,
    Locale,
    Timestamp,
    DateOnly,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct DateInput {
    /// iso (default), locale, timestamp (milliseconds since 1970) or date_only.
    format: Option<DateFormatInput>,
}

#[derive(Debug, Serialize)]
struct WriteOutput {
    id: String,
    file_path: String,
    created_at: String,
}

#[derive(Debug, Serialize)]
struct ReadOutput {
    id: String,
    title: String,
    content: String,
    metadata: ReadMetadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    frontmatter: Option<Map<String, Value>>,
    /// Other memories that answer to the identifier.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_ids: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ReadMetadata {
    created_at: String,
    updated_at: String,
    last_reviewed: Option<Value>,
    tags: Vec<String>,
    category: Option<String>,
    links: Vec<String>,
    file_path: String,
}

#[derive(Debug, Serialize)]
struct EditOutput {
    id: String,
    updated_at: String,
    success: bool,
}

#[derive(Debug, Serialize)]
struct SearchOutput {
    results: Vec<FoundOutput>,
    total: usize,
}

#[derive(Debug, Serialize)]
struct FoundOutput {
    id: String,
    title: String,
    score: f64,
    snippet: String,
}

#[derive(Debug, Serialize)]
struct LinkOutput {
    success: bool,
    source_links: Vec<String>,
    target_links: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wikilink: Option<String>,
    /// Why the links are not as requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Debug, Serialize)]
struct DateOutput {
    date: Value,
    timezone: String,
}

/// Returns the tools of the toolset.
pub(crate) fn tools() -> Vec<Tool> {
    tools_for_memories().into_iter().chain(tools_for_all()).collect()
}

/// Returns the tools that work on some memories.
fn tools_for_memories() -> Vec<Tool> {
    vec![
        Tool::new(
            "write_mem",
            Effect::Additive,
            "Write a new memory as a Markdown file. Gives its id.",
            r#"{"title": "Boat race", "content": "We start at **nine**.", "tags": ["sport"], "category": "work"}"#,
            write,
        ),
        Tool::new(
            "read_mem",
            Effect::ReadOnly,
            "Read a memory by its id, title or slug, with its dates, tags, category and links.",
            r#"{"identifier": "Boat race", "format": "markdown"}"#,
            read,
        ),
        Tool::new(
            "edit_mem",
            Effect::IdempotentDestructive,
            "Change a memory's title, content, tags or category; what is not given stays. Links follow a new title.",
            r#"{"id": "550e8400-e29b-41d4-a716-446655440000", "title": "Dragon boat race"}"#,
            edit,
        ),
        Tool::new(
            "search_mem",
            Effect::ReadOnly,
            "Search the memories by words and meaning, best first; read on with read_mem.",
            r#"{"query": "boat race", "limit": 10, "category": "work", "tags": ["sport"]}"#,
            search,
        ),
        Tool::new(
            "link_mem",
            Effect::Additive,
            "Link two memories, both ways.",
            r#"{"source_id": "550e8400-e29b-41d4-a716-446655440000", "target_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}"#,
            link,
        ),
        Tool::new(
            "unlink_mem",
            Effect::IdempotentDestructive,
            "Remove the links between two memories, both ways.",
            r#"{"source_id": "550e8400-e29b-41d4-a716-446655440000", "target_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}"#,
            unlink,
        ),
    ]
}

/// Returns the tools that look after all memories, or tell about them.
fn tools_for_all() -> Vec<Tool> {
    vec![
        Tool::new(
            "list_mems",
            Effect::ReadOnly,
            "List the memories, the newest first, all or those of a category or with any of some tags.",
            r#"{"category": "work", "tags": ["sport"], "limit": 100}"#,
            lists::list,
        ),
        Tool::new(
            "needs_review",
            Effect::ReadOnly,
            "List the memories that were last reviewed before a date, the longest ago first.",
            r#"{"date": "2026-11-01"}"#,
            lists::needs_review,
        ),
        Tool::new(
            "get_mem_stats",
            Effect::ReadOnly,
            "Count the memories, their links, tags and categories, and name those without links, sources or an abstract.",
            "{}",
            lists::stats,
        ),
        Tool::new(
            "fix_links",
            Effect::IdempotentDestructive,
            "Put the links of a memory in order: it and each memory it is related to link to each other, links to moved \
             files are repaired, and ids that no memory has are removed. Links in its text stay.",
            r#"{"memory_id": "550e8400-e29b-41d4-a716-446655440000"}"#,
            fix::fix_links,
        ),
        Tool::new(
            "reindex_mems",
            Effect::IdempotentAdditive,
            "Compare all files with the index now, and index what differs. The index follows the files by itself.",
            "{}",
            about::reindex,
        ),
        Tool::new(
            "get_usage_info",
            Effect::ReadOnly,
            "Tell how to work with these memories, and what each tool is for.",
            "{}",
            about::usage,
        ),
        Tool::new(
            "get_flexsearch_config",
            Effect::ReadOnly,
            "Tell how memories are searched: the engine, the default mode and the model.",
            "{}",
            about::search_settings,
        ),
        Tool::new(
            "get_allowed_values",
            Effect::ReadOnly,
            "Tell which categories and tags a memory may have.",
            "{}",
            about::allowed_values,
        ),
        Tool::new(
            "get_current_date",
            Effect::ReadOnly,
            "Tell the current date and time, and the time zone.",
            r#"{"format": "iso"}"#,
            current_date,
        ),
    ]
}

/// Trims a text, and returns `None` if nothing is left.
fn non_empty(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Finds the memory with an id, a title or the slug of a title.
///
/// # Errors
/// `NotFound` if there is none; `Exists` if there are several.
fn find_memory(store: &Store, id: &str) -> Result<Memory> {
    let mut found = store.recalls().memories_by_name(id)?;
    if found.len() > 1 {
        let ids: Vec<&str> = found.iter().take(8).map(|memory| memory.id.as_str()).collect();
        return Err(Error::new(ErrorKind::Exists, format!("{} memories are named {id:?}", found.len()))
            .with_hint(format!("Give the id of one of them: {}", ids.join(", "))));
    }
    found.pop().ok_or_else(|| {
        Error::not_found(format!("Memory not found: {id}"))
            .with_hint("Give an id that write_mem or search_mem returned, or a title")
    })
}

fn require_content(content: &str) -> Result<()> {
    if content.trim().is_empty() {
        return Err(Error::invalid("content is empty").with_hint("Give the text of the memory"));
    }
    Ok(())
}

/// Returns the path of a memory in replies: with the folder of memories where the server serves one of the other server, and
/// otherwise in the vault.
fn file_path(store: &Store, memory: &Memory) -> String {
    if store.config().vault.layout == Layout::Memories {
        store.root().join(&memory.path).display().to_string()
    } else {
        memory.path.clone()
    }
}

fn text_of_memory(store: &Store, memory: Memory) -> Result<MemoryText> {
    let id = memory.id.clone();
    store.recalls().memory_text(memory)?.ok_or_else(|| Error::not_found(format!("Memory not found: {id}")))
}

fn write(store: &Store, input: WriteInput) -> Result<Answer> {
    let title = non_empty(Some(input.title))
        .ok_or_else(|| Error::invalid("title is empty").with_hint("Give the title of the memory"))?;
    require_content(&input.content)?;
    store.index().refresh()?;
    let is_flat = store.config().vault.layout == Layout::Memories;
    let folder = store.config().memory.folder.trim_matches('/').to_owned();
    let updated = ("updated_at".to_owned(), Value::from(store.now().exact_rfc3339()));
    let mut properties = if is_flat { Vec::new() } else { vec![updated] };
    properties.extend(input.more.properties());
    let request = NewRequest {
        title,
        content: input.content.trim().to_owned(),
        folder: (!is_flat).then_some(folder),
        category: non_empty(input.category),
        tags: input.tags,
        properties,
        numbered: true,
        verbatim: true,
        identified: true,
        ..NewRequest::default()
    };
    let done = store.changes().change(&Operation::New(request), false)?;
    let made = done.made().ok_or_else(|| Error::internal("the new note has no path"))?;
    let memory = store.memories().memory_after(Some(&done), &made)?;
    Answer::json(&WriteOutput {
        file_path: file_path(store, &memory),
        id: memory.id,
        created_at: memory.created.millis_rfc3339(),
    })
}

fn read(store: &Store, input: ReadInput) -> Result<Answer> {
    store.index().refresh()?;
    let mut found = store.recalls().memories_by_name(&input.identifier)?.into_iter();
    let Some(memory) = found.next() else {
        return Err(Error::not_found(format!("Memory not found: {}", input.identifier))
            .with_hint("Give an id or a title; search_mem finds them"));
    };
    let other_ids = found.map(|memory| memory.id).collect();
    let text = text_of_memory(store, memory)?;
    let links = store.recalls().linked_ids(&text)?;
    store.memories().record_use(&text.memory.path, "read");
    let file_path = file_path(store, &text.memory);
    let category =
        text.properties.get("category").and_then(Value::as_str).filter(|category| !category.is_empty());
    let metadata = ReadMetadata {
        created_at: text.memory.created.millis_rfc3339(),
        updated_at: text.memory.updated.millis_rfc3339(),
        last_reviewed: text.properties.get("last_reviewed").cloned(),
        tags: text.tags,
        category: category.map(str::to_owned),
        links,
        file_path,
    };
    let format = input.format.unwrap_or_default();
    Answer::json(&ReadOutput {
        id: text.memory.id,
        title: text.memory.title,
        content: if format == FormatInput::Plain { text.plain } else { text.content },
        metadata,
        frontmatter: (format == FormatInput::Json).then_some(text.properties),
        other_ids,
    })
}

fn edit(store: &Store, input: EditInput) -> Result<Answer> {
    if input.title.as_ref().is_some_and(|title| title.trim().is_empty()) {
        return Err(Error::invalid("title is empty").with_hint("Give a new title, or none"));
    }
    if let Some(content) = &input.content {
        require_content(content)?;
    }
    store.index().refresh()?;
    let memory = find_memory(store, &input.id)?;
    let request = ReviseRequest {
        note: memory.path,
        title: non_empty(input.title),
        content: input.content,
        category: input.category.map(|category| category.trim().to_owned()),
        tags: input.tags,
        properties: input.more.properties(),
    };
    let memory = store.memory_writes().revise(&request)?;
    Answer::json(&EditOutput { id: memory.id, updated_at: memory.updated.millis_rfc3339(), success: true })
}

fn search(store: &Store, input: SearchInput) -> Result<Answer> {
    if input.query.trim().is_empty() {
        return Err(Error::invalid("query is empty").with_hint("Say what to look for"));
    }
    let limit = input.limit.unwrap_or(10);
    if limit == 0 {
        return Err(Error::invalid("limit is 0").with_hint("Give 1 or more, or omit it for 10"));
    }
    let filter = store.recalls().scoped(Filter {
        category: non_empty(input.category),
        tags: input.tags,
        ..Filter::default()
    });
    let found = store.searches().search(&SearchRequest {
        notes_only: true,
        query: input.query,
        plain: true,
        limit: Some(limit),
        filter,
        ..SearchRequest::default()
    })?;
    let notices: Vec<String> = found.notes.iter().map(|note| note.for_agent(|_| false)).collect();
    let results: Vec<FoundOutput> = found
        .results
        .into_iter()
        .map(|result| FoundOutput {
            id: result.id,
            title: result.title,
            score: (f64::from(result.score) * 10_000.0).round() / 10_000.0,
            snippet: result.snippet,
        })
        .collect();
    Ok(Answer::json(&SearchOutput { total: results.len(), results })?.with_notices(notices))
}

/// Returns the ids that two memories link to, read after a change.
fn link_lists(store: &Store, source: &Memory, target: &Memory) -> Result<[Vec<String>; 2]> {
    // A memory that was deleted since has no links.
    let links = |memory: &Memory| match store.recalls().memory_text(memory.clone())? {
        Some(text) => store.recalls().linked_ids(&text),
        None => Ok(Vec::new()),
    };
    Ok([links(source)?, links(target)?])
}

/// Returns the remarks of a plan, which say why it left something unchanged.
fn remarks_text(done: &ChangeReply) -> Option<String> {
    let texts: Vec<String> = done.plan.remarks.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Returns the name of the file of a memory without its extension.
fn stem_of(memory: &Memory) -> String {
    memory.path.rsplit('/').next().unwrap_or(&memory.path).trim_end_matches(".md").to_owned()
}

/// Requests links between two memories. In the layout `memories` a bullet is the name of the file alone, unless another text
/// is given.
fn link_request(store: &Store, source: &Memory, target: &Memory, given: Option<String>) -> LinkRequest {
    let is_flat = store.config().vault.layout == Layout::Memories;
    let title = Some(target.title.clone()).filter(|title| !is_flat && *title != stem_of(target));
    LinkRequest { a: source.path.clone(), b: target.path.clone(), text: given.or(title) }
}

fn link(store: &Store, input: LinkInput) -> Result<Answer> {
    store.index().refresh()?;
    let (source, target) = (find_memory(store, &input.source_id)?, find_memory(store, &input.target_id)?);
    let stem = stem_of(&target);
    let given = non_empty(input.link_text).as_deref().and_then(display_text);
    let request = link_request(store, &source, &target, given.clone());
    let done = store.changes().change(&Operation::Link(request), false)?;
    let [source_links, target_links] = link_lists(store, &source, &target)?;
    let success = source_links.contains(&target.id) && target_links.contains(&source.id);
    let shown = given.unwrap_or(target.title);
    let wikilink = if shown == stem { format!("[[{stem}]]") } else { format!("[[{stem}|{shown}]]") };
    let message = remarks_text(&done).filter(|_| !success);
    Answer::json(&LinkOutput { success, source_links, target_links, wikilink: Some(wikilink), message })
}

fn unlink(store: &Store, input: UnlinkInput) -> Result<Answer> {
    store.index().refresh()?;
    let (source, target) = (find_memory(store, &input.source_id)?, find_memory(store, &input.target_id)?);
    let request = LinkRequest { a: source.path.clone(), b: target.path.clone(), text: None };
    let done = store.changes().change(&Operation::Unlink(request), false)?;
    let [source_links, target_links] = link_lists(store, &source, &target)?;
    let success = !source_links.contains(&target.id) && !target_links.contains(&source.id);
    let message = remarks_text(&done).filter(|_| !success);
    Answer::json(&LinkOutput { success, source_links, target_links, wikilink: None, message })
}

fn current_date(store: &Store, input: DateInput) -> Result<Answer> {
    let now = store.now();
    let local = now.local();
    let date = match input.format.unwrap_or_default() {
        DateFormatInput::Iso => Value::from(now.millis_rfc3339()),
        DateFormatInput::Locale => Value::from(local.strftime("%-m/%-d/%Y, %-I:%M:%S %p").to_string()),
        DateFormatInput::Timestamp => Value::from(now.millis()),
        DateFormatInput::DateOnly => Value::from(local.strftime("%Y-%m-%d").to_string()),
    };
    Answer::json(&DateOutput { date, timezone: now.zone() })
}
