//! Link dialects: what the path of a Markdown link means where the notes are published (docs/spec/git.md 1).
//!
//! Obsidian looks a Markdown link up by name. GitHub, mdBook and site generators follow it as a path. Wikilinks are
//! looked up by name everywhere.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use sidenote_base::error::Error;
use sidenote_markdown::path::NotePath;

/// The rules by which the path and the anchor of a Markdown link are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkDialect {
    /// The path is looked up among the files of the vault (docs/spec/obsidian.md 3.3); an anchor is the text of a heading.
    #[default]
    Obsidian,
    /// The path is a file path; an anchor is the slug of a heading.
    Github,
    /// As on GitHub, within the sources of the book; `x.html` is the page of `x.md`.
    Mdbook,
    /// As on GitHub, within the folder of the site; extensions can be omitted.
    Site,
}

impl LinkDialect {
    /// All dialects.
    pub const ALL: [Self; 4] = [Self::Obsidian, Self::Github, Self::Mdbook, Self::Site];

    /// Returns the name in settings and replies.
    pub fn name(self) -> &'static str {
        match self {
            Self::Obsidian => "obsidian",
            Self::Github => "github",
            Self::Mdbook => "mdbook",
            Self::Site => "site",
        }
    }

    /// Returns whether Markdown links are followed as paths.
    pub fn follows_paths(self) -> bool {
        self != Self::Obsidian
    }
}

impl fmt::Display for LinkDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LinkDialect {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name).ok_or_else(|| {
            Error::invalid(format!("{name:?} is not a link dialect"))
                .with_hint("use obsidian, github, mdbook or site")
        })
    }
}

/// The beginning of the reason of a dialect that is only assumed: no file decides, and the links do not either.
pub const ASSUMED: &str = "the links do not decide";

/// The reason of a dialect that the links chose.
pub const CHOSEN: &str = "most links lead to a file so";

/// The table of contents of a book in mdBook's form. In a folder `src`, it marks a book whose `book.toml` is elsewhere.
pub const SUMMARY: &str = "SUMMARY.md";

/// Returns whether a folder with a [`SUMMARY`] is that of a book's pages.
pub fn is_book_source(folder: &str) -> bool {
    folder == "src" || folder.ends_with("/src")
}

/// The dialect of a vault, as its links choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialectChoice {
    /// The dialect.
    pub dialect: LinkDialect,
    /// Whether the links do not decide between lookup by name and paths.
    pub is_assumed: bool,
}

/// The dialect of the notes below one folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DialectUnit {
    /// The folder, from the root of the vault; empty for the vault.
    pub folder: String,
    /// The dialect.
    pub dialect: LinkDialect,
    /// The folder at which a link path with a leading slash begins, from the root of the vault.
    pub root: String,
    /// What such a path has before the path from that folder, without slashes at its ends: the path of the vault in a larger
    /// repository, or the address of the folder on its site. Often it is empty.
    pub prefix: String,
    /// The file that marks the folder of a book or site, if one decided.
    pub marker: Option<String>,
    /// What decided, as a phrase: the path of the marker, or a setting.
    pub reason: String,
}

/// The dialects of the folders of a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkDialects {
    /// The units, the deepest folders first. The last one is the vault.
    units: Vec<DialectUnit>,
}

impl Default for LinkDialects {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl LinkDialects {
    /// Creates the table of these units. A vault without a unit of its own has Obsidian's dialect.
    pub fn new(mut units: Vec<DialectUnit>) -> Self {
        if units.iter().all(|unit| !unit.folder.is_empty()) {
            units.push(DialectUnit::default());
        }
        let depth = |unit: &DialectUnit| unit.folder.split('/').filter(|part| !part.is_empty()).count();
        units.sort_by(|a, b| depth(b).cmp(&depth(a)).then_with(|| a.folder.cmp(&b.folder)));
        units.dedup_by(|again, first| again.folder == first.folder);
        Self { units }
    }

    /// Returns the unit of the vault, without the folders that have one of their own.
    pub fn vault(&self) -> &DialectUnit {
        &self.units[self.units.len() - 1]
    }

    /// Returns the dialect of the vault if its links chose it, or did not decide.
    pub fn chosen_by_links(&self) -> Option<DialectChoice> {
        let unit = self.vault();
        let is_chosen = !unit.is_certain();
        is_chosen.then(|| DialectChoice { dialect: unit.dialect, is_assumed: unit.is_assumed() })
    }

    /// Lists the units, the deepest folders first. The last one is the vault.
    pub fn units(&self) -> &[DialectUnit] {
        &self.units
    }

