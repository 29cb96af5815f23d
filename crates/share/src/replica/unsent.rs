//! New files that the vault does not take. A removed file may be one of them under its former name; then its removal
//! alone would delete the note for everybody else.

use sidenote_base::error::Result;
use sidenote_links::content_similarity::ContentPieces;
use sidenote_markdown::edit::ContentHash;
use sidenote_vault::copy::SharedPath;

/// The least share of a removed content, in percent, that is found again in a new file if the file may have been renamed. It is
/// git's.
const LEAST_IN_COMMON: u8 = 50;

/// The new files that were not sent in a round.
#[derive(Debug, Default)]
pub(super) struct UnsentFiles(Vec<UnsentFile>);

#[derive(Debug)]
struct UnsentFile {
    path: SharedPath,
    hash: ContentHash,
    pieces: ContentPieces,
}

impl UnsentFiles {
    /// Adds a file.
    pub(super) fn add(&mut self, path: &SharedPath, content: &[u8]) {
        let (hash, pieces) = (ContentHash::of(content), ContentPieces::of(content));
        self.0.push(UnsentFile { path: path.clone(), hash, pieces });
    }

    /// Returns whether all files were sent.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the new file that may be a removed one under another name: it has the same content, the same file name,
    /// or half of the content. `content` gives the removed content.
    ///
    /// # Errors
    /// Those of `content`.
    pub(super) fn renamed_from(
        &self,
        path: &SharedPath,
        hash: ContentHash,
        content: impl FnOnce() -> Result<Option<Vec<u8>>>,
    ) -> Result<Option<&SharedPath>> {
        let by_name = |file: &&UnsentFile| file.hash == hash || name_of(&file.path) == name_of(path);
        if let Some(found) = self.0.iter().find(by_name) {
            return Ok(Some(&found.path));
        }
        if self.is_empty() {
            return Ok(None);
        }
        let Some(content) = content()? else { return Ok(None) };
        let removed = ContentPieces::of(&content);
        let found = self.0.iter().find(|file| removed.percent_in(&file.pieces) >= LEAST_IN_COMMON);
        Ok(found.map(|file| &file.path))
    }
}

fn name_of(path: &SharedPath) -> &str {
    path.as_str().rsplit('/').next().unwrap_or_default()
}
