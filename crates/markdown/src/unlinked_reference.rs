//! Unlinked references: names of files that Obsidian does not treat as links, such as a wikilink next to other text in a
//! property, the source of an image in HTML, or a node of a Mermaid diagram (docs/spec/obsidian.md 2.7, 4.6, 4.7).

use crate::link::Link;

/// A name of a file that is not a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlinkedReference {
    /// The kind of the reference.
    pub kind: UnlinkedReferenceKind,
    /// The link that it would be, with its spans.
    pub link: Link,
}

/// The reason why a name of a file is not a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnlinkedReferenceKind {
    /// A wikilink that is a part of a property value, decoded in full.
    PartialProperty,
    /// A wikilink that is a part of a property value whose bytes differ from its text, such as a block scalar.
    FoldedProperty,
    /// A node of a Mermaid diagram of the class `internal-link`.
    MermaidNode,
    /// An attribute of an HTML tag, such as `src` or `href`. It is followed as a link.
    HtmlAttribute,
    /// A file that mdBook puts into a page, as in `{{#include main.rs}}`. It is followed as a link in a book.
    Include,
    /// A wikilink in frontmatter that is not YAML.
    BrokenYaml,
    /// A wikilink or path in a canvas that is not JSON.
    BrokenJson,
}

impl UnlinkedReferenceKind {
    /// Returns the code of docs/spec/obsidian.md 4.7.
    pub fn code(self) -> &'static str {
        match self {
            Self::PartialProperty | Self::FoldedProperty => "partial-property",
            Self::MermaidNode => "mermaid-node",
            Self::HtmlAttribute => "html-attribute",
            Self::Include => "include",
            Self::BrokenYaml => "yaml-unparsable",
            Self::BrokenJson => "json-unparsable",
        }
    }

    /// Returns the message for the user on why it was left unchanged.
    pub fn why(self) -> &'static str {
        match self {
            Self::PartialProperty => "a link next to other text in a property was not changed",
            Self::FoldedProperty => "a link next to other text in a property cannot be changed",
            Self::MermaidNode => "a node of a diagram names the file",
            Self::HtmlAttribute => "an attribute of an HTML tag names the file and was not changed",
            Self::Include => "an include of mdBook names the file",
            Self::BrokenYaml => "the frontmatter cannot be read, so its links were not changed",
            Self::BrokenJson => "the canvas cannot be read, so it was not changed",
        }
    }
}
