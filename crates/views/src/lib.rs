//! The data of a page for people: rendered notes, the link graph, weights over time, the activity, facets of a search.
//! It comes from the same services that the command line uses. No note is changed here.

pub mod activity;
pub mod curve;
pub mod day;
pub mod facets;
pub mod folder;
pub mod inactive;
pub mod memory_board;
pub mod note_page;
pub mod page_links;
pub mod task_board;
pub mod trash;
pub mod vault_graph;

use std::collections::BTreeMap;

use sidenote_base::error::Result;
use sidenote_open_vault::Core;

/// Prepares what a page for people shows. Nothing is changed.
// size: a method for each address of the page that reads, in a file for each view.
#[derive(Debug, Clone, Copy)]
pub struct Views<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Views<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }

    /// Returns the titles of notes by path. Files that the index does not have are left out.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    pub fn titles<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Result<BTreeMap<String, String>> {
        let catalog = self.core.index.catalog();
        let mut titles = BTreeMap::new();
        for path in paths {
            titles.extend(catalog.row_at(path)?.map(|row| (path.to_owned(), row.title)));
        }
        Ok(titles)
    }
}

/// The positions of distinct texts: each text once, and the index of the text of each item.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct NamedColumn {
    /// The distinct texts, in the order in which they first occur.
    pub names: Vec<String>,
    /// For each item the index of its text.
    pub of: Vec<usize>,
}

impl NamedColumn {
    /// Creates a column of the texts of all items.
    fn new<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut column = Self::default();
        let mut known: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
        for text in texts {
            let at = match known.get(text) {
                Some(at) => *at,
                None => {
                    column.names.push(text.to_owned());
                    known.insert(text.to_owned(), column.names.len() - 1);
                    column.names.len() - 1
                }
            };
            column.of.push(at);
        }
        column
    }

    /// Creates the column of tiers, in which the number of each tier is fixed.
    fn of_tiers(tiers: impl Iterator<Item = sidenote_memory::tier::Tier>) -> Self {
        let all = sidenote_memory::tier::Tier::ALL;
        Self {
            names: all.iter().map(|tier| tier.name().to_owned()).collect(),
            of: tiers.map(|tier| all.iter().position(|other| *other == tier).unwrap_or(0)).collect(),
        }
    }
}
