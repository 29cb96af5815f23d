//! `sidenote memory explain`: explains the score of a memory.

use clap::Args;
use console::style;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;

use crate::cli::{CommandContext, output};
use crate::store::{ExplainReply, ScoreComponent, TierReason};

/// Explain the tier, importance and score of a memory.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The memory: id, path, title, alias or [[wikilink]].
    name: String,
    /// Compute the score for this query.
    #[arg(long)]
    query: Option<String>,
}

pub(super) fn run(context: &CommandContext, args: &ExplainArgs) -> Result<()> {
    let reply = context.fresh_store()?.recalls().explain(&args.name, args.query.as_deref())?;
    context.out.reply(&reply, show)
}

fn show(reply: &ExplainReply) -> String {
    let state = &reply.memory.state;
    let row = |name: &str, component: &ScoreComponent| {
        vec![format!("  {name}"), format!("{:.3}", component.raw), format!("{:.3}", component.weighted)]
    };
    let score = &reply.score;
    let rows = [
        vec!["  score".to_owned(), "raw".to_owned(), "weighted".to_owned()],
        row("similarity", &score.similarity),
        row("recency", &score.recency),
        row("frequency", &score.frequency),
        vec!["  total".to_owned(), String::new(), format!("{:.3}", score.total)],
    ];
    let last_use = state.last_use.map_or_else(|| "never".to_owned(), Timestamp::local_rfc3339);
    format!(
        "{}\n  {}, {}, weight {:.1} (half-life {} days, floor {})\n  used {} on {}, last {last_use}; usefulness {}\n  tier: {}\n  recall: {} ({})\n{}",
        style(output::plain(&reply.memory.path)).bold(),
        state.tier,
        output::plain(&reply.memory.kind),
        state.importance,
        reply.half_life_days,
        reply.floor,
        output::count(state.uses, "time"),
        output::count(state.days_used, "day"),
        state.usefulness,
        deciding(reply),
        if reply.eligible { "yes" } else { "no" },
        reply.reason,
        output::columns(&rows)
    )
}

/// Says which value decides the tier.
fn deciding(reply: &ExplainReply) -> String {
    let (tier, limits) = (reply.memory.state.tier, &reply.thresholds);
    let warm = format!(
        "WARM takes {} on {}, the last within {} days",
        output::count(limits.warm_uses, "use"),
        output::count(limits.warm_use_days, "day"),
        limits.warm_days,
    );
    let why = match reply.tier_reason {
        TierReason::Archived => "its property `tier` is archive".to_owned(),
        TierReason::New => format!("it was created less than {} hours ago", limits.hot_hours),
        TierReason::InUse => format!("it is in use; {warm}"),
        TierReason::Pinned => "it is pinned".to_owned(),
        TierReason::FewUses => format!("it has too few uses; {warm}"),
        TierReason::FewDays => format!("it was used on too few days; {warm}"),
        TierReason::Unused => format!("its last use is too long ago; {warm}"),
    };
    format!("{tier}, because {why}")
}
