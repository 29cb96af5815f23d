//! Tests `sidenote doctor`: what it says of a healthy vault, a damaged index, a vault that cannot be written and settings
//! of clients; and that it writes nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use serde_json::Value;

use crate::support::{SETTINGS, TestVault, path_from, stderr, stdout, until};
#[cfg(unix)]
use crate::support::{set_mode, symlink, without_root_privileges};

fn vault() -> TestVault {
    TestVault::new(&[
        ("a.md", "---\ntags: [bird]\n---\nThe heron waits. [[b]]"),
        ("b.md", "# Otter\n\nThe otter swims past the heron."),
        ("c/d.md", "nothing of note"),
    ])
}

/// Builds the index with vectors of the model in the program.
fn index(vault: &TestVault) {
    let done = vault.command(&["index"]).env("SIDENOTE_EMBED_PROVIDER", "e5").output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
}

/// Runs `doctor` with the model in the program; returns its findings and its exit code.
#[track_caller]
fn doctor(vault: &TestVault) -> (Value, i32) {
    let mut command = vault.command(&["doctor", "--json"]);
    let done = command.env("SIDENOTE_EMBED_PROVIDER", "e5").current_dir(vault.root()).output().unwrap();
    let reply = serde_json::from_str(&stdout(&done)).unwrap_or_else(|_| panic!("{}", stderr(&done)));
    (reply, done.status.code().unwrap())
}

/// Returns level and state of the first finding of a check.
#[track_caller]
fn found<'a>(reply: &'a Value, check: &str) -> (&'a str, &'a str) {
    let findings = reply["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["check"] == check);
    let finding = finding.unwrap_or_else(|| panic!("nothing is said of {check}: {findings:#?}"));
    (finding["level"].as_str().unwrap(), finding["state"].as_str().unwrap())
}

/// Checks level and state of findings; each expected state is a part of the real one.
#[track_caller]
fn check_findings(vault: &TestVault, code: i32, expected: &[(&str, &str, &str)]) {
    let (reply, ended) = doctor(vault);
    for (check, level, part) in expected {
        let (is, state) = found(&reply, check);
        assert!(is == *level && state.contains(part), "{check} is {is}: {state}");
    }
    assert_eq!(ended, code, "{reply:#}");
}

/// Every file and folder below a root, with its bytes and its modification time.
fn everything(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            let bytes = if path.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
            if path.is_dir() {
                folders.push(path.clone());
            }
            all.insert(path, (bytes, modified));
        }
    }
    all
}

#[test]
fn a_healthy_vault_has_no_problem() {
    let vault = vault();
    index(&vault);
    check_findings(
        &vault,
        0,
        &[
            ("version", "ok", concat!("sidenote ", env!("CARGO_PKG_VERSION"), " for ")),
            ("program", "ok", crate::support::program().file_name().unwrap().to_str().unwrap()),
            ("user settings", "ok", "no such file"),
            ("vault settings", "ok", "no such file"),
            ("other settings", "ok", "SIDENOTE_EMBED_PROVIDER"),
            ("vault", "ok", "without Obsidian"),
            ("embedding model", "ok", "e5"),
            ("file names", "ok", "names that differ"),
            ("records", "ok", "records (not there yet)"),
            ("writing notes", "ok", "can be written"),
            ("index", "ok", "all checksums are right"),
            ("index content", "ok", "every file is indexed"),
            ("vectors", "ok", "3, none is missing"),
            ("watching", "ok", "folders"),
            ("open files", "ok", if cfg!(windows) { "not limited" } else { "open" }),
            ("cursor", "note", "there are no settings"),
        ],
    );
}

#[test]
fn nothing_is_written() {
    let vault = vault();
    let fresh = everything(vault.root());
    check_findings(&vault, 0, &[("index", "note", "there is none")]);
    assert_eq!(everything(vault.root()), fresh);
    index(&vault);
    vault.write("a.md", "The heron has gone.");
    let indexed = everything(vault.root());
    check_findings(&vault, 0, &[("index content", "note", "1 file changed")]);
    assert_eq!(everything(vault.root()), indexed);
    let (reply, _) = doctor(&vault);
    assert!(Path::new(reply["index"].as_str().unwrap()).ends_with(".sidenote/index"));
}

