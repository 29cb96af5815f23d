//! `repair`: links that are dead, or lead elsewhere than they meant, because files moved without sidenote.

use std::fs;
use std::process::Command;

use serde_json::Value;
use sidenote::index::silent;
use sidenote::store::{Certainty, RepairRequest};

use crate::git::{commit, git, git_vault as repository, init};
use crate::support::{TestVault, json, program, run, stderr, stdout, until};

const NOW: &str = "2026-11-20";

/// A note of some length, so that git recognises it.
pub(crate) fn page(title: &str) -> String {
    let lines: String = (0..20).map(|line| format!("{title}, line {line} of a page with words.\n")).collect();
    format!("# {title}\n\n{lines}")
}

/// Lists the links of a reply as `path:line link -> target certainty [kinds]`.
pub(crate) fn told(reply: &Value) -> Vec<String> {
    let item = |item: &Value| {
        let text = |name: &str| item[name].as_str().unwrap_or("-").to_owned();
        let kinds: Vec<&str> = item["evidence"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["kind"].as_str().unwrap())
            .collect();
        let deleted = if item["deleted"].is_null() { "" } else { " deleted" };
        format!(
            "{}:{} {} -> {} {} {kinds:?}{deleted}",
            text("path"),
            item["line"],
            text("link"),
            text("to"),
            text("certainty")
        )
    };
    reply["links"].as_array().unwrap().iter().map(item).collect()
}

/// Checks what `repair` says, repairs with `--apply`, and checks a note. A second run must find nothing.
#[track_caller]
pub(crate) fn check_repair(vault: &TestVault, apply: &str, expected: &[&str], notes: &[(&str, &str)]) {
    let report = json(vault, NOW, &["repair"]);
    assert_eq!(told(&report), expected);
    let before: Vec<String> = notes.iter().map(|(path, _)| vault.read(path)).collect();
    let reply = json(vault, NOW, &["repair", "--apply", apply]);
    for (path, text) in notes {
        assert_eq!(vault.read(path), *text, "{path}");
    }
    let again = json(vault, NOW, &["repair", "--apply", apply]);
    assert_eq!(again["repaired"], 0, "{again}");
    if reply["repaired"] != 0 {
        json(vault, NOW, &["undo"]);
        let undone: Vec<String> = notes.iter().map(|(path, _)| vault.read(path)).collect();
        assert_eq!(undone, before);
    }
}

#[test]
fn links_follow_a_git_mv_that_is_not_committed() {
    let vault = repository(&[
        ("docs/guide.md", &page("Guide")),
        ("README.md", "See [guide](docs/guide.md#guide) and [home](README.md).\n"),
    ]);
    git(vault.root(), &["mv", "docs/guide.md", "docs/handbook.md"]);
    check_repair(
        &vault,
        "certain",
        &["README.md:1 [guide](docs/guide.md#guide) -> docs/handbook.md certain [\"git\"]"],
        &[("README.md", "See [guide](docs/handbook.md#guide) and [home](README.md).\n")],
    );
}

#[test]
fn links_follow_renames_in_commits_step_by_step() {
    let vault = repository(&[("a.md", &page("A")), ("index.md", "A line.\n\n[a](a.md)\n")]);
    fs::create_dir(vault.root().join("deep")).unwrap();
    git(vault.root(), &["mv", "a.md", "deep/a.md"]);
    commit(&vault, "move it");
    git(vault.root(), &["mv", "deep/a.md", "deep/b.md"]);
    vault.write("index.md", "Another line.\n\n[a](a.md)\n");
    commit(&vault, "rename it");
    git(vault.root(), &["mv", "deep/b.md", "c.md"]);
    check_repair(
        &vault,
        "certain",
        &["index.md:3 [a](a.md) -> c.md certain [\"git\"]"],
        &[("index.md", "Another line.\n\n[a](c.md)\n")],
    );
}

#[test]
fn links_inside_a_moved_note_lead_to_the_same_files() {
    let vault = repository(&[
        ("docs/a/guide.md", "[near](near.md) ![](../img/x.png) [home](README.md)\n"),
        ("docs/a/near.md", &page("Near")),
        ("docs/a/README.md", &page("A")),
        ("docs/README.md", &page("Docs")),
        ("docs/img/x.png", "png\n"),
    ]);
    git(vault.root(), &["mv", "docs/a/guide.md", "docs/guide.md"]);
    let expected = [
        "docs/guide.md:1 [near](near.md) -> docs/a/near.md certain [\"git\"]",
        "docs/guide.md:1 ![](../img/x.png) -> docs/img/x.png certain [\"git\"]",
        "docs/guide.md:1 [home](README.md) -> docs/a/README.md certain [\"git\"]",
    ];
    let repaired = "[near](a/near.md) ![](img/x.png) [home](a/README.md)\n";
    check_repair(&vault, "certain", &expected, &[("docs/guide.md", repaired)]);
    // The same in the next commits.
    commit(&vault, "move it");
    vault.write("other.md", "Another note.\n");
    commit(&vault, "another");
    check_repair(&vault, "certain", &expected, &[("docs/guide.md", repaired)]);
}

