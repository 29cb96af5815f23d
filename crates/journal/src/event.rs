//! One event of the journal, and its JSON form.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use sidenote_base::clock::{Timestamp, event_id};
use sidenote_markdown::edit::{ContentHash, FileLocation, FolderMove};
use sidenote_vault::apply_result::Applied;

/// The operation name for files that another program moved.
pub const OP_MOVED: &str = "moved";

/// The operation name for a consolidation that a process made by itself.
pub const OP_CONSOLIDATE: &str = "consolidate";

/// The operation name for files that are restored from a backup. They do not count as new.
pub const OP_RESTORE_BACKUP: &str = "restore-backup";

/// One event of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The id, which sorts by time. For a change of files it is also the id of the before-images.
    pub id: String,
    /// The time of the event.
    #[serde(serialize_with = "write_moment", deserialize_with = "read_moment")]
    pub at: Timestamp,
    /// The name of the operation, such as `move`, `set` or `undo`.
    pub op: String,
    /// The folders that moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<FolderMove>,
    /// The files that were created, changed, moved or removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<TouchedFile>,
    /// The id of the event that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// A remark in free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The other fields, which depend on the operation.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// One file of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchedFile {
    /// The path before the event; for a new file the path after it.
    #[serde(serialize_with = "write_place", deserialize_with = "read_place")]
    pub path: FileLocation,
    /// The path after the event, if the file moved.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_to",
        deserialize_with = "read_to"
    )]
    pub to: Option<FileLocation>,
    /// The hash of the bytes before the event; `None` for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ContentHash>,
    /// The hash of the bytes after the event; `None` for a removed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ContentHash>,
}

impl TouchedFile {
    /// Returns the path after the event; for a removed file the path that it had.
    pub fn end(&self) -> &FileLocation {
        self.to.as_ref().unwrap_or(&self.path)
    }
}

/// Serializes a time as RFC 3339 with milliseconds.
fn write_moment<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    let whole = at.rfc3339();
    match (at.millis().rem_euclid(1000), whole.strip_suffix('Z')) {
        (millis @ 1.., Some(whole)) => serializer.collect_str(&format_args!("{whole}.{millis:03}Z")),
        _ => serializer.serialize_str(&whole),
    }
}

fn read_moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    Timestamp::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a time")))
}

/// Serializes a location as a path, `.trash/…` for a file in the trash.
fn write_place<S: Serializer>(place: &FileLocation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(place)
}

fn read_place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FileLocation, D::Error> {
    parse_place(&String::deserialize(deserializer)?)
}

fn write_to<S: Serializer>(place: &Option<FileLocation>, serializer: S) -> Result<S::Ok, S::Error> {
    match place {
        Some(place) => serializer.collect_str(place),
        None => serializer.serialize_none(),
    }
}

fn read_to<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<FileLocation>, D::Error> {
    Option::<String>::deserialize(deserializer)?.map(|text| parse_place(&text)).transpose()
}

fn parse_place<E: serde::de::Error>(text: &str) -> Result<FileLocation, E> {
    FileLocation::parse(text).ok_or_else(|| E::custom(format!("{text:?} is not a path in a vault")))
}

impl Event {
    /// Creates an event with a new id.
    pub fn new(op: impl Into<String>, at: Timestamp) -> Self {
        Self {
            id: event_id(at).simple().to_string(),
            at,
            op: op.into(),
            folders: Vec::new(),
            files: Vec::new(),
            undoes: None,
            note: None,
            more: Map::new(),
        }
    }

    /// Returns the main path of the event: the folder or file that was moved, created or removed, otherwise the first file
    /// that changed.
    pub fn subject(&self) -> Option<String> {
        if let Some(folder) = self.folders.first() {
            return Some(format!("{} -> {}", folder.from, folder.to));
        }
        let moved = self.files.iter().find(|file| file.to.is_some());
        let is_other = |file: &&TouchedFile| file.before.is_none() || file.after.is_none();
        let file = moved.or_else(|| self.files.iter().find(is_other)).or_else(|| self.files.first())?;
        Some(match &file.to {
            Some(to) => format!("{} -> {to}", file.path),
            None => file.path.to_string(),
        })
    }

    /// Creates the event of a committed operation.
    pub fn of(applied: &Applied) -> Self {
        let files = applied.files.iter().filter_map(|file| {
            let path = file.from.as_ref().or(file.to.as_ref())?.clone();
            let to = file.to.clone().filter(|to| *to != path);
            Some(TouchedFile { path, to, before: file.before, after: file.after })
        });
        Self {
            id: applied.id.clone(),
            folders: applied.folders.clone(),
            files: files.collect(),
            undoes: applied.undoes.clone(),
            more: applied.more.clone(),
            ..Self::new(applied.operation.clone(), applied.at)
        }
    }
}
