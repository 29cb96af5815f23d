//! Link rewriting (docs/spec/obsidian.md 4): the edits of links when files move or parts of a note are renamed.
//!
//! A link whose text still resolves to the right file keeps every byte. A link that cannot be written safely is refused.

mod part_rename;
mod relink;

use std::collections::{BTreeMap, HashMap, HashSet};

use percent_encoding::percent_encode_byte;
use sidenote_markdown::canvas;
use sidenote_markdown::edit::{Edit, Remark, apply};
use sidenote_markdown::frontmatter::encode_in;
use sidenote_markdown::line::Lines;
use sidenote_markdown::link::{Link, LinkContext, LinkEscape, LinkForm, LinkSyntax, TextForm, is_external};
use sidenote_markdown::link_syntax::percent_decode;
use sidenote_markdown::note::Note;
use sidenote_markdown::path::{NotePath, clean, to_nfc};
use sidenote_markdown::span::Span;
use sidenote_markdown::unlinked_reference::{UnlinkedReference, UnlinkedReferenceKind};

use crate::dialect::{LinkDialect, PathSpelling, SITE_ALIAS, split_query};
use crate::resolve::{FileNames, LinkFormat, LinkTarget};
pub use crate::rewrite::part_rename::{
    PartChanges, PartMap, PartRename, heading_clashes, heading_linktext, misled_by_rename, rename_parts,
};
pub use crate::rewrite::relink::{LinkedPlace, Relink, relink};

/// Parses a note or a canvas, depending on the path.
pub fn parse(path: &NotePath, text: &str) -> Note {
    if path.is_canvas() { canvas::parse(text) } else { Note::parse(text) }
}

/// The file moves of an operation.
#[derive(Debug, Clone, Default)]
pub struct Moves {
    to: BTreeMap<NotePath, NotePath>,
    /// The folders that move as a whole: their old and new paths.
    folders: Vec<(String, String)>,
}

impl Moves {
    /// Adds a move of a file.
    pub fn insert(&mut self, from: NotePath, to: NotePath) {
        self.to.insert(from, to);
    }

    /// Returns the path of a file after the moves.
    pub fn of<'a>(&'a self, path: &'a NotePath) -> &'a NotePath {
        self.to.get(path).unwrap_or(path)
    }

    /// Adds the move of a folder, whose files are added one by one as well.
    pub fn insert_folder(&mut self, from: &NotePath, to: &NotePath) {
        self.folders.push((from.as_str().to_owned(), to.as_str().to_owned()));
    }

    /// Returns the path of a folder after the moves. A folder whose files move alone stays.
    pub fn of_folder(&self, path: &str) -> String {
        let moved = self.folders.iter().find_map(|(from, to)| {
            let rest = path.strip_prefix(from.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{to}{rest}"))
        });
        moved.unwrap_or_else(|| path.to_owned())
    }

    /// Lists the moves of folders.
    pub fn folders(&self) -> impl Iterator<Item = (&str, &str)> {
        self.folders.iter().map(|(from, to)| (from.as_str(), to.as_str()))
    }

    /// Lists the moves, ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = (&NotePath, &NotePath)> {
        self.to.iter()
    }

    /// Returns whether there are no moves.
    pub fn is_empty(&self) -> bool {
        self.to.is_empty()
    }
}

/// The options of link rewriting (docs/spec/obsidian.md 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RewriteOptions {
    /// The form of new link texts.
    pub format: LinkFormat,
    /// A Markdown link that is the exact relative path of its target stays one, because other programs follow it as a
    /// path (docs/spec/git.md 1). It does so even if Obsidian would find the file by a shorter text.
    pub keep_exact_paths: bool,
    /// Keep relative links that Obsidian still resolves, but programs that follow them as file paths no longer do.
    pub keep_lookup_links: bool,
    /// Lengthen links whose target is decided only by the byte order of paths.
    pub stabilise: bool,
    /// Also rewrite links that are a part of a property value (docs/spec/obsidian.md 2.7).
    pub partial_properties: bool,
}

/// The files of a vault before and after an operation.
#[derive(Debug)]
pub struct RenameContext<'a> {
    /// The present paths of all files that a rewritten link can resolve to.
    pub before: &'a FileNames,
    /// The paths of the same files after the operation.
    pub after: &'a FileNames,
    /// The moves of the operation.
    pub moves: &'a Moves,
    /// The future path of the text, if it is not the future path of its file because the text is moved to another note.
    pub destination: Option<&'a NotePath>,
    /// The options of the user.
    pub options: RewriteOptions,
}

/// The link edits of one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkRewrite {
    /// The edits of the file.
    pub edits: Vec<Edit>,
    /// The number of links that the edits change.
    pub links: usize,
    /// Remarks on links that should have been changed and were not.
    pub remarks: Vec<Remark>,
    /// The number of links that were examined, also in texts that were parsed again. It grows linearly with the number
    /// of links.
    pub work: usize,
}

