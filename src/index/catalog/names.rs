//! Owns the look-up of searchable files by what they are called.

use crate::error::Result;
use crate::index::catalog::{Catalog, FileId, NAME_ALIAS, NAME_TITLE};
use crate::text::path::key;

impl Catalog {
    /// Lists the searchable files whose title, alias or file name without extension this is; case does not count.
    ///
    /// # Errors
    /// `Corrupt` where the catalog cannot be read.
    pub fn called(&self, name: &str) -> Result<Vec<FileId>> {
        let searchable = "kind < 2 AND NOT excluded";
        self.collect(
            &format!(
                "SELECT id FROM files WHERE name_key IN (?1 || '.md', ?1 || '.canvas') AND {searchable}
                 UNION SELECT f.id FROM names n JOIN files f ON f.id = n.file
                 WHERE n.key = ?1 AND n.what IN ({NAME_TITLE}, {NAME_ALIAS}) AND {searchable} ORDER BY 1"
            ),
            [key(name)],
            |row| row.get(0),
        )
    }
}
