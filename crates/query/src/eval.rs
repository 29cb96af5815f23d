//! Measures search quality on a set of notes, queries and judgements: nDCG, recall, MRR and times.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{FileId, Filter};
use sidenote_index::Snapshot;
use sidenote_search::fuse::Fusion;
use sidenote_search::pipeline::run;
use sidenote_search::query::Query;
use sidenote_search::{Mode, Request};
use sidenote_sets::file_set::FileSet;

use crate::Searches;
use crate::query_reader::QueryReader;

/// The options of a measurement.
#[derive(Debug, Clone, Default)]
pub struct EvalRequest {
    /// The modes to measure; all if empty.
    pub modes: Vec<Mode>,
    /// Whether only notes count whose `seq` is lower than the query's `before_seq`.
    pub causal: bool,
    /// Whether to return the scores of each query.
    pub per_query: bool,
    /// Another fusion to measure hybrid mode with; both are compared query by query.
    pub against: Option<Fusion>,
    /// Percentages of notes with vectors to measure hybrid mode with.
    pub shares: Vec<u8>,
}

/// The quality of hybrid search if only some notes have vectors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShareScores {
    /// The percentage of notes with vectors.
    pub percent: u8,
    /// The nDCG@10 of words alone, which does not depend on vectors.
    pub bm25: f64,
    /// The nDCG@10 of hybrid search.
    pub hybrid: f64,
    /// The difference between the two.
    pub paired: Paired,
}

/// The quality of a mode: means over the queries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModeScores {
    /// The mode.
    pub mode: Mode,
    /// How hybrid mode merged the rankings, and how the other modes computed scores.
    pub fusion: Fusion,
    /// Normalised discounted cumulative gain of the first 10 (Järvelin & Kekäläinen 2002).
    pub ndcg_at_10: f64,
    /// The share of the relevant notes among the first 5.
    pub recall_at_5: f64,
    /// The share of the relevant notes among the first 10.
    pub recall_at_10: f64,
    /// The share of the relevant notes among the first 100.
    pub recall_at_100: f64,
    /// The reciprocal rank of the first relevant note among the first 10.
    pub mrr_at_10: f64,
    /// The mean time of a query in milliseconds, with its embedding.
    pub ms_per_query: f64,
    /// The nDCG@10 of each query by its id, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<(String, f64)>,
}

/// The difference between hybrid mode and another run, query by query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// The other run: a mode, or hybrid mode with another fusion.
    pub against: String,
    /// The mean difference of nDCG@10.
    pub mean: f64,
    /// The lower end of the 95 % confidence interval, by bootstrap over the queries (Efron 1979), 10,000 samples.
    pub low: f64,
    /// The upper end of the confidence interval.
    pub high: f64,
}

/// The quality of search on an evaluation set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvalReply {
    /// The folder of the set.
    pub set: String,
    /// The number of notes.
    pub notes: u64,
    /// The number of judged queries.
    pub queries: usize,
    /// The number of passages without a vector, which lower the scores of the vector mode.
    pub pending: usize,
    /// One entry for each mode.
    pub modes: Vec<ModeScores>,
    /// Hybrid mode compared with each other run.
    pub pairs: Vec<Paired>,
    /// Hybrid mode with vectors for some of the notes, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<ShareScores>,
}

#[derive(Debug, Deserialize)]
struct Judged {
    qid: String,
    text: String,
    scope: Option<String>,
    before_seq: Option<f64>,
}

