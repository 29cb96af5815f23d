//! Looking back in a git repository: `history --git`, `diff` and `--at` (docs/spec/git.md 6).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sidenote::base::clock::Timestamp;
use sidenote::git::Repository;

use crate::git::{commit, git, git_vault as vault, init};
use crate::support::{TestVault, json, run, stderr, stdout};

/// A text of many lines, so that a change of one leaves most of it.
fn long(word: &str) -> String {
    (0..40).map(|line| format!("{word} stands in line {line}\n")).collect()
}

/// Commits everything at a time.
#[track_caller]
fn commit_at(vault: &TestVault, message: &str, time: &str) {
    git(vault.root(), &["add", "--all"]);
    let done = Command::new("git")
        .env("HOME", vault.root().join(".home"))
        .envs([("GIT_COMMITTER_DATE", time), ("GIT_AUTHOR_DATE", time)])
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"])
        .args(["commit", "-qm", message])
        .current_dir(vault.root())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
}

/// Runs a command and gives its output.
#[track_caller]
fn say(vault: &TestVault, args: &[&str]) -> String {
    let done = vault.run(args);
    assert!(done.status.success(), "{args:?}: {}", stderr(&done));
    stdout(&done)
}

/// Gives every file of the vault and of its repository, with content and time, but for sidenote's own.
fn everything(vault: &TestVault) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let (mut found, mut open) = (Vec::new(), vec![vault.root().to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with(".home") || path.ends_with(".sidenote") {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else {
                let modified = fs::symlink_metadata(&path).unwrap().modified().unwrap();
                found.push((path.clone(), fs::read(&path).unwrap(), modified));
            }
        }
    }
    found.sort();
    found
}

