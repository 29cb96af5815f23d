//! Compares two short statements: whether they say the same, whether the newer one replaces the older one, and whether
//! they contradict each other (docs/spec/agents.md 4). Only words are compared, so that the answer depends on
//! no model.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use sidenote_language::folding::is_unspaced;
use sidenote_language::terms::{CachedStemmer, Term, TermKind, is_stop_word, terms};
use sidenote_language::word_lists::{Languages, List, Reading};

use crate::duplicate::{TIMES, same_facts};
use crate::update_words::{
    GENITIVES, GERMAN_ARTICLES, NUMBER_WORDS, is_dating, is_light, is_open, update_spans,
};

/// The longest text, in bytes, that states one fact. A longer one says several things, of which a newer one replaces few.
pub const LONGEST: usize = 400;

/// The most words of a text that states one fact, without those that are too common.
const MOST_WORDS: usize = 36;

/// The most words of a value that another one replaces, such as an address.
const LONGEST_VALUE: usize = 4;

/// The fewest words that two statements share if they are about the same.
const LEAST_SHARED: usize = 2;

/// The least part of the shorter statement's words that both share, if one replaces or contradicts the other.
const LEAST_OVERLAP: f64 = 0.5;

/// The part of the longer statement's words that the shorter one may lack, if both say the same.
const EXTRA: usize = 5;

/// What two statements are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Both say the same.
    Same,
    /// The newer one says that it replaces the older one.
    Superseded,
    /// Both cannot be true, and none says that it replaces the other.
    Contradicted,
    /// They are about different things, or both can be true.
    Unrelated,
}

/// A word of a statement that is not too common.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    stem: String,
    /// Where it is in the text, in bytes.
    span: Range<usize>,
    is_number: bool,
    /// Whether it names a time or a stage, such as a day of the week.
    is_time: bool,
    /// Whether it has the capital letter of a name.
    is_name: bool,
    /// Whether a common word or the end of a clause precedes it.
    begins_group: bool,
    /// Whether a word such as `of` precedes it, so that it belongs to what is said before.
    is_genitive: bool,
}

/// What a statement is about: the name that comes first in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The stems of its words.
    pub stems: String,
    /// The name as it is written.
    pub text: String,
}

/// A text that states one fact, in words.
#[derive(Debug, Clone)]
pub struct Statement {
    text: String,
    words: Vec<Word>,
    /// The verbs that say nothing by themselves, by their stems.
    light: BTreeSet<String>,
    is_negated: bool,
    updates: BTreeSet<&'static str>,
}

/// The stems that are names, by the capital letters in many statements: a name that begins a sentence shows it elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Names(HashSet<String>);

impl Names {
    /// Collects the stems that are written as names more often than not.
    pub fn of<'s>(statements: impl IntoIterator<Item = &'s Statement>) -> Self {
        let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
        for word in statements.into_iter().flat_map(|statement| &statement.words) {
            let (names, others) = counts.entry(&word.stem).or_default();
            *(if word.is_name { names } else { others }) += 1;
        }
        let is_name = |(names, others): (usize, usize)| names > 0 && 2 * names >= others;
        Self(
            counts
                .into_iter()
                .filter(|(_, counts)| is_name(*counts))
                .map(|(stem, _)| stem.to_owned())
                .collect(),
        )
    }

    fn has(&self, word: &Word) -> bool {
        !word.is_number && (word.is_name || self.0.contains(&word.stem))
    }
}

