//! Word lists of natural languages, from the files in `crates/language/languages`: small talk, orders, negations, dates and
//! more (docs/dev/languages.md). Those of a language are read only for a text that [`Languages`] says is in it.

mod file;
mod phrase;
mod spoken;
mod units;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::OnceLock;

use file::{Dates, LanguageFile};
use jiff::civil::Date;
use phrase::{Part, Phrase};
use spoken::CODES;
pub use spoken::Languages;
use units::{Unit, units};

use crate::language::STOP_WORDS;
use crate::terms::Term;

/// The files of the languages, in the order of their codes.
const FILES: [&str; CODES.len()] = [
    include_str!("../languages/de.toml"),
    include_str!("../languages/es.toml"),
    include_str!("../languages/fr.toml"),
    include_str!("../languages/it.toml"),
    include_str!("../languages/ja.toml"),
    include_str!("../languages/ko.toml"),
    include_str!("../languages/nl.toml"),
    include_str!("../languages/pl.toml"),
    include_str!("../languages/pt.toml"),
    include_str!("../languages/ru.toml"),
    include_str!("../languages/zh.toml"),
];

/// A list of words and phrases, of which each language has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum List {
    /// Words that are too common to rank by.
    StopWords,
    /// Small talk. A prompt of it is about no note.
    SmallTalk,
    /// Words that ask for what was said before.
    AsksAgain,
    /// Verbs with which an order begins.
    Orders,
    /// What may precede an order.
    BeforeOrders,
    /// What may stand after an order.
    AfterOrders,
    /// What may precede an order, and makes an order of a prompt that ends with one of [`List::FinalOrders`].
    Requests,
    /// Verbs with which an order ends.
    FinalOrders,
    /// Words that ask.
    Questions,
    /// Forms of address before a name.
    Address,
    /// Words in lower case that are part of names.
    Particles,
    /// Words that tell the type of a memory; the value is the type.
    Types,
    /// Words of decisions.
    Decisions,
    /// Words of faults and what cured them.
    Fixes,
    /// Words of preferences and rules.
    Preferences,
    /// Words of findings.
    Discoveries,
    /// Words of instructions.
    Procedures,
    /// Words that tell where something is.
    Places,
    /// Words that mark a statement as important.
    Important,
    /// Words of negation.
    Negations,
    /// Words of modality, which turn a fact into a possibility or a plan.
    Modals,
    /// Words for the stage of a task.
    Stages,
    /// Names of times; the value of a month or a day of the week is the same in all its forms.
    Times,
}

/// A phrase of one list.
#[derive(Debug)]
struct Entry {
    phrase: Phrase,
    list: List,
    /// The name of the phrase in comparisons: itself, or a name that its forms share.
    value: String,
}

/// The word lists of one language.
#[derive(Debug, Default)]
struct WordLists {
    entries: Vec<Entry>,
    by_word: HashMap<String, Vec<usize>>,
    by_stem: HashMap<String, Vec<usize>>,
    dates: DateWords,
    /// Whether all nouns have capitals.
    capitalises_nouns: bool,
    /// The endings that a name may have.
    name_endings: Vec<String>,
    /// Whether a verb at the end is an order only if the text asks for it.
    needs_request: bool,
}

/// How a language puts dates in words.
#[derive(Debug, Default)]
struct DateWords {
    months: Vec<Vec<Phrase>>,
    weekdays: Vec<Vec<Phrase>>,
    /// The numbers from one on.
    numbers: Vec<Vec<Phrase>>,
    patterns: Vec<Pattern>,
}

/// A pattern of a date.
#[derive(Debug)]
struct Pattern {
    /// What it means, such as `last_week`, or `in` for what its slots name.
    meaning: String,
    /// The bound that it is of that period.
    bound: Option<String>,
    phrase: Phrase,
}

/// What patterns mean that name a bound of a period.
const BOUNDS: [&str; 4] = ["since", "before", "after", "until"];

static LISTS: [OnceLock<WordLists>; CODES.len()] = [const { OnceLock::new() }; CODES.len()];

