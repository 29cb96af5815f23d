//! The commands of an operator for vaults of a team: creating one from a folder, writing one into a folder, restoring
//! one from a folder, removing old contents, checking, renaming and deleting one, and setting its quotas.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform;
use sidenote_config::{Config, VAULT_FILE};
use sidenote_journal::event::Event;
use sidenote_vault::Vault;
use sidenote_vault::copy::{SharedFiles, SharedPath};
use uuid::Uuid;

use crate::postgres::Database;
use crate::postgres::import::Import;
use crate::postgres::tables::Deletion;
use crate::quota::{QuotaSetting, QuotaSettings, Usage};

/// The name of the operation that filled a new vault.
const OP_IMPORT: &str = "import-vault";
/// The name of the operation that gave a vault the files of a folder.
const OP_RESTORE: &str = "restore-vault";
/// The name of the operation that removed contents.
const OP_CLEAN: &str = "clean-vault";
/// The names of the operations that changed a vault itself.
const OP_RENAME: &str = "rename-vault";
const OP_DELETE: &str = "delete-vault";
const OP_UNDELETE: &str = "undelete-vault";
const OP_QUOTA: &str = "set-quota";
/// The longest name of a vault, in bytes.
const MAX_NAME: usize = 64;

/// A vault that was created or written into a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransferReply {
    /// The name of the vault.
    pub name: String,
    /// The id of the vault, if it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// The number of files.
    pub files: usize,
    /// The size of the files in bytes.
    pub bytes: u64,
    /// The files that are damaged in the database, which were not written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
    /// Whether anything was written.
    pub applied: bool,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TeamCheck {
    /// The name of the vault.
    pub name: String,
    /// The number of files.
    pub files: usize,
    /// One sentence for each thing that is wrong.
    pub problems: Vec<String>,
}

/// Checks that a text can be the name of a vault, which is part of an address.
///
/// # Errors
/// `Invalid` if it cannot.
pub fn check_name(name: &str) -> Result<()> {
    let fits = (1..=MAX_NAME).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if fits {
        return Ok(());
    }
    Err(Error::invalid(format!("{name:?} cannot be the name of a vault"))
        .with_hint(format!("use 1 to {MAX_NAME} letters, digits, - and _")))
}

/// Creates a vault, with the files of a folder if one is given. With `dry_run`, only the files are read.
///
/// # Errors
/// `Exists` if there is a vault of this name; `Invalid` if the name is, or if a file is larger than `max_file`; `Io` if
/// a file cannot be read or the database not be reached. Then there is no vault, or an empty one.
pub fn create(
    database: &Database,
    name: &str,
    from: Option<&Path>,
    max_file: u64,
    now: Timestamp,
    dry_run: bool,
) -> Result<TransferReply> {
    check_name(name)?;
    database.check_free(name)?;
    let mut reply = TransferReply {
        name: name.to_owned(),
        id: None,
        files: 0,
        bytes: 0,
        damaged: Vec::new(),
        applied: !dry_run,
    };
    let Some(from) = from else {
        reply.id = if dry_run { None } else { Some(database.create_vault(name)?) };
        return Ok(reply);
    };
    let vault = Vault::open(from)?.with_max_file_size(max_file);
    let mut shared = SharedFiles::open(&vault)?;
    let mut paths = shared.list()?;
    paths.sort_unstable();
    let mut read = |path: &SharedPath| -> Result<Vec<u8>> {
        let bytes = shared.read(path)?;
        let bytes = bytes.ok_or_else(|| Error::not_found(format!("{} is gone", path.as_str())))?;
        check_settings(path, &bytes)?;
        Ok(bytes)
    };
    if dry_run {
        for path in &paths {
            reply.bytes += read(path)?.len() as u64;
        }
        reply.files = paths.len();
        return Ok(reply);
    }
    let mut import = Import::begin(database, name)?;
    for path in &paths {
        let bytes = read(path)?;
        reply.bytes += bytes.len() as u64;
        import.add(path, bytes)?;
    }
    reply.files = paths.len();
    reply.id = Some(import.commit(&Event::new(OP_IMPORT, now))?);
    Ok(reply)
}

/// Refuses settings of a folder with which no server could serve a vault as they say.
fn check_settings(path: &SharedPath, bytes: &[u8]) -> Result<()> {
    if path.as_str() != VAULT_FILE {
        return Ok(());
    }
    let checked = Config::check_vault_file(bytes);
    checked.map_err(|error| error.with_hint("repair the file in the folder; nothing was stored"))
}

