//! Tests when notes are valid: `valid_from`, `valid_until`, `superseded_by`, `--as-of`, and the order of superseded notes.

use serde_json::{Value, json};
use sidenote::base::clock::Timestamp;
use sidenote::store::{ListRequest, RecallRequest, SearchRequest, Searches};

use crate::mcp_client::Client;
use crate::support::{TestVault, json as json_of, paths, run};

const NOW: &str = "2026-11-21";

/// The properties of each note, and the days on which it is valid by the rules, as periods `from..until` (exclusive).
const PERIODS: &[(&str, &str, &[&str])] = &[
    ("plain.md", "created: 2024-01-10", &["2024-01-10..2027-01-01"]),
    ("created at noon.md", "created: 2024-01-10T12:00:00", &["2024-01-10..2027-01-01"]),
    ("from.md", "created: 2024-01-10\nvalid_from: 2024-03-01", &["2024-03-01..2027-01-01"]),
    ("from earlier.md", "created: 2024-06-10\nvalid_from: 2024-03-01", &["2024-03-01..2027-01-01"]),
    ("until.md", "created: 2024-01-10\nvalid_until: 2024-03-01", &["2024-01-10..2024-03-02"]),
    ("until noon.md", "created: 2024-01-10\nvalid_until: 2024-03-01T12:00:00", &["2024-01-10..2024-03-01"]),
    ("until quoted.md", "created: 2024-01-10\nvalid_until: \"2024-03-01\"", &["2024-01-10..2024-03-02"]),
    (
        "period.md",
        "created: 2026-01-10\nvalid_from: 2024-02-01\nvalid_until: 2024-02-29",
        &["2024-02-01..2024-03-01"],
    ),
    (
        "one day.md",
        "created: 2024-01-10\nvalid_from: 2024-03-01\nvalid_until: 2024-03-01",
        &["2024-03-01..2024-03-02"],
    ),
    ("backwards.md", "created: 2024-01-10\nvalid_from: 2024-03-01\nvalid_until: 2024-02-01", &[]),
    (
        "no date.md",
        "created: 2024-01-10\nvalid_until: some day\nvalid_from: soon",
        &["2024-01-10..2027-01-01"],
    ),
    ("upper case.md", "created: 2024-01-10\nValid_Until: 2024-03-01", &["2024-01-10..2024-03-02"]),
    ("old.md", "created: 2024-01-10\nsuperseded_by: \"[[new]]\"", &["2024-01-10..2024-06-01"]),
    ("new.md", "created: 2024-06-01", &["2024-06-01..2027-01-01"]),
    ("chain a.md", "created: 2024-01-10\nsuperseded_by: \"[[chain b]]\"", &["2024-01-10..2024-05-01"]),
    (
        "chain b.md",
        "created: 2024-04-01\nvalid_from: 2024-05-01\nsuperseded_by: \"[[chain c]]\"",
        &["2024-05-01..2024-08-01"],
    ),
    ("chain c.md", "created: 2024-08-01\nvalid_until: 2024-12-31", &["2024-08-01..2025-01-01"]),
    ("early a.md", "created: 2024-01-10\nsuperseded_by: \"[[early b]]\"", &["2024-01-10..2024-03-01"]),
    ("early b.md", "created: 2024-09-01\nsuperseded_by: \"[[early c]]\"", &[]),
    ("early c.md", "created: 2024-03-01", &["2024-03-01..2027-01-01"]),
    (
        "both.md",
        "created: 2024-01-10\nvalid_until: 2024-02-01\nsuperseded_by: \"[[new]]\"",
        &["2024-01-10..2024-02-02"],
    ),
    ("planned.md", "created: 2024-01-10\nsuperseded_by: \"[[plan]]\"", &["2024-01-10..2025-01-01"]),
    ("plan.md", "created: 2024-02-01\nvalid_from: 2025-01-01", &["2025-01-01..2027-01-01"]),
    ("circle a.md", "created: 2024-01-10\nsuperseded_by: \"[[circle b]]\"", &["2024-01-10..2027-01-01"]),
    ("circle b.md", "created: 2024-02-01\nsuperseded_by: \"[[circle a]]\"", &["2024-02-01..2027-01-01"]),
    ("before circle.md", "created: 2024-01-10\nsuperseded_by: \"[[circle b]]\"", &["2024-01-10..2024-02-01"]),
    ("itself.md", "created: 2024-01-10\nsuperseded_by: \"[[itself]]\"", &["2024-01-10..2027-01-01"]),
    (
        "by nothing.md",
        "created: 2024-01-10\nsuperseded_by: \"[[Nobody wrote this]]\"",
        &["2024-01-10..2027-01-01"],
    ),
    ("by an image.md", "created: 2024-01-10\nsuperseded_by: \"[[a.png]]\"", &["2024-01-10..2027-01-01"]),
    (
        "by a forgotten one.md",
        "created: 2024-01-10\nsuperseded_by: \"[[forgotten]]\"",
        &["2024-01-10..2027-01-01"],
    ),
    ("forgotten.md", "created: 2024-02-01\nforgotten: true", &["2024-02-01..2027-01-01"]),
];

