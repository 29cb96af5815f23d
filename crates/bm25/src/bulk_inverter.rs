//! Builds segments from very many notes in a first load: terms become posting lists in memory, which tantivy's own
//! serializers write. The terms of a note are looked up once for all fields, and its postings are appended to those of
//! the note before. They are sorted by term when a segment is written.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use sidenote_sets::file_set::FileId;
use tantivy::directory::TerminatingWrite as _;
use tantivy::fastfield::FastFieldsWriter;
use tantivy::fieldnorm::{FieldNormReader, FieldNormsSerializer, FieldNormsWriter};
use tantivy::index::{Segment, SegmentComponent};
use tantivy::postings::InvertedIndexSerializer;
use tantivy::schema::{Field, IndexRecordOption, Schema};
use tantivy::store::StoreWriter;
use tantivy::{DocId, Index, TantivyError};

use crate::Fields;
use crate::analysis::{AnalyzedNote, FIELDS, TermListDocument};
use crate::posting_buffer::{MAX_NOTES, PostingBuffer};
use crate::term_dictionary::{TermDictionary, TermId};

/// The number of postings at which a segment is written. Each takes about 2 bytes, and 4 more in the two fields that
/// are sorted and written at a time.
const MAX_POSTINGS: usize = 16 << 20;
/// The number of bytes of distinct terms at which a segment is written.
const MAX_TERM_BYTES: usize = 64 << 20;
/// The most notes that are sent to the thread at a time. Sending each alone would wake the thread all the time.
const GROUP_SIZE: usize = 32;
/// The number of bytes of terms at which a group is sent before it is full.
const GROUP_BYTES: usize = 256 << 10;
/// The most groups that wait for the thread.
const QUEUE_SIZE: usize = 4;
/// No field norms are given to tantivy's serializer: with them it computes block maxima for its own ranking, which is
/// not used here.
const NO_NORMS: Option<FieldNormReader> = None;

/// A thread that builds segments from notes.
///
/// If it is dropped before [`BulkInverter::finish`], the thread is stopped, and no commit refers to what it wrote.
#[derive(Debug)]
pub(super) struct BulkInverter {
    group: Vec<AnalyzedNote>,
    group_bytes: usize,
    /// The channel to the thread; `None` after the last group.
    groups: Option<SyncSender<Vec<AnalyzedNote>>>,
    thread: Option<JoinHandle<tantivy::Result<Vec<Segment>>>>,
    stop: Arc<AtomicBool>,
}

impl BulkInverter {
    /// Starts the thread.
    ///
    /// # Errors
    /// Returns the error of the system if it cannot start a thread.
    pub(super) fn start(index: &Index, fields: Fields) -> std::io::Result<Self> {
        let (groups, receiver) = sync_channel(QUEUE_SIZE);
        let stop = Arc::new(AtomicBool::new(false));
        let (index, stopped) = (index.clone(), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("sidenote-invert".to_owned())
            .spawn(move || invert(&index, &fields, &receiver, &stopped))?;
        Ok(Self { group: Vec::new(), group_bytes: 0, groups: Some(groups), thread: Some(thread), stop })
    }

    /// Queues a note for the thread. Returns `false` if the thread has ended; then [`BulkInverter::finish`] returns the
    /// reason.
    pub(super) fn add(&mut self, note: AnalyzedNote) -> bool {
        self.group_bytes += note.bytes();
        self.group.push(note);
        self.group.len() < GROUP_SIZE && self.group_bytes < GROUP_BYTES || self.send_group()
    }

    fn send_group(&mut self) -> bool {
        self.group_bytes = 0;
        let group = mem::take(&mut self.group);
        self.groups.as_ref().is_some_and(|groups| groups.send(group).is_ok())
    }

    /// Waits until all notes are written, and returns their segments, which no commit refers to yet.
    pub(super) fn finish(mut self) -> tantivy::Result<Vec<Segment>> {
        // If the thread has ended, joining it returns the reason.
        self.send_group();
        self.groups = None;
        let done = self.thread.take().map(JoinHandle::join);
        let panicked =
            || Err(TantivyError::ErrorInThread("the thread that inverts notes panicked".to_owned()));
        done.and_then(std::result::Result::ok).unwrap_or_else(panicked)
    }
}

impl Drop for BulkInverter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.groups = None;
        if self.thread.take().map(JoinHandle::join).is_some_and(|joined| joined.is_err()) {
            tracing::error!("the thread that inverts notes panicked");
        }
    }
}

/// Runs the thread: builds segments from groups of notes until the channel is closed.
fn invert(
    index: &Index,
    fields: &Fields,
    groups: &Receiver<Vec<AnalyzedNote>>,
    stop: &AtomicBool,
) -> tantivy::Result<Vec<Segment>> {
    let mut segments = Vec::new();
    let mut builder = SegmentBuilder::new(index, fields);
    for group in groups {
        group.iter().for_each(|note| builder.add(note));
        if builder.is_full() {
            let full = mem::replace(&mut builder, SegmentBuilder::new(index, fields));
            segments.push(full.write(index, fields, stop)?);
        }
    }
    if !builder.files.is_empty() {
        segments.push(builder.write(index, fields, stop)?);
    }
    Ok(segments)
}

