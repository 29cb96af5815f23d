//! Tests what people write on the web page: the source of a note with its preview, new notes, moves, folders, tasks, days, and
//! the undo of a session.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sidenote::markdown::edit::apply;
use sidenote::markdown::source_edit::source_edits;
use sidenote::markdown::task_due::due_day;
use sidenote::store::TasksRequest;

use crate::support::{TestVault, run, stdout};
use crate::web::Page;

#[test]
fn the_edits_of_an_editor_keep_line_ends() {
    let cases = [
        // Text before, what the editor gives, text after.
        ("", "a\n", "a\n"),
        ("a\n", "", ""),
        ("a\nb\n", "a\nc\n", "a\nc\n"),
        ("a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n"),
        ("a\r\nb\r\n", "a\nb\nc\n", "a\r\nb\r\nc\r\n"),
        ("a\r\nb", "a\nb\nc\n", "a\r\nb\r\nc\r\n"),
        ("a\r\nb\r\n", "a\nb", "a\r\nb"),
        ("a\r\nb\nc\rd\n", "a\nb\nc\nD\n", "a\r\nb\nc\rD\n"),
        ("a\r\nb\nc\n", "x\na\nb\ny\nc\n", "x\r\na\r\nb\ny\nc\n"),
        ("a\r\nb\nc\n", "b\nc\n", "b\nc\n"),
        ("a\r\nb\n", "a\r\nc\r\n", "a\r\nc\r\n"),
        ("\u{FEFF}a\r\né\r\n", "\u{FEFF}a\nè\n", "\u{FEFF}a\r\nè\r\n"),
        ("a", "b", "b"),
        ("\r\n", "\n\n", "\r\n\r\n"),
    ];
    assert_eq!(cases.len(), 14);
    for (before, edited, after) in cases {
        let edits = source_edits(before, edited);
        let bytes = apply(before.as_bytes(), &edits).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), after, "{before:?} as {edited:?}: {edits:?}");
    }
    // What did not change is in no edit.
    let edits = source_edits("one\r\ntwo\r\nthree\r\nfour\r\n", "one\n2\nthree\nfour!\n");
    let removed: Vec<(usize, usize)> = edits.iter().map(|edit| (edit.span.start, edit.span.end)).collect();
    assert_eq!(removed, [(5, 8), (21, 21)], "{edits:?}");
    assert!(source_edits("a\r\nb\r\n", "a\nb\n").is_empty());
}

#[test]
fn a_task_has_the_day_that_its_text_names() {
    let cases = [
        ("pay the rent 📅 2026-11-30", Some("2026-11-30")),
        ("pay 📅2026-11-30 🔁 every month", Some("2026-11-30")),
        ("pay 🗓\u{FE0F} 2026-11-30", Some("2026-11-30")),
        ("pay [due:: 2026-11-30]", Some("2026-11-30")),
        ("pay (Due::2026-11-30) soon", Some("2026-11-30")),
        ("pay due:: 2026-11-30T10:00", Some("2026-11-30")),
        ("pay [overdue:: 2026-11-30]", None),
        ("pay [due:: tomorrow] 📅 2026-02-31", None),
        ("pay 📅 2026-11-300", None),
        ("pay 2026-11-30", None),
        ("due", None),
    ];
    assert_eq!(cases.len(), 11);
    for (text, day) in cases {
        assert_eq!(due_day(text).as_deref(), day, "{text}");
    }
}

