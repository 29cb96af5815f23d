//! Tests what Markdown links mean on GitHub, in books and in sites, and that moves keep them (spec/git.md 1).

use serde_json::Value;
use sidenote::config::LINK_DIALECTS;
use sidenote::text::anchor::{AnchorTable, AnchorTarget, slug};
use sidenote::text::dialect::LinkDialect;
use sidenote::text::note::Note;

use crate::support::{TestVault, json, run, stdout, text_of};

const NOW: &str = "2026-11-21";

/// Moves in a vault, and compares the notes with links afterwards. The index must be as if it were built anew, and undo
/// must restore every byte.
#[track_caller]
fn check_move(files: &[(&str, &str)], (from, to): (&str, &str), expect: &[(&str, &str)]) {
    let vault = TestVault::new(files);
    run(&vault, NOW, &["move", from, to]);
    for (path, text) in expect {
        assert_eq!(text_of(&vault, path), *text, "{path} after {from} -> {to}");
    }
    let fresh = TestVault::copy_of(vault.root());
    assert_eq!(dump(&vault), dump(&fresh), "the index after {from} -> {to}");
    run(&vault, NOW, &["undo"]);
    for (path, text) in files {
        assert_eq!(text_of(&vault, path), *text, "{path} after undo");
    }
}

fn dump(vault: &TestVault) -> Vec<String> {
    let lines = stdout(&vault.run(&["dump"]));
    lines.lines().filter(|line| line.starts_with("link ")).map(str::to_owned).collect()
}

/// Returns the problems of a vault that `check` reports, without orphans, as `path:line code`.
#[track_caller]
fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let vault = TestVault::new(files);
    let reply = vault.store().upkeep().check(false).unwrap();
    let problems = reply.problems.iter().filter(|problem| problem.code != "orphan");
    problems.map(|problem| format!("{}:{} {}", problem.path, problem.line, problem.code)).collect()
}

/// Returns the dialect of the vault and of its folders, as `folder: dialect`, the vault last.
#[track_caller]
fn dialects(files: &[(&str, &str)]) -> Vec<String> {
    let vault = TestVault::new(files);
    run(&vault, NOW, &["list"]);
    let status = json(&vault, NOW, &["status"]);
    let unit =
        |unit: &Value| format!("{}: {}", unit["folder"].as_str().unwrap(), unit["dialect"].as_str().unwrap());
    status["link_dialects"].as_array().unwrap().iter().map(unit).collect()
}

#[test]
fn a_link_on_github_stays_a_path() {
    // The path of a link stays relative, keeps its extension and its form, and the label stays.
    check_move(
        &[
            ("docs/guide.md", "# Guide\n"),
            ("README.md", "[guide](docs/guide.md) [docs/guide.md](./docs/guide.md#guide)\n"),
        ],
        ("docs/guide.md", "docs/handbook.md"),
        &[("README.md", "[guide](docs/handbook.md) [docs/guide.md](./docs/handbook.md#guide)\n")],
    );
    // A note that moves takes its links along: to notes, images, folders, hidden files and out of the vault.
    check_move(
        &[
            (
                "a.md",
                "[b](b.md) ![i](img/i.png?raw=true) [d](img/) [c](.github/x.yml) [o](../other/x.md) [r](/img/i.png)\n",
            ),
            ("b.md", ""),
            ("img/i.png", ""),
        ],
        ("a.md", "deep/er/a.md"),
        &[(
            "deep/er/a.md",
            "[b](../../b.md) ![i](../../img/i.png?raw=true) [d](../../img/) [c](../../.github/x.yml) [o](../../../other/x.md) [r](/img/i.png)\n",
        )],
    );
    // A folder that moves takes the links to it along.
    check_move(
        &[
            ("docs/a/x.md", "[y](y.md) [up](../) [root](/docs/a/y.md)\n"),
            ("docs/a/y.md", ""),
            ("r.md", "[a](docs/a) [a](docs/a/) [x](docs/a/x.md#top)\n"),
        ],
        ("docs/a", "manual/b c"),
        &[
            ("r.md", "[a](manual/b%20c) [a](manual/b%20c/) [x](manual/b%20c/x.md#top)\n"),
            ("manual/b c/x.md", "[y](y.md) [up](../../docs/) [root](/manual/b%20c/y.md)\n"),
        ],
    );
}

