//! Plans the merge of notes into one. The links to them, their parts and their properties follow.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sidenote_base::error::{Error, Result};
use sidenote_links::anchor::AnchorTable;
use sidenote_links::dialect::LinkDialect;
use sidenote_links::resolve::{FileNames, name_keys};
use sidenote_links::rewrite::{Moves, PartChanges, PartMap, RenameContext, rename_parts};
use sidenote_markdown::body_edit;
use sidenote_markdown::edit::{ChangeSet, Content, Edit, FileChange, FileLocation, Remark, single_edit};
use sidenote_markdown::frontmatter::edit as property;
use sidenote_markdown::link::{Link, LinkForm};
use sidenote_markdown::note::{Note, heading_key};
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::source::Source;
use sidenote_vault::obsidian::Settings;

use crate::Planner;
use crate::follow_headings::{SettledNotes, follow_headings};
use crate::merge_properties::{MERGED_FROM, PropertyMerge};
use crate::move_files::add_edits;
use crate::properties::applied;

/// Notes to merge into another one.
#[derive(Debug, Clone, Default)]
pub struct MergeRequest {
    /// The notes that are merged, in this order, and moved to the trash, by any of their names.
    pub from: Vec<String>,
    /// The note that receives the texts, by any of its names.
    pub into: String,
    /// Whether lines that the other note has already are left out, and `merged_from` names the notes that are merged.
    pub consolidates: bool,
    /// The title that the note gets, if it gets another one. Its file keeps its name.
    pub title: Option<String>,
}

impl Planner<'_> {
    /// Plans to append the texts of notes to another one, to redirect links to them, and to move them to the trash.
    /// Properties that the other note lacks are copied and lists are merged. If two values differ, both are kept, or a
    /// remark names the one that is lost.
    ///
    /// # Errors
    /// `NotFound` if no note has a name; `Exists` if several notes have it; `Invalid` if two names are of the same
    /// note, or if properties cannot be written.
    pub(super) fn plan_merge(&self, view: &View<'_>, request: &MergeRequest) -> Result<ChangeSet> {
        let (from, into) = find_merged(view, request)?;
        let mut paths = view.concerned(&from, &BTreeSet::new())?;
        paths.insert(into.clone());
        let sources = view.sources(paths)?;
        let named = || from.iter().chain([&into]);
        let mut keys: BTreeSet<String> = named().flat_map(|path| name_keys(path.name())).collect();
        keys.extend(named().map(|path| key(path.name())));
        let files = view.names(&sources, keys)?;
        let (before, mut after) = (files.table(), files.table());
        let mut moves = Moves::default();
        for path in &from {
            after.remove(path);
            moves.insert(path.clone(), into.clone());
        }
        let options = self.core.rewrite_options();
        let world =
            RenameContext { before: &before, after: &after, moves: &moves, destination: None, options };
        let mut plan = ChangeSet::new("merge");
        let mut linking: Vec<(Source, Vec<Edit>)> = Vec::with_capacity(sources.len());
        for source in sources {
            let rewritten = world.retarget(&source.path, &source.text, &source.note);
            plan.remarks.extend(rewritten.remarks);
            let is_one = source.path == into || from.contains(&source.path);
            if let Some(refusal) = source.refusal().filter(|_| is_one) {
                return Err(Error::invalid(refusal.to_string()));
            }
            linking.push((source, rewritten.edits));
        }
        let find = |linking: &[(Source, Vec<Edit>)], path: &NotePath| {
            let found = linking.iter().position(|(source, _)| source.path == *path);
            found.ok_or_else(|| Error::not_found(format!("{path} was removed")))
        };
        // The notes that are merged into one, in the order of their texts. The first one stays.
        let mut order = vec![find(&linking, &into)?];
        for path in &from {
            let at = find(&linking, path)?;
            for earlier in &order {
                refuse_same_labels(&linking[at].0, &linking[*earlier].0)?;
                plan.remarks.extend(twice(&linking[at].0, &linking[*earlier].0));
            }
            order.push(at);
        }
        let settings = self.core.vault.settings();
        // Where the headings are in the merged text is known when it was made once.
        let draft = merged(&settings, &linking, &order, request)?.0;
        follow_parts(view, &before, &order, &draft, &mut linking);
        let (text, remarks) = merged(&settings, &linking, &order, request)?;
        plan.remarks.extend(remarks);
        for (at, (source, edits)) in linking.iter_mut().enumerate() {
            if !order.contains(&at) {
                add_edits(&mut plan, source, None, std::mem::take(edits), Vec::new());
            }
        }
        let kept = &linking[order[0]].0;
        let edits = single_edit(&kept.text, &text).into_iter().collect();
        add_edits(&mut plan, kept, None, edits, Vec::new());
        let merged_notes: Vec<NotePath> = named().cloned().collect();
        let settled =
            SettledNotes { handled: &merged_notes, rewritten: &merged_notes, ..SettledNotes::default() };
        follow_headings(view, &mut plan, &settled)?;
        plan.remarks.extend(self.unread(&from.iter().collect::<Vec<_>>())?);
        let mut taken = BTreeSet::new();
        for (path, at) in from.into_iter().zip(&order[1..]) {
            let place = self.free_in_trash(&path, &taken)?;
            taken.insert(place.clone());
            plan.files.push(FileChange {
                from: Some(FileLocation::Vault(path)),
                to: Some(FileLocation::Trash(place)),
                before: Some(linking[*at].0.hash),
                content: Content::Keep,
            });
        }
        Ok(plan)
    }
}

