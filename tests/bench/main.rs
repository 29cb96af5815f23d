//! `cargo bench`: how long indexing and searching take, beside the least program that indexes the same files.
//!
//! Each measure runs in a process of its own, so that its CPU time and its peak memory are its own. Arguments behind
//! `--`: `--notes N` for the size of the synthetic vault, `--only NAME` for the measures whose name holds NAME, `--list` for
//! their names, `--against PROGRAM` for a comparison with the bench of another commit in `--rounds N` rounds (`just bench-compare`).
#![allow(clippy::disallowed_methods, reason = "a bench makes a vault and an index of its own")]

mod bed;
mod compare;
mod folder;
mod measure;
mod meter;
mod near;
mod remember;
mod serve;
mod whole;

use std::env;
use std::error::Error;
use std::io::{Write as _, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bed::{Bed, Place};
use measure::{MEASURES, Measure, Needs};
use meter::Sample;

/// The program's own allocator, so that the figures are the program's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The result of anything here; a bench that cannot measure says why and stops.
type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Where the synthetic vault and the queries start from.
const SEED: u64 = 1;

/// What the command line asks for.
struct Options {
    notes: usize,
    only: String,
    /// The bench of another commit.
    against: Option<PathBuf>,
    /// How often each of the two benches takes a measure.
    rounds: usize,
    /// Whether the names of the measures are printed only.
    list: bool,
    /// The one measure to take, and where: set for the processes that we start ourselves.
    child: Option<(String, Place)>,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options =
            Self { notes: 5000, only: String::new(), against: None, rounds: 5, list: false, child: None };
        while let Some(flag) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{flag} needs a value"));
            match flag.as_str() {
                // Cargo's own mark.
                "--bench" => {}
                "--notes" => options.notes = value()?.parse()?,
                "--only" => options.only = value()?,
                "--against" => options.against = Some(PathBuf::from(value()?)),
                "--rounds" => options.rounds = value()?.parse()?,
                "--list" => options.list = true,
                "--child" => {
                    let (name, root, work) = (value()?, value()?, value()?);
                    options.child = Some((name, Place::new(root, work)));
                }
                other => {
                    return Err(format!("{other} is no argument; there are --notes N, --only NAME, --list, --against PROGRAM and --rounds N").into());
                }
            }
        }
        Ok(options)
    }
}

fn main() -> Result<()> {
    let options = Options::read(env::args().skip(1))?;
    if let Some((name, place)) = options.child {
        let sample = named(&name)?.take(&place)?;
        return Ok(serde_json::to_writer(stdout().lock(), &sample)?);
    }
    if options.list {
        let mut out = stdout().lock();
        return Ok(MEASURES.iter().try_for_each(|measure| writeln!(out, "{}", measure.name))?);
    }
    let work = tempfile::tempdir()?;
    let bed = Bed::synthetic(&work.path().join("synthetic"), options.notes, SEED)?;
    measure_on(&bed, &options)?;
    if let Some(vault) = env::var_os("SIDENOTE_BENCH_VAULT") {
        let bed = Bed::copy(&PathBuf::from(vault), &work.path().join("given"), SEED)?;
        measure_on(&bed, &options)?;
    }
    Ok(())
}

fn measure_on(bed: &Bed, options: &Options) -> Result<()> {
    writeln!(stdout().lock(), "\n{}: {} notes, {:.1} MB", bed.name, bed.notes, mega(bed.bytes))?;
    match &options.against {
        Some(base) => compare::compare(bed, base, &options.only, options.rounds),
        None => report(bed, &options.only),
    }
}

fn named(name: &str) -> Result<&'static Measure> {
    let found = MEASURES.iter().find(|measure| measure.name == name);
    found.ok_or_else(|| format!("there is no measure {name}").into())
}

/// Takes the measures on one vault and prints them as a table.
fn report(bed: &Bed, only: &str) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(
        out,
        "{:<12} {:<42} {:>10} {:>10} {:>9} {:>9} {:>9} {:>8}",
        "measure", "", "p50 ms", "p99 ms", "x limit", "CPU s", "x limit", "peak MB"
    )?;
    let program = env::current_exe()?;
    let mut limit: Option<Sample> = None;
    let mut plain_index = None;
    for measure in MEASURES.iter().filter(|measure| measure.name.contains(only)) {
        prepare(&program, &bed.place, measure.needs)?;
        let sample = take_apart(&program, measure, &bed.place)?;
        writeln!(out, "{}", row(measure, &sample, limit.as_ref()))?;
        if !sample.remark.is_empty() {
            writeln!(out, "{:<12} {}", "", sample.remark)?;
        }
        out.flush()?;
        match measure.name {
            "limit" => limit = Some(sample),
            "cold" => plain_index = Some(bed::folder_size(&bed.place.index())?),
            _ => {}
        }
    }
    let share = |bytes: u64| bytes as f64 / bed.bytes.max(1) as f64;
    if let Some(bytes) = plain_index {
        let whole = bed::folder_size(&bed.place.index())?;
        let baseline = bed::folder_size(&bed.place.limit())?;
        writeln!(
            out,
            "index / vault bytes: {:.2} without vectors, {:.2} at the end; limit {:.2}",
            share(bytes),
            share(whole),
            share(baseline)
        )?;
    }
    Ok(())
}

/// Makes what a measure takes for granted and `--only` left out.
fn prepare(program: &Path, place: &Place, needs: Needs) -> Result<()> {
    if needs >= Needs::Index && !place.index().exists() {
        take_apart(program, named("cold")?, place)?;
    }
    if needs >= Needs::Vectors && !place.index().join("vectors").exists() {
        take_apart(program, named("fill")?, place)?;
    }
    Ok(())
}

/// Takes a measure in processes of their own of a bench, without the user's settings.
fn take_apart(program: &Path, measure: &Measure, place: &Place) -> Result<Sample> {
    let mut whole = Sample::default();
    for _ in 0..measure.processes {
        let output = Command::new(program)
            .env_clear()
            .envs(env::var_os(near::GIVEN).map(|folders| (near::GIVEN, folders)))
            .args([Path::new("--child"), Path::new(measure.name), &place.root, &place.work])
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err(format!("{} failed: {}", measure.name, output.status).into());
        }
        whole.join(serde_json::from_slice(&output.stdout)?);
    }
    Ok(whole)
}

fn row(measure: &Measure, sample: &Sample, limit: Option<&Sample>) -> String {
    let times = |figure: fn(&Sample) -> f64| match limit {
        Some(limit) if figure(limit) > 0.0 => format!("{:.4}", figure(sample) / figure(limit)),
        _ => "-".to_owned(),
    };
    let known = |figure: f64, text: String| if figure > 0.0 { text } else { "-".to_owned() };
    format!(
        "{:<12} {:<42} {:>10.2} {:>10.2} {:>9} {:>9} {:>9} {:>8}",
        measure.name,
        measure.title,
        sample.percentile(50),
        sample.percentile(99),
        times(|sample| sample.percentile(50)),
        known(sample.cpu_each(), format!("{:.4}", sample.cpu_each())),
        times(Sample::cpu_each),
        known(sample.peak, format!("{:.0}", mega(sample.peak as u64))),
    )
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