#[test]
fn a_link_of_another_branch_follows_a_merge() {
    let vault = repository(&[("a.md", &page("A")), ("b.md", "B\n")]);
    git(vault.root(), &["switch", "-qc", "side"]);
    vault.write("new.md", "A new link to [a](a.md).\n");
    commit(&vault, "link");
    git(vault.root(), &["switch", "-q", "main"]);
    git(vault.root(), &["mv", "a.md", "z.md"]);
    commit(&vault, "rename");
    git(vault.root(), &["merge", "-q", "--no-edit", "side"]);
    check_repair(
        &vault,
        "certain",
        &["new.md:1 [a](a.md) -> z.md certain [\"git\"]"],
        &[("new.md", "A new link to [a](z.md).\n")],
    );
}

#[test]
fn a_file_that_changed_on_its_way_is_strong_and_two_candidates_are_weak() {
    let vault = repository(&[("a.md", &page("A")), ("index.md", "[a](a.md)\n")]);
    git(vault.root(), &["mv", "a.md", "b.md"]);
    vault.write("b.md", page("A").replace("line 3 ", "line three "));
    commit(&vault, "rename and edit");
    check_repair(
        &vault,
        "certain",
        &["index.md:1 [a](a.md) -> b.md strong [\"git\"]"],
        &[("index.md", "[a](a.md)\n")],
    );
    check_repair(
        &vault,
        "strong",
        &["index.md:1 [a](a.md) -> b.md strong [\"git\"]"],
        &[("index.md", "[a](b.md)\n")],
    );

    let vault = repository(&[("a.md", &page("A")), ("index.md", "[a](a.md)\n")]);
    fs::remove_file(vault.root().join("a.md")).unwrap();
    vault.write("b.md", page("A").replace("line 3 ", "line three "));
    vault.write("c.md", page("A").replace("line 4 ", "line four "));
    commit(&vault, "two copies");
    let report = json(&vault, NOW, &["repair"]);
    assert_eq!(
        (&report["links"][0]["certainty"], &report["repaired"]),
        (&Value::from("weak"), &Value::from(0))
    );
}

#[test]
fn a_deleted_file_is_never_replaced_and_an_unwritten_note_is_left() {
    let vault = repository(&[
        ("a.md", &page("A")),
        ("other.md", &page("Other")),
        ("index.md", "[a](a.md) [later](later.md)\n"),
    ]);
    git(vault.root(), &["rm", "-q", "a.md"]);
    commit(&vault, "remove it");
    let report = json(&vault, NOW, &["repair"]);
    assert_eq!(told(&report), ["index.md:1 [a](a.md) -> - - [] deleted"]);
    assert_eq!((&report["unexplained"], &report["repaired"]), (&Value::from(1), &Value::from(0)));
    let said = run(&vault, NOW, &["repair"]);
    assert!(said.contains("a.md was deleted by") && said.contains("remove it"), "{said}");
}

#[test]
fn an_id_or_the_same_content_tells_a_note_that_git_lost() {
    let with_id = |text: &str| format!("---\nid: heron-7\n---\n{text}");
    let vault = repository(&[
        ("a.md", &with_id("Short.\n")),
        ("c.md", &page("C")),
        ("index.md", "[a](a.md) [c](c.md)\n"),
    ]);
    git(vault.root(), &["rm", "-q", "a.md", "c.md"]);
    commit(&vault, "remove");
    vault.write("deep/new.md", with_id("Something else entirely, in other words and more of them.\n"));
    vault.write("deep/c2.md", page("C"));
    commit(&vault, "bring back");
    check_repair(
        &vault,
        "certain",
        &[
            "index.md:1 [a](a.md) -> deep/new.md certain [\"id\"]",
            "index.md:1 [c](c.md) -> deep/c2.md certain [\"content\"]",
        ],
        &[("index.md", "[a](deep/new.md) [c](deep/c2.md)\n")],
    );
}

#[test]
fn copies_are_told_apart_by_their_folders() {
    let vault = repository(&[
        ("x/index.md", "Same.\n"),
        ("y/index.md", "Same.\n"),
        ("x/one.md", &page("One")),
        ("y/two.md", &page("Two")),
        ("list.md", "[x](x/index.md) [y](y/index.md)\n"),
    ]);
    fs::rename(vault.root().join("x"), vault.root().join("p")).unwrap();
    fs::rename(vault.root().join("y"), vault.root().join("q")).unwrap();
    check_repair(
        &vault,
        "certain",
        &[
            "list.md:1 [x](x/index.md) -> p/index.md certain [\"git\"]",
            "list.md:1 [y](y/index.md) -> q/index.md certain [\"git\"]",
        ],
        &[("list.md", "[x](p/index.md) [y](q/index.md)\n")],
    );
}

#[test]
fn a_vault_of_obsidian_keeps_its_forms() {
    let vault = repository(&[
        (".obsidian/app.json", "{}"),
        ("Notes/Plan.md", &page("Plan")),
        (
            "A.md",
            "---\nup: \"[[Plan]]\"\n---\n[[Plan#Plan|the plan]] ![[Plan]] [p](Notes/Plan.md) [[Notes/Plan]]\n",
        ),
    ]);
    git(vault.root(), &["mv", "Notes/Plan.md", "Notes/Roadmap.md"]);
    let report = json(&vault, NOW, &["repair", "--apply", "certain"]);
    assert_eq!(report["repaired"], 5, "{report}");
    assert_eq!(
        vault.read("A.md"),
        "---\nup: \"[[Roadmap]]\"\n---\n[[Roadmap#Plan|the plan]] ![[Roadmap]] [p](Notes/Roadmap.md) [[Roadmap]]\n"
    );
}

