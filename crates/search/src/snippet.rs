//! Snippets: the passage of a note that answers a query best, and the lines of it that are shown. Pure.

use std::collections::HashSet;
use std::mem::replace;
use std::sync::Arc;

use sidenote_bm25::Word;
use sidenote_bm25::compounds::{MIN_SAFE_WORD, is_long, stem_as_last};
use sidenote_index::indexed_document::ParsedNote;
use sidenote_language::folding::is_unspaced;
use sidenote_language::graphemes::end_after;
use sidenote_language::language::{Language, LanguageStemmer, typed_form};
use sidenote_language::terms::{CachedStemmer, Initials, TermKind, Terms, stem_prefixes};
use sidenote_markdown::note::{Piece, PieceKind, Separator};
use sidenote_markdown::passage::{Passage, push_pieces};
use sidenote_markdown::span::Span;
use unicode_segmentation::UnicodeSegmentation;

/// The approximate length of a snippet in bytes.
const SNIPPET_BYTES: usize = 280;
/// What ends a clause in scripts without spaces.
const CLAUSE_MARKS: [char; 4] = ['，', '、', '；', '：'];

/// The part of a note that is shown with a hit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Excerpt {
    /// The headings above the passage, outermost first, joined by ` > `.
    pub trail: String,
    /// The first and last line of the passage, counted from 1.
    pub lines: (usize, usize),
    /// The source text without `%%` comments, with an ellipsis where it begins amid a line, and where the passage goes on
    /// after it.
    pub snippet: String,
    /// The byte ranges of the snippet that match the query.
    pub marks: Vec<(usize, usize)>,
    /// The parts of the source that the snippet shows; empty for a canvas.
    pub shown: Vec<Span>,
    /// Where text was cut off.
    cut: Cut,
    /// The text of the whole passage without markup.
    pub passage: String,
}

/// Where text was cut off to make a snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cut {
    /// Whether the first line has text before the snippet. What begins with a line begins with the markers of the line, such as
    /// those of a task.
    before: bool,
    /// Whether the passage goes on after the snippet.
    after: bool,
}

impl Cut {
    /// Adds an ellipsis where text was cut off.
    fn mark(self, text: &str) -> String {
        let before = if self.before { "… " } else { "" };
        let after = if self.after && !text.ends_with('…') { " …" } else { "" };
        format!("{before}{text}{after}")
    }
}

/// Chooses the passage `quoted`, or else the one with the most words of the query, or else the passage `nearest`, each given by its
/// index, and cuts the snippet out of it.
pub fn excerpt(
    reading: &ParsedNote,
    words: &[Word],
    (quoted, nearest): (Option<usize>, Option<usize>),
    stem: &mut CachedStemmer,
) -> Excerpt {
    excerpt_of(reading, words, (quoted, nearest), SNIPPET_BYTES, stem)
}

/// Chooses a passage like [`excerpt`], and cuts a snippet of about `length` bytes.
pub fn excerpt_of(
    reading: &ParsedNote,
    words: &[Word],
    (quoted, nearest): (Option<usize>, Option<usize>),
    length: usize,
    stem: &mut CachedStemmer,
) -> Excerpt {
    let passages = reading.passages();
    let matcher = Matcher::new(words, reading, stem);
    let by_words = || best_by_words(passages, &matcher, stem);
    // The index after the last passage is that of the summary, a passage for the whole note.
    let chosen = quoted.or_else(by_words).or(nearest).filter(|&at| at < passages.len()).unwrap_or(0);
    let Some(passage) = passages.get(chosen) else {
        return Excerpt { lines: (1, 1), ..Excerpt::default() };
    };
    let (text, shown, cut) = cut(reading, passage, &matcher, length, stem);
    let snippet = cut.mark(&text);
    Excerpt {
        trail: reading.heading_path_of(passage),
        lines: reading.lines_of(passage.span),
        marks: marks(&snippet, &matcher, stem),
        snippet,
        shown,
        cut,
        passage: passage.text.clone(),
    }
}

