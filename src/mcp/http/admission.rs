//! Owns the limits of what is under way over HTTP: open connections, and the bytes of request bodies that are held in
//! memory at once. What is taken goes back when the request has been answered.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest request, in bytes.
pub(super) const LARGEST: usize = 4 << 20;
/// A request that takes longer to arrive is given up, and so is a connection that is silent for so long.
pub(super) const ARRIVAL: Duration = Duration::from_secs(30);
/// A request of at most so many bytes needs no reservation: the number of connections bounds their sum.
const SMALL: usize = 64 << 10;
/// The bodies of all larger requests that are under way have at most so many bytes together.
const ROOM: usize = 16 << 20;
/// A larger request waits at most so long for room.
const PATIENCE: Duration = Duration::from_secs(2);
/// At most so many connections are open at once, and never more than half of the files that the process may open.
const CONNECTIONS: usize = 512;

/// A part of the room for request bodies; dropping it gives the part back.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "it is held, and never looked at")]
pub(in crate::mcp) struct Reserved(Arc<OwnedSemaphorePermit>);

/// What is left of the limits.
#[derive(Debug, Clone)]
pub(super) struct Intake {
    room: Arc<Semaphore>,
    connections: Arc<Semaphore>,
}

impl Default for Intake {
    fn default() -> Self {
        let files = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok());
        let connections = files.map_or(CONNECTIONS, |files| (files / 2).clamp(8, CONNECTIONS));
        Self { room: Arc::new(Semaphore::new(ROOM)), connections: Arc::new(Semaphore::new(connections)) }
    }
}

impl Intake {
    /// Takes a place for one more connection; nothing where there are too many.
    pub(super) fn connection(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.connections).try_acquire_owned().ok()
    }

    /// Reads the body of a request, with the room that it takes.
    ///
    /// # Errors
    /// The response that refuses it: too large, too slow, broken off, or no room.
    pub(super) async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<(Bytes, Option<Reserved>), Response> {
        match tokio::time::timeout(ARRIVAL, self.collect(headers, body)).await {
            Ok(read) => read,
            Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the request did not arrive\n").into_response()),
        }
    }

    async fn collect(
        &self,
        headers: &HeaderMap,
        mut body: Body,
    ) -> Result<(Bytes, Option<Reserved>), Response> {
        let declared =
            headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let largest = declared.unwrap_or(LARGEST);
        if largest > LARGEST {
            return Err(too_large());
        }
        let mut reserved = None;
        if declared.is_some_and(|length| length > SMALL) {
            reserved = Some(self.reserve(largest).await?);
        }
        let mut bytes = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let frame = frame.map_err(|error| {
                (StatusCode::BAD_REQUEST, format!("the request broke off: {error}\n")).into_response()
            })?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len() + data.len();
            if length > LARGEST {
                return Err(too_large());
            }
            if length > SMALL && reserved.is_none() {
                // Its length was not declared.
                reserved = Some(self.reserve(largest).await?);
            }
            bytes.extend_from_slice(&data);
        }
        Ok((bytes.into(), reserved))
    }

    async fn reserve(&self, bytes: usize) -> Result<Reserved, Response> {
        let busy = || {
            let again = [(header::RETRY_AFTER, "1")];
            let text = "too many large requests are under way; send it again\n";
            (StatusCode::SERVICE_UNAVAILABLE, again, text).into_response()
        };
        let permits = u32::try_from(bytes).map_err(|_| too_large())?;
        let room = Arc::clone(&self.room).acquire_many_owned(permits);
        match tokio::time::timeout(PATIENCE, room).await {
            Ok(Ok(room)) => Ok(Reserved(Arc::new(room))),
            Ok(Err(_)) | Err(_) => Err(busy()),
        }
    }
}

fn too_large() -> Response {
    let text = format!("the request is longer than {LARGEST} bytes\n");
    (StatusCode::PAYLOAD_TOO_LARGE, text).into_response()
}
