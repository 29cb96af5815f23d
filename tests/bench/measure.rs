//! Owns the measures: what is done, how often, and that it did what it should. Uses the library as anybody may.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use sidenote::base::platform;
use sidenote::catalog::CatalogReader;
use sidenote::embed::{E5, Embed as _};
use sidenote::index::{Index, Options, SyncScope, silent};
use sidenote::markdown::path::NotePath;
use sidenote::search::query::Query;
use sidenote::search::reader::IndexOnly;
use sidenote::search::{Mode, Request, SearchHit};
use sidenote::store::{
    ChangeReply, Follower, MoveRequest, Open, Operation, SearchReply, SearchRequest, Store,
};
use sidenote::vault::Vault;
use sidenote::vectors::VectorWriter;
use tantivy::schema::{Schema, TEXT};
use tantivy::{IndexWriter, TantivyDocument};

use crate::bed::{Dice, Place, notes};
use crate::meter::Sample;
use crate::{Result, folder, near, remember, serve, whole};

/// The note that is changed; it belongs to the bench, not to the vault.
const CHANGED: &str = "sidenote-bench.md";
/// How often something short is done.
pub(crate) const RUNS: usize = 15;
/// How often a note is edited.
const EDITS: usize = 1000;
/// Queries before the first that counts: they load what is loaded once.
pub(crate) const WARMING: usize = 10;

/// What must be there before a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needs {
    Nothing,
    Index,
    Vectors,
}

/// One line of the table.
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) needs: Needs,
    /// How many processes take it, one after the other.
    pub(crate) processes: usize,
    run: fn(&Place, &mut Sample) -> Result<()>,
}

impl Measure {
    /// Takes the measure in this process, whose memory is set up as that of the command that does the same: `index` or a server.
    pub(crate) fn take(&self, place: &Place) -> Result<Sample> {
        let is_index = matches!(self.name, "limit" | "cold" | "fill");
        platform::allow_huge_pages(is_index);
        if !is_index {
            platform::keep_free_memory_for_a_second();
        }
        let mut sample = Sample::default();
        (self.run)(place, &mut sample)?;
        Ok(sample)
    }
}

const fn measure(
    name: &'static str,
    title: &'static str,
    needs: Needs,
    processes: usize,
    run: fn(&Place, &mut Sample) -> Result<()>,
) -> Measure {
    Measure { name, title, needs, processes, run }
}