/// A file whose links are rewritten.
struct LinkingFile<'t> {
    path: &'t NotePath,
    text: &'t str,
    note: &'t Note,
    lines: Lines,
    /// The spans of properties whose values have an anchor, alias or tag, in order.
    shared: Vec<Span>,
}

impl<'t> LinkingFile<'t> {
    fn new(path: &'t NotePath, text: &'t str, note: &'t Note) -> Self {
        let properties = note.frontmatter.iter().flat_map(|front| &front.properties);
        let shared = properties.filter(|property| property.shared).map(|property| property.span).collect();
        Self { path, text, note, lines: Lines::new(text), shared }
    }

    /// Returns why the bytes of a link in a property must not be replaced, if they must not.
    fn opaque(&self, link: &Link) -> Option<&'static str> {
        let next = self.shared.partition_point(|span| span.start <= link.span.start);
        let property = next.checked_sub(1).and_then(|at| self.shared.get(at));
        if property.is_some_and(|span| span.encloses(link.span)) {
            return Some("the value has an anchor, alias or tag");
        }
        // Where the bytes of a link are not known, all its spans are those of the value.
        let is_folded = link.place == LinkContext::Property && link.path_span == link.span;
        is_folded.then_some("the value is written on several lines")
    }
}

/// How much of a Markdown link destination is percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EncodingLevel {
    /// As little as possible, as Obsidian does.
    Minimal,
    /// All ASCII punctuation.
    Strict,
}

/// Who decodes a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Obsidian, which knows no query.
    Obsidian,
    /// A web page, where a question mark begins a query.
    Web,
}

/// The links that differ from what was expected when an edited text is parsed again.
#[derive(Debug, PartialEq, Eq)]
enum Mismatch {
    /// There are none: all links resolve as expected.
    None,
    /// These links, given by their old spans, do not resolve as expected.
    Links(HashSet<Span>),
    /// The text has other links than expected.
    Text,
}

/// What a link leads to, apart from how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Aim<'a> {
    File(&'a NotePath),
    /// A folder, from the root of the vault.
    Folder(String),
    /// A path out of the vault or to a hidden file.
    Elsewhere(String),
}

/// The most times that an edited text is parsed again to find which edits are safe.
const MAX_ATTEMPTS: usize = 64;

