//! Tests the errors that an agent gets: they name no shell command and no tool that is not served, and contain no
//! control character.

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::TestVault;

/// All toolsets.
const SETS: [&str; 10] =
    ["notes", "more", "connector", "mem", "longterm", "vector", "tiered", "rulebook", "graph", "memories"];

/// Arguments that mean nothing to any tool.
fn bad_values() -> [Value; 6] {
    [
        json!("No such note"),
        json!("00000000-0000-4000-8000-000000000000"),
        json!("../../out"),
        json!(""),
        json!(999_999_999),
        json!({ "a": 1 }),
    ]
}

fn vault() -> TestVault {
    TestVault::new(&[("Boat.md", "---\nid: boat\n---\nThe boat leaks.\n"), ("River.md", "See [[Boat]].\n")])
}

/// Gives all tools of a server, with their input schemas.
fn tools(client: &mut Client) -> Vec<(String, Value)> {
    let list = client.request("tools/list", json!({}));
    let tools = list["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["inputSchema"].clone()))
        .collect()
}

/// Gives calls of a tool that cannot be done: nothing given, each argument alone and all of them wrong, each word of an
/// enumeration without what it needs.
fn bad_calls(schema: &Value) -> Vec<Value> {
    let none = serde_json::Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&none);
    let mut calls = vec![json!({}), json!({ "nonsense": 1 })];
    for value in bad_values() {
        calls.push(Value::Object(fields.keys().map(|name| (name.clone(), value.clone())).collect()));
        calls.extend(fields.keys().map(|name| json!({ name: value })));
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in fields {
        for word in field["enum"].as_array().into_iter().flatten() {
            let mut call: serde_json::Map<String, Value> =
                required.iter().map(|name| ((*name).to_owned(), json!("No such note"))).collect();
            call.insert(name.clone(), word.clone());
            calls.push(Value::Object(call));
        }
    }
    // All that is needed, of the right form, and nothing of it there.
    let fitting = required.iter().map(|name| {
        let value = match fields.get(*name).and_then(|field| field["type"].as_str()) {
            Some("array") => json!(["No such note"]),
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("object") => json!({}),
            _ => json!("No such note"),
        };
        ((*name).to_owned(), value)
    });
    calls.push(Value::Object(fitting.collect()));
    calls
}

/// Says whether a text holds a word that is no part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

#[test]
fn errors_name_no_command_and_only_tools_that_are_served() {
    let mut all: Vec<String> = Vec::new();
    for set in SETS {
        let vault = vault();
        let mut client = Client::start(&vault, &["--toolset", set]);
        all.extend(tools(&mut client).into_iter().map(|(name, _)| name));
        client.finish();
    }
    // Words that are also words of the language tell nothing.
    all.retain(|name| name.contains('_'));
    let mut refused = 0;
    for set in SETS {
        for more in [&[][..], &["--read-only"]] {
            let vault = vault();
            let args: Vec<&str> = ["--toolset", set].iter().chain(more).copied().collect();
            let mut client = Client::start(&vault, &args);
            let served = tools(&mut client);
            for (tool, schema) in &served {
                for call in bad_calls(schema) {
                    let answer = client.ask("tools/call", json!({ "name": tool, "arguments": call }));
                    if answer["result"]["isError"] != true && answer.get("error").is_none() {
                        continue;
                    }
                    refused += 1;
                    let said = answer.to_string();
                    let place = format!("{args:?} {tool} {call}: {said}");
                    assert!(!said.contains("`sidenote ") && !said.contains("run: sidenote"), "{place}");
                    assert!(!said.contains("`--") && !said.contains(" --"), "{place}");
                    for other in &all {
                        let is_served = served.iter().any(|(name, _)| name == other);
                        assert!(is_served || !has_word(&said, other), "{other}: {place}");
                    }
                }
            }
            client.finish();
        }
    }
    assert!(refused > 1_000, "{refused}");
}

#[test]
fn a_hint_names_tools_that_are_served() {
    let vault = vault();
    let mut client = Client::start(&vault, &[]);
    let said = client.refusal("edit_note", json!({ "note": "Bot", "action": "append", "text": "x" }));
    assert!(said.contains("no note is named"), "{said}");
    let said = client.refusal("read_note", json!({ "notes": "Nothing of the kind" }));
    assert!(said.contains("list_notes shows them"), "{said}");
    client.finish();
    let mut client = Client::start(&vault, &["--toolset", "more"]);
    let said = client.refusal("outline_note", json!({ "note": "Nothing of the kind" }));
    assert!(said.contains("a note is named by its path") && !said.contains("list_notes"), "{said}");
    client.finish();
    let mut client = Client::start(&vault, &["--read-only"]);
    let said = client.text("read_session", json!({ "action": "handoff_get" }));
    assert_eq!(said, "there is no handoff yet");
    let answer = client.ask("tools/call", json!({ "arguments": {} }));
    assert!(!answer.to_string().contains("search_notes"), "{answer}");
    client.finish();
}

#[test]
fn errors_contain_no_control_characters() {
    let name = "Bo\u{1b}[2J\u{9b}\u{202e}at\u{2066}";
    let mut checked = 0;
    for set in SETS {
        let vault = vault();
        let mut client = Client::start(&vault, &["--toolset", set]);
        // First, since some tools write a note of that name.
        for (method, params) in [
            ("resources/read", json!({ "uri": format!("sidenote:///{name}") })),
            ("resources/read", json!({ "uri": name })),
            ("prompts/get", json!({ "name": name })),
            ("prompts/get", json!({ "name": "link_suggestions", "arguments": { "note": name } })),
            ("tools/call", json!({ "name": name })),
            (name, json!({})),
        ] {
            let answer = client.ask(method, params);
            assert!(answer.get("error").is_some(), "{answer}");
            assert_clean(&answer);
            checked += 1;
        }
        for (tool, schema) in tools(&mut client) {
            let none = serde_json::Map::new();
            let fields = schema["properties"].as_object().unwrap_or(&none);
            let texts =
                fields.iter().filter(|(_, field)| field["type"] == "string" || field.get("anyOf").is_some());
            for (field, _) in texts {
                let mut call = json!({ field: name });
                for needed in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    call[needed] = json!(name);
                }
                let answer = client.ask("tools/call", json!({ "name": tool, "arguments": call }));
                if answer["result"]["isError"] != true {
                    continue;
                }
                assert_clean(&answer);
                checked += 1;
            }
        }
        client.finish();
    }
    assert!(checked > 80, "{checked}");
}

fn assert_clean(answer: &Value) {
    match answer {
        Value::String(text) => {
            let is_raw = |c: char| {
                (c.is_control() && !matches!(c, '\n' | '\t'))
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            };
            assert!(!text.contains(is_raw), "{text:?}");
        }
        Value::Array(items) => items.iter().for_each(assert_clean),
        Value::Object(fields) => fields.values().for_each(assert_clean),
        _ => {}
    }
}
