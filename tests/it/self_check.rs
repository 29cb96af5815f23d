//! Tests `sidenote self-check`: every step succeeds and nothing is left, and a step that fails is reported.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{TestVault, stderr, stdout};

/// Runs `self-check` with a temporary folder, and more variables.
fn self_check(vault: &TestVault, temporary: &Path, variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = vault.command(&[&["self-check"], args].concat());
    command
        .env("TMPDIR", temporary)
        .env("TMP", temporary)
        .env("TEMP", temporary)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn states(done: &Output) -> Vec<(String, String)> {
    let reply: Value = serde_json::from_str(&stdout(done)).unwrap_or_else(|_| panic!("{}", stderr(done)));
    let text = |step: &Value, name: &str| step[name].as_str().unwrap().to_owned();
    reply["steps"].as_array().unwrap().iter().map(|step| (text(step, "step"), text(step, "state"))).collect()
}

#[test]
fn every_step_succeeds_and_nothing_is_left() {
    let (vault, temporary) = (TestVault::new(&[("a.md", "Mine.")]), tempfile::tempdir().unwrap());
    let before = vault.contents();
    // Settings of the user and of the environment are not used.
    // The time is enough for an emulator or a busy machine.
    let args = ["--json", "--time-limit", "600"];
    let done = self_check(&vault, temporary.path(), &[("SIDENOTE_SEARCH_LIMIT", "0")], &args);
    assert_eq!(done.status.code(), Some(0), "{} {}", stdout(&done), stderr(&done));
    let states = states(&done);
    let steps = [
        "prepare a temporary vault",
        "write notes",
        "search by words",
        "search by meaning",
        "rename a note with links",
        "undo the rename",
        "recover from a kill",
        "find an edit from outside",
        "serve MCP",
        "check the vault",
    ];
    assert_eq!(states, steps.map(|step| (step.to_owned(), "ok".to_owned())));
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(vault.contents(), before);
    assert!(!vault.root().join(".sidenote").exists());
}

#[test]
fn a_step_that_fails_is_reported_and_its_vault_is_kept() {
    let (vault, temporary) = (TestVault::new(&[]), tempfile::tempdir().unwrap());
    // The first process that changes a file is killed.
    let done = self_check(&vault, temporary.path(), &[("SIDENOTE_FAILPOINT", "1")], &[]);
    assert_eq!(done.status.code(), Some(8), "{}", stderr(&done));
    let printed = stdout(&done);
    assert!(printed.contains("  write notes: `sidenote new` ended with "), "{printed}");
    assert_eq!(printed.lines().filter(|line| line.starts_with("failed ")).count(), 1, "{printed}");
    assert_eq!(printed.lines().filter(|line| line.starts_with("skipped")).count(), 8, "{printed}");
    let kept = fs::read_dir(temporary.path()).unwrap().next().unwrap().unwrap().path();
    assert!(kept.join("vault/Harbour.md").exists());
    assert!(printed.contains(&format!("the vault is kept in {}", kept.display())), "{printed}");
}

#[test]
fn a_temporary_folder_that_cannot_be_written_is_reported() {
    let vault = TestVault::new(&[]);
    let done = self_check(&vault, Path::new("/nowhere at all"), &[], &["--json"]);
    assert_eq!(done.status.code(), Some(8), "{}", stderr(&done));
    let states = states(&done);
    assert_eq!(states[0], ("prepare a temporary vault".to_owned(), "failed".to_owned()));
    assert!(states[1..].iter().all(|(_, state)| state == "skipped"), "{states:?}");
    assert!(stdout(&done).contains("set TMPDIR"));
}

#[test]
fn a_process_that_takes_longer_than_the_time_limit_fails_its_step() {
    let (vault, temporary) = (TestVault::new(&[]), tempfile::tempdir().unwrap());
    // No process ends within half of that.
    let args = ["--json", "--time-limit", "0.0001"];
    let done = self_check(&vault, temporary.path(), &[], &args);
    assert_eq!(done.status.code(), Some(8), "{}", stderr(&done));
    let states = states(&done);
    assert_eq!(states[1], ("write notes".to_owned(), "failed".to_owned()));
    assert!(states[2..].iter().all(|(_, state)| state == "skipped"), "{states:?}");
    for said in ["there is no answer in time", "--time-limit 600"] {
        assert!(stdout(&done).contains(said), "{}", stdout(&done));
    }
}

#[test]
fn a_time_limit_is_more_than_nothing_and_at_most_a_day() {
    let (vault, temporary) = (TestVault::new(&[]), tempfile::tempdir().unwrap());
    for limit in ["0", "-1", "NaN", "inf", "86400.5", "a minute"] {
        let done = self_check(&vault, temporary.path(), &[], &[&format!("--time-limit={limit}")]);
        assert_eq!(done.status.code(), Some(2), "{limit}: {}", stdout(&done));
        assert!(stderr(&done).contains("--time-limit <SECONDS>"), "{limit}: {}", stderr(&done));
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "{limit}");
    }
}
