//! Applies the fixes of problems that `check` reports, as one operation.

use std::collections::BTreeMap;

use sidenote_base::error::{Error, Result};
use sidenote_change::Changes;
use sidenote_change::follow_headings::{SettledNotes, follow_headings};
use sidenote_change::operation::ChangeReply;
use sidenote_markdown::edit::{ChangeSet, Edit, FileChange};
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::source::Source;
use sidenote_vault::write_lock::WriteLock;

use crate::Upkeep;
use crate::check::CheckRequest;
use crate::check::problem::Problem;

/// Which problems are fixed. Without a condition, all that have a fix are.
#[derive(Debug, Clone, Default)]
pub struct FixRequest {
    /// The fingerprints of the problems.
    pub fingerprints: Option<Vec<String>>,
    /// The code of the problems.
    pub code: Option<String>,
    /// The paths of the notes.
    pub paths: Option<Vec<String>>,
}

impl FixRequest {
    fn selects(&self, problem: &Problem) -> bool {
        self.fingerprints.as_ref().is_none_or(|given| given.contains(&problem.fingerprint))
            && self.code.as_ref().is_none_or(|code| code == problem.code)
    }
}

impl Upkeep<'_> {
    /// Fixes problems of notes by the first fix of each. Of fixes that overlap, the first one is made.
    ///
    /// # Errors
    /// `NotFound` if no problem that is meant has a fix; `Conflict` if a file changed meanwhile or another process holds the
    /// write lock; `Io` if the files cannot be read or written.
    #[tracing::instrument(skip_all)]
    pub fn fix_problems(&self, request: &FixRequest, dry_run: bool) -> Result<ChangeReply> {
        let mut left = 0;
        let plan = |_: Option<&WriteLock>| {
            let (plan, overlapping) = self.plan_fixes(request)?;
            left = overlapping;
            Ok(plan)
        };
        let mut reply = Changes::of(self.core).apply_planned(plan, dry_run)?;
        if left > 0 {
            reply.notices.push(format!("{left} fixes overlap others and are left for another run"));
        }
        Ok(reply)
    }

    /// Plans the fixes on the files as they are now. Returns the number of fixes that overlap others, too.
    fn plan_fixes(&self, request: &FixRequest) -> Result<(ChangeSet, usize)> {
        let check = CheckRequest { paths: request.paths.clone(), ..CheckRequest::default() };
        let problems = self.check_with(&check)?.problems;
        let mut by_path: BTreeMap<String, Vec<Problem>> = BTreeMap::new();
        for problem in
            problems.into_iter().filter(|problem| request.selects(problem) && !problem.fixes.is_empty())
        {
            by_path.entry(problem.path.clone()).or_default().push(problem);
        }
        if by_path.is_empty() {
            return Err(Error::not_found("no such problem has a fix")
                .with_hint("the notes may have changed since; check the vault again"));
        }
        let mut plan = ChangeSet::new("fix");
        let mut overlapping = 0;
        for (path, problems) in by_path {
            let Some(path) = NotePath::from_disk(&path) else { continue };
            let source = Source::unplaced(path.clone(), &self.core.read_bytes(&path)?);
            let mut edits: Vec<Edit> = Vec::new();
            for fix in problems.iter().filter_map(|problem| problem.fixes.first()) {
                let new: Vec<Edit> =
                    fix.edits.iter().map(|edit| Edit::replace(edit.span, edit.text.clone())).collect();
                let clashes = |one: &Edit| {
                    edits.iter().any(|other| {
                        one.span.start < other.span.end && other.span.start < one.span.end
                            || one.span == other.span
                    })
                };
                if new.iter().any(clashes) {
                    overlapping += 1;
                } else {
                    edits.extend(new);
                }
            }
            edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
            match source.refusal() {
                Some(remark) => plan.remarks.push(remark),
                None => plan.files.push(FileChange::edit(path, source.hash, edits)),
            }
        }
        follow_headings(&View::new(self.core)?, &mut plan, &SettledNotes::default())?;
        Ok((plan, overlapping))
    }
}
