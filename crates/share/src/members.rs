//! The rights of people in the vaults of a team: granting and withdrawing roles, blocking people, and looking up a role.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_journal::event::Event;
use sidenote_store::Role;

use crate::postgres::Database;
use crate::postgres::members::StoredRoles;
pub use crate::postgres::members::VaultSize;
pub use crate::postgres::tables::Deletion;
use crate::quota::QuotaSettings;

/// The operations of events about rights.
const OP_GRANT: &str = "grant";
const OP_REVOKE: &str = "revoke";
const OP_BLOCK: &str = "block";
const OP_UNBLOCK: &str = "unblock";
const OP_FORGET: &str = "forget";
/// The issuer of a person who was replaced by a number.
const FORGOTTEN: &str = "forgotten";
/// The beginning of the name of a group.
const GROUP: &str = "group:";
/// The longest name of a person or group, in bytes.
const MAX_WHO: usize = 2_000;
/// The largest number of roles that are remembered for when the database cannot be reached.
const MAX_KNOWN: usize = 10_000;

/// A role that was granted or withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoleReply {
    /// The name of the vault.
    pub vault: String,
    /// The person as `issuer#subject`, or the group as `group:NAME`.
    pub who: String,
    /// The role before.
    pub before: Option<Role>,
    /// The role now, or as it would be.
    pub role: Option<Role>,
    /// Whether anything was written.
    pub applied: bool,
}

/// A person or group that was blocked in all vaults, or is not any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockReply {
    /// The person as `issuer#subject`, or the group as `group:NAME`.
    pub who: String,
    /// Whether the person was blocked before.
    pub before: bool,
    /// Whether the person is blocked now, or would be.
    pub blocked: bool,
    /// Whether anything was written.
    pub applied: bool,
}

/// The vaults of a database, and who is blocked in all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VaultList {
    /// The vaults, by name.
    pub vaults: Vec<VaultRoles>,
    /// The persons and groups that are blocked in all vaults.
    pub blocked: Vec<String>,
}

/// A vault with the roles in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VaultRoles {
    /// The name of the vault.
    pub name: String,
    /// The roles, by person or group.
    pub roles: Vec<GrantedRole>,
    /// How much it has in the database.
    #[serde(flatten)]
    pub size: VaultSize,
    /// What is set for its quotas.
    pub quotas: QuotaSettings,
    /// When it was deleted, if it was.
    #[serde(flatten)]
    pub deletion: Option<Deletion>,
}

/// A role of a person or group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrantedRole {
    /// The person as `issuer#subject`, or the group as `group:NAME`.
    pub who: String,
    /// The role.
    pub role: Role,
}

/// Lists the vaults with the roles in each, or those that were deleted, and who is blocked.
///
/// # Errors
/// `Invalid` if the role of the connection does not own the tables; `Io` if the database cannot be reached.
pub fn list(database: &Database, deleted: bool) -> Result<VaultList> {
    database.check_owner("list the vaults")?;
    let (vaults, blocked) = database.list_roles(deleted)?;
    let mut list = VaultList { vaults: Vec::new(), blocked };
    for mut stored in vaults {
        let mut roles = Vec::new();
        for (who, role) in std::mem::take(&mut stored.roles) {
            roles.extend(parse_role(Some(role))?.map(|role| GrantedRole { who, role }));
        }
        let StoredRoles { vault: name, size, quotas, deletion, .. } = stored;
        list.vaults.push(VaultRoles { name, roles, size, quotas, deletion });
    }
    Ok(list)
}

/// Checks the name of a person or group. With `issuers`, the person must be one of theirs.
///
/// # Errors
/// `Invalid` if it is none.
pub fn check_who(who: &str, issuers: &[String]) -> Result<()> {
    let invalid = |why: String| {
        Err(Error::invalid(why)
            .with_hint("write ISSUER#SUBJECT, such as https://login.example#248289761001, or group:NAME"))
    };
    if who.len() > MAX_WHO || who.contains(char::is_control) {
        return invalid("this cannot be the name of a person or group".to_owned());
    }
    if let Some(group) = who.strip_prefix(GROUP) {
        return if group.is_empty() { invalid("the group has no name".to_owned()) } else { Ok(()) };
    }
    match who.split_once('#') {
        Some((issuer, subject)) if !issuer.is_empty() && !subject.is_empty() => {
            if issuers.is_empty() || issuers.iter().any(|known| known == issuer) {
                return Ok(());
            }
            Err(Error::invalid(format!("{issuer} is not one of login.issuer")).with_hint(format!(
                "write the issuer exactly as the settings have it: {}",
                issuers.join(", ")
            )))
        }
        _ => invalid(format!("{who:?} names neither a person nor a group")),
    }
}

