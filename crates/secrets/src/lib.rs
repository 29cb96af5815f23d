//! Secret detection: known formats of keys and tokens, assignments to names such as `api_key`, private key blocks and
//! long random tokens. The time is linear in the length of the text. It knows no files, no clock and no vault.
//!
//! ```
//! use sidenote_secrets::without_secrets;
//!
//! let (text, count) = without_secrets("The password is vK7#pw2Qx, and the room is 4.");
//! assert_eq!((&*text, count), ("The password is [redacted], and the room is 4.", 1));
//! ```

mod names;
mod placeholder;
mod public;
mod rules;
mod told;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use names::{KEY_NAMES, names_key, names_ticket};
use public::{ByteRanges, is_public};
use regex::bytes::{Regex, RegexBuilder};
use rules::{NAMED, RULES, SecretShape};
use told::Names;

use crate::placeholder::is_placeholder;

/// The replacement for a secret.
pub const REDACTED: &str = "[redacted]";

/// Replaces what looks like a secret; returns the text and the number of secrets.
///
/// If the patterns cannot be run, the whole text is redacted.
pub fn without_secrets(text: &str) -> (Cow<'_, str>, usize) {
    let Some(mut spans) = secrets(text) else { return (Cow::Borrowed(REDACTED), 1) };
    if spans.is_empty() {
        return (Cow::Borrowed(text), 0);
    }
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let (mut kept, mut end, mut count) = (String::with_capacity(text.len()), 0, 0);
    for span in spans {
        let (start, stop) = (text.floor_char_boundary(span.start), text.ceil_char_boundary(span.end));
        if start >= end {
            kept.push_str(text.get(end..start).unwrap_or(""));
            kept.push_str(REDACTED);
            count += 1;
        }
        end = end.max(stop);
    }
    kept.push_str(text.get(end..).unwrap_or(""));
    (Cow::Owned(kept), count)
}

/// Finds the secrets of a text, in no particular order; `None` if a pattern cannot be compiled.
fn secrets(text: &str) -> Option<Vec<Range<usize>>> {
    let detector = DETECTOR.as_ref()?;
    let (private, public) = public::pem_blocks(text);
    let mut found = private;
    let mut is_selected = vec![false; detector.matchers.len()];
    for keyword in detector.keywords.find_overlapping_iter(text) {
        *is_selected.get_mut(*detector.owners.get(keyword.pattern().as_usize())?)? = true;
    }
    for (matcher, _) in detector.matchers.iter().zip(is_selected).filter(|(_, is_selected)| *is_selected) {
        matcher.find(text, &public, &mut found)?;
    }
    tokens(text, &public, &mut found);
    Some(found)
}

/// All patterns, with the keywords by which a pattern is selected.
struct Detector {
    /// The keywords of all matchers. A set of patterns would take ten milliseconds to compile, in each process that writes
    /// one line of the journal.
    keywords: AhoCorasick,
    /// The number of the matcher of each keyword.
    owners: Vec<usize>,
    matchers: Vec<Matcher>,
}

