//! Tests the word lists of languages: that the files are sound, that English is read without them, and what each reader of
//! words makes of twelve languages. Cases are data in `tests/languages/words.tsv`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sidenote::base::clock::Timestamp;
use sidenote::config::Config;
use sidenote::language::english::english_rank;
use sidenote::language::folding::fold_into;
use sidenote::language::terms::is_stop_word;
use sidenote::language::word_lists::{Languages, List, Reading};
use sidenote::memory::mention::prompt_words;
use sidenote::memory::recall::{asks_again, prompt_query, prompt_terms};
use sidenote::memory::types::MemoryTypes;
use sidenote::memory::{capture, duplicate};
use sidenote::search::date_phrase::find;
use sidenote::secrets::without_secrets;
use sidenote::store::RecallRequest;

use crate::support::TestVault;

/// A Saturday.
const NOW: &str = "2026-11-21";

/// The number of cases.
const CASES: usize = 863;

/// The languages with cases: English, and those with a file.
const LANGUAGES: [&str; 12] = ["en", "de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "zh"];

/// The readers of words with cases in each language.
const KINDS: [&str; 8] = ["small talk", "order", "again", "type", "captured", "period", "secret", "same"];

/// Returns the types of memories of the built-in settings.
fn types() -> MemoryTypes {
    let vault = TestVault::new(&[]);
    let config = Config::load(vault.root(), &[]).unwrap();
    MemoryTypes::new(BTreeMap::new(), &config.memory.classify)
}

/// Returns what a reader of words says of a text: `kind` is the reader.
fn reading(types: &MemoryTypes, kind: &str, text: &str) -> String {
    match kind {
        "small talk" => prompt_terms(text).is_empty().to_string(),
        "query" => prompt_query(text).unwrap_or_default(),
        "order" => prompt_words(text, &|_| None).first().is_some_and(|word| word.begins_order).to_string(),
        "again" => asks_again(text).to_string(),
        "type" => types.classify(text).to_owned(),
        "captured" => (capture::score(text) >= 0.3).to_string(),
        "period" => {
            find(text, Timestamp::parse(NOW).unwrap()).map_or_else(String::new, |phrase| phrase.period())
        }
        "secret" => without_secrets(text).0.into_owned(),
        "same" => {
            let (known, new) = text.split_once(" // ").unwrap();
            duplicate::agree(known, new).to_string()
        }
        other => panic!("no reader is called {other}"),
    }
}

#[test]
fn words_are_read_in_twelve_languages() {
    let cases = include_str!("../languages/words.tsv");
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let (types, mut wrong) = (types(), Vec::new());
    for line in cases.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let [language, kind, text, expected] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        *counts.entry((language, kind)).or_default() += 1;
        let found = reading(&types, kind, text);
        if found != expected {
            wrong.push(format!("{language} {kind}: {text}: {found:?} in place of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(counts.values().sum::<usize>(), CASES);
    for language in LANGUAGES {
        for kind in KINDS {
            assert!(counts.contains_key(&(language, kind)), "there is no case of {kind} in {language}");
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/language/languages")
}

fn folded(word: &str) -> String {
    let mut out = String::new();
    fold_into(word, &mut out);
    out
}

/// Returns the lines of a file of words by what stands before the words.
fn lines_of(name: &str) -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| line.split_once('|').unwrap());
    parts.map(|(key, words)| (key.to_owned(), words.split(' ').map(str::to_owned).collect())).collect()
}

/// Lists the strings of a file, without the words of names, which mean the same in every language.
fn strings(value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::String(text) => found.push(text.clone()),
        toml::Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        toml::Value::Table(table) => {
            table.iter().filter(|(key, _)| *key != "names").for_each(|(_, value)| strings(value, found));
        }
        _ => {}
    }
}

/// Returns the stop words of a language.
fn stop_words_of(language: &str) -> Vec<String> {
    lines_of("stop_words.txt").into_iter().find(|(key, _)| key.starts_with(language)).unwrap().1
}

/// Returns the words of the lists of a language, without beginnings of words.
fn words_of(language: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(folder().join(format!("{language}.toml"))).unwrap();
    let mut phrases = stop_words_of(language);
    strings(&toml::Value::Table(text.parse().unwrap()), &mut phrases);
    let mut words = BTreeSet::new();
    for phrase in phrases {
        let (mut rest, mut plain) = (phrase.as_str(), String::new());
        while let Some((before, slot)) = rest.split_once('{') {
            plain.push_str(before);
            rest = slot.split_once('}').unwrap().1;
        }
        plain.push_str(rest);
        for piece in plain.split(|c: char| !c.is_alphabetic() && c != '*').filter(|piece| !piece.is_empty()) {
            if !piece.ends_with('*') {
                words.insert(piece.to_lowercase());
            }
        }
    }
    words
}

/// The languages in the Latin script.
const LATIN: [&str; 7] = ["de", "es", "fr", "it", "nl", "pl", "pt"];

/// Returns what `latin_words.txt` must have.
fn latin_words() -> String {
    let evidence = lines_of("evidence.txt");
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for language in LATIN {
        let list = |kind: &str| evidence.get(&format!("{language} {kind}")).unwrap();
        let homographs: BTreeSet<String> =
            list("homographs").iter().flat_map(|word| [word.clone(), folded(word)]).collect();
        let mut forms = words_of(language);
        forms.extend(list("common").iter().cloned());
        forms.extend(forms.clone().iter().map(|word| folded(word)));
        let stop_words: BTreeSet<String> =
            stop_words_of(language).iter().flat_map(|word| [word.clone(), folded(word)]).collect();
        for form in forms {
            let is_english = english_rank(&form).is_some() && !list("telling").contains(&form)
                || is_stop_word(&form)
                || homographs.contains(&form)
                || form.len() < 2;
            let mark = match is_english {
                true => "=",
                false if stop_words.contains(&form) => "+",
                false => "",
            };
            lines.entry(form).or_default().push(format!("{mark}{language}"));
        }
    }
    lines.iter().map(|(word, codes)| format!("{word} {}\n", codes.join(" "))).collect()
}

#[test]
fn the_words_that_tell_a_language_are_those_of_the_files() {
    let (path, expected) = (folder().join("latin_words.txt"), latin_words());
    if std::env::var_os("SIDENOTE_ACCEPT").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == expected, "make latin_words.txt again with SIDENOTE_ACCEPT=1");
    // The word list of English has none of them, so that a text needs two words of a language to be in it.
    for word in ["danke", "für", "gracias", "merci", "grazie", "bedankt", "dziękuję", "obrigado"] {
        assert_ne!(Languages::of(word), Languages::default(), "{word}");
    }
}

#[test]
fn the_files_are_sound() {
    for language in &LANGUAGES[1..] {
        let text = std::fs::read_to_string(folder().join(format!("{language}.toml"))).unwrap();
        let file: toml::Table = text.parse().unwrap();
        for list in ["prompts", "types", "capture", "duplicates", "dates"] {
            assert!(file.contains_key(list), "{language} {list}");
        }
    }
    // What cannot be read is no list: each language must know a word of its own.
    for (language, word) in [
        ("de", "vielen dank"),
        ("es", "gracias"),
        ("fr", "merci"),
        ("it", "grazie"),
        ("ja", "ありがとう"),
        ("ko", "안녕"),
        ("nl", "bedankt"),
        ("pl", "dziękuję"),
        ("pt", "obrigado"),
        ("ru", "спасибо"),
        ("zh", "谢谢"),
    ] {
        let reading = Reading::of(word);
        assert_eq!(reading.languages().codes(), [language], "{word}");
        assert!(reading.has(List::SmallTalk), "{word}");
    }
}

/// The files with words of other languages on purpose.
const FOREIGN_FILES: [&str; 8] = [
    "guides/languages.md",
    "dev/languages.md",
    "memory/src/update_words.rs",
    "proposals/src/consolidate/single.rs",
    "secrets/src/lib.rs",
    "secrets/src/told.rs",
    "search/src/date_phrase.rs",
    "Reference/Über das Wässern.md",
];

/// The folders and files of the repository in English: documents, notes and code.
const ENGLISH_TEXTS: [&str; 11] = [
    "docs",
    "example-vault",
    "fixtures",
    "crates",
    "packaging",
    "src",
    "web/src",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "THIRD-PARTY.md",
];

/// Lists the lines of the texts of the repository.
fn english_lines() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut lines = Vec::new();
    let files = ENGLISH_TEXTS.iter().flat_map(|name| walkdir::WalkDir::new(root.join(name)));
    for path in files.filter_map(|entry| Some(entry.ok()?.into_path())) {
        let is_text = path.extension().is_some_and(|ending| {
            ["md", "rs", "ts", "tsx", "toml", "css"].iter().any(|known| ending == *known)
        });
        let is_list =
            path.components().any(|part| part.as_os_str() == "languages" || part.as_os_str() == "encoder");
        if is_text
            && !is_list
            && !path.ends_with("tests.rs")
            && FOREIGN_FILES.iter().all(|name| !path.ends_with(name))
        {
            lines.extend(std::fs::read_to_string(path).unwrap().lines().map(str::to_owned));
        }
    }
    lines
}

#[test]
fn english_texts_are_read_without_word_lists() {
    let lines = english_lines();
    assert!(lines.len() > 100_000, "{}", lines.len());
    let mut foreign = Vec::new();
    for line in lines.iter().filter(|line| line.is_ascii()) {
        let languages = Languages::of(line);
        if !languages.is_empty() {
            foreign.push(format!("{:?} {line}", languages.codes()));
        }
    }
    assert_eq!(foreign, [""; 0]);
}

/// Words of other languages that stand in English texts of the repository on purpose, in examples and names.
const FOREIGN_WORDS: [&str; 17] = [
    "besprechung",
    "coche",
    "cosa",
    "datenbank",
    "ein",
    "garten",
    "haus",
    "heure",
    "letzte",
    "nostra",
    "oktober",
    "rechnung",
    "réunions",
    "und",
    "woche",
    "zehn",
    "é",
];

/// A list of words of English, however long, lacks some that English texts have, such as `configure` and `todo`. Those found
/// here belong into the homographs of `evidence.txt`.
#[test]
fn no_word_that_tells_a_language_is_in_an_english_text() {
    let table = latin_words();
    let telling: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, languages)| languages.split(' ').any(|language| !language.starts_with('=')))
        .map(|(word, _)| word)
        .collect();
    let (mut count, mut found) = (0, BTreeSet::new());
    for line in english_lines() {
        for word in line.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()) {
            count += 1;
            let lower = word.to_lowercase();
            if telling.contains(lower.as_str()) {
                found.insert(lower);
            }
        }
    }
    assert!(count > 700_000, "{count}");
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), FOREIGN_WORDS);
}