/// Writes the files of a vault into a new or empty folder: the plain vault, without an index. A new folder is for the user alone.
/// Files that are damaged in the database are left out and named. With `dry_run`, only the number of files is asked for.
///
/// # Errors
/// `NotFound` if there is no such vault; `Exists` if the folder is not empty; `Io` if a file cannot be written or the
/// database not be reached.
pub fn export(database: &Database, name: &str, to: &Path, dry_run: bool) -> Result<TransferReply> {
    let id = database.vault_id(name)?;
    let is_empty = match std::fs::read_dir(to) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(Error::io("list", to, error)),
    };
    if !is_empty {
        return Err(Error::new(ErrorKind::Exists, format!("{} is not empty", to.display()))
            .with_hint("name a new folder"));
    }
    let (files, bytes, damaged) = if dry_run {
        let (files, bytes) = database.count_files(id)?;
        (files, bytes, Vec::new())
    } else {
        if !to.exists() {
            platform::make_private_dir(to).map_err(|error| Error::io("make", to, error))?;
        }
        let mut shared = SharedFiles::open(&Vault::open(to)?)?;
        let written = database.write_all(id, &mut shared)?;
        shared.flush()?;
        written
    };
    Ok(TransferReply { name: name.to_owned(), id: Some(id), files, bytes, damaged, applied: !dry_run })
}

/// A vault that got the files of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VaultRestoreReply {
    /// The name of the vault.
    pub name: String,
    /// The files that the vault gets, or gets with other bytes.
    pub written: Vec<String>,
    /// The files that are removed from the vault.
    pub removed: Vec<String>,
    /// The number of files that stay as they are.
    pub unchanged: usize,
    /// The id of the event in the journal, if anything was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Whether anything was written.
    pub applied: bool,
}

/// Gives a vault the files of a folder and no others, as one change in its journal. All copies of servers are made
/// again, and synchronised folders keep their other files. With `dry_run`, files are only compared.
///
/// # Errors
/// `Invalid` if the role of the connection does not own the tables, or if a file is larger than `max_file`; `NotFound` if
/// there is no such vault or folder; `Conflict` if a server is changing the vault all the time; `Io` if a file cannot be read
/// or the database not be reached. Then nothing was changed.
pub fn restore(
    database: &Database,
    name: &str,
    from: &Path,
    max_file: u64,
    now: Timestamp,
    dry_run: bool,
) -> Result<VaultRestoreReply> {
    let vault = Vault::open(from)?.with_max_file_size(max_file);
    database.check_owner("restore a vault")?;
    let id = database.vault_id(name)?;
    let mut shared = SharedFiles::open(&vault)?;
    let mut wanted = BTreeMap::new();
    for path in shared.list()? {
        if let Some(hash) = shared.hash(&path)? {
            if path.as_str() == VAULT_FILE {
                check_settings(&path, &shared.read(&path)?.unwrap_or_default())?;
            }
            wanted.insert(path, hash);
        }
    }
    let changes = database.compare_files(id, &wanted)?;
    // A backup that is not mounted looks like this.
    if wanted.is_empty() && !changes.is_empty() {
        return Err(Error::invalid(format!("{} has no files of a vault", from.display()))
            .with_hint("name the folder that `sidenote team export` wrote"));
    }
    let mut event = Event::new(OP_RESTORE, now);
    let applied = !dry_run && !changes.is_empty();
    let changes = if applied {
        let mut read = |path: &SharedPath| -> Result<Vec<u8>> {
            shared.read(path)?.ok_or_else(|| Error::not_found(format!("{} is gone", path.as_str())))
        };
        database.restore(id, &wanted, &mut read, &mut event)?
    } else {
        changes
    };
    let named = |is_removed: bool| {
        let of_kind = changes.iter().filter(move |change| change.after.is_none() == is_removed);
        of_kind.map(|change| change.path.to_string()).collect::<Vec<String>>()
    };
    let (written, removed) = (named(false), named(true));
    let unchanged = wanted.len() - written.len();
    let event = applied.then_some(event.id);
    Ok(VaultRestoreReply { name: name.to_owned(), written, removed, unchanged, event, applied })
}

/// Contents that were removed from the database, or a whole vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CleanReply {
    /// The name of the vault.
    pub name: String,
    /// The number of contents.
    pub contents: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// Whether the vault was deleted before, and is removed for good.
    pub is_removal: bool,
    /// Whether anything was removed.
    pub applied: bool,
}

