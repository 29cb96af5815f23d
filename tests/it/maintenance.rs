//! Tests the upkeep of memories: maintenance, eviction, handoffs, backups, export, import and the journal.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use serde_json::{Value, json};
use sidenote::base::clock::{Clock, Timestamp};
use sidenote::index::silent;
use sidenote::memory::eviction::{EvictionCandidate, choose};
use sidenote::memory::handoff::{Handoff, markdown};
use sidenote::store::{MaintainRequest, Open, SaveRequest, Store};

use crate::support::{TestVault, clone_journal, journal_files, json, run, stderr, stdout, symlink, tree};
#[cfg(unix)]
use crate::support::{set_mode, without_root_privileges};

fn journal(vault: &TestVault, month: &str) -> String {
    let of_month = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == month);
    let files = journal_files(vault.root()).into_iter().filter(of_month);
    let text: String = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    // By time; a line that cannot be read stays last.
    let at = |line: &str| Some(serde_json::from_str::<Value>(line).ok()?["at"].as_str()?.to_owned());
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| at(line).unwrap_or_else(|| "~".to_owned()));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn ops(vault: &TestVault, month: &str) -> Vec<String> {
    let op = |line: &str| serde_json::from_str::<Value>(line).unwrap()["op"].as_str().unwrap().to_owned();
    journal(vault, month).lines().map(op).collect()
}

#[test]
fn eviction_takes_the_least_used_and_no_more_than_needed() {
    let note = |name: &str, bytes, last, created, stays| EvictionCandidate {
        bytes,
        last: Timestamp::from_millis(last),
        created: Timestamp::from_millis(created),
        path: name.to_owned(),
        stays,
    };
    let notes = [
        note("a", 30, 50, 1, false),
        note("b", 30, 10, 9, false),
        note("c", 30, 10, 2, false),
        note("d", 10, 0, 0, true),
    ];
    // 100 bytes: down to 85 % of what they may have.
    for (most, forced, goes) in [
        (100, false, &[][..]),
        (99, false, &["c"]),
        (80, false, &["c", "b"]),
        (83, false, &["c"]),
        (40, false, &["c", "b", "a"]),
        (1, false, &["c", "b", "a"]),
        (0, false, &[]),
        (100, true, &["c"]),
        (99, true, &["c"]),
    ] {
        let chosen: Vec<&str> =
            choose(&notes, most, forced).into_iter().map(|at| notes[at].path.as_str()).collect();
        assert_eq!(chosen, goes, "{most} {forced}");
    }
    let many: Vec<EvictionCandidate> = (0..100).map(|at| note(&format!("{at}"), 1, at, at, false)).collect();
    assert_eq!(choose(&many, 1000, true), (0..15).collect::<Vec<_>>());
    assert_eq!(choose(&[], 0, true), [0; 0]);
}

#[test]
fn a_change_of_tier_is_recorded_once() {
    let vault = TestVault::new(&[("old.md", "---\ncreated_at: 2020-01-01\n---\nOld as the hills.\n")]);
    // Its own time has whole seconds, and is before that of the event.
    let made = "2026-01-01T00:00:00.750Z";
    run(&vault, made, &["memory", "save", "The heron nests in April.", "--title", "Heron"]);
    let maintain = |now: &str, more: &[&str]| {
        let reply = json(&vault, now, &[&["memory", "maintain"], more].concat());
        let tiers = reply["tiers"].as_array().unwrap().iter();
        let change = |tier: &Value| {
            let text = |name: &str| tier[name].as_str().unwrap().to_owned();
            format!("{} {} {}", text("path"), text("from"), text("to"))
        };
        (reply["ran"].as_bool().unwrap(), tiers.map(change).collect::<Vec<_>>())
    };
    assert_eq!(maintain("2026-01-02", &[]), (true, vec![]));
    let demoted = vec!["Memories/Heron.md HOT COLD".to_owned()];
    assert_eq!(maintain("2026-01-05", &["--dry-run"]), (true, demoted.clone()));
    assert_eq!(maintain("2026-01-05", &[]), (true, demoted));
    // What was done a short while ago is not done again, and done again changes nothing.
    assert_eq!(maintain("2026-01-05T05:59", &[]), (false, vec![]));
    assert_eq!(maintain("2026-01-05T05:59", &["--force"]), (true, vec![]));
    for day in ["2026-01-06", "2026-01-06T01:00", "2026-01-07"] {
        run(&vault, day, &["memory", "recall", "when does the heron nest?"]);
    }
    assert_eq!(maintain("2026-01-08", &[]).1, ["Memories/Heron.md COLD WARM"]);
    run(&vault, "2026-01-08", &["memory", "pin", "old"]);
    assert_eq!(maintain("2026-01-09", &[]).1, ["old.md COLD WARM"]);
    run(&vault, "2026-01-09", &["memory", "unpin", "old"]);
    assert_eq!(maintain("2026-01-10", &[]).1, ["old.md WARM COLD"]);
    let written: Vec<String> = ops(&vault, "2026-01").into_iter().filter(|op| op.contains("mote")).collect();
    assert_eq!(written, ["demote", "promote", "promote", "demote"]);
    let stats = json(&vault, "2026-01-10", &["memory", "stats"]);
    assert_eq!(stats["maintained"], "2026-01-10T00:00:00Z");
}

