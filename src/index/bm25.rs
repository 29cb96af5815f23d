//! Owns the full-text index: one document per note, and BM25F scoring over it. The only tantivy user.

mod analysis;
mod directory;
mod ranking;
mod statistics;
mod bulk_inverter;
mod posting_buffer;
mod stem_expansion;
mod substring_candidates;
mod term_dictionary;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::analysis::Listing;
use self::directory::UnsyncedDirectory;
pub use self::ranking::Ranking;
use self::ranking::Scored;
use self::statistics::Lengths;
use crate::index::bm25::bulk_inverter::BulkInverter;
use crate::index::bm25::stem_expansion::Inflections;
use crate::index::bm25::substring_candidates::{Held, Vocabulary, nothing_held};
use tantivy::Directory as _;
use tantivy::index::{SegmentId, SegmentMeta};
use tantivy::indexer::IndexWriterOptions;
use tantivy::merge_policy::NoMergePolicy;
use tantivy::postings::{Postings as _, TermInfo};
use tantivy::query::RangeQuery;
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{
    DocId, DocSet as _, IndexReader, IndexWriter, InvertedIndexReader, ReloadPolicy, Searcher, SegmentReader,
    TERMINATED, TantivyError, Term,
};

use crate::error::{Error, ErrorKind, Result};
use crate::index::bitset::Bitset;
use crate::index::file_set::{FileId, FileSet};

pub use analysis::{Analysed, Analysis};

/// How long the lock of tantivy's writer is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The name of the one tokenizer: terms come as lists that [`Analysis`] made.
const LISTED: &str = "listed";
/// Bytes that a text of an [`Entry`] keeps for the next note.
const KEPT_SPACE: usize = 256 << 10;
/// So many segments are merged at a time.
const AT_ONCE: usize = 8;

/// How one field counts: its weight before saturation, and how much its length matters (`b`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldTuning {
    /// Multiplies the term frequency.
    pub weight: f32,
    /// Length normalisation, 0 (none) to 1 (full).
    pub b: f32,
    /// Terms; a shorter field counts as this long. Up to the length of a passage a longer text says more and does not
    /// ramble, so there is nothing to set off.
    pub short: f32,
}

/// Constants of BM25F (Robertson & Zaragoza 2009, section 3.5); docs/dev/ranking.md tells how they were chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Saturation of the term frequency.
    pub k1: f32,
    /// Title, aliases and file name.
    pub title: FieldTuning,
    /// Headings.
    pub headings: FieldTuning,
    /// Body text, headings included.
    pub body: FieldTuning,
    /// Code.
    pub code: FieldTuning,
    /// Tags, properties and path.
    pub meta: FieldTuning,
    /// Weight of unstemmed matches, added as a score of their own.
    pub exact: f32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            k1: 1.2,
            title: FieldTuning { weight: 1.0, b: 0.4, short: 0.0 },
            headings: FieldTuning { weight: 0.3, b: 0.4, short: 0.0 },
            body: FieldTuning { weight: 1.0, b: 0.75, short: 150.0 },
            code: FieldTuning { weight: 0.4, b: 0.75, short: 0.0 },
            meta: FieldTuning { weight: 0.2, b: 0.75, short: 0.0 },
            exact: 0.1,
        }
    }
}

/// What is indexed of one note.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// Title, aliases and file name.
    pub title: String,
    /// Headings, one a line.
    pub headings: String,
    /// Body text with headings.
    pub body: String,
    /// Code blocks, code spans and math.
    pub code: String,
    /// Tags, properties, addresses.
    pub meta: String,
    /// The path.
    pub place: String,
    /// What stands in the file and in none of the last three: comments, markup, names of properties.
    pub rest: String,
    /// The names of its properties, as they are compared.
    pub keys: Vec<String>,
    /// Whether its text is of a form in which the terms may not hold every run of letters.
    pub incomplete: bool,
}

