//! The comparison of the files with the index: which files are new, changed, moved or removed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::Path;

use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{CatalogReader, FileId, FileKind, FolderEntry, Hash, IndexedFile, Stat};
use sidenote_links::dialect::LinkDialect;
use sidenote_links::dialect_evidence::DialectCounts;
use sidenote_markdown::path::NotePath;
use sidenote_vault::Vault;
use sidenote_vault::folder_fingerprint::KnownFolders;
use sidenote_vault::folder_listings::{FolderListings, ScannedFolders};
use sidenote_vault::obsidian::Settings;
use sidenote_vault::scan::{
    DirListing, FileStat, ListedEntries, ListedFolders, ListedNames, ScanGaps, scan_each,
};

use crate::{Phase, Progress, SyncScope};

/// What a sync found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SyncReport {
    /// The number of files that were compared.
    pub scanned: usize,
    /// The maximum number of files in memory at a time: those of one folder, and those that differ.
    #[serde(skip)]
    pub peak_files: usize,
    /// The number of files that were read.
    pub read: usize,
    /// The number of bytes that were read.
    pub bytes: u64,
    /// The number of new files.
    pub added: usize,
    /// The number of files with changed content.
    pub changed: usize,
    /// The number of moved files, recognised by their hash.
    pub moved: usize,
    /// The old and the new path of each moved file.
    #[serde(skip)]
    pub moves: Vec<(NotePath, NotePath)>,
    /// The number of removed files.
    pub removed: usize,
    /// The number of files of which only the times changed.
    #[serde(skip)]
    pub retimed: usize,
    /// The paths of the files that were added, changed, moved or removed, both the old and the new ones.
    #[serde(skip)]
    pub touched: Vec<NotePath>,
    /// Sentences about files that could not be read; each names its path.
    pub warnings: Vec<String>,
    /// How the link dialect of the vault changed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect_change: Option<DialectChange>,
    /// The instructions that SQLite executed for the queries of the batch, for tests of how batches grow.
    #[serde(skip)]
    pub steps: u64,
    /// The generation of the index after the sync.
    pub generation: i64,
}

/// A change of the dialect by which the links of a vault are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DialectChange {
    /// The dialect until then.
    pub before: LinkDialect,
    /// The dialect from then on.
    pub now: LinkDialect,
    /// What decided, as a phrase.
    pub reason: String,
    /// How many links lead to a file under each dialect.
    pub counts: DialectCounts,
}

impl fmt::Display for DialectChange {
    /// Says the change and how to prevent it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, now, reason, counts } = self;
        write!(
            f,
            "Markdown links are read by the rules of {now} from now on, and no longer by those of {before}: {reason}"
        )?;
        if counts.links > 0 {
            let (links, one, other) = (counts.links, counts.of(*now), counts.of(*before));
            write!(f, " (of {links} links, {one} lead to a file by {now} and {other} by {before})")?;
        }
        write!(f, "; links.dialect = \"{before}\" in the settings keeps the former rules")
    }
}

impl SyncReport {
    /// Returns whether any file was new, changed, moved or removed.
    pub fn changed_anything(&self) -> bool {
        self.added + self.changed + self.moved + self.removed > 0
    }
}

/// A file that has to be read, because it is new or differs from the index. A load has one for each file of the vault until
/// its end, so it is small.
pub(super) struct ChangedFile {
    pub(super) stat: FileStat,
    pub(super) id: FileId,
    pub(super) is_new: bool,
    pub(super) excluded: bool,
    /// What is known of the file from before; `None` for a new one.
    old: Option<Box<OldFile>>,
}

/// What is known of a changed file from before.
#[derive(Default)]
struct OldFile {
    hash: Option<Hash>,
    /// The path from which the file was moved.
    path: Option<NotePath>,
}

#[cfg(target_pointer_width = "64")]
const _: () =
    assert!(size_of::<FileStat>() <= 48 && size_of::<ChangedFile>() <= 72, "a load takes more memory");

impl ChangedFile {
    /// Returns the hash of the content that is indexed. Without one, no content counts as equal.
    pub(super) fn old_hash(&self) -> Option<&Hash> {
        self.old.as_ref()?.hash.as_ref()
    }

