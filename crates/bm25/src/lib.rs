//! The full-text index: one document for each note, and BM25F scores of it. It is the only user of tantivy. It knows no
//! facts about files and no vectors, and does not join its ranking with another one.

mod analysis;
pub mod compounds;
mod directory;
mod doc_ranges;
mod file_documents;
pub mod languages;
mod largest_frequencies;
mod length_norms;
mod ranking;
mod scoring;
mod scratch;
mod statistics;
mod bulk_inverter;
mod posting_buffer;
mod removed_files;
mod stem_expansion;
mod substring_candidates;
mod term_dictionary;
mod term_lookup;
mod tuning;

use std::collections::{HashMap, HashSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub use analysis::{AnalyzedNote, Analyzer};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_language::language::Language;
use sidenote_sets::bitset::Bitset;
use sidenote_sets::file_set::{FileId, FileSet};
use tantivy::index::{SegmentId, SegmentMeta};
use tantivy::indexer::IndexWriterOptions;
use tantivy::merge_policy::NoMergePolicy;
use tantivy::postings::{Postings as _, TermInfo};
use tantivy::query::RangeQuery;
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{
    Directory as _, DocId, DocSet as _, IndexReader, IndexWriter, InvertedIndexReader, ReloadPolicy,
    Searcher, TERMINATED, TantivyError, Term,
};

use self::analysis::TermListDocument;
use self::directory::UnsyncedDirectory;
use self::file_documents::{FileColumns, FileDocumentCache, file_column};
use self::languages::{NoteLanguages, WordStemsCache};
use self::largest_frequencies::LargestFrequencyCache;
pub use self::ranking::Ranking;
use self::scratch::ScratchPool;
use self::statistics::{FieldLengths, LengthCache};
pub use self::substring_candidates::Extent;
use crate::bulk_inverter::BulkInverter;
use crate::removed_files::{BatchFiles, RemovedFiles};
use crate::stem_expansion::ExpansionCache;
use crate::substring_candidates::{CandidateCache, TermTextCache, new_candidate_cache};
use crate::term_lookup::TermDictionaries;
pub use crate::tuning::{FieldTuning, Tuning};

/// The longest wait for tantivy's writer lock.
const WRITER_LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The name of the only tokenizer: [`TermListTokenizer`](analysis::TermListTokenizer).
const TOKENIZER: &str = "listed";
/// The most bytes of capacity that a text of an [`IndexedText`] retains for the next note.
const RETAINED_CAPACITY: usize = 256 << 10;
/// The most segments that one merge combines.
const MERGE_FACTOR: usize = 8;

/// The texts of one note that are indexed, by field.
#[derive(Debug, Clone, Default)]
pub struct IndexedText {
    /// Title, aliases and file name.
    pub title: String,
    /// The headings, one per line.
    pub headings: String,
    /// The body text, headings included.
    pub body: String,
    /// Code blocks, code spans and math.
    pub code: String,
    /// Tags, values of properties and addresses.
    pub meta: String,
    /// The path.
    pub path: String,
    /// Text of the file that is in none of `body`, `code` and `meta`: comments, markup and names of properties.
    pub rest: String,
    /// The names of the properties, normalized for comparison.
    pub keys: Vec<String>,
    /// Whether the terms may lack some run of letters of the text.
    pub incomplete: bool,
    /// The language of the note; `None` if it is English or cannot be told.
    pub language: Option<Language>,
}

impl IndexedText {
    /// Clears all fields. Buffers keep their capacity up to [`RETAINED_CAPACITY`].
    fn clear(&mut self) {
        let Self { title, headings, body, code, meta, path, rest, keys, incomplete, language } = self;
        for text in [title, headings, body, code, meta, path, rest] {
            text.clear();
            text.shrink_to(RETAINED_CAPACITY);
        }
        keys.clear();
        *incomplete = false;
        *language = None;
    }
}

/// The weight of a whole identifier. Its parts count beside it.
pub const WHOLE_TERM_WEIGHT: f32 = 0.5;

/// A word of a query to rank by.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// The word in folded form.
    pub exact: String,
    /// The word in lower case with its diacritics, on which its stem in another language depends; `None` for what has no
    /// inflections, such as an identifier, and where all notes are in English.
    pub typed: Option<String>,
    /// The English stem of the word.
    pub stem: String,
    /// The weight of the word in the score.
    pub weight: f32,
    /// Whether every term with this prefix matches (for a single character of a script without spaces).
    pub prefix: bool,
    /// Whether the word is a plain word, and not an identifier whose parts are separate words of the query.
    pub single: bool,
    /// The stems of its compounds in the notes, where these are needed to show them.
    pub compounds: Option<Arc<HashSet<String>>>,
}