impl Entry {
    /// Empties it and keeps its space, unless that became much.
    fn clear(&mut self) {
        let Self { title, headings, body, code, meta, place, rest, keys, incomplete } = self;
        for text in [title, headings, body, code, meta, place, rest] {
            text.clear();
            text.shrink_to(KEPT_SPACE);
        }
        keys.clear();
        *incomplete = false;
    }
}

/// A word of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// The folded word.
    pub exact: String,
    /// Its stem.
    pub stem: String,
    /// How much it counts.
    pub weight: f32,
    /// Whether longer terms that begin with it count too (a lone character of an unspaced script).
    pub prefix: bool,
    /// Whether it stands for itself, and not for an identifier whose parts stand beside it.
    pub single: bool,
}

/// A question to the full-text index.
#[derive(Debug, Clone, Default)]
pub struct Ask<'a> {
    /// Words to rank by.
    pub words: &'a [Word],
    /// Only these files, where given.
    pub allowed: Option<&'a FileSet>,
    /// How many hits at most.
    pub limit: usize,
}

/// A hit: the file and its BM25F score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The file.
    pub file: FileId,
    /// Its score; comparable within one query.
    pub score: f32,
}

/// All fields hold words as they stand; what shares a stem with a word is looked for in the list of terms.
#[derive(Debug, Clone, Copy)]
struct Fields {
    /// The note's number, by which it is replaced and removed.
    file: Field,
    /// The title, aliases and the file name.
    title: Field,
    headings: Field,
    /// The body.
    words: Field,
    code: Field,
    /// Tags, properties and addresses.
    meta: Field,
    /// The path, which ranks as `meta` does, and holds nothing of the file.
    place: Field,
    /// Words that stand in the file and not in `words`, `code` or `meta`; queries that rank do not look here.
    rest: Field,
    /// Names of properties.
    keys: Field,
}

impl Fields {
    /// The fields that hold all that stands in a file.
    fn content(&self) -> [Field; 4] {
        [self.words, self.code, self.meta, self.rest]
    }

    /// The fields that rank, each with those that rank as one with it.
    fn ranking(&self) -> [Field; 5] {
        [self.title, self.headings, self.words, self.code, self.meta]
    }

    /// The fields that rank as one with this one, by their length together.
    fn as_one(&self, field: Field) -> Vec<Field> {
        if field == self.meta { vec![field, self.place] } else { vec![field] }
    }
}

fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let text = |option| {
        let indexing = TextFieldIndexing::default().set_tokenizer(LISTED).set_index_option(option);
        TextOptions::default().set_indexing_options(indexing)
    };
    let (listed, counted) = (IndexRecordOption::Basic, IndexRecordOption::WithFreqs);
    let fields = Fields {
        file: builder.add_u64_field("file", INDEXED | FAST),
        title: builder.add_text_field("title", text(counted)),
        headings: builder.add_text_field("headings", text(counted)),
        words: builder.add_text_field("words", text(counted)),
        code: builder.add_text_field("code", text(counted)),
        meta: builder.add_text_field("meta", text(counted)),
        place: builder.add_text_field("place", text(counted)),
        rest: builder.add_text_field("rest", text(listed)),
        keys: builder.add_text_field("keys", text(listed)),
    };
    (builder.build(), fields)
}

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
    vocabulary: Arc<Vocabulary>,
    lengths: Lengths,
}

impl std::fmt::Debug for Bm25 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bm25").finish_non_exhaustive()
    }
}