static DETECTOR: LazyLock<Option<Detector>> = LazyLock::new(|| {
    let (mut keywords, mut owners, mut matchers) = (Vec::new(), Vec::new(), Vec::new());
    let mut add = |words: &[&str], matcher: Matcher| {
        keywords.extend(words.iter().map(|word| (*word).to_owned()));
        owners.resize(keywords.len(), matchers.len());
        matchers.push(matcher);
    };
    for rule in RULES {
        let accepts: fn(&Match<'_>) -> bool = match rule.value {
            SecretShape::Token => is_token,
            SecretShape::Scrambled => |found| is_token(found) && is_scrambled(found.secret),
            SecretShape::Password => |found| !is_placeholder(found.secret),
        };
        add(rule.keywords, Matcher::new(move || rule.pattern.to_owned(), accepts));
    }
    for (name, value) in NAMED {
        let pattern = move || {
            format!(
                r#"(?i)[\w.-]{{0,20}}{name}[ \w.-]{{0,25}}["'`]{{0,2}}\s{{0,3}}(?::{{0,3}}=>?|:)[ \t]{{0,3}}["'`]{{0,2}}({value})(?:["'`\s;,)\]\\]|$)"#
            )
        };
        add(&[name], Matcher::new(pattern, is_named));
    }
    let assigned = || format!(r#"(?i)[\w.-]{{0,30}}(?:{}){ASSIGNED}"#, KEY_NAMES.join("|"));
    add(KEY_NAMES, Matcher::new(assigned, is_assigned));
    add(&["pass", "pwd"], Matcher::new(|| PASSWORD.to_owned(), is_password));
    add(&["--"], Matcher::new(|| OPTION.to_owned(), is_password));
    add(
        &["passw", "passphrase", "passcode", "kennwort", "contrase", "mot de passe"],
        Matcher::new(|| SENTENCE.to_owned(), is_told),
    );
    let is_foreign_password: fn(&Match<'_>) -> bool =
        |found| is_password(found) && !told::is_other_value(found.secret);
    add(told::NAME_PARTS, Matcher::new(told::assignment, is_foreign_password));
    add(&["passw", "passphrase", "passcode"], Matcher::of_sentences(Names::English));
    add(told::NAME_PARTS, Matcher::of_sentences(Names::Foreign));
    let keywords = AhoCorasick::builder().ascii_case_insensitive(true).build(keywords).ok()?;
    Some(Detector { keywords, owners, matchers })
});

/// The rest of an assignment to such a name.
const ASSIGNED: &str =
    r#"[ \t\w.-]{0,25}["'`\])*]{0,3}\s{0,3}(?::{0,3}=>?|:|\|)\*{0,3}[ \t]{0,3}["'`]{0,2}([\w.=+/~-]{10,})"#;
/// An assignment of a password. Letters behind `pass` make another word of it, such as `passage` or `passport`.
const PASSWORD: &str = r#"(?i)[\w.-]{0,30}(?:(?:passw(?:or)?[dt]|passphrase|\bpwd|_pwd|dbpass)[\w.-]{0,20}|(?:_|\b)pass(?:code|key)?(?:[0-9_.-][\w.-]{0,20})?)["'`\]*]{0,3}[ \t]{0,3}(?::{0,3}=>?|:|\|)\*{0,3}[ \t]{0,3}["'`]{0,2}([^\s"'`,;<>]{4,200})"#;
/// A secret on a command line.
const OPTION: &str = r#"(?i)\s--?(?:password|passwd|passphrase|pass|token|secret|api-?key|auth-?token|access-?token|client-?secret)[ =]["']?([^\s"'`<>]{6,200})"#;

/// A password in a sentence, at the end of its clause. The words of other languages are not in this pattern, because
/// with them a sentence could be read in another way. They have a search of their own (`told`), which only adds to the
/// results of this one.
const SENTENCE: &str = r#"(?i)\b(?:passwor[dt]|passphrase|passcode|kennwort|contrase(?:ñ|n)a|mot de passe)\b[^\n.:;!?=]{0,40}?\s(?:is|was|ist|war|lautet|es|est|(?:changed|set|reset) to)(?: now| still| jetzt)?:?[ \t]{1,3}["'`*]{0,2}([^\s"'`<>]{4,99}[^\s"'`<>.,;:?)\]*])(?:["'`*.,;:?)\]\r\n]|$|[ \t]+(?:$|\n|and|but|or|for|on|until|till|since|now|at|und|aber|oder|bis|seit|y|et|pour|para)\b)"#;

/// A pattern that is compiled when it is first needed.
struct Matcher {
    /// Returns the pattern.
    pattern: Box<dyn Fn() -> String + Send + Sync>,
    compiled: OnceLock<Option<Regex>>,
    /// Says whether a match is a secret.
    accepts: fn(&Match<'_>) -> bool,
    /// The names for which the pattern finds a secret in the sentence about them.
    names: Option<Names>,
}

/// A match of a pattern.
struct Match<'t> {
    secret: &'t str,
    /// The text before the secret in the match, such as the name that it is assigned to.
    before: &'t str,
    /// The word before the match.
    word: &'t str,
    /// The two bytes after the secret.
    after: &'t str,
    is_in_public_block: bool,
}

impl Matcher {
    fn new(pattern: impl Fn() -> String + Send + Sync + 'static, accepts: fn(&Match<'_>) -> bool) -> Self {
        Self { pattern: Box::new(pattern), compiled: OnceLock::new(), accepts, names: None }
    }

    /// Returns a matcher of the passwords that sentences give for some names, in the words of all languages.
    fn of_sentences(names: Names) -> Self {
        let accepts: fn(&Match<'_>) -> bool = |found| is_told(found) && !told::is_other_value(found.secret);
        Self { names: Some(names), ..Self::new(move || names.pattern(), accepts) }
    }

    /// Adds the secrets that the pattern finds; `None` if it cannot be compiled.
    fn find(&self, text: &str, public: &ByteRanges, found: &mut Vec<Range<usize>>) -> Option<()> {
        let compile = || RegexBuilder::new(&(self.pattern)()).unicode(false).build().ok();
        let compiled = self.compiled.get_or_init(compile).as_ref()?;
        let mut groups = compiled.capture_locations();
        let mut from = 0;
        while let Some(whole) = compiled.captures_read_at(&mut groups, text.as_bytes(), from) {
            let inner = (1..groups.len()).rev().find_map(|group| groups.get(group));
            let (start, end) = inner.unwrap_or((whole.start(), whole.end()));
            let value = text.floor_char_boundary(start)..text.ceil_char_boundary(end);
            let next = value.end;
            let is_secret =
                |value: &Range<usize>| (self.accepts)(&Match::of(text, whole.start(), value, public));
            match self.names {
                None => found.extend(Some(value).filter(is_secret)),
                // A value that is not a password may precede the password: "is new since May and is ...".
                Some(names) => found.extend(names.values(text, next)?.find(is_secret)),
            }
            // The end of one match may be the start of the next.
            from = next.max(whole.start() + 1);
            if from > text.len() {
                break;
            }
        }
        Some(())
    }
}

impl<'t> Match<'t> {
    /// Describes a value in a match that begins at `start`.
    fn of(text: &'t str, start: usize, value: &Range<usize>, public: &ByteRanges) -> Self {
        let part = |from: usize, to: usize| {
            text.get(text.ceil_char_boundary(from)..text.floor_char_boundary(to)).unwrap_or("")
        };
        let lead = part(start.saturating_sub(WORD_BEFORE), start).trim_end_matches([' ', '_', '-', '\t']);
        Self {
            word: lead.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or(""),
            secret: part(value.start, value.end),
            before: part(start, value.start),
            after: part(value.end, value.end.saturating_add(2)),
            is_in_public_block: public.holds(value.start),
        }
    }
}

/// A word before a match has no more bytes that matter.
const WORD_BEFORE: usize = 24;
/// The entropy (Shannon), in bits a character, from which a text after a known prefix counts as random.
const KNOWN: f64 = 2.5;
/// The entropy from which a text counts as random if it is assigned to the name of a key.
const ASSIGNED_BITS: f64 = 3.5;
/// The entropy from which any other text counts as random; words, paths and numbers have less.
const RANDOM: f64 = 4.2;

fn is_token(found: &Match<'_>) -> bool {
    bits_per_sign(found.secret) >= KNOWN
}

fn is_named(found: &Match<'_>) -> bool {
    let digits = found.secret.bytes().filter(u8::is_ascii_digit).count();
    digits > 1
        && bits_per_sign(found.secret) >= 3.0
        && !is_made_of_words(found.secret)
        && !names_public(&found.before.to_ascii_lowercase().replace("nytimes", ""))
}

/// Says whether a value that is assigned to a key's name is a key.
fn is_assigned(found: &Match<'_>) -> bool {
    let value = found.secret.trim_end_matches(['.', '-', '/']);
    if found.is_in_public_block
        || names_public(found.before)
        || names_public(found.word)
        || !names_key(found.before)
        || is_public(value, found.before)
        || is_placeholder(value)
        || found.after.starts_with(['(', '[', '{', '@'])
    {
        return false;
    }
    if is_uuid(value) {
        let name = found.before.to_ascii_lowercase();
        return ["secret", "token", "api_key", "apikey", "api-key"].iter().any(|word| name.contains(word));
    }
    // Hexadecimal digits cannot have more than four bits.
    let is_hex = value.len() >= 32 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    bits_per_sign(value) >= if is_hex { KNOWN } else { ASSIGNED_BITS }
        && is_mixed(value)
        && !is_made_of_words(value)
        && !is_wordy(value)
        && !value.starts_with(['/', '.', '~', '-'])
}

/// Says whether a value that is assigned to a password's name is a password.
fn is_password(found: &Match<'_>) -> bool {
    let value = found.secret.trim_end_matches(['.', ')', ']', '|', '*']);
    if is_placeholder(value)
        || found.after.starts_with('(')
        || names_public(found.before)
        || names_ticket(found.before, found.word)
    {
        return false;
    }
    let name = found.before.trim_end_matches(['"', '\'', '`']);
    let is_quoted = name.len() < found.before.len();
    let is_variable = name.ends_with('=')
        && name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'='));
    let has = |kind: fn(&u8) -> bool| value.as_bytes().iter().any(kind);
    let (digit, letter) = (has(u8::is_ascii_digit), value.contains(char::is_alphabetic));
    let other = value.bytes().any(|byte| !byte.is_ascii_alphanumeric() && !b"_-./:".contains(&byte));
    // In JSON, text between quotes is a value, whatever it looks like.
    let is_json = name.trim_end_matches([' ', '\t']).ends_with("\":") && found.after.starts_with('"');
    if is_variable || is_json {
        return value.len() >= 4;
    }
    let is_long = value.len() >= 6 && !is_made_of_words(value) && !value.contains(['(', '{', '/', '\\', '|']);
    is_long && ((digit && (letter || other || value.len() <= 16)) || (is_quoted && letter && other))
}

