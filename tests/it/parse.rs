//! Tests parsing one note: links and tags with their spans, and the conformance cases (docs/spec/obsidian.md 2, 6).
//! Blocks, pieces and hostile input are tested in the files below.

mod blocks;
mod hostile;
mod pieces;

use serde_json::Value;
use sidenote::markdown::decode::decode;
use sidenote::markdown::frontmatter::link::parse_property;
use sidenote::markdown::link;
use sidenote::markdown::link::{Link, LinkForm, is_external};
use sidenote::markdown::link_syntax::percent_decode;
use sidenote::markdown::note::{BlockKind, Note, PieceKind};
use sidenote::markdown::span::Span;
use sidenote::markdown::subpath::SubpathTarget;

use crate::support::cases_of;

// Cases of the specification.

fn kind_of(link: &Link) -> &'static str {
    match link.form {
        LinkForm::Wiki => "wiki",
        LinkForm::MdPlain | LinkForm::MdAngle => "md",
        LinkForm::Refdef => "refdef",
        LinkForm::FmWiki => "fm",
        LinkForm::FmMd => "fm-md",
        LinkForm::CanvasFile | LinkForm::CanvasGroup | LinkForm::CanvasText(_) => "canvas",
    }
}

/// Shows a link as the cases do.
fn as_case(text: &str, link: &Link) -> Value {
    let mut case = serde_json::json!({
        "original": link.span.of(text),
        "path": link.path,
        "subpath": link.subpath,
        "display": link.display,
        "embed": link.embed,
        "kind": kind_of(link),
        "dest": link.dest_span.of(text),
        "span": [link.span.start, link.span.end],
        "dest_span": [link.dest_span.start, link.dest_span.end],
    });
    if let Some((width, height)) = link.size {
        case["size"] = serde_json::json!([width, height]);
    }
    if let Some(key) = &link.key {
        case["key"] = Value::from(key.clone());
    }
    case
}

fn tag_names(note: &Note) -> Vec<&str> {
    note.tags.iter().map(|tag| tag.name.as_str()).collect()
}

#[test]
fn conformance_cases_of_links() {
    for case in cases_of("parse", 38) {
        let text = case["text"].as_str().expect("a case has a text");
        let note = checked(text);
        let links: Vec<Value> = note.links.iter().map(|link| as_case(text, link)).collect();
        assert_eq!(Value::from(links), case["links"], "links of {}: {text:?}", case["id"]);
        if let Some(tags) = case.get("tags") {
            assert_eq!(&Value::from(tag_names(&note)), tags, "tags of {}: {text:?}", case["id"]);
        }
        if let Some(headings) = case.get("headings") {
            let found: Vec<Value> =
                note.headings.iter().map(|h| serde_json::json!([h.level, h.text])).collect();
            assert_eq!(&Value::from(found), headings, "headings of {}: {text:?}", case["id"]);
        }
    }
}

#[test]
fn conformance_cases_of_tags() {
    for case in cases_of("tags", 10) {
        let text = case["text"].as_str().expect("a case has a text");
        assert_eq!(Value::from(tag_names(&checked(text))), case["tags"], "{}: {text:?}", case["id"]);
    }
}

/// Says what a subpath names in the words of the cases; lines count from 0 there.
fn described(text: &str, subpath: &str) -> String {
    let note = checked(text);
    match note.subpath(subpath) {
        None => "none".to_owned(),
        Some(SubpathTarget::Heading(at)) => format!("heading line {}", note.headings[at].line - 1),
        Some(SubpathTarget::Footnote(at)) => format!("footnote {}", note.footnotes[at].id),
        Some(SubpathTarget::Block(at)) => {
            let block = &note.blocks[at];
            let (first, last) = (block.lines.0 - 1, block.lines.1 - 1);
            match block.kind {
                BlockKind::ListItem => format!("list item line {first}"),
                BlockKind::Callout => format!("callout lines {first}-{last}"),
                _ => format!("block lines {first}-{last}"),
            }
        }
    }
}

