//! The parser of Markdown notes: frontmatter, then body, then unlinked references.
//!
//! It never fails. What cannot be read becomes a [`ParseProblem`] of the note.

use crate::line::Lines;
use crate::note::{Note, ParseProblem};
use crate::{commonmark as markdown, frontmatter, reference_search};

impl Note {
    /// Parses a Markdown note: its frontmatter, then its body (docs/spec/obsidian.md 2, 3.6, 3.7, 5–7).
    pub fn parse(text: &str) -> Self {
        Self::parse_with_work(text).0
    }

    /// Parses a note as [`Note::parse`] does, and also returns the number of bytes and runs that the inline scanner
    /// examines ahead of its position. The number grows linearly with the text.
    pub fn parse_with_work(text: &str) -> (Self, usize) {
        let (frontmatter, body_start) = frontmatter::read(text);
        let lines = Lines::new(text);
        let mut note = Self { body_start, ..Self::default() };
        if let Some(frontmatter) = &frontmatter {
            note.tags.clone_from(&frontmatter.tags);
            note.links.clone_from(&frontmatter.links);
            for link in &mut note.links {
                link.line = lines.of(link.span.start);
            }
            note.problems.extend(frontmatter.error.as_ref().map(|reason| ParseProblem {
                code: "yaml-unparsable",
                message: reason.clone(),
                span: Some(frontmatter.span),
            }));
        }
        note.frontmatter = frontmatter;
        let reading = markdown::read(text, body_start, &lines, &mut note);
        note.mentions = reference_search::in_note(text, &note, &reading.html, &lines);
        (note, reading.work)
    }
}
