//! Tests what follows a change beside plain links: links to headings that change with a link or a tag in them, links to parts
//! that move to another note, HTML, includes, and links that look like something else.

use serde_json::Value;

use crate::support::{TestVault, json, run, text_of};

const NOW: &str = "2026-11-21";

/// A case: what it is about, the files, the command, the changed files, and a part of a remark, if one is made.
type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], &'c [&'c str], &'c [(&'c str, &'c str)], Option<&'c str>);

/// Runs each command, compares every file with a text, and takes it back.
#[track_caller]
fn check(cases: &[Case<'_>], count: usize) {
    assert_eq!(cases.len(), count);
    for (what, files, args, expect, remark) in cases {
        let vault = TestVault::new(files);
        let reply = json(&vault, NOW, args);
        for (path, text) in *expect {
            assert_eq!(text_of(&vault, path), *text, "{what}: {path}\n{reply:#}");
        }
        let said = reply["plan"]["remarks"].as_array().cloned().unwrap_or_default();
        let said: Vec<&str> = said.iter().filter_map(|remark| remark["code"].as_str()).collect();
        assert_eq!(said.iter().find(|code| **code != "same-name").copied(), *remark, "{what}\n{reply:#}");
        run(&vault, NOW, &["undo"]);
        for (path, text) in *files {
            assert_eq!(text_of(&vault, path), *text, "{what}: {path} after undo");
        }
    }
}

const OBSIDIAN: (&str, &str) = (".obsidian/app.json", "{}");
const BOOK: (&str, &str) = ("book.toml", "");
const GITHUB: (&str, &str) = (".sidenote/config.toml", "[links]\ndialect = \"github\"\n");

#[test]
fn links_follow_a_heading_that_changes_with_a_link_in_it() {
    let linked = "[[N#About Old]] [x](N.md#About%20Old) [[N#About Old#Sub]]\n";
    let followed = "[[N#About New]] [x](N.md#About%20New) [[N#About New#Sub]]\n";
    let canvas = |part: &str| {
        format!(r##"{{"nodes":[{{"id":"1","type":"file","file":"N.md","subpath":"#{part}"}}],"edges":[]}}"##)
    };
    check(
        &[
            (
                "a rename",
                &[
                    OBSIDIAN,
                    ("Old.md", "x\n"),
                    ("N.md", "## About [[Old]]\n### Sub\n[[#About Old]]\n"),
                    ("s.md", linked),
                    ("c.canvas", &canvas("About Old")),
                ],
                &["rename", "Old", "New"],
                &[
                    ("N.md", "## About [[New]]\n### Sub\n[[#About New]]\n"),
                    ("s.md", followed),
                    ("c.canvas", &canvas("About New")),
                ],
                None,
            ),
            (
                "an image in a heading",
                &[
                    OBSIDIAN,
                    ("i/old.png", ""),
                    ("N.md", "Top ![[old.png]]\n===\n"),
                    ("s.md", "[[N#Top !old.png]]\n"),
                ],
                &["move", "i/old.png", "i/new.png"],
                &[("N.md", "Top ![[new.png]]\n===\n"), ("s.md", "[[N#Top ! new.png]]\n")],
                None,
            ),
            (
                "a heading that links to a heading",
                &[
                    OBSIDIAN,
                    ("Old.md", "x\n"),
                    ("N.md", "# About [[Old]]\n"),
                    ("M.md", "# See [[N#About Old]]\n"),
                    ("s.md", "[[M#See N About Old]]\n"),
                ],
                &["rename", "Old", "New"],
                &[("M.md", "# See [[N#About New]]\n"), ("s.md", "[[M#See N About New]]\n")],
                None,
            ),
            (
                "a tag in a heading",
                &[OBSIDIAN, ("N.md", "# Plan #old\n"), ("s.md", "[[N#Plan old]]\n")],
                &["rename-tag", "old", "new"],
                &[("N.md", "# Plan #new\n"), ("s.md", "[[N#Plan new]]\n")],
                None,
            ),
            (
                "a slug in a book, with the label of a link in it",
                &[
                    BOOK,
                    ("src/SUMMARY.md", "[N](N.md)\n[Old](Old.md)\n"),
                    ("src/Old.md", "x\n"),
                    ("src/N.md", "# See ![[Old]] x\n"),
                    ("src/s.md", "[x](N.md#see-old-x)\n"),
                ],
                &["rename", "src/Old.md", "New"],
                &[("src/N.md", "# See ![[New]] x\n"), ("src/s.md", "[x](N.md#see-new-x)\n")],
                None,
            ),
            (
                "a merge",
                &[
                    OBSIDIAN,
                    ("From.md", "f\n"),
                    ("Into.md", "i\n"),
                    ("N.md", "# On [[From]]\n"),
                    ("s.md", "[[N#On From]]\n"),
                ],
                &["merge", "From", "Into"],
                &[("N.md", "# On [[Into]]\n"), ("s.md", "[[N#On Into]]\n")],
                None,
            ),
            (
                "a merge of a note that links to it",
                &[
                    OBSIDIAN,
                    ("From.md", "f [[N#On From]]\n"),
                    ("Into.md", "i [[N#On From]]\n"),
                    ("N.md", "# On [[From]]\n"),
                ],
                &["merge", "From", "Into"],
                &[("N.md", "# On [[Into]]\n"), ("Into.md", "i [[N#On From]]\n\nf [[N#On From]]\n")],
                Some("heading-changed"),
            ),
            (
                "an extraction of a section that links to it",
                &[
                    OBSIDIAN,
                    ("Big.md", "# Top\n\n[[N#See Big Sec]]\n\n## Sec\n\n[[N#See Big Sec]]\n"),
                    ("N.md", "# See [[Big#Sec]]\n"),
                ],
                &["extract", "Big", "--section", "Sec", "--to", "Ext"],
                &[("N.md", "# See [[Ext#Sec]]\n")],
                Some("heading-changed"),
            ),
            (
                "a heading that another heading hides then",
                &[OBSIDIAN, ("Old.md", "x\n"), ("N.md", "# New\n# [[Old]]\n"), ("s.md", "[[N#Old]]\n")],
                &["rename", "Old", "New"],
                &[("N.md", "# New\n# [[New]]\n"), ("s.md", "[[N#Old]]\n")],
                Some("heading-changed"),
            ),
        ],
        9,
    );
}

#[test]
fn links_to_parts_follow_them_to_another_note() {
    let card = |file: &str| {
        format!(
            r##"{{"nodes":[{{"id":"1","type":"file","file":"d/{file}.md","subpath":"#Sec A"}}],"edges":[]}}"##
        )
    };
    check(
        &[
            (
                "a card of a canvas",
                &[
                    OBSIDIAN,
                    ("d/Big.md", "# Top\n\n## Sec A\n\ntext\n\n## Sec B\n"),
                    ("c.canvas", &card("Big")),
                ],
                &["extract", "Big", "--section", "Sec A", "--to", "Ext"],
                &[("c.canvas", &card("Ext"))],
                None,
            ),
            (
                "slugs where only these count",
                &[
                    GITHUB,
                    (
                        "Big.md",
                        "# Top\n\n[a](#sec-a) [s](#sub)\n\n## Sec A\n\n[t](#sub-1) [u](#top)\n\n### Sub\n\n## Sub\n",
                    ),
                    ("s.md", "[x](Big.md#sec-a) [y](./Big.md#sub) [z](Big.md#sub-1) [w](Big.md#top)\n"),
                ],
                &["extract", "Big", "--section", "Sec A", "--to", "Ext"],
                &[
                    ("s.md", "[x](Ext.md#sec-a) [y](./Ext.md#sub) [z](Big.md#sub) [w](Big.md#top)\n"),
                    ("Big.md", "# Top\n\n[a](Ext.md#sec-a) [s](Ext.md#sub)\n\n[Ext](Ext.md)\n\n## Sub\n"),
                ],
                None,
            ),
            (
                "slugs where the text of a heading counts first",
                &[
                    ("Big.md", "# Top\n\n[a](#sec-a)\n\n## Sec A\n\n### Sub a\n\n## Sub a\n"),
                    ("s.md", "[x](Big.md#sec-a) [y](Big.md#sub-a) [z](Big.md#sub-a-1) [w](Big.md#Sec%20A)\n"),
                ],
                &["extract", "Big", "--section", "Sec A", "--to", "Ext"],
                &[
                    ("s.md", "[x](Ext.md#sec-a) [y](Ext.md#sub-a) [z](Big.md#sub-a) [w](Ext.md#Sec%20A)\n"),
                    ("Big.md", "# Top\n\n[a](Ext.md#sec-a)\n\n[[Ext]]\n\n## Sub a\n"),
                ],
                None,
            ),
            (
                "a counted slug of a merged note",
                &[
                    GITHUB,
                    ("From.md", "# head\n\n[x](#head)\n"),
                    ("Into.md", "# head\n\n[y](#head) [z](From.md#head)\n"),
                    ("s.md", "[a](From.md#head) [b](Into.md#head)\n"),
                ],
                &["merge", "From", "Into"],
                &[
                    ("Into.md", "# head\n\n[y](#head) [z](Into.md#head-1)\n\n# head\n\n[x](#head-1)\n"),
                    ("s.md", "[a](Into.md#head-1) [b](Into.md#head)\n"),
                ],
                Some("part-twice"),
            ),
        ],
        4,
    );
    let text = text_after_extract();
    assert!(text.contains("[t](Big.md#sub) [u](Big.md#top)"), "{text}");
}

/// Returns the text of a note that was extracted, with links to parts of the note that it comes from.
fn text_after_extract() -> String {
    let vault =
        TestVault::new(&[("Big.md", "# Top\n\n## Sec A\n\n[t](#sub-1) [u](#top)\n\n### Sub\n\n## Sub\n")]);
    run(&vault, NOW, &["extract", "Big", "--section", "Sec A", "--to", "Ext"]);
    text_of(&vault, "Ext.md")
}

#[test]
fn links_that_look_like_something_else_follow() {
    check(
        &[
            (
                "a link around an embed or a link",
                &[
                    OBSIDIAN,
                    ("d/old.md", "x\n"),
                    ("p.png", ""),
                    ("s.md", "[![[p.png]]](d/old.md) [a [[p.png]] b](d/old.md) [![i](p.png)](d/old.md)\n"),
                ],
                &["move", "d/old.md", "d/new.md"],
                &[("s.md", "[![[p.png]]](d/new.md) [a [[p.png]] b](d/new.md) [![i](p.png)](d/new.md)\n")],
                None,
            ),
            (
                "names with a colon",
                &[
                    OBSIDIAN,
                    ("films/Dune: Part Two.md", "x\n"),
                    ("other/Dune: Part Two.txt", ""),
                    ("s.md", "[[films/Dune: Part Two]] [[Dune: Part Two]] [[Dune: Part Two|D]]\n"),
                ],
                &["move", "films", "movies"],
                &[("s.md", "[[Dune: Part Two]] [[Dune: Part Two]] [[Dune: Part Two|D]]\n")],
                None,
            ),
            (
                "a name that has no colon any more",
                &[
                    OBSIDIAN,
                    ("films/Dune: Part Two.md", "x\n"),
                    ("s.md", "[[Dune: Part Two]] [[https://x.y]] ![[Dune: Part Two#H|D]]\n"),
                ],
                &["rename", "Dune: Part Two", "Dune 2"],
                &[("s.md", "[[Dune 2]] [[https://x.y]] ![[Dune 2#H|D]]\n")],
                None,
            ),
            (
                "names with a backtick in adjacent lines",
                &[
                    OBSIDIAN,
                    ("a`b.md", "x\n"),
                    ("d/c`d.md", "y\n"),
                    ("s.md", "[[a`b]]\n[[d/c`d]] `[[a`b]]`\n"),
                ],
                &["move", "d", "e"],
                &[("s.md", "[[a`b]]\n[[c`d]] `[[a`b]]`\n")],
                None,
            ),
            (
                "exact paths stay exact in Obsidian",
                &[
                    OBSIDIAN,
                    ("b.md", "x\n"),
                    ("i.png", ""),
                    ("s.md", "[x](b.md) [y](./b.md#h) [z](b) [[b]] [[b.md]] ![](i.png)\n"),
                ],
                &["move", "b.md", "Q/"],
                &[("s.md", "[x](Q/b.md) [y](./Q/b.md#h) [z](b) [[b]] [[b.md]] ![](i.png)\n")],
                None,
            ),
            (
                "exact paths of a note that moves",
                &[OBSIDIAN, ("b.md", "x\n"), ("s.md", "[x](b.md) [y](./b.md) [[b]]\n")],
                &["move", "s.md", "Q/"],
                &[("Q/s.md", "[x](../b.md) [y](../b.md) [[b]]\n")],
                None,
            ),
            (
                "the settings of Obsidian go before",
                &[
                    (".obsidian/app.json", r#"{"newLinkFormat": "shortest"}"#),
                    ("b.md", "x\n"),
                    ("s.md", "[x](b.md) [y](./b.md)\n"),
                ],
                &["move", "b.md", "Q/"],
                &[("s.md", "[x](b.md) [y](b.md)\n")],
                None,
            ),
            (
                "percent signs",
                &[OBSIDIAN, ("b.md", "x\n"), ("s.md", "[x](b.md) [y](<b.md>) [[b]]\n")],
                &["move", "b.md", "5% of 100%.md"],
                &[("s.md", "[x](5%25%20of%20100%25.md) [y](<5%25 of 100%25.md>) [[5% of 100%]]\n")],
                None,
            ),
        ],
        8,
    );
}

#[test]
fn files_that_html_and_includes_name_follow() {
    check(
        &[
            (
                "HTML on GitHub",
                &[
                    ("img/old.png", ""),
                    ("img/dark.png", ""),
                    (
                        "README.md",
                        "<p align=\"center\">\n<img\n  src=\"img/old.png\" width=1>\n</p>\n\na <a href='./img/old.png'>b</a> <img src=img/old.png>\n\n<picture><source srcset=\"img/dark.png 2x, ./img/old.png 1x\"></picture>\n\n`<img src=\"img/old.png\">` <!-- <img src=\"img/old.png\"> -->\n",
                    ),
                ],
                &["move", "img/old.png", "pics/a \"b.png", "--relaxed"],
                &[(
                    "README.md",
                    "<p align=\"center\">\n<img\n  src=\"pics/a%20%22b.png\" width=1>\n</p>\n\na <a href='./pics/a%20%22b.png'>b</a> <img src=pics/a%20%22b.png>\n\n<picture><source srcset=\"img/dark.png 2x, ./pics/a%20%22b.png 1x\"></picture>\n\n`<img src=\"img/old.png\">` <!-- <img src=\"img/old.png\"> -->\n",
                )],
                None,
            ),
            (
                "HTML of a note that moves",
                &[
                    OBSIDIAN,
                    ("i.png", ""),
                    ("n.md", "<img src=\"i.png\"> <a href=\"https://x.y/i.png\">x</a>\n"),
                ],
                &["move", "n.md", "d/"],
                &[("d/n.md", "<img src=\"../i.png\"> <a href=\"https://x.y/i.png\">x</a>\n")],
                None,
            ),
            (
                "an anchor in HTML",
                &[OBSIDIAN, ("n.md", "# Old\n"), ("s.md", "<a href=\"n.md#old\">x</a> [x](n.md#Old)\n")],
                &["rename-heading", "n", "Old", "New one"],
                &[("s.md", "<a href=\"n.md#new-one\">x</a> [x](n.md#New%20one)\n")],
                None,
            ),
            (
                "includes of a book",
                &[
                    BOOK,
                    ("src/SUMMARY.md", "[a](a.md)\n"),
                    ("src/old.md", "x\n"),
                    ("listings/main.rs", "fn main() {}\n"),
                    (
                        "src/a.md",
                        "{{#include old.md}}\n\n```rust\n{{#rustdoc_include ../listings/main.rs:here}}\n```\n\n\\{{#include old.md}}\n",
                    ),
                ],
                &["move", "src/a.md", "src/deep/a.md"],
                &[(
                    "src/deep/a.md",
                    "{{#include ../old.md}}\n\n```rust\n{{#rustdoc_include ../../listings/main.rs:here}}\n```\n\n\\{{#include old.md}}\n",
                )],
                None,
            ),
            (
                "the alias of a site",
                &[
                    ("site/docusaurus.config.js", ""),
                    ("site/docs/old.md", "x\n"),
                    ("site/docs/s.md", "[x](@site/docs/old.md#y) ![](@site/static/i.png)\n"),
                    ("site/static/i.png", ""),
                ],
                &["move", "site/docs/old.md", "site/docs/b/new.md"],
                &[("site/docs/s.md", "[x](@site/docs/b/new.md#y) ![](@site/static/i.png)\n")],
                None,
            ),
        ],
        5,
    );
}

#[test]
fn ids_and_destinations_are_no_tags() {
    let cases = [
        ("# Title { #proposed-change }", vec![]),
        ("# Title {#id .class} ##", vec![]),
        ("Title { #id key=\"a b\" }\n===", vec![]),
        ("text {: #id }", vec![]),
        ("![i](x.png){ #fig .wide }", vec![]),
        ("see { #tag } here", vec!["tag"]),
        ("# Title { #tag } more", vec!["tag"]),
        ("# Title { #tag not-one }", vec!["tag"]),
        ("text\n[a]: #frag", vec![]),
        ("> quote\n[a]: #frag", vec![]),
        ("[^1]: #tag", vec!["tag"]),
        ("[a]:#frag [b] #tag", vec!["tag"]),
        ("a [b]: #tag", vec!["tag"]),
    ];
    assert_eq!(cases.len(), 13);
    for (text, expect) in cases {
        let found = sidenote::markdown::note::Note::parse(text);
        let tags: Vec<&str> = found.tags.iter().map(|tag| tag.name.as_str()).collect();
        assert_eq!(tags, expect, "{text:?}");
    }
    let vault =
        TestVault::new(&[("mkdocs.yml", ""), ("docs/a.md", "## Part { id=own }\n\n[x](#own) [y](#part)\n")]);
    let reply = vault.store().upkeep().check(false).unwrap();
    let dead: Vec<&str> = reply
        .problems
        .iter()
        .filter(|problem| problem.code == "broken-subpath")
        .map(|problem| problem.message.as_str())
        .collect();
    assert!(matches!(dead.as_slice(), [one] if one.contains("[y](#part)")), "{dead:?}");
}

#[test]
fn a_file_holds_no_note() {
    let vault = TestVault::new(&[("n.md", "x\n"), ("r.md", "y\n")]);
    for args in [
        &["move", "n.md", "r.md/x.md"][..],
        &["move", "n.md", "r.md/"],
        &["new", "T", "--folder", "r.md/sub"],
        &["new", "T", "--folder", "sub/Note.md"],
    ] {
        let output = vault.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && !said.contains("os error"), "{args:?}: {said}");
        assert!(said.contains("r.md is a file") || said.contains("not a folder"), "{args:?}: {said}");
    }
}

#[test]
fn templates_are_out_of_the_way() {
    let vault = TestVault::new(&[
        (".obsidian/templates.json", r#"{"folder": "Templates"}"#),
        (".obsidian/plugins/templater-obsidian/data.json", r#"{"templates_folder": "More/Templater"}"#),
        (
            "Templates/Day.md",
            "# {{title}}\n\n[[{{title}}]] [[<% tp.file.title %>]] [[Gone]]\n\n- [ ] rhubarb\n",
        ),
        ("More/Templater/T.md", "- [ ] rhubarb\n"),
        ("Templates 2/n.md", "[[n]] [[{{date}}]] rhubarb\n\n- [ ] own\n"),
        ("n.md", "[[Gone]]\n"),
    ]);
    let paths = |reply: &Value| -> Vec<String> {
        let list = reply.as_array().cloned().unwrap_or_default();
        list.iter().filter_map(|item| item["path"].as_str().map(str::to_owned)).collect()
    };
    let tasks = json(&vault, NOW, &["tasks"]);
    assert_eq!(paths(&tasks), ["Templates 2/n.md"], "{tasks:#}");
    let found = json(&vault, NOW, &["search", "rhubarb"]);
    assert_eq!(paths(&found["results"]), ["Templates 2/n.md"], "{found:#}");
    let orphans = json(&vault, NOW, &["orphans"]);
    assert!(!orphans.to_string().contains("Templates/"), "{orphans:#}");
    let unresolved = json(&vault, NOW, &["unresolved"]).to_string();
    assert!(
        unresolved.contains("Gone") && !unresolved.contains("{{") && !unresolved.contains("<%"),
        "{unresolved}"
    );
    let reply = vault.store().upkeep().check(false).unwrap();
    let dead: Vec<String> = reply
        .problems
        .iter()
        .filter(|problem| problem.code == "broken-link")
        .map(|problem| problem.path.to_string())
        .collect();
    assert_eq!(dead, ["n.md"]);
    run(&vault, NOW, &["new", "Today", "--template", "Day"]);
    assert!(text_of(&vault, "Today.md").contains("# Today\n\n[[Today]]"));
    run(&vault, NOW, &["move", "n.md", "m.md"]);
}

#[test]
fn folders_with_decomposed_accents_are_named_by_either_spelling() {
    let (nfd, nfc) = ("Cafe\u{301}", "Caf\u{e9}");
    let files = [
        (format!("{nfd}/n.md"), "[y](../a.md)\n".to_owned()),
        ("a.md".to_owned(), format!("[x]({nfc}/n.md) [[n]]\n")),
        (OBSIDIAN.0.to_owned(), "{}".to_owned()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = TestVault::new(&files);
    assert_eq!(json(&vault, NOW, &["list", "--folder", nfc]).as_array().map(Vec::len), Some(1));
    run(&vault, NOW, &["new", "T", "--folder", nfc]);
    assert!(
        vault.root().join(nfd).join("T.md").exists()
            && std::fs::read_dir(vault.root())
                .unwrap()
                .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("Caf"))
                .count()
                == 1
    );
    run(&vault, NOW, &["move", nfc, "Other"]);
    assert_eq!(text_of(&vault, "a.md"), "[x](Other/n.md) [[n]]\n");
}

#[test]
fn a_tag_is_renamed_in_canvases_and_listed_only_if_it_is_one() {
    let canvas = r##"{"nodes":[{"id":"1","type":"text","text":"hi #t/x \"#t\" #t","x":0}],"edges":[]}"##;
    let vault = TestVault::new(&[
        (".obsidian/templates.json", r#"{"folder": "Templates"}"#),
        ("Templates/t.md", "---\nmood: 1\n---\n{{date}} #t\n"),
        ("a.md", "x #t\n"),
        ("c.canvas", canvas),
        ("b.md", "---\ntags: [\"#123\", \"a b\", 007, \"#x\", ok]\n---\nhi #123 #007\n"),
    ]);
    run(&vault, NOW, &["rename-tag", "t", "u"]);
    assert_eq!(text_of(&vault, "c.canvas"), canvas.replace("#t/x", "#u/x").replace(" #t\"", " #u\""));
    // What is out of search is renamed, too.
    run(&vault, NOW, &["rename-property", "mood", "tone"]);
    assert_eq!(text_of(&vault, "Templates/t.md"), "---\ntone: 1\n---\n{{date}} #u\n");
    let tags = json(&vault, NOW, &["tags"]);
    let mut names: Vec<&str> =
        tags.as_array().unwrap().iter().filter_map(|tag| tag["tag"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ok", "u", "u/x", "x"]);
    run(&vault, NOW, &["set", "b", "tags", r##"["#y", "z"]"##]);
    assert!(
        text_of(&vault, "b.md").starts_with("---\ntags: [\"y\", \"z\"]\n---\n"),
        "{}",
        text_of(&vault, "b.md")
    );
}

#[test]
fn patterns_of_dates_that_are_not_supported_are_refused() {
    let vault = TestVault::new(&[
        (".obsidian/daily-notes.json", r#"{"format": "LL"}"#),
        (".obsidian/templates.json", r#"{"folder": "T"}"#),
        ("T/t.md", "{{date:LL}}\n"),
        ("T/ok.md", "{{date:[Lyx] Y-[W]WW Qo}}\n"),
    ]);
    for args in [&["new", "--daily"][..], &["new", "N", "--template", "t"]] {
        let output = vault.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("token LL"), "{args:?}: {said}");
    }
    run(&vault, NOW, &["new", "N", "--template", "ok"]);
    assert!(text_of(&vault, "N.md").contains("Lyx 2026-W47 4th"), "{}", text_of(&vault, "N.md"));
}

#[test]
fn text_behind_an_open_block_is_appended_and_that_is_said() {
    let cases = [
        ("x\n```\ncode\n", Some("code")),
        ("x\n\n%% open\n", Some("comment")),
        ("x\n\n<!-- open\n", Some("HTML")),
        ("x\n\n$$\na\n", None),
        ("x\n```\ncode\n```\n", None),
        ("- a\n  ```\n  b\n", None),
        ("", None),
    ];
    assert_eq!(cases.len(), 7);
    for (text, expect) in cases {
        let vault = TestVault::new(&[("a.md", text)]);
        let reply = json(&vault, NOW, &["append", "a", "more"]);
        let said = reply["plan"]["remarks"].to_string();
        assert_eq!(said.contains("open-block"), expect.is_some(), "{text:?}: {said}");
        assert!(said.contains(expect.unwrap_or("")), "{text:?}: {said}");
        assert!(text_of(&vault, "a.md").starts_with(text), "{text:?}");
    }
}

#[test]
fn a_title_can_be_the_path_of_a_note() {
    let vault = TestVault::new(&[("My sub/x.md", "")]);
    for title in ["Notes.md", "sub/Note.md", "My sub/Plan.md", "a/b", "On docs and x/y.md", ".md"] {
        run(&vault, NOW, &["new", title]);
    }
    run(&vault, NOW, &["new", "deep/T.md", "--folder", "sub"]);
    for path in [
        "Notes.md",
        "sub/Note.md",
        "My sub/Plan.md",
        "a b.md",
        "On docs and x y.md",
        "md.md",
        "sub/deep/T.md",
    ] {
        assert!(vault.root().join(path).exists(), "{path}");
    }
}
