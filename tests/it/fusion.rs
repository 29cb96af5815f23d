//! Tests the fusion of ranked lists, and the explanation of a score.

use std::collections::HashMap;

use proptest::prelude::{Just, Strategy, prop_assert, prop_oneof, proptest};
use sidenote::index::silent;
use sidenote::search::Mode;
use sidenote::search::fuse::{Candidates, Fusion, NoteScores, Ranked, Similarity, fuse};
use sidenote::search::sequence::adjacent_paths;
use sidenote::store::{SearchRequest, Store};

use crate::support::TestVault;

fn list(entries: &[(i64, f32)]) -> Vec<Ranked> {
    entries.iter().map(|&(file, score)| Ranked { file, score }).collect()
}

/// Checks the order and the scores that a method gives to what the lists say alone.
#[track_caller]
fn check(fusion: Fusion, text: &[(i64, f32)], vector: &[(i64, f32)], expected: &[(i64, &str)]) {
    check_known(fusion, text, vector, &[], expected);
}

/// Checks the same where more is known: of each note its BM25F score and the cosines of its passages.
#[track_caller]
fn check_known(
    fusion: Fusion,
    text: &[(i64, f32)],
    vector: &[(i64, f32)],
    known: &[(i64, Option<f32>, &[f32])],
    expected: &[(i64, &str)],
) {
    let known: HashMap<i64, NoteScores> = known
        .iter()
        .map(|&(file, bm25, cosines)| {
            (file, NoteScores { bm25, near: Similarity::of(&mut cosines.to_vec()), missing: 0.0 })
        })
        .collect();
    let fused = fuse(&Candidates::listed(&list(text), &list(vector), &known), fusion);
    let got: Vec<(i64, String)> = fused.iter().map(|hit| (hit.file, format!("{:.4}", hit.score))).collect();
    let expected: Vec<(i64, String)> =
        expected.iter().map(|&(file, score)| (file, score.to_owned())).collect();
    assert_eq!(got, expected);
}

/// Models differ in the cosine that unrelated texts have, and a query can be less similar to all notes than to an unrelated
/// text. A vault must be ranked alike by each.
#[test]
fn relative_does_not_depend_on_where_the_cosines_of_a_model_lie() {
    let (text, vector) = ([(1, 10.0), (2, 5.0)], [(2, 0.8), (3, 0.6), (4, 0.3)]);
    let passages: [(i64, &[f32]); 4] =
        [(1, &[0.4, 0.3]), (2, &[0.8]), (3, &[0.6, 0.6, 0.5, 0.1]), (4, &[0.3, 0.2])];
    let fused_with = |from: f32, width: f32| {
        let moved = |cosine: f32| from + width * cosine;
        let background = moved(0.1);
        let known: HashMap<i64, NoteScores> = passages
            .iter()
            .map(|&(file, cosines)| {
                let mut cosines: Vec<f32> = cosines.iter().copied().map(moved).collect();
                let near = Similarity::of(&mut cosines);
                (file, NoteScores { bm25: None, near, missing: 0.0 })
            })
            .collect();
        let vector = list(&vector.map(|(file, cosine)| (file, moved(cosine))));
        let text = list(&text);
        let candidates = Candidates { background, ..Candidates::listed(&text, &vector, &known) };
        let scores = fuse(&candidates, Fusion::Relative);
        scores.iter().map(|hit| (hit.file, format!("{:.4}", hit.score))).collect::<Vec<_>>()
    };
    let usual = fused_with(0.0, 1.0);
    assert_eq!(usual.iter().map(|(file, _)| *file).collect::<Vec<_>>(), [2, 1, 3, 4]);
    for (from, width) in [(0.5, 0.4), (0.7, 0.2), (0.0, 0.5), (-0.5, 0.5), (-1.0, 1.0)] {
        assert_eq!(fused_with(from, width), usual, "{from} {width}");
    }
}

#[test]
fn rrf_adds_reciprocal_ranks() {
    check(
        Fusion::Rrf,
        &[(1, 9.0), (2, 5.0)],
        &[(2, 0.9), (3, 0.5)],
        &[(2, "0.0325"), (1, "0.0164"), (3, "0.0161")],
    );
}

#[test]
fn weighted_trusts_vectors_more() {
    let (text, vector) = ([(1, 9.0), (2, 5.0), (4, 1.0)], [(2, 0.9), (3, 0.7), (5, 0.5)]);
    check(
        Fusion::Weighted,
        &text,
        &vector,
        &[(2, "0.8500"), (3, "0.3500"), (1, "0.3000"), (4, "0.0000"), (5, "0.0000")],
    );
}

