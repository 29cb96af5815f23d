//! Tests the embedded sentence transformer: its files, its tokenizer against the reference, its vectors.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex};

use proptest::prelude::{Strategy, any, prop, prop_assert_eq, proptest};
use sidenote::config::Config;
use sidenote::index::embed::model_selection::PreviousModels;
use sidenote::index::embed::wordpiece::WordPiece;
use sidenote::index::embed::{
    Effort, Embed, MiniLm, ModelId, attention_by_instructions, products_by_instructions,
};
use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::vault::Vault;
use tokenizers::models::wordpiece::WordPiece as Reference;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::{Tokenizer, TruncationParams};

use crate::support::{TestVault, say};

const VOCABULARY: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/foundation/assets/all-MiniLM-L6-v2/vocab.txt"));
const FILES: [&str; 3] = ["minilm_int8.onnx", "minilm_int8.data", "vocab.txt"];
const MAX_IDS: usize = 256;

static OURS: LazyLock<WordPiece> = LazyLock::new(|| WordPiece::new(VOCABULARY));
static THEIRS: LazyLock<Tokenizer> = LazyLock::new(reference);
static MINILM: LazyLock<MiniLm> = LazyLock::new(MiniLm::default);

fn reference() -> Tokenizer {
    let vocabulary = Reference::read_bytes(VOCABULARY.as_bytes()).unwrap();
    let mut tokenizer = Tokenizer::new(Reference::builder().vocab(vocabulary).build().unwrap());
    tokenizer.with_normalizer(Some(BertNormalizer::default())).unwrap();
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    tokenizer.with_post_processor(Some(BertProcessing::new(("[SEP]".into(), 102), ("[CLS]".into(), 101))));
    tokenizer
        .with_truncation(Some(TruncationParams { max_length: MAX_IDS, ..TruncationParams::default() }))
        .unwrap();
    tokenizer
}

fn reference_ids(text: &str) -> Vec<u32> {
    THEIRS.encode(text, true).unwrap().get_ids().to_vec()
}

/// Compares the ids of a text, cut to what the model sees, with those of the `tokenizers` crate.
fn check_ids(text: &str) {
    assert_eq!(OURS.encode(text, MAX_IDS), reference_ids(text), "{text:?}");
}

fn pieces(text: &str) -> String {
    let vocabulary: Vec<&str> = VOCABULARY.lines().collect();
    let ids = OURS.encode(text, MAX_IDS);
    ids.iter().map(|&id| vocabulary[id as usize]).collect::<Vec<_>>().join(" ")
}

fn one(text: &str) -> Vec<f32> {
    MINILM.embed(&[text], Effort::Foreground).unwrap().remove(0)
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn assets_are_the_published_ones() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/foundation/assets/all-MiniLM-L6-v2");
    let readme = std::fs::read_to_string(format!("{folder}/README.md")).unwrap();
    let mut all = blake3::Hasher::new();
    for name in FILES {
        let bytes = std::fs::read(format!("{folder}/{name}")).unwrap();
        let row = readme.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2], bytes.len().to_string(), "{name}");
        assert_eq!(cells[4], blake3::hash(&bytes).to_hex().as_str(), "{name}");
        all.update(&bytes);
    }
    all.update(b"quantized by row");
    let fingerprint = MINILM.model().fingerprint();
    assert_eq!(fingerprint, &all.finalize().to_hex()[..16]);
    assert!(readme.contains(fingerprint));
}

#[test]
fn a_model_id_prints_its_name_and_keys_its_vectors() {
    assert_eq!(MINILM.model().to_string(), "minilm");
    assert_eq!(MINILM.model().key(), "minilm/384/5a85d15cd87168ef");
}