#[test]
fn damage_of_any_index_file_is_found_though_size_and_times_are_the_same() {
    let vault = vault();
    index(&vault);
    let root = vault.root().join(".sidenote/index");
    let mut damaged = 0;
    for (path, (bytes, modified)) in everything(&root) {
        let name = path_from(&root, &path);
        let is_checked = name == "catalog.db" || name.starts_with("bm25/") || name.ends_with("/vectors");
        if bytes.is_empty() || !is_checked || name.ends_with(".lock") {
            continue;
        }
        let mut changed = bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        fs::write(&path, changed).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        let (reply, code) = doctor(&vault);
        let check = if name.starts_with("vectors") { "vectors" } else { "index" };
        let (level, state) = found(&reply, check);
        assert!(level == "problem" && state.contains("damaged") && code == 8, "{name}: {reply:#}");
        fs::write(&path, bytes).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        damaged += 1;
    }
    assert!(damaged > 5, "only {damaged} files were damaged");
    check_findings(&vault, 0, &[("index", "ok", "all checksums are right")]);
}

#[test]
fn an_index_without_a_seal_is_checked_inside() {
    let vault = vault();
    index(&vault);
    let folder = vault.root().join(".sidenote/index");
    fs::remove_file(folder.join("seal.json")).unwrap();
    check_findings(&vault, 0, &[("index", "ok", "it is sound"), ("index state", "note", "did not close it")]);
    fs::write(folder.join("catalog.db"), "no database at all").unwrap();
    check_findings(&vault, 8, &[("index", "problem", "damaged")]);
}

#[test]
fn an_index_that_is_written_or_was_left_by_a_killed_writer_is_read_and_not_changed() {
    let vault = vault();
    index(&vault);
    let mut command = vault.command(&["watch"]);
    let mut watch = command.stdout(Stdio::null()).spawn().unwrap();
    until("a process writes the index", || stdout(&vault.run(&["status"])).contains("(watch)"));
    vault.write("e.md", "The heron has gone.");
    until("the new note is indexed", || stdout(&vault.run(&["dump"])).contains("file e.md"));
    let files = || {
        let mut files = everything(&vault.root().join(".sidenote"));
        files.retain(|path, _| path.is_file() && !path.ends_with("catalog.db-shm"));
        files
    };
    check_findings(
        &vault,
        0,
        &[("index lock", "ok", "(watch) writes the index"), ("index", "ok", "it is sound")],
    );
    watch.kill().unwrap();
    watch.wait().unwrap();
    let killed = files();
    check_findings(&vault, 0, &[("index", "ok", "it is sound"), ("index state", "note", "did not close it")]);
    assert_eq!(files(), killed);
}

#[test]
fn an_index_of_another_version_is_a_note() {
    let vault = vault();
    index(&vault);
    let catalog = rusqlite::Connection::open(vault.root().join(".sidenote/index/catalog.db")).unwrap();
    catalog.execute("UPDATE meta SET value = 1 WHERE key = 'schema'", []).unwrap();
    drop(catalog);
    check_findings(&vault, 0, &[("index", "note", "written by another version of sidenote")]);
}

/// A version with another built-in model leaves such an index.
#[test]
fn vectors_of_a_model_that_is_gone_do_not_answer() {
    let vault = vault();
    index(&vault);
    let folder = vault.root().join(".sidenote/index");
    let catalog = rusqlite::Connection::open(folder.join("catalog.db")).unwrap();
    catalog.execute("UPDATE meta SET value = 1 WHERE key IN ('model', 'serving')", []).unwrap();
    drop(catalog);
    let vectors = fs::read_dir(folder.join("vectors")).unwrap().next().unwrap().unwrap().path();
    fs::rename(&vectors, folder.join("vectors/gone-384-0")).unwrap();
    let (reply, _) = doctor(&vault);
    let state = "none of this model was made yet; until then words alone answer";
    assert_eq!(found(&reply, "vectors"), ("note", state));
}

#[cfg(unix)]
#[test]
fn a_vault_that_cannot_be_written_is_a_warning() {
    let vault = vault();
    index(&vault);
    without_root_privileges(|| {
        set_mode(vault.root(), 0o555);
        check_findings(&vault, 0, &[("writing notes", "warning", "searched, but not changed")]);
        set_mode(vault.root(), 0o755);
        set_mode(vault.root().join(".sidenote"), 0o555);
        check_findings(&vault, 8, &[("writing notes", "problem", "no note can be changed")]);
        set_mode(vault.root().join(".sidenote"), 0o755);
    });
}

