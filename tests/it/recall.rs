//! Tests recall: which memories a prompt recalls, which it does not, and what a query may forget.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use sidenote::base::clock::Timestamp;
use sidenote::index::silent;
use sidenote::memory::evidence::MatchEvidence;
use sidenote::memory::recall::{estimate_tokens, prompt_terms};

use crate::mcp_client::Client;
use crate::support::{TestVault, json as told, run, stderr, stdout, uses};

const NOW: &str = "2026-11-21";
const ABSENT: &str = "00000000-0000-4000-8000-000000000000";

/// Prompts that are about no note.
const QUIET: &[&str] = &[
    "Thanks, that helps a lot.",
    "ok",
    "Hello!",
    "yes please, go ahead",
    "Great, that works. Thank you so much!",
    "run the tests again",
    "looks good to me, commit it",
    "What is the capital of Mongolia?",
    "let x = vec![1, 2, 3];",
    "Can you make the function shorter?",
    "why does the linter complain?",
    "Good morning, how are you today?",
];

/// Prompts, and the note that each is about.
const ASKED: &[(&str, &str)] = &[
    ("Where does the antenna hang?", "Antenna.md"),
    ("When is the sauna booked for the crew?", "Sauna.md"),
    ("How is the rye bread with caraway baked?", "Bread.md"),
    ("Does the heron stand at the pond?", "Heron.md"),
    ("Antenna", "Antenna.md"),
    ("what does E-1107 mean", "Errors.md"),
    ("what about the Sauna?", "Sauna.md"),
];

fn vault() -> TestVault {
    TestVault::new(&[
        ("Antenna.md", "---\nid: antenna\n---\nThe antenna at the moor outlet hangs from the second pole.\n"),
        ("Sauna.md", "---\nid: sauna\n---\nThe sauna is booked for the crew on Friday at seven.\n"),
        ("Bread.md", "---\nid: bread\n---\nRye bread with caraway, baked at 230 degrees.\n"),
        ("Errors.md", "---\nid: errors\n---\nThe gauge reported E-1107, so its tube was replaced.\n"),
        ("Heron.md", "---\nid: heron\n---\nA heron stands at the pond every morning.\n"),
        ("Log.md", "---\nid: log\n---\nThanks to Anna for the help with the mast. It works.\n"),
    ])
}

fn hook(vault: &TestVault, prompt: &str, provider: &str) -> String {
    hook_in_session(vault, prompt, "", provider)
}

fn hook_in_session(vault: &TestVault, prompt: &str, session: &str, provider: &str) -> String {
    let mut command = vault.command(&["hook", "recall"]);
    let mut child = command
        .env("SIDENOTE_EMBED_PROVIDER", provider)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(json!({ "prompt": prompt, "session_id": session }).to_string().as_bytes())
        .unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    stdout(&done)
}

#[test]
fn an_unrelated_prompt_recalls_nothing_and_counts_no_use() {
    for provider in ["none", "e5"] {
        let vault = vault();
        vault.store_with(provider).index().embed_all(silent()).unwrap();
        let mut checked = 0;
        for prompt in QUIET {
            assert_eq!(hook(&vault, prompt, provider), "", "{provider}: {prompt}");
            checked += 1;
        }
        assert_eq!(checked, 12);
        for id in ["antenna", "sauna", "bread", "heron", "log"] {
            assert_eq!(uses(&vault, id), 0, "{id}");
        }
    }
}

#[test]
fn a_related_prompt_recalls_the_note() {
    for provider in ["none", "e5"] {
        let vault = vault();
        vault.store_with(provider).index().embed_all(silent()).unwrap();
        let mut checked = 0;
        for (prompt, path) in ASKED {
            let block = hook(&vault, prompt, provider);
            assert!(block.contains(&format!("path=\"{path}\"")), "{provider}: {prompt}: {block}");
            checked += 1;
        }
        assert_eq!(checked, 7);
    }
}

/// Writes a note that was created so many days after the first one of 2026.
fn write_dated(vault: &TestVault, path: &str, text: &str, day: i64) {
    let created = Timestamp::from_millis((20_454 + day) * 86_400_000).day();
    vault.write(path, format!("---\ncreated: {created}\n---\n{text}"));
}