/// Creates the excerpt of the spans that a condition asks for, such as tasks: their lines, from the first one on.
/// Returns `None` if there are no spans.
pub fn excerpt_of_parts(
    reading: &ParsedNote,
    parts: &[Span],
    words: &[Word],
    stem: &mut CachedStemmer,
) -> Option<Excerpt> {
    let (first, _) = reading.lines_of(*parts.first()?);
    let (mut snippet, mut shown, mut last, mut is_cut) = (String::new(), Vec::new(), 0, false);
    for (from, to) in parts.iter().map(|part| reading.lines_of(*part)) {
        // Several spans can lie in one line.
        let Some(lines) = reading.lines_span(from.max(last + 1), to) else { continue };
        let text = lines.of(&reading.text).trim_end();
        if !snippet.is_empty() && snippet.len() + text.len() > SNIPPET_BYTES {
            is_cut = true;
            break;
        }
        if !snippet.is_empty() {
            snippet.push('\n');
        }
        snippet.push_str(text);
        shown.push(Span::new(lines.start, lines.start + text.len()));
        last = to;
    }
    let end = word_end(&snippet, SNIPPET_BYTES + 40);
    is_cut |= end < snippet.len();
    snippet.truncate(end);
    let cut = Cut { before: false, after: is_cut };
    let snippet = cut.mark(&snippet);
    let passages = reading.passages();
    let start = parts.first().map_or(0, |part| part.start);
    let around = passages.iter().rfind(|passage| passage.span.start <= start);
    Some(Excerpt {
        trail: around.map_or_else(String::new, |passage| reading.heading_path_of(passage)),
        lines: (first, last.max(first)),
        marks: marks(&snippet, &Matcher::new(words, reading, stem), stem),
        snippet,
        shown,
        cut,
        passage: String::new(),
    })
}

/// Returns the text of an excerpt without markup, and the byte ranges of it that match the query. Of a canvas, the snippet
/// has no markup anyway.
pub fn plain_text(
    reading: &ParsedNote,
    shown: &Excerpt,
    words: &[Word],
    stem: &mut CachedStemmer,
) -> (String, Vec<(usize, usize)>) {
    if shown.shown.is_empty() || reading.is_canvas() {
        return (shown.snippet.clone(), shown.marks.clone());
    }
    let mut lines: Vec<String> = Vec::new();
    for span in &shown.shown {
        let (mut pieces, mut is_new_block) = (Vec::new(), false);
        for piece in &reading.note.pieces {
            let (start, end) = (piece.span.start.max(span.start), piece.span.end.min(span.end));
            if start >= end {
                continue;
            }
            is_new_block |= piece.separator == Separator::Block;
            // What a comment begins goes on in the text after it.
            if piece.kind != PieceKind::Comment {
                let separator = if is_new_block { Separator::Block } else { piece.separator };
                pieces.push(Piece { span: Span::new(start, end), separator, ..*piece });
                is_new_block = false;
            }
        }
        let mut part = String::new();
        push_pieces(reading.prose(), pieces.iter(), &mut part);
        lines.extend(part.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()));
    }
    let text = shown.cut.mark(&lines.join("\n"));
    let marks = marks(&text, &Matcher::new(words, reading, stem), stem);
    (text, marks)
}

/// Returns the indices of the query words that occur in a text of a note.
pub fn matched_words(
    text: &str,
    words: &[Word],
    reading: &ParsedNote,
    stem: &mut CachedStemmer,
) -> HashSet<usize> {
    let mut matched = HashSet::new();
    Matcher::new(words, reading, stem).each(text, stem, |word, _, _| {
        matched.insert(word);
    });
    matched
}

/// Returns the index of the passage that [`excerpt`] chooses.
pub fn best_passage(
    reading: &ParsedNote,
    words: &[Word],
    nearest: Option<usize>,
    stem: &mut CachedStemmer,
) -> usize {
    best_by_words(reading.passages(), &Matcher::new(words, reading, stem), stem).or(nearest).unwrap_or(0)
}

fn best_by_words(passages: &[Passage], matcher: &Matcher<'_>, stem: &mut CachedStemmer) -> Option<usize> {
    let mut best: Option<(usize, f32)> = None;
    let mut is_matched = vec![false; matcher.words.len()];
    for (at, passage) in passages.iter().enumerate() {
        is_matched.fill(false);
        let mut count = 0usize;
        matcher.each(&passage.text, stem, |word, _, _| {
            if let Some(is_matched) = is_matched.get_mut(word) {
                *is_matched = true;
            }
            count += 1;
        });
        let matched = matcher.words.iter().zip(&is_matched).filter(|(_, is_matched)| **is_matched);
        let weight: f32 = matched.map(|(word, _)| word.weight).sum();
        let score = weight + 0.01 * (count.min(50) as f32);
        if weight > 0.0 && best.is_none_or(|(_, most)| score > most) {
            best = Some((at, score));
        }
    }
    best.map(|(at, _)| at)
}