    /// Returns the path from which the file was moved.
    pub(super) fn old_path(&self) -> Option<&NotePath> {
        self.old.as_ref()?.path.as_ref()
    }
}

/// What an unfinished batch left to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redo {
    /// No batch is unfinished.
    Nothing,
    /// These files have to be indexed again.
    Paths(HashSet<String>),
    /// All files have to be indexed again.
    All,
}

impl Redo {
    /// Returns whether a file must be read even if its size and times are unchanged.
    fn covers(&self, path: &NotePath) -> bool {
        match self {
            Self::Nothing => false,
            Self::Paths(paths) => paths.contains(path.as_str()),
            Self::All => true,
        }
    }
}

/// The differences between the files and the index.
pub(super) struct FileChanges {
    pub(super) changed: Vec<ChangedFile>,
    pub(super) removed: Vec<IndexedFile>,
    pub(super) report: SyncReport,
}

impl FileChanges {
    /// Treats every file as new, as if nothing were indexed. Each file keeps its number, because a reader may read full
    /// text and catalog between their commits.
    pub(super) fn treat_all_as_new(&mut self) {
        for file in &mut self.changed {
            file.is_new = true;
            file.old = None;
        }
        self.removed.clear();
        self.report.moved = 0;
    }
}

/// Compares the files in a scope with the catalog by size and times. Whether their content differs shows when they
/// are read. The entries of folders are kept in the file `listings`. `progress` is called with the number of files that may
/// differ, before any is read.
pub(super) fn compare(
    vault: &Vault,
    catalog: &CatalogReader,
    scope: &SyncScope,
    redo: &Redo,
    listings: &Path,
    progress: &Progress,
) -> Result<FileChanges> {
    let settings = vault.settings();
    // One transaction, because each query outside of one locks and unlocks the catalog.
    catalog.in_transaction(|| {
        let states = match scope {
            SyncScope::All => vault_states(vault, catalog, &settings, redo, listings)?,
            SyncScope::Only { files, paths } => path_states(vault, catalog, files, paths)?,
            SyncScope::Attachments(files) => path_states(vault, catalog, files, &[])?,
        };
        // Whether an attachment was read says no time of its file.
        let reads_again = matches!(scope, SyncScope::Attachments(_));
        let FileStates { found, indexed, mut report } = states;
        progress(Phase::Parse, 0, found.len().max(indexed.len()));
        report.warnings.extend(settings.warnings.iter().cloned());
        let (mut changed, mut removed) =
            changes_of(vault, catalog, &settings, (redo, reads_again), found, indexed)?;
        find_moves(vault, catalog, &mut changed, &mut removed, &mut report)?;
        assign_ids(catalog, &mut changed)?;
        Ok(FileChanges { changed, removed, report })
    })
}

/// The files that exist and those that are indexed, both ordered by path.
struct FileStates {
    found: Vec<FileStat>,
    indexed: Vec<IndexedFile>,
    report: SyncReport,
}

/// Scans the vault. Files that are unchanged are left out of the result.
fn vault_states(
    vault: &Vault,
    catalog: &CatalogReader,
    settings: &Settings,
    redo: &Redo,
    listings: &Path,
) -> Result<FileStates> {
    // A caller that has everything read again may not trust the index, either.
    let known = if *redo == Redo::All { FolderListings::default() } else { FolderListings::load(listings) };
    let (mut scan, gaps) = scan_vault(vault, catalog, settings, redo, &known)?;
    if let Err(error) = known.update(listings, std::mem::take(&mut scan.folders)) {
        tracing::debug!("the next scan lists the folders again: {error}");
    }
    let mut report =
        SyncReport { scanned: scan.scanned, peak_files: scan.peak_files, ..SyncReport::default() };
    report.warnings.extend(gaps.warnings);
    report.warnings.extend(gaps.unreadable.values().map(unreadable_warning));
    Ok(FileStates { found: scan.found, indexed: scan.indexed, report })
}

