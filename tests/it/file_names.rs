//! Names and texts that systems treat differently: letters in two normal forms, names that differ in case, paths of more
//! than 260 characters, lines that end in CRLF.

use std::collections::BTreeSet;

use proptest::prelude::{Just, prop, prop_assert_eq, prop_oneof, proptest};
use sidenote::markdown::path::{MAX_SEGMENTS, NotePath, is_segment, is_too_deep};

use crate::support::{TestVault, json, paths, run, stderr, text_of, tree};

const NOW: &str = "2026-11-21";

/// The folder of a path of more than 700 characters; no component has more than 255 bytes.
fn long_folder() -> String {
    ["first", "second", "third"].map(|name| format!("{name} {}", "long ".repeat(48).trim_end())).join("/")
}

/// Makes a vault whose note `crlf.md` links to all others.
fn vault() -> (TestVault, String) {
    let long = format!("{}/far.md", long_folder());
    let vault = TestVault::new(&[
        ("Über den Fluß.md", "composed heron\n"),
        ("Cafe\u{301}.md", "decomposed otter\n"),
        ("日本語 🚣.md", "eastern marten\n"),
        ("a.b & c's (d).md", "punctuated badger\n"),
        ("d/Boat.md", "upper varnish\n"),
        ("e/boat.md", "lower varnish\n"),
        (&long, "distant okapi\r\n"),
    ]);
    assert!(long.len() > 700 && vault.root().join(&long).is_file());
    let links = [
        "[[Über den Fluß]]",
        "[[U\u{308}ber den Fluß|again]]",
        "[[Caf\u{e9}]]",
        "[[日本語 🚣]]",
        "[[a.b & c's (d)]]",
        "[[d/boat]]",
        "[boat](e/boat.md)",
        "[[far]]",
    ];
    let body = format!("# Lines\r\n\r\n{}\r\n\r\n- giraffe\r\n", links.join("\r\n"));
    vault.write("crlf.md", format!("---\r\ntags: [zebra]\r\nup: \"[[far]]\"\r\n---\r\n{body}"));
    (vault, long)
}

/// Says what each link of a note leads to, by the index.
#[track_caller]
fn targets(vault: &TestVault, note: &str) -> Vec<String> {
    let reply = json(vault, NOW, &["links", note]);
    assert_eq!(reply["unresolved"].as_array().unwrap().len(), 0, "{reply:#}");
    let links = reply["outgoing"].as_array().unwrap();
    links.iter().map(|link| link["resolved"].as_str().unwrap().to_owned()).collect()
}

