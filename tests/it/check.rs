//! Tests which problems of a vault `check` reports.

use sidenote::store::{Baseline, CheckRequest, Open, PROBLEM_CODES, Store};

use crate::support::{TestVault, repository, stdout};

/// Checks the problems of a vault, as `path:line code`.
fn check(files: &[(&str, &str)], expect: &[&str]) {
    let vault = TestVault::new(files);
    let reply = vault.store().upkeep().check(false).unwrap();
    let found: Vec<String> = reply
        .problems
        .iter()
        .filter(|problem| problem.code != "orphan")
        .map(|problem| format!("{}:{} {}", problem.path, problem.line, problem.code))
        .collect();
    assert_eq!(found, expect, "{:?}", reply.problems);
}

const TEXT: &str = "the quick brown fox jumps over the lazy dog and then it runs into the deep dark forest to find \
some berries which it eats with much delight while the sun goes down behind the high hills of the north";

#[test]
fn each_kind_of_problem_is_found_at_its_position() {
    check(
        &[("a.md", "# A\n\n[[b]] [[b#Part]] [[#A]]\n"), ("b.md", "# Part\n[x](a.md) [y](https://a.b)\n")],
        &[],
    );
    check(
        &[("a.md", "x\n[[nowhere]]\n![[b.png]] [t](c.md)\n")],
        &["a.md:2 broken-link", "a.md:3 broken-link", "a.md:3 broken-link"],
    );
    check(
        &[("a.md", "[[b#No]] [[b#^no]] [[#none]]\n[[b#Part]]\n"), ("b.md", "# Part\n")],
        &["a.md:1 broken-subpath", "a.md:1 broken-subpath", "a.md:1 broken-subpath"],
    );
    check(&[("x/n.md", ""), ("y/n.md", ""), ("a.md", "[[n]] [[x/n]]\n")], &["a.md:1 ambiguous-link"]);
    check(&[("a.md", "---\nid: 7\n---\n"), ("b.md", "---\nid: 7\n---\n")], &["b.md:0 duplicate-id"]);
    check(&[("a.md", "---\nx: [\n---\n")], &["a.md:1 yaml-unparsable"]);
    check(&[("a.md", "x\n<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> other\n")], &["a.md:2 conflict-markers"]);
    check(&[("a#b.md", "")], &["a#b.md:0 name-not-linkable"]);
    check(&[("c.canvas", "{")], &["c.canvas:0 json-unparsable"]);
    check(
        &[("a.md", TEXT), ("b.md", &format!("{TEXT} indeed")), ("c.md", "quite another text\n")],
        &["b.md:0 near-duplicate"],
    );
}

#[test]
fn notes_and_canvases_are_counted_separately() {
    let vault = TestVault::new(&[("a.md", "[[b.canvas]]\n"), ("b.canvas", "{}")]);
    assert_eq!(stdout(&vault.run(&["check"])), "1 note, 1 canvas: no problems\n");
    vault.remove("b.canvas");
    vault.write("a.md", "[[a]]\n");
    let reply = vault.store().upkeep().check(false).unwrap();
    assert_eq!((reply.notes, reply.canvases), (1, 0));
    let told = stdout(&vault.run(&["check", "--only", "broken-link"]));
    assert!(told.starts_with("1 note: "), "{told}");
}