/// A hook looks for what matches while the files are compared with the index, which takes longer with many notes.
#[test]
fn a_hook_answers_from_what_the_files_say_now() {
    let vault = TestVault::new(&[("Antenna.md", "The antenna at the outlet hangs from the second pole.\n")]);
    for at in 0..3_000 {
        vault.write(&format!("{}/n{at}.md", at % 40), format!("Log of day {at}: nothing new at the moor.\n"));
    }
    run(&vault, NOW, &["index", "--no-embed"]);
    let block = |prompt: &str| {
        // Uses would raise the tier.
        drop(fs::remove_dir_all(vault.root().join(".sidenote/local")));
        hook(&vault, prompt, "none")
    };
    let tier_of = |path: &str, text: &str, prompt: &str, day| {
        write_dated(&vault, path, text, day);
        let block = block(prompt);
        let tier = block.split("tier=\"").nth(1).and_then(|rest| rest.split('"').next());
        tier.unwrap_or_else(|| panic!("{block}")).to_owned()
    };
    let asked = "Where does the antenna at the outlet hang?";
    let text = "The antenna at the outlet hangs from the second pole.\n";
    for (path, text, prompt) in
        [("Antenna.md", text, asked), ("Kestrel Mast.md", "", "What of the Kestrel Mast?")]
    {
        run(&vault, NOW, &["index", "--no-embed"]);
        tier_of(path, text, prompt, 100);
        for _ in 0..5 {
            let tiers = (tier_of(path, text, prompt, 0), tier_of(path, text, prompt, 323));
            assert_eq!(tiers, ("COLD".to_owned(), "HOT".to_owned()), "{path}");
        }
    }
    let block = || block(asked);
    for pole in ["third", "fourth", "fifth"] {
        vault.write("Antenna.md", format!("The antenna at the outlet hangs from the {pole} pole.\n"));
        assert!(block().contains(pole), "changed");
    }
    vault.write("Outlet.md", "The antenna at the outlet hangs on the wall, too.\n");
    assert!(block().contains("on the wall"), "added");
    fs::rename(vault.root().join("Antenna.md"), vault.root().join("Mast.md")).unwrap();
    let renamed = block();
    assert!(renamed.contains("Mast.md") && !renamed.contains("Antenna.md"), "{renamed}");
    vault.remove("Outlet.md");
    assert!(!block().contains("on the wall"), "removed");
}

#[test]
fn a_hook_shows_nothing_of_a_note_that_has_just_hidden_itself() {
    let vault = TestVault::new(&[
        ("Antenna.md", "The antenna at the outlet hangs from the second pole.\n"),
        (
            "Zanzibar.md",
            "---\npinned: true\ntype: fact\n---\nThe zanzibar antenna at the outlet hangs from a palm.\n",
        ),
    ]);
    let asked = "Where does the antenna at the outlet hang?";
    run(&vault, NOW, &["index", "--no-embed"]);
    assert!(hook(&vault, asked, "none").contains("palm"));
    drop(fs::remove_dir_all(vault.root().join(".sidenote/local")));
    let hidden = "---\npinned: true\ntype: fact\nagents: none\n---\nThe zanzibar antenna at the outlet hangs from a palm.\n";
    vault.write("Zanzibar.md", hidden);
    for _ in 0..2 {
        let block = hook(&vault, asked, "none");
        assert!(block.contains("second pole") && !block.to_lowercase().contains("zanzibar"), "{block}");
        drop(fs::remove_dir_all(vault.root().join(".sidenote/local")));
    }
}

#[test]
fn small_talk_has_no_key_terms() {
    for (prompt, words) in [
        ("Thanks, that helps a lot.", &[][..]),
        ("Great, thank you! Please continue.", &[]),
        ("Thanks! Where does the antenna hang?", &["antenna", "hang"]),
    ] {
        assert_eq!(prompt_terms(prompt), words, "{prompt}");
    }
}

#[test]
fn a_note_is_given_once_in_a_session_unless_it_changed_or_is_asked_for() {
    let vault = vault();
    run(&vault, NOW, &["index"]);
    let asked = "Where does the antenna hang?";
    let has =
        |prompt: &str, session: &str| hook_in_session(&vault, prompt, session, "e5").contains("antenna");
    assert!(has(asked, "one"));
    assert!(!has(asked, "one"), "it was given in this session");
    assert!(!has("How does the antenna hang from the second pole?", "one"), "in whatever words");
    assert!(has(asked, "two"), "another session");
    assert!(has(asked, "") && has(asked, ""), "no session");
    assert!(has("Where does the antenna hang again?", "one"), "the prompt asks for it again");
    assert!(has("Antenna", "one"), "the prompt names it");
    assert_eq!(uses(&vault, "antenna"), 6, "what is not given is no use");
    vault.write(
        "Antenna.md",
        "---\nid: antenna\n---\nThe antenna at the moor outlet hangs from the third pole.\n",
    );
    assert!(has(asked, "one"), "it changed");
}