#[test]
fn importance_is_written_back_once_and_decays_from_there() {
    let plain = "---\ncreated_at: 2026-01-01\n---\nNobody spoke of weight here.\n";
    let heron = "---\nid: heron-1\nimportance: 8 # for now\ncreated_at: 2026-01-01\n---\nThe heron nests.\n";
    let vault = TestVault::new(&[("plain.md", plain), ("heron.md", heron)]);
    let worth = |now: &str| json(&vault, now, &["memory", "explain", "heron-1"])["importance"].clone();
    assert_eq!(worth("2026-03-02"), json!(4.0));
    run(&vault, "2026-03-02", &["memory", "maintain", "--write-back"]);
    let read = |path: &str| fs::read_to_string(vault.root().join(path)).unwrap();
    assert_eq!(read("heron.md"), heron.replace("importance: 8", "importance: 4"));
    assert_eq!(read("plain.md"), plain, "a note that says nothing of weight stays as it is");
    assert_eq!(worth("2026-03-02"), json!(4.0), "what was written down does not fade again");
    assert_eq!(worth("2026-05-01"), json!(2.0));
    run(&vault, "2026-03-03", &["memory", "maintain", "--write-back"]);
    assert_eq!(read("heron.md"), heron.replace("importance: 8", "importance: 4"));
    // Four uses before, one after: five.
    let vault = TestVault::new(&[("heron.md", "---\nimportance: 9\ncreated_at: 2026-01-01\n---\nHeron.\n")]);
    let vote = |now: &str| drop(run(&vault, now, &["memory", "vote", "heron", "up"]));
    let worth = |now: &str| json(&vault, now, &["memory", "explain", "heron"])["importance"].clone();
    (0..4).for_each(|_| vote("2026-03-02"));
    run(&vault, "2026-03-02T01:00", &["memory", "maintain", "--write-back"]);
    assert_eq!(worth("2026-03-02T01:00"), json!(4.5));
    vote("2026-03-02T02:00");
    assert_eq!(worth("2026-03-02T02:00"), json!(5.0));
    // Taken back, the whole story counts again.
    run(&vault, "2026-03-02T03:00", &["undo"]);
    assert_eq!(worth("2026-03-02T03:00"), json!(5.0));
    // Of two that were written down, the one that is there again counts.
    let vault = TestVault::new(&[("x.md", "---\nimportance: 10\ncreated: 2026-01-01\n---\nx\n")]);
    let worth = |now: &str| json(&vault, now, &["memory", "explain", "x.md"])["importance"].clone();
    run(&vault, "2026-03-02", &["memory", "maintain", "--write-back"]);
    run(&vault, "2026-05-01", &["memory", "maintain", "--write-back"]);
    assert_eq!(worth("2026-05-01"), json!(2.5));
    run(&vault, "2026-05-01", &["undo"]);
    assert_eq!(worth("2026-05-01"), json!(2.5));
    // A note without a date gets that of its file before the file changes; a value that is no number stays.
    let vault = TestVault::new(&[
        ("y.md", "---\nimportance: 9\n---\ny\n"),
        ("Memories/z.md", "---\nimportance: lots\n---\nz\n"),
    ]);
    let old = Timestamp::parse("2025-01-01").unwrap().millis() as u64;
    let file = fs::File::options().write(true).open(vault.root().join("y.md")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_millis(old)).unwrap();
    drop(file);
    run(&vault, "2026-05-01", &["memory", "maintain", "--write-back"]);
    let read = |path: &str| fs::read_to_string(vault.root().join(path)).unwrap();
    assert_eq!(read("y.md"), "---\nimportance: 1\ncreated_at: \"2025-01-01T00:00:00Z\"\n---\ny\n");
    assert!(read("Memories/z.md").contains("importance: lots"));
}

#[test]
fn eviction_spares_protected_memories_and_can_be_undone() {
    let memory = |extra: &str, text: &str| format!("---\ncreated_at: 2026-01-01\n{extra}---\n{text}\n");
    let vault = TestVault::new(&[
        ("Elsewhere/note.md", memory("", "It was never a memory.").as_str()),
        ("Memories/plain.md", &memory("id: plain-1\n", "Plain, and never used.")),
        ("Memories/used.md", &memory("", "Used yesterday by a heron.")),
        ("Memories/pinned.md", &memory("pinned: true\n", "Pinned.")),
        ("Memories/core.md", &memory("tags: [core]\n", "A core thing.")),
        ("Memories/choice.md", &memory("type: decision\n", "We chose.")),
        (".trash/Memories/plain.md", "something else of that name"),
    ]);
    run(&vault, "2026-05-01", &["memory", "vote", "used", "up"]);
    run(
        &vault,
        "2026-05-01",
        &["--session", "s1", "memory", "save", "This session's own.", "--title", "ours"],
    );
    let before = tree(vault.root());
    let cleanup = |args: &[&str]| json(&vault, "2027-05-01", &[args, &["memory", "cleanup"]].concat());
    assert_eq!(cleanup(&[])["evicted_count"], 0, "there is room");
    let dry = json(&vault, "2027-05-01", &["memory", "cleanup", "--force", "--dry-run"]);
    assert_eq!((&dry["evicted"], tree(vault.root()) == before), (&json!(["Memories/plain.md"]), true));
    let cleanup = |session: &str| {
        let mut command = vault.command(&["--json", "--session", session, "memory", "cleanup"]);
        let command = command.env("SIDENOTE_NOW", "2027-05-01").env("SIDENOTE_MEMORY_MAX_BYTES", "10");
        serde_json::from_slice::<Value>(&command.output().unwrap().stdout).unwrap()
    };
    let gone = cleanup("s1");
    assert_eq!(gone["evicted"], json!(["Memories/plain.md", "Memories/used.md"]));
    let bytes = before["Memories/plain.md"].len() + before["Memories/used.md"].len();
    assert_eq!(gone["freed_bytes"], json!(bytes));
    assert_eq!(cleanup("s2")["evicted"], json!(["Memories/ours.md"]), "another session does not spare it");
    assert_eq!(ops(&vault, "2027-05"), ["evict", "evict"]);
    // By its path, although something else has that in the trash; by its name; by its path there.
    for name in ["Memories/plain", "used", ".trash/Memories/ours.md"] {
        run(&vault, "2027-05-02", &["memory", "restore", name]);
    }
    assert_eq!(tree(vault.root()), before, "byte for byte");
    assert_eq!(json(&vault, "2027-05-03", &["memory", "explain", "used"])["uses"], 1, "with its uses");
}

