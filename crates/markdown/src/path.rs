//! [`NotePath`], the validated vault-relative path. Above `vault`, files are named only by it.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// A path from the vault's root to a file: `/` separators, no leading slash, exact on-disk spelling.
///
/// It never contains an empty, `.` or `..` segment, a segment that starts with a dot, a NUL byte, or more than
/// [`MAX_SEGMENTS`] segments. So joining it to the root cannot lead out of the vault or to `.obsidian` and `.sidenote`.
/// Copies share their text, because tables of all files hold each path several times.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NotePath(Arc<str>);

impl NotePath {
    /// Parses the path of an existing or former file or folder, from a user, an agent or a listing. It refuses
    /// everything that could lead out of the vault, and nothing else (docs/spec/security.md, Paths), because other
    /// programs give files names that [`NameRules`] refuse. The path of a new file comes from `Vault::new_path`.
    ///
    /// # Errors
    /// Returns `Invalid` with the reason for absolute paths, `..`, hidden segments, NUL, and what means another file on
    /// this system.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |why: &str| {
            Error::invalid(format!("{text:?} is not a path inside the vault: {why}"))
                .with_hint("write it from the vault's root with forward slashes, like Projects/Plan.md")
        };
        let is_unusable = |&c: &char| {
            c == '\0' || platform::HAS_DANGEROUS_NAMES && (c.is_control() || matches!(c, '\\' | ':'))
        };
        if let Some(bad) = text.chars().find(is_unusable) {
            return Err(refuse(&format!("it contains {bad:?}")));
        }
        if text.starts_with('/') {
            return Err(refuse("it is absolute"));
        }
        if is_too_deep(text) {
            return Err(refuse(&format!("it has more than {MAX_SEGMENTS} segments")));
        }
        Self::from_disk(text)
            .ok_or_else(|| refuse("a segment is empty, starts with a dot, or leads out of the vault"))
    }

    /// Converts a path from the disk. Returns `None` if it is hidden in a vault or could lead out of it.
    pub fn from_disk(text: &str) -> Option<Self> {
        Self::is_on_disk(text).then(|| Self(text.into()))
    }

    /// Returns whether [`NotePath::from_disk`] converts a path.
    pub fn is_on_disk(text: &str) -> bool {
        // The same as `!is_too_deep(text) && text.split('/').all(is_segment)`, in three passes of the fastest kind: a scan
        // asks it of every path.
        let bytes = text.as_bytes();
        let begins_segment = |at: usize| bytes.get(at).is_some_and(|byte| !matches!(byte, b'.' | b'/'));
        begins_segment(0)
            && !is_too_deep(text)
            && memchr::memchr(0, bytes).is_none()
            && memchr::memchr_iter(b'/', bytes).all(|slash| begins_segment(slash + 1))
    }

    /// Returns the path as written on disk.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the file name with its extension.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Returns the file name without its extension.
    pub fn stem(&self) -> &str {
        let name = self.name();
        match name.rfind('.') {
            Some(dot) if dot > 0 => &name[..dot],
            _ => name,
        }
    }

    /// Returns the extension as spelled, without the dot; empty if there is none.
    pub fn extension(&self) -> &str {
        let name = self.name();
        match name.rfind('.') {
            Some(dot) if dot > 0 => &name[dot + 1..],
            _ => "",
        }
    }

    /// Returns the folder, without a trailing slash; empty for the root.
    pub fn folder(&self) -> &str {
        self.0.rfind('/').map_or("", |slash| &self.0[..slash])
    }

    /// Returns whether this is a Markdown note (`md`, compared without case; docs/spec/obsidian.md 1.5).
    pub fn is_note(&self) -> bool {
        self.extension().eq_ignore_ascii_case("md")
    }

    /// Returns whether this is a JSON Canvas file.
    pub fn is_canvas(&self) -> bool {
        self.extension().eq_ignore_ascii_case("canvas")
    }

    /// Returns the form in which paths are compared: NFC in lower case (docs/spec/obsidian.md 0.2, *key*).
    pub fn key(&self) -> String {
        key(&self.0)
    }
}

