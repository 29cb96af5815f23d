//! Gives a plan the vault as it is on disk now.
//!
//! If another process writes the index and is behind, or this one is indexing many files, the files that are not indexed are
//! laid over the catalog. So a backlink that was typed a second ago counts.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::{parallel, platform};
use sidenote_catalog::{CatalogReader, FileKind, LinkTexts, ReadTransaction};
use sidenote_index::follow::CatchUp;
use sidenote_index::{Drift, WaitLimit};
use sidenote_links::dialect::LinkDialects;
use sidenote_links::dialect_evidence::DialectCounts;
use sidenote_links::resolve::{FileNames, link_places, name_keys};
use sidenote_links::rewrite::{Moves, RenameContext, RewriteOptions};
use sidenote_markdown::decode::decode;
use sidenote_markdown::link::LinkSyntax;
use sidenote_markdown::path::{NotePath, key};
use sidenote_vault::link_dialects::DialectRules;

use crate::Core;
use crate::lookup::Lookup;
use crate::source::Source;
use crate::sync::IndexSync;
use crate::unindexed::UnindexedFiles;

/// The number of files that are processed between two checks for cancellation.
pub const GROUP: usize = 256;

/// A plan that moves at least one in `BULK_SHARE` files looks at the links of all files at once, instead of at each name.
const BULK_SHARE: usize = 16;

/// The vault as a plan sees it.
pub struct View<'a> {
    core: &'a Core,
    /// The files that differ from the index. While a server indexes a large batch, they are looked for when a plan first needs
    /// them: an edit of one note does not, and would wait for a scan of the vault.
    unindexed: OnceLock<Arc<UnindexedFiles>>,
    /// The files that were read and the links and names that were looked up, for tests of how plans grow.
    work: AtomicUsize,
    /// The link dialects of the vault's folders.
    dialects: Arc<LinkDialects>,
    /// The folders that were checked, and whether a symbolic link leads to each.
    linked: Mutex<HashMap<String, bool>>,
}

impl<'a> View<'a> {
    /// Updates the index if this process writes it; otherwise compares it with the files.
    pub fn new(core: &'a Core) -> Result<Self> {
        Self::within(core, WaitLimit::ENDLESS)
    }

    /// Does the same for a change of the text of some notes. While a server indexes a large batch, it does not wait for it, and
    /// compares the index with the files if a plan needs that. Plans that look for links in all notes would then read the whole
    /// batch.
    pub fn for_edits(core: &'a Core) -> Result<Self> {
        let is_server = core.index.follower().is_requested() && core.index.generation()? > 0;
        Self::within(core, if is_server { WaitLimit::ENDLESS.unless_large() } else { WaitLimit::ENDLESS })
    }

    fn within(core: &'a Core, wait_limit: WaitLimit) -> Result<Self> {
        let lookup = Lookup::of(core);
        let unindexed = if IndexSync::of(core).catch_up_copy()? {
            OnceLock::from(lookup.set_unindexed(None))
        } else if core.index.promote()? {
            match core.index.follower().catch_up(wait_limit)? {
                CatchUp::Done(_) => OnceLock::from(lookup.set_unindexed(None)),
                CatchUp::Behind(changes) => {
                    lookup.set_behind(changes);
                    OnceLock::new()
                }
            }
        } else {
            OnceLock::from(compare(core)?)
        };
        if let Some(unindexed) = unindexed.get() {
            lookup.set_behind(unindexed.len());
        }
        let dialects = match core.index.snapshot()?.generation {
            // Nothing is indexed, because there is nothing yet.
            0 => {
                let rules = DialectRules::of(&core.vault);
                rules.decide(&[], || Ok(DialectCounts::default().choose(None, rules.is_in_repository())))?
            }
            _ => core.index.catalog().links().dialects()?,
        };
        let (work, linked) = (AtomicUsize::new(0), Mutex::default());
        Ok(Self { core, unindexed, work, dialects: Arc::new(dialects), linked })
    }

    /// Returns the files that differ from the index.
    fn unindexed_files(&self) -> Result<&UnindexedFiles> {
        if let Some(known) = self.unindexed.get() {
            return Ok(known);
        }
        let found = compare(self.core)?;
        Lookup::of(self.core).set_behind(found.len());
        Ok(self.unindexed.get_or_init(|| found))
    }

    /// Returns the number of files that were read and of links and names that were looked up.
    pub fn work(&self) -> usize {
        self.work.load(Ordering::Relaxed)
    }

    fn add_work(&self, steps: usize) {
        self.work.fetch_add(steps, Ordering::Relaxed);
    }

    /// Returns the link dialects of the vault's folders.
    pub fn dialects(&self) -> &Arc<LinkDialects> {
        &self.dialects
    }