impl Searches<'_> {
    /// Measures search with the judged queries next to the vault, which is the folder `notes` of the set.
    ///
    /// # Errors
    /// `Io` or `Invalid` if `queries.jsonl` or `qrels.tsv` cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn eval(&self, set: &Path, request: &EvalRequest) -> Result<EvalReply> {
        let queries = read_queries(&set.join("queries.jsonl"))?;
        let grades = read_grades(&set.join("qrels.tsv"))?;
        let queries: Vec<Judged> =
            queries.into_iter().filter(|query| grades.contains_key(&query.qid)).collect();
        let snapshot = self.core.index.snapshot()?;
        let order = self.sequence()?;
        let modes = match request.modes.as_slice() {
            [] => &[Mode::Bm25, Mode::Vector, Mode::Hybrid][..],
            modes => modes,
        };
        let fusion = Fusion::parse(&self.core.config.search.fusion)?;
        let mut runs: Vec<(Mode, Fusion)> = modes.iter().map(|&mode| (mode, fusion)).collect();
        runs.extend(request.against.map(|other| (Mode::Hybrid, other)));
        let run = |mode, fusion, snapshot: &Snapshot| {
            self.forget_query_vectors();
            let mut total = Totals::default();
            let started = std::time::Instant::now();
            for query in &queries {
                let among = self.scope_of(query, request.causal, &order)?;
                let found = self.ranked_ids(query, (mode, fusion), &among, snapshot)?;
                if let Some(grades) = grades.get(&query.qid) {
                    total.add(&query.qid, &found, grades);
                }
            }
            let elapsed = started.elapsed().as_secs_f64() * 1000.0;
            Ok::<_, Error>(total.mean(mode, fusion, elapsed))
        };
        let mut scores = Vec::new();
        for (mode, fusion) in runs {
            scores.push(run(mode, fusion, &snapshot)?);
        }
        let pairs = pairs(&scores, fusion);
        let mut shares = Vec::new();
        if !request.shares.is_empty() {
            let bm25 = run(Mode::Bm25, fusion, &snapshot)?;
            for &percent in &request.shares {
                let partly =
                    self.core.index.with_vectors_of(&snapshot, |path| is_in_share(path.as_str(), percent))?;
                let hybrid = run(Mode::Hybrid, fusion, &partly)?;
                let paired = compared(&hybrid, &bm25);
                let (bm25, hybrid) = (bm25.ndcg_at_10, hybrid.ndcg_at_10);
                shares.push(ShareScores { percent, bm25, hybrid, paired });
            }
        }
        if !request.per_query {
            scores.iter_mut().for_each(|scores| scores.queries.clear());
        }
        Ok(EvalReply {
            set: set.display().to_string(),
            notes: snapshot.bm25.documents(),
            queries: queries.len(),
            pending: snapshot.pending,
            modes: scores,
            pairs,
            shares,
        })
    }

    fn ranked_ids(
        &self,
        query: &Judged,
        (mode, fusion): (Mode, Fusion),
        among: &FileSet,
        snapshot: &Snapshot,
    ) -> Result<Vec<String>> {
        let parsed = Query::plain(&query.text);
        let request = Request {
            relations: (mode == Mode::Hybrid).then_some(&*self.core.state.relation_rules),
            query: Some(&parsed),
            mode,
            fusion,
            limit: 100,
            among: Some(among),
            ..Request::default()
        };
        let reader = QueryReader::new(*self, snapshot, &parsed, mode);
        let found = run(&self.core.index, snapshot, &request, &reader)?;
        Ok(found.into_iter().map(|hit| hit.row.note_id).collect())
    }

    fn scope_of(&self, query: &Judged, causal: bool, order: &HashMap<FileId, f64>) -> Result<FileSet> {
        let filter = Filter { folder: query.scope.clone(), ..Filter::default() };
        let files = self.core.index.catalog().select_ids(&filter)?;
        let before = query.before_seq.filter(|_| causal);
        let counts =
            |file: &FileId| before.is_none_or(|before| order.get(file).is_some_and(|seq| *seq < before));
        Ok(files.into_iter().map(|(file, _)| file).filter(counts).collect())
    }

    /// Reads the `seq` of each note.
    fn sequence(&self) -> Result<HashMap<FileId, f64>> {
        let mut order = HashMap::new();
        self.core.index.catalog().properties().each(|file, map| {
            if let Some(seq) = map.get("seq").and_then(Value::as_f64) {
                order.insert(file, seq);
            }
        })?;
        Ok(order)
    }
}

#[derive(Default)]
struct Totals {
    ndcg: f64,
    recall_5: f64,
    recall_10: f64,
    recall_100: f64,
    mrr: f64,
    queries: Vec<(String, f64)>,
}

impl Totals {
    fn add(&mut self, qid: &str, found: &[String], grades: &HashMap<String, f64>) {
        let gain = |id: &String| grades.get(id).copied().unwrap_or(0.0);
        let discount = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
        let dcg: f64 = found.iter().take(10).enumerate().map(|(rank, id)| gain(id) * discount(rank)).sum();
        let mut ideal: Vec<f64> = grades.values().copied().filter(|grade| *grade > 0.0).collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        let best: f64 = ideal.iter().take(10).enumerate().map(|(rank, grade)| grade * discount(rank)).sum();
        let ndcg = if best > 0.0 { dcg / best } else { 0.0 };
        let relevant: HashSet<&String> =
            grades.iter().filter(|(_, grade)| **grade > 0.0).map(|(id, _)| id).collect();
        let met = |depth: usize| found.iter().take(depth).filter(|id| relevant.contains(id)).count();
        let share = |depth: usize| met(depth) as f64 / relevant.len().max(1) as f64;
        self.ndcg += ndcg;
        self.recall_5 += share(5);
        self.recall_10 += share(10);
        self.recall_100 += share(100);
        let first = found.iter().take(10).position(|id| relevant.contains(id));
        self.mrr += first.map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
        self.queries.push((qid.to_owned(), ndcg));
    }

    fn mean(self, mode: Mode, fusion: Fusion, elapsed_ms: f64) -> ModeScores {
        let count = self.queries.len().max(1) as f64;
        ModeScores {
            mode,
            fusion,
            ndcg_at_10: self.ndcg / count,
            recall_at_5: self.recall_5 / count,
            recall_at_10: self.recall_10 / count,
            recall_at_100: self.recall_100 / count,
            mrr_at_10: self.mrr / count,
            ms_per_query: elapsed_ms / count,
            queries: self.queries,
        }
    }
}

