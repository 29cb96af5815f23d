//! [`NotePath`], the validated vault-relative path. Above `vault`, files are named only by it.

use std::borrow::{Borrow, Cow};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::error::{Error, Result};

/// A path from the vault's root to a file: `/` separators, no leading slash, exact on-disk spelling.
///
/// It never holds an empty, `.` or `..` segment, a segment that starts with a dot, a NUL byte, or more than
/// [`MOST_PARTS`] segments, so joining it to the root cannot leave the vault or reach `.obsidian` and `.sidenote`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NotePath(String);

impl NotePath {
    /// Takes a path that came from a person or an agent; refuses everything that could lead astray
    /// (spec/security.md, Paths).
    ///
    /// # Errors
    /// `Invalid`, with the reason, for absolute paths, `..`, hidden segments, backslashes, colons, control and
    /// bidirectional characters.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |why: &str| {
            Error::invalid(format!("{text:?} is not a path inside the vault: {why}"))
                .with_hint("write it from the vault's root with forward slashes, like Projects/Plan.md")
        };
        if let Some(bad) = text.chars().find(|&c| is_forbidden(c)) {
            return Err(refuse(&format!("it holds {bad:?}")));
        }
        if text.starts_with('/') {
            return Err(refuse("it is absolute"));
        }
        if is_too_deep(text) {
            return Err(refuse(&format!("it has more than {MOST_PARTS} parts")));
        }
        Self::from_disk(text)
            .ok_or_else(|| refuse("a part of it is empty, starts with a dot, or leads outside the vault"))
    }

    /// Takes a path that a scan found; `None` for what is invisible in a vault or could lead out of it.
    pub fn from_disk(text: &str) -> Option<Self> {
        (!is_too_deep(text) && text.split('/').all(is_segment)).then(|| Self(text.to_owned()))
    }

    /// Takes a path for a file or folder that is to be made: a path like any, each of whose segments is a name that
    /// every system can hold and every link can name (spec/obsidian.md 1.6).
    ///
    /// `relaxed` allows what only Windows forbids.
    ///
    /// # Errors
    /// `Invalid`, with the reason; the code `name-not-linkable` where links to such a name break.
    pub fn parse_new(text: &str, relaxed: bool) -> Result<Self> {
        let path = Self::parse(text)?;
        path.as_str().split('/').try_for_each(|segment| check_name(segment, relaxed))?;
        Ok(path)
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

    /// Says whether this is a Markdown note (`md`, compared without case; spec/obsidian.md 1.5).
    pub fn is_note(&self) -> bool {
        self.extension().eq_ignore_ascii_case("md")
    }

    /// Says whether this is a JSON Canvas file.
    pub fn is_canvas(&self) -> bool {
        self.extension().eq_ignore_ascii_case("canvas")
    }

    /// Returns the lower-cased NFC form that lookups compare by (spec/obsidian.md 0.2, *key*).
    pub fn key(&self) -> String {
        key(&self.0)
    }
}

/// A path has so many parts at most: each of them is looked up whenever the file is.
pub const MOST_PARTS: usize = 100;

/// Says whether a path has too many parts.
pub fn is_too_deep(text: &str) -> bool {
    memchr::memchr_iter(b'/', text.as_bytes()).count() >= MOST_PARTS
}

/// Says whether a text can be one segment of a [`NotePath`].
pub fn is_segment(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('.') && !text.bytes().any(|byte| byte == 0)
}

