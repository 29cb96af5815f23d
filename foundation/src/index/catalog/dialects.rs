//! The link dialects of the vault's folders, as the targets of the links in this catalog were found by them.

use rusqlite::params;

use super::links::LinkQueries;
use super::{CatalogWriter, read_path};
use crate::error::Result;
use crate::text::dialect::{DialectUnit, LinkDialects};
use crate::text::path::NotePath;
use crate::vault::link_dialects::{PathLinkCounts, inner_path};

/// Finds every Markdown link whose path has a folder: its text, its source, and how often it is there.
const PATH_LINKS: &str =
    "SELECT f.path, p.linkpath, l.count FROM linkpaths p JOIN links l ON l.linkpath = p.id
  JOIN files f ON f.id = l.source WHERE p.syntax = 2 AND instr(p.linkpath, '/') > 0 AND l.count > 0";

impl LinkQueries<'_> {
    /// Returns the dialects by which the targets of the links were found.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn dialects(&self) -> Result<LinkDialects> {
        let units = self.0.collect(
            "SELECT folder, dialect, root, below_root, marker, reason FROM dialects",
            [],
            |row| {
                Ok(DialectUnit {
                    folder: row.get(0)?,
                    // A name that is unknown does not pass the check of the catalog.
                    dialect: row.get::<_, String>(1)?.parse().unwrap_or_default(),
                    root: row.get(2)?,
                    vault_below_root: row.get(3)?,
                    marker: row.get(4)?,
                    reason: row.get(5)?,
                })
            },
        )?;
        Ok(LinkDialects::new(units))
    }

    /// Counts the Markdown links whose path has a folder, and those that are the exact relative path of a file.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn count_path_links(&self) -> Result<PathLinkCounts> {
        let links: Vec<(NotePath, String, i64)> =
            self.0.collect(PATH_LINKS, [], |row| Ok((read_path(row, 0)?, row.get(1)?, row.get(2)?)))?;
        let mut counts = PathLinkCounts::default();
        for (source, linkpath, count) in links {
            let count = usize::try_from(count).unwrap_or(0);
            counts.all += count;
            if let Some(place) = inner_path(&linkpath, &source)
                && (self.0.row_at(&place)?.is_some() || self.0.paths().has_folder(&place)?)
            {
                counts.exact += count;
            }
        }
        Ok(counts)
    }
}

impl CatalogWriter {
    /// Stores the dialects by which the targets of the links are found.
    ///
    /// # Errors
    /// Returns `Io` if the catalog cannot be written.
    pub fn set_dialects(&self, dialects: &LinkDialects) -> Result<()> {
        self.run("DELETE FROM dialects", &[])?;
        for unit in dialects.units() {
            self.run(
                "INSERT INTO dialects VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    unit.folder,
                    unit.dialect.name(),
                    unit.root,
                    unit.vault_below_root,
                    unit.marker,
                    unit.reason
                ],
            )?;
        }
        Ok(())
    }

    /// Lists every group of Markdown links with the id and path of its source, to find their targets again.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn markdown_links(&self) -> Result<Vec<(super::FileId, NotePath, super::LinkGroup)>> {
        self.reader().links().markdown()
    }
}