/// The measures, in the order of the table; each may take for granted what those before it leave.
pub(crate) const MEASURES: [Measure; 42] = [
    measure("limit", "read all, raw tantivy, one commit", Needs::Nothing, 3, limit),
    measure("cold", "index from nothing, without vectors", Needs::Nothing, 3, cold),
    measure("noop", "sync, nothing changed", Needs::Index, 1, noop),
    measure("one-known", "one note changed, path known, till found", Needs::Index, 1, one_known),
    measure("one-scanned", "one note changed, scan and search", Needs::Index, 1, one_scanned),
    measure("rank", "BM25 ranking alone, no text shown", Needs::Index, 1, rank),
    measure("bm25", "warm search by words", Needs::Index, 1, bm25),
    measure("phrases", "warm search for phrases of the notes", Needs::Index, 1, whole::phrases),
    measure("followed", "search by words while following the files", Needs::Index, 1, followed),
    measure("edit", "edit by another program until found", Needs::Index, 1, edit),
    measure("edit-copy", "the same while 10,000 notes are copied in", Needs::Index, 1, edit_copy),
    measure("rename-scan", "rename, scan, no link to the note", Needs::Index, 1, rename_scan),
    measure("rename-none", "rename while following, no link to the note", Needs::Index, 1, rename_none),
    measure("rename-1000", "rename, 1,000 links to it, 10,000 notes", Needs::Nothing, 1, rename_1000),
    measure("folder-plan", "plan the move of a folder with all notes", Needs::Nothing, 1, folder::plan),
    measure("folder-move", "move it while following", Needs::Nothing, 1, folder::apply),
    measure("folder-read", "search by words while it moves", Needs::Nothing, 1, folder::readers),
    measure("folder-write", "edit another note while it moves", Needs::Nothing, 1, folder::writers),
    measure("fill", "fake vectors of all passages, and a graph", Needs::Index, 1, fill),
    measure("hybrid", "warm search, query embedded each time", Needs::Vectors, 1, hybrid),
    measure("operators", "the same, each query of three operators", Needs::Vectors, 1, operators),
    measure("regex", "the same, a word and a pattern", Needs::Vectors, 1, regex),
    measure("regex-alone", "the same, a pattern alone", Needs::Vectors, 1, regex_alone),
    measure("near", "nearest passages, recall", Needs::Nothing, 1, near::near),
    measure("near-alike", "the same, look-alikes and outliers", Needs::Nothing, 1, near::near_alike),
    measure("near-graph", "the same, by a graph", Needs::Nothing, 1, near::near_graph),
    measure("once-bm25", "search as a process, by words", Needs::Index, 1, once_bm25),
    measure("once-tasks", "tasks as a process", Needs::Index, 1, whole::tasks),
    measure("once-check", "check as a process", Needs::Index, 1, whole::check),
    measure("once-links", "check --only broken-link as a process", Needs::Index, 1, whole::check_links),
    measure("once-hybrid", "search as a process, hybrid", Needs::Vectors, 1, once_hybrid),
    measure("fold", "fold the journal from scratch", Needs::Nothing, 1, remember::fold),
    measure("fold-kept", "take up the kept ledger", Needs::Nothing, 1, remember::fold_kept),
    measure("recall", "recall while following, a use journaled", Needs::Vectors, 1, remember::recall),
    measure("intent", "warm search of memories for an intent", Needs::Vectors, 1, remember::intent),
    measure("intent-again", "the same, its query asked before", Needs::Vectors, 1, remember::intent_again),
    measure("hook", "recall for a hook as a process", Needs::Vectors, 1, remember::hook),
    measure("hook-fold", "the same without a kept ledger", Needs::Vectors, 1, remember::hook_fold),
    measure("mcp-stdio", "search by words, over MCP and stdio", Needs::Index, 1, serve::stdio),
    measure("mcp-http", "the same over HTTP", Needs::Index, 1, serve::http),
    measure("mcp-many", "6,400 of them, from 64 clients at once", Needs::Index, 1, serve::many),
    measure("mcp-first", "start a server, first answer", Needs::Index, 1, serve::first),
];

/// The least that any full-text index of these files has to do.
fn limit(place: &Place, sample: &mut Sample) -> Result<()> {
    let folder = place.limit();
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    sample.time(|| {
        let mut schema = Schema::builder();
        let text = schema.add_text_field("text", TEXT);
        let index = tantivy::Index::create_in_dir(&folder, schema.build())?;
        let mut writer: IndexWriter = index.writer_with_num_threads(2, 200_000_000)?;
        for path in notes(&place.root)? {
            let mut document = TantivyDocument::new();
            document.add_text(text, String::from_utf8_lossy(&fs::read(path)?));
            writer.add_document(document)?;
        }
        writer.commit()?;
        Ok(())
    })
}

/// Does what `sidenote index --no-embed` does in a new vault, sealing the index included.
fn cold(place: &Place, sample: &mut Sample) -> Result<()> {
    if place.index().exists() {
        fs::remove_dir_all(place.index())?;
    }
    sample.time(|| {
        let store = open_store(place, "none")?;
        let report = store.index().sync(silent())?;
        ensure(report.added > 0, "nothing was indexed")
    })
}

fn noop(place: &Place, sample: &mut Sample) -> Result<()> {
    let store = open_store(place, "none")?;
    store.index().sync(silent())?;
    for _ in 0..RUNS {
        let report = sample.time(|| Ok(store.index().sync(silent())?))?;
        ensure(!report.changed_anything(), "the vault changed meanwhile")?;
    }
    Ok(())
}

/// Does what a watcher would: it knows which path changed.
fn one_known(place: &Place, sample: &mut Sample) -> Result<()> {
    let index = open_index(place)?;
    let path = NotePath::parse(CHANGED)?;
    let sync = || index.sync(SyncScope::only(vec![path.clone()]), silent());
    change(place, "first")?;
    sync()?;
    for run in 0..RUNS {
        let word = format!("needleknown{run}");
        change(place, &word)?;
        let found = sample.time(|| {
            sync()?;
            ranked(&index, &word)
        })?;
        ensure(found.iter().any(|hit| hit.row.path == path), "the change was not found")?;
    }
    Ok(())
}

