//! Commits of operations in git (docs/spec/git.md 5): what is committed, what is not and why, and what stays staged.

mod crashes;
#[cfg(unix)]
mod index_states;
mod sessions;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};
use sidenote::config::Config;
use sidenote::git::{CommitRefusal, CommitRequest, Repository};

use crate::git::git;
use crate::support::{SETTINGS, TestVault, clean_env, program, set_mode, stderr, stdout};

/// The lines of `.gitignore` in all these vaults.
const IGNORES: &str = ".home/\n.sidenote/\nPrivate/\n";

/// Makes a repository of a vault, with an identity of its own and everything committed.
fn commit_all(vault: &TestVault, root: &Path) {
    git(root, &["init", "-q", "-b", "main"]);
    for (key, value) in [
        ("user.name", "Ada"),
        ("user.email", "ada@example.org"),
        ("user.useConfigOnly", "true"),
        ("commit.gpgSign", "false"),
        ("gc.auto", "0"),
    ] {
        git(root, &["config", key, value]);
    }
    vault.write(".gitignore", IGNORES);
    git(root, &["add", "--all"]);
    git(root, &["commit", "-qm", "first"]);
}

/// Makes a vault whose operations are committed.
fn repository_of(files: &[(&str, &str)]) -> TestVault {
    let vault = TestVault::new(files);
    commit_all(&vault, vault.root());
    vault
}

pub(crate) fn notes() -> TestVault {
    repository_of(&[
        ("Guide.md", "# Guide\n\nRead it.\n"),
        ("Plan.md", "See [[Guide]] and [[Guide|this]].\n"),
        ("Log.md", "After [[Guide]].\n"),
        ("Other.md", "Nothing.\n"),
    ])
}

/// Runs an operation of a vault whose operations are committed.
#[track_caller]
fn operate(vault: &TestVault, args: &[&str]) -> Output {
    let mut command = vault.command(args);
    let done = command.env("SIDENOTE_GIT_COMMIT", "operation").output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", stderr(&done));
    done
}

/// Runs an operation of a vault in some folder.
fn operate_at(vault: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program());
    clean_env(&mut command, &vault.join(".home"));
    command.env("SIDENOTE_GIT_COMMIT", "operation").env("SIDENOTE_EMBED_PROVIDER", "none");
    command.arg("--vault").arg(vault).args(args).output().unwrap()
}

/// Returns what `git status` says of the notes.
fn status(vault: &TestVault) -> String {
    git(vault.root(), &["status", "--porcelain", "--untracked-files=all"])
}

/// Returns the message of the last commit, with its author before it and its files after it.
fn last_commit(vault: &TestVault) -> String {
    let shown = git(
        vault.root(),
        &[
            "-c",
            "core.quotePath=false",
            "log",
            "-1",
            "--no-renames",
            "--name-status",
            "--format=%an <%ae>%n%B",
        ],
    );
    let hide = |line: &str| match line.strip_prefix("Sidenote-Operation: ") {
        Some(id) => {
            assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
            "Sidenote-Operation: ID\n".to_owned()
        }
        None => format!("{line}\n"),
    };
    shown.lines().map(hide).collect()
}

fn head(vault: &TestVault) -> String {
    git(vault.root(), &["rev-parse", "HEAD"])
}

/// Everything that the index of git has.
fn staged(vault: &TestVault) -> String {
    git(vault.root(), &["ls-files", "--stage", "-v"]) + &git(vault.root(), &["diff", "--cached", "--raw"])
}

