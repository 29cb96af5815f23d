//! Tests the toolset `connector`: `search` and `fetch` in the shapes that ChatGPT's connectors ask for, and the steps that
//! `mcp config` prints.

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, stderr, stdout};

/// Gives the keys of an object, in order.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Calls a tool, and gives its data, which its one text has as JSON as well.
#[track_caller]
fn call(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments);
    let content = result["content"].as_array().unwrap();
    assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{result}");
    let text: Value = serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
    text
}

fn vault() -> TestVault {
    TestVault::new(&[
        ("Über/High water.md", "# High water\nThe river rises in spring.\n"),
        ("Plan.md", "The plan for the boat.\n"),
        ("Long.md", &"A line of a long note about herons.\n".repeat(2_000)),
    ])
}

#[test]
fn search_and_fetch_have_the_shapes_of_connectors() {
    let vault = vault();
    let mut client = Client::start(&vault, &["--toolset", "connector"]);
    let found = call(&mut client, "search", json!({ "query": "When does the river rise?" }));
    assert_eq!(keys(&found), ["results"]);
    let first = &found["results"][0];
    assert_eq!(keys(first), ["id", "title", "url"]);
    assert_eq!(first["title"], "High water");
    let name = vault.root().file_name().unwrap().to_str().unwrap();
    let url = format!("obsidian://open?vault={name}&file=%C3%9Cber%2FHigh%20water.md");
    assert_eq!(first["url"].as_str().unwrap().replace("%2E", "."), url);
    let fetched = call(&mut client, "fetch", json!({ "id": first["id"] }));
    assert_eq!(keys(&fetched), ["id", "title", "text", "url", "metadata"]);
    assert_eq!((&fetched["id"], &fetched["url"]), (&first["id"], &first["url"]));
    assert_eq!(fetched["text"], "# High water\nThe river rises in spring.\n");
    assert_eq!(call(&mut client, "search", json!({ "query": "zeppelin" })), json!({ "results": [] }));
}

#[test]
fn a_long_note_is_fetched_in_parts() {
    let vault = vault();
    let mut client = Client::start(&vault, &["--toolset", "connector"]);
    let (mut id, mut text, mut parts) = ("Long.md".to_owned(), String::new(), 0);
    loop {
        let fetched = call(&mut client, "fetch", json!({ "id": id }));
        assert!(fetched.to_string().len() < 26_000);
        (text, parts) = (text + fetched["text"].as_str().unwrap(), parts + 1);
        match fetched["metadata"]["next_part"].as_str() {
            Some(next) => next.clone_into(&mut id),
            None => break,
        }
    }
    assert!(parts > 1);
    assert_eq!(text, vault.read("Long.md"));
}

#[test]
fn the_connector_reads_only_and_joins_other_sets() {
    let vault = vault();
    let mut client = Client::start(&vault, &["--toolset", "connector"]);
    let tools = client.request("tools/list", json!({}));
    let tools = tools["tools"].as_array().unwrap();
    assert_eq!(
        tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["search", "fetch"]
    );
    for tool in tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["inputSchema"]["required"].as_array().unwrap().len(), 1);
    }
    let refused = client.call("fetch", json!({ "id": "Nothing.md" }));
    assert_eq!(refused["isError"], true);
    Client::start(&vault, &["--toolset", "connector,notes,more"]);
}

#[test]
fn config_prints_the_steps_of_clients_on_the_web() {
    let vault = vault();
    for (client, parts) in [
        ("chatgpt", ["--toolset connector", "developer mode"]),
        ("claude-web", ["mcp --http --login --public-url", "custom connector"]),
    ] {
        let text = stdout(&vault.run(&["mcp", "config", client]));
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert!(text.contains("https://YOUR-ADDRESS/mcp"), "{text}");
        let public = ["--http", "--login", "--public-url", "https://notes.example", "--json"];
        let reply = stdout(&vault.run(&[&["mcp", "config", client], &public[..]].concat()));
        let reply: Value = serde_json::from_str(&reply).unwrap();
        assert_eq!(reply["steps"].as_array().unwrap().len(), 6);
        assert!(reply.to_string().contains("https://notes.example/mcp"));
        let refused = vault.run(&["mcp", "config", client, "--write"]);
        assert!(stderr(&refused).contains("no settings file"));
        // Each vault is named, and quoted as a shell needs it.
        let named = ["--vault", "anna=/srv/Anna's notes", "--vault", "family=/srv/family"];
        let text = stdout(&vault.run(&[&named[..], &["mcp", "config", client]].concat()));
        #[cfg(unix)]
        assert!(
            text.contains(r"--vault 'anna=/srv/Anna'\''s notes' --vault family=/srv/family mcp --http"),
            "{text}"
        );
        for name in ["anna", "family"] {
            assert!(text.contains(&format!("https://YOUR-ADDRESS/v/{name}/mcp")), "{text}");
        }
    }
}
