//! Tests applying a change set: it is all or nothing, whatever stands in the way and wherever the process dies.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};
use sidenote::base::clock::Timestamp;
use sidenote::base::error::{Error, ErrorKind};
use sidenote::journal::Journal;
use sidenote::journal::event::Event;
use sidenote::markdown::edit::{ChangeSet, Content, ContentHash, Edit, FileChange, FileLocation, FolderMove};
use sidenote::markdown::path::NotePath;
use sidenote::vault::Vault;
use sidenote::vault::apply_result::Applied;
use tempfile::TempDir;

use crate::support::{TestVault, env_path, inode, path_from, set_mode, symlink, was_killed};
#[cfg(unix)]
use crate::support::{mode_of, without_root_privileges};

/// Every file outside `.sidenote` with its bytes, and every folder without.
pub(crate) type Snapshot = BTreeMap<String, Option<Vec<u8>>>;

pub(crate) fn snapshot(root: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path_from(root, &path);
            if name == ".sidenote" {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
                found.insert(name, None);
            } else if path.is_file() {
                found.insert(name, Some(fs::read(&path).unwrap()));
            } else {
                found.insert(name, Some(b"(special)".to_vec()));
            }
        }
    }
    found
}

pub(crate) fn path(text: &str) -> NotePath {
    NotePath::from_disk(text).unwrap()
}

pub(crate) fn place(text: &str) -> FileLocation {
    match text.strip_prefix(".trash/") {
        Some(inner) => FileLocation::Trash(path(inner)),
        None => FileLocation::Vault(path(text)),
    }
}

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_795_000_000_000 + millis)
}

/// Changes `from` to `to` with what `from` holds now.
pub(crate) fn change(root: &Path, from: Option<&str>, to: Option<&str>, content: Content) -> FileChange {
    let before = from.map(|from| ContentHash::of(&fs::read(root.join(from)).unwrap()));
    FileChange { from: from.map(place), to: to.map(place), before, content }
}

pub(crate) fn whole(text: &str) -> Content {
    Content::Whole(text.as_bytes().to_vec())
}

pub(crate) fn plan(files: Vec<FileChange>) -> ChangeSet {
    ChangeSet { files, ..ChangeSet::new("test") }
}

pub(crate) fn folder(from: &str, to: &str) -> FolderMove {
    FolderMove { from: path(from), to: path(to) }
}

pub(crate) fn apply(root: &Path, plan: &ChangeSet) -> Result<Applied, Error> {
    let vault = Vault::open(root)?;
    let lock = vault.lock(&vault.records())?;
    vault.apply(&lock, plan, at(0))
}

/// No temporary file and no open transaction is left.
#[track_caller]
fn check_clean(root: &Path) {
    let left: Vec<String> = snapshot(root).into_keys().filter(|name| name.contains("sidenote-tmp")).collect();
    assert!(left.is_empty(), "temporary files are left: {left:?}");
    let pending = root.join(".sidenote/records/pending");
    if pending.exists() {
        assert_eq!(fs::read_dir(pending).unwrap().count(), 0, "a transaction is open");
    }
}

/// Checks that the plan is applied, and that the vault then contains what `expected` lists. Folders are not listed.
#[track_caller]
fn check_applied(vault: &TestVault, plan: &ChangeSet, expected: &[(&str, &str)]) {
    let applied = apply(vault.root(), plan).unwrap();
    assert_eq!(applied.notices, [""; 0]);
    let found: Vec<(String, String)> = snapshot(vault.root())
        .into_iter()
        .filter_map(|(name, bytes)| Some((name, String::from_utf8(bytes?).unwrap())))
        .collect();
    let found: Vec<(&str, &str)> = found.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(found, expected);
    check_clean(vault.root());
}

/// The plan is refused with this kind and word, and nothing has changed.
#[track_caller]
fn check_refused(root: &Path, plan: &ChangeSet, kind: ErrorKind, word: &str) {
    let before = snapshot(root);
    let error = apply(root, plan).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains(word)), (kind, true), "{error}");
    assert_eq!(snapshot(root), before);
    check_clean(root);
}

#[test]
fn files_are_made_edited_moved_and_removed() {
    let vault = TestVault::new(&[
        ("a.md", "one two"),
        ("b.md", "b"),
        ("d/c.md", "c"),
        ("gone.md", "g"),
        ("t.md", "t"),
    ]);
    let root = vault.root();
    let hash = ContentHash::of(b"one two");
    let files = vec![
        FileChange::create(path("new/deep/n.md"), b"n".to_vec()),
        FileChange::edit(path("a.md"), hash, vec![Edit::insert(4, "and "), Edit::insert(7, "!")]),
        change(root, Some("b.md"), Some("d/b2.md"), whole("bb")),
        change(root, Some("d/c.md"), Some("c.md"), Content::Keep),
        change(root, Some("gone.md"), None, Content::Keep),
        change(root, Some("t.md"), Some(".trash/t.md"), Content::Keep),
    ];
    let expected = [
        (".trash/t.md", "t"),
        ("a.md", "one and two!"),
        ("c.md", "c"),
        ("d/b2.md", "bb"),
        ("new/deep/n.md", "n"),
    ];
    check_applied(&vault, &plan(files), &expected);
}