#[test]
fn a_handoff_replaces_the_former_one() {
    let handoff = Handoff {
        project: "Parser".to_owned(),
        summary: "Tables parse.\n".to_owned(),
        completed: vec!["tables\nof all kinds".to_owned()],
        memories: vec!["heron-1".to_owned()],
        ..Handoff::default()
    };
    let text = markdown(&handoff, Timestamp::parse("2026-11-21T12:00").unwrap());
    // The time of day is that of the place.
    insta::assert_snapshot!(text.lines().filter(|line| !line.starts_with("**Date")).collect::<Vec<_>>().join("\n"), @r"
    # Handoff - Parser

    ## Summary
    Tables parse.

    ## Completed
    - tables
      of all kinds

    ## In Progress / Blocked
    - (none)

    ## Key Decisions
    - (none)

    ## Next Steps
    - (none)

    ## Memory IDs
    - heron-1
    ");
    assert!(text.contains(" | **Branch:** unknown\n"), "{text}");
    let vault =
        TestVault::new(&[("heron.md", "---\nid: heron-1\ncreated_at: 2026-01-01\n---\nThe heron nests.\n")]);
    let store = |now: &str, args: &[&str]| {
        run(&vault, now, &[&["handoff", "store", "--project", "Parser/2"], args].concat())
    };
    assert_eq!(vault.run(&["handoff", "show"]).status.code(), Some(3));
    store("2026-05-01", &["--summary", "first <private>pin 1234</private>", "--memory", "heron"]);
    let path = vault.root().join("Handoffs/Parser 2.md");
    let first = fs::read_to_string(&path).unwrap();
    assert!(first.contains("type: handoff\nproject: Parser/2\n") && !first.contains("1234"), "{first}");
    assert_eq!(json(&vault, "2026-05-02", &["memory", "explain", "heron"])["uses"], 1);
    let shown = run(&vault, "2026-05-02", &["handoff", "show"]);
    assert!(
        shown.ends_with("## Referenced Memories\n\n### Memory: heron-1\n\nThe heron nests.\n"),
        "{shown}"
    );
    store("2026-05-03", &["--summary", "second", "--next", "footnotes"]);
    let second = fs::read_to_string(&path).unwrap();
    assert!(
        second.contains("second") && second.contains("- footnotes") && !second.contains("first"),
        "{second}"
    );
    assert!(second.contains("created_at: \"2026-05-01T00:00:00Z\""), "{second}");
    run(&vault, "2026-05-03", &["undo"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), first);
    run(&vault, "2026-05-04", &["handoff", "store", "--project", "Other", "--summary", "newer"]);
    assert!(run(&vault, "2026-05-05", &["handoff", "show"]).starts_with("# Handoff - Other\n"));
    assert!(run(&vault, "2026-05-05", &["handoff", "show", "--project", "Parser 2"]).contains("first"));
    // By the project's own name, however its file is called; and over nothing that is no handoff of it.
    assert!(run(&vault, "2026-05-05", &["handoff", "show", "--project", "Parser/2"]).contains("first"));
    fs::write(vault.root().join("Handoffs/mine.md"), "My own words.\n").unwrap();
    for project in ["mine", "Parser:2"] {
        let refused = vault.run(&["handoff", "store", "--project", project, "--summary", "x"]);
        assert_eq!(refused.status.code(), Some(4), "{project}: {}", stderr(&refused));
    }
    for (args, code) in
        [(["--project", "..", "--summary", "x"], 2), (["--project", "p", "--summary", " "], 2)]
    {
        assert_eq!(vault.run(&[&["handoff", "store"], &args[..]].concat()).status.code(), Some(code));
    }
}

/// Gives the importance of notes as commands print it.
fn worth(vault: &TestVault, now: &str) -> [Value; 3] {
    let ask = |args: &[&str]| json(vault, now, args);
    [ask(&["memory", "list"]), ask(&["memory", "stats"]), ask(&["memory", "explain", "heron"])]
}

#[test]
fn compaction_shortens_old_months_and_keeps_the_projection() {
    let vault = TestVault::new(&[
        ("heron.md", "---\nid: heron-1\ncreated_at: 2026-01-01\n---\nThe heron nests.\n"),
        ("otter.md", "---\ncreated_at: 2026-01-01\n---\nAn otter and a heron.\n"),
    ]);
    for day in 1..=20 {
        run(&vault, &format!("2026-02-{day:02}"), &["memory", "recall", "heron"]);
    }
    run(&vault, "2026-02-21", &["memory", "vote", "heron", "up"]);
    run(&vault, "2026-02-22", &["move", "otter", "Lutra"]);
    run(&vault, "2026-02-23", &["memory", "recall", "heron"]);
    let path = vault.root().join(".sidenote/local/2026-02.jsonl");
    let local = || fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{}torn line\n", local())).unwrap();
    run(&vault, "2026-07-01", &["memory", "vote", "heron", "up"]);
    let long = local();
    let shared = fs::read_to_string(clone_journal(vault.root(), "2026-02")).unwrap();
    let before = worth(&vault, "2026-07-03");
    let reply = json(&vault, "2026-07-02", &["memory", "maintain"]);
    assert_eq!(reply["compacted"], 1);
    let short = local();
    assert_eq!(fs::read_to_string(clone_journal(vault.root(), "2026-02")).unwrap(), shared);
    assert!(short.len() * 3 < long.len() * 2, "{} of {}", short.len(), long.len());
    assert_eq!(ops(&vault, "2026-07"), ["vote", "maintain"]);
    let kept = short.lines().filter(|line| !line.contains("\"snapshot\"")).collect::<Vec<_>>();
    let edits: Vec<&str> = long.lines().filter(|line| !line.contains("\"op\":\"use\"")).collect();
    assert_eq!(kept, edits, "what cannot be read stays as it was");
    let same = |state: [Value; 3]| {
        let [list, mut stats, explained] = state;
        stats["maintained"] = Value::Null;
        [list, stats, explained]
    };
    let before = same(before);
    assert_eq!(same(worth(&vault, "2026-07-03")), before);
    fs::remove_dir_all(vault.root().join(".sidenote/index")).unwrap();
    assert_eq!(same(worth(&vault, "2026-07-03")), before);
    // One branch compacted the month, another did not: the union says the same, and can be compacted again.
    fs::write(&path, format!("{short}{}", long.replace("torn line\n", ""))).unwrap();
    assert_eq!(same(worth(&vault, "2026-07-03")), before);
    run(&vault, "2026-07-02", &["memory", "maintain", "--force"]);
    assert_eq!(same(worth(&vault, "2026-07-03")), before);
    let snapshots = |text: &str| {
        let mut lines: Vec<String> =
            text.lines().filter(|line| line.contains("\"snapshot\"")).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(snapshots(&local()), snapshots(&short));
}

#[test]
fn journals_of_two_git_branches_merge() {
    let vault = TestVault::new(&[("heron.md", "---\ncreated_at: 2026-01-01\n---\nThe heron nests.\n")]);
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        let done = Command::new("git")
            .env("HOME", vault.root().join(".home"))
            .current_dir(vault.root())
            .args([&who[..], args].concat())
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {}{}", stdout(&done), stderr(&done));
    };
    run(&vault, "2026-05-01", &["memory", "vote", "heron", "up"]);
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    for (branch, day) in [("ours", "2026-05-02"), ("theirs", "2026-05-03")] {
        git(&["checkout", "-q", "-b", branch, "main"]);
        run(&vault, day, &["memory", "recall", "heron"]);
        run(&vault, day, &["memory", "vote", "heron", "up"]);
        git(&["commit", "-qam", branch]);
    }
    git(&["merge", "-q", "ours", "-m", "both"]);
    let merged = json(&vault, "2026-05-04", &["memory", "explain", "heron"]);
    let figures = (&merged["usefulness"], &merged["uses"], &merged["days_used"]);
    assert_eq!(figures, (&json!(3), &json!(5), &json!(3)));
    assert_eq!(json(&vault, "2026-05-04", &["memory", "stats"])["corrupt_lines"], 0);
}

#[test]
fn uses_follow_a_note_moved_by_another_program() {
    let vault = TestVault::new(&[
        ("heron.md", "---\ncreated_at: 2026-01-01\n---\nThe heron nests.\n"),
        ("otter.md", "The otter sleeps.\n"),
    ]);
    run(&vault, "2026-05-01", &["memory", "vote", "heron", "up"]);
    vault.rename("heron.md", "Birds/Grey heron.md");
    vault.rename("otter.md", "Lutra.md");
    let moved = json(&vault, "2026-05-02", &["memory", "explain", "Grey heron"]);
    assert_eq!((&moved["usefulness"], &moved["path"]), (&json!(1), &json!("Birds/Grey heron.md")));
    assert_eq!(ops(&vault, "2026-05"), ["vote", "moved"]);
    assert!(
        journal(&vault, "2026-05").contains("Lutra"),
        "links to a note that was never used can be repaired"
    );
    // A move by sidenote is recorded once.
    run(&vault, "2026-05-03", &["move", "Grey heron", "Ardea"]);
    assert_eq!(json(&vault, "2026-05-04", &["memory", "explain", "Ardea"])["usefulness"], 1);
    assert_eq!(ops(&vault, "2026-05"), ["vote", "moved", "move"]);
    // Another machine found the move that was made here, and recorded it too.
    let line = r#"{"id":"0196f000000070008000000000000001","at":"2026-05-05T00:00:00Z","op":"moved","files":[{"path":"Birds/Grey heron.md","to":"Ardea.md"}]}"#;
    vault.write(".sidenote/records/2026-05.jsonl", format!("{line}\n"));
    assert_eq!(json(&vault, "2026-05-06", &["memory", "explain", "Ardea"])["usefulness"], 1);
    assert!(stderr(&vault.run(&["undo"])).is_empty(), "a move by others is nothing to be taken back");
    assert_eq!(json(&vault, "2026-05-06", &["memory", "explain", "Grey heron"])["usefulness"], 1);
    // Obsidian puts it into the bin, sidenote takes it out again.
    fs::create_dir(vault.root().join(".trash")).unwrap();
    vault.rename("Birds/Grey heron.md", ".trash/Grey heron.md");
    run(&vault, "2026-05-07", &["list"]);
    run(&vault, "2026-05-08", &["restore", "Grey heron"]);
    vault.rename("Grey heron.md", "Birds/Grey heron.md");
    assert_eq!(
        json(&vault, "2026-05-09", &["memory", "explain", "Grey heron"])["path"],
        "Birds/Grey heron.md"
    );
}

#[test]
fn private_text_is_never_written_to_disk() {
    let vault = TestVault::new(&[("heron.md", "# Nests\n\nThe heron nests.\n"), ("otter.md", "An otter.\n")]);
    const KEY: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let text = format!("said <private>xyzzy</private> with {KEY} in it");
    let json_lines =
        json!([{ "content": format!("imported {text}"), "metadata": { "where": text, (KEY): 1 }, "id": KEY, "type": KEY, "tags": [KEY] }]).to_string();
    fs::write(vault.root().join(".import.json"), json_lines).unwrap();
    let import = vault.root().join(".import.json");
    let commands: &[&[&str]] = &[
        &["new", "A", "--content", &text, "--set", &format!("why={text}")],
        &["append", "heron", &text],
        &["prepend", "heron", &text, "--section", "Nests"],
        &["replace", "otter", "--old", "An", "--new", &text],
        &["set", "otter", "why", &text],
        &["link", "heron", "otter", "--text", &text],
        &["rename-heading", "heron", "Nests", &text],
        &["memory", "save", &format!("saved {text}"), "--title", &text],
        &["memory", "set-context", &text],
        &["handoff", "store", "--project", "p", "--summary", &text, "--next", &text, "--memory", &text],
        &["memory", "import", import.to_str().unwrap()],
    ];
    for args in commands {
        let done = vault.run(args);
        assert!(done.status.success(), "{args:?} {}", stderr(&done));
    }
    fs::remove_file(&import).unwrap();
    let refused = vault.run(&["move", "A", &format!("A {KEY}")]);
    assert!(!refused.status.success() && !stderr(&refused).contains(KEY), "{}", stderr(&refused));
    let told = vault.run(&["append", "heron", &text]);
    assert!(
        stderr(&told).contains("something that looks like a key was removed before saving"),
        "{}",
        stderr(&told)
    );
    assert!(stderr(&told).contains("a private passage was removed before saving"), "{}", stderr(&told));
    let all = walkdir::WalkDir::new(vault.root()).into_iter().map(Result::unwrap);
    let mut looked = 0;
    for file in all.filter(|entry| entry.file_type().is_file()) {
        let bytes = fs::read(file.path()).unwrap();
        let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!holds(b"xyzzy") && !holds(KEY.as_bytes()), "{}", file.path().display());
        looked += 1;
    }
    assert!(looked > 10);
    // A setting allows keys in notes.
    let mut command = vault.command(&["append", "heron", &text]);
    assert!(command.env("SIDENOTE_PRIVACY_REDACT", "false").output().unwrap().status.success());
    let heron = fs::read_to_string(vault.root().join("heron.md")).unwrap();
    assert!(heron.contains(KEY) && !heron.contains("xyzzy"));
}

