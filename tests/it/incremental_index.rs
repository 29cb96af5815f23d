//! Tests that an index after many updates answers like a rebuilt one.

use std::sync::Arc;

use sidenote::base::clock::{Clock, Timestamp};
use sidenote::catalog::CatalogReader;
use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::search::Mode;
use sidenote::store::{Open, RelatedRequest, SearchRequest, Store, UnresolvedItem};
use sidenote::vault::Vault;

use crate::support::TestVault;

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// Makes a text of few words, so that many notes score alike.
    fn text(&mut self) -> String {
        const WORDS: [&str; 12] = [
            "heron",
            "herons",
            "otter",
            "moor",
            "moors",
            "`code`",
            "# Marsh\n\n",
            "杭州",
            "杭城",
            "航海",
            "[[n1]]",
            "[[n2]]",
        ];
        let count = 1 + self.below(6);
        (0..count).map(|_| format!("{} ", WORDS[self.below(WORDS.len())])).collect()
    }
}

/// Opens an index of the vault that is made now, in a folder of its own.
fn anew(vault: &TestVault, folder: &std::path::Path) -> Store {
    let store = Store::open(Open {
        vault: Some(vault.root().to_owned()),
        index: Some(folder.to_owned()),
        flags: vec![("embed.provider", "none".to_owned(), "test")],
        clock: Clock::Fixed(Timestamp::parse("2026-11-21").unwrap()),
        ..Open::default()
    })
    .unwrap();
    store.index().sync(silent()).unwrap();
    store
}

/// Gives paths and scores, to the last bit.
fn scored(store: &Store, query: &str, limit: usize) -> Vec<(String, u32)> {
    let request = SearchRequest {
        query: query.to_owned(),
        mode: Some(Mode::Bm25),
        limit: Some(limit),
        ..SearchRequest::default()
    };
    let reply = store.searches().search(&request).unwrap();
    reply.results.into_iter().map(|hit| (hit.path, hit.score.to_bits())).collect()
}

const QUERIES: &[&str] = &[
    "heron",
    "otter moor",
    "code",
    "杭",
    "marsh heron",
    "航 moors",
    "n1",
    "tag:#bird heron",
    "heron -otter",
];

#[track_caller]
fn check_alike(grown: &Store, fresh: &Store, when: &str) {
    assert_eq!(QUERIES.len(), 9);
    for query in QUERIES {
        for limit in [1, 5, 100] {
            assert_eq!(scored(grown, query, limit), scored(fresh, query, limit), "{query}, {limit}, {when}");
        }
    }
    for note in ["n1.md", "n2.md"] {
        let related = |store: &Store| {
            let request =
                RelatedRequest { note: note.to_owned(), limit: Some(50), ..RelatedRequest::default() };
            let reply = store.searches().related(&request).map(|reply| reply.related).unwrap_or_default();
            reply.into_iter().map(|item| (item.path, item.score.to_bits(), item.common)).collect::<Vec<_>>()
        };
        assert_eq!(related(grown), related(fresh), "{note}, {when}");
    }
    assert_eq!(grown.index().dump().unwrap(), fresh.index().dump().unwrap(), "{when}");
    assert_eq!(grown.reads().unresolved().unwrap(), fresh.reads().unresolved().unwrap(), "{when}");
}

#[test]
fn an_incrementally_updated_index_answers_like_a_rebuilt_one() {
    let vault = TestVault::new(&[]);
    let mut numbers = Numbers(11);
    // The names do not come in the order in which the notes are made.
    for at in (0..30).rev() {
        let text = numbers.text();
        vault.write(&format!("n{at}.md"), text);
    }
    let grown = vault.store();
    let mut found = 0;
    for round in 0..60 {
        let (name, other) = (format!("n{}.md", numbers.below(30)), format!("m{}.md", numbers.below(30)));
        let is_there = |name: &str| vault.root().join(name).exists();
        match numbers.below(5) {
            0 if is_there(&name) => vault.remove(&name),
            1 if is_there(&name) && !is_there(&other) => vault.rename(&name, &other),
            2 => {
                let tagged = format!("---\ntags: [bird]\n---\n{}", numbers.text());
                vault.write(&other, tagged);
            }
            _ => {
                let text = numbers.text();
                vault.write(&name, text);
            }
        }
        grown.index().sync(silent()).unwrap();
        if round % 10 == 9 {
            let folder = tempfile::tempdir().unwrap();
            let fresh = anew(&vault, &folder.path().join("index"));
            check_alike(&grown, &fresh, &format!("after {round} edits"));
            found += scored(&fresh, "heron", 100).len();
        }
    }
    assert!(found > 60, "{found}");
    // What was merged answers the same.
    drop(grown);
    let folder = tempfile::tempdir().unwrap();
    check_alike(&vault.store(), &anew(&vault, &folder.path().join("index")), "when opened again");
}

