//! Owns the comparison of what is on disk with what is known of it: which files are new, changed, moved or gone.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::index::SyncScope;
use crate::index::catalog::{CatalogReader, FileId, FileKind, FolderEntry, Hash, IndexedFile, Stat};
use crate::text::path::NotePath;
use crate::vault::Vault;
use crate::vault::obsidian::Settings;
use crate::vault::scan::{self, DirListing, FileStat, ScanGaps, scan_each};

/// What a sync found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SyncReport {
    /// Files compared.
    pub scanned: usize,
    /// The most of them that were held at a time: those of one folder, and those that are not as they were.
    #[serde(skip)]
    pub held: usize,
    /// Files whose bytes were read.
    pub read: usize,
    /// Bytes read.
    pub bytes: u64,
    /// Files that are new.
    pub added: usize,
    /// Files whose bytes changed.
    pub changed: usize,
    /// Files that moved, found by their hash.
    pub moved: usize,
    /// Where they were, and where they are.
    #[serde(skip)]
    pub moves: Vec<(NotePath, NotePath)>,
    /// Files that are gone.
    pub removed: usize,
    /// The names of all these, old ones and new ones.
    #[serde(skip)]
    pub touched: Vec<NotePath>,
    /// Sentences about what could not be read; each names its path.
    pub warnings: Vec<String>,
    /// The generation that holds it all.
    pub generation: i64,
}

impl SyncReport {
    /// Says whether anything was different.
    pub fn changed_anything(&self) -> bool {
        self.added + self.changed + self.moved + self.removed > 0
    }
}

/// One file that the scan says is worth reading.
pub(super) struct Candidate {
    pub(super) stat: FileStat,
    pub(super) id: FileId,
    pub(super) fresh: bool,
    pub(super) excluded: bool,
    pub(super) old_hash: Option<Hash>,
    pub(super) old_path: Option<NotePath>,
}

/// What a crash left to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redo {
    Nothing,
    Paths(HashSet<String>),
    All,
}

impl Redo {
    /// Says whether a file must be read again whatever its stat says.
    fn covers(&self, path: &NotePath) -> bool {
        match self {
            Self::Nothing => false,
            Self::Paths(paths) => paths.contains(path.as_str()),
            Self::All => true,
        }
    }
}

/// A scan compared with the catalog.
pub(super) struct Difference {
    pub(super) candidates: Vec<Candidate>,
    pub(super) removed: Vec<IndexedFile>,
    pub(super) report: SyncReport,
}

impl Difference {
    /// Makes every file a new one, as if nothing had been known. Each keeps its number: between the commits of full
    /// text and catalog a reader may look up in one what it found in the other.
    pub(super) fn forget_known(&mut self) {
        for candidate in &mut self.candidates {
            candidate.fresh = true;
            candidate.old_hash = None;
            candidate.old_path = None;
        }
        self.removed.clear();
        self.report.moved = 0;
    }
}

