//! Tests what Markdown links mean on GitHub, in books and in sites, and that moves keep them (docs/spec/git.md 1).

use serde_json::{Value, json};
use sidenote::config::LINK_DIALECTS;
use sidenote::index::silent;
use sidenote::links::anchor::{AnchorTable, AnchorTarget, slug};
use sidenote::links::dialect::LinkDialect;
use sidenote::markdown::note::Note;

use crate::support::{TestVault, json, run, stderr, stdout, text_of};

const NOW: &str = "2026-11-21";
/// The settings of a vault that is published on GitHub.
const GITHUB: (&str, &str) = (".sidenote/config.toml", "[links]\ndialect = \"github\"\n");

/// Moves in a vault, and compares the notes with links afterwards. The index must be as if it were built anew, and undo
/// must restore every byte.
#[track_caller]
fn check_move(files: &[(&str, &str)], (from, to): (&str, &str), expect: &[(&str, &str)]) {
    let vault = TestVault::new(files);
    run(&vault, NOW, &["move", from, to]);
    for (path, text) in expect {
        assert_eq!(text_of(&vault, path), *text, "{path} after {from} -> {to}");
    }
    assert_eq!(dump(&vault), dump(&copy_of(&vault)), "the index after {from} -> {to}");
    run(&vault, NOW, &["undo"]);
    for (path, text) in files {
        assert_eq!(text_of(&vault, path), *text, "{path} after undo");
    }
}

/// Copies the files and settings of a vault, without its index.
fn copy_of(vault: &TestVault) -> TestVault {
    let copy = TestVault::copy_of(vault.root());
    if vault.root().join(GITHUB.0).exists() {
        copy.write(GITHUB.0, GITHUB.1);
    }
    copy
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
            GITHUB,
            ("docs/guide.md", "# Guide\n"),
            ("README.md", "[guide](docs/guide.md) [docs/guide.md](./docs/guide.md#guide)\n"),
        ],
        ("docs/guide.md", "docs/handbook.md"),
        &[("README.md", "[guide](docs/handbook.md) [docs/guide.md](./docs/handbook.md#guide)\n")],
    );
    // A note that moves takes its links along: to notes, images, folders, hidden files and out of the vault.
    check_move(
        &[
            GITHUB,
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
            GITHUB,
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
        &[GITHUB, ("docs/guide.md", ""), ("r.md", "[g](guide.md) [g](docs/Guide.md) [[guide]]\n")],
        ("docs/guide.md", "docs/manual.md"),
        &[("r.md", "[g](guide.md) [g](docs/Guide.md) [[manual]]\n")],
    );
}

/// A path without its extension, or from the root, is followed if nothing else fits. When it has to change, it becomes one that is
/// followed everywhere.
#[test]
fn a_path_by_other_rules_is_followed_where_nothing_else_fits() {
    let links = "[g](docs/guide) [g](docs/guide.md) [r](docs/guide#x)\n";
    check_move(
        &[GITHUB, ("docs/guide.md", "# X\n"), ("in/r.md", links)],
        ("docs/guide.md", "docs/manual.md"),
        &[("in/r.md", "[g](../docs/manual.md) [g](../docs/manual.md) [r](../docs/manual.md#x)\n")],
    );
    // A file where the path leads is taken first, also when it comes later.
    let vault = TestVault::new(&[GITHUB, ("docs/guide.md", ""), ("in/r.md", "[g](docs/guide)\n")]);
    assert_eq!(dump(&vault), ["link in/r.md:1 #0 docs/guide -> docs/guide.md"]);
    let said = json(&vault, NOW, &["check", "--only", "path-not-followed"]);
    let problem = &said["problems"][0];
    assert_eq!(
        (&problem["line"], &problem["severity"], &problem["fixes"][0]["edits"][0]["text"]),
        (&json!(1), &json!("warning"), &json!("../docs/guide.md"))
    );
    vault.write("in/docs/guide.md", "");
    assert_eq!(dump(&vault), ["link in/r.md:1 #0 docs/guide -> in/docs/guide.md"]);
    vault.remove("in/docs/guide.md");
    assert_eq!(dump(&vault), ["link in/r.md:1 #0 docs/guide -> docs/guide.md"]);
}

