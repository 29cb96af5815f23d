//! Tests the toolset `vector` against its contract, word for word, over standard input and output.

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, json as told, run, text_of, tree, uses};

const NOW: &str = "2026-11-21";
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

fn start(vault: &TestVault) -> Client {
    Client::start(vault, &["--toolset", "vector"])
}

fn at(vault: &TestVault, now: &str) -> Client {
    Client::of(vault.command(&["mcp", "--toolset", "vector"]).env("SIDENOTE_NOW", now))
}

fn store(client: &mut Client, content: &str) -> String {
    let text = client.text("store_memories", json!({ "memories": [{ "content": content }] }));
    text.strip_prefix("Memory stored with ID: ").unwrap().to_owned()
}

fn search(client: &mut Client, query: &str) -> String {
    let arguments = json!({ "query": query, "intent": "fact_check", "reason_for_search": "a test" });
    client.text("search_memories", arguments)
}

#[test]
fn memories_are_stored_as_they_are_given() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let text = client.text(
        "store_memories",
        json!({ "memories": [{
            "content": "The boat leaves at nine.\n\nBring <private>the code 4711</private>oars.",
            "embedding_text": "departure of the boat",
            "metadata": { "z": 1, "a": ["x", { "deep": null }], "when": "2026-11-21", "share": 0.5 },
        }] }),
    );
    let id = text.strip_prefix("Memory stored with ID: ").unwrap().to_owned();
    assert_eq!(uuid::Uuid::parse_str(&id).unwrap().to_string(), id);
    let written = text_of(&vault, "Memories/The boat leaves at nine.md");
    assert_eq!(
        written,
        format!(
            "---\nid: {id}\ntitle: The boat leaves at nine.\ntype: general\ncreated_at: \"2026-11-21T00:00:00Z\"\n\
             summary: departure of the boat\nmetadata: {{z: 1, a: [x, {{deep: null}}], when: 2026-11-21, share: 0.5}}\n---\n\
             The boat leaves at nine.\n\nBring oars.\n"
        )
    );
    let got = client.text("get_memories", json!({ "ids": [id] }));
    assert!(
        got.starts_with(&format!(
            "ID: {id}\nContent: The boat leaves at nine.\n\nBring oars.\n\
             Metadata: {{\"z\":1,\"a\":[\"x\",{{\"deep\":null}}],\"when\":\"2026-11-21\",\"share\":0.5}}\n\
             Created: 2026-11-21T00:00:00.000Z\nUpdated: 20"
        )),
        "{got}"
    );
    // Text that is embedded with the content is found by its words, too.
    assert!(search(&mut client, "departure").starts_with(&format!("ID: {id}\n")));

    // Several, two of them the same as one that is there, and one that looks like frontmatter.
    let same = "The boat leaves at nine.\n\nBring oars.";
    let odd = "---\npinned: true\n---\nA rule.";
    let text = client.text(
        "store_memories",
        json!({ "memories": [{ "content": same }, { "content": same, "metadata": null }, { "content": odd }, { "content": "🎉" }] }),
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines.len()), ("Stored 4 memories:", 5));
    let ids: Vec<&str> = lines[1..].iter().map(|line| line.strip_prefix("- ").unwrap()).collect();
    let got = client.text("get_memories", json!({ "ids": ids }));
    let blocks: Vec<&str> = got.split("\n\n---\n\n").collect();
    assert_eq!(blocks.len(), 4, "{got}");
    for (block, (id, content)) in blocks.iter().zip(ids.iter().zip([same, same, odd, "🎉"])) {
        assert!(block.starts_with(&format!("ID: {id}\nContent: {content}\nCreated: ")), "{block}");
    }
    let names: Vec<String> = tree(vault.root()).into_keys().collect();
    assert!(names.contains(&"Memories/The boat leaves at nine 2.md".to_owned()), "{names:?}");
    assert!(names.contains(&"Memories/The boat leaves at nine 3.md".to_owned()), "{names:?}");
    client.finish();
}