/// A ranked query to the full-text index.
#[derive(Debug, Clone, Default)]
pub struct Bm25Query<'a> {
    /// The words to rank by.
    pub words: &'a [Word],
    /// The files that may be found; `None` stands for all.
    pub allowed: Option<&'a FileSet>,
    /// The most hits to return. Hits that tie with the last one are returned too.
    pub limit: usize,
}

/// A file with its BM25F score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The file.
    pub file: FileId,
    /// The score, which is comparable within one query only.
    pub score: f32,
}

/// The fields of the tantivy schema. They hold unstemmed terms; stems are expanded at query time.
#[derive(Debug, Clone, Copy)]
struct Fields {
    /// The id of the file, by which its document is replaced and removed.
    file: Field,
    /// The title, aliases and file name.
    title: Field,
    headings: Field,
    /// The body text.
    words: Field,
    code: Field,
    /// Tags, values of properties and addresses.
    meta: Field,
    /// The path. It is scored together with `meta`, and is not content of the file.
    path: Field,
    /// Words of the file that are not in `words`, `code` or `meta`. Ranking does not read this field.
    rest: Field,
    /// The names of properties.
    keys: Field,
    /// The language of the note, and the stems of its words in that language.
    stems: Field,
}

impl Fields {
    /// Returns the fields that together hold the whole content of a file.
    fn content(&self) -> [Field; 4] {
        [self.words, self.code, self.meta, self.rest]
    }

    /// Returns the fields that are scored, without those that are scored as a part of another one.
    fn scored(&self) -> [Field; 5] {
        [self.title, self.headings, self.words, self.code, self.meta]
    }

    /// Returns a field and the fields that are scored together with it, as one field of their joint length.
    fn scored_together(&self, field: Field) -> Vec<Field> {
        if field == self.meta { vec![field, self.path] } else { vec![field] }
    }
}

fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let text = |option| {
        let indexing = TextFieldIndexing::default().set_tokenizer(TOKENIZER).set_index_option(option);
        TextOptions::default().set_indexing_options(indexing)
    };
    let without_lengths = {
        let indexing = TextFieldIndexing::default().set_tokenizer(TOKENIZER).set_fieldnorms(false);
        TextOptions::default().set_indexing_options(indexing.set_index_option(IndexRecordOption::WithFreqs))
    };
    let (without_counts, with_counts) = (IndexRecordOption::Basic, IndexRecordOption::WithFreqs);
    let fields = Fields {
        file: builder.add_u64_field("file", INDEXED | FAST),
        title: builder.add_text_field("title", text(with_counts)),
        headings: builder.add_text_field("headings", text(with_counts)),
        words: builder.add_text_field("words", text(with_counts)),
        code: builder.add_text_field("code", text(with_counts)),
        meta: builder.add_text_field("meta", text(with_counts)),
        path: builder.add_text_field("place", text(with_counts)),
        rest: builder.add_text_field("rest", text(without_counts)),
        keys: builder.add_text_field("keys", text(without_counts)),
        stems: builder.add_text_field("stems", without_lengths),
    };
    (builder.build(), fields)
}

