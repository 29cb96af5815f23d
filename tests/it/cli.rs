//! Tests the program from outside: its output, its streams and its exit codes.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{TestVault, program, stderr, stdout};

fn small() -> TestVault {
    TestVault::new(&[
        ("Start.md", "---\nid: s-1\ntags: [tour]\n---\n# Start\n\nWater level [[Plan]] and [[Nowhere]].\n"),
        ("Plan.md", "The plan ^p1\n"),
    ])
}

/// Checks a command's exit code and a part of what it says on standard error.
#[track_caller]
fn check_fails(args: &[&str], code: i32, says: &str) {
    let output = small().run(args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(says), "{said}");
    assert!(output.stdout.is_empty(), "answers alone go to standard output");
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

#[test]
fn search_prints_place_title_and_snippet() {
    assert_snapshot!(stdout(&small().run(&["search", "water", "level"])), @r"
     1. Start  Start.md:5-7
        Water level [[Plan]] and [[Nowhere]].
    ");
}

#[test]
fn search_json_has_the_documented_fields() {
    let vault = small();
    let reply = json(&vault.run(&["search", "water", "--json", "--explain"]));
    let keys: Vec<&str> = reply.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["results", "mode", "stale", "embedder", "pending", "notes", "explain", "took_ms"]);
    let keys: Vec<&str> = reply["results"][0].as_object().unwrap().keys().map(String::as_str).collect();
    let wanted =
        ["path", "id", "title", "heading", "lines", "snippet", "marks", "score", "match_type", "explain"];
    assert_eq!(keys, wanted);
    assert_eq!(reply["results"][0]["id"], "s-1");
    assert_eq!(reply["results"][0]["match_type"], "bm25");
}

#[test]
fn inspect_json_has_the_documented_fields() {
    let vault = small();
    let reply = json(&vault.run(&["inspect", "Start", "--json"]));
    for key in [
        "path",
        "id",
        "hash",
        "frontmatter",
        "frontmatter_error",
        "properties",
        "tags",
        "headings",
        "blocks",
        "tasks",
        "links",
    ] {
        assert!(reply.get(key).is_some(), "{key}");
    }
    assert_eq!(reply["links"][0]["original"], "[[Plan]]");
    assert_eq!(reply["links"][0]["resolved"], "Plan.md");
    assert_eq!(reply["links"][1]["resolved"], Value::Null);
    assert_eq!(reply["frontmatter"], serde_json::json!({ "id": "s-1", "tags": ["tour"] }));
    assert_eq!(reply["tags"], serde_json::json!(["tour"]));
}

#[test]
fn read_prints_bytes_and_nothing_else() {
    assert_eq!(stdout(&small().run(&["read", "Plan"])), "The plan ^p1\n");
    assert_eq!(stdout(&small().run(&["read", "[[Plan#^p1]]"])), "The plan ^p1");
    assert_eq!(
        stdout(&small().run(&["read", "Start", "--lines", "6-7"])),
        "\nWater level [[Plan]] and [[Nowhere]].\n"
    );
}

#[test]
fn errors_exit_with_the_documented_codes() {
    check_fails(&["read", "Nope"], 3, "no note is named \"Nope\"");
    check_fails(&["read", "Plan", "--section", "X"], 3, "hint: the note has no headings");
    check_fails(&["read", "Plan", "--lines", "9-10"], 2, "Plan.md has 1 line, so there is no line 9");
    check_fails(&["read", "Plan", "--lines", "x"], 2, "is not a range of lines");
    check_fails(&["search", "x", "--created-after", "soon"], 2, "is not a date");
    check_fails(&["search", "x", "--path", "a["], 2, "is not a glob");
    check_fails(&["search"], 2, "required");
}

#[test]
fn a_missing_vault_is_named_in_the_error() {
    let vault = small();
    let missing = vault.root().join("nowhere");
    let output = vault.command(&["status"]).env("SIDENOTE_LOG", "").output().unwrap();
    assert!(output.status.success());
    let mut command = std::process::Command::new(program());
    let output = crate::support::clean_env(&mut command, vault.root())
        .args(["status", "--vault"])
        .arg(&missing)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains(missing.to_str().unwrap()));
}

#[test]
fn ambiguous_names_exit_with_4() {
    let vault = TestVault::new(&[("a/x.md", ""), ("b/x.md", "")]);
    let output = vault.run(&["read", "x", "--json"]);
    assert_eq!(output.status.code(), Some(4));
    let error: Value = serde_json::from_str(&stderr(&output)).unwrap();
    assert_eq!(error["error"]["kind"], "exists");
    assert_eq!(error["error"]["hint"], "give one path: a/x.md, b/x.md");
}