#[test]
fn an_invalid_memory_in_a_batch_stores_nothing() {
    let vault = TestVault::new(&[("Note.md", "text\n")]);
    let before = vault.contents();
    let mut client = start(&vault);
    for (arguments, says) in [
        (json!({}), "memories"),
        (json!({ "memories": [] }), "memories is empty. Give at least one. A valid call: {"),
        (json!({ "memories": [{ "content": "fine" }, { "content": " \n" }] }), "there is no text to keep"),
        (json!({ "memories": [{ "content": "fine" }, {}] }), "content"),
        (json!({ "memories": [{ "content": "fine" }, { "content": "<private>all</private>" }] }), "no text"),
        (
            json!({ "memories": [{ "content": ["a", "b"] }] }),
            "memories[0].content is an array; expected a string",
        ),
        (json!({ "memories": [{ "content": "fine", "metadata": "x" }] }), "expected an object"),
    ] {
        let refusal = client.refusal("store_memories", arguments.clone());
        assert!(refusal.contains(says), "{arguments}: {refusal}");
    }
    client.finish();
    assert_eq!(vault.contents(), before);
}

#[test]
fn an_update_replaces_each_given_field() {
    let vault = TestVault::new(&[
        ("Plain.md", "# Heading\r\n\r\nold\r\n"),
        (
            "InsertOutcome.md",
            "---\nid: 11111111-1111-4111-8111-111111111111\n# a comment\nsummary: old\nmetadata: {a: 1, b: 2}\nupdated_at: 2026-01-01\n---\n\nold text\n",
        ),
    ]);
    let mut client = start(&vault);
    let kept = "11111111-1111-4111-8111-111111111111";
    let plain = told(&vault, NOW, &["memory", "explain", "Plain.md"])["id"].as_str().unwrap().to_owned();
    let text = client.text(
        "update_memories",
        json!({ "updates": [
            { "id": kept, "content": "new text", "metadata": { "c": 3 } },
            { "id": NOBODY, "content": "x" },
            { "id": plain, "content": "---\nx: 1\n---\nnew", "embedding_text": null },
            { "id": "InsertOutcome", "content": "by its title" },
        ] }),
    );
    assert_eq!(
        text,
        format!(
            "Memory {kept} updated successfully\nMemory {NOBODY} not found\nMemory {plain} updated successfully\nMemory InsertOutcome not found"
        )
    );
    assert_eq!(
        text_of(&vault, "InsertOutcome.md"),
        format!(
            "---\nid: {kept}\n# a comment\nsummary: old\nmetadata: {{c: 3}}\nupdated_at: \"2026-11-21T00:00:00Z\"\n---\n\nnew text\n"
        )
    );
    assert_eq!(text_of(&vault, "Plain.md"), "\r\n---\r\nx: 1\r\n---\r\nnew\r\n");
    let got = client.text("get_memories", json!({ "ids": [plain] }));
    assert!(
        got.starts_with(&format!("ID: {plain}\nContent: ---\r\nx: 1\r\n---\r\nnew\nCreated: ")),
        "{got:?}"
    );
    // Empty things take the old ones away; nothing given changes nothing.
    client.text(
        "update_memories",
        json!({ "updates": [{ "id": kept, "embedding_text": "", "metadata": {} }] }),
    );
    let written = text_of(&vault, "InsertOutcome.md");
    assert!(!written.contains("summary") && !written.contains("metadata"), "{written}");
    let before = vault.contents();
    let text = client.text("update_memories", json!({ "updates": [{ "id": kept }] }));
    assert_eq!(text, format!("Memory {kept} updated successfully"));
    assert!(client.refusal("update_memories", json!({ "updates": [] })).contains("updates is empty"));
    let refusal = client.refusal(
        "update_memories",
        json!({ "updates": [{ "id": kept, "content": "lost" }, { "id": plain, "content": " " }] }),
    );
    assert!(refusal.contains(&format!("the new content of {plain} is empty")), "{refusal}");
    assert_eq!(vault.contents(), before);
    client.text(
        "update_memories",
        json!({ "updates": [{ "id": kept, "content": "a <private>b</private>c", "embedding_text": "said" }] }),
    );
    assert!(text_of(&vault, "InsertOutcome.md").ends_with("summary: said\n---\n\na c\n"));
    client.finish();
    assert_eq!((uses(&vault, kept), uses(&vault, &plain)), (0, 1));
}

