//! Tests index files that somebody else made, since a vault may be a download. Each is detected and reported, and the
//! index is rebuilt from the notes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};
use sidenote::base::platform::metadata;

use crate::support::{TestVault, inode, path_from, stderr, stdout};

fn vault() -> TestVault {
    TestVault::new(&[
        ("a.md", "---\ntags: [bird]\naliases: [wader]\nplace: moor\n---\nThe heron waits. [[b]] [[b]]"),
        ("b.md", "# Otter\n\nThe otter swims past the heron. [[missing]]"),
        ("c/d.md", "nothing of note"),
        ("c/e/p.png", "no note"),
    ])
}

/// Writes a seal over the index as it is now. Nobody can give a file of another machine the times that it has here, so
/// those are wrong where it was sealed elsewhere.
fn seal(index: &Path, sealed: Sealed) {
    let exact = sealed != Sealed::Elsewhere;
    let mut files = BTreeMap::new();
    let bm25 = fs::read_dir(index.join("bm25")).unwrap().map(|entry| entry.unwrap().path());
    for path in bm25.chain([index.join("catalog.db")]) {
        let found = metadata(&path).unwrap();
        let entry = json!({
            "size": found.size,
            "mtime": found.modified_ns(),
            "ctime": found.changed_ns() - i64::from(!exact),
            "hash": blake3::hash(&fs::read(&path).unwrap()).to_hex().to_string(),
        });
        let name = path_from(index, &path);
        if !name.ends_with(".lock") {
            files.insert(name, entry);
        }
    }
    let catalog = metadata(&index.join("catalog.db")).unwrap();
    let (seconds, nanoseconds) = catalog.changed;
    let checked = [json!(catalog.device), json!(catalog.inode), json!(seconds), json!(nanoseconds - 1)];
    let checked = if sealed == Sealed::AsChecked { json!(checked) } else { Value::Null };
    write_seal(index, &json!({ "files": files, "checked_catalog": checked }));
}

fn write_seal(index: &Path, sealed: &Value) {
    let text = sealed.to_string();
    let check = blake3::hash(text.as_bytes()).to_hex().to_string();
    fs::write(index.join("seal.json"), json!({ "check": check, "sealed": text }).to_string()).unwrap();
}

/// How the index of a stranger is sealed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sealed {
    Not,
    Elsewhere,
    Here,
    /// As one whose paths were checked, of a catalog that changed at another time.
    AsChecked,
}

/// Runs SQL on a catalog, and checks that the next command says so, answers, and leaves a sound index.
#[track_caller]
fn check_found_out(change: &str, sealed: Sealed, healthy: &str) {
    let vault = vault();
    drop(vault.store());
    let index = vault.root().join(".sidenote/index");
    let db = Connection::open(index.join("catalog.db")).unwrap();
    db.execute_batch("PRAGMA writable_schema = 1").unwrap();
    db.execute_batch(change).unwrap_or_else(|error| panic!("{change}: {error}"));
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    db.close().unwrap();
    match sealed {
        Sealed::Not => fs::remove_file(index.join("seal.json")).unwrap(),
        _ => seal(&index, sealed),
    }
    let case = format!("{change} ({sealed:?})");
    let mut found = vault.run(&["search", "heron", "--json"]);
    // Windows removes no file that is open, so that the next command rebuilds the index.
    if cfg!(windows) && found.status.code() == Some(8) {
        found = vault.run(&["search", "heron", "--json"]);
    }
    assert!(found.status.success(), "{case}: {}", stderr(&found));
    assert!(stderr(&found).contains("rebuilt from the notes"), "{case}: {:?}", stderr(&found));
    let reply: Value = serde_json::from_str(&stdout(&found)).unwrap();
    assert_eq!(reply["results"].as_array().unwrap().len(), 2, "{case}");
    let dump = vault.run(&["dump"]);
    assert!(!stderr(&dump).contains("rebuilt"), "{case}: {}", stderr(&dump));
    assert_eq!(stdout(&dump), healthy, "{case}");
}

/// Changes of the schema, which are found out at every open.
const SCHEMAS: &[&str] = &[
    "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM files; END",
    "CREATE TRIGGER t BEFORE INSERT ON files BEGIN
       INSERT INTO intents WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n; END",
    "CREATE VIEW v AS SELECT * FROM files",
    "CREATE TABLE more (x)",
    "CREATE INDEX more ON files (title)",
    "DROP INDEX files_name",
    "DROP INDEX files_path",
    "DROP TABLE details; CREATE VIEW details AS SELECT 1 AS file, '[]' AS properties",
    "DROP TABLE meta",
    "ALTER TABLE files ADD COLUMN more",
    "CREATE VIRTUAL TABLE more USING fts5(x)",
    "UPDATE sqlite_master SET sql = replace(sql, 'value', 'value CHECK (value > 0)') WHERE name = 'meta'",
];

