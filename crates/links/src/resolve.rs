//! Link resolution: [`FileNames`] finds the file that a link resolves to (docs/spec/obsidian.md 3).
//!
//! Links resolve by path only. Aliases, titles and headings are ignored. A wikilink is looked up by name; the path of a
//! Markdown link is read as the dialect of its note says (docs/spec/git.md 1).

use std::convert::Infallible;
use std::hash::BuildHasher as _;
use std::slice;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashSet, HashTable};
use sidenote_markdown::link::{Link, LinkSyntax, is_placeholder};
use sidenote_markdown::note::Note;
use sidenote_markdown::path::{NotePath, clean, key};

use crate::dialect::{DialectUnit, LinkDialect, LinkDialects, LinkPlace, PathSpelling, paths_before_query};
use crate::dialect_evidence::{DialectCounts, LinkEvidence};

/// The form of new link texts in a vault (`newLinkFormat`, docs/spec/obsidian.md 1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LinkFormat {
    /// The file name if it is unique in the vault, otherwise the full path.
    #[default]
    Shortest,
    /// The path from the folder of the note that contains the link.
    Relative,
    /// The path from the vault's root.
    Absolute,
}

/// The file that a link resolves to, and how certain that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved<'a> {
    /// The path of the file as spelled on the disk.
    pub path: &'a NotePath,
    /// The index of the file in the table, in the order in which files were added; `None` for the source of the link,
    /// which need not be in the table.
    pub index: Option<u32>,
    /// Whether the link matches other files as well (docs/spec/obsidian.md 3.5).
    pub ambiguous: bool,
    /// Whether only the byte order of the paths decided between two of them.
    pub unstable: bool,
}

impl<'a> Resolved<'a> {
    /// Returns the source of a link as its target.
    fn source(path: &'a NotePath) -> Self {
        Self { path, index: None, ambiguous: false, unstable: false }
    }
}

/// What a link leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget<'a> {
    /// A file of the vault, and how a Markdown link that is read as a path spells it.
    File(Resolved<'a>, Option<PathSpelling>),
    /// A folder of the vault, from its root; empty for the root. Only paths lead to folders.
    Folder(String),
    /// A path out of the vault, or to a hidden file. What is there is not known.
    Elsewhere(String),
}

/// The files of a vault, indexed by name (docs/spec/obsidian.md 3.2).
///
/// A path is looked up among the files with its name, so each file is in one table only.
#[derive(Debug, Default)]
pub struct FileNames {
    files: Vec<NamedFile>,
    /// The unused indexes of `files`.
    unused: Vec<u32>,
    /// The files of each name, by the key of the name, which is that of any of its files.
    by_name: HashTable<NameEntry>,
    /// The names of several files.
    shared: Vec<SharedName>,
    /// The unused indexes of `shared`.
    unused_shared: Vec<u32>,
    hasher: DefaultHashBuilder,
    /// The folders that are known to hold files.
    folders: HashSet<Box<str>>,
    dialects: Arc<LinkDialects>,
    /// Whether paths are followed by the rules of their dialect alone.
    is_strict: bool,
}

/// A file of the table.
#[derive(Debug)]
struct NamedFile {
    path: NotePath,
    /// The key of the path, if it differs from the path.
    key: Option<Box<str>>,
    /// The length of the path in UTF-16 code units.
    units: u32,
}

/// The files with one name: the index of the only file, or, with [`NameEntry::SHARED`], an index of `shared`. A table of
/// all files of a vault has one for nearly every file, so it is small.
#[derive(Debug, Clone, Copy)]
struct NameEntry(u32);

impl NameEntry {
    /// The bit that marks an index of `shared`.
    const SHARED: u32 = 1 << 31;

    fn of_shared(at: u32) -> Self {
        Self(at | Self::SHARED)
    }

    /// Returns the index in `shared`, if the name has several files.
    fn shared(self) -> Option<u32> {
        (self.0 & Self::SHARED != 0).then_some(self.0 & !Self::SHARED)
    }
}

