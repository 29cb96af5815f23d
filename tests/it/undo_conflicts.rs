//! Tests what a refused undo names: the later operations that have to be undone first, or a change outside sidenote; and what
//! an operation wrote, after the note was renamed, changed and deleted.

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, json, run, stderr};
use crate::web::Page;

const NOW: &str = "2026-11-21";

/// One change of the vault.
#[derive(Clone, Copy)]
enum Step {
    /// A command of sidenote.
    Run(&'static [&'static str]),
    /// Another program writes a file.
    Write(&'static str, &'static str),
    /// Another program removes a file.
    Remove(&'static str),
}
use Step::{Remove, Run, Write};

/// Carries out steps, and gives the id of the operation of each, empty for those of other programs.
fn ids_of(vault: &TestVault, steps: &[Step]) -> Vec<String> {
    let one = |step: &Step| match step {
        Run(args) => {
            run(vault, NOW, args);
            json(vault, NOW, &["history", "-n", "1"])[0]["id"].as_str().unwrap().to_owned()
        }
        Write(path, text) => {
            vault.write(path, text);
            String::new()
        }
        Remove(path) => {
            vault.remove(path);
            String::new()
        }
    };
    steps.iter().map(one).collect()
}

/// What stands in the way of the undo of the first operation.
struct Case {
    steps: &'static [Step],
    /// The numbers of the later steps that are named, the newest first.
    later: &'static [usize],
    /// Words of the message.
    says: &'static [&'static str],
}

#[track_caller]
fn check_named(case: &Case) {
    let vault = TestVault::new(&[("a.md", "One.\n\nTwo.\n\nThree.\n"), ("b.md", "See [[a]].\n")]);
    let ids = ids_of(&vault, case.steps);
    let before = vault.contents();
    let refused = vault.run(&["undo", &ids[0]]);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(5), "{said}");
    assert_eq!(vault.contents(), before);
    for words in case.says {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    let is_outside = case.says.iter().any(|words| words.contains("outside"));
    assert_eq!(said.contains("outside sidenote"), is_outside, "{said}");
    assert_eq!(said.contains("changed-on-disk"), is_outside, "{said}");
    // Each is named with its time, in the order in which they are undone.
    let named: Vec<usize> = said
        .match_indices(", 2026-11-21T")
        .map(|(at, _)| ids.iter().position(|id| said[..at].ends_with(id.as_str()) && !id.is_empty()).unwrap())
        .collect();
    assert_eq!(named, case.later, "{said}");
    if case.later.is_empty() || is_outside {
        return;
    }
    // What the hint says is done: afterwards the operation can be undone.
    for id in case.later.iter().map(|number| &ids[*number]).chain([&ids[0]]) {
        assert!(said.contains(&format!("sidenote undo {id}")), "{said}");
        let undone = vault.run(&["undo", id]);
        assert!(undone.status.success(), "{id}: {}", stderr(&undone));
    }
}

