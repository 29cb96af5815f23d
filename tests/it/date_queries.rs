//! Tests dates in queries: which words name a period, and how a search is narrowed by it.

use sidenote::base::clock::Timestamp;
use sidenote::index::silent;
use sidenote::search::date_phrase::find;

use crate::support::{TestVault, run, stderr, stdout};

/// A Saturday.
const NOW: &str = "2026-11-21";

/// Queries, the period that they name, and the rest.
const PERIODS: &[(&str, &str, &str)] = &[
    ("what did we decide yesterday", "of 2026-11-20", "what did we decide"),
    ("Yesterday, the boat", "of 2026-11-20", ", the boat"),
    ("meeting last week", "from 2026-11-09 to 2026-11-15", "meeting"),
    ("meeting this week", "from 2026-11-16 to 2026-11-22", "meeting"),
    ("last month's meeting", "", ""),
    ("the meeting of last month", "from 2026-10-01 to 2026-10-31", "the meeting of"),
    ("spending this month", "from 2026-11-01 to 2026-11-30", "spending"),
    ("plans last year", "from 2025-01-01 to 2025-12-31", "plans"),
    ("plans this year?", "from 2026-01-01 to 2026-12-31", "plans ?"),
    ("boat in March", "from 2026-03-01 to 2026-03-31", "boat"),
    ("boat in december", "from 2025-12-01 to 2025-12-31", "boat"),
    ("boat in March 2024", "from 2024-03-01 to 2024-03-31", "boat"),
    ("boat in March 24", "from 2026-03-01 to 2026-03-31", "boat 24"),
    ("what happened in May 2024 at sea", "from 2024-05-01 to 2024-05-31", "what happened at sea"),
    ("during April the river", "from 2026-04-01 to 2026-04-30", "the river"),
    ("notes on 2024-03-05", "of 2024-03-05", "notes"),
    ("notes since 2024-03-05", "from 2024-03-05 on", "notes"),
    ("notes since Monday", "from 2026-11-16 on", "notes"),
    ("notes on Saturday", "of 2026-11-14", "notes"),
    ("notes before March 2024", "until 2024-02-29", "notes"),
    ("notes after March 2024", "from 2024-04-01 on", "notes"),
    ("notes until 2023", "until 2023-12-31", "notes"),
    ("rainfall in 2023", "from 2023-01-01 to 2023-12-31", "rainfall"),
    ("meeting November 18", "of 2026-11-18", "meeting"),
    ("meeting on 18 November", "of 2026-11-18", "meeting"),
    ("the 18th of November 2025", "of 2025-11-18", "the"),
    // A day without a year is the last one.
    ("November 30 budget", "of 2025-11-30", "budget"),
    ("notes since May 3", "from 2026-05-03 on", "notes"),
    ("notes before 3 May 2024", "until 2024-05-02", "notes"),
    ("May 3rd dinner", "of 2026-05-03", "dinner"),
    ("boat three days ago", "of 2026-11-18", "boat"),
    ("boat 2 weeks ago", "from 2026-11-02 to 2026-11-08", "boat"),
    ("boat a month ago", "from 2026-10-01 to 2026-10-31", "boat"),
    ("dinner the day before yesterday", "of 2026-11-19", "dinner"),
    ("dinner last Friday", "of 2026-11-20", "dinner"),
    ("early August at sea", "from 2026-08-01 to 2026-08-10", "at sea"),
    ("boat in mid-August", "from 2026-08-11 to 2026-08-20", "boat"),
    ("the end of February 2024", "from 2024-02-21 to 2024-02-29", "the"),
    ("tax 07.10.2026", "of 2026-10-07", "tax"),
    ("tax 2026-10-07", "of 2026-10-07", "tax"),
    ("notes from 2024-03-05 to 2024-03-08", "from 2024-03-05 to 2024-03-08", "notes"),
    ("notes between March and May", "from 2026-03-01 to 2026-05-31", "notes"),
    ("billing since last friday", "from 2026-11-20 on", "billing"),
    ("boat before yesterday", "until 2026-11-19", "boat"),
    ("boat until today", "until 2026-11-21", "boat"),
    ("top 10 of last week", "from 2026-11-09 to 2026-11-15", "top 10 of"),
    ("boat since three days ago", "from 2026-11-18 on", "boat"),
    ("boat after last week", "from 2026-11-16 on", "boat"),
    ("taxes by november 20", "until 2026-11-20", "taxes"),
    ("boat from november 18 onwards", "from 2026-11-18 on", "boat"),
    ("from november 18 to today", "from 2026-11-18 to 2026-11-21", ""),
    ("since the 18th of November", "from 2026-11-18 on", ""),
    ("boat on 2026.11.18", "of 2026-11-18", "boat"),
    ("november 18 and billing", "of 2026-11-18", "and billing"),
    // No phrase names a period.
    ("may 3 people come", "", ""),
    ("section 3 may apply", "", ""),
    ("march 10 miles", "", ""),
    ("November 32", "", ""),
    ("tax 07/10/2026", "", ""),
    ("release 1.2.2024.5", "", ""),
    ("two days later", "", ""),
    ("a while ago", "", ""),
    ("may I use this", "", ""),
    ("what may change", "", ""),
    ("March of the penguins", "", ""),
    ("march on the road", "", ""),
    ("the last week", "from 2026-11-09 to 2026-11-15", "the"),
    ("last of the week", "", ""),
    ("in port 2023", "", ""),
    ("in 20230", "", ""),
    ("in 1234", "", ""),
    ("on 2024-13-05", "", ""),
    ("on March", "", ""),
    ("in Monday", "", ""),
    ("today", "", ""),
    ("no time for Spanish this week, orders are non-stop and I am too tired", "", ""),
    ("sunday roast", "", ""),
    ("in", "", ""),
    ("", "", ""),
    // A year that is not read, several dates, versions.
    ("june 7 1944 printer", "", ""),
    ("july 4, 1776", "", ""),
    ("in June 1944", "", ""),
    ("billing november 18 and november 20", "", ""),
    ("on november 18 or 20", "", ""),
    ("2026-11-18 to 2026-11-20", "", ""),
    ("between november 3 and 5", "", ""),
    ("3 to 5 november", "", ""),
    ("billing november 3 with november 28", "", ""),
    ("home assistant 2024.3.1", "", ""),
    ("since 2024.1.4", "", ""),
    ("android 2026.11.18", "", ""),
    ("november 3 to friday", "", ""),
    ("taxes by friday", "", ""),
    ("what is on today", "", ""),
    ("before the march", "", ""),
];

