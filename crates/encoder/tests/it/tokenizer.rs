//! The tokenizer against a plain one that looks up every part of a word in a table.

use std::collections::HashMap;
use std::sync::LazyLock;

use proptest::prelude::{Strategy, any, prop, prop_assert_eq, proptest};
use sidenote_encoder::{Asset, Tokenizer, built_in};
use unicode_normalization::UnicodeNormalization;
use yada::unit::Unit;

const SPACE: char = '\u{2581}';

static ASSET: LazyLock<Asset> = LazyLock::new(|| Asset::parse(built_in()).unwrap());
static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::new(&ASSET).unwrap());
static PLAIN: LazyLock<Plain> = LazyLock::new(Plain::new);

/// A tokenizer that takes its time.
struct Plain {
    pieces: HashMap<String, u32>,
    texts: HashMap<u32, String>,
    scores: Vec<f32>,
    replacements: HashMap<char, String>,
}

/// Returns all keys of a double array with their values.
fn entries(array: &[u8]) -> Vec<(String, u32)> {
    let units: Vec<Unit> =
        array.as_chunks().0.iter().map(|bytes| Unit::from_u32(u32::from_le_bytes(*bytes))).collect();
    let (mut entries, mut open) = (Vec::new(), vec![(0usize, Vec::new())]);
    while let Some((node, key)) = open.pop() {
        let base = units[node].offset() as usize ^ node;
        if units[node].has_leaf() {
            entries.push((String::from_utf8(key.clone()).unwrap(), units[base].value()));
        }
        for label in 1..=255u8 {
            let child = base ^ usize::from(label);
            if units[child].label() == u32::from(label) {
                let mut key = key.clone();
                key.push(label);
                open.push((child, key));
            }
        }
    }
    entries
}

impl Plain {
    fn new() -> Self {
        let pieces: HashMap<String, u32> = entries(ASSET.pieces).into_iter().collect();
        let replacement = |(key, place): (String, u32)| {
            let (from, length) = ((place >> 8) as usize, (place & 255) as usize);
            let text = &ASSET.replacement_text[from..from + length];
            (key.chars().next().unwrap(), String::from_utf8(text.to_vec()).unwrap())
        };
        Self {
            texts: pieces.iter().map(|(piece, id)| (*id, piece.clone())).collect(),
            pieces,
            scores: ASSET.scores.iter().map(|score| f32::from_le_bytes(*score)).collect(),
            replacements: entries(ASSET.replacements).into_iter().map(replacement).collect(),
        }
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        let replaced = text
            .nfc()
            .filter(|c| *c != '\0')
            .map(|c| self.replacements.get(&c).cloned().unwrap_or_else(|| c.to_string()));
        let replaced: String = replaced.collect();
        replaced
            .split([' ', SPACE])
            .filter(|word| !word.is_empty())
            .flat_map(|word| self.split(word))
            .collect()
    }

    fn split(&self, word: &str) -> Vec<u32> {
        let word: Vec<char> = [SPACE].into_iter().chain(word.chars()).collect();
        let unknown = self.scores.iter().copied().fold(0.0, f32::min) - 10.0;
        let mut best = vec![(f32::NEG_INFINITY, 0, ASSET.unknown_id); word.len() + 1];
        best[0].0 = 0.0;
        for start in 0..word.len() {
            for end in start + 1..=word.len().min(start + 48) {
                let part: String = word[start..end].iter().collect();
                let known = self.pieces.get(&part).map(|id| (self.scores[*id as usize], *id));
                let single = (end == start + 1).then_some((unknown, ASSET.unknown_id));
                for (score, id) in known.into_iter().chain(single) {
                    let score = best[start].0 + score;
                    if score > best[end].0 {
                        best[end] = (score, start, id);
                    }
                }
            }
        }
        let (mut ids, mut end) = (Vec::new(), word.len());
        while end > 0 {
            let (_, start, id) = best[end];
            ids.push(id);
            end = start;
        }
        ids.reverse();
        ids.dedup_by(|a, b| a == b && *a == ASSET.unknown_id);
        ids
    }
}

fn ids(text: &str) -> Vec<u32> {
    let ids = TOKENIZER.encode("", text, usize::MAX);
    assert_eq!((ids[0], ids[ids.len() - 1]), (ASSET.start_id, ASSET.end_id));
    ids[1..ids.len() - 1].to_vec()
}

