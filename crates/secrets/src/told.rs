//! Passwords in sentences and after their name, in all languages at once: `the mot de passe is …`, `密码：…`. The words are
//! data (`crates/secrets/languages/secrets.toml`).

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;

/// The words of such sentences.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretWords {
    names: Vec<String>,
    verbs: Vec<String>,
    foreign_verbs: Vec<String>,
    unspaced_verbs: Vec<String>,
    adverbs: Vec<String>,
    conjunctions: Vec<String>,
    foreign_conjunctions: Vec<String>,
    placeholders: Vec<String>,
    techniques: Vec<String>,
    references: Vec<String>,
}

static WORDS: LazyLock<SecretWords> = LazyLock::new(|| {
    toml::from_str(include_str!("../languages/secrets.toml")).unwrap_or_else(|why| {
        tracing::error!("the words of passwords cannot be read: {why}");
        SecretWords::default()
    })
});

/// Parts of the names in `secrets.toml`, so that a text without any is read without that file. Each occurs in all
/// spellings of its names, except for the case of ASCII letters.
pub(super) const NAME_PARTS: &[&str] = &[
    "kennw",
    "zugangscode",
    "wlan-schl",
    "contrase",
    "clave ",
    "digo de acceso",
    "mot de passe",
    "mots de passe",
    "phrase de passe",
    "phrase secr",
    "code d'acc",
    "code d’acc",
    "code secret",
    "parola d",
    "codice di accesso",
    "chiave di accesso",
    "wachtwoord",
    "toegangscode",
    "wachtzin",
    "hasł",
    "hasŁ",
    "kod dost",
    "fraza dost",
    "senha",
    "palavra",
    "frase secreta",
    "арол",
    "АРОЛ",
    "одов",
    "ОДОВ",
    "од доступа",
    "ОД ДОСТУПА",
    "ин-код",
    "ИН-КОД",
    "スワー",
    "暗証番号",
    "スフレー",
    "スコー",
    "비밀번호",
    "패스워드",
    "비번",
    "\u{1107}\u{1175}\u{1106}\u{1175}\u{11AF}\u{1107}\u{1165}\u{11AB}\u{1112}\u{1169}",
    "\u{1111}\u{1162}\u{1109}\u{1173}\u{110B}\u{116F}\u{1103}\u{1173}",
    "\u{1107}\u{1175}\u{1107}\u{1165}\u{11AB}",
    "密码",
    "密碼",
    "口令",
    "通行码",
    "访问码",
];

/// Names of passwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// Those in English.
    English,
    /// Those in other languages.
    Foreign,
}

/// The most bytes between a name and what tells its password.
const MAX_GAP: usize = 40;

/// What ends a clause. A colon may tell the password.
const CLAUSE_ENDS: [char; 10] = ['\n', '.', ':', ';', '!', '?', '=', '。', '！', '？'];

impl Names {
    /// Returns the pattern of the names.
    pub(super) fn pattern(self) -> String {
        match self {
            Self::English => r"(?i)\b(?:passwor[dt]|passphrase|passcode)\b".to_owned(),
            Self::Foreign => format!("(?i){}", any_of(&spellings_of(&WORDS.names), true)),
        }
    }

    /// Returns what may be the password of a name that ends at `end`: what follows each verb of the clause, in order. `None`
    /// if the pattern cannot be compiled.
    pub(super) fn values(self, text: &str, end: usize) -> Option<impl Iterator<Item = Range<usize>>> {
        let telling = TELLING.as_ref()?;
        let mut is_in_clause = true;
        let places = text.get(end..)?.char_indices().take_while(move |(offset, c)| {
            let goes_on = is_in_clause && *offset <= MAX_GAP;
            is_in_clause = !CLAUSE_ENDS.contains(c);
            goes_on
        });
        let can_tell = |(_, c): &(usize, char)| c.is_ascii_whitespace() || *c == ':' || !c.is_ascii();
        Some(places.filter(can_tell).filter_map(move |(offset, _)| {
            let at = end + offset;
            let groups = telling.captures(text.as_bytes().get(at..)?)?;
            let is_foreign = groups.name("foreign").or_else(|| groups.name("foreign_end")).is_some();
            if self == Self::English && is_foreign {
                return None;
            }
            let value = groups.name("clause").or_else(|| groups.name("unspaced"))?;
            Some(text.floor_char_boundary(at + value.start())..text.ceil_char_boundary(at + value.end()))
        }))
    }
}