/// Examines single files, and the paths in `folders` with all files that are indexed below them.
fn path_states(
    vault: &Vault,
    catalog: &CatalogReader,
    files: &[NotePath],
    folders: &[String],
) -> Result<FileStates> {
    let mut paths: BTreeSet<NotePath> = files.iter().cloned().collect();
    for folder in folders {
        paths.extend(NotePath::from_disk(folder));
        paths.extend(catalog.paths().below(folder)?);
    }
    let mut spellings: HashMap<String, usize> = HashMap::with_capacity(paths.len());
    for path in &paths {
        *spellings.entry(path.key()).or_default() += 1;
    }
    let mut names = ListedNames::new(vault);
    let mut folders = ListedFolders::default();
    let (mut found, mut indexed, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for path in &paths {
        let stat = match if vault.hides(path) { Ok(None) } else { folders.stat(vault, path) } {
            // After a rename that changed only the case, some file systems still open the file by its old name.
            Ok(Some(stat)) if spellings.get(&path.key()).is_some_and(|count| *count > 1) => {
                let listed = names.has(path).map_err(|error| Error::io("look for", path.as_str(), error));
                listed.map(|listed| listed.then_some(stat))
            }
            stat => stat,
        };
        match stat {
            Ok(stat) => {
                found.extend(stat);
                indexed.extend(catalog.indexed_file_at(path.as_str())?);
            }
            // The file cannot be examined, so its indexed state is kept.
            Err(error) => warnings.push(unreadable_warning(&error)),
        }
    }
    let (scanned, peak_files) = (found.len(), found.len() + indexed.len());
    Ok(FileStates {
        found,
        indexed,
        report: SyncReport { scanned, peak_files, warnings, ..SyncReport::default() },
    })
}

/// Returns the new and changed files, and the indexed files that do not exist. New files have no number yet.
fn changes_of(
    vault: &Vault,
    catalog: &CatalogReader,
    settings: &Settings,
    (redo, reads_again): (&Redo, bool),
    found: Vec<FileStat>,
    indexed: Vec<IndexedFile>,
) -> Result<(Vec<ChangedFile>, Vec<IndexedFile>)> {
    let mut changed = Vec::with_capacity(found.len());
    let mut removed = Vec::new();
    for (stat, old) in merge_by_path(found, indexed) {
        let Some(stat) = stat else {
            removed.extend(old);
            continue;
        };
        let is_forced = reads_again || redo.covers(&stat.path);
        if !is_forced && old.as_ref().is_some_and(|old| is_unchanged(&stat, old, settings)) {
            continue;
        }
        // A note can say itself that it does not exist for the reader.
        if vault.withholds(&stat.path) {
            removed.extend(old);
            continue;
        }
        let excluded = settings.is_excluded(&stat.path);
        // Without an old hash, no content counts as equal, so a forced reading indexes the file again.
        let old_hash = match &old {
            Some(old) if !is_forced && old.excluded == excluded => catalog.hash_of(old.id)?,
            _ => None,
        };
        changed.push(ChangedFile {
            id: old.as_ref().map_or(0, |old| old.id),
            is_new: old.is_none(),
            excluded,
            old: old_hash.map(|hash| Box::new(OldFile { hash: Some(hash), path: None })),
            stat,
        });
    }
    Ok((changed, removed))
}

/// Assigns numbers to new files. A number is never used again.
fn assign_ids(catalog: &CatalogReader, changed: &mut [ChangedFile]) -> Result<()> {
    let mut next_id = 0;
    for file in changed.iter_mut().filter(|file| file.id == 0) {
        if next_id == 0 {
            next_id = catalog.last_id()?;
        }
        next_id += 1;
        file.id = next_id;
    }
    Ok(())
}

/// Returns the warning about a file or folder that could not be examined.
fn unreadable_warning(error: &Error) -> String {
    format!("{error}; its indexed state is kept")
}

/// Recognises moves: a new file with the content of a removed one takes over its number.
fn find_moves(
    vault: &Vault,
    catalog: &CatalogReader,
    changed: &mut [ChangedFile],
    removed: &mut Vec<IndexedFile>,
    report: &mut SyncReport,
) -> Result<()> {
    let mut gone: HashMap<Hash, Vec<usize>> = HashMap::new();
    let mut sizes: HashSet<u64> = HashSet::new();
    for (at, known) in removed.iter().enumerate().rev() {
        if let Some(hash) = catalog.hash_of(known.id)? {
            gone.entry(hash).or_default().push(at);
            sizes.insert(known.stat.size);
        }
    }
    let mut taken = HashSet::new();
    for file in changed.iter_mut().filter(|file| file.is_new) {
        if FileKind::of(&file.stat.path) == FileKind::Attachment || !sizes.contains(&file.stat.size) {
            continue;
        }
        // A file that cannot be read is reported when it is indexed.
        let Ok(bytes) = vault.read(&file.stat.path) else {
            continue;
        };
        let Some(places) = gone.get_mut(blake3::hash(&bytes).as_bytes()) else {
            continue;
        };
        // Among files with equal content, one with the same name is preferred.
        let same_name =
            |at: &usize| removed.get(*at).is_some_and(|old| old.path.name() == file.stat.path.name());
        let choice = places.iter().position(same_name).or_else(|| places.len().checked_sub(1));
        let Some(at) = choice.map(|choice| places.remove(choice)) else {
            continue;
        };
        if let Some(old) = removed.get(at) {
            file.id = old.id;
            file.is_new = false;
            file.old.get_or_insert_default().path = Some(old.path.clone());
            report.moved += 1;
            taken.insert(at);
        }
    }
    let mut at = 0;
    removed.retain(|_| {
        at += 1;
        !taken.contains(&(at - 1))
    });
    Ok(())
}

/// The differences between the files and the index, by sizes and times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drift {
    /// Files that are not indexed.
    pub added: Vec<NotePath>,
    /// Files with another size or other times than the indexed ones.
    pub changed: Vec<NotePath>,
    /// Indexed files that do not exist.
    pub removed: Vec<NotePath>,
    /// Whether some folder could not be listed.
    pub has_gaps: bool,
}

