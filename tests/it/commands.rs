//! Tests what holds for all commands: help, exit codes, dry runs and messages.

use std::collections::BTreeSet;

use serde_json::Value;

#[cfg(unix)]
use crate::endpoint::{Say, Server};
use crate::support::{TestVault, json, run, stderr, stdout, text_of};
#[cfg(unix)]
use crate::support::{set_mode, symlink, terminate, without_root_privileges};

const NOW: &str = "2026-11-21";

/// Prints the help of a command at a width of terminal.
fn help(command: &[&str], columns: &str) -> String {
    let vault = TestVault::new(&[]);
    let mut program = vault.command(command);
    stdout(&program.arg("--help").env("COLUMNS", columns).output().unwrap())
}

/// Lists every command that is not hidden, with those below it, as words.
fn commands() -> Vec<Vec<String>> {
    fn add(command: &clap::Command, words: &[String], found: &mut Vec<Vec<String>>) {
        found.push(words.to_vec());
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            add(inner, &[words, &[inner.get_name().to_owned()]].concat(), found);
        }
    }
    let mut found = Vec::new();
    add(&sidenote::cli::tree(), &[], &mut found);
    found
}

/// Documentation of parts that several commands share, which must never stand for a command's own.
const SHARED: [&str; 6] = [
    "What every command",
    "What moving and renaming",
    "Conditions that searching",
    "What `search` and `ask-why`",
    "`--dry-run` for what",
    "The one memory that",
];

/// Commands that change notes, settings or the journal, and so have to say first what they would do.
const WRITERS: [&str; 38] = [
    "task",
    "config set",
    "config unset",
    "new",
    "append",
    "replace",
    "edit",
    "set",
    "tag",
    "move",
    "rename",
    "open",
    "link",
    "unlink",
    "merge",
    "extract",
    "delete",
    "restore",
    "undo",
    "backup",
    "backup restore",
    "memory save",
    "memory forget",
    "memory restore",
    "memory pin",
    "memory unpin",
    "memory tier",
    "memory vote",
    "memory set-context",
    "memory clear-context",
    "memory maintain",
    "memory cleanup",
    "memory import",
    "team grant",
    "team revoke",
    "team block",
    "team unblock",
    "team forget",
];

#[test]
fn every_command_has_its_own_help_and_wrapping_breaks_no_example() {
    let all = commands();
    assert!(all.len() > 60, "only {} commands were found", all.len());
    for command in &all {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let (narrow, wide) = (help(&words, "80"), help(&words, "100"));
        for shared in SHARED {
            assert!(!narrow.contains(shared), "{words:?} shows what only the source says: {shared}");
        }
        assert!(!narrow.starts_with("Usage"), "{words:?} says nothing of what it does");
        // Examples and settings are to be copied, so they are the same at any width.
        let copied = |text: &str| text.split_once("\nExample").map(|(_, rest)| rest.to_owned());
        assert_eq!(copied(&narrow), copied(&wide), "{words:?}");
    }
    let names: BTreeSet<String> = all.iter().map(|command| command.join(" ")).collect();
    for writer in WRITERS {
        assert!(names.contains(writer), "{writer} is no command");
        let words: Vec<&str> = writer.split(' ').collect();
        assert!(help(&words, "100").contains("--dry-run"), "{writer} has no --dry-run");
    }
}

#[test]
fn the_help_shows_the_usual_commands_in_groups() {
    let text = help(&[], "80");
    let shown: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "Find:")
        .take_while(|line| *line != "Global options:")
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .collect();
    let known: BTreeSet<String> = commands().iter().map(|command| command.join(" ")).collect();
    for name in &shown {
        assert!(known.contains(*name), "{name} is no command");
    }
    assert_eq!(shown.len(), shown.iter().collect::<BTreeSet<_>>().len());
    assert!((30..=40).contains(&shown.len()), "{} commands are shown", shown.len());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_help_of_search_fits_a_screen_and_says_the_limit() {
    for flag in ["--help", "-h"] {
        let vault = TestVault::new(&[]);
        let text = stdout(&vault.command(&["search", flag]).env("COLUMNS", "80").output().unwrap());
        assert!(text.lines().count() <= 40, "{} lines:\n{text}", text.lines().count());
        assert!(text.contains("search.limit (10)") && text.contains("--help-all"), "{text}");
    }
    let all = stdout(&TestVault::new(&[]).run(&["search", "--help-all"]));
    assert!(all.contains("match-case:") && all.contains("--no-relations"), "{all}");
    let defaults = include_str!("../../crates/config/src/config.toml");
    assert!(defaults.contains("\nlimit = 10\n"), "the help of search names another limit");
}

