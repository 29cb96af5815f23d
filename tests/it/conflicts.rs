//! Conflict copies of synchronisation programs: their names, `check`, and the merge into their notes.

use sidenote::links::conflict_copy::{SyncProgram, conflict_names};
use sidenote::links::merge::has_every_line;
use sidenote::markdown::path::NotePath;
use sidenote::markdown::word_sketch::WordSketch;

use crate::git::{git, init};
use crate::support::{TestVault, json, stderr, stdout};

/// Returns what a name can be a copy of, as `PROGRAM of PATH`.
fn names(path: &str) -> Vec<String> {
    let found = conflict_names(&NotePath::parse(path).unwrap());
    found.iter().map(|name| format!("{} of {}", name.program, name.original)).collect()
}

#[test]
fn conflict_copies_are_known_by_their_names() {
    let cases = [
        ("Plan.sync-conflict-20260102-101112-ABCDEF2.md", "Syncthing of Plan.md"),
        ("a/b c/Plan.sync-conflict-20260102-101112.md", "Syncthing of a/b c/Plan.md"),
        ("Übersicht 計画.sync-conflict-20260102-101112-ABCDEF2.md", "Syncthing of Übersicht 計画.md"),
        ("Plan (Jürgen's conflicted copy 2026-01-02).md", "Dropbox of Plan.md"),
        ("Plan (laptop's conflicted copy 2026-01-02 (1)).md", "Dropbox of Plan.md"),
        ("計画 (山田's conflicted copy 2026-01-02).md", "Dropbox of 計画.md"),
        ("Plan (v2) (Max's conflicted copy 2026-01-02).md", "Dropbox of Plan (v2).md"),
        ("Plan (conflicted copy 2026-01-02 101112).md", "Nextcloud of Plan.md"),
        ("Plan (Conflicted copy MacBook Pro 202601021011).md", "Obsidian Sync of Plan.md"),
        ("Plan.Conflict.md", "Resilio Sync of Plan.md"),
        ("Board.sync-conflict-20260102-101112-ABCDEF2.canvas", "Syncthing of Board.canvas"),
        ("Plan 2.md", "iCloud Drive of Plan.md"),
        ("Plan (1).md", "Google Drive of Plan.md"),
    ];
    assert_eq!(cases.len(), 13);
    for (path, expected) in cases {
        assert_eq!(names(path), [expected], "{path}");
    }
    // Where the name of the device begins is not certain.
    assert_eq!(
        names("My-plan-DESKTOP-A1.md"),
        ["OneDrive of My-plan-DESKTOP.md", "OneDrive of My-plan.md", "OneDrive of My.md"]
    );
}

#[test]
fn names_that_only_look_alike_are_none() {
    let cases = [
        "Syncthing.sync-conflict-notes.md",
        "Plan.sync-conflict-2026-01-02.md",
        "Plan.sync-conflict-20260102-101112-abc.md",
        ".sync-conflict-20260102-101112-ABCDEF2.md",
        "On the conflicted copy 2026-01-02.md",
        "Plan (conflicted copy).md",
        "Plan (conflicted copy of mine).md",
        "Plan (Conflicted copy 202601021011).md",
        "Plan.conflict.md",
        "Conflict.md",
        "Plan 1.md",
        "Plan 2026.md",
        "Plan 02.md",
        "Plan (0).md",
        "Plan (draft).md",
        "2026-01-02.md",
        "Plan2.md",
    ];
    assert_eq!(cases.len(), 17);
    for path in cases {
        // A path that the vault does not show is none either.
        let mut found = NotePath::parse(path).map(|path| conflict_names(&path)).unwrap_or_default();
        // What follows a hyphen may be a device of OneDrive, if the texts agree.
        found.retain(|name| name.program != SyncProgram::OneDrive);
        assert!(found.is_empty(), "{path}: {found:?}");
        assert!(
            path.contains('-') || NotePath::parse(path).is_ok_and(|path| conflict_names(&path).is_empty())
        );
    }
    assert!(SyncProgram::ICloud.needs_evidence() && !SyncProgram::Syncthing.needs_evidence());
}

const TEXT: &str = "the quick brown fox jumps over the lazy dog and then it runs into the deep dark forest to find \
some berries which it eats with much delight while the sun goes down behind the high hills of the north";

