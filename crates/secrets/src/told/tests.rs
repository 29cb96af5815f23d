//! Tests passwords in sentences, in the words of all languages (`crates/secrets/languages/secrets.toml`).
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop loudly"
)]

use std::cell::Cell;

use proptest::prelude::{ProptestConfig, Strategy, prop_assert, prop_oneof, proptest};
use proptest::sample::select;
use regex::bytes::RegexBuilder;
use unicode_normalization::UnicodeNormalization as _;

use crate::without_secrets;

/// Returns a list of words.
fn words(key: &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/languages/secrets.toml");
    let words: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    words[key].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_password_is_taken_out_by_every_name_and_verb_of_every_language() {
    let mut kept = Vec::new();
    let mut check = |before: &str, after: &str| {
        if without_secrets(&format!("{before}Blau7wolke{after}")).0 != format!("{before}[redacted]{after}") {
            kept.push(format!("{before}Blau7wolke{after}"));
        }
    };
    let names = words("names");
    assert!(names.len() > 40, "{}", names.len());
    for name in &names {
        let mut chars = name.chars();
        let capital: String = chars.next().unwrap().to_uppercase().chain(chars).collect();
        for spelled in [name.clone(), capital, name.to_uppercase()] {
            for spelled in [spelled.nfc().collect::<String>(), spelled.nfd().collect()] {
                check(&format!("{spelled}: "), "");
                check(&format!("The {spelled} is "), " and");
            }
        }
    }
    for verb in words("verbs") {
        check(&format!("The password {verb} "), " и");
        check(&format!("The hasło {verb} "), " und");
    }
    for conjunction in words("conjunctions") {
        check("The password is ", &format!(" {conjunction} more"));
    }
    for conjunction in words("foreign_conjunctions") {
        check("The hasło is ", &format!(" {conjunction} more"));
    }
    for adverb in words("adverbs") {
        check(&format!("The mot de passe ist {adverb} "), "");
    }
    // What follows a verb may be no password, and a later verb tells it.
    for verb in words("verbs") {
        for conjunction in words("conjunctions") {
            check(&format!("The password is long {conjunction} {verb} "), "");
            check(&format!("The password {verb} unique {conjunction} it is "), ".");
        }
    }
    assert!(kept.is_empty(), "{} are kept:\n{}", kept.len(), kept.join("\n"));
}

/// The pattern of sentences with words of few languages. The words of more may take no password away that it finds.
const FEW_LANGUAGES: &str = r#"(?i)\b(?:passwor[dt]|passphrase|passcode|kennwort|contrase(?:ñ|n)a|mot de passe)\b[^\n.:;!?=]{0,40}?\s(?:is|was|ist|war|lautet|es|est|(?:changed|set|reset) to)(?: now| still| jetzt)?:?[ \t]{1,3}["'`*]{0,2}([^\s"'`<>]{4,99}[^\s"'`<>.,;:?)\]*])(?:["'`*.,;:?)\]\r\n]|$|[ \t]+(?:$|\n|and|but|or|for|on|until|till|since|now|at|und|aber|oder|bis|seit|y|et|pour|para)\b)"#;

/// Words beside those of the lists. None of them tells that a secret is public.
const OTHERS: [&str; 16] = [
    "something",
    "unique",
    "host",
    "wrong",
    "I",
    "think",
    "it",
    "server",
    "Anna",
    "prod",
    "old",
    "en route",
    "geheim",
    "auf allen",
    "seguro",
    "the",
];

/// Returns sentences that tell values of names, with the verbs, adverbs and conjunctions of all languages and other words
/// between. `#` in a value is a number that no other value has.
fn sentences() -> impl Strategy<Value = String> {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let few = ["password", "Passwort", "passphrase", "passcode", "kennwort", "contraseña", "mot de passe"];
    let name = prop_oneof![4 => select(owned(&few)), 1 => select(words("names"))];
    let common = ["is", "was", "ist", "war", "lautet", "es", "est", "changed to", "set to", "reset to"];
    let verb = || prop_oneof![4 => select(owned(&common)), 1 => select(words("verbs"))].boxed();
    let values = ["Blau#wolke", "Blau#wolke", "Blau#wolke", "k#y!mond", "Web#", "Blau#wolke.de", "a@b#.de"];
    let between = prop_oneof![
        4 => select(owned(&OTHERS)),
        2 => select(words("conjunctions")),
        1 => select(words("foreign_verbs")),
        1 => select(words("adverbs")),
        2 => (verb(), select(owned(&OTHERS))).prop_map(|(verb, other)| format!("{verb} {other}")),
    ];
    let between = proptest::collection::vec(between, 0..4);
    let ends = [".", ",", "", "; the", "!"];
    let end = prop_oneof![
        3 => select(owned(&ends)),
        2 => select(words("conjunctions")).prop_map(|word| format!(" {word} more")),
    ];
    let sentence = (name, between, verb(), select(owned(&values)), end);
    proptest::collection::vec(sentence, 1..4).prop_map(|sentences| {
        let mut text = String::new();
        for (at, (name, between, verb, value, end)) in sentences.into_iter().enumerate() {
            let value = value.replace('#', &format!("{}", 20 + at));
            let between = between.iter().map(|word| format!(" {word}")).collect::<String>();
            text.push_str(&format!("The {name}{between} {verb} {value}{end} "));
        }
        text
    })
}

#[test]
fn words_of_more_languages_take_no_password_away() {
    let pattern = RegexBuilder::new(FEW_LANGUAGES).unicode(false).build().unwrap();
    let is_strong = |value: &str| value.starts_with("Blau") && !value.contains(['.', ';']);
    let passwords = Cell::new(0);
    proptest!(ProptestConfig::with_cases(4_000), |(text in sentences())| {
        let kept = without_secrets(&text).0;
        let mut from = 0;
        while let Some(groups) = pattern.captures_at(text.as_bytes(), from) {
            let value = groups.get(1).unwrap();
            from = value.end();
            let value = std::str::from_utf8(value.as_bytes()).unwrap();
            if is_strong(value) {
                passwords.set(passwords.get() + 1);
                prop_assert!(!kept.contains(value), "{text}\n{kept}");
            }
        }
    });
    assert!(passwords.get() > 500, "{}", passwords.get());
}

/// Sentences with another value before the password.
const REFUSED: [&str; 16] = [
    "The password is something I think is Blau7wolke.",
    "The passcode was wrong I think, it is Blau7wolke",
    "The password is unique per host, it is Blau7wolke.",
    "The password was changed per ticket and is Blau7wolke.",
    "The password is rotated per quarter, now it is Blau7wolke",
    "The password is stored en route is Blau7wolke.",
    "My password is either ma birthday or is Blau7wolke.",
    "Das Kennwort ist gleich auf allen Servern und lautet Blau7wolke",
    "Das Kennwort ist anders für jeden und lautet Blau7wolke",
    "La contraseña es segura pero es Blau7wolke.",
    "Le mot de passe est connu mais est Blau7wolke.",
    "The kennwort used to login on prod is Blau7wolke",
    "Kennwort to reset for Anna is Blau7wolke",
    "The contraseña to enter and leave is Blau7wolke",
    "Das Kennwort — geheim und neu — ist Blau7wolke.",
    "Hasło jest stare i teraz to Blau7wolke",
];

#[test]
fn a_value_that_is_no_password_does_not_hide_the_one_behind_it() {
    let kept: Vec<&str> = REFUSED.into_iter().filter(|text| *text == without_secrets(text).0).collect();
    assert!(kept.is_empty(), "{}", kept.join("\n"));
}
