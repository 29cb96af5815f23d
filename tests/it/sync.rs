//! Tests that the index follows the files: what a sync reads, how moves and deletions are found, and what stays
//! unchanged.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use sidenote::catalog::{path_id, path_id_query};
use sidenote::index::silent;
use sidenote::markdown::path::NotePath;

use crate::support::{TestVault, in_namespaces, paths, stderr, stdout, symlink, tree};

/// Checks that the index of a vault equals one made from nothing.
#[track_caller]
fn check_equals_rebuild(vault: &TestVault) {
    let dump = vault.store().index().dump().unwrap();
    fs::remove_dir_all(vault.root().join(".sidenote")).unwrap();
    similar(&dump, &vault.store().index().dump().unwrap());
}

#[track_caller]
fn similar(left: &[String], right: &[String]) {
    let differing: Vec<_> = left.iter().zip(right).filter(|(a, b)| a != b).take(5).collect();
    assert_eq!(left.len(), right.len(), "{differing:?}");
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn a_second_sync_reads_nothing() {
    let vault = TestVault::example();
    let first = vault.open("none").index().sync(silent()).unwrap();
    assert!(first.added > 50);
    let settled =
        (0..1000).map(|_| vault.open("none").index().sync(silent()).unwrap()).find(|report| report.read == 0);
    let settled = settled.expect("files at rest are not read for ever");
    assert_eq!((settled.added, settled.changed, settled.generation), (0, 0, first.generation));
}

/// A load writes segments of its own, and a few notes are left to tantivy: scores, which rest on counts and on lengths,
/// show that both say the same.
#[test]
fn a_bulk_load_ranks_like_single_updates() {
    let vault = TestVault::example();
    vault.write("often.md", ["otter ".repeat(254), "heron ".repeat(255), "weir ".repeat(70_000)].concat());
    vault.write("words.md", (0..40_000).map(|at| format!("word{at} ")).collect::<String>());
    vault.write("empty.md", "");
    // No term is that long.
    for name in ["key.md", "another key.md"] {
        vault.write(name, format!("---\n? {}\n: weir\n---\n", "k".repeat(70_000)));
    }
    let ask = |query: &str| {
        let output = vault.run(&["search", query, "--mode", "bm25", "--explain", "--all", "--json"]);
        let found: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        found["results"].clone()
    };
    let queries = [
        "links survive a rename",
        "code note",
        "Jürgen",
        "龙井茶",
        "title tags",
        "otter heron weir",
        "word3999",
    ];
    let few = queries.map(ask);
    assert!(few.iter().all(|found| !found.as_array().unwrap().is_empty()));
    let dump = vault.store().index().dump().unwrap();
    assert!(vault.run(&["index", "--rebuild", "--no-embed"]).status.success());
    similar(&dump, &vault.store().index().dump().unwrap());
    assert_eq!(few, queries.map(ask));
}

/// The full text of a first, small batch was committed and its catalog was not; then the vault grew.
#[test]
fn a_bulk_load_after_a_crash_keeps_its_words() {
    let vault = TestVault::new(&[("before.md", "heron")]);
    drop(vault.store());
    let index = vault.root().join(".sidenote/index");
    let kept = vault.root().join(".sidenote/kept");
    fs::rename(index.join("bm25"), &kept).unwrap();
    fs::remove_dir_all(&index).unwrap();
    vault.remove("before.md");
    drop(vault.store());
    fs::remove_dir_all(index.join("bm25")).unwrap();
    fs::rename(&kept, index.join("bm25")).unwrap();
    fs::remove_file(index.join("seal.json")).unwrap();
    let catalog = rusqlite::Connection::open(index.join("catalog.db")).unwrap();
    catalog.execute("INSERT INTO intents VALUES ('before.md')", []).unwrap();
    drop(catalog);
    for at in 0..2100 {
        vault.write(&format!("{at}.md"), "otter");
    }
    // Four lines for each note, and the six numbers of the whole vault.
    assert_eq!(vault.store().index().dump().unwrap().len(), 4 * 2100 + 6);
    let store = vault.store();
    assert!(!paths(&store, "otter").is_empty());
    assert!(paths(&store, "heron").is_empty());
    drop(store);
    check_equals_rebuild(&vault);
}

#[test]
fn the_id_of_a_path_is_looked_up_by_an_index() {
    let vault = TestVault::new(&[("a.md", "heron"), ("b/c.md", "---\nid: own\n---\notter"), ("p.png", "")]);
    let store = vault.store();
    let id = |path: &str| path_id(&NotePath::parse(path).unwrap());
    let found = |id: &str| store.lookup().find(id).ok().map(|row| row.path.to_string());
    assert_eq!(found(&id("a.md")).as_deref(), Some("a.md"));
    assert_eq!(found(&id("a.md").to_uppercase()).as_deref(), Some("a.md"));
    for other in [id("b/c.md"), id("p.png"), id("nowhere.md"), id("a.md").replace('-', "")] {
        assert_eq!(found(&other), None, "{other}");
    }
    vault.rename("a.md", "b/d.md");
    store.index().sync(silent()).unwrap();
    assert_eq!(found(&id("a.md")), None);
    assert_eq!(found(&id("b/d.md")).as_deref(), Some("b/d.md"));
    let catalog = rusqlite::Connection::open(vault.root().join(".sidenote/index/catalog.db")).unwrap();
    let plan = format!("EXPLAIN QUERY PLAN {}", path_id_query());
    let plan: String = catalog.query_row(&plan, [[0; 16]], |row| row.get(3)).unwrap();
    assert!(plan.contains("USING INDEX files_path_id"), "{plan}");
}

/// What a load makes takes the place of the catalog that was there, for those too who read that one before.
#[test]
fn a_bulk_load_is_visible_to_open_readers() {
    let vault = TestVault::new(&[]);
    let (writer, reader) = (vault.store(), vault.open("none"));
    assert!(paths(&reader, "otter").is_empty());
    for at in 0..2100 {
        vault.write(&format!("{at}.md"), format!("otter [[{}]]", at / 2));
    }
    let left = vault.root().join(".sidenote/index/catalog.new");
    fs::write(&left, "what a crash left").unwrap();
    for store in [&writer, &reader] {
        assert!(!paths(store, "otter").is_empty());
    }
    assert!(!left.exists());
    vault.write("1.md", "heron [[2]]");
    for store in [&writer, &reader] {
        assert_eq!(paths(store, "heron"), ["1.md"]);
    }
    drop(writer);
    vault.write("2.md", "marten");
    assert_eq!(paths(&reader, "marten"), ["2.md"], "who read writes now, to the same index");
    drop(reader);
    check_equals_rebuild(&vault);
}

#[test]
fn indexing_touches_no_note() {
    let vault = TestVault::example();
    let before = vault.contents();
    drop(vault.store());
    assert_eq!(vault.contents(), before);
    let added: Vec<_> = fs::read_dir(vault.root().join(".sidenote"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(added, ["index"]);
}

#[test]
fn changes_are_found_at_the_next_sync() {
    let vault = TestVault::new(&[("a.md", "heron"), ("b.md", "otter")]);
    let store = vault.store();
    vault.write("a.md", "kingfisher");
    vault.write("c.md", "heron again");
    vault.remove("b.md");
    assert_eq!(paths(&store, "kingfisher"), ["a.md"]);
    assert_eq!(paths(&store, "heron"), ["c.md"]);
    assert!(paths(&store, "otter").is_empty());
    drop(store);
    check_equals_rebuild(&vault);
}

#[test]
fn a_change_that_keeps_size_and_time_is_found() {
    let vault = TestVault::new(&[("a.md", "heron")]);
    let store = vault.store();
    let disk = vault.root().join("a.md");
    let modified = fs::metadata(&disk).unwrap().modified().unwrap();
    vault.write("a.md", "otter");
    fs::File::options().write(true).open(&disk).unwrap().set_modified(modified).unwrap();
    assert_eq!(paths(&store, "otter"), ["a.md"]);
}

#[test]
fn a_move_keeps_the_note_and_its_links() {
    let vault = TestVault::new(&[("a.md", "[[b]] [[sub/b]]"), ("b.md", "otter")]);
    let store = vault.store();
    vault.rename("b.md", "sub/b.md");
    let report = store.index().sync(silent()).unwrap();
    assert_eq!((report.moved, report.added, report.removed), (1, 0, 0));
    let links = store.reads().links("a").unwrap();
    let targets: Vec<_> = links.outgoing.iter().map(|link| link.resolved.as_deref().unwrap()).collect();
    assert_eq!(targets, ["sub/b.md", "sub/b.md"]);
    drop(store);
    check_equals_rebuild(&vault);
}

#[test]
fn equal_files_that_swap_folders_are_told_apart_by_name() {
    let vault = TestVault::new(&[("x/one.md", "same"), ("x/two.md", "same")]);
    let store = vault.store();
    vault.rename("x", "y");
    assert_eq!(store.index().sync(silent()).unwrap().moved, 2);
    drop(store);
    check_equals_rebuild(&vault);
}

#[test]
fn links_follow_targets_that_come_and_go() {
    let vault = TestVault::new(&[("a.md", "[[b]] and ![[c.png]]")]);
    let store = vault.store();
    assert_eq!(store.reads().unresolved().unwrap().len(), 2);
    vault.write("deep/b.md", "x");
    vault.write("c.png", "x");
    store.index().sync(silent()).unwrap();
    assert!(store.reads().unresolved().unwrap().is_empty());
    vault.write("b.md", "y");
    store.index().sync(silent()).unwrap();
    let links = store.reads().links("a").unwrap();
    assert_eq!(
        links.outgoing.first().unwrap().resolved.as_deref(),
        Some("b.md"),
        "the root's note takes the bare link over"
    );
    vault.remove("b.md");
    vault.remove("deep/b.md");
    store.index().sync(silent()).unwrap();
    assert_eq!(store.reads().unresolved().unwrap().len(), 1);
    drop(store);
    check_equals_rebuild(&vault);
}

#[test]
fn a_change_of_the_excluded_filter_shows() {
    let vault = TestVault::new(&[("Archive/a.md", "heron"), ("b.md", "[[a]]")]);
    let store = vault.store();
    assert_eq!(paths(&store, "heron"), ["Archive/a.md"]);
    vault.write(".obsidian/app.json", "{\"userIgnoreFilters\": [\"Archive/\"]}");
    assert!(paths(&store, "heron").is_empty());
    assert_eq!(store.reads().links("b").unwrap().outgoing.len(), 1, "excluded notes still resolve");
    drop(store);
    check_equals_rebuild(&vault);
}

#[test]
fn a_link_that_cannot_be_followed_removes_nothing() {
    let vault = TestVault::new(&[("a.md", "heron"), ("real/b.md", "otter")]);
    symlink(vault.root().join("outside"), vault.root().join("linked"));
    fs::create_dir(vault.root().join(".elsewhere")).unwrap();
    let store = vault.store();
    assert_eq!(paths(&store, "otter"), ["real/b.md"]);
    assert_eq!(paths(&store, "heron"), ["a.md"]);
    // Wherever the link leads, to nothing, into a hidden folder or back to the vault, the notes stay as they are.
    let dump = store.index().dump().unwrap();
    for target in [".elsewhere", ".", "linked"] {
        vault.remove("linked");
        symlink(target, vault.root().join("linked"));
        let report = store.index().sync(silent()).unwrap();
        assert_eq!((report.added, report.changed, report.removed), (0, 0, 0), "{target}: {report:?}");
        similar(&dump, &store.index().dump().unwrap());
    }
}

#[test]
fn a_hostile_file_affects_no_other_file() {
    let vault = TestVault::new(&[("fine.md", "heron")]);
    vault.write("utf16.md", [0xFF, 0xFE, b'h', 0, b'i', 0]);
    vault.write("bytes.md", b"otter \xFF\xFE caf\xE9 end");
    vault.write("zeros.md", "badger\0\0\0".repeat(100));
    vault.write("empty.md", "");
    // Windows has no such name.
    let two_lines = if cfg!(windows) { "one line.md" } else { "new\nline.md" };
    vault.write(two_lines, "marten");
    vault.write(&format!("{}.md", "n".repeat(252)), "weasel");
    vault.write("yaml.md", format!("---\na: {}\n---\nstoat", "[".repeat(20_000)));
    vault.write("deep.md", format!("{} polecat", "> ".repeat(10_000)));
    let store = vault.store();
    for (word, path) in [
        ("heron", "fine.md"),
        ("otter", "bytes.md"),
        ("badger", "zeros.md"),
        ("marten", two_lines),
        ("stoat", "yaml.md"),
    ] {
        assert_eq!(paths(&store, word), [path]);
    }
    assert_eq!(paths(&store, "weasel").len(), 1);
    drop(store);
    check_equals_rebuild(&vault);
}

#[test]
fn large_and_deep_files_are_read_like_any_other() {
    let vault = TestVault::new(&[("fine.md", "heron")]);
    vault.write("line.md", format!("otter {}", "reeds ".repeat(1_700_000)));
    vault.write("links.md", format!("{}badger", "[[fine]] ".repeat(100_000)));
    vault.write("lists.md", format!("{}marten", "- ".repeat(10_000)));
    vault.write("brackets.md", format!("{} weasel", "![[".repeat(10_000)));
    vault.write(
        "indent.md",
        (0..1000).map(|at| format!("{}- stoat\n", " ".repeat(2 * at))).collect::<String>(),
    );
    let bomb: String =
        (1..12).map(|at| format!("a{at}: &a{at} [{}]\n", format!("*a{}, ", at - 1).repeat(9))).collect();
    vault.write("bomb.md", format!("---\na0: &a0 [x]\n{bomb}---\npolecat"));
    vault.write("cr.md", "one\rtwo\r\rferret\r");
    vault.write("open.md", "mink\n\n```\n%%\n$$\n<div>\n[[open\n| a | [x](");
    vault.write("big.md", format!("sable {}", "x ".repeat(600)));
    let store = vault.open_set(&[("embed.provider", "none"), ("vault.max_file_bytes", "20000000")]);
    let report = store.index().sync(silent()).unwrap();
    assert_eq!(report.warnings, [""; 0]);
    for (word, path) in [
        ("otter", "line.md"),
        ("badger", "links.md"),
        ("marten", "lists.md"),
        ("weasel", "brackets.md"),
        ("stoat", "indent.md"),
        ("polecat", "bomb.md"),
        ("ferret", "cr.md"),
        ("mink", "open.md"),
    ] {
        assert_eq!(paths(&store, word), [path]);
    }
    drop(store);
    let store = vault.open_set(&[("embed.provider", "none"), ("vault.max_file_bytes", "1000")]);
    vault.write("big.md", format!("sable {}", "y ".repeat(600)));
    let report = store.index().sync(silent()).unwrap();
    assert!(report.warnings.len() == 1 && report.warnings[0].contains("big.md"), "{:?}", report.warnings);
    assert_eq!((paths(&store, "sable").len(), paths(&store, "heron").len()), (0, 1));
}

#[test]
fn a_note_above_the_size_limit_is_named_in_a_warning() {
    let vault = TestVault::new(&[("fine.md", "heron")]);
    let huge = fs::File::create(vault.root().join("huge.md")).unwrap();
    huge.set_len(100 << 20).unwrap();
    let store = vault.open("none");
    let report = store.index().sync(silent()).unwrap();
    assert!(report.warnings.len() == 1 && report.warnings[0].contains("huge.md"), "{:?}", report.warnings);
    assert_eq!(paths(&store, "heron"), ["fine.md"]);
}

#[test]
fn files_that_shrink_and_folders_that_vanish_while_they_are_read() {
    let vault = TestVault::new(&[("fine.md", "heron")]);
    let store = vault.store();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let long = "otter in the reeds\n".repeat(20_000);
            for round in 0..60 {
                vault.write("shrinks.md", &long);
                for at in 0..20 {
                    vault.write(&format!("away {round}/in/n{at}.md"), "badger");
                }
                fs::File::options()
                    .write(true)
                    .open(vault.root().join("shrinks.md"))
                    .unwrap()
                    .set_len(6)
                    .unwrap();
                fs::remove_dir_all(vault.root().join(format!("away {round}"))).unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
        while !done.load(Ordering::SeqCst) {
            store.index().sync(silent()).unwrap();
            assert_eq!(paths(&store, "heron"), ["fine.md"]);
        }
    });
    store.index().sync(silent()).unwrap();
    assert_eq!(paths(&store, "otter"), ["shrinks.md"]);
    assert_eq!(paths(&store, "badger"), [""; 0]);
    drop(store);
    check_equals_rebuild(&vault);
}

#[test]
#[ignore = "it needs user namespaces, which many systems refuse; `.ci/run` runs it where it can"]
fn a_read_only_vault_is_searched() {
    let vault = TestVault::new(&[("fine.md", "heron")]);
    let home = TestVault::new(&[]);
    let root = vault.root().to_str().unwrap();
    let script = format!("mount --bind '{root}' '{root}'; mount -o remount,bind,ro '{root}'; exec \"$@\"");
    for prepared in [false, true] {
        if prepared {
            assert!(vault.run(&["index", "--no-embed"]).status.success());
        }
        let before = tree(vault.root());
        for args in [["search", "heron"], ["search", "heron"], ["read", "fine"]] {
            let mut command = vault.command(&args);
            command.env("HOME", home.root());
            let done = in_namespaces(&script, &command).output().unwrap();
            assert!(done.status.success(), "{}", stderr(&done));
            assert!(stdout(&done).contains("heron"), "{}", stdout(&done));
        }
        let mut command = vault.command(&["append", "fine", "more"]);
        command.env("HOME", home.root());
        let refused = in_namespaces(&script, &command).output().unwrap();
        assert!(!refused.status.success(), "{}", stdout(&refused));
        assert_eq!(tree(vault.root()), before);
    }
}

#[test]
fn work_grows_linearly() {
    // Reading is counted, not timed: each file once, whatever the vault's size.
    for count in [50, 500] {
        let texts: Vec<(String, String)> =
            (0..count).map(|n| (format!("n{n}.md"), format!("[[n{}]] note {n}", (n + 1) % count))).collect();
        let files: Vec<(&str, &str)> =
            texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let vault = TestVault::new(&files);
        let report = vault.open("none").index().sync(silent()).unwrap();
        assert_eq!((report.read, report.added), (count, count));
        vault.write("n0.md", "changed");
        let report = vault.open("none").index().sync(silent()).unwrap();
        assert!(report.changed == 1 && report.added == 0, "{report:?}");
    }
}
