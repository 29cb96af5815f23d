//! Tests edits of a note's body: adding and replacing text, and changing tags.

use std::cell::Cell;

use proptest::prelude::*;
use sidenote::markdown::body_edit::{append, append_to_section, prepend, prepend_to_section, replace};
use sidenote::markdown::edit::Edit;
use sidenote::markdown::frontmatter::read;
use sidenote::markdown::note::Note;
use sidenote::markdown::tag_edit::{add_tags, remove_tags, rename_tag};

use crate::support::{PlannedEdits, edit_outcome, edited};

/// Checks what an edit makes of a note; the same with CRLF, and with a byte order mark.
#[track_caller]
fn check(text: &str, edit: impl Fn(&str) -> PlannedEdits, expect: &str) {
    assert_eq!(edit_outcome(text, &edit(text)), expect, "{text:?}");
    let refused = expect.starts_with("! ");
    for (mark, end) in [("", "\r\n"), ("\u{FEFF}", "\n"), ("\u{FEFF}", "\r\n")] {
        // A file without a line end has no line ending to keep.
        if end == "\r\n" && !text.contains('\n') && !refused {
            continue;
        }
        let dress = |text: &str| format!("{mark}{}", text.replace('\n', end));
        let wanted = if refused { expect.to_owned() } else { dress(expect) };
        let text = dress(text);
        assert_eq!(edit_outcome(&text, &edit(&text)), wanted, "{text:?}");
    }
}

#[test]
fn text_is_appended_as_a_block_of_its_own() {
    let check = |text: &str, addition: &str, expect: &str| check(text, |text| append(text, addition), expect);
    check("a\n", "b", "a\n\nb\n");
    check("a\n", "b\n", "a\n\nb\n");
    check("a\n", "b\r\nc\r\n\r\n", "a\n\nb\nc\n");
    check("a", "b\n", "a\n\nb");
    check("a\n\n", "b", "a\n\nb\n");
    check("a\n \n", "b", "a\n \nb\n");
    check("a\n", "\nb", "a\n\nb\n");
    check("", "b", "b\n");
    check("\n", "b", "\nb\n");
    check("---\na: 1\n---\n", "b", "---\na: 1\n---\nb\n");
    check("---\na: 1\n---", "b", "---\na: 1\n---\nb");
    check("---\na: 1\n---\n\n", "b", "---\na: 1\n---\n\nb\n");
    check("a\n", "\n\n", "a\n");
    check("a\n", "", "a\n");
    check("# A\n", "b\n\n# C\n", "# A\n\nb\n\n# C\n");
}

#[test]
fn appended_items_and_rows_join_the_list_or_table() {
    let check = |text: &str, addition: &str, expect: &str| check(text, |text| append(text, addition), expect);
    check("- a\n", "- b", "- a\n- b\n");
    check("- a", "- b\n- c\n", "- a\n- b\n- c");
    check("* a\n  more\n", "* b", "* a\n  more\n* b\n");
    check("1. a\n", "2. b", "1. a\n2. b\n");
    check("- [ ] a\n", "- [x] b", "- [ ] a\n- [x] b\n");
    check("- a\n  - b\n", "- c", "- a\n  - b\n- c\n");
    check("- a\n", "b", "- a\n\nb\n");
    check("a\n", "- b", "a\n\n- b\n");
    check("a\n  b\n", "- c", "a\n  b\n\n- c\n");
    check("* * *\n", "* b", "* * *\n\n* b\n");
    check("-a\n", "- b", "-a\n\n- b\n");
    check("2026\n", "- b", "2026\n\n- b\n");
    check("| a |\n|---|\n| b |\n", "| c |", "| a |\n|---|\n| b |\n| c |\n");
    check("> a\n", "> b", "> a\n\n> b\n");
}

#[test]
fn text_is_prepended_after_the_frontmatter() {
    let check =
        |text: &str, addition: &str, expect: &str| check(text, |text| prepend(text, addition), expect);
    check("a\n", "b", "b\n\na\n");
    check("a", "b\n", "b\n\na");
    check("\na\n", "b", "b\n\na\n");
    check("- a\n", "- b", "- b\n- a\n");
    check("", "b", "b\n");
    check("---\na: 1\n---\nx\n", "b\nc", "---\na: 1\n---\nb\nc\n\nx\n");
    check("---\na: 1\n---\n\n# X\n", "b", "---\na: 1\n---\nb\n\n# X\n");
    check("---\na: 1\n---", "b", "---\na: 1\n---\nb");
    check("---\na: 1\n---\n", "b", "---\na: 1\n---\nb\n");
    check("a\n---\n", "---\nb: 1", "! reparse-mismatch");
    check("---\na\n", "---", "! reparse-mismatch");
}

