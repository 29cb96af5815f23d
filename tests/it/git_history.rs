//! What the module `git` reads of a repository, and that nothing in the repository makes it run a program.

use std::fs;

use sidenote::git::{PathChange, Repository};

use crate::git::{git, init};
use crate::support::TestVault;

/// Makes a vault in git.
fn repository(files: &[(&str, &str)]) -> (TestVault, Repository) {
    let vault = TestVault::new(files);
    vault.write(".gitignore", ".home/\n");
    init(&vault);
    let found = Repository::discover(vault.root()).unwrap().unwrap();
    (vault, found)
}

/// Commits everything.
fn commit(vault: &TestVault, message: &str) {
    git(vault.root(), &["add", "--all"]);
    git(vault.root(), &["commit", "-qm", message]);
}

/// A text of many lines, so that a change of one leaves most of it.
fn long(word: &str) -> String {
    (0..40).map(|line| format!("{word} stands in line {line}\n")).collect()
}

#[test]
fn a_repository_is_found_from_its_top_a_subfolder_and_a_worktree() {
    let (vault, found) = repository(&[("docs/guide/a.md", "a\n"), ("b.md", "b\n")]);
    assert_eq!(found.prefix(), "");
    let inner = Repository::discover(&vault.root().join("docs/guide")).unwrap().unwrap();
    assert_eq!((inner.prefix(), inner.work_tree()), ("docs/guide/", found.work_tree()));
    let paths: Vec<String> =
        inner.tree(&inner.head().unwrap().unwrap()).unwrap().into_iter().map(|file| file.path).collect();
    assert_eq!(paths, ["a.md"]);

    let other = tempfile::tempdir().unwrap();
    let tree = other.path().join("tree");
    git(vault.root(), &["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    let worktree = Repository::discover(&tree.join("docs")).unwrap().unwrap();
    assert_eq!(worktree.prefix(), "docs/");
    assert!(worktree.git_dir().join("HEAD").exists() && worktree.git_dir() != found.git_dir());

    let none = tempfile::tempdir().unwrap();
    assert!(Repository::discover(none.path()).unwrap().is_none());
}

#[test]
fn contents_are_read_by_commit_and_path() {
    let (vault, found) = repository(&[("ä b.md", "old\r\n"), ("gone.md", "gone\n")]);
    let first = found.head().unwrap().unwrap();
    vault.write("ä b.md", "new\n");
    fs::remove_file(vault.root().join("gone.md")).unwrap();
    commit(&vault, "second");
    let second = found.head().unwrap().unwrap();
    let mut objects = found.objects().unwrap();
    let mut read = |commit, path: &str| {
        objects.file(commit, path).unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
    };
    assert_eq!(read(&first, "ä b.md").as_deref(), Some("old\r\n"));
    assert_eq!(read(&second, "ä b.md").as_deref(), Some("new\n"));
    assert_eq!(read(&first, "gone.md").as_deref(), Some("gone\n"));
    assert_eq!(read(&second, "gone.md"), None);
    assert_eq!(read(&second, "with\nline"), None);
    let blobs: Vec<_> = found.tree(&first).unwrap().into_iter().map(|file| file.blob).collect();
    let many: Vec<_> = blobs.iter().cycle().take(1000).cloned().collect();
    assert_eq!(objects.blobs(&many).unwrap().into_iter().flatten().count(), 1000);
    assert_eq!(found.commit("main~1").unwrap(), Some(first));
    assert_eq!(found.commit("no-such-branch").unwrap(), None);
    assert_eq!(found.commit("--help").unwrap(), None);
}

#[test]
fn the_index_of_git_is_not_the_working_tree() {
    let (vault, found) = repository(&[("a.md", "committed\n")]);
    vault.write("a.md", "staged\n");
    vault.write("new.md", "new\n");
    git(vault.root(), &["add", "--all"]);
    vault.write("a.md", "in the working tree\n");
    let staged = found.staged().unwrap();
    let notes: Vec<&str> = staged.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(notes, [".gitignore", "a.md", "new.md"]);
    let content = found.objects().unwrap().blob(&staged[1].blob).unwrap().unwrap();
    assert_eq!(String::from_utf8(content).unwrap(), "staged\n");
}

#[test]
fn lines_are_blamed_through_renames() {
    let (vault, found) = repository(&[("old \"q\" ö.md", &long("reed"))]);
    let first = found.head().unwrap().unwrap();
    git(vault.root(), &["mv", "old \"q\" ö.md", "new.md"]);
    let edited = long("reed").replace("line 7\n", "line seven\n");
    vault.write("new.md", format!("a line in front\n{edited}"));
    commit(&vault, "second");
    let second = found.head().unwrap().unwrap();
    let blamed = found.blame(&second, "new.md", &[1, 2, 9, 9]).unwrap();
    assert_eq!(blamed.len(), 3);
    assert_eq!(
        (&blamed[&1].commit, blamed[&1].path.as_deref(), blamed[&1].line),
        (&second, Some("new.md"), 1)
    );
    assert_eq!(
        (&blamed[&2].commit, blamed[&2].path.as_deref(), blamed[&2].line),
        (&first, Some("old \"q\" ö.md"), 1)
    );
    assert_eq!(blamed[&9].commit, second);
    found.blame(&second, "no.md", &[1]).unwrap_err();
}

#[test]
fn removals_are_found_on_side_branches_and_renames_are_told() {
    let (vault, found) = repository(&[("a.md", &long("otter")), ("b.md", &long("heron")), ("c.md", "c\n")]);
    let first = found.head().unwrap().unwrap();
    git(vault.root(), &["switch", "-qc", "side"]);
    fs::create_dir(vault.root().join("deep")).unwrap();
    git(vault.root(), &["mv", "a.md", "deep/a.md"]);
    git(vault.root(), &["mv", "b.md", "deep/heron.md"]);
    vault.write("deep/heron.md", long("heron").replace("line 3\n", "line three\n"));
    commit(&vault, "move");
    let moved = found.head().unwrap().unwrap();
    git(vault.root(), &["switch", "-q", "main"]);
    vault.write("c.md", "changed\n");
    commit(&vault, "change");
    git(vault.root(), &["merge", "-q", "--no-edit", "side"]);
    let head = found.head().unwrap().unwrap();

    let removals = found.removals(Some(&first), &head, "a.md").unwrap();
    assert_eq!(removals.len(), 1);
    assert_eq!((&removals[0].commit, &removals[0].parent), (&moved, &first));
    assert!(found.removals(Some(&head), &head, "a.md").unwrap().is_empty());
    assert!(found.removals(None, &head, "c.md").unwrap().is_empty());

    let mut changes = found.changes(&first, &moved, true).unwrap();
    changes.sort_by_key(|change| format!("{change:?}"));
    let told: Vec<String> = changes
        .iter()
        .map(|change| match change {
            PathChange::Renamed { from, to, percent, .. } => {
                format!(
                    "{} -> {} {}",
                    from.as_deref().unwrap(),
                    to.as_deref().unwrap(),
                    if *percent == 100 { "same" } else { "alike" }
                )
            }
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(told, ["a.md -> deep/a.md same", "b.md -> deep/heron.md alike"]);
    assert_eq!(found.changes(&first, &moved, false).unwrap().len(), 4);
    assert!(found.is_ancestor(&moved, &head).unwrap() && !found.is_ancestor(&head, &moved).unwrap());
    assert_eq!(found.merge_base(&moved, &head).unwrap(), Some(moved.clone()));
    assert_eq!(found.parents(&head).unwrap().len(), 2);
    let info = found.describe(&moved).unwrap();
    assert_eq!((info.subject.as_str(), info.author.as_str(), info.parents.len()), ("move", "a", 1));
}

/// A repository whose settings name a program wherever git may run one.
#[cfg(unix)]
#[test]
fn a_hostile_repository_runs_nothing() {
    use std::os::unix::fs::PermissionsExt as _;

    let (vault, found) = repository(&[("a.md", &long("otter")), ("b.md", "b\n")]);
    let first = found.head().unwrap().unwrap();
    git(vault.root(), &["mv", "a.md", "c.md"]);
    vault.write(".gitattributes", "*.md diff=evil filter=evil merge=evil\n");
    commit(&vault, "second");
    let second = found.head().unwrap().unwrap();

    let trap = vault.root().join(".home/trap");
    let ran = vault.root().join(".home/ran");
    fs::create_dir_all(vault.root().join(".home/hooks")).unwrap();
    fs::write(&trap, format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\n", ran.display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    for hook in ["post-index-change", "pre-commit", "reference-transaction", "post-checkout", "pre-auto-gc"] {
        fs::copy(&trap, vault.root().join(".home/hooks").join(hook)).unwrap();
    }
    let trap = trap.to_str().unwrap();
    let hooks = vault.root().join(".home/hooks");
    let settings = [
        ("core.fsmonitor", trap),
        ("core.hooksPath", hooks.to_str().unwrap()),
        ("core.pager", trap),
        ("core.editor", trap),
        ("core.sshCommand", trap),
        ("core.askPass", trap),
        ("core.alternateRefsCommand", trap),
        ("diff.external", trap),
        ("diff.evil.textconv", trap),
        ("diff.evil.command", trap),
        ("filter.evil.clean", trap),
        ("filter.evil.smudge", trap),
        ("filter.evil.process", trap),
        ("merge.evil.driver", trap),
        ("gpg.program", trap),
        ("gpg.ssh.program", trap),
        ("credential.helper", trap),
        ("log.showSignature", "true"),
        ("pager.blame", trap),
        ("pager.rev-list", trap),
        ("remote.evil.url", "ext::sh -c trap"),
        ("remote.evil.promisor", "true"),
        ("remote.evil.uploadpack", trap),
    ];
    for (name, value) in settings {
        git(vault.root(), &["config", name, value]);
    }
    // A missing content would be fetched from a promisor.
    let missing = sidenote::git::ObjectId::parse(&"1".repeat(40)).unwrap();

    assert_eq!(found.tree(&second).unwrap().len(), 4);
    found.staged().unwrap();
    found.blame(&second, "c.md", &[1, 2]).unwrap();
    assert_eq!(found.removals(None, &second, "a.md").unwrap().len(), 1);
    found.changes(&first, &second, true).unwrap();
    found.describe(&second).unwrap();
    found.merge_base(&first, &second).unwrap();
    assert_eq!(found.file_history(&second, "c.md").unwrap().len(), 2);
    found.tree_id(&second).unwrap().unwrap();
    found.named_commit("2030-01-01", sidenote::base::clock::Timestamp::from_millis(0)).unwrap();
    let run = |args: &[&str]| assert!(vault.run(args).status.success(), "{args:?}");
    run(&["diff", first.as_str(), second.as_str()]);
    run(&["diff", first.as_str()]);
    run(&["search", "otter", "--at", first.as_str()]);
    run(&["history", "c.md", "--git"]);
    let mut objects = found.objects().unwrap();
    objects.file(&second, "c.md").unwrap().unwrap();
    assert_eq!(objects.blob(&missing).unwrap(), None);
    assert_eq!(objects.sizes(&[missing]).unwrap(), [None]);
    drop(objects);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());

    // The trap works.
    let mut diff = std::process::Command::new("git");
    diff.env("HOME", vault.root().join(".home")).current_dir(vault.root()).args(["diff", "HEAD~1"]);
    drop(diff.output().unwrap());
    assert!(ran.exists());
}

/// Git waits for a pipe among its data, so such a repository is refused before git is run.
#[test]
#[cfg(unix)]
fn a_pipe_among_the_data_of_a_repository_holds_nobody() {
    for place in
        ["packed-refs", "config", "index", "objects/info/alternates", "refs/heads/x", "objects/pack/p.idx"]
    {
        let (vault, repository) = repository(&[("a.md", "one\n")]);
        let disk = vault.root().join(".git").join(place);
        fs::create_dir_all(disk.parent().unwrap()).unwrap();
        drop(fs::remove_file(&disk));
        assert!(std::process::Command::new("mkfifo").arg(&disk).status().unwrap().success());
        let fresh = Repository::discover(repository.work_tree()).unwrap().unwrap();
        let refused = crate::support::ends(place, move || fresh.head().unwrap_err());
        assert!(refused.to_string().contains("is not a regular file"), "{place}: {refused}");
    }
}
