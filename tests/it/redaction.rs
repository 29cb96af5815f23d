//! Tests that no tool of any toolset writes a secret or private text to disk, whichever argument contains it.

mod forms;

use std::fs;

use serde_json::{Map, Value, json};

use crate::mcp_client::Client;
use crate::support::TestVault;

/// Words that stand in private text alone.
const PRIVATE: &str = "xyzzyplugh";

/// Makes a key, so that no scanner finds one here.
fn key() -> String {
    ["gh", "p_", "Zx9Kq2Lm8Pw4", "Rt6Yv1Bn3Cd5", "Fg7Hj0KsAq3e"].concat()
}

/// Fills a schema with a text wherever a text may stand; with `notes`, what names a note names one that is there.
fn filled(schema: &Value, root: &Value, name: &str, text: &str, notes: bool) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        return filled(target, root, name, text, notes);
    }
    if let Some(choices) = schema["enum"].as_array() {
        return choices[0].clone();
    }
    let options = ["anyOf", "oneOf"].iter().find_map(|key| schema[*key].as_array());
    if let Some(option) = options.and_then(|options| options.first()) {
        return filled(option, root, name, text, notes);
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[0].as_str().unwrap(),
        kind => kind.as_str().unwrap_or("string"),
    };
    const NOTES: [&str; 12] =
        ["id", "note", "path", "from", "ids", "memory_id", "slug", "source", "target", "a", "b", "file"];
    match kind {
        "object" => {
            let fields = schema["properties"].as_object().cloned().unwrap_or_default();
            // Metadata can have any property.
            if fields.is_empty() || name == "metadata" {
                return json!({ (text): text, "plain": { "deep": [text] } });
            }
            let required = schema["required"].as_array();
            let wanted = |field: &String| {
                // Optional fields are left out in one round, since some arguments exclude others.
                text.len().is_multiple_of(2)
                    || required.is_some_and(|names| names.iter().any(|one| one == field))
            };
            let fields = fields.iter().filter(|(field, _)| wanted(field) || !notes);
            Value::Object(
                fields
                    .map(|(field, schema)| (field.clone(), filled(schema, root, field, text, notes)))
                    .collect::<Map<_, _>>(),
            )
        }
        "array" => json!([filled(&schema["items"], root, name, text, notes)]),
        "integer" | "number" => {
            schema["minimum"].as_f64().map_or_else(|| json!(1), |least| json!(least.max(1.0) as i64))
        }
        "boolean" => json!(false),
        _ if notes && NOTES.contains(&name) => json!("heron"),
        _ => json!(text),
    }
}

/// Looks through every file of a vault, hidden ones too.
fn check_disk(vault: &TestVault, what: &str) -> usize {
    let mut looked = 0;
    for file in walkdir::WalkDir::new(vault.root()).into_iter().filter_map(Result::ok) {
        let name = file.path().to_string_lossy().into_owned();
        let key = key();
        assert!(!name.contains(&key) && !name.contains(PRIVATE), "{what} made {name}");
        if !file.file_type().is_file() {
            continue;
        }
        let Ok(bytes) = fs::read(file.path()) else { continue };
        for secret in [PRIVATE, &key] {
            let found = memchr::memmem::find(&bytes, secret.as_bytes()).is_some();
            assert!(!found, "{what} wrote {secret} to {name}");
        }
        looked += 1;
    }
    looked
}

#[test]
fn no_tool_writes_a_secret() {
    let text = format!("noted <private>{PRIVATE}</private> with {} in it", key());
    // An even length asks for all arguments, an odd one for those that are required.
    let even = if text.len() % 2 == 0 { text.clone() } else { format!("{text} ") };
    let odd = format!("{even}.");
    let sets = [
        &["notes", "more"][..],
        &["mem"],
        &["longterm"],
        &["vector"],
        &["tiered"],
        &["rulebook"],
        &["graph"],
        &["memories"],
    ];
    let (mut calls, mut succeeded) = (0, 0);
    for names in sets {
        for set in names {
            let vault = TestVault::new(&[
                ("heron.md", "---\nid: heron\n---\n# Nests\n\nThe heron nests.\n"),
                ("otter.md", "An otter.\n"),
            ]);
            let mut client = Client::start(&vault, &["--toolset", set]);
            let list = client.request("tools/list", json!({}));
            for tool in list["tools"].as_array().unwrap() {
                let name = tool["name"].as_str().unwrap();
                for (text, notes) in [(&even, false), (&even, true), (&odd, true)] {
                    let schema = &tool["inputSchema"];
                    let arguments = filled(schema, schema, "", text, notes);
                    let reply = client.ask("tools/call", json!({ "name": name, "arguments": arguments }));
                    calls += 1;
                    succeeded +=
                        usize::from(reply["result"]["isError"] != json!(true) && reply["error"].is_null());
                }
                check_disk(&vault, &format!("{set}: {name}"));
            }
            client.finish();
            assert!(check_disk(&vault, set) > 3);
        }
    }
    crate::support::say(&format!("{succeeded} of {calls} calls succeeded"));
    assert!(calls > 150 && succeeded > 60, "{succeeded} of {calls} calls succeeded");
}

#[test]
fn operation_ids_store_no_secret() {
    let vault = TestVault::new(&[]);
    let mut client = Client::start(&vault, &[]);
    let named = [format!("op-{}", key()), format!("<private>{PRIVATE}</private>")];
    for (at, name) in named.iter().enumerate() {
        let title = format!("Heron {at}");
        let write = json!({ "title": title, "content": format!("It stands at {at}."), "operation_id": name });
        let first = client.call("write_note", write.clone());
        assert_ne!(first["isError"], true, "{first}");
        assert_eq!(client.call("write_note", write), first);
        // Two names with secrets are two names.
        let other = json!({ "title": "Reeds", "content": "They bend.", "operation_id": name });
        assert!(client.refusal("write_note", other).contains("belongs to another call"));
    }
    client.finish();
    assert!(check_disk(&vault, "operation_id") > 3);
}
