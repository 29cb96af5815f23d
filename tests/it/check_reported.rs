//! Tests which problems `check` reports: those of some paths, of what changed in git, of what git has staged, and those
//! that a baseline does not record.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::git::{git, init};
use crate::support::{TestVault, stderr, stdout};

/// Returns the problems that a run of `check --json` printed, without orphans, as `path:line code`.
#[track_caller]
fn problems(done: &Output) -> Vec<String> {
    let reply: Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(done)));
    let problems = reply["problems"].as_array().unwrap().iter();
    let shown = problems.filter(|problem| problem["code"] != "orphan").map(|problem| {
        format!(
            "{}:{} {}",
            problem["path"].as_str().unwrap(),
            problem["line"],
            problem["code"].as_str().unwrap()
        )
    });
    shown.collect()
}

/// Checks what is reported with these arguments.
#[track_caller]
fn check(vault: &TestVault, args: &[&str], expect: &[&str]) {
    let done = vault.run(&[&["check", "--json"], args].concat());
    assert_eq!(problems(&done), expect, "{args:?}");
}

fn vault_with_broken_links() -> TestVault {
    TestVault::new(&[
        ("docs/a.md", "[b](../b.md) [c](c.md)\n"),
        ("docs/deep/d.md", "[x](x.md)\n"),
        ("docs2.md", "[x](x.md)\n"),
        ("b.md", "[x](x.md)\n"),
    ])
}

#[test]
fn problems_of_named_paths_are_reported() {
    let vault = vault_with_broken_links();
    let cases: &[(&[&str], &[&str])] = &[
        (&["docs"], &["docs/a.md:1 broken-link", "docs/deep/d.md:1 broken-link"]),
        (&["docs/"], &["docs/a.md:1 broken-link", "docs/deep/d.md:1 broken-link"]),
        (&["docs/a.md", "b.md"], &["b.md:1 broken-link", "docs/a.md:1 broken-link"]),
        (&["./docs/../b.md"], &["b.md:1 broken-link"]),
        (
            &["."],
            &[
                "b.md:1 broken-link",
                "docs/a.md:1 broken-link",
                "docs/deep/d.md:1 broken-link",
                "docs2.md:1 broken-link",
            ],
        ),
    ];
    for (paths, expect) in cases {
        check(&vault, paths, expect);
    }
    assert_eq!(cases.len(), 5);
    let absolute = vault.root().join("docs/deep");
    check(&vault, &[absolute.to_str().unwrap()], &["docs/deep/d.md:1 broken-link"]);
    // From a subfolder, a path is one from there, or else one from the root of the vault.
    let from = |folder: &str, path: &str| {
        let mut command = vault.command(&["check", "--json", path]);
        problems(&command.current_dir(vault.root().join(folder)).output().unwrap())
    };
    assert_eq!(from("docs", "deep"), ["docs/deep/d.md:1 broken-link"]);
    assert_eq!(from("docs", "b.md"), ["b.md:1 broken-link"]);
    assert_eq!(from("docs", "../b.md"), ["b.md:1 broken-link"]);
    // The counts are those of what is reported.
    assert!(stdout(&vault.run(&["check", "b.md"])).ends_with("4 notes: 1 broken-link\n"));
}

