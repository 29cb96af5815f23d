//! The parts of the API that only read: each address with the call of the store that answers it.

use std::collections::BTreeSet;

use axum::body::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind};
use sidenote_catalog::Filter;
use sidenote_markdown::path::NotePath;
use sidenote_search::Mode;
use sidenote_store::agents::summaries;
use sidenote_store::{
    ActivityRequest, Fallback, MemoryListRequest, MemorySort, NoteHistory, PROBLEM_CODES, RelatedRequest,
    RelationsRequest, SearchRequest, Store, TaskBoardRequest, TaskDue, Tier, WhyRequest,
};

use crate::params::{Params, day_of};
use crate::reply::{ApiError, packed, to_json, to_json_with};
use crate::reply_cache::ReplyCache;
use crate::review;
use crate::sanitize::sanitized;

/// What answers an address.
type Reader = fn(&Store, &Params) -> Result<Vec<u8>, ApiError>;

/// The addresses below `/api/v1/`.
const READERS: [(&str, Reader); 37] = [
    ("session", session),
    ("search", search),
    ("facets", facets),
    ("tasks", tasks),
    ("day", day),
    ("suggest", suggest),
    ("why", why),
    ("note", note),
    ("links", |store, params| with_titles(store, &store.reads().links(params.required("name")?)?)),
    ("relations", relations),
    ("mentions", mentions),
    ("related", related),
    ("history", history),
    ("git-history", git_history),
    ("weight", |store, params| to_json(&store.views().weight(params.required("name")?)?)),
    ("graph/around", graph_around),
    ("graph/matches", graph_matches),
    ("graph/positions", |store, _| to_json(&store.views().graph_positions()?)),
    ("memory/stats", |store, _| to_json(&store.memories().memory_stats()?)),
    ("memory/list", memory_list),
    ("memory/explain", |store, params| {
        to_json(&store.recalls().explain(params.required("name")?, params.get("q"))?)
    }),
    ("memory/points", |store, params| {
        to_json(&store.views().memory_points(params.number("limit")?.unwrap_or(POINTS))?)
    }),
    ("memory/months", |store, params| {
        to_json(&store.views().tier_months(params.number("months")?.unwrap_or(24))?)
    }),
    ("memory/changes", memory_changes),
    ("memory/inactive", |store, _| to_json(&store.views().inactive()?)),
    ("memory/inactive/counts", |store, _| to_json(&store.views().inactive_counts()?)),
    ("trash", |store, params| to_json(&store.views().trashed_text(params.required("name")?)?)),
    ("trash/matches", |store, params| {
        let limit = params.number("limit")?.unwrap_or(10);
        to_json(&store.views().trash_matches(params.required("q")?, limit)?)
    }),
    ("activity", activity),
    ("proposals", review::list),
    ("review", review::week),
    ("status", status),
    ("settings", |store, _| to_json(&store.settings())),
    ("tags", |store, _| to_json(&store.reads().tags()?)),
    ("properties", |store, _| to_json(&store.reads().properties()?)),
    ("folder", folder),
    ("templates", |store, _| to_json(&store.views().templates()?)),
];

/// The points of a scatter that are given unless more are asked for.
const POINTS: usize = 20_000;

/// The addresses that do not wait for the index, or update it themselves.
const UNREFRESHED: [&str; 8] =
    ["session", "search", "mentions", "related", "status", "settings", "activity", "graph/positions"];

/// The addresses whose replies are made from the rows of all notes.
const WHOLE_VAULT: [&str; 10] = [
    "graph",
    "graph/around",
    "memory/stats",
    "memory/points",
    "memory/months",
    "memory/changes",
    "memory/list",
    "memory/duplicates",
    "memory/inactive",
    "review",
];

/// Returns whether the reply of an address is made from the rows of all notes, which take some memory.
pub(crate) fn is_of_whole_vault(name: &str) -> bool {
    WHOLE_VAULT.contains(&name)
}

/// Returns whether making the reply of an address frees much memory: the rows of all notes, or the texts that `check` reads.
pub(crate) fn frees_much(name: &str) -> bool {
    is_of_whole_vault(name) || name == "check"
}

