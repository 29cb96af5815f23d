//! Tests that days are those of the local time zone, in every comparison and every reply, and UTC with `--utc`.

use std::fs::File;
use std::process::Output;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use sidenote::base::clock::Timestamp;

use crate::mcp_client::Client;
use crate::support::{TestVault, stderr, stdout};

/// A zone, an instant at which its day is another one than in UTC, or nearly so, that day, and its offset.
const MOMENTS: &[(&str, &str, &str, &str)] = &[
    ("Pacific/Auckland", "2026-11-21T11:30:00Z", "2026-11-22", "+13:00"),
    ("Asia/Kolkata", "2026-11-21T20:00:00Z", "2026-11-22", "+05:30"),
    ("America/Los_Angeles", "2026-11-22T02:00:00Z", "2026-11-21", "-08:00"),
    // A day of 25 hours ends.
    ("America/Los_Angeles", "2026-11-02T07:30:00Z", "2026-11-01", "-08:00"),
    ("UTC", "2026-11-21T23:59:00Z", "2026-11-21", "Z"),
];

fn run_in(vault: &TestVault, zone: &str, now: &str, args: &[&str]) -> Output {
    let done = vault.command(args).env("TZ", zone).env("SIDENOTE_NOW", now).output().unwrap();
    assert!(done.status.success(), "{args:?} in {zone}: {}", stderr(&done));
    done
}

fn paths_in(vault: &TestVault, zone: &str, now: &str, args: &[&str]) -> Vec<String> {
    let args: Vec<&str> = args.iter().copied().chain(["--format", "{path}"]).collect();
    let mut paths: Vec<String> =
        stdout(&run_in(vault, zone, now, &args)).lines().map(str::to_owned).collect();
    paths.sort();
    paths
}

/// Gives a file a time of modification.
fn set_written(vault: &TestVault, path: &str, now: &str) {
    let millis = u64::try_from(Timestamp::parse(now).unwrap().millis()).unwrap();
    let file = File::options().write(true).open(vault.root().join(path)).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_millis(millis)).unwrap();
}

/// Creates notes of today, by an instant, by a day, by a name and by the file, and notes of the days around it.
fn vault_at(zone: &str, now: &str, today: &str) -> TestVault {
    let vault = TestVault::new(&[
        ("Instant.md", &format!("---\ncreated: {now}\nupdated: {now}\n---\nA heron stands in the reeds.\n")),
        ("Day.md", &format!("---\ncreated: {today}\nupdated: {today}\n---\nA heron flew off.\n")),
        ("Late.md", &format!("---\ncreated: {today}T23:30\nupdated: {today}T23:30\n---\nA heron sleeps.\n")),
        ("Before.md", "---\ncreated: 2026-10-30\nupdated: 2026-10-30\n---\nA heron long ago.\n"),
        ("File.md", "A heron without a date.\n"),
        (&format!("{today}.md"), "A heron of the day.\n"),
    ]);
    for path in ["File.md".to_owned(), format!("{today}.md")] {
        set_written(&vault, &path, now);
    }
    run_in(&vault, zone, now, &["index"]);
    vault
}

#[test]
fn today_is_the_local_day_in_every_comparison() {
    for (zone, now, today, _) in MOMENTS {
        let vault = vault_at(zone, now, today);
        let daily = format!("{today}.md");
        let mut of_today = vec![daily.as_str(), "Day.md", "File.md", "Instant.md", "Late.md"];
        of_today.sort_unstable();
        let created = format!("created:{today}");
        let cases: &[&[&str]] = &[
            &["list", "--created-after", "today"],
            &["list", "--updated-after", "today"],
            &["list", "--created-after", today],
            &["search", "heron created:today"],
            &["search", "heron updated:today"],
            &["search", &format!("heron {created}")],
            &["search", &format!("heron created:{today}..{today}")],
            &["search", "heron created:>=today"],
        ];
        for args in cases {
            assert_eq!(paths_in(&vault, zone, now, args), of_today, "{args:?} in {zone}");
        }
        assert_eq!(cases.len(), 8);
        let found = paths_in(&vault, zone, now, &["search", "heron [created:<today]"]);
        assert_eq!(found, ["Before.md"], "{zone}");
        // A zone that is another one later needs no other index.
        let found = paths_in(&vault, "UTC", now, &["search", &format!("heron {created}")]);
        assert!(found.contains(&"Day.md".to_owned()) && found.contains(&"Late.md".to_owned()), "{found:?}");
    }
    assert_eq!(MOMENTS.len(), 5);
}

#[test]
fn replies_show_local_days_and_offsets() {
    for (zone, now, today, offset) in MOMENTS {
        let vault = vault_at(zone, now, today);
        let listed = stdout(&run_in(&vault, zone, now, &["list"]));
        let line = listed.lines().find(|line| line.contains("Instant")).unwrap();
        assert!(line.contains(today), "{zone}: {line}");
        let reply: Value =
            serde_json::from_slice(&run_in(&vault, zone, now, &["list", "--json"]).stdout).unwrap();
        let notes = reply.as_array().unwrap();
        let instant = notes.iter().find(|note| note["path"] == "Instant.md").unwrap();
        let shown = instant["created"].as_str().unwrap();
        assert!(shown.starts_with(today) && shown.ends_with(offset), "{zone}: {shown}");
        run_in(&vault, zone, now, &["append", "Day", "It came back."]);
        let history = stdout(&run_in(&vault, zone, now, &["history"]));
        assert!(history.contains(&format!("{today}T")) && history.contains(offset), "{zone}: {history}");
        let told = stdout(&run_in(&vault, zone, now, &["--utc", "history"]));
        assert!(told.contains(now), "{zone}: {told}");
        let utc: Value =
            serde_json::from_slice(&run_in(&vault, zone, now, &["--utc", "list", "--json"]).stdout).unwrap();
        let instant = utc.as_array().unwrap().iter().find(|note| note["path"] == "Instant.md");
        assert_eq!(instant.unwrap()["created"], **now, "{zone}");
    }
}

#[test]
fn tools_count_local_days() {
    for (zone, now, today, offset) in MOMENTS {
        let vault = vault_at(zone, now, today);
        let mut client = Client::of(vault.command(&["mcp"]).env("TZ", zone).env("SIDENOTE_NOW", now));
        client.catch_up();
        let found = client.call("search_notes", json!({ "query": "heron", "created_after": "today" }));
        let results = found["structuredContent"]["results"].as_array().unwrap();
        assert_eq!(results.len(), 5, "{zone}: {results:?}");
        let found = client.call("search_notes", json!({ "query": "heron", "updated_after": "today" }));
        assert_eq!(found["structuredContent"]["results"].as_array().unwrap().len(), 5, "{zone}: {found}");
        let date = client.call("read_session", json!({ "action": "date" }));
        let text = date["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(today) && text.contains(offset), "{zone}: {text}");
        client.finish();
    }
}
