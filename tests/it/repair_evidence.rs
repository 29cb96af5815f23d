//! `repair` where the evidence is not of one file: notes made from a template, copies, files that bear the same name. What is
//! right stays as it is, and what cannot be told is weak.

use crate::git::{commit, git, git_vault as repository};
use crate::repair::{page, told};
use crate::support::{TestVault, json, stderr};

const NOW: &str = "2026-11-20";

/// Moves a file by git.
fn mv(vault: &TestVault, from: &str, to: &str) {
    if let Some(folder) = std::path::Path::new(to).parent() {
        std::fs::create_dir_all(vault.root().join(folder)).unwrap();
    }
    git(vault.root(), &["mv", from, to]);
}

fn copy(vault: &TestVault, from: &str, to: &str) {
    vault.write(to, vault.read(from));
}

/// A page with a last line.
fn with_line(title: &str, line: &str) -> String {
    format!("{}\n{line}\n", page(title))
}

/// A vault of Obsidian.
fn obsidian(files: &[(&str, &str)]) -> TestVault {
    repository(&[files, &[(".obsidian/app.json", "{}")]].concat())
}

/// Checks what `repair` lists, and that it changes as many links as are strong or certain in the list.
#[track_caller]
fn check_told(name: &str, vault: &TestVault, expected: &[&str]) {
    let report = json(vault, NOW, &["repair"]);
    assert_eq!(told(&report), expected, "{name}");
    let safe = expected.iter().filter(|line| line.contains(" certain ") || line.contains(" strong "));
    let safe = safe.count();
    let reply = json(vault, NOW, &["repair", "--apply", "strong"]);
    assert_eq!(reply["repaired"], safe, "{name}: {reply}");
    assert_eq!(json(vault, NOW, &["repair", "--apply", "strong"])["repaired"], 0, "{name}, again");
}

/// A day note made from a template, the link to it, and what becomes of it.
fn day_notes(change: impl Fn(&TestVault)) -> TestVault {
    let vault = obsidian(&[("27.md", &page("Day")), ("index.md", &with_line("Index", "[[27]]"))]);
    change(&vault);
    vault
}

