//! Tests conditions: the conformance cases of Obsidian's search language, each rule, our own filters, syntax errors,
//! and a naive matcher over generated vaults.

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::Value;
use sidenote::base::wording::Wording;
use sidenote::search::query::Query;
use sidenote::search::text_match::{Haystack, QueryTerm, QueryTermKind};
use sidenote::store::{SearchReply, SearchRequest, Store};

use crate::support::{TestVault, found};

/// Lists what a query finds, with words alone as a condition too, ordered by path.
fn set(store: &Store, query: &str) -> Vec<String> {
    let request =
        SearchRequest { query: query.to_owned(), all: true, limit: Some(1000), ..SearchRequest::default() };
    let mut paths = found(store, &request);
    paths.sort();
    paths
}

/// Checks which of these files a query finds.
#[track_caller]
fn check(files: &[(&str, &str)], query: &str, expected: &[&str]) {
    let vault = TestVault::new(files);
    assert_eq!(set(&vault.store(), query), expected, "{query}");
}

#[test]
fn conformance_cases() {
    for case in &crate::support::cases_of("search", 15) {
        let files: Vec<(&str, &str)> = case["files"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str().unwrap()))
            .collect();
        let mut expected: Vec<&str> =
            case["expect"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        expected.sort_unstable();
        check(&files, case["query"].as_str().unwrap(), &expected);
    }
}

#[test]
fn words_are_parts_of_text_or_name_and_each_must_occur() {
    let files = [("Meeting.md", "about boats"), ("b.md", "meetings\nwork"), ("c.md", "meet")];
    check(&files, "meeting", &["Meeting.md", "b.md"]);
    check(&files, "MEETING boat", &["Meeting.md"]);
    check(&files, "eeting work", &["b.md"]);
    check(&files, "md", &[]);
}

#[test]
fn properties_with_odd_names_are_found() {
    let text = "---\n\"\": x\n\"tail\\x11\": y\n\"x\\x1f\\x1f\\x1f\\x1f\\x1f\\x1f\\x1f\\x1f\\x1f\": z\nother: w\n---\n";
    let files = [("a.md", text), ("b.md", "other")];
    check(&files, "[other]", &["a.md"]);
    check(&files, "[other:w]", &["a.md"]);
    check(&files, "[tail\u{11}]", &["a.md"]);
}

#[test]
fn letters_adjacent_to_an_address_are_one_word_with_it() {
    let files = [("a.md", "zuvor étaéhttp://beta.org/kap danach"), ("b.md", "http://beta.org/kap")];
    check(&files, "content:étaéhttp", &["a.md"]);
    check(&files, "/étaéhttp/", &["a.md"]);
    check(&files, "content:beta.org", &["a.md", "b.md"]);
}

#[test]
fn text_excluded_from_ranking_matches_conditions() {
    let files = [
        ("a.md", "---\nstatus: inbox\n---\nsee [the site](https://example.org/deeplink) %%aside%%"),
        ("b.md", "<div data-kind=\"widget\">x</div>\n\n[^foot]: text\n\n> [!danger] Title"),
        ("c.md", "```rustlang extra\ncode\n```\n"),
    ];
    check(&files, "inbox", &["a.md"]);
    check(&files, "deeplink", &["a.md"]);
    check(&files, "aside", &["a.md"]);
    check(&files, "widget danger foot", &["b.md"]);
    check(&files, "extra", &["c.md"]);
}

