//! The check of one note or canvas: its links, its markup, and the comments in it that turn codes off.

use sidenote_links::anchor::AnchorTarget;
use sidenote_links::dialect::{DialectUnit, LinkDialect, PathSpelling};
use sidenote_links::link_part::{LinkPart, NoteParts};
use sidenote_links::merge::first_conflict;
use sidenote_links::resolve::{FileNames, LinkFormat, LinkTarget};
use sidenote_links::rewrite::{fits_in_wikilink, linktext, markdown_destination, parse};
use sidenote_markdown::commonmark::{IgnoreComment, IgnoreRange, ignore_comments};
use sidenote_markdown::decode::decode;
use sidenote_markdown::line_column::Region;
use sidenote_markdown::link::{Link, LinkForm, LinkSyntax};
use sidenote_markdown::media_type::{UNKNOWN, media_type};
use sidenote_markdown::note::Note;
use sidenote_markdown::note_names::own_id;
use sidenote_markdown::path::{NotePath, clean};
use sidenote_markdown::span::Span;
use sidenote_markdown::subpath::SubpathTarget;
use sidenote_markdown::word_sketch::WordSketch;

use crate::check::codes;
use crate::check::codes::{Scope, Severity, near_miss};
use crate::check::problem::{Fix, LineTexts, Place, Problem};

/// What a check keeps of a note.
#[derive(Default)]
pub(super) struct CheckedNote {
    pub(super) problems: Vec<Problem>,
    /// The links into other notes with a subpath, by their target.
    pub(super) parts: Vec<(NotePath, PartLink)>,
    /// The other files that it links to.
    pub(super) targets: Vec<NotePath>,
    /// A sample of its word sequences, if notes are compared by these.
    pub(super) sketch: WordSketch,
    /// Its property `id`.
    pub(super) id: Option<String>,
    /// The codes that a comment turns off for the whole note.
    pub(super) ignored: Vec<&'static str>,
}

/// A link to a part of a note.
pub(super) struct PartLink {
    /// The note with the link.
    pub(super) source: NotePath,
    pub(super) place: Place,
    /// What the link names, as written and decoded.
    pub(super) target: String,
    /// The subpath, and how it is read.
    pub(super) part: LinkPart<'static>,
    /// The bytes of the subpath, and their lines and columns.
    pub(super) subpath_place: (Span, Region),
    /// The link as written.
    pub(super) text: String,
}

/// The names of the files that links are resolved by.
#[derive(Clone, Copy)]
pub(super) struct LinkNames<'a> {
    /// The files that are there.
    pub(super) present: &'a FileNames,
    /// These and the files that were removed, if it is known what was removed.
    pub(super) former: Option<&'a FileNames>,
}

/// Checks a note or canvas with these bytes. A sample of its word sequences is taken if `with_sketch`.
pub(super) fn check_note(
    path: &NotePath,
    bytes: &[u8],
    names: LinkNames<'_>,
    with_sketch: bool,
) -> CheckedNote {
    let decoded = decode(bytes);
    let note = parse(path, &decoded.text);
    let text: &str = &decoded.text;
    let comments = if path.is_note() { ignore_comments(text, note.body_start) } else { Vec::new() };
    let checker = NoteChecker {
        path,
        text,
        note: &note,
        lines: LineTexts::new(text),
        names,
        unit: names.present.dialects().unit_of(path),
        comments: &comments,
    };
    let mut checked = CheckedNote {
        sketch: if with_sketch { WordSketch::of(&note, text) } else { WordSketch::default() },
        id: own_id(&note).filter(|_| path.is_note()),
        ..CheckedNote::default()
    };
    for found in note.problems.iter().chain(&decoded.problem) {
        let problem = match found.span {
            Some(span) => checker.problem(span, found.code, "", found.message.clone()),
            None => Some(Problem::of_file(path, found.code, found.message.clone())),
        };
        checked.problems.extend(problem);
    }
    for link in &note.links {
        checker.link(link, &mut checked);
    }
    checked.targets.sort_unstable();
    checked.targets.dedup();
    // The note is parsed already.
    let is_own = |(target, _): &mut (NotePath, PartLink)| target == path;
    let own: Vec<PartLink> = checked.parts.extract_if(.., is_own).map(|(_, link)| link).collect();
    checked.problems.extend(broken_parts_of(path, (text, &note), &own));
    checked.problems.extend(checker.dead_wikilinks());
    checked.problems.extend(checker.conflict_markers());
    if !fits_in_wikilink(path.as_str()) {
        let message =
            "no wikilink can name it: a name with # ^ | [[ ]] or %% ends or splits a link".to_owned();
        checked.problems.push(Problem::of_file(path, "name-not-linkable", message));
    }
    checker.ignore_comments(&mut checked);
    checked
}

