//! Tests time zones, and clocks that are wrong.

use std::path::PathBuf;

use crate::support::{TestVault, clone_journal, journal_files, json, run, stderr, text_of};

/// A daily note made at noon of 21 November in UTC has this name in a zone, whether the system knows zones or not.
#[track_caller]
fn check_zone(zone: &str, expected: &str) {
    for folder in [None, Some("/nonexistent")] {
        let vault = TestVault::new(&[("a.md", "a\n")]);
        let mut command = vault.command(&["new", "--daily"]);
        command.env("SIDENOTE_NOW", "2026-11-21T12:00:00Z").env("TZ", zone);
        folder.map(|folder| command.env("TZDIR", folder));
        let made = command.output().unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
        assert!(vault.root().join(format!("{expected}.md")).is_file(), "{zone} with zones in {folder:?}");
    }
}

#[test]
fn the_time_zone_of_the_environment_decides_the_date() {
    let cases = [
        ("Pacific/Auckland", "2026-11-22"),
        ("Pacific/Kiritimati", "2026-11-22"),
        ("America/New_York", "2026-11-21"),
        ("Pacific/Pago_Pago", "2026-11-21"),
        ("UTC", "2026-11-21"),
        ("<+14>-14", "2026-11-22"),
    ];
    for (zone, expected) in cases {
        check_zone(zone, expected);
    }
    assert_eq!(cases.len(), 6);
}

/// Runs a command at a time, and then another one at the right time again.
fn at(vault: &TestVault, now: &str, args: &[&str]) -> String {
    run(vault, now, args)
}

#[test]
fn a_clock_that_jumps_ahead_removes_no_before_images() {
    let vault = TestVault::new(&[("a.md", "0\n")]);
    at(&vault, "2026-11-21T10:00:00Z", &["append", "a", "one"]);
    at(&vault, "2026-11-21T10:01:00Z", &["append", "a", "two"]);
    at(&vault, "2030-01-01T00:00:00Z", &["append", "a", "three"]);
    at(&vault, "2199-01-01T00:00:00Z", &["append", "a", "four"]);
    at(&vault, "2026-11-21T10:02:00Z", &["append", "a", "five"]);
    // What was done last is taken back first, whatever its clock said.
    let cases = ["0\none\ntwo\nthree\nfour\n", "0\none\ntwo\nthree\n", "0\none\ntwo\n", "0\none\n", "0\n"];
    for expected in cases {
        at(&vault, "2026-11-21T10:03:00Z", &["undo"]);
        assert_eq!(text_of(&vault, "a.md").replace("\n\n", "\n"), expected);
    }
    assert_eq!(cases.len(), 5);
}

#[test]
fn events_after_a_clock_jump_go_to_the_present_month() {
    let vault = TestVault::new(&[("a.md", "0\n")]);
    let days =
        ["2026-11-21T10:00:00Z", "2030-01-01T00:00:00Z", "2026-11-21T10:01:00Z", "2026-12-01T00:00:00Z"];
    for (number, now) in days.iter().enumerate() {
        at(&vault, now, &["append", "a", &number.to_string()]);
    }
    let history = json(&vault, "2026-12-02", &["history"]);
    assert_eq!(history.as_array().unwrap().len(), days.len());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let months: Vec<String> = journal_files(vault.root()).iter().map(name).collect();
    assert_eq!(months, ["2026-11.jsonl", "2026-12.jsonl"]);
    // Where one was opened, it gets a name of the present once the clock is right again.
    for now in ["2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"] {
        at(&vault, now, &["append", "a", "ahead"]);
    }
    assert!(clone_journal(vault.root(), "2030-01").exists());
    // The event of that day is the last in the file, so the file stays until the next one.
    at(&vault, "2026-12-03T00:00:00Z", &["append", "a", "back"]);
    at(&vault, "2026-12-04T00:00:00Z", &["append", "a", "again"]);
    assert!(!clone_journal(vault.root(), "2030-01").exists());
    let history = json(&vault, "2026-12-05", &["history"]);
    let last: Vec<&str> =
        history.as_array().unwrap().iter().take(3).map(|event| event["at"].as_str().unwrap()).collect();
    assert_eq!(last, ["2026-12-04T00:00:00Z", "2026-12-03T00:00:00Z", "2030-01-02T00:00:00Z"]);
}

#[test]
fn a_note_dated_in_the_future_has_the_age_of_its_file() {
    let vault = TestVault::new(&[
        ("far.md", "---\ncreated_at: 2199-01-01\n---\nA heron stands in the reeds.\n"),
        ("near.md", "---\ncreated_at: 2025-01-01\n---\nA heron stood in the reeds.\n"),
    ]);
    let tier = |now: &str, note: &str| json(&vault, now, &["memory", "explain", note])["tier"].clone();
    assert_eq!(
        tier("2028-01-01", "far"),
        tier("2028-01-01", "near"),
        "a date to come says nothing of its age"
    );
    assert_eq!(tier("2026-11-21", "far"), "HOT");
}
