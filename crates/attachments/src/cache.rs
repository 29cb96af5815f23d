//! The cache of texts: a file for each attachment, named by the hash of its bytes.
//!
//! Nothing depends on it: a failure is logged, and the attachment is read again.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::SystemTime;

use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::{platform, safe_open};

use crate::{Format, Hash, Outcome};

/// The version of the reader of attachments. It is raised when a file gives another text than before.
const VERSION: u32 = 1;

/// The most bytes of all texts together. They take a twentieth of their files or less, so this is enough for 20 GB of them.
const MAX_TOTAL: u64 = 1_000_000_000;

/// The most bytes of one text: more than the reader gives.
const MAX_ENTRY: u64 = 200_000_000;

/// The texts below a folder of the user's cache.
#[derive(Debug)]
pub(crate) struct TextCache {
    folder: PathBuf,
    /// Whether old texts were removed, which is done once in a process.
    pruned: Once,
    /// Whether it was said that nothing can be kept.
    failed: Once,
}

impl TextCache {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { folder: root.join(VERSION.to_string()), pruned: Once::new(), failed: Once::new() }
    }

    fn place(&self, hash: &Hash, format: Format) -> PathBuf {
        self.folder.join(format!("{}.{}.json", blake3::Hash::from_bytes(*hash).to_hex(), format.name()))
    }

    /// Returns what is kept of the file with this hash. Entries that another user could have written do not count.
    pub(crate) fn get(&self, hash: &Hash, format: Format) -> Option<Outcome> {
        if !platform::is_own_folder(&self.folder).unwrap_or(false) {
            return None;
        }
        let place = self.place(hash, format);
        let bytes = match safe_open::read_in_place(&place, MAX_ENTRY) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::debug!("{} is not used: {error}", place.display());
                return None;
            }
        };
        let kept = serde_json::from_slice(&bytes);
        kept.inspect_err(|error| tracing::debug!("{} is not used: {error}", place.display())).ok()
    }

    /// Keeps what reading the file with this hash gave.
    pub(crate) fn put(&self, hash: &Hash, format: Format, outcome: &Outcome) {
        if let Err(error) = self.try_put(hash, format, outcome) {
            let folder = self.folder.display();
            self.failed.call_once(|| {
                tracing::warn!(
                    "texts of attachments cannot be kept in {folder}, so searches read them again: {error}"
                );
            });
        }
        self.pruned.call_once(|| prune(&self.folder, MAX_TOTAL));
    }

    fn try_put(&self, hash: &Hash, format: Format, outcome: &Outcome) -> std::io::Result<()> {
        #[expect(clippy::disallowed_methods, reason = "a folder of the user's cache")]
        std::fs::create_dir_all(self.folder.parent().unwrap_or(&self.folder))?;
        if !self.folder.is_dir() {
            platform::make_private_dir(&self.folder)?;
        }
        AtomicFile::new(&self.place(hash, format)).write_bytes(&serde_json::to_vec(outcome)?)
    }
}

/// Removes the oldest files of a folder until all take at most `total` bytes.
fn prune(folder: &Path, total: u64) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return tracing::debug!("{} cannot be listed: {error}", folder.display()),
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let found = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((found.modified().ok()?, found.len(), entry.path()))
        })
        .collect();
    let mut left: u64 = files.iter().map(|(_, length, _)| length).sum();
    files.sort_unstable();
    for (_, length, path) in files {
        if left <= total {
            break;
        }
        #[expect(clippy::disallowed_methods, reason = "the cache's own file")]
        match std::fs::remove_file(&path) {
            Ok(()) => left -= length,
            Err(error) => tracing::debug!("{} cannot be removed: {error}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AttachmentText, Failure};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an entry gets an old time")]
    fn outcomes_are_kept_and_the_oldest_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = TextCache::new(folder.path().join("attachments"));
        let text = AttachmentText { title: Some("Ein Titel".to_owned()), ..AttachmentText::default() };
        let outcomes: [Outcome; 2] = [Ok(text), Err(Failure::TookTooLong)];
        for (at, outcome) in outcomes.iter().enumerate() {
            let hash = [at as u8; 32];
            assert_eq!(cache.get(&hash, Format::Pdf), None);
            cache.put(&hash, Format::Pdf, outcome);
            assert_eq!(cache.get(&hash, Format::Pdf).as_ref(), Some(outcome));
            assert_eq!(cache.get(&hash, Format::Docx), None, "as another format it was not read");
        }
        let old = std::fs::File::options().write(true).open(cache.place(&[0; 32], Format::Pdf)).unwrap();
        old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        prune(&cache.folder, 30);
        assert_eq!(cache.get(&[0; 32], Format::Pdf), None, "the oldest is removed");
        assert_eq!(cache.get(&[1; 32], Format::Pdf).as_ref(), Some(&outcomes[1]), "and no more than needed");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an entry is damaged")]
    fn what_is_no_outcome_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let cache = TextCache::new(folder.path().to_owned());
        cache.put(&[7; 32], Format::Pdf, &Err(Failure::Ended));
        std::fs::write(cache.place(&[7; 32], Format::Pdf), "{\"Ok\":").unwrap();
        assert_eq!(cache.get(&[7; 32], Format::Pdf), None);
    }
}