fn heading(note: &Note, text: &str) -> usize {
    note.headings.iter().position(|heading| heading.text == text).unwrap()
}

#[test]
fn text_is_appended_to_a_section() {
    let check = |text: &str, name: &str, addition: &str, expect: &str| {
        let edit = |text: &str| {
            let note = Note::parse(text);
            append_to_section(text, &note, heading(&note, name), addition)
        };
        check(text, edit, expect);
    };
    check("# A\n\na\n\n# B\n", "A", "x", "# A\n\na\n\nx\n\n# B\n");
    check("# A\n\na\n\n\n# B\n", "A", "x\n", "# A\n\na\n\nx\n\n\n# B\n");
    check("# A\na\n# B\n", "A", "x", "# A\na\n\nx\n# B\n");
    check("# A\n- a\n\n# B\n", "A", "- x", "# A\n- a\n- x\n\n# B\n");
    check("# A\n\n# B\n", "A", "x", "# A\n\nx\n\n# B\n");
    check("# A\n# B\n", "A", "x", "# A\n\nx\n# B\n");
    check("# A\n## C\nc\n\n# B\n", "A", "x", "# A\n## C\nc\n\nx\n\n# B\n");
    check("# A\n## C\nc\n\n## D\n", "C", "x", "# A\n## C\nc\n\nx\n\n## D\n");
    check("# A\na\n", "A", "x", "# A\na\n\nx\n");
    check("# A\na", "A", "x", "# A\na\n\nx");
    check("# A", "A", "x", "# A\n\nx");
    check("A\n===\na\n\nB\n===\nb\n", "A", "x", "A\n===\na\n\nx\n\nB\n===\nb\n");
    check("# A\n***\nB\n===\n", "A", "x", "# A\n***\n\nx\n\nB\n===\n");
    check("# A\na\n***\n#b\nB\n===\n", "A", "x", "# A\na\n***\n\nx\n\n#b\nB\n===\n");
    check("# A\na\n\n  # B\n", "A", "x", "# A\na\n\nx\n\n  # B\n");
    check("---\nt: 1\n---\n# A\na\n\n# B\n", "A", "x\ny", "---\nt: 1\n---\n# A\na\n\nx\ny\n\n# B\n");
    check("# A\n```\n# no\n```\n\n# B\n", "A", "x", "# A\n```\n# no\n```\n\nx\n\n# B\n");
}

#[test]
fn text_is_prepended_to_a_section() {
    let check = |text: &str, name: &str, addition: &str, expect: &str| {
        let edit = |text: &str| {
            let note = Note::parse(text);
            prepend_to_section(text, &note, heading(&note, name), addition)
        };
        check(text, edit, expect);
    };
    check("# A\n\na\n", "A", "x", "# A\n\nx\n\na\n");
    check("# A\na\n", "A", "x", "# A\nx\n\na\n");
    check("# A\n- a\n", "A", "- x", "# A\n- x\n- a\n");
    check("# A\n\n# B\n", "A", "x", "# A\n\nx\n\n# B\n");
    check("# A\n\n## B\nb\n", "A", "x", "# A\n\nx\n\n## B\nb\n");
    check("A\n===\na", "A", "x", "A\n===\nx\n\na");
    check("# A", "A", "x", "# A\n\nx");
    check("# A\n", "A", "x", "# A\n\nx\n");
    let note = Note::parse("# A\n");
    assert_eq!(append_to_section("# A\n", &note, 1, "x").unwrap_err().code, "no-heading");
    assert_eq!(prepend_to_section("# A\n", &note, 1, "x").unwrap_err().code, "no-heading");
}

#[test]
fn text_is_replaced_exactly() {
    let check = |text: &str, old: &str, new: &str, expected: Option<usize>, expect: &str| {
        check(text, |text| replace(text, old, new, expected), expect);
    };
    check("a b a\n", "a", "x", None, "x b x\n");
    check("a b a\n", "a", "x", Some(2), "x b x\n");
    check("a b a\n", "a", "x", Some(1), "! count-mismatch");
    check("aaa", "aa", "b", None, "ba");
    check("a\nb\nc\n", "a\nb", "x\ny\nz", Some(1), "x\ny\nz\nc\n");
    check("a\nb\n", "a\r\nb", "x", None, "x\n");
    check("a\nb\n", "\n", " ", Some(2), "a b ");
    check("a\nb\n", "b", "", None, "a\n\n");
    check("a\n", "a", "a", None, "a\n");
    check("a\n", "b", "c", None, "! text-not-found");
    check("a\n", "", "c", None, "! empty-text");
    check("---\nk: old\n---\nold\n", "old", "new", Some(1), "---\nk: old\n---\nnew\n");
    check("---\nk: old\n---\nx\n", "old", "new", None, "! text-not-found");
    check("x\nk: 1\n---\n", "x", "---", None, "! reparse-mismatch");
}

