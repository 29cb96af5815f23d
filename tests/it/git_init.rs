//! `sidenote git init`: ignore files, attributes, the merge driver and the hook of a repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sidenote::markdown::line_list::{missing_lines, with_lines};

use crate::git::{git, init};
use crate::support::{TestVault, clean_env, json, program, stderr, stdout, symlink};

const ALL: [&str; 5] = ["git", "init", "--attributes", "--driver", "--hook"];

fn repository() -> TestVault {
    let vault = TestVault::new(&[("a.md", "x\n"), (".gitignore", ".home/\n")]);
    git(vault.root(), &["init", "-q", "-b", "main"]);
    vault
}

/// Runs the command and returns `STATE TARGET` of each step.
fn steps(vault: &TestVault, args: &[&str]) -> Vec<String> {
    let reply = json(vault, "2026-01-01", args);
    let step = |step: &Value| {
        format!("{} {}", step["state"].as_str().unwrap(), name(step["target"].as_str().unwrap()))
    };
    reply["steps"].as_array().unwrap().iter().map(step).collect()
}

/// Returns the path of a hook from the folder of hooks on.
fn name(target: &str) -> String {
    if target.ends_with("pre-commit") { "pre-commit".to_owned() } else { target.to_owned() }
}

/// Lists all files with their bytes, but those of git that no step writes.
fn files(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(root).sort_by_file_name().into_iter().map(Result::unwrap) {
        if entry.file_type().is_file() {
            found.push((entry.path().display().to_string(), fs::read(entry.path()).unwrap()));
        }
    }
    found
}

#[test]
fn lines_are_added_and_none_is_replaced() {
    let cases = [
        ("", "x\ny\n"),
        ("x\n", "x\ny\n"),
        ("z", "z\nx\ny\n"),
        ("z\r\n", "z\r\nx\r\ny\r\n"),
        ("  y \nx", "  y \nx"),
    ];
    assert_eq!(cases.len(), 5);
    for (text, expected) in cases {
        assert_eq!(with_lines(text, &missing_lines(text, &["x", "y"])), expected, "{text:?}");
    }
}

#[test]
fn a_repository_is_prepared_once() {
    let vault = repository();
    let before = files(vault.root());
    let all = [
        ".sidenote/.gitignore",
        ".sidenote/records/.gitignore",
        ".gitattributes",
        "merge.sidenote.name",
        "merge.sidenote.driver",
        ".sidenote/check-baseline.json",
        "pre-commit",
    ];
    let with = |state: &str| all.map(|target| format!("{state} {target}"));
    assert_eq!(steps(&vault, &[&ALL[..], &["--dry-run"]].concat()), with("add"));
    assert_eq!(files(vault.root()), before);
    assert_eq!(steps(&vault, &ALL), with("add"));
    let prepared = files(vault.root());
    let text = |path: &str| fs::read_to_string(vault.root().join(path)).unwrap();
    assert_eq!(text(".gitattributes"), "*.md merge=sidenote\n.sidenote/records/**/*.jsonl merge=union\n");
    assert_eq!(text(".sidenote/.gitignore"), "index/\nbackups/\nlocal/\n");
    let driver = git(vault.root(), &["config", "merge.sidenote.driver"]);
    assert!(driver.contains("sidenote merge-driver -- %O %A %B %L %P"), "{driver}");
    let command = "sidenote --vault '.' check --staged --since HEAD --strict --baseline './.sidenote/check-baseline.json'";
    assert!(text(".git/hooks/pre-commit").contains(command));
    // Nothing is left to do.
    assert_eq!(steps(&vault, &ALL), with("present"));
    assert_eq!(files(vault.root()), prepared);
    assert_eq!(git(vault.root(), &["check-attr", "merge", "x/b.md"]), "x/b.md: merge: sidenote\n");
}