#[test]
fn an_operation_is_committed_with_its_files_alone() {
    let vault = notes();
    vault.write("Other.md", "Mine.\n");
    vault.write("New.md", "Mine, too.\n");
    git(vault.root(), &["add", "New.md"]);
    let done = operate(&vault, &["move", "Guide", "Handbook"]);
    let id = head(&vault);
    assert!(stdout(&done).ends_with(&format!("committed as {}\n", &id[..10])), "{}", stdout(&done));
    assert_eq!(stderr(&done).matches("not committed").count(), 0);
    insta::assert_snapshot!(last_commit(&vault), @r"
    Ada <ada@example.org>
    sidenote: move Guide.md → Handbook.md (3 links, 2 notes)

    Sidenote-Operation: ID
    Sidenote-Client: sidenote move


    D	Guide.md
    A	Handbook.md
    M	Log.md
    M	Plan.md
    ");
    assert_eq!(status(&vault), "A  New.md\n M Other.md\n");
}

/// Operations on the notes, with the files of the commit that each makes.
#[test]
fn every_kind_of_operation_is_committed() {
    let vault = notes();
    let cases: [(&[&str], &str, &str); 11] = [
        (&["append", "Log", "More."], "append Log.md", "M\tLog.md"),
        (&["new", "-dash", "--content", "x"], "new -dash.md", "A\t-dash.md"),
        (&["new", "a (b) Ü", "--content", "x"], "new a (b) Ü.md", "A\ta (b) Ü.md"),
        (&["move", "Guide", "guide"], "move Guide.md → guide.md", "D\tGuide.md\nA\tguide.md"),
        (&["undo"], "undo guide.md → Guide.md", "A\tGuide.md\nD\tguide.md"),
        (&["redo"], "redo Guide.md → guide.md", "D\tGuide.md\nA\tguide.md"),
        (&["delete", "Other", "--permanent", "--yes"], "delete Other.md", "D\tOther.md"),
        (&["delete", "-dash.md"], "delete -dash.md → .trash/-dash.md", "D\t-dash.md\nA\t.trash/-dash.md"),
        (&["restore", "-dash.md"], "restore .trash/-dash.md → -dash.md", "A\t-dash.md\nD\t.trash/-dash.md"),
        (&["move", "Log", "Area/Log"], "move Log.md → Area/Log.md", "A\tArea/Log.md\nD\tLog.md"),
        (&["move", "Area", "Place"], "move Area -> Place", "D\tArea/Log.md\nA\tPlace/Log.md"),
    ];
    assert_eq!(cases.len(), 11);
    for (args, title, files) in cases {
        let args: Vec<&str> = if args[1..].iter().any(|arg| arg.starts_with('-') && !arg.starts_with("--")) {
            [&args[..1], &args[2..], &["--"], &args[1..2]].concat()
        } else {
            args.to_vec()
        };
        let done = operate(&vault, &args);
        let said = last_commit(&vault);
        assert!(
            said.contains(&format!("\nsidenote: {}\n", title.replace(" -> ", " → "))),
            "{args:?}: {said}{}",
            stderr(&done)
        );
        let found = said.split("\n\n").last().unwrap().trim();
        assert_eq!(found, files, "{args:?}: {}", stderr(&done));
        assert_eq!(status(&vault), "", "{args:?}");
    }
}

/// A refusal: its name, what brings it about, the note that is appended to, and what is said.
#[cfg(unix)]
type Refusal = (&'static str, fn(&TestVault), &'static str, &'static str);

/// Writes a hook of the repository.
#[cfg(unix)]
fn hook(vault: &TestVault, name: &str, script: &str) {
    let path = format!(".git/hooks/{name}");
    vault.write(&path, format!("#!/bin/sh\n{script}\n"));
    set_mode(vault.root().join(path), 0o755);
}

/// Everything that is not committed, and why.
#[cfg(unix)]
#[test]
fn what_is_not_committed_is_said_with_the_reason() {
    let cases: [Refusal; 18] = [
        (
            "changed",
            |v| v.write("Log.md", "Mine.\n"),
            "Log",
            "Log.md (it was changed before and not committed)",
        ),
        (
            "staged",
            |v| {
                v.write("Log.md", "Mine.\n");
                git(v.root(), &["add", "Log.md"]);
            },
            "Log",
            "Log.md (it was staged before)",
        ),
        ("untracked", |v| v.write("Mine.md", "x\n"), "Mine", "Mine.md (it was not in git before)"),
        (
            "ignored",
            |v| v.write("Private/Mine.md", "x\n"),
            "Private/Mine",
            "Private/Mine.md (git ignores it)",
        ),
        (
            "another repository inside",
            |v| {
                v.write("sub/Mine.md", "x\n");
                git(&v.root().join("sub"), &["init", "-q"]);
            },
            "sub/Mine",
            "sub/Mine.md (it is in a submodule or another repository)",
        ),
        (
            "assume-unchanged",
            |v| {
                git(v.root(), &["update-index", "--assume-unchanged", "Log.md"]);
            },
            "Log",
            "Log.md (git is told not to look at it (assume-unchanged or skip-worktree))",
        ),
        (
            "skip-worktree",
            |v| {
                git(v.root(), &["update-index", "--skip-worktree", "Log.md"]);
            },
            "Log",
            "Log.md (git is told not to look at it (assume-unchanged or skip-worktree))",
        ),
        (
            "detached",
            |v| {
                git(v.root(), &["checkout", "-q", "--detach"]);
            },
            "Log",
            "HEAD is detached from any branch",
        ),
        ("merge", |v| v.write(".git/MERGE_HEAD", head(v)), "Log", "a merge is under way"),
        ("rebase", |v| v.write(".git/rebase-merge/x", ""), "Log", "a rebase is under way"),
        ("cherry-pick", |v| v.write(".git/CHERRY_PICK_HEAD", head(v)), "Log", "a cherry-pick is under way"),
        ("bisect", |v| v.write(".git/BISECT_LOG", ""), "Log", "a bisection is under way"),
        (
            "no identity",
            |v| {
                git(v.root(), &["config", "--unset", "user.email"]);
            },
            "Log",
            "git knows no user.name and user.email",
        ),
        (
            "lock",
            |v| v.write(".git/index.lock", ""),
            "Log",
            ".git/index.lock has been there for 2 seconds; if no git runs, a crash left it there",
        ),
        (
            "pre-commit",
            |v| hook(v, "pre-commit", "echo 'spell it right' >&2; exit 1"),
            "Log",
            "a hook of the repository refuses: spell it right",
        ),
        ("commit-msg", |v| hook(v, "commit-msg", "exit 3"), "Log", "a hook of the repository refuses"),
        (
            "signing",
            |v| {
                git(v.root(), &["config", "commit.gpgSign", "true"]);
                git(v.root(), &["config", "gpg.program", "false"]);
            },
            "Log",
            "git refuses: gpg failed to sign the data",
        ),
        (
            "no repository",
            |v| fs::rename(v.root().join(".git"), v.root().join(".home/.git")).unwrap(),
            "Log",
            "the vault is in no git repository",
        ),
    ];
    assert_eq!(cases.len(), 18);
    for (name, prepare, note, reason) in cases {
        let vault = notes();
        vault.write(".home/x", "");
        prepare(&vault);
        let has_git = vault.root().join(".git").exists();
        let held = vault.root().join(".git/index.lock");
        let state = |vault: &TestVault| has_git.then(|| (head(vault), staged(vault)));
        let before = state(&vault);
        let done = operate(&vault, &["append", note, "More."]);
        let said = stderr(&done);
        assert!(said.contains("notice: not committed to git: ") && said.contains(reason), "{name}: {said}");
        assert!(said.contains("; the change stays in the files"), "{name}: {said}");
        assert!(vault.read(&format!("{note}.md")).ends_with("More.\n"), "{name}");
        // A new note is not left in the index, either.
        let reply = operate(&vault, &["--json", "new", "Fresh", "--content", "x"]);
        let reply: Value = serde_json::from_slice(&reply.stdout).unwrap();
        assert!(vault.root().join("Fresh.md").exists(), "{name}");
        let is_whole = reply["commit"]["refused"].is_string();
        assert_eq!(is_whole, !reason.contains(".md ("), "{name}: {reply}");
        if is_whole {
            assert_eq!(state(&vault), before, "{name}");
            assert!(reply["notices"].to_string().contains(&reason.replace('"', "\\\"")), "{name}: {reply}");
        } else {
            assert_eq!(
                git(vault.root(), &["log", "--format=%s", "-1"]),
                "sidenote: new Fresh.md\n",
                "{name}"
            );
        }
        if held.exists() {
            fs::remove_file(held).unwrap();
        }
    }
}

/// Git keeps in the index what a file was before a hook formatted it. The user's next commit must not bring that back.
#[cfg(unix)]
#[test]
fn what_a_hook_formats_is_in_the_index_as_it_is_in_the_commit() {
    let vault = notes();
    let format = "git diff --cached --name-only | while read -r file; do sed -i 's/ *$//' \"$file\"; git add \"$file\"; done";
    hook(&vault, "pre-commit", format);
    vault.write("Other.md", "Mine.\n");
    git(vault.root(), &["add", "Other.md"]);
    let staged_before = git(vault.root(), &["ls-files", "--stage", "Other.md"]);
    operate(&vault, &["append", "Log", "More.   "]);
    operate(&vault, &["new", "Fresh", "--content", "Spaces   "]);
    assert_eq!(status(&vault), "M  Other.md\n");
    assert!(git(vault.root(), &["show", "HEAD~1:Log.md"]).ends_with("More.\n"));
    assert!(git(vault.root(), &["show", "HEAD:Fresh.md"]).contains("Spaces\n"));
    assert_eq!(git(vault.root(), &["ls-files", "--stage", "Other.md"]), staged_before);
}

/// Links are not committed before the rename that they follow: they would be dead in the commit.
#[test]
fn a_repair_is_committed_with_the_files_that_its_links_lead_to() {
    let vault = repository_of(&[
        ("docs/guide.md", &"A page with some words to know it by.\n".repeat(8)),
        ("i.md", "[g](docs/guide.md)\n"),
    ]);
    git(vault.root(), &["mv", "docs/guide.md", "docs/handbook.md"]);
    let done = operate(&vault, &["repair", "--apply", "certain"]);
    assert!(
        stderr(&done)
            .contains("not committed to git: i.md (it leads to docs/handbook.md, which is not committed)"),
        "{}",
        stderr(&done)
    );
    assert_eq!(vault.read("i.md"), "[g](docs/handbook.md)\n");
    assert_eq!(git(vault.root(), &["log", "--format=%s"]), "first\n");
    // Once it is, they are committed together.
    git(vault.root(), &["checkout", "-q", "i.md"]);
    git(vault.root(), &["commit", "-qm", "rename"]);
    let done = operate(&vault, &["repair", "--apply", "certain"]);
    assert!(stdout(&done).contains("committed as "), "{}{}", stdout(&done), stderr(&done));
    assert_eq!(status(&vault), "");
}

/// A hook may empty the folder of temporary files, where what git says is kept.
#[cfg(unix)]
#[test]
fn a_hook_that_empties_the_temporary_folder_is_heard() {
    let vault = notes();
    let temporary = vault.root().join(".home/tmp");
    fs::create_dir_all(&temporary).unwrap();
    let create = |name: &str, last: &str| {
        hook(&vault, "pre-commit", &format!("rm -r \"$TMPDIR\"/sidenote-git-*; {last}"));
        let mut command = vault.command(&["new", name, "--content", "x"]);
        let done =
            command.env("SIDENOTE_GIT_COMMIT", "operation").env("TMPDIR", &temporary).output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
        done
    };
    let before = (head(&vault), staged(&vault));
    let done = create("Refused", "echo 'spell it right' >&2; exit 1");
    assert!(stderr(&done).contains("a hook of the repository refuses: spell it right"), "{}", stderr(&done));
    assert_eq!((head(&vault), staged(&vault)), before);
    let done = create("Accepted", "exit 0");
    assert!(stdout(&done).contains("committed as "), "{}{}", stdout(&done), stderr(&done));
    assert_eq!(status(&vault), "?? Refused.md\n");
}

#[test]
fn a_moved_note_that_was_changed_before_is_left_out_with_its_new_name() {
    let vault = notes();
    vault.write("Guide.md", "# Guide\n\nMine.\n");
    let done = operate(&vault, &["--json", "move", "Guide", "Handbook"]);
    let reply: Value = serde_json::from_slice(&done.stdout).unwrap();
    let expected = json!({
        "id": head(&vault).trim(),
        "deferred": false,
        "left_out": [
            { "path": "Guide.md", "reason": "it was changed before and not committed" },
            { "path": "Handbook.md", "reason": "it belongs to Guide.md" },
        ],
    });
    assert_eq!(reply["commit"], expected);
    assert_eq!(status(&vault), " D Guide.md\n?? Handbook.md\n");
}

#[cfg(unix)]
#[test]
fn hooks_and_templates_run_and_no_editor_does() {
    let vault = notes();
    hook(
        &vault,
        "pre-commit",
        "git diff --cached --name-only -- '*.md' > .home/seen; read line && exit 1; exit 0",
    );
    hook(&vault, "prepare-commit-msg", "echo 'Ticket: 7' >> \"$1\"");
    hook(&vault, "post-commit", "sleep 60 & echo $! > .home/sleeper");
    vault.write(".home/template", "Write something.\n");
    for (key, value) in [
        ("commit.template", ".home/template"),
        ("commit.verbose", "true"),
        ("core.editor", "false"),
        ("commit.status", "true"),
    ] {
        git(vault.root(), &["config", key, value]);
    }
    let mut command = vault.command(&["append", "Log", "More."]);
    command.env("SIDENOTE_GIT_COMMIT", "operation").env("EDITOR", "false").env("VISUAL", "false");
    let done = command.output().unwrap();
    let sleeper = vault.read(".home/sleeper");
    drop(Command::new("kill").arg(sleeper.trim()).status());
    assert!(stdout(&done).contains("committed as"), "{}", stderr(&done));
    assert_eq!(vault.read(".home/seen"), "Log.md\n");
    insta::assert_snapshot!(last_commit(&vault), @r"
    Ada <ada@example.org>
    sidenote: append Log.md

    Sidenote-Operation: ID
    Sidenote-Client: sidenote append
    Ticket: 7


    M	Log.md
    ");
}

#[cfg(unix)]
#[test]
fn a_hook_that_hangs_is_ended() {
    let vault = notes();
    hook(&vault, "pre-commit", "sleep 600");
    let before = staged(&vault);
    vault.write("Log.md", "More.\n");
    vault.write("New.md", "New.\n");
    let repository = Repository::discover(vault.root()).unwrap().unwrap();
    let request = CommitRequest {
        known: &[b"Log.md".to_vec()],
        new: &[b"New.md".to_vec()],
        message: "x",
        author: None,
        renames_case: false,
        time_limit: Duration::from_secs(1),
    };
    let refusal = repository.commit_files(&request).unwrap().unwrap_err();
    assert_eq!(refusal, CommitRefusal::TimedOut(Duration::from_secs(1), None));
    assert!(refusal.to_string().starts_with("git took longer than 1 seconds and was ended; a hook"));
    assert_eq!(staged(&vault), before);
}

#[test]
fn a_vault_in_a_folder_of_its_repository_and_in_a_worktree_is_committed() {
    let outer = TestVault::new(&[("README.md", "x\n"), ("docs/Log.md", "x\n"), ("src/a.rs", "x\n")]);
    commit_all(&outer, outer.root());
    outer.write("src/a.rs", "mine\n");
    git(outer.root(), &["add", "src/a.rs"]);
    let work = tempfile::tempdir().unwrap();
    let tree = work.path().join("tree");
    git(outer.root(), &["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    for (root, branch) in [(outer.root().to_owned(), "main"), (tree.clone(), "side")] {
        let done = operate_at(&root.join("docs"), &["append", "Log", "More."]);
        assert!(stdout(&done).contains("committed as"), "{branch}: {}{}", stdout(&done), stderr(&done));
        let shown = git(&root, &["log", "-1", "--format=%s", "--name-only", branch]);
        assert_eq!(shown, "sidenote: append Log.md\n\ndocs/Log.md\n");
    }
    assert_eq!(status(&outer), "M  src/a.rs\n");
}

#[test]
fn a_vault_that_is_a_submodule_is_not_committed() {
    let inner = notes();
    let outer = TestVault::new(&[("README.md", "x\n")]);
    commit_all(&outer, outer.root());
    let url = inner.root().to_str().unwrap();
    git(outer.root(), &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "notes"]);
    let done = operate_at(&outer.root().join("notes"), &["append", "Log", "x"]);
    assert!(stderr(&done).contains("not committed to git: the vault is in a submodule"), "{}", stderr(&done));
}

#[test]
fn the_first_commit_of_a_repository_can_be_an_operation() {
    let vault = TestVault::new(&[(".gitignore", IGNORES)]);
    git(vault.root(), &["init", "-q", "-b", "main"]);
    git(vault.root(), &["config", "user.name", "Ada"]);
    git(vault.root(), &["config", "user.email", "ada@example.org"]);
    git(vault.root(), &["add", ".gitignore"]);
    operate(&vault, &["new", "First", "--content", "x"]);
    assert_eq!(
        git(vault.root(), &["log", "--format=%s", "--name-only"]),
        "sidenote: new First.md\n\nFirst.md\n"
    );
    assert_eq!(status(&vault), "A  .gitignore\n");
}

#[test]
fn line_ends_and_sparse_checkouts_stay_as_they_are() {
    let vault = repository_of(&[("in/Log.md", "One.\n"), ("out/Far.md", "x\n")]);
    git(vault.root(), &["config", "core.autocrlf", "true"]);
    vault.write("in/Crlf.md", "One.\r\nTwo.\r\n");
    git(vault.root(), &["add", "in/Crlf.md"]);
    git(vault.root(), &["commit", "-qm", "crlf"]);
    git(vault.root(), &["sparse-checkout", "set", "--cone", "in"]);
    operate(&vault, &["append", "Crlf", "Three."]);
    assert_eq!(git(vault.root(), &["show", "HEAD:in/Crlf.md"]), "One.\nTwo.\n\nThree.\n");
    // A note outside of the sparse checkout, where no file is on the disk.
    operate(&vault, &["new", "Near", "--folder", "out", "--content", "x"]);
    assert_eq!(git(vault.root(), &["log", "-1", "--format=%s"]), "sidenote: new out/Near.md\n");
    assert_eq!(status(&vault), "");
    assert_eq!(git(vault.root(), &["ls-files", "-t", "out"]), "S out/Far.md\nH out/Near.md\n");
}

#[test]
fn records_that_are_in_git_are_committed_with_the_notes() {
    let vault = TestVault::new(&[("Log.md", "One.\n"), ("Old.md", "x\n")]);
    operate(&vault, &["append", "Log", "Two."]);
    commit_all(&vault, vault.root());
    vault.write(".gitignore", ".home/\n");
    git(vault.root(), &["add", "--all"]);
    git(vault.root(), &["commit", "-qm", "records"]);
    operate(&vault, &["append", "Log", "Three."]);
    assert_eq!(status(&vault), "", "the journal is in the commit");
    // A vote is no operation: its line waits for the next commit, and keeps none.
    operate(&vault, &["memory", "vote", "Old", "up"]);
    assert!(status(&vault).contains(".jsonl"), "{}", status(&vault));
    operate(&vault, &["append", "Log", "Four."]);
    assert_eq!(status(&vault), "");
    // What the user staged stays staged.
    operate(&vault, &["memory", "vote", "Old", "up"]);
    git(vault.root(), &["add", ".sidenote"]);
    operate(&vault, &["append", "Log", "Five."]);
    assert!(status(&vault).starts_with("MM .sidenote/records/"), "{}", status(&vault));
    assert_eq!(git(vault.root(), &["log", "-1", "--format=", "--name-only"]), "Log.md\n");
}

#[test]
fn two_processes_commit_at_once() {
    let vault = notes();
    std::thread::scope(|scope| {
        for note in ["Log", "Other"] {
            let vault = &vault;
            scope.spawn(move || {
                for _ in 0..5 {
                    operate(vault, &["append", note, "More."]);
                }
            });
        }
    });
    assert_eq!(status(&vault), "");
    assert_eq!(git(vault.root(), &["rev-list", "--count", "HEAD"]), "11\n");
}

#[test]
fn the_user_names_the_vaults_that_are_committed() {
    let vault = notes();
    let policy = |key: &str| {
        let shown = vault.run(&["--json", "config", "show"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        let setting = shown.as_array().unwrap().iter().find(|setting| setting["key"] == key).unwrap().clone();
        setting["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(policy("git.commit"), "\"off\"");
    let set = vault.run(&["config", "set", "git.commit", "operation"]);
    assert!(set.status.success(), "{}", stderr(&set));
    vault.run(&["config", "set", "git.author", "Robot <robot@example.org>"]);
    assert_eq!(policy("git.commit"), "\"operation\"");
    assert_eq!(policy("git.author"), "\"Robot <robot@example.org>\"");
    let file = vault.root().join(SETTINGS).join("sidenote/config.toml");
    let text = fs::read_to_string(&file).unwrap();
    let root = fs::canonicalize(vault.root()).unwrap();
    let expected = format!(
        "[[git.vault]]\npath = \"{}\"\ncommit = \"operation\"\nauthor = \"Robot <robot@example.org>\"\n",
        root.display()
    );
    assert_eq!(text, expected);
    let done = vault.run(&["append", "Log", "More."]);
    assert!(stdout(&done).contains("committed as"), "{}", stderr(&done));
    let shown = stdout(&vault.run(&["status"]));
    assert!(shown.contains("commits in git  after each operation"), "{shown}");
    assert!(stdout(&vault.run(&["doctor"])).contains("changes are committed after each operation"));
    // Another vault of the same user is not committed.
    let other = notes();
    let mut command = other.command(&["append", "Log", "More."]);
    let done = command.env("HOME", vault.root().join(".home")).output().unwrap();
    assert!(done.status.success() && !stdout(&done).contains("committed"), "{}", stderr(&done));
    assert!(vault.run(&["config", "unset", "git.commit"]).status.success());
    assert_eq!(policy("git.commit"), "\"off\"");
    // Neither the vault nor a line for all vaults can turn commits on.
    for (path, says) in [
        (vault.root().join(".sidenote/config.toml"), "sets git.commit, which only your own settings can do"),
        (file, "sets git.commit, which is set for single vaults"),
    ] {
        let before = fs::read_to_string(&path).ok();
        fs::write(&path, "[git]\ncommit = \"operation\"\n").unwrap();
        let refused = vault.run(&["status"]);
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
        match before {
            Some(before) => fs::write(&path, before).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    }
    for author in ["Robot", "<a@b>", "A <b> <c>"] {
        let flags = [("git.author", author.to_owned(), "test")];
        assert!(Config::load(vault.root(), &flags).unwrap_err().to_string().contains("is no author"));
    }
}
