//! Tests which folder a command takes for the vault, which commands make a vault of a folder, and paths from the home
//! folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{TestVault, clean_env, program, stderr, stdout};

/// Runs the program in a folder below `home`, which is the home folder, without `--vault`.
fn run_in(home: &Path, folder: &str, args: &[&str]) -> Output {
    run_with(home, folder, args, &[])
}

fn run_with(home: &Path, folder: &str, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program());
    clean_env(&mut command, home)
        .env("SIDENOTE_NOW", "2026-11-21")
        .env("SIDENOTE_EMBED_PROVIDER", "none")
        .envs(variables.iter().copied())
        .current_dir(home.join(folder))
        .args(args);
    command.output().unwrap()
}

/// Lists the state folders below a folder.
fn state_folders(root: &Path) -> Vec<String> {
    let found = walkdir::WalkDir::new(root).sort_by_file_name().into_iter().map(Result::unwrap);
    let found = found.filter(|entry| entry.file_name() == ".sidenote");
    found.map(|entry| entry.path().strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/")).collect()
}

#[test]
fn the_home_folder_is_no_vault_unless_it_is_named() {
    let home = TestVault::new(&[("plain/docs/n.md", "lentils\n"), ("own/.obsidian/app.json", "{}")]);
    let calls: [&[&str]; 8] = [
        &["search", "lentils"],
        &["status"],
        &["index"],
        &["new", "Lost note"],
        &["check"],
        &["mcp"],
        &["mcp", "config", "claude-code"],
        &["doctor"],
    ];
    for args in calls {
        let done = run_in(home.root(), "", args);
        let said = stderr(&done) + &stdout(&done);
        assert!(!done.status.success(), "{args:?}");
        assert!(said.contains("is your home folder") && said.contains("--vault FOLDER"), "{args:?}: {said}");
    }
    let settings = run_in(home.root(), "", &["config", "show"]);
    assert!(settings.status.success(), "{}", stderr(&settings));
    assert_eq!(state_folders(home.root()), [""; 0]);
    // An earlier version left a vault there.
    home.write(".sidenote/records/x.jsonl", "");
    home.write(".sidenote/index/lock", "");
    let made = run_in(home.root(), "plain/docs", &["new", "Lost note"]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert!(home.root().join("plain/docs/Lost note.md").exists());
    assert!(!home.root().join("Lost note.md").exists());
    let named = run_in(home.root(), "", &["--vault", ".", "list"]);
    assert!(stdout(&named).contains("plain/docs/n.md"), "{}", stderr(&named));
}

#[test]
#[cfg(unix)]
fn the_root_of_the_file_system_is_no_vault_unless_it_is_named() {
    let home = TestVault::new(&[]);
    for args in [&["status"][..], &["search", "x"], &["new", "Lost note"], &["index"]] {
        let mut command = Command::new(program());
        let done = clean_env(&mut command, home.root()).current_dir("/").args(args).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", stderr(&done));
        assert!(stderr(&done).contains("/ is the root of the file system"), "{args:?}: {}", stderr(&done));
    }
    assert!(!Path::new("/.sidenote").exists());
}

#[test]
fn a_command_that_only_reads_makes_no_vault() {
    let home = TestVault::new(&[("notes/n.md", "lentils\n")]);
    let reading: [&[&str]; 13] = [
        &["search", "lentils"],
        &["list"],
        &["status"],
        &["read", "n"],
        &["links", "n"],
        &["tags"],
        &["recent"],
        &["related", "n"],
        &["history"],
        &["backups"],
        &["memory", "search", "lentils"],
        &["memory", "stats"],
        &["new", "Other", "--dry-run"],
    ];
    for args in reading {
        let done = run_in(home.root(), "notes", args);
        assert_eq!(done.status.code(), Some(3), "{args:?}: {}", stderr(&done));
        assert!(
            stderr(&done).contains("is no vault") && stderr(&done).contains("sidenote index"),
            "{args:?}"
        );
        let json = run_in(home.root(), "notes", &[args, &["--json"]].concat());
        assert!(stderr(&json).contains("\"kind\":\"not-found\""), "{args:?}: {}", stderr(&json));
    }
    for args in [&["check"][..], &["doctor"], &["config", "show"], &["mcp", "config", "codex"]] {
        let done = run_in(home.root(), "notes", args);
        assert!(done.status.success(), "{args:?}: {}", stderr(&done));
    }
    // A hook never fails, and an index elsewhere makes no vault.
    assert!(run_in(home.root(), "notes", &["hook", "recall"]).status.success());
    let elsewhere = run_in(home.root(), "notes", &["--index", "../ix", "list", "--format", "{path}"]);
    assert_eq!(stdout(&elsewhere).trim(), "n.md", "{}", stderr(&elsewhere));
    assert_eq!(state_folders(home.root()), [""; 0]);
}

#[test]
fn a_vault_is_made_by_writing_and_by_naming_it() {
    let making: [(&[&str], &str); 4] = [
        (&["index"], "a"),
        (&["new", "Note"], "a"),
        (&["memory", "save", "We chose plain files"], "a"),
        (&["--vault", "a", "list"], ""),
    ];
    for (args, folder) in making {
        let home = TestVault::new(&[("a/b/n.md", "lentils\n")]);
        let made = run_in(home.root(), folder, args);
        assert!(made.status.success(), "{args:?}: {}", stderr(&made));
        assert_eq!(state_folders(home.root()), ["a/.sidenote"], "{args:?}");
        // The folder has a marker now, and the reply of a command below it says which folder is the vault.
        let found = run_in(home.root(), "a/b", &["list", "--folder", "b", "--format", "{path}"]);
        assert_eq!(stdout(&found).trim(), "b/n.md", "{args:?}: {}", stderr(&found));
        let told =
            format!("notice: the vault is {}", fs::canonicalize(home.root().join("a")).unwrap().display());
        assert_eq!(stderr(&found).matches(&told).count(), 1, "{args:?}: {}", stderr(&found));
        let created = run_in(home.root(), "a/b", &["new", "Second"]);
        assert!(stderr(&created).contains(&told), "{args:?}: {}", stderr(&created));
        assert!(home.root().join("a/Second.md").exists());
        let here = run_in(home.root(), "a", &["list"]);
        assert!(!stderr(&here).contains("the vault is"), "{args:?}: {}", stderr(&here));
    }
}

#[test]
fn an_index_alone_is_no_marker() {
    let home = TestVault::new(&[("a/b/n.md", "lentils\n")]);
    assert!(run_in(home.root(), "a", &["index"]).status.success());
    fs::remove_dir_all(home.root().join("a/.sidenote/local")).unwrap();
    // In the folder itself, the index answers.
    assert!(run_in(home.root(), "a", &["status"]).status.success());
    // Below it, no second vault is made inside what may be the vault of the user's notes.
    for args in [&["status"][..], &["new", "Lost note"]] {
        let refused = run_in(home.root(), "a/b", args);
        assert_eq!(refused.status.code(), Some(3), "{args:?}: {}", stderr(&refused));
        assert!(stderr(&refused).contains("has an index, but no marker"), "{args:?}: {}", stderr(&refused));
        assert!(stderr(&refused).contains("run `sidenote index` in "), "{args:?}: {}", stderr(&refused));
    }
    assert_eq!(state_folders(home.root()), ["a/.sidenote"]);
    // The remedy makes it the vault.
    assert!(run_in(home.root(), "a", &["index"]).status.success());
    let made = run_in(home.root(), "a/b", &["new", "Kept note"]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert!(home.root().join("a/Kept note.md").exists());
}

#[test]
fn paths_may_begin_with_the_home_folder() {
    let home = TestVault::new(&[("notes/n.md", "lentils\n"), ("here/x", "")]);
    let forms = ["~/notes", "$HOME/notes", "${HOME}/notes"];
    for form in forms {
        let listed = run_in(home.root(), "here", &["--vault", form, "list", "--format", "{path}"]);
        assert_eq!(stdout(&listed).trim(), "n.md", "{form}: {}", stderr(&listed));
        let by_variable =
            run_with(home.root(), "here", &["list", "--format", "{path}"], &[("SIDENOTE_VAULT", form)]);
        assert_eq!(stdout(&by_variable).trim(), "n.md", "{form}: {}", stderr(&by_variable));
    }
    let indexed = run_in(home.root(), "here", &["--vault", "~/notes", "--index", "~/ix", "index"]);
    assert!(indexed.status.success(), "{}", stderr(&indexed));
    assert!(home.root().join("ix/lock").exists());
    let set = run_in(home.root(), "here", &["config", "set", "backup.dir", "$HOME/kept"]);
    assert!(set.status.success(), "{}", stderr(&set));
    let kept = run_in(home.root(), "here", &["--vault", "~/notes", "backup"]);
    assert!(kept.status.success(), "{}", stderr(&kept));
    let kept = fs::read_dir(home.root().join("kept")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(kept.filter(|name| name.to_str().unwrap().starts_with("memory_backup_")).count(), 1);
    let shown =
        run_in(home.root(), "here", &["--vault", "~/notes", "--index", "~/ix", "mcp", "config", "codex"]);
    assert!(stdout(&shown).contains("notes") && !stdout(&shown).contains('~'), "{}", stdout(&shown));
    assert!(!home.root().join("here/~").exists());
    assert_eq!(fs::read_dir(home.root().join("here")).unwrap().count(), 1);
    assert_eq!(forms.len(), 3);
}
