//! The languages whose most frequent words are known: which of them a text is in, and the stems of its words. Nothing here
//! knows notes or an index.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::{LazyLock, OnceLock};

use frostem::{Algorithm, Stemmer};
use hashbrown::{HashMap, HashSet};
use unicode_normalization::UnicodeNormalization;

use crate::folding::{fold_into, folded, is_inner_sign, is_invisible};

/// The file of the stop words of each language, which are its most frequent words.
pub(super) static STOP_WORDS: &str = include_str!("../languages/stop_words.txt");

/// How many words of a text tell its language. More would cost time and tell the same.
const SAMPLE_WORDS: usize = 200;
/// In prose, at least one in `LEAST_SHARE` words is a stop word. Lists of names and identifiers, code and tables have fewer.
const LEAST_SHARE: usize = 12;
/// The fewest different stop words that tell a language. A name in an English text may have two (`van der`, `de la`).
const LEAST_DIFFERENT: usize = 3;
/// What a word or letter tells that is of one language alone: every number of languages up to 6 divides it.
const WHOLE_WEIGHT: u32 = 60;
/// The most stems that a [`LanguageStemmer`] keeps.
const MAX_KEPT_STEMS: usize = 1 << 13;

/// A language, by its place in the file of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Language(u8);

/// What is known of a language.
struct Known {
    code: &'static str,
    algorithm: Option<Algorithm>,
    /// The stop words, with spaces between them.
    stop_words: &'static str,
    /// The stop words as they are folded, on first use: most queries ask for few languages.
    folded: OnceLock<HashSet<String>>,
}

/// The words and letters by which languages are recognised.
struct Signs {
    /// The languages that have a stop word, one bit for each.
    words: HashMap<&'static str, u64>,
    letters: HashMap<char, u64>,
    /// The languages of each of the [`SCRIPTS`].
    of_scripts: Vec<Vec<Language>>,
}

/// The letters that few languages have, with those languages.
const LETTERS: &[(&str, &str)] = &[
    ("ß", "de"),
    ("ä", "de sv fi et sk"),
    ("ö", "de sv fi et hu tr"),
    ("ü", "de et hu tr"),
    ("å", "sv da no"),
    ("æø", "da no"),
    ("ñ", "es"),
    ("ãõ", "pt"),
    ("œùû", "fr"),
    ("êè", "fr"),
    ("őű", "hu"),
    ("łńżź", "pl"),
    ("ąę", "pl lt"),
    ("řěů", "cs"),
    ("ľĺŕ", "sk"),
    ("čšž", "cs sk lt et sr"),
    ("đć", "sr"),
    ("ășțţ", "ro"),
    ("ığ", "tr"),
    ("ş", "tr ro"),
    ("ėįųū", "lt"),
    ("ĉĝĥĵŝŭ", "eo"),
    ("ơưđạảấầẩậắằặẹẻẽếềểệỉịọỏốồổộớờởợụủứừửựỳỷỹ", "vi"),
    ("іїєґ", "uk"),
    ("ыэё", "ru"),
    ("љњћђџј", "sr"),
    ("پچژگ", "fa"),
];

/// The characters of the scripts, and the languages that are written in them. If a text says as much for two of them, the
/// first one listed is meant.
const SCRIPTS: [(&[RangeInclusive<char>], &str); 8] = [
    (
        &['A'..='z', '\u{00C0}'..='\u{024F}', '\u{1E00}'..='\u{1EFF}'],
        "en da de nl no sv fi et hu tr eu ca es fr it pt ro cs sk pl lt sr eo ga id st vi",
    ),
    (&['\u{0370}'..='\u{03FF}', '\u{1F00}'..='\u{1FFF}'], "el"),
    (&['\u{0400}'..='\u{052F}'], "ru uk bg sr"),
    (&['\u{0530}'..='\u{058F}'], "hy"),
    (&['\u{0590}'..='\u{05FF}'], "he yi"),
    (&['\u{0600}'..='\u{06FF}'], "ar fa"),
    (&['\u{0900}'..='\u{097F}'], "hi ne"),
    (&['\u{0B80}'..='\u{0BFF}'], "ta"),
];

/// Returns the place of the script of a letter in [`SCRIPTS`], or the number of these scripts for any other one.
fn script_of(c: char) -> usize {
    let is_of = |(ranges, _): &(&[RangeInclusive<char>], &str)| ranges.iter().any(|range| range.contains(&c));
    SCRIPTS.iter().position(is_of).unwrap_or(SCRIPTS.len())
}