#[test]
fn some_words_name_a_period() {
    assert_eq!(PERIODS.len(), 95);
    let now = Timestamp::parse(NOW).unwrap();
    for (query, period, rest) in PERIODS {
        let found = find(query, now);
        let said = found.as_ref().map_or_else(String::new, |phrase| phrase.period());
        let left = found.map_or_else(String::new, |phrase| phrase.without(query));
        assert_eq!((said.as_str(), left.as_str()), (*period, *rest), "{query}");
    }
}

fn vault() -> TestVault {
    TestVault::new(&[
        ("spring.md", "---\ncreated: 2024-03-05\n---\nThe hull of the boat was varnished."),
        ("2024-03-20.md", "Rowed the boat to the weir."),
        ("autumn.md", "---\ndate: 2024-10-01\n---\nThe boat is in the shed."),
        ("undated.md", "The boat has four oars."),
        ("hidden.md", "---\ncreated: 2024-03-06\nforgotten: true\n---\nThe boat leaks."),
        ("cake.md", "---\ncreated: 2024-05-05\n---\nA cake with plums."),
    ])
}

#[test]
fn a_search_is_narrowed_to_notes_that_state_a_date_in_the_period() {
    let vault = vault();
    let found = |query: &str| run(&vault, NOW, &["search", query, "--mode", "bm25", "--format", "{path}"]);
    insta::assert_snapshot!(found("boat in March 2024"), @r"
    2024-03-20.md
    spring.md
    ");
    insta::assert_snapshot!(found("boat after June 2024"), @r"autumn.md");
    // Nothing of that month is about the boat, so that all notes are searched.
    insta::assert_snapshot!(found("boat in May 2024"), @r"
    2024-03-20.md
    autumn.md
    spring.md
    undated.md
    cake.md
    ");
    insta::assert_snapshot!(found("boat in June 2022"), @r"
    2024-03-20.md
    autumn.md
    spring.md
    undated.md
    ");
    // A condition, and a filter by date, are what they say.
    insta::assert_snapshot!(found("\"boat\" in March 2024"), @"");
}

#[test]
fn the_reply_says_that_it_was_narrowed() {
    let vault = vault();
    run(&vault, NOW, &["search", "hull"]);
    let done = vault.run(&["search", "varnished hull in March 2024", "--mode", "bm25", "--explain"]);
    let text = stderr(&done) + &stdout(&done);
    insta::assert_snapshot!(text, @r#"
    note: only notes from 2024-03-01 to 2024-03-31 were searched, because the query says "in March 2024"; leave these words out to search all notes
    words    varnished (1, idf 1.54), hull (1, idf 1.54)
    filters  dated from 2024-03-01 to 2024-03-31, by the words "in March 2024"
    hidden   1 note: archived or forgotten
    stages   words
    fusion   bm25, relative
     1. spring  spring.md:4-4
        The hull of the boat was varnished.
        score 0.4000 by words: words #1 3.389 -> 0.4000; meaning -
    "#);
}

#[test]
fn a_date_alone_finds_the_notes_of_the_period_the_latest_first() {
    let vault = vault();
    let found = |query: &str| run(&vault, NOW, &["search", query, "--mode", "bm25", "--format", "{path}"]);
    // Neither common words nor words that no note has tell the notes of the period apart.
    for query in ["in March 2024", "what did I do in March 2024", "zebras in March 2024"] {
        assert_eq!(found(query), "2024-03-20.md\nspring.md\n", "{query}");
    }
}

#[test]
fn a_note_of_the_period_may_have_the_word_as_a_tag_alone() {
    let vault = TestVault::new(&[
        ("weekly.md", "---\ncreated: 2024-03-05\ntags: [meeting]\n---\nThe hull was varnished."),
        (
            "guide.md",
            "# Meeting\n\nA meeting has an agenda. After the meeting, write down what the meeting decided.",
        ),
    ]);
    let found = |query: &str| run(&vault, NOW, &["search", query, "--mode", "bm25", "--format", "{path}"]);
    insta::assert_snapshot!(found("meeting in March 2024"), @"weekly.md");
}

#[test]
fn a_note_with_a_date_for_its_title_is_found_by_it() {
    let vault = TestVault::new(&[
        ("Last week.md", "The boat was varnished."),
        ("diary.md", "---\ncreated: 2026-11-10\n---\nRowed to the weir."),
    ]);
    let found = |query: &str| run(&vault, NOW, &["search", query, "--mode", "bm25", "--format", "{path}"]);
    insta::assert_snapshot!(found("last week"), @"Last week.md");
    insta::assert_snapshot!(found("the last week"), @"diary.md");
}

#[test]
fn a_period_may_answer_by_meaning() {
    let vault = TestVault::new(&[
        (
            "trip.md",
            "---\ncreated: 2024-03-05\n---\nWe sailed to the island and slept in a tent on the beach.",
        ),
        ("hull.md", "---\ncreated: 2024-03-09\n---\nThe hull of the boat was varnished."),
        ("plans.md", "Holiday plans: where to go in summer, how much it costs."),
        ("machine.md", "The washing machine leaks at the door. The washing machine is under guarantee."),
    ]);
    vault.store_with("e5").index().embed_all(silent()).unwrap();
    let first = |query: &str| {
        let mut command = vault.command(&["search", query, "--format", "{path}", "--limit", "1"]);
        let done = command.env("SIDENOTE_EMBED_PROVIDER", "e5").output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
        stdout(&done)
    };
    // Only the plans have the word.
    assert_eq!(first("holiday in March 2024"), "trip.md\n");
    assert_eq!(first("washing machine in March 2024"), "machine.md\n");
    // No note has a word of it.
    assert_eq!(first("laundry appliance in March 2024"), "machine.md\n");
}

#[test]
fn the_reply_speaks_of_the_notes_that_a_filter_leaves() {
    let vault = TestVault::new(&[
        ("spring.md", "---\ncreated: 2024-03-05\n---\nThe hull of the boat was varnished."),
        ("shed.md", "---\ntags: [work]\n---\nThe boat is in the shed."),
    ]);
    let said =
        |tag: &str| stderr(&vault.run(&["search", "boat in March 2024", "--mode", "bm25", "--tag", tag]));
    let of_filter = "the filter leaves no notes from 2024-03-01 to 2024-03-31, although the query says \
                     \"in March 2024\", so all that it leaves were searched";
    let (work, nope) = (said("work"), said("nope"));
    assert!(work.contains(of_filter), "{work}");
    assert!(!nope.contains("2024-03-31"), "{nope}");
}

#[test]
fn the_reply_says_why_it_was_not_narrowed() {
    let vault = vault();
    for (query, said) in [
        (
            "boat in June 2022",
            "there are no notes from 2022-06-01 to 2022-06-30, although the query says \"in June 2022\", so all notes \
             were searched; a note is of the day that its properties or its name state",
        ),
        (
            "boat in May 2024",
            "the notes from 2024-05-01 to 2024-05-31 answer the query much worse than others, so all notes were \
             searched, although it says \"in May 2024\"",
        ),
    ] {
        let messages = stderr(&vault.run(&["search", query, "--mode", "bm25"]));
        assert!(messages.contains(said), "{messages}");
        let reply = stdout(&vault.run(&["search", query, "--mode", "bm25", "--json"]));
        let reply: serde_json::Value = serde_json::from_str(&reply).unwrap();
        let notes = reply["notes"].as_array().unwrap();
        assert!(notes.iter().any(|note| note == said), "{reply}");
    }
}
