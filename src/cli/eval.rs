//! `sidenote eval`: measures search quality on sets of queries with relevance judgements.

use std::path::{Path, PathBuf};

use clap::Args;
use sidenote_base::error::{Error, Result};
use sidenote_index::silent;
use sidenote_search::Mode;
use sidenote_search::fuse::Fusion;

use super::search::ModeArg;
use super::{CommandContext, output};
use crate::store::{EvalReply, EvalRequest, ModeScores, Paired, ShareScores, evaluation_sets};

/// Measure search quality on test collections.
///
/// A collection, or set, has notes, queries and relevance judgements. It is a folder with notes/, queries.jsonl (qid,
/// text, optional scope and before_seq) and qrels.tsv (qid, note id, grade). If a folder is not a set, all sets below
/// it are measured. Missing vectors are computed first. Several sets are printed as one table; --json prints a list
/// with one entry for each set.
#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// The folders of the sets, or folders with sets below them.
    #[arg(required = true, value_name = "SET")]
    sets: Vec<PathBuf>,
    /// Measure only this mode; may be repeated.
    #[arg(long, value_enum)]
    mode: Vec<ModeArg>,
    /// Consider only notes whose `seq` is below the `before_seq` of the query.
    #[arg(long)]
    causal: bool,
    /// Include the nDCG@10 of each query; requires --json.
    #[arg(long)]
    per_query: bool,
    /// The fusion method of hybrid search: relative, rrf or weighted.
    #[arg(long)]
    fusion: Option<String>,
    /// Also measure hybrid search with this fusion method, and compare the two by query.
    #[arg(long, value_name = "FUSION")]
    against: Option<String>,
    /// Also measure hybrid search with vectors for these percentages of the notes, against words alone: 0,1,10,50,90,100.
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(..=100))]
    vectors: Vec<u8>,
}

