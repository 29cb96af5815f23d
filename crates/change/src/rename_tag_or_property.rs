//! Plans the rename of a tag or property in every note.

use serde_json::Value;
use sidenote_base::error::{Error, Result};
use sidenote_base::wording::Wording;
use sidenote_markdown::edit::{ChangeSet, Edit, apply, single_edit};
use sidenote_markdown::frontmatter;
use sidenote_markdown::frontmatter::edit::Refusal;
use sidenote_markdown::note::Note;
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::tag::tag_name;
use sidenote_markdown::tag_conversion::{ORIGINALS, sanitize};
use sidenote_markdown::tag_edit::{rename_canvas_tag, rename_tag};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::source::Source;

use crate::Planner;
use crate::follow_headings::{SettledNotes, follow_headings};
use crate::move_files::add_edits;

/// A tag or property to rename.
#[derive(Debug, Clone)]
pub struct RenameRequest {
    /// Whether it is a tag or a property.
    pub kind: RenameKind,
    /// The current name.
    pub old: String,
    /// The new name.
    pub new: String,
}

/// The kind of name that is renamed in every note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenameKind {
    /// A tag, with its nested tags.
    Tag,
    /// A property.
    Property,
}

/// Plans the rename of a tag in one note. A converted tag gets the new name in the form that Obsidian reads.
fn renamed_tag(source: &Source, old: &str, new: &str) -> std::result::Result<Vec<Edit>, Refusal> {
    if source.path.is_canvas() {
        return rename_canvas_tag(&source.text, &source.note, old, new);
    }
    let edits = rename_tag(&source.text, &source.note, old, new)?;
    let is_old = |item: &Value| {
        item.as_str().is_some_and(|text| key(text.trim().trim_start_matches('#')) == key(old.trim()))
    };
    let originals = source.note.frontmatter.as_ref().and_then(|front| front.get(ORIGINALS));
    let originals = originals.and_then(|property| property.value.as_array());
    let converted = sanitize(old).filter(|_| originals.is_some_and(|items| items.iter().any(is_old)));
    let Some(converted) = converted else { return Ok(edits) };
    let mut text = changed(&source.text, &edits)?;
    text = changed(&text, &rename_tag(&text, &Note::parse(&text), &converted, new)?)?;
    text = changed(&text, &frontmatter::edit::remove_items(&text, ORIGINALS, is_old)?)?;
    Ok(single_edit(&source.text, &text).into_iter().collect())
}

fn changed(text: &str, edits: &[Edit]) -> std::result::Result<String, Refusal> {
    let broken = || Refusal::new("reparse-mismatch", 0, "the edits of the tag do not fit together");
    let bytes = apply(text.as_bytes(), edits).map_err(|_| broken())?;
    String::from_utf8(bytes).map_err(|_| broken())
}

impl Planner<'_> {
    /// Plans the edits of every note that has the tag or property.
    ///
    /// # Errors
    /// `NotFound` if no note has the tag or property; `Invalid` for an invalid name.
    pub(super) fn plan_rename(&self, view: &View<'_>, request: &RenameRequest) -> Result<ChangeSet> {
        let (old, new) = (request.old.trim_start_matches('#'), request.new.trim_start_matches('#'));
        let what = match request.kind {
            RenameKind::Tag => "tag",
            RenameKind::Property => "property",
        };
        if request.kind == RenameKind::Tag && tag_name(new) != Some(new) {
            return Err(Error::invalid(format!("{new:?} is not a tag"))
                .with_hint("a tag has no spaces, and at least one character that is not a digit"));
        }
        let mut plan = ChangeSet::new(format!("rename-{what}"));
        for source in view.sources(self.holding(view, request.kind, old)?)? {
            let edited = match request.kind {
                RenameKind::Tag => renamed_tag(&source, old, new),
                RenameKind::Property => frontmatter::edit::rename(&source.text, old, new),
            };
            match edited {
                Ok(edits) => add_edits(&mut plan, &source, None, edits, Vec::new()),
                // A note that changed since it was indexed may not have it any more.
                Err(refusal) if refusal.code == "not-found" => {}
                Err(refusal) => plan.remarks.push(refusal.remark(source.path.clone(), &source.text)),
            }
        }
        if plan.is_empty() && plan.remarks.is_empty() {
            return Err(Error::not_found(format!("no note has the {what} {old:?}")).with_hint({
                let all = if what == "tag" { "tags" } else { "properties" };
                let agent = format!("list_notes with what: \"{all}\" lists them");
                Wording::new(format!("`sidenote {all}` lists them"), "").with_tool("list_notes", agent)
            }));
        }
        plan.files.sort_by(|a, b| a.from.cmp(&b.from));
        follow_headings(view, &mut plan, &SettledNotes::default())?;
        Ok(plan)
    }

    /// Lists the notes that have a tag or property, and those that changed since they were indexed.
    pub(crate) fn holding(&self, view: &View<'_>, kind: RenameKind, name: &str) -> Result<Vec<NotePath>> {
        let catalog = self.core.index.catalog();
        let mut paths: std::collections::BTreeSet<NotePath> = view.unindexed()?.collect();
        match kind {
            RenameKind::Tag => {
                let files = catalog.tagged(&key(name), true)?;
                paths.extend(catalog.rows(&files)?.into_iter().map(|row| row.path));
            }
            RenameKind::Property => {
                let wanted = key(name);
                let mut holding = Vec::new();
                let mut add = |file, map: serde_json::Map<String, Value>| {
                    if map.keys().any(|held| key(held.split('.').next().unwrap_or(held)) == wanted) {
                        holding.push(file);
                    }
                };
                catalog.properties().each(&mut add)?;
                // What is hidden from search is renamed, too.
                catalog.properties().of_hidden()?.into_iter().for_each(|(file, map)| add(file, map));
                paths.extend(catalog.rows(&holding)?.into_iter().map(|row| row.path));
            }
        }
        let mut held = Vec::new();
        let holds = |path: &NotePath| path.is_note() || kind == RenameKind::Tag && path.is_canvas();
        for path in paths.into_iter().filter(holds) {
            if view.is_there(&path)? {
                held.push(path);
            }
        }
        Ok(held)
    }
}
