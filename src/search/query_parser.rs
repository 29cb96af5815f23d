//! Owns the grammar of queries: Obsidian's search language (spec/obsidian.md 8.1) and our own filters
//! (spec/search.md, Language), from text to [`Node`]. Errors name the place with a caret.

use std::fmt;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::memory::tier::Tier;
use crate::search::javascript_regex::Pattern;
use crate::search::text_match::{Term, TermKind};

/// Groups and operators within each other, beyond which a query is refused.
const DEEPEST: usize = 64;
/// Terms beyond which a query is refused.
const MOST_TERMS: usize = 5_000;
/// Bytes beyond which a query is refused: each of its terms may look ahead to its end.
const LONGEST: usize = 50_000;

/// What a query asks of a file.
#[derive(Debug, Clone)]
pub enum Node {
    /// All of these hold.
    All(Vec<Node>),
    /// One of these holds.
    Any(Vec<Node>),
    /// This does not hold.
    Not(Box<Node>),
    /// One such part of the note holds all of this.
    Within(Part, Box<Node>),
    /// A text stands there.
    Text(Place, Term),
    /// The note has a property of this name, and of this value where one is given.
    Property(Box<Node>, Option<Box<Node>>),
    /// The value is YAML's null.
    Null,
    /// The value is below or above this, as number or date.
    Compare(Order, String),
    /// One of our own filters.
    Own(Own),
}

/// Where a text is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the content or in the file's name without extension.
    Anywhere,
    /// In the content.
    Content,
    /// In the file's name with extension.
    Name,
    /// In the vault path.
    Path,
    /// Among the tags.
    Tag,
    /// The name of a property.
    Key,
    /// The value of a property.
    Value,
}

/// A part of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// A line.
    Line,
    /// A paragraph, list item, table, code block or quote.
    Block,
    /// From a heading to the next.
    Section,
    /// A list item with a checkbox: any, open (`false`), or not open (`true`).
    Task(Option<bool>),
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// `<`
    Below,
    /// `>`
    Above,
}

/// Filters that Obsidian does not have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Own {
    /// The note's `type`, without case.
    Type(String),
    /// The note's `category`, without case.
    Category(String),
    /// The memory's tier.
    Tier(Tier),
    /// When it was made: from the first instant, to before the second, in milliseconds.
    Created(Option<Timestamp>, Option<Timestamp>),
    /// When it last changed.
    Updated(Option<Timestamp>, Option<Timestamp>),
    /// It links to this note.
    LinksTo(String),
    /// This note links to it.
    LinkedFrom(String),
    /// No link leads to or from it.
    Orphan,
    /// It says `pinned: true`.
    Pinned,
}

/// Every operator that takes a term, with its colon, parted by spaces.
pub const OPERATORS: &str = "file: path: content: match-case: ignore-case: tag: line: block: section: task: task-todo: \
                         task-done: type: tier: category: created: updated: links-to: linked-from: is:";

/// Parses a query; nothing where nothing was typed.
///
/// # Errors
/// `Invalid` with the place of the mistake and a valid form.
pub fn parse(text: &str, now: Timestamp) -> Result<Option<Node>> {
    if text.len() > LONGEST {
        let what = format!("the query has {} bytes; at most {LONGEST} are allowed", text.len());
        return Err(Error::invalid(what).with_hint("search for fewer words"));
    }
    let mut parser = Parser { text, at: 0, terms: 0, spare: 0, now };
    let top = Context { place: Place::Anywhere, match_case: false, depth: 0, closer: None };
    let found = parser.either(top)?;
    if let Some(c) = parser.peek() {
        let hint = format!("open it, or quote it to search for it: \"{c}\"");
        return Err(parser.error(parser.at, 1, &format!("a {c:?} closes nothing"), &hint));
    }
    Ok(found)
}

