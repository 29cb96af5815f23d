//! The merge of frontmatter by key (docs/spec/git.md 4).
//!
//! An entry is decided as a whole: the side that changed it, the union of two lists, the later or earlier of two times.
//! An entry that is not decided stays as each side wrote it, for the line merge.

use std::collections::BTreeSet;

use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_markdown::edit::apply;
use sidenote_markdown::frontmatter::edit::set;
use sidenote_markdown::frontmatter::{Frontmatter, Property};
use sidenote_markdown::line::line_at;
use sidenote_markdown::link::Link;
use sidenote_markdown::note::Note;
use sidenote_markdown::span::Span;
use sidenote_markdown::{frontmatter, path};

use crate::merge::retarget::Passage;
use crate::merge::{ParsedVersions, retarget, unchanged_side};

/// The properties whose lists are united.
const UNITED: [&str; 3] = ["tags", "aliases", "cssclasses"];

/// The text of an entry in each version, or of another part of the block.
type Triple = [String; 3];

/// One entry of the block, with the comments and blank lines above it.
#[derive(Debug, Clone, Copy)]
struct Entry<'t> {
    property: &'t Property,
    lead: Span,
    lines: Span,
}

/// The frontmatter of one version, split into whole lines.
struct Block<'t> {
    text: &'t str,
    links: &'t [Link],
    /// The byte order mark and the opening line.
    opening: Span,
    entries: Vec<(String, Entry<'t>)>,
    /// The comments and blank lines after the last entry.
    tail: Span,
    closing: Span,
}

/// Writes the frontmatter of the three versions, up to the body, with what the rules decide. Returns `None` if it is the
/// same in all versions, or if a version has none that can be merged by key.
pub(super) fn resolve(parsed: &ParsedVersions<'_>) -> Option<Triple> {
    let texts = parsed.texts;
    let head = |text: &'_ str, note: &Note| text.get(..note.body_start).unwrap_or("").to_owned();
    let [base_head, our_head, their_head] =
        [head(texts.base, &parsed.base), head(texts.ours, &parsed.ours), head(texts.theirs, &parsed.theirs)];
    if our_head == their_head && our_head == base_head {
        return None;
    }
    let base = match &parsed.base.frontmatter {
        Some(_) => Some(Block::of(texts.base, &parsed.base)?),
        None => None,
    };
    let (ours, theirs) = (Block::of(texts.ours, &parsed.ours)?, Block::of(texts.theirs, &parsed.theirs)?);
    let part = |span_of: fn(&Block<'_>) -> Span| {
        let text = |block: &Block<'_>| span_of(block).of(block.text).to_owned();
        [base.as_ref().map(text), Some(text(&ours)), Some(text(&theirs))]
    };
    // The delimiters must be in all versions, also in a base without frontmatter.
    let delimiter = |[base, ours, theirs]: [Option<String>; 3]| {
        let decided = unchanged_side(base.as_ref(), ours.as_ref(), theirs.as_ref());
        all(decided.flatten().or(ours.as_ref()).cloned().unwrap_or_default())
    };
    let mut heads = delimiter(part(|block| block.opening));
    let blocks = [base.as_ref(), Some(&ours), Some(&theirs)];
    for key in order(&ours, &theirs) {
        let entries = blocks.map(|block| block.and_then(|block| block.get(&key)));
        let written = |span_of: fn(&Entry<'_>) -> Span| {
            let text = |(block, entry): (Option<&Block<'_>>, Option<Entry<'_>>)| {
                Some(span_of(&entry?).of(block?.text).to_owned())
            };
            let [base, ours, theirs] = entries;
            [text((blocks[0], base)), text((blocks[1], ours)), text((blocks[2], theirs))]
        };
        let [base_lead, our_lead, their_lead] = written(|entry| entry.lead);
        append(&mut heads, &decided_or_each(base_lead, our_lead, their_lead));
        append(&mut heads, &merge_entry(&key, written(|entry| entry.lines), entries, blocks));
    }
    let [base_tail, our_tail, their_tail] = part(|block| block.tail);
    append(&mut heads, &decided_or_each(base_tail, our_tail, their_tail));
    append(&mut heads, &delimiter(part(|block| block.closing)));
    Some(heads)
}

