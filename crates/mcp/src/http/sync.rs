//! The addresses by which people keep a folder equal to a vault: what changed, contents by their hashes, and commits.
//!
//! Requests pass the same gate and open vaults as those of agents do. What they mean is decided in `store/replication`.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use percent_encoding::percent_decode_str;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_http::reply_body::channel_body;
use sidenote_markdown::edit::ContentHash;
use sidenote_store::Role;
use sidenote_store::replication::protocol::{
    CHANGES_TYPE, ChangedFile, ChangesHead, CommitReply, CommitRequest, ERROR_HEADER, MAX_COMMIT_HEAD, line,
};
use sidenote_vault::authority::{SharedChanges, SharedPosition};

use super::named::NamedVaults;
use super::rights::Member;
use crate::{Server, right_of};

/// What a commit is called where repeated calls are recognised.
const CALL: &str = "sync commit";
/// The client of all requests of folders. A client finds no operation of another one.
const CLIENT: &str = "sidenote sync";
/// What the journal names as the tool of a commit.
const TOOL: &str = "sync";
/// The size of a part of a list of changes that is sent at once, in bytes.
const PART: usize = 64 << 10;

/// Refuses a request whose person or token does not have the role that it needs, and has the refused change recorded.
/// Where nobody logs in, the gate has compared the token, which gives every right.
async fn refuse_without_role(server: &Server, request: &Parts, needed: Role) -> Option<Response> {
    let member = request.extensions.get::<Member>()?;
    let refusal = member.refuse_by_scope(needed).or_else(|| {
        let text =
            format!("this needs the role {needed} in the vault, and you have the role {}\n", member.role);
        (member.right() < needed).then(|| (StatusCode::FORBIDDEN, text).into_response())
    })?;
    server.record_refusal(member, TOOL).await;
    Some(refusal)
}

/// Returns the routes.
pub(super) fn router(vaults: NamedVaults) -> Router {
    Router::new()
        .route("/v/{name}/changes", get(changes))
        .route("/v/{name}/blob/{hash}", get(content))
        .route("/v/{name}/commit", post(commit))
        .with_state(vaults)
}

/// Answers a request of a vault: has it pass the gate, opens the vault, and counts. Whoever has any role in a vault may read.
async fn answer<F: Future<Output = Response>>(
    vaults: &NamedVaults,
    name: &str,
    request: Request,
    handle: impl FnOnce(Server, Parts, Body) -> F,
) -> Response {
    let started = Instant::now();
    let answered = vaults.answer(name, request, |request| async move {
        let (parts, body) = request.into_parts();
        vaults.with_server(name, |server| handle(server, parts, body)).await
    });
    let response = answered.await;
    vaults.metrics.count_request(response.status(), started.elapsed());
    response
}

/// Answers with the files that changed after a state: `since` is its generation, `origin` and `event` tell it from another
/// state with that number. `operation` asks whether a commit was carried out.
async fn changes(State(vaults): State<NamedVaults>, Path(name): Path<String>, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    answer(&vaults, &name, request, |server, _, _| async move {
        let since = match position(&query) {
            Ok(since) => since,
            Err(error) => return refusal(&server, &error),
        };
        let operation = parameter(&query, "operation");
        let found = server
            .run(move |store| {
                let store = store.for_client(CLIENT).for_call(operation.as_deref().map(|id| (id, CALL)));
                store.replication().changes(since.as_ref())
            })
            .await;
        match found {
            Ok((head, changes)) => stream(head, changes),
            Err(error) => refusal(&server, &error),
        }
    })
    .await
}

/// Sends a list of changes in parts.
fn stream(head: ChangesHead, changes: SharedChanges) -> Response {
    let (sender, body) = channel_body();
    tokio::spawn(async move {
        let mut part = match line(&head) {
            Ok(line) => line,
            // The client misses the head, and says so.
            Err(error) => return tracing::warn!("a list of changes cannot be sent: {error}"),
        };
        for (path, hash) in changes.files {
            match line(&ChangedFile { path: path.as_str().to_owned(), hash }) {
                Ok(line) => part.push_str(&line),
                Err(error) => return tracing::warn!("a list of changes cannot be sent: {error}"),
            }
            if part.len() >= PART && sender.send(Bytes::from(std::mem::take(&mut part))).await.is_err() {
                // The client is gone.
                return;
            }
        }
        // The client may be gone.
        drop(sender.send(Bytes::from(part)).await);
    });
    ([(header::CONTENT_TYPE, CHANGES_TYPE)], body).into_response()
}

