//! The present files, and the links that are dead or lead elsewhere than they meant.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeSet, HashMap, HashSet};

use sidenote_base::error::{Error, Result};
use sidenote_catalog::{FileKind, FileRow, Filter, Hash, Kinds, LinkGroup};
use sidenote_links::resolve::{FileNames, LinkTarget, name_keys};
use sidenote_links::rewrite::LinkedPlace;
use sidenote_markdown::link::{Link, LinkSyntax};
use sidenote_markdown::path::{NotePath, clean, key};
use sidenote_open_vault::Core;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::source::Source;

/// A link to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LinkCase {
    /// The number of the note in [`Present::sources`].
    pub(super) source: usize,
    /// The number of the link in the note.
    pub(super) link: usize,
    /// Whether the link leads to no file now.
    pub(super) is_dead: bool,
}

/// The files of the vault, and the notes whose links are judged.
pub(super) struct Present {
    /// All files, by name.
    pub(super) names: FileNames,
    /// All files, with the index's data of the visible notes and canvases.
    pub(super) files: HashMap<NotePath, Option<FileRow>>,
    /// The notes and canvases with links to judge.
    pub(super) sources: Vec<Source>,
    by_path: HashMap<NotePath, usize>,
    /// The notes by the hash of their content, made when it is first asked for.
    by_content: OnceCell<HashMap<Hash, Vec<NotePath>>>,
    /// The dead links, and those that lead out of the vault, where there may be a file.
    pub(super) dead: Vec<LinkCase>,
    /// The links that were found to lead elsewhere than they meant.
    pub(super) misled: Vec<LinkCase>,
    /// The links that lead to a file which has the name of one that moved, by the journal.
    pub(super) captured: Vec<LinkCase>,
    /// The notes and folders that the request is limited to; empty without a limit.
    scope: HashSet<String>,
    /// The number of files that were looked at for names and folders: a measure of the work.
    work: Cell<usize>,
}

impl Present {
    /// Reads the notes with dead links. `scope` limits them to some notes and folders.
    pub(super) fn new(core: &Core, view: &View<'_>, scope: &[String]) -> Result<Self> {
        let catalog = core.index.catalog();
        let mut files: HashMap<NotePath, Option<FileRow>> =
            view.all_files()?.into_iter().map(|path| (path, None)).collect();
        let rows = catalog.select(&Filter { kinds: Kinds::NotesAndCanvases, ..Filter::default() })?;
        for row in rows {
            if let Some(known) = files.get_mut(&row.path) {
                *known = Some(row);
            }
        }
        let mut names =
            FileNames::with_capacity(files.len()).with_dialects(view.dialects().clone()).strictly();
        for path in files.keys() {
            names.insert(path);
            names.insert_folders_above(path);
        }
        let unresolved = catalog.links().unresolved(None)?;
        let ids: BTreeSet<_> = unresolved.iter().map(|link| link.source).collect();
        let by_id: HashMap<_, _> = files.values().flatten().map(|row| (row.id, row.path.clone())).collect();
        let mut paths: BTreeSet<NotePath> = ids.iter().filter_map(|id| by_id.get(id).cloned()).collect();
        paths.extend(catalog.links().sources_of_links_above()?);
        paths.extend(catalog.links().sources_by_some_dialects()?);
        drop(catalog);
        paths.extend(view.unindexed()?.filter(|path| FileKind::of(path) != FileKind::Attachment));
        let mut scope =
            scope.iter().map(|path| scope_of(path, &names, &files)).collect::<Result<HashSet<_>>>()?;
        if scope.contains("") {
            scope.clear();
        }
        let mut present = Self {
            names,
            files,
            sources: Vec::new(),
            by_path: HashMap::new(),
            by_content: OnceCell::new(),
            dead: Vec::new(),
            misled: Vec::new(),
            captured: Vec::new(),
            scope,
            work: Cell::new(0),
        };
        paths.retain(|path| present.is_in_scope(path));
        for source in view.sources(paths)? {
            present.add(source);
        }
        for at in 0..present.sources.len() {
            let dead = present.dead_links(at);
            present.dead.extend(dead);
        }
        Ok(present)
    }

