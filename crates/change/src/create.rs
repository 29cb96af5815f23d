//! Plans new notes: path, frontmatter, templates and daily notes.

use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::wording::Wording;
use sidenote_catalog::path_id_at;
use sidenote_config::{IdPolicy, Layout};
use sidenote_markdown::date_format::UnknownToken;
use sidenote_markdown::edit::{ChangeSet, FileChange, apply, single_edit};
use sidenote_markdown::name_rules::NameRules;
use sidenote_markdown::note::Note;
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::tag_conversion::StoredTags;
use sidenote_markdown::{body_edit, date_format, frontmatter};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::lookup::Lookup;
use sidenote_vault::Vault;
use sidenote_vault::obsidian::FolderSetting;

use crate::Planner;
use crate::edit::open_block;
use crate::fenced_path::{not_written, refuse_fenced};
use crate::free_names::FreeNames;
use crate::merge_properties::{MADE, PropertyMerge, is_blank, value_of};
use crate::move_files::{CapturedLinks, add_edits, add_new};
use crate::naming::{file_name, memory_stem, placed, title_of, without_extension};
use crate::properties::{Properties, converted, originals, with_properties};

/// The number of ids that are tried for a path and time.
const NAMESAKES: i64 = 10_000;

/// A note to create.
#[derive(Debug, Clone, Default)]
pub struct NewRequest {
    /// The title. The title of a daily note is its date.
    pub title: String,
    /// The text, without frontmatter.
    pub content: String,
    /// The folder, from the root of the vault. Without it, the category names the folder; without both, Obsidian's
    /// settings do.
    pub folder: Option<String>,
    /// The property `category`.
    pub category: Option<String>,
    /// The property `tags`.
    pub tags: Vec<String>,
    /// The property `type`.
    pub note_type: Option<String>,
    /// Other properties, in order.
    pub properties: Vec<(String, Value)>,
    /// The template to start from, by any of its names.
    pub template: Option<String>,
    /// Whether to create a daily note: today's, or that of `day`. If it exists, the text is appended to it.
    pub daily: bool,
    /// A time of the day that a daily note is for. Without it, today.
    pub day: Option<Timestamp>,
    /// Whether the file gets a number if another note has its name.
    pub numbered: bool,
    /// Whether the text is used as it is: frontmatter and a heading at its beginning are not read as properties and
    /// title.
    pub verbatim: bool,
    /// Whether the note is a memory, which gets an id and a date unless `notes.ids` is `auto` and its folder is known to be
    /// published.
    pub identified: bool,
    /// Whether links that the name of the note captures are lengthened. Otherwise such a note is refused.
    pub force: bool,
}

