//! The tables and indexes of the catalog, and the codes in their columns.

/// The version of the schema. It is raised whenever tables change shape or parsing changes meaning; an index of another
/// version is rebuilt.
pub const SCHEMA_VERSION: i64 = 25;

/// The tables, and the one index that is needed from the beginning.
pub(super) const SCHEMA: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL, kind INTEGER NOT NULL,
  size INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, racy INTEGER NOT NULL, hash BLOB,
  excluded INTEGER NOT NULL, note_id TEXT, title TEXT, created INTEGER, updated INTEGER, category TEXT, type TEXT,
  name_key TEXT NOT NULL, put_away INTEGER NOT NULL, path_id BLOB, times INTEGER NOT NULL);
CREATE TABLE details (file INTEGER PRIMARY KEY, properties TEXT NOT NULL, problems TEXT, passages BLOB NOT NULL, sections BLOB NOT NULL, names_parts INTEGER NOT NULL);
CREATE TABLE property_names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE names (key TEXT NOT NULL, what INTEGER NOT NULL, file INTEGER NOT NULL, spelling TEXT);
CREATE TABLE tags (key TEXT, file INTEGER, name TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (key, file)) WITHOUT ROWID;
CREATE TABLE linkpaths (id INTEGER PRIMARY KEY, linkpath TEXT NOT NULL, syntax INTEGER NOT NULL, name_key TEXT NOT NULL);
CREATE TABLE links (
  source INTEGER, linkpath INTEGER, target INTEGER, count INTEGER NOT NULL, evidence INTEGER NOT NULL, places BLOB NOT NULL,
  PRIMARY KEY (source, linkpath)) WITHOUT ROWID;
CREATE TABLE relations (
  source INTEGER, object INTEGER, subject INTEGER, type TEXT, inferred INTEGER NOT NULL,
  line INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL,
  PRIMARY KEY (source, object, subject, type)) WITHOUT ROWID;
CREATE TABLE tasks (file INTEGER, ord INTEGER, line INTEGER NOT NULL, status TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (file, ord)) WITHOUT ROWID;
CREATE TABLE passages (key INTEGER, file INTEGER, ord INTEGER NOT NULL, PRIMARY KEY (key, file)) WITHOUT ROWID;
CREATE TABLE dialects (folder TEXT PRIMARY KEY, dialect TEXT NOT NULL, root TEXT NOT NULL, below_root TEXT NOT NULL, marker TEXT, reason TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE folders (folder TEXT PRIMARY KEY, files INTEGER NOT NULL, racy INTEGER NOT NULL, sum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE waiting (file INTEGER PRIMARY KEY);
CREATE TABLE intents (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE UNIQUE INDEX files_path ON files (path);
";

/// The size of a page in bytes.
pub(super) const PAGE: u32 = 16_384;

/// The condition of links whose targets and evidence can change with files of other names than that of their target: those
/// without a target, and those that lead to a file under some dialects alone.
macro_rules! unsure {
    () => {
        "(target IS NULL OR (evidence & 15) BETWEEN 1 AND 14)"
    };
}
/// See [`unsure!`].
pub(super) const UNSURE: &str = unsure!();

/// The secondary indexes: (name, table and columns). They are built after a load, not during it.
pub(super) const INDEXES: &[(&str, &str)] = &[
    ("files_name", "files (name_key)"),
    ("names_key", "names (key)"),
    ("names_file", "names (file)"),
    ("tags_file", "tags (file)"),
    ("linkpaths_name", "linkpaths (name_key)"),
    // An unresolved link is looked up by its text, a resolved one by its target. A link that leads to a file under some dialects
    // alone is looked up by both. With target and number, unresolved links are counted without their rows.
    ("links_unsure", concat!("links (linkpath, target, count) WHERE ", unsure!())),
    // Few notes have a problem, or a link that names a part of a note.
    ("details_problems", "details (file) WHERE problems IS NOT NULL"),
    ("details_parts", "details (file) WHERE names_parts"),
    ("files_path_id", "files (path_id) WHERE path_id IS NOT NULL"),
    ("files_read_attachments", "files (kind) WHERE kind = 2 AND hash IS NOT NULL"),
    ("files_put_away", "files (put_away) WHERE put_away <> 0"),
    ("relations_type", "relations (type)"),
    ("links_target", "links (target) WHERE target IS NOT NULL"),
];

/// The code of a title in `names.what`.
pub(super) const NAME_TITLE: i64 = 0;
/// The code of an alias in `names.what`.
pub(super) const NAME_ALIAS: i64 = 1;
/// The code of an id in `names.what`.
pub(super) const NAME_ID: i64 = 2;
