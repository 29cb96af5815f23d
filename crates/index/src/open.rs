//! Opening an index: for reading beside the process that writes it, or for writing, which repairs damage.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sidenote_base::atomic_file::remove_if_there;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_bm25::Bm25;
use sidenote_catalog::{CatalogWriter, RELATION_RULES, ReaderPool};
use sidenote_embed::model_selection::model_key;
use sidenote_vault::Vault;
use sidenote_vectors::VectorWriter;

use crate::active_model::{ActiveModelResolver, completed_model};
use crate::directory::{Identity, identity_of};
use crate::service_vectors::ServiceVectors;
use crate::shared_vectors::{SharedVectorLimits, SharedVectors};
use crate::writer::{NextSync, OtherVectors, State, Writer};
use crate::{CREATION_TIMEOUT, Options, checksums, directory};

/// An index that was opened for writing.
pub(super) struct Opened {
    pub(super) writer: Writer,
    pub(super) readers: Readers,
    pub(super) notices: Vec<String>,
}

/// What an index is read through.
pub(super) struct Readers {
    pub(super) catalog: Arc<ReaderPool>,
    pub(super) bm25: Arc<Bm25>,
    /// The identity of the open catalog; see [`Identity`].
    pub(super) identity: Option<(u64, u64)>,
}

/// Returns whether an error of opening the index may be temporary: another process creates, replaces or locks the
/// index, or took the lock a moment ago and may be about to repair it.
pub(super) fn can_pass(error: &Error, folder: &Path, before: Option<(u64, u64)>) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict)
        || identity_of(folder) != before
        || directory::is_lock_newer_than(folder, CREATION_TIMEOUT)
}

/// Opens an index for reading beside the process that writes it.
pub(super) fn open_to_read(folder: &Path) -> Result<Readers> {
    // The identity is read first, so that the next check notices a replacement.
    let mut identity = identity_of(folder);
    let path = folder.join("catalog.db");
    let mut opened = ReaderPool::open(&path);
    // A catalog that is replaced while it is opened would be read with the log of the new one.
    while identity_of(folder) != identity {
        identity = identity_of(folder);
        opened = ReaderPool::open(&path);
    }
    Ok(Readers { catalog: opened?, bm25: Arc::new(Bm25::open(&folder.join("bm25"), false)?), identity })
}

/// Opens an index whose lock this process holds, and repairs it if it is damaged.
pub(super) fn open_to_write(
    vault: &Arc<Vault>,
    options: &Options,
    folder: &Path,
    identity: &Arc<Identity>,
    models: &ActiveModelResolver,
) -> Result<Opened> {
    let vector_folder = models.configured_vectors();
    let mut notices = Vec::new();
    let mut verdict = checksums::check(folder)?;
    if let checksums::Verdict::Damaged(files) = &verdict {
        if let Some(file) = files.iter().find(|file| !file.starts_with("vectors")) {
            if !options.rebuild {
                notices.push(format!("{file} in the index was damaged; the index is rebuilt from the notes"));
            }
            directory::wipe(folder)?;
        } else if let Some(file) = files.first() {
            notices.push(format!(
                "{file} in the index was damaged; vectors with a wrong checksum are made again"
            ));
        }
    }
    let is_doubtful = matches!(verdict, checksums::Verdict::Unsealed | checksums::Verdict::Touched);
    let (catalog, bm25) = match open_catalog_and_text(folder, is_doubtful) {
        Ok(readers) => readers,
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            if !options.rebuild {
                notices.push(format!("{}; the index is rebuilt from the notes", error.message()));
            }
            directory::wipe(folder)?;
            verdict = checksums::Verdict::Unsealed;
            open_catalog_and_text(folder, false)?
        }
        Err(error) => return Err(error),
    };
    let whole = verdict == checksums::Verdict::Intact && !options.rebuild;
    if !whole {
        checksums::remove_seal(folder)?;
        directory::remove_staged(folder)?;
        let former = models.resolve(completed_model(catalog.reader())?).former_vectors();
        let repaired = repair_vectors(folder, vector_folder.as_ref(), former.as_ref(), &verdict)?;
        notices.extend(repaired.filter(|_| notices.is_empty()));
    }
    // An empty catalog has no rules yet, and a new one is filled anyway.
    let rules = catalog.reader().meta(RELATION_RULES)?;
    let has_other_rules = rules.is_some_and(|rules| rules != options.relations.fingerprint());
    let mut writer =
        Writer {
            folder: folder.to_owned(),
            vault: Arc::clone(vault),
            identity: Arc::clone(identity),
            state: if whole { State::Sealed } else { State::Open },
            next_sync: if options.rebuild || has_other_rules { NextSync::Rebuild } else { NextSync::Changes },
            relations: Arc::clone(&options.relations),
            attachments: options.attachments.clone(),
            catalog,
            bm25: Arc::clone(&bm25),
            full_text: None,
            has_loaded: false,
            vectors: None,
            shared_vectors: options.shared_vectors.as_deref().zip(options.embedder.as_deref()).map(
                |(folder, embedder)| SharedVectors::new(folder, embedder, SharedVectorLimits::default()),
            ),
            service_vectors: options
                .embedder
                .as_deref()
                .and_then(|embedder| ServiceVectors::new(vault, embedder)),
            vector_folder,
            model: options.embedder.as_ref().map_or(0, |embedder| model_key(embedder.model())),
            other_vectors: OtherVectors::Keep,
            checkpointing: None,
            projection: None,
            split_moves: crate::writer::split_moves::SplitMoves::default(),
        };
    if !whole || writer.counts_another_model()? {
        writer.recount()?;
        writer.remove_unused_vectors()?;
    }
    let catalog = ReaderPool::open(&folder.join("catalog.db"))?;
    Ok(Opened { writer, readers: Readers { catalog, bm25, identity: identity_of(folder) }, notices })
}

