//! Tests search in languages other than English: compounds, umlauts, accents, and text without spaces.

use std::sync::Arc;

use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::language::language::{Language, detect};
use sidenote::search::Mode;
use sidenote::store::{Open, SearchRequest, Store, WhyRequest};
use sidenote::vault::Vault;

use crate::support::{TestVault, env_path, paths, say};

/// A few notes as people write them in German, French, Spanish, Polish and Czech.
const NOTES: [(&str, &str); 12] = [
    ("Dampfer.md", "Der Dampf treibt das Schiff an; jede Fahrt auf der Donau dauert zwei Tage."),
    (
        "Versicherung.md",
        "Beiträge zur Versicherung. Sie schützt das Leben der Familie nicht, aber die Kasse.",
    ),
    ("Kuchen.md", "Kuchen mit Äpfeln, dazu Sahne. Ein Apfel reicht je Stück."),
    ("Haus.md", "Die Tür vom Haus klemmt, der Schlüssel liegt unter dem Stein."),
    ("Müller.md", "Frau Müller ruft wegen der Größe der Öfen an."),
    ("Datenbank.md", "Die Datenbankverbindung bricht nachts ab."),
    ("Fluß.md", "Am Fluß führt die Straße vorbei."),
    ("Déjeuner.md", "Le déjeuner d’été à l’hôtel: crème brûlée et œufs."),
    ("Mañana.md", "El niño llegó mañana por la montaña."),
    ("Łódź.md", "Zażółć gęślą jaźń w Łodzi."),
    ("Kůň.md", "Příliš žluťoučký kůň úpěl ďábelské ódy."),
    ("Backup.md", "The file lies on a system of its own, and the network is slow."),
];

/// Checks which notes a query finds, best first.
#[track_caller]
fn check(query: &str, expected: &[&str]) {
    let vault = TestVault::new(&NOTES);
    assert_eq!(paths(&vault.store(), query), expected, "{query}");
}

#[test]
fn an_unindexed_compound_finds_its_parts() {
    check("Dampfschifffahrt", &["Dampfer.md"]);
    check("Donaudampfschiff", &["Dampfer.md"]);
    check("Lebensversicherung", &["Versicherung.md"]);
    check("Apfelkuchen", &["Kuchen.md"]);
    check("Hausschlüssel", &["Haus.md"]);
    check("filesystem", &["Backup.md"]);
}

#[test]
fn an_indexed_compound_is_not_split() {
    check("Datenbankverbindung", &["Datenbank.md"]);
    let vault = TestVault::new(&[("a.md", "Hausboot"), ("b.md", "Haus und Boot")]);
    assert_eq!(paths(&vault.store(), "Hausboot"), ["a.md"]);
}

#[test]
fn a_compound_without_known_parts_finds_nothing() {
    check("Schreibmaschine", &[]);
    // One part alone is another word.
    check("Schlüsselbund", &[]);
    // Where every word is wanted, parts are none.
    let vault = TestVault::new(&NOTES);
    let request = SearchRequest { query: "Apfelkuchen".to_owned(), all: true, ..SearchRequest::default() };
    assert!(vault.store().searches().search(&request).unwrap().results.is_empty());
}

#[test]
fn umlauts_are_found_in_every_spelling() {
    check("muller", &["Müller.md"]);
    check("Mueller", &["Müller.md"]);
    check("Groesse Oefen", &["Müller.md"]);
    check("Fluss", &["Fluß.md"]);
    check("strasse", &["Fluß.md"]);
}

#[test]
fn words_are_found_without_typing_accents() {
    check("dejeuner ete", &["Déjeuner.md"]);
    check("creme brulee", &["Déjeuner.md"]);
    check("oeufs", &["Déjeuner.md"]);
    check("manana", &["Mañana.md"]);
    check("zazolc", &["Łódź.md"]);
    check("zlutoucky kun", &["Kůň.md"]);
}