#[test]
fn a_question_mark_in_a_name_is_encoded() {
    check_move(
        &[GITHUB, ("a.md", ""), ("r.md", "[a](a.md) [a](<a.md>)\n")],
        ("a.md", "d/why not.md"),
        &[("r.md", "[a](d/why%20not.md) [a](<d/why not.md>)\n")],
    );
    let vault = TestVault::new(&[GITHUB, ("d/why?.md", ""), ("r.md", "[a](d/why%3F.md)\n")]);
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
    for config in [GITHUB, ("book.toml", "[book]\nsrc = \".\"\n"), ("mkdocs.yml", "docs_dir: .\n")] {
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
            assert_eq!(dump(&vault), dump(&copy_of(&vault)), "{name} in {}", config.0);
            let links = json(&vault, NOW, &["links", "s.md"]);
            assert_eq!(links["outgoing"].as_array().unwrap().len(), 5, "{name}: {links}");
            count += 1;
        }
    }
    assert_eq!(count, 33);
}

#[test]
fn a_link_to_a_name_with_a_sign_is_found_when_the_file_appears() {
    let vault = TestVault::new(&[GITHUB, ("s.md", "[x](c%23.md) [y](c%23.md#h)\n")]);
    assert_eq!(dump(&vault), ["link s.md:1 #0 c#.md -> -", "link s.md:1 #1 c#.md -> -"]);
    vault.write("c#.md", "");
    assert_eq!(dump(&vault), ["link s.md:1 #0 c#.md -> c#.md", "link s.md:1 #1 c#.md -> c#.md"]);
    vault.remove("c#.md");
    assert_eq!(dump(&vault), ["link s.md:1 #0 c#.md -> -", "link s.md:1 #1 c#.md -> -"]);
    // Obsidian ends the path there.
    vault.remove(GITHUB.0);
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
            GITHUB,
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
    for config in [GITHUB, ("book.toml", "[book]\nsrc = \".\"\n"), ("mkdocs.yml", "docs_dir: .\n")] {
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
    let vault = TestVault::new(&[GITHUB, ("docs/guide.md", ""), ("n.md", text)]);
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
        &[
            ("b/book.toml", ""),
            (".git/HEAD", "ref: refs/heads/main\n"),
            ("b/src/one.md", "[two](two.html)\n"),
            ("b/src/two.md", "[one](one.html)\n"),
        ],
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
    let app = (".obsidian/app.json", "{}");
    let files = [app, ("n/guide.md", ""), ("r.md", "[g](n/guide.md) [g](guide.md) [[n/guide]]\n")];
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
    // A file beside the note is one folder away afterwards, though Obsidian would find it by its name.
    check_move(
        &[app, ("a.md", "[b](b.md) [b](./b.md) [b](<b.md> 'T') [[b]]\n"), ("b.md", "")],
        ("b.md", "Q/b.md"),
        &[("a.md", "[b](Q/b.md) [b](./Q/b.md) [b](<Q/b.md> 'T') [[b]]\n")],
    );
    check_move(
        &[app, ("a.md", "[b](b.md) [b](./b.md) ![i](i.png)\n"), ("b.md", ""), ("i.png", "")],
        ("a.md", "Q/a.md"),
        &[("Q/a.md", "[b](../b.md) [b](../b.md) ![i](../i.png)\n")],
    );
    // So does a path from the root, with or without its extension.
    check_move(
        &[app, ("p/jack.md", ""), ("c/acme.md", "[j](p/jack.md) [j](p/jack) [j](/p/jack.md) [j](/p/jack)\n")],
        ("p/jack.md", "q/jack-davis.md"),
        &[("c/acme.md", "[j](q/jack-davis.md) [j](q/jack-davis) [j](/q/jack-davis.md) [j](/q/jack-davis)\n")],
    );
}

/// Returns the dialect of the vault and why, with the numbers of links that lead to a file under each dialect.
fn choice(vault: &TestVault) -> (String, String, [i64; 5]) {
    run(vault, NOW, &["list"]);
    let status = json(vault, NOW, &["status"]);
    let unit = status["link_dialects"].as_array().unwrap().last().unwrap().clone();
    let counts = &status["dialect_counts"];
    let numbers =
        ["links", "obsidian", "github", "mdbook", "site"].map(|name| counts[name].as_i64().unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&unit["dialect"]), text(&unit["reason"]), numbers)
}

