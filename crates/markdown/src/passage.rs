//! Passages: the chunks of a note that are embedded and shown (docs/spec/search.md, Unit).
//!
//! Notes are split at headings and paragraphs. Tokens are estimated from characters, without a model.

use sidenote_language::ascii;
use sidenote_language::folding::is_unspaced;
use sidenote_language::terms::ByteClass;

use crate::attachment::PLACE;
use crate::note::{Note, Piece, PieceKind, Separator};
use crate::span::Span;

/// The most estimated tokens of a passage.
const MAX_TOKENS: usize = 220;
/// The least estimated tokens of a passage that the next heading ends.
const MIN_TOKENS: usize = 100;

/// The estimated tokens at which a piece is split.
const MAX_PIECE_TOKENS: usize = MAX_TOKENS - 20;
/// The number of characters after which a long word can be split.
const STEP_CHARS: usize = 20;

/// A chunk of a note that is embedded as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The bytes from the first to the last searchable one.
    pub span: Span,
    /// The headings above the passage as indexes into [`Note::headings`], outermost first. If the passage begins with a
    /// heading, that heading is the last one.
    pub trail: Vec<usize>,
    /// The text without markup and without the headings above the passage.
    pub text: String,
}

/// A passage that borrows buffers which the next passage reuses.
struct PassageDraft<'p> {
    span: Span,
    trail: &'p [usize],
    text: &'p str,
}

impl PassageDraft<'_> {
    /// Writes to `out` what a model embeds: the title and the headings above the passage, each on a line, then the
    /// text. A line that only repeats the beginning of the text is omitted.
    fn embedded_text(&self, title: &str, note: &Note, out: &mut String) {
        out.clear();
        let headings = self.trail.iter().filter_map(|&at| note.headings.get(at));
        let mut previous = None;
        for line in std::iter::once(title.trim()).chain(headings.map(|heading| heading.text.as_str())) {
            if previous.replace(line) == Some(line) {
                continue;
            }
            let bare = line.trim_end_matches(['.', '…', ' ']);
            let is_repeated =
                self.text.get(..bare.len()).is_some_and(|start| start.eq_ignore_ascii_case(bare));
            if !line.is_empty() && !is_repeated {
                out.push_str(line);
                out.push('\n');
            }
        }
        out.push_str(self.text);
    }
}

/// A paragraph, list item, table cell or heading: pieces that are not separated.
struct TextUnit {
    span: Span,
    tokens: usize,
    heading: Option<usize>,
    pieces: std::ops::Range<usize>,
}

/// Splits a note into passages. `text` is the text that the note was parsed from.
pub fn passages(text: &str, note: &Note) -> Vec<Passage> {
    let mut passages = Vec::new();
    visit_passages(text, note, |draft| {
        let PassageDraft { span, trail, text } = draft;
        passages.push(Passage { span, trail: trail.to_vec(), text: text.to_owned() });
    });
    passages
}

/// Visits what a model embeds of each passage of a note, in order: the title and the headings above it, each on a line,
/// then the text. A line that only repeats the beginning of the text is omitted. `text` is the text that the note was
/// parsed from.
pub fn each_embedded_text(text: &str, note: &Note, title: &str, mut visit: impl FnMut(&str)) {
    let mut embedded = String::new();
    visit_passages(text, note, |draft| {
        draft.embedded_text(title, note, &mut embedded);
        visit(&embedded);
    });
}

