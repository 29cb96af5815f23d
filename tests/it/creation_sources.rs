//! Tests what tells when a note was created that does not say it: its name, the times of its file, git, and the time at which
//! it was seen first; and that the times of copied files tell nothing.

use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sidenote::base::clock::Timestamp;
use sidenote::git::{Repository, is_silence};

use crate::git::{git, init};
use crate::support::{TestVault, json, run, stderr};

const NOW: &str = "2030-01-10T12:00:00Z";

/// Gives a file a time of modification, in days since 1970.
fn set_day(vault: &TestVault, path: &str, day: u64) {
    let file = File::options().write(true).open(vault.root().join(path)).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(day * 86_400)).unwrap();
}

/// Returns the day on which a note was created.
fn created(vault: &TestVault, path: &str) -> String {
    let reply = json(vault, NOW, &["list", "--json", "--limit", "1000"]);
    let notes = reply.as_array().unwrap();
    let note = notes.iter().find(|note| note["path"] == path).unwrap();
    note["created"].as_str().unwrap()[..10].to_owned()
}

#[test]
fn a_property_counts_before_the_name_and_the_name_before_the_file() {
    let vault = TestVault::new(&[
        ("2024-03-05 Boat.md", "---\ncreated: 2023-02-01\n---\nVarnish the hull.\n"),
        ("2024-03-06 Boat.md", "Varnish the hull again.\n"),
        ("20240307.md", "A day at the weir.\n"),
        ("Boat.md", "The boat is in the shed.\n"),
        ("2024-13-45 Boat.md", "The name is no date.\n"),
    ]);
    for path in ["Boat.md", "2024-13-45 Boat.md"] {
        set_day(&vault, path, 19_000);
    }
    let cases = [
        ("2024-03-05 Boat.md", "2023-02-01"),
        ("2024-03-06 Boat.md", "2024-03-06"),
        ("20240307.md", "2024-03-07"),
        ("Boat.md", "2022-01-08"),
        ("2024-13-45 Boat.md", "2022-01-08"),
    ];
    for (path, day) in cases {
        assert_eq!(created(&vault, path), day, "{path}");
    }
    assert_eq!(cases.len(), 5);
}

#[test]
fn a_later_day_in_a_name_is_not_that_of_the_creation() {
    let vault = TestVault::new(&[("2024-03-06 Launch.md", "The boat is launched.\n")]);
    set_day(&vault, "2024-03-06 Launch.md", 19_000);
    assert_eq!(created(&vault, "2024-03-06 Launch.md"), "2022-01-08");
}

#[test]
fn a_change_of_the_file_does_not_change_when_the_note_was_created() {
    let vault = TestVault::new(&[("Boat.md", "The boat is in the shed.\n")]);
    set_day(&vault, "Boat.md", 19_000);
    assert_eq!(created(&vault, "Boat.md"), "2022-01-08");
    // A new text, a new time alone, and a replaced file, as editors save.
    vault.write("Boat.md", "The boat is on the water.\n");
    assert_eq!(created(&vault, "Boat.md"), "2022-01-08");
    set_day(&vault, "Boat.md", 20_000);
    assert_eq!(created(&vault, "Boat.md"), "2022-01-08");
    vault.write("aside", "The boat leaks.\n");
    fs::rename(vault.root().join("aside"), vault.root().join("Boat.md")).unwrap();
    assert_eq!(created(&vault, "Boat.md"), "2022-01-08");
    run(&vault, NOW, &["append", "Boat", "It was mended."]);
    run(&vault, NOW, &["move", "Boat.md", "Old/Boat.md"]);
    assert_eq!(created(&vault, "Old/Boat.md"), "2022-01-08");
    // A copy of an older backup shows that it is older.
    set_day(&vault, "Old/Boat.md", 18_000);
    assert_eq!(created(&vault, "Old/Boat.md"), "2019-04-14");
}

#[test]
fn the_birth_of_a_file_counts_where_the_system_knows_it() {
    let vault = TestVault::new(&[("Boat.md", "The boat is in the shed.\n")]);
    let Ok(born) = fs::metadata(vault.root().join("Boat.md")).unwrap().created() else { return };
    let day = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400;
    set_day(&vault, "Boat.md", day(born) + 100);
    let first = Timestamp::from_millis(day(born) as i64 * 86_400_000).rfc3339();
    assert_eq!(created(&vault, "Boat.md"), first[..10]);
}

/// Creates a vault of many notes that were copied just now, one of a day in its name, and one that says its date. Returns the
/// time of an hour later, too.
fn copied_vault() -> (TestVault, String) {
    let vault = TestVault::new(&[("Journal/2020-05-01.md", "- [ ] Oil the oars\n")]);
    for number in 0..30 {
        vault.write(&format!("Notes/n{number}.md"), format!("- [ ] Task {number} of the boat\n"));
    }
    let now = time_of(&vault, "Notes/n7.md", 3_600);
    vault.write("Dated.md", format!("---\ncreated: {now}\n---\n- [ ] Buy varnish\n"));
    (vault, now)
}

/// Returns the time at which a file was written, and so many seconds more.
fn time_of(vault: &TestVault, path: &str, more: u64) -> String {
    let written = fs::metadata(vault.root().join(path)).unwrap().modified().unwrap();
    let seconds = written.duration_since(UNIX_EPOCH).unwrap().as_secs() + more;
    Timestamp::from_millis(i64::try_from(seconds).unwrap() * 1_000).rfc3339()
}