impl Node {
    /// Says whether it is nothing but words, which rank and need not all occur.
    pub fn is_plain(&self) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(Self::is_plain),
            Self::Text(Place::Anywhere, term) => matches!(term.kind, TermKind::Word) && !term.match_case,
            _ => false,
        }
    }

    /// Visits the words and phrases that a note should hold, in order: what it can be ranked by.
    pub fn each_wanted<'a>(&'a self, visit: &mut impl FnMut(&'a Term)) {
        match self {
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().for_each(|node| node.each_wanted(visit)),
            Self::Within(_, node) => node.each_wanted(visit),
            Self::Text(Place::Anywhere | Place::Content, term)
                if !matches!(term.kind, TermKind::Regex(_)) =>
            {
                visit(term);
            }
            _ => {}
        }
    }

    /// Puts what is cheap to find out first, among terms whose order means nothing.
    #[must_use]
    pub fn arranged(self) -> Self {
        let sorted = |nodes: Vec<Self>| {
            let mut nodes: Vec<Self> = nodes.into_iter().map(Self::arranged).collect();
            nodes.sort_by_key(Self::cost);
            nodes
        };
        match self {
            Self::All(nodes) => Self::All(sorted(nodes)),
            Self::Any(nodes) => Self::Any(sorted(nodes)),
            Self::Not(node) => Self::Not(Box::new(node.arranged())),
            Self::Within(part, node) => Self::Within(part, Box::new(node.arranged())),
            node => node,
        }
    }

    /// Ranks nodes by what they need: the path, the catalog, the text, the parsed note.
    fn cost(&self) -> u8 {
        match self {
            Self::Text(Place::Name | Place::Path, _) => 0,
            Self::Own(_) | Self::Null | Self::Compare(..) => 1,
            Self::Text(Place::Tag, _) => 2,
            Self::Property(..) => 3,
            Self::Text(_, term) if !matches!(term.kind, TermKind::Regex(_)) => 4,
            Self::Text(..) => 5,
            Self::Within(..) => 6,
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().map(Self::cost).max().unwrap_or(0),
            Self::Not(node) => node.cost(),
        }
    }

    /// Says whether `test` holds for this node or one in it.
    pub fn has(&self, test: &impl Fn(&Self) -> bool) -> bool {
        test(self)
            || match self {
                Self::All(nodes) | Self::Any(nodes) => nodes.iter().any(|node| node.has(test)),
                Self::Not(node) | Self::Within(_, node) => node.has(test),
                Self::Property(name, value) => {
                    name.has(test) || value.as_ref().is_some_and(|value| value.has(test))
                }
                Self::Text(..) | Self::Null | Self::Compare(..) | Self::Own(_) => false,
            }
    }
}

impl fmt::Display for Node {
    /// Writes the node as a query; what was typed may have been spaced and ordered in another way.
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
            Self::Within(part, node) => write!(f, "{}{node}", part.operator()),
            Self::Text(place, term) => {
                let case = if term.match_case { "match-case:" } else { "" };
                let text = &term.text;
                match term.kind {
                    TermKind::Word => write!(f, "{}{case}{text}", place.operator()),
                    TermKind::Phrase => {
                        write!(f, "{}{case}\"{}\"", place.operator(), text.replace('"', "\\\""))
                    }
                    TermKind::Regex(_) => write!(f, "{}{case}/{text}/", place.operator()),
                }
            }
            Self::Property(name, None) => write!(f, "[{name}]"),
            Self::Property(name, Some(value)) => write!(f, "[{name}:{value}]"),
            Self::Null => f.write_str("null"),
            Self::Compare(Order::Below, operand) => write!(f, "<{operand}"),
            Self::Compare(Order::Above, operand) => write!(f, ">{operand}"),
            Self::Own(own) => own.fmt(f),
        }
    }
}

impl Place {
    fn operator(self) -> &'static str {
        match self {
            Self::Anywhere | Self::Key | Self::Value => "",
            Self::Content => "content:",
            Self::Name => "file:",
            Self::Path => "path:",
            Self::Tag => "tag:",
        }
    }
}

impl Part {
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

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period =
            |f: &mut fmt::Formatter<'_>, name: &str, from: &Option<Timestamp>, to: &Option<Timestamp>| {
                let shown = |bound: &Option<Timestamp>| bound.map_or_else(String::new, Timestamp::rfc3339);
                write!(f, "{name}:{}..{}", shown(from), shown(to))
            };
        match self {
            Self::Type(name) => write!(f, "type:{name}"),
            Self::Category(name) => write!(f, "category:{name}"),
            Self::Tier(tier) => write!(f, "tier:{}", tier.name().to_lowercase()),
            Self::Created(from, to) => period(f, "created", from, to),
            Self::Updated(from, to) => period(f, "updated", from, to),
            Self::LinksTo(note) => write!(f, "links-to:[[{note}]]"),
            Self::LinkedFrom(note) => write!(f, "linked-from:[[{note}]]"),
            Self::Orphan => f.write_str("is:orphan"),
            Self::Pinned => f.write_str("is:pinned"),
        }
    }
}