impl RenameContext<'_> {
    /// Finds the file that a link resolves to now.
    fn target<'n>(&'n self, link: &Link, source: &'n NotePath) -> Option<&'n NotePath> {
        lookup(self.before, link, source).map(|(path, _)| path)
    }

    /// Returns what a link has to lead to after the operation. Returns `None` if it leads to nothing now.
    fn aim_after<'n>(&'n self, path: &str, syntax: LinkSyntax, source: &'n NotePath) -> Option<Aim<'n>> {
        Some(match aim(self.before, path, syntax, source)? {
            Aim::File(path) => Aim::File(self.moves.of(path)),
            Aim::Folder(path) => Aim::Folder(self.moves.of_folder(&path)),
            Aim::Elsewhere(path) => Aim::Elsewhere(path),
        })
    }

    /// Returns whether the path of a link without its query names what the link leads to. Otherwise the file has the
    /// question mark in its name.
    fn names_target(&self, bare: &str, link: &Link, source: &NotePath) -> bool {
        let aim = |path: &str| aim(self.before, path, LinkSyntax::Markdown, source);
        match (aim(bare), aim(&link.path)) {
            (Some(Aim::Elsewhere(_)), Some(Aim::Elsewhere(_))) => true,
            (bare, whole) => bare.is_some() && bare == whole,
        }
    }

    /// Returns whether the path of a link is followed as a file path, before or after the operation.
    fn is_followed_as_path(&self, syntax: LinkSyntax, source: &NotePath) -> bool {
        let follows = |names: &FileNames, at: &NotePath| names.dialects().unit_of(at).dialect.follows_paths();
        syntax == LinkSyntax::Markdown
            && (follows(self.before, source) || follows(self.after, self.path_after(source)))
    }

    /// Returns whether the dialect followed a path before the operation, and afterwards its file is found only because nothing else
    /// fits.
    fn is_followed_no_more(&self, path: &str, source: &NotePath) -> bool {
        let by_other_rules = |names: &FileNames, place: &NotePath| {
            let target = names.target(path, LinkSyntax::Markdown, place);
            matches!(target, Some(LinkTarget::File(_, Some(PathSpelling::ByOtherRules))))
        };
        by_other_rules(self.after, self.path_after(source)) && !by_other_rules(self.before, source)
    }

    /// Returns whether every link of a file with this path certainly keeps each byte, whatever else the link has. A
    /// file with only such links and mentions need not be read: [`RenameContext::retarget`] gives nothing for it,
    /// unless it stabilises links.
    pub fn keeps(&self, path: &str, syntax: LinkSyntax, source: &NotePath) -> bool {
        let place = self.path_after(source);
        if self.is_followed_as_path(syntax, source) {
            let wanted = self.aim_after(path, syntax, source);
            return wanted.is_none()
                || aim(self.after, path, syntax, place) == wanted && !self.is_followed_no_more(path, source);
        }
        let Some(LinkTarget::File(found, _)) = self.before.target(path, syntax, source) else { return true };
        let (target, wanted) = (found.path, self.moves.of(found.path));
        let Some(LinkTarget::File(found, _)) = self.after.target(path, syntax, place) else { return false };
        // A canvas contains paths in their exact spelling.
        let is_stale = syntax == LinkSyntax::Exact && wanted != target;
        let is_broken =
            syntax != LinkSyntax::Exact && self.breaks_file_path(path, (source, target), (place, wanted));
        found.path == wanted && !is_stale && !is_broken
    }

    /// Returns the future path of the file whose links are written.
    fn path_after<'n>(&'n self, source: &'n NotePath) -> &'n NotePath {
        self.destination.unwrap_or_else(|| self.moves.of(source))
    }

    /// Plans the edits of the links of a file, so that each resolves to the same file after the operation.
    ///
    /// `source` is the present path of the file, `text` its content, and `note` the result of [`parse`].
    pub fn retarget(&self, source: &NotePath, text: &str, note: &Note) -> LinkRewrite {
        let file = &LinkingFile::new(source, text, note);
        let mut minimal = self.plan(file, EncodingLevel::Minimal);
        if minimal.edits.is_empty()
            || self.mismatch(file, &minimal.edits, &mut minimal.work) == Mismatch::None
        {
            return minimal;
        }
        let mut strict = self.plan(file, EncodingLevel::Strict);
        strict.work += minimal.work;
        match self.mismatch(file, &strict.edits, &mut strict.work) {
            Mismatch::None => strict,
            mismatch => self.keep_safe_edits(file, mismatch, strict.work),
        }
    }

    /// Keeps the edits that are read back correctly, and refuses the others. It is used when all edits together are not
    /// read back correctly.
    fn keep_safe_edits(&self, file: &LinkingFile<'_>, mismatch: Mismatch, work: usize) -> LinkRewrite {
        let mut kept = LinkRewrite { work, ..LinkRewrite::default() };
        let mut planned: Vec<(&Link, LinkRewrite)> = Vec::new();
        for link in self.rewritable_links(file.note, file.path) {
            let mut one = LinkRewrite::default();
            self.plan_link(file, link, EncodingLevel::Strict, &mut one);
            kept.work += 1;
            kept.remarks.append(&mut one.remarks);
            if !one.edits.is_empty() {
                planned.push((link, one));
            }
        }
        // The links that were not read back correctly are tried last.
        let is_suspect =
            |link: &Link| matches!(&mismatch, Mismatch::Links(spans) if spans.contains(&link.span));
        let (suspect, others): (Vec<_>, Vec<_>) = planned.into_iter().partition(|(link, _)| is_suspect(link));
        let (mut refused, mut attempts) = (Vec::new(), MAX_ATTEMPTS);
        for group in [others, suspect] {
            self.keep_group(file, &group, &mut attempts, &mut kept, &mut refused);
        }
        kept.edits.sort_by_key(|edit| edit.span);
        refused.sort_unstable();
        let message = "the link could not be written in a form that is read back correctly";
        let refusal = |span| remark("reparse-mismatch", file.path, file.text, &file.lines, span, message);
        kept.remarks.extend(refused.into_iter().map(refusal));
        kept.remarks.extend(self.unchanged_mentions(file));
        kept
    }

    /// Keeps the edits of a group if, together with those that are kept already, they are read back correctly.
    /// Otherwise it tries each half. After [`MAX_ATTEMPTS`] attempts the rest is refused, because each attempt parses
    /// the whole text.
    fn keep_group(
        &self,
        file: &LinkingFile<'_>,
        group: &[(&Link, LinkRewrite)],
        attempts: &mut usize,
        kept: &mut LinkRewrite,
        refused: &mut Vec<Span>,
    ) {
        if group.is_empty() {
            return;
        }
        if *attempts > 0 {
            *attempts -= 1;
            let mut tried = kept.edits.clone();
            tried.extend(group.iter().flat_map(|(_, one)| &one.edits).cloned());
            if self.mismatch(file, &tried, &mut kept.work) == Mismatch::None {
                kept.edits = tried;
                kept.links += group.iter().map(|(_, one)| one.links).sum::<usize>();
                return;
            }
            if let (left @ [_, ..], right) = group.split_at(group.len() / 2) {
                self.keep_group(file, left, attempts, kept, refused);
                self.keep_group(file, right, attempts, kept, refused);
                return;
            }
        }
        refused.extend(group.iter().map(|(link, _)| link.span));
    }

    /// Plans the edits of all links of a file.
    fn plan(&self, file: &LinkingFile<'_>, level: EncodingLevel) -> LinkRewrite {
        let mut rewritten = LinkRewrite::default();
        for link in self.rewritable_links(file.note, file.path) {
            self.plan_link(file, link, level, &mut rewritten);
            rewritten.work += 1;
        }
        rewritten.remarks.extend(self.unchanged_mentions(file));
        rewritten
    }

    /// Returns remarks on mentions of moved files that are not links, and are not changed.
    fn unchanged_mentions(&self, file: &LinkingFile<'_>) -> impl Iterator<Item = Remark> {
        let is_include = |mention: &UnlinkedReference| mention.kind == UnlinkedReferenceKind::Include;
        let unchanged = file
            .note
            .mentions
            .iter()
            .filter(move |mention| !self.is_rewritable(mention, file.path) && !is_include(mention));
        unchanged.filter(|mention| !self.keeps_target(file.path, &mention.link)).map(
            |UnlinkedReference { kind, link }| {
                remark(kind.code(), file.path, file.text, &file.lines, link.span, kind.why())
            },
        )
    }

    /// Returns whether a mention in a file is rewritten as a link.
    fn is_rewritable(&self, mention: &UnlinkedReference, source: &NotePath) -> bool {
        match mention.kind {
            UnlinkedReferenceKind::PartialProperty => self.options.partial_properties,
            UnlinkedReferenceKind::HtmlAttribute => true,
            // Elsewhere than in a book it is plain text.
            UnlinkedReferenceKind::Include => {
                self.before.dialects().unit_of(source).dialect == LinkDialect::Mdbook
            }
            _ => false,
        }
    }

    /// Iterates over the links to rewrite: first the links of the note, then mentions.
    fn rewritable_links<'n>(&self, note: &'n Note, source: &NotePath) -> impl Iterator<Item = &'n Link> {
        let mentions = note.mentions.iter().filter(|mention| self.is_rewritable(mention, source));
        note.links.iter().chain(mentions.map(|mention| &mention.link))
    }

    /// Returns whether a link resolves to the same file after the operation, or to none before it.
    fn keeps_target(&self, source: &NotePath, link: &Link) -> bool {
        let Some(target) = self.target(link, source) else { return true };
        let found = lookup(self.after, link, self.path_after(source));
        found.is_some_and(|(path, _)| path == self.moves.of(target))
    }

    /// Plans the edits of one link, or a remark if it cannot be rewritten.
    fn plan_link(
        &self,
        file: &LinkingFile<'_>,
        link: &Link,
        level: EncodingLevel,
        rewritten: &mut LinkRewrite,
    ) {
        let LinkingFile { path: source, text, ref lines, .. } = *file;
        if clean(&link.path).is_empty() {
            return;
        }
        if self.is_followed_as_path(link.form.syntax(), source) {
            return self.plan_path(file, link, level, rewritten);
        }
        let Some(target) = self.target(link, source) else { return };
        let (wanted, place) = (self.moves.of(target), self.path_after(source));
        let found = lookup(self.after, link, place);
        // A canvas contains paths in their exact spelling. Other links ignore case.
        let is_spelled = |path: &str| path == wanted.as_str();
        let is_stale = is_canvas_path(link) && wanted != target && !is_spelled(&link.path);
        let is_kept = !is_stale
            && found.is_some_and(|(path, unstable)| path == wanted && !(self.options.stabilise && unstable));
        let is_markdown = link.escape.inner == LinkEscape::Percent;
        if is_kept && !(is_markdown && self.breaks_file_path(&link.path, (source, target), (place, wanted))) {
            return;
        }
        let mut refuse = |code: &str, message: &str| {
            rewritten.remarks.push(remark(code, source, text, lines, link.span, message));
        };
        if let Some(why) = file.opaque(link) {
            return refuse("yaml-style", why);
        }
        let is_exact =
            is_markdown && self.keeps_file_paths() && self.is_file_path(&link.path, (source, target));
        let linktext = match is_exact {
            true => self.linktext(link, wanted, place, LinkFormat::Relative),
            false => self
                .path_from_root(link, source, target)
                .or_else(|| self.linktext(link, wanted, place, self.options.format)),
        };
        let Some(linktext) = linktext else {
            return refuse("name-not-linkable", "no link text resolves to the new name");
        };
        let inner = match syntax(link, text) {
            DestinationSyntax::Wiki if !fits_in_wikilink(&linktext) => {
                return refuse("name-not-linkable", "a wikilink cannot contain the new name");
            }
            DestinationSyntax::Wiki | DestinationSyntax::Canvas => linktext.clone(),
            DestinationSyntax::Plain => {
                percent_encode(&linktext, level, link.place == LinkContext::Table, Reader::Obsidian)
            }
            DestinationSyntax::Angle => angle_encode(&linktext, level, Reader::Obsidian),
        };
        let Some(raw) = encode_in(link.escape.host, &inner) else {
            return refuse("yaml-style", "this value cannot contain the new name without quotes");
        };
        rewritten.edits.push(Edit::replace(looked_up_span(link, text), raw.clone()));
        rewritten.links += 1;
        rewritten.edits.extend(self.label(link, text, target, wanted, &raw));
    }

    /// Plans the edit of a link whose path is followed as a file path. It keeps its form, and its label stays.
    fn plan_path(
        &self,
        file: &LinkingFile<'_>,
        link: &Link,
        level: EncodingLevel,
        rewritten: &mut LinkRewrite,
    ) {
        let LinkingFile { path: source, text, ref lines, .. } = *file;
        let place = self.path_after(source);
        let leads = |path: &str| aim(self.after, path, LinkSyntax::Markdown, place);
        let Some(wanted) = self.aim_after(&link.path, LinkSyntax::Markdown, source) else { return };
        if leads(&link.path) == Some(wanted) && !self.is_followed_no_more(&link.path, source) {
            return;
        }
        let mut refuse = |code: &str, message: &str| {
            rewritten.remarks.push(remark(code, source, text, lines, link.span, message));
        };
        if let Some(why) = file.opaque(link) {
            return refuse("yaml-style", why);
        }
        // A query stays as it is.
        let raw = link.path_span.of(text);
        let (raw_path, raw_query) = split_query(raw);
        let bare = link.path.strip_suffix(&*percent_decode(raw_query)).unwrap_or(split_query(&link.path).0);
        let (said, span) = match self.names_target(bare, link, source) {
            true => (bare, Span::new(link.path_span.start, link.path_span.start + raw_path.len())),
            false => (link.path.as_str(), link.path_span),
        };
        let Some(wanted) = self.aim_after(said, LinkSyntax::Markdown, source) else { return };
        let spelling = match self.before.target(said, LinkSyntax::Markdown, source) {
            Some(LinkTarget::File(_, spelling)) => spelling,
            _ => None,
        };
        let written = paths_to(&wanted, spelling)
            .into_iter()
            .flat_map(|path| self.path_texts(said, &path, place))
            .find(|text| !is_external(text) && leads(text).as_ref() == Some(&wanted));
        let Some(written) = written else {
            return refuse("name-not-linkable", "no path leads to the new name");
        };
        let encoded = match syntax(link, text) {
            DestinationSyntax::Angle => angle_encode(&written, level, Reader::Web),
            _ => percent_encode(&written, level, link.place == LinkContext::Table, Reader::Web),
        };
        let Some(raw) = encode_in(link.escape.host, &encoded) else {
            return refuse("yaml-style", "this value cannot contain the new name without quotes");
        };
        rewritten.edits.push(Edit::replace(span, raw));
        rewritten.links += 1;
    }

    /// Lists the texts of a link to a path, in the form of the old text first.
    fn path_texts(&self, said: &str, path: &str, place: &NotePath) -> Vec<String> {
        let unit = self.after.dialects().unit_of(place);
        let relative_path = match relative(place.folder(), path) {
            same if same.is_empty() => ".".to_owned(),
            other => other,
        };
        let dotted = format!("./{relative_path}");
        let mut texts = Vec::with_capacity(3);
        if said.starts_with('/') {
            texts.extend(unit.rooted(path));
        }
        if said.starts_with(SITE_ALIAS) && unit.dialect == LinkDialect::Site {
            texts.extend(unit.path_in_project(path));
        }
        if said.starts_with("./") && !relative_path.starts_with("../") {
            texts.push(dotted.clone());
        }
        texts.extend([relative_path, dotted]);
        if said.ends_with('/') {
            texts.iter_mut().filter(|text| !text.ends_with('/')).for_each(|text| text.push('/'));
        }
        texts
    }

    /// Returns the new text of a Markdown link whose path is that of its file from the root, with a folder: it stays such a path,
    /// which other programs follow as well (docs/spec/git.md 1). Returns `None` for other links.
    fn path_from_root(&self, link: &Link, source: &NotePath, target: &NotePath) -> Option<String> {
        let (slash, path) = match link.path.strip_prefix('/') {
            Some(path) => ("/", path),
            None => ("", link.path.as_str()),
        };
        let without_extension = |path: &NotePath| path.as_str().strip_suffix(".md").map(str::to_owned);
        let is_bare = without_extension(target).is_some_and(|bare| bare == path);
        let is_meant = self.options.keep_exact_paths && link.form.syntax() == LinkSyntax::Markdown;
        if !is_meant || !(path == target.as_str() || is_bare) || !link.path.contains('/') {
            return None;
        }
        let (wanted, place) = (self.moves.of(target), self.path_after(source));
        let full = if is_bare { without_extension(wanted) } else { None };
        let text = format!("{slash}{}", full.unwrap_or_else(|| wanted.as_str().to_owned()));
        self.after.resolve(&text, place).is_some_and(|found| found.path == wanted).then_some(text)
    }

    /// Returns whether Markdown links that are file paths stay ones.
    fn keeps_file_paths(&self) -> bool {
        self.options.keep_exact_paths || self.options.format == LinkFormat::Relative
    }

    /// Returns whether the path of a Markdown link was a valid file path before the operation, and is not after it, although
    /// the file may be found by name (docs/spec/obsidian.md 4.1, case W12). `before` and `after` are the linking file
    /// and its target.
    fn breaks_file_path(
        &self,
        path: &str,
        before: (&NotePath, &NotePath),
        after: (&NotePath, &NotePath),
    ) -> bool {
        self.keeps_file_paths()
            && !self.options.keep_lookup_links
            && self.is_file_path(path, before)
            && (before.0.folder(), before.1) != (after.0.folder(), after.1)
            && !self.is_file_path(path, after)
    }

    /// Returns whether the path of a link is the relative path of a file from the folder of the linking file. A vault whose
    /// links are relative can omit the extension of notes.
    fn is_file_path(&self, path: &str, (from, to): (&NotePath, &NotePath)) -> bool {
        // Systems differ in the encoding of accents in names of files.
        let (said, name) = (to_nfc(path.rsplit('/').next().unwrap_or(path)), to_nfc(to.name()));
        let is_bare = self.options.format == LinkFormat::Relative && Some(&*said) == name.strip_suffix(".md");
        // Few links of a vault by names end with that of their file in full.
        if !is_bare && said != name {
            return false;
        }
        let (plain, folder, full) =
            (to_nfc(path.trim_start_matches("./")), to_nfc(from.folder()), to_nfc(to.as_str()));
        let full = if is_bare { full.strip_suffix(".md").unwrap_or(&full) } else { &full };
        plain.split('/').eq(relative_parts(&folder, full))
    }

    /// Returns the text of a link in `source` that resolves to `target` (docs/spec/obsidian.md 4.3), without a subpath.
    /// Returns `None` if there is none.
    fn linktext(
        &self,
        link: &Link,
        target: &NotePath,
        source: &NotePath,
        format: LinkFormat,
    ) -> Option<String> {
        if is_canvas_path(link) {
            return Some(target.as_str().to_owned());
        }
        if format == LinkFormat::Relative && link.path.starts_with("./") {
            let path = relative(source.folder(), target.as_str());
            let dotted = format!("./{path}");
            let found = self.after.resolve(&dotted, source).is_some_and(|found| found.path == target);
            if found && !path.starts_with("../") {
                return Some(dotted);
            }
        }
        looked_up_text(self.after, target, source, format, link.escape.inner == LinkEscape::Percent)
    }

    /// Returns the edit of the alias or label that belongs to a new destination (docs/spec/obsidian.md 4.4).
    fn label(&self, link: &Link, text: &str, old: &NotePath, new: &NotePath, raw: &str) -> Option<Edit> {
        let span = link.alias_span.filter(|span| !span.is_empty())?;
        let label = span.of(text);
        let is_wiki = matches!(syntax(link, text), DestinationSyntax::Wiki);
        let is_definition = matches!(link.form, LinkForm::Refdef | LinkForm::CanvasText(TextForm::Refdef));
        if is_definition || (link.embed && !is_wiki) {
            return None;
        }
        let stem = old.stem();
        let replacement = if is_wiki {
            (link.path.contains('/') && label == stem).then(|| new.stem().to_owned())?
        } else if label == stem {
            new.stem().to_owned()
        } else if label == link.path_span.of(text) {
            raw.to_owned()
        } else {
            return None;
        };
        let is_safe = !replacement.contains(['[', ']', '|', '\\', '`', '<', '\n']);
        let encoded = encode_in(link.escape.host, &replacement).filter(|_| is_safe)?;
        (encoded != label).then(|| Edit::replace(span, encoded))
    }

    /// Parses the edited text again. It must have the same links in the same order, and each must resolve as expected.
    fn mismatch(&self, file: &LinkingFile<'_>, edits: &[Edit], work: &mut usize) -> Mismatch {
        let place = self.path_after(file.path);
        let Ok(changed) = apply(file.text.as_bytes(), edits) else { return Mismatch::Text };
        let Ok(changed) = String::from_utf8(changed) else { return Mismatch::Text };
        let reparsed = parse(place, &changed);
        let count = self.rewritable_links(file.note, file.path).count();
        *work += count;
        if self.rewritable_links(&reparsed, file.path).count() != count
            || reparsed.links.len() != file.note.links.len()
        {
            return Mismatch::Text;
        }
        let mut edited: HashMap<usize, Span> = HashMap::with_capacity(edits.len());
        for span in edits.iter().map(|edit| edit.span) {
            // Of edits that begin at one place, the shortest lies in the path of a link if any does.
            edited.entry(span.start).and_modify(|known| *known = (*known).min(span)).or_insert(span);
        }
        let mut wrong = HashSet::new();
        for (old, new) in
            self.rewritable_links(file.note, file.path).zip(self.rewritable_links(&reparsed, file.path))
        {
            // A query behind a path is not a part of the edit.
            let touched = edited.get(&old.path_span.start).is_some_and(|span| old.path_span.encloses(*span));
            let is_same = old.form == new.form && old.subpath == new.subpath && old.embed == new.embed;
            if !(touched || is_same && old.path == new.path) {
                return Mismatch::Text;
            }
            let leads = aim(self.after, &new.path, new.form.syntax(), place);
            if touched && !(is_same && leads == self.aim_after(&old.path, old.form.syntax(), file.path)) {
                wrong.insert(old.span);
            }
        }
        if wrong.is_empty() { Mismatch::None } else { Mismatch::Links(wrong) }
    }
}

