//! Books in EPUB.

use std::collections::BTreeMap;

use crate::package::{Package, damaged, resolve};
use crate::properties::{self, Date};
use crate::writer::Writer;
use crate::xml::{self, Node};
use crate::{AttachmentText, PlaceKind, Unreadable, html};

/// Reads a book: a place for each part, in the order in which it is read.
pub(crate) fn read(bytes: &[u8]) -> Result<AttachmentText, Unreadable> {
    let mut package = Package::open(bytes)?;
    let container = package.need("META-INF/container.xml")?;
    let mut path = None;
    xml::walk(&container, |node| {
        if let Node::Start(element) = node
            && element.name() == "rootfile"
        {
            path = element.attribute("full-path");
        }
        path.is_none()
    });
    let path = path.ok_or_else(|| damaged("the book does not name its table of parts"))?;
    let description = package.need(&path)?;
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let Outline { parts, contents } = outline(&description, folder);
    let mut names = BTreeMap::new();
    for part in contents {
        if let Some(bytes) = package.read(&part)? {
            read_names(&bytes, part.rsplit_once('/').map_or("", |(folder, _)| folder), &mut names);
        }
    }
    let mut writer = Writer::new(PlaceKind::Chapter);
    for part in parts {
        let Some(bytes) = package.read(&part)? else {
            continue;
        };
        let (written, shown) = html::write(&bytes, writer, false);
        writer = written;
        writer.end_as(names.remove(&part).or(shown.first_heading));
        if writer.is_full() {
            break;
        }
    }
    Ok(AttachmentText { places: writer.finish()?, ..properties::read(&description, Date::Created) })
}

/// The parts of a book.
struct Outline {
    /// Those that are read, in order.
    parts: Vec<String>,
    /// Those that hold a table of contents.
    contents: Vec<String>,
}

fn outline(description: &[u8], folder: &str) -> Outline {
    let mut files = BTreeMap::new();
    let mut order = Vec::new();
    let mut contents = Vec::new();
    xml::walk(description, |node| {
        if let Node::Start(element) = node {
            match element.name() {
                "item" => {
                    if let (Some(id), Some(href)) = (element.attribute("id"), element.attribute("href")) {
                        let part = resolve(folder, &unescaped(&href));
                        let is_nav = element
                            .attribute("properties")
                            .is_some_and(|all| all.split_whitespace().any(|one| one == "nav"));
                        let is_ncx =
                            element.attribute("media-type").as_deref() == Some("application/x-dtbncx+xml");
                        if is_nav || is_ncx {
                            contents.push(part.clone());
                        }
                        files.insert(id, part);
                    }
                }
                "itemref" => order.extend(element.attribute("idref")),
                _ => {}
            }
        }
        true
    });
    Outline { parts: order.iter().filter_map(|id| files.remove(id)).collect(), contents }
}

/// Reads the names of parts from a table of contents, either of XHTML or of the older form NCX.
fn read_names(bytes: &[u8], folder: &str, names: &mut BTreeMap<String, String>) {
    let mut target: Option<String> = None;
    let mut label = String::new();
    let mut in_label = false;
    xml::walk(bytes, |node| {
        match node {
            Node::Start(element) => match element.name() {
                "a" => {
                    target = element.attribute("href");
                    label.clear();
                    in_label = true;
                }
                "navLabel" => {
                    label.clear();
                    in_label = true;
                }
                "content" => {
                    if let Some(source) = element.attribute("src") {
                        name(names, folder, &source, &label);
                    }
                }
                _ => {}
            },
            Node::Text(text) if in_label => label.push_str(&text),
            Node::Text(_) => {}
            Node::End(end) => match end.as_str() {
                "a" => {
                    if let Some(href) = target.take() {
                        name(names, folder, &href, &label);
                    }
                    in_label = false;
                }
                "navLabel" => in_label = false,
                _ => {}
            },
        }
        true
    });
}

fn name(names: &mut BTreeMap<String, String>, folder: &str, target: &str, label: &str) {
    let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
    let file = target.split('#').next().unwrap_or_default();
    if !label.is_empty() && !file.is_empty() {
        names.entry(resolve(folder, &unescaped(file))).or_insert(label);
    }
}

/// Decodes `%20` and its like.
fn unescaped(address: &str) -> String {
    let bytes = address.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| address.get(at + 1..at + 3)).flatten();
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            decoded.push(byte);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
