//! Passages: the chunks of a note that are embedded and shown (spec/search.md, Unit).
//!
//! Notes are split at headings and paragraphs. Tokens are estimated from characters, without a model.

use crate::text::ascii;
use crate::text::note::{Note, Piece, PieceKind, Separator};
use crate::text::span::Span;
use crate::text::terms::{ByteClass, is_unspaced};

/// The maximum size of a passage in estimated tokens.
const LONGEST: usize = 220;
/// A heading opens a new passage once the current one holds this many estimated tokens.
const SHORTEST: usize = 100;

/// A piece is cut where it has this many.
const LONG: usize = LONGEST - 20;
/// A word is looked at in steps of so many characters.
const STEP: usize = 20;

/// A chunk of a note that is embedded as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// From its first to its last searchable byte.
    pub span: Span,
    /// Indexes into [`Note::headings`]: the headings above it, outermost first, its own last where it opens with one.
    pub trail: Vec<usize>,
    /// Its text without markup; does not include the trail.
    pub text: String,
}

/// A passage as it is cut, in space that the next one takes over.
struct PassageDraft<'p> {
    span: Span,
    trail: &'p [usize],
    text: &'p str,
}

impl PassageDraft<'_> {
    /// Puts into `out` what a model embeds: title and headings above it, each on a line, then the text. A line that is
    /// only the text's own first words is left out.
    fn embedded_text(&self, title: &str, note: &Note, out: &mut String) {
        out.clear();
        let headings = self.trail.iter().filter_map(|&at| note.headings.get(at));
        let mut before = None;
        for line in std::iter::once(title.trim()).chain(headings.map(|heading| heading.text.as_str())) {
            if before.replace(line) == Some(line) {
                continue;
            }
            let bare = line.trim_end_matches(['.', '…', ' ']);
            let opens = self.text.get(..bare.len()).is_some_and(|start| start.eq_ignore_ascii_case(bare));
            if !line.is_empty() && !opens {
                out.push_str(line);
                out.push('\n');
            }
        }
        out.push_str(self.text);
    }
}

/// A paragraph, list item, cell or heading: pieces that belong together.
struct TextUnit {
    span: Span,
    tokens: usize,
    heading: Option<usize>,
    pieces: std::ops::Range<usize>,
}

/// Cuts a note into passages. `text` is what the note was parsed from.
pub fn passages(text: &str, note: &Note) -> Vec<Passage> {
    let mut passages = Vec::new();
    each_passage(text, note, |cut| {
        let PassageDraft { span, trail, text } = cut;
        passages.push(Passage { span, trail: trail.to_vec(), text: text.to_owned() });
    });
    passages
}

/// Visits what a model embeds of each passage of a note, in order: title and headings above it, each on a line, then the
/// text. A line that is only the text's own first words is left out. `text` is what the note was parsed from.
pub fn each_embedded_text(text: &str, note: &Note, title: &str, mut visit: impl FnMut(&str)) {
    let mut embedded = String::new();
    each_passage(text, note, |cut| {
        cut.embedded_text(title, note, &mut embedded);
        visit(&embedded);
    });
}

