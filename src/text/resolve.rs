//! Link resolution: [`FileNames`] finds the file that a link means (spec/obsidian.md 3).
//!
//! Only paths count; aliases, titles and headings do not.

use hashbrown::HashMap;
use std::slice;

use crate::text::path::{NotePath, clean, key};

/// The form of the linktexts that a vault asks for (`newLinkFormat`, spec/obsidian.md 1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LinkFormat {
    /// The bare file name where it is the only one, else the full path.
    #[default]
    Shortest,
    /// The path from the folder of the note that holds the link.
    Relative,
    /// The path from the vault's root.
    Absolute,
}

/// The file that a link means, and how sure that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved<'a> {
    /// The file, in its spelling on disk.
    pub path: &'a NotePath,
    /// Whether other files would have served as well (spec/obsidian.md 3.5).
    pub ambiguous: bool,
    /// Whether only the order of bytes decided between two of them.
    pub unstable: bool,
}

/// The files of a vault, found by name (spec/obsidian.md 3.2).
///
/// Paths are looked up among the files of their name, so that each file is in one table only.
#[derive(Debug, Default)]
pub struct FileNames {
    files: Vec<NamedFile>,
    /// Places in `files` that stand empty.
    free: Vec<u32>,
    by_name: HashMap<Box<str>, FileIds>,
}

#[derive(Debug)]
struct NamedFile {
    path: NotePath,
    /// The key of the path, where that is not the path itself.
    key: Option<Box<str>>,
    /// The length of the path in UTF-16 units.
    units: u32,
}

/// The files that share a name.
#[derive(Debug)]
enum FileIds {
    One(u32),
    Many(Box<SharedName>),
}

#[derive(Debug)]
struct SharedName {
    /// Ordered by key: the files below a folder stand together.
    by_key: Vec<u32>,
    /// Ordered by preference: shortest path first.
    by_rank: Vec<u32>,
}

impl FileIds {
    fn by_key(&self) -> &[u32] {
        match self {
            Self::One(id) => slice::from_ref(id),
            Self::Many(many) => &many.by_key,
        }
    }

    fn by_rank(&self) -> &[u32] {
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

    /// Orders files of one key.
    fn place(&self) -> (&str, &str) {
        (self.key(), self.path.as_str())
    }

    /// Orders files by preference (spec/obsidian.md 3.3, step 11).
    fn rank(&self) -> (u32, &str) {
        (self.units, self.path.as_str())
    }
}

impl FileNames {
    /// Has room for so many files.
    pub fn with_capacity(files: usize) -> Self {
        Self { files: Vec::with_capacity(files), free: Vec::new(), by_name: HashMap::with_capacity(files) }
    }

