//! Tests undo: by id, past operations that cannot be undone, around changes by others, and with a torn journal.

use std::fs;
use std::io::Write as _;

use sidenote::journal::Journal;
use sidenote::journal::event::Event;
use sidenote::journal::reader::ReadOrder;
use sidenote::markdown::edit::{Edit, apply, single_edit};
use sidenote::markdown::revert::revert_edits;
use sidenote::store::{DanglingLinks, DeleteRequest, EditRequest, NoteEdit, Operation, UndoRequest};
use sidenote::vault::Vault;

use crate::apply::at;
use crate::support::{TestVault, clone_journal, json, path_from, run, stderr, text_of, was_killed};

const NOW: &str = "2026-11-21";

/// Gives the id of the newest operation.
fn last(vault: &TestVault) -> String {
    json(vault, NOW, &["history", "-n", "1"])[0]["id"].as_str().unwrap().to_owned()
}

/// The command is refused with this exit code, says all of these, and changes no note.
#[track_caller]
fn check_refused(vault: &TestVault, args: &[&str], code: i32, says: &[&str]) {
    let before = vault.contents();
    let done = vault.run(args);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(code), "{args:?}: {said}");
    for word in says {
        assert!(said.contains(word), "{args:?} does not say {word:?}: {said}");
    }
    assert_eq!(vault.contents(), before);
}

