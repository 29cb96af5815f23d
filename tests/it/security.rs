//! Tests that nothing outside of the vault is read or written, whatever path is given (docs/spec/security.md, Paths).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use sidenote::base::error::ErrorKind;
use sidenote::store::{
    DanglingLinks, DeleteRequest, EditRequest, MoveRequest, NewRequest, NoteEdit, Open, Operation,
    ReadRequest, SearchRequest, Store,
};
use tempfile::TempDir;

use crate::support::symlink;

/// A word that occurs only outside of the vault.
const SECRET: &str = "pangolin";

/// A vault with a neighbour, and links of every kind that lead out of it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let (vault, evil) = (folder.path().join("vault"), folder.path().join("vault-evil"));
        fs::create_dir_all(vault.join("d")).unwrap();
        fs::create_dir_all(&evil).unwrap();
        fs::write(vault.join("a.md"), "# A\n").unwrap();
        fs::write(vault.join("d/b.md"), "# B\n").unwrap();
        fs::create_dir_all(vault.join(".obsidian")).unwrap();
        fs::write(vault.join(".obsidian/app.json"), "{}").unwrap();
        fs::write(evil.join("secret.md"), format!("# {SECRET}\n")).unwrap();
        fs::write(folder.path().join("evil.md"), format!("# {SECRET}\n")).unwrap();
        symlink(evil.join("secret.md"), vault.join("file.md"));
        symlink(&evil, vault.join("folder"));
        Self { folder }
    }

    fn vault(&self) -> PathBuf {
        self.folder.path().join("vault")
    }

    fn store(&self) -> Store {
        self.store_that_follows(false)
    }

    /// Opens the vault with the user's leave to follow links out of it, or without.
    fn store_that_follows(&self, outside: bool) -> Store {
        let store = Store::open(Open {
            vault: Some(self.vault()),
            flags: vec![
                ("embed.provider", "none".to_owned(), "test"),
                ("vault.follow_outside", outside.to_string(), "test"),
            ],
            ..Open::default()
        });
        let store = store.unwrap();
        store.index().refresh().unwrap();
        store
    }

    /// Gives every file, outside of the vault and inside, but for those of ours.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = fs::symlink_metadata(&path).unwrap();
                if metadata.is_dir() && !path.ends_with(".sidenote") {
                    folders.push(path);
                } else if metadata.is_file() {
                    found.insert(path.clone(), fs::read(path).unwrap());
                }
            }
        }
        found
    }
}

/// Paths that lead out of the vault or into hidden folders, or that no system or link can contain.
const BAD: &[&str] = &[
    "/etc/passwd",
    "../evil.md",
    "../vault-evil/secret.md",
    "d/../../evil.md",
    "d/./b2.md",
    "d//b2.md",
    "a\0b.md",
    "d\\b2.md",
    "..\\evil.md",
    "C:/x.md",
    "c:x.md",
    "new.md:stream",
    "bell\u{7}.md",
    "line\nend.md",
    "right\u{202E}left.md",
    ".sidenote/x.md",
    ".sidenote/config.toml",
    ".obsidian/app.json",
    ".git/config",
    ".trash/x.md",
    "d/.hidden.md",
    "folder/new.md",
    "folder/secret.md",
];

#[test]
fn no_new_path_escapes_the_vault() {
    let place = Place::new();
    let store = place.store();
    let before = place.files();
    for path in BAD {
        let folder = path.rsplit_once('/').map_or(*path, |(folder, _)| folder);
        let title = path.rsplit('/').next().unwrap();
        let operations = [
            Operation::Move(MoveRequest {
                from: "a.md".into(),
                to: (*path).into(),
                ..MoveRequest::default()
            }),
            Operation::Move(MoveRequest { from: "d".into(), to: (*path).into(), ..MoveRequest::default() }),
            Operation::New(NewRequest {
                title: title.into(),
                folder: Some(folder.into()),
                ..NewRequest::default()
            }),
        ];
        for operation in operations {
            // A title loses what a name cannot hold; only its folder can lead away.
            let is_title = matches!(&operation, Operation::New(_)) && !path.contains('/');
            if is_title || (matches!(&operation, Operation::New(_)) && matches!(folder, "d/." | "d/" | "d")) {
                continue;
            }
            let refused = store.changes().change(&operation, false);
            assert!(refused.is_err(), "{path:?}: {operation:?} did {:?}", refused.unwrap().plan.files);
            let error = refused.unwrap_err();
            assert!(!error.to_string().contains(SECRET), "{path:?}: {error}");
        }
    }
    assert_eq!(place.files(), before, "nothing is changed anywhere");
}

