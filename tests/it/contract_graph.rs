//! Tests the toolset `graph` against the replies of the reference memory server (`fixtures/graph/replies.json`), and what it
//! makes of notes.

use std::fs;

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, run, stderr, text_of, tree};

const NOW: &str = "2026-11-21T00:00:00Z";
const URI: &str = "memory://knowledge-graph";

fn start(vault: &TestVault) -> Client {
    Client::start(vault, &["--toolset", "graph"])
}

fn fixture() -> Value {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/graph/replies.json"));
    serde_json::from_str(text).unwrap()
}

/// Returns what the whole graph is.
fn graph(client: &mut Client) -> Value {
    client.call("read_graph", json!({}))["structuredContent"].clone()
}

/// Lists the relations of a graph in one order: those of a note stand together here, and in the order of their creation in the
/// reference server.
fn sorted(result: &Value) -> Value {
    let mut data = result["structuredContent"].clone();
    if let Some(relations) = data["relations"].as_array_mut() {
        relations.sort_by_key(ToString::to_string);
    }
    data
}

#[test]
fn tools_and_replies_are_those_of_the_reference_server() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let fixture = fixture();
    let tools = client.request("tools/list", json!({}))["tools"].clone();
    for (ours, theirs) in tools.as_array().unwrap().iter().zip(fixture["tools"].as_array().unwrap()) {
        assert_eq!(ours, theirs, "{}", theirs["name"]);
    }
    assert_eq!(tools.as_array().unwrap().len(), 9);
    let calls = fixture["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 38);
    for call in calls {
        let (tool, expected) = (call["tool"].as_str().unwrap(), &call["result"]);
        let result = client.call(tool, call["arguments"].clone());
        assert_eq!(result["isError"] == true, expected["isError"] == true, "{call}");
        assert_eq!(sorted(&result), sorted(expected), "{call}");
        if sorted(expected) == expected["structuredContent"] {
            assert_eq!(result["content"], expected["content"], "{call}");
        }
    }
    client.finish();
}

#[test]
fn an_entity_is_a_note_as_a_person_would_write_it() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let before = tree(vault.root());
    client.json(
        "create_entities",
        json!({ "entities": [
            { "name": "Anna: a/b?", "entityType": "person", "observations": ["drinks tea"] },
            { "name": "Boat club", "entityType": "club", "observations": [] },
        ] }),
    );
    client.json(
        "create_relations",
        json!({ "relations": [
            { "from": "Boat club", "to": "Anna: a/b?", "relationType": "is led by" },
            { "from": "Boat club", "to": "Weir", "relationType": "is at" },
        ] }),
    );
    client.json(
        "add_observations",
        json!({ "observations": [{ "entityName": "Boat club", "contents": ["rows\nat dawn", "<private>4711</private>has a key"] }] }),
    );
    let text = text_of(&vault, "Memories/Boat club.md");
    assert!(
        text.ends_with(
            "title: Boat club\ntype: club\ncreated_at: \"2026-11-21T00:00:00.001Z\"\n---\n## Observations\n\n- rows\n  at dawn\n- has a key\n\n## Relations\n\n- is led by [[Anna a b|Anna: a/b?]]\n- is at [[Weir]]\n"
        ),
        "{text}"
    );
    assert!(text_of(&vault, "Memories/Anna a b.md").contains("\ntitle: \"Anna: a/b?\"\n"));
    // An unknown name writes nothing at all.
    let refused = client.refusal(
        "add_observations",
        json!({ "observations": [
            { "entityName": "Boat club", "contents": ["lost"] }, { "entityName": "Nobody", "contents": ["x"] },
        ] }),
    );
    assert_eq!(refused, "Entity with name Nobody not found");
    assert_eq!(text_of(&vault, "Memories/Boat club.md"), text);
    // Each call is one operation.
    for _ in 0..3 {
        run(&vault, NOW, &["undo"]);
    }
    let after = tree(vault.root());
    let notes = |tree: &std::collections::BTreeMap<String, Vec<u8>>| -> Vec<String> {
        tree.keys().filter(|path| path.ends_with(".md") && !path.starts_with('.')).cloned().collect()
    };
    assert_eq!(notes(&after), notes(&before));
    client.finish();
}

