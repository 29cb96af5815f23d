//! `mcp-tools.md`, out of what the server lists: tools of every set, prompts and resource templates.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};
use sidenote::cli::toolset_names;

use super::{MADE, check_page, code, prose, sentence};
use crate::mcp_client::Client;
use crate::support::{TestVault, repository};

/// What each set is for.
const SETS: [(&str, &str); 10] = [
    ("notes", "sidenote's own tools, served where no other set is asked for."),
    ("more", "sidenote's own tools for longer work: batches, renames across the vault, lists of properties."),
    ("connector", "The two tools that ChatGPT's connectors and deep research ask for."),
    ("mem", "The tools of a memory kept as Markdown notes."),
    ("longterm", "The tools of a memory with importance and decay."),
    ("vector", "The tools of a memory with intents, votes and handoffs."),
    ("tiered", "The tools of a memory with tiers, pins and explanations."),
    ("rulebook", "The tools of a memory that is read in three steps: search, timeline, whole text."),
    (
        "graph",
        "The tools of the reference memory server of the Model Context Protocol: entities, observations and relations.",
    ),
    ("memories", "The memory tool of the Claude API, over the files of the memory folder."),
];

/// Says what type a value has, out of its schema.
fn kind(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        return values
            .iter()
            .map(|value| code(value.as_str().unwrap_or(&value.to_string())))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Some(value) = schema.get("const") {
        return code(value.as_str().unwrap_or(&value.to_string()));
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(shapes) = schema[name].as_array() {
            return shapes.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    let named = |name: &str| match name {
        "array" => match schema.get("items") {
            Some(items) => format!("array of {}", kind(items)),
            None => "array".to_owned(),
        },
        "object" => match schema["properties"].as_object() {
            Some(fields) if !fields.is_empty() => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, field)| format!("{}: {}", code(name), kind(field))).collect();
                format!("object ({})", fields.join("; "))
            }
            _ => "object".to_owned(),
        },
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => named(name),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).map(named).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// Says what an argument means: its description, default and bounds.
fn meaning(schema: &Value) -> String {
    let mut meaning = prose(&sentence(schema["description"].as_str().unwrap_or_default()));
    if let Some(default) = schema.get("default") {
        let shown = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        write!(meaning, " Default: {}.", code(&shown)).unwrap();
    }
    for (name, bound) in [("least", "minimum"), ("most", "maximum")] {
        if let Some(bound) = schema.get(bound) {
            write!(meaning, " At {name} {bound}.").unwrap();
        }
    }
    meaning.trim().to_owned()
}

/// Says what a tool does to the notes, out of its annotations.
fn effect(tool: &Value) -> &'static str {
    let hints = &tool["annotations"];
    match (hints["readOnlyHint"] == true, hints["destructiveHint"] == true, hints["idempotentHint"] == true) {
        (true, _, _) => "Reads.",
        (_, false, false) => "Adds, and changes nothing that is there.",
        (_, false, true) => {
            "Changes what is there, and loses nothing; the same call again changes nothing more."
        }
        (_, true, true) => "Changes what is there; the same call again changes nothing more.",
        (_, true, false) => "Changes or removes what is there.",
    }
}

/// Writes one tool.
fn tool_section(tool: &Value) -> String {
    let name = tool["name"].as_str().unwrap();
    let schema = &tool["inputSchema"];
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let description = prose(&sentence(tool["description"].as_str().unwrap()));
    let mut section = format!("### {name}\n\n{description} *{}*\n\n", effect(tool));
    let fields = schema["properties"].as_object().unwrap();
    if fields.is_empty() {
        section.push_str("It takes no arguments.\n\n");
        return section;
    }
    section.push_str("| Argument | Type | Meaning |\n| --- | --- | --- |\n");
    for (field, schema) in fields {
        let mark = if required.contains(field.as_str()) { " (required)" } else { "" };
        writeln!(section, "| {}{mark} | {} | {} |", code(field), kind(schema), meaning(schema)).unwrap();
    }
    section.push('\n');
    section
}

