//! Plans a revision of a note: title, text and properties at once, with the links to it.

use std::collections::HashSet;

use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_config::Layout;
use sidenote_links::rewrite::{Moves, parse};
use sidenote_markdown::edit::{ChangeSet, Content, FileChange, FileLocation, single_edit};
use sidenote_markdown::frontmatter::edit::line_end;
use sidenote_markdown::name_rules::NameRules;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::related_section::RelatedSection;
use sidenote_markdown::tag_conversion::{ORIGINALS, StoredTags};
use sidenote_markdown::{frontmatter, related_section};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::source::Source;

use crate::Planner;
use crate::free_names::FreeNames;
use crate::move_files::follow;
use crate::naming::{file_name, memory_stem, named_after, title_of};
use crate::properties::{applied, converted, originals, put, titled};

/// Properties with the modification time.
const CHANGED: &[&str] = &["updated_at", "updated", "modified"];

/// A revision of a note. Fields that are not given stay as they are.
#[derive(Debug, Clone, Default)]
pub struct ReviseRequest {
    /// The note, by any of its names.
    pub note: String,
    /// The new title. The file is renamed, and links to it follow.
    pub title: Option<String>,
    /// The new text. Items of the related section that it lacks are kept. A title that was made from the former text is
    /// made from the new one.
    pub content: Option<String>,
    /// The new `category`.
    pub category: Option<String>,
    /// All of the new `tags`.
    pub tags: Option<Vec<String>>,
    /// Other properties. Null removes one.
    pub properties: Vec<(String, Value)>,
}