impl Statement {
    /// Reads a text without properties; `None` for one that is too long or says too little.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() > LONGEST || text.contains("```") {
            return None;
        }
        // A short text may not tell its language.
        let reading = Reading::in_languages(text, Languages::all());
        let (common, times) = (reading.cover(List::StopWords), reading.cover(List::Times));
        let (stages, negations) = (reading.cover(List::Stages), reading.cover(List::Negations));
        let updates = update_spans(text);
        let mut stem = CachedStemmer::with_small_cache();
        let (mut words, mut light): (Vec<Word>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
        let is_loud = !text.chars().any(char::is_lowercase);
        let (mut begins_group, mut is_genitive) = (true, false);
        for term in whole_terms(text) {
            let raw = text.get(term.start..term.end).unwrap_or_default();
            let is_number = raw.chars().any(char::is_numeric) || NUMBER_WORDS.contains(&term.text.as_str());
            let is_name = !is_number && !is_loud && is_written_as_name(text, term.start, raw);
            let is_common = is_stop_word(&term.text) || common.has_term(&term) || negations.has_term(&term);
            let stemmed = stem.of(&term.text).to_owned();
            let is_empty = is_common || is_light(&term.text) || is_light(&stemmed) || is_clitic(raw);
            let is_update = updates.iter().any(|(span, _)| span.contains(&term.start));
            if is_update || !is_number && !is_name && is_empty || raw.chars().all(is_hiragana) {
                (begins_group, is_genitive) = (true, GENITIVES.contains(&term.text.as_str()));
                if !is_update && !is_common {
                    light.insert(stemmed);
                }
                continue;
            }
            let is_time = times.has_term(&term)
                || stages.has_term(&term)
                || TIMES.contains(&term.text.as_str())
                || MORE_TIMES.contains(&term.text.as_str());
            let begins_group = std::mem::take(&mut begins_group) || begins_sentence(text, term.start);
            let is_genitive = std::mem::take(&mut is_genitive);
            let is_name = is_name && !is_time;
            let span = term.start..term.end;
            words.push(Word { stem: stemmed, span, is_number, is_time, is_name, begins_group, is_genitive });
        }
        let is_negated = negation_count(text, &reading) % 2 == 1;
        let updates = updates.into_iter().map(|(_, name)| name).collect();
        let is_short = (LEAST_SHARED..=MOST_WORDS).contains(&words.len());
        is_short.then(|| Self { text: text.to_owned(), words, light, is_negated, updates })
    }

    /// Returns the stems of the words, each once.
    pub fn stems(&self) -> BTreeSet<&str> {
        self.words.iter().map(|word| word.stem.as_str()).collect()
    }

    /// Returns whether a name of the statement has words beyond some, as `Falcon Lab` beyond `Falcon`.
    pub(crate) fn extends_name_of(&self, stems: &BTreeSet<&str>, names: &Names) -> bool {
        extends_name(&self.words, names, &|word| !stems.contains(word.stem.as_str()))
    }

    /// Returns the name that comes first, with all of its words; `None` if the statement has no name.
    pub fn subject(&self, names: &Names) -> Option<Subject> {
        let start = self.words.iter().position(|word| names.has(word))?;
        let rest = self.words.get(start + 1..).unwrap_or_default();
        let more = rest.iter().take_while(|word| !word.begins_group && names.has(word)).count();
        let words = self.words.get(start..=start + more)?;
        let stems = words.iter().map(|word| word.stem.as_str()).collect::<Vec<_>>().join(" ");
        let written: Vec<&str> = words.iter().filter_map(|word| self.text.get(word.span.clone())).collect();
        Some(Subject { stems, text: written.join(" ") })
    }

    /// Compares this statement with a newer one.
    pub fn compare(&self, newer: &Self) -> Comparison {
        self.compare_by(newer, &Names::of([self, newer])).0
    }

    /// Compares this statement with a newer one by the names of many statements. The second value says whether the two
    /// share a name that is no part of what differs; without one, other statements must not be about the same.
    pub fn compare_by(&self, newer: &Self, names: &Names) -> (Comparison, bool) {
        let (own, other) = (self.stems(), newer.stems());
        let shared = own.intersection(&other).count();
        let least = own.len().min(other.len());
        let unrelated = (Comparison::Unrelated, false);
        let verbs = usize::from(!self.light.is_disjoint(&newer.light));
        // A statement of two words shares one of them with another that gives it another number or time.
        let is_enough = shared + verbs >= LEAST_SHARED || shared > 0 && least <= LEAST_SHARED;
        if !is_enough || (shared as f64) < LEAST_OVERLAP * least as f64 {
            return unrelated;
        }
        let pair = StatementPair {
            older: self,
            newer,
            names,
            lost: self.words.iter().filter(|word| !other.contains(word.stem.as_str())).collect(),
            gained: newer.words.iter().filter(|word| !own.contains(word.stem.as_str())).collect(),
            updates: newer.updates.difference(&self.updates).copied().collect(),
            shares_verb: verbs > 0,
            needs_measure: shared + verbs < LEAST_SHARED,
        };
        if self.is_negated != newer.is_negated {
            return (pair.opposite(), true);
        }
        match (pair.lost.is_empty(), pair.gained.is_empty()) {
            (true, true) if same_facts(&self.text, &newer.text) && !pair.swaps_names() => {
                (Comparison::Same, true)
            }
            (true, true) => unrelated,
            (false, false) => pair.replaced(),
            // The newer one names the old value and another one.
            (true, false) if pair.names_new_value() => (Comparison::Superseded, true),
            (true, false) => (pair.extended(&pair.gained), true),
            (false, true) => (pair.extended(&pair.lost), true),
        }
    }
}

