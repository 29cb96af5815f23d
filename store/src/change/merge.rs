//! Plans the merge of two notes, and the extraction of a section into a note of its own.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::catalog_overlay::View;
use crate::change::Planner;
use crate::change::create::NewRequest;
use crate::change::headings::heading;
use crate::change::link::new_link;
use crate::change::merge_properties::PropertyMerge;
use crate::change::move_files::add_edits;
use crate::source::Source;
use sidenote_foundation::clock::Timestamp;
use sidenote_foundation::error::{Error, Result};
use sidenote_foundation::text::body_edit;
use sidenote_foundation::text::edit::{
    ChangeSet, Content, Edit, FileChange, FileLocation, Remark, apply, single_edit,
};
use sidenote_foundation::text::frontmatter::{edit as property, encode_in};
use sidenote_foundation::text::link::{Link, LinkEscape, LinkForm};
use sidenote_foundation::text::note::{Note, heading_key};
use sidenote_foundation::text::path::{NotePath, key};
use sidenote_foundation::text::resolve::{FileNames, name_keys};
use sidenote_foundation::text::rewrite::{
    Moves, RenameContext, RewriteOptions, linktext, markdown_destination,
};
use sidenote_foundation::text::span::Span;
use sidenote_foundation::text::subpath::{SubpathTable, SubpathTarget};
use sidenote_foundation::vault::obsidian::Settings;

/// A note to merge into another one.
#[derive(Debug, Clone, Default)]
pub struct MergeRequest {
    /// The note that is merged and moved to the trash, by any of its names.
    pub from: String,
    /// The note that receives the text, by any of its names.
    pub into: String,
}

/// A section to extract as a new note.
#[derive(Debug, Clone, Default)]
pub struct ExtractRequest {
    /// The note, by any of its names.
    pub note: String,
    /// The heading of the section.
    pub section: String,
    /// The title of the new note, which is created in the same folder.
    pub title: String,
}

