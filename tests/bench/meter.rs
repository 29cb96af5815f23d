//! Owns what a measure yields: times, CPU seconds and peak memory of this process.

use std::fs;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::Result;

/// Ticks of `/proc/self/stat` in a second (`USER_HZ`, the same on every Linux that Rust runs on).
const TICKS: f64 = 100.0;

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Milliseconds of each run.
    times: Vec<f64>,
    /// CPU seconds of all runs, those of processes started and awaited included.
    cpu: f64,
    /// Bytes of memory at the peak, everything before the first run included; 0 where that is not known.
    pub(crate) peak: f64,
    /// What else is to be said; empty mostly.
    #[serde(default)]
    pub(crate) remark: String,
}

impl Sample {
    /// Runs something and keeps its time.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let (cpu, started) = (cpu_seconds(), Instant::now());
        let value = work()?;
        self.times.push(started.elapsed().as_secs_f64() * 1000.0);
        self.cpu += cpu_seconds() - cpu;
        self.peak = peak_memory();
        Ok(value)
    }

    /// Adds the runs of another process.
    pub(crate) fn join(&mut self, other: Self) {
        self.times.extend(other.times);
        self.cpu += other.cpu;
        self.peak = self.peak.max(other.peak);
        self.remark = other.remark;
    }

    /// Gives the time in milliseconds that `percent` of the runs do not exceed, by the nearest rank.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        let rank = (times.len() * percent).div_ceil(100).max(1);
        times.get(rank - 1).copied().unwrap_or(0.0)
    }

    /// Gives the mean CPU seconds of a run.
    pub(crate) fn cpu_each(&self) -> f64 {
        self.cpu / self.times.len().max(1) as f64
    }
}

/// Reads the CPU seconds of this process and of those it awaited; 0 where there is no `/proc`.
fn cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in parentheses, which may hold anything.
    let behind = text.rsplit(')').next().unwrap_or_default();
    let ticks = behind.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS
}

/// Reads the most bytes of memory that this process has held (`VmHWM`); 0 where there is no `/proc`.
fn peak_memory() -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) * 1024.0
}