/// Does what the next command does: it looks at every file to find the one that changed.
fn one_scanned(place: &Place, sample: &mut Sample) -> Result<()> {
    let store = open_store(place, "none")?;
    store.index().sync(silent())?;
    for run in 0..RUNS {
        let word = format!("needlescanned{run}");
        change(place, &word)?;
        let reply = sample.time(|| ask(&store, &word, Mode::Bm25, false))?;
        ensure(reply.results.iter().any(|hit| hit.path == CHANGED), "the change was not found")?;
    }
    Ok(())
}

fn rank(place: &Place, sample: &mut Sample) -> Result<()> {
    let index = open_index(place)?;
    let queries = place.queries()?;
    for query in queries.iter().take(WARMING) {
        ranked(&index, query)?;
    }
    let mut empty = 0;
    for query in &queries {
        empty += usize::from(sample.time(|| ranked(&index, query))?.is_empty());
    }
    ensure_found(empty, queries.len())
}

/// Fails if more than one query in twenty found nothing. Queries come from raw text, and a few hold nothing but markup or
/// words of links that are not indexed.
pub(crate) fn ensure_found(empty: usize, queries: usize) -> Result<()> {
    ensure(empty * 20 <= queries, &format!("{empty} of {queries} queries found nothing"))
}

fn bm25(place: &Place, sample: &mut Sample) -> Result<()> {
    warm(place, sample, "none", Mode::Bm25)
}

fn hybrid(place: &Place, sample: &mut Sample) -> Result<()> {
    warm(place, sample, "e5", Mode::Hybrid)
}

fn warm(place: &Place, sample: &mut Sample, provider: &str, mode: Mode) -> Result<()> {
    let store = open_store(place, provider)?;
    let queries = place.queries()?;
    for query in queries.iter().take(WARMING) {
        ask(&store, query, mode, true)?;
    }
    let mut empty = 0;
    for query in &queries {
        store.searches().forget_query_vectors();
        let reply = sample.time(|| ask(&store, query, mode, true))?;
        ensure(reply.mode == mode, "the search fell short")?;
        empty += usize::from(reply.results.is_empty());
    }
    ensure_found(empty, queries.len())
}

/// Asks what a section holds, without a phrase, among certain files.
fn operators(place: &Place, sample: &mut Sample) -> Result<()> {
    conditions(place, sample, |one, other| format!("section:({one} {other}) -\"{other} {one}\" file:.md"))
}

fn regex(place: &Place, sample: &mut Sample) -> Result<()> {
    conditions(place, sample, |one, other| format!("{one} /\\b{other}\\w*\\b/"))
}

fn regex_alone(place: &Place, sample: &mut Sample) -> Result<()> {
    conditions(place, sample, |one, other| format!("/\\b{one}\\w*\\W+\\w*{other}/"))
}

/// Searches warm by queries in Obsidian's language, made of two words each.
fn conditions(place: &Place, sample: &mut Sample, query: impl Fn(&str, &str) -> String) -> Result<()> {
    let store = open_store(place, "e5")?;
    let mut queries = Vec::new();
    for line in place.queries()? {
        let words: Vec<&str> =
            line.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2).collect();
        if let [one, other, ..] = words.as_slice() {
            queries.push(query(one, other));
        }
    }
    for query in queries.iter().take(WARMING) {
        ask(&store, query, Mode::Hybrid, true)?;
    }
    for query in &queries {
        store.searches().forget_query_vectors();
        sample.time(|| ask(&store, query, Mode::Hybrid, true))?;
    }
    ensure(!queries.is_empty(), "no query has two words")
}

/// Opens a store and waits until it follows the files.
pub(crate) fn following(place: &Place, provider: &str) -> Result<(Arc<Store>, Follower)> {
    let store = Arc::new(open_store(place, provider)?);
    let follower = store.upkeep().follow(|_| {})?;
    while !store.index().is_following() {
        std::thread::yield_now();
    }
    Ok((store, follower))
}