/// Says why a name is none that we make.
fn check_name(name: &str, relaxed: bool) -> Result<()> {
    let refuse = |why: &str| {
        Err(Error::invalid(format!("{name:?} is no name for a new file or folder: {why}"))
            .with_hint("choose another name; files that have such names already are read all the same"))
    };
    if name.contains(['#', '^', '[', ']']) || name.contains("%%") || name.contains('|') {
        return refuse(
            "links to it would break, for it holds `#`, `^`, `[`, `]`, `|` or `%%` (name-not-linkable)",
        );
    }
    if name.len() > 255 {
        return refuse("it has more than 255 bytes");
    }
    if name != name.trim() {
        return refuse("it begins or ends with a space");
    }
    if relaxed {
        return Ok(());
    }
    if let Some(bad) = name.chars().find(|c| matches!(c, '*' | '?' | '"' | '<' | '>')) {
        return refuse(&format!("Windows does not allow {bad:?} in it"));
    }
    if name.ends_with('.') {
        return refuse("Windows does not allow a dot at its end");
    }
    let device = name.split('.').next().unwrap_or(name).to_ascii_uppercase();
    let numbered = |prefix: &str| {
        let rest = device.strip_prefix(prefix).map(str::as_bytes);
        matches!(rest, Some([b'1'..=b'9']))
    };
    if matches!(device.as_str(), "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT") {
        return refuse("it is the name of a device on Windows");
    }
    Ok(())
}

fn is_forbidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\\' | ':')
        || matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Brings a name to NFC, turns U+00A0 into a space and trims its ends (spec/obsidian.md 0.2, *clean*).
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

/// Returns the form that names are compared by: lower-cased [`clean`] (spec/obsidian.md 0.2, *key*).
pub fn key(text: &str) -> String {
    let mut cleaned = clean(text);
    if cleaned.is_ascii() {
        cleaned.make_ascii_lowercase();
        cleaned
    } else {
        cleaned.to_lowercase()
    }
}

/// Says whether a name is compared by this key.
pub fn has_key(name: &str, key: &str) -> bool {
    if name.is_ascii() { name.trim().eq_ignore_ascii_case(key) } else { self::key(name) == key }
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
    /// Reads a path, refusing what would lead out of the vault.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_disk(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a path in a vault")))
    }
}

/// Returns the form of a text in which case does not count.
pub fn caseless(text: &str) -> String {
    lowered(&composed(text)).into_owned()
}

/// Composes letters and marks (NFC), so that both ways to write `é` meet.
pub fn composed(text: &str) -> Cow<'_, str> {
    // ASCII neither composes nor is reordered, so runs of it need no look at their characters.
    let is_composed = runs(text).all(|run| run.is_ascii() || is_nfc_quick(run.chars()) == IsNormalized::Yes);
    if is_composed { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// Lower-cases letter by letter, so that a part of a text is a part of the lowered text.
pub fn lowered(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        if !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Cow::Borrowed(text);
        }
        return Cow::Owned(text.to_ascii_lowercase());
    }
    let low = |c: char| c.to_lowercase().map(|c| if c == 'ς' { 'σ' } else { c });
    let mut out = String::with_capacity(text.len());
    for run in runs(text) {
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

/// As [`caseless`], for a text in which that changes the length of no character, so that every place in it stays the
/// same; nothing for any other.
pub fn caseless_in_place(text: &str) -> Option<String> {
    let keeps_length = |c: char| c.to_lowercase().map(char::len_utf8).sum::<usize>() == c.len_utf8();
    let is_kept = |run: &str| {
        run.is_ascii() || is_nfc_quick(run.chars()) == IsNormalized::Yes && run.chars().all(keeps_length)
    };
    runs(text).all(is_kept).then(|| lowered(text).into_owned())
}

/// So many bytes are looked at together where they may be all ASCII.
const BLOCK: usize = 64;

/// Cuts a text into runs that are ASCII throughout or nowhere.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_ascii = rest.as_bytes().first()?.is_ascii();
        // Whole blocks first: most texts are ASCII nearly throughout.
        let skipped = if is_ascii {
            BLOCK * rest.as_bytes().chunks_exact(BLOCK).take_while(|block| block.is_ascii()).count()
        } else {
            0
        };
        let tail = rest.as_bytes().get(skipped..)?;
        let end =
            tail.iter().position(|byte| byte.is_ascii() != is_ascii).map_or(rest.len(), |at| skipped + at);
        let (run, behind) = rest.split_at(end);
        rest = behind;
        Some(run)
    })
}
