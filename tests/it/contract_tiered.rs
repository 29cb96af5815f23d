//! Tests the toolset `tiered` against its contract, word for word, over standard input and output.

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, json as told, text_of, tree, uses};

const NOW: &str = "2026-11-21";
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";
const OLD: &str = "11111111-1111-4111-8111-111111111111";

fn start(vault: &TestVault) -> Client {
    Client::start(vault, &["--toolset", "tiered"])
}

/// Calls a tool that must succeed, and gives its data; it has a text to read, too.
fn details(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments);
    assert_ne!(result["isError"], true, "{tool}: {result}");
    assert_eq!(result["content"][0]["type"], "text");
    assert!(!result["content"][0]["text"].as_str().unwrap().is_empty());
    assert!(result["structuredContent"]["details"].is_object(), "{result}");
    result["structuredContent"]["details"].clone()
}

fn store(client: &mut Client, text: &str) -> String {
    details(client, "memory_store", json!({ "text": text }))["id"].as_str().unwrap().to_owned()
}

fn recall(client: &mut Client, arguments: Value) -> Vec<String> {
    let result = client.call("memory_recall", arguments);
    assert_ne!(result["isError"], true, "{result}");
    let memories = result["structuredContent"]["memories"].as_array().unwrap();
    memories.iter().map(|memory| memory["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_memory_is_stored_as_a_note() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let stored = client.call(
        "memory_store",
        json!({ "text": "Use cargo nextest", "type": "procedural", "importance": 0.7, "tags": ["rust", "two words"], "source": "chat" }),
    );
    let id = stored["structuredContent"]["details"]["id"].as_str().unwrap();
    assert_eq!(stored["content"][0]["text"], format!("Memory stored in tier HOT: {id}"));
    assert_eq!(
        stored["structuredContent"]["details"],
        json!({
            "id": id, "text": "Use cargo nextest", "type": "procedural", "memory_type": "procedural", "tier": "HOT", "importance": 0.7,
            "tags": ["rust", "two words"], "source": "chat", "pinned": false, "forgotten": false,
            "createdAt": "2026-11-21T00:00:00.000Z", "path": "Memories/Use cargo nextest.md", "isDuplicate": false,
        })
    );
    assert_eq!(
        text_of(&vault, "Memories/Use cargo nextest.md"),
        format!(
            "---\nid: {id}\ntags:\n  - rust\n  - two-words\noriginal_tags:\n  - rust\n  - two words\ntype: procedural\ncreated_at: \"2026-11-21T00:00:00Z\"\nimportance: 7\nsource: chat\n---\nUse cargo nextest\n"
        )
    );
    // The defaults.
    let plain = details(&mut client, "memory_store", json!({ "text": "Herons are grey" }));
    assert_eq!(
        (&plain["type"], &plain["tier"], &plain["importance"]),
        (&json!("factual"), &json!("HOT"), &json!(0.5))
    );
    // The archive can be given, other tiers follow from age and use.
    let archived = details(&mut client, "memory_store", json!({ "text": "Storks nest", "tier": "ARCHIVE" }));
    assert_eq!(archived["tier"], "ARCHIVE");
    assert!(text_of(&vault, "Memories/Storks nest.md").contains("tier: archive\n"));
    let warm = client.call("memory_store", json!({ "text": "Terns dive", "tier": "WARM" }));
    assert_eq!(warm["structuredContent"]["details"]["tier"], "HOT");
    assert!(warm["content"][0]["text"].as_str().unwrap().contains("It is HOT, not WARM"));
    for (arguments, says) in [(json!({}), "text"), (json!({ "text": "  " }), "there is no text to keep")] {
        let refusal = client.refusal("memory_store", arguments);
        assert!(refusal.contains(says), "{refusal}");
    }
    client.finish();
}

#[test]
fn arguments_of_the_original_server_are_accepted() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let cases = [
        (json!({ "memory_type": "episodic" }), "type", json!("episodic")),
        (json!({ "memory_type": "project", "type": "episodic" }), "memory_type", json!("project")),
        (json!({ "memory_type": "fact" }), "memory_type", json!("factual")),
        (json!({ "type": "FROZEN" }), "type", json!("factual")),
        (json!({ "tier": "cold" }), "tier", json!("HOT")),
        (json!({ "importance": 7 }), "importance", json!(1.0)),
        (json!({ "importance": -0.01 }), "importance", json!(0.0)),
        (json!({ "pinned": true }), "pinned", json!(true)),
        (json!({ "category": "work" }), "category", json!("work")),
    ];
    for (at, (mut arguments, name, expect)) in cases.clone().into_iter().enumerate() {
        arguments["text"] = json!(format!("Number {at} of what is said"));
        let stored = details(&mut client, "memory_store", arguments.clone());
        assert_eq!(stored[name], expect, "{arguments}");
    }
    assert_eq!(cases.len(), 9);
    assert!(text_of(&vault, "Memories/Number 7 of what is said.md").contains("pinned: true\n"));
    let refusal = client.refusal("memory_store", json!({ "text": "Use the force", "tier": "LUKE" }));
    assert!(refusal.contains("there is no tier \"LUKE\"") && refusal.contains("HOT, WARM"), "{refusal}");
    for query in ["", " "] {
        assert!(
            client.refusal("memory_recall", json!({ "query": query })).starts_with("Query cannot be empty")
        );
    }
    client.finish();
}