    /// Returns whether links have the same targets under other dialects, which can have different reasons.
    pub fn has_same_rules(&self, other: &Self) -> bool {
        let rules = |unit: &DialectUnit| DialectUnit { reason: String::new(), marker: None, ..unit.clone() };
        self.units.iter().map(rules).eq(other.units.iter().map(rules))
    }

    /// Returns the unit that a file belongs to.
    pub fn unit_of(&self, path: &NotePath) -> &DialectUnit {
        self.units.iter().find(|unit| holds(&unit.folder, path.as_str())).unwrap_or_else(|| self.vault())
    }

    /// Returns the dialects after files moved. The folder of a book or site moves with the file that marks it.
    ///
    /// `file_after` and `folder_after` return the path of a file and of a folder after the moves.
    #[must_use]
    pub fn after(&self, file_after: impl Fn(&str) -> String, folder_after: impl Fn(&str) -> String) -> Self {
        let unit_after = |unit: &DialectUnit| {
            let Some(marker) = &unit.marker else { return Some(unit.clone()) };
            let moved = file_after(marker);
            let (before, after) = (folder_of(marker), folder_of(&moved));
            if !holds(before, &unit.folder) && before != unit.folder {
                // A site whose pages are not below its marker.
                let folder = folder_after(&unit.folder);
                let root = if unit.root == unit.folder { folder.clone() } else { unit.root.clone() };
                return Some(DialectUnit {
                    folder,
                    root,
                    marker: Some(moved.clone()),
                    reason: moved,
                    ..unit.clone()
                });
            }
            let inner = unit.folder.strip_prefix(before).unwrap_or(&unit.folder).trim_start_matches('/');
            let beside = if inner.is_empty() || after.is_empty() {
                format!("{after}{inner}")
            } else {
                format!("{after}/{inner}")
            };
            if marker.ends_with(SUMMARY) && !is_book_source(&beside) {
                return None;
            }
            // A folder that does not move with its marker is found no more, and the marker's own folder is taken.
            let folder = if folder_after(&unit.folder) == beside { beside } else { after.to_owned() };
            let root = if unit.root == unit.folder { folder.clone() } else { unit.root.clone() };
            Some(DialectUnit { folder, root, marker: Some(moved.clone()), reason: moved, ..unit.clone() })
        };
        Self::new(self.units.iter().filter_map(unit_after).collect())
    }

    /// Returns whether Markdown links are followed as paths anywhere.
    pub fn any_follows_paths(&self) -> bool {
        self.units.iter().any(|unit| unit.dialect.follows_paths())
    }
}

/// A place that a link path leads to, before it is known what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkPlace {
    /// A path from the root of the vault; empty for the root itself.
    Inside(String),
    /// A path that leads out of the vault or to a hidden file, from the root of the vault, with leading `..` if need be.
    Elsewhere(String),
}

