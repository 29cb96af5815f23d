//! Whether a prompt names a note: by its whole title or alias, or by a distinctive part of a proper name, such as a surname.

use sidenote_language::terms::{CachedStemmer, TermKind, is_stop_word, terms};
use sidenote_language::word_lists::{Languages, List, Reading};

/// The place in the frequency list from which on a word is seldom. Titles of commoner words are part of ordinary sentences.
const SELDOM: usize = 1_500;
/// The place in the frequency list from which on a capitalised word can be a part of a proper name.
const CAN_BE_NAME: usize = 5_000;
/// The least length of a part of a proper name, in characters.
const MIN_PART: usize = 4;
/// The least length of a name without its ending, in characters.
const MIN_NAME_STEM: usize = 3;
/// The most words of a prompt that can be a name and little else.
const SHORT_PROMPT: usize = 5;
/// The most words of a proper name.
const MAX_NAME_WORDS: usize = 5;

/// Forms of address before a name. A full stop after them ends no sentence.
const FORMS_OF_ADDRESS: [&str; 8] = ["mr", "mrs", "ms", "dr", "prof", "st", "hr", "fr"];

/// A word of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptWord {
    /// The folded text, without a possessive ending.
    pub text: String,
    /// Whether it begins with a capital letter and begins no sentence.
    pub is_capitalised: bool,
    /// Whether a form of address precedes it, after which a capital letter does not show a name.
    pub is_addressed: bool,
    /// The place of the word in a list of words by how often English texts have them, the commonest first; `None` for a
    /// word that is not in the list, such as most surnames and words with a mistake.
    pub rank: Option<usize>,
    /// Whether the prompt is an order to an agent, such as to fix or to rename something, and this is its first word.
    pub begins_order: bool,
    /// Whether many notes have the word, so that in lower case it is a term of theirs and no name.
    pub is_term: bool,
    /// The languages besides English that the prompt is in.
    pub languages: Languages,
}

impl PromptWord {
    /// Says whether the word is written as a name: with a capital letter or a digit, or after a form of address.
    fn is_spelled_as_name(&self) -> bool {
        self.is_capitalised || self.is_addressed || self.text.chars().any(|c| c.is_ascii_digit())
    }

    /// Says whether the word is too common to be a name.
    fn is_common(&self) -> bool {
        is_stop_word(&self.text) || self.languages.list_word(List::StopWords, &self.text)
    }

    /// Says whether a capital letter could tell that the word is a name: not in a script without them, nor where all nouns
    /// have them.
    fn can_be_capitalised(&self) -> bool {
        self.languages.is_empty()
            || !self.languages.capitalise_nouns() && self.text.chars().any(char::is_lowercase)
    }

    /// Says whether the word alone can name a note as a part of its proper name.
    pub fn is_distinctive(&self) -> bool {
        let is_word = self.text.chars().any(char::is_alphabetic) && !self.is_common();
        let is_seldom = match self.rank {
            None => self.is_capitalised || !self.is_term,
            Some(rank) => self.is_capitalised && rank >= CAN_BE_NAME,
        };
        is_word && self.text.chars().count() >= MIN_PART && is_seldom
    }
}

/// Splits a prompt into its words. `rank` is the place of a word in a frequency list.
pub fn prompt_words(text: &str, rank: &dyn Fn(&str) -> Option<usize>) -> Vec<PromptWord> {
    let reading = Reading::of(text);
    let mut words = words_in(text, reading.languages(), rank);
    if let Some(first) = words.first_mut() {
        first.begins_order = is_order(text) || reading.is_order(ORDER_WITHIN);
    }
    words
}