impl Drift {
    /// Returns the number of files that differ.
    pub fn len(&self) -> usize {
        self.added.len() + self.changed.len() + self.removed.len()
    }

    /// Returns whether no file differs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the files that differ from the index, without changing anything.
pub(super) fn drift(vault: &Vault, catalog: &CatalogReader) -> Result<Drift> {
    let settings = vault.settings();
    let (scan, gaps) = scan_vault(vault, catalog, &settings, &Redo::Nothing, &FolderListings::default())?;
    let mut drift = Drift { has_gaps: !gaps.unreadable.is_empty(), ..Drift::default() };
    for pair in merge_by_path(scan.found, scan.indexed) {
        match pair {
            (Some(new), None) if vault.withholds(&new.path) => {}
            (Some(new), Some(old)) if stat_of(&new) != old.stat => drift.changed.push(new.path),
            (Some(new), None) => drift.added.push(new.path),
            (None, Some(old)) => drift.removed.push(old.path),
            _ => {}
        }
    }
    Ok(drift)
}

/// A scan that is compared with the catalog folder by folder, so that only the differences stay in memory.
struct VaultScan<'a> {
    catalog: &'a CatalogReader,
    settings: &'a Settings,
    redo: &'a Redo,
    /// The number of files that were compared.
    scanned: usize,
    /// The maximum number of files in memory at a time.
    peak_files: usize,
    /// The files that are new or changed.
    found: Vec<FileStat>,
    /// The indexed state of the files in `found`.
    indexed: Vec<IndexedFile>,
    /// The indexed state of files that do not exist.
    removed: Vec<IndexedFile>,
    /// The folders with indexed files that the scan has not visited yet. Folders behind symbolic links are visited last.
    unvisited: BTreeSet<String>,
    /// What is kept of the entries of the folders.
    folders: ScannedFolders,
}

