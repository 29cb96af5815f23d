//! Evaluation of a condition on one file (docs/spec/obsidian.md 8.2). It is pure: it gets the data of the file through
//! [`FileData`], and only the data that the condition needs.

use std::cell::{Cell, OnceCell};

use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_markdown::decode::decode;
use sidenote_markdown::line::Lines;
use sidenote_markdown::note::{Note, PieceKind};
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::span::Span;
use sidenote_markdown::{attachment, canvas, commonmark as markdown};

use crate::javascript_regex::TooManySteps;
use crate::metadata_filter::MetadataFilter;
use crate::query_parser::{Comparison, Field, QueryNode, TextUnit};
use crate::text_match::{CaselessInPlace, Haystack, QueryTerm, QueryTermKind};

/// The data of one file that a condition is evaluated on.
pub trait FileData {
    /// Returns the path of the file.
    fn path(&self) -> &NotePath;

    /// Returns the properties, with nested ones flattened.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    fn properties(&self) -> Result<&Map<String, Value>>;

    /// Returns the tags, without `#`.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    fn tags(&self) -> Result<&[String]>;

    /// Returns the content, or `None` if the file cannot be read or is not text.
    fn content(&self) -> Option<&Content>;

    /// Returns whether a metadata filter matches the file.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    fn matches_filter(&self, filter: &MetadataFilter) -> Result<bool>;
}

/// The text of a file, which is parsed when an operator first needs its units.
#[derive(Debug)]
pub struct Content {
    text: String,
    /// The offset of the text after a byte order mark.
    start: usize,
    lines: OnceCell<Lines>,
    note: OnceCell<Note>,
    blocks: OnceCell<Vec<Span>>,
    /// The offsets at which the sections begin.
    sections: OnceCell<Vec<usize>>,
    /// The case-folded text, computed on first use.
    caseless: CaselessInPlace,
    /// The text of each card, if the file is a canvas.
    cards: Vec<Content>,
}

impl Content {
    /// Decodes a note, the text nodes of a canvas, or the text of any other file.
    pub fn new(path: &NotePath, bytes: &[u8]) -> Self {
        let text = decode(bytes).text;
        if !path.is_canvas() {
            return Self::from_text(text.into_owned());
        }
        let texts = canvas::texts(&text);
        Self {
            cards: texts.iter().cloned().map(Self::from_text).collect(),
            ..Self::from_text(texts.join("\n\n"))
        }
    }

    /// Takes the text of an attachment, whose sections are its places.
    pub fn of_attachment(bytes: &[u8]) -> Self {
        let text = decode(bytes).text.into_owned();
        let note = attachment::parse(&text, PieceKind::Prose);
        Self { note: OnceCell::from(note), ..Self::from_text(text) }
    }

    fn from_text(text: String) -> Self {
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

    /// Sets the offsets that [`Note::sections`] returned for the same text, so that the text is not parsed for
    /// them.
    #[must_use]
    pub fn with_sections(self, starts: Vec<usize>) -> Self {
        Self { sections: OnceCell::from(starts), ..self }
    }

    /// Returns a part of the text to search in. It shares the case-folded form of the whole text.
    fn haystack(&self, span: Span) -> Haystack<'_> {
        Haystack::part(&self.text, span, &self.caseless)
    }

    fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| Lines::new(&self.text))
    }

    fn note(&self) -> &Note {
        self.note.get_or_init(|| Note::parse(&self.text))
    }

    /// Returns the units of one kind, in order.
    fn units(&self, unit: TextUnit) -> Vec<Span> {
        match unit {
            TextUnit::Line => {
                self.lines().spans(self.text.len()).map(|line| self.without_line_end(line)).collect()
            }
            TextUnit::Block => self.blocks().to_vec(),
            TextUnit::Section => self.sections().collect(),
            TextUnit::Task(done) => self.tasks(done),
        }
    }

    fn without_line_end(&self, line: Span) -> Span {
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

    /// Returns the texts of tasks after the checkbox, without nested items.
    fn tasks(&self, done: Option<bool>) -> Vec<Span> {
        let fits = |status: char| done.is_none_or(|done| done != (status == ' '));
        let tasks = self.note().tasks.iter().filter(|task| fits(task.status));
        tasks
            .map(|task| {
                let block = self.blocks().iter().find(|block| block.start == task.span.start);
                let end = block.map_or(task.span.end, |block| block.end.max(task.span.end));
                let line = task.span.of(&self.text).trim_end();
                let start = task.span.start + line.len() - task.text.len().min(line.len());
                Span::new(start, end)
            })
            .collect()
    }
}

/// A card of a canvas, evaluated as if it were the content of the file.
struct CanvasCard<'a> {
    canvas: &'a dyn FileData,
    content: &'a Content,
}

impl FileData for CanvasCard<'_> {
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

    fn matches_filter(&self, filter: &MetadataFilter) -> Result<bool> {
        self.canvas.matches_filter(filter)
    }
}