#[test]
fn a_link_that_is_dead_on_github_is_left() {
    // A lookup by name would find these, and a path does not.
    check_move(
        &[("docs/guide.md", ""), ("r.md", "[g](guide.md) [g](docs/Guide.md) [g](docs/guide) [[guide]]\n")],
        ("docs/guide.md", "docs/manual.md"),
        &[("r.md", "[g](guide.md) [g](docs/Guide.md) [g](docs/guide) [[manual]]\n")],
    );
}

#[test]
fn a_question_mark_in_a_name_is_encoded() {
    check_move(
        &[("a.md", ""), ("r.md", "[a](a.md) [a](<a.md>)\n")],
        ("a.md", "d/why not.md"),
        &[("r.md", "[a](d/why%20not.md) [a](<d/why not.md>)\n")],
    );
    let vault = TestVault::new(&[("d/why?.md", ""), ("r.md", "[a](d/why%3F.md)\n")]);
    run(&vault, NOW, &["move", "d", "e"]);
    assert_eq!(text_of(&vault, "r.md"), "[a](e/why%3F.md)\n");
}

/// Names that a destination cannot contain as they are, and how the links of a page write them. The file moves there and
/// back.
#[test]
fn every_name_is_encoded_as_a_page_reads_it() {
    let names = [
        ("c#.md", "c%23.md", "c%23.md"),
        ("why?.md", "why%3F.md", "why%3F.md"),
        ("100%.md", "100%25.md", "100%25.md"),
        ("a%20b.md", "a%2520b.md", "a%2520b.md"),
        ("a%FFb.md", "a%25FFb.md", "a%25FFb.md"),
        ("a b.md", "a%20b.md", "a b.md"),
        ("a+b.md", "a+b.md", "a+b.md"),
        ("a[b].md", "a[b].md", "a[b].md"),
        ("é.md", "é.md", "é.md"),
        ("a&amp;b.md", "a%26amp%3Bb.md", "a%26amp%3Bb.md"),
        ("d#e/f#.md", "d%23e/f%23.md", "d%23e/f%23.md"),
    ];
    let mut count = 0;
    for config in [("none.txt", ""), ("book.toml", "[book]\nsrc = \".\"\n"), ("mkdocs.yml", "docs_dir: .\n")]
    {
        for (name, plain, angle) in names {
            let text = |folder: &str, plain: &str, angle: &str| {
                format!(
                    "---\nup: \"[x]({folder}{plain})\"\n---\n[x]({folder}{plain}#top) [x](<{folder}{angle}>) ![x]({folder}{plain}?raw=1) [x][r]\n\n[r]: {folder}{plain} 'T'\n"
                )
            };
            let there = text("in/", plain, angle);
            let vault = TestVault::new(&[config, (&format!("in/{name}"), "# Top\n"), ("s.md", &there)]);
            let checked = vault.store().upkeep().check(false).unwrap();
            let broken: Vec<_> =
                checked.problems.iter().filter(|problem| problem.code == "broken-link").collect();
            assert!(broken.is_empty(), "{name}: {broken:?}");
            run(&vault, NOW, &["move", "in", "out"]);
            assert_eq!(text_of(&vault, "s.md"), text("out/", plain, angle), "{name} in {}", config.0);
            let fresh = TestVault::copy_of(vault.root());
            assert_eq!(dump(&vault), dump(&fresh), "{name} in {}", config.0);
            let links = json(&vault, NOW, &["links", "s.md"]);
            assert_eq!(links["outgoing"].as_array().unwrap().len(), 5, "{name}: {links}");
            count += 1;
        }
    }
    assert_eq!(count, 33);
}

#[test]
fn a_link_to_a_name_with_a_sign_is_found_when_the_file_appears() {
    let vault = TestVault::new(&[("s.md", "[x](c%23.md) [y](c%23.md#h)\n")]);
    assert_eq!(dump(&vault), ["link s.md:1 #0 c#.md -> -", "link s.md:1 #1 c#.md -> -"]);
    vault.write("c#.md", "");
    assert_eq!(dump(&vault), ["link s.md:1 #0 c#.md -> c#.md", "link s.md:1 #1 c#.md -> c#.md"]);
    vault.remove("c#.md");
    assert_eq!(dump(&vault), ["link s.md:1 #0 c#.md -> -", "link s.md:1 #1 c#.md -> -"]);
    // Obsidian ends the path there.
    vault.write(".obsidian/app.json", "{}");
    vault.write("c.md", "");
    assert_eq!(dump(&vault), ["link s.md:1 #0 c#.md -> c.md", "link s.md:1 #1 c#.md -> c.md"]);
    run(&vault, NOW, &["move", "c.md", "d.md"]);
    assert_eq!(text_of(&vault, "s.md"), "[x](d.md%23.md) [y](d.md%23.md#h)\n");
}

