//! The tool that follows links between notes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::tool::{Answer, within};
use super::LONGEST;
use super::find::offset;
use crate::error::{Error, Result};
use crate::mcp::reply_limit::json_length;
use crate::store::Store;

/// So many links of each kind are on a page, or fewer where they are long.
const PAGE: usize = 100;
/// A text of a link is cut to so many characters.
const SHOWN: usize = 200;
/// Surroundings reach no farther than this.
const FARTHEST: usize = 5;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum What {
    #[default]
    Links,
    Around,
    Path,
    Unresolved,
    Orphans,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ExploreInput {
    note: Option<String>,
    /// The end of a path
    to: Option<String>,
    what: Option<What>,
    depth: Option<usize>,
    cursor: Option<String>,
}

/// One end of a link.
#[derive(Debug, Serialize)]
struct End {
    path: String,
    /// The line that holds the link, or the number of links that lead there.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<usize>,
    /// The link as written, or the line around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct ExploreOutput {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outgoing: Vec<End>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    backlinks: Vec<End>,
    /// Links that lead nowhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unresolved: Vec<End>,
    /// Notes around one, or lone ones, or the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<End>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl End {
    /// Says how much of a reply it takes.
    fn length(&self) -> usize {
        json_length(&self.path) + self.text.as_deref().map_or(0, json_length) + 60
    }

    fn at(path: &str) -> Self {
        Self { path: path.to_owned(), line: None, distance: None, text: None }
    }
}

pub(super) fn explore(store: &Store, input: ExploreInput) -> Result<Answer> {
    let start = offset(input.cursor.as_deref())?;
    store.index().refresh()?;
    let note = || {
        input.note.as_deref().ok_or_else(|| {
            Error::invalid("explore_links needs a note").with_hint(r#"A valid call: {"note": "Boat"}"#)
        })
    };
    // What else is given tells what is meant.
    let what = input.what.unwrap_or(match (&input.to, input.depth) {
        (Some(_), _) => What::Path,
        (None, Some(_)) => What::Around,
        (None, None) => What::Links,
    });
    let mut output = ExploreOutput::default();
    match what {
        What::Links => links(store, note()?, start, &mut output)?,
        What::Around => {
            let depth = within("depth", input.depth.unwrap_or(1), 1, FARTHEST)?;
            let around = store.reads().around(note()?, depth)?;
            let ends =
                around.into_iter().map(|(path, distance)| End { distance: Some(distance), ..End::at(&path) });
            output.notes = page(ends, start, &mut output.next_cursor);
        }
        What::Path => {
            let to = input.to.as_deref().ok_or_else(|| {
                Error::invalid("a path needs its other end")
                    .with_hint(r#"A valid call: {"note": "Boat", "to": "River"}"#)
            })?;
            let way = store.reads().path(note()?, to)?;
            output.notes = way.path.iter().map(|path| End::at(path)).collect();
            output.distance = way.distance;
        }
        What::Unresolved => {
            let items = store.reads().unresolved()?.into_iter().flat_map(|item| {
                let text: String = item.link.chars().take(SHOWN).collect();
                item.places.into_iter().map(move |(path, line)| End {
                    line: Some(line),
                    text: Some(text.clone()),
                    ..End::at(&path)
                })
            });
            output.unresolved = page(items, start, &mut output.next_cursor);
        }
        What::Orphans => {
            let items = store.reads().orphans()?.into_iter().map(|note| End::at(&note.path));
            output.notes = page(items, start, &mut output.next_cursor);
        }
    }
    Answer::text(show(&output, what)).with(&output)
}

fn links(store: &Store, note: &str, start: usize, output: &mut ExploreOutput) -> Result<()> {
    let reply = store.reads().links(note)?;
    let longest = reply.outgoing.len().max(reply.unresolved.len()).max(reply.backlinks.len());
    let outgoing = reply.outgoing.into_iter().map(|link| End {
        line: Some(link.line),
        text: Some(link.original.chars().take(SHOWN).collect()),
        ..End::at(link.resolved.as_deref().unwrap_or_default())
    });
    output.outgoing = outgoing.skip(start).take(PAGE).collect();
    let unresolved = reply.unresolved.into_iter().map(|link| End {
        line: Some(link.line),
        text: Some(link.original.chars().take(SHOWN).collect()),
        ..End::at(&reply.path)
    });
    output.unresolved = unresolved.skip(start).take(PAGE).collect();
    let backlinks = reply.backlinks.into_iter().map(|link| End {
        line: Some(link.line),
        text: Some(link.text.chars().take(SHOWN).collect()),
        ..End::at(&link.path)
    });
    output.backlinks = backlinks.skip(start).take(PAGE).collect();
    // All lists go on from one place.
    let lists = [&output.outgoing, &output.unresolved, &output.backlinks];
    let fits = |page: &usize| {
        let ends = lists.iter().flat_map(|list| list.iter().take(*page));
        ends.map(End::length).sum::<usize>() <= LONGEST
    };
    let page = [PAGE, 50, 25, 12, 6, 3].into_iter().find(fits).unwrap_or(1);
    for list in [&mut output.outgoing, &mut output.unresolved, &mut output.backlinks] {
        list.truncate(page);
    }
    output.next_cursor = (longest > start + page).then(|| (start + page).to_string());
    Ok(())
}

/// Cuts a page out of a list, and says where the next one begins.
fn page(items: impl Iterator<Item = End>, start: usize, next: &mut Option<String>) -> Vec<End> {
    let mut page: Vec<End> = items.skip(start).take(PAGE + 1).collect();
    let (mut kept, mut used) = (0, 0);
    for end in page.iter().take(PAGE) {
        used += end.length();
        if used > LONGEST && kept > 0 {
            break;
        }
        kept += 1;
    }
    if page.len() > kept {
        page.truncate(kept);
        *next = Some((start + kept).to_string());
    }
    page
}

fn show(output: &ExploreOutput, what: What) -> String {
    let mut text = String::new();
    let lists = [
        ("links to", &output.outgoing),
        ("linked from", &output.backlinks),
        ("leads nowhere", &output.unresolved),
        ("", &output.notes),
    ];
    for (name, ends) in lists {
        for end in ends {
            let line = end.line.map_or_else(String::new, |line| format!(":{line}"));
            let distance = end.distance.map_or_else(String::new, |distance| format!("  ({distance})"));
            let shown = end.text.as_deref().map_or_else(String::new, |shown| format!("  {shown}"));
            let name = if name.is_empty() { String::new() } else { format!("{name} ") };
            text.push_str(&format!("{name}{}{line}{distance}{shown}\n", end.path));
        }
    }
    if text.is_empty() {
        text.push_str(if what == What::Path { "no chain of links joins them\n" } else { "none\n" });
    }
    if let Some(cursor) = &output.next_cursor {
        text.push_str(&format!("more with cursor {cursor}\n"));
    }
    text
}