/// Gives the paths that the index lists.
fn listed(vault: &TestVault) -> BTreeSet<String> {
    let notes = json(vault, NOW, &["list", "--limit", "100"]);
    notes.as_array().unwrap().iter().map(|note| note["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn notes_of_unusual_names_are_listed_found_and_linked() {
    let (vault, long) = vault();
    let names: BTreeSet<String> = tree(vault.root()).into_keys().collect();
    assert_eq!((names.len(), listed(&vault)), (8, names));
    let store = vault.store();
    for (word, path) in [
        ("heron", "Über den Fluß.md"),
        ("otter", "Cafe\u{301}.md"),
        ("marten", "日本語 🚣.md"),
        ("badger", "a.b & c's (d).md"),
        ("okapi", long.as_str()),
        ("giraffe", "crlf.md"),
        ("tag:#zebra", "crlf.md"),
    ] {
        assert_eq!(paths(&store, word), [path], "{word}");
    }
    drop(store);
    assert_eq!(
        targets(&vault, "crlf.md"),
        [
            long.as_str(),
            "Über den Fluß.md",
            "Über den Fluß.md",
            "Cafe\u{301}.md",
            "日本語 🚣.md",
            "a.b & c's (d).md",
            "d/Boat.md",
            "e/boat.md",
            long.as_str(),
        ]
    );
}

#[test]
fn notes_of_unusual_names_move_with_their_links_and_come_back() {
    type Step<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);
    let (vault, long) = vault();
    let before = tree(vault.root());
    let text = text_of(&vault, "crlf.md");
    let near = format!("{}/near.md", long_folder());
    let steps: &[Step<'_>] = &[
        (&long, &near, &[("[[far]]", "[[near]]")]),
        ("Cafe\u{301}.md", "Tee.md", &[("[[Caf\u{e9}]]", "[[Tee]]")]),
        (
            "Über den Fluß.md",
            "d/Brücke.md",
            &[("[[Über den Fluß]]", "[[Brücke]]"), ("[[U\u{308}ber den Fluß|", "[[Brücke|")],
        ),
        ("e/boat.md", "e/BOAT.md", &[("[boat](e/boat.md)", "[BOAT](e/BOAT.md)")]),
    ];
    for (from, to, links) in steps {
        run(&vault, NOW, &["move", from, to]);
        let expected = links.iter().fold(text.clone(), |text, (old, new)| text.replace(old, new));
        assert_eq!(text_of(&vault, "crlf.md"), expected, "{from}");
        let now = listed(&vault);
        assert!(now.contains(*to) && !now.contains(*from) && now.len() == before.len(), "{now:?}");
        assert_eq!(now, tree(vault.root()).into_keys().collect(), "{from}");
        run(&vault, NOW, &["undo"]);
        assert!(tree(vault.root()) == before, "undoing the move of {from} leaves other bytes");
    }
    assert_eq!(steps.len(), 4);
}

/// Windows and macOS have one of two names that differ only in case, most systems of Linux both.
#[test]
fn names_that_differ_only_in_case_are_as_many_notes_as_files() {
    let vault = TestVault::new(&[("Heron.md", "first\n"), ("heron.md", "second\n"), ("s.md", "[[heron]]\n")]);
    let names: BTreeSet<String> = tree(vault.root()).into_keys().collect();
    assert!(matches!(names.len(), 2 | 3), "{names:?}");
    assert_eq!(listed(&vault), names);
    assert_eq!(targets(&vault, "s.md"), [if names.len() == 3 { "heron.md" } else { "Heron.md" }]);
    let refused = vault.run(&["move", "s.md", "HERON.md"]);
    assert!(stderr(&refused).contains("case-collision"), "{}", stderr(&refused));
    assert_eq!(tree(vault.root()).into_keys().collect::<BTreeSet<_>>(), names);
}

#[test]
fn new_names_that_windows_does_not_allow_are_refused_on_every_system() {
    let vault = TestVault::new(&[("a.md", "a\n")]);
    let names = [
        "CON",
        "nul",
        "con.x",
        "Aux .x",
        "COM1",
        "com\u{b9}",
        "LPT0",
        "CONOUT$",
        "a<b",
        "a>b",
        "a\"b",
        "a?b",
        "a*b",
        "a|b",
        "a:b",
        "a\\b",
        "a.",
        "a ",
    ];
    for name in names {
        for path in [format!("{name}.md"), format!("{name}/b.md")] {
            let is_end = name.ends_with(['.', ' ']) && !path.contains('/');
            let done = vault.run(&["move", "a.md", &path]);
            assert!(is_end || done.status.code() == Some(2), "{path}: {}", stderr(&done));
            if is_end {
                run(&vault, NOW, &["undo"]);
            }
            assert_eq!(text_of(&vault, "a.md"), "a\n", "{path}");
        }
    }
    assert_eq!(names.len(), 18);
}

#[test]
fn a_path_is_on_disk_if_each_of_its_segments_can_be() {
    let path = prop::collection::vec(
        prop_oneof![
            Just("/".to_owned()),
            Just(".".to_owned()),
            Just("\0".to_owned()),
            Just("ä".to_owned()),
            "[a-c]{1,3}",
            Just("a/".repeat(MAX_SEGMENTS - 1)),
        ],
        0..8,
    );
    proptest!(|(parts in path)| {
        let path = parts.concat();
        let expected = !is_too_deep(&path) && path.split('/').all(is_segment);
        prop_assert_eq!(NotePath::is_on_disk(&path), expected, "{:?}", path);
    });
}
