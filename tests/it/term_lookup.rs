//! Tests that every term of a large vocabulary is found in the dictionaries of all segments, with the notes that contain it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::sync::Arc;

use sidenote::bm25::{Bm25Query, Tuning};
use sidenote::index::{Index, Options, Snapshot, SyncScope, silent};
use sidenote::search::query::Query;
use sidenote::sets::file_set::FileId;
use sidenote::vault::Vault;

use crate::support::TestVault;

const NOTES: usize = 240;
/// So many words fill several blocks of a dictionary.
const WORDS: usize = 9_000;

/// Returns a word that is its own stem. Neighbours in the order of terms begin alike, and differ in length.
fn word(at: usize) -> String {
    let letter = |shift: u32| char::from(b"bcdfghjklmnpqrtv"[at >> shift & 15]);
    let long = if at.is_multiple_of(5) { "zzz".repeat(1 + at % 40) } else { String::new() };
    format!("{}o{}o{}{long}{}", letter(12), letter(8), letter(4), letter(0))
}

/// Returns the words of a note: a common one is in up to a hundred notes, a rare one in one.
fn words_of(note: usize) -> BTreeSet<usize> {
    (0..WORDS).filter(|at| note % (1 + at % NOTES) == at / NOTES % (1 + at % NOTES)).collect()
}

/// Makes the vault in so many batches, each of which is a segment or more.
fn vault_of(batches: usize) -> (TestVault, Index) {
    let vault = TestVault::new(&[]);
    let index = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), Options::default()).unwrap();
    for batch in 0..batches {
        for note in (batch..NOTES).step_by(batches) {
            let text: Vec<String> = words_of(note).into_iter().map(word).collect();
            vault.write(&format!("n{note}.md"), text.join(" "));
        }
        index.sync(SyncScope::All, silent()).unwrap();
    }
    (vault, index)
}

fn found(snapshot: &Snapshot, text: &str) -> BTreeSet<FileId> {
    let words = Query::plain(text).words;
    let query = Bm25Query { words: &words, allowed: None, limit: usize::MAX };
    snapshot.bm25.search(&query, &Tuning::default()).unwrap().iter().map(|hit| hit.file).collect()
}

fn check(batches: usize) {
    let (_vault, index) = vault_of(batches);
    let snapshot = index.snapshot().unwrap();
    let mut files: BTreeMap<usize, BTreeSet<FileId>> = BTreeMap::new();
    let names: Vec<FileId> =
        (0..NOTES).map(|note| *found(&snapshot, &format!("n{note}")).first().unwrap()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), NOTES);
    for (note, file) in names.into_iter().enumerate() {
        for at in words_of(note) {
            files.entry(at).or_default().insert(file);
        }
    }
    assert!(files.len() > WORDS / 2, "{}", files.len());
    for at in 0..WORDS {
        let expected = files.get(&at).cloned().unwrap_or_default();
        assert_eq!(found(&snapshot, &word(at)), expected, "{}", word(at));
        let notes =
            snapshot.bm25.body_document_frequency(Query::plain(&word(at)).words.first().unwrap()).unwrap();
        assert_eq!(notes, expected.len() as u64, "{}", word(at));
        let missing = format!("{}x", word(at));
        assert_eq!(found(&snapshot, &missing), BTreeSet::new(), "{missing}");
    }
}

#[test]
fn every_word_is_found_in_one_segment() {
    check(1);
}

#[test]
fn every_word_is_found_in_several_segments() {
    check(3);
}

/// The index that holds the lock was checked when it was opened; others read it as it is. Where a byte of the list of dictionaries
/// is wrong, a field may not be found in it.
#[test]
fn a_dictionary_that_is_not_listed_is_not_an_empty_one() {
    let vault = TestVault::new(&[]);
    vault.write("Note.md", "A heron stands in the moor.\n");
    let open = |read_only| {
        let options = Options { read_only, ..Options::default() };
        Index::open(Arc::new(Vault::open(vault.root()).unwrap()), options).unwrap()
    };
    let writer = open(false);
    writer.sync(SyncScope::All, silent()).unwrap();
    let files = fs::read_dir(vault.root().join(".sidenote/index/bm25")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let path = files.find(|path| path.extension().is_some_and(|end| end == "term")).unwrap();
    let intact = fs::read(&path).unwrap();
    let words = Query::plain("heron").words;
    let query = Bm25Query { words: &words, allowed: None, limit: 10 };
    let mut failed = 0;
    for at in intact.len().saturating_sub(200)..intact.len() - 100 {
        let mut damaged = intact.clone();
        damaged[at] ^= 1 << 4;
        // A new file would not be the one that is mapped.
        fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(&damaged).unwrap();
        let search = || open(true).snapshot().unwrap().bm25.search(&query, &Tuning::default());
        // tantivy panics at some offsets.
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(search)) {
            Ok(Ok(hits)) => assert_eq!(hits.len(), 1, "byte {at} of {}", intact.len()),
            Ok(Err(_)) | Err(_) => failed += 1,
        }
    }
    fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(&intact).unwrap();
    assert!(failed > 3, "{failed}");
}