#[test]
fn an_export_is_imported_unchanged() {
    let vault = TestVault::example();
    run(&vault, "2026-11-21", &["memory", "save", "A, \"quoted\" text;\nwith lines", "--tags", "a,b"]);
    let store = vault.store();
    let notes = store.index().totals().unwrap().0;
    drop(store);
    let bodies = |vault: &TestVault| -> BTreeMap<String, (Value, Value)> {
        let lines = run(vault, "2026-11-21", &["memory", "export", "--format", "jsonl"]);
        let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let part = |record: Value| {
            (record["path"].as_str().unwrap().to_owned(), (record["content"].clone(), record["tags"].clone()))
        };
        records.map(part).collect()
    };
    let there = bodies(&vault);
    let whole: Value = serde_json::from_str(&run(&vault, "2026-11-21", &["memory", "export"])).unwrap();
    assert_eq!(whole["total_memories"], json!(there.len()));
    assert!(there.len() >= notes - 3, "{} of {notes}", there.len());
    for format in ["json", "jsonl", "csv"] {
        let file = vault.root().join(".export");
        run(&vault, "2026-11-21", &["memory", "export", "--format", format, "-o", file.to_str().unwrap()]);
        let fresh = TestVault::new(&[]);
        let reply = json(&fresh, "2026-11-22", &["memory", "import", file.to_str().unwrap()]);
        let count = reply["imported"].as_array().unwrap().len() + reply["skipped"].as_u64().unwrap() as usize;
        assert_eq!(count, there.len(), "{format}");
        assert_eq!(bodies(&fresh), there, "{format}");
        let same = |path: &String| {
            let read = |vault: &TestVault| fs::read(vault.root().join(path)).unwrap();
            read(&vault) == read(&fresh)
        };
        let other: Vec<&String> = there.keys().filter(|path| !same(path)).collect();
        assert!(other.is_empty(), "{format}: {other:?}");
        // Nothing is imported twice.
        let again = json(&fresh, "2026-11-22", &["memory", "import", file.to_str().unwrap()]);
        assert_eq!(again["imported"], json!([]), "{format}");
    }
}