/// The languages, in the order of the file of words.
static LANGUAGES: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let lines = STOP_WORDS.lines().filter(|line| !line.starts_with('#'));
    let known = lines.filter_map(|line| {
        let (code, rest) = line.split_once(' ')?;
        let (name, stop_words) = rest.split_once('|')?;
        Some(Known { code, algorithm: Algorithm::from_name(name).ok(), stop_words, folded: OnceLock::new() })
    });
    known.collect()
});

static SIGNS: LazyLock<Signs> = LazyLock::new(|| {
    let (mut words, mut letters) = (HashMap::new(), HashMap::new());
    for (language, known) in Language::all().zip(LANGUAGES.iter()) {
        for word in known.stop_words.split(' ') {
            *words.entry(word).or_default() |= language.bit();
        }
    }
    let of_codes = |codes: &'static str| codes.split(' ').filter_map(Language::of_code);
    for (signs, codes) in LETTERS {
        for letter in signs.chars() {
            *letters.entry(letter).or_default() |= of_codes(codes).fold(0, |set, one| set | one.bit());
        }
    }
    Signs { words, letters, of_scripts: SCRIPTS.iter().map(|(_, codes)| of_codes(codes).collect()).collect() }
});

impl Language {
    /// English, the first language of the file of words.
    pub const ENGLISH: Self = Self(0);

    /// Returns all languages.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..LANGUAGES.len() as u8).map(Self)
    }

    /// Returns the language with an ISO 639-1 code.
    pub fn of_code(code: &str) -> Option<Self> {
        Self::all().find(|language| language.code() == code)
    }

    /// Returns the ISO 639-1 code, two letters.
    pub fn code(self) -> &'static str {
        self.known().map_or("", |known| known.code)
    }

    fn known(self) -> Option<&'static Known> {
        LANGUAGES.get(usize::from(self.0))
    }

    /// Returns the bit of the language in a set of languages.
    pub fn bit(self) -> u64 {
        1 << self.0
    }

    /// Returns whether the language writes compounds as one word.
    pub fn has_compounds(self) -> bool {
        matches!(self.code(), "da" | "de" | "et" | "fi" | "hu" | "nl" | "no" | "sv")
    }

    /// Returns whether a folded word is a stop word of the language.
    pub fn has_stop_word(self, word: &str) -> bool {
        self.known().is_some_and(|known| {
            let words = || known.stop_words.split(' ').map(folded).collect();
            known.folded.get_or_init(words).contains(word)
        })
    }

    /// Returns a stemmer for the language; `None` for English, whose stems are found without the language of a note, and for
    /// a language without one.
    pub fn stemmer(self) -> Option<LanguageStemmer> {
        let algorithm = self.known()?.algorithm?;
        let stemmer = LanguageStemmer { stemmer: Stemmer::new(algorithm), stems: HashMap::new() };
        (self != Self::ENGLISH).then_some(stemmer)
    }
}

/// Returns the language of a text; `None` if it is English or cannot be told.
///
/// Most letters of the text must belong to the script of the language. The evidence is the different stop words of the
/// text: a stop word of few languages counts more. After them count letters that few languages have. Words of one
/// letter do not count, because most of them are variables, units and signs of lists.
pub fn detect(text: &str) -> Option<Language> {
    let mut evidence = Evidence::new();
    let is_between =
        |c: char| if c.is_ascii() { !c.is_ascii_alphabetic() } else { !(c.is_alphabetic() || is_mark(c)) };
    for word in text.split(is_between).filter(|word| !word.is_empty()) {
        if evidence.words == SAMPLE_WORDS {
            break;
        }
        evidence.add(word);
    }
    evidence.language()
}

fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

/// What the words of a text say about its language.
struct Evidence {
    words: usize,
    /// How many letters are of each of the [`SCRIPTS`], and of any other.
    letters: [usize; SCRIPTS.len() + 1],
    /// The stop words, and the letters of few languages, that were counted.
    seen_words: HashSet<&'static str>,
    seen_letters: HashSet<char>,
    found: Vec<Found>,
}

/// What the words of a text say about one language.
#[derive(Clone, Copy, Default)]
struct Found {
    /// How many words are stop words.
    words: usize,
    /// How many different ones these are, with the letters of few languages.
    different: usize,
    score: u32,
}

impl Evidence {
    fn new() -> Self {
        Self {
            words: 0,
            letters: [0; SCRIPTS.len() + 1],
            seen_words: HashSet::new(),
            seen_letters: HashSet::new(),
            found: vec![Found::default(); LANGUAGES.len()],
        }
    }

