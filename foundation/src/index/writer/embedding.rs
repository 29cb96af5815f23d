//! Making vectors: what lacks one, in which order it is embedded, and the vectors that other vaults share.

use std::collections::HashSet;

use crate::error::Result;
use crate::index::EmbedReport;
use crate::index::catalog::FileId;
use crate::index::embed::{Effort, Embed};
use crate::index::indexed_document::ParsedNote;
use crate::index::shared_vectors::LookupScope;
use crate::index::vectors::{VectorRecord, passage_key};
use crate::index::writer::Writer;
use crate::journal::Journal;
use crate::journal::projection::Projection;
use crate::memory::usage::NoteRef;

/// The number of the most used notes that are embedded early.
const MOST_USED: usize = 1000;

impl Writer {
    /// Returns the passages without a vector, and the files that have them.
    fn without_vectors(&self) -> Result<(HashSet<i64>, HashSet<FileId>)> {
        let (mut passages, mut files) = (HashSet::new(), HashSet::new());
        if let Some(vectors) = &self.vectors {
            self.catalog.reader().passages().each(|passage, file| {
                if !vectors.contains(passage) {
                    passages.insert(passage);
                    files.insert(file);
                }
            })?;
        }
        Ok((passages, files))
    }

    /// Copies the vectors of these passages that other vaults share into the index. Returns their number.
    fn reuse_vectors(&mut self, mut passages: HashSet<i64>, scope: LookupScope) -> Result<usize> {
        let (Some(vectors), Some(shared)) = (&mut self.vectors, &mut self.shared_vectors) else {
            return Ok(0);
        };
        passages.retain(|passage| !vectors.contains(*passage));
        shared.take(&mut passages, scope, &mut |records| vectors.append_records(records))
    }

    /// Copies all shared vectors that the index lacks, and then returns the files that have passages without a vector,
    /// with the newest and the most used first, and the number of vectors that were copied.
    pub(crate) fn files_without_vectors(&mut self) -> Result<(Vec<FileId>, usize)> {
        let (passages, mut waiting) = self.without_vectors()?;
        if waiting.is_empty() {
            return Ok((Vec::new(), 0));
        }
        self.remove_seal()?;
        let reused = self.reuse_vectors(passages, LookupScope::Everything)?;
        if reused > 0 {
            waiting = self.without_vectors()?.1;
        }
        Ok((self.in_embedding_order(waiting)?, reused))
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

    /// Embeds the passages of these files that lack a vector, and shares the new vectors. Vectors that others share are not
    /// made again. `stop` is called between batches, and `done` with the number of vectors so far.
    pub(crate) fn embed_files(
        &mut self,
        files: &[FileId],
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
        for row in self.catalog.reader().rows(files)? {
            let bytes = match self.vault.read(&row.path) {
                Ok(bytes) => bytes,
                // The file is gone or cannot be read now. Its passages stay pending.
                Err(error) => {
                    tracing::warn!("{error}");
                    continue;
                }
            };
            for text in ParsedNote::new(&row.path, bytes).embedded_texts() {
                let passage = passage_key(&text);
                if !vectors.contains(passage) && seen.insert(passage) {
                    waiting.push((passage, text));
                }
            }
        }
        // Whoever embeds all pending passages has looked for them before.
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
            report.embedded += records.len();
            done(report.count());
        }
        Ok(report)
    }
}