/// Normalizes a folder, a path or a pattern that somebody typed: a backslash separates folders, unless it escapes a wildcard,
/// and `./`, doubled slashes and slashes at the ends mean nothing. The result is empty for the root of the vault.
pub fn typed_path(text: &str) -> String {
    let mut slashed = String::with_capacity(text.len());
    let mut rest = text.trim().chars().peekable();
    while let Some(c) = rest.next() {
        let escapes = rest.peek().is_some_and(|next| matches!(next, '*' | '?' | '[' | ']' | '{' | '}'));
        slashed.push(if c == '\\' && !escapes { '/' } else { c });
    }
    let segments = slashed.split('/').filter(|segment| !matches!(*segment, "" | "."));
    segments.collect::<Vec<_>>().join("/")
}

/// Normalizes a folder that somebody typed, like [`typed_path`]. A folder always means everything below it, so
/// `Journal/**` becomes `Journal`, and `*` the root of the vault. A wildcard elsewhere stays, and matches no folder.
pub fn typed_folder(text: &str) -> String {
    let typed = typed_path(text);
    match typed.rsplit_once('/').unwrap_or(("", &typed)) {
        (above, "*" | "**") => above.to_owned(),
        _ => typed,
    }
}

/// The settings of a vault that sidenote reads.
pub const SETTINGS_FILES: [&str; 6] = [
    ".obsidian/app.json",
    ".obsidian/bookmarks.json",
    ".obsidian/daily-notes.json",
    ".obsidian/templates.json",
    ".obsidian/types.json",
    ".sidenote/config.toml",
];

/// The path of a file with settings: one of [`SETTINGS_FILES`], or a conflict copy of one beside it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct SettingsPath(String);

impl SettingsPath {
    /// Parses a path from the vault's root. Returns `None` for any other file.
    pub fn parse(text: &str) -> Option<Self> {
        let is_copy = || {
            let (stem, rest) = text.split_once(" (conflict ")?;
            let (mark, extension) = rest.rsplit_once(')')?;
            let is_mark = !mark.contains('/') && !mark.contains(is_forbidden);
            let original = format!("{stem}{extension}");
            (is_mark && SETTINGS_FILES.contains(&original.as_str())).then_some(())
        };
        (SETTINGS_FILES.contains(&text) || is_copy().is_some()).then(|| Self(text.into()))
    }

    /// Returns the path from the vault's root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for SettingsPath {
    /// Deserializes a path. Any other path is an error.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no file with settings")))
    }
}

/// Checks the rules for names that hold in every vault: no character that misleads a reader or separates folders on
/// some system, and no device of Windows.
///
/// # Errors
/// `Invalid` with the reason.
pub fn check_shared_name(path: &str) -> Result<()> {
    let refuse = |why: String| {
        Err(Error::invalid(format!("{path:?} cannot be shared: {why}")).with_hint("rename the file"))
    };
    if let Some(bad) = path.chars().find(|&c| is_forbidden(c)) {
        return refuse(format!("its name contains {bad:?}"));
    }
    if let Some(name) = path.split('/').find(|name| platform::is_device_name(name)) {
        return refuse(format!("{name} is the name of a device on Windows"));
    }
    if path.split('/').any(|name| name.len() > 255) {
        return refuse("its name has more than 255 bytes".to_owned());
    }
    Ok(())
}

/// The most segments of a path. Each of them is looked up whenever the file is.
pub const MAX_SEGMENTS: usize = 100;

/// Says whether a path is below a folder.
pub fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns whether a path has more than [`MAX_SEGMENTS`] segments.
pub fn is_too_deep(text: &str) -> bool {
    memchr::memchr_iter(b'/', text.as_bytes()).count() >= MAX_SEGMENTS
}

/// Returns whether a text can be one segment of a [`NotePath`].
pub fn is_segment(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('.') && !text.bytes().any(|byte| byte == 0)
}

