//! Obsidian's settings, as far as sidenote follows them (docs/spec/obsidian.md 1.2–1.4).
//!
//! The configuration folder is read and never written. A malformed value causes a warning and is ignored.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use fancy_regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};
use sidenote_base::{platform, safe_open};
use sidenote_language::graphemes::shortened;
use sidenote_language::pattern_limits::check_pattern;
use sidenote_links::resolve::LinkFormat;
use sidenote_markdown::frontmatter::PropertyType;
use sidenote_markdown::path;
use sidenote_markdown::path::NotePath;
use unicode_normalization::UnicodeNormalization;

use crate::symlinks::HOW_TO_FOLLOW;

/// The settings of the plugin Templater.
const TEMPLATER: &str = "plugins/templater-obsidian/data.json";

/// How many bytes a file of settings may have.
const MAX_SIZE: u64 = 10_000_000;

/// The settings of a vault.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The format of new links (`newLinkFormat`).
    pub link_format: LinkFormat,
    /// Whether `newLinkFormat` is set.
    pub is_link_format_set: bool,
    /// Whether new links are Markdown links (`useMarkdownLinks`).
    pub use_markdown_links: bool,
    /// Whether Obsidian updates links without asking (`alwaysUpdateLinks`).
    pub always_update_links: bool,
    /// Where new attachments go.
    pub attachments: FolderSetting,
    /// Where a note made from an unresolved bare link goes (`newFileLocation`, `newFileFolderPath`).
    pub new_files: FolderSetting,
    /// The settings of daily notes.
    pub daily_notes: DailyNotes,
    /// The settings of templates.
    pub templates: Templates,
    /// One sentence for each malformed value.
    pub warnings: Vec<String>,
    types: HashMap<String, PropertyType>,
    filters: Vec<IgnoreFilter>,
}

/// A folder setting, which may be relative to the note.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FolderSetting {
    /// The root of the vault.
    #[default]
    Root,
    /// The folder of the note.
    Beside,
    /// A subfolder of the note's folder.
    BelowNote(String),
    /// A folder of the vault, as a path from the root.
    Folder(String),
}

/// The settings of daily notes (docs/spec/obsidian.md 9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyNotes {
    /// The folder, as a path from the root; empty for the root.
    pub folder: String,
    /// The pattern of the path below the folder, in Moment's signs.
    pub format: String,
    /// The linkpath of the template; empty for none.
    pub template: String,
    /// Whether Obsidian opens the day's note when it starts.
    pub autorun: bool,
}

impl Default for DailyNotes {
    fn default() -> Self {
        let empty = String::new;
        Self { folder: empty(), format: "YYYY-MM-DD".to_owned(), template: empty(), autorun: false }
    }
}

/// The settings of templates (docs/spec/obsidian.md 9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Templates {
    /// The folder that holds them, as a path from the root; empty for none.
    pub folder: String,
    /// What `{{date}}` becomes, in Moment's signs.
    pub date_format: String,
    /// What `{{time}}` becomes, in Moment's signs.
    pub time_format: String,
}

impl Default for Templates {
    fn default() -> Self {
        Self { folder: String::new(), date_format: "YYYY-MM-DD".to_owned(), time_format: "HH:mm".to_owned() }
    }
}

/// One entry of `userIgnoreFilters`.
#[derive(Debug, Clone)]
enum IgnoreFilter {
    /// The folded start of a path, without a folder boundary.
    Prefix(String),
    Pattern(Regex),
}

/// Reads one file of the configuration folder.
fn read(root: &Path, config_dir: &str, name: &str, follow: bool) -> io::Result<Vec<u8>> {
    let inner = Path::new(config_dir).join(name);
    if !follow {
        return safe_open::read(root, inner, MAX_SIZE);
    }
    safe_open::read_in_place(&platform::canonicalize(&root.join(inner))?, MAX_SIZE)
}

/// The most bytes of a compiled pattern, and the most steps on one path.
const LARGEST_PATTERN: usize = 1 << 20;
const MOST_STEPS: usize = 100_000;
/// So many characters of a pattern are shown in a warning.
const SHOWN_OF_PATTERN: usize = 80;

/// Compiles a pattern of `userIgnoreFilters`, or says in a sentence why that cannot be done.
fn compiled(pattern: &str) -> Result<Regex, String> {
    check_pattern(pattern)?;
    let mut builder = RegexBuilder::new(pattern);
    builder.case_insensitive(true).backtrack_limit(MOST_STEPS).delegate_size_limit(LARGEST_PATTERN);
    builder.build().map_err(|error| error.to_string())
}