/// A file of which only the text is known.
struct TextOnly<'a> {
    path: &'a NotePath,
    content: &'a Content,
    properties: Map<String, Value>,
}

impl FileData for TextOnly<'_> {
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

    fn matches_filter(&self, _: &MetadataFilter) -> Result<bool> {
        Ok(false)
    }
}

/// Returns the tasks, lines and blocks of a note that a condition asks for and that match, in order. Sections are
/// not returned, because the passage that is shown lies in one. For a canvas the result is empty, because each card
/// is searched by itself.
///
/// # Errors
/// `Corrupt` if the condition cannot be evaluated.
pub fn matching_spans(path: &NotePath, text: &str, condition: &QueryNode) -> Result<Vec<Span>> {
    let mut wanted = Vec::new();
    each_unit(condition, &mut |unit, node| wanted.push((unit, node)));
    if wanted.is_empty() || path.is_canvas() {
        return Ok(Vec::new());
    }
    let content = Content::from_text(text.to_owned());
    let text_only = TextOnly { path, content: &content, properties: Map::new() };
    let evaluator = Evaluator::new(&text_only);
    let mut found = Vec::new();
    for (unit, node) in wanted {
        for span in content.units(unit) {
            if evaluator.evaluate(node, Some(span))? {
                found.push(span);
            }
        }
    }
    found.sort_by_key(|span| (span.start, span.end));
    found.dedup();
    Ok(found)
}

/// Visits each unit smaller than a section that a condition asks for, with the condition on it.
fn each_unit<'a>(node: &'a QueryNode, visit: &mut impl FnMut(TextUnit, &'a QueryNode)) {
    match node {
        QueryNode::All(nodes) | QueryNode::Any(nodes) => nodes.iter().for_each(|node| each_unit(node, visit)),
        QueryNode::Within(TextUnit::Section, node) => each_unit(node, visit),
        QueryNode::Within(unit, node) => visit(*unit, node),
        _ => {}
    }
}

/// Evaluates conditions on one file.
pub struct Evaluator<'a, S> {
    data: &'a S,
    whole: OnceCell<Haystack<'a>>,
    hit_step_limit: Cell<bool>,
}

impl<'a, S: FileData> Evaluator<'a, S> {
    /// Creates the evaluator of one file.
    pub fn new(data: &'a S) -> Self {
        Self { data, whole: OnceCell::new(), hit_step_limit: Cell::new(false) }
    }