/// Drops vectors whose checksum does not match, and damaged logs of models that are not in use. Returns a notice
/// about it.
fn repair_vectors(
    folder: &Path,
    model: Option<&(PathBuf, usize)>,
    former: Option<&(PathBuf, usize)>,
    verdict: &checksums::Verdict,
) -> Result<Option<String>> {
    if let Some((path, dimensions)) = former {
        VectorWriter::open(path, *dimensions, true)?;
    }
    let damaged: &[String] = if let checksums::Verdict::Damaged(files) = verdict { files } else { &[] };
    for path in damaged.iter().filter(|file| file.starts_with("vectors")).map(|file| folder.join(file)) {
        let is_of =
            |place: Option<&(PathBuf, usize)>| path.parent() == place.map(|(folder, _)| folder.as_path());
        if !is_of(model) && !is_of(former) {
            // The vectors of a model that is not in use cannot be checked. If it is used again, its passages are
            // embedded again.
            remove_if_there(&path)?;
        }
    }
    let Some((path, dimensions)) = model else { return Ok(None) };
    let had_some = path.join("keys").exists();
    let (_, dropped) = VectorWriter::open(path, *dimensions, true)?;
    let said = format!("{dropped} damaged vectors were dropped; their passages are embedded again");
    Ok((dropped > 0 && had_some).then_some(said))
}

/// Opens catalog and full text for writing. If `verify` is set, because there is no valid seal, they are checked.
fn open_catalog_and_text(folder: &Path, verify: bool) -> Result<(CatalogWriter, Arc<Bm25>)> {
    let catalog = CatalogWriter::open(&folder.join("catalog.db"))?;
    // Whatever prevents the full text from being opened, rebuilding it helps. Damaged data can even cause a panic
    // in its reader.
    let opened = std::panic::catch_unwind(|| Bm25::open(&folder.join("bm25"), true));
    let unusable = || Error::corrupt("the full-text index cannot be opened");
    let bm25 = match opened {
        Ok(Err(error)) if folder.join("bm25").is_dir() => return Err(unusable().with_source(error)),
        Ok(opened) => opened?,
        Err(_) => return Err(unusable()),
    };
    if verify {
        catalog.reader().verify()?;
        // If the generations differ, the next sync completes the catalog.
        let is_whole = || Ok::<_, Error>(bm25.generation()? == catalog.reader().generation()?);
        let sound = std::panic::catch_unwind(AssertUnwindSafe(|| {
            bm25.verify()?;
            if is_whole()? { bm25.verify_files(&catalog.reader().full_text_files()?) } else { Ok(()) }
        }));
        sound.map_err(|_| unusable())??;
    } else if checksums::are_paths_checked(folder) {
        catalog.reader().paths().trust();
    } else {
        catalog.reader().paths().check_soon(&folder.join("catalog.db"));
    }
    Ok((catalog, Arc::new(bm25)))
}
