//! Tests a downloaded vault with links, pipes and folders in place of our files: nothing outside of it is read or
//! written, and nothing blocks (spec/security.md, Paths).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::support::{LIMIT, TestVault, stderr, stdout, symlink};

/// A word that occurs only outside of the vault.
const SECRET: &str = "pangolin";

/// What a vault that was downloaded may have in the place of a file of ours.
#[derive(Debug, Clone, Copy)]
enum Trap {
    /// A link to a file of the user,
    File,
    /// to a name that is free,
    Free,
    /// or to a folder of the user.
    Folder,
    /// A named pipe without a writer.
    #[cfg(unix)]
    Pipe,
    /// A link to a device that has no end.
    #[cfg(unix)]
    Zero,
}

/// Files of ours that are opened by one command or another.
const FILES: &[&str] = &[
    ".sidenote/config.toml",
    ".sidenote/.gitignore",
    ".sidenote/.gitattributes",
    ".sidenote/index/lock",
    ".sidenote/index/.gitignore",
    ".sidenote/index/catalog.db",
    ".sidenote/index/catalog.db-wal",
    ".sidenote/index/seal.json",
    ".sidenote/index/seal.tmp",
    ".sidenote/index/ledger",
    ".sidenote/index/listings",
    ".sidenote/index/listings.tmp",
    ".sidenote/index/bm25/meta.json",
    ".sidenote/index/bm25/meta.tmp",
    ".sidenote/records/lock",
    ".sidenote/records/.gitignore",
    ".sidenote/records/2026-11.jsonl",
    ".sidenote/local/lock",
    ".sidenote/local/clone",
    ".sidenote/local/.gitignore",
    ".sidenote/local/2026-11.jsonl",
    ".sidenote/local/moves/2026-11.jsonl",
    ".sidenote/backups/.lock",
    ".sidenote/backups/memory_backup_20200101_000000/manifest.json",
    ".trash/gone.md",
    ".obsidian/app.json",
    ".obsidian/bookmarks.json",
    ".rulebook",
];

/// Folders of ours.
const FOLDERS: &[&str] = &[
    ".sidenote",
    ".sidenote/index",
    ".sidenote/index/bm25",
    ".sidenote/index/pulse",
    ".sidenote/index/vectors",
    ".sidenote/records",
    ".sidenote/records/pending",
    ".sidenote/records/undo",
    ".sidenote/local",
    ".sidenote/local/moves",
    ".sidenote/records/0123456789ab",
    ".sidenote/backups",
    ".trash",
    ".obsidian",
];

/// What a user does with such a vault.
const COMMANDS: &[&[&str]] = &[
    &["search", "alpha"],
    &["memory", "save", "beta", "--title", "Beta"],
    &["backup"],
    &["delete", "alpha.md"],
    &["restore", "gone.md"],
    &["undo"],
    &["check"],
];

fn kill(process: &str) {
    let (program, args): (_, &[&str]) =
        if cfg!(windows) { ("taskkill", &["/F", "/PID", process]) } else { ("kill", &["-KILL", process]) };
    Command::new(program).args(args).status().unwrap();
}

/// Runs a command to its end, which has to come.
fn run_to_the_end(mut command: Command) -> Output {
    let said = format!("{command:?}");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id().to_string();
    let (sender, ended) = channel();
    let waiting = std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output = ended.recv_timeout(LIMIT);
    if output.is_err() {
        kill(&pid);
    }
    assert!(waiting.join().is_ok(), "{said}");
    output.unwrap_or_else(|_| panic!("{said} did not come to an end")).unwrap()
}

