//! Tests how problems are turned off: by settings, and by comments in notes.

use proptest::prelude::*;
use sidenote::markdown::commonmark::{IgnoreRange, ignore_comments};

use crate::support::{SETTINGS, TestVault, run, stderr, stdout};

const NOW: &str = "2026-11-21";

/// Checks the problems of a vault with the settings of its own file, as `path:line code` and the severity, without
/// orphans.
#[track_caller]
fn check(settings: &str, files: &[(&str, &str)], expect: &[&str]) {
    let vault = TestVault::new(files);
    if !settings.is_empty() {
        vault.write(".sidenote/config.toml", settings);
    }
    let reply = vault.store().upkeep().check(false).unwrap();
    let found: Vec<String> = reply
        .problems
        .iter()
        .filter(|problem| problem.code != "orphan")
        .map(|problem| {
            format!("{}:{} {} {}", problem.path, problem.line, problem.code, problem.severity.name())
        })
        .collect();
    assert_eq!(found, expect, "{settings}\n{files:?}\n{:?}", reply.problems);
}

/// Checks which bytes of a note the comments in it turn codes off for; `file` is the whole note.
#[track_caller]
fn check_ranges(text: &str, expect: &[(&str, &str)]) {
    let found = ignore_comments(text, 0);
    let shown: Vec<(String, String)> = found
        .iter()
        .map(|comment| {
            let codes: Vec<&str> = comment.codes.iter().map(|(code, _)| code.as_str()).collect();
            let range = match comment.range {
                IgnoreRange::File => "file".to_owned(),
                IgnoreRange::Block(span) => span.of(text).trim().to_owned(),
                IgnoreRange::NoBlock => "no block".to_owned(),
                IgnoreRange::InLine => "in line".to_owned(),
            };
            (codes.join(" "), range)
        })
        .collect();
    let shown: Vec<(&str, &str)> =
        shown.iter().map(|(codes, range)| (codes.as_str(), range.as_str())).collect();
    assert_eq!(shown, expect, "{text:?}");
    for (code, span) in found.iter().flat_map(|comment| &comment.codes) {
        assert_eq!(span.of(text), code);
    }
}

#[test]
fn a_comment_turns_codes_off_for_the_next_block() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("<!-- sidenote-ignore a -->\none\ntwo\n\nthree\n", &[("a", "one\ntwo")]),
        ("<!-- sidenote-ignore a, b  c -->\n\n# one\n\ntwo\n", &[("a b c", "# one")]),
        ("<!--sidenote-ignore a-->\n- one\n- two\n\n  more\n\nthree\n", &[("a", "- one\n- two\n\n  more")]),
        (
            "<!-- sidenote-ignore a -->\n| x | y |\n| - | - |\n| 1 | 2 |\n",
            &[("a", "| x | y |\n| - | - |\n| 1 | 2 |")],
        ),
        ("<!-- sidenote-ignore a -->\n> one\n\ntwo\n", &[("a", "> one")]),
        ("<!-- sidenote-ignore a -->\n```\none\n```\ntwo\n", &[("a", "```\none\n```")]),
        ("<!-- sidenote-ignore a -->\n---\none\n", &[("a", "---")]),
        // Several comments can precede a block, in one line or in several.
        (
            "<!-- sidenote-ignore a -->\n<!-- sidenote-ignore b -->\none\n",
            &[("a", "<!-- sidenote-ignore b -->\none"), ("b", "one")],
        ),
        (
            "<!-- sidenote-ignore a --> <!-- sidenote-ignore b -->\none\n",
            &[("a", "<!-- sidenote-ignore b -->\none"), ("b", "one")],
        ),
        // A comment may have several lines.
        ("<!--\nsidenote-ignore\n  a\n  b\n-->\none\n", &[("a b", "one")]),
        // Another comment is a block.
        ("<!-- sidenote-ignore a -->\n<!-- other -->\n\none\n", &[("a", "<!-- other -->")]),
        // In a list item or quote, it is the next block in the same item or quote.
        ("- <!-- sidenote-ignore a -->\n  one\n- two\n", &[("a", "one")]),
        ("- one\n  <!-- sidenote-ignore a -->\n  - two\n  - three\n- four\n", &[("a", "- two\n  - three")]),
        ("> <!-- sidenote-ignore a -->\n> one\n>\n> two\n", &[("a", "> one")]),
        ("- one\n\n  <!-- sidenote-ignore a -->\n\ntwo\n", &[("a", "no block")]),
        // A link definition has no block of its own.
        ("one\n\n<!-- sidenote-ignore a -->\n[x]: y.md\n", &[("a", "[x]: y.md")]),
        ("<!-- sidenote-ignore a -->\n[x]: y.md\n\none\n\ntwo\n", &[("a", "[x]: y.md\n\none")]),
        // Line ends of Windows, and frontmatter above.
        ("<!-- sidenote-ignore a -->\r\none\r\n\r\ntwo\r\n", &[("a", "one")]),
    ];
    for (text, expect) in cases {
        check_ranges(text, expect);
    }
    assert_eq!(cases.len(), 18);
}