#[test]
fn settings_and_folders_that_cannot_be_used_are_problems() {
    let vault = vault();
    let settings = format!("{SETTINGS}/sidenote/config.toml");
    vault.write(&settings, "[search]\nlimits = 3\n");
    check_findings(&vault, 8, &[("settings", "problem", "search.limits")]);
    vault.write(&settings, "[search]\nlimit = 3\n");
    check_findings(&vault, 0, &[("user settings", "ok", "(1 set)")]);
    let done = vault.command(&["doctor", "--vault", "/nowhere at all", "--json"]).output().unwrap();
    let reply: Value = serde_json::from_str(&stdout(&done)).unwrap();
    assert_eq!((found(&reply, "vault").0, done.status.code()), ("problem", Some(8)));
}

/// Writes a program that records that it was run and says a version.
#[cfg(unix)]
fn program(vault: &TestVault, path: &str, version: &str) -> String {
    let ran = vault.root().join("ran");
    vault.write(path, format!("#!/bin/sh\necho yes > '{}'\necho 'sidenote {version}'\n", ran.display()));
    let file = vault.root().join(path);
    set_mode(&file, 0o755);
    file.display().to_string()
}

#[cfg(unix)]
#[test]
fn settings_of_clients_are_examined() {
    let this = crate::support::program();
    let old = "OLD";
    let cases = [
        ("cursor", ".home/.cursor/mcp.json", "{}", "note", "does not name sidenote"),
        ("cursor", ".home/.cursor/mcp.json", "{ // mine\n}", "note", "does not name sidenote"),
        ("cursor", ".home/.cursor/mcp.json", "{ mine }", "note", "was not examined"),
        (
            "cursor",
            ".home/.cursor/mcp.json",
            r#"{"mcpServers":{"sidenote":{"command":"/nowhere/sidenote"}}}"#,
            "problem",
            "starts /nowhere/sidenote, which is not there",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            r#"{"mcpServers":{"notes":{"command":"THIS","args":["mcp"]}}}"#,
            "ok",
            concat!("version ", env!("CARGO_PKG_VERSION")),
        ),
        (
            "claude-desktop",
            ".home/.config/Claude/claude_desktop_config.json",
            r#"{"mcpServers":{"sidenote":{"command":"THIS","args":["--vault","/nowhere/notes","mcp"]}}}"#,
            "problem",
            "the vault /nowhere/notes, which is not there",
        ),
        (
            "claude-code",
            ".home/.claude.json",
            r#"{"projects":{"/x":{"mcpServers":{"sidenote":{"command":"OLD"}}}}}"#,
            "warning",
            "which says 0.0.9",
        ),
        (
            "vscode",
            ".vscode/mcp.json",
            r#"{"servers":{"sidenote":{"url":"http://127.0.0.1:1/mcp"}}}"#,
            "ok",
            "was not contacted",
        ),
        (
            "codex",
            ".home/.codex/config.toml",
            "[mcp_servers.sidenote]\ncommand = \"THIS\"\n",
            "ok",
            "version",
        ),
    ];
    assert_eq!(cases.len(), 9);
    for (client, file, text, level, part) in cases {
        let vault = vault();
        let text = text
            .replace("THIS", this.to_str().unwrap())
            .replace(old, &program(&vault, "bin/sidenote", "0.0.9"));
        vault.write(file, text);
        check_findings(&vault, if level == "problem" { 8 } else { 0 }, &[(client, level, part)]);
    }
}

#[cfg(unix)]
#[test]
fn settings_of_the_user_that_are_a_link_are_followed_and_those_of_a_project_are_not() {
    for (folder, level, part) in
        [(".home/.cursor", "note", "does not name sidenote"), (".cursor", "warning", "cannot be read")]
    {
        let vault = vault();
        vault.write("dotfiles/mcp.json", "{}");
        fs::create_dir_all(vault.root().join(folder)).unwrap();
        symlink(vault.root().join("dotfiles/mcp.json"), vault.root().join(folder).join("mcp.json"));
        check_findings(&vault, 0, &[("cursor", level, part)]);
    }
}