/// Rows that no sidenote writes; each is found by the check of rows.
const ROWS: &[&str] = &[
    "UPDATE files SET path = '/a.md' WHERE path = 'a.md'",
    "UPDATE files SET path = '../x.md' WHERE path = 'a.md'",
    "UPDATE files SET path = 'c//d.md' WHERE path = 'c/d.md'",
    "UPDATE files SET path = 'c/' WHERE path = 'c/d.md'",
    "UPDATE files SET path = '' WHERE path = 'a.md'",
    "UPDATE files SET path = '.sidenote/x.md' WHERE path = 'a.md'",
    "UPDATE files SET path = 'a' || char(0) || '.md' WHERE path = 'a.md'",
    "UPDATE files SET path = CAST(x'ff2e6d64' AS TEXT) WHERE path = 'a.md'",
    "UPDATE files SET path = x'612e6d64' WHERE path = 'a.md'",
    "UPDATE files SET times = 32 WHERE path = 'a.md'",
    "UPDATE files SET id = 9223372036854775807 WHERE path = 'a.md'",
    "UPDATE files SET id = 1 << 40 WHERE path = 'a.md'",
    "UPDATE files SET id = -5 WHERE path = 'a.md'",
    "UPDATE files SET id = 77 WHERE path = 'a.md'",
    "UPDATE files SET hash = x'00' WHERE path = 'a.md'",
    "UPDATE files SET hash = 'text' WHERE path = 'a.md'",
    "UPDATE files SET size = -1 WHERE path = 'a.md'",
    "UPDATE files SET mtime = 'noon' WHERE path = 'a.md'",
    "UPDATE files SET racy = 7 WHERE path = 'a.md'",
    "UPDATE files SET kind = 9 WHERE path = 'a.md'",
    "UPDATE files SET kind = 2 WHERE path = 'a.md'",
    "UPDATE files SET excluded = 5 WHERE path = 'a.md'",
    "UPDATE files SET created = 9000000000000000000 WHERE path = 'a.md'",
    "UPDATE files SET title = x'ff' WHERE path = 'a.md'",
    "UPDATE files SET name_key = 'z' WHERE path = 'a.md'",
    "UPDATE files SET put_away = -1 WHERE path = 'a.md'",
    "UPDATE files SET path_id = NULL WHERE path = 'a.md'",
    "UPDATE files SET path_id = x'00' WHERE path = 'a.md'",
    "UPDATE files SET path_id = (SELECT path_id FROM files WHERE path = 'b.md') WHERE path = 'a.md'",
    "UPDATE folders SET sum = x'00' WHERE folder = ''",
    "UPDATE folders SET sum = zeroblob(16) WHERE folder = ''",
    "UPDATE folders SET files = files + 1 WHERE folder = 'c'",
    "UPDATE folders SET racy = racy + 1 WHERE folder = 'c'",
    "UPDATE folders SET folder = 'd' WHERE folder = 'c'",
    "DELETE FROM folders WHERE folder = 'c'",
    "INSERT INTO folders SELECT 'none', files, racy, sum FROM folders WHERE folder = 'c'",
    "UPDATE meta SET value = -1 WHERE key = 'last_id'",
    "DELETE FROM files WHERE path = 'a.md'",
    "DELETE FROM files",
    "UPDATE meta SET value = 9223372036854775807 WHERE key = 'generation'",
    "UPDATE meta SET value = -1 WHERE key = 'generation'",
    "UPDATE meta SET value = 9223372036854775807 WHERE key = 'pending'",
    "UPDATE meta SET value = 'many' WHERE key = 'pending'",
    "INSERT INTO meta VALUES ('more', 1)",
    "UPDATE details SET properties = replace(hex(zeroblob(20000)), '0', '[')",
    "UPDATE details SET properties = '[99,1]'",
    "UPDATE details SET problems = 'none'",
    "UPDATE details SET passages = x'00'",
    "UPDATE details SET sections = x'ff'",
    "UPDATE details SET sections = x'ffffffffffffffffff01ffffffffffffffffff01'",
    "UPDATE details SET file = 99 WHERE file = 1",
    "UPDATE names SET file = 99",
    "UPDATE names SET what = 9",
    "UPDATE tags SET file = 99",
    "UPDATE tags SET name = x'ff'",
    "UPDATE passages SET file = 99",
    "UPDATE passages SET ord = -1",
    "UPDATE linkpaths SET name_key = 'z'",
    "UPDATE dialects SET dialect = 'other'",
    "UPDATE linkpaths SET syntax = 7",
    "UPDATE links SET count = 9223372036854775807",
    "UPDATE links SET places = x'ff'",
    "UPDATE links SET target = 99",
    "UPDATE links SET source = 99",
    "UPDATE links SET linkpath = 99",
    "INSERT INTO intents VALUES (x'ff')",
];