fn visit_passages(text: &str, note: &Note, mut visit: impl FnMut(PassageDraft<'_>)) {
    let pieces = short_pieces(text, note);
    let units = units(note, &pieces);
    let total: usize = units.iter().map(|unit| unit.tokens).sum();
    let mut body = String::new();
    let mut emit = |units: &[TextUnit], trail: &[usize]| {
        let (Some(first), Some(last)) = (units.first(), units.last()) else { return };
        assemble(text, &pieces, units, &mut body);
        visit(PassageDraft { span: Span::new(first.span.start, last.span.end), trail, text: &body });
    };
    // The index of the first unit of the current passage.
    let mut from = 0;
    let mut tokens = 0;
    let mut trail: Vec<usize> = Vec::new();
    let mut own_trail: Vec<usize> = Vec::new();
    let mut has_body = false;
    for (at, unit) in units.iter().enumerate() {
        let is_full = tokens + unit.tokens > MAX_TOKENS && total > MAX_TOKENS;
        let is_next_section = unit.heading.is_some() && tokens >= MIN_TOKENS && total > MAX_TOKENS;
        // A passage tells in which place of an attachment it is.
        let place =
            unit.heading.and_then(|at| note.headings.get(at)).filter(|heading| heading.level == PLACE);
        if has_body && (is_full || is_next_section || place.is_some()) {
            emit(units.get(from..at).unwrap_or_default(), &own_trail);
            from = at;
            tokens = 0;
            has_body = false;
        }
        if let Some(heading) = unit.heading {
            let level = |at: usize| note.headings.get(at).map_or(0, |heading| heading.level);
            trail.retain(|&above| level(above) < level(heading));
            trail.push(heading);
        }
        if from == at {
            own_trail.clone_from(&trail);
        }
        has_body |= unit.heading.is_none();
        tokens += unit.tokens;
    }
    emit(units.get(from..).unwrap_or_default(), &own_trail);
}

/// A piece that is smaller than a passage, with its estimated tokens.
type ShortPiece = (Piece, usize);

/// Writes the text of consecutive units to `body`.
fn assemble(text: &str, pieces: &[ShortPiece], units: &[TextUnit], body: &mut String) {
    body.clear();
    for unit in units {
        if !body.is_empty() {
            body.push('\n');
        }
        let pieces = pieces.get(unit.pieces.clone()).unwrap_or_default();
        push_pieces(text, pieces.iter().map(|(piece, _)| piece), body);
    }
}

/// Appends pieces to `out` as plain text: nothing separates parts of one word, a line end becomes a space, and a line
/// feed separates blocks.
pub fn push_pieces<'a>(text: &str, pieces: impl Iterator<Item = &'a Piece>, out: &mut String) {
    for (index, piece) in pieces.enumerate() {
        match piece.separator {
            _ if index == 0 || out.is_empty() => {}
            Separator::None => {}
            Separator::Line => out.push(' '),
            Separator::Block => out.push('\n'),
        }
        out.push_str(piece.span.of(text));
    }
}

/// Returns the pieces without comments. Large pieces are split at ends of sentences, or else of words.
fn short_pieces(text: &str, note: &Note) -> Vec<ShortPiece> {
    let mut short = Vec::with_capacity(note.pieces.len());
    for piece in note.pieces.iter().filter(|piece| piece.kind != PieceKind::Comment) {
        let whole = piece.span.of(text);
        let tokens = estimate_tokens(whole);
        // A word that is split for the estimate counts at most one token more per step.
        if whole.len() <= MAX_TOKENS || tokens + whole.len() / STEP_CHARS < MAX_PIECE_TOKENS {
            short.push((*piece, tokens));
            continue;
        }
        let mut push = |piece: Piece| short.push((piece, estimate_tokens(piece.span.of(text))));
        let (mut start, mut tokens, mut separator) = (0, 0, piece.separator);
        let mut sentence_end = None;
        for (end, part) in word_ends(whole) {
            tokens += estimate_tokens(part);
            if part.trim_end().ends_with(['.', '!', '?', '。', '！', '？']) {
                sentence_end = Some(end);
            }
            if tokens >= MAX_PIECE_TOKENS {
                let cut = sentence_end.filter(|&cut| cut > start).unwrap_or(end);
                let span = Span::new(piece.span.start + start, piece.span.start + cut);
                push(Piece { span, separator, ..*piece });
                // The remainder is a unit by itself, so that a passage can begin with it.
                (start, separator, sentence_end) = (cut, Separator::Block, None);
                tokens = estimate_tokens(whole.get(cut..end).unwrap_or(""));
            }
        }
        if start < whole.len() {
            let span = Span::new(piece.span.start + start, piece.span.end);
            push(Piece { span, separator, ..*piece });
        }
    }
    short
}

/// Splits a text into words, each with the space after it, and into [`STEP_CHARS`] characters where there is no space.
/// Each part comes with the offset of its end.
fn word_ends(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..)?;
        let mut seen = 0;
        let step = rest
            .char_indices()
            .find(|(_, c)| {
                seen += 1;
                c.is_whitespace() || seen > STEP_CHARS
            })
            .map_or(rest.len(), |(at, c)| if c.is_whitespace() { at + c.len_utf8() } else { at });
        let part = rest.get(..step).filter(|part| !part.is_empty())?;
        start += step;
        Some((start, part))
    })
}

