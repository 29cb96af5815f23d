//! Owns the comparison with the bench of another commit: both take each measure in turns on one vault, each with an index of
//! its own.

use std::fs;
use std::io::{Write as _, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bed::{Bed, Place};
use crate::measure::MEASURES;
use crate::meter::Sample;
use crate::{Result, prepare, take_apart};

/// The bench of one commit, and where it keeps its index.
struct Side {
    program: PathBuf,
    place: Place,
}

impl Side {
    fn new(program: &Path, name: &str, bed: &Bed) -> Result<Self> {
        let work = bed.place.work.join(name);
        fs::create_dir_all(&work)?;
        fs::copy(bed.place.work.join("queries"), work.join("queries"))?;
        Ok(Self { program: program.to_owned(), place: Place::new(&bed.place.root, work) })
    }
}

/// Takes the measures whose name contains `only` in `rounds` rounds with this program and with `base`, and prints the ratio of
/// each figure to that of `base`: the median of the rounds, and the least and the largest one. A measure that `base` does not
/// have is left out.
///
/// # Errors
/// A measure that one of the two programs has and cannot take.
pub(crate) fn compare(bed: &Bed, base: &Path, only: &str, rounds: usize) -> Result<()> {
    let sides = [Side::new(&std::env::current_exe()?, "head", bed)?, Side::new(base, "base", bed)?];
    let mut out = stdout().lock();
    writeln!(
        out,
        "{:<12} {:<42} {:>20} {:>22} {:>22} {:>22}",
        "measure", "head : base", "p50 ms", "p50", "p99", "CPU"
    )?;
    let known = measures_of(base)?;
    for measure in MEASURES.iter().filter(|measure| measure.name.contains(only)) {
        if !known.iter().any(|name| name == measure.name) {
            writeln!(out, "{:<12} {:<42} the other commit has no such measure", measure.name, measure.title)?;
            continue;
        }
        for side in &sides {
            prepare(&side.program, &side.place, measure.needs)?;
        }
        let mut taken: [Vec<Sample>; 2] = [Vec::new(), Vec::new()];
        for round in 0..rounds {
            // Who comes second finds a warmer machine, so that the two take turns in that as well.
            for at in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                let (Some(side), Some(samples)) = (sides.get(at), taken.get_mut(at)) else { continue };
                samples.push(take_apart(&side.program, measure, &side.place)?);
            }
        }
        let [head, base] = &taken;
        let figures: [fn(&Sample) -> f64; 3] =
            [|sample| sample.percentile(50), |sample| sample.percentile(99), Sample::cpu_each];
        let [p50, p99, cpu] = figures.map(|figure| Ratios::of(head, base, figure).to_string());
        let both = format!("{:.2} : {:.2}", median(head), median(base));
        writeln!(out, "{:<12} {:<42} {both:>20} {p50:>22} {p99:>22} {cpu:>22}", measure.name, measure.title)?;
        out.flush()?;
    }
    Ok(())
}

/// Lists the measures that the bench of another commit has.
fn measures_of(program: &Path) -> Result<Vec<String>> {
    let output = Command::new(program).arg("--list").stderr(Stdio::null()).output()?;
    if !output.status.success() {
        // A bench that is older than `--list` is taken to have every measure.
        return Ok(MEASURES.iter().map(|measure| measure.name.to_owned()).collect());
    }
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

/// Returns the median of the medians of all rounds, in milliseconds.
fn median(samples: &[Sample]) -> f64 {
    let mut medians: Vec<f64> = samples.iter().map(|sample| sample.percentile(50)).collect();
    medians.sort_by(f64::total_cmp);
    medians.get(medians.len() / 2).copied().unwrap_or(0.0)
}

/// The ratios of a figure in all rounds, in order.
struct Ratios(Vec<f64>);

impl Ratios {
    fn of(head: &[Sample], base: &[Sample], figure: fn(&Sample) -> f64) -> Self {
        let pairs = head.iter().map(figure).zip(base.iter().map(figure));
        let mut ratios: Vec<f64> =
            pairs.filter(|(_, base)| *base > 0.0).map(|(head, base)| head / base).collect();
        ratios.sort_by(f64::total_cmp);
        Self(ratios)
    }
}

impl std::fmt::Display for Ratios {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0.first(), self.0.get(self.0.len() / 2), self.0.last()) {
            (Some(least), Some(median), Some(largest)) => {
                write!(f, "{median:.3} ({least:.3} to {largest:.3})")
            }
            _ => f.write_str("-"),
        }
    }
}
