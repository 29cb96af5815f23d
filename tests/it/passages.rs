//! Tests how notes are cut into passages.

use insta::assert_snapshot;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use sidenote::index::indexed_document::ParsedNote;
use sidenote::markdown::note::Note;
use sidenote::markdown::passage::{estimate_tokens, passages};
use sidenote::markdown::path::NotePath;

fn texts(text: &str) -> Vec<String> {
    let reading = ParsedNote::new(&NotePath::parse("Gauge notes.md").unwrap(), text.as_bytes());
    reading.embedded_texts()
}

#[test]
fn a_short_note_is_one_passage_under_its_title() {
    let got = texts("---\ntags: [x]\n---\n# River\n\nWater is *high*.\n\n## Gauges\n\n- noon\n- dusk\n");
    assert_snapshot!(got.join("\n---\n"), @r"
    River
    Water is high.
    Gauges
    noon
    dusk
    ");
}

#[test]
fn a_title_that_opens_the_text_is_not_repeated() {
    assert_eq!(texts("---\ntitle: Water is high…\n---\nWater is high today.\n"), ["Water is high today."]);
    assert_eq!(texts("Water.\n"), ["Gauge notes\nWater."]);
}

#[test]
fn a_summary_is_a_passage_of_its_own() {
    assert_eq!(texts("---\nsummary: About rivers\n---\nWater.\n"), ["Gauge notes\nWater.", "About rivers"]);
}

#[test]
fn long_notes_are_cut_at_headings_and_paragraphs() {
    let paragraph = "The gauge at the weir is read every morning before the sluices are opened. ".repeat(6);
    let text = format!(
        "# River\n\n{paragraph}\n\n## Weir\n\n{paragraph}\n\n{paragraph}\n\n### Sluice\n\n{paragraph}\n"
    );
    let note = Note::parse(&text);
    let cut = passages(&text, &note);
    let trails: Vec<Vec<&str>> = cut
        .iter()
        .map(|passage| passage.trail.iter().map(|&at| note.headings[at].text.as_str()).collect())
        .collect();
    assert_eq!(cut.len(), 4, "{trails:?}");
    assert_eq!(trails.last().unwrap(), &["River", "Weir", "Sluice"]);
    assert!(cut.iter().all(|passage| estimate_tokens(&passage.text) <= 240));
}

#[test]
fn comments_are_left_out() {
    assert_eq!(texts("seen %%hidden%% seen\n"), ["Gauge notes\nseen   seen"]);
}

#[test]
fn a_very_long_paragraph_is_cut() {
    let text = "word word word word\n".repeat(2000);
    let note = Note::parse(&text);
    let cut = passages(&text, &note);
    assert!(cut.len() > 20, "{}", cut.len());
    assert!(cut.iter().all(|passage| estimate_tokens(&passage.text) < 500));
}

proptest! {
    #[test]
    fn tokens_are_estimated_by_letters_and_punctuation(text in "([a-zA-Z0-9]{0,12}|[\\x00-\\x7F]{0,4}){0,16}") {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let begun: usize = words.map(|word| word.len().div_ceil(5)).sum();
        let signs = text.bytes().filter(|byte| !byte.is_ascii_alphanumeric() && !byte.is_ascii_whitespace());
        assert_eq!(estimate_tokens(&text), begun + signs.count());
    }

    #[test]
    fn passages_are_ordered_and_within_the_note(text in "([#>\\-*` \n]{0,3}[a-z一-龥 ]{0,30}\n{0,2}){0,30}") {
        let note = Note::parse(&text);
        let (mut end, cut) = (0, passages(&text, &note));
        prop_assert_eq!(cut.is_empty(), note.pieces.is_empty(), "{:?}", &note.pieces);
        for passage in cut {
            prop_assert!(passage.span.start >= end && passage.span.end <= text.len());
            end = passage.span.end;
        }
    }
}
