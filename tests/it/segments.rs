//! Tests how many segments the full-text index has once it is closed.

use std::fs;
use std::sync::Arc;

use sidenote::bm25::{Bm25Query, Tuning};
use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::search::query::Query;
use sidenote::vault::Vault;

use crate::support::TestVault;

/// Opens the index, writes and indexes so many notes at once, which is a load if they are the first, and then others one by one,
/// each of which makes a segment; a command merges those of a load. Returns how many segments there are once the index is closed.
fn segments_after(
    vault: &TestVault,
    name: &str,
    (at_once, one_by_one): (usize, usize),
    is_command: bool,
) -> usize {
    let options = Options { merge_loads: is_command, ..Options::default() };
    let index = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), options).unwrap();
    for at in 0..at_once {
        vault.write(&format!("{name}{at}.md"), "heron\n");
    }
    index.sync(SyncScope::All, silent()).unwrap();
    for at in at_once..at_once + one_by_one {
        vault.write(&format!("{name}{at}.md"), "heron\n");
        index.sync(SyncScope::All, silent()).unwrap();
    }
    let words = Query::plain("heron").words;
    let query = Bm25Query { words: &words, allowed: None, limit: usize::MAX };
    let found = index.snapshot().unwrap().bm25.search(&query, &Tuning::default()).unwrap().len();
    assert_eq!(found, fs::read_dir(vault.root()).unwrap().count() - 1, "notes beside .sidenote");
    drop(index);
    let files = fs::read_dir(vault.root().join(".sidenote/index/bm25")).unwrap();
    files.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().ends_with(".fast")).count()
}

#[test]
fn segments_are_merged_when_the_index_is_closed() {
    let vault = TestVault::new(&[]);
    assert_eq!(segments_after(&vault, "loaded", (2_100, 8), false), 9);
    assert_eq!(segments_after(&vault, "added", (0, 2), false), 11);
    assert_eq!(segments_after(&vault, "more", (0, 7), true), 12, "nothing was loaded");
    assert_eq!(segments_after(&vault, "none", (0, 0), false), 12);
    assert!(vault.root().join(".sidenote/index/seal.json").exists());
}

#[test]
fn a_command_merges_the_segments_of_a_load() {
    let vault = TestVault::new(&[]);
    assert_eq!(segments_after(&vault, "loaded", (2_100, 8), true), 5);
    assert_eq!(segments_after(&vault, "added", (0, 4), true), 9);
    assert!(vault.root().join(".sidenote/index/seal.json").exists());
}
