//! Tests text analysis: words, identifiers and scripts without spaces.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop loudly"
)]

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use unicode_normalization::UnicodeNormalization;

use crate::folding::fold_into;
use crate::terms::{CachedStemmer, Initials, TermKind, Terms, is_stop_word, stem_prefixes, terms};

/// Checks the terms of a text; wholes stand in brackets.
#[track_caller]
fn check(text: &str, expected: &str) {
    let found: Vec<String> = terms(text)
        .into_iter()
        .filter(|term| term.kind != TermKind::LastCharacter)
        .map(|term| if term.kind == TermKind::Whole { format!("[{}]", term.text) } else { term.text })
        .collect();
    assert_eq!(found.join(" "), expected, "{text:?}");
}

/// Lists the terms, the short ones among them as numbers first.
fn short_first(mut walk: Terms<'_>) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        while let Some(word) = walk.next_short() {
            let bytes = word.folded.to_le_bytes();
            let (term, above) = bytes.split_at(word.length);
            assert!(above.iter().all(|&byte| byte == 0), "{word:?}");
            found.push(String::from_utf8(term.to_vec()).unwrap());
        }
        let Some(term) = walk.next_text() else { return found };
        found.push(term.to_owned());
    }
}

/// Short words are folded like others, whatever stands behind them, and the last one too.
#[test]
fn short_words_are_terms() {
    let cases = [
        ("The quick brown Fox of 1984.", "the quick brown fox of 1984"),
        ("abcdefghijklmnop qrstuvwxyz0123456", "abcdefghijklmnop qrstuvwxyz0123456"),
        ("a-b c- d' e's f.g h. C# i_j KiB éa aé", "a-b a b c d e f.g f g h c# c i_j i j kib ki b ea ae"),
        ("", ""),
    ];
    for (text, expected) in cases {
        let text = format!("{text} {}", " ".repeat(20));
        let whole: Vec<String> = terms(&text).into_iter().map(|term| term.text).collect();
        assert_eq!(short_first(Terms::new(&text)), whole, "{text:?}");
        assert_eq!(whole.join(" "), expected, "{text:?}");
    }
}

#[test]
fn words_are_folded() {
    check("Hello, World!", "hello world");
    check("Café naïve Ærø Łódź Straße", "cafe naive aero lodz strasse");
    check("ΟΔΟΣ οδός", "οδοσ οδοσ");
    check("Ёлка", "елка");
    check("ﬁne Ⅷ", "fine viii");
    check("قَهْوَة", "قهوه");
    check("हिन्दी", "हिन्दी");
    check("мой їжак ў", "мой їжак ў");
    check("שָׁלוֹם צה״ל צה\"ל \"שלום\"", "שלום צהל צהל שלום");
    check("می‌خواهم ۱۴۰۵ ٢٠٢٦", "ميخواهم 1405 2026");
    check("об’єкт пʼять", "обєкт пять");
    check("Daten\u{AD}bank \u{AD}x", "datenbank x");
}

#[test]
fn identifiers_give_the_whole_and_the_parts() {
    check("snake_case", "[snake_case] snake case");
    check("camelCase HTTPServer", "[camelcase] camel case [httpserver] http server");
    check("well-known", "[well-known] well known");
    check("fs.read_to_string", "[fs.read_to_string] fs read to string");
    check("v1.2.3 2026-11-21", "[v1.2.3] v1 2 3 [2026-11-21] 2026 11 21");
    check("__init__ _x", "init x");
    check("win32 utf8 IDs", "win32 utf8 ids");
}

#[test]
fn signs_of_programming_language_names_are_kept() {
    check("C++, C# and F#.", "[c++] c [c#] c and [f#] f");
    check("a+b x++y", "a b x y");
}

#[test]
fn clitics_are_removed() {
    check("the user's don't l’été", "the user don l ete");
}

#[test]
fn unspaced_scripts_give_bigrams() {
    check("线段树", "线段 段树");
    check("树", "树");
    check("我用Rust写", "我用 rust 写");
    check("カフェ", "カフ フェ");
    check("ไทย", "ไท ทย");
}

