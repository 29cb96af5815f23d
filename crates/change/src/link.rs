//! Plans links between two notes, in both directions, and their removal.

use std::collections::BTreeSet;

use serde_json::Value;
use sidenote_base::error::{Error, Result};
use sidenote_config::Layout;
use sidenote_links::resolve::FileNames;
use sidenote_links::rewrite::{linktext, markdown_destination, parse};
use sidenote_markdown::edit::{ChangeSet, Edit, Remark, apply};
use sidenote_markdown::frontmatter::edit::{Refusal, add, remove_item};
use sidenote_markdown::link::Link;
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::related_section;
use sidenote_markdown::related_section::RelatedSection;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::source::Source;
use sidenote_vault::obsidian::Settings;

use crate::Planner;
use crate::move_files::add_edits;

/// Two notes to link, or to unlink.
#[derive(Debug, Clone, Default)]
pub struct LinkRequest {
    /// The first note, by any of its names.
    pub a: String,
    /// The second note, by any of its names.
    pub b: String,
    /// The text of the link from `a` to `b`. Without it, the link shows the name of the note.
    pub text: Option<String>,
}

/// Returns a text in the form that a link can show: on one line, without brackets and vertical bars. Returns `None` if
/// nothing is left.
pub fn display_text(text: &str) -> Option<String> {
    let plain: String = text.chars().map(|c| if matches!(c, '[' | ']' | '|') { ' ' } else { c }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

impl Planner<'_> {
    /// Returns the name and the style of the section of links that sidenote maintains, by the settings and the layout.
    pub fn related_section(&self) -> RelatedSection {
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

    /// Plans links between two notes in both directions, each in the related section of its note. A note that links to
    /// the other one already is not changed.
    ///
    /// # Errors
    /// `NotFound` if no note has a name; `Exists` if several notes have it; `Invalid` if both names are of the same
    /// note.
    pub(super) fn plan_link(&self, view: &View<'_>, request: &LinkRequest) -> Result<ChangeSet> {
        let mut plan = ChangeSet::new("link");
        let (a, b, names, ids) = self.pair(view, request)?;
        let settings = self.core.vault.settings();
        let text = request.text.as_deref().and_then(display_text);
        let pairs = [(&a, &b, text.as_deref(), &ids.1), (&b, &a, None, &ids.0)];
        for (source, target, text, id) in pairs {
            let mut edits = Vec::new();
            let mut remarks = Vec::new();
            if !source.note.links.iter().any(|link| links_to(&names, link, source, &target.path)) {
                let link = new_link(&names, &settings, &source.path, &target.path, text)?;
                let added = related_section::add(&source.text, &source.note, &self.related_section(), &link);
                let text = String::from_utf8(apply(source.text.as_bytes(), std::slice::from_ref(&added))?)
                    .map_err(|error| Error::internal("an edit produced invalid UTF-8").with_source(error))?;
                let again = parse(&source.path, &text);
                if !again.links.iter().any(|link| links_to(&names, link, source, &target.path)) {
                    return Err(Error::invalid(format!(
                        "a link at the end of {} would not be one: something before it is not closed",
                        source.path
                    ))
                    .with_hint("close the code block, comment or math there first"));
                }
                edits.push(added);
            }
            if has_links_property(source) && !has_linked_id(source, id) {
                add_property_edits(
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

    /// Plans the removal of the list items that link two notes. Links in running text stay, and remarks name them.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    pub(super) fn plan_unlink(&self, view: &View<'_>, request: &LinkRequest) -> Result<ChangeSet> {
        let mut plan = ChangeSet::new("unlink");
        let (a, b, names, ids) = self.pair(view, request)?;
        for (source, target, id) in [(&a, &b, &ids.1), (&b, &a, &ids.0)] {
            let goes = |link: &Link| links_to(&names, link, source, &target.path);
            let mut remarks = Vec::new();
            let mut edits =
                related_section::remove(&source.text, &source.note, &self.related_section(), goes);
            let stays = |link: &&Link| goes(link) && !edits.iter().any(|edit| edit.span.encloses(link.span));
            remarks.extend(source.note.links.iter().filter(stays).map(|link| {
                let said = link.span.of(&source.text);
                let message = format!("the text links to it and was left alone: {said}");
                source.remark("link-in-text", link.line, link.span.start, message)
            }));
            if has_linked_id(source, id) {
                let removed = remove_item(&source.text, "links", &Value::from(id.as_str()));
                add_property_edits(removed, source, &mut edits, &mut remarks);
            }
            add_edits(&mut plan, source, None, edits, remarks);
        }
        Ok(plan)
    }

    fn pair(
        &self,
        view: &View<'_>,
        request: &LinkRequest,
    ) -> Result<(Source, Source, FileNames, (String, String))> {
        let (a, b) = (view.find(&request.a)?, view.find(&request.b)?);
        if a == b {
            return Err(Error::invalid(format!("{a} cannot be linked to itself")));
        }
        let sources = [view.source(&a)?, view.source(&b)?];
        let own = BTreeSet::from([key(a.name()), key(b.name())]);
        let names = view.names(&sources, own)?.table();
        let [first, second] = sources;
        let ids = (first.id(), second.id());
        Ok((first, second, names, ids))
    }
}

/// Returns a new link to a note in the form that Obsidian's settings ask for, or the link dialect of the linking note: where
/// wikilinks would be plain text, it is a Markdown link. A dialect that is only assumed does not count.
pub fn new_link(
    names: &FileNames,
    settings: &Settings,
    source: &NotePath,
    target: &NotePath,
    label: Option<&str>,
) -> Result<String> {
    let unit = names.dialects().unit_of(source);
    let is_path = unit.dialect.follows_paths() && !unit.is_assumed();
    let is_markdown = settings.use_markdown_links || is_path;
    let dest = linktext(names, target, source, settings.link_format, is_markdown)
        .ok_or_else(|| Error::invalid(format!("no link text finds {target}")))?;
    Ok(match (is_markdown, label) {
        (true, label) => {
            let label = label.unwrap_or(target.stem());
            match is_path {
                true => format!("[{label}]({})", markdown_destination(&dest, false)),
                false => format!("[{label}](<{}>)", markdown_destination(&dest, true)),
            }
        }
        (false, Some(label)) => format!("[[{dest}|{label}]]"),
        (false, None) => format!("[[{dest}]]"),
    })
}

/// Returns whether a link of a note leads to a file.
pub(super) fn links_to(names: &FileNames, link: &Link, source: &Source, target: &NotePath) -> bool {
    !link.path.is_empty() && names.follow(link, &source.path).is_some_and(|found| found.path == target)
}

/// Returns whether a note has the property `links`.
fn has_links_property(source: &Source) -> bool {
    source.note.frontmatter.as_ref().is_some_and(|front| front.get("links").is_some())
}

/// Returns whether the property `links` of a note contains an id.
pub(super) fn has_linked_id(source: &Source, id: &str) -> bool {
    let held = source.note.frontmatter.as_ref().and_then(|front| front.get("links"));
    held.is_some_and(|held| match &held.value {
        Value::Array(items) => items.iter().any(|item| item.as_str() == Some(id)),
        value => value.as_str() == Some(id),
    })
}

/// Adds the edits of a property to a plan, or a remark that says why there are none.
pub(super) fn add_property_edits(
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
