//! The files in the trash and the operations that deleted them, held in memory until the trash or the journal changes.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};
use sidenote_journal::Journal;
use sidenote_journal::event::Event;
use sidenote_journal::reader::ReadOrder;
use sidenote_markdown::edit::FileLocation;
use sidenote_markdown::path::NotePath;
use sidenote_vault::Vault;

/// The most files of the trash that are listed.
const MOST_TRASH: usize = 1_000;
/// The folder of the trash.
const TRASH: &str = ".trash";

/// A file that was moved to the trash and is there.
#[derive(Debug, Clone)]
pub struct Deletion {
    /// When it was deleted.
    pub at: Timestamp,
    /// Who deleted it.
    pub agent: String,
    /// The id of the operation.
    pub operation: String,
    /// Its path in the trash.
    pub place: String,
    /// The path that it had.
    pub was: NotePath,
}

/// What tells whether files were added to the trash or removed from it, and whether events were added to the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    trash: blake3::Hash,
    /// The number of files in the trash.
    files: usize,
    journal: Vec<(String, u64)>,
}

/// The deletions as they were found last.
#[derive(Debug)]
pub struct KnownDeletions {
    stamp: Stamp,
    found: Arc<[Deletion]>,
}

impl KnownDeletions {
    /// Returns where the files in the trash come from, the last deleted one first. The journal is read only if it or the
    /// trash changed, and no further than to the oldest deletion. `agent_of` names who made an event.
    ///
    /// # Errors
    /// `Io` if the journal or the trash cannot be read.
    pub fn refreshed(
        known: &mut Option<Self>,
        vault: &Vault,
        journal: &Journal,
        agent_of: impl Fn(&Event) -> &str,
    ) -> Result<Arc<[Deletion]>> {
        let stamp = stamp(vault.root(), journal)?;
        if let Some(known) = known.as_ref().filter(|known| known.stamp == stamp) {
            return Ok(Arc::clone(&known.found));
        }
        let found: Arc<[Deletion]> = find(vault, journal, stamp.files, agent_of)?.into();
        *known = Some(Self { stamp, found: Arc::clone(&found) });
        Ok(found)
    }
}

/// Looks at the folders of the trash and the lengths of the journal's files.
fn stamp(root: &Path, journal: &Journal) -> Result<Stamp> {
    let mut hasher = blake3::Hasher::new();
    let mut files = 0;
    let bin = root.join(TRASH);
    // A symbolic link in the place of the trash is not followed.
    if safe_open::folder(root, Path::new(TRASH)).is_ok() {
        for entry in walkdir::WalkDir::new(&bin).sort_by_file_name() {
            // A folder that is removed meanwhile has no files.
            let Ok(entry) = entry else { continue };
            if entry.file_type().is_dir() {
                let found = platform::entry_metadata(entry.path());
                let found = found.map_err(|error| Error::io("read", entry.path(), error))?;
                let (seconds, nanos) = found.changed;
                hasher.update(entry.path().as_os_str().as_encoded_bytes());
                hasher.update(&seconds.to_le_bytes()).update(&nanos.to_le_bytes());
            } else {
                files += 1;
            }
        }
    }
    Ok(Stamp { trash: hasher.finalize(), files, journal: journal.lengths_of_changes()? })
}

/// Reads the journal from its end until it told of all `files` in the trash.
fn find(
    vault: &Vault,
    journal: &Journal,
    files: usize,
    agent_of: impl Fn(&Event) -> &str,
) -> Result<Vec<Deletion>> {
    let wanted = files.min(MOST_TRASH);
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    if wanted == 0 {
        return Ok(found);
    }
    for event in journal.events(ReadOrder::NewestFirst)?.of_changes() {
        let event = event?;
        for file in &event.files {
            let FileLocation::Trash(former) = file.end() else { continue };
            let place = file.end().to_string();
            if seen.insert(place.clone()) && vault.open_trashed(former).is_ok() {
                let was = file.path.in_vault().unwrap_or(former).clone();
                let (agent, operation) = (agent_of(&event).to_owned(), event.id.clone());
                found.push(Deletion { at: event.at, agent, operation, place, was });
            }
        }
        if found.len() >= wanted {
            break;
        }
    }
    found.truncate(MOST_TRASH);
    Ok(found)
}