#[test]
fn no_existing_path_escapes_the_vault() {
    let place = Place::new();
    let store = place.store();
    let before = place.files();
    for path in BAD.iter().filter(|path| !path.starts_with("folder/")) {
        let read = store.reads().read(&ReadRequest { note: (*path).into(), ..ReadRequest::default() });
        assert!(read.is_err(), "{path:?} is read");
        let edit = NoteEdit::Append("x".into(), None);
        let operations = [
            Operation::Edit(EditRequest { note: (*path).into(), edit, expect: None }),
            Operation::Move(MoveRequest {
                from: (*path).into(),
                to: "z.md".into(),
                ..MoveRequest::default()
            }),
            Operation::Delete(DeleteRequest {
                note: (*path).into(),
                permanent: true,
                links: DanglingLinks::Leave,
            }),
            Operation::Restore((*path).into()),
            Operation::New(NewRequest {
                title: "t".into(),
                template: Some((*path).into()),
                ..NewRequest::default()
            }),
        ];
        for operation in operations {
            let error = store.changes().change(&operation, false).unwrap_err();
            assert!(!error.to_string().contains(SECRET), "{path:?}: {error}");
        }
    }
    assert_eq!(place.files(), before, "nothing is changed anywhere");
}

#[test]
fn files_behind_a_link_out_of_the_vault_are_neither_read_nor_written() {
    let place = Place::new();
    // An index that was made with leave serves nothing of it without.
    drop(place.store_that_follows(true));
    let store = place.store();
    let before = place.files();
    let request = SearchRequest { query: SECRET.into(), ..SearchRequest::default() };
    assert!(store.searches().search(&request).unwrap().results.is_empty());
    assert!(
        !store.index().dump().unwrap().iter().any(|line| line.contains("secret") || line.contains("file.md"))
    );
    for path in ["file.md", "folder/secret.md"] {
        let read =
            store.reads().read(&ReadRequest { note: path.into(), ..ReadRequest::default() }).unwrap_err();
        assert!(!read.to_string().contains(SECRET), "{read}");
        let edit = NoteEdit::Append("x".into(), None);
        let edit = Operation::Edit(EditRequest { note: path.into(), edit, expect: None });
        let error = store.changes().change(&edit, false).unwrap_err();
        assert!(!error.to_string().contains(SECRET), "{error}");
    }
    let new = NewRequest { title: "x".into(), folder: Some("folder".into()), ..NewRequest::default() };
    let error = store.changes().change(&Operation::New(new), false).unwrap_err();
    assert!(error.to_string().contains("outside the vault (symlink)"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("vault.follow_outside")), "{error}");
    let backup = store.upkeep().backup(None).unwrap();
    let copied = fs::symlink_metadata(backup.path.join("notes/folder")).unwrap();
    assert!(copied.is_symlink(), "a link out of the vault is copied as a link");
    fs::remove_dir_all(backup.path).unwrap();
    assert_eq!(place.files(), before, "nothing is changed anywhere");
}

#[test]
fn follow_outside_allows_linked_folders_and_reading_of_linked_files() {
    let place = Place::new();
    let store = place.store_that_follows(true);
    for path in ["file.md", "folder/secret.md"] {
        let found = store.reads().read(&ReadRequest { note: path.into(), ..ReadRequest::default() }).unwrap();
        assert!(found.text.contains(SECRET));
    }
    let append = |path: &str| {
        let edit = NoteEdit::Append("x".into(), None);
        store.changes().change(&Operation::Edit(EditRequest { note: path.into(), edit, expect: None }), false)
    };
    let error = append("file.md").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("symlink"), "{error}");
    assert!(append("folder/secret.md").unwrap().applied);
    let secret = || fs::read_to_string(place.folder.path().join("vault-evil/secret.md")).unwrap();
    assert_eq!(secret(), format!("# {SECRET}\n\nx\n"));
    store.changes().undo(1, false).unwrap();
    assert_eq!(secret(), format!("# {SECRET}\n"));
}

#[test]
fn vault_settings_cannot_allow_following_outside() {
    let place = Place::new();
    fs::create_dir_all(place.vault().join(".sidenote")).unwrap();
    fs::write(place.vault().join(".sidenote/config.toml"), "[vault]\nfollow_outside = true\n").unwrap();
    let error = Store::open(Open { vault: Some(place.vault()), ..Open::default() }).unwrap_err();
    assert!(
        error.to_string().contains("sets vault.follow_outside, which only your own settings can do"),
        "{error}"
    );
}

/// A folder is replaced by a link to another folder, and back, in a loop, while notes in it are written.
#[test]
fn a_folder_swapped_for_a_link_redirects_no_write() {
    let place = Place::new();
    let vault = place.vault();
    let evil = place.folder.path().join("vault-evil");
    fs::write(evil.join("b.md"), "# B\n").unwrap();
    let store = place.store();
    let outside = |path: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    };
    let append = |line: &str| {
        let edit = NoteEdit::Append(line.to_owned(), None);
        let edit = EditRequest { note: "d/b.md".into(), edit, expect: None };
        store.changes().change(&Operation::Edit(edit), false)
    };
    let before = outside(&evil);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::rename(vault.join("d"), vault.join("d-aside")).unwrap();
                symlink(&evil, vault.join("d"));
                fs::remove_file(vault.join("d")).unwrap();
                fs::rename(vault.join("d-aside"), vault.join("d")).unwrap();
            }
        });
        for at in 0..60 {
            // An edit is refused while the folder is a link.
            drop(append(&format!("line {at}")));
        }
        done.store(true, Ordering::Relaxed);
    });
    append("the last line").unwrap();
    assert!(fs::read_to_string(vault.join("d/b.md")).unwrap().ends_with("the last line\n"));
    assert_eq!(outside(&evil), before, "nothing is written outside");
}
