//! Recall: the choice of memories for an agent's prompt, and the text block that contains them.

use std::collections::HashSet;

use serde::Serialize;
use sidenote_language::graphemes::end_before;
use sidenote_language::terms::{Term, TermKind, is_stop_word, terms};
use sidenote_language::word_lists::{List, Reading};

use crate::context::WorkContext;
use crate::tier::Tier;
use crate::validity::Invalidity;

/// The maximum number of key terms of a prompt.
const MAX_KEY_TERMS: usize = 20;
/// The minimum length of a key term in characters.
const MIN_TERM_LEN: usize = 3;

/// Returns the key terms of a prompt: its distinct words without stop words and short words, at most 20
/// (docs/spec/memory.md, Recall).
pub fn key_terms(prompt: &str) -> Vec<String> {
    key_terms_in(prompt, &Reading::of(prompt)).into_iter().map(|term| term.text).collect()
}

fn key_terms_in(prompt: &str, reading: &Reading<'_>) -> Vec<Term> {
    let stop_words = reading.cover(List::StopWords);
    let is_word = |term: &Term| {
        let is_short = term.kind != TermKind::Bigram && term.text.chars().count() < MIN_TERM_LEN;
        !matches!(term.kind, TermKind::Part | TermKind::LastCharacter)
            && !is_short
            && !is_stop_word(&term.text)
            && !stop_words.has_term(term)
    };
    let mut words: Vec<Term> = terms(prompt).into_iter().filter(is_word).collect();
    // Two characters that a stop word takes one of are no word, but the end of one and the beginning of the next.
    let is_crossing = |term: &Term| term.kind == TermKind::Bigram && stop_words.touches(term);
    if !words.iter().all(is_crossing) {
        words.retain(|term| !is_crossing(term));
    }
    let mut known = HashSet::new();
    words.retain(|term| known.insert(term.text.clone()));
    words.truncate(MAX_KEY_TERMS);
    words
}

/// Small-talk words, sorted. A prompt of these words only is not about any note.
const SMALL_TALK: &[&str] = &[
    "absolutely",
    "afternoon",
    "again",
    "agree",
    "agreed",
    "ahead",
    "all",
    "alright",
    "amazing",
    "appreciate",
    "appreciated",
    "awesome",
    "beautiful",
    "bravo",
    "brilliant",
    "bye",
    "cheers",
    "continue",
    "cool",
    "correct",
    "definitely",
    "else",
    "evening",
    "exactly",
    "excellent",
    "fantastic",
    "fine",
    "give",
    "glad",
    "going",
    "good",
    "goodbye",
    "gotcha",
    "great",
    "greetings",
    "haha",
    "happy",
    "hello",
    "help",
    "helped",
    "helpful",
    "helping",
    "helps",
    "hey",
    "hmm",
    "indeed",
    "keep",
    "later",
    "let",
    "lets",
    "lgtm",
    "lol",
    "look",
    "looks",
    "lot",
    "lots",
    "lovely",
    "mean",
    "meant",
    "morning",
    "much",
    "need",
    "next",
    "nice",
    "night",
    "nope",
    "now",
    "okay",
    "perfect",
    "perfectly",
    "please",
    "pls",
    "proceed",
    "really",
    "right",
    "say",
    "show",
    "sorry",
    "sounds",
    "super",
    "sure",
    "tell",
    "thank",
    "thanks",
    "think",
    "thx",
    "today",
    "tomorrow",
    "tonight",
    "understood",
    "want",
    "wants",
    "welcome",
    "well",
    "wonderful",
    "work",
    "worked",
    "working",
    "works",
    "wow",
    "yeah",
    "yep",
    "yes",
    "yup",
];

fn prompt_terms_in(prompt: &str, reading: &Reading<'_>) -> Vec<Term> {
    let small_talk = reading.cover(List::SmallTalk);
    let mut words = key_terms_in(prompt, reading);
    words.retain(|word| SMALL_TALK.binary_search(&word.text.as_str()).is_err() && !small_talk.has_term(word));
    words
}

/// Returns the [key terms](key_terms) of a prompt without small talk. If there are none, nothing is recalled.
pub fn prompt_terms(prompt: &str) -> Vec<String> {
    prompt_terms_in(prompt, &Reading::of(prompt)).into_iter().map(|term| term.text).collect()
}

/// Returns the query of a prompt: its key terms without small talk. Terms of a language without spaces are joined again
/// as they are in the prompt. `None` if there are none.
pub fn prompt_query(prompt: &str) -> Option<String> {
    let reading = Reading::of(prompt);
    let mut text = String::new();
    let mut end = 0;
    for term in prompt_terms_in(prompt, &reading) {
        let is_run = term.kind == TermKind::Bigram && term.start < end && !reading.languages().is_empty();
        if is_run {
            text.push_str(prompt.get(end..term.end).unwrap_or(""));
        } else {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&term.text);
        }
        end = if term.kind == TermKind::Bigram { term.end } else { 0 };
    }
    (!text.is_empty()).then_some(text)
}

/// Returns whether a prompt asks for what was said before.
pub fn asks_again(prompt: &str) -> bool {
    let lower = prompt.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|word| matches!(word, "again" | "remind" | "repeat"))
        || Reading::of(prompt).has(List::AsksAgain)
}

/// A group of memories with a quota in recall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecallGroup {
    /// Pinned memories of any tier.
    Pinned,
    /// The other memories of a tier.
    Tier(Tier),
}

/// The quota of each group in percent.
pub type Quotas = [(RecallGroup, usize); 4];

