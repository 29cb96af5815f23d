//! Owns the comparison of what is on disk with what is known of it: which files are new, changed, moved or gone.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::error::Result;
use crate::index::Changes;
use crate::index::catalog::{Catalog, FileId, FileKind, Hash, Known, Stat};
use crate::text::path::NotePath;
use crate::vault::Vault;
use crate::vault::obsidian::Settings;
use crate::vault::scan::{self, FileStat, ScanOptions};

/// What a sync found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SyncReport {
    /// Files compared.
    pub scanned: usize,
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
    pub(super) removed: Vec<Known>,
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
    catalog: &Catalog,
    changes: &Changes,
    redo: &Redo,
) -> Result<Difference> {
    let settings = vault.settings();
    let (found, known, mut report) = match changes {
        Changes::All => {
            let (scan, known) = look(vault, catalog, &settings, redo)?;
            let mut report = SyncReport { scanned: scan.files.len() + scan.passed, ..SyncReport::default() };
            report.warnings.extend(scan.warnings);
            for failure in &scan.incomplete {
                report.warnings.push(format!("{}; what was indexed there before is kept", failure.error));
            }
            (scan.files, known, report)
        }
        Changes::Only { files, places } => {
            let mut found = Vec::new();
            let mut known = Vec::new();
            let mut paths: BTreeSet<NotePath> = files.iter().cloned().collect();
            for place in places {
                paths.extend(NotePath::from_disk(place));
                paths.extend(catalog.paths_below(place)?);
            }
            for path in &paths {
                if !vault.hides(path) {
                    found.extend(scan::stat(vault.root(), path)?);
                }
                known.extend(catalog.known_at(path.as_str())?);
            }
            let report = SyncReport { scanned: found.len(), ..SyncReport::default() };
            (found, known, report)
        }
    };
    report.warnings.extend(settings.warnings.iter().cloned());
    let mut next_id = 0;
    let mut candidates = Vec::new();
    let mut removed = Vec::new();
    for pair in side_by_side(found, known) {
        let (stat, old) = match pair {
            (Some(stat), old) => (stat, old),
            (None, old) => {
                removed.extend(old);
                continue;
            }
        };
        let excluded = settings.is_excluded(&stat.path);
        let now = stat_of(&stat);
        let forced_here = redo.covers(&stat.path);
        let same = old.as_ref().is_some_and(|old| old.stat == now && !old.racy && old.excluded == excluded);
        if same && !forced_here {
            continue;
        }
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

/// Recognises moves: a new file with the bytes of one that is gone keeps that one's number.
fn find_moves(
    vault: &Vault,
    catalog: &Catalog,
    candidates: &mut [Candidate],
    removed: &mut Vec<Known>,
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
pub(super) fn drift(vault: &Vault, catalog: &Catalog) -> Result<Drift> {
    let (scan, known) = look(vault, catalog, &vault.settings(), &Redo::Nothing)?;
    let mut drift = Drift::default();
    for pair in side_by_side(scan.files, known) {
        match pair {
            (Some(new), Some(old)) if stat_of(&new) != old.stat => drift.changed.push(new.path),
            (Some(new), None) => drift.added.push(new.path),
            (None, Some(old)) => drift.removed.push(old.path),
            _ => {}
        }
    }
    Ok(drift)
}

/// What the catalog knows of every file, in a few bytes each.
struct Marks {
    /// In ascending order; each stands for a path with its size, its times and whether it is hidden.
    marks: Vec<(Mark, FileId)>,
    /// Whether the scan has met the file, and found it so.
    met: Vec<AtomicBool>,
    /// Files whose stat proves nothing.
    racy: Vec<FileId>,
}

impl Marks {
    fn of(catalog: &Catalog) -> Result<Self> {
        let (mut marks, mut racy) = (Vec::with_capacity(catalog.files()?), Vec::new());
        catalog.each_known(|known| {
            if known.racy {
                racy.push(known.id);
            } else {
                marks.push((mark(known.path.as_str(), &known.stat, known.excluded), known.id));
            }
        })?;
        marks.sort_unstable();
        Ok(Self { met: marks.iter().map(|_| AtomicBool::new(false)).collect(), marks, racy })
    }

    /// Says whether a file is as it was, and remembers that.
    fn meet(&self, mark: Mark) -> bool {
        let found = self.marks.binary_search_by_key(&mark, |&(mark, _)| mark);
        let met = found.ok().and_then(|at| self.met.get(at));
        met.inspect(|met| met.store(true, Ordering::Relaxed)).is_some()
    }

    /// Lists the files that were not met as they were.
    fn others(self) -> impl Iterator<Item = FileId> {
        let met = self.met.into_iter().map(AtomicBool::into_inner);
        let unmet = self.marks.into_iter().zip(met).filter(|(_, met)| !met).map(|((_, id), _)| id);
        self.racy.into_iter().chain(unmet)
    }
}

/// Half of a BLAKE3 hash: with so many bits no two states of a file are ever taken for one.
type Mark = [u8; 16];

fn mark(path: &str, stat: &Stat, excluded: bool) -> Mark {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&stat.size.to_le_bytes()).update(&stat.mtime_ns.to_le_bytes());
    hasher.update(&stat.ctime_ns.to_le_bytes()).update(&[u8::from(excluded)]).update(path.as_bytes());
    let mut half = Mark::default();
    hasher.finalize_xof().fill(&mut half);
    half
}

/// Scans the vault and gives the files that are not as they were, and what is known of those, both ordered by path.
/// What is known of places that could not be looked at is left out, for nothing can be said of it.
fn look(
    vault: &Vault,
    catalog: &Catalog,
    settings: &Settings,
    redo: &Redo,
) -> Result<(scan::Scan, Vec<Known>)> {
    let options = ScanOptions { hidden: vault.hidden().to_owned(), ..ScanOptions::default() };
    let marks = Marks::of(catalog)?;
    let scan = scan::scan_past(vault.root(), &options, &|file| {
        !redo.covers(&file.path)
            && marks.meet(mark(file.path.as_str(), &stat_of(file), settings.is_excluded(&file.path)))
    });
    let mut known = Vec::new();
    for id in marks.others() {
        known.extend(catalog.known_as(id)?);
    }
    if !scan.incomplete.is_empty() {
        // A folder that could not be listed says nothing about the files in it.
        let is_seen = |old: &Known| scan.files.binary_search_by(|file| file.path.cmp(&old.path)).is_ok();
        known.retain(|old| !scan.incomplete.iter().any(|failure| failure.covers(&old.path)) || is_seen(old));
    }
    known.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok((scan, known))
}

/// Walks over two lists that are ordered by path, and pairs what has the same path.
fn side_by_side(
    found: Vec<FileStat>,
    known: Vec<Known>,
) -> impl Iterator<Item = (Option<FileStat>, Option<Known>)> {
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
