//! Tests edits of one property: the conformance cases, every row of docs/spec/obsidian.md 5.6, and random documents.

use proptest::prelude::*;
use serde_json::{Value, json};
use sidenote::markdown::frontmatter::edit::{add, remove_item, rename, set, unset};
use sidenote::markdown::frontmatter::{Style, encode_in, encode_scalar, read};
use sidenote::markdown::link::HostEscape;

use crate::support::{PlannedEdits, edit_outcome, edited};

fn plan(text: &str, op: &Value) -> PlannedEdits {
    let name = |value: &Value| value.as_str().unwrap().to_owned();
    let (verb, what) = op.as_object().unwrap().iter().next().unwrap();
    match verb.as_str() {
        "set" => set(text, &name(&what[0]), &what[1]),
        "add" => add(text, &name(&what[0]), &[what[1].clone()]),
        "item" => remove_item(text, &name(&what[0]), &what[1]),
        "remove" => match what {
            Value::Array(parts) => remove_item(text, &name(&parts[0]), &parts[1]),
            key => unset(text, &name(key)),
        },
        "rename" => rename(text, &name(&what[0]), &name(&what[1])),
        other => panic!("{other} is no operation"),
    }
}

#[test]
fn conformance_cases() {
    for case in &crate::support::cases_of("fm-edit", 7) {
        let text = case["text"].as_str().unwrap();
        let planned = plan(text, &case["op"]);
        match case["expect"].as_str().unwrap() {
            "error" => assert!(planned.is_err(), "{case}"),
            expected => assert_eq!(edit_outcome(text, &planned), expected, "{case}"),
        }
    }
}

/// Checks what an operation makes of a block; the same with CRLF, and with a byte order mark.
#[track_caller]
fn check(yaml: &str, op: Value, expect: &str) {
    let note = |yaml: &str| format!("---\n{yaml}---\n# Body\n\n---\ntext");
    let wanted = |yaml: &str| if yaml.starts_with("! ") { yaml.to_owned() } else { note(yaml) };
    let text = note(yaml);
    assert_eq!(edit_outcome(&text, &plan(&text, &op)), wanted(expect), "{op} in {yaml:?}");
    for (mark, end) in [("", "\r\n"), ("\u{FEFF}", "\n"), ("\u{FEFF}", "\r\n"), ("", "\r")] {
        let dress = |text: &str| format!("{mark}{}", text.replace('\n', end));
        let text = dress(&text);
        let expect = if expect.starts_with("! ") { expect.to_owned() } else { dress(&wanted(expect)) };
        assert_eq!(edit_outcome(&text, &plan(&text, &op)), expect, "{op} in {text:?}");
    }
}

#[test]
fn a_scalar_is_replaced_in_its_own_quotes() {
    check("a: x # c\nb: 2\n", json!({"set": ["a", "y"]}), "a: y # c\nb: 2\n");
    check("a:   'x'\n", json!({"set": ["a", "it's"]}), "a:   'it''s'\n");
    check("a: \"x\"  # c\n", json!({"set": ["a", "say \"hi\" \\"]}), "a: \"say \\\"hi\\\" \\\\\"  # c\n");
    check("a: 'x'\n", json!({"set": ["a", "two\nlines"]}), "a: \"two\\nlines\"\n");
    check("a: 'x'\n", json!({"set": ["a", 5]}), "a: 5\n");
    check("a: 'x'\n", json!({"set": ["a", true]}), "a: true\n");
    check("a: 5\n", json!({"set": ["a", "5"]}), "a: \"5\"\n");
    check("a: 1 # c\n", json!({"set": ["a", 2.5]}), "a: 2.5 # c\n");
    check("a: x\n", json!({"set": ["a", null]}), "a: null\n");
    check("a: \"x\n  y\"\nb: 1\n", json!({"set": ["a", "z"]}), "a: \"z\"\nb: 1\n");
    check("a: x\n  y # c\nb: 1\n", json!({"set": ["a", "z"]}), "a: z # c\nb: 1\n");
    check("a: |\n  x\n  y\n\nb: 1\n", json!({"set": ["a", "z"]}), "a: z\n\nb: 1\n");
    check("a: >-\n  x\nb: 1\n", json!({"set": ["a", "p\nq"]}), "a: \"p\\nq\"\nb: 1\n");
    check("'a b': x\n", json!({"set": ["A B", "y"]}), "'a b': y\n");
    check("a:\tx\n", json!({"set": ["a", "y"]}), "a:\ty\n");
    check("a : x\n", json!({"set": ["a", "y"]}), "a : y\n");
    check("Tags: x\n", json!({"set": ["tags", "y"]}), "Tags: y\n");
    check("  a: 1\n  b: 2\n", json!({"set": ["a", 3]}), "  a: 3\n  b: 2\n");
}

