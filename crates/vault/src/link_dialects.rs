//! Decides which link dialect each folder of a vault has (docs/spec/git.md 1).
//!
//! The settings decide first, then the files that mark the folder of a book or site, then Obsidian's settings, then the
//! links themselves.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use sidenote_base::error::Result;
use sidenote_base::safe_open;
use sidenote_config::LinksFolder;
use sidenote_links::dialect::{
    ASSUMED, CHOSEN, DialectChoice, DialectUnit, LinkDialect, LinkDialects, SUMMARY, is_book_source, place_in,
};
use sidenote_links::dialect_evidence::DialectCounts;
use sidenote_links::resolve::FileNames;
use sidenote_markdown::path::NotePath;

use crate::site_config::{quoted_values, site_address};
use crate::{Vault, path_in_repository};

/// The program that reads the notes of a folder, as a file in it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generator {
    Book,
    MkDocs,
    Docusaurus,
    /// Jekyll.
    Jekyll,
    /// Hugo and Zola.
    Hugo,
    /// VitePress and VuePress, whose settings are in a hidden folder.
    VitePress,
    /// Quartz, which publishes a vault of Obsidian.
    Quartz,
    /// Logseq, which looks its pages up by name.
    Logseq,
}

/// Files that mark the folder of a book, a site or a graph, with the program that reads it.
const MARKERS: &[(&str, Generator)] = &[
    ("book.toml", Generator::Book),
    ("mkdocs.yml", Generator::MkDocs),
    ("mkdocs.yaml", Generator::MkDocs),
    ("docusaurus.config.js", Generator::Docusaurus),
    ("docusaurus.config.ts", Generator::Docusaurus),
    ("docusaurus.config.mjs", Generator::Docusaurus),
    ("docusaurus.config.cjs", Generator::Docusaurus),
    ("_config.yml", Generator::Jekyll),
    ("hugo.toml", Generator::Hugo),
    ("hugo.yaml", Generator::Hugo),
    ("hugo.yml", Generator::Hugo),
    ("hugo.json", Generator::Hugo),
    ("config.toml", Generator::Hugo),
    ("config.yaml", Generator::Hugo),
    ("config.yml", Generator::Hugo),
    ("package.json", Generator::VitePress),
    ("quartz.config.ts", Generator::Quartz),
    ("config.edn", Generator::Logseq),
];

/// The largest settings of a generator that are read, in bytes. They are written by hand.
const MAX_SETTINGS: u64 = 1 << 20;

/// The hidden folders with the settings of VitePress and VuePress.
const HIDDEN_SETTINGS: [&str; 2] = [".vitepress", ".vuepress"];

/// Returns whether a file is one of the hidden settings that say where the pages of a site are.
pub(crate) fn is_hidden_marker(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let hidden = folder.rsplit('/').next().unwrap_or_default();
    HIDDEN_SETTINGS.contains(&hidden) && name.starts_with("config.")
}

fn generator_of(name: &str) -> Option<Generator> {
    MARKERS.iter().find(|(marker, _)| *marker == name).map(|(_, generator)| *generator)
}

/// Returns whether a file can mark the folder of a book or site. What is in the folders of packages belongs to others.
pub fn is_marker(path: &NotePath) -> bool {
    let is_known = path.name() == SUMMARY || generator_of(path.name()).is_some();
    is_known && !path.as_str().split('/').any(|part| part == "node_modules")
}

/// The maximum number of notes whose links are counted if no index has counted them all. More notes would not change
/// the result, and a comparison of two commits would read all notes.
const SAMPLE: usize = 1000;

/// Returns notes from all parts of a list, at most [`SAMPLE`] of them.
pub fn sample<T>(notes: Vec<T>) -> Vec<T> {
    let step = notes.len().div_ceil(SAMPLE).max(1);
    notes.into_iter().step_by(step).collect()
}

/// Lists the names of files that can mark the folder of a book or site.
pub fn marker_names() -> impl Iterator<Item = &'static str> {
    MARKERS.iter().map(|(name, _)| *name).chain([SUMMARY])
}

/// Decides the link dialects of a vault.
#[derive(Debug, Clone)]
pub struct DialectRules<'a> {
    vault: &'a Vault,
    /// The path of the vault in its git repository, if it is in one.
    repository: Option<String>,
}

