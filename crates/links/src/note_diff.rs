//! The difference of two states of a note in the terms of notes: links, tags, properties, headings, tasks and words.
//!
//! A link is the same one if it is in the same place: in a line that differs only in destinations of links.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use serde::Serialize;
use serde_json::Value;
use sidenote_language::terms::{TermKind, Terms};
use sidenote_markdown::line::Lines;
use sidenote_markdown::link::Link;
use sidenote_markdown::note::{Note, PieceKind};
use sidenote_markdown::path;

/// What a link of one state leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LinkEnd {
    /// It was not looked up. Such a link is compared by its text.
    Unknown,
    /// It leads to nothing.
    Nowhere,
    /// It leads to a file, a folder, or out of the vault.
    Place {
        /// The path as it is in this state.
        path: String,
        /// The path by which the place is recognised in both states.
        identity: String,
    },
}

impl LinkEnd {
    fn path(&self) -> Option<String> {
        match self {
            Self::Place { path, .. } => Some(path.clone()),
            Self::Unknown | Self::Nowhere => None,
        }
    }

    /// Returns the path by which the place is recognised in both states; `None` if the link leads nowhere, or was not looked
    /// up.
    pub fn identity(&self) -> Option<&str> {
        match self {
            Self::Place { identity, .. } => Some(identity),
            Self::Unknown | Self::Nowhere => None,
        }
    }
}

/// One state of a note.
#[derive(Debug, Clone, Copy)]
pub struct NoteState<'a> {
    /// The text of the file.
    pub text: &'a str,
    /// The parsed note.
    pub note: &'a Note,
    /// What each link of the note leads to, in order. Those that are missing are unknown.
    pub ends: &'a [LinkEnd],
}

/// A link of a note.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LinkRef {
    /// The link as written.
    pub text: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The path that it leads to, if links were looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether it was looked up and leads to nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dead: bool,
}

/// A link in both states of a note.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LinkChange {
    /// The link before.
    pub before: LinkRef,
    /// The link after.
    pub after: LinkRef,
}

/// The differences in the links of a note.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LinkDiff {
    /// The new links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<LinkRef>,
    /// The links that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<LinkRef>,
    /// The links that lead to another place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retargeted: Vec<LinkChange>,
    /// The links that are written in another way and lead to the same place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rewritten: Vec<LinkChange>,
    /// The links that lead to nothing now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dead: Vec<LinkChange>,
    /// The links that led to nothing before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revived: Vec<LinkChange>,
}

/// A heading of a note.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct HeadingRef {
    /// The level, 1 to 6.
    pub level: u8,
    /// The text.
    pub text: String,
}

/// A task of a note.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TaskRef {
    /// The character between the brackets; a space means open.
    pub status: char,
    /// The text.
    pub text: String,
}

/// A task with another status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TaskChange {
    /// The text.
    pub text: String,
    /// The status before.
    pub before: char,
    /// The status after.
    pub after: char,
}

/// The value of a property in both states.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PropertyChange {
    /// The name.
    pub name: String,
    /// The value before; absent if the property is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after; absent if the property is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The tags that are new and gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TagDiff {
    /// The new tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// The tags that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// The headings that are new and gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HeadingDiff {
    /// The new headings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<HeadingRef>,
    /// The headings that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<HeadingRef>,
}

/// The differences in the tasks of a note.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TaskDiff {
    /// The new tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<TaskRef>,
    /// The tasks that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<TaskRef>,
    /// The tasks with another status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<TaskChange>,
}

/// How many words are new and gone, wherever they stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WordDiff {
    /// The number of words that are new.
    pub added: usize,
    /// The number of words that are gone.
    pub removed: usize,
}