    /// Adds a file; one that is there already stays as it is.
    pub fn insert(&mut self, path: &NotePath) {
        let name = key(path.name());
        let file = NamedFile::new(path);
        let place = match self.by_name.get(name.as_str()) {
            None => None,
            Some(ids) => match self.places(ids, &file) {
                (Ok(_), _) => return,
                (Err(by_key), Ok(by_rank) | Err(by_rank)) => Some((by_key, by_rank)),
            },
        };
        let id = self.free.pop().unwrap_or_else(|| u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        match self.files.get_mut(id as usize) {
            Some(free) => *free = file,
            None => self.files.push(file),
        }
        let Some((by_key, by_rank)) = place else {
            self.by_name.insert(name.into(), FileIds::One(id));
            return;
        };
        let Some(ids) = self.by_name.get_mut(name.as_str()) else {
            return;
        };
        if let FileIds::One(first) = *ids {
            *ids = FileIds::Many(Box::new(SharedName { by_key: vec![first], by_rank: vec![first] }));
        }
        if let FileIds::Many(many) = ids {
            many.by_key.insert(by_key, id);
            many.by_rank.insert(by_rank, id);
        }
    }

    /// Takes a file away, if it is there.
    pub fn remove(&mut self, path: &NotePath) {
        let name = key(path.name());
        let Some(ids) = self.by_name.get(name.as_str()) else {
            return;
        };
        let (Ok(by_key), Ok(by_rank)) = self.places(ids, &NamedFile::new(path)) else {
            return;
        };
        self.free.extend(ids.by_key().get(by_key));
        match self.by_name.get_mut(name.as_str()) {
            Some(FileIds::Many(many)) if many.by_key.len() > 1 => {
                many.by_key.remove(by_key);
                many.by_rank.remove(by_rank);
            }
            _ => {
                self.by_name.remove(name.as_str());
            }
        }
    }

    /// Says whether a file is the only one of its name.
    pub fn is_alone(&self, path: &NotePath) -> bool {
        self.by_name.get(key(path.name()).as_str()).is_none_or(|ids| ids.by_key().len() == 1)
    }

    /// Finds where a file stands, or belongs, in the two orders of its name.
    fn places(&self, ids: &FileIds, file: &NamedFile) -> (Result<usize, usize>, Result<usize, usize>) {
        (
            ids.by_key().binary_search_by(|&id| self.file(id).place().cmp(&file.place())),
            ids.by_rank().binary_search_by(|&id| self.file(id).rank().cmp(&file.rank())),
        )
    }

    fn file(&self, id: u32) -> &NamedFile {
        &self.files[id as usize]
    }

    /// Finds the file that a link in `source` means (spec/obsidian.md 3.3); an empty linkpath means the source.
    pub fn resolve<'a>(&'a self, linkpath: &str, source: &'a NotePath) -> Option<Resolved<'a>> {
        let cleaned = clean(linkpath);
        if cleaned.is_empty() {
            return Some(Resolved { path: source, ambiguous: false, unstable: false });
        }
        let named = |want: String| self.by_name.get(last(&want)).map(|ids| (want, ids));
        let (want, ids) = spellings(&cleaned).find_map(named)?;
        if !want.contains('/')
            && let FileIds::One(id) = ids
        {
            return self.pick([*id]);
        }
        let found = self.among(ids, &want, source)?;
        Some(self.as_spelled(ids, found, &cleaned))
    }

    /// Finds the file that a link in `source` means, whose name is that of `ids`; `want` is the link without case.
    fn among(&self, ids: &FileIds, want: &str, source: &NotePath) -> Option<Resolved<'_>> {
        let source_key = source.key();
        let folder = source_key.rfind('/').map_or("", |slash| &source_key[..=slash]);
        if want.starts_with("./") || want.starts_with("../") {
            return self.exact(ids, &join(folder, want)?);
        }
        if let Some(path) = want.strip_prefix('/') {
            return self.exact(ids, path);
        }
        let suffix = format!("/{want}");
        let fits = |id: &u32| self.file(*id).key().ends_with(&suffix);
        self.exact(ids, want)
            .or_else(|| self.below(ids, folder, fits))
            .or_else(|| self.pick(ids.by_rank().iter().copied().filter(fits)))
    }

    /// Finds the file of exactly this path, compared by key: what the file node of a canvas means.
    pub fn resolve_exact(&self, path: &str) -> Option<Resolved<'_>> {
        let lower = key(path);
        let ids = self.by_name.get(last(&lower))?;
        Some(self.as_spelled(ids, self.exact(ids, &lower)?, &clean(path)))
    }