    /// Returns whether the file matches the condition.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn matches(&self, node: &QueryNode) -> Result<bool> {
        self.evaluate(node, None)
    }

    /// Returns whether a regular expression reached its step limit, so that the result may be wrong.
    pub fn hit_step_limit(&self) -> bool {
        self.hit_step_limit.get()
    }

    fn evaluate(&self, node: &QueryNode, scope: Option<Span>) -> Result<bool> {
        match node {
            QueryNode::All(nodes) => {
                for node in nodes {
                    if !self.evaluate(node, scope)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            QueryNode::Any(nodes) => {
                for node in nodes {
                    if self.evaluate(node, scope)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            QueryNode::Not(node) => Ok(!self.evaluate(node, scope)?),
            QueryNode::Within(unit, node) => self.within(*unit, node, scope),
            QueryNode::Text(field, term) => self.text(*field, term, scope),
            QueryNode::Property(name, value) => self.property(name, value.as_deref()),
            QueryNode::Metadata(filter) => self.data.matches_filter(filter),
            // These nodes occur only in the value of a property.
            QueryNode::Null | QueryNode::Compare(..) => Ok(false),
        }
    }

    fn within(&self, unit: TextUnit, node: &QueryNode, scope: Option<Span>) -> Result<bool> {
        let Some(content) = self.data.content() else { return Ok(false) };
        for card in &content.cards {
            let card = CanvasCard { canvas: self.data, content: card };
            let evaluator = Evaluator::new(&card);
            let holds = evaluator.within(unit, node, None)?;
            self.hit_step_limit.set(self.hit_step_limit.get() || evaluator.hit_step_limit.get());
            if holds {
                return Ok(true);
            }
        }
        if !content.cards.is_empty() {
            return Ok(false);
        }
        for span in content.units(unit) {
            let clipped = match scope {
                None => span,
                Some(scope) => Span::new(span.start.max(scope.start), span.end.min(scope.end)),
            };
            if clipped.start <= clipped.end && self.evaluate(node, Some(clipped))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn text(&self, field: Field, term: &QueryTerm, scope: Option<Span>) -> Result<bool> {
        let path = self.data.path();
        match (field, scope) {
            (Field::Anywhere, None) => {
                let named = self.or_no_match(term.is_in_name(&Haystack::new(path.stem())));
                Ok(named || self.in_content(term, None))
            }
            (Field::Anywhere | Field::Content, scope) => Ok(self.in_content(term, scope)),
            (Field::FileName, _) => Ok(self.or_no_match(term.is_in_name(&Haystack::new(path.name())))),
            (Field::Path, _) => Ok(self.or_no_match(term.is_in_name(&Haystack::new(path.as_str())))),
            (Field::Tag, None) => {
                Ok(self.data.tags()?.iter().any(|tag| self.or_no_match(tag_matches(tag, term))))
            }
            (Field::Tag, Some(scope)) => Ok(self.data.content().is_some_and(|content| {
                let tags = content.note().tags.iter().filter(|tag| scope.encloses(tag.span));
                tags.map(|tag| tag_matches(&tag.name, term)).any(|verdict| self.or_no_match(verdict))
            })),
            (Field::PropertyName | Field::PropertyValue, _) => Ok(false),
        }
    }

    fn in_content(&self, term: &QueryTerm, scope: Option<Span>) -> bool {
        let Some(content) = self.data.content() else { return false };
        let verdict = match scope {
            Some(span) => term.is_in(&content.haystack(span)),
            None => term.is_in(
                self.whole.get_or_init(|| content.haystack(Span::new(content.start, content.text.len()))),
            ),
        };
        self.or_no_match(verdict)
    }

    /// Treats a regular expression that reached its step limit as no match, and records that it did.
    fn or_no_match(&self, verdict: Result<bool, TooManySteps>) -> bool {
        verdict.unwrap_or_else(|TooManySteps| {
            self.hit_step_limit.set(true);
            false
        })
    }

    fn property(&self, name: &QueryNode, value: Option<&QueryNode>) -> Result<bool> {
        let properties = self.data.properties()?;
        Ok(has_property(properties, name, value, |verdict| self.or_no_match(verdict)))
    }
}

/// Returns whether a note has a property that matches. `decide` decides on what a regular expression with too many steps says.
pub fn has_property(
    properties: &Map<String, Value>,
    name: &QueryNode,
    value: Option<&QueryNode>,
    decide: impl Fn(Result<bool, TooManySteps>) -> bool,
) -> bool {
    properties.iter().any(|(key, found)| {
        decide(name_matches(name, key))
            && value
                .is_none_or(|value| list_items(found).iter().any(|item| decide(value_matches(value, item))))
    })
}

/// Returns whether a tag is the requested tag or nested below it.
pub(super) fn tag_matches(tag: &str, term: &QueryTerm) -> Result<bool, TooManySteps> {
    if matches!(term.kind, QueryTermKind::Regex(_)) {
        return term.is_whole(&Haystack::new(&format!("#{tag}")));
    }
    let wanted = key(term.text.trim_start_matches('#').trim_end_matches('/'));
    let tag = key(tag);
    Ok(tag.strip_prefix(&wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && !wanted.is_empty())
}

/// Returns whether the name of a property matches.
pub(super) fn name_matches(node: &QueryNode, key: &str) -> Result<bool, TooManySteps> {
    evaluate_tree(node, &|node| match node {
        QueryNode::Text(_, term) => term.is_whole(&Haystack::new(key)),
        _ => Ok(false),
    })
}

fn value_matches(node: &QueryNode, item: &Value) -> Result<bool, TooManySteps> {
    let text = match item {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => String::new(),
    };
    let hay = Haystack::new(&text);
    evaluate_tree(node, &|node| match node {
        QueryNode::Null => Ok(item.is_null()),
        QueryNode::Compare(comparison, operand) => Ok(compare(&text, *comparison, operand)),
        QueryNode::Text(..) if item.is_null() => Ok(false),
        QueryNode::Text(_, term) if matches!(term.kind, QueryTermKind::Phrase) => term.is_whole(&hay),
        QueryNode::Text(_, term) => term.is_in(&hay),
        _ => Ok(false),
    })
}

/// Evaluates the logical operators of a condition with `leaf` as the test of other nodes.
fn evaluate_tree(
    node: &QueryNode,
    leaf: &dyn Fn(&QueryNode) -> Result<bool, TooManySteps>,
) -> Result<bool, TooManySteps> {
    match node {
        QueryNode::All(nodes) => {
            for node in nodes {
                if !evaluate_tree(node, leaf)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        QueryNode::Any(nodes) => {
            for node in nodes {
                if evaluate_tree(node, leaf)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        QueryNode::Not(node) => Ok(!evaluate_tree(node, leaf)?),
        node => leaf(node),
    }
}

/// Returns the values that a condition on a property is evaluated on: the items of a list, or the value itself.
fn list_items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().flat_map(list_items).collect(),
        Value::Object(_) => Vec::new(),
        value => vec![value],
    }
}

fn compare(text: &str, comparison: Comparison, operand: &str) -> bool {
    let text = text.trim();
    let ordering = match (text.parse::<f64>(), operand.parse::<f64>()) {
        (Ok(left), Ok(right)) => left.partial_cmp(&right),
        _ => Timestamp::parse(text).zip(Timestamp::parse(operand)).map(|(left, right)| left.cmp(&right)),
    };
    ordering.is_some_and(|ordering| match comparison {
        Comparison::Less => ordering.is_lt(),
        Comparison::Greater => ordering.is_gt(),
    })
}