impl Bm25 {
    /// Opens the index in `folder`, making it where `create` says so.
    ///
    /// # Errors
    /// `NotFound` where there is none, `Corrupt` where it cannot be read.
    pub fn open(folder: &Path, create: bool) -> Result<Self> {
        let (schema, fields) = schema();
        if create {
            #[expect(clippy::disallowed_methods, reason = "the sidecar's own folder")]
            std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
        } else if !folder.join("meta.json").exists() {
            return Err(Error::not_found(format!("there is no full-text index in {}", folder.display()))
                .with_hints("run: sidenote index", "ask the user to build the index"));
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
        index.tokenizers().register(LISTED, TextAnalyzer::builder(analysis::Listed).build());
        let reader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(failed("read"))?;
        Ok(Self { index, reader, fields, vocabulary: Arc::default(), lengths: Lengths::default() })
    }

    /// Gives the generation of the last commit; 0 before the first.
    pub fn generation(&self) -> Result<i64> {
        let meta = self.index.load_metas().map_err(failed("read"))?;
        Ok(meta.payload.and_then(|payload| payload.parse().ok()).unwrap_or(0))
    }

    /// Compares the checksum in each file's footer with its bytes.
    ///
    /// # Errors
    /// `Corrupt` naming the first damaged file.
    pub fn verify(&self) -> Result<()> {
        let directory = self.index.directory();
        // `Index::validate_checksum` passes over files that are missing in tantivy's own list, which may be older.
        let mut files: Vec<_> =
            self.index.load_metas().map_err(failed("read"))?.list_segment_files().into_iter().collect();
        files.sort();
        for file in files {
            // Not every segment has every file; one that is needed and missing keeps the index from opening.
            let is_sound = !directory.exists(&file).unwrap_or(true)
                || directory.validate_checksum(&file).is_ok_and(|is_sound| is_sound);
            if !is_sound {
                return Err(Error::corrupt(format!("the full-text index is damaged in {}", file.display())));
            }
        }
        Ok(())
    }

    /// Checks that each live document stands for one of these files, and each file has one document.
    ///
    /// # Errors
    /// `Corrupt` where that is not so.
    pub fn verify_files(&self, files: &FileSet) -> Result<()> {
        let mut left = files.clone();
        for segment in self.reload()?.searcher.segment_readers() {
            let column = segment.fast_fields().u64("file").map_err(failed("read"))?.first_or_default_col(0);
            for doc in segment.doc_ids_alive() {
                let file = FileId::try_from(column.get_val(doc)).unwrap_or(-1);
                if !left.remove(file) {
                    return Err(Error::corrupt("the full-text index holds notes that the catalog does not"));
                }
            }
        }
        let is_complete = left.is_empty();
        if is_complete { Ok(()) } else { Err(Error::corrupt("the full-text index lacks notes")) }
    }

    /// Starts writing; `bulk` spends threads and memory on very many notes, else the writer is light. A load needs no more
    /// than that: see [`Bm25Writer::load`].
    pub fn writer(&self, bulk: bool) -> Result<Bm25Writer> {
        let threads = if bulk { bulk_threads() } else { 1 };
        // Fewer and larger segments keep fewer copies of a term.
        let budget = if bulk { 220_000_000 / threads } else { 20_000_000 };
        let options = || {
            IndexWriterOptions::builder()
                .num_worker_threads(threads)
                .memory_budget_per_thread(budget)
                .num_merge_threads(1)
                .build()
        };
        // The index lock is held here, so no other writer is at work. A process that was forked a moment ago can still
        // hold tantivy's lock of the writer before, until it runs its own program.
        let end = Instant::now() + LOCK_PATIENCE;
        let writer: IndexWriter<Listing> = loop {
            match self.index.writer_with_options(options()) {
                Err(TantivyError::LockFailure(..)) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                opened => break opened.map_err(failed("write"))?,
            }
        };
        // Merging behind a batch would outlive a command; `Bm25Writer::tidy` merges when it is due.
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(Bm25Writer { writer, inverter: None, fields: self.fields })
    }

    /// Sees the newest commit.
    pub fn reload(&self) -> Result<Bm25Snapshot> {
        self.reader.reload().map_err(failed("read"))?;
        let searcher = self.reader.searcher();
        self.vocabulary.keep_only(searcher.segment_readers());
        Bm25Snapshot::new(searcher, self.fields, Arc::clone(&self.vocabulary), &self.lengths)
    }

    /// Counts segments; many small ones slow searches down.
    pub fn segments(&self) -> Result<usize> {
        Ok(self.index.searchable_segment_ids().map_err(failed("read"))?.len())
    }
}

/// One for two cores: notes are read and analysed on all of them meanwhile, which is more work.
fn bulk_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2).clamp(1, 4)
}

