//! Three-way merge of a note (docs/spec/git.md 4): properties by key, the body by lines, links that one side retargeted.
//!
//! The merge of lines is passed in as a value, because git's own is used where git is installed. Before it runs, the
//! decisions of the rules are written into all three versions, so that it sees no difference there.

#[cfg(test)]
mod tests;

mod ancestor;
mod preserve;
mod properties;
mod regions;
mod retarget;

use sidenote_base::error::Result;
use sidenote_markdown::note::Note;
use sidenote_markdown::span::Span;

pub use self::ancestor::Lineage;
pub use self::preserve::has_every_line;
pub use self::regions::{Markers, count_changed_lines, merge_lines};

/// The three versions of a text that is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions<'t> {
    /// The common ancestor; empty if there is none.
    pub base: &'t str,
    /// The version of the side that merges.
    pub ours: &'t str,
    /// The version of the side that is merged.
    pub theirs: &'t str,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The text, with both versions between markers where they conflict.
    pub text: String,
    /// The number of conflicts in it.
    pub conflicts: usize,
}

/// A merge of texts line by line.
pub type LineMerge<'f> = dyn Fn(Versions<'_>) -> Result<Merged> + 'f;

/// The three versions with the decisions of the rules written into each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PreparedVersions {
    base: String,
    ours: String,
    theirs: String,
}

/// The three versions with the notes parsed from them.
struct ParsedVersions<'t> {
    texts: Versions<'t>,
    base: Note,
    ours: Note,
    theirs: Note,
}

/// Merges two versions of a note that have a common ancestor.
///
/// The result has no more conflicts than `line_merge` gives for the same versions. It has every link of either side and
/// every line of either side, apart from rewritten links and from properties that were merged by their values. Where
/// that cannot be shown, the result of `line_merge` is returned as it is.
///
/// # Errors
/// The errors of `line_merge`.
pub fn merge(texts: Versions<'_>, line_merge: &LineMerge<'_>) -> Result<Merged> {
    if texts.ours == texts.theirs || texts.theirs == texts.base {
        return Ok(Merged { text: texts.ours.to_owned(), conflicts: 0 });
    }
    if texts.ours == texts.base {
        return Ok(Merged { text: texts.theirs.to_owned(), conflicts: 0 });
    }
    let parsed = ParsedVersions {
        texts,
        base: Note::parse(texts.base),
        ours: Note::parse(texts.ours),
        theirs: Note::parse(texts.theirs),
    };
    let Some(prepared) = parsed.prepare() else {
        return line_merge(texts);
    };
    let merged = line_merge(prepared.versions())?;
    if merged.conflicts > 0 {
        let plain = line_merge(texts)?;
        if plain.conflicts < merged.conflicts {
            return Ok(plain);
        }
    }
    if preserve::is_complete(&parsed, &merged) { Ok(merged) } else { line_merge(texts) }
}

impl PreparedVersions {
    fn versions(&self) -> Versions<'_> {
        Versions { base: &self.base, ours: &self.ours, theirs: &self.theirs }
    }
}

impl ParsedVersions<'_> {
    /// Writes the decisions of the rules into the three versions. Returns `None` if there are none.
    fn prepare(&self) -> Option<PreparedVersions> {
        let bodies = retarget::resolve_bodies(self);
        let heads = properties::resolve(self);
        if bodies.is_none() && heads.is_none() {
            return None;
        }
        let texts = self.texts;
        let split = |text: &str, at: usize| {
            let at = at.min(text.len());
            let (head, body) = text.split_at_checked(at).unwrap_or(("", text));
            (head.to_owned(), body.to_owned())
        };
        let sides = [
            split(texts.base, self.base.body_start),
            split(texts.ours, self.ours.body_start),
            split(texts.theirs, self.theirs.body_start),
        ];
        let heads = heads.unwrap_or_else(|| sides.clone().map(|(head, _)| head));
        let bodies = bodies.unwrap_or_else(|| sides.map(|(_, body)| body));
        let [base, ours, theirs] = heads;
        let [base_body, our_body, their_body] = bodies;
        Some(PreparedVersions {
            base: base + &base_body,
            ours: ours + &our_body,
            theirs: theirs + &their_body,
        })
    }
}

/// Returns the version that a three-way merge takes if one side is unchanged or both are alike.
fn unchanged_side<T: PartialEq>(base: T, ours: T, theirs: T) -> Option<T> {
    if ours == theirs || theirs == base {
        Some(ours)
    } else if ours == base {
        Some(theirs)
    } else {
        None
    }
}

/// Returns the first line of the first conflict that git left in a text: the line of its opening marker, without the line
/// end. Returns `None` if there is none.
pub fn first_conflict(text: &str) -> Option<Span> {
    let (mut open, mut at) = (None, 0);
    for line in text.split_inclusive('\n') {
        let span = Span::new(at, at + line.trim_end_matches(['\r', '\n']).len());
        at += line.len();
        if line.starts_with("<<<<<<< ") {
            open = Some(span);
        } else if line.starts_with(">>>>>>> ") && open.is_some() {
            return open;
        }
    }
    None
}
