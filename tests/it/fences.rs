//! Tests that an agent cannot learn of notes outside of its fence, nor change them: each tool answers as in a vault without them.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::mcp_arguments::{calls, vault};
use crate::mcp_client::Client;
use crate::mcp_schemas::{SETS, listed};
use crate::support::{TestVault, stderr, stdout};

/// Notes that the agent may not know of. They share names, tags, links and words with the others.
const FENCED: [(&str, &str); 7] = [
    (
        "Private/Secret.md",
        "---\nid: 550e8400-e29b-41d4-a716-446655440009\ntags: [hush, sport]\ntype: fact\nstatus: hidden\naliases: [Zanzibar]\ncreated: 2026-01-05\n---\n# Zanzibar\n\nThe zanzibar plan: [[Boat]], [[River]], [[Tea]]. Anna drinks green tea by the river.\n\n- [ ] zanzibar task 📅 2026-11-22\n",
    ),
    ("Private/River.md", "---\ncreated: 2026-01-05\n---\nAnother river, of three metres, zanzibar.\n"),
    ("Private/Deep/Boat.md", "A boat that leaks. [[Projects/Boat#To do]]\n"),
    (
        "Private/Memory.md",
        "---\nid: 550e8400-e29b-41d4-a716-446655440010\ntype: preference\npinned: true\nimportance: 10\ncreated: 2026-01-05\ntags: [tea]\n---\nAnna prefers green tea from Zanzibar.\n",
    ),
    (
        "Private/handoffs/boat.md",
        "---\nid: 550e8400-e29b-41d4-a716-446655440011\ntype: handoff\nproject: boat\ncreated: 2026-11-20\n---\nZanzibar handoff.\n",
    ),
    (
        "Private/map.canvas",
        "{\"nodes\":[{\"id\":\"1\",\"type\":\"file\",\"file\":\"River.md\",\"x\":0,\"y\":0,\"width\":1,\"height\":1}],\"edges\":[]}",
    ),
    ("Private/zanzibar.png", "png"),
];

/// What an agent tries that has heard of something.
const GUESSES: [&str; 10] = [
    "Secret",
    "Zanzibar",
    "zanzibar plan",
    "Private/Secret.md",
    "Private",
    "Private/Deep/Boat",
    "[[Secret]]",
    "hush",
    "550e8400-e29b-41d4-a716-446655440009",
    "sidenote:///Private/Secret.md",
];

fn with_links(vault: &TestVault) {
    vault.write("Journal.md", "---\ncreated: 2026-01-06\n---\nSee [[Secret]], [[Zanzibar]] and [[River]]. ![[zanzibar.png]] [x](Private/Secret.md)\n");
}

fn server(vault: &TestVault, flags: &[&str]) -> Client {
    let mut command: Command = vault.command(&["mcp", "--toolset", &SETS.join(",")]);
    let backups = format!("{}.backups", vault.root().display());
    Client::of(command.args(flags).env("MEMORY_BACKUP_PATH", backups))
}

/// Takes out what differs from run to run: the folder of the vault, the times of its files, and ids that are made.
fn comparable(vault: &TestVault, answer: &Value) -> String {
    let text = answer.to_string().replace(vault.root().to_str().unwrap(), "").replace("\\n", " ");
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-:.+".contains(c);
    let is_time = |word: &str| {
        let word = word.trim_matches(':');
        let digits = word.chars().filter(char::is_ascii_digit).count();
        digits >= 12 && word.get(4..5) == Some("-") && word.contains('T') || digits == 13 && word.len() == 13
    };
    let is_id = |word: &str| {
        let hex = word.chars().filter(|c| c.is_ascii_hexdigit() || *c == '-').count();
        word.len() >= 16 && hex == word.len() && !word.starts_with("550e8400")
    };
    let mut out = String::new();
    for part in text.split_inclusive(|c: char| !is_word(c)) {
        let word = part.trim_end_matches(|c: char| !is_word(c));
        let shown = if is_time(word) || is_id(word) { "#" } else { word };
        out.push_str(shown);
        out.push_str(&part[word.len()..]);
    }
    out
}

