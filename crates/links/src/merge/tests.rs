//! The three-way merge of notes: properties by key, links that one side retargeted, and the line merge.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop loudly"
)]

use insta::assert_snapshot;
use proptest::prelude::*;

use crate::merge::{Markers, Merged, Versions, merge, merge_lines};

fn by_lines(texts: Versions<'_>) -> sidenote_base::error::Result<Merged> {
    Ok(merge_lines(texts, &Markers::default()))
}

fn merged(base: &str, ours: &str, theirs: &str) -> Merged {
    merge(Versions { base, ours, theirs }, &by_lines).unwrap()
}

/// Checks the result of a merge from both sides. It must have no conflict.
#[track_caller]
fn check_clean(base: &str, ours: &str, theirs: &str, result: &str) {
    let found = merged(base, ours, theirs);
    assert_eq!((found.text.as_str(), found.conflicts), (result, 0), "{base:?} {ours:?} {theirs:?}");
}

/// Wraps properties into a note.
fn note(properties: &str) -> String {
    format!("---\n{properties}---\nThe heron.\n")
}

/// Checks the merge of some properties.
#[track_caller]
fn check_properties(base: &str, ours: &str, theirs: &str, result: &str) {
    check_clean(&note(base), &note(ours), &note(theirs), &note(result));
}

#[test]
fn properties_are_merged_by_key() {
    let cases = [
        // One side changed a property, the other one the property next to it.
        ("a: 1\nb: 2\n", "a: 10\nb: 2\n", "a: 1\nb: 20\n", "a: 10\nb: 20\n"),
        // Both made the same change.
        ("a: 1\n", "a: 2\n", "a: 2\n", "a: 2\n"),
        // Each side added a property at the end.
        ("a: 1\n", "a: 1\nb: 2\n", "a: 1\nc: 3\n", "a: 1\nc: 3\nb: 2\n"),
        // A property that one side removed is gone, and a comment stays with its property.
        (
            "a: 1\n# of b\nb: 2\nc: 3\n",
            "a: 1\n# of b\nb: 2\n",
            "a: 9\n# of b\nb: 2\nc: 3\n",
            "a: 9\n# of b\nb: 2\n",
        ),
        // Quotes, spacing and comments of untouched keys keep their bytes.
        (
            "a:   'x'  # why\nb: 2\n",
            "a:   'x'  # why\nb: 3\n",
            "a:   'x'  # why\nb: 2\nc: [x ,y]\n",
            "a:   'x'  # why\nb: 3\nc: [x ,y]\n",
        ),
        // Lists of tags are united, less what one side removed.
        ("tags: [a, b]\n", "tags: [a, b, c]\n", "tags: [b, d]\n", "tags: [b, c, d]\n"),
        ("tags:\n  - a\n", "tags:\n  - a\n  - b\n", "tags:\n  - a\n  - c\n", "tags:\n  - a\n  - b\n  - c\n"),
        ("x: 1\n", "x: 1\ntags: [a]\n", "x: 1\ntags: [b]\n", "x: 1\ntags: [a, b]\n"),
        (
            "aliases: One\n",
            "aliases: [One, Two]\n",
            "aliases: [One, Three]\n",
            "aliases: [One, Two, Three]\n",
        ),
        // The later time of a change and the earlier one of the creation are taken.
        (
            "updated: 2026-01-01\n",
            "updated: 2026-03-01\n",
            "updated: 2026-02-01T10:00\n",
            "updated: 2026-03-01\n",
        ),
        (
            "updated_at: 2026-01-01T00:00:00Z\n",
            "updated_at: 2026-03-01T00:00:00+02:00\n",
            "updated_at: 2026-02-28T23:00:00Z\n",
            "updated_at: 2026-02-28T23:00:00Z\n",
        ),
        (
            "x: 1\n",
            "created_at: 2026-03-01\nx: 1\n",
            "created_at: 2026-02-01\nx: 1\n",
            "created_at: 2026-02-01\nx: 1\n",
        ),
        // A link in a property that one side retargeted and the other one labelled.
        (
            "up: \"[[A]]\"\n",
            "up: \"[[B]]\"\n",
            "up: \"[[A]]\" # the way up\n",
            "up: \"[[B]]\" # the way up\n",
        ),
    ];
    assert_eq!(cases.len(), 13);
    for (base, ours, theirs, result) in cases {
        check_properties(base, ours, theirs, result);
    }
}