#[test]
fn the_dialect_is_found() {
    let repository = (".git/HEAD", "ref: refs/heads/main\n");
    assert_eq!(dialects(&[("a.md", "")]), [": obsidian"]);
    assert_eq!(dialects(&[repository, ("a.md", "")]), [": github"]);
    assert_eq!(dialects(&[repository, ("a.md", ""), (".obsidian/app.json", "{}")]), [": obsidian"]);
    assert_eq!(
        dialects(&[("b/book.toml", "[book]\nsrc = \"text\"\n"), ("b/text/a.md", "")]),
        ["b/text: mdbook", ": obsidian"]
    );
    assert_eq!(dialects(&[("x/src/SUMMARY.md", ""), ("a.md", "")]), ["x/src: mdbook", ": obsidian"]);
    assert_eq!(dialects(&[("mkdocs.yml", "docs_dir: 'd'\n"), ("d/a.md", "")]), ["d: site", ": obsidian"]);
    assert_eq!(dialects(&[("_config.yml", ""), ("a.md", "")]), [": site"]);
    // Settings decide before all.
    let settings =
        "[links]\ndialect = \"obsidian\"\n[[links.folder]]\npath = \"docs\"\ndialect = \"github\"\n";
    let set = (".sidenote/config.toml", settings);
    assert_eq!(dialects(&[set, ("mkdocs.yml", ""), ("docs/a.md", "")]), ["docs: github", ": obsidian"]);
}

#[test]
fn the_links_decide_where_no_file_does() {
    const CHOSEN: &str = "most links lead to a file so";
    const UNDECIDED: &str = "the links do not decide";
    let times = |text: &str, count: usize| text.repeat(count);
    let (exact, by_name) = ("[x](../d/n.md)\n", "[x](n.md)\n");
    let (rooted, bare, page) = ("[x](d/n)\n", "[x](../d/n)\n", "[x](../d/n.html)\n");
    // The note is `s/a.md`, and the file that the links mean `d/n.md`.
    let cases: [(&str, String, bool, (&str, &str)); 12] = [
        (
            "many exact paths do not outvote Obsidian's settings",
            times(exact, 25),
            true,
            ("obsidian", ".obsidian"),
        ),
        ("exact paths lead everywhere", times(exact, 25), false, ("obsidian", UNDECIDED)),
        ("paths from the root", times(rooted, 20), false, ("obsidian", CHOSEN)),
        ("names", times(by_name, 20), false, ("obsidian", CHOSEN)),
        (
            "paths without the extension lead on a site, and in Obsidian",
            times(bare, 20),
            false,
            ("obsidian", UNDECIDED),
        ),
        ("pages of a book", times(page, 20), false, ("site", CHOSEN)),
        ("few names in many paths", times(exact, 99) + by_name, false, ("obsidian", UNDECIDED)),
        (
            "wikilinks are text on a page",
            times("[[n]]\n", 30) + &times(exact, 20),
            false,
            ("obsidian", CHOSEN),
        ),
        ("dead links decide nothing", times("[x](../e/n.md) [[none]]\n", 30), false, ("obsidian", UNDECIDED)),
        ("folders of a site", times("[x](../f/)\n", 20), false, ("site", CHOSEN)),
        (
            "links within the note do not count",
            times("[x](#h) [[#h]] [x](https://a.b/c.md)\n", 9),
            false,
            ("obsidian", UNDECIDED),
        ),
        ("four links decide nothing", times(exact, 9) + &times(page, 4), false, ("obsidian", UNDECIDED)),
    ];
    let mut count = 0;
    for (what, links, has_settings, (dialect, reason)) in cases {
        let mut files = vec![("s/a.md", links.as_str()), ("d/n.md", ""), ("f/index.md", "")];
        if has_settings {
            files.push((".obsidian/app.json", "{}"));
        }
        let (found, why, counts) = choice(&TestVault::new(&files));
        assert_eq!((found.as_str(), why.as_str()), (dialect, reason), "{what}: {counts:?}");
        count += 1;
    }
    assert_eq!(count, 12);
    // In a repository, the links are those of GitHub where they lead there as well.
    let repository = (".git/HEAD", "ref: refs/heads/main\n");
    let links = times(exact, 20);
    let (found, why, counts) = choice(&TestVault::new(&[repository, ("s/a.md", &links), ("d/n.md", "")]));
    assert_eq!((found.as_str(), why.starts_with(UNDECIDED), counts), ("github", true, [20; 5]));
    let links = times(rooted, 20);
    let (found, why, counts) = choice(&TestVault::new(&[repository, ("s/a.md", &links), ("d/n.md", "")]));
    assert_eq!((found.as_str(), why.as_str(), counts), ("obsidian", CHOSEN, [20, 20, 0, 0, 0]));
}

