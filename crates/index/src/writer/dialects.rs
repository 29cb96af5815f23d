//! The link dialects of a batch: how they are decided, and which link targets are found again when they change.

use std::collections::BTreeSet;
use std::sync::Arc;

use sidenote_base::error::Result;
use sidenote_links::dialect::{LinkDialect, LinkDialects};
use sidenote_links::dialect_evidence::DialectCounts;
use sidenote_markdown::path::{NotePath, key};
use sidenote_vault::link_dialects::{DialectRules, is_marker, marker_names};

use crate::diff::{ChangedFile, DialectChange, FileChanges};
use crate::writer::Writer;
use crate::writer::plan::Plan;
use crate::writer::targets::Targets;

/// The link dialects before and after a batch.
pub(super) struct Dialects {
    /// Those by which the targets in the catalog were found.
    pub(super) before: LinkDialects,
    /// Those of the files and settings as they are.
    pub(super) now: Arc<LinkDialects>,
    /// The files that can mark the folder of a book or site after the batch.
    pub(super) markers: Vec<NotePath>,
}

impl Writer {
    /// Decides the dialects after these changes, and lists the files that can mark the folder of a book or site. Where
    /// the links decide, the indexed links are used.
    pub(super) fn dialects_of(
        &self,
        changes: &FileChanges,
        stored: &LinkDialects,
        starts_empty: bool,
    ) -> Result<(LinkDialects, Vec<NotePath>)> {
        let mut markers: BTreeSet<NotePath> = BTreeSet::new();
        if !starts_empty {
            markers.extend(self.indexed_markers()?);
            for gone in changes.removed.iter().map(|known| &known.path) {
                markers.remove(gone);
            }
            for gone in changes.changed.iter().filter_map(ChangedFile::old_path) {
                markers.remove(gone);
            }
        }
        let changed = changes.changed.iter().map(|file| &file.stat.path);
        markers.extend(changed.filter(|path| is_marker(path)).cloned());
        let markers: Vec<NotePath> = markers.into_iter().collect();
        let rules = DialectRules::of(&self.vault);
        let decided = rules.decide(&markers, || {
            let counts = match starts_empty {
                true => DialectCounts::default(),
                false => self.catalog.reader().links().dialect_counts()?,
            };
            let settled = if starts_empty { None } else { settled(stored) };
            Ok(counts.choose(settled, rules.is_in_repository()))
        })?;
        Ok((decided, markers))
    }

    /// Lists the indexed files that can mark the folder of a book or site.
    fn indexed_markers(&self) -> Result<Vec<NotePath>> {
        let names: Vec<String> = marker_names().map(key).collect();
        let mut found: Vec<NotePath> =
            self.catalog.reader().paths().named(&names)?.into_iter().map(|(path, _)| path).collect();
        found.retain(is_marker);
        Ok(found)
    }

    /// Decides the dialects by the links as they are now, finds the targets of links again if their dialect changed, and stores
    /// the dialects. The counts by which links decide are kept by difference.
    ///
    /// Returns how the dialect of the vault changed, if it did.
    pub(super) fn settle_dialects(&self, dialects: &Dialects, plan: &Plan) -> Result<Option<DialectChange>> {
        let rules = DialectRules::of(&self.vault);
        let starts_empty = plan.is_staged();
        let settled = if starts_empty { None } else { settled(&dialects.before) };
        let mut counts = self.catalog.settle_counts()?;
        // In an empty index, the targets were found by the dialects that were decided before the links were known.
        let mut found_by = if starts_empty { (*dialects.now).clone() } else { dialects.before.clone() };
        // The links of changed files were found by the dialects that were decided before.
        let mut is_mixed = !found_by.has_same_rules(&dialects.now);
        loop {
            let now =
                rules.decide(&dialects.markers, || Ok(counts.choose(settled, rules.is_in_repository())))?;
            let is_same = found_by.has_same_rules(&now) && !std::mem::take(&mut is_mixed);
            found_by = now;
            if is_same {
                break;
            }
            let table = self.catalog.reader().paths().all()?;
            let now = Arc::new(found_by.clone());
            let files = table.iter().map(|(path, id)| (path, *id));
            let targets = Targets::new(&now, rules.below_repository(), files);
            for (source, path, links) in self.catalog.reader().links().all()? {
                self.find_target(&targets, source, &path, &links)?;
            }
            // Other folders can be those of books and sites now, so that other links count.
            counts = self.catalog.settle_counts()?;
        }
        if starts_empty || found_by != dialects.before {
            self.catalog.set_dialects(&found_by)?;
        }
        let (before, now) = (dialects.before.vault(), found_by.vault());
        let has_changed = !starts_empty && before.dialect != now.dialect;
        Ok(has_changed.then(|| DialectChange {
            before: before.dialect,
            now: now.dialect,
            reason: now.reason.clone(),
            counts,
        }))
    }
}

/// Returns the dialect of the vault if its links chose it. A dialect that was only assumed changes with the reason for
/// the assumption, so that a rebuilt index has the same one.
fn settled(dialects: &LinkDialects) -> Option<LinkDialect> {
    dialects.chosen_by_links().filter(|choice| !choice.is_assumed).map(|choice| choice.dialect)
}