/// Splits a text in these languages and English into its words.
fn words_in(text: &str, languages: Languages, rank: &dyn Fn(&str) -> Option<usize>) -> Vec<PromptWord> {
    let capitals_tell = !languages.capitalise_nouns();
    let mut words: Vec<PromptWord> = Vec::new();
    let mut end = 0;
    for term in terms(text) {
        if matches!(term.kind, TermKind::Whole | TermKind::LastCharacter) {
            continue;
        }
        let before = text.get(end..term.start).unwrap_or("");
        let is_addressed = words.last().is_some_and(|word| {
            FORMS_OF_ADDRESS.contains(&word.text.as_str()) || languages.list_word(List::Address, &word.text)
        });
        let is_after_title = before.starts_with('.') && is_addressed;
        let ends_sentence = before.contains(['.', '!', '?', ':', ';', '\n', '"', '(']) && !is_after_title;
        let begins_sentence = words.is_empty() || ends_sentence;
        let spelled = text.get(term.start..term.end).unwrap_or("");
        let is_possessive = before.ends_with(['\'', '’']) && term.text == "s";
        end = term.end;
        if is_possessive {
            continue;
        }
        let text =
            ["'s", "’s"].iter().find_map(|ending| term.text.strip_suffix(ending)).unwrap_or(&term.text);
        words.push(PromptWord {
            text: text.to_owned(),
            is_capitalised: capitals_tell && !begins_sentence && spelled.starts_with(char::is_uppercase),
            is_addressed: is_addressed && !capitals_tell,
            rank: rank(text),
            begins_order: false,
            is_term: false,
            languages,
        });
    }
    words
}

/// The words of a prompt within which an order begins.
const ORDER_WITHIN: usize = 12;

/// The verbs of orders to a coding agent, sorted.
const ORDERS: &[&str] = &[
    "add",
    "adjust",
    "apply",
    "build",
    "bump",
    "bundle",
    "cache",
    "call",
    "catch",
    "change",
    "check",
    "clean",
    "commit",
    "compile",
    "compress",
    "convert",
    "copy",
    "create",
    "debug",
    "decode",
    "delete",
    "deploy",
    "disable",
    "draw",
    "drop",
    "edit",
    "enable",
    "encode",
    "explain",
    "extract",
    "fix",
    "fork",
    "format",
    "generate",
    "handle",
    "implement",
    "import",
    "improve",
    "include",
    "increase",
    "inline",
    "insert",
    "install",
    "lint",
    "log",
    "make",
    "merge",
    "migrate",
    "minify",
    "move",
    "optimise",
    "optimize",
    "parse",
    "print",
    "proofread",
    "push",
    "put",
    "rebase",
    "refactor",
    "reformat",
    "release",
    "remove",
    "rename",
    "reorder",
    "replace",
    "return",
    "revert",
    "rewrite",
    "run",
    "set",
    "shorten",
    "simplify",
    "sort",
    "speed",
    "split",
    "squash",
    "swap",
    "switch",
    "translate",
    "turn",
    "update",
    "upgrade",
    "use",
    "wrap",
    "write",
];

/// The words before the verb of an order, sorted.
const BEFORE_ORDERS: &[&str] = &[
    "alright", "also", "and", "before", "can", "cool", "could", "d", "first", "good", "great", "hm", "hmm",
    "i", "just", "let", "lets", "like", "next", "nice", "now", "ok", "okay", "perfect", "please", "s",
    "thank", "thanks", "that", "then", "to", "will", "would", "you",
];

/// Says whether a prompt tells an agent to do something to code or text, and does not ask.
fn is_order(prompt: &str) -> bool {
    let words = prompt.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    let mut words = words.map(str::to_lowercase).take(ORDER_WITHIN);
    let first = words.find(|word| BEFORE_ORDERS.binary_search(&word.as_str()).is_err());
    first.is_some_and(|word| ORDERS.binary_search(&word.as_str()).is_ok())
}

/// How a prompt names a note, the surest way first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mention {
    /// By a whole name.
    Whole,
    /// By a distinctive word of a proper name.
    Part(String),
}