fn pieces(text: &str) -> String {
    let piece = |id: &u32| PLAIN.texts.get(id).map_or("<unk>", String::as_str);
    ids(text).iter().map(piece).collect::<Vec<_>>().join(" ")
}

#[test]
fn words_are_split_into_their_most_probable_pieces() {
    let cases = [
        ("", ""),
        (" \n\t ", ""),
        ("Links survive a rename.", "▁Links ▁survive ▁a ▁re name ."),
        ("Datenbankverbindung", "▁Datenbank verbindung"),
        ("ＡＢＣ１２３ ﬁne", "▁ABC 123 ▁fine"),
        ("zero\u{200B}width\u{0}\u{7F}end", "▁zero ▁ width end"),
        ("東京の天気", "▁ 東京 の 天 気"),
        ("Cafe\u{301}", "▁Café"),
        ("\u{1112}\u{1161}\u{11AB}국어", "▁한국 어"),
        ("a \u{1F9FF}\u{10380}\u{10381} b", "▁a ▁ <unk> ▁b"),
    ];
    for (text, expected) in cases {
        assert_eq!(pieces(text), expected, "{text:?}");
    }
}

/// The ids that other programs give for the whole vocabulary. The most probable pieces keep theirs.
#[test]
fn ids_are_those_of_the_published_tokenizer() {
    assert_eq!(TOKENIZER.encode("", "Hello world", 512), [0, 35378, 8999, 2]);
    assert_eq!(TOKENIZER.encode("query: ", "Hello world", 512), [0, 41, 1294, 12, 35378, 8999, 2]);
    assert_eq!(TOKENIZER.encode("passage: ", "", 512), [0, 46692, 12, 2]);
}

#[test]
fn every_character_is_read_as_by_the_plain_tokenizer() {
    let all: Vec<char> =
        ('\0'..='\u{1FFFF}').chain('\u{2A6D0}'..='\u{2FA30}').chain('\u{E0000}'..='\u{E0200}').collect();
    for run in all.chunks(50) {
        let text: String = run.iter().map(|c| format!("{c} a{c}b ")).collect();
        assert_eq!(ids(&text), PLAIN.encode(&text), "{:X}", u32::from(run[0]));
    }
}

#[test]
fn more_than_the_limit_is_not_read() {
    let text = "word ".repeat(1_000);
    assert_eq!(TOKENIZER.count(&text), 1_000);
    let ids = TOKENIZER.encode("query: ", &text, 512);
    assert_eq!((ids.len(), ids[511]), (512, ASSET.end_id));
    assert_eq!(ids, TOKENIZER.encode("query: ", &"word ".repeat(600), 512));
    assert_eq!(TOKENIZER.encode("query: ", "word", 2), [ASSET.start_id, ASSET.end_id]);
}

#[test]
fn hostile_lines_take_linear_time() {
    for line in ["a", "[", "\u{0301}", "각", "\0", "語", "\u{FDFA}", "🦀", "\u{10380}", "e\u{0301}"] {
        let count = TOKENIZER.count(&line.repeat(200_000));
        assert!(count <= 200_000 * 18, "{line:?}: {count}");
    }
}

/// Gives text that mixes letters with the characters that tokenizers trip over.
fn text() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\u{A0}",
        "\u{3000}",
        "\u{200B}",
        "\u{200D}",
        "\u{FE0F}",
        "\0",
        "\u{1B}",
        "\u{0301}",
        "\u{0323}",
        "\u{302E}",
        "ing",
        "##",
        "-",
        "_",
        "'",
        "“",
        "語",
        "か\u{3099}",
        "İ",
        "ß",
        "Σ",
        "ﬁ",
        "각",
        "🦀",
        "👍🏽",
        "<unk>",
        "<s>",
        "\u{E000}",
        "\u{FEFF}",
        "\u{2028}",
        "1",
        "٣",
        "▁",
        "¼",
        "ﷺ",
        "привет",
        "ไทย",
        "हिन्दी",
        "שלום",
        "\u{10380}",
        "\u{10381}",
    ]);
    let part = proptest::prop_oneof![
        4 => "[a-zA-Z]{1,12}",
        3 => odd.prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "\\PC{0,8}",
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..proptest::prelude::ProptestConfig::with_cases(1_000) })]

    #[test]
    fn any_text_is_read_as_by_the_plain_tokenizer(text in text()) {
        prop_assert_eq!(ids(&text), PLAIN.encode(&text));
        prop_assert_eq!(TOKENIZER.count(&text), PLAIN.encode(&text).len());
    }
}
