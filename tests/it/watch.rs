//! Tests following the files: changes by editors are found without a scan, processes take over from each other, and no
//! change is missed.

use std::fs;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use sidenote::base::error::ErrorKind;
use sidenote::index::silent;
use sidenote::search::Mode;
use sidenote::store::{
    EditRequest, Followed, Follower, MoveRequest, NoteEdit, Operation, SearchRequest, Store,
};

use crate::support::{LIMIT, TestVault, in_namespaces, stderr, stdout, symlink, until};

/// A store that follows its vault, and the steps that it reports.
struct Following {
    store: Arc<Store>,
    told: Receiver<Followed>,
    _follower: Follower,
}

impl Following {
    fn new(vault: &TestVault) -> Self {
        Self::of(vault.open("none"))
    }

    /// Follows with the user's leave to follow links out of the vault.
    fn outside(vault: &TestVault) -> Self {
        Self::of(vault.open_set(&[("embed.provider", "none"), ("vault.follow_outside", "true")]))
    }

    fn of(store: Store) -> Self {
        let store = Arc::new(store);
        let (sender, told) = channel();
        let follower = store.upkeep().follow(move |step| drop(sender.send(step))).unwrap();
        until("the store follows", || store.index().is_following());
        // The first scan was reported before.
        told.try_iter().for_each(drop);
        Self { store, told, _follower: follower }
    }

    /// Gives the next step that is about one of these paths.
    fn step(&self, path: &str) -> Followed {
        let end = Instant::now() + LIMIT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let step = self.told.recv_timeout(left).unwrap_or_else(|_| panic!("nobody tells of {path}"));
            if step.paths.iter().any(|told| told == path) {
                return step;
            }
        }
    }
}

fn find(store: &Store, query: &str) -> Vec<String> {
    let request =
        SearchRequest { query: query.to_owned(), mode: Some(Mode::Bm25), ..SearchRequest::default() };
    store.searches().search(&request).unwrap().results.into_iter().map(|hit| hit.path).collect()
}

/// The index says what a new one of the same files would.
fn check_rebuild(vault: &TestVault, store: &Store) {
    until("all is taken in", || store.index().refresh().unwrap() == 0);
    let fresh = TestVault::new(&[]);
    for (path, (bytes, _)) in vault.contents() {
        let name = path.strip_prefix(vault.root()).unwrap().to_owned();
        let to = fresh.root().join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, bytes).unwrap();
    }
    assert_eq!(store.index().dump().unwrap(), fresh.store().index().dump().unwrap());
}

#[test]
fn changes_by_editors_are_found_without_a_scan() {
    let vault = TestVault::new(&[("a.md", "one\n"), ("d/b.md", "two [[a]]\n"), ("d/e/c.md", "three\n")]);
    let following = Following::new(&vault);
    let store = &following.store;
    // Each search asks the watch, so nothing has to be waited for.
    vault.write("new.md", "zebra\n");
    assert_eq!(find(store, "zebra"), ["new.md"]);
    vault.write(".new.md.tmp", "okapi\n");
    fs::rename(vault.root().join(".new.md.tmp"), vault.root().join("new.md")).unwrap();
    assert_eq!((find(store, "zebra"), find(store, "okapi")), (vec![], vec!["new.md".to_owned()]));
    fs::create_dir_all(vault.root().join("x/y")).unwrap();
    vault.write("x/y/deep.md", "giraffe\n");
    assert_eq!(find(store, "giraffe"), ["x/y/deep.md"]);
    fs::rename(vault.root().join("x"), vault.root().join("z")).unwrap();
    assert_eq!(find(store, "giraffe"), ["z/y/deep.md"]);
    vault.write("z/y/deep.md", "gazelle\n");
    assert_eq!((find(store, "giraffe"), find(store, "gazelle")), (vec![], vec!["z/y/deep.md".to_owned()]));
    fs::remove_dir_all(vault.root().join("d")).unwrap();
    assert_eq!(find(store, "two three"), [""; 0]);
    fs::remove_file(vault.root().join("a.md")).unwrap();
    vault.write("A.md", "elephant\n");
    assert_eq!(find(store, "elephant"), ["A.md"]);
    check_rebuild(&vault, store);
}

