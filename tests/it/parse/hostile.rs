//! Tests the parser with hostile notes: random, deeply nested and very long ones.

use std::cell::Cell;

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use sidenote::markdown::decode::decode;
use sidenote::markdown::frontmatter::link::parse_property;
use sidenote::markdown::note::Note;
use sidenote::markdown::span::Span;

use super::{check_links, checked};
use crate::support::ends;

/// A piece of syntax, or any text.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "[[", "]]", "[", "]", "(", ")", "|", "\\", "!", "#", "##", "^", "^id", " ^id", "%%", "$", "$$", "`", "``",
            "```", "~~~", "*", "**", "_", "~~", "==", "<", ">", "> ", "- ", "1. ", "- [ ] ", "[^1]", "[^1]: ", "[r]: ",
            "<!--", "-->", "<b>", "</b>", "<div>", "https://", "&amp;", "%20", "%", "\n", "\n\n", "\r\n", "\r", "    ",
            "\t", " ", "---", "===", "|a|\n|-|\n", "[!note]", "#a", "a", "b.md", "\u{feff}", "\u{e9}", "\u{a0}", "\0",
        ])
        .prop_map(str::to_owned),
        1 => any::<String>(),
        1 => Just("[[n#h|a]]".to_owned()),
        1 => Just("[t](b.md)".to_owned()),
        1 => Just(" #tag ".to_owned()),
    ]
}

#[test]
fn any_note_parses_and_its_spans_hold() {
    let (links, tags, pieces) = (Cell::new(0), Cell::new(0), Cell::new(0));
    proptest!(|(parts in prop::collection::vec(fragment(), 0..40))| {
        let text = parts.concat();
        let note = checked(&text);
        links.set(links.get() + note.links.len());
        tags.set(tags.get() + note.tags.len());
        pieces.set(pieces.get() + note.pieces.len());
        checked(&format!("---\nk: v\n---\n{text}"));
        // Nothing that follows hides a link, or changes its span.
        let led = checked(&format!("[[first#h|shown]]\n\n{text}"));
        assert_eq!((led.links[0].path.as_str(), led.links[0].span), ("first", Span::new(0, 17)), "{text:?}");
        if let Some(link) = parse_property(&text) {
            assert!(link.span.encloses(link.dest_span) && text.get(link.span.start..link.span.end).is_some());
        }
    });
    // Guards the properties above against notes in which nothing is found.
    let found = (links.get(), tags.get(), pieces.get());
    assert!(found.0 > 100 && found.1 > 20 && found.2 > 500, "{found:?}");
}

#[test]
fn any_bytes_are_decoded_to_as_many_bytes() {
    let kept = Cell::new(0);
    proptest!(|(bytes in prop::collection::vec(any::<u8>(), 0..200))| {
        let decoded = decode(&bytes);
        assert!(decoded.text.is_empty() || decoded.text.len() == bytes.len());
        kept.set(kept.get() + usize::from(!decoded.text.is_empty()));
        checked(&decoded.text);
    });
    assert!(kept.get() > 100, "only {} texts were read", kept.get());
}

#[test]
fn the_rest_of_a_comment_that_a_wikilink_overlaps_has_one_piece_a_line() {
    let text = "[[<!--]]|a|\n|-|\n-->";
    let note = checked(text);
    check_links(text, &["wiki <!-- = <!--"]);
    let pieces: Vec<&str> = note.pieces.iter().map(|piece| piece.span.of(text)).collect();
    assert_eq!(pieces, ["<!--", "|a|", "|-|", "-->"]);
}

fn nested_too_deep(text: &str) -> bool {
    checked(text).problems.iter().any(|problem| problem.code == "nested-too-deep")
}

#[test]
fn blocks_nested_too_deep_are_read_as_text() {
    let deep = 10_000;
    let mut cut = 0;
    for marker in ["> ", ">", "- ", "1. ", "> - ", "- [^f]: "] {
        let text = format!("{}[[a]]\n{}", marker.repeat(deep), "\n".repeat(deep));
        assert!(nested_too_deep(&text), "{marker:?}");
        check_links(&text, &["wiki a = a"]);
        let text = format!("{}a\r{}", marker.repeat(deep), "> a\r".repeat(deep));
        assert!(nested_too_deep(&text), "{marker:?}");
        let lines = format!("{}[[a]]\n", marker.repeat(200 / marker.len())).repeat(2);
        assert!(!nested_too_deep(&lines), "{marker:?}");
        cut += 1;
    }
    assert_eq!(cut, 6);
    for rule in ["- ", "* "] {
        assert!(!nested_too_deep(&rule.repeat(deep)));
    }
    assert!(!nested_too_deep(&format!("a|b\n{}|-\nc|d\n", "-".repeat(deep))));
}