/// The files with one name, as indexes of `files`.
#[derive(Debug, Clone, Copy)]
enum FileIds<'a> {
    One(&'a u32),
    Many(&'a SharedName),
}

/// Several files with one name.
#[derive(Debug, Default)]
struct SharedName {
    /// The files ordered by key, so that those below a folder are consecutive.
    by_key: Vec<u32>,
    /// The files ordered by preference, shortest path first.
    by_rank: Vec<u32>,
}

impl<'a> FileIds<'a> {
    fn by_key(self) -> &'a [u32] {
        match self {
            Self::One(id) => slice::from_ref(id),
            Self::Many(many) => &many.by_key,
        }
    }

    fn by_rank(self) -> &'a [u32] {
        match self {
            Self::One(id) => slice::from_ref(id),
            Self::Many(many) => &many.by_rank,
        }
    }
}

impl NamedFile {
    fn new(path: &NotePath) -> Self {
        let key = path.key();
        let units = u32::try_from(path.as_str().encode_utf16().count()).unwrap_or(u32::MAX);
        Self { path: path.clone(), key: (key != path.as_str()).then(|| key.into()), units }
    }

    fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(self.path.as_str())
    }

    /// Returns the key of the name.
    fn name_key(&self) -> &str {
        // No letter changes its key with what is before or after a slash. But a key has no space at its ends.
        last_segment(self.key()).trim()
    }

    /// Returns the sort key of the order by key.
    fn key_order(&self) -> (&str, &str) {
        (self.key(), self.path.as_str())
    }

    /// Returns the sort key of the order of preference (docs/spec/obsidian.md 3.3, step 11).
    fn rank(&self) -> (u32, &str) {
        (self.units, self.path.as_str())
    }
}

impl FileNames {
    /// Creates an empty table with capacity for `files` files.
    pub fn with_capacity(files: usize) -> Self {
        Self { files: Vec::with_capacity(files), by_name: HashTable::with_capacity(files), ..Self::default() }
    }

    /// Sets the dialects of the vault. Without them, all links have Obsidian's.
    #[must_use]
    pub fn with_dialects(mut self, dialects: Arc<LinkDialects>) -> Self {
        self.dialects = dialects;
        self
    }