#[test]
fn a_path_that_is_not_there_is_refused() {
    let vault = vault_with_broken_links();
    vault.write(".github/README.md", "[x](x.md)\n");
    let done = vault.run(&["check", "dox"]);
    assert_eq!((done.status.code(), stdout(&done)), (Some(3), String::new()));
    assert!(stderr(&done).contains("the vault has no note or folder dox"), "{}", stderr(&done));
    let other = tempfile::tempdir().unwrap();
    let done = vault.run(&["check", other.path().to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
    // A hidden file is part of no vault. A hook that passes its name must not fail.
    let done = vault.run(&["check", "--strict", ".github/README.md"]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(stderr(&done).contains(".github/README.md is hidden, so it is not checked"), "{}", stderr(&done));
}

#[test]
fn a_check_makes_no_index_and_writes_nothing() {
    let vault = vault_with_broken_links();
    let before = vault.contents();
    let done = vault.run(&["check", "--strict"]);
    assert_eq!(done.status.code(), Some(8));
    assert!(!vault.root().join(".sidenote").exists() && vault.contents() == before);
    // The reply is the same with an index.
    vault.run(&["index", "--no-embed"]);
    assert_eq!(stdout(&vault.run(&["check", "--json"])), stdout(&vault.run(&["check", "--json", "--fix"])));
    assert_eq!(stdout(&vault.run(&["check"])), stdout(&done));
}

/// Commits everything in a vault.
#[track_caller]
fn commit(vault: &TestVault) {
    git(vault.root(), &["add", "--all"]);
    git(vault.root(), &["commit", "-qm", "next"]);
}

#[test]
fn problems_of_what_changed_since_a_revision_are_reported() {
    let vault = TestVault::new(&[
        ("old.md", "[x](x.md)\n"),
        ("a.md", "[b](b.md#part) [gone](gone.md) [moved](moved.md)\n"),
        ("b.md", "# Part\n"),
        ("gone.md", "gone\n"),
        ("moved.md", "moved to another place\n"),
        (".gitignore", ".home/\n"),
    ]);
    init(&vault);
    check(&vault, &["--since", "main"], &[]);
    git(vault.root(), &["switch", "-qc", "side"]);
    // Links of a note that did not change break where their targets change, go and move.
    vault.write("b.md", "# Another part\n");
    vault.remove("gone.md");
    vault.rename("moved.md", "deep/moved.md");
    let broken = ["a.md:1 broken-link", "a.md:1 broken-link", "a.md:1 broken-subpath"];
    let sorted = |mut found: Vec<String>| {
        found.sort();
        found
    };
    let since = |revision: &str| sorted(problems(&vault.run(&["check", "--json", "--since", revision])));
    assert_eq!(since("main"), broken);
    commit(&vault);
    assert_eq!(since("main"), broken);
    assert_eq!(since("HEAD"), [] as [&str; 0]);
    // A new file counts, also before git knows it, and what the other branch did meanwhile does not.
    vault.write("new.md", "[x](x.md)\n");
    assert_eq!(since("HEAD"), ["new.md:1 broken-link"]);
    vault.remove("new.md");
    git(vault.root(), &["switch", "-q", "main"]);
    vault.write("old.md", "[y](y.md)\n");
    commit(&vault);
    git(vault.root(), &["switch", "-q", "side"]);
    assert_eq!(since("main"), broken);
    // Paths and changes can be combined.
    check(&vault, &["--since", "main", "b.md"], &[]);
    // Line ends that git converts are no change.
    vault.write("old.md", "[x](x.md)\r\n");
    assert_eq!(since("main"), broken);
}

#[test]
fn what_git_has_staged_is_checked() {
    let vault = TestVault::new(&[("a.md", "[b](b.md)\n"), ("b.md", "b\n"), (".gitignore", ".home/\n")]);
    init(&vault);
    vault.write("a.md", "[new](new.md) [x](x.md)\n");
    check(&vault, &["--staged"], &[]);
    // A target that is not staged will not be in the commit.
    vault.write("new.md", "new\n");
    git(vault.root(), &["add", "a.md"]);
    vault.write("a.md", "mended on the disk\n");
    check(&vault, &["--staged"], &["a.md:1 broken-link", "a.md:1 broken-link"]);
    check(&vault, &[], &[]);
    git(vault.root(), &["add", "new.md"]);
    check(&vault, &["--staged"], &["a.md:1 broken-link"]);
    check(&vault, &["--staged", "--since", "HEAD"], &["a.md:1 broken-link"]);
    check(&vault, &["--staged", "--since", "HEAD", "new.md"], &[]);
    // A staged deletion counts, though the file is there.
    git(vault.root(), &["rm", "-q", "--cached", "new.md"]);
    check(&vault, &["--staged"], &["a.md:1 broken-link", "a.md:1 broken-link"]);
    assert!(!vault.root().join(".sidenote").exists());
}

#[test]
fn a_hook_checks_the_index_of_the_commit_in_progress() {
    let vault = TestVault::new(&[("a.md", "a\n"), (".gitignore", ".home/\n")]);
    init(&vault);
    vault.write("a.md", "[x](x.md)\n");
    // `git commit -a` stages in an index of its own.
    let other = vault.root().join(".git/next-index");
    fs::copy(vault.root().join(".git/index"), &other).unwrap();
    let add = std::process::Command::new("git")
        .current_dir(vault.root())
        .env("GIT_INDEX_FILE", &other)
        .args(["add", "a.md"])
        .status()
        .unwrap();
    assert!(add.success());
    check(&vault, &["--staged"], &[]);
    let mut command = vault.command(&["check", "--json", "--staged"]);
    assert_eq!(problems(&command.env("GIT_INDEX_FILE", &other).output().unwrap()), ["a.md:1 broken-link"]);
    // The variables of another repository do not count.
    let mut command = vault.command(&["check", "--json", "--staged"]);
    command.env("GIT_INDEX_FILE", &other).env("GIT_DIR", Path::new("/nowhere/.git"));
    assert_eq!(problems(&command.output().unwrap()), [] as [&str; 0]);
}

#[test]
fn what_git_cannot_tell_is_an_error() {
    let vault = TestVault::new(&[("a.md", "a\n"), (".gitignore", ".home/\n")]);
    let cases = [
        (&["check", "--staged"][..], 3, "is in no git repository"),
        (&["check", "--since", "HEAD"][..], 3, "is in no git repository"),
    ];
    for (args, code, told) in cases {
        let done = vault.run(args);
        assert_eq!(done.status.code(), Some(code), "{args:?}");
        assert!(stderr(&done).contains(told), "{}", stderr(&done));
    }
    assert_eq!(cases.len(), 2);
    init(&vault);
    let done = vault.run(&["check", "--since", "no-such-branch"]);
    assert_eq!(done.status.code(), Some(3));
    assert!(stderr(&done).contains("git knows no revision \"no-such-branch\""), "{}", stderr(&done));
    // A conflict has no staged content.
    git(vault.root(), &["switch", "-qc", "side"]);
    vault.write("a.md", "side\n");
    commit(&vault);
    git(vault.root(), &["switch", "-q", "main"]);
    vault.write("a.md", "main\n");
    commit(&vault);
    let merge = std::process::Command::new("git")
        .current_dir(vault.root())
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "side"])
        .output()
        .unwrap();
    assert!(!merge.status.success());
    let done = vault.run(&["check", "--staged"]);
    assert_eq!(done.status.code(), Some(5), "{}", stderr(&done));
    assert!(stderr(&done).contains("a.md is in conflict"), "{}", stderr(&done));
    check(&vault, &[], &["a.md:1 conflict-markers"]);
}

/// Records the problems of a vault, changes it, and checks it with the baseline: what is new, and how many problems are
/// known and fixed.
#[track_caller]
fn check_baseline(
    files: &[(&str, &str)],
    change: impl FnOnce(&TestVault),
    expect: &[&str],
    counts: (usize, usize),
) {
    let vault = TestVault::new(files);
    let file = vault.root().join(".home/baseline.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let file = file.to_str().unwrap();
    let done = vault.run(&["check", "--write-baseline", file]);
    assert!(done.status.success(), "{}", stderr(&done));
    change(&vault);
    let done = vault.run(&["check", "--json", "--strict", "--baseline", file]);
    assert_eq!(problems(&done), expect);
    let reply: Value = serde_json::from_slice(&done.stdout).unwrap();
    let (known, fixed) = counts;
    assert_eq!(reply["baseline"], json!({ "known": known, "fixed": fixed }));
    assert_eq!(done.status.code(), Some(if expect.is_empty() { 0 } else { 8 }));
}

#[test]
fn a_baseline_hides_the_problems_that_it_records() {
    let files = &[("a.md", "[b](b.md)\n\n[x](x.md)\n"), ("b.md", "[a](a.md) [x](x.md) [x](x.md)\n")];
    check_baseline(files, |_| {}, &[], (3, 0));
    // A line that moves keeps its problems, and so does one that changes, if its link means the same.
    check_baseline(files, |vault| vault.write("a.md", "# New\n\n[b](b.md)\n\n  [x](x.md)\n"), &[], (3, 0));
    check_baseline(files, |vault| vault.write("a.md", "[b](b.md)\n\nsee [x](x.md)\n"), &[], (3, 0));
    check_baseline(
        files,
        |vault| vault.write("a.md", "[b](b.md)\n\n[x](y.md)\n"),
        &["a.md:3 broken-link"],
        (2, 1),
    );
    // Two equal problems need two entries.
    check_baseline(
        files,
        |vault| vault.write("a.md", "[b](b.md)\n\n[x](x.md)\n\n[x](x.md)\n"),
        &["a.md:5 broken-link"],
        (3, 0),
    );
    check_baseline(files, |vault| vault.write("b.md", "[a](a.md) [x](x.md)\n"), &[], (2, 1));
    // The problems of a note that was renamed are known; those of another note are not.
    check_baseline(
        files,
        |vault| {
            vault.rename("b.md", "c.md");
            vault.write("a.md", "[b](c.md)\n\n[x](x.md)\n");
        },
        &[],
        (3, 0),
    );
    check_baseline(
        files,
        |vault| {
            vault.write("a.md", "[b](b.md)\n");
            vault.write("c.md", "[a](a.md)\n\n[x](x.md)\n");
        },
        &["c.md:3 broken-link"],
        (2, 1),
    );
}

/// A rename changes the text of links, and of the lines in which a known problem stands.
#[test]
fn known_problems_stay_known_after_a_rename() {
    let files = &[
        ("a.md", "# A\n\nSee [[Drift#^none]], [[Drift]] and [[Gone]].\n\n[[a#Nothing]]\n"),
        ("Drift.md", "# Drift\n\n[other](sub/b.md#none) [gone](sub/gone.md)\n"),
        ("sub/b.md", "# B\n\n[drift](../Drift.md#none)\n"),
        (".obsidian/app.json", "{}"),
    ];
    let sidenote = |vault: &TestVault, args: &[&str]| {
        let done = vault.run(args);
        assert!(done.status.success(), "{}", stderr(&done));
    };
    type Change<'c> = &'c dyn Fn(&TestVault);
    let cases: [Change<'_>; 5] = [
        &|vault| sidenote(vault, &["rename", "Drift", "Drift of the sensor"]),
        &|vault| sidenote(vault, &["move", "Drift.md", "sub/"]),
        &|vault| sidenote(vault, &["rename", "a", "An index"]),
        &|vault| {
            sidenote(vault, &["move", "Drift.md", "sub/deep/"]);
            sidenote(vault, &["rename", "Drift", "Sensor"]);
            sidenote(vault, &["move", "sub/b.md", "b.md"]);
        },
        // By hand.
        &|vault| {
            vault.rename("Drift.md", "Sensor.md");
            vault.write("a.md", vault.read("a.md").replace("Drift", "Sensor"));
            vault.write("sub/b.md", vault.read("sub/b.md").replace("Drift", "Sensor"));
        },
    ];
    assert_eq!(cases.len(), 5);
    for change in cases {
        check_baseline(files, change, &[], (6, 0));
    }
    // A link to the same part of another note is a new problem.
    check_baseline(
        files,
        |vault| vault.write("sub/b.md", "# B\n\n[drift](../a.md#none)\n"),
        &["sub/b.md:3 broken-subpath"],
        (5, 1),
    );
}

#[test]
fn a_baseline_of_whole_notes_is_by_note() {
    let vault = TestVault::new(&[("a.md", "a\n")]);
    let file = vault.root().join(".home/baseline.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(
        stdout(&vault.run(&["check", "--write-baseline", file])),
        format!("1 problem recorded in {file}\n")
    );
    insta::assert_snapshot!(fs::read_to_string(file).unwrap(), @r#"
    {
      "version": 1,
      "problems": [
        {
          "path": "a.md",
          "code": "orphan",
          "fingerprint": "c2782d5bc89b5b6e8a3c0c65adaba53a",
          "count": 1,
          "message": "links to no note, and no note links to it"
        }
      ]
    }
    "#);
    assert_eq!(
        stdout(&vault.run(&["check", "--baseline", file])),
        "1 note: no problems\nbaseline: 1 known, 0 fixed\n"
    );
    vault.rename("a.md", "b.md");
    let told = stdout(&vault.run(&["check", "--baseline", file]));
    assert_eq!(
        told,
        "b.md  info  orphan  links to no note, and no note links to it\n1 note: 1 orphan\nbaseline: 0 known, 1 fixed\n"
    );
}

#[test]
fn a_file_that_is_no_baseline_is_refused() {
    let vault = TestVault::new(&[("a.md", "a\n")]);
    let cases = [
        ("", 2, "is not a baseline"),
        ("[]", 2, "is not a baseline"),
        ("{\"version\": 2, \"problems\": []}", 2, "has version 2, which is unknown"),
    ];
    for (text, code, told) in cases {
        vault.write(".home/baseline.json", text);
        let file = vault.root().join(".home/baseline.json");
        let done = vault.run(&["check", "--baseline", file.to_str().unwrap()]);
        assert_eq!(done.status.code(), Some(code), "{text}");
        assert!(stderr(&done).contains(told), "{}", stderr(&done));
    }
    assert_eq!(cases.len(), 3);
    let done = vault.run(&["check", "--baseline", "no-such-file.json"]);
    assert_eq!(done.status.code(), Some(3));
    assert!(stderr(&done).contains("hint: record the present problems"), "{}", stderr(&done));
}

#[test]
fn a_baseline_replaces_only_a_baseline() {
    let vault = TestVault::new(&[("a.md", "[b](b.md)\n"), ("note.md", "# Precious\n")]);
    let write =
        |file: &str| vault.run(&["check", "--write-baseline", vault.root().join(file).to_str().unwrap()]);
    for file in ["note.md", "a.md"] {
        let before = vault.read(file);
        let done = write(file);
        assert_eq!(done.status.code(), Some(4), "{}", stderr(&done));
        assert!(stderr(&done).contains("is there, and is no baseline"), "{}", stderr(&done));
        assert_eq!(vault.read(file), before);
    }
    for _ in 0..2 {
        assert!(write("new.json").status.success());
    }
}