#[test]
fn thresholds_of_tiers_and_budgets_can_be_set() {
    let note = |day: &str| format!("---\ncreated: {day}\n---\nplover\n");
    let (new, old) = (note("2026-11-20"), note("2026-11-10"));
    let vault = TestVault::new(&[("New.md", &new), ("Old.md", &old)]);
    let tier = |name: &str| told(&vault, NOW, &["memory", "explain", name])["tier"].clone();
    assert_eq!((tier("New"), tier("Old")), (json!("HOT"), json!("COLD")));
    vault.write(
        ".sidenote/config.toml",
        "[memory]\ntiers = { hot_hours = 12, warm_uses = 1, warm_use_days = 1 }\n",
    );
    assert_eq!(tier("New"), json!("COLD"));
    told(&vault, NOW, &["memory", "vote", "Old", "up"]);
    assert_eq!(tier("Old"), json!("WARM"));
    vault.write(".sidenote/config.toml", "[memory]\nbudgets = { pinned = 90, hot = 45 }\n");
    let done = vault.run(&["status"]);
    assert!(
        !done.status.success() && crate::support::stderr(&done).contains("memory.budgets are 165 percent")
    );
}

#[test]
fn a_type_can_have_its_own_thresholds() {
    let note = |kind: &str, day: &str| format!("---\ntype: {kind}\ncreated: {day}\n---\nplover {kind}\n");
    let vault = TestVault::new(&[
        ("New.md", &note("episodic", "2026-11-20")),
        ("Old.md", &note("Procedural", "2026-11-10")),
        ("Plain.md", &note("factual", "2026-11-20")),
        ("Used.md", &note("episodic", "2026-01-01")),
    ]);
    let explained = |name: &str| told(&vault, NOW, &["memory", "explain", name]);
    let tiers = || ["New", "Old", "Plain", "Used"].map(|name| explained(name)["tier"].clone());
    assert_eq!(tiers(), ["HOT", "COLD", "HOT", "COLD"]);
    vault.write(
        ".sidenote/config.toml",
        "[memory]\ntiers = { warm_uses = 1, warm_use_days = 1 }\n[types]\n\
         episodic = { half_life_days = 10, floor = 1, hot_hours = 12, warm_days = 5 }\n\
         procedural = { half_life_days = 180, floor = 3, hot_hours = 876000 }\n",
    );
    assert_eq!(tiers(), ["COLD", "HOT", "HOT", "COLD"]);
    assert_eq!(explained("New")["thresholds"]["hot_hours"], 12);
    assert_eq!(explained("Old")["thresholds"]["warm_days"], 60);
    // A list and a filter count as an explanation does.
    let hot = told(&vault, NOW, &["search", "plover tier:hot"]);
    let mut found: Vec<&str> =
        hot["results"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, ["Old.md", "Plain.md"]);
    told(&vault, "2026-11-10", &["memory", "vote", "Used", "up"]);
    assert_eq!(explained("Used")["tier"], "COLD", "its use is more than five days ago");
    told(&vault, "2026-11-20", &["memory", "vote", "Used", "up"]);
    assert_eq!(explained("Used")["tier"], "WARM");
    vault
        .write(".sidenote/config.toml", "[types]\nodd = { half_life_days = 1, floor = 1, hot_hours = -1 }\n");
    assert!(!vault.run(&["status"]).status.success());
}

