//! Tests that a query of words that no note has says so on every surface, and that only plausible corrections are suggested.

use serde_json::{Value, json};
use sidenote::index::silent;

use crate::mcp_client::Client;
use crate::support::{TestVault, stderr, stdout};
use crate::web::{ANY, Page};

const SAID: &str = "no note that was searched has";

fn vault() -> TestVault {
    let vault = TestVault::new(&[
        ("Boat.md", "The hull of the boat was varnished in March.\n"),
        ("Bread.md", "Rye bread with caraway, baked at 230 degrees.\n"),
        ("Write.md", "Write the letter to the harbour.\n"),
        ("Old.md", "---\nforgotten: true\n---\nThe zugzwang of the endgame.\n"),
    ]);
    vault.store_with("e5").index().embed_all(silent()).unwrap();
    vault
}

/// Runs a command with the embedded model; returns messages and output.
fn say(vault: &TestVault, args: &[&str]) -> (String, String) {
    let done = vault.command(args).env("SIDENOTE_EMBED_PROVIDER", "e5").output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    (stderr(&done), stdout(&done))
}

/// Queries, and whether no note that is searched has a word of them.
const QUERIES: &[(&str, bool)] = &[
    ("xyzzyq", true),
    ("flibber xyzzyq", true),
    ("zugzwang", true),
    ("嗯哼", true),
    ("varnish", false),
    ("varnished xyzzyq", false),
    ("baking", false),
    ("Boat", false),
    ("who", true),
];

#[test]
fn every_surface_says_that_no_note_has_a_word_of_the_query() {
    let vault = vault();
    let mut page = Page::of(vault.command(&ANY).env("SIDENOTE_EMBED_PROVIDER", "e5"));
    page.sign_in();
    let mut command = vault.command(&["mcp"]);
    let mut client = Client::of(command.env("SIDENOTE_EMBED_PROVIDER", "e5"));
    client.catch_up();
    for (query, is_nonsense) in QUERIES {
        let (messages, shown) = say(&vault, &["search", query]);
        assert_eq!(messages.contains(SAID), *is_nonsense, "{query}: {messages}{shown}");
        let (_, reply) = say(&vault, &["search", query, "--json"]);
        assert_eq!(reply.contains(SAID), *is_nonsense, "{query}: {reply}");
        let (messages, _) = say(&vault, &["memory", "search", query]);
        assert_eq!(messages.contains(SAID), *is_nonsense, "{query}: {messages}");
        let reply = client.call("search_notes", json!({ "query": query }));
        let text = reply["content"][0]["text"].as_str().unwrap();
        assert_eq!(text.contains(SAID), *is_nonsense, "{query}: {text}");
        assert_eq!(reply["structuredContent"]["notes"].to_string().contains(SAID), *is_nonsense, "{query}");
        let reply: Value = page.read(&format!("search?q={}", query.replace(' ', "%20")));
        assert_eq!(reply["notes"].to_string().contains(SAID), *is_nonsense, "{query}: {reply}");
    }
    assert_eq!(QUERIES.len(), 9);
    client.finish();
    page.stop();
    // Who asks for meaning alone, or for words alone, knows.
    for mode in ["vector", "bm25"] {
        let (messages, _) = say(&vault, &["search", "xyzzyq", "--mode", mode]);
        assert!(!messages.contains(SAID), "{mode}: {messages}");
    }
    // One word is named, as it was typed.
    for word in ["xyzzyq", "Käsespätzel"] {
        let (messages, _) = say(&vault, &["search", word]);
        let said = format!(
            "note: no note that was searched has the word {word:?}; these are the nearest in meaning"
        );
        assert!(messages.contains(&said), "{messages}");
    }
}

