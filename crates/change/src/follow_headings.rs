//! Links to headings whose text a plan changes, because it changes a link or a tag in them: they follow.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sidenote_base::error::Result;
use sidenote_links::dialect::LinkDialect;
use sidenote_links::rewrite::{PartChanges, PartMap, misled_by_rename, rename_parts};
use sidenote_markdown::edit::{ChangeSet, Content, Edit, FileChange, FileLocation, Remark};
use sidenote_markdown::link::Link;
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::catalog_overlay::{GROUP, View};
use sidenote_open_vault::source::Source;

use crate::properties::applied;

/// The largest number of times that headings change headings that link to them. A longer chain is reported.
const LONGEST_CHAIN: usize = 8;

/// The edits of some files, by their paths before the plan.
type FileEdits = BTreeMap<NotePath, Vec<Edit>>;

/// A note with headings that a plan changes.
struct ChangedHeadings {
    own: Source,
    path_after: NotePath,
    text_after: String,
}

/// The notes of a plan that need no look at their headings, or no edit of their links.
#[derive(Debug, Default)]
pub struct SettledNotes<'a> {
    /// The notes to whose headings the links follow already.
    pub(crate) handled: &'a [NotePath],
    /// The notes for which the plan has another text, so that links in them are named by a remark.
    pub(crate) rewritten: &'a [NotePath],
    /// The notes whose text was looked at already: [`edits_headings`] is false for the edits in the plan.
    pub(crate) untouched: HashSet<NotePath>,
}

/// Adds to a plan the edits of links to headings that it changes. A link that cannot follow is named by a remark.
pub fn follow_headings(view: &View<'_>, plan: &mut ChangeSet, settled: &SettledNotes<'_>) -> Result<()> {
    let is_settled = |change: &FileChange| match (&change.from, &change.content) {
        (Some(FileLocation::Vault(path)), Content::Edits(_)) => settled.untouched.contains(path),
        _ => true,
    };
    if plan.files.iter().all(is_settled) {
        return Ok(());
    }
    let planned: FileEdits = edits_of(plan);
    let (mut added, mut remarks) = (FileEdits::new(), Vec::new());
    for _ in 0..LONGEST_CHAIN {
        let changed = changed_headings(view, plan, (&planned, &added), settled)?;
        if changed.is_empty() {
            break;
        }
        let (next, said) = links_to(view, &changed, &planned)?;
        remarks = said;
        let is_done = next == added;
        added = next;
        if is_done {
            break;
        }
    }
    let places = PlannedPlaces::of(plan);
    for (path, edits) in added {
        // Such a note has a new text, in which these places do not exist.
        if settled.rewritten.contains(&path) {
            let message = "a heading changed that this note links to; look at the link".to_owned();
            remarks.push(Remark { code: "heading-changed".to_owned(), path, line: 1, column: 1, message });
            continue;
        }
        let source = view.source(&path)?;
        if let Some(refusal) = source.refusal() {
            remarks.push(refusal);
            continue;
        }
        match places.numbers.get(&path).and_then(|number| plan.files.get_mut(*number)) {
            Some(FileChange { content: Content::Edits(own), .. }) => own.extend(edits),
            Some(change) => {
                change.before = Some(source.hash);
                change.content = Content::Edits(edits);
            }
            None => {
                let to = Some(FileLocation::Vault(places.path_after(plan, &path)));
                let from = Some(FileLocation::Vault(path));
                let content = Content::Edits(edits);
                plan.files.push(FileChange { from, to, before: Some(source.hash), content });
            }
        }
    }
    plan.files.sort_by(|a, b| a.from.cmp(&b.from));
    plan.remarks.append(&mut remarks);
    Ok(())
}

/// Lists the edits of notes and canvases in a plan.
fn edits_of(plan: &ChangeSet) -> FileEdits {
    let edits = plan.files.iter().filter_map(|change| match (&change.from, &change.content) {
        (Some(FileLocation::Vault(path)), Content::Edits(edits)) => Some((path.clone(), edits.clone())),
        _ => None,
    });
    edits.collect()
}

/// The index of each file in a plan, by its path before.
struct PlannedPlaces {
    numbers: HashMap<NotePath, usize>,
}

impl PlannedPlaces {
    fn of(plan: &ChangeSet) -> Self {
        let numbers = plan.files.iter().enumerate().filter_map(|(number, change)| match &change.from {
            Some(FileLocation::Vault(path)) => Some((path.clone(), number)),
            _ => None,
        });
        // The first of a path counts.
        Self { numbers: numbers.rev().collect() }
    }

    /// Returns the path of a file after the plan.
    fn path_after(&self, plan: &ChangeSet, path: &NotePath) -> NotePath {
        let own = self.numbers.get(path).and_then(|number| plan.files.get(*number));
        if let Some(FileLocation::Vault(to)) = own.and_then(|change| change.to.as_ref()) {
            return to.clone();
        }
        let moved = plan.folders.iter().find_map(|folder| {
            let rest = path.as_str().strip_prefix(folder.from.as_str())?;
            rest.starts_with('/').then(|| format!("{}{rest}", folder.to))
        });
        moved.and_then(|moved| NotePath::from_disk(&moved)).unwrap_or_else(|| path.clone())
    }
}

