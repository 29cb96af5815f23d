//! The tool that follows links between notes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sidenote_base::error::{Error, Result};
use sidenote_language::graphemes::shortened;
use sidenote_store::{RelationsRequest, Store};

use super::super::tool::{Answer, text_line, within};
use super::TARGET_LENGTH;
use super::find::parse_cursor;
use crate::reply_limit::json_length;

/// The largest number of links of each kind on a page.
const PAGE_SIZE: usize = 100;
/// The number of characters to which the text of a link is cut.
const MAX_LINK_TEXT: usize = 200;
/// The largest distance, in links, of a note from the one that is explored.
const MAX_DEPTH: usize = 5;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ExploreKindInput {
    #[default]
    #[serde(alias = "backlinks", alias = "incoming", alias = "outgoing")]
    Links,
    Relations,
    #[serde(alias = "neighbours", alias = "neighbors", alias = "neighborhood")]
    Around,
    #[serde(alias = "shortest_path")]
    Path,
    #[serde(alias = "broken", alias = "dangling")]
    Unresolved,
    Orphans,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ExploreInput {
    note: Option<String>,
    to: Option<String>,
    what: Option<ExploreKindInput>,
    depth: Option<usize>,
    relation: Option<String>,
    cursor: Option<String>,
}

/// A note, with the link that leads to it or from it.
#[derive(Debug, Default, Serialize)]
struct NoteRefOutput {
    path: String,
    /// The line of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<usize>,
    /// The type of a relation, and the note at its other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    relation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// Whether a relation was inferred from a sentence.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    inferred: bool,
    /// The note that states a relation, if it is not the one that it leads from.
    #[serde(skip_serializing_if = "Option::is_none")]
    stated_in: Option<String>,
    /// The link as written, or the text of its line.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct ExploreOutput {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outgoing: Vec<NoteRefOutput>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    backlinks: Vec<NoteRefOutput>,
    /// Links without a target.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unresolved: Vec<NoteRefOutput>,
    /// Relations, each from a note to another one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    relations: Vec<NoteRefOutput>,
    /// The notes around a note, the orphans, or the notes of a path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<NoteRefOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl NoteRefOutput {
    /// Estimates the number of characters that the item takes in a reply.
    fn length(&self) -> usize {
        let texts = [&self.text, &self.to].into_iter().flatten();
        json_length(&self.path) + texts.map(|text| json_length(text)).sum::<usize>() + 60
    }

    fn new(path: &str) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }
}