#[test]
fn settings_show_their_origin_and_refuse_what_they_do_not_know() {
    let vault = small();
    vault.write(".sidenote/config.toml", "[search]\nlimit = 3\n");
    let settings = json(&vault.run(&["config", "show", "--json"]));
    let limit = settings.as_array().unwrap().iter().find(|setting| setting["key"] == "search.limit").unwrap();
    assert_eq!(limit["value"], "3");
    assert!(limit["origin"].as_str().unwrap().ends_with(".sidenote/config.toml"));
    vault.write(".sidenote/config.toml", "[search]\nlimits = 3\n");
    let output = vault.run(&["status"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("search.limits, which is no setting"));
    vault.write(".sidenote/config.toml", "[embed]\nprovider = \"e5\"\n");
    assert!(stderr(&vault.run(&["status"])).contains("which only your own settings can do"));
}

#[test]
fn a_second_process_reads_while_the_first_writes() {
    let vault = small();
    let store = vault.store();
    let output = vault.run(&["search", "water", "--json"]);
    assert_eq!(json(&output)["results"].as_array().unwrap().len(), 1);
    let output = vault.run(&["index"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    vault.write("New.md", "water");
    assert_eq!(json(&vault.run(&["search", "water", "--json"]))["stale"], true);
    drop(store);
    assert_eq!(json(&vault.run(&["search", "water", "--json"]))["results"].as_array().unwrap().len(), 2);
}

#[test]
fn completions_and_help_know_every_command() {
    let vault = small();
    let help = stdout(&vault.run(&["--help"]));
    for name in ["index", "search", "read", "list", "tags", "recent", "links", "status", "config", "mcp"] {
        assert!(help.contains(&format!("\n  {name}")), "{name}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&vault.run(&["completions", shell])).contains("sidenote"), "{shell}");
    }
}

#[test]
fn status_counts_notes_and_links() {
    for is_first in [true, false] {
        let vault = small();
        if !is_first {
            vault.run(&["index", "--no-embed"]);
        }
        let status = json(&vault.run(&["status", "--json"]));
        assert_eq!(
            (&status["notes"], &status["links"], &status["unresolved"]),
            (&2.into(), &2.into(), &1.into()),
            "{is_first}"
        );
        assert_eq!((&status["stale"], &status["behind"]), (&false.into(), &0.into()), "{is_first}");
        let text = stdout(&vault.run(&["status"]));
        assert!(text.contains("2 (0 canvases, 0 other files, 0 excluded)"), "{text}");
    }
}

#[test]
fn an_empty_result_says_so() {
    let vault = small();
    for args in
        [&["list", "--tag", "none"][..], &["tasks"], &["backup", "list"], &["memory", "list", "--pinned"]]
    {
        let done = vault.run(args);
        assert!(done.status.success(), "{args:?}: {}", stderr(&done));
        assert!(stdout(&done).is_empty(), "{args:?}: {}", stdout(&done));
        assert!(stderr(&done).contains("nothing found"), "{args:?}: {}", stderr(&done));
        let json = vault.run(&[args, &["--json"]].concat());
        assert!(stderr(&json).is_empty(), "{args:?}: {}", stderr(&json));
    }
}

#[test]
fn a_snippet_that_is_cut_ends_with_an_ellipsis() {
    let long = "heron ".repeat(200);
    let lines = "heron\nstands\nin\nthe\nreeds\n".to_owned();
    for (text, is_cut) in [(long, true), ("A heron.\n".to_owned(), false)] {
        let vault = TestVault::new(&[("A.md", &text)]);
        let found = json(&vault.run(&["search", "heron", "--json"]));
        assert_eq!(found["results"][0]["snippet"].as_str().unwrap().ends_with(" …"), is_cut, "{found}");
        assert_eq!(stdout(&vault.run(&["search", "heron"])).trim_end().ends_with(" …"), is_cut);
        assert_eq!(stdout(&vault.run(&["memory", "search", "heron"])).contains(" …"), is_cut);
    }
    let shown = stdout(&TestVault::new(&[("A.md", &lines)]).run(&["search", "heron"]));
    assert!(shown.contains("the …") && !shown.contains("reeds"), "{shown}");
}

#[test]
fn a_check_shows_the_severity_of_each_problem() {
    let text = stdout(&small().run(&["check"]));
    let line = text.lines().find(|line| line.contains("Nowhere")).unwrap();
    assert!(["  error  ", "  warning  ", "  info  "].iter().any(|word| line.contains(word)), "{text}");
}

#[test]
fn the_first_example_of_the_help_finds_the_right_note() {
    let vault = TestVault::example();
    let reply = json(&vault.run(&["search", "how do links survive a rename", "--json"]));
    assert_eq!(reply["results"][0]["path"], "Tour/How links survive a rename.md");
}
