//! The search for unlinked references in notes and broken canvases.

use hashbrown::HashSet;

use crate::commonmark::html_attributes::attributes;
use crate::escapes::{QuoteStyle, UnquotedString};
use crate::frontmatter::{Frontmatter, Scalar, Style};
use crate::line::Lines;
use crate::link::{Escape, HostEscape, Link, LinkContext, LinkForm};
use crate::link_syntax::{Destination, from_destination, wikilink_at};
use crate::note::Note;
use crate::span::Span;
use crate::unlinked_reference::{UnlinkedReference, UnlinkedReferenceKind};

/// Finds the mentions of a Markdown note, in order. `html` is its raw HTML.
pub(crate) fn in_note(text: &str, note: &Note, html: &[Span], lines: &Lines) -> Vec<UnlinkedReference> {
    let mut found = Vec::new();
    if let Some(frontmatter) = &note.frontmatter {
        if frontmatter.error.is_some() {
            wikilinks(text, frontmatter.yaml_span, UnlinkedReferenceKind::BrokenYaml, &mut found);
        }
        in_properties(text, frontmatter, &mut found);
    }
    if memchr::memmem::find(text.as_bytes(), b"internal-link").is_some() {
        in_diagrams(text, &mut found);
    }
    for span in html {
        in_html(text, *span, &mut found);
    }
    includes(text, note.body_start, &mut found);
    found.sort_by_key(|mention| mention.link.span.start);
    for mention in &mut found {
        mention.link.line = lines.of(mention.link.span.start);
    }
    found
}

/// Finds the attributes of HTML tags that name a file, such as the source of an image.
fn in_html(text: &str, html: Span, found: &mut Vec<UnlinkedReference>) {
    let markup = html.of(text);
    for attribute in attributes(markup) {
        let is = |name: &str| attribute.name.eq_ignore_ascii_case(name);
        let value = Span::new(html.start + attribute.value.start, html.start + attribute.value.end);
        if is("srcset") {
            // Each candidate is a file and its width or density, as in `dark.png 2x, light.png 1x`.
            let mut at = value.start;
            for candidate in value.of(text).split(',') {
                let start = at + candidate.len() - candidate.trim_start().len();
                let len = candidate.split_ascii_whitespace().next().map_or(0, str::len);
                named_file(text, Span::new(start, start + len), found);
                at += candidate.len() + 1;
            }
        } else if is("src") || is("href") || is("poster") || is("data") && attribute.tag == "object" {
            named_file(text, value, found);
        }
    }
}

/// Adds the file that the value of an attribute names, unless it is a URL or a part of the same page.
fn named_file(text: &str, value: Span, found: &mut Vec<UnlinkedReference>) {
    let label = Span::new(value.start, value.start);
    let destination = Destination { span: value, label, dest: value, form: LinkForm::MdPlain, embed: false };
    let link = from_destination(text, &destination).map(|link| Link { alias_span: None, ..link });
    let named = link.filter(|link| !link.path.is_empty() || link.subpath.len() > 1);
    found.extend(named.map(|link| UnlinkedReference { kind: UnlinkedReferenceKind::HtmlAttribute, link }));
}

/// Finds the files that mdBook's preprocessor puts into a page, as in `{{#include ../src/main.rs:here}}`.
fn includes(text: &str, body_start: usize, found: &mut Vec<UnlinkedReference>) {
    const KEYWORDS: [&str; 4] = ["include", "rustdoc_include", "playground", "playpen"];
    let body = text.get(body_start..).unwrap_or("");
    for at in memchr::memmem::find_iter(body.as_bytes(), b"{{#") {
        let start = body_start + at;
        let rest = text.get(start + 3..).unwrap_or("");
        let line = rest.split(['\n', '\r']).next().unwrap_or("");
        let Some((inside, _)) = line.split_once("}}") else { continue };
        let word = inside.split_ascii_whitespace().next().unwrap_or("");
        let is_escaped = text.get(..start).is_some_and(|before| before.ends_with('\\'));
        if is_escaped || !KEYWORDS.contains(&word) {
            continue;
        }
        let argument = inside.get(word.len()..).unwrap_or("");
        let lead = argument.len() - argument.trim_start().len();
        let path = argument.trim_start().split(|c: char| c == ':' || c.is_ascii_whitespace()).next();
        let from = start + 3 + word.len() + lead;
        let span = Span::new(from, from + path.map_or(0, str::len));
        let link = whole(span.of(text), span);
        found.extend(link.map(|link| UnlinkedReference {
            kind: UnlinkedReferenceKind::Include,
            link: Link { form: LinkForm::MdPlain, ..link },
        }));
    }
}

