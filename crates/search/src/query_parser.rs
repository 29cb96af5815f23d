//! The grammar of queries: Obsidian's search language (docs/spec/obsidian.md 8.1) with metadata filters
//! (docs/spec/search.md, Language). It parses text to a [`QueryNode`]; an error message marks the position with a
//! caret.

use std::fmt;

use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_markdown::relation::relation_key;
use sidenote_memory::tier::Tier;

use crate::javascript_regex::Pattern;
use crate::metadata_filter::MetadataFilter;
use crate::text_match::{QueryTerm, QueryTermKind};

/// The maximum depth of nested groups and operators in a query.
const MAX_DEPTH: usize = 64;
/// The maximum number of terms in a query.
const MAX_TERMS: usize = 5_000;
/// The maximum length of a query in bytes. Parsing a term may look ahead to the end, so the time grows with the
/// square of it.
const MAX_BYTES: usize = 50_000;

/// A node of a parsed condition.
#[derive(Debug, Clone)]
pub enum QueryNode {
    /// All of these nodes match.
    All(Vec<QueryNode>),
    /// At least one of these nodes matches.
    Any(Vec<QueryNode>),
    /// The node does not match.
    Not(Box<QueryNode>),
    /// The node matches within a single text unit of this kind.
    Within(TextUnit, Box<QueryNode>),
    /// A field contains the term.
    Text(Field, QueryTerm),
    /// The note has a property whose name matches the first node and, if given, whose value matches the second.
    Property(Box<QueryNode>, Option<Box<QueryNode>>),
    /// The value is YAML's null.
    Null,
    /// The value is less or greater than this number or date.
    Compare(Comparison, String),
    /// A metadata filter matches.
    Metadata(MetadataFilter),
}

/// The field of a file that a term is searched in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The content, or the file name without extension.
    Anywhere,
    /// The content.
    Content,
    /// The file name with extension.
    FileName,
    /// The path in the vault.
    Path,
    /// The tags.
    Tag,
    /// The name of a property.
    PropertyName,
    /// The value of a property.
    PropertyValue,
}

/// A unit of a note's text within which a whole condition must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextUnit {
    /// A line.
    Line,
    /// A paragraph, list item, table, code block or quote.
    Block,
    /// The text from a heading to the next heading.
    Section,
    /// A list item with a checkbox: any (`None`), an open one (`false`), or one that is not open (`true`).
    Task(Option<bool>),
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `<`, less.
    Less,
    /// `>`, greater.
    Greater,
}

/// All operators, each with its colon, separated by spaces.
pub const OPERATORS: &str = "file: path: content: match-case: ignore-case: tag: line: block: section: task: task-todo: \
                         task-done: type: tier: category: created: updated: links-to: linked-from: rel: is:";

/// Parses a query. Returns `None` if the text is blank. Relative dates such as `7d` are counted from `now`.
///
/// # Errors
/// `Invalid` if the query is malformed or exceeds a limit; the message marks the position, and the hint gives a
/// valid form.
pub fn parse(text: &str, now: Timestamp) -> Result<Option<QueryNode>> {
    if text.len() > MAX_BYTES {
        let what = format!("the query has {} bytes; at most {MAX_BYTES} are allowed", text.len());
        return Err(Error::invalid(what).with_hint("search for fewer words"));
    }
    let mut parser = Parser { text, pos: 0, terms: 0, unclosed_parens: 0, now };
    let top = Context { field: Field::Anywhere, match_case: false, depth: 0, closing: None };
    let found = parser.parse_or(top)?;
    if let Some(c) = parser.peek() {
        let hint = format!("open it, or quote it to search for it: \"{c}\"");
        return Err(parser.error(parser.pos, 1, &format!("{c:?} has no opening bracket"), &hint));
    }
    Ok(found)
}