    /// Returns whether the links of a note are judged.
    pub(super) fn is_in_scope(&self, path: &NotePath) -> bool {
        let folders = path.as_str().match_indices('/').filter_map(|(at, _)| path.as_str().get(..at));
        let mut places = folders.chain([path.as_str()]);
        self.scope.is_empty() || places.any(|place| self.scope.contains(place))
    }

    /// Counts files that were looked at.
    pub(super) fn count(&self, files: usize) {
        self.work.set(self.work.get() + files);
    }

    /// Returns the number of files that were looked at for names and folders: a measure of the work.
    pub(super) fn work(&self) -> usize {
        self.work.get()
    }

    /// Adds a note, and returns its number.
    pub(super) fn add(&mut self, source: Source) -> usize {
        let at = self.sources.len();
        self.by_path.insert(source.path.clone(), at);
        self.sources.push(source);
        at
    }

    /// Returns the number of a note that was added.
    pub(super) fn number_of(&self, path: &NotePath) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    /// Returns whether a file exists.
    pub(super) fn has(&self, path: &NotePath) -> bool {
        self.files.contains_key(path)
    }

    /// Returns whether a place exists. One out of the vault was looked for by who names it.
    pub(super) fn has_place(&self, place: &LinkedPlace) -> bool {
        match place {
            LinkedPlace::File(path) => self.has(path),
            LinkedPlace::Folder(path) => self.names.has_folder(path.as_str()),
            LinkedPlace::Outside(_) => true,
        }
    }

    /// Returns the hash of a note's content, as the index knows it.
    pub(super) fn hash_of(&self, path: &NotePath) -> Option<Hash> {
        self.files.get(path)?.as_ref()?.hash
    }

