//! The documents of attachments: what the index stores of one, from the text that was read of it.

use serde_json::{Map, Value, json};
use sidenote_attachments::{AttachmentText, Outcome};
use sidenote_base::clock::StatedTime;
use sidenote_bm25::Analyzer;
use sidenote_catalog::{CreationSource, Hash, Stat};
use sidenote_markdown::attachment::{self, Place};
use sidenote_markdown::path::NotePath;
use sidenote_vectors::passage_key;

use crate::indexed_document::{IndexedDocument, ParsedNote, collect_texts, is_local};

impl IndexedDocument {
    /// Creates the document of an attachment with this hash from its text, in the form of [`attachment`].
    fn with_text(
        path: &NotePath,
        (hash, text): (Hash, Vec<u8>),
        stat: Stat,
        properties: Map<String, Value>,
        analyzer: &mut Analyzer,
    ) -> Self {
        let reading = ParsedNote::new(path, text);
        let mut document = Self::attachment(path, stat, false, false);
        let record = &mut document.record;
        record.row.hash = Some(hash);
        let stated = |name: &str| properties.get(name).and_then(Value::as_str).and_then(StatedTime::parse);
        if let Some(created) = stated("created") {
            record.row.created = created.instant();
            record.row.time_sources.created = CreationSource::Property;
            record.row.time_sources.is_created_local = is_local(&created);
        }
        record.properties = properties;
        record.problems = "[]".to_owned();
        reading.each_embedded_text(|text| record.passages.push(passage_key(text)));
        let record = &document.record;
        document.entry = Some(analyzer.analyze(|texts| collect_texts(path, &reading, record, texts)));
        document
    }

    /// Creates the document of an attachment with this hash that is text.
    pub(crate) fn from_text_file(
        path: &NotePath,
        hash: Hash,
        text: Vec<u8>,
        stat: Stat,
        analyzer: &mut Analyzer,
    ) -> Self {
        Self::with_text(path, (hash, text), stat, Map::new(), analyzer)
    }

    /// Creates the document of an attachment from what reading it gave.
    pub(crate) fn from_attachment(
        path: &NotePath,
        hash: Hash,
        read: &Outcome,
        stat: Stat,
        analyzer: &mut Analyzer,
    ) -> Self {
        let (properties, text) = match read {
            Ok(text) => (stated_properties(text), attachment_text(text)),
            Err(_) => (Map::new(), String::new()),
        };
        let mut document = Self::with_text(path, (hash, text.into_bytes()), stat, properties, analyzer);
        document.record.problems = attachment_problems(read).to_string();
        document
    }
}

/// Returns the text of an attachment in the form of [`attachment`].
pub fn attachment_text(text: &AttachmentText) -> String {
    let mut out = String::new();
    for place in &text.places {
        let kind = format!("{:?}", place.kind).to_ascii_lowercase();
        let named = Place { kind, number: place.number, name: place.name.clone() };
        attachment::push_place(&mut out, &named, &place.text);
    }
    out
}

/// Returns what an attachment states about itself, as properties.
fn stated_properties(text: &AttachmentText) -> Map<String, Value> {
    let one = |value: &Option<String>| value.clone().map(Value::String);
    let authors = match text.authors.as_slice() {
        [] => None,
        [author] => Some(Value::String(author.clone())),
        several => Some(several.iter().cloned().map(Value::String).collect()),
    };
    [
        ("title", one(&text.title)),
        ("author", authors),
        ("created", one(&text.created)),
        ("modified", one(&text.modified)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

/// Returns the problems of an attachment, in the form of those of a note.
fn attachment_problems(read: &Outcome) -> Value {
    let problem = attachment_problem(read);
    problem
        .into_iter()
        .map(|(code, message)| json!({ "code": code, "message": message, "span": null }))
        .collect()
}

/// Returns the problems of an attachment whose text cannot be read, in the form of those of a note.
pub(crate) fn unreadable_attachment(why: &str) -> String {
    json!([{ "code": UNREADABLE, "message": why, "span": null }]).to_string()
}

/// The code of the problem that the text of an attachment cannot be read.
const UNREADABLE: &str = "attachment-unreadable";

/// Returns what keeps text of an attachment from being found, if anything does: a code, and a phrase that follows its path and
/// a colon.
pub fn attachment_problem(read: &Outcome) -> Option<(&'static str, String)> {
    let text = match read {
        Ok(text) => text,
        Err(failure) => return Some((UNREADABLE, failure.reason())),
    };
    let scans = text.places.iter().filter(|place| place.is_scan).count();
    if scans == 0 && text.places.iter().all(|place| place.text.trim().is_empty()) {
        return Some((UNREADABLE, "no text was found in it".to_owned()));
    }
    let which = match (scans, text.places.len()) {
        (0, _) => return None,
        (1, 1) => "its page is a scan and has".to_owned(),
        (scans, pages) if scans == pages => format!("all {pages} pages are scans and have"),
        (1, pages) => format!("1 of {pages} pages is a scan and has"),
        (scans, pages) => format!("{scans} of {pages} pages are scans and have"),
    };
    Some(("scanned", format!("{which} no text")))
}