impl Planner<'_> {
    /// Plans a new note. Properties in the frontmatter of its text are merged with the requested ones.
    ///
    /// # Errors
    /// `Exists` if there is a file at the path already, or the name captures links of other notes; `Invalid` for a title that gives no file name, and for a type
    /// or category that is too long; `NotFound` if there is no such template.
    pub(super) fn plan_new(
        &self,
        view: &View<'_>,
        request: &NewRequest,
        now: Timestamp,
    ) -> Result<ChangeSet> {
        refuse_long_label("type", request.note_type.as_deref())?;
        refuse_long_label("category", request.category.as_deref())?;
        let settings = self.core.vault.settings();
        // The template of a daily note is filled in for its day.
        let local = request.day.filter(|_| request.daily).unwrap_or(now).local();
        let named = self.name(view, request, now)?;
        let path = named.path.clone();
        if request.daily && view.holds(&path)? {
            return self.plan_again(view, request, &path);
        }
        self.refuse_taken(&path, None)?;
        let template = match (&request.template, request.daily) {
            (Some(template), _) => Some(self.template(template)?),
            (None, true) if !settings.daily_notes.template.is_empty() => {
                Some(self.template(&settings.daily_notes.template)?)
            }
            _ => None,
        };
        let templates = &settings.templates;
        let fill = |text: String| {
            date_format::fill(&text, &named.title, local, &templates.date_format, &templates.time_format)
                .map_err(|unknown| unsupported("the template", unknown))
        };
        let tags = StoredTags::of(&request.tags);
        let with_id = self.gets_id(view, request, &path);
        let mut remarks = converted(&path, &tags);
        let text = if request.verbatim {
            let properties = properties(request, &named, &tags, with_id, now).into_iter();
            let properties = properties.map(|(name, value, _)| (name, value)).collect();
            with_properties(String::new(), &path, properties)? + &ended(request.content.clone())
        } else {
            let (start, brought) =
                brought(template.map(fill).transpose()?.unwrap_or_default(), &request.content);
            let mut uniting = PropertyMerge::of(&path, ended(start));
            for (name, value) in &brought {
                uniting.ask(name, value)?;
            }
            if !with_id && value_of(&uniting.text, "id").is_some_and(|id| !is_blank(&id)) {
                self.identify(request, &mut uniting, &Value::from(named.id.as_str()))?;
            }
            for (name, value, from) in properties(request, &named, &tags, with_id, now) {
                match from {
                    Source::Asked => uniting.ask(&name, &value)?,
                    Source::Made if name == "id" => self.identify(request, &mut uniting, &value)?,
                    Source::Made if MADE.contains(&name.as_str()) && says_when(&uniting.text) => {}
                    Source::Made => uniting.offer(&name, &value)?,
                }
            }
            remarks.append(&mut uniting.remarks);
            uniting.text
        };
        let mut plan = ChangeSet::new("new");
        plan.files.push(FileChange::create(path.clone(), text.into_bytes()));
        let captured = if request.force { CapturedLinks::Lengthen } else { CapturedLinks::Refuse };
        add_new(view, std::slice::from_ref(&path), captured, &mut plan)?;
        plan.remarks.splice(0..0, remarks);
        Ok(plan)
    }

    /// Plans the addition to a daily note that exists already.
    fn plan_again(&self, view: &View<'_>, request: &NewRequest, path: &NotePath) -> Result<ChangeSet> {
        let source = view.source(path)?;
        if let Some(refusal) = source.refusal() {
            return Err(Error::invalid(refusal.to_string()));
        }
        let mut plan = ChangeSet::new("append");
        let (added, own): (&str, Properties) = match frontmatter::read(&request.content) {
            (Some(front), at) if front.error.is_none() => {
                (request.content.get(at..).unwrap_or(""), front.values().into_iter().collect())
            }
            _ => (request.content.as_str(), Properties::new()),
        };
        let edits =
            if added.trim().is_empty() { Ok(Vec::new()) } else { body_edit::append(&source.text, added) };
        let edits = edits.map_err(|refusal| Error::invalid(format!("{path}: {}", refusal.message)))?;
        let text = String::from_utf8(apply(source.text.as_bytes(), &edits)?)
            .map_err(|error| Error::internal("an edit produced invalid UTF-8").with_source(error))?;
        let mut uniting = PropertyMerge::of(path, text);
        let tags = StoredTags::of(&request.tags);
        for (name, value) in own.iter().chain(&asked(request, &tags)) {
            uniting.ask(name, value)?;
        }
        let edit = single_edit(&source.text, &uniting.text).into_iter().collect();
        let mut remarks = converted(path, &tags);
        remarks.extend(open_block(&source, &edits));
        remarks.append(&mut uniting.remarks);
        add_edits(&mut plan, &source, None, edit, remarks);
        Ok(plan)
    }

    /// Returns whether a new note gets an id and a date (`notes.ids`).
    fn gets_id(&self, view: &View<'_>, request: &NewRequest, path: &NotePath) -> bool {
        if self.core.config.vault.layout == Layout::Memories && !request.daily {
            return true;
        }
        match self.core.config.notes.ids {
            IdPolicy::Always => true,
            IdPolicy::Never => request.identified,
            IdPolicy::Auto if request.identified => self.memory_gets_id(view, path),
            // A page would show the properties, and what the links are like does not say that Obsidian reads the folder.
            IdPolicy::Auto if view.dialects().unit_of(path).dialect.follows_paths() => false,
            IdPolicy::Auto if !view.dialects().unit_of(path).is_certain() => false,
            IdPolicy::Auto => {
                let templates = self.core.vault.settings().templates.folder.trim_matches('/').to_owned();
                let is_template = !templates.is_empty()
                    && path.as_str().strip_prefix(&templates).is_some_and(|rest| rest.starts_with('/'));
                !request.daily && request.template.is_none() && !is_template
            }
        }
    }

    /// Returns whether a new memory gets an id and a date (`notes.ids`). It does where nothing shows that GitHub or a
    /// generator publishes the folder.
    pub fn memory_gets_id(&self, view: &View<'_>, path: &NotePath) -> bool {
        let unit = view.dialects().unit_of(path);
        self.core.config.notes.ids != IdPolicy::Auto || !unit.dialect.follows_paths() || unit.is_assumed()
    }

    /// Sets the id of a note, unless its text has an id that no other note has. The id of a template is replaced,
    /// because every note made from it would have it.
    fn identify(&self, request: &NewRequest, uniting: &mut PropertyMerge<'_>, id: &Value) -> Result<()> {
        let brought = value_of(&request.content, "id").filter(|brought| !is_blank(brought));
        let known = match &brought {
            Some(Value::String(brought)) => self.core.index.catalog().names().with_id(brought)?.len(),
            Some(brought) => self.core.index.catalog().names().with_id(&brought.to_string())?.len(),
            None => return uniting.set("id", id),
        };
        if known == 0 { Ok(()) } else { uniting.ask("id", id) }
    }

    /// Determines the path and title of a new note.
    fn name(&self, view: &View<'_>, request: &NewRequest, now: Timestamp) -> Result<Named> {
        let settings = self.core.vault.settings();
        let is_memory =
            self.core.config.vault.layout == Layout::Memories && !request.daily && request.folder.is_none();
        let (inside, title) = match is_memory || request.identified {
            true => ("", request.title.trim().to_owned()),
            false => place_and_title(&self.core.vault, &request.title),
        };
        if is_memory {
            let stem = memory_stem(request.category.as_deref(), &title)?;
            let new = |stem: &str| self.core.vault.new_path(&format!("{stem}.md"), NameRules::default());
            let id = self.new_id(&new(&stem)?, now)?;
            let path = new(&format!("{stem}-{id}"))?;
            return Ok(Named { path, title, id, is_memory });
        }
        let (path, title) = if request.daily {
            let path = self.daily_note(request.day)?;
            let title = path.stem().to_owned();
            (path, title)
        } else {
            let name = file_name(&title)?;
            let place = match (&request.folder, &request.category, &settings.new_files) {
                // An absolute path is not one in the vault.
                (Some(folder), _, _) | (None, Some(folder), _) => folder.trim_end_matches('/').to_owned(),
                (None, None, FolderSetting::Folder(folder)) => folder.trim_matches('/').to_owned(),
                _ => String::new(),
            };
            let place = match (place.as_str(), inside) {
                (place, "") => place.to_owned(),
                ("", inside) => inside.to_owned(),
                (place, inside) => format!("{place}/{inside}"),
            };
            if place.to_lowercase().ends_with(".md") && !self.core.vault.has_folder(&place) {
                return Err(Error::invalid(format!("{place} is the path of a note, not a folder"))
                    .with_hint("give its folder alone, and its name as the title"));
            }
            let path = if request.numbered {
                FreeNames::without_captures(&self.core.vault, view).take(&place, &name)?
            } else {
                self.core.vault.new_path(&placed(&place, &name), NameRules::default())?
            };
            (path, title)
        };
        let id = self.new_id(&path, now)?;
        Ok(Named { path, title, id, is_memory })
    }

    /// Returns an id for a note that is created at a path and time. It is computed from these, so that a dry run shows
    /// it too.
    fn new_id(&self, path: &NotePath, now: Timestamp) -> Result<String> {
        // A note that was created here at the same moment may have been moved, together with its id.
        for later in 0..NAMESAKES {
            let id = path_id_at(path, Timestamp::from_millis(now.millis().saturating_add(later)));
            if self.core.index.catalog().names().with_id(&id)?.is_empty() {
                return Ok(id);
            }
        }
        Err(Error::internal(format!("there is no free id for {path}")))
    }

    fn template(&self, name: &str) -> Result<String> {
        let folder = self.core.vault.settings().templates.folder;
        let inside = format!("{}/{name}", folder.trim_matches('/'));
        let row = Lookup::of(self.core).find(&inside).or_else(|_| Lookup::of(self.core).find(name))?;
        let bytes = self.core.read_bytes(&row.path)?;
        String::from_utf8(bytes)
            .map_err(|_| Error::invalid(format!("the template {} is not UTF-8", row.path)))
    }

    /// Returns an error if another file has the path, also in another spelling (docs/spec/obsidian.md 1.6).
    pub fn refuse_taken(&self, to: &NotePath, from: Option<&NotePath>) -> Result<()> {
        refuse_fenced(self.core, to)?;
        if self.core.vault.hides(to) {
            return Err(Error::invalid(format!("{to} is in the folder of the index"))
                .with_hint("choose another folder"));
        }
        let mut known = String::new();
        let mut rest = to.as_str();
        loop {
            let (name, behind) =
                rest.split_once('/').map_or((rest, None), |(name, behind)| (name, Some(behind)));
            let folder = self.core.vault.root().join(&known);
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                    return Err(Error::invalid(format!("{known} is a file, so {to} cannot be in it"))
                        .with_hint("name a folder, or choose another name"));
                }
                Err(error) => return Err(Error::io("list", &folder, error)),
            };
            let path = if known.is_empty() { name.to_owned() } else { format!("{known}/{name}") };
            let wanted = key(name);
            for entry in entries {
                let entry = entry.map_err(|error| Error::io("list", &folder, error))?;
                let held = entry.file_name();
                let Some(held) = held.to_str().filter(|held| key(held) == wanted) else { continue };
                let place = if known.is_empty() { held.to_owned() } else { format!("{known}/{held}") };
                // A file does not block its own move, and an existing folder of exactly this name is used.
                let is_itself = from.is_some_and(|from| from.as_str() == place);
                if is_itself || (behind.is_some() && held == name) {
                    continue;
                }
                let is_unseen = behind.is_none()
                    && NotePath::from_disk(&place).is_some_and(|held| self.core.vault.withholds(&held));
                if let Some(access) = self.core.agent.as_ref().filter(|_| is_unseen) {
                    return Err(not_written(access, self.core, to));
                }
                let (code, why) = if held == name {
                    ("target-exists", "is there already".to_owned())
                } else {
                    ("case-collision", format!("differs only in spelling from {held}, which exists already"))
                };
                let mut hint = Wording::from("choose another name, or move that one away first");
                if from.is_none() && path.ends_with(".md") && code == "target-exists" {
                    hint = hint.with_tool("edit_note", "edit_note changes the note that is there");
                }
                return Err(Error::new(ErrorKind::Exists, format!("{path} {why} ({code})")).with_hint(hint));
            }
            match behind {
                Some(behind) => (known, rest) = (path, behind),
                None => return Ok(()),
            }
        }
    }
}

