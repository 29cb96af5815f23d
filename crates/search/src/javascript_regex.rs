//! Regular expressions of queries in JavaScript's syntax, with bounded running time (docs/spec/obsidian.md 8).
//!
//! Patterns that need no backtracking run in linear time. Look-around and back-references run with a step limit.
//! Steps are counted instead of time, so that a query has the same result on a slow machine.

use std::sync::{Arc, OnceLock};

use regex_syntax::hir::{Hir, HirKind};
use sidenote_language::pattern_limits::check_pattern;
use sidenote_markdown::path::to_nfc;

/// The maximum text length in bytes of each size class. Longer texts belong to the last class.
const SIZE_CLASSES: [usize; 8] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24];
/// The number of backtracking steps that a pattern may take on any text.
const BASE_STEPS: usize = 50_000;
/// The number of additional steps for each byte of the largest text of the size class.
const STEPS_PER_BYTE: usize = 25;
/// The maximum size of a compiled pattern in bytes.
const MAX_COMPILED_BYTES: usize = 4 << 20;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    engine: Engine,
    /// Literals that every match contains if case is ignored.
    required_literals: Vec<String>,
}

#[derive(Debug, Clone)]
enum Engine {
    Linear(regex::Regex),
    Backtracking(Arc<Backtracking>),
}

/// A backtracking pattern whose step limit depends on the length of the text. The limit is compiled into the
/// pattern, so each size class has a compiled pattern of its own, created on first use.
#[derive(Debug)]
struct Backtracking {
    translated: String,
    match_case: bool,
    classes: [OnceLock<Option<fancy_regex::Regex>>; SIZE_CLASSES.len()],
}

impl Backtracking {
    /// Compiles the pattern for the smallest size class, which shows whether it is valid.
    fn new(translated: String, match_case: bool) -> Result<Self, String> {
        let backtracking = Self { translated, match_case, classes: Default::default() };
        let smallest = backtracking.compiled(0).map_err(|error| one_line(&error.to_string()))?;
        if let Some(class) = backtracking.classes.first() {
            class.get_or_init(|| Some(smallest));
        }
        Ok(backtracking)
    }

    fn compiled(&self, class: usize) -> Result<fancy_regex::Regex, fancy_regex::Error> {
        let longest = SIZE_CLASSES.get(class).copied().unwrap_or_default();
        fancy_regex::RegexBuilder::new(&self.translated)
            .multi_line(true)
            .case_insensitive(!self.match_case)
            .backtrack_limit(BASE_STEPS + STEPS_PER_BYTE * longest)
            .delegate_size_limit(MAX_COMPILED_BYTES)
            .build()
    }

    fn is_match(&self, text: &str) -> Result<bool, TooManySteps> {
        let class = SIZE_CLASSES.partition_point(|&longest| longest < text.len()).min(SIZE_CLASSES.len() - 1);
        let compiled = self.classes.get(class).ok_or(TooManySteps)?;
        let regex = compiled.get_or_init(|| self.compiled(class).ok()).as_ref().ok_or(TooManySteps)?;
        regex.is_match(text).map_err(|_| TooManySteps)
    }
}

/// The error of a regular expression that reached its step limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManySteps;

impl Pattern {
    /// Compiles a pattern, given without its slashes; `^` and `$` match at line boundaries.
    ///
    /// # Errors
    /// One sentence that says why the pattern is invalid or too large.
    pub fn new(source: &str, match_case: bool) -> Result<Self, String> {
        // Texts are compared in to_nfc form (NFC), and so are patterns.
        let source = &*to_nfc(source);
        check_pattern(source)?;
        let linear = translate(source, Dialect::Linear)?;
        let compiled = regex::RegexBuilder::new(&linear)
            .multi_line(true)
            .case_insensitive(!match_case)
            .size_limit(MAX_COMPILED_BYTES)
            .build();
        match compiled {
            Ok(regex) => {
                Ok(Self { engine: Engine::Linear(regex), required_literals: required_literals(&linear) })
            }
            Err(regex::Error::CompiledTooBig(_)) => Err("it is too large".to_owned()),
            Err(_) => {
                let backtracking = Backtracking::new(translate(source, Dialect::Backtracking)?, match_case)?;
                Ok(Self {
                    engine: Engine::Backtracking(Arc::new(backtracking)),
                    required_literals: Vec::new(),
                })
            }
        }
    }

