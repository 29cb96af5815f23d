//! Tests search while some notes have no vector yet: no note loses its rank, and new notes are embedded first.

use std::collections::HashMap;
use std::sync::Arc;

use sidenote::base::error::Result;
use sidenote::embed::{Effort, Embed, ModelId};
use sidenote::index::indexed_document::ParsedNote;
use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::markdown::path::NotePath;
use sidenote::search::fuse::{
    Candidates, FusedHit, Fusion, NoteScores, Ranked, Similarity, fuse, raise_embedded,
};
use sidenote::search::pipeline;
use sidenote::search::query::Query;
use sidenote::search::reader::SearchReader;
use sidenote::search::{Mode, QueryVector, Request};
use sidenote::store::{EvalRequest, NewRequest, Operation, SearchRequest};
use sidenote::vault::Vault;

use crate::support::{TestVault, json, run};

/// A seeded choice: SplitMix64 (Steele, Lea & Flood 2014).
struct Dice(u64);

impl Dice {
    /// Gives a number from 0 to 1.
    fn draw(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1u32 << 24) as f32
    }
}

/// A note of a made-up set: its scores for one query, and the passages' cosines.
struct Made {
    file: i64,
    bm25: Option<f32>,
    cosines: Vec<f32>,
    is_relevant: bool,
}

const NOTES: i64 = 200;
const QUERIES: usize = 60;

/// Makes the notes of one query: five are relevant, and mostly score higher by words and by meaning.
fn made(dice: &mut Dice) -> Vec<Made> {
    (0..NOTES)
        .map(|at| {
            // Numbers are given out so that those of relevant notes are neither the lowest nor the highest.
            let is_relevant = at % 40 == 17;
            let (words, meaning) = if is_relevant { (3.0, 0.2) } else { (0.0, 0.0) };
            let bm25 = (is_relevant || dice.draw() < 0.3).then(|| words + 8.0 * dice.draw());
            let cosines = vec![0.1 + meaning + 0.3 * dice.draw(), 0.1 + 0.3 * dice.draw()];
            Made { file: at, bm25, cosines, is_relevant }
        })
        .collect()
}

/// Gives nDCG@10 of the fused order of one query where `embedded` says how many passages of a note have vectors.
fn ndcg(notes: &[Made], fusion: Fusion, embedded: impl Fn(i64) -> usize) -> f64 {
    let mut text: Vec<Ranked> =
        notes.iter().filter_map(|note| Some(Ranked { file: note.file, score: note.bm25? })).collect();
    text.sort_by(|a, b| b.score.total_cmp(&a.score));
    text.truncate(20);
    let mut vector = Vec::new();
    let mut known = HashMap::new();
    for note in notes {
        let mut cosines = note.cosines[..embedded(note.file)].to_vec();
        let near = Similarity::of(&mut cosines);
        vector.extend(near.map(|near| Ranked { file: note.file, score: near.best }));
        let missing = 1.0 - cosines.len() as f32 / note.cosines.len() as f32;
        known.insert(note.file, NoteScores { bm25: note.bm25, near, missing });
    }
    vector.sort_by(|a, b| b.score.total_cmp(&a.score));
    vector.truncate(20);
    let fused = fuse_partly(&text, &vector, &known, fusion);
    let discount = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
    let is_relevant = |file: i64| notes[file as usize].is_relevant;
    let gained = fused.iter().take(10).enumerate().filter(|(_, hit)| is_relevant(hit.file));
    let best: f64 = (0..notes.iter().filter(|note| note.is_relevant).count()).map(discount).sum();
    gained.map(|(rank, _)| discount(rank)).sum::<f64>() / best
}

/// Fuses two lists of a vault that has no notes but the known ones, each with one passage.
fn fuse_partly(
    text: &[Ranked],
    vector: &[Ranked],
    known: &HashMap<i64, NoteScores>,
    fusion: Fusion,
) -> Vec<FusedHit> {
    let embedded = known.values().map(|known| 1.0 - known.missing).sum::<f32>() / known.len() as f32;
    let candidates = Candidates { embedded, ..Candidates::listed(text, vector, known) };
    let mut fused = fuse(&candidates, fusion);
    raise_embedded(&mut fused, &candidates, fusion);
    fused
}