#[test]
fn deleted_memories_are_kept_and_found_on_request() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let one = store(&mut client, "herons fish at dawn");
    let other = store(&mut client, "herons sleep at noon");
    let text = client.text("delete_memories", json!({ "ids": [one, NOBODY] }));
    assert_eq!(text, format!("Memory {one} deleted successfully\nMemory {NOBODY} not found"));
    assert!(text_of(&vault, "Memories/herons fish at dawn.md").contains("forgotten: true\n"));
    assert_eq!(search(&mut client, "herons"), format!("ID: {other}\nContent: herons sleep at noon"));
    let arguments = json!({ "query": "herons dawn", "intent": "associative", "reason_for_search": "r", "include_deleted": true });
    let text = client.text("search_memories", arguments);
    assert_eq!(
        text,
        format!(
            "ID: {one}\nContent: herons fish at dawn\n[DELETED]\n\n---\n\nID: {other}\nContent: herons sleep at noon"
        )
    );
    let got = client.text("get_memories", json!({ "ids": [one] }));
    assert!(got.ends_with("\nSuperseded by: DELETED"), "{got}");
    // Twice is as good as once.
    let text = client.text("delete_memories", json!({ "ids": [one] }));
    assert_eq!(text, format!("Memory {one} deleted successfully"));
    assert!(client.refusal("delete_memories", json!({ "ids": [] })).contains("ids is empty"));
    client.finish();
    assert!(tree(vault.root()).keys().all(|path| !path.starts_with(".trash")));
}

#[test]
fn a_search_gives_blocks_and_counts_no_use() {
    let vault = TestVault::new(&[("Notes/Own.md", "a person's own note about kingfishers\n")]);
    let mut client = start(&vault);
    let arguments = json!({ "memories": [{ "content": "kingfishers dive", "metadata": { "k": "v" } }] });
    let text = client.text("store_memories", arguments);
    let id = text.strip_prefix("Memory stored with ID: ").unwrap().to_owned();
    assert_eq!(search(&mut client, "nothing"), "No memories found matching your query.");
    let text = search(&mut client, "kingfishers dive");
    let own = told(&vault, NOW, &["memory", "explain", "Notes/Own.md"])["id"].as_str().unwrap().to_owned();
    assert_eq!(
        text,
        format!(
            "ID: {id}\nContent: kingfishers dive\nMetadata: {{\"k\":\"v\"}}\n\n---\n\nID: {own}\nContent: a person's own note about kingfishers"
        )
    );
    for intent in ["continuity", "fact_check", "frequent", "associative", "explore"] {
        let arguments = json!({ "query": "dive", "intent": intent, "reason_for_search": "r", "unknown": 1 });
        assert!(client.text("search_memories", arguments).starts_with(&format!("ID: {id}")), "{intent}");
    }
    for (arguments, says) in [
        (
            json!({ "query": "x", "intent": "guess", "reason_for_search": "r" }),
            "intent is \"guess\"; expected continuity, ",
        ),
        (json!({ "query": "x", "intent": "explore" }), "reason_for_search"),
        (json!({ "query": "x", "reason_for_search": "r" }), "intent"),
        (json!({ "intent": "explore", "reason_for_search": "r" }), "query"),
        (json!({ "query": "x", "intent": "explore", "reason_for_search": "r", "limit": -1 }), "limit"),
    ] {
        let refusal = client.refusal("search_memories", arguments);
        assert!(refusal.contains(says), "{refusal}");
    }
    // Ten where nothing is said; words are words.
    let many: Vec<Value> = (0..12).map(|at| json!({ "content": format!("plover -number {at}") })).collect();
    client.text("store_memories", json!({ "memories": many }));
    assert_eq!(search(&mut client, "plover -number").matches("ID: ").count(), 10);
    for (limit, count) in [(0, 0), (1, 1), (12, 12), (500, 12)] {
        let arguments =
            json!({ "query": "plover", "intent": "explore", "reason_for_search": "r", "limit": limit });
        assert_eq!(client.text("search_memories", arguments).matches("ID: ").count(), count);
    }
    client.finish();
    assert_eq!((uses(&vault, &id), uses(&vault, &own)), (0, 0));
}