#[test]
fn conformance_cases_of_subpaths() {
    for case in cases_of("subpath", 10) {
        let (text, subpath) = (case["text"].as_str().unwrap_or(""), case["subpath"].as_str().unwrap_or(""));
        assert_eq!(
            described(text, subpath),
            case["expect"].as_str().unwrap_or(""),
            "{}: {text:?}",
            case["id"]
        );
    }
}

// Invariants.

/// Parses and checks that every span cuts out what it claims to.
fn checked(text: &str) -> Note {
    let note = Note::parse(text);
    for link in &note.links {
        let whole = text.get(link.span.start..link.span.end).expect("a link's span fits the text");
        assert!(whole.starts_with('[') || whole.starts_with("![") || link.key.is_some(), "{whole:?}");
        assert_eq!(whole.starts_with('!'), link.embed, "{whole:?}");
        assert!(link.span.encloses(link.dest_span), "{link:?}");
        assert!(link.dest_span.encloses(link.path_span), "{link:?}");
        assert!(link.dest_span.encloses(link.subpath_span), "{link:?}");
        assert!(link.path_span.end <= link.subpath_span.start, "{link:?}");
        if link.form == LinkForm::Wiki {
            assert_eq!(link.path_span.of(text), link.path, "{link:?}");
            assert_eq!(link.subpath_span.of(text), link.subpath, "{link:?}");
        }
        if let Some(alias) = link.alias_span {
            assert!(link.span.encloses(alias), "{link:?}");
            assert!(text.get(alias.start..alias.end).is_some(), "{link:?}");
        }
        assert!(text.get(link.dest_span.start..link.dest_span.end).is_some(), "{link:?}");
        assert!(text.get(link.path_span.start..link.path_span.end).is_some(), "{link:?}");
        assert_eq!(link.line, text[..link.span.start].matches('\n').count() + 1);
    }
    for tag in note.tags.iter().filter(|tag| !tag.in_frontmatter) {
        assert_eq!(tag.span.of(text), format!("#{}", tag.name));
    }
    for heading in &note.headings {
        assert!(heading.span.of(text).contains(&heading.text), "{heading:?}");
        assert_eq!(heading.line, text[..heading.span.start].matches('\n').count() + 1);
    }
    for block in &note.blocks {
        assert_eq!(block.id_span.of(text), block.id);
        assert!(!block.span.of(text).is_empty(), "{block:?}");
    }
    for task in &note.tasks {
        let item = text.get(task.span.start..task.span.end).expect("a task's span fits the text");
        assert!(item.contains(&format!("[{}]", task.status)) && item.contains(&task.text), "{task:?}");
    }
    let cuts = |span: Span| text.get(span.start..span.end).is_some();
    for link in note.mentions.iter().map(|mention| &mention.link) {
        assert!(cuts(link.span) && link.span.encloses(link.dest_span), "{link:?}");
    }
    for span in note.problems.iter().filter_map(|problem| problem.span) {
        assert!(cuts(span), "{span:?}");
    }
    if let Some(frontmatter) = &note.frontmatter {
        assert!(cuts(frontmatter.span) && frontmatter.span.encloses(frontmatter.yaml_span));
        assert!(frontmatter.span.end <= note.body_start);
    }
    assert!(text.is_char_boundary(note.body_start));
    for footnote in &note.footnotes {
        assert!(footnote.span.of(text).starts_with("[^"), "{footnote:?}");
    }
    let mut behind = 0;
    for piece in &note.pieces {
        let words = text.get(piece.span.start..piece.span.end).expect("a piece's span fits the text");
        assert!(!words.is_empty() && piece.span.start >= behind, "{piece:?}");
        if matches!(piece.kind, PieceKind::Prose | PieceKind::Heading) {
            assert!(!words.contains('\n'), "{words:?}");
        }
        behind = piece.span.end;
    }
    note
}

fn check_links(text: &str, expected: &[&str]) {
    let note = checked(text);
    let found = note.links.iter().map(|link| {
        let display = link.display.as_ref().map_or_else(String::new, |display| format!(" = {display}"));
        format!("{} {}{}{display}", link.form.name(), link.path, link.subpath)
    });
    assert_eq!(found.collect::<Vec<_>>(), expected, "{text:?}");
}