#[test]
fn an_import_of_memories_is_all_or_nothing() {
    let vault = TestVault::new(&[("Memories/Known.md", "I am known.\n")]);
    let import = |text: &str| {
        fs::write(vault.root().join(".import"), text).unwrap();
        let file = vault.root().join(".import");
        vault.run(&["--json", "memory", "import", file.to_str().unwrap()])
    };
    let before = tree(vault.root()).len() + 1;
    for (text, why) in [
        ("", "empty"),
        ("[{\"content\": \"a\"}, {\"text\": 7}]", "memory 2: it has no text `content`"),
        (
            "[{\"content\": \"a\", \"importance\": \"much\"}]",
            "memory 1: its importance \"much\" is not a number",
        ),
        ("[{\"content\": \"a\", \"created_at\": \"soon\"}]", "memory 1: its time \"soon\" is not a time"),
        ("{\"content\": \"a\"}\n{\"content\"", "invalid JSON in line 2"),
        ("[1", "no sound JSON"),
        ("just words", "neither JSON nor a table"),
        ("[{\"content\": \"a\", \"created_at\": 1e300}]", "memory 1: its time 1e+300 is not a time"),
        ("[{\"content\": \"a\"}, {\"content\": \"b\", \"properties\": {\"bad: key\\nx\": 1}}]", "memory 2: "),
    ] {
        let done = import(text);
        assert_eq!(done.status.code(), Some(2), "{text}");
        assert!(stderr(&done).contains(&why.replace('"', "\\\"")), "{text}: {}", stderr(&done));
    }
    assert_eq!(tree(vault.root()).len(), before, "nothing came in");
    let done = import(
        r##"[{"content": "Herons nest.", "tags": "bird, two words,#x", "importance": 14, "type": "fact", "created_at": 1700000000},
            {"content": "Herons nest too.", "title": "Herons nest.", "createdAt": "2026-01-02T03:04:05Z", "id": "m-7", "metadata": {"source": "elsewhere"}},
            {"content": "---\npinned: true\n---\nNo frontmatter.", "title": "CON", "pinned": true},
            {"content": "I am known."}, {"content": "Herons nest."}, {"content": " "}]"##,
    );
    let reply: Value = serde_json::from_slice(&done.stdout).unwrap();
    let names = ["Memories/Herons nest.md", "Memories/Herons nest 2.md", "Memories/pinned true.md"];
    assert_eq!(reply["imported"], json!(names));
    assert_eq!(reply["skipped"], 3);
    let read = |path: &str| fs::read_to_string(vault.root().join(path)).unwrap();
    insta::assert_snapshot!(read("Memories/Herons nest.md"), @r#"
    ---
    id: a43ffa97-ea83-529d-8cca-21020329559f
    title: Herons nest.
    tags:
      - bird
      - two-words
      - x
    original_tags:
      - bird
      - two words
      - x
    type: fact
    created_at: "2023-11-14T22:13:20Z"
    importance: 10
    ---
    Herons nest.
    "#);
    let third = read("Memories/pinned true.md");
    assert!(
        third.contains("title: CON\n")
            && third.ends_with("pinned: true\n---\n---\npinned: true\n---\nNo frontmatter.\n"),
        "{third}"
    );
    let second = read("Memories/Herons nest 2.md");
    assert!(second.contains("id: m-7\n") && second.contains("metadata: {source: elsewhere}\n"), "{second}");
    run(&vault, "2026-11-21", &["undo"]);
    assert_eq!(tree(vault.root()).len(), before, "in one step, and back in one");
}

#[test]
fn a_last_journal_line_without_a_newline_counts() {
    let vault = TestVault::new(&[("heron.md", "---\ncreated_at: 2026-01-01\n---\nThe heron nests.\n")]);
    run(&vault, "2026-05-01", &["memory", "vote", "heron", "up"]);
    run(&vault, "2026-05-02", &["memory", "vote", "heron", "up"]);
    let path = clone_journal(vault.root(), "2026-05");
    let uses = || json(&vault, "2026-05-03", &["memory", "explain", "heron"])["uses"].clone();
    fs::write(&path, journal(&vault, "2026-05").trim_end()).unwrap();
    assert_eq!(uses(), 2);
    run(&vault, "2026-05-03", &["memory", "vote", "heron", "up"]);
    assert_eq!(uses(), 3);
    // A clock that was years ahead does not end maintenance.
    assert_eq!(json(&vault, "2031-01-01", &["memory", "maintain"])["ran"], true);
    assert_eq!(json(&vault, "2026-05-04", &["memory", "maintain"])["ran"], true);
}

fn same_trees(one: &Path, other: &Path) {
    assert_eq!(tree(one), tree(other));
}