#[test]
fn notes_that_were_copied_together_are_not_new() {
    let (vault, now) = copied_vault();
    let tier = |now: &str, note: &str| json(&vault, now, &["memory", "explain", note])["tier"].clone();
    assert_eq!(tier(&now, "n7"), "COLD");
    assert_eq!(tier(&now, "2020-05-01"), "COLD");
    assert_eq!(tier(&now, "Dated"), "HOT");
    let lines = |args: &[&str]| run(&vault, &now, args).lines().map(str::to_owned).collect::<Vec<_>>();
    for args in [
        &["list", "--created-after", "7d", "--format", "{path}"][..],
        &["tasks", "--created-after", "7d", "--format", "{path}"],
        &["search", "created:7d..", "--format", "{path}"],
    ] {
        assert_eq!(lines(args), ["Dated.md"], "{args:?}");
    }
    let before = lines(&["list", "--created-before", "tomorrow", "--format", "{path}", "--limit", "100"]);
    assert_eq!(before.len(), 32, "each note existed then");
    let then = lines(&["list", "--as-of", "2021-06-01", "--format", "{path}", "--limit", "100"]);
    assert_eq!(then.len(), 31, "a copied note may be as old: {then:?}");
    // An edit does not make it new, and a note that is written later is.
    run(&vault, &now, &["append", "n7", "It is done."]);
    assert_eq!(tier(&now, "n7"), "COLD");
    vault.write("Later.md", "The boat was sold.\n");
    assert_eq!(tier(&now, "Later"), "HOT");
}

#[test]
fn few_notes_or_notes_written_one_by_one_are_new() {
    let vault = TestVault::new(&[]);
    for number in 0..19 {
        vault.write(&format!("n{number}.md"), format!("Note {number} of the boat\n"));
    }
    let now = time_of(&vault, "n7.md", 3_600);
    assert_eq!(json(&vault, &now, &["memory", "explain", "n7"])["tier"], "HOT");
    // Each note more is seen by itself.
    for number in 19..30 {
        vault.write(&format!("n{number}.md"), format!("Note {number} of the boat\n"));
        run(&vault, &now, &["index", "--no-embed"]);
    }
    assert_eq!(json(&vault, &now, &["memory", "explain", "n25"])["tier"], "HOT");
}

#[test]
fn git_tells_when_copied_notes_were_created() {
    let vault = TestVault::new(&[]);
    for number in 0..30 {
        vault.write(&format!("docs/n{number}.md"), format!("Note {number} of the boat\n"));
    }
    init(&vault);
    vault.write("docs/ü late.md", "A late note of the boat\n");
    // Git prints such a name in quotes, unless it is asked not to.
    #[cfg(unix)]
    vault.write("docs/a \"b\".md", "A quoted note of the boat\n");
    git(vault.root(), &["add", "docs"]);
    git(vault.root(), &["commit", "-q", "--amend", "-m", "first", "--date", "2020-05-01T00:00:00Z"]);
    // A clone has the time of the commit only in its history.
    let dated = Command::new("git")
        .env("HOME", vault.root().join(".home"))
        .env("GIT_COMMITTER_DATE", "2020-05-01T12:00:00Z")
        .current_dir(vault.root())
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--amend", "--no-edit"])
        .output()
        .unwrap();
    assert!(dated.status.success(), "{}", stderr(&dated));
    assert_eq!(created(&vault, "docs/n3.md"), "2020-05-01");
    assert_eq!(created(&vault, "docs/ü late.md"), "2020-05-01");
    #[cfg(unix)]
    assert_eq!(created(&vault, "docs/a \"b\".md"), "2020-05-01");
    // Git gets a limited time for it, and is not asked about the notes of others.
    let repository = Repository::discover(vault.root()).unwrap().unwrap();
    let first = repository.first_commits(&["docs/n3.md", "gone.md"], Duration::from_secs(600)).unwrap();
    assert_eq!(first.keys().collect::<Vec<_>>(), ["docs/n3.md"]);
    let error = repository.first_commits(&["docs/n3.md"], Duration::ZERO).unwrap_err();
    assert_eq!(error.to_string(), "cannot run git: git did not answer within 0 seconds and was ended");
    assert!(is_silence(&error) && error.hint().unwrap().contains("git status"), "{error:?}");
}

#[cfg(unix)]
#[test]
fn a_program_that_a_silent_git_started_is_not_waited_for() {
    let vault = TestVault::new(&[]);
    for number in 0..30 {
        vault.write(&format!("docs/n{number}.md"), format!("Note {number} of the boat\n"));
    }
    init(&vault);
    // What git starts keeps its output open, and takes the mark away if it is left to its end.
    let path = std::env::var_os("PATH").unwrap();
    let real =
        std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file()).unwrap();
    let folder = vault.root().join(".home/bin");
    let mark = vault.root().join(".home/asked");
    fs::create_dir_all(&folder).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n*--diff-filter=A*) touch '{mark}'; (sleep 60; rm '{mark}'); exit 1;;\n*) exec '{real}' \"$@\";;\nesac\n",
        mark = mark.display(),
        real = real.display(),
    );
    fs::write(folder.join("git"), script).unwrap();
    crate::support::set_mode(folder.join("git"), 0o755);
    let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path))).unwrap();
    let done = vault.command(&["index"]).env("PATH", path).output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(mark.exists());
}
