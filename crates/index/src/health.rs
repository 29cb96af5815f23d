//! The health of an index: what opening it would find, determined without opening it for writing, taking its lock or
//! repairing anything.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_bm25::Bm25;
use sidenote_catalog::{CatalogReader, Counts, SCHEMA_VERSION};
use sidenote_embed::model_selection::{PreviousModels, model_key};
use sidenote_embed::{Embed, ModelId};
use sidenote_vault::Vault;
use sidenote_vectors as vectors;

use crate::active_model::completed_model;
use crate::checksums::Verdict;
use crate::directory::{Holder, folder_size, holder, present_index_folder, refuse_links};
use crate::{checksums, diff};

/// The health of an index.
#[derive(Debug)]
pub struct IndexHealth {
    /// The index folder.
    pub folder: PathBuf,
    /// Whether the folder holds an index.
    pub exists: bool,
    /// The process that writes the index, if one does.
    pub holder: Option<Holder>,
    /// Whether the last writer closed the index. If not, the next command checks all of it.
    pub is_sealed: bool,
    /// The version of the schema, if it can be read.
    pub schema: Option<i64>,
    /// What is damaged, a sentence each.
    pub damage: Vec<String>,
    /// What the index holds, if it is of this version and not damaged.
    pub contents: Option<IndexContents>,
}

/// The content of an index that can be read.
#[derive(Debug)]
pub struct IndexContents {
    /// The number of batches committed.
    pub generation: i64,
    /// The totals.
    pub counts: Counts,
    /// The number of files that differ from the index.
    pub stale: usize,
    /// The number of files of a batch that was not finished.
    pub unfinished: usize,
    /// The size on the disk in bytes.
    pub bytes: u64,
    /// The vectors of the configured model, if there is one.
    pub vectors: Option<VectorHealth>,
}

/// The vectors of the configured model.
#[derive(Debug)]
pub struct VectorHealth {
    /// The number of vectors.
    pub count: usize,
    /// The number of vectors whose checksum does not match.
    pub damaged: usize,
    /// The number of passages without a vector; `None` if they were last counted for another model.
    pub pending: Option<usize>,
    /// Whether the vectors of the model before are searched until those of this one are complete.
    pub is_former_used: bool,
}

impl IndexHealth {
    /// Says whether the index was written by a version of sidenote with another schema.
    pub fn is_of_other_version(&self) -> bool {
        self.schema.is_some_and(|schema| schema != SCHEMA_VERSION)
    }

    /// Examines the index of a vault in `folder`, or where a command would look for it. `model` is the configured model, with
    /// those before it.
    ///
    /// # Errors
    /// `Invalid` if a symbolic link leads to the folder; `Io` if it cannot be read.
    pub fn examine(
        vault: &Vault,
        folder: Option<&Path>,
        model: Option<(&ModelId, &PreviousModels)>,
    ) -> Result<Self> {
        let folder = folder.map_or_else(|| present_index_folder(vault.root()), Path::to_owned);
        refuse_links(vault.root(), &folder)?;
        let mut health = Self {
            exists: folder.join("catalog.db").exists(),
            holder: holder(&folder),
            folder,
            is_sealed: false,
            schema: None,
            damage: Vec::new(),
            contents: None,
        };
        if health.exists {
            health.look_into(vault, model)?;
        }
        Ok(health)
    }

    fn look_into(&mut self, vault: &Vault, model: Option<(&ModelId, &PreviousModels)>) -> Result<()> {
        let verdict = checksums::check_all(&self.folder)?;
        self.is_sealed = matches!(verdict, Verdict::Intact | Verdict::Touched);
        if let Verdict::Damaged(files) = &verdict {
            self.damage.extend(files.iter().map(|file| format!("{file} does not match its checksum")));
        }
        let examined = CatalogReader::open_to_examine(&self.folder.join("catalog.db"), self.holder.is_some());
        let read = examined.and_then(|catalog| {
            self.schema = catalog.meta("schema").ok().flatten();
            if self.is_of_other_version() {
                return Ok(None);
            }
            catalog.check_version()?;
            if !self.is_sealed {
                catalog.in_transaction(|| catalog.verify())?;
                self.verify_full_text()?;
            }
            self.contents(vault, &catalog, model).map(Some)
        });
        match read {
            Ok(contents) => self.contents = contents,
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                if self.damage.is_empty() {
                    self.damage.push(error.message().to_owned());
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn verify_full_text(&self) -> Result<()> {
        let folder = self.folder.join("bm25");
        // Damaged data can cause a panic in its reader.
        let verified = std::panic::catch_unwind(AssertUnwindSafe(|| Bm25::verify_in(&folder)));
        let unusable = || Error::corrupt("the full-text index cannot be opened");
        verified.map_err(|_| unusable())?.map_err(|error| match error.kind() {
            ErrorKind::Corrupt => error,
            _ => unusable().with_source(error),
        })
    }

    fn contents(
        &self,
        vault: &Vault,
        catalog: &CatalogReader,
        model: Option<(&ModelId, &PreviousModels)>,
    ) -> Result<IndexContents> {
        let vectors = model.map(|(model, earlier)| self.vectors(catalog, model, earlier)).transpose()?;
        Ok(IndexContents {
            generation: catalog.generation()?,
            counts: catalog.totals().counts()?,
            stale: diff::drift(vault, catalog)?.len(),
            unfinished: catalog.intents()?.len(),
            bytes: folder_size(&self.folder)?,
            vectors,
        })
    }

    fn vectors(
        &self,
        catalog: &CatalogReader,
        model: &ModelId,
        earlier: &PreviousModels,
    ) -> Result<VectorHealth> {
        let folder_of = |model: &ModelId| self.folder.join("vectors").join(model.folder());
        let folder = folder_of(model);
        let (count, damaged) = vectors::verify(&folder, model.dimensions())?;
        let key = model_key(model);
        let is_counted = catalog.meta("model")? == Some(key);
        let pending = catalog.meta("pending")?.and_then(|pending| usize::try_from(pending).ok());
        let completed = completed_model(catalog)?;
        let has_vectors = |former: Arc<dyn Embed>| folder_of(former.model()).join("keys").exists();
        Ok(VectorHealth {
            count,
            damaged,
            pending: pending.filter(|_| is_counted),
            is_former_used: completed != 0
                && completed != key
                && earlier.find(completed).is_some_and(has_vectors),
        })
    }
}