#[test]
fn without_git_the_index_remembers_where_a_note_went() {
    let vault = TestVault::new(&[("docs/a.md", &page("A")), ("index.md", "[it](docs/a.md)\n")]);
    json(&vault, NOW, &["index"]);
    fs::rename(vault.root().join("docs/a.md"), vault.root().join("docs/b.md")).unwrap();
    json(&vault, NOW, &["list"]);
    fs::rename(vault.root().join("docs/b.md"), vault.root().join("c.md")).unwrap();
    check_repair(
        &vault,
        "certain",
        &["index.md:1 [it](docs/a.md) -> c.md certain [\"index\"]"],
        &[("index.md", "[it](c.md)\n")],
    );
}

#[test]
fn a_path_limits_a_repair() {
    let vault =
        repository(&[("a.md", &page("A")), ("x/one.md", "[a](../a.md)\n"), ("y/two.md", "[a](../a.md)\n")]);
    git(vault.root(), &["mv", "a.md", "b.md"]);
    let reply = json(&vault, NOW, &["repair", "x/", "--apply", "certain"]);
    assert_eq!(reply["repaired"], 1, "{reply}");
    assert_eq!(
        (vault.read("x/one.md").as_str(), vault.read("y/two.md").as_str()),
        ("[a](../b.md)\n", "[a](../a.md)\n")
    );
    let wrong = vault.run(&["repair", "z/"]);
    assert_eq!(wrong.status.code(), Some(3));
}

#[test]
fn a_process_that_follows_the_files_repairs_certain_links_if_it_is_set() {
    let vault = TestVault::new(&[("docs/a.md", &page("A")), ("index.md", "[it](docs/a.md)\n")]);
    let store = vault.open_set(&[("embed.provider", "none"), ("repair.auto", "certain")]);
    store.index().sync(silent()).unwrap();
    let follower = store.upkeep().follow(|_| {}).unwrap();
    vault.rename("docs/a.md", "notes/b.md");
    until("the link follows", || vault.read("index.md") == "[it](notes/b.md)\n");
    drop(follower);
}

