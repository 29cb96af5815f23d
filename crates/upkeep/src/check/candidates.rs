//! The notes that can have a problem of some codes, by what the index knows of names and links. No other note is read then.

use std::collections::HashSet;

use sidenote_base::error::Result;
use sidenote_catalog::{CatalogReader, FileId};
use sidenote_links::rewrite::fits_in_wikilink;
use sidenote_markdown::path::NotePath;

use crate::check::across_notes::name_clashes;
use crate::check::codes::{Scope, find};

/// Lists the notes that can have a problem of these codes. `None` if only their texts tell, so that all are read. The index
/// must have every file as it is; `paths` are those of all files.
///
/// # Errors
/// `Corrupt` or `Io` if the catalog cannot be read.
pub(super) fn candidates(
    catalog: &CatalogReader,
    codes: &[String],
    paths: &[NotePath],
) -> Result<Option<HashSet<NotePath>>> {
    let mut found: HashSet<NotePath> = HashSet::new();
    for code in codes {
        match code.as_str() {
            "broken-link" => {
                let links = catalog.links().unresolved(None)?;
                let mut sources: Vec<FileId> = links.iter().map(|link| link.source).collect();
                sources.sort_unstable();
                sources.dedup();
                found.extend(catalog.rows(&sources)?.into_iter().map(|row| row.path));
            }
            "orphan" => found.extend(catalog.links().orphans()?.into_iter().map(|row| row.path)),
            // A comment in the note can turn the code off.
            "name-clash" => {
                let named = name_clashes(paths);
                found.extend(named.iter().filter_map(|problem| NotePath::from_disk(&problem.path)));
            }
            "name-not-linkable" => {
                found.extend(paths.iter().filter(|path| !fits_in_wikilink(path.as_str())).cloned());
            }
            other if find(other).is_some_and(|known| known.scope == Scope::Vault) => {}
            _ => return Ok(None),
        }
    }
    Ok(Some(found))
}