/// Returns whether the value in a sentence about a password is the password, and not a description of it.
fn is_told(found: &Match<'_>) -> bool {
    let value = found.secret;
    let has = |kind: fn(&u8) -> bool| value.as_bytes().iter().any(kind);
    let is_sign = |byte: &u8| byte.is_ascii_punctuation() && !b"-_./:,'".contains(byte);
    let inner = value.trim_end_matches('!');
    let is_mail = value.split_once('@').is_some_and(|(_, host)| host.contains('.'));
    value.len() >= 6
        && value.contains(char::is_alphabetic)
        && (has(u8::is_ascii_digit) || inner.bytes().any(|byte| is_sign(&byte)))
        && !value.contains(['/', '\\', '(', '{', '|'])
        && !is_mail
        && !is_placeholder(value)
        && !names_technique(value)
        && !value.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('-')
        && !(value.contains('-') && (is_made_of_words(value) || is_wordy(value)))
        && !names_public(found.before)
}

/// Says whether a word is the name of a technique or a program with a number: `sha256`, `argon2id`, `RFC-2898`.
fn names_technique(word: &str) -> bool {
    const NAMES: &[&str] = &[
        "1password",
        "2fa",
        "3des",
        "aes",
        "argon",
        "ascii",
        "base",
        "bcrypt",
        "blake",
        "crc",
        "des",
        "hmac",
        "hotp",
        "http",
        "ipv",
        "iso",
        "k8s",
        "keepass",
        "latin",
        "md",
        "mfa",
        "ntlm",
        "oauth",
        "pbkdf",
        "pkcs",
        "rfc",
        "rot",
        "rsa",
        "scrypt",
        "sha",
        "totp",
        "utf",
        "v",
        "x",
    ];
    let lower = word.to_ascii_lowercase();
    NAMES.iter().any(|name| {
        lower.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    })
}

