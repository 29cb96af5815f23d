//! The inline scanner: wikilinks, Markdown links, tags, comments, math and searchable pieces of one leaf block
//! (docs/spec/obsidian.md 2 and 6).
//!
//! The input are the runs of the Markdown parser. The scanner does not depend on the block structure.

use std::cell::Cell;

use crate::link::{Link, LinkContext, LinkForm};
use crate::link_syntax::Destination;
use crate::note::{Piece, PieceKind, Separator};
use crate::span::Span;
use crate::tag::{Tag, is_tag_char, is_tag_name};

/// A run of a leaf block from the Markdown parser. The bytes between runs are markup.
#[derive(Debug, Clone, Copy)]
pub(super) struct InlineRun {
    pub(super) kind: RunKind,
    pub(super) span: Span,
}

/// The kind of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunKind {
    /// Literal text.
    Text,
    /// Literal text whose first character a backslash escapes.
    Escaped,
    /// A code span with its backticks.
    Code,
    /// An inline HTML tag or comment.
    Html,
    /// A character reference, and whether it is part of a word.
    Entity(bool),
    /// A reference to a footnote.
    Footref,
    /// A line end.
    Break,
    /// The start of the Markdown link with this index. The span is the whole link.
    Open(usize),
    /// The end of the Markdown link with this index. The span is the part after the label.
    Close(usize),
}

/// A Markdown link or image of the leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct MdLink {
    pub(super) span: Span,
    pub(super) label: Span,
    pub(super) kind: MdKind,
    pub(super) embed: bool,
    /// Whether a construct further left overlaps the link, so that it is not a link.
    pub(super) dead: bool,
}

/// How a Markdown link names its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MdKind {
    /// `[label](dest)`.
    Inline,
    /// `[label][ref]`, `[ref][]`, `[ref]`.
    Reference,
    /// `<https://…>`.
    Auto,
}

/// The leaf block being scanned.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeafBlock {
    /// The offset beyond which no construct may extend.
    pub(super) end: usize,
    /// The start of its text, after a callout's marker or a checkbox.
    pub(super) from: usize,
    /// The kind of its pieces.
    pub(super) kind: PieceKind,
    /// The context of its links.
    pub(super) place: LinkContext,
}

/// The state of the scanner: what it has found, and the regions that extend over several blocks.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    pub(super) links: Vec<Link>,
    pub(super) tags: Vec<Tag>,
    pub(super) pieces: Vec<Piece>,
    /// The separator between the last piece and the next.
    pub(super) separator: Separator,
    /// The last comment.
    pub(super) comment: Span,
    /// All comments, in order.
    pub(super) comments: Vec<Span>,
    /// The end of the last block math, which hides all blocks before it.
    pub(super) opaque: usize,
    /// The runs of the current leaf.
    pub(super) runs: Vec<InlineRun>,
    /// The Markdown links of the current leaf.
    pub(super) mds: Vec<MdLink>,
    last_tag_end: usize,
    /// The last list of attributes, in which an id is not a tag.
    attributes: Span,
    no_comment_end: bool,
    no_math_end: bool,
    /// The number of bytes and runs that were examined ahead of the position of the scan, or behind it.
    work: Cell<usize>,
}