    /// Follows paths by the rules of their dialect alone. A path that only other rules follow is then broken, as it is on the page.
    #[must_use]
    pub fn strictly(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Creates an empty table with the same dialects and rules.
    #[must_use]
    pub fn empty_table(&self) -> Self {
        let names = Self::default().with_dialects(Arc::clone(&self.dialects));
        Self { is_strict: self.is_strict, ..names }
    }

    /// Returns the dialects of the vault.
    pub fn dialects(&self) -> &LinkDialects {
        &self.dialects
    }

    /// Adds a folder that Markdown links can lead to.
    pub fn insert_folder(&mut self, folder: &str) {
        self.folders.insert(folder.into());
    }

    /// Returns whether a folder is known.
    pub fn has_folder(&self, folder: &str) -> bool {
        self.folders.contains(folder)
    }

    /// Adds all folders above a file.
    pub fn insert_folders_above(&mut self, path: &NotePath) {
        let mut folder = path.folder();
        while !folder.is_empty() && !self.folders.contains(folder) {
            self.folders.insert(folder.into());
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }

    /// Adds a file, unless it is in the table already.
    pub fn insert(&mut self, path: &NotePath) {
        self.insert_new(path);
    }

    /// Adds a file, unless it is in the table already. Returns whether it was added.
    pub fn insert_new(&mut self, path: &NotePath) -> bool {
        let file = NamedFile::new(path);
        let positions = match self.ids_of(file.name_key()) {
            None => None,
            Some(ids) => match self.positions_of(ids, &file) {
                (Ok(_), _) => return false,
                (Err(by_key), Ok(by_rank) | Err(by_rank)) => Some((by_key, by_rank)),
            },
        };
        let hash = self.hasher.hash_one(file.name_key());
        let id = self.unused.pop().unwrap_or_else(|| u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        match self.files.get_mut(id as usize) {
            Some(slot) => *slot = file,
            None => self.files.push(file),
        }
        let Self { files, by_name, shared, unused_shared, hasher, .. } = self;
        let name_key = |entry: NameEntry| name_key_of(files, shared, entry);
        let Some((by_key, by_rank)) = positions else {
            let rehash = |entry: &NameEntry| hasher.hash_one(name_key(*entry));
            by_name.insert_unique(hash, NameEntry(id), rehash);
            return true;
        };
        let name = files.get(id as usize).map_or("", NamedFile::name_key);
        let Some(entry) = by_name.find_mut(hash, |entry| name_key(*entry) == name) else { return true };
        let at = entry.shared().unwrap_or_else(|| {
            let first = SharedName { by_key: vec![entry.0], by_rank: vec![entry.0] };
            let at = unused_shared.pop().unwrap_or_else(|| u32::try_from(shared.len()).unwrap_or(u32::MAX));
            match shared.get_mut(at as usize) {
                Some(slot) => *slot = first,
                None => shared.push(first),
            }
            *entry = NameEntry::of_shared(at);
            at
        });
        if let Some(many) = shared.get_mut(at as usize) {
            many.by_key.insert(by_key, id);
            many.by_rank.insert(by_rank, id);
        }
        true
    }

    /// Returns the files with a name, given by its key.
    fn ids_of(&self, name: &str) -> Option<FileIds<'_>> {
        let is_named = |entry: &NameEntry| name_key_of(&self.files, &self.shared, *entry) == name;
        let entry = self.by_name.find(self.hasher.hash_one(name), is_named)?;
        match entry.shared() {
            None => Some(FileIds::One(&entry.0)),
            Some(at) => self.shared.get(at as usize).map(FileIds::Many),
        }
    }

    /// Returns whether the table has a file.
    pub fn contains(&self, path: &NotePath) -> bool {
        let file = NamedFile::new(path);
        self.ids_of(file.name_key()).is_some_and(|ids| self.positions_of(ids, &file).0.is_ok())
    }

    /// Removes a file, if it is in the table.
    pub fn remove(&mut self, path: &NotePath) {
        let file = NamedFile::new(path);
        let Some(ids) = self.ids_of(file.name_key()) else {
            return;
        };
        let (Ok(by_key), Ok(by_rank)) = self.positions_of(ids, &file) else {
            return;
        };
        let removed = ids.by_key().get(by_key).copied();
        let hash = self.hasher.hash_one(file.name_key());
        let Self { files, by_name, shared, unused_shared, .. } = self;
        let is_named = |entry: &NameEntry| name_key_of(files, shared, *entry) == file.name_key();
        let Ok(found) = by_name.find_entry(hash, is_named) else { return };
        match found.get().shared() {
            None => drop(found.remove()),
            Some(at) => {
                if let Some(many) = shared.get_mut(at as usize) {
                    many.by_key.remove(by_key);
                    many.by_rank.remove(by_rank);
                    if many.by_key.is_empty() {
                        found.remove();
                        unused_shared.push(at);
                    }
                }
            }
        }
        self.unused.extend(removed);
    }

    /// Returns whether no other file has the name of a file.
    pub fn has_unique_name(&self, path: &NotePath) -> bool {
        self.ids_of(&key(path.name())).is_none_or(|ids| ids.by_key().len() == 1)
    }

    /// Lists the files with the name of a file, that file included, ordered by preference.
    pub fn with_name_of(&self, path: &NotePath) -> impl Iterator<Item = &NotePath> {
        self.with_name(&key(path.name()))
    }

    /// Lists the files with a name, given by its key, ordered by preference.
    pub fn with_name(&self, name: &str) -> impl Iterator<Item = &NotePath> + use<'_> {
        let ids = self.ids_of(name).map_or(&[][..], FileIds::by_rank);
        ids.iter().map(|&id| &self.file(id).path)
    }

    /// Returns the correct spelling of the path of a Markdown link that leads to no file, if it differs from the path
    /// of exactly one file only in case or accents. The link is one of `source`, in which links are read as paths.
    pub fn respelled(&self, linkpath: &str, source: &NotePath) -> Option<String> {
        let unit = self.dialects.unit_of(source);
        let LinkPlace::Inside(place) = unit.place_of(linkpath, source) else { return None };
        for (path, spelling) in unit.files_at(&place) {
            let wanted = key(&path);
            let ids = self.ids_of(last_segment(&wanted)).map_or(&[][..], FileIds::by_key);
            let mut fitting = ids.iter().map(|&id| self.file(id)).filter(|file| file.key() == wanted);
            let (Some(file), None) = (fitting.next(), fitting.next()) else { continue };
            // The segments of the link that name the file or its folders are those of the file, from the end.
            let spelled = spelling.spell(file.path.as_str())?;
            let written: Vec<&str> = linkpath.split('/').collect();
            let named = written.iter().rev().take_while(|part| !matches!(**part, "" | "." | "..")).count();
            let of_file: Vec<&str> = spelled.split('/').collect();
            let (kept, taken) = (written.len() - named, of_file.len().checked_sub(named)?);
            let new = [written.get(..kept)?, of_file.get(taken..)?].concat().join("/");
            return match self.follow_path(&new, source) {
                Some(LinkTarget::File(found, _)) if *found.path == file.path => Some(new),
                _ => None,
            };
        }
        None
    }

    /// Finds the positions of a file in the two orders of its name, or the positions at which to insert it.
    fn positions_of(
        &self,
        ids: FileIds<'_>,
        file: &NamedFile,
    ) -> (Result<usize, usize>, Result<usize, usize>) {
        (
            ids.by_key().binary_search_by(|&id| self.file(id).key_order().cmp(&file.key_order())),
            ids.by_rank().binary_search_by(|&id| self.file(id).rank().cmp(&file.rank())),
        )
    }

    fn file(&self, id: u32) -> &NamedFile {
        &self.files[id as usize]
    }

    /// Finds the file that a link of `source` leads to. A link without a path leads to the source itself.
    pub fn follow<'a>(&'a self, link: &Link, source: &'a NotePath) -> Option<Resolved<'a>> {
        match self.target(&link.path, link.form.syntax(), source)? {
            LinkTarget::File(found, _) => Some(found),
            LinkTarget::Folder(_) | LinkTarget::Elsewhere(_) => None,
        }
    }

    /// Finds what a link of `source` leads to, given by its decoded path.
    pub fn target<'a>(
        &'a self,
        linkpath: &str,
        syntax: LinkSyntax,
        source: &'a NotePath,
    ) -> Option<LinkTarget<'a>> {
        let file = |found| LinkTarget::File(found, None);
        match syntax {
            LinkSyntax::Exact => self.resolve_exact(linkpath).map(file),
            LinkSyntax::Markdown if self.dialects.unit_of(source).dialect.follows_paths() => {
                self.follow_path(linkpath, source)
            }
            // An encoded `#` begins the subpath in Obsidian, also one at the beginning.
            LinkSyntax::Markdown if linkpath.starts_with('#') => self.resolve("", source).map(file),
            LinkSyntax::Lookup | LinkSyntax::Markdown => self.resolve(linkpath, source).map(file),
        }
    }

    /// Returns whether a link of `source` names a place in the vault where nothing is: no file, no folder, and nothing of
    /// the site or the disk around the vault.
    pub fn leads_nowhere(&self, link: &Link, source: &NotePath) -> bool {
        if clean(&link.path).is_empty() || link.is_external() || link.is_placeholder() {
            return false;
        }
        if self.target(&link.path, link.form.syntax(), source).is_some() {
            return false;
        }
        let unit = self.dialects.unit_of(source);
        if link.form.syntax() != LinkSyntax::Markdown || !unit.can_lead_beyond() {
            return true;
        }
        let has_folder = |folder: &str| Ok::<_, Infallible>(self.has_folder(folder));
        !unit.leads_beyond_files(&link.path, source, has_folder).unwrap_or_else(|never| match never {})
    }

    /// Finds what a link path leads to that is read as a file path.
    fn follow_path<'a>(&'a self, linkpath: &str, source: &'a NotePath) -> Option<LinkTarget<'a>> {
        if linkpath.is_empty() {
            return Some(LinkTarget::File(Resolved::source(source), Some(PathSpelling::File)));
        }
        let unit = self.dialects.unit_of(source);
        let lead = |path: &str| match unit.place_of(path, source) {
            LinkPlace::Elsewhere(path) => Some(LinkTarget::Elsewhere(path)),
            LinkPlace::Inside(place) => {
                let spelled = self.file_at(unit, &place);
                let spelled = spelled.map(|(found, spelling)| LinkTarget::File(found, Some(spelling)));
                let is_folder = place.is_empty() || self.has_folder(&place);
                spelled.or_else(|| is_folder.then_some(LinkTarget::Folder(place)))
            }
        };
        let by_other_rules = |path: &str| {
            if self.is_strict {
                return None;
            }
            let mut files = unit.files_by_other_rules(path, source).into_iter();
            let found = files.find_map(|path| self.pick(self.spelled(&path)))?;
            Some(LinkTarget::File(found, Some(PathSpelling::ByOtherRules)))
        };
        paths_before_query(linkpath)
            .find_map(lead)
            .or_else(|| paths_before_query(linkpath).find_map(by_other_rules))
    }

    /// Finds the file that a place means in a unit, and how the place spells it.
    fn file_at(&self, unit: &DialectUnit, place: &str) -> Option<(Resolved<'_>, PathSpelling)> {
        let mut files = unit.files_at(place).into_iter();
        files.find_map(|(path, spelling)| Some((self.pick(self.spelled(&path))?, spelling)))
    }

    /// Counts the links of a note by the dialects that they speak for.
    pub fn count_evidence(&self, note: &Note, source: &NotePath, below_repository: &str) -> DialectCounts {
        let mut counts = DialectCounts::default();
        for link in &note.links {
            counts.add(self.evidence(&link.path, link.form.syntax(), source, below_repository), 1);
        }
        counts
    }

    /// Returns which dialects of the vault a link of `source` speaks for. Links within a note, on a canvas, or in a book or site
    /// of the vault speak for none.
    ///
    /// `below_repository` is the path of the vault in its repository.
    pub fn evidence(
        &self,
        linkpath: &str,
        syntax: LinkSyntax,
        source: &NotePath,
        below_repository: &str,
    ) -> LinkEvidence {
        let looked_up = || self.resolve(linkpath, source).map(|found| found.path);
        self.evidence_by(linkpath, syntax, source, below_repository, looked_up)
    }

    /// Finds what a link of `source` leads to, and which dialects it speaks for: [`target`](Self::target) and
    /// [`evidence`](Self::evidence), with one lookup where both need it.
    pub fn target_and_evidence<'a>(
        &'a self,
        linkpath: &str,
        syntax: LinkSyntax,
        source: &'a NotePath,
        below_repository: &str,
    ) -> (Option<LinkTarget<'a>>, LinkEvidence) {
        let target = self.target(linkpath, syntax, source);
        let follows_paths =
            syntax == LinkSyntax::Markdown && self.dialects.unit_of(source).dialect.follows_paths();
        let looked_up = || match &target {
            Some(LinkTarget::File(found, _)) if !follows_paths => Some(found.path),
            None if !follows_paths => None,
            _ => self.resolve(linkpath, source).map(|found| found.path),
        };
        let evidence = self.evidence_by(linkpath, syntax, source, below_repository, looked_up);
        (target, evidence)
    }

    /// Returns the evidence of a link, where `looked_up` finds the file to which a lookup leads.
    fn evidence_by<'a>(
        &'a self,
        linkpath: &str,
        syntax: LinkSyntax,
        source: &'a NotePath,
        below_repository: &str,
        looked_up: impl FnOnce() -> Option<&'a NotePath>,
    ) -> LinkEvidence {
        let is_counted = !linkpath.is_empty()
            && !linkpath.starts_with('#')
            && !linkpath.contains("://")
            && !is_placeholder(linkpath)
            && syntax != LinkSyntax::Exact
            && self.dialects.unit_of(source).folder.is_empty();
        if !is_counted {
            return LinkEvidence::default();
        }
        let looked_up = looked_up();
        if syntax == LinkSyntax::Lookup {
            return LinkEvidence::of_wikilink(looked_up.is_some());
        }
        let site = DialectUnit { dialect: LinkDialect::Site, ..DialectUnit::default() };
        let mut evidence = LinkEvidence::none();
        if let Some(found) = looked_up {
            // All dialects follow the exact relative path of a file, and most links are such.
            if !linkpath.starts_with('/')
                && matches!(site.place_of(linkpath, source), LinkPlace::Inside(place) if place == found.as_str())
            {
                LinkDialect::ALL.iter().for_each(|dialect| evidence.add(*dialect));
                return evidence;
            }
            evidence.add(LinkDialect::Obsidian);
        }
        let find = |unit: &DialectUnit| {
            let find_at = |path| match unit.place_of(path, source) {
                LinkPlace::Inside(place) => self.file_at(unit, &place),
                LinkPlace::Elsewhere(_) => None,
            };
            paths_before_query(linkpath).find_map(find_at).map(|(_, spelling)| spelling)
        };
        // A site follows all that GitHub and mdBook follow.
        let followers: &[LinkDialect] = match find(&site) {
            Some(PathSpelling::File) => &[LinkDialect::Github, LinkDialect::Mdbook, LinkDialect::Site],
            Some(PathSpelling::Page | PathSpelling::Folder) => &[LinkDialect::Mdbook, LinkDialect::Site],
            Some(_) => &[LinkDialect::Site],
            None => &[],
        };
        followers.iter().for_each(|dialect| evidence.add(*dialect));
        if linkpath.starts_with('/') && !below_repository.is_empty() {
            let prefix = below_repository.to_owned();
            let github = DialectUnit { dialect: LinkDialect::Github, prefix, ..DialectUnit::default() };
            match find(&github) {
                Some(_) => evidence.add(LinkDialect::Github),
                None => evidence.remove(LinkDialect::Github),
            }
        }
        evidence
    }

    /// Finds the file with exactly this path, in this case. A file whose path differs in the encoding of accents or in
    /// kinds of spaces is found if there is none.
    fn spelled(&self, path: &str) -> Option<u32> {
        let ids = self.ids_of(&key(last_segment(path)))?.by_key();
        let find = |is_meant: &dyn Fn(&str) -> bool| {
            ids.iter().copied().find(|&id| is_meant(self.file(id).path.as_str()))
        };
        find(&|file| file == path).or_else(|| {
            let wanted = clean(path);
            find(&|file| clean(file) == wanted)
        })
    }

    /// Finds the file that a link path in `source` resolves to by lookup (docs/spec/obsidian.md 3.3). An empty link
    /// path resolves to the source itself.
    pub fn resolve<'a>(&'a self, linkpath: &str, source: &'a NotePath) -> Option<Resolved<'a>> {
        let cleaned = clean(looked_up_path(linkpath));
        if cleaned.is_empty() {
            return Some(Resolved::source(source));
        }
        let named = |want: String| self.ids_of(last_segment(&want)).map(|ids| (want, ids));
        let (want, ids) = candidate_keys(&cleaned).find_map(named)?;
        if !want.contains('/')
            && let FileIds::One(id) = ids
        {
            return self.pick([*id]);
        }
        let found = self.resolve_among(ids, &want, source)?;
        Some(self.prefer_spelling(ids, found, &cleaned))
    }

    /// Resolves a link in `source` among the files `ids`, which have the right name. `want` is the key of the link
    /// path.
    fn resolve_among(&self, ids: FileIds<'_>, want: &str, source: &NotePath) -> Option<Resolved<'_>> {
        let source_key = source.key();
        let folder = source_key.rfind('/').map_or("", |slash| &source_key[..=slash]);
        if want.starts_with("./") || want.starts_with("../") {
            return self.exact(ids, &join(folder, want)?);
        }
        if let Some(path) = want.strip_prefix('/') {
            return self.exact(ids, path);
        }
        let suffix = format!("/{want}");
        let matches = |id: &u32| self.file(*id).key().ends_with(&suffix);
        self.exact(ids, want)
            .or_else(|| self.below(ids, folder, matches))
            .or_else(|| self.pick(ids.by_rank().iter().copied().filter(matches)))
    }

    /// Finds the file with exactly this path, compared by key, as file nodes of a canvas resolve.
    pub fn resolve_exact(&self, path: &str) -> Option<Resolved<'_>> {
        let lower = key(path);
        let ids = self.ids_of(last_segment(&lower))?;
        Some(self.prefer_spelling(ids, self.exact(ids, &lower)?, &clean(path)))
    }

    /// Among files whose paths differ only by case, selects the one whose spelling has the longest common suffix with
    /// the link.
    fn prefer_spelling<'a>(&'a self, ids: FileIds<'_>, found: Resolved<'a>, link: &str) -> Resolved<'a> {
        if !found.ambiguous {
            return found;
        }
        let path_key = found.path.key();
        let start = ids.by_key().partition_point(|&id| self.file(id).key() < path_key.as_str());
        let same_key = ids.by_key().get(start..).unwrap_or_default().iter().map(|&id| (id, self.file(id)));
        let same_key = same_key.take_while(|(_, file)| file.key() == path_key);
        let common_suffix = |path: &NotePath| {
            let path = path.as_str();
            // A link can omit the extension.
            let path =
                if has_same_extension(path, link) { path } else { path.strip_suffix(".md").unwrap_or(path) };
            path.bytes().rev().zip(link.bytes().rev()).take_while(|(one, other)| one == other).count()
        };
        let candidates: Vec<_> =
            same_key.map(|(id, file)| (common_suffix(&file.path), id, &file.path)).collect();
        let longest = candidates.iter().map(|(common_suffix, ..)| *common_suffix).max();
        let mut best = candidates.iter().filter(|(common_suffix, ..)| Some(*common_suffix) == longest);
        match (best.next(), best.next()) {
            (Some((_, id, path)), None) if candidates.len() > 1 => {
                Resolved { path, index: Some(*id), unstable: false, ..found }
            }
            _ => found,
        }
    }

    /// Selects the preferred file among those whose key is `path`.
    fn exact(&self, ids: FileIds<'_>, path: &str) -> Option<Resolved<'_>> {
        let ids = ids.by_key();
        let start = ids.partition_point(|&id| self.file(id).key() < path);
        let same = ids.get(start..)?.iter().copied().take_while(|&id| self.file(id).key() == path);
        self.pick_unordered(same.collect())
    }

    /// Selects the preferred file among those below a folder that match. The folder ends with a slash, or is empty for
    /// the root.
    fn below(&self, ids: FileIds<'_>, folder: &str, matches: impl Fn(&u32) -> bool) -> Option<Resolved<'_>> {
        /// The largest group that is filtered first. In a larger group, a match is found soon by going through all
        /// files of the name in order of preference.
        const MAX_FILTERED: usize = 64;
        let by_key = ids.by_key();
        let start = by_key.partition_point(|&id| self.file(id).key() < folder);
        let group = by_key.get(start..).unwrap_or_default();
        let is_below = |&id: &u32| self.file(id).key().starts_with(folder);
        let group = group.get(..group.partition_point(is_below)).unwrap_or_default();
        if folder.is_empty() || group.is_empty() {
            None
        } else if group.len() <= MAX_FILTERED {
            self.pick_unordered(group.iter().copied().filter(matches).collect())
        } else {
            self.pick(ids.by_rank().iter().copied().filter(is_below).filter(matches))
        }
    }

    fn pick_unordered(&self, mut ids: Vec<u32>) -> Option<Resolved<'_>> {
        ids.sort_unstable_by_key(|&id| self.file(id).rank());
        self.pick(ids)
    }

    /// Selects the first of the files, which come in order of preference.
    fn pick(&self, ids: impl IntoIterator<Item = u32>) -> Option<Resolved<'_>> {
        let mut ids = ids.into_iter();
        let first = ids.next()?;
        let (best, next) = (self.file(first), ids.next().map(|id| self.file(id)));
        Some(Resolved {
            path: &best.path,
            index: Some(first),
            ambiguous: next.is_some(),
            unstable: next.is_some_and(|next| next.units == best.units),
        })
    }
}

