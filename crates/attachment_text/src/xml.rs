//! XML as a flat run of elements and texts. Entities of a document's own are not expanded.

use std::borrow::Cow;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// How deep elements stand in elements. Office files use some 30 levels.
const MAX_DEPTH: usize = 512;

/// A part of an XML document. Names have no prefix.
#[derive(Debug)]
pub(crate) enum Node<'a> {
    /// An element begins.
    Start(Element<'a>),
    /// An element ends.
    End(String),
    /// A text between tags, or a part of one.
    Text(Cow<'a, str>),
}

/// The start tag of an element.
#[derive(Debug)]
pub(crate) struct Element<'a>(BytesStart<'a>);

impl Element<'_> {
    /// Its name without prefix.
    pub(crate) fn name(&self) -> &str {
        self.0.local_name().into_inner()
    }

    /// The value of the attribute with a name; its prefix does not count.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        attributes.with_checks(false);
        let found = attributes.flatten().find(|attribute| attribute.key.local_name().into_inner() == name)?;
        found.normalized_value(XmlVersion::Implicit1_0).ok().map(Cow::into_owned)
    }

    /// The value of an attribute whose prefix counts, as of `r:id` beside `id`.
    pub(crate) fn prefixed(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        attributes.with_checks(false);
        let found = attributes.flatten().find(|attribute| attribute.key.into_inner() == name)?;
        found.normalized_value(XmlVersion::Implicit1_0).ok().map(Cow::into_owned)
    }
}

/// Calls `see` for each part of a document, in order, until it returns `false` or the document breaks off.
pub(crate) fn walk(bytes: &[u8], mut see: impl FnMut(Node<'_>) -> bool) {
    let text = decoded(bytes);
    let mut reader = Reader::from_str(&text);
    reader.config_mut().expand_empty_elements = true;
    reader.config_mut().check_end_names = false;
    let mut depth = 0_usize;
    while let Ok(event) = reader.read_event() {
        let node = match event {
            Event::Start(start) => {
                depth += 1;
                Node::Start(Element(start))
            }
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                Node::End(end.local_name().into_inner().to_owned())
            }
            Event::Text(text) => Node::Text(text.xml10_content()),
            Event::CData(text) => Node::Text(text.xml10_content()),
            Event::GeneralRef(entity) => match entity.resolve_char_ref() {
                Ok(Some(c)) => Node::Text(c.to_string().into()),
                _ => match quick_xml::escape::resolve_predefined_entity(&entity.into_inner()) {
                    Some(text) => Node::Text(text.into()),
                    None => continue,
                },
            },
            Event::Eof => return,
            _ => continue,
        };
        if depth > MAX_DEPTH || !see(node) {
            return;
        }
    }
}

/// Decodes UTF-8, or UTF-16 with a byte order mark.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, length)) => encoding.decode_without_bom_handling(&bytes[length..]).0,
        None => String::from_utf8_lossy(bytes),
    }
}