#[test]
fn an_unchanged_file_is_not_written() {
    let vault = TestVault::new(&[("a.md", "a"), ("b.md", "b")]);
    let inode = || inode(vault.root().join("a.md"));
    let (before, root) = (inode(), vault.root());
    let files = vec![
        change(root, Some("a.md"), Some("a.md"), Content::Edits(Vec::new())),
        change(root, Some("b.md"), Some("b.md"), whole("b")),
    ];
    let applied = apply(root, &plan(files)).unwrap();
    assert_eq!((applied.files.len(), applied.id.as_str(), inode()), (0, "", before));
}

#[test]
fn two_files_can_swap_names_and_a_name_can_change_case() {
    let vault =
        TestVault::new(&[("a.md", "a"), ("b.md", "b"), ("c.md", "c"), ("d/x.md", "x"), ("e/x.md", "y")]);
    let root = vault.root();
    let moved = |from: &str, to: &str| change(root, Some(from), Some(to), Content::Keep);
    let mut circle = plan(vec![moved("a.md", "b.md"), moved("b.md", "a.md"), moved("c.md", "C.md")]);
    circle.folders = vec![folder("d", "e"), folder("e", "d")];
    check_applied(
        &vault,
        &circle,
        &[("C.md", "c"), ("a.md", "b"), ("b.md", "a"), ("d/x.md", "y"), ("e/x.md", "x")],
    );
    let mut cases = plan(Vec::new());
    cases.folders = vec![folder("d", "D")];
    check_applied(
        &vault,
        &cases,
        &[("C.md", "c"), ("D/x.md", "y"), ("a.md", "b"), ("b.md", "a"), ("e/x.md", "x")],
    );
}

#[test]
fn a_path_freed_by_a_move_can_be_reused_in_the_same_plan() {
    let vault = TestVault::new(&[("a.md", "a"), ("b.md", "b"), ("c.md", "c"), ("z.md", "z")]);
    let root = vault.root();
    let files = vec![
        change(root, Some("a.md"), Some("b.md"), Content::Keep),
        change(root, Some("b.md"), Some("c.md"), whole("bb")),
        change(root, Some("c.md"), None, Content::Keep),
        change(root, Some("z.md"), Some(".trash/z.md"), Content::Keep),
        FileChange::create(path("z.md"), b"new".to_vec()),
    ];
    let expected = [(".trash/z.md", "z"), ("b.md", "a"), ("c.md", "bb"), ("z.md", "new")];
    check_applied(&vault, &plan(files), &expected);
}

#[test]
fn a_folder_moves_with_hidden_files_and_changes_in_it() {
    let vault =
        TestVault::new(&[("f/a.md", "a"), ("f/.h", "h"), ("f/g/b.md", "b"), ("x.md", "x"), ("f/r.md", "r")]);
    let root = vault.root();
    let mut moving = plan(vec![
        change(root, Some("f/a.md"), Some("n/m/a.md"), whole("aa")),
        change(root, Some("f/g/b.md"), Some("b.md"), Content::Keep),
        change(root, Some("x.md"), Some("n/m/x.md"), whole("xx")),
        change(root, Some("f/r.md"), None, Content::Keep),
        FileChange::create(path("n/m/new/c.md"), b"c".to_vec()),
    ]);
    moving.folders = vec![folder("f", "n/m")];
    let expected =
        [("b.md", "b"), ("n/m/.h", "h"), ("n/m/a.md", "aa"), ("n/m/new/c.md", "c"), ("n/m/x.md", "xx")];
    check_applied(&vault, &moving, &expected);
    assert!(root.join("n/m/g").is_dir(), "a folder that became empty stays");
}

#[test]
fn a_hash_mismatch_is_a_conflict() {
    let vault = TestVault::new(&[("a.md", "a"), ("b.md", "b")]);
    let root = vault.root();
    for to in [Some("a.md"), Some("c.md"), None] {
        let plan = plan(vec![
            change(root, Some("b.md"), Some("b.md"), whole("bb")),
            FileChange {
                before: Some(ContentHash::of(b"other")),
                ..change(root, Some("a.md"), to, if to == Some("a.md") { whole("x") } else { Content::Keep })
            },
        ]);
        check_refused(root, &plan, ErrorKind::Conflict, "a.md was changed");
    }
    let gone = plan(vec![change(root, Some("a.md"), Some("c.md"), Content::Keep)]);
    vault.remove("a.md");
    check_refused(root, &gone, ErrorKind::Conflict, "a.md is gone");
    let mut folders = plan(Vec::new());
    folders.folders = vec![folder("nowhere", "x")];
    check_refused(root, &folders, ErrorKind::Conflict, "nowhere is gone");
}