impl DialectUnit {
    /// Returns the place that the path of a Markdown link in a file leads to.
    ///
    /// `path` is decoded, without a query and an anchor.
    pub fn place_of(&self, path: &str, source: &NotePath) -> LinkPlace {
        if let Some(below) = path.strip_prefix(SITE_ALIAS).filter(|_| self.dialect == LinkDialect::Site) {
            return reduced(self.project(), below);
        }
        let Some(rooted) = path.strip_prefix('/') else { return reduced(source.folder(), path) };
        if self.prefix.is_empty() {
            return reduced(&self.root, rooted);
        }
        let LinkPlace::Inside(from_root) = reduced("", rooted) else {
            return LinkPlace::Elsewhere(path.to_owned());
        };
        match from_root.strip_prefix(self.prefix.as_str()) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => reduced(&self.root, rest),
            _ => LinkPlace::Elsewhere(path.to_owned()),
        }
    }

    /// Returns the folder of the site's project, which holds the settings of its generator.
    fn project(&self) -> &str {
        self.marker.as_deref().map_or(&self.folder, folder_of)
    }

    /// Returns the path of a file or folder as Docusaurus writes it from the folder of the project, `@site/docs/a.md`.
    /// Returns `None` outside of it.
    pub(crate) fn path_in_project(&self, path: &str) -> Option<String> {
        let below = match self.project() {
            "" => path,
            project => path.strip_prefix(project)?.strip_prefix('/')?,
        };
        Some(format!("{SITE_ALIAS}{below}"))
    }

    /// Lists the paths of files that a link path can mean if there is no file at its path: the same path without the
    /// extension, and the path from the root, as many agents write it. In a dialect that looks notes up by name, the
    /// lookup finds these.
    pub(crate) fn files_by_other_rules(&self, path: &str, source: &NotePath) -> Vec<String> {
        let mut files = Vec::new();
        if !self.dialect.follows_paths() || path.is_empty() {
            return files;
        }
        let mut add = |place: &str| {
            if !place.is_empty() {
                files.extend([place.to_owned(), format!("{place}.md")]);
            }
        };
        if let LinkPlace::Inside(place) = self.place_of(path, source) {
            add(&place);
        }
        let is_explicit = path.starts_with('/') || matches!(path.split('/').next(), Some("." | ".."));
        if !is_explicit && let LinkPlace::Inside(place) = reduced(&self.root, path) {
            add(&place);
        }
        files
    }

    /// Lists the paths of files that a place can mean, the preferred first, each with its spelling.
    pub fn files_at(&self, place: &str) -> Vec<(String, PathSpelling)> {
        let mut files = Vec::new();
        let mut add = |path: String, spelling: PathSpelling| files.push((path, spelling));
        if !place.is_empty() {
            add(place.to_owned(), PathSpelling::File);
        }
        // Only the files of the book or site become pages of it.
        let is_page = holds(&self.folder, place) || place == self.folder;
        if !is_page || matches!(self.dialect, LinkDialect::Obsidian | LinkDialect::Github) {
            return files;
        }
        let within =
            |name: &str| if place.is_empty() { name.to_owned() } else { [place, "/", name].concat() };
        if let Some(stem) = place.strip_suffix(".html") {
            add(format!("{stem}.md"), PathSpelling::Page);
            if stem == "index" || stem.ends_with("/index") {
                add(
                    format!("{}README.md", stem.strip_suffix("index").unwrap_or_default()),
                    PathSpelling::Page,
                );
            }
            return files;
        }
        // A page with its extension is neither named without it nor a folder.
        if has_page_extension(place) {
            return files;
        }
        if self.dialect == LinkDialect::Site && !place.is_empty() {
            for extension in ["md", "mdx"] {
                add([place, ".", extension].concat(), PathSpelling::WithoutExtension);
            }
        }
        for name in INDEX_NAMES {
            add(within(name), PathSpelling::Folder);
        }
        files
    }

    /// Returns whether a link path without a file leads to a folder, or out of what the vault contains. Such a link is not
    /// broken as far as the vault is concerned.
    ///
    /// # Errors
    /// Those of `has_folder`, which tells whether the vault has a folder.
    pub fn leads_beyond_files<E>(
        &self,
        link_path: &str,
        source: &NotePath,
        has_folder: impl Fn(&str) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let (path, _) = split_query(link_path);
        let LinkPlace::Inside(place) = self.place_of(path, source) else { return Ok(true) };
        let is_rooted = path.starts_with('/');
        if place.is_empty() || self.is_outside_pages(&place) || is_rooted && self.dialect == LinkDialect::Site
        {
            return Ok(true);
        }
        // A path from the root that begins with no folder of the vault is a page of the site around it. Links to such pages
        // are many, and their first folders few.
        let below = place.strip_prefix(self.root.as_str()).unwrap_or(&place).trim_start_matches('/');
        if is_rooted && let Some((first, _)) = below.split_once('/') {
            let folder =
                if self.root.is_empty() { first.to_owned() } else { format!("{}/{first}", self.root) };
            if !has_folder(&folder)? {
                return Ok(true);
            }
        }
        has_folder(&place)
    }

    /// Returns whether a link path leads out of the pages of a book or site, to a place where the vault has no file. What a
    /// server shows there is not known.
    pub fn leaves_pages(&self, link_path: &str, source: &NotePath) -> bool {
        let (path, _) = split_query(link_path);
        match self.place_of(path, source) {
            LinkPlace::Inside(place) => self.is_outside_pages(&place),
            // It is not known whether hidden files and files outside of the vault exist.
            LinkPlace::Elsewhere(_) => false,
        }
    }

    /// Returns whether a place is outside of the pages of a book or site.
    fn is_outside_pages(&self, place: &str) -> bool {
        matches!(self.dialect, LinkDialect::Mdbook | LinkDialect::Site)
            && !holds(&self.folder, place)
            && place != self.folder
    }

    /// Returns whether a Markdown link without a file can lead out of what the vault contains: where links are paths, and where it
    /// is not known whether they are.
    pub fn can_lead_beyond(&self) -> bool {
        self.dialect.follows_paths() || self.is_assumed()
    }

    /// Returns whether a file or a setting decided the dialect.
    pub fn is_certain(&self) -> bool {
        self.marker.is_some() || !(self.is_assumed() || self.reason == CHOSEN)
    }

    /// Returns whether nothing speaks for the dialect but that nothing speaks for another one.
    pub fn is_assumed(&self) -> bool {
        self.marker.is_none() && self.reason.starts_with(ASSUMED)
    }

    /// Returns the path of a file or folder as it is written with a leading slash. Returns `None` outside of the root.
    pub fn rooted(&self, path: &str) -> Option<String> {
        let below_root = match self.root.as_str() {
            "" => path,
            root => path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))?,
        };
        let parts = [self.prefix.as_str(), below_root.trim_start_matches('/')];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Some(format!("/{}", parts.join("/")))
    }
}