/// Returns the bytes of a link's path that are looked up by name. An encoded `#` and what is behind it are left out.
fn looked_up_span(link: &Link, text: &str) -> Span {
    let raw = link.path_span.of(text);
    let end = raw.find("%23").filter(|_| link.escape.inner == LinkEscape::Percent);
    Span::new(link.path_span.start, link.path_span.start + end.unwrap_or(raw.len()))
}

/// Returns whether a link is the path of a canvas node.
fn is_canvas_path(link: &Link) -> bool {
    matches!(link.form, LinkForm::CanvasFile | LinkForm::CanvasGroup)
}

/// Finds the file that a link resolves to, and whether only the byte order of paths decided that.
fn lookup<'n>(names: &'n FileNames, link: &Link, source: &'n NotePath) -> Option<(&'n NotePath, bool)> {
    names.follow(link, source).map(|found| (found.path, found.unstable))
}

/// Finds what a link leads to.
fn aim<'n>(names: &'n FileNames, path: &str, syntax: LinkSyntax, source: &'n NotePath) -> Option<Aim<'n>> {
    Some(match names.target(path, syntax, source)? {
        LinkTarget::File(found, _) => Aim::File(found.path),
        LinkTarget::Folder(path) => Aim::Folder(path),
        LinkTarget::Elsewhere(path) => Aim::Elsewhere(path),
    })
}