#[test]
fn a_note_of_a_person_is_an_entity() {
    let note = "---\r\ntitle: Zoë Brandt\r\nemployer: \"[[Acme]]\"\r\n---\r\n# Zoë\r\n\r\nText.\r\n\r\n## Observations\r\n\r\n* rows\r\n* [work] leads #team\r\n\r\n## Relations\r\n- works at [[Acme]]\r\n- [[Acme]]\r\n\r\n## Log\r\nlikes [[Acme]]\r\n";
    let vault = TestVault::new(&[
        ("People/Zoë.md", note),
        ("Acme.md", "The mill.\n"),
        ("Old.md", "---\nforgotten: true\n---\nGone.\n"),
    ]);
    let mut client = start(&vault);
    let opened = client.call("open_nodes", json!({ "names": ["Zoë Brandt"] }))["structuredContent"].clone();
    assert_eq!(
        opened,
        json!({
            "entities": [{ "name": "Zoë Brandt", "entityType": "note", "observations": ["rows", "[work] leads #team"] }],
            "relations": [
                { "from": "Zoë Brandt", "to": "Acme", "relationType": "works at" },
                { "from": "Zoë Brandt", "to": "Acme", "relationType": "relates_to" },
                { "from": "Zoë Brandt", "to": "Acme", "relationType": "employer" },
            ],
        })
    );
    assert_eq!(graph(&mut client)["entities"].as_array().unwrap().len(), 2);
    // Lines keep their ends, and nothing else is touched.
    client.json(
        "add_observations",
        json!({ "observations": [{ "entityName": "Zoë Brandt", "contents": ["rows", "sings"] }] }),
    );
    client.call(
        "delete_observations",
        json!({ "deletions": [{ "entityName": "Zoë Brandt", "observations": ["rows"] }] }),
    );
    let changed = note.replace("* rows\r\n", "").replace("leads #team\r\n", "leads #team\r\n- sings\r\n");
    assert_eq!(text_of(&vault, "People/Zoë.md"), changed);
    // What is stated elsewhere stays, and is named.
    let kept = client.call(
        "delete_relations",
        json!({ "relations": [{ "from": "Zoë Brandt", "to": "Acme", "relationType": "employer" }] }),
    );
    assert!(kept["content"][1]["text"].as_str().unwrap().contains("stays"), "{kept}");
    client.call("delete_entities", json!({ "entityNames": ["Acme"] }));
    assert_eq!(graph(&mut client)["relations"], json!([]));
    let left = text_of(&vault, "People/Zoë.md");
    assert!(!left.contains("## Relations") && left.contains("likes [[Acme]]"), "{left}");
    assert_eq!(text_of(&vault, ".trash/Acme.md"), "The mill.\n");
    client.finish();
}

#[test]
fn a_large_graph_is_bounded_and_says_so() {
    let vault = TestVault::new(&[]);
    for at in 0..2_001 {
        let text =
            format!("---\ncreated: 2026-01-01T00:00:00Z\n---\n## Observations\n\n- number {at} of many\n");
        vault.write(&format!("Many/Note {at:04}.md"), text);
    }
    let mut client = start(&vault);
    let result = client.call("read_graph", json!({}));
    let entities = result["structuredContent"]["entities"].as_array().unwrap();
    assert_eq!(entities.len(), 2_000);
    let notice = result["content"][1]["text"].as_str().unwrap();
    assert!(notice.starts_with("notice: 1 entities are left out"), "{notice}");
    let found = client.call("search_nodes", json!({ "query": "NUMBER 1999 of" }));
    assert_eq!(found["structuredContent"]["entities"][0]["name"], "Note 1999");
    client.finish();
}

#[test]
fn two_processes_lose_nothing() {
    const WRITES: usize = 100;
    let vault = TestVault::new(&[]);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let vault = &vault;
            scope.spawn(move || {
                let mut client = start(vault);
                let own = format!("Writer {writer}");
                client.json("create_entities", json!({ "entities": [{ "name": own, "entityType": "w", "observations": [] }] }));
                for at in 0..WRITES {
                    match at % 4 {
                        0 => client.json("create_entities", json!({ "entities": [{ "name": format!("{own} {at}"), "entityType": "w", "observations": ["made"] }] })),
                        1 => client.json("create_entities", json!({ "entities": [{ "name": format!("Shared {at}"), "entityType": "w", "observations": [own] }] })),
                        2 => client.json("add_observations", json!({ "observations": [{ "entityName": own, "contents": [format!("said {at}")] }] })),
                        _ => client.json("create_relations", json!({ "relations": [{ "from": format!("Shared {}", at - 2), "to": own, "relationType": "is of" }] })),
                    };
                }
                client.finish();
            });
        }
    });
    let mut client = start(&vault);
    let graph = graph(&mut client);
    let entities = graph["entities"].as_array().unwrap();
    assert_eq!(entities.len(), 2 + 2 * WRITES / 4 + WRITES / 4);
    for writer in entities.iter().filter(|one| one["observations"].as_array().unwrap().len() > 1) {
        assert_eq!(writer["observations"].as_array().unwrap().len(), WRITES / 4, "{writer}");
    }
    assert_eq!(graph["relations"].as_array().unwrap().len(), 2 * WRITES / 4);
    client.finish();
}