/// Returns whether a link without a file names a note that may be written later, as Obsidian's users do.
fn is_unwritten(link: &Link) -> bool {
    let is_note = [UNKNOWN, media_type("x.md")].contains(&media_type(&link.path));
    link.form.syntax() == LinkSyntax::Lookup && !link.embed && is_note
}

/// The check of one note.
struct NoteChecker<'a> {
    path: &'a NotePath,
    text: &'a str,
    note: &'a Note,
    lines: LineTexts<'a>,
    names: LinkNames<'a>,
    unit: &'a DialectUnit,
    comments: &'a [IgnoreComment],
}

impl NoteChecker<'_> {
    /// Returns a problem at a span, unless a comment before the block turns its code off.
    fn problem(&self, span: Span, code: &'static str, target: &str, message: String) -> Option<Problem> {
        if self.is_ignored(span, code) {
            return None;
        }
        let place = Place::new(&self.lines, span, code, target);
        Some(Problem::at(self.path, &place, code, message))
    }

    fn is_ignored(&self, span: Span, code: &str) -> bool {
        self.comments.iter().any(|comment| {
            let IgnoreRange::Block(block) = comment.range else { return false };
            block.contains(span.start) && comment.codes.iter().any(|(ignored, _)| ignored == code)
        })
    }

    fn link(&self, link: &Link, checked: &mut CheckedNote) {
        // `[[## text]]` is a typing aid of an editor.
        if link.is_external() || (link.path.is_empty() && link.subpath.starts_with("##")) {
            return;
        }
        let written = link.span.of(self.text);
        let named = format!("{}{}", link.path, link.subpath);
        let is_path = link.form.syntax() == LinkSyntax::Markdown && self.unit.dialect.follows_paths();
        let target = if clean(&link.path).is_empty() {
            self.path
        } else {
            match self.names.present.follow(link, self.path) {
                Some(found) => {
                    if is_path {
                        checked.problems.extend(self.by_other_rules(link, &named));
                    }
                    if found.unstable {
                        checked.problems.extend(self.ambiguous_link(link, found.path, &named));
                    }
                    found.path
                }
                None if !self.names.present.leads_nowhere(link, self.path) => {
                    if is_path && self.unit.leaves_pages(&link.path, self.path) {
                        let message = format!(
                            "it leads out of {}, so whether it leads anywhere is not known: {written}",
                            self.unit.folder
                        );
                        checked.problems.extend(self.problem(link.span, "link-out-of-site", &named, message));
                    }
                    return;
                }
                None => {
                    let former = self.names.former.and_then(|names| names.follow(link, self.path));
                    let is_unwritten = former.is_none() && is_unwritten(link);
                    let what = if is_unwritten { "no such note yet" } else { "no such file" };
                    let problem =
                        self.problem(link.span, "broken-link", &named, format!("{what}: {written}"));
                    checked.problems.extend(problem.map(|problem| {
                        let problem =
                            if is_unwritten { problem.of_severity(Severity::Info) } else { problem };
                        let fix = is_path.then(|| self.respelled(link)).flatten();
                        let former = former.map(|found| found.path.clone());
                        problem.with_fix(fix).related_to(former).with_target(named)
                    }));
                    return;
                }
            }
        };
        if target != self.path {
            checked.targets.push(target.clone());
        }
        let named_part = LinkPart::of(link, self.unit).filter(|_| target.is_note());
        if let Some(named_part) = named_part.filter(|_| !self.is_ignored(link.span, "broken-subpath")) {
            let part = PartLink {
                source: self.path.clone(),
                place: Place::new(&self.lines, link.span, "broken-subpath", &named),
                target: named,
                part: named_part.into_owned(),
                subpath_place: (link.subpath_span, self.lines.locator.region(link.subpath_span)),
                text: written.to_owned(),
            };
            checked.parts.push((target.clone(), part));
        }
    }

    /// Reports a path that the pages do not follow, though it is clear which file it means.
    fn by_other_rules(&self, link: &Link, named: &str) -> Option<Problem> {
        let target = self.names.present.target(&link.path, link.form.syntax(), self.path)?;
        let LinkTarget::File(found, Some(PathSpelling::ByOtherRules)) = target else { return None };
        let path = linktext(self.names.present, found.path, self.path, LinkFormat::Relative, true)?;
        let message = format!(
            "{} does not follow it, but it can only mean {}: {}",
            self.unit.dialect,
            found.path,
            link.span.of(self.text)
        );
        let written = markdown_destination(&path, false);
        let place = (link.path_span, self.lines.locator.region(link.path_span));
        // A query is a part of the path.
        let fix = (!link.path.contains('?')).then(|| {
            Fix::replace(format!("Write the path from the note's folder: {written}"), place, written)
        });
        let problem = self.problem(link.span, "path-not-followed", named, message)?;
        Some(problem.with_fix(fix).related_to([found.path.clone()]).with_target(named.to_owned()))
    }

    fn ambiguous_link(&self, link: &Link, taken: &NotePath, named: &str) -> Option<Problem> {
        let message =
            format!("more than one file fits, of equal right; {taken} is taken: {}", link.span.of(self.text));
        let problem = self.problem(link.span, "ambiguous-link", named, message)?;
        let related = self.names.present.with_name_of(taken).cloned();
        Some(problem.related_to(related).with_target(named.to_owned()))
    }

    /// Returns the fix of a path that differs from that of one file in case or accents alone.
    fn respelled(&self, link: &Link) -> Option<Fix> {
        // An encoded path is not a part of the new one.
        if link.path_span.of(self.text) != link.path {
            return None;
        }
        let path = self.names.present.respelled(&link.path, self.path)?;
        let place = (link.path_span, self.lines.locator.region(link.path_span));
        Some(Fix::replace(format!("Spell the path as the file is named: {path}"), place, path))
    }

    /// Reports wikilinks in a note that is published where they are plain text.
    fn dead_wikilinks(&self) -> Option<Problem> {
        if !self.unit.dialect.follows_paths() || self.unit.is_assumed() {
            return None;
        }
        let is_dead =
            |link: &&Link| link.form == LinkForm::Wiki && !self.is_ignored(link.span, "wikilink-as-text");
        let mut wikilinks = self.note.links.iter().filter(is_dead);
        let first = wikilinks.next()?;
        let count = 1 + wikilinks.count();
        let what = if count == 1 { "1 wikilink is".to_owned() } else { format!("{count} wikilinks are") };
        let message = format!("{what} plain text where the links are those of {}", self.unit.dialect);
        self.problem(first.span, "wikilink-as-text", "", message)
    }

    /// Finds conflict markers of git.
    fn conflict_markers(&self) -> Option<Problem> {
        let message = "two versions stand in the note, between marks of git".to_owned();
        self.problem(first_conflict(self.text)?, "conflict-markers", "", message)
    }

    /// Notes which codes are turned off for the whole note, and reports comments that turn nothing off.
    fn ignore_comments(&self, checked: &mut CheckedNote) {
        for comment in self.comments {
            let mut invalid = |span: Span, message: String| {
                let place = Place::new(&self.lines, span, "invalid-ignore", "");
                checked.problems.push(Problem::at(self.path, &place, "invalid-ignore", message));
            };
            if comment.codes.is_empty() {
                invalid(
                    comment.span,
                    "the comment names no code; write <!-- sidenote-ignore CODE -->".into(),
                );
            }
            match comment.range {
                IgnoreRange::NoBlock => {
                    invalid(comment.span, "no block follows the comment, so it turns nothing off".into());
                }
                IgnoreRange::InLine => invalid(
                    comment.span,
                    "the comment turns nothing off in the middle of a line; write it on a line of its own before the block"
                        .into(),
                ),
                IgnoreRange::File | IgnoreRange::Block(_) => {}
            }
            for (code, span) in &comment.codes {
                match codes::find(code) {
                    None => invalid(
                        *span,
                        match near_miss(code) {
                            Some(near) => format!("there is no code {code}; did you mean {near}?"),
                            None => format!("there is no code {code}"),
                        },
                    ),
                    Some(known) if known.scope == Scope::Vault => invalid(
                        *span,
                        format!("{code} is a problem of the vault, so no comment in a note turns it off"),
                    ),
                    Some(known) if comment.range == IgnoreRange::File => checked.ignored.push(known.code),
                    Some(known) if known.scope == Scope::Note => invalid(
                        *span,
                        format!(
                            "{code} is a problem of the whole note; write <!-- sidenote-ignore-file {code} -->"
                        ),
                    ),
                    Some(_) => {}
                }
            }
        }
    }
}