#[cfg(unix)]
fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Gives every file of a folder with its bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.insert(path.clone(), Vec::new());
                folders.push(path);
            } else {
                found.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Runs every command on a vault with one trap in it, and compares the files outside of it.
fn check_trap(place: &str, trap: Trap) {
    let outside = tempfile::tempdir().unwrap();
    // What a settings file, a journal, a note or a list of files could be taken for.
    fs::write(outside.path().join("own"), format!("{SECRET} = {SECRET}\n{SECRET}\n")).unwrap();
    fs::create_dir(outside.path().join("folder")).unwrap();
    fs::write(outside.path().join("folder/gone.md"), format!("# {SECRET}\n")).unwrap();
    let before = contents(outside.path());
    for command in COMMANDS {
        let vault = TestVault::new(&[("alpha.md", "# Alpha\n\nalpha\n")]);
        let disk = vault.root().join(place);
        fs::create_dir_all(disk.parent().unwrap()).unwrap();
        match trap {
            Trap::File => symlink(outside.path().join("own"), &disk),
            Trap::Free => symlink(outside.path().join("free"), &disk),
            Trap::Folder => symlink(outside.path().join("folder"), &disk),
            #[cfg(unix)]
            Trap::Pipe => make_pipe(&disk),
            #[cfg(unix)]
            Trap::Zero => symlink("/dev/zero", &disk),
        }
        let output = run_to_the_end(vault.command(command));
        let said = format!("{}{}", stdout(&output), stderr(&output));
        let case = format!("{command:?} with {trap:?} at {place}: {said}");
        assert_eq!(contents(outside.path()), before, "{case}");
        assert!(!said.contains(SECRET), "{case}");
        let code = output.status.code().unwrap_or_else(|| panic!("it was killed: {case}"));
        assert!(!matches!(code, 1 | 7), "{case}");
        assert!(!stderr(&output).contains("panicked"), "{case}");
    }
}

#[test]
fn links_and_pipes_in_a_downloaded_vault_neither_escape_nor_block() {
    let mut traps: Vec<(&str, Trap)> = Vec::new();
    for file in FILES {
        traps.extend([Trap::File, Trap::Free].map(|trap| (*file, trap)));
    }
    traps.extend(FOLDERS.iter().map(|folder| (*folder, Trap::Folder)));
    assert_eq!(traps.len(), 28 * 2 + 14);
    #[cfg(unix)]
    {
        traps.extend(FILES.iter().map(|file| (*file, Trap::Pipe)));
        let endless =
            [".sidenote/config.toml", ".sidenote/index/seal.json", ".obsidian/app.json", ".rulebook"];
        traps.extend(endless.map(|file| (file, Trap::Zero)));
        assert_eq!(traps.len(), 28 * 3 + 14 + 4);
    }
    let waiting = Mutex::new(traps);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap().pop();
                    let Some((place, trap)) = next else { break };
                    check_trap(place, trap);
                }
            });
        }
    });
}

#[test]
fn a_link_in_place_of_a_sidecar_file_is_reported_with_a_remedy() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("passwd"), format!("root:{SECRET}\n")).unwrap();
    let cases = [
        (".sidenote/config.toml", "config.toml: it is a symbolic link", "replace it with a regular file"),
        (".sidenote/records", "records is a symbolic link", "real folder"),
        (".sidenote/index", "index is a symbolic link", "--index PATH"),
        (".sidenote/index/lock", "lock is a symbolic link", "--index PATH"),
    ];
    for (place, says, advises) in cases {
        let vault = TestVault::new(&[("a.md", "a\n")]);
        let disk = vault.root().join(place);
        fs::create_dir_all(disk.parent().unwrap()).unwrap();
        let target = if place.contains('.') && place.ends_with("toml") || place.ends_with("lock") {
            outside.path().join("passwd")
        } else {
            outside.path().to_owned()
        };
        symlink(target, &disk);
        let output = vault.run(&["search", "a"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{place}: {said}");
        assert!(said.contains(says) && said.contains(advises), "{place}: {said}");
        assert!(!said.contains(SECRET), "{place}: {said}");
    }
}

#[test]
fn an_error_in_vault_settings_shows_its_line() {
    let vault = TestVault::new(&[("a.md", "a\n"), (".sidenote/config.toml", "[search]\nlimit == 3\n")]);
    let said = stderr(&vault.run(&["search", "a"]));
    assert!(said.contains("limit == 3"), "{said}");
}

#[test]
fn settings_that_are_too_large_are_refused() {
    let vault = TestVault::new(&[("a.md", "a\n"), (".sidenote/config.toml", "")]);
    // A file without content that claims a terabyte.
    fs::File::options()
        .write(true)
        .open(vault.root().join(".sidenote/config.toml"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let output = run_to_the_end(vault.command(&["search", "a"]));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("more than 1000000 bytes"), "{}", stderr(&output));
}

#[test]
fn the_lock_file_contains_no_arguments() {
    let vault = TestVault::new(&[("a.md", "a\n")]);
    let lock = vault.root().join(".sidenote/index/lock");
    // As an earlier version left it.
    vault.write(".sidenote/index/lock", "{\"pid\":1,\"command\":\"memory save my key is pangolin\"}");
    #[cfg(unix)]
    crate::support::set_mode(&lock, 0o644);
    for args in [&["search", SECRET][..], &["memory", "save", SECRET, "--title", "T"], &["read", "a.md"]] {
        assert!(vault.run(args).status.success());
        let kept = fs::read_to_string(&lock).unwrap();
        assert!(!kept.contains(SECRET), "{kept}");
        #[cfg(unix)]
        assert_eq!(crate::support::mode_of(&lock), 0o600);
    }
    let mut follower = vault.command(&["watch"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Another process may hold the lock at the first looks: `status` itself does while it runs.
    let held = (0..500).find_map(|_| {
        let status = vault.run(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&stdout(&status)).ok()?;
        status.get("locked_by").filter(|held| !held.is_null()).cloned()
    });
    let pid = follower.id();
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert_eq!(held, Some(serde_json::json!({ "pid": pid, "command": "watch" })));
}