#[test]
fn an_automatic_repair_waits_for_git() {
    let vault = repository(&[("a.md", &page("A")), ("index.md", "[a](a.md)\n")]);
    git(vault.root(), &["mv", "a.md", "b.md"]);
    let store = vault.store();
    let automatic =
        RepairRequest { apply: Some(Certainty::Certain), is_automatic: true, ..RepairRequest::default() };
    for (mark, waits_for) in [
        ("MERGE_HEAD", "a merge"),
        ("rebase-merge", "a rebase"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("BISECT_LOG", "a bisection"),
        ("index.lock", "a command of git"),
    ] {
        vault.write(&format!(".git/{mark}"), "");
        let reply = store.repairs().repair(&automatic).unwrap();
        assert_eq!(reply.waits_for, Some(format!("{waits_for} is not finished")));
        assert_eq!((reply.repaired, vault.read("index.md").as_str()), (0, "[a](a.md)\n"));
        vault.remove(&format!(".git/{mark}"));
    }
    until("git is quiet", || store.repairs().repair(&automatic).unwrap().waits_for.is_none());
    assert_eq!(vault.read("index.md"), "[a](b.md)\n");
}

#[test]
fn evidence_that_disagrees_is_weak() {
    let with_id = |id: &str, text: &str| format!("---\nid: {id}\n---\n{text}");
    let vault = repository(&[("a.md", &with_id("one", &page("A"))), ("index.md", "[a](a.md)\n")]);
    // Most of the text goes to one note, and the id to another.
    vault.remove("a.md");
    vault.write("text.md", with_id("two", &page("A")));
    vault.write("id.md", with_id("one", "Something else entirely, in other words.\n"));
    commit(&vault, "split");
    let report = json(&vault, NOW, &["repair"]);
    assert_eq!(told(&report), ["index.md:1 [a](a.md) -> - weak [\"id\", \"git\"]"]);
    let applied = json(&vault, NOW, &["repair", "--apply", "strong"]);
    assert_eq!((applied["repaired"].as_u64(), vault.read("index.md").as_str()), (Some(0), "[a](a.md)\n"));
}

#[test]
fn files_of_other_kinds_are_followed_and_crlf_stays() {
    let vault = repository(&[
        ("img/a.png", "png one\n"),
        ("img/b.png", "png two\n"),
        ("index.md", "# T\r\n\r\n![](img/a.png) ![b](<img/b.png>)\r\n"),
    ]);
    git(vault.root(), &["mv", "img", "assets"]);
    let reply = json(&vault, NOW, &["repair", "--apply", "certain"]);
    assert_eq!(reply["repaired"], 2, "{reply}");
    assert_eq!(vault.read("index.md"), "# T\r\n\r\n![](assets/a.png) ![b](<assets/b.png>)\r\n");
}

#[test]
fn a_vault_in_a_subfolder_is_repaired_by_the_history_of_the_repository() {
    let outer = TestVault::new(&[
        ("wiki/docs/a.md", &page("A")),
        ("wiki/index.md", "[a](docs/a.md)\n"),
        ("code.rs", "\n"),
    ]);
    outer.write(".gitignore", ".home/\n.sidenote/\n");
    init(&outer);
    fs::create_dir(outer.root().join("wiki/new")).unwrap();
    git(outer.root(), &["mv", "wiki/docs/a.md", "wiki/new/b.md"]);
    git(outer.root(), &["commit", "-qm", "move"]);
    let reply = Command::new(program())
        .env("SIDENOTE_EMBED_PROVIDER", "none")
        .env("HOME", outer.root().join(".home"))
        .args(["repair", "--apply", "certain", "--vault"])
        .arg(outer.root().join("wiki"))
        .output()
        .unwrap();
    assert!(reply.status.success(), "{reply:?}");
    assert_eq!(outer.read("wiki/index.md"), "[a](new/b.md)\n");
}

#[test]
fn a_link_that_leads_out_of_the_vault_since_its_note_moved_up_is_repaired() {
    let vault = repository(&[
        ("a/b/note.md", "[x](../../x.md) [out](../../../elsewhere.md)\n"),
        ("x.md", &page("X")),
    ]);
    git(vault.root(), &["mv", "a/b/note.md", "note.md"]);
    let reply = json(&vault, NOW, &["repair", "--apply", "certain"]);
    assert_eq!((reply["repaired"].as_u64(), reply["unexplained"].as_u64()), (Some(1), Some(0)), "{reply}");
    assert_eq!(vault.read("note.md"), "[x](x.md) [out](../../../elsewhere.md)\n");
}

#[test]
fn check_repairs_links_on_request() {
    let vault = repository(&[("a.md", &page("A")), ("index.md", "[a](a.md) [no](no.md)\n")]);
    git(vault.root(), &["mv", "a.md", "b.md"]);
    let reply = json(&vault, NOW, &["check", "--fix=links", "--only", "broken-link"]);
    assert_eq!(vault.read("index.md"), "[a](b.md) [no](no.md)\n");
    assert_eq!(reply["problems"].as_array().unwrap().len(), 1, "{reply}");
}

#[test]
fn the_commit_that_wrote_a_link_counts_and_not_a_file_of_the_same_name_beside_the_moved_note() {
    let vault =
        repository(&[("a/n.md", "[x](g.md)\n"), ("a/g.md", &page("Guide")), ("b/g.md", &page("Gardening"))]);
    git(vault.root(), &["mv", "a/n.md", "b/n.md"]);
    commit(&vault, "move the note");
    fs::create_dir(vault.root().join("c")).unwrap();
    git(vault.root(), &["mv", "b/g.md", "c/g.md"]);
    check_repair(
        &vault,
        "certain",
        &["b/n.md:1 [x](g.md) -> a/g.md certain [\"git\"]"],
        &[("b/n.md", "[x](../a/g.md)\n")],
    );
}

#[test]
fn two_branches_that_rename_a_file_differently_make_it_weak() {
    let vault = repository(&[("d/a.md", &page("A")), ("n.md", "[a](d/a.md)\n")]);
    git(vault.root(), &["switch", "-qc", "side"]);
    git(vault.root(), &["mv", "d/a.md", "d/x.md"]);
    commit(&vault, "x");
    let other = vault.read("d/x.md");
    git(vault.root(), &["switch", "-q", "main"]);
    git(vault.root(), &["mv", "d/a.md", "d/m.md"]);
    commit(&vault, "m");
    git(vault.root(), &["merge", "-q", "-s", "ours", "--no-edit", "side"]);
    vault.write("d/x.md", other);
    commit(&vault, "both");
    let report = json(&vault, NOW, &["repair"]);
    assert_eq!(report["links"][0]["certainty"], "weak", "{report}");
    assert_eq!(json(&vault, NOW, &["repair", "--apply", "strong"])["repaired"], 0);
}

#[test]
fn a_link_that_was_dead_from_the_start_gets_no_target_by_the_new_folder_of_its_note() {
    let vault = repository(&[("a/n.md", "see [x](../g.md)\n"), ("b/g.md", &page("G"))]);
    fs::create_dir_all(vault.root().join("b/c")).unwrap();
    fs::create_dir_all(vault.root().join("new")).unwrap();
    git(vault.root(), &["mv", "b/g.md", "new/g.md"]);
    commit(&vault, "move the file");
    git(vault.root(), &["mv", "a/n.md", "b/c/n.md"]);
    commit(&vault, "move the note");
    assert_eq!(json(&vault, NOW, &["repair", "--apply", "strong"])["repaired"], 0);
}

#[test]
fn the_command_index_keeps_what_it_saw_move() {
    let vault = TestVault::new(&[("d/a.md", &page("A")), ("n.md", "[it](d/a.md)\n")]);
    json(&vault, NOW, &["index"]);
    vault.rename("d/a.md", "e/b.md");
    json(&vault, NOW, &["index"]);
    check_repair(
        &vault,
        "certain",
        &["n.md:1 [it](d/a.md) -> e/b.md certain [\"index\"]"],
        &[("n.md", "[it](e/b.md)\n")],
    );
}

#[test]
fn a_shallow_clone_is_named_where_evidence_is_missing() {
    let vault = repository(&[("a.md", &page("A")), ("index.md", "[a](a.md)\n")]);
    git(vault.root(), &["mv", "a.md", "b.md"]);
    commit(&vault, "move");
    vault.write("other.md", "Another note.\n");
    commit(&vault, "another");
    let clone = TestVault::new(&[]);
    let address = format!("file://{}", vault.root().display());
    git(clone.root(), &["clone", "-q", "--depth", "1", &address, "."]);
    let said = clone.run(&["repair"]);
    assert!(stderr(&said).contains("only the last part of its history"), "{said:?}");
    assert!(stdout(&said).contains("found: 1 broken link without evidence"), "{said:?}");
}

#[test]
fn a_target_whose_path_another_file_took_is_listed() {
    for is_committed in [false, true] {
        let vault = repository(&[("a.md", &page("A")), ("c.md", &page("C")), ("index.md", "[a](a.md)\n")]);
        git(vault.root(), &["mv", "a.md", "b.md"]);
        git(vault.root(), &["mv", "c.md", "a.md"]);
        if is_committed {
            commit(&vault, "rename both");
        }
        check_repair(
            &vault,
            "strong",
            &["index.md:1 [a](a.md) -> b.md weak [\"git\"]"],
            &[("index.md", "[a](a.md)\n")],
        );
    }
}

#[test]
fn a_new_file_at_the_path_of_a_target_that_moved_may_be_meant() {
    let vault = repository(&[("a.md", &page("A")), ("index.md", "[a](a.md)\n")]);
    git(vault.root(), &["mv", "a.md", "b.md"]);
    commit(&vault, "rename");
    vault.write("a.md", page("Something else"));
    commit(&vault, "a new note");
    check_repair(
        &vault,
        "strong",
        &["index.md:1 [a](a.md) -> b.md weak [\"git\"]"],
        &[("index.md", "[a](a.md)\n")],
    );
    // In one step, a file that was moved and one that was copied and rewritten are the same. What stands at the path is meant.
    for is_committed in [false, true] {
        let vault = repository(&[("a.md", &page("A")), ("index.md", "[a](a.md)\n")]);
        git(vault.root(), &["mv", "a.md", "b.md"]);
        vault.write("a.md", page("Something else"));
        if is_committed {
            commit(&vault, "at once");
        }
        assert_eq!(told(&json(&vault, NOW, &["repair"])), Vec::<String>::new());
    }
}

#[test]
fn a_note_that_was_rewritten_copied_or_replaced_by_a_redirect_is_still_the_target() {
    type Change = fn(&TestVault);
    let cases: [(&str, Change); 4] = [
        ("rewritten", |vault| vault.write("a.md", page("Rewritten"))),
        ("copied", |vault| vault.write("b.md", page("A"))),
        ("copied and edited", |vault| {
            vault.write("b.md", page("A"));
            vault.write("a.md", page("A").replace("line 3 ", "line three "));
        }),
        ("redirected", |vault| {
            git(vault.root(), &["mv", "a.md", "b.md"]);
            vault.write("a.md", "This page is [here](b.md) now.\n");
        }),
    ];
    for (name, change) in cases {
        for is_committed in [false, true] {
            let vault = repository(&[("a.md", &page("A")), ("index.md", "[a](a.md)\n")]);
            change(&vault);
            if is_committed {
                commit(&vault, name);
            }
            let reply = json(&vault, NOW, &["repair"]);
            assert_eq!(told(&reply), Vec::<String>::new(), "{name}, committed: {is_committed}");
        }
    }
}

#[test]
fn links_to_folders_and_attachments_follow_a_move() {
    for is_committed in [false, true] {
        let vault = repository(&[
            ("docs/guide/a.md", &page("A")),
            ("docs/guide/deep/b.md", &page("B")),
            ("docs/guide/plan.pdf", "%PDF one\n"),
            ("index.md", "[guide](docs/guide/) [deep](docs/guide/deep) ![](docs/guide/plan.pdf)\n"),
        ]);
        fs::create_dir(vault.root().join("new")).unwrap();
        git(vault.root(), &["mv", "docs/guide", "new/manual"]);
        if is_committed {
            commit(&vault, "move the folder");
        }
        check_repair(
            &vault,
            "certain",
            &[
                "index.md:1 [guide](docs/guide/) -> new/manual certain [\"git\"]",
                "index.md:1 [deep](docs/guide/deep) -> new/manual/deep certain [\"git\"]",
                "index.md:1 ![](docs/guide/plan.pdf) -> new/manual/plan.pdf certain [\"git\"]",
            ],
            &[("index.md", "[guide](new/manual/) [deep](new/manual/deep) ![](new/manual/plan.pdf)\n")],
        );
    }
}

#[test]
fn a_folder_that_was_taken_apart_has_no_new_place() {
    let vault =
        repository(&[("docs/a.md", &page("A")), ("docs/b.md", &page("B")), ("index.md", "[docs](docs/)\n")]);
    fs::create_dir_all(vault.root().join("x")).unwrap();
    fs::create_dir_all(vault.root().join("y")).unwrap();
    git(vault.root(), &["mv", "docs/a.md", "x/a.md"]);
    git(vault.root(), &["mv", "docs/b.md", "y/b.md"]);
    assert_eq!(json(&vault, NOW, &["repair", "--apply", "strong"])["repaired"], 0);
}

#[test]
fn a_link_out_of_the_vault_follows_the_move_of_its_note() {
    let outer = TestVault::new(&[
        ("wiki/docs/a.md", "[code](../../src/main.rs) [gone](../../src/gone.rs)\n"),
        ("wiki/index.md", "An index.\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("src/gone.rs", "\n"),
    ]);
    outer.write(".gitignore", ".home/\n.sidenote/\n");
    init(&outer);
    fs::create_dir_all(outer.root().join("wiki/docs/deep/er")).unwrap();
    git(outer.root(), &["mv", "wiki/docs/a.md", "wiki/docs/deep/er/a.md"]);
    git(outer.root(), &["rm", "-q", "src/gone.rs"]);
    commit(&outer, "move");
    let wiki = outer.root().join("wiki");
    let mut command = Command::new(program());
    crate::support::clean_env(&mut command, &outer.root().join(".home"))
        .env("SIDENOTE_EMBED_PROVIDER", "none");
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let done = command.args(["repair", "--apply", "certain", "--vault"]).arg(&wiki).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(
        outer.read("wiki/docs/deep/er/a.md"),
        "[code](../../../../src/main.rs) [gone](../../src/gone.rs)\n"
    );
}

#[test]
fn a_note_with_a_conflict_is_left_and_named() {
    let vault =
        repository(&[("a.md", &page("A")), ("one.md", "[a](a.md)\nbase\n"), ("two.md", "[a](a.md)\n")]);
    git(vault.root(), &["switch", "-qc", "side"]);
    vault.write("one.md", "[a](a.md)\ntheirs\n");
    commit(&vault, "theirs");
    git(vault.root(), &["switch", "-q", "main"]);
    vault.write("one.md", "[a](a.md)\nours\n");
    git(vault.root(), &["mv", "a.md", "b.md"]);
    commit(&vault, "ours");
    let merged = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "merge", "side"])
        .current_dir(vault.root())
        .output()
        .unwrap();
    assert!(!merged.status.success(), "the merge has a conflict");
    let marked = vault.read("one.md");
    for args in [&["repair", "--apply", "certain"][..], &["check", "--fix=links"]] {
        let done = vault.run(args);
        assert!(stderr(&done).contains("one.md:2:1: git left a conflict in the note"), "{done:?}");
        assert_eq!((vault.read("one.md"), vault.read("two.md").as_str()), (marked.clone(), "[a](b.md)\n"));
        vault.write("two.md", "[a](a.md)\n");
    }
    // Without marks, the index of git still has the versions of both sides.
    vault.write("one.md", "[a](a.md)\nboth\n");
    json(&vault, NOW, &["repair", "--apply", "certain"]);
    assert_eq!(vault.read("one.md"), "[a](a.md)\nboth\n");
    git(vault.root(), &["add", "one.md"]);
    json(&vault, NOW, &["repair", "--apply", "certain"]);
    assert_eq!(vault.read("one.md"), "[a](b.md)\nboth\n");
}

