//! Tests moves by other programs whose two ends the index sees in different batches.

use std::fs;
use std::sync::Arc;

use serde_json::json;
use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::vault::Vault;

use crate::mcp_client::Client;
use crate::support::{TestVault, journal_files};

/// Takes steps in a vault and returns the moves that the index saw, as `FROM > TO`. A step writes (`w FILE TEXT`), removes
/// (`d FILE`), moves (`m FILE FILE`) or lets the index see what is there (`s`).
fn moves_seen(steps: &str) -> String {
    let vault = TestVault::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let opened = Arc::new(Vault::open(vault.root().to_owned()).unwrap());
    let options = Options { folder: Some(folder.path().join("index")), ..Options::default() };
    let index = Index::open(opened, options).unwrap();
    for step in steps.split(", ") {
        match step.split(' ').collect::<Vec<_>>()[..] {
            ["w", file, text] => vault.write(file, text),
            ["d", file] => fs::remove_file(vault.root().join(file)).unwrap(),
            ["m", from, to] => vault.rename(from, to),
            ["s"] => drop(index.sync(SyncScope::All, silent()).unwrap()),
            _ => panic!("{step}"),
        }
    }
    let seen: Vec<String> = index.take_moves().iter().map(|(from, to)| format!("{from} > {to}")).collect();
    seen.join(", ")
}

#[test]
fn a_move_is_seen_in_one_batch_and_in_two() {
    const CASES: [(&str, &str); 15] = [
        ("w a.md A, s, m a.md b.md, s", "a.md > b.md"),
        // Gone first, new later.
        ("w a.md A, s, d a.md, s, w b.md A, s", "a.md > b.md"),
        ("w a.md A, s, d a.md, s, w o.md O, s, w b.md A, s", "a.md > b.md"),
        ("w a.md A, s, d a.md, s, w b.md B, s", ""),
        ("w a.md A, s, d a.md, s, w a.md A, s", ""),
        // New first, gone later.
        ("w a.md A, s, w n/b.md A, s, d a.md, s", "a.md > n/b.md"),
        ("w a.md A, s, w n/b.md A, s, w o.md O, s, d a.md, s", "a.md > n/b.md"),
        ("w a.md A, s, w n/b.md A, s, w n/b.md B, s, d a.md, s", ""),
        ("w a.md A, s, w n/b.md A, s, d n/b.md, s, d a.md, s", ""),
        ("w a.md A, s, w b.md A, s, d b.md, s", ""),
        ("w a.md A, s, w b.md A, s, w c.md A, s, d b.md, s", "b.md > c.md"),
        // Where there are several new files, it is not known which one it is.
        ("w a.md A, s, w b.md A, w c.md A, s, d a.md, s", ""),
        ("w a.md A, w b.md A, s, d a.md, d b.md, s, w c.md A, s", ""),
        // A move is seen once.
        ("w a.md A, s, w b.md A, s, d a.md, s, w c.md A, s", "a.md > b.md"),
        ("w a.md A, w c.md C, s, d a.md, w d.md C, s, d c.md, w b.md A, s", "c.md > d.md, a.md > b.md"),
    ];
    for (steps, expect) in CASES {
        let seen: std::collections::BTreeSet<String> =
            moves_seen(steps).split(", ").map(str::to_owned).collect();
        let expected = expect.split(", ").map(str::to_owned).collect();
        assert_eq!(seen, expected, "{steps}");
    }
}

#[test]
fn what_sidenote_removed_was_not_moved_by_another_program() {
    let vault = TestVault::new(&[("Heron.md", "The heron nests.\n"), ("Way.md", "See [[Heron]].\n")]);
    assert!(vault.run(&["index"]).status.success());
    let mut client = Client::start(&vault, &[]);
    fs::copy(vault.root().join("Heron.md"), vault.root().join("Copy.md")).unwrap();
    client.text("read_note", json!({ "notes": "Copy" }));
    client.text("delete_note", json!({ "note": "Heron" }));
    client.text("read_note", json!({ "notes": "Copy" }));
    client.finish();
    assert!(!vault.root().join("Heron.md").exists());
    let journal: String =
        journal_files(vault.root()).iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    assert!(journal.contains(r#""op":"delete""#) && !journal.contains(r#""op":"moved""#), "{journal}");
}