/// Finds the links to headings, blocks and footnotes of a note that the note does not have.
pub(super) fn broken_parts_of(
    target: &NotePath,
    (text, note): (&str, &Note),
    links: &[PartLink],
) -> Vec<Problem> {
    let mut parts = NoteParts::new(text, note);
    let mut problems = Vec::new();
    for link in links {
        if !parts.has(&link.part) {
            let message = format!("{target} has no {}: {}", link.part.subpath, link.text);
            let fix = link.part.anchor.and_then(|dialect| slug_fix(link, &mut parts, dialect));
            problems.push(
                Problem::at(&link.source, &link.place, "broken-subpath", message)
                    .with_target(link.target.clone())
                    .with_fix(fix)
                    .related_to([target.clone()]),
            );
        }
    }
    problems
}

/// Returns the fix of a subpath that is the text of a heading where its slug is needed.
fn slug_fix(link: &PartLink, parts: &mut NoteParts<'_>, dialect: LinkDialect) -> Option<Fix> {
    let SubpathTarget::Heading(heading) = parts.by_name().find(&link.part.subpath)? else { return None };
    let slug = format!("#{}", parts.anchors(dialect).of(AnchorTarget::Heading(heading))?);
    Some(Fix::replace(format!("Name the heading by its anchor: {slug}"), link.subpath_place, slug))
}