#[test]
fn a_query_and_a_colon_in_a_name_are_told_apart_from_the_path() {
    check_move(
        &[
            (
                "a.md",
                "[o](../o.md?x=1#y) [h](.github/x?raw=1) [q](why%3F.md?raw=1) [c](c%3A%20d.md) [e](../w%3F.md)\n",
            ),
            ("why?.md", ""),
            ("c: d.md", ""),
        ],
        ("a.md", "deep/a.md"),
        &[(
            "deep/a.md",
            "[o](../../o.md?x=1#y) [h](../.github/x?raw=1) [q](../why%3F.md?raw=1) [c](../c:%20d.md) [e](../../w%3F.md)\n",
        )],
    );
}

#[test]
fn a_link_in_a_property_is_a_path_too() {
    let front = |path: &str, again: &str| {
        format!(
            "---\nup: \"[The guide]({path})\" # why\nsee:\n  - '[guide]({path}#x)'\n  - \"[[{again}]]\"\nmap: {{a: [\"[g](<{path}>)\"]}}\nfold: >-\n  [g]({path})\n---\n[guide]({path})\n"
        )
    };
    let mut count = 0;
    for config in [("none.txt", ""), ("book.toml", "[book]\nsrc = \".\"\n"), ("mkdocs.yml", "docs_dir: .\n")]
    {
        check_move(
            &[config, ("docs/guide.md", ""), ("n.md", &front("docs/guide.md", "guide"))],
            ("docs/guide.md", "docs/in/handbook.md"),
            &[("n.md", &front("docs/in/handbook.md", "handbook"))],
        );
        check_move(
            &[config, ("docs/guide.md", ""), ("n.md", &front("docs/guide.md", "guide"))],
            ("n.md", "deep/n.md"),
            &[("deep/n.md", &front("../docs/guide.md", "guide"))],
        );
        count += 1;
    }
    assert_eq!(count, 3);
    // A value that must not be written keeps its bytes, and the reply says so.
    let text = "---\na: &x \"[g](docs/guide.md)\"\nb: *x\n---\n";
    let vault = TestVault::new(&[("docs/guide.md", ""), ("n.md", text)]);
    let told = json(&vault, NOW, &["move", "docs/guide.md", "docs/manual.md"]);
    assert_eq!(text_of(&vault, "n.md"), text);
    assert!(told.to_string().contains("yaml-style"), "{told}");
}

#[test]
fn a_link_in_a_book_keeps_the_name_of_its_page() {
    let book = ("book.toml", "[book]\ntitle = \"b\"\n");
    check_move(
        &[
            book,
            ("src/SUMMARY.md", "- [One](one.md)\n"),
            (
                "src/one.md",
                "[two](sub/two.html#x) [two](sub/two.md) [index](sub/index.html) [root](/one.html)\n",
            ),
            ("src/sub/two.md", "[one](../one.html)\n"),
            ("src/sub/README.md", ""),
        ],
        ("src/sub", "src/part"),
        &[
            (
                "src/one.md",
                "[two](part/two.html#x) [two](part/two.md) [index](part/index.html) [root](/one.html)\n",
            ),
            ("src/part/two.md", "[one](../one.html)\n"),
        ],
    );
    // A book that moves is still one.
    check_move(
        &[("b/book.toml", ""), ("b/src/one.md", "[two](two.html) [two](/two.html)\n"), ("b/src/two.md", "")],
        ("b", "docs/book"),
        &[("docs/book/src/one.md", "[two](two.html) [two](/two.html)\n")],
    );
    // A page that leaves its book is named by its file.
    check_move(
        &[("b/book.toml", ""), ("b/src/one.md", "[two](two.html)\n"), ("b/src/two.md", "[one](one.html)\n")],
        ("b/src/one.md", "one.md"),
        &[("one.md", "[two](b/src/two.md)\n"), ("b/src/two.md", "[one](../../one.md)\n")],
    );
    check_move(
        &[book, ("src/one.md", "[two](two.html)\n"), ("src/two.md", "[one](/one.html)\n")],
        ("src/one.md", "src/deep/first.md"),
        &[("src/two.md", "[one](/deep/first.html)\n"), ("src/deep/first.md", "[two](../two.html)\n")],
    );
}

