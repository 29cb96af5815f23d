//! Tests headings, block ids, footnotes, tasks and the subpaths that name them (docs/spec/obsidian.md 3.6, 3.7).

use proptest::prelude::{ProptestConfig, any, prop, prop_assert_eq, proptest};
use sidenote::markdown::commonmark::blocks as blocks_of;
use sidenote::markdown::line::Lines;
use sidenote::markdown::note;
use sidenote::markdown::note::BlockKind;

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
fn footnotes_are_found_ignoring_case() {
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

/// Lists the parts of a note that do not depend on the indentation of its lines.
fn structure(text: &str) -> Vec<String> {
    let note = checked(text);
    let tasks = note
        .tasks
        .iter()
        .map(|task| format!("task {} {:?} line {} in {:?}", task.status, task.text, task.line, task.parent));
    let blocks = note
        .blocks
        .iter()
        .map(|block| format!("block {} {:?} lines {:?}", block.id, block.kind, block.lines));
    let headings = note.headings.iter().map(|heading| format!("heading {:?}", heading.line));
    let links =
        note.links.iter().map(|link| format!("link {} line {} {:?}", link.path, link.line, link.place));
    let lines = Lines::new(text);
    let parts = blocks_of(text, note.body_start, &lines).into_iter().map(|span| {
        let last = span.end.saturating_sub(1).max(span.start);
        format!("part {}-{}", lines.of(span.start), lines.of(last))
    });
    tasks.chain(blocks).chain(headings).chain(links).chain(parts).collect()
}

#[test]
fn tabs_nest_as_four_spaces_do() {
    let cases: [(&str, usize); 16] = [
        ("- a\n\t- [ ] one\n", 1),
        ("- [ ] a\n\t- [x] b\n\t\t- [-] c\n\t- [/] d\n- [ ] e\n", 5),
        ("- [ ] a\r\n\t- [ ] b\r\n\t\t- [ ] c\r\n", 3),
        ("- a\n\n\t- [ ] loose\n\n\t- [ ] next\n", 2),
        ("1. a\n\t1. [ ] one\n\t2. [x] two\n2. [ ] b\n", 3),
        ("* a\n\t+ [ ] one\n\t\t1) [ ] two\n", 2),
        ("- a ^one\n\t- b ^two\n\t\t- [ ] c ^three\n", 1),
        ("- a\n\t- b\n\n\t  more of b ^two\n- c\n", 0),
        ("- a\n\t- [ ] one [[x]] #t\n\t  and [[y]]\n\t- [[z]]\n", 1),
        ("- a\n\t> quote ^q\n\t- [ ] one\n", 1),
        ("- a\n\t```\n\t- [ ] none\n\t```\n\t- [ ] one\n", 1),
        ("> - a\n> \t- [ ] one\n> \t\t- [ ] two\n", 2),
        ("- [ ] a\n\n\ttext below\n\t- [ ] b\n", 2),
        ("# h\n- a\n\t- [ ] b\n# i\n\n- [ ] c\n\t- [ ] d\n", 3),
        ("- a\n\t-\n\t- [ ] b\n", 1),
        ("text\n- [ ] a\n\t- [ ] b\n\t\t- [ ] c\n\t\t\t- [ ] d\n\t\t\t\t- [ ] e\n", 5),
    ];
    for (text, tasks) in cases {
        let found = structure(text);
        let count = found.iter().filter(|found| found.starts_with("task ")).count();
        assert_eq!(count, tasks, "{text:?}: {found:#?}");
        if !text.contains("> \t") && !text.contains("\t  ") {
            assert_eq!(found, structure(&text.replace('\t', "    ")), "{text:?}");
        }
        // Each span begins with the marker of its item.
        for task in &checked(text).tasks {
            assert!(!task.span.of(text).starts_with(['\n', '\r', '\t', ' ']), "{task:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn random_lists_parse_equally_with_tabs_and_spaces(
        items in prop::collection::vec((0..4_usize, 0..7_usize, any::<bool>()), 1..14)
    ) {
        let (mut depth, mut text) = (0, String::new());
        for (at, (deeper, kind, blank)) in items.into_iter().enumerate() {
            depth = if at == 0 { 0 } else { deeper.min(depth + 1) };
            let kind = ["- [ ] t", "- [x] u", "- v", "- w ^id", "1. [ ] n", "- [[l]]", "+ [-] p"][kind];
            text.push_str(&format!("{}{kind}{at}\n{}", "\t".repeat(depth), if blank && at % 5 == 4 { "\n" } else { "" }));
        }
        prop_assert_eq!(structure(&text), structure(&text.replace('\t', "    ")), "{:?}", text);
    }
}
