//! Extraction of a section into a note of its own, with the links to what moves.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_links::anchor::{AnchorTable, AnchorTarget};
use sidenote_links::dialect::LinkDialect;
use sidenote_links::resolve::{FileNames, name_keys};
use sidenote_links::rewrite::{
    LinkRewrite, LinkedPlace, Moves, PartChanges, PartMap, Relink, RenameContext, RewriteOptions, linktext,
    markdown_destination, relink, rename_parts,
};
use sidenote_markdown::edit::{ChangeSet, Edit, Remark};
use sidenote_markdown::frontmatter::{edit as property, encode_in};
use sidenote_markdown::link::{Link, LinkEscape, LinkSyntax};
use sidenote_markdown::note::Note;
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::span::Span;
use sidenote_markdown::subpath::{SubpathTable, SubpathTarget};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::parts::heading;
use sidenote_open_vault::source::Source;
use sidenote_vault::obsidian::Settings;

use crate::Planner;
use crate::create::NewRequest;
use crate::follow_headings::{SettledNotes, follow_headings};
use crate::link::new_link;
use crate::merge::{add_body, labels, new_note};
use crate::move_files::add_edits;
use crate::properties::applied;

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

/// The extraction of one section of a note.
pub(crate) struct Extraction<'a> {
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
    /// For each dialect of a linking note, the anchors of the whole note.
    anchors: BTreeMap<LinkDialect, AnchorTable>,
    /// For each dialect, the parts of the section in the new note, and the other parts in what is left, when both texts are
    /// known.
    changes: BTreeMap<LinkDialect, (PartChanges, PartChanges)>,
}

/// The edits of the note that loses the section.
pub(crate) struct SplitEdits {
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

    /// Returns whether the subpath of a link to the note, from one of this dialect, names something inside the section.
    ///
    /// A Markdown link names a part by its anchor where no text fits, or where only anchors count.
    fn names_part(&self, link: &Link, dialect: LinkDialect) -> bool {
        let note = &self.own.note;
        let heading = |at: usize| note.headings.get(at).map(|heading| heading.span.start);
        let is_markdown = link.form.syntax() == LinkSyntax::Markdown;
        let is_only_by_anchor = is_markdown && dialect.follows_paths();
        let by_text = self.parts.find(&link.subpath).filter(|_| !is_only_by_anchor);
        let start = match by_text {
            Some(SubpathTarget::Heading(at)) => heading(at),
            Some(SubpathTarget::Block(at)) => note.blocks.get(at).map(|block| block.id_span.start),
            Some(SubpathTarget::Footnote(at)) => note.footnotes.get(at).map(|footnote| footnote.span.start),
            None => {
                let anchors = self.anchors.get(&dialect).filter(|_| is_markdown);
                anchors.and_then(|anchors| match anchors.find(&link.subpath)? {
                    AnchorTarget::Heading(at) => heading(at),
                    AnchorTarget::Other(at) => anchors.start_of_other(at),
                })
            }
        };
        start.is_some_and(|start| self.section.contains(start))
    }

    /// Returns whether a link of a note leads to the note that has the section.
    fn leads_here(&self, link: &Link, from: &NotePath) -> bool {
        self.before.follow(link, from).is_some_and(|found| *found.path == self.own.path)
    }

    /// Compares the parts of the note with those of the two texts that it becomes.
    fn compare(&mut self, view: &View<'_>, sources: &[Source], new: &str, left: &str) {
        let own = self.own;
        let first = own.note.headings.partition_point(|heading| heading.span.start < self.section.start);
        let end = own.note.headings.partition_point(|heading| heading.span.start < self.section.end);
        for source in sources {
            let dialect = view.dialects().unit_of(&source.path).dialect;
            if self.changes.contains_key(&dialect) {
                continue;
            }
            let Some(anchors) = self.anchors.get(&dialect) else { continue };
            let others = anchors.others_before(self.section.start)..anchors.others_before(self.section.end);
            let before = (own.text.as_str(), &own.note);
            let changes = |path: &NotePath, text: &str| {
                PartChanges::new(dialect, before, (path, text), PartMap::default())
            };
            let (mut moved, mut rest) = (changes(self.new, new), changes(&own.path, left));
            let made = moved.note_after.headings.len().saturating_sub(end - first);
            let made_others = moved.after.others().saturating_sub(others.len());
            moved.map =
                PartMap { headings: vec![(first..end, made)], others: vec![(others.clone(), made_others)] };
            rest.map = PartMap {
                headings: vec![(0..first, 0), (end..usize::MAX, first)],
                others: vec![(0..others.start, 0), (others.end..usize::MAX, others.start)],
            };
            self.changes.insert(dialect, (moved, rest));
        }
    }