#[test]
fn one_operation_is_undone_beneath_later_ones() {
    let vault = TestVault::new(&[("a.md", "One.\n\nTwo.\n"), ("b.md", "See [[a]].\n")]);
    run(&vault, NOW, &["append", "a", "Three."]);
    let first = last(&vault);
    run(&vault, NOW, &["prepend", "a", "Zero."]);
    run(&vault, NOW, &["move", "a", "c"]);
    let moved = last(&vault);
    run(&vault, NOW, &["append", "b", "More."]);
    // Its bytes are found in the note that was edited and moved since.
    let undone = vault.run(&["undo", first.get(..20).unwrap()]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert!(stderr(&undone).contains("was changed since"), "{}", stderr(&undone));
    let text = text_of(&vault, "c.md");
    assert!(text.starts_with("Zero.") && text.contains("Two.") && !text.contains("Three."), "{text}");
    // A move is taken back, and the link in a note that was edited since.
    run(&vault, NOW, &["undo", &moved]);
    assert!(text_of(&vault, "b.md").starts_with("See [[a]].\n") && text_of(&vault, "b.md").contains("More."));
    assert!(vault.root().join("a.md").is_file() && !vault.root().join("c.md").exists());
    check_refused(&vault, &["undo", "0000000000000000"], 3, &["there is no operation"]);
}

#[test]
fn operations_that_cannot_be_undone_are_named_and_skipped() {
    let vault = TestVault::new(&[("a.md", "x\n"), ("b.md", "x [[a]]\n"), ("c.md", "y [[a]]\n")]);
    run(&vault, NOW, &["append", "c", "First."]);
    run(&vault, NOW, &["move", "a", "d"]);
    let moved = last(&vault);
    vault.write("b.md", "x [[e]]\n");
    let named = ["b.md", "--keep", "--skip", moved.as_str()];
    check_refused(&vault, &["undo"], 5, &named);
    // To pass over it would undo another one than was named.
    let said = stderr(&vault.run(&["undo", &moved]));
    assert!(!said.contains("--skip") && said.contains(&format!("sidenote history {moved}")), "{said}");
    check_refused(&vault, &["undo", &moved, "--keep", "z.md"], 2, &["touched no"]);
    // Passed over, the one before it is taken back.
    let skipped = vault.run(&["undo", "--skip"]);
    assert!(skipped.status.success(), "{}", stderr(&skipped));
    assert!(stderr(&skipped).contains("is skipped"), "{}", stderr(&skipped));
    assert_eq!(text_of(&vault, "c.md"), "y [[d]]\n");
    // All but the file that is kept as it is.
    run(&vault, NOW, &["undo", &moved, "--keep", "b.md"]);
    assert_eq!(text_of(&vault, "a.md"), "x\n");
    assert_eq!(text_of(&vault, "b.md"), "x [[e]]\n");
    assert_eq!(text_of(&vault, "c.md"), "y [[a]]\n");
}

#[test]
fn undo_is_refused_where_another_note_took_the_path() {
    let vault = TestVault::new(&[("a.md", "One.\n")]);
    run(&vault, NOW, &["append", "a", "Two."]);
    let written = last(&vault);
    run(&vault, NOW, &["move", "a", "b"]);
    let moved = last(&vault);
    run(&vault, NOW, &["move", "b", "c"]);
    vault.write("a.md", "Another.\n\nTwo.\n");
    vault.write("b.md", "A third.\n");
    check_refused(&vault, &["undo", &moved], 5, &["a.md, where another file is now"]);
    vault.remove("a.md");
    check_refused(&vault, &["undo", &moved], 5, &["was moved on to c.md"]);
    vault.write("a.md", "One.\n\nTwo.\n");
    // The bytes of the operation are those of the note that moved, not of the copy that has its name now.
    run(&vault, NOW, &["undo", &written]);
    assert_eq!(text_of(&vault, "c.md"), "One.\n");
    assert_eq!(
        (text_of(&vault, "a.md").as_str(), text_of(&vault, "b.md").as_str()),
        ("One.\n\nTwo.\n", "A third.\n")
    );
}

#[test]
fn a_move_that_changes_only_the_case_is_undone_and_redone() {
    let vault = TestVault::new(&[("d/note.md", "n\n"), ("s.md", "[[note]]\n")]);
    let names = || -> Vec<String> {
        let files = vault.contents().into_keys().filter(|path| !path.ends_with("s.md"));
        files.map(|path| path_from(vault.root(), &path)).collect()
    };
    let steps: &[(&[&str], &str)] = &[
        (&["move", "note", "d/Note.md"], "d/Note.md"),
        (&["undo"], "d/note.md"),
        (&["redo"], "d/Note.md"),
        (&["rename", "Note", "NOTE"], "d/NOTE.md"),
        (&["undo", "2"], "d/note.md"),
        (&["move", "d", "D"], "D/note.md"),
        (&["undo"], "d/note.md"),
    ];
    for (step, name) in steps {
        run(&vault, NOW, step);
        assert_eq!(names(), [*name], "{step:?}");
        let listed = run(&vault, NOW, &["list"]);
        assert_eq!(
            listed.lines().filter(|line| line.to_lowercase().contains("d/")).count(),
            1,
            "{step:?}: {listed}"
        );
    }
    assert_eq!(steps.len(), 7);
}

#[test]
fn undoing_a_folder_move_keeps_later_changes_by_others() {
    let vault = TestVault::new(&[
        ("D/a.md", "# A\n\n[b](b.md) [l](../l.md)\n"),
        ("D/b.md", "# B\n"),
        ("l.md", "see [a](D/a.md)\nend\n"),
    ]);
    run(&vault, NOW, &["move", "D", "E/F"]);
    let (inside, outside) = (text_of(&vault, "E/F/a.md"), text_of(&vault, "l.md"));
    assert!(inside.contains("(../../l.md)") && outside.contains("(E/F/a.md)"), "{inside} {outside}");
    vault.write("E/F/a.md", inside + "By hand.\n");
    vault.write("E/F/b.md", "# B\n\nBy hand.\n");
    vault.write("l.md", outside + "By hand.\n");
    let undone = vault.run(&["undo"]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert_eq!(text_of(&vault, "D/a.md"), "# A\n\n[b](b.md) [l](../l.md)\nBy hand.\n");
    assert_eq!(text_of(&vault, "D/b.md"), "# B\n\nBy hand.\n");
    assert_eq!(text_of(&vault, "l.md"), "see [a](D/a.md)\nend\nBy hand.\n");
    assert!(!vault.root().join("E").exists());
    // Where the link itself was changed, the file is named.
    run(&vault, NOW, &["redo"]);
    let moved = last(&vault);
    vault.write("l.md", "see [a](G/b.md)\n");
    check_refused(&vault, &["undo", &moved], 5, &["--keep l.md"]);
    run(&vault, NOW, &["undo", &moved, "--keep", "l.md"]);
    assert!(vault.root().join("D/a.md").is_file());
}

#[test]
fn skipped_operations_are_reported_where_nothing_can_be_undone() {
    let vault = TestVault::new(&[("a.md", "x\n")]);
    run(&vault, NOW, &["append", "a", "one"]);
    vault.remove("a.md");
    check_refused(&vault, &["undo", "--skip"], 3, &["append of a.md", "a.md is gone"]);
}

#[test]
fn redo_works_until_another_operation() {
    let vault = TestVault::new(&[("a.md", "x\n")]);
    let states: Vec<String> = ["one", "two", "three"]
        .iter()
        .map(|text| {
            run(&vault, NOW, &["append", "a", text]);
            text_of(&vault, "a.md")
        })
        .collect();
    run(&vault, NOW, &["undo", "2"]);
    assert_eq!(text_of(&vault, "a.md"), states[0]);
    for state in &states[1..] {
        run(&vault, NOW, &["redo"]);
        assert_eq!(text_of(&vault, "a.md"), *state);
    }
    check_refused(&vault, &["redo"], 3, &["nothing to redo"]);
    run(&vault, NOW, &["undo"]);
    assert_eq!(text_of(&vault, "a.md"), states[1]);
    run(&vault, NOW, &["append", "a", "four"]);
    check_refused(&vault, &["redo"], 3, &["nothing to redo"]);
}

#[test]
fn a_permanent_deletion_does_not_block_earlier_undos() {
    let vault = TestVault::new(&[("a.md", "x\n"), ("b.md", "y\n")]);
    run(&vault, NOW, &["append", "b", "one"]);
    run(&vault, NOW, &["append", "a", "two"]);
    run(&vault, NOW, &["delete", "a", "--permanent", "--yes"]);
    // The note of the newest operation in the undo log is gone.
    let says =
        ["delete of a.md cannot be undone", "removed for good", "append of a.md before it: sidenote undo "];
    check_refused(&vault, &["undo"], 5, &says);
    run(&vault, NOW, &["undo", "--skip"]);
    assert_eq!(text_of(&vault, "b.md"), "y\n");
}

#[test]
fn a_torn_journal_line_does_not_mislead_undo() {
    let vault = TestVault::new(&[("a.md", "x\n"), ("b.md", "y\n")]);
    run(&vault, NOW, &["append", "a", "one"]);
    run(&vault, NOW, &["append", "b", "two"]);
    let month = clone_journal(vault.root(), "2026-11");
    let text = fs::read_to_string(&month).unwrap();
    let torn = text.trim_end().len() - 40;
    fs::write(&month, &text[..torn]).unwrap();
    let checked = json(&vault, NOW, &["check"]);
    assert_eq!(checked["counts"]["damaged-journal"], 1, "{checked}");
    let undone = vault.run(&["undo"]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert_eq!((text_of(&vault, "a.md").contains("one"), text_of(&vault, "b.md").as_str()), (true, "y\n"));
    assert!(stderr(&undone).contains("cannot be read"), "{}", stderr(&undone));
    run(&vault, NOW, &["undo"]);
    assert_eq!(text_of(&vault, "a.md"), "x\n");
}

#[test]
fn check_finds_damaged_before_images() {
    let vault = TestVault::new(&[("a.md", "x\n")]);
    run(&vault, NOW, &["append", "a", "one"]);
    assert_eq!(json(&vault, NOW, &["check"])["counts"].get("damaged-before-images"), None);
    let id = last(&vault);
    fs::write(vault.root().join(format!(".sidenote/records/undo/{id}/images")), "z").unwrap();
    assert_eq!(json(&vault, NOW, &["check"])["counts"]["damaged-before-images"], 1);
}

#[test]
fn undo_and_history_read_the_journal_backwards() {
    let vault = TestVault::new(&[("a.md", "x\n")]);
    run(&vault, NOW, &["append", "a", "one"]);
    let month = vault.root().join(".sidenote/records/2026-10.jsonl");
    let use_of = |number: i64| {
        let mut event = Event::new("use", at(number - 40 * 86_400_000));
        event.more.insert("notes".to_owned(), serde_json::json!([{ "path": "a.md" }]));
        serde_json::to_string(&event).unwrap() + "\n"
    };
    let uses: String = (0..30_000).map(use_of).collect();
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&month)
        .unwrap()
        .write_all(uses.as_bytes())
        .unwrap();
    let open = Vault::open(vault.root()).unwrap();
    let journal = Journal::open(&open, &open.records());
    let found = journal.operation_history(|operation| operation.is_undoable).unwrap();
    assert_eq!(found.active.len(), 1);
    assert!(found.bytes < 2_000, "{} bytes of {}", found.bytes, uses.len());
    // From either end the lines are the same.
    let ids =
        |order| -> Vec<String> { journal.events(order).unwrap().map(|event| event.unwrap().id).collect() };
    let mut backwards = ids(ReadOrder::NewestFirst);
    backwards.reverse();
    assert_eq!((ids(ReadOrder::OldestFirst), backwards.len()), (backwards, 30_001));
}

#[test]
fn an_undo_finished_by_recovery_leaves_no_empty_folder() {
    let mut ended = [0, 0];
    for step in (1..200).step_by(2) {
        let vault = TestVault::new(&[("a.md", "x\n")]);
        run(&vault, NOW, &["new", "Note", "--folder", "Deep/Folder", "--content", "text"]);
        let killed = vault.command(&["undo"]).env("SIDENOTE_FAILPOINT", step.to_string()).output().unwrap();
        if killed.status.success() {
            assert!(step > 3, "{step}");
            break;
        }
        assert!(was_killed(killed.status), "step {step}: {}", stderr(&killed));
        run(&vault, NOW, &["list"]);
        run(&vault, NOW, &["append", "a", "more"]);
        let note = vault.root().join("Deep/Folder/Note.md").exists();
        assert_eq!(vault.root().join("Deep").exists(), note, "step {step}");
        ended[usize::from(note)] += 1;
    }
    assert!(ended[0] > 0 && ended[1] > 0, "{ended:?}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the file system takes both names for one")]
fn undo_restores_names_that_differ_only_in_case() {
    let files = [
        ("n.md", "lower\n"),
        ("N.md", "UPPER\n"),
        ("d/k.md", "dk\n"),
        ("D/k.md", "DK\n"),
        ("l.md", "[[N]]\n"),
    ];
    let vault = TestVault::new(&files);
    let texts =
        || -> Vec<_> { vault.contents().into_iter().map(|(path, (bytes, _))| (path, bytes)).collect() };
    let before = texts();
    let cases: &[&[&str]] = &[&["delete", "N.md"], &["rename", "N.md", "Other"], &["move", "D", "E"]];
    for case in cases {
        run(&vault, NOW, case);
        assert_ne!(texts(), before, "{case:?}");
        run(&vault, NOW, &["undo"]);
        assert_eq!(texts(), before, "{case:?}");
    }
    assert_eq!(cases.len(), 3);
    // What has its exact name meanwhile is not replaced.
    run(&vault, NOW, &["delete", "N.md"]);
    fs::write(vault.root().join("N.md"), "other\n").unwrap();
    check_refused(&vault, &["undo"], 5, &["N.md", "changed-on-disk"]);
}

/// Checks that the edit from `before` to `after`, reverted in `now`, gives `expected`.
#[track_caller]
fn check_revert(before: &str, after: &str, now: &str, expected: Option<&str>) {
    let patch: Vec<Edit> = single_edit(before, after).into_iter().collect();
    let back = revert_edits(before, &patch, after, now);
    let back = back.map(|edits| String::from_utf8(apply(now.as_bytes(), &edits).unwrap()).unwrap());
    assert_eq!(back.as_deref(), expected, "{before:?} {after:?} {now:?}");
}

#[test]
fn edits_are_reverted_where_their_text_is_unchanged() {
    let cases = [
        ("a\n", "a\nb\n", "a\nb\n", Some("a\n")),
        ("a\n", "a\nb\n", "x\na\nb\n", Some("x\na\n")),
        ("a\n", "a\nb\n", "a\nb\nc\n", Some("a\nc\n")),
        ("a\n", "a\nb\n", "a\nB\n", None),
        ("a\n", "a\nb\n", "a\n", None),
        (
            "see [[Old]] now\n",
            "see [[New]] now\n",
            "see [[New]] then, or so\n",
            Some("see [[Old]] then, or so\n"),
        ),
        ("see [[Old]] now\n", "see [[New]] now\n", "see [[Newer]] now\n", None),
        ("see [[Old]]\n", "see [[New]]\n", "see [[Folder/New]]\n", None),
        ("see [[Old]]\n", "see [[New]]\n", "see [[New-er]]\n", None),
        ("see [[Old]]\n", "see [[New]]\n", "see [[New#Part|so]]\n", Some("see [[Old#Part|so]]\n")),
        ("a: [b]\n", "a: [b, c]\n", "a: [b, c, d]\n", Some("a: [b, d]\n")),
        ("a\nb\nc\n", "a\nc\n", "a\nc\nd\n", Some("a\nb\nc\nd\n")),
        ("a\nb\nc\n", "a\nc\n", "a\nx\nc\n", None),
        ("", "b\n", "b\nc\n", Some("c\n")),
        ("a\n", "", "", Some("a\n")),
        ("a\n", "", "x\n", Some("a\nx\n")),
    ];
    for (before, after, now, expected) in cases {
        check_revert(before, after, now, expected);
    }
    assert_eq!(cases.len(), 16);
}

/// The last operation as `history` lists it for people.
fn listed(vault: &TestVault, args: &[&str]) -> Vec<String> {
    let said = run(vault, NOW, &[&["history"], args].concat());
    let subject = |line: &str| {
        let cells = line.split("  ").skip(1).map(str::trim).filter(|cell| !cell.is_empty());
        cells.take(2).collect::<Vec<_>>().join(" ")
    };
    said.lines().map(subject).collect()
}

#[test]
fn an_undo_names_what_it_took_back_and_the_history_marks_it() {
    let vault = TestVault::new(&[("a.md", "x\n")]);
    run(&vault, NOW, &["append", "a", "one"]);
    let id = last(&vault);
    assert!(run(&vault, NOW, &["undo"]).starts_with("undone: append of a.md\na.md changed\n"));
    assert_eq!(listed(&vault, &[]), ["undo a.md", "append (undone) a.md"]);
    assert!(run(&vault, NOW, &["redo"]).starts_with("done again: append of a.md\n"));
    assert_eq!(listed(&vault, &[]), ["redo a.md", "undo (undone) a.md", "append a.md"]);
    // One operation with its difference, by the beginning of its id.
    let said = run(&vault, NOW, &["history", &id[..20]]);
    assert!(said.contains("append  a.md") && said.contains("+one"), "{said}");
    assert!(said.contains(&format!("to undo it: sidenote undo {id}")), "{said}");
    let later = last(&vault);
    assert!(run(&vault, NOW, &["history", &later]).contains("+one"));
}

#[test]
fn a_session_is_listed_and_undone_as_a_whole() {
    let vault = TestVault::new(&[("a.md", "x\n"), ("b.md", "y\n"), ("gone.md", "z\n")]);
    let edit = |session: &str, name: &str, text: &str| {
        let store = vault.store().in_session(session);
        let edit = EditRequest {
            note: name.to_owned(),
            edit: NoteEdit::Append(text.to_owned(), None),
            expect: None,
        };
        store.changes().change(&Operation::Edit(edit), false).unwrap();
    };
    edit("one", "a", "first");
    edit("two", "b", "other");
    edit("one", "a", "second");
    run(&vault, NOW, &["append", "b", "by hand"]);
    assert_eq!(listed(&vault, &["--session", "two"]).len(), 1);
    assert_eq!(listed(&vault, &["--session", "one"]).len(), 2);
    assert_eq!(
        [listed(&vault, &["--client", "cli"]).len(), listed(&vault, &["--client", "x"]).len()],
        [4, 0]
    );
    assert_eq!(listed(&vault, &["--since", "2999-01-01"]), Vec::<String>::new());
    let gone = DeleteRequest { note: "gone".to_owned(), permanent: true, links: DanglingLinks::Leave };
    let gone = Operation::Delete(gone);
    let said = stderr(&vault.run(&["undo", "--session", "one", "--dry-run"]));
    assert!(said.contains("the first of 2 operations") && said.contains("append of a.md"), "{said}");
    vault.store().in_session("one").changes().change(&gone, false).unwrap();
    let undone = json(&vault, NOW, &["undo", "--session", "one"]);
    assert_eq!(undone.as_array().unwrap().len(), 2);
    assert!(undone[0]["notices"].to_string().contains("gone.md stays: the file was removed for good"));
    assert_eq!(text_of(&vault, "a.md"), "x\n");
    assert!(text_of(&vault, "b.md").contains("other") && text_of(&vault, "b.md").contains("by hand"));
    check_refused(&vault, &["undo", "--session", "one"], 3, &["did nothing that can be undone"]);
}

#[test]
fn a_dry_run_of_a_session_says_what_would_be_skipped() {
    let vault = TestVault::new(&[("a.md", "x\n"), ("b.md", "y\n"), ("c.md", "z\n")]);
    let run_one = |name: &str| {
        run(&vault, NOW, &["--session", "one", "append", name, "more"]);
    };
    ["a", "b", "c", "a"].into_iter().for_each(run_one);
    vault.write("b.md", "rewritten\n");
    let said = |args: &[&str]| {
        let done = vault.run(&[&["undo", "--session", "one", "--dry-run"], args].concat());
        (done.status.code(), stderr(&done))
    };
    let (code, skipping) = said(&["--skip"]);
    assert_eq!(code, Some(0), "{skipping}");
    let first = "this is the first of 3 operations that would be undone; the others are: append of c.md; append of a.md";
    assert!(skipping.contains(first), "{skipping}");
    assert!(skipping.contains("append of b.md would be skipped: b.md "), "{skipping}");
    let (_, stopping) = said(&[]);
    let first = "this is the first of 2 operations that would be undone; the others are: append of c.md\n";
    assert!(stopping.contains(first), "{stopping}");
    assert!(stopping.contains("the undo would stop at append of b.md: b.md "), "{stopping}");
    // What was skipped before the first is not counted.
    run_one("b");
    vault.write("b.md", "rewritten again\n");
    let (_, skipping) = said(&["--skip"]);
    assert!(skipping.contains("append of b.md is skipped") && skipping.contains("first of 3 "), "{skipping}");
    // Where nothing can be undone, nothing is said of a first one.
    ["a.md", "b.md", "c.md"].into_iter().for_each(|path| vault.write(path, "rewritten\n"));
    let (code, nothing) = said(&["--skip"]);
    assert_eq!(code, Some(3), "{nothing}");
    assert!(nothing.contains("nothing can be taken back") && !nothing.contains("first of"), "{nothing}");
}

#[test]
fn a_skip_passes_over_files_in_the_way_alone() {
    let vault = TestVault::new(&[("a.md", "x\n"), ("b.md", "y\n")]);
    for name in ["a", "b"] {
        run(&vault, NOW, &["--session", "one", "append", name, "more"]);
    }
    let before = vault.contents();
    let store = vault.store();
    for session in [None, Some("one".to_owned())] {
        let request = UndoRequest { count: 2, skip: true, session, ..UndoRequest::default() };
        let expecting = store.expecting(Some("another plan".to_owned()));
        let error = expecting.changes().undo_by(&request).unwrap_err();
        assert!(error.message().contains("changed since the change was shown"), "{error:?}");
        assert_eq!(vault.contents(), before);
    }
    // A folder that is in the way only where the undo is applied is passed over.
    run(&vault, NOW, &["--session", "two", "append", "a", "last"]);
    run(&vault, NOW, &["new", "Inside", "--folder", "D"]);
    run(&vault, NOW, &["--session", "two", "move", "D", "E"]);
    vault.write("D/Inside.md", "another\n");
    let undone = vault.run(&["undo", "--session", "two", "--skip"]);
    assert!(undone.status.success() && stderr(&undone).contains("move of "), "{}", stderr(&undone));
    assert!(!vault.read("a.md").contains("last"));
    assert_eq!(vault.read("D/Inside.md"), "another\n");
}

/// The variable names the session of what a command does, and not the one that an undo takes back.
#[test]
fn the_session_of_the_environment_does_not_widen_an_undo() {
    let vault = TestVault::new(&[("a.md", "a\n"), ("b.md", "b\n")]);
    let run = |args: &[&str]| {
        let done = vault.command(args).env("SIDENOTE_SESSION", "one").output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    run(&["append", "a", "more"]);
    run(&["append", "b", "more"]);
    assert!(vault.run(&["append", "a", "last"]).status.success());
    assert_eq!(run(&["history", "--json"]).matches("\"op\"").count(), 3);
    run(&["undo"]);
    assert!(vault.read("a.md").contains("more") && !vault.read("a.md").contains("last"));
    assert!(vault.read("b.md").contains("more"));
    run(&["undo", "--session", "one"]);
    assert_eq!((vault.read("a.md").as_str(), vault.read("b.md").as_str()), ("a\n", "b\n"));
}