fn check_tags(text: &str, expected: &[&str]) {
    assert_eq!(tag_names(&checked(text)), expected, "{text:?}");
}

// The grammar of links, row by row.

#[test]
fn wikilinks_follow_the_grammar() {
    for (text, expected) in [
        ("[[n]]", "wiki n = n"),
        ("[[n|A]]", "wiki n = A"),
        ("[[n#H]]", "wiki n#H = n > H"),
        ("[[n#H1#H2]]", "wiki n#H1#H2 = n > H1 > H2"),
        ("[[n#^id]]", "wiki n#^id = n > ^id"),
        ("[[#H]]", "wiki #H = H"),
        ("[[n#[^1]]]", "wiki n#[^1] = n > [^1]"),
        ("[[n#[^1]|note]]", "wiki n#[^1] = note"),
        ("[[dir/n]]", "wiki dir/n = dir/n"),
        ("[[n.md]]", "wiki n.md = n.md"),
        ("[[/n]]", "wiki /n = /n"),
        ("[[./n]]", "wiki ./n = ./n"),
        ("[[../n]]", "wiki ../n = ../n"),
        ("[[n|]]", "wiki n = n"),
        ("[[n||b]]", "wiki n = |b"),
        ("[[|b]]", "wiki |b = |b"),
        ("[[|]]", "wiki | = |"),
        ("[[a]b]]", "wiki a]b = a]b"),
        ("[[a[b]]", "wiki a[b = a[b"),
        ("[[a]]]", "wiki a = a"),
        ("[[[a]]]", "wiki a = a"),
        ("[[a|[x]]]", "wiki a = [x]"),
        ("[[a [[b]] c]]", "wiki b = b"),
        ("[[https://x.y]]", "wiki https://x.y = https://x.y"),
        ("[[## text]]", "wiki ## text = text"),
        ("[[^^text]]", "wiki ^^text = ^^text"),
        ("[[ a b ]]", "wiki a b = a b"),
        ("[[a\\|b]]", "wiki a = b"),
        ("[[\u{e9}\u{1f389}|\u{4e2d}]]", "wiki \u{e9}\u{1f389} = \u{4e2d}"),
        ("[[a$b]]", "wiki a$b = a$b"),
        ("[[a_b_c*d*]]", "wiki a_b_c*d* = a_b_c*d*"),
        ("[[a %% b]]", "wiki a %% b = a %% b"),
        ("[[a <b> c]]", "wiki a <b> c = a <b> c"),
        ("[[a|`b`]]", "wiki a = `b`"),
    ] {
        check_links(text, &[expected]);
        check_links(&format!("x {text} y\r\n"), &[expected]);
        check_links(&format!("> - {text}"), &[expected]);
    }
    for text in [
        "[[]]",
        "[[ ]]",
        "[[a\nb]]",
        "[[a\rb]]",
        "[[a",
        "[a]]",
        "[[a]",
        "[ [a]]",
        "\\[[a]]",
        "[\\[a]]",
        "[[a `b]] c`",
    ] {
        check_links(text, &[]);
    }
}