/// Checks that hybrid search with vectors for a share of the notes is no worse than words alone.
#[track_caller]
fn check_share(fusion: Fusion, percent: i64, passages: usize) {
    let mut dice = Dice(3);
    let (mut bm25, mut hybrid) = (0.0, 0.0);
    for query in 0..QUERIES as i64 {
        let notes = made(&mut dice);
        bm25 += ndcg(&notes, fusion, |_| 0);
        let is_in = |file: i64| (file * 37 + query * 11) % 100 < percent;
        hybrid += ndcg(&notes, fusion, |file| if is_in(file) { passages } else { 2 - passages });
    }
    let (bm25, hybrid) = (bm25 / QUERIES as f64, hybrid / QUERIES as f64);
    assert!(bm25 > 0.3 && bm25 < 0.9, "{bm25} leaves no room to be better or worse");
    assert!(hybrid >= bm25 - 0.01, "{fusion:?}, {percent} %, {passages}: {hybrid:.4} against {bm25:.4}");
}

#[test]
fn hybrid_with_vectors_for_some_notes_is_no_worse_than_words_alone() {
    let mut checked = 0;
    for fusion in [Fusion::Relative, Fusion::Rrf, Fusion::Weighted] {
        for percent in [0, 1, 10, 50, 90, 100] {
            check_share(fusion, percent, 2);
            // Every note has one of its two passages embedded.
            check_share(fusion, percent, 1);
            checked += 2;
        }
    }
    assert_eq!(checked, 36);
}

/// Checks the order of three notes of which the text ranks 1 before 2 before 3.
#[track_caller]
fn check_order(missing: [f32; 3], cosines: [Option<f32>; 3], expected: [i64; 3]) {
    let text: Vec<Ranked> =
        [(1, 9.0), (2, 6.0), (3, 3.0)].map(|(file, score)| Ranked { file, score }).to_vec();
    let mut vector = Vec::new();
    let mut known = HashMap::new();
    for (at, file) in (1..=3).enumerate() {
        let near = cosines[at].and_then(|cosine| Similarity::of(&mut [cosine]));
        vector.extend(near.map(|near| Ranked { file, score: near.best }));
        known.insert(file, NoteScores { bm25: None, near, missing: missing[at] });
    }
    vector.sort_by(|a, b| b.score.total_cmp(&a.score));
    let fused = fuse_partly(&text, &vector, &known, Fusion::Relative);
    assert_eq!(fused.iter().map(|hit| hit.file).collect::<Vec<_>>(), expected, "{missing:?} {cosines:?}");
}

#[test]
fn a_missing_vector_lowers_no_rank() {
    let mut checked = 0;
    for (missing, cosines, expected) in [
        // The last by words is the only one with a vector.
        ([1.0, 1.0, 0.0], [None, None, Some(0.3)], [1, 2, 3]),
        ([1.0, 0.0, 0.0], [None, Some(0.3), Some(0.3)], [1, 2, 3]),
        // One passage of four is embedded, and is not the one that matches.
        ([0.75, 0.0, 0.0], [Some(0.05), Some(0.3), Some(0.3)], [1, 2, 3]),
        // With all vectors there, meaning may change the order.
        ([0.0, 0.0, 0.0], [Some(0.1), Some(0.1), Some(0.7)], [3, 1, 2]),
    ] {
        check_order(missing, cosines, expected);
        checked += 1;
    }
    assert_eq!(checked, 4);
}

