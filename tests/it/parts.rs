//! Tests names of parts of a note: readers and writers find the same part, and refuse a name that several parts have.

use serde_json::json;
use sidenote::links::part_name::{clear_name, parts_named};
use sidenote::markdown::note::Note;
use sidenote::markdown::subpath::SubpathTarget;

use crate::mcp_client::Client;
use crate::support::{TestVault, stderr, stdout, text_of};

const NOTE: &str = "# Log\n\n## A\n\n### Done\n\nfirst\n\n### Notes\n\nof A\n\n## B\n\n### Done\n\nsecond\n\n### Notes #2\n\n\
numbered\n\n## C# x\n\nsharp ^b1\n\n## Twins\n\none\n\n## Twins\n\ntwo\n\n## Cafe\u{301}\n\ncoffee\n";

/// Names, and the line of the text below the heading that each means; none for a name that is refused.
const NAMES: [(&str, Option<&str>); 17] = [
    ("A", Some("### Done")),
    ("a", Some("### Done")),
    ("## A", Some("### Done")),
    ("#A", Some("### Done")),
    ("A#Done", Some("first")),
    ("Log#B#Done", Some("second")),
    ("B#Notes #2", Some("numbered")),
    ("Notes #2", Some("numbered")),
    ("C# x", Some("sharp ^b1")),
    ("#C x", Some("sharp ^b1")),
    ("Caf\u{e9}", Some("coffee")),
    ("Cafe\u{301}", Some("coffee")),
    ("line 27", Some("one")),
    ("line 31", Some("two")),
    ("Done", None),
    ("Twins", None),
    ("Nowhere", None),
];

fn vault() -> TestVault {
    TestVault::new(&[("Log.md", NOTE), ("T.md", "---\ntitle: \"C# and | more\"\n---\n## Done\n\ntitled\n")])
}

#[test]
fn readers_and_writers_find_the_same_part() {
    for (name, expect) in NAMES {
        let vault = vault();
        let read = vault.run(&["read", "Log", "--section", name]);
        let by_note = vault.run(&["read", &format!("Log#{}", name.trim_start_matches(['#', ' ']))]);
        let written = vault.run(&["prepend", "Log", "NEW", "--section", name]);
        match expect {
            Some(line) => {
                assert!(
                    stdout(&read).lines().any(|read| read == line),
                    "{name}: {}{}",
                    stdout(&read),
                    stderr(&read)
                );
                assert!(stdout(&by_note).contains(line), "{name}: {}{}", stdout(&by_note), stderr(&by_note));
                let text = text_of(&vault, "Log.md");
                assert!(text.contains(&format!("NEW\n\n{line}\n")), "{name}: {text}{}", stderr(&written));
            }
            None => {
                let code = if name == "Nowhere" { 3 } else { 4 };
                for done in [&read, &by_note, &written] {
                    assert_eq!(done.status.code(), Some(code), "{name}: {}", stderr(done));
                }
                assert_eq!(text_of(&vault, "Log.md"), NOTE, "{name}");
            }
        }
    }
}

#[test]
fn an_ambiguous_part_is_refused_with_names_that_are_clear() {
    let vault = vault();
    let cases = [("Done", "A#Done / B#Done"), ("Twins", "line 27 / line 31")];
    for (name, clear) in cases {
        let calls: [&[&str]; 5] = [
            &["read", "Log", "--section", name],
            &["append", "Log", "x", "--section", name],
            &["prepend", "Log", "x", "--section", name],
            &["extract", "Log", "--section", name, "--to", "Other"],
            &["rename-heading", "Log", name, "Other"],
        ];
        for args in calls {
            let done = vault.run(args);
            assert_eq!(done.status.code(), Some(4), "{args:?}: {}", stderr(&done));
            assert!(stderr(&done).contains(clear), "{args:?}: {}", stderr(&done));
        }
    }
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    for (tool, arguments) in [
        ("read_note", json!({ "note": "Log", "section": "Done" })),
        ("read_note", json!({ "note": "Log#Done" })),
        ("edit_note", json!({ "note": "Log", "action": "replace_section", "heading": "Done", "text": "x" })),
        ("edit_note", json!({ "note": "Log", "action": "append", "heading": "Done", "text": "x" })),
        ("extract_section", json!({ "note": "Log", "section": "Done", "title": "Other" })),
        ("rename_part", json!({ "kind": "heading", "note": "Log", "old": "Done", "new": "Other" })),
    ] {
        let reply = client.refusal(tool, arguments);
        assert!(reply.contains("A#Done / B#Done"), "{tool}: {reply}");
    }
    client.finish();
    assert_eq!(text_of(&vault, "Log.md"), NOTE);
    // A link is not ambiguous: it means the first heading with the name.
    assert!(stdout(&vault.run(&["read", "[[Log#Done]]"])).contains("first"));
    assert!(stdout(&vault.run(&["read", "Log#^b1"])).contains("sharp"));
    let refused = vault.run(&["append", "Log", "x", "--section", "^b1"]);
    assert!(stderr(&refused).contains("is no heading"), "{}", stderr(&refused));
}

#[test]
fn a_title_may_have_the_signs_of_links() {
    let vault = vault();
    let names = [
        "C# and | more",
        "[[C# and | more]]",
        "C# and | more#Done",
        "[[C# and | more#Done]]",
        "[[T#Done|shown]]",
    ];
    for name in names {
        let done = vault.run(&["read", name]);
        assert!(stdout(&done).contains("titled"), "{name}: {}", stderr(&done));
    }
    for name in &names[..2] {
        assert!(vault.run(&["append", name, "more"]).status.success(), "{name}");
        assert!(vault.run(&["links", name]).status.success(), "{name}");
    }
}

#[test]
fn every_heading_has_a_clear_name() {
    let deep = "# a\n## b\n### c\n# a\n## b\n### c\n#### c\n# a#b\n## #2\n# ^x\n";
    for text in [NOTE, deep, "# x\n# x\n", "## \n# y\n"] {
        let note = Note::parse(text);
        for at in 0..note.headings.len() {
            let name = clear_name(&note, at);
            assert_eq!(parts_named(&note, &name), [SubpathTarget::Heading(at)], "{name:?} of {text:?}");
        }
    }
}