/// Reads which paths the bookmarks in a configuration folder name; none where they cannot be read.
pub(super) fn bookmarks(root: &Path, config_dir: &str, follow: bool) -> HashSet<String> {
    let text = match read(root, config_dir, "bookmarks.json", follow) {
        Ok(text) => text,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!("bookmarks.json cannot be read, so bookmarks are ignored: {error}");
            }
            return HashSet::new();
        }
    };
    let whole = serde_json::from_slice::<Value>(&text).inspect_err(|error| {
        tracing::warn!("bookmarks.json is malformed, so bookmarks are ignored: {error}")
    });
    let mut open: Vec<Value> = whole.into_iter().collect();
    let mut found = HashSet::new();
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                found.extend(map.get("path").and_then(Value::as_str).map(str::to_owned));
                open.extend(map.into_iter().map(|(_, value)| value));
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

impl Settings {
    /// Reads the settings in the configuration folder of a vault, which need not be there. Symbolic links in it, and one
    /// in its place, are followed only where `follow` says so.
    pub fn read(root: &Path, config_dir: &str, follow: bool) -> Self {
        let mut settings = Self::default();
        if !follow
            && let Err(error) = safe_open::folder(root, Path::new(config_dir))
            && safe_open::is_refusal(&error)
        {
            settings.warnings.push(format!(
                "Obsidian's settings in {config_dir} are not read, so its defaults are used: {error}; {HOW_TO_FOLLOW}"
            ));
            return settings;
        }
        let [mut app, mut types, mut daily, mut templates] =
            ["app.json", "types.json", "daily-notes.json", "templates.json"]
                .map(|name| SettingsFile::read(root, config_dir, name, follow));
        settings.app(&mut app);
        settings.types = types.types();
        settings.daily_notes = daily.daily_notes();
        settings.templates = templates.templates();
        settings.hide_templates(root, config_dir, follow);
        for source in [app, types, daily, templates] {
            settings.warnings.extend(source.warnings);
        }
        settings
    }

    fn app(&mut self, app: &mut SettingsFile) {
        self.link_format = app.choice("newLinkFormat", |name| match name {
            "shortest" => Some(LinkFormat::Shortest),
            "relative" => Some(LinkFormat::Relative),
            "absolute" => Some(LinkFormat::Absolute),
            _ => None,
        });
        self.is_link_format_set = app.values.get("newLinkFormat").is_some_and(Value::is_string);
        self.use_markdown_links = app.flag("useMarkdownLinks");
        self.always_update_links = app.flag("alwaysUpdateLinks");
        let attachments = app.text("attachmentFolderPath", "/");
        self.attachments = match attachments.strip_prefix("./") {
            Some(below) => match folder(below) {
                below if below.is_empty() => FolderSetting::Beside,
                below => FolderSetting::BelowNote(below),
            },
            None if attachments == "." => FolderSetting::Beside,
            None => FolderSetting::of_vault(&attachments),
        };
        let new_folder = FolderSetting::of_vault(&app.text("newFileFolderPath", "/"));
        self.new_files = app.choice("newFileLocation", |name| match name {
            "root" => Some(FolderSetting::Root),
            "current" => Some(FolderSetting::Beside),
            "folder" => Some(new_folder.clone()),
            _ => None,
        });
        self.filters = app.filters();
    }

    /// Hides the templates from search, tasks and memory: those of Obsidian, and of its plugin Templater.
    fn hide_templates(&mut self, root: &Path, config_dir: &str, follow: bool) {
        let plugin = SettingsFile::read(root, config_dir, TEMPLATER, follow);
        let of_plugin = plugin.values.get("templates_folder").and_then(Value::as_str).map(folder);
        let folders = std::iter::once(folder(&self.templates.folder)).chain(of_plugin);
        let prefixes = folders.filter(|folder| !folder.is_empty()).map(|folder| fold(&format!("{folder}/")));
        self.filters.extend(prefixes.map(IgnoreFilter::Prefix));
    }

    /// Says whether any files are hidden from search.
    pub fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Says whether a file is hidden from search, by the user or as a template; it still resolves as a link's target
    /// (docs/spec/obsidian.md 1.4).
    pub fn is_excluded(&self, path: &NotePath) -> bool {
        if self.filters.is_empty() {
            return false;
        }
        let folded = fold(path.as_str());
        self.filters.iter().any(|filter| match filter {
            IgnoreFilter::Prefix(prefix) => folded.starts_with(prefix),
            // If a pattern fails at run time, the file is hidden to be safe.
            IgnoreFilter::Pattern(pattern) => pattern.is_match(path.as_str()).unwrap_or(true),
        })
    }

    /// Returns the type that the vault declares for a property, whose name is compared without case.
    pub fn declared_type(&self, property: &str) -> Option<PropertyType> {
        self.types.get(&path::key(property)).copied()
    }
}

impl FolderSetting {
    fn of_vault(path: &str) -> Self {
        match folder(path) {
            path if path.is_empty() => Self::Root,
            path => Self::Folder(path),
        }
    }
}

