//! The codes of the problems that `check` reports, with their severities, scopes and meanings.

use serde::Serialize;

/// The severity of a problem, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It may be intended.
    Info,
    /// It may mislead.
    Warning,
    /// Something is broken or lost.
    Error,
}

impl Severity {
    /// All severities, the worst first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Info];

    /// Returns the name in replies, settings and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What a problem with a code concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A place in a note. A comment before the block can turn the code off.
    Place,
    /// A note as a whole. A comment for the whole note can turn the code off.
    Note,
    /// The index or the records. It belongs to no note.
    Vault,
}

/// A kind of problem that `check` reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProblemCode {
    /// The stable code.
    pub code: &'static str,
    /// The severity, unless the settings give another one.
    pub severity: Severity,
    /// What a problem with this code concerns.
    pub scope: Scope,
    /// A phrase that describes the problem.
    pub meaning: &'static str,
}

const fn error(code: &'static str, scope: Scope, meaning: &'static str) -> ProblemCode {
    ProblemCode { code, severity: Severity::Error, scope, meaning }
}

const fn warning(code: &'static str, scope: Scope, meaning: &'static str) -> ProblemCode {
    ProblemCode { code, severity: Severity::Warning, scope, meaning }
}

const fn info(code: &'static str, scope: Scope, meaning: &'static str) -> ProblemCode {
    ProblemCode { code, severity: Severity::Info, scope, meaning }
}

/// All codes that `check` can report, by severity and name.
pub const CODES: &[ProblemCode] = &[
    error(
        "broken-link",
        Scope::Place,
        "a link leads to no file; info where a wikilink names a note that can still be written",
    ),
    error("broken-subpath", Scope::Place, "a link names a heading, block or footnote that is not there"),
    error("conflict-markers", Scope::Place, "git left two versions of a passage in the note"),
    error(
        "damaged-before-images",
        Scope::Vault,
        "an operation cannot be undone: its before-images are damaged",
    ),
    error("damaged-journal", Scope::Vault, "lines of the journal cannot be read"),
    error("duplicate-id", Scope::Note, "two notes have one id"),
    error("invalid-utf8", Scope::Place, "the file is not UTF-8, so it is never rewritten"),
    error("json-unparsable", Scope::Note, "a canvas cannot be read"),
    error("name-clash", Scope::Note, "two names differ in case or accents alone"),
    error("unreadable", Scope::Note, "the file cannot be read"),
    error("utf-16", Scope::Note, "the file is UTF-16, which is not read"),
    error("yaml-unparsable", Scope::Note, "the frontmatter cannot be read"),
    warning(
        "attachment-unreadable",
        Scope::Vault,
        "the text of an attachment cannot be read, so that searches do not find it",
    ),
    warning("ambiguous-link", Scope::Place, "a link could mean several files"),
    warning("conflict-copy", Scope::Note, "a synchronisation program left a second version of a note"),
    warning(
        "invalid-ignore",
        Scope::Note,
        "a comment `sidenote-ignore` names an unknown code or turns nothing off",
    ),
    warning("name-not-linkable", Scope::Note, "no link can name the file"),
    warning("nested-too-deep", Scope::Place, "a passage is nested too deep to be read"),
    warning(
        "okf",
        Scope::Note,
        "a note breaks a rule of the Open Knowledge Format; reported only if this code is asked for by name",
    ),
    warning(
        "path-not-followed",
        Scope::Place,
        "a link omits the extension or begins at the root, so that it works here and not where the notes are published",
    ),
    info("index-behind", Scope::Vault, "files changed since they were indexed"),
    info("link-out-of-site", Scope::Place, "a link leads out of the pages of a book or site"),
    info("near-duplicate", Scope::Note, "two notes say about the same"),
    info("orphan", Scope::Note, "a note has no links, and none lead to it"),
    info("scanned", Scope::Vault, "pages of an attachment are pictures of text, which is not found"),
    info("wikilink-as-text", Scope::Place, "wikilinks are plain text where the notes are published"),
];

/// Returns the entry of a code.
pub(crate) fn find(code: &str) -> Option<&'static ProblemCode> {
    CODES.iter().find(|known| known.code == code)
}

/// The similarity from which an unknown code is taken for a misspelling of a known one.
const NEAR: f64 = 0.8;

/// Returns the known code that is most similar to an unknown one, if any is similar.
pub(crate) fn near_miss(unknown: &str) -> Option<&'static str> {
    let similarity = |known: &ProblemCode| strsim::jaro_winkler(known.code, &unknown.to_lowercase());
    let scored = CODES.iter().map(|known| (similarity(known), known.code));
    scored.filter(|(score, _)| *score >= NEAR).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, code)| code)
}

/// Returns a hint about an unknown code: the code that was probably meant, or all codes.
pub(crate) fn hint_of_unknown(unknown: &str) -> String {
    match near_miss(unknown) {
        Some(near) => format!("did you mean {near}?"),
        None => {
            let codes: Vec<&str> = CODES.iter().map(|known| known.code).collect();
            format!("the codes are {}", codes.join(", "))
        }
    }
}