/// Lists the paths by which a target can be written, in the spelling of the old text first.
fn paths_to(target: &Aim<'_>, spelling: Option<PathSpelling>) -> Vec<String> {
    match target {
        Aim::File(path) => {
            let spelled = spelling.and_then(|spelling| spelling.spell(path.as_str()));
            let shorter = (spelling == Some(PathSpelling::Folder))
                .then(|| PathSpelling::WithoutExtension.spell(path.as_str()))
                .flatten();
            spelled.into_iter().chain(shorter).chain([path.as_str().to_owned()]).collect()
        }
        Aim::Folder(path) | Aim::Elsewhere(path) => vec![path.clone()],
    }
}

/// Returns the text of a link in `source` that resolves to `target` (docs/spec/obsidian.md 4.3), without a subpath.
/// Returns `None` if there is none.
///
/// With `with_extension`, the text keeps `.md`, as in Markdown links.
pub fn linktext(
    names: &FileNames,
    target: &NotePath,
    source: &NotePath,
    format: LinkFormat,
    with_extension: bool,
) -> Option<String> {
    if with_extension && names.dialects().unit_of(source).dialect.follows_paths() {
        let resolves = |text: &str| aim(names, text, LinkSyntax::Markdown, source) == Some(Aim::File(target));
        let path = relative(source.folder(), target.as_str());
        return [path.clone(), format!("./{path}")].into_iter().find(|text| resolves(text));
    }
    looked_up_text(names, target, source, format, with_extension)
}