#[test]
fn setting_an_equal_value_plans_no_edit() {
    for (yaml, key, value) in [
        ("a: 'x'\n", "a", json!("x")),
        ("a: 0x1F\n", "A", json!(31)),
        ("a: 1.50\n", "a", json!(1.5)),
        ("a: 1.0\n", "a", json!(1.0)),
        ("a:\n", "a", json!(null)),
        ("a: &x v\n", "a", json!("v")),
        ("a: [p, 'q']\n", "a", json!(["p", "q"])),
        ("a: {p: 1}\n", "a", json!({"p": 1})),
    ] {
        assert_eq!(set(&format!("---\n{yaml}---\n"), key, &value), Ok(vec![]), "{yaml:?}");
    }
    let text = "---\na: [p]\nb: x\nc:\n---\n";
    for (key, value) in [("a", "q"), ("b", "y"), ("c", "z"), ("d", "z")] {
        assert_eq!(remove_item(text, key, &json!(value)), Ok(vec![]), "{key}");
    }
    assert_eq!(unset(text, "d"), Ok(vec![]));
    assert_eq!(unset("no block\n", "d"), Ok(vec![]));
    assert_eq!(add(text, "a", &[]), Ok(vec![]));
    assert_eq!(rename(text, "a", "a"), Ok(vec![]));
}

