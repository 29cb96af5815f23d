//! Glyphs to lines: which glyphs stand on one line, where its spaces are, and in which order it is read.

use unicode_normalization::UnicodeNormalization;

use super::{Placed, is_unspaced};

/// The gap, in ems, above which glyphs that follow each other in the file belong to different cells or columns. A
/// justified line is stretched up to about one em.
const CELL_GAP: f64 = 1.5;

/// The gap, in ems, above which glyphs that do not follow each other in the file belong to different columns. Narrow
/// columns stand one em apart.
const COLUMN_GAP: f64 = 0.7;

/// The gap, in ems, that is a space. Kerning stays below a tenth, spaces are at least a sixth.
const SPACE_GAP: f64 = 0.13;

/// How far, in ems, glyphs of one line may stand above or below each other, as in a superscript.
const BASE_SHIFT: f64 = 0.35;

/// A run of glyphs on one line without a wide gap.
#[derive(Debug)]
pub(super) struct Line {
    /// Its text in the order in which it is read.
    pub text: String,
    pub start: f64,
    pub end: f64,
    pub base: f64,
    pub size: f64,
    /// Its place in the order of the file.
    pub painted: usize,
    /// Whether it follows the line before it in the file and stands to the right of it on the same base: cells of a row.
    pub continues_row: bool,
}

/// Glyphs that follow each other in the file and on the page.
struct Run {
    glyphs: Vec<Placed>,
    start: f64,
    end: f64,
    base: f64,
    size: f64,
    painted: usize,
    continues_row: bool,
}

impl Run {
    fn new(glyph: Placed, painted: usize, continues_row: bool) -> Self {
        let Placed { start, end, base, size, .. } = glyph;
        Self { glyphs: vec![glyph], start, end, base, size, painted, continues_row }
    }

    fn push(&mut self, glyph: Placed) {
        self.start = self.start.min(glyph.start);
        self.end = self.end.max(glyph.end);
        // The largest glyphs give a line its base.
        if glyph.size > self.size * 1.2 {
            (self.base, self.size) = (glyph.base, glyph.size);
        }
        self.glyphs.push(glyph);
    }

    fn join(&mut self, other: Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        if other.size > self.size * 1.2 {
            (self.base, self.size) = (other.base, other.size);
        }
        self.painted = self.painted.min(other.painted);
        self.continues_row &= other.continues_row;
        self.glyphs.extend(other.glyphs);
    }

    fn distance(&self, other: &Self) -> f64 {
        (other.start - self.end).max(self.start - other.end)
    }
}

/// Puts glyphs together to lines.
pub(super) fn lines(glyphs: Vec<Placed>) -> Vec<Line> {
    let runs = join_runs(runs(glyphs));
    let right_to_left = runs.iter().flat_map(|run| &run.glyphs).flat_map(|glyph| glyph.text.chars());
    let (mut leftwards, mut rightwards) = (0_usize, 0_usize);
    for c in right_to_left {
        match direction(c) {
            Direction::Right => rightwards += 1,
            Direction::Left => leftwards += 1,
            Direction::Number | Direction::Neutral => {}
        }
    }
    let page_is_rtl = leftwards > rightwards;
    let lines = runs.into_iter().map(|run| line(run, leftwards > 0, page_is_rtl));
    lines.filter(|line| !line.text.is_empty()).collect()
}

fn runs(glyphs: Vec<Placed>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut last: Option<(f64, f64)> = None;
    for glyph in glyphs {
        if let (Some(run), Some((start, end))) = (runs.last_mut(), last) {
            let em = run.size.max(glyph.size);
            let distance = (glyph.start - end).max(start - glyph.end);
            let same_base = (glyph.base - run.base).abs() <= BASE_SHIFT * em;
            if same_base && distance <= CELL_GAP * em {
                last = Some((glyph.start, glyph.end));
                run.push(glyph);
                continue;
            }
            let is_next_cell = same_base && glyph.start >= run.end;
            last = Some((glyph.start, glyph.end));
            let painted = runs.len();
            runs.push(Run::new(glyph, painted, is_next_cell));
            continue;
        }
        last = Some((glyph.start, glyph.end));
        runs.push(Run::new(glyph, 0, false));
    }
    runs.retain(|run| run.glyphs.iter().any(|glyph| !glyph.text.trim().is_empty()));
    runs
}

