//! The notes with about the same text, found as a check finds them, without its other rules, and those with the same text.

use std::collections::HashMap;

use sidenote_base::error::Result;
use sidenote_base::parallel;
use sidenote_markdown::commonmark::{IgnoreRange, ignore_comments};
use sidenote_markdown::decode::decode;
use sidenote_markdown::frontmatter;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::word_sketch::WordSketch;

use crate::Upkeep;
use crate::check::across_notes::near_duplicates;
use crate::check::files::CheckedFiles;
use crate::check::problem::Problem;
use crate::check::rules::Rules;
use crate::compared_text::ComparedText;

/// The bytes of a text below which it says nothing, such as an empty note.
const SHORTEST: usize = 20;

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

/// Notes that say the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepeatedTexts {
    /// The pairs of notes with about the same text.
    pub similar: Vec<SimilarTexts>,
    /// Groups of notes, by their paths, whose whole texts are the same except for the ends of lines and of the file.
    pub equal: Vec<Vec<String>>,
}

impl SimilarTexts {
    fn of(problem: &Problem) -> Option<Self> {
        let (percent, other) = (problem.alike?, problem.related.first()?);
        Some(Self { a: other.to_string(), b: problem.path.clone(), percent })
    }
}

impl Upkeep<'_> {
    /// Finds the pairs of notes that a check would report as near duplicates, and the notes with the same text. No other
    /// rule is run.
    ///
    /// # Errors
    /// `Invalid` for settings of `check` that are invalid; `Conflict` if the call was cancelled.
    #[tracing::instrument(skip_all)]
    pub fn repeated_texts(&self) -> Result<RepeatedTexts> {
        let vault = &self.core.vault;
        let rules = Rules::new(&self.core.config)?;
        let files = CheckedFiles::on_disk(vault);
        let notes = files.visible(vault);
        // A file that cannot be read has no text; `check` reports it.
        let read = |path: &&NotePath| {
            let bytes = files.read(path).ok().flatten().unwrap_or_default();
            let text = decode(&bytes).text;
            (ComparedText::of(path, &text).sketch, text_hash(&text))
        };
        let read = parallel::map(
            &notes,
            16,
            || (),
            |(), path| {
                if self.core.check_cancelled().is_ok() { read(path) } else { (WordSketch::default(), None) }
            },
        );
        self.core.check_cancelled()?;
        let mut groups: HashMap<u128, Vec<String>> = HashMap::new();
        for (path, (_, hash)) in notes.iter().zip(&read) {
            if let Some(hash) = hash {
                groups.entry(*hash).or_default().push(path.to_string());
            }
        }
        let mut equal: Vec<Vec<String>> = groups.into_values().filter(|paths| paths.len() > 1).collect();
        equal.sort();
        let sketches: Vec<(&NotePath, &WordSketch)> =
            notes.iter().copied().zip(&read).map(|(path, (sketch, _))| (path, sketch)).collect();
        let mut problems = near_duplicates(&sketches);
        problems.retain_mut(|problem| rules.admit(problem));
        problems.retain(|problem| {
            let path = NotePath::from_disk(&problem.path);
            let bytes = path.and_then(|path| files.read(&path).ok().flatten()).unwrap_or_default();
            !is_ignored(&decode(&bytes).text, problem.code)
        });
        problems.sort();
        Ok(RepeatedTexts { similar: problems.iter().filter_map(SimilarTexts::of).collect(), equal })
    }
}

/// Returns a hash of a text that does not depend on the ends of its lines and of the file. `None` for a text that is too
/// short to say anything twice.
fn text_hash(text: &str) -> Option<u128> {
    let text = text.trim_end();
    if text.len() < SHORTEST {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    for line in text.lines() {
        hasher.update(line.as_bytes()).update(b"\n");
    }
    let hash: [u8; 32] = hasher.finalize().into();
    Some(hash.iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

/// Returns whether a comment in a note turns a code off for the whole note.
fn is_ignored(text: &str, code: &str) -> bool {
    let comments = ignore_comments(text, frontmatter::read(text).1);
    let mut of_file = comments.iter().filter(|comment| comment.range == IgnoreRange::File);
    of_file.any(|comment| comment.codes.iter().any(|(own, _)| own == code))
}