fn each_passage(text: &str, note: &Note, mut visit: impl FnMut(PassageDraft<'_>)) {
    let pieces = short_pieces(text, note);
    let units = units(note, &pieces);
    let total: usize = units.iter().map(|unit| unit.tokens).sum();
    let mut body = String::new();
    let mut give = |units: &[TextUnit], trail: &[usize]| {
        let (Some(first), Some(last)) = (units.first(), units.last()) else { return };
        assemble(text, &pieces, units, &mut body);
        visit(PassageDraft { span: Span::new(first.span.start, last.span.end), trail, text: &body });
    };
    // The passage at hand begins here.
    let mut from = 0;
    let mut tokens = 0;
    let mut trail: Vec<usize> = Vec::new();
    let mut own_trail: Vec<usize> = Vec::new();
    let mut has_body = false;
    for (at, unit) in units.iter().enumerate() {
        let full = tokens + unit.tokens > LONGEST && total > LONGEST;
        let turns = unit.heading.is_some() && tokens >= SHORTEST && total > LONGEST;
        if has_body && (full || turns) {
            give(units.get(from..at).unwrap_or_default(), &own_trail);
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
    give(units.get(from..).unwrap_or_default(), &own_trail);
}

/// A piece that is no passage by itself, with its estimated tokens.
type ShortPiece = (Piece, usize);

/// Puts the text of neighbouring units into `body`.
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

/// Joins pieces to plain text: nothing between parts of one word, a space at a line end, a new line between blocks.
pub fn push_pieces<'a>(text: &str, pieces: impl Iterator<Item = &'a Piece>, out: &mut String) {
    for (index, piece) in pieces.enumerate() {
        match piece.joint {
            _ if index == 0 || out.is_empty() => {}
            Separator::None => {}
            Separator::Line => out.push(' '),
            Separator::Block => out.push('\n'),
        }
        out.push_str(piece.span.of(text));
    }
}

/// Leaves comments out and cuts pieces that are passages by themselves, at the ends of sentences or else of words.
fn short_pieces(text: &str, note: &Note) -> Vec<ShortPiece> {
    let mut short = Vec::with_capacity(note.pieces.len());
    for piece in note.pieces.iter().filter(|piece| piece.kind != PieceKind::Comment) {
        let whole = piece.span.of(text);
        let tokens = estimate_tokens(whole);
        // A word that is estimated in steps counts one more for each step at most.
        if whole.len() <= LONGEST || tokens + whole.len() / STEP < LONG {
            short.push((*piece, tokens));
            continue;
        }
        let mut push = |piece: Piece| short.push((piece, estimate_tokens(piece.span.of(text))));
        let (mut start, mut tokens, mut joint) = (0, 0, piece.joint);
        let mut sentence_end = None;
        for (end, part) in word_ends(whole) {
            tokens += estimate_tokens(part);
            if part.trim_end().ends_with(['.', '!', '?', '。', '！', '？']) {
                sentence_end = Some(end);
            }
            if tokens >= LONG {
                let cut = sentence_end.filter(|&cut| cut > start).unwrap_or(end);
                let span = Span::new(piece.span.start + start, piece.span.start + cut);
                push(Piece { span, joint, ..*piece });
                // What follows is a unit of its own, or the next passage could not begin there.
                (start, joint, sentence_end) = (cut, Separator::Block, None);
                tokens = estimate_tokens(whole.get(cut..end).unwrap_or(""));
            }
        }
        if start < whole.len() {
            let span = Span::new(piece.span.start + start, piece.span.end);
            push(Piece { span, joint, ..*piece });
        }
    }
    short
}

/// Walks over a text in steps of one word with the space after it, and of [`STEP`] characters where there is no space.
fn word_ends(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..)?;
        let mut seen = 0;
        let step = rest
            .char_indices()
            .find(|(_, c)| {
                seen += 1;
                c.is_whitespace() || seen > STEP
            })
            .map_or(rest.len(), |(at, c)| if c.is_whitespace() { at + c.len_utf8() } else { at });
        let part = rest.get(..step).filter(|part| !part.is_empty())?;
        start += step;
        Some((start, part))
    })
}

fn units(note: &Note, pieces: &[ShortPiece]) -> Vec<TextUnit> {
    let mut units: Vec<TextUnit> = Vec::new();
    let mut next_heading = 0;
    for (index, &(piece, tokens)) in pieces.iter().enumerate() {
        let heading = (piece.kind == PieceKind::Heading)
            .then(|| heading_at(note, piece.span, &mut next_heading))
            .flatten();
        let continues = piece.joint != Separator::Block
            && units.last().is_some_and(|unit| {
                unit.pieces.end == index && unit.heading == heading && unit.tokens < LONGEST
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

/// Estimates how many word pieces a BERT tokenizer makes of a text: one for five letters of a word, one for each
/// sign and each character of an unspaced script.
pub fn estimate_tokens(text: &str) -> usize {
    let (mut tokens, mut letters) = (0usize, 0usize);
    if text.is_ascii() {
        let mut add = |eight: [u8; 8]| {
            let eight = u64::from_le_bytes(eight);
            let word = ascii::letters(eight);
            let signs = ascii::ALL & !word & !ascii::spaces(eight);
            let step = &STEPS[letters][usize::from(ascii::gathered(word))];
            tokens += signs.count_ones() as usize + usize::from(step.tokens);
            letters = usize::from(step.letters);
        };
        let (eights, behind) = text.as_bytes().as_chunks();
        eights.iter().for_each(|eight| add(*eight));
        // Spaces add nothing.
        let mut last = [b' '; 8];
        last.iter_mut().zip(behind).for_each(|(byte, &of_text)| *byte = of_text);
        add(last);
        return tokens;
    }
    for c in text.chars() {
        match class_of(c) {
            ByteClass::Small | ByteClass::Capital => {
                // The first letter of each five is a token.
                tokens += usize::from(letters == 0);
                letters = (letters + 1) % FIVE;
            }
            ByteClass::Sign | ByteClass::Wide => (tokens, letters) = (tokens + 1, 0),
            ByteClass::Space => letters = 0,
        }
    }
    tokens
}

/// So many letters of a word are taken for a token.
const FIVE: usize = 5;

/// What eight bytes add: so many tokens that letters begin, and so many letters of the last one.
#[derive(Clone, Copy)]
struct WordStep {
    tokens: u8,
    letters: u8,
}

/// What eight bytes add, by the number of letters that the token before them has, and by which of them are letters.
static STEPS: [[WordStep; 256]; FIVE] = {
    let mut steps = [[WordStep { tokens: 0, letters: 0 }; 256]; FIVE];
    let mut at = 0;
    while at < FIVE * 256 {
        let (before, set) = (at / 256, at % 256);
        let mut step = WordStep { tokens: 0, letters: before as u8 };
        let mut byte = 0;
        while byte < 8 {
            if set >> byte & 1 == 0 {
                step.letters = 0;
            } else {
                step.tokens += (step.letters == 0) as u8;
                step.letters = (step.letters + 1) % FIVE as u8;
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
