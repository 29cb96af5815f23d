//! The log of what the authorization server did: one line of JSON for each registration, login, grant and revocation. It
//! holds no token, no code and no passphrase. What strangers can cause has a part and a limit of its own.

use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};

use crate::slowdown::Quota;

/// The names of a part of the log, and of the part before it.
type Part = [&'static str; 2];

/// What only the owner and the clients with access can cause.
const OWN: Part = ["audit.jsonl", "audit.1.jsonl"];
/// What strangers can cause, so that they cannot push the other lines out.
const STRANGERS: Part = ["audit.strangers.jsonl", "audit.strangers.1.jsonl"];
/// The largest file in bytes. It becomes the part before, which is then removed.
const MAX_FILE: u64 = 1 << 20;
/// The lines that strangers can cause in each hour, by address and in all: enough to see what happens.
const BY_ADDRESS: u32 = 60;
const IN_ALL: u32 = 600;
const HOUR: i64 = 3_600_000;

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
    strangers: Mutex<Strangers>,
}

/// Bounds the lines that strangers can cause.
#[derive(Debug)]
struct Strangers {
    quota: Quota,
    /// The lines that were left out since the last one.
    left_out: u64,
}

impl AuditLog {
    pub(crate) fn new(folder: PathBuf) -> Self {
        let strangers = Strangers { quota: Quota::new(BY_ADDRESS, IN_ALL, HOUR), left_out: 0 };
        Self { folder, writing: Mutex::default(), strangers: Mutex::new(strangers) }
    }

    /// Adds a line. A failure is logged and fails no request: a full disk must not keep the owner from revoking.
    pub(crate) fn add(&self, entry: &AuditEntry) {
        self.add_to(OWN, entry);
    }

    /// Adds a line that a stranger at an address can cause, unless there were too many. The next line says how many were
    /// left out.
    pub(crate) fn add_of_stranger(&self, mut entry: AuditEntry, address: IpAddr) {
        {
            let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
            if !strangers.quota.take(address, entry.at) {
                strangers.left_out += 1;
                return;
            }
            let left_out = std::mem::take(&mut strangers.left_out);
            if left_out > 0 {
                entry.reason = Some(format!("{left_out} entries before this one were left out"));
            }
        }
        entry.address = Some(address.to_string());
        self.add_to(STRANGERS, &entry);
    }

    fn add_to(&self, part: Part, entry: &AuditEntry) {
        if let Err(error) = self.write(part, entry) {
            tracing::warn!("the audit log of the logins is not written: {error}");
        }
    }

    fn write(&self, [name, earlier]: Part, entry: &AuditEntry) -> Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.folder.join(name);
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
            std::fs::rename(&path, self.folder.join(earlier)).map_err(failed)?;
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
    for name in [OWN, STRANGERS].into_iter().flat_map(|[name, earlier]| [earlier, name]) {
        let path = folder.join(name);
        let bytes = match safe_open::read_in_place(&path, 2 * MAX_FILE) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            bytes => bytes.map_err(|error| Error::io("read", &path, error))?,
        };
        // A line that a crash cut off is left out.
        entries
            .extend(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
    }
    // The lines of each part stay in the order in which they were written.
    entries.sort_by_key(|entry| entry.at);
    entries.drain(..entries.len().saturating_sub(limit));
    Ok(entries)
}