/// Compares the files with the catalog; the reading thread has the last word, for only it sees bytes.
pub(super) fn compare(
    vault: &Vault,
    catalog: &CatalogReader,
    changes: &SyncScope,
    redo: &Redo,
) -> Result<Difference> {
    let settings = vault.settings();
    let (found, known, mut report) = match changes {
        SyncScope::All => {
            let (look, gaps) = look(vault, catalog, &settings, redo)?;
            let mut report = SyncReport { scanned: look.scanned, held: look.held, ..SyncReport::default() };
            report.warnings.extend(gaps.warnings);
            for error in gaps.unreadable.values() {
                report.warnings.push(kept(error));
            }
            (look.found, look.known, report)
        }
        SyncScope::Only { files, places } => {
            let mut found = Vec::new();
            let mut known = Vec::new();
            let mut unseen = Vec::new();
            let mut paths: BTreeSet<NotePath> = files.iter().cloned().collect();
            for place in places {
                paths.extend(NotePath::from_disk(place));
                paths.extend(catalog.paths().below(place)?);
            }
            for path in &paths {
                let seen = if vault.hides(path) { Ok(None) } else { scan::stat(vault, path) };
                match seen {
                    Ok(seen) => {
                        found.extend(seen);
                        known.extend(catalog.indexed_file_at(path.as_str())?);
                    }
                    // Nothing can be said of it, so that what is known of it holds.
                    Err(error) => unseen.push(kept(&error)),
                }
            }
            let mut report =
                SyncReport { scanned: found.len(), held: found.len() + known.len(), ..SyncReport::default() };
            report.warnings = unseen;
            (found, known, report)
        }
    };
    report.warnings.extend(settings.warnings.iter().cloned());
    let mut next_id = 0;
    let mut candidates = Vec::with_capacity(found.len());
    let mut removed = Vec::new();
    for pair in side_by_side(found, known) {
        let (stat, old) = match pair {
            (Some(stat), old) => (stat, old),
            (None, old) => {
                removed.extend(old);
                continue;
            }
        };
        let forced_here = redo.covers(&stat.path);
        if !forced_here && old.as_ref().is_some_and(|old| is_same(&stat, old, &settings)) {
            continue;
        }
        let excluded = settings.is_excluded(&stat.path);
        // Without an old hash nothing can be found equal, which is what a forced reading wants.
        let old_hash = match &old {
            Some(old) if !forced_here && old.excluded == excluded => catalog.hash_of(old.id)?,
            _ => None,
        };
        candidates.push(Candidate {
            id: old.as_ref().map_or(0, |old| old.id),
            fresh: old.is_none(),
            excluded,
            old_hash,
            old_path: None,
            stat,
        });
    }
    find_moves(vault, catalog, &mut candidates, &mut removed, &mut report)?;
    for candidate in candidates.iter_mut().filter(|candidate| candidate.id == 0) {
        if next_id == 0 {
            next_id = catalog.last_id()?;
        }
        next_id += 1;
        candidate.id = next_id;
    }
    Ok(Difference { candidates, removed, report })
}

/// Says that what could not be looked at is taken to be as it was.
fn kept(error: &Error) -> String {
    format!("{error}; what was indexed there before is kept")
}

