//! Tests search by words: phrases, exclusions, filters, scripts, snippets.

use std::sync::Arc;

use insta::assert_snapshot;
use sidenote::base::clock::Timestamp;
use sidenote::base::error::{Error, Result};
use sidenote::catalog::Filter;
use sidenote::index::indexed_document::ParsedNote;
use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::markdown::path::NotePath;
use sidenote::search::pipeline;
use sidenote::search::query::Query;
use sidenote::search::reader::{IndexOnly, SearchReader};
use sidenote::search::{Mode, QueryVector, Request};
use sidenote::store::SearchRequest;
use sidenote::vault::Vault;

use crate::support::{TestVault, found, paths};

/// Checks which notes a query finds, in any order.
#[track_caller]
fn check_finds(files: &[(&str, &str)], query: &str, expected: &[&str]) {
    let vault = TestVault::new(files);
    let mut got = paths(&vault.store(), query);
    got.sort();
    assert_eq!(got, expected, "{query}");
}

#[test]
fn a_word_with_a_one_letter_stem_is_found() {
    let files =
        [("a.md", "The AED hangs beside the door."), ("b.md", "# AED"), ("soap.md", "An ad for soap.")];
    check_finds(&files, "aed", &["a.md", "b.md"]);
}

#[test]
fn every_inflection_is_found_in_every_field() {
    let files = [
        ("a.md", "---\ntitle: Cities\n---\nplain"),
        ("b.md", "## A city\nplain"),
        ("c.md", "citied"),
        ("d.md", "---\nplace: city\n---\nplain"),
        ("city/e.md", "plain"),
        ("f.md", "cite"),
    ];
    check_finds(&files, "cities", &["a.md", "b.md", "c.md", "city/e.md", "d.md"]);
    check_finds(&files, "citing", &["f.md"]);
}

#[test]
fn a_single_character_is_found_in_the_names_of_folders() {
    check_finds(&[("水門/a.md", "x"), ("b.md", "水 here"), ("c.md", "x")], "水", &["b.md", "水門/a.md"]);
}

/// Checks which notes a request finds among a few with properties.
#[track_caller]
fn check_filter(request: SearchRequest, expected: &[&str]) {
    let vault = TestVault::new(&[
        (
            "Projects/Boat.md",
            "---\ntype: project\ntags: [boat/hull]\ncreated: 2026-01-05\n---\nvarnish the hull",
        ),
        (
            "Projects/Old/Boat.md",
            "---\ncategory: Archive\ncreated: 2020-01-05\nupdated: 2021-01-01\n---\nvarnish #boat",
        ),
        ("Recipes/Glaze.md", "---\ntype: recipe\n---\na varnish of sugar"),
    ]);
    let mut got = found(&vault.store(), &SearchRequest { query: "varnish".to_owned(), ..request });
    got.sort();
    assert_eq!(got, expected);
}

#[test]
fn words_rank_and_need_not_all_occur() {
    let files = [("a.md", "water and level"), ("b.md", "water"), ("c.md", "stone")];
    let vault = TestVault::new(&files);
    assert_eq!(paths(&vault.store(), "water level"), ["a.md", "b.md"]);
}

/// Checks which of two notes with the same words is first: `short.md` or `longer.md`, in a vault with `others` besides.
#[track_caller]
fn check_first_of_two(others: &str, expected: &[&str]) {
    let vault = TestVault::new(&[
        ("short.md", "The ladder stands in the shed."),
        ("longer.md", &format!("The ladder stands in the shed. {}", "It is made of ash wood. ".repeat(8))),
    ]);
    for at in 0..20 {
        vault.write(&format!("other {at}.md"), format!("Note {at}. {others}"));
    }
    let request = SearchRequest { query: "ladder shed".to_owned(), ..SearchRequest::default() };
    let results = vault.store().searches().search(&request).unwrap().results;
    assert_eq!(results.iter().map(|result| result.path.as_str()).collect::<Vec<_>>(), expected);
}

/// Where no note is longer than a passage, a longer one is no less about its words; among long ones, a short one is more.
#[test]
fn length_counts_where_some_notes_are_longer_than_a_passage() {
    check_first_of_two("We sailed on.", &["longer.md", "short.md"]);
    check_first_of_two(&"The wind was fair and we sailed on. ".repeat(40), &["short.md", "longer.md"]);
}

