//! Owns the tests of headings, block ids, footnotes, tasks and the subpaths that name them (spec/obsidian.md 3.6, 3.7).

use sidenote::text::note::{self, BlockKind};

use super::{checked, described};

fn check_headings(text: &str, expected: &[(u8, &str)]) {
    let note = checked(text);
    let found: Vec<(u8, &str)> =
        note.headings.iter().map(|heading| (heading.level, heading.text.as_str())).collect();
    assert_eq!(found, expected, "{text:?}");
}

#[test]
fn headings_keep_their_raw_text() {
    check_headings("# a [[b]] *c* `d`\n", &[(1, "a [[b]] *c* `d`")]);
    check_headings("   ### a ##  \n#\n# #\n#x\n####### x", &[(3, "a")]);
    check_headings("# a\\#\n# b \\##\n# c#\n# \\# d", &[(1, "a\\#"), (1, "b \\##"), (1, "c#"), (1, "\\# d")]);
    check_headings("a\nb\n===\nc\r\n---\r\n", &[(1, "a\nb"), (2, "c")]);
    check_headings("> # q\n\n- # l\n\n[^1]: # f\n\n[^1]", &[]);
    check_headings("```\n# c\n```\n<!--\n# h\n-->\n\n%%\n# k\n%%\n\n$$\n# m\n$$\n# n", &[(1, "n")]);
    check_headings("%%\nx\n---\n%%\n\n## y", &[(2, "y")]);
    check_headings("\u{feff}# a\r# b\r", &[(1, "a"), (1, "b")]);
}

#[test]
fn heading_keys_drop_signs() {
    for (text, key) in [
        ("It's a-b_c", "it's a-b_c"),
        ("I link to [[other]]", "i link to other"),
        ("Minecraft: The  Video\tGame!", "minecraft the video game"),
        ("\u{c9}t\u{e9} \u{2014} x/y", "\u{e9}t\u{e9} \u{2014} x y"),
        ("!\"#$%&()*+,.:;<=>?@^`{|}~/[]\\", ""),
    ] {
        assert_eq!(note::heading_key(text), key);
    }
}

#[test]
fn subpaths_find_headings_in_their_sections() {
    let text = "# A\n## X\n# B\n### Y\n## X\n# A\n## Z\n";
    for (subpath, expected) in [
        ("#X", "heading line 1"),
        ("#B#X", "heading line 4"),
        ("#A#Z", "heading line 6"),
        ("#B#Y", "heading line 3"),
        ("#X#Y", "none"),
        ("#A#Y", "none"),
        ("##b##x#", "heading line 4"),
        ("#Nope", "none"),
        ("", "none"),
        ("#", "none"),
        ("#A#B", "none"),
        ("#A#X#X", "none"),
    ] {
        assert_eq!(described(text, subpath), expected, "{subpath}");
    }
    assert_eq!(described("# A\n## B [[c]] #d\n", "#A#B c d"), "heading line 1");
}

#[test]
fn block_ids_name_blocks() {
    for (text, expected) in [
        ("a ^x\n", "block lines 0-0"),
        ("a\nb ^x\n\nc", "block lines 0-1"),
        ("a\n^x\n", "block lines 0-1"),
        ("a ^x  \n", "block lines 0-0"),
        ("a ^x\nb\n", "none"),
        ("a^x\n", "none"),
        ("a ^x_y\n", "none"),
        ("a ^\n", "none"),
        ("`a ^x`\n", "none"),
        ("[[a ^x]]\n", "none"),
        ("$a ^x$\n", "none"),
        ("```\na ^x\n```\n", "none"),
        ("%%\na ^x\n%%\n", "none"),
        ("- a ^x\n- b\n", "list item line 0"),
        ("- a\n  - b ^x\n- c\n", "list item line 1"),
        ("- a ^x\n  - b\n", "list item line 0"),
        ("- a\n\n  b ^x\n", "list item line 0"),
        ("- a\n- b\n\n^x\n", "block lines 0-1"),
        ("- a\n- b\n^x\n", "block lines 0-1"),
        ("- a\n  - b\n  ^x\n", "block lines 1-1"),
        ("> a\n> b ^x\n", "block lines 0-1"),
        ("> a\n> b\n\n^x\n", "block lines 0-1"),
        ("> a\n^x\n", "block lines 0-0"),
        ("> [!n] t\n> a\n\n^x\n", "callout lines 0-1"),
        ("> [!n] t\n> - s\n^x\n", "callout lines 0-1"),
        ("> - s ^x\n", "list item line 0"),
        ("|a|\n|-|\n|b|\n\n^x\n", "block lines 0-2"),
        ("|a|\n|-|\n|b|\n^x\n", "block lines 0-2"),
        ("|a|\n|-|\n|b ^x|\n", "none"),
        ("```\nc\n```\n\n^x\n", "block lines 0-2"),
        ("$$\nm\n$$\n\n^x\n", "block lines 0-2"),
        ("$$\n\nm\n\n$$\n\n^x\n", "block lines 0-4"),
        ("p\n\n^x\n", "block lines 0-0"),
        ("p\n\n^y\n\n^x\n", "block lines 0-0"),
        ("# h ^x\n", "block lines 0-0"),
        ("^x\n", "block lines 0-0"),
        ("a ^X\n\nb ^x\n", "block lines 0-0"),
    ] {
        assert_eq!(described(text, "#^x"), expected, "{text:?}");
        assert_eq!(described(&text.replace('\n', "\r\n"), "#^X"), expected, "{text:?} with CRLF");
    }
    let kinds = |text: &str| checked(text).blocks.iter().map(|block| block.kind).collect::<Vec<_>>();
    assert_eq!(kinds("|a|\n|-|\n^t"), [BlockKind::Table]);
    assert_eq!(kinds("$$x$$\n\n^t"), [BlockKind::Math]);
    assert_eq!(kinds("    c\n\n^t"), [BlockKind::Code]);
    assert_eq!(kinds("# h ^t\n\n1. l\n\n^u"), [BlockKind::Heading, BlockKind::List]);
}

#[test]
fn footnotes_are_found_without_case() {
    let text = "x[^Ab]\n\n[^Ab]: text\n";
    assert_eq!(described(text, "#[^aB]"), "footnote Ab");
    assert_eq!(described(text, "#[^b]"), "none");
}

#[test]
fn sections_end_at_the_next_heading_of_their_rank() {
    let text = "p\n# A\na\n## B\nb\n# C\n";
    let note = checked(text);
    let section = |index| note.section_span(text, index).map(|span| span.of(text));
    assert_eq!(section(0), Some("# A\na\n## B\nb\n"));
    assert_eq!(section(1), Some("## B\nb\n"));
    assert_eq!(section(2), Some("# C\n"));
    assert_eq!(section(3), None);
}

#[test]
fn any_single_character_makes_a_task() {
    let text = "- [ ] open\n- [x] done [[a]]\n  1. [/] half ^id\n    - plain\n      * [\u{1f389}] deep\n- [] no\n- [xx] no\n- [x]no\n- [[x]] no\n> + [?] quoted\n\n%%\n- [ ] hidden\n%%\n";
    let note = checked(text);
    let tasks: Vec<String> = note
        .tasks
        .iter()
        .map(|task| format!("{} {} {:?} {}", task.line, task.status, task.parent, task.text))
        .collect();
    assert_eq!(
        tasks,
        [
            "1   None open",
            "2 x None done [[a]]",
            "3 / Some(2) half ^id",
            "5 \u{1f389} Some(4) deep",
            "10 ? None quoted"
        ]
    );
    assert_eq!(note.tasks[2].span.of(text), "1. [/] half ^id");
}