#[test]
fn taken_names_are_refused() {
    let vault =
        TestVault::new(&[("a.md", "a"), ("b.md", "b"), ("D/x.md", "x"), ("e/y.md", "y"), ("Jürgen.md", "j")]);
    let root = vault.root();
    let moved = |to: &str| plan(vec![change(root, Some("a.md"), Some(to), Content::Keep)]);
    let made = |to: &str| plan(vec![FileChange::create(path(to), b"n".to_vec())]);
    for to in ["b.md", "D", "D/x.md", "e/y.md"] {
        check_refused(root, &moved(to), ErrorKind::Exists, "target-exists");
        check_refused(root, &made(to), ErrorKind::Exists, "target-exists");
    }
    for to in ["B.md", "d", "d/n.md", "d/e/n.md", "E/y.md", "ju\u{308}rgen.md"] {
        check_refused(root, &moved(to), ErrorKind::Exists, "case-collision");
        check_refused(root, &made(to), ErrorKind::Exists, "case-collision");
    }
    for (from, to, word) in
        [("D", "e", "target-exists"), ("D", "E", "case-collision"), ("D", "a.md", "target-exists")]
    {
        let mut plan = plan(Vec::new());
        plan.folders = vec![folder(from, to)];
        check_refused(root, &plan, ErrorKind::Exists, word);
    }
    let twice = plan(vec![
        FileChange::create(path("n/x.md"), Vec::new()),
        FileChange::create(path("n/X.md"), Vec::new()),
    ]);
    check_refused(root, &twice, ErrorKind::Exists, "case-collision");
    let folders = plan(vec![
        FileChange::create(path("n/x.md"), Vec::new()),
        FileChange::create(path("N/y.md"), Vec::new()),
    ]);
    check_refused(root, &folders, ErrorKind::Exists, "case-collision");
    check_refused(root, &moved("b.md/x.md"), ErrorKind::Invalid, "b.md is not a folder");
}

#[test]
fn a_folder_does_not_move_into_itself() {
    let vault = TestVault::new(&[("d/x.md", "x")]);
    let mut plan = plan(Vec::new());
    plan.folders = vec![folder("d", "d/e")];
    check_refused(vault.root(), &plan, ErrorKind::Invalid, "into itself");
}

#[test]
fn symbolic_links_are_never_written_through() {
    let outside = TestVault::new(&[("o.md", "o"), ("sub/p.md", "p")]);
    let vault = TestVault::new(&[("a.md", "a"), ("real/r.md", "r")]);
    let root = vault.root();
    symlink(outside.root().join("o.md"), root.join("link.md"));
    symlink(outside.root(), root.join("out"));
    symlink("real", root.join("twin"));
    symlink(outside.root().join("nothing.md"), root.join("dangling.md"));
    let before = snapshot(outside.root());
    for target in ["link.md", "out/o.md", "out/sub/p.md", "twin/r.md"] {
        for to in [Some(target), Some("moved.md"), Some(".trash/x.md"), None] {
            let content = if to == Some(target) { whole("x") } else { Content::Keep };
            check_refused(
                root,
                &plan(vec![change(root, Some(target), to, content)]),
                ErrorKind::Invalid,
                "symlink",
            );
        }
    }
    for target in ["out/new.md", "out/sub/new.md", "out/new/new.md", "twin/n.md"] {
        let made = plan(vec![FileChange::create(path(target), b"x".to_vec())]);
        check_refused(root, &made, ErrorKind::Invalid, "symlink");
        let moved = plan(vec![change(root, Some("a.md"), Some(target), Content::Keep)]);
        check_refused(root, &moved, ErrorKind::Invalid, "symlink");
    }
    let onto = plan(vec![FileChange::create(path("dangling.md"), b"x".to_vec())]);
    check_refused(root, &onto, ErrorKind::Exists, "target-exists");
    let mut folders = plan(Vec::new());
    folders.folders = vec![folder("twin", "other")];
    check_refused(root, &folders, ErrorKind::Invalid, "symlink");
    symlink(outside.root(), root.join(".trash"));
    let trash = plan(vec![change(root, Some("a.md"), Some(".trash/a.md"), Content::Keep)]);
    check_refused(root, &trash, ErrorKind::Invalid, "symlink");
    assert_eq!(snapshot(outside.root()), before);
}

