//! Owns the measures of the memory: folding the journal, recalling, and searching with an intent.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::json;
use sidenote::journal::Journal;
use sidenote::journal::projection::Projection;
use sidenote::store::{Intent, ListRequest, MemoryRanking, RecallRequest, SearchRequest};
use sidenote::vault::Vault;

use crate::Result;
use crate::bed::{EVENTS, Place};
use crate::measure::{RUNS, WARMING, ensure, ensure_found, following, open_store, program};
use crate::meter::Sample;

/// What the searches are for, one after the other.
const INTENTS: [Intent; 5] =
    [Intent::Continuity, Intent::FactCheck, Intent::Frequent, Intent::Associative, Intent::Explore];

/// So many prompts are asked.
const PROMPTS: usize = 200;

/// Gives a folder for a kept ledger that no index is in.
fn shelf(place: &Place) -> Result<PathBuf> {
    let folder = place.work.join("shelf");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Removes what is kept of the journal in a folder.
fn unlearn(folder: &std::path::Path) -> Result<()> {
    let ledger = folder.join("ledger");
    if ledger.exists() { Ok(fs::remove_file(ledger)?) } else { Ok(()) }
}

/// Reads the whole journal, which keeps the ledger as well.
pub(crate) fn fold(place: &Place, sample: &mut Sample) -> Result<()> {
    let folder = shelf(place)?;
    for _ in 0..RUNS {
        unlearn(&folder)?;
        renew(place, &folder, sample)?;
    }
    ensure(folder.join("ledger").exists(), "the ledger was not kept")
}

/// Takes up the ledger that was kept, as every process after the first does.
pub(crate) fn fold_kept(place: &Place, sample: &mut Sample) -> Result<()> {
    let folder = shelf(place)?;
    renew(place, &folder, &mut Sample::default())?;
    (0..RUNS).try_for_each(|_| renew(place, &folder, sample))
}

fn renew(place: &Place, folder: &std::path::Path, sample: &mut Sample) -> Result<()> {
    let vault = Vault::open(&place.root)?;
    let journal = Journal::open(&vault, &vault.records());
    let mut book = None;
    sample.time(|| Ok(Projection::refresh(&mut book, folder, true, &journal)?))?;
    let deeds = book.map_or(0, |book| book.ledger().len());
    ensure(deeds > EVENTS, "the journal tells of nothing")
}

/// Makes prompts that each name a note of the vault, so that recall has evidence. A sentence around the name would not
/// do: its words are as rare as the name in a vault of random words.
fn prompts(place: &Place) -> Result<Vec<String>> {
    let store = open_store(place, "none")?;
    let notes = store.reads().list(&ListRequest { limit: Some(PROMPTS), ..ListRequest::default() })?.notes;
    Ok(notes.into_iter().map(|note| note.title).collect())
}

/// Recalls as a server does, which follows the files; each use goes to the journal.
pub(crate) fn recall(place: &Place, sample: &mut Sample) -> Result<()> {
    let (store, _follower) = following(place, "e5")?;
    let ask = |prompt: &str| {
        store.searches().forget_query_vectors();
        Ok(store
            .recalls()
            .recall(&RecallRequest { prompt: prompt.to_owned(), ..RecallRequest::default() })?)
    };
    let prompts = prompts(place)?;
    for prompt in prompts.iter().take(WARMING) {
        ask(prompt)?;
    }
    let mut empty = 0;
    for prompt in &prompts {
        empty += usize::from(sample.time(|| ask(prompt))?.memories.is_empty());
    }
    ensure_found(empty, prompts.len())
}

pub(crate) fn intent(place: &Place, sample: &mut Sample) -> Result<()> {
    intended(place, sample, true)
}

/// The same for queries that were asked before, whose vectors are kept.
pub(crate) fn intent_again(place: &Place, sample: &mut Sample) -> Result<()> {
    intended(place, sample, false)
}

fn intended(place: &Place, sample: &mut Sample, forgets: bool) -> Result<()> {
    let store = open_store(place, "e5")?;
    let queries = place.queries()?;
    let mut empty = 0;
    for (at, query) in queries.iter().take(WARMING).chain(&queries).enumerate() {
        let intent = INTENTS.get(at % INTENTS.len()).copied();
        let request = SearchRequest {
            query: query.clone(),
            no_sync: true,
            memories: Some(MemoryRanking { intent, ..MemoryRanking::default() }),
            ..SearchRequest::default()
        };
        if forgets {
            store.searches().forget_query_vectors();
        } else {
            store.searches().search(&request)?;
        }
        let mut warming = Sample::default();
        let sample = if at < WARMING { &mut warming } else { &mut *sample };
        empty += usize::from(sample.time(|| Ok(store.searches().search(&request)?.results))?.is_empty());
    }
    ensure_found(empty, queries.len())
}

/// Does what a coding agent does at each prompt, the model loaded and the query embedded by that process.
pub(crate) fn hook(place: &Place, sample: &mut Sample) -> Result<()> {
    hooked(place, sample, false)
}

/// The same where no ledger is kept: the first time, and after the journal was changed by hand.
pub(crate) fn hook_fold(place: &Place, sample: &mut Sample) -> Result<()> {
    hooked(place, sample, true)
}

fn hooked(place: &Place, sample: &mut Sample, folds: bool) -> Result<()> {
    let prompts = prompts(place)?;
    let mut empty = 0;
    for (at, prompt) in prompts.iter().take(RUNS + 1).enumerate() {
        let input = json!({ "hook_event_name": "UserPromptSubmit", "session_id": "bench", "prompt": prompt });
        if folds {
            unlearn(&place.index())?;
        }
        // The first one keeps the ledger where that is not done yet.
        let mut first = Sample::default();
        let sample = if at == 0 { &mut first } else { &mut *sample };
        let output = sample.time(|| {
            let mut command = program(place);
            command
                .args(["hook", "recall"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let mut child = command.spawn()?;
            if let Some(mut pipe) = child.stdin.take() {
                pipe.write_all(input.to_string().as_bytes())?;
            }
            Ok(child.wait_with_output()?)
        })?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure(output.status.success(), "the hook failed")?;
        empty += usize::from(!said.contains("<memory "));
    }
    // Some prompts are made of common words, more of them in a given vault than in the synthetic one.
    ensure(empty * 4 <= RUNS + 1, &format!("the hook recalled nothing for {empty} of {} prompts", RUNS + 1))?;
    // What this process holds says nothing of the other.
    sample.peak = 0.0;
    Ok(())
}
