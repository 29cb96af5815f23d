//! Tests related notes, unlinked mentions, corrections of words, and `why`.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use insta::assert_snapshot;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};
use sidenote::bm25::Extent;
use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::store::{RelatedBy, RelatedRequest, SearchRequest, Store, WhyRequest};
use sidenote::vault::Vault;

use crate::support::{TestVault, run, stderr};

/// Lists the relatives of a note with what makes them so.
fn relatives(store: &Store, note: &str, by: RelatedBy) -> Vec<(String, Vec<String>, bool)> {
    let request = RelatedRequest { note: note.to_owned(), by, limit: None };
    let reply = store.searches().related(&request).unwrap();
    reply.related.into_iter().map(|item| (item.path, item.common, item.linked)).collect()
}

#[test]
fn notes_that_share_links_are_related_and_rare_links_weigh_more() {
    let vault = TestVault::new(&[
        ("a.md", "[[hub]] [[rare]]"),
        ("b.md", "[[rare]]"),
        ("c.md", "[[hub]]"),
        ("d.md", "[[hub]] [[a]]"),
        ("hub.md", ""),
        ("rare.md", ""),
        ("alone.md", ""),
    ]);
    let found = relatives(&vault.store(), "a", RelatedBy::Links);
    let paths: Vec<&str> = found.iter().map(|(path, ..)| path.as_str()).collect();
    assert_eq!(paths, ["b.md", "hub.md", "c.md", "d.md"]);
    assert_eq!(found[0].1, ["rare.md"]);
    assert_eq!(found.iter().filter(|(.., linked)| *linked).count(), 2, "hub and d");
}

#[test]
fn notes_with_similar_vectors_are_related() {
    let vault = TestVault::new(&[
        ("boat.md", "How to varnish the hull of a wooden boat"),
        ("ship.md", "Painting and sealing a ship made of timber"),
        ("soup.md", "A recipe for potato soup with leek"),
        ("put away.md", "---\ntier: archive\n---\nVarnish for the hull of a wooden boat"),
    ]);
    let store = vault.store_with("e5");
    store.index().embed_all(sidenote::index::silent()).unwrap();
    let request = RelatedRequest { note: "boat".to_owned(), ..RelatedRequest::default() };
    let reply = store.searches().related(&request).unwrap();
    let paths: Vec<&str> = reply.related.iter().map(|item| item.path.as_str()).collect();
    assert_eq!(paths, ["ship.md", "soup.md"]);
    assert!(reply.related[0].cosine.unwrap() > reply.related[1].cosine.unwrap());
}