#[test]
fn a_link_in_a_site_can_omit_the_extension() {
    check_move(
        &[
            ("mkdocs.yml", "site_name: x\n"),
            ("docs/a.md", "[b](b) [c](c/) [c](c/index.md) [x](/api/outside)\n"),
            ("docs/b.md", ""),
            ("docs/c/index.md", ""),
        ],
        ("docs/a.md", "docs/d/a.md"),
        &[("docs/d/a.md", "[b](../b) [c](../c/) [c](../c/index.md) [x](/api/outside)\n")],
    );
}

#[test]
fn a_new_link_is_written_in_the_form_that_is_followed() {
    let notes = [("docs/a b.md", "# A\n\n## Part\n\nText.\n"), ("docs/deep/c.md", "# C\n")];
    let linked = |marker: (&str, &str)| {
        let vault = TestVault::new(&[&notes[..], &[marker]].concat());
        run(&vault, NOW, &["link", "docs/a b.md", "docs/deep/c.md"]);
        run(&vault, NOW, &["extract", "docs/a b.md", "--section", "Part", "--to", "part"]);
        (text_of(&vault, "docs/a b.md"), text_of(&vault, "docs/deep/c.md"))
    };
    // Where wikilinks are plain text, it is a path from the folder of the note.
    let (a, c) = linked(("mkdocs.yml", ""));
    assert_eq!(a, "# A\n\n[part](part.md)\n\n## Related\n\n- [c](deep/c.md)\n");
    assert_eq!(c, "# C\n\n## Related\n\n- [a b](../a%20b.md)\n");
    let (a, c) = linked((".obsidian/app.json", "{}"));
    assert_eq!(a, "# A\n\n[[part]]\n\n## Related\n\n- [[c]]\n");
    assert_eq!(c, "# C\n\n## Related\n\n- [[a b]]\n");
}

#[test]
fn an_exact_path_stays_one_in_a_vault_of_obsidian() {
    let files = [
        (".obsidian/app.json", "{}"),
        ("n/guide.md", ""),
        ("r.md", "[g](n/guide.md) [g](guide.md) [[n/guide]]\n"),
    ];
    check_move(
        &files,
        ("n/guide.md", "n/manual.md"),
        &[("r.md", "[g](n/manual.md) [g](manual.md) [[manual]]\n")],
    );
    // A form that is set is meant.
    let set = [(".obsidian/app.json", "{\"newLinkFormat\": \"shortest\"}"), files[1], files[2]];
    check_move(
        &set,
        ("n/guide.md", "n/manual.md"),
        &[("r.md", "[g](manual.md) [g](manual.md) [[manual]]\n")],
    );
}

#[test]
fn the_dialect_is_found() {
    assert_eq!(dialects(&[("a.md", "")]), [": github"]);
    assert_eq!(dialects(&[("a.md", ""), (".obsidian/app.json", "{}")]), [": obsidian"]);
    assert_eq!(
        dialects(&[("b/book.toml", "[book]\nsrc = \"text\"\n"), ("b/text/a.md", "")]),
        ["b/text: mdbook", ": github"]
    );
    assert_eq!(dialects(&[("x/src/SUMMARY.md", ""), ("a.md", "")]), ["x/src: mdbook", ": github"]);
    assert_eq!(dialects(&[("mkdocs.yml", "docs_dir: 'd'\n"), ("d/a.md", "")]), ["d: site", ": github"]);
    assert_eq!(dialects(&[("_config.yml", ""), ("a.md", "")]), [": site"]);
    // So many links that are exact relative paths decide in a vault of Obsidian, unless it says how it writes links.
    let links: String = (0..20).map(|at| format!("[{at}](d/n.md)\n")).collect();
    let app = (".obsidian/app.json", "{}");
    assert_eq!(dialects(&[app, ("a.md", &links), ("d/n.md", "")]), [": github"]);
    assert_eq!(dialects(&[app, ("a.md", &links[1..]), ("d/n.md", "")]), [": obsidian"]);
    let wrong = format!("{links}[x](d/none.md)\n[y](d/none.md)\n");
    assert_eq!(dialects(&[app, ("a.md", &wrong), ("d/n.md", "")]), [": obsidian"]);
    let says = (".obsidian/app.json", "{\"newLinkFormat\": \"relative\"}");
    assert_eq!(dialects(&[says, ("a.md", &links), ("d/n.md", "")]), [": obsidian"]);
    // Settings decide before all.
    let settings =
        "[links]\ndialect = \"obsidian\"\n[[links.folder]]\npath = \"docs\"\ndialect = \"github\"\n";
    let set = (".sidenote/config.toml", settings);
    assert_eq!(dialects(&[set, ("mkdocs.yml", ""), ("docs/a.md", "")]), ["docs: github", ": obsidian"]);
}