impl Planner<'_> {
    /// Plans to append the text of one note to another, to redirect links to it, and to move it to the trash.
    /// Properties that the other note lacks are copied and lists are merged. If two values differ, both are kept, or a
    /// remark names the one that is lost.
    ///
    /// # Errors
    /// `NotFound` if no note has a name; `Exists` if several notes have it; `Invalid` if both names are of the same
    /// note, or if properties cannot be written.
    pub(super) fn plan_merge(&self, view: &View<'_>, request: &MergeRequest) -> Result<ChangeSet> {
        let (from, into) = (view.find(&request.from)?, view.find(&request.into)?);
        if from == into || !from.is_note() || !into.is_note() {
            return Err(Error::invalid(format!("{from} cannot be merged into {into}"))
                .with_hint("name two Markdown notes"));
        }
        let mut paths = view.concerned(std::slice::from_ref(&from), &BTreeSet::new())?;
        paths.insert(into.clone());
        let sources = view.sources(paths)?;
        let mut keys: BTreeSet<String> =
            [&from, &into].iter().flat_map(|path| name_keys(path.name())).collect();
        keys.extend([key(from.name()), key(into.name())]);
        let files = view.names(&sources, keys)?;
        let (before, mut after) = (files.table(), files.table());
        after.remove(&from);
        let mut moves = Moves::default();
        moves.insert(from.clone(), into.clone());
        let options = self.core.rewrite_options();
        let world =
            RenameContext { before: &before, after: &after, moves: &moves, destination: None, options };
        let mut plan = ChangeSet::new("merge");
        let mut moved = None;
        let mut target = None;
        for source in sources {
            let rewritten = world.retarget(&source.path, &source.text, &source.note);
            plan.remarks.extend(rewritten.remarks);
            let is_one = source.path == from || source.path == into;
            if let Some(refusal) = source.refusal().filter(|_| is_one) {
                return Err(Error::invalid(refusal.to_string()));
            } else if source.path == from {
                moved = Some((edited(&source.text, &rewritten.edits)?, source));
            } else if source.path == into {
                target = Some((edited(&source.text, &rewritten.edits)?, source));
            } else {
                add_edits(&mut plan, &source, None, rewritten.edits, Vec::new());
            }
        }
        let (Some((moved, old)), Some((mut text, source))) = (moved, target) else {
            return Err(Error::not_found(format!("{from} or {into} was removed")));
        };
        plan.remarks.extend(twice(&old, &source));
        let own = labels(&source);
        if let Some(label) = labels(&old).into_iter().find(|label| own.contains(label)) {
            return Err(Error::invalid(format!(
                "{from} and {into} both define [{label}], and one would be lost"
            ))
            .with_hint("give one of the references or footnotes another label first"));
        }
        let refused = |refusal: property::Refusal| Error::invalid(format!("{into}: {}", refusal.message));
        let note = Note::parse(&moved);
        let mut uniting = PropertyMerge::of(&into, text);
        let settings = self.core.vault.settings();
        for coming in note.frontmatter.iter().flat_map(|front| &front.properties) {
            uniting.merge(&from, coming, settings.declared_type(&coming.key))?;
        }
        plan.remarks.append(&mut uniting.remarks);
        text = uniting.text;
        let body = moved.get(note.body_start..).unwrap_or("").trim_matches(['\n', '\r']);
        let edits = body_edit::append(&text, body).map_err(refused)?;
        text = edited(&text, &edits)?;
        add_edits(
            &mut plan,
            &source,
            None,
            single_edit(&source.text, &text).into_iter().collect(),
            Vec::new(),
        );
        plan.remarks.extend(self.unread(&[&from])?);
        plan.files.sort_by(|a, b| a.from.cmp(&b.from));
        let to = Some(FileLocation::Trash(self.free_in_trash(&from, &BTreeSet::new())?));
        plan.files.push(FileChange {
            from: Some(FileLocation::Vault(from)),
            to,
            before: Some(old.hash),
            content: Content::Keep,
        });
        Ok(plan)
    }

    /// Plans to move a section to a new note. A link replaces it, and links to its headings and blocks follow.
    ///
    /// # Errors
    /// `NotFound` if there is no such note or heading; `Exists` if several notes have the name, or if there is a note
    /// with the title already.
    pub(super) fn plan_extract(
        &self,
        view: &View<'_>,
        request: &ExtractRequest,
        now: Timestamp,
    ) -> Result<ChangeSet> {
        let path = view.find(&request.note)?;
        let own = view.source(&path)?;
        if let Some(refusal) = own.refusal() {
            return Err(Error::invalid(refusal.to_string()));
        }
        if !path.is_note() {
            return Err(Error::invalid(format!(
                "{path} is not a note, so no section can be extracted from it"
            )));
        }
        let index = heading(&own, &request.section)?;
        let section = own.note.section_span(&own.text, index);
        let section = section.ok_or_else(|| Error::internal("a section is missing"))?;
        refuse_torn(&own, section)?;
        let made = NewRequest {
            title: request.title.clone(),
            folder: Some(path.folder().to_owned()),
            ..NewRequest::default()
        };
        let mut plan = self.plan_new(view, &made, now)?;
        plan.operation = "extract".to_owned();
        let new = plan.files.iter().find(|change| change.from.is_none());
        let new = new.and_then(|change| change.to.as_ref()?.in_vault().cloned());
        let new = new.ok_or_else(|| Error::internal("the new note has no path"))?;
        if plan.files.len() > 1 {
            return Err(Error::invalid(format!("links to other notes would lead to {new}"))
                .with_hint("choose a title that no note has"));
        }
        let mut sources = view.sources(view.concerned(std::slice::from_ref(&path), &BTreeSet::new())?)?;
        sources.retain(|source| source.path != path);
        let mut keys: BTreeSet<String> =
            [&path, &new].iter().flat_map(|path| name_keys(path.name())).collect();
        keys.extend([key(path.name()), key(new.name())]);
        sources.push(view.source(&path)?);
        let files = view.names(&sources, keys)?;
        let part = Note::parse(section.of(&own.text));
        let extraction = Extraction {
            own: &own,
            new: &new,
            section,
            before: files.table(),
            after: files.table_after(&Moves::default(), std::iter::once(&new)),
            parts: SubpathTable::new(&own.note),
            part: SubpathTable::new(&part),
            settings: self.core.vault.settings(),
            options: self.core.rewrite_options(),
        };
        let SplitEdits { moved, left, remarks } = extraction.split();
        for source in sources.iter().filter(|source| source.path != path) {
            add_edits(&mut plan, source, None, extraction.edits_elsewhere(source), Vec::new());
        }
        let body = extraction.moved_text(moved)?;
        for change in plan.files.iter_mut().filter(|change| change.from.is_none()) {
            if let Content::Whole(bytes) = &mut change.content {
                let end = property::line_end(&own.text);
                *bytes = String::from_utf8_lossy(bytes).replace('\n', end).into_bytes();
                bytes.extend_from_slice(body.trim_end_matches(['\n', '\r']).as_bytes());
                bytes.extend_from_slice(end.as_bytes());
            }
        }
        add_edits(&mut plan, &own, None, extraction.remaining(left)?, remarks);
        plan.files.sort_by(|a, b| a.from.cmp(&b.from));
        Ok(plan)
    }
}