/// The difference of two states of a note.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NoteDiff {
    /// The links to files.
    #[serde(skip_serializing_if = "is_default")]
    pub links: LinkDiff,
    /// The tags.
    #[serde(skip_serializing_if = "is_default")]
    pub tags: TagDiff,
    /// The properties, by name. `tags` is among them only if the tags are the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<PropertyChange>,
    /// The headings.
    #[serde(skip_serializing_if = "is_default")]
    pub headings: HeadingDiff,
    /// The tasks.
    #[serde(skip_serializing_if = "is_default")]
    pub tasks: TaskDiff,
    /// The words.
    #[serde(skip_serializing_if = "is_default")]
    pub words: WordDiff,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl NoteDiff {
    /// Compares two states of a note.
    pub fn of(before: NoteState<'_>, after: NoteState<'_>) -> Self {
        let tags = tag_diff(before.note, after.note);
        let (removed, added) = unmatched(
            before.note.headings.iter().map(|heading| (heading.level, heading.text.as_str())).collect(),
            after.note.headings.iter().map(|heading| (heading.level, heading.text.as_str())).collect(),
        );
        let heading = |(level, text): (u8, &str)| HeadingRef { level, text: text.to_owned() };
        Self {
            links: link_diff(before, after),
            properties: property_diff(before.note, after.note, !is_default(&tags)),
            tags,
            headings: HeadingDiff {
                added: added.into_iter().map(heading).collect(),
                removed: removed.into_iter().map(heading).collect(),
            },
            tasks: task_diff(before.note, after.note),
            words: word_diff(before, after),
        }
    }

    /// Returns whether nothing differs in the terms of notes.
    pub fn is_empty(&self) -> bool {
        is_default(self)
    }
}

/// Takes equal items out of two lists, each as often as both have it. Returns what is left, in order.
fn unmatched<T: Clone + Eq + Hash>(before: Vec<T>, after: Vec<T>) -> (Vec<T>, Vec<T>) {
    let mut counts: HashMap<T, (usize, usize)> = HashMap::new();
    for item in &before {
        counts.entry(item.clone()).or_default().0 += 1;
    }
    for item in &after {
        counts.entry(item.clone()).or_default().1 += 1;
    }
    let common: HashMap<T, usize> =
        counts.into_iter().map(|(item, (one, other))| (item, one.min(other))).collect();
    let rest = |items: Vec<T>| {
        let mut common = common.clone();
        let is_left = |item: &T| match common.get_mut(item) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        items.into_iter().filter(is_left).collect::<Vec<_>>()
    };
    (rest(before), rest(after))
}

/// Takes pairs with equal keys out of two lists, in order. What has no key, or no counterpart, is left.
fn pair<T, K: Eq + Hash>(
    before: &mut Vec<T>,
    after: &mut Vec<T>,
    key: impl Fn(&T) -> Option<K>,
) -> Vec<(T, T)> {
    let mut waiting: HashMap<K, VecDeque<usize>> = HashMap::new();
    for (at, item) in after.iter().enumerate() {
        if let Some(key) = key(item) {
            waiting.entry(key).or_default().push_back(at);
        }
    }
    let mut rest: Vec<Option<T>> = after.drain(..).map(Some).collect();
    let mut pairs = Vec::new();
    let mut left = Vec::new();
    for item in before.drain(..) {
        let place = key(&item).and_then(|key| waiting.get_mut(&key)?.pop_front());
        match place.and_then(|at| rest.get_mut(at)?.take()) {
            Some(other) => pairs.push((item, other)),
            None => left.push(item),
        }
    }
    *before = left;
    *after = rest.into_iter().flatten().collect();
    pairs
}

/// A link of one state, with what it is recognised by.
struct StateLink<'a> {
    link: &'a Link,
    end: LinkEnd,
    reference: LinkRef,
    /// The hash of the lines that contain the link, without the destinations of links, and the place of the link among
    /// those that begin in its line.
    place: (u64, usize),
}

