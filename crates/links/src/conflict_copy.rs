//! The names that synchronisation programs give to the second version of a note that two devices changed
//! (docs/spec/git.md 4).
//!
//! The name alone decides only for programs whose names nobody else writes. For the others the contents must agree.

use std::fmt;

use serde::{Serialize, Serializer};
use sidenote_base::clock::Timestamp;
use sidenote_language::graphemes::end_before;
use sidenote_markdown::path::NotePath;

/// The longest name of a person in the name of a conflict copy, in characters.
const MAX_WHO: usize = 40;
/// The longest name of a file in bytes.
const MAX_NAME_LEN: usize = 255;

/// A program that leaves conflict copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SyncProgram {
    /// Syncthing.
    Syncthing,
    /// Dropbox.
    Dropbox,
    /// Nextcloud.
    Nextcloud,
    /// Obsidian Sync.
    ObsidianSync,
    /// Resilio Sync.
    Resilio,
    /// Apple's iCloud Drive.
    ICloud,
    /// OneDrive.
    OneDrive,
    /// Google Drive.
    GoogleDrive,
    /// `sidenote sync`.
    Sidenote,
}

impl SyncProgram {
    /// Returns whether notes are also named this way by people, so that the contents have to agree.
    pub fn needs_evidence(self) -> bool {
        matches!(self, Self::ICloud | Self::OneDrive | Self::GoogleDrive)
    }
}

impl fmt::Display for SyncProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syncthing => "Syncthing",
            Self::Dropbox => "Dropbox",
            Self::Nextcloud => "Nextcloud",
            Self::ObsidianSync => "Obsidian Sync",
            Self::Resilio => "Resilio Sync",
            Self::ICloud => "iCloud Drive",
            Self::OneDrive => "OneDrive",
            Self::GoogleDrive => "Google Drive",
            Self::Sidenote => "sidenote sync",
        })
    }
}

impl Serialize for SyncProgram {
    /// Serializes the name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What the name of a conflict copy says: which program made it, and of which file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictName {
    /// The program.
    pub program: SyncProgram,
    /// The path of the file that it is a copy of.
    pub original: NotePath,
}

/// Lists the files that a file can be a conflict copy of, by its name, the most likely one first.
pub fn conflict_names(path: &NotePath) -> Vec<ConflictName> {
    let stem = path.stem();
    let named = |(program, original): (SyncProgram, &str)| {
        let folder = if path.folder().is_empty() { String::new() } else { format!("{}/", path.folder()) };
        let name = match path.extension() {
            "" => original.to_owned(),
            extension => format!("{original}.{extension}"),
        };
        Some(ConflictName { program, original: NotePath::parse(&format!("{folder}{name}")).ok()? })
    };
    let certain =
        syncthing(stem).or_else(|| resilio(stem)).or_else(|| in_parentheses(stem)).or_else(|| sidenote(stem));
    if let Some(certain) = certain {
        return named(certain).into_iter().collect();
    }
    let numbered = numbered(stem).into_iter();
    numbered.chain(with_device(stem)).filter_map(named).collect()
}

/// Parses `n.sync-conflict-20260102-101112-ABCDEFG`. Early versions wrote no device.
fn syncthing(stem: &str) -> Option<(SyncProgram, &str)> {
    let (original, mark) = stem.rsplit_once(".sync-conflict-")?;
    let mut parts = mark.split('-');
    let (date, time, device) = (parts.next()?, parts.next()?, parts.next());
    let is_device =
        |text: &str| text.len() == 7 && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    let is_mark = is_digits(date, 8) && is_digits(time, 6) && device.is_none_or(is_device);
    (is_mark && parts.next().is_none() && !original.is_empty()).then_some((SyncProgram::Syncthing, original))
}

/// What the name of a conflict copy of `sidenote sync` says, in parentheses: `conflict 2026-11-23 14.05 Anna`. The time is a
/// local one.
pub fn conflict_mark(at: Timestamp, who: &str) -> String {
    let time = at.local().strftime("%Y-%m-%d %H.%M");
    let who: String =
        who.chars().filter(|c| c.is_alphanumeric() || " -_.".contains(*c)).take(MAX_WHO).collect();
    let who = who.trim().trim_end_matches('.');
    let who = if who.is_empty() { "unnamed" } else { who };
    format!("conflict {time} {who}")
}