#[test]
fn other_changes_of_one_property_are_a_conflict_of_its_lines() {
    let found = merged(
        &note("title: A\nstatus: open\n"),
        &note("title: A\nstatus: done\ntags: [x]\n"),
        &note("title: B\nstatus: dropped\ntags: [y]\n"),
    );
    assert_eq!(found.conflicts, 1);
    assert_snapshot!(found.text, @r"
    ---
    title: B
    <<<<<<< ours
    status: done
    =======
    status: dropped
    >>>>>>> theirs
    tags: [x, y]
    ---
    The heron.
    ");
}

#[test]
fn line_ends_are_kept() {
    check_clean(
        "---\r\ntags:\r\n  - a\r\n---\r\nx\r\n",
        "---\r\ntags:\r\n  - a\r\n  - b\r\n---\r\nx\r\n",
        "---\r\ntags:\r\n  - a\r\n  - c\r\n---\r\nx\r\ny\r\n",
        "---\r\ntags:\r\n  - a\r\n  - b\r\n  - c\r\n---\r\nx\r\ny\r\n",
    );
    let found = merged("a\r\n", "b\r\n", "c\r\n");
    assert_eq!(found.text, "<<<<<<< ours\r\nb\r\n=======\r\nc\r\n>>>>>>> theirs\r\n");
    check_clean("\u{FEFF}a\n", "\u{FEFF}b\n", "\u{FEFF}a\n", "\u{FEFF}b\n");
}

#[test]
fn links_that_one_side_retargeted_are_written_into_the_text_of_the_other() {
    let cases = [
        ("See [[Guide]].\n", "See [[Handbook]].\n", "Read [[Guide]] first.\n", "Read [[Handbook]] first.\n"),
        ("See [[Guide]].\n", "Read [[Guide]] first.\n", "See [[Handbook]].\n", "Read [[Handbook]] first.\n"),
        (
            "[Guide](Guide.md) and [it](Guide.md#a)\n",
            "[Handbook](docs/Handbook.md) and [it](docs/Handbook.md#a)\n",
            "Now [Guide](Guide.md), and [it](Guide.md#a)!\n",
            "Now [Handbook](docs/Handbook.md), and [it](docs/Handbook.md#a)!\n",
        ),
        // Both sides retargeted, each another link.
        ("[[A]] [[B]]\n", "[[C]] [[B]]\n", "[[A]] [[D]]\n", "[[C]] [[D]]\n"),
        // Several lines, of which the other side removed one without links.
        ("[[A]]\nold\n[[B]]\n", "[[X]]\nold\n[[Y]]\n", "- [[A]]\n- [[B]]\n", "- [[X]]\n- [[Y]]\n"),
        ("![[a.png|100]]\n", "![[b/a.png|100]]\n", "![[a.png|100]] *new*\n", "![[b/a.png|100]] *new*\n"),
        ("[x]: a.md\n", "[x]: b.md\n", "[x]: a.md \"Title\"\n", "[x]: b.md \"Title\"\n"),
    ];
    assert_eq!(cases.len(), 7);
    for (base, ours, theirs, result) in cases {
        check_clean(base, ours, theirs, result);
    }
}

/// A repair leaves labels alone, so a label can repeat the old destination and not the new one.
#[test]
fn a_retargeted_link_keeps_a_label_that_repeats_its_old_destination() {
    for (label, old, new) in [
        ("guide", "docs/guide.md", "docs/handbook.md"),
        ("docs/guide.md", "docs/guide.md", "docs/handbook.md"),
        ("guide.md", "docs/guide.md", "manual/guide.md"),
        ("Guide", "Guide.md", "Handbook.md"),
    ] {
        let line = |text: &str, path: &str| format!("A {text} with [{label}]({path}) in it.\n");
        let (base, ours, theirs) =
            (line("sentence", old), line("sentence", new), line("much better one", old));
        check_clean(&base, &ours, &theirs, &line("much better one", new));
        check_clean(&base, &theirs, &ours, &line("much better one", new));
    }
}

#[test]
fn what_is_more_than_a_retargeted_link_stays_a_conflict() {
    let cases = [
        // The text changed, too.
        ("See [[A]].\n", "See [[B]]!\n", "Read [[A]].\n"),
        // The other side removed the link.
        ("See [[A]].\n", "See [[B]].\n", "See nothing.\n"),
        // The other side retargeted it as well.
        ("See [[A]].\n", "See [[B]].\n", "Do see [[C]].\n"),
        // One of two links to one note was retargeted, and the other side changed both.
        ("[[A]] [[A]]\n", "[[A]] [[B]]\n", "[[A]], [[A]]\n"),
        // What looks like a link is code.
        ("`[[A]]`\n", "`[[B]]`\n", "so `[[A]]`\n"),
        // The label is no repetition of the name.
        ("[[A|one]]\n", "[[B|two]]\n", "so [[A|one]]\n"),
    ];
    assert_eq!(cases.len(), 6);
    for (base, ours, theirs) in cases {
        let found = merged(base, ours, theirs);
        assert_eq!(found, by_lines(Versions { base, ours, theirs }).unwrap());
        assert_eq!(found.conflicts, 1, "{base:?}");
    }
}

#[test]
fn frontmatter_that_cannot_be_merged_by_key_is_merged_by_lines() {
    let cases = [
        ("a: [\n", "a: [\nb: 1\n", "a: [\nc: 1\n"),
        ("{a: 1}\n", "{a: 2}\n", "{a: 3}\n"),
        ("a: 1\n", "a: 2\na: 3\n", "a: 4\n"),
    ];
    assert_eq!(cases.len(), 3);
    for (base, ours, theirs) in cases {
        let (base, ours, theirs) = (note(base), note(ours), note(theirs));
        let texts = Versions { base: &base, ours: &ours, theirs: &theirs };
        assert_eq!(merge(texts, &by_lines).unwrap(), by_lines(texts).unwrap());
    }
}

#[test]
fn the_line_merge_takes_equal_lines_out_of_a_conflict() {
    let found = merged("a\nb\nc\n", "a\nx\n1\nc\n", "a\nx\n2\nc\n");
    assert_snapshot!(found.text, @r"
    a
    x
    <<<<<<< ours
    1
    =======
    2
    >>>>>>> theirs
    c
    ");
    check_clean("a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nD", "A\nb\nc\nD");
    // A missing line end at the end of a side stays outside of the markers.
    assert_eq!(merged("a", "b", "c").text, "<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n");
}

/// Makes the lines of a note: properties, links and text, few enough to meet.
fn text() -> impl Strategy<Value = String> {
    let property = prop_oneof![
        Just("tags: [a, b]"),
        Just("tags:\n  - c"),
        Just("title: x"),
        Just("updated: 2026-01-01"),
        Just("updated: 2026-02-02"),
        Just("created: 2026-01-01"),
        Just("# why"),
        Just("up: \"[[A]]\""),
        Just("up: \"[[B]]\""),
    ];
    let line = prop_oneof![
        Just("See [[A]]."),
        Just("See [[B]]."),
        Just("Do see [[A]]!"),
        Just("[a](A.md)"),
        Just("[a](B.md)"),
        Just("one"),
        Just("two"),
        Just("three"),
        Just(""),
        Just("```"),
        Just("# H"),
    ];
    let end = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    (proptest::collection::vec(property, 0..4), proptest::collection::vec(line, 0..7), end, any::<bool>())
        .prop_map(|(properties, lines, end, is_ended)| {
            let mut text = String::new();
            if !properties.is_empty() {
                text = format!("---\n{}\n---\n", properties.join("\n"));
            }
            text.push_str(&lines.join("\n"));
            if is_ended && !text.is_empty() {
                text.push('\n');
            }
            text.replace('\n', end)
        })
}

/// Removes the destinations of links, which a merge may write anew.
fn without_links(text: &str) -> String {
    text.replace("[[A]]", "[[]]").replace("[[B]]", "[[]]").replace("(A.md)", "()").replace("(B.md)", "()")
}

/// Returns the lines after the frontmatter.
fn body(text: &str) -> Vec<String> {
    let start = sidenote_markdown::note::Note::parse(text).body_start;
    without_links(&text[start..]).lines().map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_merge_loses_no_line_and_has_no_more_conflicts(base in text(), ours in text(), theirs in text()) {
        let texts = Versions { base: &base, ours: &ours, theirs: &theirs };
        let found = merge(texts, &by_lines).unwrap();
        prop_assert!(found.conflicts <= by_lines(texts).unwrap().conflicts);
        let result = without_links(&found.text);
        let has = |line: &String| result.lines().any(|other| other == line);
        let (base, ours, theirs) = (body(&base), body(&ours), body(&theirs));
        for (side, other) in [(&ours, &theirs), (&theirs, &ours)] {
            for line in side.iter().filter(|line| other.contains(line) || !base.contains(line)) {
                prop_assert!(has(line), "{line:?} is lost in {:?}", found.text);
            }
        }
    }

    #[test]
    fn one_changed_side_is_the_result(base in text(), side in text()) {
        for (ours, theirs) in [(&base, &side), (&side, &base), (&side, &side)] {
            let texts = Versions { base: &base, ours, theirs };
            prop_assert_eq!(merge(texts, &by_lines).unwrap(), Merged { text: side.clone(), conflicts: 0 });
            prop_assert_eq!(by_lines(texts).unwrap(), Merged { text: side.clone(), conflicts: 0 });
        }
    }

    #[test]
    fn merging_any_text_does_not_panic(base in "[a-c:\\-\\[\\]|#\r\n ]{0,60}", ours in "(---\n)?[a-c:\\-\\[\\]|#\r\n ]{0,60}(---\n)?", theirs in "(---\n)?[a-c:\\-\\[\\]|#\r\n ]{0,60}(---\n)?") {
        let texts = Versions { base: &base, ours: &ours, theirs: &theirs };
        drop(merge(texts, &by_lines).unwrap());
    }
}