#[test]
fn match_evidence_at_its_thresholds() {
    let of = |similarity: Option<f32>, words: f32| MatchEvidence {
        similarity,
        words,
        count: 1,
        ..MatchEvidence::default()
    };
    assert!(!of(Some(0.2), 0.2).is_about(Some(0.4)));
    assert!(of(Some(0.4), 0.0).is_about(Some(0.4)));
    assert!(!of(Some(0.9), 0.0).is_about(None), "an unmeasured model decides nothing");
    assert!(!of(None, 1.0).is_about(None), "one word may occur by chance");
    assert!(!MatchEvidence { in_name: 1, ..of(None, 1.0) }.is_about(None), "also in a name");
    assert!(MatchEvidence { in_name: 1, count: 2, ..of(Some(0.1), 0.9) }.is_about(Some(0.4)));
    assert!(MatchEvidence { count: 2, ..of(None, 0.9) }.is_about(None));
    // Words and meaning add up: 0.2 / 0.4 + 0.8 · 1 · (1 − 0.8 / 3) is above 1, with two words it is not.
    assert!(MatchEvidence { count: 3, ..of(Some(0.2), 1.0) }.is_about(Some(0.4)));
    assert!(!MatchEvidence { count: 2, ..of(Some(0.2), 1.0) }.is_about(Some(0.4)));
    assert!(!of(Some(0.9), 0.2).is_certain());
    assert!(MatchEvidence { is_named: true, ..MatchEvidence::default() }.is_about(None));
}

#[test]
fn recall_gives_the_passage_that_matched() {
    let filler = "Nothing of note happened on this day, and the weather was fair. ".repeat(20);
    let long = format!(
        "# Log of the boat\n\n{filler}\n\n## Spring\n\n{filler}\n\n## Summer\n\nThe antenna hangs from the second pole."
    );
    let vault = TestVault::new(&[("Log.md", &long), ("Other.md", "Bread and butter.")]);
    run(&vault, NOW, &["index"]);
    let reply = told(&vault, NOW, &["memory", "recall", "where does the antenna hang", "--format", "json"]);
    let text = reply["memories"][0]["text"].as_str().unwrap();
    assert!(text.contains("The antenna hangs from the second pole."), "{text}");
    assert!(!text.starts_with("# Log of the boat"), "{text}");
    let block = run(&vault, NOW, &["memory", "recall", "where does the antenna hang"]);
    assert!(block.contains("path=\"Log.md\" title=\"Log of the boat\""), "{block}");
}

#[test]
fn a_canvas_gives_the_text_of_its_cards() {
    let canvas = json!({
        "nodes": [
            { "id": "1", "type": "text", "text": "The \"antenna\" hangs\nfrom the second pole.", "x": 0, "y": 0, "width": 1, "height": 1 },
            { "id": "2", "type": "text", "text": "Bread and butter.", "x": 0, "y": 0, "width": 1, "height": 1 },
        ],
        "edges": [],
    });
    let vault = TestVault::new(&[
        ("Board.canvas", &serde_json::to_string_pretty(&canvas).unwrap()),
        ("a.md", "Oak."),
    ]);
    run(&vault, NOW, &["index"]);
    let found = told(&vault, NOW, &["search", "antenna pole"]);
    let recalled = told(&vault, NOW, &["memory", "recall", "antenna pole", "--format", "json"]);
    for text in [&found["results"][0]["snippet"], &recalled["memories"][0]["text"]] {
        let text = text.as_str().unwrap();
        assert!(text.contains("The \"antenna\" hangs") && text.contains("from the second pole."), "{text}");
        assert!(!text.contains("\\\"") && !text.contains("width") && !text.contains("{"), "{text}");
    }
}

#[test]
fn the_budget_limits_everything_that_is_sent() {
    let vault = TestVault::new(&[]);
    for at in 0..12 {
        vault.write(
            &format!("Antenna {at}.md"),
            format!("The antenna {at} hangs. {}", "It is well made. ".repeat(40)),
        );
    }
    run(&vault, NOW, &["memory", "set-context", "the \"antenna\" of the moor"]);
    let mut client = Client::start(&vault, &[]);
    client.catch_up();
    let mut given = Vec::new();
    for budget in [0, 100, 300, 1000, 4000] {
        let reply =
            client.call("recall", json!({ "prompt": "where does the antenna hang", "budget": budget }));
        let data = &reply["structuredContent"];
        let block = data["xml"].as_str().unwrap();
        let text = reply["content"][0]["text"].as_str().unwrap();
        let sent = estimate_tokens(&format!("{text}{data}"));
        assert!(sent <= budget || block.is_empty(), "{budget}: {sent} tokens: {data}");
        let memories = data["memories"].as_array().unwrap();
        assert_eq!(block.matches("<memory ").count(), memories.len(), "the two forms hold the same");
        given.push(memories.len());
    }
    assert!(given.is_sorted() && given[0] == 0 && given[3] >= 1 && given[4] >= 4, "{given:?}");
    client.finish();
    let listed = run(&vault, NOW, &["memory", "recall", "antenna", "--format", "json", "--budget", "200"]);
    assert!(estimate_tokens(&listed) <= 200, "{listed}");
}

