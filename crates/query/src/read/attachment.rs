//! Reads the text of an attachment: the whole, a page or another place, or lines.

use sidenote_attachments::Readable;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::FileRow;
use sidenote_index::attachment_document::{attachment_problem, attachment_text};
use sidenote_index::indexed_document::ParsedNote;
use sidenote_markdown::attachment::{find_place, shown};
use sidenote_markdown::span::Span;

use crate::read::Reads;
use crate::read::note::{ReadReply, ReadRequest, within_lines};

/// The text of an attachment that a child process reads.
#[derive(Debug)]
pub struct Document {
    /// The text in the form of [`attachment`](sidenote_markdown::attachment), and its structure.
    pub reading: ParsedNote,
    /// The hash of the file.
    pub hash: blake3::Hash,
    /// What of the file has no text, as a sentence.
    pub problem: Option<String>,
}

impl Reads<'_> {
    /// Reads an attachment that a child process reads, such as a PDF file. Returns `None` for other attachments.
    ///
    /// # Errors
    /// `Invalid` if the file has no text that can be read; `NotFound` or `Io` if the file cannot be read.
    pub fn document(&self, row: &FileRow) -> Result<Option<Document>> {
        let Some(Readable::Document(format)) = Readable::of(row.path.name()) else { return Ok(None) };
        let Some(texts) = self.core.index.attachment_texts() else { return Ok(None) };
        let bytes = self.core.read_bytes(&row.path)?;
        let Some(outcome) = texts.read(format, &bytes, &|| self.core.check_cancelled().is_err()) else {
            self.core.check_cancelled()?;
            return Err(Error::internal(format!("{} cannot be read now", row.path)));
        };
        let problem = attachment_problem(&outcome).map(|(_, what)| format!("{}: {what}", row.path));
        match outcome.as_ref() {
            Ok(text) => Ok(Some(Document {
                reading: ParsedNote::new(&row.path, attachment_text(text).into_bytes()),
                hash: blake3::hash(&bytes),
                problem,
            })),
            Err(_) => Err(Error::invalid(problem.unwrap_or_default())),
        }
    }

    /// Reads a part of an attachment that a child process reads. `part` is what a link names of it, such as `#page=37`. Returns
    /// `None` for other attachments.
    ///
    /// # Errors
    /// Those of [`Reads::document`]; `Invalid` if it has no such lines; `NotFound` if it has no such place.
    pub(super) fn read_document(
        &self,
        row: &FileRow,
        request: &ReadRequest,
        part: Option<&str>,
    ) -> Result<Option<ReadReply>> {
        let Some(Document { reading, hash, problem }) = self.document(row)? else { return Ok(None) };
        let mut span = Span::new(0, reading.text.len());
        if let Some(wanted) = request.section.as_deref().or(part) {
            let place = find_place(&reading.note, wanted);
            let place = place.and_then(|place| reading.note.section_span(&reading.text, place));
            span = place.ok_or_else(|| no_place(row, &reading, wanted))?;
        }
        let span = within_lines(&row.path, &reading, span, request.lines)?;
        Ok(Some(ReadReply {
            path: row.path.as_str().to_owned(),
            id: String::new(),
            title: reading.title.clone(),
            hash: hash.to_hex().to_string(),
            lines: reading.lines_of(span),
            text: shown(span.of(&reading.text)),
            notices: problem.into_iter().collect(),
        }))
    }
}

/// Returns the error that an attachment has no such place.
fn no_place(row: &FileRow, reading: &ParsedNote, wanted: &str) -> Error {
    let wanted = wanted.trim_start_matches('#');
    let error = Error::not_found(format!("{} has no {wanted:?}", row.path));
    match (reading.note.headings.first(), reading.note.headings.last()) {
        (Some(first), Some(last)) => error.with_hint(format!("it has {} to {}", first.text, last.text)),
        _ => error,
    }
}