#[test]
fn wordpiece_reads_like_bert() {
    for (text, expected) in [
        ("", "[CLS] [SEP]"),
        ("Links survive a rename.", "[CLS] links survive a ren ##ame . [SEP]"),
        ("Café ÉCOLE naïve", "[CLS] cafe ecole naive [SEP]"),
        ("zettelkasten", "[CLS] ze ##tte ##lka ##sten [SEP]"),
        ("snake_case [[a|b]]", "[CLS] snake _ case [ [ a | b ] ] [SEP]"),
        ("中文 and 東京", "[CLS] 中 文 and 東 京 [SEP]"),
        ("zero\u{200B}width\u{0}\u{FFFD}\u{7F}", "[CLS] zero ##wi ##dt ##h [SEP]"),
        ("tab\tline\r\nwide\u{3000}space", "[CLS] tab line wide space [SEP]"),
        ("\u{F8FF} 🦀 [CLS]", "[CLS] [UNK] [ cl ##s ] [SEP]"),
    ] {
        assert_eq!(pieces(text), expected, "{text:?}");
        check_ids(text);
    }
}

#[test]
fn wordpiece_equals_the_reference_on_many_scripts() {
    for text in [
        "The quick brown fox jumps over the lazy dog; 3.14159 × 10⁻⁵ ≠ ½!",
        "Größe, Straße, ẞ, Ǆ, ﬁne ﬂow, İstanbul, ıspanak, Ÿ",
        "Ελληνικά ΣΊΣΥΦΟΣ ς, ᾳ ᾼ Ὀδυσσεύς",
        "Съешь же ещё этих мягких французских булок, ЙОД",
        "עִבְרִית וְנִיקּוּד: שָׁלוֹם",
        "اَلْعَرَبِيَّةُ ١٢٣ لا إله",
        "हिन्दी में क्षत्रिय किताबें १२३",
        "বাংলা தமிழ் తెలుగు ಕನ್ನಡ മലയാളം සිංහල",
        "ภาษาไทยไม่มีช่องว่าง ລາວ မြန်မာ ខ្មែរ",
        "日本語のテキストがガ パﾊﾟ ｶﾞ〜",
        "한국어 조합형 \u{1112}\u{1161}\u{11AB} 각",
        "豈更車 \u{2F800}\u{2F801} 㐀 𠀀 𪚥 \u{2B820} \u{2CEB0}",
        "Tiếng Việt: ỗ ằ ặ, a\u{0323}\u{0302} a\u{0302}\u{0323}",
        "e\u{0301}\u{0301}\u{0301} \u{0301}start q\u{0307}\u{0323} \u{20DD}o\u{20DD}",
        "👩‍👩‍👧‍👦 👍🏽 🇫🇷 ☃\u{FE0F} 1\u{FE0F}\u{20E3} 🏴\u{E0067}\u{E007F}",
        "a\u{00A0}b\u{2003}c\u{2028}d\u{2029}e\u{0085}f\u{000B}g\u{000C}h\u{1680}i\u{180E}j",
        "\u{FEFF}bom\u{00AD}hyphen\u{061C}\u{202E}bidi\u{2066}\u{E000}private\u{F0000}",
        "“quotes” ‘single’ «guillemets» — – ‐ … ‽ ⁂ ¿¡ § ¶ · ، 。、！",
        "$100 +1 <tag> ^caret `code` ~tilde | pipe = € £ ¥ ₿ ± ∞",
        "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ①②③ ㎏ Ⅷ ª º",
        "𞤀𞤁 𐐀𐐨 Ꭰꭰ ა Ა",
        "\u{16D68} \u{105C9} \u{11383} \u{1E030} \u{10EFD} \u{302E}x\u{302F} \u{1D165}\u{1D16E}",
        "https://example.org/a-b_c?d=%20&e#f user@host C++ C# F# .NET node.js",
        "## Heading\n\n- [ ] task #tag/sub ^block ![[embed#h|x]] `let x = y;`",
    ] {
        check_ids(text);
        check_ids(&text.repeat(20));
    }
}

#[test]
fn wordpiece_equals_the_reference_on_long_words() {
    for letter in ["a", "é", "語", "ा", "🦀", "##", "ing"] {
        for times in [1, 33, 34, 50, 99, 100, 101, 102, 1_000] {
            check_ids(&format!("before {} after", letter.repeat(times)));
        }
    }
}