#[test]
fn strings_are_quoted_where_yaml_requires_it() {
    for (value, written) in [
        ("x", "x"),
        ("two words", "two words"),
        ("http://x.y/z#a", "http://x.y/z#a"),
        ("a:b", "a:b"),
        ("it's", "it's"),
        ("x, y", "x, y"),
        ("-x", "-x"),
        ("yes", "yes"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T10:00", "2026-01-02T10:00"),
        ("2026-01-02T10:00:59", "2026-01-02T10:00:59"),
        ("2026-01-02 Meeting", "2026-01-02 Meeting"),
        ("日本語 🐝", "日本語 🐝"),
        ("2026-01-02 10:00", "\"2026-01-02 10:00\""),
        ("2026-01-02T10:00:00Z", "\"2026-01-02T10:00:00Z\""),
        ("2026-1-2", "\"2026-1-2\""),
        ("", "\"\""),
        (" x", "\" x\""),
        ("x ", "\"x \""),
        ("a: b", "\"a: b\""),
        ("a:", "\"a:\""),
        ("a #b", "\"a #b\""),
        ("#tag", "\"#tag\""),
        ("[[Note]]", "\"[[Note]]\""),
        ("![[Note]]", "\"![[Note]]\""),
        ("[x](y)", "\"[x](y)\""),
        ("{x}", "\"{x}\""),
        ("*x", "\"*x\""),
        ("&x", "\"&x\""),
        ("!x", "\"!x\""),
        ("|", "\"|\""),
        ("> x", "\"> x\""),
        ("%x", "\"%x\""),
        ("@x", "\"@x\""),
        ("`x`", "\"`x`\""),
        ("\"x\"", "\"\\\"x\\\"\""),
        ("'x'", "\"'x'\""),
        (", x", "\", x\""),
        ("- x", "\"- x\""),
        ("-", "\"-\""),
        ("? x", "\"? x\""),
        (": x", "\": x\""),
        ("---", "\"---\""),
        ("...", "\"...\""),
        ("5", "\"5\""),
        ("007", "\"007\""),
        ("1e3", "\"1e3\""),
        ("0x1F", "\"0x1F\""),
        (".5", "\".5\""),
        (".inf", "\".inf\""),
        ("-.INF", "\"-.INF\""),
        (".NaN", "\".NaN\""),
        ("true", "\"true\""),
        ("False", "\"False\""),
        ("null", "\"null\""),
        ("~", "\"~\""),
        ("a\nb", "\"a\\nb\""),
        ("a\tb", "\"a\\tb\""),
        ("a\u{1}b", "\"a\\u0001b\""),
        ("a\u{85}b", "\"a\\u0085b\""),
        ("a\u{2028}b", "\"a\\u2028b\""),
        ("\u{FEFF}x", "\"\\uFEFFx\""),
    ] {
        check("a: 1\n", json!({"set": ["k", value]}), &format!("a: 1\nk: {written}\n"));
        check("k: old # c\n", json!({"set": ["k", value]}), &format!("k: {written} # c\n"));
    }
}

#[test]
fn a_missing_key_comes_before_the_closing_line() {
    check("", json!({"set": ["k", "v"]}), "k: v\n");
    check("# c\n\n", json!({"set": ["k", 1]}), "# c\n\nk: 1\n");
    check("a: 1\n# c\n", json!({"set": ["k", null]}), "a: 1\n# c\nk:\n");
    check("a: |\n  x\n", json!({"set": ["k", false]}), "a: |\n  x\nk: false\n");
    check("  a: 1\n", json!({"set": ["k", "v"]}), "  a: 1\n  k: v\n");
    check("a: 1\n", json!({"set": ["l", ["p", 2, "c: d"]]}), "a: 1\nl:\n  - p\n  - 2\n  - \"c: d\"\n");
    check("a: 1\n", json!({"set": ["l", []]}), "a: 1\nl: []\n");
    check(
        "a: 1\n",
        json!({"set": ["m", {"p": 1, "q, r": ["s", "[t]"]}]}),
        "a: 1\nm: {p: 1, \"q, r\": [s, \"[t]\"]}\n",
    );
    check("a: 1\n", json!({"set": ["a: b", 1]}), "a: 1\n\"a: b\": 1\n");
    check("a: 1\n", json!({"set": ["1", "x"]}), "a: 1\n\"1\": x\n");
    check("a: 1\n", json!({"set": ["<<", "x"]}), "a: 1\n\"<<\": x\n");
    check("a: 1\n", json!({"add": ["tags", "x"]}), "a: 1\ntags:\n  - x\n");
    check("a: 1\n", json!({"set": ["", "x"]}), "! invalid-key");
    check("a: 1\n", json!({"set": ["x\ny", "x"]}), "! invalid-key");
}

#[test]
fn a_file_without_frontmatter_gets_one() {
    for (text, expect) in [
        ("", "---\nk: v\n---\n"),
        ("B", "---\nk: v\n---\nB"),
        ("B\r\nC\n", "---\r\nk: v\r\n---\r\nB\r\nC\n"),
        ("B\nC\r\n", "---\nk: v\n---\nB\nC\r\n"),
        ("\u{FEFF}B", "\u{FEFF}---\nk: v\n---\nB"),
        ("\u{FEFF}", "\u{FEFF}---\nk: v\n---\n"),
        ("\n---\na: 1\n---\n", "---\nk: v\n---\n\n---\na: 1\n---\n"),
        ("---\na: 1\n", "---\nk: v\n---\n---\na: 1\n"),
    ] {
        assert_eq!(edit_outcome(text, &set(text, "k", &json!("v"))), expect, "{text:?}");
    }
    assert_eq!(
        edit_outcome("B", &add("B", "tags", &[json!("x"), json!("y")])),
        "---\ntags:\n  - x\n  - y\n---\nB"
    );
}

#[test]
fn the_closing_line_may_lack_a_line_end() {
    for (op, expect) in [
        (json!({"set": ["a", 2]}), "---\r\na: 2\r\n---"),
        (json!({"set": ["b", 2]}), "---\r\na: 1\r\nb: 2\r\n---"),
        (json!({"remove": "a"}), "---\r\n---"),
        (json!({"add": ["a", "x"]}), "---\r\na:\r\n  - 1\r\n  - x\r\n---"),
        (json!({"rename": ["a", "b"]}), "---\r\nb: 1\r\n---"),
    ] {
        let text = "---\r\na: 1\r\n---";
        assert_eq!(edit_outcome(text, &plan(text, &op)), expect, "{op}");
    }
    assert_eq!(edit_outcome("---\n---", &set("---\n---", "a", &json!(1))), "---\na: 1\n---");
    let mixed = "---\na: 1\r\nb: 2\n---\r\n";
    assert_eq!(edit_outcome(mixed, &set(mixed, "c", &json!(3))), "---\na: 1\r\nb: 2\nc: 3\n---\r\n");
}

#[test]
fn items_are_added_at_the_end_of_a_list() {
    check("t:\n  - p\n", json!({"add": ["t", "q"]}), "t:\n  - p\n  - q\n");
    check("t:\n- p\n- q # c\n# d\na: 1\n", json!({"add": ["t", "r"]}), "t:\n- p\n- q # c\n- r\n# d\na: 1\n");
    check("t:\n    -   p\na: 1\n", json!({"add": ["t", "q"]}), "t:\n    -   p\n    -   q\na: 1\n");
    check("t:\n  - p   \n\na: 1\n", json!({"add": ["t", "q"]}), "t:\n  - p   \n  - q\n\na: 1\n");
    check("t:\n  - |\n    x\n    # y\n", json!({"add": ["t", "q"]}), "t:\n  - |\n    x\n    # y\n  - q\n");
    check(
        "t:\n  - {a: 1}\n  - - x\n    - y\n",
        json!({"add": ["t", 1]}),
        "t:\n  - {a: 1}\n  - - x\n    - y\n  - 1\n",
    );
    check("t:\n  - a: 1\n    b: 2\n", json!({"add": ["t", "q"]}), "t:\n  - a: 1\n    b: 2\n  - q\n");
    check("t:\n  -\n", json!({"add": ["t", "q"]}), "t:\n  -\n  - q\n");
    check("t: [p, q] # c\n", json!({"add": ["t", "r"]}), "t: [p, q, r] # c\n");
    check("t: []\n", json!({"add": ["t", "r"]}), "t: [r]\n");
    check("t: [ ]\n", json!({"add": ["t", "r"]}), "t: [r]\n");
    check("t: [ p, q ]\n", json!({"add": ["t", "r, s"]}), "t: [ p, q, \"r, s\" ]\n");
    check("t: [p,]\n", json!({"add": ["t", "r"]}), "t: [p, r,]\n");
    check(
        "t: [\n  p, # c\n  q # d, e\n]\n",
        json!({"add": ["t", "r"]}),
        "t: [\n  p, # c\n  q, r # d, e\n]\n",
    );
    check("t: [[a, b], {c: d}]\n", json!({"add": ["t", "r"]}), "t: [[a, b], {c: d}, r]\n");
    check("t: ['a, ]', \"b]\"]\n", json!({"add": ["t", "[[N]]"]}), "t: ['a, ]', \"b]\", \"[[N]]\"]\n");
}

#[test]
fn adding_an_item_turns_a_scalar_into_a_list() {
    check("tags:\na: 1\n", json!({"add": ["tags", "x"]}), "tags:\n  - x\na: 1\n");
    check("tags: # c\n", json!({"add": ["tags", "x"]}), "tags: # c\n  - x\n");
    check("tags: null # c\n", json!({"add": ["tags", "x"]}), "tags: # c\n  - x\n");
    check("tags: ~\n", json!({"add": ["tags", "x"]}), "tags:\n  - x\n");
    check("tags: a\nb: 1\n", json!({"add": ["tags", "x"]}), "tags:\n  - a\n  - x\nb: 1\n");
    check("tags:  'a' # c\n", json!({"add": ["tags", "x"]}), "tags:\n  - 'a' # c\n  - x\n");
    check("tags: 5\n", json!({"add": ["tags", "5"]}), "tags:\n  - 5\n  - \"5\"\n");
    check("a: |\n  x\n", json!({"add": ["a", "y"]}), "! yaml-style");
    check("a: x\n  y\n", json!({"add": ["a", "y"]}), "! yaml-style");
    check("a:\n  b: 1\n", json!({"add": ["a", "y"]}), "! yaml-style");
}

#[test]
fn removing_an_item_removes_its_line() {
    check("t:\n  - p\n  - q # c\n  - r\n", json!({"item": ["t", "q"]}), "t:\n  - p\n  - r\n");
    check("t:\n- p\n# c\n- q\n\n- r\n", json!({"item": ["t", "p"]}), "t:\n# c\n- q\n\n- r\n");
    check("t:\n- p\n- q\n# c\na: 1\n", json!({"item": ["t", "q"]}), "t:\n- p\n# c\na: 1\n");
    check("t:\n  - p\na: 1\n", json!({"item": ["t", "p"]}), "t: []\na: 1\n");
    check("t: # c\n  # d\n  - p\n", json!({"item": ["t", "p"]}), "t: [] # c\n  # d\n");
    check("t:\n  - p\n  - q\n  - p\n", json!({"item": ["t", "p"]}), "t:\n  - q\n");
    check("t:\n  - 5\n  - '5'\n", json!({"item": ["t", 5]}), "t:\n  - '5'\n");
    check("t:\n  - \"a\n    b\"\n  - c\n", json!({"item": ["t", "a b"]}), "t:\n  - c\n");
    check("t:\n  - |\n    x\n    - y\n  - c\n", json!({"item": ["t", "x\n- y\n"]}), "t:\n  - c\n");
    check("t: [p, q, r]\n", json!({"item": ["t", "p"]}), "t: [q, r]\n");
    check("t: [p, q, r]\n", json!({"item": ["t", "q"]}), "t: [p, r]\n");
    check("t: [p, q, r ]\n", json!({"item": ["t", "r"]}), "t: [p, q ]\n");
    check("t: [ p ] # c\n", json!({"item": ["t", "p"]}), "t: [] # c\n");
    check("t: [p, q, p, p]\n", json!({"item": ["t", "p"]}), "t: [q]\n");
    check("t: [\n  p,\n  q\n]\n", json!({"item": ["t", "q"]}), "t: [\n  p\n]\n");
    check("tags: 'p' # c\n", json!({"item": ["tags", "p"]}), "tags: [] # c\n");
}

#[test]
fn removing_an_item_in_brackets_keeps_comments() {
    check("t: [\n  p, # c\n  q\n]\n", json!({"item": ["t", "q"]}), "t: [\n  p, # c\n]\n");
    check("t: [\n  p, # c\n  q\n]\n", json!({"item": ["t", "p"]}), "t: [\n   # c\n  q\n]\n");
    check("t: [p, # c\n  q, r]\n", json!({"item": ["t", "q"]}), "t: [p, # c\n   r]\n");
    check("t: [p # c\n  , q]\n", json!({"item": ["t", "p"]}), "t: [ # c\n   q]\n");
    check(
        "t: [\n  p, # c, d\n  q, # e\n  r, # f\n]\n",
        json!({"item": ["t", "q"]}),
        "t: [\n  p, # c, d\n   # e\n  r, # f\n]\n",
    );
    check("t: [p, # c\n  q]\n", json!({"set": ["t", []]}), "t: [ # c\n  ]\n");
    check("t: [ # c\n  ]\n", json!({"set": ["t", ["p", "q"]]}), "t: [ # c\n  p, q]\n");
    check("t: [A, # c\n  ~, A]\n", json!({"set": ["t", [null, null]]}), "t: [ # c\n  ~, null]\n");
}

#[test]
fn replacing_a_list_changes_only_items_that_differ() {
    check(
        "t:\n  - a # 1\n  - 'b' # 2\n  # x\n  - c # 3\n",
        json!({"set": ["t", ["a", "d", "c"]]}),
        "t:\n  - a # 1\n  - 'd' # 2\n  # x\n  - c # 3\n",
    );
    check("t:\n- a\n- b\n- c\n- d\n", json!({"set": ["t", ["a", "c"]]}), "t:\n- a\n- c\n");
    check("t:\n- a\n- b\n", json!({"set": ["t", ["x", "a", "y", "b"]]}), "t:\n- x\n- a\n- y\n- b\n");
    check("t:\n- a\n-\n", json!({"set": ["t", ["a", "b"]]}), "t:\n- a\n- b\n");
    check("t:\n- a: 1\n  b: 2\n- c\n", json!({"set": ["t", ["x", "c"]]}), "t:\n- x\n- c\n");
    check("t: [a, 'b', c]\n", json!({"set": ["t", ["a", "d", "c", "e"]]}), "t: [a, 'd', c, e]\n");
    check("t: [a, b, c]\n", json!({"set": ["t", ["x", "y", "a", "c"]]}), "t: [x, y, a, c]\n");
    check("t: [a, b]\n", json!({"set": ["t", []]}), "t: []\n");
    check("t: []\n", json!({"set": ["t", ["a", "b"]]}), "t: [a, b]\n");
    check("t:\n  - a\nb: 1\n", json!({"set": ["t", []]}), "t: []\nb: 1\n");
}

#[test]
fn a_value_can_be_replaced_by_another_kind() {
    check("a: x # c\n", json!({"set": ["a", ["p", "q"]]}), "a: # c\n  - p\n  - q\n");
    check("a: |\n  x\nb: 1\n", json!({"set": ["a", ["p"]]}), "a:\n  - p\nb: 1\n");
    check("a: {p: 1}\n", json!({"set": ["a", ["p"]]}), "a:\n  - p\n");
    check("a: # c\n  - p\n  # d\n  - q # e\nb: 1\n", json!({"set": ["a", "x"]}), "a: x # c\nb: 1\n");
    check("a:\n- p\nb: 1\n", json!({"set": ["a", "- x"]}), "a: \"- x\"\nb: 1\n");
    check("a: [p, q] # c\n", json!({"set": ["a", 1]}), "a: 1 # c\n");
    check("a:\n  p: 1\nb: 1\n", json!({"set": ["a", "x"]}), "a: x\nb: 1\n");
    check("a:\n  p: 1\nb: 1\n", json!({"set": ["a", ["x"]]}), "a:\n  - x\nb: 1\n");
    check("d: {{date}}\n", json!({"set": ["d", "2026-01-02"]}), "d: 2026-01-02\n");
    check("a:\nb: 1\n", json!({"set": ["a", "x"]}), "a: x\nb: 1\n");
    check("a: \nb: 1\n", json!({"set": ["a", "x"]}), "a: x\nb: 1\n");
    check("a: # c\nb: 1\n", json!({"set": ["a", "x"]}), "a: x # c\nb: 1\n");
    check("a:\n", json!({"set": ["a", []]}), "a: []\n");
}

#[test]
fn unsetting_a_key_removes_all_its_lines() {
    check("# c\na: 1 # d\n# e\nb: 2\n", json!({"remove": "a"}), "# c\n# e\nb: 2\n");
    check("a: 1\nb: |\n  x\n\n  y\nc: 2\n", json!({"remove": "b"}), "a: 1\nc: 2\n");
    check("a: 1\nb:\n- x\n# i\n- y # j\n# k\nc: 3\n", json!({"remove": "B"}), "a: 1\n# k\nc: 3\n");
    check("a: [1,\n  2] # c\nb: 1\n", json!({"remove": "a"}), "b: 1\n");
    check("a:\n  b: 1\n  c: 2\nd:\n", json!({"remove": "a"}), "d:\n");
    check("a: # c\nb: 1\n", json!({"remove": "a"}), "b: 1\n");
    check("a: 1\n", json!({"remove": "a"}), "");
    check("\"a b\": 1\nc: 2\n", json!({"remove": "A b"}), "c: 2\n");
}

#[test]
fn a_key_is_renamed_in_place() {
    check("a: 1 # c\n", json!({"rename": ["a", "b"]}), "b: 1 # c\n");
    check("'a':  [x]\n", json!({"rename": ["A", "it's"]}), "'it''s':  [x]\n");
    check("\"a\" : 1\n", json!({"rename": ["a", "b: c"]}), "\"b: c\" : 1\n");
    check("a: 1\n", json!({"rename": ["a", "b: c"]}), "\"b: c\": 1\n");
    check("a: 1\n", json!({"rename": ["a", "A"]}), "A: 1\n");
    check("a: |\n  x\n", json!({"rename": ["a", "b"]}), "b: |\n  x\n");
    check("a: 1\nB: 2\n", json!({"rename": ["a", "b"]}), "! target-exists");
    check("a: 1\n", json!({"rename": ["x", "b"]}), "! not-found");
    check("a: 1\n", json!({"rename": ["a", " "]}), "! invalid-key");
    check("[p, q]: 1\n", json!({"rename": ["[p, q]", "b"]}), "b: 1\n");
}

#[test]
fn frontmatter_that_cannot_be_edited_is_refused() {
    for yaml in
        ["a: [1\n", "a: 1\na: 2\n", "- x\n", "text\n", "a: b: c\n", "a:\n\t- x\n", "a: 1\n...\nb: 2\n"]
    {
        for op in [json!({"set": ["b", 1]}), json!({"remove": "a"}), json!({"add": ["t", "x"]})] {
            check(yaml, op, "! yaml-unparsable");
        }
    }
    check("{\"a\": 1}\n", json!({"set": ["a", 2]}), "! yaml-style");
    check("{a: 1}\n", json!({"remove": "a"}), "! yaml-style");
    check("a: &x v\nb: *x\n", json!({"set": ["a", "w"]}), "! yaml-style");
    check("a: &x v\nb: *x\n", json!({"remove": "b"}), "! yaml-style");
    check("a: &x [p]\n", json!({"add": ["a", "w"]}), "! yaml-style");
    check("a: !!str 5\n", json!({"set": ["a", "w"]}), "! yaml-style");
    check("a: &x {p: 1}\n<<: *x\n", json!({"set": ["p", "w"]}), "! yaml-style");
    check("Tags: a\nTAGS: b\n", json!({"set": ["tags", "w"]}), "! yaml-style");
    check("Tags: a\nTAGS: b\n", json!({"set": ["TAGS", "w"]}), "Tags: a\nTAGS: w\n");
    check("a: &x v\nb: *x\nc: 1\n", json!({"set": ["c", 2]}), "a: &x v\nb: *x\nc: 2\n");
    check("a: 1\n...\n", json!({"set": ["b", 2]}), "! reparse-mismatch");
    check("? a\n: 1\n", json!({"remove": "a"}), "! yaml-style");
}

#[test]
fn a_refusal_names_the_line() {
    let text = "---\na: 1\nb: &x 2\n---\n";
    let refusal = set(text, "b", &json!(3)).unwrap_err();
    let path = sidenote::markdown::path::NotePath::parse("n.md").unwrap();
    let remark = refusal.remark(path, text).to_string();
    insta::assert_snapshot!(remark, @r#"n.md:3:1: the property "b" uses an anchor, an alias, a merge or a YAML tag, and was left unchanged (yaml-style)"#);
}

#[test]
fn text_is_encoded_for_its_quoting_style() {
    let check = |host, text: &str, expect: Option<&str>| {
        assert_eq!(encode_in(host, text).as_deref(), expect, "{text:?} in {host:?}");
    };
    check(HostEscape::None, "a\"'\\", Some("a\"'\\"));
    check(HostEscape::YamlPlain, "dir/New name", Some("dir/New name"));
    check(HostEscape::YamlPlain, "2026", Some("2026"));
    for text in ["a: b", "a #b", "#a", "a, b", "a]", "a\nb", "", "a:", "'a"] {
        check(HostEscape::YamlPlain, text, None);
    }
    check(HostEscape::YamlSingle, "it's \"x\" \\", Some("it''s \"x\" \\"));
    check(HostEscape::YamlSingle, "a\nb", None);
    check(HostEscape::YamlDouble, "it's \"x\" \\ é", Some("it's \\\"x\\\" \\\\ é"));
    check(HostEscape::YamlDouble, "a\r\nb\u{7}", Some("a\\r\\nb\\u0007"));
    check(HostEscape::Json, "it's \"x\" \\ é\n\u{1}", Some("it's \\\"x\\\" \\\\ é\\n\\u0001"));
    assert_eq!(encode_scalar("5", Style::Plain), None);
    assert_eq!(encode_scalar("5", Style::Single).as_deref(), Some("'5'"));
    assert_eq!(encode_scalar("x", Style::Literal), None);
}

// Random documents.

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9 _/-]{1,12}",
        "[ -~]{0,16}",
        "[a\\-#:,'\"\\[\\]{}!&*?|>%@`\\\\ \n\t\r.~0-9éß日🐝\u{85}\u{a0}\u{2028}\u{feff}]{0,10}",
        Just("[[Note|x]]".to_owned()),
        Just("2026-01-02".to_owned()),
        Just("null".to_owned()),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => (-1e6..1e6f64).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => scalar(),
        2 => proptest::collection::vec(scalar(), 0..5).prop_map(Value::from),
        1 => proptest::collection::btree_map(text(), scalar(), 0..3).prop_map(|map| json!(map)),
    ]
}

