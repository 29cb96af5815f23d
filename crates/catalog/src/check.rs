//! Validates a catalog before it is used: its file and schema at every open, and every page and row if no seal covers
//! it. A vault can be a download, so its catalog can come from anybody.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Row};
use serde::de::IgnoredAny;
use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use sidenote_base::safe_open::is_regular;
use sidenote_links::dialect::LinkDialect;
use sidenote_links::dialect_evidence::LinkEvidence;
use sidenote_markdown::path::{NotePath, key};
use sidenote_sets::file_set::FileSet;

use super::folders::{FolderFiles, read_folder, split};
use super::links::link_key;
use super::properties::unpack;
use super::rows::{invalid_path, path_uuid};
use super::schema::{INDEXES, SCHEMA};
use super::{CACHE, COMPLETED_MODEL, CatalogReader, FILE_COLUMNS, FileId, FileKind, Hash, Stat, sql};
use crate::delta_encoding::{unpack_ascending, unpack_positions};

/// The largest cache of a check, in kilobytes.
const MAX_CHECK_CACHE: i64 = 131_072;
/// The largest valid file id. A set of files takes one bit for each id up to the highest.
const MAX_FILE_ID: FileId = 1 << 27;
/// The largest valid count, generation or line number.
const MAX_NUMBER: i64 = 1 << 48;
/// The valid times in milliseconds since the Unix epoch: from the beginning of the year −9999 to the end of the year
/// 9999.
const TIME_RANGE: (i64, i64) = (-377_705_203_200_000, 253_402_300_799_999);
/// The valid names in `meta`.
const META_NAMES: &[&str] = &[
    super::dialects::COUNTS[0],
    super::dialects::COUNTS[1],
    super::dialects::COUNTS[2],
    super::dialects::COUNTS[3],
    super::dialects::COUNTS[4],
    super::dialects::LINKS,
    super::dialects::PASSAGES,
    "schema",
    "generation",
    "pending",
    "model",
    "last_id",
    super::RELATION_RULES,
    COMPLETED_MODEL,
];

/// An object of the schema: type, name, table, and its SQL.
type Object = (String, String, String, Option<String>);

/// Refuses a catalog that is not a regular file, or whose length is not real, and one beside which a file of SQLite is not.
///
/// # Errors
/// Returns `Corrupt` for such a file, and `Io` if its metadata cannot be read.
pub(super) fn refuse_irregular(path: &Path) -> Result<()> {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut path = path.as_os_str().to_owned();
        path.push(ending);
        let path = Path::new(&path);
        match platform::entry_metadata(path) {
            Ok(found) if is_regular(&found) => {}
            Ok(_) => return Err(Error::corrupt(format!("{} is not a regular file", path.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("open", path, error)),
        }
    }
    Ok(())
}

/// Disables what a schema could do by itself, such as triggers and views, and direct changes of the schema. Plans do not
/// depend on the values of a statement, so that it is not compiled again for each.
pub(super) fn harden(db: &Connection) -> Result<()> {
    for (setting, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
    ] {
        db.set_db_config(setting, value).map_err(sql("open"))?;
    }
    db.execute_batch("PRAGMA cell_size_check = 1").map_err(sql("open"))
}

/// Checks that the schema has exactly the objects of [`SCHEMA`] and [`INDEXES`].
///
/// # Errors
/// Returns `Corrupt` if it differs.
pub(super) fn schema(db: &Connection) -> Result<()> {
    static EXPECTED: OnceLock<Vec<Object>> = OnceLock::new();
    let expected = EXPECTED.get_or_init(expected_objects);
    let mut select =
        db.prepare("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT ?1").map_err(sql("read"))?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let found = select.query_map([expected.len() as i64 + 1], read).map_err(sql("read"))?;
    let mut found = found.collect::<rusqlite::Result<Vec<Object>>>().map_err(sql("read"))?;
    found.sort_unstable();
    if found == *expected {
        Ok(())
    } else {
        Err(Error::corrupt("the catalog was written by another version of sidenote, or by another program"))
    }
}

/// Lists the objects of [`SCHEMA`] and [`INDEXES`] in the form in which SQLite stores them.
fn expected_objects() -> Vec<Object> {
    let mut objects = Vec::new();
    for statement in SCHEMA.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        let kind = if statement.contains(" TABLE ") { "table" } else { "index" };
        let name_after = |word: &str| {
            let rest = statement.split_once(word).map_or("", |(_, rest)| rest);
            rest.split([' ', '(']).next().unwrap_or_default().to_owned()
        };
        let (name, table) = if kind == "table" {
            (name_after(" TABLE "), name_after(" TABLE "))
        } else {
            (name_after(" INDEX "), name_after(" ON "))
        };
        objects.push((kind.to_owned(), name, table, Some(statement.to_owned())));
    }
    for (name, columns) in INDEXES {
        let table = columns.split(' ').next().unwrap_or_default().to_owned();
        let statement = format!("CREATE INDEX {name} ON {columns}");
        objects.push(("index".to_owned(), (*name).to_owned(), table, Some(statement)));
    }
    // SQLite creates an index for a unique column.
    let automatic = ["index", "sqlite_autoindex_property_names_1", "property_names"];
    let [kind, name, table] = automatic.map(str::to_owned);
    objects.push((kind, name, table, None));
    objects.sort_unstable();
    objects
}