#[test]
fn later_operations_in_the_way_of_an_undo_are_named() {
    const APPEND: Step = Run(&["append", "a", "Four."]);
    let cases = [
        // One changed the line, the others are elsewhere.
        Case {
            steps: &[
                APPEND,
                Run(&["prepend", "a", "Zero."]),
                Run(&["replace", "a", "--old", "Four.", "--new", "Five."]),
                Run(&["replace", "a", "--old", "Two.", "--new", "2."]),
            ],
            later: &[2],
            says: &["a.md was changed by a later operation, where this operation wrote"],
        },
        // The second has to be undone before the first.
        Case {
            steps: &[
                APPEND,
                Run(&["replace", "a", "--old", "Four.", "--new", "Five."]),
                Run(&["replace", "a", "--old", "Five.", "--new", "Six."]),
                Run(&["rename", "a", "c"]),
            ],
            later: &[2, 1],
            says: &["in the way, the newest first: replace of a.md", "undo those operations first"],
        },
        // What was undone already is not in the way.
        Case {
            steps: &[
                APPEND,
                Run(&["replace", "a", "--old", "Four.", "--new", "Five."]),
                Run(&["undo"]),
                Run(&["replace", "a", "--old", "Four.", "--new", "4."]),
            ],
            later: &[3],
            says: &["undo that operation first"],
        },
        Case {
            steps: &[
                APPEND,
                Run(&["replace", "a", "--old", "Four.", "--new", "Five."]),
                Write("a.md", "Other.\n"),
            ],
            later: &[1],
            says: &["by a later operation and outside sidenote"],
        },
        Case {
            steps: &[APPEND, Write("a.md", "Other.\n"), Run(&["append", "a", "More."])],
            later: &[],
            says: &["a.md was changed outside sidenote, where this operation wrote"],
        },
        Case {
            steps: &[
                Run(&["new", "N", "--content", "text"]),
                Run(&["append", "N", "more"]),
                Run(&["rename", "N", "M"]),
            ],
            later: &[1],
            says: &["N.md is new and was changed by a later operation"],
        },
        Case {
            steps: &[Run(&["new", "N", "--content", "text"]), Write("N.md", "other\n")],
            later: &[],
            says: &["N.md is new and was changed outside sidenote"],
        },
        Case {
            steps: &[
                Run(&["move", "a", "c"]),
                Run(&["move", "c", "d"]),
                Run(&["append", "d", "x"]),
                Run(&["move", "d", "e"]),
            ],
            later: &[3, 1],
            says: &["c.md was moved on to e.md by 2 later operations"],
        },
        Case {
            steps: &[Run(&["move", "a", "c"]), Run(&["new", "a", "--content", "another"])],
            later: &[1],
            says: &["where another file is now, put there by a later operation"],
        },
        Case {
            steps: &[Run(&["move", "a", "c"]), Write("a.md", "another\n")],
            later: &[],
            says: &["where another file is now, put there outside sidenote"],
        },
        Case {
            steps: &[APPEND, Run(&["delete", "a"])],
            later: &[1],
            says: &["a.md was deleted by a later operation, and is .trash/a.md now"],
        },
        Case {
            steps: &[Run(&["delete", "a"]), Run(&["restore", "a"])],
            later: &[1],
            says: &["where another file is now, put there by a later operation"],
        },
        Case {
            steps: &[Run(&["delete", "a"]), Run(&["restore", "a"]), Run(&["rename", "a", "c"])],
            later: &[2, 1],
            says: &["is gone from the trash: it was taken from there by 2 later operations"],
        },
        Case {
            steps: &[APPEND, Remove("a.md")],
            later: &[],
            says: &["a.md is gone: it was removed outside sidenote"],
        },
    ];
    cases.iter().for_each(check_named);
    assert_eq!(cases.len(), 14);
}

#[test]
fn an_operation_that_cannot_be_undone_itself_is_no_way_out() {
    let vault = TestVault::new(&[("a.md", "One.\n")]);
    let ids = ids_of(&vault, &[Run(&["append", "a", "Two."]), Run(&["delete", "a", "--permanent", "--yes"])]);
    let refused = stderr(&vault.run(&["undo", &ids[0]]));
    assert!(refused.contains("a.md is gone: it was removed by a later operation"), "{refused}");
    assert!(refused.contains(&ids[1]) && !refused.contains("first: sidenote undo"), "{refused}");
}

#[test]
fn an_operation_that_was_undone_is_said_to_be() {
    let vault = TestVault::new(&[("a.md", "One.\n")]);
    let ids = ids_of(&vault, &[Run(&["append", "a", "Two."]), Run(&["undo"])]);
    let refused = vault.run(&["undo", &ids[0]]);
    let said = stderr(&refused);
    assert!(said.contains("append of a.md was undone already, at 2026-11-21T"), "{said}");
    assert!(said.contains(&format!("sidenote undo {}", ids[1])), "{said}");
    // Done again and undone once more, it is the newest undo that counts.
    ids_of(&vault, &[Run(&["redo"])]);
    assert!(vault.run(&["undo", &ids[0]]).status.success());
    assert_eq!(vault.read("a.md"), "One.\n");
}