/// MkDocs indents the content of these by four columns, which CommonMark takes for code.
#[test]
fn the_content_of_admonitions_details_and_tabs_is_text() {
    for (text, expected) in [
        ("!!! note\n    [a](b.md)\n", vec!["md-plain b.md = a"]),
        (
            "!!! note\n\n    [a](b.md)\n\n    [[c]]\n\n[d](e.md)\n",
            vec!["md-plain b.md = a", "wiki c = c", "md-plain e.md = d"],
        ),
        (
            "??? tip \"[x](y.md)\"\n\n    - [a](b.md)\n\n        [[c]]\n",
            vec!["md-plain y.md = x", "md-plain b.md = a", "wiki c = c"],
        ),
        ("???+ note \"T\"\r\n\r\n    [[c]]\r\n", vec!["wiki c = c"]),
        ("=== \"C++\"\n\n    [[c]]\n\n=== \"Rust\"\n\n    [[d]]\n", vec!["wiki c = c", "wiki d = d"]),
        ("!!! note\n\n\t[[c]]\n", vec!["wiki c = c"]),
        (
            "- x\n\n    ??? note\n        [[c]]\n\n        ??? note\n\n            [[d]]\n",
            vec!["wiki c = c", "wiki d = d"],
        ),
        ("!!! note\n\n    ```\n    [[c]]\n\n    [[d]]\n    ```\n\n    [[e]]\n", vec!["wiki e = e"]),
        ("!!! note\n\n        [[c]]\n", vec![]),
        ("???+ note\n\n    x\n\n        [[c]]\n", vec![]),
        // No content, or no kind: the code after it is code.
        ("!!! note\n\n[[c]]\n\n    [[d]]\n", vec!["wiki c = c"]),
        ("!!! \n\n    [[d]]\n", vec![]),
        ("!!!note\n\n    [[d]]\n", vec![]),
        ("Wow!!! note\n\n    [[d]]\n", vec![]),
        ("=== Tab\n\n    [[d]]\n", vec![]),
        ("```\n!!! note\n    [[c]]\n```\n", vec![]),
        ("    !!! note\n\n        [[c]]\n", vec![]),
    ] {
        check_links(text, &expected);
    }
    assert_eq!(checked("!!! note\n\n    - [ ] do it\n").tasks.len(), 1);
}

#[test]
fn spans_of_a_wikilink_name_each_part() {
    let text = "x ![[ dir/n #H|a b]]";
    let link = &checked(text).links[0];
    assert_eq!(link.span.of(text), "![[ dir/n #H|a b]]");
    assert_eq!(link.dest_span.of(text), " dir/n #H");
    assert_eq!(link.path_span.of(text), "dir/n");
    assert_eq!(link.subpath_span.of(text), "#H");
    assert_eq!(link.alias_span.map(|alias| alias.of(text)), Some("a b"));
    let link = &checked("[[n\\|]]").links[0];
    assert_eq!((link.dest_span, link.alias_span), (Span::new(2, 3), Some(Span::new(5, 5))));
    assert_eq!(link.escape.inner, link::LinkEscape::TableBar);
}

#[test]
fn embeds_carry_their_sizes() {
    for (text, size) in [
        ("![[i.png|100]]", Some((100, None))),
        ("![[i.png|100x145]]", Some((100, Some(145)))),
        ("![[i.png|alt|100]]", Some((100, None))),
        ("![[i.png#outline|100]]", Some((100, None))),
        ("![[i.png|100x]]", None),
        ("![[i.png|x100]]", None),
        ("![[i.png|-1]]", None),
        ("![[i.png|99999999999999]]", None),
        ("![[i.png]]", None),
        ("[[i.png|100]]", None),
        ("![100](i.png)", Some((100, None))),
        ("![alt|100](i.png)", Some((100, None))),
        ("![alt|100x145](i.png)", Some((100, Some(145)))),
        ("![alt](i.png)", None),
        ("[alt|100](i.png)", None),
    ] {
        let note = checked(text);
        assert_eq!(note.links.len(), 1, "{text}");
        assert_eq!(note.links[0].size, size, "{text}");
        assert_eq!(note.links[0].embed, text.starts_with('!'), "{text}");
    }
    let note = checked("\\![[a]]");
    assert_eq!((note.links[0].embed, note.links[0].span), (false, Span::new(2, 7)));
}