/// What holds for the terms being read.
#[derive(Debug, Clone, Copy)]
struct Context {
    place: Place,
    match_case: bool,
    depth: usize,
    /// The sign that closes the group or property around.
    closer: Option<char>,
}

impl Context {
    /// Says whether operators have a meaning here.
    fn has_operators(self) -> bool {
        !matches!(self.place, Place::Key | Place::Value)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    terms: usize,
    /// Parentheses that words opened and did not close.
    spare: usize,
    /// What dates such as `7d` are counted from.
    now: Timestamp,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Makes an error that shows the query with carets below the mistake.
    fn error(&self, at: usize, len: usize, what: &str, hint: &str) -> Error {
        let shown: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let place = self.text.get(..at).unwrap_or("").chars().count();
        let width =
            self.text.get(at..).unwrap_or("").get(..len).map_or(1, |part| part.chars().count().max(1));
        // A long query is shown around the mistake.
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
    }

    fn deeper(&self, context: Context) -> Result<Context> {
        if context.depth >= DEEPEST {
            return Err(self.error(
                self.at,
                1,
                "the query is nested too deep",
                "write it with fewer parentheses",
            ));
        }
        Ok(Context { depth: context.depth + 1, ..context })
    }

    /// Reads alternatives up to the closing sign or the end.
    fn either(&mut self, context: Context) -> Result<Option<Node>> {
        let mut branches = Vec::new();
        loop {
            let found = self.every(context)?;
            let or_at = self.at;
            let goes_on = self.take_or();
            match found {
                Some(node) => branches.push(node),
                None if goes_on || !branches.is_empty() => {
                    let at = if goes_on { or_at } else { or_at.saturating_sub(2) };
                    return Err(self.error(
                        at,
                        2,
                        "OR stands between two terms",
                        "write cat OR dog, or \"OR\" for the word",
                    ));
                }
                None => return Ok(None),
            }
            if !goes_on {
                break;
            }
        }
        Ok(match branches.len() {
            1 => branches.pop(),
            _ => Some(Node::Any(branches)),
        })
    }

    fn take_or(&mut self) -> bool {
        let is_or = self.is_or();
        self.at += if is_or { 2 } else { 0 };
        is_or
    }

    fn is_or(&self) -> bool {
        self.rest().strip_prefix("OR").is_some_and(|rest| {
            rest.chars().next().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | ')' | ']' | '"'))
        })
    }

    /// Reads terms that must all hold.
    fn every(&mut self, context: Context) -> Result<Option<Node>> {
        let mut terms = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => break,
                Some(')') if context.closer == Some(']') => {
                    return Err(self.error(self.at, 1, "a ')' closes nothing", "close the [ first"));
                }
                // What a word opened, such as `foo(` in `foo(a, b)`.
                Some(')') if context.closer.is_none() && self.spare > 0 => {
                    self.spare -= 1;
                    self.at += 1;
                }
                Some(')' | ']') => break,
                Some(_) if self.is_or() => break,
                Some(_) => terms.push(self.unary(context)?),
            }
        }
        Ok(match terms.len() {
            0 => None,
            1 => terms.pop(),
            _ => Some(Node::All(terms)),
        })
    }

    fn unary(&mut self, context: Context) -> Result<Node> {
        let behind = self.rest().strip_prefix('-');
        // A lone minus, an arrow, and the two of an option such as `--release`, are text.
        let negates = behind.is_some_and(|rest| {
            rest.chars().next().is_some_and(|c| !c.is_whitespace() && !matches!(c, '-' | '>' | ')' | ']'))
        });
        if !negates {
            return self.primary(context);
        }
        self.at += 1;
        Ok(Node::Not(Box::new(self.primary(context)?)))
    }

    fn primary(&mut self, context: Context) -> Result<Node> {
        self.terms += 1;
        if self.terms > MOST_TERMS {
            return Err(self.error(self.at, 1, "the query is too long", "search for fewer words"));
        }
        match self.peek() {
            Some('(') => self.group(context),
            // An open task that was pasted.
            Some('[') if context.has_operators() && !self.rest().starts_with("[ ]") => self.property(context),
            Some('"') => self.quoted(context),
            Some('/') if self.regex_end().is_some() => self.regex(context),
            Some('<' | '>') if context.place == Place::Value => self.comparison(context),
            _ => match self.operator_name().filter(|_| context.has_operators()) {
                Some(name) => self.operator(name, context),
                None => Ok(self.word(context)),
            },
        }
    }

    fn group(&mut self, context: Context) -> Result<Node> {
        let open = self.at;
        let inner = Context { closer: Some(')'), ..self.deeper(context)? };
        self.at += 1;
        let found = self.either(inner)?;
        if self.peek() != Some(')') {
            let hint = "close it with ), or quote it to search for it: \"(\"";
            return Err(self.error(open, 1, "a ( is not closed", hint));
        }
        self.at += 1;
        found.ok_or_else(|| self.error(open, 2, "the parentheses are empty", "write (cat OR dog)"))
    }

    fn quoted(&mut self, context: Context) -> Result<Node> {
        let open = self.at;
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
        self.at += end;
        Ok(Node::Text(context.place, Term::new(TermKind::Phrase, &text, context.match_case)))
    }

    /// Finds the slash that closes a regular expression, as an offset in what is left.
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

    fn regex(&mut self, context: Context) -> Result<Node> {
        let end = self.regex_end().unwrap_or(1);
        let source = self.rest().get(1..end).unwrap_or("");
        let pattern = Pattern::new(source, context.match_case).map_err(|why| {
            self.error(
                self.at,
                end + 1,
                &format!("the regular expression cannot be used: {why}"),
                "write it as in JavaScript, /\\d{4}-\\d{2}/, or quote it to search for the text",
            )
        })?;
        self.at += end + 1;
        Ok(Node::Text(context.place, Term::new(TermKind::Regex(pattern), source, context.match_case)))
    }

    fn word(&mut self, context: Context) -> Node {
        let word = match self.rest().get(..3) {
            Some("[ ]") => "[ ]",
            _ => self.word_text(context, |_| false),
        };
        self.at += word.len();
        if context.closer.is_none() {
            self.spare += word.matches('(').count().saturating_sub(word.matches(')').count());
        }
        if context.place == Place::Value && word == "null" {
            return Node::Null;
        }
        Node::Text(context.place, Term::new(TermKind::Word, word, context.match_case))
    }

    /// Gives the text up to white space, a closing sign, or what `stops`. Signs that the word itself opened belong to
    /// it where nothing around it waits for them: `main()` is a word.
    fn word_text(&self, context: Context, stops: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let (mut round, mut square) = (0usize, 0usize);
        let free = context.closer.is_none();
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

    /// Reads the name of an operator, where one stands here; the colon is behind it.
    fn operator_name(&self) -> Option<&'a str> {
        let rest = self.rest();
        let len = rest.find(|c: char| !(c.is_ascii_alphabetic() || c == '-'))?;
        let (name, behind) = (rest.get(..len)?, rest.get(len..)?.strip_prefix(':')?);
        let is_known =
            OPERATORS.split(' ').any(|known| known.trim_end_matches(':').eq_ignore_ascii_case(name));
        // `Note: text`, `https://…` and `std::path` are words that have a colon.
        let is_text =
            behind.chars().next().is_none_or(|c| c.is_whitespace() || c == ':') || behind.starts_with("//");
        (len > 0 && (is_known || !is_text)).then_some(name)
    }

    fn operator(&mut self, name: &str, context: Context) -> Result<Node> {
        let start = self.at;
        let lower = name.to_ascii_lowercase();
        self.at += name.len() + 1;
        let inner = self.deeper(context)?;
        let wants = |what: &str| -> Error {
            self.error(
                start,
                name.len() + 1,
                &format!("{lower}: wants a term directly behind it"),
                &format!("write {lower}:{what}, or quote it to search for it: \"{name}:\""),
            )
        };
        if self.peek().is_none_or(|c| c.is_whitespace() || c == ')' || c == ']') {
            return Err(wants(match lower.as_str() {
                "is" => "orphan",
                "tier" => "hot",
                "created" | "updated" => "2026-11",
                _ => "word",
            }));
        }
        let part = match lower.as_str() {
            "file" => return self.primary(Context { place: Place::Name, ..inner }),
            "path" => return self.primary(Context { place: Place::Path, ..inner }),
            "content" => return self.primary(Context { place: Place::Content, ..inner }),
            "tag" => return self.primary(Context { place: Place::Tag, ..inner }),
            "match-case" => return self.primary(Context { match_case: true, ..inner }),
            "ignore-case" => return self.primary(Context { match_case: false, ..inner }),
            "line" => Part::Line,
            "block" => Part::Block,
            "section" => Part::Section,
            "task" => Part::Task(None),
            "task-todo" => Part::Task(Some(false)),
            "task-done" => Part::Task(Some(true)),
            _ => return self.own(start, name, &lower, context),
        };
        let inner = Context { place: Place::Anywhere, ..inner };
        Ok(Node::Within(part, Box::new(self.primary(inner)?)))
    }

    /// Reads the value of one of our own filters.
    fn own(&mut self, start: usize, name: &str, lower: &str, context: Context) -> Result<Node> {
        let at = self.at;
        if !OPERATORS.split(' ').any(|known| known.trim_end_matches(':') == lower) {
            let hint = format!("put it in quotes to search for it: \"{name}:…\"; operators are {OPERATORS}");
            return Err(self.error(start, name.len() + 1, &format!("there is no operator {name}:"), &hint));
        }
        let value = self.own_value(context)?;
        let len = self.at - at;
        let refused = |parser: &Self, what: &str, hint: &str| Err(parser.error(at, len, what, hint));
        let own = match lower {
            "type" => Own::Type(value.to_lowercase()),
            "category" => Own::Category(value.to_lowercase()),
            "links-to" => Own::LinksTo(value),
            "linked-from" => Own::LinkedFrom(value),
            "tier" => match Tier::parse(&value) {
                Some(tier) => Own::Tier(tier),
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
                "orphan" => Own::Orphan,
                "pinned" => Own::Pinned,
                _ => return refused(self, &format!("nothing is {value:?}"), "write is:orphan or is:pinned"),
            },
            _ => match period(&value, self.now) {
                Some((from, to)) if lower == "created" => Own::Created(from, to),
                Some((from, to)) => Own::Updated(from, to),
                None => {
                    let hint = format!(
                        "write {lower}:2026-11, {lower}:>2026-11-21, {lower}:2026-01..2026-03, {lower}:today or {lower}:>7d"
                    );
                    return refused(self, &format!("{value:?} is not a date"), &hint);
                }
            },
        };
        Ok(Node::Own(own))
    }

    fn own_value(&mut self, context: Context) -> Result<String> {
        if matches!(self.peek(), Some('(' | '/')) {
            let hint = "write type:fact OR type:idea";
            return Err(self.error(self.at, 1, "this filter takes one word, or a text in quotes", hint));
        }
        if self.peek() == Some('"') {
            return match self.quoted(context)? {
                Node::Text(_, term) => Ok(term.text),
                _ => Ok(String::new()),
            };
        }
        if let Some(link) = self.rest().strip_prefix("[[").and_then(|rest| rest.split_once("]]")) {
            self.at += link.0.len() + 4;
            return Ok(link.0.to_owned());
        }
        let word = self.word_text(context, |_| false);
        self.at += word.len();
        Ok(word.to_owned())
    }

    fn property(&mut self, context: Context) -> Result<Node> {
        let open = self.at;
        let inner = Context { closer: Some(']'), place: Place::Key, ..self.deeper(context)? };
        self.at += 1;
        self.skip_space();
        let name = self.property_name(inner)?;
        self.skip_space();
        let unclosed = |parser: &Self| {
            let hint = "write [status] or [status:active], or quote it to search for it: \"[\"";
            parser.error(open, 1, "a [ is not closed", hint)
        };
        let Some(name) = name else {
            let hint = "write [status] or [status:active], or quote it to search for it: \"[\"";
            return Err(self.error(open, self.at - open + 1, "a property wants a name", hint));
        };
        let mut value = None;
        if self.peek() == Some(':') {
            self.at += 1;
            value = self.either(Context { place: Place::Value, ..inner })?;
        }
        if self.peek() != Some(']') {
            return Err(unclosed(self));
        }
        self.at += 1;
        Ok(Node::Property(Box::new(name), value.map(Box::new)))
    }

    /// Reads the name of a property: plain text, which may hold spaces, or a query.
    fn property_name(&mut self, context: Context) -> Result<Option<Node>> {
        let rest = self.rest();
        let plain = rest.split([':', ']']).next().unwrap_or("");
        let is_query =
            plain.starts_with(['"', '(', '/', '-']) || plain.split_whitespace().any(|word| word == "OR");
        if !is_query {
            self.at += plain.len();
            let name = plain.trim();
            return Ok((!name.is_empty())
                .then(|| Node::Text(Place::Key, Term::new(TermKind::Word, name, context.match_case))));
        }
        self.names(context)
    }

    /// Reads a query over names; a colon ends it.
    fn names(&mut self, context: Context) -> Result<Option<Node>> {
        let mut branches: Vec<Node> = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None | Some(']' | ':' | ')') => break,
                Some(_) if self.take_or() => continue,
                Some('-') => {
                    self.at += 1;
                    let Some(inner) = self.one_name(context)? else { break };
                    branches.push(Node::Not(Box::new(inner)));
                }
                Some(_) => match self.one_name(context)? {
                    Some(node) => branches.push(node),
                    None => break,
                },
            }
        }
        Ok(match branches.len() {
            0 | 1 => branches.pop(),
            _ => Some(Node::Any(branches)),
        })
    }

    fn one_name(&mut self, context: Context) -> Result<Option<Node>> {
        match self.peek() {
            Some('(') => {
                let open = self.at;
                let inner = Context { closer: Some(')'), ..self.deeper(context)? };
                self.at += 1;
                let found = self.names(inner)?;
                if self.peek() != Some(')') {
                    return Err(self.error(open, 1, "a ( is not closed", "write [(status OR state):active]"));
                }
                self.at += 1;
                Ok(found)
            }
            Some('"') => self.quoted(context).map(Some),
            Some('/') if self.regex_end().is_some() => self.regex(context).map(Some),
            _ => {
                let word = self.word_text(context, |c| c == ':');
                self.at += word.len();
                Ok((!word.is_empty())
                    .then(|| Node::Text(Place::Key, Term::new(TermKind::Word, word, context.match_case))))
            }
        }
    }

    fn comparison(&mut self, context: Context) -> Result<Node> {
        let start = self.at;
        let order = if self.peek() == Some('<') { Order::Below } else { Order::Above };
        self.at += 1;
        let operand = if self.peek() == Some('"') {
            self.own_value(context)?
        } else {
            let word = self.word_text(context, |_| false);
            self.at += word.len();
            word.to_owned()
        };
        let operand = operand.trim();
        if operand.parse::<f64>().is_ok() || Timestamp::parse(operand).is_some() {
            return Ok(Node::Compare(order, operand.to_owned()));
        }
        let Some((start_of, end_of)) = Timestamp::relative(operand, self.now) else {
            let hint = "write [pages:>100], [due:<2026-11-21] or [due:<tomorrow]";
            return Err(self.error(start, self.at - start, "a comparison wants a number or a date", hint));
        };
        // Properties hold days, so a day is compared as one.
        let is_day = end_of.millis() - start_of.millis() == 86_400_000;
        let written = start_of.rfc3339();
        let written = written.get(..10).filter(|_| is_day).unwrap_or(&written).to_owned();
        Ok(Node::Compare(order, written))
    }
}

