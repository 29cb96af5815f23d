//! The open connections of a server, and which of them wait for their clients. If there are too many, those that have waited
//! longest are closed.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The open connections, by a number that no other one has.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: Mutex<BTreeMap<u64, Connection>>,
}

/// An open connection.
#[derive(Debug)]
struct Connection {
    /// Since when its client owes a request, or the rest of one; `None` while the server owes an answer.
    waiting_since: Option<Instant>,
    /// Tells the task of the connection to close it.
    close: Arc<Notify>,
}

/// The entry of a connection. Dropping it removes the connection from the list.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    list: Arc<Connections>,
    number: u64,
    close: Arc<Notify>,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Connection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, whose client owes a request.
    pub(crate) fn add(self: &Arc<Self>) -> Arc<OpenConnection> {
        let close = Arc::new(Notify::new());
        let mut open = self.open();
        let number = open.last_key_value().map_or(0, |(last, _)| last + 1);
        open.insert(number, Connection { waiting_since: Some(Instant::now()), close: Arc::clone(&close) });
        Arc::new(OpenConnection { list: Arc::clone(self), number, close })
    }

    /// Closes the connection that has waited longest for its client. Returns `false` if none waits.
    pub(crate) fn close_longest_waiting(&self) -> bool {
        let mut open = self.open();
        let waiting = open.values_mut().filter(|connection| connection.waiting_since.is_some());
        let Some(longest) = waiting.min_by_key(|connection| connection.waiting_since) else { return false };
        longest.waiting_since = None;
        longest.close.notify_one();
        true
    }
}

impl OpenConnection {
    /// Completes when the connection must be closed.
    pub(crate) async fn closed(&self) {
        self.close.notified().await;
    }

    fn set_waiting(&self, since: Option<Instant>) {
        if let Some(own) = self.list.open().get_mut(&self.number) {
            own.waiting_since = since;
        }
    }

    /// Returns a request whose body tells when it has arrived: from then on the server owes an answer.
    pub(crate) fn requested<B: HttpBody>(self: &Arc<Self>, request: Request<B>) -> Request<Tracked<B>> {
        let is_whole = request.body().is_end_stream();
        self.set_waiting(if is_whole { None } else { Some(Instant::now()) });
        let end = (!is_whole).then(|| End { connection: Arc::clone(self), is_waiting_then: false });
        request.map(|body| Tracked { body, end })
    }

    /// Returns an answer whose body tells when it was sent: from then on the client owes a request.
    pub(crate) fn answered(self: &Arc<Self>, response: Response<Body>) -> Response<Tracked<Body>> {
        let end = Some(End { connection: Arc::clone(self), is_waiting_then: true });
        response.map(|body| Tracked { body, end })
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.list.open().remove(&self.number);
    }
}

/// What happens at the end of a body: its connection waits for its client, or no longer does.
struct End {
    connection: Arc<OpenConnection>,
    is_waiting_then: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        self.connection.set_waiting(self.is_waiting_then.then(Instant::now));
    }
}

/// A body that reports its end to the list of connections.
pub(crate) struct Tracked<B> {
    body: B,
    end: Option<End>,
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Tracked<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.end = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
