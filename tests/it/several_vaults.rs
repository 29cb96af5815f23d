//! Tests several vaults behind one connection: which vault a call is for, and answers of all.

use std::process::Command;

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::mcp_schemas::listed;
use crate::support::{TestVault, clean_env, program};

fn serve(home: &TestVault, vaults: &[(&str, &TestVault)], args: &[&str]) -> Command {
    let mut command = Command::new(program());
    clean_env(&mut command, &home.root().join(".home"))
        .env("SIDENOTE_EMBED_PROVIDER", "none")
        .env("SIDENOTE_NOW", "2026-11-21");
    for (name, vault) in vaults {
        command.arg("--vault").arg(format!("{name}={}", vault.root().display()));
    }
    command.arg("mcp").args(args);
    command
}

fn vaults() -> (TestVault, TestVault) {
    let work = TestVault::new(&[("Boat.md", "The boat needs paint."), ("Same.md", "Work has this.")]);
    let home = TestVault::new(&[
        ("Garden.md", "The garden needs water."),
        ("Same.md", "Home has this."),
        ("Private/Diary.md", "The diary needs a lock."),
    ]);
    (work, home)
}

#[test]
fn a_call_names_the_vault_and_a_search_looks_into_all() {
    let (work, home) = vaults();
    let mut client = Client::of(&mut serve(&work, &[("work", &work), ("home", &home)], &[]));
    let tools = listed(&mut client);
    assert_eq!(tools[0]["inputSchema"]["properties"]["vault"]["enum"], json!(["work", "home"]));
    assert!(tools.iter().all(|tool| tool["inputSchema"]["properties"]["vault"]["type"] == "string"));
    let read = |tool: &Value| {
        let [name, description, schema] = ["name", "description", "inputSchema"].map(|key| tool[key].clone());
        json!([name, description, schema]).to_string().len()
    };
    let length: usize = tools.iter().map(read).sum();
    assert!(length <= 8_704, "{length}");

    let found = client.call("search_notes", json!({ "query": "needs", "mode": "bm25" }));
    let results = found["structuredContent"]["results"].as_array().unwrap();
    let found: Vec<(&str, &str)> = results
        .iter()
        .map(|result| (result["vault"].as_str().unwrap(), result["path"].as_str().unwrap()))
        .collect();
    assert_eq!(found, [("work", "Boat.md"), ("home", "Garden.md"), ("home", "Private/Diary.md")]);
    let text =
        client.call("search_notes", json!({ "query": "needs", "mode": "bm25" }))["content"].to_string();
    assert!(text.contains("In the vault work:") && text.contains("In the vault home:"), "{text}");
    let first = client.call("search_notes", json!({ "query": "this needs", "mode": "bm25", "limit": 1 }));
    assert_eq!(first["structuredContent"]["results"].as_array().unwrap().len(), 2, "{first}");
    assert!(first["structuredContent"]["next_cursor"].is_null(), "{first}");
    let one = client.text("search_notes", json!({ "query": "needs", "mode": "bm25", "vault": "Home" }));
    assert!(one.contains("Garden.md") && !one.contains("Boat.md"), "{one}");

    assert!(client.text("read_note", json!({ "notes": ["Same"] })).contains("Work has this."));
    assert!(
        client.text("read_note", json!({ "notes": ["Same"], "vault": "home" })).contains("Home has this.")
    );
    let unknown = client.refusal("read_note", json!({ "notes": ["Same"], "vault": "school" }));
    assert!(unknown.contains("work, home"), "{unknown}");
    client.text("write_note", json!({ "title": "Well", "content": "Deep.", "vault": "home" }));
    assert!(home.root().join("Well.md").exists() && !work.root().join("Well.md").exists());
    // A handoff goes to the vault that has the name of its project.
    let store = json!({ "action": "handoff_store", "project": "home", "summary": "Watered." });
    client.text("session", store);
    let last = client.text("read_session", json!({ "action": "handoff_get", "project": "home" }));
    assert!(last.contains("Watered."), "{last}");
    client.finish();
}

#[test]
fn resources_of_all_vaults_are_listed_and_read_by_their_names() {
    let (work, home) = vaults();
    let mut client = Client::of(&mut serve(&work, &[("work", &work), ("home", &home)], &[]));
    let (mut cursor, mut uris) = (Value::Null, Vec::new());
    loop {
        let page = client.request("resources/list", json!({ "cursor": cursor }));
        let listed = page["resources"].as_array().unwrap().iter();
        uris.extend(listed.map(|resource| resource["uri"].as_str().unwrap().to_owned()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(
        uris,
        [
            "sidenote://work/Boat.md",
            "sidenote://work/Same.md",
            "sidenote://home/Garden.md",
            "sidenote://home/Private/Diary.md",
            "sidenote://home/Same.md",
        ]
    );
    for (uri, text) in [
        ("sidenote://home/Same.md", "Home has this."),
        ("sidenote://work/Same.md", "Work has this."),
        ("sidenote:///Same.md", "Work has this."),
    ] {
        let read = client.request("resources/read", json!({ "uri": uri }));
        assert_eq!(read["contents"][0]["text"], text, "{uri}");
        assert_eq!(read["contents"][0]["uri"], uri);
    }
    let unknown = client.ask("resources/read", json!({ "uri": "sidenote://school/Same.md" }));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("work, home"), "{unknown}");
    client.finish();
}

#[test]
fn rules_hold_for_each_vault_by_itself() {
    let (work, home) = vaults();
    let file = work.root().join(".home/.config/sidenote/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let rule = format!(
        "[[agents]]\nname = \"*\"\nvault = '{}'\nread = [\"!Private\"]\nwrite = []\n",
        home.root().display()
    );
    std::fs::write(file, rule).unwrap();
    let mut client = Client::of(&mut serve(&work, &[("work", &work), ("home", &home)], &[]));
    let found = client.call("search_notes", json!({ "query": "needs", "mode": "bm25" })).to_string();
    assert!(found.contains("Boat.md") && found.contains("Garden.md") && !found.contains("Diary"), "{found}");
    client.text("write_note", json!({ "title": "Mast", "content": "Oil." }));
    let refused =
        client.refusal("write_note", json!({ "title": "Mast", "content": "Oil.", "vault": "home" }));
    assert!(refused.contains("the rule"), "{refused}");
    client.finish();
}
