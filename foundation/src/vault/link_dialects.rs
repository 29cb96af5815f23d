//! Decides which link dialect each folder of a vault has (spec/git.md 1).
//!
//! The settings decide first, then the files that mark the folder of a book or site, then Obsidian's settings, then the
//! links themselves.

use crate::config::LinksFolder;
use crate::error::Result;
use crate::text::dialect::{
    ASSUMED, DialectUnit, LinkDialect, LinkDialects, LinkPlace, SUMMARY, is_book_source, split_query,
};
use crate::text::path::NotePath;
use crate::vault::{Vault, path_in_repository};

/// Files that mark the folder of a site or book whose pages a generator reads.
pub const GENERATORS: &[&str] = &[
    "book.toml",
    "mkdocs.yml",
    "mkdocs.yaml",
    "docusaurus.config.js",
    "docusaurus.config.ts",
    "docusaurus.config.mjs",
    "docusaurus.config.cjs",
    "_config.yml",
];

/// So many Markdown links with a folder are needed for their form to decide.
const ENOUGH_LINKS: usize = 20;
/// The share of exact relative paths among them, in percent, from which they decide for GitHub's dialect.
const EXACT_PERCENT: usize = 95;

/// The numbers of Markdown links whose path has a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct PathLinkCounts {
    /// All of them.
    pub all: usize,
    /// Those that are the exact relative path of a file.
    pub exact: usize,
}

impl PathLinkCounts {
    /// Counts a Markdown link of a note whose path has a folder. `is_there` tells whether the vault has a file or folder
    /// with a path.
    pub fn add(&mut self, link_path: &str, source: &NotePath, is_there: impl FnOnce(&str) -> bool) {
        self.all += 1;
        self.exact += usize::from(inner_path(link_path, source).is_some_and(|place| is_there(&place)));
    }

    /// Adds two counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { all: self.all + other.all, exact: self.exact + other.exact }
    }

    /// Returns whether the links decide for GitHub's dialect.
    pub fn favour_paths(self) -> bool {
        self.all >= ENOUGH_LINKS && self.exact * 100 >= self.all * EXACT_PERCENT
    }
}

/// Returns the path in the vault that a Markdown link of a note leads to if it is an exact relative path.
pub fn inner_path(link_path: &str, source: &NotePath) -> Option<String> {
    let (path, _) = split_query(link_path);
    match DialectUnit::default().place_of(path, source) {
        LinkPlace::Inside(place) if !path.starts_with('/') => Some(place),
        _ => None,
    }
}

/// Returns whether a file of this name can mark the folder of a book or site.
pub fn is_marker_name(name: &str) -> bool {
    GENERATORS.contains(&name) || name == SUMMARY
}

/// Lists the names of files that can mark the folder of a book or site.
pub fn marker_names() -> impl Iterator<Item = &'static str> {
    GENERATORS.iter().copied().chain([SUMMARY])
}

/// Decides the link dialects of a vault.
#[derive(Debug, Clone, Copy)]
pub struct DialectRules<'a> {
    vault: &'a Vault,
}

impl<'a> DialectRules<'a> {
    /// Returns the rules for a vault.
    pub fn of(vault: &'a Vault) -> Self {
        Self { vault }
    }

    /// Decides the dialects of the vault's folders.
    ///
    /// `markers` are the files of the vault whose name [`is_marker_name`] accepts. `count_links` is called only where the
    /// links decide.
    ///
    /// # Errors
    /// Those of `count_links`.
    pub fn decide(
        self,
        markers: &[NotePath],
        count_links: impl FnOnce() -> Result<PathLinkCounts>,
    ) -> Result<LinkDialects> {
        let rules = &self.vault.links;
        let mut units: Vec<DialectUnit> =
            rules.folder.iter().map(|folder| self.unit_of_setting(folder)).collect();
        let setting = "links.dialect in the settings";
        match rules.dialect.parse().ok() {
            Some(dialect) => units.push(self.unit("", dialect, "", setting)),
            None => {
                units.extend(markers.iter().filter_map(|marker| self.unit_of_marker(marker)));
                if units.iter().all(|unit| !unit.folder.is_empty()) {
                    units.push(self.unit_by_links(count_links)?);
                }
            }
        }
        Ok(LinkDialects::new(units))
    }

