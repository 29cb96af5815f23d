//! A hostile vault on the web page: strings of attacks by script in every place that a note has. Nothing of what is served
//! may run, load or look like the page's own.

use serde_json::Value;

use crate::support::TestVault;
use crate::web::Page;

/// Attacks as public lists collect them: elements, handlers, addresses, and ways around filters.
const ATTACKS: &str = include_str!("../../fixtures/web/attacks.txt");

fn attacks() -> Vec<&'static str> {
    let lines: Vec<&str> = ATTACKS.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines.len() >= 200, "{}", lines.len());
    lines
}

/// The elements that a rendered note may have.
const ELEMENTS: [&str; 58] = [
    "a",
    "abbr",
    "audio",
    "b",
    "big",
    "blockquote",
    "br",
    "cite",
    "code",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "iframe",
    "img",
    "input",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
    "var",
    "video",
    "wbr",
    "ruby",
    "rt",
];

/// The attributes that they may have.
const ATTRIBUTES: [&str; 26] = [
    "align",
    "alt",
    "checked",
    "class",
    "controls",
    "data-callout",
    "data-line",
    "data-link",
    "data-path",
    "data-tag",
    "data-task",
    "disabled",
    "download",
    "height",
    "href",
    "id",
    "loading",
    "open",
    "preload",
    "rel",
    "src",
    "start",
    "target",
    "title",
    "type",
    "width",
];

/// Reads the tags of HTML that a serializer wrote: every `<` of the text is escaped in it, and every value is in double
/// quotes.
fn check_html(html: &str, from: &str) {
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let tag = &rest[at + 1..];
        let name: String =
            tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
        assert!(ELEMENTS.contains(&name.as_str()), "the element {name:?} of {from}: {html}");
        let mut attributes = &tag[tag.find(&name).unwrap() + name.len()..];
        loop {
            attributes = attributes.trim_start();
            if let Some(behind) = attributes.strip_prefix('>') {
                rest = behind;
                break;
            }
            if let Some(behind) = attributes.strip_prefix("/>") {
                rest = behind;
                break;
            }
            let end = attributes.find('=').unwrap_or_else(|| panic!("{from}: {html}"));
            let (attribute, value) = attributes.split_at(end);
            assert!(ATTRIBUTES.contains(&attribute), "the attribute {attribute:?} of {from}: {html}");
            let value = value.strip_prefix("=\"").unwrap_or_else(|| panic!("{from}: {html}"));
            let (value, behind) = value.split_once('"').unwrap();
            check_value(attribute, value, from);
            attributes = behind;
        }
    }
}

fn check_value(attribute: &str, value: &str, from: &str) {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| value.starts_with(beginning));
    let is_fine = match attribute {
        "src" => begins(&["/api/v1/raw/"]) && !value.contains("..") && !value.contains('\\'),
        "href" => {
            let lower = value.to_ascii_lowercase();
            begins(&["/note/", "/search?q=", "#", "/api/v1/raw/"])
                || ["http:", "https:", "mailto:", "obsidian:"].iter().any(|scheme| lower.starts_with(scheme))
        }
        "id" => begins(&["h-", "^", "fn-", "fnref-"]),
        "target" => value == "_blank",
        "type" => value == "checkbox",
        _ => true,
    };
    assert!(is_fine, "{attribute}={value:?} of {from}");
}

/// Checks each string of a reply that is named `html`.
fn check_reply(value: &Value, from: &str) -> usize {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match value {
                Value::String(html) if name == "html" => {
                    check_html(html, from);
                    1
                }
                other => check_reply(other, from),
            })
            .sum(),
        Value::Array(items) => items.iter().map(|item| check_reply(item, from)).sum(),
        _ => 0,
    }
}

/// Returns a text as a YAML string in double quotes.
fn yaml(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

#[test]
fn nothing_of_a_hostile_note_runs() {
    let attacks = attacks();
    let mut notes: Vec<(String, String)> = Vec::new();
    for (at, attack) in attacks.iter().enumerate() {
        let quoted = yaml(attack);
        notes.push((
            format!("N{at}.md"),
            format!(
                "---\ntitle: {quoted}\naliases: [{quoted}]\ntags: [{quoted}]\nlink: {quoted}\nlist: [{quoted}, {{a: {quoted}}}]\n---\n\
                 # {attack}\n\n{attack}\n\n- [ ] {attack}\n- {attack}\n\n> [!{attack}] {attack}\n> {attack}\n\n\
                 | {attack} |\n|---|\n| {attack} |\n\n[[{attack}]] [[A|{attack}]] ![[{attack}]] [{attack}]({attack}) ![{attack}](<{attack}>)\n\n\
                 [x]: {attack}\n\n[x] #{attack} =={attack}== ${attack}$ `{attack}` %%{attack}%% [^{at}]\n\n[^{at}]: {attack}\n\n\
                 ```{attack}\n{attack}\n```\n\n    {attack}\n\n<div>\n{attack}\n</div>\n\ntext ^{attack}\n\nText\n{attack}\n====\n"
            ),
        ));
        let node = |kind: &str, field: &str| serde_json::json!({"id": attack, "type": kind, field: attack, "color": attack, "x": 0, "y": 0, "width": 1, "height": 1});
        let canvas = serde_json::json!({
            "nodes": [node("text", "text"), node("file", "file"), node("link", "url"), node("group", "label")],
            "edges": [{"id": attack, "fromNode": attack, "toNode": attack, "label": attack}],
        });
        notes.push((format!("C{at}.canvas"), canvas.to_string()));
    }
    notes.push(("A.md".to_owned(), "target".to_owned()));
    notes.push(("Embeds.md".to_owned(), (0..20).map(|at| format!("![[N{at}]]\n\n")).collect()));
    // Names of files can have most characters, too.
    for (at, attack) in attacks.iter().enumerate() {
        let name: String =
            attack.chars().filter(|c| !c.is_control() && !"/\\:*?\"|<>".contains(*c)).take(60).collect();
        let name = name.trim_matches(['.', ' ']);
        if !name.is_empty() {
            notes.push((format!("F{at} {name}.md"), "text".to_owned()));
            #[cfg(unix)]
            notes.push((
                format!("G{at} {}.md", attack.replace(['/', '\\'], "_").chars().take(40).collect::<String>()),
                "text".to_owned(),
            ));
        }
    }
    let files: Vec<(&str, &str)> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = TestVault::new(&files);
    let page = Page::start(&vault, &[]);
    let mut checked = 0;
    for (path, _) in &notes {
        let encoded: String = path.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let reply = page.get(&format!("/api/v1/note?name={encoded}"));
        if reply.status == 404 {
            // The system, or the rules of paths, did not take this name.
            continue;
        }
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        checked += check_reply(&reply.json(), path);
    }
    assert!(checked > 8 * attacks.len(), "{checked}");
    // Replies are JSON, which no browser takes for a page, and text in them is text.
    for path in ["graph", "memory/points", "facets?q=", "activity", "tags", "check"] {
        let reply = page.get(&format!("/api/v1/{path}"));
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{path}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    }
    for attack in &attacks {
        let encoded: String = attack.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for path in [format!("/search?q={encoded}"), format!("/note/{encoded}"), format!("/{encoded}")] {
            let reply = page.get(&path);
            assert_eq!(reply.status, 200, "{path}");
            assert!(!reply.text().contains(attack) || attack.len() < 12, "{attack}");
        }
        let reply = page.get(&format!("/api/v1/search?q={encoded}"));
        assert_eq!(reply.header("content-type"), Some("application/json"), "{attack}");
    }
}