/// Returns the conversion of a tantivy error that occurred while `doing` something to the index.
fn failed(doing: &'static str) -> impl Fn(TantivyError) -> Error {
    move |error| {
        let kind = match &error {
            TantivyError::IoError(_) | TantivyError::OpenWriteError(_) => ErrorKind::Io,
            TantivyError::LockFailure(..) => ErrorKind::Conflict,
            TantivyError::DataCorruption(_)
            | TantivyError::IncompatibleIndex(_)
            | TantivyError::OpenReadError(_)
            | TantivyError::OpenDirectoryError(_)
            | TantivyError::SchemaError(_) => ErrorKind::Corrupt,
            _ => ErrorKind::Internal,
        };
        Error::new(kind, format!("cannot {doing} the full-text index")).with_source(error)
    }
}

/// The full-text index of a vault.
pub struct Bm25 {
    index: tantivy::Index,
    reader: IndexReader,
    fields: Fields,
    term_texts: Arc<TermTextCache>,
    file_documents: Arc<FileDocumentCache>,
    lengths: LengthCache,
}

/// Compares the checksum in the footer of each file of an index with its content.
fn verify_checksums(index: &tantivy::Index) -> Result<()> {
    let directory = index.directory();
    // `Index::validate_checksum` skips files that are missing from tantivy's own list, which may be outdated.
    let mut files: Vec<_> =
        index.load_metas().map_err(failed("read"))?.list_segment_files().into_iter().collect();
    files.sort();
    for file in files {
        // Not every segment has every file. If a needed one is missing, the index cannot be opened.
        let is_intact = !directory.exists(&file).unwrap_or(true)
            || directory.validate_checksum(&file).is_ok_and(|is_intact| is_intact);
        if !is_intact {
            return Err(Error::corrupt(format!("the full-text index is damaged in {}", file.display())));
        }
    }
    Ok(())
}

impl std::fmt::Debug for Bm25 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bm25").finish_non_exhaustive()
    }
}

impl Bm25 {
    /// Opens the index in `folder`. With `create`, creates it if there is none.
    ///
    /// # Errors
    /// Returns `NotFound` if there is no index, `Corrupt` if it is damaged or was written by another version, and `Io`
    /// if it cannot be read.
    pub fn open(folder: &Path, create: bool) -> Result<Self> {
        let (schema, fields) = schema();
        if create {
            #[expect(clippy::disallowed_methods, reason = "the sidecar's own folder")]
            std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
        } else if !folder.join("meta.json").exists() {
            return Err(Error::not_found(format!("there is no full-text index in {}", folder.display()))
                .with_hints("run: sidenote index", "query the user to build the index"));
        }
        let directory = UnsyncedDirectory::open(folder)
            .map_err(|error| failed("open")(TantivyError::OpenDirectoryError(error)))?;
        let index = if create {
            tantivy::Index::open_or_create(directory, schema)
        } else {
            tantivy::Index::open(directory)
        }
        .map_err(failed("open"))?;
        if index.schema() != self::schema().0 {
            return Err(Error::corrupt("the full-text index was written by another version of sidenote"));
        }
        index.tokenizers().register(TOKENIZER, TextAnalyzer::builder(analysis::TermListTokenizer).build());
        let reader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(failed("read"))?;
        Ok(Self {
            index,
            reader,
            fields,
            term_texts: Arc::default(),
            file_documents: Arc::default(),
            lengths: LengthCache::default(),
        })
    }

    /// Returns the generation of the last commit, or 0 if there is none.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the metadata of the index cannot be read.
    pub fn generation(&self) -> Result<i64> {
        let meta = self.index.load_metas().map_err(failed("read"))?;
        Ok(meta.payload.and_then(|payload| payload.parse().ok()).unwrap_or(0))
    }