#[test]
fn match_all_requires_every_word() {
    let vault = TestVault::new(&[("a.md", "water and level"), ("b.md", "water"), ("c.md", "level")]);
    let request = SearchRequest { query: "water level".to_owned(), all: true, ..SearchRequest::default() };
    assert_eq!(found(&vault.store(), &request), ["a.md"]);
}

#[test]
fn phrases_must_occur_in_order() {
    let files = [("a.md", "the water level rose"), ("b.md", "level water"), ("c.md", "water\nlevel")];
    check_finds(&files, "\"water level\"", &["a.md"]);
}

#[test]
fn minus_excludes_words_and_phrases() {
    let files = [("a.md", "boat and hull"), ("b.md", "boat and mast"), ("c.md", "boat of old oak")];
    check_finds(&files, "boat -hull", &["b.md", "c.md"]);
    check_finds(&files, "boat -\"old oak\" -mast", &["a.md"]);
}

#[test]
fn inflections_and_accents_match() {
    check_finds(&[("a.md", "Two cafés were closing")], "cafe closed", &["a.md"]);
    check_finds(&[("a.md", "cafe")], "CAFÉ", &["a.md"]);
    check_finds(&[("a.md", "Straße am Fluß")], "strasse", &["a.md"]);
}

#[test]
fn unspaced_scripts_are_found_without_spaces() {
    let files =
        [("树.md", "线段树是一种二叉搜索树。"), ("b.md", "动态规划"), ("か.md", "出汁の取り方を説明する")];
    check_finds(&files, "搜索树", &["树.md"]);
    check_finds(&files, "树", &["树.md"]);
    check_finds(&files, "取り方", &["か.md"]);
    check_finds(&files, "\"二叉搜索\"", &["树.md"]);
}

#[test]
fn identifiers_are_found_whole_and_by_part() {
    let files =
        [("a.md", "calls read_config_file"), ("b.md", "calls readConfig"), ("c.md", "set tokio.runtime")];
    check_finds(&files, "config", &["a.md", "b.md"]);
    check_finds(&files, "read_config_file", &["a.md", "b.md"]);
    check_finds(&files, "tokio.runtime", &["c.md"]);
}

#[test]
fn names_of_programming_languages_keep_their_signs() {
    let files = [
        ("cpp.md", "written in C++ mostly"),
        ("c.md", "written in C mostly"),
        ("cs.md", "written in C# mostly"),
    ];
    let vault = TestVault::new(&files);
    let store = vault.store();
    assert_eq!(paths(&store, "C++").first().unwrap(), "cpp.md");
    assert_eq!(paths(&store, "C#").first().unwrap(), "cs.md");
    assert_eq!(paths(&store, "C++").len(), 3, "the bare letter is a part, and ranks behind");
}

#[test]
fn titles_names_headings_tags_and_properties_are_searched() {
    let files = [
        ("Gauge.md", "x"),
        ("b.md", "---\ntitle: Gauge of the river\n---\nx"),
        ("c.md", "---\naliases: [Gauge]\n---\nx"),
        ("d.md", "## Gauge\nx"),
        ("e.md", "x #gauge"),
        ("f.md", "---\ninstrument: gauge\n---\nx"),
        ("g.md", "```\ngauge\n```"),
    ];
    check_finds(&files, "gauge", &["Gauge.md", "b.md", "c.md", "d.md", "e.md", "f.md", "g.md"]);
}

#[test]
fn comments_are_not_searched() {
    check_finds(&[("a.md", "seen %%hidden words%% seen")], "hidden", &[]);
}

#[test]
fn excluded_notes_are_hidden() {
    let files = [
        (".obsidian/app.json", "{\"userIgnoreFilters\": [\"Archive/\"]}"),
        ("Archive/a.md", "varnish"),
        ("b.md", "varnish"),
    ];
    check_finds(&files, "varnish", &["b.md"]);
}

#[test]
fn canvases_are_found_by_their_cards() {
    let canvas = r#"{"nodes":[{"id":"1","type":"text","text":"mooring \"lines\"\nand knots","x":0,"y":0,"width":1,"height":1}],"edges":[]}"#;
    check_finds(&[("Board.canvas", canvas)], "knots", &["Board.canvas"]);
}

