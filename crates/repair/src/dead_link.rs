//! The decision of a person about a dead link: the file that it must lead to, or its replacement by its text.

use std::collections::{BTreeMap, BTreeSet};

use sidenote_base::error::{Error, Result};
use sidenote_change::Changes;
use sidenote_change::delete::replace_by_text;
use sidenote_change::move_files::add_edits;
use sidenote_change::operation::ChangeReply;
use sidenote_links::rewrite::{LinkedPlace, Relink};
use sidenote_markdown::edit::ChangeSet;
use sidenote_markdown::link::Link;
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::lookup::Lookup;

use crate::Repairs;
use crate::present::{LinkCase, Present};

/// Dead links of a note, with the decision about them.
#[derive(Debug, Clone, Default)]
pub struct DeadLinkRequest {
    /// The note by any of its names.
    pub note: String,
    /// What the links name: path and subpath as written, decoded.
    pub link: String,
    /// The line of the links; all in the note if it is not given.
    pub line: Option<usize>,
    /// The path of the file that they must lead to. Without it, their text replaces them.
    pub to: Option<String>,
}

impl DeadLinkRequest {
    fn means(&self, link: &Link) -> bool {
        format!("{}{}", link.path, link.subpath) == self.link
            && self.line.is_none_or(|line| link.line == line)
    }
}

impl Repairs<'_> {
    /// Retargets dead links of a note to a file, or replaces them by their text.
    ///
    /// # Errors
    /// `NotFound` if the note, the link or the file does not exist; `Invalid` if the link cannot be written so, as in a
    /// property; `Conflict` if the note changed meanwhile or another process holds the write lock.
    #[tracing::instrument(skip_all)]
    pub fn fix_dead_link(&self, request: &DeadLinkRequest, dry_run: bool) -> Result<ChangeReply> {
        let note = Lookup::of(self.core).find(&request.note)?.path;
        Changes::of(self.core).apply_planned(|_| self.plan_dead_link(&note, request), dry_run)
    }

    fn plan_dead_link(&self, note: &NotePath, request: &DeadLinkRequest) -> Result<ChangeSet> {
        let view = View::new(self.core)?;
        let present = Present::new(self.core, &view, &[note.as_str().to_owned()])?;
        let is_meant = |case: &&LinkCase| present.link(case).is_some_and(|link| request.means(link));
        let cases: Vec<&LinkCase> = present.dead.iter().filter(is_meant).collect();
        if cases.is_empty() {
            return Err(Error::not_found(format!("{note} has no broken link {:?}", request.link))
                .with_hint("the note may have changed since; look at it again"));
        }
        let plan = match &request.to {
            Some(to) => self.plan_target(&present, &cases, to)?,
            None => plan_text(&present, &cases)?,
        };
        if plan.files.is_empty() && plan.remarks.is_empty() {
            return Err(Error::invalid(format!(
                "{:?} cannot be written so that it leads there",
                request.link
            ))
            .with_hint("change the link in your editor"));
        }
        Ok(plan)
    }

    fn plan_target(&self, present: &Present, cases: &[&LinkCase], to: &str) -> Result<ChangeSet> {
        let target = present.chosen_target(to)?;
        let mut relinks: BTreeMap<usize, Vec<Relink>> = BTreeMap::new();
        for case in cases {
            let (Some(link), Some(source)) = (present.link(case), present.sources.get(case.source)) else {
                continue;
            };
            let Some(named) = present.named_file(link, &source.path) else { continue };
            relinks.entry(case.source).or_default().push(Relink {
                span: link.span,
                source_then: None,
                target_then: LinkedPlace::File(named),
                target: LinkedPlace::File(target.clone()),
            });
        }
        Ok(self.repair_plan(present, &relinks, &BTreeSet::new())?.0)
    }
}

/// Plans the replacement of links by their text.
fn plan_text(present: &Present, cases: &[&LinkCase]) -> Result<ChangeSet> {
    let mut plan = ChangeSet::new("unlink");
    let mut edits: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for case in cases {
        let (Some(link), Some(source)) = (present.link(case), present.sources.get(case.source)) else {
            continue;
        };
        let edit = replace_by_text(link, source).ok_or_else(|| {
            Error::invalid(format!("{} is no link in running text", link.span.of(&source.text)))
                .with_hint("change the property or card in your editor")
        })?;
        edits.entry(case.source).or_default().push(edit);
    }
    for (at, edits) in edits {
        let Some(source) = present.sources.get(at) else { continue };
        add_edits(&mut plan, source, None, edits, Vec::new());
    }
    Ok(plan)
}