/// Returns an error if the thread is to stop.
fn check_stopped(stop: &AtomicBool) -> tantivy::Result<()> {
    if stop.load(Ordering::Relaxed) {
        return Err(TantivyError::ErrorInThread("inverting notes was stopped".to_owned()));
    }
    Ok(())
}

/// The notes of the segment that is being built.
struct SegmentBuilder {
    terms: TermDictionary,
    /// The id of each note's file, by document.
    files: Vec<FileId>,
    postings_by_field: [PostingBuffer; FIELDS],
    norms: FieldNormsWriter,
    /// The terms of the current note.
    ids: Vec<TermId>,
    fields: [Field; FIELDS],
    /// The number of postings.
    postings: usize,
}

impl SegmentBuilder {
    fn new(index: &Index, fields: &Fields) -> Self {
        Self {
            terms: TermDictionary::default(),
            files: Vec::new(),
            postings_by_field: Default::default(),
            norms: FieldNormsWriter::for_schema(&index.schema()),
            ids: Vec::new(),
            fields: fields.with_terms(),
            postings: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.postings >= MAX_POSTINGS
            || self.terms.bytes() >= MAX_TERM_BYTES
            || self.files.len() + GROUP_SIZE > MAX_NOTES
    }

    fn add(&mut self, note: &AnalyzedNote) {
        let doc = self.files.len() as DocId;
        self.files.push(note.file);
        self.terms.collect_ids(note.terms().map(str::as_bytes).zip(note.hashes()), &mut self.ids);
        for (&id, counts) in self.ids.iter().zip(note.counts()) {
            counts.for_each(|(field, count)| self.postings_by_field[field].add(id, count));
        }
        for (buffer, field) in self.postings_by_field.iter_mut().zip(self.fields) {
            let (postings, tokens) = buffer.end_note();
            if postings > 0 {
                self.norms.record(doc, field, u32::try_from(tokens).unwrap_or(u32::MAX));
            }
            self.postings += postings as usize;
        }
    }

    /// Writes the segment.
    ///
    /// # Errors
    /// Returns the error of tantivy if it cannot be written, or if the thread is to stop.
    fn write(mut self, index: &Index, fields: &Fields, stop: &AtomicBool) -> tantivy::Result<Segment> {
        check_stopped(stop)?;
        let segment = index.new_segment().with_max_doc(self.files.len() as DocId);
        (0..).zip(&self.files).for_each(|(doc, _)| self.norms.record(doc, fields.file, 1));
        self.norms.fill_up_to_max_doc(self.files.len() as DocId);
        let norms = FieldNormsSerializer::from_write(segment.open_write(SegmentComponent::FieldNorms)?)?;
        self.norms.serialize(norms, None)?;
        self.write_ids(&segment, fields)?;
        let mut postings = InvertedIndexSerializer::open(&segment)?;
        let mut by_id: Vec<(FileId, DocId)> = self.files.iter().copied().zip(0..).collect();
        by_id.sort_unstable();
        let mut field = postings.new_field(fields.file, by_id.len() as u64, NO_NORMS)?;
        for (file, doc) in by_id {
            field.new_term_without_freq(&(file as u64).to_be_bytes())?;
            field.write_doc(doc, 0, &[]);
            field.close_term()?;
        }
        field.close()?;
        self.write_terms(&segment.schema(), &mut postings, stop)?;
        postings.close()?;
        Ok(segment)
    }

    /// Writes the term dictionary and posting lists of every field.
    fn write_terms(
        self,
        schema: &Schema,
        postings: &mut InvertedIndexSerializer,
        stop: &AtomicBool,
    ) -> tantivy::Result<()> {
        let Self { terms, postings_by_field, fields, .. } = self;
        let terms = terms.into_sorted();
        std::thread::scope(|scope| {
            let (sender, sorted) = sync_channel(0);
            let ranks = &terms.ranks;
            // One field is sorted while the field before is written.
            std::thread::Builder::new().spawn_scoped(scope, move || {
                postings_by_field.into_iter().try_for_each(|buffer| sender.send(buffer.into_sorted(ranks)))
            })?;
            for (field, sorted) in fields.into_iter().zip(sorted).filter(|(_, sorted)| !sorted.is_empty()) {
                check_stopped(stop)?;
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

    /// Writes the id of each note to the fast fields, and a document store without content.
    fn write_ids(&self, segment: &Segment, fields: &Fields) -> tantivy::Result<()> {
        let (schema, settings) = (segment.schema(), segment.index().settings());
        let tokenizers = segment.index().tokenizers().clone();
        let mut fast = FastFieldsWriter::from_schema_and_tokenizer_manager(&schema, tokenizers)?;
        let store = segment.open_write(SegmentComponent::Store)?;
        let (compression, block) = (settings.docstore_compression, settings.docstore_blocksize);
        let mut store = StoreWriter::new(store, compression, block, false)?;
        for &file in &self.files {
            let note = TermListDocument::of_id(file, fields);
            fast.add_document(&note)?;
            store.store(&note, &schema)?;
        }
        store.close()?;
        let mut written = segment.open_write(SegmentComponent::FastFields)?;
        fast.serialize(&mut written, None)?;
        Ok(written.terminate()?)
    }
}