/// Answers an address, after the index was brought up to date.
///
/// # Errors
/// `not-found` if there is no such address; those of the store.
pub(crate) fn reply(
    cache: &ReplyCache,
    store: &Store,
    name: &str,
    params: &Params,
) -> Result<Bytes, ApiError> {
    if !UNREFRESHED.contains(&name) {
        store.index().refresh()?;
    }
    match name {
        "graph" => return graph(cache, store, params),
        "check" => return check(cache, store),
        "memory/duplicates" => return Ok(duplicates(cache, store, params)?.into()),
        _ => {}
    }
    if let Some(id) = name.strip_prefix("operations/") {
        return Ok(to_json(&store.views().operation(id)?)?.into());
    }
    if let Some(id) = name.strip_prefix("proposals/") {
        return Ok(review::show(store, id)?.into());
    }
    let reader = READERS.iter().find(|(own, _)| *own == name);
    let (_, reader) = reader.ok_or_else(|| ApiError::not_found(&format!("the API has no {name:?}")))?;
    Ok(reader(store, params)?.into())
}

fn session(store: &Store, _: &Params) -> Result<Vec<u8>, ApiError> {
    let root = store.root();
    let name = root.file_name().unwrap_or(root.as_os_str()).to_string_lossy();
    to_json(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "vault": root.display().to_string(),
        "vault_name": name,
        "read_only": store.is_read_only(),
        "generation": store.index().generation()?,
        "now": store.now(),
        "obsidian": root.join(sidenote_vault::CONFIG_DIR).is_dir(),
    }))
}

/// Makes the request of a search from the parameters.
fn search_request(store: &Store, params: &Params) -> Result<SearchRequest, ApiError> {
    let year = params.number::<i64>("year")?.filter(|year| (1..=9_998).contains(year));
    let new_year = |year: i64| Timestamp::parse(&format!("{year:04}-01-01"));
    let tier = params.get("tier").map(|name| {
        Tier::parse(name).ok_or_else(|| ApiError::invalid(&format!("there is no tier {name:?}")))
    });
    let filter = Filter {
        folder: params.get("folder").map(str::to_owned),
        tags: params.all("tag").map(str::to_owned).collect(),
        note_type: params.get("type").map(str::to_owned),
        created_after: year.and_then(new_year),
        created_before: year.and_then(|year| new_year(year + 1)),
        ..Filter::default()
    };
    let as_of = params.get("as_of");
    Ok(SearchRequest {
        query: params.get("q").unwrap_or("").to_owned(),
        mode: params.get("mode").map(Mode::parse).transpose()?,
        limit: params.number("limit")?,
        skip: params.number("skip")?.unwrap_or(0),
        filter,
        path: params.get("path").map(str::to_owned),
        tier: tier.transpose()?,
        all: params.is_set("all"),
        explain: params.is_set("explain"),
        plain_snippets: params.is_set("plain"),
        as_of: sidenote_store::Searches::as_of("as_of", as_of, store.now())?,
        fallback: Fallback::IfEmpty,
        ..SearchRequest::default()
    })
}

/// Converts an error of a search, with the place of the mistake in the query.
fn in_query(request: &SearchRequest) -> impl FnOnce(sidenote_base::error::Error) -> ApiError + '_ {
    |error| {
        let place = error.place();
        ApiError::from(error).in_query(&request.query, place)
    }
}

fn search(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let request = search_request(store, params)?;
    let mut reply = store.searches().search(&request).map_err(in_query(&request))?;
    for note in &mut reply.notes {
        *note = note.for_page().into();
    }
    to_json(&reply)
}

fn facets(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let request = search_request(store, params)?;
    to_json(&store.views().facets(&request).map_err(in_query(&request))?)
}

fn suggest(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let (part, limit) = (params.required("q")?, params.number("limit")?.unwrap_or(10));
    let (paths, titles) = (store.reads().paths_like(part, limit)?, store.reads().names_like(part, limit)?);
    to_json(&json!({"paths": paths, "titles": titles}))
}

fn why(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let search = search_request(store, params)?;
    let request = WhyRequest { search: search.clone(), note: params.required("name")?.to_owned() };
    to_json(&store.searches().why(&request).map_err(in_query(&search))?)
}

