//! The fence of an agent: which files of a vault exist for it. A fenced vault neither lists nor opens any other file, so
//! that nothing above it can learn of one.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;
use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open;
use sidenote_markdown::decode::decode;
use sidenote_markdown::frontmatter;
use sidenote_markdown::path::{NotePath, key, typed_path};

use crate::Vault;
use crate::below::lies_in;
use crate::path_pattern::{Brackets, compiled};

/// The property by which a note says what agents may do with it.
const PROPERTY: &str = "agents";

/// The bytes of a note that are looked at first: most frontmatters end in them.
const BEGINNING: usize = 4096;

/// The longest pattern in bytes, and the most opening braces in one: compilers recurse to the depth of groups.
const MAX_PATTERN: (usize, usize) = (1_000, 50);

/// What a note says about agents by its property `agents`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteAccess {
    /// Agents may not know of the note: `agents: none`.
    None,
    /// Agents may read the note and not change it: `agents: read`.
    Read,
    /// The note says nothing.
    Full,
}

impl NoteAccess {
    /// Returns what a note with these bytes says.
    pub fn of(bytes: &[u8]) -> Self {
        if !has_frontmatter(bytes) {
            return Self::Full;
        }
        let text = utf16(bytes).unwrap_or_else(|| decode(bytes).text.to_string());
        let (Some(block), _) = frontmatter::read(&text) else { return Self::Full };
        let named = block.properties.iter().filter(|property| Self::is_named(&property.key));
        let said = named.map(|property| Self::of_value(&property.value)).min().unwrap_or(Self::Full);
        // What the author wrote counts, although the YAML around it cannot be read.
        if block.error.is_some() { said.min(Self::of_lines(block.yaml_span.of(&text))) } else { said }
    }

    /// Returns whether a property of this name says what agents may do.
    pub fn is_named(name: &str) -> bool {
        key(name) == PROPERTY
    }

    /// Returns what one property says.
    pub fn of_property(name: &str, value: &Value) -> Self {
        if Self::is_named(name) { Self::of_value(value) } else { Self::Full }
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::of_text(text),
            Value::Array(items) => items.iter().map(Self::of_value).min().unwrap_or(Self::Full),
            _ => Self::Full,
        }
    }

    fn of_text(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "none" => Self::None,
            "read" => Self::Read,
            _ => Self::Full,
        }
    }

    /// Reads lines of YAML one by one: the property, and the items of a list after it.
    fn of_lines(yaml: &str) -> Self {
        let bare = |text: &str| text.trim().trim_matches(['"', '\'', '[', ']']).trim().to_owned();
        let (mut said, mut is_in_list) = (Self::Full, false);
        for line in yaml.lines() {
            let line = line.split('#').next().unwrap_or_default();
            if let Some(item) = line.trim_start().strip_prefix('-').filter(|_| is_in_list) {
                said = said.min(Self::of_text(&bare(item)));
                continue;
            }
            is_in_list = false;
            if let Some((name, value)) = line.split_once(':')
                && bare(name).eq_ignore_ascii_case(PROPERTY)
            {
                is_in_list = value.trim().is_empty();
                said = value.split(',').map(|value| Self::of_text(&bare(value))).fold(said, Self::min);
            }
        }
        said
    }
}

/// Returns whether the beginning of a note shows that the note says nothing about agents: it has no frontmatter, or a whole one
/// without the name of the property.
fn says_nothing(beginning: &[u8]) -> bool {
    if !has_frontmatter(beginning) {
        return true;
    }
    let is_utf8 = beginning.starts_with(b"---") || beginning.starts_with("\u{FEFF}---".as_bytes());
    let is_end = |at: &usize| matches!(beginning.get(at + 4), Some(b'\n' | b'\r' | b' ' | b'\t'));
    let ends = memchr::memmem::find_iter(beginning, b"\n---").filter(is_end);
    let Some(end) = ends.last().filter(|_| is_utf8) else { return false };
    let names = |window: &[u8]| window.eq_ignore_ascii_case(PROPERTY.as_bytes());
    // A backslash can write a letter of the name.
    let may_name = |front: &[u8]| front.contains(&b'\\') || front.windows(PROPERTY.len()).any(names);
    !beginning.get(..end).is_some_and(may_name)
}