    /// Returns whether the pattern matches anywhere in a text.
    ///
    /// # Errors
    /// [`TooManySteps`] if it reaches its step limit.
    pub fn is_match(&self, text: &str) -> Result<bool, TooManySteps> {
        match &self.engine {
            Engine::Linear(regex) => Ok(regex.is_match(text)),
            Engine::Backtracking(backtracking) => backtracking.is_match(text),
        }
    }

    /// Returns literals that every match contains if case is ignored. There may be none.
    pub(crate) fn required_literals(&self) -> &[String] {
        &self.required_literals
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The engine that a pattern is translated for. They differ in how an ASCII word boundary is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Linear,
    Backtracking,
}

impl Dialect {
    fn word_boundary(self) -> &'static str {
        match self {
            Self::Linear => r"(?-u:\b)",
            Self::Backtracking => r"(?:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))",
        }
    }

    fn non_boundary(self) -> &'static str {
        match self {
            Self::Linear => r"(?-u:\B)",
            Self::Backtracking => r"(?:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_]))",
        }
    }
}

/// Translates JavaScript's pattern syntax (ECMA-262, 22.2.1 and annex B) to the syntax of the engine.
fn translate(source: &str, dialect: Dialect) -> Result<String, String> {
    let mut translator = Translator {
        rest: source,
        out: String::with_capacity(source.len() + 16),
        dialect,
        after_quantifier: false,
    };
    while let Some(c) = translator.next() {
        translator.translate_char(c)?;
    }
    Ok(translator.out)
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    dialect: Dialect,
    /// Whether the last item was a quantifier, after which no other may follow.
    after_quantifier: bool,
}

/// The meaning of an escape sequence.
enum Escape {
    Char(char),
    /// A class, given by its content between the brackets.
    Class(&'static str),
    /// A sequence that is copied unchanged.
    Raw(String),
}

impl Translator<'_> {
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