#[test]
fn without_vectors_only_links_relate_notes_and_the_reply_says_so() {
    let vault = TestVault::new(&[("a.md", "text [[b]]"), ("b.md", "[[c]]"), ("c.md", "")]);
    assert_snapshot!(run(&vault, "2026-11-21", &["related", "a"]), @r#"c  c.md  by b.md"#);
    assert_eq!(run(&vault, "2026-11-21", &["related", "a", "--format", "{path}{cosine}"]), "c.md\n");
    let says = |args: &[&str]| stderr(&vault.run(args));
    assert_eq!(
        says(&["related", "a"]),
        "note: a.md has no vector, so only links are used; `sidenote model use e5` sets one\n"
    );
    assert_eq!(
        says(&["related", "a", "--by", "vector"]),
        "note: a.md has no vector, so no note is found by meaning; `sidenote model use e5` sets one\n"
    );
}

#[test]
fn a_name_in_text_is_a_mention_but_not_in_a_link_or_code() {
    let vault = TestVault::new(&[
        ("Old Mill.md", "---\naliases: [The Mill]\n---\nthe old mill itself"),
        ("a.md", "We met at the **old mill**.\n\nSee [[Old Mill]] and [the mill](Old%20Mill.md)."),
        ("b.md", "`old mill` and old millstones\n\n```\nold mill\n```\n\n%%old mill%%"),
        ("c.md", "---\nplace: Old Mill\n---\n# Past the mill\n\n- the mill, again"),
        (
            "d.canvas",
            "{\"nodes\":[\n{\"type\":\"text\",\"text\":\"First\\nPast [[b]] to the mill\"},\n\
             {\"type\":\"group\",\"label\":\"The mill\"}]}",
        ),
    ]);
    assert_snapshot!(run(&vault, "2026-11-21", &["mentions", "Old Mill"]), @r#"
    a.md:1      We met at the **old mill**.
    c.md:4      # Past the mill
    c.md:6      - the mill, again
    d.canvas:2  Past [[b]] to the mill
    d.canvas:3  The mill
    "#);
    assert_snapshot!(run(&vault, "2026-11-21", &["mentions", "b"]), @"the names of b.md are too short to search for");
}

/// Explains a note's place as the command does.
fn why(vault: &TestVault, args: &[&str]) -> String {
    let mut all = vec!["ask-why"];
    all.extend(args);
    run(vault, "2026-11-21", &all)
}

#[test]
fn why_names_the_deciding_reason() {
    let vault = TestVault::new(&[
        (".obsidian/app.json", "{\"userIgnoreFilters\": [\"Hidden/\"]}"),
        ("a.md", "boats and hulls #river"),
        ("b.md", "boats boats boats"),
        ("c.md", "hulls"),
        ("gone.md", "---\nforgotten: true\n---\nboats"),
        ("Hidden/h.md", "boats"),
        ("empty.md", ""),
    ]);
    let answers = [
        why(&vault, &["boats", "b"]),
        why(&vault, &["boats", "a", "--limit", "1"]),
        why(&vault, &["boats", "c"]),
        why(&vault, &["boats", "gone"]),
        why(&vault, &["boats", "h"]),
        why(&vault, &["boats", "empty"]),
        why(&vault, &["boats", "a", "--path", "Other"]),
        why(&vault, &["tag:#river -\"hulls\" (boats OR ships)", "a"]),
        why(&vault, &["tag:#river boats", "a"]),
        why(&vault, &["", "a"]),
    ];
    assert_snapshot!(answers.join("\n"), @r#"
    b.md is found
      no embedding model is set, so this searched by words only; `sidenote model use e5` sets one
      it is result 1 of the 10 that are shown
      words #1 0.932 -> 0.4000; meaning -
      place after each stage: words #1

    a.md is not found
      no embedding model is set, so this searched by words only; `sidenote model use e5` sets one
      it comes at place 2, and 1 are shown; a higher limit shows more
      words #2 0.593 -> 0.2545; meaning -
      place after each stage: words #2

    c.md is not found
      no embedding model is set, so this searched by words only; `sidenote model use e5` sets one
      it holds none of the query's words
      missing words: boats

    gone.md is not found
      it is forgotten
      no embedding model is set, so this searched by words only; `sidenote model use e5` sets one
      `memory restore` brings it back

    Hidden/h.md is not found
      Obsidian's settings exclude it (userIgnoreFilters in .obsidian/app.json)
      no embedding model is set, so this searched by words only; `sidenote model use e5` sets one
      missing words: boats

    empty.md is not found
      no embedding model is set, so this searched by words only; `sidenote model use e5` sets one
      it has no text
      missing words: boats

    a.md is not found
      a filter of the search keeps it out
      no embedding model is set, so this searched by words only; `sidenote model use e5` sets one

    a.md is not found
      it does not match -"hulls"
      no embedding model is set, so this searched by words only; `sidenote model use e5` sets one
      matches         tag:#river
      does not match  -"hulls"
      matches         (boats OR ships)
      place after each stage: words #1, condition -
      missing words: ships

    a.md is found
      no embedding model is set, so this searched by words only; `sidenote model use e5` sets one
      it is result 1 of the 10 that are shown
      matches         tag:#river
      matches         boats
      words #1 0.593 -> 0.4000; meaning -
      place after each stage: words #1

    a.md is not found
      the query is empty, and finds nothing
    "#);
}

#[test]
fn a_misspelled_word_is_corrected() {
    let vault = TestVault::new(&[("a.md", "The espresso machine"), ("b.md", "machines, жираф, roof")]);
    let store = vault.store();
    let suggests = |query: &str| {
        let request = SearchRequest { query: query.to_owned(), ..SearchRequest::default() };
        store.searches().search(&request).unwrap().did_you_mean
    };
    assert_eq!(suggests("esspreso").as_deref(), Some("espresso"));
    assert_eq!(suggests("\"esspresso\" machine").as_deref(), Some("\"espresso\" machine"));
    assert_eq!(suggests("espresso"), None);
    assert_eq!(suggests("esspreso machine"), None, "something was found");
    assert_eq!(suggests("xyzzyq"), None);
    // From seven characters on, two may be missing or too many, whatever their bytes.
    assert_eq!(suggests("esprss").as_deref(), None);
    assert_eq!(suggests("espreso").as_deref(), Some("espresso"));
    assert_eq!(suggests("eespressso").as_deref(), Some("espresso"));
    assert_eq!(suggests("eeespresssoo"), None);
    assert_eq!(suggests("жирав").as_deref(), Some("жираф"));
    assert_eq!(suggests("жира").as_deref(), Some("жираф"));
    assert_eq!(suggests("жирафик").as_deref(), Some("жираф"));
    assert_eq!(suggests("жирафики"), None);
    assert_eq!(suggests("rooff").as_deref(), Some("roof"));
}

#[test]
fn lists_of_terms_are_read_again_after_they_were_dropped() {
    let vault = TestVault::new(&[("a.md", "The espresso machine")]);
    let index = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), Options::default()).unwrap();
    index.sync(SyncScope::All, silent()).unwrap();
    let is_nowhere = |text| {
        index.snapshot().unwrap().bm25.may_contain(text, Extent::Anywhere).unwrap().unwrap().is_empty()
    };
    // The notes with a text are kept, too, so each is looked for once.
    let found = ["spress", "machin", "presso", "tpress"].map(|text| {
        let is_nowhere = is_nowhere(text);
        (0..2).for_each(|_| index.snapshot().unwrap().bm25.release_unused());
        is_nowhere
    });
    assert_eq!(found, [false, false, false, true]);
}

/// Returns the least number of characters that are inserted, removed, replaced, or swapped with the next one and not changed
/// after it, to make one word of another (Damerau–Levenshtein, optimal string alignment).
fn distance(one: &str, other: &str) -> usize {
    let [one, other] = [one, other].map(|word| word.chars().collect::<Vec<_>>());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let changed = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The words are made of few letters, so that many are near. The notes come in two segments.
    #[test]
    fn the_nearest_word_is_that_of_a_comparison_with_all(
        notes in vec(vec("[abжя]{3,9}", 1..40), 2..6),
        wanted in vec("[abжя]{3,9}", 40),
    ) {
        let vault = TestVault::new(&[]);
        let index = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), Options::default()).unwrap();
        for (at, words) in notes.iter().enumerate() {
            vault.write(&format!("{at}.md"), words.join(" "));
            index.sync(SyncScope::All, silent()).unwrap();
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for words in &notes {
            words.iter().collect::<HashSet<_>>().into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
        }
        let bm25 = &index.snapshot().unwrap().bm25;
        for wanted in &wanted {
            let most = match wanted.chars().count() { 0..4 => 0, 4..7 => 1, _ => 2 };
            let near = counts.iter().map(|(word, count)| (distance(wanted, word), Reverse(*count), *word));
            let nearest = near.filter(|(far, ..)| most > 0 && *far <= most).min().map(|(.., word)| word.to_owned());
            prop_assert_eq!(bm25.nearest_word(wanted, |_| true).unwrap(), nearest, "{}", wanted);
        }
    }
}

#[test]
fn why_of_an_unknown_note_is_an_error() {
    let vault = TestVault::new(&[("a.md", "x")]);
    let request = WhyRequest { note: "nothing".to_owned(), ..WhyRequest::default() };
    assert!(vault.store().searches().why(&request).is_err());
}