/// Joins runs on the same base that touch, and sub- and superscripts with what they stand at.
fn join_runs(runs: Vec<Run>) -> Vec<Run> {
    let mut by_base: Vec<usize> = (0..runs.len()).collect();
    by_base.sort_by(|&a, &b| runs[a].base.total_cmp(&runs[b].base));
    let tallest = runs.iter().map(|run| run.size).fold(0.0, f64::max);
    let mut parent: Vec<usize> = (0..runs.len()).collect();
    for (position, &a) in by_base.iter().enumerate() {
        // A page with thousands of runs on one base is a drawing; comparing each with some dozens bounds the time.
        for &b in by_base[position + 1..].iter().take(400) {
            if runs[b].base - runs[a].base > tallest {
                break;
            }
            if touches(&runs[a], &runs[b]) {
                let (x, y) = (root(&mut parent, a), root(&mut parent, b));
                parent[x.max(y)] = x.min(y);
            }
        }
    }
    let mut joined: Vec<Option<Run>> = Vec::new();
    joined.resize_with(runs.len(), || None);
    for (index, run) in runs.into_iter().enumerate() {
        let to = root(&mut parent, index);
        match &mut joined[to] {
            Some(first) => first.join(run),
            empty => *empty = Some(run),
        }
    }
    joined.into_iter().flatten().collect()
}

fn root(parent: &mut [usize], mut of: usize) -> usize {
    while parent[of] != of {
        parent[of] = parent[parent[of]];
        of = parent[of];
    }
    of
}

fn touches(a: &Run, b: &Run) -> bool {
    let (large, small) = if a.size >= b.size { (a, b) } else { (b, a) };
    let shift = (a.base - b.base).abs();
    let distance = a.distance(b);
    if shift <= 0.2 * small.size {
        return distance <= COLUMN_GAP * large.size;
    }
    // A superscript or a subscript.
    let within =
        small.base <= large.base + BASE_SHIFT * large.size && small.base >= large.base - 0.7 * large.size;
    small.size <= 0.85 * large.size && within && distance <= 0.3 * large.size
}

fn line(mut run: Run, may_be_rtl: bool, page_is_rtl: bool) -> Line {
    let glyphs = &mut run.glyphs;
    glyphs.sort_by(|a, b| a.start.total_cmp(&b.start));
    // Some programs paint a glyph twice to make it bold.
    glyphs.dedup_by(|b, a| {
        let near = (0.15 * a.size).min(0.5 * (a.end - a.start));
        a.text == b.text
            && (b.start - a.start).abs() < near
            && (b.base - a.base).abs() < near
            && !a.text.trim().is_empty()
    });
    compose_accents(glyphs);
    let mut pieces = with_spaces(glyphs);
    if may_be_rtl {
        pieces = logical_order(pieces, page_is_rtl);
    }
    let text: String = pieces.concat();
    let text: String = text.chars().filter(|c| !c.is_control() || c.is_whitespace()).collect();
    let text = join_words(&text);
    let Run { start, end, base, size, painted, continues_row, .. } = run;
    Line { text: text.nfc().collect(), start, end, base, size, painted, continues_row }
}