#[test]
fn long_memories_are_truncated_with_a_notice() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let long = "bittern ".repeat(4000);
    let ids = [store(&mut client, &long), store(&mut client, &long)];
    let text = search(&mut client, "bittern");
    assert!(text.len() < 21_000, "{}", text.len());
    assert_eq!(text.matches("… (cut; get_memories gives more of it)").count(), 2);
    let got = client.text("get_memories", json!({ "ids": ids }));
    assert!(got.len() < 21_500, "{}", got.len());
    assert_eq!(got.matches("… (cut; the note Memories/").count(), 2, "{got}");
    let short = store(&mut client, &"grebe ".repeat(3_000));
    let short = client.text("get_memories", json!({ "ids": [short] }));
    assert!(short.contains("grebe ".repeat(3_000).trim()));
    client.finish();
}

#[test]
fn reading_a_memory_counts_as_a_use() {
    let vault = TestVault::new(&[
        (
            "Old.md",
            "---\nid: 11111111-1111-4111-8111-111111111111\nsuperseded_by: New\ncreated: 2020-01-02\nupdated: 2021-03-04T05:06\n---\nold\n",
        ),
        ("No id.md", "plain\n"),
    ]);
    let mut client = start(&vault);
    let old = "11111111-1111-4111-8111-111111111111";
    let plain = told(&vault, NOW, &["memory", "explain", "No id.md"])["id"].as_str().unwrap().to_owned();
    let got = client.text("get_memories", json!({ "ids": [old, NOBODY, plain, "Old"] }));
    let blocks: Vec<&str> = got.split("\n\n---\n\n").collect();
    assert_eq!(
        blocks[0],
        format!(
            "ID: {old}\nContent: old\nCreated: 2020-01-02T00:00:00.000Z\nUpdated: 2021-03-04T05:06:00.000Z\nSuperseded by: New"
        )
    );
    assert_eq!(blocks[1], format!("Memory {NOBODY} not found"));
    assert!(blocks[2].starts_with(&format!("ID: {plain}\nContent: plain\nCreated: ")));
    assert_eq!((blocks[3], blocks.len()), ("Memory Old not found", 4));
    assert!(client.refusal("get_memories", json!({ "ids": [] })).contains("ids is empty"));
    client.finish();
    assert_eq!((uses(&vault, old), uses(&vault, &plain)), (1, 1));
    let audit = run(&vault, NOW, &["memory", "audit", old]);
    assert!(audit.contains("use") && audit.contains("get_memories"), "{audit}");
}

#[test]
fn votes_add_up() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let id = store(&mut client, "avocets wade");
    let mut vote =
        |useful: bool| client.text("report_memory_usefulness", json!({ "memory_id": id, "useful": useful }));
    assert_eq!(vote(true), format!("Memory {id} marked as useful. New usefulness score: 1"));
    assert_eq!(vote(true), format!("Memory {id} marked as useful. New usefulness score: 2"));
    for score in [1, 0, -1] {
        assert_eq!(vote(false), format!("Memory {id} marked as not useful. New usefulness score: {score}"));
    }
    let refusal = client.refusal("report_memory_usefulness", json!({ "memory_id": NOBODY, "useful": true }));
    assert_eq!(refusal, format!("Memory {NOBODY} not found"));
    assert!(client.refusal("report_memory_usefulness", json!({ "memory_id": id })).contains("useful"));
    client.finish();
    assert_eq!(uses(&vault, &id), 5);
}