fn followed(place: &Place, sample: &mut Sample) -> Result<()> {
    let (store, _follower) = following(place, "none")?;
    let queries = place.queries()?;
    let mut empty = 0;
    for query in &queries {
        let reply = sample.time(|| ask(&store, query, Mode::Bm25, false))?;
        empty += usize::from(reply.results.is_empty());
    }
    ensure_found(empty, queries.len())
}

/// Saves a note as editors do, by a temporary file, and asks until a search finds what is new in it. The search does
/// not look at the files itself.
fn edit(place: &Place, sample: &mut Sample) -> Result<()> {
    let (store, _follower) = following(place, "none")?;
    (0..EDITS).try_for_each(|at| edit_once(place, &store, at, sample))
}

fn edit_once(place: &Place, store: &Store, at: usize, sample: &mut Sample) -> Result<()> {
    let word = format!("editword{at}x{}", std::process::id());
    let path = place.root.join(format!("sidenote-bench-edited-{}.md", at % 20));
    let temporary = path.with_extension("tmp");
    fs::write(&temporary, format!("# Edited by cargo bench\n\nIt says {word}.\n"))?;
    sample.time(|| {
        fs::rename(&temporary, &path)?;
        while ask(store, &word, Mode::Bm25, true)?.results.is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(())
    })
}

fn edit_copy(place: &Place, sample: &mut Sample) -> Result<()> {
    let (store, _follower) = following(place, "none")?;
    let from: Vec<_> = notes(&place.root)?.into_iter().take(10_000).collect();
    let folder = place.root.join("copied");
    std::thread::scope(|scope| -> Result<()> {
        let copying = scope.spawn(|| {
            for (at, path) in from.iter().enumerate() {
                let into = folder.join(format!("{}", at % 50));
                fs::create_dir_all(&into)?;
                fs::copy(path, into.join(format!("{at}.md")))?;
            }
            std::io::Result::Ok(())
        });
        let mut at = 0;
        while !copying.is_finished() || store.index().status()?.behind > 0 {
            edit_once(place, &store, at, sample)?;
            at += 1;
        }
        copying.join().map_err(|_| "the copying thread panicked")??;
        Ok(())
    })?;
    Ok(fs::remove_dir_all(folder)?)
}

/// As a command does that nobody follows the files for.
fn rename_scan(place: &Place, sample: &mut Sample) -> Result<()> {
    change(place, "renamed")?;
    let store = open_store(place, "none")?;
    store.index().sync(silent())?;
    rename_there_and_back(&store, sample)
}

fn rename_none(place: &Place, sample: &mut Sample) -> Result<()> {
    change(place, "renamed")?;
    let (store, _follower) = following(place, "none")?;
    rename_there_and_back(&store, sample)
}

fn rename_there_and_back(store: &Store, sample: &mut Sample) -> Result<()> {
    for run in 0..RUNS {
        let (from, to) = there_and_back(run, CHANGED, "sidenote-bench-renamed.md");
        let reply = sample.time(|| rename(store, from, to))?;
        ensure(reply.applied && reply.plan.files.len() == 1, "one file moves")?;
    }
    rename(store, "sidenote-bench-renamed.md", CHANGED).map(drop)
}

/// A vault of its own, since what is measured on may be somebody's.
fn rename_1000(place: &Place, sample: &mut Sample) -> Result<()> {
    let (root, index) = (place.work.join("linked"), place.work.join("linked-index"));
    // An earlier round may have left it.
    for folder in [&root, &index] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    fs::create_dir_all(&root)?;
    fs::write(root.join("Hub.md"), "# Hub\n")?;
    for at in 0..10_000 {
        let folder = root.join(format!("Area {}", at % 50));
        fs::create_dir_all(&folder)?;
        let link = if at % 10 == 0 { "It belongs to [[Hub]]." } else { "It stands alone." };
        fs::write(folder.join(format!("Note {at}.md")), format!("# Note {at}\n\nSome text.\n\n{link}\n"))?;
    }
    let own = Place::new(root, index);
    let store = open_store(&own, "none")?;
    store.index().sync(silent())?;
    for run in 0..RUNS {
        let (from, to) = there_and_back(run, "Hub.md", "Centre.md");
        let reply = sample.time(|| rename(&store, from, to))?;
        ensure(reply.plan.files.len() == 1001, "a thousand notes follow")?;
    }
    Ok(())
}

