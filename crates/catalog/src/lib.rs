//! The catalog: one row for each file, with its fields, links and passages. It is the only user of SQLite. It ranks
//! nothing, and knows no other engine.
//!
//! The catalog's generation is the commit point of the whole index: a file that the catalog does not list does not
//! exist.

mod check;
mod filter;
mod folders;
mod inserts;
mod links;
mod names;
pub mod other_database;
mod passages;
mod paths;
mod pool;
mod properties;
mod relations;
mod rows;
mod schema;
mod tasks;
mod totals;
mod writer;
mod delta_encoding;
mod dialects;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

pub use filter::{Filter, Kinds, ValidAt};
pub use links::LinkTexts;
pub use names::path_id_query;
pub use paths::Places;
use percent_encoding::NON_ALPHANUMERIC;
pub use pool::{ReadTransaction, ReaderPool};
pub use relations::{RELATION_RULES, RelationQueries, RelationRow};
pub use rows::{
    Counts, CreationSource, Details, FileEntry, FileId, FileKind, FileRow, FolderEntry, Hash, Inactive,
    IndexedFile, LinkGroup, LinkPosition, LinkRole, LinkRow, Record, Stat, TimeSources, creation_of, path_id,
    path_id_at,
};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, StatementStatus, params, params_from_iter};
pub use schema::SCHEMA_VERSION;
use sidenote_base::clock::{StatedTime, Timestamp};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_markdown::path::{NotePath, is_segment};
pub use tasks::TaskRow;
pub use writer::CatalogWriter;

use crate::delta_encoding::unpack_ascending;

/// The name of the entry with the key of the model whose vectors were complete last.
pub const COMPLETED_MODEL: &str = "serving";
/// The page cache of a connection, in kilobytes.
const CACHE: u32 = 2_048;

/// The number of prepared statements that a connection caches: more than a search or a sync repeats.
const CACHED_STATEMENTS: usize = 64;

/// The name in `meta` of the highest file id that was ever assigned.
const LAST_ID: &str = "last_id";

/// The catalog opened for reading.
#[derive(Debug)]
pub struct CatalogReader {
    db: Connection,
    /// Whether all paths of files were checked.
    has_valid_paths: Cell<bool>,
    /// The thread that checks them, if one was started.
    path_check: RefCell<Option<JoinHandle<Result<()>>>>,
    /// The places of all files in the order of paths, and the version in which they had these.
    places: RefCell<Option<(Version, Arc<Places>)>>,
    /// The instructions that SQLite executed for lists of rows, for tests of how batches grow.
    pub steps: Cell<u64>,
}

/// A version of the catalog: SQLite's `data_version`, which counts changes by others, and the number of own changes.
type Version = (i64, u64);

/// Returns a conversion of SQLite's errors, for an operation named by a verb.
fn sql(doing: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |error| Error::new(kind_of(&error), format!("cannot {doing} the catalog")).with_source(error)
}

/// Returns the kind of an error of SQLite.
fn kind_of(error: &rusqlite::Error) -> ErrorKind {
    // A value of another type or form than the one that was written is also damage.
    let damaged = matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    ) || matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
    );
    match error.sqlite_error_code() {
        _ if damaged => ErrorKind::Corrupt,
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => ErrorKind::Conflict,
        Some(
            rusqlite::ErrorCode::DiskFull
            | rusqlite::ErrorCode::SystemIoFailure
            | rusqlite::ErrorCode::CannotOpen,
        ) => ErrorKind::Io,
        _ => ErrorKind::Internal,
    }
}

/// Returns whether a database has a write-ahead log that is not empty.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Path::new(&log).metadata().is_ok_and(|log| log.len() > 0)
}

/// Opens a database that nobody writes to, without creating files next to it.
fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    // A path need not be UTF-8: its bytes are what the address encodes.
    let name = percent_encoding::percent_encode(path.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)
}