/// Checks at which places, from 1, the best notes by meaning alone stand where no note that has the words has a vector.
#[track_caller]
fn check_places(embedded: f32, bm25: impl Fn(usize) -> f32, first: usize, second: usize) {
    let text: Vec<Ranked> = (0..400).map(|at| Ranked { file: at as i64, score: bm25(at) }).collect();
    let vector: Vec<Ranked> =
        (0..20).map(|at| Ranked { file: 1000 + at, score: 0.6 - 0.02 * at as f32 }).collect();
    let mut known: HashMap<i64, NoteScores> = HashMap::new();
    known.extend(text.iter().map(|hit| (hit.file, NoteScores { missing: 1.0, ..NoteScores::default() })));
    known.extend(vector.iter().map(|hit| {
        (hit.file, NoteScores { near: Similarity::of(&mut [hit.score]), ..NoteScores::default() })
    }));
    for fusion in [Fusion::Relative, Fusion::Rrf, Fusion::Weighted] {
        let candidates = Candidates { embedded, ..Candidates::listed(&text, &vector, &known) };
        let mut fused = fuse(&candidates, fusion);
        raise_embedded(&mut fused, &candidates, fusion);
        let place = |file: i64| fused.iter().position(|hit| hit.file == file).unwrap() + 1;
        let places = [place(1000), place(1001)];
        assert!(places[0] <= first && places[1] <= second, "{fusion:?}, {embedded}: {places:?}");
        assert!(place(0) == 1, "{fusion:?}, {embedded}: the best by words stands at {}", place(0));
        assert!(fused.iter().all(|hit| hit.score == hit.components.total()));
    }
}

#[test]
fn a_hit_by_meaning_alone_is_among_the_first_however_many_notes_lack_vectors() {
    let mut checked = 0;
    for (embedded, first, second) in [(0.001, 10, 20), (0.1, 10, 20), (0.5, 4, 7), (0.9, 2, 4)] {
        check_places(embedded, |at| 20.0 - 0.01 * at as f32, first, second);
        check_places(embedded, |at| 20.0 / (1 + at) as f32, first, second);
        // Look-alikes have the same score, but for the best.
        check_places(embedded, |at| if at == 0 { 20.0 } else { 19.0 }, first, second);
        checked += 3;
    }
    assert_eq!(checked, 12);
}

/// A model that knows one topic: texts about antennas are alike, and others are not.
struct OneTopic(ModelId);

impl Embed for OneTopic {
    fn model(&self) -> &ModelId {
        &self.0
    }

    fn max_tokens(&self) -> usize {
        256
    }

    fn duplicate_threshold(&self) -> f32 {
        1.0
    }

    fn embed(&self, texts: &[&str], _: Effort) -> sidenote::base::error::Result<Vec<Vec<f32>>> {
        let vector = |text: &&str| {
            let is_near = ["antenna", "aerial"].iter().any(|word| text.contains(word));
            let hash = blake3::hash(text.as_bytes());
            let noise = hash.as_bytes()[..8].iter().map(|&byte| f32::from(byte) / 127.5 - 1.0);
            std::iter::once(if is_near { 6.0 } else { 0.0 }).chain(noise).collect()
        };
        Ok(texts.iter().map(vector).collect())
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

/// Gives this vector for every query.
struct GivenVector(QueryVector);

impl SearchReader for GivenVector {
    fn note(&self, _: &NotePath) -> Option<Arc<ParsedNote>> {
        None
    }

    fn query_vector(&self) -> Result<QueryVector> {
        Ok(self.0.clone())
    }
}

#[test]
fn a_backlog_of_vectors_hides_no_hit_by_meaning() {
    let vault = TestVault::new(&[("Aerial.md", "An aerial for short waves.\n")]);
    for at in 0..20 {
        vault.write(&format!("old {at}.md"), format!("Bread number {at} is baked.\n"));
    }
    let embedder: Arc<dyn Embed> = Arc::new(OneTopic(ModelId::new("one-topic", 9, "1")));
    let options = Options { embedder: Some(Arc::clone(&embedder)), ..Options::default() };
    let index = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), options).unwrap();
    index.sync(SyncScope::All, silent()).unwrap();
    index.embed_all(silent()).unwrap();
    for at in 0..1500 {
        vault.write(
            &format!("import/{at}.md"),
            format!("Which antenna hangs from pole {at}, and who climbs it?\n"),
        );
    }
    index.sync(SyncScope::All, silent()).unwrap();
    let snapshot = index.snapshot().unwrap();
    assert_eq!(snapshot.pending, 1500);
    let asked = "which antenna hangs from the pole";
    let query = Query::parse(asked, false).unwrap();
    let place = |mode: Mode, limit: usize| {
        let request = Request { query: Some(&query), mode, limit, ..Request::default() };
        let vector = embedder.embed(&[asked], Effort::Foreground).unwrap().pop();
        let hits = pipeline::run(&index, &snapshot, &request, &GivenVector(vector.map(Arc::new))).unwrap();
        let place = hits.iter().position(|hit| hit.row.path.as_str() == "Aerial.md");
        (place, hits.len())
    };
    assert_eq!(place(Mode::Vector, 10).0, Some(0));
    assert_eq!(place(Mode::Bm25, 10).0, None);
    for limit in [10, 20, 200] {
        let (place, hits) = place(Mode::Hybrid, limit);
        assert!(place.is_some_and(|place| place < 10), "{place:?} of {hits}");
        assert_eq!(hits, limit);
    }
}

