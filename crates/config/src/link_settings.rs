//! The settings of links: their dialects, and the section of related notes.

use serde::Deserialize;
use sidenote_base::error::{Error, Result};

/// The dialect of the notes below a folder.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinksFolder {
    /// The folder, from the root of the vault.
    pub path: String,
    /// Its dialect.
    pub dialect: String,
    /// The folder at which a link path with a leading slash begins, from the root of the vault; the folder itself if it
    /// is not given.
    #[serde(default)]
    pub root: Option<String>,
}

/// The names of the link dialects.
pub const LINK_DIALECTS: [&str; 4] = ["obsidian", "github", "mdbook", "site"];

/// Settings about links that sidenote reads and writes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinksConfig {
    /// What Markdown links mean: the name of a dialect, or `auto`.
    pub dialect: String,
    /// The dialects of folders that have another one.
    pub folder: Vec<LinksFolder>,
    /// The name of the related section; empty for the layout's own.
    pub section: String,
    /// Whether it begins with a `heading` or a `bold` line; empty for the layout's own.
    pub style: String,
    /// Whether relations are inferred from the words around links.
    pub infer_relations: bool,
}

impl LinksConfig {
    /// Refuses what would not come back as the opening line of a section.
    pub(super) fn checked(self) -> Result<Self> {
        let name = self.section.trim();
        if name != self.section || name.contains(['\n', '\r', '#', '*', '[', ']', '`']) || name.ends_with(':')
        {
            return Err(Error::invalid(format!(
                "links.section {:?} is not a valid name of a section",
                self.section
            ))
            .with_hint("give one line of plain text, such as Related"));
        }
        let is_known = |name: &str| LINK_DIALECTS.contains(&name);
        if self.dialect != "auto" && !is_known(&self.dialect) {
            return Err(Error::invalid(format!("links.dialect {:?} is unknown", self.dialect))
                .with_hint(format!("use auto, {}", LINK_DIALECTS.join(", "))));
        }
        if let Some(folder) = self.folder.iter().find(|folder| !is_known(&folder.dialect)) {
            let message =
                format!("the dialect {:?} of links.folder {:?} is unknown", folder.dialect, folder.path);
            return Err(Error::invalid(message).with_hint(format!("use {}", LINK_DIALECTS.join(", "))));
        }
        if !matches!(self.style.as_str(), "" | "heading" | "bold") {
            return Err(Error::invalid(format!("links.style {:?} is unknown", self.style))
                .with_hint("use heading or bold"));
        }
        Ok(self)
    }
}