#[test]
fn a_handoff_is_stored_and_returned() {
    let vault = TestVault::new(&[]);
    let mut client = at(&vault, "2026-11-21T09:30");
    assert_eq!(client.text("get_handoff", json!({})), "No stored handoff found.");
    let memory = store(&mut client, "tables need two passes");
    let text = client.text(
        "store_handoff",
        json!({
            "project": "Parser", "branch": "tables", "summary": "Tables parse.", "completed": ["a", "b"],
            "in_progress_blocked": ["c"], "key_decisions": ["d"], "next_steps": ["e"], "memory_ids": [memory],
            "metadata": { "by": "me" },
        }),
    );
    let id = text.strip_prefix("Handoff stored with memory ID: ").unwrap().to_owned();
    assert_eq!(
        client.text("get_handoff", json!({})),
        format!(
            "# Handoff - Parser\n**Date:** 2026-11-21 09:30 | **Branch:** tables\n\n## Summary\nTables parse.\n\n\
             ## Completed\n- a\n- b\n\n## In Progress / Blocked\n- c\n\n## Key Decisions\n- d\n\n## Next Steps\n- e\n\n\
             ## Memory IDs\n- {memory}\n\n## Referenced Memories\n\n### Memory: {memory}\ntables need two passes"
        )
    );
    assert!(text_of(&vault, "Handoffs/Parser.md").contains("metadata: {by: me}\n"));
    let got = client.text("get_memories", json!({ "ids": [id] }));
    assert!(got.starts_with(&format!("ID: {id}\nContent: # Handoff - Parser\n")), "{got}");
    assert!(got.contains("\nMetadata: {\"by\":\"me\"}\n"), "{got}");
    for (arguments, says) in [
        (json!({ "summary": "x" }), "project"),
        (json!({ "project": "x" }), "summary"),
        (json!({ "project": "x", "summary": " " }), "the handoff has no summary"),
        (
            json!({ "project": "x", "summary": "x", "completed": { "a": 1 } }),
            "completed is an object; expected an array",
        ),
    ] {
        let refusal = client.refusal("store_handoff", arguments);
        assert!(refusal.contains(says), "{refusal}");
    }
    client.finish();
    assert_eq!(uses(&vault, &memory), 1);
}

#[test]
fn the_newest_handoff_of_a_project_is_returned() {
    let vault = TestVault::new(&[]);
    let store = |now: &str, project: &str, summary: &str| {
        let mut client = at(&vault, now);
        let arguments = json!({ "project": project, "summary": summary });
        let text = client.text("store_handoff", arguments);
        let shown = client.text("get_handoff", json!({}));
        client.finish();
        (text.strip_prefix("Handoff stored with memory ID: ").unwrap().to_owned(), shown)
    };
    let mut client = at(&vault, "2026-11-20T08:00");
    client.text("store_handoff", json!({ "project": "A", "summary": "first", "metadata": { "x": 1 } }));
    client.finish();
    let (b, shown) = store("2026-11-20T09:00", "B", "other");
    assert_eq!(
        shown,
        "# Handoff - B\n**Date:** 2026-11-20 09:00 | **Branch:** unknown\n\n## Summary\nother\n\n## Completed\n- (none)\n\n\
         ## In Progress / Blocked\n- (none)\n\n## Key Decisions\n- (none)\n\n## Next Steps\n- (none)\n\n## Memory IDs\n- (none)"
    );
    let (a, shown) = store("2026-11-20T10:00", "A", "second");
    assert!(shown.starts_with("# Handoff - A\n") && shown.contains("second") && !shown.contains("first"));
    let written = text_of(&vault, "Handoffs/A.md");
    assert!(!written.contains("first") && !written.contains("metadata"), "{written}");
    // One that is deleted is none; and a new one is one again.
    let mut client = at(&vault, "2026-11-20T11:00");
    client.text("delete_memories", json!({ "ids": [a] }));
    assert!(client.text("get_handoff", json!({})).starts_with("# Handoff - B\n"));
    client.text("delete_memories", json!({ "ids": [b] }));
    assert_eq!(client.text("get_handoff", json!({})), "No stored handoff found.");
    client.text("store_handoff", json!({ "project": "A", "summary": "third" }));
    assert!(client.text("get_handoff", json!({})).contains("third"));
    client.finish();
}

#[test]
fn of_handoffs_in_the_same_second_the_last_is_returned() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    for project in ["z", "m", "a", "k"] {
        client.text("store_handoff", json!({ "project": project, "summary": "x" }));
        assert!(client.text("get_handoff", json!({})).starts_with(&format!("# Handoff - {project}\n")));
    }
    client.finish();
}