    /// Compares the checksum in the footer of each file with its content.
    ///
    /// # Errors
    /// Returns `Corrupt` with the name of the first damaged file.
    pub fn verify(&self) -> Result<()> {
        verify_checksums(&self.index)
    }

    /// Compares checksums and schema of the index in a folder, without a reader, which would need a lock file.
    ///
    /// # Errors
    /// Returns `Corrupt` if it is damaged or was written by another version, and `Io` if it cannot be read.
    pub fn verify_in(folder: &Path) -> Result<()> {
        let directory = UnsyncedDirectory::open(folder)
            .map_err(|error| failed("open")(TantivyError::OpenDirectoryError(error)))?;
        let index = tantivy::Index::open(directory).map_err(failed("open"))?;
        if index.schema() != schema().0 {
            return Err(Error::corrupt("the full-text index was written by another version of sidenote"));
        }
        verify_checksums(&index)
    }

    /// Checks that the live documents correspond one to one to `files`.
    ///
    /// # Errors
    /// Returns `Corrupt` if a document has no file, or a file has no document.
    pub fn verify_files(&self, files: &FileSet) -> Result<()> {
        let mut remaining = files.clone();
        for segment in self.reload()?.searcher.segment_readers() {
            let column = file_column(segment)?;
            for doc in segment.doc_ids_alive() {
                let file = FileId::try_from(column.get_val(doc)).unwrap_or(-1);
                if !remaining.remove(file) {
                    return Err(Error::corrupt(
                        "the full-text index has notes that the catalog does not have",
                    ));
                }
            }
        }
        let is_complete = remaining.is_empty();
        if is_complete { Ok(()) } else { Err(Error::corrupt("the full-text index lacks notes")) }
    }

    /// Creates a writer. With `bulk`, it uses more threads and memory, for very many notes. A first load needs no
    /// `bulk`: see [`Bm25Writer::begin_bulk_load`].
    ///
    /// # Errors
    /// Returns `Conflict` if another process keeps the writer lock of tantivy for two seconds, and `Io` if the writer
    /// cannot be started.
    pub fn writer(&self, bulk: bool) -> Result<Bm25Writer> {
        let threads = if bulk { bulk_threads() } else { 1 };
        // Fewer and larger segments store a term fewer times.
        let budget = if bulk { 220_000_000 / threads } else { 20_000_000 };
        let options = || {
            IndexWriterOptions::builder()
                .num_worker_threads(threads)
                .memory_budget_per_thread(budget)
                .num_merge_threads(1)
                .build()
        };
        // This process holds the index lock, so no other writer is active. But a process that was forked a moment ago
        // can still hold the lock file of the previous writer, until it executes its own program.
        let end = Instant::now() + WRITER_LOCK_TIMEOUT;
        let writer: IndexWriter<TermListDocument> = loop {
            match self.index.writer_with_options(options()) {
                Err(TantivyError::LockFailure(..)) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                opened => break opened.map_err(failed("write"))?,
            }
        };
        // A background merge would outlive a command. `Bm25Writer::merge_smallest` merges when it is due.
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(Bm25Writer { writer, inverter: None, fields: self.fields, batch: BatchFiles::default() })
    }

    /// Returns a snapshot of the last commit.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn reload(&self) -> Result<Bm25Snapshot> {
        self.reader.reload().map_err(failed("read"))?;
        let searcher = self.reader.searcher();
        self.term_texts.retain_segments(searcher.segment_readers());
        self.file_documents.retain_segments(searcher.segment_readers());
        let kept = (Arc::clone(&self.term_texts), Arc::clone(&self.file_documents));
        Bm25Snapshot::new(searcher, self.fields, kept, &self.lengths)
    }

    /// Counts the segments. Searches slow down with their number.
    pub fn segments(&self) -> Result<usize> {
        Ok(self.index.searchable_segment_ids().map_err(failed("read"))?.len())
    }
}

