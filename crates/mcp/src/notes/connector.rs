//! Our toolset `connector`: `search` and `fetch` in the shapes that ChatGPT's connectors and deep research ask for, as
//! structured data and as one text with the same JSON. Both only read.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidenote_base::error::Result;
use sidenote_store::{Fallback, ReadRequest, SearchRequest, Store};

use crate::notes::TARGET_LENGTH;
use crate::notes::find::TruncatedText;
use crate::notes::named_lines::place_of;
use crate::tool::{Answer, Effect, Tool};

/// The results of a search: the clients fetch those that they want.
const RESULTS: usize = 10;
/// The room in a reply for what is not the text of the note.
const OTHER_LENGTH: usize = 2_000;
/// What is not escaped in the parts of an address of Obsidian.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Returns the tools of the toolset.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "search",
            Effect::ReadOnly,
            "Search the person's notes, by words and meaning. Returns ids for `fetch`. Words in \"quotes\" are a phrase; \
tag:#x, path:folder and -word narrow the search.",
            r#"{"query": "how high does the river rise?"}"#,
            search,
        )
        .with_structured_output()
        .strict(),
        Tool::new(
            "fetch",
            Effect::ReadOnly,
            "Read a note whole, by an id that `search` gave. The metadata of a long one name the id of its next part.",
            r#"{"id": "Projects/Boat.md"}"#,
            fetch,
        )
        .with_structured_output()
        .strict(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchInput {
    /// A question, or words
    query: String,
}

#[derive(Debug, Serialize)]
struct SearchOutput {
    results: Vec<FoundOutput>,
}

#[derive(Debug, Serialize)]
struct FoundOutput {
    id: String,
    title: String,
    url: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FetchInput {
    /// An id that search gave
    id: String,
}

#[derive(Debug, Serialize)]
struct FetchOutput {
    id: String,
    title: String,
    text: String,
    url: String,
    metadata: Map<String, Value>,
}

/// Returns the address that opens a note in Obsidian: a vault has the name of its folder there.
fn url_of(store: &Store, path: &str) -> String {
    let vault = store.root().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let escaped = |text: &str| utf8_percent_encode(text, UNESCAPED).to_string();
    format!("obsidian://open?vault={}&file={}", escaped(&vault), escaped(path))
}

fn search(store: &Store, input: SearchInput) -> Result<Answer> {
    let request = SearchRequest {
        query: input.query,
        limit: Some(RESULTS),
        // The query is often a sentence, whose signs mean nothing.
        fallback: Fallback::IfEmptyOrInvalid,
        ..SearchRequest::default()
    };
    let found = store.searches().search(&request)?;
    let results = found.results.into_iter().map(|found| {
        let url = url_of(store, &found.path);
        FoundOutput { id: found.path, title: found.title, url }
    });
    let output = SearchOutput { results: results.collect() };
    Answer::json(&output)?.with_structured(&output)
}

fn fetch(store: &Store, input: FetchInput) -> Result<Answer> {
    store.index().refresh()?;
    let place = place_of(&input.id).filter(|_| store.lookup().find(&input.id).is_err());
    let (note, lines) = match place {
        Some((note, lines)) => (note.to_owned(), Some(lines)),
        None => (input.id, None),
    };
    let reply = store.reads().read(&ReadRequest { note, section: None, lines })?;
    store.memories().record_use(&reply.path, "read");
    let mut metadata = Map::new();
    let mut add = |key: &str, value: String| metadata.insert(key.to_owned(), Value::String(value));
    add("path", reply.path.clone());
    let mut text = TruncatedText::new(reply.text, TARGET_LENGTH - OTHER_LENGTH, reply.lines.0, 1);
    // A part of a line could not be named; one that is longer than a reply is cut.
    let next = text.next_line.map(|next| if text.next_column.is_some() { next + 1 } else { next });
    if let Some(next) = next.filter(|next| *next <= reply.lines.1) {
        add("next_part", format!("{}:{next}-{}", reply.path, reply.lines.1));
    }
    if text.next_line.is_some() {
        add("truncated", "true".to_owned());
    }
    let id = match lines {
        Some((first, last)) => format!("{}:{first}-{last}", reply.path),
        None => reply.path.clone(),
    };
    let url = url_of(store, &reply.path);
    let output = FetchOutput { id, title: reply.title, text: std::mem::take(&mut text.text), url, metadata };
    Answer::json(&output)?.with_structured(&output)
}
