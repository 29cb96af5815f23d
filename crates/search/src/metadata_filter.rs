//! Filters of queries on the metadata of files, such as `type:` and `rel:`.

use std::fmt;

use sidenote_base::clock::Timestamp;
use sidenote_memory::tier::Tier;

/// A filter on the metadata of a file. Obsidian's search language has no such filters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MetadataFilter {
    /// The note has this `type`; case is ignored.
    Type(String),
    /// The note has this `category`; case is ignored.
    Category(String),
    /// The memory has this tier.
    Tier(Tier),
    /// The file was created at or after the first time and before the second.
    Created(Option<Timestamp>, Option<Timestamp>),
    /// The file was last updated at or after the first time and before the second.
    Updated(Option<Timestamp>, Option<Timestamp>),
    /// The file links to this note.
    LinksTo(String),
    /// This note links to the file.
    LinkedFrom(String),
    /// The file is at one end of a relation of this type, or of any; the other end is this note, or any.
    Relation(Option<String>, Option<String>),
    /// No link leads to the file or from it.
    Orphan,
    /// The note has the property `pinned: true`.
    Pinned,
}

impl fmt::Display for MetadataFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period =
            |f: &mut fmt::Formatter<'_>, name: &str, from: &Option<Timestamp>, to: &Option<Timestamp>| {
                let shown =
                    |bound: &Option<Timestamp>| bound.map_or_else(String::new, Timestamp::local_rfc3339);
                write!(f, "{name}:{}..{}", shown(from), shown(to))
            };
        match self {
            Self::Type(name) => write!(f, "type:{name}"),
            Self::Category(name) => write!(f, "category:{name}"),
            Self::Tier(tier) => write!(f, "tier:{}", tier.name().to_lowercase()),
            Self::Created(from, to) => period(f, "created", from, to),
            Self::Updated(from, to) => period(f, "updated", from, to),
            Self::LinksTo(note) => write!(f, "links-to:[[{note}]]"),
            Self::LinkedFrom(note) => write!(f, "linked-from:[[{note}]]"),
            Self::Relation(kind, note) => {
                let kind = kind.as_deref().unwrap_or_default();
                let joint = if kind.is_empty() || note.is_none() { "" } else { ":" };
                let note = note.as_ref().map_or_else(String::new, |note| format!("[[{note}]]"));
                write!(f, "rel:{kind}{joint}{note}")
            }
            Self::Orphan => f.write_str("is:orphan"),
            Self::Pinned => f.write_str("is:pinned"),
        }
    }
}
