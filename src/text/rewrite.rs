//! Link rewriting (spec/obsidian.md 4): the edits of links when files move or parts of a note are renamed.
//!
//! A link whose text still resolves to the right file keeps every byte. A link that cannot be written safely is refused.

use std::collections::{BTreeMap, HashSet};

use percent_encoding::percent_encode_byte;

use crate::text::canvas;
use crate::text::edit::{Edit, Remark, apply};
use crate::text::frontmatter::encode_in;
use crate::text::line::Lines;
use crate::text::link::{Link, LinkContext, LinkEscape, LinkForm, TextForm};
use crate::text::link_syntax::is_external;
use crate::text::note::{Note, heading_key};
use crate::text::path::{NotePath, clean};
use crate::text::resolve::{FileNames, LinkFormat};
use crate::text::span::Span;
use crate::text::subpath::{SubpathTable, SubpathTarget};
use crate::text::unlinked_reference::{UnlinkedReference, UnlinkedReferenceKind};

/// Reads a note or a canvas.
pub fn parse(path: &NotePath, text: &str) -> Note {
    if path.is_canvas() { canvas::parse(text) } else { Note::parse(text) }
}

/// The file moves of an operation.
#[derive(Debug, Clone, Default)]
pub struct Moves {
    to: BTreeMap<NotePath, NotePath>,
}

impl Moves {
    /// Adds a file that moves.
    pub fn insert(&mut self, from: NotePath, to: NotePath) {
        self.to.insert(from, to);
    }

    /// Returns the place of a file afterwards.
    pub fn of<'a>(&'a self, path: &'a NotePath) -> &'a NotePath {
        self.to.get(path).unwrap_or(path)
    }

    /// Lists the moves, ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = (&NotePath, &NotePath)> {
        self.to.iter()
    }

    /// Says whether nothing moves.
    pub fn is_empty(&self) -> bool {
        self.to.is_empty()
    }
}

/// The options of link rewriting (spec/obsidian.md 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RewriteOptions {
    /// The form of the link texts that we write.
    pub format: LinkFormat,
    /// Leave a relative link alone that other programs would not find any more, as long as Obsidian does.
    pub keep_lookup_links: bool,
    /// Lengthen links whose target only the order of bytes decides.
    pub stabilise: bool,
    /// Rewrite links that are a part of a property value too (spec/obsidian.md 2.7).
    pub partial_properties: bool,
}

/// The names of a vault before and after an operation.
#[derive(Debug)]
pub struct RenameContext<'a> {
    /// Every file that a link in question could mean, where it is now.
    pub before: &'a FileNames,
    /// The same, where it will be.
    pub after: &'a FileNames,
    /// The way from one to the other.
    pub moves: &'a Moves,
    /// Where the text in question will be, where that is not where its file goes: a part that is taken out.
    pub place: Option<&'a NotePath>,
    /// What the user asked for.
    pub options: RewriteOptions,
}

/// The link edits of one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkRewrite {
    /// The bytes to change.
    pub edits: Vec<Edit>,
    /// How many links they change.
    pub links: usize,
    /// Links that were left alone and should not have been.
    pub remarks: Vec<Remark>,
    /// How many links were looked at, texts read back included: it grows with the links, and not with their square.
    pub work: usize,
}

/// A file whose links are checked.
struct LinkingFile<'t> {
    path: &'t NotePath,
    text: &'t str,
    note: &'t Note,
    lines: Lines,
    /// The properties whose values have an anchor, alias or tag, in order.
    shared: Vec<Span>,
}

impl<'t> LinkingFile<'t> {
    fn new(path: &'t NotePath, text: &'t str, note: &'t Note) -> Self {
        let properties = note.frontmatter.iter().flat_map(|front| &front.properties);
        let shared = properties.filter(|property| property.shared).map(|property| property.span).collect();
        Self { path, text, note, lines: Lines::new(text), shared }
    }

    /// Says whether a link is in such a property.
    fn is_shared(&self, link: Span) -> bool {
        let behind = self.shared.partition_point(|span| span.start <= link.start);
        behind.checked_sub(1).and_then(|at| self.shared.get(at)).is_some_and(|span| span.encloses(link))
    }
}

/// How much of a Markdown link destination is percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EncodingLevel {
    /// As little as possible, like Obsidian.
    Usual,
    /// All ASCII punctuation.
    Strict,
}

/// The result of parsing an edited text again.
#[derive(Debug, PartialEq, Eq)]
enum ReadBack {
    /// All links resolve as expected.
    Nothing,
    /// These links, by their old spans, do not resolve as expected.
    Links(HashSet<Span>),
    /// The text has other links than expected.
    Text,
}

