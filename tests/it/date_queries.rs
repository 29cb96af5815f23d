//! Tests dates in queries: which words name a period, and how a search is narrowed by it.

use sidenote::clock::Timestamp;
use sidenote::search::date_phrase::find;

use crate::support::{TestVault, run};

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
    // No phrase names a period.
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
];

#[test]
fn some_words_name_a_period() {
    assert_eq!(PERIODS.len(), 40);
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
    let text = crate::support::stderr(&done) + &crate::support::stdout(&done);
    insta::assert_snapshot!(text, @r#"
    note: only notes from 2024-03-01 to 2024-03-31 were searched, because the query says "in March 2024"; leave these words out to search all notes
    words    varnished (1, idf 1.54), hull (1, idf 1.54)
    filters  dated from 2024-03-01 to 2024-03-31, by the words "in March 2024"
    hidden   1 note: archived or forgotten
    fusion   bm25, relative
     1. spring  spring.md:4-4
        The hull of the boat was varnished.
        score 0.4000 by words: words #1 3.389 -> 0.4000; meaning -
    "#);
}