    /// Plans the new anchors of links in a text to the note, whose parts are in two texts now.
    fn new_anchors(&self, source: &Source, dialect: LinkDialect) -> Vec<Edit> {
        let Some((moved, rest)) = self.changes.get(&dialect) else { return Vec::new() };
        let linking = (&source.path, source.text.as_str(), &source.note);
        let is_target = |inside: bool| {
            move |link: &Link| {
                link.form.syntax() == LinkSyntax::Markdown
                    && self.leads_here(link, &source.path)
                    && self.names_part(link, dialect) == inside
            }
        };
        let follow = |changes: &PartChanges, inside: bool| {
            rename_parts(linking, &self.own.note, &[], changes, is_target(inside)).edits
        };
        [follow(moved, true), follow(rest, false)].concat()
    }

    /// Plans the edits of links in a text that lead to the section, so that they lead to the new note.
    fn redirected(&self, source: &Source, place: &NotePath, links: &[&Link]) -> (Vec<Edit>, Vec<Remark>) {
        let relinks: Vec<Relink> = links
            .iter()
            .filter(|link| !link.path.is_empty())
            .map(|link| Relink {
                span: link.span,
                source_then: Some(source.path.clone()),
                target_then: LinkedPlace::File(self.own.path.clone()),
                target: LinkedPlace::File(self.new.clone()),
            })
            .collect();
        let linking = (place, source.text.as_str(), &source.note);
        let LinkRewrite { mut edits, remarks, .. } = relink(&self.after, self.options, linking, &relinks);
        let bare = links.iter().filter(|link| link.path.is_empty());
        edits.extend(bare.filter_map(|link| self.named(link, &source.text, self.new, place)));
        edits.extend(
            links.iter().filter_map(|link| outer_part(link, &source.text, &self.part)).map(Edit::remove),
        );
        (edits, remarks)
    }

    /// Plans the edit that puts the name of a note before the subpath of a link that has none.
    fn named(&self, link: &Link, text: &str, target: &NotePath, place: &NotePath) -> Option<Edit> {
        let percent = link.escape.inner == LinkEscape::Percent;
        let in_angle =
            link.dest_span.start.checked_sub(1).and_then(|at| text.as_bytes().get(at)) == Some(&b'<');
        let encode = |name: String| if percent { markdown_destination(&name, in_angle) } else { name };
        let raw = linktext(&self.after, target, place, self.settings.link_format, percent)
            .and_then(|name| encode_in(link.escape.host, &encode(name)))?;
        Some(Edit::replace(link.path_span, raw))
    }

    /// Plans the edits of links in the note itself. Links inside the section are written for the path of the new note.
    fn split(&self, view: &View<'_>) -> SplitEdits {
        let (own, path) = (self.own, &self.own.path);
        let moves = Moves::default();
        let context = RenameContext {
            before: &self.before,
            after: &self.after,
            moves: &moves,
            destination: Some(self.new),
            options: self.options,
        };
        let dialect = view.dialects().unit_of(path).dialect;
        let all = context.retarget(path, &own.text, &own.note);
        let mut moved: Vec<Edit> = all.edits.into_iter().filter(|edit| self.encloses(edit.span)).collect();
        // Links of the section that change, each with its new text.
        let (mut rewritten, mut anew): (Vec<Span>, Vec<Edit>) = (Vec::new(), Vec::new());
        let (mut inside, mut outside): (Vec<&Link>, Vec<&Link>) = (Vec::new(), Vec::new());
        let to_part = |link: &&Link| !link.subpath.is_empty() && self.leads_here(link, path);
        for link in own.note.links.iter().filter(to_part) {
            let is_bare = link.path.is_empty();
            match (self.encloses(link.span), self.names_part(link, dialect)) {
                (true, false) if is_bare => anew.extend(self.named(link, &own.text, path, self.new)),
                (true, true) if is_bare => {
                    anew.extend(outer_part(link, &own.text, &self.part).map(Edit::remove));
                }
                (true, true) => {
                    rewritten.push(link.span);
                    inside.push(link);
                }
                (false, true) => outside.push(link),
                _ => {}
            }
        }
        retain_outside(&mut moved, rewritten);
        let (mut redirected, mut remarks) = self.redirected(own, self.new, &inside);
        moved.append(&mut redirected);
        moved.append(&mut anew);
        let (mut left, more) = self.redirected(own, path, &outside);
        let (here, there): (Vec<Edit>, Vec<Edit>) =
            self.new_anchors(own, dialect).into_iter().partition(|edit| self.encloses(edit.span));
        moved.extend(here);
        left.extend(there);
        remarks.extend(more);
        remarks.extend(all.remarks);
        SplitEdits { moved, left, remarks }
    }