#[test]
fn a_live_link_is_right_where_each_step_left_it_right() {
    type Case = (&'static str, fn() -> TestVault);
    let cases: [Case; 8] = [
        ("a folder is moved, and its old state copied back", || {
            let vault = repository(&[("old/S.md", &with_line("S", "[F](f.md)")), ("old/f.md", &page("F"))]);
            mv(&vault, "old", "new");
            commit(&vault, "move");
            copy(&vault, "new/S.md", "old/S.md");
            copy(&vault, "new/f.md", "old/f.md");
            vault
        }),
        ("a picture of its own language comes with the move of the note", || {
            let vault = obsidian(&[
                ("english/files/p.png", "a picture of some length, so that it is not short\n"),
                ("zh/notes/n.md", &with_line("N", "![[p.png]]")),
            ]);
            vault.write("zh/files/p.png", "another picture of some length, so that it is not short\n");
            mv(&vault, "zh/notes/n.md", "zh/other/n.md");
            vault
        }),
        ("a day note is filled, and the next one made from the template", || {
            day_notes(|vault| {
                copy(vault, "27.md", "28.md");
                vault.write("27.md", [page("Day"), page("Done"), page("More"), page("Still more")].concat());
            })
        }),
        ("a day note is written anew, and the next one made from the template", || {
            day_notes(|vault| {
                copy(vault, "27.md", "28.md");
                vault.write("27.md", page("Wholly other words"));
            })
        }),
        ("a note and its target move together, and a copy stays", || {
            let vault = repository(&[
                ("a/S.md", &with_line("S", "[F](f.md)")),
                ("a/f.md", &page("F")),
                ("z/f.md", &page("F")),
            ]);
            mv(&vault, "a", "b");
            vault
        }),
        ("a note is copied to another folder", || {
            let vault = repository(&[
                ("a/S.md", &with_line("S", "[F](f.md)")),
                ("a/f.md", &page("F")),
                ("b/f.md", &page("G")),
            ]);
            copy(&vault, "a/S.md", "b/S.md");
            vault
        }),
        ("a new note made from a template beside one that is deleted", || {
            let vault = obsidian(&[
                ("Templates/Day.md", &with_line("Day", "[[Tasks]]")),
                ("a/26.md", &with_line("Day", "[[Tasks]]")),
                ("a/Tasks.md", &page("A")),
                ("b/Tasks.md", &page("B")),
            ]);
            git(vault.root(), &["rm", "-q", "a/26.md"]);
            copy(&vault, "Templates/Day.md", "b/28.md");
            vault
        }),
        ("a name is given to a second file, which is preferred", || {
            let vault =
                obsidian(&[("deep/er/Plan.md", &page("Plan")), ("n.md", &with_line("N", "[[Plan]]"))]);
            vault.write("Plan.md", page("Another plan"));
            vault
        }),
    ];
    assert_eq!(cases.len(), 8);
    for (name, case) in cases {
        for is_committed in [false, true] {
            let vault = case();
            if is_committed {
                commit(&vault, name);
            }
            check_told(&format!("{name}, committed: {is_committed}"), &vault, &[]);
        }
    }
}

#[test]
fn a_tie_between_two_files_is_weak() {
    let vault = obsidian(&[
        ("en/files/p.png", "a picture of some length, so that it is not short\n"),
        ("zh/files/p.png", "another picture of some length, so that it is not short\n"),
        ("zh/notes/n.md", &with_line("N", "![[p.png]]")),
    ]);
    mv(&vault, "en", "x1");
    mv(&vault, "zh", "a1");
    commit(&vault, "move both");
    check_told("tie", &vault, &["a1/notes/n.md:24 ![[p.png]] -> x1/files/p.png weak [\"git\"]"]);
}

/// One commit replaces some files by others: what a link to a file that went away may mean is told by the names and contents of
/// all of them.
#[test]
fn a_file_that_may_be_another_one_as_well_is_weak() {
    let template = page("Day");
    let filled = |title: &str| format!("{}{}", template.replace("# Day", title), page("Done").repeat(3));
    type Files<'f> = &'f [(&'f str, &'f str)];
    let (day, other, done) = (filled("# Day"), filled("# The 27th"), page("Done"));
    let next = template.replace("# Day", "# The 28th");
    let first: Files<'_> = &[("27.md", &template)];
    let cases: [(&str, Files<'_>, Files<'_>, &str); 12] = [
        (
            "filled and renamed, and the next one made",
            first,
            &[("27b.md", &day), ("28.md", &template)],
            "28.md weak",
        ),
        ("with another title", first, &[("27b.md", &other), ("28.md", &template)], "28.md weak"),
        ("both with another title", first, &[("27b.md", &other), ("28.md", &next)], "28.md weak"),
        (
            "filled as a note that was there",
            &[("27.md", &template), ("log.md", &done)],
            &[("log.md", &day), ("28.md", &template)],
            "28.md weak",
        ),
        (
            "filled beside a page that goes away",
            &[("27.md", &template), ("26.md", &day)],
            &[("27b.md", &other), ("28.md", &template)],
            "28.md weak",
        ),
        (
            "a folder for each day",
            &[("27/day.md", &template)],
            &[("27b/day.md", &day), ("28/day.md", &template)],
            "28/day.md weak",
        ),
        (
            "a new page of other words comes with it",
            first,
            &[("28.md", &template), ("new.md", &done)],
            "28.md certain",
        ),
        (
            "the name tells it",
            &[("a/27.md", &template)],
            &[("b/27.md", &template), ("27b.md", &day)],
            "b/27.md certain",
        ),
        (
            "two copies of one name, one of them beside its neighbour",
            &[("a/c.md", &template), ("a/p.png", &done)],
            &[("b/c.md", &template), ("d/c.md", &template), ("d/p.png", &done)],
            "d/c.md weak",
        ),
        (
            "two copies of other names, one of them beside its neighbour",
            &[("a/c.md", &template), ("a/p.png", &done)],
            &[("b/e.md", &template), ("d/e.md", &template), ("d/p.png", &done)],
            "d/e.md weak",
        ),
        (
            "two copies of one name",
            &[("a/c.md", &template)],
            &[("b/c.md", &template), ("d/c.md", &template)],
            "b/c.md weak",
        ),
        (
            "one of two copies has the name",
            &[("a/c.md", &template)],
            &[("b/c.md", &template), ("d/e.md", &template)],
            "b/c.md certain",
        ),
    ];
    assert_eq!(cases.len(), 12);
    for (name, before, after, expected) in cases {
        let (target, _) = before[0];
        let index = with_line("Index", &format!("[x]({target})"));
        for is_committed in [false, true] {
            // Before the commit, a note that was there is not looked at: what changed in it would have to be read of all notes.
            if !is_committed && after.iter().any(|(path, _)| before.iter().any(|(old, _)| old == path)) {
                continue;
            }
            let vault = repository(&[before, &[("index.md", &index)]].concat());
            for (path, _) in before {
                vault.remove(path);
            }
            for (path, text) in after {
                vault.write(path, *text);
            }
            if is_committed {
                commit(&vault, name);
            }
            let expected = format!("index.md:24 [x]({target}) -> {expected} [\"git\"]");
            check_told(&format!("{name}, committed: {is_committed}"), &vault, &[&expected]);
        }
    }
}

/// The next page is made from the template only after the one before was filled and renamed.
#[test]
fn a_later_file_with_the_content_of_a_filled_one_is_another() {
    let filled = format!("{}{}", page("Day"), page("Done").repeat(3));
    for is_committed in [false, true] {
        let vault = repository(&[("27.md", &page("Day")), ("index.md", &with_line("Index", "[x](27.md)"))]);
        vault.remove("27.md");
        vault.write("27b.md", &filled);
        commit(&vault, "fill and rename");
        vault.write("28.md", page("Day"));
        if is_committed {
            commit(&vault, "the next day");
        }
        let expected = "index.md:24 [x](27.md) -> - - [] deleted";
        check_told(&format!("committed: {is_committed}"), &vault, &[expected]);
    }
}

#[test]
fn a_link_of_a_note_that_did_not_move_is_weak_at_most() {
    type Change = fn(&TestVault);
    let cases: [(&str, Change, &str); 4] = [
        (
            "a new file has the path of one that moved before",
            |vault| {
                mv(vault, "x.md", "2025.md");
                commit(vault, "archive");
                vault.write("x.md", page("Another year"));
            },
            "2025.md",
        ),
        (
            "two files changed places",
            |vault| {
                mv(vault, "x.md", "t.md");
                mv(vault, "y.md", "x.md");
                mv(vault, "t.md", "y.md");
            },
            "y.md",
        ),
        (
            "a file was moved to the path of one that moved",
            |vault| {
                mv(vault, "x.md", "z.md");
                mv(vault, "y.md", "x.md");
            },
            "z.md",
        ),
        (
            "the same in two steps",
            |vault| {
                mv(vault, "x.md", "z.md");
                commit(vault, "away");
                mv(vault, "y.md", "x.md");
            },
            "z.md",
        ),
    ];
    assert_eq!(cases.len(), 4);
    for (name, change, expected) in cases {
        for is_committed in [false, true] {
            // Before the commit nothing shows that two files changed places.
            if !is_committed && name == "two files changed places" {
                continue;
            }
            let line = "[x](x.md) and [[x]]";
            let vault =
                repository(&[("x.md", &page("X")), ("y.md", &page("Y")), ("i.md", &with_line("I", line))]);
            change(&vault);
            if is_committed {
                commit(&vault, name);
            }
            let told =
                ["[x](x.md)", "[[x]]"].map(|link| format!("i.md:24 {link} -> {expected} weak [\"git\"]"));
            let told: Vec<&str> = told.iter().map(String::as_str).collect();
            check_told(&format!("{name}, committed: {is_committed}"), &vault, &told);
            assert_eq!(vault.read("i.md"), with_line("I", line), "{name}");
        }
    }
}

#[test]
fn a_file_that_came_to_the_new_place_of_a_note_may_be_meant() {
    for (is_with_the_move, expected) in [(true, "weak"), (false, "certain")] {
        for is_committed in [false, true] {
            let vault = repository(&[("d/n.md", &with_line("N", "[x](x.md)")), ("d/x.md", &page("X"))]);
            if !is_with_the_move {
                vault.write("e/x.md", page("Y"));
                commit(&vault, "before");
            }
            mv(&vault, "d/n.md", "e/n.md");
            vault.write("e/x.md", page("Y"));
            if is_committed {
                commit(&vault, "move");
            }
            let expected = format!("e/n.md:24 [x](x.md) -> d/x.md {expected} [\"git\"]");
            check_told(&format!("{is_with_the_move}, committed: {is_committed}"), &vault, &[&expected]);
        }
    }
}

#[test]
fn a_deleted_file_is_not_replaced_by_one_of_the_same_content() {
    let deleted = "index.md:24 [[27]] -> - - [] deleted";
    let near = "index.md:24 [[27]] -> 28.md weak [\"git\"]";
    type Case = (&'static str, fn(&TestVault), &'static str);
    let cases: [Case; 3] = [
        (
            "the next one was there",
            |vault| {
                copy(vault, "27.md", "28.md");
                commit(vault, "the next day");
                git(vault.root(), &["rm", "-q", "27.md"]);
            },
            deleted,
        ),
        (
            "the next one comes with the deletion, and the one before had the content",
            |vault| {
                copy(vault, "27.md", "26.md");
                commit(vault, "the day before");
                vault.write("26.md", page("Filled"));
                commit(vault, "fill it");
                copy(vault, "27.md", "28.md");
                git(vault.root(), &["rm", "-q", "27.md"]);
            },
            near,
        ),
        (
            "the same, and the template is in the vault",
            |vault| {
                copy(vault, "27.md", "Templates/Day.md");
                commit(vault, "the template");
                copy(vault, "27.md", "28.md");
                git(vault.root(), &["rm", "-q", "27.md"]);
            },
            near,
        ),
    ];
    assert_eq!(cases.len(), 3);
    for (name, change, expected) in cases {
        for is_committed in [false, true] {
            let vault = day_notes(change);
            if is_committed {
                commit(&vault, name);
            }
            check_told(&format!("{name}, committed: {is_committed}"), &vault, &[expected]);
        }
    }
}

#[test]
fn equal_files_are_told_apart_by_their_folder() {
    let vault = repository(&[
        ("a/index.md", &page("Stub")),
        ("b/index.md", &page("Stub")),
        ("a/one.md", &page("One")),
        ("n.md", "[i](a/index.md)\n"),
    ]);
    mv(&vault, "a", "c");
    commit(&vault, "move the folder");
    check_told("with the folder", &vault, &["n.md:1 [i](a/index.md) -> c/index.md certain [\"git\"]"]);
}

#[test]
fn a_link_that_is_older_than_its_note_follows_it() {
    let vault = obsidian(&[("index.md", &with_line("Index", "[[Future]]"))]);
    vault.write("notes/Future.md", page("Future"));
    commit(&vault, "write it");
    mv(&vault, "notes/Future.md", "archive/Later.md");
    commit(&vault, "move it");
    vault.write("other.md", page("Other"));
    commit(&vault, "another");
    check_told("note", &vault, &["index.md:24 [[Future]] -> archive/Later.md certain [\"git\"]"]);
    // The note with the link moved away from it.
    let vault = repository(&[("d/n.md", &with_line("N", "[x](x.md)"))]);
    vault.write("d/x.md", page("X"));
    commit(&vault, "write it");
    mv(&vault, "d/n.md", "e/n.md");
    commit(&vault, "move the note");
    check_told("source", &vault, &["e/n.md:24 [x](x.md) -> d/x.md certain [\"git\"]"]);
    // Another file came to the path by chance.
    let vault = repository(&[("index.md", &with_line("Index", "[x](x.md)")), ("y.md", &page("Y"))]);
    mv(&vault, "y.md", "x.md");
    commit(&vault, "by chance");
    mv(&vault, "x.md", "z.md");
    commit(&vault, "away");
    let report = json(&vault, NOW, &["repair", "--apply", "strong"]);
    assert_eq!(report["repaired"], 0, "{report}");
}

#[test]
fn a_note_that_was_written_anew_and_moved_is_followed() {
    for is_committed in [false, true] {
        let vault = repository(&[("x.md", &page("X")), ("a.md", &with_line("A", "[X](x.md)"))]);
        git(vault.root(), &["rm", "-q", "x.md"]);
        commit(&vault, "delete");
        vault.write("x.md", page("Something else"));
        commit(&vault, "anew");
        mv(&vault, "x.md", "w.md");
        if is_committed {
            commit(&vault, "move");
        }
        let expected = "a.md:24 [X](x.md) -> w.md strong [\"git\"]";
        check_told(&format!("committed: {is_committed}"), &vault, &[expected]);
    }
}

#[test]
fn a_link_that_a_note_of_the_same_name_took_is_listed() {
    let files = [
        ("de/intro.md", page("Deutsch")),
        ("fr/intro.md", page("French")),
        ("de/n.md", with_line("N", "[[intro]]")),
        (".obsidian/app.json", "{}".to_owned()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    for is_committed in [false, true] {
        let vault = repository(&files);
        mv(&vault, "de/intro.md", "de/start.md");
        if is_committed {
            commit(&vault, "move");
        }
        let expected = "de/n.md:24 [[intro]] -> de/start.md weak [\"git\"]";
        check_told(&format!("committed: {is_committed}"), &vault, &[expected]);
    }
    // Without git, the index saw the move. A note that was edited since may mean what it leads to.
    let vault = TestVault::new(&files);
    json(&vault, NOW, &["index"]);
    vault.rename("de/intro.md", "de/start.md");
    json(&vault, "2027-01-01", &["index"]);
    check_told("index", &vault, &["de/n.md:24 [[intro]] -> de/start.md weak [\"index\"]"]);
}

#[test]
fn a_content_that_git_cannot_read_voids_no_other_evidence() {
    let vault = repository(&[
        ("x.md", &page("X")),
        ("y.md", &page("Y")),
        ("z.md", &page("Z")),
        ("a.md", &with_line("A", "[X](x.md) [Y](y.md)")),
    ]);
    mv(&vault, "x.md", "w.md");
    commit(&vault, "move x");
    git(vault.root(), &["rm", "-q", "z.md"]);
    vault.write("zz.md", page("Z").replace("line 3 ", "line three "));
    commit(&vault, "rename and edit z");
    mv(&vault, "y.md", "v.md");
    commit(&vault, "move y");
    let id = git(vault.root(), &["rev-parse", "HEAD~3:z.md"]).trim().to_owned();
    std::fs::remove_file(vault.root().join(".git/objects").join(&id[..2]).join(&id[2..])).unwrap();
    let done = vault.run(&["repair", "--apply", "certain"]);
    assert!(stderr(&done).contains("a content that 1 commit added or removed"), "{done:?}");
    assert_eq!(vault.read("a.md"), with_line("A", "[X](w.md) [Y](v.md)"));
}
