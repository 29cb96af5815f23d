//! Tests notes that get a name which another note has: no link of others is changed or captured unasked.

use serde_json::json;
use sidenote::store::{DanglingLinks, DeleteRequest, ExtractRequest, NewRequest, Operation};

use crate::mcp_client::Client;
use crate::support::{TestVault, run, stderr, stdout, text_of};

const NOW: &str = "2026-11-21";

/// A note in a folder, and two notes that link to it by its name.
fn vault() -> TestVault {
    TestVault::new(&[
        (".obsidian/app.json", "{}"),
        ("Reference/Rating curves.md", "The power law.\n"),
        ("a.md", "[[Rating curves]] and [[Rating curves#x|again]]\n"),
        ("b.md", "![[Rating curves]]\n"),
        ("c.md", "# c\n\n## Rating curves\n\nown\n"),
        (".obsidian/daily-notes.json", r#"{"format": "[Rating curves]"}"#),
    ])
}

#[test]
fn a_new_note_that_would_capture_links_is_refused() {
    let name = "Rating curves";
    let calls: [&[&str]; 3] =
        [&["new", name], &["new", "--daily"], &["extract", "c", "--section", name, "--to", name]];
    for args in calls {
        let vault = vault();
        let before = vault.contents();
        for args in [args.to_vec(), [args, &["--dry-run"]].concat()] {
            let done = vault.run(&args);
            let said = stderr(&done);
            assert_eq!(done.status.code(), Some(4), "{args:?}: {said}");
            assert!(said.contains("Reference/Rating curves.md has this name"), "{args:?}: {said}");
            assert!(said.contains("links in 2 notes"), "{args:?}: {said}");
        }
        assert_eq!(vault.contents(), before, "{args:?}");
    }
    let vault = vault();
    let before = vault.contents();
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    for (tool, arguments) in [
        ("write_note", json!({ "title": name, "content": "mine" })),
        ("new_from_template", json!({ "title": name })),
        ("extract_section", json!({ "note": "c", "section": name, "title": name })),
    ] {
        let reply = client.refusal(tool, arguments);
        assert!(reply.contains("Reference/Rating curves.md has this name"), "{tool}: {reply}");
    }
    client.finish();
    assert_eq!(vault.contents(), before);
}

#[test]
fn a_forced_note_leaves_links_leading_where_they_led() {
    let vault = vault();
    let done = vault.run(&["new", "Rating curves", "--content", "mine", "--force"]);
    assert_eq!(stdout(&done), "Rating curves.md\na.md changed\nb.md changed\n1 file created, 2 changed\n");
    assert_eq!(
        text_of(&vault, "a.md"),
        "[[Reference/Rating curves]] and [[Reference/Rating curves#x|again]]\n"
    );
    assert_eq!(
        stdout(&vault.run(&["backlinks", "Reference/Rating curves.md", "--json"]))
            .matches("\"line\"")
            .count(),
        3
    );
    run(&vault, NOW, &["undo"]);
    assert_eq!(text_of(&vault, "b.md"), "![[Rating curves]]\n");
}

#[test]
fn a_note_that_captures_nothing_is_made() {
    let vault = vault();
    // No link means the longer path, and an unwritten link is meant for the note.
    vault.write("d.md", "[[Unwritten]]\n");
    for args in [&["new", "Rating curves", "--folder", "Long folder/inside"][..], &["new", "Unwritten"]] {
        let done = vault.run(args);
        assert!(done.status.success(), "{args:?}: {}", stderr(&done));
        assert_eq!(stdout(&done).lines().count(), 1, "{args:?}");
    }
    assert_eq!(text_of(&vault, "d.md"), "[[Unwritten]]\n");
}

#[test]
fn a_memory_that_would_capture_links_gets_a_number() {
    let vault = TestVault::new(&[
        (".obsidian/app.json", "{}"),
        ("Reference notes/Rating curves.md", "The power law.\n"),
        ("a.md", "[[Rating curves]]\n"),
    ]);
    let before = text_of(&vault, "a.md");
    run(&vault, NOW, &["memory", "save", "They follow a power law.", "--title", "Rating curves"]);
    assert!(text_of(&vault, "Memories/Rating curves 2.md").contains("They follow"));
    let import = r#"[{"title": "Rating curves", "content": "imported"}]"#;
    vault.write("in.json", import);
    run(&vault, NOW, &["import", vault.root().join("in.json").to_str().unwrap()]);
    assert!(text_of(&vault, "Memories/Rating curves 3.md").contains("imported"));
    let mut client = Client::start(&vault, &["--toolset", "mem"]);
    client.call("write_mem", json!({ "title": "Rating curves", "content": "of another toolset" }));
    client.finish();
    assert!(text_of(&vault, "Memories/Rating curves 4.md").contains("of another toolset"));
    assert_eq!(text_of(&vault, "a.md"), before);
    let links = stdout(&vault.run(&["links", "a.md"]));
    assert!(links.contains("-> Reference notes/Rating curves.md"), "{links}");
}

#[test]
fn a_restored_note_says_which_links_lead_to_it_again() {
    let vault = TestVault::new(&[
        (".obsidian/app.json", "{}"),
        ("A/X.md", "first\n"),
        ("Long folder/X.md", "second\n"),
        ("n.md", "[[X]]\n"),
    ]);
    let store = vault.store();
    let delete = DeleteRequest { note: "A/X.md".to_owned(), permanent: false, links: DanglingLinks::Leave };
    store.changes().change(&Operation::Delete(delete), false).unwrap();
    let reply = store.changes().change(&Operation::Restore("A/X.md".to_owned()), false).unwrap();
    assert_eq!(reply.plan.files.len(), 1);
    let remarks: Vec<String> = reply.plan.remarks.iter().map(ToString::to_string).collect();
    assert_eq!(
        remarks,
        ["A/X.md:1:1: links in 1 note lead to it now, which led to Long folder/X.md before (same-name)"]
    );
    assert_eq!(text_of(&vault, "n.md"), "[[X]]\n");
    // The store refuses for every caller.
    vault.write("m.md", "[[Y]]\n");
    vault.write("B/Y.md", "y\n");
    store.index().sync(sidenote::index::silent()).unwrap();
    let new = NewRequest { title: "Y".to_owned(), ..NewRequest::default() };
    assert!(store.changes().plan(&Operation::New(new)).is_err());
    let extract = ExtractRequest { note: "n".to_owned(), section: "none".to_owned(), title: "Y".to_owned() };
    assert!(store.changes().plan(&Operation::Extract(extract)).is_err());
}