#[test]
fn what_is_there_is_left_and_the_lines_to_add_are_printed() {
    let vault = repository();
    vault.write(".gitattributes", "*.md merge=union\r\n");
    vault.write(".sidenote/.gitignore", "index/\nbackups/\n");
    vault.write(".git/hooks/pre-commit", "#!/bin/sh\nmake lint\n");
    git(vault.root(), &["config", "merge.sidenote.driver", "mine"]);
    let done = vault.run(&ALL);
    assert!(done.status.success(), "{}", stderr(&done));
    let text = |path: &str| fs::read_to_string(vault.root().join(path)).unwrap();
    assert_eq!(text(".gitattributes"), "*.md merge=union\r\n.sidenote/records/**/*.jsonl merge=union\r\n");
    assert_eq!(text(".sidenote/.gitignore"), "index/\nbackups/\nlocal/\n");
    assert_eq!(text(".git/hooks/pre-commit"), "#!/bin/sh\nmake lint\n");
    assert_eq!(git(vault.root(), &["config", "merge.sidenote.driver"]), "mine\n");
    assert_eq!(git(vault.root(), &["config", "--get-regexp", "^merge"]), "merge.sidenote.driver mine\n");
    let said = stdout(&done);
    assert!(said.contains("there is a hook already") && said.contains("it is set to: mine"), "{said}");
    assert!(said.contains("  sidenote --vault '.' check --staged --since HEAD --strict"), "{said}");
    assert!(said.contains(".gitattributes sets another merge for: *.md"), "{said}");
}

#[test]
fn a_vault_in_a_subfolder_a_worktree_and_another_folder_of_hooks_are_prepared() {
    let repository =
        TestVault::new(&[("my notes/a.md", "x\n"), ("other/b.txt", "x\n"), (".gitignore", ".home/\n")]);
    git(repository.root(), &["init", "-q", "-b", "main"]);
    git(repository.root(), &["add", "--all"]);
    git(repository.root(), &["commit", "-qm", "first"]);
    git(repository.root(), &["config", "core.hooksPath", ".hooks"]);
    let vault = repository.root().join("my notes");
    let run = |folder: &Path| {
        let mut command = Command::new(program());
        clean_env(&mut command, &repository.root().join(".home")).arg("--vault").arg(folder);
        let done = command.args(ALL).output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
        stdout(&done)
    };
    drop(run(&vault));
    assert!(vault.join(".gitattributes").exists() && !repository.root().join(".gitattributes").exists());
    let hook = fs::read_to_string(repository.root().join(".hooks/pre-commit")).unwrap();
    assert!(hook.contains("sidenote --vault './my notes' check"), "{hook}");
    let tree = tempfile::tempdir().unwrap();
    let side = tree.path().join("side");
    git(repository.root(), &["worktree", "add", "-q", "-b", "side", side.to_str().unwrap()]);
    let said = run(&side.join("my notes"));
    assert!(said.contains("present in merge.sidenote.driver"), "{said}");
    assert!(side.join(".hooks/pre-commit").exists());
    // Hooks of other repositories are not touched.
    let elsewhere = tempfile::tempdir().unwrap();
    git(repository.root(), &["config", "core.hooksPath", elsewhere.path().to_str().unwrap()]);
    let said = run(&vault);
    assert!(said.contains("outside of this repository"), "{said}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_vault_without_a_repository_is_an_error() {
    let vault = TestVault::new(&[("a.md", "x\n")]);
    let done = vault.run(&["git", "init"]);
    assert_eq!(done.status.code(), Some(3));
    assert!(stderr(&done).contains("is in no git repository"), "{}", stderr(&done));
}

#[test]
fn nothing_is_written_through_a_link_of_the_repository() {
    let outside = tempfile::tempdir().unwrap();
    for (place, args) in [(".git/config", "--driver"), (".git/hooks", "--hook")] {
        let vault = repository();
        let disk = vault.root().join(place);
        let elsewhere = outside.path().join(place.trim_start_matches(".git/"));
        fs::rename(&disk, &elsewhere).unwrap();
        let before = files(outside.path());
        symlink(&elsewhere, &disk);
        let done = vault.run(&["git", "init", args]);
        let said = format!("{}{}", stdout(&done), stderr(&done));
        assert!(
            said.contains("is a symbolic link") || said.contains("outside of this repository"),
            "{place}: {said}"
        );
        assert_eq!(files(outside.path()), before, "{place}: {said}");
        fs::remove_dir_all(&elsewhere).or_else(|_| fs::remove_file(&elsewhere)).unwrap();
    }
}

/// Commits everything, with the program on the path. Returns what git and the hook say, and whether the commit was made.
#[cfg(unix)]
fn try_commit(vault: &TestVault) -> (bool, String) {
    let path = std::env::var_os("PATH").unwrap();
    let folders = [Path::new(&program()).parent().unwrap().to_owned()].into_iter();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path))).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new("git");
        clean_env(&mut command, &vault.root().join(".home")).env("PATH", &path);
        command.env("GIT_CONFIG_NOSYSTEM", "1").current_dir(vault.root());
        command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]);
        command.args(args).output().unwrap()
    };
    assert!(run(&["add", "--all"]).status.success());
    let done = run(&["commit", "-qm", "next"]);
    (done.status.success(), format!("{}{}", stdout(&done), stderr(&done)))
}

