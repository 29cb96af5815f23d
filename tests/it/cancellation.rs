//! Tests that long calls end when they are cancelled, and that folders are limited in depth.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sidenote::base::error::ErrorKind;
use sidenote::index::silent;
use sidenote::markdown::path::{MAX_SEGMENTS, NotePath};
use sidenote::store::{MoveRequest, Operation, SearchRequest};

use crate::support::{TestVault, paths, stderr};

/// Makes a folder of so many notes that link to one another, each also from outside.
fn crowded(count: usize) -> TestVault {
    let vault = TestVault::new(&[]);
    for at in 0..count {
        vault.write(&format!("crowd/n{at}.md"), format!("[[n{}]]", (at + 1) % count));
        vault.write(&format!("links/l{at}.md"), format!("[n](../crowd/n{at}.md)"));
    }
    vault
}

fn rename_folder() -> Operation {
    Operation::Move(MoveRequest {
        from: "crowd".to_owned(),
        to: "people".to_owned(),
        ..MoveRequest::default()
    })
}

#[test]
fn a_cancelled_question_ends_early() {
    let vault = TestVault::new(&[("a.md", "word\n"), ("b.md", "word\n")]);
    let store = vault.store();
    let cancelled = store.cancelled_by(Arc::new(AtomicBool::new(true)));
    let request = SearchRequest { query: "word".to_owned(), ..SearchRequest::default() };
    let cases = [
        ("search", cancelled.searches().search(&request).map(drop)),
        ("facets", cancelled.views().facets(&request).map(drop)),
        ("repeated texts", cancelled.upkeep().repeated_texts().map(drop)),
    ];
    assert_eq!(cases.len(), 3);
    for (name, ended) in cases {
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Conflict, "{name}");
    }
    assert_eq!(store.searches().search(&request).unwrap().results.len(), 2);
}

#[test]
fn a_cancelled_call_stops_planning_and_changes_nothing() {
    let vault = crowded(300);
    let store = vault.store();
    let cancelled = store.cancelled_by(Arc::new(AtomicBool::new(true)));
    for dry_run in [true, false] {
        let error = cancelled.changes().change(&rename_folder(), dry_run).unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Conflict, "the call was cancelled; nothing was changed")
        );
    }
    assert!(vault.root().join("crowd/n0.md").exists());
    // The same operation succeeds when it is not cancelled.
    let done = store.changes().change(&rename_folder(), false).unwrap();
    assert_eq!((done.applied, done.plan.files.len()), (true, 300));
    assert_eq!(std::fs::read_to_string(vault.root().join("links/l7.md")).unwrap(), "[n](../people/n7.md)");
}

#[test]
fn a_small_change_is_applied_despite_cancellation() {
    let vault = crowded(5);
    let store = vault.store().cancelled_by(Arc::new(AtomicBool::new(true)));
    assert!(store.changes().change(&rename_folder(), false).unwrap().applied);
    assert!(vault.root().join("people/n4.md").exists());
}

#[test]
fn folders_beyond_the_depth_limit_are_skipped() {
    let vault = TestVault::new(&[("top.md", "heron")]);
    let deep = |parts: usize| format!("{}note.md", "a/".repeat(parts - 1));
    vault.write(&deep(MAX_SEGMENTS), "heron at the border");
    vault.write(&deep(MAX_SEGMENTS + 1), "heron beyond it");
    vault.write(&deep(3 * MAX_SEGMENTS), "heron far beyond");
    let store = vault.store();
    let found = paths(&store, "heron");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&deep(MAX_SEGMENTS)));
    let report = store.index().sync(silent()).unwrap();
    let [said] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
    assert!(said.ends_with("is skipped: it is nested in more than 99 folders"), "{said}");
    drop(store);

    assert!(NotePath::parse(&deep(MAX_SEGMENTS)).is_ok());
    assert!(NotePath::from_disk(&deep(MAX_SEGMENTS + 1)).is_none());
    let moved = vault.run(&["move", "top.md", &deep(MAX_SEGMENTS + 5)]);
    assert!(
        !moved.status.success() && stderr(&moved).contains("more than 100 segments"),
        "{}",
        stderr(&moved)
    );
    assert!(vault.root().join("top.md").exists());
}
