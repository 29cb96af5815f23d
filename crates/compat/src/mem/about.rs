//! The tools of `mem` that tell how to use it and how it searches, and that bring its index up to date.

use serde::Serialize;
use sidenote_base::error::{ErrorKind, Result};
use sidenote_config::Layout;
use sidenote_mcp::tool::Answer;
use sidenote_store::{ReadRequest, Store, TextsRequest};

use super::lists::NoInput;

/// The note at the top of the notes with which the user tells agents how to work with them.
const USAGE_NOTE: &str = "usage.md";

/// What is told where there is no such note.
const USAGE: &str = "\
# How to use these memories

Each memory is one Markdown file with a title, tags, a category, sources and links to other memories.

- Before you answer, look with `search_mem`, and read on with `read_mem`.
- Before you write, look whether the memory exists; `edit_mem` changes one, and `write_mem` makes one. One subject each. \
Give an `abstract` of a sentence or two, and the `sources`.
- `link_mem` links two memories both ways, `unlink_mem` takes that back, and `fix_links` puts the links of one memory in order.
- `list_mems` lists by category and tags, `needs_review` what was reviewed last before a date, and `get_mem_stats` counts, and \
names memories without links, sources or an abstract.
- `get_current_date` tells the date, `get_allowed_values` which categories and tags are allowed.
- The index follows the files. `reindex_mems` compares all of them now.
";

#[derive(Debug, Serialize)]
struct ReindexOutput {
    success: bool,
    message: String,
    #[serde(rename = "indexedCount")]
    indexed_count: usize,
}

#[derive(Debug, Serialize)]
struct SearchSettingsOutput {
    engine: &'static str,
    mode: String,
    limit: usize,
    /// The model of the search by meaning, or `none`.
    model: String,
    /// Words that are not searched: there are none.
    stopwords: [&'static str; 0],
    message: &'static str,
}

#[derive(Debug, Serialize)]
struct AllowedOutput {
    /// `null`: any.
    allowed_categories: Option<Vec<String>>,
    /// `null`: any.
    allowed_tags: Option<Vec<String>>,
    message: &'static str,
}

pub(super) fn reindex(store: &Store, _: NoInput) -> Result<Answer> {
    store.index().compare_all()?;
    let (indexed_count, _) =
        store.recalls().memory_texts(&TextsRequest { limit: 0, ..TextsRequest::default() })?;
    let message = format!("Successfully reindexed {indexed_count} memories");
    Answer::json(&ReindexOutput { success: true, message, indexed_count })
}

pub(super) fn usage(store: &Store, _: NoInput) -> Result<Answer> {
    if store.config().vault.layout != Layout::Memories {
        return Ok(Answer::text(USAGE));
    }
    store.index().refresh()?;
    let request = ReadRequest { note: USAGE_NOTE.to_owned(), ..ReadRequest::default() };
    match store.reads().read(&request) {
        Ok(note) if note.path.eq_ignore_ascii_case(USAGE_NOTE) => Ok(Answer::text(note.text)),
        // Several notes have the name, but none of them at the top.
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Exists) => Err(error),
        _ => Ok(Answer::text(USAGE)),
    }
}

pub(super) fn search_settings(store: &Store, _: NoInput) -> Result<Answer> {
    let search = &store.config().search;
    Answer::json(&SearchSettingsOutput {
        engine: "sidenote",
        mode: search.mode.clone(),
        limit: search.limit,
        model: store.index().status()?.embedder,
        stopwords: [],
        message: "FlexSearch is not used; memories are searched by words in any inflection, and by meaning with a model",
    })
}

pub(super) fn allowed_values(_: &Store, _: NoInput) -> Result<Answer> {
    let message = "Any category and any tag is allowed";
    Answer::json(&AllowedOutput { allowed_categories: None, allowed_tags: None, message })
}
