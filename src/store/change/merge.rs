//! Plans the merge of two notes, and the extraction of a section into a note of its own.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::store::change::Planner;
use crate::store::change::create::NewRequest;
use crate::store::change::headings::heading;
use crate::store::change::merge_properties::Uniting;
use crate::store::change::move_files::add_edits;
use crate::store::source::Source;
use crate::store::view::{View, table};
use crate::text::body_edit;
use crate::text::edit::{ChangeSet, Content, Edit, FileChange, FileLocation, Remark, apply, single_edit};
use crate::text::frontmatter::{edit as property, encode_in};
use crate::text::link::{Link, LinkEscape, LinkForm};
use crate::text::note::{Note, heading_key};
use crate::text::path::{NotePath, key};
use crate::text::resolve::name_keys;
use crate::text::rewrite::{Moves, RenameContext, RewriteOptions, linktext};
use crate::text::span::Span;
use crate::text::subpath::{SubpathTable, SubpathTarget};

/// One note that goes into another.
#[derive(Debug, Clone, Default)]
pub struct MergeRequest {
    /// The note that goes, by any of its names.
    pub from: String,
    /// The note that takes its text.
    pub into: String,
}

/// A section that becomes a note of its own.
#[derive(Debug, Clone, Default)]
pub struct ExtractRequest {
    /// The note, by any of its names.
    pub note: String,
    /// The heading of the section.
    pub section: String,
    /// The title of the new note, which is made beside the old one.
    pub title: String,
}

