//! Tests reading frontmatter: the conformance cases, the rules of docs/spec/obsidian.md 5 and 2.7, and hostile input.

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::string::string_regex;
use serde_json::{Value, json};
use sidenote::markdown::frontmatter::{Frontmatter, PropertyType, Style, kind_of, read};
use sidenote::markdown::span::Span;
use sidenote::markdown::tag::tag_name;

/// Reads a block of YAML as the frontmatter of a note.
fn block(yaml: &str) -> (String, Frontmatter) {
    let text = format!("---\n{yaml}\n---\nbody\n");
    let (found, body) = read(&text);
    assert_eq!(&text[body..], "body\n", "{yaml}");
    (text, found.unwrap())
}

fn check_values(yaml: &str, expect: Value) {
    let (_, found) = block(yaml);
    assert_eq!(found.error, None, "{yaml}");
    assert_eq!(Value::Object(found.values()), expect, "{yaml}");
}

fn check_error(yaml: &str, expect: &str) {
    let (_, found) = block(yaml);
    let error = found.error.unwrap_or_default();
    assert!(error.starts_with(expect), "{:.60} gives {error:?}", yaml);
    assert!(found.properties.is_empty() && found.tags.is_empty() && found.links.is_empty());
}

/// Checks which bytes of the file each property takes up.
fn check_spans(yaml: &str, expect: &[&str]) {
    let (text, found) = block(yaml);
    assert_eq!(found.error, None, "{yaml}");
    let spans: Vec<&str> = found.properties.iter().map(|property| property.span.of(&text)).collect();
    assert_eq!(spans, expect);
}

#[test]
fn conformance_cases() {
    for case in &crate::support::cases_of("frontmatter", 14) {
        let (found, body_start) = read(case["text"].as_str().unwrap());
        let expect = &case["expect"];
        let names = |names: Vec<&str>| json!(names);
        let tags = |found: &Frontmatter| names(found.tags.iter().map(|tag| tag.name.as_str()).collect());
        match (&expect["frontmatter"], &found) {
            (Value::Object(_), Some(found)) => {
                assert_eq!(Value::Object(found.values()), expect["frontmatter"], "{case}")
            }
            (Value::String(_), Some(found)) => assert!(found.error.is_some(), "{case}"),
            (Value::Null, Some(found)) => {
                assert_eq!(expect.get("tags").is_none(), found.properties.is_empty(), "{case}")
            }
            (expected, None) => assert!(expected.is_null(), "{case}"),
            other => panic!("{other:?} in {case}"),
        }
        if let Some(expected) = expect.get("tags") {
            assert_eq!(&found.as_ref().map_or(json!([]), tags), expected, "{case}");
        }
        if let Some(expected) = expect.get("aliases") {
            assert_eq!(&found.as_ref().map_or(json!([]), |found| json!(found.aliases)), expected, "{case}");
        }
        if let Some(expected) = expect.get("body_start") {
            assert_eq!(json!(body_start), *expected, "{case}");
        }
    }
}

#[test]
fn delimiters() {
    let check = |text: &str, expect: Option<&str>, body: &str| {
        let (found, start) = read(text);
        assert_eq!(found.map(|found| found.yaml_span.of(text)), expect, "{text:?}");
        assert_eq!(&text[start..], body, "{text:?}");
    };
    check("---\na: 1\n---\nx", Some("a: 1\n"), "x");
    check("\u{FEFF}---\r\na: 1\r\n---\r\nx", Some("a: 1\r\n"), "x");
    check("---\ra: 1\r---\rx", Some("a: 1\r"), "x");
    check("--- \t\na: 1\n--- \nx", Some("a: 1\n"), "x");
    check("---\n---", Some(""), "");
    check("---\na: |\n  x\n---\n  y\n---\n", Some("a: |\n  x\n"), "  y\n---\n");
    check("---\na: 1\n...\n---\n", Some("a: 1\n...\n"), "");
    check("---\na: 1\n...\n", None, "---\na: 1\n...\n");
    check("---\na: 1\n ---\n", None, "---\na: 1\n ---\n");
    check("---\na: 1\n----\n", None, "---\na: 1\n----\n");
    check("--- x\na: 1\n---\n", None, "--- x\na: 1\n---\n");
    check("\n---\na: 1\n---\n", None, "\n---\na: 1\n---\n");
    check("\u{FEFF}x", None, "x");
    check("---", None, "---");
    check("", None, "");
}