/// Two statements, and what differs.
struct StatementPair<'s> {
    older: &'s Statement,
    newer: &'s Statement,
    names: &'s Names,
    /// The words that only the older one has.
    lost: Vec<&'s Word>,
    /// The words that only the newer one has.
    gained: Vec<&'s Word>,
    /// The phrases of an update that only the newer one has.
    updates: Vec<&'static str>,
    /// Whether both have the same verb that says nothing by itself.
    shares_verb: bool,
    /// Whether they share so little that only a number or a time can be the value.
    needs_measure: bool,
}

impl StatementPair<'_> {
    /// Decides about two statements of which one is negated.
    fn opposite(&self) -> Comparison {
        let is_plain = |word: &&Word| !word.is_number && !self.names.has(word);
        let is_lost = |word: &Word| self.lost.iter().any(|lost| lost.stem == word.stem);
        let is_gained = |word: &Word| self.gained.iter().any(|gained| gained.stem == word.stem);
        let is_same_subject = self.lost.len() <= 1 && self.lost.iter().all(is_plain);
        if self.extends_name(&self.older.words, &is_lost) || self.extends_name(&self.newer.words, &is_gained)
        {
            return Comparison::Unrelated;
        }
        // Two statements about different things can be negated both.
        let is_replaced = !self.lost.is_empty() && !self.gained.is_empty();
        match (is_same_subject && !is_replaced, self.updates.is_empty()) {
            // An update may say from when it holds, or what holds now.
            (_, false) if self.lost.iter().all(|word| !self.names.has(word)) && self.lost.len() <= 1 => {
                Comparison::Superseded
            }
            (true, true) if self.gained.len() <= 1 && self.gained.iter().all(is_plain) => {
                Comparison::Contradicted
            }
            _ => Comparison::Unrelated,
        }
    }

    /// Returns whether the newer statement has all of the older one and another value.
    fn names_new_value(&self) -> bool {
        let is_dated = self.updates.iter().all(|phrase| is_dating(phrase));
        let is_value = |word: &Word| !(is_dated && (word.is_number || word.is_time));
        let is_gained = |word: &Word| self.gained.iter().any(|gained| gained.stem == word.stem);
        !self.updates.is_empty()
            && self.gained.len() <= LONGEST_VALUE + 2
            && self.gained.iter().any(|word| is_value(word))
            && !self.extends_name(&self.newer.words, &is_gained)
    }

    /// Decides about two statements of which each has words that the other has not. The words at the end that one alone
    /// has are its value, and a name before them is its subject.
    fn replaced(&self) -> (Comparison, bool) {
        let unrelated = (Comparison::Unrelated, false);
        let (old, new) = (&self.older.words, &self.newer.words);
        let is_lost = |word: &Word| self.lost.iter().any(|lost| lost.stem == word.stem);
        let is_gained = |word: &Word| self.gained.iter().any(|gained| gained.stem == word.stem);
        let is_predicate = |word: &Word| !word.is_number && !self.names.has(word) && !is_lost(word);
        let shares_predicate = self.shares_verb || old.iter().any(is_predicate);
        let is_long = self.lost.len() > LONGEST_VALUE || self.gained.len() > LONGEST_VALUE + 2;
        if !shares_predicate
            || is_long
            || self.extends_name(new, &is_gained)
            || self.extends_name(old, &is_lost)
        {
            return unrelated;
        }
        let (old_tail, new_tail) = (self.tail(old, &is_lost), self.tail(new, &is_gained));
        let has_name = old.iter().take(old_tail).any(|word| self.names.has(word) && !is_lost(word));
        let is_measure = |words: &[Word], at: usize| {
            words.get(at).is_some_and(|word| (word.is_number || word.is_time) && !is_identifier(words, at))
        };
        let fits = |words: &[Word], tail: usize, differs: &dyn Fn(&Word) -> bool| {
            let changed = words.iter().enumerate().filter(|(_, word)| differs(word));
            changed
                .into_iter()
                .all(|(at, _)| !self.needs_measure && tail > 0 && at >= tail || is_measure(words, at))
        };
        if !fits(old, old_tail, &is_lost) {
            return unrelated;
        }
        if !self.updates.is_empty() {
            return (Comparison::Superseded, has_name);
        }
        let shared = old.iter().filter(|word| !is_lost(word)).count();
        let is_same_length = 2 * shared >= old.len().max(new.len()) && self.gained.len() <= LONGEST_VALUE;
        if !is_same_length || !fits(new, new_tail, &is_gained) || self.may_both_hold() {
            return unrelated;
        }
        // Without another name, a name behind `of` is the subject.
        let is_of_subject = |words: &[Word], tail: usize| {
            words.get(tail).is_some_and(|word| word.is_genitive && self.names.has(word))
        };
        let is_subject = !has_name && (is_of_subject(old, old_tail) || is_of_subject(new, new_tail));
        if is_subject { unrelated } else { (Comparison::Contradicted, has_name) }
    }

    /// Returns the place of the last words that may be a value: those that one statement alone has, and the names with them,
    /// up to a word between.
    fn tail(&self, words: &[Word], differs: &impl Fn(&Word) -> bool) -> usize {
        let mut tail = words.len();
        while let Some(word) = tail.checked_sub(1).and_then(|at| words.get(at)) {
            if !differs(word) && !self.names.has(word) {
                break;
            }
            tail -= 1;
            if word.begins_group {
                break;
            }
        }
        tail
    }

    /// Returns whether a name that one statement alone has belongs to a name that both have, as `Falcon Lab` to `Falcon`.
    fn extends_name(&self, words: &[Word], differs: &impl Fn(&Word) -> bool) -> bool {
        extends_name(words, self.names, differs)
    }

    /// Returns whether one of the statements tells something of which several can be true, each at its time.
    fn may_both_hold(&self) -> bool {
        let is_measure = |word: &&Word| word.is_number && word.stem.chars().count() != YEAR_DIGITS;
        let is_measured = self.lost.iter().chain(&self.gained).all(is_measure);
        let mut words = self.older.words.iter().chain(&self.newer.words);
        !is_measured && words.any(|word| is_open(&word.stem))
    }

    /// Decides about two statements of which one has all words of the other.
    fn extended(&self, extra: &[&Word]) -> Comparison {
        let longest = self.older.words.len().max(self.newer.words.len());
        let is_value = |word: &&Word| word.is_number || word.is_time || self.names.has(word);
        let is_little = extra.len() * EXTRA <= longest && !extra.iter().any(is_value);
        let has_same_updates = self.older.updates == self.newer.updates;
        if is_little && has_same_updates { Comparison::Same } else { Comparison::Unrelated }
    }

    /// Returns whether the statements differ in the order of their names alone, such as who reports to whom.
    fn swaps_names(&self) -> bool {
        let is_value = |word: &&Word| word.is_number || self.names.has(word);
        let values = |words: &[Word]| -> Vec<String> {
            words.iter().filter(is_value).map(|word| word.stem.clone()).collect()
        };
        let frame = |words: &[Word]| -> Vec<String> {
            let stem = |word: &Word| if is_value(&word) { String::new() } else { word.stem.clone() };
            words.iter().map(stem).collect()
        };
        let (old, new) = (&self.older.words, &self.newer.words);
        values(old) != values(new) && frame(old) == frame(new)
    }
}

