//! Tests queries as people type them and agents pass them on: messages with punctuation, names of notes, tasks.

use serde_json::json;
use sidenote::search::Mode;
use sidenote::store::{Fallback, MemoryRanking, SearchRequest, Store};

use crate::mcp_client::Client;
use crate::support::{TestVault, found, json as told, run, stderr};

const NOW: &str = "2026-11-21";

/// Messages that are no valid condition, or a condition that no note meets; and the note that each is about.
const MESSAGES: &[(&str, &str)] = &[
    ("CS:GO tournament plans", "Games.md"),
    ("When did she watch \"Eternal Sunshine?", "Film.md"),
    ("When did she watch \"The Eternal Sunshine of it all\"?", "Film.md"),
    ("what about the tournament (the one in May", "Games.md"),
    ("tournament plans [draft]", "Games.md"),
    ("tournament plans) and so on", "Games.md"),
    ("task: buy a ticket for the film", "Film.md"),
    ("the \"map pool\" of the \"spring season\"", "Games.md"),
    ("[Map Pool of the Season]", "Games.md"),
];

fn vault() -> TestVault {
    TestVault::new(&[
        ("Games.md", "Plans for the tournament in May: the map pool of the season, and who plays.\n"),
        ("Film.md", "She saw Eternal Sunshine on Friday; the ticket is in the drawer. Buy another film.\n"),
        ("Bread.md", "---\nbest before: Friday\n---\nRye bread with caraway.\n"),
    ])
}

