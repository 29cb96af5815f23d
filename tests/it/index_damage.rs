//! Tests crashes and damage: a killed writer, and every index file truncated, emptied or overwritten.

use std::fs;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sidenote::base::error::ErrorKind;
use sidenote::index::{Index, Options};
use sidenote::vault::Vault;

use crate::support::{TestVault, path_from, program, stderr, stdout};

fn index_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.retain(|path| {
        !path.to_string_lossy().ends_with(".lock") && !path.ends_with("lock") && !path.ends_with(".gitignore")
    });
    found.sort();
    found
}

/// Copies and clean-ups of other programs leave files out, and the index is sidenote's all the same.
#[test]
fn an_index_without_the_files_that_begin_it_is_used() {
    let vault = TestVault::new(&[("a.md", "The heron waits.")]);
    assert!(vault.run(&["search", "heron"]).status.success());
    let index = vault.root().join(".sidenote/index");
    for gone in
        [&["lock"][..], &[".gitignore"], &["lock", ".gitignore"], &["lock", ".gitignore", "seal.json"]]
    {
        gone.iter().for_each(|name| fs::remove_file(index.join(name)).unwrap());
        let output = vault.run(&["search", "heron", "--json"]);
        assert!(output.status.success(), "{gone:?}: {}", stderr(&output));
        assert!(stdout(&output).contains("a.md"), "{gone:?}");
        assert!(index.join("lock").exists() && index.join(".gitignore").exists(), "{gone:?}");
    }
    // A folder with files of the user stays refused.
    let foreign = vault.root().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("letter.txt"), "Dear").unwrap();
    let refused = vault.run(&["--index", foreign.to_str().unwrap(), "search", "heron"]);
    assert!(stderr(&refused).contains("contains other files"), "{}", stderr(&refused));
}

/// Damages each index file in turn and checks that the next command says so and answers as before.
#[track_caller]
fn check_noticed(damage: impl Fn(&mut Vec<u8>)) {
    let vault = TestVault::new(&[
        ("a.md", "---\ntags: [bird]\n---\nThe heron waits. [[b]]"),
        ("b.md", "# Otter\n\nThe otter swims past the heron. [[missing]]"),
        ("c/d.md", "nothing of note"),
    ]);
    let healthy = stdout(&vault.run(&["dump"]));
    assert!(healthy.contains("terms a.md"));
    let index = vault.root().join(".sidenote/index");
    let mut damaged = 0;
    for file in index_files(&index) {
        let name = path_from(&index, &file);
        if !file.exists() {
            continue;
        }
        let mut bytes = fs::read(&file).unwrap();
        let before = bytes.clone();
        damage(&mut bytes);
        if bytes == before {
            continue;
        }
        fs::write(&file, &bytes).unwrap();
        let output = vault.run(&["search", "heron", "--json"]);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let said = stderr(&output);
        // Damaged listings of folders are made again without a word.
        let is_told = said.contains("damaged") || said.contains("rebuilt");
        assert_eq!(is_told, name != "listings", "{name}: {said:?}");
        let reply: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        let mut paths: Vec<&str> =
            reply["results"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["a.md", "b.md"], "{name}");
        assert_eq!(stdout(&vault.run(&["dump"])), healthy, "{name}");
        damaged += 1;
    }
    assert!(damaged > 3, "only {damaged} files were damaged");
}

#[test]
fn truncated_files_are_detected() {
    check_noticed(|bytes| bytes.truncate(bytes.len() / 2));
}

#[test]
fn emptied_files_are_detected() {
    check_noticed(Vec::clear);
}

#[test]
fn overwritten_files_are_detected() {
    check_noticed(|bytes| {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for byte in bytes.iter_mut() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
    });
}

#[test]
fn one_flipped_bit_is_detected() {
    check_noticed(|bytes| {
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 0x10;
        }
    });
}

#[test]
fn a_deleted_index_is_rebuilt() {
    let vault = TestVault::example();
    let healthy = stdout(&vault.run(&["dump"]));
    fs::remove_dir_all(vault.root().join(".sidenote/index")).unwrap();
    assert_eq!(stdout(&vault.run(&["dump"])), healthy);
}

