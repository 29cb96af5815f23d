//! Tests that no fact is recalled without its later correction. `fixtures/updates/corrections.json` has pairs of both in
//! different words, with a question for the present state, and newer facts of the same kinds about something else.
//! `fixtures/updates/languages.json` has a dozen facts in each of six languages, with a question for each, and some corrections.

use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::json;
use sidenote::index::silent;
use sidenote::store::{RecallRequest, Store};

use crate::mcp_client::Client;
use crate::support::{TestVault, run, say, stdout};

#[derive(Debug, Deserialize)]
struct Corrections {
    /// Facts about something else, which are newer than all corrections.
    others: Vec<String>,
    pairs: Vec<Pair>,
}

#[derive(Debug, Deserialize)]
struct Pair {
    set: String,
    /// What tells the date: a property, the name or the file, or `superseded` where the fact names its correction.
    dated: String,
    question: String,
    fact: String,
    correction: String,
}

fn corrections() -> Corrections {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/updates/corrections.json"));
    let read: Corrections = serde_json::from_str(text).unwrap();
    assert_eq!((read.others.len(), read.pairs.len()), (32, 58));
    read
}

/// Writes a note of a year.
fn write_dated(vault: &TestVault, path: &str, text: &str, dated: &str, year: u64) {
    match dated {
        "property" => vault.write(path, format!("---\ncreated: {year}-03-05\n---\n{text}\n")),
        _ => vault.write(path, format!("{text}\n")),
    }
    let written = UNIX_EPOCH + Duration::from_secs((year - 1970) * 31_557_600);
    File::options().write(true).open(vault.root().join(path)).unwrap().set_modified(written).unwrap();
}

/// The paths of a fact and of its correction.
fn paths_of(at: usize, pair: &Pair) -> (String, String) {
    match pair.dated.as_str() {
        "name" => (format!("2024-03-05 fact {at}.md"), format!("2025-03-05 correction {at}.md")),
        _ => (format!("fact {at}.md"), format!("correction {at}.md")),
    }
}

fn vault_of(pairs: &[&Pair], others: &[String]) -> TestVault {
    let vault = TestVault::new(&[]);
    for (at, pair) in pairs.iter().enumerate() {
        let (fact, correction) = paths_of(at, pair);
        let dated = if pair.dated == "superseded" { "property" } else { &pair.dated };
        write_dated(&vault, &correction, &pair.correction, dated, 2025);
        if pair.dated == "superseded" {
            let link = format!("superseded_by: \"[[correction {at}]]\"");
            vault.write(&fact, format!("---\ncreated: 2024-03-05\n{link}\n---\n{}\n", pair.fact));
        } else {
            write_dated(&vault, &fact, &pair.fact, dated, 2024);
        }
    }
    for (at, other) in others.iter().enumerate() {
        write_dated(&vault, &format!("other {at}.md"), other, "property", 2026);
    }
    vault
}

fn recalled(store: &Store, prompt: &str) -> Vec<String> {
    let request = RecallRequest { prompt: prompt.to_owned(), ..RecallRequest::default() };
    store.recalls().recall(&request).unwrap().memories.into_iter().map(|item| item.path).collect()
}

/// Counts for how many questions of a set the correction is recalled, and before the fact, and how many notes are recalled in
/// all.
fn counts(set: &str) -> (usize, usize, usize, usize) {
    let Corrections { others, pairs } = corrections();
    let pairs: Vec<&Pair> = pairs.iter().filter(|pair| pair.set == set).collect();
    let vault = vault_of(&pairs, &others);
    let store = vault.store_with("e5");
    store.index().embed_all(silent()).unwrap();
    let (mut given, mut before, mut all) = (0, 0, 0);
    for (at, pair) in pairs.iter().enumerate() {
        let found = recalled(&store, &pair.question);
        let (fact, correction) = paths_of(at, pair);
        let place = |wanted: &str| found.iter().position(|path| path == wanted);
        let is_before = place(&correction).is_some_and(|at| place(&fact).is_none_or(|fact| at < fact));
        given += usize::from(place(&correction).is_some());
        before += usize::from(is_before);
        all += found.len();
        if !is_before {
            say(&format!("{found:?}: {}", pair.question));
        }
    }
    say(&format!(
        "{set}: corrections recalled {given}, before the fact {before}, of {}; notes {all}",
        pairs.len()
    ));
    (pairs.len(), given, before, all)
}

