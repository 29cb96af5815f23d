//! Owns the measures of answers that a vault as a whole gives: phrases of its notes, its tasks, and what a check finds.

use std::fs;

use sidenote::search::Mode;

use crate::Result;
use crate::bed::{Dice, Place, notes};
use crate::measure::{RUNS, WARMING, ask, ensure, open_store, program};
use crate::meter::Sample;

/// The number of phrases that are searched for.
const PHRASES: usize = 200;
/// The most words of a phrase.
const LONGEST: usize = 4;

/// Searches for phrases of two to four words of the notes, common and rare ones as they come.
pub(crate) fn phrases(place: &Place, sample: &mut Sample) -> Result<()> {
    let store = open_store(place, "none")?;
    let phrases = phrases_of(place)?;
    for phrase in phrases.iter().take(WARMING) {
        ask(&store, phrase, Mode::Bm25, true)?;
    }
    for phrase in &phrases {
        let reply = sample.time(|| ask(&store, phrase, Mode::Bm25, true))?;
        ensure(!reply.results.is_empty(), "a phrase of a note is found")?;
    }
    Ok(())
}

/// Takes phrases from lines of notes, the same in each run.
fn phrases_of(place: &Place) -> Result<Vec<String>> {
    let mut paths = notes(&place.root)?;
    paths.sort();
    let mut dice = Dice(paths.len() as u64);
    let mut phrases = Vec::new();
    for _ in 0..PHRASES {
        let text = fs::read_to_string(dice.pick(&paths))?;
        let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase()) && !word.is_empty();
        let is_plain = |words: &Vec<&str>| words.len() >= LONGEST && words.iter().all(|word| is_word(word));
        let clauses = text.lines().flat_map(|line| line.split(['.', ','])).map(str::trim);
        let lines: Vec<Vec<&str>> =
            clauses.map(|clause| clause.split(' ').collect()).filter(is_plain).collect();
        if lines.is_empty() {
            continue;
        }
        let words = dice.pick(&lines);
        let length = *dice.pick(&[2, 3, LONGEST]);
        let start = *dice.pick(&(0..=words.len() - length).collect::<Vec<_>>());
        phrases.push(format!("\"{}\"", words[start..start + length].join(" ")));
    }
    ensure(phrases.len() >= RUNS, "the notes have phrases")?;
    Ok(phrases)
}

/// Lists the tasks of the vault by a process.
pub(crate) fn tasks(place: &Place, sample: &mut Sample) -> Result<()> {
    command(place, sample, &["tasks"])
}

/// Checks the vault by a process.
pub(crate) fn check(place: &Place, sample: &mut Sample) -> Result<()> {
    command(place, sample, &["check"])
}

/// Looks for broken links by a process.
pub(crate) fn check_links(place: &Place, sample: &mut Sample) -> Result<()> {
    command(place, sample, &["check", "--only", "broken-link"])
}

fn command(place: &Place, sample: &mut Sample, arguments: &[&str]) -> Result<()> {
    for _ in 0..RUNS {
        let output = sample.time(|| Ok(program(place).arg("--json").args(arguments).output()?))?;
        ensure(output.status.success(), &String::from_utf8_lossy(&output.stderr))?;
    }
    // What this process holds says nothing of the other.
    sample.peak = 0.0;
    Ok(())
}