#[test]
fn links_are_found_again_when_the_dialect_changes() {
    let vault = TestVault::new(&[("d/n.md", ""), ("a.md", "[n](n.md)\n")]);
    assert_eq!(dump(&vault), ["link a.md:1 #0 n.md -> -"]);
    vault.write(".obsidian/app.json", "{}");
    assert_eq!(dump(&vault), ["link a.md:1 #0 n.md -> d/n.md"]);
    vault.write("mkdocs.yml", "docs_dir: .\n");
    assert_eq!(dump(&vault), ["link a.md:1 #0 n.md -> -"]);
    vault.remove("mkdocs.yml");
    assert_eq!(dump(&vault), ["link a.md:1 #0 n.md -> d/n.md"]);
}

#[test]
fn only_what_is_broken_where_it_is_published_is_reported() {
    let github = [
        (
            "a.md",
            "[x](b.md#the-title) [x](b.md#the-title-1) [x](b.md#anchor) [d](d/) [o](../o.md) [s](/elsewhere/page)\n[x](b.md#The%20title)\n[x](B.md)\n[x](d/none.md)\n[x](/d/none.md)\n[[b#The title]]\n",
        ),
        ("b.md", "# The title\n<a name=\"anchor\"></a>\n> ## The title\n"),
        ("d/c.md", ""),
    ];
    let expect = ["a.md:2 broken-subpath", "a.md:3 broken-link", "a.md:4 broken-link", "a.md:5 broken-link"];
    assert_eq!(problems(&github), expect);
    let book = [
        ("book.toml", ""),
        ("src/a.md", "[x](b.html#own) [x](b.html#t) [[b]]\n"),
        ("src/b.md", "# T\n## U {#own}\n"),
    ];
    assert_eq!(problems(&book), ["src/a.md:1 wikilink-as-text"]);
    // In Obsidian's dialect, an anchor is the text of a heading.
    let obsidian =
        [(".obsidian/app.json", "{}"), ("a.md", "[x](b.md#The%20title)\n[x](b.md#the-title)\n"), github[1]];
    assert_eq!(problems(&obsidian), ["a.md:2 broken-subpath"]);
}

#[test]
fn a_link_to_a_folder_is_not_unresolved() {
    let vault = TestVault::new(&[("a.md", "[d](d/) [n](none/)\n"), ("d/b.md", "")]);
    let links = json(&vault, NOW, &["links", "a"]);
    assert_eq!(links["outgoing"][0]["resolved"], "d/");
    assert_eq!(links["unresolved"][0]["original"], "[n](none/)");
    assert_eq!(json(&vault, NOW, &["status"])["unresolved"], 1);
    assert_eq!(json(&vault, NOW, &["unresolved"]).as_array().unwrap().len(), 1);
}

/// Renames a heading of `t.md`, and returns the note `s.md` with links to it.
#[track_caller]
fn check_heading(config: &[(&str, &str)], target: &str, links: &str, expect: &str) {
    let files = [config, &[("t.md", target), ("s.md", links)]].concat();
    let vault = TestVault::new(&files);
    run(&vault, NOW, &["rename-heading", "t.md", "Old one", "New & other"]);
    assert_eq!(text_of(&vault, "s.md"), expect);
    run(&vault, NOW, &["undo"]);
    assert_eq!(text_of(&vault, "s.md"), links);
}

#[test]
fn a_slug_stays_a_slug_when_a_heading_is_renamed() {
    let links = "[t](t.md#old-one) [[t#Old one]] [t](t.md#old-one-1)\n";
    let target = "# Old one\n## Old one\n";
    // The second heading of that name is the first one then, so links to it change too.
    let expect = "[t](t.md#new--other) [[t#New & other]] [t](t.md#old-one)\n";
    check_heading(&[], target, links, expect);
    check_heading(&[("book.toml", "[book]\nsrc = \".\"\n")], target, links, expect);
    check_heading(&[(".obsidian/app.json", "{}")], target, links, expect);
    check_heading(&[], "# Old one\n", "[t](t.md#Old%20one)\n", "[t](t.md#Old%20one)\n");
    check_heading(
        &[(".obsidian/app.json", "{}")],
        "# Old one\n",
        "[t](t.md#Old%20one)\n",
        "[t](t.md#New%20&%20other)\n",
    );
}

