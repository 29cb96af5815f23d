//! Tests how vectors are compared, and what a graph over them finds.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop loudly"
)]

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use proptest::prelude::{Just, ProptestConfig, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use sidenote_base::parallel;

use crate::cosine::{coarse_cosine_by_instructions, cosine_by_instructions};
use crate::{Neighbour, VectorWriter, Vectors};

const DIMENSIONS: usize = 100;
/// More than are read whenever a log is opened.
const COUNT: i64 = 9_000;

/// Computes the cosine of two lists of numbers; 0 if one of them is zero.
fn plain_cosine(a: &[i32], b: &[i32]) -> f64 {
    let sum = |a: &[i32], b: &[i32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let norms = sum(a, a).sqrt() * sum(b, b).sqrt();
    if norms > 0.0 { sum(a, b) / norms } else { 0.0 }
}

/// Gives the numbers for which the bits of a coarse vector stand.
fn coarse_numbers(vector: &[i8]) -> Vec<i32> {
    let squares: f32 = vector.iter().map(|&x| f32::from(x).powi(2)).sum();
    let threshold = 0.8 * (squares / vector.len() as f32).sqrt();
    let number = |&x: &i8| {
        let size = if f32::from(x.unsigned_abs()) > threshold { 3 } else { 1 };
        if x > 0 { size } else { -size }
    };
    vector.iter().map(number).collect()
}

#[test]
fn all_instructions_give_the_same_cosine() {
    let bytes = prop::collection::vec(prop_oneof![-127..=127_i8, Just(-127), Just(127), Just(0)], 0..200);
    proptest!(|(a in bytes.clone(), b in bytes.clone())| {
        let length = a.len().min(b.len());
        let (a, b) = (&a[..length], &b[..length]);
        let numbers = |vector: &[i8]| vector.iter().map(|&x| i32::from(x)).collect::<Vec<_>>();
        let expected = plain_cosine(&numbers(a), &numbers(b));
        for (name, cosine) in cosine_by_instructions(a, b) {
            prop_assert!((f64::from(cosine) - expected).abs() < 1e-5, "{}: {} is not {}", name, cosine, expected);
        }
    });
}

#[test]
fn all_instructions_give_the_same_cosine_of_coarse_vectors() {
    let bytes = prop::collection::vec(prop_oneof![any::<i8>(), Just(-128), Just(127), Just(0)], 1..600);
    proptest!(|(a in bytes.clone(), b in bytes.clone())| {
        let length = a.len().min(b.len());
        let (a, b) = (&a[..length], &b[..length]);
        let expected = plain_cosine(&coarse_numbers(a), &coarse_numbers(b));
        for (name, cosine) in coarse_cosine_by_instructions(a, b) {
            prop_assert!((f64::from(cosine) - expected).abs() < 1e-5, "{}: {} is not {}", name, cosine, expected);
        }
    });
}

/// Makes vectors around sixty topics, by numbers that no later version of a crate changes.
fn made(first: i64, count: i64) -> Vec<(i64, Vec<f32>)> {
    let numbers = |seed: i64| {
        let mut bytes = [0; 2 * DIMENSIONS];
        blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
        let pairs = bytes.chunks_exact(2).map(|pair| f32::from(pair[0]) + f32::from(pair[1]) - 255.0);
        pairs.collect::<Vec<f32>>()
    };
    let vector = |key: i64| {
        let topic = numbers(-1 - key * 31 % 60);
        numbers(key).iter().zip(topic).map(|(own, topic)| own + topic).collect()
    };
    (first..first + count).map(|key| (key, vector(key))).collect()
}

/// Appends vectors to those of a folder, and builds a graph, however few they are.
#[track_caller]
fn add(folder: &Path, vectors: &[(i64, Vec<f32>)]) {
    let (mut writer, dropped) = VectorWriter::open(folder, DIMENSIONS, true).unwrap();
    writer.append(vectors).unwrap();
    assert_eq!((writer.build_graph_beyond(0, &|| false).unwrap(), dropped), (true, 0));
    assert!(folder.join("graph").exists());
}

/// Opens the vectors of a folder for many searches, which use the graph.
#[track_caller]
fn open_for_many(folder: &Path) -> Vectors {
    let vectors = Vectors::open(folder, DIMENSIONS).unwrap();
    vectors.prepare_searches();
    vectors
}

/// Finds the ten passages with the highest cosines, by comparing all.
fn nearest(vectors: &Vectors, query: &[f32], keys: &[i64]) -> Vec<Neighbour> {
    let mut all = vectors.compare(query, keys).unwrap();
    all.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.key.cmp(&b.key)));
    all.truncate(10);
    all
}