/// Returns whether the name before an assignment is that of something public.
fn names_public(before: &str) -> bool {
    const PUBLIC: &[&str] = &[
        "public",
        "pubkey",
        "pub_key",
        "pub-key",
        "primary",
        "foreign",
        "keyid",
        "key_id",
        "key-id",
        "key id",
        "accessid",
        "access_id",
        "author",
        "keyboard",
        "keyword",
        "keyframe",
        "monkey",
        "turkey",
        "hash",
        "checksum",
        "digest",
        "fingerprint",
        "signature",
        "commit",
        "version",
        "path",
        "file",
        "endpoint",
        "url",
        "uri",
        "csrf",
        "etag",
        "integrity",
        "key-grip",
        "keygrip",
        "accessed",
        "accessibility",
        "key name",
        "keyname",
        "key_name",
        "key-name",
        "address",
        "thumbprint",
        "registry",
        "hkey",
        "hklm",
        "hkcu",
        "cache_key",
        "cache-key",
        "cachekey",
        "sort_key",
        "partition_key",
        "license",
        "product key",
        "apiversion",
        "api version",
        "api_version",
        "api-version",
        "date",
        "time",
        "contract",
        "txid",
        "transaction",
        "block",
        "cid",
        "ipfs",
        "example",
    ];
    let lower = before.to_ascii_lowercase();
    PUBLIC.iter().any(|word| lower.contains(word))
}

