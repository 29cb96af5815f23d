//! Passwords in sentences and after their name, in all languages at once: `the mot de passe is …`, `密码：…`. The words are
//! data (`foundation/languages/secrets.toml`).

use std::sync::LazyLock;

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
    placeholders: Vec<String>,
    techniques: Vec<String>,
    references: Vec<String>,
}

static WORDS: LazyLock<SecretWords> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../languages/secrets.toml")).unwrap_or_else(|why| {
        tracing::error!("the words of passwords cannot be read: {why}");
        SecretWords::default()
    })
});

/// Parts of the names in `secrets.toml`, so that a text without any is read without that file. Each stands in all spellings of
/// its names but for the case of ASCII letters.
pub(super) const NAME_PARTS: &[&str] = &[
    "kennw",
    "zugangscode",
    "wlan-schl",
    "contrase",
    "clave ",
    "digo de acceso",
    "mot de passe",
    "mots de passe",
    "mdp",
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

/// Returns the pattern of a sentence that tells a password by a name in English. The password ends its clause.
///
/// The patterns are matched with bytes, so that letters beyond ASCII have a case only by their spellings, and no boundary.
pub(super) fn english_sentence() -> String {
    let verb = any_of(&spellings_of(&WORDS.verbs), false);
    format!(r"(?i)\b(?:passwor[dt]|passphrase|passcode)\b[^\n.:;!?=]{{0,40}}?\s{verb}{}", clause())
}

/// Returns the pattern of a sentence that tells a password by another name. In a script without spaces the password ends where
/// other characters than those of passwords go on.
pub(super) fn foreign_sentence() -> String {
    let verbs: Vec<String> = WORDS.verbs.iter().chain(&WORDS.foreign_verbs).cloned().collect();
    format!(
        concat!(
            r#"(?i){name}[^\n.:;!?=]{{0,40}}?(?:\s{verb}{clause}"#,
            r#"|{unspaced_verb}[ \t]{{0,3}}(?:{adverb}[ \t]{{0,3}})?(?:[:*"'`]|：|「|“|『|《){{0,2}}[ \t]{{0,3}}"#,
            r#"({value}{{4,99}}{last}))"#
        ),
        name = any_of(&spellings_of(&WORDS.names), true),
        verb = any_of(&spellings_of(&verbs), false),
        clause = clause(),
        unspaced_verb = any_of(&WORDS.unspaced_verbs, false),
        adverb = any_of(&WORDS.adverbs, false),
        value = value(r"!#-&(-;=?-_a-~"),
        last = value(r"!#-&(+\-/-9=@-Z\[\\^_a-~"),
    )
}

/// Returns the pattern of the rest of a clause: the password and its end.
fn clause() -> String {
    format!(
        r#"(?: {})?:?[ \t]{{1,3}}["'`*]{{0,2}}([^\s"'`<>]{{4,99}}[^\s"'`<>.,;:?)\]*])(?:["'`*.,;:?)\]\r\n]|$|[ \t]+(?:$|\n|{}))"#,
        any_of(&spellings_of(&WORDS.adverbs), false),
        any_of(&spellings_of(&WORDS.conjunctions), true),
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

/// Returns the pattern of one byte of a password: one of these in ASCII, or one of a letter of an alphabet. The first bytes of
/// Chinese characters, kana, syllables of Hangul and signs of print are none of them.
fn value(ascii: &str) -> String {
    format!(r"[{ascii}\x80-\xBF\xC3-\xE1]")
}

/// Says whether what stands before a value has a name of a password that is no English one.
pub(super) fn has_foreign_name(before: &str) -> bool {
    let before: String = before.nfc().flat_map(char::to_lowercase).collect();
    WORDS.names.iter().any(|name| before.contains(name.as_str()))
}

/// Says whether a value is no password in any language: it holds the place of one, or is the name of a technique with a
/// number, a place in a text, a date or a version.
pub(super) fn is_other_value(value: &str) -> bool {
    let lower = value.to_lowercase();
    let bare = lower.trim_end_matches(['.', ',', ';', ':', ')']);
    let is_placeholder = WORDS.placeholders.iter().any(|known| known == bare.trim_matches(['"', '\'', '*']));
    let is_technique = WORDS.techniques.iter().any(|name| {
        bare.strip_prefix(name.as_str()).is_some_and(|rest| {
            let number = rest.trim_start_matches(['-', '_', 'v']);
            let after = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            after.len() < number.len() && (after.is_empty() || after.starts_with(['-', '_']))
        })
    });
    let is_reference = bare.split_once('.').is_some_and(|(name, number)| {
        WORDS.references.iter().any(|known| known == name) && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    is_placeholder || is_technique || is_reference || is_version(bare) || is_date(bare)
}

/// Says whether a value is a version, such as `v2.0` or `1.2.3`.
fn is_version(value: &str) -> bool {
    let mut numbers = value.strip_prefix('v').unwrap_or(value).split('.');
    value.contains('.')
        && numbers.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
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

/// Returns a pattern of one of several words. At the beginning and the end of a word in ASCII letters no letter stands
/// beside it, as far as `is_bounded` asks for it.
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