#[test]
fn prompts_in_english_are_read_without_word_lists() {
    let cases: serde_json::Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/recall/cases.json"
    )))
    .unwrap();
    let prompts: Vec<&str> =
        cases["cases"].as_array().unwrap().iter().map(|case| case["prompt"].as_str().unwrap()).collect();
    assert_eq!(prompts.len(), 1095);
    let others: Vec<&str> = prompts.into_iter().filter(|prompt| !Languages::of(prompt).is_empty()).collect();
    let foreign = [
        "Danke, das hilft mir sehr.",
        "Merci beaucoup !",
        "Vielen Dank, weiter so.",
        "gracias, perfecto",
        "Wie spät ist es?",
        "Kannst du das kürzer machen?",
        "谢谢你",
        "はい、お願いします",
    ];
    assert_eq!(others, foreign);
}

/// English prompts and notes with words that another language has, too: names, abbreviations, quotations.
const ENGLISH: &[&str] = &[
    "IBAN DE89 3704",
    "list all todos",
    "SES",
    "NUMA",
    "todos",
    "lag",
    "modulo",
    "the meme lag",
    "Ansible",
    "Presto is slow",
    "who is Sage Mach",
    "ask Milo and Bella about Dale",
    "fallo vero presto",
    "Presto",
    "Sage",
    "what is the gran listo",
    "Fein Werk tut",
    "the MIT license",
    "ask Kim",
    "Mia?",
    "DER encoding of the key",
    "check-in 2024",
    "plug-in 2024",
    "to do 2024",
    "NA 2024",
    "PO 2024",
    "da 2024",
    "budget tot April",
    "in 2024/25",
    "in 2024-q1",
    "since 2024.5",
    "still deciding",
    "an erroneous value",
    "Fallout and Creed",
    "Immer state updates",
    "tell me. Zephyr is down",
    "leg day with Dana",
    "tester for the login",
    "Test die Leitung",
    "Did Piet van der Berg die in the war?",
    "Read Der Spiegel and Die Zeit",
    "Is Los Angeles or Las Vegas warmer?",
    "El Niño and La Niña",
    "the São Paulo office",
    "a café in Málaga",
    "my résumé",
    "Mötley Crüe",
    "über cool",
    "What does vielen Dank mean?",
    "translate danke for me",
    "the toll of the bridge",
    "el paso",
    "la paz",
    "note: the deal is off",
    "son of Ana",
    "come sale data",
    "TODO",
    "TODO: email José",
    "Todo list for Zoé",
    "Remove TODO résumé",
    "Add Pokémon café TODO, deploy to prod",
    "TODO legal José",
    "Aider",
    "configure aider",
    "aider configure script",
    "OUI configure",
    "Configure Pokémon en mars 2024",
    "Merci José",
    "danke, José",
    "00000010: 01 E8 03 ...è.",
    "`Ã&copy;` instead of `é`",
];

