//! The notes that can have a problem of some codes, by what the index knows of names and links. No other note is read then.

use std::collections::HashSet;

use sidenote_base::error::{Error, Result};
use sidenote_catalog::{CatalogReader, FileId};
use sidenote_links::dialect::DialectChoice;
use sidenote_links::rewrite::fits_in_wikilink;
use sidenote_markdown::path::NotePath;
use sidenote_vault::Vault;
use sidenote_vault::link_dialects::{DialectRules, is_marker};

use crate::check::across_notes::name_clashes;
use crate::check::codes::{Scope, find};

/// The notes that can have a problem.
#[derive(Default)]
pub(super) struct Candidates {
    /// The notes that are read.
    pub(super) read: HashSet<NotePath>,
    /// The notes that no other note links to and that link to none. The links of the notes that are read do not tell this.
    pub(super) orphans: HashSet<NotePath>,
}

impl Candidates {
    /// Lists the notes that can have a problem of these codes. `None` if only their texts tell, or if the index was made under
    /// other settings, so that all are read. The index must have every file as it is; `paths` are those of all files, and `known`
    /// is the dialect that the links chose.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the catalog cannot be read.
    pub(super) fn of(
        catalog: &CatalogReader,
        vault: &Vault,
        codes: &[String],
        paths: &[NotePath],
        known: Option<DialectChoice>,
    ) -> Result<Option<Self>> {
        let mut found = Self::default();
        for code in codes {
            match code.as_str() {
                "broken-link" => {
                    let links = catalog.links().unresolved(None)?;
                    let mut sources: Vec<FileId> = links.iter().map(|link| link.source).collect();
                    sources.sort_unstable();
                    sources.dedup();
                    found.read.extend(catalog.rows(&sources)?.into_iter().map(|row| row.path));
                }
                "orphan" => {
                    found.orphans.extend(catalog.links().orphans()?.into_iter().map(|row| row.path));
                    found.read.extend(found.orphans.iter().cloned());
                }
                // A comment in the note can turn the code off.
                "name-clash" => {
                    let named = name_clashes(paths);
                    found.read.extend(named.iter().filter_map(|problem| NotePath::from_disk(&problem.path)));
                }
                "name-not-linkable" => {
                    let named = paths.iter().filter(|path| !fits_in_wikilink(path.as_str()));
                    found.read.extend(named.cloned());
                }
                other if find(other).is_some_and(|known| known.scope == Scope::Vault) => {}
                _ => return Ok(None),
            }
        }
        Ok(is_made_by_settings(catalog, vault, paths, known)?.then_some(found))
    }
}

/// Returns whether the index has all notes, excludes those that the settings exclude now, and follows links by the dialects
/// that they give now.
fn is_made_by_settings(
    catalog: &CatalogReader,
    vault: &Vault,
    paths: &[NotePath],
    known: Option<DialectChoice>,
) -> Result<bool> {
    let settings = vault.settings();
    let is_same = |(path, excluded, was_read): &(NotePath, bool, bool)| {
        *was_read && settings.is_excluded(path) == *excluded
    };
    if !catalog.paths().read_states()?.iter().all(is_same) {
        return Ok(false);
    }
    let markers: Vec<NotePath> = paths.iter().filter(|path| is_marker(path)).cloned().collect();
    let unknown = || Error::internal("the links of the index chose no dialect");
    let now = DialectRules::of(vault).decide(&markers, || known.ok_or_else(unknown));
    let stored = catalog.links().dialects()?;
    Ok(now.is_ok_and(|now| now.has_same_rules(&stored)))
}