/// Replaces each text of the arguments by a guess, one at a time.
fn guesses(arguments: &Value, guess: &str) -> Vec<Value> {
    let Some(fields) = arguments.as_object() else { return Vec::new() };
    let mut all = Vec::new();
    for (name, value) in fields {
        let mut changed = fields.clone();
        match value {
            Value::String(_) => drop(changed.insert(name.clone(), json!(guess))),
            Value::Array(items) if items.iter().all(Value::is_string) => {
                drop(changed.insert(name.clone(), json!([guess])));
            }
            _ => continue,
        }
        all.push(Value::Object(changed));
    }
    all
}

/// Lists the tools that write, and whether each can show what it would do.
fn writing_tools(client: &mut Client) -> BTreeMap<String, bool> {
    let tools = listed(client);
    let writing = tools.iter().filter(|tool| tool["annotations"]["readOnlyHint"] != true);
    writing
        .map(|tool| {
            let can_show = !tool["inputSchema"]["properties"]["dry_run"].is_null();
            (tool["name"].as_str().unwrap().to_owned(), can_show)
        })
        .collect()
}

fn set_times(vault: &TestVault) {
    let at = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_790_000_000);
    for path in crate::support::files_below(vault.root()) {
        let path = vault.root().join(path);
        if path.extension().is_some_and(|extension| extension == "md") {
            std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
        }
    }
}

#[test]
fn every_tool_answers_as_if_the_fenced_notes_were_not_there() {
    let (with, without) = (vault(), vault());
    [&with, &without].into_iter().for_each(with_links);
    FENCED.iter().for_each(|(path, text)| with.write(path, text));
    [&with, &without].into_iter().for_each(set_times);
    let flags = ["--read", "!Private"];
    let mut fenced = server(&with, &flags);
    let mut free = server(&without, &flags);
    [&mut fenced, &mut free].into_iter().for_each(Client::catch_up);
    let dry_runs = writing_tools(&mut free);
    let mut compared = 0;
    let mut both = |tool: &str, arguments: Value| {
        let [one, other] = [(&mut fenced, &with), (&mut free, &without)].map(|(client, vault)| {
            let answer = client.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
            comparable(vault, &json!([answer["result"], answer["error"]]))
        });
        compared += 1;
        // Such a change would break links of notes outside of the fence, and the rule says so.
        if !one.contains("links in notes outside of what the agent may change") {
            assert_eq!(one, other, "{tool} {arguments}");
        }
    };
    for (tool, arguments) in calls() {
        for guess in GUESSES {
            for mut arguments in guesses(&arguments, guess) {
                let writes = dry_runs.get(tool).copied();
                if writes == Some(true) {
                    arguments["dry_run"] = json!(true);
                }
                // A name of a note outside of the fence is refused to a new note, and the vaults would differ from then on.
                if writes != Some(false) || arguments.get("title").is_none_or(|title| title != guess) {
                    both(tool, arguments);
                }
            }
        }
    }
    for what in ["backlinks", "links", "around", "orphan", "unresolved", "mentions", "related", "path"] {
        for note in ["River", "Boat", "Journal"] {
            both("explore_links", json!({ "note": note, "what": what, "to": "Tea" }));
        }
    }
    for list in [
        json!({}),
        json!({ "sort": "updated" }),
        json!({ "tags": ["sport"] }),
        json!({ "folder": "Private" }),
    ] {
        both("list_notes", list);
    }
    for (tool, arguments) in calls() {
        both(tool, arguments);
    }
    both("read_session", json!({ "action": "audit" }));
    assert!(compared > 1_000, "{compared}");
    for method in ["resources/list", "tools/list", "prompts/list"] {
        let [one, other] = [(&mut fenced, &with), (&mut free, &without)]
            .map(|(client, vault)| comparable(vault, &client.request(method, json!({}))));
        assert_eq!(one, other, "{method}");
    }
    for guess in GUESSES {
        for (method, params) in [
            ("resources/read", json!({ "uri": guess })),
            ("resources/subscribe", json!({ "uri": guess })),
            (
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": "recall" }, "argument": { "name": "topic", "value": guess } }),
            ),
            ("prompts/get", json!({ "name": "recall", "arguments": { "topic": guess } })),
        ] {
            let [one, other] = [(&mut fenced, &with), (&mut free, &without)].map(|(client, vault)| {
                let answer = client.ask(method, params.clone());
                comparable(vault, &json!([answer["result"], answer["error"]]))
            });
            assert_eq!(one, other, "{method} {params}");
        }
    }
    for (path, text) in FENCED {
        assert_eq!(with.read(path), text, "{path}");
    }
    fenced.finish();
    free.finish();
    for vault in [&with, &without] {
        std::fs::remove_dir_all(format!("{}.backups", vault.root().display())).unwrap();
    }
}