#[test]
fn a_comment_without_a_block_turns_nothing_off() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("one\n\n<!-- sidenote-ignore a -->\n", &[("a", "no block")]),
        ("<!-- sidenote-ignore a -->", &[("a", "no block")]),
        ("one <!-- sidenote-ignore a -->\n", &[("a", "in line")]),
        ("one <!-- sidenote-ignore-file a --> two\n", &[("a", "file")]),
        ("text\n\n<!-- sidenote-ignore-file a b -->\n", &[("a b", "file")]),
        ("<!-- sidenote-ignore -->\none\n", &[("", "one")]),
        // What is no such comment is none: in code, of another name, or without an end.
        ("`<!-- sidenote-ignore a -->`\n", &[]),
        ("```\n<!-- sidenote-ignore a -->\n```\n", &[]),
        ("    <!-- sidenote-ignore a -->\n", &[]),
        ("<!-- sidenote-ignored a -->\none\n", &[]),
        ("<!-- see sidenote-ignore a -->\none\n", &[]),
        ("<!-- sidenote-ignore a\none\n", &[]),
    ];
    for (text, expect) in cases {
        check_ranges(text, expect);
    }
    assert_eq!(cases.len(), 12);
}

proptest! {
    #[test]
    fn comments_are_read_in_any_text(
        parts in prop::collection::vec(prop_oneof![
            Just("<!-- sidenote-ignore a -->"), Just("<!-- sidenote-ignore-file b, c -->"), Just("<!--"), Just("-->"),
            Just("\n"), Just("\n\n"), Just("- "), Just("> "), Just("  "), Just("# "), Just("```\n"), Just("| x |\n| - |\n"),
            Just("[x]: y\n"), Just("text ü "), Just("\r\n"), Just("\t"), Just("<div>\n"),
        ], 0..24),
    ) {
        let text = parts.concat();
        for comment in ignore_comments(&text, 0) {
            prop_assert!(comment.span.of(&text).starts_with("<!--") && comment.span.of(&text).ends_with("-->"));
            for (code, span) in &comment.codes {
                prop_assert_eq!(span.of(&text), code.as_str());
            }
            if let IgnoreRange::Block(span) = comment.range {
                prop_assert!(span.start == comment.span.end && text.get(span.start..span.end).is_some());
                prop_assert!(!span.of(&text).trim().is_empty());
            }
        }
    }
}

#[test]
fn comments_turn_problems_off() {
    check(
        "",
        &[("a.md", "<!-- sidenote-ignore broken-link -->\n[x](x.md) [y](y.md)\n\n[z](z.md)\n")],
        &["a.md:4 broken-link error"],
    );
    check("", &[("a.md", "[[x]]\n\n- [[y]]\n\n<!-- sidenote-ignore-file broken-link -->\n")], &[]);
    check(
        "",
        &[
            ("a.md", "<!-- sidenote-ignore broken-subpath ambiguous-link -->\n[[b#No]] [[n]]\n\n[[b#No]]\n"),
            ("b.md", ""),
            ("x/n.md", ""),
            ("y/n.md", ""),
        ],
        &["a.md:4 broken-subpath error"],
    );
    check(
        "",
        &[("a.md", "<!-- sidenote-ignore conflict-markers -->\n<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n")],
        &[],
    );
    check(
        "",
        &[
            ("a.md", "---\nid: 7\n---\n"),
            ("b.md", "---\nid: 7\n---\n<!-- sidenote-ignore-file duplicate-id -->\n"),
        ],
        &[],
    );
    // The first wikilink that counts is reported, and only those that count.
    let book = ("book.toml", "[book]\nsrc = \".\"\n");
    check(
        "",
        &[
            book,
            ("SUMMARY.md", "[a](a.md)\n"),
            ("a.md", "<!-- sidenote-ignore wikilink-as-text -->\n[[SUMMARY]]\n\n[[a]]\n"),
        ],
        &["a.md:4 wikilink-as-text info"],
    );
    let vault = TestVault::new(&[("a.md", "alone\n\n<!-- sidenote-ignore-file orphan -->\n")]);
    assert_eq!(run(&vault, NOW, &["check"]), "1 note: no problems\n");
}

#[test]
fn a_comment_that_turns_nothing_off_is_a_problem() {
    let cases = [
        (
            "<!-- sidenote-ignore broken-lnk -->\nx\n",
            "1:22: there is no code broken-lnk; did you mean broken-link?",
        ),
        (
            "<!-- sidenote-ignore broken-link -->\n",
            "1:1: no block follows the comment, so it turns nothing off",
        ),
        (
            "x <!-- sidenote-ignore broken-link -->\n",
            "1:3: the comment turns nothing off in the middle of a line; write it on a line of its own before the block",
        ),
        (
            "<!-- sidenote-ignore -->\nx\n",
            "1:1: the comment names no code; write <!-- sidenote-ignore CODE -->",
        ),
        (
            "<!-- sidenote-ignore orphan -->\nx\n",
            "1:22: orphan is a problem of the whole note; write <!-- sidenote-ignore-file orphan -->",
        ),
        (
            "<!-- sidenote-ignore-file index-behind -->\nx\n",
            "1:27: index-behind is a problem of the vault, so no comment in a note turns it off",
        ),
    ];
    for (text, expect) in cases {
        let vault = TestVault::new(&[("a.md", text), ("b.md", "[[a]]\n")]);
        let problems = vault.store().upkeep().check(false).unwrap().problems;
        let found: Vec<String> = problems
            .iter()
            .filter(|problem| problem.code == "invalid-ignore")
            .map(|problem| format!("{}:{}: {}", problem.line, problem.column, problem.message))
            .collect();
        assert_eq!(found, [expect], "{text:?}");
    }
    assert_eq!(cases.len(), 6);
}