/// The words of a query, prepared for finding them in many texts.
struct Matcher<'w> {
    words: &'w [Word],
    /// The beginnings of the terms that can have the stem of each word.
    openings: Vec<Vec<String>>,
    initials: Initials,
    /// The indexes of the words that begin with each byte, in their order. A term is compared with those that begin like it.
    by_first: Vec<Vec<usize>>,
    /// The language of the texts, if it has stems and is not English.
    language: Option<Language>,
    /// The inflections of each word in that language.
    inflections: Vec<Inflections>,
}

/// The forms of a word in texts in other languages than English.
#[derive(Default)]
struct Inflections {
    /// The stems of its inflections.
    stems: Vec<String>,
    /// What the stems of its compounds begin with.
    firsts: Vec<String>,
    /// What the stems of its compounds end with.
    lasts: Vec<String>,
    /// The stems of its compounds in the notes. Beside a short word, the rest of one must be a word of the vault.
    compounds: Option<Arc<HashSet<String>>>,
}

impl Inflections {
    fn of(word: &Word, language: Language, stemmer: &mut LanguageStemmer) -> Self {
        let Some(typed) = &word.typed else { return Self::default() };
        let stems: Vec<String> = [typed, &word.exact].map(|form| stemmer.of(form).to_owned()).into();
        if !language.has_compounds() || word.exact.chars().count() < MIN_SAFE_WORD {
            return Self { stems, compounds: word.compounds.clone(), ..Self::default() };
        }
        let firsts: Vec<String> = stems.iter().filter(|stem| is_long(stem)).cloned().collect();
        let last = stem_as_last(stemmer, typed).filter(|last| is_long(last));
        let lasts = firsts.iter().cloned().chain(last).collect();
        Self { stems, firsts, lasts, compounds: None }
    }

    /// Returns whether a stem is that of the word or of a compound of it.
    fn contain(&self, stem: &str) -> bool {
        self.stems.iter().any(|own| own == stem)
            || self.compounds.as_ref().is_some_and(|compounds| compounds.contains(stem))
            || self.firsts.iter().any(|first| stem.strip_prefix(first.as_str()).is_some_and(is_long))
            || self.lasts.iter().any(|last| stem.strip_suffix(last.as_str()).is_some_and(is_long))
    }
}

impl<'w> Matcher<'w> {
    /// Prepares words for texts of a note.
    fn new(words: &'w [Word], reading: &ParsedNote, stem: &mut CachedStemmer) -> Self {
        let has_inflections = words.iter().any(|word| word.typed.is_some());
        let language = has_inflections.then(|| reading.language()).flatten();
        let stemmer = language.and_then(|language| Some((language, stem.in_languages.of(language)?)));
        let (language, inflections) = stemmer.map_or((None, Vec::new()), |(language, stemmer)| {
            let inflections = words.iter().map(|word| Inflections::of(word, language, stemmer));
            (Some(language), inflections.collect())
        });
        let openings = words.iter().map(|word| stem_prefixes(&word.stem)).collect();
        // An English stem begins like its word. Those of other languages may not, nor does a compound like its last part.
        let initials = match language {
            None => Initials::of(words.iter().map(|word| word.exact.as_str())),
            Some(_) => Initials::any(),
        };
        let mut by_first = vec![Vec::new(); 256];
        for (at, word) in words.iter().enumerate() {
            if let Some(places) =
                word.exact.bytes().next().and_then(|first| by_first.get_mut(usize::from(first)))
            {
                places.push(at);
            }
        }
        Self { words, openings, initials, by_first, language, inflections }
    }