#[test]
fn a_check_of_one_code_finds_what_a_check_of_all_codes_finds() {
    let vault = TestVault::new(&[
        ("a.md", "[[nowhere]] ![[b.png]] [[b#No]] [x](folder/) [[n]] [[{{title}}]]\n"),
        ("b.md", "# Part\n\n[[a]]\n"),
        ("x/n.md", "---\nid: 7\n---\n"),
        ("y/n.md", "---\nid: 7\n---\n"),
        ("off.md", "<!-- sidenote-ignore-file broken-link orphan -->\n\n[[gone]]\n"),
        ("block.md", "<!-- sidenote-ignore broken-link -->\n[[gone]]\n\n[[gone too]]\n"),
        ("alone.md", "<!-- sidenote-ignore-file orphan -->\n"),
        ("alone too.md", TEXT),
        ("twin.md", &format!("{TEXT} indeed")),
        ("c#d.md", "[[a]]\n<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> other\n"),
        ("folder/e.md", "[self](e.md) [[folder/e]]\n"),
        ("linked.md", "[[gone]]\n"),
        ("linking.md", "[[linked]] [[a#No]]\n"),
        ("percent.md", "[x](a%23No)\n"),
        ("yaml.md", "---\nx: [\n---\n"),
        ("ignored.md", "x <!-- sidenote-ignore -->\n"),
        ("book/book.toml", "[book]\n"),
        ("book/src/SUMMARY.md", "# Summary\n\n- [One](one.md)\n- [Two](two)\n"),
        ("book/src/one.md", "[[two]] [std](../../std/index.html) [two](/two.md) [no](none.md)\n"),
        ("book/src/two.md", "[one](one.md#No)\n"),
        (
            "f.canvas",
            r#"{"nodes":[{"id":"1","type":"file","file":"dead.md","x":0,"y":0,"width":1,"height":1}],"edges":[]}"#,
        ),
    ]);
    let store = vault.store();
    store.index().refresh().unwrap();
    let compare = || {
        let of = |codes: Option<Vec<String>>| {
            let request = CheckRequest { codes, ..CheckRequest::default() };
            store.upkeep().check_with(&request).unwrap().problems
        };
        let all = of(None);
        // The index only says which notes need not be parsed.
        let open = Open { vault: Some(vault.root().to_owned()), ..Open::default() };
        let read = Store::check_without_index(&open, &CheckRequest::default()).unwrap().problems;
        let of_files: Vec<_> = all.iter().filter(|problem| problem.code != "index-behind").collect();
        assert_eq!(of_files, read.iter().collect::<Vec<_>>());
        // A vault is no bundle of another format unless somebody asks.
        assert!(all.iter().all(|problem| problem.code != "okf"));
        for known in PROBLEM_CODES.iter().filter(|known| known.code != "okf") {
            let wanted: Vec<_> = all.iter().filter(|problem| problem.code == known.code).collect();
            let found = of(Some(vec![known.code.to_owned()]));
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{}", known.code);
        }
        let codes = ["broken-link", "orphan", "name-not-linkable"];
        let wanted: Vec<_> = all.iter().filter(|problem| codes.contains(&problem.code)).collect();
        let found = of(Some(codes.map(str::to_owned).to_vec()));
        assert_eq!(found.iter().collect::<Vec<_>>(), wanted);
        (all.len(), wanted.len())
    };
    assert_eq!(compare(), (29, 15));
    // The index does not have the change yet, so the files tell.
    vault.write("b.md", "[[another]]\n");
    vault.write("new.md", "");
    assert_eq!(compare(), (32, 17));
    store.index().refresh().unwrap();
    assert_eq!(compare(), (31, 17));
    drop(store);
    // The index was made under other settings.
    vault.write(".obsidian/app.json", r#"{"userIgnoreFilters": ["folder/"]}"#);
    let store = vault.store();
    let only = |codes: &[&str], baseline: Option<Baseline>| {
        let codes = Some(codes.iter().map(|code| (*code).to_owned()).collect());
        store.upkeep().check_with(&CheckRequest { codes, baseline, ..CheckRequest::default() }).unwrap()
    };
    let orphans = only(&["orphan"], None).problems;
    assert!(orphans.iter().all(|problem| !problem.path.starts_with("folder/")), "{orphans:?}");
    // A baseline is compared with the problems of all codes.
    let all = store.upkeep().check(false).unwrap();
    let known = Baseline::of(&all.problems);
    let compared = only(&["broken-link"], Some(known)).baseline.unwrap();
    assert_eq!((compared.known, compared.fixed), (all.problems.len(), 0));
}

#[test]
fn names_that_differ_only_in_case_are_reported() {
    let vault = TestVault::new(&[("Note.md", "x\n"), ("note.md", "y\n")]);
    let reply = vault.store().upkeep().check(false).unwrap();
    // A case-insensitive file system has only one of them.
    let both = vault.contents().len() == 2;
    assert_eq!(reply.counts.contains_key("name-clash"), both);
}

#[test]
fn a_stale_index_is_reported_and_repaired_on_request() {
    let vault = TestVault::new(&[("a.md", "one\n")]);
    let store = vault.store();
    vault.write("b.md", "[[a]]\n");
    assert_eq!(store.upkeep().check(false).unwrap().behind, 1);
    let fixed = store.upkeep().check(true).unwrap();
    assert!(fixed.fixed && fixed.notes == 2, "{fixed:?}");
    assert_eq!(store.upkeep().check(false).unwrap().behind, 0);
}

#[test]
fn the_example_vault_has_the_expected_problems() {
    let vault = TestVault::copy_of(&repository().join("example-vault"));
    let out =
        stdout(&vault.run(&["check", "--fix", "--only", "yaml-unparsable", "--only", "conflict-markers"]));
    insta::assert_snapshot!(out, @r#"
    Reference/Broken frontmatter.md:1:1  error  yaml-unparsable  line 2: mapping values are not allowed in this context
    52 notes, 1 canvas: 1 yaml-unparsable
    "#);
}