/// The days on which every note is asked for: the days before, at and after each bound.
const DAYS: &[&str] = &[
    "2024-01-09",
    "2024-01-10",
    "2024-01-11",
    "2024-01-31",
    "2024-02-01",
    "2024-02-02",
    "2024-02-29",
    "2024-03-01",
    "2024-03-02",
    "2024-04-01",
    "2024-04-30",
    "2024-05-01",
    "2024-05-31",
    "2024-06-01",
    "2024-07-31",
    "2024-08-01",
    "2024-09-01",
    "2024-12-31",
    "2025-01-01",
    "2026-11-21",
];

fn as_of(text: &str) -> Option<Timestamp> {
    Searches::as_of("--as-of", Some(text), Timestamp::parse(NOW).unwrap()).unwrap()
}

#[test]
fn as_of_selects_exactly_what_was_valid() {
    assert_eq!((PERIODS.len(), DAYS.len()), (31, 20));
    let texts: Vec<(&str, String)> =
        PERIODS.iter().map(|(path, front, _)| (*path, format!("---\n{front}\n---\nharbour\n"))).collect();
    let mut files: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (*path, text.as_str())).collect();
    files.push(("a.png", "no picture"));
    let vault = TestVault::new(&files);
    let store = vault.store();
    for day in DAYS {
        let mut expected: Vec<&str> = PERIODS
            .iter()
            .filter(|(_, _, periods)| {
                periods
                    .iter()
                    .filter_map(|period| period.split_once(".."))
                    .any(|(from, until)| (from..until).contains(day))
            })
            .map(|(path, ..)| *path)
            .collect();
        expected.sort_unstable();
        let request = ListRequest { as_of: as_of(day), ..ListRequest::default() };
        let listed: Vec<String> =
            store.reads().list(&request).unwrap().notes.into_iter().map(|note| note.path).collect();
        assert_eq!(listed, expected, "list --as-of {day}");
        let request = SearchRequest {
            query: "harbour".to_owned(),
            as_of: as_of(day),
            limit: Some(100),
            ..SearchRequest::default()
        };
        let mut found: Vec<String> = store
            .searches()
            .search(&request)
            .unwrap()
            .results
            .into_iter()
            .map(|result| result.path)
            .collect();
        found.sort_unstable();
        expected.retain(|path| *path != "forgotten.md");
        assert_eq!(found, expected, "search --as-of {day}");
    }
}

#[test]
fn a_time_as_of_is_an_instant() {
    let vault = TestVault::new(&[
        ("morning.md", "---\ncreated: 2024-01-01\nvalid_until: 2024-03-01T12:00:00\n---\n"),
        ("afternoon.md", "---\nvalid_from: 2024-03-01T12:00:00\n---\n"),
    ]);
    let store = vault.store();
    for (at, expected) in [
        ("2024-03-01T11:59:59", "morning.md"),
        ("2024-03-01T12:00:00", "afternoon.md"),
        ("2024-03-01T12:00:00+01:00", "morning.md"),
        ("2024-03-01", "afternoon.md"),
        ("yesterday", "afternoon.md"),
    ] {
        let request = ListRequest { as_of: as_of(at), ..ListRequest::default() };
        let listed = store.reads().list(&request).unwrap().notes;
        assert_eq!(listed.iter().map(|note| note.path.as_str()).collect::<Vec<_>>(), [expected], "{at}");
    }
    let refused = Searches::as_of("--as-of", Some("soon"), Timestamp::default()).unwrap_err();
    assert_eq!(refused.message(), "--as-of \"soon\" is not a date");
}

