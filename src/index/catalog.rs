//! Owns the catalog: one row per file with its fields, links and passages. The only SQLite user.
//!
//! The catalog's generation is the commit point of the whole index: what it does not list does not exist.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params, params_from_iter, types::Value as Sql};

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::text::path::{NotePath, key};

/// Raised whenever tables change shape or parsing changes meaning; an older index is rebuilt.
pub const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL, kind INTEGER NOT NULL,
  size INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, racy INTEGER NOT NULL, hash BLOB,
  excluded INTEGER NOT NULL, note_id TEXT NOT NULL, title TEXT NOT NULL, created INTEGER NOT NULL,
  updated INTEGER NOT NULL, category TEXT, type TEXT, passages INTEGER NOT NULL, name_key TEXT NOT NULL);
CREATE TABLE details (file INTEGER PRIMARY KEY, properties TEXT NOT NULL, problems TEXT NOT NULL);
CREATE TABLE names (key TEXT, what INTEGER, file INTEGER, spelling TEXT NOT NULL, PRIMARY KEY (key, what, file)) WITHOUT ROWID;
CREATE TABLE tags (key TEXT, file INTEGER, name TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (key, file)) WITHOUT ROWID;
CREATE TABLE links (
  source INTEGER, ord INTEGER, line INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, form TEXT NOT NULL,
  embed INTEGER NOT NULL, exact INTEGER NOT NULL, linkpath TEXT NOT NULL, subpath TEXT NOT NULL, display TEXT,
  name_key TEXT, alt_key TEXT, target INTEGER, PRIMARY KEY (source, ord)) WITHOUT ROWID;
CREATE TABLE passages (key INTEGER, file INTEGER, ord INTEGER NOT NULL, PRIMARY KEY (key, file)) WITHOUT ROWID;
CREATE TABLE intents (path TEXT PRIMARY KEY) WITHOUT ROWID;
";

const INDEXES: &str = "
CREATE UNIQUE INDEX IF NOT EXISTS files_path ON files (path);
CREATE INDEX IF NOT EXISTS files_name ON files (name_key);
CREATE INDEX IF NOT EXISTS names_file ON names (file);
CREATE INDEX IF NOT EXISTS tags_file ON tags (file);
CREATE INDEX IF NOT EXISTS links_name ON links (name_key);
CREATE INDEX IF NOT EXISTS links_alt ON links (alt_key) WHERE alt_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS links_target ON links (target) WHERE target IS NOT NULL;
CREATE INDEX IF NOT EXISTS passages_file ON passages (file);
";

const DROP_INDEXES: &str = "
DROP INDEX IF EXISTS files_path; DROP INDEX IF EXISTS files_name; DROP INDEX IF EXISTS names_file;
DROP INDEX IF EXISTS tags_file; DROP INDEX IF EXISTS links_name; DROP INDEX IF EXISTS links_alt;
DROP INDEX IF EXISTS links_target; DROP INDEX IF EXISTS passages_file;
";

/// The content hash of a file: BLAKE3 of its bytes.
pub type Hash = [u8; 32];

/// Number of a file in the catalog; stable while the file lives, also through a move.
pub type FileId = i64;

/// What a file is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A Markdown note.
    Note,
    /// A JSON Canvas.
    Canvas,
    /// Anything else: a link target, not searched.
    Attachment,
}

impl FileKind {
    /// Sorts a path by its extension.
    pub fn of(path: &NotePath) -> Self {
        if path.is_note() {
            Self::Note
        } else if path.is_canvas() {
            Self::Canvas
        } else {
            Self::Attachment
        }
    }

    fn code(self) -> i64 {
        match self {
            Self::Note => 0,
            Self::Canvas => 1,
            Self::Attachment => 2,
        }
    }

    fn from_code(code: i64) -> Self {
        match code {
            0 => Self::Note,
            1 => Self::Canvas,
            _ => Self::Attachment,
        }
    }
}