#[test]
fn the_dialect_changes_only_when_another_one_leads_clearly() {
    let repository = (".git/HEAD", "ref: refs/heads/main\n");
    let links =
        |exact: usize, by_name: usize| "[x](../d/n.md)\n".repeat(exact) + &"[x](n.md)\n".repeat(by_name);
    let vault = TestVault::new(&[repository, ("s/a.md", &links(100, 4)), ("d/n.md", "")]);
    // The first choice is no change.
    assert!(!stderr(&vault.run(&["list"])).contains("from now on"));
    assert_eq!(choice(&vault).0, "github");
    // 8 of 108 links are a margin that decides, and not enough for a change.
    vault.write("s/a.md", links(100, 8));
    let (dialect, _, counts) = choice(&vault);
    assert_eq!((dialect.as_str(), counts), ("github", [108, 108, 100, 100, 100]));
    // In a repository, links that only a lookup finds may be those of files that moved.
    vault.write("s/a.md", links(100, 90));
    assert_eq!(choice(&vault).0, "github");
    vault.write("s/a.md", links(100, 101));
    let told = stderr(&vault.run(&["list"]));
    assert!(
        told.contains(
            "Markdown links are read by the rules of obsidian from now on, and no longer by those of github"
        ) && told.contains("of 201 links, 201 lead to a file by obsidian and 100 by github"),
        "{told}"
    );
    assert_eq!(choice(&vault).0, "obsidian");
    // The way back is as long.
    vault.write("s/a.md", links(100, 30));
    assert_eq!(choice(&vault).0, "obsidian");
    // Links that the index reads by the rules of Obsidian are checked by them.
    let checked = json(&vault, NOW, &["check", "--only", "broken-link"]);
    assert_eq!(checked["problems"], json!([]));
}

/// Each batch adds and takes away. The sums are those of an index that is built anew.
#[test]
fn the_counts_of_links_are_those_of_a_new_index() {
    const TEXT: &str = "[a](n.md) [b](../d/n.md) [c](d/n) [d](../d/n.html) [e](../d/) [f](..) [g](../d/n?x=1) [[n]] [[d/n]] [h](docs) [i](v1.0) ![[i.png]] [j](/d/n.md)\n";
    let files = [
        "d/n.md",
        "s/n.md",
        "d/index.md",
        "d/README.md",
        "d/n.mdx",
        "d/n.html",
        "d/n",
        "docs.md",
        "s/docs/index.md",
        "docs/index.md",
        "v1.0",
        "s/v1.0.md",
        "i.png",
        "index.md",
        "s/d/n.md",
        "d/n?x=1.md",
    ];
    let vault = TestVault::new(&[("s/a.md", TEXT), ("b.md", TEXT)]);
    let check = |step: &str| {
        let (kept, new) = (choice(&vault), choice(&copy_of(&vault)));
        assert_eq!(kept.2, new.2, "{step}");
        assert_eq!(dump(&vault).len(), 26, "{step}");
    };
    check("at first");
    // Files appear in one order, and vanish in another.
    for file in files {
        vault.write(file, "text");
        check(&format!("with {file}"));
    }
    vault.write("mkdocs.yml", "docs_dir: s\n");
    check("with a site");
    vault.write("b.md", TEXT.repeat(2).trim_end());
    vault.write("b.md", TEXT);
    check("after an edit");
    vault.remove("mkdocs.yml");
    check("without the site");
    for file in files.iter().skip(1).step_by(2).chain(files.iter().step_by(2)) {
        vault.remove(file);
        check(&format!("without {file}"));
    }
}

/// A save looks at the links of one note, however many notes there are. SQLite's instructions are counted.
#[test]
fn a_save_costs_nothing_by_the_size_of_the_vault() {
    let steps = |notes: usize, settings: Option<(&str, &str)>| {
        let vault = TestVault::new(&settings.into_iter().collect::<Vec<_>>());
        for at in 0..notes {
            let (next, folder) = ((at + 1) % notes, at % 7);
            let text = format!("[x](n{next}.md) [y](../f{}/n{next}.md) [[n{next}]] [z](f/none)\n", next % 7);
            vault.write(&format!("f{folder}/n{at}.md"), text);
        }
        let store = vault.store();
        store.index().sync(silent()).unwrap();
        vault.write("f0/n0.md", "[x](n1.md) [y](../f1/n1.md) changed\n");
        let report = store.index().sync(silent()).unwrap();
        assert_eq!((report.changed, report.read), (1, 1));
        report.steps
    };
    for settings in
        [None, Some((".obsidian/app.json", "{}")), Some(GITHUB), Some(("mkdocs.yml", "docs_dir: .\n"))]
    {
        let (few, many) = (steps(60, settings), steps(480, settings));
        assert!(few > 0 && many <= few + few / 4, "{settings:?}: {few} steps for 60 notes, {many} for 480");
    }
}