/// Returns the number of indexing threads: one for two cores, since reading and analysing notes uses all cores at the
/// same time and is more work.
fn bulk_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2).clamp(1, 4)
}

/// Adds and removes notes. Changes become visible with [`Bm25Writer::commit`].
pub struct Bm25Writer {
    writer: IndexWriter<TermListDocument>,
    /// Receives all notes while a bulk load is active.
    inverter: Option<BulkInverter>,
    fields: Fields,
    /// What was removed and added since the last commit.
    batch: BatchFiles,
}

impl std::fmt::Debug for Bm25Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bm25Writer").finish_non_exhaustive()
    }
}

impl Bm25Writer {
    /// Starts a bulk load: until the next commit, notes are inverted in memory and written as whole segments. Call it
    /// after [`Bm25Writer::clear`], and remove no note before the commit.
    ///
    /// # Errors
    /// Returns `Io` if the system cannot start a thread.
    pub fn begin_bulk_load(&mut self) -> Result<()> {
        let start = || BulkInverter::start(self.writer.index(), self.fields);
        let inverter = start().map_err(|error| failed("write")(TantivyError::from(error)))?;
        self.inverter = Some(inverter);
        Ok(())
    }

    /// Adds a note. An earlier document with the same id must have been removed.
    pub fn add(&mut self, note: AnalyzedNote) -> Result<()> {
        let Some(inverter) = &mut self.inverter else {
            self.batch.added.insert(note.file);
            let document = TermListDocument::new(&note, &self.fields);
            return self.writer.add_document(document).map(drop).map_err(failed("write"));
        };
        // If the thread has ended, joining it returns the reason.
        if inverter.add(note) { Ok(()) } else { self.finish_bulk_load() }
    }

    /// Ends the bulk load, if one is active, and adds its segments.
    fn finish_bulk_load(&mut self) -> Result<()> {
        let Some(inverter) = self.inverter.take() else { return Ok(()) };
        for segment in inverter.finish().map_err(failed("write"))? {
            self.writer.add_segment(segment.meta().clone()).map_err(failed("write"))?;
        }
        Ok(())
    }

    /// Removes the note with this id.
    pub fn remove(&mut self, file: FileId) -> Result<()> {
        if self.batch.added.contains(&file) {
            // The query of the batch may be older than this document.
            self.writer.delete_term(Term::from_field_u64(self.fields.file, file as u64));
        }
        let removed = match &self.batch.removed {
            Some(removed) => removed,
            None => {
                let removed = RemovedFiles::new(self.fields.file);
                self.writer.delete_query(Box::new(removed.clone())).map_err(failed("write"))?;
                self.batch.removed.insert(removed)
            }
        };
        removed.insert(file);
        Ok(())
    }

    /// Removes the notes whose ids are greater than `last`.
    pub fn remove_above(&self, last: FileId) -> Result<()> {
        let first = Term::from_field_u64(self.fields.file, last as u64);
        let above = RangeQuery::new(Bound::Excluded(first), Bound::Unbounded);
        self.writer.delete_query(Box::new(above)).map(drop).map_err(failed("write"))
    }

    /// Removes all notes.
    pub fn clear(&self) -> Result<()> {
        self.writer.delete_all_documents().map(drop).map_err(failed("write"))
    }

    /// Commits all changes, and stores `generation` with them.
    pub fn commit(&mut self, generation: i64) -> Result<()> {
        self.finish_bulk_load()?;
        // The next removal needs a query of its own, also if this commit fails.
        let _committed = std::mem::take(&mut self.batch);
        let mut commit = self.writer.prepare_commit().map_err(failed("commit"))?;
        commit.set_payload(&generation.to_string());
        commit.commit().map(drop).map_err(failed("commit"))
    }

    /// Discards all changes since the last commit.
    pub fn rollback(&mut self) -> Result<()> {
        self.inverter = None;
        self.batch = BatchFiles::default();
        self.writer.rollback().map(drop).map_err(failed("roll back"))
    }

