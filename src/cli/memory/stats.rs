//! `sidenote memory stats`: totals of all memories.

use console::style;
use sidenote_base::error::Result;

use crate::cli::{CommandContext, output};
use crate::store::MemoryStats;

/// The length of the longest bar, in characters.
const BAR_LENGTH: usize = 30;

/// The storage in use, in percent of `memory.max_bytes`, above which a hint is printed.
const NEARLY_FULL: f64 = 80.0;

pub(super) fn run(context: &CommandContext) -> Result<()> {
    context.out.reply(&context.fresh_store()?.memories().memory_stats()?, show)
}

fn show(stats: &MemoryStats) -> String {
    let heading = |text: &str| format!("{}\n", style(text).bold());
    let hint = if stats.usage_percent > NEARLY_FULL {
        "  nearly full: `sidenote memory cleanup` frees space"
    } else {
        ""
    };
    let storage = format!(
        "  {} of {} ({:.1} %){hint}\n",
        output::bytes(stats.bytes),
        output::bytes(stats.max_bytes),
        stats.usage_percent,
    );
    let context = stats.context.as_ref().map_or_else(
        || "  none\n".to_owned(),
        |context| {
            let until = context
                .expires_at
                .map(|until| format!(" (until {})", until.local_rfc3339()))
                .unwrap_or_default();
            format!("  {}{until}\n", output::plain(&context.text))
        },
    );
    let types: Vec<_> = stats.types.iter().map(|item| (item.kind.clone(), item.notes)).collect();
    [
        heading("Tiers"),
        show_tiers(stats),
        format!(
            "  {}, {} pinned, {} forgotten\n",
            output::count(stats.memories, "note"),
            stats.pinned,
            stats.forgotten
        ),
        heading("Types"),
        show_bars(&types),
        heading("Uses"),
        format!("  {} of {}\n", output::count(stats.uses, "use"), output::count(stats.used, "note")),
        heading("Storage"),
        storage,
        heading("Context"),
        context,
        heading("Maintenance"),
        stats.maintained.map_or_else(
            || "  never run\n".to_owned(),
            |last| format!("  last run {}\n", last.local_rfc3339()),
        ),
        heading("Health"),
        format!("  model {}, {} without a vector\n", stats.embedder, output::count(stats.pending, "passage")),
        format!("  {} of the journal unreadable\n", output::count(stats.corrupt_lines, "line")),
    ]
    .concat()
}

/// Formats the number of memories of each tier as a bar chart, with its share.
pub(super) fn show_tiers(stats: &MemoryStats) -> String {
    show_bars(&stats.tiers.iter().map(|(tier, count)| (tier.to_string(), *count)).collect::<Vec<_>>())
}

/// Formats counts with their names as a bar chart, with their shares of the sum.
fn show_bars(counts: &[(String, usize)]) -> String {
    let max = counts.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let sum = counts.iter().map(|(_, count)| *count).sum::<usize>().max(1);
    let row = |(name, count): &(String, usize)| {
        let share = format!("{:.1}%", *count as f64 * 100.0 / sum as f64);
        vec![format!("  {name}"), count.to_string(), share, "█".repeat((count * BAR_LENGTH).div_ceil(max))]
    };
    output::columns(&counts.iter().map(row).collect::<Vec<_>>())
}