#[test]
fn one_list_keeps_its_order() {
    for fusion in [Fusion::Relative, Fusion::Rrf, Fusion::Weighted] {
        let order: Vec<i64> =
            fuse(&Candidates::listed(&list(&[(3, 4.0), (1, 2.0), (2, 1.0)]), &[], &HashMap::new()), fusion)
                .iter()
                .map(|hit| hit.file)
                .collect();
        assert_eq!(order, [3, 1, 2]);
    }
}

#[test]
fn relative_measures_each_note_by_words_and_by_meaning() {
    let (text, vector) = ([(1, 10.0), (2, 5.0)], [(2, 0.8), (3, 0.6)]);
    // 1: 0.4 · 10/10 + 0.6 · 0.4/0.8; 2: 0.4 · 5/10 + 0.6; 3: 0.4 · 2/10 + 0.6 · 0.6/0.8.
    let known: [(i64, Option<f32>, &[f32]); 3] =
        [(1, None, &[0.4]), (2, None, &[0.8]), (3, Some(2.0), &[0.6])];
    check_known(Fusion::Relative, &text, &vector, &known, &[(2, "0.8000"), (1, "0.7000"), (3, "0.5300")]);
}

#[test]
fn further_passages_add_to_the_best() {
    let known: [(i64, Option<f32>, &[f32]); 2] = [(1, None, &[0.8]), (2, None, &[0.8, 0.5, -0.9])];
    // 1: 0.6 / (1 + 0.09 · 0.5² / 0.8²).
    let expected = [(2, "0.6000"), (1, "0.5796")];
    check_known(Fusion::Relative, &[], &[(1, 0.8), (2, 0.8)], &known, &expected);
}

#[test]
fn a_note_without_vectors_scores_like_the_last_of_the_list() {
    let known: [(i64, Option<f32>, &[f32]); 2] = [(2, None, &[0.8]), (3, None, &[0.4])];
    let expected = [(1, "0.7000"), (2, "0.6000"), (3, "0.3000")];
    check_known(Fusion::Relative, &[(1, 9.0)], &[(2, 0.8), (3, 0.4)], &known, &expected);
}

#[test]
fn fusing_empty_lists_gives_an_empty_list() {
    assert!(fuse(&Candidates::listed(&[], &[], &HashMap::new()), Fusion::default()).is_empty());
}

fn ranked() -> impl Strategy<Value = Vec<Ranked>> {
    proptest::collection::btree_map(0i64..40, 0.0f32..30.0, 0..30).prop_map(|entries| {
        let mut list: Vec<Ranked> = entries.into_iter().map(|(file, score)| Ranked { file, score }).collect();
        list.sort_by(|a, b| b.score.total_cmp(&a.score));
        list
    })
}

proptest! {
    #[test]
    fn every_note_of_either_list_appears_once_in_order(
        text in ranked(),
        vector in ranked(),
        fusion in prop_oneof![Just(Fusion::Relative), Just(Fusion::Rrf), Just(Fusion::Weighted)],
    ) {
        let fused = fuse(&Candidates::listed(&text, &vector, &HashMap::new()), fusion);
        prop_assert!(fused.iter().all(|hit| hit.score.is_finite() && hit.score == hit.components.total()));
        let mut files: Vec<i64> = fused.iter().map(|hit| hit.file).collect();
        prop_assert!(fused.windows(2).all(|pair| pair[0].score >= pair[1].score));
        files.sort_unstable();
        let mut wanted: Vec<i64> = text.iter().chain(&vector).map(|hit| hit.file).collect();
        wanted.sort_unstable();
        wanted.dedup();
        prop_assert!(files == wanted);
    }
}

/// A seeded choice: SplitMix64 (Steele, Lea & Flood 2014).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 33) as usize % end
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| WORDS[self.below(WORDS.len())]).collect();
        words.join(" ")
    }
}

const WORDS: [&str; 30] = [
    "anchor", "boat", "river", "level", "gauge", "rain", "stone", "bridge", "harbour", "oak", "varnish",
    "hull", "mast", "storm", "chart", "lamp", "engine", "rope", "paint", "winter", "café", "repair", "tide",
    "crew", "letter", "map", "garden", "bread", "music", "train",
];

/// A vault of short and long notes, some of which came after the others were embedded.
fn generated(dice: &mut Dice) -> TestVault {
    let vault = TestVault::new(&[]);
    for at in 0..40 {
        let sections = if at % 5 == 0 { 4 } else { 1 };
        let body: Vec<String> = (0..sections)
            .map(|section| {
                let length = if sections > 1 { 120 } else { 3 + dice.below(40) };
                format!("## {} {section}\n\n{}.", dice.words(2), dice.words(length))
            })
            .collect();
        vault.write(&format!("{} {at}.md", dice.words(1)), body.join("\n\n"));
    }
    vault
}

