//! The active model: the one whose vectors are searched. It is the configured model or, until its vectors are
//! complete, the previous one.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sidenote_base::error::{Error, Result};
use sidenote_catalog::{COMPLETED_MODEL, CatalogReader};
use sidenote_embed::model_selection::{PreviousModels, model_key};
use sidenote_embed::{Embed, ModelId};
use sidenote_vectors::Vectors;

/// Returns the key of the model whose vectors were complete last, or 0 if there is none.
pub(super) fn completed_model(catalog: &CatalogReader) -> Result<i64> {
    Ok(catalog.meta(COMPLETED_MODEL)?.unwrap_or(0))
}

/// Determines the active model.
pub(super) struct ActiveModelResolver {
    /// The folder of the vectors of all models.
    folder: PathBuf,
    current: Option<Arc<dyn Embed>>,
    earlier: PreviousModels,
    /// The last previous model that was looked up.
    found: Mutex<Option<FormerModel>>,
}

/// The result of looking up a previous model.
struct FormerModel {
    key: i64,
    model: Option<Arc<dyn Embed>>,
}

/// A model whose vectors are searched.
pub(super) struct ActiveModel {
    pub(super) model: Option<Arc<dyn Embed>>,
    pub(super) folder: Option<PathBuf>,
    pub(super) is_former: bool,
}

impl ActiveModelResolver {
    pub(super) fn new(index: &Path, current: Option<Arc<dyn Embed>>, earlier: PreviousModels) -> Self {
        Self { folder: index.join("vectors"), current, earlier, found: Mutex::new(None) }
    }

    /// Returns the folder of a model's vectors.
    pub(super) fn folder_of(&self, id: &ModelId) -> PathBuf {
        self.folder.join(id.folder())
    }

    /// Returns the folder and the dimensions of the vectors of the configured model.
    pub(super) fn configured_vectors(&self) -> Option<(PathBuf, usize)> {
        let id = self.current.as_ref()?.model();
        Some((self.folder_of(id), id.dimensions()))
    }

    /// Determines the active model. `completed` is the key from [`completed_model`]. Loading a previous model can
    /// take a moment.
    pub(super) fn resolve(&self, completed: i64) -> ActiveModel {
        let Some(current) = &self.current else {
            return ActiveModel { model: None, folder: None, is_former: false };
        };
        let active = |model: Arc<dyn Embed>, is_former| {
            let folder = Some(self.folder_of(model.model()));
            ActiveModel { model: Some(model), folder, is_former }
        };
        if completed == 0 || completed == model_key(current.model()) {
            return active(Arc::clone(current), false);
        }
        // Its vectors may have been deleted with the index folder.
        let former =
            self.former(completed).filter(|model| self.folder_of(model.model()).join("keys").exists());
        former.map_or_else(|| active(Arc::clone(current), false), |model| active(model, true))
    }

    fn former(&self, key: i64) -> Option<Arc<dyn Embed>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match &*found {
            Some(cached) if cached.key == key => cached.model.clone(),
            _ => {
                let model = self.earlier.find(key);
                *found = Some(FormerModel { key, model: model.clone() });
                model
            }
        }
    }
}

impl ActiveModel {
    /// Returns the key of the model.
    pub(super) fn key(&self) -> Option<i64> {
        self.model.as_ref().map(|model| model_key(model.model()))
    }

    /// Opens the vectors of the model.
    pub(super) fn open(&self) -> Result<Vectors> {
        match (&self.folder, &self.model) {
            (Some(folder), Some(model)) => {
                Ok(Vectors::open(folder, model.dimensions())?.with_mean_passage(model.mean_passage()))
            }
            _ => Ok(Vectors::empty(0)),
        }
    }

    /// Returns the folder and the dimensions of the vectors if a previous model is active.
    pub(super) fn former_vectors(&self) -> Option<(PathBuf, usize)> {
        let model = self.model.as_ref().filter(|_| self.is_former)?;
        Some((self.folder.clone()?, model.dimensions()))
    }
}

/// Removes the vectors of all models but one.
pub(super) fn remove_others(index: &Path, keep: &Path) -> Result<()> {
    let folder = index.join("vectors");
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("list", &folder, error)),
    };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path != keep && path.is_dir()) {
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own folder")]
        std::fs::remove_dir_all(&path).map_err(|error| Error::io("remove", &path, error))?;
    }
    Ok(())
}