/// Gives the folders of trees in the cache of a vault's user.
fn trees(vault: &TestVault) -> Vec<PathBuf> {
    let cache = vault.root().join(".home/.cache/sidenote/trees");
    let repositories = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    let inner = repositories.flat_map(|folder| fs::read_dir(folder).unwrap());
    inner.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

/// Makes a note that was renamed on one branch while another one edited it, and whose name was another note's before.
fn renamed_and_merged() -> TestVault {
    let vault = vault(&[("otter.md", &long("otter")), ("lutra.md", "Something else.\n")]);
    let step = |message: &str| commit(&vault, message);
    vault.remove("lutra.md");
    step("remove another note");
    git(vault.root(), &["switch", "-qc", "side"]);
    vault.write("otter.md", long("otter").replace("line 3\n", "line 3, see [[heron]]\n"));
    step("edit on the side");
    git(vault.root(), &["switch", "-q", "main"]);
    git(vault.root(), &["mv", "otter.md", "lutra.md"]);
    step("rename");
    vault.write("lutra.md", long("otter").replace("line 37\n", "line 37 #animal\n"));
    step("edit on main");
    git(vault.root(), &["merge", "-q", "--no-edit", "side"]);
    vault.write("heron.md", "A bird.\n");
    step("unrelated");
    let text = fs::read_to_string(vault.root().join("lutra.md")).unwrap();
    assert!(text.contains("[[heron]]") && text.contains("#animal"), "git merged both: {text}");
    fs::create_dir(vault.root().join("animals")).unwrap();
    git(vault.root(), &["mv", "lutra.md", "animals/lutra.md"]);
    step("move");
    vault
}

#[test]
fn the_history_of_a_note_goes_through_renames_and_merges() {
    let vault = renamed_and_merged();
    let reply = json(&vault, "2026-11-21", &["history", "lutra", "--git"]);
    let told: Vec<(&str, &str)> = reply["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|commit| (commit["subject"].as_str().unwrap(), commit["path"].as_str().unwrap()))
        .collect();
    let expected = [
        ("move", "animals/lutra.md"),
        ("Merge branch 'side'", "lutra.md"),
        ("edit on main", "lutra.md"),
        ("rename", "lutra.md"),
        ("edit on the side", "otter.md"),
        ("first", "otter.md"),
    ];
    assert_eq!((told[0], told[1], told[5]), (expected[0], expected[1], expected[5]));
    // The commits of both branches have the same second, in which any order of them is right.
    let (mut told, mut expected) = (told, expected);
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected);
    let commits = reply["commits"].as_array().unwrap();
    let of = |subject: &str| commits.iter().find(|commit| commit["subject"] == subject).unwrap();
    assert_eq!(of("rename")["was"], "otter.md");
    assert_eq!(of("move")["was"], "lutra.md");
    assert_eq!(of("first")["created"], true);
    assert_eq!(of("Merge branch 'side'")["merge"], true);
    assert_eq!(of("edit on the side")["links"]["added"][0]["text"], "[[heron]]");
    assert_eq!(of("edit on main")["tags"]["added"][0], "animal");
    assert_eq!(of("edit on main")["author"], "a");
    let limited = json(&vault, "2026-11-21", &["history", "lutra", "--git", "--limit", "2"]);
    assert_eq!((limited["commits"].as_array().unwrap().len(), &limited["more"]), (2, &Value::Bool(true)));
}

#[test]
fn the_history_of_a_note_that_is_moved_and_not_committed_or_gone_is_found() {
    let vault = vault(&[("heron.md", "The heron nests.\n"), ("otter.md", "The otter swims.\n")]);
    run(&vault, "2026-11-21", &["move", "heron.md", "birds/heron.md"]);
    let shown = say(&vault, &["history", "birds/heron.md", "--git"]);
    assert!(shown.contains("created    heron.md"), "{shown}");
    vault.remove("otter.md");
    commit(&vault, "remove the otter");
    let shown = say(&vault, &["history", "otter", "--git"]);
    assert!(shown.contains("remove the otter\n    removed    otter.md"), "{shown}");
    vault.write("otter.md", "The otter swims.\n");
    commit(&vault, "restore the otter");
    let reply = json(&vault, "2026-11-21", &["history", "otter", "--git"]);
    let subjects: Vec<&str> = reply["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|commit| commit["subject"].as_str().unwrap())
        .collect();
    assert_eq!(subjects, ["restore the otter", "remove the otter", "first"]);
    vault.write("new.md", "New.\n");
    assert_eq!(say(&vault, &["history", "new", "--git"]), "no commit has new.md yet\n");
    assert!(stderr(&vault.run(&["history", "nowhere", "--git"])).contains("nowhere"));
}

#[test]
fn two_revisions_are_compared_in_the_terms_of_notes() {
    let guide = long("guide");
    let vault = vault(&[
        ("Guide.md", &guide),
        ("Index.md", "---\nstatus: draft\n---\n# Index\n\nSee [[Guide]] and [[Old]].\n\n- [ ] write it\n"),
        ("Reader.md", "Read [[Guide]], then [[Old]].\n"),
        ("Old.md", "Gone soon.\n"),
    ]);
    git(vault.root(), &["mv", "Guide.md", "Handbook.md"]);
    vault.remove("Old.md");
    vault.write(
        "Index.md",
        "---\nstatus: done\n---\n# Index\n\nSee [[Handbook]] and [[Old]].\n\n- [x] write it\n\n## More\n",
    );
    vault.write("New.md", "A new note: [[Handbook]], [[Nowhere]].\n");
    let expected = "\
+ New.md
    broken     [[Nowhere]] (line 1)
    words +5 -0, 2 links
- Old.md
    words +0 -2
> Guide.md → Handbook.md
~ Index.md
    rewritten  [[Guide]] → [[Handbook]] (line 6)
    broken     [[Old]] led to Old.md (line 6)
    property   status: draft → done
    heading +  ## More
    task       [ ] → [x] write it
    words      +2 -1
! Reader.md
    broken     [[Guide]] led to Guide.md (line 1)
    broken     [[Old]] led to Old.md (line 1)
";
    let body = |shown: String| {
        let lines: Vec<&str> = shown.lines().collect();
        let mut notes: Vec<String> = Vec::new();
        for line in &lines[1..lines.len() - 1] {
            match notes.last_mut() {
                Some(note) if line.starts_with("    ") => note.push_str(&format!("{line}\n")),
                _ => notes.push(format!("{line}\n")),
            }
        }
        notes.sort_by_key(|note| "+->~!".find(note.as_str().chars().next().unwrap()));
        (notes.concat(), lines[lines.len() - 1].to_owned())
    };
    let totals = "notes: 1 added, 1 removed, 1 renamed, 1 changed, 1 affected by other notes; \
                  links: 2 added, 1 rewritten, 4 broken; words: +7 -3";
    // The files as they are, before git knows of them, and then two commits.
    assert_eq!(body(say(&vault, &["diff"])), (expected.to_owned(), totals.to_owned()));
    commit(&vault, "second");
    for args in [
        &["diff", "HEAD~1..HEAD"][..],
        &["diff", "HEAD~1", "HEAD"],
        &["diff", "HEAD~1"],
        &["diff", "HEAD~1.."],
    ] {
        assert_eq!(body(say(&vault, args)), (expected.to_owned(), totals.to_owned()), "{args:?}");
    }
    assert!(say(&vault, &["diff"]).ends_with("no difference\n"));
    let back = json(&vault, "2026-11-21", &["diff", "HEAD", "HEAD~1"]);
    assert_eq!((&back["totals"]["links_revived"], &back["totals"]["renamed"]), (&3.into(), &1.into()));
    let only = json(&vault, "2026-11-21", &["diff", "HEAD~1..HEAD", "Handbook.md", "New.md"]);
    let paths: Vec<&str> =
        only["notes"].as_array().unwrap().iter().map(|note| note["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["Handbook.md", "New.md"]);
    let fails = [
        (&["diff", "nothing"][..], "neither a revision of git nor a path"),
        (&["diff", "HEAD..nothing"], "git knows no revision \"nothing\""),
    ];
    assert_eq!(fails.len(), 2);
    for (args, message) in fails {
        let said = stderr(&vault.run(args));
        assert!(said.contains(message), "{args:?}: {said}");
    }
}

#[test]
fn the_notes_of_a_commit_are_read_and_nothing_is_written() {
    let vault = vault(&[
        ("heron.md", "---\ntags: [bird]\n---\nThe heron nests near [[otter]].\n"),
        ("otter.md", "The otter swims.\n"),
        ("image.png", "\u{89}PNG"),
    ]);
    git(vault.root(), &["tag", "v1"]);
    git(vault.root(), &["mv", "otter.md", "lutra.md"]);
    vault.write("heron.md", "The crane nests near [[otter]].\n");
    commit(&vault, "second");
    run(&vault, "2026-11-21", &["index"]);
    let before = everything(&vault);
    let uses = json(&vault, "2026-11-21", &["memory", "explain", "heron"])["uses"].clone();

    assert_eq!(
        say(&vault, &["read", "heron", "--at", "v1"]),
        "---\ntags: [bird]\n---\nThe heron nests near [[otter]].\n"
    );
    let found = json(&vault, "2026-11-21", &["search", "heron", "--at", "v1"]);
    assert_eq!(found["results"][0]["path"], "heron.md");
    assert_eq!(found["mode"], "bm25");
    assert!(
        json(&vault, "2026-11-21", &["search", "swims", "--at", "HEAD"])["results"][0]["path"] == "lutra.md"
    );
    let listed = json(&vault, "2026-11-21", &["list", "--at", "v1"]);
    let paths: Vec<&str> =
        listed.as_array().unwrap().iter().map(|note| note["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["heron.md", "otter.md"]);
    let links = json(&vault, "2026-11-21", &["links", "heron", "--at", "v1"]);
    assert_eq!(links["outgoing"][0]["resolved"], "otter.md");
    let broken = |args: &[&str]| json(&vault, "2026-11-21", args)["counts"]["broken-link"].clone();
    assert_eq!(broken(&["check", "--at", "v1"]), Value::Null);
    assert_eq!(broken(&["check", "--at", "HEAD"]), 1);
    let asked = vault.run(&["search", "heron", "--at", "v1", "--mode", "vector"]);
    assert!(stderr(&asked).contains("--at searches by words"), "{}", stderr(&asked));

    assert_eq!(everything(&vault), before);
    assert_eq!(json(&vault, "2026-11-21", &["memory", "explain", "heron"])["uses"], uses);
    assert_eq!(git(vault.root(), &["status", "--porcelain"]), "");
    let fails = [("nothing", "git knows no revision"), ("--help", "git knows no revision")];
    for (revision, message) in fails {
        let said = stderr(&vault.run(&["read", "heron", &format!("--at={revision}")]));
        assert!(said.contains(message), "{revision}: {said}");
    }
    let outside = TestVault::new(&[("a.md", "a\n")]);
    assert!(stderr(&outside.run(&["read", "a", "--at", "HEAD"])).contains("is in no git repository"));
}

#[test]
fn a_date_means_the_last_commit_before_the_end_of_that_day() {
    let vault = TestVault::new(&[("a.md", "one\n"), (".gitignore", ".home/\n.sidenote/\n")]);
    git(vault.root(), &["init", "-q", "-b", "main"]);
    let days =
        [("one", "2026-03-01T10:00:00Z"), ("two", "2026-03-05T23:59:59Z"), ("three", "2026-03-06T00:00:00Z")];
    for (text, time) in days {
        vault.write("a.md", format!("{text}\n"));
        commit_at(&vault, text, time);
    }
    // A file may have the name of a revision.
    vault.write("HEAD", "x\n");
    let cases = [
        (":/tw", "two\n"),
        ("HEAD^{/on}", "one\n"),
        ("2026-03-01", "one\n"),
        ("2026-03-04", "one\n"),
        ("2026-03-05", "two\n"),
        ("2026-03-06", "three\n"),
        ("2026-03-01T11:00", "one\n"),
        ("yesterday", "two\n"),
        ("today", "three\n"),
        ("5d", "one\n"),
        ("HEAD", "three\n"),
    ];
    let found = Repository::discover(vault.root()).unwrap().unwrap();
    let mut objects = found.objects().unwrap();
    let now = Timestamp::parse("2026-03-06T12:00").unwrap();
    assert_eq!(cases.len(), 11);
    for (name, text) in cases {
        let id = found.named_commit(name, now).unwrap().id;
        let content = objects.file(&id, "a.md").unwrap().unwrap();
        assert_eq!(String::from_utf8(content).unwrap(), text, "{name}");
    }
    let error = found.named_commit("2026-02-28", now).unwrap_err();
    assert!(error.to_string().contains("HEAD has no commit before the end of 2026-02-28"), "{error}");
}

#[test]
fn a_commit_is_read_with_its_own_settings_and_in_its_own_folder() {
    let vault = TestVault::new(&[
        ("docs/a.md", "[b](/docs/b.md) [c](C.md)\n"),
        ("docs/b.md", "b\n"),
        ("docs/c.md", "c\n"),
    ]);
    vault.write(".gitignore", ".home/\n.sidenote/index/\n");
    vault.write("docs/.sidenote/config.toml", "[links]\ndialect = \"github\"\n");
    init(&vault);
    git(vault.root(), &["tag", "v1"]);
    vault.write("docs/.sidenote/config.toml", "[links]\ndialect = \"obsidian\"\n");
    commit(&vault, "second");
    let inner = |args: &[&str]| {
        let root = vault.root().join("docs");
        let outer = vault.command(&[]);
        let mut inner = Command::new(outer.get_program());
        inner.env_clear().envs(outer.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let done = inner.args(["--vault", root.to_str().unwrap(), "--json"]).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", stderr(&done));
        serde_json::from_str::<Value>(&stdout(&done)).unwrap()
    };
    let targets = |revision: &str| {
        let links = inner(&["links", "a", "--at", revision]);
        links["outgoing"].as_array().unwrap().iter().map(|link| link["resolved"].clone()).collect::<Vec<_>>()
    };
    // GitHub begins at the root of the repository, and knows no file named C.md.
    assert_eq!(targets("v1"), ["b.md"]);
    assert_eq!(targets("HEAD"), ["c.md"]);
    let diff = inner(&["diff", "v1", "HEAD"]);
    assert_eq!(
        (&diff["totals"]["links_dead"], &diff["totals"]["links_revived"]),
        (&1.into(), &1.into()),
        "{diff}"
    );
}

#[cfg(unix)]
#[test]
fn three_trees_are_kept_in_a_private_folder() {
    use std::os::unix::fs::PermissionsExt as _;

    let vault = vault(&[("a.md", "0\n")]);
    for text in 1..6 {
        vault.write("a.md", format!("{text}\n"));
        commit(&vault, "next");
    }
    for back in 0..6 {
        assert_eq!(say(&vault, &["read", "a", "--at", &format!("HEAD~{back}")]), format!("{}\n", 5 - back));
        assert!(trees(&vault).len() <= 3, "{:?}", trees(&vault));
    }
    assert_eq!(trees(&vault).len(), 3);
    for folder in trees(&vault) {
        let above = folder.parent().unwrap();
        for folder in [&folder, above, above.parent().unwrap()] {
            let mode = fs::metadata(folder).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
        }
    }
    // The same tree under another name is the same folder.
    git(vault.root(), &["commit", "-q", "--allow-empty", "-m", "empty"]);
    let before = trees(&vault);
    assert_eq!(say(&vault, &["read", "a", "--at", "HEAD~6"]), "0\n");
    assert_eq!(trees(&vault).len(), before.len());
}

#[test]
fn processes_that_read_one_commit_at_once_get_one_answer() {
    let files: Vec<(String, String)> =
        (0..300).map(|n| (format!("n{n}.md"), format!("Note {n} of herons\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = vault(&files);
    let start = |revision: &str| {
        let mut command = vault.command(&["list", "--at", revision, "-0"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<_> = (0..6).map(|_| start("HEAD")).collect();
    for process in running {
        let done = process.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
        assert_eq!(stdout(&done).matches('\0').count(), 300, "{}", stderr(&done));
    }
    assert_eq!(trees(&vault).len(), 1);
}

/// Makes a commit of a tree with names that `git add` would refuse.
fn hostile_commit(root: &Path) -> String {
    let blob = |text: &str| {
        fs::write(root.join(".home/blob"), text).unwrap();
        git(root, &["hash-object", "-w", ".home/blob"]).trim().to_owned()
    };
    let tree = |entries: &[(&str, &str, &str)]| {
        // A tree is made without a check of its names.
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend(format!("{mode} {name}\0").as_bytes());
            let pairs = id.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
            bytes.extend(pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()));
        }
        fs::write(root.join(".home/tree"), bytes).unwrap();
        git(root, &["hash-object", "-w", "-t", "tree", "--literally", ".home/tree"]).trim().to_owned()
    };
    let (evil, fine) = (blob("evil\n"), blob("fine [[evil]]\n"));
    let above = blob("../../../../../../../../tmp");
    let inner = tree(&[("100644", "evil.md", &evil)]);
    let top = tree(&[
        ("40000", "..", &inner),
        ("40000", ".git", &inner),
        ("100644", "/abs.md", &evil),
        ("100644", "fine.md", &fine),
        ("120000", "link", &above),
        ("120000", "link.md", &above),
    ]);
    git(root, &["commit-tree", &top, "-m", "hostile"]).trim().to_owned()
}

#[test]
fn a_hostile_tree_is_written_nowhere_else() {
    let vault = vault(&[("a.md", "a\n")]);
    fs::create_dir_all(vault.root().join(".home")).unwrap();
    let commit = hostile_commit(vault.root());
    let done = vault.run(&["list", "--at", &commit, "--format", "{path}\\n"]);
    assert_eq!(stdout(&done), "fine.md\n", "{}", stderr(&done));
    assert!(
        stderr(&done).contains("link and 1 more are left out: they are symbolic links"),
        "{}",
        stderr(&done)
    );
    let mut open = vec![vault.root().join(".home/.cache")];
    let mut names = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            assert!(!kind.is_symlink(), "{}", entry.path().display());
            names.push(entry.file_name().into_string().unwrap());
            open.extend(kind.is_dir().then(|| entry.path()));
        }
    }
    assert!(
        names.iter().any(|name| name == "fine.md") && !names.iter().any(|name| name.contains("evil")),
        "{names:?}"
    );
    let diff = json(&vault, "2026-11-21", &["diff", "HEAD", &commit]);
    assert_eq!((&diff["totals"]["added"], &diff["totals"]["removed"]), (&1.into(), &1.into()), "{diff}");
}

/// Kills `search --at` at random moments while it makes the index of a revision. The next search gives what an undisturbed
/// one gives.
#[cfg(unix)]
fn check_killed_searches(kills: usize) {
    use std::time::Instant;
    let files: Vec<(String, String)> =
        (0..60).map(|at| (format!("n{at}.md"), format!("# Otter {at}\n\n{}", long("otter")))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = vault(&files);
    vault.write("later.md", "A heron.\n");
    commit(&vault, "later");
    let args = ["search", "otter", "--at", "HEAD~1", "--json"];
    let cache = vault.root().join(".home/.cache");
    // A search says how long it took.
    let found = || {
        let mut reply: serde_json::Value = serde_json::from_str(&say(&vault, &args)).unwrap();
        reply.as_object_mut().unwrap().remove("took_ms").unwrap();
        reply
    };
    let started = Instant::now();
    let whole = found();
    let time = started.elapsed();
    let (mut killed, mut while_building) = (0, 0);
    for kill in 0..kills {
        // Every fourth kill meets a cache that is whole.
        if kill % 4 != 3 {
            drop(fs::remove_dir_all(&cache));
        }
        let mut command = vault.command(&args);
        let mut child =
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        // The moments are spread over the run, in an order without a pattern.
        let end = Instant::now() + time.mul_f64((kill as f64 * 0.618_033_988_75).fract() * 1.1);
        while Instant::now() < end && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        drop(child.kill());
        let was_killed = crate::support::was_killed(child.wait().unwrap());
        killed += usize::from(was_killed);
        while_building += usize::from(was_killed && cache.exists() && kill % 4 != 3);
        assert_eq!(found(), whole, "kill {kill}");
        assert_eq!(found(), whole, "kill {kill}, again");
    }
    crate::support::say(&format!(
        "{kills} runs, {killed} killed, {while_building} of them with a cache under way"
    ));
    assert!(killed > 0);
}

#[cfg(unix)]
#[test]
fn a_killed_search_at_a_revision_leaves_a_whole_cache() {
    check_killed_searches(20);
}

#[cfg(unix)]
#[test]
#[ignore = "it takes minutes: `just repair-kills`"]
fn two_hundred_killed_searches_at_a_revision_leave_a_whole_cache() {
    check_killed_searches(crate::support::env_number("SIDENOTE_TEST_KILLS", 200));
}