/// Checks which copies `check` and `conflicts` find.
#[track_caller]
fn check_copies(files: &[(&str, &str)], expected: &[&str]) {
    let vault = TestVault::new(files);
    let store = vault.store();
    let found = store.upkeep().conflicts().unwrap();
    let shown: Vec<String> =
        found.copies.iter().map(|copy| format!("{} of {}", copy.copy, copy.note)).collect();
    assert_eq!(shown, expected);
    let problems = store.upkeep().check(true).unwrap().problems;
    let codes = problems.iter().filter(|problem| problem.code == "conflict-copy");
    assert_eq!(codes.count(), expected.len(), "{problems:?}");
}

#[test]
fn names_that_people_write_too_need_the_same_id_or_about_the_same_text() {
    let longer = format!("{TEXT} indeed");
    check_copies(&[("Plan.md", TEXT), ("Plan 2.md", &longer)], &["Plan 2.md of Plan.md"]);
    check_copies(&[("Plan.md", TEXT), ("Plan-LAPTOP.md", &longer)], &["Plan-LAPTOP.md of Plan.md"]);
    check_copies(
        &[("Plan.md", "---\nid: x\n---\na\n"), ("Plan (1).md", "---\nid: x\n---\nb\n")],
        &["Plan (1).md of Plan.md"],
    );
    check_copies(&[("Plan.md", "about one thing\n"), ("Plan 2.md", "and another\n")], &[]);
    check_copies(&[("Plan 2.md", TEXT)], &[]);
    check_copies(&[("Plan.md", "a\n"), ("Plan.Conflict.md", "b\n")], &["Plan.Conflict.md of Plan.md"]);
    // The note is gone, and the copy is all that is left.
    check_copies(&[("Plan.Conflict.md", "b\n")], &["Plan.Conflict.md of Plan.md"]);
    let note = sidenote::markdown::note::Note::parse(TEXT);
    assert!(WordSketch::of(&note, TEXT).share(&WordSketch::of(&note, TEXT)) > 0.99);
}

#[test]
fn notes_with_conflict_markers_are_listed() {
    let vault = TestVault::new(&[
        ("a.md", "x\n<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> other\n"),
        ("b.md", "<<<<<<< only\n"),
    ]);
    assert_eq!(stdout(&vault.run(&["conflicts"])), "a.md:2  conflict markers\n");
    vault.remove("a.md");
    assert_eq!(stdout(&vault.run(&["conflicts"])), "no conflicts\n");
}

const BASE: &str = "---\ntags: [a]\nupdated: 2026-01-01\n---\n# Plan\n\nOne.\n\nTwo.\n\nSee [[Guide]].\n";
const COPY: &str = "Plan.sync-conflict-20260102-101112-ABCDEF2.md";

fn ours() -> String {
    BASE.replace("One.", "One, here.").replace("[a]", "[a, b]").replace("2026-01-01", "2026-02-01")
}

fn theirs() -> String {
    BASE.replace("Two.", "Two, there.").replace("[a]", "[a, c]").replace("2026-01-01", "2026-01-15")
}

fn merged() -> String {
    ours().replace("Two.", "Two, there.").replace("[a, b]", "[a, b, c]")
}

/// Checks that the copy is merged, the copy is in the trash, and one undo takes all of it back.
#[track_caller]
fn check_merge(vault: &TestVault, base: &str) {
    let read = |path: &str| std::fs::read_to_string(vault.root().join(path)).ok();
    let before = vault.contents();
    let dry = json(vault, "2026-03-01", &["conflicts", "merge", "Plan", "--dry-run"]);
    assert!(dry["diff"].as_str().unwrap().contains("+Two, there."), "{dry}");
    assert_eq!(vault.contents(), before);
    let reply = json(vault, "2026-03-01", &["conflicts", "merge", "Plan"]);
    let origin = reply["copies"][0]["base"].as_str().unwrap().to_owned();
    assert!(origin.starts_with(base), "{origin}");
    assert_eq!(
        (reply["copies"][0]["trashed"].as_bool(), reply["applied"].as_bool()),
        (Some(true), Some(true))
    );
    assert_eq!(read("Plan.md"), Some(merged()));
    assert_eq!(read(COPY), None);
    assert_eq!(read(&format!(".trash/{COPY}")), Some(theirs()));
    assert_eq!(vault.run(&["undo"]).status.code(), Some(0));
    assert_eq!((read("Plan.md"), read(COPY)), (Some(ours()), Some(theirs())));
}