#[test]
fn an_english_text_with_foreign_names_is_english() {
    let spoken: Vec<String> = ENGLISH
        .iter()
        .filter(|text| !Languages::of(text).is_empty())
        .map(|text| format!("{text}: {:?}", Languages::of(text).codes()))
        .collect();
    assert!(spoken.is_empty(), "{}", spoken.join("\n"));
}

#[test]
fn a_language_is_told_by_its_words_and_by_its_script() {
    for (text, expected) in [
        ("Wir haben das beschlossen", &["de"][..]),
        ("Bitte prüfe the build und lösche die Datei", &["de"]),
        ("Hemos decidido usar la base de datos", &["es"]),
        ("Decidimos usar a base de dados, porque não temos outra", &["pt"]),
        ("Nous avons décidé de garder le bateau", &["fr"]),
        ("Abbiamo deciso di usare il treno", &["it"]),
        ("We hebben besloten de trein te nemen", &["nl"]),
        ("Postanowiliśmy jechać pociągiem, ponieważ jest szybki", &["pl"]),
        ("что это", &["ru"]),
        ("会议", &["zh"]),
        ("会議は明日です", &["ja"]),
        ("the meeting 会议 on Monday", &["zh"]),
        ("회의", &["ko"]),
        ("Vielen Dank und bis bald. Merci beaucoup et à bientôt.", &["de", "fr"]),
        ("tack så mycket", &[]),
        ("ขอบคุณ", &[]),
    ] {
        assert_eq!(Languages::of(text).codes(), expected, "{text}");
    }
}