    /// Visits every term of a text that matches a word of the query, with the index of the word and the start and end
    /// of the term.
    fn each(&self, text: &str, stem: &mut CachedStemmer, mut visit: impl FnMut(usize, usize, usize)) {
        let mut walk = Terms::new(text);
        while walk.advance_to(&self.initials) {
            let term = walk.term();
            let first = term.text.bytes().next().unwrap_or_default();
            let begin_alike = self.by_first.get(usize::from(first)).into_iter().flatten().copied();
            let mut found =
                begin_alike.filter_map(|at| Some((at, self.words.get(at)?, self.openings.get(at)?)));
            let found = found.find(|(_, word, openings)| {
                // Few terms begin like an inflection of the word, so few need stemming.
                let can_have_stem = || {
                    term.text == word.stem
                        || openings.iter().any(|opening| term.text.starts_with(opening.as_str()))
                };
                word.exact == term.text
                    || (term.kind != TermKind::Whole && can_have_stem() && word.stem == stem.of(&term.text))
                    || (word.prefix && term.text.starts_with(&word.exact))
            });
            let found = found.map(|(word, ..)| word).or_else(|| {
                let raw = text.get(term.start..term.end).unwrap_or_default();
                self.inflected(raw, term.kind, stem)
            });
            if let Some(word) = found {
                visit(word, term.start, term.end);
            }
        }
    }

    /// Returns the index of the word that a term is an inflection or a compound of, in the language of the texts. An identifier
    /// has none.
    fn inflected(&self, raw: &str, kind: TermKind, stem: &mut CachedStemmer) -> Option<usize> {
        let language = self.language.filter(|_| matches!(kind, TermKind::Word | TermKind::Part))?;
        let stem = stem.in_languages.of(language)?.of(&typed_form(raw));
        self.inflections.iter().position(|inflections| inflections.contain(stem))
    }
}

/// Cuts about `length` bytes around the densest matches, without comments: from a line, a sentence or a word to a word. Returns
/// the text, the parts of the source that it is made of, and where text was cut off. Of a canvas, the text of the cards is
/// cut, not the JSON.
fn cut(
    reading: &ParsedNote,
    passage: &Passage,
    matcher: &Matcher<'_>,
    length: usize,
    stem: &mut CachedStemmer,
) -> (String, Vec<Span>, Cut) {
    let span = if reading.is_canvas() { passage.span } else { with_markup(reading, passage.span) };
    let raw = if reading.is_canvas() { &passage.text } else { span.of(reading.prose()) };
    let mut hits: Vec<(usize, usize)> = Vec::new();
    matcher.each(raw, stem, |word, start, _| hits.push((start, word)));
    let (mut best, mut most) = (0, 0);
    let mut right = 0;
    // The last window in which each word was counted.
    let mut counted_in = vec![usize::MAX; matcher.words.len()];
    for (left, &(start, _)) in hits.iter().enumerate() {
        while hits.get(right).is_some_and(|&(at, _)| at < start + length) {
            right += 1;
        }
        let window = hits.get(left..right).unwrap_or(&[]);
        let is_new = |&&(_, word): &&(usize, usize)| {
            counted_in.get_mut(word).is_some_and(|last| replace(last, left) != left)
        };
        let distinct = window.iter().take(64).filter(is_new).count();
        if distinct > most {
            (best, most) = (start, distinct);
        }
    }
    let line_start = raw.get(..best).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let is_near = best - line_start <= length / 3;
    let start = if is_near { line_start } else { start_amid(raw, line_start, best, length) };
    let end = if raw.len() - start <= length + 40 { raw.len() } else { word_end(raw, start + length) };
    let cut = Cut { before: start > line_start, after: end < raw.len() };
    if reading.is_canvas() {
        return (raw.get(start..end).unwrap_or("").trim().to_owned(), Vec::new(), cut);
    }
    let shown = Span::new(span.start + start, span.start + end);
    let mut out = String::new();
    let mut from = shown.start;
    let comments = reading.note.pieces.iter().filter(|piece| piece.kind == PieceKind::Comment);
    for comment in
        comments.map(|piece| piece.span).filter(|inner| inner.end > shown.start && inner.start < shown.end)
    {
        if comment.start > from {
            out.push_str(Span::new(from, comment.start).of(reading.prose()).trim_end_matches('%'));
        }
        from = from.max(comment.end);
        let signs = Span::new(from, shown.end).of(reading.prose());
        from += signs.len() - signs.trim_start_matches(' ').trim_start_matches('%').len();
    }
    out.push_str(Span::new(from.min(shown.end), shown.end).of(reading.prose()));
    (out.trim().to_owned(), vec![shown], cut)
}