/// Checks that the numbers of links and passages that the index keeps are those of its rows.
#[track_caller]
fn check_counts(store: &Store, when: &str) {
    let dump = store.index().dump().unwrap();
    for (kept, row) in [("count links ", "link "), ("count passages ", "passage ")] {
        let kept = dump.iter().find_map(|line| line.strip_prefix(kept)).unwrap();
        let rows = dump.iter().filter(|line| line.starts_with(row)).count();
        assert_eq!(kept, rows.to_string(), "{row}{when}");
    }
}

/// The numbers are kept by difference, so that each way of writing a batch has to count what it writes and removes.
#[test]
fn the_numbers_of_links_and_passages_are_right_after_every_way_of_writing() {
    // From 2,000 files on, a batch is written in bulk.
    for notes in [30, 2_000] {
        let vault = TestVault::new(&[]);
        let write_all = |text: &dyn Fn(usize) -> String| {
            (0..notes).for_each(|at| vault.write(&format!("d{}/n{at}.md", at % 3), text(at)));
        };
        write_all(&|at| format!("[[n{}]] and [one](n{at}.md)\n\n# A\n\nheron\n", at + 1));
        let store = vault.store();
        let check = |store: &Store, when: &str| {
            store.index().sync(silent()).unwrap();
            let when = format!("{when}, {notes} notes");
            check_counts(store, &when);
            let folder = tempfile::tempdir().unwrap();
            let fresh = anew(&vault, &folder.path().join("index"));
            assert_eq!(store.index().dump().unwrap(), fresh.index().dump().unwrap(), "{when}");
        };
        check(&store, "after a load");
        write_all(&|at| format!("[[n{at}]] [[n{}]] [[nowhere]]\n\notter\n", at / 2));
        check(&store, "after a change of all notes");
        vault.write("d0/n0.md", "[[n1]]\n");
        vault.rename("d1/n1.md", "moved.md");
        vault.remove("d2/n2.md");
        check(&store, "after a few changes");
        drop(store);
        for _ in 0..2 {
            assert!(vault.run(&["index", "--rebuild", "--no-embed"]).status.success());
            check(&vault.store(), "after a rebuild");
        }
        (0..notes).for_each(|at| {
            let path = format!("d{}/n{at}.md", at % 3);
            if vault.root().join(&path).exists() {
                vault.remove(&path);
            }
        });
        check(&vault.store(), "after the removal of all notes but one");
    }
}

/// Gives what lists tell whose order or spelling could hang on the numbers of files and texts.
fn told(store: &Store) -> (Vec<UnresolvedItem>, Vec<String>, Vec<Vec<String>>) {
    let properties = store.reads().properties().unwrap().into_iter();
    let ways = [("start.md", "end.md"), ("end.md", "start.md")];
    let ways = ways.map(|(from, to)| store.reads().path(from, to).unwrap().path).to_vec();
    (store.reads().unresolved().unwrap(), properties.map(|item| item.property).collect(), ways)
}