/// A value as people write it after a key.
fn written() -> impl Strategy<Value = String> {
    let item = prop_oneof![
        "[a-z]{1,6}",
        Just("'it''s'".to_owned()),
        Just("\"q, \\\"r\\\"\"".to_owned()),
        Just("5".to_owned()),
        Just("~".to_owned()),
        Just("x #y".to_owned()).prop_map(|_| "x#y".to_owned()),
    ];
    let block_item = prop_oneof![
        6 => (item.clone(), prop_oneof![Just(""), Just(" # c"), Just("  ")]).prop_map(|(v, c)| format!("{v}{c}")),
        1 => Just("|\n~~x\n~~# y".to_owned()),
        1 => Just("p: 1\n~~q: [2]".to_owned()),
        1 => Just("- p\n~~- q".to_owned()),
        1 => Just("\"p\n~~q\"".to_owned()),
        1 => Just("[p, {q: r}]".to_owned()),
        1 => Just(String::new()),
    ];
    let block = (
        proptest::collection::vec((block_item, any::<bool>()), 1..5),
        prop_oneof![Just(""), Just("  "), Just("    ")],
        prop_oneof![Just(" "), Just("   ")],
        prop_oneof![Just(""), Just(" # c")],
    );
    prop_oneof![
        3 => (item.clone(), prop_oneof![Just(""), Just(" # c"), Just("  ")]).prop_map(|(v, c)| format!(" {v}{c}")),
        1 => Just(String::new()),
        1 => Just(" # c".to_owned()),
        1 => Just(" |\n  x\n\n  y\n".to_owned()),
        1 => Just(" plain\n  folded".to_owned()),
        1 => Just("\n  p: 1\n  # c\n  q: [a, b]".to_owned()),
        1 => Just(" {p: 1, q: [a, 'b, c']}".to_owned()),
        1 => Just(" &x v".to_owned()),
        1 => Just(" !!str 5".to_owned()),
        3 => (proptest::collection::vec(item, 0..4), prop_oneof![Just(", "), Just(","), Just(" ,\n  "), Just(", # c\n  ")])
            .prop_map(|(items, comma)| format!(" [{}]", items.join(comma))),
        4 => block.prop_map(|(items, indent, gap, comment)| {
            let deeper = format!("{indent}{}", " ".repeat(1 + gap.len()));
            let line = |(item, commented): (String, bool)| {
                let above = if commented { format!("\n{indent}# above") } else { String::new() };
                format!("{above}\n{indent}-{gap}{}", item.replace("~~", &deeper))
            };
            format!("{comment}{}", items.into_iter().map(line).collect::<String>())
        }),
    ]
}