/// Searches at the same time share the wait for the events, and still each finds what was written before it.
#[test]
fn many_searches_at_once_find_what_was_written_before_each() {
    let vault = TestVault::new(&[("a.md", "heron\n")]);
    let following = Following::new(&vault);
    let (vault, store) = (&vault, &following.store);
    std::thread::scope(|scope| {
        for writer in 0..8 {
            scope.spawn(move || {
                for round in 0..12 {
                    let word = format!("needle{writer}x{round}");
                    vault.write(&format!("n{writer}.md"), format!("{word}\n"));
                    // A search that says that it is behind may lack the word.
                    let request = SearchRequest { query: word.clone(), ..SearchRequest::default() };
                    let replies = std::iter::repeat_with(|| store.searches().search(&request).unwrap());
                    let reply = replies.take(100).find(|reply| !reply.stale).unwrap();
                    let found: Vec<&str> = reply.results.iter().map(|hit| hit.path.as_str()).collect();
                    assert_eq!(found, [format!("n{writer}.md")], "{word}");
                }
            });
        }
    });
    check_rebuild(vault, store);
}

/// Some file systems open a file by every spelling of its name; `docs/dev/testing.md` tells how to try one on Linux.
#[test]
fn a_rename_that_changes_only_the_case_leaves_one_name() {
    let vault =
        TestVault::new(&[("boat.md", "varnish\n"), ("d/oar.md", "ash wood\n"), ("s.md", "[[boat]]\n")]);
    let following = Following::new(&vault);
    let store = &following.store;
    let request = MoveRequest { from: "boat".to_owned(), to: "Boat.md".to_owned(), ..MoveRequest::default() };
    store.changes().change(&Operation::Move(request), false).unwrap();
    assert_eq!(find(store, "varnish"), ["Boat.md"]);
    vault.rename("Boat.md", "BOAT.md");
    assert_eq!(find(store, "varnish"), ["BOAT.md"]);
    fs::rename(vault.root().join("d"), vault.root().join("D")).unwrap();
    assert_eq!(find(store, "ash"), ["D/oar.md"]);
    vault.rename("D/oar.md", "D/OAR.md");
    assert_eq!(find(store, "ash"), ["D/OAR.md"]);
    check_rebuild(&vault, store);
}

#[test]
fn a_folder_that_moves_is_recognised_and_nothing_is_read_twice() {
    let notes: Vec<(String, String)> =
        (0..40).map(|at| (format!("d/sub/{at}.md"), format!("note {at}\n"))).collect();
    let notes: Vec<(&str, &str)> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = TestVault::new(&notes);
    let following = Following::new(&vault);
    fs::rename(vault.root().join("d"), vault.root().join("moved")).unwrap();
    let report = following.step("d").report;
    assert_eq!((report.moved, report.added, report.removed), (40, 0, 0));
    check_rebuild(&vault, &following.store);
}

#[test]
fn changes_outside_of_notes_make_no_batch() {
    let vault = TestVault::new(&[("a.md", "one\n")]);
    let following = Following::new(&vault);
    vault.write(".git/objects/x.md", "hidden\n");
    vault.write(".trash/t.md", "hidden\n");
    vault.write(".a.md.0123-0.sidenote-tmp", "hidden\n");
    // Reading is no change.
    fs::read(vault.root().join("a.md")).unwrap();
    vault.write("last.md", "zebra\n");
    let step = following.told.recv_timeout(LIMIT).unwrap();
    assert_eq!((step.paths, step.report.added), (vec!["last.md".to_owned()], 1));
}

#[test]
fn our_own_writes_are_indexed_once() {
    let vault = TestVault::new(&[("a.md", "one\n")]);
    let following = Following::new(&vault);
    let edit =
        EditRequest { note: "a".to_owned(), edit: NoteEdit::Append("zebra".to_owned(), None), expect: None };
    following.store.changes().change(&Operation::Edit(edit), false).unwrap();
    let generation = following.store.index().status().unwrap().generation;
    assert_eq!(find(&following.store, "zebra"), ["a.md"]);
    assert_eq!(following.store.index().status().unwrap().generation, generation, "the echo costs no batch");
}

