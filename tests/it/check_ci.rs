//! Tests the hooks for pre-commit and the action for GitHub, which run the program as CI does.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::git::{git, init};
use crate::support::{TestVault, clean_env, program, repository, stderr};

fn file(name: &str) -> String {
    fs::read_to_string(repository().join(name)).unwrap()
}

/// Returns a command in a folder whose `sidenote` is the program under test.
fn command(name: &str, here: &Path) -> Command {
    let mut command = Command::new(name);
    let folder = program().parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path))).unwrap();
    clean_env(&mut command, &here.join(".home")).env("PATH", path).current_dir(here);
    command
}

fn vault() -> TestVault {
    TestVault::new(&[
        ("docs/a.md", "[b](b.md)\n"),
        ("docs/b.md", "[a](a.md)\n"),
        ("c.md", "[x](x.md)\n"),
        (".gitignore", ".home/\n"),
    ])
}

#[test]
fn the_hooks_of_pre_commit_check_what_is_staged() {
    let hooks = file(".pre-commit-hooks.yaml");
    let entries: Vec<&str> = hooks.lines().filter_map(|line| line.strip_prefix("  entry: ")).collect();
    assert_eq!(entries, ["sidenote check --strict --staged", "sidenote check --strict"]);
    let vault = vault();
    init(&vault);
    let run = |entry: &str, files: &[&str]| {
        let mut words = entry.split(' ');
        command(words.next().unwrap(), vault.root()).args(words).args(files).output().unwrap()
    };
    let all = run(entries[0], &[]);
    assert_eq!(all.status.code(), Some(8), "{}", stderr(&all));
    git(vault.root(), &["rm", "-q", "c.md"]);
    assert!(run(entries[0], &[]).status.success());
    vault.write("c.md", "[x](x.md)\n");
    assert!(run(entries[1], &["docs/a.md", "docs/b.md"]).status.success());
    assert_eq!(run(entries[1], &["docs/a.md", "c.md"]).status.code(), Some(8));
}

/// Returns the script of the action's first step.
#[cfg(unix)]
fn script() -> String {
    let action = file("action.yml");
    let step = action.split("      run: |\n").nth(1).unwrap();
    let lines = step.lines().map_while(|line| line.strip_prefix("        "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Runs the action with inputs other than the default ones, and checks its exit code and what it prints.
#[cfg(unix)]
#[track_caller]
fn check_action(vault: &TestVault, inputs: &[(&str, &str)], code: i32, expect: &str) {
    let mut bash = command("bash", vault.root());
    for (name, default) in
        [("VAULT", "."), ("PATHS", ""), ("STRICT", "error"), ("SINCE", ""), ("BASELINE", ""), ("SARIF", "")]
    {
        bash.env(format!("CHECK_{name}"), default);
    }
    for (name, value) in inputs {
        bash.env(format!("CHECK_{name}"), value);
    }
    // As the runner of GitHub starts it.
    let done = bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script()]).output().unwrap();
    assert_eq!(
        (done.status.code(), crate::support::stdout(&done).as_str()),
        (Some(code), expect),
        "{inputs:?}: {}",
        stderr(&done)
    );
}

#[cfg(unix)]
#[test]
fn the_action_annotates_and_fails_as_its_inputs_say() {
    let vault = vault();
    init(&vault);
    let broken =
        "::error file=c.md,line=1,endLine=1,col=1,endColumn=9,title=broken-link::no such file: [x](x.md)\n";
    let orphan = "::notice file=c.md,title=orphan::links to no note, and no note links to it\n";
    let both = format!("{broken}{orphan}");
    check_action(&vault, &[], 8, &both);
    check_action(&vault, &[("STRICT", "off")], 0, &both);
    check_action(&vault, &[("PATHS", "docs/a.md\ndocs/b.md\n"), ("STRICT", "info")], 0, "");
    check_action(&vault, &[("PATHS", "c.md")], 8, &both);
    check_action(&vault, &[("VAULT", "docs"), ("STRICT", "info")], 0, "");
    check_action(&vault, &[("SINCE", "HEAD")], 0, "");
    let baseline = vault.root().join(".home/baseline.json");
    assert!(vault.run(&["check", "--write-baseline", baseline.to_str().unwrap()]).status.success());
    check_action(&vault, &[("BASELINE", ".home/baseline.json"), ("STRICT", "info")], 0, "");
    check_action(&vault, &[("SARIF", ".home/check.sarif")], 8, &both);
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(vault.root().join(".home/check.sarif")).unwrap()).unwrap();
    assert_eq!(report["runs"][0]["results"].as_array().unwrap().len(), 2);
    // Every input reaches the script.
    let action = file("action.yml");
    for name in ["vault", "paths", "strict", "since", "baseline", "sarif"] {
        let variable = format!("CHECK_{}: ${{{{ inputs.{name} }}}}", name.to_uppercase());
        assert!(action.contains(&variable), "{variable}");
    }
}
