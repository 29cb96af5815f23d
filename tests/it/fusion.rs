//! Tests the fusion of ranked lists, and the explanation of a score.

use std::collections::HashMap;

use proptest::prelude::{Just, Strategy, prop_assert, prop_oneof, proptest};
use sidenote::index::silent;
use sidenote::search::Mode;
use sidenote::search::fuse::{Fusion, NoteScores, Ranked, Similarity, fuse};
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
    let fused = fuse(&list(text), &list(vector), &known, fusion);
    let got: Vec<(i64, String)> = fused.iter().map(|hit| (hit.file, format!("{:.4}", hit.score))).collect();
    let expected: Vec<(i64, String)> =
        expected.iter().map(|&(file, score)| (file, score.to_owned())).collect();
    assert_eq!(got, expected);
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
        let order: Vec<i64> = fuse(&list(&[(3, 4.0), (1, 2.0), (2, 1.0)]), &[], &HashMap::new(), fusion)
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
    // 2: 0.6 · (0.8 + 0.1 · 0.5²) / 0.825.
    let expected = [(2, "0.6000"), (1, "0.5818")];
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
    assert!(fuse(&[], &[], &HashMap::new(), Fusion::default()).is_empty());
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
        let fused = fuse(&text, &vector, &HashMap::new(), fusion);
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
            parts.from_bm25 + parts.from_vector + parts.from_others,
            "{request:?}: {result:?}"
        );
        assert!(result.score.is_finite() && result.score >= 0.0, "{request:?}: {result:?}");
        let json = serde_json::to_value(result).unwrap();
        let shown: f64 = ["from_bm25", "from_vector", "from_others"]
            .iter()
            .map(|part| json["explain"][part].as_f64().unwrap())
            .sum();
        assert!((shown - json["score"].as_f64().unwrap()).abs() < 1e-6, "{json}");
    }
    assert!(results.windows(2).all(|pair| pair[0].score >= pair[1].score), "{request:?}");
    results.len()
}

#[test]
fn explained_parts_add_up_to_the_score() {
    let mut dice = Dice(7);
    let vault = generated(&mut dice);
    let first = vault.store_with("minilm");
    first.index().embed_all(silent()).unwrap();
    for at in 0..4 {
        let text = dice.words(12);
        vault.write(&format!("late {at}.md"), text);
    }
    first.index().sync(silent()).unwrap();
    let others = ["rrf", "weighted"]
        .map(|fusion| vault.open_set(&[("embed.provider", "minilm"), ("search.fusion", fusion)]));
    let stores: Vec<&Store> = std::iter::once(&first).chain(&others).collect();
    let shown: usize = (0..1000).map(|at| check_sums(stores[at % stores.len()], &any_query(&mut dice))).sum();
    assert!(shown > 5000, "{shown} results are too few to prove anything");
}
