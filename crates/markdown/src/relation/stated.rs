//! Relations that are written as such: properties, fields of Dataview, lists of basic-memory, labels, and lists below a
//! heading.

use std::collections::HashMap;

use crate::link::{Link, LinkForm};
use crate::note::Note;
use crate::relation::phrase::RelationEnd;
use crate::relation::rules::RelationRules;
use crate::relation::{Relation, relation_key};
use crate::span::Span;

/// The most words of a field or of the type of a relation.
const MAX_WORDS: usize = 4;
/// The most bytes of a field or of the type of a relation.
const MAX_BYTES: usize = 40;
/// The most bytes of a line before its link and behind it, so that a long line takes time in proportion to its length.
const MAX_LINE: usize = 2_000;
/// The heading of the relations of basic-memory.
const RELATIONS: &str = "relations";
/// The type of a relation of basic-memory that names none.
const RELATES_TO: &str = "relates_to";
/// Properties that name no relation.
const NO_RELATIONS: &[&str] = &["aliases", "alias", "tags", "tag", "cssclasses", "id", "title", "permalink"];

/// Lists the relations that a note states, in the order of its links, and then those between the ends that it names.
pub(super) fn stated(text: &str, note: &Note, rules: &RelationRules) -> Vec<Relation> {
    let mut found = Vec::new();
    for (object, link) in note.links.iter().enumerate() {
        let (subject, kind, evidence) = match &link.key {
            Some(key) => match property(key) {
                Some(kind) => (None, kind, link.span),
                None => continue,
            },
            // A definition stands where it is out of the way, whatever heading is above.
            None if link.embed || link.in_comment || link.form == LinkForm::Refdef => continue,
            None => {
                let Some(line) = Line::of(text, note, link) else { continue };
                let Some(kind) = line.relation(rules) else { continue };
                (line.subject(note, object), kind, line.span)
            }
        };
        found.push(Relation { subject, kind, object, is_inferred: false, line: link.line, evidence });
    }
    let between = between_named_ends(&found, rules);
    found.extend(between);
    found
}

/// Lists the relations between two ends that a note names, as one about a deal does with `investors` and `company`.
fn between_named_ends(stated: &[Relation], rules: &RelationRules) -> Vec<Relation> {
    let own = || stated.iter().filter(|relation| relation.subject.is_none());
    let mut by_name: HashMap<&str, &Relation> = HashMap::new();
    for relation in own() {
        by_name.entry(&relation.kind).or_insert(relation);
    }
    let mut found = Vec::new();
    for subject in own() {
        for (kind, end) in rules.meant_by(&subject.kind) {
            let Some(rule) = rules.get(&kind).filter(|_| end == RelationEnd::Object) else { continue };
            let object = rule.via.iter().find_map(|name| by_name.get(name.as_str()));
            let object = object.map(|object| object.object).filter(|object| *object != subject.object);
            found.extend(object.map(|object| Relation {
                subject: Some(subject.object),
                kind,
                object,
                ..subject.clone()
            }));
        }
    }
    found
}

/// Returns the type of the links in a property. `key` is the path of the value, such as `attendees.0`.
fn property(key: &str) -> Option<String> {
    let name = key.split('.').rfind(|part| !part.is_empty() && !part.bytes().all(|b| b.is_ascii_digit()))?;
    let kind = relation_key(name);
    (!kind.is_empty() && !NO_RELATIONS.contains(&kind.as_str())).then_some(kind)
}

/// The line of a link.
pub(super) struct Line<'a> {
    /// The line without its end and the white space around it.
    span: Span,
    /// The text before the link, without the marker of a list.
    before: &'a str,
    /// The text after the link.
    behind: &'a str,
    is_item: bool,
    /// The heading above.
    heading: &'a str,
}

