//! `sidenote memory search`: searches memories, by relevance or for an intent.

use clap::{Args, ValueEnum};
use console::style;
use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::Inactive;
use sidenote_memory::validity::Invalidity;

use super::parse_tier;
use crate::cli::args::AsOfArgs;
use crate::cli::search::FilterArgs;
use crate::cli::{CommandContext, output};
use crate::store::{
    CompositeScore, Fallback, Intent, IntentScore, Memory, MemoryRanking, ScoreComponent, SearchRequest,
    SearchResult,
};

/// The longest text of a memory in a list of results, in characters.
const LONGEST_TEXT: usize = 80;

/// What stands for the rest of a longer text.
const ELLIPSIS: &str = " …";

/// Search memories, by relevance or for an intent.
#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    /// The query.
    #[arg(required = true)]
    query: Vec<String>,
    /// Rank for this purpose: continuity, fact_check, frequent, associative or explore.
    #[arg(long)]
    intent: Option<String>,
    /// Show only memories of this tier: hot, warm, cold or archive.
    #[arg(long)]
    tier: Option<String>,
    /// The maximum number of memories.
    #[arg(long, default_value_t = 10)]
    limit: usize,
    /// Include archived and forgotten memories.
    #[arg(long)]
    deep: bool,
    /// Include inactive memories of this kind.
    #[arg(long, value_delimiter = ',', value_enum)]
    include: Vec<InactiveArg>,
    /// Show how each score was computed.
    #[arg(long)]
    explain: bool,
    /// The seed of the random numbers, for reproducible results.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    as_of: AsOfArgs,
}

/// The values of `--include`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InactiveArg {
    /// Memories that were forgotten.
    Forgotten,
    /// Memories of the tier archive.
    Archived,
}

/// A memory that matches a query.
#[derive(Debug, Serialize)]
struct MemoryHit {
    /// The memory.
    #[serde(flatten)]
    memory: Memory,
    /// Source text around the best matches, with an ellipsis where it begins amid a line or the passage goes on.
    snippet: String,
    /// The score, comparable within one reply.
    score: f64,
    /// Why the memory is not valid now, if so.
    #[serde(flatten)]
    invalidity: Invalidity,
    /// How the score was computed, for a search with an intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<IntentScore>,
    /// The score in recall with its components, for `--explain` without an intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    composite: Option<CompositeScore>,
}

impl MemoryHit {
    fn of(result: SearchResult) -> Option<Self> {
        let mut memory = result.memory?;
        // The path of the newest note that supersedes it says more than the property.
        memory.superseded_by = memory.superseded_by.filter(|_| result.invalidity.superseded_by.is_none());
        Some(Self {
            memory,
            snippet: result.snippet,
            invalidity: result.invalidity,
            score: result.intent_score.map_or_else(|| f64::from(result.score), |parts| parts.total),
            parts: result.intent_score,
            composite: None,
        })
    }
}

pub(super) fn run(context: &CommandContext, args: &SearchArgs) -> Result<()> {
    let request = request(context, args)?;
    let store = context.store()?;
    let reply = store.searches().search(&request)?;
    for notice in &reply.notes {
        context.out.message(&format!("notice: {notice}"));
    }
    if reply.stale {
        context.out.message("notice: some files changed and are not in the index yet");
    }
    if let Some(suggestion) = &reply.did_you_mean {
        context.out.message(&format!("did you mean: {}", output::plain(suggestion)));
    }
    let mut hits: Vec<MemoryHit> = reply.results.into_iter().filter_map(MemoryHit::of).collect();
    if args.explain && args.intent.is_none() {
        for hit in &mut hits {
            let explained = store.recalls().explain(&hit.memory.path, Some(&request.query))?;
            hit.composite = Some(explained.score);
        }
    }
    context.out.reply(&hits, |hits| hits.iter().map(|hit| show_hit(hit, args.explain)).collect())
}

fn request(context: &CommandContext, args: &SearchArgs) -> Result<SearchRequest> {
    let includes = |kind| args.deep || args.include.contains(&kind);
    Ok(SearchRequest {
        query: args.query.join(" "),
        limit: Some(args.limit),
        filter: args.filter.filter(context.now())?,
        as_of: args.as_of.instant(context.now())?,
        include: Inactive {
            archived: includes(InactiveArg::Archived),
            forgotten: includes(InactiveArg::Forgotten),
        },
        fallback: Fallback::IfEmpty,
        memories: Some(MemoryRanking {
            intent: args.intent.as_deref().map(parse_intent).transpose()?,
            tier: args.tier.as_deref().map(parse_tier).transpose()?,
            seed: args.seed,
        }),
        ..SearchRequest::default()
    })
}

fn parse_intent(name: &str) -> Result<Intent> {
    Intent::parse(name).ok_or_else(|| {
        let names: Vec<&str> = Intent::ALL.iter().map(|intent| intent.name()).collect();
        Error::invalid(format!("{name:?} is not an intent")).with_hint(format!("use {}", names.join(", ")))
    })
}

fn show_hit(hit: &MemoryHit, explain: bool) -> String {
    let memory = &hit.memory;
    let marks = [(memory.state.pinned, " [PINNED]"), (memory.state.forgotten, " [FORGOTTEN]")];
    let marks: String = marks.into_iter().filter_map(|(is_set, mark)| is_set.then_some(mark)).collect();
    let mut text = format!(
        "{}  {} {} {:.1}  {:.3}{marks}\n",
        style(output::plain(&memory.path)).bold(),
        memory.state.tier,
        output::plain(&memory.kind),
        memory.state.importance,
        hit.score
    );
    if let Some(score) = &hit.composite {
        let part =
            |name: &str, part: &ScoreComponent| format!("{name} {:.3} → {:.3}   ", part.raw, part.weighted);
        text.push_str(&format!(
            "    {}{}{}total {:.3}\n",
            part("similarity", &score.similarity),
            part("recency", &score.recency),
            part("frequency", &score.frequency),
            score.total
        ));
    }
    if let (true, Some(parts)) = (explain, &hit.parts) {
        text.push_str(&format!(
            "    relevance {:.3} → {:.3}   recency {:.3} → {:.3}   utility {:.3} → {:.3}   chance × {:.3}\n",
            parts.relevance.raw,
            parts.relevance.weighted,
            parts.recency.raw,
            parts.recency.weighted,
            parts.utility.raw,
            parts.utility.weighted,
            parts.jitter
        ));
    }
    if hit.invalidity != Invalidity::default() {
        text.push_str(&format!("    {}\n", style(output::plain(&hit.invalidity.phrase())).yellow()));
    }
    text.push_str(&format!("    {}\n", output::plain(&one_line(&hit.snippet))));
    text
}

/// Returns a text on one line of at most [`LONGEST_TEXT`] characters.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST_TEXT {
        return line;
    }
    let kept: String = line.chars().take(LONGEST_TEXT - ELLIPSIS.chars().count()).collect();
    format!("{}{ELLIPSIS}", kept.trim_end())
}