#[test]
fn the_next_command_repairs_the_index_of_a_killed_writer() {
    let vault = TestVault::example();
    let healthy = stdout(&vault.run(&["dump"]));
    for round in 0..12 {
        if round % 2 == 0 {
            fs::remove_dir_all(vault.root().join(".sidenote/index")).unwrap();
        } else {
            // Every note is read again, so that the kill meets a batch under way.
            for path in vault.contents().keys() {
                let file = fs::File::options().write(true).open(path).unwrap();
                file.set_modified(
                    std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + round),
                )
                .unwrap();
            }
            vault.write("extra.md", format!("round {round}"));
        }
        let mut child =
            vault.command(&["index", "--no-embed"]).stderr(std::process::Stdio::null()).spawn().unwrap();
        let spins = round * round * 40_000;
        for _ in 0..spins {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(vault.root().join("extra.md")).ok();
        assert_eq!(stdout(&vault.run(&["dump"])), healthy, "round {round}");
    }
}

/// Only what can pass is waited for. A process that holds the lock for long does not repair damage any more.
#[test]
fn a_reader_reports_damage_without_retrying() {
    let vault = TestVault::new(&[("a.md", "heron")]);
    drop(vault.store());
    let index = vault.root().join(".sidenote/index");
    let lock = File::options().write(true).open(index.join("lock")).unwrap();
    lock.lock().unwrap();
    lock.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    fs::write(index.join("catalog.db"), "no catalog").unwrap();
    let opened = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), Options::default());
    assert_eq!(opened.unwrap_err().kind(), ErrorKind::Corrupt);
    let found = vault.command(&["search", "heron"]).env("SIDENOTE_LOG", "debug").output().unwrap();
    assert_eq!(found.status.code(), Some(7), "{}", stderr(&found));
    assert!(!stderr(&found).contains(TRIED_AGAIN), "{}", stderr(&found));
}

/// What is logged when the index cannot be opened and may be opened in a moment.
const TRIED_AGAIN: &str = "the index cannot be opened yet, and is tried again";

/// A process that has just taken the lock may be about to repair the index.
#[test]
fn a_reader_waits_for_a_repair_that_may_have_begun() {
    let vault = TestVault::new(&[("a.md", "heron")]);
    drop(vault.store());
    let index = vault.root().join(".sidenote/index");
    let catalog = fs::read(index.join("catalog.db")).unwrap();
    let lock = File::options().write(true).open(index.join("lock")).unwrap();
    lock.lock().unwrap();
    // The lock stays as new as this, however slow the machine is.
    lock.set_modified(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    fs::write(index.join("catalog.db"), "no catalog").unwrap();
    let mut command = vault.command(&["search", "heron"]);
    command.env("SIDENOTE_LOG", "debug").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut reader = command.spawn().unwrap();
    let log = BufReader::new(reader.stderr.take().unwrap());
    let mut lines = log.lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains(TRIED_AGAIN)));
    // The repair, in one step.
    fs::write(index.join("catalog.new-here"), catalog).unwrap();
    fs::rename(index.join("catalog.new-here"), index.join("catalog.db")).unwrap();
    lines.for_each(drop);
    let found = reader.wait_with_output().unwrap();
    assert!(found.status.success() && stdout(&found).contains("a.md"), "{}", stdout(&found));
}

/// A process that was killed leaves no seal. What it wrote is kept, whatever the vault has.
#[test]
fn an_index_without_a_seal_is_kept() {
    let vault = TestVault::example();
    vault.write("mkdocs.yml", "");
    vault.write("docs/a.md", "[b](deep/b.md) [[c]] ^x\n");
    vault.write("docs/deep/b.md", "---\ntags: [x]\naliases: [y]\n---\n- [ ] [a](../a.md)\n");
    assert!(vault.run(&["index"]).status.success());
    let generation = || vault.store().index().generation().unwrap();
    let before = generation();
    assert!(before > 0);
    fs::remove_file(vault.root().join(".sidenote/index/seal.json")).unwrap();
    let done = vault.run(&["list"]);
    assert!(done.status.success() && !stderr(&done).contains("rebuilt"), "{}", stderr(&done));
    assert_eq!(generation(), before);
}

