//! Tests many processes and operations at once: no update is lost, no file is torn, and everything can be undone.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sidenote::base::error::ErrorKind;
use sidenote::markdown::edit::ContentHash;
use sidenote::store::{EditRequest, LinkRequest, MoveRequest, NoteEdit, Operation, Store};
use sidenote::vault::Vault;
use sidenote::vault::write_lock::writers_of;

use crate::support::{TestVault, env_number, env_path, journal_files, stderr, stdout};

/// Where the parts of a test that runs in other processes find their vault, and which of them each is.
const VAULT: &str = "SIDENOTE_TEST_VAULT";
const WORKER: &str = "SIDENOTE_TEST_WORKER";

/// Adds one line after the other, each time with the hash of what it read: now to notes that all workers write to, now
/// to one of its own.
#[test]
#[ignore = "it is the child process of another test"]
fn worker() {
    let (root, worker) = (env_path(VAULT), std::env::var(WORKER).unwrap());
    let store = Store::open(sidenote::store::Open {
        vault: Some(root.clone()),
        flags: vec![("embed.provider", "none".to_owned(), "test")],
        ..Default::default()
    })
    .unwrap();
    for edit in 0..env_number("SIDENOTE_TEST_EDITS", 20) {
        let shared = format!("n{}.md", edit / 2 % env_number("SIDENOTE_TEST_NOTES", 5));
        let note = if edit % 2 == 0 { shared } else { format!("own{worker}.md") };
        loop {
            let bytes = fs::read(root.join(&note)).unwrap();
            let request = EditRequest {
                note: note.clone(),
                edit: NoteEdit::Append(format!("- worker {worker} edit {edit}"), None),
                expect: Some(ContentHash::of(&bytes)),
            };
            match store.changes().change(&Operation::Edit(request), false) {
                Ok(reply) => {
                    assert!(reply.applied);
                    break;
                }
                // Another process was faster or holds the lock: read again.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn no_update_is_lost_among_processes() {
    let workers = env_number("SIDENOTE_TEST_WORKERS", 3);
    let edits = env_number("SIDENOTE_TEST_EDITS", 20);
    let shared = (0..env_number("SIDENOTE_TEST_NOTES", 5)).map(|note| format!("n{note}.md"));
    let notes: Vec<String> = shared.chain((0..workers).map(|worker| format!("own{worker}.md"))).collect();
    let vault = TestVault::new(&notes.iter().map(|note| (note.as_str(), "- start\n")).collect::<Vec<_>>());
    drop(vault.store());
    let program = std::env::current_exe().unwrap();
    let children: Vec<_> = (0..workers)
        .map(|worker| {
            std::process::Command::new(&program)
                .args(["--exact", "--ignored", "concurrency::worker"])
                .env(VAULT, vault.root())
                .env(WORKER, worker.to_string())
                .env("SIDENOTE_TEST_EDITS", edits.to_string())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for note in &notes {
        let text = fs::read_to_string(vault.root().join(note)).unwrap();
        assert!(text.starts_with("- start\n") && text.ends_with('\n'), "{text}");
        for line in text.lines().skip(1) {
            *lines.entry(line.to_owned()).or_default() += 1;
        }
    }
    let wanted = (0..workers)
        .flat_map(|worker| (0..edits).map(move |edit| (format!("- worker {worker} edit {edit}"), 1)))
        .collect();
    assert_eq!(lines, wanted, "every edit is there once");
    let mut events = 0;
    for path in journal_files(vault.root()) {
        for line in fs::read_to_string(path).unwrap().lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
            events += 1;
        }
    }
    assert_eq!(events, workers * edits, "every journal line parses");
    let history = vault.run(&["history", "n0", "-n", "3"]);
    assert!(history.status.success(), "{}", stderr(&history));
}

#[test]
fn searches_succeed_while_the_index_is_rebuilt() {
    let texts: Vec<(String, String)> = (0..env_number("SIDENOTE_TEST_LARGE", 200))
        .map(|at| {
            (
                format!("n{at}.md"),
                format!("# Note {at}\n\nA heron stands in the reeds, for the {at}th time.\n"),
            )
        })
        .collect();
    let vault =
        TestVault::new(&texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
    drop(vault.store());
    let done = AtomicBool::new(false);
    let searches: usize = std::thread::scope(|scope| {
        let search = || {
            let mut searches = 0;
            while !done.load(Ordering::SeqCst) || searches == 0 {
                let found = vault.run(&["--json", "search", "--mode", "bm25", "heron"]);
                searches += 1;
                assert!(found.status.success(), "{}", stderr(&found));
                assert!(stdout(&found).contains("in the reeds"), "{}", stdout(&found));
            }
            searches
        };
        let searchers: Vec<_> = (0..10).map(|_| scope.spawn(search)).collect();
        for _ in 0..env_number("SIDENOTE_TEST_REBUILDS", 6) {
            // The searchers take turns at the lock, too.
            while vault.run(&["index", "--rebuild", "--no-embed"]).status.code() == Some(5) {}
        }
        done.store(true, Ordering::SeqCst);
        searchers.into_iter().map(|searcher| searcher.join().unwrap()).sum()
    });
    assert!(searches >= 10, "{searches}");
}

#[test]
fn undoing_all_operations_restores_the_first_tree() {
    let vault = TestVault::example();
    let store = vault.store();
    let bytes = |vault: &TestVault| -> BTreeMap<_, _> {
        vault.contents().into_iter().map(|(path, (bytes, _))| (path, bytes)).collect()
    };
    let first = bytes(&vault);
    let mut state = 1u64;
    let mut dice = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let mut done = 0;
    for turn in 0..env_number("SIDENOTE_TEST_TURNS", 60) {
        let list = store.reads().list(&Default::default()).unwrap().notes;
        let a = list[dice(list.len())].path.clone();
        let b = list[dice(list.len())].path.clone();
        let one = |edit| Operation::Edit(EditRequest { note: a.clone(), edit, expect: None });
        let pair = || LinkRequest { a: a.clone(), b: b.clone(), text: None };
        let operation = match dice(7) {
            0 => Operation::Move(MoveRequest {
                from: a.clone(),
                to: format!("Turn {turn}/{}", a.rsplit('/').next().unwrap()),
                relaxed: true,
                ..MoveRequest::default()
            }),
            1 => Operation::Move(MoveRequest {
                from: a.clone(),
                to: format!("{} {turn}.md", a.trim_end_matches(".md")),
                relaxed: true,
                ..MoveRequest::default()
            }),
            2 => one(NoteEdit::Append(format!("turn {turn}"), None)),
            3 => one(NoteEdit::Set("turn".to_owned(), turn.into())),
            4 => one(NoteEdit::Tags { add: vec![format!("t{turn}")], remove: Vec::new() }),
            5 => Operation::Link(pair()),
            _ => Operation::Unlink(pair()),
        };
        match store.changes().change(&operation, false) {
            Ok(reply) => done += usize::from(reply.applied),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Invalid, "{operation:?}: {error}"),
        }
    }
    assert!(done * 3 > env_number("SIDENOTE_TEST_TURNS", 60), "{done} operations");
    assert!(bytes(&vault) != first);
    assert_eq!(store.changes().undo(done, false).unwrap().len(), done);
    let last = bytes(&vault);
    assert_eq!(first.keys().collect::<Vec<_>>(), last.keys().collect::<Vec<_>>());
    assert!(first == last, "byte for byte");
}

/// The threads of a server that change one vault take turns: whoever asks later waits longer.
#[test]
fn nobody_is_overtaken_by_those_who_ask_for_the_write_lock_later() {
    const THREADS: usize = 8;
    let folder = TestVault::new(&[]);
    let vault = Vault::open(folder.root()).unwrap();
    let served = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let first = vault.lock(&vault.records()).unwrap();
        let (vault, served) = (&vault, &served);
        for number in 0..THREADS {
            scope.spawn(move || {
                let lock = vault.lock(&vault.records()).unwrap();
                served.lock().unwrap().push(number);
                drop(lock);
            });
            while writers_of(vault) < number + 2 {
                std::thread::yield_now();
            }
            // Who gives up leaves the queue.
            assert!(vault.lock_with_timeout(&vault.records(), Duration::from_millis(1)).is_err());
        }
        assert_eq!(writers_of(vault), THREADS + 1);
        drop(first);
    });
    assert_eq!(served.into_inner().unwrap(), (0..THREADS).collect::<Vec<_>>());
    assert_eq!(writers_of(&vault), 0);
}

/// The threads of a server that write without a pause leave the lock to another process, too.
#[test]
fn another_process_gets_the_write_lock_beside_threads_that_pass_it_on() {
    let folder = TestVault::new(&[]);
    let [vault, other] = [(); 2].map(|()| Vault::open(folder.root()).unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _lock = vault.lock(&vault.records()).unwrap();
                    let until = Instant::now() + Duration::from_millis(5);
                    while Instant::now() < until {
                        std::thread::yield_now();
                    }
                }
            });
        }
        while writers_of(&vault) < 4 {
            std::thread::yield_now();
        }
        let lock = other.lock(&other.records());
        is_over.store(true, Ordering::Relaxed);
        drop(lock.unwrap());
    });
}