#[track_caller]
fn check_set(set: &str) {
    let (pairs, given, before, all) = counts(set);
    assert_eq!(given, pairs, "a correction is missing");
    assert_eq!(before, given, "a correction comes before what it corrects");
    // A question has one answer and what that replaces. The other facts are of the same kinds as those.
    assert!(all <= pairs * 3, "{all} notes for {pairs} questions");
}

#[test]
fn corrections_are_recalled_with_the_facts() {
    check_set("calibration");
    check_set("proof");
}

#[test]
fn a_newer_note_about_something_else_is_not_recalled() {
    let Corrections { others, pairs } = corrections();
    let vault = TestVault::new(&[]);
    let facts: Vec<&Pair> = pairs.iter().filter(|pair| pair.set == "calibration").collect();
    for (at, pair) in facts.iter().enumerate() {
        write_dated(&vault, &format!("fact {at}.md"), &pair.fact, "property", 2024);
    }
    // These are about none of the facts: they correct others.
    for (at, pair) in pairs.iter().filter(|pair| pair.set == "proof").enumerate() {
        write_dated(&vault, &format!("newer {at}.md"), &pair.correction, "property", 2025);
    }
    assert!(!others.is_empty());
    let store = vault.store_with("e5");
    store.index().embed_all(silent()).unwrap();
    let wrong: Vec<String> = facts
        .iter()
        .flat_map(|pair| recalled(&store, &pair.question))
        .filter(|path| path.starts_with("newer"))
        .collect();
    assert!(wrong.len() <= 3, "{wrong:?}");
}

#[derive(Debug, Deserialize)]
struct Vault {
    set: String,
    language: String,
    notes: Vec<Fact>,
}

#[derive(Debug, Deserialize)]
struct Fact {
    text: String,
    question: String,
    correction: Option<String>,
}

/// Writes the facts of a language, each of a month of its own in another order than that of the file.
fn write_facts(vault: &TestVault, facts: &[Fact]) {
    for (at, fact) in facts.iter().enumerate() {
        let month = at * 7 % facts.len() + 1;
        vault.write(
            &format!("fact {at}.md"),
            format!("---\ncreated: 2024-{month:02}-05\n---\n{}\n", fact.text),
        );
    }
}

/// A vault of few short notes in one language: they are alike by the language, and hardly any notes are there to compare with.
#[test]
fn notes_that_are_alike_by_their_language_are_no_newer_statements() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/updates/languages.json"));
    let languages: Vec<Vault> = serde_json::from_str(text).unwrap();
    let (mut asked, mut corrected) = (0, 0);
    for Vault { set, language, notes } in languages {
        let vault = TestVault::new(&[]);
        write_facts(&vault, &notes);
        let store = vault.store_with("e5");
        store.index().embed_all(silent()).unwrap();
        let found: Vec<Vec<String>> = notes.iter().map(|fact| recalled(&store, &fact.question)).collect();
        let is_first = |(at, found): &(usize, &Vec<String>)| found.first() == Some(&format!("fact {at}.md"));
        let first = found.iter().enumerate().filter(is_first).count();
        let wrong = found.iter().map(Vec::len).sum::<usize>().saturating_sub(notes.len());
        say(&format!("{set} {language}: {first} of {} are first, {wrong} too many", notes.len()));
        assert!(first + 1 >= notes.len() && wrong <= 2, "{language}: {found:?}");
        asked += notes.len();
        for (at, fact) in notes.iter().enumerate() {
            if let Some(correction) = &fact.correction {
                write_dated(&vault, &format!("correction {at}.md"), correction, "property", 2025);
            }
        }
        store.index().embed_all(silent()).unwrap();
        for (at, fact) in notes.iter().enumerate().filter(|(_, fact)| fact.correction.is_some()) {
            let found = recalled(&store, &fact.question);
            assert_eq!(found.first(), Some(&format!("correction {at}.md")), "{language}: {}", fact.question);
            corrected += 1;
        }
    }
    assert_eq!((asked, corrected), (72, 24));
}

/// Starts a server with the embedded model and toolsets.
fn server(vault: &TestVault, toolset: &str) -> Client {
    let mut command = vault.command(&["mcp", "--toolset", toolset]);
    Client::of(command.env("SIDENOTE_EMBED_PROVIDER", "e5"))
}

