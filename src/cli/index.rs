//! `sidenote index`: brings the index up to date and shows progress by phase. Ctrl-C is safe at any moment.

use std::sync::atomic::Ordering;
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_index::{EmbedReport, SyncReport};

use super::progress::PhaseBar;
use super::{CommandContext, Outcome, interrupt, output};

/// Update the index from the files, read new attachments, and compute missing vectors.
///
/// Ctrl-C is safe: a batch of files is committed completely or not at all, and all vectors computed so far are kept. The
/// exit code is 130 then. A second Ctrl-C ends the command at once.
#[derive(Debug, Args)]
pub(super) struct IndexArgs {
    /// Rebuild the index from scratch. Vectors are kept, because they depend only on the texts.
    #[arg(long)]
    rebuild: bool,
    /// Do not compute vectors. Search by words works without them.
    #[arg(long)]
    no_embed: bool,
}

/// The reply of `index`.
#[derive(Debug, Serialize)]
struct IndexReply {
    #[serde(flatten)]
    report: SyncReport,
    /// Notes in the index.
    notes: usize,
    /// Passages in the index.
    passages: usize,
    /// Milliseconds until the index was up to date.
    index_ms: u128,
    /// Attachments whose text was read.
    attachments: usize,
    /// Milliseconds that reading them took.
    attachments_ms: u128,
    /// Passages that were embedded.
    embedded: usize,
    /// Passages whose vector was in your cache, because another clone, worktree or vault of yours had embedded the text.
    reused: usize,
    /// Passages that still wait for a vector.
    pending: usize,
    /// Milliseconds that the vectors took.
    embed_ms: u128,
    /// Whether Ctrl-C stopped it before it was done.
    stopped: bool,
}

pub(super) fn run(context: &mut CommandContext, args: &IndexArgs) -> Result<Outcome> {
    context.open.rebuild = args.rebuild;
    context.open.merge_loads = true;
    let started = Instant::now();
    let store = context.store()?;
    let interrupted = interrupt::stop_with(store.stop_handle(), context.out)?;
    let bar = PhaseBar::new();
    let synced = store.index().sync(bar.progress());
    bar.finish();
    let report = match synced {
        // A batch that Ctrl-C interrupted is not a failure: the index is as it was before the batch.
        Err(error) if interrupted.load(Ordering::Relaxed) => {
            context.out.print_error(&error);
            return Ok(Outcome::Interrupted);
        }
        synced => synced?,
    };
    let index_ms = started.elapsed().as_millis();
    for warning in &report.warnings {
        context.out.message(&format!("warning: {warning}"));
    }
    if let Some(change) = &report.dialect_change {
        context.out.message(&format!("warning: {change}"));
    }
    let started = Instant::now();
    let mut attachments = 0;
    if !interrupted.load(Ordering::Relaxed) {
        let bar = PhaseBar::new();
        let read = store.index().read_attachments(&bar.progress());
        bar.finish();
        attachments = match read {
            // What was read so far is indexed.
            Err(error) if interrupted.load(Ordering::Relaxed) => {
                context.out.print_error(&error);
                return Ok(Outcome::Interrupted);
            }
            read => read?,
        };
    }
    let attachments_ms = started.elapsed().as_millis();
    let started = Instant::now();
    let mut vectors = EmbedReport::default();
    if !args.no_embed && !interrupted.load(Ordering::Relaxed) {
        let bar = PhaseBar::new();
        let made = store.index().embed_all(bar.progress());
        bar.finish();
        vectors = match made {
            // All vectors computed so far are kept.
            Err(error) if interrupted.load(Ordering::Relaxed) => {
                context.out.print_error(&error);
                return Ok(Outcome::Interrupted);
            }
            made => made?,
        };
    }
    let embed_ms = started.elapsed().as_millis();
    let (notes, passages, pending) = store.index().totals()?;
    let reply = IndexReply {
        report,
        notes,
        passages,
        index_ms,
        attachments,
        attachments_ms,
        embedded: vectors.embedded,
        reused: vectors.reused,
        pending,
        embed_ms,
        // Ctrl-C after the last vector has no effect.
        stopped: interrupted.load(Ordering::Relaxed) && !args.no_embed && pending > 0,
    };
    context.out.reply(&reply, show)?;
    Ok(if reply.stopped { Outcome::Interrupted } else { Outcome::Done })
}

fn rate(count: f64, ms: u128) -> f64 {
    count * 1000.0 / (ms.max(1) as f64)
}

fn show(reply: &IndexReply) -> String {
    let report = &reply.report;
    let mut text = format!(
        "{}, {}; {} scanned: {} added, {} changed, {} moved, {} removed\n",
        output::count(reply.notes, "note"),
        output::count(reply.passages, "passage"),
        output::count(report.scanned, "file"),
        report.added,
        report.changed,
        report.moved,
        report.removed
    );
    if report.read > 0 {
        text.push_str(&format!(
            "read {} in {:.2} s ({:.0} files/s, {}/s)\n",
            output::bytes(report.bytes),
            reply.index_ms as f64 / 1000.0,
            rate(report.read as f64, reply.index_ms),
            output::bytes(rate(report.bytes as f64, reply.index_ms) as u64),
        ));
    }
    if reply.attachments > 0 {
        text.push_str(&format!(
            "read the text of {} in {:.1} s\n",
            output::count(reply.attachments, "attachment"),
            reply.attachments_ms as f64 / 1000.0
        ));
    }
    if reply.reused > 0 {
        text.push_str(&format!("reused {} from your cache\n", output::count(reply.reused, "vector")));
    }
    if reply.embedded > 0 {
        text.push_str(&format!(
            "embedded {} in {:.1} s ({:.1}/s)\n",
            output::count(reply.embedded, "passage"),
            reply.embed_ms as f64 / 1000.0,
            rate(reply.embedded as f64, reply.embed_ms),
        ));
    }
    if reply.pending > 0 {
        text.push_str(&format!(
            "{} without a vector; run `sidenote index` to compute the rest\n",
            output::count(reply.pending, "passage")
        ));
    }
    if reply.stopped {
        text.push_str("stopped; all vectors computed so far are kept\n");
    }
    text
}
