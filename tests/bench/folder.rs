//! Owns the measures of a folder that moves with every note of the vault in it: the plan, the whole change, and how long others
//! wait meanwhile.

use std::fs;
use std::path::Path;

use sidenote::index::silent;
use sidenote::search::Mode;
use sidenote::store::{EditRequest, MoveRequest, NoteEdit, Operation, SearchRequest, Store};

use crate::Result;
use crate::bed::{Place, notes};
use crate::measure::{ensure, following, open_store};
use crate::meter::Sample;

/// The folder that moves.
const FOLDER: &str = "All notes";
/// Where it moves to.
const MOVED: &str = "Notes of before";
/// A note that does not move, and links to one that does.
const OUTSIDE: &str = "Outside.md";
/// How often the folder moves.
const TIMES: usize = 4;

/// Copies the vault into a folder of a vault of its own, beside a note with a link, and indexes it. What is measured on may be
/// somebody's.
fn copied(place: &Place) -> Result<Place> {
    let own = Place::new(place.work.join("folder-vault"), place.work.join("folder-work"));
    if own.root.exists() {
        return Ok(own);
    }
    fs::create_dir_all(&own.work)?;
    fs::copy(place.work.join("queries"), own.work.join("queries"))?;
    let files = notes(&place.root)?;
    for file in &files {
        let to = own.root.join(FOLDER).join(file.strip_prefix(&place.root)?);
        fs::create_dir_all(to.parent().unwrap_or(Path::new("")))?;
        fs::copy(file, to)?;
    }
    let linked = files.first().ok_or("the vault has no note")?.strip_prefix(&place.root)?.display();
    fs::write(own.root.join(OUTSIDE), format!("# Outside\n\nSee [this](<{FOLDER}/{linked}>).\n"))?;
    open_store(&own, "none")?.index().sync(silent())?;
    Ok(own)
}

fn operation(from: &str, to: &str) -> Operation {
    Operation::Move(MoveRequest { from: from.to_owned(), to: to.to_owned(), ..MoveRequest::default() })
}

/// Plans the move as a dry run does.
pub(crate) fn plan(place: &Place, sample: &mut Sample) -> Result<()> {
    let own = copied(place)?;
    let store = open_store(&own, "none")?;
    store.index().sync(silent())?;
    for _ in 0..TIMES {
        let plan = sample.time(|| Ok(store.changes().plan(&operation(FOLDER, MOVED))?))?;
        ensure(plan.folders.len() == 1 && !plan.files.is_empty(), "the folder moves and a link follows")?;
    }
    Ok(())
}

/// Moves the folder there and back, until the index shows it.
pub(crate) fn apply(place: &Place, sample: &mut Sample) -> Result<()> {
    let own = copied(place)?;
    let (store, _follower) = following(&own, "none")?;
    for _ in 0..TIMES / 2 {
        for (from, to) in [(FOLDER, MOVED), (MOVED, FOLDER)] {
            let reply = sample.time(|| Ok(store.changes().change(&operation(from, to), false)?))?;
            ensure(reply.applied, "the folder moves")?;
        }
    }
    Ok(())
}

/// Searches while the folder moves.
pub(crate) fn readers(place: &Place, sample: &mut Sample) -> Result<()> {
    let queries = place.queries()?;
    let mut at = 0;
    meanwhile(place, sample, |store| {
        at += 1;
        let query = queries.get(at % queries.len()).cloned().unwrap_or_default();
        let request = SearchRequest { query, mode: Some(Mode::Bm25), ..SearchRequest::default() };
        store.searches().search(&request)?;
        Ok(())
    })
}

/// Edits another note while the folder moves.
pub(crate) fn writers(place: &Place, sample: &mut Sample) -> Result<()> {
    meanwhile(place, sample, |store| {
        let edit = NoteEdit::Append("More.".to_owned(), None);
        let request = EditRequest { note: OUTSIDE.to_owned(), edit, expect: None };
        ensure(store.changes().change(&Operation::Edit(request), false)?.applied, "the note is edited")
    })
}

/// Measures something short again and again while the folder moves there and back.
fn meanwhile(place: &Place, sample: &mut Sample, mut work: impl FnMut(&Store) -> Result<()>) -> Result<()> {
    let own = copied(place)?;
    let (store, _follower) = following(&own, "none")?;
    std::thread::scope(|scope| {
        let mover = scope.spawn(|| -> Result<(), String> {
            [(FOLDER, MOVED), (MOVED, FOLDER)].into_iter().try_for_each(|(from, to)| {
                store
                    .changes()
                    .change(&operation(from, to), false)
                    .map(drop)
                    .map_err(|error| error.to_string())
            })
        });
        while !mover.is_finished() {
            sample.time(|| work(&store))?;
        }
        mover.join().map_err(|_| "the moving thread panicked")??;
        Ok(())
    })
}