#[test]
fn filters_narrow_a_search() {
    check_filter(SearchRequest::default(), &["Projects/Boat.md", "Projects/Old/Boat.md", "Recipes/Glaze.md"]);
    let typed = Filter { note_type: Some("Project".to_owned()), ..Filter::default() };
    check_filter(SearchRequest { filter: typed, ..SearchRequest::default() }, &["Projects/Boat.md"]);
    let tagged = Filter { tags: vec!["#boat".to_owned()], ..Filter::default() };
    check_filter(
        SearchRequest { filter: tagged, ..SearchRequest::default() },
        &["Projects/Boat.md", "Projects/Old/Boat.md"],
    );
    let category = Filter { category: Some("archive".to_owned()), ..Filter::default() };
    check_filter(SearchRequest { filter: category, ..SearchRequest::default() }, &["Projects/Old/Boat.md"]);
    let early = Filter { created_before: Timestamp::parse("2021-01-01"), ..Filter::default() };
    check_filter(SearchRequest { filter: early, ..SearchRequest::default() }, &["Projects/Old/Boat.md"]);
    let path = Some("projects/*".to_owned());
    check_filter(SearchRequest { path, ..SearchRequest::default() }, &["Projects/Boat.md"]);
    let path = Some("Projects".to_owned());
    check_filter(
        SearchRequest { path, ..SearchRequest::default() },
        &["Projects/Boat.md", "Projects/Old/Boat.md"],
    );
}

#[test]
fn hybrid_without_a_model_answers_by_words_and_says_so() {
    let vault = TestVault::new(&[("a.md", "water")]);
    let reply = vault
        .store()
        .searches()
        .search(&SearchRequest { query: "water".to_owned(), ..SearchRequest::default() })
        .unwrap();
    assert_eq!((reply.mode, reply.embedder.as_str(), reply.results.len()), (Mode::Bm25, "none", 1));
    assert_snapshot!(reply.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), @"no embedding model is set, so this searched by words only; `sidenote model use e5` sets one");
    let query = "water".to_owned();
    let by_meaning = SearchRequest { query, mode: Some(Mode::Vector), ..SearchRequest::default() };
    let reply = vault.store().searches().search(&by_meaning).unwrap();
    assert_eq!(reply.results.len(), 0);
    assert_snapshot!(reply.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), @"no embedding model is set, so a search by meaning finds nothing; `sidenote model use e5` sets one");
}

#[test]
fn snippets_quote_the_source_around_the_match() {
    let body =
        "Intro line.\n\n# River\n\nFirst words.\n\n## Gauges\n\nThe **water level** is read at noon.\n";
    let vault = TestVault::new(&[("a.md", body)]);
    let reply = vault
        .store()
        .searches()
        .search(&SearchRequest { query: "level".to_owned(), ..SearchRequest::default() })
        .unwrap();
    let result = reply.results.first().unwrap();
    assert_eq!(result.lines, (1, 9));
    let marked: Vec<&str> = result.marks.iter().map(|&(start, end)| &result.snippet[start..end]).collect();
    assert_eq!(marked, ["level"]);
    assert!(body.contains(&result.snippet));
}

/// Checks the snippet of the only note besides Osei.md, as the source and without markup.
#[track_caller]
fn check_snippet(body: &str, query: &str, source: &str, plain: &str) {
    let vault = TestVault::new(&[("A.md", body), ("Osei.md", "# Osei\n")]);
    let request = SearchRequest { query: query.to_owned(), plain_snippets: true, ..SearchRequest::default() };
    let reply = vault.store().searches().search(&request).unwrap();
    let result = reply.results.iter().find(|result| result.path == "A.md").unwrap();
    assert_eq!(result.snippet, source);
    let found = result.plain.as_ref().unwrap();
    assert_eq!(found.text, plain);
    assert_eq!(found.marks.is_empty(), result.marks.is_empty());
    for &(start, end) in &found.marks {
        assert!(query.contains(&found.text[start..end].to_lowercase()), "{:?}", &found.text[start..end]);
    }
}

#[test]
fn snippets_keep_the_markup_of_their_first_and_last_words() {
    check_snippet(
        "[[Osei]] wants the report\n",
        "report",
        "[[Osei]] wants the report",
        "Osei wants the report",
    );
    check_snippet(
        "the report is for [[Osei]]\n",
        "report",
        "the report is for [[Osei]]",
        "the report is for Osei",
    );
    check_snippet(
        "---\ntags: [x]\n---\n**Report** for [the man](Osei.md)\n",
        "report",
        "**Report** for [the man](Osei.md)",
        "Report for the man",
    );
    check_snippet(
        "- [ ] [[Osei|He]] wants a `report`\n",
        "report",
        "[[Osei|He]] wants a `report`",
        "He wants a report",
    );
    check_snippet(
        "# The report\n\n> %% hidden %% see *it*\n",
        "report",
        "The report\n\n>  see *it*",
        "The report\nsee it",
    );
}