pub(super) fn explore(store: &Store, input: ExploreInput) -> Result<Answer> {
    let start = parse_cursor(input.cursor.as_deref())?;
    store.index().refresh()?;
    let note = || {
        input.note.as_deref().ok_or_else(|| {
            Error::invalid("explore_links needs a note").with_hint(r#"A valid call: {"note": "Boat"}"#)
        })
    };
    // Without `what`, the other arguments determine the kind.
    let kind = input.what.unwrap_or(match (&input.to, input.depth, &input.relation) {
        (_, _, Some(_)) => ExploreKindInput::Relations,
        (Some(_), _, None) => ExploreKindInput::Path,
        (None, Some(_), None) => ExploreKindInput::Around,
        (None, None, None) => ExploreKindInput::Links,
    });
    let mut output = ExploreOutput::default();
    match kind {
        ExploreKindInput::Links => links(store, note()?, start, &mut output)?,
        ExploreKindInput::Relations => {
            let depth = within("depth", input.depth.unwrap_or(1), 1, MAX_DEPTH)?;
            let request = RelationsRequest {
                note: note()?.to_owned(),
                kind: input.relation.clone(),
                depth: Some(depth),
            };
            let items = store.reads().relations(&request)?.relations.into_iter().map(|item| NoteRefOutput {
                distance: Some(item.distance).filter(|_| depth > 1),
                line: Some(item.line),
                inferred: item.inferred,
                stated_in: Some(item.stated_in).filter(|path| *path != item.from),
                relation: Some(item.kind),
                to: Some(item.to),
                text: Some(shortened(&item.evidence, MAX_LINK_TEXT)),
                path: item.from,
            });
            output.relations = page(items, start, &mut output.next_cursor);
        }
        ExploreKindInput::Around => {
            let depth = within("depth", input.depth.unwrap_or(1), 1, MAX_DEPTH)?;
            let around = store.reads().around(note()?, depth)?;
            let notes = around.into_iter().map(|(path, distance)| NoteRefOutput {
                distance: Some(distance),
                ..NoteRefOutput::new(&path)
            });
            output.notes = page(notes, start, &mut output.next_cursor);
        }
        ExploreKindInput::Path => {
            let to = input.to.as_deref().ok_or_else(|| {
                Error::invalid("explore_links needs to, the other end of the path")
                    .with_hint(r#"A valid call: {"note": "Boat", "to": "River"}"#)
            })?;
            let found = store.reads().path(note()?, to)?;
            output.notes = found.path.iter().map(|path| NoteRefOutput::new(path)).collect();
            output.distance = found.distance;
        }
        ExploreKindInput::Unresolved => {
            let items = store.reads().unresolved()?.into_iter().flat_map(|item| {
                let text = shortened(&item.link, MAX_LINK_TEXT);
                item.places.into_iter().map(move |(path, line)| NoteRefOutput {
                    line: Some(line),
                    text: Some(text.clone()),
                    ..NoteRefOutput::new(&path)
                })
            });
            output.unresolved = page(items, start, &mut output.next_cursor);
        }
        ExploreKindInput::Orphans => {
            let items = store.reads().orphans()?.into_iter().map(|note| NoteRefOutput::new(&note.path));
            output.notes = page(items, start, &mut output.next_cursor);
        }
    }
    Answer::text(format_output(&output, kind)).with_structured(&output)
}

fn links(store: &Store, note: &str, start: usize, output: &mut ExploreOutput) -> Result<()> {
    let reply = store.reads().links(note)?;
    let longest = reply.outgoing.len().max(reply.unresolved.len()).max(reply.backlinks.len());
    let outgoing = reply.outgoing.into_iter().map(|link| NoteRefOutput {
        line: Some(link.line),
        text: Some(shortened(&link.original, MAX_LINK_TEXT)),
        ..NoteRefOutput::new(link.resolved.as_deref().unwrap_or_default())
    });
    output.outgoing = outgoing.skip(start).take(PAGE_SIZE).collect();
    let unresolved = reply.unresolved.into_iter().map(|link| NoteRefOutput {
        line: Some(link.line),
        text: Some(shortened(&link.original, MAX_LINK_TEXT)),
        ..NoteRefOutput::new(&reply.path)
    });
    output.unresolved = unresolved.skip(start).take(PAGE_SIZE).collect();
    let backlinks = reply.backlinks.into_iter().map(|link| NoteRefOutput {
        line: Some(link.line),
        text: Some(shortened(&link.text, MAX_LINK_TEXT)),
        ..NoteRefOutput::new(&link.path)
    });
    output.backlinks = backlinks.skip(start).take(PAGE_SIZE).collect();
    // One cursor holds for all lists.
    let lists = [&output.outgoing, &output.unresolved, &output.backlinks];
    let fits = |page: &usize| {
        let ends = lists.iter().flat_map(|list| list.iter().take(*page));
        ends.map(NoteRefOutput::length).sum::<usize>() <= TARGET_LENGTH
    };
    let page = [PAGE_SIZE, 50, 25, 12, 6, 3].into_iter().find(fits).unwrap_or(1);
    for list in [&mut output.outgoing, &mut output.unresolved, &mut output.backlinks] {
        list.truncate(page);
    }
    output.next_cursor = (longest > start + page).then(|| (start + page).to_string());
    Ok(())
}

/// Returns a page of a list, and sets the cursor of the next page if there is one.
fn page(
    items: impl Iterator<Item = NoteRefOutput>,
    start: usize,
    next: &mut Option<String>,
) -> Vec<NoteRefOutput> {
    let mut page: Vec<NoteRefOutput> = items.skip(start).take(PAGE_SIZE + 1).collect();
    let (mut fitting, mut used) = (0, 0);
    for item in page.iter().take(PAGE_SIZE) {
        used += item.length();
        if used > TARGET_LENGTH && fitting > 0 {
            break;
        }
        fitting += 1;
    }
    if page.len() > fitting {
        page.truncate(fitting);
        *next = Some((start + fitting).to_string());
    }
    page
}

fn format_output(output: &ExploreOutput, kind: ExploreKindInput) -> String {
    let mut text = String::new();
    let lists = [
        ("links to", &output.outgoing),
        ("linked from", &output.backlinks),
        ("without a target", &output.unresolved),
        ("", &output.relations),
        ("", &output.notes),
    ];
    for (name, ends) in lists {
        for end in ends {
            let line = end.line.map_or_else(String::new, |line| format!(":{line}"));
            let distance = end.distance.map_or_else(String::new, |distance| format!("  ({distance})"));
            let shown = end.text.as_deref().map_or_else(String::new, |shown| format!("  {shown}"));
            let name = if name.is_empty() { String::new() } else { format!("{name} ") };
            let related = end.relation.as_deref().zip(end.to.as_deref());
            let sign = if end.inferred { " (inferred)" } else { "" };
            let related = related.map_or_else(String::new, |(kind, to)| format!(" {kind}{sign} {to}"));
            // A relation has the place where it is stated, and another item that of its own link.
            let place = match &end.relation {
                Some(_) => format!("  ({}{line})", end.stated_in.as_deref().unwrap_or(&end.path)),
                None => line,
            };
            text.push_str(&text_line(&format!("{name}{}{related}{place}{distance}{shown}", end.path)));
        }
    }
    if text.is_empty() {
        text.push_str(if kind == ExploreKindInput::Path {
            "no path of links connects them\n"
        } else {
            "none\n"
        });
    }
    if let Some(cursor) = &output.next_cursor {
        text.push_str(&format!("more with cursor {cursor}\n"));
    }
    text
}
