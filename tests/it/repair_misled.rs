//! Links that lead to a file, and rightly or wrongly so since files moved: `repair` leaves what the author or sidenote
//! corrected.

use std::fs;

use crate::git::{commit, git, git_vault as repository};
use crate::repair::{check_repair, page, told};
use crate::support::{TestVault, json, run};

const NOW: &str = "2026-11-20";

/// Checks that `repair` leaves everything as it is, before a commit and after it.
#[track_caller]
fn check_left(vault: &TestVault) {
    let before = vault.contents();
    for is_committed in [false, true] {
        if is_committed {
            commit(vault, "moved");
        }
        let reply = json(vault, NOW, &["repair", "--apply", "strong"]);
        assert_eq!(reply["repaired"], 0, "{is_committed}: {reply}");
    }
    let notes = |files: &std::collections::BTreeMap<std::path::PathBuf, (Vec<u8>, _)>| {
        let notes = files.iter().filter(|(path, _)| path.extension().is_some_and(|kind| kind == "md"));
        notes.map(|(path, (bytes, _))| (path.clone(), bytes.clone())).collect::<Vec<_>>()
    };
    assert_eq!(notes(&vault.contents()), notes(&before));
}

#[test]
fn a_note_that_sidenote_moved_is_right() {
    let vault = repository(&[
        ("docs/a/README.md", &page("In")),
        ("docs/README.md", &page("Out")),
        ("docs/a/i.md", &format!("see [inner](README.md) and [outer](../README.md)\n{}", page("I"))),
    ]);
    run(&vault, NOW, &["move", "docs/a/i.md", "docs/"]);
    assert!(vault.read("docs/i.md").starts_with("see [inner](a/README.md) and [outer](README.md)\n"));
    check_left(&vault);
}

#[test]
fn a_note_that_the_author_corrected_after_git_mv_is_right() {
    let vault = repository(&[
        ("docs/a/README.md", &page("In")),
        ("docs/README.md", &page("Out")),
        ("docs/a/i.md", &format!("see [inner](README.md) and [outer](../README.md)\n{}", page("I"))),
    ]);
    git(vault.root(), &["mv", "docs/a/i.md", "docs/i.md"]);
    vault.write("docs/i.md", format!("see [inner](a/README.md) and [outer](README.md)\n{}", page("I")));
    check_left(&vault);
}

/// Chapters 1 to 4, the second of which makes room for a new one.
fn book(links: impl Fn(&str, &str) -> String) -> (TestVault, String) {
    let summary = |titles: &[&str]| -> String {
        titles
            .iter()
            .enumerate()
            .map(|(at, title)| links(title, &format!("ch{:02}", at + 1)) + "\n")
            .collect()
    };
    let titles = ["One", "Two", "Three", "Four"];
    let chapters: Vec<(String, String)> =
        titles.iter().enumerate().map(|(at, title)| (format!("ch{:02}.md", at + 1), page(title))).collect();
    let mut files: Vec<(&str, &str)> =
        chapters.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let before = summary(&titles);
    files.push(("SUMMARY.md", &before));
    (repository(&files), summary(&["One", "New", "Two", "Three", "Four"]))
}

fn renumber(vault: &TestVault) {
    for at in (2..=4).rev() {
        let path = |at: usize| vault.root().join(format!("ch{at:02}.md"));
        fs::rename(path(at), path(at + 1)).unwrap();
    }
    vault.write("ch02.md", page("New"));
}

#[test]
fn chapters_that_the_author_renumbered_are_right() {
    for links in [
        (|title: &str, path: &str| format!("- [{title}]({path}.md)")) as fn(&str, &str) -> String,
        // The list has the same lines before and after, and one more.
        |_, path| format!("- [{path}.md]({path}.md)"),
        |_, path| format!("- [[{path}]]"),
    ] {
        let (vault, after) = book(links);
        renumber(&vault);
        vault.write("SUMMARY.md", after);
        check_left(&vault);
    }
}

#[test]
fn chapters_that_sidenote_renumbered_are_right() {
    for links in [
        (|title: &str, path: &str| format!("- [{title}]({path}.md)")) as fn(&str, &str) -> String,
        |_, path| format!("- [[{path}]]"),
    ] {
        let (vault, _) = book(links);
        for at in (2..=4).rev() {
            run(&vault, NOW, &["rename", &format!("ch{at:02}"), &format!("ch{:02}", at + 1)]);
        }
        vault.write("ch02.md", page("New"));
        check_left(&vault);
    }
}

#[test]
fn chapters_that_nobody_corrected_are_found_and_stay_found() {
    let (vault, _) = book(|title, path| format!("- [{title}]({path}.md)"));
    renumber(&vault);
    commit(&vault, "renumber");
    check_repair(
        &vault,
        "strong",
        &[
            "SUMMARY.md:2 [Two](ch02.md) -> ch03.md strong [\"git\"]",
            "SUMMARY.md:3 [Three](ch03.md) -> ch04.md certain [\"git\"]",
            "SUMMARY.md:4 [Four](ch04.md) -> ch05.md certain [\"git\"]",
        ],
        &[("SUMMARY.md", "- [One](ch01.md)\n- [Two](ch03.md)\n- [Three](ch04.md)\n- [Four](ch05.md)\n")],
    );
    // The repair is right, in the next commit, too.
    json(&vault, NOW, &["repair", "--apply", "strong"]);
    check_left(&vault);
}

#[test]
fn a_link_that_was_written_after_a_move_means_what_is_there() {
    let vault = repository(&[
        ("a.md", &page("A")),
        ("c.md", &page("C")),
        ("index.md", "[the A](a.md) [the C](c.md)\n"),
    ]);
    git(vault.root(), &["mv", "a.md", "b.md"]);
    git(vault.root(), &["mv", "c.md", "a.md"]);
    vault.write("index.md", "[the A](b.md) [the C](a.md)\n");
    commit(&vault, "rename, with links");
    vault.write("index.md", "[the A](b.md) [the C](a.md)\n\nSee [the C](a.md) first.\n");
    check_left(&vault);
    // In a note that was edited since, a line that stayed is a guess at most.
    let vault = repository(&[
        ("a.md", &page("A")),
        ("c.md", &page("C")),
        ("index.md", "[the A](a.md)\n\n[the C](c.md)\n"),
    ]);
    git(vault.root(), &["mv", "a.md", "b.md"]);
    git(vault.root(), &["mv", "c.md", "a.md"]);
    vault.write("index.md", "[the A](a.md)\n\n[the C](a.md)\n");
    commit(&vault, "rename, with one link");
    let report = json(&vault, NOW, &["repair"]);
    assert_eq!(told(&report), ["index.md:1 [the A](a.md) -> b.md weak [\"git\"]"]);
}
