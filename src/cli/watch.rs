//! `sidenote watch`: follows the files, prints a line for each batch, and at the end how long changes waited.

use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_base::parallel::no_thread;

use super::{CommandContext, output};
use crate::store::Followed;

/// The maximum number of lines that wait to be printed. Further lines are dropped.
const MAX_WAITING_LINES: usize = 1024;
/// The maximum time that the end of the command waits for lines to be printed.
const PRINT_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of paths in a line.
const MAX_PATHS: usize = 4;

/// Watch the files and update the index until Ctrl-C.
///
/// One line is printed for each batch of changes.
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// At the end, print how long it took until changes could be found.
    #[arg(long)]
    stats: bool,
}

/// How long changes waited, in milliseconds from a batch's first event until a search finds it.
#[derive(Debug, Default, Serialize)]
struct Staleness {
    /// How many batches there were.
    batches: usize,
    /// The median.
    p50_ms: f64,
    /// The 95th percentile.
    p95_ms: f64,
    /// The 99th percentile.
    p99_ms: f64,
    /// The longest.
    most_ms: f64,
    /// Upper ends of the steps, in milliseconds, and how many batches fall into each.
    histogram: Vec<(f64, usize)>,
}

impl Staleness {
    fn of(mut waited: Vec<f64>) -> Self {
        waited.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (waited.len() as f64 * share).ceil() as usize;
            waited.get(place.saturating_sub(1)).copied().unwrap_or_default()
        };
        let steps = [25.0, 50.0, 75.0, 100.0, 150.0, 250.0, 500.0, 1000.0, f64::MAX];
        let mut below = 0;
        let mut histogram = Vec::new();
        for step in steps {
            let upto = waited.partition_point(|&ms| ms <= step);
            if upto > below {
                histogram.push((if step == f64::MAX { at(1.0) } else { step }, upto - below));
            }
            below = upto;
        }
        Self {
            batches: waited.len(),
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            most_ms: at(1.0),
            histogram,
        }
    }

    fn show(&self) -> String {
        let mut text = format!(
            "{}; searchable after p50 {:.0} ms, p95 {:.0} ms, p99 {:.0} ms, at most {:.0} ms\n",
            output::count(self.batches, "batch"),
            self.p50_ms,
            self.p95_ms,
            self.p99_ms,
            self.most_ms
        );
        for (step, count) in &self.histogram {
            let bar = "#".repeat((count * 40).div_ceil(self.batches.max(1)));
            text.push_str(&format!("{:>10} {count:>6} {bar}\n", format!("<= {step:.0} ms")));
        }
        text
    }
}

pub(super) fn run(context: &mut CommandContext, args: &WatchArgs) -> Result<()> {
    context.open.fill = true;
    let store = Arc::new(context.store()?);
    if let Some(holder) = store.index().status()?.locked_by {
        context.out.message(&format!(
            "notice: process {} ({}) writes the index; this process takes over when it ends",
            holder.pid, holder.command
        ));
    }
    let (stop, stopped) = channel();
    let interrupted = stop.clone();
    ctrlc::set_handler(move || {
        if interrupted.send(()).is_err() {
            tracing::debug!("the command is already ending");
        }
    })
    .map_err(|error| Error::internal("cannot watch for Ctrl-C").with_source(error))?;
    // A slow reader of standard output must not block the index.
    let (lines, printed) = sync_channel::<String>(MAX_WAITING_LINES);
    let out = context.out;
    let print = move || {
        for line in printed {
            match out.print_until_closed(&line) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!("{error}");
                    break;
                }
            }
        }
        // Standard output is closed, so the command ends.
        if stop.send(()).is_err() {
            tracing::debug!("the command is already ending");
        }
    };
    let printer = std::thread::Builder::new().spawn(print).map_err(no_thread)?;
    let waited = Arc::new(Mutex::new(Vec::new()));
    let follower_waited = Arc::clone(&waited);
    let follower = store.upkeep().follow(move |step| {
        follower_waited.lock().unwrap_or_else(PoisonError::into_inner).push(step.stale_ms);
        let line = if out.is_json() { serde_json::to_string(&step) } else { Ok(show(&step)) };
        let line = match line {
            Ok(line) => line,
            Err(error) => return tracing::warn!("cannot write a batch as JSON: {error}"),
        };
        if lines.try_send(format!("{line}\n")).is_err() {
            tracing::debug!("a line is dropped: standard output is not read");
        }
    })?;
    stopped.recv().map_err(|error| Error::internal("the signal handler is gone").with_source(error))?;
    drop(follower);
    // Waiting lines are printed if they are read in time.
    let end = Instant::now() + PRINT_TIMEOUT;
    while !printer.is_finished() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    if args.stats {
        let waited = std::mem::take(&mut *waited.lock().unwrap_or_else(PoisonError::into_inner));
        let stats = Staleness::of(waited);
        return context.out.reply(&stats, Staleness::show);
    }
    Ok(())
}

fn show(step: &Followed) -> String {
    let report = &step.report;
    let counts = [
        (report.added, "added"),
        (report.changed, "changed"),
        (report.moved, "moved"),
        (report.removed, "removed"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let mut line = format!("{} in {:.0} ms", counts.join(", "), step.took_ms);
    let named: Vec<String> = step.paths.iter().take(MAX_PATHS).map(|path| output::plain(path)).collect();
    if !named.is_empty() {
        line.push_str(&format!(": {}", named.join(", ")));
    }
    if step.paths.len() > MAX_PATHS {
        line.push_str(&format!(" and {} more", step.paths.len() - MAX_PATHS));
    }
    if let Some(why) = &step.rescan {
        line.push_str(&format!(" (full scan: {why})"));
    }
    for warning in &report.warnings {
        line.push_str(&format!("\n  warning: {}", output::plain(warning)));
    }
    line
}
