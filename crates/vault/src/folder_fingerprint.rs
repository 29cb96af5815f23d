//! The fingerprint of the files in one folder: their names, sizes and times, in no order. Equal fingerprints mean that
//! a scan can see no added, removed or changed file.

use std::collections::HashMap;
use std::hash::Hasher as _;

use sidenote_markdown::path::NotePath;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::folder_listings::FolderListings;

/// The sum of a hash of each file in a folder, subfolders left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FolderFingerprint {
    /// The number of files.
    pub files: i64,
    /// The sum of the hashes, which wraps around.
    pub sum: u128,
}

impl FolderFingerprint {
    /// Adds a file, given by its name in the folder.
    pub fn add(&mut self, name: &str, size: u64, (mtime_ns, ctime_ns): (i64, i64), excluded: bool) {
        self.files += 1;
        self.sum = self.sum.wrapping_add(hash_of(name, size, (mtime_ns, ctime_ns), excluded));
    }

    /// Takes a file out that was added.
    pub fn subtract(&mut self, name: &str, size: u64, (mtime_ns, ctime_ns): (i64, i64), excluded: bool) {
        self.files -= 1;
        self.sum = self.sum.wrapping_sub(hash_of(name, size, (mtime_ns, ctime_ns), excluded));
    }

    /// Adds the files of another fingerprint.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { files: self.files + other.files, sum: self.sum.wrapping_add(other.sum) }
    }
}

/// Hashes the values by which a change of a file is detected, by SipHash-1-3, because a scan does it for every file. An
/// attacker who can choose all these values can deceive a comparison of the values themselves, too.
fn hash_of(name: &str, size: u64, (mtime_ns, ctime_ns): (i64, i64), excluded: bool) -> u128 {
    let mut hasher = SipHasher13::new();
    let mut stat = [0; 25];
    stat[..8].copy_from_slice(&size.to_le_bytes());
    stat[8..16].copy_from_slice(&mtime_ns.to_le_bytes());
    stat[16..24].copy_from_slice(&ctime_ns.to_le_bytes());
    stat[24] = u8::from(excluded);
    hasher.write(&stat);
    hasher.write(name.as_bytes());
    hasher.finish128().as_u128()
}

/// What is known of the folders of a vault, so that a scan need not return the files of those that are unchanged, nor list them.
pub struct KnownFolders<'a> {
    /// The folders with files, each with its fingerprint; `None` if equal times of its files prove nothing.
    pub fingerprints: &'a HashMap<String, Option<FolderFingerprint>>,
    /// Whether the settings exclude a file; `None` if they exclude none.
    pub is_excluded: Option<&'a (dyn Fn(&NotePath) -> bool + Sync)>,
    /// The entries that the last scan listed.
    pub listings: &'a FolderListings,
}

impl std::fmt::Debug for KnownFolders<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownFolders").field("folders", &self.fingerprints.len()).finish_non_exhaustive()
    }
}
