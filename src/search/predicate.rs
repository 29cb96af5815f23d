//! Owns the verdict on one file: does it hold what a query asks (spec/obsidian.md 8.2)? Pure: what is asked of the
//! file comes through [`Subject`], and only when it is needed.

use std::cell::{Cell, OnceCell};

use serde_json::{Map, Value};

use crate::clock::Timestamp;
use crate::error::Result;
use crate::search::javascript_regex::TooManySteps;
use crate::search::query_parser::{Node, Order, Own, Part, Place};
use crate::search::text_match::{CaselessInPlace, Haystack, Term, TermKind};
use crate::text::decode::decode;
use crate::text::line::Lines;
use crate::text::note::Note;
use crate::text::path::{NotePath, key};
use crate::text::span::Span;
use crate::text::{canvas, markdown};

/// A file that is judged.
pub trait Subject {
    /// Its vault path.
    fn path(&self) -> &NotePath;

    /// Its flat properties.
    ///
    /// # Errors
    /// Where the catalog cannot be read.
    fn properties(&self) -> Result<&Map<String, Value>>;

    /// Its tags, without `#`.
    ///
    /// # Errors
    /// Where the catalog cannot be read.
    fn tags(&self) -> Result<&[String]>;

    /// What it says; nothing where it cannot be read, or is no text.
    fn content(&self) -> Option<&Content>;

    /// Says whether one of our own filters lets it pass.
    ///
    /// # Errors
    /// Where the catalog cannot be read.
    fn passes(&self, own: &Own) -> Result<bool>;
}

/// A file's text as the operators see it; it is parsed when an operator asks for parts of it.
#[derive(Debug)]
pub struct Content {
    text: String,
    /// Where the text begins, behind a byte order mark.
    start: usize,
    lines: OnceCell<Lines>,
    note: OnceCell<Note>,
    blocks: OnceCell<Vec<Span>>,
    /// Where its sections begin.
    sections: OnceCell<Vec<usize>>,
    /// The text in the form in which case does not count, once it was asked for.
    caseless: CaselessInPlace,
    /// The cards of a canvas, each a text of its own.
    cards: Vec<Content>,
}

impl Content {
    /// Reads a note, the text nodes of a canvas, or the text of any other file.
    pub fn new(path: &NotePath, bytes: &[u8]) -> Self {
        let text = decode(bytes).text;
        if !path.is_canvas() {
            return Self::of(text.into_owned());
        }
        let texts = canvas::texts(&text);
        Self { cards: texts.iter().cloned().map(Self::of).collect(), ..Self::of(texts.join("\n\n")) }
    }

    fn of(text: String) -> Self {
        let start = text.len() - text.trim_start_matches('\u{FEFF}').len();
        Self {
            text,
            start,
            lines: OnceCell::new(),
            note: OnceCell::new(),
            blocks: OnceCell::new(),
            sections: OnceCell::new(),
            caseless: CaselessInPlace::default(),
            cards: Vec::new(),
        }
    }

    /// Takes what [`Note::sections`] gave for the same text, so that it need not be parsed for them.
    #[must_use]
    pub fn with_sections(self, starts: Vec<usize>) -> Self {
        Self { sections: OnceCell::from(starts), ..self }
    }

    /// Cuts a part out of the text, with what was made of the whole already.
    fn part(&self, span: Span) -> Haystack<'_> {
        Haystack::part(&self.text, span, &self.caseless)
    }

    fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| Lines::new(&self.text))
    }

    fn note(&self) -> &Note {
        self.note.get_or_init(|| Note::parse(&self.text))
    }

    /// Lists the parts of one kind, in order.
    fn parts(&self, part: Part) -> Vec<Span> {
        match part {
            Part::Line => self.lines().spans(self.text.len()).map(|line| self.without_end(line)).collect(),
            Part::Block => self.blocks().to_vec(),
            Part::Section => self.sections().collect(),
            Part::Task(done) => self.tasks(done),
        }
    }

    fn without_end(&self, line: Span) -> Span {
        let raw = line.of(&self.text);
        let end = line.start + raw.trim_end_matches(['\n', '\r']).len();
        Span::new(line.start.max(self.start).min(end), end)
    }

    fn blocks(&self) -> &[Span] {
        self.blocks.get_or_init(|| markdown::blocks(&self.text, self.note().body_start, self.lines()))
    }

    fn sections(&self) -> impl Iterator<Item = Span> {
        let starts = self.sections.get_or_init(|| self.note().sections(&self.text));
        let ends = starts.iter().skip(1).copied().chain([self.text.len()]);
        starts.iter().copied().zip(ends).map(|(start, end)| Span::new(start, end))
    }

    /// Gives the text of tasks behind their checkbox, without what is nested in them.
    fn tasks(&self, done: Option<bool>) -> Vec<Span> {
        let fits = |status: char| done.is_none_or(|done| done != (status == ' '));
        let tasks = self.note().tasks.iter().filter(|task| fits(task.status));
        tasks
            .map(|task| {
                let own = self.blocks().iter().find(|block| block.start == task.span.start);
                let end = own.map_or(task.span.end, |block| block.end.max(task.span.end));
                let line = task.span.of(&self.text).trim_end();
                let start = task.span.start + line.len() - task.text.len().min(line.len());
                Span::new(start, end)
            })
            .collect()
    }
}