#[test]
fn a_backup_is_restored_completely() {
    let vault = TestVault::example();
    vault.write("image.png", [0, 159, 146, 150]);
    vault.write(".obsidian/extra.json", "{}");
    vault.write(".trash/old.md", "gone\n");
    symlink("Start here.md", vault.root().join("link.md"));
    run(&vault, "2026-05-01", &["memory", "vote", "Start here", "up"]);
    let name = |now: &str| {
        let item = json(&vault, now, &["backup"]);
        item["name"].as_str().unwrap().to_owned()
    };
    let first = name("2026-05-02");
    assert!(first.starts_with("memory_backup_2026050"), "{first}");
    let target = tempfile::tempdir().unwrap();
    let to = target.path().join("new/vault");
    run(&vault, "2026-05-03", &["restore-backup", &first, "--to", to.to_str().unwrap()]);
    same_trees(vault.root(), &to);
    assert!(fs::symlink_metadata(to.join("link.md")).unwrap().is_symlink());
    let restored = TestVault::copy_of(&to);
    for path in journal_files(&to) {
        restored.write(path.strip_prefix(&to).unwrap().to_str().unwrap(), fs::read(&path).unwrap());
    }
    assert_eq!(json(&restored, "2026-05-03", &["memory", "explain", "Start here"])["usefulness"], 1);
    let folder = vault.root().join(".sidenote/backups").join(&first);
    let export: Value =
        serde_json::from_slice(&fs::read(folder.join("memories_export.json")).unwrap()).unwrap();
    assert_eq!(export["total_memories"], json!(export["memories"].as_array().unwrap().len()));
    // Not over something that is there.
    let refused = vault.run(&["restore-backup", &first, "--to", to.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(4), "{}", stderr(&refused));
    // Into the vault itself: missing and changed files are restored, newer files stay.
    let before = tree(vault.root());
    vault.remove("Start here.md");
    vault.write("Inbox.md", "overwritten\n");
    vault.write("New.md", "since then\n");
    let dry = run(&vault, "2026-05-04", &["restore-backup", &first, "--dry-run"]);
    assert!(dry.contains("create Start here.md") && !dry.contains("New.md"), "{dry}");
    fs::remove_dir_all(vault.root().join(".sidenote/records")).unwrap();
    run(&vault, "2026-05-04", &["restore-backup", &first]);
    assert_eq!(json(&vault, "2026-05-05", &["memory", "explain", "Start here"])["usefulness"], 1);
    vault.remove("New.md");
    assert_eq!(tree(vault.root()), before);
    // The newest backups are kept.
    for day in 1..=11 {
        name(&format!("2026-06-{day:02}T12:00"));
    }
    let names = json(&vault, "2026-07-01", &["backups"]);
    let names: Vec<&str> =
        names.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 10);
    assert!(names.is_sorted_by(|one, other| one > other) && !names.contains(&first.as_str()));
    // Another vault's are not touched by that, and a clock that went back does not remove the one just made.
    let other = TestVault::new(&[("b.md", "B.\n")]);
    let shared = target.path().join("shared");
    let shared_text = shared.to_str().unwrap();
    let theirs = json(&other, "2020-01-01", &["backup", "--dir", shared_text])["name"].clone();
    for day in ["2026-06-01", "2026-06-02", "2019-01-01"] {
        let mut command = vault.command(&["backup", "--dir", shared_text]);
        let done = command.env("SIDENOTE_NOW", day).env("SIDENOTE_BACKUP_KEEP", "1").output().unwrap();
        assert!(Path::new(stdout(&done).trim()).is_dir(), "{day}");
    }
    assert_eq!(json(&other, "2026-07-01", &["backups", "--dir", shared_text])[0]["name"], theirs);
    assert_eq!(json(&vault, "2026-07-01", &["backups", "--dir", shared_text]).as_array().unwrap().len(), 2);
    fs::remove_dir_all(&shared).unwrap();
    // A damaged backup is refused and changes nothing.
    let folder = vault.root().join(".sidenote/backups").join(names[0]);
    fs::write(folder.join("notes/Start here.md"), "rotten").unwrap();
    let bad = target.path().join("bad");
    let refused = vault.run(&["restore-backup", names[0], "--to", bad.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(7), "{}", stderr(&refused));
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1, "nothing half-made is left");
    let among = vault.run(&["backup", "--dir", vault.root().join("Copies").to_str().unwrap()]);
    assert_eq!(among.status.code(), Some(2), "{}", stderr(&among));
    assert!(!vault.root().join("Copies").exists());
    let inside =
        vault.run(&["restore-backup", names[1], "--to", vault.root().join("Twice").to_str().unwrap()]);
    assert_eq!(inside.status.code(), Some(2), "{}", stderr(&inside));
}

#[test]
fn a_backup_follows_links_and_no_cycles_or_special_folders() {
    let vault = TestVault::new(&[("a.md", "A.\n"), ("inner/b.md", "B.\n")]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("far.md"), "Far.\n").unwrap();
    let link = |target: &Path, name: &str| {
        symlink(target, vault.root().join(name));
    };
    link(outside.path(), "far");
    link(vault.root().parent().unwrap(), "up");
    link(Path::new("/proc/self"), "proc");
    link(Path::new("inner"), "near");
    let mut backup = vault.command(&["--json", "backup"]);
    let done = backup
        .env("SIDENOTE_NOW", "2026-05-01")
        .env("SIDENOTE_VAULT_FOLLOW_OUTSIDE", "true")
        .output()
        .unwrap();
    let item: Value = serde_json::from_str(&stdout(&done)).unwrap();
    assert_eq!(item["left_out"], json!(["proc", "up"]), "{item}");
    let folder = vault.root().join(".sidenote/backups").join(item["name"].as_str().unwrap());
    assert_eq!(fs::read_to_string(folder.join("notes/far/far.md")).unwrap(), "Far.\n");
    assert!(fs::symlink_metadata(folder.join("notes/near")).unwrap().is_symlink());
    assert!(!folder.join("notes/up").exists() && !folder.join("notes/proc").exists());
    // Forged lists: out of the folder, through a link, into the sidecar, and a pipe in place of a file.
    let list = fs::read_to_string(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&list).unwrap();
    let file = manifest["files"]["notes/a.md"].clone();
    let to = outside.path().join("target");
    let escape = outside.path().join("escape");
    fs::create_dir(&escape).unwrap();
    for (path, entry) in [
        ("notes/../../x", file.clone()),
        ("/x", file.clone()),
        ("notes/.sidenote/config.toml", file.clone()),
        ("notes/.git/hooks/x", file.clone()),
        ("notes/l/x", json!({ "bytes": 0, "link": "/etc/passwd" })),
    ] {
        let mut bad = manifest.clone();
        bad["files"]["notes/l"] = json!({ "bytes": 0, "link": escape });
        bad["files"][path] = entry;
        fs::write(folder.join("manifest.json"), bad.to_string()).unwrap();
        let done = vault.run(&["restore-backup", folder.to_str().unwrap(), "--to", to.to_str().unwrap()]);
        let refused = done.status.code() == Some(7) || path == "/x";
        assert!(refused, "{path}: {}", stderr(&done));
        assert_eq!(fs::read_dir(&escape).unwrap().count(), 0, "{path}");
        if to.exists() {
            fs::remove_dir_all(&to).unwrap();
        }
    }
    fs::write(folder.join("manifest.json"), &list).unwrap();
    fs::remove_file(folder.join("notes/a.md")).unwrap();
    symlink("/dev/zero", folder.join("notes/a.md"));
    vault.remove("a.md");
    for args in [&["--to", to.to_str().unwrap()][..], &[]] {
        let done = vault.run(&[&["restore-backup", folder.to_str().unwrap()], args].concat());
        assert_eq!(done.status.code(), Some(7), "{}", stderr(&done));
    }
}

