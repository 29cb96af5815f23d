//! Anchors: the ids that headings and HTML elements have on a web page (docs/spec/git.md 1).
//!
//! GitHub's rule is that of [github-slugger](https://github.com/Flet/github-slugger); mdBook's is `id_from_content` of
//! its `utils`.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use sidenote_markdown::commonmark::{PagePlace, page_places};
use sidenote_markdown::link_syntax::percent_decode;
use sidenote_markdown::note::Note;

use crate::dialect::LinkDialect;

/// Matches what GitHub drops from the text of a heading: all but letters, marks, decimal digits, connectors such as the
/// underscore, hyphens and spaces. `None` if the pattern does not compile, which a test excludes.
static DROPPED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[^\w\- ]").ok());

/// Returns the id of a heading with this text, as if it were the only one of its page.
pub fn slug(dialect: LinkDialect, text: &str) -> String {
    if dialect == LinkDialect::Mdbook {
        let kept = text.trim().chars().filter_map(|c| match c {
            c if c.is_alphanumeric() || matches!(c, '_' | '-') => Some(c.to_ascii_lowercase()),
            c => c.is_whitespace().then_some('-'),
        });
        return kept.collect();
    }
    let lower = text.to_lowercase();
    let kept = DROPPED.as_ref().map_or(lower.as_str().into(), |dropped| dropped.replace_all(&lower, ""));
    kept.replace(' ', "-")
}

/// What an anchor names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnchorTarget {
    /// The heading with this index in the note's list.
    Heading(usize),
    /// A heading inside a quote or list, or an HTML element, by its index among these.
    Other(usize),
}

/// The anchors of one note.
#[derive(Debug, Clone, Default)]
pub struct AnchorTable {
    /// What each anchor names, by its lower-case form.
    targets: HashMap<String, AnchorTarget>,
    /// The anchor of each heading of the note; empty where it has none.
    headings: Vec<String>,
    /// The anchor of each heading inside a quote or list, and of each HTML element, in order, with the offset of the place.
    others: Vec<(String, usize)>,
}

impl AnchorTable {
    /// Creates the table of a note with this text. Obsidian's dialect, which has no anchors, gets GitHub's.
    pub fn new(dialect: LinkDialect, text: &str, note: &Note) -> Self {
        let with_attributes = matches!(dialect, LinkDialect::Mdbook | LinkDialect::Site);
        let headings = vec![String::new(); note.headings.len()];
        let mut table = Self { targets: HashMap::new(), headings, others: Vec::new() };
        let mut taken: HashMap<String, usize> = HashMap::new();
        for place in page_places(text, note.body_start, with_attributes) {
            match place {
                PagePlace::Element { start, name } => {
                    let target = AnchorTarget::Other(table.others.len());
                    table.targets.entry(name.to_lowercase()).or_insert(target);
                    table.others.push((name, start));
                }
                PagePlace::Heading { start, text, id } => {
                    let anchor = id.unwrap_or_else(|| free(&mut taken, slug(dialect, &text)));
                    let index = note.headings.partition_point(|heading| heading.span.end <= start);
                    let own = note.headings.get(index).filter(|heading| heading.span.start <= start);
                    let target = match own.and_then(|_| table.headings.get_mut(index)) {
                        Some(slot) => {
                            slot.clone_from(&anchor);
                            AnchorTarget::Heading(index)
                        }
                        None => {
                            table.others.push((anchor.clone(), start));
                            AnchorTarget::Other(table.others.len() - 1)
                        }
                    };
                    table.targets.entry(anchor.to_lowercase()).or_insert(target);
                }
            }
        }
        table
    }

    /// Finds what a subpath names, which begins with `#` and may be percent-encoded.
    pub fn find(&self, subpath: &str) -> Option<AnchorTarget> {
        let anchor = subpath.strip_prefix('#').unwrap_or(subpath);
        // GitHub gives its ids this prefix, and follows links without it.
        let bare = anchor.strip_prefix("user-content-").unwrap_or(anchor);
        let find = |anchor: &str| {
            let found = self.targets.get(&anchor.to_lowercase());
            found.or_else(|| self.targets.get(&percent_decode(anchor).to_lowercase())).copied()
        };
        find(anchor).or_else(|| find(bare))
    }

    /// Returns the offset of a place that is not a heading of the note's list.
    pub fn start_of_other(&self, index: usize) -> Option<usize> {
        self.others.get(index).map(|(_, start)| *start)
    }

    /// Returns the number of headings inside quotes and lists, and of ids of HTML elements.
    pub fn others(&self) -> usize {
        self.others.len()
    }

    /// Returns the number of those places before an offset.
    pub fn others_before(&self, offset: usize) -> usize {
        self.others.partition_point(|(_, start)| *start < offset)
    }

    /// Returns the anchor of a place of the note.
    pub fn of(&self, target: AnchorTarget) -> Option<&str> {
        let anchor = match target {
            AnchorTarget::Heading(index) => self.headings.get(index),
            AnchorTarget::Other(index) => self.others.get(index).map(|(anchor, _)| anchor),
        };
        anchor.map(String::as_str).filter(|anchor| !anchor.is_empty())
    }
}

/// Returns a slug, with the first number behind it that no heading before has. (GitHub and mdBook count alike.)
fn free(taken: &mut HashMap<String, usize>, slug: String) -> String {
    let mut free = slug.clone();
    while taken.contains_key(&free) {
        let count = taken.entry(slug.clone()).or_insert(0);
        *count += 1;
        free = format!("{slug}-{count}");
    }
    taken.insert(free.clone(), 0);
    free
}
