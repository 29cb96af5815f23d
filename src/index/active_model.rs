//! Owns which model's vectors answer: those of the model that is set, or, until they are all there, those of the one
//! before.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::index::catalog::CatalogReader;
use crate::index::embed::model_selection::{PreviousModels, model_key};
use crate::index::embed::{Embed, ModelId};
use crate::index::vectors::Vectors;

/// The catalog's name for the model whose vectors were complete last.
pub(super) const SERVING: &str = "serving";

/// Reads the number of the model whose vectors were complete last; 0 where none were.
pub(super) fn named(catalog: &CatalogReader) -> Result<i64> {
    Ok(catalog.meta(SERVING)?.unwrap_or(0))
}

/// Finds the model that serves.
pub(super) struct Serving {
    /// The folder of all models' vectors.
    folder: PathBuf,
    current: Option<Arc<dyn Embed>>,
    earlier: PreviousModels,
    /// The last earlier model that was looked for, and whether it can be had.
    found: Mutex<Option<Sought>>,
}

/// An earlier model that was looked for.
struct Sought {
    key: i64,
    model: Option<Arc<dyn Embed>>,
}

/// A model whose vectors answer.
pub(super) struct Served {
    pub(super) model: Option<Arc<dyn Embed>>,
    pub(super) folder: Option<PathBuf>,
    pub(super) is_former: bool,
}

impl Serving {
    pub(super) fn new(index: &Path, current: Option<Arc<dyn Embed>>, earlier: PreviousModels) -> Self {
        Self { folder: index.join("vectors"), current, earlier, found: Mutex::new(None) }
    }

    /// Gives the folder of a model's vectors.
    pub(super) fn folder_of(&self, id: &ModelId) -> PathBuf {
        self.folder.join(id.folder())
    }

    /// Gives the folder of the vectors of the model that is set, and their length.
    pub(super) fn place(&self) -> Option<(PathBuf, usize)> {
        let id = self.current.as_ref()?.model();
        Some((self.folder_of(id), id.dimensions()))
    }

    /// Says which model serves, where the catalog [names](named) this one; making an earlier model may take a moment.
    pub(super) fn now(&self, named: i64) -> Served {
        let Some(current) = &self.current else {
            return Served { model: None, folder: None, is_former: false };
        };
        let served = |model: Arc<dyn Embed>, is_former| {
            let folder = Some(self.folder_of(model.model()));
            Served { model: Some(model), folder, is_former }
        };
        if named == 0 || named == model_key(current.model()) {
            return served(Arc::clone(current), false);
        }
        // Its vectors may have gone with the folder of the index.
        let former = self.former(named).filter(|model| self.folder_of(model.model()).join("keys").exists());
        former.map_or_else(|| served(Arc::clone(current), false), |model| served(model, true))
    }

    fn former(&self, key: i64) -> Option<Arc<dyn Embed>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match &*found {
            Some(sought) if sought.key == key => sought.model.clone(),
            _ => {
                let model = self.earlier.find(key);
                *found = Some(Sought { key, model: model.clone() });
                model
            }
        }
    }
}

impl Served {
    /// Gives the number that the model's vectors are known by.
    pub(super) fn key(&self) -> Option<i64> {
        self.model.as_ref().map(|model| model_key(model.model()))
    }

    /// Opens the vectors.
    pub(super) fn open(&self) -> Result<Vectors> {
        match (&self.folder, &self.model) {
            (Some(folder), Some(model)) => Vectors::open(folder, model.dimensions()),
            _ => Ok(Vectors::empty(0)),
        }
    }

    /// Gives folder and length of the vectors, where an earlier model's serve.
    pub(super) fn former_place(&self) -> Option<(PathBuf, usize)> {
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
