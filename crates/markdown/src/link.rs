//! Links: the target and form of one reference to a file, with the byte span of each part (docs/spec/obsidian.md 2.3).
//!
//! Data types only. `markdown/link_syntax` parses them, and `links/resolve` finds the file that a link resolves to.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::escapes::UnquotedString;
use crate::span::Span;

/// One reference to a file, or to a part of one, with the bytes of each of its parts (docs/spec/obsidian.md 2.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The whole construct, `!` and brackets included.
    pub span: Span,
    /// The bytes of the link path and the subpath.
    pub dest_span: Span,
    /// The linkpath's bytes, without spaces around it.
    pub path_span: Span,
    /// The subpath's bytes from its `#` on; empty if there is none.
    pub subpath_span: Span,
    /// The alias after the bar, or the label between `[` and `]`.
    pub alias_span: Option<Span>,
    /// The form of the link.
    pub form: LinkForm,
    /// The encoding of the destination.
    pub escape: Escape,
    /// The context of the link.
    pub place: LinkContext,
    /// The linkpath, decoded and trimmed; empty means the note itself. It contains a `#` if that was percent-encoded.
    pub path: String,
    /// The subpath with its `#`, decoded; empty if there is none.
    pub subpath: String,
    /// The displayed text; `None` for a reference definition.
    pub display: Option<String>,
    /// Whether the target is shown in place.
    pub embed: bool,
    /// The width, and the height if given, of an embed.
    pub size: Option<(u32, Option<u32>)>,
    /// The path of the property value with the link, such as `up` or `list.0`.
    pub key: Option<String>,
    /// The line of the first byte, counted from 1.
    pub line: usize,
    /// Whether it is in a `%% … %%` comment.
    pub in_comment: bool,
}

impl Link {
    /// Returns whether the path is a URL. The path of a Markdown link is never a URL, because its parser recognizes a
    /// URL before it decodes the destination. In all other forms a colon alone is a part of the name, as in `[[Dune:
    /// Part Two]]`.
    pub fn is_external(&self) -> bool {
        self.escape.inner != LinkEscape::Percent
            && is_external(&self.path)
            && (self.path.starts_with("//") || self.path.contains("://"))
    }

    /// Returns whether the path is what a template is filled in with, as in `[[{{title}}]]` and `[[<% tp.file.title %>]]`. Such a
    /// link leads nowhere until then.
    pub fn is_placeholder(&self) -> bool {
        is_placeholder(&self.path)
    }

    /// Returns the subpath where the path is looked up by name. A percent-encoded `#` in the destination begins it, too
    /// (docs/spec/obsidian.md 2.4).
    pub fn looked_up_subpath(&self) -> Cow<'_, str> {
        match self.path.find('#').filter(|_| self.escape.inner == LinkEscape::Percent) {
            Some(at) => Cow::Owned(format!("{}{}", self.path.get(at..).unwrap_or(""), self.subpath)),
            None => Cow::Borrowed(&self.subpath),
        }
    }

    /// Moves the spans from the decoded text of `string`, in which the link was found, to the bytes of the file.
    #[must_use]
    pub(crate) fn in_file(self, string: &UnquotedString) -> Self {
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

/// The form in which a reference is written.
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
    /// A wikilink that a property value consists of.
    FmWiki,
    /// A Markdown link that a property value consists of.
    FmMd,
    /// The `file` of a canvas node.
    CanvasFile,
    /// The `background` of a canvas group.
    CanvasGroup,
    /// A link in the text of a canvas node.
    CanvasText(TextForm),
}

/// The form of a link in the text of a canvas node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextForm {
    /// The form of [`LinkForm::Wiki`].
    Wiki,
    /// The form of [`LinkForm::MdPlain`].
    MdPlain,
    /// The form of [`LinkForm::MdAngle`].
    MdAngle,
    /// The form of [`LinkForm::Refdef`].
    Refdef,
}

/// How the path of a link is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkSyntax {
    /// It is looked up by name, as in a wikilink.
    Lookup,
    /// It is the path of the file from the root of the vault, as in file nodes of a canvas.
    Exact,
    /// It is the destination of a Markdown link in a note, which the dialect of the note decides about.
    Markdown,
}

impl LinkForm {
    /// Returns how the path of such a link is read.
    pub fn syntax(self) -> LinkSyntax {
        match self {
            Self::MdPlain | Self::MdAngle | Self::Refdef | Self::FmMd => LinkSyntax::Markdown,
            Self::CanvasFile | Self::CanvasGroup => LinkSyntax::Exact,
            // GitHub and site generators show no canvases.
            Self::Wiki | Self::FmWiki | Self::CanvasText(_) => LinkSyntax::Lookup,
        }
    }

    /// Returns the name of the form in docs/spec/obsidian.md 2.3.
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

    /// Returns the form of the same link in a property value. It applies to forms of a body.
    #[must_use]
    pub(crate) fn in_property(self) -> Self {
        match self {
            Self::Wiki => Self::FmWiki,
            Self::MdPlain | Self::MdAngle => Self::FmMd,
            other => other,
        }
    }

    /// Returns the form of the same link in the text of a canvas node. It applies to forms of a body.
    #[must_use]
    pub(crate) fn in_canvas(self) -> Self {
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
    /// Serializes the name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The encoding of a destination: first by the link's syntax, then by the host of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
pub struct Escape {
    /// The encoding of the link's syntax.
    pub inner: LinkEscape,
    /// The encoding of the string or file around the link.
    pub host: HostEscape,
}

/// The encoding of a destination by the link's syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkEscape {
    /// No encoding.
    #[default]
    None,
    /// CommonMark escapes, then percent-encoding.
    Percent,
    /// No encoding, but the bar after the destination is written `\|`. The backslash is outside the destination.
    TableBar,
}

/// The encoding of a link's bytes by the text around it.
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

/// The context of a reference: the innermost of these, except that a comment takes precedence.
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
    /// A field of a canvas node other than text.
    Canvas,
}

/// Returns whether a destination is external: it has a scheme or starts with `//` (docs/spec/obsidian.md 2.4).
///
/// A scheme has two letters or more, so `C:` is not one.
pub fn is_external(dest: &str) -> bool {
    let scheme = |colon: usize| {
        let bytes = dest.as_bytes().get(..colon).unwrap_or_default();
        let tail = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-');
        bytes.len() >= 2 && bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.iter().all(tail)
    };
    dest.starts_with("//") || memchr::memchr(b':', dest.as_bytes()).is_some_and(scheme)
}

/// Returns whether a path has a variable of a template in it.
pub fn is_placeholder(path: &str) -> bool {
    let has =
        |open: &str, close: &str| path.split_once(open).is_some_and(|(_, behind)| behind.contains(close));
    // Every link is asked, and next to none has one of these.
    memchr::memchr2(b'{', b'<', path.as_bytes()).is_some() && (has("{{", "}}") || has("<%", "%>"))
}