/// What the file system says of a file; equal stats mean an unchanged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Length in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since the epoch.
    pub mtime_ns: i64,
    /// Change time in nanoseconds since the epoch: catches tools that put the modification time back.
    pub ctime_ns: i64,
}

/// The little that a scan compares.
#[derive(Debug, Clone)]
pub struct Known {
    /// The file's number.
    pub id: FileId,
    /// Its path.
    pub path: NotePath,
    /// Its stat at the time of indexing.
    pub stat: Stat,
    /// Whether it changed so shortly before it was read that an equal stat proves nothing.
    pub racy: bool,
    /// Whether the settings hide it.
    pub excluded: bool,
}

/// A file as the catalog lists it.
#[derive(Debug, Clone)]
pub struct FileRow {
    /// The file's number.
    pub id: FileId,
    /// Its path.
    pub path: NotePath,
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes.
    pub size: u64,
    /// BLAKE3 of its bytes; attachments have none.
    pub hash: Option<Hash>,
    /// Whether the settings hide it from search and lists.
    pub excluded: bool,
    /// Its `id`, else a UUIDv5 of its path.
    pub note_id: String,
    /// Its title.
    pub title: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// Its `category`.
    pub category: Option<String>,
    /// Its `type`.
    pub note_type: Option<String>,
}

/// One link as the catalog lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRow {
    /// The file that holds the link.
    pub source: FileId,
    /// Line, counted from 1.
    pub line: usize,
    /// Byte span of the whole construct.
    pub span: (usize, usize),
    /// The form's name, such as `wiki`.
    pub form: String,
    /// Whether it embeds.
    pub embed: bool,
    /// Whether only the exact vault path counts (canvas file nodes).
    pub exact: bool,
    /// Decoded path part.
    pub linkpath: String,
    /// Decoded subpath with its `#`.
    pub subpath: String,
    /// Shown text, where the link gives one.
    pub display: Option<String>,
    /// The file it means.
    pub target: Option<FileId>,
}

/// Everything that goes into the catalog for one file.
#[derive(Debug, Clone)]
pub struct Record {
    /// Row of the file; `id` is already assigned.
    pub row: FileRow,
    /// Its stat at the time of reading.
    pub stat: Stat,
    /// See [`Known::racy`].
    pub racy: bool,
    /// Other names it answers to.
    pub aliases: Vec<String>,
    /// Tag names as first written in the note, with the number of occurrences.
    pub tags: Vec<(String, usize)>,
    /// Flat properties, as a JSON object.
    pub properties: String,
    /// Problems, as a JSON array.
    pub problems: String,
    /// Its links in order; `source` is the row's id.
    pub links: Vec<LinkRow>,
    /// Keys of its passages, in order.
    pub passages: Vec<i64>,
}

const NAME_TITLE: i64 = 0;
const NAME_ALIAS: i64 = 1;
const NAME_ID: i64 = 2;
const NAME_STEM: i64 = 3;

/// An open catalog.
#[derive(Debug)]
pub struct Catalog {
    db: Connection,
}

fn sql(doing: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |error| {
        let damaged = matches!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
        );
        let kind = match error.sqlite_error_code() {
            _ if damaged => ErrorKind::Corrupt,
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => ErrorKind::Conflict,
            Some(rusqlite::ErrorCode::DiskFull | rusqlite::ErrorCode::SystemIoFailure) => ErrorKind::Io,
            _ => ErrorKind::Internal,
        };
        Error::new(kind, format!("cannot {doing} the catalog")).with_source(error)
    }
}

