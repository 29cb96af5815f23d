//! Which languages besides English a text is in: by a script of their own, or by words that are not English. Every
//! reader of word lists asks this and nothing else.

use std::collections::BTreeMap;
use std::ops::BitOr;

use unicode_normalization::UnicodeNormalization as _;

use crate::terms::is_stop_word;

/// The languages with word lists by their codes. English has none: its words are those of the readers.
pub(super) const CODES: [&str; 11] = ["de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "zh"];

/// The words of the languages in the Latin script, one a line, sorted by bytes: a word in lower case, and the code of
/// each language that has it. A code has an equals sign if the word may be English, too, or else a plus sign if it is a
/// stop word. The tests make it from the word lists and `evidence.txt`.
static WORDS: &str = include_str!("../../languages/latin_words.txt");

/// The letters beyond those of English that languages in the Latin script have.
const LETTERS: [(&str, &str); 7] = [
    ("de", "äöüß"),
    ("es", "áéíñóú"),
    ("fr", "àâæçèéêëîïôœùû"),
    ("it", "àèéìòù"),
    ("nl", "éëïóü"),
    ("pl", "ąćęłńóśźż"),
    ("pt", "àáâãçéêíóôõú"),
];

/// The fewest words that tell the language of a text which has others, too. One may be a name.
const LEAST_WORDS: usize = 2;

/// A set of languages besides English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Languages(u16);

impl BitOr for Languages {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Languages {
    /// Returns all languages with word lists, for a text that is too short to tell its own.
    pub fn all() -> Self {
        Self((1 << CODES.len()) - 1)
    }

    /// Returns the languages that a text is in. A text in English, or in a language without word lists, has none.
    ///
    /// A language in a script of its own is recognised by one letter. A language in the Latin script is recognised by
    /// two words that no English text has; there must be more of them than English stop words that the language does
    /// not have. If one of the two is a stop word, the other may be any word with a letter that the language has and
    /// English has not. If the language has all words of the text, one word of more than a letter is enough.
    pub fn of(text: &str) -> Self {
        Self::by_script(text) | Evidence::of(text).languages()
    }

    /// Returns the languages that a text may be in besides names: those of which it has a word that no English text has, and no
    /// English stop word that the language has not.
    pub(super) fn possible_in(text: &str) -> Self {
        let evidence = Evidence::of(text);
        let words = || evidence.words.values();
        let told = words().fold(Self::default(), |all, word| all | word.told);
        let is_possible = |language: &Self| words().all(|word| !word.is_english || word.known.has(*language));
        told.each().filter(is_possible).fold(Self::default(), |all, language| all | language)
    }

    fn by_script(text: &str) -> Self {
        let (mut found, mut has_kana) = (Self::default(), false);
        if text.is_ascii() {
            return found;
        }
        for c in text.chars() {
            found = found
                | match c {
                    '\u{0400}'..='\u{04FF}' => Self::of_code("ru"),
                    '\u{1100}'..='\u{11FF}' | '\u{AC00}'..='\u{D7AF}' => Self::of_code("ko"),
                    '\u{3041}'..='\u{30FA}' | '\u{FF66}'..='\u{FF9F}' => {
                        has_kana = true;
                        Self::of_code("ja")
                    }
                    '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' => Self::of_code("zh"),
                    _ => Self::default(),
                };
        }
        // The Chinese characters of a text with kana are Japanese.
        if has_kana { Self(found.0 & !Self::of_code("zh").0) } else { found }
    }

    fn of_code(code: &str) -> Self {
        CODES.iter().position(|known| *known == code).map_or_else(Self::default, |at| Self(1 << at))
    }

    /// Says whether the text is in no language but English, or in none that has word lists.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Lists the codes of the languages.
    pub fn codes(self) -> Vec<&'static str> {
        self.numbers().filter_map(|at| CODES.get(at).copied()).collect()
    }

    /// Lists the languages, each as a set of its own.
    pub(super) fn each(self) -> impl Iterator<Item = Self> {
        self.numbers().map(|at| Self(1 << at))
    }

    /// Says whether all languages of another set are in this one.
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Lists the places of the languages in [`CODES`].
    pub(super) fn numbers(self) -> impl Iterator<Item = usize> {
        (0..CODES.len()).filter(move |at| self.0 & 1 << at != 0)
    }
}

/// What a word tells.
#[derive(Debug, Clone, Copy)]
struct Word {
    is_english: bool,
    /// The languages that have the word.
    known: Languages,
    /// The languages that the word shows, because no English text has it.
    told: Languages,
    /// The languages that the word shows as a stop word.
    told_by_stop_word: Languages,
    /// The languages that have a letter of the word which English has not, if no language is known to have the word.
    spelled: Languages,
}

/// The different words of a text.
struct Evidence {
    words: BTreeMap<String, Word>,
}

impl Evidence {
    fn of(text: &str) -> Self {
        let mut words = BTreeMap::new();
        let letters = |c: char| !c.is_alphabetic() && !unicode_normalization::char::is_combining_mark(c);
        for word in text.split(letters).filter(|word| !word.is_empty()) {
            let lower: String = if word.is_ascii() {
                word.to_ascii_lowercase()
            } else {
                word.nfkc().flat_map(char::to_lowercase).collect()
            };
            words.entry(lower).or_insert_with_key(|lower| Word::of(lower));
        }
        Self { words }
    }

    fn languages(&self) -> Languages {
        let spoken: Vec<usize> = (0..CODES.len()).filter(|&at| self.is_spoken(Languages(1 << at))).collect();
        // Where all words that tell a language are words of another one that has more, the text is in the other.
        let is_own = |&&at: &&usize| !spoken.iter().any(|&other| self.is_part(at, other));
        Languages(spoken.iter().filter(is_own).fold(0, |all, at| all | 1 << at))
    }

    fn is_spoken(&self, language: Languages) -> bool {
        let has = |set: Languages| set.0 & language.0 != 0;
        let count = |is: &dyn Fn(&Word) -> bool| self.words.values().filter(|word| is(word)).count();
        let mut told = count(&|word| has(word.told));
        if count(&|word| has(word.told_by_stop_word)) > 0 && count(&|word| has(word.spelled)) > 0 {
            // A name may be spelled so, and several are no more evidence than one.
            told += 1;
        }
        let english = count(&|word| word.is_english && !has(word.known));
        let is_told = |(text, word): (&String, &Word)| has(word.told) && !is_letter(text);
        let is_whole = || self.words.values().all(|word| has(word.known)) && self.words.iter().any(is_told);
        told > english && (told >= LEAST_WORDS || is_whole())
    }

    /// Says whether a language has fewer words of the text than another that all its words are of.
    fn is_part(&self, language: usize, other: usize) -> bool {
        let has = |set: Languages, at: usize| set.0 & 1 << at != 0;
        let count = |at: usize| self.words.values().filter(|word| has(word.known, at)).count();
        language != other
            && self.words.values().all(|word| !has(word.told, language) || has(word.known, other))
            && count(language) < count(other)
    }
}

impl Word {
    fn of(lower: &str) -> Self {
        let none = Languages::default();
        let is_english = is_stop_word(lower);
        let mut word = Self { is_english, known: none, told: none, told_by_stop_word: none, spelled: none };
        for marked in languages_of_word(lower).unwrap_or("").split(' ') {
            let language = Languages::of_code(marked.trim_start_matches(['=', '+']));
            word.known = word.known | language;
            if !marked.starts_with('=') {
                word.told = word.told | language;
            }
            if marked.starts_with('+') {
                word.told_by_stop_word = word.told_by_stop_word | language;
            }
        }
        if word.known.is_empty() && !lower.is_ascii() && !is_letter(lower) {
            let has_letter = |letters: &str| lower.contains(|c: char| !c.is_ascii() && letters.contains(c));
            let codes = LETTERS.iter().filter(|(_, letters)| has_letter(letters)).map(|(code, _)| code);
            word.spelled = codes.fold(none, |all, code| all | Languages::of_code(code));
        }
        word
    }
}

/// Says whether a word is one letter. A dump of bytes may have such a letter of any language.
fn is_letter(word: &str) -> bool {
    word.chars().nth(1).is_none()
}

/// Returns what the line of a word in [`WORDS`] says of its languages.
fn languages_of_word(word: &str) -> Option<&'static str> {
    let (mut low, mut high) = (0, WORDS.len());
    while low < high {
        let middle = WORDS.floor_char_boundary((low + high) / 2);
        let start = WORDS.get(low..middle)?.rfind('\n').map_or(low, |at| low + at + 1);
        let line = WORDS.get(start..)?.split('\n').next()?;
        let (known, languages) = line.split_once(' ')?;
        match known.cmp(word) {
            std::cmp::Ordering::Equal => return Some(languages),
            std::cmp::Ordering::Less => low = start + line.len() + 1,
            std::cmp::Ordering::Greater => high = start,
        }
    }
    None
}