/// The bytes that may start a construct.
const SIGNS: [bool; 256] = {
    let mut signs = [false; 256];
    let bytes = b"[!#%$=:{";
    let mut at = 0;
    while at < bytes.len() {
        signs[bytes[at] as usize] = true;
        at += 1;
    }
    signs
};

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            links: Vec::new(),
            tags: Vec::new(),
            pieces: Vec::new(),
            separator: Separator::Block,
            comment: Span::default(),
            comments: Vec::new(),
            opaque: 0,
            runs: Vec::new(),
            mds: Vec::new(),
            last_tag_end: 0,
            attributes: Span::default(),
            no_comment_end: false,
            no_math_end: false,
            work: Cell::new(0),
        }
    }

    /// Returns the work so far: the number of bytes and runs that were examined ahead of the position of the scan, or
    /// behind it.
    pub(super) fn work(&self) -> usize {
        self.work.get()
    }

    fn count(&self, steps: usize) {
        self.work.set(self.work.get() + steps);
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Returns whether `offset` is in the last comment.
    pub(super) fn in_comment(&self, offset: usize) -> bool {
        self.comment.contains(offset)
    }

    /// Adds a text run, merged with the one before if they are adjacent.
    pub(super) fn add_text(&mut self, span: Span) {
        let escaped = span.start > 0
            && self.byte(span.start - 1) == Some(b'\\')
            && self.runs.last().is_none_or(|last| last.span.end < span.start);
        match self.runs.last_mut() {
            Some(last)
                if last.span.end == span.start && matches!(last.kind, RunKind::Text | RunKind::Escaped) =>
            {
                last.span.end = span.end;
            }
            _ => {
                let kind = if escaped { RunKind::Escaped } else { RunKind::Text };
                self.runs.push(InlineRun { kind, span });
            }
        }
    }

    /// Scans the collected runs of one leaf, and returns the offset after the last construct.
    pub(super) fn scan(&mut self, leaf: &LeafBlock) -> usize {
        let runs = std::mem::take(&mut self.runs);
        self.separator = Separator::Block;
        let mut pos = leaf.from.max(self.opaque);
        for at in 0..runs.len() {
            pos = RunScan { runs: &runs, at, leaf }.step(self, pos);
        }
        self.runs = runs;
        self.runs.clear();
        self.mds.clear();
        pos
    }

    /// Adds a piece, split at the end of a comment.
    pub(super) fn piece(&mut self, kind: PieceKind, span: Span) {
        if span.start >= self.comment.end {
            self.push(kind, span);
        } else {
            self.push(
                PieceKind::Comment,
                Span::new(span.start, span.end.min(self.comment.end.saturating_sub(2))),
            );
            if span.end > self.comment.end {
                self.push(kind, Span::new(self.comment.end, span.end));
            }
        }
    }

    /// Adds a piece. Prose and headings have one piece per line, because the rest of an HTML comment that a wikilink
    /// overlaps can contain line ends.
    fn push(&mut self, kind: PieceKind, span: Span) {
        let mut start = span.start;
        if matches!(kind, PieceKind::Prose | PieceKind::Heading) {
            while let Some(at) = self.find("\n", start, span.end) {
                self.push_line(kind, Span::new(start, at));
                self.part();
                start = at + 1;
            }
        }
        self.push_line(kind, Span::new(start, span.end));
    }

    fn push_line(&mut self, kind: PieceKind, span: Span) {
        if span.is_empty() {
            return;
        }
        // White space is not a piece, but it separates its neighbours.
        let prose = matches!(kind, PieceKind::Prose | PieceKind::Heading | PieceKind::Comment);
        let blank = |text: &str| text.starts_with(char::is_whitespace) && text.trim_start().is_empty();
        if prose && blank(span.of(self.text)) {
            self.part();
            return;
        }
        let joins =
            self.separator == Separator::None || kind == PieceKind::Code && self.separator == Separator::Line;
        match self.pieces.last_mut() {
            Some(last) if joins && last.kind == kind && last.span.end == span.start => {
                last.span.end = span.end
            }
            _ => self.pieces.push(Piece { kind, span, separator: self.separator }),
        }
        self.separator = Separator::None;
    }

    /// Records that the next piece does not continue the word before it.
    pub(super) fn part(&mut self) {
        if self.separator == Separator::None {
            self.separator = Separator::Line;
        }
    }

    /// Truncates the pieces at `end`.
    fn cut_pieces(&mut self, end: usize) {
        while let Some(last) = self.pieces.last_mut().filter(|last| last.span.end > end) {
            if last.span.start < end {
                last.span.end = end;
            } else {
                self.separator = last.separator;
                self.pieces.pop();
            }
        }
    }

    /// Returns whether only blanks precede `at` on its line.
    fn at_line_start(&self, at: usize) -> bool {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        let blanks = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        self.count(blanks);
        let other = before.iter().rev().nth(blanks);
        other.is_none_or(|&byte| matches!(byte, b'\n' | b'\r')) || before.ends_with("\u{FEFF}".as_bytes())
    }

    fn find(&self, sign: &str, from: usize, end: usize) -> Option<usize> {
        let searched = self.text.get(from..end)?;
        // Of a text of one byte, as is a line feed, `str::find` would prepare a search first.
        let found = match sign.as_bytes() {
            [byte] => memchr::memchr(*byte, searched.as_bytes()),
            sign => memchr::memmem::find(searched.as_bytes(), sign),
        };
        self.count(found.unwrap_or(searched.len()));
        Some(from + found?)
    }
}

/// One step of a scan: the run at `at` among those of the leaf.
#[derive(Clone, Copy)]
struct RunScan<'r> {
    runs: &'r [InlineRun],
    at: usize,
    leaf: &'r LeafBlock,
}

