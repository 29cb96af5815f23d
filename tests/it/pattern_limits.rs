//! Tests patterns and queries of any length and nesting: they are compiled or refused with a reason, and nothing
//! overflows the stack or panics.

use serde_json::json;
use sidenote::base::error::ErrorKind;
use sidenote::store::{SearchRequest, Store};

use crate::mcp_client::Client;
use crate::support::TestVault;

/// Path patterns that a compiler by recursion does not survive, or that take it long.
fn hostile_globs() -> Vec<String> {
    let nested = |depth: usize| "{".repeat(depth) + "a" + &"}".repeat(depth);
    vec![
        nested(51),
        nested(200),
        nested(300),
        nested(20_000),
        nested(2_000_000),
        "{a,".repeat(200) + &"}".repeat(200),
        "{\\}".repeat(200),
        "{".repeat(1_000),
        "{".repeat(20_000),
        "}".repeat(20_000),
        "[".repeat(20_000),
        "[[]".repeat(20_000),
        "a,".repeat(100_000),
        format!("{{{}}}", "a,".repeat(100_000)),
        "*".repeat(20_000),
        "**/".repeat(20_000),
        "?".repeat(1_000_000),
        "\\".repeat(20_001),
        "[a-".repeat(300),
        "[z-a]".to_owned(),
    ]
}

fn search(store: &Store, query: &str, path: Option<&str>) -> sidenote::base::error::Result<usize> {
    let request =
        SearchRequest { query: query.to_owned(), path: path.map(str::to_owned), ..SearchRequest::default() };
    store.searches().search(&request).map(|reply| reply.results.len())
}

#[test]
fn no_path_pattern_ends_the_process() {
    let vault = TestVault::new(&[("a.md", "heron"), ("b/c.md", "heron")]);
    let store = vault.store();
    let mut tried = 0;
    for pattern in hostile_globs() {
        // Words alone and a condition compile the pattern in places of their own.
        for query in ["heron", "\"heron\""] {
            let error = search(&store, query, Some(&pattern)).unwrap_err();
            let shown: String = pattern.chars().take(20).collect();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{shown}: {error}");
            assert!(error.to_string().len() < 2_500, "{shown}: the message repeats the pattern");
            tried += 1;
        }
    }
    assert_eq!(tried, 40);
    // Patterns within the limits still work.
    let nested = "{".repeat(50) + "a*" + &"}".repeat(50);
    for (pattern, found) in [
        ("b/**", 1),
        ("{a,b/*}.md", 2),
        ("{a*,b/*}", 2),
        ("b", 1),
        (&nested, 1),
        (&"?".repeat(1_000), 0),
        (&"**/".repeat(333), 2),
        (&"*".repeat(1_000), 1),
        (&"[!\u{10FFFF}]".repeat(140), 0),
    ] {
        assert_eq!(search(&store, "heron", Some(pattern)).unwrap(), found, "{pattern}");
    }
}