#[test]
fn markdown_links_are_decoded() {
    for (text, expected) in [
        ("[t](n)", "md-plain n = t"),
        ("[t](n.md)", "md-plain n.md = t"),
        ("[t](#h)", "md-plain #h = t"),
        ("[t](a%20b.md#My%20H)", "md-plain a b.md#My H = t"),
        ("[t](<a b.md>)", "md-angle a b.md = t"),
        ("[t](<a%20b (c).md> \"T\")", "md-angle a b (c).md = t"),
        ("[t](a\\(b.md)", "md-plain a(b.md = t"),
        ("[t](a(b)c.md 'T')", "md-plain a(b)c.md = t"),
        ("[t]( a.md (T) )", "md-plain a.md = t"),
        ("[t](a&amp;b.md)", "md-plain a&b.md = t"),
        ("[t](caf&eacute;.md)", "md-plain caf\u{e9}.md = t"),
        ("[t](%C3%A9.md)", "md-plain \u{e9}.md = t"),
        ("[t](%FF%zz%4.md)", "md-plain %FF%zz%4.md = t"),
        ("[t](a%23b.md)", "md-plain a#b.md = t"),
        ("[t](C:/x.md)", "md-plain C:/x.md = t"),
        ("[](n.md)", "md-plain n.md = "),
        ("[a `]` *b* ![x](https://e.x/i.png)](n.md)", "md-plain n.md = a `]` *b* ![x](https://e.x/i.png)"),
        ("![alt](i.png)", "md-plain i.png = alt"),
        ("[t](\nn.md)", "md-plain n.md = t"),
        ("[t]([[x]])", "md-plain [[x]] = t"),
    ] {
        check_links(text, &[expected]);
    }
    for text in [
        "[t](a b.md)",
        "[t]()",
        "[]()",
        "[t](<>)",
        "[t](https://e.org/a.md)",
        "[t](mailto:a@b.c)",
        "[t](//e.org/a)",
        "[t](obsidian://open?vault=v&file=f)",
        "<https://e.org/[[x]]>",
        "https://e.org/[[x]] ok",
        "\\[t](n.md)",
        "`[t](n.md)`",
    ] {
        check_links(text, &[]);
    }
    let text = "[t](pa%20th%23sub)";
    let link = &checked(text).links[0];
    assert_eq!((link.path_span.of(text), link.subpath_span.of(text)), ("pa%20th%23sub", ""));
    let text = "> [l\n> m](<d e>\n> 't')";
    let link = &checked(text).links[0];
    assert_eq!((link.dest_span.of(text), link.display.as_deref()), ("d e", Some("l\n> m")));
}

#[test]
fn a_link_in_a_label_leaves_the_outer_one_and_brackets_that_open_together_are_the_inner_one() {
    check_links("[see [[x]] y](n.md)", &["md-plain n.md = see [[x]] y", "wiki x = x"]);
    check_links("[![[x]]](n.md)", &["md-plain n.md = ![[x]]", "wiki x = x"]);
    check_links(
        "![see [[x]]](n.md) [t](m.md)",
        &["md-plain n.md = see [[x]]", "wiki x = x", "md-plain m.md = t"],
    );
    check_links("[[x]](n.md)", &["wiki x = x"]);
    check_links("![[x]](n.md)", &["wiki x = x"]);
    check_links("[see [[x]] y]([[z]])", &["md-plain [[z]] = see [[x]] y", "wiki x = x"]);
    check_links("[[a [x](y.md) b]]", &["wiki a [x](y.md) b = a [x](y.md) b"]);
    check_links("[![a](i.png)](n.md)", &["md-plain n.md = ![a](i.png)", "md-plain i.png = a"]);
    check_links("[[x]][r]\n\n[r]: y.md", &["wiki x = x", "refdef y.md"]);
}

#[test]
fn reference_definitions_are_stored_once_each() {
    check_links("[t][r] [r][] [r]\n\n[r]: a.md", &["refdef a.md"]);
    check_links(
        "[r]: a.md\n[r]: b.md\n[R]: <c d.md> 'T'\ntext",
        &["refdef a.md", "refdef b.md", "refdef c d.md"],
    );
    check_links(
        "> [r]: a.md\n> (T)\n\n- [s]: b.md\n\n  [t]:\n  c.md",
        &["refdef a.md", "refdef b.md", "refdef c.md"],
    );
    check_links("[r]: https://e.org\n[^f]: a.md", &[]);
    check_links("```\n[r]: a.md\n```\n\ntext\n[r]: b.md", &[]);
    let text = "[a]: x.md \"T\"  \n[b]: <y z>\n'U'\nrest";
    let note = checked(text);
    let spans: Vec<&str> = note.links.iter().map(|link| link.span.of(text)).collect();
    assert_eq!(spans, ["[a]: x.md \"T\"", "[b]: <y z>\n'U'"]);
}