#[test]
fn spellings_and_paths_do_not_depend_on_indexing_order() {
    let vault = TestVault::new(&[]);
    let grown = vault.open("none");
    // In an order that differs from that of a scan.
    for (path, text) in [
        ("z.md", "---\nSTATUS: a\n---\n[[nowhere]] [[start]] [[end]]"),
        ("y.md", "[[NOWHERE]] [[nowhere]] [[NoWhere]]\n[[nowhere]]"),
        ("start.md", "---\nStatus: b\n---\nno link"),
        ("b.md", "[[start]] [[end]]"),
        ("end.md", "---\nstatus: b\n---\nno link"),
        ("a.md", "[[start]] [[end]]"),
        ("c.md", "[[NoWhere]]"),
    ] {
        vault.write(path, text);
        grown.index().sync(silent()).unwrap();
    }
    vault.write("y.md", "[[NoWhere]] [[nowhere]] [[NOWHERE]]\n[[nowhere]]");
    grown.index().sync(silent()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let fresh = told(&anew(&vault, &folder.path().join("index")));
    assert_eq!(told(&grown), fresh);
    let (unresolved, properties, ways) = fresh;
    let [item] = &unresolved[..] else { panic!("{unresolved:?}") };
    let places: Vec<(&str, usize)> = item.places.iter().map(|(path, line)| (path.as_str(), *line)).collect();
    assert_eq!(
        (item.link.as_str(), places),
        ("NoWhere", vec![("c.md", 1), ("y.md", 1), ("y.md", 1), ("y.md", 1), ("y.md", 2), ("z.md", 4)])
    );
    assert_eq!(properties, ["STATUS"]);
    assert_eq!(ways, [["start.md", "a.md", "end.md"], ["end.md", "a.md", "start.md"]]);
}

#[test]
fn equal_scores_are_sorted_by_path() {
    let vault = TestVault::new(&[]);
    let store = vault.open("none");
    for name in ["e", "b", "d", "a", "c"] {
        vault.write(&format!("{name}.md"), "the heron waits");
        store.index().sync(silent()).unwrap();
    }
    let found = |limit| scored(&store, "heron", limit).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    assert_eq!(found(10), ["a.md", "b.md", "c.md", "d.md", "e.md"]);
    assert_eq!(found(2), ["a.md", "b.md"]);
}

/// A load reads on several threads and writes rows in order, and the catalog that it leaves has full pages.
#[test]
fn the_pages_of_a_catalog_that_was_loaded_are_full() {
    let vault = TestVault::new(&[]);
    let mut numbers = Numbers(7);
    for at in 0..1500 {
        let words: String = (0..60).map(|_| format!("word{} ", numbers.below(5000))).collect();
        vault.write(
            &format!("n{at}.md"),
            format!("---\nsummary: {words}\n---\n[[n{}]]\n", numbers.below(1500)),
        );
    }
    let index = tempfile::tempdir().unwrap();
    drop(anew(&vault, index.path()));
    let catalog = rusqlite::Connection::open(index.path().join("catalog.db")).unwrap();
    let free = "SELECT name, sum(unused) * 100 / sum(pgsize) FROM dbstat GROUP BY name HAVING count(*) >= 20";
    let mut tables = catalog.prepare(free).unwrap();
    let tables: Vec<(String, i64)> =
        tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    assert!(tables.iter().any(|(name, _)| name == "details"), "{tables:?}");
    assert!(tables.iter().all(|(_, free)| *free <= 6), "{tables:?}");
    assert!(!index.path().join("catalog.packed").exists() && !index.path().join("catalog.new").exists());
}

/// SQLite packs a catalog by a path in UTF-8; elsewhere the catalog is used as it was loaded.
#[cfg(target_os = "linux")]
#[test]
fn a_catalog_that_cannot_be_packed_is_used_as_it_is() {
    use std::os::unix::ffi::OsStrExt as _;
    let vault = TestVault::new(&[("a.md", "heron"), ("b.md", "otter")]);
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join(std::ffi::OsStr::from_bytes(b"index\xff"));
    let store = anew(&vault, &index);
    assert_eq!(scored(&store, "heron", 5).len(), 1);
    assert!(!index.join("catalog.packed").exists() && !index.join("catalog.new").exists());
}

#[test]
fn a_reader_that_has_a_transaction_gets_another_one_without_waiting() {
    let vault = TestVault::new(&[("a.md", "apple")]);
    let index = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), Options::default()).unwrap();
    index.sync(SyncScope::All, silent()).unwrap();
    for _ in 0..2 {
        // As many as there are at most, each of a thread that reads a file meanwhile.
        let held: Vec<_> = (0..8).map(|_| index.catalog()).collect();
        let nested: Vec<_> = (0..8).map(|_| index.nested_catalog().unwrap()).collect();
        let sees = |reader: &CatalogReader| reader.row_at("a.md").unwrap().is_some();
        assert!(held.iter().all(|reader| sees(reader)) && nested.iter().all(|reader| sees(reader)));
    }
}