/// Lists the links of a state that lead to files.
fn links_of(state: NoteState<'_>) -> Vec<StateLink<'_>> {
    let mut lines = LinesWithoutLinks::new(state);
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    let all = state.note.links.iter().enumerate();
    let inner = all.filter(|(_, link)| !link.is_external());
    inner
        .map(|(at, link)| {
            let end = state.ends.get(at).cloned().unwrap_or(LinkEnd::Unknown);
            let (start, hash) = lines.at(link.span.start);
            let number = numbers.entry(start).or_default();
            *number += 1;
            let reference = LinkRef {
                text: link.span.of(state.text).to_owned(),
                line: link.line,
                target: end.path(),
                dead: end == LinkEnd::Nowhere,
            };
            StateLink { link, end, reference, place: (hash, *number) }
        })
        .collect()
}

/// The lines of a text, each hashed once without the destinations of the links in it.
struct LinesWithoutLinks<'a> {
    text: &'a str,
    lines: Lines,
    /// The destinations, as start and end, in order.
    destinations: Vec<(usize, usize)>,
    hashes: HashMap<usize, u64>,
}

impl<'a> LinesWithoutLinks<'a> {
    fn new(state: NoteState<'a>) -> Self {
        let spans = state.note.links.iter().map(|link| (link.dest_span.start, link.dest_span.end));
        let mut destinations: Vec<_> = spans.collect();
        destinations.sort_unstable();
        Self { text: state.text, lines: Lines::new(state.text), destinations, hashes: HashMap::new() }
    }

    /// Returns the start of the line with an offset, and the hash of the line.
    fn at(&mut self, offset: usize) -> (usize, u64) {
        let line = self.lines.of(offset);
        let start = self.lines.start(line);
        if let Some(hash) = self.hashes.get(&start) {
            return (start, *hash);
        }
        let rest = self.text.get(start..).unwrap_or_default();
        let end = start + rest.find('\n').unwrap_or(rest.len());
        let mut hasher = DefaultHasher::new();
        let mut at = start;
        let first = self.destinations.partition_point(|(_, until)| *until <= start);
        for &(from, until) in self.destinations.iter().skip(first).take_while(|(from, _)| *from < end) {
            if let Some(between) = self.text.get(at..from) {
                between.hash(&mut hasher);
                at = until.min(end);
            }
        }
        self.text.get(at..end).unwrap_or_default().trim_end().hash(&mut hasher);
        let hash = hasher.finish();
        self.hashes.insert(start, hash);
        (start, hash)
    }
}

fn link_diff(before: NoteState<'_>, after: NoteState<'_>) -> LinkDiff {
    let (mut gone, mut new) = (links_of(before), links_of(after));
    let identity = |link: &StateLink<'_>| link.end.identity().map(str::to_owned);
    let sameness = |link: &StateLink<'_>| {
        let (path, subpath) = (link.link.path.clone(), link.link.subpath.clone());
        (path, subpath, identity(link), link.end == LinkEnd::Nowhere)
    };
    // Equal items of both states are removed: first those in the same place, then those in any place.
    drop(pair(&mut gone, &mut new, |link| Some((link.place, sameness(link)))));
    drop(pair(&mut gone, &mut new, |link| Some(sameness(link))));
    let mut pairs = pair(&mut gone, &mut new, |link| Some(link.place));
    pairs.extend(pair(&mut gone, &mut new, |link| Some((link.link.path.clone(), link.link.subpath.clone()))));
    pairs.extend(pair(&mut gone, &mut new, |link| Some((identity(link)?, link.link.subpath.clone()))));
    // A shown text of its own identifies the link, even if the line was changed.
    pairs.extend(pair(&mut gone, &mut new, |link| {
        link.link.alias_span?;
        link.link.display.clone().filter(|shown| !shown.trim().is_empty())
    }));
    let mut diff = LinkDiff {
        added: new.into_iter().map(|link| link.reference).collect(),
        removed: gone.into_iter().map(|link| link.reference).collect(),
        ..LinkDiff::default()
    };
    pairs.sort_by_key(|(_, after)| after.link.span.start);
    for (one, other) in pairs {
        let is_same_place = identity(&one).is_some()
            && identity(&one) == identity(&other)
            && one.link.subpath == other.link.subpath;
        let list = match (&one.end, &other.end) {
            _ if is_same_place => &mut diff.rewritten,
            (LinkEnd::Place { .. }, LinkEnd::Nowhere) => &mut diff.dead,
            (LinkEnd::Nowhere, LinkEnd::Place { .. }) => &mut diff.revived,
            _ => &mut diff.retargeted,
        };
        list.push(LinkChange { before: one.reference, after: other.reference });
    }
    diff
}

