//! Limits of the HTTP server: open connections, and the memory for bodies of requests. What a request takes is released
//! when it has been answered.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use sidenote_foundation::platform;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest request, in bytes.
pub const MAX_BODY: usize = 4 << 20;
/// The time in which a request must arrive, and after which an idle connection is closed.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest request, in bytes, that needs no reservation: the limit of connections bounds the sum of these requests.
const UNRESERVED_BODY: usize = 64 << 10;
/// The limit of the bytes of all larger requests together.
const BODY_MEMORY: usize = 16 << 20;
/// The time that a larger request waits for free memory.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(2);
/// The largest number of open connections. Half of the limit of open files is another bound.
const MAX_CONNECTIONS: usize = 512;

/// A reserved share of the memory for request bodies. Dropping it releases the share.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "the permit is only held, for its destructor")]
pub struct BodyReservation(Arc<OwnedSemaphorePermit>);

/// The number of requests that are larger than [`MAX_BODY`] at a time.
const MAX_HUGE_BODIES: usize = 1;

/// The limits, each as a semaphore of what is still free.
#[derive(Debug, Clone)]
pub struct Admission {
    memory: Arc<Semaphore>,
    /// The right to send a request that is larger than [`MAX_BODY`], to an address that takes such.
    huge: Arc<Semaphore>,
    connections: Arc<Semaphore>,
}

impl Default for Admission {
    fn default() -> Self {
        let files = platform::open_file_limit();
        let connections = files.map_or(MAX_CONNECTIONS, |files| (files / 2).clamp(8, MAX_CONNECTIONS));
        Self {
            memory: Arc::new(Semaphore::new(BODY_MEMORY)),
            huge: Arc::new(Semaphore::new(MAX_HUGE_BODIES)),
            connections: Arc::new(Semaphore::new(connections)),
        }
    }
}

impl Admission {
    /// Admits another connection. Returns `None` if there are too many.
    pub fn connection(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.connections).try_acquire_owned().ok()
    }

    /// Admits another connection as soon as one has ended. Returns `None` if none does in this time.
    pub(crate) async fn connection_within(&self, time: Duration) -> Option<OwnedSemaphorePermit> {
        tokio::time::timeout(time, Arc::clone(&self.connections).acquire_owned()).await.ok()?.ok()
    }

    /// Reads the body of a request, and reserves memory for it.
    ///
    /// # Errors
    /// The response for a request that is too large, too slow or incomplete, or for which no memory is free.
    pub async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<(Bytes, Option<BodyReservation>), Response> {
        self.read_up_to(headers, body, MAX_BODY).await
    }

    /// Reads the body of a request as [`Self::read`] does, but of up to `most` bytes, for an address that takes files. Only one
    /// request that is larger than [`MAX_BODY`] is read at a time, so that the memory of all stays bounded, and it has more
    /// time to arrive. It must announce its length.
    ///
    /// # Errors
    /// The response for a request that is too large, too slow or incomplete, or for which no memory is free.
    pub async fn read_up_to(
        &self,
        headers: &HeaderMap,
        body: Body,
        most: usize,
    ) -> Result<(Bytes, Option<BodyReservation>), Response> {
        let declared: Option<usize> =
            headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let pieces = u32::try_from(declared.unwrap_or(0) / MAX_BODY).unwrap_or(u32::MAX);
        let time = BODY_TIMEOUT.saturating_mul(pieces.saturating_add(1));
        match tokio::time::timeout(time, self.collect(declared, body, most)).await {
            Ok(read) => read,
            Err(_) => {
                Err((StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time\n").into_response())
            }
        }
    }

    async fn collect(
        &self,
        declared: Option<usize>,
        mut body: Body,
        most: usize,
    ) -> Result<(Bytes, Option<BodyReservation>), Response> {
        let largest = declared.unwrap_or(MAX_BODY);
        if largest > most {
            return Err(too_large(most));
        }
        let mut reserved = None;
        if declared.is_some_and(|length| length > UNRESERVED_BODY) {
            reserved = Some(self.reserve(largest).await?);
        }
        let mut bytes = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let frame = frame.map_err(|error| {
                (StatusCode::BAD_REQUEST, format!("the request is incomplete: {error}\n")).into_response()
            })?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len() + data.len();
            if length > largest.max(UNRESERVED_BODY) {
                return Err(too_large(largest));
            }
            if length > UNRESERVED_BODY && reserved.is_none() {
                // The request has no `Content-Length`.
                reserved = Some(self.reserve(largest).await?);
            }
            bytes.extend_from_slice(&data);
        }
        Ok((bytes.into(), reserved))
    }

    async fn reserve(&self, bytes: usize) -> Result<BodyReservation, Response> {
        let busy = || {
            let retry = [(header::RETRY_AFTER, "1")];
            let text = "too many large requests are being processed; send it again\n";
            (StatusCode::SERVICE_UNAVAILABLE, retry, text).into_response()
        };
        let (semaphore, permits) = match u32::try_from(bytes) {
            Ok(permits) if bytes <= MAX_BODY => (&self.memory, permits),
            _ => (&self.huge, 1),
        };
        let permit = Arc::clone(semaphore).acquire_many_owned(permits);
        match tokio::time::timeout(MEMORY_TIMEOUT, permit).await {
            Ok(Ok(permit)) => Ok(BodyReservation(Arc::new(permit))),
            Ok(Err(_)) | Err(_) => Err(busy()),
        }
    }
}

fn too_large(most: usize) -> Response {
    let text = format!("the request is longer than {most} bytes\n");
    (StatusCode::PAYLOAD_TOO_LARGE, text).into_response()
}