#[test]
fn a_renamed_heading_misleads_no_other_link() {
    let rename = |target: &str, links: &str, (old, new): (&str, &str)| {
        let vault = TestVault::new(&[("t.md", target), ("s.md", links)]);
        let forced = if new == "A" { &["--force"][..] } else { &[] };
        let done = vault.run(&[&["rename-heading", "t.md", old, new], forced].concat());
        (done.status.success(), text_of(&vault, "s.md"))
    };
    let said = |text: &str| text.to_owned();
    // A heading gets the slug of one below it, whose slug is counted then. The texts clash, so this has to be forced.
    let links = "[b](t.md#b) [a](t.md#a) [t](t.md#%C3%BCber-b)\n";
    let found = rename("# B\n# A!\n# Über b\n", links, ("B", "A"));
    assert_eq!(found, (true, said("[b](t.md#a) [a](t.md#a-1) [t](t.md#%C3%BCber-b)\n")));
    // An encoded slug stays encoded once.
    let found = rename("# Über b\n# Über b\n", "[t](t.md#%C3%BCber-b-1)\n", ("Über b", "Öl"));
    assert_eq!(found, (true, said("[t](t.md#%C3%BCber-b)\n")));
    // A heading in a quote is counted too.
    let found = rename("# B\n\n> # B\n", "[b](t.md#b) [q](t.md#b-1)\n", ("B", "C"));
    assert_eq!(found, (true, said("[b](t.md#c) [q](t.md#b)\n")));
    // An element with the id would be hidden.
    let target = "# B\n<a id=\"c\"></a>\n";
    let found = rename(target, "[c](t.md#c)\n", ("B", "C"));
    assert_eq!(found, (false, said("[c](t.md#c)\n")));
}

#[test]
fn slugs_are_those_of_the_sites() {
    // Checked against github-slugger 2.0.0 and mdBook 0.4.
    let cases = [
        ("Heading", "heading", "heading"),
        ("  spaced  out ", "spaced--out", "spaced--out"),
        ("Über uns & Co.", "über-uns--co", "Über-uns--co"),
        ("C++ / Rust: 1.0", "c--rust-10", "c--rust-10"),
        ("snake_case-and–dash", "snake_case-anddash", "snake_case-anddash"),
        ("后缀链接树", "后缀链接树", "后缀链接树"),
        ("x² + ½", "x--", "x²--½"),
        ("e\u{301}te\u{301}", "e\u{301}te\u{301}", "ete"),
    ];
    for (text, github, mdbook) in cases {
        assert_eq!(slug(LinkDialect::Github, text.trim()), github, "{text:?}");
        assert_eq!(slug(LinkDialect::Mdbook, text), mdbook, "{text:?}");
    }
}

#[test]
fn anchors_are_those_of_the_page() {
    let text = "---\nt: 1\n---\n# A `code` and *more* [link](x.md)\n\n## A\n\nA\n---\n\n- # A\n\n<div id='Box' class=x><a name=spot>\n\n![alt](i.png) ![alt](i.png)\n# ![alt](i.png) Pic\n# Same {#own}\n";
    let note = Note::parse(text);
    let table = AnchorTable::new(LinkDialect::Github, text, &note);
    let heading = |index| Some(AnchorTarget::Heading(index));
    let cases = [
        ("#a-code-and-more-link", heading(0)),
        ("#a", heading(1)),
        ("#a-1", heading(2)),
        ("#a-2", Some(AnchorTarget::Other(0))),
        ("#Box", Some(AnchorTarget::Other(1))),
        ("#spot", Some(AnchorTarget::Other(2))),
        ("#pic", heading(3)),
        ("#same-own", heading(4)),
        ("#own", None),
        ("#none", None),
    ];
    for (subpath, expect) in cases {
        assert_eq!(table.find(subpath), expect, "{subpath}");
    }
    let book = AnchorTable::new(LinkDialect::Mdbook, text, &note);
    assert_eq!((book.find("#own"), book.find("#same-own")), (heading(4), None));
}

#[test]
fn the_settings_know_the_dialects() {
    let names: Vec<&str> = LinkDialect::ALL.iter().map(|dialect| dialect.name()).collect();
    assert_eq!(names, LINK_DIALECTS);
    let vault = TestVault::new(&[(".sidenote/config.toml", "[links]\ndialect = \"gitlab\"\n")]);
    let found = vault.run(&["status"]);
    assert!(crate::support::stderr(&found).contains("use auto, obsidian, github, mdbook, site"));
}