/// Returns whether two words of one name differ in whether they are among some.
fn extends_name(words: &[Word], names: &Names, differs: &impl Fn(&Word) -> bool) -> bool {
    words.windows(2).any(|pair| match pair {
        [first, second] if !second.begins_group && names.has(first) && names.has(second) => {
            differs(first) != differs(second)
        }
        _ => false,
    })
}

/// Returns whether a number belongs to the word before it and more is said of both, as of `Sprint 12`, or a time to the word
/// behind it, as in `March review`. A unit behind a number, as in `12 seconds`, makes a measure of it.
fn is_identifier(words: &[Word], at: usize) -> bool {
    if words.get(at).is_some_and(|word| word.is_time) {
        return words.get(at + 1).is_some_and(|next| !next.begins_group && !next.is_number);
    }
    let is_bound = words.get(at).is_some_and(|word| word.is_number && !word.begins_group);
    let mut behind = words.iter().skip(at + 1).filter(|word| !word.is_number);
    let has_unit = behind.next().is_none_or(|unit| !unit.begins_group);
    is_bound && !(has_unit && behind.next().is_none())
}

/// The digits of a year.
const YEAR_DIGITS: usize = 4;

/// More names of times: those that return, and midnight.
const MORE_TIMES: &[&str] = &[
    "mondays",
    "tuesdays",
    "wednesdays",
    "thursdays",
    "fridays",
    "saturdays",
    "sundays",
    "midnight",
    "daily",
    "weekly",
    "monthly",
    "yearly",
];

