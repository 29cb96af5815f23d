//! Names of the parts of a note as people and agents give them: a heading, a block or a footnote.
//!
//! A link means the first part with its name (`subpath`). A name that is given for reading or writing must mean one.

use sidenote_markdown::note::{Heading, Note, heading_key};
use sidenote_markdown::path::clean;
use sidenote_markdown::subpath::SubpathTarget;

use crate::rewrite::heading_linktext;

/// Returns the parts that a name means, in the order of the note: none, one, or several that have the name.
///
/// The forms, of which the first that fits counts, are: `^block`, `[^footnote]`, the text of a heading, headings below
/// each other joined by `#`, a text that differs from a heading in case or punctuation alone, and the line of a
/// heading, as `line 12`. A bare number is a text. The signs of a heading may precede its text; with a space after
/// them, their number is its level.
pub fn parts_named(note: &Note, name: &str) -> Vec<SubpathTarget> {
    let name = clean(name);
    let inner = name.trim_start_matches('#');
    let signs = name.len() - inner.len();
    let level = usize::from(inner.starts_with(' ')) * signs;
    let inner = inner.trim();
    if let Some(id) = inner.strip_prefix('^') {
        let named = |(_, block): &(usize, &sidenote_markdown::note::Block)| block.id.eq_ignore_ascii_case(id);
        return note
            .blocks
            .iter()
            .enumerate()
            .filter(named)
            .map(|(at, _)| SubpathTarget::Block(at))
            .collect();
    }
    if let Some(id) = inner.strip_prefix("[^").and_then(|rest| rest.strip_suffix(']')) {
        let found =
            note.footnotes.iter().position(|footnote| footnote.id.to_lowercase() == id.to_lowercase());
        return found.map(SubpathTarget::Footnote).into_iter().collect();
    }
    let whole = heading_key(inner);
    let is_exact = |(_, heading): &(usize, &Heading)| {
        let text = clean(&heading.text);
        text == name || text == inner
    };
    let chains = chains_of(inner);
    let above = if chains.is_empty() { Vec::new() } else { parents(note) };
    let is_alike =
        |(_, heading): &(usize, &Heading)| !whole.is_empty() && heading_key(&heading.text) == whole;
    let line: Option<usize> = inner.strip_prefix("line ").and_then(|line| line.parse().ok());
    let is_at = |(_, heading): &(usize, &Heading)| Some(heading.line) == line;
    let all = || note.headings.iter().enumerate();
    let mut found: Vec<(usize, &Heading)> = all().filter(is_exact).collect();
    for chain in chains {
        if found.is_empty() {
            found = all().filter(|(at, _)| is_chain(note, &above, *at, &chain)).collect();
        }
    }
    if found.is_empty() {
        found = all().filter(is_alike).collect();
    }
    if found.is_empty() {
        found = all().filter(is_at).collect();
    }
    if found.iter().any(|(_, heading)| usize::from(heading.level) == level) {
        found.retain(|(_, heading)| usize::from(heading.level) == level);
    }
    found.into_iter().map(|(at, _)| SubpathTarget::Heading(at)).collect()
}

/// Returns a name that means this heading and no other: its text, with as many headings above it as needed, or its line.
pub fn clear_name(note: &Note, heading: usize) -> String {
    let text =
        |at: usize| note.headings.get(at).map_or_else(String::new, |heading| heading_linktext(&heading.text));
    let means_it = |name: &String| parts_named(note, name) == [SubpathTarget::Heading(heading)];
    let parents = parents(note);
    let mut name = text(heading);
    let mut inner = heading;
    while !means_it(&name)
        && let Some(above) = parents.get(inner).copied().flatten()
    {
        name = format!("{}#{name}", text(above));
        inner = above;
    }
    let Some(held) = note.headings.get(heading).filter(|_| !means_it(&name)) else { return name };
    format!("line {}", held.line)
}

/// The largest number of pieces between the signs of a name that is read as headings below each other.
const MOST_PIECES: usize = 8;

/// Lists the keys of headings below each other that a name can mean. A heading can have a `#` in its text, so neighbouring
/// pieces may be one; the reading with the most headings is the first, as in a link.
fn chains_of(name: &str) -> Vec<Vec<String>> {
    let pieces: Vec<&str> = name.split('#').filter(|piece| !heading_key(piece).is_empty()).collect();
    if !(2..=MOST_PIECES).contains(&pieces.len()) {
        return Vec::new();
    }
    let joints = pieces.len() - 1;
    // A bit says that the piece after it belongs to the same heading; all of them together would be one heading.
    let mut choices: Vec<u32> = (0..(1_u32 << joints) - 1).collect();
    choices.sort_by_key(|choice| choice.count_ones());
    let chain = |choice: u32| {
        let mut headings: Vec<String> = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            match headings.last_mut().filter(|_| at > 0 && choice >> (at - 1) & 1 == 1) {
                Some(heading) => {
                    heading.push(' ');
                    heading.push_str(piece);
                }
                None => headings.push((*piece).to_owned()),
            }
        }
        headings.iter().map(|heading| heading_key(heading)).collect()
    };
    choices.into_iter().map(chain).collect()
}

/// Returns whether a heading has the last of these keys, and headings above it have the others in their order.
fn is_chain(note: &Note, parents: &[Option<usize>], heading: usize, keys: &[String]) -> bool {
    let Some((last, mut rest)) = keys.split_last() else { return false };
    let has_key =
        |at: usize, key: &String| note.headings.get(at).is_some_and(|held| heading_key(&held.text) == *key);
    if !has_key(heading, last) {
        return false;
    }
    let parent = |at: usize| parents.get(at).copied().flatten();
    let mut above = parent(heading);
    while let (Some(at), Some((key, outer))) = (above, rest.split_last()) {
        if has_key(at, key) {
            rest = outer;
        }
        above = parent(at);
    }
    rest.is_empty()
}

/// Returns for each heading the one whose section directly encloses it.
fn parents(note: &Note) -> Vec<Option<usize>> {
    let mut open: Vec<(u8, usize)> = Vec::new();
    let outer = note.headings.iter().enumerate().map(|(at, heading)| {
        open.retain(|(level, _)| *level < heading.level);
        let outer = open.last().map(|(_, at)| *at);
        open.push((heading.level, at));
        outer
    });
    outer.collect()
}