/// Finds the notes whose headings the edits change. Only notes with an edit in what looks like a heading are parsed.
fn changed_headings(
    view: &View<'_>,
    plan: &ChangeSet,
    (planned, added): (&FileEdits, &FileEdits),
    settled: &SettledNotes<'_>,
) -> Result<Vec<ChangedHeadings>> {
    let mut changed = Vec::new();
    let places = PlannedPlaces::of(plan);
    let paths: BTreeSet<&NotePath> = planned.keys().chain(added.keys()).collect();
    let is_untouched = |path: &NotePath| settled.untouched.contains(path) && !added.contains_key(path);
    let is_open = |path: &&NotePath| path.is_note() && !settled.handled.contains(path) && !is_untouched(path);
    let edited = paths.into_iter().filter(is_open);
    for (at, path) in edited.enumerate() {
        view.check_cancelled_after(if at > 0 && at.is_multiple_of(GROUP) { GROUP } else { 0 })?;
        let edits: Vec<Edit> =
            [planned, added].iter().filter_map(|edits| edits.get(path)).flatten().cloned().collect();
        if !view.raw_text(path)?.is_some_and(|text| edits_headings(&text, &edits)) {
            continue;
        }
        let own = view.source(path)?;
        // What cannot be edited together is left to the plan.
        let Ok(text_after) = applied(&own.text, &edits) else { continue };
        let path_after = places.path_after(plan, path);
        let after = sidenote_links::rewrite::parse(&path_after, &text_after);
        let differs = || {
            let pairs = own.note.headings.iter().zip(&after.headings);
            pairs.into_iter().any(|(old, new)| old.text != new.text)
        };
        if own.note.headings.len() == after.headings.len() && differs() {
            changed.push(ChangedHeadings { own, path_after, text_after });
        }
    }
    Ok(changed)
}

/// Returns whether an edit lies in a line that begins as a heading, or in a paragraph that a setext underline ends.
pub(crate) fn edits_headings(text: &str, edits: &[Edit]) -> bool {
    let mut starts: Vec<usize> = edits.iter().map(|edit| edit.span.start).collect();
    starts.sort_unstable();
    // The end of the paragraph that was looked at last, which no underline ends.
    let mut seen = 0;
    starts.into_iter().any(|start| {
        let line_start = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
        let rest = text.get(line_start..).unwrap_or("");
        if rest.trim_start_matches(' ').starts_with('#') {
            return true;
        }
        if line_start < seen {
            return false;
        }
        let mut lines = rest.split_inclusive('\n');
        let first = lines.next().map_or(0, str::len);
        let mut end = line_start + first;
        for line in lines {
            let plain = line.trim();
            if !plain.is_empty() && (plain.trim_matches('=').is_empty() || plain.trim_matches('-').is_empty())
            {
                return true;
            }
            if plain.is_empty() {
                break;
            }
            end += line.len();
        }
        seen = end;
        false
    })
}

/// Plans the edits of the links to changed headings, and remarks on those that cannot follow.
fn links_to(
    view: &View<'_>,
    changed: &[ChangedHeadings],
    planned: &FileEdits,
) -> Result<(FileEdits, Vec<Remark>)> {
    let targets: Vec<NotePath> = changed.iter().map(|note| note.own.path.clone()).collect();
    let sources = view.sources(view.concerned(&targets, &BTreeSet::new())?)?;
    let names = view.names(&sources, targets.iter().map(|path| key(path.name())).collect())?.table();
    let by_path: BTreeMap<&NotePath, &ChangedHeadings> =
        changed.iter().map(|note| (&note.own.path, note)).collect();
    let mut changes: BTreeMap<(LinkDialect, &NotePath), PartChanges> = BTreeMap::new();
    let (mut edits, mut remarks) = (FileEdits::new(), Vec::new());
    for source in &sources {
        let target_of = |link: &Link| names.follow(link, &source.path).map(|found| found.path.clone());
        let with_part = source.note.links.iter().filter(|link| !link.subpath.is_empty());
        let named: HashSet<NotePath> = with_part.filter_map(target_of).collect();
        let dialect = view.dialects().unit_of(&source.path).dialect;
        let linking = (&source.path, source.text.as_str(), &source.note);
        for note in named.iter().filter_map(|path| by_path.get(path)) {
            let own = &note.own;
            let parts = changes.entry((dialect, &own.path)).or_insert_with(|| {
                let after = (&note.path_after, note.text_after.as_str());
                PartChanges::new(dialect, (&own.text, &own.note), after, PartMap::same())
            });
            let is_target = |link: &Link| target_of(link).is_some_and(|path| path == own.path);
            let renamed = parts.renamed_headings(&own.note);
            let mut rewritten = rename_parts(linking, &own.note, &renamed, parts, is_target);
            remarks.append(&mut rewritten.remarks);
            let mut all = planned.get(&source.path).cloned().unwrap_or_default();
            all.extend(rewritten.edits.iter().cloned());
            let misled = misled_by_rename(linking, &own.note, parts, is_target, &all);
            let is_misled = |edit: &Edit| misled.iter().any(|link| link.encloses(edit.span));
            rewritten.edits.retain(|edit| !is_misled(edit));
            remarks.extend(misled.iter().map(|link| {
                let line = source.note.links.iter().find(|known| known.span == *link);
                let said = link.of(&source.text);
                let message = format!(
                    "the heading in {} that it leads to changes, and the link cannot follow: {said}",
                    note.path_after
                );
                source.remark("heading-changed", line.map_or(1, |link| link.line), link.start, message)
            }));
            if !rewritten.edits.is_empty() {
                edits.entry(source.path.clone()).or_default().append(&mut rewritten.edits);
            }
        }
    }
    Ok((edits, remarks))
}
