//! Tests the server as a process: read-only, several at once, terminated during an operation, and started from a
//! client's settings.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, clean_env, json, program, stderr, stdout, symlink, tree, until};

#[test]
fn a_read_only_server_writes_nothing_at_all() {
    let vault = TestVault::new(&[("a.md", "Water [[b]].\n"), ("b.md", "Level.\n")]);
    let home = tempfile::tempdir().unwrap();
    let before = tree(vault.root());
    let mut client =
        Client::of(vault.command(&["mcp", "--read-only", "--toolset", "notes"]).env("HOME", home.path()));
    let tools = client.request("tools/list", json!({}))["tools"].clone();
    let tools: Vec<&Value> = tools.as_array().unwrap().iter().collect();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["search_notes", "read_note", "explore_links", "list_notes", "recall", "read_session"]);
    assert!(tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true));
    let found = client.call("search_notes", json!({ "query": "water" }));
    assert_eq!(found["structuredContent"]["results"][0]["path"], "a.md");
    client.text("read_note", json!({ "notes": "b" }));
    client.text("recall", json!({ "prompt": "What is the water level?" }));
    for action in ["handoff_get", "context_get", "audit", "stats", "date"] {
        client.text("read_session", json!({ "action": action }));
    }
    let unknown = client
        .ask("tools/call", json!({ "name": "write_note", "arguments": { "title": "c", "content": "c" } }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    // What others write is found all the same.
    vault.write("c.md", "A new gauge.\n");
    client.catch_up();
    let found = client.call("search_notes", json!({ "query": "gauge" }));
    assert_eq!(found["structuredContent"]["results"][0]["path"], "c.md");
    client.finish();
    vault.remove("c.md");
    assert_eq!(tree(vault.root()), before);
}

#[test]
fn a_read_only_server_reads_beside_one_that_writes() {
    let vault = TestVault::new(&[("a.md", "Water.\n")]);
    let mut writer = Client::start(&vault, &[]);
    writer.text("search_notes", json!({ "query": "water" }));
    let mut reader = Client::start(&vault, &["--read-only"]);
    writer.text("write_note", json!({ "title": "Gauge", "content": "A gauge in the river.\n" }));
    reader.catch_up();
    let found = reader.call("search_notes", json!({ "query": "gauge" }));
    assert_eq!(found["structuredContent"]["results"][0]["path"], "Gauge.md", "{found}");
    reader.text("read_note", json!({ "notes": "Gauge" }));
    reader.finish();
    writer.finish();
    let journal = json(&vault, "2026-11-21", &["memory", "audit", "Gauge"]);
    let ops: Vec<&str> =
        journal.as_array().unwrap().iter().map(|event| event["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["new"], "the reader's use is not written down");
}

/// Two servers and the command line write so many notes each at once; all find all of them.
fn write_at_once(each: usize) {
    let vault = TestVault::new(&[("a.md", "Water.\n")]);
    std::thread::scope(|scope| {
        for name in ["one", "two"] {
            let vault = &vault;
            scope.spawn(move || {
                let mut client = Client::start(vault, &[]);
                for at in 0..each {
                    let note = json!({ "title": format!("{name} {at}"), "content": format!("{name} wrote number {at}.\n") });
                    client.text("write_note", note);
                }
                check_own(&mut client, name);
                client.finish();
            });
        }
        scope.spawn(|| {
            for at in 0..each {
                let done = vault.run(&[
                    "new",
                    &format!("three {at}"),
                    "--content",
                    &format!("three wrote number {at}.\n"),
                ]);
                assert!(done.status.success(), "{}", stderr(&done));
            }
        });
    });
    let listed = json(&vault, "2026-11-21", &["list"]);
    let paths: BTreeSet<&str> =
        listed.as_array().unwrap().iter().map(|note| note["path"].as_str().unwrap()).collect();
    assert_eq!(paths.len(), 3 * each + 1);
    let mut one = Client::start(&vault, &[]);
    let mut two = Client::start(&vault, &[]);
    for client in [&mut one, &mut two] {
        for name in ["one", "two", "three"] {
            check_found(client, name, each);
        }
    }
    one.finish();
    two.finish();
}

/// Checks that a server which may be behind finds some of its own notes; all notes are compared at the end.
fn check_own(client: &mut Client, name: &str) {
    let query = json!({ "query": format!("\"{name} wrote number\""), "mode": "bm25", "limit": 1 });
    let found = client.call("search_notes", query);
    assert_eq!(found["structuredContent"]["results"].as_array().map(Vec::len), Some(1), "{found}");
}

/// Reads all pages of a search and counts the notes.
fn check_found(client: &mut Client, name: &str, each: usize) {
    let mut found = BTreeSet::new();
    let mut cursor = Value::Null;
    loop {
        let query = json!({ "query": format!("\"{name} wrote number\""), "mode": "bm25", "limit": 100, "cursor": cursor });
        let page = client.call("search_notes", query)["structuredContent"].clone();
        found.extend(page["results"].as_array().unwrap().iter().map(|hit| hit["path"].to_string()));
        match page.get("next_cursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    assert_eq!(found.len(), each, "{name}");
}

#[test]
fn two_servers_and_the_command_line_write_at_once() {
    write_at_once(25);
}

#[test]
#[ignore = "takes some minutes: just soak"]
fn two_servers_and_the_command_line_write_a_thousand_notes_each_at_once() {
    write_at_once(1_000);
}

#[cfg(unix)]
#[test]
fn a_server_terminated_during_a_rename_finishes_or_undoes_it() {
    let many: Vec<(String, String)> = (0..400)
        .map(|at| (format!("n{at}.md"), format!("See [[Old]] and [[Old|that]], number {at}.\n")))
        .collect();
    let mut files: Vec<(&str, &str)> =
        many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.push(("Old.md", "It moves.\n"));
    // The server is terminated when this many notes have their new links.
    let rounds = [0, 1, 100, 200, 399, 400];
    let (mut finished, mut undone) = (0, 0);
    for rewritten in rounds {
        let vault = TestVault::new(&files);
        let before = vault.contents();
        let mut client = Client::start(&vault, &[]);
        client.text("search_notes", json!({ "query": "number" }));
        client.send(&json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": { "name": "move_note", "arguments": { "from": "Old", "to": "New.md" } } }));
        let is_rewritten = |path: &str| {
            fs::read_to_string(vault.root().join(path)).is_ok_and(|text| text.contains("[[New]]"))
        };
        until("so many notes are rewritten", || {
            many.iter().filter(|(path, _)| is_rewritten(path)).count() >= rewritten
        });
        crate::support::terminate(client.pid());
        client.finish();
        let check = json(&vault, "2026-11-21", &["check"]);
        let broken: Vec<&Value> = check["problems"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|problem| problem["code"] == "broken-link")
            .collect();
        assert!(broken.is_empty(), "{broken:?}");
        if vault.root().join("New.md").exists() {
            finished += 1;
            assert!(!vault.root().join("Old.md").exists());
        } else {
            undone += 1;
            let texts = |state: &std::collections::BTreeMap<_, (Vec<u8>, _)>| -> Vec<Vec<u8>> {
                state.values().map(|(bytes, _)| bytes.clone()).collect()
            };
            assert_eq!(texts(&vault.contents()), texts(&before));
        }
    }
    assert_eq!(finished + undone, rounds.len());
    assert!(finished > 0, "no rename was finished");
}

#[test]
fn a_notestore_is_a_vault_with_its_own_layout() {
    let vault = TestVault::new(&[]);
    let root = vault.root();
    let start = || {
        let mut command = Command::new(program());
        clean_env(&mut command, &root.join(".home")).env("SIDENOTE_EMBED_PROVIDER", "none");
        command.env("SIDENOTE_NOW", "2026-11-21").current_dir(root).stderr(Stdio::null());
        command
    };
    let named = ["mcp", "--notestore_path", "mem", "--index_path", "mem/index"];
    Client::of(start().args(named)).finish();
    assert!(root.join("mem").is_dir() && root.join("mem/index/catalog.db").exists());
    assert!(!root.join("mem/.sidenote/index").exists());
    // That is also the default place, and the index is not a file of the vault.
    let mut client = Client::of(start().args(["mcp", "--notestore_path", "mem"]));
    let names = client.request("tools/list", json!({}))["tools"].clone();
    assert_eq!((names.as_array().unwrap().len(), &names[0]["name"]), (15, &json!("write_mem")));
    assert_eq!(client.request("resources/list", json!({}))["resources"], json!([]));
    client.finish();
    assert!(!root.join("mem/.sidenote/index").exists());
}

#[test]
fn a_relative_index_path_is_resolved_and_followed() {
    let vault = TestVault::new(&[]);
    let there = vault.root().join("real");
    fs::create_dir_all(&there).unwrap();
    symlink(&there, vault.root().join("linked"));
    let cases: [(&[&str], &str, &str); 4] = [
        (&["mcp", "--notestore_path"], "", "memories/index"),
        (&["mcp", "--notestore_path", "real/../notes"], "", "notes/index"),
        (&["--index", "linked/index", "--vault", "vault", "mcp", "--toolset", "mem"], "", "real/index"),
        (&["--vault", "vault", "mcp", "--toolset", "mem"], "./linked/other", "real/other"),
    ];
    fs::create_dir_all(vault.root().join("vault")).unwrap();
    let mut followed = 0;
    for (args, variable, index) in cases {
        let mut command = Command::new(program());
        clean_env(&mut command, &vault.root().join(".home")).env("SIDENOTE_EMBED_PROVIDER", "none");
        if !variable.is_empty() {
            command.env("SIDENOTE_INDEX", variable);
        }
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut client = Client::logged(command.current_dir(vault.root()).args(args), log.reopen().unwrap());
        client.text("write_mem", json!({ "title": "Gauge", "content": "A gauge." }));
        assert!(vault.root().join(index).join("catalog.db").exists(), "{args:?}");
        let logged = || fs::read_to_string(log.path()).unwrap();
        until("a search asks the watch", || {
            client.text("search_mem", json!({ "query": "gauge" }));
            let log = logged();
            // The watch finds its marker files where they are, so no search waits for one in vain.
            assert!(!log.contains("did not report the marker file"), "{args:?}: {log}");
            log.contains("reported the marker file")
        });
        client.finish();
        followed += 1;
    }
    assert_eq!(followed, 4);
}

#[test]
fn mcp_config_prints_settings_for_each_client() {
    let vault = TestVault::new(&[]);
    let program = program();
    let root = sidenote::base::platform::canonicalize(vault.root()).unwrap();
    let args = json!(["--vault", root, "mcp", "--toolset", "notes,mem"]);
    for (client, section) in [
        ("claude-code", "mcpServers"),
        ("claude-desktop", "mcpServers"),
        ("cursor", "mcpServers"),
        ("vscode", "servers"),
    ] {
        let done = vault.run(&["mcp", "config", client, "--toolset", "notes,mem"]);
        let snippet: Value = serde_json::from_str(&stdout(&done)).unwrap();
        assert_eq!(snippet[section]["sidenote"]["command"], program.to_str().unwrap());
        assert_eq!(snippet[section]["sidenote"]["args"], args);
    }
    let codex = stdout(&vault.run(&["mcp", "config", "codex", "--toolset", "notes,mem"]));
    let missing = root.join("missing");
    let done = vault.command(&["mcp", "config", "codex"]).arg("--vault").arg(&missing).output().unwrap();
    assert_eq!(
        stderr(&done),
        format!("warning: {} is not a folder, so the server will not start\n", missing.display())
    );
    assert!(done.status.success());
    assert!(codex.starts_with("[mcp_servers.sidenote]\ncommand = "), "{codex}");
    // Other settings in an existing file stay, and a copy of it is made.
    let file = root.join(".home/settings.json");
    fs::create_dir_all(root.join(".home")).unwrap();
    let before = "{\"theme\": \"dark\", \"mcpServers\": {\"other\": {\"command\": \"x\"}}}";
    fs::write(&file, before).unwrap();
    let write = |more: &[&str]| {
        let file = file.to_str().unwrap();
        vault.run(&[&["mcp", "config", "cursor", "--write", "--file", file], more].concat())
    };
    assert!(stdout(&write(&["--dry-run"])).contains("would be:"));
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert!(write(&[]).status.success());
    let merged: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&merged["theme"], &merged["mcpServers"]["other"]["command"]), (&json!("dark"), &json!("x")));
    assert_eq!(merged["mcpServers"]["sidenote"]["command"], program.to_str().unwrap());
    assert_eq!(fs::read_to_string(root.join(".home/settings.json.bak")).unwrap(), before);
    assert!(stdout(&write(&[])).contains("is up to date already"));
    // A file that is not JSON is not changed.
    fs::write(&file, "{ // mine\n").unwrap();
    let refused = write(&[]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(&file).unwrap(), "{ // mine\n");
    // The file and its copy keep their permissions; an environment stays, and so does the first copy.
    let keyed = "{\"mcpServers\": {\"sidenote\": {\"command\": \"x\", \"env\": {\"A\": \"1\"}}}}";
    fs::write(&file, keyed).unwrap();
    #[cfg(unix)]
    crate::support::set_mode(&file, 0o600);
    assert!(write(&[]).status.success());
    let merged: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(merged["mcpServers"]["sidenote"]["env"], json!({ "A": "1" }));
    for (name, text) in
        [("settings.json.bak", Some(before)), ("settings.json.bak2", Some(keyed)), ("settings.json", None)]
    {
        let path = root.join(".home").join(name);
        assert!(text.is_none_or(|text| fs::read_to_string(&path).unwrap() == text), "{name}");
        #[cfg(unix)]
        assert_eq!(
            crate::support::mode_of(&path),
            if name == "settings.json.bak" { 0o644 } else { 0o600 },
            "{name}"
        );
    }
    // Comments in TOML stay.
    let toml = root.join(".home/config.toml");
    fs::write(&toml, "# mine\nmodel = \"x\" # best\n").unwrap();
    let done = vault.run(&["mcp", "config", "codex", "--write", "--file", toml.to_str().unwrap()]);
    assert!(done.status.success(), "{}", stderr(&done));
    let text = fs::read_to_string(&toml).unwrap();
    assert!(
        text.starts_with("# mine\nmodel = \"x\" # best\n") && text.contains("[mcp_servers.sidenote]"),
        "{text}"
    );
}

#[test]
fn toolsets_are_chosen_by_name() {
    let vault = TestVault::new(&[("a.md", "A.\n")]);
    let refused = vault.run(&["mcp", "--toolset", "notes,nope"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused)
            .contains("use notes, more, connector, mem, longterm, vector, tiered, rulebook, graph, memories"),
        "{}",
        stderr(&refused)
    );
    let mut client = Client::start(&vault, &["--toolset", "notes,mem,longterm,vector,tiered,rulebook,notes"]);
    let list = client.request("tools/list", json!({}));
    let names: Vec<&str> =
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let distinct: BTreeSet<&&str> = names.iter().collect();
    assert_eq!((names.len(), distinct.len()), (13 + 15 + 11 + 13 + 9 + 6, 67));
    client.finish();
}

/// Returns how much memory a process holds for allocations by the C library on its main thread, in kB.
fn c_heap(process: u32) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{process}/smaps")).unwrap();
    let mut heap = maps.lines().skip_while(|line| !line.ends_with("[heap]"));
    let held = heap.find_map(|line| line.strip_prefix("Rss:")).unwrap();
    held.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
#[cfg_attr(
    not(all(target_os = "linux", target_env = "gnu")),
    ignore = "it reads from /proc how much memory glibc holds"
)]
fn a_server_gives_back_the_memory_with_which_it_checked_an_index() {
    let vault = TestVault::new(&[]);
    for note in 0..400 {
        let links: String = (0..400).map(|link| format!("[[nobody wrote {note} {link} so far]]\n")).collect();
        vault.write(&format!("{note}.md"), &links);
    }
    assert!(vault.run(&["index"]).status.success());
    let index = vault.root().join(".sidenote/index");
    let catalog = fs::metadata(index.join("catalog.db")).unwrap().len() / 1024;
    assert!(catalog > 16_000, "{catalog} kB are too few to tell");
    // A writer that is killed leaves no seal.
    fs::remove_file(index.join("seal.json")).unwrap();
    let mut client = Client::start(&vault, &[]);
    client.text("search_notes", json!({ "query": "nobody" }));
    until("the server gives back what the check held", || c_heap(client.pid()) < catalog / 4);
    client.finish();
}