impl<'a> Line<'a> {
    /// Returns the line of a link; `None` if it is too long to be a field or an item.
    pub(super) fn of(text: &'a str, note: &'a Note, link: &Link) -> Option<Self> {
        let first = text.floor_char_boundary(link.span.start.saturating_sub(MAX_LINE));
        let before = text.get(first..link.span.start)?;
        let start = match memchr::memrchr(b'\n', before.as_bytes()) {
            Some(at) => first + at + 1,
            None if first == 0 => 0,
            None => return None,
        };
        let last = text.floor_char_boundary(link.span.end.saturating_add(MAX_LINE).min(text.len()));
        let end = match memchr::memchr2(b'\n', b'\r', text.get(link.span.end..last)?.as_bytes()) {
            Some(at) => link.span.end + at,
            None if last == text.len() => last,
            None => return None,
        };
        let whole = text.get(start..end).unwrap_or("");
        let from = start + whole.len() - whole.trim_start().len();
        let before = text.get(from..link.span.start).unwrap_or("").trim_start_matches(['>', ' ']);
        let item = ["- ", "* ", "+ "].iter().find_map(|marker| before.strip_prefix(marker));
        let above = note.headings.partition_point(|heading| heading.span.start < link.span.start);
        let heading = above.checked_sub(1).and_then(|at| note.headings.get(at));
        Some(Self {
            span: Span::new(from, start + whole.trim_end().len()),
            before: item.unwrap_or(before).trim_start(),
            behind: text.get(link.span.end..end).unwrap_or("").trim(),
            is_item: item.is_some(),
            heading: heading.map_or("", |heading| heading.text.as_str()),
        })
    }

    /// Returns the line without white space around it.
    pub(super) fn span(&self) -> Span {
        self.span
    }

    /// Returns the text before the link, without the marker of a list.
    pub(super) fn before(&self) -> &'a str {
        self.before
    }

    /// Returns the line without the link.
    pub(super) fn around(&self) -> String {
        format!("{} {}", self.before, self.behind)
    }

    /// Returns the heading above.
    pub(super) fn heading(&self) -> &'a str {
        self.heading
    }

    /// Says whether the line is an item of a list.
    pub(super) fn is_item(&self) -> bool {
        self.is_item
    }

    /// Says whether the line is a row of a table.
    pub(super) fn is_row(&self) -> bool {
        self.before.starts_with('|')
    }

    /// Says whether the line is a field or a label with links: `Attendees: [[a]], [[b]]`.
    pub(super) fn is_field(&self) -> bool {
        if self.field().is_some() {
            return true;
        }
        let label = self
            .before
            .split_once(':')
            .filter(|(_, links)| is_list_of_links(links.trim_start_matches(['*', '_'])));
        label.is_some_and(|(label, _)| field_name(label).is_some()) && is_list_of_links(self.behind)
    }

    /// Returns the type of the relation that the line states.
    fn relation(&self, rules: &RelationRules) -> Option<String> {
        // Most lines with a link have no colon before it, and so no field.
        let has_colon = memchr::memchr(b':', self.before.as_bytes()).is_some();
        if has_colon && let Some(field) = self.bracketed_field().or_else(|| self.field()) {
            return Some(field);
        }
        if (has_colon || self.is_row())
            && let Some(label) = self.label(rules)
        {
            return Some(label);
        }
        let (kind, others) = self.before.split_once('[').unwrap_or((self.before, ""));
        let heading = || relation_key(self.heading);
        if self.is_item && self.before.starts_with('[') {
            let category = self.category();
            if category.is_some() {
                return category;
            }
        }
        if kind.trim().is_empty() {
            let is_listed = is_list_of_links(self.before) && (self.is_item || is_list_of_links(self.behind));
            let is_alone = self.is_item && others.is_empty();
            if !is_listed && !is_alone {
                return None;
            }
            let heading = heading();
            let is_related = heading == RELATIONS && is_alone;
            let is_typed = is_listed && rules.has_name(&heading);
            return is_typed.then_some(heading).or(is_related.then(|| RELATES_TO.to_owned()));
        }
        let is_alone = self.behind.is_empty() || self.behind.starts_with(['(', '#', ',', '^']);
        let is_first = is_list_of_links(self.before.get(kind.len()..).unwrap_or(""));
        if !self.is_item || !is_alone || !is_first {
            return None;
        }
        let name = field_name(kind)?;
        let is_known = rules.has_name(&name) || (kind.contains('_') && !kind.trim().contains(' '));
        (is_known || heading() == RELATIONS).then_some(name)
    }

    /// Returns the link before a field in brackets, which an item of a list is about: `- [[Jane]] [employer:: [[Acme]]]`.
    fn subject(&self, note: &Note, object: usize) -> Option<usize> {
        self.bracketed_field()?;
        let opening = self.before.find("::").and_then(|at| self.before.get(..at)?.rfind(['[', '(']))?;
        let head = self.before.get(..opening)?;
        let is_about_link = self.is_item && !head.trim().is_empty() && is_list_of_links(head);
        let first = note.links.partition_point(|link| link.span.start < self.span.start);
        (is_about_link && first < object).then_some(first)
    }

    /// Returns the name of a field that fills the line: `name:: [[link]]`.
    fn field(&self) -> Option<String> {
        let (name, value) = self.before.split_once("::")?;
        field_name(name.trim_matches(['*', '_'])).filter(|_| is_field_value(value))
    }

    /// Returns the name of a field in brackets: `[name:: [[link]]]`.
    fn bracketed_field(&self) -> Option<String> {
        let at = self.before.rfind("::")?;
        let (head, value) = (self.before.get(..at)?, self.before.get(at + 2..)?);
        let open = head.rfind(['[', '('])?;
        let is_escaped = head.get(..open)?.ends_with('\\');
        let closing = if head.get(open..)?.starts_with('[') { (']', '[') } else { (')', '(') };
        let count = |wanted: char| value.chars().filter(|c| *c == wanted).count();
        let is_field = !is_escaped && is_field_value(value) && count(closing.0) <= count(closing.1);
        field_name(head.get(open + 1..)?).filter(|_| is_field)
    }

    /// Returns the label of a list of links: `Attendees: [[a]], [[b]]`, or `| Attendees | [[a]], [[b]] |` in a table.
    fn label(&self, rules: &RelationRules) -> Option<String> {
        let (label, links) = match self.before.strip_prefix('|') {
            // A table with more than two columns lists no properties of the note.
            Some(row) => row.split_once('|').filter(|(_, links)| {
                !has_cells(links) && !has_cells(self.behind.trim_end_matches(['|', ' ']))
            })?,
            None => self.before.split_once(':')?,
        };
        let is_list = is_list_of_links(links.trim_start_matches(['*', '_'])) && is_list_of_links(self.behind);
        let name = field_name(label.trim_matches(['*', '_', ' ']).get(..).filter(|_| is_list)?)?;
        rules.has_name(&name).then_some(name)
    }

    /// Returns the category of an observation of basic-memory: `- [category] text`.
    fn category(&self) -> Option<String> {
        let (category, text) = self.before.strip_prefix('[')?.split_once(']')?;
        let is_category = category.len() > 1
            && text.starts_with(' ')
            && category.chars().all(|c| c.is_alphabetic() || matches!(c, '-' | '_'));
        is_category.then(|| relation_key(category))
    }
}

