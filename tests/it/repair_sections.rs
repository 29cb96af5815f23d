//! Repair of links to headings whose section moved whole to another note (docs/spec/git.md 3, *strong*).

use crate::git::{commit, git, git_vault as repository};
use crate::repair::{check_repair, page, told};
use crate::support::{TestVault, json};

const NOW: &str = "2026-11-20";

/// A section that is long enough to be told by its text.
fn section(level: &str, title: &str) -> String {
    format!(
        "{level} {title}\n\n{title} takes a while, because every step of it has to be done by hand.\nThen it is done.\n"
    )
}

/// A guide of three sections.
fn guide() -> String {
    ["Setup", "Use", "Repair"]
        .map(|title| section("##", title))
        .iter()
        .fold("# Guide\n\n".to_owned(), |all, one| format!("{all}{one}\n"))
}

/// Checks what becomes of links to the section *Setup* of a guide after a change, with and without a commit.
#[track_caller]
fn check_section(links: &str, change: impl Fn(&TestVault), found: &[&str], repaired: &str) {
    for is_committed in [false, true] {
        let vault = repository(&[("guide.md", &guide()), ("other.md", &page("Other")), ("index.md", links)]);
        change(&vault);
        if is_committed {
            commit(&vault, "tidy up");
        }
        check_repair(&vault, "certain", found, &[("index.md", links)]);
        check_repair(&vault, "strong", found, &[("index.md", repaired)]);
    }
}

fn without_setup() -> String {
    guide().replace(&section("##", "Setup"), "")
}

#[test]
fn a_link_to_a_section_that_moved_to_another_note_follows_it() {
    // To a new note, as a heading of another level.
    check_section(
        "[set up](guide.md#setup) [use](guide.md#use) [all](guide.md) [[guide#Setup|by name]]\n",
        |vault| {
            vault.write("guide.md", without_setup());
            vault.write("install/first.md", section("#", "Setup"));
        },
        &[
            "index.md:1 [set up](guide.md#setup) -> install/first.md strong [\"git\"]",
            "index.md:1 [[guide#Setup|by name]] -> install/first.md strong [\"git\"]",
        ],
        "[set up](install/first.md#setup) [use](guide.md#use) [all](guide.md) [[first#Setup|by name]]\n",
    );
    // To the end of a note that was there.
    check_section(
        "[set up](guide.md#setup)\n",
        |vault| {
            vault.write("guide.md", without_setup());
            vault.write("other.md", page("Other") + "\n" + &section("##", "Setup").replace('\n', "\r\n"));
        },
        &["index.md:1 [set up](guide.md#setup) -> other.md strong [\"git\"]"],
        "[set up](other.md#setup)\n",
    );
    // The note was taken apart.
    check_section(
        "[set up](guide.md#setup) [use](guide.md#use) [all](guide.md)\n",
        |vault| {
            git(vault.root(), &["rm", "-q", "guide.md"]);
            vault.write("a.md", section("#", "Setup"));
            vault.write("b.md", section("#", "Use"));
        },
        &[
            "index.md:1 [set up](guide.md#setup) -> a.md strong [\"git\"]",
            "index.md:1 [use](guide.md#use) -> b.md strong [\"git\"]",
            "index.md:1 [all](guide.md) -> - - [] deleted",
        ],
        "[set up](a.md#setup) [use](b.md#use) [all](guide.md)\n",
    );
}

#[test]
fn a_section_that_was_changed_copied_or_dropped_has_no_new_place() {
    let links = "[set up](guide.md#setup)\n";
    // It was rewritten on its way.
    let other = || section("#", "Setup").replace("by hand", "by a program");
    check_section(
        links,
        |vault| {
            vault.write("guide.md", without_setup());
            vault.write("first.md", other());
        },
        &[],
        links,
    );
    // Two notes have it.
    check_section(
        links,
        |vault| {
            vault.write("guide.md", without_setup());
            vault.write("first.md", section("#", "Setup"));
            vault.write("second.md", section("#", "Setup"));
        },
        &[],
        links,
    );
    // It is there still.
    check_section(links, |vault| vault.write("first.md", section("#", "Setup")), &[], links);
    // It has too little text to be told by it.
    let vault = repository(&[("guide.md", "# Guide\n\n## Setup\n\nShort.\n"), ("index.md", links)]);
    vault.write("guide.md", "# Guide\n");
    vault.write("first.md", "# Setup\n\nShort.\n");
    assert_eq!(told(&json(&vault, NOW, &["repair"])), [""; 0]);
}

#[test]
fn a_section_is_followed_through_several_moves() {
    let links = "[set up](guide.md#setup)\n";
    let vault = repository(&[("guide.md", &guide()), ("other.md", &page("Other")), ("index.md", links)]);
    vault.write("guide.md", without_setup());
    vault.write("other.md", page("Other") + "\n" + &section("##", "Setup"));
    commit(&vault, "to other");
    vault.write("other.md", page("Other"));
    vault.write("third.md", section("#", "Setup"));
    commit(&vault, "to a note of its own");
    git(vault.root(), &["mv", "third.md", "set-up.md"]);
    git(vault.root(), &["mv", "guide.md", "handbook.md"]);
    commit(&vault, "rename both");
    check_repair(
        &vault,
        "strong",
        &["index.md:1 [set up](guide.md#setup) -> set-up.md strong [\"git\"]"],
        &[("index.md", "[set up](set-up.md#setup)\n")],
    );
}