/// Gives a person or group a role in a vault, or withdraws it with `None`. With `dry_run`, only the present role is read.
///
/// # Errors
/// `Invalid` if the role of the connection does not own the tables; `NotFound` if there is no such vault, or no role to withdraw; `Io` if the database cannot be reached or refuses.
pub fn set_role(
    database: &Database,
    vault: &str,
    who: &str,
    role: Option<Role>,
    now: Timestamp,
    dry_run: bool,
) -> Result<RoleReply> {
    database.check_owner("change roles")?;
    let id = database.vault_id(vault)?;
    let before = parse_role(database.stored_role(id, who)?)?;
    if role.is_none() && before.is_none() {
        return Err(Error::not_found(format!("{who} has no role in {vault}"))
            .with_hint("name the person or group as it was granted; `sidenote team list` shows that"));
    }
    let mut reply =
        RoleReply { vault: vault.to_owned(), who: who.to_owned(), before, role, applied: !dry_run };
    if !dry_run {
        let mut event = Event::new(if role.is_some() { OP_GRANT } else { OP_REVOKE }, now);
        event.more.insert("who".to_owned(), who.into());
        for (key, role) in [("role_before", before), ("role", role)] {
            event.more.extend(role.map(|role| (key.to_owned(), role.name().into())));
        }
        reply.before = parse_role(database.set_role(id, who, role.map(Role::name), &mut event)?)?;
    }
    Ok(reply)
}

/// Blocks a person or group in all vaults, or ends that. With `dry_run`, only the present state is read.
///
/// # Errors
/// `Invalid` if the role of the connection does not own the tables; `Io` if the database cannot be reached or refuses.
pub fn set_blocked(
    database: &Database,
    who: &str,
    blocked: bool,
    now: Timestamp,
    dry_run: bool,
) -> Result<BlockReply> {
    database.check_owner("block people")?;
    let mut before = database.is_blocked(who)?;
    let applied = !dry_run && before != blocked;
    if applied {
        let mut event = Event::new(if blocked { OP_BLOCK } else { OP_UNBLOCK }, now);
        event.more.insert("who".to_owned(), who.into());
        before = database.set_blocked(who, blocked, &mut event)?;
    }
    Ok(BlockReply { who: who.to_owned(), before, blocked, applied })
}

/// A person who was replaced by a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForgetReply {
    /// The replacement of the person, or what it would be.
    pub replaced_by: String,
    /// The number of vaults in which the person was found.
    pub vaults: usize,
    /// The number of events that named the person.
    pub events: usize,
    /// The number of roles that were removed.
    pub roles: usize,
    /// Whether the person is blocked, and stays so.
    pub blocked: bool,
    /// Whether anything was written.
    pub applied: bool,
}