/// A vault of notes about several things, all embedded.
fn embedded() -> TestVault {
    let vault = TestVault::new(&[
        ("Moor.md", "The moor is wet in spring, and the path along the outlet is closed until May."),
        ("Outlet.md", "The outlet of the lake was rebuilt; its grating is cleaned every week."),
        ("Radio.md", "A short-wave receiver and how its dial is calibrated."),
        ("Bread.md", "Rye bread with caraway, baked at 230 degrees."),
        ("Boat.md", "The boat has a new mast, and its sails are at the sailmaker's."),
        ("Heron.md", "A heron stands at the pond every morning."),
    ]);
    let store = vault.store_with("e5");
    store.index().embed_all(silent()).unwrap();
    vault
}

#[test]
fn new_notes_are_embedded_before_the_next_answer() {
    let vault = embedded();
    let store = vault.store_with("e5");
    let content = "The antenna at the moor outlet hangs from the second pole.".to_owned();
    let new = NewRequest { title: "Antenna".to_owned(), content, ..NewRequest::default() };
    store.changes().change(&Operation::New(new), false).unwrap();
    let request =
        SearchRequest { query: "antenna at the moor outlet".to_owned(), ..SearchRequest::default() };
    let reply = store.searches().search(&request).unwrap();
    assert_eq!(reply.results[0].path, "Antenna.md");
    assert_eq!((reply.mode, reply.pending), (Mode::Hybrid, 0), "{:?}", reply.notes);
    // Found by vectors alone: the note contains no word of the query.
    let request = SearchRequest { query: "aerial on a mast for reception".to_owned(), ..request };
    let paths: Vec<String> =
        store.searches().search(&request).unwrap().results.into_iter().map(|result| result.path).collect();
    assert!(paths.iter().take(3).any(|path| path == "Antenna.md"), "{paths:?}");
}

#[test]
fn a_memory_saved_by_one_command_is_first_in_the_next() {
    let vault = embedded();
    let model = |args: &[&str]| {
        let mut command = vault.command(args);
        let done = command.env("SIDENOTE_EMBED_PROVIDER", "e5").output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", crate::support::stderr(&done));
        crate::support::stdout(&done)
    };
    model(&["memory", "save", "It hangs from the second pole at the moor outlet.", "--title", "Antenna"]);
    let reply: serde_json::Value =
        serde_json::from_str(&model(&["--json", "search", "antenna at the moor outlet"])).unwrap();
    assert_eq!(reply["results"][0]["path"], "Memories/Antenna.md", "{reply}");
    assert_eq!(reply["pending"], 0, "{reply}");
}

#[test]
fn many_passages_are_embedded_in_the_background() {
    let vault = embedded();
    for at in 0..40 {
        let body: String =
            (0..40).map(|part| format!("## Part {part}\n\n{}\n\n", "words ".repeat(150))).collect();
        vault.write(&format!("long {at}.md"), format!("# Long {at}\n\n{body}"));
    }
    let store = vault.store_with("e5");
    let before = store.index().totals().unwrap().2;
    let request = SearchRequest { query: "heron at the pond".to_owned(), ..SearchRequest::default() };
    let reply = store.searches().search(&request).unwrap();
    assert_eq!(reply.results[0].path, "Heron.md");
    assert_eq!(reply.pending, before, "long notes wait for the background");
}