/// The cases of `tests/languages/found.tsv`: language, text of a note, query, and whether the query finds the note.
fn word_cases() -> Vec<[&'static str; 4]> {
    let lines = include_str!("../languages/found.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| <[&str; 4]>::try_from(line.split('\t').collect::<Vec<_>>()).expect(line)).collect()
}

/// All notes are in one vault, so that no language spoils the words of another one.
#[test]
fn words_of_every_language_are_found() {
    let cases = word_cases();
    assert!(cases.len() >= 35, "{}", cases.len());
    let names: Vec<String> = (0..cases.len()).map(|at| format!("{}.md", letters_of(at))).collect();
    let notes: Vec<(&str, &str)> =
        names.iter().zip(&cases).map(|(name, [_, text, ..])| (name.as_str(), *text)).collect();
    let vault = TestVault::new(&notes);
    let store = vault.store();
    let mut wrong = Vec::new();
    for (name, case @ [_, _, query, expected]) in names.iter().zip(&cases) {
        let request = SearchRequest {
            query: (*query).to_owned(),
            plain: true,
            limit: Some(1000),
            no_sync: true,
            ..SearchRequest::default()
        };
        let results = store.searches().search(&request).unwrap().results;
        let is_found = results.iter().any(|result| result.path == *name);
        if is_found != (*expected == "yes") {
            wrong.push(case);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Names a note by a number without digits, so that no query finds it by name.
fn letters_of(at: usize) -> String {
    [at / 26 % 26, at % 26]
        .map(|letter| char::from(b'a' + letter as u8))
        .iter()
        .map(|c| format!("x{c}x"))
        .collect()
}

/// A language without stop words would be found in no note.
#[test]
fn languages_have_words_and_most_have_stems() {
    let has_stems = |language: &Language| language.stemmer().is_some();
    assert_eq!(Language::all().count(), 42);
    assert_eq!(Language::all().filter(has_stems).count(), 33);
    for language in Language::all() {
        assert_eq!(Language::of_code(language.code()), Some(language));
    }
}

/// Stems of another language than that of a note are none of its words.
#[test]
fn languages_are_told_by_their_words() {
    let cases = [
        ("The quick brown fox is not in the house.", ""),
        ("TODO: buy milk", ""),
        ("fn main() { println!(); }", ""),
        ("", ""),
        ("Die Katze ist nicht im Haus.", "de"),
        ("Le chat n’est pas dans la maison.", "fr"),
        ("El gato no está en la casa.", "es"),
        ("Il gatto non è nella casa.", "it"),
        ("O gato não está na casa.", "pt"),
        ("De kat is niet in het huis.", "nl"),
        ("Katten er ikke i huset, og hvad så?", "da"),
        ("Katten er ikke i huset, og hva så?", "no"),
        ("Katten är inte i huset.", "sv"),
        ("Kissa ei ole talossa, mutta se on pihalla.", "fi"),
        ("Kota nie ma w domu, ale jest w ogrodzie.", "pl"),
        ("Kočka není v domě, ale na zahradě.", "cs"),
        ("Кошки нет дома, но она во дворе.", "ru"),
        ("Кішки немає вдома, але вона у дворі.", "uk"),
        ("Η γάτα δεν είναι στο σπίτι.", "el"),
        ("Kedi evde değil, ama bahçede.", "tr"),
        ("A macska nem a házban van, és ez nem jó.", "hu"),
        ("החתול לא בבית", "he"),
        ("القط ليس في البيت", "ar"),
        ("گربه در خانه نیست", "fa"),
        ("बिल्ली घर में नहीं है", "hi"),
        ("猫は家にいない", ""),
        // Names, variables and lists of names are in no other language.
        ("Jan van der Berg, Maria de la Cruz", ""),
        ("Die Hard", ""),
        ("| a | o | e |\n| i | y | u |\n| n | s | z |", ""),
        ("令 n 為 l 的長度，c 為 d 的和，m 為 t 的差，s 為 k 的積。", ""),
        (
            "IDirect3DDevice9, ID3DXMesh, die, la, IUnknown, IDispatch, HRESULT, DWORD, LPCSTR, HWND, HINSTANCE",
            "",
        ),
    ];
    let found = cases.map(|(text, _)| (text, detect(text).map_or("", Language::code)));
    assert_eq!(found, cases);
}

/// Of a vault in English, whatever code, names and tables it has, no note has stems of another language.
#[test]
fn an_english_vault_has_no_other_language() {
    let vault = TestVault::new(&[
        ("Die Hard.md", "# Die Hard\n\nDie Hard is a film with Bruce Willis. Die, die, die."),
        ("Jan.md", "Jan van der Berg moved to La Paz with María de la Cruz."),
        ("Code.md", "```\nlet de = la + le; // und der die das\n```\nThe code is in `el`, `los`, `las`."),
        ("Table.md", "| a | de | la |\n| - | -- | -- |\n| i | o | e |\n| n | s | z |"),
        ("Formula.md", "Let $n$ and $m$ be such that $o$ is in $a$ and $e$ is not in $i$."),
        ("Letters.md", "- a\n- i\n- o\n- e\n- y\n- u"),
        (
            "Loan.md",
            "A café in Lyon has a certain je ne sais quoi that I would like to find in the others, too.",
        ),
    ]);
    let index = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), Options::default()).unwrap();
    let is_english = || {
        index.sync(SyncScope::All, silent()).unwrap();
        index.snapshot().unwrap().bm25.languages().unwrap().is_english()
    };
    assert!(is_english());
    vault.write("Katze.md", "Die Katze ist nicht im Haus, und der Hund auch nicht.");
    assert!(!is_english());
}

/// A suggestion is written as notes write the word, in the script of the query.
#[test]
fn suggestions_are_written_as_in_the_notes() {
    let cases = [
        ("Der Schlüssel liegt unter dem Stein, und die Tür ist zu.", "Schlüsel", "schlüssel"),
        ("Мы купили холодильник, который стоит на кухне.", "холодилник", "холодильник"),
        ("Ο υπολογιστής είναι στο γραφείο και δεν είναι στο σπίτι.", "υπολογστής", "υπολογιστής"),
    ];
    for (text, query, expected) in cases {
        let vault = TestVault::new(&[("a.md", text)]);
        let request = SearchRequest { query: query.to_owned(), ..SearchRequest::default() };
        let reply = vault.store().searches().search(&request).unwrap();
        assert_eq!(reply.did_you_mean.as_deref(), Some(expected), "{query}");
    }
}

/// A question has common words, which are those of its language and not English ones.
#[test]
fn common_words_are_those_of_the_language() {
    let vault = TestVault::new(&[
        (
            "By.md",
            "Oslo er en by i Norge, og noe av det beste der er utsikten fra Ekeberg, som hun viste meg.",
        ),
        ("Og.md", "Hva som ble gjort etter det, vet jeg ikke, men hun fortalte meg noe om hvordan det gikk."),
        ("Bok.md", "Jeg har lest en bok om det, og hun sa at den ble skrevet uten hjelp av noen andre."),
    ]);
    let words = |query: &str| -> Vec<String> {
        let request = SearchRequest { query: query.to_owned(), explain: true, ..SearchRequest::default() };
        let explained = vault.store().searches().search(&request).unwrap().explain.unwrap();
        let mut words: Vec<String> = explained.words.into_iter().map(|word| word.word).collect();
        words.sort();
        words
    };
    assert_eq!(words("hva er det i en by"), ["by"]);
    assert_eq!(words("what is in the book"), ["book"]);
}

/// A few notes in another language change nothing for queries in English that have words of it.
#[test]
fn a_few_foreign_notes_leave_english_queries_alone() {
    let vault = TestVault::new(&[
        ("War.md", "A war is fought by the men of this country, and it was lost."),
        ("Page.md", "Each man page is a page of the manual, and you can read it."),
        ("Hat.md", "This is the hat with which he did the trick that we saw."),
        ("Other.md", "The fence of the garden is old, and the house is not new."),
        ("Krieg.md", "Der Krieg war lang, und man hat ihn nicht vergessen."),
    ]);
    let stop_words = |query: &str| {
        let request = SearchRequest { query: query.to_owned(), explain: true, ..SearchRequest::default() };
        vault.store().searches().search(&request).unwrap().explain.unwrap().stop_words
    };
    for query in ["war crimes", "man page", "hat trick", "war"] {
        assert!(stop_words(query).is_empty(), "{query}");
    }
    assert_eq!(stop_words("wer hat das vergessen"), ["wer", "hat", "das"]);
    // Nor do many notes: a word that is common in their language may be one of another.
    for at in 0..5 {
        vault.write(&format!("Brief {at}.md"), "Der Brief ist lang, und wir haben ihn nicht gelesen.");
    }
    for (query, expected) in [
        ("war crimes", &[][..]),
        ("the man page", &["the"]),
        ("die hard", &[]),
        ("wer hat das vergessen", &["wer", "hat", "das"]),
    ] {
        assert_eq!(stop_words(query), expected, "{query}");
    }
}

/// A name that is written as one word ranks like one in the parts of the index that have only one of both forms.
#[test]
fn names_are_found_in_either_form_in_several_segments() {
    let notes = [
        ("B.md", "Wir haben den Film auf Youtube und Onedrive gestellt, aber er ist noch nicht fertig."),
        ("C.md", "Youtube ist langsam, und das ist nicht gut."),
        ("D.md", "Youtube ist auch heute langsam, und das ist nicht gut."),
        ("A.md", "Das Video liegt bei YouTube und OneDrive, und es ist nicht öffentlich."),
        ("E.md", "Der Zaun ist hoch, und das Tor ist nicht offen."),
    ];
    let found = |vault: &TestVault| {
        let store = vault.store();
        ["YouTube", "Youtube", "OneDrive", "onedrive"].map(|query| {
            let request = SearchRequest { query: query.to_owned(), plain: true, ..SearchRequest::default() };
            let results = store.searches().search(&request).unwrap().results;
            results.into_iter().map(|hit| (hit.path, format!("{:.4}", hit.score))).collect::<Vec<_>>()
        })
    };
    let together = found(&TestVault::new(&notes));
    assert_eq!(together.each_ref().map(Vec::len), [4, 4, 2, 2]);
    let vault = TestVault::new(&notes[..1]);
    found(&vault);
    for (path, text) in &notes[1..] {
        vault.write(path, text);
        found(&vault);
    }
    assert_eq!(found(&vault), together);
}

/// The passage that is shown is the one with the compound by which the note was found.
#[test]
fn compounds_of_short_words_are_shown() {
    let long = format!(
        "{}Das Hausboot liegt am See, und es ist nicht groß.\n\nDie Hausaufgabenliste ist nicht hier.\n",
        "Der Garten ist grün, und die Blumen sind nicht mehr so schön wie im Sommer.\n\n".repeat(40)
    );
    let vault =
        TestVault::new(&[("Lang.md", &long), ("Boot.md", "Das Boot ist alt, und der Motor ist nicht neu.")]);
    let request = SearchRequest { query: "Haus".to_owned(), ..SearchRequest::default() };
    let results = vault.store().searches().search(&request).unwrap().results;
    let [hit] = &results[..] else { panic!("{results:?}") };
    let marked: Vec<&str> = hit.marks.iter().map(|&(start, end)| &hit.snippet[start..end]).collect();
    // No note has a word `Aufgabenliste`.
    assert_eq!(marked, ["Hausboot"]);
}

/// The parts of a word that no note has are words of the notes, and not stems of several languages.
#[test]
fn nonsense_finds_nothing_in_many_languages() {
    let cases = word_cases();
    let names: Vec<String> = (0..cases.len()).map(|at| format!("{}.md", letters_of(at))).collect();
    let notes: Vec<(&str, &str)> =
        names.iter().zip(&cases).map(|(name, [_, text, ..])| (name.as_str(), *text)).collect();
    let vault = TestVault::new(&notes);
    let store = vault.store();
    for query in ["lenisure", "végrebajt", "komdandoen", "onaliseri", "kitabhausest", "serverkotkami"] {
        assert_eq!(paths(&store, query), [""; 0], "{query}");
    }
}

/// What is said about a query speaks of the words that rank, wherever the query came from.
#[test]
fn reasons_and_dated_queries_know_the_common_words_of_the_language() {
    let vault = TestVault::new(&[
        ("Boot.md", "---\ndate: 2026-03-04\n---\nDas Boot ist alt, und der Motor ist nicht mehr der beste."),
        ("Haus.md", "---\ndate: 2025-03-04\n---\nDas Haus ist neu, und der Garten ist nicht sehr groß."),
        ("Zaun.md", "Der Zaun ist hoch, und das Tor ist nicht offen, weil es klemmt."),
    ]);
    let store = vault.store();
    let search = |query: &str| SearchRequest {
        query: query.to_owned(),
        mode: Some(Mode::Bm25),
        explain: true,
        ..SearchRequest::default()
    };
    let request = WhyRequest { note: "Haus".to_owned(), search: search("warum ist das Boot alt") };
    assert_eq!(store.searches().why(&request).unwrap().missing_words, ["Boot", "alt"]);
    let reply =
        store.searches().search(&search("Was haben wir im März 2026 über das Boot geschrieben")).unwrap();
    let explained = reply.explain.unwrap();
    assert_eq!(explained.stop_words, ["was", "haben", "wir", "uber", "das"]);
    assert_eq!(explained.words.iter().map(|word| &*word.word).collect::<Vec<_>>(), ["geschrieben", "boot"]);
}

/// The notes are found whichever were indexed together.
#[test]
fn compounds_are_found_in_several_segments() {
    let notes = [
        ("Boot.md", "Der Hausboot und die Küche sind neu, aber das ist nicht wichtig."),
        ("Zwei.md", "Wir haben ein kleines Boot auf dem See, und es ist nicht groß."),
        ("Alt.md", "Die Hauser waren nicht hier, und das ist auch gut so."),
        ("Bau.md", "Die Häuser und die Gärten sind alt, aber der Zaun ist neu."),
    ];
    let found = |vault: &TestVault| {
        let store = vault.store();
        ["Haus", "hauser", "Häuser", "Boote"].map(|query| {
            let mut paths = paths(&store, query);
            paths.sort();
            paths
        })
    };
    let together = found(&TestVault::new(&notes));
    assert!(together[0].iter().any(|path| path == "Boot.md"), "{:?}", together[0]);
    let vault = TestVault::new(&notes[..1]);
    found(&vault);
    for (path, text) in &notes[1..] {
        vault.write(path, text);
        found(&vault);
    }
    assert_eq!(found(&vault), together);
    // A note that is gone is no part of what the vault knows.
    std::fs::remove_file(vault.root().join("Zwei.md")).unwrap();
    assert_eq!(found(&vault), found(&TestVault::new(&[notes[0], notes[2], notes[3]])));
}

/// What a file of queries adds up to.
#[derive(Debug)]
struct Success {
    /// Gives the share of the queries whose note is first.
    first: f64,
    /// Share of the queries whose note is among the first ten.
    ten: f64,
    /// Mean reciprocal rank among the first ten.
    mrr: f64,
}

fn measure(store: &Store, queries: &str, mode: Mode) -> Success {
    let mut success = Success { first: 0.0, ten: 0.0, mrr: 0.0 };
    let cases: Vec<(&str, &str)> = queries.lines().filter_map(|line| line.split_once('\t')).collect();
    for (query, path) in &cases {
        let request = SearchRequest {
            query: (*query).to_owned(),
            plain: true,
            mode: Some(mode),
            limit: Some(10),
            no_sync: true,
            ..SearchRequest::default()
        };
        let results = store.searches().search(&request).unwrap().results;
        if let Some(rank) = results.iter().position(|result| result.path == *path) {
            success.first += f64::from(u8::from(rank == 0));
            success.ten += 1.0;
            success.mrr += 1.0 / (rank + 1) as f64;
        }
    }
    let count = cases.len() as f64;
    Success { first: success.first / count, ten: success.ten / count, mrr: success.mrr / count }
}

/// Measures search in Chinese on the notes of OI Wiki, in the folder that `SIDENOTE_TEST_OI_WIKI` names.
#[test]
#[ignore = "it needs SIDENOTE_TEST_OI_WIKI, a copy of OI Wiki"]
fn chinese_is_found_without_a_dictionary() {
    let root = env_path("SIDENOTE_TEST_OI_WIKI");
    let index = tempfile::tempdir().unwrap();
    let store = Store::open(Open {
        vault: Some(root),
        index: Some(index.path().to_owned()),
        flags: vec![("embed.provider", "none".to_owned(), "test")],
        ..Open::default()
    })
    .unwrap();
    store.index().sync(silent()).unwrap();
    let success = measure(&store, include_str!("../languages/oi-wiki.tsv"), Mode::Bm25);
    say(&format!("{success:?}"));
    assert!(success.first >= 0.58 && success.ten >= 0.98 && success.mrr >= 0.74, "{success:?}");
}
