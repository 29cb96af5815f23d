//! Tests a downloaded vault with links, pipes and folders in place of our files: nothing outside of it is read or
//! written, and nothing blocks (docs/spec/security.md, Paths).

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
    /// A link to a file of the user.
    File,
    /// A link to a name that is free.
    Free,
    /// A link to a folder of the user.
    Folder,
    /// A second name of a file of the user.
    HardLink,
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
            Trap::HardLink => fs::hard_link(outside.path().join("own"), &disk).unwrap(),
            #[cfg(unix)]
            Trap::Pipe => make_pipe(&disk),
            #[cfg(unix)]
            Trap::Zero => symlink("/dev/zero", &disk),
        }
        let output = run_to_the_end(vault.command(command));
        let said = format!("{}{}", stdout(&output), stderr(&output));
        let case = format!("{command:?} with {trap:?} at {place}: {said}");
        assert_eq!(contents(outside.path()), before, "{case}");
        // What has a second name in the vault is in the vault.
        assert!(matches!(trap, Trap::HardLink) || !said.contains(SECRET), "{case}");
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
    traps.extend(FILES.iter().map(|file| (*file, Trap::HardLink)));
    assert_eq!(traps.len(), 28 * 3 + 14);
    #[cfg(unix)]
    {
        traps.extend(FILES.iter().map(|file| (*file, Trap::Pipe)));
        let endless =
            [".sidenote/config.toml", ".sidenote/index/seal.json", ".obsidian/app.json", ".rulebook"];
        traps.extend(endless.map(|file| (file, Trap::Zero)));
        assert_eq!(traps.len(), 28 * 4 + 14 + 4);
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
fn a_note_that_has_the_name_of_the_lock_keeps_its_bytes() {
    for lock in [".sidenote/index/lock", ".sidenote/records/lock", ".sidenote/index/catalog.db-wal"] {
        let vault = TestVault::new(&[("a.md", "alpha\n"), ("b.md", "beta\n")]);
        fs::create_dir_all(vault.root().join(lock).parent().unwrap()).unwrap();
        fs::hard_link(vault.root().join("a.md"), vault.root().join(lock)).unwrap();
        let told = vault.run(&["append", "b", "more"]);
        let said = stderr(&told);
        assert_eq!(vault.read("a.md"), "alpha\n", "{lock}: {said}");
        assert!(
            !told.status.success() && said.contains("hard link") && said.contains("hint: "),
            "{lock}: {said}"
        );
    }
}

#[test]
fn a_folder_in_the_place_of_a_file_of_the_index_is_replaced() {
    let endings = ["db", "db-wal", "db-shm", "db-journal", "new", "new-shm"];
    for name in endings.map(|ending| format!(".sidenote/index/catalog.{ending}")) {
        let vault = TestVault::new(&[("a.md", "alpha\n")]);
        assert!(vault.run(&["index", "--no-embed"]).status.success());
        let disk = vault.root().join(&name);
        if disk.exists() {
            fs::remove_file(&disk).unwrap();
        }
        vault.write(&format!("{name}/x"), "x");
        vault.write("a.md", "alpha beta\n");
        let found = vault.run(&["search", "beta"]);
        assert!(found.status.success() && stdout(&found).contains("a.md"), "{name}: {}", stderr(&found));
    }
}

#[test]
fn a_folder_beside_the_catalog_is_a_problem_for_doctor() {
    let vault = TestVault::new(&[("a.md", "alpha\n")]);
    assert!(vault.run(&["index", "--no-embed"]).status.success());
    fs::create_dir(vault.root().join(".sidenote/index/catalog.db-shm")).unwrap();
    let told = stdout(&vault.run(&["doctor"]));
    assert!(told.contains("catalog.db-shm is not a regular file"), "{told}");
}

#[test]
fn a_vault_cannot_turn_automatic_backups_on() {
    let vault = TestVault::new(&[("a.md", "a\n"), (".sidenote/config.toml", "[backup]\nauto = true\n")]);
    let said = stderr(&vault.run(&["search", "a"]));
    assert!(said.contains("sets backup.auto, which only your own settings can do"), "{said}");
}

#[test]
fn settings_of_a_project_are_not_written_through_its_links() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("settings.json");
    for (client, file) in
        [("claude-code", ".mcp.json"), ("vscode", ".vscode/mcp.json"), ("vscode", ".vscode")]
    {
        fs::write(&target, "{}").unwrap();
        fs::write(outside.path().join("mcp.json"), "{}").unwrap();
        let vault = TestVault::new(&[("a.md", "a\n")]);
        let disk = vault.root().join(file);
        fs::create_dir_all(disk.parent().unwrap()).unwrap();
        symlink(if file == ".vscode" { outside.path() } else { &target }, &disk);
        let mut command = vault.command(&["mcp", "config", client, "--write"]);
        let refused = command.current_dir(vault.root()).output().unwrap();
        let said = stderr(&refused);
        assert!(!refused.status.success() && said.contains("symbolic link"), "{file}: {said}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "{}");
        assert_eq!(fs::read_to_string(outside.path().join("mcp.json")).unwrap(), "{}");
    }
}

/// The last answers are at the end of a transcript, and nothing of an agent makes a hook wait or read without end.
#[test]
#[cfg(unix)]
fn a_transcript_that_has_no_end_holds_no_hook() {
    let vault = TestVault::new(&[("a.md", "a\n")]);
    let pipe = vault.root().join(".pipe");
    make_pipe(&pipe);
    let zeros = vault.root().join(".zeros");
    fs::File::create(&zeros).unwrap().set_len(40 << 30).unwrap();
    for transcript in [pipe.as_path(), Path::new("/dev/zero"), Path::new("/dev/stdin"), &zeros] {
        let mut command = vault.command(&["hook", "capture"]);
        let said = serde_json::json!({ "session_id": "s", "transcript_path": transcript });
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), said.to_string().as_bytes()).unwrap();
        let pid = child.id().to_string();
        let (sender, ended) = channel();
        let waiting = std::thread::spawn(move || sender.send(child.wait_with_output()));
        let output = ended.recv_timeout(LIMIT);
        if output.is_err() {
            kill(&pid);
        }
        assert!(waiting.join().is_ok());
        assert!(output.unwrap_or_else(|_| panic!("{transcript:?} holds it")).unwrap().status.success());
    }
}