#[test]
fn the_data_of_a_repository_is_no_vault() {
    let vault = TestVault::new(&[]);
    git(vault.root(), &["init", "-q", "--bare", "bare"]);
    let bare = vault.root().join("bare");
    for folder in [bare.clone(), bare.join("refs")] {
        for args in [&["repair"][..], &["status"], &["index"], &["search", "x"]] {
            let mut command = Command::new(program());
            crate::support::clean_env(&mut command, &vault.root().join(".home"));
            let done = command.current_dir(&folder).args(args).output().unwrap();
            assert!(!done.status.success(), "{args:?}");
            assert!(stderr(&done).contains("is the data of a git repository"), "{args:?}: {}", stderr(&done));
            assert!(!folder.join(".sidenote").exists(), "{args:?}");
        }
    }
}

#[test]
fn an_anchor_that_stays_dead_is_told() {
    let vault = repository(&[("a.md", &page("A")), ("index.md", "[a](a.md#nowhere) [b](a.md#a)\n")]);
    git(vault.root(), &["mv", "a.md", "b.md"]);
    let reply = json(&vault, NOW, &["repair", "--apply", "certain"]);
    let anchors: Vec<&Value> =
        reply["links"].as_array().unwrap().iter().map(|link| &link["dead_anchor"]).collect();
    assert_eq!(anchors, [&Value::from("#nowhere"), &Value::Null]);
    json(&vault, NOW, &["undo"]);
    let said = run(&vault, NOW, &["repair", "--apply", "certain"]);
    assert!(said.contains("still breaks: b.md has no #nowhere"), "{said}");
}