/// Makes notes of a few words, so that they share names, tags, links and phrases. Of those below `Private` some hide themselves
/// by their property in place of their folder.
fn random_notes(seed: u64) -> Vec<(String, String, bool)> {
    const WORDS: [&str; 12] = [
        "boat", "river", "tea", "anna", "harbour", "gauge", "falcon", "port", "mast", "heron", "crew", "map",
    ];
    let mut state = seed;
    let mut below = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % most as u64).unwrap()
    };
    let mut notes = Vec::new();
    for at in 0..24 {
        let is_hidden = below(3) == 0;
        let by_property = is_hidden && below(2) == 0;
        let mut word = || WORDS[below(WORDS.len())];
        let folder = if is_hidden && !by_property { "Private/" } else { "" };
        let path = format!("{folder}{} {} {at}.md", word(), word());
        let agents = if by_property { "agents: none\n" } else { "" };
        let text = format!(
            "---\n{agents}tags: [{}, {}]\ntype: fact\ncreated: 2026-01-0{}\n---\n# {} {}\n\nThe {} of the {} met the {} at the {}. See [[{} {} {}]] and [[{}]] #{}\n",
            word(),
            word(),
            1 + at % 9,
            word(),
            word(),
            word(),
            word(),
            word(),
            word(),
            word(),
            word(),
            at / 2,
            word(),
            word()
        );
        notes.push((path, text, is_hidden));
    }
    notes
}

#[test]
fn random_vaults_answer_as_if_the_fenced_notes_were_not_there() {
    for seed in [0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03, 0x8CB9_2BA7_2F3D_8DD7] {
        let (with, without) = (vault(), vault());
        let notes = random_notes(seed);
        for (path, text, is_hidden) in &notes {
            with.write(path, text);
            if !is_hidden {
                without.write(path, text);
            }
        }
        [&with, &without].into_iter().for_each(set_times);
        let flags = ["--read", "!Private"];
        let mut fenced = server(&with, &flags);
        let mut free = server(&without, &flags);
        [&mut fenced, &mut free].into_iter().for_each(Client::catch_up);
        let writing = writing_tools(&mut free);
        let hidden = notes.iter().filter(|(_, _, is_hidden)| *is_hidden);
        let stem = |path: &str| path.trim_start_matches("Private/").trim_end_matches(".md").to_owned();
        let guesses_of = hidden.take(4).flat_map(|(path, _, _)| [stem(path), path.clone()]);
        let mut compared = 0;
        for guess in guesses_of.collect::<Vec<_>>() {
            for (tool, arguments) in calls().into_iter().filter(|(tool, _)| !writing.contains_key(*tool)) {
                for arguments in guesses(&arguments, &guess) {
                    let [one, other] =
                        [(&mut fenced, &with), (&mut free, &without)].map(|(client, vault)| {
                            let answer =
                                client.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
                            comparable(vault, &json!([answer["result"], answer["error"]]))
                        });
                    compared += 1;
                    assert_eq!(one, other, "{seed:x} {tool} {arguments}");
                }
            }
        }
        assert!(compared > 200, "{compared}");
        fenced.finish();
        free.finish();
    }
}

#[test]
fn a_note_hides_itself_or_forbids_changes_by_its_property() {
    let vault = TestVault::new(&[
        ("Diary.md", "---\nagents: none\n---\nThe zanzibar plan.\n"),
        ("Law.md", "---\nagents: read\n---\nThe law.\n"),
        ("Open.md", "Open to all, [[Diary]].\n"),
    ]);
    let mut client = Client::start(&vault, &[]);
    let found = client.text("search_notes", json!({ "query": "zanzibar plan", "mode": "bm25" }));
    assert!(!found.contains("Diary"), "{found}");
    assert!(client.refusal("read_note", json!({ "notes": ["Diary"] })).contains("Diary"));
    assert!(client.text("read_note", json!({ "notes": ["Law"] })).contains("The law."));
    let edit = |note: &str| json!({ "note": note, "action": "append", "text": "More." });
    let refused = client.refusal("edit_note", edit("Law"));
    assert!(refused.contains("agents: read"), "{refused}");
    client.text("edit_note", edit("Open"));
    // It says so while the server runs.
    vault.write("Open.md", "---\nagents: none\n---\nNot open any more.\n");
    client.catch_up();
    assert!(client.call("read_note", json!({ "notes": ["Open"] }))["isError"] == true);
    client.finish();
}