impl Languages {
    /// Returns the word lists of the languages, each of which the first call builds.
    fn lists(self) -> impl Iterator<Item = &'static WordLists> {
        self.numbers().filter_map(|at| {
            let (lists, code, text) = (LISTS.get(at)?, CODES.get(at)?, FILES.get(at)?);
            Some(lists.get_or_init(|| WordLists::parse(code, text)))
        })
    }

    /// Says whether a list of one of the languages has a folded word.
    pub fn list_word(self, list: List, word: &str) -> bool {
        let is_word = |entry: &Entry| entry.list == list && entry.phrase.is_one_unit();
        self.lists().any(|lists| lists.of_word(word).filter_map(|at| lists.entries.get(at)).any(is_word))
    }

    /// Says whether one of the languages begins all nouns with a capital letter, which then tells no name.
    pub fn capitalise_nouns(self) -> bool {
        self.lists().any(|lists| lists.capitalises_nouns)
    }

    /// Returns the endings that a name may have in the languages.
    pub fn name_endings(self) -> impl Iterator<Item = &'static str> {
        self.lists().flat_map(|lists| lists.name_endings.iter().map(String::as_str))
    }
}

impl WordLists {
    fn parse(code: &str, text: &str) -> Self {
        let file = toml::from_str(text).unwrap_or_else(|why| {
            tracing::error!("the word lists of the language {code} cannot be read: {why}");
            LanguageFile::default()
        });
        let mut lists = Self {
            dates: DateWords::of(&file.dates),
            capitalises_nouns: file.capitalises_nouns,
            needs_request: !file.prompts.requests.is_empty(),
            ..Self::default()
        };
        let line = STOP_WORDS.lines().find_map(|line| line.strip_prefix(code)?.split_once('|'));
        for word in line.map_or("", |(_, words)| words).split(' ') {
            lists.add(List::StopWords, word, word.to_owned());
        }
        lists.add_file(&file);
        lists.name_endings = file.names.endings;
        for (at, entry) in lists.entries.iter().enumerate() {
            match entry.phrase.first() {
                Some(Part::Word(word)) => lists.by_word.entry(word.clone()).or_default().push(at),
                Some(Part::Stem(stem)) => lists.by_stem.entry(stem.clone()).or_default().push(at),
                _ => {}
            }
        }
        lists
    }

    fn add_file(&mut self, file: &LanguageFile) {
        let (prompts, capture, duplicates) = (&file.prompts, &file.capture, &file.duplicates);
        let lists = [
            (List::SmallTalk, &prompts.small_talk),
            (List::AsksAgain, &prompts.again),
            (List::Orders, &prompts.orders),
            (List::BeforeOrders, &prompts.before_orders),
            (List::AfterOrders, &prompts.after_orders),
            (List::Requests, &prompts.requests),
            (List::FinalOrders, &prompts.final_orders),
            (List::Questions, &prompts.questions),
            (List::Address, &file.names.address),
            (List::Particles, &file.names.particles),
            (List::Decisions, &capture.decisions),
            (List::Fixes, &capture.fixes),
            (List::Preferences, &capture.preferences),
            (List::Discoveries, &capture.discoveries),
            (List::Procedures, &capture.procedures),
            (List::Places, &capture.places),
            (List::Important, &capture.important),
            (List::Negations, &duplicates.negations),
            (List::Modals, &duplicates.modals),
            (List::Stages, &duplicates.stages),
            (List::Times, &duplicates.times),
        ];
        for (list, phrases) in lists {
            for phrase in phrases {
                self.add(list, phrase, phrase.to_owned());
            }
        }
        for (kind, phrases) in &file.types {
            for phrase in phrases {
                self.add(List::Types, phrase, kind.clone());
            }
        }
        let dates = &file.dates;
        for (name, entries) in [("month", &dates.months), ("weekday", &dates.weekdays)] {
            for (at, entry) in entries.iter().enumerate() {
                for form in entry.split('|') {
                    self.add(List::Times, form, format!("{name} {}", at + 1));
                }
            }
        }
    }