impl RunScan<'_> {
    /// Scans one run from `pos` on, and returns the offset after what it consumed.
    fn step(self, scan: &mut Scanner<'_>, pos: usize) -> usize {
        let Some(&InlineRun { kind, span }) = self.runs.get(self.at) else {
            return pos;
        };
        let whole = span.start >= pos;
        match kind {
            RunKind::Open(number) => return self.open(scan, number, span, pos),
            RunKind::Close(number) => return self.close(scan, number, span, pos),
            RunKind::Text | RunKind::Escaped => {}
            _ if span.end <= pos => return pos,
            // The rest of a run that a construct further left overlaps is text.
            _ if !whole => {}
            RunKind::Code => {
                let bytes = span.of(scan.text).as_bytes();
                let ticks = bytes.iter().take_while(|&&byte| byte == b'`').count().min(bytes.len() / 2);
                scan.piece(PieceKind::Code, Span::new(span.start + ticks, span.end - ticks));
                return span.end;
            }
            RunKind::Html => {
                if span.of(scan.text).get(..3).is_some_and(|tag| tag.eq_ignore_ascii_case("<br")) {
                    scan.part();
                }
                return span.end;
            }
            RunKind::Entity(word) => {
                if !word {
                    scan.part();
                }
                return span.end;
            }
            RunKind::Footref => return span.end,
            RunKind::Break => {
                scan.part();
                return pos;
            }
        }
        let escaped = (kind == RunKind::Escaped && whole).then_some(span.start);
        self.text(scan, pos.max(span.start), span.end, escaped).max(pos)
    }

    /// Enters a Markdown link, unless another construct overlaps its start.
    fn open(self, scan: &mut Scanner<'_>, number: usize, span: Span, pos: usize) -> usize {
        let Some(&md) = scan.mds.get(number) else {
            return pos;
        };
        let end = if span.start < pos {
            Some(pos)
        } else if md.kind == MdKind::Auto {
            scan.piece(PieceKind::Url, md.label);
            Some(span.end)
        } else {
            self.wikilink(scan, span.start).map(|link| self.record_wikilink(scan, link))
        };
        if let Some(md) = scan.mds.get_mut(number).filter(|_| end.is_some()) {
            md.dead = true;
        }
        end.unwrap_or(pos)
    }

    /// Leaves a Markdown link: records it, or treats its tail as text if it is not a link after all.
    fn close(self, scan: &mut Scanner<'_>, number: usize, tail: Span, pos: usize) -> usize {
        let Some(&md) = scan.mds.get(number) else {
            return pos;
        };
        // A link or embed inside the label leaves the link around it as it is.
        if md.dead || pos > md.label.end {
            let from = pos.max(tail.start);
            return if from < tail.end { self.text(scan, from, tail.end, None) } else { pos };
        }
        let label = md.label.of(scan.text);
        scan.count(label.len());
        if md.embed && crate::link_syntax::embed_size(label).is_some() {
            scan.cut_pieces(md.label.start + label.rfind('|').unwrap_or(0));
        }
        let inline = md.kind == MdKind::Inline;
        let within = Span::new(md.label.end + 2, md.span.end);
        if let Some((dest, angle)) =
            inline.then(|| crate::link_syntax::destination(scan.text, within)).flatten()
        {
            let form = if angle { LinkForm::MdAngle } else { LinkForm::MdPlain };
            let found = Destination { span: md.span, label: md.label, dest, form, embed: md.embed };
            match crate::link_syntax::from_destination(scan.text, &found) {
                Some(link) => self.record(scan, link),
                None => {
                    scan.part();
                    scan.piece(PieceKind::Url, dest);
                    scan.part();
                }
            }
        }
        md.span.end
    }

    fn record(self, scan: &mut Scanner<'_>, mut link: Link) {
        link.in_comment = scan.in_comment(link.span.start);
        link.place = if link.in_comment { LinkContext::Comment } else { self.leaf.place };
        scan.links.push(link);
    }

    /// Reads the wikilink or embed at `at`, if there is one.
    fn wikilink(self, scan: &Scanner<'_>, at: usize) -> Option<Link> {
        let mut work = 0;
        let link = crate::link_syntax::wikilink_with_work(scan.text.get(..self.leaf.end)?, at, &mut work);
        scan.count(work);
        let link = link?;
        let end = link.span.end;
        // A code span that begins inside and ends outside binds tighter (docs/spec/obsidian.md 2.1).
        let inside = self.runs.iter().skip(self.at).take_while(|run| run.span.start < end);
        let cut = inside.inspect(|_| scan.count(1)).any(|run| {
            run.kind == RunKind::Code && run.span.end > end && !self.ends_in_wikilink(scan, run.span)
        });
        (!cut).then_some(link)
    }

    /// Returns whether a code span ends inside a wikilink that begins inside it. Where it also begins inside one, its
    /// backticks belong to two names, and it is not code.
    fn ends_in_wikilink(self, scan: &Scanner<'_>, code: Span) -> bool {
        let inside = code.of(scan.text);
        let opened = memchr::memmem::rfind(inside.as_bytes(), b"[[");
        scan.count(inside.len());
        let (Some(at), Some(text)) = (opened, scan.text.get(..self.leaf.end)) else { return false };
        let mut work = 0;
        let link = crate::link_syntax::wikilink_with_work(text, code.start + at, &mut work);
        scan.count(work);
        link.is_some_and(|link| link.span.end > code.end)
    }

    /// Records a wikilink with its displayed text, and returns its end.
    fn record_wikilink(self, scan: &mut Scanner<'_>, link: Link) -> usize {
        let kind = self.leaf.kind;
        let alias =
            link.alias_span.filter(|alias| link.size.is_none() && !alias.of(scan.text).trim().is_empty());
        match alias {
            Some(alias) => scan.piece(kind, alias),
            None => {
                scan.piece(kind, link.path_span);
                if link.subpath_span.len() > 1 {
                    scan.part();
                    scan.piece(kind, Span::new(link.subpath_span.start + 1, link.subpath_span.end));
                }
            }
        }
        let end = link.span.end;
        self.record(scan, link);
        end
    }

    /// Scans `from..end` as text. Returns the offset after it, or after a construct that extends further.
    fn text(self, scan: &mut Scanner<'_>, from: usize, end: usize, escaped: Option<usize>) -> usize {
        let (mut at, mut done) = (from, from);
        while at < end {
            let rest = scan.text.as_bytes().get(at..end).unwrap_or_default();
            let Some(skip) = rest.iter().position(|&byte| SIGNS.get(usize::from(byte)) == Some(&true)) else {
                break;
            };
            at += skip;
            let found = if escaped == Some(at) { None } else { self.construct(scan, done, at, end) };
            match found {
                Some(behind) => {
                    at = behind;
                    done = behind;
                }
                None => at += 1,
            }
        }
        if done < end {
            scan.piece(self.leaf.kind, Span::new(done, end));
        }
        end.max(done)
    }

    /// Reads the construct at `at`, if one is there, after adding the text from `done` up to it.
    fn construct(self, scan: &mut Scanner<'_>, done: usize, at: usize, end: usize) -> Option<usize> {
        let next = scan.byte(at + 1);
        let before = Span::new(done, at);
        match scan.byte(at)? {
            b'[' | b'!' if next == Some(b'[') => {
                let link = self.wikilink(scan, at)?;
                scan.piece(self.leaf.kind, before);
                Some(self.record_wikilink(scan, link))
            }
            b'#' => {
                self.tag(scan, at, end);
                None
            }
            b'{' => {
                self.attributes(scan, at);
                None
            }
            b'%' if next == Some(b'%') => self.comment(scan, before),
            b'$' => self.math(scan, before),
            b'=' if next == Some(b'=') => {
                let count =
                    scan.text.as_bytes().get(at..end)?.iter().take_while(|&&byte| byte == b'=').count();
                let marks = count == 2
                    && !(is_space_or_end(scan.byte(at.wrapping_sub(1)))
                        && is_space_or_end(scan.byte(at + 2)));
                // The signs of a highlight are markup. A longer run of them is text.
                scan.piece(self.leaf.kind, Span::new(done, if marks { at } else { at + count }));
                Some(at + count)
            }
            b':' if scan.text.get(at..end)?.starts_with("://") => self.url(scan, before, end),
            _ => None,
        }
    }

    /// Remembers the list of attributes at `at`, if there is one: behind the text of a heading, directly behind other
    /// markup, or with kramdown's colon. Elsewhere braces are text.
    fn attributes(self, scan: &mut Scanner<'_>, at: usize) {
        let Some(rest) = scan.text.get(at..self.leaf.end) else { return };
        let (len, looked_at) = attribute_list(rest);
        scan.count(looked_at);
        let Some(len) = len else { return };
        let closes_heading = || {
            let behind = rest.get(len..).unwrap_or("").trim_start_matches([' ', '\t', '#']);
            self.leaf.place == LinkContext::Heading && (behind.is_empty() || behind.starts_with(['\n', '\r']))
        };
        let is_behind_markup = matches!(scan.byte(at.wrapping_sub(1)), Some(b')' | b']' | b'`' | b'*'));
        if rest.starts_with("{:") || is_behind_markup || closes_heading() {
            scan.attributes = Span::new(at, at + len);
        }
    }

    /// Records the tag at `at`, if there is one (docs/spec/obsidian.md 6).
    fn tag(self, scan: &mut Scanner<'_>, at: usize, end: usize) {
        if scan.attributes.contains(at) || !self.tag_may_start(scan, at) || is_defined_at(scan, at) {
            return;
        }
        let Some(rest) = scan.text.get(at + 1..end) else {
            return;
        };
        let run = rest.find(|c| !is_tag_char(c)).unwrap_or(rest.len());
        scan.count(run);
        let name = rest.get(..run).unwrap_or("").trim_end_matches('/');
        if is_tag_name(name) {
            let span = Span::new(at, at + 1 + name.len());
            scan.tags.push(Tag { name: name.to_owned(), span, in_frontmatter: false });
            scan.last_tag_end = at + 1 + run;
        }
    }

    /// Returns whether a tag can start at `at`, depending on the text before it.
    fn tag_may_start(self, scan: &Scanner<'_>, at: usize) -> bool {
        let before = scan.text.get(..at).unwrap_or("");
        let Some(last) = before.chars().next_back() else {
            return true;
        };
        if last.is_whitespace() || last == '_' || at == scan.last_tag_end {
            return true;
        }
        if before.ends_with("==") || scan.comment.start + 2 == at && scan.in_comment(at) {
            return true;
        }
        let Some(run) = self.runs.get(self.at) else {
            return false;
        };
        if run.kind == RunKind::Escaped && at == run.span.start + 1 {
            return true;
        }
        let previous = self.at.checked_sub(1).and_then(|at| self.runs.get(at));
        at == run.span.start
            && previous.is_none_or(|previous| match previous.kind {
                RunKind::Break => true,
                RunKind::Html => previous.span.end == at,
                // An emphasis sign is markup only between runs.
                _ => matches!(last, '*' | '~') && previous.span.end < at,
            })
    }

    /// Opens or closes a comment at the end of `before`.
    fn comment(self, scan: &mut Scanner<'_>, before: Span) -> Option<usize> {
        let at = before.end;
        if !scan.in_comment(at) {
            let block = scan.at_line_start(at);
            let end = if block { scan.text.len() } else { self.leaf.end };
            let close = if block && scan.no_comment_end { None } else { scan.find("%%", at + 2, end) };
            scan.no_comment_end |= block && close.is_none();
            scan.piece(self.leaf.kind, Span::new(before.start, close.map_or(at + 2, |_| at)));
            if let Some(close) = close {
                scan.comment = Span::new(at, close + 2);
                scan.comments.push(scan.comment);
                scan.part();
            }
            return Some(at + 2);
        }
        scan.piece(self.leaf.kind, before);
        scan.part();
        Some(if at + 2 >= scan.comment.end { scan.comment.end } else { at + 1 })
    }

    /// Reads inline or display math at the end of `before` (docs/spec/obsidian.md 7).
    fn math(self, scan: &mut Scanner<'_>, before: Span) -> Option<usize> {
        let at = before.end;
        let sign = if scan.byte(at + 1) == Some(b'$') { "$$" } else { "$" };
        let from = at + sign.len();
        let close = self.math_end(scan, sign, from);
        let found = match close {
            Some(close) if sign == "$" => {
                (!is_space_or_end(scan.byte(from)) && !is_space_or_end(scan.byte(close - 1))).then_some(close)
            }
            Some(close) => Some(close),
            // Block math continues over blank lines, so its end may be beyond this block.
            None if sign == "$$" && !scan.no_math_end && scan.at_line_start(at) => {
                let close = scan.find("$$", self.leaf.end.max(from), scan.text.len());
                scan.no_math_end = close.is_none();
                scan.opaque = close.map_or(scan.opaque, |close| close + 2);
                close
            }
            None => None,
        };
        let end = found.map_or(from, |close| close + sign.len());
        match found {
            Some(close) => {
                scan.piece(self.leaf.kind, before);
                scan.piece(PieceKind::Math, Span::new(from, close));
            }
            None => scan.piece(self.leaf.kind, Span::new(before.start, from)),
        }
        Some(end)
    }

    /// Finds the next unescaped `sign` in the text of the leaf, within the Markdown link around `from`.
    fn math_end(self, scan: &Scanner<'_>, sign: &str, from: usize) -> Option<usize> {
        let mut depth = 0usize;
        for run in self.runs.iter().skip(self.at) {
            scan.count(1);
            match run.kind {
                RunKind::Open(_) => depth += 1,
                RunKind::Close(_) => depth = depth.checked_sub(1)?,
                RunKind::Text | RunKind::Escaped => {
                    let start = run.span.start + usize::from(run.kind == RunKind::Escaped);
                    if let Some(found) = scan.find(sign, start.max(from).min(run.span.end), run.span.end) {
                        return Some(found);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Parses the plain address around the `://` at the end of `before`.
    fn url(self, scan: &mut Scanner<'_>, before: Span, end: usize) -> Option<usize> {
        let scheme =
            before.of(scan.text).bytes().rev().take(32).take_while(u8::is_ascii_alphanumeric).count();
        let start = before.end - scheme;
        if scheme < 2 {
            return None;
        }
        let rest = scan.text.get(start..end)?;
        let len =
            rest.find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"')).unwrap_or(rest.len());
        scan.count(len);
        let address = rest.get(..len).map(trim_address).filter(|address| address.len() > scheme + 3)?;
        scan.piece(self.leaf.kind, Span::new(before.start, start));
        scan.piece(PieceKind::Url, Span::new(start, start + address.len()));
        Some(start + address.len())
    }
}

/// Returns whether `at` begins the destination of a reference definition. Below a paragraph it is none to a Markdown
/// parser, but meant as one all the same.
fn is_defined_at(scan: &Scanner<'_>, at: usize) -> bool {
    let before = scan.text.get(..at).unwrap_or("").trim_end_matches([' ', '\t']);
    let Some(labelled) = before.strip_suffix("]:") else { return false };
    let open =
        labelled.rfind(['[', ']', '\n', '\r']).filter(|&at| labelled.as_bytes().get(at) == Some(&b'['));
    let Some((above, label)) = open.and_then(|at| labelled.split_at_checked(at)) else { return false };
    scan.count(label.len());
    let begins_line = above.trim_end_matches([' ', '\t', '>']);
    label.len() > 1
        && !label.starts_with("[^")
        && (begins_line.is_empty() || begins_line.ends_with(['\n', '\r']))
}

/// Returns the length of the list of attributes at the start of `text`, such as `{#id .class key="value"}`, and the number
/// of bytes that were examined. A brace inside the list ends it.
fn attribute_list(text: &str) -> (Option<usize>, usize) {
    let inner = text.strip_prefix("{:").or_else(|| text.strip_prefix('{')).unwrap_or("");
    let end = inner.find(['{', '}', '\n', '\r']).unwrap_or(inner.len());
    let len = text.len() - inner.len() + end;
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'))
    };
    let mut in_quotes = false;
    let mut is_attribute = |word: &str| {
        if in_quotes {
            in_quotes = !word.ends_with('"');
            return true;
        }
        match (word.strip_prefix(['#', '.']), word.split_once('=')) {
            (Some(name), _) => is_name(name),
            (None, Some((name, value))) => {
                in_quotes = value.starts_with('"') && (value.len() == 1 || !value.ends_with('"'));
                is_name(name)
            }
            (None, None) => false,
        }
    };
    let list = inner.get(..end).unwrap_or("");
    let is_list = inner.get(end..).is_some_and(|rest| rest.starts_with('}'))
        && !list.trim().is_empty()
        && list.split_whitespace().all(&mut is_attribute);
    (is_list.then_some(len + 1), len)
}

/// Returns whether a byte is white space or missing.
fn is_space_or_end(byte: Option<u8>) -> bool {
    byte.is_none_or(|byte| byte.is_ascii_whitespace())
}

/// Removes trailing punctuation, which probably ends the sentence, and unbalanced closing brackets.
fn trim_address(address: &str) -> &str {
    let count = |sign: char| address.matches(sign).count();
    let mut surplus =
        [(')', count(')').saturating_sub(count('('))), (']', count(']').saturating_sub(count('[')))];
    address.trim_end_matches(|c: char| match surplus.iter_mut().find(|(sign, _)| *sign == c) {
        Some((_, left)) => {
            let cut = *left > 0;
            *left = left.saturating_sub(1);
            cut
        }
        None => matches!(c, '?' | '!' | '.' | ',' | ':' | ';' | '*' | '_' | '~' | '\'' | '`'),
    })
}