    /// Merges the smallest segments if there are more than `max_segments`, and returns whether it did. The size of a
    /// segment is its number of live notes, so that a segment of mostly replaced notes is small.
    pub fn merge_smallest(&mut self, max_segments: usize) -> Result<bool> {
        let mut metas = self.writer.index().searchable_segment_metas().map_err(failed("read"))?;
        if metas.len() <= max_segments {
            return Ok(false);
        }
        metas.sort_by_key(SegmentMeta::num_docs);
        let count = (metas.len() - max_segments + 1).clamp(2, MERGE_FACTOR);
        let smallest: Vec<SegmentId> = metas.iter().take(count).map(SegmentMeta::id).collect();
        self.writer.merge(&smallest).wait().map_err(failed("merge"))?;
        Ok(true)
    }

    /// Removes files that no segment uses any more.
    pub fn remove_unused_files(&mut self) -> Result<()> {
        self.writer.garbage_collect_files().wait().map(drop).map_err(failed("remove unused files of"))
    }
}

/// An unchanging view of the full-text index at one commit.
pub struct Bm25Snapshot {
    searcher: Searcher,
    fields: Fields,
    lengths: FieldLengths,
    documents: u64,
    dictionaries: TermDictionaries,
    file_columns: FileColumns,
    term_texts: Arc<TermTextCache>,
    file_documents: Arc<FileDocumentCache>,
    candidates: CandidateCache,
    expansions: ExpansionCache,
    languages: OnceLock<NoteLanguages>,
    word_stems: WordStemsCache,
    largest_frequencies: LargestFrequencyCache,
    scratches: ScratchPool,
}

impl std::fmt::Debug for Bm25Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bm25Snapshot").field("documents", &self.documents).finish_non_exhaustive()
    }
}

impl Bm25Snapshot {
    fn new(
        searcher: Searcher,
        fields: Fields,
        (term_texts, file_documents): (Arc<TermTextCache>, Arc<FileDocumentCache>),
        cache: &LengthCache,
    ) -> Result<Self> {
        let lengths = cache.lengths(&searcher, fields)?;
        let documents = searcher.num_docs();
        let (candidates, expansions) = (new_candidate_cache(), ExpansionCache::default());
        let scratches = ScratchPool::default();
        Ok(Self {
            dictionaries: TermDictionaries::new(&searcher),
            file_columns: FileColumns::new(&searcher),
            searcher,
            fields,
            lengths,
            documents,
            term_texts,
            file_documents,
            candidates,
            expansions,
            languages: OnceLock::new(),
            word_stems: WordStemsCache::default(),
            largest_frequencies: LargestFrequencyCache::default(),
            scratches,
        })
    }

    /// Counts the notes.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Counts the notes whose body contains a word in any inflection.
    pub fn body_document_frequency(&self, word: &Word) -> Result<u64> {
        Ok(self.expand_stem(self.fields.words, word)?.documents)
    }

    /// Counts the notes that contain a word, in any inflection, in their body or in their title, and returns the larger
    /// count.
    pub fn document_frequency(&self, word: &Word) -> Result<u64> {
        Ok(self.body_document_frequency(word)?.max(self.expand_stem(self.fields.title, word)?.documents))
    }

    /// Returns whether no note contains a word but in compounds.
    pub fn is_out_of_vocabulary(&self, word: &Word) -> Result<bool> {
        let fields = self.fields;
        for field in [fields.words, fields.title, fields.meta] {
            if self.expand_stem(field, word)?.documents > 0 {
                return Ok(false);
            }
        }
        Ok(self.documents_with(fields.code, &word.exact)? == 0)
    }

