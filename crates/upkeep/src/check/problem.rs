//! A problem that `check` reports, with its place, its fingerprint and the edits that would fix it.

use std::cell::RefCell;

use serde::Serialize;
use sidenote_markdown::line_column::{Locator, Region};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::span::Span;

use crate::check::codes::{Scope, Severity, find};

/// The length of a fingerprint in hexadecimal digits.
const FINGERPRINT_LENGTH: usize = 32;

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The path of the note; the index folder for problems of the index.
    pub path: String,
    /// The line, counted from 1; 0 for a problem of the whole file.
    pub line: usize,
    /// The column, counted from 1 in Unicode code points; 0 for a problem of the whole file.
    pub column: usize,
    /// The line of the end, counted from 1; 0 for a problem of the whole file.
    pub end_line: usize,
    /// The column after the last character, counted from 1 in Unicode code points; 0 for a problem of the whole file.
    pub end_column: usize,
    /// A stable code; `check --help` lists all.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// A sentence for a person.
    pub message: String,
    /// What the link names: its path and subpath as written, decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// A hash of the code, the target and the text of the line. It stays the same when the line moves.
    pub fingerprint: String,
    /// Edits that certainly fix the problem, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<Fix>,
    /// Other files that the problem depends on, such as the note that a link leads to.
    #[serde(skip)]
    pub(super) related: Vec<NotePath>,
    /// The share of word sequences that the note has in common with the first of them, in percent.
    #[serde(skip)]
    pub(super) alike: Option<u8>,
}

/// A change of the note that fixes a problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fix {
    /// A phrase in the imperative that says what the edits do.
    pub description: String,
    /// The edits, in order and apart from each other.
    pub edits: Vec<FixEdit>,
}

/// The replacement of a part of the note by a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FixEdit {
    /// The bytes to replace.
    pub span: Span,
    /// The same as lines and columns.
    #[serde(flatten)]
    pub region: Region,
    /// The new text.
    pub text: String,
}

impl Fix {
    /// Creates a fix of one edit.
    pub(super) fn replace(description: String, place: (Span, Region), text: String) -> Self {
        let (span, region) = place;
        Self { description, edits: vec![FixEdit { span, region, text }] }
    }
}

/// The place of a problem in a note, with the problem's fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    region: Region,
    fingerprint: String,
}

impl Place {
    /// Returns the place of a span, for a problem with this code and target.
    pub(super) fn new(lines: &LineTexts<'_>, span: Span, code: &str, target: &str) -> Self {
        Self { region: lines.locator.region(span), fingerprint: lines.fingerprint(code, target, span.start) }
    }
}

/// The lines of a note, in the form of fingerprints.
#[derive(Debug)]
pub(super) struct LineTexts<'t> {
    /// The lines and columns of the note.
    pub(super) locator: Locator<'t>,
    /// The last long line, by its number, and the hash that replaces it. A long line can have very many problems.
    long: RefCell<(usize, String)>,
}

impl<'t> LineTexts<'t> {
    /// The longest line, in bytes, that is not replaced by its hash.
    const LONGEST: usize = 8 << 10;

    /// Finds the lines of a note.
    pub(super) fn new(text: &'t str) -> Self {
        Self { locator: Locator::new(text), long: RefCell::default() }
    }

    /// Returns the fingerprint of a problem with this code and target at an offset.
    fn fingerprint(&self, code: &str, target: &str, offset: usize) -> String {
        let line = self.locator.line(offset);
        if self.long.borrow().0 != line {
            let text = self.locator.line_text(line);
            if text.len() <= Self::LONGEST {
                return fingerprint(code, target, text);
            }
            *self.long.borrow_mut() = (line, blake3::hash(text.as_bytes()).to_hex().to_string());
        }
        fingerprint(code, target, &self.long.borrow().1)
    }
}

/// Returns the hash of a problem's code, target and line.
fn fingerprint(code: &str, target: &str, line: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [code, target, line] {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    hasher.finalize().to_hex().chars().take(FINGERPRINT_LENGTH).collect()
}

/// Returns the severity of a code.
fn severity_of(code: &str) -> Severity {
    let known = find(code);
    debug_assert!(known.is_some(), "{code} is missing in CODES");
    known.map_or(Severity::Error, |known| known.severity)
}

impl Problem {
    /// Gives the problem another severity than that of its code.
    pub(super) fn of_severity(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// Creates a problem of a whole file, or of the index or the records.
    pub(super) fn of_file(path: impl ToString, code: &'static str, message: String) -> Self {
        let place = Place { region: Region::default(), fingerprint: fingerprint(code, "", "") };
        Self::at(path, &place, code, message)
    }

    /// Creates a problem of a place in a note.
    pub(super) fn at(path: impl ToString, place: &Place, code: &'static str, message: String) -> Self {
        let Region { line, column, end_line, end_column } = place.region;
        Self {
            path: path.to_string(),
            line,
            column,
            end_line,
            end_column,
            code,
            severity: severity_of(code),
            message,
            target: None,
            fingerprint: place.fingerprint.clone(),
            fixes: Vec::new(),
            related: Vec::new(),
            alike: None,
        }
    }

    /// Sets what the link names.
    #[must_use]
    pub(super) fn with_target(mut self, target: String) -> Self {
        self.target = Some(target);
        self
    }

    /// Adds files that the problem depends on.
    #[must_use]
    pub(super) fn related_to(mut self, paths: impl IntoIterator<Item = NotePath>) -> Self {
        self.related.extend(paths);
        self
    }

    /// Sets the share of word sequences that the note has in common with another one, in percent.
    #[must_use]
    pub(super) fn alike(mut self, percent: u8) -> Self {
        self.alike = Some(percent);
        self
    }

    /// Adds a fix, if there is one.
    #[must_use]
    pub(super) fn with_fix(mut self, fix: Option<Fix>) -> Self {
        self.fixes.extend(fix);
        self
    }

    /// Returns the place of the problem in its note.
    pub fn region(&self) -> Region {
        let Self { line, column, end_line, end_column, .. } = *self;
        Region { line, column, end_line, end_column }
    }

    /// Returns whether the problem is one of the index or the records, whose path is not a path of a note.
    pub fn is_of_vault(&self) -> bool {
        find(self.code).is_some_and(|known| known.scope == Scope::Vault)
    }
}
