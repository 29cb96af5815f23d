//! Tests the memory tool against its texts: the toolset `memories`, and the lines of `sidenote memory-tool`.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, json as printed, run, text_of, tree};

const NOW: &str = "2026-11-21T00:00:00Z";

/// Gives commands to `sidenote memory-tool`, and returns what it answers to each.
fn answers(vault: &TestVault, args: &[&str], lines: &[String]) -> Vec<Value> {
    let mut command = vault.command(&["memory-tool"]);
    let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A command, and what the tool answers: `Ok` for content, `Err` for an error.
type Case = (Value, Result<&'static str, &'static str>);

fn cases() -> Vec<Case> {
    let view = |path: &str| json!({ "command": "view", "path": path });
    let create = |path: &str, text: &str| json!({ "command": "create", "path": path, "file_text": text });
    let replace = |path: &str, old: &str, new: &str| json!({ "command": "str_replace", "path": path, "old_str": old, "new_str": new });
    let insert = |path: &str, line: i64, text: &str| json!({ "command": "insert", "path": path, "insert_line": line, "insert_text": text });
    let delete = |path: &str| json!({ "command": "delete", "path": path });
    let rename = |old: &str, new: &str| json!({ "command": "rename", "old_path": old, "new_path": new });
    vec![
        (
            view("/memories"),
            Ok(
                "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n4.0K\t/memories",
            ),
        ),
        (
            view("/memories/a.txt"),
            Err("The path /memories/a.txt does not exist. Please provide a valid path."),
        ),
        (
            create("/memories/a.txt", "one\ntwo\nthree\nfour\nfive\nsix\n"),
            Ok("File created successfully at: /memories/a.txt"),
        ),
        (create("/memories/a.txt", "x"), Err("File /memories/a.txt already exists")),
        (
            create("/memories/deep/er/est.md", "# Deep\n"),
            Ok("File created successfully at: /memories/deep/er/est.md"),
        ),
        (create("/memories/prefs.xml", "<a/>"), Ok("File created successfully at: /memories/prefs.xml")),
        (create("/memories/empty", ""), Ok("File created successfully at: /memories/empty")),
        (
            view("/memories"),
            Ok(
                "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n4.0K\t/memories\n28B\t/memories/a.txt\n4.0K\t/memories/deep/\n4.0K\t/memories/deep/er/\n0B\t/memories/empty\n4B\t/memories/prefs.xml",
            ),
        ),
        (
            view("/memories/deep/er/"),
            Ok(
                "Here're the files and directories up to 2 levels deep in /memories/deep/er/, excluding hidden items:\n4.0K\t/memories/deep/er/\n7B\t/memories/deep/er/est.md",
            ),
        ),
        (
            view("/memories/a.txt"),
            Ok(
                "Here's the content of /memories/a.txt with line numbers:\n     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour\n     5\tfive\n     6\tsix\n     7\t",
            ),
        ),
        (
            json!({ "command": "view", "path": "/memories/a.txt", "view_range": [2, 3] }),
            Ok("Here's the content of /memories/a.txt with line numbers:\n     2\ttwo\n     3\tthree"),
        ),
        (
            json!({ "command": "view", "path": "/memories/a.txt", "view_range": [6, -1] }),
            Ok("Here's the content of /memories/a.txt with line numbers:\n     6\tsix\n     7\t"),
        ),
        (
            replace("/memories/a.txt", "four", "4\n4b"),
            Ok(
                "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     2\ttwo\n     3\tthree\n     4\t4\n     5\t4b\n     6\tfive",
            ),
        ),
        (
            replace("/memories/a.txt", "nine", "9"),
            Err("No replacement was performed, old_str `nine` did not appear verbatim in /memories/a.txt."),
        ),
        (
            replace("/memories/a.txt", "e", "E"),
            Err(
                "No replacement was performed. Multiple occurrences of old_str `e` in lines: 1, 3, 3, 6. Please ensure it is unique",
            ),
        ),
        (replace("/memories/deep", "a", "b"), Err("The path /memories/deep is not a file.")),
        (
            replace("/memories/none.md", "a", "b"),
            Err("The path /memories/none.md does not exist. Please provide a valid path."),
        ),
        (insert("/memories/a.txt", 0, "zero\n"), Ok("The file /memories/a.txt has been edited.")),
        (insert("/memories/a.txt", 8, "last"), Ok("The file /memories/a.txt has been edited.")),
        (
            insert("/memories/a.txt", 10, "x"),
            Err("Invalid `insert_line` parameter: 10. It should be within the range [0, 9]."),
        ),
        (
            insert("/memories/a.txt", -1, "x"),
            Err("Invalid `insert_line` parameter: -1. It should be within the range [0, 9]."),
        ),
        (
            rename("/memories/a.txt", "/memories/deep/er/est.md"),
            Err("The destination /memories/deep/er/est.md already exists"),
        ),
        (rename("/memories/a.txt", "/memories/deep"), Err("The destination /memories/deep already exists")),
        (rename("/memories/none", "/memories/some"), Err("The path /memories/none does not exist")),
        (rename("/memories", "/memories/some"), Err("Cannot rename the /memories directory itself")),
        (
            rename("/memories/a.txt", "/memories/noted"),
            Ok("Successfully renamed /memories/a.txt to /memories/noted"),
        ),
        (
            rename("/memories/deep/er", "/memories/shallow"),
            Ok("Successfully renamed /memories/deep/er to /memories/shallow"),
        ),
        (
            view("/memories/noted"),
            Ok(
                "Here's the content of /memories/noted with line numbers:\n     1\tzero\n     2\tone\n     3\ttwo\n     4\tthree\n     5\t4\n     6\t4b\n     7\tfive\n     8\tsix\n     9\tlast\n    10\t",
            ),
        ),
        (delete("/memories"), Err("Cannot delete the /memories directory itself")),
        (delete("/memories/none"), Err("The path /memories/none does not exist")),
        (delete("/memories/noted"), Ok("Successfully deleted /memories/noted")),
        (delete("/memories/shallow"), Ok("Successfully deleted /memories/shallow")),
        (
            view("/memories/shallow"),
            Err("The path /memories/shallow does not exist. Please provide a valid path."),
        ),
        (view("/tmp/x"), Err("Path must start with /memories, got: /tmp/x")),
        (view("/memoriesx"), Err("Path must start with /memories, got: /memoriesx")),
        (
            create("/memories/../Out.md", "x"),
            Err("Path /memories/../Out.md would escape /memories directory"),
        ),
        (
            view("/memories/a/../../Own.md"),
            Err("Path /memories/a/../../Own.md would escape /memories directory"),
        ),
        (
            create("/memories/..\\Out.md", "x"),
            Err("Path /memories/..\\Out.md would escape /memories directory"),
        ),
        (create("/memories/a/../in.md", "in"), Ok("File created successfully at: /memories/a/../in.md")),
        (
            view("/memories/.hidden"),
            Err("The path /memories/.hidden does not exist. Please provide a valid path."),
        ),
    ]
}

#[test]
fn lines_of_commands_are_answered_in_the_words_of_the_tool() {
    let vault = TestVault::new(&[("Own.md", "Mine.\n")]);
    let cases = cases();
    let lines: Vec<String> = cases.iter().map(|(command, _)| command.to_string()).collect();
    let answered = answers(&vault, &[], &lines);
    assert_eq!(answered.len(), 40);
    for ((command, expected), answer) in cases.iter().zip(&answered) {
        let expected = match expected {
            Ok(text) => json!({ "content": text }),
            Err(text) => json!({ "error": text }),
        };
        assert_eq!(*answer, expected, "{command}");
    }
    // No frontmatter is added, what was deleted is in the trash, and nothing left the folder.
    assert_eq!(text_of(&vault, "Memories/in.md"), "in");
    assert_eq!(text_of(&vault, "Memories/prefs.xml"), "<a/>");
    assert!(text_of(&vault, ".trash/Memories/noted").ends_with("last\n"));
    assert!(vault.root().join(".trash/Memories/shallow/est.md").exists());
    assert!(!tree(vault.root()).keys().any(|path| path.ends_with("Out.md")));
}

#[test]
fn links_follow_a_rename_and_each_command_is_undone() {
    let vault =
        TestVault::new(&[("Own.md", "See [[Heron]].\n"), ("Agents/Heron.md", "It stands.\r\nIt waits.\r\n")]);
    let before = text_of(&vault, "Agents/Heron.md");
    let lines = [
        json!({ "command": "rename", "old_path": "/memories/Heron.md", "new_path": "/memories/birds/Grey heron.md" }),
        json!({ "command": "insert", "path": "/memories/birds/Grey heron.md", "insert_line": 0, "insert_text": "# Heron" }),
    ];
    let answered = answers(&vault, &["--folder", "Agents"], &lines.map(|line| line.to_string()));
    assert!(answered.iter().all(|answer| answer["error"].is_null()), "{answered:?}");
    assert_eq!(text_of(&vault, "Own.md"), "See [[Grey heron]].\n");
    assert!(text_of(&vault, "Agents/birds/Grey heron.md").ends_with(&before));
    run(&vault, NOW, &["undo"]);
    run(&vault, NOW, &["undo"]);
    assert_eq!(text_of(&vault, "Own.md"), "See [[Heron]].\n");
    assert_eq!(text_of(&vault, "Agents/Heron.md"), before);
    // A dry run changes nothing.
    let delete = json!({ "command": "delete", "path": "/memories/Heron.md" }).to_string();
    let answered = answers(
        &vault,
        &["--folder", "Agents", "--dry-run"],
        &[delete, "{ half".to_owned(), "{}".to_owned()],
    );
    assert_eq!(answered[0]["content"], "Successfully deleted /memories/Heron.md");
    assert!(answered[1]["error"].as_str().unwrap().starts_with("this is no JSON"), "{answered:?}");
    assert!(answered[2]["error"].as_str().unwrap().starts_with("this is no command"), "{answered:?}");
    assert_eq!(text_of(&vault, "Agents/Heron.md"), before);
}

#[test]
fn an_agent_has_the_same_as_one_tool() {
    let vault = TestVault::new(&[("Own.md", "Mine.\n")]);
    let mut client = Client::start(&vault, &["--toolset", "memories"]);
    for (command, expected) in cases() {
        match expected {
            Ok(text) => assert_eq!(client.text("memory", command.clone()), text, "{command}"),
            Err(text) => assert_eq!(client.refusal("memory", command.clone()), text, "{command}"),
        }
    }
    client.finish();
    let events = printed(&vault, NOW, &["history", "-n", "1"]);
    assert_eq!(events[0]["toolset"], "memories", "{events}");
}