/// Adds and removes notes; nothing shows before [`Bm25Writer::commit`].
pub struct Bm25Writer {
    writer: IndexWriter<Listing>,
    /// Takes all notes while a load is under way.
    inverter: Option<BulkInverter>,
    fields: Fields,
}

impl std::fmt::Debug for Bm25Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bm25Writer").finish_non_exhaustive()
    }
}

impl Bm25Writer {
    /// Expects very many notes, behind [`Bm25Writer::clear`] and with no removal until the next commit: notes are
    /// inverted all at once.
    ///
    /// # Errors
    /// `Io` where the system gives no thread.
    pub fn load(&mut self) -> Result<()> {
        let start = || BulkInverter::start(self.writer.index(), self.fields);
        let inverter = start().map_err(|error| failed("write")(TantivyError::from(error)))?;
        self.inverter = Some(inverter);
        Ok(())
    }

    /// Adds a note. Remove what had its number before.
    pub fn add(&mut self, note: Analysed) -> Result<()> {
        let Some(inverter) = &mut self.inverter else {
            let document = Listing::new(&note, &self.fields);
            return self.writer.add_document(document).map(drop).map_err(failed("write"));
        };
        // A thread that is gone says why.
        if inverter.add(note) { Ok(()) } else { self.finish_load() }
    }

    /// Takes up the segments of a load, where one is under way.
    fn finish_load(&mut self) -> Result<()> {
        let Some(inverter) = self.inverter.take() else { return Ok(()) };
        for segment in inverter.finish().map_err(failed("write"))? {
            self.writer.add_segment(segment.meta().clone()).map_err(failed("write"))?;
        }
        Ok(())
    }

    /// Removes the note of this number.
    pub fn remove(&self, file: FileId) {
        self.writer.delete_term(Term::from_field_u64(self.fields.file, file as u64));
    }

    /// Removes the notes of all higher numbers.
    pub fn remove_above(&self, last: FileId) -> Result<()> {
        let first = Term::from_field_u64(self.fields.file, last as u64);
        let above = RangeQuery::new(Bound::Excluded(first), Bound::Unbounded);
        self.writer.delete_query(Box::new(above)).map(drop).map_err(failed("write"))
    }

    /// Removes everything.
    pub fn clear(&self) -> Result<()> {
        self.writer.delete_all_documents().map(drop).map_err(failed("write"))
    }

    /// Makes everything since the last commit visible under `generation`.
    pub fn commit(&mut self, generation: i64) -> Result<()> {
        self.finish_load()?;
        let mut commit = self.writer.prepare_commit().map_err(failed("commit"))?;
        commit.set_payload(&generation.to_string());
        commit.commit().map(drop).map_err(failed("commit"))
    }

    /// Forgets everything since the last commit.
    pub fn rollback(&mut self) -> Result<()> {
        self.inverter = None;
        self.writer.rollback().map(drop).map_err(failed("roll back"))
    }

    /// Merges the smallest segments where there are more than `most`; says whether it did. Files count as they live, so
    /// that a segment of replaced texts is small.
    pub fn merge_smallest(&mut self, most: usize) -> Result<bool> {
        let mut metas = self.writer.index().searchable_segment_metas().map_err(failed("read"))?;
        if metas.len() <= most {
            return Ok(false);
        }
        metas.sort_by_key(SegmentMeta::num_docs);
        let count = (metas.len() - most + 1).clamp(2, AT_ONCE);
        let smallest: Vec<SegmentId> = metas.iter().take(count).map(SegmentMeta::id).collect();
        self.writer.merge(&smallest).wait().map_err(failed("merge"))?;
        Ok(true)
    }

    /// Merges until there are no more than `most` segments, and drops files out of use.
    pub fn tidy(&mut self, most: usize) -> Result<()> {
        while self.merge_smallest(most)? {}
        self.drop_unused()
    }

