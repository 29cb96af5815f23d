//! Plans links between two notes in both directions, and the deletion of notes.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::config::Layout;
use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::journal::reader::ReadOrder;
use crate::safe_open;
use crate::store::catalog_overlay::{View, table};
use crate::store::change::Planner;
use crate::store::change::move_files::add_edits;
use crate::store::source::Source;
use crate::text::edit::{ChangeSet, Content, ContentHash, Edit, FileChange, FileLocation, Remark, apply};
use crate::text::frontmatter::edit::{Refusal, add, remove_item};
use crate::text::link::Link;
use crate::text::path::{NotePath, key};
use crate::text::related_section;
use crate::text::related_section::RelatedSection;
use crate::text::resolve::{FileNames, name_keys};
use crate::text::rewrite::{linktext, parse};
use crate::wording::Wording;

/// Two notes that belong together, or no longer.
#[derive(Debug, Clone, Default)]
pub struct RelateRequest {
    /// The one, by any of its names.
    pub a: String,
    /// The other.
    pub b: String,
    /// The text shown for the link from `a` to `b`; its name where not given.
    pub text: Option<String>,
}

/// What becomes of links to a note that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DanglingLinks {
    /// They stay, and lead nowhere, as in Obsidian.
    #[default]
    Leave,
    /// Their text stays.
    Plain,
}

/// A file that is to be removed.
#[derive(Debug, Clone, Default)]
pub struct DeleteRequest {
    /// The note by any of its names, or the path of another file.
    pub note: String,
    /// Past recovery, instead of to the vault's bin.
    pub permanent: bool,
    /// What becomes of links to it.
    pub links: DanglingLinks,
}

