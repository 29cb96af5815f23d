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
fn chapters_that_nobody_corrected_are_listed_and_left() {
    let (vault, _) = book(|title, path| format!("- [{title}]({path}.md)"));
    renumber(&vault);
    commit(&vault, "renumber");
    check_repair(
        &vault,
        "strong",
        &[
            "SUMMARY.md:2 [Two](ch02.md) -> ch03.md weak [\"git\"]",
            "SUMMARY.md:3 [Three](ch03.md) -> ch04.md weak [\"git\"]",
            "SUMMARY.md:4 [Four](ch04.md) -> ch05.md weak [\"git\"]",
        ],
        &[("SUMMARY.md", "- [One](ch01.md)\n- [Two](ch02.md)\n- [Three](ch03.md)\n- [Four](ch04.md)\n")],
    );
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

/// A step of a history: files that move, or a removal if the second path is empty.
type Steps<'s> = &'s [(&'s str, &'s str)];

/// Makes a repository with `a.md`, which links to `x.md`, and moves files, in a commit for each list. The last list stays
/// uncommitted if it is asked for.
fn moved_in(commits: &[Steps<'_>], is_last_committed: bool) -> TestVault {
    // Pages that have no word in common.
    let page = |name: &str| (0..200).map(|at| format!("{name}{at}\n")).collect::<String>();
    let vault = repository(&[
        ("a.md", &format!("[X](x.md)\n{}", page("a"))),
        ("x.md", &page("x")),
        ("y.md", &page("y")),
        ("v.md", &page("v")),
    ]);
    for folder in ["d", "e"] {
        fs::create_dir_all(vault.root().join(folder)).unwrap();
    }
    for (at, steps) in commits.iter().enumerate() {
        for (from, to) in *steps {
            if to.is_empty() {
                git(vault.root(), &["rm", "-q", from]);
            } else {
                git(vault.root(), &["mv", from, to]);
            }
        }
        if at + 1 < commits.len() || is_last_committed {
            commit(&vault, &format!("step {at}"));
        }
    }
    vault
}

/// Another file took the path of the target, and moved on. What the link meant is what it led to when it was written.
#[test]
fn a_link_means_the_file_that_it_led_to_when_it_was_written() {
    let x_away: Steps<'_> = &[("x.md", "d/x.md")];
    let y_there: Steps<'_> = &[("y.md", "x.md")];
    let both: Steps<'_> = &[("x.md", "d/x.md"), ("y.md", "x.md")];
    let on: Steps<'_> = &[("x.md", "w.md")];
    let gone: Steps<'_> = &[("x.md", "")];
    let note: Steps<'_> = &[("a.md", "d/a.md")];
    let found = |path: &str, to: &str| vec![format!("{path}:1 [X](x.md) -> {to} certain")];
    // The note did not move, and its link leads to a file.
    let listed = |to: &str| vec![format!("a.md:1 [X](x.md) -> {to} weak")];
    let cases: [(&str, Vec<Steps<'_>>, Vec<String>); 10] = [
        ("both in one commit, then on", vec![both, on], found("a.md", "d/x.md")),
        ("one after the other, then on", vec![x_away, y_there, on], found("a.md", "d/x.md")),
        (
            "deleted, another one there, then on",
            vec![gone, y_there, on],
            vec!["a.md:1 [X](x.md) -> - - deleted".to_owned()],
        ),
        ("another one there", vec![x_away, y_there], listed("d/x.md")),
        // The note moved beside its target, where its link is right.
        ("the note follows", vec![x_away, y_there, note], vec![]),
        (
            "deleted, another one there, the note moves",
            vec![gone, y_there, note],
            vec!["d/a.md:1 [X](x.md) -> - - deleted".to_owned()],
        ),
        (
            "elsewhere, another one there, the note moves",
            vec![&[("x.md", "e/x.md")], y_there, note],
            found("d/a.md", "e/x.md"),
        ),
        (
            "another note takes the path of the note",
            vec![&[("a.md", "d/a.md"), ("v.md", "a.md")]],
            found("d/a.md", "x.md"),
        ),
        ("on twice", vec![x_away, &[("d/x.md", "d/x2.md")], y_there], listed("d/x2.md")),
        ("another commit between", vec![both, &[("v.md", "y.md")], on], found("a.md", "d/x.md")),
    ];
    assert_eq!(cases.len(), 10);
    for (name, commits, expected) in cases {
        for is_last_committed in [false, true] {
            let vault = moved_in(&commits, is_last_committed);
            let report = json(&vault, NOW, &["repair"]);
            // Whatever speaks for it.
            let without_kinds = |line: String| {
                let (start, rest) = line.split_once(" [\"").or(line.split_once(" []")).unwrap();
                format!("{start}{}", rest.rsplit(']').next().unwrap())
            };
            let found: Vec<String> = told(&report).into_iter().map(without_kinds).collect();
            assert_eq!(found, expected, "{name}, committed: {is_last_committed}");
        }
    }
}

/// Git pairs files of the same content as it likes when two folders move in one commit.
#[test]
fn equal_notes_in_two_folders_are_told_apart_by_their_folders() {
    let twin = format!("# Twin\n\nSee [t](t.md).\n\n{}", page("Twin"));
    for (first, second) in [("X", "Y"), ("Y", "X")] {
        let files = [
            ("A/t.md", page("A")),
            ("A/twin.md", twin.clone()),
            ("B/t.md", page("B")),
            ("B/twin.md", twin.clone()),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let vault = repository(&files);
        git(vault.root(), &["mv", "A", first]);
        git(vault.root(), &["mv", "B", second]);
        check_left(&vault);
        // Their targets moved elsewhere, too.
        let vault = repository(&files);
        git(vault.root(), &["mv", "A/t.md", "a-t.md"]);
        git(vault.root(), &["mv", "B/t.md", "b-t.md"]);
        git(vault.root(), &["mv", "A", first]);
        git(vault.root(), &["mv", "B", second]);
        commit(&vault, "move all");
        let report = json(&vault, NOW, &["repair", "--apply", "certain"]);
        for (folder, target) in [(first, "a-t.md"), (second, "b-t.md")] {
            let text = vault.read(&format!("{folder}/twin.md"));
            let is_healed = text.contains(&format!("[t](../{target})"));
            assert!(is_healed || text.contains("[t](t.md)"), "{text}{report}");
        }
    }
}