/// Returns the paths of the notes that are merged, and of the one that receives their texts.
fn find_merged(view: &View<'_>, request: &MergeRequest) -> Result<(Vec<NotePath>, NotePath)> {
    let into = view.find(&request.into)?;
    let mut from: Vec<NotePath> = Vec::with_capacity(request.from.len());
    for name in &request.from {
        let path = view.find(name)?;
        if path == into || from.contains(&path) || !path.is_note() || !into.is_note() {
            return Err(Error::invalid(format!("{path} cannot be merged into {into}"))
                .with_hint("name two Markdown notes"));
        }
        from.push(path);
    }
    Ok((from, into))
}

/// Returns the path and the text of the note that a plan creates.
pub(crate) fn new_note(plan: &ChangeSet) -> Result<(NotePath, String)> {
    let created = plan.files.iter().find_map(|change| match (&change.from, &change.to, &change.content) {
        (None, Some(to), Content::Whole(bytes)) => {
            Some((to.in_vault()?.clone(), String::from_utf8_lossy(bytes).into_owned()))
        }
        _ => None,
    });
    created.ok_or_else(|| Error::internal("the new note has no path"))
}

/// Adds a text to the note that a plan creates, whose lines get these ends.
pub(crate) fn add_body(plan: &mut ChangeSet, body: &str, line_end: &str) {
    for change in plan.files.iter_mut().filter(|change| change.from.is_none()) {
        if let Content::Whole(bytes) = &mut change.content {
            *bytes = String::from_utf8_lossy(bytes).replace('\n', line_end).into_bytes();
            bytes.extend_from_slice(body.trim_end_matches(['\n', '\r']).as_bytes());
            bytes.extend_from_slice(line_end.as_bytes());
        }
    }
}

/// Returns an error if both notes define a reference or a footnote with the same label.
fn refuse_same_labels(from: &Source, into: &Source) -> Result<()> {
    let own = labels(into);
    match labels(from).into_iter().find(|label| own.contains(label)) {
        None => Ok(()),
        Some(label) => Err(Error::invalid(format!(
            "{} and {} both define [{label}], and one would be lost",
            from.path, into.path
        ))
        .with_hint("give one of the references or footnotes another label first")),
    }
}

/// Returns the text of some notes together, each with its edits, and remarks on their properties. `order` has their places
/// among the linking notes.
fn merged(
    settings: &Settings,
    linking: &[(Source, Vec<Edit>)],
    order: &[usize],
    request: &MergeRequest,
) -> Result<(String, Vec<Remark>)> {
    let (into, into_edits) = &linking[order[0]];
    let mut uniting = PropertyMerge::of(&into.path, applied(&into.text, into_edits)?);
    for at in &order[1..] {
        let (from, edits) = &linking[*at];
        let moved = applied(&from.text, edits)?;
        let note = Note::parse(&moved);
        let body = moved.get(note.body_start..).unwrap_or("").trim_matches(['\n', '\r']);
        for coming in note.frontmatter.iter().flat_map(|front| &front.properties) {
            // A title that was made of the text says nothing more.
            let is_said =
                coming.key == "title" && coming.value.as_str().is_some_and(|title| says(body, title));
            if request.consolidates && is_said {
                continue;
            }
            uniting.merge(&from.path, coming, settings.declared_type(&coming.key))?;
        }
        let new_lines = request.consolidates.then(|| lacking_lines(&uniting.text, body));
        if request.consolidates {
            uniting.ask(MERGED_FROM, &Value::from(vec![from.path.as_str()]))?;
        }
        let body = new_lines.as_deref().unwrap_or(body);
        if !body.is_empty() {
            let edits = body_edit::append(&uniting.text, body).map_err(|refusal: property::Refusal| {
                Error::invalid(format!("{}: {}", into.path, refusal.message))
            })?;
            uniting.text = applied(&uniting.text, &edits)?;
        }
    }
    if let Some(title) = &request.title {
        uniting.set("title", &Value::from(title.as_str()))?;
    }
    Ok((uniting.text, uniting.remarks))
}

/// Returns whether a text has the words of a title in their order, without others between them.
pub fn says(text: &str, title: &str) -> bool {
    let words = |text: &str| -> String {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.fold(" ".to_owned(), |line, word| line + &word.to_lowercase() + " ")
    };
    words(text).contains(&words(title))
}