/// Checks the order in which a query finds notes of a vault about the fee of a harbour.
#[track_caller]
fn check_order(files: &[(&str, &str)], query: &str, expected: &[&str]) {
    let vault = TestVault::new(files);
    assert_eq!(paths(&vault.store(), query), expected, "{query}");
}

const OLD: (&str, &str) = ("old.md", "---\nsuperseded_by: \"[[new]]\"\n---\nThe harbour fee is four crowns.");
const NEW: (&str, &str) = ("new.md", "Boats pay six crowns.");

#[test]
fn what_supersedes_a_note_is_above_it_even_if_it_was_not_found() {
    let other = ("other.md", "A harbour far away.");
    check_order(&[OLD, NEW, other], "harbour fee", &["new.md", "old.md", "other.md"]);
    // Found at the same time, it moves up as well.
    let found = ("new.md", "Boats in the harbour, of which there are many this year, pay six crowns.");
    check_order(&[OLD, found, other], "harbour fee", &["new.md", "old.md", "other.md"]);
    // A superseded note moves up to the note that replaces it.
    let first = ("new.md", "Harbour fee, harbour fee: six crowns.");
    let last = (
        "old.md",
        "---\nsuperseded_by: \"[[new]]\"\n---\nThe crowns that boats pay in a harbour were four then.",
    );
    check_order(&[last, first, other], "harbour fee", &["new.md", "old.md", "other.md"]);
    check_order(&[OLD, NEW, other], "old", &["new.md", "old.md"]);
}

#[test]
fn chains_are_followed_and_circles_harm_nothing() {
    let a = ("a.md", "---\nsuperseded_by: \"[[b]]\"\n---\nThe harbour fee is four crowns.");
    let b = ("b.md", "---\nsuperseded_by: \"[[c]]\"\n---\nBoats pay five crowns.");
    let c = ("c.md", "Boats pay six crowns.");
    check_order(&[a, b, c], "harbour fee", &["c.md", "a.md"]);
    check_order(&[a, b, c], "harbour crowns", &["c.md", "b.md", "a.md"]);
    let circle = ("c.md", "---\nsuperseded_by: \"[[a]]\"\n---\nBoats pay six crowns.");
    check_order(&[a, b, circle], "harbour fee", &["a.md"]);
    let planned = ("c.md", "---\nvalid_from: 2999-01-01\n---\nBoats pay six crowns.");
    check_order(&[a, b, planned], "harbour fee", &["b.md", "a.md"]);
}

#[test]
fn filters_and_conditions_hold_for_what_supersedes() {
    let vault = TestVault::new(&[
        ("fees/old.md", "---\nsuperseded_by: \"[[new]]\"\n---\nThe harbour fee is four crowns."),
        NEW,
    ]);
    let store = vault.store();
    let found = |request: SearchRequest| crate::support::found(&store, &request);
    let query = || "harbour fee".to_owned();
    assert_eq!(
        found(SearchRequest { query: query(), ..SearchRequest::default() }),
        ["new.md", "fees/old.md"]
    );
    let request = SearchRequest { query: query(), path: Some("fees".to_owned()), ..SearchRequest::default() };
    assert_eq!(found(request), ["fees/old.md"]);
    let request = SearchRequest { query: "\"harbour fee\"".to_owned(), ..SearchRequest::default() };
    assert_eq!(found(request), ["fees/old.md"]);
    let request = SearchRequest { query: "\"crowns\"".to_owned(), ..SearchRequest::default() };
    assert_eq!(found(request), ["new.md", "fees/old.md"]);
    // Conditions without a word list by name.
    let request = SearchRequest { query: "path:.md".to_owned(), ..SearchRequest::default() };
    assert_eq!(found(request), ["new.md", "fees/old.md"]);
}

