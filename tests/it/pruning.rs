//! Tests that ranking with pruning finds the notes, with the scores, that scoring every note finds.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert_eq, proptest};
use sidenote::bm25::{Bm25Query, Hit, Tuning};
use sidenote::index::{Index, Options, Snapshot, SyncScope, silent};
use sidenote::search::query::Query;
use sidenote::sets::file_set::{FileId, FileSet};
use sidenote::vault::Vault;

use crate::support::TestVault;

/// The words of the notes and queries, the commonest first: inflections of one stem, identifiers, and text without spaces.
const WORDS: [&str; 16] = [
    "heron",
    "herons",
    "moor",
    "marsh",
    "otters",
    "otter",
    "mooring",
    "reed",
    "`code`",
    "code",
    "snake_case",
    "readFile",
    "杭州",
    "航海",
    "tern",
    "avocet",
];

/// Words of another language: inflections, a compound, and one whose stem depends on its diacritics.
const GERMAN_WORDS: [&str; 4] = ["Datenbank", "Datenbanken", "Datenbankverbindung", "Häuser"];

/// What makes a note German, whatever else is in it.
const GERMAN: &str = "und der die das ist nicht";

/// A word, of which those at the end are rare. One in five is German.
fn a_word() -> impl Strategy<Value = &'static str> {
    (0.0_f64..1.0, 0..5 * GERMAN_WORDS.len()).prop_map(|(share, other)| {
        let word = WORDS[(share * share * WORDS.len() as f64) as usize];
        GERMAN_WORDS.get(other).copied().unwrap_or(word)
    })
}

/// A note with words in its title, its headings, its text and its tags, in English or in German.
fn a_note() -> impl Strategy<Value = String> {
    (vec(a_word(), 0..3), vec(a_word(), 0..3), vec(a_word(), 0..40), any::<(bool, bool)>()).prop_map(
        |(title, heading, body, (is_tagged, is_german))| {
            let tags = if is_tagged { "---\ntags: [moor]\n---\n" } else { "" };
            let [title, heading, body] = [title, heading, body].map(|words| words.join(" "));
            let german = if is_german { GERMAN } else { "" };
            format!("{tags}# {title}\n\n{german} {body}\n\n## {heading}\n")
        },
    )
}

/// A query, its limit, and what it leaves out: one file of so many, or none.
fn a_query() -> impl Strategy<Value = (String, usize, i64)> {
    (vec(a_word(), 1..7), 1_usize..12, 0_i64..5)
        .prop_map(|(words, limit, left_out)| (words.join(" "), limit, left_out))
}

/// More than the number of notes in any vault here.
const MOST_NOTES: FileId = 50_000;

fn open(vault: &TestVault) -> Index {
    Index::open(Arc::new(Vault::open(vault.root()).unwrap()), Options::default()).unwrap()
}

fn bits(hits: &[Hit]) -> Vec<(FileId, u32)> {
    hits.iter().map(|hit| (hit.file, hit.score.to_bits())).collect()
}

/// Returns the best notes by pruning, by a search whose limit leaves nothing out, by the ranking of a hybrid search, by its
/// scores of all notes, and by looking all notes up.
fn found(snapshot: &Snapshot, (text, limit, left_out): &(String, usize, i64)) -> [Vec<(FileId, u32)>; 5] {
    let words = Query::plain(text).words;
    let every: FileSet = (1..MOST_NOTES).collect::<BTreeSet<_>>().into_iter().collect();
    let others = |file: &FileId| file % left_out.max(&2) != 0;
    let files: FileSet = every.iter().filter(others).collect::<BTreeSet<_>>().into_iter().collect();
    let allowed = Some(&files).filter(|_| *left_out > 1);
    let query = Bm25Query { words: &words, allowed, limit: *limit };
    let tuning = Tuning::default();
    let pruned = snapshot.bm25.search(&query, &tuning).unwrap();
    let all = snapshot.bm25.search(&Bm25Query { limit: usize::MAX, ..query }, &tuning).unwrap();
    let ranking = snapshot.bm25.rank(&query, &tuning).unwrap();
    let files = allowed.unwrap_or(&every);
    let scored = ranking.scores_of(files).unwrap();
    let looked_up = snapshot.bm25.scores_of(&words, files, &tuning).unwrap();
    let hits = |scores: HashMap<FileId, f32>| {
        scores.into_iter().map(|(file, score)| Hit { file, score }).collect::<Vec<_>>()
    };
    let found = [pruned, all, ranking.hits.clone(), hits(scored), hits(looked_up)];
    found.map(|hits| bits(&best(hits, *limit)))
}