fn note(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let mut page = store.views().note(params.required("name")?)?;
    page.each_html(|html| *html = sanitized(html));
    to_json(&page)
}

/// The most notes of one reply whose titles are added to it. The page looks up others that it shows.
const MOST_TITLES: usize = 500;

/// Writes a reply as JSON with the titles of the notes whose paths it has.
fn with_titles(store: &Store, reply: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    let value = serde_json::to_value(reply)
        .map_err(|error| Error::internal("a reply cannot be written as JSON").with_source(error))?;
    let mut paths = BTreeSet::new();
    add_paths(&value, &mut paths);
    let titles = store.views().titles(paths.into_iter().take(MOST_TITLES))?;
    to_json_with(&value, json!({"titles": titles}))
}

/// Collects the texts of a reply that are paths of notes or canvases.
fn add_paths<'v>(value: &'v Value, paths: &mut BTreeSet<&'v str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| add_paths(item, paths)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(path) if PATH_FIELDS.contains(&name.as_str()) => {
                        let is_shown =
                            NotePath::parse(path).is_ok_and(|path| path.is_note() || path.is_canvas());
                        paths.extend(is_shown.then_some(path));
                    }
                    _ => add_paths(value, paths),
                }
            }
        }
        _ => {}
    }
}

/// The fields of replies that have paths.
const PATH_FIELDS: [&str; 5] = ["path", "to", "from", "resolved", "subject"];

fn folder(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let (path, skip) = (params.get("path").unwrap_or(""), params.number("skip")?.unwrap_or(0));
    to_json(&store.views().folder(path, skip, params.number("limit")?)?)
}

fn tasks(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let status = params.get("status").map(|status| status.chars().next().unwrap_or(' '));
    let request = TaskBoardRequest {
        done: params.get("done").map(|_| params.is_set("done")),
        status,
        folder: params.get("folder").map(str::to_owned),
        due: params.get("due").map(TaskDue::parse).transpose()?,
        text: params.get("q").map(str::to_owned),
        skip: params.number("skip")?.unwrap_or(0),
        limit: params.number("limit")?,
    };
    to_json(&store.views().task_board(&request)?)
}

fn day(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let day = day_of(params.get("day"))?.unwrap_or_else(|| store.now());
    to_json(&store.views().day(day)?)
}

fn relations(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let request = RelationsRequest {
        note: params.required("name")?.to_owned(),
        kind: params.get("type").map(str::to_owned),
        depth: params.number("depth")?,
    };
    with_titles(store, &store.reads().relations(&request)?)
}

fn mentions(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let limit = params.number("limit")?.unwrap_or(100);
    with_titles(store, &store.searches().unlinked_mentions(params.required("name")?, limit)?)
}

fn related(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let request = RelatedRequest {
        note: params.required("name")?.to_owned(),
        limit: params.number("limit")?,
        ..RelatedRequest::default()
    };
    to_json(&store.searches().related(&request)?)
}

fn history(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let limit = params.number("limit")?.unwrap_or(50);
    let note = Some(params.required("name")?.to_owned());
    to_json(&store.views().changes(&ActivityRequest { limit, note, ..ActivityRequest::default() })?)
}

fn git_history(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let (name, limit) = (params.required("name")?, params.number("limit")?.unwrap_or(20));
    let path = store.lookup().find(name)?.path;
    if store.revisions().is_err() {
        let path = path.as_str().to_owned();
        let none = NoteHistory { path, commits: Vec::new(), more: false, shallow: false };
        return to_json_with(&none, json!({"repository": false}));
    }
    match store.git_history(path.as_str(), limit) {
        Ok(history) => to_json_with(&history, json!({"repository": true})),
        // The note is not in git yet.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let path = path.as_str().to_owned();
            let none = NoteHistory { path, commits: Vec::new(), more: false, shallow: false };
            to_json_with(&none, json!({"repository": true}))
        }
        Err(error) => Err(error.into()),
    }
}

