//! Links: what one reference to a file says, how it is written, and the byte span of each part (spec/obsidian.md 2.3).
//!
//! Data types only. `text/link_syntax` parses them, `text/resolve` finds the file that a link means.

use serde::{Serialize, Serializer};

use crate::text::escapes::UnquotedString;
use crate::text::span::Span;

/// One reference to a file, or to a place in one, with the bytes of each of its parts (spec/obsidian.md 2.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The whole construct, `!` and brackets included.
    pub span: Span,
    /// The bytes that carry linkpath and subpath.
    pub dest_span: Span,
    /// The linkpath's bytes, without spaces around it.
    pub path_span: Span,
    /// The subpath's bytes from its `#` on; empty behind the path where there is none.
    pub subpath_span: Span,
    /// The alias behind the bar, or the label between `[` and `]`.
    pub alias_span: Option<Span>,
    /// How it is written.
    pub form: LinkForm,
    /// How the bytes of the destination decode.
    pub escape: Escape,
    /// What it stands in.
    pub place: LinkContext,
    /// The linkpath, decoded and trimmed; empty means the note itself.
    pub path: String,
    /// The subpath with its `#`, decoded; empty where there is none.
    pub subpath: String,
    /// The text that a reader sees; none for a reference definition.
    pub display: Option<String>,
    /// Whether the target is shown in place.
    pub embed: bool,
    /// The width, and the height where given, that an embed asks for.
    pub size: Option<(u32, Option<u32>)>,
    /// The property that holds it, such as `up` or `list.0`.
    pub key: Option<String>,
    /// Line of its first byte, counted from 1.
    pub line: usize,
    /// Whether it stands in a `%% … %%` comment.
    pub in_comment: bool,
}

impl Link {
    /// Moves the spans from the decoded text of `string`, in which the link was found, to the bytes of the file.
    #[must_use]
    pub fn in_file(self, string: &UnquotedString) -> Self {
        Self {
            span: string.raw(self.span),
            dest_span: string.raw(self.dest_span),
            path_span: string.raw(self.path_span),
            subpath_span: string.raw(self.subpath_span),
            alias_span: self.alias_span.map(|span| string.raw(span)),
            ..self
        }
    }
}

/// How a reference is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkForm {
    /// `[[path#subpath|alias]]`.
    Wiki,
    /// `[label](dest)`.
    MdPlain,
    /// `[label](<dest>)`.
    MdAngle,
    /// `[label]: dest`, with or without angle brackets.
    Refdef,
    /// A wikilink that is the whole of a property value.
    FmWiki,
    /// A markdown link that is the whole of a property value.
    FmMd,
    /// The `file` of a canvas node.
    CanvasFile,
    /// The `background` of a canvas group.
    CanvasGroup,
    /// A link in the text of a canvas node.
    CanvasText(TextForm),
}

/// How a link inside the text of a canvas node is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextForm {
    /// As [`LinkForm::Wiki`].
    Wiki,
    /// As [`LinkForm::MdPlain`].
    MdPlain,
    /// As [`LinkForm::MdAngle`].
    MdAngle,
    /// As [`LinkForm::Refdef`].
    Refdef,
}

impl LinkForm {
    /// Names the form as spec/obsidian.md 2.3 does.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wiki => "wiki",
            Self::MdPlain => "md-plain",
            Self::MdAngle => "md-angle",
            Self::Refdef => "refdef",
            Self::FmWiki => "fm-wiki",
            Self::FmMd => "fm-md",
            Self::CanvasFile => "canvas-file",
            Self::CanvasGroup => "canvas-group",
            Self::CanvasText(TextForm::Wiki) => "canvas-text-wiki",
            Self::CanvasText(TextForm::MdPlain) => "canvas-text-md-plain",
            Self::CanvasText(TextForm::MdAngle) => "canvas-text-md-angle",
            Self::CanvasText(TextForm::Refdef) => "canvas-text-refdef",
        }
    }

    /// Gives the form of the same link inside a property value; forms of a body only.
    #[must_use]
    pub fn in_property(self) -> Self {
        match self {
            Self::Wiki => Self::FmWiki,
            Self::MdPlain | Self::MdAngle => Self::FmMd,
            other => other,
        }
    }

    /// Gives the form of the same link inside the text of a canvas node; forms of a body only.
    #[must_use]
    pub fn in_canvas(self) -> Self {
        match self {
            Self::Wiki => Self::CanvasText(TextForm::Wiki),
            Self::MdPlain => Self::CanvasText(TextForm::MdPlain),
            Self::MdAngle => Self::CanvasText(TextForm::MdAngle),
            Self::Refdef => Self::CanvasText(TextForm::Refdef),
            other => other,
        }
    }
}

impl Serialize for LinkForm {
    /// Writes the name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// How the bytes of a destination decode: by the link's own rule first from the inside, then by the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
pub struct Escape {
    /// What the link's syntax asks for.
    pub inner: LinkEscape,
    /// What the string or file around the link asks for.
    pub host: HostEscape,
}

/// How a link's own syntax encodes its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkEscape {
    /// As it stands.
    #[default]
    None,
    /// CommonMark escapes, then percent-encoding.
    Percent,
    /// As it stands; the bar behind it is written `\|`, its backslash lies outside the destination.
    TableBar,
}

/// How the text around a link encodes the link's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostEscape {
    /// The file itself: nothing is encoded.
    #[default]
    None,
    /// A YAML scalar without quotes.
    YamlPlain,
    /// A YAML scalar in single quotes.
    YamlSingle,
    /// A YAML scalar in double quotes.
    YamlDouble,
    /// A JSON string.
    Json,
}

/// What a reference stands in; the innermost of these, a comment before all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkContext {
    /// Plain running text.
    #[default]
    Body,
    /// A heading.
    Heading,
    /// A list item.
    List,
    /// A table cell.
    Table,
    /// A block quote.
    Quote,
    /// A callout's title or body.
    Callout,
    /// A footnote's definition.
    Footnote,
    /// A `%% … %%` comment.
    Comment,
    /// A property value.
    Property,
    /// A field of a canvas node that is no text.
    Canvas,
}