/// Returns the text that a three-way merge decides on, in all versions, or else the text of each version.
fn decided_or_each(base: Option<String>, ours: Option<String>, theirs: Option<String>) -> Triple {
    match unchanged_side(&base, &ours, &theirs) {
        Some(decided) => all(decided.clone().unwrap_or_default()),
        None => [base, ours, theirs].map(Option::unwrap_or_default),
    }
}

fn all(text: String) -> Triple {
    [text.clone(), text.clone(), text]
}

fn append(heads: &mut Triple, part: &Triple) {
    heads.iter_mut().zip(part).for_each(|(head, part)| head.push_str(part));
}

/// Lists the keys of both sides: those of ours in order, each other one after the key that precedes it in theirs.
fn order(ours: &Block<'_>, theirs: &Block<'_>) -> Vec<String> {
    let mut keys: Vec<String> = ours.entries.iter().map(|(key, _)| key.clone()).collect();
    let mut at = 0;
    for (key, _) in &theirs.entries {
        match keys.iter().position(|known| known == key) {
            Some(found) => at = found + 1,
            None => {
                keys.insert(at, key.clone());
                at += 1;
            }
        }
    }
    keys
}

/// Merges the lines of one entry.
fn merge_entry(
    key: &str,
    lines: [Option<String>; 3],
    entries: [Option<Entry<'_>>; 3],
    blocks: [Option<&Block<'_>>; 3],
) -> Triple {
    let [base, ours, theirs] = &lines;
    if let Some(decided) = unchanged_side(base, ours, theirs) {
        return all(decided.clone().unwrap_or_default());
    }
    if let ([base_entry, Some(our_entry), Some(their_entry)], [_, Some(our_block), Some(their_block)]) =
        (entries, blocks)
    {
        let values = (base_entry.map(|entry| entry.property), our_entry.property, their_entry.property);
        let taken = if UNITED.contains(&key) {
            union(key, values, our_block, &[ours, theirs])
        } else {
            by_time(key, values.1, values.2).and_then(|is_ours| if is_ours { ours } else { theirs }.clone())
        };
        let taken = taken.or_else(|| {
            let base = (base_entry?, blocks[0]?);
            retarget::resolve(
                base.1.passage(base.0),
                our_block.passage(our_entry),
                their_block.passage(their_entry),
            )
        });
        if let Some(text) = taken {
            return all(text);
        }
    }
    lines.map(Option::unwrap_or_default)
}

/// Unites two lists, less what one side removed. Returns the lines of the entry.
fn union(
    key: &str,
    (base, ours, theirs): (Option<&Property>, &Property, &Property),
    block: &Block<'_>,
    lines: &[&Option<String>; 2],
) -> Option<String> {
    let old = base.map_or_else(|| Some(Vec::new()), |base| items(&base.value))?;
    let (our_items, their_items) = (items(&ours.value)?, items(&theirs.value)?);
    let is_kept = |item: &&Value| their_items.contains(item) || !old.contains(item);
    let mut united: Vec<Value> = our_items.iter().filter(is_kept).cloned().collect();
    for item in their_items.iter().filter(|item| !old.contains(item)) {
        if !united.contains(item) {
            united.push(item.clone());
        }
    }
    if united == our_items {
        return lines[0].clone();
    }
    if united == their_items {
        return lines[1].clone();
    }
    let edits = set(block.text, &ours.key, &Value::Array(united)).ok()?;
    let text = String::from_utf8(apply(block.text.as_bytes(), &edits).ok()?).ok()?;
    let (frontmatter, body_start) = frontmatter::read(&text);
    let edited = Block::split(&text, &[], frontmatter.as_ref()?, body_start)?;
    let entry = edited.get(key)?;
    Some(entry.lines.of(&text).to_owned())
}

/// Lists the items of a list of texts, as Obsidian reads the property. Returns `None` for another value.
fn items(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => {
            items.iter().all(|item| !item.is_array() && !item.is_object()).then(|| items.clone())
        }
        // Obsidian splits such a text at commas, or takes it for one item, by version.
        Value::String(text) if text.contains([',', ' ']) => None,
        Value::Object(_) => None,
        single => Some(vec![single.clone()]),
    }
}

/// Returns whether ours is the later of two times of a change, or the earlier of two of the creation. Returns `None` for
/// another property.
fn by_time(key: &str, ours: &Property, theirs: &Property) -> Option<bool> {
    let is_later = if key.starts_with("updated") {
        true
    } else if key.starts_with("created") {
        false
    } else {
        return None;
    };
    let order = match (&ours.value, &theirs.value) {
        (Value::Number(ours), Value::Number(theirs)) => ours.as_f64()?.partial_cmp(&theirs.as_f64()?)?,
        (Value::String(ours), Value::String(theirs)) => {
            Timestamp::parse(ours)?.millis().cmp(&Timestamp::parse(theirs)?.millis())
        }
        _ => return None,
    };
    Some(if is_later { order.is_ge() } else { order.is_le() })
}

/// Returns whether a merged frontmatter has the properties of a version that its base lacks, apart from what the rules
/// decide by value.
pub(super) fn has_properties(own: &Frontmatter, base: Option<&Frontmatter>, merged: &Frontmatter) -> bool {
    own.properties.iter().all(|property| {
        let old = base.and_then(|base| base.get(&property.key));
        if old.is_some_and(|old| old.value == property.value) {
            return true;
        }
        let Some(found) = merged.get(&property.key) else { return false };
        let key = path::key(&property.key);
        if UNITED.contains(&key.as_str())
            && let (Some(own), Some(united)) = (items(&property.value), items(&found.value))
        {
            let old = old.and_then(|old| items(&old.value)).unwrap_or_default();
            return own.iter().all(|item| united.contains(item) || old.contains(item));
        }
        found.value == property.value || by_time(&key, found, property) == Some(true)
    })
}

impl<'t> Block<'t> {
    /// Splits the frontmatter of a version. Returns `None` if there is none, or if its entries are not whole lines.
    fn of(text: &'t str, note: &'t Note) -> Option<Self> {
        Self::split(text, &note.links, note.frontmatter.as_ref()?, note.body_start)
    }

    fn split(
        text: &'t str,
        links: &'t [Link],
        frontmatter: &'t Frontmatter,
        body_start: usize,
    ) -> Option<Self> {
        if frontmatter.error.is_some() || frontmatter.flow {
            return None;
        }
        let yaml = frontmatter.yaml_span;
        let mut entries = Vec::new();
        let mut known = BTreeSet::new();
        let mut at = yaml.start;
        for property in &frontmatter.properties {
            let key_start = property.key_span.start;
            let before = text.get(at..key_start)?;
            let start = before.rfind('\n').map_or(at, |end| at + end + 1);
            if !Span::new(start, key_start).of(text).trim().is_empty() {
                return None;
            }
            let end = match property.span.end {
                // The span of a block scalar ends with its last line end.
                end if end > start && text.get(..end)?.ends_with('\n') => end,
                end => line_at(text, end).1,
            };
            let end = end.min(yaml.end);
            let key = path::key(&property.key);
            if end <= start || !known.insert(key.clone()) {
                return None;
            }
            entries.push((key, Entry { property, lead: Span::new(at, start), lines: Span::new(start, end) }));
            at = end;
        }
        Some(Self {
            text,
            links,
            opening: Span::new(0, yaml.start),
            entries,
            tail: Span::new(at, yaml.end),
            closing: Span::new(yaml.end, body_start),
        })
    }

    fn get(&self, key: &str) -> Option<Entry<'t>> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, entry)| *entry)
    }

    fn passage(&self, entry: Entry<'_>) -> Passage<'t> {
        Passage { text: self.text, span: entry.lines, links: self.links }
    }
}
