//! Owns the first load of the full-text index: the terms of very many notes become postings at once, in segments that are
//! written through tantivy's own serializers. The terms of a note are looked for together, once for all fields, and its
//! postings lie behind those of the note before it; only when a segment is written are they put in the order of terms.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use tantivy::directory::TerminatingWrite as _;
use tantivy::fastfield::FastFieldsWriter;
use tantivy::fieldnorm::{FieldNormReader, FieldNormsSerializer, FieldNormsWriter};
use tantivy::index::{Segment, SegmentComponent};
use tantivy::postings::InvertedIndexSerializer;
use tantivy::schema::{Field, IndexRecordOption, Schema};
use tantivy::store::StoreWriter;
use tantivy::{DocId, Index, TantivyError};

use crate::index::bm25::Fields;
use crate::index::bm25::analysis::{Analysed, FIELDS, Listing};
use crate::index::bm25::posting_buffer::{MOST_NOTES, PostingBuffer};
use crate::index::bm25::term_dictionary::{TermDictionary, TermId};
use crate::index::file_set::FileId;

/// So many postings become a segment: each takes up some 2 bytes, and 4 more of those of the two fields that are sorted and
/// written at a time.
const MOST_POSTINGS: usize = 16 << 20;
/// So many bytes of terms do.
const MOST_BYTES: usize = 64 << 20;
/// The most notes that are handed over at a time: handing over each alone would wake threads all the time.
const GROUP: usize = 32;
/// A group of notes whose terms take up this many bytes is handed over before it is full.
const GROUP_BYTES: usize = 256 << 10;
/// Groups that wait for the thread that inverts them.
const WAITING: usize = 4;
/// With lengths at hand tantivy works out for each term what its own ranking could skip; nothing here ranks by that.
const NO_NORMS: Option<FieldNormReader> = None;

/// A thread that turns notes into segments.
///
/// Where it is dropped before [`BulkInverter::finish`], it is stopped, and what it wrote is named by no commit.
#[derive(Debug)]
pub(super) struct BulkInverter {
    group: Vec<Analysed>,
    group_bytes: usize,
    /// None once all are handed over.
    groups: Option<SyncSender<Vec<Analysed>>>,
    thread: Option<JoinHandle<tantivy::Result<Vec<Segment>>>>,
    stop: Arc<AtomicBool>,
}

impl BulkInverter {
    /// Starts the thread.
    pub(super) fn start(index: &Index, fields: Fields) -> std::io::Result<Self> {
        let (groups, receiver) = sync_channel(WAITING);
        let stop = Arc::new(AtomicBool::new(false));
        let (index, stopped) = (index.clone(), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("sidenote-invert".to_owned())
            .spawn(move || invert(&index, &fields, &receiver, &stopped))?;
        Ok(Self { group: Vec::new(), group_bytes: 0, groups: Some(groups), thread: Some(thread), stop })
    }

    /// Hands over a note; `false` where the thread is gone, and [`BulkInverter::finish`] says why.
    pub(super) fn add(&mut self, note: Analysed) -> bool {
        self.group_bytes += note.bytes();
        self.group.push(note);
        self.group.len() < GROUP && self.group_bytes < GROUP_BYTES || self.hand_over()
    }

    fn hand_over(&mut self) -> bool {
        self.group_bytes = 0;
        let group = mem::take(&mut self.group);
        self.groups.as_ref().is_some_and(|groups| groups.send(group).is_ok())
    }

    /// Waits for all notes to be written; gives their segments, which no commit names yet.
    pub(super) fn finish(mut self) -> tantivy::Result<Vec<Segment>> {
        // A thread that is gone says why when it is joined.
        self.hand_over();
        self.groups = None;
        let done = self.thread.take().map(JoinHandle::join);
        let panicked = || Err(TantivyError::ErrorInThread("inverting notes panicked".to_owned()));
        done.and_then(std::result::Result::ok).unwrap_or_else(panicked)
    }
}

impl Drop for BulkInverter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.groups = None;
        if self.thread.take().map(JoinHandle::join).is_some_and(|joined| joined.is_err()) {
            tracing::error!("inverting notes panicked");
        }
    }
}

fn invert(
    index: &Index,
    fields: &Fields,
    groups: &Receiver<Vec<Analysed>>,
    stop: &AtomicBool,
) -> tantivy::Result<Vec<Segment>> {
    let mut segments = Vec::new();
    let mut batch = Batch::new(index, fields);
    for group in groups {
        group.iter().for_each(|note| batch.add(note));
        if batch.is_full() {
            let full = mem::replace(&mut batch, Batch::new(index, fields));
            segments.push(full.write(index, fields, stop)?);
        }
    }
    if !batch.files.is_empty() {
        segments.push(batch.write(index, fields, stop)?);
    }
    Ok(segments)
}

fn check(stop: &AtomicBool) -> tantivy::Result<()> {
    if stop.load(Ordering::Relaxed) {
        return Err(TantivyError::ErrorInThread("inverting notes was stopped".to_owned()));
    }
    Ok(())
}

