//! Making vectors: which passages lack one, in which order they are embedded, and the vectors that other vaults share.

use std::collections::{HashMap, HashSet};

use sidenote_base::error::{ErrorKind, Result};
use sidenote_catalog::{FileId, FileKind, FileRow};
use sidenote_embed::{Effort, Embed};
use sidenote_journal::Journal;
use sidenote_journal::projection::Projection;
use sidenote_memory::usage::NoteRef;
use sidenote_vectors::{VectorRecord, passage_key};

use crate::EmbedReport;
use crate::attachments::text_of;
use crate::indexed_document::ParsedNote;
use crate::shared_vectors::LookupScope;
use crate::writer::Writer;

/// The number of the most used notes that are embedded early.
const MOST_USED: usize = 1000;

/// How much of a file is embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The first passage. It has the title, and tells most of what a note is about.
    FirstPassage,
    /// Every passage.
    Whole,
}

/// A file to embed.
pub(crate) type EmbeddingStep = (FileId, Extent);

/// What lacks vectors.
#[derive(Default)]
struct WithoutVectors {
    passages: HashSet<i64>,
    /// The number of passages of each file, and of those without a vector.
    files: HashMap<FileId, (usize, usize)>,
}

impl Writer {
    /// Finds the passages without a vector, and the files that have them.
    fn without_vectors(&self) -> Result<WithoutVectors> {
        let mut without = WithoutVectors::default();
        if let Some(vectors) = &self.vectors {
            self.catalog.reader().passages().each(|passage, file| {
                let (all, missing) = without.files.entry(file).or_default();
                *all += 1;
                if !vectors.contains(passage) {
                    *missing += 1;
                    without.passages.insert(passage);
                }
            })?;
        }
        without.files.retain(|_, (_, missing)| *missing > 0);
        Ok(without)
    }

    /// Copies the vectors of these passages that other vaults or servers share into the index. Returns their number.
    fn reuse_vectors(&mut self, mut passages: HashSet<i64>, scope: LookupScope) -> Result<usize> {
        let Some(vectors) = &mut self.vectors else { return Ok(0) };
        passages.retain(|passage| !vectors.contains(*passage));
        let mut reused = 0;
        if let Some(shared) = &mut self.shared_vectors {
            reused += shared.take(&mut passages, scope, &mut |records| vectors.append_records(records))?;
        }
        if let Some(service) = &self.service_vectors {
            reused += service.take(&mut passages, &mut |records| vectors.append_records(records))?;
        }
        Ok(reused)
    }

    /// Copies all shared vectors that the index lacks, and then returns the passages to embed: first a passage of each
    /// file that has no vector, then the rest, with the newest and the most used files first. Also returns the number
    /// of vectors that were copied.
    pub(crate) fn embedding_steps(&mut self) -> Result<(Vec<EmbeddingStep>, usize)> {
        let WithoutVectors { passages, mut files } = self.without_vectors()?;
        if files.is_empty() {
            return Ok((Vec::new(), 0));
        }
        self.remove_seal()?;
        let reused = self.reuse_vectors(passages, LookupScope::Everything)?;
        if reused > 0 {
            files = self.without_vectors()?.files;
        }
        let order = self.in_embedding_order(files.keys().copied().collect())?;
        let is_bare = |file: &&FileId| files.get(file).is_some_and(|(all, missing)| all == missing);
        let is_long = |file: &&FileId| files.get(file).is_some_and(|(all, _)| *all > 1);
        let first = order.iter().filter(is_bare).map(|&file| (file, Extent::FirstPassage));
        let rest = order.iter().filter(is_long).map(|&file| (file, Extent::Whole));
        Ok((first.chain(rest).collect(), reused))
    }

    /// Reads what is searched of a file. An attachment without text has no passages.
    fn read_searched(&self, row: &FileRow, halt: &(dyn Fn() -> bool + Sync)) -> Result<Vec<u8>> {
        let bytes = || self.vault.read(&row.path);
        match (row.kind, &self.attachments) {
            (FileKind::Attachment, Some(texts)) => Ok(text_of(texts, row, bytes, halt)?.unwrap_or_default()),
            (FileKind::Attachment, None) => Ok(Vec::new()),
            _ => bytes(),
        }
    }