#[test]
fn parts_of_long_identifiers_and_words_are_found() {
    let long = "x".repeat(300);
    let many = "aBcDeFgHiJkLmNoPqRsTuVwXyZ";
    let files = [
        ("a.md", "getWindowPlacement"),
        ("b.md", &*format!("{long}needle{long}")),
        ("c.md", many),
        ("d.md", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
    ];
    check(&files, "dowplace", &["a.md"]);
    check(&files, "xxneedlexx", &["b.md"]);
    check(&files, "hijklm", &["c.md"]);
    check(&files, "4f89 5e82c", &["d.md"]);
}

#[test]
fn phrases_are_whole_words_in_text_and_any_part_of_a_name() {
    let files = [
        ("a.md", "the old plan, again"),
        ("b.md", "old planning"),
        ("old plans.md", "x"),
        ("d.md", "old\nplan"),
    ];
    check(&files, "\"old plan\"", &["a.md", "old plans.md"]);
    check(&[("a.md", "she said \"no\" twice")], "\"said \\\"no\\\"\"", &["a.md"]);
    check(&[("树.md", "线段树是一种树")], "\"段树\"", &["树.md"]);
}

#[test]
fn phrases_beside_markup_and_signs_within_words_are_found() {
    let files = [
        ("a.md", "**W**orld plan, x[link](u)ed words and AT&amp;T lines"),
        ("b.md", "co\u{ad}operate now"),
        ("c.md", "the snake_caseName ends"),
        ("d.md", "version 3.14 is here"),
    ];
    check(&files, "\"orld plan\"", &["a.md"]);
    check(&files, "\"ed words\"", &["a.md"]);
    check(&files, "\"amp;T lines\"", &["a.md"]);
    check(&files, "\"operate now\"", &["b.md"]);
    check(&files, "\"snake_casename ends\"", &["c.md"]);
    check(&files, "\"casename ends\"", &[]);
    check(&files, "\"14 is\"", &["d.md"]);
    let files = [
        ("a.md", "x JavaScr\u{ad}ipt is"),
        ("b.md", "தமிழ்getValue now"),
        ("c.md", "İstanbul is"),
        ("d.md", "क**ा** end"),
    ];
    check(&files, "\"x JavaScr\"", &["a.md"]);
    check(&files, "\"getValue now\"", &["b.md"]);
    // The dot that lower case leaves of İ ends no word.
    check(&files, "\"stanbul is\"", &[]);
    check(&files, "\"İ\"", &[]);
    check(&files, "\"İstanbul is\"", &["c.md"]);
    check(&files, "\"i\u{307}stanbul\"", &["c.md"]);
    check(&files, "\"ा** end\"", &["d.md"]);
}

#[test]
fn or_binds_weaker_than_and() {
    let files = [("ab.md", "cat dog"), ("c.md", "bird"), ("a.md", "cat")];
    check(&files, "cat dog OR bird", &["ab.md", "c.md"]);
    check(&files, "cat (dog OR bird)", &["ab.md"]);
    check(&files, "-(cat dog)", &["a.md", "c.md"]);
    check(&files, "-cat -bird", &[]);
}

#[test]
fn regular_expressions_are_javascripts() {
    let files = [
        ("a.md", "due 2026-11-21\r\nend\r\n"),
        ("b.md", "price: $5 [x]\u{1F600}"),
        ("c.md", "caf\u{e9} aab"),
    ];
    check(&files, r"/\d{4}-\d\d-\d\d/", &["a.md"]);
    check(&files, r"/^end$/", &["a.md"]);
    check(&files, r"/\$\d \[x]/", &["b.md"]);
    check(&files, r"/\u{1F600}/", &["b.md"]);
    check(&files, r"/\ud83d\ude00/", &["b.md"]);
    check(&files, r"/\bcaf\b/", &["c.md"]);
    check(&files, r"/(?<=a+)b/", &["c.md"]);
    check(&files, r"/(a)\1b/", &["c.md"]);
    check(&files, r"/[^]END/", &["a.md"]);
    check(&files, r"match-case:/END/", &[]);
    check(&files, "/a\\/b/", &[]);
    check(&files, "/x{,2}/", &[]);
    check(&files, "-/[a-d]/", &[]);
}

/// Joins the notes of a reply in their form for a person.
fn said(reply: &SearchReply) -> String {
    reply.notes.iter().map(Wording::for_person).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_catastrophic_pattern_is_stopped_and_reported() {
    let vault = TestVault::new(&[("a.md", &"a".repeat(60)), ("b.md", "aab")]);
    let request = SearchRequest {
        query: r"/^(a|aa)+\1c$|aab/".to_owned(),
        limit: Some(10),
        ..SearchRequest::default()
    };
    let reply = vault.store().searches().search(&request).unwrap();
    assert!(reply.results.iter().any(|result| result.path == "b.md"));
    assert_snapshot!(said(&reply), @r#"a regular expression takes too many steps in 1 file, such as a.md"#);
}

#[test]
fn a_catastrophic_pattern_ends_the_search_after_the_same_files() {
    let files: Vec<(String, String)> = (0..200).map(|at| (format!("{at:03}.md"), "a".repeat(60))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let vault = TestVault::new(&files);
    let request =
        SearchRequest { query: r"/^(a|aa)+\1c$/".to_owned(), limit: Some(10), ..SearchRequest::default() };
    for _ in 0..2 {
        let reply = vault.store().searches().search(&request).unwrap();
        assert_eq!(reply.results.len(), 0);
        assert_eq!(
            said(&reply),
            "a regular expression takes too many steps in 112 files, such as 000.md; the remaining files were not searched"
        );
    }
}

#[test]
fn the_step_limit_of_a_pattern_grows_with_the_text() {
    let long = format!("{}\nthe heron, then the heron\n", "reeds and reeds and water\n".repeat(20_000));
    let vault = TestVault::new(&[("long.md", &long), ("short.md", "a heron")]);
    let request = SearchRequest { query: r"/(\bheron\b).*\1/".to_owned(), ..SearchRequest::default() };
    let reply = vault.store().searches().search(&request).unwrap();
    let found: Vec<&str> = reply.results.iter().map(|result| result.path.as_str()).collect();
    assert_eq!((found, said(&reply)), (vec!["long.md"], String::new()));
}

#[test]
fn file_and_path_operators_match_every_kind_of_file() {
    let files = [
        ("Notes/Plan.md", "x"),
        ("Notes/plan.png", ""),
        ("Other/a.md", "plan"),
        ("Views/all.base", "views:\n  - plan"),
    ];
    check(&files, "file:plan", &["Notes/Plan.md", "Notes/plan.png"]);
    check(&files, "file:.png", &["Notes/plan.png"]);
    check(&files, "path:notes/", &["Notes/Plan.md", "Notes/plan.png"]);
    check(&files, "path:notes -file:png", &["Notes/Plan.md"]);
    check(&files, "plan", &["Notes/Plan.md", "Other/a.md", "Views/all.base"]);
    check(&files, "-plan", &[]);
    check(&files, "content:plan", &["Other/a.md", "Views/all.base"]);
    check(&files, "file:(plan OR all)", &["Notes/Plan.md", "Notes/plan.png", "Views/all.base"]);
}

#[test]
fn the_file_operator_matches_the_name_and_path_the_whole_path() {
    let files = [
        ("plan/İlk Grüße.md", "x"),
        ("plan/a plan.md", "x"),
        ("plan/z.md", "x"),
        ("m.md", "x"),
        ("d/m.canvas", r#"{"nodes":[]}"#),
    ];
    check(&files, "file:plan", &["plan/a plan.md"]);
    check(&files, "path:plan", &["plan/a plan.md", "plan/z.md", "plan/İlk Grüße.md"]);
    check(&files, "path:PLAN/Z", &["plan/z.md"]);
    check(&files, "file:GRÜSSE OR file:grüße.m", &["plan/İlk Grüße.md"]);
    check(&files, "file:\"k gr\"", &["plan/İlk Grüße.md"]);
    check(&files, "file:m.c", &["d/m.canvas"]);
    check(&files, "match-case:file:GRÜ OR match-case:file:Grü", &["plan/İlk Grüße.md"]);
    // The extension is no part of the name that words look into.
    check(&files, "m", &["d/m.canvas", "m.md"]);
    check(&files, "z.m", &[]);
}

#[test]
fn the_section_operator_uses_the_sections_of_the_file() {
    let vault = TestVault::new(&[("a.md", "# One\ncat\n# Two\ndog\n"), ("b.md", "# Cat and dog\n")]);
    let store = vault.store();
    let request =
        SearchRequest { query: "section:(cat dog)".to_owned(), no_sync: true, ..SearchRequest::default() };
    store.index().sync(sidenote::index::silent()).unwrap();
    assert_eq!(found(&store, &request), ["b.md"]);
    vault.write("a.md", "cat and dog: the headings are gone\n");
    assert_eq!(found(&store, &request).len(), 2);
}

#[test]
fn a_tag_matches_whole_levels_in_text_and_properties() {
    let files = [
        ("a.md", "#Project/Boat"),
        ("b.md", "---\ntags: [project]\n---\n"),
        ("c.md", "#projects `#project`"),
    ];
    check(&files, "tag:#project", &["a.md", "b.md"]);
    check(&files, "tag:project/boat", &["a.md"]);
    check(&files, "-tag:#project", &["c.md"]);
    check(&files, "tag:/^#proj.*s$/", &["c.md"]);
    check(&files, "section:(tag:#project)", &["a.md"]);
}

#[test]
fn a_scope_operator_needs_all_words_in_one_part() {
    let files = [
        ("lines.md", "cat dog\nbird"),
        ("blocks.md", "cat\ndog\n\n- bird\n  - cat\n- dog\n\n> cat\n>\n> bird"),
        ("sections.md", "cat\n\n# One\ndog\n## Two\nbird\n\ncat"),
    ];
    check(&files, "line:(cat dog)", &["lines.md"]);
    check(&files, "-line:(cat dog)", &["blocks.md", "sections.md"]);
    check(&files, "block:(cat dog)", &["blocks.md", "lines.md"]);
    check(&files, "block:(bird cat)", &["blocks.md", "lines.md"]);
    check(&files, "block:(bird -cat)", &["blocks.md", "sections.md"]);
    check(&files, "section:(cat -dog)", &["sections.md"]);
    check(&files, "section:(bird cat)", &["blocks.md", "lines.md", "sections.md"]);
    check(&files, "section:(dog cat)", &["blocks.md", "lines.md"]);
    check(&files, "section:(two line:(bird))", &["sections.md"]);
}

#[test]
fn tasks_match_by_status_and_their_own_text() {
    let files =
        [("open.md", "- [ ] ship it\n  - [x] pack"), ("done.md", "- [x] ship it"), ("none.md", "- ship it")];
    check(&files, "task:ship", &["done.md", "open.md"]);
    check(&files, "task-todo:ship", &["open.md"]);
    check(&files, "task-done:ship", &["done.md"]);
    check(&files, "task-done:\"\"", &["done.md", "open.md"]);
    check(&files, "task:x", &[]);
    check(&files, "task-todo:pack", &[]);
}

#[test]
fn property_values_match_after_yaml_decoding() {
    let long = format!("---\nk: \"caf\\xE9 long\"\npad: {}\n---\n", "x ".repeat(4_000));
    let files = [
        ("escaped.md", "---\nk: \"caf\\xE9\"\n---\n"),
        ("list.md", "---\nk: [plain, \"caf\\xE9\"]\n---\n"),
        ("nested.md", "---\nk: [[\"caf\\xE9\"]]\n---\n"),
        ("number.md", "---\nk: 0x10\n---\n"),
        ("long.md", long.as_str()),
    ];
    check(&files, "[k:café]", &["escaped.md", "list.md", "long.md", "nested.md"]);
    check(&files, "[k:16]", &["number.md"]);
    check(&files, "[k:plain]", &["list.md"]);
    check(&files, "0x10", &["number.md"]);
}

#[test]
fn properties_by_name_and_value() {
    let files = [
        ("a.md", "---\nStatus: In Progress\npages: 120\ndue: 2026-11-30\n---\n"),
        ("b.md", "---\nstatus: [draft, \"re\\u0076iew\"]\npages: 9\n---\n"),
        ("c.md", "---\nstatus:\nempty: \"\"\ndone: true\n---\n"),
        ("d.md", "status"),
    ];
    check(&files, "[status]", &["a.md", "b.md", "c.md"]);
    check(&files, "[status:progress]", &["a.md"]);
    check(&files, "[status:review]", &["b.md"]);
    check(&files, "[status:\"draft\"]", &["b.md"]);
    check(&files, "[status:\"progress\"]", &[]);
    check(&files, "[status:null]", &["c.md"]);
    check(&files, "[empty:null]", &[]);
    check(&files, "[pages:>100]", &["a.md"]);
    check(&files, "[pages:<100]", &["b.md"]);
    check(&files, "[due:<2026-12-01]", &["a.md"]);
    check(&files, "[status:draft OR /^in/]", &["a.md", "b.md"]);
    check(&files, "[status:-draft]", &["a.md", "b.md", "c.md"]);
    check(&files, "-[status]", &["d.md"]);
    check(&files, "[(empty OR due)]", &["a.md", "c.md"]);
    check(&files, "[\"done\":true]", &["c.md"]);
    check(&files, "[/^pag/]", &["a.md", "b.md"]);
}

#[test]
fn canvases_are_searched_by_the_text_of_their_cards() {
    let canvas = r##"{"nodes":[{"id":"1","type":"text","text":"# Knots\nbowline \"loop\" #rope","x":0,"y":0,"width":1,"height":1}],"edges":[]}"##;
    let files = [("Board.canvas", canvas), ("n.md", "x")];
    check(&files, "bowline", &["Board.canvas"]);
    check(&files, "\"\\\"loop\\\"\"", &["Board.canvas"]);
    check(&files, "nodes", &[]);
    check(&files, "tag:#rope", &["Board.canvas"]);
    check(&files, "line:(knots)", &["Board.canvas"]);
}

#[test]
fn each_card_of_a_canvas_is_a_text_of_its_own() {
    let card = |id: u8, text: &str| serde_json::json!({"id": id.to_string(), "type": "text", "text": text, "x": 0, "y": 0, "width": 1, "height": 1});
    let canvas = serde_json::json!({"nodes": [card(1, "# H\none\n```\nopen"), card(2, "two\n- [ ] ship")], "edges": []});
    let files = [("a.canvas", &*canvas.to_string())];
    check(&files, "section:(one two)", &[]);
    check(&files, "section:(one open)", &["a.canvas"]);
    check(&files, "task:ship", &["a.canvas"]);
    check(&files, "one two", &["a.canvas"]);
}

#[test]
fn composed_and_decomposed_letters_match() {
    let files = [
        ("a.md", "caf\u{e9} \u{ac01}"),
        ("b.md", "cafe\u{301} \u{1100}\u{1161}\u{11a8}"),
        ("c.md", "\u{ff76}\u{ff9e}"),
    ];
    check(&files, "caf\u{e9}", &["a.md", "b.md"]);
    check(&files, "cafe\u{301}", &["a.md", "b.md"]);
    check(&files, "/cafe\u{301}/", &["a.md", "b.md"]);
    check(&files, "\u{1100}\u{1161}\u{11a8}", &["a.md", "b.md"]);
    check(&files, "\u{ff76}", &["c.md"]);
}

#[test]
fn text_after_a_nested_list_belongs_to_a_block() {
    let files = [("a.md", "- one\n  - two\n\n  three\n- four\n")];
    check(&files, "block:three", &["a.md"]);
    check(&files, "block:(one two)", &[]);
}

#[test]
fn a_pattern_has_one_step_limit_for_all_lines() {
    let lines = vec!["a".repeat(40); 2_000].join("\n");
    let vault = TestVault::new(&[("a.md", &lines)]);
    let query = r"line:/^(?:(a|aa)+)\1b(?!x)/".to_owned();
    let reply =
        vault.store().searches().search(&SearchRequest { query, ..SearchRequest::default() }).unwrap();
    assert_eq!(reply.notes.len(), 1, "it ends, and says so: {:?}", reply.notes);
}

#[test]
fn patterns_of_other_dialects_are_refused() {
    for pattern in ["/(?i)foo/", "/(?P<n>foo)/", "/(?>a+)b/", "/a++b/", "/a**/"] {
        assert!(Query::parse(pattern, false).is_err(), "{pattern}");
    }
    for pattern in ["/a+?b/", "/(?<n>a)\\k<n>/", "/(?<!x)a/", "/a{2}?/", "/\\d+\\/\\d*/"] {
        assert!(Query::parse(pattern, false).is_ok(), "{pattern}");
    }
}

#[test]
fn a_query_that_begins_with_a_minus_follows_two_dashes() {
    let vault = TestVault::new(&[("a.md", "foo"), ("b.md", "bar")]);
    let shown = crate::support::run(&vault, "2026-11-21", &["search", "--", "-foo"]);
    assert!(shown.contains("b.md") && !shown.contains("a.md"), "{shown}");
}

#[test]
fn filters_beyond_obsidians_language_match() {
    let files = [
        ("a.md", "---\ntype: fact\ncategory: Boats\ncreated: 2026-03-05\npinned: true\n---\n[[b]]"),
        ("b.md", "---\ntype: project\ncreated: 2025-01-01\nupdated: 2026-02-02\n---\n"),
        ("c.md", "---\ncreated: 2024-06-30\nupdated: 2024-06-30\n---\nalone"),
    ];
    check(&files, "type:fact", &["a.md"]);
    check(&files, "-type:fact", &["b.md", "c.md"]);
    check(&files, "category:boats", &["a.md"]);
    check(&files, "created:2026-03", &["a.md"]);
    check(&files, "created:>2024", &["a.md", "b.md"]);
    check(&files, "created:<2025-01-01", &["c.md"]);
    check(&files, "created:2024-06-30..2025-01-01", &["b.md", "c.md"]);
    check(&files, "updated:<=2026-02-02 -updated:2024", &["b.md"]);
    check(&files, "links-to:b", &["a.md"]);
    check(&files, "links-to:[[b]]", &["a.md"]);
    check(&files, "linked-from:a.md", &["b.md"]);
    check(&files, "is:orphan", &["c.md"]);
    check(&files, "is:pinned", &["a.md"]);
    check(&files, "tier:hot OR tier:warm OR tier:cold", &["a.md", "b.md", "c.md"]);
}

#[test]
fn the_filters_of_a_request_narrow_a_condition() {
    let vault = TestVault::new(&[("In/a.md", "cat #x"), ("Out/b.md", "cat #x"), ("In/cat.png", "")]);
    let request = SearchRequest {
        query: "\"cat\" OR file:cat".to_owned(),
        path: Some("In".to_owned()),
        ..SearchRequest::default()
    };
    let mut paths = found(&vault.store(), &request);
    paths.sort();
    assert_eq!(paths, ["In/a.md", "In/cat.png"]);
}

#[test]
fn text_that_looks_like_syntax_stays_text() {
    let files = [("a.md", "run main() at 10:30, see https://example.org and std::path -- Note: arr[0]")];
    for query in [
        "main()",
        "10:30",
        "https://example.org",
        "std::path",
        "Note: arr[0]",
        "--",
        "- x",
        "a -> b",
        "foo(x, y)",
        "- [ ] task",
    ] {
        let node = Query::parse(query, false).unwrap();
        assert!(node.condition.is_none(), "{query} is words");
    }
    check(&files, "main() 10:30 https://example.org std::path Note: arr[0] --", &["a.md"]);
    assert!(
        Query::parse("a (b c) d", false).unwrap().condition.is_none(),
        "parentheses around words change nothing"
    );
}

#[test]
fn results_are_ranked_by_words_and_then_sorted_by_name() {
    let files = [("b.md", "#t once anchor"), ("C.md", "#t"), ("a.md", "#t"), ("d.md", "#t anchor anchor")];
    let vault = TestVault::new(&files);
    let store = vault.store();
    let ordered =
        |query: &str| found(&store, &SearchRequest { query: query.to_owned(), ..SearchRequest::default() });
    assert_eq!(ordered("tag:t"), ["a.md", "b.md", "C.md", "d.md"]);
    assert_eq!(ordered("tag:t anchor"), ["d.md", "b.md"]);
    assert_eq!(ordered("tag:t (anchor OR -anchor)"), ["d.md", "b.md", "a.md", "C.md"]);
}

/// Shows the error of a query.
fn refused(query: &str) -> String {
    let error = Query::parse(query, false).unwrap_err();
    format!("{error}\n{}", error.hint().unwrap_or("no hint"))
}

#[test]
fn syntax_errors_are_marked_with_a_caret() {
    let queries = [
        "boats foo:bar",
        "\"old plan",
        "(cat OR dog",
        "cat) dog",
        "cat OR",
        "线段 tag: x",
        "[status:active",
        "[:x]",
        "/(a/",
        "x /(?<n/",
        "created:yesterdayish",
        "is:happy",
        "tier:lukewarm",
        "[pages:>many]",
        "()",
    ];
    assert_snapshot!(queries.map(refused).join("\n\n"), @r#"
    there is no operator foo:, at character 7 of the query:
      boats foo:bar
            ^^^^
    put it in quotes to search for it: "foo:…"; operators are file: path: content: match-case: ignore-case: tag: line: block: section: task: task-todo: task-done: type: tier: category: created: updated: links-to: linked-from: rel: is:

    a quote is not closed, at character 1 of the query:
      "old plan
      ^
    close it with ", or leave it out

    a ( is not closed, at character 1 of the query:
      (cat OR dog
      ^
    close it with ), or quote it to search for it: "("

    ')' has no opening bracket, at character 4 of the query:
      cat) dog
         ^
    open it, or quote it to search for it: ")"

    OR needs a term on both sides, at character 5 of the query:
      cat OR
          ^^
    write cat OR dog, or "OR" for the word

    tag: needs a term directly after it, at character 4 of the query:
      线段 tag: x
           ^^^^
    write tag:word, or quote it to search for it: "tag:"

    a [ is not closed, at character 1 of the query:
      [status:active
      ^
    write [status] or [status:active], or quote it to search for it: "["

    a property needs a name, at character 1 of the query:
      [:x]
      ^^
    write [status] or [status:active], or quote it to search for it: "["

    the regular expression cannot be used: Parsing error at position 2: Opening parenthesis without closing parenthesis, at character 1 of the query:
      /(a/
      ^^^^
    write it as in JavaScript, /\d{4}-\d{2}/, or quote it to search for the text

    the regular expression cannot be used: Parsing error at position 1: Could not parse group name, at character 3 of the query:
      x /(?<n/
        ^^^^^^
    write it as in JavaScript, /\d{4}-\d{2}/, or quote it to search for the text

    "yesterdayish" is not a date, at character 9 of the query:
      created:yesterdayish
              ^^^^^^^^^^^^
    write created:2026-11, created:>2026-11-21, created:2026-01..2026-03, created:today or created:>7d

    there is no filter is:happy, at character 4 of the query:
      is:happy
         ^^^^^
    write is:orphan or is:pinned

    there is no tier "lukewarm", at character 6 of the query:
      tier:lukewarm
           ^^^^^^^^
    tiers are HOT, WARM, COLD, ARCHIVE

    a comparison needs a number or a date, at character 8 of the query:
      [pages:>many]
             ^^^^^
    write [pages:>100], [due:<2026-11-21] or [due:<tomorrow]

    the parentheses are empty, at character 1 of the query:
      ()
      ^^
    write (cat OR dog)
    "#);
}

#[test]
fn depth_and_length_are_bounded() {
    assert!(Query::parse(&"(".repeat(50_000), false).is_err());
    assert!(Query::parse(&format!("{}a", "line:".repeat(50_000)), false).is_err());
    assert!(Query::parse(&format!("/{}/", "(".repeat(20_000)), false).is_err());
    let pasted = "word ".repeat(4_000);
    assert!(Query::parse(&pasted, false).unwrap().condition.is_none());
}

/// A note as the naive matcher knows it.
#[derive(Debug, Clone)]
struct Naive {
    path: String,
    text: String,
    status: Option<String>,
    pages: Option<u32>,
    tags: Vec<String>,
    /// Lines of each section.
    sections: Vec<Vec<String>>,
}

const WORDS: &[&str] = &[
    "cat",
    "Dog",
    "catalog",
    "hot dog",
    "fooBar",
    "snake_case",
    "线段树",
    "café",
    "a**b**c",
    "don't",
    "x-ray",
    "日本",
];
const TAGS: &[&str] = &["pet", "pet/cat", "work"];

fn a_note() -> impl Strategy<Value = Naive> {
    let line = prop::collection::vec(prop::sample::select(WORDS), 0..4).prop_map(|words| words.join(" "));
    let section = prop::collection::vec(
        (line, any::<bool>(), prop::option::weighted(0.3, prop::sample::select(TAGS))),
        1..4,
    );
    (
        prop::sample::select(&["note", "Cat list", "dogs", "x"][..]),
        prop::option::of(prop::sample::select(&["active", "In Progress", "done"][..])),
        prop::option::of(0..200u32),
        prop::collection::vec(section, 1..4),
    )
        .prop_map(|(name, status, pages, parts)| {
            let mut text = String::new();
            if status.is_some() || pages.is_some() {
                text.push_str("---\n");
                status.iter().for_each(|status| text.push_str(&format!("Status: {status}\n")));
                pages.iter().for_each(|pages| text.push_str(&format!("pages: {pages}\n")));
                text.push_str("---\n");
            }
            let (mut sections, mut tags) = (Vec::new(), Vec::new());
            for (at, part) in parts.into_iter().enumerate() {
                let mut lines = Vec::new();
                if at > 0 {
                    lines.push(format!("## Part {at}"));
                }
                for (words, is_task, tag) in part {
                    let mark = if is_task { "- [ ] " } else { "" };
                    let tag = tag.map(|tag| {
                        tags.push(tag.to_owned());
                        format!(" #{tag}")
                    });
                    lines.push(format!("{mark}w {words}{}", tag.unwrap_or_default()));
                    lines.push(String::new());
                }
                text.push_str(&lines.join("\n"));
                text.push('\n');
                sections.push(lines);
            }
            Naive {
                path: format!("{name}.md"),
                text,
                status: status.map(str::to_owned),
                pages,
                tags,
                sections,
            }
        })
}

/// A query, and what the naive matcher makes of it.
#[derive(Debug, Clone)]
enum Ask {
    Word(String),
    Phrase(String),
    Tag(String),
    File(String),
    Status(String),
    Pages(bool, u32),
    Line(Box<Ask>),
    Section(Box<Ask>),
    Task(Box<Ask>),
    Not(Box<Ask>),
    And(Vec<Ask>),
    Or(Vec<Ask>),
}

fn an_ask() -> impl Strategy<Value = Ask> {
    let word = prop::sample::select(
        &[
            "cat",
            "DOG",
            "og",
            "obar",
            "ake_ca",
            "段",
            "线段树",
            "fé",
            "b",
            "n't",
            "zebra",
            "part",
            "pages",
            "-ray",
        ][..],
    );
    let phrase =
        prop::sample::select(&["cat", "hot dog", "dog cat", "foobar", "线段", "snake_case", "x"][..]);
    let leaf = prop_oneof![
        3 => word.prop_filter("a minus negates", |word| !word.starts_with('-')).prop_map(|word| Ask::Word(word.to_owned())),
        2 => phrase.prop_map(|phrase| Ask::Phrase(phrase.to_owned())),
        1 => prop::sample::select(TAGS).prop_map(|tag| Ask::Tag(tag.to_owned())),
        1 => prop::sample::select(&["cat", ".md", "Dogs"][..]).prop_map(|name| Ask::File(name.to_owned())),
        1 => prop::sample::select(&["act", "progress", "done"][..]).prop_map(|value| Ask::Status(value.to_owned())),
        1 => (any::<bool>(), 0..200u32).prop_map(|(above, pages)| Ask::Pages(above, pages)),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            boxed().prop_map(Ask::Line),
            boxed().prop_map(Ask::Section),
            boxed().prop_map(Ask::Task),
            boxed().prop_map(Ask::Not),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Ask::And),
            prop::collection::vec(inner, 2..4).prop_map(Ask::Or),
        ]
    })
}

impl Ask {
    fn written(&self) -> String {
        let list = |asks: &[Self], joint: &str| {
            format!("({})", asks.iter().map(Self::written).collect::<Vec<_>>().join(joint))
        };
        match self {
            Self::Word(word) => word.clone(),
            Self::Phrase(phrase) => format!("\"{phrase}\""),
            Self::Tag(tag) => format!("tag:#{tag}"),
            Self::File(name) => format!("file:{name}"),
            Self::Status(value) => format!("[status:{value}]"),
            Self::Pages(above, pages) => format!("[pages:{}{pages}]", if *above { '>' } else { '<' }),
            Self::Line(ask) => format!("line:({})", ask.written()),
            Self::Section(ask) => format!("section:({})", ask.written()),
            Self::Task(ask) => format!("task:({})", ask.written()),
            Self::Not(ask) => format!("-({})", ask.written()),
            Self::And(asks) => list(asks, " "),
            Self::Or(asks) => list(asks, " OR "),
        }
    }

    /// Judges a note, or a part of it that is given by its lines.
    fn holds(&self, note: &Naive, part: Option<&[String]>) -> bool {
        let text = part.map_or_else(|| note.text.clone(), |lines| lines.join("\n")).to_lowercase();
        let lines: Vec<String> = match part {
            Some(lines) => lines.to_vec(),
            None => note.text.lines().map(str::to_owned).collect(),
        };
        let name = note.path.to_lowercase();
        match self {
            Self::Word(word) => {
                let word = word.to_lowercase();
                text.contains(&word) || part.is_none() && name.trim_end_matches(".md").contains(&word)
            }
            Self::Phrase(phrase) => {
                let wordy =
                    |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == 'é');
                let cjk = !phrase.is_ascii();
                let whole = text.match_indices(phrase.as_str()).any(|(at, found)| {
                    cjk || !wordy(text[..at].chars().next_back())
                        && !wordy(text[at + found.len()..].chars().next())
                });
                whole || part.is_none() && name.trim_end_matches(".md").contains(phrase.as_str())
            }
            Self::Tag(tag) => {
                let is = |found: &str| found == tag || found.starts_with(&format!("{tag}/"));
                match part {
                    None => note.tags.iter().any(|found| is(found.as_str())),
                    Some(lines) => lines
                        .iter()
                        .any(|line| line.split(' ').filter_map(|word| word.strip_prefix('#')).any(is)),
                }
            }
            Self::File(wanted) => name.contains(&wanted.to_lowercase()),
            Self::Status(value) => {
                note.status.as_ref().is_some_and(|status| status.to_lowercase().contains(value))
            }
            Self::Pages(above, pages) => {
                note.pages.is_some_and(|found| if *above { found > *pages } else { found < *pages })
            }
            Self::Line(ask) => lines.iter().any(|line| ask.holds(note, Some(std::slice::from_ref(line)))),
            Self::Section(ask) => match part {
                None => note.sections.iter().any(|section| ask.holds(note, Some(section))),
                // A part is within one section.
                Some(part) => ask.holds(note, Some(part)),
            },
            Self::Task(ask) => lines.iter().any(|line| {
                let task = line.strip_prefix("- [ ] ");
                task.is_some_and(|task| ask.holds(note, Some(&[task.to_owned()])))
            }),
            Self::Not(ask) => !ask.holds(note, part),
            Self::And(asks) => asks.iter().all(|ask| ask.holds(note, part)),
            Self::Or(asks) => asks.iter().any(|ask| ask.holds(note, part)),
        }
    }

    /// Says whether parts stand within parts in a way that lines alone do not tell.
    fn is_too_deep(&self, within: bool) -> bool {
        match self {
            Self::Line(ask) | Self::Section(ask) | Self::Task(ask) => within || ask.is_too_deep(true),
            Self::Not(ask) => ask.is_too_deep(within),
            Self::And(asks) | Self::Or(asks) => asks.iter().any(|ask| ask.is_too_deep(within)),
            _ => false,
        }
    }
}

/// Words and what can stand between them, in any order.
const FRAGMENTS: &[&str] = &[
    "JavaScr\u{ad}ipt",
    "моєІм'я",
    "தமிழ்getValue",
    "d'myT\u{200d}x",
    "İstanbul",
    "ा",
    "naïve\u{200d}ᾳIDs",
    "plan",
    "old",
    "Old",
    "getValue",
    "HTTPServer",
    "snake_case",
    "3.14",
    "don't",
    "o'clock",
    "co\u{ad}op",
    "naïve",
    "e\u{301}t",
    "Straße",
    "ﬁn",
    "x²",
    "½",
    "क्या",
    "段树",
    "中",
    "п'ять",
    "#tag/a",
    "https://a.org/b",
    "[[Name|other]]s",
    "[link](u)",
    "`code`",
    "&amp;",
    "<b>",
    " ",
    " ",
    " ",
    "**",
    "*",
    "_",
    "==",
    "%%",
    "-",
    ".",
    ",",
    "\n",
    "|",
    "$",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_phrase_of_a_note_is_found(
        value in prop::option::of(prop::collection::vec(prop::sample::select(FRAGMENTS), 1..6)),
        parts in prop::collection::vec(prop::sample::select(FRAGMENTS), 4..24),
        ranges in prop::collection::vec((any::<prop::sample::Index>(), 1..24usize), 40),
    ) {
        let properties = value.map_or_else(String::new, |value| format!("---\nkey: {}\n---\n", value.concat()));
        let text = properties + &parts.concat();
        let vault = TestVault::new(&[("0.md", &text)]);
        let store = vault.store();
        let chars: Vec<char> = text.chars().collect();
        for (start, length) in ranges {
            let start = start.index(chars.len());
            let phrase: String = chars.iter().skip(start).take(length).collect();
            if phrase.contains('\n') || phrase.trim().len() != phrase.len() {
                continue;
            }
            let is_in = QueryTerm::new(QueryTermKind::Phrase, &phrase, false).is_in(&Haystack::new(&text));
            let expected: Vec<String> = is_in.unwrap().then(|| "0.md".to_owned()).into_iter().collect();
            prop_assert_eq!(set(&store, &format!("\"{phrase}\"")), expected, "{:?} in {:?}", phrase, text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_index_and_a_naive_matcher_agree(
        notes in prop::collection::vec(a_note(), 1..12),
        asks in prop::collection::vec(an_ask().prop_filter("parts in parts", |ask| !ask.is_too_deep(false)), 30),
    ) {
        let notes: Vec<Naive> = notes
            .into_iter()
            .enumerate()
            .map(|(at, note)| Naive { path: format!("{at}/{}", note.path), ..note })
            .collect();
        let files: Vec<(&str, &str)> = notes.iter().map(|note| (note.path.as_str(), note.text.as_str())).collect();
        let store = TestVault::new(&files);
        let store = store.store();
        for ask in asks {
            let mut expected: Vec<String> = notes
                .iter()
                .filter(|note| {
                    let bare = Naive { path: note.path.split_once('/').unwrap().1.to_owned(), ..(*note).clone() };
                    ask.holds(&bare, None)
                })
                .map(|note| note.path.clone())
                .collect();
            expected.sort();
            prop_assert_eq!(set(&store, &ask.written()), expected, "{}", ask.written());
        }
    }

    #[test]
    fn parsing_any_query_does_not_panic(text in "[a-z(\\[\\])\" :/\\\\<>#-]{0,40}|(?s).{0,60}") {
        for all in [false, true] {
            if let Err(error) = Query::parse(&text, all) {
                prop_assert!(error.to_string().contains('^'), "{error}");
                prop_assert!(error.hint().is_some());
            }
        }
    }
}