#[test]
fn links_are_found_again_when_the_dialect_changes() {
    let vault = TestVault::new(&[GITHUB, ("d/n.md", ""), ("a.md", "[n](n.md)\n")]);
    assert_eq!(dump(&vault), ["link a.md:1 #0 n.md -> -"]);
    vault.remove(GITHUB.0);
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
        GITHUB,
        (
            "a.md",
            "[x](b.md#the-title) [x](b.md#the-title-1) [x](b.md#anchor) [d](d/) [o](../o.md) [s](/elsewhere/page)\n[x](b.md#The%20title)\n[x](B.md)\n[x](d/none.md)\n[x](/d/none.md)\n[[b#The title]]\n",
        ),
        ("b.md", "# The title\n<a name=\"anchor\"></a>\n> ## The title\n"),
        ("d/c.md", ""),
    ];
    let expect = [
        "a.md:2 broken-subpath",
        "a.md:3 broken-link",
        "a.md:4 broken-link",
        "a.md:5 broken-link",
        "a.md:6 wikilink-as-text",
    ];
    assert_eq!(problems(&github), expect);
    let book = [
        ("book.toml", ""),
        ("src/a.md", "[x](b.html#own) [x](b.html#t) [[b]]\n"),
        ("src/b.md", "# T\n## U {#own}\n"),
    ];
    assert_eq!(problems(&book), ["src/a.md:1 wikilink-as-text"]);
    // In Obsidian's dialect, an anchor is the text of a heading.
    let obsidian =
        [(".obsidian/app.json", "{}"), ("a.md", "[x](b.md#The%20title)\n[x](b.md#the-title)\n"), github[2]];
    assert_eq!(problems(&obsidian), ["a.md:2 broken-subpath"]);
}

/// What follows a `#` names a part only if it is one by the rules of the page or of Obsidian.
#[test]
fn what_names_no_part_is_no_broken_subpath() {
    let target = ("b.md", "# The title\n");
    let links = "[//]: # (a comment)\n\n[Top](#) [Top](#top) [b](b.md#) [b](b.md#top) [b](b.md#L10) [b](b.md#L3-L9) [b](b.md#L3C1-L9C2)\n\n[[b#]] [[b# ]] [[#]]\n";
    let app = (".obsidian/app.json", "{}");
    for config in [GITHUB, app, ("book.toml", "[book]\nsrc = \".\"\n"), ("mkdocs.yml", "docs_dir: .\n")] {
        let found = problems(&[config, ("a.md", links), target]);
        let found: Vec<_> = found.iter().filter(|found| !found.ends_with("wikilink-as-text")).collect();
        assert!(found.is_empty(), "{}: {found:?}", config.0);
        let wrong = problems(&[config, ("a.md", "[b](b.md#Lx) [b](b.md#topmost) [b](b.md#L)\n"), target]);
        assert_eq!(wrong, ["a.md:1 broken-subpath"; 3], "{}", config.0);
    }
    let links = "[b](b.md?plain=1#L10) [b](b.md#user-content-the-title) [a](#user-content-own) <a name=\"own\"></a>\n";
    assert!(problems(&[GITHUB, ("a.md", links), target]).is_empty());
    // Where nothing says who reads the notes, a heading has its text and its slug.
    let links = "[b](b.md#the-title) [b](b.md#The%20title)\n[b](b.md#title)\n";
    assert_eq!(problems(&[("a.md", links), target]), ["a.md:2 broken-subpath"]);
    let vault = TestVault::new(&[("a.md", links), target]);
    let broken = json(&vault, NOW, &["links", "a"]);
    let broken = broken["outgoing"].as_array().unwrap().iter().map(|link| link["broken_subpath"] == true);
    assert_eq!(broken.collect::<Vec<_>>(), [false, false, true]);
}