/// Returns where a snippet begins that shows the word at `at` of a long line: at the first sentence (UAX #29) that is not
/// too far before it, or else at a clause of a script without spaces, or at a word.
fn start_amid(raw: &str, line_start: usize, at: usize, length: usize) -> usize {
    let part = |from: usize, to: usize| raw.get(from..to).unwrap_or("");
    let earliest = end_after(raw, at - length / 3);
    let from = end_after(raw, line_start.max(at.saturating_sub(length)));
    // Whether a sentence begins at the word, its first letter tells.
    let sentences = part(from, end_after(raw, at + 1)).split_sentence_bound_indices();
    let mut sentences = sentences.map(|(offset, _)| from + offset);
    if let Some(start) = sentences.find(|start| (earliest..=at).contains(start)) {
        return start;
    }
    let clause = part(earliest, at).char_indices().find(|(_, c)| CLAUSE_MARKS.contains(c));
    if let Some((offset, mark)) = clause {
        return earliest + offset + mark.len_utf8();
    }
    let from = end_after(raw, at - length / 4);
    let before = part(from, at);
    if before.starts_with(is_unspaced) {
        return from;
    }
    before.find(char::is_whitespace).map_or(at, |offset| from + offset)
}

/// Extends the span of a passage by the markup that belongs to its first and last words, such as the brackets of a link. A
/// passage is cut from text without markup, so its span begins and ends within it.
fn with_markup(reading: &ParsedNote, span: Span) -> Span {
    let text = reading.prose();
    let pieces = &reading.note.pieces;
    let line_start = text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let before = pieces.iter().rfind(|piece| piece.span.end <= span.start).map_or(0, |piece| piece.span.end);
    let opening = Span::new(line_start.max(before).max(reading.note.body_start).min(span.start), span.start);
    let own = without_block_markers(opening.of(text)).len();
    let rest = text.get(span.end..).unwrap_or("");
    let line_end = rest.find('\n').map_or(text.len(), |at| span.end + at);
    let after = pieces.iter().find(|piece| piece.span.start >= span.end);
    let closing = Span::new(span.end, after.map_or(line_end, |piece| piece.span.start.min(line_end)));
    Span::new(span.start - own, span.end + closing_markup(closing.of(text)))
}

/// Removes the markers of headings, quotes, lists, tasks and cells from the beginning of a line.
fn without_block_markers(line: &str) -> &str {
    let mut rest = line.trim_start();
    loop {
        let bare = rest.trim_start_matches('#');
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let next = match rest.chars().next() {
            Some('#') if bare.is_empty() || bare.starts_with([' ', '\t']) => bare,
            Some('>' | '|' | '%') => rest.get(1..).unwrap_or(""),
            Some('-' | '+' | '*') if rest.get(1..).is_some_and(|rest| rest.starts_with([' ', '\t'])) => {
                rest.get(1..).unwrap_or("")
            }
            Some('0'..='9') if number.starts_with(['.', ')']) => number.get(1..).unwrap_or(""),
            Some('[') if rest.chars().nth(2) == Some(']') && rest.chars().nth(3) == Some(' ') => {
                rest.split_once(']').map_or("", |(_, rest)| rest)
            }
            _ => return rest,
        };
        rest = next.trim_start();
    }
}

/// Returns the length of the markup after a word: the destination of a link, or the text before the next space.
fn closing_markup(line: &str) -> usize {
    let end = |text: &str| text.find(char::is_whitespace).unwrap_or(text.len());
    if line.starts_with('%') {
        return 0;
    }
    match line.strip_prefix("](") {
        Some(destination) => match destination.find(')') {
            Some(at) => 2 + at + 1 + end(destination.get(at + 1..).unwrap_or("")),
            None => end(line),
        },
        None => end(line),
    }
}

/// Moves an offset forward to the end of a word.
fn word_end(text: &str, at: usize) -> usize {
    let at = end_after(text, at);
    let rest = text.get(at..).unwrap_or("");
    let step = rest.char_indices().take(40).find(|(_, c)| c.is_whitespace()).map_or(0, |(offset, _)| offset);
    at + step
}

fn marks(snippet: &str, matcher: &Matcher<'_>, stem: &mut CachedStemmer) -> Vec<(usize, usize)> {
    let mut marks: Vec<(usize, usize)> = Vec::new();
    matcher.each(snippet, stem, |_, start, end| match marks.last_mut() {
        Some(last) if start <= last.1 => last.1 = last.1.max(end),
        _ => marks.push((start, end)),
    });
    marks
}