/// Returns the texts of glyphs with a space for each gap that is wide.
fn with_spaces(glyphs: &[Placed]) -> Vec<String> {
    let gap = |pair: &[Placed]| (pair[1].start - pair[0].end) / pair[0].size.max(pair[1].size);
    let limit = space_limit(glyphs.windows(2).filter(|pair| pair.iter().all(is_letter)).map(gap).collect());
    let mut gaps = glyphs.windows(2).map(gap);
    let mut pieces = Vec::with_capacity(glyphs.len() * 5 / 4);
    for (index, glyph) in glyphs.iter().enumerate() {
        if index > 0 {
            let gap = gaps.next().unwrap_or(0.0);
            let unspaced = |text: &str| text.chars().next().is_some_and(is_unspaced);
            let limit = if unspaced(&glyph.text) && unspaced(&glyphs[index - 1].text) {
                0.6_f64.max(limit)
            } else {
                limit
            };
            if gap > limit {
                pieces.push(" ".to_owned());
            }
        }
        pieces.push(letters(&glyph.text));
    }
    pieces
}

/// Returns the gap, in ems, above which there is a space, from the gaps between the letters of a line.
fn space_limit(mut gaps: Vec<f64>) -> f64 {
    gaps.retain(|gap| gap.is_finite());
    gaps.sort_by(f64::total_cmp);
    let (Some(&least), Some(&usual)) = (gaps.get(gaps.len() / 10), gaps.get(gaps.len() / 2)) else {
        return SPACE_GAP;
    };
    // Letters that are spaced out all have such a gap. Beyond a quarter of an em they are single letters with spaces.
    let spaced_out = gaps.len() >= 6 && least > 0.08 && usual < 0.3;
    if spaced_out { usual + SPACE_GAP.max(0.5 * usual) } else { SPACE_GAP }
}

fn is_letter(glyph: &Placed) -> bool {
    glyph.text.chars().all(char::is_alphabetic)
}

/// Joins the words of a line. The dots that lead to a page's number in a table of contents are left out.
fn join_words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut joined = String::with_capacity(text.len());
    for group in words.chunk_by(|a, b| *a == "." && *b == ".") {
        if group.len() > 2 {
            continue;
        }
        for word in group {
            if !joined.is_empty() {
                joined.push(' ');
            }
            joined.push_str(word);
        }
    }
    joined
}

/// Returns the letters that a form such as `ﬁ` stands for, whose codes tell the shape of letters.
fn letters(text: &str) -> String {
    let is_form = |c: char| matches!(u32::from(c), 0xfb00..=0xfb06 | 0xfb13..=0xfb17 | 0xfb1d..=0xfdff | 0xfe70..=0xfefc);
    if text.contains(is_form) { text.nfkc().collect() } else { text.to_owned() }
}

/// Writes accents that are painted over a letter behind it, as combining marks.
fn compose_accents(glyphs: &mut Vec<Placed>) {
    let mark_of = |glyph: &Placed| {
        let mut characters = glyph.text.chars();
        let (first, rest) = (characters.next()?, characters.next());
        rest.is_none().then(|| combining(first)).flatten()
    };
    let mut index = 0;
    while index < glyphs.len() {
        if let Some(mark) = mark_of(&glyphs[index]) {
            let middle = (glyphs[index].start + glyphs[index].end) / 2.0;
            let near = [index.checked_sub(1), Some(index + 1)].into_iter().flatten();
            let base = near.filter(|&at| {
                glyphs.get(at).is_some_and(|glyph| {
                    let letter = glyph.text.chars().next_back().is_some_and(char::is_alphabetic);
                    letter && glyph.start < middle && middle < glyph.end
                })
            });
            if let Some(base) = base.min_by(|&a, &b| {
                let off = |at: usize| ((glyphs[at].start + glyphs[at].end) / 2.0 - middle).abs();
                off(a).total_cmp(&off(b))
            }) {
                let letter = glyphs[base].text.replace('ı', "i").replace('ȷ', "j");
                glyphs[base].text = format!("{letter}{mark}").into();
                glyphs.remove(index);
                continue;
            }
        }
        index += 1;
    }
}