/// Settings that exclude a folder count at once, whether or not there were any before.
fn check_settings(before: Option<&str>) {
    let vault = TestVault::new(&[("secret/a.md", "zebra\n"), ("b.md", "zebra\n")]);
    if let Some(text) = before {
        vault.write(".obsidian/app.json", text);
    }
    let following = Following::new(&vault);
    assert_eq!(find(&following.store, "zebra").len(), 2);
    vault.write(".obsidian/app.json", r#"{"userIgnoreFilters":["secret/"]}"#);
    assert_eq!(find(&following.store, "zebra"), ["b.md"]);
}

#[test]
fn changed_obsidian_settings_apply_at_once() {
    check_settings(Some("{}"));
    check_settings(None);
}

#[test]
fn names_reused_at_once_are_indexed() {
    let vault = TestVault::new(&[("a/one.md", "zebra\n"), ("b/two.md", "okapi\n"), ("c.md", "gazelle\n")]);
    let following = Following::new(&vault);
    let rename = |from: &str, to: &str| fs::rename(vault.root().join(from), vault.root().join(to)).unwrap();
    rename("a", ".aside");
    fs::create_dir(vault.root().join("a")).unwrap();
    vault.write("a/new.md", "giraffe\n");
    check_rebuild(&vault, &following.store);
    rename("a", "t");
    rename("b", "a");
    rename("t", "b");
    check_rebuild(&vault, &following.store);
    fs::remove_file(vault.root().join("c.md")).unwrap();
    vault.write("c.md/inner.md", "lemur\n");
    check_rebuild(&vault, &following.store);
}

#[test]
fn a_folder_renamed_repeatedly_leaves_no_stale_notes() {
    let notes: Vec<(String, String)> =
        (0..200).map(|at| (format!("z0/{at}.md"), format!("note {at}\n"))).collect();
    let notes: Vec<(&str, &str)> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = TestVault::new(&notes);
    let following = Following::new(&vault);
    for at in 0..25 {
        let name = |at: usize| vault.root().join(format!("z{at}"));
        fs::rename(name(at), name(at + 1)).unwrap();
        if at % 3 == 0 {
            // A search in the middle of it.
            find(&following.store, "note");
        }
    }
    until("all is taken in", || following.store.index().status().unwrap().behind == 0);
    check_rebuild(&vault, &following.store);
}

#[test]
fn targets_of_links_are_watched() {
    let vault = TestVault::new(&[("a.md", "one\n")]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x.md"), "zebra\n").unwrap();
    fs::create_dir(outside.path().join("d")).unwrap();
    fs::write(outside.path().join("d/y.md"), "okapi\n").unwrap();
    let link = |to: &str, name: &str| {
        symlink(outside.path().join(to), vault.root().join(name));
    };
    link("x.md", "linked.md");
    link("later.md", "dangling.md");
    link("d", "one");
    link("d", "two");
    let following = Following::outside(&vault);
    assert_eq!(
        (find(&following.store, "zebra"), find(&following.store, "okapi")),
        (vec!["linked.md".to_owned()], vec!["one/y.md".to_owned()])
    );
    fs::write(outside.path().join("x.md"), "giraffe\n").unwrap();
    fs::write(outside.path().join("later.md"), "lemur\n").unwrap();
    fs::write(outside.path().join("d/y.md"), "gazelle\n").unwrap();
    assert_eq!(find(&following.store, "giraffe"), ["linked.md"]);
    assert_eq!(find(&following.store, "lemur"), ["dangling.md"]);
    assert_eq!(find(&following.store, "gazelle"), ["one/y.md"]);
    assert_eq!(find(&following.store, "zebra okapi"), [""; 0]);
}

#[test]
fn a_link_that_becomes_dangling_is_not_a_deletion() {
    let vault = TestVault::new(&[("a.md", "zebra\n"), ("real/b.md", "okapi\n")]);
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("d")).unwrap();
    fs::write(outside.path().join("d/y.md"), "gazelle\n").unwrap();
    symlink(outside.path().join("d"), vault.root().join("one"));
    let following = Following::outside(&vault);
    let catalog = |path: &str| following.store.lookup().find(path).is_ok();
    assert!(catalog("a.md") && catalog("one/y.md"));
    // The file and the folder are away for the moment, as those on a drive are.
    fs::remove_file(vault.root().join("a.md")).unwrap();
    symlink(outside.path().join("nowhere.md"), vault.root().join("a.md"));
    fs::rename(outside.path().join("d"), outside.path().join("away")).unwrap();
    for _ in 0..2 {
        assert_eq!(find(&following.store, "okapi"), ["real/b.md"]);
        assert!(catalog("a.md") && catalog("one/y.md"), "what could not be looked at is as it was");
    }
    fs::rename(outside.path().join("away"), outside.path().join("d")).unwrap();
    // A linked folder that came back is watched again.
    assert_eq!(find(&following.store, "gazelle"), ["one/y.md"]);
    fs::remove_file(outside.path().join("d/y.md")).unwrap();
    fs::remove_file(vault.root().join("a.md")).unwrap();
    until("what is deleted goes", || {
        following.store.index().refresh().unwrap();
        !catalog("a.md")
    });
    until("what is deleted behind the link goes", || {
        following.store.index().sync(silent()).unwrap();
        !catalog("one/y.md")
    });
}

/// As when a drive is mounted after the server was started.
#[test]
#[cfg_attr(windows, ignore = "Windows decides when a link is made whether it leads to a folder")]
fn a_folder_that_comes_behind_a_link_is_read_and_watched() {
    let vault = TestVault::new(&[("a.md", "zebra\n")]);
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path().join("one"), vault.root().join("before"));
    let following = Following::outside(&vault);
    symlink(outside.path().join("two"), vault.root().join("after"));
    assert_eq!(find(&following.store, "zebra"), ["a.md"]);
    for (folder, link) in [("one", "before"), ("two", "after")] {
        let (folder, note) = (outside.path().join(folder), format!("{link}/y.md"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("y.md"), "okapi\n").unwrap();
        assert_eq!(find(&following.store, "okapi"), [note.as_str()]);
        until("the folder is watched", || {
            fs::write(folder.join("y.md"), "lemur\n").unwrap();
            find(&following.store, "lemur") == [note.as_str()]
        });
        fs::remove_file(folder.join("y.md")).unwrap();
        until("its files go", || find(&following.store, "lemur").is_empty());
    }
    check_rebuild(&vault, &following.store);
}

#[test]
fn a_folder_linked_twice_shows_its_notes_once() {
    let vault = TestVault::new(&[("a.md", "zebra\n"), ("real/b.md", "okapi\n")]);
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("d")).unwrap();
    fs::write(outside.path().join("d/y.md"), "gazelle\n").unwrap();
    let link = |to: &std::path::Path, name: &str| {
        symlink(to, vault.root().join(name));
    };
    link(&outside.path().join("d"), "one");
    let following = Following::outside(&vault);
    let store = &following.store;
    assert_eq!(find(store, "gazelle"), ["one/y.md"]);
    link(&outside.path().join("d"), "two");
    link(&vault.root().join("real"), "twin");
    assert_eq!(
        (find(store, "gazelle"), find(store, "okapi")),
        (vec!["one/y.md".to_owned()], vec!["real/b.md".to_owned()])
    );
    fs::write(outside.path().join("d/z.md"), "gazelle\n").unwrap();
    until("the new note is found", || find(store, "gazelle").len() == 2);
    assert_eq!(find(store, "gazelle"), ["one/y.md", "one/z.md"]);
    // A note that is written by the second way is the one that the first shows.
    let edit = NoteEdit::Append("lemur".to_owned(), None);
    let edit = EditRequest { note: "two/y.md".to_owned(), edit, expect: None };
    assert!(store.changes().change(&Operation::Edit(edit), false).unwrap().applied);
    assert_eq!(find(store, "lemur"), ["one/y.md"]);
    fs::remove_file(vault.root().join("one")).unwrap();
    until("the second link takes over", || find(store, "lemur") == ["two/y.md"]);
    fs::remove_file(vault.root().join("two")).unwrap();
    until("the folder is gone", || find(store, "lemur").is_empty());
    assert_eq!(find(store, "okapi"), ["real/b.md"]);
}