/// Returns a path with a mark before the extension of its file name, or at the end of the folder that its first `folders`
/// segments name.
pub fn marked_path(path: &str, folders: Option<usize>, mark: &str) -> String {
    if let Some(count) = folders {
        let mut segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        if let Some(segment) = segments.get_mut(count.saturating_sub(1)) {
            *segment = with_mark(segment, "", mark);
        }
        return segments.join("/");
    }
    let (folder, name) = path.rsplit_once('/').map_or((None, path), |(folder, name)| (Some(folder), name));
    let (stem, extension) = match name.rfind('.') {
        Some(dot) if dot > 0 => name.split_at(dot),
        _ => (name, ""),
    };
    let marked = with_mark(stem, extension, mark);
    folder.map_or_else(|| marked.clone(), |folder| format!("{folder}/{marked}"))
}

/// Adds a mark to a name, which is shortened to the longest name of a file.
fn with_mark(stem: &str, extension: &str, mark: &str) -> String {
    let end = format!(" ({mark}){extension}");
    let room = end_before(stem, MAX_NAME_LEN.saturating_sub(end.len()));
    format!("{}{end}", stem.get(..room).unwrap_or_default())
}

/// Parses `n (conflict 2026-11-23 14.05 Anna)`.
fn sidenote(stem: &str) -> Option<(SyncProgram, &str)> {
    let (original, mark) = stem.strip_suffix(')')?.rsplit_once(" (conflict ")?;
    let mut parts = mark.splitn(3, ' ');
    let (date, time, who) = (parts.next()?, parts.next()?, parts.next()?);
    let (hour, minute) = time.split_once('.')?;
    let is_mark = is_date(date) && is_digits(hour, 2) && is_digits(minute, 2) && !who.trim().is_empty();
    (is_mark && !original.is_empty()).then_some((SyncProgram::Sidenote, original))
}

/// Parses `n.Conflict`.
fn resilio(stem: &str) -> Option<(SyncProgram, &str)> {
    let original = stem.strip_suffix(".Conflict").filter(|original| !original.is_empty())?;
    Some((SyncProgram::Resilio, original))
}

/// Parses the marks in parentheses at the end: of Dropbox, Nextcloud and Obsidian Sync.
fn in_parentheses(stem: &str) -> Option<(SyncProgram, &str)> {
    let inner = stem.strip_suffix(')')?;
    let before = inner.get(..inner.rfind("onflicted copy ")?)?;
    let (original, _) = before.rsplit_once(" (")?;
    let mark = inner.get(original.len() + " (".len()..)?;
    if original.is_empty() {
        return None;
    }
    if let Some(mark) = mark.strip_prefix("Conflicted copy ") {
        let (device, time) = mark.rsplit_once(' ')?;
        let is_mark = !device.trim().is_empty() && is_digits(time, 12);
        return is_mark.then_some((SyncProgram::ObsidianSync, original));
    }
    let (who, when) = mark.split_once("conflicted copy ")?;
    let mut parts = when.split(' ');
    let (date, time) = (parts.next()?, parts.next());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // A time of Nextcloud, or the number that Dropbox gives to a second copy of a day.
    let is_time = |text: &str| {
        is_digits(text, 6)
            || text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).is_some_and(is_number)
    };
    let is_mark = is_date(date) && time.is_none_or(is_time) && parts.next().is_none();
    let program = if who.is_empty() { SyncProgram::Nextcloud } else { SyncProgram::Dropbox };
    (is_mark && (who.is_empty() || who.ends_with(' '))).then_some((program, original))
}

/// Parses `n 2` and `n (1)`.
fn numbered(stem: &str) -> Option<(SyncProgram, &str)> {
    let (original, number) = stem.rsplit_once(' ').filter(|(original, _)| !original.trim().is_empty())?;
    let is_number = |text: &str, least: u32| {
        text.len() <= 2 && !text.starts_with('0') && text.parse::<u32>().is_ok_and(|number| number >= least)
    };
    if let Some(number) = number.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        return is_number(number, 1).then_some((SyncProgram::GoogleDrive, original));
    }
    is_number(number, 2).then_some((SyncProgram::ICloud, original))
}

/// Lists the ways to read `n-DEVICE`, those with the shortest name of a device first.
fn with_device(stem: &str) -> impl Iterator<Item = (SyncProgram, &str)> {
    let is_device = |text: &str| {
        text.chars().any(char::is_alphabetic) && text.chars().all(|c| c.is_alphanumeric() || "-_".contains(c))
    };
    let hyphens = stem.rmatch_indices('-').map(move |(at, _)| stem.split_at(at));
    let split = hyphens.map(|(original, device)| (original, device.trim_start_matches('-')));
    split
        .filter(move |(original, device)| !original.trim().is_empty() && is_device(device))
        .map(|(original, _)| (SyncProgram::OneDrive, original))
}

fn is_digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a text is a date such as `2026-01-02`.
fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next = |count| parts.next().is_some_and(|part| is_digits(part, count));
    next(4) && next(2) && next(2) && text.len() == 10
}