#[test]
fn every_toolset_gives_the_newer_of_two_notes_first() {
    let vault = TestVault::new(&[]);
    write_dated(&vault, "Old.md", "Marta is allergic to hazelnuts, the allergist found.", "property", 2024);
    write_dated(&vault, "New.md", "Marta is allergic to cashews now, hazelnuts are fine.", "property", 2025);
    write_dated(&vault, "Other.md", "The boat is in the shed.", "property", 2025);
    run(&vault, "2026-11-21", &["config", "set", "memory.scope", "vault"]);
    vault.store_with("e5").index().embed_all(silent()).unwrap();
    let query = "What is Marta allergic to, hazelnuts?";
    let intents = ["continuity", "fact_check", "frequent", "associative"];
    let of_vector = intents.map(|intent| {
        let arguments = json!({ "query": query, "intent": intent, "reason_for_search": "a test" });
        ("vector", "search_memories", arguments)
    });
    let cases = [
        ("notes", "recall", json!({ "prompt": query })),
        ("notes", "search_notes", json!({ "query": query })),
        ("notes", "search_notes", json!({ "query": query, "intent": "fact_check" })),
        ("tiered", "memory_recall", json!({ "query": query })),
        ("longterm", "search_memory", json!({ "query": query })),
        ("mem", "search_mem", json!({ "query": query })),
        ("rulebook", "rulebook_memory_search", json!({ "query": query })),
    ];
    let mut checked = 0;
    for (toolset, tool, arguments) in cases.into_iter().chain(of_vector) {
        let mut client = server(&vault, toolset);
        let text = client.text(tool, arguments.clone());
        client.finish();
        // Toolsets name notes by title, path or text.
        let place = |names: [&str; 3]| names.iter().filter_map(|name| text.find(name)).min();
        let new = place(["\"New\"", "New.md", "allergic to cashews"]);
        let old = place(["\"Old\"", "Old.md", "the allergist found"]);
        assert!(new.is_some() && new < old, "{toolset} {tool} {arguments}: {text}");
        checked += 1;
    }
    assert_eq!(checked, 11);
}

fn hook(vault: &TestVault, prompt: &str, session: &str) -> String {
    let mut command = vault.command(&["hook", "recall"]);
    let mut child = command
        .env("SIDENOTE_EMBED_PROVIDER", "e5")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = json!({ "prompt": prompt, "session_id": session }).to_string();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    stdout(&child.wait_with_output().unwrap())
}

#[test]
fn a_hook_gives_a_correction_that_was_saved_after_the_fact_was_given() {
    let vault = TestVault::new(&[("Boat.md", "---\ncreated: 2024-01-01\n---\nThe boat is in the shed.\n")]);
    write_dated(
        &vault,
        "Old.md",
        "The spare key of the boathouse hangs behind the shutter.",
        "property",
        2024,
    );
    vault.store_with("e5").index().embed_all(silent()).unwrap();
    let asked = "Where is the spare key of the boathouse?";
    assert!(hook(&vault, asked, "one").contains("behind the shutter"));
    let correction =
        "After the break-in Ilse keeps the spare key for the boathouse in her desk, not outside.";
    write_dated(&vault, "New.md", correction, "property", 2025);
    let block = hook(&vault, asked, "one");
    assert!(block.contains("in her desk") && block.contains("date=\"2025-03-05\""), "{block}");
    assert!(!hook(&vault, asked, "one").contains("in her desk"), "it was given");
    // The outdated note names the later one.
    let both = hook(&vault, asked, "two");
    let old = both.lines().find(|line| line.contains("path=\"Old.md\"")).unwrap_or_default();
    assert!(old.contains("newer=\"New.md\""), "{both}");
}

#[test]
fn a_pinned_decision_answers_what_was_decided() {
    let vault = TestVault::example();
    let store = vault.store_with("e5");
    store.index().embed_all(silent()).unwrap();
    let prompts = [
        "What did we decide about the sensors for the river gauges, and why?",
        "What did we decide about the sensors, and why?",
        "What did we decide about the sensors at the gauges, and why?",
        "What did we decide about pressure sensors and radar?",
    ];
    for prompt in prompts {
        let found = recalled(&store, prompt);
        let decision = "Projects/River gauges/Pressure sensors or radar.md";
        assert!(found.iter().any(|path| path == decision), "{prompt}: {found:?}");
    }
    assert_eq!(prompts.len(), 4);
    assert!(recalled(&store, "Thanks, that helps a lot.").is_empty());
}
