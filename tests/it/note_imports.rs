//! Tests imports that become notes which know where they came from: each once, twice, grown, edited by hand and undone; and
//! archives that are made to harm.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::support::{TestVault, json as reply_of, run, stderr, text_of, tree};

const NOW: &str = "2026-11-21";

/// Imports an export, and returns the reply.
fn import(vault: &TestVault, source: &str, path: &Path, more: &[&str]) -> Value {
    reply_of(vault, NOW, &[&["import", source, path.to_str().unwrap()], more].concat())
}

/// The reply to an import that must fail: its message.
fn refused(vault: &TestVault, source: &str, path: &Path) -> String {
    let done = vault.run(&["import", source, path.to_str().unwrap()]);
    assert!(!done.status.success(), "{}", path.display());
    stderr(&done)
}

/// A node of a conversation of ChatGPT.
fn node(id: &str, parent: &str, role: &str, at: u32, content: Value, metadata: Value) -> (String, Value) {
    let message = json!({
        "id": id, "author": { "role": role, "name": null, "metadata": {} }, "create_time": f64::from(at), "content": content,
        "status": "finished_successfully", "weight": 1.0, "metadata": metadata, "recipient": "all",
    });
    (id.to_owned(), json!({ "id": id, "message": message, "parent": parent, "children": [] }))
}

fn said(text: &str) -> Value {
    json!({ "content_type": "text", "parts": [text] })
}

/// A conversation of ChatGPT in which the person and the model take turns.
fn talk(id: &str, title: &str, turns: &[&str]) -> Value {
    let mut mapping = serde_json::Map::new();
    mapping.insert(
        "root".to_owned(),
        json!({ "id": "root", "message": null, "parent": null, "children": ["m0"] }),
    );
    for (at, text) in turns.iter().enumerate() {
        let parent = if at == 0 { "root".to_owned() } else { format!("m{}", at - 1) };
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        let time = 1_700_000_000 + at as u32 * 60;
        let (id, node) =
            node(&format!("m{at}"), &parent, role, time, said(text), json!({ "model_slug": "gpt-5" }));
        mapping.insert(id, node);
    }
    json!({
        "title": title, "create_time": 1_700_000_000.5, "update_time": 1_700_000_000.0 + turns.len() as f64 * 60.0,
        "mapping": mapping, "current_node": format!("m{}", turns.len() - 1), "conversation_id": id, "id": id,
    })
}

/// A conversation of Claude in which both take turns.
fn claude_talk(id: &str, name: &str, turns: &[&str]) -> Value {
    let message = |(at, text): (usize, &&str)| {
        json!({
            "uuid": format!("{id}-{at}"), "text": text, "content": [{ "type": "text", "text": text }],
            "sender": if at % 2 == 0 { "human" } else { "assistant" },
            "created_at": format!("2026-03-01T10:{at:02}:00.000000Z"), "attachments": [], "files": [],
        })
    };
    let messages: Vec<Value> = turns.iter().enumerate().map(message).collect();
    json!({
        "uuid": id, "name": name, "created_at": "2026-03-01T10:00:00.000000Z",
        "updated_at": format!("2026-03-01T10:{:02}:30.000000Z", turns.len()),
        "account": { "uuid": "a" }, "chat_messages": messages,
    })
}

/// Writes an archive with these files.
fn archive(path: &Path, files: &[(&str, &str)]) {
    let mut zip = ZipWriter::new(fs::File::create(path).unwrap());
    for (name, text) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
}