#[test]
fn a_copy_is_merged_with_the_base_from_git() {
    let vault = TestVault::new(&[("Plan.md", "another beginning\n"), (".gitignore", ".home/\n.sidenote/\n")]);
    init(&vault);
    for text in [BASE, &ours()] {
        vault.write("Plan.md", text);
        git(vault.root(), &["commit", "-qam", "edit"]);
    }
    vault.write(COPY, theirs());
    check_merge(&vault, "commit ");
}

#[test]
fn a_copy_is_merged_with_the_base_from_the_before_images() {
    let vault = TestVault::new(&[("Plan.md", BASE)]);
    let done = vault.run(&["replace", "Plan", "--old", "One.", "--new", "One, here."]);
    assert!(done.status.success(), "{}", stderr(&done));
    vault.write("Plan.md", ours());
    vault.write(COPY, theirs());
    check_merge(&vault, "operation ");
}

#[test]
fn a_copy_is_merged_with_the_base_from_a_backup() {
    let vault = TestVault::new(&[("Plan.md", BASE)]);
    assert!(vault.run(&["backup"]).status.success());
    vault.write("Plan.md", ours());
    vault.write(COPY, theirs());
    check_merge(&vault, "memory_backup_");
}

#[test]
fn without_a_base_only_the_difference_is_shown() {
    let vault = TestVault::new(&[("Plan.md", "One.\n"), (COPY, "Two.\n")]);
    let before = vault.contents();
    let done = vault.run(&["conflicts", "merge", COPY]);
    assert_eq!(done.status.code(), Some(8));
    assert!(stdout(&done).contains("-One.\n+Two.\n"), "{}", stdout(&done));
    assert!(stderr(&done).contains("no common ancestor"), "{}", stderr(&done));
    assert_eq!(vault.contents(), before);
}

#[test]
fn a_copy_stays_unless_the_note_has_every_line_that_it_added() {
    let base = "---\ntags: [a]\nx: 1\n---\none\n[[A]]\n";
    let cases = [
        // What the common version has, the note may have changed.
        (base, "---\ntags: [b]\nx: 2\n---\ntwo\n", true),
        ("---\ntags: [a, c]\nx: 1\n---\nnew\n", "---\ntags: [b, c]\nx: 2\n---\nnew\n", true),
        ("---\ntags: [a, c]\nx: 1\n---\n", "---\ntags: [a]\nx: 1\n---\n", false),
        ("---\ntags: [a]\nx: 3\n---\n", "---\ntags: [a]\nx: 1\n---\n", false),
        ("---\nupdated: 2026-01-01\n---\n", "---\nupdated: 2026-01-02\n---\n", true),
        ("---\nupdated: 2026-01-03\n---\n", "---\nupdated: 2026-01-02\n---\n", false),
        ("new\n", "old\n", false),
        // A link may have been written anew.
        ("so [[A]]\n", "so [[B]]\n", true),
    ];
    assert_eq!(cases.len(), 8);
    for (copy, merged, expected) in cases {
        assert_eq!(has_every_line(copy, base, merged), expected, "{copy:?} in {merged:?}");
    }
    // The same text needs no base.
    let vault = TestVault::new(&[("Plan.md", "One.\n"), (COPY, "One.\n")]);
    assert!(vault.run(&["conflicts", "merge", "Plan"]).status.success());
    assert!(!vault.root().join(COPY).exists());
}