#[test]
fn a_message_with_punctuation_is_searched_by_its_words() {
    let vault = vault();
    run(&vault, NOW, &["index"]);
    let mut client = Client::start(&vault, &[]);
    let mut checked = 0;
    for (message, path) in MESSAGES {
        let reply = client.call("search_notes", json!({ "query": message }));
        assert_ne!(reply["isError"], true, "{message}: {reply}");
        assert_eq!(reply["structuredContent"]["results"][0]["path"], *path, "{message}: {reply}");
        let notes = reply["structuredContent"]["notes"].to_string();
        assert!(notes.contains("plain words") || notes.contains("its words answer"), "{message}: {notes}");
        let text = reply["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("notice: "), "{message}: {text}");
        checked += 1;
    }
    assert_eq!(checked, 9);
    // With an intent the memories answer, and by the same rule.
    let reply =
        client.call("search_notes", json!({ "query": "CS:GO tournament plans", "intent": "explore" }));
    assert_eq!(reply["structuredContent"]["results"][0]["path"], "Games.md", "{reply}");
    assert!(reply["structuredContent"]["notes"].to_string().contains("plain words"), "{reply}");
    // Signs alone are no words.
    let reply = client.call("search_notes", json!({ "query": "[? !]" }));
    assert_eq!(reply["structuredContent"]["results"], json!([]), "{reply}");
    assert!(reply["structuredContent"].get("notes").is_none(), "{reply}");
    // A property may have a name of several words.
    let reply = client.call("search_notes", json!({ "query": "[best before]" }));
    assert_eq!(reply["structuredContent"]["results"][0]["path"], "Bread.md", "{reply}");
    assert!(reply["structuredContent"].get("notes").is_none(), "{reply}");
    // Where the condition has results, there is no fallback and no notice.
    let reply = client.call("search_notes", json!({ "query": "\"map pool\" -film", "mode": "bm25" }));
    assert_eq!(reply["structuredContent"]["results"].as_array().unwrap().len(), 1, "{reply}");
    assert!(reply["structuredContent"].get("notes").is_none(), "{reply}");
    client.finish();
}

#[test]
fn other_toolsets_take_a_message_as_plain_words() {
    let vault = vault();
    run(&vault, NOW, &["index"]);
    let mut checked = 0;
    for (set, tool) in [
        ("vector", "search_memories"),
        ("tiered", "memory_recall"),
        ("rulebook", "rulebook_memory_search"),
        ("longterm", "search_memory"),
        ("mem", "search_mem"),
    ] {
        let mut client = Client::start(&vault, &["--toolset", set]);
        for (message, path) in MESSAGES {
            let mut arguments = json!({ "query": message });
            if set == "vector" {
                arguments["intent"] = "fact_check".into();
                arguments["reason_for_search"] = "test".into();
            }
            if set == "longterm" {
                arguments["threshold"] = 0.0.into();
            }
            let reply = client.call(tool, arguments);
            assert_ne!(reply["isError"], true, "{set}: {message}: {reply}");
            let title = path.trim_end_matches(".md");
            let told = reply.to_string();
            let words = if title == "Games" { "tournament" } else { "Sunshine" };
            assert!(told.contains(title) || told.contains(words), "{set}: {message}: {told}");
        }
        client.finish();
        checked += 1;
    }
    assert_eq!(checked, 5);
}

#[test]
fn the_command_points_at_a_syntax_error_and_falls_back_where_nothing_is_found() {
    let vault = vault();
    run(&vault, NOW, &["index"]);
    let done = vault.run(&["search", "CS:GO tournament plans"]);
    assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
    assert!(stderr(&done).contains('^'), "{}", stderr(&done));
    let reply = told(&vault, NOW, &["search", "\"tournament plans\" season"]);
    assert_eq!(reply["results"][0]["path"], "Games.md", "{reply}");
    assert!(reply["notes"].to_string().contains("no note meets the whole condition"), "{reply}");
    let hits = told(&vault, NOW, &["memory", "search", "\"tournament plans\" season"]);
    assert_eq!(hits[0]["path"], "Games.md", "{hits}");
    // A list for another program holds what meets the condition, or nothing.
    for shape in [&["-0"][..], &["--format", "{path}"]] {
        let done = vault.run(&[&["search", "\"tournament plans\" season"], shape].concat());
        assert_eq!(String::from_utf8_lossy(&done.stdout), "", "{shape:?}");
    }
    let mut checked = 0;
    // Nothing to rank by, or every word asked for: nothing found is the answer.
    let queries =
        [&["tag:#absent"][..], &["[absent]"], &["[map of the season]"], &["--all", "tournament absent"]];
    for query in queries {
        let reply = told(&vault, NOW, &[&["search"], query].concat());
        assert_eq!(reply["results"], json!([]), "{query:?}: {reply}");
        checked += 1;
    }
    assert_eq!(checked, 4);
}

#[test]
fn the_library_falls_back_only_on_request() {
    let vault = vault();
    let store = vault.store();
    let request =
        SearchRequest { query: "\"no such phrase\" tournament".to_owned(), ..SearchRequest::default() };
    assert_eq!(found(&store, &request), [""; 0]);
    let lenient = SearchRequest { fallback: Fallback::IfEmpty, ..request };
    assert_eq!(found(&store, &lenient), ["Games.md"]);
    let wrong = SearchRequest { query: "CS:GO tournament".to_owned(), ..lenient };
    assert!(store.searches().search(&wrong).is_err());
    let lenient = SearchRequest { fallback: Fallback::IfEmptyOrInvalid, ..wrong };
    assert_eq!(found(&store, &lenient), ["Games.md"]);
}

/// A vault in which the named notes say little of their names, and others say much.
fn named() -> TestVault {
    let much = "boat plans ".repeat(12);
    TestVault::new(&[
        ("Boat Plans.md", "Nothing is settled."),
        ("Talk.md", &format!("# Talk\n\n{much}and how it is")),
        ("How it is.md", "Short."),
        ("x1.md", "---\ntitle: Spring season\naliases: [The Big One]\n---\nShort."),
        ("Season.md", "Spring season, spring season, the big one, the big one, spring season."),
        ("Ärger mit Öl.md", "Kurz."),
        ("Öl.md", "Ärger mit Öl, Ärger mit Öl, Ärger mit Öl."),
        ("Map.canvas", "{\"nodes\":[]}"),
        ("Maps.md", "map map map map"),
        ("Gone.md", "---\nforgotten: true\n---\nGone."),
        ("Still.md", "gone gone gone"),
    ])
}

#[track_caller]
fn check_first(store: &Store, query: &str, mode: Mode, path: &str) {
    let request = SearchRequest {
        query: query.to_owned(),
        mode: Some(mode),
        explain: true,
        ..SearchRequest::default()
    };
    let reply = store.searches().search(&request).unwrap();
    assert_eq!(reply.results[0].path, path, "{query:?} {mode:?}: {:?}", reply.results);
    let parts = reply.results[0].explain.unwrap();
    assert_eq!(parts.total(), reply.results[0].score, "{query:?} {mode:?}");
    assert!(reply.results.windows(2).all(|pair| pair[0].score >= pair[1].score), "{query:?} {mode:?}");
    let intent = sidenote::store::Intent::parse("explore");
    let request =
        SearchRequest { memories: Some(MemoryRanking { intent, ..MemoryRanking::default() }), ..request };
    let first = store.searches().search(&request).unwrap().results.swap_remove(0);
    assert_eq!(first.memory.unwrap().path, path, "{query:?} {mode:?} with an intent");
}

#[test]
fn a_note_named_by_the_query_is_first() {
    let vault = named();
    let store = vault.store_with("e5");
    store.index().embed_all(sidenote::index::silent()).unwrap();
    let mut checked = 0;
    for mode in [Mode::Hybrid, Mode::Bm25, Mode::Vector] {
        for (query, path) in [
            ("boat plans", "Boat Plans.md"),
            ("  BOAT PLANS ", "Boat Plans.md"),
            ("how it is", "How it is.md"),
            ("spring season", "x1.md"),
            ("the big one", "x1.md"),
            ("x1", "x1.md"),
            ("ärger MIT öl", "Ärger mit Öl.md"),
        ] {
            check_first(&store, query, mode, path);
            checked += 1;
        }
    }
    assert_eq!(checked, 21);
    // Forgotten notes stay hidden, and a condition must still hold.
    let gone = SearchRequest { query: "gone".to_owned(), ..SearchRequest::default() };
    assert!(!found(&store, &gone).contains(&"Gone.md".to_owned()));
    let phrase = SearchRequest { query: "\"boat plans\"".to_owned(), ..SearchRequest::default() };
    assert_eq!(found(&store, &phrase)[0], "Boat Plans.md");
    let elsewhere =
        SearchRequest { query: "boat plans".to_owned(), path: Some("Talk*".to_owned()), ..phrase };
    assert_eq!(found(&store, &elsewhere), ["Talk.md"]);
}

/// Checks the snippet of the first result of a query.
#[track_caller]
fn check_snippet(store: &Store, query: &str, snippet: &str, lines: (usize, usize)) {
    let request = SearchRequest { query: query.to_owned(), ..SearchRequest::default() };
    let result = store.searches().search(&request).unwrap().results.swap_remove(0);
    assert_eq!((result.snippet.as_str(), result.lines), (snippet, lines), "{query}");
    assert!(result.marks.iter().all(|(start, end)| result.snippet.get(*start..*end).is_some()), "{query}");
}

#[test]
fn a_search_for_tasks_shows_their_lines() {
    let vault = TestVault::new(&[(
        "Boat.md",
        "# Boat\n\nThe boat and its mast, the sail and the oar, are at the yard.\n\n## To do\n\n- [x] buy a mast\n- [ ] paint the boat\n- talk of the boat\n- [ ] sew the sail\n",
    )]);
    let store = vault.store();
    let mut checked = 0;
    for (query, snippet, lines) in [
        ("task-todo:\"\"", "- [ ] paint the boat\n- [ ] sew the sail", (8, 10)),
        ("task:\"\"", "- [x] buy a mast\n- [ ] paint the boat\n- [ ] sew the sail", (7, 10)),
        ("task-done:mast", "- [x] buy a mast", (7, 7)),
        ("task-todo:sail", "- [ ] sew the sail", (10, 10)),
        ("boat task-todo:sail", "- [ ] sew the sail", (10, 10)),
        ("section:(task-todo:sail)", "- [ ] sew the sail", (10, 10)),
        ("line:(talk boat)", "- talk of the boat", (9, 9)),
    ] {
        check_snippet(&store, query, snippet, lines);
        checked += 1;
    }
    assert_eq!(checked, 7);
}