/// Returns the lines of a text that another one lacks, in their order. A line is there if one line of the other text has
/// its words in the same order without others between them. A text with code, a table or a list of several levels is
/// returned whole unless all of it is there, because its lines mean something only together.
fn lacking_lines(known: &str, body: &str) -> String {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let known: Vec<String> = known.lines().map(|line| format!(" {} ", words(line))).collect();
    let is_known = |line: &str| {
        let wanted = format!(" {} ", words(line));
        known.iter().any(|line| line.contains(&wanted))
    };
    let is_lacking = |line: &&str| !line.trim().is_empty() && !is_known(line);
    if !body.lines().any(|line| is_lacking(&line)) {
        return String::new();
    }
    let is_joined = |line: &str| {
        line.trim_start().starts_with(['|', '`', '~', '>'])
            || line.starts_with([' ', '\t'])
            || line.contains('|')
    };
    if body.lines().any(is_joined) {
        return body.to_owned();
    }
    let kept: Vec<&str> = body.lines().filter(|line| line.trim().is_empty() || is_lacking(line)).collect();
    let mut text = String::new();
    for line in kept {
        let is_second_blank = line.trim().is_empty() && (text.is_empty() || text.ends_with("\n\n"));
        if !is_second_blank {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.trim_end().to_owned()
}

/// Adds the edits of links to parts of notes that are merged. `order` has their places among the linking notes, in the
/// order in which their parts follow each other in the merged text `draft`.
fn follow_parts(
    view: &View<'_>,
    names: &FileNames,
    order: &[usize],
    draft: &str,
    linking: &mut [(Source, Vec<Edit>)],
) {
    let mut changes: BTreeMap<(LinkDialect, usize), PartChanges> = BTreeMap::new();
    let into = linking[order[0]].0.path.clone();
    let count: usize = order.iter().map(|at| linking[*at].0.note.headings.len()).sum();
    for at in 0..linking.len() {
        let dialect = match order.contains(&at) {
            true => view.dialects().unit_of(&into).dialect,
            false => view.dialects().unit_of(&linking[at].0.path).dialect,
        };
        let mut edits = Vec::new();
        for (place, &target) in order.iter().enumerate() {
            let (source, own) = (&linking[at].0, &linking[target].0);
            let parts = changes.entry((dialect, target)).or_insert_with(|| {
                let (mut first, mut others) = (0, 0);
                for earlier in &order[..place] {
                    let earlier = &linking[*earlier].0;
                    first += earlier.note.headings.len();
                    others += AnchorTable::new(dialect, &earlier.text, &earlier.note).others();
                }
                let map = PartMap {
                    headings: vec![(0..own.note.headings.len(), first)],
                    others: vec![(0..usize::MAX, others)],
                };
                PartChanges::new(dialect, (&own.text, &own.note), (&into, draft), map)
            });
            if parts.note_after.headings.len() != count {
                continue;
            }
            let is_target =
                |link: &Link| names.follow(link, &source.path).is_some_and(|found| *found.path == own.path);
            let renamed = parts.renamed_headings(&own.note);
            let text = (&source.path, source.text.as_str(), &source.note);
            edits.append(&mut rename_parts(text, &own.note, &renamed, parts, is_target).edits);
        }
        linking[at].1.append(&mut edits);
    }
}

/// Lists the labels of reference definitions and footnotes, the latter with their `^`, by key.
pub(crate) fn labels(source: &Source) -> BTreeSet<String> {
    let references = source.note.links.iter().filter(|link| link.form == LinkForm::Refdef);
    let references = references.filter_map(|link| {
        let (label, _) = link.span.of(&source.text).trim_start().strip_prefix('[')?.split_once("]:")?;
        Some(key(label))
    });
    references.chain(source.note.footnotes.iter().map(|note| format!("^{}", key(&note.id)))).collect()
}

/// Returns remarks about headings and block ids that the merged note has twice. Links lead to the first one.
fn twice(from: &Source, into: &Source) -> Vec<Remark> {
    let remark = |message: String, line: usize, at: usize| from.remark("part-twice", line, at, message);
    let keys: BTreeSet<String> =
        into.note.headings.iter().map(|heading| heading_key(&heading.text)).collect();
    let headings = from.note.headings.iter().filter(|heading| keys.contains(&heading_key(&heading.text)));
    let own: BTreeSet<String> = into.note.blocks.iter().map(|block| block.id.to_ascii_lowercase()).collect();
    let blocks = from.note.blocks.iter().filter(|block| own.contains(&block.id.to_ascii_lowercase()));
    let headings = headings.map(|heading| {
        remark(
            format!("{} has a heading {:?} already, to which links lead", into.path, heading.text),
            heading.line,
            heading.span.start,
        )
    });
    let blocks = blocks.map(|block| {
        remark(
            format!("{} has a block ^{} already, to which links lead", into.path, block.id),
            block.lines.0,
            block.id_span.start,
        )
    });
    headings.chain(blocks).collect()
}