/// The extraction of one section of a note.
struct Extraction<'a> {
    /// The note that has the section.
    own: &'a Source,
    /// The path of the new note.
    new: &'a NotePath,
    section: Span,
    /// The names of files without the new note.
    before: FileNames,
    /// The names of files with the new note.
    after: FileNames,
    /// The parts of the whole note.
    parts: SubpathTable<'a>,
    /// The parts of the section.
    part: SubpathTable<'a>,
    settings: Settings,
    options: RewriteOptions,
}

/// The edits of the note that loses the section.
struct SplitEdits {
    /// Edits inside the section, with spans of the whole note.
    moved: Vec<Edit>,
    /// Edits outside of the section.
    left: Vec<Edit>,
    remarks: Vec<Remark>,
}

impl Extraction<'_> {
    fn encloses(&self, span: Span) -> bool {
        self.section.encloses(span)
    }

    /// Returns whether the subpath of a link to the note names something inside the section.
    fn names_part(&self, link: &Link) -> bool {
        let note = &self.own.note;
        let span = match self.parts.find(&link.subpath) {
            Some(SubpathTarget::Heading(at)) => note.headings.get(at).map(|heading| heading.span),
            Some(SubpathTarget::Block(at)) => note.blocks.get(at).map(|block| block.id_span),
            Some(SubpathTarget::Footnote(at)) => note.footnotes.get(at).map(|footnote| footnote.span),
            None => None,
        };
        span.is_some_and(|span| self.encloses(span))
    }

    /// Returns whether a link of a note leads to the note that has the section.
    fn leads_here(&self, link: &Link, from: &NotePath) -> bool {
        self.before.follow(link, from).is_some_and(|found| *found.path == self.own.path)
    }

    /// Plans the edits that redirect a link in `text`, of the note at `source`, to a target.
    fn retarget(&self, link: &Link, text: &str, target: &NotePath, source: &NotePath) -> Vec<Edit> {
        let percent = link.escape.inner == LinkEscape::Percent;
        let in_angle =
            link.dest_span.start.checked_sub(1).and_then(|at| text.as_bytes().get(at)) == Some(&b'<');
        let encode = |name: String| if percent { markdown_destination(&name, in_angle) } else { name };
        let Some(raw) = linktext(&self.after, target, source, self.settings.link_format, percent)
            .and_then(|name| encode_in(link.escape.host, &encode(name)))
        else {
            return Vec::new();
        };
        let outer = if target == self.new { outer_part(link, text, &self.part) } else { None };
        outer.map(Edit::remove).into_iter().chain([Edit::replace(link.path_span, raw)]).collect()
    }

    /// Plans the edits of links in the note itself. Links inside the section are written for the path of the new note.
    fn split(&self) -> SplitEdits {
        let (own, path) = (self.own, &self.own.path);
        let moves = Moves::default();
        let context = RenameContext {
            before: &self.before,
            after: &self.after,
            moves: &moves,
            destination: Some(self.new),
            options: self.options,
        };
        let all = context.retarget(path, &own.text, &own.note);
        let mut moved: Vec<Edit> = all.edits.into_iter().filter(|edit| self.encloses(edit.span)).collect();
        let mut left: Vec<Edit> = Vec::new();
        // Links of the section that change, each with its new text.
        let (mut rewritten, mut anew): (Vec<Span>, Vec<Edit>) = (Vec::new(), Vec::new());
        let to_part = |link: &&Link| !link.subpath.is_empty() && self.leads_here(link, path);
        for link in own.note.links.iter().filter(to_part) {
            let is_bare = link.path.is_empty();
            match (self.encloses(link.span), self.names_part(link)) {
                (true, false) if is_bare => anew.extend(self.retarget(link, &own.text, path, self.new)),
                (true, true) if is_bare => {
                    anew.extend(outer_part(link, &own.text, &self.part).map(Edit::remove));
                }
                (true, true) => {
                    rewritten.push(link.span);
                    anew.extend(self.retarget(link, &own.text, self.new, self.new));
                }
                (false, true) => left.extend(self.retarget(link, &own.text, self.new, path)),
                _ => {}
            }
        }
        retain_outside(&mut moved, rewritten);
        moved.append(&mut anew);
        SplitEdits { moved, left, remarks: all.remarks }
    }

    /// Plans the edits of links of another note to parts of the section.
    fn edits_elsewhere(&self, source: &Source) -> Vec<Edit> {
        let links = source.note.links.iter();
        let to_part = links.filter(|link| self.leads_here(link, &source.path) && self.names_part(link));
        to_part.flat_map(|link| self.retarget(link, &source.text, self.new, &source.path)).collect()
    }

    /// Returns the text of the section for the new note.
    fn moved_text(&self, moved: Vec<Edit>) -> Result<String> {
        let start = self.section.start;
        let shift =
            |edit: Edit| Edit { span: Span::new(edit.span.start - start, edit.span.end - start), ..edit };
        edited(self.section.of(&self.own.text), &moved.into_iter().map(shift).collect::<Vec<_>>())
    }

    /// Completes the edits of the note: a link to the new note replaces the section.
    fn remaining(&self, mut left: Vec<Edit>) -> Result<Vec<Edit>> {
        let link = new_link(&self.after, &self.settings, &self.own.path, self.new, None)?;
        let text = self.section.of(&self.own.text);
        let end = self.section.start + text.trim_end_matches(['\n', '\r']).len();
        left.retain(|edit| !self.encloses(edit.span));
        left.push(Edit::replace(Span::new(self.section.start, end), link));
        Ok(left)
    }
}

