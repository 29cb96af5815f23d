//! Owns the catalog: one row per file with its fields, links and passages. The only SQLite user.
//!
//! The catalog's generation is the commit point of the whole index: what it does not list does not exist.

mod check;
mod filter;
mod inserts;
mod links;
mod names;
mod packed;
mod paths;
mod properties;
mod rows;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;

use percent_encoding::NON_ALPHANUMERIC;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params, params_from_iter};

use uuid::Uuid;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::index::file_table::Entry;
use crate::text::path::{NotePath, is_segment, key};

pub use filter::Filter;
use inserts::Inserts;
use packed::{pack_ascending, unpack_ascending};
use rows::own_id;
pub use rows::{
    Counts, Details, FileId, FileKind, FileRow, Hash, Inside, Known, LinkGroup, LinkRow, Place, PutAway,
    Record, Stat, path_id, path_id_at,
};

/// Raised whenever tables change shape or parsing changes meaning; an older index is rebuilt.
pub const SCHEMA_VERSION: i64 = 8;

const SCHEMA: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL, kind INTEGER NOT NULL,
  size INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, racy INTEGER NOT NULL, hash BLOB,
  excluded INTEGER NOT NULL, note_id TEXT, title TEXT, created INTEGER, updated INTEGER, category TEXT, type TEXT,
  name_key TEXT NOT NULL, put_away INTEGER NOT NULL);
CREATE TABLE details (file INTEGER PRIMARY KEY, properties TEXT NOT NULL, problems TEXT, passages BLOB NOT NULL, sections BLOB NOT NULL);
CREATE TABLE property_names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE names (key TEXT NOT NULL, what INTEGER NOT NULL, file INTEGER NOT NULL, spelling TEXT);
CREATE TABLE tags (key TEXT, file INTEGER, name TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (key, file)) WITHOUT ROWID;
CREATE TABLE linkpaths (id INTEGER PRIMARY KEY, linkpath TEXT NOT NULL, exact INTEGER NOT NULL, name_key TEXT NOT NULL);
CREATE TABLE links (
  source INTEGER, linkpath INTEGER, target INTEGER, count INTEGER NOT NULL, places BLOB NOT NULL,
  PRIMARY KEY (source, linkpath)) WITHOUT ROWID;
CREATE TABLE passages (key INTEGER, file INTEGER, ord INTEGER NOT NULL, PRIMARY KEY (key, file)) WITHOUT ROWID;
CREATE TABLE intents (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE UNIQUE INDEX files_path ON files (path);
";

/// Bytes of a page.
const PAGE: u32 = 16_384;

/// Secondary indexes: (name, table and columns). They are built after the first load, not during it.
const INDEXES: &[(&str, &str)] = &[
    ("files_name", "files (name_key)"),
    ("names_key", "names (key)"),
    ("names_file", "names (file)"),
    ("tags_file", "tags (file)"),
    ("linkpaths_name", "linkpaths (name_key)"),
    // A link that means nothing is looked for by its text, one that means a file by that file.
    ("links_dead", "links (linkpath) WHERE target IS NULL"),
    ("files_put_away", "files (put_away) WHERE put_away <> 0"),
    ("links_target", "links (target) WHERE target IS NOT NULL"),
];

/// Kilobytes of pages that are held in memory, and in bulk.
const ROOM: u32 = 2_048;
const ROOM_FOR_BULK: u32 = 32_768;

/// So many statements stay prepared: all that a search or a sync asks again and again.
const STATEMENTS: usize = 64;

const NAME_TITLE: i64 = 0;
const NAME_ALIAS: i64 = 1;
const NAME_ID: i64 = 2;

static INTO_PASSAGES: Inserts<3> = Inserts::new("INSERT OR IGNORE INTO passages VALUES");

/// An open catalog.
#[derive(Debug)]
pub struct Catalog {
    db: Connection,
    /// Numbers of link texts met in this batch, so that each is looked up once; those of exact links stand second.
    linkpaths: RefCell<[hashbrown::HashMap<String, i64>; 2]>,
    /// Numbers of property names met in this batch.
    property_names: RefCell<hashbrown::HashMap<String, i64>>,
    /// Whether a load is under way, without secondary indexes.
    loading: Cell<bool>,
}

fn sql(doing: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |error| {
        // A value of another type or form than the one that was written is damage as well.
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
        let kind = match error.sqlite_error_code() {
            _ if damaged => ErrorKind::Corrupt,
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                ErrorKind::Conflict
            }
            Some(
                rusqlite::ErrorCode::DiskFull
                | rusqlite::ErrorCode::SystemIoFailure
                | rusqlite::ErrorCode::CannotOpen,
            ) => ErrorKind::Io,
            _ => ErrorKind::Internal,
        };
        Error::new(kind, format!("cannot {doing} the catalog")).with_source(error)
    }
}