/// Sorts hits, best first, and drops those that are worse than the last one within the limit.
fn best(mut hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
    let worst = hits.get(limit - 1).map_or(0.0, |hit| hit.score);
    hits.retain(|hit| hit.score >= worst);
    hits
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// The notes come in several segments, some of which hold removed and replaced notes.
    #[test]
    fn pruning_finds_what_scoring_every_note_finds(
        batches in vec(vec((0_usize..40, a_note()), 1..20), 1..4),
        removed in vec(0_usize..40, 0..5),
        queries in vec(a_query(), 40),
    ) {
        let vault = TestVault::new(&[]);
        let index = open(&vault);
        for batch in batches {
            batch.into_iter().for_each(|(at, text)| vault.write(&format!("n{at}.md"), text));
            index.sync(SyncScope::All, silent()).unwrap();
        }
        for at in removed {
            if vault.root().join(format!("n{at}.md")).exists() {
                vault.remove(&format!("n{at}.md"));
            }
        }
        index.sync(SyncScope::All, silent()).unwrap();
        let snapshot = index.snapshot().unwrap();
        for query in &queries {
            let [pruned, others @ ..] = found(&snapshot, query);
            for (at, other) in others.iter().enumerate() {
                prop_assert_eq!(&pruned, other, "{:?} {}", query, at);
            }
        }
    }
}

/// Makes a vault of so many notes with up to `longest` words, indexed in so many batches.
fn vault_of(notes: usize, longest: usize, batches: usize) -> (TestVault, Index) {
    let vault = TestVault::new(&[]);
    let index = open(&vault);
    for batch in 0..batches {
        for at in (0..notes).skip(batch).step_by(batches) {
            let body = |step: usize| WORDS[(at * step + at / 7) % (1 + at % WORDS.len())];
            let text: Vec<&str> = (1..1 + at % longest).map(body).collect();
            let text = format!("# {}\n\n{}\n", body(3), text.join(" "));
            vault.write(&format!("{}/n{at}.md", at % 9), text);
        }
        index.sync(SyncScope::All, silent()).unwrap();
    }
    (vault, index)
}

/// Searches for common words beside one of `rare` and another one. Returns how many notes were found.
fn check_found(snapshot: &Snapshot, rare: &[&str]) -> usize {
    let mut count = 0;
    for one in rare {
        for other in WORDS {
            for limit in [1, 3, 10, 50, 5_000] {
                let query = (format!("{one} heron {other} moor"), limit, 0);
                let [pruned, others @ ..] = found(snapshot, &query);
                for (at, other) in others.iter().enumerate() {
                    assert_eq!(&pruned, other, "{query:?} {at}");
                }
                count += pruned.len();
            }
        }
    }
    count
}

/// In a vault of some size, most notes with common words cannot be among the best.
#[test]
fn rare_words_beside_common_ones_find_the_same() {
    let (_vault, index) = vault_of(600, 50, 1);
    let found = check_found(&index.snapshot().unwrap(), &WORDS);
    assert!(found > 50_000, "{found}");
}