fn note() -> impl Strategy<Value = String> {
    let key = prop_oneof![Just("a"), Just("b"), Just("Tags"), Just("'k y'"), Just("\"q\""), Just("é")];
    let above = prop_oneof![4 => Just(""), 1 => Just("# comment\n"), 1 => Just("\n")];
    let entries = proptest::collection::vec((above, key, written()), 0..5);
    let end = prop_oneof![2 => Just("\n"), 1 => Just("\r\n")];
    let (mark, tail) = (
        prop_oneof![Just(""), Just("\u{FEFF}")],
        prop_oneof![Just("---"), Just("---\nB\n"), Just("--- \n\n---\n")],
    );
    (mark, entries, tail, end).prop_map(|(mark, entries, tail, end)| {
        let mut used = std::collections::BTreeSet::new();
        let entries: String = entries
            .into_iter()
            .filter(|(_, key, _)| used.insert(*key))
            .map(|(above, key, value)| format!("{above}{key}:{value}\n"))
            .collect();
        format!("{mark}{}", format!("---\n{entries}{tail}").replace('\n', end))
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop_oneof![Just("a"), Just("b"), Just("tags"), Just("K y"), Just("q"), Just("É"), Just("new")]
            .prop_map(str::to_owned),
        1 => text(),
    ]
}

/// Gives the values of a note's properties, or nothing where they cannot be read.
fn properties(text: &str) -> Option<Vec<(String, Value)>> {
    let (block, _) = read(text);
    let block = block?;
    let values = block.properties.iter().map(|property| (property.key.clone(), property.value.clone()));
    block.error.is_none().then(|| values.collect())
}

fn held(text: &str, key: &str) -> Option<Value> {
    let (block, _) = read(text);
    block?.get(key).map(|property| property.value.clone())
}

/// Carries out a plan and checks what holds for each: other properties and the body are as before.
fn sound(text: &str, key: &str, planned: PlannedEdits) -> Result<Option<String>, TestCaseError> {
    let Ok(edits) = planned else { return Ok(None) };
    let changed = edited(text, &edits);
    if edits.is_empty() {
        return Ok(Some(changed));
    }
    let (before, after) = (properties(text).unwrap_or_default(), properties(&changed));
    prop_assert!(after.is_some(), "{text:?} became {changed:?}");
    let own = sidenote::markdown::path::key(key);
    let others = |all: Vec<(String, Value)>| {
        all.into_iter().filter(|(name, _)| sidenote::markdown::path::key(name) != own).collect::<Vec<_>>()
    };
    prop_assert_eq!(others(before), others(after.unwrap_or_default()));
    prop_assert_eq!(&text[read(text).1..], &changed[read(&changed).1..]);
    prop_assert_eq!(text.starts_with('\u{FEFF}'), changed.starts_with('\u{FEFF}'));
    let bare = |text: &str| text.replace("\r\n", "").contains(['\r', '\n']);
    prop_assert!(bare(text) || !text.contains('\n') || !bare(&changed), "line ends of {changed:?}");
    Ok(Some(changed))
}

fn close(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, a)| b.get(k).is_some_and(|b| close(a, b)))
        }
        _ => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn generated_documents_can_be_read(text in note()) {
        prop_assert!(properties(&text).is_some(), "{text:?}: {:?}", read(&text).0);
    }

    #[test]
    fn set_writes_the_value_and_keeps_other_bytes(text in note(), key in key(), value in value()) {
        let planned = set(&text, &key, &value);
        let refused = planned.as_ref().err().map(|refusal| refusal.code);
        prop_assert!(refused != Some("reparse-mismatch"), "{planned:?}");
        if let Some(changed) = sound(&text, &key, planned)? {
            let found = held(&changed, &key);
            prop_assert!(found.as_ref().is_some_and(|found| close(found, &value)), "{found:?} in {changed:?}");
            prop_assert_eq!(set(&changed, &key, &value), Ok(vec![]));
        }
    }

    #[test]
    fn setting_a_value_back_restores_the_text(text in note(), key in key(), value in value()) {
        let old = held(&text, &key);
        if let Some(changed) = sound(&text, &key, set(&text, &key, &value))? {
            let back = match &old {
                Some(old) => set(&changed, &key, old),
                None => unset(&changed, &key),
            };
            prop_assert!(back.is_ok(), "{back:?} in {changed:?}");
            let restored = edited(&changed, &back.unwrap());
            prop_assert!(held(&restored, &key) == old, "{restored:?}");
            let had_block = read(&text).0.is_some();
            if old.is_none() && had_block {
                prop_assert_eq!(restored, text);
            }
        }
    }

    #[test]
    fn setting_plain_scalars_back_restores_the_bytes(before in "[a-z]{1,8}", value in text(), tail in prop_oneof![Just(""), Just(" # c"), Just("  ")]) {
        for quote in ["'", "\""] {
            let text = format!("---\na: {quote}{before}{quote}{tail}\nb: 1\n---\n");
            let changed = edited(&text, &set(&text, "a", &json!(value)).unwrap());
            let restored = edited(&changed, &set(&changed, "a", &json!(before)).unwrap());
            if encode_scalar(&value, Style::Single).is_some() || quote == "\"" {
                prop_assert_eq!(restored, text);
            }
        }
    }

    #[test]
    fn an_added_item_can_be_removed(text in note(), key in key(), item in scalar()) {
        let old = held(&text, &key);
        let planned = add(&text, &key, std::slice::from_ref(&item));
        let refused = planned.as_ref().err().map(|refusal| refusal.code);
        prop_assert!(refused != Some("reparse-mismatch"), "{planned:?}");
        if let Some(changed) = sound(&text, &key, planned)? {
            let items = match &old {
                Some(Value::Array(items)) => items.clone(),
                Some(Value::Null) | None => vec![],
                Some(single) => vec![single.clone()],
            };
            let whole: Vec<Value> = items.iter().chain([&item]).cloned().collect();
            prop_assert!(held(&changed, &key).is_some_and(|held| close(&held, &json!(whole))), "{changed:?}");
            if !items.iter().any(|old| close(old, &item)) {
                let back = remove_item(&changed, &key, &item);
                prop_assert!(back.as_ref().is_ok_and(|edits| !edits.is_empty()), "{back:?} in {changed:?}");
                let restored = sound(&changed, &key, back)?.unwrap();
                prop_assert_eq!(held(&restored, &key), Some(json!(items)));
                if matches!(&old, Some(Value::Array(old)) if !old.is_empty()) {
                    prop_assert_eq!(restored, text);
                }
            }
        }
    }

    #[test]
    fn removed_items_and_renamed_keys_keep_other_bytes(text in note(), key in key(), new in key(), pick in 0usize..4) {
        if let Some(Value::Array(items)) = held(&text, &key) && let Some(item) = items.get(pick) {
            let planned = remove_item(&text, &key, item);
            let refused = planned.as_ref().err().map(|refusal| refusal.code);
            prop_assert!(refused != Some("reparse-mismatch"), "{planned:?}");
            sound(&text, &key, planned)?;
        }
        if let Some(changed) = sound(&text, &key, unset(&text, &key))? {
            prop_assert_eq!(held(&changed, &key), None);
        }
        let value = held(&text, &key);
        if let Ok(edits) = rename(&text, &key, &new) {
            let changed = edited(&text, &edits);
            prop_assert_eq!(held(&changed, &new), value);
            prop_assert_eq!(properties(&changed).map(|all| all.len()), properties(&text).map(|all| all.len()));
        }
    }

    #[test]
    fn editing_any_text_does_not_panic(text in "(\u{FEFF})?(---\r?\n)?[a-c:\\-\\[\\]{}'\"#|>&*!, \t\r\n]{0,60}(\r?\n---\r?\n)?x?", key in key(), value in value()) {
        sound(&text, &key, set(&text, &key, &value))?;
        sound(&text, &key, unset(&text, &key))?;
        sound(&text, &key, add(&text, &key, std::slice::from_ref(&value)))?;
        sound(&text, &key, remove_item(&text, &key, &value))?;
        drop(rename(&text, &key, "new"));
    }
}