/// Returns the text of a link in `source` that resolves to `target` by lookup. Returns `None` if there is none.
fn looked_up_text(
    names: &FileNames,
    target: &NotePath,
    source: &NotePath,
    format: LinkFormat,
    with_extension: bool,
) -> Option<String> {
    let relative_path = relative(source.folder(), target.as_str());
    let explicit = format!("./{relative_path}");
    let full = target.as_str().to_owned();
    let rooted = format!("/{full}");
    let candidates = match format {
        LinkFormat::Shortest if names.has_unique_name(target) => vec![target.name().to_owned(), full, rooted],
        LinkFormat::Shortest | LinkFormat::Absolute => vec![full, rooted],
        LinkFormat::Relative => vec![relative_path, explicit, full, rooted],
    };
    // What begins like a URL is one to a Markdown parser.
    let is_url = |text: &str| with_extension && is_external(text);
    let resolves =
        |text: &str| !is_url(text) && names.resolve(text, source).is_some_and(|found| found.path == target);
    candidates.into_iter().find_map(|candidate| {
        let bare = candidate.len().checked_sub(3).and_then(|end| candidate.get(..end));
        let bare = bare.filter(|_| target.is_note() && !with_extension);
        bare.filter(|bare| resolves(bare))
            .map(str::to_owned)
            .or_else(|| resolves(&candidate).then_some(candidate))
    })
}

