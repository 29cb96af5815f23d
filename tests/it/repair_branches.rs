//! `repair` where other files were at the paths of a file on its way: on other branches, in merges, and after it left.

use serde_json::Value;

use crate::git::{commit, git, git_vault as repository};
use crate::repair::{check_repair, page, told};
use crate::support::{TestVault, json};

const NOW: &str = "2026-11-20";

/// Moves files, each in a commit of its own.
fn moves(vault: &TestVault, moves: &[(&str, &str)]) {
    for (from, to) in moves {
        git(vault.root(), &["mv", "-f", from, to]);
        commit(vault, to);
    }
}

/// Checks that the one dead link is neither certain nor strong: nothing is repaired.
#[track_caller]
fn check_doubtful(vault: &TestVault, link: &str) {
    let reply = json(vault, NOW, &["repair", "--apply", "strong"]);
    assert_eq!(
        (&reply["links"][0]["link"], &reply["repaired"]),
        (&Value::from(link), &Value::from(0)),
        "{reply}"
    );
}

#[test]
fn a_file_that_came_back_and_moved_elsewhere_is_followed() {
    for (edited, certainty) in [("line 3 ", "certain"), ("line three ", "strong")] {
        let vault = repository(&[("a.md", &page("A")), ("n.md", "[a](a.md)\n")]);
        for (from, to) in [("a.md", "b.md"), ("b.md", "a.md"), ("a.md", "c.md")] {
            git(vault.root(), &["mv", from, to]);
            vault.write(to, vault.read(to).replace("line 3 ", edited));
            commit(&vault, to);
        }
        let expected = format!("n.md:1 [a](a.md) -> c.md {certainty} [\"git\"]");
        check_repair(&vault, certainty, &[&expected], &[("n.md", "[a](c.md)\n")]);
    }
}

#[test]
fn another_file_at_the_same_path_on_another_branch_is_not_followed() {
    for start in [&[][..], &[("a.md", "b.md"), ("b.md", "a.md")]] {
        let vault =
            repository(&[("a.md", &page("A")), ("other.md", &page("Other")), ("n.md", "[a](a.md)\n")]);
        moves(&vault, start);
        git(vault.root(), &["switch", "-qc", "side"]);
        moves(&vault, &[("other.md", "c.md"), ("c.md", "other.md")]);
        git(vault.root(), &["switch", "-q", "main"]);
        moves(&vault, &[("a.md", "c.md")]);
        git(vault.root(), &["merge", "-q", "--no-edit", "side"]);
        let expected = ["n.md:1 [a](a.md) -> c.md certain [\"git\"]"];
        check_repair(&vault, "certain", &expected, &[("n.md", "[a](c.md)\n")]);
    }
}

#[test]
fn a_link_that_is_written_after_a_merge_follows_a_page_that_is_edited_and_moved() {
    let vault = repository(&[("other.md", "Other\n")]);
    git(vault.root(), &["branch", "-q", "mine"]);
    vault.write("a.md", page("A"));
    commit(&vault, "a page");
    git(vault.root(), &["switch", "-q", "mine"]);
    vault.write("mine.md", "Mine\n");
    commit(&vault, "mine");
    git(vault.root(), &["merge", "-q", "--no-edit", "main"]);
    vault.write("n.md", "[a](a.md)\n");
    commit(&vault, "link");
    git(vault.root(), &["switch", "-q", "main"]);
    vault.write("a.md", page("A").replace("line 1", "another line 1"));
    commit(&vault, "edit");
    moves(&vault, &[("a.md", "b.md")]);
    git(vault.root(), &["merge", "-q", "--no-edit", "mine"]);
    let expected = ["n.md:1 [a](a.md) -> b.md certain [\"git\"]"];
    check_repair(&vault, "certain", &expected, &[("n.md", "[a](b.md)\n")]);
}

#[test]
fn a_link_means_the_file_of_its_own_branch() {
    let vault = repository(&[("other.md", "Other\n")]);
    git(vault.root(), &["switch", "-qc", "side"]);
    vault.write("a.md", page("Side"));
    vault.write("n.md", "[a](a.md)\n");
    commit(&vault, "side");
    git(vault.root(), &["switch", "-q", "main"]);
    vault.write("a.md", page("Main"));
    commit(&vault, "main");
    moves(&vault, &[("a.md", "b.md")]);
    git(vault.root(), &["merge", "-q", "--no-commit", "side"]);
    git(vault.root(), &["mv", "a.md", "c.md"]);
    commit(&vault, "merge");
    let expected = ["n.md:1 [a](a.md) -> c.md certain [\"content\"]"];
    check_repair(&vault, "certain", &expected, &[("n.md", "[a](c.md)\n")]);
}

#[test]
fn a_file_is_followed_past_a_page_that_is_like_it() {
    let like = page("A").replace("line 1 ", "line one ");
    let vault = repository(&[("a.md", &page("A")), ("like.md", &like), ("n.md", "[a](a.md)\n")]);
    moves(&vault, &[("a.md", "b.md"), ("b.md", "c.md"), ("like.md", "b.md")]);
    let report = json(&vault, NOW, &["repair", "--apply", "certain"]);
    assert_eq!(told(&report), ["n.md:1 [a](a.md) -> c.md certain [\"content\", \"git\"]"]);
    assert_eq!(vault.read("n.md"), "[a](c.md)\n");
    // If it was edited since, nobody can tell.
    let vault = repository(&[("a.md", &page("A")), ("like.md", &like), ("n.md", "[a](a.md)\n")]);
    moves(&vault, &[("a.md", "b.md"), ("b.md", "c.md"), ("like.md", "b.md")]);
    vault.write("c.md", page("A").replace("line 3 ", "line three "));
    commit(&vault, "edit");
    check_doubtful(&vault, "[a](a.md)");
}

#[test]
fn a_file_that_another_one_was_moved_onto_has_no_certain_place() {
    let vault = repository(&[("a.md", &page("A")), ("other.md", &page("Other")), ("n.md", "[a](a.md)\n")]);
    moves(&vault, &[("a.md", "b.md"), ("other.md", "b.md"), ("b.md", "c.md")]);
    check_doubtful(&vault, "[a](a.md)");
}

#[test]
fn a_merge_that_takes_the_file_of_another_branch_makes_it_doubtful() {
    let vault = repository(&[("a.md", &page("A")), ("n.md", "[a](a.md)\n")]);
    git(vault.root(), &["switch", "-qc", "side"]);
    vault.write("b.md", page("Side"));
    commit(&vault, "side");
    git(vault.root(), &["switch", "-q", "main"]);
    moves(&vault, &[("a.md", "b.md")]);
    git(vault.root(), &["merge", "-q", "-s", "ours", "--no-commit", "side"]);
    git(vault.root(), &["checkout", "-q", "side", "--", "b.md"]);
    vault.write("c.md", page("A"));
    commit(&vault, "merge");
    check_doubtful(&vault, "[a](a.md)");
}

#[test]
fn a_file_that_moved_too_often_has_no_certain_place() {
    let vault = repository(&[("a.md", &page("A")), ("n.md", "[a](a.md)\n")]);
    moves(&vault, &[("a.md", "b.md")]);
    for _ in 0..33 {
        moves(&vault, &[("b.md", "c.md"), ("c.md", "b.md")]);
    }
    vault.write("b.md", page("A").replace("line 3 ", "line three "));
    commit(&vault, "edit");
    check_doubtful(&vault, "[a](a.md)");
}