fn tag_diff(before: &Note, after: &Note) -> TagDiff {
    let tags = |note: &Note| {
        let names = note.tags.iter().map(|tag| (path::key(&tag.name), tag.name.clone()));
        // A tag in several spellings is shown in its first one.
        names.rev().collect::<BTreeMap<String, String>>()
    };
    let (one, other) = (tags(before), tags(after));
    let missing = |these: &BTreeMap<String, String>, those: &BTreeMap<String, String>| {
        let missing = these.iter().filter(|(key, _)| !those.contains_key(*key));
        missing.map(|(_, name)| name.clone()).collect()
    };
    TagDiff { added: missing(&other, &one), removed: missing(&one, &other) }
}

fn property_diff(before: &Note, after: &Note, without_tags: bool) -> Vec<PropertyChange> {
    let properties = |note: &Note| {
        let all = note.frontmatter.iter().flat_map(|front| &front.properties);
        let all =
            all.map(|property| (path::key(&property.key), (property.key.clone(), property.value.clone())));
        all.rev().collect::<BTreeMap<_, _>>()
    };
    let (mut one, mut other) = (properties(before), properties(after));
    if without_tags {
        one.remove("tags");
        other.remove("tags");
    }
    let keys: BTreeSet<String> = one.keys().chain(other.keys()).cloned().collect();
    let changes = keys.into_iter().filter_map(|key| {
        let (before, after) = (one.get(&key), other.get(&key));
        let value = |side: Option<&(String, Value)>| side.map(|(_, value)| value.clone());
        let (was, is) = (value(before), value(after));
        let name = after.or(before).map(|(name, _)| name.clone())?;
        (was != is).then_some(PropertyChange { name, before: was, after: is })
    });
    changes.collect()
}

fn task_diff(before: &Note, after: &Note) -> TaskDiff {
    let tasks = |note: &Note| {
        note.tasks.iter().map(|task| TaskRef { status: task.status, text: task.text.clone() }).collect()
    };
    let (mut removed, mut added) = unmatched(tasks(before), tasks(after));
    let changed = pair(&mut removed, &mut added, |task: &TaskRef| Some(task.text.clone()));
    let changed = changed.into_iter().map(|(one, other)| TaskChange {
        text: one.text,
        before: one.status,
        after: other.status,
    });
    TaskDiff { changed: changed.collect(), added, removed }
}

fn word_diff(before: NoteState<'_>, after: NoteState<'_>) -> WordDiff {
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    count_words(before, |word| counts.entry(word).or_default().0 += 1);
    count_words(after, |word| counts.entry(word).or_default().1 += 1);
    let sum = |(added, removed): (usize, usize), (was, is): (usize, usize)| {
        (added + is.saturating_sub(was), removed + was.saturating_sub(is))
    };
    let (added, removed) = counts.into_values().fold((0, 0), sum);
    WordDiff { added, removed }
}

/// Passes each word of the text that a reader sees to `visit`.
fn count_words(state: NoteState<'_>, mut visit: impl FnMut(String)) {
    for piece in &state.note.pieces {
        if matches!(piece.kind, PieceKind::Url | PieceKind::Comment) {
            continue;
        }
        let mut terms = Terms::new(piece.span.of(state.text));
        while terms.advance() {
            if !matches!(terms.term().kind, TermKind::Part | TermKind::LastCharacter) {
                visit(terms.term().text.clone());
            }
        }
    }
}