#[test]
fn a_note_is_named_in_every_form() {
    const FORMS: [&str; 13] = [
        "\"[[fees/Fee list]]\"",
        "\"[[Fee list]]\"",
        "\"[[fee list|the fees]]\"",
        "\"[[Fee list#Boats]]\"",
        "\"[[fees/Fee list.md]]\"",
        "[[Fee list]]",
        "[\"[[Nobody]]\", \"[[Fee list]]\"]",
        "Fee list",
        "fees/Fee list.md",
        "Charges of 2025",
        "dues",
        "4d3c1f9e-6a55-4f0c-9c63-0c7f0f0d2b11",
        "\"[the fees](<fees/Fee list.md>)\"",
    ];
    let new = "---\nid: 4d3c1f9e-6a55-4f0c-9c63-0c7f0f0d2b11\ntitle: Charges of 2025\naliases: [dues]\n---\nBoats pay six crowns.";
    for form in FORMS {
        let old = format!("---\nsuperseded_by: {form}\n---\nThe harbour fee is four crowns.");
        check_order(
            &[("old.md", &old), ("fees/Fee list.md", new)],
            "harbour",
            &["fees/Fee list.md", "old.md"],
        );
    }
}

#[test]
fn an_expired_note_is_below_valid_ones_and_says_so() {
    let vault = TestVault::new(&[
        ("old.md", "---\nvalid_until: 2025-12-31\n---\nThe harbour fee is four crowns."),
        ("next.md", "---\nvalid_from: 2027-01-01\n---\nThe harbour fee is seven crowns."),
        (
            "now.md",
            "For boats that lie in the harbour over night, the fee is six crowns, to be paid in the morning.",
        ),
        ("far.md", "A town."),
    ]);
    insta::assert_snapshot!(run(&vault, NOW, &["search", "harbour fee", "--mode", "bm25", "--explain"]), @r"
    words   harbour (3, idf 0.36), fee (3, idf 0.36)
    stages  words, validity
    fusion  bm25, relative
     1. now  now.md:1-1
        For boats that lie in the harbour over night, the fee is six crowns, to be paid in the morning.
        score 0.4000 by words: words #2 0.785 -> 0.4000; meaning -
     2. next  next.md:4-4
        not valid before 2027-01-01
        The harbour fee is seven crowns.
        score 0.2000 by words: words #1 0.785 -> 0.4000; meaning -; not valid now -> -0.2000
     3. old  old.md:4-4
        not valid since 2026-01-01
        The harbour fee is four crowns.
        score 0.2000 by words: words #3 0.785 -> 0.4000; meaning -; not valid now -> -0.2000
    ");
    insta::assert_snapshot!(run(&vault, NOW, &["search", "harbour fee", "--as-of", "2025-06-01", "--format", "{path}"]), @"");
}

#[test]
fn results_say_what_supersedes_them() {
    let vault = TestVault::new(&[OLD, NEW]);
    insta::assert_snapshot!(run(&vault, NOW, &["search", "harbour fee", "--explain"]), @r"
    words   harbour (1, idf 0.69), fee (1, idf 0.69)
    stages  words, validity
    fusion  bm25, relative
     1. new  new.md:1-1
        Boats pay six crowns.
        score 0.4000 by the note that it supersedes: words -; meaning -; supersedes the next note -> +0.4000
     2. old  old.md:4-4
        superseded by new.md
        The harbour fee is four crowns.
        score 0.4000 by words: words #1 1.525 -> 0.4000; meaning -
    ");
    let reply = json_of(&vault, NOW, &["search", "harbour fee", "--json"]);
    let said: Vec<&Value> =
        reply["results"].as_array().unwrap().iter().map(|result| &result["superseded_by"]).collect();
    assert_eq!(said, [&Value::Null, &json!("new.md")]);
    let scores: Vec<f64> =
        reply["results"].as_array().unwrap().iter().map(|result| result["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|one, other| one >= other), "{scores:?}");
    let found = json_of(&vault, NOW, &["memory", "search", "harbour fee", "--json"]);
    assert_eq!(found[1]["superseded_by"], "new.md");
    let by_intent =
        run(&vault, NOW, &["memory", "search", "harbour fee", "--intent", "fact_check", "--json"]);
    assert!(by_intent.find("new.md") < by_intent.find("old.md"), "{by_intent}");
    let mut client = Client::start(&vault, &[]);
    let reply = client.call("search_notes", json!({ "query": "harbour fee" }));
    assert_eq!(reply["structuredContent"]["results"][1]["superseded_by"], "new.md");
    insta::assert_snapshot!(reply["content"][0]["text"].as_str().unwrap(), @r"
    notice: no embedding model is set, so this searched by words only
    new.md:1-1  new
    Boats pay six crowns.

    old.md:4-4  old  (superseded by new.md)
    The harbour fee is four crowns.
    ");
    let reply = client.call("search_notes", json!({ "query": "harbour fee", "as_of": "2001-01-01" }));
    assert_eq!(reply["structuredContent"]["results"], json!([]));
    let reply = client.call("recall", json!({ "prompt": "harbour fee" }));
    assert_eq!(reply["structuredContent"]["memories"][1]["superseded_by"], "new.md");
    client.finish();
}

#[test]
fn recall_never_gives_a_superseded_memory_alone() {
    let vault = TestVault::new(&[OLD, NEW]);
    let store = vault.store();
    let recalled = |limit: usize, at: Option<&str>| -> Vec<String> {
        let request = RecallRequest {
            prompt: "What is the harbour fee?".to_owned(),
            limit: Some(limit),
            as_of: at.and_then(as_of),
            ..RecallRequest::default()
        };
        store.recalls().recall(&request).unwrap().memories.into_iter().map(|item| item.path).collect()
    };
    assert_eq!(recalled(10, None), ["new.md", "old.md"]);
    assert_eq!(recalled(1, None), ["new.md"]);
    assert!(recalled(10, Some("2001-01-01")).is_empty());
    insta::assert_snapshot!(run(&vault, NOW, &["memory", "recall", "What is the harbour fee?"]), @r#"
    <relevant-memories>
    <memory id="6c5c3ed0-8b4f-5a92-b009-aff8b2495bf7" path="new.md" title="new" type="general" tier="HOT">Boats pay six crowns.</memory>
    <memory id="6e5537cd-73a4-5405-9ca4-aa96968fc0c1" path="old.md" title="old" type="general" tier="HOT" superseded-by="new.md">The harbour fee is four crowns.</memory>
    </relevant-memories>
    "#);
    vault.write("new.md", "---\ntier: archive\n---\nBoats pay six crowns.");
    assert!(recalled(10, None).is_empty());
    vault.write("new.md", "---\nforgotten: true\n---\nBoats pay six crowns.");
    assert_eq!(recalled(10, None), ["old.md"]);
}

/// What was valid then is given as it was: a note that another one superseded later is not superseded yet.
#[test]
fn the_past_knows_nothing_of_later_replacements() {
    let vault = TestVault::new(&[
        (
            "old.md",
            "---\ncreated: 2024-01-01\nsuperseded_by: \"[[new]]\"\n---\nThe harbour fee is four crowns a day.\n",
        ),
        ("new.md", "---\ncreated: 2025-01-01\n---\nThe harbour fee is six crowns a day.\n"),
    ]);
    let recalled =
        |at: &str| run(&vault, NOW, &["memory", "recall", "What is the harbour fee?", "--as-of", at]);
    let past = recalled("2024-06-01");
    assert!(
        past.contains("four crowns") && !past.contains("superseded") && !past.contains("six crowns"),
        "{past}"
    );
    let later = recalled("2025-06-01");
    assert!(later.contains("six crowns") && !later.contains("four crowns"), "{later}");
    let found = json_of(&vault, NOW, &["search", "harbour fee", "--as-of", "2024-06-01"]);
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["results"][0]["superseded_by"], Value::Null, "{found}");
}

#[test]
fn hours_ago_are_an_instant_and_days_ago_whole_days() {
    let now = Timestamp::parse("2026-11-21T12:00").unwrap();
    let at = |text: &str| Searches::as_of("--as-of", Some(text), now).unwrap().unwrap().rfc3339();
    for (text, instant) in [
        ("12h", "2026-11-21T00:00:00Z"),
        ("90 minutes", "2026-11-21T10:30:00Z"),
        ("2026-11-20T06:00", "2026-11-20T06:00:00Z"),
    ] {
        assert_eq!(at(text), instant, "{text}");
    }
    for text in ["7d", "2 months ago", "yesterday", "2026-11-20"] {
        assert!(at(text).contains("T23:59:59"), "{text}: {}", at(text));
    }
}