impl QueryNode {
    /// Returns whether the query consists of plain words only. Such a query ranks notes and is not a condition.
    pub fn is_plain(&self) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(Self::is_plain),
            Self::Text(Field::Anywhere, term) => matches!(term.kind, QueryTermKind::Word) && !term.match_case,
            _ => false,
        }
    }

    /// Visits, in order, the words and phrases that notes can be ranked by: those that are not negated.
    pub(crate) fn each_ranking_term<'a>(&'a self, visit: &mut impl FnMut(&'a QueryTerm)) {
        match self {
            Self::All(nodes) | Self::Any(nodes) => {
                nodes.iter().for_each(|node| node.each_ranking_term(visit))
            }
            Self::Within(_, node) => node.each_ranking_term(visit),
            Self::Text(Field::Anywhere | Field::Content, term)
                if !matches!(term.kind, QueryTermKind::Regex(_)) =>
            {
                visit(term);
            }
            _ => {}
        }
    }

    /// Sorts the operands of `All` and `Any` by the cost of evaluating them. Their order has no effect on the
    /// result.
    #[must_use]
    pub(crate) fn sorted_by_cost(self) -> Self {
        let sorted = |nodes: Vec<Self>| {
            let mut nodes: Vec<Self> = nodes.into_iter().map(Self::sorted_by_cost).collect();
            nodes.sort_by_key(Self::cost);
            nodes
        };
        match self {
            Self::All(nodes) => Self::All(sorted(nodes)),
            Self::Any(nodes) => Self::Any(sorted(nodes)),
            Self::Not(node) => Self::Not(Box::new(node.sorted_by_cost())),
            Self::Within(unit, node) => Self::Within(unit, Box::new(node.sorted_by_cost())),
            node => node,
        }
    }

    /// Returns a rank by the data that evaluating the node needs: the path, the catalog, the text or the parsed
    /// note.
    fn cost(&self) -> u8 {
        match self {
            Self::Text(Field::FileName | Field::Path, _) => 0,
            Self::Metadata(_) | Self::Null | Self::Compare(..) => 1,
            Self::Text(Field::Tag, _) => 2,
            Self::Property(..) => 3,
            Self::Text(_, term) if !matches!(term.kind, QueryTermKind::Regex(_)) => 4,
            Self::Text(..) => 5,
            Self::Within(..) => 6,
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().map(Self::cost).max().unwrap_or(0),
            Self::Not(node) => node.cost(),
        }
    }

    /// Returns the same condition with every word that begins with `#` as a tag.
    #[must_use]
    pub(crate) fn with_hashes_as_tags(self) -> Self {
        let all = |nodes: Vec<Self>| nodes.into_iter().map(Self::with_hashes_as_tags).collect();
        match self {
            Self::All(nodes) => Self::All(all(nodes)),
            Self::Any(nodes) => Self::Any(all(nodes)),
            Self::Not(node) => Self::Not(Box::new(node.with_hashes_as_tags())),
            Self::Text(Field::Anywhere, term) if term.is_hashtag() => Self::Text(Field::Tag, term),
            other => other,
        }
    }

    /// Returns whether `test` holds for this node or for a node within it.
    pub fn any(&self, test: &impl Fn(&Self) -> bool) -> bool {
        test(self)
            || match self {
                Self::All(nodes) | Self::Any(nodes) => nodes.iter().any(|node| node.any(test)),
                Self::Not(node) | Self::Within(_, node) => node.any(test),
                Self::Property(name, value) => {
                    name.any(test) || value.as_ref().is_some_and(|value| value.any(test))
                }
                Self::Text(..) | Self::Null | Self::Compare(..) | Self::Metadata(_) => false,
            }
    }
}

