//! Tests which prompts recall which notes, over the cases of `fixtures/recall`: people, companies and topics, with as many
//! prompts that mean a note as prompts that mean none. Thresholds were chosen by the half for calibration; the other half
//! proves them.

use std::collections::BTreeMap;

use serde::Deserialize;
use sidenote::config::Config;
use sidenote::index::silent;
use sidenote::language::english::english_rank;
use sidenote::language::terms::CachedStemmer;
use sidenote::memory::mention::{Mention, mention_of, prompt_words};
use sidenote::store::RecallRequest;

use crate::support::TestVault;

#[derive(Debug, Deserialize)]
struct Cases {
    /// The text of each note by its path.
    notes: BTreeMap<String, String>,
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
struct Case {
    prompt: String,
    /// The notes that the prompt means.
    notes: Vec<String>,
    kind: String,
    #[serde(rename = "for")]
    purpose: String,
}

fn cases() -> Cases {
    serde_json::from_str(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recall/cases.json")))
        .unwrap()
}

/// The languages with notes and prompts of their own, in `fixtures/recall/languages`.
const LANGUAGES: [&str; 6] = ["de", "es", "fr", "ja", "ru", "zh"];

/// Returns the notes and prompts of a file in `fixtures/recall`.
fn read_cases(path: &str) -> Cases {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recall").join(path);
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Returns the notes and prompts in a language.
fn cases_in(language: &str) -> Cases {
    let cases = read_cases(&format!("languages/{language}.json"));
    assert_eq!((cases.notes.len(), cases.cases.len()), (15, 30), "{language}");
    cases
}

/// Returns the notes and prompts in all languages.
fn cases_in_all() -> Cases {
    let mut all = Cases { notes: BTreeMap::new(), cases: Vec::new() };
    for Cases { notes, cases } in LANGUAGES.into_iter().map(cases_in) {
        all.notes.extend(notes);
        all.cases.extend(cases);
    }
    all
}

/// The shares of wrong answers.
#[derive(Debug, Default)]
struct Rates {
    /// Of prompts that mean a note: nothing of it was recalled.
    missed: f64,
    /// Of prompts that mean none: something was recalled.
    fired: f64,
    /// Of all recalled notes: meant by the prompt.
    precision: f64,
}

/// Recalls for the cases of a purpose, and of a kind that `is_kind` admits.
fn rates(provider: &str, purpose: &str, is_kind: impl Fn(&str) -> bool) -> (Rates, Vec<String>) {
    let cases = cases();
    assert_eq!((cases.notes.len(), cases.cases.len()), (144, 1095));
    rates_of(provider, &cases, |case| case.purpose == purpose && is_kind(&case.kind))
}

/// Recalls for those cases that `is_asked` admits.
fn rates_of(
    provider: &str,
    Cases { notes, cases }: &Cases,
    is_asked: impl Fn(&Case) -> bool,
) -> (Rates, Vec<String>) {
    let files: Vec<(&str, &str)> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = TestVault::new(&files);
    let store = vault.store_with(provider);
    store.index().embed_all(silent()).unwrap();
    let (mut asked, mut quiet, mut missed, mut fired, mut right, mut all) = (0, 0, 0, 0, 0, 0);
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| is_asked(case)) {
        let request = RecallRequest { prompt: case.prompt.clone(), ..RecallRequest::default() };
        let memories = store.recalls().recall(&request).unwrap().memories;
        let paths: Vec<&str> = memories.iter().map(|item| item.path.as_str()).collect();
        let meant = paths.iter().filter(|path| case.notes.iter().any(|note| note == *path)).count();
        (right, all) = (right + meant, all + paths.len());
        let is_wrong = if case.notes.is_empty() { !paths.is_empty() } else { meant == 0 };
        if case.notes.is_empty() {
            (quiet, fired) = (quiet + 1, fired + usize::from(is_wrong));
        } else {
            (asked, missed) = (asked + 1, missed + usize::from(is_wrong));
        }
        if is_wrong || meant < paths.len() {
            wrong.push(format!("{}: {} recalls {paths:?}", case.kind, case.prompt));
        }
    }
    let share = |part: usize, of: usize| if of == 0 { 0.0 } else { part as f64 / of as f64 };
    let rates =
        Rates { missed: share(missed, asked), fired: share(fired, quiet), precision: share(right, all) };
    (rates, wrong)
}

#[track_caller]
fn check_rates(provider: &str, purpose: &str, is_kind: impl Fn(&str) -> bool) {
    let (rates, wrong) = rates(provider, purpose, is_kind);
    let is_good = rates.missed <= 0.05 && rates.fired <= 0.03 && rates.precision >= 0.95;
    assert!(is_good, "{provider}, {purpose}: {rates:?}\n{}", wrong.join("\n"));
}

#[test]
fn prompts_recall_the_notes_that_they_mean_and_no_others() {
    check_rates("e5", "calibration", |_| true);
    check_rates("e5", "proof", |_| true);
}

#[test]
fn names_are_recognised_without_a_model() {
    let is_kind = |kind: &str| {
        kind.starts_with("quiet") || ["name", "name full", "surname", "typo", "title"].contains(&kind)
    };
    check_rates("none", "proof", is_kind);
}

/// Without a model nearly all words of a prompt must be in a note, so that only names are sure to be recalled.
#[test]
fn names_and_quiet_prompts_are_recognised_in_six_languages_without_a_model() {
    let is_asked = |case: &Case| case.notes.is_empty() || case.kind == "name";
    let sets = LANGUAGES.into_iter().map(|language| (language, cases_in(language)));
    let mut wrong = Vec::new();
    for (name, cases) in sets.chain([("all", cases_in_all())]) {
        let (rates, of_set) = rates_of("none", &cases, is_asked);
        if rates.missed > 0.0 || rates.fired > 0.0 || rates.precision < 1.0 {
            wrong.push(format!("{name}: {rates:?}\n{}", of_set.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn prompts_in_six_languages_recall_the_notes_that_they_mean() {
    let vault = TestVault::new(&[]);
    let provider = Config::load(vault.root(), &[]).unwrap().embed.provider;
    let mut table = String::new();
    let mut are_good = true;
    let sets = LANGUAGES.into_iter().map(|language| (language, cases_in(language)));
    for (name, cases) in sets.chain([("all", cases_in_all())]) {
        let (rates, wrong) = rates_of(&provider, &cases, |_| true);
        table.push_str(&format!(
            "{name}: missed {:.3}, fired {:.3}, precision {:.3}\n{}\n",
            rates.missed,
            rates.fired,
            rates.precision,
            wrong.join("\n")
        ));
        are_good &= rates.missed <= 0.05 && rates.fired <= 0.03 || name != "all";
    }
    assert!(are_good, "{provider}\n{table}");
}

/// The vaults of a person each, in `fixtures/recall/everyday`: notes about everything, twenty questions that one of them answers, and
/// twenty prompts about nothing in them.
#[test]
fn everyday_prompts_recall_what_answers_them_in_three_languages() {
    let (mut missed, mut fired, mut table) = (0.0, 0.0, String::new());
    for (language, notes) in [("de", 51), ("es", 50), ("zh", 51)] {
        let cases = read_cases(&format!("everyday/{language}.json"));
        assert_eq!((cases.notes.len(), cases.cases.len()), (notes, 40), "{language}");
        let (rates, wrong) = rates_of("e5", &cases, |_| true);
        table.push_str(&format!("{language}: {rates:?}\n{}\n", wrong.join("\n")));
        (missed, fired) = (missed + rates.missed / 3.0, fired + rates.fired / 3.0);
    }
    assert!(missed <= 0.05 && fired <= 0.05, "{table}");
}

fn check_mention(prompt: &str, name: &str, expected: Option<Mention>) {
    let words = prompt_words(prompt, &english_rank);
    let found = mention_of(&words, name, &english_rank, &mut CachedStemmer::default());
    assert_eq!(found, expected, "{prompt:?} and {name:?}");
}

#[test]
fn prompts_name_notes_by_whole_names_and_by_distinctive_parts() {
    let part = |word: &str| Some(Mention::Part(word.to_owned()));
    let cases = [
        ("What did Maren Lindqvist say?", "Maren Lindqvist", Some(Mention::Whole)),
        ("maren lindqvist's phone number", "Maren Lindqvist", Some(Mention::Whole)),
        ("Ask Lindqvist about it.", "Maren Lindqvist", part("lindqvist")),
        ("is lindqvist’s offer in?", "Maren Lindqvist", part("lindqvist")),
        ("I met Jonas yesterday.", "Jonas Okonkwo", part("jonas")),
        ("Where is the backup plan?", "Backup plan", Some(Mention::Whole)),
        ("Where are the backup plans?", "Backup plan", Some(Mention::Whole)),
        ("Plan a backup.", "Backup plan", None),
        ("Any ideas?", "Ideas", None),
        ("Good morning!", "Good morning", None),
        ("Rename the kubernetes pods.", "Kubernetes at home", None),
        ("Is the release ready?", "Release Checklist", None),
        ("What is in the Zettelkasten?", "Zettelkasten", Some(Mention::Whole)),
        ("The umbrella is wet.", "Umber Analytics", None),
        ("", "Umber Analytics", None),
        ("umber", "", None),
        // One word in lower case means the thing.
        ("sort the messages of the inbox component by date", "Inbox", None),
        ("open the inbox", "Inbox", Some(Mention::Whole)),
        // A seldom English word is a name where it is written as one, however short the prompt is.
        ("¿Qué come Lucía?", "Lucía", Some(Mention::Whole)),
        // An order to an agent names a note only by what is written as a name.
        ("Fix the broken frontmatter parser.", "Broken frontmatter", None),
        ("Write a note to Mr. Möller.", "Jürgen Möller", part("moller")),
        ("please summarise RFC-9728", "RFC-9728", Some(Mention::Whole)),
    ];
    assert_eq!(cases.len(), 22);
    for (prompt, name, expected) in cases {
        check_mention(prompt, name, expected);
    }
}

#[test]
fn a_common_word_with_a_mistake_is_no_name() {
    let vault = TestVault::new(&[
        ("Performance Review.md", "The performance review is in May.\n"),
        ("Government Office.md", "The government office opens at nine.\n"),
        ("Maren Lindqvist.md", "Maren Lindqvist has the key.\n"),
    ]);
    let store = vault.store_with("none");
    let recalled = |prompt: &str| {
        let request = RecallRequest { prompt: prompt.to_owned(), ..RecallRequest::default() };
        let memories = store.recalls().recall(&request).unwrap().memories;
        memories.into_iter().map(|item| item.path).collect::<Vec<_>>()
    };
    assert!(recalled("what is the performence of quicksort on linked lists").is_empty());
    assert!(recalled("which goverment subsidises solar panels in spain").is_empty());
    assert_eq!(recalled("where is lindqivst now"), ["Maren Lindqvist.md"]);
}
