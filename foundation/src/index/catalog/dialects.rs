//! The link dialects of the vault's folders, as the targets of the links in this catalog were found by them, and how many links
//! speak for each.

use std::cell::Cell;

use rusqlite::params;

use super::CatalogWriter;
use super::links::{LinkQueries, read_evidence};
use crate::error::Result;
use crate::text::dialect::{DialectUnit, LinkDialects};
use crate::text::dialect_evidence::{DialectCounts, LinkEvidence};

/// The names in `meta` of the numbers of [`DialectCounts`].
pub(super) const COUNTS: [&str; 5] =
    ["evidence", "obsidian_links", "github_links", "mdbook_links", "site_links"];

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
                    prefix: row.get(3)?,
                    marker: row.get(4)?,
                    reason: row.get(5)?,
                })
            },
        )?;
        Ok(LinkDialects::new(units))
    }

    /// Returns how many links lead to a file under each dialect, as it was counted while they were written.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn dialect_counts(&self) -> Result<DialectCounts> {
        let [links, obsidian, github, mdbook, site] =
            COUNTS.map(|name| self.0.meta(name).map(Option::unwrap_or_default));
        Ok(DialectCounts {
            links: links?,
            obsidian: obsidian?,
            github: github?,
            mdbook: mdbook?,
            site: site?,
        })
    }
}

/// What a batch changes in the counts.
#[derive(Debug, Default)]
pub(super) struct EvidenceChange(Cell<DialectCounts>);

impl EvidenceChange {
    /// Adds a link so many times. A negative number takes it away.
    pub(super) fn add(&self, evidence: LinkEvidence, times: i64) {
        let mut counts = self.0.get();
        counts.add(evidence, times);
        self.0.set(counts);
    }

    /// Returns the change, and begins a new one.
    pub(super) fn take(&self) -> DialectCounts {
        self.0.take()
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
                params![unit.folder, unit.dialect.name(), unit.root, unit.prefix, unit.marker, unit.reason],
            )?;
        }
        Ok(())
    }

    /// Stores the counts with what this batch changed in them, and returns them. If `anew` is set, all links are counted.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read or written.
    pub fn settle_dialect_counts(&self, anew: bool) -> Result<DialectCounts> {
        let change = self.evidence.take();
        let counts = if anew {
            let groups = self.reader().collect(
                "SELECT evidence, sum(count) FROM links GROUP BY evidence",
                [],
                |row| Ok((read_evidence(row, 0)?, row.get::<_, i64>(1)?)),
            )?;
            let mut counts = DialectCounts::default();
            groups.into_iter().for_each(|(evidence, count)| counts.add(evidence, count));
            counts
        } else {
            self.reader().links().dialect_counts()?.plus(change)
        };
        let numbers = [counts.links, counts.obsidian, counts.github, counts.mdbook, counts.site];
        COUNTS.iter().zip(numbers).try_for_each(|(name, number)| self.set_meta(name, number))?;
        Ok(counts)
    }
}