/// Returns the relative path from a folder to a file, both given from the root of the vault.
fn relative(folder: &str, path: &str) -> String {
    relative_parts(folder, path).collect::<Vec<_>>().join("/")
}

/// Lists the parts of the relative path from a folder to a file.
fn relative_parts<'p>(folder: &'p str, path: &'p str) -> impl Iterator<Item = &'p str> {
    let parts = |path: &'p str| path.split('/').filter(|part| !part.is_empty());
    let folders = parts(path).count().saturating_sub(1);
    let shared = parts(folder).zip(parts(path)).take(folders).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", parts(folder).count() - shared);
    up.chain(parts(path).skip(shared))
}

/// The syntax of a link destination.
enum DestinationSyntax {
    Wiki,
    Plain,
    Angle,
    Canvas,
}

fn syntax(link: &Link, text: &str) -> DestinationSyntax {
    let is_angle = || {
        let before = link.dest_span.start.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        before == Some(&b'<')
    };
    match link.form {
        LinkForm::Wiki | LinkForm::FmWiki | LinkForm::CanvasText(TextForm::Wiki) => DestinationSyntax::Wiki,
        LinkForm::CanvasFile | LinkForm::CanvasGroup => DestinationSyntax::Canvas,
        _ if is_angle() => DestinationSyntax::Angle,
        _ => DestinationSyntax::Plain,
    }
}