/// Finds the mentions of a canvas that is not JSON, in order.
pub(crate) fn in_broken_canvas(text: &str) -> Vec<UnlinkedReference> {
    let mut found = Vec::new();
    wikilinks(text, Span::new(0, text.len()), UnlinkedReferenceKind::BrokenJson, &mut found);
    for (at, field) in text.match_indices("\"file\"") {
        let rest = text.get(at + field.len()..).unwrap_or("");
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
        let Some(body) = value.and_then(|value| value.strip_prefix('"')) else { continue };
        let start = text.len() - body.len();
        let mut escaped = false;
        let end = body.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let path = end.and_then(|end| UnquotedString::read(body.get(..end)?, start, QuoteStyle::Json));
        if let (Some(path), Some(end)) = (path, end)
            && let Some(link) = whole(&path.text, Span::new(start, start + end))
        {
            found.push(UnlinkedReference {
                kind: UnlinkedReferenceKind::BrokenJson,
                link: Link { form: LinkForm::CanvasFile, ..link },
            });
        }
    }
    found.sort_by_key(|mention| mention.link.span.start);
    let lines = Lines::new(text);
    for mention in &mut found {
        mention.link.line = lines.of(mention.link.span.start);
    }
    found
}

/// Returns the link that a bare name would be.
fn whole(name: &str, span: Span) -> Option<Link> {
    let link = wikilink_at(&format!("[[{}]]", name.trim()), 0)?;
    let end = Span::new(span.end, span.end);
    Some(Link { span, dest_span: span, path_span: span, subpath_span: end, alias_span: None, ..link })
}

/// Finds wikilinks in a part of the text that is not parsed.
fn wikilinks(text: &str, within: Span, kind: UnlinkedReferenceKind, found: &mut Vec<UnlinkedReference>) {
    let Some(inside) = text.get(..within.end) else { return };
    for (at, _) in within.of(text).match_indices("[[") {
        if let Some(link) = wikilink_at(inside, within.start + at) {
            found.push(UnlinkedReference { kind, link });
        }
    }
}

fn in_properties(text: &str, frontmatter: &Frontmatter, found: &mut Vec<UnlinkedReference>) {
    let mut links: Vec<Span> = frontmatter.links.iter().map(|link| link.span).collect();
    links.sort_unstable();
    for scalar in frontmatter.properties.iter().flat_map(|property| &property.scalars) {
        let first = links.partition_point(|link| link.start < scalar.span.start);
        let is_link = links.get(first).is_some_and(|link| scalar.span.encloses(*link));
        if !scalar.span.of(text).contains("[[") || is_link {
            continue;
        }
        let kind = match scalar.unquote(text) {
            Some(string) => {
                in_string(&string, scalar, found);
                continue;
            }
            None => UnlinkedReferenceKind::FoldedProperty,
        };
        wikilinks(text, scalar.span, kind, found);
    }
}

fn in_string(string: &UnquotedString, scalar: &Scalar, found: &mut Vec<UnlinkedReference>) {
    let host = match scalar.style {
        Style::Single => HostEscape::YamlSingle,
        Style::Double => HostEscape::YamlDouble,
        _ => HostEscape::YamlPlain,
    };
    for (at, _) in string.text.match_indices("[[") {
        let Some(link) = wikilink_at(&string.text, at) else { continue };
        let link = Link {
            form: LinkForm::FmWiki,
            escape: Escape { host, ..link.escape },
            place: LinkContext::Property,
            key: Some(scalar.path.clone()),
            ..link.in_file(string)
        };
        found.push(UnlinkedReference { kind: UnlinkedReferenceKind::PartialProperty, link });
    }
}