/// Removes the edits inside any of some links.
fn retain_outside(edits: &mut Vec<Edit>, mut links: Vec<Span>) {
    links.sort_unstable_by_key(|link| (link.start, Reverse(link.end)));
    // A link inside another one is removed with it, so only the last link that begins before an edit can enclose it.
    links.dedup_by(|inner, outer| outer.encloses(*inner));
    edits.retain(|edit| {
        let behind = links.partition_point(|link| link.start <= edit.span.start);
        let last = behind.checked_sub(1).and_then(|at| links.get(at));
        !last.is_some_and(|link| link.encloses(edit.span))
    });
}

/// Finds the beginning of a subpath with the headings above a part, if the part is moved out of them.
fn outer_part(link: &Link, text: &str, part: &SubpathTable<'_>) -> Option<Span> {
    let raw = link.subpath_span.of(text);
    let starts = |text: &str| text.match_indices('#').map(|(at, _)| at).collect::<Vec<_>>();
    let (raw_starts, said_starts) = (starts(raw), starts(&link.subpath));
    let first =
        said_starts.iter().position(|&at| part.find(link.subpath.get(at..).unwrap_or("")).is_some())?;
    let end = raw_starts.get(first).filter(|_| raw_starts.len() == said_starts.len() && first > 0)?;
    Some(Span::new(link.subpath_span.start, link.subpath_span.start + end))
}

fn edited(text: &str, edits: &[Edit]) -> Result<String> {
    String::from_utf8(apply(text.as_bytes(), edits)?)
        .map_err(|error| Error::internal("an edit produced invalid UTF-8").with_source(error))
}

/// Lists the labels of reference definitions and footnotes, the latter with their `^`, by key.
fn labels(source: &Source) -> BTreeSet<String> {
    let references = source.note.links.iter().filter(|link| link.form == LinkForm::Refdef);
    let references = references.filter_map(|link| {
        let (label, _) = link.span.of(&source.text).trim_start().strip_prefix('[')?.split_once("]:")?;
        Some(key(label))
    });
    references.chain(source.note.footnotes.iter().map(|note| format!("^{}", key(&note.id)))).collect()
}

/// Returns an error if a section uses references or footnotes that are defined outside of it, or the other way round.
fn refuse_torn(source: &Source, section: Span) -> Result<()> {
    let inside = section.of(&source.text).to_lowercase();
    let before = source.text.get(..section.start).unwrap_or("");
    let outside = format!("{before}\n{}", source.text.get(section.end..).unwrap_or("")).to_lowercase();
    for label in labels(source) {
        let (here, there) = (inside.contains(&format!("[{label}]")), outside.contains(&format!("[{label}]")));
        if here && there {
            return Err(Error::invalid(format!(
                "[{label}] is used and defined on both sides of the section's border"
            ))
            .with_hint("move the definition to where it is used first"));
        }
    }
    Ok(())
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
