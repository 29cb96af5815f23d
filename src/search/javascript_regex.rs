//! Owns regular expressions of queries: JavaScript's syntax, run by engines that cannot run away (spec/obsidian.md 8).
//!
//! What needs no backtracking runs in linear time; look-around and back-references run with a limit of steps. Steps are
//! counted and not timed, so a query has the same answer on a slow machine.

use std::sync::{Arc, OnceLock};

use regex_syntax::hir::{Hir, HirKind};

use crate::text::path::composed;
use crate::text::pattern_limits::check_pattern;

/// The most bytes of a text of each class; a longer text belongs to the last class.
const CLASSES: [usize; 8] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24];
/// Steps back that a pattern with look-around or back-references may take on any text.
const STEPS: usize = 50_000;
/// Steps back that it may take besides for each byte of the largest text of the class.
const STEPS_A_BYTE: usize = 25;
/// Bytes that a compiled pattern may take.
const LARGEST: usize = 4 << 20;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    engine: Engine,
    /// Texts that everything it matches contains, without regard to case.
    needed: Vec<String>,
}

#[derive(Debug, Clone)]
enum Engine {
    Linear(regex::Regex),
    Stepping(Arc<Stepping>),
}

/// A pattern whose steps are limited by the length of the text. The engine's limit is part of what it compiles, so each
/// class of texts has a compiled pattern of its own, made when a text of the class is first met.
#[derive(Debug)]
struct Stepping {
    translated: String,
    match_case: bool,
    classes: [OnceLock<Option<fancy_regex::Regex>>; CLASSES.len()],
}

impl Stepping {
    /// Compiles the pattern for the smallest texts, which shows whether it is one.
    fn new(translated: String, match_case: bool) -> Result<Self, String> {
        let stepping = Self { translated, match_case, classes: Default::default() };
        let smallest = stepping.compiled(0).map_err(|error| one_line(&error.to_string()))?;
        if let Some(class) = stepping.classes.first() {
            class.get_or_init(|| Some(smallest));
        }
        Ok(stepping)
    }

    fn compiled(&self, class: usize) -> Result<fancy_regex::Regex, fancy_regex::Error> {
        let longest = CLASSES.get(class).copied().unwrap_or_default();
        fancy_regex::RegexBuilder::new(&self.translated)
            .multi_line(true)
            .case_insensitive(!self.match_case)
            .backtrack_limit(STEPS + STEPS_A_BYTE * longest)
            .delegate_size_limit(LARGEST)
            .build()
    }

    fn is_match(&self, text: &str) -> Result<bool, TooManySteps> {
        let class = CLASSES.partition_point(|&longest| longest < text.len()).min(CLASSES.len() - 1);
        let compiled = self.classes.get(class).ok_or(TooManySteps)?;
        let regex = compiled.get_or_init(|| self.compiled(class).ok()).as_ref().ok_or(TooManySteps)?;
        regex.is_match(text).map_err(|_| TooManySteps)
    }
}

/// A pattern took more steps than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManySteps;

impl Pattern {
    /// Compiles a pattern as it stands between the slashes; `^` and `$` work by line.
    ///
    /// # Errors
    /// One sentence on what is wrong with it.
    pub fn new(source: &str, match_case: bool) -> Result<Self, String> {
        // Texts are compared in composed form, and so are patterns.
        let source = &*composed(source);
        check_pattern(source)?;
        let linear = translated(source, Dialect::Linear)?;
        let compiled = regex::RegexBuilder::new(&linear)
            .multi_line(true)
            .case_insensitive(!match_case)
            .size_limit(LARGEST)
            .build();
        match compiled {
            Ok(regex) => Ok(Self { engine: Engine::Linear(regex), needed: needed(&linear) }),
            Err(regex::Error::CompiledTooBig(_)) => Err("it is too large".to_owned()),
            Err(_) => {
                let stepping = Stepping::new(translated(source, Dialect::Stepping)?, match_case)?;
                Ok(Self { engine: Engine::Stepping(Arc::new(stepping)), needed: Vec::new() })
            }
        }
    }

    /// Says whether it matches anywhere in a text.
    ///
    /// # Errors
    /// Where it takes too many steps.
    pub fn is_match(&self, text: &str) -> Result<bool, TooManySteps> {
        match &self.engine {
            Engine::Linear(regex) => Ok(regex.is_match(text)),
            Engine::Stepping(stepping) => stepping.is_match(text),
        }
    }

    /// Gives texts that whatever it matches contains, without regard to case; may be none.
    pub fn needed(&self) -> &[String] {
        &self.needed
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Which engine a translation is for: they differ in how an ASCII word boundary is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Linear,
    Stepping,
}

impl Dialect {
    fn boundary(self) -> &'static str {
        match self {
            Self::Linear => r"(?-u:\b)",
            Self::Stepping => r"(?:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))",
        }
    }