/// Says whether a log with something in it lies beside a catalog.
fn has_log(path: &Path) -> bool {
    path.with_file_name("catalog.db-wal").metadata().is_ok_and(|log| log.len() > 0)
}

/// Opens a catalog that nobody writes to, without a file beside it.
fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    // A path need not be UTF-8: its bytes are what the address encodes.
    let name = percent_encoding::percent_encode(path.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)
}

impl Catalog {
    /// Opens the catalog for writing, making it where it is missing.
    ///
    /// # Errors
    /// `Corrupt` where the file is damaged or of another version.
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
        let catalog = Self::of(db);
        catalog.make_room(false)?;
        if tables == 0 {
            catalog.db.execute_batch(&format!("BEGIN; {SCHEMA}")).map_err(sql("create"))?;
            catalog.build_indexes()?;
            catalog.set_meta("schema", SCHEMA_VERSION)?;
            catalog.set_meta("generation", 0)?;
            catalog.commit()?;
        }
        catalog.check_version()
    }

    /// Opens the catalog for reading beside a writer.
    ///
    /// # Errors
    /// `NotFound` where there is none yet, `Corrupt` where it is damaged.
    pub fn open_read(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Err(Error::not_found(format!("there is no index at {}", path.display()))
                .with_hint("run: sidenote index"));
        }
        check::refuse_irregular(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)
            .or_else(|_| Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY))
            .map_err(sql("open"))?;
        match Self::opened_to_read(db, path) {
            // SQLite writes beside what it reads; a full disk, for instance, has no room for that. Without a log the file
            // is all there is.
            Err(error) if error.kind() == ErrorKind::Io && !has_log(path) => {
                let db = open_immutable(path).map_err(sql("open"))?;
                Self::opened_to_read(db, path).map_err(|second| {
                    tracing::debug!("the catalog cannot be read without a log either: {second}");
                    error
                })
            }
            opened => opened,
        }
    }

    fn opened_to_read(db: Connection, path: &Path) -> Result<Self> {
        check::harden(&db)?;
        db.execute_batch("PRAGMA query_only = 1; PRAGMA busy_timeout = 5000;").map_err(sql("open"))?;
        let catalog = Self::of(db);
        catalog.make_room(false)?;
        let tables: i64 = catalog
            .db
            .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
            .map_err(sql("read"))?;
        if tables == 0 {
            return Err(Error::not_found(format!("the index at {} is being made", path.display()))
                .with_hint("try again when the other sidenote is done"));
        }
        catalog.check_version()
    }

    fn of(db: Connection) -> Self {
        db.set_prepared_statement_cache_capacity(STATEMENTS);
        Self {
            db,
            linkpaths: RefCell::default(),
            property_names: RefCell::default(),
            loading: Cell::new(false),
        }
    }

    fn check_version(self) -> Result<Self> {
        check::schema(&self.db)?;
        let version = self.meta("schema")?;
        if version != Some(SCHEMA_VERSION) {
            return Err(Error::corrupt("the catalog was written by another version of sidenote"));
        }
        Ok(self)
    }

    /// Reads a number kept under `name`.
    pub fn meta(&self, name: &str) -> Result<Option<i64>> {
        self.db
            .query_row("SELECT value FROM meta WHERE key = ?1", [name], |row| row.get(0))
            .optional()
            .map_err(sql("read"))
    }

    /// Keeps a number under `name`.
    pub fn set_meta(&self, name: &str, value: i64) -> Result<()> {
        self.db
            .execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", params![name, value])
            .map(drop)
            .map_err(sql("write"))
    }

    /// Gives the generation: the number of batches committed so far.
    pub fn generation(&self) -> Result<i64> {
        Ok(self.meta("generation")?.unwrap_or(0))
    }

    /// Sets how many pages are held in memory: many for a batch of very many files, few for all else.
    pub fn make_room(&self, bulk: bool) -> Result<()> {
        let kilobytes = if bulk { ROOM_FOR_BULK } else { ROOM };
        self.db.execute_batch(&format!("PRAGMA cache_size = -{kilobytes}")).map_err(sql("open"))
    }

    /// Starts a batch.
    pub fn begin(&self) -> Result<()> {
        self.linkpaths.borrow_mut().iter_mut().for_each(hashbrown::HashMap::clear);
        self.property_names.borrow_mut().clear();
        self.db.execute_batch("BEGIN IMMEDIATE").map_err(sql("write"))
    }

    /// Ends a batch or a read, keeping what was written.
    pub fn commit(&self) -> Result<()> {
        self.db.execute_batch("COMMIT").map_err(sql("commit"))
    }

    /// Reads many things as of one moment, which also spares a lock for each.
    ///
    /// # Errors
    /// Those of `read`; `Corrupt` where the catalog cannot be read.
    pub fn at_once<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.db.is_autocommit() {
            return read();
        }
        self.db.execute_batch("BEGIN").map_err(sql("read"))?;
        let read = read();
        self.db.execute_batch("COMMIT").map_err(sql("read"))?;
        read
    }

    /// Gives up a batch.
    pub fn rollback(&self) -> Result<()> {
        if self.db.is_autocommit() {
            return Ok(());
        }
        self.db.execute_batch("ROLLBACK").map_err(sql("roll back"))
    }

    /// Moves what it can from the write-ahead log of the catalog at `path` into its place, beside readers and a writer.
    ///
    /// # Errors
    /// `Io` where the disk refuses.
    pub fn empty_log(path: &Path) -> Result<()> {
        // A catalog that is gone must not be made up.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).map_err(sql("open"))?;
        db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(sql("checkpoint"))
    }

    /// Moves everything from the write-ahead log into the main file; `false` where a reader held it up.
    pub fn checkpoint(&self) -> Result<bool> {
        let busy: i64 = self
            .db
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(sql("checkpoint"))?;
        Ok(busy == 0)
    }

    /// Makes an empty catalog at `path` for a load of files, which takes over what is known beside files. Nobody else reads
    /// it yet, so it has no log and waits for no disk; secondary indexes come with [`Catalog::build_indexes`], and
    /// [`Catalog::settle`] makes it like any other. Until then nothing can be taken back, and what a crash leaves is void.
    pub fn stage(&self, path: &Path) -> Result<Self> {
        let staged = Self::of(Connection::open(path).map_err(sql("create"))?);
        let begin = format!(
            "PRAGMA page_size = {PAGE}; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF;
             PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; BEGIN; {SCHEMA}"
        );
        staged.db.execute_batch(&begin).map_err(sql("create"))?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let kept: Vec<(String, i64)> = self.collect("SELECT key, value FROM meta", [], read)?;
        kept.iter().try_for_each(|(name, value)| staged.set_meta(name, *value))?;
        staged.commit()?;
        staged.loading.set(true);
        Ok(staged)
    }

    /// Ends what [`Catalog::stage`] began: the file is closed, and whoever opens it finds a catalog.
    pub fn settle(self) -> Result<()> {
        self.db
            .execute_batch("PRAGMA locking_mode = NORMAL; PRAGMA journal_mode = WAL")
            .map_err(sql("close"))?;
        self.db.close().map_err(|(_, error)| sql("close")(error))
    }

    /// Builds the secondary indexes after the first load.
    pub fn build_indexes(&self) -> Result<()> {
        self.loading.set(false);
        for (name, columns) in INDEXES {
            self.db
                .execute_batch(&format!("CREATE INDEX IF NOT EXISTS {name} ON {columns}"))
                .map_err(sql("write"))?;
        }
        Ok(())
    }

    /// Writes down which paths the next BM25 commit touches, so that a crash between the two commits can be mended.
    pub fn set_intents<'a>(&self, paths: impl Iterator<Item = &'a str>) -> Result<()> {
        self.begin()?;
        let mut insert =
            self.db.prepare_cached("INSERT OR IGNORE INTO intents VALUES (?1)").map_err(sql("write"))?;
        for path in paths {
            insert.execute([path]).map_err(sql("write"))?;
        }
        self.commit()
    }

    /// Reads the paths of a batch that was not finished.
    pub fn intents(&self) -> Result<Vec<String>> {
        self.collect("SELECT path FROM intents", [], |row| row.get(0))
    }

    /// Forgets the intents, as part of the batch that fulfils them.
    pub fn clear_intents(&self) -> Result<()> {
        self.db.execute_batch("DELETE FROM intents").map_err(sql("write"))
    }

    fn collect<T, P: rusqlite::Params>(
        &self,
        query: &str,
        values: P,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.db.prepare_cached(query).map_err(sql("read"))?;
        let rows = statement.query_map(values, read).map_err(sql("read"))?;
        rows.collect::<rusqlite::Result<Vec<T>>>().map_err(sql("read"))
    }

    /// Counts the files of every kind.
    pub fn files(&self) -> Result<usize> {
        let count: i64 =
            self.db.query_row("SELECT count(*) FROM files", [], |row| row.get(0)).map_err(sql("read"))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Visits what is known directly in a folder, in the order of paths: its files, and once each of the folders in it,
    /// whose files it jumps over.
    ///
    /// # Errors
    /// Those of `visit`; `Corrupt` where a path is none, or paths do not ascend, so that the walk always ends.
    pub fn each_in(&self, folder: &str, mut visit: impl FnMut(Inside<'_>) -> Result<()>) -> Result<()> {
        let select = format!("SELECT {KNOWN_COLUMNS} FROM files WHERE path >= ?1 ORDER BY path");
        let mut statement = self.db.prepare_cached(&select).map_err(sql("read"))?;
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let (mut from, mut last) = (start.clone(), String::new());
        loop {
            let mut rows = statement.query([&from]).map_err(sql("read"))?;
            from = loop {
                let Some(row) = rows.next().map_err(sql("read"))? else { return Ok(()) };
                let known = read_known(row).map_err(sql("read"))?;
                let Some(name) = known.path.strip_prefix(&start) else { return Ok(()) };
                let (inner, rest) = name.split_once('/').unwrap_or((name, "rest"));
                if known.path <= last.as_str() || !is_segment(inner) || rest.is_empty() {
                    return Err(rows::no_path(known.path));
                }
                last.clear();
                last.push_str(known.path);
                if inner.len() < name.len() {
                    let inner = known.path.get(..start.len() + inner.len()).unwrap_or_default();
                    visit(Inside::Folder(inner))?;
                    // What lies in it begins with its name and a slash, and `0` is what comes after that.
                    break format!("{inner}0");
                }
                visit(Inside::File(known))?;
            };
        }
    }

    /// Looks up what is known of one path.
    pub fn known_at(&self, path: &str) -> Result<Option<Known>> {
        let select = format!("SELECT {KNOWN_COLUMNS} FROM files WHERE path = ?1");
        let known = self.collect(&select, [path], |row| read_known(row).map(Known::owned))?.pop();
        known.transpose()
    }

    /// Gives the highest file number so far.
    pub fn last_id(&self) -> Result<FileId> {
        self.db.query_row("SELECT ifnull(max(id), 0) FROM files", [], |row| row.get(0)).map_err(sql("read"))
    }

    /// Gives the hash that a file had when it was indexed.
    pub fn hash_of(&self, id: FileId) -> Result<Option<Hash>> {
        self.db
            .query_row("SELECT hash FROM files WHERE id = ?1", [id], |row| row.get(0))
            .optional()
            .map(Option::flatten)
            .map_err(sql("read"))
    }

    /// Makes the next sync that reaches a file read and write it, whatever its stat says.
    pub fn distrust_all(&self) -> Result<()> {
        self.run("UPDATE files SET racy = 1, hash = NULL", &[])
    }

    /// Updates the stat of a file whose bytes turned out to be the same.
    pub fn touch(&self, id: FileId, stat: &Stat, racy: bool) -> Result<()> {
        self.db
            .prepare_cached("UPDATE files SET size = ?2, mtime = ?3, ctime = ?4, racy = ?5 WHERE id = ?1")
            .and_then(|mut update| {
                update.execute(params![id, stat.size as i64, stat.mtime_ns, stat.ctime_ns, racy])
            })
            .map(drop)
            .map_err(sql("write"))
    }

    /// Removes all that is known of a file; links of others to it lose their target.
    pub fn remove(&self, id: FileId) -> Result<()> {
        self.remove_details(id)?;
        self.execute("UPDATE links SET target = NULL WHERE target = ?1", id)?;
        self.execute("DELETE FROM files WHERE id = ?1", id)
    }

    fn remove_details(&self, id: FileId) -> Result<()> {
        for passage in self.passages_of(id)? {
            self.run("DELETE FROM passages WHERE key = ?1 AND file = ?2", params![passage, id])?;
        }
        for statement in [
            "DELETE FROM details WHERE file = ?1",
            "DELETE FROM names WHERE file = ?1",
            "DELETE FROM tags WHERE file = ?1",
            "DELETE FROM links WHERE source = ?1",
        ] {
            self.execute(statement, id)?;
        }
        Ok(())
    }

    fn execute(&self, statement: &str, id: FileId) -> Result<()> {
        self.db
            .prepare_cached(statement)
            .and_then(|mut prepared| prepared.execute([id]))
            .map(drop)
            .map_err(sql("write"))
    }

    /// Writes a file's row and details, in place of what was known of that number. `fresh` files have nothing to
    /// replace; their passages are left to [`Catalog::add_passages`], which takes them all in key order.
    pub fn put(&self, record: &Record, fresh: bool) -> Result<()> {
        let row = &record.row;
        let own_id = own_id(row);
        let changed = Timestamp::from_nanos(record.stat.mtime_ns).millis();
        if !fresh {
            self.remove_details(row.id)?;
        }
        // What may have to replace a row costs more, even where there is none. A new file may stand where one stood that
        // moves in the same batch.
        let insert = if self.loading.get() {
            "INSERT INTO files VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)"
        } else {
            "INSERT OR REPLACE INTO files VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)"
        };
        self.run(
            insert,
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
                Some(row.created.millis()).filter(|time| *time != changed),
                Some(row.updated.millis()).filter(|time| *time != changed),
                row.category,
                row.note_type,
                key(row.path.name()),
                row.put_away.code(),
            ],
        )?;
        if row.kind == FileKind::Attachment {
            return Ok(());
        }
        let passages: Vec<u8> = record.passages.iter().flat_map(|passage| passage.to_le_bytes()).collect();
        let properties = self.pack_properties(&record.properties)?;
        self.run(
            "INSERT INTO details VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                row.id,
                properties,
                Some(&record.problems).filter(|list| *list != "[]"),
                passages,
                pack_ascending(&record.sections)
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
        self.put_links(row.id, &record.links)
    }

    fn run(&self, statement: &str, values: &[&dyn rusqlite::ToSql]) -> Result<()> {
        self.db
            .prepare_cached(statement)
            .and_then(|mut prepared| prepared.execute(values))
            .map(drop)
            .map_err(sql("write"))
    }

    /// Adds passages, given as (key, file, ordinal); sorted input makes it one pass over the tree.
    pub fn add_passages(&self, passages: &[(i64, FileId, usize)]) -> Result<()> {
        for passages in passages.chunks(1024) {
            let row = |&(passage, file, ord): &(i64, FileId, usize)| [passage, file, ord as i64];
            INTO_PASSAGES.insert(&self.db, &passages.iter().map(row).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Gives the rows of these files, in the order asked for; missing ones are left out.
    pub fn rows(&self, ids: &[FileId]) -> Result<Vec<FileRow>> {
        let mut rows = Vec::with_capacity(ids.len());
        let select = format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.id = ?1");
        let mut statement = self.db.prepare_cached(&select).map_err(sql("read"))?;
        for id in ids {
            rows.extend(statement.query_row([id], read_file).optional().map_err(sql("read"))?);
        }
        Ok(rows)
    }

    /// Gives the row of one path.
    pub fn row_at(&self, path: &str) -> Result<Option<FileRow>> {
        Ok(self
            .collect(&format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.path = ?1"), [path], read_file)?
            .pop())
    }

    /// Lists the files behind a path that settings do not hide, ordered by path.
    pub fn files_after(&self, after: &str, limit: usize) -> Result<Vec<FileRow>> {
        self.collect(
            &format!(
                "SELECT {FILE_COLUMNS} FROM files f WHERE f.path > ?1 AND NOT f.excluded ORDER BY f.path LIMIT ?2"
            ),
            params![after, limit as i64],
            read_file,
        )
    }

    /// Lists the notes that answer to a name as id, file name, title or alias: those of the best kind of match only.
    pub fn named(&self, name: &str) -> Result<Vec<FileRow>> {
        let wanted = key(name);
        let by_name = |what: i64| {
            self.collect(
                &format!("SELECT DISTINCT {FILE_COLUMNS} FROM names n JOIN files f ON f.id = n.file WHERE n.key = ?1 AND n.what = ?2 ORDER BY f.path"),
                params![wanted, what],
                read_file,
            )
        };
        let mut rows = self.with_id(name)?;
        if rows.is_empty() {
            rows = self.collect(
                &format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.name_key IN (?1 || '.md', ?1 || '.canvas') ORDER BY f.path"),
                [&wanted],
                read_file,
            )?;
        }
        for what in [NAME_TITLE, NAME_ALIAS] {
            if rows.is_empty() {
                rows = by_name(what)?;
            }
        }
        Ok(rows)
    }

    /// Lists the notes that have this id, their own or that of their path; what settings hide is left out.
    pub fn with_id(&self, id: &str) -> Result<Vec<FileRow>> {
        let wanted = key(id);
        let mut rows = self.collect(
            &format!("SELECT DISTINCT {FILE_COLUMNS} FROM names n JOIN files f ON f.id = n.file WHERE n.key = ?1 AND n.what = ?2 ORDER BY f.path"),
            params![wanted, NAME_ID],
            read_file,
        )?;
        if rows.is_empty() && Uuid::parse_str(id).is_ok() {
            rows = self.with_path_id(&wanted)?;
        }
        rows.retain(|row| row.kind == FileKind::Note && !row.excluded);
        Ok(rows)
    }

    /// Finds the note whose path makes this id, whatever id it says it has.
    pub fn with_id_of_path(&self, id: &str) -> Result<Option<FileRow>> {
        let paths = self.paths()?;
        let found = paths.iter().find(|(path, _)| path_id(path) == id);
        let row = found.map(|(path, _)| self.row_at(path.as_str())).transpose()?.flatten();
        Ok(row.filter(|row| row.kind == FileKind::Note && !row.excluded))
    }

    /// Finds the note without an id of its own whose path makes this one.
    fn with_path_id(&self, id: &str) -> Result<Vec<FileRow>> {
        let paths = self.paths()?;
        let found = paths.iter().find(|(path, _)| path_id(path) == id);
        let row = found.map(|(path, _)| self.row_at(path.as_str())).transpose()?.flatten();
        Ok(row.filter(|row| row.note_id == id).into_iter().collect())
    }

    /// Lists the notes that a link text without its subpath could mean from the vault's root: by path suffix.
    pub fn resolving(&self, linkpath: &str) -> Result<Vec<FileRow>> {
        let mut names = crate::text::resolve::FileNames::default();
        let table = self.paths_named(&crate::text::resolve::name_keys(linkpath))?;
        table.iter().for_each(|(path, _)| names.insert(path));
        let Some(root) = NotePath::from_disk("root.md") else {
            return Ok(Vec::new());
        };
        let found = names.resolve(linkpath, &root).map(|resolved| resolved.path.as_str().to_owned());
        match found {
            Some(path) => Ok(self.row_at(&path)?.into_iter().collect()),
            None => Ok(Vec::new()),
        }
    }

    /// Lists file names, titles and aliases that hold a text, for suggestions; the shortest first.
    pub fn names_like(&self, part: &str, limit: usize) -> Result<Vec<String>> {
        self.collect(
            "SELECT DISTINCT shown FROM (
               SELECT replace(f.path, rtrim(f.path, replace(f.path, '/', '')), '') AS shown FROM files f WHERE f.kind = 0 AND instr(f.name_key, ?1)
               UNION SELECT ifnull(n.spelling, f.title) FROM names n JOIN files f ON f.id = n.file WHERE n.what < 2 AND instr(n.key, ?1))
             WHERE shown IS NOT NULL ORDER BY length(shown), shown LIMIT ?2",
            params![key(part), limit as i64],
            |row| Ok(row.get::<_, String>(0)?.trim_end_matches(".md").to_owned()),
        )
    }

    /// Gives a note's tags.
    pub fn tags_of(&self, id: FileId) -> Result<Vec<String>> {
        self.collect("SELECT name FROM tags WHERE file = ?1 ORDER BY key", [id], |row| row.get(0))
    }

    /// Lists the files with a tag, by its key, and with those below it where `below` says so.
    pub fn tagged(&self, tag: &str, below: bool) -> Result<Vec<FileId>> {
        let deeper = if below { " OR (key > ?1 || '/' AND key < ?1 || '0')" } else { "" };
        self.collect(&format!("SELECT file FROM tags WHERE key = ?1{deeper}"), [tag], |row| row.get(0))
    }

    /// Lists what is known of every visible file without reading it.
    pub fn roster(&self) -> Result<Vec<Entry>> {
        self.collect(&format!("SELECT {FILE_COLUMNS} FROM files f WHERE NOT f.excluded"), [], |row| {
            let file = read_file(row)?;
            Ok(Entry {
                id: file.id,
                path: file.path,
                kind: file.kind,
                note_type: file.note_type.map(|text| text.to_lowercase()),
                category: file.category.map(|text| text.to_lowercase()),
                created: file.created,
                updated: file.updated,
                put_away: file.put_away,
            })
        })
    }

    /// Gives the tags of every file.
    pub fn all_tags(&self) -> Result<HashMap<FileId, Vec<String>>> {
        let mut found: HashMap<FileId, Vec<String>> = HashMap::new();
        let rows: Vec<(FileId, String)> =
            self.collect("SELECT file, name FROM tags", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (file, name) in rows {
            found.entry(file).or_default().push(name);
        }
        Ok(found)
    }

    /// Lists tags with the number of visible notes that carry each.
    pub fn tags(&self) -> Result<Vec<(String, usize)>> {
        self.collect(
            "SELECT min(t.name), count(*) FROM tags t JOIN files f ON f.id = t.file WHERE NOT f.excluded GROUP BY t.key ORDER BY count(*) DESC, t.key",
            [],
            |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as usize)),
        )
    }

    /// Lists the files that pass a filter, ordered by path.
    pub fn select(&self, filter: &Filter) -> Result<Vec<FileRow>> {
        let (condition, values) = filter.condition();
        self.collect(
            &format!("SELECT {FILE_COLUMNS} FROM files f WHERE {condition} ORDER BY f.path"),
            params_from_iter(values),
            read_file,
        )
    }

    /// Lists the files that are put away in one of these ways.
    pub fn put_away(&self, ways: PutAway) -> Result<Vec<FileId>> {
        self.collect(
            "SELECT id FROM files WHERE put_away <> 0 AND (put_away & ?1) <> 0",
            [ways.code()],
            |row| row.get(0),
        )
    }

    /// Lists the numbers and paths of the files that pass a filter.
    pub fn select_ids(&self, filter: &Filter) -> Result<Vec<(FileId, String)>> {
        let (condition, values) = filter.condition();
        self.collect(
            &format!("SELECT f.id, f.path FROM files f WHERE {condition}"),
            params_from_iter(values),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Says which files hold each of these passages: (key, file, ordinal).
    pub fn passages_at(&self, keys: &[i64]) -> Result<Vec<(i64, FileId, usize)>> {
        let mut found = Vec::with_capacity(keys.len());
        for passage in keys {
            found.extend(self.collect(
                "SELECT key, file, ord FROM passages WHERE key = ?1",
                [passage],
                |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? as usize)),
            )?);
        }
        Ok(found)
    }

    /// Gives the keys of the passages of one file, in order.
    pub fn passages_of(&self, id: FileId) -> Result<Vec<i64>> {
        let packed: Option<Vec<u8>> = self
            .db
            .prepare_cached("SELECT passages FROM details WHERE file = ?1")
            .and_then(|mut select| select.query_row([id], |row| row.get(0)).optional())
            .map_err(sql("read"))?;
        let packed = packed.unwrap_or_default();
        Ok(packed
            .chunks_exact(8)
            .map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap_or_default()))
            .collect())
    }

    /// Gives what [`Note::sections`](crate::text::note::Note::sections) gave for a note when it was indexed. What is no
    /// note, or was not read, has none.
    pub fn sections_of(&self, id: FileId) -> Result<Option<Vec<usize>>> {
        let packed: Option<Vec<u8>> = self
            .db
            .prepare_cached("SELECT sections FROM details WHERE file = ?1")
            .and_then(|mut select| select.query_row([id], |row| row.get(0)).optional())
            .map_err(sql("read"))?;
        Ok(packed.and_then(|packed| unpack_ascending(&packed)))
    }

    /// Visits every distinct passage key, in order.
    pub fn each_passage(&self, mut visit: impl FnMut(i64, FileId)) -> Result<()> {
        let mut statement = self.db.prepare_cached("SELECT key, file FROM passages").map_err(sql("read"))?;
        let mut rows = statement.query([]).map_err(sql("read"))?;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            visit(row.get(0).map_err(sql("read"))?, row.get(1).map_err(sql("read"))?);
        }
        Ok(())
    }

    /// Lists numbers of searchable files, those changed last first.
    pub fn newest_first(&self, most: Option<usize>) -> Result<Vec<FileId>> {
        self.collect(
            "SELECT id FROM files WHERE kind < 2 AND NOT excluded ORDER BY mtime DESC, id LIMIT ?1",
            [most.map_or(-1, |most| most as i64)],
            |row| row.get(0),
        )
    }

    /// Counts files by kind: notes, canvases, attachments; and passages.
    pub fn counts(&self) -> Result<Counts> {
        let by_kind: HashMap<i64, i64> = self
            .collect("SELECT kind, count(*) FROM files GROUP BY kind", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .into_iter()
            .collect();
        let count = |kind: FileKind| by_kind.get(&kind.code()).copied().unwrap_or(0) as usize;
        let one = |query: &str| -> Result<usize> {
            self.db
                .query_row(query, [], |row| row.get::<_, i64>(0))
                .map(|number| number as usize)
                .map_err(sql("read"))
        };
        Ok(Counts {
            notes: count(FileKind::Note),
            canvases: count(FileKind::Canvas),
            attachments: count(FileKind::Attachment),
            excluded: one("SELECT count(*) FROM files WHERE excluded")?,
            passages: one("SELECT ifnull(sum(length(passages)), 0) / 8 FROM details")?,
            links: one("SELECT ifnull(sum(count), 0) FROM links")?,
            unresolved: one("SELECT ifnull(sum(count), 0) FROM links WHERE target IS NULL")?,
        })
    }
}

const KNOWN_COLUMNS: &str = "id, path, size, mtime, ctime, racy, excluded";
const FILE_COLUMNS: &str = "f.id, f.path, f.kind, f.size, f.hash, f.excluded, f.note_id, f.title, f.created, f.updated, f.category, f.type, f.mtime, f.put_away";
fn read_path(row: &Row<'_>, column: usize) -> rusqlite::Result<NotePath> {
    let text = row.get_ref(column)?.as_str()?;
    NotePath::from_disk(text).ok_or_else(|| {
        let why = format!("{text:?} is not a path in a vault");
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, why.into())
    })
}