impl Catalog {
    /// Opens the catalog for writing, making it where it is missing.
    ///
    /// # Errors
    /// `Corrupt` where the file is damaged or of another version.
    pub fn open(path: &Path) -> Result<Self> {
        let db = Connection::open(path).map_err(sql("open"))?;
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -32768;
             PRAGMA temp_store = MEMORY; PRAGMA busy_timeout = 5000; PRAGMA wal_autocheckpoint = 4000;",
        )
        .map_err(sql("open"))?;
        let tables: i64 = db
            .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
            .map_err(sql("read"))?;
        let catalog = Self { db };
        if tables == 0 {
            catalog
                .db
                .execute_batch(&format!("BEGIN; {SCHEMA} {INDEXES} COMMIT;"))
                .map_err(sql("create"))?;
            catalog.set_meta("schema", SCHEMA_VERSION)?;
            catalog.set_meta("generation", 0)?;
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
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)
            .or_else(|_| Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY))
            .map_err(sql("open"))?;
        db.execute_batch("PRAGMA query_only = 1; PRAGMA busy_timeout = 5000; PRAGMA cache_size = -16384;")
            .map_err(sql("open"))?;
        Self { db }.check_version()
    }

    fn check_version(self) -> Result<Self> {
        let version = self.meta("schema")?;
        if version != Some(SCHEMA_VERSION) {
            return Err(Error::corrupt("the catalog was written by another version of sidenote"));
        }
        Ok(self)
    }

    /// Checks the structure of every page and index.
    ///
    /// # Errors
    /// `Corrupt` with SQLite's first complaint.
    pub fn verify(&self) -> Result<()> {
        let verdict: String = self
            .db
            .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
            .map_err(sql("check"))?;
        if verdict == "ok" {
            Ok(())
        } else {
            Err(Error::corrupt(format!("the catalog is damaged: {verdict}")))
        }
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

    /// Starts a read that sees one state until [`Catalog::end`].
    pub fn begin_read(&self) -> Result<()> {
        self.db
            .execute_batch("BEGIN; SELECT count(*) FROM meta;")
            .map_err(sql("read"))
    }

    /// Starts a batch.
    pub fn begin(&self) -> Result<()> {
        self.db.execute_batch("BEGIN IMMEDIATE").map_err(sql("write"))
    }

    /// Ends a batch or a read, keeping what was written.
    pub fn commit(&self) -> Result<()> {
        self.db.execute_batch("COMMIT").map_err(sql("commit"))
    }

    /// Gives up a batch.
    pub fn rollback(&self) -> Result<()> {
        if self.db.is_autocommit() {
            return Ok(());
        }
        self.db.execute_batch("ROLLBACK").map_err(sql("roll back"))
    }

    /// Moves everything from the write-ahead log into the main file; `false` where a reader held it up.
    pub fn checkpoint(&self) -> Result<bool> {
        let busy: i64 = self
            .db
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(sql("checkpoint"))?;
        Ok(busy == 0)
    }

    /// Drops the secondary indexes before a bulk load.
    pub fn drop_indexes(&self) -> Result<()> {
        self.db.execute_batch(DROP_INDEXES).map_err(sql("write"))
    }

    /// Builds the secondary indexes after a bulk load.
    pub fn build_indexes(&self) -> Result<()> {
        self.db.execute_batch(INDEXES).map_err(sql("write"))
    }

    /// Writes down which paths the next BM25 commit touches, so that a crash between the two commits can be mended.
    pub fn set_intents<'a>(&self, paths: impl Iterator<Item = &'a str>) -> Result<()> {
        self.begin()?;
        let mut insert = self
            .db
            .prepare_cached("INSERT OR IGNORE INTO intents VALUES (?1)")
            .map_err(sql("write"))?;
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

    /// Lists what the last scan saw, ordered by path.
    pub fn known(&self) -> Result<Vec<Known>> {
        self.collect(
            "SELECT id, path, size, mtime, ctime, racy, excluded FROM files",
            [],
            read_known,
        )
    }

    /// Looks up what is known of one path.
    pub fn known_at(&self, path: &str) -> Result<Option<Known>> {
        Ok(self
            .collect(
                "SELECT id, path, size, mtime, ctime, racy, excluded FROM files WHERE path = ?1",
                [path],
                read_known,
            )?
            .pop())
    }

    /// Lists what is known of the files below a folder.
    pub fn known_below(&self, folder: &str) -> Result<Vec<Known>> {
        self.collect(
            "SELECT id, path, size, mtime, ctime, racy, excluded FROM files WHERE path > ?1 || '/' AND path < ?1 || '0'",
            [folder],
            read_known,
        )
    }

    /// Gives the highest file number so far.
    pub fn last_id(&self) -> Result<FileId> {
        self.db
            .query_row("SELECT ifnull(max(id), 0) FROM files", [], |row| row.get(0))
            .map_err(sql("read"))
    }

    /// Gives the hash that a file had when it was indexed.
    pub fn hash_of(&self, id: FileId) -> Result<Option<Hash>> {
        self.db
            .query_row("SELECT hash FROM files WHERE id = ?1", [id], |row| row.get(0))
            .optional()
            .map(Option::flatten)
            .map_err(sql("read"))
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
        for statement in [
            "DELETE FROM details WHERE file = ?1",
            "DELETE FROM names WHERE file = ?1",
            "DELETE FROM tags WHERE file = ?1",
            "DELETE FROM links WHERE source = ?1",
            "DELETE FROM passages WHERE file = ?1",
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
        if !fresh {
            self.remove_details(row.id)?;
        }
        self.run(
            "INSERT OR REPLACE INTO files VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)",
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
                row.note_id,
                row.title,
                row.created.millis(),
                row.updated.millis(),
                row.category,
                row.note_type,
                record.passages.len() as i64,
                key(row.path.name()),
            ],
        )?;
        if row.kind == FileKind::Attachment {
            return Ok(());
        }
        self.run(
            "INSERT INTO details VALUES (?1, ?2, ?3)",
            params![row.id, record.properties, record.problems],
        )?;
        let names = [
            (NAME_TITLE, row.title.as_str()),
            (NAME_ID, row.note_id.as_str()),
            (NAME_STEM, row.path.stem()),
        ];
        let aliases = record.aliases.iter().map(|alias| (NAME_ALIAS, alias.as_str()));
        for (what, spelling) in names.into_iter().chain(aliases) {
            self.run(
                "INSERT OR IGNORE INTO names VALUES (?1, ?2, ?3, ?4)",
                params![key(spelling), what, row.id, spelling],
            )?;
        }
        for (name, count) in &record.tags {
            self.run(
                "INSERT OR IGNORE INTO tags VALUES (?1, ?2, ?3, ?4)",
                params![key(name), row.id, name, *count as i64],
            )?;
        }
        for (ord, link) in record.links.iter().enumerate() {
            let [name_key, alt_key] = link_keys(link);
            self.run(
                "INSERT INTO links VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
                params![
                    row.id,
                    ord as i64,
                    link.line as i64,
                    link.span.0 as i64,
                    link.span.1 as i64,
                    link.form,
                    link.embed,
                    link.exact,
                    link.linkpath,
                    link.subpath,
                    link.display,
                    name_key,
                    alt_key,
                    link.target,
                ],
            )?;
        }
        Ok(())
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
        for (passage, file, ord) in passages {
            self.run(
                "INSERT OR IGNORE INTO passages VALUES (?1, ?2, ?3)",
                params![passage, file, *ord as i64],
            )?;
        }
        Ok(())
    }

    /// Lists the paths whose file name has one of the given keys, with their numbers.
    pub fn paths_named(&self, name_keys: &[String]) -> Result<Vec<(NotePath, FileId)>> {
        let mut found = Vec::new();
        for name in name_keys {
            found.extend(
                self.collect("SELECT path, id FROM files WHERE name_key = ?1", [name], |row| {
                    Ok((read_path(row, 0)?, row.get(1)?))
                })?,
            );
        }
        Ok(found)
    }

    /// Lists every path with its number.
    pub fn paths(&self) -> Result<Vec<(NotePath, FileId)>> {
        self.collect("SELECT path, id FROM files", [], |row| {
            Ok((read_path(row, 0)?, row.get(1)?))
        })
    }

    /// Lists the links that a change of these file names could send elsewhere: (source, ordinal, source path, link).
    pub fn links_naming(&self, name_keys: &[String]) -> Result<Vec<(FileId, i64, NotePath, LinkRow)>> {
        let mut found = Vec::new();
        for name in name_keys {
            found.extend(self.collect(
                &format!("SELECT {LINK_COLUMNS}, l.ord, f.path FROM links l JOIN files f ON f.id = l.source WHERE l.name_key = ?1 OR l.alt_key = ?1"),
                [name],
                |row| Ok((row.get(0)?, row.get(LINK_WIDTH)?, read_path(row, LINK_WIDTH + 1)?, read_link(row)?)),
            )?);
        }
        Ok(found)
    }

    /// Points a stored link to another file.
    pub fn retarget(&self, source: FileId, ord: i64, target: Option<FileId>) -> Result<()> {
        self.run(
            "UPDATE links SET target = ?3 WHERE source = ?1 AND ord = ?2",
            params![source, ord, target],
        )
    }

    /// Gives the rows of these files, in the order asked for; missing ones are left out.
    pub fn rows(&self, ids: &[FileId]) -> Result<Vec<FileRow>> {
        let mut rows = Vec::with_capacity(ids.len());
        for id in ids {
            rows.extend(self.collect(
                &format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.id = ?1"),
                [id],
                read_file,
            )?);
        }
        Ok(rows)
    }

    /// Gives the row of one path.
    pub fn row_at(&self, path: &str) -> Result<Option<FileRow>> {
        Ok(self
            .collect(
                &format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.path = ?1"),
                [path],
                read_file,
            )?
            .pop())
    }

    /// Lists the notes that answer to a name as id, title, alias or file name: those of the best kind of match only.
    pub fn named(&self, name: &str) -> Result<Vec<FileRow>> {
        for what in [NAME_ID, NAME_STEM, NAME_TITLE, NAME_ALIAS] {
            let rows = self.collect(
                &format!("SELECT {FILE_COLUMNS} FROM names n JOIN files f ON f.id = n.file WHERE n.key = ?1 AND n.what = ?2 ORDER BY f.path"),
                params![key(name), what],
                read_file,
            )?;
            if !rows.is_empty() {
                return Ok(rows);
            }
        }
        Ok(Vec::new())
    }

    /// Lists the notes that a link text without its subpath could mean from the vault's root: by path suffix.
    pub fn resolving(&self, linkpath: &str) -> Result<Vec<FileRow>> {
        let mut names = crate::text::resolve::Names::default();
        let table = self.paths_named(&crate::text::resolve::name_keys(linkpath))?;
        table.iter().for_each(|(path, _)| names.insert(path));
        let Some(root) = NotePath::from_disk("root.md") else { return Ok(Vec::new()) };
        let found = names.resolve(linkpath, &root).map(|resolved| resolved.path.as_str().to_owned());
        match found {
            Some(path) => Ok(self.row_at(&path)?.into_iter().collect()),
            None => Ok(Vec::new()),
        }
    }

    /// Lists names that hold `start`, for suggestions.
    pub fn names_like(&self, start: &str, limit: usize) -> Result<Vec<String>> {
        let lowest = key(start);
        self.collect(
            "SELECT DISTINCT spelling FROM names WHERE what IN (0, 1, 3) AND key LIKE '%' || ?1 || '%' ORDER BY length(spelling), spelling LIMIT ?2",
            params![lowest, limit as i64],
            |row| row.get(0),
        )
    }

    /// Gives a note's aliases.
    pub fn aliases(&self, id: FileId) -> Result<Vec<String>> {
        self.collect(
            "SELECT spelling FROM names WHERE file = ?1 AND what = 1 ORDER BY spelling",
            [id],
            |row| row.get(0),
        )
    }

    /// Gives a note's tags.
    pub fn tags_of(&self, id: FileId) -> Result<Vec<String>> {
        self.collect("SELECT name FROM tags WHERE file = ?1 ORDER BY key", [id], |row| row.get(0))
    }

    /// Lists tags with the number of visible notes that carry each.
    pub fn tags(&self) -> Result<Vec<(String, usize)>> {
        self.collect(
            "SELECT min(t.name), count(*) FROM tags t JOIN files f ON f.id = t.file WHERE NOT f.excluded GROUP BY t.key ORDER BY count(*) DESC, t.key",
            [],
            |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as usize)),
        )
    }

    /// Visits the flat properties (a JSON object) of every visible note.
    pub fn each_properties(&self, mut visit: impl FnMut(FileId, &str)) -> Result<()> {
        let mut statement = self
            .db
            .prepare_cached("SELECT d.file, d.properties FROM details d JOIN files f ON f.id = d.file WHERE NOT f.excluded AND d.properties <> '{}'")
            .map_err(sql("read"))?;
        let mut rows = statement.query([]).map_err(sql("read"))?;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            let text = row.get_ref(1).and_then(|value| Ok(value.as_str()?)).map_err(sql("read"))?;
            visit(row.get(0).map_err(sql("read"))?, text);
        }
        Ok(())
    }

    /// Gives one note's flat properties as JSON, and its problems as JSON.
    pub fn details(&self, id: FileId) -> Result<Option<(String, String)>> {
        Ok(self
            .collect("SELECT properties, problems FROM details WHERE file = ?1", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .pop())
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

    /// Lists the numbers and paths of the files that pass a filter.
    pub fn select_ids(&self, filter: &Filter) -> Result<Vec<(FileId, String)>> {
        let (condition, values) = filter.condition();
        self.collect(
            &format!("SELECT f.id, f.path FROM files f WHERE {condition}"),
            params_from_iter(values),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Lists a file's links in order.
    pub fn links_from(&self, id: FileId) -> Result<Vec<LinkRow>> {
        self.collect(
            &format!("SELECT {LINK_COLUMNS} FROM links l WHERE l.source = ?1 ORDER BY l.ord"),
            [id],
            read_link,
        )
    }

    /// Lists the links that mean a file, ordered by source and place.
    pub fn links_to(&self, id: FileId) -> Result<Vec<LinkRow>> {
        self.collect(
            &format!("SELECT {LINK_COLUMNS} FROM links l JOIN files f ON f.id = l.source WHERE l.target = ?1 AND l.source <> ?1 ORDER BY f.path, l.ord"),
            [id],
            read_link,
        )
    }

    /// Lists links of visible files that mean nothing, ordered by link text.
    pub fn unresolved(&self) -> Result<Vec<LinkRow>> {
        self.collect(
            &format!("SELECT {LINK_COLUMNS} FROM links l JOIN files f ON f.id = l.source WHERE l.target IS NULL AND NOT f.excluded ORDER BY lower(l.linkpath), f.path, l.ord"),
            [],
            read_link,
        )
    }

    /// Lists visible notes that no other file links to and that link to no other file.
    pub fn orphans(&self) -> Result<Vec<FileRow>> {
        self.collect(
            &format!(
                "SELECT {FILE_COLUMNS} FROM files f WHERE f.kind = 0 AND NOT f.excluded
                 AND NOT EXISTS (SELECT 1 FROM links l WHERE l.target = f.id AND l.source <> f.id)
                 AND NOT EXISTS (SELECT 1 FROM links l WHERE l.source = f.id AND l.target IS NOT NULL AND l.target <> f.id)
                 ORDER BY f.path"
            ),
            [],
            read_file,
        )
    }

    /// Lists the files next to one in the link graph, both ways, without doubles.
    pub fn neighbours(&self, id: FileId) -> Result<Vec<FileId>> {
        self.collect(
            "SELECT target FROM links WHERE source = ?1 AND target IS NOT NULL UNION SELECT source FROM links WHERE target = ?1",
            [id],
            |row| row.get(0),
        )
    }

    /// Says which files hold each of these passages: (key, file, ordinal).
    pub fn passages_at(&self, keys: &[i64]) -> Result<Vec<(i64, FileId, usize)>> {
        let mut found = Vec::with_capacity(keys.len());
        for passage in keys {
            found.extend(
                self.collect("SELECT key, file, ord FROM passages WHERE key = ?1", [passage], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? as usize))
                })?,
            );
        }
        Ok(found)
    }

    /// Gives the keys of the passages of one file.
    pub fn passages_of(&self, id: FileId) -> Result<Vec<i64>> {
        self.collect("SELECT key FROM passages WHERE file = ?1 ORDER BY ord", [id], |row| row.get(0))
    }

    /// Visits every distinct passage key, in order.
    pub fn each_passage(&self, mut visit: impl FnMut(i64, FileId)) -> Result<()> {
        let mut statement = self
            .db
            .prepare_cached("SELECT key, file FROM passages")
            .map_err(sql("read"))?;
        let mut rows = statement.query([]).map_err(sql("read"))?;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            visit(row.get(0).map_err(sql("read"))?, row.get(1).map_err(sql("read"))?);
        }
        Ok(())
    }

    /// Lists numbers of searchable files, those changed last first.
    pub fn newest_first(&self) -> Result<Vec<FileId>> {
        self.collect(
            "SELECT id FROM files WHERE kind < 2 AND NOT excluded ORDER BY mtime DESC, id",
            [],
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
            passages: one("SELECT ifnull(sum(passages), 0) FROM files")?,
            links: one("SELECT count(*) FROM links")?,
            unresolved: one("SELECT count(*) FROM links WHERE target IS NULL")?,
        })
    }
}