#[test]
fn one_unreadable_link_does_not_disable_watching() {
    let vault = TestVault::new(&[("a.md", "zebra\n"), ("held.md", "okapi\n")]);
    let following = Following::new(&vault);
    let store = &following.store;
    assert_eq!(find(store, "zebra"), ["a.md"]);
    let link = |to: &str, name: &str| {
        let disk = vault.root().join(name);
        if disk.symlink_metadata().is_ok() {
            fs::remove_file(&disk).unwrap();
        }
        symlink(to, disk);
    };
    link("self", "self");
    link("self.md", "self.md");
    link(&"x".repeat(300), "long.md");
    link(&format!("/{}", "y/".repeat(2000)), "longer.md");
    link("loop.md", "held.md");
    link("held.md", "loop.md");
    for _ in 0..3 {
        assert_eq!(find(store, "zebra"), ["a.md"]);
    }
    assert!(store.lookup().find("held.md").is_ok(), "a look that failed removes nothing");
    // An entry of a note that cannot be read now hides no other note.
    assert_eq!(find(store, "zebra OR okapi"), ["a.md"]);
    let mut taken_out = Vec::new();
    let reply = store.upkeep().export(sidenote::store::ExportForm::Jsonl, &mut taken_out).unwrap();
    assert_eq!((reply.exported, reply.left_out), (1, vec!["held.md".to_owned()]));
    assert!(store.reads().links("a.md").is_ok());
    assert!(store.upkeep().backup(None).is_ok());
    vault.write("new.md", "giraffe\n");
    assert_eq!(find(store, "giraffe"), ["new.md"]);
    // Neither does it for a command that looks at everything.
    let output = vault.command(&["search", "giraffe", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("new.md"));
}

#[test]
#[cfg_attr(windows, ignore = "Windows removes no database that is open")]
fn an_index_removed_while_watched_is_rebuilt() {
    let vault = TestVault::new(&[("a.md", "zebra\n")]);
    let following = Following::new(&vault);
    fs::remove_dir_all(vault.root().join(".sidenote/index")).unwrap();
    vault.write("b.md", "zebra\n");
    until("both are found", || find(&following.store, "zebra").len() == 2);
    check_rebuild(&vault, &following.store);
}

#[test]
#[cfg_attr(windows, ignore = "Windows removes no database that is open")]
fn an_index_rebuilt_by_another_process_is_not_written_without_its_lock() {
    let vault = TestVault::new(&[("a.md", "zebra\n")]);
    let following = Following::new(&vault);
    assert_eq!(find(&following.store, "zebra"), ["a.md"]);
    fs::remove_dir_all(vault.root().join(".sidenote/index")).unwrap();
    let made = vault.run(&["index", "--no-embed"]);
    assert!(made.status.success(), "{made:?}");
    vault.write("b.md", "zebra\n");
    until("both are found", || find(&following.store, "zebra").len() == 2);
    // Nothing of the old index went into the new one.
    drop(following);
    let checked = vault.run(&["search", "zebra"]);
    assert!(!stderr(&checked).contains("damaged"), "{}", stderr(&checked));
}

#[test]
fn the_wal_stays_short_where_only_times_change() {
    let vault = TestVault::new(&[("a.md", "zebra\n")]);
    let store = vault.store();
    let note = fs::File::options().write(true).open(vault.root().join("a.md")).unwrap();
    for at in 1..1000 {
        note.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(at)).unwrap();
        store.index().sync(silent()).unwrap();
    }
    let log = vault.root().join(".sidenote/index/catalog.db-wal");
    let length = || fs::metadata(&log).map_or(0, |found| found.len());
    assert!(length() < 80 << 20, "{}", length());
    until("what is left goes in a lull", || length() <= 16 << 20);
}