/// Returns the combining mark that looks like an accent.
fn combining(accent: char) -> Option<char> {
    Some(match accent {
        '`' => '\u{300}',
        '´' | '\u{2ca}' => '\u{301}',
        '^' | 'ˆ' => '\u{302}',
        '~' | '˜' => '\u{303}',
        '¯' => '\u{304}',
        '˘' => '\u{306}',
        '˙' => '\u{307}',
        '¨' => '\u{308}',
        '˚' => '\u{30a}',
        '˝' => '\u{30b}',
        'ˇ' => '\u{30c}',
        '¸' => '\u{327}',
        '˛' => '\u{328}',
        '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{64b}'..='\u{65f}' | '\u{670}' => accent,
        _ => return None,
    })
}

/// In which direction a character is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// As Latin letters.
    Right,
    /// As Hebrew and Arabic letters.
    Left,
    /// Digits run to the right in a line that runs to the left.
    Number,
    Neutral,
}

fn direction(c: char) -> Direction {
    match u32::from(c) {
        0x660..=0x669 | 0x6f0..=0x6f9 => Direction::Number,
        0x590..=0x8ff | 0xfb1d..=0xfdff | 0xfe70..=0xfefc | 0x1_0800..=0x1_0fff | 0x1_e800..=0x1_efff => {
            Direction::Left
        }
        _ if c.is_numeric() => Direction::Number,
        _ if c.is_alphabetic() => Direction::Right,
        _ => Direction::Neutral,
    }
}

/// Puts pieces that stand from left to right into the order in which they are read.
fn logical_order(mut pieces: Vec<String>, page_is_rtl: bool) -> Vec<String> {
    let direct = |piece: &String| {
        let mut strong = piece.chars().map(direction).filter(|d| *d != Direction::Neutral);
        strong.next().unwrap_or(Direction::Neutral)
    };
    let count = |pieces: &[String], wanted| pieces.iter().filter(|piece| direct(piece) == wanted).count();
    let leftwards = count(&pieces, Direction::Left);
    if leftwards == 0 {
        return pieces;
    }
    if page_is_rtl || leftwards > count(&pieces, Direction::Right) {
        pieces.reverse();
        reverse_runs(&mut pieces, direct, Direction::Right);
    } else {
        reverse_runs(&mut pieces, direct, Direction::Left);
    }
    pieces
}

/// Reverses each run of pieces that are written in the direction `of`, with what stands between them. Numbers inside of a
/// run to the left, and those alone, keep their digits in order.
fn reverse_runs(pieces: &mut [String], direct: impl Fn(&String) -> Direction, of: Direction) {
    let directions: Vec<_> = pieces.iter().map(&direct).collect();
    let opposite = if of == Direction::Right { Direction::Left } else { Direction::Right };
    let mut at = 0;
    while at < pieces.len() {
        let begins = directions[at] == of || (of == Direction::Right && directions[at] == Direction::Number);
        if !begins {
            at += 1;
            continue;
        }
        let mut end = at + 1;
        let mut spaced = false;
        for next in at + 1..pieces.len() {
            spaced |= pieces[next].trim().is_empty();
            match directions[next] {
                d if d == opposite => break,
                d if d == of => end = next + 1,
                // Two numbers with a space between them are two runs, unless letters join them.
                Direction::Number if of == Direction::Right && !spaced => end = next + 1,
                _ => {}
            }
        }
        pieces[at..end].reverse();
        if of == Direction::Left {
            let inner: Vec<_> = directions[at..end].iter().rev().copied().collect();
            reverse_numbers(&mut pieces[at..end], &inner);
        }
        at = end;
    }
}

fn reverse_numbers(pieces: &mut [String], directions: &[Direction]) {
    let mut at = 0;
    while at < pieces.len() {
        let length = directions[at..].iter().take_while(|d| **d == Direction::Number).count();
        pieces[at..at + length].reverse();
        at += length.max(1);
    }
}
