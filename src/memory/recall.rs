//! Owns recall: which memories an agent is given before it starts, and the block of text that holds them.

use serde::Serialize;

use crate::memory::context::WorkContext;
use crate::memory::tier::Tier;
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

/// Words of courtesy, of agreement and of going on, sorted: a prompt of these alone is about no note.
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

/// Picks the words of a prompt that may name or describe a note: its [key terms](key_terms) without small talk. Empty
/// where nothing is to be recalled.
pub fn prompt_terms(prompt: &str) -> Vec<String> {
    let mut words = key_terms(prompt);
    words.retain(|word| SMALL_TALK.binary_search(&word.as_str()).is_err());
    words
}

/// What speaks for a note being about a text.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MatchEvidence {
    /// Cosine of the nearest passage; nothing without a vector.
    pub cosine: Option<f32>,
    /// The share of the text's words that the note's best passage or its names hold, 0 to 1, each word by its inverse
    /// document frequency.
    pub words: f32,
    /// How many words these are.
    pub count: usize,
    /// How many of them stand in the note's title, in an alias, or in its file name.
    pub in_name: usize,
    /// Whether the text is the note's title, an alias of it, or its file name.
    pub is_named: bool,
}

/// What all words of a text count beside the cosine at the model's floor, which is 1.
const ALL_WORDS: f32 = 0.8;
/// The share of the words from which they tell without a cosine, and from which a word in the note's name does.
const MOST_WORDS_MET: f32 = 0.9;
/// The share of a query's words that leaves no doubt of what is meant.
const CERTAIN_WORDS: f32 = 0.6;

impl MatchEvidence {
    /// Gives the share of the words, lowered where they are few: one word may occur by chance, several hardly.
    fn trusted_words(&self) -> f32 {
        self.words * (1.0 - 0.5 / self.count.max(1) as f32)
    }

    /// Says whether the note is about the text. `floor` is the cosine from which that is so under the model at hand,
    /// whatever the words; with it words and meaning add up.
    pub fn is_about(&self, floor: Option<f32>) -> bool {
        let by_name = self.is_named || (self.in_name > 0 && self.words >= MOST_WORDS_MET);
        by_name
            || match self.cosine.zip(floor) {
                Some((cosine, floor)) => cosine / floor + ALL_WORDS * self.trusted_words() >= 1.0,
                None => self.count > 1 && self.words >= MOST_WORDS_MET,
            }
    }

    /// Says whether the note is so clearly about the text that it may be changed without another question.
    pub fn is_certain(&self) -> bool {
        self.is_named || self.words >= CERTAIN_WORDS
    }
}

/// Where a memory counts when places are given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecallGroup {
    /// Pinned, whatever its tier.
    Pinned,
    /// By tier.
    Tier(Tier),
}

/// The parts of all places, in percent.
pub type Quotas = [(RecallGroup, usize); 4];

/// The parts of all places where the settings say nothing else.
pub const DEFAULT_QUOTAS: Quotas = [
    (RecallGroup::Pinned, 25),
    (RecallGroup::Tier(Tier::Hot), 45),
    (RecallGroup::Tier(Tier::Warm), 25),
    (RecallGroup::Tier(Tier::Cold), 5),
];

/// Gives out `most` places to candidates, each with its share and score: each share gets its part, rounded down, and
/// what is left goes to the best of the rest. Gives the places of those chosen in `candidates`, best first; at equal
/// scores as they came.
pub fn select_by_default_quotas(candidates: &[(RecallGroup, f64)], most: usize) -> Vec<usize> {
    select_by_quotas(&DEFAULT_QUOTAS, candidates, most)
}

/// As [`select_by_default_quotas`], by other parts.
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

/// One memory as it is given to an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecallItem {
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
    /// The passage of its text that matched, or the part of it around the match.
    pub text: String,
}

impl RecallItem {
    /// Writes it as a line of the block.
    fn line(&self) -> String {
        let Self { id, path, title, kind, tier, text, .. } = self;
        let [id, path, title, kind, text] = [id, path, title, kind, text].map(|text| escape_xml(text));
        format!(
            "<memory id=\"{id}\" path=\"{path}\" title=\"{title}\" type=\"{kind}\" tier=\"{tier}\">{text}</memory>"
        )
    }
}

/// The forms in which a reply holds what is recalled; a budget covers all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyForm {
    /// As a block of text.
    #[default]
    Block,
    /// As data.
    Data,
    /// As data that also holds the block, and as the block.
    Both,
}