#[test]
fn symbols_are_words() {
    check("a→b 🚀✔️ 👋🏽 🇩🇪🇫🇷 👩‍💻 1️⃣ ↮", "a → b 🚀 ✔ 👋 🇩🇪 🇫🇷 👩 💻 1 ↔");
    check("│ ── ■ ● • · 5 € ©", "5");
}

#[test]
fn text_without_words_gives_no_terms() {
    check("", "");
    check("—… \t\n!?", "");
    check(&"x".repeat(129), "");
}

/// Text of such characters alone is not decomposed first; beside a letter with a diacritic it is.
#[test]
fn han_characters_are_folded_to_themselves() {
    for c in '\u{4E00}'..='\u{9FFF}' {
        let (mut alone, mut decomposed) = (String::new(), String::new());
        fold_into(&format!("{c}{c}"), &mut alone);
        fold_into(&format!("é{c}{c}"), &mut decomposed);
        assert_eq!((alone.as_str(), decomposed.as_str()), (&*format!("{c}{c}"), &*format!("e{c}{c}")), "{c}");
    }
}

#[test]
fn only_english_is_stemmed() {
    let mut stem = CachedStemmer::default();
    let stems: Vec<String> =
        ["running", "cafes", "выход", "x1ing", "is"].map(|word| stem.of(word).to_owned()).to_vec();
    assert_eq!(stems, ["run", "cafe", "выход", "x1ing", "is"]);
}

#[test]
fn prefixes_of_words_with_a_stem() {
    let check = |stem: &str, expected: &[&str]| assert_eq!(stem_prefixes(stem), expected, "{stem}");
    check("connect", &["connect"]);
    check("happi", &["happi", "happy"]);
    check("possibl", &["possibl", "possibilit"]);
    check("cite", &["cite", "citi"]);
    check("tie", &["tie", "tii", "tying"]);
    check("sky", &["sky", "skies"]);
    check("a", &["aed", "aing"]);
    for only_itself in ["x1", "выход", "水", ""] {
        check(only_itself, &[]);
    }
}

/// All words of three and four letters, and each of some roots with up to three endings.
#[test]
fn every_word_has_a_prefix_of_its_stem() {
    let mut stem = CachedStemmer::with_small_cache();
    let mut check = |word: &str| {
        let stem = stem.of(word);
        let is_told = stem_prefixes(stem).iter().any(|opening| word.starts_with(opening.as_str()));
        assert!(is_told || stem == word, "{word} {stem}");
    };
    let letters = || 'a'..='z';
    for start in letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| [a, b, c]))) {
        let word = String::from_iter(start);
        check(&word);
        letters().for_each(|last| check(&format!("{word}{last}")));
    }
    let roots = "a e i o u y ba hop tan rel vi use oper gener commun arsen abl possi sensi cri happ dy ly ty sk id gent ugl \
        earl onl singl at iz bl bb tt egg add off connect re nation ypy yay toy univers decis organ rat lov geo \
        techno que ski die tie";
    let endings = "s es ies ied ed ing edly ingly eed eedly y tional ency anci ably entli izer ization ational ator \
        alism ality alli fulness ousli iveness iviti biliti bility bli ogi fulli lessli li ly alize icate iciti ical \
        ful ness ative al ance er ic able ible ant ement ment ism ate ity ous ive ize sion tion e l ll le ogist";
    for root in roots.split_whitespace() {
        for one in endings.split_whitespace() {
            for two in endings.split_whitespace() {
                check(&format!("{root}{one}{two}"));
                endings.split_whitespace().for_each(|three| check(&format!("{root}{one}{two}{three}")));
            }
        }
    }
}

#[test]
fn a_sign_that_is_crossed_out_is_the_same_in_both_forms() {
    for sign in ["≠", "≮", "≯"] {
        let decomposed: String = sign.nfd().collect();
        let texts = |text: &str| terms(text).into_iter().map(|term| term.text).collect::<Vec<_>>();
        assert_eq!(texts(sign), texts(&decomposed), "{sign}");
        assert_eq!(texts(&format!("a {decomposed} b")).len(), 3, "{sign}");
    }
}

