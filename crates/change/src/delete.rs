//! Plans the deletion of files, and what becomes of the links to them.

use std::collections::BTreeSet;

use serde_json::Value;
use sidenote_base::error::Result;
use sidenote_links::resolve::name_keys;
use sidenote_markdown::edit::{ChangeSet, Content, ContentHash, Edit, FileChange, FileLocation};
use sidenote_markdown::frontmatter::edit::remove_item;
use sidenote_markdown::link::{Link, LinkForm};
use sidenote_markdown::path::key;
use sidenote_markdown::related_section;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::source::Source;

use crate::Planner;
use crate::link::{add_property_edits, has_linked_id, links_to};
use crate::move_files::add_edits;

/// What happens to links to a deleted note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DanglingLinks {
    /// They stay, without a target, as in Obsidian.
    #[default]
    Leave,
    /// Their text replaces them.
    Plain,
}

/// A file to delete.
#[derive(Debug, Clone, Default)]
pub struct DeleteRequest {
    /// The note by any of its names, or the path of another file.
    pub note: String,
    /// Whether the file is removed permanently instead of being moved to the trash of the vault.
    pub permanent: bool,
    /// What happens to links to the file.
    pub links: DanglingLinks,
}

impl Planner<'_> {
    /// Plans the deletion of a file: its move to the trash of the vault, or its permanent removal.
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
        let (names, mut after) = (files.table(), files.table());
        after.remove(&path);
        let id = view.source(&path).map(|source| source.id()).ok().filter(|_| path.is_note());
        for source in &sources {
            let goes = |link: &Link| links_to(&names, link, source, &path);
            let mut remarks = Vec::new();
            let mut edits =
                related_section::remove(&source.text, &source.note, &self.related_section(), goes);
            if let Some(id) = id.as_ref().filter(|id| has_linked_id(source, id)) {
                let removed = remove_item(&source.text, "links", &Value::from(id.as_str()));
                add_property_edits(removed, source, &mut edits, &mut remarks);
            }
            let left: Vec<&Link> = source
                .note
                .links
                .iter()
                .filter(|link| goes(link) && !edits.iter().any(|edit| edit.span.encloses(link.span)))
                .collect();
            for link in left {
                match replace_by_text(link, source).filter(|_| request.links == DanglingLinks::Plain) {
                    Some(edit) => edits.push(edit),
                    None => {
                        let said = link.span.of(&source.text);
                        let (code, message) = match after.follow(link, &source.path) {
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
        // A file that is removed permanently must be the one that was planned for.
        let before =
            if request.permanent { Some(ContentHash::of(&self.core.read_bytes(&path)?)) } else { None };
        let from = Some(FileLocation::Vault(path));
        plan.files.push(FileChange { from, to, before, content: Content::Keep });
        Ok(plan)
    }
}

/// Returns the edit that replaces a link by its text. Returns `None` for a link of a canvas or property.
pub fn replace_by_text(link: &Link, source: &Source) -> Option<Edit> {
    let shown = link.display.as_deref()?;
    matches!(link.form, LinkForm::Wiki | LinkForm::MdPlain | LinkForm::MdAngle)
        .then(|| Edit::replace(link.span, shown))
        .filter(|_| !link.span.of(&source.text).is_empty())
}
