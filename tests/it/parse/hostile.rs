//! Owns the tests of notes that nobody wrote: random, deeply nested and endless ones.

use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use sidenote::text::decode::decode;
use sidenote::text::frontmatter::link::parse_property;
use sidenote::text::note::{Note, PieceKind};

use super::{check_links, checked};

#[test]
fn any_note_parses_and_its_spans_hold() {
    let fragment = prop_oneof![
        4 => prop::sample::select(vec![
            "[[", "]]", "[", "]", "(", ")", "|", "\\", "!", "#", "##", "^", "^id", " ^id", "%%", "$", "$$", "`", "``",
            "```", "~~~", "*", "**", "_", "~~", "==", "<", ">", "> ", "- ", "1. ", "- [ ] ", "[^1]", "[^1]: ", "[r]: ",
            "<!--", "-->", "<b>", "</b>", "<div>", "https://", "&amp;", "%20", "%", "\n", "\n\n", "\r\n", "\r", "    ",
            "\t", " ", "---", "===", "|a|\n|-|\n", "[!note]", "#a", "a", "b.md", "\u{feff}", "\u{e9}", "\u{a0}", "\0",
        ])
        .prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    proptest!(|(parts in prop::collection::vec(fragment, 0..40))| {
        let text = parts.concat();
        checked(&text);
        checked(&format!("---\nk: v\n---\n{text}"));
        if let Some(link) = parse_property(&text) {
            assert!(link.span.encloses(link.dest_span) && text.get(link.span.start..link.span.end).is_some());
        }
    });
    proptest!(|(bytes in prop::collection::vec(any::<u8>(), 0..200))| {
        let decoded = decode(&bytes);
        assert!(decoded.text.is_empty() || decoded.text.len() == bytes.len());
        checked(&decoded.text);
    });
}

#[test]
fn the_rest_of_a_comment_that_a_wikilink_overlaps_is_one_piece_a_line() {
    let note = checked("[[<!--]]|a|\n|-|\n-->");
    let lines = note.pieces.iter().filter(|piece| piece.kind == PieceKind::Prose).count();
    assert!(lines >= 2, "{:?}", note.pieces);
}

fn nested_too_deep(text: &str) -> bool {
    checked(text).problems.iter().any(|problem| problem.code == "nested-too-deep")
}

#[test]
fn hostile_nesting_is_cut() {
    let deep = 10_000;
    for marker in ["> ", ">", "- ", "1. ", "> - ", "- [^f]: "] {
        let text = format!("{}[[a]]\n{}", marker.repeat(deep), "\n".repeat(deep));
        assert!(nested_too_deep(&text), "{marker:?}");
        check_links(&text, &["wiki a = a"]);
        let text = format!("{}a\r{}", marker.repeat(deep), "> a\r".repeat(deep));
        assert!(nested_too_deep(&text), "{marker:?}");
        let lines = format!("{}[[a]]\n", marker.repeat(200 / marker.len())).repeat(2);
        assert!(!nested_too_deep(&lines), "{marker:?}");
    }
    for rule in ["- ", "* "] {
        assert!(!nested_too_deep(&rule.repeat(deep)));
    }
    assert!(!nested_too_deep(&format!("a|b\n{}|-\nc|d\n", "-".repeat(deep))));
}

#[test]
fn hostile_runs_end_in_linear_time() {
    // Were anything quadratic, a megabyte of one of these would take hours; the test's own run time is the bound.
    let size = 1 << 20;
    for unit in [
        "[",
        "[[",
        "[[a",
        "[[a|",
        "![",
        "[a](",
        "[a](b \"",
        "[a]: ",
        "[a]: b \"\n",
        "$",
        "$a ",
        "$$ ",
        "`",
        "`a ``b ",
        "*a_",
        "<",
        "<a ",
        "<!--",
        "%%",
        "%% ",
        "%%\n",
        "#",
        "#a",
        "=",
        "a://",
        "https://a)",
        "&",
        "&amp;",
        "\\",
        "^a\n",
        "[^a]: ",
        "|a",
        "- [ ] a\n",
        "> [!a]\n",
        "<div> '",
        "![a](",
        "a ^b\n\n",
    ] {
        let note = Note::parse(&unit.repeat(size / unit.len()));
        assert!(note.pieces.iter().all(|piece| piece.span.end <= size));
    }
    let images = format!("{}a{}", "![".repeat(50_000), "](b)".repeat(50_000));
    assert!(checked(&images).links.len() < 100);
    let links = "[[a]] [b](c) ".repeat(50_000);
    assert_eq!(Note::parse(&links).links.len(), 100_000);
}