#[test]
fn a_vault_that_disappears_is_not_recreated_and_is_watched_when_it_returns() {
    let outer = TestVault::new(&[("v/a.md", "zebra\n")]);
    let (root, away) = (outer.root().join("v"), outer.root().join("away"));
    let store = Store::open(sidenote::store::Open {
        vault: Some(root.clone()),
        flags: vec![("embed.provider", "none".to_owned(), "test")],
        ..Default::default()
    });
    let store = Arc::new(store.unwrap());
    let _follower = store.upkeep().follow(|_| {}).unwrap();
    until("the store follows", || store.index().is_following());
    fs::rename(&root, &away).unwrap();
    until("the store sees it", || {
        !store.index().is_following() || store.searches().search(&SearchRequest::default()).is_err()
    });
    assert!(!root.exists(), "nothing is made where the vault was");
    fs::write(away.join("b.md"), "zebra\n").unwrap();
    fs::rename(&away, &root).unwrap();
    let request = SearchRequest { query: "zebra".to_owned(), ..SearchRequest::default() };
    until("all is found again", || {
        store.searches().search(&request).is_ok_and(|reply| reply.results.len() == 2)
    });
}

/// A process that follows a vault.
struct Process(Child);

impl Process {
    fn start(vault: &TestVault) -> Self {
        let mut command = vault.command(&["watch"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let path = vault.root().join(".sidenote/index/pulse");
        until("the process follows", || path.exists());
        Self(child)
    }
}

#[test]
#[ignore = "it needs user namespaces, which many systems refuse; `.ci/run` runs it where it can"]
fn watching_is_retried_when_the_system_has_no_watches_left() {
    let vault = TestVault::new(&[("a/b/c/d.md", "one\n"), ("e/f/g.md", "one\n")]);
    let command = vault.command(&["watch", "--json"]);
    let script = "echo 3 >/proc/sys/user/max_inotify_watches; exec \"$@\"";
    let mut command = in_namespaces(script, &command);
    let (log, events) = (vault.root().join(".log"), vault.root().join(".events"));
    command.stdout(fs::File::create(&events).unwrap()).stderr(fs::File::create(&log).unwrap());
    let _watch = Process(command.spawn().unwrap());
    let read = |path: &std::path::Path| fs::read_to_string(path).unwrap();
    until("it says so", || read(&log).contains("the system has no watches left"));
    until("it has seen what is there", || read(&events).contains("\"added\":2"));
    vault.write("a/b/c/later.md", "zebra\n");
    until("it sees what is new all the same", || read(&events).contains("\"added\":1"));
    let found = vault.run(&["search", "--no-sync", "--mode", "bm25", "zebra"]);
    assert!(stdout(&found).contains("later"), "{}", stdout(&found));
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_command_beside_a_server_reads_its_own_writes() {
    let vault = TestVault::new(&[("a.md", "one\n")]);
    let _server = Process::start(&vault);
    for at in 0..5 {
        let text = format!("zebra{at}");
        let changed = vault.run(&["append", "a", &text]);
        assert!(changed.status.success(), "{changed:?}");
        let found = stdout(&vault.run(&["--json", "search", "--no-sync", "--mode", "bm25", &text]));
        assert!(found.contains("\"a.md\""), "{found}");
    }
}

#[test]
fn another_process_becomes_the_writer_when_the_writer_dies() {
    let vault = TestVault::new(&[("a.md", "one\n")]);
    let server = Process::start(&vault);
    let store = vault.open("none");
    assert!(!store.is_writer());
    vault.write("b.md", "zebra\n");
    until("the other process sees it", || find(&store, "zebra") == ["b.md"]);
    drop(server);
    vault.write("c.md", "okapi\n");
    assert_eq!(find(&store, "okapi"), ["c.md"]);
    assert!(store.is_writer());
    check_rebuild(&vault, &store);
}

#[test]
#[cfg_attr(windows, ignore = "Windows removes no database that is open")]
fn an_index_removed_or_rebuilt_under_a_process_is_reopened() {
    let vault = TestVault::new(&[("a.md", "zebra\n")]);
    let store = vault.open("none");
    assert_eq!(find(&store, "zebra"), ["a.md"]);
    fs::remove_dir_all(vault.root().join(".sidenote/index")).unwrap();
    // The next process rebuilds the index, and ends.
    assert!(vault.run(&["index", "--no-embed"]).status.success());
    vault.write("b.md", "zebra\n");
    assert_eq!(find(&store, "zebra").len(), 2);
}

#[test]
fn a_reader_follows_a_rebuild_by_another_process() {
    let vault = TestVault::new(&[("a.md", "zebra\n")]);
    let server = Process::start(&vault);
    let store = vault.open("none");
    assert_eq!(find(&store, "zebra"), ["a.md"]);
    drop(server);
    assert!(vault.run(&["index", "--rebuild", "--no-embed"]).status.success());
    let _server = Process::start(&vault);
    vault.write("b.md", "zebra\n");
    until("both are found", || find(&store, "zebra").len() == 2);
}

/// What one process finds without comparing the files with the index, because another one follows them.
#[test]
fn a_reader_relies_on_the_process_that_follows_the_files() {
    let vault = TestVault::new(&[("a.md", "zebra\n")]);
    let following = Following::new(&vault);
    let reader = vault.open("none");
    let writer = || reader.index().wait_for_follower(LIMIT);
    until("the follower answers", writer);
    assert!(!reader.index().is_following());
    // Each edit is found at once, though the file is written right before the search.
    for at in 0..20 {
        vault.write("b.md", format!("quagga{at}\n"));
        assert!(writer(), "edit {at}");
        assert_eq!(find(&reader, &format!("quagga{at}")), ["b.md"]);
    }
    drop(following);
    // Without a follower the reader takes over, and finds what nobody told of.
    vault.write("c.md", "okapi\n");
    until("the reader takes over", || find(&reader, "okapi") == ["c.md"]);
}

/// No system tells of a write through another name of a file.
#[cfg(unix)]
#[test]
fn a_move_of_many_files_follows_links_that_nobody_told_of() {
    let settings = [(".obsidian/app.json", r#"{"newLinkFormat":"relative"}"#)];
    let padding: Vec<String> = (0..300).map(|at| format!("A/in/n{at}.md")).collect();
    let notes = padding.iter().map(|path| (path.as_str(), "")).chain(settings).chain([("t.md", "")]);
    let vault = TestVault::new(&notes.collect::<Vec<_>>());
    let Following { store, _follower, .. } = Following::new(&vault);
    let outside = tempfile::tempdir().unwrap();
    let name = outside.path().join("other name.md");
    fs::hard_link(vault.root().join("A/in/n7.md"), &name).unwrap();
    fs::write(&name, "[l](../../t.md)").unwrap();
    let request = MoveRequest { from: "A".to_owned(), to: "B/C".to_owned(), ..MoveRequest::default() };
    assert!(store.changes().change(&Operation::Move(request), false).unwrap().applied);
    assert_eq!(vault.read("B/C/in/n7.md"), "[l](../../../t.md)");
}

/// What changes links in other notes waits until the batch is indexed.
#[test]
fn reading_and_editing_do_not_wait_for_a_large_batch() {
    let many: Vec<String> = (0..2_000).map(|at| format!("many/n{at}.md")).collect();
    let notes = many.iter().map(|path| (path.as_str(), "One of many.\n"));
    let own = [
        ("Heron.md", "# Heron\n\nGrey.\n"),
        ("List.md", "See [[Heron]].\n"),
        ("Gone.md", "Soon.\n"),
        ("Other.md", "Other.\n"),
    ];
    let vault = TestVault::new(&notes.chain(own).collect::<Vec<_>>());
    let store = vault.open("none");
    let (begun, has_begun) = channel();
    let (end, ended) = channel::<()>();
    // The thread that writes the index stands still at the end of its first batch, until the test lets it go on.
    store.index().on_change(move |report| {
        if report.added >= 2_000 {
            begun.send(()).unwrap();
            ended.recv_timeout(LIMIT).unwrap();
        }
    });
    let follower = store.upkeep().follow(|_| {}).unwrap();
    has_begun.recv_timeout(LIMIT).unwrap();
    let append = NoteEdit::Append("It waits for nobody.".to_owned(), None);
    let edit = EditRequest { note: "Heron".to_owned(), edit: append, expect: None };
    let reply = store.changes().change(&Operation::Edit(edit), false).unwrap();
    assert!(reply.applied);
    assert_eq!(
        reply.notices,
        ["the index does not show the change yet, because many files are being indexed"]
    );
    // What another program does meanwhile counts: a note is found by a name that it got, and not by one that it lost.
    let edit = |name: &str| {
        let append = NoteEdit::Append("Appended.".to_owned(), None);
        let edit = EditRequest { note: name.to_owned(), edit: append, expect: None };
        store.changes().change(&Operation::Edit(edit), false)
    };
    vault.write("Other.md", "---\naliases: [Bittern]\n---\nOther.\n");
    vault.remove("Gone.md");
    assert!(edit("Bittern").unwrap().applied);
    assert_eq!(edit("Gone").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(edit("gone.md").unwrap_err().kind(), ErrorKind::NotFound);
    vault.write("many/Gone.md", "Elsewhere.\n");
    assert!(edit("Gone").unwrap().applied);
    assert_eq!(vault.read("many/Gone.md"), "Elsewhere.\n\nAppended.\n");
    assert_eq!(vault.read("Other.md"), "---\naliases: [Bittern]\n---\nOther.\n\nAppended.\n");
    vault.write("New.md", "Not indexed yet.\n");
    let request = SearchRequest { query: "many".to_owned(), ..SearchRequest::default() };
    assert!(store.searches().search(&request).unwrap().stale);
    assert_eq!(store.lookup().find("New").unwrap().path.as_str(), "New.md");
    // So does what happens after the server has looked which files differ.
    let long = "Я".repeat(150);
    vault.write("Other.md", format!("---\ntitle: {long}\n---\nOther.\n"));
    vault.write("Later.md", "---\naliases: [Bittern]\n---\nLater.\n");
    let named = |name: &str| store.lookup().find(name).unwrap().path.to_string();
    assert_eq!(
        ["Bittern", "Later", "later", &long].map(named),
        ["Later.md", "Later.md", "Later.md", "Other.md"]
    );
    assert!(edit("Bittern").unwrap().applied && edit(&long).unwrap().applied);
    assert_eq!(vault.read("Later.md"), "---\naliases: [Bittern]\n---\nLater.\n\nAppended.\n");
    vault.remove("New.md");
    assert_eq!(store.lookup().find("New").unwrap_err().kind(), ErrorKind::NotFound);
    let moved = MoveRequest { from: "Heron".to_owned(), to: "Egret.md".to_owned(), ..MoveRequest::default() };
    std::thread::scope(|scope| {
        let mover = scope.spawn(|| store.changes().change(&Operation::Move(moved), false).unwrap());
        end.send(()).unwrap();
        assert!(mover.join().unwrap().notices.is_empty());
    });
    assert_eq!(vault.read("List.md"), "See [[Egret]].\n");
    assert_eq!(vault.read("Egret.md"), "# Heron\n\nGrey.\n\nIt waits for nobody.\n");
    check_rebuild(&vault, &store);
    assert_eq!(find(&store, "nobody"), ["Egret.md"]);
    drop(follower);
}

/// The mount point of a vault is an empty folder once the vault is unmounted. Its notes are not deleted then.
#[test]
#[cfg(target_os = "linux")]
#[ignore = "it needs user namespaces, which many systems refuse; `.ci/run` runs it where it can"]
fn a_vault_that_is_not_mounted_any_more_is_not_an_empty_one() {
    let (vault, index) = (TestVault::new(&[]), tempfile::tempdir().unwrap());
    let root = vault.root().display().to_string();
    let before = fs::read_dir(vault.root()).unwrap().count();
    for elsewhere in [true, false] {
        let mut command = vault.command(&["mcp"]);
        if elsewhere {
            command.arg("--index").arg(index.path().join("index"));
        }
        let script = format!("mount -t tmpfs none '{root}'; echo heron >'{root}/a.md'; exec \"$@\"");
        let mut client = crate::mcp_client::Client::of(&mut in_namespaces(&script, &command));
        let search = serde_json::json!({ "query": "heron" });
        assert!(client.text("search_notes", search.clone()).contains("a.md"));
        let pid = client.pid().to_string();
        let unmount =
            ["--target", &pid, "--user", "--preserve-credentials", "--mount", "umount", "--lazy", &root];
        assert!(std::process::Command::new("nsenter").args(unmount).status().unwrap().success());
        for (tool, arguments) in [
            ("search_notes", search),
            ("write_note", serde_json::json!({ "title": "New", "content": "x" })),
            ("list_notes", serde_json::json!({})),
        ] {
            let reply = client.call(tool, arguments);
            let text = reply["content"][0]["text"].as_str().unwrap();
            assert!(reply["isError"] == true || text.contains("a.md"), "{tool}, {elsewhere}: {reply}");
            assert!(reply["isError"] != true || text.contains("not mounted"), "{tool}, {elsewhere}: {reply}");
        }
        drop(client);
        assert_eq!(
            fs::read_dir(vault.root()).unwrap().count(),
            before,
            "something was made in the mount point"
        );
    }
}
