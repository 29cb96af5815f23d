//! The write side of the catalog: batches, staged catalogs, and the statements that change rows.

use std::cell::{Cell, RefCell};
use std::path::Path;

use rusqlite::{Connection, OpenFlags, Row, params};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_markdown::path::{NotePath, key};

use crate::delta_encoding::pack_ascending;
use crate::dialects::{CountChange, counts_rows};
use crate::folders::FolderChanges;
use crate::inserts::Inserts;
use crate::links::{LinkpathIds, read_evidence};
use crate::rows::path_uuid_of;
use crate::schema::{INDEXES, NAME_ALIAS, NAME_ID, NAME_TITLE, PAGE, SCHEMA, SCHEMA_VERSION};
use crate::tasks::put_tasks;
use crate::{CACHE, CatalogReader, CreationSource, FileId, LAST_ID, Record, Stat, TimeSources, check, sql};

/// The page cache of a connection during a large batch, in kilobytes.
const CACHE_FOR_BULK: u32 = 32_768;

/// The number of passages that are inserted at a time.
const PASSAGES_AT_A_TIME: usize = 1024;

const INSERT_FILE: &str =
    "INSERT INTO files VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)";
/// Outside of a bulk load, a new file can take the path of one that is moved in the same batch.
const REPLACE_FILE: &str = "INSERT OR REPLACE INTO files VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)";
/// For a file that keeps its path: the indexes on paths and names stay as they are.
const UPDATE_FILE: &str =
    "UPDATE files SET kind = ?3, size = ?4, mtime = ?5, ctime = ?6, racy = ?7, hash = ?8,
    excluded = ?9, note_id = ?10, title = ?11, created = ?12, updated = ?13, category = ?14, type = ?15,
    put_away = ?17, path_id = ?18, times = ?19 WHERE id = ?1";

/// A file that is only touched was created as early as before. One that gets an earlier time was created then, unless the note
/// says more.
/// Notes that an attachment is still to be read.
const WAITS: &str = "INSERT OR IGNORE INTO waiting VALUES (?1)";
const UPDATE_STAT: &str = "UPDATE files SET size = ?2, mtime = ?3, ctime = ?4, racy = ?5,
    created = CASE WHEN times & 7 = 0 THEN min(ifnull(created, mtime / 1000000), ?3 / 1000000)
    ELSE ifnull(created, mtime / 1000000) END WHERE id = ?1";

static INTO_PASSAGES: Inserts<3> = Inserts::new("INSERT OR IGNORE INTO passages VALUES");

/// The catalog opened for writing. Only one process holds one at a time.
#[derive(Debug)]
pub struct CatalogWriter {
    /// Reads on the same connection, which see the batch that is being written.
    reader: CatalogReader,
    /// The ids of the link texts in this batch, so that each is looked up once: those of ordinary links first, then
    /// those of exact links.
    pub(super) linkpaths: RefCell<[LinkpathIds; 3]>,
    /// The ids of the property names in this batch.
    pub(super) property_names: RefCell<hashbrown::HashMap<String, i64>>,
    /// Whether a bulk load is active, during which secondary indexes are missing.
    pub(super) is_loading: Cell<bool>,
    /// How the files of folders changed in this batch.
    pub(super) folders: FolderChanges,
    /// How the numbers that are kept by difference changed in this batch.
    pub(super) counts: CountChange,
}