/// Returns the text of a file in UTF-16 with its mark.
fn utf16(bytes: &[u8]) -> Option<String> {
    let (mark, units) = bytes.split_at_checked(2)?;
    let unit: fn([u8; 2]) -> u16 = match mark {
        [0xFF, 0xFE] => u16::from_le_bytes,
        [0xFE, 0xFF] => u16::from_be_bytes,
        _ => return None,
    };
    let units: Vec<u16> = units.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    Some(String::from_utf16_lossy(&units))
}

fn has_frontmatter(bytes: &[u8]) -> bool {
    // A file in UTF-16 begins with a mark that is neither.
    let start = bytes.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(bytes);
    start.starts_with(b"---") || !start.first().is_some_and(u8::is_ascii)
}

/// An ordered list of path patterns. The last pattern that matches a path decides, and one after `!` takes it out.
#[derive(Debug, Clone)]
pub struct PathRules {
    patterns: Vec<PathPattern>,
    /// Whether a path is in if no pattern matches it.
    starts_in: bool,
}

#[derive(Debug, Clone)]
struct PathPattern {
    /// The pattern, and with the brackets as characters, because a real name can have some.
    matchers: Vec<Regex>,
    takes_in: bool,
    /// The part before the first wildcard, in the form in which paths are compared.
    beginning: String,
}

impl PathRules {
    /// Compiles patterns. `*` stays within a folder, `**` does not, case is ignored, and a pattern without wildcards names a file
    /// or a folder with everything in it. A list that begins with `!` begins with every path.
    ///
    /// # Errors
    /// `Invalid` naming a pattern that is malformed or too long.
    pub fn new(patterns: &[String]) -> Result<Self> {
        let starts_in = patterns.first().is_some_and(|first| first.trim_start().starts_with('!'));
        let patterns = patterns.iter().map(|pattern| PathPattern::new(pattern)).collect::<Result<_>>()?;
        Ok(Self { patterns, starts_in })
    }

    /// Returns whether a path is in.
    pub fn contain(&self, path: &NotePath) -> bool {
        self.contain_key(&path.key())
    }

    fn contain_key(&self, key: &str) -> bool {
        let last = self.patterns.iter().rfind(|pattern| pattern.matches(key));
        last.map_or(self.starts_in, |pattern| pattern.takes_in)
    }

    /// Returns whether a path in a folder can be in. The folder is a path from the root.
    pub fn may_hold(&self, folder: &str) -> bool {
        /// A name that no pattern means.
        const ANY: &str = "\u{1}";
        let inside = format!("{}/", key(folder));
        if self.contain_key(&format!("{inside}{ANY}")) || self.contain_key(&format!("{inside}{ANY}/{ANY}")) {
            return true;
        }
        self.patterns
            .iter()
            .filter(|pattern| pattern.takes_in)
            .any(|pattern| pattern.beginning.starts_with(&inside) || inside.starts_with(&pattern.beginning))
    }
}

impl PathPattern {
    fn matches(&self, key: &str) -> bool {
        self.matchers.iter().any(|matcher| matcher.is_match(key))
    }

    fn new(pattern: &str) -> Result<Self> {
        let refused = |what: &str| {
            Error::invalid(format!("the path pattern {pattern:?} {what}")).with_hint(
                "write a folder such as Private, Projects/** or *.canvas, with ! before it to take it out",
            )
        };
        let trimmed = pattern.trim();
        let (takes_in, trimmed) = match trimmed.strip_prefix('!') {
            Some(rest) => (false, rest),
            None => (true, trimmed),
        };
        if trimmed.len() > MAX_PATTERN.0 || trimmed.matches('{').count() > MAX_PATTERN.1 {
            return Err(refused("is too long"));
        }
        let typed = key(&typed_path(trimmed));
        if typed.is_empty() && trimmed.trim_matches(['.', '/', '\\']).is_empty() && !trimmed.contains('/') {
            return Err(refused("names nothing"));
        }
        let pattern = if typed.is_empty() { "**" } else { typed.as_str() };
        let beginning = pattern.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default().to_owned();
        let wild = compiled(pattern, Brackets::Wild).ok_or_else(|| refused("is no pattern"))?;
        let literal = pattern.contains(['[', '{']).then(|| compiled(pattern, Brackets::Literal)).flatten();
        Ok(Self { matchers: std::iter::once(wild).chain(literal).collect(), takes_in, beginning })
    }
}