#[test]
fn a_change_outside_of_what_the_rule_allows_is_refused_whole() {
    let files = [
        ("Work/Plan.md", "# Plan\n"),
        ("Work/Other.md", "See [[Plan]].\n"),
        ("Archive/Old.md", "Old, see [[Plan]].\n"),
        ("Private/Diary.md", "My diary on [[Plan]].\n"),
    ];
    let vault = TestVault::new(&files);
    let before = vault.contents();
    let mut client = Client::start(&vault, &["--read", "!Private", "--write", "Work"]);
    for (tool, arguments) in [
        ("edit_note", json!({ "note": "Old", "action": "append", "text": "x" })),
        ("write_note", json!({ "title": "New", "content": "x", "folder": "Archive" })),
        ("write_note", json!({ "title": "New", "content": "x", "folder": "Private" })),
        ("move_note", json!({ "from": "Other", "to": "Archive/" })),
        ("move_note", json!({ "from": "Other", "to": "Private/" })),
        ("delete_note", json!({ "note": "Old" })),
        // Links in a note that the agent may read, and in one that it does not know of, would have to follow.
        ("move_note", json!({ "from": "Plan", "to": "Work/Scheme.md" })),
    ] {
        let refused = client.refusal(tool, arguments.clone());
        assert!(refused.contains("the fence of this server"), "{tool} {arguments}: {refused}");
        assert!(!refused.contains("Diary"), "{refused}");
        assert_eq!(vault.contents(), before, "{tool} {arguments}");
    }
    client.text("edit_note", json!({ "note": "Plan", "action": "append", "text": "More." }));
    client.text("move_note", json!({ "from": "Other", "to": "Work/Another.md" }));
    client.finish();
}

#[test]
fn links_outside_of_the_fence_follow_if_the_rule_says_so() {
    let vault = TestVault::new(&[
        ("Work/Plan.md", "# Plan\n"),
        ("Archive/Old.md", "Old, see [[Plan]].\n"),
        ("Private/Diary.md", "My diary on [[Plan|it]].\n"),
        ("Private/Secret.md", "Secret.\n"),
        ("Work/Other.md", "See [[Secret]].\n"),
    ]);
    settings(
        &vault,
        "[[agents]]\nname = \"t\"\nread = [\"!Private\"]\nwrite = [\"Work\"]\nlinks = \"rewrite\"\n",
    );
    let mut client = Client::start(&vault, &[]);
    let told = client.text("move_note", json!({ "from": "Plan", "to": "Work/Scheme.md" }));
    assert!(!told.contains("Diary"), "{told}");
    assert_eq!(vault.read("Private/Diary.md"), "My diary on [[Scheme|it]].\n");
    assert_eq!(vault.read("Archive/Old.md"), "Old, see [[Scheme]].\n");
    // A note that would take over a link to a note that the agent does not know of is not made.
    let refused =
        client.refusal("write_note", json!({ "title": "Secret", "content": "Mine.", "folder": "Work" }));
    assert!(refused.contains("rule \"t\""), "{refused}");
    let events = client.text("read_session", json!({ "action": "audit" }));
    assert!(!events.contains("Diary"), "{events}");
    client.finish();
    let history = stdout(&vault.run(&["--json", "history"]));
    assert!(history.contains("Diary"), "{history}");
}