#[test]
fn values_follow_the_core_schema() {
    check_values(
        "a: ~\nb: null\nc:\nd: ''\ne: Null",
        json!({"a": null, "b": null, "c": null, "d": "", "e": null}),
    );
    check_values(
        "a: true\nb: False\nc: yes\nd: off\ne: tRUE",
        json!({"a": true, "b": false, "c": "yes", "d": "off", "e": "tRUE"}),
    );
    check_values(
        "a: 0o17\nb: 0x1F\nc: 1e3\nd: 007\ne: -1.50\nf: +3\ng: .5\nh: 5.\ni: 1_000\nj: 0b1\nk: 1e\nl: -0x1",
        json!({"a": 15, "b": 31, "c": 1000, "d": 7, "e": -1.5, "f": 3, "g": 0.5, "h": 5, "i": "1_000", "j": "0b1", "k": "1e", "l": "-0x1"}),
    );
    check_values(
        "a: .inf\nb: -.INF\nc: .NaN\nd: 1e999",
        json!({"a": ".inf", "b": "-.INF", "c": ".NaN", "d": "1e999"}),
    );
    check_values(
        "a: 9007199254740993\nb: 18446744073709551616",
        json!({"a": 9007199254740993u64, "b": 18446744073709551616.0}),
    );
    check_values(
        "d: 2024-07-21\nt: 2024-07-21T12:37:00\nh: 12:30",
        json!({"d": "2024-07-21", "t": "2024-07-21T12:37:00", "h": "12:30"}),
    );
    check_values(
        "a: !!str 12\nb: !!int \"3\"\nc: !x 4\nd: !!str",
        json!({"a": "12", "b": 3, "c": "4", "d": ""}),
    );
    check_values("1: a\ntrue: b\n1.0: c\n\"q\": d", json!({"1": "a", "true": "b", "1.0": "c", "q": "d"}));
    check_values("up: [[n]]", json!({"up": [["n"]]}));
    check_values("d: {{date}}", json!({"d": {"{date}": null}}));
    check_values("# only a comment", json!({}));
}

#[test]
fn scalars_of_several_lines() {
    check_values("a: |\n  x\n    y\n\n  z\nb: >-\n  p\n  q", json!({"a": "x\n  y\n\nz\n", "b": "p q"}));
    check_values("a: x\n  y # c\nb: \"p\n  q\\\n  r\"", json!({"a": "x y", "b": "p qr"}));
    check_values("a: \"\\u00e9\\x41\\n\"\nb: 'it''s'", json!({"a": "éA\n", "b": "it's"}));
}