/// What exists for an agent: the paths that a rule names, without the notes that hide themselves by `agents: none`.
#[derive(Debug, Clone)]
pub struct Fence {
    /// A path has to be in each of them.
    read: Vec<PathRules>,
    /// A folder of which nothing exists, as a path from the root; empty for none.
    hidden: String,
}

impl Fence {
    /// Makes a fence around the paths that are in each of the lists of patterns; around the whole vault without a list. Of the
    /// folder `hidden`, from the root, nothing exists.
    ///
    /// # Errors
    /// `Invalid` naming a pattern that is malformed.
    pub fn new(read: &[Vec<String>], hidden: &str) -> Result<Self> {
        let read = read.iter().map(|patterns| PathRules::new(patterns)).collect::<Result<_>>()?;
        Ok(Self { read, hidden: hidden.to_owned() })
    }

    /// Returns whether a file with this path can exist for the agent.
    pub fn contains(&self, path: &NotePath) -> bool {
        self.may_show(path.as_str())
    }

    /// Says whether a file of this path, from the root, can exist for the agent.
    pub(crate) fn may_show(&self, path: &str) -> bool {
        if lies_in(path, &self.hidden) {
            return false;
        }
        let key = key(path);
        self.read.iter().all(|rules| rules.contain_key(&key))
    }

    /// Says whether a folder can hold a file that exists for the agent.
    pub(crate) fn may_hold(&self, folder: &str) -> bool {
        !lies_in(folder, &self.hidden) && self.read.iter().all(|rules| rules.may_hold(folder))
    }
}

impl Vault {
    /// Returns the same vault as it exists for an agent.
    #[must_use]
    pub fn fenced(mut self, fence: Arc<Fence>) -> Self {
        self.fence = Some(fence);
        self
    }

    /// Returns whether some files do not exist for the reader of this vault.
    pub fn is_fenced(&self) -> bool {
        self.fence.is_some()
    }

    /// Returns whether files with some paths do not exist for the reader.
    pub fn is_fenced_by_path(&self) -> bool {
        self.fence.as_ref().is_some_and(|fence| !fence.read.is_empty())
    }

    /// Returns whether the rules let a file with this path exist for the reader. The file itself is not looked at.
    pub fn may_show(&self, path: &NotePath) -> bool {
        self.fence.as_ref().is_none_or(|fence| fence.contains(path))
    }

    /// Returns whether a file cannot exist for the reader by its path, or does not by what it says.
    pub fn withholds(&self, path: &NotePath) -> bool {
        let says_so = || {
            self.open_file(path).is_err_and(|error| is_absent(&error))
                && self.disk_path(path).symlink_metadata().is_ok()
        };
        self.fence.is_some() && (!self.may_show(path) || path.is_note() && says_so())
    }

    /// Returns whether a file or link with this path exists for the reader.
    pub fn has_entry(&self, path: &NotePath) -> bool {
        self.disk_path(path).symlink_metadata().is_ok() && !self.withholds(path)
    }

    /// Returns whether a folder with this path, from the root, can hold a file that exists for the reader.
    pub fn may_hold(&self, folder: &str) -> bool {
        self.fence.as_ref().is_none_or(|fence| fence.may_hold(folder))
    }

    /// Returns whether a file below the trash exists for the reader, if it is still there. It has the path that it had before,
    /// or that with a number.
    pub fn may_show_trashed(&self, path: &NotePath) -> bool {
        let Some(fence) = &self.fence else { return true };
        let former = without_number(path);
        if !fence.contains(path) || former.is_some_and(|former| !fence.contains(&former)) {
            return false;
        }
        match safe_open::open(&self.root, in_trash(path)) {
            Ok(file) => self.refuse_withheld(path, file).is_ok(),
            Err(error) => is_absent(&error),
        }
    }

    /// Opens a file below the trash, if it exists for the reader.
    ///
    /// # Errors
    /// System errors; that of a missing file if it does not exist for the reader.
    pub fn open_trashed(&self, path: &NotePath) -> io::Result<File> {
        let file = safe_open::open(&self.root, in_trash(path))?;
        if self.may_show_trashed(path) { Ok(file) } else { Err(absent()) }
    }

    /// Returns whether a folder with this path exists for the reader.
    pub fn has_folder(&self, folder: &str) -> bool {
        self.may_hold(folder) && self.root.join(folder).is_dir()
    }