/// Returns the error for data that sidenote cannot have written.
fn invalid_data(what: &str) -> Error {
    Error::corrupt(format!("the catalog contains {what} that sidenote did not write"))
}

fn expect(is_valid: bool, what: &str) -> Result<()> {
    if is_valid { Ok(()) } else { Err(invalid_data(what)) }
}

impl CatalogReader {
    /// Checks the structure of every page and index, and every row.
    ///
    /// # Errors
    /// Returns `Corrupt` with the first problem.
    pub fn verify(&self) -> Result<()> {
        let number = |pragma: &str| -> Result<i64> {
            self.db.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).map_err(sql("check"))
        };
        let set_cache =
            |size: i64| self.db.execute_batch(&format!("PRAGMA cache_size = {size}")).map_err(sql("check"));
        // Each row is looked up in every index, and a page that is not in the cache is checked as a whole each time.
        let (cache, kilobytes) =
            (number("cache_size")?, number("page_count")?.saturating_mul(number("page_size")?) / 1024);
        set_cache(-kilobytes.clamp(i64::from(CACHE), MAX_CHECK_CACHE))?;
        let checked = Check(self).run();
        // What is wrong with the catalog says more than that its cache stays large.
        checked.and(set_cache(cache))
    }

    /// Returns the files whose text must be in the full-text index.
    ///
    /// # Errors
    /// Returns `Corrupt` if the catalog cannot be read.
    pub fn full_text_files(&self) -> Result<FileSet> {
        let mut found = Vec::new();
        Check(self).visit_rows("SELECT id FROM files WHERE NOT excluded AND hash IS NOT NULL", |row| {
            found.push(row.get(0).map_err(sql("read"))?);
            Ok(())
        })?;
        Ok(found.into_iter().collect())
    }
}

/// The check of one catalog.
struct Check<'a>(&'a CatalogReader);