/// A card of a canvas, judged as if it were the file's content.
struct Card<'a> {
    canvas: &'a dyn Subject,
    content: &'a Content,
}

impl Subject for Card<'_> {
    fn path(&self) -> &NotePath {
        self.canvas.path()
    }

    fn properties(&self) -> Result<&Map<String, Value>> {
        self.canvas.properties()
    }

    fn tags(&self) -> Result<&[String]> {
        self.canvas.tags()
    }

    fn content(&self) -> Option<&Content> {
        Some(self.content)
    }

    fn passes(&self, own: &Own) -> Result<bool> {
        self.canvas.passes(own)
    }
}

/// A file of which nothing is known but its text.
struct Alone<'a> {
    path: &'a NotePath,
    content: &'a Content,
    properties: Map<String, Value>,
}

impl Subject for Alone<'_> {
    fn path(&self) -> &NotePath {
        self.path
    }

    fn properties(&self) -> Result<&Map<String, Value>> {
        Ok(&self.properties)
    }

    fn tags(&self) -> Result<&[String]> {
        Ok(&[])
    }

    fn content(&self) -> Option<&Content> {
        Some(self.content)
    }

    fn passes(&self, _: &Own) -> Result<bool> {
        Ok(false)
    }
}

/// Lists the tasks, lines and blocks of a note for which a query asks, in order: what there is to show of it. Sections
/// are not listed, since the passage shown stands in one. None of a canvas, whose cards are notes by themselves.
///
/// # Errors
/// Where a condition cannot be judged.
pub fn parts_asked_for(path: &NotePath, text: &str, asks: &Node) -> Result<Vec<Span>> {
    let mut wanted = Vec::new();
    each_part(asks, &mut |part, node| wanted.push((part, node)));
    if wanted.is_empty() || path.is_canvas() {
        return Ok(Vec::new());
    }
    let content = Content::of(text.to_owned());
    let alone = Alone { path, content: &content, properties: Map::new() };
    let judge = Judge::new(&alone);
    let mut found = Vec::new();
    for (part, node) in wanted {
        for span in content.parts(part) {
            if judge.at(node, Some(span))? {
                found.push(span);
            }
        }
    }
    found.sort_by_key(|span| (span.start, span.end));
    found.dedup();
    Ok(found)
}

/// Visits the parts smaller than a section that a query wants, with what they are to hold.
fn each_part<'a>(node: &'a Node, visit: &mut impl FnMut(Part, &'a Node)) {
    match node {
        Node::All(nodes) | Node::Any(nodes) => nodes.iter().for_each(|node| each_part(node, visit)),
        Node::Within(Part::Section, node) => each_part(node, visit),
        Node::Within(part, node) => visit(*part, node),
        _ => {}
    }
}

/// Judges one file.
pub struct Judge<'a, S> {
    subject: &'a S,
    whole: OnceCell<Haystack<'a>>,
    gave_up: Cell<bool>,
}

impl<'a, S: Subject> Judge<'a, S> {
    /// Is for one file.
    pub fn new(subject: &'a S) -> Self {
        Self { subject, whole: OnceCell::new(), gave_up: Cell::new(false) }
    }

    /// Says whether the file holds what the query asks.
    ///
    /// # Errors
    /// Where the catalog cannot be read.
    pub fn holds(&self, node: &Node) -> Result<bool> {
        self.at(node, None)
    }

    /// Says whether a regular expression took too many steps, so that the verdict is a guess.
    pub fn gave_up(&self) -> bool {
        self.gave_up.get()
    }

