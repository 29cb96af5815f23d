//! The operations that are committed together in git, and their files. Nothing here runs git.

use std::collections::BTreeMap;

use sidenote_base::clock::Timestamp;
use sidenote_base::platform;
use sidenote_base::platform::FileMetadata;
use sidenote_git::Repository;
use sidenote_markdown::control::plain;

/// One operation of a commit.
#[derive(Debug, Clone)]
pub struct CommittedOperation {
    /// The id in the journal.
    pub id: String,
    /// What was done, such as `move Guide.md → Handbook.md (12 links, 7 notes)`.
    pub title: String,
}

/// The operations that are committed together, and their files. Paths are from the top of the working tree.
#[derive(Debug, Clone, Default)]
pub struct OpenCommit {
    /// The operations that the commit holds.
    pub operations: Vec<CommittedOperation>,
    /// The files as the last operation left them; `None` for a removed one.
    pub files: BTreeMap<Vec<u8>, Option<FileMetadata>>,
    /// The files that are committed together or not at all, such as the two names of a moved one.
    pub pairs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The name of the session.
    pub session: Option<String>,
    /// The name of the client.
    pub client: String,
    /// Whether an agent made the changes.
    pub is_agent: bool,
    /// The time of the last operation.
    pub last: Timestamp,
}

/// The commits that sessions have not made yet, and what was not said of earlier ones.
#[derive(Debug, Default)]
pub struct SessionCommits {
    /// The open commits, by the names of their sessions.
    pub open: BTreeMap<String, OpenCommit>,
    /// Changes of earlier sessions that were not committed, which are reported with the next operation.
    pub unsaid: Vec<String>,
}

impl OpenCommit {
    /// Adds a later operation of the same session.
    pub fn add(&mut self, later: Self) {
        self.operations.extend(later.operations);
        self.files.extend(later.files);
        self.pairs.extend(later.pairs);
        self.session = later.session;
        self.client = later.client;
        self.is_agent = later.is_agent;
        self.last = later.last;
    }

    /// Says whether a file is as the last operation left it.
    pub fn has_unchanged(&self, repository: &Repository, path: &[u8]) -> bool {
        match (self.files.get(path), metadata(repository, path)) {
            (Some(None), None) => true,
            (Some(Some(left)), Some(now)) => now.is_unchanged_since(left),
            _ => false,
        }
    }

    /// Returns the message with its trailers, for a commit of this number of files.
    pub fn message(&self, files: usize) -> String {
        let mut text = match self.operations.as_slice() {
            [operation] => format!("sidenote: {}\n", operation.title),
            operations => {
                let files = number(files, "file");
                let mut text = format!("sidenote: {} operations ({files})\n\n", operations.len());
                for operation in operations {
                    text.push_str(&format!("- {}\n", operation.title));
                }
                text
            }
        };
        text.push('\n');
        for operation in &self.operations {
            text.push_str(&format!("Sidenote-Operation: {}\n", operation.id));
        }
        for (name, value) in [("Session", self.session.as_deref()), ("Client", Some(self.client.as_str()))] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                text.push_str(&format!("Sidenote-{name}: {value}\n"));
            }
        }
        text
    }
}

/// Leaves out every file that belongs together with one that is left out.
pub fn spread(left_out: &mut BTreeMap<Vec<u8>, String>, pairs: &[(Vec<u8>, Vec<u8>)]) {
    let mut partners: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
    for (from, to) in pairs {
        partners.entry(from).or_default().push(to);
        partners.entry(to).or_default().push(from);
    }
    let mut open: Vec<Vec<u8>> = left_out.keys().cloned().collect();
    while let Some(path) = open.pop() {
        for partner in partners.get(path.as_slice()).into_iter().flatten() {
            if !left_out.contains_key(*partner) {
                let reason = format!("it belongs to {}", plain(&String::from_utf8_lossy(&path)));
                left_out.insert(partner.to_vec(), reason);
                open.push(partner.to_vec());
            }
        }
    }
}

/// Returns the metadata of a file; `None` if there is none.
pub fn metadata(repository: &Repository, path: &[u8]) -> Option<FileMetadata> {
    platform::entry_metadata(&repository.disk_path(path)).ok()
}

/// Returns a number with the name of what is counted, such as `1 link` or `12 links`.
pub fn number(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