/// Recognises moves: a new file with the bytes of one that is gone keeps that one's number.
fn find_moves(
    vault: &Vault,
    catalog: &CatalogReader,
    candidates: &mut [Candidate],
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
    for candidate in candidates.iter_mut().filter(|candidate| candidate.fresh) {
        if FileKind::of(&candidate.stat.path) == FileKind::Attachment || !sizes.contains(&candidate.stat.size)
        {
            continue;
        }
        // A file that cannot be read now is reported when its turn comes.
        let Ok(bytes) = vault.read(&candidate.stat.path) else {
            continue;
        };
        let Some(places) = gone.get_mut(blake3::hash(&bytes).as_bytes()) else {
            continue;
        };
        // Among equal files the one that kept its name is the one that moved.
        let same_name =
            |at: &usize| removed.get(*at).is_some_and(|old| old.path.name() == candidate.stat.path.name());
        let choice = places.iter().position(same_name).or_else(|| places.len().checked_sub(1));
        let Some(at) = choice.map(|choice| places.remove(choice)) else {
            continue;
        };
        if let Some(old) = removed.get(at) {
            candidate.id = old.id;
            candidate.fresh = false;
            candidate.old_path = Some(old.path.clone());
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

/// What changed on disk since it was indexed, as far as sizes and times tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drift {
    /// Files that the index does not know.
    pub added: Vec<NotePath>,
    /// Files that were touched.
    pub changed: Vec<NotePath>,
    /// Files that are gone.
    pub removed: Vec<NotePath>,
}

impl Drift {
    /// Counts the files.
    pub fn len(&self) -> usize {
        self.added.len() + self.changed.len() + self.removed.len()
    }

    /// Says whether the index is in line with the files.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Lists what changed on disk since it was indexed, without changing anything.
pub(super) fn drift(vault: &Vault, catalog: &CatalogReader) -> Result<Drift> {
    let settings = vault.settings();
    let (look, _) = look(vault, catalog, &settings, &Redo::Nothing)?;
    let mut drift = Drift::default();
    for pair in side_by_side(look.found, look.known) {
        match pair {
            (Some(new), Some(old)) if stat_of(&new) != old.stat => drift.changed.push(new.path),
            (Some(new), None) => drift.added.push(new.path),
            (None, Some(old)) => drift.removed.push(old.path),
            _ => {}
        }
    }
    Ok(drift)
}

/// A scan that is compared with the catalog folder by folder, so that nothing is held but what differs.
struct Look<'a> {
    catalog: &'a CatalogReader,
    settings: &'a Settings,
    redo: &'a Redo,
    /// How many files were compared.
    scanned: usize,
    /// The most files that were held at a time.
    held: usize,
    /// The files that are not as they were.
    found: Vec<FileStat>,
    /// What the catalog knows of the files in `found`.
    known: Vec<IndexedFile>,
    /// What the catalog knows of files that are not there.
    gone: Vec<IndexedFile>,
    /// The folders that are known and that the scan did not come to, at least not yet: links wait for the rest.
    missing: BTreeSet<String>,
}

impl Look<'_> {
    /// Compares a folder with what is known directly in it.
    fn compare(&mut self, listing: DirListing) -> Result<()> {
        self.missing.remove(&listing.path);
        self.scanned += listing.files.len();
        let held = listing.files.len() + self.found.len() + self.known.len() + self.gone.len();
        self.held = self.held.max(held);
        let mut files = listing.files.into_iter().peekable();
        self.catalog.visit_folder(&listing.path, |inside| {
            match inside {
                FolderEntry::Folder(path) => {
                    let is_there =
                        listing.folders.binary_search_by(|folder| folder.as_str().cmp(path)).is_ok();
                    if !is_there && !listing.is_incomplete {
                        self.missing.insert(path.to_owned());
                    }
                }
                FolderEntry::File(old) => {
                    while let Some(new) = files.next_if(|new| new.path.as_str() < old.path) {
                        self.found.push(new);
                    }
                    match files.next_if(|new| new.path.as_str() == old.path) {
                        Some(new) if !self.redo.covers(&new.path) && is_same(&new, &old, self.settings) => {}
                        Some(new) => {
                            self.found.push(new);
                            self.known.push(old.into_owned()?);
                        }
                        None if listing.is_incomplete => {}
                        None => self.gone.push(old.into_owned()?),
                    }
                }
            }
            Ok(())
        })?;
        self.found.extend(files);
        Ok(())
    }
}

/// Scans the vault and gives the files that are not as they were, and what is known of those, both ordered by path.
/// What is known of places that could not be looked at is left out, for nothing can be said of it.
fn look<'a>(
    vault: &Vault,
    catalog: &'a CatalogReader,
    settings: &'a Settings,
    redo: &'a Redo,
) -> Result<(Look<'a>, ScanGaps)> {
    let options = vault.scan_options();
    let mut look = Look {
        catalog,
        settings,
        redo,
        scanned: 0,
        held: 0,
        found: Vec::new(),
        known: Vec::new(),
        gone: Vec::new(),
        missing: BTreeSet::new(),
    };
    let gaps = catalog.in_transaction(|| {
        let mut gaps = scan_each(vault.root(), &options, |listing| look.compare(listing))?;
        vault.set_followed_links(std::mem::take(&mut gaps.followed));
        while let Some(path) = look.missing.pop_first() {
            if !gaps.cover(&path) {
                look.compare(DirListing { path, ..DirListing::default() })?;
            }
        }
        Ok(gaps)
    })?;
    look.gone.retain(|old| !gaps.cover(old.path.as_str()));
    look.known.append(&mut look.gone);
    look.known.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    look.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok((look, gaps))
}

/// Says whether a file is as it was, as far as that can be told without reading it.
fn is_same<P>(file: &FileStat, old: &IndexedFile<P>, settings: &Settings) -> bool {
    stat_of(file) == old.stat && !old.racy && settings.is_excluded(&file.path) == old.excluded
}

/// Walks over two lists that are ordered by path, and pairs what has the same path.
fn side_by_side(
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