/// Returns the key of the name of some files of a table.
fn name_key_of<'a>(files: &'a [NamedFile], shared: &[SharedName], entry: NameEntry) -> &'a str {
    let id = match entry.shared() {
        None => Some(entry.0),
        Some(at) => shared.get(at as usize).and_then(|many| many.by_key.first().copied()),
    };
    id.and_then(|id| files.get(id as usize)).map_or("", NamedFile::name_key)
}

/// Lists the keys of the file names that `linkpath` can match, so that stored links can be resolved again when such a
/// file is added or removed. A link to the note itself has none.
pub fn name_keys(linkpath: &str) -> Vec<String> {
    let whole = clean(linkpath);
    if whole.is_empty() {
        return Vec::new();
    }
    let before_hash = clean(looked_up_path(linkpath));
    let mut keys: Vec<String> = candidate_keys(&whole).map(|want| last_segment(&want).to_owned()).collect();
    if before_hash != whole {
        keys.extend(candidate_keys(&before_hash).map(|want| last_segment(&want).to_owned()));
    }
    keys
}

/// Returns the part of a link path that is looked up by name. Obsidian decodes a Markdown link before it splits it, so that
/// also an encoded `#` ends the path (docs/spec/obsidian.md 2.4).
fn looked_up_path(linkpath: &str) -> &str {
    linkpath.find('#').filter(|&at| at > 0).and_then(|at| linkpath.get(..at)).unwrap_or(linkpath)
}