/// Runs of one unit, and what 1,000 of them hold: links, tags, pieces, tasks, blocks with an id and footnotes.
const RUNS: &[(&str, [usize; 6])] = &[
    ("[", [0, 0, 1, 0, 0, 0]),
    ("[[", [0, 0, 1, 0, 0, 0]),
    ("[[a", [0, 0, 1, 0, 0, 0]),
    ("[[a|", [0, 0, 1, 0, 0, 0]),
    ("![", [0, 0, 1, 0, 0, 0]),
    ("[a](", [0, 0, 1, 0, 0, 0]),
    ("[a](b \"", [0, 0, 1, 0, 0, 0]),
    ("[a]: ", [0, 0, 1, 0, 0, 0]),
    ("[a]: b \"\n", [500, 0, 0, 0, 0, 0]),
    ("$", [0; 6]),
    ("$a ", [0, 0, 1, 0, 0, 0]),
    ("$$ ", [0, 0, 500, 0, 0, 0]),
    ("`", [0; 6]),
    ("`a ``b ", [0, 0, 1332, 0, 0, 0]),
    ("*a_", [0, 0, 1, 0, 0, 0]),
    ("<", [0, 0, 1, 0, 0, 0]),
    ("<a ", [0, 0, 1, 0, 0, 0]),
    ("<!--", [0; 6]),
    ("%%", [0; 6]),
    ("%% ", [0; 6]),
    ("%%\n", [0; 6]),
    ("#", [0, 0, 1, 0, 0, 0]),
    ("#a", [0, 1000, 1, 0, 0, 0]),
    ("=", [0, 0, 1, 0, 0, 0]),
    ("a://", [0, 0, 1, 0, 0, 0]),
    ("https://a)", [0, 0, 2, 0, 0, 0]),
    ("&", [0, 0, 1, 0, 0, 0]),
    ("&amp;", [0; 6]),
    ("\\", [0, 0, 500, 0, 0, 0]),
    ("^a\n", [0, 0, 999, 0, 1, 0]),
    ("[^a]: ", [0, 0, 957, 0, 0, 43]),
    ("|a", [0, 0, 1, 0, 0, 0]),
    ("- [ ] a\n", [0, 0, 1000, 1000, 0, 0]),
    ("> [!a]\n", [0, 0, 999, 0, 0, 0]),
    ("<div> '", [0, 0, 1000, 0, 0, 0]),
    ("![a](", [0, 0, 1, 0, 0, 0]),
    ("a ^b\n\n", [0, 0, 1000, 0, 1000, 0]),
    ("[[a]]", [1000, 0, 1000, 0, 0, 0]),
    ("[b](c.md)\n", [1000, 0, 1000, 0, 0, 0]),
];

/// Counts the parts of a note that [`RUNS`] lists.
fn found(note: &Note) -> [usize; 6] {
    let Note { links, tags, pieces, tasks, blocks, footnotes, .. } = note;
    [links.len(), tags.len(), pieces.len(), tasks.len(), blocks.len(), footnotes.len()]
}

#[test]
fn runs_of_one_unit_have_the_expected_parts() {
    let mut checked_runs = 0;
    for (unit, expected) in RUNS {
        assert_eq!(found(&checked(&unit.repeat(1_000))), *expected, "{unit:?}");
        checked_runs += 1;
    }
    assert_eq!(checked_runs, 39);
}

#[test]
fn runs_of_one_unit_take_linear_work() {
    for (unit, _) in RUNS {
        let run = |bytes: usize| unit.repeat(bytes / unit.len());
        let [few, many] = [1 << 12, 1 << 14].map(|bytes| Note::parse_with_work(&run(bytes)).1);
        assert!(many <= 5 * few + 100, "{unit:?}: {few} steps for 4 KiB, {many} for 16 KiB");
        // The block parser does not count. Were it quadratic, a megabyte would take hours.
        let text = run(1 << 20);
        let size = text.len();
        let note = ends(&format!("a megabyte of {unit:?}"), move || Note::parse(&text));
        assert!(note.pieces.iter().all(|piece| piece.span.end <= size), "{unit:?}");
        assert!(note.links.iter().all(|link| link.span.end <= size), "{unit:?}");
    }
}

#[test]
fn nested_images_and_many_links_are_read() {
    let images = |depth: usize| format!("{}a{}", "![".repeat(depth), "](b)".repeat(depth));
    assert_eq!(checked(&images(3)).links.len(), 3);
    // The block parser bounds how deep links are nested.
    let deep = checked(&images(50_000)).links.len();
    assert!(deep < 100, "{deep}");
    let links = "[[a]] [b](c) ".repeat(50_000);
    let note = Note::parse(&links);
    assert_eq!(note.links.len(), 100_000);
    assert!(note.links.iter().all(|link| matches!(link.span.of(&links), "[[a]]" | "[b](c)")));
}