/// Brings a folder to the form of a path from the root: no slashes at the ends, none doubled (docs/spec/obsidian.md 1.6).
fn folder(path: &str) -> String {
    let parts: Vec<&str> = path.trim().split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}

/// Folds a path or the start of one for comparison: as a key, but with the ends as they are.
fn fold(text: &str) -> String {
    let spaced = text.chars().map(|c| if c == '\u{A0}' { ' ' } else { c });
    spaced.nfc().collect::<String>().to_lowercase()
}

/// Checks that the bytes of a settings file of Obsidian can be read. An empty file has no settings.
///
/// # Errors
/// What the file is not.
pub fn check_settings(bytes: &[u8]) -> Result<(), String> {
    object(bytes).map(drop)
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let json = bytes.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(bytes);
    if json.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(json) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(_) => Err("is not a JSON object".to_owned()),
        Err(error) => Err(format!("is not valid JSON ({error})")),
    }
}

/// One settings file with its warnings.
struct SettingsFile {
    name: &'static str,
    values: Map<String, Value>,
    warnings: Vec<String>,
}

impl SettingsFile {
    fn read(root: &Path, config_dir: &str, name: &'static str, follow: bool) -> Self {
        let mut source = Self { name, values: Map::new(), warnings: Vec::new() };
        let bytes = match read(root, config_dir, name, follow) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return source;
            }
            Err(error) => {
                source.warn(format!("cannot be read ({error}); its defaults are used"));
                return source;
            }
        };
        match object(&bytes) {
            Ok(values) => source.values = values,
            Err(why) => source.warn(format!("{why}; its defaults are used")),
        }
        source
    }

    fn warn(&mut self, what: impl AsRef<str>) {
        self.warnings.push(format!("{} {}", self.name, what.as_ref()));
    }

    /// Reads one value; null and absent are the default, and so is what `read` refuses, with a warning.
    fn value<T>(&mut self, key: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let value = self.values.get(key).filter(|value| !value.is_null())?;
        let read = read(value);
        if read.is_none() {
            let what = format!("has an unknown value for {key:?}: {value}; its default is used");
            self.warn(what);
        }
        read
    }

    fn flag(&mut self, key: &str) -> bool {
        self.value(key, Value::as_bool).unwrap_or(false)
    }

    fn text(&mut self, key: &str, default: &str) -> String {
        self.value(key, |value| value.as_str().map(str::to_owned)).unwrap_or_else(|| default.to_owned())
    }

    fn choice<T: Default>(&mut self, key: &str, named: impl Fn(&str) -> Option<T>) -> T {
        self.value(key, |value| value.as_str().and_then(&named)).unwrap_or_default()
    }

    /// An empty format means the default, as in Obsidian's own fields.
    fn format(&mut self, key: &str, default: &str) -> String {
        let format = self.text(key, default);
        if format.trim().is_empty() { default.to_owned() } else { format }
    }

    fn filters(&mut self) -> Vec<IgnoreFilter> {
        let entries = self.value("userIgnoreFilters", |value| value.as_array().cloned()).unwrap_or_default();
        let mut filters = Vec::new();
        for entry in entries {
            let Some(text) = entry.as_str() else {
                self.warn(format!("has an excluded file that is not a string: {entry}"));
                continue;
            };
            let pattern = text.strip_prefix('/').and_then(|text| text.strip_suffix('/'));
            match pattern.map(compiled) {
                None if text.is_empty() => {}
                None => filters.push(IgnoreFilter::Prefix(fold(text))),
                Some(Ok(pattern)) => filters.push(IgnoreFilter::Pattern(pattern)),
                Some(Err(why)) => {
                    self.warn(format!("excludes nothing by {}: {why}", shortened(text, SHOWN_OF_PATTERN)));
                }
            }
        }
        filters
    }

    fn types(&mut self) -> HashMap<String, PropertyType> {
        let types = self.value("types", |value| value.as_object().cloned()).unwrap_or_default();
        let known = |(name, widget): (String, Value)| {
            // Widgets of plug-ins are ignored without a warning.
            Some((path::key(&name), PropertyType::from_widget(widget.as_str()?)?))
        };
        types.into_iter().filter_map(known).collect()
    }

    fn daily_notes(&mut self) -> DailyNotes {
        let default = DailyNotes::default();
        DailyNotes {
            folder: folder(&self.text("folder", "")),
            format: self.format("format", &default.format),
            template: self.text("template", ""),
            autorun: self.flag("autorun"),
        }
    }

    fn templates(&mut self) -> Templates {
        let default = Templates::default();
        Templates {
            folder: folder(&self.text("folder", "")),
            date_format: self.format("dateFormat", &default.date_format),
            time_format: self.format("timeFormat", &default.time_format),
        }
    }
}
