//! What a server of many vaults counts, in the text format of Prometheus, version 0.0.4.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;

/// The classes of HTTP status codes that are counted, from 1xx to 5xx.
const CLASSES: usize = 5;

/// The upper bounds of the classes in which the times of calls are counted, in seconds: from what nobody notices to what clients
/// give up on.
const BOUNDS: [f64; 8] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

/// What became of a call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallResult {
    /// It was answered.
    Done,
    /// It was answered with an error.
    Failed,
    /// The person may not call the tool.
    Refused,
}

impl CallResult {
    const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// The calls of a tool with one result.
#[derive(Debug, Default)]
struct Calls {
    /// The number of calls whose time is within each of [`BOUNDS`] and not within an earlier one.
    within: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

/// The counts since the server was started.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    calls: Mutex<BTreeMap<(&'static str, CallResult), Calls>>,
    refused_tokens: Mutex<BTreeMap<&'static str, u64>>,
    requests: [AtomicU64; CLASSES],
    request_micros: AtomicU64,
    opened: AtomicU64,
    open_micros: AtomicU64,
    closed: AtomicU64,
}

impl Metrics {
    /// Counts a request of a vault, and the time until its answer began.
    pub(super) fn count_request(&self, status: StatusCode, took: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES) - 1;
        if let Some(count) = self.requests.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.request_micros.fetch_add(micros(took), Ordering::Relaxed);
    }

    /// Counts a call of a tool, and the time until its answer.
    pub(crate) fn count_call(&self, tool: &'static str, result: CallResult, took: Duration) {
        let mut counted = locked(&self.calls);
        let calls = counted.entry((tool, result)).or_default();
        let seconds = took.as_secs_f64();
        if let Some(within) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            calls.within.iter_mut().skip(within).take(1).for_each(|count| *count += 1);
        }
        calls.count += 1;
        calls.seconds += seconds;
    }

    /// Counts an access token that does not count, for a reason.
    pub(super) fn count_refused_token(&self, reason: &'static str) {
        *locked(&self.refused_tokens).entry(reason).or_default() += 1;
    }

    /// Counts a vault that was opened.
    pub(super) fn count_opened(&self, took: Duration) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.open_micros.fetch_add(micros(took), Ordering::Relaxed);
    }

    /// Counts a vault that was closed for want of place.
    pub(super) fn count_closed(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the lines for Prometheus. `open` is the number of open vaults, `failing` that of those that could not be opened.
    pub(super) fn text(&self, open: usize, failing: usize) -> String {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let seconds = |count: &AtomicU64| read(count) as f64 / 1e6;
        let mut text = String::new();
        text.push_str("# TYPE sidenote_requests_total counter\n");
        for (class, count) in self.requests.iter().enumerate() {
            text += &format!("sidenote_requests_total{{status=\"{}xx\"}} {}\n", class + 1, read(count));
        }
        let single = [
            ("sidenote_request_seconds_total", "counter", seconds(&self.request_micros)),
            ("sidenote_vaults_opened_total", "counter", read(&self.opened) as f64),
            ("sidenote_vault_open_seconds_total", "counter", seconds(&self.open_micros)),
            ("sidenote_vaults_closed_total", "counter", read(&self.closed) as f64),
            ("sidenote_vaults_open", "gauge", open as f64),
            ("sidenote_vaults_failing", "gauge", failing as f64),
        ];
        for (name, kind, value) in single {
            text += &format!("# TYPE {name} {kind}\n{name} {value}\n");
        }
        text.push_str("# TYPE sidenote_refused_tokens_total counter\n");
        for (reason, count) in locked(&self.refused_tokens).iter() {
            text += &format!("sidenote_refused_tokens_total{{reason=\"{reason}\"}} {count}\n");
        }
        self.add_calls(&mut text);
        text
    }

    fn add_calls(&self, text: &mut String) {
        let counted = locked(&self.calls);
        text.push_str("# TYPE sidenote_tool_calls_total counter\n");
        for ((tool, result), calls) in counted.iter() {
            let result = result.name();
            *text += &format!(
                "sidenote_tool_calls_total{{tool=\"{tool}\",result=\"{result}\"}} {}\n",
                calls.count
            );
        }
        text.push_str("# TYPE sidenote_tool_seconds histogram\n");
        let done = counted.iter().filter(|((_, result), _)| *result == CallResult::Done);
        for ((tool, _), calls) in done {
            let mut sum = 0;
            for (bound, count) in BOUNDS.iter().zip(calls.within) {
                sum += count;
                *text += &format!("sidenote_tool_seconds_bucket{{tool=\"{tool}\",le=\"{bound}\"}} {sum}\n");
            }
            *text += &format!(
                "sidenote_tool_seconds_bucket{{tool=\"{tool}\",le=\"+Inf\"}} {count}\n\
                sidenote_tool_seconds_sum{{tool=\"{tool}\"}} {}\nsidenote_tool_seconds_count{{tool=\"{tool}\"}} {count}\n",
                calls.seconds,
                count = calls.count
            );
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