    fn add(&mut self, list: List, phrase: &str, value: String) {
        let phrase = Phrase::parse(phrase);
        if phrase.first().is_some() {
            self.entries.push(Entry { phrase, list, value });
        }
    }

    /// Returns the numbers of the entries that begin with a folded word or its beginning.
    fn of_word(&self, word: &str) -> impl Iterator<Item = usize> {
        let ends = word.char_indices().map(|(at, c)| at + c.len_utf8());
        let stems = ends.filter_map(|end| self.by_stem.get(word.get(..end)?));
        self.by_word.get(word).into_iter().chain(stems).flatten().copied()
    }
}

impl DateWords {
    fn of(dates: &Dates) -> Self {
        let forms = |entries: &[String]| -> Vec<Vec<Phrase>> {
            entries.iter().map(|entry| entry.split('|').map(Phrase::parse).collect()).collect()
        };
        let (bounds, periods): (Vec<_>, Vec<_>) =
            dates.phrases.iter().partition(|(meaning, _)| BOUNDS.contains(&meaning.as_str()));
        let inner: Vec<(&str, &str)> = periods
            .into_iter()
            .flat_map(|(meaning, written)| written.iter().map(|one| (meaning.as_str(), one.as_str())))
            .collect();
        let period = |(meaning, written): &(&str, &str)| Pattern {
            meaning: (*meaning).to_owned(),
            bound: None,
            phrase: Phrase::parse(written),
        };
        // They come first: the Spanish and French words for the day before yesterday are also those for before yesterday.
        let mut patterns: Vec<Pattern> = inner.iter().map(period).collect();
        let points: Vec<(&str, &str)> =
            dates.points.iter().map(|point| ("in", point.as_str())).chain(inner).collect();
        for (bound, written) in
            bounds.into_iter().flat_map(|(bound, all)| all.iter().map(move |one| (bound, one)))
        {
            // Without the slot, the slots of the pattern itself name the point.
            let count = if written.contains("{point}") { points.len() } else { 1 };
            for (meaning, point) in points.iter().take(count) {
                patterns.push(Pattern {
                    meaning: (*meaning).to_owned(),
                    bound: Some(bound.clone()),
                    phrase: Phrase::parse(&written.replace("{point}", point)),
                });
            }
        }
        Self {
            months: forms(&dates.months),
            weekdays: forms(&dates.weekdays),
            numbers: forms(&dates.numbers),
            patterns,
        }
    }
}

/// A phrase that was found in a text.
#[derive(Debug)]
struct Found {
    lists: &'static WordLists,
    entry: &'static Entry,
    /// The numbers of its units.
    units: Range<usize>,
}

/// A text with the phrases that it has of all lists of the languages that it is in.
#[derive(Debug)]
pub struct Reading<'t> {
    text: &'t str,
    languages: Languages,
    units: Vec<Unit>,
    found: Vec<Found>,
}

impl<'t> Reading<'t> {
    /// Finds the phrases of a text.
    pub fn of(text: &'t str) -> Self {
        Self::in_languages(text, Languages::of(text))
    }

    /// Finds the phrases that a text has of the lists of some languages.
    pub fn in_languages(text: &'t str, languages: Languages) -> Self {
        let units = if languages.is_empty() { Vec::new() } else { units(text) };
        let mut found = Vec::new();
        for lists in languages.lists() {
            for (at, unit) in units.iter().enumerate() {
                for number in lists.of_word(&unit.text) {
                    let Some(entry) = lists.entries.get(number) else { continue };
                    if let Some(end) = entry.phrase.end(text, &units, at, &mut |_, _| None) {
                        found.push(Found { lists, entry, units: at..end });
                    }
                }
            }
        }
        Self { text, languages, units, found }
    }

    /// Returns the languages of which the phrases are.
    pub fn languages(&self) -> Languages {
        self.languages
    }

    fn span(&self, units: &Range<usize>) -> Range<usize> {
        let start = self.units.get(units.start).map_or(0, |unit| unit.start);
        let end =
            units.end.checked_sub(1).and_then(|last| self.units.get(last)).map_or(start, |unit| unit.end);
        start..end
    }

