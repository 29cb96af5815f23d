//! Looks up terms in the dictionaries of segments. To find one term, tantivy decodes the values of all terms of a
//! block, about 800. This module decodes only the values of the terms that are looked up.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;

use sidenote_base::error::{Error, Result};
use tantivy::directory::CompositeFile;
use tantivy::index::SegmentComponent;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::{Searcher, SegmentReader, TantivyError};
use tantivy_sstable::value::{ValueReader, ValueWriter};
use tantivy_sstable::{Dictionary, SSTable};

use super::failed;

/// The number at the end of a dictionary that tells its format from others that tantivy has (`DictionaryType::SSTable`).
const SORTED_TABLE: [u8; 4] = 2_u32.to_le_bytes();
/// The bit that marks the last byte of a number (tantivy's `VInt`); the other bits are its digits, the low ones first.
const LAST_BYTE: u8 = 0x80;
/// How many bytes are looked through at once for last bytes of numbers.
const CHUNK: usize = 32;

/// The term dictionary of one field of a segment.
pub(super) type SortedTerms = Dictionary<LazyTerms>;

/// The term dictionaries of the segments of one snapshot, each opened on first use.
pub(super) struct TermDictionaries {
    segments: Vec<Vec<OnceLock<SortedTerms>>>,
}

impl TermDictionaries {
    /// Creates the dictionaries of a snapshot. None is opened yet.
    pub(super) fn new(searcher: &Searcher) -> Self {
        let fields = searcher.schema().num_fields();
        let closed = |_: &SegmentReader| (0..fields).map(|_| OnceLock::new()).collect();
        Self { segments: searcher.segment_readers().iter().map(closed).collect() }
    }

    /// Returns the dictionary of a field in a segment, which is `reader` and has the index `at`; `None` if the segment has no
    /// terms of the field.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the dictionary cannot be opened.
    pub(super) fn of(&self, at: usize, reader: &SegmentReader, field: Field) -> Result<Option<&SortedTerms>> {
        let place = self.segments.get(at).and_then(|fields| fields.get(field.field_id() as usize));
        let Some(place) = place else { return Ok(None) };
        if let Some(opened) = place.get() {
            return Ok(Some(opened));
        }
        let Some(opened) = open(reader, field)? else { return Ok(None) };
        // Another thread may have opened the same.
        Ok(Some(place.get_or_init(|| opened)))
    }

    /// Finds a term of a field in a segment.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the dictionary cannot be read.
    pub(super) fn find(
        &self,
        at: usize,
        reader: &SegmentReader,
        field: Field,
        term: &str,
    ) -> Result<Option<TermInfo>> {
        let Some(dictionary) = self.of(at, reader, field)? else { return Ok(None) };
        let found = dictionary.get(term).map_err(unreadable)?;
        found.map(|values| values.term_info()).transpose()
    }

    /// Visits the terms of a field in a segment that begin with `prefix`, in order, until `visit` returns `false`.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the dictionary cannot be read, and the errors of `visit`.
    pub(super) fn for_each_with_prefix(
        &self,
        at: usize,
        reader: &SegmentReader,
        field: Field,
        prefix: &str,
        mut visit: impl FnMut(&str, &TermValues) -> Result<bool>,
    ) -> Result<()> {
        let Some(dictionary) = self.of(at, reader, field)? else { return Ok(()) };
        let mut stream = dictionary.range().ge(prefix.as_bytes()).into_stream().map_err(unreadable)?;
        while stream.advance() && stream.key().starts_with(prefix.as_bytes()) {
            if let Ok(term) = std::str::from_utf8(stream.key())
                && !visit(term, stream.value())?
            {
                break;
            }
        }
        Ok(())
    }
}

/// Returns the error of a dictionary that cannot be read.
pub(super) fn unreadable(error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::InvalidData { damaged() } else { failed("read")(error.into()) }
}

fn damaged() -> Error {
    Error::corrupt("the full-text index has a damaged dictionary").with_hints(
        "run: sidenote index --rebuild (notes and vectors are kept)",
        "ask the user to rebuild the index",
    )
}

/// Opens the dictionary of a field.
fn open(reader: &SegmentReader, field: Field) -> Result<Option<SortedTerms>> {
    let terms = reader.open_read(SegmentComponent::Terms);
    let terms = terms.map_err(|error| failed("read")(TantivyError::OpenReadError(error)))?;
    let fields = CompositeFile::open(&terms).map_err(unreadable)?;
    let Some(file) = fields.open_read(field) else {
        let postings = reader.open_read(SegmentComponent::Postings);
        let postings = postings.map_err(|error| failed("read")(TantivyError::OpenReadError(error)))?;
        let has_postings = CompositeFile::open(&postings).map_err(unreadable)?.open_read(field).is_some();
        return if has_postings { Err(damaged()) } else { Ok(None) };
    };
    let (dictionary, format) = file.split_from_end(SORTED_TABLE.len());
    if format.read_bytes().map_err(unreadable)?.as_slice() != SORTED_TABLE {
        return Err(damaged());
    }
    Dictionary::open(dictionary).map(Some).map_err(unreadable)
}

/// The format of tantivy's dictionaries, read by [`TermValues`].
pub(super) struct LazyTerms;

impl SSTable for LazyTerms {
    type Value = TermValues;
    type ValueReader = TermValues;
    type ValueWriter = TermValuesWriter;
}