impl CatalogReader {
    /// Opens the catalog for reading, next to a writer.
    ///
    /// # Errors
    /// Returns `NotFound` if there is no catalog yet or another process is creating it, `Corrupt` if it is damaged or
    /// of another version, and `Io` if it cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Err(Error::not_found(format!("there is no index at {}", path.display()))
                .with_hints("run: sidenote index", "ask the user to build the index"));
        }
        check::refuse_irregular(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)
            .or_else(|_| Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY))
            .map_err(sql("open"))?;
        match Self::configure_for_reading(db, path) {
            // SQLite creates files next to the catalog to read it, which a full disk has no room for. Without a log the
            // catalog is complete by itself.
            Err(error) if error.kind() == ErrorKind::Io && !has_log(path) => {
                let db = open_immutable(path).map_err(sql("open"))?;
                Self::configure_for_reading(db, path).map_err(|second| {
                    tracing::debug!("the catalog cannot be read without a log either: {second}");
                    error
                })
            }
            opened => opened,
        }
    }

    /// Opens a catalog of any version without changing it or its log. `is_shared` says that another process may write
    /// to it. [`CatalogReader::check_version`] is left to the caller. If a writer crashed, SQLite rebuilds the file of
    /// its shared memory, `catalog.db-shm`.
    ///
    /// # Errors
    /// Returns `Corrupt` if it is not a catalog, and `Io` if it cannot be opened.
    pub fn open_to_examine(path: &Path, is_shared: bool) -> Result<Self> {
        check::refuse_irregular(path)?;
        let db = if is_shared || has_log(path) {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(path, flags)
        } else {
            open_immutable(path)
        };
        let db = db.map_err(sql("open"))?;
        check::harden(&db)?;
        // The last connection would otherwise write the log into the catalog.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(sql("open"))?;
        db.execute_batch("PRAGMA query_only = 1; PRAGMA busy_timeout = 5000;").map_err(sql("open"))?;
        Ok(Self::from_connection(db))
    }

    fn configure_for_reading(db: Connection, path: &Path) -> Result<Self> {
        check::harden(&db)?;
        db.execute_batch("PRAGMA query_only = 1; PRAGMA busy_timeout = 5000;").map_err(sql("open"))?;
        db.execute_batch(&format!("PRAGMA cache_size = -{CACHE}")).map_err(sql("open"))?;
        let catalog = Self::from_connection(db);
        let tables: i64 = catalog
            .db
            .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
            .map_err(sql("read"))?;
        if tables == 0 {
            return Err(Error::not_found(format!("the index at {} is being created", path.display()))
                .with_hint("try again when the other sidenote has finished"));
        }
        catalog.check_version()?;
        Ok(catalog)
    }

    fn from_connection(db: Connection) -> Self {
        db.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        Self {
            db,
            has_valid_paths: Cell::new(false),
            path_check: RefCell::default(),
            places: RefCell::default(),
            steps: Cell::new(0),
        }
    }

    /// Checks that the catalog has the schema of this version.
    ///
    /// # Errors
    /// Returns `Corrupt` if it has another one.
    pub fn check_version(&self) -> Result<()> {
        check::schema(&self.db)?;
        let version = self.meta("schema")?;
        if version != Some(SCHEMA_VERSION) {
            return Err(Error::corrupt("the catalog was written by another version of sidenote"));
        }
        Ok(())
    }

    /// Returns the number that is stored under `name`.
    pub fn meta(&self, name: &str) -> Result<Option<i64>> {
        let found = self.collect("SELECT value FROM meta WHERE key = ?1", [name], |row| row.get(0))?;
        Ok(found.first().copied())
    }

    /// Returns the generation: the number of batches committed so far.
    pub fn generation(&self) -> Result<i64> {
        Ok(self.meta("generation")?.unwrap_or(0))
    }

    /// Begins a read transaction, unless one is open.
    fn begin(&self) -> Result<()> {
        if self.db.is_autocommit() {
            self.db.prepare_cached("BEGIN").and_then(|mut begin| begin.execute([])).map_err(sql("read"))?;
        }
        Ok(())
    }

    /// Ends a read transaction.
    fn end(&self) -> Result<()> {
        self.db.prepare_cached("COMMIT").and_then(|mut end| end.execute([])).map(drop).map_err(sql("read"))
    }

    /// Runs several queries in one transaction, so that all of them see the same state.
    ///
    /// # Errors
    /// Returns the errors of `read`, and `Corrupt` or `Io` if the transaction cannot be begun or ended.
    pub fn in_transaction<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.db.is_autocommit() {
            return read();
        }
        self.begin()?;
        let result = read();
        self.end()?;
        result
    }

    /// Lists the paths of a batch that was not finished.
    pub fn intents(&self) -> Result<Vec<String>> {
        self.collect("SELECT path FROM intents", [], |row| row.get(0))
    }

    fn collect<T, P: rusqlite::Params>(
        &self,
        query: &str,
        values: P,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.db.prepare_cached(query).map_err(sql("read"))?;
        let rows = statement.query_map(values, read).map_err(sql("read"))?;
        let found = rows.collect::<rusqlite::Result<Vec<T>>>().map_err(sql("read"));
        let steps = statement.reset_status(StatementStatus::VmStep);
        self.steps.set(self.steps.get() + u64::try_from(steps).unwrap_or(0));
        found
    }

    /// Visits the indexed content of a folder in the order of paths: its files, and each of its subfolders once,
    /// without their files.
    ///
    /// # Errors
    /// Returns the errors of `visit`, and `Corrupt` if a path is invalid or the paths do not ascend, so that the walk
    /// always ends.
    pub fn visit_folder(
        &self,
        folder: &str,
        mut visit: impl FnMut(FolderEntry<'_>) -> Result<()>,
    ) -> Result<()> {
        let select = format!("SELECT {INDEXED_FILE_COLUMNS} FROM files WHERE path >= ?1 ORDER BY path");
        let mut statement = self.db.prepare_cached(&select).map_err(sql("read"))?;
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let (mut from, mut last) = (start.clone(), String::new());
        loop {
            let mut rows = statement.query([&from]).map_err(sql("read"))?;
            from = loop {
                let Some(row) = rows.next().map_err(sql("read"))? else { return Ok(()) };
                let file = read_indexed_file(row).map_err(sql("read"))?;
                let Some(name) = file.path.strip_prefix(&start) else { return Ok(()) };
                let (segment, rest) = name.split_once('/').unwrap_or((name, "rest"));
                if file.path <= last.as_str() || !is_segment(segment) || rest.is_empty() {
                    return Err(rows::invalid_path(file.path));
                }
                last.clear();
                last.push_str(file.path);
                if segment.len() < name.len() {
                    let folder = file.path.get(..start.len() + segment.len()).unwrap_or_default();
                    visit(FolderEntry::Folder(folder))?;
                    // The paths in the folder begin with its path and a slash; `0` is the character after the slash.
                    break format!("{folder}0");
                }
                visit(FolderEntry::File(file))?;
            };
        }
    }

    /// Returns the indexed state of the file at a path.
    pub fn indexed_file_at(&self, path: &str) -> Result<Option<IndexedFile>> {
        let select = format!("SELECT {INDEXED_FILE_COLUMNS} FROM files WHERE path = ?1");
        let file =
            self.collect(&select, [path], |row| read_indexed_file(row).map(IndexedFile::into_owned))?.pop();
        file.transpose()
    }

    /// Returns the highest id that was ever assigned to a file. No id is assigned twice, so an id from an older
    /// snapshot never means another file.
    pub fn last_id(&self) -> Result<FileId> {
        Ok(self.meta(LAST_ID)?.unwrap_or(0).max(self.highest_id()?))
    }

    /// Returns whether the catalog lists no file.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.highest_id()? == 0)
    }

    fn highest_id(&self) -> Result<FileId> {
        self.db.query_row("SELECT ifnull(max(id), 0) FROM files", [], |row| row.get(0)).map_err(sql("read"))
    }

    /// Returns the hash that a file had when it was indexed.
    pub fn hash_of(&self, id: FileId) -> Result<Option<Hash>> {
        self.db
            .prepare_cached("SELECT hash FROM files WHERE id = ?1")
            .and_then(|mut select| select.query_row([id], |row| row.get(0)).optional())
            .map(Option::flatten)
            .map_err(sql("read"))
    }

    /// Returns the rows of these files in the given order. Missing files are omitted.
    pub fn rows(&self, ids: &[FileId]) -> Result<Vec<FileRow>> {
        let mut rows = Vec::with_capacity(ids.len());
        let select = format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.id = ?1");
        let mut statement = self.db.prepare_cached(&select).map_err(sql("read"))?;
        for id in ids {
            rows.extend(statement.query_row([id], read_file).optional().map_err(sql("read"))?);
        }
        Ok(rows)
    }

    /// Returns the row of one path.
    pub fn row_at(&self, path: &str) -> Result<Option<FileRow>> {
        Ok(self
            .collect(&format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.path = ?1"), [path], read_file)?
            .pop())
    }

    /// Lists the visible files after a path, ordered by path.
    pub fn files_after(&self, after: &str, limit: usize) -> Result<Vec<FileRow>> {
        self.collect(
            &format!(
                "SELECT {FILE_COLUMNS} FROM files f WHERE f.path > ?1 AND NOT f.excluded ORDER BY f.path LIMIT ?2"
            ),
            params![after, limit as i64],
            read_file,
        )
    }

    /// Lists the tags of a note.
    pub fn tags_of(&self, id: FileId) -> Result<Vec<String>> {
        self.collect("SELECT name FROM tags WHERE file = ?1 ORDER BY key", [id], |row| row.get(0))
    }

    /// Lists the files with a tag, given by its key, and with nested tags below it if `below` is set.
    pub fn tagged(&self, tag: &str, below: bool) -> Result<Vec<FileId>> {
        let deeper = if below { " OR (key > ?1 || '/' AND key < ?1 || '0')" } else { "" };
        self.collect(&format!("SELECT file FROM tags WHERE key = ?1{deeper}"), [tag], |row| row.get(0))
    }

    /// Lists the entry of every visible file.
    pub fn file_entries(&self) -> Result<Vec<FileEntry>> {
        self.collect(&format!("SELECT {FILE_COLUMNS} FROM files f WHERE NOT f.excluded"), [], |row| {
            let file = read_file(row)?;
            Ok(FileEntry {
                id: file.id,
                path: file.path,
                kind: file.kind,
                is_read: file.hash.is_some(),
                note_type: file.note_type.map(|text| text.to_lowercase()),
                category: file.category.map(|text| text.to_lowercase()),
                created: file.created,
                created_source: file.time_sources.created,
                updated: file.updated,
                inactive: file.inactive,
            })
        })
    }

    /// Returns the tags of every file.
    pub fn all_tags(&self) -> Result<HashMap<FileId, Vec<String>>> {
        let mut found: HashMap<FileId, Vec<String>> = HashMap::new();
        let rows: Vec<(FileId, String)> =
            self.collect("SELECT file, name FROM tags", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (file, name) in rows {
            found.entry(file).or_default().push(name);
        }
        Ok(found)
    }

    /// Lists all tags, each with the number of visible notes that have it.
    pub fn tags(&self) -> Result<Vec<(String, usize)>> {
        self.collect(
            "SELECT min(t.name), count(*) FROM tags t JOIN files f ON f.id = t.file WHERE NOT f.excluded GROUP BY t.key ORDER BY count(*) DESC, t.key",
            [],
            |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as usize)),
        )
    }

    /// Lists the files that match a filter, ordered by path.
    pub fn select(&self, filter: &Filter) -> Result<Vec<FileRow>> {
        let (condition, values) = filter.condition();
        self.collect(
            &format!("SELECT {FILE_COLUMNS} FROM files f WHERE {condition} ORDER BY f.path"),
            params_from_iter(values),
            read_file,
        )
    }

    /// Lists the files that are in any of the given inactive states.
    pub fn inactive_files(&self, states: Inactive) -> Result<Vec<FileId>> {
        self.collect(
            "SELECT id FROM files WHERE put_away <> 0 AND (put_away & ?1) <> 0",
            [states.code()],
            |row| row.get(0),
        )
    }

    /// Lists the ids and paths of the files that match a filter.
    pub fn select_ids(&self, filter: &Filter) -> Result<Vec<(FileId, String)>> {
        let (condition, values) = filter.condition();
        self.collect(
            &format!("SELECT f.id, f.path FROM files f WHERE {condition}"),
            params_from_iter(values),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Returns the [sections](sidenote_markdown::note::Note::sections) that a note had when it was indexed. A file that is not a
    /// note, or was not read, has none.
    pub fn sections_of(&self, id: FileId) -> Result<Option<Vec<usize>>> {
        let packed: Option<Vec<u8>> = self
            .db
            .prepare_cached("SELECT sections FROM details WHERE file = ?1")
            .and_then(|mut select| select.query_row([id], |row| row.get(0)).optional())
            .map_err(sql("read"))?;
        Ok(packed.and_then(|packed| unpack_ascending(&packed)))
    }

    /// Lists at most `limit` searchable files, the most recently changed first.
    pub fn newest_first(&self, limit: Option<usize>) -> Result<Vec<FileId>> {
        self.collect(
            "SELECT id FROM files WHERE (kind < 2 OR hash IS NOT NULL) AND NOT excluded ORDER BY mtime DESC, id LIMIT ?1",
            [limit.map_or(-1, |limit| limit as i64)],
            |row| row.get(0),
        )
    }
}

/// The columns of an [`IndexedFile`], as [`read_indexed_file`] reads them.
const INDEXED_FILE_COLUMNS: &str = "id, path, size, mtime, ctime, racy, excluded";
/// The columns of a [`FileRow`], as [`read_file`] reads them.
const FILE_COLUMNS: &str = "f.id, f.path, f.kind, f.size, f.hash, f.excluded, f.note_id, f.title, f.created, f.updated, f.category, f.type, f.mtime, f.put_away, f.times";

fn read_path(row: &Row<'_>, column: usize) -> rusqlite::Result<NotePath> {
    let text = row.get_ref(column)?.as_str()?;
    NotePath::from_disk(text).ok_or_else(|| {
        let why = format!("{text:?} is not a path in a vault");
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, why.into())
    })
}