#[test]
fn a_foreign_schema_is_detected() {
    assert_eq!(SCHEMAS.len(), 12);
    let healthy = stdout(&vault().run(&["dump"]));
    for change in SCHEMAS {
        check_found_out(change, Sealed::Here, &healthy);
    }
    check_found_out(SCHEMAS[0], Sealed::Not, &healthy);
    check_found_out(SCHEMAS[1], Sealed::Elsewhere, &healthy);
}

#[test]
fn invalid_rows_are_detected() {
    assert_eq!(ROWS.len(), 66);
    let healthy = stdout(&vault().run(&["dump"]));
    for (at, change) in ROWS.iter().enumerate() {
        check_found_out(change, if at % 2 == 0 { Sealed::Not } else { Sealed::Elsewhere }, &healthy);
    }
}

#[test]
fn invalid_paths_under_a_valid_seal_are_detected_by_the_scan() {
    let healthy = stdout(&vault().run(&["dump"]));
    for change in &ROWS[..9] {
        check_found_out(change, Sealed::Here, &healthy);
    }
}

/// A seal that says so is believed of this very file alone, whose change time nobody can choose.
#[test]
fn a_seal_vouches_only_for_the_paths_of_the_catalog_that_was_checked() {
    let healthy = stdout(&vault().run(&["dump"]));
    let vault = vault();
    vault.run(&["search", "heron"]);
    let index = vault.root().join(".sidenote/index");
    let envelope: Value = serde_json::from_slice(&fs::read(index.join("seal.json")).unwrap()).unwrap();
    let sealed: Value = serde_json::from_str(envelope["sealed"].as_str().unwrap()).unwrap();
    let catalog = metadata(&index.join("catalog.db")).unwrap();
    let identity = json!([catalog.device, catalog.inode, catalog.changed.0, catalog.changed.1]);
    assert_eq!(sealed["checked_catalog"], identity);
    for change in &ROWS[..9] {
        check_found_out(change, Sealed::AsChecked, &healthy);
    }
}

#[test]
fn a_foreign_wal_file_beside_a_sealed_catalog_is_rejected() {
    let vault = vault();
    let healthy = stdout(&vault.run(&["dump"]));
    let index = vault.root().join(".sidenote/index");
    // The log of a stranger, taken from a copy of the catalog.
    let copy = tempfile::tempdir().unwrap();
    let path = copy.path().join("catalog.db");
    fs::copy(index.join("catalog.db"), &path).unwrap();
    let db = Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA wal_autocheckpoint = 0; UPDATE files SET path = '../x.md' WHERE path = 'a.md'")
        .unwrap();
    fs::copy(copy.path().join("catalog.db-wal"), index.join("catalog.db-wal")).unwrap();
    drop(db);
    let found = vault.run(&["search", "heron"]);
    assert!(found.status.success() && stderr(&found).contains("rebuilt"), "{}", stderr(&found));
    assert_eq!(stdout(&vault.run(&["dump"])), healthy);
}

#[test]
fn a_seal_that_names_files_outside_the_index_is_rejected() {
    let names = ["vectors/../../../victim.md", "bm25/../../../victim.md", "/dev/zero", "../../victim.md"];
    for name in names {
        let vault = vault();
        vault.write("victim.md", "the heron stays");
        let healthy = stdout(&vault.run(&["dump"]));
        let index = vault.root().join(".sidenote/index");
        let text = fs::read_to_string(index.join("seal.json")).unwrap();
        let envelope: Value = serde_json::from_str(&text).unwrap();
        let mut sealed: Value = serde_json::from_str(envelope["sealed"].as_str().unwrap()).unwrap();
        sealed["files"][name] = json!({ "size": 0, "mtime": 1, "ctime": 1, "hash": "00" });
        write_seal(&index, &sealed);
        let found = vault.run(&["search", "heron"]);
        assert!(found.status.success() && stderr(&found).contains("rebuilt"), "{name}: {}", stderr(&found));
        assert_eq!(fs::read_to_string(vault.root().join("victim.md")).unwrap(), "the heron stays");
        assert_eq!(stdout(&vault.run(&["dump"])), healthy, "{name}");
    }
}

#[test]
fn a_seal_without_files_counts_as_damaged() {
    for sealed in [json!({ "files": {} }), json!({ "files": [] }), json!({})] {
        let vault = vault();
        let healthy = stdout(&vault.run(&["dump"]));
        write_seal(&vault.root().join(".sidenote/index"), &sealed);
        let found = vault.run(&["search", "heron"]);
        assert!(found.status.success() && stderr(&found).contains("rebuilt"), "{}", stderr(&found));
        assert_eq!(stdout(&vault.run(&["dump"])), healthy);
    }
}