/// Reads a period: a date of any precision or one counted from `now`, one bound with `<`, `<=`, `>` or `>=`, or two with
/// `..` between.
fn period(text: &str, now: Timestamp) -> Option<(Option<Timestamp>, Option<Timestamp>)> {
    if let Some((from, to)) = text.split_once("..") {
        let from = if from.is_empty() { None } else { Some(span_of(from, now)?.0) };
        let to = if to.is_empty() { None } else { Some(span_of(to, now)?.1) };
        let is_one = from.is_some() || to.is_some();
        return (is_one && from.zip(to).is_none_or(|(from, to)| from < to)).then_some((from, to));
    }
    let bare = text.trim_start_matches(['<', '>', '=']);
    let (start, end) = span_of(bare, now)?;
    match text.get(..text.len() - bare.len())? {
        "" | "=" => Some((Some(start), Some(end))),
        ">" => Some((Some(end), None)),
        ">=" => Some((Some(start), None)),
        "<" => Some((None, Some(start))),
        "<=" => Some((None, Some(end))),
        _ => None,
    }
}

/// Gives the first instant of a year, month, day or moment, and the first behind it.
fn span_of(text: &str, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
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
        _ => {
            let start = Timestamp::parse(text)?;
            let length = if text.len() <= 10 { 86_400_000 } else { 1_000 };
            Some((start, Timestamp::from_millis(start.millis() + length)))
        }
    }
}