#[test]
fn a_rule_limits_tools_rate_and_size() {
    let vault = TestVault::new(&[("A.md", "A\n")]);
    settings(
        &vault,
        "[[agents]]\nname = \"t*\"\ntools = [\"read_note\", \"write_note\"]\nrate = 2\nmax_note_bytes = 1000\nconfirm = [\"delete\"]\n",
    );
    let mut client = Client::start(&vault, &[]);
    let tools = client.request("tools/list", json!({}));
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["read_note", "write_note"]);
    let unknown = client.ask("tools/call", json!({ "name": "list_notes", "arguments": {} }));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("there is no tool"), "{unknown}");
    let write = |title: &str, text: &str| json!({ "title": title, "content": text });
    let large = client.refusal("write_note", write("Large", &"x".repeat(1_001)));
    assert!(large.contains("allows 1000"), "{large}");
    client.text("write_note", write("One", "1"));
    client.text("write_note", write("Two", "2"));
    let third = client.refusal("write_note", write("Three", "3"));
    assert!(third.contains("2 changes a minute"), "{third}");
    client.finish();
    // A new connection does not begin to count anew, and a proposal counts.
    let mut client = Client::start(&vault, &[]);
    let third = client.refusal("write_note", write("Three", "3"));
    assert!(third.contains("2 changes a minute"), "{third}");
    let mut proposed = write("Three", "3");
    proposed["propose"] = json!(true);
    let third = client.refusal("write_note", proposed);
    assert!(third.contains("2 changes a minute"), "{third}");
    client.finish();
}

#[test]
fn what_a_person_confirms_becomes_a_proposal() {
    let vault = TestVault::new(&[("A.md", "A\n"), ("B.md", "B\n"), ("C.md", "C\n")]);
    settings(&vault, "[[agents]]\nname = \"*\"\nconfirm = [\"delete\", \"move\"]\n");
    let mut client = Client::start(&vault, &[]);
    let told = client.text("delete_note", json!({ "note": "A" }));
    assert!(told.contains("not changed: the proposal"), "{told}");
    assert!(vault.root().join("A.md").exists());
    // What is removed for good is removed, too, and nobody accepts it in passing.
    let told = client.text("delete_note", json!({ "note": "C", "how": "permanent", "confirm": true }));
    assert!(told.contains("not changed: the proposal"), "{told}");
    let all = vault.run(&["proposals", "accept", "--all", "--dry-run"]);
    let said = format!("{}{}", stdout(&all), String::from_utf8_lossy(&all.stderr));
    assert!(said.contains("removes C.md for good"), "{said}");
    client.text("edit_note", json!({ "note": "B", "action": "append", "text": "More." }));
    assert!(vault.read("B.md").contains("More."));
    client.finish();
    let listed: Value = serde_json::from_str(&stdout(&vault.run(&["--json", "proposals"]))).unwrap();
    let of_a = listed["proposals"].as_array().unwrap().iter().find(|item| item["paths"] == json!(["A.md"]));
    let first = of_a.unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(first["reason"], "delete of A.md: the rule \"*\" asks a person to confirm it", "{listed}");
    let id = first["id"].as_str().unwrap().to_owned();
    assert!(vault.run(&["proposals", "accept", &id]).status.success());
    assert!(!vault.root().join("A.md").exists());
}

