//! Giving a vault the files of a folder again, in one transaction.

use std::collections::{BTreeMap, HashMap};

use postgres::Transaction;
use postgres::types::Type;
use sidenote_base::error::{Error, Result};
use sidenote_journal::event::{Event, TouchedFile};
use sidenote_markdown::edit::ContentHash;
use sidenote_vault::copy::SharedPath;
use sidenote_vault::failpoint;
use uuid::Uuid;

use super::listener::notify;
use super::members::name_operator;
use super::row_lock::{MAX_SENT, Row, difference, lock_row, send, store_rows};
use super::tables::{files, store_event};
use super::{Database, failed};

/// The bytes of a file of the folder, which are read when they are sent.
type ReadFile<'a> = dyn FnMut(&SharedPath) -> Result<Vec<u8>> + 'a;

impl Database {
    /// Compares the files of a vault with those that it is to have, and returns what has to change.
    pub(crate) fn compare_files(
        &self,
        vault: Uuid,
        wanted: &BTreeMap<SharedPath, ContentHash>,
    ) -> Result<Vec<TouchedFile>> {
        self.read(Some(vault), |transaction| changes_to(transaction, vault, wanted))
    }

    /// Gives a vault these files and no others, and a new origin, by which servers and synchronised folders notice the
    /// change. Returns the changes, which are also the files of `event`.
    pub(crate) fn restore(
        &self,
        vault: Uuid,
        wanted: &BTreeMap<SharedPath, ContentHash>,
        read: &mut ReadFile<'_>,
        event: &mut Event,
    ) -> Result<Vec<TouchedFile>> {
        self.write(Some(vault), |transaction| {
            let generation = lock_row(transaction, vault)? + 1;
            let changes = changes_to(transaction, vault, wanted)?;
            send_files(transaction, vault, &changes, read)?;
            let paths: Vec<String> = changes.iter().map(|change| change.path.to_string()).collect();
            let hashes = changes.iter().map(|change| change.after);
            let rows: Vec<Row<'_>> = paths.iter().map(String::as_str).zip(hashes).collect();
            let difference = difference(transaction, vault, &rows, &HashMap::new())?;
            store_rows(transaction, vault, generation, &rows)?;
            event.files.clone_from(&changes);
            name_operator(transaction, event)?;
            store_event(transaction, vault, generation, event)?;
            let write = |error| failed("store the change", error);
            failpoint();
            transaction
                .execute_typed(
                    "update sidenote.vault set head = $2, origin = $3, bytes = bytes + $4, notes = notes + $5
                    where id = $1",
                    &[
                        (&vault, Type::UUID),
                        (&generation, Type::INT8),
                        (&Uuid::new_v4(), Type::UUID),
                        (&difference.bytes, Type::INT8),
                        (&difference.notes, Type::INT8),
                    ],
                )
                .map_err(write)?;
            notify(transaction, vault, generation).map_err(write)?;
            Ok(changes)
        })
    }
}

/// Returns what has to change so that a vault has these files and no others.
fn changes_to(
    transaction: &mut Transaction<'_>,
    vault: Uuid,
    wanted: &BTreeMap<SharedPath, ContentHash>,
) -> Result<Vec<TouchedFile>> {
    let present: HashMap<SharedPath, ContentHash> =
        files(transaction, vault, 0)?.into_iter().filter_map(|file| Some((file.path, file.hash?))).collect();
    let mut changes = Vec::new();
    let mut add = |path: &SharedPath, before: Option<ContentHash>, after: Option<ContentHash>| {
        let place = path
            .location()
            .ok_or_else(|| Error::invalid(format!("{} cannot be a file of a vault", path.as_str())))?;
        changes.push(TouchedFile { path: place, to: None, before, after });
        Ok(())
    };
    for (path, hash) in wanted {
        let before = present.get(path).copied();
        if before != Some(*hash) {
            add(path, before, Some(*hash))?;
        }
    }
    let mut gone: Vec<(&SharedPath, &ContentHash)> =
        present.iter().filter(|(path, _)| !wanted.contains_key(*path)).collect();
    gone.sort_unstable_by_key(|(path, _)| *path);
    for (path, hash) in gone {
        add(path, Some(*hash), None)?;
    }
    Ok(changes)
}

/// Sends the contents of the files that change, some megabytes at a time.
fn send_files(
    transaction: &mut Transaction<'_>,
    vault: Uuid,
    changes: &[TouchedFile],
    read: &mut ReadFile<'_>,
) -> Result<()> {
    let mut group: BTreeMap<[u8; 32], Vec<u8>> = BTreeMap::new();
    let mut size = 0;
    for change in changes {
        let Some(expected) = change.after else { continue };
        let place = SharedPath::from(&change.path);
        let bytes = read(&place)?;
        if ContentHash::of(&bytes) != expected {
            return Err(Error::invalid(format!("{} changed while the folder was read", place.as_str()))
                .with_hint("run the command again when nobody changes the folder"));
        }
        size += bytes.len();
        group.insert(expected.to_bytes(), bytes);
        if size >= MAX_SENT {
            send_group(transaction, vault, &std::mem::take(&mut group))?;
            size = 0;
        }
    }
    send_group(transaction, vault, &group)
}

fn send_group(
    transaction: &mut Transaction<'_>,
    vault: Uuid,
    group: &BTreeMap<[u8; 32], Vec<u8>>,
) -> Result<()> {
    if group.is_empty() {
        return Ok(());
    }
    let hashes: Vec<&[u8]> = group.keys().map(<[u8; 32]>::as_slice).collect();
    let bytes: Vec<&[u8]> = group.values().map(Vec::as_slice).collect();
    send(transaction, vault, &hashes, &bytes)
}