#[test]
fn wordpiece_equals_the_reference_on_every_character() {
    // Planes 0 and 1 whole; of the others the edges of what the rules name, as between them all characters are alike.
    let all: Vec<char> = ('\0'..='\u{1FFFF}')
        .chain('\u{2A6D0}'..='\u{2A710}')
        .chain('\u{2B730}'..='\u{2B930}')
        .chain('\u{2CEA0}'..='\u{2CEC0}')
        .chain('\u{2F7F0}'..='\u{2FA30}')
        .chain('\u{E0000}'..='\u{E0200}')
        .chain('\u{EFFF0}'..='\u{F0010}')
        .chain('\u{10FFF0}'..=char::MAX)
        .collect();
    // A run is short enough for none of it to be cut off.
    for run in all.chunks(25) {
        check_ids(&run.iter().map(|c| format!("{c} a{c}b ")).collect::<String>());
    }
}

#[test]
fn wordpiece_counts_what_it_does_not_cut() {
    for (text, expected) in [("", 0), ("links survive", 2), ("zettelkasten!", 5)] {
        assert_eq!(OURS.count(text), expected, "{text:?}");
    }
    assert_eq!(OURS.count(&"word ".repeat(1_000)), 1_000);
    assert_eq!(OURS.encode(&"word ".repeat(1_000), MAX_IDS).len(), MAX_IDS);
    assert_eq!(OURS.encode(&"zettelkasten ".repeat(100), 6), [101, 27838, 4674, 26518, 16173, 102]);
}

#[test]
fn wordpiece_takes_hostile_lines_in_linear_time() {
    for (line, tokens) in [
        ("a".repeat(10_000_000), 1),
        ("[".repeat(2_000_000), 2_000_000),
        ("\u{0301}".repeat(2_000_000), 0),
        ("\u{302E}\u{1D165}".repeat(1_000_000), 1),
        ("각".repeat(1_000_000), 1),
        ("\0".repeat(10_000_000), 0),
    ] {
        assert_eq!(OURS.count(&line), tokens);
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
        "\u{0345}",
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
        "[CLS]",
        "[UNK]",
        "\u{E000}",
        "\u{FEFF}",
        "\u{2028}",
        "1",
        "٣",
    ]);
    let part = proptest::prop_oneof![
        4 => "[a-zA-Z]{1,12}",
        2 => odd.prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "\\PC{0,8}",
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(3_000))]

    #[test]
    fn wordpiece_equals_the_reference_on_any_text(text in text()) {
        prop_assert_eq!(OURS.encode(&text, MAX_IDS), reference_ids(&text));
    }
}

#[test]
fn a_vector_has_length_one() {
    for text in ["", " ", "a", "How do links survive a rename?", "日本語", &"long ".repeat(5_000)] {
        let vector = one(text);
        assert_eq!(vector.len(), MINILM.dimensions());
        assert!((cosine(&vector, &vector) - 1.0).abs() < 1e-5, "{text:?}");
    }
}

#[test]
fn a_vector_does_not_depend_on_neighbours_or_effort() {
    let texts =
        ["rename a note", "", "Bread needs flour, water, salt and time.", &"word ".repeat(300), "東京"];
    let alone: Vec<_> = texts.iter().map(|text| one(text)).collect();
    for effort in [Effort::Foreground, Effort::Background, Effort::Bulk] {
        assert!(MINILM.embed(&texts, effort).unwrap() == alone, "{effort:?}");
    }
    assert!(MINILM.embed(&[], Effort::Bulk).unwrap().is_empty());
}

#[test]
fn text_beyond_the_maximum_of_tokens_is_ignored() {
    let whole = "word ".repeat(MINILM.max_tokens());
    assert_eq!(MINILM.count_tokens(&whole), MINILM.max_tokens());
    assert!(one(&whole) == one(&format!("{whole} and more")));
    assert!(one(&whole) != one(&"word ".repeat(MINILM.max_tokens() - 1)));
}

