//! Tests the embedded sentence transformer, and the order in which passages are embedded.

use std::sync::{Arc, LazyLock, Mutex};

use sidenote::config::Config;
use sidenote::embed::model_selection::{PreviousModels, embedder};
use sidenote::embed::{E5, Effort, Embed, ModelId};
use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::language::english::english_rank;
use sidenote::vault::Vault;

use crate::support::TestVault;

static BUILT_IN: LazyLock<E5> = LazyLock::new(E5::default);

fn one(text: &str) -> Vec<f32> {
    BUILT_IN.embed(&[text], Effort::Foreground).unwrap().remove(0)
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The version of the pooling: of how a vector is made of the states of its tokens (`encoder/bert`).
const POOLING: &[u8] = b"1";

#[test]
fn the_fingerprint_is_that_of_the_model_and_its_means() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/encoder/assets/multilingual-e5-small");
    let readme = std::fs::read_to_string(format!("{folder}/README.md")).unwrap();
    let mut all = blake3::Hasher::new();
    for name in ["model.bin", "means.f32"] {
        let bytes = std::fs::read(format!("{folder}/{name}")).unwrap();
        let row = format!("| {name} | {} | {} |", bytes.len(), blake3::hash(&bytes).to_hex());
        assert!(readme.contains(&row), "{row}");
        all.update(&bytes);
    }
    all.update(POOLING);
    assert_eq!(BUILT_IN.model().fingerprint(), &all.finalize().to_hex()[..16]);
}

#[test]
fn a_model_id_prints_its_name_and_keys_its_vectors() {
    assert_eq!(BUILT_IN.model().to_string(), "e5");
    assert_eq!(BUILT_IN.model().key(), format!("e5/384/{}", BUILT_IN.model().fingerprint()));
}

/// Settings from before the built-in model changed name the former one.
#[test]
fn the_former_name_of_the_built_in_model_means_the_present_one() {
    let vault = TestVault::new(&[]);
    for name in ["auto", "e5", "minilm"] {
        let flags = [("embed.provider", name.to_owned(), "test")];
        let selection = embedder(&Config::load(vault.root(), &flags).unwrap().embed).unwrap();
        assert_eq!(selection.model.unwrap().model(), BUILT_IN.model(), "{name}");
    }
}

#[test]
fn common_english_words_have_a_rank() {
    assert_eq!(english_rank("the"), Some(0));
    for (common, rare) in [("and", "database"), ("water", "otter"), ("house", "zinc")] {
        assert!(english_rank(common).unwrap() < english_rank(rare).unwrap(), "{common} {rare}");
    }
    // The first and last lines of the list, and what lies before, between and behind them.
    for word in ["...", "łodz", "£5"] {
        assert!(english_rank(word).is_some(), "{word}");
    }
    for word in ["", "\0", "zettelkasten", "the ", "thezq", "語", "\u{10FFFF}", "a b", "0\n", "1996"] {
        assert_eq!(english_rank(word).is_some(), word == "1996", "{word:?}");
    }
}

#[test]
fn a_vector_has_length_one() {
    for text in ["", " ", "a", "How do links survive a rename?", "日本語", &"long ".repeat(5_000)] {
        let vector = one(text);
        assert_eq!(vector.len(), BUILT_IN.dimensions());
        assert!((cosine(&vector, &vector) - 1.0).abs() < 1e-5, "{text:?}");
    }
}

#[test]
fn a_vector_does_not_depend_on_neighbours_or_effort() {
    let texts =
        ["rename a note", "", "Bread needs flour, water, salt and time.", &"word ".repeat(300), "東京"];
    let alone: Vec<_> = texts.iter().map(|text| one(text)).collect();
    for effort in [Effort::Foreground, Effort::Background, Effort::Bulk] {
        assert!(BUILT_IN.embed(&texts, effort).unwrap() == alone, "{effort:?}");
    }
    assert!(BUILT_IN.embed(&[], Effort::Bulk).unwrap().is_empty());
}

#[test]
fn text_beyond_the_maximum_of_tokens_is_ignored() {
    let whole = "word ".repeat(BUILT_IN.max_tokens());
    assert_eq!(BUILT_IN.count_tokens(&whole), BUILT_IN.max_tokens());
    assert!(one(&whole) == one(&format!("{whole} and more")));
    assert!(one(&whole) != one(&"word ".repeat(BUILT_IN.max_tokens() - 1)));
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
        (
            "Was haben wir zur Datenbank beschlossen?",
            "Decision of 3 May: we stay with SQLite; Postgres is more than a single user needs.",
            "The meeting room on the second floor has a new projector.",
        ),
        (
            "数据库选了什么",
            "Entscheidung vom 3. Mai: Wir bleiben bei SQLite.",
            "Das Fahrrad steht im Keller.",
        ),
    ] {
        let question = BUILT_IN.embed_query(question).unwrap();
        let [answer, other] = [answer, other].map(one);
        assert!(cosine(&question, &answer) > cosine(&question, &other));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn background_embedding_runs_at_low_priority() {
    let nice = |stat: std::path::PathBuf| -> Option<String> {
        let stat = std::fs::read_to_string(stat).ok()?;
        // proc(5): the niceness is the 19th field, the 17th after the name in parentheses.
        stat.rsplit_once(") ")?.1.split(' ').nth(16).map(str::to_owned)
    };
    BUILT_IN.embed(&["nobody waits for this"], Effort::Background).unwrap();
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

    fn embed(&self, texts: &[&str], _: Effort) -> sidenote::base::error::Result<Vec<Vec<f32>>> {
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

    fn embed(&self, texts: &[&str], _: Effort) -> sidenote::base::error::Result<Vec<Vec<f32>>> {
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
    let index = open(Arc::new(E5::default()), false);
    index.sync(SyncScope::All, silent()).unwrap();
    index.embed_all(silent()).unwrap();
    assert_eq!(served(&index), ("e5".to_owned(), false, 2));
    drop(index);

    let (let_one, gate) = std::sync::mpsc::channel();
    let gated = Gated { model: ModelId::new("some/gated", 4, "1"), gate: Mutex::new(gate) };
    let index = open(Arc::new(gated), true);
    assert_eq!(served(&index), ("e5".to_owned(), true, 2));
    let_one.send(()).unwrap();
    assert_eq!(served(&index), ("e5".to_owned(), true, 2), "half of them are not enough");
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

/// Texts of all lengths, in groups and alone: what an earlier text left in memory must not matter.
#[test]
fn a_vector_does_not_depend_on_earlier_texts() {
    let words = ["harbour", "tide", "gauge", "quarterly", "Bee", "7", "keel", "varnish"];
    let text = |at: usize| {
        (0..at * 37 % 190).map(|word| words[(at + word) % words.len()]).collect::<Vec<_>>().join(" ")
    };
    let texts: Vec<String> = (1..120).map(text).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let together = BUILT_IN.embed(&texts, Effort::Bulk).unwrap();
    for (text, vector) in texts.iter().zip(together).step_by(7) {
        assert!(BUILT_IN.embed(&[text], Effort::Bulk).unwrap() == [vector.clone()], "{text}");
        assert!(one(text) == vector, "{text}");
    }
}