/// Finds the nodes of Mermaid diagrams that Obsidian converts to links: those of `class A,B internal-link`, and those
/// written as `A:::internal-link`. The name of a node is its label, or else its id.
fn in_diagrams(text: &str, found: &mut Vec<UnlinkedReference>) {
    let mut fence = None;
    let mut start = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let sign = trimmed.get(..3).filter(|sign| matches!(*sign, "```" | "~~~"));
        match (fence, sign) {
            (None, Some(sign)) if trimmed.trim_start_matches(['`', '~']).trim() == "mermaid" => {
                fence = Some(sign);
                start = at + line.len();
            }
            (Some(open), Some(sign)) if open == sign => {
                in_diagram(text, Span::new(start, at), found);
                fence = None;
            }
            _ => {}
        }
        at += line.len();
    }
}

fn in_diagram(text: &str, within: Span, found: &mut Vec<UnlinkedReference>) {
    let code = within.of(text);
    let mut ids: HashSet<&str> = HashSet::new();
    for line in code.lines().map(str::trim) {
        let classed = line
            .strip_prefix("class ")
            .and_then(|rest| rest.trim_end_matches(';').trim_end().rsplit_once(' '));
        if let Some((nodes, "internal-link")) = classed {
            ids.extend(nodes.split(',').map(str::trim));
        }
    }
    let nodes: Vec<(usize, MermaidNode<'_>)> = nodes(code).collect();
    ids.extend(nodes.iter().filter(|(_, node)| node.class == Some("internal-link")).map(|(_, node)| node.id));
    let mut named: HashSet<&str> = HashSet::new();
    // Any occurrence of the node can have the label.
    let (labelled, bare): (Vec<_>, Vec<_>) = nodes.iter().partition(|(_, node)| node.label.is_some());
    for (at, node) in labelled.into_iter().chain(bare) {
        if ids.contains(node.id) && named.insert(node.id) {
            let (lead, name) = node.label.unwrap_or((0, node.id));
            let start = within.start + at + lead;
            let link = whole(name, Span::new(start, start + name.len()));
            found.extend(
                link.map(|link| UnlinkedReference { kind: UnlinkedReferenceKind::MermaidNode, link }),
            );
        }
    }
}

struct MermaidNode<'c> {
    id: &'c str,
    /// The label: its offset from the start of the id, and its text.
    label: Option<(usize, &'c str)>,
    class: Option<&'c str>,
}

/// Iterates over the nodes of a flow chart with a name: `id`, `id[label]`, `id("label")`, `id{label}`.
fn nodes(code: &str) -> impl Iterator<Item = (usize, MermaidNode<'_>)> {
    let is_id = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = code.get(at..)?;
        let start = at + rest.find(is_id)?;
        let word = code.get(start..)?;
        let mut len = word.find(|c| !is_id(c)).unwrap_or(word.len());
        // The arrow in `A-->B` is not part of the id.
        len = word.get(..len).and_then(|id| id.find("--")).filter(|&arrow| arrow > 0).unwrap_or(len);
        let (id, rest) = word.split_at(len);
        let opened = rest.len() - rest.trim_start_matches(['[', '(', '{']).len();
        let label = (opened > 0).then(|| {
            let body = rest.get(opened..).unwrap_or("");
            let body = body.split(['\n', ']', ')', '}']).next().unwrap_or("");
            let quotes = body.len() - body.trim_start_matches('"').len();
            (len + opened + quotes, body.trim_matches('"'))
        });
        let end = label.map_or(len, |(lead, text)| lead + text.len());
        let closed = word.get(end..).unwrap_or("").trim_start_matches(['"', ']', ')', '}']);
        let class = closed.strip_prefix(":::").map(|class| class.split(|c| !is_id(c)).next().unwrap_or(""));
        at = start + end.max(1);
        Some((start, MermaidNode { id, label, class }))
    })
}