#[test]
fn a_form_of_address_counts_in_its_language_only() {
    let last =
        |text: &str| prompt_words(text, &|_| None).into_iter().find(|word| word.text == "zephyr").unwrap();
    // A capital letter at the beginning of a sentence tells no name.
    for text in ["tell me. Zephyr is down", "ask don. Zephyr is down", "vitamin d. Zephyr is down"] {
        assert!(!last(text).is_capitalised, "{text}");
    }
    assert!(last("ask Mr. Zephyr about it").is_capitalised);
    assert!(last("Nous avons demandé à Mme. Zephyr hier").is_capitalised);
    assert!(last("Wir haben gestern Herrn Zephyr gefragt").is_addressed);
}

#[test]
fn no_beginning_of_a_word_is_the_beginning_of_an_english_word() {
    let words: BTreeSet<String> = english_lines()
        .iter()
        .filter(|line| line.is_ascii())
        .flat_map(|line| line.split(|c: char| !c.is_alphabetic()).map(str::to_lowercase).collect::<Vec<_>>())
        .chain(["deciding", "erroneous", "fallout", "creed", "creep"].map(str::to_owned))
        .collect();
    assert!(words.len() > 4_000, "{}", words.len());
    let mut found = Vec::new();
    for language in LATIN {
        let text = std::fs::read_to_string(folder().join(format!("{language}.toml"))).unwrap();
        let mut phrases = Vec::new();
        strings(&toml::Value::Table(text.parse().unwrap()), &mut phrases);
        for phrase in &phrases {
            for stem in phrase
                .split(|c: char| !c.is_alphabetic() && c != '*')
                .filter_map(|word| word.strip_suffix('*'))
            {
                let stem = folded(stem);
                found.extend(
                    words
                        .iter()
                        .filter(|word| word.starts_with(&stem))
                        .map(|word| format!("{phrase}: {word}")),
                );
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_prompt_that_is_the_name_of_a_note_recalls_it() {
    let names = ["La Cosa Nostra", "Klar", "Auf Wiedersehen", "Что это", "你好"];
    let files: Vec<(String, &str)> =
        names.iter().map(|name| (format!("{name}.md"), "A boat of the harbour.\n")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let vault = TestVault::new(&files);
    let store = vault.store_with("none");
    let recalled = |prompt: &str| -> Vec<String> {
        let request = RecallRequest { prompt: prompt.to_owned(), ..RecallRequest::default() };
        let memories = store.recalls().recall(&request).unwrap().memories;
        memories.into_iter().map(|memory| memory.title).collect()
    };
    for name in names {
        assert!(prompt_terms(name).is_empty() || name == "La Cosa Nostra", "{name}");
        assert_eq!(recalled(name), [name], "{name}");
        assert_eq!(recalled(&format!("{}?", name.to_lowercase())), [name], "{name}");
    }
    for prompt in ["Vielen Dank!", "谢谢", "Спасибо", "Klar, danke"] {
        assert_eq!(recalled(prompt), [""; 0], "{prompt}");
    }
}

#[test]
fn decomposed_and_capital_letters_are_read_alike() {
    use unicode_normalization::UnicodeNormalization;
    for (text, list) in [
        ("Précédemment, nous avons décidé", List::Types),
        ("ÜBERPRÜFE bitte den Code", List::Orders),
        ("설정을 수정해 줘", List::FinalOrders),
        ("Большое СПАСИБО", List::SmallTalk),
        ("ｄａｎｋｅ", List::SmallTalk),
    ] {
        let decomposed: String = text.nfd().collect();
        for text in [text, decomposed.as_str(), text.to_lowercase().as_str()] {
            assert!(Reading::of(text).has(list), "{text}");
        }
    }
}

#[test]
fn a_text_is_read_in_time_that_grows_with_its_length() {
    let text = "Wir haben beschlossen, first of all, 先决定再说。 ".repeat(2_000);
    let reading = Reading::of(&text);
    assert_eq!(reading.values(List::Types).iter().filter(|kind| **kind == "decision").count(), 4_000);
    let polite = format!("Kannst du die Funktion umbenennen{}", " bitte".repeat(50_000));
    assert!(Reading::of(&polite).is_order(12));
    // What stands before an order is long, too.
    let polite = format!("{}benenne die Funktion um", "bitte danke ".repeat(50_000));
    assert!(!Reading::of(&polite).is_order(12));
}
