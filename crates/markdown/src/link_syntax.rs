//! The grammar of wikilinks, Markdown link destinations and reference definitions (docs/spec/obsidian.md 2.2–2.8).
//!
//! It decides nothing about which file a link means, and changes no text.

use std::borrow::Cow;

use crate::character_reference::entity_at;
use crate::link::{Escape, HostEscape, Link, LinkContext, LinkEscape, LinkForm, is_external};
use crate::span::Span;

/// Parses the wikilink or embed whose first byte is at `at`. The link must end within `text` (docs/spec/obsidian.md 2.2).
///
/// `None` if there is none: no closing brackets on the line, another `[[` before them, or nothing inside.
pub(crate) fn wikilink_at(text: &str, at: usize) -> Option<Link> {
    wikilink_with_work(text, at, &mut 0)
}

/// Parses as [`wikilink_at`] does, and adds the number of bytes that it examined to `work`.
pub(super) fn wikilink_with_work(text: &str, at: usize, work: &mut usize) -> Option<Link> {
    let bytes = text.as_bytes();
    let embed = bytes.get(at) == Some(&b'!');
    let start = at + usize::from(embed) + 2;
    if bytes.get(start - 2..start) != Some(b"[[") || bytes.get(start) == Some(&b'[') {
        return None;
    }
    let (bar, end) = wikilink_end(bytes, start, work)?;
    // A backslash before the bar is a table escape and belongs to neither part.
    let escaped = bar.is_some_and(|bar| bytes.get(bar - 1) == Some(&b'\\'));
    let dest = Span::new(start, bar.map_or(end, |bar| bar - usize::from(escaped)));
    let parts = split_subpath(dest.of(text), dest.start, None);
    if parts.path.is_empty() && parts.subpath.is_empty() {
        return None;
    }
    let alias = bar.map(|bar| Span::new(bar + 1, end));
    let written = alias.map(|alias| alias.of(text).trim()).filter(|alias| !alias.is_empty());
    let display = written.map_or_else(|| default_display(&parts.path, &parts.subpath), str::to_owned);
    Some(Link {
        span: Span::new(at, end + 2),
        alias_span: alias,
        form: LinkForm::Wiki,
        escape: Escape {
            inner: if escaped { LinkEscape::TableBar } else { LinkEscape::None },
            host: HostEscape::None,
        },
        display: Some(display),
        embed,
        size: written.filter(|_| embed).and_then(embed_size),
        ..parts
    })
}

/// Finds the separating bar and the closing brackets of the wikilink body that opens at `start`.
fn wikilink_end(bytes: &[u8], start: usize, work: &mut usize) -> Option<(Option<usize>, usize)> {
    let mut bar = None;
    // An open `#[^` in the target or `[` in the alias takes the first of three closing brackets.
    let mut open = false;
    let mut at = start;
    loop {
        *work += 1;
        let next = bytes.get(at + 1).copied();
        match *bytes.get(at)? {
            b'\n' | b'\r' => return None,
            b'[' if next == Some(b'[') => return None,
            b'[' if bar.is_some() => open = true,
            b'[' if next == Some(b'^') && at > start => open = bytes.get(at - 1) == Some(&b'#'),
            b']' if next == Some(b']') => {
                let end = at + usize::from(open && bytes.get(at + 2) == Some(&b']'));
                return (end > start).then_some((bar, end));
            }
            b']' => open = false,
            // A bar at the very start is part of the target, with or without its table escape.
            b'|' if bar.is_none() && at > start && bytes.get(start..at) != Some(b"\\") => {
                bar = Some(at);
                open = false;
            }
            _ => {}
        }
        at += 1;
    }
}

/// Splits a destination at its first `#` that is not percent-encoded into trimmed path and subpath; `decoded` overrides the raw bytes.
fn split_subpath(raw: &str, at: usize, decoded: Option<&DecodedDestination<'_>>) -> Link {
    let end = at + raw.len();
    let hash = decoded.map_or_else(|| raw.find('#'), |decoded| decoded.hash.map(|(raw, _)| raw));
    let text = decoded.map_or(raw, |decoded| &decoded.text);
    let cut = decoded.map_or(hash, |decoded| decoded.hash.map(|(_, cut)| cut)).unwrap_or(text.len());
    let raw_path = raw.get(..hash.unwrap_or(raw.len())).unwrap_or(raw);
    let lead = raw_path.len() - raw_path.trim_start().len();
    let path_start = at + if lead == raw_path.len() { 0 } else { lead };
    Link {
        span: Span::new(at, end),
        dest_span: Span::new(at, end),
        path_span: Span::new(path_start, path_start + raw_path.trim().len()),
        subpath_span: Span::new(at + raw_path.len(), end),
        alias_span: None,
        form: LinkForm::Wiki,
        escape: Escape::default(),
        place: LinkContext::Body,
        path: text.get(..cut).unwrap_or(text).trim().to_owned(),
        subpath: text.get(cut..).unwrap_or("").to_owned(),
        display: None,
        embed: false,
        size: None,
        key: None,
        line: 1,
        in_comment: false,
    }
}