    /// Drops files that no segment uses any more.
    pub fn drop_unused(&mut self) -> Result<()> {
        self.writer.garbage_collect_files().wait().map(drop).map_err(failed("tidy"))
    }
}

/// One state of the full-text index.
pub struct Bm25Snapshot {
    searcher: Searcher,
    fields: Fields,
    /// Mean length of each field that ranks, by field.
    lengths: HashMap<Field, f32>,
    documents: u64,
    vocabulary: Arc<Vocabulary>,
    held: Held,
    inflections: Inflections,
}

impl std::fmt::Debug for Bm25Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bm25Snapshot").field("documents", &self.documents).finish_non_exhaustive()
    }
}

/// Per-segment scratch space, so that a query allocates twice a segment and not once a term.
struct Scratch {
    frequency: Vec<f32>,
    touched: Vec<DocId>,
    scores: Vec<f32>,
}

impl Bm25Snapshot {
    fn new(searcher: Searcher, fields: Fields, vocabulary: Arc<Vocabulary>, known: &Lengths) -> Result<Self> {
        let lengths = known.means(&searcher, fields)?;
        let documents = searcher.num_docs();
        let (held, inflections) = (nothing_held(), Inflections::default());
        Ok(Self { searcher, fields, lengths, documents, vocabulary, held, inflections })
    }

    /// Counts the notes.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Counts the notes that hold a word in their body, in any inflection.
    pub fn frequency(&self, stem: &str) -> Result<u64> {
        Ok(self.inflected(self.fields.words, stem)?.documents)
    }

    /// Counts the notes that hold a word in their body or in their title, whichever are more.
    pub fn holding(&self, word: &Word) -> Result<u64> {
        Ok(self.frequency(&word.stem)?.max(self.inflected(self.fields.title, &word.stem)?.documents))
    }

    /// Says whether no note holds a word anywhere.
    pub fn is_unheard(&self, word: &Word) -> Result<bool> {
        let fields = self.fields;
        for field in [fields.words, fields.title, fields.meta] {
            if self.inflected(field, &word.stem)?.documents > 0 {
                return Ok(false);
            }
        }
        Ok(self.documents_with(fields.code, &word.exact)? == 0)
    }

    /// Gives the inverse document frequency of a word: ln(1 + (N − n + ½) / (n + ½)).
    pub fn idf(&self, stem: &str) -> Result<f32> {
        Ok(idf(self.documents, self.frequency(stem)?))
    }

    /// Ranks the notes that answer a question, best first; those that score as the last do come on top of the limit, for
    /// their order is not decided here.
    pub fn search(&self, ask: &Ask<'_>, tuning: &Tuning) -> Result<Vec<Hit>> {
        Ok(self.rank(ask, tuning)?.hits)
    }

    /// Ranks like [`Bm25Snapshot::search`], and keeps the scores of all other notes as well: they are made anyway.
    pub fn rank(&self, ask: &Ask<'_>, tuning: &Tuning) -> Result<Ranking> {
        let mut best: BinaryHeap<Reverse<OrderedScore>> = BinaryHeap::new();
        let mut ranking = Ranking::default();
        if ask.limit == 0 || ask.words.is_empty() {
            return Ok(ranking);
        }
        let weights = self.word_weights(ask.words, tuning)?;
        for (at, segment) in self.searcher.segment_readers().iter().enumerate() {
            let files = segment.fast_fields().u64("file").map_err(failed("read"))?.first_or_default_col(0);
            let mut scratch = self.score_segment(at, segment, ask, tuning, &weights)?;
            scratch.touched.retain(|&doc| !segment.is_deleted(doc));
            for &doc in &scratch.touched {
                let score = scratch.scores.get(doc as usize).copied().unwrap_or(0.0);
                let candidate = OrderedScore(score);
                let full = best.len() >= ask.limit;
                if full && best.peek().is_some_and(|Reverse(worst)| candidate < *worst) {
                    continue;
                }
                let file = files.get_val(doc) as FileId;
                if ask.allowed.is_some_and(|set| !set.contains(file)) {
                    continue;
                }
                ranking.hits.push(Hit { file, score });
                best.push(Reverse(candidate));
                if best.len() > ask.limit {
                    best.pop();
                }
            }
            ranking.segments.push(Scored { files, docs: scratch.touched, scores: scratch.scores });
        }
        if let Some(Reverse(worst)) = best.peek() {
            ranking.hits.retain(|hit| OrderedScore(hit.score) >= *worst);
        }
        ranking.hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
        Ok(ranking)
    }