#[test]
fn the_graph_is_a_resource() {
    let vault = TestVault::new(&[("Boat.md", "The boat leaks.\n")]);
    let mut client = start(&vault);
    let listed = client.request("resources/list", json!({}))["resources"].clone();
    assert_eq!(
        listed[0],
        json!({
            "uri": URI, "name": "knowledge-graph", "title": "Knowledge Graph",
            "description": "The full knowledge graph with all entities and relations", "mimeType": "application/json",
        })
    );
    let read = client.request("resources/read", json!({ "uri": URI }))["contents"][0].clone();
    let text: Value = serde_json::from_str(read["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, graph(&mut client));
    client.request("resources/subscribe", json!({ "uri": URI }));
    client.json(
        "create_entities",
        json!({ "entities": [{ "name": "Weir", "entityType": "place", "observations": [] }] }),
    );
    let told = |client: &mut Client| {
        client.request("ping", json!({}));
        client
            .heard
            .iter()
            .any(|one| one["method"] == "notifications/resources/updated" && one["params"]["uri"] == URI)
    };
    crate::support::until("an update of the graph", || told(&mut client));
    client.finish();
    // Other sets have no such resource.
    let mut client = Client::start(&vault, &["--toolset", "mem"]);
    let listed = client.request("resources/list", json!({}))["resources"].clone();
    assert!(listed.as_array().unwrap().iter().all(|one| one["uri"] != URI), "{listed}");
    assert_eq!(client.ask("resources/read", json!({ "uri": URI }))["error"]["code"], -32602);
    client.finish();
}

#[test]
fn the_file_of_the_reference_server_is_imported() {
    let vault = TestVault::new(&[("Anna.md", "---\ntype: friend\n---\n## Observations\n\n- drinks tea\n")]);
    let file = vault.root().join(".memory.jsonl");
    let lines = [
        json!({ "type": "entity", "name": "Anna", "entityType": "person", "observations": ["drinks tea", "rows"] }).to_string(),
        "{ half".to_owned(),
        json!({ "type": "relation", "from": "Anna", "to": "Boat club", "relationType": "rows for" }).to_string(),
        json!({ "type": "entity", "name": "Boat club", "entityType": "club", "observations": ["at the weir"] }).to_string(),
        json!({ "type": "relation", "from": "Weir", "to": "Boat club", "relationType": "belongs to" }).to_string(),
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let import = ["import", "server-memory", file.to_str().unwrap(), "--json"];
    let dry: Value =
        serde_json::from_str(&run(&vault, NOW, &[&import[..], &["--dry-run"]].concat())).unwrap();
    let before = text_of(&vault, "Anna.md");
    let reply: Value = serde_json::from_str(&run(&vault, NOW, &import)).unwrap();
    assert_eq!(dry, reply);
    assert_eq!(reply["imported"], json!(["Memories/Boat club.md", "Memories/Weir.md"]));
    assert_eq!((&reply["added_observations"], &reply["added_relations"]), (&json!(1), &json!(2)));
    assert!(reply["notices"][0].as_str().unwrap().starts_with("line 2 is skipped"), "{reply}");
    let anna = text_of(&vault, "Anna.md");
    assert_eq!(anna, format!("{before}- rows\n\n## Relations\n\n- rows for [[Boat club]]\n"));
    // Again, nothing changes; and all of it was one operation.
    let again: Value = serde_json::from_str(&run(&vault, NOW, &import)).unwrap();
    assert_eq!((&again["imported"], &again["added_relations"]), (&json!([]), &json!(0)));
    assert_eq!(text_of(&vault, "Anna.md"), anna);
    run(&vault, NOW, &["undo"]);
    assert_eq!(text_of(&vault, "Anna.md"), before);
    assert!(!vault.root().join("Memories/Weir.md").exists());
    let refused = vault.run(&["import", "other", file.to_str().unwrap()]);
    assert!(stderr(&refused).contains("is no source of an import"), "{}", stderr(&refused));
}