pub(super) fn run(context: &mut CommandContext, args: &EvalArgs) -> Result<()> {
    let mut sets: Vec<PathBuf> = Vec::new();
    for folder in &args.sets {
        for set in evaluation_sets(folder)? {
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
    }
    if sets.len() > 1 && context.open.index.is_some() {
        return Err(Error::invalid("--index names one index, which several sets cannot share")
            .with_hint("give one set, or leave --index out"));
    }
    if let Some(fusion) = &args.fusion {
        context.open.flags.push(("search.fusion", fusion.clone(), "--fusion"));
    }
    let request = EvalRequest {
        modes: args.mode.iter().copied().map(Mode::from).collect(),
        causal: args.causal,
        per_query: args.per_query,
        against: args.against.as_deref().map(Fusion::parse).transpose()?,
        shares: args.vectors.clone(),
    };
    let replies = sets.iter().map(|set| measure(context, set, &request)).collect::<Result<Vec<_>>>()?;
    context.out.reply(&replies, |replies| show(replies))
}

/// Indexes and embeds the notes of a set, and measures search on it.
fn measure(context: &mut CommandContext, set: &Path, request: &EvalRequest) -> Result<EvalReply> {
    context.open.vault = Some(set.join("notes"));
    let store = context.fresh_store()?;
    if store.is_writer() && request.modes.as_slice() != [Mode::Bm25] {
        store.index().embed_all(silent())?;
    }
    store.searches().eval(set, request)
}

fn show(replies: &[EvalReply]) -> String {
    match replies {
        [one] => show_one(one),
        several => show_several(several),
    }
}

/// Formats the scores of one set, with a line for each comparison.
fn show_one(reply: &EvalReply) -> String {
    let mut rows = vec![[&["mode"], &SCORES[..]].concat().into_iter().map(str::to_owned).collect()];
    rows.extend(reply.modes.iter().map(|run| [vec![run.label()], scores(run)].concat()));
    let mut text = format!("{}\n{}", counts(reply), output::columns(&rows));
    for pair in &reply.pairs {
        text.push_str(&format!(
            "hybrid - {}: {:+.4}, 95 % of samples {}\n",
            pair.against,
            pair.mean,
            interval(pair)
        ));
    }
    if !reply.shares.is_empty() {
        let head = SHARES.map(str::to_owned).to_vec();
        text.push_str(&output::columns(&[vec![head], shares(reply)].concat()));
    }
    if reply.pending > 0 {
        text.push_str(&format!("{} without a vector\n", output::count(reply.pending, "passage")));
    }
    text
}

/// Formats the scores of several sets as one table, in which a row compares hybrid mode with the run of the row.
fn show_several(replies: &[EvalReply]) -> String {
    let with_name = |name: &str, cells: Vec<String>| [vec![name.to_owned()], cells].concat();
    let names: Vec<String> = replies.iter().map(|reply| name(reply, replies)).collect();
    let named = || names.iter().zip(replies);
    let head = [&["set", "mode"], &SCORES[..], &["hybrid - mode", "95 % of samples"]].concat();
    let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
    let (mut text, mut share_rows, mut pending) = (String::new(), Vec::new(), String::new());
    for (name, reply) in named() {
        text.push_str(&format!("{}: {}\n", output::plain(name), counts(reply)));
        for run in &reply.modes {
            let label = run.label();
            let pair = reply.pairs.iter().find(|pair| pair.against == label);
            let difference = pair.map(|pair| vec![format!("{:+.4}", pair.mean), interval(pair)]);
            let cells = [vec![label], scores(run), difference.unwrap_or_default()].concat();
            rows.push(with_name(name, cells));
        }
        share_rows.extend(shares(reply).into_iter().map(|cells| with_name(name, cells)));
        if reply.pending > 0 {
            let count = output::count(reply.pending, "passage");
            pending.push_str(&format!("{}: {count} without a vector\n", output::plain(name)));
        }
    }
    text.push_str(&output::columns(&rows));
    if !share_rows.is_empty() {
        let head = with_name("set", SHARES.map(str::to_owned).to_vec());
        text.push_str(&output::columns(&[vec![head], share_rows].concat()));
    }
    text + &pending
}

/// The columns of [`scores`].
const SCORES: [&str; 6] = ["nDCG@10", "recall@5", "recall@10", "recall@100", "MRR@10", "ms/query"];

/// The columns of [`shares`].
const SHARES: [&str; 5] = ["vectors", "bm25", "hybrid", "difference", "95 % of samples"];

fn scores(run: &ModeScores) -> Vec<String> {
    let shares = [run.ndcg_at_10, run.recall_at_5, run.recall_at_10, run.recall_at_100, run.mrr_at_10];
    let mut cells: Vec<String> = shares.iter().map(|share| format!("{share:.4}")).collect();
    cells.push(format!("{:.2}", run.ms_per_query));
    cells
}

fn shares(reply: &EvalReply) -> Vec<Vec<String>> {
    let row = |share: &ShareScores| {
        vec![
            format!("{} %", share.percent),
            format!("{:.4}", share.bm25),
            format!("{:.4}", share.hybrid),
            format!("{:+.4}", share.paired.mean),
            interval(&share.paired),
        ]
    };
    reply.shares.iter().map(row).collect()
}

fn interval(pair: &Paired) -> String {
    format!("{:+.4} to {:+.4}", pair.low, pair.high)
}

fn counts(reply: &EvalReply) -> String {
    let notes = output::count(usize::try_from(reply.notes).unwrap_or(usize::MAX), "note");
    format!("{notes}, {}", output::count(reply.queries, "judged query"))
}

/// Returns the name of a set's folder, or its path if another set has the same name.
fn name(reply: &EvalReply, all: &[EvalReply]) -> String {
    let last = |reply: &EvalReply| Path::new(&reply.set).file_name().map(ToOwned::to_owned);
    let own = last(reply);
    let is_unique = all.iter().filter(|other| last(other) == own).count() == 1;
    match own.filter(|_| is_unique) {
        Some(name) => name.to_string_lossy().into_owned(),
        None => reply.set.clone(),
    }
}