fn there_and_back<'a>(run: usize, a: &'a str, b: &'a str) -> (&'a str, &'a str) {
    if run.is_multiple_of(2) { (a, b) } else { (b, a) }
}

fn rename(store: &Store, from: &str, to: &str) -> Result<ChangeReply> {
    let request = MoveRequest { from: from.to_owned(), to: to.to_owned(), ..MoveRequest::default() };
    Ok(store.changes().change(&Operation::Move(request), false)?)
}

/// Gives every passage a vector that means nothing, in the folder where the index looks for the model's.
fn fill(place: &Place, sample: &mut Sample) -> Result<()> {
    let model = E5::default().model().clone();
    let mark = model.fingerprint().get(..12).unwrap_or(model.fingerprint());
    let folder = place.index().join("vectors").join(format!("{}-{mark}", model.name()));
    let mut keys = Vec::new();
    CatalogReader::open(&place.index().join("catalog.db"))?.passages().each(|key, _| keys.push(key))?;
    keys.sort_unstable();
    keys.dedup();
    let mut dice = Dice(keys.len() as u64);
    sample.time(|| {
        let (mut writer, _) = VectorWriter::open(&folder, model.dimensions(), false)?;
        for keys in keys.chunks(4096) {
            let mut vector = || (0..model.dimensions()).map(|_| dice.unit() as f32 - 0.5).collect();
            let vectors: Vec<(i64, Vec<f32>)> = keys.iter().map(|&key| (key, vector())).collect();
            writer.append(&vectors)?;
        }
        writer.build_graph(&|| false)?;
        Ok(())
    })
}

fn once_bm25(place: &Place, sample: &mut Sample) -> Result<()> {
    once(place, sample, "bm25")
}

fn once_hybrid(place: &Place, sample: &mut Sample) -> Result<()> {
    once(place, sample, "hybrid")
}

/// Begins a call of the program over a vault and its index. It computes vectors itself, and takes none from other vaults.
pub(crate) fn program(place: &Place) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidenote"));
    command.env_clear().env("SIDENOTE_EMBED_SHARE", "false");
    command.arg("--vault").arg(&place.root).arg("--index").arg(place.index());
    command
}

fn once(place: &Place, sample: &mut Sample, mode: &str) -> Result<()> {
    for query in place.queries()?.iter().take(RUNS) {
        let output = sample
            .time(|| Ok(program(place).args(["--json", "search", "--mode", mode, query]).output()?))?;
        ensure(output.status.success(), &String::from_utf8_lossy(&output.stderr))?;
    }
    // What this process holds says nothing of the other.
    sample.peak = 0.0;
    Ok(())
}

pub(crate) fn open_store(place: &Place, provider: &str) -> Result<Store> {
    Ok(Store::open(Open {
        vault: Some(place.root.clone()),
        index: Some(place.index()),
        merge_loads: true,
        flags: vec![
            ("embed.provider", provider.to_owned(), "cargo bench"),
            // A cold index would be a warm one.
            ("embed.share", "false".to_owned(), "cargo bench"),
        ],
        ..Open::default()
    })?)
}

fn open_index(place: &Place) -> Result<Index> {
    let vault = Arc::new(Vault::open(&place.root)?);
    let options = Options { folder: Some(place.index()), ..Options::default() };
    Ok(Index::open(vault, options)?)
}

pub(crate) fn ask(store: &Store, query: &str, mode: Mode, no_sync: bool) -> Result<SearchReply> {
    Ok(store.searches().search(&SearchRequest {
        query: query.to_owned(),
        mode: Some(mode),
        no_sync,
        ..SearchRequest::default()
    })?)
}

fn ranked(index: &Index, query: &str) -> Result<Vec<SearchHit>> {
    let query = Query::plain(query);
    let request = Request { query: Some(&query), mode: Mode::Bm25, limit: 10, ..Request::default() };
    let snapshot = index.snapshot()?;
    Ok(sidenote::search::pipeline::run(index, &snapshot, &request, &IndexOnly)?)
}

fn change(place: &Place, word: &str) -> Result<()> {
    Ok(fs::write(place.root.join(CHANGED), format!("# Changed by cargo bench\n\nIt says {word}.\n"))?)
}

pub(crate) fn ensure(holds: bool, otherwise: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