    /// Orders files for embedding.
    fn in_embedding_order(&mut self, mut waiting: HashSet<FileId>) -> Result<Vec<FileId>> {
        if waiting.is_empty() {
            return Ok(Vec::new());
        }
        let mut order = self.catalog.reader().newest_first(None)?;
        order.retain(|file| waiting.contains(file));
        let used = self.most_used(&waiting)?;
        // Both lists are interleaved, so that both kinds come first.
        let (mut newest, mut used) = (order.into_iter(), used.into_iter());
        let mut order = Vec::with_capacity(waiting.len());
        while newest.len() > 0 {
            for file in [newest.next(), used.next()].into_iter().flatten() {
                if waiting.remove(&file) {
                    order.push(file);
                }
            }
        }
        Ok(order)
    }

    /// Returns those of these files that were used, the most used first.
    fn most_used(&mut self, among: &HashSet<FileId>) -> Result<Vec<FileId>> {
        let journal = Journal::open(&self.vault, &self.vault.records());
        if let Err(error) = Projection::refresh(&mut self.projection, &self.folder, true, &journal) {
            tracing::debug!("the most used notes are not embedded first: {error}");
        }
        let mut found = Vec::new();
        for subject in
            self.projection.iter().flat_map(|projection| projection.ledger().most_used()).take(MOST_USED)
        {
            let rows = match subject {
                NoteRef::Path(path) => self.catalog.reader().row_at(path)?.into_iter().collect(),
                NoteRef::Id(id) => self.catalog.reader().names().best_matches(id)?,
            };
            found.extend(rows.iter().map(|row| row.id).filter(|file| among.contains(file)));
        }
        Ok(found)
    }

    /// Embeds the passages of these steps that lack a vector, and shares the new vectors. Vectors that others share are
    /// not made again. `stop` is called between batches, and `done` with the number of vectors so far.
    pub(crate) fn embed_files(
        &mut self,
        steps: &[EmbeddingStep],
        embedder: &dyn Embed,
        effort: Effort,
        done: &dyn Fn(usize),
        stop: &dyn Fn() -> bool,
    ) -> Result<EmbedReport> {
        let mut waiting: Vec<(i64, String)> = Vec::new();
        let mut seen = HashSet::new();
        let Some(vectors) = &self.vectors else {
            return Ok(EmbedReport::default());
        };
        let whole: HashSet<FileId> =
            steps.iter().filter(|(_, extent)| *extent == Extent::Whole).map(|(file, _)| *file).collect();
        let files: Vec<FileId> = steps.iter().map(|(file, _)| *file).collect();
        for row in self.catalog.reader().rows(&files)? {
            let bytes = match self.read_searched(&row, &|| false) {
                Ok(bytes) => bytes,
                // The next synchronisation removes the file from the index.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    tracing::debug!("{error}");
                    continue;
                }
                // The file cannot be read now. Its passages stay pending.
                Err(error) => {
                    tracing::warn!("{error}");
                    continue;
                }
            };
            let texts = ParsedNote::new(&row.path, bytes).embedded_texts();
            let count = if whole.contains(&row.id) { usize::MAX } else { 1 };
            for text in texts.into_iter().take(count) {
                let passage = passage_key(&text);
                if !vectors.contains(passage) && seen.insert(passage) {
                    waiting.push((passage, text));
                }
            }
        }
        // A caller that embeds all pending passages has looked for shared vectors before.
        let scope = if effort == Effort::Foreground { LookupScope::Everything } else { LookupScope::News };
        let mut report = EmbedReport { embedded: 0, reused: self.reuse_vectors(seen, scope)? };
        let Some(vectors) = &mut self.vectors else { return Ok(report) };
        if report.reused > 0 {
            waiting.retain(|(passage, _)| !vectors.contains(*passage));
            done(report.reused);
        }
        let step = embedder.batch(effort).max(1);
        for group in waiting.chunks(step) {
            if stop() {
                break;
            }
            let texts: Vec<&str> = group.iter().map(|(_, text)| text.as_str()).collect();
            let embedded = embedder.embed(&texts, effort)?;
            let records: Vec<VectorRecord> = group
                .iter()
                .zip(&embedded)
                .map(|((passage, _), vector)| VectorRecord::new(*passage, vector))
                .collect();
            vectors.append_records(&records)?;
            // Only what was computed here is shared: the vectors in the index of a vault may have come with it.
            if let Some(shared) = &mut self.shared_vectors {
                shared.append(&records);
            }
            if let Some(service) = &self.service_vectors {
                service.append(&records);
            }
            report.embedded += records.len();
            done(report.count());
        }
        Ok(report)
    }
}