    fn no_boundary(self) -> &'static str {
        match self {
            Self::Linear => r"(?-u:\B)",
            Self::Stepping => r"(?:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_]))",
        }
    }
}

/// Rewrites JavaScript's pattern syntax (ECMA-262, 22.2.1 and annex B) in the engines' own.
fn translated(source: &str, dialect: Dialect) -> Result<String, String> {
    let mut reader =
        Reader { rest: source, out: String::with_capacity(source.len() + 16), dialect, counted: false };
    while let Some(c) = reader.next() {
        reader.outside(c)?;
    }
    Ok(reader.out)
}

struct Reader<'a> {
    rest: &'a str,
    out: String,
    dialect: Dialect,
    /// Whether a count was read last, behind which none may stand.
    counted: bool,
}

/// What an escape stands for.
enum Escaped {
    Char(char),
    /// A class, by its content between brackets.
    Class(&'static str),
    /// Handed on as it is.
    Raw(String),
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or("");
        Some(c)
    }

    fn take(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn literal(&mut self, c: char) {
        let mut buffer = [0; 4];
        self.out.push_str(&regex_syntax::escape(c.encode_utf8(&mut buffer)));
    }

    fn outside(&mut self, c: char) -> Result<(), String> {
        let counts = matches!(c, '*' | '+' | '?') || c == '{' && is_count(self.rest);
        if counts && self.counted && c != '?' {
            return Err(format!("there is nothing that {c} could repeat"));
        }
        self.counted = counts;
        match c {
            '(' if self.rest.starts_with('?') => {
                let kinds = ["?:", "?=", "?!", "?<=", "?<!", "?<"];
                let known = kinds.iter().any(|kind| self.rest.starts_with(kind));
                if !known {
                    let kind: String = self.rest.chars().take(2).collect();
                    return Err(format!("({kind} is not JavaScript"));
                }
                self.out.push(c);
                // The question mark is no count.
                self.out.push('?');
                self.next();
            }
            '\\' if self.take("b") => self.out.push_str(self.dialect.boundary()),
            '\\' if self.take("B") => self.out.push_str(self.dialect.no_boundary()),
            '\\' => match self.escape(false)? {
                Escaped::Char(c) => self.literal(c),
                Escaped::Class(class) => {
                    self.out.push('[');
                    self.out.push_str(class);
                    self.out.push(']');
                }
                Escaped::Raw(raw) => self.out.push_str(&raw),
            },
            '.' => self.out.push_str(r"[^\n\r\x{2028}\x{2029}]"),
            '[' => self.class()?,
            '{' if !is_count(self.rest) => self.literal('{'),
            '{' => {
                let end = self.rest.find('}').map_or(self.rest.len(), |end| end + 1);
                self.out.push('{');
                self.out.push_str(self.rest.get(..end).unwrap_or(""));
                self.rest = self.rest.get(end..).unwrap_or("");
            }
            ']' | '}' | '#' | '&' | '~' => self.literal(c),
            _ => self.out.push(c),
        }
        Ok(())
    }

    /// Reads a bracketed class behind its `[`.
    fn class(&mut self) -> Result<(), String> {
        let negated = self.take("^");
        if self.take("]") {
            // JavaScript's empty class matches nothing, and its negation everything.
            self.out.push_str(if negated { r"[\s\S]" } else { r"[^\s\S]" });
            return Ok(());
        }
        self.out.push_str(if negated { "[^" } else { "[" });
        // Whether the item before may begin a range, and whether a range is open.
        let (mut may_begin, mut open) = (false, false);
        loop {
            let c = self.next().ok_or("a [ is not closed")?;
            let item = match c {
                ']' => break,
                '-' if may_begin && !open && !self.rest.starts_with(']') => {
                    // `[a-\d]` is three items in JavaScript and an error elsewhere.
                    if is_class_escape(self.rest) {
                        Escaped::Char('-')
                    } else {
                        self.out.push('-');
                        open = true;
                        continue;
                    }
                }
                '\\' if self.take("b") => Escaped::Char('\u{8}'),
                '\\' => self.escape(true)?,
                c => Escaped::Char(c),
            };
            match item {
                Escaped::Char(c) => {
                    self.literal(c);
                    may_begin = !open;
                }
                Escaped::Class(class) => {
                    self.out.push_str(class);
                    may_begin = false;
                }
                Escaped::Raw(raw) => {
                    self.out.push_str(&raw);
                    may_begin = false;
                }
            }
            open = false;
        }
        self.out.push(']');
        Ok(())
    }

    /// Reads what stands behind a backslash.
    fn escape(&mut self, in_class: bool) -> Result<Escaped, String> {
        let c = self.next().ok_or("it ends with a backslash")?;
        Ok(match c {
            'd' => Escaped::Class("0-9"),
            'w' => Escaped::Class("0-9A-Za-z_"),
            's' => Escaped::Class(r"\s\x{FEFF}"),
            'D' => Escaped::Class(if in_class { "[^0-9]" } else { "^0-9" }),
            'W' => Escaped::Class(if in_class { "[^0-9A-Za-z_]" } else { "^0-9A-Za-z_" }),
            'S' => Escaped::Class(if in_class { r"[^\s\x{FEFF}]" } else { r"^\s\x{FEFF}" }),
            'n' => Escaped::Char('\n'),
            'r' => Escaped::Char('\r'),
            't' => Escaped::Char('\t'),
            'v' => Escaped::Char('\u{B}'),
            'f' => Escaped::Char('\u{C}'),
            '0' => Escaped::Char('\0'),
            'x' => self.hex(2).map_or(Escaped::Char('x'), Escaped::Char),
            'u' => self.unicode().map_or(Escaped::Char('u'), Escaped::Char),
            'c' => self.control(),
            'k' if !in_class && self.rest.starts_with('<') => self.name()?,
            '1'..='9' if !in_class => {
                let mut digits = String::from(c);
                while let Some(digit) = self.rest.chars().next().filter(char::is_ascii_digit) {
                    digits.push(digit);
                    self.next();
                }
                Escaped::Raw(format!(r"(?:\{digits})"))
            }
            'p' | 'P' if self.rest.starts_with('{') => {
                let end = self.rest.find('}').ok_or("a \\p{ is not closed")? + 1;
                let raw = format!("\\{c}{}", self.rest.get(..end).unwrap_or(""));
                self.rest = self.rest.get(end..).unwrap_or("");
                Escaped::Raw(raw)
            }
            c => Escaped::Char(c),
        })
    }

    fn control(&mut self) -> Escaped {
        match self.rest.chars().next().filter(char::is_ascii_alphabetic) {
            Some(letter) => {
                self.next();
                Escaped::Char(char::from(letter as u8 % 32))
            }
            None => Escaped::Raw(r"\\c".to_owned()),
        }
    }

    fn name(&mut self) -> Result<Escaped, String> {
        let end = self.rest.find('>').ok_or("a \\k< is not closed")? + 1;
        let raw = format!("\\k{}", self.rest.get(..end).unwrap_or(""));
        self.rest = self.rest.get(end..).unwrap_or("");
        Ok(Escaped::Raw(raw))
    }

    fn hex(&mut self, digits: usize) -> Option<char> {
        let code = self.rest.get(..digits)?;
        let c = code.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(code, 16))?;
        self.rest = self.rest.get(digits..)?;
        Some(char::from_u32(c.ok()?).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Reads `{…}` or four digits behind `\u`; two surrogates are one character.
    fn unicode(&mut self) -> Option<char> {
        if let Some(inner) = self.rest.strip_prefix('{') {
            let (code, behind) = inner.split_once('}')?;
            let c = u32::from_str_radix(code, 16).ok().and_then(char::from_u32)?;
            self.rest = behind;
            return Some(c);
        }
        let unit = |text: &str| u16::from_str_radix(text.get(..4)?, 16).ok();
        let first = unit(self.rest)?;
        let second = self.rest.get(4..).and_then(|rest| rest.strip_prefix("\\u")).and_then(unit);
        if let Some(Ok(c)) = char::decode_utf16([first, second.unwrap_or(0)]).next() {
            let is_pair = u32::from(c) > 0xFFFF;
            self.rest = self.rest.get(if is_pair { 10 } else { 4 }..)?;
            return Some(c);
        }
        self.rest = self.rest.get(4..)?;
        Some(char::REPLACEMENT_CHARACTER)
    }
}

/// Says whether a text goes on as a count, `2}`, `2,}` or `2,3}`.
fn is_count(rest: &str) -> bool {
    let Some((inner, _)) = rest.split_once('}') else { return false };
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

fn is_class_escape(rest: &str) -> bool {
    rest.strip_prefix('\\').is_some_and(|rest| rest.starts_with(['d', 'D', 'w', 'W', 's', 'S', 'p', 'P']))
}

/// Finds texts that everything a pattern matches contains.
fn needed(pattern: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Case is left out of it: an ignored case turns every letter into a class.
    if let Ok(hir) = regex_syntax::ParserBuilder::new().multi_line(true).build().parse(pattern) {
        collect(&hir, &mut found);
    }
    found
}

fn collect(hir: &Hir, found: &mut Vec<String>) {
    match hir.kind() {
        HirKind::Literal(literal) => found.extend(String::from_utf8(literal.0.to_vec()).ok()),
        HirKind::Concat(parts) => parts.iter().for_each(|part| collect(part, found)),
        HirKind::Capture(capture) => collect(&capture.sub, found),
        HirKind::Repetition(repetition) if repetition.min > 0 => collect(&repetition.sub, found),
        _ => {}
    }
}
