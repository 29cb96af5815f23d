//! The versions of a file in the history of the current branch.

use sidenote_base::error::Result;

use crate::{ObjectId, Repository};

/// A version of a file, with the commit that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedFile {
    /// The commit.
    pub commit: ObjectId,
    /// The time at which it was committed, in seconds since 1970.
    pub committed_at: i64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Repository {
    /// Lists the versions of a file that commits wrote, newest first, at most `limit`. There are none before the first
    /// commit.
    ///
    /// # Errors
    /// Those of running git.
    pub fn versions(&self, path: &str, limit: usize) -> Result<Vec<CommittedFile>> {
        let Some(head) = self.head()? else { return Ok(Vec::new()) };
        let count = format!("--max-count={limit}");
        let path_in_tree = self.in_tree(path);
        let listed = self.read(["rev-list", "--timestamp", &count, head.as_str(), "--", &path_in_tree])?;
        let listed = String::from_utf8_lossy(&listed);
        let mut objects = self.objects()?;
        let mut versions = Vec::new();
        for line in listed.lines() {
            let Some((time, id)) = line.split_once(' ') else { continue };
            let Some((committed_at, commit)) = time.parse().ok().zip(ObjectId::parse(id)) else { continue };
            // The commit that removed the file has no version of it.
            if let Some(bytes) = objects.file(&commit, path)? {
                versions.push(CommittedFile { commit, committed_at, bytes });
            }
        }
        Ok(versions)
    }
}
