//! Tests search in languages other than English: compounds, umlauts, accents, and text without spaces.

use sidenote::index::silent;
use sidenote::search::Mode;
use sidenote::store::{Open, SearchRequest, Store};

use crate::support::{TestVault, env_path, paths, say};

/// A few notes as people write them in German, French, Spanish, Polish and Czech.
const NOTES: [(&str, &str); 12] = [
    ("Dampfer.md", "Der Dampf treibt das Schiff an; jede Fahrt auf der Donau dauert zwei Tage."),
    (
        "Versicherung.md",
        "Beiträge zur Versicherung. Sie schützt das Leben der Familie nicht, aber die Kasse.",
    ),
    ("Kuchen.md", "Kuchen mit Äpfeln, dazu Sahne. Ein Apfel reicht je Stück."),
    ("Haus.md", "Die Tür vom Haus klemmt, der Schlüssel liegt unter dem Stein."),
    ("Müller.md", "Frau Müller ruft wegen der Größe der Öfen an."),
    ("Datenbank.md", "Die Datenbankverbindung bricht nachts ab."),
    ("Fluß.md", "Am Fluß führt die Straße vorbei."),
    ("Déjeuner.md", "Le déjeuner d’été à l’hôtel: crème brûlée et œufs."),
    ("Mañana.md", "El niño llegó mañana por la montaña."),
    ("Łódź.md", "Zażółć gęślą jaźń w Łodzi."),
    ("Kůň.md", "Příliš žluťoučký kůň úpěl ďábelské ódy."),
    ("Backup.md", "The file lies on a system of its own, and the network is slow."),
];

/// Checks which notes a query finds, best first.
#[track_caller]
fn check(query: &str, expected: &[&str]) {
    let vault = TestVault::new(&NOTES);
    assert_eq!(paths(&vault.store(), query), expected, "{query}");
}

#[test]
fn an_unindexed_compound_finds_its_parts() {
    check("Dampfschifffahrt", &["Dampfer.md"]);
    check("Donaudampfschiff", &["Dampfer.md"]);
    check("Lebensversicherung", &["Versicherung.md"]);
    check("Apfelkuchen", &["Kuchen.md"]);
    check("Hausschlüssel", &["Haus.md"]);
    check("filesystem", &["Backup.md"]);
}

#[test]
fn an_indexed_compound_is_not_split() {
    check("Datenbankverbindung", &["Datenbank.md"]);
    let vault = TestVault::new(&[("a.md", "Hausboot"), ("b.md", "Haus und Boot")]);
    assert_eq!(paths(&vault.store(), "Hausboot"), ["a.md"]);
}

#[test]
fn a_compound_without_known_parts_finds_nothing() {
    check("Schreibmaschine", &[]);
    // One part alone is another word.
    check("Schlüsselbund", &[]);
    // Where every word is wanted, parts are none.
    let vault = TestVault::new(&NOTES);
    let request = SearchRequest { query: "Apfelkuchen".to_owned(), all: true, ..SearchRequest::default() };
    assert!(vault.store().searches().search(&request).unwrap().results.is_empty());
}

#[test]
fn umlauts_are_found_in_every_spelling() {
    check("muller", &["Müller.md"]);
    check("Mueller", &["Müller.md"]);
    check("Groesse Oefen", &["Müller.md"]);
    check("Fluss", &["Fluß.md"]);
    check("strasse", &["Fluß.md"]);
}

#[test]
fn words_are_found_without_typing_accents() {
    check("dejeuner ete", &["Déjeuner.md"]);
    check("creme brulee", &["Déjeuner.md"]);
    check("oeufs", &["Déjeuner.md"]);
    check("manana", &["Mañana.md"]);
    check("zazolc", &["Łódź.md"]);
    check("zlutoucky kun", &["Kůň.md"]);
}

/// The cases of `tests/languages/found.tsv`: language, text of a note, query, and whether the query finds the note.
fn word_cases() -> Vec<[&'static str; 4]> {
    let lines = include_str!("../languages/found.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| <[&str; 4]>::try_from(line.split('\t').collect::<Vec<_>>()).expect(line)).collect()
}

/// All notes are in one vault, so that no language spoils the words of another one.
#[test]
fn words_of_every_language_are_found() {
    let cases = word_cases();
    assert!(cases.len() >= 35, "{}", cases.len());
    let names: Vec<String> = (0..cases.len()).map(|at| format!("{}.md", letters_of(at))).collect();
    let notes: Vec<(&str, &str)> =
        names.iter().zip(&cases).map(|(name, [_, text, ..])| (name.as_str(), *text)).collect();
    let vault = TestVault::new(&notes);
    let store = vault.store();
    let mut wrong = Vec::new();
    for (name, case @ [_, _, query, expected]) in names.iter().zip(&cases) {
        let request = SearchRequest {
            query: (*query).to_owned(),
            plain: true,
            limit: Some(1000),
            no_sync: true,
            ..SearchRequest::default()
        };
        let results = store.searches().search(&request).unwrap().results;
        let is_found = results.iter().any(|result| result.path == *name);
        if is_found != (*expected == "yes") {
            wrong.push(case);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Names a note by a number without digits, so that no query finds it by name.
fn letters_of(at: usize) -> String {
    [at / 26 % 26, at % 26]
        .map(|letter| char::from(b'a' + letter as u8))
        .iter()
        .map(|c| format!("x{c}x"))
        .collect()
}

/// What a file of queries adds up to.
#[derive(Debug)]
struct Success {
    /// Gives the share of the queries whose note is first.
    first: f64,
    /// Share of the queries whose note is among the first ten.
    ten: f64,
    /// Mean reciprocal rank among the first ten.
    mrr: f64,
}

fn measure(store: &Store, queries: &str, mode: Mode) -> Success {
    let mut success = Success { first: 0.0, ten: 0.0, mrr: 0.0 };
    let cases: Vec<(&str, &str)> = queries.lines().filter_map(|line| line.split_once('\t')).collect();
    for (query, path) in &cases {
        let request = SearchRequest {
            query: (*query).to_owned(),
            plain: true,
            mode: Some(mode),
            limit: Some(10),
            no_sync: true,
            ..SearchRequest::default()
        };
        let results = store.searches().search(&request).unwrap().results;
        if let Some(rank) = results.iter().position(|result| result.path == *path) {
            success.first += f64::from(u8::from(rank == 0));
            success.ten += 1.0;
            success.mrr += 1.0 / (rank + 1) as f64;
        }
    }
    let count = cases.len() as f64;
    Success { first: success.first / count, ten: success.ten / count, mrr: success.mrr / count }
}

/// Measures search in Chinese on the notes of OI Wiki, in the folder that `SIDENOTE_TEST_OI_WIKI` names.
#[test]
#[ignore = "it needs SIDENOTE_TEST_OI_WIKI, a copy of OI Wiki"]
fn chinese_is_found_without_a_dictionary() {
    let root = env_path("SIDENOTE_TEST_OI_WIKI");
    let index = tempfile::tempdir().unwrap();
    let store = Store::open(Open {
        vault: Some(root),
        index: Some(index.path().to_owned()),
        flags: vec![("embed.provider", "none".to_owned(), "test")],
        ..Open::default()
    })
    .unwrap();
    store.index().sync(silent()).unwrap();
    let success = measure(&store, include_str!("../languages/oi-wiki.tsv"), Mode::Bm25);
    say(&format!("{success:?}"));
    assert!(success.first >= 0.58 && success.ten >= 0.98 && success.mrr >= 0.74, "{success:?}");
}