#[test]
fn a_replacement_touches_the_bytes_that_differ() {
    let text = "one\r\ntwo\nthree\r\nfour\r\n";
    let edits = replace(text, "one\ntwo\nthree", "one\n2\n3\nthree", Some(1)).unwrap();
    assert_eq!(edits.len(), 1);
    assert_eq!(edited(text, &edits), "one\r\n2\r\n3\nthree\r\nfour\r\n");
    assert_eq!(edits[0].span.of(text), "two");
    let text = "a é b";
    let edits = replace(text, "é", "è", None).unwrap();
    assert_eq!((edits[0].span.of(text), edits[0].text.as_str()), ("é", "è"));
}

#[test]
fn an_absent_text_is_refused_with_similar_lines() {
    let text = "---\nk: v\n---\n# Boat\n\nThe hull was sanded on Monday.\nThe deck was painted on Friday.\n\nBuy varnish.\n";
    let missing = replace(text, "The hull was sanded on monday!", "x", None).unwrap_err();
    insta::assert_snapshot!(missing.message, @r#"the text is not in the note; the nearest is line 6: "The hull was sanded on Monday."; line 7: "The deck was painted on Friday.""#);
    let twice = replace(text, "was", "is", Some(1)).unwrap_err();
    insta::assert_snapshot!(twice.message, @r#"the text stands in the note twice, not once: line 6, 7"#);
    let property = replace(text, "k: v", "x", None).unwrap_err();
    insta::assert_snapshot!(property.message, @r#"the text is not in the note; it stands among the properties, which are edited by their names"#);
    let lines = replace(text, "The hull was sanded on Monday.\nThe deck was varnished on Friday.", "x", None);
    insta::assert_snapshot!(lines.unwrap_err().message, @r#"the text is not in the note; the nearest is line 6: "The hull was sanded on Monday.\nThe deck was painted on Friday.""#);
}

#[test]
fn renaming_a_tag_renames_nested_tags() {
    let check = |text: &str, old: &str, new: &str, expect: &str| {
        check(text, |text| rename_tag(text, &Note::parse(text), old, new), expect);
    };
    check("#a #A/b #ab #x/a a `#a`\n", "a", "n/m", "#n/m #n/m/b #ab #x/a a `#a`\n");
    check("#a/b/c #a/b #a\n", "#A/B", "#c", "#c/c #c #a\n");
    check("#a#a/ _#a_ [x #a](y)\n", "a", "b", "#b#b/ _#b_ [x #b](y)\n");
    check("#/a #a//b\n", "a", "x", "#/x #x//b\n");
    check("#été #ÉTÉ/x\n", "Été", "hiver", "#hiver #hiver/x\n");
    check(
        "---\ntags: [a, 'a/b', \"#a\", c] # a\n---\n#a\n",
        "a",
        "z",
        "---\ntags: [z, 'z/b', \"#z\", c] # a\n---\n#z\n",
    );
    check("---\nTags:\n  - a # c\n  - ab\n---\n", "a", "z", "---\nTags:\n  - z # c\n  - ab\n---\n");
    check("---\ntags: a\n---\n", "a", "true", "---\ntags: \"true\"\n---\n");
    check("---\ntags: a/1\n---\n", "a/1", "1e3", "---\ntags: \"1e3\"\n---\n");
    check("---\ntags: &t [a]\n---\n#a", "a", "b", "! yaml-style");
    check("---\ntags:\n  - >-\n    a\n---\n", "a", "b", "! yaml-style");
    check("---\ntags: [b\n---\n#a\n", "a", "x", "---\ntags: [b\n---\n#x\n");
    check("---\nt: a\n---\n[[#a]] #b\n", "a", "x", "---\nt: a\n---\n[[#a]] #b\n");
    check("#a\n", "a", "1984", "! invalid-tag");
    check("#a\n", "a", "b c", "! invalid-tag");
    check("#a #b\n", "a", "A", "#A #b\n");
}

#[test]
fn tags_are_added_and_removed() {
    let added = |text: &str, tags: &[&str], expect: &str| check(text, |text| add_tags(text, tags), expect);
    added("x\n", &["#a", "b", "A"], "---\ntags:\n  - a\n  - b\n---\nx\n");
    added("---\ntags: [a]\n---\n", &["A", "b"], "---\ntags: [a, b]\n---\n");
    added("---\ntags: '#a'\n---\n", &["a", "b/"], "---\ntags:\n  - '#a'\n  - b\n---\n");
    added("---\nTags:\n- a\n---\n", &["1e3"], "---\nTags:\n- a\n- \"1e3\"\n---\n");
    added("---\ntags: [a]\n---\n", &["a"], "---\ntags: [a]\n---\n");
    added("x", &["12"], "! invalid-tag");
    added("---\ntags: [\n---\n", &["a"], "! yaml-unparsable");
    let removed =
        |text: &str, tags: &[&str], expect: &str| check(text, |text| remove_tags(text, tags), expect);
    removed("---\ntags: [a, '#A', b, a/c]\n---\n#a\n", &["#a"], "---\ntags: [b, a/c]\n---\n#a\n");
    removed("---\ntags:\n- a\n- b\n---\n", &["a", "b"], "---\ntags: []\n---\n");
    removed("---\ntags: a\n---\n", &["a"], "---\ntags: []\n---\n");
    removed("---\ntags: a\n---\n", &["b"], "---\ntags: a\n---\n");
    removed("x\n", &["b"], "x\n");
}

// Random notes.

fn body() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => "[a-c #]{0,6}",
        2 => "#{1,3} [A-C]",
        1 => Just("- a".to_owned()),
        1 => Just("  more".to_owned()),
        1 => Just("===".to_owned()),
        1 => Just("---".to_owned()),
        1 => Just("```".to_owned()),
        1 => Just("> # q".to_owned()),
        1 => Just("[[a#b]] #a/b %%#a%%".to_owned()),
        2 => Just(String::new()),
    ];
    let end = prop_oneof![4 => Just("\n"), 2 => Just("\r\n"), 1 => Just("")];
    let head = prop_oneof![
        Just(""),
        Just("\u{FEFF}"),
        Just("---\ntags: [a, 'A/b', c]\nk: 1 # c\n---\n"),
        Just("---\r\ntags: a\r\n---")
    ];
    let lines = proptest::collection::vec((line, end), 0..12);
    (head, lines).prop_map(|(head, lines)| {
        let lines: String = lines.into_iter().map(|(line, end)| line + end).collect();
        format!("{head}{lines}")
    })
}

fn addition() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{1,4}", "(- )?[a-c]{1,3}\n[a-c]{0,3}\n?", "[-#a \r\n]{0,8}"]
}

/// Checks that a plan only brings bytes in, once, and splits nothing.
fn inserted(text: &str, edits: &[Edit], addition: &str) -> Result<(), TestCaseError> {
    let said = addition.trim_end_matches(['\n', '\r']);
    prop_assert_eq!(edits.is_empty(), said.is_empty());
    for edit in edits {
        prop_assert!(edit.span.is_empty());
        let (before, behind) = text.split_at(edit.span.start);
        prop_assert!(!(before.ends_with('\r') && behind.starts_with('\n')));
        let lines = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
        prop_assert!(lines(&edit.text).contains(&lines(said)));
        prop_assert_eq!(
            before.is_empty()
                || before.ends_with(['\n', '\r', '\u{FEFF}'])
                || edit.text.starts_with(['\r', '\n']),
            true
        );
        let changed = edited(text, edits);
        let blocks = |text: &str| read(text).0.map(|block| block.span.of(text).trim_end().to_owned());
        prop_assert_eq!(blocks(text), blocks(&changed));
        let open =
            |text: &str| !text.trim_start_matches('\u{FEFF}').is_empty() && !text.ends_with(['\n', '\r']);
        prop_assert_eq!(open(text), open(&changed));
    }
    Ok(())
}

#[test]
fn added_text_is_whole_and_other_text_is_unchanged() {
    let (planned, refused) = (Cell::new(0), Cell::new(0));
    proptest!(ProptestConfig::with_cases(1000), |(text in body(), addition in addition())| {
        let note = Note::parse(&text);
        let mut plans = vec![append(&text, &addition), prepend(&text, &addition)];
        for heading in 0..note.headings.len() {
            plans.push(append_to_section(&text, &note, heading, &addition));
            plans.push(prepend_to_section(&text, &note, heading, &addition));
        }
        for plan in plans {
            match plan {
                Ok(edits) => {
                    planned.set(planned.get() + 1);
                    inserted(&text, &edits, &addition)?;
                }
                Err(refusal) => {
                    refused.set(refused.get() + 1);
                    prop_assert_eq!(refusal.code, "reparse-mismatch");
                }
            }
        }
    });
    let counts = (planned.get(), refused.get());
    assert!(counts.0 > 1_000 && counts.0 > counts.1, "{counts:?} were planned and refused");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn adding_a_word_to_a_section_keeps_the_outline(text in body()) {
        let note = Note::parse(&text);
        let outline = |note: &Note| note.headings.iter().map(|heading| (heading.level, heading.text.clone())).collect::<Vec<_>>();
        for heading in 0..note.headings.len() {
            for planned in [append_to_section(&text, &note, heading, "word"), prepend_to_section(&text, &note, heading, "word")] {
                let changed = edited(&text, &planned.unwrap());
                let after = Note::parse(&changed);
                prop_assert_eq!(outline(&note), outline(&after), "{:?} became {:?}", text, changed);
                let section = after.section_span(&changed, heading).unwrap();
                prop_assert!(section.of(&changed).contains("word"), "{changed:?}");
            }
        }
    }

    #[test]
    fn a_replacement_equals_str_replace(text in body(), old in "[a-c#\n -]{1,3}", new in "[a-cé\n]{0,3}") {
        let start = read(&text).1;
        let unified = text[start..].replace("\r\n", "\n");
        match replace(&text, &old, &new, None) {
            Ok(edits) => {
                let changed = edited(&text, &edits);
                prop_assert_eq!(&changed[..start], &text[..start]);
                prop_assert_eq!(changed[start..].replace("\r\n", "\n"), unified.replace(&old, &new));
                prop_assert_eq!(replace(&text, &old, &new, Some(unified.matches(&old).count())), Ok(edits));
            }
            Err(refusal) if refusal.code == "text-not-found" => prop_assert!(!unified.contains(&old)),
            Err(refusal) => prop_assert_eq!(refusal.code, "reparse-mismatch"),
        }
    }

    #[test]
    fn renaming_a_tag_and_back_restores_the_text(text in body(), old in prop_oneof![Just("a"), Just("a/b"), Just("c")]) {
        let note = Note::parse(&text);
        let edits = rename_tag(&text, &note, old, "new/tag").unwrap();
        let changed = edited(&text, &edits);
        let after = Note::parse(&changed);
        let is_old = |name: &str| name.to_lowercase() == old || name.to_lowercase().starts_with(&format!("{old}/"));
        prop_assert!(!after.tags.iter().any(|tag| is_old(&tag.name)), "{changed:?}");
        prop_assert_eq!(edits.len(), note.tags.iter().filter(|tag| is_old(&tag.name)).count());
        let back = edited(&changed, &rename_tag(&changed, &after, "new/tag", old).unwrap());
        prop_assert_eq!(back.to_lowercase(), text.to_lowercase());
    }

    #[test]
    fn added_tags_can_be_removed(text in body(), tag in "[a-z]{1,4}") {
        let held = |text: &str| Note::parse(text).tags.into_iter().filter(|tag| tag.in_frontmatter).map(|tag| tag.name).collect::<Vec<_>>();
        let Ok(edits) = add_tags(&text, &[&tag]) else {
            prop_assert!(read(&text).0.is_some_and(|block| block.error.is_some()));
            return Ok(());
        };
        let added = edited(&text, &edits);
        prop_assert!(held(&added).iter().any(|name| name.eq_ignore_ascii_case(&tag)));
        if !held(&text).contains(&tag) && held(&added).len() > held(&text).len() {
            let removed = edited(&added, &remove_tags(&added, &[&tag]).unwrap());
            prop_assert_eq!(held(&removed), held(&text));
        }
    }
}

#[test]
fn a_replacement_that_exceeds_the_size_limit_is_refused() {
    use sidenote::markdown::body_edit::{replace, replace_pattern};
    let text = "a".repeat(20_000);
    let long = "b".repeat(10_000);
    assert_eq!(replace(&text, "a", &long, None).unwrap_err().code, "too-large");
    assert_eq!(replace_pattern(&text, "a", &long, None).unwrap_err().code, "too-large");
    assert_eq!(replace_pattern(&text, "", &long, None).unwrap_err().code, "too-large");
    assert_eq!(replace_pattern(&text, "a+", &"$0".repeat(6_000), None).unwrap_err().code, "too-large");
    assert_eq!(replace_pattern("aab", "a+", "$0$0", None).unwrap().len(), 1);
}