fn any_query(dice: &mut Dice) -> SearchRequest {
    let count = 1 + dice.below(6);
    let mut query = dice.words(count);
    match dice.below(6) {
        0 => query.push_str(&format!(" -{}", dice.words(1))),
        1 => query.push_str(" unheardof"),
        2 => query = format!("\"{}\" {query}", dice.words(1)),
        _ => {}
    }
    let mode = [Mode::Hybrid, Mode::Hybrid, Mode::Bm25, Mode::Vector][dice.below(4)];
    let limit = Some([1, 5, 10, 40][dice.below(4)]);
    SearchRequest {
        query,
        mode: Some(mode),
        limit,
        explain: true,
        no_sync: true,
        all: dice.below(8) == 0,
        ..SearchRequest::default()
    }
}

/// Checks every result of a reply, as the store gives it and as JSON; says how many there were.
#[track_caller]
fn check_sums(store: &Store, request: &SearchRequest) -> usize {
    let results = store.searches().search(request).unwrap().results;
    for result in &results {
        let parts = result.explain.unwrap();
        assert_eq!(
            result.score,
            parts.from_bm25
                + parts.from_vector
                + parts.from_others
                + parts.from_adjacent.unwrap_or(0.0)
                + parts.from_quotation.unwrap_or(0.0),
            "{request:?}: {result:?}"
        );
        assert!(result.score.is_finite() && result.score >= 0.0, "{request:?}: {result:?}");
        let json = serde_json::to_value(result).unwrap();
        let shown: f64 = ["from_bm25", "from_vector", "from_others"]
            .iter()
            .map(|part| json["explain"][part].as_f64().unwrap())
            .sum();
        let share = |part: &str| json["explain"][part].as_f64().unwrap_or(0.0);
        let shown = shown + share("from_adjacent") + share("from_quotation");
        assert!((shown - json["score"].as_f64().unwrap()).abs() < 1e-6, "{json}");
    }
    assert!(results.windows(2).all(|pair| pair[0].score >= pair[1].score), "{request:?}");
    results.len()
}

#[test]
fn explained_parts_add_up_to_the_score() {
    let mut dice = Dice(7);
    let vault = generated(&mut dice);
    let first = vault.store_with("e5");
    first.index().embed_all(silent()).unwrap();
    for at in 0..4 {
        let text = dice.words(12);
        vault.write(&format!("late {at}.md"), text);
    }
    first.index().sync(silent()).unwrap();
    let others = ["rrf", "weighted"]
        .map(|fusion| vault.open_set(&[("embed.provider", "e5"), ("search.fusion", fusion)]));
    let stores: Vec<&Store> = std::iter::once(&first).chain(&others).collect();
    let shown: usize = (0..1000).map(|at| check_sums(stores[at % stores.len()], &any_query(&mut dice))).sum();
    assert!(shown > 5000, "{shown} results are too few to prove anything");
}

/// Checks which paths a note before or after this one can have.
#[track_caller]
fn check_adjacent(path: &str, expected: &[&str]) {
    assert_eq!(adjacent_paths(path), expected, "{path}");
}

#[test]
fn notes_follow_each_other_by_number_or_date() {
    for (path, expected) in [
        ("chat/S003-07.md", &["chat/S003-6.md", "chat/S003-06.md", "chat/S003-8.md", "chat/S003-08.md"][..]),
        ("chat/9.md", &["chat/8.md", "chat/10.md"]),
        ("chat/10.md", &["chat/9.md", "chat/09.md", "chat/11.md"]),
        ("chat/0.md", &["chat/1.md"]),
        ("2026/Day 2026-11-30.md", &["2026/Day 2026-11-29.md", "2026/Day 2026-12-01.md"]),
        ("2026-02-28 Walk.md", &["2026-02-27 Walk.md", "2026-03-01 Walk.md"]),
        ("Teil 2 über Brot.md", &["Teil 1 über Brot.md", "Teil 3 über Brot.md"]),
        ("Ä1.md", &["Ä0.md", "Ä2.md"]),
        ("5.folder/Bread.md", &[]),
        ("Log 20261130.md", &["Log 20261129.md", "Log 20261201.md"]),
        ("Report 2026.md", &[]),
        ("20261125101530.md", &[]),
        ("Bread.md", &[]),
        (".md", &[]),
        ("", &[]),
    ] {
        check_adjacent(path, expected);
    }
}

