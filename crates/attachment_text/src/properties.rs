//! What a file states about itself in XML: title, authors and dates, in the elements that XMP, Office, OpenDocument and
//! EPUB share.

use crate::AttachmentText;
use crate::xml::{self, Node};

/// What the element `date` without more means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Date {
    /// When the text appeared, as in EPUB.
    Created,
    /// When the file was changed, as in OpenDocument.
    Modified,
}

/// Reads the properties of a document; what is no XML states nothing.
pub(crate) fn read(bytes: &[u8], date: Date) -> AttachmentText {
    let mut stated = AttachmentText::default();
    let mut open: Option<Property> = None;
    let mut text = String::new();
    xml::walk(bytes, |node| {
        match node {
            Node::Start(element) => {
                if let Some(property) =
                    property(element.name(), element.attribute("property").as_deref(), date)
                {
                    open = Some(property);
                    text.clear();
                }
                // XMP may write a property as an attribute.
                for (name, property) in
                    [("CreateDate", Property::Created), ("ModifyDate", Property::Modified)]
                {
                    if let Some(value) = element.attribute(name) {
                        state(&mut stated, property, &value);
                    }
                }
            }
            Node::Text(part) => {
                if open.is_some() {
                    text.push_str(&part);
                }
            }
            Node::End(name) => {
                if let Some(property) = open {
                    // XMP has a list of values in a property.
                    if name == "li" || self::property(&name, None, date).is_some() || name == "meta" {
                        state(&mut stated, property, &std::mem::take(&mut text));
                    }
                    if name != "li" && name != "Alt" && name != "Seq" && name != "Bag" {
                        open = None;
                    }
                }
            }
        }
        true
    });
    stated
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Property {
    Title,
    Author,
    Created,
    Modified,
}

fn property(name: &str, of_meta: Option<&str>, date: Date) -> Option<Property> {
    Some(match name {
        "title" => Property::Title,
        "creator" | "initial-creator" => Property::Author,
        "created" | "creation-date" | "CreateDate" => Property::Created,
        "modified" | "ModifyDate" => Property::Modified,
        "date" if date == Date::Created => Property::Created,
        "date" => Property::Modified,
        "meta" if of_meta == Some("dcterms:modified") => Property::Modified,
        _ => return None,
    })
}

fn state(stated: &mut AttachmentText, property: Property, value: &str) {
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    if value.is_empty() {
        return;
    }
    let date = |slot: &mut Option<String>| {
        // A date of ISO 8601 begins with a year; the longest has 35 characters.
        let is_date =
            value.len() <= 35 && value.len() >= 4 && value.bytes().take(4).all(|b| b.is_ascii_digit());
        if slot.is_none() && is_date {
            *slot = Some(value.clone());
        }
    };
    match property {
        Property::Title if stated.title.is_none() => stated.title = Some(value),
        Property::Title => {}
        Property::Author if !stated.authors.contains(&value) => stated.authors.push(value),
        Property::Author => {}
        Property::Created => date(&mut stated.created),
        Property::Modified => date(&mut stated.modified),
    }
}

#[cfg(test)]
mod tests {
    use super::{Date, read};

    #[test]
    fn properties_are_read_from_all_forms() {
        let xmp = r#"<x:xmpmeta xmlns:x="x"><rdf:RDF><rdf:Description xmp:CreateDate="2020-01-02T03:04:05Z"><dc:title><rdf:Alt>
            <rdf:li xml:lang="x-default">A &amp; B</rdf:li></rdf:Alt></dc:title><dc:creator><rdf:Seq><rdf:li>Ada</rdf:li>
            <rdf:li>Bob</rdf:li></rdf:Seq></dc:creator><xmp:ModifyDate>2021-01-01</xmp:ModifyDate></rdf:Description></rdf:RDF></x:xmpmeta>"#;
        let office = r#"<cp:coreProperties><dc:title>A &amp; B</dc:title><dc:creator>Ada</dc:creator><dc:creator>Bob</dc:creator>
            <dcterms:created>2020-01-02T03:04:05Z</dcterms:created><dcterms:modified>2021-01-01</dcterms:modified></cp:coreProperties>"#;
        let open_document = r#"<office:meta><dc:title>A &amp; B</dc:title><meta:initial-creator>Ada</meta:initial-creator>
            <dc:creator>Bob</dc:creator><meta:creation-date>2020-01-02T03:04:05Z</meta:creation-date><dc:date>2021-01-01</dc:date></office:meta>"#;
        let epub = r#"<metadata><dc:title>A &amp; B</dc:title><dc:creator>Ada</dc:creator><dc:creator>Bob</dc:creator>
            <dc:date>2020-01-02T03:04:05Z</dc:date><meta property="dcterms:modified">2021-01-01</meta></metadata>"#;
        let cases = [
            (xmp, Date::Modified),
            (office, Date::Modified),
            (open_document, Date::Modified),
            (epub, Date::Created),
        ];
        for (xml, date) in cases {
            let stated = read(xml.as_bytes(), date);
            assert_eq!(stated.title.as_deref(), Some("A & B"), "{xml}");
            assert_eq!(stated.authors, ["Ada", "Bob"], "{xml}");
            assert_eq!(stated.created.as_deref(), Some("2020-01-02T03:04:05Z"), "{xml}");
            assert_eq!(stated.modified.as_deref(), Some("2021-01-01"), "{xml}");
        }
    }
}