    fn found_of(&self, list: List) -> impl Iterator<Item = &Found> {
        self.found.iter().filter(move |found| found.entry.list == list)
    }

    /// Says whether the text has a phrase of a list.
    pub fn has(&self, list: List) -> bool {
        self.found_of(list).next().is_some()
    }

    /// Returns the names of the phrases of a list that occur in the text, in order. A phrase of several languages counts once.
    pub fn values(&self, list: List) -> Vec<&'static str> {
        let mut at_places: BTreeSet<(usize, &str)> = BTreeSet::new();
        at_places.extend(self.found_of(list).map(|found| (found.units.start, found.entry.value.as_str())));
        at_places.into_iter().map(|(_, value)| value).collect()
    }

    /// Returns what the phrases of a list take up of the text.
    pub fn cover(&self, list: List) -> Cover<'_> {
        let mut spans: Vec<Range<usize>> = Vec::new();
        let mut found: Vec<Range<usize>> = self.found_of(list).map(|found| self.span(&found.units)).collect();
        found.sort_unstable_by_key(|span| (span.start, span.end));
        for span in found {
            match spans.last_mut().filter(|last| span.start <= last.end) {
                Some(last) => last.end = last.end.max(span.end),
                None => spans.push(span),
            }
        }
        Cover { reading: self, list, spans }
    }

    /// Returns whether the text orders an agent to do something to code or text, and is not a question. What precedes
    /// and follows the order is skipped, with numbers.
    pub fn is_order(&self, most_units: usize) -> bool {
        if self.is_question() {
            return false;
        }
        let is_number =
            |at: usize| self.units.get(at).is_some_and(|unit| !unit.text.chars().any(char::is_alphabetic));
        let mut ends_before: HashMap<usize, usize> = HashMap::new();
        for found in self.found_of(List::BeforeOrders) {
            let end = ends_before.entry(found.units.start).or_default();
            *end = found.units.end.max(*end);
        }
        let mut begin = 0;
        while begin < most_units {
            match ends_before.get(&begin) {
                Some(end) => begin = *end,
                None if is_number(begin) => begin += 1,
                None => break,
            }
        }
        if begin < most_units && self.found_of(List::Orders).any(|found| found.units.start == begin) {
            return true;
        }
        let mut ends: HashMap<usize, usize> = HashMap::new();
        for found in self.found_of(List::AfterOrders) {
            let start = ends.entry(found.units.end).or_insert(found.units.start);
            *start = found.units.start.min(*start);
        }
        let mut end = self.units.len();
        while let Some(start) = ends.get(&end) {
            end = *start;
        }
        let is_requested = |lists: &WordLists| {
            let mut requests = self.found_of(List::Requests).filter(|found| std::ptr::eq(found.lists, lists));
            !lists.needs_request || requests.any(|found| found.units.start < begin.max(1))
        };
        self.found_of(List::FinalOrders).any(|found| found.units.end == end && is_requested(found.lists))
    }

    /// Returns whether the text is a question: it has a question word, and ends with one or with a question mark. The
    /// verb of an order may be the noun or the infinitive of a question: `测试环境的地址是多少？`.
    fn is_question(&self) -> bool {
        let has_mark = self.text.trim_end().ends_with(['?', '？']);
        self.found_of(List::Questions).any(|found| has_mark || found.units.end == self.units.len())
    }
}

/// What the phrases of a list take up of a text.
#[derive(Debug)]
pub struct Cover<'r> {
    reading: &'r Reading<'r>,
    list: List,
    /// Spans that neither overlap nor adjoin, in order.
    spans: Vec<Range<usize>>,
}

