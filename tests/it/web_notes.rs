//! Tests how the page renders notes and canvases: footnotes and their numbers, and the links of cards.

use serde_json::{Value, json};

use crate::support::TestVault;
use crate::web::Page;

/// Takes from a rendered note what only says where its source is.
fn without_lines(html: &str) -> String {
    let mut parts = html.split(" data-line=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('"').unwrap().1)
}

/// Shortens a rendered note: a reference becomes `{1}`, the list at the end `|1 text|2 text`.
fn short(html: &str) -> String {
    let mut text = without_lines(html).replace('\n', "");
    let mut list = String::new();
    if let Some((body, notes)) = text.clone().split_once("<section class=\"footnotes\"><ol>") {
        for item in notes.trim_end_matches("</ol></section>").split("</li>").filter(|item| !item.is_empty()) {
            let (number, rest) = item.strip_prefix("<li id=\"fn-").unwrap().split_once("\">").unwrap();
            // The way back is at the end of the text, in its last paragraph.
            let back = format!(" <a class=\"footnote-back\" href=\"#fnref-{number}\">\u{21A9}</a></p>");
            match rest.strip_suffix(&back) {
                Some(rest) => list.push_str(&format!("|{number} {rest}</p>")),
                None => list.push_str(&format!("|{number}!{rest}")),
            }
        }
        text = body.to_owned();
    }
    for number in 1..9 {
        for id in [format!(" id=\"fnref-{number}\""), String::new()] {
            let own = format!("<sup class=\"footnote-ref\"><a href=\"#fn-{number}\"{id}>{number}</a></sup>");
            let shown = if id.is_empty() { format!("{{{number}'}}") } else { format!("{{{number}}}") };
            text = text.replace(&own, &shown);
            list = list.replace(&own, &shown);
        }
    }
    text + &list
}

#[test]
fn footnotes_are_numbered_in_the_order_of_their_references() {
    let cases = [
        // Within a line, and with an id.
        (
            "A^[first *one*] b[^x] c^[third].\n\n[^x]: second\n",
            "<p>A{1} b{2} c{3}.</p>|1 <p>first <em>one</em></p>|2 <p>second</p>|3 <p>third</p>",
        ),
        // The order of the definitions means nothing.
        ("[^b]: two\n\n[^a]: one\n\nx[^a] y[^b] z[^a]\n", "<p>x{1} y{2} z{1'}</p>|1 <p>one</p>|2 <p>two</p>"),
        // One that nothing refers to comes last, without a way back.
        ("[^z]: alone\n\nx[^a]\n\n[^a]: one\n", "<p>x{1}</p>|1 <p>one</p>|2!<p>alone</p>"),
        // References in footnotes come after those of the text.
        (
            "x[^a] y[^b]\n\n[^a]: one[^c] and^[four]\n\n[^b]: two\n\n[^c]: three\n",
            "<p>x{1} y{2}</p>|1 <p>one{3} and{4}</p>|2 <p>two</p>|3 <p>three</p>|4 <p>four</p>",
        ),
        // Brackets, links and code in the text of one.
        (
            "a^[b [c] `]` \\] [w](https://x.example) [[Other|o]] ==m==] d",
            "<p>a{1} d</p>|1 <p>b [c] <code>]</code> ] <a class=\"external\" href=\"https://x.example\" rel=\"noopener noreferrer\" target=\"_blank\">w</a> <a class=\"internal\" href=\"/note/Other.md\" data-path=\"Other.md\">o</a> <mark>m</mark></p>",
        ),
        (
            "a^[see https://x.example] b",
            "<p>a{1} b</p>|1 <p>see <a class=\"external\" href=\"https://x.example\" rel=\"noopener noreferrer\" target=\"_blank\">https://x.example</a></p>",
        ),
        // No footnote is in another one's text.
        ("a^[b ^[c] d] e", "<p>a{1} e</p>|1 <p>b ^[c] d</p>"),
        // Over lines, within a highlight, and in every kind of block.
        ("a^[b\nc] d", "<p>a{1} d</p>|1 <p>bc</p>"),
        ("==a^[b] c==", "<p><mark>a{1} c</mark></p>|1 <p>b</p>"),
        (
            "# a^[b]\n\n- c^[d]\n\n> e^[f]\n",
            "<h1 id=\"h-a-b\">a{1}</h1><ul><li>c{2}</li></ul><blockquote><p>e{3}</p></blockquote>|1 <p>b</p>|2 <p>d</p>|3 <p>f</p>",
        ),
        (
            "| a^[b] |\n|---|\n| c^[d] |\n",
            "<table><thead><tr><th>a{1}</th></tr></thead><tbody><tr><td>c{2}</td></tr></tbody></table>|1 <p>b</p>|2 <p>d</p>",
        ),
        (
            "> [!note] a^[b]\n> c\n",
            "<div class=\"callout\" data-callout=\"note\"><div class=\"callout-title\">a{1}</div><div class=\"callout-body\"><p>c</p></div></div>|1 <p>b</p>",
        ),
        // Code, escapes, comments, links and what has no end or no text are none.
        ("`^[a]` \\^[b] ^\\[c] ^ [d] ^[] ^[e", "<p><code>^[a]</code> ^[b] ^[c] ^ [d] ^[] ^[e</p>"),
        (
            "a %%^[b]%%[[Other|^[c]]]",
            "<p>a <a class=\"internal\" href=\"/note/Other.md\" data-path=\"Other.md\">^[c]</a></p>",
        ),
        ("*a ^[b* c] d", "<p><em>a ^[b</em> c] d</p>"),
        ("    ^[a]\n", "<pre><code>^[a]</code></pre>"),
        ("a\\\\^[b]", "<p>a\\{1}</p>|1 <p>b</p>"),
    ];
    assert_eq!(cases.len(), 17);
    let vault = TestVault::new(&[("Other.md", "other\n")]);
    for (at, (text, _)) in cases.iter().enumerate() {
        vault.write(&format!("N{at}.md"), text);
    }
    let page = Page::start(&vault, &[]);
    for (at, (text, expected)) in cases.iter().enumerate() {
        let html = page.read(&format!("note?name=N{at}"))["html"].as_str().unwrap().to_owned();
        assert_eq!(short(&html), *expected, "{text:?}\n{html}");
    }
}

#[test]
fn an_embedded_part_has_the_footnotes_that_are_in_it() {
    let vault = TestVault::new(&[
        ("A.md", "x^[own]\n\n![[B#Part]]\n"),
        ("B.md", "# One\n\nbefore^[no]\n\n# Part\n\nhere^[yes]\n"),
    ]);
    let page = Page::start(&vault, &[]);
    let html = without_lines(page.read("note?name=A")["html"].as_str().unwrap());
    assert!(html.contains("<p>here<sup class=\"footnote-ref\">1</sup></p>"), "{html}");
    assert!(html.contains("<li><p>yes</p>\n</li>"), "{html}");
    assert!(!html.contains(">no<"), "{html}");
    assert!(html.contains("<li id=\"fn-1\"><p>own <a class=\"footnote-back\""), "{html}");
}

#[test]
fn links_of_cards_lead_where_those_of_notes_do() {
    let node = |id: &str, y: i64, fields: Value| {
        let mut node = json!({ "id": id, "x": 0, "y": y, "width": 100, "height": 50 });
        node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        node
    };
    // The order of the file is not that of the cards on the canvas.
    let canvas = json!({ "nodes": [
        node("last", 90, json!({ "type": "text", "text": "[[Deep#Part|d]] [[Nowhere]] [m](../Notes/Deep.md)" })),
        node("group", 0, json!({ "type": "group", "label": "G", "background": "pic.png" })),
        node("file", 10, json!({ "type": "file", "file": "Notes/Deep.md", "subpath": "#Part" })),
        node("gone", 20, json!({ "type": "file", "file": "Gone.md" })),
        node("front", 30, json!({ "type": "text", "text": "---\nup: \"[[Deep]]\"\n---\n![[Deep#Part]] [[#x]]" })),
        node("pic", 40, json!({ "type": "file", "file": "pic.png" })),
        node("web", 50, json!({ "type": "link", "url": "https://x.example" })),
    ], "edges": [] });
    let vault = TestVault::new(&[
        ("Boards/B.canvas", &canvas.to_string()),
        ("Notes/Deep.md", "# Deep\n\n## Part\n\npart text\n"),
        ("pic.png", "png"),
    ]);
    let page = Page::start(&vault, &[]);
    let note = page.read("note?name=Boards/B.canvas");
    let card = |id: &str| {
        let nodes = note["canvas"]["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|node| node["id"] == id).unwrap();
        without_lines(node["html"].as_str().unwrap()).trim().to_owned()
    };
    let deep = |part: &str, shown: &str| {
        format!(
            "<a class=\"internal\" href=\"/note/Notes/Deep.md{part}\" data-path=\"Notes/Deep.md\">{shown}</a>"
        )
    };
    let lost = |name: &str| format!("<a class=\"internal unresolved\" data-link=\"{name}\">{name}</a>");
    let cases = [
        ("last", format!("<p>{} {} {}</p>", deep("#h-part", "d"), lost("Nowhere"), deep("", "m"))),
        ("group", "G".to_owned()),
        ("file", deep("#h-part", "Deep.md")),
        ("gone", lost("Gone.md")),
        ("pic", "<img src=\"/api/v1/raw/pic.png\" alt=\"pic.png\" loading=\"lazy\">".to_owned()),
    ];
    assert_eq!(cases.len(), 5);
    for (id, expected) in cases {
        assert_eq!(card(id), expected, "{id}");
    }
    let front = card("front");
    assert!(front.contains("<div class=\"embed\" data-path=\"Notes/Deep.md\">"), "{front}");
    assert!(front.contains("part text") && front.contains("href=\"/note/Boards/B.canvas#h-x\""), "{front}");
}
