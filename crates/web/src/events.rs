//! Server-sent events: a new generation of the index, the paths that changed, and vectors as they are made.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::{Value, json};
use sidenote_base::error::Result;
use sidenote_http::reply_body::channel_body;
use sidenote_index::SyncReport;
use sidenote_store::Store;
use tokio::sync::{Notify, broadcast, watch};
use tokio::task::JoinHandle;

/// The interval at which the index is looked at for what other processes wrote, and for vectors.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The interval of comments, by which a broken connection is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The most paths that an event names.
const MOST_PATHS: usize = 200;
/// The maximum number of events that wait for a slow client. If there are more, it is asked to reload everything.
const WAITING: usize = 64;

/// What syncs of this process changed since the last event.
#[derive(Debug, Default)]
struct Touched {
    paths: Vec<String>,
    is_too_long: bool,
    changed: usize,
    removed: usize,
    moved: usize,
}

/// What the page was told last, and when proposals changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Known {
    generation: i64,
    pending: usize,
    vectors: usize,
    proposals: Option<(i64, i64)>,
}

/// Tells open pages what changed.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    sender: broadcast::Sender<Arc<str>>,
    touched: Arc<Mutex<Touched>>,
    /// What pages were told last; none while no page listens.
    known: Arc<Mutex<Option<Known>>>,
    woken: Arc<Notify>,
    closed: watch::Sender<bool>,
    /// An id of this process, by which a page notices a restart.
    instance: Arc<str>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::channel(WAITING).0,
            touched: Arc::default(),
            known: Arc::default(),
            woken: Arc::default(),
            closed: watch::channel(false).0,
            instance: uuid::Uuid::new_v4().simple().to_string().into(),
        }
    }

    /// Collects what each sync of this process changes.
    pub(crate) fn listen_to(&self, store: &Store) {
        let (touched, woken) = (Arc::clone(&self.touched), Arc::clone(&self.woken));
        store.index().on_change(move |report: &SyncReport| {
            let mut touched = touched.lock().unwrap_or_else(PoisonError::into_inner);
            touched.changed += report.added + report.changed;
            touched.removed += report.removed;
            touched.moved += report.moved;
            touched.is_too_long |= touched.paths.len() + report.touched.len() > MOST_PATHS;
            if !touched.is_too_long {
                touched.paths.extend(report.touched.iter().map(ToString::to_string));
            }
            drop(touched);
            woken.notify_one();
        });
    }

    /// Ends all streams.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Tells pages of new generations and vectors, until the task is aborted.
    pub(crate) async fn watch(self, store: Store) {
        loop {
            tokio::select! {
                () = self.woken.notified() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
            if self.sender.receiver_count() == 0 {
                *self.known() = None;
                *self.touched.lock().unwrap_or_else(PoisonError::into_inner) = Touched::default();
                continue;
            }
            let Some(now) = state_of(&store).await else { continue };
            let Some(before) = self.known().replace(now) else { continue };
            if now.generation != before.generation {
                self.send("index", now.generation, &self.index_event(now));
            }
            if (now.pending, now.vectors) != (before.pending, before.vectors) {
                self.send(
                    "vectors",
                    now.generation,
                    &json!({"pending": now.pending, "vectors": now.vectors}),
                );
            }
            if now.proposals != before.proposals {
                let waiting = waiting_of(&store).await;
                self.send("proposals", now.generation, &json!({"waiting": waiting}));
            }
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn index_event(&self, now: Known) -> Value {
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        let Touched { mut paths, is_too_long, changed, removed, moved } = std::mem::take(&mut *touched);
        paths.sort_unstable();
        paths.dedup();
        // Without a sync of this process, another one wrote the index.
        let paths = (!is_too_long && !paths.is_empty()).then_some(paths);
        json!({"generation": now.generation, "paths": paths, "changed": changed, "removed": removed, "moved": moved})
    }

    fn send(&self, name: &str, generation: i64, data: &Value) {
        // Sending fails only if no page listens any more.
        drop(self.sender.send(message(name, generation, data).into()));
    }

    /// Answers with the stream of events.
    pub(crate) async fn response(&self, store: &Store) -> Response {
        let (sender, body) = channel_body();
        let (mut receiver, mut closed) = (self.sender.subscribe(), self.closed.subscribe());
        let now = state_of(store).await;
        // A change from now on is an event, also before the index is looked at next. So is the first state that can be read.
        self.known().get_or_insert(now.unwrap_or_default());
        let hello = json!({
            "generation": now.map(|now| now.generation),
            "pending": now.map(|now| now.pending),
            "proposals": waiting_of(store).await,
            "instance": &*self.instance,
        });
        let generation = now.map_or(0, |now| now.generation);
        let first = format!("retry: 1000\n\n{}", message("hello", generation, &hello));
        tokio::spawn(async move {
            let mut next: Bytes = first.into();
            loop {
                if sender.send(next).await.is_err() {
                    return;
                }
                next = tokio::select! {
                    event = receiver.recv() => match event {
                        Ok(event) => Bytes::copy_from_slice(event.as_bytes()),
                        Err(broadcast::error::RecvError::Lagged(_)) => {
                            message("index", 0, &json!({"generation": null, "paths": null})).into()
                        }
                        Err(broadcast::error::RecvError::Closed) => return,
                    },
                    _ = closed.changed() => return,
                    () = tokio::time::sleep(HEARTBEAT) => Bytes::from_static(b": still here\n\n"),
                };
            }
        });
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// Reads the state of the index, on a thread that may wait. `None` if it cannot be read now.
async fn state_of(store: &Store) -> Option<Known> {
    let store = store.clone();
    let read = tokio::task::spawn_blocking(move || {
        let generation = store.index().generation()?;
        let (pending, vectors) = store.index().vectors()?;
        let proposals = store.proposals().last_change()?;
        Ok(Known { generation, pending, vectors, proposals })
    });
    read_or_warn("the state of the index", read).await
}

/// Counts the proposals that wait, on a thread that may wait. `None` if they cannot be read now.
async fn waiting_of(store: &Store) -> Option<usize> {
    let store = store.clone();
    let read = tokio::task::spawn_blocking(move || store.proposals().waiting_count());
    read_or_warn("the number of proposals", read).await
}

/// Waits for something that is read on another thread. A failure is logged.
async fn read_or_warn<T>(what: &str, read: JoinHandle<Result<T>>) -> Option<T> {
    match read.await {
        Ok(Ok(known)) => Some(known),
        Ok(Err(error)) => {
            tracing::warn!("{what} cannot be read: {error}");
            None
        }
        Err(ended) => {
            tracing::warn!("{what} was not read: {ended}");
            None
        }
    }
}

/// Formats an event.
fn message(name: &str, generation: i64, data: &Value) -> String {
    format!("event: {name}\nid: {generation}\ndata: {data}\n\n")
}