#[test]
fn anchors_aliases_and_merges() {
    check_values("a: &x [1, 2]\nb: *x", json!({"a": [1, 2], "b": [1, 2]}));
    check_values(
        "a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3",
        json!({"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}}),
    );
    check_values("a: &x {p: 1}\np: 0\n<<: *x\nq: 2", json!({"a": {"p": 1}, "p": 0, "q": 2}));
    check_values("a: &x {p: 1}\n<<: *x\np: 0", json!({"a": {"p": 1}, "p": 0}));
    check_values(
        "a: &x {p: 1}\nb: &y {p: 2, q: 3}\nc: {<<: [*x, *y]}",
        json!({"a": {"p": 1}, "b": {"p": 2, "q": 3}, "c": {"p": 1, "q": 3}}),
    );
    let (_, found) = block("a: &x v\nb: *x\nc: 1\nd: !!str 2");
    let shared: Vec<bool> = found.properties.iter().map(|property| property.shared).collect();
    assert_eq!(shared, [true, true, false, true]);
}

#[test]
fn invalid_yaml_is_reported_with_its_line() {
    check_error("a: 1\na: 2", "line 3: the key \"a\" occurs twice");
    check_error("a:\n  b: 1\n  b: 2", "line 4: the key \"b\" occurs twice");
    check_error("a: 1\n\tb: 2", "line");
    check_error("a: [1", "line");
    check_error("a: b: c", "line 2:");
    check_error("a: @x", "line 2:");
    check_error("a: *nowhere", "line 2:");
    check_error("a: &x [*x]", "line 2: an alias refers to the node that it is part of");
    check_error("just text", "line 2: the block is not a mapping");
    check_error("- a\n- b", "line");
    check_error("a: 1\n...\nb: 2", "line 4: a second YAML document");
    check_error("k: %foo", "line 2:");
    check_error("a: 'x", "line 3:");
    // Keys that differ in case only are two keys.
    check_values("a: 1\nA: 2", json!({"a": 1, "A": 2}));
}

#[test]
fn frontmatter_may_be_a_json_object() {
    let (text, found) = block("{\n  \"tags\": \"journal\",\n  \"list\": [1, \"x\"]\n}");
    assert!(found.flow);
    assert_eq!(Value::Object(found.values()), json!({"tags": "journal", "list": [1, "x"]}));
    assert_eq!(found.tags[0].span.of(&text), "journal");
    assert!(!block("a: {b: 1}").1.flow);
}

#[test]
fn an_invalid_byte_hides_only_itself() {
    check_values("a: caf\u{1A}\nb: 1", json!({"a": "caf_", "b": 1}));
}

#[test]
fn spans_of_entries() {
    check_spans("a: 1", &["a: 1"]);
    check_spans("# above\na: 1   # beside  \n# below\nb: 2", &["a: 1   # beside", "b: 2"]);
    check_spans("a:   # nothing\nb:\nc: ~", &["a:   # nothing", "b:", "c: ~"]);
    check_spans(
        "a:\n  - x # c\n  # inner\n  - y # d\n\n# z\nb: [1, 2] # e",
        &["a:\n  - x # c\n  # inner\n  - y # d", "b: [1, 2] # e"],
    );
    check_spans("a:\n- x\n-\nb: {k: 1}", &["a:\n- x\n-", "b: {k: 1}"]);
    check_spans("a: |\n  x\n\n  y\n\nb: >-\n  z\n", &["a: |\n  x\n\n  y", "b: >-\n  z"]);
    check_spans("a: | # c\n\n\nb: 1", &["a: | # c", "b: 1"]);
    check_spans("'a' : 'it''s'\n\"b\": \"x\n  y\"", &["'a' : 'it''s'", "\"b\": \"x\n  y\""]);
    check_spans("a: &x !!str v\nb: *x # c", &["a: &x !!str v", "b: *x # c"]);
    check_spans("a:\n  b:\n    c: 1\n  d: []\ne: 1", &["a:\n  b:\n    c: 1\n  d: []", "e: 1"]);
}

#[test]
fn spans_of_scalars() {
    let yaml =
        "t: x y # c\nq: 'it''s'\nl:\n  - \"a\"\n  - b\nn:\n  m: {k: [1, ~]}\ne:\nb: |\n  x\n  y\n\nf: *z";
    let (text, found) = block(&format!("z: &z 1\n{yaml}"));
    let scalars: Vec<_> = found
        .properties
        .iter()
        .flat_map(|property| &property.scalars)
        .map(|scalar| format!("{} {:?} {:?}", scalar.path, scalar.style, scalar.span.of(&text)))
        .collect();
    insta::assert_snapshot!(scalars.join("\n"), @r#"
    z Plain "1"
    t Plain "x y"
    q Single "'it''s'"
    l.0 Double "\"a\""
    l.1 Plain "b"
    n.m.k.0 Plain "1"
    n.m.k.1 Plain "~"
    e Plain ""
    b Literal "|\n  x\n  y"
    f Alias "*z"
    "#);
    let values: Vec<_> = found
        .properties
        .iter()
        .map(|property| {
            format!(
                "{} {:?} {:?}",
                property.key_span.of(&text),
                property.style,
                property.value_span.of(&text)
            )
        })
        .collect();
    insta::assert_snapshot!(values.join("\n"), @r#"
    z Plain "1"
    t Plain "x y"
    q Single "'it''s'"
    l BlockList "- \"a\"\n  - b"
    n BlockMap "m: {k: [1, ~]}"
    e Plain ""
    b Literal "|\n  x\n  y"
    f Alias "*z"
    "#);
    let empty = found.get("E").unwrap();
    assert_eq!(&text[..empty.value_span.start][text.find("e:").unwrap()..], "e:");
}

#[test]
fn lists_without_indent() {
    let (text, found) = block("a:\n- x\n- [y]\nb:\n  - - z");
    let values: Vec<_> = found.properties.iter().map(|property| property.value_span.of(&text)).collect();
    assert_eq!(values, ["- x\n- [y]", "- - z"]);
}

#[test]
fn spans_in_escaped_strings_map_to_source_bytes() {
    let (text, found) = block(r#"a: "x\u00e9y\"z""#);
    let unquoted = found.properties[0].scalars[0].unquote(&text).unwrap();
    assert_eq!(unquoted.text, "xéy\"z");
    assert_eq!(unquoted.raw(Span::new(1, 3)).of(&text), "\\u00e9");
    assert_eq!(unquoted.raw(Span::new(3, 5)).of(&text), "y\\\"");
    assert_eq!(unquoted.raw(Span::new(0, 6)).of(&text), r#"x\u00e9y\"z"#);
}

fn check_tags(yaml: &str, expect: &[(&str, &str)]) {
    let (text, found) = block(yaml);
    let tags: Vec<_> = found.tags.iter().map(|tag| (tag.name.as_str(), tag.span.of(&text))).collect();
    assert_eq!(tags, expect, "{yaml}");
    assert!(found.tags.iter().all(|tag| tag.in_frontmatter));
}

#[test]
fn tags() {
    check_tags("tags: [a, \"#b/c\", 'd/']", &[("a", "a"), ("b/c", "#b/c"), ("d", "d")]);
    check_tags("Tags:\n- '#x'\n- sample/tag", &[("x", "#x"), ("sample/tag", "sample/tag")]);
    check_tags("tags: journal", &[("journal", "journal")]);
    check_tags("tags: \" #j \"", &[("j", "#j")]);
    check_tags("tags: a, b", &[]);
    check_tags("tags: a b", &[]);
    check_tags("tags: [1984, '1984', y1984, ~, '', a.b, '#', '##x', [n], {m: 1}]", &[("y1984", "y1984")]);
    check_tags("tags: [\"caf\\u00e9\"]", &[("café", "caf\\u00e9")]);
    check_tags("x: &t [a, b]\ntags: *t", &[("a", "*t"), ("b", "*t")]);
    check_tags("tags: >-\n  folded", &[("folded", ">-\n  folded")]);
    check_tags("tag: x\nTAG: y\ntopic: '#z'", &[]);
    check_tags("tags:", &[]);
    assert_eq!(
        [tag_name("#a/b/"), tag_name("1/2"), tag_name("1/"), tag_name("日本"), tag_name("🙂")],
        [Some("a/b"), Some("1/2"), None, Some("日本"), Some("🙂")]
    );
}

#[test]
fn aliases() {
    let check = |yaml: &str, expect: &[&str]| assert_eq!(block(yaml).1.aliases, expect, "{yaml}");
    check("aliases: [A, 'B, C', ~, '', 7]", &["A", "B, C", "7"]);
    check("Aliases: One, whole", &["One, whole"]);
    check("aliases:", &[]);
    check("alias: x", &[]);
}

/// Checks key, link and destination of every link.
fn check_links(yaml: &str, expect: &[(&str, &str, &str, &str)]) {
    let (text, found) = block(yaml);
    let links: Vec<_> = found
        .links
        .iter()
        .map(|link| {
            (
                link.key.as_deref().unwrap_or(""),
                link.path.as_str(),
                link.span.of(&text),
                link.dest_span.of(&text),
            )
        })
        .collect();
    assert_eq!(links, expect, "{yaml}");
}

#[test]
fn links() {
    check_links("up: \"[[n#H|a]]\"", &[("up", "n", "[[n#H|a]]", "n#H")]);
    check_links(
        "list:\n  - '[[it''s]]'\n  - x\n  - \"[[b]]\"",
        &[("list.0", "it's", "[[it''s]]", "it''s"), ("list.2", "b", "[[b]]", "b")],
    );
    check_links("a: {b: [\"![[i.png]]\"]}", &[("a.b.0", "i.png", "![[i.png]]", "i.png")]);
    check_links("m: \"[t](a%20b.md)\"", &[("m", "a b.md", "[t](a%20b.md)", "a%20b.md")]);
    check_links("m: \" [[n]] \"", &[("m", "n", "[[n]]", "n")]);
    check_links("m: \"[[caf\\u00e9]]\"", &[("m", "café", "[[caf\\u00e9]]", "caf\\u00e9")]);
    check_links("b: |\n  [[n]]", &[("b", "n", "[[n]]", "n")]);
    check_links("b: >-\n\n  [x](n.md)\n", &[("b", "n.md", "[x](n.md)", "n.md")]);
    check_links("b: |\n  [[n|\n  x]]", &[]);
    check_links("up: [[n]]\nsee: see [[n]]\ntwo: \"[[a]] [[b]]\"\nweb: \"[x](https://e.org)\"", &[]);
    check_links("a: &x \"[[n]]\"\nb: *x", &[("a", "n", "[[n]]", "n")]);
    let (_, found) = block("a: 1\nup: \"[[n]]\"\nb: |\n  [[m]]");
    let about: Vec<_> = found.links.iter().map(|link| (link.line, link.form.name())).collect();
    assert_eq!(about, [(3, "fm-wiki"), (5, "fm-wiki")]);
}

#[test]
fn types() {
    let check =
        |value: Value, expect: PropertyType| assert_eq!(kind_of("k", &value, None), expect, "{value}");
    check(json!(true), PropertyType::Checkbox);
    check(json!(1.5), PropertyType::Number);
    check(json!([]), PropertyType::List);
    check(json!("2024-07-21"), PropertyType::Date);
    check(json!("2024-07-21T12:37"), PropertyType::Datetime);
    check(json!("2024-07-21T12:37:01"), PropertyType::Datetime);
    check(json!("2024-7-21"), PropertyType::Text);
    check(json!("2024-07-21 12:37"), PropertyType::Text);
    check(json!(null), PropertyType::Text);
    check(json!({"a": 1}), PropertyType::Text);
    assert_eq!(kind_of("k", &json!("x"), Some(PropertyType::Date)), PropertyType::Date);
    assert_eq!(kind_of("TAGS", &json!("x"), Some(PropertyType::Text)), PropertyType::Tags);
    assert_eq!(kind_of("aliases", &json!("x"), None), PropertyType::Aliases);
    assert_eq!(kind_of("cssClasses", &json!("x"), None), PropertyType::List);
}

#[test]
fn nested_maps_are_flat() {
    let (_, found) = block("a:\n  b: 1\n  c: {d: [x, y], e: {}}\nf: 2");
    let flat: Vec<String> = found.flat().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(flat, ["a.b=1", "a.c.d=[\"x\",\"y\"]", "a.c.e={}", "f=2"]);
    assert_eq!(found.get("F").map(|property| &property.value), Some(&json!(2)));
    assert!(found.get("b").is_none());
}

#[test]
fn hostile_input_is_refused_with_an_error() {
    let bomb: String =
        (1..30).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(", "))).collect();
    check_error(&format!("a0: &a0 [x, x, x]\n{bomb}"), "line 7: aliases or long keys expand");
    let chain: String = (1..1000).map(|n| format!("a{n}: &a{n} [*a{}]\n", n - 1)).collect();
    check_error(&format!("a0: &a0 x\n{chain}"), "line 102: collections nest more than 100 deep");
    let stairs: String = (0..2000).map(|n| format!("{}k:\n", " ".repeat(n))).collect();
    for deep in ["[".repeat(10_000), "{a: ".repeat(10_000), "- ".repeat(10_000), "? ".repeat(10_000), stairs]
    {
        check_error(&format!("a:\n  {deep}"), "line");
    }
    check_error(
        &format!("? {}\n: [{}]", "k".repeat(100_000), "x,".repeat(100_000)),
        "line 3: aliases or long keys",
    );
}

#[test]
fn large_blocks_are_read_in_linear_time() {
    let flow: String = (0..50_000).map(|n| format!("b{n},")).collect();
    assert_eq!(block(&format!("{{{flow}}}")).1.properties.len(), 50_000);
    let tags = vec!["'#x'"; 100_000].join(", ");
    assert_eq!(block(&format!("tags: [{tags}]")).1.tags.len(), 100_000);
    assert_eq!(
        block(&format!("a: |\n{}\nb:{}", "\n   ".repeat(200_000), "\n# x".repeat(200_000)))
            .1
            .properties
            .len(),
        2
    );
    assert_eq!(block(&format!("a: {}", "x".repeat(10_000_000))).1.properties.len(), 1);
}

/// Checks that every span of a block is within the span that contains it.
fn assert_sound(text: &str) {
    let (found, body_start) = read(text);
    assert!(text.is_char_boundary(body_start));
    let Some(found) = found else { return };
    assert!(found.span.encloses(found.yaml_span) && found.span.end == body_start);
    for property in &found.properties {
        let inside = [property.key_span, property.value_span];
        assert!(found.yaml_span.encloses(property.span), "{property:?}");
        assert!(inside.iter().all(|&span| property.span.encloses(span)), "{property:?} in {text:?}");
        for scalar in &property.scalars {
            assert!(property.span.encloses(scalar.span), "{property:?} in {text:?}");
            assert!(text.get(scalar.span.start..scalar.span.end).is_some());
            let is_whole = scalar.path == property.key && scalar.style == Style::Plain;
            if is_whole
                && !text.contains('\u{1A}')
                && let (Some(value), Some(unquoted)) = (property.value.as_str(), scalar.unquote(text))
            {
                assert_eq!(unquoted.text, value);
            }
        }
    }
    for link in &found.links {
        assert!(found.yaml_span.encloses(link.span) && link.span.encloses(link.dest_span), "{link:?}");
        assert!(link.dest_span.encloses(link.path_span), "{link:?} in {text:?}");
    }
    for tag in &found.tags {
        assert!(found.yaml_span.encloses(tag.span) && text.get(tag.span.start..tag.span.end).is_some());
    }
}

/// Makes a line of frontmatter as notes have it, or nearly so.
fn usual_line() -> impl Strategy<Value = String> {
    let word = "(word|two words|1|-5|0x1F|1e3|2020-01-02|null|~|true|Yes|'q'|\"q\"|\"\\[\\[n#h\\|a]]\"|'!\\[\\[n]]'|\\[\\[n]]|it's|a: b|a:b|:| #|#x|…|ü|文|'|\"|\\\\|\\[x]|\\{|,|\\||>|&a|\\*a|!t|@|%|`|\\?|<<|=|-|\\.\\.\\.|---|/x|\u{85}|\u{A0}|\u{2028}|\u{FEFF}|\u{1F600}|\t| )";
    let key = "(a|b|tags|aliases|date|ms:k|a b|x\\.y/z-1|Key|a |é|1|null|<<|'a'|a:)";
    let entry = (key, "(: |:  |:)", string_regex(&format!("{word}{{0,3}}")).unwrap(), "( {0,2}|)")
        .prop_map(|(key, colon, value, end)| key + &colon + &value + &end);
    let item = ("( {0,3})", "(- |-  |-)", string_regex(&format!("{word}{{0,2}}")).unwrap())
        .prop_map(|(indent, dash, value)| indent + &dash + &value);
    // Most lists have one depth.
    let even = ("(- |  - )", "(word|two words|'q'|\"\\[\\[n]]\"|1)").prop_map(|(dash, value)| dash + &value);
    let other = "( {0,2}| more|# c|[a-z:' \"-]{0,8})".prop_map(|line| line);
    prop_oneof![6 => entry, 2 => item, 4 => even, 1 => other]
}

proptest! {
    #[test]
    fn parsing_any_text_does_not_panic(text in any::<String>()) {
        assert_sound(&text);
        assert_sound(&format!("---\n{text}\n---\n"));
        let (fenced, _) = read(&format!("---\n{text}\n---\n"));
        prop_assert!(fenced.is_some());
    }

    #[test]
    fn parsing_any_yaml_does_not_panic(yaml in "([a-c]{1,2}|tags|: |:\n|- |  |\n|\\[|\\]|\\{|\\}|, |'|\"|#| #|\\| |>|&a |\\*a |!!str |\\? |<<|\\[\\[|\\]\\]|~|1|é|\\\\|\r\n){0,30}") {
        assert_sound(&format!("---\n{yaml}\n---\nbody"));
    }

    /// A comment at the end changes no value, and makes the fast path leave the block to the parser.
    #[test]
    fn the_fast_path_agrees_with_the_yaml_parser(
        lines in proptest::collection::vec(usual_line(), 0..8),
        end in "\n|\r\n",
    ) {
        let text = |last: &str| format!("---{end}{}{last}---{end}", lines.iter().map(|line| format!("{line}{end}")).collect::<String>());
        let (usual, parsed) = (text(""), text(&format!("# comment{end}")));
        let [usual, parsed] = [read(&usual).0, read(&parsed).0].map(Option::unwrap);
        prop_assert_eq!(usual.error.is_some(), parsed.error.is_some());
        prop_assert_eq!(usual.properties, parsed.properties);
        prop_assert_eq!((usual.tags, usual.aliases, usual.links), (parsed.tags, parsed.aliases, parsed.links));
        prop_assert_eq!(usual.flow, parsed.flow);
    }

    #[test]
    fn plain_lines_are_read_back(keys in proptest::collection::btree_map("[a-z]{1,5}", "[A-Z][a-z ]{0,8}[a-z]", 1..6)) {
        let yaml: String = keys.iter().map(|(key, value)| format!("{key}: {value} # c\n")).collect();
        let (text, found) = block(&yaml);
        prop_assert!(found.error.is_none());
        for (property, (key, value)) in found.properties.iter().zip(&keys) {
            assert_eq!((property.key_span.of(&text), property.value_span.of(&text)), (key.as_str(), value.as_str()));
            assert_eq!(property.span.of(&text), format!("{key}: {value} # c"));
        }
    }
}
