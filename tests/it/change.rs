//! Tests changes through the store: what each operation writes, that its dry run says the same, and that undo restores
//! every byte.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sidenote::base::error::ErrorKind;
use sidenote::index::silent;
use sidenote::markdown::edit::ContentHash;
use sidenote::store::{
    DanglingLinks, DeleteRequest, EditRequest, ExtractRequest, LinkRequest, MergeRequest, MoveRequest,
    NewRequest, NoteEdit, Operation, PartKind, PartRequest, RenameKind, RenameRequest, UndoRequest,
};

use crate::support::{TestVault, path_from, stderr, stdout, symlink, text_of};

type Files = BTreeMap<String, String>;

/// Gives every file of a vault, `.trash` included, as text.
fn files(vault: &TestVault) -> Files {
    let name = |path: &std::path::Path| path_from(vault.root(), path);
    let contents = vault.contents().into_iter();
    contents.map(|(path, (bytes, _))| (name(&path), String::from_utf8_lossy(&bytes).into_owned())).collect()
}

/// Carries an operation out, compares the files that are not as before, takes it back and compares all of them.
fn check(before: &[(&str, &str)], operation: &Operation, expect: &[(&str, Option<&str>)]) {
    let vault = TestVault::new(before);
    let store = vault.store();
    let old = files(&vault);
    let planned = store.changes().change(operation, true).unwrap();
    assert_eq!(files(&vault), old, "a dry run changes nothing");
    let done = store.changes().change(operation, false).unwrap();
    assert_eq!(planned.plan, done.plan, "the dry run tells what is done");
    let new = files(&vault);
    let paths: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changed: BTreeMap<&str, Option<&str>> = paths
        .into_iter()
        .filter(|path| old.get(*path) != new.get(*path))
        .map(|path| (path.as_str(), new.get(path).map(String::as_str)))
        .collect();
    assert_eq!(changed, expect.iter().copied().collect(), "{operation:?}: {:?}", done.plan.remarks);
    let fresh = TestVault::new(&[]);
    for (path, text) in &new {
        fresh.write(path, text);
    }
    assert_eq!(links(&store), links(&fresh.store()), "the index follows");
    if done.applied {
        store.changes().undo(1, false).unwrap();
        assert_eq!(files(&vault), old, "undo brings every byte back");
    }
}

fn links(store: &sidenote::store::Store) -> Vec<String> {
    let lines = store.index().dump().unwrap();
    lines.into_iter().filter(|line| line.starts_with("link ") || line.starts_with("terms ")).collect()
}

fn edit(note: &str, edit: NoteEdit) -> Operation {
    Operation::Edit(EditRequest { note: note.to_owned(), edit, expect: None })
}

fn owned(text: &str) -> String {
    text.to_owned()
}

#[test]
fn properties_are_set_unset_and_renamed_by_key() {
    let note = [("n.md", "---\nid: 007 # agent\na: 'x'\ntags: [p]\n---\nBody\n")];
    let changed = |text: &'static str| [("n.md", Some(text))];
    check(
        &note,
        &edit("n", NoteEdit::Set(owned("a"), json!("y"))),
        &changed("---\nid: 007 # agent\na: 'y'\ntags: [p]\n---\nBody\n"),
    );
    check(
        &note,
        &edit("n", NoteEdit::Add(owned("tags"), json!("q"))),
        &changed("---\nid: 007 # agent\na: 'x'\ntags: [p, q]\n---\nBody\n"),
    );
    check(
        &note,
        &edit("n", NoteEdit::Unset(owned("A"))),
        &changed("---\nid: 007 # agent\ntags: [p]\n---\nBody\n"),
    );
    check(
        &note,
        &edit("n", NoteEdit::Tags { add: vec![owned("#q"), owned("r")], remove: vec![owned("p")] }),
        &changed("---\nid: 007 # agent\na: 'x'\ntags: [q, r]\n---\nBody\n"),
    );
    check(&note, &edit("n", NoteEdit::Set(owned("a"), json!("x"))), &[]);
}

#[test]
fn text_is_added_and_replaced() {
    let note = [("n.md", "# A\r\n\r\none\r\n\r\n## B\r\n\r\ntwo\r\n")];
    check(
        &note,
        &edit("n", NoteEdit::Append(owned("three"), None)),
        &[("n.md", Some("# A\r\n\r\none\r\n\r\n## B\r\n\r\ntwo\r\n\r\nthree\r\n"))],
    );
    check(
        &note,
        &edit("n", NoteEdit::Replace { old: owned("two"), new: owned("2"), count: 1 }),
        &[("n.md", Some("# A\r\n\r\none\r\n\r\n## B\r\n\r\n2\r\n"))],
    );
    let vault = TestVault::new(&note);
    let store = vault.store();
    vault.write("n.md", "The second sentence of the note.\n");
    let near = owned("the secnd sentence of the note");
    let wrong = edit("n", NoteEdit::Replace { old: near, new: owned("2"), count: 1 });
    let error = store.changes().change(&wrong, false).unwrap_err();
    assert!(
        error.kind() == ErrorKind::NotFound && error.to_string().contains("The second sentence"),
        "{error}"
    );
}