impl fmt::Display for QueryNode {
    /// Formats the node as a query. Spaces and order may differ from what was typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, nodes: &[Self], joint: &str| {
            f.write_str("(")?;
            for (at, node) in nodes.iter().enumerate() {
                f.write_str(if at > 0 { joint } else { "" })?;
                node.fmt(f)?;
            }
            f.write_str(")")
        };
        match self {
            Self::All(nodes) => list(f, nodes, " "),
            Self::Any(nodes) => list(f, nodes, " OR "),
            Self::Not(node) => write!(f, "-{node}"),
            Self::Within(unit, node) => write!(f, "{}{node}", unit.operator()),
            Self::Text(field, term) => {
                let case = if term.match_case { "match-case:" } else { "" };
                let text = &term.text;
                match term.kind {
                    QueryTermKind::Word => write!(f, "{}{case}{text}", field.operator()),
                    QueryTermKind::Phrase => {
                        write!(f, "{}{case}\"{}\"", field.operator(), text.replace('"', "\\\""))
                    }
                    QueryTermKind::Regex(_) => write!(f, "{}{case}/{text}/", field.operator()),
                }
            }
            Self::Property(name, None) => write!(f, "[{name}]"),
            Self::Property(name, Some(value)) => write!(f, "[{name}:{value}]"),
            Self::Null => f.write_str("null"),
            Self::Compare(Comparison::Less, operand) => write!(f, "<{operand}"),
            Self::Compare(Comparison::Greater, operand) => write!(f, ">{operand}"),
            Self::Metadata(filter) => filter.fmt(f),
        }
    }
}

impl Field {
    fn operator(self) -> &'static str {
        match self {
            Self::Anywhere | Self::PropertyName | Self::PropertyValue => "",
            Self::Content => "content:",
            Self::FileName => "file:",
            Self::Path => "path:",
            Self::Tag => "tag:",
        }
    }
}

impl TextUnit {
    fn operator(self) -> &'static str {
        match self {
            Self::Line => "line:",
            Self::Block => "block:",
            Self::Section => "section:",
            Self::Task(None) => "task:",
            Self::Task(Some(false)) => "task-todo:",
            Self::Task(Some(true)) => "task-done:",
        }
    }
}

/// The context in which a term is parsed.
#[derive(Debug, Clone, Copy)]
struct Context {
    field: Field,
    match_case: bool,
    depth: usize,
    /// The character that closes the enclosing group or property.
    closing: Option<char>,
}

impl Context {
    /// Returns whether operators are recognised in this context.
    fn has_operators(self) -> bool {
        !matches!(self.field, Field::PropertyName | Field::PropertyValue)
    }
}