    /// Gives each word's idf times its weight, for stemmed and for exact matches.
    fn word_weights(&self, words: &[Word], tuning: &Tuning) -> Result<Vec<(f32, f32)>> {
        let fields = self.fields;
        words
            .iter()
            .map(|word| {
                let most = self
                    .holding(word)?
                    .max(self.inflected(fields.meta, &word.stem)?.documents)
                    .max(self.documents_with(fields.code, &word.exact)?);
                let exact = self
                    .documents_with(fields.words, &word.exact)?
                    .max(self.documents_with(fields.title, &word.exact)?);
                Ok((
                    word.weight * idf(self.documents, most),
                    word.weight * tuning.exact * idf(self.documents, exact),
                ))
            })
            .collect()
    }

    fn score_segment(
        &self,
        at: usize,
        segment: &SegmentReader,
        ask: &Ask<'_>,
        tuning: &Tuning,
        weights: &[(f32, f32)],
    ) -> Result<Scratch> {
        let size = segment.max_doc() as usize;
        let mut scratch =
            Scratch { frequency: vec![0.0; size], touched: Vec::new(), scores: vec![0.0; size] };
        let mut touched = DocSet::new(segment.max_doc());
        let fields = self.fields;
        for (word, &(stem_weight, exact_weight)) in ask.words.iter().zip(weights) {
            for (field, field_tuning) in [
                (fields.title, tuning.title),
                (fields.headings, tuning.headings),
                (fields.words, tuning.body),
                (fields.code, tuning.code),
                (fields.meta, tuning.meta),
            ] {
                if word.prefix {
                    let spread = self.begun_by(field, &word.exact)?;
                    let found = spread.terms.get(at).map_or(&[][..], Vec::as_slice);
                    self.add_frequencies(segment, field, field_tuning, found, &mut scratch)?;
                } else if field == fields.code {
                    let found = as_it_stands(segment, field, &word.exact)?;
                    self.add_frequencies(segment, field, field_tuning, &found, &mut scratch)?;
                } else {
                    let spread = self.inflected(field, &word.stem)?;
                    let found = spread.terms.get(at).map_or(&[][..], Vec::as_slice);
                    self.add_frequencies(segment, field, field_tuning, found, &mut scratch)?;
                }
            }
            saturate(&mut scratch, tuning.k1, stem_weight, &mut touched);
            if exact_weight > 0.0 {
                for (field, field_tuning) in [(fields.words, tuning.body), (fields.title, tuning.title)] {
                    let exact = FieldTuning { weight: 1.0, ..field_tuning };
                    let found = as_it_stands(segment, field, &word.exact)?;
                    self.add_frequencies(segment, field, exact, &found, &mut scratch)?;
                }
                saturate(&mut scratch, tuning.k1, exact_weight, &mut touched);
            }
        }
        scratch.touched = touched.iter().collect();
        Ok(scratch)
    }