/// Nothing tells whether a short word is a part of a longer one or stands in it by chance.
#[test]
fn a_word_that_longer_words_begin_or_end_with_is_not_denied() {
    let vault = TestVault::new(&[
        ("Montag.md", "Die Müllabfuhr kommt am Montag, und sie ist nicht sehr leise."),
        ("Garten.md", "Das Hochbeet ist aus Holz, und die Erde ist noch nicht da."),
    ]);
    vault.store_with("e5").index().embed_all(silent()).unwrap();
    let cases = [
        ("Müll", "has the word \"Müll\" by itself; these"),
        ("Beet", "has the word \"Beet\" by itself; these"),
        ("Müll Beet", "has a word of the query by itself; these"),
        ("Käse", "has the word \"Käse\"; these"),
    ];
    for (query, says) in cases {
        let (messages, _) = say(&vault, &["search", query]);
        assert!(messages.contains(says) && !messages.contains("did you mean"), "{query}: {messages}");
    }
    assert_eq!(cases.len(), 4);
}

#[test]
fn every_toolset_says_so_where_it_gives_notes() {
    let vault = vault();
    let query = "xyzzyq";
    let cases = [
        ("tiered", "memory_recall", json!({ "query": query }), true),
        ("longterm", "search_memory", json!({ "query": query, "threshold": 0.0 }), true),
        ("longterm", "search_memory", json!({ "query": query, "threshold": 0.99 }), false),
        (
            "vector",
            "search_memories",
            json!({ "query": query, "intent": "explore", "reason_for_search": "a test" }),
            true,
        ),
        ("mem", "search_mem", json!({ "query": query }), true),
        ("rulebook", "rulebook_memory_search", json!({ "query": query }), true),
        ("notes", "recall", json!({ "prompt": query }), false),
    ];
    for (toolset, tool, arguments, says) in &cases {
        let mut command = vault.command(&["mcp", "--toolset", toolset]);
        let mut client = Client::of(command.env("SIDENOTE_EMBED_PROVIDER", "e5"));
        let reply = client.call(tool, arguments.clone()).to_string();
        client.finish();
        assert_eq!(reply.contains(SAID), *says, "{tool} {arguments}: {reply}");
    }
    assert_eq!(cases.len(), 7);
}

/// Searches for each word, and compares what is suggested for it.
#[track_caller]
fn check_suggestions(vault: &TestVault, cases: [(&str, Option<&str>); 9]) {
    for (typed, expected) in cases {
        let done = vault.run(&["search", typed]);
        let said = stderr(&done);
        let suggested = said.lines().find_map(|line| line.strip_prefix("did you mean: "));
        assert_eq!(suggested, expected, "{typed}");
    }
}

#[test]
fn only_plausible_corrections_are_suggested() {
    let vault = TestVault::new(&[
        ("a.md", "Write to the harbour office about the espresso machine.\n"),
        ("b.md", "Nibbles for the guests, and a kennel.\n"),
    ]);
    vault.store();
    // The word that was typed, and the suggestion.
    let cases = [
        ("harbuor", Some("harbour")),
        ("esspreso", Some("espresso")),
        ("arbour", Some("harbour")),
        // A word of English is no mistake, and a word with another beginning is another word.
        ("wrote", None),
        ("kennels", None),
        ("channel", None),
        ("wibblers", None),
        ("xyzzyq", None),
        ("arboir", None),
    ];
    check_suggestions(&vault, cases);
}

/// No list tells the words of other languages than English, so what differs from the words of the notes is no mistake where it
/// may be another word.
#[test]
fn right_words_of_other_languages_are_not_corrected() {
    let vault = TestVault::new(&[
        (
            "Winter.md",
            "Die Dachsanierung kommt nach dem Winter, und sie ist nicht in zehn Tagen zu schaffen.",
        ),
        ("Garten.md", "Die Giesskanne hat seine Farbe verloren, und an der Kante ist sie nicht mehr dicht."),
        ("Coche.md", "El coche de la abuela está en el taller, y no sale hasta que lo paguemos."),
    ]);
    vault.store();
    let cases = [
        // One letter of four differs, or two letters of seven and one more.
        ("Zahn", None),
        ("Schaden", None),
        // The first letter differs.
        ("Woche", None),
        // A stop word is never meant.
        ("Seife", None),
        // The last part of a longer word.
        ("Kanne", None),
        ("Dach", None),
        ("Dachsanirung", Some("dachsanierung")),
        ("Kahte", Some("kante")),
        ("abeula", Some("abuela")),
    ];
    check_suggestions(&vault, cases);
}