#[test]
fn only_sent_memories_count_as_used() {
    let vault = TestVault::new(&[]);
    for at in 0..6 {
        let text = format!("---\nid: a{at}\n---\nThe antenna {at} hangs. {}", "It is well made. ".repeat(40));
        vault.write(&format!("Antenna {at}.md"), text);
    }
    run(&vault, NOW, &["index"]);
    let block = run(&vault, NOW, &["memory", "recall", "where does the antenna hang", "--budget", "250"]);
    let sent = block.matches("<memory ").count();
    let used: u64 = (0..6).map(|at| uses(&vault, &format!("a{at}"))).sum();
    assert!((1..6).contains(&sent), "{block}");
    assert_eq!(used, sent as u64);
}

#[test]
fn a_query_that_matches_no_memory_forgets_none() {
    let vault = vault();
    run(&vault, NOW, &["index"]);
    let before = crate::support::tree(vault.root());
    let mut checked = 0;
    for name in [
        ABSENT,
        "Memories/Anntena.md",
        "Anntena.md",
        "Notes/antenna",
        "[[Antena]]",
        "0199f3a1",
        "walrus",
        "something entirely different about walruses and the antenna tax of 1987",
    ] {
        for hard in [false, true] {
            let args: &[&str] = if hard {
                &["memory", "forget", name, "--hard", "--confirm"]
            } else {
                &["memory", "forget", name]
            };
            let done = vault.run(args);
            assert_eq!(done.status.code(), Some(3), "{name}: {}", stderr(&done));
        }
        checked += 1;
    }
    assert_eq!(checked, 8);
    let mut client = Client::start(&vault, &["--toolset", "tiered"]);
    for query in [ABSENT, "Memories/Anntena.md", "walrus"] {
        let refusal = client.refusal("memory_forget", json!({ "query": query }));
        assert!(refusal.starts_with(&format!("No memory found matching query: {query}")), "{refusal}");
    }
    client.finish();
    let mut client = Client::start(&vault, &[]);
    let refusal = client.refusal("delete_note", json!({ "note": ABSENT, "how": "forget" }));
    assert!(refusal.contains("no note is named"), "{refusal}");
    client.finish();
    assert_eq!(crate::support::tree(vault.root()), before);
}

#[test]
fn an_ambiguous_query_forgets_none() {
    let vault = TestVault::new(&[
        ("a.md", "The boat leaks."),
        ("b.md", "A boat lies on the moor."),
        ("c.md", "The kettle is new."),
    ]);
    run(&vault, NOW, &["index"]);
    let before = crate::support::tree(vault.root());
    for query in ["boat", "the boat", "the"] {
        let done = vault.run(&["memory", "forget", query]);
        assert_eq!(done.status.code(), Some(3), "{query}: {}", stderr(&done));
        assert!(stderr(&done).contains("give the path or id of the one you mean"), "{}", stderr(&done));
    }
    assert_eq!(crate::support::tree(vault.root()), before);
    let done = vault.run(&["memory", "forget", "boat on the moor"]);
    assert!(stderr(&done).contains("b.md (b) is forgotten"), "{}", stderr(&done));
}

#[test]
fn forgetting_by_query_names_the_memory_and_how_to_restore_it() {
    let vault = vault();
    run(&vault, NOW, &["index"]);
    let done = vault.run(&["memory", "forget", "sauna for the crew"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let said = stderr(&done);
    assert!(said.contains("the query matches Sauna.md (Sauna)"), "{said}");
    assert!(said.contains("Sauna.md (Sauna) is forgotten; `sidenote undo` brings it back"), "{said}");
    run(&vault, NOW, &["undo"]);
    let mut client = Client::start(&vault, &["--toolset", "tiered"]);
    let reply = client.call("memory_forget", json!({ "query": "rye bread with caraway" }));
    let text = reply["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("The query was taken to mean Bread.md (Bread)."), "{text}");
    assert!(text.contains("memory_restore brings it back"), "{text}");
    assert_eq!(reply["structuredContent"]["details"]["id"], Value::from("bread"));
    client.finish();
}