/// Gives a text as a link can show it: on one line, without the signs that end a link; nothing where nothing is left.
pub fn shown(text: &str) -> Option<String> {
    let plain: String = text.chars().map(|c| if matches!(c, '[' | ']' | '|') { ' ' } else { c }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

impl Planner<'_> {
    pub(super) fn related_section(&self) -> RelatedSection {
        let config = &self.core.config.links;
        let is_memories = self.core.config.vault.layout == Layout::Memories;
        let name = match config.section.as_str() {
            "" if is_memories => "Related Memories",
            "" => "Related",
            name => name,
        };
        let bold = config.style == "bold" || (config.style.is_empty() && is_memories);
        RelatedSection { name: name.to_owned(), bold }
    }

    /// Plans a link both ways, each in its note's related section, unless the note links to the other already.
    ///
    /// # Errors
    /// `NotFound` if no note has a name; `Exists` if several notes have it; `Invalid` if both names are of the same
    /// note.
    pub(super) fn plan_link(&self, view: &View<'_>, request: &RelateRequest) -> Result<ChangeSet> {
        let mut plan = ChangeSet::new("link");
        let (a, b, names, ids) = self.pair(view, request)?;
        let settings = self.core.vault.settings();
        let text = request.text.as_deref().and_then(shown);
        let pairs = [(&a, &b, text.as_deref(), &ids.1), (&b, &a, None, &ids.0)];
        for (source, target, text, id) in pairs {
            let mut edits = Vec::new();
            let mut remarks = Vec::new();
            if !source.note.links.iter().any(|link| means(&names, link, source, &target.path)) {
                let markdown = settings.use_markdown_links;
                let dest = linktext(&names, &target.path, &source.path, settings.link_format, markdown)
                    .ok_or_else(|| Error::invalid(format!("no link text finds {}", target.path)))?;
                let link = match (markdown, text) {
                    (true, text) => format!("[{}](<{dest}>)", text.unwrap_or(target.path.stem())),
                    (false, Some(text)) => format!("[[{dest}|{text}]]"),
                    (false, None) => format!("[[{dest}]]"),
                };
                let added = related_section::add(&source.text, &source.note, &self.related_section(), &link);
                let text = String::from_utf8(apply(source.text.as_bytes(), std::slice::from_ref(&added))?)
                    .map_err(|error| Error::internal("an edit broke a character").with_source(error))?;
                let again = parse(&source.path, &text);
                if !again.links.iter().any(|link| means(&names, link, source, &target.path)) {
                    return Err(Error::invalid(format!(
                        "a link at the end of {} would not be one: something before it is not closed",
                        source.path
                    ))
                    .with_hint("close the code block, comment or math there first"));
                }
                edits.push(added);
            }
            if holds_ids(source) && !has_id(source, id) {
                take(
                    add(&source.text, "links", &[Value::from(id.as_str())]),
                    source,
                    &mut edits,
                    &mut remarks,
                );
            }
            add_edits(&mut plan, source, None, edits, remarks);
        }
        Ok(plan)
    }

    /// Plans the removal of the bullets by which two notes are linked; links in running text stay and are told of.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    pub(super) fn plan_unlink(&self, view: &View<'_>, request: &RelateRequest) -> Result<ChangeSet> {
        let mut plan = ChangeSet::new("unlink");
        let (a, b, names, ids) = self.pair(view, request)?;
        for (source, target, id) in [(&a, &b, &ids.1), (&b, &a, &ids.0)] {
            let goes = |link: &Link| means(&names, link, source, &target.path);
            let mut remarks = Vec::new();
            let mut edits =
                related_section::remove(&source.text, &source.note, &self.related_section(), goes);
            let stays = |link: &&Link| goes(link) && !edits.iter().any(|edit| edit.span.encloses(link.span));
            remarks.extend(source.note.links.iter().filter(stays).map(|link| {
                let said = link.span.of(&source.text);
                let message = format!("the text links to it and was left alone: {said}");
                source.remark("link-in-text", link.line, link.span.start, message)
            }));
            if has_id(source, id) {
                let removed = remove_item(&source.text, "links", &Value::from(id.as_str()));
                take(removed, source, &mut edits, &mut remarks);
            }
            add_edits(&mut plan, source, None, edits, remarks);
        }
        Ok(plan)
    }

    fn pair(
        &self,
        view: &View<'_>,
        request: &RelateRequest,
    ) -> Result<(Source, Source, FileNames, (String, String))> {
        let (a, b) = (view.find(&request.a)?, view.find(&request.b)?);
        if a == b {
            return Err(Error::invalid(format!("{a} cannot be linked to itself")));
        }
        let sources = [view.source(&a)?, view.source(&b)?];
        let own = BTreeSet::from([key(a.name()), key(b.name())]);
        let names = table(view.names(&sources, own)?.iter());
        let [first, second] = sources;
        let ids = (first.id(), second.id());
        Ok((first, second, names, ids))
    }

    /// Plans the removal of a file: to the vault's bin, unless for good.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    pub(super) fn plan_delete(&self, view: &View<'_>, request: &DeleteRequest) -> Result<ChangeSet> {
        let mut plan = ChangeSet::new("delete");
        let path = self.file_named(view, &request.note)?;
        let to = if request.permanent {
            None
        } else {
            Some(FileLocation::Trash(self.free_in_trash(&path, &BTreeSet::new())?))
        };
        let mut sources = view.sources(view.concerned(std::slice::from_ref(&path), &BTreeSet::new())?)?;
        sources.retain(|source| source.path != path);
        let mut keys: BTreeSet<String> = name_keys(path.name()).into_iter().collect();
        keys.insert(key(path.name()));
        let files = view.names(&sources, keys)?;
        let (names, mut after) = (table(files.iter()), table(files.iter()));
        after.remove(&path);
        let id = view.source(&path).map(|source| source.id()).ok().filter(|_| path.is_note());
        for source in &sources {
            let goes = |link: &Link| means(&names, link, source, &path);
            let mut remarks = Vec::new();
            let mut edits =
                related_section::remove(&source.text, &source.note, &self.related_section(), goes);
            if let Some(id) = id.as_ref().filter(|id| has_id(source, id)) {
                let removed = remove_item(&source.text, "links", &Value::from(id.as_str()));
                take(removed, source, &mut edits, &mut remarks);
            }
            let left: Vec<&Link> = source
                .note
                .links
                .iter()
                .filter(|link| goes(link) && !edits.iter().any(|edit| edit.span.encloses(link.span)))
                .collect();
            for link in left {
                match plain(link, source).filter(|_| request.links == DanglingLinks::Plain) {
                    Some(edit) => edits.push(edit),
                    None => {
                        let said = link.span.of(&source.text);
                        let (code, message) = match after.resolve(&link.path, &source.path) {
                            Some(other) => {
                                ("leads-elsewhere", format!("leads to {} now: {said}", other.path))
                            }
                            None => ("dangling", format!("now broken: {said}")),
                        };
                        remarks.push(source.remark(code, link.line, link.span.start, message));
                    }
                }
            }
            add_edits(&mut plan, source, None, edits, remarks);
        }
        plan.remarks.extend(self.unread(&[&path])?);
        // What goes for good must be what was looked at.
        let before =
            if request.permanent { Some(ContentHash::of(&self.core.read_bytes(&path)?)) } else { None };
        let from = Some(FileLocation::Vault(path));
        plan.files.push(FileChange { from, to, before, content: Content::Keep });
        Ok(plan)
    }

    /// Finds a name in the bin that is free, and not taken by what goes along (spec/obsidian.md 1.7).
    pub(in crate::store) fn free_in_trash(
        &self,
        path: &NotePath,
        taken: &BTreeSet<NotePath>,
    ) -> Result<NotePath> {
        let bin = self.core.vault.root().join(".trash");
        let (stem, extension) = match path.extension() {
            "" => (path.as_str(), String::new()),
            extension => {
                let stem = path.as_str().len() - extension.len() - 1;
                (path.as_str().get(..stem).unwrap_or(path.as_str()), format!(".{extension}"))
            }
        };
        let names = std::iter::once(path.as_str().to_owned())
            .chain((2..10_000).map(|number| format!("{stem} {number}{extension}")));
        let names = names.filter(|name| std::fs::symlink_metadata(bin.join(name)).is_err());
        let mut free =
            names.filter_map(|name| NotePath::from_disk(&name)).filter(|name| !taken.contains(name));
        free.next().ok_or_else(|| Error::invalid(format!("the bin has no free name for {path}")))
    }

    /// Plans the way back of a file from the vault's bin.
    ///
    /// # Errors
    /// `NotFound` if the trash has no such file; `Exists` if another file has its path now.
    pub(super) fn plan_restore(&self, name: &str) -> Result<ChangeSet> {
        let mut plan = ChangeSet::new("restore");
        let bin = self.core.vault.root().join(".trash");
        let wanted = name.trim_start_matches(".trash/");
        let in_trash = |path: &NotePath| Path::new(".trash").join(path.as_str());
        let is_there = |path: &NotePath| safe_open::open(self.core.vault.root(), in_trash(path)).is_ok();
        let given = [wanted.to_owned(), format!("{wanted}.md")];
        // Where it was tells which of the bin's files is meant; else its name there.
        let last = if wanted == name { self.thrown_away(&given, &is_there)? } else { None };
        let path = last.or_else(|| given.iter().filter_map(|path| NotePath::parse(path).ok()).find(is_there));
        let path = path.or_else(|| self.answering_in_trash(&bin, name)).ok_or_else(|| {
            Error::not_found(format!("the bin holds no {name:?}")).with_hint(
                Wording::new(
                    "give its path below .trash/, as `sidenote history` shows it, or its id",
                    "give its path below .trash/, or its id",
                )
                .with_tool("read_session", "read_session with the action audit shows it"),
            )
        })?;
        let from = FileLocation::Trash(path.clone());
        // The journal knows where it was, whatever name it has in the bin.
        let mut to = path;
        for event in Journal::open(&self.core.vault, &self.core.vault.records())
            .events(ReadOrder::NewestFirst)?
            .of_changes()
        {
            let event = event?;
            let deleted = event.files.iter().find(|file| file.to.as_ref() == Some(&from));
            if let Some(path) = deleted.and_then(|file| file.path.in_vault()) {
                to = path.clone();
                break;
            }
        }
        self.refuse_taken(&to, None)?;
        let to = FileLocation::Vault(to);
        plan.files.push(FileChange { from: Some(from), to: Some(to), before: None, content: Content::Keep });
        Ok(plan)
    }

    /// Finds the file of the bin that one of these paths of the vault went to last.
    fn thrown_away(
        &self,
        paths: &[String],
        is_there: &dyn Fn(&NotePath) -> bool,
    ) -> Result<Option<NotePath>> {
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.of_changes() {
            let event = event?;
            let gone = event.files.iter().filter(|file| {
                paths.iter().any(|path| file.path.in_vault().is_some_and(|own| own.as_str() == path))
            });
            let places = gone.filter_map(|file| match &file.to {
                Some(FileLocation::Trash(place)) => Some(place.clone()),
                _ => None,
            });
            if let Some(place) = places.into_iter().find(|place| is_there(place)) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Finds the one note in the bin that has this id, or this title where no other has it.
    fn answering_in_trash(&self, bin: &Path, name: &str) -> Option<NotePath> {
        // A link in the place of the bin is none of ours.
        if safe_open::folder(self.core.vault.root(), Path::new(".trash")).is_err() {
            return None;
        }
        let files = walkdir::WalkDir::new(bin).sort_by_file_name().into_iter().filter_map(|entry| {
            let entry = entry.ok().filter(|entry| entry.file_type().is_file())?;
            NotePath::from_disk(entry.path().strip_prefix(bin).ok()?.to_str()?).filter(NotePath::is_note)
        });
        let wanted = key(name);
        let mut titled = Vec::new();
        for path in files {
            // Without a guess at what cannot be read.
            let inner = Path::new(".trash").join(path.as_str());
            let max = self.core.vault.max_file_size();
            let Ok(bytes) = safe_open::read(self.core.vault.root(), inner, max) else { continue };
            let source = Source::unplaced(path.clone(), &bytes);
            if source.own_id().is_some_and(|id| key(&id) == wanted) {
                return Some(path);
            }
            titled.extend(source.answers(&wanted).then_some(path));
        }
        if titled.len() == 1 { titled.pop() } else { None }
    }
}

fn means(names: &FileNames, link: &Link, source: &Source, target: &NotePath) -> bool {
    !link.path.is_empty() && names.resolve(&link.path, &source.path).is_some_and(|found| found.path == target)
}

fn holds_ids(source: &Source) -> bool {
    source.note.frontmatter.as_ref().is_some_and(|front| front.get("links").is_some())
}

fn has_id(source: &Source, id: &str) -> bool {
    let held = source.note.frontmatter.as_ref().and_then(|front| front.get("links"));
    held.is_some_and(|held| match &held.value {
        Value::Array(items) => items.iter().any(|item| item.as_str() == Some(id)),
        value => value.as_str() == Some(id),
    })
}

/// Takes over the edits of a property, or the reason why there are none.
fn take(
    edited: std::result::Result<Vec<Edit>, Refusal>,
    source: &Source,
    edits: &mut Vec<Edit>,
    remarks: &mut Vec<Remark>,
) {
    match edited {
        Ok(found) => edits.extend(found),
        Err(refusal) => remarks.push(refusal.remark(source.path.clone(), &source.text)),
    }
}

/// Puts the text of a link in its place; links of canvases and properties have none.
fn plain(link: &Link, source: &Source) -> Option<Edit> {
    use crate::text::link::LinkForm;
    let shown = link.display.as_deref()?;
    matches!(link.form, LinkForm::Wiki | LinkForm::MdPlain | LinkForm::MdAngle)
        .then(|| Edit::replace(link.span, shown))
        .filter(|_| !link.span.of(&source.text).is_empty())
}
