//! Tests reading a canvas (docs/spec/obsidian.md 2.9): links, tags and text, with spans inside the JSON strings.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop loudly"
)]

use proptest::prelude::{any, proptest};
use serde_json::json;

use crate::canvas::{parse, searchable};
use crate::note::{Note, Separator};
use crate::span::Span;

const BOARD: &str = r##"{
	"nodes":[
		{"id":"1","type":"file","file":"a/\u00fcn.md","subpath":"#H","x":0},
		{"id":"2","type":"text","text":"# Plan\n\n[[n#x|say \"hi\"]] \u00e9t\u00e9 #top\\ic\n![](p%20q.png)"},
		{"id":"3","type":"group","label":"A \"group\"","background":"bg.png"},
		{"id":"4","type":"link","url":"https://e.org/[[no]]"},
		{"id":"5","type":"file","file":""},
		{"id":"6","type":"file","text":"[[no]]"},
		7
	],
	"edges":[{"id":"e","label":"leads to"}],
	"other":{"type":"text","text":"[[no]]"}
}"##;

/// Gives the text of the pieces, those of one run together.
fn pieces(text: &str, note: &Note) -> Vec<String> {
    let plain = searchable(text);
    let mut joined: Vec<String> = Vec::new();
    for piece in &note.pieces {
        let said = piece.span.of(&plain);
        match joined.last_mut() {
            Some(last) if piece.separator == Separator::None => last.push_str(said),
            _ => joined.push(said.to_owned()),
        }
    }
    joined
}

#[test]
fn spans_of_links_are_inside_the_json_strings() {
    let note = parse(BOARD);
    let links: Vec<_> = note
        .links
        .iter()
        .map(|link| {
            let of = |span: Span| span.of(BOARD);
            let parts = [of(link.span), of(link.path_span), of(link.subpath_span)].join(" ~ ");
            format!("{}: {} {} {parts} line {}", link.form.name(), link.path, link.subpath, link.line)
        })
        .collect();
    insta::assert_snapshot!(links.join("\n"), @r##"
    canvas-file: a/ün.md #H a/\u00fcn.md ~ a/\u00fcn.md ~ #H line 3
    canvas-text-wiki: n #x [[n#x|say \"hi\"]] ~ n ~ #x line 4
    canvas-text-md-plain: p q.png  ![](p%20q.png) ~ p%20q.png ~  line 4
    canvas-group: bg.png  bg.png ~ bg.png ~  line 5
    "##);
    let alias = note.links[1].alias_span.unwrap();
    assert_eq!(alias.of(BOARD), r#"say \"hi\""#);
}

#[test]
fn tags_and_text_of_cards_are_read() {
    let note = parse(BOARD);
    let tags: Vec<_> = note.tags.iter().map(|tag| (tag.name.as_str(), tag.span.of(BOARD))).collect();
    assert_eq!(tags, [("top", "#top")]);
    let said = pieces(BOARD, &note).join(" / ");
    for part in ["Plan", "say \"hi\"", "été", "A \"group\"", "https://e.org/[[no]]", "leads to"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("p%20q.png") && !said.contains("bg.png"));
    assert_eq!(searchable(BOARD).len(), BOARD.len());
}

#[test]
fn empty_canvases_have_no_links_and_invalid_json_is_reported() {
    for text in
        ["", " \n", "{}", "[]", "7", "{\"nodes\":{}}", "{\"nodes\":[{\"type\":\"text\"}]}", "\u{FEFF}{}"]
    {
        let note = parse(text);
        assert!(note.links.is_empty() && note.problems.is_empty(), "{text}");
    }
    for text in ["{", "{\"nodes\":[}", "x", "{} {}"] {
        let note = parse(text);
        assert_eq!(note.problems[0].code, "json-unparsable", "{text}");
    }
}

#[test]
fn the_byte_order_mark_counts_in_spans() {
    let text = "\u{FEFF}{\"nodes\":[{\"type\":\"text\",\"text\":\"[[n]]\"}]}";
    assert_eq!(parse(text).links[0].span.of(text), "[[n]]");
}

#[test]
fn deep_and_large_canvases_do_not_overflow() {
    let deep = format!("{{\"x\":{}1{},\"nodes\":[]}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse(&deep).problems.is_empty());
    assert_eq!(parse(&"[".repeat(100_000)).problems.len(), 1);
    let node = r#"{"type":"text","text":"a \"[[n]]\" \u00e9"}"#;
    let many = format!("{{\"nodes\":[{}]}}", vec![node; 10_000].join(",\n"));
    assert_eq!(parse(&many).links.len(), 10_000);
    let one = json!({"nodes": [{"type": "text", "text": "\"[[n]]\" ".repeat(100_000)}]}).to_string();
    assert_eq!(parse(&one).links.len(), 100_000);
}

#[test]
fn an_unpaired_surrogate_becomes_a_replacement_character() {
    let text = r#"{"nodes":[{"type":"text","text":"\ud83d [[n]] \ud83d\ude42"}]}"#;
    let note = parse(text);
    assert_eq!(note.links[0].span.of(text), "[[n]]");
    assert!(pieces(text, &note).concat().contains('🙂'));
}

proptest! {
    #[test]
    fn text_nodes_are_parsed_like_notes(text in "([a-z ]|\\[\\[|\\]\\]|#|\\||\n|\"|\\\\|\t|é|🙂|\u{1}|!|`){0,40}", ascii in any::<bool>()) {
        let mut string = serde_json::to_string(&text).unwrap();
        if ascii {
            let escape = |c: char| if c.is_ascii() { c.to_string() } else {
                c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            };
            string = string.chars().map(escape).collect();
        }
        let canvas = format!("{{\"nodes\":[{{\"type\":\"text\",\"text\":{string}}}]}}");
        let (outer, inner) = (parse(&canvas), Note::parse(&text));
        assert_eq!(outer.links.len(), inner.links.len());
        for (outer, inner) in outer.links.iter().zip(&inner.links) {
            assert_eq!((&outer.path, &outer.subpath), (&inner.path, &inner.subpath));
            let decoded: String = serde_json::from_str(&format!("\"{}\"", outer.span.of(&canvas))).unwrap();
            assert_eq!(decoded, inner.span.of(&text));
        }
        let plain = searchable(&canvas);
        let said = |note: &Note, text: &str| note.pieces.iter().map(|piece| piece.span.of(text)).collect::<String>();
        assert_eq!(said(&outer, &plain), said(&inner, &text));
    }

    #[test]
    fn parsing_any_text_does_not_panic(text in any::<String>()) {
        parse(&text);
        assert_eq!(searchable(&text).len(), text.len());
    }
}