fn read_known<'row>(row: &'row Row<'_>) -> rusqlite::Result<Known<&'row str>> {
    Ok(Known {
        id: row.get(0)?,
        path: row.get_ref(1)?.as_str()?,
        stat: Stat { size: row.get::<_, i64>(2)? as u64, mtime_ns: row.get(3)?, ctime_ns: row.get(4)? },
        racy: row.get(5)?,
        excluded: row.get(6)?,
    })
}

fn read_file(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    let path = read_path(row, 1)?;
    let changed = Timestamp::from_nanos(row.get(12)?);
    let time = |column| -> rusqlite::Result<Timestamp> {
        Ok(row.get::<_, Option<i64>>(column)?.map_or(changed, Timestamp::from_millis))
    };
    Ok(FileRow {
        id: row.get(0)?,
        kind: FileKind::from_code(row.get(2)?),
        size: row.get::<_, i64>(3)? as u64,
        hash: row.get(4)?,
        excluded: row.get(5)?,
        note_id: row.get::<_, Option<String>>(6)?.unwrap_or_else(|| path_id(&path)),
        title: row.get::<_, Option<String>>(7)?.unwrap_or_else(|| path.stem().to_owned()),
        created: time(8)?,
        updated: time(9)?,
        category: row.get(10)?,
        note_type: row.get(11)?,
        put_away: PutAway::from_code(row.get(13)?),
        unindexed: None,
        written: changed,
        path,
    })
}