#[test]
fn other_names_lead_to_the_right_command() {
    // What people type, or typed in earlier versions, and the command that does it.
    let pairs: [(&[&str], &[&str]); 21] = [
        (&["show", "A"], &["read", "A"]),
        (&["cat", "A"], &["read", "A"]),
        (&["todo"], &["tasks"]),
        (&["create", "B", "--dry-run"], &["new", "B", "--dry-run"]),
        (&["find", "heron"], &["search", "heron"]),
        (&["grep", "heron"], &["search", "heron"]),
        (&["ls"], &["list"]),
        (&["mv", "A", "B", "--dry-run"], &["move", "A", "B", "--dry-run"]),
        (&["rm", "A", "--dry-run"], &["delete", "A", "--dry-run"]),
        (&["daily", "x", "--dry-run"], &["new", "--daily", "--content", "x", "--dry-run"]),
        (&["prepend", "A", "x", "--dry-run"], &["append", "A", "x", "--start", "--dry-run"]),
        (&["unset", "A", "k", "--dry-run"], &["set", "A", "k", "--remove", "--dry-run"]),
        (&["add", "A", "l", "x", "--dry-run"], &["set", "A", "l", "x", "--add", "--dry-run"]),
        (
            &["rename-heading", "A", "H", "I", "--dry-run"],
            &["rename", "--heading", "A", "H", "I", "--dry-run"],
        ),
        (&["rename-block", "A", "b", "c", "--dry-run"], &["rename", "A", "b", "c", "--block", "--dry-run"]),
        (&["rename-tag", "t", "u", "--dry-run"], &["rename", "--tag", "t", "u", "--dry-run"]),
        (&["rename-property", "k", "m", "--dry-run"], &["rename", "--property", "k", "m", "--dry-run"]),
        (&["backups"], &["backup", "list"]),
        (&["restore-backup", "none"], &["backup", "restore", "none"]),
        (&["memory", "by-type", "fact"], &["memory", "list", "--type", "fact", "--sort", "importance"]),
        (&["login", "--list"], &["team", "login", "--list"]),
    ];
    let text = "---\nk: 1\nl: [y]\ntype: fact\ntags: [t]\n---\n# H\n\nheron ^b\n";
    for (typed, command) in pairs {
        let vault = TestVault::new(&[("A.md", text)]);
        vault.run(&["index", "--no-embed"]);
        let (typed_done, done) = (vault.run(typed), vault.run(command));
        assert_eq!(stdout(&typed_done), stdout(&done), "{typed:?}");
        assert_eq!(stderr(&typed_done), stderr(&done), "{typed:?}");
        assert_eq!(typed_done.status.code(), done.status.code(), "{typed:?}");
        assert!(!stderr(&done).contains("unrecognized"), "{typed:?}: {}", stderr(&done));
    }
    assert_eq!(pairs.len(), 21);
    for wrong in [&["rename", "A", "b", "c"][..], &["rename", "--heading", "A", "H"], &["set", "A", "k"]] {
        assert_eq!(TestVault::new(&[("A.md", text)]).run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn an_unknown_setting_is_answered_with_those_that_may_be_meant() {
    let cases = [
        ("serch.limit", "did you mean search.limit"),
        ("search.limt", "did you mean search.limit"),
        ("limit", "settings begin with agents, backup, "),
        ("search.colour", "settings of search are search.fusion, search.limit, search.mode"),
        ("foo.bar", "settings begin with agents, backup, "),
    ];
    for (key, says) in cases {
        for args in [&["config", "set", key, "1"][..], &["config", "unset", key]] {
            let done = TestVault::new(&[]).run(args);
            assert_eq!(done.status.code(), Some(2), "{args:?}");
            assert!(stderr(&done).contains(says), "{args:?}: {}", stderr(&done));
            assert!(stderr(&done).len() < 400, "{args:?}: {}", stderr(&done));
        }
    }
    assert_eq!(cases.len(), 5);
}

#[test]
fn the_help_of_hooks_shows_valid_json_with_all_hooks() {
    for columns in ["66", "80", "100"] {
        let text = help(&["hook"], columns);
        let from = text.find("\n{").unwrap();
        let settings: Value = serde_json::from_str(text[from..].trim()).expect(&text);
        let hooks = settings["hooks"].as_object().unwrap();
        let commands: Vec<&str> =
            hooks.values().map(|hook| hook[0]["hooks"][0]["command"].as_str().unwrap()).collect();
        let ends: Vec<&str> = commands.iter().map(|command| command.rsplit(' ').next().unwrap()).collect();
        assert_eq!(ends, ["session-start", "recall", "capture", "session-end"]);
    }
}

#[test]
fn check_exits_with_an_error_where_it_is_asked_to() {
    let cases: &[(&str, &[&str], i32)] = &[
        ("[[nowhere]]\n", &[], 0),
        ("[x](nowhere.md)\n", &["--strict"], 8),
        ("[x](nowhere.md)\n", &["--strict=error"], 8),
        ("[x](nowhere.md)\n", &["--strict", "--only", "orphan"], 0),
        ("alone\n", &["--strict"], 0),
        ("alone\n", &["--strict=warning"], 0),
        ("alone\n", &["--strict=info"], 8),
        ("x\n", &["--only", "nonsense"], 2),
        ("x\n", &["--strict=much"], 2),
    ];
    for (text, args, code) in cases {
        let vault = TestVault::new(&[("a.md", text)]);
        let output = vault.run(&[&["check"], *args].concat());
        assert_eq!(output.status.code(), Some(*code), "{text:?} {args:?}: {}", stderr(&output));
    }
    assert_eq!(cases.len(), 9);
}

#[test]
fn every_code_of_check_is_listed_in_its_help() {
    let text = help(&["check"], "100");
    for known in sidenote::store::PROBLEM_CODES {
        assert!(text.contains(&format!("- {}: ", known.code)), "{}", known.code);
    }
    let output = TestVault::new(&[]).run(&["check", "--only", "nonsense"]);
    assert!(stderr(&output).contains("broken-link"), "{}", stderr(&output));
    let reply = json(&TestVault::new(&[("a.md", "[x](x.md)\n")]), NOW, &["check"]);
    let found = reply["problems"].as_array().unwrap().iter().find(|p| p["code"] == "broken-link").unwrap();
    assert_eq!(found["severity"], "error");
}

#[cfg(unix)]
#[test]
fn an_interrupted_index_command_reports_the_interruption() {
    // The endpoint does not answer until the program was asked to stop.
    let server = Server::new(8, &[Say::Silence]);
    let notes: Vec<(String, String)> = (0..40).map(|n| (format!("{n}.md"), format!("note {n}\n"))).collect();
    let vault = TestVault::new(&[]);
    notes.iter().for_each(|(path, text)| vault.write(path, text));
    let mut command = vault.command(&["index"]);
    command
        .env("SIDENOTE_EMBED_PROVIDER", "openai")
        .env("SIDENOTE_EMBED_MODEL", "test")
        .env("SIDENOTE_EMBED_BASE_URL", &server.url)
        .env("SIDENOTE_EMBED_DIMENSIONS", "8")
        .env("SIDENOTE_EMBED_TIMEOUT_S", "2")
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    while server.asked().is_empty() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    terminate(child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn rename_keeps_the_folder_and_move_trims_spaces() {
    let cases: &[(&[&str], &[&str], i32)] = &[
        (&["rename", "d/a.md", "b"], &["d/b.md"], 0),
        (&["rename", "a", "b.md"], &["d/b.md"], 0),
        // A folder of that name is not where it goes.
        (&["rename", "d/a.md", "e"], &["d/e.md"], 0),
        (&["rename", "d/a.md", "e/b"], &["e/b.md"], 0),
        (&["rename", "d", "f"], &["f/a.md"], 0),
        (&["move", "d/a.md", "b"], &["b.md"], 0),
        (&["move", "d/a.md", "x.md "], &["x.md"], 0),
        (&["move", "d/a.md", " y "], &["y.md"], 0),
        (&["rename", "d/a.md", "z.md "], &["d/z.md"], 0),
        (&["move", "d/a.md", "x /y.md"], &["d/a.md"], 2),
        (&["move", "d/a.md", "  "], &["d/a.md"], 2),
    ];
    for (args, expect, code) in cases {
        let vault = TestVault::new(&[("d/a.md", "x\n"), ("e/other.md", "y\n")]);
        let output = vault.run(args);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {}", stderr(&output));
        for path in *expect {
            assert_eq!(text_of(&vault, path), "x\n", "{args:?}");
        }
    }
    assert_eq!(cases.len(), 11);
}

#[test]
fn history_names_moved_notes_and_not_the_rewritten_ones() {
    let vault = TestVault::new(&[("a.md", "[[z]]\n"), ("z.md", "x\n"), ("d/one.md", "[[a]]\n")]);
    run(&vault, NOW, &["move", "z.md", "y.md"]);
    run(&vault, NOW, &["move", "d", "e"]);
    run(&vault, NOW, &["delete", "y"]);
    let lines = run(&vault, NOW, &["history"]);
    let subject =
        |line: &str| line.split("  ").filter(|cell| !cell.is_empty()).nth(2).unwrap().trim().to_owned();
    let subjects: Vec<String> = lines.lines().map(subject).collect();
    assert_eq!(subjects, ["y.md -> .trash/y.md", "d -> e", "z.md -> y.md and 1 more"], "{lines}");
}

#[test]
fn an_edit_in_the_editor_is_reported_recorded_and_can_be_undone() {
    let vault = TestVault::new(&[("a.md", "one\n")]);
    vault.write(".editor", "#!/bin/sh\necho two >> \"$1\"\n");
    let editor = format!("sh {}", vault.root().join(".editor").display());
    let edit = |args: &[&str]| {
        let mut command = vault.command(&[&["edit", "a"], args].concat());
        command.env("EDITOR", &editor).env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap()
    };
    assert!(stdout(&edit(&["--dry-run"])).contains("would open a.md"));
    assert_eq!(text_of(&vault, "a.md"), "one\n");
    assert_eq!(stdout(&edit(&[])), "a.md changed\n");
    let history = run(&vault, NOW, &["history", "a"]);
    assert!(history.contains("  edit  a.md  "), "{history}");
    assert!(run(&vault, NOW, &["search", "two"]).contains("a.md"));
    run(&vault, NOW, &["undo"]);
    assert_eq!(text_of(&vault, "a.md"), "one\n");
    let mut command = vault.command(&["edit", "a"]);
    let idle = command.env("EDITOR", "true").env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap();
    assert_eq!(stdout(&idle), "a.md is unchanged\n");
}

#[test]
fn an_empty_list_names_unknown_folders_tags_and_properties() {
    let files = [("d/a.md", "---\ntags: [recipe]\nrating: 4\n---\nx\n")];
    let cases: &[(&[&str], i32, &str)] = &[
        (&["list", "--folder", "Nope"], 3, "there is no folder \"Nope\""),
        (&["list", "--property", "rating>4"], 2, "'[rating:>4]'"),
        (&["list", "--property", "rating>=4"], 2, "'[rating:>4]'"),
        (&["list", "--property", "=4"], 2, "neither KEY nor KEY=VALUE"),
        (&["list", "--property", "ratin"], 0, "no note has the property \"ratin\"; did you mean \"rating\"?"),
        (&["list", "--property", "rating=5"], 0, "nothing found"),
        (&["list", "--tag", "recipes"], 0, "no note has the tag \"recipes\"; did you mean \"recipe\"?"),
        (&["list", "--type", "idea"], 0, "no note has the type \"idea\""),
        (&["list", "--category", "x"], 0, "no note has the category \"x\""),
        (&["search", "x", "--tag", "none"], 0, "no note has the tag \"none\""),
        (&["search", "x", "--path", "Nope/**"], 0, "no path matches \"Nope/**\""),
        (&["memory", "by-type", "idea"], 0, "no note has the type \"idea\""),
        (&["memory", "by-tags", "none"], 0, "no note has the tag \"none\""),
        (&["memory", "list", "--tag", "none"], 0, "no note has the tag \"none\""),
    ];
    for (args, code, says) in cases {
        let vault = TestVault::new(&files);
        run(&vault, NOW, &["index", "--no-embed"]);
        let output = vault.run(args);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains(says), "{args:?}: {said}");
    }
    assert_eq!(cases.len(), 14);
    let vault = TestVault::new(&files);
    // Another case of the only folder of that name means it.
    for folder in ["d/", "D", "./d"] {
        assert!(run(&vault, NOW, &["list", "--folder", folder]).contains("d/a.md"), "{folder}");
    }
}

#[cfg(unix)]
#[test]
fn a_dry_run_refuses_what_the_run_refuses() {
    without_root_privileges(both_refuse);
}

#[cfg(unix)]
fn both_refuse() {
    let outside = TestVault::new(&[("real.md", "x\n")]);
    let make = || {
        let vault = TestVault::new(&[("a.md", "x\n"), ("b.md", "[[a]]\n")]);
        symlink(outside.root().join("real.md"), vault.root().join("link.md"));
        vault
    };
    let cases: [&[&str]; 3] =
        [&["delete", "link.md"], &["move", "link.md", "other.md"], &["move", "a.md", "c.md"]];
    for args in cases {
        let vault = make();
        set_mode(vault.root().join("b.md"), 0o444);
        let ran = vault.run(args);
        let dry = vault.run(&[args, &["--dry-run"]].concat());
        assert!(!ran.status.success(), "{args:?}");
        assert_eq!(dry.status.code(), ran.status.code(), "{args:?}: {}", stdout(&dry));
    }
}

#[test]
fn memory_commands_that_change_no_file_have_dry_runs() {
    let vault = TestVault::new(&[("a.md", "x\n")]);
    let cases: &[(&[&str], &str)] = &[
        (&["memory", "vote", "a", "up"], "a.md would be voted up; its usefulness is 0 now\n"),
        (&["memory", "set-context", "boats"], "would be set until clear-context\n"),
        (&["memory", "clear-context"], "there is no context\n"),
    ];
    for (args, says) in cases {
        assert_eq!(run(&vault, NOW, &[*args, &["--dry-run"]].concat()), *says);
    }
    assert_eq!(cases.len(), 3);
    assert!(!vault.root().join(".sidenote/records").exists(), "a dry run wrote into the journal");
    run(&vault, NOW, &["memory", "set-context", "boats"]);
    assert_eq!(run(&vault, NOW, &["memory", "clear-context", "--dry-run"]), "would be cleared\n");
    assert_eq!(run(&vault, NOW, &["memory", "clear-context"]), "cleared\n");
}

#[test]
fn creating_the_sidecar_is_reported_once() {
    let vault = TestVault::new(&[("a.md", "x\n")]);
    let first = stderr(&vault.run(&["search", "x"]));
    assert!(first.contains(".sidenote; the index in it can be deleted"), "{first}");
    assert!(!stderr(&vault.run(&["search", "x"])).contains(".sidenote"));
    let vault = TestVault::new(&[("a.md", "x\n")]);
    let quiet = stderr(&vault.run(&["search", "x", "--json"]));
    assert!(!quiet.contains(".sidenote"), "{quiet}");
}

#[test]
fn counts_agree_with_their_nouns() {
    let vault = TestVault::new(&[("a.md", "[[b]]\n"), ("b.md", "x\n")]);
    assert!(run(&vault, NOW, &["path", "a", "b"]).ends_with("\n1 link\n"));
    let vault = TestVault::new(&[("a.md", "x\n")]);
    let indexed = run(&vault, NOW, &["index", "--no-embed"]);
    assert!(indexed.starts_with("1 note, 1 passage; 1 file scanned: "), "{indexed}");
    assert!(run(&vault, NOW, &["check"]).ends_with("1 note: 1 orphan\n"));
    assert!(run(&vault, NOW, &["backup", "--dry-run"]).starts_with("1 note would be copied"));
}