/// Lists the paths of files and folders that a Markdown link in `source` can mean where it is read as a path. The list
/// is empty where it is looked up by name.
pub fn link_places(dialects: &LinkDialects, linkpath: &str, source: &NotePath) -> Vec<String> {
    let mut places = strict_places(dialects, linkpath, source);
    for path in paths_before_query(linkpath) {
        places.extend(dialects.unit_of(source).files_by_other_rules(path, source));
    }
    places.sort_unstable();
    places.dedup();
    places
}

/// Lists the places of [`link_places`] by the rules of the dialect alone.
pub fn strict_places(dialects: &LinkDialects, linkpath: &str, source: &NotePath) -> Vec<String> {
    let unit = dialects.unit_of(source);
    if !unit.dialect.follows_paths() || linkpath.is_empty() {
        return Vec::new();
    }
    let mut places = Vec::new();
    for path in paths_before_query(linkpath) {
        add_places(unit, path, source, &mut places);
    }
    places.sort_unstable();
    places.dedup();
    places
}

/// Lists the paths of files that decide about the evidence of a Markdown link in `source`, without those that a lookup of its
/// name finds.
pub fn evidence_places(linkpath: &str, source: &NotePath, below_repository: &str) -> Vec<String> {
    let names = name_keys(linkpath);
    let site = DialectUnit { dialect: LinkDialect::Site, ..DialectUnit::default() };
    let prefix = below_repository.to_owned();
    let github = DialectUnit { dialect: LinkDialect::Github, prefix, ..DialectUnit::default() };
    let mut places = Vec::new();
    for path in paths_before_query(linkpath) {
        add_places(&site, path, source, &mut places);
        if linkpath.starts_with('/') && !below_repository.is_empty() {
            add_places(&github, path, source, &mut places);
        }
    }
    places.retain(|place| !names.contains(&key(last_segment(place))));
    places.sort_unstable();
    places.dedup();
    places
}

fn add_places(unit: &DialectUnit, path: &str, source: &NotePath, places: &mut Vec<String>) {
    if let LinkPlace::Inside(place) = unit.place_of(path, source) {
        places.extend(unit.files_at(&place).into_iter().map(|(path, _)| path));
        places.push(place);
    }
}

/// Returns the keys of the paths that a cleaned link path can mean, in order: the path itself if its name contains a
/// dot, then the path with `.md`. The extension is appended before lower-casing because of the final sigma
/// (docs/spec/obsidian.md 3.3, steps 2 and 3).
fn candidate_keys(cleaned: &str) -> impl Iterator<Item = String> {
    let literal = last_segment(cleaned).contains('.').then(|| key(cleaned));
    literal.into_iter().chain(std::iter::once_with(move || key(&format!("{cleaned}.md"))))
}

/// Returns whether a path and a link have the same extension, ignoring case.
fn has_same_extension(path: &str, link: &str) -> bool {
    let extension =
        |text: &str| last_segment(text).rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
    extension(path) == extension(link)
}

/// Returns the last segment of a path.
fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Joins a relative path to a folder. Returns `None` if it leads above the root.
fn join(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