#[test]
fn the_reply_to_a_repair_lists_what_each_link_became() {
    let vault = repository(&[("a.md", &page("A")), ("index.md", "[a](a.md) text\n")]);
    git(vault.root(), &["mv", "a.md", "b.md"]);
    let said = run(&vault, NOW, &["repair", "--apply", "certain"]);
    insta::assert_snapshot!(said.lines().take(3).collect::<Vec<_>>().join("\n"), @r"
    index.md:1  [a](a.md)
        became  [a](b.md)
        certain  -> b.md  (git: a.md became b.md in the working tree)
    ");
    json(&vault, NOW, &["undo"]);
    let reply = json(&vault, NOW, &["repair", "--apply", "certain"]);
    let link = &reply["links"][0];
    assert_eq!((&link["link"], &link["new_link"]), (&Value::from("[a](a.md)"), &Value::from("[a](b.md)")));
    assert_eq!(
        (&link["certainty"], &link["evidence"][0]["kind"]),
        (&Value::from("certain"), &Value::from("git"))
    );
}

#[test]
fn paths_count_from_the_current_folder_first() {
    let vault = repository(&[
        ("a.md", &page("A")),
        ("x/x/one.md", "[a](../../a.md)\n"),
        ("x/two.md", "[a](../a.md)\n"),
    ]);
    git(vault.root(), &["mv", "a.md", "b.md"]);
    let mut command = vault.command(&["repair", "x", "--apply", "certain"]);
    let done = command.current_dir(vault.root().join("x")).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(
        (vault.read("x/x/one.md").as_str(), vault.read("x/two.md").as_str()),
        ("[a](../../b.md)\n", "[a](../a.md)\n")
    );
}

#[test]
fn a_link_that_led_elsewhere_between_two_moves_means_what_it_meant_at_first() {
    let vault = repository(&[
        ("a/note.md", &format!("{}[x](x.md)\n", page("Note"))),
        ("a/x.md", &page("A")),
        ("b/x.md", &page("B")),
        ("c/x.md", &page("C")),
    ]);
    for (from, to) in [("a/note.md", "b/note.md"), ("b/note.md", "c/note.md")] {
        git(vault.root(), &["mv", from, to]);
        commit(&vault, to);
    }
    let reply = json(&vault, NOW, &["repair", "--apply", "certain"]);
    assert_eq!(told(&reply).len(), 1, "{reply}");
    assert!(vault.read("c/note.md").ends_with("[x](../a/x.md)\n"), "{reply}");
    assert_eq!(json(&vault, NOW, &["repair"])["links"], Value::Array(Vec::new()));
    // Back where it was, it is right as it is.
    let vault = repository(&[
        ("a/note.md", &format!("{}[x](x.md)\n", page("Note"))),
        ("a/x.md", &page("A")),
        ("b/x.md", &page("B")),
    ]);
    for (from, to) in [("a/note.md", "b/note.md"), ("b/note.md", "a/note.md")] {
        git(vault.root(), &["mv", from, to]);
        commit(&vault, to);
    }
    assert_eq!(json(&vault, NOW, &["repair"])["links"], Value::Array(Vec::new()));
}

#[test]
fn history_that_git_cannot_read_is_told_and_the_rest_counts() {
    // The content of a note in an old commit is damaged.
    let vault =
        repository(&[("a.md", &page("A")), ("c.md", &page("C")), ("index.md", "[a](a.md) [c](c.md)\n")]);
    json(&vault, NOW, &["index"]);
    git(vault.root(), &["mv", "c.md", "d.md"]);
    vault.remove("a.md");
    vault.write("b.md", page("A").replace("line 3 ", "line three "));
    let id = git(vault.root(), &["rev-parse", "HEAD:a.md"]).trim().to_owned();
    let object = vault.root().join(".git/objects").join(&id[..2]).join(&id[2..]);
    fs::remove_file(&object).unwrap();
    fs::write(&object, "damaged").unwrap();
    let done = vault.run(&["repair", "--apply", "certain"]);
    assert!(stderr(&done).contains("git cannot read 1 old version"), "{done:?}");
    assert!(stderr(&done).contains("git fsck"), "{done:?}");
    assert_eq!(vault.read("index.md"), "[a](a.md) [c](d.md)\n");

    // A commit is gone.
    let vault = repository(&[("a.md", &page("A")), ("index.md", "[a](a.md)\n")]);
    let first = git(vault.root(), &["rev-parse", "HEAD"]).trim().to_owned();
    commit_note(&vault, "other.md");
    git(vault.root(), &["mv", "a.md", "b.md"]);
    fs::remove_file(vault.root().join(".git/objects").join(&first[..2]).join(&first[2..])).unwrap();
    let done = vault.run(&["repair", "--apply", "certain"]);
    assert!(stderr(&done).contains("the history of git cannot be read"), "{done:?}");
    assert_eq!(vault.read("index.md"), "[a](b.md)\n");
}

fn commit_note(vault: &TestVault, path: &str) {
    vault.write(path, page(path));
    commit(vault, path);
}

/// Runs `repair` and counts the calls of git.
#[cfg(unix)]
fn git_calls(vault: &TestVault) -> usize {
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    let folder = vault.root().join(".home/bin");
    fs::create_dir_all(&folder).unwrap();
    let log = vault.root().join(".home/calls");
    drop(fs::remove_file(&log));
    let (calls, real, asked) = (log.display(), real.display(), vault.root().join(".home/asked"));
    let asked = asked.display();
    let script = format!(
        "#!/bin/sh\necho \"call $*\" >> '{calls}'\ncase \"$*\" in\n*cat-file*) /usr/bin/env tee '{asked}' | '{real}' \"$@\";;\n*) exec '{real}' \"$@\";;\nesac\n"
    );
    fs::write(folder.join("git"), script).unwrap();
    crate::support::set_mode(folder.join("git"), 0o755);
    let path = std::env::var_os("PATH").unwrap();
    let path =
        std::env::join_paths(std::iter::once(folder.clone()).chain(std::env::split_paths(&path))).unwrap();
    let done = vault.command(&["repair"]).env("PATH", &path).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    fs::read_to_string(&log).map_or(0, |calls| calls.lines().count())
}

#[cfg(unix)]
#[test]
fn the_calls_of_git_do_not_grow_with_the_dead_links() {
    let repository_with = |links: usize| {
        let mut files: Vec<(String, String)> = Vec::new();
        for at in 0..links {
            files.push((format!("docs/a{at}.md"), page(&format!("A{at}"))));
            files.push((format!("index{at}.md"), format!("[a](docs/a{at}.md)\n")));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let vault = repository(&files);
        git(vault.root(), &["mv", "docs", "notes"]);
        commit(&vault, "move");
        commit_note(&vault, "other.md");
        vault
    };
    let (few, many) = (repository_with(10), repository_with(20));
    let calls = git_calls(&few);
    assert_eq!(git_calls(&many), calls);
    // One of them asks when notes were first committed, for the first index.
    assert!(calls <= 5, "{calls} calls of git: {}", few.read(".home/calls"));
    // Where nothing is dead, the commits and the last tree are asked for.
    json(&few, NOW, &["repair", "--apply", "certain"]);
    commit(&few, "repaired");
    for at in 0..20 {
        commit_note(&few, &format!("later{at}.md"));
    }
    // The index asks once when the twenty new notes were first committed.
    let calls = git_calls(&few);
    assert!(calls <= 4, "{calls} calls of git: {}", few.read(".home/calls"));
}

/// Git would read the trees on the way to a path for each link anew.
#[cfg(unix)]
#[test]
fn the_contents_that_git_is_asked_for_do_not_grow_with_the_links_of_a_note() {
    let asked_with = |links: usize| {
        let mut files: Vec<(String, String)> =
            (0..links).map(|at| (format!("docs/a{at}.md"), page(&format!("A{at}")))).collect();
        let index: String = (0..links).map(|at| format!("[a](docs/a{at}.md)\n\n")).collect();
        files.push(("index.md".to_owned(), index));
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let vault = repository(&files);
        git(vault.root(), &["mv", "docs", "notes"]);
        commit(&vault, "move");
        git_calls(&vault);
        let asked = vault.read(".home/asked");
        asked.split('\0').filter(|asked| asked.starts_with("contents ")).count()
    };
    let few = asked_with(10);
    assert!(few > 0, "the calls are not seen");
    assert_eq!(asked_with(80), few);
}

/// Kills `repair --apply certain` at random moments of its run. Each note is as before or as after, all together; the next
/// run completes the repair, the one after it finds nothing, and `undo` brings every byte back.
#[cfg(unix)]
fn check_killed_repairs(kills: usize) {
    use crate::support::{tree, was_killed};
    let notes = 40;
    let mut files: Vec<(String, String)> = vec![("hub.md".to_owned(), page("Hub"))];
    files.extend((0..notes).map(|at| (format!("n{at}.md"), format!("[hub](hub.md) number {at}\n"))));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = repository(&files);
    git(vault.root(), &["mv", "hub.md", "centre.md"]);
    json(&vault, NOW, &["index"]);
    let notes_of = |vault: &TestVault| {
        let mut files = tree(vault.root());
        files.retain(|path, _| path.ends_with(".md"));
        files
    };
    let before = notes_of(&vault);
    let started = std::time::Instant::now();
    json(&vault, NOW, &["repair", "--apply", "certain"]);
    let whole = started.elapsed();
    let after = notes_of(&vault);
    json(&vault, NOW, &["undo"]);
    let (mut killed, mut ended) = (0, [0, 0]);
    for number in 0..kills {
        let mut command = vault.command(&["repair", "--apply", "certain"]);
        let mut child =
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        // The moments are spread over the run, in an order without a pattern.
        let end = std::time::Instant::now() + whole.mul_f64((number as f64 * 0.618_033_988_75).fract() * 1.1);
        while std::time::Instant::now() < end && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        drop(child.kill());
        killed += usize::from(was_killed(child.wait().unwrap()));
        // The next command finishes or takes back what was open.
        json(&vault, NOW, &["status"]);
        json(&vault, NOW, &["index"]);
        let now = notes_of(&vault);
        let state = [&before, &after].iter().position(|state| **state == now);
        ended[state
            .unwrap_or_else(|| panic!("kill {number}: the notes are neither as before nor as after"))] += 1;
        let second = json(&vault, NOW, &["repair", "--apply", "certain"]);
        assert_eq!(
            second["repaired"].as_u64(),
            Some(if state == Some(0) { notes } else { 0 }),
            "kill {number}"
        );
        assert_eq!(notes_of(&vault), after, "kill {number}");
        assert_eq!(json(&vault, NOW, &["repair", "--apply", "certain"])["repaired"], 0, "kill {number}");
        json(&vault, NOW, &["undo"]);
        assert_eq!(notes_of(&vault), before, "kill {number}: undone");
    }
    crate::support::say(&format!(
        "{kills} runs, {killed} killed: {} as before, {} as after",
        ended[0], ended[1]
    ));
    assert!(killed > 0);
}

#[cfg(unix)]
#[test]
fn a_killed_repair_is_whole_or_nothing() {
    check_killed_repairs(20);
}

#[cfg(unix)]
#[test]
#[ignore = "it takes minutes: `just repair-kills`"]
fn two_hundred_killed_repairs_are_whole_or_nothing() {
    check_killed_repairs(crate::support::env_number("SIDENOTE_TEST_KILLS", 200));
}