/// The default quotas.
pub(crate) const DEFAULT_QUOTAS: Quotas = [
    (RecallGroup::Pinned, 25),
    (RecallGroup::Tier(Tier::Hot), 45),
    (RecallGroup::Tier(Tier::Warm), 25),
    (RecallGroup::Tier(Tier::Cold), 5),
];

/// Selects up to `most` candidates by group and score: each group gets its quota, rounded down, and the rest goes to
/// the best remaining candidates. Returns indexes into `candidates`, best first; ties keep their order.
pub fn select_by_default_quotas(candidates: &[(RecallGroup, f64)], most: usize) -> Vec<usize> {
    select_by_quotas(&DEFAULT_QUOTAS, candidates, most)
}

/// Selects candidates like [`select_by_default_quotas`], with these quotas.
pub fn select_by_quotas(shares: &Quotas, candidates: &[(RecallGroup, f64)], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    let score = |at: usize| candidates.get(at).map_or(0.0, |(_, score)| *score);
    order.sort_by(|&one, &other| score(other).total_cmp(&score(one)));
    let mut chosen: Vec<usize> = Vec::new();
    for &(share, percent) in shares {
        let places = most * percent / 100;
        let of_share = order.iter().filter(|&&at| candidates.get(at).is_some_and(|(own, _)| *own == share));
        chosen.extend(of_share.take(places));
    }
    let rest: Vec<usize> = order.iter().copied().filter(|at| !chosen.contains(at)).collect();
    chosen.extend(rest.into_iter().take(most.saturating_sub(chosen.len())));
    chosen.sort_by(|&one, &other| score(other).total_cmp(&score(one)).then(one.cmp(&other)));
    chosen
}

/// One recalled memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecallItem {
    /// The id of the note.
    pub id: String,
    /// The path of the note.
    pub path: String,
    /// The title of the note.
    pub title: String,
    /// The memory type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The tier.
    pub tier: Tier,
    /// The day that the note states, by a property or in its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The composite score.
    pub score: f64,
    /// The passage that matched, or the part of it around the match.
    pub text: String,
    /// Why the memory is not valid now, if so.
    #[serde(flatten)]
    pub invalidity: Invalidity,
    /// The paths of recalled notes that say something later about the same, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub newer: Vec<String>,
}

impl RecallItem {
    /// Formats the memory as a line of the block.
    fn line(&self) -> String {
        let Self { id, path, title, kind, tier, text, .. } = self;
        let [id, path, title, kind] = [id, path, title, kind].map(|text| escape_attribute(text));
        let text = escape_xml(text);
        let dated = self.date.iter().map(|date| format!(" date=\"{}\"", escape_attribute(date)));
        let invalid = self.invalidity.reasons().into_iter();
        let invalid = invalid
            .map(|(name, value)| format!(" {}=\"{}\"", name.replace('_', "-"), escape_attribute(&value)));
        let newer = Some(&self.newer).filter(|newer| !newer.is_empty());
        let newer = newer.map(|newer| format!(" newer=\"{}\"", escape_attribute(&newer.join(", "))));
        let more: String = dated.chain(invalid).chain(newer).collect();
        format!(
            "<memory id=\"{id}\" path=\"{path}\" title=\"{title}\" type=\"{kind}\" tier=\"{tier}\"{more}>{text}</memory>"
        )
    }
}

/// Escapes the value of an attribute for XML, so that it stays in its line.
fn escape_attribute(text: &str) -> String {
    escape_xml(text).replace('\n', "&#10;").replace('\t', "&#9;")
}

/// Escapes a text for XML. Control characters that XML forbids become spaces.
pub(crate) fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The first character of the scripts that count as one token for each character.
const WIDE: char = '\u{2E80}';

/// Estimates the tokens of a text: one for four characters, and one for each CJK character.
pub fn estimate_tokens(text: &str) -> usize {
    let (mut narrow, mut wide) = (0_usize, 0_usize);
    for c in text.chars() {
        if c >= WIDE { wide += 1 } else { narrow += 1 }
    }
    narrow.div_ceil(4) + wide
}

const OPEN: &str = "<relevant-memories>";
const CLOSE: &str = "</relevant-memories>";

/// Says whether a text contains a block from [`xml_block`], which must not be captured again.
pub fn is_injected(text: &str) -> bool {
    text.contains(OPEN) || text.contains("<current-context>")
}

/// Removes the blocks of [`xml_block`] from a text.
pub fn without_injected(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        kept.push_str(rest.get(..at).unwrap_or(""));
        let inside = rest.get(at..).unwrap_or("");
        rest = inside.find(CLOSE).and_then(|end| inside.get(end + CLOSE.len()..)).unwrap_or("");
    }
    kept.push_str(rest);
    kept
}

/// Truncates a text to `most` tokens at the end of a word.
pub fn truncate(text: &str, most: usize) -> String {
    let mut length = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        // The length is in quarters of a token, as in `estimate_tokens`.
        length += if c >= WIDE { 4 } else { 1 };
        if length + 8 > most * 4 {
            break;
        }
        if c.is_whitespace() || c >= WIDE {
            end = at;
        }
    }
    format!("{} …", text.get(..end_before(text, end)).unwrap_or("").trim_end())
}

fn context_line(context: &WorkContext) -> String {
    format!("<current-context>{}</current-context>", escape_xml(&context.text))
}

/// Formats the block for an agent: the context, then the memories. Empty if there is neither.
pub fn xml_block(context: Option<&WorkContext>, items: &[RecallItem]) -> String {
    let lines: Vec<String> =
        context.map(context_line).into_iter().chain(items.iter().map(RecallItem::line)).collect();
    if lines.is_empty() { String::new() } else { format!("{OPEN}\n{}\n{CLOSE}", lines.join("\n")) }
}