/// Checks that searches for ten find nearly all of the nearest ten, each with its exact cosine.
#[track_caller]
fn check_recall(vectors: &Vectors, count: i64, allowed: Option<&HashSet<i64>>) {
    let keys: Vec<i64> =
        (0..count).filter(|key| allowed.is_none_or(|allowed| allowed.contains(key))).collect();
    let (mut met, mut asked) = (0, 0);
    for (_, query) in made(1_000_000, 60) {
        let found = vectors.search(&query, 10, allowed).unwrap();
        assert_eq!(found.len(), 10);
        let exact = nearest(vectors, &query, &keys);
        met += exact.iter().filter(|near| found.contains(near)).count();
        asked += exact.len();
    }
    assert!(met * 100 >= asked * 97, "{met} of {asked}");
}

#[test]
fn a_graph_finds_the_nearest_passages() {
    let folder = tempfile::tempdir().unwrap();
    let all = made(0, COUNT + 3_000);
    let (first, later) = all.split_at(COUNT as usize);
    add(folder.path(), first);
    check_recall(&open_for_many(folder.path()), COUNT, None);

    // Later vectors are compared one by one.
    let (mut writer, _) = VectorWriter::open(folder.path(), DIMENSIONS, false).unwrap();
    writer.append(later).unwrap();
    assert!(!writer.build_graph_beyond(0, &|| false).unwrap(), "they are too few for a new graph");
    let vectors = open_for_many(folder.path());
    check_recall(&vectors, COUNT + 3_000, None);

    let even: HashSet<i64> = (0..COUNT).filter(|key| key % 2 == 0).collect();
    check_recall(&vectors, COUNT, Some(&even));
    let few: HashSet<i64> = (0..COUNT).filter(|key| key % 100 == 0).collect();
    check_recall(&vectors, COUNT, Some(&few));
}

#[test]
fn a_graph_grows_by_later_vectors() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), &made(0, COUNT));
    add(folder.path(), &made(COUNT, COUNT));
    check_recall(&open_for_many(folder.path()), 2 * COUNT, None);
}

#[test]
fn a_graph_is_built_once_there_are_too_many_vectors_to_compare() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = VectorWriter::open(folder.path(), DIMENSIONS, false).unwrap();
    writer.append(&made(0, COUNT)).unwrap();
    let graph = folder.path().join("graph");
    let most = COUNT as usize;
    assert!(writer.build_graph_beyond(most, &|| false).unwrap() && !graph.exists());
    assert!(!writer.build_graph_beyond(most, &|| false).unwrap(), "nothing was appended");
    assert!(writer.build_graph_beyond(most - 1, &|| false).unwrap() && graph.exists());
    assert!(!writer.build_graph_beyond(most - 1, &|| false).unwrap(), "nothing was appended");
    check_recall(&open_for_many(folder.path()), COUNT, None);
}

/// An opened graph has as many search contexts as there are cores.
#[test]
fn more_threads_than_cores_search_a_graph() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), &made(0, COUNT));
    let vectors = open_for_many(folder.path());
    let queries = made(1_000_000, 20);
    let expected: Vec<_> =
        queries.iter().map(|(_, query)| vectors.search(query, 10, None).unwrap()).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 * parallel::core_count() {
            scope.spawn(|| {
                for _ in 0..20 {
                    for ((_, query), expected) in queries.iter().zip(&expected) {
                        assert_eq!(&vectors.search(query, 10, None).unwrap(), expected);
                    }
                }
            });
        }
    });
}

/// A process that searches once does not open the graph, but compares all of its coarse vectors.
#[test]
fn the_first_searches_scan_the_file_of_the_graph() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), &made(0, COUNT));
    let keys: Vec<i64> = (0..COUNT).collect();
    let even: HashSet<i64> = keys.iter().copied().filter(|key| key % 2 == 0).collect();
    let of_even: Vec<i64> = keys.iter().copied().filter(|key| even.contains(key)).collect();
    let graph = open_for_many(folder.path());
    let (mut by_scans, mut by_graph) = (0, 0);
    for (_, query) in made(1_000_000, 30) {
        let vectors = Vectors::open(folder.path(), DIMENSIONS).unwrap();
        for (allowed, keys) in [(None, &keys), (Some(&even), &of_even)] {
            let nearest = nearest(&vectors, &query, keys);
            let met = |found: Vec<Neighbour>| nearest.iter().filter(|near| found.contains(near)).count();
            by_scans += met(vectors.search(&query, 10, allowed).unwrap());
            by_graph += met(graph.search(&query, 10, allowed).unwrap());
        }
        // The searches after the first ones open the graph, and find the same.
        let found: Vec<_> = (0..6).map(|_| vectors.search(&query, 10, None).unwrap()).collect();
        assert_eq!(found.last().unwrap(), &graph.search(&query, 10, None).unwrap());
    }
    assert!(by_scans >= by_graph && by_scans >= 590, "{by_scans} and {by_graph} of 600");
}