    fn catalog(&self) -> ReadTransaction {
        self.core.index.catalog()
    }

    /// Queries the catalog for many names, in groups. A cancelled call ends between two groups.
    fn ask_catalog<N, T>(
        &self,
        names: &[N],
        mut ask: impl FnMut(&CatalogReader, &[N]) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let catalog = self.catalog();
        self.add_work(names.len());
        if names.len() <= GROUP {
            return ask(&catalog, names);
        }
        let mut found = Vec::new();
        for group in names.chunks(GROUP) {
            self.core.check_cancelled()?;
            found.extend(ask(&catalog, group)?);
        }
        Ok(found)
    }

    /// Returns whether a file exists.
    pub fn holds(&self, path: &NotePath) -> Result<bool> {
        let unindexed = self.unindexed_files()?;
        Ok(unindexed.there.contains(path)
            || (!unindexed.is_gone(path) && self.catalog().row_at(path.as_str())?.is_some()))
    }

    /// Finds a note by any of its names, also one that is not indexed yet. A note that this call resolved and that was
    /// moved since is found at its new path.
    pub fn find(&self, name: &str) -> Result<NotePath> {
        let found = Lookup::of(self.core).find(name).and_then(|row| match self.is_on_disk(&row.path) {
            true => Ok(row.path),
            false => Err(Error::not_found(format!("{} is gone", row.path))),
        });
        match found {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Lookup::of(self.core).current_path_of(name)?.ok_or(error)
            }
            found => found,
        }
    }

    fn is_on_disk(&self, path: &NotePath) -> bool {
        self.core.vault.has_entry(path)
    }

    /// Returns whether a file was not removed since it was indexed.
    pub fn is_there(&self, path: &NotePath) -> Result<bool> {
        Ok(!self.unindexed_files()?.is_gone(path))
    }

    /// Lists the files that are new or changed since they were indexed.
    pub fn unindexed(&self) -> Result<impl Iterator<Item = NotePath>> {
        Ok(self.unindexed_files()?.there.iter().cloned())
    }

    /// Lists all files.
    pub fn all_files(&self) -> Result<Vec<NotePath>> {
        let unindexed = self.unindexed_files()?;
        let known = self.catalog().paths().all()?.into_iter().map(|(path, _)| path);
        // A batch may be committed since this view was made.
        let known = known.filter(|path| !unindexed.covers(path));
        Ok(known.chain(unindexed.there.iter().cloned()).collect())
    }

    /// Lists the files below a folder.
    pub fn below(&self, folder: &NotePath) -> Result<Vec<NotePath>> {
        let unindexed = self.unindexed_files()?;
        let known = self.catalog().paths().below(folder.as_str())?;
        let known = known.into_iter().filter(|path| !unindexed.covers(path));
        Ok(known.chain(below(&unindexed.there, folder.as_str()).cloned()).collect())
    }

    /// Returns how links are rewritten by the settings of the vault.
    pub fn rewrite_options(&self) -> RewriteOptions {
        self.core.rewrite_options()
    }

    /// Lists the files whose name has one of these keys.
    pub fn named(&self, keys: &BTreeSet<String>) -> Result<Vec<NotePath>> {
        let unindexed = self.unindexed_files()?;
        let wanted: Vec<String> = keys.iter().cloned().collect();
        let known = self.ask_catalog(&wanted, |catalog, names| catalog.paths().named(names))?;
        let known = known.into_iter().map(|(path, _)| path).filter(|path| !unindexed.covers(path));
        let there = unindexed.there.iter().filter(|path| keys.contains(&key(path.name()))).cloned();
        Ok(known.chain(there).collect())
    }

    /// Lists the notes and canvases with links that the move of some files can affect: those that link to one of the
    /// files, and those with links that a new name could capture.
    pub fn concerned(&self, moved: &[NotePath], new_names: &BTreeSet<String>) -> Result<BTreeSet<NotePath>> {
        let linking = |catalog: &CatalogReader, moved: &[NotePath]| {
            Ok(catalog.links().sources_of(moved)?.into_iter().collect::<Vec<_>>())
        };
        let naming = |catalog: &CatalogReader, names: &[String]| {
            Ok(catalog
                .links()
                .affected_by_names(names)?
                .into_iter()
                .map(|(_, path, _)| path)
                .collect::<Vec<_>>())
        };
        // The catalog resolved links before what changed since: a link may mean one of these files now by its name.
        let unindexed = self.unindexed_files()?;
        let unresolved = if unindexed.is_empty() { &[] } else { moved };
        let unresolved = unresolved.iter().map(|path| key(path.name()));
        let names: BTreeSet<String> = new_names.iter().cloned().chain(unresolved).collect();
        let names: Vec<String> = names.into_iter().collect();
        let mut sources: BTreeSet<NotePath> = self.ask_catalog(moved, linking)?.into_iter().collect();
        sources.extend(self.ask_catalog(&names, naming)?);
        sources.retain(|path| !unindexed.is_gone(path));
        sources.extend(unindexed.there.iter().cloned());
        sources.extend(moved.iter().cloned());
        sources.retain(|path| FileKind::of(path) != FileKind::Attachment);
        Ok(sources)
    }

    /// Returns whether, with this number of moved files, looking at all links of the vault is less work than looking
    /// each name up.
    pub fn moves_much(&self, moved: usize) -> Result<bool> {
        Ok(moved > GROUP && moved.saturating_mul(BULK_SHARE) >= self.catalog().totals().files()?)
    }

    /// Lists the notes and canvases whose text an operation may have to read: those with a link or mention that it can
    /// change, by the index; those that differ from the index; and files that move and whose text the index does not
    /// have. All other files are neither read nor changed.
    pub fn changing(&self, world: &RenameContext<'_>, moved: &[NotePath]) -> Result<BTreeSet<NotePath>> {
        let LinkTexts { texts, files } = self.catalog().links().texts()?;
        let changes = |(): &mut (), (path, inside): &(NotePath, Vec<usize>)| {
            let mut said = inside.iter().filter_map(|&at| texts.get(at));
            said.any(|(text, syntax)| !world.keeps(text, *syntax, path))
        };
        let unindexed = self.unindexed_files()?;
        let mut changing = unindexed.there.clone();
        if self.core.index.follower().is_following() {
            // Systems do not report every write. All other processes have just scanned the files.
            let Drift { added, changed, .. } = self.core.index.drift(&self.core.vault)?;
            changing.extend(added.into_iter().chain(changed));
        }
        let moved: HashSet<&NotePath> = moved.iter().collect();
        let unknown = self.catalog().paths().without_text()?;
        changing.extend(unknown.into_iter().filter(|path| moved.contains(path)));
        for group in files.chunks(GROUP * 16) {
            self.core.check_cancelled()?;
            self.add_work(group.iter().map(|(_, inside)| inside.len()).sum());
            let changed = parallel::map(group, GROUP, || (), changes).into_iter().zip(group);
            changing.extend(changed.filter(|(changes, _)| *changes).map(|(_, (path, _))| path.clone()));
        }
        changing.retain(|path| !unindexed.is_gone(path) && FileKind::of(path) != FileKind::Attachment);
        Ok(changing)
    }

    /// Reads a note or canvas.
    pub fn source(&self, path: &NotePath) -> Result<Source> {
        Ok(Source::new(path.clone(), &self.core.read_bytes(path)?, self.is_linked(path)))
    }

    /// Reads the text of a note or canvas. `None` if the file was removed or is too large.
    pub fn raw_text(&self, path: &NotePath) -> Result<Option<String>> {
        match self.core.vault.read(path) {
            Ok(bytes) => Ok(Some(decode(&bytes).text.into_owned())),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a symbolic link leads to a file.
    fn is_linked(&self, path: &NotePath) -> bool {
        let disk = self.core.vault.disk_path(path);
        let known = |linked: &HashMap<String, bool>| linked.get(path.folder()).copied();
        let mut linked = self.linked.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = known(&linked).unwrap_or_else(|| {
            let folder = disk.parent().unwrap_or(&disk);
            // A folder behind a symbolic link is treated as one outside of the vault.
            let is_linked = !self.core.vault.follows_outside()
                && platform::canonicalize(folder).is_ok_and(|real| real != folder);
            linked.insert(path.folder().to_owned(), is_linked);
            is_linked
        });
        drop(linked);
        folder || std::fs::symlink_metadata(&disk).is_ok_and(|found| found.is_symlink())
    }

    /// Reads notes and canvases in parallel. Files that were removed or are too large are left out.
    pub fn sources(&self, paths: impl IntoIterator<Item = NotePath>) -> Result<Vec<Source>> {
        let paths: Vec<NotePath> = paths.into_iter().collect();
        let read = |(): &mut (), path: &NotePath| match self.core.vault.read(path) {
            Ok(bytes) => Ok(Some(Source::new(path.clone(), &bytes, self.is_linked(path)))),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => {
                tracing::warn!("{error}; its links are not changed");
                Ok(None)
            }
            Err(error) => Err(error),
        };
        let mut sources = Vec::with_capacity(paths.len());
        self.add_work(paths.len());
        for group in paths.chunks(GROUP) {
            let read = parallel::map(group, 16, || (), read).into_iter().filter_map(Result::transpose);
            sources.extend(read.collect::<Result<Vec<_>>>()?);
            self.check_cancelled_after(group.len())?;
        }
        Ok(sources)
    }

    /// Returns an error if the call was cancelled, after a full group of files.
    pub fn check_cancelled_after(&self, group: usize) -> Result<()> {
        if group < GROUP { Ok(()) } else { self.core.check_cancelled() }
    }

    /// Lists all files and folders of the vault.
    pub fn all_names(&self) -> Result<NamedFiles> {
        let (dialects, folders) = (Arc::clone(&self.dialects), BTreeSet::new());
        let files = self.all_files()?;
        self.add_work(files.len());
        Ok(NamedFiles { dialects, files, folders })
    }

    /// Lists the files that a link of these sources, or a name with one of these keys, could be confused with.
    pub fn names(&self, sources: &[Source], mut keys: BTreeSet<String>) -> Result<NamedFiles> {
        let mut places = BTreeSet::new();
        for source in sources {
            let mentioned = source.note.mentions.iter().map(|mention| &mention.link);
            for link in source.note.links.iter().chain(mentioned) {
                keys.extend(name_keys(&link.path));
                if link.form.syntax() == LinkSyntax::Markdown {
                    places.extend(link_places(&self.dialects, &link.path, &source.path));
                }
            }
        }
        let mut files = NamedFiles {
            dialects: Arc::clone(&self.dialects),
            files: self.named(&keys)?,
            folders: BTreeSet::new(),
        };
        let known: HashSet<String> = files.files.iter().map(|path| path.as_str().to_owned()).collect();
        for (at, place) in places.iter().filter(|place| !known.contains(*place)).enumerate() {
            self.check_cancelled_after(if at > 0 && at.is_multiple_of(GROUP) { GROUP } else { 0 })?;
            match self.file_at(place)? {
                Some(path) => files.files.push(path),
                None if self.has_folder(place)? => drop(files.folders.insert(place.clone())),
                None => {}
            }
        }
        Ok(files)
    }

    /// Finds the file at exactly this path.
    fn file_at(&self, place: &str) -> Result<Option<NotePath>> {
        self.add_work(1);
        let unindexed = self.unindexed_files()?;
        if let Some(there) = unindexed.there.get(place) {
            return Ok(Some(there.clone()));
        }
        let row = self.catalog().row_at(place)?;
        Ok(row.map(|row| row.path).filter(|path| !unindexed.is_gone(path)))
    }

    /// Returns whether a folder holds a file.
    fn has_folder(&self, folder: &str) -> Result<bool> {
        let unindexed = self.unindexed_files()?;
        if below(&unindexed.there, folder).next().is_some() {
            return Ok(true);
        }
        if below(&unindexed.gone, folder).next().is_none() {
            return self.catalog().paths().has_folder(folder);
        }
        Ok(self.catalog().paths().below(folder)?.iter().any(|path| !unindexed.is_gone(path)))
    }
}

/// Compares the index with the files, for this plan and for what the call looks up.
fn compare(core: &Core) -> Result<Arc<UnindexedFiles>> {
    let drift = core.index.drift(&core.vault)?;
    Ok(Lookup::of(core).set_unindexed(Some(&drift)))
}

/// Lists the paths below a folder.
fn below<'s>(paths: &'s BTreeSet<NotePath>, folder: &str) -> impl Iterator<Item = &'s NotePath> {
    let prefix = format!("{folder}/");
    let from = paths.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
    from.take_while(move |path| path.as_str().starts_with(&prefix))
}

