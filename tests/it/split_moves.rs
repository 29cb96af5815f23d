//! Tests moves by other programs whose two ends the index sees in different batches.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use serde_json::json;
use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::vault::Vault;

use crate::mcp_client::Client;
use crate::support::{TestVault, journal_files};

/// Takes steps in a vault and returns the moves that the index saw, as `FROM > TO`. A step writes (`w FILE TEXT`), removes
/// (`d FILE`), moves (`m FILE FILE`), gives a second name (`l FILE FILE`), moves out of the vault (`o FILE`) and in again
/// (`i FILE`), or lets the index see what is there (`s`).
fn moves_seen(steps: &str) -> BTreeSet<String> {
    let vault = TestVault::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let opened = Arc::new(Vault::open(vault.root()).unwrap());
    let options = Options { folder: Some(folder.path().join("index")), ..Options::default() };
    let index = Index::open(opened, options).unwrap();
    let (at, outside) = (|file: &str| vault.root().join(file), folder.path().join("outside.md"));
    for step in steps.split(", ") {
        match step.split(' ').collect::<Vec<_>>()[..] {
            ["w", file, text] => vault.write(file, text),
            ["d", file] => fs::remove_file(at(file)).unwrap(),
            ["m", from, to] => vault.rename(from, to),
            ["l", from, to] => fs::hard_link(at(from), at(to)).unwrap(),
            ["o", file] => fs::rename(at(file), &outside).unwrap(),
            ["i", file] => fs::rename(&outside, at(file)).unwrap(),
            ["s"] => drop(index.sync(SyncScope::All, silent()).unwrap()),
            _ => panic!("{step}"),
        }
    }
    index.take_moves().iter().map(|(from, to)| format!("{from} > {to}")).collect()
}

#[test]
fn a_move_is_seen_in_one_batch_and_in_two() {
    const CASES: [(&str, &[&str]); 17] = [
        ("w a.md A, s, m a.md b.md, s", &["a.md > b.md"]),
        // Gone first, new later.
        ("w a.md A, s, o a.md, s, i b.md, s", &["a.md > b.md"]),
        ("w a.md A, s, o a.md, s, w o.md O, s, i b.md, s", &["a.md > b.md"]),
        ("w a.md A, s, o a.md, s, i a.md, s", &[]),
        // New first, gone later.
        ("w a.md A, s, l a.md b.md, s, d a.md, s", &["a.md > b.md"]),
        ("w a.md A, s, l a.md b.md, s, w o.md O, s, d a.md, s", &["a.md > b.md"]),
        ("w a.md A, s, l a.md b.md, s, d b.md, s", &[]),
        (
            "w a.md A, w c.md C, s, l a.md b.md, s, o c.md, d a.md, s, i d.md, s",
            &["a.md > b.md", "c.md > d.md"],
        ),
        // A file that was written anew did not move, whatever it says.
        ("w a.md A, s, d a.md, s, w b.md A, s", &[]),
        ("w a.md A, s, d a.md, s, w a.md A, s", &[]),
        ("w a.md A, s, w b.md A, s, d a.md, s", &[]),
        ("w a.md A, s, w b.md A, s, d b.md, s", &[]),
        ("w a.md A, s, d a.md, s, w b.md B, s", &[]),
        ("w a.md A, s, o a.md, s, i b.md, w b.md B, s", &[]),
        ("w a.md A, s, l a.md b.md, s, d a.md, w b.md B, s", &[]),
        // Where there are several new files, it is not known which one it is.
        ("w a.md A, s, l a.md b.md, l a.md c.md, s, d a.md, s", &[]),
        // A move is seen once.
        ("w a.md A, s, l a.md b.md, s, d a.md, s, w c.md A, s", &["a.md > b.md"]),
    ];
    for (steps, expect) in CASES {
        let expect: BTreeSet<String> = expect.iter().map(|&one| one.to_owned()).collect();
        assert_eq!(moves_seen(steps), expect, "{steps}");
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