impl Cover<'_> {
    /// Says whether the list has a term of the text, as a word or in a phrase.
    pub fn has_term(&self, term: &Term) -> bool {
        let is_inside = |span: &Range<usize>| span.start <= term.start && term.end <= span.end;
        self.reading.languages.list_word(self.list, &term.text)
            || self.first_after(term.start).is_some_and(is_inside)
    }

    /// Says whether a phrase of the list takes up a part of a term.
    pub fn touches(&self, term: &Term) -> bool {
        self.first_after(term.start).is_some_and(|span| span.start < term.end)
    }

    /// Returns the first span that ends after a place.
    fn first_after(&self, place: usize) -> Option<&Range<usize>> {
        self.spans.get(self.spans.partition_point(|span| span.end <= place))
    }
}

/// A pattern of a date that was found in a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatePattern {
    /// What the pattern means, such as `last_week`, or `in` for what its slots name.
    pub meaning: &'static str,
    /// The bound that this is of the period, such as `since`, unless it is the period itself.
    pub bound: Option<&'static str>,
    /// Where it stands.
    pub span: Range<usize>,
    /// The number of the month, from 1 on.
    pub month: Option<usize>,
    /// The number of the day of the week, Monday being 1.
    pub weekday: Option<usize>,
    /// The day of the month.
    pub day: Option<i8>,
    /// The year.
    pub year: Option<i16>,
    /// The date in digits.
    pub date: Option<Date>,
    /// The number of days, weeks, months or years.
    pub number: Option<i64>,
}

/// The digits of a year.
const YEAR_DIGITS: usize = 4;
/// The most digits of a day or of a month.
const DAY_DIGITS: usize = 2;
/// The most digits of a number of days, weeks, months or years.
const COUNT_DIGITS: usize = 3;
/// The most letters after the digits of an ordinal number, such as `1er`.
const ORDINAL_LETTERS: usize = 2;

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads a number of days, weeks, months or years in digits.
pub fn count_in_digits(text: &str) -> Option<i64> {
    (is_digits(text) && text.len() <= COUNT_DIGITS).then(|| text.parse().ok()).flatten()
}

/// Reads a date in digits at the beginning of a text, such as `2026-11-29`, `29.11.2026` and `29/11/2026`: year, month and
/// day or the reverse. Returns its length, too.
pub fn date_in_digits(text: &str) -> Option<(usize, Date)> {
    let is_sign = |c: char| matches!(c, '-' | '.' | '/');
    let end = text.find(|c: char| !c.is_ascii_digit() && !is_sign(c)).unwrap_or(text.len());
    // A part of a longer name is not a date.
    if text.get(end..)?.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let written = text.get(..end)?.trim_end_matches('.');
    let sign = written.chars().find(|c| is_sign(*c))?;
    let parts: Vec<&str> = written.split(sign).collect();
    let (year, month, day) = match parts.as_slice() {
        [year, month, day] if year.len() == YEAR_DIGITS => (year, month, day),
        [day, month, year] if year.len() == YEAR_DIGITS => (year, month, day),
        _ => return None,
    };
    // A year with fewer digits behind full stops is a version: `2024.3.1`.
    let least = if sign == '.' && written.starts_with(year) { DAY_DIGITS } else { 1 };
    let is_short = |part: &str| is_digits(part) && (least..=DAY_DIGITS).contains(&part.len());
    let is_date = is_digits(year) && is_short(month) && is_short(day);
    let date = Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()?;
    is_date.then_some((written.len(), date))
}