#[test]
fn a_huge_sparse_file_is_not_read() {
    for name in ["catalog.db", "seal.json", "ledger", "listings", "bm25/meta.json"] {
        let vault = vault();
        let healthy = stdout(&vault.run(&["dump"]));
        let path = vault.root().join(".sidenote/index").join(name);
        fs::File::create(path).unwrap().set_len(1 << 42).unwrap();
        let found = vault.run(&["search", "heron"]);
        assert!(found.status.success(), "{name}: {}", stderr(&found));
        assert_eq!(stdout(&vault.run(&["dump"])), healthy, "{name}");
    }
}

/// Returns the CRC-32 of bytes, as zlib computes it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xEDB8_8320 * (sum & 1)))
    })
}

/// States another number of terms in the dictionaries of a segment, with the right checksum (tantivy, `footer.rs`, and the last
/// 20 bytes of a dictionary: where its index begins, the number of terms, and the version).
fn state_number_of_terms(path: &Path, number: u64) {
    let file = fs::read(path).unwrap();
    let (rest, end) = file.split_last_chunk::<8>().unwrap();
    let length = u32::from_le_bytes(*end.first_chunk().unwrap()) as usize;
    let (body, footer) = rest.split_at(rest.len() - length);
    let mut footer: Value = serde_json::from_slice(footer).unwrap();
    assert_eq!(footer["crc"], crc32(body));
    let (mut body, mut changed) = (body.to_vec(), 0);
    for at in 0..body.len() - 20 {
        let number_at = |from: usize| u64::from_le_bytes(*body[from..].first_chunk().unwrap());
        let (index, terms) = (number_at(at), number_at(at + 8));
        let version = u32::from_le_bytes(*body[at + 16..].first_chunk().unwrap());
        if (2..=3).contains(&version) && (1..1000).contains(&terms) && (9..at as u64).contains(&index) {
            body[at + 8..at + 16].copy_from_slice(&number.to_le_bytes());
            changed += 1;
        }
    }
    assert!(changed > 0, "{}", path.display());
    footer["crc"] = json!(crc32(&body));
    let footer = footer.to_string();
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    fs::write(path, [&body, footer.as_bytes(), &length, &end[4..]].concat()).unwrap();
}

/// No memory is taken for terms that are not there.
#[test]
fn the_stated_number_of_terms_is_not_believed() {
    for number in [0, 1, 1 << 33, 1 << 62, u64::MAX] {
        let vault = vault();
        drop(vault.store());
        let index = vault.root().join(".sidenote/index");
        let files = fs::read_dir(index.join("bm25")).unwrap().map(|entry| entry.unwrap().path());
        let terms: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "term")).collect();
        assert!(!terms.is_empty());
        terms.iter().for_each(|path| state_number_of_terms(path, number));
        fs::remove_file(index.join("seal.json")).unwrap();
        for query in ["heorn", "content:ero", "/er.n/"] {
            let found = vault.run(&["search", "--mode", "bm25", query]);
            assert!(found.status.success(), "{number} {query}: {}", stderr(&found));
        }
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_or_symlink_in_place_of_an_index_file_is_refused() {
    for name in ["catalog.db", "catalog.db-wal", "seal.json", "ledger", "bm25/meta.json"] {
        let vault = vault();
        drop(vault.store());
        let path = vault.root().join(".sidenote/index").join(name);
        fs::remove_file(&path).ok();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let found = vault.run(&["search", "heron"]);
        assert!(
            !found.status.success() && stderr(&found).contains("not a regular file"),
            "{name}: {}",
            stderr(&found)
        );
        fs::remove_file(&path).unwrap();
        crate::support::symlink("/dev/zero", &path);
        let found = vault.run(&["search", "heron"]);
        assert!(!found.status.success() && stderr(&found).contains("symlink"), "{name}: {}", stderr(&found));
    }
}

#[test]
fn a_copied_index_is_verified_and_kept() {
    let vault = vault();
    let healthy = stdout(&vault.run(&["dump"]));
    let index = vault.root().join(".sidenote/index");
    let old = vault.root().join(".sidenote/old");
    fs::rename(&index, &old).unwrap();
    fs::create_dir_all(index.join("bm25")).unwrap();
    for entry in fs::read_dir(&old).unwrap().chain(fs::read_dir(old.join("bm25")).unwrap()) {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, index.join(path.strip_prefix(&old).unwrap())).unwrap();
        }
    }
    let made = inode(index.join("catalog.db"));
    let found = vault.run(&["search", "heron"]);
    let said = stderr(&found);
    assert!(found.status.success() && !said.contains("rebuilt") && !said.contains("damaged"), "{said}");
    assert_eq!(inode(index.join("catalog.db")), made, "it was not made anew");
    assert_eq!(stdout(&vault.run(&["dump"])), healthy);
}