#[test]
fn a_question_is_nearer_to_its_answer_than_to_other_text() {
    for (question, answer, other) in [
        (
            "how do links survive a rename",
            "When a note gets another name, every reference to it is rewritten, so that none of them breaks.",
            "Knead the dough for ten minutes and let it rise in a warm place until it has doubled.",
        ),
        (
            "what did we decide about the database",
            "Decision of 3 May: we stay with SQLite; Postgres is more than a single user needs.",
            "The meeting room on the second floor has a new projector.",
        ),
        (
            "cheap flights to Tokyo",
            "Air tickets to Japan cost least in February.",
            "The Tokyo stock exchange fell by two per cent.",
        ),
    ] {
        let [question, answer, other] = [question, answer, other].map(one);
        assert!(cosine(&question, &answer) > cosine(&question, &other) + 0.1);
    }
}

/// Compares cosines with those of the model's graph for the same ids, computed in floats.
#[test]
fn cosines_equal_those_of_the_graph() {
    for (a, b, expected) in [
        ("how do links survive a rename", "Renaming a note rewrites every link to it.", 0.5986),
        ("what did we decide about the database", "Decision of 3 May: we stay with SQLite.", 0.4701),
        ("Bread needs flour, water, salt and time.", "Knead the dough for ten minutes.", 0.4702),
        ("The invoice is due on March 3.", "Das Fahrrad steht im Keller.", -0.0033),
        ("東京の天気", "Weather in Tokyo", 0.4023),
        ("draft", "confirmed", 0.0748),
    ] {
        let cosine = cosine(&one(a), &one(b));
        assert!((cosine - expected).abs() < 0.012, "{a:?}, {b:?}: {cosine}");
    }
}

/// Returns paragraphs of the Markdown files below a folder, in the order of paths.
fn paragraphs(folder: &Path) -> Vec<String> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let of = |path: PathBuf| match path.extension().is_some_and(|end| end == "md") {
        _ if path.is_dir() => paragraphs(&path),
        true => fs::read_to_string(&path).unwrap_or_default().split("\n\n").map(str::to_owned).collect(),
        false => Vec::new(),
    };
    entries.into_iter().flat_map(of).filter(|text| text.len() > 40).collect()
}

/// Compares each vector with that of the same weights and activations in floats, on texts of one to eight paragraphs and of one
/// to twelve words.
#[test]
#[ignore = "it needs python3 with onnx and onnxruntime, and SIDENOTE_CORPORA, a folder of vaults"]
fn vectors_are_those_of_the_graph_in_floats() {
    let paragraphs = paragraphs(Path::new(&std::env::var("SIDENOTE_CORPORA").unwrap()));
    let step = (paragraphs.len() / 2_000).max(1);
    let long = (0..paragraphs.len())
        .step_by(step)
        .map(|at| paragraphs[at..].iter().take(1 + at % 8).cloned().collect::<Vec<_>>().join("\n\n"));
    let short =
        paragraphs.iter().enumerate().skip(step / 2).step_by(step).map(|(at, paragraph)| {
            paragraph.split_whitespace().take(1 + at % 12).collect::<Vec<_>>().join(" ")
        });
    let texts: Vec<String> = long.chain(short).collect();
    assert!(texts.len() >= 4_000, "{} texts", texts.len());
    let ids: Vec<Vec<u32>> = texts.iter().map(|text| OURS.encode(text, MAX_IDS)).collect();
    let mut child = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/float_vectors.py"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/foundation/assets/all-MiniLM-L6-v2"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(&ids).unwrap()).unwrap();
    let floats = child.wait_with_output().unwrap().stdout;
    let floats: Vec<Vec<f32>> = serde_json::from_slice(&floats).unwrap();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let ours = MINILM.embed(&texts, Effort::Bulk).unwrap();
    assert_eq!(ours.len(), floats.len());
    let cosines: Vec<f32> = ours.iter().zip(&floats).map(|(ours, floats)| cosine(ours, floats)).collect();
    let mean = cosines.iter().sum::<f32>() / cosines.len() as f32;
    let least = cosines.iter().copied().fold(1.0, f32::min);
    say(&format!("{} texts: mean cosine {mean:.5}, least {least:.5}", cosines.len()));
    assert!(least >= 0.9995, "{least}");
}