impl<'a> DialectRules<'a> {
    /// Returns the rules for a vault.
    pub fn of(vault: &'a Vault) -> Self {
        Self { vault, repository: path_in_repository(&vault.root) }
    }

    /// Returns the rules for the files of a commit, which are in a repository wherever their copy is.
    #[must_use]
    pub fn in_repository(self) -> Self {
        Self { repository: Some(self.repository.unwrap_or_default()), ..self }
    }

    /// Returns the path of the vault below the root of its git repository; empty if it is that root or in none.
    pub fn below_repository(&self) -> &str {
        self.repository.as_deref().unwrap_or_default()
    }

    /// Returns whether the vault is in a git repository.
    pub fn is_in_repository(&self) -> bool {
        self.repository.is_some()
    }

    /// Decides the dialects of the vault's folders.
    ///
    /// `markers` are the files of the vault that [`is_marker`] accepts. `choose` is called only where the links decide.
    ///
    /// # Errors
    /// Those of `choose`.
    pub fn decide(
        &self,
        markers: &[NotePath],
        choose: impl FnOnce() -> Result<DialectChoice>,
    ) -> Result<LinkDialects> {
        let rules = &self.vault.links;
        let mut units: Vec<DialectUnit> =
            rules.folder.iter().map(|folder| self.unit_of_setting(folder)).collect();
        let setting = "links.dialect in the settings";
        match rules.dialect.parse().ok() {
            Some(dialect) => units.push(self.unit("", dialect, "", setting)),
            None => {
                units.extend(markers.iter().flat_map(|marker| self.units_of_marker(marker)));
                units.extend(self.hidden_site("", None));
                if units.iter().all(|unit| !unit.folder.is_empty()) {
                    units.push(match self.vault.config_folder().is_dir() {
                        true => self.unit("", LinkDialect::Obsidian, "", &self.vault.config_dir),
                        false => self.unit_by_links(choose()?),
                    });
                }
            }
        }
        Ok(LinkDialects::new(units))
    }

    /// Decides the dialects of files that are not indexed, and returns their names with them. `count` counts their links by their
    /// names, and is called only where the links decide.
    ///
    /// # Errors
    /// Those of `count`.
    pub fn decide_for(
        &self,
        names: FileNames,
        markers: &[NotePath],
        known: Option<DialectChoice>,
        count: impl FnOnce(&FileNames) -> Result<DialectCounts>,
    ) -> Result<FileNames> {
        let assumed = DialectCounts::default().choose(None, self.is_in_repository());
        let mut links_decide = false;
        let without_links = self.decide(markers, || {
            links_decide = true;
            Ok(known.unwrap_or(assumed))
        })?;
        let names = names.with_dialects(Arc::new(without_links));
        if !links_decide || known.is_some() {
            return Ok(names);
        }
        let choice = count(&names)?.choose(None, self.is_in_repository());
        let dialects = self.decide(markers, || Ok(choice))?;
        Ok(names.with_dialects(Arc::new(dialects)))
    }

    /// Returns the unit of the vault whose links chose its dialect.
    fn unit_by_links(&self, choice: DialectChoice) -> DialectUnit {
        let reason = match (choice.is_assumed, self.is_in_repository()) {
            (false, _) => CHOSEN.to_owned(),
            (true, true) => format!("{ASSUMED}, and the folder is in a git repository"),
            (true, false) => ASSUMED.to_owned(),
        };
        self.unit("", choice.dialect, "", &reason)
    }

    fn unit_of_setting(&self, folder: &LinksFolder) -> DialectUnit {
        let path = folder.path.trim_matches('/');
        let root = folder.root.as_deref().map_or(path, |root| root.trim_matches('/'));
        let unit =
            self.unit(path, folder.dialect.parse().unwrap_or_default(), root, "links.folder in the settings");
        // A root that is set is meant, also if it is the root of the vault.
        match folder.root {
            Some(_) => DialectUnit { prefix: String::new(), ..unit },
            None => unit,
        }
    }