/// Puts an index into the state of a writer that died between its two commits: the full text went ahead, the catalog
/// still knows the generation before, and the intents tell what the batch was about.
fn crash_between_commits(vault: &TestVault, batch: &dyn Fn(), intents: &[&str]) {
    let index = vault.root().join(".sidenote/index");
    let before = fs::read(index.join("catalog.db")).unwrap();
    batch();
    drop(vault.store());
    fs::write(index.join("catalog.db"), before).unwrap();
    fs::remove_file(index.join("seal.json")).unwrap();
    let catalog = sidenote::catalog::CatalogWriter::open(&index.join("catalog.db")).unwrap();
    catalog.set_intents(intents.iter().copied()).unwrap();
}

/// Checks that the next command repairs the index after such a crash, whatever happens to the files in between.
#[track_caller]
fn check_redone(batch: &dyn Fn(&TestVault), intents: &[&str], meanwhile: &dyn Fn(&TestVault)) {
    let vault = TestVault::new(&[("a.md", "heron [[b]]"), ("old.md", "otter")]);
    drop(vault.store());
    crash_between_commits(&vault, &|| batch(&vault), intents);
    meanwhile(&vault);
    let mended = stdout(&vault.run(&["dump"]));
    let found = |word: &str| stdout(&vault.run(&["search", word, "--json"])).matches("\"path\"").count();
    let holds =
        |path: &str| fs::read_to_string(vault.root().join(path)).is_ok_and(|text| text.contains("marten"));
    let wanted = ["b.md", "sub/b.md", "old.md"].iter().filter(|path| holds(path)).count();
    assert_eq!(found("marten"), wanted, "no ghost answers");
    fs::remove_dir_all(vault.root().join(".sidenote/index")).unwrap();
    assert_eq!(mended, stdout(&vault.run(&["dump"])));
}

#[test]
fn a_crash_between_the_commits_is_repaired() {
    let add = |vault: &TestVault| vault.write("b.md", "marten");
    check_redone(&add, &["b.md"], &|_| {});
    check_redone(&add, &["b.md"], &|vault| vault.remove("b.md"));
    check_redone(&add, &["b.md"], &|vault| vault.rename("b.md", "sub/b.md"));
    let change = |vault: &TestVault| vault.write("old.md", "otter and marten");
    check_redone(&change, &["old.md"], &|vault| vault.write("old.md", "otter again"));
    let moved = |vault: &TestVault| vault.rename("old.md", "new/old.md");
    check_redone(&moved, &["old.md", "new/old.md"], &|_| {});
    let removed = |vault: &TestVault| vault.remove("old.md");
    check_redone(&removed, &["old.md"], &|_| {});
    check_redone(&add, &["*"], &|vault| vault.remove("a.md"));
    check_redone(&add, &[], &|_| {});
}

#[test]
fn damage_is_detected_where_managed_json_is_older() {
    let vault = TestVault::new(&[("a.md", "The heron waits.")]);
    drop(vault.store());
    let index = vault.root().join(".sidenote/index");
    let list = index.join("bm25/.managed.json");
    let old = fs::read(&list).unwrap();
    vault.write("b.md", "The otter and the heron.");
    drop(vault.store());
    let healthy = stdout(&vault.run(&["dump"]));
    // As a loss of power may leave it: no seal, the list as it was before, a part of the new postings not on the disk.
    fs::remove_file(index.join("seal.json")).unwrap();
    let known = String::from_utf8(old.clone()).unwrap();
    fs::write(&list, old).unwrap();
    let mut zeroed = 0;
    for file in index_files(&index.join("bm25")) {
        let name = file.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".idx") && !known.contains(name) {
            let mut bytes = fs::read(&file).unwrap();
            bytes[..8].fill(0);
            fs::write(&file, bytes).unwrap();
            zeroed += 1;
        }
    }
    assert!(zeroed > 0);
    let found = vault.run(&["search", "heron"]);
    assert!(stderr(&found).contains("damaged") && found.status.success(), "{}", stderr(&found));
    assert_eq!(stdout(&vault.run(&["dump"])), healthy);
}