/// The path, title and id of a new note.
struct Named {
    path: NotePath,
    title: String,
    id: String,
    /// Whether the note is written in the layout `memories`.
    is_memory: bool,
}

/// The origin of a property of a new note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The request has it.
    Asked,
    /// It is generated, unless the text has the property.
    Made,
}

/// Returns the properties of a new note, in order.
fn properties(
    request: &NewRequest,
    named: &Named,
    tags: &StoredTags,
    with_id: bool,
    now: Timestamp,
) -> Vec<(String, Value, Source)> {
    if named.is_memory {
        return memory_properties(request, named, tags, now);
    }
    let mut properties = Vec::new();
    if with_id {
        properties.push(("id".to_owned(), Value::from(named.id.as_str()), Source::Made));
    }
    // A requested title is written as a property if the text begins with another heading, or if it equals the title
    // made from the text: then it stays when the text changes.
    let is_made_of_text = || title_of(&request.content) == named.title;
    let opens_otherwise = || {
        let note = Note::parse(&request.content);
        note.headings.first().is_some_and(|heading| heading.level == 1 && heading.text != named.title)
    };
    let is_said = request.verbatim && (opens_otherwise() || is_made_of_text());
    if named.title != named.path.stem() || is_said {
        properties.push(("title".to_owned(), Value::from(named.title.as_str()), Source::Asked));
    }
    properties.extend(asked(request, tags).into_iter().map(|(name, value)| (name, value, Source::Asked)));
    if with_id {
        // The date comes before the other requested properties.
        let at = properties.len() - request.properties.len();
        properties.insert(at, ("created_at".to_owned(), Value::from(now.rfc3339()), Source::Made));
    }
    properties
}