#[test]
fn settings_change_severities_and_leave_out_paths() {
    let files = &[
        ("Drafts/a.md", "[x](x.md) [[b#No]]\n"),
        ("Drafts/deep/a.md", "[x](x.md)\n"),
        ("b.md", "[x](x.md)\n"),
        ("note.draft.md", "[x](x.md)\n"),
    ];
    let all = [
        "Drafts/a.md:1 broken-link error",
        "Drafts/a.md:1 broken-subpath error",
        "Drafts/deep/a.md:1 broken-link error",
        "b.md:1 broken-link error",
        "note.draft.md:1 broken-link error",
    ];
    check("", files, &all);
    check(
        "[check.severity]\nbroken-link = \"off\"\nbroken-subpath = \"info\"\n",
        files,
        &["Drafts/a.md:1 broken-subpath info"],
    );
    check(
        "[check]\nseverity = { broken-link = \"warning\", broken-subpath = \"off\" }\n",
        files,
        &[
            "Drafts/a.md:1 broken-link warning",
            "Drafts/deep/a.md:1 broken-link warning",
            "b.md:1 broken-link warning",
            "note.draft.md:1 broken-link warning",
        ],
    );
    check("[check]\nignore = [\"Drafts\", \"*.draft.md\"]\n", files, &all[3..4]);
    check("[check]\nignore = [\"Drafts/*\"]\n", files, &all[2..]);
    check("[check]\nignore_code = { broken-link = [\"**\"] }\n", files, &all[1..2]);
    check("[check.ignore_code]\nbroken-link = [\"Drafts/**\"]\n", files, &[all[1], all[3], all[4]]);
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    let cases = [
        (
            "[check.severity]\nbroken-lnk = \"off\"\n",
            "check.severity has the unknown code \"broken-lnk\"\nhint: did you mean broken-link?\n",
        ),
        (
            "[check.severity]\norphan = \"never\"\n",
            "check.severity gives orphan the unknown severity \"never\"\nhint: use off, info, warning or error\n",
        ),
        (
            "[check.ignore_code]\norphans = [\"a\"]\n",
            "check.ignore_code has the unknown code \"orphans\"\nhint: did you mean orphan?\n",
        ),
        ("[check]\nignore = [\"a[\"]\n", "check.ignore: the path \"a[\" is not a glob"),
        ("[check]\nignores = []\n", "sets check.ignores, which is no setting"),
        ("[check]\nignore = \"a\"\n", "sets check.ignore to a string, not a array"),
    ];
    for (settings, expect) in cases {
        let vault = TestVault::new(&[("a.md", "x\n")]);
        vault.write(".sidenote/config.toml", settings);
        let done = vault.run(&["check"]);
        let told = stderr(&done);
        assert_eq!(done.status.code(), Some(2), "{settings}: {told}");
        assert!(told.contains(expect) && told.contains("config.toml"), "{settings}: {told}");
        // Other commands need no valid codes: a vault may name those of a later version.
        let is_key = settings.contains("ignores") || settings.contains("\"a\"\n");
        assert_eq!(vault.run(&["list"]).status.success(), !is_key, "{settings}");
    }
    assert_eq!(cases.len(), 6);
}

#[test]
fn the_settings_can_be_set_by_command() {
    let vault = TestVault::new(&[("a.md", "[x](x.md)\n")]);
    run(&vault, NOW, &["config", "set", "check.severity", "{ broken-link = \"info\" }"]);
    let settings = std::fs::read_to_string(vault.root().join(SETTINGS).join("sidenote/config.toml")).unwrap();
    assert_eq!(settings, "[check]\nseverity = { broken-link = \"info\" }\n");
    assert!(vault.run(&["check", "--strict=warning"]).status.success());
    // The vault's own table takes the place of the user's.
    vault.write(".sidenote/config.toml", "[check.severity]\norphan = \"off\"\n");
    let shown = stdout(&vault.run(&["config", "show"]));
    let line = shown.lines().find(|line| line.starts_with("check.severity")).unwrap();
    assert!(line.contains("{ orphan = \"off\" }") && line.contains("config.toml"), "{line}");
    assert_eq!(vault.run(&["check", "--strict"]).status.code(), Some(8));
    for value in ["{ nonsense = \"off\" }", "{ orphan = \"loud\" }"] {
        assert_eq!(vault.run(&["config", "set", "check.severity", value]).status.code(), Some(2), "{value}");
    }
    assert_eq!(vault.run(&["config", "set", "check.ignore", "[\"a[\"]"]).status.code(), Some(2));
}