#[test]
fn mcp_tools_of_the_reference_are_those_of_the_server() {
    assert_eq!(SETS.map(|(name, _)| name).to_vec(), toolset_names());
    let vault = TestVault::new(&[]);
    let mut page = format!(
        "# MCP tools\n\n{MADE}\n\n`sidenote mcp --toolset SETS` serves these; several sets are given with commas. \
         [Toolsets](../guides/toolsets.md) tells what each set is for. Every tool that writes also takes `operation_id`, \
         a text of the caller's choice: a call that is repeated with the same one within a day is done once, and gets \
         the first answer. A tool of `notes` or `more` that edits notes takes `propose`, true or the reason: its change \
         then waits for the user ([Keep the memory healthy](../guides/healthy-memory.md)). With `--read-only` only tools \
         that read are offered.\n\n"
    );
    let mut number = 0;
    for (set, about) in SETS {
        let mut client = Client::start(&vault, &["--toolset", set]);
        let list = client.request("tools/list", json!({}));
        let tools = list["tools"].as_array().unwrap().clone();
        number += tools.len();
        let names: BTreeSet<String> =
            tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(tools_of_guide(set), names, "the guides name the tools of {set}");
        writeln!(page, "## Toolset {set}\n\n{about}\n").unwrap();
        tools.iter().for_each(|tool| page.push_str(&tool_section(tool)));
        if set == "notes" {
            let listed = client.request("prompts/list", json!({}));
            let templates = client.request("resources/templates/list", json!({}));
            page = page.replacen("## Toolset", &format!("{}## Toolset", others(&listed, &templates)), 1);
        }
        client.finish();
    }
    assert!(number >= 62, "only {number} tools were found");
    check_page("mcp-tools.md", &format!("{}\n", page.trim_end()));
}

/// Reads which tools the guides name for a set: those of `notes` have a row each, those of the others one together.
fn tools_of_guide(set: &str) -> BTreeSet<String> {
    let read = |name: &str| fs::read_to_string(repository().join("docs/src/guides").join(name)).unwrap();
    let quoted =
        |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<String>>();
    if set == "notes" {
        let page = read("mcp.md");
        let (_, table) = page.split_once("The toolset `notes` has these tools:").unwrap();
        let (table, _) = table.split_once("\n\n[MCP tools]").unwrap();
        let names = table.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
        return names.map(str::to_owned).collect();
    }
    let page = read("toolsets.md");
    let row = page.lines().find(|line| line.starts_with(&format!("| `{set}` |"))).unwrap();
    quoted(row.rsplit(" | ").next().unwrap())
}

/// Writes prompts and resource templates, which every set has.
fn others(prompts: &Value, templates: &Value) -> String {
    let mut text = "## Prompts\n\n| Prompt | Arguments | Meaning |\n| --- | --- | --- |\n".to_owned();
    for prompt in prompts["prompts"].as_array().unwrap() {
        let arguments = prompt["arguments"].as_array().into_iter().flatten();
        let arguments: Vec<String> =
            arguments.map(|argument| code(argument["name"].as_str().unwrap())).collect();
        let arguments = if arguments.is_empty() { "none".to_owned() } else { arguments.join(", ") };
        let about = prose(&sentence(prompt["description"].as_str().unwrap_or_default()));
        writeln!(text, "| {} | {arguments} | {about} |", code(prompt["name"].as_str().unwrap())).unwrap();
    }
    text.push_str("\n## Resources\n\n| Address | Meaning |\n| --- | --- |\n");
    for template in templates["resourceTemplates"].as_array().unwrap() {
        let about = prose(&sentence(template["description"].as_str().unwrap_or_default()));
        writeln!(text, "| {} | {about} |", code(template["uriTemplate"].as_str().unwrap())).unwrap();
    }
    text.push('\n');
    text
}