#[test]
fn the_source_of_a_note_is_shown_then_written() {
    let vault = TestVault::new(&[
        ("A.md", "---\nstatus: open\n---\r\n# A\r\n\r\nOld [[B]].\r\n"),
        ("B.md", "b\n"),
        ("D/C.md", "c\n"),
    ]);
    let page = Page::start(&vault, &[]);
    let note = page.read("note?name=A");
    let text =
        "---\nstatus: done\n---\n# A\n\nNew ![[C]] [[B]] and [[Nothing]], [c](D/C.md).\n\n- [ ] do it\n";
    let shown = page.post("preview", &json!({"name": "A", "text": text})).json();
    let html = shown["html"].as_str().unwrap();
    for part in [
        "<a class=\"internal\" href=\"/note/B.md\" data-path=\"B.md\">B</a>",
        "<a class=\"internal unresolved\" data-link=\"Nothing\">Nothing</a>",
        "<div class=\"embed\" data-path=\"D/C.md\">",
        "<a class=\"internal\" href=\"/note/D/C.md\" data-path=\"D/C.md\">c</a>",
        "<li class=\"task\"",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert_eq!(shown["properties"][0]["value"], "done");
    let hostile = page
        .post("preview", &json!({"name": "A", "text": "<img src=x onerror=hit()> [x](javascript:hit())\n"}));
    assert!(
        !hostile.text().contains("onerror") && !hostile.text().contains("href=\\\"javascript"),
        "{}",
        hostile.text()
    );
    assert_eq!(vault.read("A.md"), "---\nstatus: open\n---\r\n# A\r\n\r\nOld [[B]].\r\n");

    let body = json!({"name": "A", "hash": note["hash"], "text": text});
    let mut dry = body.clone();
    dry["dry_run"] = json!(true);
    let plan = page.post("actions/write", &dry).json();
    assert_eq!(plan["applied"], false);
    assert!(plan["diff"].as_str().unwrap().contains("+status: done"), "{plan}");
    let refused = page.post("actions/write", &json!({"name": "A", "text": text}));
    assert_eq!((refused.status, refused.json()["error"]["message"].clone()), (400, json!("hash is missing")));
    let done = page.post("actions/write", &body).json();
    assert_eq!(done["applied"], true, "{done}");
    let after = "---\nstatus: done\n---\r\n# A\r\n\r\nNew ![[C]] [[B]] and [[Nothing]], [c](D/C.md).\r\n\r\n- [ ] do it\r\n";
    assert_eq!(vault.read("A.md"), after);
    // The text that was edited is not that of the note any more.
    let conflict = page.post("actions/write", &body);
    assert_eq!(conflict.status, 409, "{}", conflict.text());
    assert_eq!(conflict.json()["error"]["files"][0]["text"], after);
    // An edit that was made between is taken over where it does not overlap.
    vault.write("A.md", format!("{after}\r\nAn outside line.\r\n"));
    let undone = page.post("actions/undo", &json!({"id": done["id"]}));
    assert_eq!(undone.status, 200, "{}", undone.text());
    let now = vault.read("A.md");
    assert!(
        now.contains("status: open") && now.contains("Old [[B]].") && now.ends_with("An outside line.\r\n"),
        "{now}"
    );
}

#[test]
fn private_text_that_a_person_writes_stays() {
    let vault = TestVault::new(&[("A.md", "one <private>mine</private>\n")]);
    let page = Page::start(&vault, &[]);
    let hash = page.read("note?name=A")["hash"].clone();
    let text = "two <private>mine</private>\n";
    page.post("actions/write", &json!({"name": "A", "hash": hash, "text": text}));
    assert_eq!(vault.read("A.md"), text);
}

#[test]
fn a_source_is_refused_where_it_cannot_be_written() {
    let vault = TestVault::new(&[("A.md", "text\n"), ("Board.canvas", "{}")]);
    std::fs::write(vault.root().join("Latin.md"), b"caf\xe9\n").unwrap();
    let page = Page::start(&vault, &[]);
    for name in ["Board.canvas", "Latin"] {
        let hash = page.read(&format!("note?name={name}"))["hash"].clone();
        let refused =
            page.post("actions/write", &json!({"name": name, "hash": hash, "text": "x", "dry_run": true}));
        assert_eq!(refused.status, 400, "{name}: {}", refused.text());
    }
    assert_eq!(page.post("preview", &json!({"name": "Board.canvas", "text": ""})).status, 400);
    page.stop();
    let page = Page::start(&vault, &["--read-only"]);
    let hash = page.read("note?name=A")["hash"].clone();
    for (action, body) in [
        ("write", json!({"name": "A", "hash": hash, "text": "x"})),
        ("move", json!({"name": "A", "to": "B.md"})),
        ("daily", json!({})),
        ("create", json!({"name": "B"})),
        ("undo-session", json!({"session": "s"})),
    ] {
        let refused = page.post(&format!("actions/{action}"), &body);
        assert_eq!(
            (refused.status, refused.json()["error"]["kind"].clone()),
            (403, json!("read-only")),
            "{action}"
        );
    }
    assert_eq!(vault.read("A.md"), "text\n");
}

#[test]
fn a_note_is_made_from_a_template_and_moved_with_its_links() {
    let vault = TestVault::new(&[
        (".obsidian/templates.json", "{\"folder\": \"Templates\"}"),
        ("Templates/Meeting.md", "# {{title}}\n\nWho came?\n"),
        ("Templates/Deep/Log.md", "log\n"),
        ("A.md", "see [[Weir]] and [[Weir|the weir]]\n"),
        ("Places/Weir.md", "# Weir\n"),
    ]);
    let page = Page::start(&vault, &[]);
    let templates = page.read("templates");
    assert_eq!(templates["folder"], "Templates");
    let paths: BTreeSet<&str> = templates["templates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, BTreeSet::from(["Templates/Deep/Log.md", "Templates/Meeting.md"]));
    let made =
        page.post("actions/create", &json!({"name": "Notes/Monday", "template": "Templates/Meeting.md"}));
    assert_eq!(made.status, 200, "{}", made.text());
    assert!(
        vault.read("Notes/Monday.md").contains("# Monday\n\nWho came?"),
        "{}",
        vault.read("Notes/Monday.md")
    );
    // A taken name is refused, with the note that has it.
    let taken = page.post("actions/create", &json!({"name": "Places/Weir", "dry_run": true}));
    assert_eq!(taken.status, 409, "{}", taken.text());
    let error = &taken.json()["error"];
    assert_eq!(
        (&error["kind"], &error["taken"]),
        (&json!("exists"), &json!({"path": "Places/Weir.md", "title": "Weir"}))
    );

    let body = json!({"name": "Places/Weir.md", "to": "River/Old weir.md", "dry_run": true});
    let plan = page.post("actions/move", &body).json();
    let diff = plan["diff"].as_str().unwrap();
    assert!(diff.contains("+see [[Old weir]] and [[Old weir|the weir]]"), "{diff}");
    assert_eq!(plan["plan"]["files"].as_array().unwrap().len(), 2, "{plan}");
    assert_eq!(vault.read("A.md"), "see [[Weir]] and [[Weir|the weir]]\n");
    let body =
        json!({"name": "Places/Weir.md", "to": "River/Old weir.md", "expect_hash": plan["expect_hash"]});
    assert_eq!(page.post("actions/move", &body).json()["applied"], true);
    assert_eq!(vault.read("A.md"), "see [[Old weir]] and [[Old weir|the weir]]\n");
    let taken = page.post("actions/move", &json!({"name": "A", "to": "River/Old weir.md"}));
    assert_eq!(
        (taken.status, taken.json()["error"]["taken"]["path"].clone()),
        (409, json!("River/Old weir.md"))
    );
}

#[test]
fn a_folder_lists_what_is_in_it_a_part_at_a_time() {
    let mut files: Vec<(String, String)> =
        (0..5).map(|number| (format!("Many/note {number}.md"), format!("# Title {number}\n"))).collect();
    for path in ["a/x.md", "B/deep/er/y.md", "B/z.md", "B/pic.png", "Only/pic.png", "root.md", "Board.canvas"]
    {
        files.push((path.to_owned(), "{}\n".to_owned()));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = TestVault::new(&files);
    let page = Page::start(&vault, &[]);
    let root = page.read("folder");
    assert_eq!(
        root["folders"],
        json!([
            {"path": "a", "notes": 1, "has_folders": false},
            {"path": "B", "notes": 2, "has_folders": true},
            {"path": "Many", "notes": 5, "has_folders": false},
            {"path": "Only", "notes": 0, "has_folders": false},
        ])
    );
    assert_eq!((&root["own"], &root["total"]), (&json!(2), &json!(10)));
    assert_eq!(root["notes"][0], json!({"path": "Board.canvas", "title": "Board"}));
    let inner = page.read("folder?path=B");
    assert_eq!(inner["folders"], json!([{"path": "B/deep", "notes": 1, "has_folders": true}]));
    assert_eq!(inner["notes"], json!([{"path": "B/z.md", "title": "z"}]));
    let part = page.read("folder?path=Many&skip=1&limit=2");
    assert_eq!(part["own"], 5);
    assert_eq!(
        part["notes"],
        json!([{"path": "Many/note 1.md", "title": "Title 1"}, {"path": "Many/note 2.md", "title": "Title 2"}])
    );
    assert_eq!(page.get("/api/v1/folder?path=Nowhere").status, 404);
}

#[test]
fn tasks_are_listed_open_and_soonest_first() {
    let vault = TestVault::new(&[
        ("A/one.md", "# One\n- [ ] later 📅 2026-12-24\n- [x] gone 📅 2026-01-01\n- [ ] plain\n"),
        ("B.md", "- [ ] late [due:: 2026-11-20]\n- [/] half\n- [ ] now 📅 2026-11-21\n"),
    ]);
    let page = Page::start(&vault, &[]);
    let texts = |query: &str| {
        let reply = page.read(&format!("tasks?{query}"));
        let tasks = reply["tasks"].as_array().unwrap().iter();
        tasks.map(|task| task["text"].as_str().unwrap()[..4].to_owned()).collect::<Vec<_>>()
    };
    let reply = page.read("tasks");
    let counts = ["total", "open", "done", "overdue"].map(|name| reply[name].as_u64().unwrap());
    assert_eq!(counts, [6, 4, 2, 1]);
    assert_eq!(reply["statuses"], json!({" ": 4, "/": 1, "x": 1}));
    assert_eq!(reply["folders"], json!({"": 2, "A": 2}));
    assert_eq!(reply["today"], "2026-11-21");
    assert_eq!(reply["tasks"][0]["title"], "B");
    for (query, wanted) in [
        ("", vec!["late", "now ", "late", "plai", "gone", "half"]),
        ("done=0", vec!["late", "now ", "late", "plai"]),
        ("done=1", vec!["gone", "half"]),
        ("status=/", vec!["half"]),
        ("folder=A", vec!["late", "plai", "gone"]),
        ("done=0&due=overdue", vec!["late"]),
        ("done=0&due=today", vec!["now "]),
        ("done=0&due=week", vec!["now "]),
        ("done=0&due=some", vec!["late", "now ", "late"]),
        ("done=0&due=none", vec!["plai"]),
        ("q=PLAIN", vec!["plai"]),
        ("skip=1&limit=2", vec!["now ", "late"]),
    ] {
        assert_eq!(texts(query), wanted, "{query}");
    }
    assert_eq!(page.get("/api/v1/tasks?due=never").status, 400);
    // They are those of the command.
    let output = vault.run(&["tasks", "--json"]);
    let printed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(printed.as_array().unwrap().len(), 6);
    assert_eq!(printed[0]["due"], "2026-12-24");
    assert_eq!(printed[2].get("due"), None);
}

#[test]
fn a_day_has_its_note_its_changes_and_its_tasks() {
    let vault = TestVault::new(&[
        (".obsidian/daily-notes.json", "{\"folder\": \"Days\", \"template\": \"T\"}"),
        ("T.md", "---\ncreated: 2020-01-01\nupdated: 2020-01-01\n---\n# {{title}} on {{date:YYYY}}\n"),
        ("New.md", "---\ncreated: 2026-11-19\nupdated: 2026-11-19\n---\n- [ ] do 📅 2026-11-19\n"),
        ("Old.md", "---\ncreated: 2025-01-01\nupdated: 2026-11-19T10:00:00\n---\n- [ ] next 📅 2026-11-22\n"),
    ]);
    let page = Page::start(&vault, &[]);
    let day = page.read("day?day=2026-11-19");
    let paths = |list: &Value| -> Vec<String> {
        let notes = list["notes"].as_array().unwrap().iter();
        notes.map(|note| note["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (&day["previous"], &day["next"], &day["today"]),
        (&json!("2026-11-18"), &json!("2026-11-20"), &json!("2026-11-21"))
    );
    assert_eq!(day["daily"], json!({"path": "Days/2026-11-19.md", "title": null}));
    assert_eq!(paths(&day["created"]), ["New.md"]);
    assert_eq!(paths(&day["changed"]), ["Old.md"]);
    assert_eq!(day["tasks"]["tasks"][0]["path"], "New.md");
    // Of today, tasks are given that were due before.
    let today = page.read("day");
    assert_eq!((&today["day"], &today["tasks"]["total"]), (&json!("2026-11-21"), &json!(1)));
    assert_eq!(page.read("day?day=2026-11-22")["tasks"]["tasks"][0]["path"], "Old.md");
    for wrong in ["soon", "2026-02-31", "2026-11"] {
        assert_eq!(page.get(&format!("/api/v1/day?day={wrong}")).status, 400, "{wrong}");
    }
    let made = page.post("actions/daily", &json!({"day": "2026-11-19"}));
    assert_eq!(made.status, 200, "{}", made.text());
    let text = vault.read("Days/2026-11-19.md");
    assert!(text.contains("# 2026-11-19 on 2026\n"), "{text}");
    assert_eq!(page.read("day?day=2026-11-19")["daily"]["title"], "2026-11-19 on 2026");
    page.post("actions/daily", &json!({}));
    assert!(vault.read("Days/2026-11-21.md").contains("# 2026-11-21 on 2026\n"));
}

#[test]
fn a_session_is_undone_after_what_stays_is_named() {
    let vault = TestVault::new(&[("A.md", "a\n"), ("B.md", "b\n"), ("C.md", "c\n")]);
    for (session, args) in [
        ("one", ["append", "A", "first"]),
        ("two", ["append", "B", "other"]),
        ("one", ["append", "A", "second"]),
        ("one", ["append", "C", "third"]),
    ] {
        run(&vault, "2026-11-21T08:00:00Z", &[&["--session", session], args.as_slice()].concat());
    }
    // What another program wrote over cannot be taken back.
    vault.write("C.md", "all of it is new\n");
    let page = Page::start(&vault, &[]);
    let plan = page.post("actions/undo-session", &json!({"session": "one", "dry_run": true}));
    assert_eq!(plan.status, 200, "{}", plan.text());
    let plan = plan.json();
    let subjects = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|item| item["subject"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(subjects(&plan["session"]["operations"]), ["A.md", "A.md"], "{plan}");
    assert_eq!(subjects(&plan["session"]["stays"]), ["C.md"], "{plan}");
    let reason = plan["session"]["stays"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("C.md "), "{reason}");
    assert_eq!(vault.read("A.md"), "a\n\nfirst\n\nsecond\n");
    let without = page.post("actions/undo-session", &json!({"session": "one"}));
    assert_eq!((without.status, vault.read("A.md")), (400, "a\n\nfirst\n\nsecond\n".to_owned()));
    let body = json!({"session": "one", "ids": ids_of(&plan), "expect_hash": plan["expect_hash"]});
    let done = page.post("actions/undo-session", &body);
    assert_eq!(done.status, 200, "{}", done.text());
    let done = done.json();
    assert_eq!(done["undone"], json!(["append of A.md", "append of A.md"]), "{done}");
    assert_eq!((vault.read("A.md"), vault.read("B.md")), ("a\n".to_owned(), "b\n\nother\n".to_owned()));
    assert_eq!(vault.read("C.md"), "all of it is new\n");
    let again = page.post("actions/undo-session", &body);
    assert_eq!(again.status, 409, "{}", again.text());
    let nothing = page.post("actions/undo-session", &json!({"session": "one", "dry_run": true}));
    assert_eq!(nothing.status, 404, "{}", nothing.text());
    assert_eq!(page.post("actions/undo-session", &json!({"session": "none", "dry_run": true})).status, 404);
}

/// The ids of the operations that a plan of the undo of a session lists as those to undo.
fn ids_of(plan: &Value) -> Vec<Value> {
    plan["session"]["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| operation["id"].clone())
        .collect()
}

/// A change between the plan of the undo of a session and the undo: what it does, the status, what the reply says, and A, B
/// and C then.
type Between = (fn(&TestVault), u16, &'static str, [&'static str; 3]);

#[test]
fn the_undo_of_a_session_takes_back_what_was_shown_alone() {
    let after = ["a\n\none\n", "b\n\ntwo\n", "c\n\nthree\n"];
    let cases: [Between; 5] = [
        (|_| {}, 200, "append of B.md", ["a\n", "b\n", "rewritten\n"]),
        // What stood in the way of C is gone, but it was shown as what stays.
        (|vault| vault.write("C.md", "c\n\nthree\n"), 200, "append of B.md", ["a\n", "b\n", after[2]]),
        // The first plan is another one.
        (
            |vault| vault.write("B.md", "b\n\ntwo\n\nby hand\n"),
            409,
            "changed since the change was shown; nothing was written",
            [after[0], "b\n\ntwo\n\nby hand\n", "rewritten\n"],
        ),
        // A later one is hindered.
        (
            |vault| vault.write("A.md", "by hand\n"),
            409,
            "undone before it, and stays so: append of B.md",
            ["by hand\n", "b\n", "rewritten\n"],
        ),
        // What the session did meanwhile was not shown.
        (
            |vault| {
                run(vault, "2026-11-21T09:00:00Z", &["--session", "s", "append", "D", "new"]);
            },
            200,
            "append of A.md",
            ["a\n", "b\n", "rewritten\n"],
        ),
    ];
    assert_eq!(cases.len(), 5);
    for (number, (between, status, says, texts)) in cases.into_iter().enumerate() {
        let files = [("A.md", "a\n"), ("B.md", "b\n"), ("C.md", "c\n"), ("D.md", "d\n")];
        let vault = TestVault::new(&files);
        for args in [["append", "C", "three"], ["append", "A", "one"], ["append", "B", "two"]] {
            run(&vault, "2026-11-21T08:00:00Z", &[&["--session", "s"], args.as_slice()].concat());
        }
        vault.write("C.md", "rewritten\n");
        let page = Page::start(&vault, &[]);
        let plan = page.post("actions/undo-session", &json!({"session": "s", "dry_run": true})).json();
        let ids = ids_of(&plan);
        assert_eq!(ids.len(), 2, "{plan}");
        between(&vault);
        let d = vault.read("D.md");
        let body = json!({"session": "s", "ids": ids, "expect_hash": plan["expect_hash"]});
        let done = page.post("actions/undo-session", &body);
        assert_eq!(done.status, status, "{number}: {}", done.text());
        assert!(done.text().contains(says), "{number}: {}", done.text());
        assert_eq!(["A.md", "B.md", "C.md"].map(|path| vault.read(path)), texts, "{number}");
        assert_eq!(vault.read("D.md"), d, "{number}");
        page.stop();
    }
}

#[test]
fn a_path_names_no_other_note_with_the_same_file_name() {
    let text = "- [ ] same\n";
    let vault = TestVault::new(&[("Foo.md", text), ("x/Foo.md", text), ("x/Board.canvas", "{}")]);
    let page = Page::start(&vault, &[]);
    let hash = page.read("note?name=Foo.md")["hash"].clone();
    vault.remove("Foo.md");
    let before = vault.contents();
    let cases = [
        ("write", json!({"name": "Foo.md", "text": "changed\n", "hash": hash})),
        ("move", json!({"name": "Foo.md", "to": "Bar.md"})),
        ("task", json!({"name": "Foo.md", "line": 1, "status": "x", "hash": hash})),
        ("task", json!({"name": "y/Foo", "line": 1, "status": "x"})),
        ("set", json!({"name": "Foo.md", "property": "p", "value": 1})),
        ("pin", json!({"name": "Foo.md"})),
        ("forget", json!({"name": "Foo.md", "hard": true})),
        ("vote", json!({"name": "Foo.md", "useful": true})),
        ("move", json!({"name": "Board.canvas", "to": "Bar.canvas"})),
    ];
    assert_eq!(cases.len(), 9);
    for (action, body) in cases {
        let refused = page.post(&format!("actions/{action}"), &body);
        assert_eq!(refused.status, 404, "{action} {body}: {}", refused.text());
        assert_eq!(vault.contents(), before, "{action} {body}");
    }
    // A name that is no path still means the note.
    let done = page.post("actions/write", &json!({"name": "Foo", "text": "changed\n", "hash": hash}));
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(vault.read("x/Foo.md"), "changed\n");
}

#[test]
fn a_reply_with_paths_has_the_titles_of_its_notes() {
    let vault = TestVault::new(&[
        ("A.md", "# The first\n\n[[B]] [[C]] [[Nowhere]]\n"),
        ("B.md", "# The second\n\n[[A]]\n\nworks_at:: [[A]]\n"),
        ("C.md", "The first is named here.\n"),
    ]);
    run(&vault, "2026-11-21T08:00:00Z", &["append", "B", "more"]);
    let page = Page::start(&vault, &[]);
    let all = json!({"A.md": "The first", "B.md": "The second", "C.md": "C"});
    assert_eq!(page.read("links?name=A")["titles"], all);
    assert_eq!(page.read("relations?name=B")["titles"], json!({"A.md": "The first", "B.md": "The second"}));
    assert_eq!(page.read("mentions?name=A")["titles"]["C.md"], "C");
    assert_eq!(page.read("activity")["titles"], json!({"B.md": "The second"}));
}

#[test]
fn the_list_of_all_tasks_follows_the_files_without_reading_them() {
    let files: Vec<(String, String)> =
        (0..40).map(|number| (format!("note {number:02}.md"), format!("- [ ] task {number}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = TestVault::new(&files);
    let store = vault.store();
    let listed = || -> Vec<String> {
        store.index().refresh().unwrap();
        let tasks = store.reads().tasks(&TasksRequest::default()).unwrap();
        tasks.iter().map(|task| format!("{}:{} {}", task.path, task.line, task.text)).collect()
    };
    assert_eq!(listed().len(), 40);
    vault.write("note 07.md", "no task, and another length\n");
    vault.write("a new one.md", "Two of them:\n\n- [ ] fresh\n    - [x] nested\n");
    vault.remove("note 09.md");
    vault.rename("note 11.md", "Moved.md");
    let second = listed();
    assert_eq!(second.len(), 40);
    let of_others = second.iter().filter(|task| !task.starts_with("note")).map(String::as_str);
    assert_eq!(
        of_others.collect::<Vec<_>>(),
        ["Moved.md:1 task 11", "a new one.md:3 fresh", "a new one.md:4 nested"]
    );
    let of_note =
        TasksRequest { note: Some("a new one".to_owned()), done: Some(true), ..TasksRequest::default() };
    assert_eq!(store.reads().tasks(&of_note).unwrap().len(), 1);
}