impl ReplyForm {
    /// Counts the tokens of one item or of the context: `line` in the block, `data` beside it.
    fn cost(self, line: &str, data: &impl Serialize) -> usize {
        let (block, data) = (estimate_tokens(line) + 1, json_tokens(data) + 1);
        match self {
            Self::Block => block,
            Self::Data => data,
            Self::Both => block + json_tokens(&line) + data,
        }
    }

    /// Counts the tokens that a reply has whatever it holds.
    fn overhead(self) -> usize {
        let block = estimate_tokens(OPEN) + estimate_tokens(CLOSE) + 2;
        match self {
            Self::Block => block,
            Self::Data => DATA,
            Self::Both => 2 * block + DATA,
        }
    }
}

/// Escapes a text so that it cannot leave its place in XML; control characters that XML forbids become spaces.
pub fn escape_xml(text: &str) -> String {
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

/// From here on scripts write words in one sign.
const WIDE: char = '\u{2E80}';

/// Estimates the tokens of a text for a budget: four letters each, and one for each sign of scripts that write words in
/// one.
pub fn estimate_tokens(text: &str) -> usize {
    let (mut narrow, mut wide) = (0_usize, 0_usize);
    for c in text.chars() {
        if c >= WIDE { wide += 1 } else { narrow += 1 }
    }
    narrow.div_ceil(4) + wide
}

const OPEN: &str = "<relevant-memories>";
const CLOSE: &str = "</relevant-memories>";

/// Says whether a text holds what [`xml_block`] gave to an agent, so that it is not captured as something new.
pub fn is_injected(text: &str) -> bool {
    text.contains(OPEN) || text.contains("<current-context>")
}

/// Takes the blocks out that [`xml_block`] gave to an agent.
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

/// What the names of fields and the brackets around all items cost.
const DATA: usize = 20;
/// An item of which less text than this many tokens is left says too little to be given.
const LEAST_TEXT: usize = 16;

fn json_tokens(value: &impl Serialize) -> usize {
    // What cannot be written is not sent either.
    serde_json::to_string(value).map_or(0, |text| estimate_tokens(&text))
}

/// Takes as much of what was recalled as `budget` tokens hold in the form in which it is sent: the context first, then
/// the items in their order. The text of the last one is cut where that makes it fit.
pub fn fit_budget(
    budget: usize,
    form: ReplyForm,
    context: Option<WorkContext>,
    items: Vec<RecallItem>,
) -> (Option<WorkContext>, Vec<RecallItem>) {
    let mut left = budget.saturating_sub(form.overhead());
    let context = context.filter(|context| {
        let cost = form.cost(&context_line(context), context);
        let fits = cost <= left;
        left = left.saturating_sub(if fits { cost } else { 0 });
        fits
    });
    let mut taken = Vec::new();
    for mut item in items {
        let cost = form.cost(&item.line(), &item);
        if cost <= left {
            left -= cost;
            taken.push(item);
            continue;
        }
        let text = std::mem::take(&mut item.text);
        let bare = form.cost(&item.line(), &item);
        let copies = if form == ReplyForm::Both { 3 } else { 1 };
        let room = left.saturating_sub(bare) / copies;
        if room >= LEAST_TEXT {
            item.text = truncate(&text, room);
            // Escaped signs take more room than they seem to.
            if form.cost(&item.line(), &item) <= left {
                taken.push(item);
            }
        }
        break;
    }
    (context, taken)
}

/// Cuts a text to so many tokens, at the end of a word.
fn truncate(text: &str, most: usize) -> String {
    let mut length = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        // Quarters of a token: see `estimate_tokens`.
        length += if c >= WIDE { 4 } else { 1 };
        if length + 8 > most * 4 {
            break;
        }
        if c.is_whitespace() || c >= WIDE {
            end = at;
        }
    }
    format!("{} …", text.get(..end).unwrap_or("").trim_end())
}

fn context_line(context: &WorkContext) -> String {
    format!("<current-context>{}</current-context>", escape_xml(&context.text))
}

/// Writes the block for an agent: the context first, then the memories. Empty where there is nothing to tell.
pub fn xml_block(context: Option<&WorkContext>, items: &[RecallItem]) -> String {
    let lines: Vec<String> =
        context.map(context_line).into_iter().chain(items.iter().map(RecallItem::line)).collect();
    if lines.is_empty() { String::new() } else { format!("{OPEN}\n{}\n{CLOSE}", lines.join("\n")) }
}