struct Parser<'a> {
    text: &'a str,
    pos: usize,
    terms: usize,
    /// The number of parentheses that words opened and did not close.
    unclosed_parens: usize,
    /// The time that relative dates such as `7d` are counted from.
    now: Timestamp,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.pos..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.pos += rest.len() - rest.trim_start().len();
    }

    /// Creates an error that shows the query with carets below the mistake.
    fn error(&self, at: usize, len: usize, what: &str, hint: &str) -> Error {
        let shown: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let place = self.text.get(..at).unwrap_or("").chars().count();
        let width =
            self.text.get(at..).unwrap_or("").get(..len).map_or(1, |part| part.chars().count().max(1));
        // Of a long query, the part around the mistake is shown.
        let from = place.saturating_sub(40);
        let line: String = shown.chars().skip(from).take(80).collect();
        let dots = if from > 0 { "…" } else { "" };
        let blank = " ".repeat(
            console::measure_text_width(&line.chars().take(place - from).collect::<String>())
                + dots.chars().count(),
        );
        Error::invalid(format!(
            "{what}, at character {} of the query:\n  {dots}{}\n  {blank}{}",
            place + 1,
            line.trim_end(),
            "^".repeat(width.min(40))
        ))
        .with_hint(hint)
        .with_place(at.min(self.text.len()), (at + len.max(1)).min(self.text.len()))
    }

    fn nested(&self, context: Context) -> Result<Context> {
        if context.depth >= MAX_DEPTH {
            return Err(self.error(
                self.pos,
                1,
                "the query is nested too deeply",
                "write it with fewer parentheses",
            ));
        }
        Ok(Context { depth: context.depth + 1, ..context })
    }

    /// Parses alternatives separated by `OR`, up to the closing character or the end.
    fn parse_or(&mut self, context: Context) -> Result<Option<QueryNode>> {
        let mut branches = Vec::new();
        loop {
            let found = self.parse_and(context)?;
            let or_at = self.pos;
            let joins_word = self.take_or();
            match found {
                Some(node) => branches.push(node),
                None if joins_word || !branches.is_empty() => {
                    let at = if joins_word { or_at } else { or_at.saturating_sub(2) };
                    return Err(self.error(
                        at,
                        2,
                        "OR needs a term on both sides",
                        "write cat OR dog, or \"OR\" for the word",
                    ));
                }
                None => return Ok(None),
            }
            if !joins_word {
                break;
            }
        }
        Ok(match branches.len() {
            1 => branches.pop(),
            _ => Some(QueryNode::Any(branches)),
        })
    }

    fn take_or(&mut self) -> bool {
        let is_or = self.is_or();
        self.pos += if is_or { 2 } else { 0 };
        is_or
    }

    fn is_or(&self) -> bool {
        self.rest().strip_prefix("OR").is_some_and(|rest| {
            rest.chars().next().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | ')' | ']' | '"'))
        })
    }

    /// Parses terms that must all match.
    fn parse_and(&mut self, context: Context) -> Result<Option<QueryNode>> {
        let mut terms = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => break,
                Some(')') if context.closing == Some(']') => {
                    return Err(self.error(self.pos, 1, "')' has no opening bracket", "close the [ first"));
                }
                // A word opened this parenthesis, such as `foo(` in `foo(a, b)`.
                Some(')') if context.closing.is_none() && self.unclosed_parens > 0 => {
                    self.unclosed_parens -= 1;
                    self.pos += 1;
                }
                Some(')' | ']') => break,
                Some(_) if self.is_or() => break,
                Some(_) => terms.push(self.parse_unary(context)?),
            }
        }
        Ok(match terms.len() {
            0 => None,
            1 => terms.pop(),
            _ => Some(QueryNode::All(terms)),
        })
    }

    fn parse_unary(&mut self, context: Context) -> Result<QueryNode> {
        let behind = self.rest().strip_prefix('-');
        // A single minus, an arrow, and the double minus of an option such as `--release` are text.
        let negates = behind.is_some_and(|rest| {
            rest.chars().next().is_some_and(|c| !c.is_whitespace() && !matches!(c, '-' | '>' | ')' | ']'))
        });
        if !negates {
            return self.parse_primary(context);
        }
        self.pos += 1;
        Ok(QueryNode::Not(Box::new(self.parse_primary(context)?)))
    }

    fn parse_primary(&mut self, context: Context) -> Result<QueryNode> {
        self.terms += 1;
        if self.terms > MAX_TERMS {
            return Err(self.error(self.pos, 1, "the query is too long", "search for fewer words"));
        }
        match self.peek() {
            Some('(') => self.parse_group(context),
            // `[ ]` is the checkbox of a pasted task.
            Some('[') if context.has_operators() && !self.rest().starts_with("[ ]") => {
                self.parse_property(context)
            }
            Some('"') => self.parse_quoted(context),
            Some('/') if self.regex_end().is_some() => self.parse_regex(context),
            Some('<' | '>') if context.field == Field::PropertyValue => self.parse_comparison(context),
            _ => match self.operator_name().filter(|_| context.has_operators()) {
                Some(name) => self.parse_operator(name, context),
                None => Ok(self.parse_word(context)),
            },
        }
    }

    fn parse_group(&mut self, context: Context) -> Result<QueryNode> {
        let open = self.pos;
        let inner = Context { closing: Some(')'), ..self.nested(context)? };
        self.pos += 1;
        let found = self.parse_or(inner)?;
        if self.peek() != Some(')') {
            let hint = "close it with ), or quote it to search for it: \"(\"";
            return Err(self.error(open, 1, "a ( is not closed", hint));
        }
        self.pos += 1;
        found.ok_or_else(|| self.error(open, 2, "the parentheses are empty", "write (cat OR dog)"))
    }

    fn parse_quoted(&mut self, context: Context) -> Result<QueryNode> {
        let open = self.pos;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        let mut end = None;
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if chars.peek().is_some_and(|(_, next)| *next == '"') => {
                    text.push('"');
                    chars.next();
                }
                '"' => {
                    end = Some(at + 1);
                    break;
                }
                c => text.push(c),
            }
        }
        let Some(end) = end else {
            let hint = "close it with \", or leave it out";
            return Err(self.error(open, 1, "a quote is not closed", hint));
        };
        self.pos += end;
        Ok(QueryNode::Text(context.field, QueryTerm::new(QueryTermKind::Phrase, &text, context.match_case)))
    }

    /// Returns the offset of the slash that closes a regular expression, from the current position.
    fn regex_end(&self) -> Option<usize> {
        let (mut escaped, mut in_class) = (false, false);
        for (at, c) in self.rest().char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '[' => in_class = true,
                ']' => in_class = false,
                '/' if !in_class => return (at > 1).then_some(at),
                _ => {}
            }
        }
        None
    }

    fn parse_regex(&mut self, context: Context) -> Result<QueryNode> {
        let end = self.regex_end().unwrap_or(1);
        let source = self.rest().get(1..end).unwrap_or("");
        let pattern = Pattern::new(source, context.match_case).map_err(|why| {
            self.error(
                self.pos,
                end + 1,
                &format!("the regular expression cannot be used: {why}"),
                "write it as in JavaScript, /\\d{4}-\\d{2}/, or quote it to search for the text",
            )
        })?;
        self.pos += end + 1;
        Ok(QueryNode::Text(
            context.field,
            QueryTerm::new(QueryTermKind::Regex(pattern), source, context.match_case),
        ))
    }

    fn parse_word(&mut self, context: Context) -> QueryNode {
        let word = match self.rest().get(..3) {
            Some("[ ]") => "[ ]",
            _ => self.word_text(context, |_| false),
        };
        self.pos += word.len();
        if context.closing.is_none() {
            self.unclosed_parens += word.matches('(').count().saturating_sub(word.matches(')').count());
        }
        if context.field == Field::PropertyValue && word == "null" {
            return QueryNode::Null;
        }
        QueryNode::Text(context.field, QueryTerm::new(QueryTermKind::Word, word, context.match_case))
    }

    /// Returns the text up to white space, a closing character, or a character for which `stops` is true. A closing
    /// bracket belongs to the word if the word opened it and no enclosing group can end there: `main()` is a word.
    fn word_text(&self, context: Context, stops: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let (mut round, mut square) = (0usize, 0usize);
        let free = context.closing.is_none();
        let end = rest.char_indices().find(|&(at, c)| match c {
            _ if c.is_whitespace() || stops(c) => true,
            '(' => {
                round += 1;
                false
            }
            '[' => {
                square += 1;
                false
            }
            ')' if free && round > 0 => {
                round -= 1;
                false
            }
            ']' if free && square > 0 => {
                square -= 1;
                false
            }
            ')' | ']' => at > 0 || !free,
            _ => false,
        });
        rest.get(..end.map_or(rest.len(), |(at, _)| at)).unwrap_or(rest)
    }

    /// Returns the name of the operator at the current position, without its colon.
    fn operator_name(&self) -> Option<&'a str> {
        let rest = self.rest();
        let len = rest.find(|c: char| !(c.is_ascii_alphabetic() || c == '-'))?;
        let (name, behind) = (rest.get(..len)?, rest.get(len..)?.strip_prefix(':')?);
        let is_known =
            OPERATORS.split(' ').any(|known| known.trim_end_matches(':').eq_ignore_ascii_case(name));
        // `Note: text`, `https://…` and `std::path` are words that contain a colon.
        let is_text =
            behind.chars().next().is_none_or(|c| c.is_whitespace() || c == ':') || behind.starts_with("//");
        (len > 0 && (is_known || !is_text)).then_some(name)
    }

    fn parse_operator(&mut self, name: &str, context: Context) -> Result<QueryNode> {
        let start = self.pos;
        let lower = name.to_ascii_lowercase();
        self.pos += name.len() + 1;
        let inner = self.nested(context)?;
        let wants = |what: &str| -> Error {
            self.error(
                start,
                name.len() + 1,
                &format!("{lower}: needs a term directly after it"),
                &format!("write {lower}:{what}, or quote it to search for it: \"{name}:\""),
            )
        };
        if self.peek().is_none_or(|c| c.is_whitespace() || c == ')' || c == ']') {
            return Err(wants(match lower.as_str() {
                "is" => "orphan",
                "tier" => "hot",
                "rel" => "works_at:[[Acme]]",
                "created" | "updated" => "2026-11",
                _ => "word",
            }));
        }
        let unit = match lower.as_str() {
            "file" => return self.parse_primary(Context { field: Field::FileName, ..inner }),
            "path" => return self.parse_primary(Context { field: Field::Path, ..inner }),
            "content" => return self.parse_primary(Context { field: Field::Content, ..inner }),
            "tag" => return self.parse_primary(Context { field: Field::Tag, ..inner }),
            "match-case" => return self.parse_primary(Context { match_case: true, ..inner }),
            "ignore-case" => return self.parse_primary(Context { match_case: false, ..inner }),
            "line" => TextUnit::Line,
            "block" => TextUnit::Block,
            "section" => TextUnit::Section,
            "task" => TextUnit::Task(None),
            "task-todo" => TextUnit::Task(Some(false)),
            "task-done" => TextUnit::Task(Some(true)),
            _ => return self.parse_filter(start, name, &lower, context),
        };
        let inner = Context { field: Field::Anywhere, ..inner };
        Ok(QueryNode::Within(unit, Box::new(self.parse_primary(inner)?)))
    }

    /// Parses the value of a metadata filter.
    fn parse_filter(&mut self, start: usize, name: &str, lower: &str, context: Context) -> Result<QueryNode> {
        let at = self.pos;
        if !OPERATORS.split(' ').any(|known| known.trim_end_matches(':') == lower) {
            let hint = format!("put it in quotes to search for it: \"{name}:…\"; operators are {OPERATORS}");
            return Err(self.error(start, name.len() + 1, &format!("there is no operator {name}:"), &hint));
        }
        if lower == "rel" {
            return self.parse_relation(context);
        }
        let value = self.filter_value(context)?;
        let len = self.pos - at;
        let refused = |parser: &Self, what: &str, hint: &str| Err(parser.error(at, len, what, hint));
        let filter = match lower {
            "type" => MetadataFilter::Type(value.to_lowercase()),
            "category" => MetadataFilter::Category(value.to_lowercase()),
            "links-to" => MetadataFilter::LinksTo(value),
            "linked-from" => MetadataFilter::LinkedFrom(value),
            "tier" => match Tier::parse(&value) {
                Some(tier) => MetadataFilter::Tier(tier),
                None => {
                    let names = Tier::ALL.map(Tier::name);
                    return refused(
                        self,
                        &format!("there is no tier {value:?}"),
                        &format!("tiers are {}", names.join(", ")),
                    );
                }
            },
            "is" => match value.to_ascii_lowercase().as_str() {
                "orphan" => MetadataFilter::Orphan,
                "pinned" => MetadataFilter::Pinned,
                _ => {
                    return refused(
                        self,
                        &format!("there is no filter is:{value}"),
                        "write is:orphan or is:pinned",
                    );
                }
            },
            _ => match parse_period(&value, self.now) {
                Some((from, to)) if lower == "created" => MetadataFilter::Created(from, to),
                Some((from, to)) => MetadataFilter::Updated(from, to),
                None => {
                    let hint = format!(
                        "write {lower}:2026-11, {lower}:>2026-11-21, {lower}:2026-01..2026-03, {lower}:today or {lower}:>7d"
                    );
                    return refused(self, &format!("{value:?} is not a date"), &hint);
                }
            },
        };
        Ok(QueryNode::Metadata(filter))
    }

    /// Parses `type`, `type:[[note]]` or `[[note]]` after `rel:`.
    fn parse_relation(&mut self, context: Context) -> Result<QueryNode> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(rest.len());
        let (kind, behind) = rest.split_at(end);
        let has_note = behind.starts_with(':') || kind.is_empty();
        self.pos += kind.len() + usize::from(behind.starts_with(':'));
        let note = if has_note { Some(self.filter_value(context)?) } else { None };
        if note.as_ref().is_some_and(|note| note.trim().is_empty()) {
            let hint = "write rel:works_at:[[Acme]], rel:works_at or rel:[[Acme]]";
            return Err(self.error(self.pos, 1, "rel: needs a note after the type", hint));
        }
        let kind = Some(relation_key(kind)).filter(|kind| !kind.is_empty());
        Ok(QueryNode::Metadata(MetadataFilter::Relation(kind, note)))
    }

    fn filter_value(&mut self, context: Context) -> Result<String> {
        if matches!(self.peek(), Some('(' | '/')) {
            let hint = "write type:fact OR type:idea";
            return Err(self.error(self.pos, 1, "this filter takes one word, or a text in quotes", hint));
        }
        if self.peek() == Some('"') {
            return match self.parse_quoted(context)? {
                QueryNode::Text(_, term) => Ok(term.text),
                _ => Ok(String::new()),
            };
        }
        if let Some(link) = self.rest().strip_prefix("[[").and_then(|rest| rest.split_once("]]")) {
            self.pos += link.0.len() + 4;
            return Ok(link.0.to_owned());
        }
        let word = self.word_text(context, |_| false);
        self.pos += word.len();
        Ok(word.to_owned())
    }

    fn parse_property(&mut self, context: Context) -> Result<QueryNode> {
        let open = self.pos;
        let inner = Context { closing: Some(']'), field: Field::PropertyName, ..self.nested(context)? };
        self.pos += 1;
        self.skip_space();
        let name = self.parse_property_name(inner)?;
        self.skip_space();
        let unclosed = |parser: &Self| {
            let hint = "write [status] or [status:active], or quote it to search for it: \"[\"";
            parser.error(open, 1, "a [ is not closed", hint)
        };
        let Some(name) = name else {
            let hint = "write [status] or [status:active], or quote it to search for it: \"[\"";
            return Err(self.error(open, self.pos - open + 1, "a property needs a name", hint));
        };
        let mut value = None;
        if self.peek() == Some(':') {
            self.pos += 1;
            value = self.parse_or(Context { field: Field::PropertyValue, ..inner })?;
        }
        if self.peek() != Some(']') {
            return Err(unclosed(self));
        }
        self.pos += 1;
        Ok(QueryNode::Property(Box::new(name), value.map(Box::new)))
    }

    /// Parses the name of a property: plain text, which may contain spaces, or a condition on names.
    fn parse_property_name(&mut self, context: Context) -> Result<Option<QueryNode>> {
        let rest = self.rest();
        let plain = rest.split([':', ']']).next().unwrap_or("");
        let is_query =
            plain.starts_with(['"', '(', '/', '-']) || plain.split_whitespace().any(|word| word == "OR");
        if !is_query {
            self.pos += plain.len();
            let name = plain.trim();
            return Ok((!name.is_empty()).then(|| {
                QueryNode::Text(
                    Field::PropertyName,
                    QueryTerm::new(QueryTermKind::Word, name, context.match_case),
                )
            }));
        }
        self.parse_name_list(context)
    }

    /// Parses a condition on property names, up to a colon or a closing bracket.
    fn parse_name_list(&mut self, context: Context) -> Result<Option<QueryNode>> {
        let mut branches: Vec<QueryNode> = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None | Some(']' | ':' | ')') => break,
                Some(_) if self.take_or() => continue,
                Some('-') => {
                    self.pos += 1;
                    let Some(inner) = self.parse_name(context)? else { break };
                    branches.push(QueryNode::Not(Box::new(inner)));
                }
                Some(_) => match self.parse_name(context)? {
                    Some(node) => branches.push(node),
                    None => break,
                },
            }
        }
        Ok(match branches.len() {
            0 | 1 => branches.pop(),
            _ => Some(QueryNode::Any(branches)),
        })
    }

    fn parse_name(&mut self, context: Context) -> Result<Option<QueryNode>> {
        match self.peek() {
            Some('(') => {
                let open = self.pos;
                let inner = Context { closing: Some(')'), ..self.nested(context)? };
                self.pos += 1;
                let found = self.parse_name_list(inner)?;
                if self.peek() != Some(')') {
                    return Err(self.error(open, 1, "a ( is not closed", "write [(status OR state):active]"));
                }
                self.pos += 1;
                Ok(found)
            }
            Some('"') => self.parse_quoted(context).map(Some),
            Some('/') if self.regex_end().is_some() => self.parse_regex(context).map(Some),
            _ => {
                let word = self.word_text(context, |c| c == ':');
                self.pos += word.len();
                Ok((!word.is_empty()).then(|| {
                    QueryNode::Text(
                        Field::PropertyName,
                        QueryTerm::new(QueryTermKind::Word, word, context.match_case),
                    )
                }))
            }
        }
    }

    fn parse_comparison(&mut self, context: Context) -> Result<QueryNode> {
        let start = self.pos;
        let comparison = if self.peek() == Some('<') { Comparison::Less } else { Comparison::Greater };
        self.pos += 1;
        let operand = if self.peek() == Some('"') {
            self.filter_value(context)?
        } else {
            let word = self.word_text(context, |_| false);
            self.pos += word.len();
            word.to_owned()
        };
        let operand = operand.trim();
        if operand.parse::<f64>().is_ok() || Timestamp::parse(operand).is_some() {
            return Ok(QueryNode::Compare(comparison, operand.to_owned()));
        }
        // Properties contain dates without a time, so a whole day is compared as a date.
        let day = Timestamp::relative_day(operand, self.now).map(|day| day.to_string());
        let time = || Some(Timestamp::relative(operand, self.now)?.0.rfc3339());
        let Some(written) = day.or_else(time) else {
            let hint = "write [pages:>100], [due:<2026-11-21] or [due:<tomorrow]";
            return Err(self.error(start, self.pos - start, "a comparison needs a number or a date", hint));
        };
        Ok(QueryNode::Compare(comparison, written))
    }
}