#[test]
fn no_query_ends_the_process() {
    let vault = TestVault::new(&[("a.md", "heron")]);
    let store = vault.store();
    let repeated = |part: &str, times: usize| part.repeat(times);
    let wrapped = |open: &str, close: &str, times: usize| open.repeat(times) + "a" + &close.repeat(times);
    let queries = [
        wrapped("(", ")", 63),
        wrapped("(", ")", 65),
        wrapped("(", ")", 20_000),
        wrapped("(", ")", 2_000_000),
        repeated("(", 40_000),
        wrapped("[a:(", ")]", 70),
        wrapped("[(", ")]", 10_000),
        repeated("-(", 20_000),
        repeated("line:", 9_000) + "a",
        repeated("file:(", 8_000),
        repeated("-", 40_000) + "a",
        repeated("a OR ", 9_000) + "a",
        repeated("/[ ", 16_000),
        repeated("\"", 40_001),
        repeated("\"", 2_000_001),
        repeated("[[", 20_000),
        format!("/{}/", wrapped("(", ")", 99)),
        format!("/{}/", wrapped("(", ")", 101)),
        format!("/{}/", wrapped("(?=", ")", 99)),
        format!("/{}/", wrapped("(?:", ")+", 99)),
        format!("/{}/", wrapped("(?<=(?=", "))", 49)),
        format!("/{}/", wrapped("(?:", "){9}", 99)),
        format!("/{}(?=b)/", wrapped("(?:", "){99}", 40)),
        format!("/{}/", repeated("[", 1_900)),
        format!("/[{}]/", repeated("[^a]", 400)),
        format!("/{}/", repeated("a|", 900)),
        format!("/{}/", repeated("a{1000}", 200)),
        format!("/{}/", repeated("a{0,99999}", 100)),
        format!("/(?=a){}/", repeated("a{0,99999}", 100)),
        format!("/(a{{1000}}){{1000}}{}/", repeated("\\1", 500)),
        format!("/{}/", repeated("\\p{L}{50}", 200)),
        format!("/{}/", repeated("x", 2_000_000)),
    ];
    assert_eq!(queries.len(), 32);
    let mut refused = 0;
    for query in queries {
        let shown: String = query.chars().take(30).collect();
        if let Err(error) = search(&store, &query, None) {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{shown}: {error}");
            assert!(error.to_string().len() < 2_500, "{shown}: the message repeats the query");
            refused += 1;
        }
    }
    assert_eq!(refused, 24);
}

#[test]
fn no_excluded_file_pattern_ends_the_process() {
    let wrapped = |open: &str, close: &str, times: usize| open.repeat(times) + "zz" + &close.repeat(times);
    let patterns = [
        wrapped("(", ")", 100),
        wrapped("(", ")", 101),
        wrapped("(", ")", 20_000),
        wrapped("(?=", ")", 100),
        wrapped("(?:", "){99}", 100),
        wrapped("(?=(?:", "){99})", 50),
        "[".repeat(1_990),
        "[^z".repeat(600),
        "zz|".repeat(100_000),
        "z{1000}".repeat(280),
        "(?=z)".to_owned() + &"z{0,99999}".repeat(150),
        format!("(z{{1000}}){{1000}}{}", "\\1".repeat(500)),
        "z".repeat(1_000_000),
        "\\".repeat(1_999),
    ];
    assert_eq!(patterns.len(), 14);
    let filters: Vec<String> = patterns.iter().map(|pattern| format!("/{pattern}/")).collect();
    let vault = TestVault::new(&[("a.md", "heron"), ("private/b.md", "heron")]);
    let settings = |filters: &[String]| json!({ "userIgnoreFilters": filters }).to_string();
    vault.write(".obsidian/app.json", settings(&filters));
    assert_eq!(search(&vault.store(), "heron", None).unwrap(), 2);
    // Where a pattern exceeds its steps, the file counts as excluded, since it may have to be hidden.
    vault.write("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.md", "heron");
    vault.write(
        ".obsidian/app.json",
        settings(&["/^(?:(a)|a)*\\1(?!a|\\.)/".to_owned(), "private/".to_owned()]),
    );
    assert_eq!(search(&vault.store(), "heron", None).unwrap(), 1);
}

#[test]
fn a_type_and_a_category_are_labels() {
    let vault = TestVault::new(&[("Heron.md", "It stands.\n")]);
    let mut client = Client::start(&vault, &[]);
    let (long, most) = ("é".repeat(201), "é".repeat(200));
    let calls = [
        ("write_note", json!({ "title": "A", "content": "x", "type": long })),
        ("write_note", json!({ "title": "A", "content": "x", "category": long })),
        ("set_memory", json!({ "note": "Heron", "type": long })),
    ];
    for (tool, arguments) in calls {
        let said = client.refusal(tool, arguments);
        assert!(said.contains("has 201 characters. Give a word or a few"), "{tool}: {said}");
    }
    let done = client.call("set_memory", json!({ "note": "Heron", "type": most }));
    assert_ne!(done["isError"], true, "{done}");
    client.finish();
}