    /// Plans the edits of links of another note to parts of the section.
    fn edits_elsewhere(&self, view: &View<'_>, source: &Source) -> (Vec<Edit>, Vec<Remark>) {
        let dialect = view.dialects().unit_of(&source.path).dialect;
        let is_part = |link: &&Link| self.leads_here(link, &source.path) && self.names_part(link, dialect);
        let links: Vec<&Link> = source.note.links.iter().filter(is_part).collect();
        let (mut edits, remarks) = self.redirected(source, &source.path, &links);
        edits.extend(self.new_anchors(source, dialect));
        (edits, remarks)
    }

    /// Returns the text of the section for the new note.
    fn moved_text(&self, moved: Vec<Edit>) -> Result<String> {
        let start = self.section.start;
        let shift =
            |edit: Edit| Edit { span: Span::new(edit.span.start - start, edit.span.end - start), ..edit };
        applied(self.section.of(&self.own.text), &moved.into_iter().map(shift).collect::<Vec<_>>())
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
pub(crate) fn retain_outside(edits: &mut Vec<Edit>, mut links: Vec<Span>) {
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
pub(crate) fn outer_part(link: &Link, text: &str, part: &SubpathTable<'_>) -> Option<Span> {
    let raw = link.subpath_span.of(text);
    let starts = |text: &str| text.match_indices('#').map(|(at, _)| at).collect::<Vec<_>>();
    let (raw_starts, said_starts) = (starts(raw), starts(&link.subpath));
    let first =
        said_starts.iter().position(|&at| part.find(link.subpath.get(at..).unwrap_or("")).is_some())?;
    let end = raw_starts.get(first).filter(|_| raw_starts.len() == said_starts.len() && first > 0)?;
    Some(Span::new(link.subpath_span.start, link.subpath_span.start + end))
}

/// Returns an error if a section uses references or footnotes that are defined outside of it, or the other way round.
pub(crate) fn refuse_torn(source: &Source, section: Span) -> Result<()> {
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

impl Planner<'_> {
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
        let index = heading(&own.note, &path, &request.section)?;
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
        let (new, begun) = new_note(&plan)?;
        let mut sources = view.sources(view.concerned(std::slice::from_ref(&path), &BTreeSet::new())?)?;
        sources.retain(|source| source.path != path);
        let mut keys: BTreeSet<String> =
            [&path, &new].iter().flat_map(|path| name_keys(path.name())).collect();
        keys.extend([key(path.name()), key(new.name())]);
        sources.push(view.source(&path)?);
        let files = view.names(&sources, keys)?;
        let part = Note::parse(section.of(&own.text));
        let dialects: BTreeSet<LinkDialect> =
            sources.iter().map(|source| view.dialects().unit_of(&source.path).dialect).collect();
        let dialects = dialects.into_iter();
        let mut extraction = Extraction {
            own: &own,
            new: &new,
            section,
            before: files.table(),
            after: files.table_after(&Moves::default(), std::iter::once(&new)),
            parts: SubpathTable::new(&own.note),
            part: SubpathTable::new(&part),
            settings: self.core.vault.settings(),
            options: self.core.rewrite_options(),
            anchors: dialects
                .map(|dialect| (dialect, AnchorTable::new(dialect, &own.text, &own.note)))
                .collect(),
            changes: BTreeMap::new(),
        };
        // Where the headings are in the two texts is known when they were made once.
        let draft = extraction.split(view);
        let (moved, left) = (extraction.moved_text(draft.moved)?, extraction.remaining(draft.left)?);
        extraction.compare(view, &sources, &format!("{begun}{moved}"), &applied(&own.text, &left)?);
        let SplitEdits { moved, left, remarks } = extraction.split(view);
        for source in sources.iter().filter(|source| source.path != path) {
            let (edits, remarks) = extraction.edits_elsewhere(view, source);
            add_edits(&mut plan, source, None, edits, remarks);
        }
        add_body(&mut plan, &extraction.moved_text(moved)?, property::line_end(&own.text));
        add_edits(&mut plan, &own, None, extraction.remaining(left)?, remarks);
        plan.files.sort_by(|a, b| a.from.cmp(&b.from));
        let settled = SettledNotes { handled: std::slice::from_ref(&path), ..SettledNotes::default() };
        follow_headings(view, &mut plan, &settled)?;
        Ok(plan)
    }
}
