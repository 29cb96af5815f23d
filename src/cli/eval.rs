//! `sidenote eval`: measures search quality on a set of queries with relevance judgements.

use std::path::PathBuf;

use clap::Args;

use super::search::ModeArg;
use super::{CommandContext, output};
use crate::error::Result;
use crate::index::silent;
use crate::search::Mode;
use crate::search::fuse::Fusion;
use crate::store::{EvalReply, EvalRequest};

/// Measure search quality on a test collection.
///
/// A collection has notes, queries and relevance judgements. It is a folder with notes/, queries.jsonl (qid, text, optional scope and before_seq) and qrels.tsv (qid,
/// note id, grade). Missing vectors are computed first.
#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// The folder of the collection.
    set: PathBuf,
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
    context.open.vault = Some(args.set.join("notes"));
    if let Some(fusion) = &args.fusion {
        context.open.flags.push(("search.fusion", fusion.clone(), "--fusion"));
    }
    let store = context.fresh_store()?;
    let modes: Vec<Mode> = args.mode.iter().copied().map(Mode::from).collect();
    if store.is_writer() && modes.as_slice() != [Mode::Bm25] {
        store.index().embed_all(silent())?;
    }
    let against = args.against.as_deref().map(Fusion::parse).transpose()?;
    let (causal, per_query, shares) = (args.causal, args.per_query, args.vectors.clone());
    let request = EvalRequest { modes, causal, per_query, against, shares };
    context.out.reply(&store.searches().eval(&args.set, &request)?, show)
}

fn show(reply: &EvalReply) -> String {
    let mut rows: Vec<Vec<String>> = vec![
        ["mode", "nDCG@10", "recall@10", "recall@100", "MRR@10", "ms/query"].map(str::to_owned).to_vec(),
    ];
    for scores in &reply.modes {
        rows.push(vec![
            scores.label(),
            format!("{:.4}", scores.ndcg_at_10),
            format!("{:.4}", scores.recall_at_10),
            format!("{:.4}", scores.recall_at_100),
            format!("{:.4}", scores.mrr_at_10),
            format!("{:.2}", scores.ms_per_query),
        ]);
    }
    let mut text = format!(
        "{}, {}\n{}",
        output::count(usize::try_from(reply.notes).unwrap_or(usize::MAX), "note"),
        output::count(reply.queries, "judged query"),
        output::columns(&rows)
    );
    for pair in &reply.pairs {
        text.push_str(&format!(
            "hybrid - {}: {:+.4}, 95 % of samples {:+.4} to {:+.4}\n",
            pair.against, pair.mean, pair.low, pair.high
        ));
    }
    if !reply.shares.is_empty() {
        let head = ["vectors", "bm25", "hybrid", "difference", "95 % of samples"].map(str::to_owned);
        let mut rows = vec![head.to_vec()];
        for share in &reply.shares {
            rows.push(vec![
                format!("{} %", share.percent),
                format!("{:.4}", share.bm25),
                format!("{:.4}", share.hybrid),
                format!("{:+.4}", share.paired.mean),
                format!("{:+.4} to {:+.4}", share.paired.low, share.paired.high),
            ]);
        }
        text.push_str(&output::columns(&rows));
    }
    if reply.pending > 0 {
        text.push_str(&format!("{} without a vector\n", output::count(reply.pending, "passage")));
    }
    text
}