#[test]
fn records_are_not_written_through_a_link() {
    let outside = TestVault::new(&[("o.md", "o")]);
    let vault = TestVault::new(&[("a.md", "a")]);
    symlink(outside.root(), vault.root().join(".sidenote"));
    let before = snapshot(outside.root());
    let error = apply(vault.root(), &plan(vec![FileChange::create(path("n.md"), Vec::new())])).unwrap_err();
    assert!(error.message().contains("symlink"), "{error}");
    let opened = Vault::open(vault.root()).unwrap();
    let journal = Journal::open(&opened, &opened.records());
    assert!(journal.append(&Event::new("use", at(0))).is_err());
    assert_eq!(snapshot(outside.root()), before);
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_changed() {
    let vault = TestVault::new(&[("a.md", "a")]);
    let root = vault.root();
    assert!(Command::new("mkfifo").arg(root.join("fifo.md")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket.md")).unwrap();
    fs::create_dir(root.join("folder.md")).unwrap();
    for name in ["fifo.md", "socket.md", "folder.md"] {
        let plan = plan(vec![FileChange {
            from: Some(place(name)),
            to: Some(place(name)),
            before: Some(ContentHash::of(b"")),
            content: whole("x"),
        }]);
        check_refused(root, &plan, ErrorKind::Invalid, "not a regular file");
    }
}

#[test]
fn a_write_leaves_other_hard_links_unchanged() {
    let outside = TestVault::new(&[("o.md", "o")]);
    let vault = TestVault::new(&[]);
    fs::hard_link(outside.root().join("o.md"), vault.root().join("h.md")).unwrap();
    let plan = plan(vec![change(vault.root(), Some("h.md"), Some("h.md"), whole("new"))]);
    check_applied(&vault, &plan, &[("h.md", "new")]);
    assert_eq!(fs::read(outside.root().join("o.md")).unwrap(), b"o");
}

#[test]
fn a_read_only_file_is_refused_before_anything_is_written() {
    let vault = TestVault::new(&[("a.md", "a"), ("b.md", "b")]);
    let root = vault.root();
    set_mode(root.join("b.md"), 0o444);
    let both = plan(vec![
        change(root, Some("a.md"), Some("a.md"), whole("x")),
        change(root, Some("b.md"), Some("b.md"), whole("x")),
    ]);
    check_refused(root, &both, ErrorKind::Io, "b.md is read-only");
    let removed = plan(vec![change(root, Some("b.md"), None, Content::Keep)]);
    check_refused(root, &removed, ErrorKind::Io, "b.md is read-only");
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_is_refused_before_anything_is_written() {
    without_root_privileges(read_only_folder_is_refused);
}

#[cfg(unix)]
fn read_only_folder_is_refused() {
    let vault = TestVault::new(&[("a.md", "a"), ("d/b.md", "b")]);
    let root = vault.root();
    set_mode(root.join("d"), 0o555);
    let a = || change(root, Some("a.md"), Some("a.md"), whole("x"));
    for other in [
        change(root, Some("d/b.md"), Some("d/b.md"), whole("x")),
        change(root, Some("d/b.md"), Some("b.md"), Content::Keep),
        FileChange::create(path("d/n.md"), Vec::new()),
        FileChange::create(path("d/n/n.md"), Vec::new()),
    ] {
        check_refused(root, &plan(vec![a(), other]), ErrorKind::Io, "change the folder d");
    }
    set_mode(root.join("d"), 0o755);
}

#[cfg(unix)]
#[test]
fn mode_and_extended_attributes_are_kept() {
    // The folder for temporary files may lie in memory, where some systems keep no attributes.
    let vault = TestVault::new_in(Path::new(env!("CARGO_TARGET_TMPDIR")), &[("a.md", "a"), ("b.md", "b")]);
    let root = vault.root();
    for name in ["a.md", "b.md"] {
        set_mode(root.join(name), 0o640);
    }
    let attribute = |file: &str| rustix_get(&root.join(file), "user.colour");
    rustix_set(&root.join("a.md"), "user.colour", b"green");
    let files = vec![
        change(root, Some("a.md"), Some("a.md"), whole("aa")),
        change(root, Some("b.md"), Some("c.md"), whole("bb")),
    ];
    check_applied(&vault, &plan(files), &[("a.md", "aa"), ("c.md", "bb")]);
    for name in ["a.md", "c.md"] {
        assert_eq!(mode_of(root.join(name)), 0o640, "{name}");
    }
    assert_eq!(attribute("a.md").as_deref(), Some(&b"green"[..]));
}

#[cfg(unix)]
fn rustix_set(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
}

#[cfg(unix)]
fn rustix_get(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 64];
    let len = rustix::fs::getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(len);
    Some(value)
}

#[test]
fn a_file_with_a_name_of_maximum_length_is_written() {
    let names = [format!("{}ä1.md", "n".repeat(249)), format!("{}ä2.md", "n".repeat(249))].map(|name| {
        assert_eq!(name.len(), 255);
        name
    });
    let vault = TestVault::new(&[(&names[0], "1"), (&names[1], "2")]);
    let root = vault.root();
    let files = names.iter().map(|name| change(root, Some(name), Some(name), whole("new"))).collect();
    check_applied(&vault, &plan(files), &[(&names[0], "new"), (&names[1], "new")]);
}

#[test]
fn a_second_writer_waits_and_then_names_the_holder_of_the_lock() {
    let vault = TestVault::new(&[]);
    let [vault, other] = [(); 2].map(|()| Vault::open(vault.root()).unwrap());
    let records = vault.records();
    let first = vault.lock(&records).unwrap();
    // One waits for the file, as another process does, and one behind a thread of its own process.
    for waiting in [&other, &vault] {
        let error = waiting.lock_with_timeout(&records, Duration::from_millis(3)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains(&std::process::id().to_string()), "{error}");
    }
    drop(first);
    vault.lock(&records).unwrap();
    let text = |name: &str| fs::read_to_string(vault.root().join(".sidenote").join(name)).unwrap();
    assert_eq!(text(".gitignore"), "index/\nbackups/\nlocal/\n");
    assert_eq!(text(".gitattributes"), "records/*.jsonl merge=union\n");
    assert_eq!(text("records/.gitignore"), "lock\npending/\nundo/\nconflicts/\n");
}

#[test]
fn the_records_folder_can_be_outside_the_vault() {
    let elsewhere = tempfile::tempdir().unwrap();
    let vault = TestVault::new(&[("a.md", "a")]);
    let opened = Vault::open(vault.root()).unwrap();
    let lock = opened.lock(&elsewhere.path().join("r/s")).unwrap();
    let files = vec![change(vault.root(), Some("a.md"), Some("b.md"), whole("b"))];
    opened.apply(&lock, &plan(files), at(0)).unwrap();
    assert_eq!(snapshot(vault.root()).into_keys().collect::<Vec<_>>(), ["b.md"]);
    assert!(!vault.root().join(".sidenote").exists());
    assert_eq!(fs::read_dir(elsewhere.path().join("r/s/undo")).unwrap().count(), 1);
}

/// Carries out the plan that `SIDENOTE_TEST_PLAN` names, or recovers where it names none: what a crash test runs as a
/// process of its own.
#[test]
#[ignore = "it is the child process of other tests"]
fn child_applies_a_plan() {
    let root = env_path("SIDENOTE_TEST_ROOT");
    let vault = Vault::open(root).unwrap();
    let lock = vault.lock(&vault.records()).unwrap();
    match std::env::var("SIDENOTE_TEST_PLAN") {
        Ok(file) => {
            let plan: ChangeSet = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            let applied = vault.apply(&lock, &plan, at(0)).unwrap();
            Journal::open(&vault, &vault.records()).record(&Event::of(&applied)).unwrap();
        }
        Err(_) => drop(vault.recover(&lock).unwrap()),
    }
}

/// Runs the child; says whether it lived to the end.
fn child_lives(root: &Path, plan: Option<&Path>, failpoint: u64) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["apply::child_applies_a_plan", "--exact", "--ignored", "--test-threads=1"])
        .env("SIDENOTE_TEST_ROOT", root)
        .env("SIDENOTE_FAILPOINT", failpoint.to_string());
    if let Some(plan) = plan {
        command.env("SIDENOTE_TEST_PLAN", plan);
    }
    let output = command.output().unwrap();
    let killed = was_killed(output.status);
    assert!(killed || output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    !killed
}

/// Kills a process at each of `points` while it carries out the plan, and another while it recovers.
fn check_crashes(files: &[(String, String)], plan: &ChangeSet, points: impl Iterator<Item = u64>) {
    let make = || -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let disk = root.path().join(name);
            fs::create_dir_all(disk.parent().unwrap()).unwrap();
            fs::write(disk, text).unwrap();
        }
        // The lock and its folder are there before the first step that counts.
        let vault = Vault::open(root.path()).unwrap();
        drop(vault.lock(&vault.records()).unwrap());
        root
    };
    let plans = tempfile::tempdir().unwrap();
    let plan_file = plans.path().join("plan.json");
    fs::write(&plan_file, serde_json::to_vec(plan).unwrap()).unwrap();
    let vault = make();
    let before = snapshot(vault.path());
    apply(vault.path(), plan).unwrap();
    let after = snapshot(vault.path());
    assert_ne!(before, after);
    let (mut undone, mut finished) = (0, 0);
    for point in points {
        let root = make();
        if child_lives(root.path(), Some(&plan_file), point) {
            assert_eq!(snapshot(root.path()), after);
            assert!(undone > 0 && finished > 0, "{undone} were undone, {finished} were finished");
            return;
        }
        child_lives(root.path(), None, 1 + point % 17);
        let vault = Vault::open(root.path()).unwrap();
        let lock = vault.lock(&vault.records()).unwrap();
        vault.recover(&lock).unwrap();
        let journal = Journal::open(&vault, &vault.records());
        journal.record_missing(&lock).unwrap();
        check_clean(root.path());
        let found = snapshot(root.path());
        let events = journal.undoable().unwrap();
        if found == before {
            undone += 1;
            assert_eq!(events.len(), 0, "at step {point}");
        } else {
            finished += 1;
            assert_eq!(found, after, "at step {point}");
            assert_eq!(events.len(), 1, "at step {point}");
            journal.undo(&lock, &events[0], at(1)).unwrap();
            assert_eq!(snapshot(root.path()), before, "at step {point}");
        }
    }
}

