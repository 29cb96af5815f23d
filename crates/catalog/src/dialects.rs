//! The link dialects of the vault's folders, by which the targets of the links in this catalog were found; the number
//! of links that speak for each dialect; and the other numbers that are kept by difference.

use std::cell::Cell;

use rusqlite::params;
use sidenote_base::error::Result;
use sidenote_links::dialect::{DialectUnit, LinkDialects};
use sidenote_links::dialect_evidence::{DialectCounts, LinkEvidence};

use super::links::LinkQueries;
use super::{CatalogReader, CatalogWriter};

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

/// The name in `meta` of the number of links.
pub(super) const LINKS: &str = "links";
/// The name in `meta` of the number of passages.
pub(super) const PASSAGES: &str = "passages";

/// Returns whether the number of this name in `meta` counts rows, so that it is zero in a catalog without any.
pub(super) fn counts_rows(name: &str) -> bool {
    name == LINKS || name == PASSAGES || COUNTS.contains(&name)
}

/// Numbers of the whole vault that a batch changes by difference, so that they are known without reading all rows.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct KeptCounts {
    by_dialect: DialectCounts,
    links: i64,
    passages: i64,
}

/// What a batch changes in the counts.
#[derive(Debug, Default)]
pub(super) struct CountChange(Cell<KeptCounts>);

impl CountChange {
    /// Adds a link `times` times. A negative number removes it.
    pub(super) fn add_links(&self, evidence: LinkEvidence, times: i64) {
        let mut counts = self.0.get();
        counts.by_dialect.add(evidence, times);
        counts.links += times;
        self.0.set(counts);
    }

    /// Adds a number of passages. A negative number removes them.
    pub(super) fn add_passages(&self, number: i64) {
        let counts = self.0.get();
        self.0.set(KeptCounts { passages: counts.passages + number, ..counts });
    }

    /// Returns the change, and begins a new one.
    pub(super) fn take(&self) -> KeptCounts {
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

    /// Stores the counts with what this batch changed in them, and returns how many links lead to a file under each dialect.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read or written.
    pub fn settle_counts(&self) -> Result<DialectCounts> {
        let before = KeptCounts::stored(self.reader())?;
        let now = before.plus(self.counts.take());
        let changed = now.numbers().into_iter().zip(before.numbers()).filter(|(now, before)| now != before);
        changed.into_iter().try_for_each(|((name, number), _)| self.set_meta(name, number))?;
        Ok(now.by_dialect)
    }
}

impl KeptCounts {
    /// Reads the numbers as they are before the change of this batch.
    fn stored(reader: &CatalogReader) -> Result<Self> {
        let kept = |name: &str| reader.meta(name).map(Option::unwrap_or_default);
        let by_dialect = reader.links().dialect_counts()?;
        Ok(Self { by_dialect, links: kept(LINKS)?, passages: kept(PASSAGES)? })
    }

    /// Returns the numbers after a change.
    fn plus(self, change: Self) -> Self {
        Self {
            by_dialect: self.by_dialect.plus(change.by_dialect),
            links: self.links + change.links,
            passages: self.passages + change.passages,
        }
    }

    /// Returns the numbers with their names in `meta`.
    fn numbers(self) -> [(&'static str, i64); 7] {
        let of = self.by_dialect;
        let [all, obsidian, github, mdbook, site] = COUNTS;
        [
            (all, of.links),
            (obsidian, of.obsidian),
            (github, of.github),
            (mdbook, of.mdbook),
            (site, of.site),
            (LINKS, self.links),
            (PASSAGES, self.passages),
        ]
    }
}