#[test]
fn a_bm25_search_embeds_nothing() {
    let vault = embedded();
    vault.write("Late.md", "a late note about the heron");
    let store = vault.store_with("e5");
    let request =
        SearchRequest { query: "heron".to_owned(), mode: Some(Mode::Bm25), ..SearchRequest::default() };
    assert_eq!(store.searches().search(&request).unwrap().pending, 1);
}

#[test]
fn eval_measures_hybrid_with_vectors_for_some_notes() {
    let set = tempfile::tempdir().unwrap();
    let vault = embedded();
    let notes = set.path().join("notes");
    std::fs::create_dir(&notes).unwrap();
    for (at, name) in ["Moor", "Outlet", "Radio", "Bread", "Boat", "Heron"].into_iter().enumerate() {
        let text = std::fs::read_to_string(vault.root().join(format!("{name}.md"))).unwrap();
        std::fs::write(notes.join(format!("{name}.md")), format!("---\nid: n{at}\n---\n{text}")).unwrap();
    }
    let query = |id: &str, text: &str| format!("{{\"qid\": \"{id}\", \"text\": \"{text}\"}}\n");
    let queries = query("q1", "heron at the pond") + &query("q2", "outlet of the lake");
    std::fs::write(set.path().join("queries.jsonl"), queries).unwrap();
    std::fs::write(set.path().join("qrels.tsv"), "q1\tn5\t1\nq2\tn1\t1\n").unwrap();
    let store = TestVault::copy_of(&notes);
    let store = store.store_with("e5");
    store.index().embed_all(silent()).unwrap();
    let request = EvalRequest { shares: vec![0, 50, 100], ..EvalRequest::default() };
    let reply = store.searches().eval(set.path(), &request).unwrap();
    let shares: Vec<u8> = reply.shares.iter().map(|share| share.percent).collect();
    assert_eq!(shares, [0, 50, 100]);
    assert_eq!(reply.shares[0].hybrid, reply.shares[0].bm25, "without vectors words alone answer");
    let hybrid = reply.modes.iter().find(|scores| scores.mode == Mode::Hybrid).unwrap();
    assert_eq!(reply.shares[2].hybrid, hybrid.ndcg_at_10, "with all vectors nothing is other than today");
    assert!(reply.shares.iter().all(|share| share.hybrid >= share.bm25 - 0.01), "{:?}", reply.shares);
}

#[test]
fn a_toolset_says_when_only_words_were_searched() {
    let vault = TestVault::new(&[]);
    let saved = json(&vault, "2026-11-21", &["memory", "save", "The heron nests in the old oak."]);
    assert!(saved["memory"]["id"].is_string(), "{saved}");
    run(&vault, "2026-11-21", &["index"]);
    let heron = serde_json::json!({ "query": "heron nests" });
    let intent =
        serde_json::json!({ "query": "heron nests", "intent": "fact_check", "reason_for_search": "x" });
    let mut checked = 0;
    for (set, tool, arguments) in [
        ("vector", "search_memories", &intent),
        ("tiered", "memory_recall", &heron),
        ("rulebook", "rulebook_memory_search", &heron),
        ("longterm", "search_memory", &heron),
        ("mem", "search_mem", &heron),
        ("notes", "search_notes", &heron),
    ] {
        let mut client = crate::mcp_client::Client::start(&vault, &["--toolset", set]);
        let reply = client.call(tool, arguments.clone());
        assert_ne!(reply["isError"], true, "{set}: {reply}");
        let told = reply.to_string();
        assert!(told.contains("no embedding model is set, so this searched by words only"), "{set}: {told}");
        assert!(!told.contains("sidenote model"), "{set}: {told}");
        client.finish();
        checked += 1;
    }
    assert_eq!(checked, 6);
}
