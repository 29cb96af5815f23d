use super::{Quotation, WordPairs};

/// A passage, and the share of the pairs of a query that it has, in percent.
type Place = Option<(usize, u32)>;

/// Returns what a query quotes of passages.
fn quoted(query: &str, passages: &[&str]) -> Place {
    let found = WordPairs::of(query)?.quoted_among(passages.iter().copied());
    found.map(|Quotation { passage, share }| (passage, (share * 100.0).round() as u32))
}

const SENTENCE: &str = "The kettle has to boil for three minutes before the tea is put in";

#[test]
fn a_sentence_is_found_where_its_words_stand_in_order() {
    let scattered =
        "Minutes of the meeting. Three kettles boil, has the tea to be put in before, the for is.";
    let other = "The kettle has to be clean.";
    let cases: [(&[&str], Place); 7] = [
        (&[scattered, other, SENTENCE], Some((2, 100))),
        // Case, accents, marks and breaks of lines make no difference.
        (&[other, "THE KETTLE has\nto (boil) for thrée minutes, before the tea is put in."], Some((1, 100))),
        // A footnote parts two words.
        (&["The kettle has to boil for three [3] minutes before the tea is put in"], Some((0, 92))),
        // It goes on in the next passage: that with more of it is shown.
        (
            &[scattered, "and: the kettle has to boil", "for three minutes before the tea is put in"],
            Some((2, 92)),
        ),
        (&["the kettle has to boil for three minutes before", "the tea is put in"], Some((0, 92))),
        // Passages that do not follow each other are no place.
        (&["the kettle has to boil for three", "A cup is clean.", "minutes before the tea is put in"], None),
        (&[scattered, other], None),
    ];
    for (passages, expected) in cases {
        assert_eq!(quoted(SENTENCE, passages), expected, "{passages:?}");
    }
}

#[test]
fn names_and_questions_quote_nothing() {
    assert!(WordPairs::of("the kettle has to boil").is_none());
    assert!(WordPairs::of("").is_none());
    assert!(WordPairs::of(&"again and ".repeat(50)).is_none());
    let question = "how long does the kettle have to boil for the tea";
    assert_eq!(quoted(question, &[SENTENCE]), None);
}

#[test]
fn scripts_without_spaces_are_quoted_by_their_characters() {
    let sentence = "水壶必须先煮沸三分钟才能泡茶";
    assert_eq!(
        quoted(sentence, &["三分钟。水壶。茶。", "他说水壶必须先煮沸三分钟才能泡茶。"]),
        Some((1, 100))
    );
}

#[test]
fn a_pasted_page_is_found_by_its_beginning() {
    let page: String = (0..2_000).map(|at| format!("word{at} ")).collect();
    assert_eq!(quoted(&page, &["nothing", &page]), Some((1, 100)));
    let beginning: String = (0..200).map(|at| format!("word{at} ")).collect();
    assert_eq!(quoted(&page, &[&beginning]), Some((0, 100)));
}
