//! Settings of MCP clients and coding agents: merges keep comments, other shapes are refused, and what is written works.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use serde_json::{Value, json};
use sidenote::base::platform::{Shell, canonicalize};

use crate::support::{TestVault, clean_env, json_path, program, repository, run, stderr, stdout};

/// Merges settings into a file with this text, and returns the exit code, the new text and what was said. The paths of
/// this machine are shortened.
fn merged(command: &[&str], before: &str) -> (Option<i32>, String, String) {
    let vault = TestVault::new(&[("a.md", "A.\n")]);
    let file = vault.root().join(".home/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, before).unwrap();
    let command = [command, &["--write", "--file", file.to_str().unwrap()]].concat();
    let done = vault.run(&command);
    let root = canonicalize(vault.root()).unwrap();
    let after = fs::read_to_string(&file).unwrap();
    let again = vault.run(&command);
    if done.status.success() {
        assert!(stdout(&again).contains("is up to date already"), "{}", stdout(&again));
        assert_eq!(fs::read_to_string(&file).unwrap(), after, "a second merge changes nothing");
    }
    let after = after.replace(&json_path(&program()), "sidenote").replace(&json_path(&root), "~/notes");
    let said =
        stderr(&done).replace(vault.root().to_str().unwrap(), "~").replace(root.to_str().unwrap(), "~");
    (done.status.code(), after, said)
}

#[test]
fn a_merge_keeps_comments_and_formatting() {
    let zed = "// Zed settings\n{\n    \"theme\": \"One Dark\", // dark\n    /* servers */\n    \"context_servers\": {\n        \"other\": { \"command\": \"x\", \"args\": [] }, // mine\n    },\n    \"vim_mode\":true,\n}\n";
    let (code, text, said) = merged(&["mcp", "config", "zed"], zed);
    assert_eq!(code, Some(0), "{said}");
    assert_snapshot!(text, @r#"
    // Zed settings
    {
        "theme": "One Dark", // dark
        /* servers */
        "context_servers": {
            "other": { "command": "x", "args": [] }, // mine
            "sidenote": {
                "command": "sidenote",
                "args": ["--vault", "~/notes", "mcp"]
            },
        },
        "vim_mode":true,
    }
    "#);
    let vscode = "{\r\n\t// Servers of this workspace.\r\n\t\"servers\": {\r\n\t\t\"sidenote\": {\r\n\t\t\t\"command\": \"old\", // moved\r\n\t\t\t\"env\": { \"A\": \"1\" }\r\n\t\t}\r\n\t}\r\n}\r\n";
    let (code, text, said) = merged(&["mcp", "config", "vscode"], vscode);
    assert_eq!(code, Some(0), "{said}");
    // Line ends and tabs of the file are kept, and used for what is new.
    let expected = vscode.replace("\"old\"", "\"sidenote\"").replace(
        "\"1\" }",
        "\"1\" },\r\n\t\t\t\"type\": \"stdio\",\r\n\t\t\t\"args\": [\"--vault\", \"~/notes\", \"mcp\"]",
    );
    assert_eq!(text, expected);
}

#[test]
fn settings_of_another_shape_are_refused_and_not_touched() {
    let mcp: &[&str] = &["mcp", "config", "gemini"];
    let hook: &[&str] = &["hook", "config", "claude-code"];
    let flat: &[&str] = &["hook", "config", "cursor"];
    let cases: &[(&[&str], &str, &str)] = &[
        (mcp, "[1]", "has no JSON object at its top"),
        (mcp, "{ \"mcpServers\": [] }", "has no object in mcpServers"),
        (mcp, "{ \"mcpServers\": { \"sidenote\": 7 } }", "has no object in sidenote"),
        (mcp, "{ \"mcpServers\": {}, \"mcpServers\": {} }", "has the key mcpServers twice"),
        (mcp, "{ mcpServers: {} }", "is not valid JSON"),
        (mcp, "{ \"a\": 1 \"b\": 2 }", "is not valid JSON"),
        (mcp, "{ \"a\": 'x' }", "is not valid JSON"),
        (mcp, "{ \"a\": 1", "is not valid JSON"),
        (hook, "{ \"hooks\": true }", "has no object in hooks"),
        (hook, "{ \"hooks\": { \"Stop\": {} } }", "has no array in Stop"),
        (hook, "{ \"hooks\": { \"Stop\": [7] } }", "hooks of another shape under hooks.Stop"),
        (
            hook,
            "{ \"hooks\": { \"Stop\": [{ \"command\": \"x\" }] } }",
            "hooks of another shape under hooks.Stop",
        ),
        (
            hook,
            "{ \"hooks\": { \"Stop\": [{ \"hooks\": [{ \"command\": 1 }] }] } }",
            "another shape under hooks.Stop",
        ),
        (flat, "{ \"hooks\": { \"stop\": 7, \"sessionStart\": {} } }", "has no array in sessionStart"),
        (flat, "{ \"hooks\": { \"sessionStart\": [\"x\"] } }", "another shape under hooks.sessionStart"),
        (
            flat,
            "{ \"hooks\": { \"sessionEnd\": [{ \"command\": [] }] } }",
            "another shape under hooks.sessionEnd",
        ),
        (flat, "{ \"version\": 1, \"version\": 1 }", "has the key version twice"),
    ];
    assert_eq!(cases.len(), 17);
    for (command, before, expected) in cases {
        let (code, after, said) = merged(command, before);
        assert_eq!((code, after.as_str()), (Some(2), *before), "{before}: {said}");
        assert!(said.contains(expected) && said.contains("without --write"), "{before}: {said}");
    }
}

#[test]
fn new_clients_have_a_snippet_and_a_settings_file() {
    let vault = TestVault::new(&[("a.md", "A.\n")]);
    let cases = [
        ("gemini", "mcpServers", ".gemini/settings.json"),
        ("windsurf", "mcpServers", ".codeium/windsurf/mcp_config.json"),
        ("zed", "context_servers", ".config/zed/settings.json"),
    ];
    for (client, section, file) in cases {
        let printed = stdout(&vault.run(&["mcp", "config", client]));
        let snippet: Value = serde_json::from_str(&printed).unwrap();
        let server = &snippet[section]["sidenote"];
        assert_eq!(server["command"], program().to_str().unwrap(), "{client}");
        assert_eq!(server["args"][2], "mcp", "{client}");
        if cfg!(target_os = "linux") {
            let done = vault.run(&["mcp", "config", client, "--write"]);
            assert!(done.status.success(), "{}", stderr(&done));
            let written = fs::read_to_string(vault.root().join(".home").join(file)).unwrap();
            assert_eq!(written, printed, "{client}");
        }
    }
}

#[test]
fn hook_config_merges_hooks_and_replaces_older_ones() {
    let before = "{\n  // mine\n  \"model\": \"x\",\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] },\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"/old/sidenote --vault /old hook capture\", \"timeout\": 9 }] }\n    ]\n  }\n}\n";
    let (code, text, said) = merged(&["hook", "config", "claude-code"], before);
    assert_eq!(code, Some(0), "{said}");
    assert_snapshot!(text, @r#"
    {
      // mine
      "model": "x",
      "hooks": {
        "Stop": [
          { "hooks": [{ "type": "command", "command": "say done" }] },
          { "hooks": [{ "type": "command", "command": "sidenote --vault ~/notes hook capture", "timeout": 9 }] }
        ],
        "SessionStart": [
          {
            "hooks": [
              {
                "type": "command",
                "command": "sidenote --vault ~/notes hook session-start"
              }
            ]
          }
        ],
        "UserPromptSubmit": [
          {
            "hooks": [
              {
                "type": "command",
                "command": "sidenote --vault ~/notes hook recall"
              }
            ]
          }
        ],
        "SessionEnd": [
          {
            "hooks": [
              {
                "type": "command",
                "command": "sidenote --vault ~/notes hook session-end"
              }
            ]
          }
        ]
      }
    }
    "#);
}

#[test]
fn hook_config_merges_into_flat_lists_too() {
    let before = "{\n  // mine\n  \"hooks\": {\n    \"stop\": [{ \"command\": \"./audit.sh\", \"loop_limit\": 10 }],\n    \"sessionEnd\": [{ \"command\": \"./audit.sh\" }],\n    \"afterAgentResponse\": [\n      { \"command\": \"/old/sidenote --vault /old hook capture\", \"timeout\": 9 }, // slow\n    ],\n  }\n}\n";
    let (code, text, said) = merged(&["hook", "config", "cursor"], before);
    assert_eq!(code, Some(0), "{said}");
    if Shell::SYSTEM == Shell::Posix {
        assert_snapshot!(text, @r#"
        {
          // mine
          "hooks": {
            "stop": [{ "command": "./audit.sh", "loop_limit": 10 }],
            "sessionEnd": [{ "command": "./audit.sh" },
              {
                "command": "sidenote --vault ~/notes hook session-end"
              }],
            "afterAgentResponse": [
              { "command": "sidenote --vault ~/notes hook capture", "timeout": 9 }, // slow
            ],
            "sessionStart": [
              {
                "command": "sidenote --vault ~/notes hook session-start"
              }
            ],
            "beforeSubmitPrompt": [
              {
                "command": "sidenote --vault ~/notes hook recall"
              }
            ],
          },
          "version": 1
        }
        "#);
    }
    let windsurf = "{\"hooks\":{\"post_cascade_response\":[{\"command\":\"x\",\"show_output\":true}]}}";
    let (code, text, said) = merged(&["hook", "config", "windsurf"], windsurf);
    assert_eq!(code, Some(0), "{said}");
    let settings: Value = serde_json::from_str(&text).unwrap();
    let list = settings["hooks"]["post_cascade_response"].as_array().unwrap();
    assert_eq!(list[0], json!({ "command": "x", "show_output": true }));
    assert_eq!((list.len(), settings.get("version")), (2, None));
}

#[test]
fn a_server_of_existing_vaults_creates_none() {
    let vault = TestVault::new(&[("heron.md", "The heron nests in the old alder.\n")]);
    let serve = || vault.command(&["mcp", "--existing"]).stdin(Stdio::null()).output().unwrap();
    let done = serve();
    assert_eq!(done.status.code(), Some(3), "{}", stderr(&done));
    assert!(stderr(&done).contains("has no index yet"), "{}", stderr(&done));
    assert!(!vault.root().join(".sidenote").exists());
    run(&vault, "2026-11-21", &["index", "--no-embed"]);
    assert!(serve().status.success());
    let settings: Value =
        serde_json::from_str(&stdout(&vault.run(&["mcp", "config", "cursor", "--existing"]))).unwrap();
    assert_eq!(settings["mcpServers"]["sidenote"]["args"][3], "--existing");
}

#[test]
fn each_agent_has_its_hooks_in_its_own_file() {
    let all: &[&str] = &["session-start", "recall", "capture", "session-end"];
    let cases: &[(&str, &str, &[&str], &[&str])] = &[
        (
            "claude-code",
            ".claude/settings.json",
            &["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"],
            all,
        ),
        ("codex", ".codex/hooks.json", &["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"], all),
        ("gemini", ".gemini/settings.json", &["SessionStart", "BeforeAgent", "AfterAgent"], &all[..3]),
        (
            "cursor",
            ".cursor/hooks.json",
            &["sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "sessionEnd"],
            all,
        ),
        ("windsurf", ".codeium/windsurf/hooks.json", &["post_cascade_response"], &["capture"]),
    ];
    let vault = TestVault::new(&[]);
    for (agent, file, events, hooks) in cases {
        let printed = stdout(&vault.run(&["hook", "config", agent]));
        let settings: Value = serde_json::from_str(&printed).unwrap();
        let by_event = settings["hooks"].as_object().unwrap();
        assert_eq!(by_event.keys().collect::<Vec<_>>(), *events, "{agent}");
        let is_flat = ["cursor", "windsurf"].contains(agent);
        assert_eq!(settings.get("version"), (*agent == "cursor").then_some(&json!(1)), "{agent}");
        for (entries, hook) in by_event.values().zip(*hooks) {
            let handler = if is_flat { &entries[0] } else { &entries[0]["hooks"][0] };
            assert_eq!(handler.get("type"), (!is_flat).then_some(&json!("command")), "{agent}");
            let json = if *agent == "gemini" { " --json" } else { "" };
            let command = handler["command"].as_str().unwrap();
            assert!(command.ends_with(&format!(" hook {hook}{json}")), "{command}");
        }
        if cfg!(target_os = "linux") {
            let path = vault.root().join(".home").join(file);
            let dry = vault.run(&["hook", "config", agent, "--write", "--dry-run"]);
            assert!(dry.status.success() && !path.exists(), "{}", stderr(&dry));
            assert!(vault.run(&["hook", "config", agent, "--write"]).status.success());
            assert_eq!(fs::read_to_string(path).unwrap(), printed, "{agent}");
        }
    }
}

#[test]
fn the_command_of_a_hook_is_quoted_for_the_shell() {
    let vault = TestVault::new(&[("it's here/a.md", "A.\n")]);
    let mut command = Command::new(program());
    let command = clean_env(&mut command, vault.root()).arg("--vault").arg(vault.root().join("it's here"));
    let done = command.args(["hook", "config", "codex"]).output().unwrap();
    let settings: Value = serde_json::from_str(&stdout(&done)).unwrap();
    let command = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    let quoted = match Shell::SYSTEM {
        Shell::Posix => r"it'\''s here' hook capture",
        _ => r#"it's here" hook capture"#,
    };
    assert!(command.contains(quoted), "{command}");
}

#[test]
fn a_command_line_runs_the_program_in_each_shell() {
    let plain = ["/bin/sidenote", "--vault", "/notes"];
    let odd = [r"C:\my bin\sidenote.exe", "--vault", "it's, here"];
    let cases = [
        (Shell::Posix, plain, "/bin/sidenote --vault /notes"),
        (Shell::Cmd, plain, "/bin/sidenote --vault /notes"),
        (Shell::PowerShell, plain, "/bin/sidenote --vault /notes"),
        (Shell::Posix, odd, r"'C:\my bin\sidenote.exe' --vault 'it'\''s, here'"),
        (Shell::Cmd, odd, r#""C:\my bin\sidenote.exe" --vault "it's, here""#),
        (Shell::PowerShell, odd, r"& 'C:\my bin\sidenote.exe' --vault 'it''s, here'"),
    ];
    for (shell, words, expected) in cases {
        assert_eq!(shell.line(&words.map(str::to_owned)), expected, "{shell:?}");
    }
}

/// Runs a hook as an agent does, and returns what it prints.
fn play(vault: &TestVault, arguments: &[&str], input: &Value) -> String {
    let mut command = vault.command(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    stdout(&done)
}

#[test]
fn the_plugin_for_codex_shares_the_skill_and_names_the_vault_by_its_variable() {
    let packaging = repository().join("packaging");
    let read = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(packaging.join("codex-plugin").join(name)).unwrap()).unwrap()
    };
    let manifest = read(".codex-plugin/plugin.json");
    assert_eq!(manifest["name"], "sidenote");
    assert_eq!(manifest["skills"], "./skills/");
    assert!(packaging.join("claude-plugin/skills/sidenote/SKILL.md").is_file());
    assert!(!packaging.join("codex-plugin/skills").exists(), "the skill is copied when the plugin is made");
    let server = &read(".mcp.json")["mcpServers"]["sidenote"];
    assert_eq!((&server["command"], &server["args"]), (&json!("sidenote"), &json!(["mcp", "--existing"])));
    assert_eq!(server["env_vars"], json!(["SIDENOTE_VAULT", "SIDENOTE_INDEX"]));
    let vault = TestVault::new(&[]);
    let printed = stdout(&vault.run(&["hook", "config", "codex"]));
    let expected: Value = serde_json::from_str(&printed).unwrap();
    let hooks = read("hooks/hooks.json");
    // Versions of Codex refuse a file of hooks with another key.
    assert_eq!(hooks.as_object().unwrap().len(), 1);
    for (event, groups) in expected["hooks"].as_object().unwrap() {
        let command = groups[0]["hooks"][0]["command"].as_str().unwrap();
        let (_, hook) = command.rsplit_once(" hook ").unwrap();
        assert_eq!(hooks["hooks"][event][0]["hooks"][0]["command"], format!("sidenote hook {hook}"));
    }
    assert_eq!(hooks["hooks"].as_object().unwrap().len(), 4);
}

#[test]
fn the_plugin_for_claude_code_plays_four_hooks() {
    let vault = TestVault::new(&[("heron.md", "# Heron\n\nThe heron nests in the old alder.\n")]);
    run(&vault, "2026-11-21", &["index", "--no-embed"]);
    run(&vault, "2026-11-21", &["memory", "set-context", "Counting herons"]);
    let plugin = repository().join("packaging/claude-plugin");
    let read = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(plugin.join(name)).unwrap()).unwrap()
    };
    assert_eq!(read(".claude-plugin/plugin.json")["userConfig"]["vault"]["type"], "directory");
    let server = &read(".mcp.json")["mcpServers"]["sidenote"];
    assert_eq!(server, &json!({ "command": "sidenote", "args": ["--vault", "${user_config.vault}", "mcp"] }));
    let hooks = read("hooks/hooks.json")["hooks"].clone();
    assert_eq!(hooks.as_object().unwrap().len(), 4);
    let transcript = vault.root().join(".transcript.jsonl");
    let lines = [
        json!({ "type": "user", "message": { "role": "user", "content": "When do we count?" } }),
        json!({ "type": "assistant", "message": { "role": "assistant", "content": [{ "type": "text", "text": "We decided to count herons in April, when the alder has no leaves." }] } }),
    ];
    fs::write(&transcript, lines.map(|line| line.to_string()).join("\n")).unwrap();
    let event = |name: &str, more: Value| {
        let handler = &hooks[name][0]["hooks"][0];
        assert_eq!(handler["command"], "sidenote");
        let arguments: Vec<String> = handler["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| {
                part.as_str().unwrap().replace("${user_config.vault}", vault.root().to_str().unwrap())
            })
            .collect();
        let mut input =
            json!({ "session_id": "s1", "transcript_path": transcript, "cwd": "/", "hook_event_name": name });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        // The command of a test names the vault itself.
        let arguments: Vec<&str> = arguments.iter().skip(2).map(String::as_str).collect();
        play(&vault, &arguments, &input)
    };
    assert!(event("SessionStart", json!({ "source": "startup" })).contains("Counting herons"));
    let recalled = event("UserPromptSubmit", json!({ "prompt": "Where does the heron nest?" }));
    assert!(recalled.contains("old alder"), "{recalled}");
    assert_eq!(event("Stop", json!({ "stop_hook_active": false })), "");
    let saved = fs::read_dir(vault.root().join("Memories")).unwrap().count();
    assert_eq!(saved, 1);
    assert_eq!(event("SessionEnd", json!({ "reason": "exit" })), "");
    let recalled = event("UserPromptSubmit", json!({ "prompt": "When do we count herons?" }));
    assert!(recalled.contains("in April"), "{recalled}");
}

/// A vault that has an index.
fn heron_vault() -> TestVault {
    let vault = TestVault::new(&[("heron.md", "# Heron\n\nThe heron nests in the old alder.\n")]);
    run(&vault, "2026-11-21", &["index", "--no-embed"]);
    vault
}

/// Returns how many memories were captured, and the text of all.
fn captured(vault: &TestVault) -> (usize, String) {
    let Ok(files) = fs::read_dir(vault.root().join("Memories")) else { return (0, String::new()) };
    let texts: Vec<String> = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    (texts.len(), texts.concat())
}

/// An answer that is worth a note.
const SAID: &str = "We decided to count herons in April, when the alder has no leaves.";

#[test]
fn cursor_gets_the_json_that_it_reads() {
    let vault = heron_vault();
    let event = |hook: &[&str], name: &str, more: Value| {
        let mut input = json!({
            "conversation_id": "c1", "generation_id": "g1", "model": "m", "hook_event_name": name,
            "cursor_version": "3.20.17", "workspace_roots": ["/work"], "user_email": null, "transcript_path": null
        });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        play(&vault, &[&["hook"], hook].concat(), &input)
    };
    let context = |printed: &str| -> String {
        let output: Value = serde_json::from_str(printed).unwrap();
        assert_eq!(output["continue"], true);
        assert_eq!(output.as_object().unwrap().len(), 2, "{output}");
        output["additional_context"].as_str().unwrap().to_owned()
    };
    let start = json!({ "session_id": "c1", "is_background_agent": false, "composer_mode": "agent" });
    assert_eq!(event(&["session-start"], "sessionStart", start.clone()), "");
    let prompt = json!({ "prompt": "Where does the heron nest?", "attachments": [] });
    assert!(context(&event(&["recall"], "beforeSubmitPrompt", prompt.clone())).contains("old alder"));
    // What was given in this conversation is not given again, unless the prompt asks for it.
    assert_eq!(event(&["recall"], "beforeSubmitPrompt", prompt), "");
    let again = json!({ "prompt": "Where does the heron nest, again?", "attachments": [] });
    assert!(context(&event(&["recall", "--json"], "beforeSubmitPrompt", again)).contains("old alder"));
    assert_eq!(event(&["recall"], "beforeSubmitPrompt", json!({ "prompt": "xylophone" })), "");
    run(&vault, "2026-11-21", &["memory", "set-context", "Counting herons"]);
    assert!(context(&event(&["session-start"], "sessionStart", start)).contains("Counting herons"));
    // A thought has a text as well, and is no answer.
    assert_eq!(event(&["capture"], "afterAgentThought", json!({ "text": SAID })), "");
    assert_eq!(captured(&vault).0, 0);
    assert_eq!(event(&["capture"], "afterAgentResponse", json!({ "text": SAID })), "");
    let (count, text) = captured(&vault);
    assert!(count == 1 && text.contains(SAID) && text.contains("session: c1"), "{text}");
    let transcript = vault.root().join(".transcript.jsonl");
    let line = |role: &str, text: &str| {
        json!({ "role": role, "message": { "content": [{ "type": "text", "text": text }] } }).to_string()
    };
    let earlier = "We decided to keep one table for each reed bed, because one for all was too slow.";
    let lines = [
        line("user", "One table?"),
        line("assistant", earlier),
        line("user", "thanks"),
        line("assistant", SAID),
    ];
    fs::write(&transcript, lines.join("\n")).unwrap();
    let end = json!({ "session_id": "c1", "reason": "completed", "transcript_path": transcript });
    assert_eq!(event(&["session-end"], "sessionEnd", end), "");
    let (count, text) = captured(&vault);
    assert!(count == 2 && text.contains(earlier), "{text}");
}

#[test]
fn windsurf_is_captured_and_told_nothing() {
    let vault = heron_vault();
    let event = |hook: &str, name: &str, tool_info: Value| {
        let input = json!({
            "agent_action_name": name, "trajectory_id": "t1", "execution_id": "e1",
            "timestamp": "2026-11-21T10:00:00Z", "tool_info": tool_info
        });
        play(&vault, &["hook", hook], &input)
    };
    run(&vault, "2026-11-21", &["memory", "set-context", "Counting herons"]);
    let uses = || -> Value {
        let explained = stdout(&vault.run(&["memory", "explain", "heron.md", "--json"]));
        serde_json::from_str::<Value>(&explained).unwrap()["uses"].clone()
    };
    assert_eq!(uses(), 0);
    let prompt = json!({ "user_prompt": "Where does the heron nest?" });
    assert_eq!(event("recall", "pre_user_prompt", prompt.clone()), "");
    assert_eq!(event("session-start", "pre_user_prompt", prompt), "");
    assert_eq!(uses(), 0, "a recall that is told nobody is no use");
    let response =
        format!("### Planner Response\n\nI look.\n\n*Read file `/a.py`*\n\n### Planner Response\n\n{SAID}");
    assert_eq!(event("capture", "post_cascade_response", json!({ "response": response })), "");
    let (count, text) = captured(&vault);
    assert!(count == 1 && text.contains(SAID) && text.contains("session: t1"), "{text}");
}

#[test]
fn codex_is_captured_by_its_transcript_and_by_the_last_answer() {
    let vault = heron_vault();
    let transcript = vault.root().join(".rollout.jsonl");
    let message = |role: &str, kind: &str, text: &str| {
        let content = json!([{ "type": kind, "text": text }]);
        let payload = json!({ "type": "message", "role": role, "content": content });
        json!({ "timestamp": "2026-11-21T10:00:00Z", "type": "response_item", "payload": payload })
            .to_string()
    };
    let earlier = "We decided to keep one table for each reed bed, because one for all was too slow.";
    let lines = [
        json!({ "type": "session_meta", "payload": { "id": "s1" } }).to_string(),
        message(
            "developer",
            "input_text",
            "We decided that this is an instruction, and always has to be obeyed.",
        ),
        message("user", "input_text", "One table?"),
        message("assistant", "output_text", earlier),
        json!({ "type": "event_msg", "payload": { "type": "agent_message", "message": earlier } })
            .to_string(),
        message("user", "input_text", "When do we count?"),
    ];
    fs::write(&transcript, lines.join("\n")).unwrap();
    let input = |event: &str| json!({ "session_id": "s1", "transcript_path": transcript, "cwd": "/", "hook_event_name": event });
    // The last answer is in the transcript only after the hook.
    let mut stop = input("Stop");
    stop["last_assistant_message"] = json!(SAID);
    assert_eq!(play(&vault, &["hook", "capture"], &stop), "");
    let (count, text) = captured(&vault);
    assert!(count == 1 && text.contains(SAID), "{text}");
    assert_eq!(play(&vault, &["hook", "session-end"], &input("SessionEnd")), "");
    let (count, text) = captured(&vault);
    assert!(count == 2 && text.contains(earlier) && !text.contains("obeyed"), "{text}");
}

#[test]
fn agents_that_read_json_get_json_and_say_the_answer_in_the_input() {
    let cases = [("BeforeAgent", "prompt_response"), ("UserPromptSubmit", "last_assistant_message")];
    for (event, answer) in cases {
        let vault = TestVault::new(&[("heron.md", "# Heron\n\nThe heron nests in the old alder.\n")]);
        run(&vault, "2026-11-21", &["index", "--no-embed"]);
        let prompt = json!({ "hook_event_name": event, "prompt": "Where does the heron nest?" });
        let printed: Value =
            serde_json::from_str(&play(&vault, &["hook", "recall", "--json"], &prompt)).unwrap();
        let output = &printed["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], event);
        assert!(output["additionalContext"].as_str().unwrap().contains("old alder"), "{printed}");
        assert_eq!(play(&vault, &["hook", "recall", "--json"], &json!({ "prompt": "xylophone" })), "");
        // A transcript of another form says nothing.
        let transcript = vault.root().join(".rollout.jsonl");
        let line = json!({ "type": "response_item", "payload": { "role": "assistant", "content": [] } });
        fs::write(&transcript, line.to_string()).unwrap();
        let said = "We decided to count herons in April, when the alder has no leaves.";
        let stop = json!({ "session_id": "s1", "transcript_path": transcript, answer: said });
        assert_eq!(play(&vault, &["hook", "capture"], &stop), "");
        assert_eq!(fs::read_dir(vault.root().join("Memories")).unwrap().count(), 1, "{event}");
    }
}