/// English words that negate a statement.
const ENGLISH_NEGATIONS: [&str; 24] = [
    "not",
    "no",
    "never",
    "none",
    "nobody",
    "nothing",
    "neither",
    "nor",
    "without",
    "cannot",
    "can't",
    "don't",
    "doesn't",
    "didn't",
    "isn't",
    "aren't",
    "wasn't",
    "weren't",
    "won't",
    "shouldn't",
    "mustn't",
    "hasn't",
    "haven't",
    "lacks",
];

/// Counts the negations of a text.
fn negation_count(text: &str, reading: &Reading<'_>) -> usize {
    let lower = text.to_lowercase().replace('’', "'");
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let english = words.filter(|word| ENGLISH_NEGATIONS.contains(word)).count();
    // A language may say one negation in two words.
    if english > 0 { english } else { usize::from(reading.has(List::Negations)) }
}

/// Returns whether a byte of a text is the first of a sentence or a line.
fn begins_sentence(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let is_lead = |c: char| c.is_whitespace() || matches!(c, '#' | '-' | '*' | '>' | '"' | '(' | '[');
    let before = line.trim_end_matches(is_lead);
    before.is_empty() || before.ends_with(['.', '!', '?', ':'])
}

/// Returns whether a term is the rest of a word behind an apostrophe, as in `it's`.
fn is_clitic(raw: &str) -> bool {
    raw.chars().count() == 1 && raw.chars().all(|c| c.is_lowercase() && !is_unspaced(c))
}

/// Returns the terms of a text. A name such as `MongoDB` is one term, and a compound with signs has one for each part.
fn whole_terms(text: &str) -> Vec<Term> {
    let all = terms(text);
    let is_single = |term: &&Term| {
        let raw = text.get(term.start..term.end).unwrap_or_default();
        term.kind == TermKind::Whole && raw.chars().all(char::is_alphanumeric)
    };
    let whole: Vec<Range<usize>> = all.iter().filter(is_single).map(|term| term.start..term.end).collect();
    let is_kept = |term: &Term| match term.kind {
        TermKind::Whole => whole.contains(&(term.start..term.end)),
        TermKind::Part => !whole.iter().any(|span| span.start <= term.start && term.end <= span.end),
        TermKind::LastCharacter => false,
        TermKind::Word | TermKind::Bigram => true,
    };
    all.into_iter().filter(is_kept).collect()
}

/// Returns whether a word is written as a name: with a capital letter within a sentence, and not behind a German article.
fn is_written_as_name(text: &str, at: usize, raw: &str) -> bool {
    let is_capital = raw.chars().next().is_some_and(char::is_uppercase) && raw != "I";
    if !is_capital || begins_sentence(text, at) {
        return false;
    }
    let before = text.get(..at).unwrap_or_default().split_whitespace().next_back().unwrap_or_default();
    !GERMAN_ARTICLES.contains(&before.to_lowercase().as_str())
}

fn is_hiragana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{309f}')
}