/// Says whether letters and digits, or cases, change as often as chance makes them.
fn is_mixed(value: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 1_u8,
        b'a'..=b'z' => 2,
        b'A'..=b'Z' => 3,
        _ => 0,
    };
    let kinds: Vec<u8> = value.bytes().map(kind).collect();
    let pairs = || kinds.windows(2).filter_map(|pair| <[u8; 2]>::try_from(pair).ok());
    let digits = pairs().filter(|[one, other]| (*one == 1) != (*other == 1) && *one * *other > 0).count();
    let changes = pairs().filter(|[one, other]| one != other).count();
    let (upper, lower, digit) = (kinds.contains(&3), kinds.contains(&2), kinds.contains(&1));
    let length = value.len();
    (digit && (upper || lower) && digits * 100 >= 12 * length)
        || (digit && upper && lower && changes * 100 >= 35 * length)
}

/// Says whether a value has digits, or cases that change more often than words do.
fn is_scrambled(value: &str) -> bool {
    let changes = value.as_bytes().windows(2).filter(|pair| match pair {
        [one, other] => one.is_ascii_lowercase() && other.is_ascii_uppercase(),
        _ => false,
    });
    (value.bytes().any(|byte| byte.is_ascii_digit()) || changes.count() * 8 >= value.len())
        && !is_made_of_words(value)
        && !is_placeholder(value)
}

/// Says whether a value consists of words that signs join, such as `sk-learn-pipeline-notes-2024`.
fn is_made_of_words(value: &str) -> bool {
    let parts = value.split(|c: char| !c.is_ascii_alphanumeric());
    let (mut words, mut in_words, mut letters) = (0, 0, 0);
    for part in parts {
        letters += part.len();
        let rest = part.get(1..).unwrap_or("");
        let is_word = part.len() >= 3
            && part.bytes().all(|byte| byte.is_ascii_alphabetic())
            && (rest.bytes().all(|byte| byte.is_ascii_lowercase())
                || part.bytes().all(|byte| byte.is_ascii_uppercase()));
        if is_word {
            words += 1;
            in_words += part.len();
        }
    }
    words >= 2 && in_words * 2 >= letters
}