#[test]
fn conflicting_copies_leave_both_versions_between_markers() {
    let vault = TestVault::new(&[("Plan.md", "a\nOne.\nb\n")]);
    assert!(vault.run(&["backup"]).status.success());
    vault.write("Plan.md", "a\nOne, here.\nb\n");
    vault.write(COPY, "a\nOne, there.\nb\n");
    let done = vault.run(&["conflicts", "merge", "Plan"]);
    assert!(stderr(&done).contains("choose between the markers"), "{}", stderr(&done));
    insta::assert_snapshot!(std::fs::read_to_string(vault.root().join("Plan.md")).unwrap(), @r"
    a
    <<<<<<< the note
    One, here.
    =======
    One, there.
    >>>>>>> Plan.sync-conflict-20260102-101112-ABCDEF2.md
    b
    ");
    assert!(stdout(&vault.run(&["conflicts"])).contains("Plan.md:2  conflict markers"));
}

#[test]
fn a_note_without_copies_is_an_error() {
    let vault = TestVault::new(&[("Plan.md", "One.\n"), ("Gone.Conflict.md", "x\n")]);
    for (name, said) in [("Plan", "has no conflict copies"), ("Gone.Conflict", "Gone.md is not there")] {
        let done = vault.run(&["conflicts", "merge", name]);
        assert_eq!(done.status.code(), Some(3));
        assert!(stderr(&done).contains(said), "{}", stderr(&done));
    }
}

/// Writes the versions of a note as commits, the last as the note, and a copy; merges them. Returns the note, and whether the
/// copy is there still.
#[track_caller]
fn merged_copy(versions: &[&str], copy: &str) -> (String, bool) {
    let vault = TestVault::new(&[("Plan.md", versions[0]), (".gitignore", ".home/\n.sidenote/\n")]);
    init(&vault);
    for text in &versions[1..] {
        git(vault.root(), &["commit", "-qam", "edit", "--allow-empty"]);
        vault.write("Plan.md", text);
    }
    vault.write(COPY, copy);
    let done = vault.run(&["conflicts", "merge", "Plan"]);
    assert!(done.status.success(), "{}", stderr(&done));
    (vault.read("Plan.md"), vault.root().join(COPY).exists())
}

#[test]
fn a_merge_of_a_copy_drops_no_edit_of_the_note() {
    let list = |call: &str, rest: &str| format!("# List\n\n{call}\n- wash\n- read\n{rest}");
    let base = list("- call Ann", "");
    let done = list("- call Ann DONE", "");
    let further = list("- call Ann DONE", "- swim\n");
    // The copy is older than the edit, and changed the same line.
    let (text, stays) = merged_copy(&[&base, &done, &further], &list("- call Anna at 5", ""));
    assert!(text.contains("- call Ann DONE") && text.contains("- call Anna at 5"), "{text}");
    assert!(text.contains("<<<<<<<") && text.contains("- swim") && !stays, "{text}");
    // The edit of the note is shorter than what the copy has in its place.
    let long = "# List\n\none\ntwo\nthree\n\nend\n";
    let short = "# List\n\nDONE\n\nend\n";
    let (text, _) = merged_copy(&[long, short, "# List\n\nDONE\n\nend\nmore\n"], "# List\n\nother\n\nend\n");
    assert!(text.contains("DONE") && text.contains("other") && text.contains("<<<<<<<"), "{text}");
    // Both devices wrote the same line.
    let (text, _) = merged_copy(
        &[&base, &done, &further, &format!("{further}- sing\n")],
        &list("- call Anna at 5", "- swim\n"),
    );
    assert!(text.contains("- call Ann DONE") && text.contains("- call Anna at 5"), "{text}");
    // The copy has most of a version, and changed one line of it: that is no conflict.
    let grown = list("- call Ann DONE", "- swim\n- sing\n- run\n");
    let (text, stays) = merged_copy(
        &[&base, &grown, &grown.replace("- run", "- run far")],
        &grown.replace("DONE", "DONE on Monday"),
    );
    assert_eq!(text, grown.replace("- run", "- run far").replace("DONE", "DONE on Monday"));
    assert!(!stays);
}

#[test]
fn a_copy_gets_the_line_ends_of_the_note() {
    let base = "# Plan\n\nOne.\n\nTwo.\n";
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let (ours, theirs) = (base.replace("One.", "One, here."), base.replace("Two.", "Two, there."));
    let both = ours.replace("Two.", "Two, there.");
    let cases = [
        (base.to_owned(), ours.clone(), crlf(&theirs), both.clone()),
        (crlf(base), crlf(&ours), theirs.clone(), crlf(&both)),
        (base.to_owned(), crlf(&ours), theirs.clone(), crlf(&both)),
    ];
    assert_eq!(cases.len(), 3);
    for (base, ours, theirs, both) in cases {
        assert_eq!(merged_copy(&[&base, &ours], &theirs), (both, false));
    }
}
