//! Tests that the full-text index loses exactly the notes that a batch removes or replaces, few or many of them.

use std::collections::BTreeSet;

use sidenote::bm25::{AnalyzedNote, Analyzer, Bm25, Bm25Query, Bm25Writer, Tuning};
use sidenote::search::query::Query;
use sidenote::sets::file_set::FileId;

/// The notes that are there at first.
const NOTES: FileId = 1200;

/// One batch.
#[derive(Debug, Default)]
struct Batch {
    /// The files that are removed.
    removed: Vec<FileId>,
    /// The files that are replaced: removed, and added with another text.
    replaced: Vec<FileId>,
    /// The files that are added, then removed again.
    added_in_vain: Vec<FileId>,
    /// The files that are new.
    new: Vec<FileId>,
}

fn note(file: FileId, text: &str) -> AnalyzedNote {
    let mut analyzed = Analyzer::default().analyze(|texts| texts.body.push_str(text));
    analyzed.file = file;
    analyzed
}

fn carry_out(writer: &mut Bm25Writer, batch: &Batch) {
    for file in &batch.new {
        writer.add(note(*file, "otter")).unwrap();
    }
    for file in &batch.removed {
        writer.remove(*file).unwrap();
    }
    for file in &batch.replaced {
        writer.remove(*file).unwrap();
        writer.add(note(*file, "otter")).unwrap();
    }
    for file in &batch.added_in_vain {
        writer.add(note(*file, "otter")).unwrap();
        writer.remove(*file).unwrap();
    }
}

fn found(index: &Bm25, word: &str) -> BTreeSet<FileId> {
    let words = Query::plain(word).words;
    let query = Bm25Query { words: &words, allowed: None, limit: 10_000 };
    let hits = index.reload().unwrap().search(&query, &Tuning::default()).unwrap();
    hits.into_iter().map(|hit| hit.file).collect()
}

/// Carries out one batch after another, each with its own commit, in one index of [`NOTES`] notes about herons.
#[track_caller]
fn check(batches: &[Batch]) {
    let folder = tempfile::tempdir().unwrap();
    let index = Bm25::open(folder.path(), true).unwrap();
    let mut writer = index.writer(false).unwrap();
    (1..=NOTES).for_each(|file| writer.add(note(file, "heron")).unwrap());
    writer.commit(1).unwrap();
    let (mut herons, mut otters): (BTreeSet<FileId>, BTreeSet<FileId>) =
        ((1..=NOTES).collect(), BTreeSet::new());
    for (at, batch) in batches.iter().enumerate() {
        carry_out(&mut writer, batch);
        writer.commit(at as i64 + 2).unwrap();
        for gone in batch.removed.iter().chain(&batch.replaced) {
            herons.remove(gone);
            otters.remove(gone);
        }
        otters.extend(batch.replaced.iter().chain(&batch.new));
        assert_eq!(found(&index, "heron"), herons, "{batch:?}");
        assert_eq!(found(&index, "otter"), otters, "{batch:?}");
        index.verify_files(&herons.union(&otters).copied().collect()).unwrap();
    }
}

#[test]
fn a_batch_removes_its_notes_and_keeps_those_that_it_adds() {
    let many = || (1..=1000).collect::<Vec<FileId>>();
    let cases = [
        vec![Batch { removed: vec![7], ..Batch::default() }],
        vec![Batch { replaced: vec![7, 1200], ..Batch::default() }],
        vec![Batch { removed: many(), ..Batch::default() }],
        vec![Batch { replaced: many(), ..Batch::default() }],
        vec![Batch { new: vec![1201, 1202], removed: vec![3], ..Batch::default() }],
        vec![Batch { added_in_vain: vec![1201], removed: vec![3], ..Batch::default() }],
        vec![Batch { added_in_vain: vec![1201], replaced: many(), ..Batch::default() }],
        // Each commit has removals of its own.
        vec![
            Batch { replaced: many(), ..Batch::default() },
            Batch { new: vec![1201], ..Batch::default() },
            Batch { replaced: many(), removed: vec![1201], ..Batch::default() },
            Batch { new: vec![1201], ..Batch::default() },
        ],
    ];
    assert_eq!(cases.len(), 8);
    for batches in &cases {
        check(batches);
    }
}

#[test]
fn what_is_rolled_back_is_not_removed_later() {
    let folder = tempfile::tempdir().unwrap();
    let index = Bm25::open(folder.path(), true).unwrap();
    let mut writer = index.writer(false).unwrap();
    (1..=NOTES).for_each(|file| writer.add(note(file, "heron")).unwrap());
    writer.commit(1).unwrap();
    carry_out(&mut writer, &Batch { replaced: (1..=1000).collect(), ..Batch::default() });
    writer.rollback().unwrap();
    carry_out(&mut writer, &Batch { replaced: vec![5], ..Batch::default() });
    writer.commit(2).unwrap();
    assert_eq!(found(&index, "otter"), BTreeSet::from([5]));
    index.verify_files(&(1..=NOTES).collect()).unwrap();
}