/// Returns the text shown for a wikilink without an alias: path and headings joined by ` > `.
fn default_display(path: &str, subpath: &str) -> String {
    let parts: Vec<&str> = std::iter::once(path)
        .chain(subpath.split('#').map(str::trim))
        .filter(|part| !part.is_empty())
        .collect();
    if parts.is_empty() { subpath.to_owned() } else { parts.join(" > ") }
}

/// Parses the size in the last bar part of an embed's alias or an image's label (docs/spec/obsidian.md 2.8).
pub(crate) fn embed_size(alias: &str) -> Option<(u32, Option<u32>)> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    let last = alias.rsplit('|').next().unwrap_or(alias);
    match last.split_once('x') {
        Some((width, height)) => Some((number(width)?, Some(number(height)?))),
        None => Some((number(last)?, None)),
    }
}

/// The parts of a Markdown link or a reference definition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Destination {
    /// The whole construct.
    pub(crate) span: Span,
    /// The label between the brackets.
    pub(crate) label: Span,
    /// The destination without angle brackets.
    pub(crate) dest: Span,
    /// The form; [`LinkForm::Refdef`] has no displayed text.
    pub(crate) form: LinkForm,
    /// Whether it is an image.
    pub(crate) embed: bool,
}

/// Creates a link from a Markdown destination; `None` if it is empty or external (docs/spec/obsidian.md 2.4).
pub(crate) fn from_destination(text: &str, found: &Destination) -> Option<Link> {
    let raw = found.dest.of(text);
    let unescaped = unescape(raw);
    if raw.is_empty() || is_external(&unescaped.text) {
        return None;
    }
    let decoded = percent_decode_mapped(&unescaped);
    let label = found.label.of(text);
    let shown = found.form != LinkForm::Refdef;
    Some(Link {
        span: found.span,
        alias_span: shown.then_some(found.label),
        form: found.form,
        escape: Escape { inner: LinkEscape::Percent, host: HostEscape::None },
        display: shown.then(|| label.to_owned()),
        embed: found.embed,
        size: if found.embed { embed_size(label) } else { None },
        ..split_subpath(raw, found.dest.start, Some(&decoded))
    })
}

/// Finds the destination in `within`, the bytes after a link's `](`, and says whether it is in angle brackets.
pub(super) fn destination(text: &str, within: Span) -> Option<(Span, bool)> {
    let bytes = text.as_bytes().get(..within.end)?;
    let blank = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b'>';
    // A line end may precede the destination, followed by quote markers.
    let spaces = bytes.get(within.start..)?.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let lines = bytes.get(within.start..within.start + spaces)?.contains(&b'\n');
    let skip = if lines { bytes.get(within.start..)?.iter().take_while(blank).count() } else { spaces };
    let start = within.start + skip;
    let angle = bytes.get(start) == Some(&b'<');
    let from = start + usize::from(angle);
    let (mut at, mut depth) = (from, 0usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if bytes.get(at + 1).is_some_and(u8::is_ascii_punctuation) => at += 1,
            b'>' if angle => break,
            b'\n' | b'\r' | b'<' if angle => return None,
            _ if angle => {}
            b'(' => depth += 1,
            b')' if depth == 0 => break,
            b')' => depth -= 1,
            byte if byte <= b' ' || byte == 0x7F => break,
            _ => {}
        }
        at += 1;
    }
    let end = at.min(within.end);
    (!angle || bytes.get(end) == Some(&b'>')).then_some((Span::new(from, end), angle))
}

/// Parses the reference definition at the start of `within`.
pub(super) fn definition(text: &str, within: Span) -> Option<Destination> {
    let bytes = text.as_bytes().get(..within.end)?;
    let mut close = within.start + 1;
    loop {
        match *bytes.get(close)? {
            b']' => break,
            b'[' => return None,
            b'\\' => close += 2,
            _ => close += 1,
        }
    }
    let label = Span::new(within.start + 1, close);
    if bytes.get(close + 1) != Some(&b':')
        || label.of(text).trim().is_empty()
        || label.of(text).starts_with('^')
    {
        return None;
    }
    let (dest, angle) = destination(text, Span::new(close + 2, within.end))?;
    let dest_end = dest.end + usize::from(angle);
    let end = title_end(text, Span::new(dest_end, within.end)).unwrap_or(dest_end);
    Some(Destination {
        span: Span::new(within.start, end),
        label,
        dest,
        form: LinkForm::Refdef,
        embed: false,
    })
}