    fn at(&self, node: &Node, scope: Option<Span>) -> Result<bool> {
        match node {
            Node::All(nodes) => {
                for node in nodes {
                    if !self.at(node, scope)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Any(nodes) => {
                for node in nodes {
                    if self.at(node, scope)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Node::Not(node) => Ok(!self.at(node, scope)?),
            Node::Within(part, node) => self.within(*part, node, scope),
            Node::Text(place, term) => self.text(*place, term, scope),
            Node::Property(name, value) => self.property(name, value.as_deref()),
            Node::Own(own) => self.subject.passes(own),
            // These stand in values alone.
            Node::Null | Node::Compare(..) => Ok(false),
        }
    }

    fn within(&self, part: Part, node: &Node, scope: Option<Span>) -> Result<bool> {
        let Some(content) = self.subject.content() else { return Ok(false) };
        for card in &content.cards {
            let card = Card { canvas: self.subject, content: card };
            let judge = Judge::new(&card);
            let holds = judge.within(part, node, None)?;
            self.gave_up.set(self.gave_up.get() || judge.gave_up.get());
            if holds {
                return Ok(true);
            }
        }
        if !content.cards.is_empty() {
            return Ok(false);
        }
        for span in content.parts(part) {
            let clipped = match scope {
                None => span,
                Some(scope) => Span::new(span.start.max(scope.start), span.end.min(scope.end)),
            };
            if clipped.start <= clipped.end && self.at(node, Some(clipped))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn text(&self, place: Place, term: &Term, scope: Option<Span>) -> Result<bool> {
        let path = self.subject.path();
        match (place, scope) {
            (Place::Anywhere, None) => {
                let named = self.told(term.is_in_name(&Haystack::new(path.stem())));
                Ok(named || self.in_content(term, None))
            }
            (Place::Anywhere | Place::Content, scope) => Ok(self.in_content(term, scope)),
            (Place::Name, _) => Ok(self.told(term.is_in_name(&Haystack::new(path.name())))),
            (Place::Path, _) => Ok(self.told(term.is_in_name(&Haystack::new(path.as_str())))),
            (Place::Tag, None) => Ok(self.subject.tags()?.iter().any(|tag| self.told(has_tag(tag, term)))),
            (Place::Tag, Some(scope)) => Ok(self.subject.content().is_some_and(|content| {
                let tags = content.note().tags.iter().filter(|tag| scope.encloses(tag.span));
                tags.map(|tag| has_tag(&tag.name, term)).any(|verdict| self.told(verdict))
            })),
            (Place::Key | Place::Value, _) => Ok(false),
        }
    }

    fn in_content(&self, term: &Term, scope: Option<Span>) -> bool {
        let Some(content) = self.subject.content() else { return false };
        let verdict = match scope {
            Some(span) => term.is_in(&content.part(span)),
            None => term
                .is_in(self.whole.get_or_init(|| content.part(Span::new(content.start, content.text.len())))),
        };
        self.told(verdict)
    }

    /// Takes a pattern that gave up for one that does not match, and remembers it.
    fn told(&self, verdict: Result<bool, TooManySteps>) -> bool {
        verdict.unwrap_or_else(|TooManySteps| {
            self.gave_up.set(true);
            false
        })
    }

    fn property(&self, name: &Node, value: Option<&Node>) -> Result<bool> {
        let properties = self.subject.properties()?;
        Ok(properties.iter().any(|(key, found)| {
            self.told(is_named(name, key))
                && value.is_none_or(|value| items(found).iter().any(|item| self.told(is_value(value, item))))
        }))
    }
}

/// Says whether a tag is the one asked for, or below it.
pub(super) fn has_tag(tag: &str, term: &Term) -> Result<bool, TooManySteps> {
    if matches!(term.kind, TermKind::Regex(_)) {
        return term.is_all_of(&Haystack::new(&format!("#{tag}")));
    }
    let wanted = key(term.text.trim_start_matches('#').trim_end_matches('/'));
    let tag = key(tag);
    Ok(tag.strip_prefix(&wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && !wanted.is_empty())
}

/// Says whether a property's name is the one asked for.
pub(super) fn is_named(node: &Node, key: &str) -> Result<bool, TooManySteps> {
    each(node, &|node| match node {
        Node::Text(_, term) => term.is_all_of(&Haystack::new(key)),
        _ => Ok(false),
    })
}

fn is_value(node: &Node, item: &Value) -> Result<bool, TooManySteps> {
    let text = match item {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => String::new(),
    };
    let hay = Haystack::new(&text);
    each(node, &|node| match node {
        Node::Null => Ok(item.is_null()),
        Node::Compare(order, operand) => Ok(compare(&text, *order, operand)),
        Node::Text(..) if item.is_null() => Ok(false),
        Node::Text(_, term) if matches!(term.kind, TermKind::Phrase) => term.is_all_of(&hay),
        Node::Text(_, term) => term.is_in(&hay),
        _ => Ok(false),
    })
}

/// Evaluates the connectives over a test of leaves.
fn each(node: &Node, leaf: &dyn Fn(&Node) -> Result<bool, TooManySteps>) -> Result<bool, TooManySteps> {
    match node {
        Node::All(nodes) => {
            for node in nodes {
                if !each(node, leaf)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Node::Any(nodes) => {
            for node in nodes {
                if each(node, leaf)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Node::Not(node) => Ok(!each(node, leaf)?),
        node => leaf(node),
    }
}

/// Lists the values that a query of a property is put to: each item of a list.
fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().flat_map(items).collect(),
        Value::Object(_) => Vec::new(),
        value => vec![value],
    }
}

fn compare(text: &str, order: Order, operand: &str) -> bool {
    let text = text.trim();
    let ordering = match (text.parse::<f64>(), operand.parse::<f64>()) {
        (Ok(left), Ok(right)) => left.partial_cmp(&right),
        _ => Timestamp::parse(text).zip(Timestamp::parse(operand)).map(|(left, right)| left.cmp(&right)),
    };
    ordering.is_some_and(|ordering| match order {
        Order::Below => ordering.is_lt(),
        Order::Above => ordering.is_gt(),
    })
}
