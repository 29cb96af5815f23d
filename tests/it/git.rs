//! A vault in a git repository (docs/spec/git.md).

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, clone_journal, json, run, stderr, stdout};

/// Runs git in a folder, with an identity and without the user's settings; gives what it prints.
#[track_caller]
pub(crate) fn git(folder: &Path, args: &[&str]) -> String {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
    let done = Command::new("git")
        .env("HOME", folder.join(".home"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(folder)
        .args([&who[..], args].concat())
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}{}", stdout(&done), stderr(&done));
    stdout(&done)
}

/// Makes a repository of a vault, with everything in it committed.
#[track_caller]
pub(crate) fn init(vault: &TestVault) {
    git(vault.root(), &["init", "-q", "-b", "main"]);
    git(vault.root(), &["add", "--all"]);
    git(vault.root(), &["commit", "-qm", "first"]);
}

/// Makes a vault in git with everything committed. It has the dialect of GitHub unless it has settings of Obsidian.
pub(crate) fn git_vault(files: &[(&str, &str)]) -> TestVault {
    let vault = TestVault::new(files);
    vault.write(".gitignore", ".home/\n.sidenote/\n");
    init(&vault);
    vault
}

/// Commits everything.
#[track_caller]
pub(crate) fn commit(vault: &TestVault, message: &str) {
    git(vault.root(), &["add", "--all"]);
    git(vault.root(), &["commit", "-qm", message]);
}

fn status(vault: &TestVault) -> String {
    git(vault.root(), &["status", "--porcelain"])
}

/// Makes a vault as the version before clones had folders left it: all events in one file for each month.
fn vault_of_earlier_version() -> TestVault {
    let vault = TestVault::new(&[
        ("heron.md", "---\nid: heron-1\ncreated_at: 2026-01-01\n---\nThe heron nests in [[otter]] land.\n"),
        ("otter.md", "---\ncreated_at: 2026-01-01\n---\nThe otter swims.\n"),
    ]);
    vault.write(".sidenote/.gitignore", "index/\nbackups/\n");
    vault.write(".sidenote/.gitattributes", "records/*.jsonl merge=union\n");
    vault.write(".sidenote/records/.gitignore", "lock\npending/\nundo/\n");
    let lines = [
        r#"{"id":"019b80c2b2007000800000000000000a","at":"2026-01-02T10:00:00Z","op":"vote","notes":[{"id":"heron-1","path":"heron.md"}],"useful":true}"#,
        r#"{"id":"019b85e90e807000800000000000000b","at":"2026-01-03T10:00:00Z","op":"use","notes":[{"id":"heron-1","path":"heron.md"}],"by":"read"}"#,
        r#"{"id":"019b8b0f6b007000800000000000000c","at":"2026-01-04T10:00:00Z","op":"use","notes":[{"path":"otter.md"}],"by":"read"}"#,
    ];
    vault.write(".sidenote/records/2026-01.jsonl", lines.map(|line| format!("{line}\n")).concat());
    vault.write(".gitignore", ".home/\n");
    vault
}

fn uses(vault: &TestVault, now: &str, note: &str) -> Value {
    json(vault, now, &["memory", "explain", note])["uses"].clone()
}

#[test]
fn reading_changes_no_tracked_file() {
    let vault = vault_of_earlier_version();
    init(&vault);
    let reads: &[&[&str]] = &[
        &["index", "--no-embed"],
        &["search", "heron"],
        &["read", "heron"],
        &["memory", "recall", "when does the heron nest?"],
        &["memory", "set-context", "Counting birds"],
        &["memory", "maintain", "--force"],
        &["backlinks", "otter"],
        &["check"],
        &["history"],
        &["status"],
    ];
    for day in ["2026-05-01", "2026-05-02"] {
        for args in reads {
            run(&vault, day, args);
            assert_eq!(status(&vault), "", "{args:?}");
        }
    }
    let mut client = Client::start(&vault, &[]);
    for _ in 0..20 {
        client.call("search_notes", json!({ "query": "otter" }));
        client.call("read_note", json!({ "note": "heron" }));
    }
    client.finish();
    assert_eq!(status(&vault), "", "after a session of MCP");
    // A note that another program moved keeps its uses, and git sees that move alone.
    git(vault.root(), &["mv", "otter.md", "lutra.md"]);
    git(vault.root(), &["commit", "-qm", "move"]);
    let before = uses(&vault, "2026-05-03", "lutra");
    assert!(before.as_u64() >= Some(1), "{before}");
    assert_eq!(status(&vault), "");
    // A change is recorded in the folder of this clone.
    run(&vault, "2026-05-04", &["append", "heron", "More."]);
    let changed = status(&vault);
    let name = clone_journal(vault.root(), "2026-05").parent().unwrap().file_name().unwrap().to_owned();
    let name = name.to_str().unwrap();
    assert_eq!(changed, format!(" M heron.md\n?? .sidenote/records/{name}/\n"));
    git(vault.root(), &["add", "--all"]);
    git(vault.root(), &["commit", "-qm", "append"]);
    git(vault.root(), &["pull", "--rebase", "-q", ".", "main"]);
}

#[test]
fn a_vault_of_the_earlier_version_keeps_its_uses_and_merges_with_clones_that_have_it() {
    let vault = vault_of_earlier_version();
    init(&vault);
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("clone");
    git(vault.root(), &["clone", "-q", ".", other.to_str().unwrap()]);
    // This clone has the new version.
    assert_eq!(uses(&vault, "2026-05-01", "heron"), 2);
    run(&vault, "2026-05-02", &["memory", "vote", "heron", "up"]);
    run(&vault, "2026-05-03", &["memory", "recall", "heron"]);
    git(vault.root(), &["add", "--all"]);
    git(vault.root(), &["commit", "-qm", "ours"]);
    // The other one has the earlier version, which appends to the file of all.
    let journal = other.join(".sidenote/records/2026-01.jsonl");
    let line = r#"{"id":"019b9035c7807000800000000000000d","at":"2026-01-05T10:00:00Z","op":"vote","notes":[{"id":"heron-1","path":"heron.md"}],"useful":true}"#;
    fs::write(&journal, format!("{}{line}\n", fs::read_to_string(&journal).unwrap())).unwrap();
    git(&other, &["commit", "-qam", "theirs"]);
    git(vault.root(), &["pull", "-q", "--rebase", other.to_str().unwrap(), "main"]);
    assert_eq!(
        uses(&vault, "2026-05-04", "heron"),
        5,
        "a vote and a use before, two votes and a recall since"
    );
    assert_eq!(json(&vault, "2026-05-04", &["memory", "explain", "heron"])["usefulness"], 3);
    assert_eq!(status(&vault), "");
}

#[test]
fn each_clone_and_worktree_has_a_journal_of_its_own() {
    let vault = TestVault::new(&[("heron.md", "The heron nests.\n"), (".gitignore", ".home/\n")]);
    run(&vault, "2026-05-01", &["memory", "vote", "heron", "up"]);
    init(&vault);
    let side = TestVault::new(&[]);
    git(vault.root(), &["worktree", "add", "-q", "-b", "side", side.root().to_str().unwrap()]);
    for (vault, day) in [(&vault, "2026-05-02"), (&side, "2026-05-03")] {
        run(vault, day, &["memory", "vote", "heron", "up"]);
        git(vault.root(), &["add", "--all"]);
        git(vault.root(), &["commit", "-qm", day]);
    }
    assert_ne!(
        clone_journal(vault.root(), "2026-05").parent().unwrap().file_name(),
        clone_journal(side.root(), "2026-05").parent().unwrap().file_name()
    );
    git(vault.root(), &["merge", "-q", "side", "-m", "both"]);
    assert_eq!(json(&vault, "2026-05-04", &["memory", "explain", "heron"])["usefulness"], 3);
    // A copy of the whole folder is another clone.
    let copy = TestVault::new(&[]);
    for entry in ["clone", ".gitignore"] {
        let text = fs::read(vault.root().join(".sidenote/local").join(entry)).unwrap();
        copy.write(&format!(".sidenote/local/{entry}"), text);
    }
    copy.write("heron.md", "The heron nests.\n");
    run(&copy, "2026-05-05", &["memory", "vote", "heron", "up"]);
    assert_ne!(
        clone_journal(vault.root(), "2026-05").parent().unwrap().file_name(),
        clone_journal(copy.root(), "2026-05").parent().unwrap().file_name()
    );
}

#[test]
fn uses_are_shared_when_the_settings_ask_for_it() {
    let vault = TestVault::new(&[("heron.md", "---\nid: heron-1\n---\nThe heron nests.\n")]);
    vault.write(".sidenote/config.toml", "[memory]\nuses = \"shared\"\n");
    vault.write(".gitignore", ".home/\n");
    init(&vault);
    for now in ["2026-05-01T10:00", "2026-05-01T11:00", "2026-05-02T10:00", "2026-05-03T10:00"] {
        run(&vault, now, &["memory", "recall", "heron"]);
        assert_eq!(status(&vault), "", "a read writes no tracked file");
    }
    let shared = |now: &str| {
        run(&vault, now, &["memory", "maintain", "--force"]);
        let lines = fs::read_to_string(clone_journal(vault.root(), "2026-05")).unwrap();
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let count =
        |events: &[Value]| events.iter().map(|event| event["uses"].as_array().unwrap().len()).sum::<usize>();
    let first = shared("2026-05-03T12:00");
    assert_eq!((first.len(), count(&first)), (1, 3), "{first:?}");
    assert_eq!(shared("2026-05-03T13:00"), first, "nothing is written twice");
    let second = shared("2026-05-04T12:00");
    assert_eq!((second.len(), count(&second)), (2, 4), "{second:?}");
    assert_eq!(uses(&vault, "2026-05-05", "heron"), 4, "what is in both journals counts once");
    // Another clone has them without the local folder.
    fs::remove_dir_all(vault.root().join(".sidenote/local")).unwrap();
    assert_eq!(uses(&vault, "2026-05-05", "heron"), 4);
}

#[test]
fn uses_are_not_recorded_when_the_settings_say_so() {
    let vault = TestVault::new(&[("heron.md", "The heron nests.\n")]);
    vault.write(".sidenote/config.toml", "[memory]\nuses = \"off\"\n");
    run(&vault, "2026-05-01", &["memory", "recall", "heron"]);
    assert_eq!(uses(&vault, "2026-05-02", "heron"), 0);
}