fn text(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_crash_at_any_step_leaves_before_or_after() {
    let files = text(&[
        ("edit.md", "one"),
        ("deep/er/edit.md", "two"),
        ("move.md", "three"),
        ("both.md", "four"),
        ("swap1.md", "five"),
        ("swap2.md", "six"),
        ("trash.md", "seven"),
        ("remove.md", "eight"),
        ("old/inside.md", "nine"),
        ("old/.hidden", "ten"),
        ("old/gone.md", "eleven"),
        ("replaced.md", "twelve"),
    ]);
    let root = tempfile::tempdir().unwrap();
    for (name, text) in &files {
        let disk = root.path().join(name);
        fs::create_dir_all(disk.parent().unwrap()).unwrap();
        fs::write(disk, text).unwrap();
    }
    let change = |from: &str, to: Option<&str>, content| change(root.path(), Some(from), to, content);
    let mut all = plan(vec![
        change("edit.md", Some("edit.md"), whole("ONE")),
        change("deep/er/edit.md", Some("deep/er/edit.md"), Content::Edits(vec![Edit::insert(0, ">")])),
        change("move.md", Some("made/for/it/move.md"), Content::Keep),
        change("both.md", Some("deep/both.md"), whole("FOUR")),
        change("swap1.md", Some("swap2.md"), Content::Keep),
        change("swap2.md", Some("swap1.md"), whole("SIX")),
        change("trash.md", Some(".trash/trash.md"), Content::Keep),
        change("remove.md", None, Content::Keep),
        change("old/inside.md", Some("new/inside.md"), whole("NINE")),
        change("old/gone.md", None, Content::Keep),
        change("replaced.md", None, Content::Keep),
        FileChange::create(path("new/fresh.md"), b"fresh".to_vec()),
        FileChange::create(path("made/n.md"), b"n".to_vec()),
    ]);
    all.folders = vec![folder("old", "new")];
    check_crashes(&files, &all, 1..);
}

/// A note with many notes that link to it is renamed.
fn renaming(count: usize) -> (Vec<(String, String)>, ChangeSet) {
    let mut files = vec![("Old name.md".to_owned(), "# Old\n".to_owned())];
    let mut renaming = ChangeSet::new("rename");
    renaming.files.push(FileChange {
        from: Some(place("Old name.md")),
        to: Some(place("New name.md")),
        before: Some(ContentHash::of(b"# Old\n")),
        content: Content::Keep,
    });
    for number in 0..count {
        let name = format!("folder {}/note {number}.md", number % 20);
        let text = format!("# Note {number}\n\nSee [[Old name]] for more.\n");
        let start = text.find("Old name").unwrap();
        let edit = Edit::replace(sidenote::markdown::span::Span::new(start, start + 8), "New name");
        renaming.files.push(FileChange::edit(path(&name), ContentHash::of(text.as_bytes()), vec![edit]));
        files.push((name, text));
    }
    (files, renaming)
}

#[test]
#[ignore = "it takes minutes: `just soak`"]
fn a_crash_at_any_step_of_a_rename_that_touches_two_hundred_notes() {
    let (files, renaming) = renaming(200);
    check_crashes(&files, &renaming, 1..);
}

#[test]
fn a_rename_of_a_thousand_notes_is_applied() {
    let (files, renaming) = renaming(1000);
    let vault = TestVault::new(&[]);
    for (name, text) in &files {
        vault.write(name, text);
    }
    let applied = apply(vault.root(), &renaming).unwrap();
    assert_eq!(applied.files.len(), 1001);
    let found = snapshot(vault.root());
    assert!(found.contains_key("New name.md") && !found.contains_key("Old name.md"));
    let is_new = |text: &Vec<u8>| text.ends_with(b"See [[New name]] for more.\n");
    assert_eq!(found.values().flatten().filter(|text| is_new(text)).count(), 1000);
    check_clean(vault.root());
}

#[test]
#[ignore = "it needs SIDENOTE_TEST_SMALL_DISK, a file system of a few megabytes"]
fn a_full_disk_leaves_the_vault_unchanged() {
    let folder = TempDir::new_in(env_path("SIDENOTE_TEST_SMALL_DISK")).unwrap();
    let big = "x".repeat(200_000);
    let mut files = Vec::new();
    for number in 0..200 {
        let name = format!("{number}.md");
        if fs::write(folder.path().join(&name), &big).is_err() {
            fs::remove_file(folder.path().join(&name)).unwrap();
            break;
        }
        files.push(name);
    }
    // Some room is left, though not enough.
    for name in files.drain(..5) {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    let changes =
        files.iter().map(|name| change(folder.path(), Some(name), Some(name), whole(&big.to_uppercase())));
    let plan = plan(changes.collect());
    let before = snapshot(folder.path());
    let error = apply(folder.path(), &plan).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(snapshot(folder.path()), before);
    check_clean(folder.path());
}

/// The process dies when half of the files are in place; then one file is edited, and another is deleted.
#[test]
fn recovery_keeps_files_that_were_changed_after_a_crash() {
    let (files, renaming) = renaming(6);
    let plans = tempfile::tempdir().unwrap();
    let plan_file = plans.path().join("plan.json");
    fs::write(&plan_file, serde_json::to_vec(&renaming).unwrap()).unwrap();
    let mut left_alone = 0;
    for point in 1.. {
        let vault = TestVault::new(&[]);
        for (name, text) in &files {
            vault.write(name, text);
        }
        if child_lives(vault.root(), Some(&plan_file), point) {
            break;
        }
        let committed = fs::read_dir(vault.root().join(".sidenote/records/pending"))
            .is_ok_and(|mut folders| folders.any(|it| it.unwrap().path().join("committed.json").exists()));
        vault.write("folder 5/note 5.md", "mine");
        let opened = Vault::open(vault.root()).unwrap();
        let recovery = opened.recover(&opened.lock(&opened.records()).unwrap()).unwrap();
        assert_eq!(fs::read(vault.root().join("folder 5/note 5.md")).unwrap(), b"mine");
        check_clean(vault.root());
        if let Some(said) = recovery.notices.iter().find(|said| said.contains("another program changed")) {
            assert!(committed && said.contains("folder 5/note 5.md"), "{said}");
            let id = &recovery.finished[0].id;
            let kept = opened.records().join("conflicts").join(id).join("folder 5/note 5.md");
            assert!(fs::read_to_string(kept).unwrap().contains("New name"));
            left_alone += 1;
        }
    }
    assert!(left_alone > 3, "{left_alone}");
}

#[test]
fn a_forged_manifest_touches_nothing_outside_the_vault() {
    let outside = TestVault::new(&[("victim", "v"), ("empty/x", "")]);
    outside.remove("empty/x");
    let vault = TestVault::new(&[("a.md", "a")]);
    let name = outside.root().file_name().unwrap().to_str().unwrap();
    let crafted = [
        format!(r#"{{"id":"x","operation":"o","at":0,"made":["../{name}/empty"],"files":[]}}"#),
        format!(
            r#"{{"id":"x","operation":"o","at":0,"files":[{{"to":{{"vault":"n.md"}},"temporary":"../{name}/victim"}}]}}"#
        ),
        r#"{"id":"x","operation":"o","at":0,"files":[{"from":{"vault":"../victim"}}]}"#.to_owned(),
    ];
    for text in crafted {
        for file in ["manifest.json", "committed.json"] {
            vault.write(&format!(".sidenote/records/pending/x/{file}"), &text);
            let opened = Vault::open(vault.root()).unwrap();
            opened.recover(&opened.lock(&opened.records()).unwrap()).unwrap();
            check_clean(vault.root());
            fs::remove_dir_all(vault.root().join(".sidenote/records")).unwrap();
        }
    }
    assert_eq!(snapshot(outside.root()).len(), 2);
    assert_eq!(snapshot(vault.root()).len(), 1);
}

/// Paths of random plans: the first seven are files, the others are free.
const PLACES: [&str; 9] =
    ["a.md", "b.md", "C.md", "d/a.md", "d/b.md", "d/e/f.md", "g/a.md", ".trash/a.md", "d/new/x.md"];

/// What may happen to one file: its place in the list above, and a kind of change.
fn changes() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u8>()), 1..7)
}