/// The longest type or category, in characters. Lists, file names and statistics show them.
const LONGEST_LABEL: usize = 200;

/// Returns an error for a type or category that is too long for a label.
///
/// # Errors
/// `Invalid` if it is longer than 200 characters.
pub fn refuse_long_label(name: &str, label: Option<&str>) -> Result<()> {
    let length = label.map_or(0, |label| label.chars().count());
    if length <= LONGEST_LABEL {
        return Ok(());
    }
    Err(Error::invalid(format!("{name} has {length} characters"))
        .with_hint(format!("Give a word or a few, of {LONGEST_LABEL} characters at most")))
}

/// Returns the requested properties.
fn asked(request: &NewRequest, tags: &StoredTags) -> Properties {
    let mut properties = Properties::new();
    if !tags.tags.is_empty() {
        properties.push(("tags".to_owned(), Value::from(tags.tags.clone())));
    }
    properties.extend(originals(tags));
    let given = [("category", &request.category), ("type", &request.note_type)];
    let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into())));
    properties.extend(given);
    properties.extend(request.properties.iter().cloned());
    properties
}

/// Returns the properties of a note in the layout `memories`: all that its contract names (docs/spec/toolsets.md `mem`).
fn memory_properties(
    request: &NewRequest,
    named: &Named,
    tags: &StoredTags,
    now: Timestamp,
) -> Vec<(String, Value, Source)> {
    let at = Value::from(now.exact_rfc3339());
    let category = request.category.as_ref().map_or(Source::Made, |_| Source::Asked);
    let fixed = [
        // The name of the file contains the id.
        ("id", Value::from(named.id.as_str()), Source::Asked),
        ("title", Value::from(named.title.as_str()), Source::Asked),
        ("tags", Value::from(tags.tags.clone()), Source::Asked),
        ("category", Value::from(request.category.clone().unwrap_or_default()), category),
        ("created_at", at.clone(), Source::Made),
        ("updated_at", at.clone(), Source::Made),
        ("last_reviewed", at, Source::Made),
        ("links", Value::Array(Vec::new()), Source::Made),
    ];
    let fixed = fixed.into_iter().map(|(name, value, from)| (name.to_owned(), value, from));
    let kind = request.note_type.clone().map(|kind| ("type".to_owned(), Value::from(kind)));
    let more = originals(tags).into_iter().chain(kind).chain(request.properties.iter().cloned());
    fixed.chain(more.map(|(name, value)| (name, value, Source::Asked))).collect()
}