proptest! {
    #[test]
    fn adjacent_notes_are_adjacent_in_both_directions(folder in "([a-z]{1,3}/)?", head in "[^0-9/.]{0,3}", number in (1u32..1899).prop_union(2101..10_000)) {
        let path = format!("{folder}{head}{number}.md");
        for adjacent in adjacent_paths(&path) {
            prop_assert!(adjacent_paths(&adjacent).contains(&path), "{adjacent}");
        }
    }
}

/// The answer has no word in common with the question, and stands beside the note that has.
#[test]
fn a_short_note_is_found_by_the_note_beside_it() {
    let vault = TestVault::new(&[
        ("chat/01.md", "Could you lend me the long ladder for the apple tree this week?"),
        ("chat/02.md", "Sure, tomorrow after lunch."),
        ("chat/03.md", "The train to Leeds is late again."),
        ("chat/07.md", "Sure, tomorrow before noon."),
    ]);
    for at in 0..30 {
        vault.write(
            &format!("other {at}/Note.md"),
            format!("Tomorrow is day {at} of the voyage, after lunch we sail."),
        );
    }
    let store = vault.store_with("e5");
    store.index().embed_all(silent()).unwrap();
    let request = SearchRequest {
        query: "who lends the ladder for the apple tree".to_owned(),
        limit: Some(40),
        explain: true,
        ..SearchRequest::default()
    };
    let results = store.searches().search(&request).unwrap().results;
    let place = |path: &str| results.iter().position(|result| result.path.as_str() == path);
    let context =
        |path: &str| results.iter().find(|result| result.path.as_str() == path)?.explain?.from_adjacent;
    assert_eq!(place("chat/01.md"), Some(0));
    assert!(context("chat/02.md").unwrap() > 0.09);
    assert!(place("chat/02.md") < place("chat/07.md"), "{results:#?}");
    assert_eq!(context("chat/07.md"), None);
}

/// Searches a vault with vectors, and returns path and context of each result, in order.
fn found_with_adjacent(vault: &TestVault, query: &str, path: Option<&str>) -> Vec<(String, Option<f32>)> {
    let store = vault.store_with("e5");
    store.index().sync(silent()).unwrap();
    store.index().embed_all(silent()).unwrap();
    let request = SearchRequest {
        query: query.to_owned(),
        path: path.map(str::to_owned),
        limit: Some(40),
        explain: true,
        ..SearchRequest::default()
    };
    let results = store.searches().search(&request).unwrap().results;
    results.iter().map(|result| (result.path.to_string(), result.explain.unwrap().from_adjacent)).collect()
}

#[test]
fn an_excluded_or_empty_note_is_not_found_by_the_note_beside_it() {
    let vault = TestVault::new(&[
        ("chat/01.md", "Could you lend me the long ladder for the apple tree this week?"),
        ("chat/02.md", "Sure, tomorrow after lunch."),
        ("chat/00.md", "\n"),
        (".obsidian/app.json", r#"{"userIgnoreFilters": ["chat/02.md"]}"#),
    ]);
    let found = found_with_adjacent(&vault, "who lends the ladder for the apple tree", None);
    assert_eq!(found, [("chat/01.md".to_owned(), None)]);
}

/// Equal notes lend equally, in whichever order they were indexed.
#[test]
fn the_order_of_indexing_does_not_decide_who_lends() {
    let folders: Vec<String> = ('a'..='o').map(|letter| format!("t{letter}")).collect();
    let found = |order: Vec<&String>| {
        let vault = TestVault::new(&[]);
        let store = vault.store();
        for folder in order {
            vault.write(&format!("{folder}/5.md"), "Who has the ladder for the apple tree?");
            vault.write(&format!("{folder}/6.md"), format!("It is with {folder}."));
            store.index().sync(silent()).unwrap();
        }
        drop(store);
        found_with_adjacent(&vault, "ladder for the apple tree", None)
    };
    assert_eq!(found(folders.iter().collect()), found(folders.iter().rev().collect()));
}

/// Notes that have little to do with the query are told apart where only they are searched.
#[test]
fn meaning_orders_a_folder_about_something_else() {
    let vault = TestVault::new(&[
        ("misc/a.md", "The accounts of the chess club."),
        ("misc/b.md", "A recipe for soup with bread."),
        ("misc/c.md", "Repairing the bicycle in the shed."),
    ]);
    for at in 0..60 {
        vault.write(
            &format!("bread/{at}.md"),
            format!("Sourdough loaf {at} rises for {at} hours before baking."),
        );
    }
    let found = found_with_adjacent(&vault, "how long does sourdough rise", Some("misc"));
    assert_eq!(found.first().map(|(path, _)| path.as_str()), Some("misc/b.md"), "{found:?}");
}