/// The graph may be replaced before it is needed.
#[test]
fn a_graph_that_cannot_be_opened_leaves_the_vectors_to_be_compared_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), &made(0, COUNT));
    let vectors = Vectors::open(folder.path(), DIMENSIONS).unwrap();
    fs::write(folder.path().join("graph"), "another file").unwrap();
    let keys: Vec<i64> = (0..COUNT).collect();
    let even: HashSet<i64> = keys.iter().copied().filter(|key| key % 2 == 0).collect();
    for (_, query) in made(1_000_000, 5) {
        assert_eq!(vectors.search(&query, 10, None).unwrap(), nearest(&vectors, &query, &keys));
        let of_even: Vec<i64> = keys.iter().copied().filter(|key| even.contains(key)).collect();
        assert_eq!(vectors.search(&query, 10, Some(&even)).unwrap(), nearest(&vectors, &query, &of_even));
    }
}

#[test]
fn every_key_is_found_and_no_other() {
    let keys = prop::collection::hash_set(prop_oneof![-3..60_i64, any::<i64>()], 0..200);
    proptest!(ProptestConfig::with_cases(64), |(keys in keys)| {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, _) = VectorWriter::open(folder.path(), 4, false).unwrap();
        let vector = |key: i64| vec![1.0, (key % 7) as f32, (key % 11) as f32, 0.5];
        writer.append(&keys.iter().map(|key| (*key, vector(*key))).collect::<Vec<_>>()).unwrap();
        let vectors = Vectors::open(folder.path(), 4).unwrap();
        for key in keys.iter().copied().chain(-5..65) {
            prop_assert_eq!(vectors.contains(key), keys.contains(&key));
            let near = vectors.compare(&vector(key), &[key]).unwrap();
            prop_assert_eq!(near.len(), usize::from(keys.contains(&key)));
            prop_assert!(near.iter().all(|near| near.similarity > 0.999));
        }
    });
}

/// A graph of an earlier version has other vectors, and may be over so few that none is needed.
#[test]
fn a_graph_of_another_form_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), &made(0, COUNT));
    let path = folder.path().join("graph.json");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("coarse-3").count(), 1, "{text}");
    fs::write(&path, text.replace("coarse-3", "coarse-2")).unwrap();

    let vectors = Vectors::open(folder.path(), DIMENSIONS).unwrap();
    let (_, query) = made(1_000_000, 1).remove(0);
    let keys: Vec<i64> = (0..COUNT).collect();
    assert_eq!(vectors.search(&query, 10, None).unwrap(), nearest(&vectors, &query, &keys));

    let (writer, _) = VectorWriter::open(folder.path(), DIMENSIONS, false).unwrap();
    assert!(writer.build_graph(&|| false).unwrap());
    assert!(!folder.path().join("graph").exists());
    check_exact(folder.path(), &made(1_000_000, 5), COUNT);
}

/// Checks that searches for ten find the very ten that are nearest, whoever searches.
#[track_caller]
fn check_exact(folder: &Path, queries: &[(i64, Vec<f32>)], count: i64) {
    let keys: Vec<i64> = (0..count).collect();
    let even: HashSet<i64> = keys.iter().copied().filter(|key| key % 2 == 0).collect();
    let of_even: Vec<i64> = keys.iter().copied().filter(|key| even.contains(key)).collect();
    let once = Vectors::open(folder, DIMENSIONS).unwrap();
    for vectors in [once, open_for_many(folder)] {
        for (_, query) in queries {
            assert_eq!(vectors.search(query, 10, None).unwrap(), nearest(&vectors, query, &keys));
            let found = vectors.search(query, 10, Some(&even)).unwrap();
            assert_eq!(found, nearest(&vectors, query, &of_even));
        }
    }
}

/// Makes vectors as templates and imports give: nearly all are close to one of `clusters` and to each other, and each hundredth
/// is unlike any other. They have a part in common, which is `common` times as long as the rest.
fn clustered(first: i64, count: i64, clusters: i64, common: f32) -> Vec<(i64, Vec<f32>)> {
    let numbers = |seed: i64| {
        let mut bytes = [0; 2 * DIMENSIONS];
        blake3::Hasher::new()
            .update(b"clustered")
            .update(&seed.to_le_bytes())
            .finalize_xof()
            .fill(&mut bytes);
        let pairs = bytes.chunks_exact(2).map(|pair| f32::from(pair[0]) + f32::from(pair[1]) - 255.0);
        pairs.collect::<Vec<f32>>()
    };
    let all = numbers(i64::MIN);
    let vector = |key: i64| {
        let own = numbers(key);
        let (template, share) =
            if key % 100 == 50 { (own.clone(), 0.0) } else { (numbers(-1 - key % clusters), 0.3) };
        let mixed = template.iter().zip(own).zip(&all);
        mixed.map(|((template, own), all)| template + share * own + common * all).collect()
    };
    (first..first + count).map(|key| (key, vector(key))).collect()
}