#[test]
fn importance_is_returned_as_it_was_stored() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    for (at, share) in [0.0, 0.05, 0.1, 0.25, 0.333, 0.5, 0.51, 0.75, 0.99, 1.0].into_iter().enumerate() {
        let text = format!("importance of case {at}");
        let stored = details(&mut client, "memory_store", json!({ "text": text, "importance": share }));
        assert_eq!(stored["importance"].as_f64(), Some(share));
        let explained = details(&mut client, "memory_explain", json!({ "memoryId": stored["id"] }));
        assert_eq!(explained["importance"].as_f64(), Some(share));
        let said = told(&vault, NOW, &["inspect", stored["path"].as_str().unwrap()]);
        let said = said["frontmatter"]["importance"].as_f64().unwrap();
        assert!((1.0..=10.0).contains(&said), "{share}: {said}");
    }
    client.finish();
}

#[test]
fn text_that_a_note_contains_is_not_stored_again() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let id = store(&mut client, "The heron fishes at dawn");
    let again = client.call("memory_store", json!({ "text": "  The heron fishes at dawn\n" }));
    let told = &again["structuredContent"]["details"];
    assert_eq!(
        (&told["isDuplicate"], &told["id"], &told["text"]),
        (&json!(true), &json!(id), &json!("The heron fishes at dawn"))
    );
    assert_eq!(
        again["content"][0]["text"],
        format!("Similar memory already exists (similarity: 100.0%), so nothing is stored: {id}")
    );
    assert_eq!(tree(vault.root()).len(), 1);
    // One that is forgotten does not count.
    details(&mut client, "memory_forget", json!({ "memoryId": id }));
    let other = details(&mut client, "memory_store", json!({ "text": "The heron fishes at dawn" }));
    assert_eq!(other["isDuplicate"], false);
    assert_ne!(other["id"], json!(id));
    client.finish();
}

#[test]
fn near_duplicates_are_distinguished_from_updates() {
    let vault = TestVault::new(&[]);
    let mut client =
        Client::of(vault.command(&["mcp", "--toolset", "tiered"]).env("SIDENOTE_EMBED_PROVIDER", "e5"));
    let id = store(&mut client, "The office is open from 9 to 17 on Fridays.");
    // Until its vector is there, only words find it, and that is enough.
    let near =
        details(&mut client, "memory_store", json!({ "text": "The office is open from 9 to 17 on Fridays" }));
    assert_eq!((&near["isDuplicate"], &near["id"]), (&json!(true), &json!(id)));
    assert!(near["similarity"].as_f64().unwrap() > 0.94, "{near}");
    let update = details(
        &mut client,
        "memory_store",
        json!({ "text": "The office is open from 9 to 16 on Fridays." }),
    );
    assert_eq!(update["isDuplicate"], false);
    assert_eq!(tree(vault.root()).len(), 2);
    // Nothing is linked: a memory says what was given.
    assert!(tree(vault.root()).values().all(|bytes| !String::from_utf8_lossy(bytes).contains("[[")));
    client.finish();
}