#[test]
fn a_conversation_of_chatgpt_is_its_visible_branch() {
    let mut mapping = serde_json::Map::new();
    let hidden = json!({ "is_visually_hidden_from_conversation": true });
    let model = json!({ "model_slug": "gpt-4o" });
    let picture = json!({ "content_type": "multimodal_text", "parts": [
        { "content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1" }, "What is on it?",
    ] });
    let attached = json!({ "attachments": [{ "id": "file-1", "name": "boat.png" }, { "id": "f2", "name": "plan.pdf" }] });
    let code = json!({ "content_type": "code", "language": "unknown", "text": "search('boats')" });
    let cited = json!({ "model_slug": "gpt-5", "content_references": [
        { "matched_text": "\u{e200}cite\u{e202}turn0search0\u{e201}", "alt": "([boats](https://boats.example))" },
    ] });
    for (id, value) in [
        node("s", "root", "system", 1, said("You are ChatGPT"), json!({})),
        node("h", "s", "user", 1, said("My custom instructions"), hidden),
        node("q", "h", "user", 1_700_000_060, picture, attached),
        node("old", "q", "assistant", 1_700_000_070, said("A dog."), model.clone()),
        node(
            "new",
            "q",
            "assistant",
            1_700_000_080,
            said("# A boat\n\n```sh\n# keep\nls\n```\n\n## Why\nIt floats."),
            model,
        ),
        node("t", "new", "tool", 1_700_000_085, said("42"), json!({})),
        node("c", "t", "assistant", 1_700_000_086, code, json!({})),
        node(
            "th",
            "c",
            "assistant",
            1_700_000_087,
            json!({ "content_type": "thoughts", "thoughts": [] }),
            json!({}),
        ),
        node(
            "more",
            "th",
            "assistant",
            1_700_000_090,
            said("See here\u{e200}cite\u{e202}turn0search0\u{e201}, \u{e200}x\u{e201}well."),
            cited,
        ),
        node("th2", "more", "user", 1_700_000_095, said("Thanks"), json!({})),
    ] {
        mapping.insert(id, value);
    }
    mapping["c"]["message"]["recipient"] = json!("browser");
    let conversation = json!([{
        "title": "A boat: or not?", "create_time": null, "update_time": 1_700_000_100.25, "mapping": mapping,
        "current_node": "th2", "conversation_id": "c-1", "default_model_slug": "auto",
    }]);
    let vault = TestVault::new(&[]);
    let file = vault.root().join(".conversations.json");
    fs::write(&file, conversation.to_string()).unwrap();
    let before = fs::read(&file).unwrap();
    let reply = import(&vault, "chatgpt", &file, &[]);
    assert_eq!(reply["imported"], json!(["ChatGPT/A boat or not.md"]));
    let left = json!({
        "call of a tool": 1, "hidden message": 1, "message of a tool": 1, "message of another branch": 1,
        "message of the system": 1, "reasoning": 1,
    });
    assert_eq!(reply["left_out"], left);
    let text = text_of(&vault, "ChatGPT/A boat or not.md");
    let (front, body) = text.split_at(text.find("## You").unwrap());
    assert_eq!(
        body,
        "## You\n\nImage: `boat.png`\n\nWhat is on it?\n\nFile: `plan.pdf`\n\n## ChatGPT\n\n### A boat\n\n```sh\n# keep\nls\n```\n\n#### Why\nIt floats.\n\nSee here([boats](https://boats.example)), well.\n\n## You\n\nThanks\n"
    );
    assert!(
        front.starts_with(
            "---\ntitle: \"A boat: or not?\"\ntype: conversation\ncreated_at: \"1970-01-01T00:00:01Z\"\n"
        ),
        "{front}"
    );
    assert!(front.contains("updated_at: \"2023-11-14T22:15:00.250Z\"\nmodel:\n  - gpt-4o\n  - gpt-5\nsource: chatgpt:c-1\nsource_hash: "), "{front}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

/// An import at three times: its source, and how the export is written in the form of a stage.
struct Case {
    source: &'static str,
    write: fn(&Path, usize) -> PathBuf,
    /// Notes that come with the first stage.
    first: &'static [&'static str],
    /// Notes that the second one makes, and those that it adds to.
    more: (&'static [&'static str], &'static [&'static str]),
}

fn write_chatgpt(folder: &Path, stage: usize) -> PathBuf {
    let path = folder.join("export.zip");
    let first = ["How do boats float?", "By displacement."];
    let longer = [&first[..], &["And iron ones?", "Those as well."]].concat();
    let boats = talk("boats", "Boats", if stage == 0 { &first } else { &longer });
    let mut all = vec![boats, talk("tea", "Tea", &["Green?", "Yes."])];
    if stage > 0 {
        all.push(talk("rain", "", &["Why does it rain so much in May?", "It does not."]));
    }
    archive(
        &path,
        &[
            ("conversations.json", &Value::from(all).to_string()),
            ("user.json", "{}"),
            ("chat.html", "<html>"),
        ],
    );
    path
}

