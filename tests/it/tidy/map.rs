//! Checks that the map of ARCHITECTURE.md names every module of `src`, and no other, and that the page stays short.

use std::collections::BTreeSet;

use super::{read, sources};

/// The page has so many lines at most.
const MOST_LINES: usize = 250;

/// Names the modules of one row: its folder, and every name in its last cell that stands before a colon or a comma.
/// A row is `| folder | topic | files |`, and the files are written as `a`: phrase; `b`, `c`: phrase.
fn modules_of(row: &str) -> BTreeSet<String> {
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
    let [folder, _, files] = cells[..] else { return BTreeSet::new() };
    let folder = folder.trim_matches('`');
    let items = files.split("; ").filter_map(|item| item.split_once(": "));
    let names = items.flat_map(|(names, _)| names.split(", ")).map(|name| name.trim_matches('`'));
    let inside = names.map(|name| match folder {
        "src" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    });
    inside.chain((folder != "src").then(|| folder.to_owned())).collect()
}

/// Names the modules in the map of a document.
fn mapped(document: &str) -> BTreeSet<String> {
    let map = document.split("\n## ").find(|section| section.starts_with("Map\n"));
    let rows = map.into_iter().flat_map(str::lines).filter(|line| line.starts_with("| `"));
    rows.flat_map(modules_of).collect()
}

#[test]
fn the_map_names_every_module() {
    let modules: BTreeSet<String> = sources().iter().map(|source| source.modules().join("/")).collect();
    let mapped = mapped(&read("ARCHITECTURE.md"));
    let missing: Vec<_> = modules.difference(&mapped).collect();
    let unknown: Vec<_> = mapped.difference(&modules).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "modules that the map of ARCHITECTURE.md lacks, to be added to the row of their folder as \
         `name`: phrase: {missing:#?}\nnames in the map that are no modules: {unknown:#?}"
    );
}

#[test]
fn the_map_stays_short() {
    let lines = read("ARCHITECTURE.md").lines().count();
    assert!(lines <= MOST_LINES, "ARCHITECTURE.md has {lines} lines; details belong in docs/dev/");
}

#[test]
fn a_row_of_the_map_names_a_folder_and_its_files() {
    let document = "# A\n\n## Map\n\n| Folder | Topic | Files |\n| --- | --- | --- |\n\
        | `src` | Base | `a`: first; `b`: second |\n| `a` | Parts | `c`, `d`: what `e` is |\n\n\
        ## B\n\n| `f` | g | `h`: i |\n";
    let expected = ["a", "b", "a/c", "a/d"].map(str::to_owned);
    assert_eq!(mapped(document), BTreeSet::from(expected));
}