#[test]
fn agents_and_the_page_are_told_what_to_undo_first() {
    let vault = TestVault::new(&[("a.md", "One.\n")]);
    let first = ids_of(&vault, &[Run(&["append", "a", "Two."])]).remove(0);
    let mut client = Client::start(&vault, &[]);
    client.text("edit_note", json!({ "note": "a", "action": "replace", "old": "Two.", "text": "2." }));
    let later = json(&vault, NOW, &["history", "-n", "1"])[0]["id"].as_str().unwrap().to_owned();
    let refusal = client.refusal("session", json!({ "action": "undo", "operation": first }));
    for words in [later.as_str(), "edit_note (notes)", "undo that operation first", "give session the id"] {
        assert!(refusal.contains(words), "no {words:?} in {refusal}");
    }
    assert!(!refusal.contains("sidenote undo"), "{refusal}");
    let page = Page::start(&vault, &[]);
    let undo = page.read(&format!("operations/{first}"))["undo"].clone();
    assert_eq!(undo["possible"], false);
    assert_eq!(
        undo["files"][0],
        json!(["a.md", "was changed by a later operation, where this operation wrote"])
    );
    assert_eq!(undo["hint"], "Undo that operation first.");
    let named = &undo["later"][0];
    assert_eq!((&named["id"], &named["undoable"]), (&json!(later), &json!(true)), "{undo}");
    assert_eq!((&named["op"], &named["tool"]), (&json!("replace"), &json!("edit_note (notes)")), "{undo}");
    assert!(named["by"].is_string() && named["at"].is_string(), "{undo}");
}

/// Gives what the page shows of an operation.
fn shown(page: &Page, id: &str) -> Value {
    page.read(&format!("operations/{id}"))
}

#[test]
fn what_an_operation_wrote_is_shown_after_later_changes() {
    let cases: [&[Step]; 5] = [
        &[],
        &[Run(&["rename", "N", "M"])],
        &[Run(&["append", "N", "more"]), Run(&["rename", "N", "M"])],
        &[Run(&["rename", "N", "M"]), Run(&["append", "M", "more"]), Write("M.md", "other\n")],
        &[Run(&["delete", "N"])],
    ];
    for later in cases {
        let vault = TestVault::new(&[]);
        let first = ids_of(&vault, &[Run(&["new", "N", "--content", "text"])]).remove(0);
        ids_of(&vault, later);
        let page = Page::start(&vault, &[]);
        let seen = shown(&page, &first);
        let diff = seen["diff"].as_str().unwrap();
        assert!(diff.contains("create N.md") && diff.contains("+text"), "{seen}");
        assert_eq!(seen["diff_missing"], Value::Null, "{seen}");
    }
    // The undo shows what goes, under the path that the note has now.
    let vault = TestVault::new(&[]);
    let ids = ids_of(&vault, &[Run(&["new", "N", "--content", "text"]), Run(&["rename", "N", "M"])]);
    let undo = shown(&Page::start(&vault, &[]), &ids[0])["undo"].clone();
    let diff = undo["diff"].as_str().unwrap();
    assert!(diff.contains("delete M.md") && diff.contains("-text"), "{undo}");
    assert_eq!(undo["notices"][0], "N.md was moved since: it is M.md now");
    // Where nothing has the content any more, words say so.
    let vault = TestVault::new(&[]);
    let ids = ids_of(&vault, &[Run(&["new", "N", "--content", "text"]), Write("N.md", "other\n")]);
    let seen = shown(&Page::start(&vault, &[]), &ids[0]);
    assert_eq!(seen["diff_missing"], "what the operation wrote is not known any more of N.md", "{seen}");
    assert_eq!(cases.len(), 5);
}
