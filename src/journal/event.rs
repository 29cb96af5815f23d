//! One event of the journal, and its JSON form.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::clock::{Timestamp, event_id};
use crate::text::edit::{ContentHash, FileLocation, FolderMove};
use crate::text::path::NotePath;
use crate::vault::applied::Applied;

/// The operation of files that somebody else moved, and that were only seen to have moved.
pub const OP_MOVED: &str = "moved";

/// The operation of files that come back from a backup: they are what they were, and not new.
pub const OP_RESTORE_BACKUP: &str = "restore-backup";

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its name, which sorts by time; for a change of files also the name of its before-images.
    pub id: String,
    /// When it happened.
    #[serde(serialize_with = "write_moment", deserialize_with = "read_moment")]
    pub at: Timestamp,
    /// What was done: `move`, `set`, `undo`.
    pub op: String,
    /// Folders that moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<FolderMove>,
    /// Files that were made, changed, moved or removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<TouchedFile>,
    /// The event that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// A remark in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whatever else events of this kind say.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What an event did to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchedFile {
    /// The path that it had; for a new file the path that it got.
    #[serde(serialize_with = "write_place", deserialize_with = "read_place")]
    pub path: FileLocation,
    /// The path that it got by moving.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_to",
        deserialize_with = "read_to"
    )]
    pub to: Option<FileLocation>,
    /// The hash of its bytes before; nothing for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ContentHash>,
    /// The hash of its bytes afterwards; nothing for one that was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ContentHash>,
}

impl TouchedFile {
    /// Says where the file was after the event, were it not removed.
    pub fn end(&self) -> &FileLocation {
        self.to.as_ref().unwrap_or(&self.path)
    }
}

/// Writes a moment with milliseconds, so that none are lost.
fn write_moment<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    let whole = at.rfc3339();
    match (at.millis().rem_euclid(1000), whole.strip_suffix('Z')) {
        (millis @ 1.., Some(whole)) => serializer.collect_str(&format_args!("{whole}.{millis:03}Z")),
        _ => serializer.serialize_str(&whole),
    }
}

fn read_moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    Timestamp::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no time")))
}

/// Writes a place as people know it: `.trash/…` for what is in the bin.
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
    let place = match text.strip_prefix(".trash/") {
        Some(inner) => NotePath::from_disk(inner).map(FileLocation::Trash),
        None => NotePath::from_disk(text).map(FileLocation::Vault),
    };
    place.ok_or_else(|| E::custom(format!("{text:?} is no path in a vault")))
}

impl Event {
    /// Makes an event of its own, such as a use, with a new id.
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

    /// Names what the event is about: the folder or file that moved, came or went, else the first that changed. What
    /// only follows, such as a note whose links change, is not it.
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

    /// Makes the event of an operation that landed.
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