impl VaultScan<'_> {
    /// Compares a folder with the files that are indexed in it.
    fn compare(&mut self, mut listing: DirListing) -> Result<()> {
        self.unvisited.remove(&listing.path);
        match std::mem::take(&mut listing.entries) {
            ListedEntries::Unkept => {}
            ListedEntries::FromLastScan => self.folders.kept.push(listing.path.clone()),
            ListedEntries::Fresh(entries) => drop(self.folders.fresh.insert(listing.path.clone(), entries)),
        }
        let listed = listing.files.len() + listing.unchanged;
        self.scanned += listed;
        let in_memory = listed + self.found.len() + self.indexed.len() + self.removed.len();
        self.peak_files = self.peak_files.max(in_memory);
        if listing.unchanged > 0 {
            return Ok(());
        }
        let mut files = listing.files.into_iter().peekable();
        self.catalog.visit_folder(&listing.path, |inside| {
            match inside {
                FolderEntry::Folder(path) => {
                    let is_there =
                        listing.folders.binary_search_by(|folder| folder.as_str().cmp(path)).is_ok();
                    if !is_there && !listing.is_incomplete {
                        self.unvisited.insert(path.to_owned());
                    }
                }
                FolderEntry::File(old) => {
                    while let Some(new) = files.next_if(|new| new.path.as_str() < old.path) {
                        self.found.push(new);
                    }
                    match files.next_if(|new| new.path.as_str() == old.path) {
                        Some(new)
                            if !self.redo.covers(&new.path) && is_unchanged(&new, &old, self.settings) => {}
                        Some(new) => {
                            self.found.push(new);
                            self.indexed.push(old.into_owned()?);
                        }
                        None if listing.is_incomplete => {}
                        None => self.removed.push(old.into_owned()?),
                    }
                }
            }
            Ok(())
        })?;
        self.found.extend(files);
        Ok(())
    }
}

/// Scans the vault. Returns the files that differ, and their indexed state, both ordered by path. The indexed state
/// of places that could not be listed is left out.
fn scan_vault<'a>(
    vault: &Vault,
    catalog: &'a CatalogReader,
    settings: &'a Settings,
    redo: &'a Redo,
    listings: &FolderListings,
) -> Result<(VaultScan<'a>, ScanGaps)> {
    vault.refuse_unmounted()?;
    let options = vault.scan_options();
    let mut scan = VaultScan {
        catalog,
        settings,
        redo,
        scanned: 0,
        peak_files: 0,
        found: Vec::new(),
        indexed: Vec::new(),
        removed: Vec::new(),
        unvisited: BTreeSet::new(),
        folders: ScannedFolders::default(),
    };
    let gaps = catalog.in_transaction(|| {
        let mut fingerprints = catalog.paths().fingerprints()?;
        scan.unvisited.extend(fingerprints.keys().cloned());
        if *redo != Redo::Nothing {
            fingerprints.clear();
        }
        let is_excluded = |path: &NotePath| settings.is_excluded(path);
        let known = KnownFolders {
            fingerprints: &fingerprints,
            is_excluded: settings.has_filters().then_some(&is_excluded),
            listings,
        };
        let mut gaps = scan_each(vault.root(), &options, Some(&known), |listing| {
            // Other threads go on listing meanwhile.
            catalog.paths().check_once()?;
            scan.compare(listing)
        })?;
        vault.set_followed_links(std::mem::take(&mut gaps.followed));
        while let Some(path) = scan.unvisited.pop_first() {
            if !gaps.cover(&path) {
                scan.compare(DirListing { path, ..DirListing::default() })?;
            }
        }
        Ok(gaps)
    })?;
    scan.removed.retain(|old| !gaps.cover(old.path.as_str()));
    scan.indexed.append(&mut scan.removed);
    scan.indexed.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    scan.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok((scan, gaps))
}

/// Returns whether a file is known to be unchanged without reading it.
fn is_unchanged<P>(file: &FileStat, old: &IndexedFile<P>, settings: &Settings) -> bool {
    stat_of(file) == old.stat && !old.racy && settings.is_excluded(&file.path) == old.excluded
}

/// Merges two lists that are ordered by path, and pairs entries with the same path.
fn merge_by_path(
    found: Vec<FileStat>,
    known: Vec<IndexedFile>,
) -> impl Iterator<Item = (Option<FileStat>, Option<IndexedFile>)> {
    use std::cmp::Ordering::{Greater, Less};
    let (mut found, mut known) = (found.into_iter().peekable(), known.into_iter().peekable());
    std::iter::from_fn(move || {
        let order = match (found.peek(), known.peek()) {
            (Some(new), Some(old)) => new.path.cmp(&old.path),
            (Some(_), None) => Less,
            (None, Some(_)) => Greater,
            (None, None) => return None,
        };
        Some((found.next_if(|_| order != Greater), known.next_if(|_| order != Less)))
    })
}

pub(super) fn stat_of(file: &FileStat) -> Stat {
    Stat { size: file.size, mtime_ns: file.mtime_ns, ctime_ns: file.ctime_ns }
}