#[test]
fn an_edit_of_a_note_that_changed_is_a_conflict() {
    let vault = TestVault::new(&[("n.md", "one\n")]);
    let store = vault.store();
    let expect = Some(ContentHash::of(b"one\n"));
    let request = EditRequest { note: owned("n"), edit: NoteEdit::Append(owned("two"), None), expect };
    vault.write("n.md", "other\n");
    let error = store.changes().change(&Operation::Edit(request), false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(files(&vault)["n.md"], "other\n");
}

#[test]
fn moves_rewrite_links() {
    let request = MoveRequest { from: owned("Old"), to: owned("d/New"), ..MoveRequest::default() };
    check(
        &[("Old.md", "# Old\n"), ("s.md", "[[Old]] [t](Old.md)\n"), ("x.md", "none\n")],
        &Operation::Move(request),
        &[("Old.md", None), ("d/New.md", Some("# Old\n")), ("s.md", Some("[[New]] [t](d/New.md)\n"))],
    );
    let request = MoveRequest { from: owned("d"), to: owned("e"), ..MoveRequest::default() };
    check(
        &[("d/a.md", "[[d/b]]\n"), ("d/b.md", "b\n"), ("d/.hidden", "h\n"), ("s.md", "[x](d/a.md)\n")],
        &Operation::Move(request),
        &[
            ("d/.hidden", None),
            ("d/a.md", None),
            ("d/b.md", None),
            ("e/.hidden", Some("h\n")),
            ("e/a.md", Some("[[b]]\n")),
            ("e/b.md", Some("b\n")),
            ("s.md", Some("[x](e/a.md)\n")),
        ],
    );
    let request = MoveRequest { from: owned("note"), to: owned("Note.md"), ..MoveRequest::default() };
    check(
        &[("note.md", "n\n"), ("s.md", "[[note]]\n")],
        &Operation::Move(request),
        &[("note.md", None), ("Note.md", Some("n\n"))],
    );
}

#[test]
fn headings_blocks_tags_and_properties_are_renamed() {
    let part = PartRequest {
        note: owned("n"),
        kind: PartKind::Heading,
        old: owned("One"),
        new: owned("Two"),
        force: false,
    };
    check(
        &[("n.md", "# One\n"), ("s.md", "[[n#One]]\n")],
        &Operation::RenamePart(part),
        &[("n.md", Some("# Two\n")), ("s.md", Some("[[n#Two]]\n"))],
    );
    let rename = |kind, old: &str, new: &str| {
        Operation::RenameEverywhere(RenameRequest { kind, old: owned(old), new: owned(new) })
    };
    check(
        &[("a.md", "---\ntags: [p/x, q]\n---\n#p and #pq\n"), ("b.md", "none\n")],
        &rename(RenameKind::Tag, "p", "z"),
        &[("a.md", Some("---\ntags: [z/x, q]\n---\n#z and #pq\n"))],
    );
    check(
        &[("a.md", "---\nold: 1 # c\n---\n"), ("b.md", "old: 1\n")],
        &rename(RenameKind::Property, "old", "new"),
        &[("a.md", Some("---\nnew: 1 # c\n---\n"))],
    );
}

#[test]
fn relating_two_notes_links_both_ways_and_only_once() {
    let request = LinkRequest { a: owned("A"), b: owned("B"), text: Some(owned("see")) };
    let before = [("A.md", "a\n"), ("B.md", "b\n\n## Related\n\n- [[C]]\n"), ("C.md", "")];
    check(
        &before,
        &Operation::Link(request.clone()),
        &[
            ("A.md", Some("a\n\n## Related\n\n- [[B|see]]\n")),
            ("B.md", Some("b\n\n## Related\n\n- [[C]]\n- [[A]]\n")),
        ],
    );
    let vault = TestVault::new(&before);
    let store = vault.store();
    assert!(store.changes().change(&Operation::Link(request.clone()), false).unwrap().applied);
    assert!(
        !store.changes().change(&Operation::Link(request.clone()), false).unwrap().applied,
        "twice is once"
    );
    assert!(store.changes().change(&Operation::Unlink(request), false).unwrap().applied);
    let before: Files = before.iter().map(|(path, text)| (owned(path), owned(text))).collect();
    assert_eq!(files(&vault), before, "unlinking takes everything back");
    check(
        &[("A.md", "see [[B]]\n"), ("B.md", "---\nlinks: [x]\n---\n")],
        &Operation::Link(LinkRequest { a: owned("A"), b: owned("B"), text: None }),
        &[("B.md", Some(&format!("---\nlinks: [x, {}]\n---\n## Related\n\n- [[A]]\n", id_of("A.md"))))],
    );
}

fn id_of(path: &str) -> String {
    let path = sidenote::markdown::path::NotePath::parse(path).unwrap();
    sidenote::catalog::path_id(&path)
}

#[test]
fn deleted_notes_can_be_restored() {
    let before = [("A.md", "a\n"), ("s.md", "see [[A|the note]]\n\n## Related\n\n- [[A]]\n")];
    let delete = |links| Operation::Delete(DeleteRequest { note: owned("A"), permanent: false, links });
    check(
        &before,
        &delete(DanglingLinks::Leave),
        &[(".trash/A.md", Some("a\n")), ("A.md", None), ("s.md", Some("see [[A|the note]]\n"))],
    );
    check(
        &before,
        &delete(DanglingLinks::Plain),
        &[(".trash/A.md", Some("a\n")), ("A.md", None), ("s.md", Some("see the note\n"))],
    );
    let vault = TestVault::new(&before);
    let store = vault.store();
    store.changes().change(&delete(DanglingLinks::Leave), false).unwrap();
    store.changes().change(&Operation::Restore(owned("A")), false).unwrap();
    assert_eq!(files(&vault)["A.md"], "a\n");
}

#[test]
fn a_new_note_with_a_used_name_keeps_the_targets_of_existing_links() {
    let vault = TestVault::new(&[("old/Plan.md", "p\n"), ("s.md", "[[Plan]]\n")]);
    let store = vault.store();
    let request = NewRequest {
        title: owned("Plan"),
        content: owned("text"),
        tags: vec![owned("a"), owned("b")],
        properties: vec![(owned("up"), json!("[[s]]"))],
        ..NewRequest::default()
    };
    assert_eq!(
        store.changes().change(&Operation::New(request.clone()), false).unwrap_err().kind(),
        ErrorKind::Exists
    );
    let request = NewRequest { force: true, ..request };
    store.changes().change(&Operation::New(request.clone()), false).unwrap();
    let now = files(&vault);
    assert_eq!(now["s.md"], "[[old/Plan]]\n", "the old note is still meant");
    let text = &now["Plan.md"];
    assert!(text.contains("\ntags:\n  - a\n  - b\n") && text.contains("\nup: \"[[s]]\"\n"), "{text}");
    assert!(text.ends_with("---\ntext\n"), "{text}");
    let error = store.changes().change(&Operation::New(request), false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    let daily = NewRequest { daily: true, ..NewRequest::default() };
    store.changes().change(&Operation::New(daily), false).unwrap();
    assert!(files(&vault).keys().any(|path| path.starts_with("2026-11-2")), "named after the day");
}

#[test]
fn the_command_line_changes_previews_and_undoes() {
    let vault = TestVault::new(&[("Old.md", "x\n"), ("s.md", "[[Old]]\n")]);
    let old = files(&vault);
    let dry = vault.run(&["move", "Old", "New", "--dry-run"]);
    assert!(dry.status.success(), "{}", stderr(&dry));
    assert!(stdout(&dry).contains("-[[Old]]\n+[[New]]\n"), "{}", stdout(&dry));
    assert_eq!(files(&vault), old);
    let done = vault.run(&["move", "Old", "New", "--json"]);
    let reply: Value = serde_json::from_str(&stdout(&done)).unwrap();
    assert_eq!(reply["applied"], true);
    assert_eq!(reply["plan"]["files"].as_array().unwrap().len(), 2);
    let history = vault.run(&["history", "New"]);
    assert!(stdout(&history).contains("move"), "{}", stdout(&history));
    assert!(vault.run(&["rename", "New", "Newer"]).status.success());
    let history = vault.run(&["history", "Newer", "--limit", "1"]);
    assert!(stdout(&history).contains("  rename  New.md -> Newer.md"), "{}", stdout(&history));
    assert!(vault.run(&["undo"]).status.success());
    assert!(vault.run(&["undo"]).status.success());
    assert_eq!(files(&vault), old);
    assert_eq!(vault.run(&["set", "Old", "a", "1", "--expect-hash", &"0".repeat(64)]).status.code(), Some(5));
    assert!(vault.run(&["tag", "Old", "+a", "+b", "-c"]).status.success());
    assert!(vault.run(&["tag", "Old", "-a", "--dry-run"]).status.success());
    assert_eq!(files(&vault)["Old.md"], "---\ntags:\n  - a\n  - b\n---\nx\n");
    assert_eq!(vault.run(&["delete", "Old", "--permanent"]).status.code(), Some(2));
}

#[test]
fn a_rename_reports_other_files_with_the_new_name() {
    let files = [("a/Plan.md", "x\n"), ("b/Compost.md", "y\n"), ("s.md", "[[Plan]] [[Compost]]\n")];
    let vault = TestVault::new(&files);
    assert!(vault.run(&["index"]).status.success());
    let done = vault.run(&["rename", "Plan", "Compost"]);
    assert_eq!(
        stderr(&done),
        "a/Compost.md:1:1: b/Compost.md has the same name, so links to either file may need a folder (same-name)\n"
    );
    assert_eq!(text_of(&vault, "s.md"), "[[a/Compost]] [[b/Compost]]\n");
    // The names were the same before, or another file has the name no longer.
    for args in [["move", "a/Compost", "c/Compost"], ["rename", "c/Compost", "Plan"]] {
        assert_eq!(stderr(&vault.run(&args)), "", "{args:?}");
    }
}

#[test]
fn notes_are_merged_and_sections_extracted() {
    let request = MergeRequest { from: vec![owned("A")], into: owned("d/B"), ..MergeRequest::default() };
    check(
        &[
            ("A.md", "---\ntags: [x, y]\nkind: a\n---\n# Head\n[[#Head]] [[C]]\n"),
            ("d/B.md", "---\ntags: [x]\n---\nb, see [[A]]\n"),
            ("C.md", "![[A#Head]] [t](A.md)\n"),
        ],
        &Operation::Merge(request),
        &[
            (".trash/A.md", Some("---\ntags: [x, y]\nkind: a\n---\n# Head\n[[#Head]] [[C]]\n")),
            ("A.md", None),
            ("C.md", Some("![[B#Head]] [t](d/B.md)\n")),
            ("d/B.md", Some("---\ntags: [x, y]\nkind: a\n---\nb, see [[B]]\n\n# Head\n[[#Head]] [[C]]\n")),
        ],
    );
    let vault = TestVault::new(&[
        (
            "d/n.md",
            "# Top\nsee [[#Part]]\n\n## Part\ntext [up](../x.md) [[#Top]] [[#Part]]\n\n## Last\nend\n",
        ),
        ("x.md", "[[n#Part]] [[n#Top#Part]] [[n#Last]] [p](d/n.md#Part)\n"),
    ]);
    let store = vault.store();
    let request = ExtractRequest { note: owned("n"), section: owned("Part"), title: owned("The part") };
    store.changes().change(&Operation::Extract(request), false).unwrap();
    let now = files(&vault);
    assert_eq!(now["d/n.md"], "# Top\nsee [[The part#Part]]\n\n[[The part]]\n\n## Last\nend\n");
    assert_eq!(now["x.md"], "[[The part#Part]] [[The part#Part]] [[n#Last]] [p](d/The%20part.md#Part)\n");
    let made = &now["d/The part.md"];
    assert_eq!(made, "## Part\ntext [up](../x.md) [[n#Top]] [[#Part]]\n");
}

#[test]
fn mentions_in_bases_and_bookmarks_are_reported() {
    let vault = TestVault::new(&[("Old.md", ""), ("x.base", "filters: file.hasLink(\"Old\")\n")]);
    vault.write(
        ".obsidian/bookmarks.json",
        r#"{"items":[{"type":"group","items":[{"type":"file","path":"Old.md"}]}]}"#,
    );
    let request = MoveRequest { from: owned("Old"), to: owned("New"), ..MoveRequest::default() };
    let plan = vault.store().changes().plan(&Operation::Move(request)).unwrap();
    let codes: Vec<&str> = plan.remarks.iter().map(|remark| remark.code.as_str()).collect();
    assert_eq!(codes, ["base-mention", "bookmark"]);
}

#[test]
fn a_restored_note_gets_its_former_name() {
    let vault = TestVault::new(&[("d/A.md", "one\n"), (".trash/d/A.md", "older\n")]);
    let store = vault.store();
    let delete = DeleteRequest { note: owned("d/A"), permanent: false, links: DanglingLinks::Leave };
    store.changes().change(&Operation::Delete(delete), false).unwrap();
    assert_eq!(files(&vault)[".trash/d/A 2.md"], "one\n");
    store.changes().change(&Operation::Restore(owned("d/A 2")), false).unwrap();
    assert_eq!(files(&vault)["d/A.md"], "one\n");
}

#[test]
fn ambiguous_changes_are_refused() {
    let refused = |made: &[(&str, &str)], operation: &Operation, says: &str| {
        let vault = TestVault::new(made);
        let before = files(&vault);
        let error = vault.store().changes().change(operation, false).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(files(&vault), before);
    };
    let link = |a: &str, b: &str| Operation::Link(LinkRequest { a: owned(a), b: owned(b), text: None });
    refused(&[("A.md", "```\nopen"), ("B.md", "b\n")], &link("A", "B"), "not closed");
    let merge = Operation::Merge(MergeRequest {
        from: vec![owned("A")],
        into: owned("B"),
        ..MergeRequest::default()
    });
    refused(
        &[("A.md", "[x][r]\n\n[r]: o.md\n"), ("B.md", "[y][r]\n\n[r]: z.md\n")],
        &merge,
        "both define [r]",
    );
    let extract = ExtractRequest { note: owned("N"), section: owned("S"), title: owned("New") };
    let torn = "## S\n\n[x][r]\n\n## Z\n\n[r]: o.md\n";
    refused(&[("N.md", torn)], &Operation::Extract(extract), "both sides");
    let request = MoveRequest { from: owned("s"), to: owned("dir/s"), ..MoveRequest::default() };
    refused(&[("Dir/a.md", ""), ("s.md", "")], &Operation::Move(request), "case-collision");
}

#[test]
fn a_permanent_deletion_cannot_be_restored() {
    let vault = TestVault::new(&[("A.md", "a\n"), ("b.md", "[[A]]\n")]);
    let store = vault.store();
    let delete = DeleteRequest { note: owned("A"), permanent: true, links: DanglingLinks::Leave };
    assert!(store.changes().change(&Operation::Delete(delete), false).unwrap().applied);
    assert_eq!(files(&vault).keys().collect::<Vec<_>>(), ["b.md"]);
    assert_eq!(store.changes().undo(1, false).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn files_behind_a_symbolic_link_are_not_changed_and_are_reported() {
    let outside = TestVault::new(&[("e.md", "[[Old]]\n")]);
    let vault = TestVault::new(&[("Old.md", "x\n"), ("s.md", "[[Old]]\n")]);
    symlink(outside.root().join("e.md"), vault.root().join("ext.md"));
    let request = MoveRequest { from: owned("Old"), to: owned("New"), ..MoveRequest::default() };
    let store = vault.open_set(&[("embed.provider", "none"), ("vault.follow_outside", "true")]);
    let reply = store.changes().change(&Operation::Move(request), false).unwrap();
    let said: Vec<(&str, &str)> =
        reply.plan.remarks.iter().map(|remark| (remark.code.as_str(), remark.path.as_str())).collect();
    assert_eq!(said, [("symlink", "ext.md")]);
    assert_eq!(files(&outside)["e.md"], "[[Old]]\n");
    // Links do not follow a heading that cannot be renamed.
    outside.write("e.md", "# One\n");
    vault.write("t.md", "[[ext#One]]\n");
    let part = PartRequest {
        note: owned("ext"),
        kind: PartKind::Heading,
        old: owned("One"),
        new: owned("Two"),
        force: false,
    };
    let error = store.changes().change(&Operation::RenamePart(part), false).unwrap_err();
    assert!(error.to_string().contains("symlink"), "{error}");
    assert_eq!(std::fs::read_to_string(vault.root().join("s.md")).unwrap(), "[[New]]\n");
}

#[test]
fn follow_outside_allows_writes_through_linked_folders() {
    let outside =
        TestVault::new(&[("e.md", "[[Old]] ![[pic.png]]\n"), ("sub/f.md", "# F\n"), ("pic.png", "p")]);
    let vault = TestVault::new(&[("Old.md", "[[f]]\n"), ("s.md", "[[e]]\n")]);
    symlink(outside.root(), vault.root().join("ext"));
    let store = vault.open_set(&[("embed.provider", "none"), ("vault.follow_outside", "true")]);
    let (before, inside) = (files(&outside), files(&vault));
    let run = |operation: Operation| {
        let planned = store.changes().change(&operation, true).unwrap();
        let done = store.changes().change(&operation, false).unwrap();
        assert_eq!(planned.plan, done.plan);
        assert!(done.plan.remarks.is_empty(), "{:?}", done.plan.remarks);
    };
    let moved = |from: &str, to: &str| {
        Operation::Move(MoveRequest { from: owned(from), to: owned(to), ..MoveRequest::default() })
    };
    run(moved("Old", "New"));
    run(moved("ext/e.md", "ext/sub/g.md"));
    run(moved("New.md", "ext/New.md"));
    run(edit("ext/sub/f.md", NoteEdit::Append(owned("more"), None)));
    run(Operation::New(NewRequest {
        title: owned("Made"),
        folder: Some(owned("ext/fresh")),
        ..NewRequest::default()
    }));
    let after = files(&outside);
    assert_eq!(after["sub/g.md"], "[[New]] ![[pic.png]]\n");
    assert_eq!(after["New.md"], "[[f]]\n");
    assert_eq!(after["sub/f.md"], "# F\n\nmore\n");
    assert!(after.contains_key("fresh/Made.md"));
    assert_eq!(std::fs::read_to_string(vault.root().join("s.md")).unwrap(), "[[g]]\n");
    store.changes().undo(5, false).unwrap();
    assert_eq!((files(&outside), files(&vault)), (before, inside), "undo brings every byte back");
}

#[test]
fn a_note_reachable_by_two_paths_is_one_note() {
    let vault = TestVault::new(&[("a/n.md", "# N\n\nheron\n"), ("s.md", "[[n]]\n")]);
    symlink("a", vault.root().join("twin"));
    let store = vault.store();
    assert_eq!(crate::support::paths(&store, "heron"), ["a/n.md"]);
    assert_eq!(store.lookup().find("twin/n.md").unwrap().path.as_str(), "a/n.md");
    store.changes().change(&edit("twin/n.md", NoteEdit::Append(owned("more"), None)), false).unwrap();
    let new = NewRequest { title: owned("New"), folder: Some(owned("twin")), ..NewRequest::default() };
    store.changes().change(&Operation::New(new), false).unwrap();
    let request = MoveRequest { from: owned("s.md"), to: owned("twin/"), ..MoveRequest::default() };
    store.changes().change(&Operation::Move(request), false).unwrap();
    let request = MoveRequest { from: owned("twin/n.md"), to: owned("twin/m.md"), ..MoveRequest::default() };
    store.changes().change(&Operation::Move(request), false).unwrap();
    let filter = sidenote::catalog::Filter { folder: Some(owned("twin/")), ..Default::default() };
    let request = sidenote::store::ListRequest { filter: filter.clone(), ..Default::default() };
    assert_eq!(store.reads().list(&request).unwrap().total, 3);
    let request = sidenote::store::SearchRequest { query: owned("heron"), filter, ..Default::default() };
    assert_eq!(crate::support::found(&store, &request), ["a/m.md"]);
    let listed: Vec<String> =
        store.index().dump().unwrap().into_iter().filter(|line| line.starts_with("file ")).collect();
    assert!(listed.iter().all(|line| line.contains(" a/")) && listed.len() == 3, "{listed:?}");
    assert_eq!(std::fs::read_to_string(vault.root().join("a/s.md")).unwrap(), "[[m]]\n");
    assert_eq!(std::fs::read_to_string(vault.root().join("a/m.md")).unwrap(), "# N\n\nheron\n\nmore\n");
    assert!(std::fs::symlink_metadata(vault.root().join("twin")).unwrap().is_symlink());
}

#[cfg(unix)]
#[test]
fn a_move_across_hundreds_of_folders_needs_few_file_handles() {
    let mut notes = vec![("Old.md".to_owned(), "x\n".to_owned())];
    notes.extend((0..300).map(|at| (format!("d{at}/e/n.md"), format!("[[Old]] {at}\n"))));
    let notes: Vec<(&str, &str)> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = TestVault::new(&notes);
    drop(vault.store());
    let before = files(&vault);
    // As many files as a process may have open where nothing else is said, on macOS, and fewer.
    for limit in [256, 96, 48] {
        let limited = |args: &[&str]| {
            let program = vault.command(args);
            let mut command = std::process::Command::new("sh");
            command
                .arg("-c")
                .arg(format!("ulimit -n {limit} && exec \"$0\" \"$@\""))
                .arg(program.get_program());
            command.args(program.get_args()).env_clear();
            command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
            let output = command.output().unwrap();
            assert!(output.status.success(), "{limit}: {}", stderr(&output));
        };
        limited(&["move", "Old.md", "New.md"]);
        assert_eq!(files(&vault)["d299/e/n.md"], "[[New]] 299\n");
        limited(&["undo"]);
        assert_eq!(files(&vault), before);
    }
}

#[test]
fn names_resolve_by_the_files_where_the_index_is_stale() {
    let vault = TestVault::new(&[("A.md", "# T1\n"), ("B.md", "# T2\n")]);
    // This store keeps the index and does not sync; the other one reads the files as they are.
    let keeper = vault.store();
    vault.write("A.md", "# T2\n\nnow\n");
    vault.write("B.md", "# T1\n\nnow\n");
    vault.write("D.md", "new\n");
    let other = vault.open("none");
    assert!(keeper.is_writer() && !other.is_writer());
    let append = |note: &str| edit(note, NoteEdit::Append(owned("added"), None));
    for (note, path) in [("T1", "B.md"), ("D", "D.md"), ("D.md", "D.md"), ("A", "A.md")] {
        let reply = other.changes().change(&append(note), false).unwrap();
        let changed = reply.plan.files[0].from.as_ref().unwrap().to_string();
        assert_eq!(changed, path, "{note}");
    }
}

/// A note answers to the same names whether the index or the file says so.
#[test]
fn names_mean_the_same_before_and_after_a_note_is_indexed() {
    let cases = [
        ("title: 2024", "# Heading", &["2024", "n"][..], &["Heading"][..]),
        ("title: true", "", &["true", "n"], &[]),
        ("title: \"\"", "# Heading", &["Heading", "n"], &[]),
        ("title: \" \"", "# Heading", &["Heading", "n"], &[]),
        ("title: [a, b]", "# Heading", &["Heading", "n"], &["a"]),
        ("title: Said", "# Heading", &["Said", "n"], &["Heading"]),
        ("x: y", "# Heading\n\n# Other", &["Heading", "n"], &["Other"]),
        ("x: y", "## Second", &["n"], &["Second"]),
        ("id: 77\naliases: [Also]", "", &["77", "also", "n"], &[]),
        ("id: true", "", &["true", "n"], &[]),
    ];
    assert_eq!(cases.len(), 10);
    for (properties, body, names, others) in cases {
        let vault = TestVault::new(&[("unrelated.md", "")]);
        let keeper = vault.store();
        vault.write("n.md", format!("---\n{properties}\n---\n{body}\n"));
        let reader = vault.open("none");
        assert!(keeper.is_writer() && !reader.is_writer());
        reader.index().refresh().unwrap();
        let check = |when: &str| {
            for name in names {
                let path = reader.lookup().find(name).map(|row| row.path.to_string());
                assert_eq!(path.ok().as_deref(), Some("n.md"), "{properties} {body} {name} {when}");
            }
            for name in others {
                let found = reader.lookup().find(name).map_err(|error| error.kind());
                assert_eq!(
                    found.map(|row| row.path),
                    Err(ErrorKind::NotFound),
                    "{properties} {body} {name} {when}"
                );
            }
        };
        check("before");
        keeper.index().sync(silent()).unwrap();
        reader.index().refresh().unwrap();
        check("after");
    }
}

#[test]
fn set_keeps_values_as_they_were_typed() {
    let vault = TestVault::new(&[("A.md", "a\n")]);
    for (key, value) in [("ver", "3.10"), ("n", "-5"), ("e", "1e3"), ("t", "true")] {
        assert!(vault.run(&["set", "A", key, value]).status.success(), "{key}");
    }
    assert!(vault.run(&["append", "A", "- item", "--json"]).status.success());
    let text = files(&vault)["A.md"].clone();
    assert_eq!(text, "---\nver: \"3.10\"\nn: -5\ne: \"1e3\"\nt: true\n---\na\n\n- item\n");
    let wrong = vault.run(&["new", "--json"]);
    assert!(stderr(&wrong).starts_with("{\"error\""), "{}", stderr(&wrong));
}

const BROKEN: &str = "---\na: [\nup: \"[[Old]]\"\n---\n[[Old|x]]\n";
const DIAGRAM: &str = "```mermaid\nflowchart LR\nA --> B[\"Old\"]\nB --> C(Other)\nclass A,B,C internal-link;\n```\n\n```mermaid\ngraph TD\nOld:::internal-link --> D[Old]\n```\n";

#[test]
fn partial_property_links_are_reported_with_their_position() {
    let check = |path: &str, text: &str, expect: &[&str]| {
        let vault = TestVault::new(&[("Old.md", ""), ("Other.md", ""), (path, text)]);
        let request = MoveRequest { from: owned("Old.md"), to: owned("New.md"), ..MoveRequest::default() };
        let plan = vault.store().changes().plan(&Operation::Move(request)).unwrap();
        let told: Vec<String> = plan
            .remarks
            .iter()
            .map(|remark| format!("{} {}:{}", remark.code, remark.line, remark.column))
            .collect();
        assert_eq!(told, expect, "{text}");
    };
    check("n.md", "---\nup: \"see [[Old]] and [[Other]]\"\n---\n", &["partial-property 2:10"]);
    check("n.md", "---\nup: see [[Old#a|b]], [[d/Old]]\n---\n", &["partial-property 2:9"]);
    check("n.md", "---\nup: |\n  see [[Old]]\n---\n", &["partial-property 3:7"]);
    check("n.md", "---\nup:\n  - a\n  - 'it''s [[old]]'\n---\n", &["partial-property 4:12"]);
    check("n.md", "---\nup: \"[[Other]]\"\nx: \"[[Other]] y\"\n---\n", &[]);
    check("n.md", BROKEN, &["yaml-unparsable 3:6"]);
    check("n.md", DIAGRAM, &["mermaid-node 3:10", "mermaid-node 10:1"]);
    check("n.md", "internal-link\n\n    A[Old]:::internal-link\n", &[]);
    check(
        "c.canvas",
        "{\"nodes\":[{\"file\": \"Old.md\"},{\"text\":\"[[Old]]\"}",
        &["json-unparsable 1:21", "json-unparsable 1:39"],
    );
}

#[test]
fn partial_property_links_are_rewritten_on_request() {
    let moved = |text: &str, after: &'static str| {
        let request = MoveRequest {
            from: owned("Old"),
            to: owned("It's \"new\""),
            partial_properties: true,
            relaxed: true,
            ..MoveRequest::default()
        };
        let expect = [("It's \"new\".md", Some("")), ("Old.md", None), ("n.md", Some(after))];
        check(&[("Old.md", ""), ("n.md", text)], &Operation::Move(request), &expect);
    };
    moved(
        "---\nup: \"see [[Old#h|b]]\" # c\n---\n[[Old]]\n",
        "---\nup: \"see [[It's \\\"new\\\"#h|b]]\" # c\n---\n[[It's \"new\"]]\n",
    );
    moved(
        "---\nup: 'see [[Old]], [[x]]'\n---\n[[Old]]\n",
        "---\nup: 'see [[It''s \"new\"]], [[x]]'\n---\n[[It's \"new\"]]\n",
    );
    moved("---\nup: see [[Old]]\n---\n", "---\nup: see [[It's \"new\"]]\n---\n");
}

#[test]
fn a_rename_can_keep_the_old_name_as_an_alias() {
    let moved = |to: &str, before: &str, after: &'static str| {
        let request =
            MoveRequest { from: owned("d/Old"), to: owned(to), keep_alias: true, ..MoveRequest::default() };
        let expect = [("d/Old.md", None), ("d/New.md", Some(after))];
        check(&[("d/Old.md", before)], &Operation::Move(request), &expect);
    };
    moved("d/New", "[[Old]]\n", "---\naliases:\n  - Old\n---\n[[New]]\n");
    moved("d/New", "---\naliases: [a] # b\n---\n", "---\naliases: [a, Old] # b\n---\n");
    moved("d/New", "---\naliases: old\n---\n", "---\naliases: old\n---\n");
    let request =
        MoveRequest { from: owned("a"), to: owned("d/a"), keep_alias: true, ..MoveRequest::default() };
    check(&[("a.md", "x\n")], &Operation::Move(request), &[("a.md", None), ("d/a.md", Some("x\n"))]);
}

#[test]
fn extracting_a_section_keeps_crlf_line_endings() {
    let vault = TestVault::new(&[(".obsidian/app.json", "{}"), ("n.md", "# A\r\none\r\n# B\r\ntwo\r\n")]);
    let request = ExtractRequest { note: owned("n"), section: owned("B"), title: owned("b") };
    vault.store().changes().change(&Operation::Extract(request), false).unwrap();
    let made = &files(&vault)["b.md"];
    assert!(made.ends_with("---\r\n# B\r\ntwo\r\n"), "{made:?}");
    assert_eq!(made.matches('\n').count(), made.matches("\r\n").count());
}

#[test]
fn the_memories_layout_is_flat_and_relates_notes_by_id() {
    let vault = TestVault::new(&[]);
    vault.write(".sidenote/config.toml", "[vault]\nlayout = \"memories\"\n");
    let store = vault.store();
    let new = |title: &str, category: Option<&str>| {
        let request = NewRequest {
            title: owned(title),
            category: category.map(owned),
            content: owned("Text.\n"),
            tags: vec![owned("x")],
            ..NewRequest::default()
        };
        store.changes().change(&Operation::New(request), false).unwrap().plan.files[0]
            .to
            .clone()
            .unwrap()
            .to_string()
    };
    let (a, b) = (new("Wie läuft's?", Some("How to")), new("B", None));
    let link = LinkRequest { a: owned("Wie läuft's?"), b: owned("B"), text: None };
    store.changes().change(&Operation::Link(link), false).unwrap();
    let now = files(&vault);
    let (id_a, id_b) = (&a["how-to-wie-lauft-s-".len()..a.len() - 3], &b["b-".len()..b.len() - 3]);
    let stem = b.strip_suffix(".md").unwrap();
    let text = now[&a].replace(id_a, "ID_A").replace(id_b, "ID_B");
    assert!(a.starts_with("how-to-wie-lauft-s-") && b.starts_with("b-"), "{a} {b}");
    assert!(stem.ends_with(id_b));
    insta::assert_snapshot!(text, @r#"
    ---
    id: ID_A
    title: Wie läuft's?
    tags:
      - x
    category: How to
    created_at: "2026-11-21T00:00:00Z"
    updated_at: "2026-11-21T00:00:00Z"
    last_reviewed: "2026-11-21T00:00:00Z"
    links: [ID_B]
    ---
    Text.

    **Related Memories:**

    - [[b-ID_B]]
    "#);
}

#[test]
fn undo_reports_what_it_cannot_revert() {
    let vault = TestVault::new(&[("a.md", "1\n"), ("b.md", "1\n")]);
    let store = vault.store();
    store.changes().change(&edit("a", NoteEdit::Append(owned("2"), None)), false).unwrap();
    let delete = DeleteRequest { note: owned("b"), permanent: true, links: DanglingLinks::Leave };
    store.changes().change(&Operation::Delete(delete), false).unwrap();
    // What would be undone is not what was done last.
    let error = store.changes().undo(1, false).unwrap_err();
    assert_eq!(
        error.message(),
        "delete of b.md cannot be undone: the file was removed for good; nothing was written"
    );
    assert!(
        error.hint().unwrap().starts_with("to undo the append of a.md before it: sidenote undo "),
        "{error:?}"
    );
    let request = UndoRequest { count: 1, skip: true, ..UndoRequest::default() };
    let undone = store.changes().undo_by(&request).unwrap();
    assert_eq!(undone[0].reverted.as_deref(), Some("append of a.md"));
    assert_eq!(undone[0].notices, ["delete of b.md is newer and stays: its before-images were removed"]);
    assert_eq!(files(&vault)["a.md"], "1\n");
}

#[test]
fn a_setting_limits_how_many_operations_can_be_undone() {
    let vault = TestVault::new(&[("a.md", "0\n")]);
    let store = vault.open_set(&[("embed.provider", "none"), ("undo.operations", "3")]);
    for text in ["1", "2", "3", "4", "5"] {
        store.changes().change(&edit("a", NoteEdit::Append(owned(text), None)), false).unwrap();
    }
    let error = store.changes().undo(4, false).unwrap_err();
    assert_eq!(error.to_string(), "only 3 operations can be undone, not 4");
}

#[test]
fn extracting_a_section_rewrites_links_to_its_headings() {
    let text = "# Top\nt [[E#Sub]] [[E#Sub#Deep]]\n## Sub\ns [[E#Deep]] [[E#^blk]] [[E#Top]]\n### Deep\nd ^blk\n## Other\no [[E#Top#Sub]]\n";
    let vault = TestVault::new(&[("E.md", text)]);
    let store = vault.store();
    let request = ExtractRequest { note: owned("E"), section: owned("Sub"), title: owned("New") };
    store.changes().change(&Operation::Extract(request), false).unwrap();
    let now = files(&vault);
    assert_eq!(now["E.md"], "# Top\nt [[New#Sub]] [[New#Sub#Deep]]\n[[New]]\n## Other\no [[New#Sub]]\n");
    assert_eq!(now["New.md"], "## Sub\ns [[New#Deep]] [[New#^blk]] [[E#Top]]\n### Deep\nd ^blk\n");
    assert_eq!(store.upkeep().check(true).unwrap().counts.get("broken-subpath"), None);
}