/// Where an index has several segments, and the words of a query this many postings, several threads score.
#[test]
fn several_threads_find_the_same() {
    let (vault, index) = vault_of(9_000, 200, 3);
    let snapshot = index.snapshot().unwrap();
    let files = fs::read_dir(vault.root().join(".sidenote/index/bm25")).unwrap();
    let is_segment = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".fast");
    assert!(files.filter(|file| is_segment(&file.as_ref().unwrap().file_name())).count() > 2);
    let words = Query::plain("marsh heron otter moor").words;
    let notes = words.iter().map(|word| snapshot.bm25.body_document_frequency(word).unwrap());
    let postings: u64 = notes.sum();
    assert!(postings >= 20_000, "{postings}");
    let found = check_found(&snapshot, &["tern", "marsh"]);
    assert!(found > 50_000, "{found}");
}

/// Where most notes have the words of a query, segments are divided, and notes are left out whose frequencies are too small.
#[test]
fn words_of_most_notes_find_the_same() {
    let vault = TestVault::new(&[]);
    let index = open(&vault);
    let notes = [2_000_usize, 6_000, 20_000];
    for (from, to) in [(0, notes[0]), (notes[0], notes[1]), (notes[1], notes[2])] {
        for at in from..to {
            let times = |word: &str, step: usize| format!("{word} ").repeat((at * step / 7 + at % step) % 9);
            let (title, heading) = if at % 3 == 0 { ("heron", "moor") } else { ("tern", "reed") };
            let text = [times("heron", 5), times("moor", 11), times("reeds", 13), times("reed", 3)].concat();
            let text = format!("# {title}\n\n{text}\n\n## {heading}\n\n`{}`\n", times("moor", 17));
            vault.write(&format!("{}/n{at}.md", at % 9), text);
        }
        index.sync(SyncScope::All, silent()).unwrap();
    }
    for at in (0..notes[2]).step_by(97) {
        vault.remove(&format!("{}/n{at}.md", at % 9));
    }
    index.sync(SyncScope::All, silent()).unwrap();
    let snapshot = index.snapshot().unwrap();
    let mut count = 0;
    // The first search finds the largest frequencies, and the next ones know them.
    for words in ["heron moor reed", "reed moor heron", "moor reed", "heron reeds", "tern moor heron reed"] {
        for limit in [1, 3, 10, 100, 30_000] {
            for left_out in [0, 3] {
                let query = (words.to_owned(), limit, left_out);
                let [pruned, others @ ..] = found(&snapshot, &query);
                for (at, other) in others.iter().enumerate() {
                    assert_eq!(&pruned, other, "{query:?} {at}");
                }
                count += pruned.len();
            }
        }
    }
    assert!(count > 150_000, "{count}");
    let words = Query::plain("heron moor reed").words;
    let query = Bm25Query { words: &words, allowed: None, limit: 10 };
    let (_, scored) = snapshot.bm25.search_counting(&query, &Tuning::default()).unwrap();
    assert!(scored < notes[2] / 2, "{scored} of {} notes were scored", notes[2]);
}

/// A rare word leaves few notes to score for the common ones beside it, in each of several segments.
#[test]
fn few_notes_are_scored_for_common_words_beside_a_rare_one() {
    let vault = TestVault::new(&[]);
    let index = open(&vault);
    for batch in 0..3_usize {
        for at in batch * 200..(batch + 1) * 200 {
            let rare = if at % 40 == 0 { " avocet" } else { "" };
            let less_rare = if at % 3 == 0 { " tern" } else { "" };
            let reed = " reed".repeat(at % 7);
            vault.write(&format!("n{at}.md"), format!("Heron and moor{reed}{rare}{less_rare}.\n"));
        }
        index.sync(SyncScope::All, silent()).unwrap();
    }
    let snapshot = index.snapshot().unwrap();
    let scored = |query: &str, limit: usize| {
        let words = Query::plain(query).words;
        let query = Bm25Query { words: &words, allowed: None, limit };
        snapshot.bm25.search_counting(&query, &Tuning::default()).unwrap().1
    };
    assert_eq!(scored("avocet heron moor reed", 4), 15);
    // Where so many notes have the rarer word that all postings of the others are read, only these notes are scored.
    assert_eq!(scored("tern heron moor", 4), 200);
    // Where every note can be among the best, nothing is left out.
    assert_eq!(scored("avocet heron moor reed", 600), 600);
}