#[test]
fn recall_ranks_by_the_composite_score_and_counts_uses() {
    let new = "33333333-3333-4333-8333-333333333333";
    let old = format!("---\nid: {OLD}\ncreated: 2020-01-01\n---\nplover on the beach\n");
    let fresh = format!("---\nid: {new}\ncreated: 2026-11-20\ntype: factual\n---\nplover on the shore\n");
    let vault = TestVault::new(&[
        ("A.md", old.as_str()),
        ("B.md", fresh.as_str()),
        ("Away.md", "---\ntier: archive\n---\nplover away\n"),
        ("Gone.md", "---\nforgotten: true\n---\nplover gone\n"),
    ]);
    let mut client = start(&vault);
    let result = client.call("memory_recall", json!({ "query": "plover" }));
    let memories = result["structuredContent"]["memories"].as_array().unwrap();
    assert_eq!((memories.len(), result["structuredContent"]["truncated"].clone()), (2, json!(false)));
    // As much alike, but one is six years old.
    assert_eq!((&memories[0]["id"], &memories[1]["id"]), (&json!(new), &json!(OLD)), "{result}");
    assert_eq!((&memories[0]["tier"], &memories[1]["tier"]), (&json!("HOT"), &json!("COLD")));
    let recency = 0.3 * (-1.0_f64 / 90.0).exp();
    assert!((memories[0]["score"].as_f64().unwrap() - 0.5 - recency).abs() < 1e-6, "{result}");
    assert_eq!(memories[1]["text"], "plover on the beach");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Found 2 memories:\n\n1. HOT factual "), "{text}");
    assert_eq!(recall(&mut client, json!({ "query": "plover", "limit": 1 })), [new]);
    assert_eq!(recall(&mut client, json!({ "query": "plover", "tier": "COLD" })), [OLD]);
    assert_eq!(recall(&mut client, json!({ "query": "plover", "includeArchive": true })).len(), 3);
    assert_eq!(recall(&mut client, json!({ "query": "plover", "includeForgotten": true })).len(), 3);
    assert_eq!(recall(&mut client, json!({ "query": "plover", "tier": "ARCHIVE" })).len(), 1);
    assert_eq!(recall(&mut client, json!({ "query": "plover", "limit": 0 })).len(), 0);
    let none = client.call("memory_recall", json!({ "query": "walrus" }));
    assert_eq!(none["content"][0]["text"], "No memories found.");
    assert_eq!(none["structuredContent"]["memories"], json!([]));
    for (arguments, says) in
        [(json!({}), "query"), (json!({ "query": "x", "tier": "hot?" }), r#"tier is "hot?""#)]
    {
        assert!(client.refusal("memory_recall", arguments).contains(says));
    }
    // Five where nothing is said.
    for at in 0..12 {
        store(&mut client, &format!("sandpiper case {at}"));
    }
    assert_eq!(recall(&mut client, json!({ "query": "sandpiper" })).len(), 5);
    assert_eq!(recall(&mut client, json!({ "query": "sandpiper", "limit": 12 })).len(), 12);
    client.finish();
    assert_eq!((uses(&vault, new), uses(&vault, OLD)), (4, 4));
}

#[test]
fn long_memories_are_truncated_in_long_lists() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    for at in 0..3 {
        store(&mut client, &format!("bittern {at} {}", "reed ".repeat(3000)));
    }
    let result = client.call("memory_recall", json!({ "query": "bittern" }));
    let memories = result["structuredContent"]["memories"].as_array().unwrap();
    let long: usize = memories.iter().map(|memory| memory["text"].as_str().unwrap().len()).sum();
    assert_eq!((memories.len(), &result["structuredContent"]["truncated"]), (3, &json!(true)));
    assert!(long < 21_000, "{long}");
    client.finish();
}

#[test]
fn forgotten_memories_can_be_restored_unless_they_are_deleted() {
    let vault = TestVault::new(&[("Notes/Own.md", "a cormorant dries its wings\n")]);
    let mut client = start(&vault);
    let id = store(&mut client, "grebes dance in spring");
    let forgot = client.call("memory_forget", json!({ "memoryId": id }));
    assert_eq!(
        forgot["structuredContent"]["details"],
        json!({ "id": id, "text": "grebes dance in spring", "hardDeleted": false, "restorable": true })
    );
    assert!(text_of(&vault, "Memories/grebes dance in spring.md").contains("forgotten: true\n"));
    assert_eq!(recall(&mut client, json!({ "query": "grebes" })).len(), 0);
    let refusal = client.refusal("memory_forget", json!({ "memoryId": id }));
    assert!(
        refusal.starts_with(&format!("Memory is already forgotten: {id}. ")) && refusal.contains("hard"),
        "{refusal}"
    );
    let restored = details(&mut client, "memory_restore", json!({ "memoryId": id }));
    assert_eq!(
        (&restored["id"], &restored["forgotten"], &restored["tier"]),
        (&json!(id), &json!(false), &json!("HOT"))
    );
    assert!(!text_of(&vault, "Memories/grebes dance in spring.md").contains("forgotten"));
    assert_eq!(
        client.refusal("memory_restore", json!({ "memoryId": id })),
        format!("Memory is not forgotten: {id}")
    );
    assert_eq!(
        client.refusal("memory_restore", json!({ "memoryId": NOBODY })),
        format!("Memory not found: {NOBODY}")
    );
    assert_eq!(
        client.refusal("memory_forget", json!({ "memoryId": NOBODY })),
        format!("Memory not found: {NOBODY}")
    );
    // By words: the best match.
    let found = details(&mut client, "memory_forget", json!({ "query": "cormorant wings" }));
    assert_eq!(found["text"], "a cormorant dries its wings");
    assert!(
        client
            .refusal("memory_forget", json!({ "query": "walrus" }))
            .contains("No memory found matching query: walrus")
    );
    assert!(
        client
            .refusal("memory_forget", json!({}))
            .contains("neither memoryId nor query is given. Give one of them")
    );
    // Hard, also where it is forgotten already.
    details(&mut client, "memory_forget", json!({ "memoryId": id }));
    let gone = details(&mut client, "memory_forget", json!({ "memoryId": id, "hard": true }));
    assert_eq!((&gone["hardDeleted"], &gone["restorable"]), (&json!(true), &json!(false)));
    let names: Vec<String> = tree(vault.root()).into_keys().collect();
    assert_eq!(names, [".trash/Memories/grebes dance in spring.md", "Notes/Own.md"]);
    assert_eq!(
        client.refusal("memory_restore", json!({ "memoryId": id })),
        format!("Memory not found: {id}")
    );
    client.finish();
}

#[test]
fn pinning_raises_cold_and_archived_memories() {
    let old = format!("---\nid: {OLD}\ncreated: 2020-01-01\n---\nsnipe\n");
    let away = "22222222-2222-4222-8222-222222222222";
    let archived = format!("---\nid: {away}\ncreated: 2020-01-01\ntier: archive\n---\nruff\n");
    let vault = TestVault::new(&[("Old.md", old.as_str()), ("Away.md", archived.as_str())]);
    let mut client = start(&vault);
    for (id, path) in [(OLD, "Old.md"), (away, "Away.md")] {
        let pinned = details(&mut client, "memory_pin", json!({ "memoryId": id }));
        assert_eq!(
            (&pinned["id"], &pinned["tier"], &pinned["tierUpdated"], &pinned["pinned"]),
            (&json!(id), &json!("WARM"), &json!(true), &json!(true))
        );
        let written = text_of(&vault, path);
        assert!(written.contains("pinned: true\n") && !written.contains("tier:"), "{written}");
        assert_eq!(
            client.refusal("memory_pin", json!({ "memoryId": id })),
            format!("Memory is already pinned: {id}")
        );
    }
    let new = store(&mut client, "knots gather");
    let pinned = details(&mut client, "memory_pin", json!({ "memoryId": new }));
    assert_eq!((&pinned["tier"], &pinned["tierUpdated"]), (&json!("HOT"), &json!(false)));
    let unpinned = details(&mut client, "memory_unpin", json!({ "memoryId": OLD }));
    assert_eq!((&unpinned["pinned"], &unpinned["tier"]), (&json!(false), &json!("COLD")));
    assert!(!text_of(&vault, "Old.md").contains("pinned"));
    assert_eq!(
        client.refusal("memory_unpin", json!({ "memoryId": OLD })),
        format!("Memory is not pinned: {OLD}")
    );
    for tool in ["memory_pin", "memory_unpin", "memory_explain"] {
        assert_eq!(
            client.refusal(tool, json!({ "memoryId": NOBODY })),
            format!("Memory not found: {NOBODY}")
        );
        assert_eq!(client.refusal(tool, json!({ "memoryId": "Old" })), "Memory not found: Old");
        assert!(client.refusal(tool, json!({})).contains("memoryId"));
    }
    client.finish();
}

#[test]
fn the_parts_of_an_explanation_add_up_and_it_counts_no_use() {
    let old = format!(
        "---\nid: {OLD}\ntype: factual\nimportance: 8\ncreated: 2026-08-23\n---\nredshank on the marsh\n"
    );
    let vault = TestVault::new(&[("Old.md", old.as_str())]);
    let mut client = start(&vault);
    let told = details(&mut client, "memory_explain", json!({ "memoryId": OLD, "query": "redshank" }));
    let scoring = &told["scoring"];
    let close = |value: &Value, wanted: f64| (value.as_f64().unwrap() - wanted).abs() < 1e-6;
    // 90 days old, and half-life 90: e^-1, halved for it is cold.
    let recency = (-1.0_f64).exp() / 2.0;
    assert!(close(&told["similarity"], 1.0) && close(&scoring["similarityComponent"], 0.5), "{told}");
    assert!(close(&scoring["recencyComponent"], 0.3 * recency), "{told}");
    assert!(close(&scoring["frequencyComponent"], 0.0) && close(&scoring["totalScore"], 0.5 + 0.3 * recency));
    assert_eq!((&told["halfLifeDays"], &told["memoryType"]), (&json!(90.0), &json!("factual")));
    assert_eq!((&told["effectiveAgeDays"], &scoring["effectiveAgeDays"]), (&json!(90.0), &json!(90.0)));
    assert_eq!((&told["useCount"], &told["daysUsed"], &told["useDays"]), (&json!(0), &json!(0), &json!([])));
    assert_eq!((&told["tier"], &told["injection"]["eligible"]), (&json!("COLD"), &json!(true)));
    assert_eq!(told["injection"]["reason"], "it is COLD");
    // 8 × 0.5 is 4, which is 3/8 of the way to the middle.
    assert_eq!((&told["importance"], &told["effectiveImportance"]), (&json!(0.8), &json!(0.375)));
    recall(&mut client, json!({ "query": "redshank" }));
    let told = details(&mut client, "memory_explain", json!({ "memoryId": OLD }));
    assert_eq!(
        (&told["useCount"], &told["daysUsed"], &told["useDays"]),
        (&json!(1), &json!(1), &json!(["2026-11-21"]))
    );
    assert_eq!(told["similarity"], 0.0);
    details(&mut client, "memory_forget", json!({ "memoryId": OLD }));
    let told = details(&mut client, "memory_explain", json!({ "memoryId": OLD }));
    assert_eq!(told["injection"]["eligible"], false);
    assert_eq!(told["useCount"], 1);
    client.finish();
}

#[test]
fn the_context_expires() {
    let vault = TestVault::new(&[]);
    let at = |now: &str| Client::of(vault.command(&["mcp", "--toolset", "tiered"]).env("SIDENOTE_NOW", now));
    let mut client = at("2026-11-21T10:00");
    let none = client.call("memory_clear_context", json!({}));
    assert_eq!(none["structuredContent"]["details"], json!({ "cleared": false }));
    assert_eq!(none["content"][0]["text"], "There was no active context.");
    let set = client.call("memory_set_context", json!({ "text": "moving the parser", "ttlHours": 1.5 }));
    assert_eq!(
        set["structuredContent"]["details"],
        json!({
            "id": "active", "text": "moving the parser", "created_at": "2026-11-21T10:00:00.000Z", "ttl_seconds": 5400,
            "expires_at": "2026-11-21T11:30:00.000Z",
        })
    );
    assert_eq!(set["content"][0]["text"], "Context set. It expires at 2026-11-21T11:30:00.000Z.");
    let seen = client.call("memory_recall", json!({ "query": "x" }));
    assert_eq!(seen["structuredContent"]["context"]["text"], "moving the parser");
    for (arguments, says) in [
        (json!({}), "text"),
        (json!({ "text": " " }), "the context is empty"),
        (json!({ "text": "x", "ttlHours": 0 }), "TTL hours must be greater than 0"),
        (json!({ "text": "x", "ttlHours": -1 }), "TTL hours must be greater than 0"),
    ] {
        let refusal = client.refusal("memory_set_context", arguments);
        assert!(refusal.contains(says), "{refusal}");
    }
    client.finish();
    let mut client = at("2026-11-21T11:29:59");
    let seen = client.call("memory_recall", json!({ "query": "x" }));
    assert_eq!(seen["structuredContent"]["context"]["text"], "moving the parser");
    client.finish();
    let mut client = at("2026-11-21T11:30");
    let seen = client.call("memory_recall", json!({ "query": "x" }));
    assert_eq!(seen["structuredContent"]["context"], Value::Null);
    assert_eq!(details(&mut client, "memory_clear_context", json!({})), json!({ "cleared": false }));
    let set = details(&mut client, "memory_set_context", json!({ "text": "one" }));
    assert_eq!(
        (&set["expires_at"], &set["ttl_seconds"]),
        (&json!("2026-11-21T15:30:00.000Z"), &json!(14_400))
    );
    details(&mut client, "memory_set_context", json!({ "text": "two" }));
    assert_eq!(
        details(&mut client, "memory_clear_context", json!({})),
        json!({ "cleared": true, "previousText": "two" })
    );
    assert_eq!(details(&mut client, "memory_clear_context", json!({})), json!({ "cleared": false }));
    client.finish();
}

#[test]
fn a_recall_keeps_to_the_least_score() {
    let vault = TestVault::new(&[("A.md", "plover on the beach\n"), ("B.md", "plover on the shore\n")]);
    let mut client = start(&vault);
    assert_eq!(recall(&mut client, json!({ "query": "plover", "minScore": 0 })).len(), 2);
    assert!(recall(&mut client, json!({ "query": "plover", "minScore": 1.1 })).is_empty());
    // What is not returned was not used.
    assert_eq!(crate::support::uses(&vault, "A"), 1);
    client.finish();
}