/// Parses a period: a date of any precision, absolute or relative to `now`; one bound with `<`, `<=`, `>` or `>=`;
/// or two bounds separated by `..`. Returns its start, and its end, which is not included.
fn parse_period(text: &str, now: Timestamp) -> Option<(Option<Timestamp>, Option<Timestamp>)> {
    if let Some((from, to)) = text.split_once("..") {
        let from = if from.is_empty() { None } else { Some(date_range(from, now)?.0) };
        let to = if to.is_empty() { None } else { Some(date_range(to, now)?.1) };
        let is_one = from.is_some() || to.is_some();
        return (is_one && from.zip(to).is_none_or(|(from, to)| from < to)).then_some((from, to));
    }
    let bare = text.trim_start_matches(['<', '>', '=']);
    let (start, end) = date_range(bare, now)?;
    match text.get(..text.len() - bare.len())? {
        "" | "=" => Some((Some(start), Some(end))),
        ">" => Some((Some(end), None)),
        ">=" => Some((Some(start), None)),
        "<" => Some((None, Some(start))),
        "<=" => Some((None, Some(end))),
        _ => None,
    }
}

/// Returns the start of a year, month, day or second, and its end, which is not included.
fn date_range(text: &str, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
    if let Some(span) = Timestamp::relative(text, now) {
        return Some(span);
    }
    let parts: Vec<&str> = text.split('-').collect();
    let number = |at: usize| parts.get(at).and_then(|part| part.parse::<i64>().ok());
    match parts.as_slice() {
        [year] if year.len() == 4 => {
            let next = number(0)? + 1;
            Some((
                Timestamp::parse(&format!("{year}-01-01"))?,
                Timestamp::parse(&format!("{next:04}-01-01"))?,
            ))
        }
        [year, month] if year.len() == 4 && month.len() == 2 => {
            let (next_year, next) =
                if number(1)? == 12 { (number(0)? + 1, 1) } else { (number(0)?, number(1)? + 1) };
            let start = Timestamp::parse(&format!("{text}-01"))?;
            Some((start, Timestamp::parse(&format!("{next_year:04}-{next:02}-01"))?))
        }
        _ => match text.parse() {
            Ok(day) if text.len() <= 10 => Timestamp::day_range(day),
            _ => {
                let start = Timestamp::parse(text)?;
                Some((start, Timestamp::from_millis(start.millis() + 1_000)))
            }
        },
    }
}
