//! Tests the stages of a search: what they are called, what each did, and that `ask-why` gives the place of the search.

use std::sync::Arc;

use sidenote::base::clock::Timestamp;
use sidenote::base::error::Result;
use sidenote::index::indexed_document::ParsedNote;
use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::markdown::path::NotePath;
use sidenote::search::pipeline::{finish, rank};
use sidenote::search::query::Query;
use sidenote::search::reader::SearchReader;
use sidenote::search::{Mode, QueryVector, Request, SearchHit};
use sidenote::store::{SearchRequest, Store, WhyRequest};
use sidenote::vault::Vault;

use crate::mcp_client::Client;
use crate::support::{TestVault, json, run};

const NOW: &str = "2026-11-21";

/// Notes about boats, of which one is superseded and two state a date.
fn vault() -> TestVault {
    TestVault::new(&[
        ("old.md", "---\nsuperseded_by: \"[[new]]\"\n---\nThe boat fee: a boat pays four crowns."),
        (
            "new.md",
            "A longer text, in which the fee of the harbour for each boat and each night is six crowns.",
        ),
        ("spring.md", "---\ncreated: 2024-03-05\n---\nThe hull of the boat was varnished, then the boat."),
        ("2024-03-20.md", "Rowed the boat to the weir."),
        ("boat.md", "A hull."),
        ("cake.md", "---\ncreated: 2024-05-05\n---\nA cake with plums."),
    ])
}

/// Checks that `ask-why` gives each result of a search the place that it has there, with the last stage at that place.
#[track_caller]
fn check_places(store: &Store, request: &SearchRequest) {
    let found = store.searches().search(request).unwrap().results;
    assert!(!found.is_empty(), "{request:?}");
    for (at, result) in found.iter().enumerate() {
        let asked = WhyRequest { search: request.clone(), note: result.path.clone() };
        let why = store.searches().why(&asked).unwrap();
        assert_eq!(why.rank, Some(at + 1), "{} for {:?}: {why:?}", result.path, request.query);
        assert_eq!(why.stages.last().and_then(|last| last.place), Some(at + 1), "{why:?}");
        assert!(why.found, "{why:?}");
    }
}

#[test]
fn a_note_has_the_place_that_the_search_gives_it() {
    let vault = vault();
    let queries = [
        "boat",
        "boat fee",
        "boat in March 2024",
        "in March 2024",
        "\"boat\" fee",
        "path:.md",
        "boat in May 2024",
    ];
    for provider in ["none", "e5"] {
        let store = vault.store_with(provider);
        store.index().embed_all(silent()).unwrap();
        for query in queries {
            for limit in [1, 3, 10] {
                let query = query.to_owned();
                check_places(
                    &store,
                    &SearchRequest { query, limit: Some(limit), ..SearchRequest::default() },
                );
            }
        }
    }
}