/// An edited text is read back at most so many times to find which edits it bears.
const ATTEMPTS: usize = 64;

impl RenameContext<'_> {
    /// Finds the file that a link means now.
    fn target<'n>(&'n self, link: &Link, source: &'n NotePath) -> Option<&'n NotePath> {
        lookup(self.before, link, source).map(|(path, _)| path)
    }

    /// Returns the place that links are written for.
    fn place_of<'n>(&'n self, source: &'n NotePath) -> &'n NotePath {
        self.place.unwrap_or_else(|| self.moves.of(source))
    }

    /// Says how the links of a file must change so that each means the same file afterwards.
    ///
    /// `source` is where the file is now, `text` what it holds, `note` what [`parse`] read out of it.
    pub fn retarget(&self, source: &NotePath, text: &str, note: &Note) -> LinkRewrite {
        let file = LinkingFile::new(source, text, note);
        let mut usual = self.plan(&file, EncodingLevel::Usual);
        if usual.edits.is_empty() || self.misread(&file, &usual.edits, &mut usual.work) == ReadBack::Nothing {
            return usual;
        }
        let mut strict = self.plan(&file, EncodingLevel::Strict);
        strict.work += usual.work;
        match self.misread(&file, &strict.edits, &mut strict.work) {
            ReadBack::Nothing => strict,
            misread => self.keep_what_holds(&file, misread, strict.work),
        }
    }

    /// Keeps the edits that read back and refuses the others, where all of them together do not.
    fn keep_what_holds(&self, file: &LinkingFile<'_>, misread: ReadBack, work: usize) -> LinkRewrite {
        let mut kept = LinkRewrite { work, ..LinkRewrite::default() };
        let mut planned: Vec<(&Link, LinkRewrite)> = Vec::new();
        for link in self.followed(file.note) {
            let mut one = LinkRewrite::default();
            self.plan_link(file, link, EncodingLevel::Strict, &mut one);
            kept.work += 1;
            kept.remarks.append(&mut one.remarks);
            if !one.edits.is_empty() {
                planned.push((link, one));
            }
        }
        // Mostly the links that do not read back can be told at once; they come last.
        let is_doubtful =
            |link: &Link| matches!(&misread, ReadBack::Links(spans) if spans.contains(&link.span));
        let (doubtful, fine): (Vec<_>, Vec<_>) = planned.into_iter().partition(|(link, _)| is_doubtful(link));
        let (mut refused, mut attempts) = (Vec::new(), ATTEMPTS);
        for group in [fine, doubtful] {
            self.keep_group(file, &group, &mut attempts, &mut kept, &mut refused);
        }
        kept.edits.sort_by_key(|edit| edit.span);
        refused.sort_unstable();
        let message = "the link could not be written in a form that is read back correctly";
        let refusal = |span| remark("reparse-mismatch", file.path, file.text, &file.lines, span, message);
        kept.remarks.extend(refused.into_iter().map(refusal));
        kept.remarks.extend(self.left(file));
        kept
    }

    /// Keeps the edits of a group that read back with what is kept already: of all of it, else of either half. After so
    /// many attempts the rest is refused, for each attempt reads the whole text.
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
            if self.misread(file, &tried, &mut kept.work) == ReadBack::Nothing {
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

    fn plan(&self, file: &LinkingFile<'_>, care: EncodingLevel) -> LinkRewrite {
        let mut rewritten = LinkRewrite::default();
        for link in self.followed(file.note) {
            self.plan_link(file, link, care, &mut rewritten);
            rewritten.work += 1;
        }
        rewritten.remarks.extend(self.left(file));
        rewritten
    }

    /// Tells of names of moved files that are no links, and so stay as they are.
    fn left(&self, file: &LinkingFile<'_>) -> impl Iterator<Item = Remark> {
        let left = file.note.mentions.iter().filter(|mention| !self.follows(mention));
        left.filter(|mention| !self.stays(file.path, &mention.link)).map(
            |UnlinkedReference { kind, link }| {
                remark(kind.code(), file.path, file.text, &file.lines, link.span, kind.why())
            },
        )
    }

    /// Says whether a mention is treated as a link.
    fn follows(&self, mention: &UnlinkedReference) -> bool {
        self.options.partial_properties && mention.kind == UnlinkedReferenceKind::PartialProperty
    }

    /// Lists the links that are rewritten, those of the note's own list first.
    fn followed<'n>(&self, note: &'n Note) -> impl Iterator<Item = &'n Link> {
        let mentions = note.mentions.iter().filter(|mention| self.follows(mention));
        note.links.iter().chain(mentions.map(|mention| &mention.link))
    }

    /// Says whether a link means the same file afterwards, or meant none.
    fn stays(&self, source: &NotePath, link: &Link) -> bool {
        let Some(target) = self.target(link, source) else { return true };
        let found = lookup(self.after, link, self.place_of(source));
        found.is_some_and(|(path, _)| path == self.moves.of(target))
    }

    fn plan_link(
        &self,
        file: &LinkingFile<'_>,
        link: &Link,
        care: EncodingLevel,
        rewritten: &mut LinkRewrite,
    ) {
        let LinkingFile { path: source, text, ref lines, .. } = *file;
        if clean(&link.path).is_empty() || is_external(&link.path) {
            return;
        }
        let Some(target) = self.target(link, source) else { return };
        let (wanted, place) = (self.moves.of(target), self.place_of(source));
        let found = lookup(self.after, link, place);
        // A canvas names its files as they are spelled; other links find them without regard to case.
        let is_spelled = |path: &str| path == wanted.as_str();
        let is_stale = is_canvas_path(link) && wanted != target && !is_spelled(&link.path);
        let still = !is_stale
            && found.is_some_and(|(path, unstable)| path == wanted && !(self.options.stabilise && unstable));
        if still && !self.leads_astray(link, source, target) {
            return;
        }
        let mut refuse = |code: &str, message: &str| {
            rewritten.remarks.push(remark(code, source, text, lines, link.span, message));
        };
        let raw_path = link.path_span.of(text);
        if link.escape.inner == LinkEscape::Percent && raw_path.contains("%23") {
            return refuse("percent-hash", "the link contains a percent-encoded `#`");
        }
        if file.is_shared(link.span) {
            return refuse("yaml-style", "the value has an anchor, alias or tag");
        }
        let Some(linktext) = self.linktext(link, wanted, place) else {
            return refuse("name-not-linkable", "no link text resolves to the new name");
        };
        let inner = match syntax(link, text) {
            DestinationSyntax::Wiki if !stands_in_wikilink(&linktext) => {
                return refuse("name-not-linkable", "a wikilink cannot contain the new name");
            }
            DestinationSyntax::Wiki | DestinationSyntax::Canvas => linktext.clone(),
            DestinationSyntax::Plain => percent_encode(&linktext, care, link.place == LinkContext::Table),
            DestinationSyntax::Angle => angle_encode(&linktext, care),
        };
        let Some(raw) = encode_in(link.escape.host, &inner) else {
            return refuse("yaml-style", "this value cannot contain the new name without quotes");
        };
        rewritten.edits.push(Edit::replace(link.path_span, raw.clone()));
        rewritten.links += 1;
        rewritten.edits.extend(self.label(link, text, target, wanted, &raw));
    }

    /// Says whether a link of the relative kind was the way through the file system before its note moved, and would
    /// not be after (spec/obsidian.md 4.1, case W12).
    fn leads_astray(&self, link: &Link, source: &NotePath, target: &NotePath) -> bool {
        let place = self.place_of(source);
        let is_markdown = link.escape.inner == LinkEscape::Percent;
        if self.options.format != LinkFormat::Relative
            || self.options.keep_lookup_links
            || !is_markdown
            || source.folder() == place.folder()
        {
            return false;
        }
        let plain = link.path.trim_start_matches("./");
        let led = |from: &NotePath, to: &NotePath| {
            let way = relative(from.folder(), to.as_str());
            plain == way || Some(plain) == way.strip_suffix(".md")
        };
        led(source, target) && !led(place, self.moves.of(target))
    }

    /// Returns the text by which a link in `source` finds `target` (spec/obsidian.md 4.3); `None` where none does.
    fn linktext(&self, link: &Link, target: &NotePath, source: &NotePath) -> Option<String> {
        if is_canvas_path(link) {
            return Some(target.as_str().to_owned());
        }
        linktext(self.after, target, source, self.options.format, link.escape.inner == LinkEscape::Percent)
    }

    /// Returns the change of alias or label that goes with a new destination (spec/obsidian.md 4.4).
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

    /// Reads the edited text back: there must be the same links in the same order, each meaning what it should.
    fn misread(&self, file: &LinkingFile<'_>, edits: &[Edit], work: &mut usize) -> ReadBack {
        let place = self.place_of(file.path);
        let Ok(changed) = apply(file.text.as_bytes(), edits) else { return ReadBack::Text };
        let Ok(changed) = String::from_utf8(changed) else { return ReadBack::Text };
        let again = parse(place, &changed);
        let count = self.followed(file.note).count();
        *work += count;
        if self.followed(&again).count() != count || again.links.len() != file.note.links.len() {
            return ReadBack::Text;
        }
        let edited: HashSet<Span> = edits.iter().map(|edit| edit.span).collect();
        let mut wrong = HashSet::new();
        for (old, new) in self.followed(file.note).zip(self.followed(&again)) {
            let touched = edited.contains(&old.path_span);
            let is_same = old.form == new.form && old.subpath == new.subpath && old.embed == new.embed;
            if !(touched || is_same && old.path == new.path) {
                return ReadBack::Text;
            }
            let wanted = self.target(old, file.path).map(|target| self.moves.of(target));
            if touched && !(is_same && lookup(self.after, new, place).map(|(path, _)| path) == wanted) {
                wrong.insert(old.span);
            }
        }
        if wrong.is_empty() { ReadBack::Nothing } else { ReadBack::Links(wrong) }
    }
}