fn graph(cache: &ReplyCache, store: &Store, params: &Params) -> Result<Bytes, ApiError> {
    let request = search_request(store, params)?;
    let is_whole =
        request.query.trim().is_empty() && request.filter == Filter::default() && request.tier.is_none();
    if !is_whole {
        return Ok(to_json(&store.views().graph(Some(&request)).map_err(in_query(&request))?)?.into());
    }
    cache.graph.get(store, || {
        let graph = store.views().graph(None)?;
        Ok((graph.generation, packed(&to_json(&graph)?)?.into()))
    })
}

fn graph_matches(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let request = search_request(store, params)?;
    to_json(&store.views().graph_matches(&request).map_err(in_query(&request))?)
}

fn graph_around(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let depth = params.number("depth")?.unwrap_or(1);
    to_json(&store.views().graph_around(params.required("name")?, depth)?)
}

fn memory_list(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let sort = match params.get("sort") {
        None | Some("created") => MemorySort::Created,
        Some("importance") => MemorySort::Importance,
        Some("accessed") => MemorySort::Accessed,
        Some(other) => return Err(ApiError::invalid(&format!("there is no order {other:?}"))),
    };
    let search = search_request(store, params)?;
    let request = MemoryListRequest {
        filter: search.filter,
        tier: search.tier,
        forgotten: params.is_set("forgotten"),
        pinned: params.is_set("pinned"),
        sort,
        limit: params.number("limit")?,
        ..MemoryListRequest::default()
    };
    to_json(&store.memories().list(&request)?)
}

fn memory_changes(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let (days, limit) = (params.number("days")?.unwrap_or(7), params.number("limit")?.unwrap_or(500));
    to_json(&store.views().tier_changes(days, limit)?)
}

fn duplicates(cache: &ReplyCache, store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let (limit, threshold) =
        (params.number("limit")?.unwrap_or(50), params.number("threshold")?.unwrap_or(0.9));
    // The pairs are those of the check, so that both name the same.
    let repeated = cache.repeated_texts.get(store, || {
        let generation = store.index().generation()?;
        Ok((generation, store.upkeep().repeated_texts()?.into()))
    })?;
    to_json(&store.views().duplicates(limit, threshold, &repeated)?)
}

fn activity(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let instant = |name: &str| -> Result<Option<Timestamp>, ApiError> {
        let Some(text) = params.get(name) else { return Ok(None) };
        let at = Timestamp::parse(text)
            .ok_or_else(|| ApiError::invalid(&format!("{name} {text:?} is no time")))?;
        Ok(Some(at))
    };
    let day = instant("day")?;
    let next_day = day.and_then(|day| Some(Timestamp::day_range(day.date())?.1));
    let text = |name: &str| params.get(name).map(str::to_owned);
    let request = ActivityRequest {
        limit: params.number("limit")?.unwrap_or(50),
        before: text("before"),
        from: instant("from")?.or(day),
        until: instant("to")?.or(next_day),
        session: text("session"),
        agent: text("agent"),
        op: text("op"),
        note: text("note"),
        all: params.is_set("all"),
        brief: params.is_set("brief"),
    };
    with_titles(store, &store.views().activity(&request)?)
}

fn check(cache: &ReplyCache, store: &Store) -> Result<Bytes, ApiError> {
    cache.check.get(store, || {
        let generation = store.index().generation()?;
        let reply = store.upkeep().check(false)?;
        let fixable = reply.problems.iter().filter(|problem| !problem.fixes.is_empty()).count();
        let codes: serde_json::Map<String, serde_json::Value> =
            PROBLEM_CODES.iter().map(|code| (code.code.to_owned(), code.meaning.into())).collect();
        let reply = to_json_with(&reply, json!({"codes": codes, "fixable": fixable}))?;
        Ok((generation, packed(&reply)?.into()))
    })
}

fn status(store: &Store, _: &Params) -> Result<Vec<u8>, ApiError> {
    let more = json!({
        "following": store.index().is_following(),
        "writer": store.is_writer(),
        "read_only": store.is_read_only(),
        "notices": store.notices(),
        "agents": summaries(store)?,
        "version": env!("CARGO_PKG_VERSION"),
    });
    to_json_with(&store.index().status()?, more)
}
