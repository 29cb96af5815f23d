//! Checks that every doc comment consists of whole sentences that stand alone, since hover text and generated pages
//! show each by itself.

use super::{Source, check};

/// One doc comment and what it describes.
struct Comment {
    line: usize,
    text: String,
    item: String,
    /// Whether it describes an argument of a tool: those are phrases, which agents pay for by the word.
    is_argument: bool,
}

fn comments(source: &Source) -> Vec<Comment> {
    let mut found = Vec::new();
    let mut lines = source.text.lines().enumerate().peekable();
    let mut derives_schema = false;
    while let Some((at, line)) = lines.next() {
        let line = line.trim();
        if line.starts_with("#[derive(") {
            derives_schema = line.contains("JsonSchema");
        }
        let Some(first) = line.strip_prefix("///") else { continue };
        let mut text = vec![first.trim()];
        while let Some((_, next)) = lines.next_if(|(_, next)| next.trim().starts_with("///")) {
            text.push(next.trim().trim_start_matches("///").trim_end());
        }
        // Attributes between the comment and its item may take several lines.
        let mut ahead = source.text.lines().skip(at + text.len()).map(str::trim);
        let item = ahead.find(|line| !line.starts_with("#[")).unwrap_or_default().to_owned();
        let declares = ["struct ", "enum ", "fn ", "trait ", "const ", "type ", "mod "];
        let is_argument = derives_schema
            && (source.is_in("mcp") || source.is_in("compat"))
            && !declares.iter().any(|word| item.trim_start_matches("pub ").starts_with(word));
        found.push(Comment { line: at + 1, text: text.join("\n").trim().to_owned(), item, is_argument });
    }
    found
}

/// Says why a doc comment does not consist of whole sentences.
pub(super) fn fault(text: &str) -> Option<&'static str> {
    let first = text.chars().next()?;
    if !(first.is_uppercase() || first.is_ascii_digit() || "`\"(*[<".contains(first)) {
        return Some("starts amid a sentence");
    }
    // A comment may end in a block: indented lines, code, or a table.
    if text.lines().last().is_some_and(|line| line.starts_with("  ")) {
        return None;
    }
    let ends_whole = text.ends_with(['.', ':', '?', '!', ')', '`', '|']);
    (!ends_whole).then_some("ends amid a sentence")
}

#[test]
fn every_doc_comment_is_whole_sentences() {
    check(|source| {
        let whole = comments(source).into_iter().filter(|comment| !comment.is_argument);
        whole
            .filter_map(|comment| {
                let what = fault(&comment.text)?;
                let Comment { line, text, item, .. } = comment;
                Some(source.place_in_line(line, format!("the doc comment of `{item}` {what}: {text}")))
            })
            .collect()
    });
}

#[test]
fn fragments_are_distinguished_from_sentences() {
    let cases = [
        ("Counts the notes.", None),
        ("`<` or less.", None),
        ("Two paragraphs.\n\n```\ncode\n```", None),
        ("The terms are:\n\n   a:  b:", None),
        ("and no longer than this, in characters.", Some("starts amid a sentence")),
        ("A part is no shorter,", Some("ends amid a sentence")),
        ("A log of the catalog longer than this is emptied;", Some("ends amid a sentence")),
        ("Notes", Some("ends amid a sentence")),
    ];
    assert_eq!(cases.len(), 8);
    for (text, expected) in cases {
        assert_eq!(fault(text), expected, "of {text:?}");
    }
}

#[test]
fn comments_are_found_with_their_items() {
    let text = "/// A limit.\n#[expect(dead_code)]\nconst A: u8 = 1;\n\n#[derive(JsonSchema)]\npub struct Args {\n    /// A note\n    note: String,\n}\n";
    let found = comments(&Source::new("mcp/tool.rs", text));
    let shown: Vec<(usize, &str, &str, bool)> =
        found.iter().map(|c| (c.line, c.text.as_str(), c.item.as_str(), c.is_argument)).collect();
    assert_eq!(shown, [(1, "A limit.", "const A: u8 = 1;", false), (7, "A note", "note: String,", true)]);
}