/// Says whether a link is the path of a canvas's node.
fn is_canvas_path(link: &Link) -> bool {
    matches!(link.form, LinkForm::CanvasFile | LinkForm::CanvasGroup)
}

/// Finds the file that a link means, and whether only the order of bytes decided that.
fn lookup<'n>(names: &'n FileNames, link: &Link, source: &'n NotePath) -> Option<(&'n NotePath, bool)> {
    let found = match link.form {
        LinkForm::CanvasFile | LinkForm::CanvasGroup => names.resolve_exact(&link.path),
        _ => names.resolve(&link.path, source),
    };
    found.map(|found| (found.path, found.unstable))
}

/// Returns the text by which a link in `source` finds `target` (spec/obsidian.md 4.3), without a subpath; `None` where
/// none does.
///
/// `with_extension` is for Markdown links, which keep `.md`.
pub fn linktext(
    names: &FileNames,
    target: &NotePath,
    source: &NotePath,
    format: LinkFormat,
    with_extension: bool,
) -> Option<String> {
    let way = relative(source.folder(), target.as_str());
    let beside = format!("./{way}");
    let full = target.as_str().to_owned();
    let rooted = format!("/{full}");
    let candidates = match format {
        LinkFormat::Shortest if names.is_alone(target) => vec![target.name().to_owned(), full, rooted],
        LinkFormat::Shortest | LinkFormat::Absolute => vec![full, rooted],
        LinkFormat::Relative => vec![way, beside, full, rooted],
    };
    let finds = |text: &str| names.resolve(text, source).is_some_and(|found| found.path == target);
    candidates.into_iter().find_map(|candidate| {
        let bare = candidate.len().checked_sub(3).and_then(|end| candidate.get(..end));
        let bare = bare.filter(|_| target.is_note() && !with_extension);
        bare.filter(|bare| finds(bare)).map(str::to_owned).or_else(|| finds(&candidate).then_some(candidate))
    })
}

