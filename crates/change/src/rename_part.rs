//! Renames of parts of a note: headings and blocks, with the links to them.

use std::collections::{BTreeMap, BTreeSet};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_links::dialect::LinkDialect;
use sidenote_links::rewrite::{
    PartChanges, PartMap, PartRename, heading_clashes, heading_linktext, misled_by_rename, rename_parts,
};
use sidenote_markdown::edit::{ChangeSet, Edit};
use sidenote_markdown::path::key;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::parts::heading;
use sidenote_open_vault::source::Source;

use crate::Planner;
use crate::follow_headings::{SettledNotes, follow_headings};
use crate::move_files::add_edits;
use crate::properties::applied;

/// The kind of part of a note to rename.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// A heading.
    Heading,
    /// A block id.
    Block,
}

/// A heading or block to rename.
#[derive(Debug, Clone)]
pub struct PartRequest {
    /// The note, by any of its names.
    pub note: String,
    /// The kind of part.
    pub kind: PartKind,
    /// The current text of the heading, or id of the block.
    pub old: String,
    /// The new text or id.
    pub new: String,
    /// Whether the part is renamed even if another part of the note has the new name.
    pub force: bool,
}

/// Finds the part that is meant, and the edit of the part itself.
pub(crate) fn part_of(own: &Source, request: &PartRequest) -> Result<(PartRename, Edit)> {
    // Links must not change if the part keeps its name.
    if let Some(refusal) = own.refusal() {
        return Err(Error::invalid(refusal.to_string()));
    }
    match request.kind {
        PartKind::Heading => {
            let at = heading(&own.note, &own.path, &request.old)?;
            let new = request.new.trim();
            let is_more =
                new.ends_with('#') || new.rsplit_once(" ^").is_some_and(|(_, id)| !id.contains(' '));
            if new.is_empty() || new.contains(['\n', '\r']) || heading_linktext(new).is_empty() || is_more {
                return Err(Error::invalid(format!("{:?} is not a text for a heading", request.new)));
            }
            if heading_clashes(&own.note, at, new) && !request.force {
                return Err(Error::new(
                    ErrorKind::Exists,
                    format!("links to {new:?} would lead to another heading of {}", own.path),
                )
                .with_hints("choose another text, or --force", "choose another text"));
            }
            let held = own.note.headings.get(at).ok_or_else(|| Error::internal("a heading is missing"))?;
            let raw = held.span.of(&own.text);
            let inside = raw.find(held.text.as_str()).ok_or_else(|| {
                Error::invalid(format!("the heading {:?} of {} runs over several lines", held.text, own.path))
            })?;
            let start = held.span.start + inside;
            let span = sidenote_markdown::span::Span::new(start, start + held.text.len());
            Ok((PartRename::Heading(at, new.to_owned()), Edit::replace(span, new)))
        }
        PartKind::Block => {
            let old = request.old.trim_start_matches('^');
            let new = request.new.trim_start_matches('^');
            let Some(at) = own.note.blocks.iter().position(|block| block.id.eq_ignore_ascii_case(old)) else {
                let there: Vec<&str> =
                    own.note.blocks.iter().take(12).map(|block| block.id.as_str()).collect();
                let hint =
                    if there.is_empty() { "the note has no block ids".to_owned() } else { there.join(" / ") };
                return Err(Error::not_found(format!("{} has no block {old:?}", own.path)).with_hint(hint));
            };
            if new.is_empty() || !new.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                return Err(Error::invalid(format!("{new:?} is not a block id"))
                    .with_hint("a block id has letters A to Z, digits and hyphens"));
            }
            let clash = |(index, block): (usize, &sidenote_markdown::note::Block)| {
                index != at && block.id.eq_ignore_ascii_case(new)
            };
            if own.note.blocks.iter().enumerate().any(clash) && !request.force {
                return Err(Error::new(
                    ErrorKind::Exists,
                    format!("{} has a block ^{new} already", own.path),
                )
                .with_hints("choose another id, or --force", "choose another id"));
            }
            let block = own.note.blocks.get(at).ok_or_else(|| Error::internal("a block is missing"))?;
            let raw = block.id_span.of(&own.text);
            let sign = usize::from(raw.starts_with('^'));
            let span = sidenote_markdown::span::Span::new(block.id_span.start + sign, block.id_span.end);
            Ok((PartRename::Block(at, new.to_owned()), Edit::replace(span, new)))
        }
    }
}

impl Planner<'_> {
    /// Plans the rename of a heading or block, with the edits of links to it.
    ///
    /// # Errors
    /// `NotFound` if there is no such heading or block; `Exists` if another one has the new name.
    pub(super) fn plan_part(&self, view: &View<'_>, request: &PartRequest) -> Result<ChangeSet> {
        let path = view.find(&request.note)?;
        let own = view.source(&path)?;
        let (part, definition) = part_of(&own, request)?;
        let mut sources = view.sources(view.concerned(std::slice::from_ref(&path), &BTreeSet::new())?)?;
        sources.retain(|source| source.path != path);
        sources.push(view.source(&path)?);
        let files = view.names(&sources, BTreeSet::from([key(path.name())]))?;
        let names = files.table();
        let edited = applied(&own.text, std::slice::from_ref(&definition))?;
        let mut changes: BTreeMap<LinkDialect, PartChanges> = BTreeMap::new();
        let operation = if request.kind == PartKind::Heading { "rename-heading" } else { "rename-block" };
        let mut plan = ChangeSet::new(operation);
        plan.remarks.extend(self.unread(&[&path])?);
        for source in sources {
            let is_target = |link: &sidenote_markdown::link::Link| {
                names.follow(link, &source.path).is_some_and(|found| *found.path == path)
            };
            let dialect = view.dialects().unit_of(&source.path).dialect;
            let changes = changes.entry(dialect).or_insert_with(|| {
                PartChanges::new(dialect, (&own.text, &own.note), (&own.path, &edited), PartMap::same())
            });
            let linking = (&source.path, source.text.as_str(), &source.note);
            let parts = std::slice::from_ref(&part);
            let mut rewritten = rename_parts(linking, &own.note, parts, changes, is_target);
            if source.path == path {
                rewritten.edits.push(definition.clone());
            }
            let misled = misled_by_rename(linking, &own.note, changes, is_target, &rewritten.edits);
            if let Some(link) = misled.first().filter(|_| !request.force) {
                let said = link.of(&source.text);
                let message = format!("{said} in {} would lead to another part of {path}", source.path);
                return Err(Error::new(ErrorKind::Exists, message)
                    .with_hints("choose another text, or --force", "choose another text"));
            }
            add_edits(&mut plan, &source, None, rewritten.edits, rewritten.remarks);
        }
        plan.files.sort_by(|a, b| a.from.cmp(&b.from));
        let settled = SettledNotes { handled: std::slice::from_ref(&path), ..SettledNotes::default() };
        follow_headings(view, &mut plan, &settled)?;
        Ok(plan)
    }
}