#[cfg(unix)]
#[test]
fn the_hook_judges_what_a_commit_changes_and_lets_known_problems_pass() {
    for has_commits in [true, false] {
        let vault = TestVault::new(&[("old.md", "See [gone](gone.md).\n"), (".gitignore", ".home/\n")]);
        git(vault.root(), &["init", "-q", "-b", "main"]);
        if has_commits {
            git(vault.root(), &["add", "--all"]);
            git(vault.root(), &["commit", "-qm", "first"]);
        }
        let said = stdout(&vault.run(&ALL));
        assert!(
            said.contains("added to .sidenote/check-baseline.json (the hook lets 2 problems of today pass)"),
            "{said}"
        );
        // Its own files, and a note with an old problem.
        let (is_made, said) = try_commit(&vault);
        assert!(is_made, "{has_commits}: {said}");
        vault.write("old.md", "More.\n\nSee [gone](gone.md).\n");
        let (is_made, said) = try_commit(&vault);
        assert!(is_made, "{has_commits}: {said}");
        // A new problem in a note that the commit changes.
        vault.write("new.md", "See [none](none.md).\n");
        let (is_made, said) = try_commit(&vault);
        assert!(!is_made && said.contains("new.md:1:5") && !said.contains("old.md"), "{has_commits}: {said}");
        assert!(said.contains("--write-baseline") && said.contains("git commit --no-verify"), "{said}");
        // A link to a note that the commit removes.
        vault.write("new.md", "See [old](old.md).\n");
        assert!(try_commit(&vault).0);
        vault.remove("old.md");
        let (is_made, said) = try_commit(&vault);
        assert!(!is_made && said.contains("new.md:1:5"), "{has_commits}: {said}");
    }
}

#[cfg(unix)]
#[test]
fn the_hook_lets_a_rename_pass_in_a_vault_below_the_top() {
    let vault = TestVault::new(&[(".gitignore", ".home/\n")]);
    let notes = vault.root().join("it's notes");
    std::fs::create_dir_all(&notes).unwrap();
    vault.write("it's notes/a.md", "See [[Drift#^none]] and [[b]].\n");
    vault.write("it's notes/Drift.md", "# Drift\n\nIt drifts.\n");
    vault.write("it's notes/b.md", "See [[a]].\n");
    init(&vault);
    let run = |args: &[&str]| {
        let args = [&["--vault", notes.to_str().unwrap()], args].concat();
        let mut command = Command::new(program());
        clean_env(&mut command, &vault.root().join(".home")).args(&args).current_dir(vault.root());
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
        stdout(&done)
    };
    let command = r"sidenote --vault './it'\''s notes' check --write-baseline './it'\''s notes/.sidenote/check-baseline.json'";
    let said = run(&ALL);
    assert!(said.contains(command), "{said}");
    let (is_made, said) = try_commit(&vault);
    assert!(is_made, "{said}");
    run(&["rename", "Drift", "Drift of the sensor"]);
    assert!(vault.read("it's notes/a.md").contains("[[Drift of the sensor#^none]]"));
    let (is_made, said) = try_commit(&vault);
    assert!(is_made, "{said}");
    vault.write("it's notes/b.md", "See [[a#^none]].\n");
    let (is_made, said) = try_commit(&vault);
    assert!(!is_made && said.contains("b.md:1:5"), "{said}");
    assert!(said.contains(command), "{said}");
}