/// Returns the way from a folder to a path, both from the root of the vault.
fn relative(folder: &str, path: &str) -> String {
    let from: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let to: Vec<&str> = path.split('/').collect();
    let folders = to.len().saturating_sub(1);
    let shared = from.iter().zip(&to).take(folders).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", from.len() - shared);
    up.chain(to.iter().skip(shared).copied()).collect::<Vec<_>>().join("/")
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

/// Says whether a path can be the target of a wikilink (spec/obsidian.md 1.6, 4.3).
pub fn stands_in_wikilink(path: &str) -> bool {
    !path.contains(['#', '|', '^', '\n', '\r'])
        && !path.contains("[[")
        && !path.contains("]]")
        && !path.contains("%%")
        && !path.ends_with([']', '\\'])
}

/// Encodes a path as the destination of a Markdown link without angle brackets (spec/obsidian.md 4.3).
fn percent_encode(path: &str, care: EncodingLevel, in_table: bool) -> String {
    let balanced = is_balanced(path);
    let mut out = String::with_capacity(path.len() + 8);
    for (at, c) in path.char_indices() {
        let coded = match c {
            ' ' | '\\' => true,
            _ if c.is_control() => true,
            '(' | ')' => !balanced || care == EncodingLevel::Strict,
            '<' => at == 0 || care == EncodingLevel::Strict,
            '|' => in_table || care == EncodingLevel::Strict,
            '%' => is_percent_code(path.get(at + 1..).unwrap_or("")) || care == EncodingLevel::Strict,
            '#' => true,
            '/' | '.' | '-' | '_' | '~' => false,
            _ => care == EncodingLevel::Strict && c.is_ascii_punctuation(),
        };
        push(c, coded, &mut out);
    }
    out
}

/// Encodes a path as the destination of a Markdown link in angle brackets.
fn angle_encode(path: &str, care: EncodingLevel) -> String {
    let mut out = String::with_capacity(path.len() + 8);
    for (at, c) in path.char_indices() {
        let coded = match c {
            '<' | '>' | '\\' | '#' => true,
            _ if c.is_control() => true,
            '%' => is_percent_code(path.get(at + 1..).unwrap_or("")) || care == EncodingLevel::Strict,
            ' ' | '/' | '.' | '-' | '_' | '~' => false,
            _ => care == EncodingLevel::Strict && c.is_ascii_punctuation(),
        };
        push(c, coded, &mut out);
    }
    out
}

fn push(c: char, coded: bool, out: &mut String) {
    if !coded {
        out.push(c);
        return;
    }
    let mut bytes = [0; 4];
    for byte in c.encode_utf8(&mut bytes).bytes() {
        out.push_str(percent_encode_byte(byte));
    }
}

fn is_percent_code(rest: &str) -> bool {
    rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit())
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

/// Returns the text that names a heading in a link (spec/obsidian.md 3.6, *heading_linktext*).
pub fn heading_linktext(heading: &str) -> String {
    let mut plain = heading.to_owned();
    for pair in ["%%", "[[", "]]"] {
        plain = plain.replace(pair, " ");
    }
    let words = plain.split(|c: char| c.is_whitespace() || matches!(c, ':' | '#' | '|' | '^' | '\\'));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A part of a note with its new name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartRename {
    /// The heading of this index, and its new text.
    Heading(usize, String),
    /// The block of this index, and its new id.
    Block(usize, String),
}

/// Says how the links of a file must change when a part of another note, or of its own, gets another name.
///
/// `is_target` says whether a link means the note whose part it is, and `target` is that note as it is now.
pub fn rename_part(
    source: &NotePath,
    text: &str,
    note: &Note,
    target: &Note,
    part: &PartRename,
    is_target: impl Fn(&Link) -> bool,
) -> LinkRewrite {
    let lines = Lines::new(text);
    let parts = SubpathTable::new(target);
    let mut rewritten = LinkRewrite::default();
    for link in note.links.iter().filter(|link| !link.subpath.is_empty() && is_target(link)) {
        let Some((span, new)) = renamed_segment(link, text, &parts, part) else { continue };
        let inner = match syntax(link, text) {
            DestinationSyntax::Wiki | DestinationSyntax::Canvas => new,
            DestinationSyntax::Plain => {
                percent_encode(&new, EncodingLevel::Usual, link.place == LinkContext::Table)
            }
            DestinationSyntax::Angle => angle_encode(&new, EncodingLevel::Usual),
        };
        match encode_in(link.escape.host, &inner) {
            Some(raw) => {
                rewritten.edits.push(Edit::replace(span, raw));
                rewritten.links += 1;
            }
            None => {
                let message = "this value cannot contain the new name without quotes";
                rewritten.remarks.push(remark("yaml-style", source, text, &lines, link.span, message));
            }
        }
    }
    rewritten.work = parts.work();
    rewritten
}

/// Finds the segment of a link's subpath that names the part, and what it becomes.
fn renamed_segment(
    link: &Link,
    text: &str,
    parts: &SubpathTable<'_>,
    part: &PartRename,
) -> Option<(Span, String)> {
    let raw = link.subpath_span.of(text);
    let mut decoded = link.subpath.split('#').filter(|segment| !segment.trim().is_empty());
    let mut upto = String::new();
    let mut at = link.subpath_span.start;
    for piece in raw.split('#') {
        let start = at;
        at += piece.len() + 1;
        let said = piece.trim();
        if said.is_empty() {
            continue;
        }
        let segment = decoded.next()?;
        upto.push('#');
        upto.push_str(segment);
        let lead = piece.len() - piece.trim_start().len();
        let span = Span::new(start + lead, start + lead + said.len());
        match (part, parts.find(&upto)) {
            (PartRename::Heading(index, new), Some(SubpathTarget::Heading(found))) if found == *index => {
                return Some((span, heading_linktext(new)));
            }
            (PartRename::Block(index, new), Some(SubpathTarget::Block(found))) if found == *index => {
                return Some((span, format!("^{new}")));
            }
            _ => {}
        }
    }
    None
}

/// Says whether another heading of the note would be found in place of one that is renamed to `new`, or would be
/// hidden by it.
pub fn heading_clashes(note: &Note, index: usize, new: &str) -> bool {
    let key = heading_key(&heading_linktext(new));
    note.headings.iter().enumerate().any(|(at, heading)| at != index && heading_key(&heading.text) == key)
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