#[test]
fn an_operation_id_answers_the_agent_alone_that_chose_it() {
    let vault = TestVault::new(&[("Open.md", "Open.\n")]);
    settings(&vault, "[[agents]]\nname = \"t\"\nread = [\"!Private\"]\n");
    let write = json!({ "title": "Zanzibar", "content": "x", "folder": "Private", "operation_id": "undo-1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "other", "version": "1" } });
    let mut other = Client::greeting(&mut vault.command(&["mcp"]), hello);
    other.text("write_note", write.clone());
    other.finish();
    let mut client = Client::start(&vault, &[]);
    let refused = client.refusal("write_note", write);
    assert!(refused.contains("does not let this agent write"), "{refused}");
    client.finish();
}

#[test]
fn an_agent_does_not_say_what_agents_may_do() {
    let vault = TestVault::new(&[("Open.md", "---\nauthor: Anna\n---\nOpen.\n")]);
    let mut client = Client::start(&vault, &[]);
    for (tool, arguments) in [
        ("edit_note", json!({ "note": "Open", "action": "set", "key": "agents", "value": "none" })),
        ("write_note", json!({ "title": "New", "content": "x", "properties": { "agents": "read" } })),
    ] {
        let refused = client.refusal(tool, arguments);
        assert!(refused.contains("by its property agents"), "{refused}");
    }
    client.text("edit_note", json!({ "note": "Open", "action": "set", "key": "agents", "value": "Smith" }));
    client.finish();
}

#[test]
fn an_agent_with_a_rule_does_not_push_out_backups() {
    let vault = TestVault::new(&[("Open.md", "Open.\n")]);
    settings(&vault, "[[agents]]\nname = \"*\"\nrate = 9\n");
    assert!(vault.run(&["backup"]).status.success());
    let mut client = Client::start(&vault, &[]);
    for _ in 0..3 {
        client.text("session", json!({ "action": "backup" }));
    }
    client.finish();
    let listed: Value = serde_json::from_str(&stdout(&vault.run(&["--json", "backup", "list"]))).unwrap();
    assert_eq!(listed.as_array().or_else(|| listed["backups"].as_array()).unwrap().len(), 1, "{listed}");
}

#[test]
fn a_rule_for_a_folder_that_is_none_is_reported() {
    let vault = TestVault::new(&[("Open.md", "Open.\n")]);
    settings(&vault, "[[agents]]\nname = \"t\"\nvault = \"~/nowhere\"\nread = [\"!Private\"]\n");
    let said = stdout(&vault.run(&["doctor"]));
    assert!(said.contains("is no folder, so its rule does nothing"), "{said}");
}

#[test]
fn a_rule_with_a_tool_that_there_is_not_is_refused() {
    let vault = TestVault::new(&[("Open.md", "Open.\n")]);
    settings(&vault, "[[agents]]\nname = \"t\"\ntools = [\"read_note\", \"nonesuch\"]\n");
    let refused = vault.run(&["mcp"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("no tool or toolset of that name"), "{said}");
}

#[test]
fn a_proposal_about_fenced_notes_does_not_exist_for_an_agent() {
    let text = "The zanzibar plan begins in March, and the boat waits in the harbour.\n";
    let vault =
        TestVault::new(&[("Memories/Plan.md", text), ("Private/Plan.md", text), ("Private/Other.md", text)]);
    assert!(vault.run(&["memory", "consolidate"]).status.success());
    let made = stdout(&vault.run(&["--json", "proposals"]));
    assert!(made.contains("Private/"), "{made}");
    let mut client = Client::start(&vault, &["--toolset", "notes,more", "--read", "!Private"]);
    let listed = client.call("proposals", json!({ "action": "list" })).to_string();
    assert!(!listed.contains("Private/"), "{listed}");
    client.finish();
}

#[test]
fn a_proposal_tells_nothing_of_a_hidden_note_that_moved() {
    let vault = TestVault::new(&[
        (
            "Memories/Bank.md",
            "---\nagents: none\ntype: fact\nvalid_until: 2026-01-01\ncreated: 2025-01-01\n---\nThe zanzibar number is 5551212.\n",
        ),
        ("Open.md", "Open.\n"),
    ]);
    assert!(vault.run(&["memory", "consolidate"]).status.success());
    assert!(vault.run(&["rename", "Memories/Bank", "Bank account"]).status.success());
    let listed: Value = serde_json::from_str(&stdout(&vault.run(&["--json", "proposals"]))).unwrap();
    let id = listed["proposals"][0]["id"].as_str().unwrap();
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    for action in ["list", "show"] {
        let told = client.call("proposals", json!({ "action": action, "id": id })).to_string();
        assert!(!told.contains("zanzibar") && !told.contains("Bank"), "{told}");
    }
    client.finish();
}

#[test]
fn an_agent_hides_no_note_by_moving_a_file() {
    let vault = TestVault::new(&[("att/clip.txt", "---\nagents: none\n---\nq\n")]);
    let mut client = Client::start(&vault, &[]);
    let refused = client.refusal("move_note", json!({ "from": "att/clip.txt", "to": "Open/Clip.md" }));
    assert!(refused.contains("by its property agents"), "{refused}");
    client.finish();
}

#[test]
fn a_deletion_that_waits_is_outdated_after_an_edit() {
    let vault = TestVault::new(&[("A.md", "A\n"), ("M.md", "---\ntype: fact\n---\nThe mast is tall.\n")]);
    settings(&vault, "[[agents]]\nname = \"*\"\nconfirm = [\"delete\"]\n");
    let mut client = Client::start(&vault, &[]);
    client.text("delete_note", json!({ "note": "A" }));
    let told = client.text("delete_note", json!({ "note": "M", "how": "forget" }));
    assert!(told.contains("not changed: the proposal"), "{told}");
    client.finish();
    vault.write("A.md", "Written anew.\n");
    let accepted = vault.run(&["proposals", "accept", "--all"]);
    assert!(!accepted.status.success());
    assert_eq!(vault.read("A.md"), "Written anew.\n");
}

#[test]
fn what_holds_for_files_holds_for_the_folders_that_move_them() {
    let vault = TestVault::new(&[
        ("Work/A/Law.md", "---\nagents: read\n---\nThe law.\n"),
        ("Work/B/Locked/y.md", "y\n"),
    ]);
    let mut client = Client::start(&vault, &["--write", "Work", "--write", "!Work/B/Locked"]);
    for from in ["Work/A", "Work/B"] {
        let refused = client.refusal("move_note", json!({ "from": from, "to": "Work/C" }));
        assert!(
            refused.contains("agents: read") || refused.contains("does not let this agent write"),
            "{refused}"
        );
    }
    client.finish();
}

#[test]
fn a_rename_of_a_tag_leaves_notes_outside_of_the_fence_alone() {
    let hidden = "---\ntags: [alpha]\nmood: x\n---\n#alpha\n";
    let vault = TestVault::new(&[("Private/Diary.md", hidden), ("Open.md", "---\nmood: y\n---\n#alpha\n")]);
    settings(&vault, "[[agents]]\nname = \"*\"\nread = [\"!Private\"]\nlinks = \"rewrite\"\n");
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    for (kind, old, new) in [("tag", "alpha", "beta"), ("property", "mood", "feel")] {
        client.text("rename_part", json!({ "kind": kind, "old": old, "new": new }));
    }
    client.finish();
    assert_eq!(vault.read("Private/Diary.md"), hidden);
    assert_eq!(vault.read("Open.md"), "---\nfeel: y\n---\n#beta\n");
}

#[test]
fn the_index_of_the_owner_does_not_exist_for_an_agent() {
    let vault = TestVault::new(&[("Private/Diary.md", "zanzibar\n"), ("Open.md", "x\n")]);
    let index = vault.root().join("index").display().to_string();
    let mut client = Client::of(&mut vault.command(&["--index", &index, "mcp", "--read", "!Private"]));
    let listed = client.request("resources/list", json!({})).to_string();
    assert!(listed.contains("Open.md") && !listed.contains("index") && !listed.contains("Diary"), "{listed}");
    client.finish();
}

#[test]
fn an_undo_says_nothing_of_files_outside_of_the_fence() {
    let vault = TestVault::new(&[("Work/Plan.md", "# Plan\n"), ("Private/Diary.md", "[[Plan]]\n")]);
    assert!(vault.run(&["mv", "Plan", "Work/Scheme.md"]).status.success());
    let history: Value = serde_json::from_str(&stdout(&vault.run(&["--json", "history"]))).unwrap();
    let id = history.pointer("/0/id").or_else(|| history.pointer("/events/0/id")).unwrap().clone();
    let mut client = Client::start(&vault, &["--read", "!Private"]);
    let refused = client.refusal("session", json!({ "action": "undo", "operation": id }));
    assert!(!refused.contains("Diary") && refused.contains("may not see"), "{refused}");
    client.finish();
}

fn settings(vault: &TestVault, text: &str) {
    let file = vault.root().join(".home/.config/sidenote/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

#[test]
fn a_misspelt_pattern_is_named_when_the_server_starts() {
    let vault = TestVault::new(&[("Work/Plan.md", "# Plan\n"), ("Private/Diary.md", "My diary.\n")]);
    assert!(vault.run(&["index"]).status.success());
    let start = |args: &[&str]| {
        let done = vault.command(&[&["mcp"], args].concat()).stdin(Stdio::null()).output().unwrap();
        stderr(&done)
    };
    let said = start(&["--read", "!Privat", "--read", "!private", "--write", "Work"]);
    assert!(said.contains("no file matches \"!Privat\" of --read or --write"), "{said}");
    assert_eq!(said.matches("no file matches").count(), 1, "{said}");
    assert_eq!(start(&["--read", "!Private"]), "");
}