#[test]
fn opaque_regions_hide_links_and_tags() {
    for text in [
        "```\n[[a]] #t\n",
        "~~~~ md\n[[a]] #t\n~~~\n[[b]]\n~~~~\n",
        "    [[a]] #t\n",
        "`[[a]] #t`",
        "`` ` [[a]] #t ``",
        "$[[a]] #t$",
        "$$\n[[a]] #t\n$$",
        "x $$ [[a]] #t $$ y",
        "$$\n\n[[a]]\n\n# h #t\n\n$$",
        "x <!-- [[a]] #t --> y",
        "<!--\n[[a]] #t\n\n[[b]]\n-->",
        "<div>\n[[a]] #t\n</div>",
        "<script>\n\n[[a]] #t\n\n</script>",
        "x <b title=\"[[a]] #t\">y</b>",
        "<https://e.org/#t>",
        "https://e.org/a_#t",
        "\\[\\[a\\]\\] \\#t",
    ] {
        check_links(text, &[]);
        check_tags(text, &[]);
    }
    for text in [
        "x <b>[[a]] #t</b>",
        "%% [[a]] #t %%",
        "%%\n\n[[a]]\n\n#t\n%%",
        "# h [[a]] #t",
        "- [ ] [[a]] #t",
        "> [!tip] [[a]] #t",
        "x[^1]\n\n[^1]: [[a]] #t",
        "^[see [[a]] #t]",
        "|h|\n|-|\n|[[a]] #t|",
        "```\n```\n[[a]] #t",
        "$ [[a]] #t $",
        "5$ [[a]] and 6$ #t",
        "*[[a]]* **#t**",
        "==[[a]] #t==",
        "$$ open [[a]] #t",
        "%% open [[a]] #t",
        "<b [[a]] #t",
    ] {
        check_links(text, &["wiki a = a"]);
        check_tags(text, &["t"]);
    }
}

#[test]
fn the_leftmost_opener_of_math_and_wikilinks_wins() {
    check_links("[[a$b]] and [[c$d]]", &["wiki a$b = a$b", "wiki c$d = c$d"]);
    check_links("[[a$b]] [t](n.md) [[c$d]]", &["wiki a$b = a$b", "md-plain n.md = t", "wiki c$d = c$d"]);
    check_links("$x [[a]] y$ [[b]]", &["wiki b = b"]);
    check_links("costs $5 [[a]] or `$x`", &["wiki a = a"]);
    check_links("\\$x [[a]] y$", &["wiki a = a"]);
}

#[test]
fn tables_split_at_unescaped_bars() {
    check_links("|a|b|\n|-|-|\n|[[n|A]]|x|", &[]);
    check_links("|a|\n|-|\n|[[n\\|A]] [[m]]|", &["wiki n = A", "wiki m = m"]);
    check_links("|a|\n|-|\n|![[i.png\\|80]]|", &["wiki i.png = 80"]);
    check_links("|a|\n|-|\n|[t](<x y.md>)|", &["md-angle x y.md = t"]);
}

#[test]
fn every_link_has_its_line_and_context() {
    let text = "[[b]]\n# [[h]]\n- [[l]]\n\n> [[q]]\n\n> [!x] [[c]]\n> - [[cl]]\n\n|t|\n|-|\n|[[t]]|\n\n%% [[k]] %%\n\n[^1]: [[f]]\n\n[^1]";
    let note = checked(text);
    let places: Vec<String> =
        note.links.iter().map(|link| format!("{} {:?} {}", link.path, link.place, link.line)).collect();
    assert_eq!(
        places,
        [
            "b Body 1",
            "h Heading 2",
            "l List 3",
            "q Quote 5",
            "c Callout 7",
            "cl List 8",
            "t Table 12",
            "k Comment 14",
            "f Footnote 16"
        ]
    );
    assert!(note.links.iter().all(|link| link.in_comment == (link.path == "k")));
}