/// Groups pieces into units.
fn units(note: &Note, pieces: &[ShortPiece]) -> Vec<TextUnit> {
    let mut units: Vec<TextUnit> = Vec::with_capacity(pieces.len() / 2 + 1);
    let mut next_heading = 0;
    for (index, &(piece, tokens)) in pieces.iter().enumerate() {
        let heading = (piece.kind == PieceKind::Heading)
            .then(|| heading_at(note, piece.span, &mut next_heading))
            .flatten();
        let continues = piece.separator != Separator::Block
            && units.last().is_some_and(|unit| {
                unit.pieces.end == index && unit.heading == heading && unit.tokens < MAX_TOKENS
            });
        match units.last_mut() {
            Some(unit) if continues => {
                unit.span.end = piece.span.end;
                unit.tokens += tokens;
                unit.pieces.end = index + 1;
            }
            _ => units.push(TextUnit { span: piece.span, tokens, heading, pieces: index..index + 1 }),
        }
    }
    units
}

/// Finds the heading that contains a span, at or after the index `next`.
fn heading_at(note: &Note, span: Span, next: &mut usize) -> Option<usize> {
    while let Some(heading) = note.headings.get(*next) {
        if heading.span.encloses(span) {
            return Some(*next);
        }
        if heading.span.start > span.start {
            return None;
        }
        *next += 1;
    }
    None
}

/// Estimates the number of tokens of a text for a BERT tokenizer: one for every five letters of a word, and one for
/// each sign and each character of a script without spaces.
pub fn estimate_tokens(text: &str) -> usize {
    let (mut tokens, mut letters) = (0usize, 0usize);
    if text.is_ascii() {
        let mut add = |chunk: [u8; 8]| {
            let chunk = u64::from_le_bytes(chunk);
            let word = ascii::letters(chunk);
            let signs = ascii::ALL & !word & !ascii::spaces(chunk);
            let step = &STEPS[letters][usize::from(ascii::packed_bits(word))];
            tokens += signs.count_ones() as usize + usize::from(step.tokens);
            letters = usize::from(step.letters);
        };
        let (chunks, remainder) = text.as_bytes().as_chunks();
        chunks.iter().for_each(|chunk| add(*chunk));
        // Padding with spaces adds no tokens.
        let mut last = [b' '; 8];
        last.iter_mut().zip(remainder).for_each(|(byte, &value)| *byte = value);
        add(last);
        return tokens;
    }
    for c in text.chars() {
        match class_of(c) {
            ByteClass::Small | ByteClass::Capital => {
                // The first of every five letters counts as a token.
                tokens += usize::from(letters == 0);
                letters = (letters + 1) % LETTERS_PER_TOKEN;
            }
            ByteClass::Sign | ByteClass::Wide => (tokens, letters) = (tokens + 1, 0),
            ByteClass::Space => letters = 0,
        }
    }
    tokens
}

/// The number of letters of a word that count as one token.
const LETTERS_PER_TOKEN: usize = 5;

/// The effect of eight bytes: the tokens that begin in them, and the number of letters of the last token.
#[derive(Clone, Copy)]
struct WordStep {
    tokens: u8,
    letters: u8,
}

/// The effect of eight bytes, by the number of letters of the token before them, and by the set of bytes that are
/// letters.
static STEPS: [[WordStep; 256]; LETTERS_PER_TOKEN] = {
    let mut steps = [[WordStep { tokens: 0, letters: 0 }; 256]; LETTERS_PER_TOKEN];
    let mut at = 0;
    while at < LETTERS_PER_TOKEN * 256 {
        let (before, set) = (at / 256, at % 256);
        let mut step = WordStep { tokens: 0, letters: before as u8 };
        let mut byte = 0;
        while byte < 8 {
            if set >> byte & 1 == 0 {
                step.letters = 0;
            } else {
                step.tokens += (step.letters == 0) as u8;
                step.letters = (step.letters + 1) % LETTERS_PER_TOKEN as u8;
            }
            byte += 1;
        }
        steps[before][set] = step;
        at += 1;
    }
    steps
};

fn class_of(c: char) -> ByteClass {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => ByteClass::of(byte),
        _ if c.is_alphanumeric() && !is_unspaced(c) => ByteClass::Small,
        _ if c.is_whitespace() => ByteClass::Space,
        _ => ByteClass::Sign,
    }
}