/// Finds the end of the title after a definition's destination, if there is one.
fn title_end(text: &str, within: Span) -> Option<usize> {
    let rest = within.of(text);
    let blanks = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '>');
    let lead = rest.len() - rest.trim_start_matches(blanks).len();
    let lines = rest.get(..lead)?.matches('\n').count();
    let title = rest.get(lead..)?;
    let close = match title.chars().next().filter(|_| lead > 0 && lines < 2)? {
        '(' => ')',
        quote @ ('"' | '\'') => quote,
        _ => return None,
    };
    let mut escaped = false;
    let end = 1 + title.get(1..)?.find(|c: char| {
        let ends = c == close && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    let tail = title.get(end + 1..)?.trim_start_matches([' ', '\t']);
    (tail.is_empty() || tail.starts_with(['\n', '\r'])).then_some(within.start + lead + end + 1)
}

/// Decodes percent escapes once. Malformed escapes and those that are not UTF-8 stay as they are (docs/spec/obsidian.md 2.4).
pub fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let plain = UnescapedDestination { text: Cow::Borrowed(text), steps: Vec::new() };
    Cow::Owned(percent_decode_mapped(&plain).text.into_owned())
}

/// A destination with its CommonMark escapes resolved.
struct UnescapedDestination<'a> {
    text: Cow<'a, str>,
    /// Pairs of an offset in `text` and the offset in the raw bytes. Between two pairs the offsets advance together.
    steps: Vec<(usize, usize)>,
}

impl UnescapedDestination<'_> {
    fn raw(&self, offset: usize) -> usize {
        let next = self.steps.partition_point(|&(here, _)| here <= offset);
        let (here, raw) =
            next.checked_sub(1).and_then(|last| self.steps.get(last)).copied().unwrap_or((0, 0));
        raw + (offset - here)
    }
}

/// A fully decoded destination.
struct DecodedDestination<'a> {
    text: Cow<'a, str>,
    /// The first `#` that is not percent-encoded: its offset in the raw bytes and in `text`.
    hash: Option<(usize, usize)>,
}

/// Resolves CommonMark's backslash escapes and entities.
fn unescape(raw: &str) -> UnescapedDestination<'_> {
    if memchr::memchr2(b'\\', b'&', raw.as_bytes()).is_none() {
        return UnescapedDestination { text: Cow::Borrowed(raw), steps: Vec::new() };
    }
    let bytes = raw.as_bytes();
    let (mut text, mut steps, mut at, mut done) = (String::with_capacity(raw.len()), Vec::new(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        let (value, len) = match byte {
            b'\\' if bytes.get(at + 1).is_some_and(u8::is_ascii_punctuation) => (Cow::Borrowed(""), 1),
            b'&' => match entity_at(raw, at) {
                Some((value, len)) => (value, len),
                None => (Cow::Borrowed("&"), 1),
            },
            _ => {
                at += 1;
                continue;
            }
        };
        text.push_str(raw.get(done..at).unwrap_or(""));
        steps.push((text.len(), at));
        text.push_str(&value);
        at += len;
        done = at;
        steps.push((text.len(), at));
        // The character after a backslash is literal and is skipped.
        at += usize::from(byte == b'\\');
    }
    text.push_str(raw.get(done..).unwrap_or(""));
    UnescapedDestination { text: Cow::Owned(text), steps }
}

/// Decodes percent escapes and records the raw offset of the first `#`. An encoded one is a part of the path.
fn percent_decode_mapped<'a>(unescaped: &'a UnescapedDestination<'_>) -> DecodedDestination<'a> {
    let text: &str = &unescaped.text;
    if !text.contains('%') {
        let hash = text.find('#').map(|at| (unescaped.raw(at), at));
        return DecodedDestination { text: Cow::Borrowed(text), hash };
    }
    let (mut decoded, mut hash) = (String::with_capacity(text.len()), None);
    let mut run: Vec<u8> = Vec::new();
    let mut done = 0;
    for (at, sign) in text.match_indices(['%', '#']) {
        if at < done {
            continue;
        }
        decoded.push_str(text.get(done..at).unwrap_or(""));
        done = at;
        if sign == "#" {
            hash.get_or_insert((unescaped.raw(at), decoded.len()));
            continue;
        }
        run.clear();
        while let Some(byte) = percent_byte(text.as_bytes(), done) {
            run.push(byte);
            done += 3;
        }
        let mut from = at;
        for chunk in run.utf8_chunks() {
            decoded.push_str(chunk.valid());
            from += 3 * chunk.valid().len();
            let stays = from + 3 * chunk.invalid().len();
            decoded.push_str(text.get(from..stays).unwrap_or(""));
            from = stays;
        }
    }
    decoded.push_str(text.get(done..).unwrap_or(""));
    DecodedDestination { text: Cow::Owned(decoded), hash }
}

/// Decodes the percent escape at `at`.
fn percent_byte(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |offset: usize| char::from(*bytes.get(at + offset)?).to_digit(16);
    (bytes.get(at) == Some(&b'%')).then_some(())?;
    u8::try_from(digit(1)? * 16 + digit(2)?).ok()
}