    /// Takes, of files whose paths differ by case alone, the one that is spelled most like the link, from its end on.
    fn as_spelled<'a>(&'a self, ids: &FileIds, found: Resolved<'a>, link: &str) -> Resolved<'a> {
        if !found.ambiguous {
            return found;
        }
        let of_file = found.path.key();
        let start = ids.by_key().partition_point(|&id| self.file(id).key() < of_file.as_str());
        let twins = ids.by_key().get(start..).unwrap_or_default().iter().map(|&id| self.file(id));
        let twins = twins.take_while(|file| file.key() == of_file);
        let likeness = |path: &NotePath| {
            let path = path.as_str();
            // The extension may be left out of a link.
            let path = if ends_alike(path, link) { path } else { path.strip_suffix(".md").unwrap_or(path) };
            path.bytes().rev().zip(link.bytes().rev()).take_while(|(one, other)| one == other).count()
        };
        let rated: Vec<_> = twins.map(|twin| (likeness(&twin.path), &twin.path)).collect();
        let most = rated.iter().map(|(likeness, _)| *likeness).max();
        let mut best = rated.iter().filter(|(likeness, _)| Some(*likeness) == most);
        match (best.next(), best.next()) {
            (Some((_, path)), None) if rated.len() > 1 => Resolved { path, unstable: false, ..found },
            _ => found,
        }
    }

    /// Picks among the files whose path key is `path`.
    fn exact(&self, ids: &FileIds, path: &str) -> Option<Resolved<'_>> {
        let ids = ids.by_key();
        let start = ids.partition_point(|&id| self.file(id).key() < path);
        let same = ids.get(start..)?.iter().copied().take_while(|&id| self.file(id).key() == path);
        self.pick_unordered(same.collect())
    }

    /// Picks among the files below a folder that fit; the folder ends in a slash, the root has none.
    fn below(&self, ids: &FileIds, folder: &str, fits: impl Fn(&u32) -> bool) -> Option<Resolved<'_>> {
        /// A group of more files than this is met soon enough by going through all of the name in order.
        const FEW: usize = 64;
        let by_key = ids.by_key();
        let start = by_key.partition_point(|&id| self.file(id).key() < folder);
        let group = by_key.get(start..).unwrap_or_default();
        let is_below = |&id: &u32| self.file(id).key().starts_with(folder);
        let group = group.get(..group.partition_point(is_below)).unwrap_or_default();
        if folder.is_empty() || group.is_empty() {
            None
        } else if group.len() <= FEW {
            self.pick_unordered(group.iter().copied().filter(fits).collect())
        } else {
            self.pick(ids.by_rank().iter().copied().filter(is_below).filter(fits))
        }
    }

    fn pick_unordered(&self, mut ids: Vec<u32>) -> Option<Resolved<'_>> {
        ids.sort_unstable_by_key(|&id| self.file(id).rank());
        self.pick(ids)
    }

    /// Takes the first of the files, which come in order of preference.
    fn pick(&self, ids: impl IntoIterator<Item = u32>) -> Option<Resolved<'_>> {
        let mut files = ids.into_iter().map(|id| self.file(id));
        let best = files.next()?;
        let next = files.next();
        Some(Resolved {
            path: &best.path,
            ambiguous: next.is_some(),
            unstable: next.is_some_and(|next| next.units == best.units),
        })
    }
}

/// Lists the names that a lookup of `linkpath` may consult, so that stored links can be found again when a file of
/// such a name appears or vanishes; none for a link to the note itself.
pub fn name_keys(linkpath: &str) -> Vec<String> {
    let cleaned = clean(linkpath);
    if cleaned.is_empty() {
        return Vec::new();
    }
    spellings(&cleaned).map(|want| last(&want).to_owned()).collect()
}

/// Returns the paths that a cleaned linkpath may mean, in order: as it stands where its name holds a dot, then with
/// `.md`, which is appended before lower-casing because of the final sigma (spec/obsidian.md 3.3, steps 2 and 3).
fn spellings(cleaned: &str) -> impl Iterator<Item = String> {
    let literal = last(cleaned).contains('.').then(|| key(cleaned));
    literal.into_iter().chain(std::iter::once_with(move || key(&format!("{cleaned}.md"))))
}

/// Says whether a path and a link have the same extension, without regard to case.
fn ends_alike(path: &str, link: &str) -> bool {
    let extension = |text: &str| last(text).rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
    extension(path) == extension(link)
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Joins a relative path to a folder; `None` above the root.
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