/// What a path begins with that Docusaurus reads from the folder of the project.
pub(crate) const SITE_ALIAS: &str = "@site/";

/// The names of the files that a generator shows as the page of their folder.
pub const INDEX_NAMES: [&str; 3] = ["index.md", "README.md", "_index.md"];

/// How a link path spells the file that it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathSpelling {
    /// With the name of the file.
    File,
    /// With the name of the page that is made of it, `x.html` for `x.md`.
    Page,
    /// Without its extension.
    WithoutExtension,
    /// With its folder alone.
    Folder,
    /// In a way that the dialect does not follow: without its extension, or from the root. It is taken because nothing else fits.
    ByOtherRules,
}

impl PathSpelling {
    /// Returns a path of a file in this spelling. Returns `None` if the file cannot be spelled so.
    pub fn spell(self, file: &str) -> Option<String> {
        let (folder, name) = file.rsplit_once('/').map_or(("", file), |(folder, name)| (folder, name));
        match self {
            Self::File | Self::ByOtherRules => Some(file.to_owned()),
            Self::Page => {
                let stem = file.strip_suffix(".md")?;
                Some(match stem.strip_suffix("README") {
                    Some(before) if name == "README.md" => format!("{before}index.html"),
                    _ => format!("{stem}.html"),
                })
            }
            Self::WithoutExtension => {
                let stem = file.strip_suffix(".md").or_else(|| file.strip_suffix(".mdx"))?;
                Some(stem.to_owned())
            }
            Self::Folder => INDEX_NAMES.contains(&name).then(|| folder.to_owned()),
        }
    }
}

/// Returns whether a path ends like the file of a page.
fn has_page_extension(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| {
        extension.eq_ignore_ascii_case("md") || extension.eq_ignore_ascii_case("mdx")
    })
}

/// Returns whether a path is below a folder. The root holds all.
fn holds(folder: &str, path: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the folder of a path; empty for the root.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Splits a link path at its query, which begins with `?`.
pub fn split_query(path: &str) -> (&str, &str) {
    path.find('?').map_or((path, ""), |at| path.split_at(at))
}

/// Lists the paths that a link path can mean, the preferred first: all of it, because a name can contain a question mark,
/// which is written percent-encoded, and what is before a query.
pub(crate) fn paths_before_query(linkpath: &str) -> impl Iterator<Item = &str> {
    let (first, last) = (linkpath.find('?'), linkpath.rfind('?'));
    let cuts = last.into_iter().chain(first.filter(|_| first != last));
    std::iter::once(linkpath).chain(cuts.filter_map(|at| linkpath.get(..at)))
}

/// Returns the place in the vault that a path from a folder leads to, if it is one in the vault.
pub fn place_in(folder: &str, path: &str) -> Option<String> {
    match reduced(folder, path) {
        LinkPlace::Inside(place) => Some(place),
        LinkPlace::Elsewhere(_) => None,
    }
}

/// Joins a path to a folder, and resolves its `.` and `..`.
fn reduced(folder: &str, path: &str) -> LinkPlace {
    let mut above = 0;
    let mut place = String::with_capacity(folder.len() + 1 + path.len());
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if place.is_empty() => above += 1,
            ".." => place.truncate(place.rfind('/').unwrap_or(0)),
            name => {
                if !place.is_empty() {
                    place.push('/');
                }
                place.push_str(name);
            }
        }
    }
    if above > 0 {
        let inside = Some(place.as_str()).filter(|place| !place.is_empty());
        return LinkPlace::Elsewhere(
            std::iter::repeat_n("..", above).chain(inside).collect::<Vec<_>>().join("/"),
        );
    }
    let is_hidden = place.starts_with('.') || place.contains("/.");
    if is_hidden { LinkPlace::Elsewhere(place) } else { LinkPlace::Inside(place) }
}