impl Check<'_> {
    fn run(&self) -> Result<()> {
        let verdict: String =
            self.0.db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(sql("check"))?;
        if verdict != "ok" {
            return Err(Error::corrupt(format!("the catalog is damaged: {verdict}")));
        }
        self.verify_meta()?;
        let files = self.verify_files()?;
        self.verify_folders()?;
        self.verify_details(&files)?;
        self.verify_links(&files)?;
        self.verify_relations(&files)?;
        self.verify_dialects()?;
        let of_file = |row: &Row<'_>| row.get::<_, FileId>(0);
        for (query, what) in [
            ("SELECT file, key, what, spelling FROM names", "a name"),
            ("SELECT file, key, name, count FROM tags", "a tag"),
            ("SELECT file, key, ord FROM passages", "a passage"),
            ("SELECT file, line, status, text FROM tasks", "a task"),
            ("SELECT file FROM waiting", "an attachment that waits"),
        ] {
            self.visit_rows(query, |row| {
                let file = of_file(row).map_err(sql("read"))?;
                expect(files.contains_key(&file), what)?;
                let is_valid = match what {
                    "a name" => {
                        is_text_at(row, 1)
                            && is_within(row, 2, 0, 2)
                            && (is_null(row, 3) || is_text_at(row, 3))
                    }
                    "an attachment that waits" => true,
                    "a task" => is_within(row, 1, 1, MAX_NUMBER) && is_text_at(row, 2) && is_text_at(row, 3),
                    "a tag" => is_text_at(row, 1) && is_text_at(row, 2) && is_within(row, 3, 0, MAX_NUMBER),
                    _ => is_within(row, 1, i64::MIN, i64::MAX) && is_within(row, 2, 0, MAX_NUMBER),
                };
                expect(is_valid, what)
            })?;
        }
        self.visit_rows("SELECT path FROM intents", |row| expect(is_text_at(row, 0), "an intent"))
    }

    fn verify_meta(&self) -> Result<()> {
        let is_valid = |row: &Row<'_>| match row.get_ref(0).ok().and_then(|name| name.as_str().ok()) {
            Some("last_id") => is_within(row, 1, 0, MAX_FILE_ID),
            Some("generation" | "pending") => is_within(row, 1, 0, MAX_NUMBER),
            Some(name) => META_NAMES.contains(&name) && is_within(row, 1, i64::MIN, i64::MAX),
            None => false,
        };
        self.visit_rows("SELECT key, value FROM meta", |row| expect(is_valid(row), "a number"))
    }

    /// Checks the rows of files, and returns for each id whether the file is a note or canvas.
    fn verify_files(&self) -> Result<HashMap<FileId, bool>> {
        let mut files = HashMap::new();
        let query = format!("SELECT {FILE_COLUMNS}, f.ctime, f.racy, f.name_key, f.path_id FROM files f");
        self.visit_rows(&query, |row| {
            let id: FileId = row.get(0).map_err(sql("read"))?;
            let path = row.get_ref(1).and_then(|path| Ok(path.as_str()?)).map_err(sql("read"))?;
            let path = NotePath::from_disk(path).ok_or_else(|| invalid_path(path))?;
            let kind = FileKind::of(&path);
            row.get::<_, Option<Hash>>(4).map_err(sql("read"))?;
            let is_time = |column| is_null(row, column) || is_within(row, column, TIME_RANGE.0, TIME_RANGE.1);
            let is_text = |column| is_null(row, column) || is_text_at(row, column);
            let is_valid = (1..=MAX_FILE_ID).contains(&id)
                && is_within(row, 2, kind.code(), kind.code())
                && is_within(row, 3, 0, i64::MAX)
                && is_within(row, 5, 0, 1)
                && [6, 7, 10, 11].into_iter().all(is_text)
                && [8, 9].into_iter().all(is_time)
                && [12, 15].into_iter().all(|column| is_within(row, column, i64::MIN, i64::MAX))
                && is_within(row, 13, 0, 3)
                && is_within(row, 14, 0, 31)
                && is_within(row, 16, 0, 1)
                && row.get_ref(17).is_ok_and(|name| name.as_str() == Ok(key(path.name()).as_str()))
                && match kind {
                    FileKind::Attachment => is_null(row, 18),
                    _ => row
                        .get_ref(18)
                        .is_ok_and(|id| id.as_blob() == Ok(path_uuid(&path).as_bytes().as_slice())),
                };
            files.insert(id, kind != FileKind::Attachment);
            expect(is_valid, "a file")
        })?;
        Ok(files)
    }

    /// Checks that the fingerprints of folders follow from the files: by a wrong one, a change would never be seen.
    fn verify_folders(&self) -> Result<()> {
        let mut folders: HashMap<String, FolderFiles> = HashMap::new();
        self.visit_rows("SELECT path, size, mtime, ctime, racy, excluded FROM files", |row| {
            let path = row.get_ref(0).and_then(|path| Ok(path.as_str()?)).map_err(sql("read"))?;
            let (folder, name) = split(path);
            let number = |column| row.get::<_, i64>(column).map_err(sql("read"));
            let stat = Stat { size: number(1)?.unsigned_abs(), mtime_ns: number(2)?, ctime_ns: number(3)? };
            let files = match folders.get_mut(folder) {
                Some(files) => files,
                None => folders.entry(folder.to_owned()).or_default(),
            };
            files.add(name, &stat, number(4)? == 1, number(5)? == 1);
            Ok(())
        })?;
        self.visit_rows("SELECT folder, files, racy, sum FROM folders", |row| {
            let (folder, files) = read_folder(row).map_err(sql("read"))?;
            expect(folders.remove(&folder) == Some(files), "a folder")
        })?;
        expect(folders.is_empty(), "a folder")
    }

    fn verify_details(&self, files: &HashMap<FileId, bool>) -> Result<()> {
        let names = self.0.properties().names_by_id()?;
        self.visit_rows(
            "SELECT file, properties, problems, passages, sections, names_parts FROM details",
            |row| {
                let file: FileId = row.get(0).map_err(sql("read"))?;
                let properties = row.get_ref(1).and_then(|text| Ok(text.as_str()?)).map_err(sql("read"))?;
                unpack(properties, &names)?;
                let problems: Option<&str> =
                    row.get_ref(2).and_then(|text| Ok(text.as_str_or_null()?)).map_err(sql("read"))?;
                let blob = |column| row.get_ref(column).ok().and_then(|bytes| bytes.as_blob().ok());
                let is_valid = files.contains_key(&file)
                    && problems.is_none_or(is_json_array)
                    && blob(3).is_some_and(|passages| passages.len().is_multiple_of(8))
                    && blob(4).and_then(unpack_ascending).is_some()
                    && is_within(row, 5, 0, 1);
                expect(is_valid, "a note")
            },
        )
    }

    fn verify_dialects(&self) -> Result<()> {
        self.visit_rows("SELECT dialect FROM dialects", |row| {
            let name = row.get_ref(0).and_then(|text| Ok(text.as_str()?)).map_err(sql("read"))?;
            expect(name.parse::<LinkDialect>().is_ok(), "a link dialect")
        })
    }

    fn verify_links(&self, files: &HashMap<FileId, bool>) -> Result<()> {
        self.visit_rows("SELECT id, linkpath, syntax, name_key FROM linkpaths", |row| {
            let linkpath = row.get_ref(1).and_then(|text| Ok(text.as_str()?)).map_err(sql("read"))?;
            let is_valid = is_within(row, 0, 1, MAX_NUMBER)
                && is_within(row, 2, 0, 2)
                && row.get_ref(3).is_ok_and(|name| name.as_str() == Ok(link_key(linkpath).as_str()));
            expect(is_valid, "the text of a link")
        })?;
        let query = "SELECT l.source, l.target, l.count, l.places, p.id, l.evidence FROM links l LEFT JOIN linkpaths p ON p.id = l.linkpath";
        self.visit_rows(query, |row| {
            let source: FileId = row.get(0).map_err(sql("read"))?;
            let target: Option<FileId> = row.get(1).map_err(sql("read"))?;
            let packed = row.get_ref(3).and_then(|bytes| Ok(bytes.as_blob()?)).map_err(sql("read"))?;
            let count = unpack_positions(packed).map(|positions| positions.len() as i64);
            let is_valid = files.get(&source) == Some(&true)
                && target.is_none_or(|target| files.contains_key(&target))
                && !is_null(row, 4)
                && row.get(5).is_ok_and(|code| LinkEvidence::from_code(code).is_some())
                && count.is_some_and(|count| is_within(row, 2, count, count));
            expect(is_valid, "a link")
        })
    }

    fn verify_relations(&self, files: &HashMap<FileId, bool>) -> Result<()> {
        let query =
            "SELECT r.source, r.type, r.inferred, r.line, r.start, r.length, o.source, r.subject, s.source
            FROM relations r LEFT JOIN links o ON o.source = r.source AND o.linkpath = r.object
            LEFT JOIN links s ON s.source = r.source AND s.linkpath = r.subject";
        self.visit_rows(query, |row| {
            let source: FileId = row.get(0).map_err(sql("read"))?;
            let is_valid = files.get(&source) == Some(&true)
                && is_text_at(row, 1)
                && is_within(row, 2, 0, 1)
                && (3..=5).all(|column| is_within(row, column, 0, MAX_NUMBER))
                && !is_null(row, 6)
                && (is_within(row, 7, 0, 0) || !is_null(row, 8));
            expect(is_valid, "a relation")
        })
    }

    fn visit_rows(&self, query: &str, mut visit: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        let mut select = self.0.db.prepare(query).map_err(sql("read"))?;
        let mut rows = select.query([]).map_err(sql("read"))?;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            visit(row)?;
        }
        Ok(())
    }
}

/// Returns whether a column contains an integer from `least` to `most`.
fn is_within(row: &Row<'_>, column: usize, least: i64, most: i64) -> bool {
    let number = row.get_ref(column).ok().and_then(|value| value.as_i64().ok());
    number.is_some_and(|number| (least..=most).contains(&number))
}

/// Returns whether a text is a JSON array.
fn is_json_array(text: &str) -> bool {
    serde_json::from_str::<Vec<IgnoredAny>>(text).is_ok()
}

/// Returns whether a column contains UTF-8 text.
fn is_text_at(row: &Row<'_>, column: usize) -> bool {
    row.get_ref(column).is_ok_and(|value| value.as_str().is_ok())
}

/// Returns whether a column is null.
fn is_null(row: &Row<'_>, column: usize) -> bool {
    row.get_ref(column).is_ok_and(|value| value == rusqlite::types::ValueRef::Null)
}