    /// Lists the notes and canvases with a content, given by its hash.
    pub(super) fn with_content(&self, hash: &Hash) -> Vec<NotePath> {
        self.by_content
            .get_or_init(|| {
                let mut by_content: HashMap<Hash, Vec<NotePath>> = HashMap::new();
                for row in self.files.values().flatten() {
                    if let Some(hash) = row.hash {
                        by_content.entry(hash).or_default().push(row.path.clone());
                    }
                }
                by_content
            })
            .get(hash)
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the link of a case.
    pub(super) fn link(&self, case: &LinkCase) -> Option<&Link> {
        self.sources.get(case.source)?.note.links.get(case.link)
    }

    /// Lists the dead links of a note.
    fn dead_links(&self, at: usize) -> Vec<LinkCase> {
        let Some(source) = self.sources.get(at) else { return Vec::new() };
        let links = source.note.links.iter().enumerate().filter(|(_, link)| is_judged(link));
        links
            .filter_map(|(number, link)| {
                let is_dead = self.names.leads_nowhere(link, &source.path);
                self.leads_nowhere(link, &source.path).then_some(LinkCase {
                    source: at,
                    link: number,
                    is_dead,
                })
            })
            .collect()
    }

    /// Returns whether a link leads to nothing that is known, or above the root of the vault.
    pub(super) fn leads_nowhere(&self, link: &Link, source: &NotePath) -> bool {
        self.names.leads_nowhere(link, source) || self.leads_above(link, source)
    }

    /// Returns whether a link leads above the root of the vault.
    fn leads_above(&self, link: &Link, source: &NotePath) -> bool {
        let target = self.names.target(&link.path, link.form.syntax(), source);
        matches!(target, Some(LinkTarget::Elsewhere(path)) if path.starts_with("../"))
    }

    /// Lists the files that have the name of a link, in other folders.
    pub(super) fn namesakes(&self, case: &LinkCase) -> Vec<NotePath> {
        let Some(link) = self.link(case) else { return Vec::new() };
        let keys = name_keys(&link.path);
        let named = keys.iter().flat_map(|key| self.names.with_name(key));
        let found: BTreeSet<NotePath> = named.inspect(|_| self.count(1)).cloned().collect();
        found.into_iter().collect()
    }

    /// Returns whether another file has the name that a file had before it moved.
    pub(super) fn has_namesake(&self, from: &NotePath, to: &NotePath) -> bool {
        let name = key(from.name());
        // The moved file itself is not another one.
        let own = usize::from(key(to.name()) == name);
        self.names.with_name(&name).nth(own).is_some()
    }

    /// Lists the notes whose links were looked up by one of some names, given by their keys, and found a file.
    pub(super) fn looking_up(&self, core: &Core, names: &BTreeSet<String>) -> Result<BTreeSet<NotePath>> {
        let names: Vec<String> = names.iter().cloned().collect();
        let affected = core.index.catalog().links().affected_by_names(&names)?;
        let is_looked_up = |source: &NotePath, links: &LinkGroup| match links.syntax {
            LinkSyntax::Lookup => true,
            LinkSyntax::Markdown => !self.names.dialects().unit_of(source).dialect.follows_paths(),
            LinkSyntax::Exact => false,
        };
        let found = affected.into_iter().filter(|(_, source, links)| {
            links.target.is_some() && is_looked_up(source, links) && self.is_in_scope(source)
        });
        Ok(found.map(|(_, source, _)| source).collect())
    }

    /// Returns a file that a link of a note would lead to if it existed.
    pub(super) fn named_file(&self, link: &Link, source: &NotePath) -> Option<NotePath> {
        let beside = format!("{}/{}", source.folder(), link.path);
        let places = [clean(&link.path), clean(&beside)];
        let paths = places.iter().flat_map(|place| [(*place).clone(), format!("{place}.md")]);
        paths.filter_map(|path| NotePath::parse(&path).ok()).find(|path| {
            let mut table = self.names.empty_table();
            table.insert(path);
            table.insert_folders_above(path);
            table.follow(link, source).is_some()
        })
    }

    /// Returns the file that a person chose.
    ///
    /// # Errors
    /// `NotFound` if there is no such file.
    pub(super) fn chosen_target(&self, path: &str) -> Result<NotePath> {
        let chosen = NotePath::parse(path)?;
        if self.has(&chosen) {
            return Ok(chosen);
        }
        Err(Error::not_found(format!("{path} is no file of the vault")))
    }
}

/// Returns whether a link names a file of the vault, so that it can be dead.
pub(super) fn is_judged(link: &Link) -> bool {
    !clean(&link.path).is_empty() && !link.is_external() && !link.is_placeholder()
}

/// Returns the place that a link leads to: a file, a folder, or a file out of the vault.
pub(super) fn place_of(names: &FileNames, link: &Link, source: &NotePath) -> Option<LinkedPlace> {
    match names.target(&link.path, link.form.syntax(), source)? {
        LinkTarget::File(found, _) => Some(LinkedPlace::File(found.path.clone())),
        LinkTarget::Folder(path) => NotePath::from_disk(&path).map(LinkedPlace::Folder),
        LinkTarget::Elsewhere(path) => path.starts_with("../").then_some(LinkedPlace::Outside(path)),
    }
}

/// Returns a note or folder of a request as a path.
fn scope_of(given: &str, names: &FileNames, files: &HashMap<NotePath, Option<FileRow>>) -> Result<String> {
    let trimmed = given.trim_end_matches('/');
    if matches!(trimmed, "" | ".") {
        return Ok(String::new());
    }
    let path = NotePath::parse(trimmed.strip_prefix("./").unwrap_or(trimmed))?;
    if files.contains_key(&path) || names.has_folder(path.as_str()) {
        return Ok(path.as_str().to_owned());
    }
    let as_note = NotePath::parse(&format!("{path}.md")).ok().filter(|note| files.contains_key(note));
    as_note.map(|note| note.as_str().to_owned()).ok_or_else(|| {
        Error::not_found(format!("{given} is no note or folder of the vault"))
            .with_hint("name a note by its path, or a folder, from the root of the vault")
    })
}