#[cfg(unix)]
#[test]
fn a_backup_names_files_that_cannot_be_read() {
    without_root_privileges(left_out_and_named);
}

#[cfg(unix)]
fn left_out_and_named() {
    let vault = TestVault::new(&[("a.md", "A.\n"), ("b.md", "B.\n"), ("c.png", "C")]);
    json(&vault, "2026-05-01", &["list"]);
    let root = vault.root();
    for name in ["b.md", "c.png"] {
        set_mode(root.join(name), 0o000);
    }
    let item = json(&vault, "2026-05-01", &["backup"]);
    assert_eq!(item["left_out"], json!(["b.md", "c.png"]), "{item}");
    let done = vault.run(&["memory", "export", "--format", "jsonl"]);
    assert!(stderr(&done).contains("b.md cannot be read and is not exported"), "{}", stderr(&done));
    assert!(done.status.success() && stdout(&done).lines().count() == 1, "{}", stdout(&done));
    // What cannot be written is no less a failure.
    let folder = root.join(".sidenote/backups");
    set_mode(&folder, 0o555);
    let refused = vault.run(&["backup"]);
    assert_eq!(refused.status.code(), Some(6), "{}", stderr(&refused));
    set_mode(&folder, 0o755);
}

#[test]
fn an_interrupted_backup_leaves_no_backup() {
    let texts: Vec<(String, String)> = (0..400)
        .map(|at| (format!("f{}/n{at}.md", at % 7), format!("# Note {at}\n\n{}\n", "words ".repeat(at))))
        .collect();
    let vault =
        TestVault::new(&texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
    drop(vault.store());
    let folder = vault.root().join(".sidenote/backups");
    let aside = || {
        let names = fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".memory_backup")).count()
    };
    let mut killed = 0;
    for step in 0..12 {
        let mut child =
            vault.command(&["backup"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // At moments that are spread over the work: after so many files, or at its very end.
        let target = step * 40;
        loop {
            let copied = walkdir::WalkDir::new(&folder).into_iter().flatten().count();
            if copied > target + 3 || child.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::yield_now();
        }
        let listed = json(&vault, "2026-11-21", &["backups"]).as_array().unwrap().len();
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
            killed += usize::from(aside() > 0);
        }
        let whole = json(&vault, "2026-11-21", &["backups"]);
        assert!(whole.as_array().unwrap().len() >= listed);
        for item in whole.as_array().unwrap() {
            let to = tempfile::tempdir().unwrap();
            let to = to.path().join("vault");
            run(
                &vault,
                "2026-11-21",
                &["restore-backup", item["name"].as_str().unwrap(), "--to", to.to_str().unwrap()],
            );
            same_trees(vault.root(), &to);
        }
        fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("memory_backup"))
            .for_each(|entry| fs::remove_dir_all(entry.path()).unwrap());
    }
    assert!(killed > 0, "no backup was cut short");
    let name = json(&vault, "2026-11-21", &["backup"])["name"].as_str().unwrap().to_owned();
    assert_eq!(aside(), 0, "what was left is gone");
    let to = tempfile::tempdir().unwrap();
    run(&vault, "2026-11-21", &["restore-backup", &name, "--to", to.path().to_str().unwrap()]);
    same_trees(vault.root(), to.path());
}

#[test]
fn automatic_backups_follow_the_settings() {
    let vault = TestVault::new(&[("a.md", "A.\n")]);
    let tend = |now: &str, auto: &str| {
        let store = at(&vault, now, &[("backup.auto", auto)]);
        store.upkeep().run_due_maintenance().unwrap();
        store.upkeep().backups(None).unwrap().len()
    };
    assert_eq!(tend("2026-05-01", "false"), 0);
    assert_eq!(tend("2026-05-01", "true"), 1);
    assert_eq!(tend("2026-05-01T23:59", "true"), 1);
    assert_eq!(tend("2026-05-02", "true"), 2);
    (0..99).for_each(|at| vault.write(&format!("n{at}.md"), "N.\n"));
    assert_eq!(tend("2026-05-02T01:00", "true"), 3, "at the hundredth note");
    assert_eq!(tend("2026-05-02T02:00", "true"), 3);
}