/// Returns whether a part of a row is in several cells. In a row, the `|` of a link is escaped.
fn has_cells(row: &str) -> bool {
    row.match_indices('|').any(|(at, _)| !row.get(..at).is_some_and(|before| before.ends_with('\\')))
}

/// Returns whether the text after `::` can be the value of a field. `Type::member` is not a field.
fn is_field_value(value: &str) -> bool {
    value.is_empty() || value.starts_with(' ') || value.starts_with('[')
}

/// Returns the name of a field or type in the form of [`relation_key`], if it can be one.
fn field_name(text: &str) -> Option<String> {
    let text = text.trim().trim_matches(['*', '_']).trim();
    let is_name = text.len() <= MAX_BYTES
        && text.split_whitespace().count() <= MAX_WORDS
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        && text.starts_with(char::is_alphabetic);
    Some(relation_key(text)).filter(|key| is_name && !key.is_empty())
}

/// Returns whether a text has links and what joins them, and nothing else.
fn is_list_of_links(text: &str) -> bool {
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let inside = if let Some(inside) = rest.strip_prefix("[[") {
            inside.split_once("]]").map(|(_, behind)| behind)
        } else if rest.starts_with('[') {
            let behind = rest.split_once("](").and_then(|(_, target)| target.split_once(')'));
            behind.map(|(_, behind)| behind)
        } else {
            let joints = [",", "and ", "& ", "·", "|", "**", "."];
            joints.iter().find_map(|joint| rest.strip_prefix(joint))
        };
        let Some(behind) = inside else { return false };
        rest = behind.trim_start();
    }
    true
}