fn read_indexed_file<'row>(row: &'row Row<'_>) -> rusqlite::Result<IndexedFile<&'row str>> {
    Ok(IndexedFile {
        id: row.get(0)?,
        path: row.get_ref(1)?.as_str()?,
        stat: Stat { size: row.get::<_, i64>(2)? as u64, mtime_ns: row.get(3)?, ctime_ns: row.get(4)? },
        racy: row.get(5)?,
        excluded: row.get(6)?,
    })
}

/// Reads a time of a note, which is that of its file unless the catalog has another.
fn read_time(
    row: &Row<'_>,
    column: usize,
    is_local: bool,
    of_file: Timestamp,
) -> rusqlite::Result<Timestamp> {
    Ok(match row.get::<_, Option<i64>>(column)? {
        None => of_file,
        Some(wall) if is_local => StatedTime::from_wall_millis(wall).instant(),
        Some(millis) => Timestamp::from_millis(millis),
    })
}

fn read_file(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    let path = read_path(row, 1)?;
    let changed = Timestamp::from_nanos(row.get(12)?);
    let time_sources = TimeSources::from_code(row.get(14)?);
    Ok(FileRow {
        id: row.get(0)?,
        kind: FileKind::from_code(row.get(2)?),
        size: row.get::<_, i64>(3)? as u64,
        hash: row.get(4)?,
        excluded: row.get(5)?,
        note_id: row.get::<_, Option<String>>(6)?.unwrap_or_else(|| path_id(&path)),
        title: row.get::<_, Option<String>>(7)?.unwrap_or_else(|| path.stem().to_owned()),
        created: read_time(row, 8, time_sources.is_created_local, changed)?,
        updated: read_time(row, 9, time_sources.is_updated_local, changed)?,
        time_sources,
        category: row.get(10)?,
        note_type: row.get(11)?,
        inactive: Inactive::from_code(row.get(13)?),
        unindexed: None,
        written: changed,
        path,
    })
}