/// Returns whether a wikilink can contain a path as its target (docs/spec/obsidian.md 1.6, 4.3).
pub fn fits_in_wikilink(path: &str) -> bool {
    !path.contains(['#', '|', '^', '\n', '\r'])
        && !path.contains("[[")
        && !path.contains("]]")
        && !path.contains("%%")
        && !path.ends_with([']', '\\'])
}

/// Encodes a path as the destination of a Markdown link without angle brackets (docs/spec/obsidian.md 4.3).
fn percent_encode(path: &str, level: EncodingLevel, in_table: bool, reader: Reader) -> String {
    let balanced = is_balanced(path);
    let mut out = String::with_capacity(path.len() + 8);
    for (at, c) in path.char_indices() {
        let is_encoded = match c {
            ' ' | '\\' => true,
            _ if c.is_control() => true,
            '(' | ')' => !balanced || level == EncodingLevel::Strict,
            '<' => at == 0 || level == EncodingLevel::Strict,
            '|' => in_table || level == EncodingLevel::Strict,
            '?' if reader == Reader::Web => true,
            '%' | '#' => true,
            '/' | '.' | '-' | '_' | '~' => false,
            _ => level == EncodingLevel::Strict && c.is_ascii_punctuation(),
        };
        push(c, is_encoded, &mut out);
    }
    out
}

/// Encodes a path as the destination of a Markdown link in angle brackets.
fn angle_encode(path: &str, level: EncodingLevel, reader: Reader) -> String {
    let mut out = String::with_capacity(path.len() + 8);
    for c in path.chars() {
        let is_encoded = match c {
            '<' | '>' | '\\' | '#' | '%' => true,
            _ if c.is_control() => true,
            '?' if reader == Reader::Web => true,
            ' ' | '/' | '.' | '-' | '_' | '~' => false,
            _ => level == EncodingLevel::Strict && c.is_ascii_punctuation(),
        };
        push(c, is_encoded, &mut out);
    }
    out
}

/// Encodes a path as the destination of a new Markdown link, with or without angle brackets around it, so that Obsidian and
/// web pages read it alike.
pub fn markdown_destination(path: &str, in_angle_brackets: bool) -> String {
    if in_angle_brackets {
        angle_encode(path, EncodingLevel::Minimal, Reader::Web)
    } else {
        percent_encode(path, EncodingLevel::Minimal, false, Reader::Web)
    }
}

/// Appends a character, percent-encoded or as it is.
fn push(c: char, is_encoded: bool, out: &mut String) {
    if !is_encoded {
        out.push(c);
        return;
    }
    let mut bytes = [0; 4];
    for byte in c.encode_utf8(&mut bytes).bytes() {
        out.push_str(percent_encode_byte(byte));
    }
}

fn is_balanced(path: &str) -> bool {
    let mut open = 0i32;
    for c in path.chars() {
        open += i32::from(c == '(') - i32::from(c == ')');
        if open < 0 {
            return false;
        }
    }
    open == 0
}

fn remark(code: &str, path: &NotePath, text: &str, lines: &Lines, span: Span, message: &str) -> Remark {
    let line = lines.of(span.start);
    Remark {
        code: code.to_owned(),
        path: path.clone(),
        line,
        column: span.start.saturating_sub(lines.start(line)) + 1,
        message: format!("{message}: {}", span.of(text)),
    }
}
