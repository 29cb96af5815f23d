//! The tools of `mem` that list memories and count them.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_mcp::tool::{Answer, within};
use sidenote_store::{MemoryText, Store, TextsRequest};

use super::{file_path, non_empty};

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListInput {
    /// Only memories of this category.
    category: Option<String>,
    /// Only memories with any of these tags.
    #[serde(default)]
    #[schemars(extend("x-comma-list" = true))]
    tags: Vec<String>,
    /// At most this many (default 100).
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReviewInput {
    /// The day or moment before which they were reviewed, such as `2026-11-01`.
    date: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NoInput {}

#[derive(Debug, Serialize)]
struct ListOutput {
    total: usize,
    memories: Vec<ListedOutput>,
}

/// A memory without its text.
#[derive(Debug, Serialize)]
struct ListedOutput {
    id: String,
    title: String,
    category: String,
    tags: Vec<String>,
    created_at: String,
    updated_at: String,
    last_reviewed: Option<Value>,
    sources: Option<Value>,
    r#abstract: Option<Value>,
    file_path: String,
}

#[derive(Debug, Serialize)]
struct StatsOutput {
    total_memories: usize,
    average_links_per_memory: f64,
    average_tags_per_memory: f64,
    average_memory_length_words: f64,
    orphaned_memories: Vec<NamedOutput>,
    /// Ids that a memory is related to, and that no memory has.
    broken_links: Vec<BrokenOutput>,
    /// Memories that a memory is related to, and that are not related to it.
    unidirectional_links: Vec<OneWayOutput>,
    memories_without_sources: Vec<NamedOutput>,
    memories_without_abstract: Vec<NamedOutput>,
    categories: BTreeMap<String, usize>,
    tags: BTreeMap<String, usize>,
}

#[derive(Debug, Serialize)]
struct BrokenOutput {
    #[serde(flatten)]
    memory: NamedOutput,
    broken_link_id: String,
}

#[derive(Debug, Serialize)]
struct OneWayOutput {
    #[serde(flatten)]
    memory: NamedOutput,
    unidirectional_link_id: String,
}

#[derive(Debug, Serialize)]
struct NamedOutput {
    id: String,
    title: String,
}

impl NamedOutput {
    fn of(text: &MemoryText) -> Self {
        Self { id: text.memory.id.clone(), title: text.memory.title.clone() }
    }
}

fn category_of(text: &MemoryText) -> String {
    text.properties.get("category").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn listed(store: &Store, text: MemoryText) -> ListedOutput {
    let property = |name: &str| text.properties.get(name).cloned();
    ListedOutput {
        category: category_of(&text),
        created_at: text.memory.created.millis_rfc3339(),
        updated_at: text.memory.updated.millis_rfc3339(),
        last_reviewed: property("last_reviewed"),
        sources: property("sources"),
        r#abstract: property("abstract"),
        file_path: file_path(store, &text.memory),
        id: text.memory.id,
        title: text.memory.title,
        tags: text.tags,
    }
}

/// Reads all memories, the newest first.
fn all_texts(store: &Store) -> Result<Vec<MemoryText>> {
    Ok(store.recalls().memory_texts(&TextsRequest { limit: usize::MAX, ..TextsRequest::default() })?.1)
}

pub(super) fn list(store: &Store, input: ListInput) -> Result<Answer> {
    let limit = within("limit", input.limit.unwrap_or(100), 1, 500)?;
    let request = TextsRequest {
        category: non_empty(input.category),
        any_tag: input.tags,
        limit,
        ..TextsRequest::default()
    };
    let (total, texts) = store.recalls().memory_texts(&request)?;
    let memories = texts.into_iter().map(|text| listed(store, text)).collect();
    Answer::json(&ListOutput { total, memories })
}

pub(super) fn needs_review(store: &Store, input: ReviewInput) -> Result<Answer> {
    let before = Timestamp::parse_bound("date", &input.date)?;
    let reviewed = |text: &MemoryText| {
        let said = text.properties.get("last_reviewed").and_then(Value::as_str);
        said.and_then(Timestamp::parse).unwrap_or(text.memory.created)
    };
    let mut due: Vec<MemoryText> =
        all_texts(store)?.into_iter().filter(|text| reviewed(text) < before).collect();
    due.sort_by_key(reviewed);
    let memories: Vec<ListedOutput> = due.into_iter().map(|text| listed(store, text)).collect();
    Answer::json(&ListOutput { total: memories.len(), memories })
}

pub(super) fn stats(store: &Store, _: NoInput) -> Result<Answer> {
    let texts = all_texts(store)?;
    let (mut links, mut words) = (0, 0);
    let mut output = StatsOutput {
        total_memories: texts.len(),
        average_links_per_memory: 0.0,
        average_tags_per_memory: 0.0,
        average_memory_length_words: 0.0,
        orphaned_memories: Vec::new(),
        broken_links: Vec::new(),
        unidirectional_links: Vec::new(),
        memories_without_sources: Vec::new(),
        memories_without_abstract: Vec::new(),
        categories: BTreeMap::new(),
        tags: BTreeMap::new(),
    };
    for text in &texts {
        let named = || NamedOutput::of(text);
        let lacks = |name: &str| match text.properties.get(name) {
            None | Some(Value::Null) => true,
            Some(Value::String(said)) => said.trim().is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            Some(_) => false,
        };
        let own_links = store.recalls().linked_ids(text)?.len();
        links += own_links;
        words += text.content.split_whitespace().count();
        output.orphaned_memories.extend((own_links == 0).then(named));
        output.memories_without_sources.extend(lacks("sources").then(named));
        output.memories_without_abstract.extend(lacks("abstract").then(named));
        *output.categories.entry(category_of(text)).or_default() += 1;
        for tag in &text.tags {
            *output.tags.entry(tag.clone()).or_default() += 1;
        }
    }
    add_faulty_links(store, &texts, &mut output)?;
    let average = |sum: usize| (sum as f64 / texts.len().max(1) as f64 * 100.0).round() / 100.0;
    output.average_links_per_memory = average(links);
    output.average_tags_per_memory = average(texts.iter().map(|text| text.tags.len()).sum());
    output.average_memory_length_words = average(words);
    Answer::json(&output)
}

/// Finds the relations that `fix_links` puts in order. A link in running text is none.
fn add_faulty_links(store: &Store, texts: &[MemoryText], output: &mut StatsOutput) -> Result<()> {
    let mut related = HashMap::new();
    for text in texts {
        related.insert(text.memory.id.as_str(), store.recalls().related_ids(text)?);
    }
    for text in texts {
        let own = text.memory.id.as_str();
        for id in related.get(own).into_iter().flatten() {
            match related.get(id.as_str()) {
                Some(back) if id != own && !back.iter().any(|id| id == own) => {
                    let memory = NamedOutput::of(text);
                    output
                        .unidirectional_links
                        .push(OneWayOutput { memory, unidirectional_link_id: id.clone() });
                }
                // A memory may be forgotten, or outside the folder of memories.
                None if store.lookup().rows_with_id(id)?.is_empty() => {
                    let memory = NamedOutput::of(text);
                    output.broken_links.push(BrokenOutput { memory, broken_link_id: id.clone() });
                }
                _ => {}
            }
        }
    }
    Ok(())
}