#[test]
fn stop_words_are_known() {
    assert!(["the", "a", "your", "how"].iter().all(|word| is_stop_word(word)));
    assert!(!is_stop_word("rename"));
}

proptest! {
    /// Composed and decomposed texts are the same, also where characters are counted in pairs.
    #[test]
    fn decomposed_text_has_the_same_terms(text in "[a-zÀ-ſЀ-ӿ가-각가ぁ-ヺｦ-ﾟ東京_' -]{0,24}|\\PC{0,40}") {
        let texts = |text: &str| -> Vec<_> {
            terms(text).into_iter().map(|term| (term.text, term.position, term.kind)).collect()
        };
        let (composed, decomposed): (String, String) = (text.nfc().collect(), text.nfd().collect());
        prop_assert_eq!(texts(&composed), texts(&decomposed), "{:?}", text);
    }

    #[test]
    fn terms_have_correct_offsets(text in "\\PC{0,80}") {
        let mut last = 0;
        for term in terms(&text) {
            let raw = text.get(term.start..term.end).unwrap();
            let mut folded = String::new();
            fold_into(raw, &mut folded);
            prop_assert!(folded == term.text);
            prop_assert!(term.position >= last, "positions never run backwards");
            last = term.position;
        }
    }

    #[test]
    fn separators_between_words_do_not_matter(words in "[a-zA-Z0-9_'.+#-]{1,9}( [a-zA-Z0-9_'.+#-]{1,9}){0,4}") {
        // After a dash outside of ASCII, plain words take the slow path, too.
        let cut = |text: &str| -> Vec<_> {
            terms(text).into_iter().map(|term| (term.text, term.position, term.kind)).collect()
        };
        prop_assert_eq!(cut(&words), cut(&words.replace(' ', "—")));
    }

    #[test]
    fn next_text_agrees_with_terms(text in "[a-zA-Z0-9_'.+#ßÅ水語 -]{0,80}|\\PC{0,80}") {
        let (mut walk, mut alone) = (Terms::new(&text), Vec::new());
        while let Some(term) = walk.next_text() {
            alone.push(term.to_owned());
        }
        let whole: Vec<String> = terms(&text).into_iter().map(|term| term.text).collect();
        prop_assert_eq!(&alone, &whole);
        prop_assert_eq!(short_first(Terms::new(&text)), whole);
    }

    #[test]
    fn advancing_to_initials_passes_over_no_other_term(
        text in "[a-zA-Z0-9_'.+#ßÅ水語 -]{0,80}|\\PC{0,80}",
        words in "[a-z0-9å水]{1,3}",
    ) {
        let letters: Vec<String> = words.chars().map(String::from).collect();
        let initials = Initials::of(letters.iter().map(String::as_str));
        let (mut walk, mut found) = (Terms::new(&text), Vec::new());
        while walk.advance_to(&initials) {
            found.push(walk.term().clone());
        }
        let begins = |word: &str| letters.iter().any(|letter| letter.bytes().next() == word.bytes().next());
        let expected: Vec<_> = terms(&text).into_iter().filter(|term| begins(&term.text)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn runs_are_split_at_non_alphanumeric_characters(text in "[a-zA-Z0-9_'.+# -]{0,80}") {
        let (mut walk, mut runs) = (Terms::new(&text).in_runs(), Vec::new());
        while let Some(run) = walk.next_text() {
            runs.push(run.to_owned());
        }
        let text = text.to_ascii_lowercase();
        let cut = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|run| !run.is_empty());
        prop_assert_eq!(&runs, &cut.collect::<Vec<_>>());
        prop_assert_eq!(short_first(Terms::new(&text).in_runs()), runs);
    }

    #[test]
    fn folding_is_idempotent(text in "\\PC{0,40}") {
        let (mut once, mut twice) = (String::new(), String::new());
        fold_into(&text, &mut once);
        fold_into(&once, &mut twice);
        prop_assert!(once == twice, "{once:?} {twice:?}");
    }
}
