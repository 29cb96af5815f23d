//! Tests the atomic replacement of a file: readers see the old or the new file, and an error changes nothing.

use std::fs;
use std::io::{self, Write as _};

use sidenote::base::atomic_file::AtomicFile;
use tempfile::TempDir;

#[cfg(unix)]
use crate::support::{mode_of, set_mode};

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[cfg(unix)]
#[test]
fn a_file_is_replaced_atomically_and_keeps_its_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.toml");
    fs::write(&path, "a long text that was there before").unwrap();
    set_mode(&path, 0o640);
    AtomicFile::new(&path).mode(0o600).sync().write_bytes(b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(mode_of(&path), 0o640);
    assert_eq!(names(&folder), ["settings.toml"]);
}

#[cfg(unix)]
#[test]
fn a_new_file_gets_the_mode_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.toml");
    AtomicFile::new(&path).mode(0o600).write_bytes(b"secret").unwrap();
    assert_eq!(mode_of(&path), 0o600);
}

#[test]
fn an_error_leaves_the_old_file_and_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.json");
    fs::write(&path, "old").unwrap();
    for file in [AtomicFile::new(&path), AtomicFile::new(&path).single_writer()] {
        let written = file.write(
            |error| error,
            |to| {
                to.write_all(b"half")?;
                Err::<(), _>(io::Error::other("the disk is full"))
            },
        );
        assert_eq!(written.unwrap_err().to_string(), "the disk is full");
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), names(&folder)),
            ("old", vec!["graph.json".into()])
        );
    }
}
