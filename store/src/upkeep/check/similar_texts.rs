//! The pairs of notes with about the same text, found as a check finds them, without its other rules.

use crate::upkeep::Upkeep;
use crate::upkeep::check::compare::near_duplicates;
use crate::upkeep::check::files::CheckedFiles;
use crate::upkeep::check::problem::Problem;
use crate::upkeep::check::rules::Rules;
use sidenote_foundation::error::Result;
use sidenote_foundation::parallel;
use sidenote_foundation::text::decode::decode;
use sidenote_foundation::text::frontmatter;
use sidenote_foundation::text::markdown::{IgnoreRange, ignore_comments};
use sidenote_foundation::text::path::NotePath;
use sidenote_foundation::text::rewrite::parse;
use sidenote_foundation::text::word_sketch::WordSketch;

/// Two notes with about the same text, as a problem `near-duplicate` names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimilarTexts {
    /// The path of one note.
    pub a: String,
    /// The path of the other one.
    pub b: String,
    /// The share of word sequences that they have in common, in percent.
    pub percent: u8,
}

impl SimilarTexts {
    fn of(problem: &Problem) -> Option<Self> {
        let (percent, other) = (problem.alike?, problem.related.first()?);
        Some(Self { a: other.to_string(), b: problem.path.clone(), percent })
    }
}

impl Upkeep<'_> {
    /// Finds the pairs of notes that a check would report as near duplicates. No other rule is run.
    ///
    /// # Errors
    /// `Invalid` for settings of `check` that are invalid; `Conflict` if the call was cancelled.
    #[tracing::instrument(skip_all)]
    pub fn similar_texts(&self) -> Result<Vec<SimilarTexts>> {
        let vault = &self.core.vault;
        let rules = Rules::new(&self.core.config)?;
        let files = CheckedFiles::on_disk(vault);
        let notes = files.visible(vault);
        // A file that cannot be read has no text; `check` reports it.
        let sketch = |path: &&NotePath| {
            let bytes = files.read(path).ok().flatten().unwrap_or_default();
            sketch_of(path, &bytes)
        };
        let sketches = parallel::map(
            &notes,
            16,
            || (),
            |(), path| if self.core.check_cancelled().is_ok() { sketch(path) } else { WordSketch::default() },
        );
        self.core.check_cancelled()?;
        let sketches: Vec<(&NotePath, &WordSketch)> = notes.iter().copied().zip(&sketches).collect();
        let mut problems = near_duplicates(&sketches);
        problems.retain_mut(|problem| rules.admit(problem));
        problems.retain(|problem| {
            let path = NotePath::from_disk(&problem.path);
            let bytes = path.and_then(|path| files.read(&path).ok().flatten()).unwrap_or_default();
            !is_ignored(&decode(&bytes).text, problem.code)
        });
        problems.sort();
        Ok(problems.iter().filter_map(SimilarTexts::of).collect())
    }
}

fn sketch_of(path: &NotePath, bytes: &[u8]) -> WordSketch {
    let text = decode(bytes).text;
    let start = if path.is_canvas() { parse(path, &text).body_start } else { frontmatter::read(&text).1 };
    WordSketch::of_body(text.get(start..).unwrap_or(""))
}

/// Returns whether a comment in a note turns a code off for the whole note.
fn is_ignored(text: &str, code: &str) -> bool {
    let comments = ignore_comments(text, frontmatter::read(text).1);
    let mut of_file = comments.iter().filter(|comment| comment.range == IgnoreRange::File);
    of_file.any(|comment| comment.codes.iter().any(|(own, _)| own == code))
}
