//! Capture: the parts of an agent's answer that are worth a note.

use std::sync::LazyLock;

use regex::Regex;
use sidenote_language::folding::is_unspaced;
use sidenote_language::word_lists::{List, Reading};

/// The minimum length of a part in letters.
const SHORTEST: usize = 10;
/// The maximum length of a part in letters.
const LONGEST: usize = 500;
/// The maximum number of parts that are kept of one conversation.
pub const MOST: usize = 3;
/// The minimum score of a part that is kept.
const LEAST: f64 = 0.3;

/// A part of an answer with its score.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureCandidate {
    /// The text.
    pub text: String,
    /// The score; higher is better.
    pub score: f64,
}

/// Patterns of sentences that report decisions, findings, fixes, preferences and facts, each with its score.
const PATTERNS: &[(&str, f64)] = &[
    (r"(?i)\b(?:decided|decision|we chose|chose to|going with|settled on|agreed)\b", 0.4),
    (r"(?i)\b(?:fixed|root cause|caused by|the (?:bug|problem|issue) (?:was|is)|turns out)\b", 0.4),
    (r"(?i)\b(?:prefers?|always|never|must not|make sure|from now on)\b", 0.35),
    (r"(?i)\b(?:learned|discovered|found (?:that|out)|it appears|note that|remember)\b", 0.3),
    (r"(?i)\b(?:to (?:install|run|build|deploy|test)|first .* then|steps?:)", 0.25),
    (r"(?i)\b(?:is (?:located|stored|configured|defined) (?:in|at|by)|lives in|default(?:s)? to)\b", 0.25),
];

/// Words that mark a statement as important.
const WEIGHTY: &[&str] =
    &["important", "critical", "warning", "key", "essential", "careful", "required", "breaking"];

/// The lists of languages whose phrases tell that a part is worth a note, with the type of memories whose words do, too, and
/// the score.
const SIGNS: [(List, &str, f64); 6] = [
    (List::Decisions, "decision", 0.4),
    (List::Fixes, "bugfix", 0.4),
    (List::Preferences, "preference", 0.35),
    (List::Discoveries, "discovery", 0.3),
    (List::Procedures, "procedural", 0.25),
    (List::Places, "", 0.25),
];

/// Returns the length of a text in letters. A character of a script without spaces says as much as two.
fn length(text: &str) -> usize {
    text.chars().map(|c| if is_unspaced(c) { 2 } else { 1 }).sum()
}

static MATCHERS: LazyLock<Vec<(Regex, f64)>> = LazyLock::new(|| {
    PATTERNS.iter().filter_map(|(pattern, worth)| Some((Regex::new(pattern).ok()?, *worth))).collect()
});

/// Splits an answer into paragraphs, and long paragraphs into sentences. A code block is one part, and is dropped if it
/// is too long.
pub fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut add = |paragraph: &str| {
        let paragraph = paragraph.trim();
        match length(paragraph) {
            SHORTEST..=LONGEST => parts.push(paragraph.to_owned()),
            letters if letters > LONGEST && !paragraph.contains("```") => {
                let fits = |sentence: &&str| (SHORTEST..=LONGEST).contains(&length(sentence));
                parts.extend(sentences(paragraph).into_iter().filter(fits).map(str::to_owned));
            }
            _ => {}
        }
    };
    let (mut paragraph, mut fenced) = (String::new(), false);
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if line.trim().is_empty() && !fenced {
            add(&std::mem::take(&mut paragraph));
        } else {
            paragraph.push_str(line);
            paragraph.push('\n');
        }
    }
    add(&paragraph);
    parts
}

/// Splits a paragraph into sentences.
fn sentences(text: &str) -> Vec<&str> {
    let (mut found, mut begin) = (Vec::new(), 0);
    let mut letters = text.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        let is_end = match c {
            '.' | '!' | '?' => letters.peek().is_none_or(|(_, next)| next.is_whitespace()),
            '。' | '！' | '？' | '\n' => true,
            _ => false,
        };
        if is_end {
            let end = at + c.len_utf8();
            found.extend(text.get(begin..end).map(str::trim).filter(|sentence| !sentence.is_empty()));
            begin = end;
        }
    }
    found.extend(text.get(begin..).map(str::trim).filter(|sentence| !sentence.is_empty()));
    found
}

/// Scores a part by its patterns, length, code, important words and lists.
pub fn score(part: &str) -> f64 {
    let met = MATCHERS.iter().filter(|(pattern, _)| pattern.is_match(part));
    let mut score: f64 = met.map(|(_, worth)| worth).sum();
    let reading = Reading::of(part);
    let types = reading.values(List::Types);
    let told = SIGNS.iter().filter(|(list, kind, _)| reading.has(*list) || types.contains(kind));
    score += told.map(|(_, _, worth)| worth).sum::<f64>();
    let lower = part.to_lowercase();
    let is_weighty = |word: &str| WEIGHTY.contains(&word);
    score += if lower.split(|c: char| !c.is_alphanumeric()).any(is_weighty) || reading.has(List::Important) {
        0.2
    } else {
        0.0
    };
    score += if part.contains('`') { 0.1 } else { 0.0 };
    let is_item =
        |line: &str| line.trim_start().starts_with(['-', '*', '•']) || line.trim_start().starts_with("1.");
    score += if part.lines().any(is_item) { 0.1 } else { 0.0 };
    // Parts of one or two sentences are best.
    score += match length(part) {
        50..=300 => 0.15,
        30..=400 => 0.05,
        _ => 0.0,
    };
    // A question states nothing.
    if part.trim_end().ends_with(['?', '？']) { score - 0.3 } else { score }
}

/// Returns the best parts of an answer in their original order.
pub fn pick(text: &str) -> Vec<CaptureCandidate> {
    let scored = parts(text).into_iter().map(|text| CaptureCandidate { score: score(&text), text });
    let mut found: Vec<(usize, CaptureCandidate)> =
        scored.enumerate().filter(|(_, part)| part.score >= LEAST).collect();
    found.sort_by(|(_, one), (_, other)| other.score.total_cmp(&one.score));
    found.truncate(MOST);
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, part)| part).collect()
}