/// Says whether a value reads as words, short names and numbers, such as `Android14-API34` or `WWDC2024keynote`: letters
/// and digits do not alternate in a part, cases change as in names, and words make up a third.
fn is_wordy(value: &str) -> bool {
    let (mut in_words, mut parts) = (0, 0);
    for part in value.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        let runs: Vec<&[u8]> =
            part.as_bytes().chunk_by(|one, next| one.is_ascii_digit() == next.is_ascii_digit()).collect();
        for run in &runs {
            let is_number = run.iter().all(u8::is_ascii_digit);
            let capitals = run.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
            let rest = run.get(capitals..).unwrap_or(&[]);
            let has_vowel = rest.iter().any(|byte| b"aeiouy".contains(byte));
            // Capitals may end with small letters, as in `GHz`; a name may have two, as `ReadOnly`.
            let changes = rest.iter().filter(|byte| byte.is_ascii_uppercase()).count();
            let is_name = changes == 0 || run.len() >= 6 && changes * 4 <= run.len() && has_vowel;
            if is_number && run.len() > 4 || !is_number && !is_name {
                return false;
            }
            in_words += if run.len() >= 5 && capitals <= 1 && has_vowel { run.len() } else { 0 };
        }
        if runs.len() > 3 || runs.len() == 3 && part.len() > 6 && runs.iter().any(|run| run.len() < 3) {
            return false;
        }
        parts += runs.len();
    }
    parts >= 2 && in_words * 3 >= value.len()
}

fn is_uuid(value: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let parts: Vec<&str> = value.split('-').collect();
    parts.len() == lengths.len()
        && parts
            .iter()
            .zip(lengths)
            .all(|(part, length)| part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The fewest characters of a token.
const TOKEN: usize = 32;
/// The fewest small letters in a row that are a word.
const WORD: usize = 5;
/// A token is not random where words make up more than this part of its characters.
const WORDY: f64 = 0.2;
/// The number of bytes before a token that may show that it is public.
const CONTEXT: usize = 60;

/// Adds long random tokens. Parts of addresses, paths, links and embedded files do not count, nor known public values.
fn tokens(text: &str, public: &ByteRanges, found: &mut Vec<Range<usize>>) {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_+/-".contains(&byte);
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes.get(at..).unwrap_or(&[]).iter().take_while(|byte| is_sign(**byte)).count();
        // Base64 ends with at most two padding characters.
        let signs = bytes.get(at + run..).unwrap_or(&[]).iter().take(2).take_while(|byte| **byte == b'=');
        let (start, end) = (at, at + run + signs.count());
        at = end.max(start + 1);
        if run < TOKEN {
            continue;
        }
        let before = text.get(..start).unwrap_or("");
        let after = bytes.get(end..).unwrap_or(&[]);
        let is_joined = before.ends_with(['.', ':', '~', '#', '?', '&', '%', '[', ']', '@', '$', '='])
            || before.ends_with("base64,")
            || after.starts_with(b"%")
            || after.starts_with(b"]")
            || end > start + run
                && after.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'=')
            || after.starts_with(b".") && after.get(1).is_some_and(u8::is_ascii_alphanumeric);
        let token = text.get(start..end).unwrap_or("");
        let context = text.get(text.ceil_char_boundary(start.saturating_sub(CONTEXT))..start).unwrap_or("");
        let line = context.rsplit('\n').next().unwrap_or("");
        if !is_joined
            && !public.holds(start)
            && is_random(token)
            && !token.trim_start_matches("0x").bytes().all(|byte| byte.is_ascii_hexdigit())
            && !is_public(token, line)
            && !names_public(line)
            && !public::is_wrapped(text, start, end)
        {
            found.push(start..end);
        }
    }
}

/// Says whether a word is of mixed signs, as evenly spread as chance spreads them, and not made of words.
fn is_random(word: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    let mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    let runs = word.as_bytes().split(|byte| !byte.is_ascii_lowercase());
    let in_words: usize = runs.map(<[u8]>::len).filter(|length| *length >= WORD).sum();
    mixed && in_words as f64 <= WORDY * word.len() as f64 && bits_per_sign(word) >= RANDOM
}

/// Returns Shannon's entropy of the signs of a word, in bits.
fn bits_per_sign(word: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in word.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let length = word.len() as f64;
    let shares = counts.iter().filter(|count| **count > 0).map(|&count| f64::from(count) / length);
    -shares.map(|share| share * share.log2()).sum::<f64>()
}