fn write_claude(folder: &Path, stage: usize) -> PathBuf {
    let path = folder.join("export.zip");
    let first = ["How do boats float?", "By displacement."];
    let longer = [&first[..], &["And iron ones?", "Those as well."]].concat();
    let talks = json!([claude_talk("boats", "Boats", if stage == 0 { &first } else { &longer })]);
    let mut documents = vec![
        json!({ "uuid": "d1", "filename": "spec.md", "content": "---\ntags: [x]\n---\n# Spec\n", "created_at": "2026-01-02T00:00:00Z" }),
    ];
    if stage > 0 {
        documents.push(json!({ "uuid": "d2", "filename": "run.py", "content": "print(1)\n", "created_at": "2026-01-02T00:00:00Z" }));
    }
    let projects = json!([
        { "uuid": "p1", "name": "Harbour", "description": "All about it.", "prompt_template": "Be brief.",
          "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "docs": documents },
        { "uuid": "p2", "name": "Empty", "description": "", "prompt_template": "", "docs": [] },
    ]);
    let fact = if stage == 0 { "" } else { "\n- Rows on Sundays" };
    let memory = format!("**Work context**\n\nAnna builds boats.\n\n**Personal**\n\n- Drinks tea{fact}\n");
    let memories = json!([{ "conversations_memory": memory, "project_memories": { "p1": "Opens at six." }, "account_uuid": "a" }]);
    archive(
        &path,
        &[
            ("conversations.json", &talks.to_string()),
            ("projects.json", &projects.to_string()),
            ("memories.json", &memories.to_string()),
            ("users.json", "[]"),
        ],
    );
    path
}

fn write_claude_code(folder: &Path, stage: usize) -> PathBuf {
    let path = folder.join("-home-anna-boat");
    fs::create_dir_all(path.join("memory")).unwrap();
    let index = if stage == 0 { "" } else { "- [Ropes](ropes.md)\n" };
    fs::write(path.join("memory/MEMORY.md"), format!("# Memory\n\n- [Sails](sails.md)\n{index}")).unwrap();
    let sails = "---\nname: sails\ndescription: How sails are cut\nmetadata:\n  node_type: memory\n  type: feedback\n---\n\nCut them flat. See [[MEMORY]].\n";
    fs::write(path.join("memory/sails.md"), sails).unwrap();
    if stage > 0 {
        fs::write(path.join("memory/ropes.md"), "Splice, do not knot.\n").unwrap();
    }
    path
}

fn write_mem0(folder: &Path, stage: usize) -> PathBuf {
    let path = folder.join("mem0.json");
    let memory = |id: &str, text: &str| {
        json!({ "id": id, "memory": text, "user_id": "anna", "categories": ["likes", "two words"], "metadata": { "a": 1 },
            "created_at": "2026-01-01T00:00:00-08:00", "updated_at": null, "hash": "x" })
    };
    let text = if stage == 0 { "Anna drinks tea" } else { "Anna drinks tea, without milk" };
    let mut all = vec![memory("1", text), memory("2", "Anna rows")];
    if stage > 0 {
        all.push(memory("3", "Anna sings"));
    }
    fs::write(&path, json!({ "results": all }).to_string()).unwrap();
    path
}

fn write_okf(folder: &Path, stage: usize) -> PathBuf {
    let path = folder.join("sales");
    fs::create_dir_all(path.join("tables")).unwrap();
    fs::create_dir_all(path.join("metrics")).unwrap();
    fs::write(
        path.join("index.md"),
        "---\nokf_version: \"0.2\"\n---\n# All\n\n* [Orders](tables/orders.md)\n",
    )
    .unwrap();
    fs::write(
        path.join("log.md"),
        "# Log\n\n## 2026-05-22\n* **Update**: more\n\n## 2026-05-15\n* **Creation**: first\n",
    )
    .unwrap();
    let orders = "---\ntype: BigQuery Table\ntags: [sales]\n---\nSums up to [revenue](/metrics/revenue.md).\n\n`[x](/no/link.md)`\n";
    fs::write(path.join("tables/orders.md"), orders).unwrap();
    let more = if stage == 0 { "" } else { "\nSee [orders](../tables/orders.md).\n" };
    fs::write(path.join("metrics/revenue.md"), format!("---\ntype: Metric\n---\n# Revenue\n{more}")).unwrap();
    if stage > 0 {
        fs::write(path.join("metrics/churn.md"), "---\ntype: Metric\n---\nWho leaves.\n").unwrap();
    }
    path
}

const CASES: [Case; 5] = [
    Case {
        source: "chatgpt",
        write: write_chatgpt,
        first: &["ChatGPT/Boats.md", "ChatGPT/Tea.md"],
        more: (&["ChatGPT/Why does it rain so much in May.md"], &["ChatGPT/Boats.md"]),
    },
    Case {
        source: "claude",
        write: write_claude,
        first: &[
            "Claude/Projects/Harbour.md",
            "Claude/Projects/Harbour/spec.md",
            "Memories/Anna builds boats.md",
            "Memories/Drinks tea.md",
            "Memories/Opens at six.md",
            "Claude/Boats.md",
        ],
        more: (&["Claude/Projects/Harbour/run.md", "Memories/Rows on Sundays.md"], &["Claude/Boats.md"]),
    },
    Case {
        source: "claude-code",
        write: write_claude_code,
        first: &["Claude Code/home-anna-boat/MEMORY.md", "Claude Code/home-anna-boat/sails.md"],
        more: (&["Claude Code/home-anna-boat/ropes.md"], &["Claude Code/home-anna-boat/MEMORY.md"]),
    },
    Case {
        source: "mem0",
        write: write_mem0,
        first: &["Memories/Anna drinks tea.md", "Memories/Anna rows.md"],
        more: (&["Memories/Anna sings.md"], &["Memories/Anna drinks tea.md"]),
    },
    Case {
        source: "okf",
        write: write_okf,
        first: &["sales/metrics/revenue.md", "sales/tables/orders.md"],
        more: (&["sales/metrics/churn.md"], &["sales/metrics/revenue.md"]),
    },
];

#[test]
fn every_import_can_be_repeated_grow_and_be_undone() {
    assert_eq!(CASES.len(), 5);
    for case in CASES {
        let vault = TestVault::new(&[("Home.md", "A note of mine.\n")]);
        let folder = tempfile::tempdir().unwrap();
        let path = (case.write)(folder.path(), 0);
        let empty = tree(vault.root());
        // A dry run writes nothing, and says the same.
        let dry = import(&vault, case.source, &path, &["--dry-run"]);
        assert_eq!(tree(vault.root()), empty, "{}", case.source);
        let reply = import(&vault, case.source, &path, &[]);
        assert_eq!(dry, reply, "{}", case.source);
        assert_eq!(reply["imported"], json!(case.first));
        assert_eq!(reply["total"], json!(case.first.len()));
        // All notes say what they were made of.
        for note in case.first {
            assert!(text_of(&vault, note).contains(&format!("\nsource: {}:", case.source)), "{note}");
        }
        // The same export again changes no file.
        let first = vault.contents();
        let again = import(&vault, case.source, &path, &[]);
        assert_eq!((&again["imported"], &again["updated"]), (&json!([]), &json!([])), "{again}");
        assert_eq!(again["unchanged"], json!(case.first.len()));
        assert_eq!(vault.contents(), first, "{}", case.source);
        // A longer one adds what is new.
        let before = tree(vault.root());
        let path = (case.write)(folder.path(), 1);
        let grown = import(&vault, case.source, &path, &[]);
        assert_eq!(
            (&grown["imported"], &grown["updated"]),
            (&json!(case.more.0), &json!(case.more.1)),
            "{grown}"
        );
        let after = tree(vault.root());
        for (name, bytes) in &before {
            let has_grown = case.more.1.contains(&name.as_str());
            assert_eq!(after[name] != *bytes, has_grown, "{name}");
        }
        let settled = import(&vault, case.source, &path, &[]);
        assert_eq!((&settled["imported"], &settled["updated"]), (&json!([]), &json!([])), "{settled}");
        // One import is one operation.
        run(&vault, NOW, &["undo"]);
        assert_eq!(tree(vault.root()), before, "{}", case.source);
        // Notes that a person edited are left, and said.
        let edited = case.more.1[0];
        let mine = format!("{}\nMy own remark.\n", text_of(&vault, edited));
        vault.write(edited, &mine);
        let left = import(&vault, case.source, &path, &[]);
        assert_eq!((&left["edited"], &left["updated"]), (&json!([edited]), &json!([])), "{left}");
        assert_eq!(left["imported"], json!(case.more.0));
        assert_eq!(text_of(&vault, edited), mine);
        let told = run(&vault, NOW, &["import", case.source, path.to_str().unwrap()]);
        assert!(told.contains(&format!("edited by hand, left as it is: {edited}\n")), "{told}");
        run(&vault, NOW, &["undo"]);
        vault.write(edited, &before[edited]);
        run(&vault, NOW, &["undo"]);
        assert_eq!(tree(vault.root()), empty, "{}", case.source);
    }
}

#[test]
fn what_is_new_is_appended_and_properties_of_a_person_stay() {
    let vault = TestVault::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    import(&vault, "chatgpt", &write_chatgpt(folder.path(), 0), &[]);
    run(&vault, NOW, &["move", "ChatGPT/Boats.md", "Ships/Floating.md"]);
    run(&vault, NOW, &["tag", "Ships/Floating.md", "+harbour"]);
    let before = text_of(&vault, "Ships/Floating.md");
    let reply = import(&vault, "chatgpt", &write_chatgpt(folder.path(), 1), &[]);
    assert_eq!(reply["updated"], json!(["Ships/Floating.md"]));
    let after = text_of(&vault, "Ships/Floating.md");
    let body = |text: &str| text.split_once("## You").unwrap().1.to_owned();
    assert_eq!(
        body(&after),
        format!("{}\n## You\n\nAnd iron ones?\n\n## ChatGPT\n\nThose as well.\n", body(&before))
    );
    assert!(after.contains("harbour") && after.contains("updated_at: \"2023-11-14T22:17:20Z\""), "{after}");
}

#[test]
fn an_export_is_read_in_all_its_forms() {
    let both = [talk("a", "One", &["1", "2"]), talk("b", "Two", &["3", "4"])];
    let [one, two] = both.each_ref().map(|talk| json!([talk]).to_string());
    let all = Value::from(both.to_vec()).to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    archive(&path("whole.zip"), &[("conversations.json", &all)]);
    archive(
        &path("parts.zip"),
        &[
            ("x/conversations-000.json", &one),
            ("x/conversations-001.json", &two),
            ("__MACOSX/x/conversations-000.json", "no"),
        ],
    );
    archive(&path("twice.zip"), &[("conversations.json", &all), ("conversations-000.json", &one)]);
    fs::create_dir(path("folder")).unwrap();
    fs::write(path("folder/conversations.json"), &all).unwrap();
    fs::write(path("any name.json"), &all).unwrap();
    let forms = ["whole.zip", "parts.zip", "twice.zip", "folder", "any name.json"];
    assert_eq!(forms.len(), 5);
    for form in forms {
        let vault = TestVault::new(&[]);
        let reply = import(&vault, "chatgpt", &path(form), &["--into", "Chats/Old"]);
        assert_eq!(reply["imported"], json!(["Chats/Old/One.md", "Chats/Old/Two.md"]), "{form}");
    }
}

#[test]
fn what_claude_made_and_remembers_becomes_notes() {
    let vault = TestVault::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let talks = json!([{
        "uuid": "c", "name": "", "created_at": "2026-03-01T10:00:00Z", "updated_at": "2026-03-01T11:00:00Z",
        "project": { "uuid": "p1" }, "current_leaf_message_uuid": "m3",
        "chat_messages": [
            { "uuid": "m1", "sender": "human", "text": "Write it", "content": [{ "type": "text", "text": "Write it" }],
              "parent_message_uuid": "00000000-0000-4000-8000-000000000000",
              "attachments": [{ "file_name": "", "extracted_content": "pasted ``` text" }, { "file_name": "a.txt", "extracted_content": "x" }],
              "files": [{ "file_name": "photo.jpg" }] },
            { "uuid": "m2", "sender": "assistant", "text": "No", "content": [{ "type": "text", "text": "No" }], "parent_message_uuid": "m1" },
            { "uuid": "m3", "sender": "assistant", "text": "", "parent_message_uuid": "m1", "content": [
                { "type": "thinking", "thinking": "hm" },
                { "type": "tool_use", "name": "artifacts", "input": { "command": "create", "title": "Hull", "type": "application/vnd.ant.code", "language": "python", "content": "x = 1" } },
                { "type": "tool_use", "name": "web_search", "input": { "query": "hull" } },
                { "type": "tool_result", "content": [] },
                { "type": "text", "text": "Done." },
            ] },
        ],
    }]);
    let projects = json!({ "uuid": "p1", "name": "Harbour", "prompt_template": "Be brief.", "docs": [] });
    let path = folder.path().join("new.zip");
    archive(
        &path,
        &[("conversations.json", &talks.to_string()), ("projects/p1.json", &projects.to_string())],
    );
    let reply = import(&vault, "claude", &path, &[]);
    assert_eq!(reply["imported"], json!(["Claude/Projects/Harbour.md", "Claude/Write it.md"]));
    let left = json!({ "call of a tool": 1, "message of a tool": 1, "message of another branch": 1, "reasoning": 1, "text of an attached file": 1 });
    assert_eq!(reply["left_out"], left);
    let text = text_of(&vault, "Claude/Write it.md");
    assert!(text.ends_with("## You\n\nWrite it\n\n````\npasted ``` text\n````\n\nFile: `a.txt`\n\nFile: `photo.jpg`\n\n## Claude\n\nArtifact: `Hull`\n\n```python\nx = 1\n```\n\nDone.\n"), "{text}");
    assert!(text.contains("project: \"[[Claude/Projects/Harbour]]\"\n"), "{text}");
    assert!(text_of(&vault, "Claude/Projects/Harbour.md").ends_with("---\n## Instructions\n\nBe brief.\n"));
    // What is remembered.
    import(&vault, "claude", &write_claude(folder.path(), 1), &[]);
    let tea = text_of(&vault, "Memories/Drinks tea.md");
    assert!(tea.contains("\ncategory: Personal\n") && tea.ends_with("---\nDrinks tea\n"), "{tea}");
    let opens = text_of(&vault, "Memories/Opens at six.md");
    assert!(opens.contains("project: \"[[Claude/Projects/Harbour]]\"\n"), "{opens}");
    let spec = text_of(&vault, "Claude/Projects/Harbour/spec.md");
    assert!(spec.starts_with("---\ntags: [x]\n") && spec.ends_with("---\n# Spec\n"), "{spec}");
    assert!(text_of(&vault, "Claude/Projects/Harbour/run.md").ends_with("---\n```py\nprint(1)\n```\n"));
}

#[test]
fn memory_files_of_claude_code_keep_their_links_and_sessions_are_condensed() {
    let vault = TestVault::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = write_claude_code(folder.path(), 1);
    let line = |kind: &str, text: &str| {
        json!({ "type": kind, "message": { "role": kind, "content": text }, "timestamp": "2026-05-01T08:00:00Z", "cwd": "/home/anna/boat", "gitBranch": "main" }).to_string()
    };
    let session = [
        line("user", "<command-name>/clear</command-name>"),
        line("user", "Why does the build fail?"),
        line("assistant", "Let me look."),
        line(
            "assistant",
            "The root cause is that the linker was missing; it turns out `lld` must be installed first.",
        ),
        "no json".to_owned(),
    ];
    fs::write(path.join("5f2c.jsonl"), session.join("\n")).unwrap();
    fs::write(path.join("empty.jsonl"), line("user", "hi")).unwrap();
    let reply = import(&vault, "claude-code", &path, &[]);
    assert_eq!(reply["left_out"], json!({ "session": 2 }));
    assert!(text_of(&vault, "Claude Code/home-anna-boat/sails.md").contains("type: feedback\n"));
    let links = run(&vault, NOW, &["unresolved"]);
    assert!(!links.contains("sails") && !links.contains("MEMORY"), "{links}");
    let reply = import(&vault, "claude-code", &path, &["--sessions"]);
    assert_eq!(reply["imported"], json!(["Claude Code/home-anna-boat/Sessions/Why does the build fail.md"]));
    assert_eq!(reply["left_out"], json!({ "session without anything worth keeping": 1 }));
    let text = text_of(&vault, "Claude Code/home-anna-boat/Sessions/Why does the build fail.md");
    assert!(text.ends_with("---\n> Why does the build fail?\n\nThe root cause is that the linker was missing; it turns out `lld` must be installed first.\n"), "{text}");
    assert!(
        text.contains(
            "session: 5f2c\nproject: /home/anna/boat\nbranch: main\nsource: claude-code:session/5f2c\n"
        ),
        "{text}"
    );
    // The folder of the memory alone is the same project.
    let reply = import(&vault, "claude-code", &path.join("memory"), &[]);
    assert_eq!((&reply["imported"], &reply["unchanged"]), (&json!([]), &json!(3)), "{reply}");
}

#[test]
fn memories_of_mem0_and_openmemory_come_with_their_categories_and_states() {
    let vault = TestVault::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let export = json!({
        "user": { "id": "u" }, "apps": [{ "id": "a1", "name": "cursor" }], "categories": [{ "id": "k1", "name": "work" }],
        "memories": [
            { "id": "1", "user_id": "u", "app_id": "a1", "content": "Uses tabs", "metadata": {}, "state": "active", "created_at": "2026-01-01T00:00:00+00:00", "category_ids": ["k1"], "archived_at": null },
            { "id": "2", "content": "Old", "state": "archived" }, { "id": "3", "content": "Gone", "state": "deleted" }, { "id": "4", "content": " " },
        ],
        "memory_categories": [], "status_history": [],
    });
    let path = folder.path().join("openmemory.zip");
    archive(&path, &[("memories.json", &export.to_string()), ("memories.jsonl.gz", "")]);
    let reply = import(&vault, "mem0", &path, &[]);
    assert_eq!(reply["imported"], json!(["Memories/Uses tabs.md", "Memories/Old.md"]));
    assert_eq!(reply["left_out"], json!({ "deleted memory": 1, "memory without text": 1 }));
    let text = text_of(&vault, "Memories/Uses tabs.md");
    assert!(text.contains("tags:\n  - work\n") && text.contains("app: cursor\n"), "{text}");
    assert!(text_of(&vault, "Memories/Old.md").contains("tier: archive\n"));
    let listed = run(&vault, NOW, &["search", "tabs", "--mode", "bm25"]);
    assert!(listed.contains("Uses tabs"), "{listed}");
    let list = folder.path().join("list.json");
    fs::write(&list, json!([{ "id": "9", "memory": "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8 is the key", "immutable": true }]).to_string()).unwrap();
    let reply = import(&vault, "mem0", &list, &["--into", "Facts"]);
    assert_eq!(
        (&reply["redacted"], &reply["left_out"]),
        (&json!(2), &json!({ "key immutable": 1 })),
        "{reply}"
    );
}

#[test]
fn a_bundle_of_the_open_knowledge_format_is_read_and_checked() {
    let vault = TestVault::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = write_okf(folder.path(), 1);
    let reply = import(&vault, "okf", &path, &[]);
    assert_eq!(reply["left_out"], json!({ "list of a folder": 2 }));
    let orders = text_of(&vault, "sales/tables/orders.md");
    assert!(
        orders.starts_with("---\ntype: BigQuery Table\ntags: [sales]\nsource: okf:sales/tables/orders\n"),
        "{orders}"
    );
    assert!(
        orders.ends_with("Sums up to [revenue](../metrics/revenue.md).\n\n`[x](/no/link.md)`\n"),
        "{orders}"
    );
    assert!(run(&vault, NOW, &["check", "--only", "broken-link"]).contains("no problems"));
    // The rules of the format, which are asked for by name alone.
    let cases: [(&str, &str, &str); 9] = [
        ("Plain.md", "text", "it has no frontmatter"),
        ("Broken.md", "---\n[: x\n---\n", "its frontmatter cannot be read"),
        ("Untyped.md", "---\ntitle: x\n---\n", "it has no property `type`"),
        ("Empty.md", "---\ntype: \"\"\n---\n", "its property `type` is empty"),
        ("List.md", "---\ntype: [a]\n---\n", "its property `type` is no text"),
        ("index.md", "---\ntitle: x\n---\n# A\n", "its frontmatter may have okf_version alone"),
        ("a/index.md", "---\nokf_version: \"0.2\"\n---\n# A\n", "a list of a folder has no frontmatter"),
        ("log.md", "# Log\n\n## May\n", "its heading \"May\" is no date"),
        (
            "b/log.md",
            "# Log\n\n## 2026-01-01\n\n## 2026-02-01\n",
            "its entry of 2026-02-01 is below an older one",
        ),
    ];
    assert_eq!(cases.len(), 9);
    let sound = [
        ("ok/index.md", "# A\n\n* [x](x.md)\n"),
        ("ok/log.md", "## 2026-02-01: more\n\n## 2026-01-01\n"),
        ("ok/T.md", "---\ntype: Note\n---\n"),
    ];
    for (name, text) in cases.iter().map(|(name, text, _)| (*name, *text)).chain(sound) {
        vault.write(name, text);
    }
    let found = reply_of(&vault, NOW, &["check", "--only", "okf"]);
    let problems = found["problems"].as_array().unwrap();
    assert_eq!(problems.len(), cases.len(), "{found}");
    for (name, _, message) in cases {
        let problem = problems.iter().find(|problem| problem["path"] == name).expect(name);
        assert!(problem["message"].as_str().unwrap().contains(message), "{problem}");
    }
    let all = reply_of(&vault, NOW, &["check"]);
    assert!(all["counts"].get("okf").is_none(), "{all}");
    let plain = folder.path().join("plain");
    fs::create_dir(&plain).unwrap();
    fs::write(plain.join("x.md"), "no type").unwrap();
    assert!(refused(&vault, "okf", &plain).contains("is no bundle of the Open Knowledge Format"));
}

#[test]
fn a_wrong_source_is_named_with_a_hint() {
    let vault = TestVault::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("claude.json"), json!([claude_talk("a", "A", &["x"])]).to_string()).unwrap();
    fs::write(path("chatgpt.json"), json!([talk("a", "A", &["x"])]).to_string()).unwrap();
    fs::create_dir(path("none")).unwrap();
    let cases: [(&str, &str, &[&str]); 8] = [
        (
            "chatgpt",
            "claude.json",
            &["claude.json, conversation 1: it has no `mapping`", "name the source claude"],
        ),
        (
            "claude",
            "chatgpt.json",
            &["chatgpt.json, conversation 1: it has no `chat_messages`", "name the source chatgpt"],
        ),
        ("mem0", "chatgpt.json", &["memory 1: it has no `memory`"]),
        ("chatgpt", "none", &["has no file conversations.json"]),
        ("claude-code", "none", &["has neither memory files nor sessions"]),
        ("claude", "absent.zip", &["absent.zip"]),
        (
            "other",
            "claude.json",
            &[
                "\"other\" is no source of an import",
                "chatgpt, claude, claude-code, mem0, okf, server-memory",
            ],
        ),
        ("csv", "claude.json", &["memory 1"]),
    ];
    assert_eq!(cases.len(), 8);
    for (source, name, texts) in cases {
        let told = refused(&vault, source, &path(name));
        for text in texts {
            assert!(told.contains(text), "{source} {name}: {told}");
        }
    }
    for arguments in [
        ["import", "mem0", "-"],
        ["import", "--into=x", "claude.json"],
        ["import", "--sessions", "claude.json"],
    ] {
        assert!(!vault.run(&arguments).status.success(), "{arguments:?}");
    }
    assert!(tree(vault.root()).is_empty());
}