/// The files and folders that the links of some notes can lead to.
#[derive(Debug)]
pub struct NamedFiles {
    dialects: Arc<LinkDialects>,
    pub(super) files: Vec<NotePath>,
    folders: BTreeSet<String>,
}

impl NamedFiles {
    /// Returns the table of these files.
    pub fn table(&self) -> FileNames {
        self.table_after(&Moves::default(), std::iter::empty())
    }

    /// Returns the table of these files after some moves, with the files that are added.
    pub fn table_after<'a>(
        &'a self,
        moves: &'a Moves,
        added: impl Iterator<Item = &'a NotePath>,
    ) -> FileNames {
        let file_after = |path: &str| match NotePath::parse(path) {
            Ok(path) => moves.of(&path).as_str().to_owned(),
            Err(_) => path.to_owned(),
        };
        let dialects = match moves.is_empty() {
            true => Arc::clone(&self.dialects),
            false => Arc::new(self.dialects.after(file_after, |folder| moves.of_folder(folder))),
        };
        let mut names = FileNames::default().with_dialects(dialects);
        for path in self.files.iter().map(|path| moves.of(path)).chain(added) {
            names.insert(path);
            names.insert_folders_above(path);
        }
        for folder in &self.folders {
            names.insert_folder(&moves.of_folder(folder));
        }
        names
    }
}