/// Returns how the words of a prompt name a note that has `name`: a title, an alias or a file name.
pub fn mention_of(
    words: &[PromptWord],
    name: &str,
    rank: &dyn Fn(&str) -> Option<usize>,
    stem: &mut CachedStemmer,
) -> Option<Mention> {
    let languages = words.first().map_or_else(Languages::default, |word| word.languages);
    let parts = words_in(name, languages, rank);
    let is_order = words.first().is_some_and(|word| word.begins_order);
    let stems = |words: &[PromptWord], stem: &mut CachedStemmer| -> Vec<String> {
        words.iter().map(|word| stem.of(&word.text).to_owned()).collect()
    };
    let (said, wanted) = (stems(words, stem), stems(&parts, stem));
    if wanted.is_empty() {
        return None;
    }
    // In other languages than English all words of a title may be stop words or small talk.
    if !languages.is_empty() && said == wanted {
        return Some(Mention::Whole);
    }
    let is_seldom = |word: &PromptWord| !word.is_common() && word.rank.is_none_or(|rank| rank >= SELDOM);
    let whole = said.windows(wanted.len()).position(|window| window == wanted);
    if let Some(at) = whole {
        let said = words.get(at..at + wanted.len()).unwrap_or_default();
        let is_name = match parts.as_slice() {
            // In a longer sentence, one word in lower case means the thing, and not the note of that name.
            [only] => {
                let is_short = words.len() <= SHORT_PROMPT;
                is_short && only.rank.is_none()
                    || said.iter().any(|word| word.is_capitalised && word.is_distinctive())
            }
            several => several.iter().any(is_seldom),
        };
        let cannot_tell = parts.len() > 1 && !said.iter().any(PromptWord::can_be_capitalised);
        let is_order_about_it = !is_order || cannot_tell || said.iter().any(PromptWord::is_spelled_as_name);
        if is_name && is_order_about_it {
            return Some(Mention::Whole);
        }
    }
    if !is_proper_name(name, languages) {
        return None;
    }
    let is_part = |word: &PromptWord| word.is_distinctive() && (!is_order || word.is_spelled_as_name());
    let named = words.iter().find(|word| {
        is_part(word) && parts.iter().any(|part| is_same_name(&word.text, &part.text, languages))
    });
    named.map(|word| Mention::Part(word.text.clone()))
}

/// Returns whether two words are the same name, except for an ending of each. Stems are too coarse for that: the stem
/// of a common word with a mistake can be that of the word.
fn is_same_name(word: &str, part: &str, languages: Languages) -> bool {
    let ends_with_s = word.strip_suffix('s') == Some(part) || part.strip_suffix('s') == Some(word);
    if word == part || ends_with_s || languages.is_empty() {
        return word == part || ends_with_s;
    }
    let same = word.chars().zip(part.chars()).take_while(|(one, other)| one == other);
    let (characters, bytes) =
        same.fold((0, 0), |(characters, bytes), (c, _)| (characters + 1, bytes + c.len_utf8()));
    if characters < MIN_NAME_STEM {
        return false;
    }
    // The name without an ending is in what both begin with.
    let is_ending = |ending: &str| ending.is_empty() || languages.name_endings().any(|known| known == ending);
    let ends = word.char_indices().map(|(at, _)| at).chain([word.len()]);
    ends.skip(MIN_NAME_STEM).take_while(|end| *end <= bytes).any(|end| {
        let has_ending = |name: &str| name.get(end..).is_some_and(is_ending);
        has_ending(word) && has_ending(part)
    })
}

/// Says whether a name is a proper name: several words that all begin with a capital letter.
fn is_proper_name(name: &str, languages: Languages) -> bool {
    let words: Vec<&str> = name.split_whitespace().collect();
    let is_particle = |word: &str| {
        matches!(word, "de" | "da" | "del" | "van" | "von" | "der" | "of" | "the" | "&" | "and")
            || languages.list_word(List::Particles, word)
    };
    (2..=MAX_NAME_WORDS).contains(&words.len())
        && words.iter().all(|word| word.starts_with(char::is_uppercase) || is_particle(word))
}