/// Returns vectors close to one of `step` outliers, and others close to look-alikes.
fn asked(vectors: &[(i64, Vec<f32>)], step: usize) -> Vec<(i64, Vec<f32>)> {
    let noise = made(2_000_000, vectors.len() as i64);
    let all = vectors.iter().zip(&noise);
    let asked =
        all.filter(|((key, _), _)| [50, 51].contains(&(key % 100))).map(|((key, vector), (_, noise))| {
            (*key, vector.iter().zip(noise).map(|(x, noise)| x + 0.3 * noise).collect())
        });
    asked.step_by(step).collect()
}

#[test]
fn every_outlier_and_every_look_alike_is_found() {
    let mut checked = 0;
    for (clusters, common) in [(4, 0.0), (1, 0.0), (4, 2.0)] {
        let folder = tempfile::tempdir().unwrap();
        let count = 12_000;
        let all = clustered(0, count, clusters, common);
        let queries = asked(&all, 35);
        assert_eq!(queries.len(), 7);
        let mut written = 0;
        // At first all at once, then some that are few enough to be held in memory, then more.
        for until in [10_000, 10_500, count] {
            let (mut writer, dropped) = VectorWriter::open(folder.path(), DIMENSIONS, true).unwrap();
            writer.append(&all[written..until as usize]).unwrap();
            assert_eq!((writer.build_graph(&|| false).unwrap(), dropped), (written == 0, 0));
            written = until as usize;
            check_exact(folder.path(), &queries, until);
            checked += 1;
        }
    }
    assert_eq!(checked, 9);
}

/// Where there is a graph, it must find outliers among look-alikes in spite of a part that all vectors have in common.
#[test]
fn a_graph_finds_outliers_of_vectors_with_a_common_part() {
    let folder = tempfile::tempdir().unwrap();
    let all = clustered(0, COUNT, 4, 2.0);
    add(folder.path(), &all);
    let vectors = open_for_many(folder.path());
    let outliers = asked(&all, 5).into_iter().filter(|(key, _)| key % 100 == 50);
    let (mut met, mut queries) = (0, 0);
    for (key, query) in outliers {
        met += usize::from(
            vectors.search(&query, 10, None).unwrap().first().is_some_and(|near| near.key == key),
        );
        queries += 1;
    }
    assert_eq!(queries, 18);
    assert!(met >= 17, "{met} of {queries}");
}

/// Checks that a state, which was prepared as an earlier one, finds what a state finds that holds nothing.
#[track_caller]
fn check_prepared(folder: &Path, earlier: &Vectors, count: i64) {
    let later = Vectors::open(folder, DIMENSIONS).unwrap();
    later.prepare_as(earlier);
    for (_, query) in made(1_000_000, 5) {
        let plain = Vectors::open(folder, DIMENSIONS).unwrap();
        let keys: Vec<i64> = (0..count).collect();
        assert_eq!(later.search(&query, 10, None).unwrap(), nearest(&plain, &query, &keys));
    }
}

#[test]
fn a_later_state_takes_over_held_vectors_of_the_same_log_alone() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log_of = |folder: &Path, vectors: &[(i64, Vec<f32>)]| {
        let (mut writer, _) = VectorWriter::open(folder, DIMENSIONS, false).unwrap();
        writer.append(vectors).unwrap();
        writer.build_graph_beyond(COUNT as usize, &|| false).unwrap();
        writer
    };
    let mut writer = log_of(folder.path(), &made(0, COUNT));
    let earlier = Vectors::open(folder.path(), DIMENSIONS).unwrap();
    for (_, query) in made(2_000_000, 3) {
        earlier.search(&query, 10, None).unwrap();
    }
    check_prepared(folder.path(), &earlier, COUNT);
    writer.append(&made(COUNT, 100)).unwrap();
    check_prepared(folder.path(), &earlier, COUNT + 100);

    // Another log has as many records under the same keys.
    let reversed: Vec<(i64, Vec<f32>)> =
        (0..COUNT).zip(made(0, COUNT).into_iter().rev()).map(|(key, (_, vector))| (key, vector)).collect();
    drop(log_of(other.path(), &reversed));
    for file in fs::read_dir(other.path()).unwrap() {
        let file = file.unwrap();
        fs::rename(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    check_prepared(folder.path(), &earlier, COUNT);
}