#[test]
fn a_batch_that_was_killed_before_its_commit_is_repeated() {
    let vault = TestVault::new(&[("a.md", "The heron waits."), ("b.md", "The otter swims.")]);
    drop(vault.store());
    let index = vault.root().join(".sidenote/index");
    let before: Vec<(PathBuf, Vec<u8>)> =
        index_files(&index).into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    vault.write("a.md", "The heron flies.");
    drop(vault.store());
    let healthy = stdout(&vault.run(&["dump"]));
    // The process was killed after it wrote the list of files and that of deleted documents, before the commit that names them.
    let list = index.join("bm25/.managed.json");
    let left: Vec<(PathBuf, Vec<u8>)> = index_files(&index)
        .into_iter()
        .filter(|file| *file == list || file.extension().is_some_and(|end| end == "del"))
        .map(|file| (file.clone(), fs::read(file).unwrap()))
        .collect();
    assert_eq!(left.len(), 2);
    index_files(&index).iter().for_each(|file| fs::remove_file(file).unwrap());
    before.iter().chain(&left).for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
    fs::remove_file(index.join("seal.json")).unwrap();
    let found = vault.run(&["search", "flies"]);
    assert!(stdout(&found).contains("a.md"), "{}", stderr(&found));
    assert_eq!(stdout(&vault.run(&["dump"])), healthy);
}

/// On a full disk, indexed notes are found, and a vault without an index gets one in another folder.
#[test]
#[ignore = "it needs user namespaces, which many systems refuse; `.ci/run` runs it where it can"]
fn a_vault_on_a_full_disk_is_searched_and_read() {
    let vault = TestVault::new(&[("a.md", "A heron stands.\n"), ("b.md", "Reeds bend.\n")]);
    let disk = tempfile::tempdir().unwrap();
    let program = program();
    let (place, root, shown) = (disk.path().display(), vault.root().display(), program.display());
    let fill = format!(
        "export HOME={root}/.home SIDENOTE_EMBED_PROVIDER=none; mount -t tmpfs -o size=3m tmpfs {place}; \
         cp {root}/*.md {place}; cd {place}; {shown} --vault . index --no-embed >/dev/null; \
         dd if=/dev/zero of=.ballast bs=4k 2>/dev/null || true; "
    );
    let cases = [
        // What was there.
        ("", "search heron", "a.md"),
        ("", "read b", "Reeds bend."),
        // A change that the index cannot take in.
        ("printf 'A crane, and more of it.' > a.md 2>/dev/null || true; ", "search reeds", "b.md"),
        // An index in a folder whose name is no UTF-8.
        (
            "rm .ballast; place=$(printf '%b' \"$PWD/i\\0377\"); \"$1\" --vault . --index \"$place\" index >/dev/null; \
             dd if=/dev/zero of=.more bs=4k 2>/dev/null || true; set -- \"$@\" --index \"$place\"; ",
            "search heron",
            "a.md",
        ),
        // No index, and no room for one.
        ("rm -r .sidenote; dd if=/dev/zero of=.more bs=4k 2>/dev/null || true; ", "search heron", "a.md"),
    ];
    for (before, asked, expected) in cases {
        let mut asked_of = std::process::Command::new(&program);
        asked_of.arg("--vault").arg(disk.path()).args(asked.split(' '));
        asked_of.env("HOME", vault.root().join(".home")).env("SIDENOTE_EMBED_PROVIDER", "none");
        let script = format!("{fill}{before}exec \"$@\"");
        let done = crate::support::in_namespaces(&script, &asked_of).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(said.contains(expected), "{asked}: {said}{}", String::from_utf8_lossy(&done.stderr));
    }
    assert_eq!(cases.len(), 5);
}

/// An index that is up to date keeps its seal, which is only written after a wait for the disk.
#[test]
fn indexing_again_writes_nothing() {
    let vault = TestVault::new(&[("a.md", "The heron waits."), ("b.md", "# Otter\n\nThe otter swims.")]);
    // A file that was written a moment before is read once more by the second one.
    for _ in 0..2 {
        let first = vault.run(&["index"]);
        assert!(first.status.success(), "{}", stderr(&first));
    }
    let seal = vault.root().join(".sidenote/index/seal.json");
    let state = || {
        let found = fs::metadata(&seal).unwrap();
        (found.modified().unwrap(), fs::read(&seal).unwrap())
    };
    let before = state();
    for arguments in [&["index"][..], &["index", "--no-embed"], &["search", "heron"]] {
        assert!(vault.run(arguments).status.success());
        assert!(state() == before, "{arguments:?}");
    }
}