    /// Returns the unit of a folder. GitHub's links with a leading slash begin at the root of the repository.
    fn unit(&self, folder: &str, dialect: LinkDialect, root: &str, reason: &str) -> DialectUnit {
        let is_github = dialect == LinkDialect::Github;
        DialectUnit {
            folder: folder.to_owned(),
            dialect,
            root: if is_github { String::new() } else { root.to_owned() },
            prefix: if is_github { self.below_repository().to_owned() } else { String::new() },
            marker: None,
            reason: reason.to_owned(),
        }
    }

    /// Returns the unit of a folder that a file marks.
    fn marked_unit(&self, folder: &str, dialect: LinkDialect, marker: &NotePath) -> DialectUnit {
        let marked = Some(marker.as_str().to_owned());
        DialectUnit { marker: marked, ..self.unit(folder, dialect, folder, marker.as_str()) }
    }

    /// Returns the units of the folders that a file marks: none if it turns out to be something else.
    fn units_of_marker(&self, marker: &NotePath) -> Vec<DialectUnit> {
        let folder = marker.folder();
        let site = |below: &str| self.marked_unit(below, LinkDialect::Site, marker);
        let Some(generator) = generator_of(marker.name()) else {
            let is_source = is_book_source(folder);
            return if is_source {
                vec![self.marked_unit(folder, LinkDialect::Mdbook, marker)]
            } else {
                Vec::new()
            };
        };
        match generator {
            Generator::Book => {
                let sources = self.sources_in(folder, &self.book_sources(marker));
                vec![self.marked_unit(&sources, LinkDialect::Mdbook, marker)]
            }
            Generator::MkDocs => vec![site(&self.sources_in(folder, &self.mkdocs_sources(marker)))],
            Generator::Jekyll => vec![site(folder)],
            Generator::Docusaurus => self.docusaurus_units(marker),
            Generator::Hugo => self.hugo_sources(marker).map(|content| site(&content)).into_iter().collect(),
            Generator::VitePress => self.vitepress_units(marker),
            Generator::Quartz => {
                let content = self.sources_in(folder, "content");
                let text = self.marker_text(marker).unwrap_or_default();
                let are_paths =
                    quoted_values(&text, "markdownLinkResolution").any(|(value, _)| value == "relative");
                let dialect = if are_paths { LinkDialect::Site } else { LinkDialect::Obsidian };
                vec![self.marked_unit(&content, dialect, marker)]
            }
            Generator::Logseq => {
                let graph = folder.strip_suffix("logseq").map(|graph| graph.trim_end_matches('/'));
                let is_root = |graph: &&str| graph.is_empty() || folder.ends_with("/logseq");
                let graph = graph.filter(is_root);
                graph
                    .map(|graph| self.marked_unit(graph, LinkDialect::Obsidian, marker))
                    .into_iter()
                    .collect()
            }
        }
    }

    /// Returns the folder of a generator's pages, given by its path from the folder of the marker; that folder itself if there
    /// is no such folder.
    fn sources_in(&self, folder: &str, inner: &str) -> String {
        self.folder_in(folder, inner).unwrap_or_else(|| folder.to_owned())
    }

    /// Returns the path from the root of the vault of a folder that is given by its path from another one, if the vault has it.
    fn folder_in(&self, folder: &str, inner: &str) -> Option<String> {
        let below = place_in(folder, inner)?;
        self.vault.root.join(&below).is_dir().then_some(below)
    }

    /// Returns the folders of a Docusaurus site. Pages are below the folder of its settings unless they say another path, and at
    /// an address that they can say, too.
    fn docusaurus_units(&self, marker: &NotePath) -> Vec<DialectUnit> {
        let text = self.marker_text(marker).unwrap_or_default();
        let folder = marker.folder();
        let mut units = vec![self.marked_unit(folder, LinkDialect::Site, marker)];
        let mut known = BTreeSet::new();
        for (path, at) in quoted_values(&text, "path") {
            let Some(pages) = self.folder_in(folder, &path).filter(|pages| pages != folder) else { continue };
            let prefix = site_address(&text, at, &path);
            // The site finds a folder at its own path without being told.
            let is_plain = self.folder_in(folder, &prefix).is_some_and(|place| place == pages);
            if (!is_plain || prefix.is_empty()) && known.insert(pages.clone()) {
                units.push(DialectUnit { prefix, ..self.marked_unit(&pages, LinkDialect::Site, marker) });
            }
        }
        units
    }

