//! Progress of long work, on standard error: bars for the phases of indexing, and spinners.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use sidenote_index::{Phase, Progress};

/// The interval between two pictures of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// A progress bar that shows the current phase. It is hidden if standard error is not a terminal.
pub(super) struct PhaseBar {
    bar: ProgressBar,
    phase: Arc<Mutex<Option<Phase>>>,
}

impl PhaseBar {
    pub(super) fn new() -> Self {
        Self { bar: ProgressBar::no_length(), phase: Arc::default() }
    }

    pub(super) fn progress(&self) -> Arc<Progress> {
        let (bar, current) = (self.bar.clone(), Arc::clone(&self.phase));
        Arc::new(move |phase, done, total| {
            let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
            if *current != Some(phase) {
                *current = Some(phase);
                let counted = matches!(phase, Phase::Parse | Phase::Embed);
                bar.set_style(phase_style(counted));
                bar.set_message(name(phase));
                bar.reset();
                if !counted {
                    bar.enable_steady_tick(TICK);
                }
            }
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        })
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Scan => "scanning",
        Phase::Parse => "indexing",
        Phase::Commit => "saving",
        Phase::Read => "reading attachments",
        Phase::Merge => "merging the full text",
        Phase::Embed => "embedding",
        Phase::Graph => "building the vector graph",
    }
}

fn phase_style(counted: bool) -> ProgressStyle {
    let template =
        if counted { "{msg:>10} [{bar:30}] {human_pos}/{human_len}{rate}" } else { "{msg:>10} {spinner}" };
    // The templates are constants; a wrong one falls back to the plain bar.
    ProgressStyle::with_template(template)
        .map_or_else(|_| ProgressStyle::default_bar(), |style| style.progress_chars("=> "))
        .with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let text = rate(state.pos(), state.len().unwrap_or(0), state.elapsed());
            // A progress bar that cannot be drawn harms nobody.
            out.write_str(&text).unwrap_or_default();
        })
}

/// Formats how fast a phase is and how long it will take, from its first batch on. Before that, neither is known.
fn rate(done: u64, total: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if done == 0 || seconds <= 0.0 {
        return String::new();
    }
    let per_second = done as f64 / seconds;
    let left = Duration::from_secs_f64((total.saturating_sub(done) as f64 / per_second).min(MAX_LEFT));
    format!(" {per_second:.0}/s, {} left", HumanDuration(left))
}

/// The longest time that is shown, in seconds: a year.
const MAX_LEFT: f64 = 31_536_000.0;

/// Work whose end is not known, shown as a spinner with the time that it has taken. It is hidden if standard error is not a
/// terminal, and goes away when this is dropped.
pub(super) struct Spinner(ProgressBar);

impl Spinner {
    /// Shows a spinner with a word for the work.
    pub(super) fn start(work: &'static str) -> Self {
        let bar = ProgressBar::new_spinner();
        // The template is a constant; a wrong one falls back to the plain spinner.
        bar.set_style(
            ProgressStyle::with_template("{msg:>10} {spinner} {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.set_message(work);
        bar.enable_steady_tick(TICK);
        Self(bar)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