#[test]
fn a_note_says_where_each_stage_put_it() {
    let vault = vault();
    let why = |query: &str, note: &str| run(&vault, NOW, &["ask-why", query, note, "--mode", "bm25"]);
    let replaced = [why("boat fee", "old"), why("boat fee", "new"), why("boat", "boat")];
    insta::assert_snapshot!(replaced.join("\n"), @r"
    old.md is found
      it is result 2 of the 10 that are shown
      words #1 1.801 -> 0.4000; meaning -
      place after each stage: words #1, validity #2

    new.md is found
      it is result 1 of the 10 that are shown
      words #2 1.619 -> 0.3595; meaning -; supersedes the next note -> +0.0405
      place after each stage: words #2, validity #1

    boat.md is found
      it is result 1 of the 10 that are shown
      words #3 0.577 -> 0.3452; meaning -; name -> 1.5000
      place after each stage: words #3, names #1
    ");
    // The search looks among the notes of the month alone.
    let dated = [why("boat in March 2024", "spring"), why("boat in March 2024", "new")];
    insta::assert_snapshot!(dated.join("\n"), @r#"
    spring.md is found
      only notes from 2024-03-01 to 2024-03-31 were searched, because the query says "in March 2024"; leave these words out to search all notes
      it is result 1 of the 10 that are shown
      words #1 0.668 -> 0.4000; meaning -
      place after each stage: words #1

    new.md is not found
      only notes from 2024-03-01 to 2024-03-31 were searched, because the query says "in March 2024"; leave these words out to search all notes
      it states no date in the period that the query names
    "#);
    insta::assert_snapshot!(why("\"boat\" path:20", "2024-03-20"), @r#"
    2024-03-20.md is found
      it is result 1 of the 10 that are shown
      matches         path:20
      matches         "boat"
      words #1 0.486 -> 0.4000; meaning -
      place after each stage: words #1
    "#);
    let reply = json(&vault, NOW, &["ask-why", "boat fee", "new", "--mode", "bm25"]);
    insta::assert_snapshot!(reply["stages"].to_string(), @r#"[{"stage":"words","place":2},{"stage":"validity","place":1}]"#);
}

#[test]
fn a_search_says_which_stages_put_its_results_in_order() {
    let vault = vault();
    let stages = |query: &str, args: &[&str]| {
        let reply = json(&vault, NOW, &[&["search", query, "--explain"], args].concat());
        reply["explain"]["stages"].to_string()
    };
    assert_eq!(stages("varnished", &[]), r#"["words"]"#);
    assert_eq!(stages("boat", &[]), r#"["words","names","validity"]"#);
    // The words alone put the first result first.
    assert_eq!(stages("varnished boat", &["--limit", "1"]), r#"["words"]"#);
    assert_eq!(stages("path:cake", &[]), r#"["condition"]"#);
    assert_eq!(stages("in March 2024", &[]), r#"["period"]"#);
    assert_eq!(stages("nothing of it", &[]), "null");
    let text = run(&vault, NOW, &["search", "boat", "--explain", "--limit", "1"]);
    assert!(text.contains("stages  words, names\n"), "{text}");
    assert!(json(&vault, NOW, &["search", "boat"]).get("explain").is_none());
    let mut client = Client::start(&vault, &[]);
    let reply = client.call("search_notes", serde_json::json!({ "query": "boat", "explain": true }));
    assert_eq!(reply["structuredContent"]["stages"].to_string(), r#"["words","names","validity"]"#);
    let reply = client.call("search_notes", serde_json::json!({ "query": "boat" }));
    assert!(reply["structuredContent"].get("stages").is_none(), "{reply}");
}

/// Likes notes the better the later their paths are.
struct LastPathFirst;

impl SearchReader for LastPathFirst {
    fn note(&self, _: &NotePath) -> Option<Arc<ParsedNote>> {
        None
    }

    fn query_vector(&self) -> Result<QueryVector> {
        Ok(None)
    }

    fn rerank(&self, hits: &[SearchHit]) -> Vec<f32> {
        let before = |hit: &SearchHit| {
            hits.iter().filter(|other| other.row.path.as_str() < hit.row.path.as_str()).count()
        };
        hits.iter().map(|hit| before(hit) as f32).collect()
    }
}

#[test]
fn superseded_notes_are_ordered_again_after_the_reranker() {
    let vault = vault();
    let index = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), Options::default()).unwrap();
    index.sync(SyncScope::All, silent()).unwrap();
    let snapshot = index.snapshot().unwrap();
    let query = Query::plain("boat");
    let now = Some(Timestamp::parse(NOW).unwrap());
    let request = Request {
        query: Some(&query),
        mode: Mode::Bm25,
        limit: 10,
        now,
        is_traced: true,
        ..Request::default()
    };
    let mut ranking = rank(&index, &snapshot, &request, &LastPathFirst).unwrap();
    let hits = ranking.hits(&index.catalog(), 10).unwrap();
    let mut trace = ranking.trace.take().unwrap();
    let best = hits.len();
    let hits =
        finish(&index, &snapshot, (&query, now, &LastPathFirst), hits, best, Some(&mut trace)).unwrap();
    let paths: Vec<&str> = hits.iter().map(|hit| hit.row.path.as_str()).collect();
    // The note that the query names stays first. The reranker put "old" above "new", and the validity below it again.
    assert_eq!(paths, ["boat.md", "spring.md", "new.md", "old.md", "2024-03-20.md"]);
    let old = hits.iter().find(|hit| hit.row.path.as_str() == "old.md").unwrap();
    let places = trace.places_of(old.row.id);
    let places: Vec<String> =
        places.iter().map(|at| format!("{} {}", at.stage, at.place.unwrap_or_default())).collect();
    insta::assert_snapshot!(places.join(", "), @"words 1, names 2, validity 3, validity 4");
    assert!(hits.is_sorted_by(|one, other| one.score >= other.score));
}