#[test]
fn a_snippet_amid_a_line_begins_at_a_sentence_or_a_word() {
    let sentence =
        "The river rose in the night, and nobody saw it until the morning came and all the boats were gone. ";
    let body = format!("{}At noon the heron left.", sentence.repeat(3));
    check_snippet(&body, "heron", "… At noon the heron left.", "… At noon the heron left.");
    let body = format!("{}**Heron** left.", sentence.repeat(3));
    check_snippet(&body, "heron", "… **Heron** left.", "… Heron left.");
    // The sentence begins too far before the word.
    let body = format!("{}heron", "the river and ".repeat(20));
    let shown = format!("… river and {}heron", "the river and ".repeat(4));
    check_snippet(&body, "heron", &shown, &shown);
    let body = format!("{}下午王建国的车坏了，师傅拿出工具箱。", "太阳不大，风从背后吹过来。".repeat(8));
    let shown = "… 太阳不大，风从背后吹过来。下午王建国的车坏了，师傅拿出工具箱。";
    check_snippet(&body, "工具箱", shown, shown);
    let body = format!("{}师傅从后备箱里拿出工具箱", "太阳不大，风从背后吹过来，".repeat(8));
    let shown = "… 风从背后吹过来，太阳不大，风从背后吹过来，师傅从后备箱里拿出工具箱";
    check_snippet(&body, "工具箱", shown, shown);
    // What begins with a line begins with its markers.
    let body = format!("{}\n\n- [ ] feed the heron", sentence.repeat(3).trim_end());
    check_snippet(&body, "heron", "- [ ] feed the heron", "feed the heron");
}

#[test]
fn punctuation_in_a_query_is_ignored() {
    let vault = TestVault::new(&[("a.md", "water")]);
    let store = vault.store();
    let cases: [(&str, &[&str]); 8] = [
        ("", &[]),
        ("-", &[]),
        ("--", &[]),
        ("\u{0}", &[]),
        ("…", &[]),
        ("# ^", &[]),
        ("water'", &["a.md"]),
        ("¿water?", &["a.md"]),
    ];
    for (query, expected) in cases {
        assert_eq!(paths(&store, query), expected, "{query:?}");
    }
}

/// Parsed notes are cached for excerpts, and looked up by the bytes that a file has now.
#[test]
fn the_snippet_of_a_note_that_changed_is_what_its_file_has_now() {
    let vault = TestVault::new(&[("a.md", "A heron in the north."), ("b.md", "An otter.")]);
    let store = vault.store();
    let snippet = |word: &str| {
        let request = SearchRequest { query: word.to_owned(), ..SearchRequest::default() };
        store.searches().search(&request).unwrap().results[0].snippet.clone()
    };
    assert_eq!(
        (snippet("heron"), snippet("heron")),
        ("A heron in the north.".into(), "A heron in the north.".into())
    );
    // As long as before, with other words, and with the words of another note.
    for text in ["A heron in the south.", "A heron in the marsh.", "An otter.", "A heron in the north."] {
        vault.write("a.md", text);
        let word = if text.contains("heron") { "heron" } else { "otter" };
        assert_eq!(snippet(word), text);
    }
}

/// A reader whose model does not answer.
struct Failing;

impl SearchReader for Failing {
    fn note(&self, _: &NotePath) -> Option<Arc<ParsedNote>> {
        None
    }

    fn query_vector(&self) -> Result<QueryVector> {
        Err(Error::invalid("the model does not answer"))
    }
}

/// The thread that looks up words and relations waits for the vector of the query.
#[test]
fn a_query_without_a_vector_fails_at_once() {
    let vault = TestVault::new(&[("Jane.md", "Works at [[Acme]]."), ("Acme.md", "A company.")]);
    let index = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), Options::default()).unwrap();
    index.sync(SyncScope::All, silent()).unwrap();
    let query = Query::plain("who works at Acme");
    let request = Request { query: Some(&query), mode: Mode::Hybrid, limit: 5, ..Request::default() };
    let error = pipeline::run(&index, &index.snapshot().unwrap(), &request, &Failing).unwrap_err();
    assert_eq!(error.message(), "the model does not answer");
    let found = pipeline::run(&index, &index.snapshot().unwrap(), &request, &IndexOnly).unwrap();
    assert_eq!(found.len(), 2);
}