/// A log line that cannot be written ends neither a command nor a server.
#[test]
#[cfg(target_os = "linux")]
fn a_log_that_cannot_be_written_ends_no_server() {
    let vault = TestVault::new(&[("a.md", "alpha\n")]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut client =
        crate::mcp_client::Client::logged(vault.command(&["mcp"]).env("SIDENOTE_LOG", "trace"), full);
    for _ in 0..3 {
        assert!(client.text("search_notes", serde_json::json!({ "query": "alpha" })).contains("a.md"));
    }
    client.finish();
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

/// A file that claims more than memory or a disk holds is listed, moved and backed up by what it has.
#[test]
#[cfg(unix)]
fn a_sparse_file_costs_what_it_holds() {
    let vault = TestVault::new(&[("a.md", "alpha\n")]);
    for (name, length) in [("note.md", 30_u64 << 30), ("small.md", 200 << 20), ("film.mp4", 3 << 30)] {
        vault.write(name, "beta\n");
        let file = fs::File::options().write(true).open(vault.root().join(name)).unwrap();
        file.set_len(length).unwrap();
    }
    let ours = |args: &[&str]| {
        let mut command = vault.command(args);
        command.env("SIDENOTE_VAULT_MAX_FILE_BYTES", "1000000000000");
        run_to_the_end(command)
    };
    let found = ours(&["search", "alpha"]);
    assert!(found.status.success() && stdout(&found).contains("a.md"), "{}", stderr(&found));
    assert!(ours(&["check"]).status.code().is_some_and(|code| code < 2));
    for name in ["note.md", "small.md", "film.mp4"] {
        let moved = ours(&["move", name, "d/"]);
        assert!(moved.status.success(), "{name}: {}", stderr(&moved));
    }
    let made = ours(&["--json", "backup"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let made: serde_json::Value = serde_json::from_str(&stdout(&made)).unwrap();
    assert_eq!(made["left_out"], serde_json::json!(["d/note.md"]), "{made}");
    let copy = Path::new(made["path"].as_str().unwrap()).join("notes/d/film.mp4");
    let found = sidenote::base::platform::metadata(&copy).unwrap();
    assert_eq!((found.size, found.allocated < 1 << 20), (3 << 30, true), "a hole is a hole in the backup");
    assert!(fs::read(copy.with_file_name("small.md")).unwrap().starts_with(b"beta\n\0"));
    let again = vault
        .root()
        .parent()
        .unwrap()
        .join(format!("{}-again", vault.root().file_name().unwrap().to_string_lossy()));
    let name = Path::new(made["path"].as_str().unwrap()).file_name().unwrap().to_str().unwrap().to_owned();
    let restored = ours(&["restore-backup", &name, "--to", again.to_str().unwrap()]);
    assert!(restored.status.success(), "{}", stderr(&restored));
    let found = sidenote::base::platform::metadata(&again.join("d/film.mp4")).unwrap();
    assert_eq!((found.size, found.allocated < 1 << 20), (3 << 30, true));
    fs::remove_dir_all(again).unwrap();
}