#[cfg(target_os = "linux")]
#[test]
fn background_embedding_runs_at_low_priority() {
    let nice = |stat: std::path::PathBuf| -> Option<String> {
        let stat = std::fs::read_to_string(stat).ok()?;
        // proc(5): the niceness is the 19th field, the 17th after the name in parentheses.
        stat.rsplit_once(") ")?.1.split(' ').nth(16).map(str::to_owned)
    };
    MINILM.embed(&["nobody waits for this"], Effort::Background).unwrap();
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    assert!(threads.flatten().any(|thread| nice(thread.path().join("stat")).as_deref() == Some("19")));
    assert_ne!(nice("/proc/thread-self/stat".into()).as_deref(), Some("19"));
}

/// A model that gives every text the same vector, and remembers in which order they came.
struct Recorder {
    model: ModelId,
    texts: Mutex<Vec<String>>,
}

impl Embed for Recorder {
    fn model(&self) -> &ModelId {
        &self.model
    }

    fn max_tokens(&self) -> usize {
        256
    }

    fn duplicate_threshold(&self) -> f32 {
        1.0
    }

    fn embed(&self, texts: &[&str], _: Effort) -> sidenote::error::Result<Vec<Vec<f32>>> {
        self.texts.lock().unwrap().extend(texts.iter().map(|text| (*text).to_owned()));
        Ok(vec![vec![0.5; 4]; texts.len()])
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

#[test]
fn the_newest_and_the_most_used_are_embedded_first() {
    let note = |word: &str| format!("The {word} is here.\n");
    let vault = TestVault::new(&[
        ("a.md", &note("heron")),
        ("b.md", &note("otter")),
        ("c.md", &note("badger")),
        ("d.md", &note("marten")),
    ]);
    for (day, path) in ["a.md", "b.md", "c.md", "d.md"].into_iter().enumerate() {
        let file = std::fs::File::options().write(true).open(vault.root().join(path)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(86_400 * day as u64))
            .unwrap();
    }
    assert!(vault.run(&["read", "a"]).status.success());
    let texts = embedded_in_order(&vault);
    let words = texts.iter().filter_map(|text| {
        ["heron", "otter", "badger", "marten"].into_iter().find(|word| text.contains(word))
    });
    assert_eq!(words.collect::<Vec<_>>(), ["marten", "heron", "badger", "otter"]);
}

#[test]
fn one_passage_of_every_note_is_embedded_before_all_passages() {
    let section =
        |word: &str| format!("## About {word}\n\n{}\n\n", format!("The {word} is here. ").repeat(60));
    let vault = TestVault::new(&[
        ("a.md", &["heron", "reed", "water"].map(section).concat()),
        ("b.md", "The otter is here.\n"),
        ("c.md", &["badger", "earth"].map(section).concat()),
    ]);
    let texts = embedded_in_order(&vault);
    let words = ["heron", "reed", "water", "otter", "badger", "earth"];
    let order = texts.iter().filter_map(|text| words.into_iter().find(|word| text.contains(word)));
    let mut order: Vec<&str> = order.collect();
    order.dedup();
    let (first, rest) = order.split_at(3);
    assert!(["heron", "otter", "badger"].iter().all(|word| first.contains(word)), "{order:?}");
    assert!(["reed", "water", "earth"].iter().all(|word| rest.contains(word)), "{order:?}");
}

/// Indexes and embeds a vault, and returns the texts that were embedded, in their order.
fn embedded_in_order(vault: &TestVault) -> Vec<String> {
    let recorder = Arc::new(Recorder { model: ModelId::new("recorder", 4, "1"), texts: Mutex::default() });
    let embedder: Arc<dyn Embed> = Arc::<Recorder>::clone(&recorder);
    let options = Options { embedder: Some(embedder), ..Options::default() };
    let index = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), options).unwrap();
    index.sync(SyncScope::All, silent()).unwrap();
    index.embed_all(silent()).unwrap();
    recorder.texts.lock().unwrap().clone()
}

