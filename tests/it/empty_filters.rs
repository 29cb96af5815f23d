//! Tests filters that select nothing: forms that can mean only one thing mean it, in every tool alike, and what cannot match
//! is said with the nearest value.

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, stderr};

fn vault() -> TestVault {
    TestVault::new(&[
        (
            "Journal/2026/2026-11-27.md",
            "---\nstatus: active\ntype: log\ntags: [row]\ncategory: sport\n---\nRowed with Anna.\n",
        ),
        ("Journal/2026/2026-11-28.md", "---\nstatus: done\ntype: log\n---\nRowed alone.\n"),
        ("Plan.md", "---\nstatus: active\ntype: project\n---\nWe have rowed enough.\n"),
    ])
}

/// The tools of our own that take filters, with the arguments that they need.
const TOOLS: [(&str, &str); 3] = [
    ("search_notes", r#"{"query": "rowed", "mode": "bm25"}"#),
    ("list_notes", "{}"),
    ("query_properties", r#"{"fields": ["status"]}"#),
];

fn call(client: &mut Client, tool: &str, base: &str, name: &str, value: &Value) -> Option<(usize, String)> {
    let mut arguments: Value = serde_json::from_str(base).unwrap();
    // A search calls the folder a path.
    let name = if tool == "search_notes" && name == "folder" { "path" } else { name };
    arguments[name] = value.clone();
    let result = client.call(tool, arguments);
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    if text.contains("has no argument") {
        return None;
    }
    assert_ne!(result["isError"], true, "{tool} {name} {value}: {result}");
    let data = &result["structuredContent"];
    let notes = data.get("results").or_else(|| data.get("notes")).and_then(Value::as_array);
    Some((notes.map_or(0, Vec::len), text))
}

#[test]
fn a_form_that_can_mean_only_one_thing_means_it_in_every_tool() {
    let cases = [
        ("folder", json!(""), 3),
        ("folder", json!("/"), 3),
        ("folder", json!("."), 3),
        ("folder", json!("*"), 3),
        ("folder", json!("/Journal"), 2),
        ("folder", json!("./Journal"), 2),
        ("folder", json!("Journal/"), 2),
        ("folder", json!("journal"), 2),
        ("folder", json!("Journal\\2026"), 2),
        ("folder", json!("/Journal//2026/"), 2),
        ("folder", json!("Journal/**"), 2),
        ("type", json!(""), 3),
        ("type", json!("LOG"), 2),
        ("tags", json!(""), 3),
        ("tags", json!([]), 3),
        ("tags", json!("#row"), 1),
        ("tags", json!("['row']"), 1),
        ("property", json!("status = active"), 2),
        ("property", json!("status: active"), 2),
        ("property", json!("[status:active]"), 2),
        ("property", json!("status=\"Active\""), 2),
        ("property", json!(""), 3),
        ("created_after", json!(""), 3),
        ("updated_before", Value::Null, 3),
        ("limit", json!(""), 3),
        ("sort", json!("UPDATED"), 3),
    ];
    let vault = vault();
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    let mut checked = 0;
    for (name, value, expected) in cases {
        for (tool, base) in TOOLS {
            let Some((notes, text)) = call(&mut client, tool, base, name, &value) else { continue };
            assert_eq!(notes, expected, "{tool} {name} {value}: {text}");
            checked += 1;
        }
    }
    assert_eq!(checked, 71);
    client.finish();
}

#[test]
fn what_no_note_meets_is_said_with_the_nearest_value() {
    let cases = [
        ("folder", json!("Jurnal"), "did you mean \"Journal\"?"),
        ("folder", json!("2026"), "did you mean \"Journal/2026\"?"),
        ("tags", json!(["rwo"]), "no note has the tag \"rwo\"; did you mean \"row\"?"),
        ("tags", json!(["nope"]), "no note has the tag \"nope\""),
        ("type", json!("projct"), "no note has the type \"projct\"; did you mean \"project\"?"),
        ("type", json!("x"), "no note has the type \"x\"; there is \"log\", \"project\""),
        ("category", json!("sprot"), "no note has the category \"sprot\"; did you mean \"sport\"?"),
        ("property", json!("stauts=active"), "no note has the property \"stauts\"; did you mean \"status\"?"),
        (
            "property",
            json!("status=actve"),
            "no note has the value \"actve\" of the property \"status\"; did you mean \"active\"?",
        ),
        ("created_after", json!("2999-01-01"), "is in the future"),
    ];
    let vault = vault();
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    let mut checked = 0;
    for (name, value, says) in cases {
        for (tool, base) in TOOLS {
            let Some((notes, text)) = call(&mut client, tool, base, name, &value) else { continue };
            assert_eq!(notes, 0, "{tool} {name} {value}: {text}");
            assert!(text.contains(says), "{tool} {name} {value}: {text}");
            checked += 1;
        }
    }
    assert_eq!(checked, 25);
    client.finish();
}

#[test]
fn the_command_line_says_the_same() {
    let vault = vault();
    let cases: [(&[&str], &str); 5] = [
        (&["search", "rowed", "--path", "Jurnal"], "did you mean \"Journal\"?"),
        (&["list", "--type", "projct"], "did you mean \"project\"?"),
        (&["list", "--property", "status=actve"], "did you mean \"active\"?"),
        (&["search", "rowed", "--path", "2026"], "did you mean \"Journal/2026\"?"),
        (&["memory", "list", "--type", "projct"], "did you mean \"project\"?"),
    ];
    for (args, says) in cases {
        let done = vault.run(args);
        assert!(stderr(&done).contains(says), "{args:?}: {}", stderr(&done));
    }
    for path in ["./Journal", "/Journal/", "journal", "Journal\\2026"] {
        let found = crate::support::json(&vault, "2026-11-29", &["search", "rowed", "--path", path]);
        assert_eq!(found["results"].as_array().unwrap().len(), 2, "{path}");
    }
}

#[test]
fn operators_of_a_query_say_the_same() {
    let vault = vault();
    let tag = "note: no note has the tag \"rwo\"; did you mean \"row\"?";
    let kind = "note: no note has the type \"projct\"; did you mean \"project\"?";
    let name = "note: no note has the property \"stauts\"; did you mean \"status\"?";
    let value = "note: no note has the value \"actve\" of the property \"status\"; did you mean \"active\"?";
    let path = "note: no path contains \"Jurnal\"; did you mean \"Journal\"?";
    let file = "note: no file name contains \"Paln\"; did you mean \"Plan\"?";
    let cases: [(&str, &[&str]); 14] = [
        ("tag:rwo", &[tag]),
        ("tag:#rwo", &[tag]),
        ("tag:rwo Anna", &[tag, "so its words answer"]),
        ("type:projct", &[kind]),
        ("category:sprot", &["no note has the category \"sprot\"; did you mean \"sport\"?"]),
        ("[stauts]", &[name]),
        ("[stauts:active]", &[name]),
        ("[status:actve]", &[value]),
        ("path:Jurnal", &[path]),
        ("file:Paln", &[file]),
        ("created:>2999-01-01", &["is in the future"]),
        ("(tag:rwo OR type:projct)", &[tag, kind]),
        ("section:(tag:rwo)", &[tag]),
        ("tag:row -tag:rwo -type:log", &[]),
    ];
    for (query, says) in cases {
        let said = stderr(&vault.run(&["search", query]));
        for sentence in says {
            assert!(said.contains(sentence), "{query}: {said}");
        }
        assert_eq!(says.is_empty(), said.is_empty(), "{query}: {said}");
    }
    // A value is met by a part of it, and a condition that is met says nothing.
    for query in ["[status:activ]", "tag:row", "path:2026 type:log", "file:Plan"] {
        let done = vault.run(&["search", query]);
        assert!(!stderr(&done).contains("did you mean"), "{query}: {}", stderr(&done));
    }
}

#[test]
fn toolsets_of_other_servers_say_what_no_memory_meets() {
    let vault = vault();
    let mut client = Client::start(&vault, &["--toolset", "mem,rulebook"]);
    let notices = |client: &mut Client, tool: &str, arguments: Value| -> String {
        let result = client.call(tool, arguments);
        assert_ne!(result["isError"], true, "{result}");
        result["content"].to_string()
    };
    let said = notices(&mut client, "search_mem", json!({ "query": "rowed", "category": "sprot" }));
    assert!(said.contains("did you mean"), "{said}");
    let said = notices(&mut client, "rulebook_memory_search", json!({ "query": "rowed", "type": "projct" }));
    assert!(said.contains("did you mean"), "{said}");
    client.finish();
}