    /// Decides the dialect of the vault by Obsidian's settings, and then by its links.
    fn unit_by_links(self, count_links: impl FnOnce() -> Result<PathLinkCounts>) -> Result<DialectUnit> {
        let settings = self.vault.settings();
        if settings.is_link_format_set {
            return Ok(self.unit("", LinkDialect::Obsidian, "", "newLinkFormat in Obsidian's settings"));
        }
        if !self.vault.config_folder().is_dir() {
            return Ok(self.unit("", LinkDialect::Github, "", ASSUMED));
        }
        Ok(match count_links()?.favour_paths() {
            true => self.unit("", LinkDialect::Github, "", "the links are exact relative paths"),
            false => self.unit("", LinkDialect::Obsidian, "", &self.vault.config_dir),
        })
    }

    fn unit_of_setting(self, folder: &LinksFolder) -> DialectUnit {
        let path = folder.path.trim_matches('/');
        let root = folder.root.as_deref().map_or(path, |root| root.trim_matches('/'));
        let unit =
            self.unit(path, folder.dialect.parse().unwrap_or_default(), root, "links.folder in the settings");
        // A root that is set is meant, also if it is the root of the vault.
        match folder.root {
            Some(_) => DialectUnit { vault_below_root: String::new(), ..unit },
            None => unit,
        }
    }

    /// Returns the unit of a folder. GitHub's links with a leading slash begin at the root of the repository.
    fn unit(self, folder: &str, dialect: LinkDialect, root: &str, reason: &str) -> DialectUnit {
        let is_github = dialect == LinkDialect::Github;
        DialectUnit {
            folder: folder.to_owned(),
            dialect,
            root: if is_github { String::new() } else { root.to_owned() },
            vault_below_root: if is_github { self.path_in_repository() } else { String::new() },
            marker: None,
            reason: reason.to_owned(),
        }
    }

    /// Returns the unit of a folder that a file marks.
    fn marked_unit(self, folder: &str, dialect: LinkDialect, marker: &NotePath) -> DialectUnit {
        let marked = Some(marker.as_str().to_owned());
        DialectUnit { marker: marked, ..self.unit(folder, dialect, folder, marker.as_str()) }
    }

    fn unit_of_marker(self, marker: &NotePath) -> Option<DialectUnit> {
        let (folder, name) = (marker.folder(), marker.name());
        let within = |inner: &str| match inner.trim_matches('/').trim_start_matches("./") {
            "" | "." => folder.to_owned(),
            inner if folder.is_empty() => inner.to_owned(),
            inner => format!("{folder}/{inner}"),
        };
        let (dialect, below) = match name {
            SUMMARY => {
                let is_source = is_book_source(folder);
                return is_source.then(|| self.marked_unit(folder, LinkDialect::Mdbook, marker));
            }
            "book.toml" => (LinkDialect::Mdbook, within(&self.book_sources(marker))),
            "mkdocs.yml" | "mkdocs.yaml" => (LinkDialect::Site, within(&self.mkdocs_sources(marker))),
            _ => (LinkDialect::Site, folder.to_owned()),
        };
        let below = if self.vault.root.join(&below).is_dir() { below } else { folder.to_owned() };
        Some(self.marked_unit(&below, dialect, marker))
    }

    /// Returns the folder of a book's pages, below the folder of its `book.toml`.
    fn book_sources(self, marker: &NotePath) -> String {
        let table: Option<toml::Table> = self.marker_text(marker).and_then(|text| text.parse().ok());
        let book = table.as_ref().and_then(|table| table.get("book"));
        let source = book.and_then(|book| book.get("src")).and_then(toml::Value::as_str);
        source.unwrap_or("src").to_owned()
    }

    /// Returns the folder of a site's pages, below the folder of its `mkdocs.yml`.
    fn mkdocs_sources(self, marker: &NotePath) -> String {
        let text = self.marker_text(marker).unwrap_or_default();
        let said = text.lines().find_map(|line| line.strip_prefix("docs_dir:"));
        let said = said.map(|said| said.split(" #").next().unwrap_or(said).trim().trim_matches(['"', '\'']));
        said.filter(|said| !said.is_empty()).unwrap_or("docs").to_owned()
    }

    fn marker_text(self, marker: &NotePath) -> Option<String> {
        match self.vault.read(marker) {
            Ok(bytes) => String::from_utf8(bytes).ok(),
            Err(error) => {
                tracing::warn!("{error}, so its defaults are used");
                None
            }
        }
    }

    /// Returns the path of the vault below the root of its git repository; empty if it is that root or in none.
    fn path_in_repository(self) -> String {
        path_in_repository(&self.vault.root).unwrap_or_default()
    }
}
