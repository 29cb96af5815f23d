//! What the person at the computer with the notes does: sets the passphrase, lists the grants and takes them back.

use std::path::PathBuf;

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};

use crate::audit::{self, AuditEntry, AuditLog};
use crate::passphrase::PassphraseHash;
use crate::state::{Grant, StateFile};
use crate::token::new_id;

/// The name of the folder below that of the user's data.
const FOLDER: &str = "authorization";

/// A grant, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrantInfo {
    /// Its id.
    pub id: String,
    /// The name that the client gives itself.
    pub client: String,
    /// The id of the client.
    pub client_id: String,
    /// Where the client was led back to.
    pub redirect: String,
    /// What the client may do.
    pub scopes: Vec<&'static str>,
    /// The endpoint.
    pub resource: String,
    /// When it was granted.
    pub granted: Timestamp,
    /// When tokens were issued last.
    pub renewed: Timestamp,
    /// When it ends unless the client renews it.
    pub expires: Timestamp,
}

/// What was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RevokeReply {
    /// Whether it was done, and not only shown.
    pub applied: bool,
    /// The grants.
    pub revoked: Vec<GrantInfo>,
}

/// The grants of the user of this process.
#[derive(Debug)]
pub struct Logins {
    state: StateFile,
    audit: AuditLog,
}

impl GrantInfo {
    fn of(grant: &Grant) -> Self {
        Self {
            id: grant.id.clone(),
            client: grant.client_name.clone(),
            client_id: grant.client_id.clone(),
            redirect: grant.redirect.clone(),
            scopes: grant.scopes.names().to_vec(),
            resource: grant.resource.clone(),
            granted: grant.granted,
            renewed: grant.renewed,
            expires: grant.expires,
        }
    }
}

/// Makes the line of the audit log about a grant.
pub(crate) fn entry(now: Timestamp, event: &str, grant: &Grant) -> AuditEntry {
    AuditEntry {
        client_id: Some(grant.client_id.clone()),
        client: Some(grant.client_name.clone()),
        grant: Some(grant.id.clone()),
        scope: Some(grant.scopes.text().to_owned()),
        resource: Some(grant.resource.clone()),
        ..AuditEntry::new(now, event)
    }
}

impl Logins {
    /// Names the logins below the user's data folder.
    pub fn new(data: PathBuf) -> Self {
        let folder = data.join(FOLDER);
        Self { state: StateFile::new(folder.clone()), audit: AuditLog::new(folder) }
    }

    /// Returns the folder, for [`Options::folder`](crate::Options::folder).
    pub fn folder(&self) -> PathBuf {
        self.state.folder().to_owned()
    }

    /// Returns whether there is a passphrase.
    ///
    /// # Errors
    /// An error if the state cannot be read.
    pub fn has_passphrase(&self) -> Result<bool> {
        Ok(self.state.read()?.passphrase.is_some())
    }

    /// Sets the passphrase. Grants stay; pages of consent and codes count no more. Returns whether there was one before.
    ///
    /// # Errors
    /// `Invalid` if it is too short or too long; an error if the state cannot be written.
    pub fn set_passphrase(&self, passphrase: &str, now: Timestamp) -> Result<bool> {
        let hash = PassphraseHash::of(passphrase)?;
        let generation = new_id()?;
        let before = self.state.change(now, |state| {
            state.generation = generation;
            state.passphrase.replace(hash)
        })?;
        self.audit.add(&AuditEntry::new(now, "passphrase-set"));
        Ok(before.is_some())
    }

    /// Checks a passphrase as [`Logins::set_passphrase`] does, and sets nothing.
    ///
    /// # Errors
    /// Those of [`Logins::set_passphrase`].
    pub fn check_passphrase(&self, passphrase: &str) -> Result<bool> {
        PassphraseHash::of(passphrase)?;
        self.has_passphrase()
    }

    /// Lists the grants that count, the newest last.
    ///
    /// # Errors
    /// An error if the state cannot be read.
    pub fn list(&self, now: Timestamp) -> Result<Vec<GrantInfo>> {
        let state = self.state.read()?;
        Ok(state.grants.iter().filter(|grant| grant.expires > now).map(GrantInfo::of).collect())
    }

    /// Reads the newest lines of the audit log, the oldest first.
    ///
    /// # Errors
    /// `Io` if it cannot be read.
    pub fn audit(&self, limit: usize) -> Result<Vec<AuditEntry>> {
        audit::read(self.state.folder(), limit)
    }

    /// Revokes the grant with an id or the beginning of one, or all grants. Pages of consent and codes count no more, so that
    /// no access comes of what was allowed before.
    ///
    /// # Errors
    /// `NotFound` if there is no such grant; `Invalid` if several begin so; an error if the state cannot be written.
    pub fn revoke(&self, id: Option<&str>, now: Timestamp, dry_run: bool) -> Result<RevokeReply> {
        let found = self.list(now)?;
        let meant: Vec<GrantInfo> =
            found.into_iter().filter(|grant| id.is_none_or(|id| grant.id.starts_with(id))).collect();
        if let Some(id) = id {
            /// So many digits of an id are not hit by a slip of the finger.
            const FEWEST: usize = 4;
            let hint = "`sidenote login list` shows the ids";
            if id.len() < FEWEST {
                return Err(Error::invalid(format!("{id:?} is too short for the id of a grant"))
                    .with_hints(format!("give at least {FEWEST} digits; {hint}"), ""));
            }
            match meant.as_slice() {
                [] => return Err(Error::not_found(format!("there is no grant {id:?}")).with_hints(hint, "")),
                [_] => {}
                _ => {
                    return Err(
                        Error::invalid(format!("several grants begin with {id:?}")).with_hints(hint, "")
                    );
                }
            }
        }
        if dry_run {
            return Ok(RevokeReply { applied: false, revoked: meant });
        }
        let generation = new_id()?;
        let ended = self.state.change(now, |state| {
            state.generation = generation;
            // All grants are those that there are now, not those that were listed.
            let is_meant = |grant: &Grant| id.is_none() || meant.iter().any(|meant| meant.id == grant.id);
            state.end(is_meant)
        })?;
        for grant in &ended {
            self.audit.add(&entry(now, "revoked", grant));
        }
        Ok(RevokeReply { applied: true, revoked: ended.iter().map(GrantInfo::of).collect() })
    }
}