    /// Returns the folder of a Hugo site's pages. Other programs have a `config.toml` too, so that it counts only with the
    /// address of a site and a folder of pages beside it.
    fn hugo_sources(&self, marker: &NotePath) -> Option<String> {
        let text = self.marker_text(marker)?;
        let has_address =
            text.lines().any(|line| line.trim_start().to_lowercase().replace('_', "").starts_with("baseurl"));
        if marker.name().starts_with("config.") && !has_address {
            return None;
        }
        let folder = marker.folder();
        let site = folder.strip_suffix("config/_default").map_or(folder, |site| site.trim_end_matches('/'));
        let said = quoted_values(&text, "contentDir").next().map(|(value, _)| value);
        self.folder_in(site, said.as_deref().unwrap_or("content"))
    }

    /// Returns the sites of VitePress or VuePress that a `package.json` builds.
    fn vitepress_units(&self, marker: &NotePath) -> Vec<DialectUnit> {
        let text = self.marker_text(marker).unwrap_or_default();
        let package: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let Some(package) = package.filter(|_| text.contains("vitepress") || text.contains("vuepress"))
        else {
            return Vec::new();
        };
        let scripts = package.get("scripts").and_then(serde_json::Value::as_object);
        let scripts = scripts.into_iter().flat_map(|scripts| scripts.values());
        let words = scripts.filter_map(serde_json::Value::as_str).flat_map(str::split_whitespace);
        let mut places: BTreeSet<&str> = words.filter(|word| !word.starts_with('-')).collect();
        places.extend(["", "docs"]);
        let found = places.into_iter().filter_map(|place| self.folder_in(marker.folder(), place));
        let found: BTreeSet<String> = found.collect();
        found.iter().filter_map(|folder| self.hidden_site(folder, Some(marker))).collect()
    }

    /// Returns the unit of a folder with the hidden settings of VitePress or VuePress.
    fn hidden_site(&self, folder: &str, marker: Option<&NotePath>) -> Option<DialectUnit> {
        let disk = self.vault.root.join(folder);
        let hidden = HIDDEN_SETTINGS.into_iter().find(|hidden| disk.join(hidden).is_dir())?;
        let configs = ["ts", "mts", "js", "mjs", "cjs"].map(|ending| format!("config.{ending}"));
        let read = |name: &String| {
            let path = Path::new(hidden).join(name);
            safe_open::read(&disk, &path, MAX_SETTINGS).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        };
        let text = configs.iter().find_map(read);
        let said = text.as_deref().and_then(|text| quoted_values(text, "srcDir").next());
        let pages = self.sources_in(folder, said.as_ref().map_or("", |(value, _)| value));
        let place = if folder.is_empty() { hidden.to_owned() } else { format!("{folder}/{hidden}") };
        let marked = marker.map_or(place.as_str(), |marker| marker.as_str());
        let unit = self.unit(&pages, LinkDialect::Site, &pages, &place);
        Some(DialectUnit { marker: Some(marked.to_owned()), ..unit })
    }

    /// Returns the folder of a book's pages, below the folder of its `book.toml`.
    fn book_sources(&self, marker: &NotePath) -> String {
        let table: Option<toml::Table> = self.marker_text(marker).and_then(|text| text.parse().ok());
        let book = table.as_ref().and_then(|table| table.get("book"));
        let source = book.and_then(|book| book.get("src")).and_then(toml::Value::as_str);
        source.unwrap_or("src").to_owned()
    }

    /// Returns the folder of a site's pages, below the folder of its `mkdocs.yml`.
    fn mkdocs_sources(&self, marker: &NotePath) -> String {
        let text = self.marker_text(marker).unwrap_or_default();
        let said = text.lines().find_map(|line| line.strip_prefix("docs_dir:"));
        let said = said.map(|said| said.split(" #").next().unwrap_or(said).trim().trim_matches(['"', '\'']));
        said.filter(|said| !said.is_empty()).unwrap_or("docs").to_owned()
    }

    fn marker_text(&self, marker: &NotePath) -> Option<String> {
        match self.vault.read(marker) {
            Ok(bytes) => String::from_utf8(bytes).ok(),
            Err(error) => {
                tracing::warn!("{error}, so its defaults are used");
                None
            }
        }
    }
}