#[test]
fn a_failed_update_does_not_stop_the_others() {
    let broken = "---\nid: 22222222-2222-4222-8222-222222222222\na: b: c\n---\nBroken.\n";
    let vault = TestVault::new(&[("Broken.md", broken)]);
    let mut client = start(&vault);
    let id = store(&mut client, "first");
    let other = told(&vault, NOW, &["memory", "explain", "Broken.md"])["id"].as_str().unwrap().to_owned();
    let other_change = json!({ "id": other, "content": "x", "metadata": { "k": 1 } });
    let updates = json!([{ "id": id, "content": "second" }, other_change]);
    let text = client.text("update_memories", json!({ "updates": updates }));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, format!("Memory {id} updated successfully").as_str()));
    assert!(lines[1].starts_with(&format!("Memory {other} not updated: ")), "{text}");
    assert_eq!(text_of(&vault, "Broken.md"), broken);
    client.finish();
}

#[test]
fn a_waypoint_is_a_handoff_of_its_project() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    assert_eq!(client.text("get_waypoint", json!({})), "No stored waypoint found.");
    let said = client.text("set_waypoint", json!({ "project": "parser", "summary": "Tables parse" }));
    assert!(said.starts_with("Waypoint stored with memory ID: "), "{said}");
    client.text("set_waypoint", json!({ "summary": "The notes are sorted", "next_steps": ["tags"] }));
    let parser = client.text("get_waypoint", json!({ "project": "parser" }));
    assert!(parser.contains("Tables parse"), "{parser}");
    assert_eq!(client.text("get_waypoint", json!({ "project": "lexer" })), "No stored waypoint found.");
    // Without a project: what was worked on last; and the older tool gives the same.
    let newest = client.text("get_waypoint", json!({}));
    assert!(newest.contains("The notes are sorted") && newest.contains("- tags"), "{newest}");
    assert_eq!(client.text("get_handoff", json!({})), newest);
    assert!(client.refusal("set_waypoint", json!({ "project": "x" })).contains("summary"));
    client.finish();
}