    /// Fails as if the file did not exist, if its bytes say so. `file` is left at its beginning.
    pub(crate) fn refuse_withheld(&self, path: &NotePath, file: File) -> io::Result<File> {
        if self.fence.is_none() || !path.is_note() {
            return Ok(file);
        }
        let mut file = file;
        let mut beginning = Vec::new();
        file.by_ref().take(BEGINNING as u64).read_to_end(&mut beginning)?;
        file.seek(SeekFrom::Start(0))?;
        if says_nothing(&beginning) {
            return Ok(file);
        }
        let bytes = safe_open::read_open(file.try_clone()?, self.max_file_size)?;
        file.seek(SeekFrom::Start(0))?;
        self.refuse_withheld_bytes(path, &bytes).map(|()| file)
    }

    /// Fails as if the file did not exist, if its bytes say so.
    pub(crate) fn refuse_withheld_bytes(&self, path: &NotePath, bytes: &[u8]) -> io::Result<()> {
        let beginning = bytes.get(..BEGINNING).unwrap_or(bytes);
        let is_free = self.fence.is_none() || !path.is_note() || says_nothing(beginning);
        if is_free || NoteAccess::of(bytes) != NoteAccess::None { Ok(()) } else { Err(absent()) }
    }
}

/// Returns the error of the system for a file that is not there.
pub(crate) fn absent() -> io::Error {
    /// The number of this error on Unix (`ENOENT`) and on Windows (`ERROR_FILE_NOT_FOUND`).
    const NO_FILE: i32 = 2;
    io::Error::from_raw_os_error(NO_FILE)
}

fn in_trash(path: &NotePath) -> PathBuf {
    Path::new(".trash").join(path.as_str())
}