/// The same numbers for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Makes a file that no import may take, from a seed. Returns what kind it is.
fn hostile(seed: u64, path: &Path, source: &str) -> &'static str {
    let mut numbers = Numbers(seed);
    let talks: Vec<Value> = (0..=numbers.below(5))
        .map(|at| {
            if source == "chatgpt" {
                talk(&format!("c{at}"), "Talk", &["Hello", "Hi"])
            } else {
                claude_talk(&format!("c{at}"), "Talk", &["Hello", "Hi"])
            }
        })
        .collect();
    let sound = Value::from(talks).to_string();
    let name = "conversations.json";
    archive(path, &[(name, &sound), ("a/b.txt", "b")]);
    let mut bytes = fs::read(path).unwrap();
    match seed % 14 {
        0 => {
            fs::write(path, &bytes[..4 + numbers.below(bytes.len() - 8)]).unwrap();
            "half an archive"
        }
        1 => {
            let spaces = " ".repeat((17 << 20) + numbers.below(1 << 20));
            archive(path, &[(name, &format!("[{spaces}]"))]);
            "a bomb"
        }
        2 => {
            let names = ["../x.json", "a/../../x", "/etc/x", "C:\\x", "..\\x", "a\\..\\..\\x"];
            archive(path, &[(name, &sound), (names[numbers.below(names.len())], "x")]);
            "a path that climbs"
        }
        3 => {
            let end = 1 + numbers.below(sound.len() - 1);
            archive(path, &[(name, &sound[..end])]);
            "half a list"
        }
        4 => {
            let wrong = ["{]", "[,]", "nul", "[1e]", "\"", "[]]", "[{}{}]", "\u{feff}x", ""];
            archive(path, &[(name, wrong[numbers.below(wrong.len())])]);
            "no JSON"
        }
        5 => {
            let wrong = [
                "[1]",
                "[[]]",
                "[null]",
                "[\"x\"]",
                "3",
                "\"x\"",
                "null",
                "[{\"mapping\":[],\"chat_messages\":{}}]",
                "[{\"id\":\"a\",\"uuid\":\"a\"}]",
                "{}",
            ];
            archive(path, &[(name, wrong[numbers.below(wrong.len())])]);
            "another schema"
        }
        6 => {
            archive(path, &[(name, &sound), ("conversationz.json", &sound)]);
            let text = fs::read(path).unwrap();
            let (from, to) = (b"conversationz.json", b"conversations.json");
            let mut twice = text.clone();
            for at in 0..text.len() - from.len() {
                if text[at..].starts_with(from) {
                    twice[at..at + to.len()].copy_from_slice(to);
                }
            }
            fs::write(path, twice).unwrap();
            "the same name twice"
        }
        7 => {
            // The first bytes of the compressed text, behind the local header.
            let at = 30 + name.len() + 8 + numbers.below(24);
            bytes[at] ^= 1 << numbers.below(8);
            fs::write(path, bytes).unwrap();
            "a damaged file"
        }
        8 => {
            bytes[6] |= 1;
            let central = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
            bytes[central + 8] |= 1;
            fs::write(path, bytes).unwrap();
            "an encrypted file"
        }
        9 => {
            let link = if source == "chatgpt" {
                json!([{ "id": "a", "current_node": "x", "mapping": { "x": { "parent": "y" }, "y": { "parent": "x" } } }])
            } else {
                json!([{ "uuid": "a", "chat_messages": [
                    { "uuid": "x", "parent_message_uuid": "y" }, { "uuid": "y", "parent_message_uuid": "x" },
                ] }])
            };
            archive(path, &[(name, &link.to_string())]);
            "a circle"
        }
        10 => {
            let deep = 200 + numbers.below(100_000);
            let nested = format!("[{{\"x\":{}{}}}]", "[".repeat(deep), "]".repeat(deep));
            archive(path, &[(name, &nested)]);
            "deep nesting"
        }
        11 => {
            let mut zip = ZipWriter::new(fs::File::create(path).unwrap());
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(sound.as_bytes()).unwrap();
            zip.add_symlink("link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
            zip.finish().unwrap();
            "a link"
        }
        12 => {
            let ids = ["", " ", "a\\nb", "\\u0000"];
            let id = ids[numbers.below(ids.len())];
            archive(path, &[(name, &sound.replace("\"c0\"", &format!("\"{id}\"")))]);
            "no id"
        }
        _ => {
            let noise: String =
                (0..10 + numbers.below(4000)).map(|_| char::from(32 + numbers.below(95) as u8)).collect();
            fs::write(path, format!("x{noise}")).unwrap();
            "noise"
        }
    }
}