impl Planner<'_> {
    /// Plans the revision of a note, and the edits of links to its new name.
    ///
    /// # Errors
    /// `Invalid` if the note cannot be edited safely, or if a title gives no file name.
    pub fn plan_revise(
        &self,
        view: &View<'_>,
        path: &NotePath,
        request: &ReviseRequest,
        now: Timestamp,
    ) -> Result<ChangeSet> {
        let path = path.clone();
        let source = view.source(&path)?;
        if !path.is_note() {
            return Err(Error::invalid(format!(
                "{path} is not a Markdown note, so its text cannot be edited"
            )));
        }
        if let Some(refusal) = source.refusal() {
            return Err(Error::invalid(refusal.to_string()));
        }
        let mut plan = ChangeSet::new("revise");
        let retitled =
            request.title.is_none().then(|| self.retitled(&source, request.content.as_deref())).flatten();
        let to = match &retitled {
            Some(title) => self.retitled_place(&path, title)?,
            None => self.revised_place(&source, request)?,
        };
        self.plan_text(view, &mut plan, &source, &to, |followed| {
            self.revised(&to, followed, request, retitled.as_deref(), to != path, now)
        })?;
        plan.remarks.extend(request.tags.iter().flat_map(|tags| converted(&to, &StoredTags::of(tags))));
        Ok(plan)
    }

    /// Plans the new path of a note, the edits of links to it, and its new text, in which its own links are adapted to
    /// the path.
    pub(super) fn plan_text(
        &self,
        view: &View<'_>,
        plan: &mut ChangeSet,
        source: &Source,
        to: &NotePath,
        change: impl FnOnce(&str) -> Result<String>,
    ) -> Result<()> {
        let path = &source.path;
        let places = (Some(FileLocation::Vault(path.clone())), Some(FileLocation::Vault(to.clone())));
        if to != path {
            self.refuse_taken(to, Some(path))?;
            let mut moves = Moves::default();
            moves.insert(path.clone(), to.clone());
            let (from, to) = places.clone();
            plan.files.push(FileChange { from, to, before: None, content: Content::Keep });
            follow(view, &moves, std::slice::from_ref(path), &[], self.core.rewrite_options(), plan)?;
            plan.remarks.extend(self.unread(&[path])?);
        }
        let own = plan.files.iter().position(|change| change.from == places.0);
        let followed = match own.and_then(|at| plan.files.get(at)).map(|change| &change.content) {
            Some(Content::Edits(edits)) => applied(&source.text, edits)?,
            _ => source.text.clone(),
        };
        let text = change(&followed)?;
        if let Some(edit) = single_edit(&source.text, &text) {
            let (from, to) = places;
            let content = Content::Edits(vec![edit]);
            let change = FileChange { from, to, before: Some(source.hash), content };
            match own.and_then(|at| plan.files.get_mut(at)) {
                Some(held) => *held = change,
                None => plan.files.push(change),
            }
        }
        Ok(())
    }

    /// Returns the path of a revised note: the file is named by its title, in the layout `memories` also by its
    /// category.
    fn revised_place(&self, source: &Source, request: &ReviseRequest) -> Result<NotePath> {
        let path = &source.path;
        let own = |name: &str| {
            let front = source.note.frontmatter.as_ref()?;
            front.get(name)?.value.as_str().map(str::to_owned)
        };
        let is_memory = self.core.config.vault.layout == Layout::Memories;
        let id = source.own_id().filter(|id| is_memory && path.stem().ends_with(&format!("-{id}")));
        if let Some(id) = id {
            if request.title.is_none() && request.category.is_none() {
                return Ok(path.clone());
            }
            let title = request.title.clone().or_else(|| own("title")).unwrap_or_default();
            let category = request.category.clone().or_else(|| own("category"));
            let stem = memory_stem(category.as_deref(), title.trim())?;
            let folder = if path.folder().is_empty() { String::new() } else { format!("{}/", path.folder()) };
            return self.core.vault.new_path(&format!("{folder}{stem}-{id}.md"), NameRules::default());
        }
        let Some(title) = request.title.as_deref().map(str::trim) else { return Ok(path.clone()) };
        let name = file_name(title)?;
        // Only one of several notes with the same title has the file name without a number.
        if name == path.stem() || own("title").as_deref() == Some(title) {
            return Ok(path.clone());
        }
        FreeNames::new(&self.core.vault).take(path.folder(), &name)
    }

    /// Returns the new title of a memory whose title was made from its text, if the new text gives another one.
    pub(super) fn retitled(&self, source: &Source, content: Option<&str>) -> Option<String> {
        let folder = self.core.config.memory.folder.trim_matches('/');
        let is_kept = source.path.as_str().strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let new = named_after(content?.trim());
        let old = [title_of(source.body()), named_after(source.body())].into_iter().find(|old| {
            let Ok(name) = file_name(old) else { return false };
            let stem = source.path.stem();
            let number = stem.strip_prefix(&name).and_then(|rest| rest.strip_prefix(' '));
            let is_numbered = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
            // A title that equals the file name but is a property was given by the user.
            let said = source.note.frontmatter.as_ref().and_then(|front| front.get("title"));
            let is_made = said.is_none_or(|said| said.value.as_str() == Some(old) && stem != old);
            (stem == name || is_numbered) && is_made
        })?;
        (is_kept && old != new).then_some(new)
    }

    /// Returns the path of a memory with a new title: the current one if its name fits, or a free one.
    pub(super) fn retitled_place(&self, path: &NotePath, title: &str) -> Result<NotePath> {
        let name = file_name(title)?;
        let number = path.stem().strip_prefix(&name).map(|rest| rest.trim_start());
        let fits = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        if fits { Ok(path.clone()) } else { FreeNames::new(&self.core.vault).take(path.folder(), &name) }
    }

    /// Returns the text of a revised note. `retitled` is a title made from its new text.
    fn revised(
        &self,
        path: &NotePath,
        old: &str,
        request: &ReviseRequest,
        retitled: Option<&str>,
        is_moved: bool,
        now: Timestamp,
    ) -> Result<String> {
        let before = parse(path, old);
        let held = |name: &str| before.frontmatter.as_ref().is_some_and(|front| front.get(name).is_some());
        let mut text = old.to_owned();
        if let Some(category) = &request.category {
            put(&mut text, path, "category", &Value::from(category.as_str()))?;
        }
        if let Some(tags) = &request.tags {
            let tags = StoredTags::of(tags);
            if !tags.tags.is_empty() || held("tags") {
                put(&mut text, path, "tags", &Value::from(tags.tags.clone()))?;
            }
            let originals = originals(&tags).map_or(Value::Null, |(_, value)| value);
            put(&mut text, path, ORIGINALS, &originals)?;
        }
        for (name, value) in &request.properties {
            put(&mut text, path, name, value)?;
        }
        if let Some(content) = &request.content {
            text = with_body(path, &text, content, &self.related_section())?;
        }
        if let Some(title) = request.title.as_deref().map(str::trim) {
            let opening = parse(path, &text).headings.into_iter().next().filter(|heading| heading.level == 1);
            let is_told = held("title") || path.stem() != title;
            if is_told || opening.is_some_and(|opening| opening.text != title) {
                put(&mut text, path, "title", &Value::from(title))?;
            }
        }
        if let Some(title) = retitled {
            text = titled(text, path, title)?;
        }
        // The modification time is updated only if the note has it already.
        let tells =
            CHANGED.iter().find(|name| held(name)).or_else(|| CHANGED.first().filter(|_| held("created_at")));
        if let Some(name) = tells.filter(|_| text != old || is_moved) {
            put(&mut text, path, name, &Value::from(now.exact_rfc3339()))?;
        }
        Ok(text)
    }
}

/// Replaces the text of a note, and adds the related notes that the new text lacks.
fn with_body(path: &NotePath, old: &str, content: &str, section: &RelatedSection) -> Result<String> {
    let note = parse(path, old);
    let (head, body) = old.split_at(frontmatter::read(old).1);
    let lead = body.get(..body.len() - body.trim_start().len()).unwrap_or("");
    let content = content.trim();
    let end = line_end(old);
    let content =
        if end == "\n" { content.to_owned() } else { content.replace("\r\n", "\n").replace('\n', end) };
    let last = if content.is_empty() { "" } else { end };
    let mut text = format!("{head}{lead}{content}{last}");
    // The new text is only text, even if it looks like frontmatter.
    if head.is_empty() && frontmatter::read(&text).1 > 0 {
        text.insert_str(0, end);
    }
    let now = parse(path, &text);
    let mut there: HashSet<&str> = now.links.iter().map(|link| link.path.as_str()).collect();
    let alone = related_section::bullet_links(old, &note, section).into_iter();
    let lacking: Vec<&str> =
        alone.filter(|link| there.insert(&link.path)).map(|link| link.span.of(old)).collect();
    if lacking.is_empty() {
        return Ok(text);
    }
    let bullets = related_section::add(&text, &now, section, &lacking.join(&format!("{end}- ")));
    applied(&text, &[bullets])
}