/// Compares hybrid mode with each other run.
fn pairs(scores: &[ModeScores], fusion: Fusion) -> Vec<Paired> {
    let is_hybrid = |run: &&ModeScores| run.mode == Mode::Hybrid && run.fusion == fusion;
    let Some(hybrid) = scores.iter().find(is_hybrid) else {
        return Vec::new();
    };
    let others = scores.iter().filter(|run| !std::ptr::eq(*run, hybrid));
    others.map(|run| compared(hybrid, run)).collect()
}

/// Compares two runs, query by query.
fn compared(one: &ModeScores, other: &ModeScores) -> Paired {
    let each = one.queries.iter().zip(&other.queries).map(|((_, a), (_, b))| a - b);
    let (mean, low, high) = bootstrap(&each.collect::<Vec<f64>>());
    Paired { against: other.label(), mean, low, high }
}

/// Returns whether a note is in a share of all notes. Larger shares contain smaller ones.
fn is_in_share(path: &str, percent: u8) -> bool {
    let hash = blake3::hash(path.as_bytes());
    let [a, b, c, d, ..] = *hash.as_bytes();
    u32::from_le_bytes([a, b, c, d]) % 100 < u32::from(percent)
}

impl ModeScores {
    /// Returns the name of the run: its mode, and the fusion of hybrid mode.
    pub fn label(&self) -> String {
        let mode = format!("{:?}", self.mode).to_lowercase();
        match self.mode {
            Mode::Hybrid => format!("{mode} {}", format!("{:?}", self.fusion).to_lowercase()),
            _ => mode,
        }
    }
}

/// Returns the mean of differences, and the 2.5th and 97.5th percentile of the means of samples drawn from them. The
/// result is deterministic.
fn bootstrap(each: &[f64]) -> (f64, f64, f64) {
    const SAMPLES: usize = 10_000;
    if each.is_empty() {
        return (0.0, 0.0, 0.0);
    }
    let mut seed = 1u64;
    // Knuth's linear congruential generator (MMIX). Its upper half is random enough for sampling.
    let mut draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        each.get((seed >> 33) as usize % each.len()).copied().unwrap_or(0.0)
    };
    let count = each.len() as f64;
    let mut means: Vec<f64> =
        (0..SAMPLES).map(|_| (0..each.len()).map(|_| draw()).sum::<f64>() / count).collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means.get((share * SAMPLES as f64) as usize).copied().unwrap_or(0.0);
    (each.iter().sum::<f64>() / count, at(0.025), at(0.975))
}

/// The parts of an evaluation set: the notes, the queries and the judgements.
const PARTS: [&str; 3] = ["notes", "queries.jsonl", "qrels.tsv"];

const SET_HINT: &str = "a set holds notes/, queries.jsonl and qrels.tsv";

/// Lists the evaluation sets that a path means: the folder itself if it is a set, or all sets below it, sorted by path.
/// Hidden folders, folders behind symbolic links and folders within sets are not searched.
///
/// # Errors
/// `NotFound` if there is no set, or if a part of the set is missing. `Io` if a folder cannot be read.
pub fn evaluation_sets(folder: &Path) -> Result<Vec<PathBuf>> {
    let Some(missing) = PARTS.iter().find(|part| !folder.join(part).exists()) else {
        return Ok(vec![folder.to_owned()]);
    };
    let mut sets = Vec::new();
    collect_sets(folder, &mut sets)?;
    if !sets.is_empty() {
        sets.sort();
        return Ok(sets);
    }
    let is_incomplete = PARTS.iter().any(|part| folder.join(part).exists());
    let message = match is_incomplete {
        true => format!("{} has no {missing}", folder.display()),
        false => format!("{} holds no evaluation set", folder.display()),
    };
    Err(Error::not_found(message).with_hint(SET_HINT))
}

/// Adds the sets below a folder.
fn collect_sets(folder: &Path, sets: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).map_err(|error| Error::io("read", folder, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("read", folder, error))?;
        let is_folder = entry.file_type().map_err(|error| Error::io("read", entry.path(), error))?.is_dir();
        if !is_folder || entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let path = entry.path();
        if PARTS.iter().all(|part| path.join(part).exists()) {
            sets.push(path);
        } else {
            collect_sets(&path, sets)?;
        }
    }
    Ok(())
}

fn read_lines(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error).with_hint(SET_HINT))
}

fn read_queries(path: &Path) -> Result<Vec<Judged>> {
    let text = read_lines(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| {
                Error::invalid(format!("{}:{} is not a query", path.display(), at + 1)).with_source(error)
            })
        })
        .collect()
}

fn read_grades(path: &Path) -> Result<HashMap<String, HashMap<String, f64>>> {
    let text = read_lines(path)?;
    let mut grades: HashMap<String, HashMap<String, f64>> = HashMap::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut parts = line.split_whitespace();
        let entry = (parts.next(), parts.next(), parts.next().and_then(|grade| grade.parse().ok()));
        let (Some(query), Some(note), Some(grade)) = entry else {
            return Err(Error::invalid(format!("{}:{} is not a judgement", path.display(), at + 1))
                .with_hint("a line holds query id, note id and grade, with tabs between them"));
        };
        grades.entry(query.to_owned()).or_default().insert(note.to_owned(), grade);
    }
    Ok(grades)
}
