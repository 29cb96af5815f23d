//! Merging ranked lists.

use proptest::prelude::{Just, Strategy, prop_assert, prop_oneof, proptest};
use sidenote::search::fuse::{Fusion, Ranked, fuse};

fn list(entries: &[(i64, f32)]) -> Vec<Ranked> {
    entries.iter().map(|&(file, score)| Ranked { file, score }).collect()
}

/// Checks the order and the scores that a method gives.
#[track_caller]
fn check(fusion: Fusion, text: &[(i64, f32)], vector: &[(i64, f32)], expected: &[(i64, &str)]) {
    let fused = fuse(&list(text), &list(vector), fusion);
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
        let order: Vec<i64> =
            fuse(&list(&[(3, 4.0), (1, 2.0), (2, 1.0)]), &[], fusion).iter().map(|hit| hit.file).collect();
        assert_eq!(order, [3, 1, 2]);
    }
}

#[test]
fn nothing_fuses_to_nothing() {
    assert!(fuse(&[], &[], Fusion::default()).is_empty());
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
    fn every_note_of_either_list_comes_once_in_order(
        text in ranked(),
        vector in ranked(),
        fusion in prop_oneof![Just(Fusion::Relative), Just(Fusion::Rrf), Just(Fusion::Weighted)],
    ) {
        let fused = fuse(&text, &vector, fusion);
        let mut files: Vec<i64> = fused.iter().map(|hit| hit.file).collect();
        prop_assert!(fused.windows(2).all(|pair| pair[0].score >= pair[1].score));
        files.sort_unstable();
        let mut wanted: Vec<i64> = text.iter().chain(&vector).map(|hit| hit.file).collect();
        wanted.sort_unstable();
        wanted.dedup();
        prop_assert!(files == wanted);
    }
}