/// Answers with the bytes that a file of the vault has now, or with `earlier`, has or had.
async fn content(
    State(vaults): State<NamedVaults>,
    Path((name, hash)): Path<(String, String)>,
    request: Request,
) -> Response {
    let is_earlier = request.uri().query().is_some_and(|query| parameter(query, "earlier").is_some());
    answer(&vaults, &name, request, |server, _, _| async move {
        let found = match hash.parse::<ContentHash>() {
            Ok(hash) if is_earlier => {
                server.run(move |store| store.replication().earlier_content(hash)).await
            }
            Ok(hash) => server.run(move |store| store.replication().content(hash)).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(bytes) => ([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response(),
            Err(error) => refusal(&server, &error),
        }
    })
    .await
}

/// Carries out a commit. The answer is 409 with the names of all files that are not as it expects them.
async fn commit(State(vaults): State<NamedVaults>, Path(name): Path<String>, request: Request) -> Response {
    let (admission, vault) = (vaults.gate.admission.clone(), name.clone());
    answer(&vaults, &name, request, |server, parts, body| async move {
        if let Some(refusal) = refuse_without_role(&server, &parts, Role::Writer).await {
            return refusal;
        }
        let largest = match server.run(|store| store.replication().max_file()).await {
            Ok(largest) => usize::try_from(largest).unwrap_or(usize::MAX),
            Err(error) => return refusal(&server, &error),
        };
        let most = largest.saturating_add(MAX_COMMIT_HEAD);
        let who = parts.extensions.get::<Member>().map(|member| member.caller.who()).unwrap_or_default();
        // A person has one large commit of a vault at a time.
        let sender = format!("{vault} {who}");
        let (bytes, reserved) = match admission.read_up_to(&parts.headers, body, most, &sender).await {
            Ok(read) => read,
            Err(refusal) => return refusal,
        };
        let request = match CommitRequest::parse(&bytes) {
            Ok(request) => Arc::new(request),
            Err(error) => return refusal(&server, &error),
        };
        drop(bytes);
        if request.has_settings()
            && let Some(refusal) = refuse_without_role(&server, &parts, Role::Admin).await
        {
            return refusal;
        }
        let member = parts.extensions.get::<Member>();
        let (origin, right) = (server.origin(TOOL, member), right_of(member));
        let committed = server
            .run(move |store| {
                let store = store.for_client(CLIENT).for_tool(origin).limited_to(right);
                let store = store.for_call(Some((request.operation.as_str(), CALL)));
                store.replication().commit(&request)
            })
            .await;
        drop(reserved);
        match committed {
            Ok(reply) => commit_reply(&server, &reply),
            Err(error) => refusal(&server, &error),
        }
    })
    .await
}

fn commit_reply(server: &Server, reply: &CommitReply) -> Response {
    let status = if reply.conflicts.is_empty() { StatusCode::OK } else { StatusCode::CONFLICT };
    match line(reply) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => refusal(server, &error),
    }
}

/// Returns the answer for an error. What can be repeated says when.
fn refusal(server: &Server, error: &Error) -> Response {
    let text = format!("{}\n", server.without_root(error.to_string()));
    let status = match error.kind() {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Invalid | ErrorKind::Exists => StatusCode::BAD_REQUEST,
        ErrorKind::Quota => return over_quota(error, text),
        ErrorKind::Conflict | ErrorKind::Io => {
            tracing::warn!("a request of a synchronised folder failed: {error}");
            return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], text).into_response();
        }
        ErrorKind::Corrupt | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, text).into_response()
}

/// Returns the answer for a change over a quota. The header distinguishes it from a request that is too large for a proxy.
fn over_quota(error: &Error, text: String) -> Response {
    let status = if error.retry_after().is_some() {
        StatusCode::TOO_MANY_REQUESTS
    } else {
        StatusCode::PAYLOAD_TOO_LARGE
    };
    let mut response = (status, [(ERROR_HEADER, error.kind().name())], text).into_response();
    let seconds = error.retry_after().map(|time| (header::RETRY_AFTER, HeaderValue::from(time.as_secs())));
    response.headers_mut().extend(seconds);
    response
}

/// Reads the state from which changes are asked for; `None` if all files are.
fn position(query: &str) -> Result<Option<SharedPosition>> {
    let Some(since) = parameter(query, "since") else { return Ok(None) };
    let generation =
        since.parse().map_err(|_| Error::invalid(format!("since={since} is not a generation")))?;
    let Some(origin) = parameter(query, "origin") else { return Ok(None) };
    Ok(Some(SharedPosition { origin, generation, event: parameter(query, "event") }))
}

/// Returns a parameter of an address.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.find(|(key, _)| *key == name)?.1;
    Some(percent_decode_str(value).decode_utf8_lossy().into_owned()).filter(|value| !value.is_empty())
}
