//! Filling a new vault from a folder, and writing a vault into one.

use std::collections::HashMap;

use postgres::Client;
use postgres::types::Type;
use sidenote_base::error::Result;
use sidenote_journal::event::Event;
use sidenote_markdown::edit::ContentHash;
use sidenote_vault::copy::{SharedFiles, SharedPath};
use uuid::Uuid;

use super::names::insert_vault;
use super::row_lock::{MAX_SENT, send};
use super::tables::{each_content, files, set_vault, store_event};
use super::{Database, failed};

/// A vault that is being created, in one transaction. Dropping it before the commit creates nothing.
pub(crate) struct Import {
    client: Client,
    vault: Uuid,
    waiting: Vec<(String, ContentHash, Vec<u8>)>,
    size: usize,
}

impl Import {
    /// Begins a vault with a name.
    pub(crate) fn begin(database: &Database, name: &str) -> Result<Self> {
        let mut client = database.client()?;
        let vault = Uuid::new_v4();
        client.batch_execute("begin").map_err(|error| failed("begin", error))?;
        set_vault(&mut client, vault)?;
        insert_vault(&mut client, vault, name, 1)?;
        Ok(Self { client, vault, waiting: Vec::new(), size: 0 })
    }

    /// Adds a file.
    pub(crate) fn add(&mut self, path: &SharedPath, bytes: Vec<u8>) -> Result<()> {
        self.size += bytes.len();
        self.waiting.push((path.as_str().to_owned(), ContentHash::of(&bytes), bytes));
        if self.size >= MAX_SENT || self.waiting.len() >= 2_000 { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.size = 0;
        let keys: Vec<[u8; 32]> = waiting.iter().map(|(_, hash, _)| hash.to_bytes()).collect();
        let mut new: HashMap<&[u8], &[u8]> = HashMap::new();
        for (key, (_, _, bytes)) in keys.iter().zip(&waiting) {
            new.insert(key.as_slice(), bytes.as_slice());
        }
        let (hashes, bytes): (Vec<&[u8]>, Vec<&[u8]>) = new.into_iter().unzip();
        send(&mut self.client, self.vault, &hashes, &bytes)?;
        let paths: Vec<&str> = waiting.iter().map(|(path, ..)| path.as_str()).collect();
        let hashes: Vec<&[u8]> = keys.iter().map(<[u8; 32]>::as_slice).collect();
        self.client
            .execute_typed(
                "insert into sidenote.file (vault, path, hash, gen)
                select $1, path, hash, 1 from unnest($2, $3) as new (path, hash)",
                &[(&self.vault, Type::UUID), (&paths, Type::TEXT_ARRAY), (&hashes, Type::BYTEA_ARRAY)],
            )
            .map(drop)
            .map_err(|error| failed("store the files", error))
    }

    /// Commits the vault with the event that created it, and returns its id.
    pub(crate) fn commit(mut self, event: &Event) -> Result<Uuid> {
        if !self.waiting.is_empty() {
            self.send()?;
        }
        let summed = self.client.execute_typed(
            "update sidenote.vault v set (bytes, notes) = (
                select coalesce(sum(octet_length(b.bytes)), 0), count(*) filter (where sidenote.is_note(f.path))
                from sidenote.file f join sidenote.blob b on b.vault = f.vault and b.hash = f.hash
                where f.vault = $1
            ) where v.id = $1",
            &[(&self.vault, Type::UUID)],
        );
        summed.map_err(|error| failed("measure the files", error))?;
        store_event(&mut self.client, self.vault, 1, event)?;
        self.client.batch_execute("commit").map_err(|error| failed("create the vault", error))?;
        Ok(self.vault)
    }
}

impl Database {
    /// Writes all files of a vault into a folder. Returns their number and size, and the paths of those that are damaged in the
    /// database and were not written.
    ///
    /// # Errors
    /// `Io` if a file cannot be written or the database not be reached.
    pub(crate) fn write_all(
        &self,
        vault: Uuid,
        shared: &mut SharedFiles,
    ) -> Result<(usize, u64, Vec<String>)> {
        self.read(Some(vault), |transaction| {
            let files = files(transaction, vault, 0)?;
            let mut paths: HashMap<ContentHash, Vec<&SharedPath>> = HashMap::new();
            for file in &files {
                if let Some(hash) = file.hash {
                    paths.entry(hash).or_default().push(&file.path);
                }
            }
            let hashes: Vec<ContentHash> = paths.keys().copied().collect();
            let (mut count, mut size) = (0, 0);
            each_content(transaction, vault, &hashes, |hash, bytes| {
                let Some(bytes) = bytes else { return Ok(()) };
                for path in paths.remove(&hash).unwrap_or_default() {
                    shared.write(path, bytes)?;
                    count += 1;
                    size += bytes.len() as u64;
                }
                Ok(())
            })?;
            let mut damaged: Vec<String> =
                paths.values().flatten().map(|path| path.as_str().to_owned()).collect();
            damaged.sort_unstable();
            Ok((count, size, damaged))
        })
    }

    /// Returns the number and size of the files of a vault.
    ///
    /// # Errors
    /// `Io` if the database cannot be reached.
    pub(crate) fn count_files(&self, vault: Uuid) -> Result<(usize, u64)> {
        self.read(Some(vault), |transaction| {
            let row = transaction.query_typed_one(
                "select count(*), coalesce(sum(octet_length(b.bytes)), 0)::bigint
                from sidenote.file f join sidenote.blob b on b.vault = f.vault and b.hash = f.hash
                where f.vault = $1",
                &[(&vault, Type::UUID)],
            );
            let row = row.map_err(|error| failed("count the files of the vault", error))?;
            let count = |at| row.get::<_, i64>(at).unsigned_abs();
            Ok((usize::try_from(count(0)).unwrap_or(usize::MAX), count(1)))
        })
    }
}