/// A model that gives no vector before it is let.
struct Gated {
    model: ModelId,
    gate: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl Embed for Gated {
    fn model(&self) -> &ModelId {
        &self.model
    }

    fn max_tokens(&self) -> usize {
        256
    }

    fn duplicate_threshold(&self) -> f32 {
        1.0
    }

    fn embed(&self, texts: &[&str], _: Effort) -> sidenote::error::Result<Vec<Vec<f32>>> {
        self.gate.lock().unwrap().recv().unwrap();
        Ok(vec![vec![0.5; 4]; texts.len()])
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

#[test]
fn a_new_model_serves_once_all_its_vectors_are_there() {
    let vault = TestVault::new(&[("a.md", "The heron is here.\n"), ("b.md", "The otter is here.\n")]);
    let open = |embedder: Arc<dyn Embed>, fill: bool| {
        let settings = Config::load(vault.root(), &[]).unwrap().embed;
        let earlier = PreviousModels::before(&settings);
        let options = Options { embedder: Some(embedder), fill, earlier, ..Options::default() };
        Index::open(Arc::new(Vault::open(vault.root()).unwrap()), options).unwrap()
    };
    let served = |index: &Index| {
        let snapshot = index.snapshot().unwrap();
        (
            snapshot.model.as_ref().unwrap().model().name().to_owned(),
            snapshot.is_former,
            snapshot.vectors.len(),
        )
    };
    let index = open(Arc::new(MiniLm::default()), false);
    index.sync(SyncScope::All, silent()).unwrap();
    index.embed_all(silent()).unwrap();
    assert_eq!(served(&index), ("minilm".to_owned(), false, 2));
    drop(index);

    let (let_one, gate) = std::sync::mpsc::channel();
    let gated = Gated { model: ModelId::new("some/gated", 4, "1"), gate: Mutex::new(gate) };
    let index = open(Arc::new(gated), true);
    assert_eq!(served(&index), ("minilm".to_owned(), true, 2));
    let_one.send(()).unwrap();
    assert_eq!(served(&index), ("minilm".to_owned(), true, 2), "half of them are not enough");
    let_one.send(()).unwrap();
    while index.snapshot().unwrap().is_former {
        std::thread::yield_now();
    }
    assert_eq!(served(&index), ("some/gated".to_owned(), false, 2));
    drop(index);
    let kept = std::fs::read_dir(vault.root().join(".sidenote/index/vectors")).unwrap();
    let kept: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(kept, ["some-gated-1"]);
}

/// Checks which instructions are in use, where the caller of the tests knows that the processor has them.
#[track_caller]
fn check_in_use(in_use: &str, expected: &str) {
    if cfg!(target_arch = "x86_64") && std::env::var_os("SIDENOTE_TEST_AVX512").is_some() {
        assert_eq!(in_use, expected, "the processor has no such instructions");
    }
}

/// Matrices of the shapes of the model and smaller and odd ones, and numbers of rows around those that are computed at a time.
#[test]
fn all_instructions_give_the_same_products() {
    for [height, width] in [[384, 1152], [384, 384], [1536, 384], [128, 48], [256, 96], [4, 16], [7, 5]] {
        for rows in (1..=9).chain([16, 23, 128]) {
            let mut bytes = vec![0; rows * height + height * width];
            blake3::Hasher::new().update(&[rows as u8]).finalize_xof().fill(&mut bytes);
            // The first rows and columns are the largest there are.
            bytes[..height].fill(255);
            let (rows, weights) = bytes.split_at(rows * height);
            let mut weights: Vec<i8> =
                weights.iter().map(|byte| (byte % 129).cast_signed().wrapping_sub(64)).collect();
            weights.iter_mut().step_by(width).for_each(|weight| *weight = 64);
            let sum = |row: &[u8], column: usize| -> i32 {
                let column = weights.iter().skip(column).step_by(width);
                row.iter().zip(column).map(|(byte, weight)| i32::from(*byte) * i32::from(*weight)).sum()
            };
            let sums = rows.chunks(height).flat_map(|row| (0..width).map(move |column| (row, column)));
            let found = products_by_instructions(rows, &weights, width).unwrap();
            assert_eq!(found.len(), 3);
            if height.is_multiple_of(128) {
                check_in_use(found[0].0, "AVX-512 VNNI");
            }
            // Each sum is compared where that takes no minutes, and otherwise those of some columns.
            let step = if height * width > 50_000 { 37 } else { 1 };
            for (at, (row, column)) in sums.enumerate().step_by(step) {
                let expected = sum(row, column);
                for (name, sums) in &found {
                    assert_eq!(
                        sums[at],
                        expected,
                        "{name}, {height} x {width}, row {}, column {column}",
                        at / width
                    );
                }
            }
            assert!(found.iter().all(|(_, sums)| *sums == found[0].1));
        }
    }
}

/// Computes the attention of one text with softmax and sums of doubles, head by head.
fn plain_attention(states: &[f32], width: usize, heads: usize) -> Vec<f64> {
    let (length, size) = (states.len() / (3 * width), width / heads);
    let number = |token: usize, part: usize, at: usize| f64::from(states[(token * 3 + part) * width + at]);
    let mut context = vec![0.0; length * width];
    for head in 0..heads {
        let places = head * size..(head + 1) * size;
        for query in 0..length {
            let score = |key| places.clone().map(|at| number(query, 0, at) * number(key, 1, at)).sum::<f64>();
            let scores: Vec<f64> = (0..length).map(|key| score(key) / (size as f64).sqrt()).collect();
            let highest = scores.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for at in places.clone() {
                let added = weights.iter().enumerate().map(|(key, weight)| weight * number(key, 2, at));
                context[query * width + at] = added.sum::<f64>() / sum;
            }
        }
    }
    context
}

/// Lengths around those of the groups in which queries and keys are compared, and numbers of all sizes, so that some keys
/// take all of the attention.
#[test]
fn all_instructions_give_the_same_attention() {
    const WIDTH: usize = 384;
    for length in [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 128, 200, 256] {
        for size in [0.1f32, 2.0, 30.0] {
            let mut bytes = vec![0; length * 3 * WIDTH];
            blake3::Hasher::new().update(&[length as u8]).finalize_xof().fill(&mut bytes);
            let states: Vec<f32> = bytes.iter().map(|byte| (f32::from(*byte) / 127.5 - 1.0) * size).collect();
            let expected = plain_attention(&states, WIDTH, 12);
            let found = attention_by_instructions(&states).unwrap();
            assert_eq!(found.last().map(|(name, _)| *name), Some("floats"));
            check_in_use(found[0].0, "AVX-512 BF16");
            for (name, context) in found {
                assert_eq!(context.len(), expected.len());
                // Scores of hundreds rounded to eight bits choose other keys, so those are compared in floats only.
                let least = if name == "floats" {
                    0.999_99
                } else if size > 10.0 {
                    0.9
                } else {
                    0.999
                };
                for (row, expected) in context.chunks(WIDTH).zip(expected.chunks(WIDTH)) {
                    let expected: Vec<f32> = expected.iter().map(|number| *number as f32).collect();
                    let norms = cosine(row, row).sqrt() * cosine(&expected, &expected).sqrt();
                    let cosine = cosine(row, &expected) / norms;
                    assert!(cosine > least, "{name}, {length} tokens of up to {size}: {cosine}");
                }
            }
        }
    }
}

/// Texts of all lengths, in groups and alone: what an earlier text left in memory must not matter.
#[test]
fn a_vector_does_not_depend_on_earlier_texts() {
    let words = ["harbour", "tide", "gauge", "quarterly", "Bee", "7", "keel", "varnish"];
    let text = |at: usize| {
        (0..at * 37 % 190).map(|word| words[(at + word) % words.len()]).collect::<Vec<_>>().join(" ")
    };
    let texts: Vec<String> = (1..120).map(text).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let together = MINILM.embed(&texts, Effort::Bulk).unwrap();
    for (text, vector) in texts.iter().zip(together).step_by(7) {
        assert!(MINILM.embed(&[text], Effort::Bulk).unwrap() == [vector.clone()], "{text}");
        assert!(one(text) == vector, "{text}");
    }
}