/// The notes of one segment.
struct Batch {
    terms: TermDictionary,
    /// The number of each note.
    files: Vec<FileId>,
    columns: [PostingBuffer; FIELDS],
    norms: FieldNormsWriter,
    /// The terms of the note at hand.
    ids: Vec<TermId>,
    fields: [Field; FIELDS],
    postings: usize,
}

impl Batch {
    fn new(index: &Index, fields: &Fields) -> Self {
        Self {
            terms: TermDictionary::default(),
            files: Vec::new(),
            columns: Default::default(),
            norms: FieldNormsWriter::for_schema(&index.schema()),
            ids: Vec::new(),
            fields: fields.listed(),
            postings: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.postings >= MOST_POSTINGS
            || self.terms.bytes() >= MOST_BYTES
            || self.files.len() + GROUP > MOST_NOTES
    }

    fn add(&mut self, note: &Analysed) {
        let doc = self.files.len() as DocId;
        self.files.push(note.file);
        self.terms.number(note.terms().map(str::as_bytes), &mut self.ids);
        for (&id, counts) in self.ids.iter().zip(note.counts()) {
            counts.for_each(|(field, count)| self.columns[field].add(id, count));
        }
        for (column, field) in self.columns.iter_mut().zip(self.fields) {
            let (postings, tokens) = column.end();
            if postings > 0 {
                self.norms.record(doc, field, u32::try_from(tokens).unwrap_or(u32::MAX));
            }
            self.postings += postings as usize;
        }
    }

    /// Writes a segment of all notes; an error where it is stopped.
    fn write(mut self, index: &Index, fields: &Fields, stop: &AtomicBool) -> tantivy::Result<Segment> {
        check(stop)?;
        let segment = index.new_segment().with_max_doc(self.files.len() as DocId);
        (0..).zip(&self.files).for_each(|(doc, _)| self.norms.record(doc, fields.file, 1));
        self.norms.fill_up_to_max_doc(self.files.len() as DocId);
        let norms = FieldNormsSerializer::from_write(segment.open_write(SegmentComponent::FieldNorms)?)?;
        self.norms.serialize(norms, None)?;
        self.write_numbers(&segment, fields)?;
        let mut postings = InvertedIndexSerializer::open(&segment)?;
        let mut by_number: Vec<(FileId, DocId)> = self.files.iter().copied().zip(0..).collect();
        by_number.sort_unstable();
        let mut field = postings.new_field(fields.file, by_number.len() as u64, NO_NORMS)?;
        for (file, doc) in by_number {
            field.new_term_without_freq(&(file as u64).to_be_bytes())?;
            field.write_doc(doc, 0, &[]);
            field.close_term()?;
        }
        field.close()?;
        self.write_terms(&segment.schema(), &mut postings, stop)?;
        postings.close()?;
        Ok(segment)
    }

    /// Writes the terms of all fields with their postings.
    fn write_terms(
        self,
        schema: &Schema,
        postings: &mut InvertedIndexSerializer,
        stop: &AtomicBool,
    ) -> tantivy::Result<()> {
        let Self { terms, columns, fields, .. } = self;
        let terms = terms.in_order();
        std::thread::scope(|scope| {
            let (sender, sorted) = sync_channel(0);
            let ranks = &terms.ranks;
            // While one is written the next is sorted.
            scope.spawn(move || columns.into_iter().try_for_each(|column| sender.send(column.sorted(ranks))));
            for (field, sorted) in fields.into_iter().zip(sorted).filter(|(_, sorted)| !sorted.is_empty()) {
                check(stop)?;
                let option = schema.get_field_entry(field).field_type().index_record_option();
                let counts = option.is_some_and(IndexRecordOption::has_freq);
                let mut field = postings.new_field(field, sorted.tokens, NO_NORMS)?;
                for (term, docs) in terms.terms().zip(sorted.by_rank()).filter(|(_, docs)| docs.len() > 0) {
                    field.new_term(term, if counts { docs.len() as u32 } else { 0 }, counts)?;
                    for (doc, count) in docs {
                        field.write_doc(doc, if counts { count } else { 0 }, &[]);
                    }
                    field.close_term()?;
                }
                field.close()?;
            }
            Ok(())
        })
    }

    /// Writes down the number of each note, and that nothing else of it is kept.
    fn write_numbers(&self, segment: &Segment, fields: &Fields) -> tantivy::Result<()> {
        let (schema, settings) = (segment.schema(), segment.index().settings());
        let tokenizers = segment.index().tokenizers().clone();
        let mut fast = FastFieldsWriter::from_schema_and_tokenizer_manager(&schema, tokenizers)?;
        let store = segment.open_write(SegmentComponent::Store)?;
        let (compression, block) = (settings.docstore_compression, settings.docstore_blocksize);
        let mut store = StoreWriter::new(store, compression, block, false)?;
        for &file in &self.files {
            let note = Listing::of_number(file, fields);
            fast.add_document(&note)?;
            store.store(&note, &schema)?;
        }
        store.close()?;
        let mut written = segment.open_write(SegmentComponent::FastFields)?;
        fast.serialize(&mut written, None)?;
        Ok(written.terminate()?)
    }
}