    /// Adds one field's length-normalised, weighted frequencies of these terms to the scratch.
    fn add_frequencies(
        &self,
        segment: &SegmentReader,
        field: Field,
        tuning: FieldTuning,
        terms: &[(Field, TermInfo)],
        scratch: &mut Scratch,
    ) -> Result<()> {
        if tuning.weight <= 0.0 || terms.is_empty() {
            return Ok(());
        }
        let mut norms = Vec::new();
        for part in self.fields.as_one(field) {
            norms.push(segment.get_fieldnorms_reader(part).map_err(failed("read"))?);
        }
        let mean = self.lengths.get(&field).copied().unwrap_or(1.0).max(tuning.short);
        for (part, term) in terms {
            let inverted = segment.inverted_index(*part).map_err(failed("read"))?;
            let mut postings = inverted
                .read_postings_from_terminfo(term, IndexRecordOption::WithFreqs)
                .map_err(|error| failed("read")(error.into()))?;
            let mut doc = postings.doc();
            while doc != TERMINATED {
                let length: u32 = norms.iter().map(|norms| norms.fieldnorm(doc)).sum();
                let length = (length as f32).max(tuning.short) / mean;
                let frequency =
                    tuning.weight * postings.term_freq() as f32 / (1.0 - tuning.b + tuning.b * length);
                if let Some(sum) = scratch.frequency.get_mut(doc as usize) {
                    if *sum == 0.0 {
                        scratch.touched.push(doc);
                    }
                    *sum += frequency;
                }
                doc = postings.advance();
            }
        }
        Ok(())
    }

    /// Sums up, for each file, a digest of all its terms and their frequencies: equal sums mean equal indexes.
    pub fn digests(&self) -> Result<HashMap<FileId, u64>> {
        let mut sums = HashMap::new();
        let fields = self.fields;
        for segment in self.searcher.segment_readers() {
            let files = segment.fast_fields().u64("file").map_err(failed("read"))?.first_or_default_col(0);
            for field in fields.listed() {
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

/// Looks a term up; none where the field does not have it.
fn as_it_stands(segment: &SegmentReader, field: Field, term: &str) -> Result<Vec<(Field, TermInfo)>> {
    let inverted = segment.inverted_index(field).map_err(failed("read"))?;
    let info = inverted.terms().get(term).map_err(|error| failed("read")(error.into()))?;
    Ok(info.into_iter().map(|info| (field, info)).collect())
}

/// Visits the terms that begin with a text, in order, until told to stop.
fn each_term(
    inverted: &InvertedIndexReader,
    opening: &str,
    mut visit: impl FnMut(&str, &TermInfo) -> bool,
) -> Result<()> {
    let range = inverted.terms().range().ge(opening.as_bytes());
    let mut stream = range.into_stream().map_err(|error| failed("read")(error.into()))?;
    while stream.advance() && stream.key().starts_with(opening.as_bytes()) {
        if std::str::from_utf8(stream.key()).is_ok_and(|term| !visit(term, stream.value())) {
            break;
        }
    }
    Ok(())
}

/// Turns a word's summed frequencies into score: idf · (k1 + 1) · tf / (k1 + tf), and clears them for the next word.
fn saturate(scratch: &mut Scratch, k1: f32, weight: f32, touched: &mut DocSet) {
    for doc in scratch.touched.drain(..) {
        touched.insert(doc);
        let index = doc as usize;
        if let (Some(frequency), Some(score)) =
            (scratch.frequency.get_mut(index), scratch.scores.get_mut(index))
        {
            *score += weight * (k1 + 1.0) * *frequency / (k1 + *frequency);
            *frequency = 0.0;
        }
    }
}

fn idf(documents: u64, holding: u64) -> f32 {
    let (all, some) = (documents as f32, holding as f32);
    (1.0 + (all - some + 0.5).max(0.0) / (some + 0.5)).ln()
}

/// A score with a total order.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OrderedScore(f32);

impl Eq for OrderedScore {}

impl PartialOrd for OrderedScore {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedScore {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A set of documents of one segment.
struct DocSet(Bitset);

impl DocSet {
    /// Creates an empty set for a segment of `size` documents.
    fn new(size: u32) -> Self {
        Self(Bitset::with_capacity(size as usize))
    }

    fn insert(&mut self, doc: DocId) {
        self.0.insert(doc as usize);
    }

    /// Adds the documents of a term.
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
