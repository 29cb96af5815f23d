//! Checks the links of README.md, ARCHITECTURE.md, CONTRIBUTING.md and the manual: every relative link names a file
//! that exists, every anchor a heading of that file, and the summary lists every page of the manual.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::support::repository;

/// One document: the targets of its links, with the line of each, and the ids of its headings.
#[derive(Debug, Default)]
struct Document {
    links: Vec<(usize, String)>,
    anchors: BTreeSet<String>,
}

impl Document {
    fn read(text: &str) -> Self {
        let mut document = Self::default();
        let mut repeats: HashMap<String, usize> = HashMap::new();
        let mut heading: Option<String> = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
        for (event, span) in Parser::new_ext(text, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    let repeat = repeats.entry(slug.clone()).or_default();
                    document.anchors.insert(if *repeat == 0 { slug } else { format!("{slug}-{repeat}") });
                    *repeat += 1;
                }
                Event::Text(part) | Event::Code(part) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&part);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let line = 1 + text[..span.start].matches('\n').count();
                    document.links.push((line, dest_url.to_string()));
                }
                _ => {}
            }
        }
        document
    }
}

/// Makes the id that mdBook and GitHub give a heading.
fn slug(heading: &str) -> String {
    let mut slug = String::new();
    for c in heading.trim().chars().flat_map(char::to_lowercase) {
        match c {
            ' ' => slug.push('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => slug.push(c),
            _ => {}
        }
    }
    slug
}

/// Joins a relative link to the folder of its page; `None` if it leaves the repository.
fn joined(folder: &Path, link: &str) -> Option<PathBuf> {
    let mut path = folder.to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => path.pop().then_some(())?,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// Names every Markdown file below a folder of the repository.
fn pages(folder: &str) -> BTreeSet<PathBuf> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![PathBuf::from(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(repository().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.insert(path);
            }
        }
    }
    found
}

/// Reads the documents whose links are checked.
fn documents() -> BTreeMap<PathBuf, Document> {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(PathBuf::from);
    let top = top.into_iter().filter(|path| repository().join(path).is_file());
    let paths: BTreeSet<PathBuf> = top.chain(pages("docs")).collect();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(repository().join(&path)).unwrap();
        (path, Document::read(&text))
    };
    paths.into_iter().map(read).collect()
}

/// Describes the problem of a link, if there is one.
fn fault(documents: &BTreeMap<PathBuf, Document>, from: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = target.replace("%20", " ");
    let folder = from.parent().unwrap_or(Path::new(""));
    let path = if target.is_empty() { Some(from.to_owned()) } else { joined(folder, &target) };
    let Some(path) = path.filter(|path| repository().join(path).exists()) else {
        return Some(format!("{target} does not exist"));
    };
    let book = Path::new("docs/src");
    if from.starts_with(book) && !path.starts_with(book) {
        return Some(format!("{target} is not part of the book, so the link is dead there"));
    }
    let is_known = anchor.is_empty() || documents.get(&path).is_none_or(|page| page.anchors.contains(anchor));
    (!is_known).then(|| format!("{} has no heading with the id {anchor}", path.display()))
}

#[test]
fn every_link_of_the_manual_leads_somewhere() {
    let documents = documents();
    let mut faults = Vec::new();
    let mut checked = 0;
    for (path, document) in &documents {
        for (line, link) in &document.links {
            checked += 1;
            if let Some(fault) = fault(&documents, path, link) {
                faults.push(format!("{}:{line}: {fault}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    assert!(checked > 100, "only {checked} links were found");
}

#[test]
fn the_summary_lists_every_page_once() {
    let documents = documents();
    let summary = Path::new("docs/src/SUMMARY.md");
    let links = documents[summary].links.iter();
    let mut listed: Vec<PathBuf> = links.map(|(_, link)| Path::new("docs/src").join(link)).collect();
    listed.sort();
    let mut expected = pages("docs/src");
    expected.remove(summary);
    assert_eq!(listed, expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn links_and_ids_are_read_as_mdbook_reads_them() {
    let text = "# A `b --c` D\n\n## Twice\n\n## Twice\n\n[x](a.md#y) `[no](no.md)`\n\n![i](i.svg) [r]\n\n[r]: <b c.md>\n";
    let document = Document::read(text);
    let anchors: Vec<&str> = document.anchors.iter().map(String::as_str).collect();
    assert_eq!(anchors, ["a-b---c-d", "twice", "twice-1"]);
    let links: Vec<(usize, &str)> =
        document.links.iter().map(|(line, link)| (*line, link.as_str())).collect();
    assert_eq!(links, [(7, "a.md#y"), (9, "i.svg"), (9, "b c.md")]);
}

#[test]
fn broken_links_and_anchors_are_detected() {
    let page = |text: &str| Document::read(text);
    let from = PathBuf::from("docs/src/SUMMARY.md");
    let documents = BTreeMap::from([(from.clone(), page("# Summary\n"))]);
    let cases = [
        ("https://example.org/none.md", None),
        ("#summary", None),
        ("SUMMARY.md#summary", None),
        ("#none", Some("docs/src/SUMMARY.md has no heading with the id none")),
        ("none.md", Some("none.md does not exist")),
        ("../../../../x.md", Some("../../../../x.md does not exist")),
        ("../../Cargo.toml", Some("../../Cargo.toml is not part of the book, so the link is dead there")),
    ];
    for (link, expected) in cases {
        assert_eq!(fault(&documents, &from, link).as_deref(), expected, "{link}");
    }
}