    fn translate_char(&mut self, c: char) -> Result<(), String> {
        let is_quantifier = matches!(c, '*' | '+' | '?') || c == '{' && is_counted_quantifier(self.rest);
        if is_quantifier && self.after_quantifier && c != '?' {
            return Err(format!("{c} has nothing to repeat"));
        }
        self.after_quantifier = is_quantifier;
        match c {
            '(' if self.rest.starts_with('?') => {
                let kinds = ["?:", "?=", "?!", "?<=", "?<!", "?<"];
                let known = kinds.iter().any(|kind| self.rest.starts_with(kind));
                if !known {
                    let kind: String = self.rest.chars().take(2).collect();
                    return Err(format!("({kind} is not valid in JavaScript"));
                }
                self.out.push(c);
                // This question mark is not a quantifier.
                self.out.push('?');
                self.next();
            }
            '\\' if self.take("b") => self.out.push_str(self.dialect.word_boundary()),
            '\\' if self.take("B") => self.out.push_str(self.dialect.non_boundary()),
            '\\' => match self.parse_escape(false)? {
                Escape::Char(c) => self.literal(c),
                Escape::Class(class) => {
                    self.out.push('[');
                    self.out.push_str(class);
                    self.out.push(']');
                }
                Escape::Raw(raw) => self.out.push_str(&raw),
            },
            '.' => self.out.push_str(r"[^\n\r\x{2028}\x{2029}]"),
            '[' => self.translate_class()?,
            '{' if !is_counted_quantifier(self.rest) => self.literal('{'),
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

    /// Translates a bracketed class after its `[`.
    fn translate_class(&mut self) -> Result<(), String> {
        let negated = self.take("^");
        if self.take("]") {
            // JavaScript's empty class matches nothing, and its negation matches everything.
            self.out.push_str(if negated { r"[\s\S]" } else { r"[^\s\S]" });
            return Ok(());
        }
        self.out.push_str(if negated { "[^" } else { "[" });
        // Whether the previous item can start a range, and whether a range is open.
        let (mut may_begin, mut open) = (false, false);
        loop {
            let c = self.next().ok_or("a [ is not closed")?;
            let item = match c {
                ']' => break,
                '-' if may_begin && !open && !self.rest.starts_with(']') => {
                    // `[a-\d]` is three items in JavaScript and an error elsewhere.
                    if is_class_escape(self.rest) {
                        Escape::Char('-')
                    } else {
                        self.out.push('-');
                        open = true;
                        continue;
                    }
                }
                '\\' if self.take("b") => Escape::Char('\u{8}'),
                '\\' => self.parse_escape(true)?,
                c => Escape::Char(c),
            };
            match item {
                Escape::Char(c) => {
                    self.literal(c);
                    may_begin = !open;
                }
                Escape::Class(class) => {
                    self.out.push_str(class);
                    may_begin = false;
                }
                Escape::Raw(raw) => {
                    self.out.push_str(&raw);
                    may_begin = false;
                }
            }
            open = false;
        }
        self.out.push(']');
        Ok(())
    }

    /// Parses an escape sequence after its backslash.
    fn parse_escape(&mut self, in_class: bool) -> Result<Escape, String> {
        let c = self.next().ok_or("it ends with a backslash")?;
        Ok(match c {
            'd' => Escape::Class("0-9"),
            'w' => Escape::Class("0-9A-Za-z_"),
            's' => Escape::Class(r"\s\x{FEFF}"),
            'D' => Escape::Class(if in_class { "[^0-9]" } else { "^0-9" }),
            'W' => Escape::Class(if in_class { "[^0-9A-Za-z_]" } else { "^0-9A-Za-z_" }),
            'S' => Escape::Class(if in_class { r"[^\s\x{FEFF}]" } else { r"^\s\x{FEFF}" }),
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            't' => Escape::Char('\t'),
            'v' => Escape::Char('\u{B}'),
            'f' => Escape::Char('\u{C}'),
            '0' => Escape::Char('\0'),
            'x' => self.hex_escape(2).map_or(Escape::Char('x'), Escape::Char),
            'u' => self.unicode_escape().map_or(Escape::Char('u'), Escape::Char),
            'c' => self.control_escape(),
            'k' if !in_class && self.rest.starts_with('<') => self.named_backreference()?,
            '1'..='9' if !in_class => {
                let mut digits = String::from(c);
                while let Some(digit) = self.rest.chars().next().filter(char::is_ascii_digit) {
                    digits.push(digit);
                    self.next();
                }
                Escape::Raw(format!(r"(?:\{digits})"))
            }
            'p' | 'P' if self.rest.starts_with('{') => {
                let end = self.rest.find('}').ok_or("a \\p{ is not closed")? + 1;
                let raw = format!("\\{c}{}", self.rest.get(..end).unwrap_or(""));
                self.rest = self.rest.get(end..).unwrap_or("");
                Escape::Raw(raw)
            }
            c => Escape::Char(c),
        })
    }

    fn control_escape(&mut self) -> Escape {
        match self.rest.chars().next().filter(char::is_ascii_alphabetic) {
            Some(letter) => {
                self.next();
                Escape::Char(char::from(letter as u8 % 32))
            }
            None => Escape::Raw(r"\\c".to_owned()),
        }
    }

    fn named_backreference(&mut self) -> Result<Escape, String> {
        let end = self.rest.find('>').ok_or("a \\k< is not closed")? + 1;
        let raw = format!("\\k{}", self.rest.get(..end).unwrap_or(""));
        self.rest = self.rest.get(end..).unwrap_or("");
        Ok(Escape::Raw(raw))
    }

    fn hex_escape(&mut self, digits: usize) -> Option<char> {
        let code = self.rest.get(..digits)?;
        let c = code.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(code, 16))?;
        self.rest = self.rest.get(digits..)?;
        Some(char::from_u32(c.ok()?).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Parses `{…}` or four digits after `\u`. A surrogate pair is one character.
    fn unicode_escape(&mut self) -> Option<char> {
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

/// Returns whether a text continues as a counted quantifier, `2}`, `2,}` or `2,3}`.
fn is_counted_quantifier(rest: &str) -> bool {
    let Some((inner, _)) = rest.split_once('}') else { return false };
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

fn is_class_escape(rest: &str) -> bool {
    rest.strip_prefix('\\').is_some_and(|rest| rest.starts_with(['d', 'D', 'w', 'W', 's', 'S', 'p', 'P']))
}

/// Returns literals that every match of a pattern contains.
fn required_literals(pattern: &str) -> Vec<String> {
    let mut found = Vec::new();
    // The pattern is parsed case-sensitively, because ignoring case turns every letter into a class.
    if let Ok(hir) = regex_syntax::ParserBuilder::new().multi_line(true).build().parse(pattern) {
        collect_literals(&hir, &mut found);
    }
    found
}

fn collect_literals(hir: &Hir, found: &mut Vec<String>) {
    match hir.kind() {
        HirKind::Literal(literal) => found.extend(String::from_utf8(literal.0.to_vec()).ok()),
        HirKind::Concat(parts) => parts.iter().for_each(|part| collect_literals(part, found)),
        HirKind::Capture(capture) => collect_literals(&capture.sub, found),
        HirKind::Repetition(repetition) if repetition.min > 0 => collect_literals(&repetition.sub, found),
        _ => {}
    }
}