#[test]
fn a_property_value_is_a_link_only_as_a_whole() {
    let check = |value: &str, expected: Option<(&str, &str)>| {
        let link = parse_property(value);
        let found = link.as_ref().map(|link| (link.form.name(), link.dest_span.of(value)));
        assert_eq!(found, expected, "{value:?}");
    };
    check("[[n]]", Some(("fm-wiki", "n")));
    check("  ![[n#H|a]] ", Some(("fm-wiki", "n#H")));
    check("[t](a%20b.md)", Some(("fm-md", "a%20b.md")));
    check(" ![t](<a b.md> 'T')", Some(("fm-md", "a b.md")));
    for value in [
        "",
        "n",
        "see [[n]]",
        "[[n]] x",
        "[[a]] [[b]]",
        "[[n",
        "[t](a.md) x",
        "[a](b)[c](d)",
        "[t](https://e.org)",
        "[[a\nb]]",
        "[t]",
        "[[a]](b)",
    ] {
        check(value, None);
    }
}

#[test]
fn schemes_are_external() {
    for dest in ["https://e.org", "mailto:a@b", "obsidian://open", "//host/x", "a+b-c.1:x"] {
        assert!(is_external(dest), "{dest}");
    }
    for dest in ["C:/x", "a/b:c", "n.md", "#h", "1a:b", "/x", ":x", ""] {
        assert!(!is_external(dest), "{dest}");
    }
    for (text, decoded) in
        [("a%20b", "a b"), ("%e4%b8%AD", "\u{4e2d}"), ("100%", "100%"), ("%%20", "% "), ("%C3x", "%C3x")]
    {
        assert_eq!(percent_decode(text), decoded);
    }
}

// Tags.

#[test]
fn tags_start_and_end_by_the_rules() {
    check_tags("#a\t#b\u{a0}#c\u{3000}#d", &["a", "b", "c", "d"]);
    check_tags("#a#b #c/#d", &["a", "b", "c", "d"]);
    check_tags("#1984 #1/2 #1/ #1-", &["1/2", "1-"]);
    check_tags("#a/ #a// #/a #a//b #/ #-", &["a", "a", "/a", "a//b", "-"]);
    check_tags("_#x_ *#y* **#z** ~~#w~~ ==#v== snake_#u", &["x", "y", "z", "w", "v", "u"]);
    check_tags("2*#x a#x (#x) \"#x\" .#x \u{2014}#x `c`#x", &[]);
    check_tags("\\[#x \\##y", &["x", "y"]);
    check_tags("#a\u{2014}b #c\u{2e3a}d #e\u{200d}f #\u{1f389}", &["a", "c", "e", "\u{1f389}"]);
    check_tags("#a.b #a:b #a'b #a\"b #a(b #a=b", &["a", "a", "a", "a", "a", "a"]);
    check_tags("> #q\n> - #l\n\n1. #n\n# #h\n#p\n## #", &["q", "l", "n", "h", "p"]);
    check_tags("|a|b|\n|-|-|\n|#c|x #d|", &["c", "d"]);
    check_tags("[a #x](b#c) [#n](N.md) [[n #y|z #w]]", &["x"]);
    check_tags("<b>#x</b> <!-- #y -->", &["x"]);
    check_tags("%%#x%% #y", &["x", "y"]);
    check_tags("# one\n#two", &["two"]);
    check_tags("---\ntags: [f, 1984, \"#g\"]\n---\n#b", &["f", "g", "b"]);
}

// Bytes.

#[test]
fn invalid_utf8_keeps_byte_offsets() {
    let decoded = decode(b"a\xff\xe2\x82 [[b]]\xc3");
    assert_eq!(decoded.text, "a\u{1a}\u{1a}\u{1a} [[b]]\u{1a}");
    assert_eq!(decoded.problem.map(|problem| problem.code), Some("invalid-utf8"));
    for bytes in [&b"\xff\xfea\0"[..], b"\xfe\xff\0a", b"a\0b\0c\0\n\0[\0", b"\0a\0b\0c\0\n"] {
        let decoded = decode(bytes);
        assert_eq!(
            (&*decoded.text, decoded.problem.map(|problem| problem.code)),
            ("", Some("utf-16")),
            "{bytes:?}"
        );
    }
    for bytes in [&b"plain"[..], b"", b"\0", b"a\0b", "\u{feff}\u{e9}".as_bytes()] {
        assert_eq!(decode(bytes).problem, None, "{bytes:?}");
    }
}