impl CatalogWriter {
    /// Opens the catalog for writing, and creates it if it does not exist.
    ///
    /// # Errors
    /// Returns `Corrupt` if the file is damaged or of another version, `Io` if it cannot be opened, and `Conflict` if
    /// another process keeps it locked.
    pub fn open(path: &Path) -> Result<Self> {
        check::refuse_irregular(path)?;
        let db = Connection::open(path).map_err(sql("open"))?;
        check::harden(&db)?;
        db.execute_batch(&format!(
            "PRAGMA page_size = {PAGE}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
             PRAGMA temp_store = MEMORY; PRAGMA busy_timeout = 5000; PRAGMA wal_autocheckpoint = 0;",
        ))
        .map_err(sql("open"))?;
        let tables: i64 =
            db.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).map_err(sql("read"))?;
        let catalog = Self::from_connection(db);
        catalog.set_cache_size(false)?;
        if tables == 0 {
            catalog.reader.db.execute_batch(&format!("BEGIN; {SCHEMA}")).map_err(sql("create"))?;
            catalog.build_indexes()?;
            catalog.set_meta("schema", SCHEMA_VERSION)?;
            catalog.set_meta("generation", 0)?;
            catalog.commit()?;
        }
        catalog.reader.check_version()?;
        Ok(catalog)
    }

    fn from_connection(db: Connection) -> Self {
        Self {
            reader: CatalogReader::from_connection(db),
            linkpaths: RefCell::default(),
            property_names: RefCell::default(),
            is_loading: Cell::new(false),
            folders: FolderChanges::default(),
            counts: CountChange::default(),
        }
    }

    /// Returns the queries on this connection, which see the batch that is being written.
    pub fn reader(&self) -> &CatalogReader {
        &self.reader
    }

    /// Stores a number under `name`.
    pub fn set_meta(&self, name: &str, value: i64) -> Result<()> {
        self.run("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", params![name, value])
    }

    /// Stores the highest id that was assigned to a file, so that it is not assigned again after the file is removed.
    pub fn set_last_id(&self, id: FileId) -> Result<()> {
        self.set_meta(LAST_ID, id)
    }

    /// Sets the size of the page cache: large for a batch of many files, small otherwise.
    pub fn set_cache_size(&self, is_bulk: bool) -> Result<()> {
        let kilobytes = if is_bulk { CACHE_FOR_BULK } else { CACHE };
        self.reader.db.execute_batch(&format!("PRAGMA cache_size = -{kilobytes}")).map_err(sql("open"))
    }

    /// Begins a batch.
    pub fn begin(&self) -> Result<()> {
        self.linkpaths.take();
        self.property_names.borrow_mut().clear();
        self.folders.borrow_mut().clear();
        self.counts.take();
        self.reader.db.execute_batch("BEGIN IMMEDIATE").map_err(sql("write"))
    }

    /// Commits the batch.
    pub fn commit(&self) -> Result<()> {
        self.put_folders()?;
        self.reader.db.execute_batch("COMMIT").map_err(sql("commit"))
    }

    /// Rolls the batch back, if there is one.
    pub fn rollback(&self) -> Result<()> {
        if self.reader.db.is_autocommit() {
            return Ok(());
        }
        self.reader.db.execute_batch("ROLLBACK").map_err(sql("roll back"))
    }

    /// Copies as much as possible from the write-ahead log of the catalog at `path` into the catalog, without blocking
    /// readers or a writer.
    ///
    /// # Errors
    /// Returns `Io` if the log or the catalog cannot be read or written, and `Conflict` if the catalog is locked.
    pub fn checkpoint_passively(path: &Path) -> Result<()> {
        // A missing catalog must not be created here.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).map_err(sql("open"))?;
        db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(sql("checkpoint"))
    }

    /// Copies the whole write-ahead log into the catalog and truncates it. Returns `false` if a reader prevents that.
    pub fn checkpoint(&self) -> Result<bool> {
        let busy: i64 = self
            .reader
            .db
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(sql("checkpoint"))?;
        Ok(busy == 0)
    }

    /// Creates an empty catalog at `path` for a bulk load, with the numbers in `meta` of this one, except those that count rows.
    ///
    /// Nobody else reads the staged catalog, so it has no write-ahead log and is not synced to the disk.
    /// [`CatalogWriter::build_indexes`] adds the secondary indexes, and [`CatalogWriter::close_staged`] completes it.
    /// Until then no change can be rolled back, and a crash leaves an invalid file.
    pub fn stage(&self, path: &Path) -> Result<Self> {
        let staged = Self::from_connection(Connection::open(path).map_err(sql("create"))?);
        let begin = format!(
            "PRAGMA page_size = {PAGE}; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF;
             PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; BEGIN; {SCHEMA}"
        );
        staged.reader.db.execute_batch(&begin).map_err(sql("create"))?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let numbers: Vec<(String, i64)> = self.reader.collect("SELECT key, value FROM meta", [], read)?;
        let mut kept = numbers.iter().filter(|(name, _)| !counts_rows(name));
        kept.try_for_each(|(name, value)| staged.set_meta(name, *value))?;
        staged.commit()?;
        staged.is_loading.set(true);
        Ok(staged)
    }

    /// Replaces all content with that of a completed staged catalog. Readers keep what their transactions see.
    ///
    /// # Errors
    /// Returns `Io` or `Corrupt` if the staged catalog cannot be read, `Io` if this one cannot be written, and `Conflict`
    /// if another process writes it.
    pub fn copy_from(&mut self, staged: &Path) -> Result<()> {
        let progress = None::<fn(rusqlite::backup::Progress)>;
        self.reader.db.restore(rusqlite::MAIN_DB, staged, progress).map_err(sql("write"))
    }

    /// Writes a completed staged catalog to `path` without the free space that a load leaves in its pages, a thirtieth of its
    /// size. Like the staged one, the copy is to be completed by [`CatalogWriter::close_staged`].
    pub fn pack_staged(&self, path: &str) -> Result<Self> {
        self.reader.db.execute("VACUUM INTO ?1", [path]).map_err(sql("write"))?;
        Ok(Self::from_connection(Connection::open(path).map_err(sql("open"))?))
    }

    /// Completes and closes a staged catalog, so that it can be opened like any other.
    pub fn close_staged(self) -> Result<()> {
        self.reader
            .db
            .execute_batch("PRAGMA locking_mode = NORMAL; PRAGMA journal_mode = WAL")
            .map_err(sql("close"))?;
        self.reader.db.close().map_err(|(_, error)| sql("close")(error))
    }

    /// Ends the writing of files of a bulk load, and frees the memory that it needed.
    pub fn end_files(&self) {
        self.linkpaths.take();
        self.is_loading.set(false);
    }

    /// Builds the secondary indexes, which a bulk load omits.
    pub fn build_indexes(&self) -> Result<()> {
        self.end_files();
        for (name, columns) in INDEXES {
            self.reader
                .db
                .execute_batch(&format!("CREATE INDEX IF NOT EXISTS {name} ON {columns}"))
                .map_err(sql("write"))?;
        }
        Ok(())
    }

    /// Records the paths that the next full-text commit touches, so that a crash between the two commits can be repaired.
    pub fn set_intents<'a>(&self, paths: impl Iterator<Item = &'a str>) -> Result<()> {
        self.begin()?;
        let mut insert = self
            .reader
            .db
            .prepare_cached("INSERT OR IGNORE INTO intents VALUES (?1)")
            .map_err(sql("write"))?;
        for path in paths {
            insert.execute([path]).map_err(sql("write"))?;
        }
        self.commit()
    }

    /// Deletes the intents, as part of the batch that fulfils them.
    pub fn clear_intents(&self) -> Result<()> {
        self.reader.db.execute_batch("DELETE FROM intents").map_err(sql("write"))
    }

    /// Marks every file as changed, so that the next sync reads it whatever its stat says.
    pub fn mark_all_changed(&self) -> Result<()> {
        self.put_folders()?;
        self.run("UPDATE folders SET racy = files", &[])?;
        self.run("UPDATE files SET racy = 1, hash = NULL", &[])
    }

    /// Updates the stat of a file whose indexed content stays. `waits` says that it is an attachment which is still to be read.
    pub fn update_stat(
        &self,
        id: FileId,
        path: &NotePath,
        stat: &Stat,
        racy: bool,
        excluded: bool,
        waits: bool,
    ) -> Result<()> {
        if waits {
            self.execute(WAITS, id)?;
        }
        self.uncount_files(id, None)?;
        self.count_file(path.as_str(), stat, racy, excluded);
        self.reader
            .db
            .prepare_cached(UPDATE_STAT)
            .and_then(|mut update| {
                update.execute(params![id, stat.size as i64, stat.mtime_ns, stat.ctime_ns, racy])
            })
            .map(drop)
            .map_err(sql("write"))
    }

    /// Removes a file. Links of other files to it lose their target.
    pub fn remove(&self, id: FileId) -> Result<()> {
        self.uncount_files(id, None)?;
        self.remove_details(id)?;
        self.execute("UPDATE links SET target = NULL WHERE target = ?1", id)?;
        self.execute("DELETE FROM files WHERE id = ?1", id)
    }

    fn remove_details(&self, id: FileId) -> Result<()> {
        let passages = self.reader.passages().of(id)?;
        self.counts.add_passages(-(passages.len() as i64));
        for passage in passages {
            self.run("DELETE FROM passages WHERE key = ?1 AND file = ?2", params![passage, id])?;
        }
        let read = |row: &Row<'_>| Ok((read_evidence(row, 0)?, row.get::<_, i64>(1)?));
        let links = self.reader.collect("SELECT evidence, count FROM links WHERE source = ?1", [id], read)?;
        links.into_iter().for_each(|(evidence, count)| self.counts.add_links(evidence, -count));
        for statement in [
            "DELETE FROM details WHERE file = ?1",
            "DELETE FROM names WHERE file = ?1",
            "DELETE FROM tags WHERE file = ?1",
            "DELETE FROM links WHERE source = ?1",
            "DELETE FROM relations WHERE source = ?1",
            "DELETE FROM tasks WHERE file = ?1",
            "DELETE FROM waiting WHERE file = ?1",
        ] {
            self.execute(statement, id)?;
        }
        Ok(())
    }

    /// Stores when a note was created, and where that is known from.
    ///
    /// # Errors
    /// Returns `Io` if the catalog cannot be written.
    pub fn set_creation(&self, id: FileId, at: Timestamp, source: CreationSource) -> Result<()> {
        let times = TimeSources { created: source, ..TimeSources::default() }.code();
        self.run(
            "UPDATE files SET created = ?2, times = times & 16 | ?3 WHERE id = ?1",
            params![id, at.millis(), times],
        )
    }

    fn execute(&self, statement: &str, id: FileId) -> Result<()> {
        self.reader
            .db
            .prepare_cached(statement)
            .and_then(|mut prepared| prepared.execute([id]))
            .map(drop)
            .map_err(sql("write"))
    }

    /// Writes the row and the details of a file, and replaces those with the same id. For a `fresh` file there are none
    /// to replace. Passages are added separately by [`CatalogWriter::add_passages`], which takes those of all files in
    /// the order of keys.
    pub fn upsert(&self, record: &Record, fresh: bool) -> Result<()> {
        let row = &record.row;
        let path_uuid = path_uuid_of(row);
        let own_id = path_uuid.filter(|uuid| row.note_id != uuid.to_string()).map(|_| row.note_id.as_str());
        let changed = Timestamp::from_nanos(record.stat.mtime_ns);
        if !fresh {
            self.remove_details(row.id)?;
        }
        // `OR REPLACE` costs more even if there is nothing to replace.
        let write = if self.is_loading.get() {
            INSERT_FILE
        } else if self.uncount_files(row.id, Some(row.path.as_str()))? {
            UPDATE_FILE
        } else {
            REPLACE_FILE
        };
        self.count_file(row.path.as_str(), &record.stat, record.racy, row.excluded);
        self.run(
            write,
            params![
                row.id,
                row.path.as_str(),
                row.kind.code(),
                record.stat.size as i64,
                record.stat.mtime_ns,
                record.stat.ctime_ns,
                record.racy,
                row.hash,
                row.excluded,
                own_id,
                Some(&row.title).filter(|title| *title != row.path.stem()),
                stored_time(row.created, row.time_sources.is_created_local, changed),
                stored_time(row.updated, row.time_sources.is_updated_local, changed),
                row.category,
                row.note_type,
                key(row.path.name()),
                row.inactive.code(),
                path_uuid.map(uuid::Uuid::into_bytes),
                row.time_sources.code(),
            ],
        )?;
        if record.waits {
            self.execute(WAITS, row.id)?;
        }
        if !record.has_details() {
            return Ok(());
        }
        self.counts.add_passages(record.passages.len() as i64);
        let passages: Vec<u8> = record.passages.iter().flat_map(|passage| passage.to_le_bytes()).collect();
        let properties = self.pack_properties(&record.properties)?;
        self.run(
            "INSERT INTO details VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                row.id,
                properties,
                Some(&record.problems).filter(|list| *list != "[]"),
                passages,
                pack_ascending(&record.sections),
                record.names_parts
            ],
        )?;
        let title = (NAME_TITLE, Some(row.title.as_str()).filter(|title| *title != row.path.stem()));
        let aliases = record.aliases.iter().map(|alias| (NAME_ALIAS, Some(alias.as_str())));
        for (what, spelling) in [title, (NAME_ID, own_id)].into_iter().chain(aliases) {
            if let Some(spelling) = spelling {
                let shown = Some(spelling).filter(|_| what == NAME_ALIAS);
                self.run(
                    "INSERT INTO names VALUES (?1, ?2, ?3, ?4)",
                    params![key(spelling), what, row.id, shown],
                )?;
            }
        }
        for (name, count) in &record.tags {
            self.run(
                "INSERT OR IGNORE INTO tags VALUES (?1, ?2, ?3, ?4)",
                params![key(name), row.id, name, *count as i64],
            )?;
        }
        self.put_links(row.id, &record.links)?;
        self.put_relations(row.id, record)?;
        put_tasks(&self.reader.db, row.id, &record.tasks)
    }

    pub(super) fn run(&self, statement: &str, values: &[&dyn rusqlite::ToSql]) -> Result<()> {
        self.reader
            .db
            .prepare_cached(statement)
            .and_then(|mut prepared| prepared.execute(values))
            .map(drop)
            .map_err(sql("write"))
    }

    /// Adds passages, given as (key, file, ordinal). If they are sorted, the table is written in one pass.
    pub fn add_passages(&self, passages: impl IntoIterator<Item = (i64, FileId, usize)>) -> Result<()> {
        let mut rows = passages.into_iter().map(|(passage, file, ord)| [passage, file, ord as i64]);
        let mut group = Vec::new();
        loop {
            group.extend(rows.by_ref().take(PASSAGES_AT_A_TIME));
            INTO_PASSAGES.insert(&self.reader.db, &group)?;
            if group.len() < PASSAGES_AT_A_TIME {
                return Ok(());
            }
            group.clear();
        }
    }
}

/// Returns a time of a note as the catalog stores it: `None` for that of the file, and for a time without an offset what a
/// local clock shows.
fn stored_time(time: Timestamp, is_local: bool, changed: Timestamp) -> Option<i64> {
    if is_local { Some(time.wall_millis()) } else { Some(time.millis()).filter(|_| time != changed) }
}