/// Returns the path without the number that a second file of a name gets in the trash; `None` if it has none.
fn without_number(path: &NotePath) -> Option<NotePath> {
    let (name, number) = path.stem().rsplit_once(' ')?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let extension = path.extension();
    let dot = if extension.is_empty() { "" } else { "." };
    let folder = if path.folder().is_empty() { String::new() } else { format!("{}/", path.folder()) };
    NotePath::from_disk(&format!("{folder}{name}{dot}{extension}"))
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use sidenote_markdown::path::NotePath;

    use super::{NoteAccess, PathRules, says_nothing};

    fn rules(patterns: &[&str]) -> PathRules {
        PathRules::new(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_last_pattern_that_matches_decides() {
        for (patterns, path, expected) in [
            (vec!["Work"], "Work/Plan.md", true),
            (vec!["Work"], "work/deep/Plan.md", true),
            (vec!["Work"], "Workshop/Plan.md", false),
            (vec!["Work/"], "Work/Plan.md", true),
            (vec!["!Private"], "Private/Diary.md", false),
            (vec!["!Private"], "PRIVATE/Diary.md", false),
            (vec!["!Private"], "Plan.md", true),
            (vec!["**", "!Private", "Private/Open.md"], "Private/Open.md", true),
            (vec!["*.md"], "Plan.md", true),
            (vec!["*.md"], "Work/Plan.md", false),
            (vec!["**/*.canvas"], "Work/a.canvas", true),
            (vec![], "Plan.md", false),
            (vec!["!Private*"], "Private stuff/x.md", false),
            (vec!["!**/Private"], "Deep/Private/x/y.md", false),
            (vec!["!Notes [private]"], "Notes [private]/x.md", false),
            (vec!["!P {x}"], "P {x}/y.md", false),
            (vec!["!Private/**"], "Private/Diary.md", false),
            (vec!["!M?ll"], "Müll/x.md", false),
            (vec!["!caf?"], "Café/x.md", false),
            (vec!["!caf[éè]"], "café/x.md", false),
            (vec!["![ä-ü]nder.md"], "Änder.md", false),
            (vec!["!日?"], "日本/x.md", false),
            (vec!["!Z?rich *"], "Zürich 2026/x.md", false),
            (vec!["!Dir [x]/**"], "Dir [x]/y.md", false),
            (vec!["!Dir [x]/*"], "Dir [x]/y.md", false),
            (vec!["!{a,b}/*"], "{a,b}/y.md", false),
            (vec!["!{a,b}/*"], "b/y.md", false),
            (vec!["!{Meetings/,Private/}"], "Meetings/y.md", false),
            (vec!["![!p]x"], "px/y.md", true),
            (vec!["!a\\*b"], "a*b/y.md", false),
            (vec!["!a\\*b"], "aab/y.md", true),
            (vec!["!Work/**/Old"], "Work/Old/y.md", false),
            (vec!["!Work/**/Old"], "Work/a/b/Old/y.md", false),
            (vec!["!P?ivate"], "P/ivate/y.md", true),
            (vec!["!Private/**"], "Private/deep/Diary.md", false),
            (vec!["!Private/*"], "Private/Diary.md", false),
            (vec!["!Private/Diary.md"], "Private/Diary.md", false),
            (vec!["!Private/My diary.md"], "Private/My diary.md", false),
            (vec!["!Inbox.md"], "Inbox.md", false),
            (vec!["!**/*.md"], "Private/Diary.md", false),
            (vec!["!**/*.md"], "Diary.md", false),
            (vec!["!*.canvas"], "a.canvas", false),
            (vec!["!**/*.canvas"], "deep/er/a.canvas", false),
            (vec!["!{Private,Secret}/**"], "Secret/x.md", false),
            (vec!["!Notes [private].md"], "Notes [private].md", false),
            (vec!["Work/**"], "Work/deep/Plan.md", true),
            (vec!["Work/**"], "Workshop/Plan.md", false),
            (vec!["Work/Plan.md"], "Work/Plan.md", true),
            (vec!["Work/Plan.md"], "Work/Plan.md.md", false),
            (vec!["!Caf\u{e9}"], "Cafe\u{301}/x.md", false),
        ] {
            let path = NotePath::from_disk(path).unwrap();
            assert_eq!(rules(&patterns).contain(&path), expected, "{patterns:?} {path}");
        }
    }

    #[test]
    fn a_folder_may_hold_what_a_pattern_can_reach() {
        for (patterns, folder, expected) in [
            (vec!["Work"], "Work", true),
            (vec!["Work"], "Work/deep", true),
            (vec!["Work/deep"], "Work", true),
            (vec!["Work"], "Private", false),
            (vec!["!Private"], "Private", false),
            (vec!["!Private"], "Private/deep", false),
            (vec!["**", "!Private", "Private/Open.md"], "Private", true),
            (vec!["**/*.canvas"], "Private", true),
            (vec![], "Work", false),
        ] {
            assert_eq!(rules(&patterns).may_hold(folder), expected, "{patterns:?} {folder}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_meant_is_refused() {
        for pattern in ["", "!", "a{b", "a[b", &"x".repeat(1_001)] {
            assert!(PathRules::new(&[pattern.to_owned()]).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_note_says_what_agents_may_do() {
        for (text, expected) in [
            ("---\nagents: none\n---\n", NoteAccess::None),
            ("\u{feff}---\nAgents: \"None\"\n---\n", NoteAccess::None),
            ("---\n{agents: none}\n---\n", NoteAccess::None),
            ("---\nagents:\n  - none\n---\n", NoteAccess::None),
            ("---\r\nagents: read\r\n---\r\n", NoteAccess::Read),
            ("---\nx: [\nagents: none # private\n---\n", NoteAccess::None),
            ("---\nx: \"unclosed\nagents:\n  - none\n---\n", NoteAccess::None),
            ("---\nx: [\n\"agents\": none\n---\n", NoteAccess::None),
            ("---\nagents: Smith\n---\n", NoteAccess::Full),
            ("---\ntitle: x\n---\nagents: none\n", NoteAccess::Full),
            ("agents: none\n", NoteAccess::Full),
            ("---\n\"agent\\u0073\": none\n---\n", NoteAccess::None),
            ("---\nAgents: foo\nagents: none\n---\n", NoteAccess::None),
            ("---\n----: x\nagents: none\n---\n", NoteAccess::None),
        ] {
            assert_eq!(NoteAccess::of(text.as_bytes()), expected, "{text:?}");
            assert!(expected == NoteAccess::Full || !says_nothing(text.as_bytes()), "{text:?}");
            let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let marked = [&[0xFF, 0xFE][..], &units].concat();
            assert!(text.starts_with('\u{feff}') || NoteAccess::of(&marked) == expected, "{text:?}");
        }
        let long = format!("---\n----: x\nz: {}\nagents: none\n---\n", "x".repeat(5_000));
        assert!(!says_nothing(&long.as_bytes()[..4_096]));
    }
}