/// The pattern of a verb and the password that it tells. In a script without spaces the password ends where other characters
/// than those of passwords go on.
///
/// The patterns are matched with bytes, so that letters beyond ASCII have a case only by their spellings, and no boundary.
static TELLING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = format!(
        concat!(
            r#"(?i)\A(?:(?:\s{verb}|(?P<foreign>:|\s{foreign_verb})){clause}"#,
            r#"|{unspaced_verb}[ \t]{{0,3}}(?:{adverb}[ \t]{{0,3}})?(?:[:*"'`]|：|「|“|『|《){{0,2}}[ \t]{{0,3}}"#,
            r#"(?P<unspaced>{value}{{4,99}}{last}))"#
        ),
        verb = any_of(&spellings_of(&WORDS.verbs), false),
        foreign_verb = any_of(&spellings_of(&WORDS.foreign_verbs), false),
        clause = clause(),
        unspaced_verb = any_of(&WORDS.unspaced_verbs, false),
        adverb = any_of(&WORDS.adverbs, false),
        value = value(r"!#-&(-;=?-_a-~"),
        last = value(r"!#-&(+\-/-9=@-Z\[\\^_a-~"),
    );
    RegexBuilder::new(&pattern).unicode(false).build().ok()
});

/// Returns the pattern of the rest of a clause: the password and its end.
fn clause() -> String {
    format!(
        r#"(?: {})?:?[ \t]{{1,3}}["'`*]{{0,2}}(?P<clause>[^\s"'`<>]{{4,99}}[^\s"'`<>.,;:?)\]*])(?:["'`*.,;:?)\]\r\n]|$|[ \t]+(?:$|\n|{}|(?P<foreign_end>{})))"#,
        any_of(&spellings_of(&WORDS.adverbs), false),
        any_of(&spellings_of(&WORDS.conjunctions), true),
        any_of(&spellings_of(&WORDS.foreign_conjunctions), true),
    )
}

/// Returns the pattern of an assignment to such a name. Those in English have a pattern of their own.
pub(super) fn assignment() -> String {
    format!(
        r#"(?i){}["'`\]*]{{0,3}}[ \t]{{0,3}}(?:=|:|：|＝|\|)\*{{0,3}}[ \t]{{0,3}}(?:["'`]|«|„|“|「){{0,2}}({}{{4,200}})"#,
        any_of(&spellings_of(&WORDS.names), true),
        value(r"!#-&(-+\--:=?-_a-~")
    )
}

/// Returns the pattern of one byte of a password: one of these in ASCII, or one of a letter of an alphabet. The first
/// bytes of Chinese characters, kana, Hangul syllables and punctuation are not among them.
fn value(ascii: &str) -> String {
    format!(r"[{ascii}\x80-\xBF\xC3-\xE1]")
}

/// The most digits of a number that is not a password: a version after the name of a technique, or the number of a page.
const MAX_DIGITS: usize = 3;

/// Returns whether a value is not a password in any language: it is a placeholder, the name of a technique with its
/// version, the number of a place in a text, or a date.
pub(super) fn is_other_value(value: &str) -> bool {
    let lower = value.to_lowercase();
    let bare = lower.trim_end_matches(['.', ',', ';', ':', ')']);
    let is_placeholder = WORDS.placeholders.iter().any(|known| known == bare.trim_matches(['"', '\'', '*']));
    let is_number = |number: &str| {
        number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            && (1..=MAX_DIGITS).contains(&number.bytes().filter(u8::is_ascii_digit).count())
    };
    let is_technique = WORDS.techniques.iter().any(|name| {
        bare.strip_prefix(name.as_str())
            .is_some_and(|rest| is_number(rest.trim_start_matches(['-', '_', 'v'])))
    });
    let is_reference = bare.split_once('.').is_some_and(|(name, number)| {
        WORDS.references.iter().any(|known| known == name) && is_number(number)
    });
    is_placeholder || is_technique || is_reference || is_date(bare)
}

/// Says whether a value is a date, such as `12.03.2026`, `2026-03-12` or `3/12/26`.
fn is_date(value: &str) -> bool {
    ['.', '-', '/'].iter().any(|sign| {
        let parts: Vec<&str> = value.split(*sign).collect();
        let is_number =
            |part: &&str| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.len() == 3 && parts.iter().all(is_number)
    })
}

fn spellings_of(words: &[String]) -> Vec<String> {
    words.iter().flat_map(|word| spellings(word)).collect()
}

/// Returns the spellings of a word: with and without capitals, and decomposed.
fn spellings(word: &str) -> Vec<String> {
    let capital: String = {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
    };
    let mut found = vec![word.to_owned()];
    // The patterns ignore the case of ASCII letters.
    if !word.is_ascii() {
        found.extend([capital, word.to_uppercase()]);
        let decomposed: Vec<String> = found.iter().map(|word| word.nfd().collect()).collect();
        found.extend(decomposed);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns a pattern of one of several words. If `is_bounded` asks for it, no letter may be next to the beginning or
/// the end of a word in ASCII letters.
fn any_of(words: &[String], is_bounded: bool) -> String {
    let one = |word: &String| {
        let edge = |c: Option<char>| {
            if is_bounded && c.is_some_and(|c| c.is_ascii_alphanumeric()) { r"\b" } else { "" }
        };
        let (first, last) = (edge(word.chars().next()), edge(word.chars().next_back()));
        format!("{first}{}{last}", regex::escape(word))
    };
    format!("(?:{})", words.iter().map(one).collect::<Vec<_>>().join("|"))
}
