//! Planning new notes: their place, their frontmatter, templates and daily notes.

use std::collections::HashSet;

use serde_json::Value;

use super::Store;
use super::moves::follow;
use super::view::View;
use crate::clock::Timestamp;
use crate::config::Layout;
use crate::error::{Error, ErrorKind, Result};
use crate::index::catalog::path_id_at;
use crate::text::edit::{ChangeSet, FileChange, apply};
use crate::text::frontmatter::edit::set;
use crate::text::frontmatter::tag_name;
use crate::text::moment;
use crate::text::note::Note;
use crate::text::path::{NotePath, key};
use crate::text::rewrite::{Moves, Options};
use crate::vault::obsidian::Location;

/// So many ids are tried for one place and time.
const NAMESAKES: i64 = 10_000;

/// A note that is to be made.
#[derive(Debug, Clone, Default)]
pub struct NewRequest {
    /// Its title; a daily note's is its date.
    pub title: String,
    /// Its text, without frontmatter.
    pub content: String,
    /// The folder, from the vault's root; else the category, else where Obsidian puts new notes.
    pub folder: Option<String>,
    /// Its `category`.
    pub category: Option<String>,
    /// Its `tags`.
    pub tags: Vec<String>,
    /// Its `type`.
    pub note_type: Option<String>,
    /// Other properties, in order.
    pub properties: Vec<(String, Value)>,
    /// The template that it starts from, by any of its names.
    pub template: Option<String>,
    /// Make the daily note of today.
    pub daily: bool,
    /// Whether another note of this name is no obstacle: the file of the new one gets a number then.
    pub numbered: bool,
    /// Whether the text is text alone, whatever it begins with: it brings no properties along, and no title.
    pub verbatim: bool,
}

impl Store {
    /// Plans a new note; links that its name would capture are lengthened.
    ///
    /// # Errors
    /// `Exists` where a note is there already; `Invalid` for a title that gives no file name; `NotFound` for a
    /// template that is not there.
    pub(super) fn plan_new(
        &self,
        view: &View<'_>,
        request: &NewRequest,
        now: Timestamp,
    ) -> Result<ChangeSet> {
        let settings = self.vault.settings();
        let local = now.local();
        let Named { path, title, id, is_memory } = self.name(request, now)?;
        let path = self.vault.settle(&path)?;
        self.refuse_taken(&path, None)?;
        let template = match (&request.template, request.daily) {
            (Some(template), _) => Some(self.template(template)?),
            (None, true) if !settings.daily_notes.template.is_empty() => {
                Some(self.template(&settings.daily_notes.template)?)
            }
            _ => None,
        };
        let templates = &settings.templates;
        let filled = template
            .map(|text| moment::fill(&text, &title, local, &templates.date_format, &templates.time_format));
        let mut text = filled.unwrap_or_default();
        text.push_str(&request.content);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let properties = if is_memory {
            memory_properties(request, &title, &id, now)?
        } else {
            properties(request, &path, &title, &id, now)?
        };
        let text = if request.verbatim {
            with_properties(String::new(), &path, properties)? + &text
        } else {
            with_properties(text, &path, properties)?
        };
        let mut plan = ChangeSet::new("new");
        plan.files.push(FileChange::create(path.clone(), text.into_bytes()));
        let options = Options { format: settings.link_format, ..Options::default() };
        follow(view, &Moves::default(), &[], std::slice::from_ref(&path), options, &mut plan)?;
        Ok(plan)
    }

    /// Says where a new note goes and what it is called.
    fn name(&self, request: &NewRequest, now: Timestamp) -> Result<Named> {
        let settings = self.vault.settings();
        let is_memory =
            self.config.vault.layout == Layout::Memories && !request.daily && request.folder.is_none();
        let title = request.title.trim().to_owned();
        if is_memory {
            let stem = memory_stem(request.category.as_deref(), &title)?;
            let id = self.new_id(&NotePath::parse_new(&format!("{stem}.md"), false)?, now)?;
            let path = NotePath::parse_new(&format!("{stem}-{id}.md"), false)?;
            return Ok(Named { path, title, id, is_memory });
        }
        let (path, title) = if request.daily {
            let daily = &settings.daily_notes;
            let name = moment::format(&daily.format, now.local());
            let path = if daily.folder.is_empty() { name } else { format!("{}/{name}", daily.folder) };
            let path = NotePath::parse_new(&format!("{path}.md"), false)?;
            let title = path.stem().to_owned();
            (path, title)
        } else {
            let name = file_name(&title)?;
            let place = match (&request.folder, &request.category, &settings.new_files) {
                // A path from the root of the system is none in the vault.
                (Some(folder), _, _) | (None, Some(folder), _) => folder.trim_end_matches('/').to_owned(),
                (None, None, Location::Folder(folder)) => folder.trim_matches('/').to_owned(),
                _ => String::new(),
            };
            let path = if request.numbered {
                self.numbered(&place, &name)?
            } else {
                NotePath::parse_new(&placed(&place, &name), false)?
            };
            (path, title)
        };
        let id = self.new_id(&path, now)?;
        Ok(Named { path, title, id, is_memory })
    }

