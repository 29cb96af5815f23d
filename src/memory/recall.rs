//! Owns recall: which memories an agent is given before it starts, and the block of text that holds them.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::memory::state::Tier;
use crate::text::terms::{TermKind, is_stop_word, terms};

/// So many words of a prompt are looked for.
const MOST_WORDS: usize = 20;
/// Words shorter than this say little.
const SHORTEST: usize = 3;

/// Picks the words of a prompt to search by: no stop words, no short ones, none twice, 20 at most (spec/memory.md,
/// Recall).
pub fn key_terms(prompt: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for term in terms(prompt) {
        let is_word = !matches!(term.kind, TermKind::Part | TermKind::Tail);
        let is_short = term.kind != TermKind::Gram && term.text.chars().count() < SHORTEST;
        if is_word && !is_short && !is_stop_word(&term.text) && !found.contains(&term.text) {
            found.push(term.text);
        }
        if found.len() == MOST_WORDS {
            break;
        }
    }
    found
}

/// Where a memory counts when places are given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Pinned, whatever its tier.
    Pinned,
    /// By tier.
    Tier(Tier),
}

/// The parts of all places, in percent.
pub type Shares = [(Share, usize); 4];

/// The parts of all places where the settings say nothing else.
pub const SHARES: Shares = [
    (Share::Pinned, 25),
    (Share::Tier(Tier::Hot), 45),
    (Share::Tier(Tier::Warm), 25),
    (Share::Tier(Tier::Cold), 5),
];

/// Gives out `most` places to candidates, each with its share and score: each share gets its part, rounded down, and
/// what is left goes to the best of the rest. Gives the places of those chosen in `candidates`, best first; at equal
/// scores as they came.
pub fn choose(candidates: &[(Share, f64)], most: usize) -> Vec<usize> {
    choose_by(&SHARES, candidates, most)
}

/// As [`choose`], by other parts.
pub fn choose_by(shares: &Shares, candidates: &[(Share, f64)], most: usize) -> Vec<usize> {
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

/// One memory as it is given to an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// Its path.
    pub path: String,
    /// Its title.
    pub title: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its tier.
    pub tier: Tier,
    /// Its composite score.
    pub score: f64,
    /// Its text, or the beginning of it.
    pub text: String,
}

/// What an agent is working on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// In words.
    pub text: String,
    /// Until when that counts.
    pub expires_at: Option<Timestamp>,
}

impl Context {
    /// Says whether it still counts.
    pub fn is_current(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}

/// Escapes a text so that it cannot leave its place in XML; control characters that XML forbids become spaces.
pub fn escape(text: &str) -> String {
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

/// Estimates the tokens of a text for a budget: four letters each, and one for each sign of scripts that write words in
/// one.
pub fn tokens(text: &str) -> usize {
    let (mut narrow, mut wide) = (0_usize, 0_usize);
    for c in text.chars() {
        if c >= '\u{2E80}' { wide += 1 } else { narrow += 1 }
    }
    narrow.div_ceil(4) + wide
}

const OPEN: &str = "<relevant-memories>";
const CLOSE: &str = "</relevant-memories>";

/// Says whether a text holds what [`xml`] gave to an agent, so that it is not captured as something new.
pub fn is_injected(text: &str) -> bool {
    text.contains(OPEN) || text.contains("<current-context>")
}

/// Takes the blocks out that [`xml`] gave to an agent.
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

/// Writes the block for an agent: the context first, then memories as far as `budget` tokens reach. Empty where there
/// is nothing to tell.
pub fn xml(context: Option<&Context>, items: &[Item], budget: Option<usize>) -> String {
    let mut lines = Vec::new();
    let mut left = budget.unwrap_or(usize::MAX).saturating_sub(tokens(OPEN) + tokens(CLOSE) + 2);
    let mut add = |line: String| {
        let cost = tokens(&line) + 1;
        let fits = cost <= left;
        if fits {
            left -= cost;
            lines.push(line);
        }
        fits
    };
    if let Some(context) = context {
        add(format!("<current-context>{}</current-context>", escape(&context.text)));
    }
    for item in items {
        let (id, kind, text) = (escape(&item.id), escape(&item.kind), escape(&item.text));
        let line = format!("<memory id=\"{id}\" type=\"{kind}\" tier=\"{}\">{text}</memory>", item.tier);
        if !add(line) {
            break;
        }
    }
    if lines.is_empty() { String::new() } else { format!("{OPEN}\n{}\n{CLOSE}", lines.join("\n")) }
}