impl Planner<'_> {
    /// Plans the text of one note behind that of another; links to the one lead to the other, and the one goes to the
    /// bin. Properties that the other lacks are taken over, lists are united, and of two values that differ both are kept
    /// or the loss is told.
    ///
    /// # Errors
    /// As [`Lookup::find`]; `Invalid` for a note and itself, and for properties that cannot be written.
    pub(in crate::store) fn plan_merge(&self, view: &View<'_>, request: &MergeRequest) -> Result<ChangeSet> {
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
        let (before, mut after) = (table(files.iter()), table(files.iter()));
        after.remove(&from);
        let mut moves = Moves::default();
        moves.insert(from.clone(), into.clone());
        let options =
            RewriteOptions { format: self.core.vault.settings().link_format, ..RewriteOptions::default() };
        let world = RenameContext { before: &before, after: &after, moves: &moves, place: None, options };
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
            return Err(Error::not_found(format!("{from} or {into} went away")));
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
        let mut uniting = Uniting::of(&into, text);
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

    /// Plans a new note of one section, which leaves a link in its place; links to its headings and blocks follow.
    ///
    /// # Errors
    /// As [`Lookup::find`]; `NotFound` for a heading that is not there; `Exists` where a note has the new name.
    pub(in crate::store) fn plan_extract(
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
            return Err(Error::invalid(format!("{path} is no note, so nothing is taken out of it")));
        }
        let index = heading(&own, &request.section)?;
        let section = own.note.section_span(&own.text, index);
        let section = section.ok_or_else(|| Error::internal("a section vanished"))?;
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
        let new = new.ok_or_else(|| Error::internal("a new note has no place"))?;
        if plan.files.len() > 1 {
            return Err(Error::invalid(format!("links to other notes would come to mean {new}"))
                .with_hint("choose a title that no note has"));
        }
        let mut sources = view.sources(view.concerned(std::slice::from_ref(&path), &BTreeSet::new())?)?;
        sources.retain(|source| source.path != path);
        let mut keys: BTreeSet<String> =
            [&path, &new].iter().flat_map(|path| name_keys(path.name())).collect();
        keys.extend([key(path.name()), key(new.name())]);
        sources.push(view.source(&path)?);
        let files = view.names(&sources, keys)?;
        let before = table(files.iter());
        let after = table(files.iter().chain([&new]));
        let settings = self.core.vault.settings();
        let options = RewriteOptions { format: settings.link_format, ..RewriteOptions::default() };
        let world = RenameContext {
            before: &before,
            after: &after,
            moves: &Moves::default(),
            place: Some(&new),
            options,
        };
        // Links inside the section are written for the new place.
        let inside = |span: Span| section.encloses(span);
        let moved_links = world.retarget(&path, &own.text, &own.note);
        let mut moved: Vec<Edit> = moved_links.edits.into_iter().filter(|edit| inside(edit.span)).collect();
        let parts = SubpathTable::new(&own.note);
        let names_part = |link: &Link| match parts.find(&link.subpath) {
            Some(SubpathTarget::Heading(at)) => {
                own.note.headings.get(at).is_some_and(|heading| inside(heading.span))
            }
            Some(SubpathTarget::Block(at)) => {
                own.note.blocks.get(at).is_some_and(|block| inside(block.id_span))
            }
            Some(SubpathTarget::Footnote(at)) => {
                own.note.footnotes.get(at).is_some_and(|note| inside(note.span))
            }
            None => false,
        };
        let part = Note::parse(section.of(&own.text));
        let part = SubpathTable::new(&part);
        let write = |link: &Link, text: &str, target: &NotePath, source| -> Vec<Edit> {
            let percent = link.escape.inner == LinkEscape::Percent;
            let Some(raw) = linktext(&after, target, source, options.format, percent)
                .and_then(|name| encode_in(link.escape.host, &name))
            else {
                return Vec::new();
            };
            let raw = if percent { raw.replace(' ', "%20") } else { raw };
            let outer = if *target == new { outer_part(link, text, &part) } else { None };
            outer.map(Edit::remove).into_iter().chain([Edit::replace(link.path_span, raw)]).collect()
        };
        let mut left: Vec<Edit> = Vec::new();
        // Links of the section that are written otherwise, and how.
        let (mut rewritten, mut anew): (Vec<Span>, Vec<Edit>) = (Vec::new(), Vec::new());
        let is_own = |link: &Link| before.resolve(&link.path, &path).is_some_and(|found| *found.path == path);
        for link in own.note.links.iter().filter(|link| !link.subpath.is_empty() && is_own(link)) {
            let is_bare = link.path.is_empty();
            match (inside(link.span), names_part(link)) {
                (true, false) if is_bare => anew.extend(write(link, &own.text, &path, &new)),
                (true, true) if is_bare => anew.extend(outer_part(link, &own.text, &part).map(Edit::remove)),
                (true, true) => {
                    rewritten.push(link.span);
                    anew.extend(write(link, &own.text, &new, &new));
                }
                (false, true) => left.extend(write(link, &own.text, &new, &path)),
                _ => {}
            }
        }
        rewritten.sort_unstable_by_key(|link| (link.start, Reverse(link.end)));
        // A link inside another goes with it, so that what begins last before an edit can enclose it.
        rewritten.dedup_by(|inner, outer| outer.encloses(*inner));
        moved.retain(|edit| {
            let behind = rewritten.partition_point(|link| link.start <= edit.span.start);
            !behind
                .checked_sub(1)
                .and_then(|at| rewritten.get(at))
                .is_some_and(|link| link.encloses(edit.span))
        });
        moved.append(&mut anew);
        for source in sources.iter().filter(|source| source.path != path) {
            let names = |link: &&Link| {
                before.resolve(&link.path, &source.path).is_some_and(|found| *found.path == path)
                    && names_part(link)
            };
            let links = source.note.links.iter().filter(names);
            let edits = links.flat_map(|link| write(link, &source.text, &new, &source.path));
            add_edits(&mut plan, source, None, edits.collect(), Vec::new());
        }
        let text = section.of(&own.text);
        let shifted: Vec<Edit> = moved
            .into_iter()
            .map(|edit| Edit {
                span: Span::new(edit.span.start - section.start, edit.span.end - section.start),
                text: edit.text,
            })
            .collect();
        let body = edited(text, &shifted)?;
        for change in plan.files.iter_mut().filter(|change| change.from.is_none()) {
            if let Content::Whole(bytes) = &mut change.content {
                let end = property::line_end(&own.text);
                *bytes = String::from_utf8_lossy(bytes).replace('\n', end).into_bytes();
                bytes.extend_from_slice(body.trim_end_matches(['\n', '\r']).as_bytes());
                bytes.extend_from_slice(end.as_bytes());
            }
        }
        let dest = linktext(&after, &new, &path, options.format, settings.use_markdown_links)
            .ok_or_else(|| Error::invalid(format!("no link text finds {new}")))?;
        let link = if settings.use_markdown_links {
            format!("[{}](<{dest}>)", new.stem())
        } else {
            format!("[[{dest}]]")
        };
        let end = section.start + text.trim_end_matches(['\n', '\r']).len();
        left.retain(|edit| !inside(edit.span));
        left.push(Edit::replace(Span::new(section.start, end), link));
        add_edits(&mut plan, &own, None, left, moved_links.remarks);
        plan.files.sort_by(|a, b| a.from.cmp(&b.from));
        Ok(plan)
    }
}

/// Finds the beginning of a subpath that names headings around a part, where the part stands alone afterwards.
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
        .map_err(|error| Error::internal("an edit broke a character").with_source(error))
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

/// Refuses a section that uses references or footnotes which stand outside of it, or the other way round.
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

/// Tells of headings and block ids that a merged note has twice: links mean the first.
fn twice(from: &Source, into: &Source) -> Vec<Remark> {
    let remark = |message: String, line: usize, at: usize| from.remark("part-twice", line, at, message);
    let keys: BTreeSet<String> =
        into.note.headings.iter().map(|heading| heading_key(&heading.text)).collect();
    let headings = from.note.headings.iter().filter(|heading| keys.contains(&heading_key(&heading.text)));
    let own: BTreeSet<String> = into.note.blocks.iter().map(|block| block.id.to_ascii_lowercase()).collect();
    let blocks = from.note.blocks.iter().filter(|block| own.contains(&block.id.to_ascii_lowercase()));
    let headings = headings.map(|heading| {
        remark(
            format!("{} has a heading {:?} already; links to it mean that one", into.path, heading.text),
            heading.line,
            heading.span.start,
        )
    });
    let blocks = blocks.map(|block| {
        remark(
            format!("{} has a block ^{} already; links to it mean that one", into.path, block.id),
            block.lines.0,
            block.id_span.start,
        )
    });
    headings.chain(blocks).collect()
}