/// Removes the contents of a vault that no file has now and no change since a time names. Changes before that cannot be
/// undone any more. A deleted vault whose time is over is removed for good. Without a name, this is done for all
/// vaults, except deleted ones whose time is not over. With `dry_run`, contents are only counted.
///
/// # Errors
/// `Invalid` if the role of the connection does not own the tables, or if the time of the named vault is not over; `NotFound` if
/// there is no such vault; `Conflict` if a server is changing the vault all the time; `Io` if the database cannot be reached.
pub fn clean(
    database: &Database,
    name: Option<&str>,
    since: Timestamp,
    now: Timestamp,
    dry_run: bool,
) -> Result<Vec<CleanReply>> {
    database.check_owner("remove contents")?;
    let deleted = database.deleted_vaults()?;
    let mut replies = Vec::new();
    for found in deleted.iter().filter(|found| name.is_none_or(|name| found.name == name)) {
        match found.deleted {
            Some(deletion) if deletion.removable_at > now && name.is_some() => {
                return Err(Error::invalid(format!(
                    "the vault {} was deleted, and is kept until {}",
                    found.name,
                    deletion.removable_at.local_rfc3339()
                ))
                .with_hints(
                    "`sidenote team undelete` brings it back; `sidenote team delete --now` removes it for good",
                    "tell the user",
                ));
            }
            Some(deletion) if deletion.removable_at > now => {}
            _ => replies.extend(remove(database, found.id, &found.name, Some(now), dry_run)?),
        }
    }
    let names = match name {
        Some(_) if !replies.is_empty() => Vec::new(),
        name => vaults(database, name)?,
    };
    for name in names {
        let id = database.vault_id(&name)?;
        let found = database.clean(id, since, dry_run, &mut Event::new(OP_CLEAN, now))?;
        let applied = !dry_run && found.count > 0;
        let (contents, bytes) = (found.count, found.bytes);
        replies.push(CleanReply { name, contents, bytes, is_removal: false, applied });
    }
    Ok(replies)
}

/// Removes a vault for good; with `due`, only if it is deleted and its time is over then. Returns `None` if it is not.
fn remove(
    database: &Database,
    id: Uuid,
    name: &str,
    due: Option<Timestamp>,
    dry_run: bool,
) -> Result<Option<CleanReply>> {
    let (contents, bytes) = database.stored(id)?;
    let is_removed = dry_run || database.remove_vault(id, due)?;
    let reply = CleanReply { name: name.to_owned(), contents, bytes, is_removal: true, applied: !dry_run };
    Ok(is_removed.then_some(reply))
}

/// Returns the name of a vault, or without one those of all vaults.
///
/// # Errors
/// `Invalid` if all are asked for and the role of the connection does not own the tables; `Io` if the database cannot be reached.
pub fn vaults(database: &Database, name: Option<&str>) -> Result<Vec<String>> {
    match name {
        Some(name) => Ok(vec![name.to_owned()]),
        None => {
            database.check_owner("list the vaults")?;
            database.vault_names()
        }
    }
}

/// Compares all contents of a vault with their hashes, and all generations with the head.
///
/// # Errors
/// `NotFound` if there is no such vault; `Io` if the database cannot be reached.
pub fn check(database: &Database, name: &str) -> Result<TeamCheck> {
    let id = database.vault_id(name)?;
    let (problems, files) = database.check_vault(id)?;
    Ok(TeamCheck { name: name.to_owned(), files, problems })
}

/// A vault that got another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RenameReply {
    /// The name before.
    pub from: String,
    /// The name now, or as it would be.
    pub to: String,
    /// Whether anything was written.
    pub applied: bool,
}

/// Gives a vault another name. Files, rights and history stay, and clients of the former name are told the new one. With `dry_run`,
/// it is only checked.
///
/// # Errors
/// `Invalid` if the new name cannot be one, or if the role of the connection does not own the tables; `NotFound` if there is no
/// such vault; `Exists` if another vault has the new name, or had it; `Io` if the database cannot be reached.
pub fn rename(
    database: &Database,
    from: &str,
    to: &str,
    now: Timestamp,
    dry_run: bool,
) -> Result<RenameReply> {
    check_name(to)?;
    database.check_owner("rename a vault")?;
    let id = database.vault_id(from)?;
    if database.find_vault(to)?.is_none_or(|found| found.id != id || found.name == to) {
        database.check_free(to)?;
    }
    if !dry_run {
        let mut event = Event::new(OP_RENAME, now);
        for (key, name) in [("name_before", from), ("name", to)] {
            event.more.insert(key.to_owned(), name.into());
        }
        database.rename_vault(id, from, to, &mut event)?;
    }
    Ok(RenameReply { from: from.to_owned(), to: to.to_owned(), applied: !dry_run })
}

/// A vault that was deleted, or brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeleteReply {
    /// The name of the vault.
    pub name: String,
    /// When it was deleted, and how long it is kept; `None` if it was brought back.
    #[serde(flatten)]
    pub deletion: Option<Deletion>,
    /// Whether anything was written.
    pub applied: bool,
}