/// What a block of a dictionary says of its terms, and the term that is asked for.
///
/// The format is that of tantivy's `TermInfoValueWriter`: the number of terms, where the postings and the positions of the first
/// one begin; then for each term the number of its documents, and the bytes of its postings and of its positions.
#[derive(Debug, Clone, Default)]
pub(super) struct TermValues {
    bytes: Vec<u8>,
    /// The index of the term that is asked for.
    asked: Cell<usize>,
    /// The place of the first term, and that of the term that was decoded last.
    first: TermPlace,
    last: Cell<TermPlace>,
}

/// Where the values of a term are, and what those before it add up to.
#[derive(Debug, Clone, Copy, Default)]
struct TermPlace {
    /// The index of the term in its block.
    term: usize,
    /// The offset of its values.
    offset: usize,
    postings: u64,
    positions: u64,
}

impl TermValues {
    /// Decodes the values of the term that is asked for.
    ///
    /// # Errors
    /// Returns `Corrupt` if they are not there.
    pub(super) fn term_info(&self) -> Result<TermInfo> {
        self.decode().ok_or_else(damaged)
    }

    fn decode(&self) -> Option<TermInfo> {
        let asked = self.asked.get();
        // The terms of a range are asked for one after the other.
        let mut place = Some(self.last.get()).filter(|last| last.term <= asked).unwrap_or(self.first);
        let mut rest = self.bytes.get(place.offset..)?;
        while place.term < asked {
            skip_number(&mut rest)?;
            place.postings = place.postings.checked_add(take_number(&mut rest)?)?;
            place.positions = place.positions.checked_add(take_number(&mut rest)?)?;
            place.term += 1;
        }
        place.offset = self.bytes.len() - rest.len();
        self.last.set(place);
        let documents = u32::try_from(take_number(&mut rest)?).ok()?;
        let range = |start: u64, length: u64| -> Option<std::ops::Range<usize>> {
            Some(usize::try_from(start).ok()?..usize::try_from(start.checked_add(length)?).ok()?)
        };
        Some(TermInfo {
            doc_freq: documents,
            postings_range: range(place.postings, take_number(&mut rest)?)?,
            positions_range: range(place.positions, take_number(&mut rest)?)?,
        })
    }

    /// Reads the head of a block, and returns how many bytes its values take.
    fn read_head(&mut self, block: &[u8]) -> Option<usize> {
        let mut rest = block;
        let terms = usize::try_from(take_number(&mut rest)?).ok()?;
        let (postings, positions) = (take_number(&mut rest)?, take_number(&mut rest)?);
        let offset = block.len() - rest.len();
        let end = offset + numbers_end(rest, terms.checked_mul(3)?)?;
        self.first = TermPlace { term: 0, offset, postings, positions };
        Some(end)
    }
}

impl ValueReader for TermValues {
    type Value = Self;

    fn value(&self, term: usize) -> &Self {
        self.asked.set(term);
        self
    }

    fn load(&mut self, block: &[u8]) -> io::Result<usize> {
        let end = self.read_head(block).ok_or(io::ErrorKind::InvalidData)?;
        self.last.set(self.first);
        self.bytes.clear();
        self.bytes.extend_from_slice(block.get(..end).unwrap_or_default());
        Ok(end)
    }
}

/// Takes a number off the front of some bytes.
#[inline]
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & !LAST_BYTE).checked_shl(shift)?;
        if byte & LAST_BYTE != 0 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Drops a number off the front of some bytes.
#[inline]
fn skip_number(bytes: &mut &[u8]) -> Option<()> {
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if byte & LAST_BYTE != 0 {
            return Some(());
        }
    }
}

/// Returns the offset behind the first `count` numbers.
fn numbers_end(bytes: &[u8], mut count: usize) -> Option<usize> {
    let mut offset = 0;
    for chunk in bytes.chunks_exact(CHUNK) {
        let ends = usize::from(chunk.iter().map(|byte| byte >> 7).sum::<u8>());
        if ends >= count {
            break;
        }
        count -= ends;
        offset += CHUNK;
    }
    let mut rest = bytes.get(offset..)?;
    for _ in 0..count {
        skip_number(&mut rest)?;
    }
    Some(bytes.len() - rest.len())
}

/// Writes the values of a block as [`TermValues`] reads them. [`SSTable`] asks for a writer; the program writes no dictionary
/// with it.
#[derive(Debug, Default)]
pub(super) struct TermValuesWriter {
    terms: Vec<TermInfo>,
}

impl ValueWriter for TermValuesWriter {
    type Value = TermValues;

    fn write(&mut self, values: &TermValues) {
        self.terms.extend(values.decode());
    }

    fn serialize_block(&self, block: &mut Vec<u8>) {
        put_number(block, self.terms.len() as u64);
        let Some(first) = self.terms.first() else { return };
        put_number(block, first.postings_range.start as u64);
        put_number(block, first.positions_range.start as u64);
        for term in &self.terms {
            put_number(block, u64::from(term.doc_freq));
            put_number(block, term.postings_range.len() as u64);
            put_number(block, term.positions_range.len() as u64);
        }
    }

    fn clear(&mut self) {
        self.terms.clear();
    }
}

/// Appends a number.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= u64::from(LAST_BYTE) {
        bytes.push((number & u64::from(LAST_BYTE - 1)) as u8);
        number >>= 7;
    }
    bytes.push(number as u8 | LAST_BYTE);
}