    /// Makes an id for a note that is made at a path and time: it follows from these, so that a dry run tells it, too.
    fn new_id(&self, path: &NotePath, now: Timestamp) -> Result<String> {
        // What had this place at this moment may have gone elsewhere, with its id.
        for later in 0..NAMESAKES {
            let id = path_id_at(path, Timestamp::from_millis(now.millis().saturating_add(later)));
            if self.index.catalog().with_id(&id)?.is_empty() {
                return Ok(id);
            }
        }
        Err(Error::internal(format!("no id is free for {path}")))
    }

    /// Finds a path in a folder for a note of this name: where others have it, with a number behind it.
    pub(super) fn numbered(&self, folder: &str, name: &str) -> Result<NotePath> {
        let path = NotePath::parse_new(&placed(folder, name), false)?;
        let disk = self.vault.root().join(path.folder());
        let mut taken = HashSet::new();
        match std::fs::read_dir(&disk) {
            Ok(entries) => {
                for entry in entries {
                    let entry = entry.map_err(|error| Error::io("list", &disk, error))?;
                    taken.insert(key(&entry.file_name().to_string_lossy()));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("list", &disk, error)),
        }
        let mut number = 1;
        let mut free = path;
        while taken.contains(&key(free.name())) {
            number += 1;
            free = NotePath::parse_new(&placed(folder, &format!("{name} {number}")), false)?;
        }
        Ok(free)
    }

    fn template(&self, name: &str) -> Result<String> {
        let folder = self.vault.settings().templates.folder;
        let inside = format!("{}/{name}", folder.trim_matches('/'));
        let row = self.find(&inside).or_else(|_| self.find(name))?;
        let bytes = self.read_bytes(&row.path)?;
        String::from_utf8(bytes)
            .map_err(|_| Error::invalid(format!("the template {} is not UTF-8", row.path)))
    }

    /// Refuses a place where something else is, also under another spelling of its name (spec/obsidian.md 1.6).
    pub(super) fn refuse_taken(&self, to: &NotePath, from: Option<&NotePath>) -> Result<()> {
        if self.vault.hides(to) {
            return Err(Error::invalid(format!("{to} lies in the folder of the index"))
                .with_hint("choose another folder"));
        }
        let mut known = String::new();
        let mut rest = to.as_str();
        loop {
            let (name, behind) =
                rest.split_once('/').map_or((rest, None), |(name, behind)| (name, Some(behind)));
            let folder = self.vault.root().join(&known);
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(Error::io("list", &folder, error)),
            };
            let path = if known.is_empty() { name.to_owned() } else { format!("{known}/{name}") };
            let wanted = key(name);
            for entry in entries {
                let entry = entry.map_err(|error| Error::io("list", &folder, error))?;
                let held = entry.file_name();
                let Some(held) = held.to_str().filter(|held| key(held) == wanted) else { continue };
                let place = if known.is_empty() { held.to_owned() } else { format!("{known}/{held}") };
                // What moves is not in its own way, and a folder of this very name takes in what comes.
                let is_itself = from.is_some_and(|from| from.as_str() == place);
                if is_itself || (behind.is_some() && held == name) {
                    continue;
                }
                let (code, why) = if held == name {
                    ("target-exists", "is there already".to_owned())
                } else {
                    (
                        "case-collision",
                        format!("differs only in spelling from {held}, which is there already"),
                    )
                };
                return Err(Error::new(ErrorKind::Exists, format!("{path} {why} ({code})"))
                    .with_hint("choose another name, or move that one away first"));
            }
            match behind {
                Some(behind) => (known, rest) = (path, behind),
                None => return Ok(()),
            }
        }
    }
}

/// Where a new note goes and what it is called.
struct Named {
    path: NotePath,
    title: String,
    id: String,
    /// Whether it is written in the layout `memories`.
    is_memory: bool,
}

type Properties = Vec<(String, Value)>;