/// Deletes a vault. From then on it cannot be reached. It can be brought back until [`clean`] removes it for good, at
/// `removable_at` at the earliest. With `dry_run`, it is only checked.
///
/// # Errors
/// `Invalid` if the role of the connection does not own the tables; `NotFound` if there is no such vault, or if it was deleted;
/// `Io` if the database cannot be reached.
pub fn delete(
    database: &Database,
    name: &str,
    removable_at: Timestamp,
    now: Timestamp,
    dry_run: bool,
) -> Result<DeleteReply> {
    database.check_owner("delete a vault")?;
    let id = database.vault_id(name)?;
    let deletion = Some(Deletion { deleted_at: now, removable_at });
    if !dry_run {
        database.set_deleted(id, deletion, &mut Event::new(OP_DELETE, now))?;
    }
    Ok(DeleteReply { name: name.to_owned(), deletion, applied: !dry_run })
}

/// Removes a vault for good at once, whether it was deleted before or not. With `dry_run`, its contents are only counted.
///
/// # Errors
/// `Invalid` if the role of the connection does not own the tables; `NotFound` if there is no such vault; `Io` if the database
/// cannot be reached.
pub fn delete_now(database: &Database, name: &str, dry_run: bool) -> Result<CleanReply> {
    database.check_owner("delete a vault")?;
    let deleted = database.find_vault(name)?.filter(|found| found.name == name && found.deleted.is_some());
    let id = deleted.map_or_else(|| database.vault_id(name), |found| Ok(found.id))?;
    let removed = remove(database, id, name, None, dry_run)?;
    removed.ok_or_else(|| Error::not_found(format!("there is no vault {name:?}")))
}

/// Brings a vault back that was deleted. With `dry_run`, it is only checked.
///
/// # Errors
/// `Invalid` if the role of the connection does not own the tables; `NotFound` if no vault of this name was deleted, or if it was
/// removed for good; `Io` if the database cannot be reached.
pub fn undelete(database: &Database, name: &str, now: Timestamp, dry_run: bool) -> Result<DeleteReply> {
    database.check_owner("bring a vault back")?;
    let found = database.find_vault(name)?.filter(|found| found.name == name && found.deleted.is_some());
    let found = found.ok_or_else(|| {
        Error::not_found(format!("no vault {name:?} was deleted, or it was removed for good")).with_hints(
            "`sidenote team list --deleted` lists those that can be brought back",
            "tell the user",
        )
    })?;
    if !dry_run {
        database.set_deleted(found.id, None, &mut Event::new(OP_UNDELETE, now))?;
    }
    Ok(DeleteReply { name: name.to_owned(), deletion: None, applied: !dry_run })
}

/// The quotas of a vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuotaReply {
    /// The name of the vault.
    pub name: String,
    /// How much it holds.
    pub usage: Usage,
    /// What is set for its quotas, or would be.
    pub quotas: QuotaSettings,
    /// Whether anything was written.
    pub applied: bool,
}

/// The quotas of a vault that are set. Those that are not named stay as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct QuotaRequest {
    /// The size of all files in bytes.
    pub bytes: Option<QuotaSetting>,
    /// The number of notes.
    pub notes: Option<QuotaSetting>,
    /// The changes of a person in a minute.
    pub changes: Option<QuotaSetting>,
}

/// Sets quotas of a vault, and says how much it holds. They count from the next change on, at all servers. With `dry_run`, they are
/// only read.
///
/// # Errors
/// `Invalid` if something must be set and the role of the connection does not own the tables; `NotFound` if
/// there is no such vault; `Io` if the database cannot be reached.
pub fn quota(
    database: &Database,
    name: &str,
    request: QuotaRequest,
    now: Timestamp,
    dry_run: bool,
) -> Result<QuotaReply> {
    let id = database.vault_id(name)?;
    let (usage, before) = database.quotas_of(id)?;
    let quotas = QuotaSettings {
        bytes: request.bytes.unwrap_or(before.bytes),
        notes: request.notes.unwrap_or(before.notes),
        changes: request.changes.unwrap_or(before.changes),
    };
    let applied = !dry_run && quotas != before;
    if applied {
        database.check_owner("set quotas")?;
        let mut event = Event::new(OP_QUOTA, now);
        let settings = serde_json::to_value(quotas)
            .map_err(|error| Error::internal("quotas cannot be serialized").with_source(error))?;
        event.more.insert("quotas".to_owned(), settings);
        database.set_quotas(id, quotas, &mut event)?;
    }
    Ok(QuotaReply { name: name.to_owned(), usage, quotas, applied })
}