/// Appends a text to a template. If both have frontmatter, returns the properties of the text separately.
fn brought(template: String, content: &str) -> (String, Properties) {
    if frontmatter::read(&template).0.is_some()
        && let (Some(front), at) = frontmatter::read(content)
        && front.error.is_none()
    {
        let body = content.get(at..).unwrap_or("");
        return (template + body, front.values().into_iter().collect());
    }
    (template + content, Properties::new())
}

/// Appends a line end to a text that is not empty and has none.
fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Returns whether a text has a property with its creation time.
fn says_when(text: &str) -> bool {
    MADE.iter().any(|name| value_of(text, name).is_some_and(|value| !is_blank(&value)))
}

/// Appends a number to a title. The title is shortened if its file name would be cut before the number.
fn numbered_title(title: &str, number: usize) -> Result<String> {
    let suffix = format!(" {number}");
    let mut start = title.trim_end().to_owned();
    while !file_name(&format!("{start}{suffix}"))?.ends_with(&suffix) && start.pop().is_some() {}
    Ok(format!("{start}{suffix}"))
}

/// Adds a number to the title of a new note, if another file has that name, or links mean another note by it. It is the
/// first number that gives the note a file name of its own.
///
/// # Errors
/// `Invalid` for a title that gives no file name; `Io` if the folder cannot be listed.
pub fn number_title(vault: &Vault, view: &View<'_>, request: &mut NewRequest) -> Result<()> {
    let folder = request.folder.as_deref().unwrap_or_default().trim_end_matches('/');
    let mut names = FreeNames::without_captures(vault, view);
    let mut title = request.title.clone();
    let mut number = 1;
    while names.is_taken(folder, &format!("{}.md", file_name(&title)?))? {
        number += 1;
        title = numbered_title(&request.title, number)?;
    }
    request.title = title;
    Ok(())
}

/// Returns the error for a pattern of dates with a token that is not supported.
pub(crate) fn unsupported(place: &str, unknown: UnknownToken) -> Error {
    Error::invalid(format!("{place} cannot be used: {unknown}"))
        .with_hint("write the date with YYYY, MM and DD, and text that is no date in [ ]")
}

/// Splits what is given as a title into a folder and the title. Only the path of a note has a folder: it ends with `.md`, and
/// its folder exists or has no spaces in its name.
fn place_and_title<'r>(vault: &Vault, given: &'r str) -> (&'r str, String) {
    let given = given.trim();
    let Some(path) = without_extension(given) else { return ("", given.to_owned()) };
    let Some((folder, name)) = path.rsplit_once('/') else { return ("", path.to_owned()) };
    let folder = folder.trim_matches('/');
    let is_folder = !folder.contains(char::is_whitespace) || vault.has_folder(folder);
    if is_folder && !name.trim().is_empty() {
        (folder, name.trim().to_owned())
    } else {
        ("", path.to_owned())
    }
}