/// Gives the properties of a note in the layout `readable`: only those that say something.
fn properties(
    request: &NewRequest,
    path: &NotePath,
    title: &str,
    id: &str,
    now: Timestamp,
) -> Result<Properties> {
    let mut properties = vec![("id".to_owned(), Value::from(id))];
    // What the text opens with would be taken for the title.
    let opens_otherwise = || {
        let note = Note::parse(&request.content);
        note.headings.first().is_some_and(|heading| heading.level == 1 && heading.text != title)
    };
    if title != path.stem() || request.verbatim && opens_otherwise() {
        properties.push(("title".to_owned(), Value::from(title)));
    }
    let tags = tags(request)?;
    if !tags.is_empty() {
        properties.push(("tags".to_owned(), Value::from(tags)));
    }
    let given = [("category", &request.category), ("type", &request.note_type)];
    let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into())));
    properties.extend(given);
    properties.push(("created_at".to_owned(), Value::from(now.rfc3339())));
    properties.extend(request.properties.iter().cloned());
    Ok(properties)
}

/// Gives the properties of a note in the layout `memories`: all that its contract names (spec/toolsets.md `mem`).
fn memory_properties(request: &NewRequest, title: &str, id: &str, now: Timestamp) -> Result<Properties> {
    let at = Value::from(now.rfc3339());
    let fixed = [
        ("id", Value::from(id)),
        ("title", Value::from(title)),
        ("tags", Value::from(tags(request)?)),
        ("category", Value::from(request.category.clone().unwrap_or_default())),
        ("created_at", at.clone()),
        ("updated_at", at.clone()),
        ("last_reviewed", at),
        ("links", Value::Array(Vec::new())),
    ];
    let mut properties: Properties =
        fixed.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    properties.extend(request.note_type.clone().map(|kind| ("type".to_owned(), Value::from(kind))));
    properties.extend(request.properties.iter().cloned());
    Ok(properties)
}

fn tags(request: &NewRequest) -> Result<Vec<&str>> {
    if let Some(tag) = request.tags.iter().find(|tag| tag_name(tag).is_none()) {
        return Err(Error::invalid(format!("{tag:?} is no tag"))
            .with_hint("a tag has no spaces, and at least one sign that is no digit"));
    }
    Ok(request.tags.iter().map(|tag| tag.trim_start_matches('#')).collect())
}

/// Writes properties into the frontmatter of a text.
pub(super) fn with_properties(mut text: String, path: &NotePath, properties: Properties) -> Result<String> {
    for (name, value) in properties {
        let edits = set(&text, &name, &value)
            .map_err(|refusal| Error::invalid(format!("{path}: {}", refusal.message)))?;
        text = String::from_utf8(apply(text.as_bytes(), &edits)?)
            .map_err(|error| Error::internal("an edit broke a character").with_source(error))?;
    }
    Ok(text)
}

/// Gives the path of a note in a folder.
fn placed(folder: &str, name: &str) -> String {
    if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") }
}

/// Gives the file name, without its ending, of a note in the layout `memories`.
pub(super) fn memory_stem(category: Option<&str>, title: &str) -> Result<String> {
    let parts = category.filter(|category| !category.trim().is_empty()).into_iter().chain([title]);
    Ok(parts.map(slug).collect::<Result<Vec<_>>>()?.join("-"))
}

/// Makes a part of a file name in the layout `memories`: lower-case letters, digits and hyphens.
pub(super) fn slug(text: &str) -> Result<String> {
    /// With category, id and ending, a name stays below what file systems take.
    const LONGEST: usize = 80;
    let mut slug = slug::slugify(text);
    slug.truncate(LONGEST);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        return Err(Error::invalid(format!("{text:?} gives no file name"))
            .with_hint("give a title with a letter or digit in it"));
    }
    Ok(slug.to_owned())
}

/// Makes a file name of a title: without the signs that Obsidian forbids and those that break links.
pub(super) fn file_name(title: &str) -> Result<String> {
    let kept = |c: char| {
        !c.is_control()
            && !matches!(c, '\\' | '/' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | '#' | '^' | '[' | ']')
    };
    let plain: String = title.replace("%%", " ").chars().map(|c| if kept(c) { c } else { ' ' }).collect();
    let name = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut name = name.trim_matches(['.', ' ']).to_owned();
    while name.len() > 240 {
        name.pop();
    }
    if name.is_empty() {
        return Err(Error::invalid(format!("{title:?} gives no file name"))
            .with_hint("give a title with a letter or digit in it"));
    }
    Ok(name)
}
