//! Lists the commits that touched a note, and what each changed in it.

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_git::{FileCommit, FileVersion, Objects};
use sidenote_links::note_diff::{NoteDiff, NoteState};
use sidenote_markdown::path::NotePath;

use crate::Store;
use crate::revision::Revisions;
use crate::revision::renames::is_document;
use crate::revision::side::ReadNote;

/// What a commit did to a note.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoteCommit {
    /// The id of the commit.
    pub commit: String,
    /// The time at which the author wrote it.
    pub date: Timestamp,
    /// The name of the author.
    pub author: String,
    /// The first line of the message.
    pub subject: String,
    /// The path of the note in the commit; of a removed note, the one that it had.
    pub path: String,
    /// The path before, if the commit renamed the note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Whether the commit made the note.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// Whether the commit removed the note.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Whether it is a merge. It is compared with the first parent that has the note.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub merge: bool,
    /// What it changed. Links are compared as they are written.
    #[serde(flatten)]
    pub diff: NoteDiff,
}

/// The commits that touched a note.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoteHistory {
    /// The path of the note now, or the last that it had.
    pub path: String,
    /// The commits, the newest first.
    pub commits: Vec<NoteCommit>,
    /// Whether there are more commits than asked for.
    pub more: bool,
    /// Whether the clone is shallow, so that earlier commits may be missing.
    pub shallow: bool,
}

impl Store {
    /// Lists the last `limit` commits that touched a note under all its names, the newest first.
    ///
    /// # Errors
    /// `NotFound` if there is no such note and no commit had it, or if the vault is in no git repository; `Exists` if
    /// several notes have the name; those of running git.
    #[tracing::instrument(skip_all)]
    pub fn git_history(&self, note: &str, limit: usize) -> Result<NoteHistory> {
        let revisions = self.revisions()?;
        let found = self.lookup().find(note).map(|row| row.path);
        let Some(head) = revisions.repository.head()? else {
            return Err(Error::not_found("the repository has no commit yet")
                .with_hint("commit the notes, then their history is there"));
        };
        let paths = match &found {
            Ok(path) => vec![path.clone()],
            // A note that is gone is named by the path that it had.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let given = [note.to_owned(), format!("{note}.md")];
                given.iter().filter_map(|path| NotePath::parse(path).ok()).collect()
            }
            Err(_) => Vec::new(),
        };
        for path in &paths {
            let commits = revisions.repository.file_history(&head, path.as_str())?;
            if !commits.is_empty() {
                return revisions.told(path, commits, limit);
            }
        }
        // The last move may not be committed yet.
        let earlier = match &found {
            Ok(path) => self.earlier_paths(path)?,
            Err(_) => Vec::new(),
        };
        for path in earlier {
            let commits = revisions.repository.file_history(&head, path.as_str())?;
            if !commits.is_empty() {
                return revisions.told(found.as_ref().unwrap_or(&path), commits, limit);
            }
        }
        let path = found?;
        Ok(NoteHistory {
            path: path.to_string(),
            commits: Vec::new(),
            more: false,
            shallow: revisions.repository.is_shallow(),
        })
    }

    /// Lists the paths that a note had, the newest first, as the journal knows them.
    fn earlier_paths(&self, path: &NotePath) -> Result<Vec<NotePath>> {
        let mut at = path.as_str().to_owned();
        let mut paths = Vec::new();
        for event in self.changes().history_of(Some(path.as_str()), usize::MAX)? {
            let moved = event.files.iter().find_map(|file| {
                let to = file.to.as_ref()?;
                (to.to_string() == at).then(|| file.path.to_string())
            });
            if let Some(from) = moved {
                paths.extend(NotePath::parse(&from).ok());
                at = from;
            }
        }
        Ok(paths)
    }
}

impl Revisions {
    fn told(&self, path: &NotePath, commits: Vec<FileCommit>, limit: usize) -> Result<NoteHistory> {
        let more = commits.len() > limit;
        let mut objects = self.repository.objects()?;
        let told = commits.into_iter().take(limit).map(|commit| note_commit(&mut objects, commit));
        Ok(NoteHistory {
            path: path.to_string(),
            commits: told.collect::<Result<Vec<_>>>()?,
            more,
            shallow: self.repository.is_shallow(),
        })
    }
}

/// Reads what a commit changed in a note.
fn note_commit(objects: &mut Objects, touched: FileCommit) -> Result<NoteCommit> {
    let FileCommit { commit, before, after } = touched;
    let mut read = |version: &Option<FileVersion>| -> Result<Option<ReadNote>> {
        let Some(version) = version else { return Ok(None) };
        let path = NotePath::from_disk(&version.path).filter(is_document);
        let content = objects.blob(&version.blob)?;
        Ok(path.zip(content).map(|(path, content)| ReadNote::of(&path, &content)))
    };
    let (one, other) = (read(&before)?, read(&after)?);
    let none = ReadNote::none();
    let (one, other) = (one.as_ref().unwrap_or(&none), other.as_ref().unwrap_or(&none));
    let diff = NoteDiff::of(
        NoteState { text: &one.text, note: &one.note, ends: &[] },
        NoteState { text: &other.text, note: &other.note, ends: &[] },
    );
    let is = after.as_ref().map(|version| version.path.clone());
    let was = before.as_ref().map(|version| version.path.clone());
    Ok(NoteCommit {
        commit: commit.id.to_string(),
        date: Timestamp::from_millis(commit.authored_at.saturating_mul(1000)),
        author: commit.author,
        subject: commit.subject,
        created: was.is_none(),
        removed: is.is_none(),
        merge: commit.parents.len() > 1,
        path: is.clone().or_else(|| was.clone()).unwrap_or_default(),
        was: was.filter(|was| is.as_ref().is_some_and(|is| is != was)),
        diff,
    })
}