impl DatePattern {
    /// Fills a slot from the units of a text. Returns the number of units.
    fn fill(&mut self, words: &DateWords, reading: &Reading<'_>, slot: &str, at: usize) -> Option<usize> {
        let (text, units) = (reading.text, reading.units.as_slice());
        let unit = units.get(at)?;
        let one_of = |entries: &[Vec<Phrase>], at: usize| {
            let ends = |forms: &Vec<Phrase>| {
                forms.iter().filter_map(|form| form.end(text, units, at, &mut |_, _| None)).max()
            };
            let found =
                entries.iter().enumerate().filter_map(|(number, forms)| Some((ends(forms)?, number + 1)));
            found.max_by_key(|(end, _)| *end)
        };
        let mut end = at + 1;
        match slot {
            "month" => {
                let found = one_of(&words.months, at)?;
                (end, self.month) = (found.0, Some(found.1));
            }
            "weekday" => {
                let found = one_of(&words.weekdays, at)?;
                (end, self.weekday) = (found.0, Some(found.1));
            }
            "year" if is_digits(&unit.text) && unit.text.len() == YEAR_DIGITS => {
                self.year = Some(unit.text.parse().ok()?);
            }
            "day" => {
                let digits = unit.text.trim_end_matches(|c: char| !c.is_ascii_digit());
                let letters = unit.text.get(digits.len()..)?.chars().count();
                let is_day = is_digits(digits) && digits.len() <= DAY_DIGITS && letters <= ORDINAL_LETTERS;
                self.day = Some(digits.parse().ok().filter(|_| is_day)?);
            }
            "number" => {
                let is_part = at.checked_sub(1).is_some_and(|before| {
                    // In a script without spaces, a number may have several characters: `十三`.
                    let adjoins = units.get(before).is_some_and(|one| one.end == unit.start);
                    adjoins && one_of(&words.numbers, before).is_some()
                });
                let found = one_of(&words.numbers, at).filter(|_| !is_part);
                end = found.map_or(end, |(end, _)| end);
                let spoken = found.and_then(|(_, number)| i64::try_from(number).ok());
                self.number = Some(spoken.or_else(|| count_in_digits(&unit.text))?);
            }
            "date" => {
                let (length, date) = date_in_digits(text.get(unit.start..)?)?;
                self.date = Some(date);
                let inside =
                    units.iter().skip(at).take_while(|inside| inside.end <= unit.start + length).count();
                end = at + inside;
            }
            _ => return None,
        }
        Some(end - at)
    }
}

/// Finds the patterns of dates in a text, in order; at one place, the longest comes first. They are those of the
/// languages of the text, and those of a language that the words of the date alone are in: in `Schmidt am 7. Oktober`, the
/// date alone says which language it is in.
pub fn date_patterns(text: &str) -> Vec<DatePattern> {
    let spoken = Languages::of(text);
    let reading = Reading::in_languages(text, spoken | Languages::possible_in(text));
    let mut found = Vec::new();
    for language in reading.languages.each() {
        let is_spoken = |span: &Range<usize>| {
            spoken.has(language) || Languages::of(text.get(span.clone()).unwrap_or("")).has(language)
        };
        for words in language.lists().map(|lists| &lists.dates) {
            // Most of the patterns have a word that the text does not have.
            let has_word = |word: &str| reading.units.iter().any(|unit| unit.text == word);
            let possible = words.patterns.iter().filter(|pattern| pattern.phrase.words().all(has_word));
            for Pattern { meaning, bound, phrase } in possible {
                for at in (0..reading.units.len()).filter(|&at| !reading.is_joined(at)) {
                    let mut pattern =
                        DatePattern { meaning, bound: bound.as_deref(), ..DatePattern::default() };
                    let mut fill = |slot: &str, at| pattern.fill(words, &reading, slot, at);
                    let end = phrase.end(text, &reading.units, at, &mut fill);
                    if let Some(end) = end.filter(|&end| !reading.is_joined(end)) {
                        pattern.span = reading.span(&(at..end));
                        found.extend(Some(pattern).filter(|pattern| is_spoken(&pattern.span)));
                    }
                }
            }
        }
    }
    found.sort_by_key(|pattern| (pattern.span.start, usize::MAX - pattern.span.end));
    found
}

impl Reading<'_> {
    /// Says whether a sign joins a unit to the one before, as in `plug-in` and `2024/25`.
    fn is_joined(&self, at: usize) -> bool {
        let sign = || {
            let before = self.units.get(at.checked_sub(1)?)?.end;
            self.text.get(before..self.units.get(at)?.start)
        };
        let joins =
            |c: char| matches!(c, '-' | '\u{2010}' | '\u{2011}' | '/' | '.' | ',' | ':' | '_' | '&' | '+');
        sign().is_some_and(|sign| !sign.is_empty() && sign.chars().all(joins))
    }
}