    fn add(&mut self, word: &str) {
        self.words += 1;
        if word.is_ascii() {
            self.count_letters('a', word.len());
        } else {
            word.chars().for_each(|c| self.count_letters(c, 1));
        }
        let lower = typed_form(word);
        if let Some((&known, &set)) = SIGNS.words.get_key_value(&*lower)
            && known.chars().nth(1).is_some()
        {
            let is_new = self.seen_words.insert(known);
            self.count(set, 1, is_new);
        }
        for letter in lower.chars().filter(|letter| !letter.is_ascii()) {
            if let Some(&set) = SIGNS.letters.get(&letter) {
                let is_new = self.seen_letters.insert(letter);
                self.count(set, 0, is_new);
            }
        }
    }

    fn count_letters(&mut self, c: char, letters: usize) {
        if let Some(count) = self.letters.get_mut(script_of(c)) {
            *count += letters;
        }
    }

    /// Counts a word or letter of a set of languages.
    fn count(&mut self, mut set: u64, words: usize, is_new: bool) {
        let weight = if is_new { WHOLE_WEIGHT / set.count_ones().max(1) } else { 0 };
        while set != 0 {
            if let Some(found) = self.found.get_mut(set.trailing_zeros() as usize) {
                found.words += words;
                found.different += usize::from(is_new);
                found.score += weight;
            }
            set &= set - 1;
        }
    }

    fn language(&self) -> Option<Language> {
        let script = (0..self.letters.len()).max_by_key(|&at| self.letters.get(at))?;
        let possible = SIGNS.of_scripts.get(script)?;
        let found = |language: Language| self.found.get(usize::from(language.0)).copied().unwrap_or_default();
        let best = possible.iter().copied().rev().max_by_key(|&language| found(language).score)?;
        let Found { words, different, .. } = found(best);
        let is_told = different >= LEAST_DIFFERENT && words * LEAST_SHARE >= self.words;
        // A language that shares its script with English must be recognised by its words.
        let may_be_english = possible.contains(&Language::ENGLISH);
        (best != Language::ENGLISH && (is_told || !may_be_english)).then_some(best)
    }
}

/// Returns a word in lower case and composed form, with its diacritics, and without characters that are not seen.
pub fn typed_form(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    if word.is_ascii() {
        return Cow::Owned(word.to_ascii_lowercase());
    }
    let mut before = '\0';
    let lower = word.nfc().flat_map(char::to_lowercase).filter(|&c| {
        let is_cyrillic = matches!(before, '\u{0400}'..='\u{052F}');
        // A dot above is what lower case leaves of İ; an acute above a Cyrillic letter shows the stress.
        let is_removed = is_invisible(c)
            || is_inner_sign(before, c)
            || c == '\u{0307}' && before == 'i'
            || matches!(c, '\u{0300}' | '\u{0301}') && is_cyrillic;
        if !is_removed {
            before = c;
        }
        !is_removed
    });
    Cow::Owned(lower.collect())
}

/// A stemmer of one language (Snowball).
pub struct LanguageStemmer {
    stemmer: Stemmer,
    stems: HashMap<String, String>,
}

impl std::fmt::Debug for LanguageStemmer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LanguageStemmer")
    }
}

/// The stemmers of several languages, each made when it is first needed.
#[derive(Debug, Default)]
pub struct LanguageStemmers(HashMap<Language, Option<LanguageStemmer>>);

impl LanguageStemmers {
    /// Returns the stemmer of a language, if there is one.
    pub fn of(&mut self, language: Language) -> Option<&mut LanguageStemmer> {
        self.0.entry(language).or_insert_with(|| language.stemmer()).as_mut()
    }
}

impl LanguageStemmer {
    /// Returns the folded stem of a word in its [typed form](typed_form), which has the endings that the stemmer knows.
    pub fn of(&mut self, typed: &str) -> &str {
        if self.stems.len() >= MAX_KEPT_STEMS {
            self.stems.clear();
        }
        // A second look-up by the word is needed only where it is new.
        if !self.stems.contains_key(typed) {
            let mut folded = String::new();
            fold_into(&self.stemmer.stem(typed), &mut folded);
            if folded.is_empty() {
                fold_into(typed, &mut folded);
            }
            self.stems.insert(typed.to_owned(), folded);
        }
        self.stems.get(typed).map_or("", String::as_str)
    }
}