/// A link out of the pages of a book or site is not judged: what its server shows there is not known. One that may be written
/// later is no error.
#[test]
fn only_what_can_be_judged_is_an_error() {
    let severities = |files: &[(&str, &str)]| {
        let vault = TestVault::new(files);
        let checked = json(&vault, NOW, &["check"]);
        let problems = checked["problems"].as_array().unwrap().clone();
        let problems = problems.iter().filter(|problem| problem["line"] != 0);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        problems
            .map(|problem| format!("{} {}", text(&problem["code"]), text(&problem["severity"])))
            .collect::<Vec<_>>()
    };
    let links = "[std](../std/index.html) [s](../../std/x.html#a) [gone](gone.md)\n";
    for book in [("book.toml", ""), ("mkdocs.yml", "docs_dir: src\n")] {
        assert_eq!(
            severities(&[book, ("src/a.md", links), ("src/b/c.md", links)]),
            [
                "link-out-of-site info",
                "broken-link error",
                "broken-link error",
                "link-out-of-site info",
                "broken-link error"
            ],
            "{}",
            book.0
        );
        let vault = TestVault::new(&[book, ("src/a.md", links)]);
        assert_eq!(json(&vault, NOW, &["unresolved"]).as_array().unwrap().len(), 1, "{}", book.0);
    }
    let app = (".obsidian/app.json", "{}");
    let links = "[[New note]] [[v1.0]] [[New.md]]\n[x](new.md) ![[new]] [[new.png]]\n";
    let (info, error) = ("broken-link info", "broken-link error");
    assert_eq!(severities(&[app, ("a.md", links)]), [info, info, info, error, error, error]);
    let strict = TestVault::new(&[app, ("a.md", "[[New note]]\n")]).run(&["check", "--strict"]);
    assert_eq!(strict.status.code(), Some(0));
}

#[test]
#[expect(clippy::type_complexity, reason = "a table of cases")]
fn the_pages_of_each_generator_are_found() {
    let docusaurus =
        |docs: &str| format!("module.exports = {{ presets: [['classic', {{ docs: {{ {docs} }} }}]] }};\n");
    let (plain, elsewhere) =
        (docusaurus("path: 'docs'"), docusaurus("path: '../handbook', sidebarPath: 'x.js'"));
    let at_root = docusaurus("path: \"docs\", routeBasePath: '/'");
    let vitepress =
        "{\"scripts\": {\"docs\": \"vitepress dev manual\"}, \"devDependencies\": {\"vitepress\": \"1\"}}";
    let cases: [(&str, &[(&str, &str)], &[&str]); 14] = [
        ("Hugo", &[("hugo.toml", "baseURL = 'x'\n"), ("content/a.md", "")], &["content: site", ": obsidian"]),
        (
            "Hugo's old name",
            &[("w/config.toml", "baseURL = 'x'\ncontentDir = 'text'\n"), ("w/text/a.md", "")],
            &["w/text: site", ": obsidian"],
        ),
        (
            "Hugo's folder of settings",
            &[("config/_default/hugo.yaml", "title: x\n"), ("content/a.md", "")],
            &["content: site", ": obsidian"],
        ),
        (
            "Zola",
            &[("config.toml", "base_url = \"x\"\n"), ("content/a.md", "")],
            &["content: site", ": obsidian"],
        ),
        ("settings of another program", &[("config.toml", "a = 1\n"), ("content/a.md", "")], &[": obsidian"]),
        (
            "VitePress in a project",
            &[("package.json", vitepress), ("manual/.vitepress/config.ts", ""), ("manual/a.md", "")],
            &["manual: site", ": obsidian"],
        ),
        (
            "VitePress at the root",
            &[(".vitepress/config.mts", "export default { srcDir: 'src' }"), ("src/a.md", "")],
            &["src: site", ": obsidian"],
        ),
        (
            "another package",
            &[("package.json", "{\"scripts\": {\"docs\": \"run docs\"}}"), ("docs/a.md", "")],
            &[": obsidian"],
        ),
        (
            "Docusaurus",
            &[("w/docusaurus.config.js", &plain), ("w/docs/a.md", "")],
            &["w: site", ": obsidian"],
        ),
        (
            "Docusaurus beside its pages",
            &[("w/docusaurus.config.js", &elsewhere), ("handbook/a.md", ""), ("w/b.md", "")],
            &["handbook: site", "w: site", ": obsidian"],
        ),
        (
            "Docusaurus with pages at the root",
            &[("docusaurus.config.ts", &at_root), ("docs/a.md", "")],
            &["docs: site", ": site"],
        ),
        (
            "Quartz",
            &[
                ("quartz.config.ts", "Plugin.CrawlLinks({ markdownLinkResolution: \"shortest\" })"),
                ("content/a.md", ""),
            ],
            &["content: obsidian", ": obsidian"],
        ),
        (
            "Quartz with relative paths",
            &[("quartz.config.ts", "markdownLinkResolution: \"relative\""), ("content/a.md", "")],
            &["content: site", ": obsidian"],
        ),
        ("Logseq", &[("logseq/config.edn", "{}"), ("pages/a.md", ""), (".git/HEAD", "")], &[": obsidian"]),
    ];
    let mut count = 0;
    for (what, files, expect) in cases {
        assert_eq!(dialects(files), expect, "{what}");
        count += 1;
    }
    assert_eq!(count, 14);
}