/// Replaces a person by a number in the journals of all vaults, and removes the roles. A block stays, by a hash of the person.
/// With `dry_run`, they are only counted.
///
/// # Errors
/// `Invalid` if `who` is no person, or if the role of the connection does not own the tables; `Io` if the database cannot be reached or refuses.
pub fn forget(database: &Database, who: &str, now: Timestamp, dry_run: bool) -> Result<ForgetReply> {
    let person = who.split_once('#').filter(|_| !who.starts_with(GROUP));
    let (issuer, subject) = person.ok_or_else(|| {
        Error::invalid(format!("{who:?} is no person")).with_hint("write ISSUER#SUBJECT, as the audit has it")
    })?;
    database.check_owner("change the journals")?;
    let rewrite = |event: &mut Event, number: i64| {
        let is_caller = event.more.get("caller").is_some_and(|caller| {
            let has = |name: &str, value: &str| caller.get(name).and_then(Value::as_str) == Some(value);
            has("issuer", issuer) && has("subject", subject)
        });
        let is_object = event.more.get("who").and_then(Value::as_str) == Some(who);
        if is_caller {
            let nobody = json!({ "issuer": FORGOTTEN, "subject": number.to_string() });
            event.more.insert("caller".to_owned(), nobody);
        }
        if is_object {
            event.more.insert("who".to_owned(), format!("{FORGOTTEN}#{number}").into());
        }
        is_caller || is_object
    };
    let mut record = Event::new(OP_FORGET, now);
    let found = database.forget(who, subject, dry_run, &rewrite, &mut record)?;
    Ok(ForgetReply {
        replaced_by: format!("{FORGOTTEN}#{}", found.number),
        vaults: found.vaults,
        events: found.events,
        roles: found.roles,
        blocked: found.is_blocked,
        applied: !dry_run,
    })
}

fn parse_role(name: Option<String>) -> Result<Option<Role>> {
    name.map(|name| {
        Role::parse(&name)
            .map_err(|error| Error::corrupt("the database has an unknown role").with_source(error))
    })
    .transpose()
}

/// The vault and the names of a person, by which roles are remembered.
type Asked = (String, Vec<String>);

/// What became of a vault that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VaultState {
    /// It has the name.
    Present,
    /// It has another name now.
    Renamed(String),
    /// It was deleted.
    Deleted,
}

impl VaultState {
    fn of(asked: &str, name: String, is_deleted: bool) -> Self {
        if is_deleted {
            Self::Deleted
        } else if name == asked {
            Self::Present
        } else {
            Self::Renamed(name)
        }
    }
}

/// Asks for the roles of people. Where the database cannot be reached, the last answer counts for a while.
#[derive(Debug)]
pub struct Members {
    database: Arc<Database>,
    stale_time: Duration,
    known: Mutex<HashMap<Asked, (Role, Instant)>>,
}

impl Members {
    /// Asks a database. Answers count for `stale_time` while it cannot be reached.
    pub fn new(database: Arc<Database>, stale_time: Duration) -> Self {
        Self { database, stale_time, known: Mutex::default() }
    }

    /// Returns the role that a person has in a vault under any of these names, and the state of the vault. Returns
    /// `None` if there is no such vault, or the person has no role in it or is blocked.
    ///
    /// # Errors
    /// `Io` if the database cannot be reached and was not asked recently.
    pub fn role(&self, vault: &str, names: &[String]) -> Result<Option<(Role, VaultState)>> {
        let asked = (vault.to_owned(), names.to_vec());
        match self.database.rights(vault, names) {
            Ok(rights) => {
                let role = if rights.is_blocked { None } else { parse_role(rights.role)? };
                let state = rights.name.map(|name| VaultState::of(vault, name, rights.is_deleted));
                let is_present = state == Some(VaultState::Present);
                self.remember(asked, role.filter(|_| is_present));
                Ok(role.zip(state))
            }
            Err(error) if error.kind() == ErrorKind::Io => {
                let known = self.known();
                let known = known.get(&asked).filter(|(_, at)| at.elapsed() < self.stale_time);
                known.map(|(role, _)| Some((*role, VaultState::Present))).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the state of the vault that has or had a name; `None` if there is none.
    ///
    /// # Errors
    /// `Io` if the database cannot be reached.
    pub fn state(&self, vault: &str) -> Result<Option<VaultState>> {
        let found = self.database.rights(vault, &[])?;
        Ok(found.name.map(|name| VaultState::of(vault, name, found.is_deleted)))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Asked, (Role, Instant)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, asked: Asked, role: Option<Role>) {
        let mut known = self.known();
        if known.len() >= MAX_KNOWN {
            known.retain(|_, (_, at)| at.elapsed() < self.stale_time);
        }
        match role {
            Some(role) if known.len() < MAX_KNOWN => drop(known.insert(asked, (role, Instant::now()))),
            // Nothing counts that is older than the last answer.
            _ => drop(known.remove(&asked)),
        }
    }
}