fn moved_by(folders: &[FolderMove], file: &str) -> String {
    for folder in folders {
        if let Some(rest) = file.strip_prefix(folder.from.as_str()).filter(|rest| rest.starts_with('/')) {
            return format!("{}{rest}", folder.to);
        }
    }
    file.to_owned()
}

#[test]
fn any_plan_is_applied_as_planned_and_can_be_undone() {
    let done = Cell::new(0);
    proptest!(ProptestConfig::with_cases(300), |(changes in changes(), folders in 0_u8..6)| {
        let files = &PLACES[..7];
        let vault = TestVault::new(&files.map_to_texts());
        let root = vault.root();
        let mut random = plan(Vec::new());
        random.folders = match folders {
            0 => vec![folder("d", "moved")],
            1 => vec![folder("d", "g"), folder("g", "d")],
            2 => vec![folder("d/e", "g/e")],
            _ => Vec::new(),
        };
        let mut expected: BTreeMap<String, Option<Vec<u8>>> = BTreeMap::new();
        let mut left: Vec<&str> = files.to_vec();
        for (number, (from, to, kind)) in changes.into_iter().enumerate() {
            let to = PLACES[usize::from(to) % PLACES.len()];
            let text = format!("text {number}");
            let chosen = usize::from(from) % files.len();
            let from = left.iter().position(|file| *file == files[chosen]);
            let (from, to, content) = match (from, kind % 6) {
                (Some(at), 0) => (Some(left.remove(at)), Some(to.to_owned()), Content::Keep),
                (Some(at), 1) => (Some(left.remove(at)), Some(to.to_owned()), whole(&text)),
                (Some(at), 2) => (Some(left.remove(at)), None, Content::Keep),
                (Some(at), 3 | 4) => {
                    let from = left.remove(at);
                    let edits = vec![Edit::insert(0, text.clone()), Edit::insert(1, "-")];
                    (Some(from), Some(moved_by(&random.folders, from)), Content::Edits(edits))
                }
                _ => (None, Some(to.to_owned()), whole(&text)),
            };
            if let Some(to) = &to {
                let bytes = match (&content, from) {
                    (Content::Whole(bytes), _) => bytes.clone(),
                    (Content::Edits(edits), Some(from)) => {
                        sidenote::markdown::edit::apply(&fs::read(root.join(from)).unwrap(), edits).unwrap()
                    }
                    (_, from) => fs::read(root.join(from.unwrap())).unwrap(),
                };
                expected.insert(to.clone(), Some(bytes));
            }
            random.files.push(change(root, from, to.as_deref(), content));
        }
        for file in left {
            expected.insert(moved_by(&random.folders, file), Some(fs::read(root.join(file)).unwrap()));
        }
        let before = snapshot(root);
        let opened = Vault::open(root).unwrap();
        let lock = opened.lock(&opened.records()).unwrap();
        match opened.apply(&lock, &random, at(0)) {
            Ok(applied) if applied.id.is_empty() => prop_assert_eq!(snapshot(root), before),
            Ok(applied) => {
                done.set(done.get() + 1);
                prop_assert!(applied.notices.is_empty());
                let mut found = snapshot(root);
                found.retain(|_, bytes| bytes.is_some());
                prop_assert_eq!(found, expected);
                let journal = Journal::open(&opened, &opened.records());
                journal.record(&Event::of(&applied)).unwrap();
                let (undo, _) = journal.undo(&lock, &Event::of(&applied), at(1)).unwrap();
                prop_assert!(undo.notices.is_empty());
                prop_assert_eq!(snapshot(root), before);
            }
            Err(_) => prop_assert_eq!(snapshot(root), before),
        }
        check_clean(root);
    });
    // Guards the property against plans that are all refused.
    assert!(done.get() > 30, "only {} plans were applied", done.get());
}

/// Gives each file a text of its own.
trait Texts<'a> {
    fn map_to_texts(&self) -> Vec<(&'a str, &'a str)>;
}

impl<'a> Texts<'a> for [&'a str] {
    fn map_to_texts(&self) -> Vec<(&'a str, &'a str)> {
        self.iter().map(|name| (*name, *name)).collect()
    }
}

#[test]
fn folders_that_a_move_needs_are_created() {
    let vault = TestVault::new(&PLACES[..7].map_to_texts());
    let moved = plan(vec![change(vault.root(), Some("a.md"), Some("d/new/x.md"), Content::Keep)]);
    assert_eq!(apply(vault.root(), &moved).unwrap().made, ["d/new"]);
    assert_eq!(fs::read(vault.root().join("d/new/x.md")).unwrap(), b"a.md");
}
