//! Crashes and damage: a killed writer, and every index file truncated, emptied or overwritten.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{TestVault, stderr, stdout};

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
    for file in index_files(&index) {
        let name = file.strip_prefix(&index).unwrap().display().to_string();
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
        assert!(said.contains("damaged") || said.contains("rebuilt"), "{name} was not noticed: {said:?}");
        let reply: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        let mut paths: Vec<&str> =
            reply["results"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["a.md", "b.md"], "{name}");
        assert_eq!(stdout(&vault.run(&["dump"])), healthy, "{name}");
    }
}

#[test]
fn truncated_files_are_noticed() {
    check_noticed(|bytes| bytes.truncate(bytes.len() / 2));
}

#[test]
fn emptied_files_are_noticed() {
    check_noticed(Vec::clear);
}

#[test]
fn overwritten_files_are_noticed() {
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
fn one_flipped_bit_is_noticed() {
    check_noticed(|bytes| {
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 0x10;
        }
    });
}

#[test]
fn a_deleted_index_is_made_again() {
    let vault = TestVault::example();
    let healthy = stdout(&vault.run(&["dump"]));
    fs::remove_dir_all(vault.root().join(".sidenote/index")).unwrap();
    assert_eq!(stdout(&vault.run(&["dump"])), healthy);
}

#[test]
fn a_killed_writer_leaves_an_index_that_the_next_command_mends() {
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
