//! What a server of many vaults counts, in the text format of Prometheus, version 0.0.4.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;

/// The classes of HTTP status codes that are counted, from 1xx to 5xx.
const CLASSES: usize = 5;

/// The counts since the server was started.
#[derive(Debug, Default)]
pub(super) struct Metrics {
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

    /// Counts a vault that was opened.
    pub(super) fn count_opened(&self, took: Duration) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.open_micros.fetch_add(micros(took), Ordering::Relaxed);
    }

    /// Counts a vault that was closed for want of place.
    pub(super) fn count_closed(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the lines for Prometheus. `open` is the number of open vaults.
    pub(super) fn text(&self, open: usize) -> String {
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
        ];
        for (name, kind, value) in single {
            text += &format!("# TYPE {name} {kind}\n{name} {value}\n");
        }
        text
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