#[test]
fn a_search_skips_results_and_keeps_to_times() {
    let note = |day: &str| format!("---\ncreated_at: {day}\n---\nThe plover of {day}\n");
    let days = ["2026-11-01", "2026-11-10", "2026-11-20"];
    let files: Vec<(String, String)> =
        days.iter().map(|day| (format!("{day} plover.md"), note(day))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = TestVault::new(&files);
    let mut client = start(&vault);
    let mut search = |more: Value| -> Vec<String> {
        let mut arguments =
            json!({ "query": "plover", "intent": "fact_check", "reason_for_search": "a test" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let text = client.text("search_memories", arguments);
        let found = days.iter().filter(|day| text.contains(&format!("The plover of {day}")));
        found.map(|day| (*day).to_owned()).collect()
    };
    assert_eq!(search(json!({})), days);
    let first = search(json!({ "limit": 2 }));
    let last = search(json!({ "limit": 2, "offset": 2 }));
    assert!(first.len() == 2 && last.len() == 1 && !first.contains(&last[0]), "{first:?} {last:?}");
    assert_eq!(search(json!({ "after": "2026-11-10" })), days[1..]);
    assert_eq!(search(json!({ "before": "2026-11-10" })), days[..1]);
    assert_eq!(search(json!({ "time_expr": "past 12 days" })), days[1..]);
    assert_eq!(search(json!({ "time_expr": "past 12 days", "after": "2026-11-15" })), days[2..]);
    // What is not known here is named.
    let arguments = json!({ "query": "plover", "intent": "fact_check", "reason_for_search": "a test", "role_filter": "user",
        "include_history": true });
    let text = client.call("search_memories", arguments)["content"].to_string();
    assert!(text.contains("role_filter") && text.contains("include_history"), "{text}");
    let refusal = client.refusal(
        "search_memories",
        json!({ "query": "x", "intent": "explore", "reason_for_search": "y", "time_expr": "whenever" }),
    );
    assert!(refusal.contains("time_expr \"whenever\" is not a time"), "{refusal}");
    client.finish();
}

const SESSION: &str = "11111111-1111-4111-8111-111111111111";

/// Serves a vault with the sessions in a folder.
fn with_sessions(vault: &TestVault, sessions: &std::path::Path, args: &[&str]) -> Client {
    let mut command = vault.command(&[&["mcp", "--toolset", "vector"], args].concat());
    Client::of(command.env("SIDENOTE_NOW", NOW).env("SIDENOTE_MEMORY_CONVERSATIONS", sessions))
}

/// Makes a folder with a session of two messages, what is no message, and a file that is no session.
fn sessions() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("-home-ada-parser");
    std::fs::create_dir_all(project.join("subagents")).unwrap();
    let message = |role: &str, minute: u32, content: Value| {
        json!({ "type": role, "timestamp": format!("2026-11-20T09:{minute:02}:00Z"), "cwd": "/home/ada/parser",
                "gitBranch": "main", "message": { "role": role, "content": content } })
    };
    let mut hidden = message("user", 3, json!("How do footnotes parse in the sidechain?"));
    hidden["isSidechain"] = json!(true);
    let lines = [
        message("user", 0, json!("How do the footnotes parse? <private>Ask Bob.</private>")).to_string(),
        message(
            "assistant",
            1,
            json!([{ "type": "text", "text": "The footnotes parse in a second pass." }, { "type": "tool_use", "name": "x" }]),
        )
        .to_string(),
        message("user", 2, json!([{ "type": "tool_result", "content": "footnotes parse" }])).to_string(),
        hidden.to_string(),
        "no JSON: footnotes parse".to_owned(),
    ];
    std::fs::write(project.join(format!("{SESSION}.jsonl")), lines.join("\n")).unwrap();
    std::fs::write(project.join("notes.jsonl"), &lines[0]).unwrap();
    std::fs::write(project.join(format!("subagents/{NOBODY}.jsonl")), &lines[0]).unwrap();
    folder
}

#[test]
fn conversations_are_indexed_listed_and_searched() {
    let (vault, folder) = (TestVault::new(&[("Notes.md", "Footnotes parse slowly.\n")]), sessions());
    let before = tree(vault.root());
    let mut client = with_sessions(&vault, folder.path(), &[]);
    assert_eq!(
        client.text("list_indexed_sessions", json!({})),
        "No indexed sessions found. Run index_conversations first."
    );
    let told = |indexed, skipped| {
        format!(
            "Indexing complete:\n- Indexed: {indexed} sessions\n- Skipped: {skipped} sessions (unchanged)\n- No errors"
        )
    };
    assert_eq!(client.text("index_conversations", json!({})), told(1, 0));
    assert_eq!(client.text("index_conversations", json!({})), told(0, 1));
    let inner = folder.path().join("-home-ada-parser");
    assert_eq!(
        client.text("index_conversations", json!({ "path": inner, "since": "2000-01-01" })),
        told(0, 1)
    );
    assert_eq!(client.text("index_conversations", json!({ "since": "2199-01-01" })), told(0, 0));
    assert_eq!(
        client.text("list_indexed_sessions", json!({})),
        format!(
            "Showing 1-1 of 1 sessions:\n\nSession: {SESSION}\n  Project: /home/ada/parser\n  Messages: 2 | Chunks: 2\n  \
             Period: 2026-11-20T09:00:00.000Z to 2026-11-20T09:01:00.000Z\n  Indexed: 2026-11-21T00:00:00.000Z"
        )
    );
    let mut search = |more: Value| {
        let mut arguments =
            json!({ "query": "how footnotes parse", "intent": "fact_check", "reason_for_search": "a test" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let text = client.text("search_memories", arguments);
        text.split("\n\n---\n\n").map(str::to_owned).collect::<Vec<String>>()
    };
    // Both kinds in turn, a memory first.
    let found = search(json!({}));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("ID: ") && found[0].contains("Footnotes parse slowly."), "{found:?}");
    let asked = found.iter().find(|block| block.contains("[user @")).unwrap();
    let id = asked.strip_prefix("[conversation_history] ID: ").unwrap().split('\n').next().unwrap();
    assert_eq!(
        *asked,
        format!(
            "[conversation_history] ID: {id}\nContent: [user @ 2026-11-20T09:00:00.000Z]: How do the footnotes parse?\n\
             Metadata: {{\"session_id\":\"{SESSION}\",\"timestamp\":\"2026-11-20T09:00:00.000Z\",\"role\":\"user\",\
             \"message_index_start\":0,\"message_index_end\":0,\"project\":\"/home/ada/parser\",\"git_branch\":\"main\"}}\n\
             Session: {SESSION}"
        )
    );
    let is_history = |found: &[String]| found.iter().all(|block| block.starts_with("[conversation_history]"));
    let only = search(json!({ "history_only": true }));
    assert!(only.len() == 2 && is_history(&only), "{only:?}");
    let said = search(json!({ "history_only": true, "role_filter": "assistant" }));
    assert!(said.len() == 1 && said[0].contains("in a second pass."), "{said:?}");
    assert_eq!(search(json!({ "include_history": false })).len(), 1);
    assert_eq!(search(json!({ "limit": 1, "offset": 1 })), found[1..2]);
    let none = ["No memories found matching your query."];
    assert_eq!(search(json!({ "history_only": true, "session_id": NOBODY })), none);
    assert_eq!(search(json!({ "history_only": true, "history_after": "2026-11-21" })), none);
    assert_eq!(search(json!({ "history_only": true, "before": "2026-11-20" })), none);
    assert_eq!(search(json!({ "history_only": true, "query": "second zebra quagga" })), none);
    assert_eq!(
        client.text("reindex_session", json!({ "session_id": SESSION })),
        format!("Session {SESSION} reindexed successfully. 2 chunks created.")
    );
    let said = client.refusal("reindex_session", json!({ "session_id": NOBODY }));
    assert!(said.starts_with("Reindex failed: Session not found"), "{said}");
    client.finish();
    assert_eq!(tree(vault.root()), before, "no note has it");
    let kept = vault.root().join(format!(".sidenote/local/conversations/{SESSION}.session"));
    let kept = std::fs::read_to_string(kept).unwrap();
    assert!(!kept.contains("Bob") && !kept.contains("tool_result") && !kept.contains("sidechain"), "{kept}");
}

#[test]
fn conversations_are_given_where_the_user_allows_it_alone() {
    let (vault, folder) = (TestVault::new(&[("Notes.md", "Footnotes\n")]), sessions());
    let search = |more: Value| {
        let mut arguments =
            json!({ "query": "footnotes", "intent": "explore", "reason_for_search": "a test" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    // Without the setting, arguments about them are named, and what only asks for them is refused.
    let mut client = start(&vault);
    for (tool, arguments) in [
        ("index_conversations", json!({ "path": folder.path() })),
        ("list_indexed_sessions", json!({})),
        ("reindex_session", json!({ "session_id": SESSION })),
        ("search_memories", search(json!({ "history_only": true }))),
    ] {
        let said = client.refusal(tool, arguments);
        assert!(said.contains("Conversation history indexing is not enabled"), "{tool}: {said}");
    }
    let ignored = |client: &mut Client, more: Value| {
        client.call("search_memories", search(more)).to_string().contains("so this is ignored: role_filter")
    };
    assert!(ignored(&mut client, json!({ "role_filter": "user" })));
    assert!(!ignored(&mut client, json!({})));
    client.finish();
    // A folder beside that of the setting is refused, whether it is there or not.
    let mut client = with_sessions(&vault, &folder.path().join("-home-ada-parser"), &[]);
    for path in [folder.path().to_owned(), folder.path().join("absent")] {
        let said = client.refusal("index_conversations", json!({ "path": path }));
        assert!(said.contains("is no folder in that of memory.conversations"), "{said}");
    }
    client.text("index_conversations", json!({}));
    assert!(client.text("search_memories", search(json!({}))).contains("[conversation_history]"));
    client.finish();
    // Not to an agent that knows of a part of the notes.
    let mut client = with_sessions(&vault, folder.path(), &["--read", "!Private"]);
    let said = client.refusal("list_indexed_sessions", json!({}));
    assert!(said.contains("not given to an agent that a rule limits"), "{said}");
    assert!(!client.text("search_memories", search(json!({}))).contains("[conversation_history]"));
    client.finish();
    // A vault cannot allow it for itself.
    vault.write(".sidenote/config.toml", "[memory]\nconversations = \"/\"\n");
    assert!(!vault.run(&["status"]).status.success());
}