#[cfg(unix)]
#[test]
fn a_program_that_settings_of_a_project_name_is_not_run() {
    let vault = vault();
    let program = program(&vault, "bin/sidenote", "0.0.9");
    vault.write(".mcp.json", format!(r#"{{"mcpServers":{{"sidenote":{{"command":"{program}"}}}}}}"#));
    check_findings(&vault, 0, &[("claude-code", "ok", "was not asked for its version")]);
    assert!(!vault.root().join("ran").exists());
}

/// Files with their texts, and what is said of git for them.
type GitCase = (&'static [(&'static str, &'static str)], Option<&'static str>);

/// Checks what is said of git for a vault in `notes` below the folder with these files; `None` if nothing is.
#[track_caller]
fn check_git(files: &[(&str, &str)], expected: Option<&str>) {
    let outer = TestVault::new(&[("notes/a.md", "The heron waits.")]);
    for (path, text) in files {
        outer.write(path, text.replace("OUTER", outer.root().to_str().unwrap()));
    }
    let notes = outer.root().join("notes");
    let done = outer.run(&["doctor", "--vault", notes.to_str().unwrap(), "--json"]);
    let reply: Value = serde_json::from_str(&stdout(&done)).unwrap();
    let findings = reply["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["check"] == "git");
    let state = found.map(|finding| finding["state"].as_str().unwrap());
    let is_as_expected = match (state, expected) {
        (Some(state), Some(part)) => state.contains(part),
        (None, None) => true,
        _ => false,
    };
    assert!(is_as_expected, "{files:?}: {state:?}, not {expected:?}");
    assert_eq!(done.status.code(), Some(0), "{files:?}");
}

#[test]
fn a_merge_is_seen_from_a_subfolder_and_in_a_worktree() {
    let (merge, rebase) = (Some("a merge is under way"), Some("a rebase is under way"));
    let cases: &[GitCase] = &[
        (&[], None),
        // A repository in the vault, and one around it.
        (&[("notes/.git/HEAD", "")], None),
        (&[("notes/.git/HEAD", ""), ("notes/.git/MERGE_HEAD", "")], merge),
        (&[(".git/HEAD", ""), (".git/MERGE_HEAD", "")], merge),
        (&[(".git/HEAD", ""), (".git/rebase-merge/onto", "")], rebase),
        (&[(".git/HEAD", ""), (".git/rebase-apply/next", "")], rebase),
        // The nearest repository counts.
        (&[(".git/HEAD", ""), (".git/MERGE_HEAD", ""), ("notes/.git/HEAD", "")], None),
        // A worktree: its own folder has the state, and not the repository.
        (&[(".git", "gitdir: OUTER/repo/worktrees/w\n"), ("repo/worktrees/w/MERGE_HEAD", "")], merge),
        (&[(".git", "gitdir: OUTER/repo/worktrees/w\n"), ("repo/MERGE_HEAD", "")], None),
        (
            &[("notes/.git", "gitdir: ../repo/modules/n\r\n"), ("repo/modules/n/rebase-merge/onto", "")],
            rebase,
        ),
        // What is no such file says nothing; git refuses it too.
        (&[(".git", "gitdir:\n"), ("MERGE_HEAD", "")], None),
        (&[(".git", "nothing"), ("MERGE_HEAD", "")], None),
        (&[(".git", "gitdir: //host/share\n")], None),
        (&[(".git", "gitdir: \\\\host\\share\n")], None),
    ];
    for (files, expected) in cases {
        check_git(files, *expected);
    }
}

#[test]
fn a_finding_is_one_line_and_says_what_to_do_in_the_next() {
    let vault = vault();
    vault.write(".git/MERGE_HEAD", "0");
    let done = vault.run(&["doctor"]);
    let printed = stdout(&done);
    let mut lines = printed.lines().skip_while(|line| !line.starts_with("note     git"));
    assert_eq!(
        [lines.next().unwrap().trim_end(), lines.next().unwrap().trim_start()],
        [
            "note     git              a merge is under way; notes may have conflict marks",
            "-> to list them: sidenote check --only conflict-markers"
        ],
        "{printed}"
    );
    assert!(printed.ends_with("0 problems, 0 warnings\n"), "{printed}");
}