/// Totals of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counts {
    /// Markdown notes.
    pub notes: usize,
    /// Canvases.
    pub canvases: usize,
    /// Other files.
    pub attachments: usize,
    /// Files hidden by the settings.
    pub excluded: usize,
    /// Passages of all notes.
    pub passages: usize,
    /// Links of all notes.
    pub links: usize,
    /// Links that mean nothing.
    pub unresolved: usize,
}

/// Which notes a list or a search is about; conditions add up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Below this folder.
    pub folder: Option<String>,
    /// With each of these tags or one below it.
    pub tags: Vec<String>,
    /// With this `type`.
    pub note_type: Option<String>,
    /// With this `category`.
    pub category: Option<String>,
    /// Made at or after.
    pub created_after: Option<Timestamp>,
    /// Made before.
    pub created_before: Option<Timestamp>,
    /// Changed at or after.
    pub updated_after: Option<Timestamp>,
    /// Changed before.
    pub updated_before: Option<Timestamp>,
    /// Canvases as well as notes.
    pub with_canvases: bool,
}

impl Filter {
    /// Says whether it lets every note pass.
    pub fn is_open(&self) -> bool {
        let blank = Self {
            with_canvases: self.with_canvases,
            ..Self::default()
        };
        *self == blank
    }

    fn condition(&self) -> (String, Vec<Sql>) {
        let mut parts = vec!["NOT f.excluded".to_owned()];
        let mut values: Vec<Sql> = Vec::new();
        parts.push(if self.with_canvases { "f.kind < 2" } else { "f.kind = 0" }.to_owned());
        let mut add = |part: &str, value: Sql| {
            values.push(value);
            parts.push(part.replace('?', &format!("?{}", values.len())));
        };
        if let Some(folder) = self.folder.as_deref().map(|folder| folder.trim_matches('/')) {
            if !folder.is_empty() {
                add("f.path > ? || '/' AND f.path < ? || '0'", Sql::Text(folder.to_owned()));
            }
        }
        for tag in &self.tags {
            let tag = key(tag.trim_start_matches('#'));
            add(
                "EXISTS (SELECT 1 FROM tags t WHERE t.file = f.id AND (t.key = ? OR (t.key > ? || '/' AND t.key < ? || '0')))",
                Sql::Text(tag),
            );
        }
        if let Some(note_type) = &self.note_type {
            add("lower(f.type) = lower(?)", Sql::Text(note_type.clone()));
        }
        if let Some(category) = &self.category {
            add("lower(f.category) = lower(?)", Sql::Text(category.clone()));
        }
        for (part, bound) in [
            ("f.created >= ?", self.created_after),
            ("f.created < ?", self.created_before),
            ("f.updated >= ?", self.updated_after),
            ("f.updated < ?", self.updated_before),
        ] {
            if let Some(bound) = bound {
                add(part, Sql::Integer(bound.millis()));
            }
        }
        (parts.join(" AND "), values)
    }
}

