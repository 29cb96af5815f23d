//! The log of what the authorization server did: one line of JSON for each registration, login, grant and revocation. It
//! holds no token, no code and no passphrase.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};

/// The name of the log, and of the part before it.
const FILE: &str = "audit.jsonl";
const EARLIER: &str = "audit.1.jsonl";
/// The largest log in bytes. It becomes the part before, which is then removed: strangers make some of the lines.
const MAX_FILE: u64 = 1 << 20;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When it happened.
    pub at: Timestamp,
    /// What happened, such as `registered`, `wrong-passphrase`, `granted`, `refreshed` or `revoked`.
    pub event: String,
    /// The address from which the request came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The id of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The name that the client gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The id of the grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// What the client may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl AuditEntry {
    /// Begins a line.
    pub(crate) fn new(at: Timestamp, event: &str) -> Self {
        Self {
            at,
            event: event.to_owned(),
            address: None,
            client_id: None,
            client: None,
            grant: None,
            scope: None,
            resource: None,
            reason: None,
        }
    }
}

/// The log.
#[derive(Debug)]
pub(crate) struct AuditLog {
    folder: PathBuf,
    /// Held while a line is written, so that only one request at a time starts a new part.
    writing: Mutex<()>,
}

impl AuditLog {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, writing: Mutex::default() }
    }

    /// Adds a line. A failure is logged and fails no request: a full disk must not keep the owner from revoking.
    pub(crate) fn add(&self, entry: &AuditEntry) {
        if let Err(error) = self.write(entry) {
            tracing::warn!("the audit log of the logins is not written: {error}");
        }
    }

    fn write(&self, entry: &AuditEntry) -> Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.folder.join(FILE);
        let failed = |error| Error::io("write", &path, error);
        platform::make_private_dir(&self.folder).map_err(failed)?;
        let mut line = serde_json::to_vec(entry)
            .map_err(|error| Error::internal("cannot write a line as JSON").with_source(error))?;
        line.push(b'\n');
        let length = std::fs::symlink_metadata(&path).map_or(0, |found| found.len());
        if length + line.len() as u64 > MAX_FILE {
            #[expect(
                clippy::disallowed_methods,
                reason = "the log is a file of the user's data folder, not of a vault"
            )]
            std::fs::rename(&path, self.folder.join(EARLIER)).map_err(failed)?;
        }
        let mut file = safe_open::open_or_create(&path, 0o600).map_err(failed)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).map_err(failed)?;
        file.write_all(&line).map_err(failed)
    }
}

/// Reads the newest lines of the log in a folder, the oldest first.
///
/// # Errors
/// `Io` if it cannot be read.
pub(crate) fn read(folder: &Path, limit: usize) -> Result<Vec<AuditEntry>> {
    let mut entries: Vec<AuditEntry> = Vec::new();
    for name in [EARLIER, FILE] {
        let path = folder.join(name);
        let bytes = match safe_open::read_in_place(&path, 2 * MAX_FILE) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            bytes => bytes.map_err(|error| Error::io("read", &path, error))?,
        };
        // A line that a crash cut off is left out.
        entries
            .extend(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
    }
    entries.drain(..entries.len().saturating_sub(limit));
    Ok(entries)
}