/// A move leaves no address of a page dead.
#[test]
#[expect(clippy::type_complexity, reason = "a table of cases")]
fn an_address_on_a_site_follows_its_page() {
    let docusaurus = "docs: { path: '../handbook', routeBasePath: 'guide' }";
    let vitepress = [(".vitepress/config.ts", ""), ("a.md", "")];
    let sites: [(&str, &[(&str, &str)], &str, &str); 5] = [
        ("VitePress", &vitepress, "", ""),
        ("Hugo", &[("hugo.toml", "")], "content/", ""),
        ("Jekyll", &[("_config.yml", "")], "", ""),
        ("Docusaurus", &[("docusaurus.config.js", "docs: { path: 'docs' }")], "docs/", "docs/"),
        ("Docusaurus elsewhere", &[("web/docusaurus.config.js", docusaurus)], "handbook/", "guide/"),
    ];
    let mut count = 0;
    for (what, site, below, address) in sites {
        let (old, new) = (format!("{below}part/intro.md"), format!("{below}manual/start.md"));
        let source = format!("{below}index.md");
        let text = |page: &str| {
            format!(
                "[x](/{address}{page}) [y](/{address}{page}#top) [z](/{address}{page}.md) [r]({page}.md)\n"
            )
        };
        let before = text("part/intro");
        let files = [site, &[(old.as_str(), ""), (source.as_str(), before.as_str())]].concat();
        check_move(&files, (&old, &new), &[(&source, &text("manual/start"))]);
        count += 1;
        assert_eq!(problems(&files), Vec::<String>::new(), "{what}");
    }
    assert_eq!(count, 5);
}

#[test]
fn a_link_to_a_folder_is_not_unresolved() {
    let vault = TestVault::new(&[GITHUB, ("a.md", "[d](d/) [n](none/)\n"), ("d/b.md", "")]);
    let links = json(&vault, NOW, &["links", "a"]);
    assert_eq!(links["outgoing"][0]["resolved"], "d/");
    assert_eq!(links["unresolved"][0]["original"], "[n](none/)");
    assert_eq!(json(&vault, NOW, &["status"])["unresolved"], 1);
    assert_eq!(json(&vault, NOW, &["unresolved"]).as_array().unwrap().len(), 1);
}

/// Renames the heading in the first line of `t.md`, and checks the links to it in the note `s.md`.
#[track_caller]
fn check_heading(config: &[(&str, &str)], target: &str, links: &str, expect: &str) {
    let files = [config, &[("t.md", target), ("s.md", links)]].concat();
    let vault = TestVault::new(&files);
    run(&vault, NOW, &["rename-heading", "t.md", "line 1", "New & other"]);
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
    check_heading(&[GITHUB], target, links, expect);
    check_heading(&[("book.toml", "[book]\nsrc = \".\"\n")], target, links, expect);
    check_heading(&[(".obsidian/app.json", "{}")], target, links, expect);
    check_heading(&[GITHUB], "# Old one\n", "[t](t.md#Old%20one)\n", "[t](t.md#Old%20one)\n");
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
        let vault = TestVault::new(&[GITHUB, ("t.md", target), ("s.md", links)]);
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
    let found = rename("# Über b\n# Über b\n", "[t](t.md#%C3%BCber-b-1)\n", ("line 1", "Öl"));
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
    assert!(stderr(&found).contains("use auto, obsidian, github, mdbook, site"));
}