    /// Returns whether a note contains a compound of this word. `words` is the number of words of the query.
    pub fn is_part_of_compound(&self, word: &Word, words: usize) -> Result<bool> {
        if !self.languages()?.counts_compounds(words) {
            return Ok(false);
        }
        let Fields { words: body, title, .. } = self.fields;
        Ok(self.expand_compounds(body, word)?.documents > 0
            || self.expand_compounds(title, word)?.documents > 0)
    }

    /// Counts the notes whose body contains this word, in any inflection or in a compound. `words` is the number of
    /// words of the query. Returns the number of notes with the inverse document frequency: ln(1 + (N − n + ½) / (n +
    /// ½)), for N notes of which n contain it.
    pub fn idf(&self, word: &Word, words: usize) -> Result<(u64, f32)> {
        let mut notes = self.body_document_frequency(word)?;
        if self.languages()?.counts_compounds(words) {
            notes = notes.max(self.expand_compounds(self.fields.words, word)?.documents);
        }
        Ok((notes, idf(self.documents, notes)))
    }

    /// Returns for each file the sum of the digests of its terms and their frequencies. Two indexes with equal sums are
    /// equal.
    pub fn digests(&self) -> Result<HashMap<FileId, u64>> {
        let mut sums = HashMap::new();
        let fields = self.fields;
        for segment in self.searcher.segment_readers() {
            let files = file_column(segment)?;
            for field in fields.with_terms() {
                let inverted = segment.inverted_index(field).map_err(failed("read"))?;
                let mut stream = inverted.terms().stream().map_err(|error| failed("read")(error.into()))?;
                while stream.advance() {
                    let mut term_hash = blake3::Hasher::new();
                    term_hash.update(&field.field_id().to_le_bytes()).update(stream.key());
                    let mut postings = inverted
                        .read_postings_from_terminfo(stream.value(), IndexRecordOption::WithFreqs)
                        .map_err(|error| failed("read")(error.into()))?;
                    let mut doc = postings.doc();
                    while doc != TERMINATED {
                        if !segment.is_deleted(doc) {
                            let mut hasher = term_hash.clone();
                            hasher.update(&postings.term_freq().to_le_bytes());
                            let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
                            let digest = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
                            let sum: &mut u64 = sums.entry(files.get_val(doc) as FileId).or_default();
                            *sum = sum.wrapping_add(digest);
                        }
                        doc = postings.advance();
                    }
                }
            }
        }
        Ok(sums)
    }
}

/// Computes the inverse document frequency of a term that `containing` of `documents` contain.
fn idf(documents: u64, containing: u64) -> f32 {
    let (all, some) = (documents as f32, containing as f32);
    (1.0 + (all - some + 0.5).max(0.0) / (some + 0.5)).ln()
}

/// A set of documents of one segment.
#[derive(Debug, Default)]
struct DocSet(Bitset);

impl DocSet {
    /// Creates an empty set for a segment of `size` documents.
    fn new(size: u32) -> Self {
        Self(Bitset::with_capacity(size as usize))
    }

    /// Returns whether the set has a document.
    fn contains(&self, doc: DocId) -> bool {
        self.0.contains(doc as usize)
    }

    /// Adds a document, and returns whether it is new.
    fn insert(&mut self, doc: DocId) -> bool {
        self.0.insert(doc as usize)
    }

    /// Adds the documents in the posting list of a term.
    fn add(&mut self, inverted: &InvertedIndexReader, info: &TermInfo) -> Result<()> {
        let mut postings = inverted
            .read_postings_from_terminfo(info, IndexRecordOption::Basic)
            .map_err(|error| failed("read")(error.into()))?;
        let mut doc = postings.doc();
        while doc != TERMINATED {
            self.insert(doc);
            doc = postings.advance();
        }
        Ok(())
    }

    /// Counts the documents.
    fn len(&self) -> u64 {
        self.0.count() as u64
    }

    /// Iterates over the documents in ascending order.
    fn iter(&self) -> impl Iterator<Item = DocId> {
        self.0.iter().map(|doc| doc as DocId)
    }
}