/// Opens a vault at a time, without a model, and brings its index up to date.
fn at(vault: &TestVault, now: &str, settings: &[(&'static str, &str)]) -> Store {
    let none = [("embed.provider", "none")];
    let store = Store::open(Open {
        vault: Some(vault.root().to_owned()),
        flags: none.iter().chain(settings).map(|(key, value)| (*key, (*value).to_owned(), "test")).collect(),
        clock: Clock::Fixed(Timestamp::parse(now).unwrap()),
        ..Open::default()
    })
    .unwrap();
    store.index().sync(silent()).unwrap();
    store
}

/// Finds the file of a memory: in the vault, or in the trash.
fn places(vault: &TestVault, id: &str) -> Vec<(bool, Vec<u8>)> {
    let line = format!("id: {id}\n");
    let holds = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains(&line);
    tree(vault.root())
        .into_iter()
        .filter(|(_, bytes)| holds(bytes))
        .map(|(path, bytes)| (path.starts_with(".trash"), bytes))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]
    #[test]
    fn no_memory_becomes_unreachable_over_twenty_years(steps in prop::collection::vec((0..12_u8, 0..1000_usize, 20..180_i64), 70..75)) {
        let vault = TestVault::new(&[("Home.md", "The vault's own note, which is no memory.\n")]);
        let mut known: Vec<(String, String)> = Vec::new();
        let mut day = Timestamp::parse("2026-01-01").unwrap().millis();
        for (step, (what, which, days)) in steps.into_iter().enumerate() {
            day += days * 86_400_000;
            let store = at(&vault, &Timestamp::from_millis(day).rfc3339(), &[("memory.max_bytes", "1500"), ("memory.evict", "true")]);
            let chosen = known.get(which % known.len().max(1)).cloned();
            let alive = |id: &String| places(&vault, id).iter().any(|(trashed, _)| !trashed);
            match (what, chosen) {
                (0..=3, _) | (_, None) => {
                    let text = format!("Memory number {step} tells of thing {which}.");
                    let request = SaveRequest { text: text.clone(), allow_duplicate: true, ..SaveRequest::default() };
                    known.push((store.memory_writes().save_memory(&request, false).unwrap().memory.unwrap().id, text));
                }
                (4, Some((id, _))) if alive(&id) => drop(store.memories().vote(&id, which % 2 == 0).unwrap()),
                // It may be pinned, forgotten or archived already.
                (5, Some((id, _))) if alive(&id) => drop(store.memory_writes().pin(&id, false)),
                (6, Some((id, _))) if alive(&id) => drop(store.memory_writes().forget(&id, which % 3 == 0, false)),
                (7, Some((id, _))) if alive(&id) => drop(store.memory_writes().archive(&id, false)),
                (8, Some((id, _))) if !alive(&id) => {
                    let before = places(&vault, &id);
                    store.memory_writes().restore_memory(&id, false).unwrap();
                    let after = places(&vault, &id);
                    prop_assert_eq!((after.len(), after[0].0), (1, false));
                    prop_assert_eq!(&after[0].1, &before[0].1, "byte for byte");
                }
                (9, _) => drop(store.maintenance().cleanup(true, false).unwrap()),
                (10, _) => {
                    let before: Vec<_> = known.iter().map(|(id, _)| places(&vault, id)).collect();
                    store.maintenance().maintain(MaintainRequest::default()).unwrap();
                    // Maintenance changes importance and tier; an archived note keeps its bytes.
                    let bytes = |places: &[(bool, Vec<u8>)]| places[0].1.clone();
                    for ((id, _), before) in known.iter().zip(before) {
                        prop_assert_eq!(bytes(&places(&vault, id)), bytes(&before));
                    }
                }
                _ => {
                    store.maintenance().maintain(MaintainRequest { write_back: true, force: true, ..MaintainRequest::default() }).unwrap();
                }
            }
            for (id, text) in &known {
                let places = places(&vault, id);
                prop_assert_eq!(places.len(), 1, "{}", id);
                prop_assert!(String::from_utf8_lossy(&places[0].1).contains(text.as_str()));
            }
        }
        // Every archived memory can be restored.
        let store = at(&vault, &Timestamp::from_millis(day).rfc3339(), &[]);
        for (id, _) in &known {
            let before = places(&vault, id);
            if before[0].0 {
                store.memory_writes().restore_memory(id, false).unwrap();
                prop_assert_eq!(&places(&vault, id)[0], &(false, before[0].1.clone()));
            }
        }
    }
}

#[test]
fn an_unreadable_note_is_not_imported_twice() {
    let big = "A heron stands in the reeds. ".repeat(20);
    let vault = TestVault::new(&[("Birds/Heron.md", &big), ("Memories/Otter.md", "An otter swims.\n")]);
    run(&vault, "2026-05-01", &["list"]);
    let file = vault.root().join(".import");
    let import = |records: Value| {
        fs::write(&file, records.to_string()).unwrap();
        let mut command = vault.command(&["--json", "memory", "import", file.to_str().unwrap()]);
        command.env("SIDENOTE_VAULT_MAX_FILE_BYTES", "200").output().unwrap()
    };
    fs::write(&file, "").unwrap();
    let before: Vec<String> = tree(vault.root()).into_keys().collect();
    let refused = import(json!([
        { "content": "New." },
        { "content": big, "path": "Birds/Heron.md", "properties": {}, "frontmatter": "" },
    ]));
    assert!(!refused.status.success(), "{}", stdout(&refused));
    assert!(stderr(&refused).contains("memory 2: Birds/Heron.md"), "{}", stderr(&refused));
    assert_eq!(tree(vault.root()).into_keys().collect::<Vec<_>>(), before, "nothing came in");
}

#[cfg(unix)]
#[test]
fn an_import_names_a_memory_that_it_cannot_compare() {
    without_root_privileges(compares_what_it_can);
}

#[cfg(unix)]
fn compares_what_it_can() {
    let vault = TestVault::new(&[("Memories/Otter.md", "An otter swims.\n")]);
    run(&vault, "2026-05-01", &["list"]);
    let otter = vault.root().join("Memories/Otter.md");
    set_mode(&otter, 0o000);
    let file = vault.root().join(".import");
    fs::write(&file, json!([{ "content": "A heron stands." }]).to_string()).unwrap();
    let reply = json(&vault, "2026-05-01", &["memory", "import", file.to_str().unwrap()]);
    assert_eq!(reply["imported"].as_array().unwrap().len(), 1, "{reply}");
    assert!(reply["notices"].to_string().contains("Memories/Otter.md"), "{reply}");
}

#[test]
fn maintenance_counts_changes_of_tier() {
    let vault = TestVault::new(&[]);
    run(&vault, "2026-11-01", &["memory", "save", "The heron nests."]);
    run(&vault, "2026-11-01", &["memory", "maintain"]);
    let reply = json(&vault, "2026-11-21", &["memory", "maintain"]);
    assert_eq!(
        (&reply["hotDemoted"], &reply["warmDemoted"], &reply["promoted"]),
        (&json!(1), &json!(0), &json!(0))
    );
}