/// Returns whether a segment of a path can be stored by Windows and means only a file of this name there: no device, no
/// stream, no other folder.
pub fn is_safe_on_windows(segment: &str) -> bool {
    let forbidden = |c: char| c.is_control() || matches!(c, '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
    !segment.contains(forbidden) && !segment.ends_with(['.', ' ']) && !platform::is_device_name(segment)
}

/// Returns whether the name of a new file must not contain a character, because it misleads a reader or separates folders
/// somewhere.
pub(crate) fn is_forbidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\\' | ':')
        || matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Normalizes a name to NFC, with spaces in place of U+00A0, and trims it (docs/spec/obsidian.md 0.2, *clean*).
pub fn clean(text: &str) -> String {
    let plain = text.is_ascii();
    if plain {
        return text.trim().to_owned();
    }
    let spaced: String = text.chars().map(|c| if c == '\u{A0}' { ' ' } else { c }).collect();
    let trimmed = spaced.trim();
    match is_nfc_quick(trimmed.chars()) {
        IsNormalized::Yes => trimmed.to_owned(),
        _ => trimmed.nfc().collect(),
    }
}

/// Returns the form in which names are compared: [`clean`] in lower case (docs/spec/obsidian.md 0.2, *key*).
pub fn key(text: &str) -> String {
    let mut cleaned = clean(text);
    if cleaned.is_ascii() {
        cleaned.make_ascii_lowercase();
        cleaned
    } else {
        cleaned.to_lowercase()
    }
}

/// Returns whether `key` is the key of a name.
pub fn has_key(name: &str, key: &str) -> bool {
    if name.is_ascii() {
        // Only white space can make a name longer than its key.
        name.len() >= key.len() && {
            let trimmed = if name.len() == key.len() { name } else { name.trim() };
            trimmed.eq_ignore_ascii_case(key)
        }
    } else {
        self::key(name) == key
    }
}

impl fmt::Display for NotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for NotePath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for NotePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for NotePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for NotePath {
    /// Deserializes a path. A path that could lead out of the vault is an error.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_disk(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a path in a vault")))
    }
}

/// Returns the form of a text for comparisons that ignore case: NFC in lower case.
pub fn fold_case(text: &str) -> String {
    lowercase_chars(&to_nfc(text)).into_owned()
}

/// Normalizes a text to NFC, so that composed and decomposed spellings of `é` are equal.
pub fn to_nfc(text: &str) -> Cow<'_, str> {
    // ASCII is always in NFC, so runs of it need not be checked.
    let is_composed =
        ascii_runs(text).all(|run| run.is_ascii() || is_nfc_quick(run.chars()) == IsNormalized::Yes);
    if is_composed { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// Converts a text to lower case character by character, so that the result for a part of a text is a part of the
/// result for the text.
pub fn lowercase_chars(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        if !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Cow::Borrowed(text);
        }
        return Cow::Owned(text.to_ascii_lowercase());
    }
    let low = |c: char| c.to_lowercase().map(|c| if c == 'ς' { 'σ' } else { c });
    let mut out = String::with_capacity(text.len());
    for run in ascii_runs(text) {
        if run.is_ascii() {
            let start = out.len();
            out.push_str(run);
            if let Some(added) = out.get_mut(start..) {
                added.make_ascii_lowercase();
            }
        } else {
            out.extend(run.chars().flat_map(low));
        }
    }
    Cow::Owned(out)
}

/// Returns [`fold_case`] of a text if that changes the length of no character, so that all offsets stay valid. Returns
/// `None` otherwise.
pub fn fold_case_in_place(text: &str) -> Option<String> {
    let keeps_length = |c: char| c.to_lowercase().map(char::len_utf8).sum::<usize>() == c.len_utf8();
    let is_kept = |run: &str| {
        run.is_ascii() || is_nfc_quick(run.chars()) == IsNormalized::Yes && run.chars().all(keeps_length)
    };
    ascii_runs(text).all(is_kept).then(|| lowercase_chars(text).into_owned())
}

/// The number of bytes that are checked for ASCII at a time.
const BLOCK: usize = 64;

/// Splits a text into runs that are either all ASCII or contain no ASCII.
fn ascii_runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_ascii = rest.as_bytes().first()?.is_ascii();
        // Whole blocks are checked first, because most texts are mostly ASCII.
        let skipped = if is_ascii {
            BLOCK * rest.as_bytes().chunks_exact(BLOCK).take_while(|block| block.is_ascii()).count()
        } else {
            0
        };
        let tail = rest.as_bytes().get(skipped..)?;
        let end =
            tail.iter().position(|byte| byte.is_ascii() != is_ascii).map_or(rest.len(), |at| skipped + at);
        let (run, remainder) = rest.split_at(end);
        rest = remainder;
        Some(run)
    })
}