const FILE_COLUMNS: &str = "f.id, f.path, f.kind, f.size, f.hash, f.excluded, f.note_id, f.title, f.created, f.updated, f.category, f.type";
const LINK_COLUMNS: &str =
    "l.source, l.line, l.start, l.stop, l.form, l.embed, l.exact, l.linkpath, l.subpath, l.display, l.target";
const LINK_WIDTH: usize = 11;

fn read_path(row: &Row<'_>, column: usize) -> rusqlite::Result<NotePath> {
    let text = row.get_ref(column)?.as_str()?;
    NotePath::from_disk(text).ok_or_else(|| {
        let why = format!("{text:?} is not a path in a vault");
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, why.into())
    })
}

fn read_known(row: &Row<'_>) -> rusqlite::Result<Known> {
    Ok(Known {
        id: row.get(0)?,
        path: read_path(row, 1)?,
        stat: Stat {
            size: row.get::<_, i64>(2)? as u64,
            mtime_ns: row.get(3)?,
            ctime_ns: row.get(4)?,
        },
        racy: row.get(5)?,
        excluded: row.get(6)?,
    })
}

fn read_file(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    Ok(FileRow {
        id: row.get(0)?,
        path: read_path(row, 1)?,
        kind: FileKind::from_code(row.get(2)?),
        size: row.get::<_, i64>(3)? as u64,
        hash: row.get(4)?,
        excluded: row.get(5)?,
        note_id: row.get(6)?,
        title: row.get(7)?,
        created: Timestamp::from_millis(row.get(8)?),
        updated: Timestamp::from_millis(row.get(9)?),
        category: row.get(10)?,
        note_type: row.get(11)?,
    })
}

fn read_link(row: &Row<'_>) -> rusqlite::Result<LinkRow> {
    Ok(LinkRow {
        source: row.get(0)?,
        line: row.get::<_, i64>(1)? as usize,
        span: (row.get::<_, i64>(2)? as usize, row.get::<_, i64>(3)? as usize),
        form: row.get(4)?,
        embed: row.get(5)?,
        exact: row.get(6)?,
        linkpath: row.get(7)?,
        subpath: row.get(8)?,
        display: row.get(9)?,
        target: row.get(10)?,
    })
}

/// Gives the file-name keys that the lookup of a link consults, at most two (spec/obsidian.md 3.3, steps 2 and 3).
fn link_keys(link: &LinkRow) -> [Option<String>; 2] {
    if link.exact {
        let name = link.linkpath.rsplit('/').next().unwrap_or("");
        return [Some(key(name)), None];
    }
    let mut keys = crate::text::resolve::name_keys(&link.linkpath).into_iter();
    [keys.next(), keys.next()]
}