#[test]
fn two_hundred_hostile_exports_are_named_and_write_nothing() {
    let vault = TestVault::new(&[("Home.md", "A note of mine.\n")]);
    let before = tree(vault.root());
    let folder = tempfile::tempdir().unwrap();
    let store = vault.store();
    let mut kinds = std::collections::BTreeMap::new();
    for seed in 0..200 {
        let (source, name) =
            if seed % 3 == 0 { ("claude", "claude.zip") } else { ("chatgpt", "chatgpt.zip") };
        let path = folder.path().join(name);
        let kind = hostile(seed, &path, source);
        *kinds.entry(kind).or_insert(0) += 1;
        let source = sidenote::store::NoteSource::parse(source).unwrap();
        let request = sidenote::store::NotesImportRequest::default();
        let done = store.upkeep().import_notes(source, &path, &request, &|_, _| {});
        let error = done.map(|reply| panic!("{seed}, {kind}: {reply:?}")).unwrap_err();
        assert_eq!(error.kind().name(), "invalid", "{seed}, {kind}: {error}");
        assert!(error.message().contains(name), "{seed}, {kind}: {error}");
        assert!(error.hint().is_some(), "{seed}, {kind}: {error}");
    }
    assert_eq!(kinds.len(), 14);
    assert_eq!(tree(vault.root()), before);
}
