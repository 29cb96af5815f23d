//! Limits of the HTTP server: open connections, and the memory for bodies of requests. What a request takes is released
//! when it has been answered.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use sidenote_base::platform;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The largest request, in bytes.
pub const MAX_BODY: usize = 4 << 20;
/// The time in which each [`MAX_BODY`] bytes of a request must arrive, and after which an idle connection is closed.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);
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
#[expect(dead_code, reason = "the permits are only held, for their destructor")]
pub struct BodyReservation(Arc<Vec<OwnedSemaphorePermit>>);

/// The limit of the bytes of all requests together that are larger than [`MAX_BODY`]. One that is larger than this alone waits
/// until no other is there.
const HUGE_MEMORY: usize = 256 << 20;
/// The time that such a request waits. Who stalls is cut off after [`BODY_TIMEOUT`], and clients repeat a request that is turned
/// away a few times.
const HUGE_TIMEOUT: Duration = Duration::from_secs(10);

/// The limits, each as a semaphore of what is still free.
#[derive(Debug, Clone)]
pub struct Admission {
    memory: Arc<Semaphore>,
    /// The memory for requests that are larger than [`MAX_BODY`], to an address that takes such.
    huge: Arc<Semaphore>,
    /// The right of each sender to send one such request at a time. An entry exists while the right is held or waited for.
    huge_senders: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>,
    connections: Arc<Semaphore>,
}

impl Default for Admission {
    fn default() -> Self {
        let files = platform::open_file_limit();
        let connections = files.map_or(MAX_CONNECTIONS, |files| (files / 2).clamp(8, MAX_CONNECTIONS));
        Self {
            memory: Arc::new(Semaphore::new(BODY_MEMORY)),
            huge: Arc::new(Semaphore::new(HUGE_MEMORY)),
            huge_senders: Arc::default(),
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
        self.read_up_to(headers, body, MAX_BODY, "").await
    }

    /// Reads the body of a request of up to 64 KB, for an address that anybody may use. It reserves nothing, however it is
    /// sent, so that strangers take no place of others.
    ///
    /// # Errors
    /// The response for a request that is too large, too slow or incomplete.
    pub async fn read_small(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, Response> {
        let has_length = headers.contains_key(header::CONTENT_LENGTH);
        let (bytes, _) = match has_length {
            true => self.read_up_to(headers, body, UNRESERVED_BODY, "").await?,
            false => self.read_within(body, UNRESERVED_BODY, None, "").await?,
        };
        Ok(bytes)
    }

    /// Reads the body of a request as [`Self::read`] does, but of up to `most` bytes, for an address that takes files.
    /// A sender may send one body larger than [`MAX_BODY`] at a time, and such bodies of all senders share a limit of
    /// bytes. So the memory stays bounded, and no sender can take all places. Such a request must announce its length.
    ///
    /// # Errors
    /// The response for a request that is too large, too slow or incomplete, or for which no memory is free.
    pub async fn read_up_to(
        &self,
        headers: &HeaderMap,
        body: Body,
        most: usize,
        sender: &str,
    ) -> Result<(Bytes, Option<BodyReservation>), Response> {
        let declared: Option<usize> =
            headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let largest = declared.unwrap_or(MAX_BODY);
        if largest > most {
            return Err(too_large(most));
        }
        let mut reserved = None;
        if declared.is_some_and(|length| length > UNRESERVED_BODY) {
            reserved = Some(self.reserve(largest, sender).await?);
        }
        self.read_within(body, largest, reserved, sender).await
    }

    /// Reads a body of up to `largest` bytes, and reserves memory if it is larger than what needs none.
    async fn read_within(
        &self,
        body: Body,
        largest: usize,
        mut reserved: Option<BodyReservation>,
        sender: &str,
    ) -> Result<(Bytes, Option<BodyReservation>), Response> {
        let started = Instant::now();
        let mut body = body;
        let mut bytes = Vec::new();
        loop {
            // What has arrived gives time for more, so a sender who stalls is cut off early, however much was announced.
            let time = BODY_TIMEOUT.mul_f64(1.0 + bytes.len() as f64 / MAX_BODY as f64);
            let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
            let Ok(frame) = tokio::time::timeout_at(started + time, frame).await else {
                return Err(
                    (StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time\n").into_response()
                );
            };
            let Some(frame) = frame else { break };
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
                reserved = Some(self.reserve(largest, sender).await?);
            }
            bytes.extend_from_slice(&data);
        }
        Ok((bytes.into(), reserved))
    }

    async fn reserve(&self, bytes: usize, sender: &str) -> Result<BodyReservation, Response> {
        let memory = Arc::clone(&self.memory);
        let permits = match u32::try_from(bytes) {
            Ok(share) if bytes <= MAX_BODY => {
                let acquired = async { Ok(vec![memory.acquire_many_owned(share).await?]) };
                tokio::time::timeout(MEMORY_TIMEOUT, acquired).await
            }
            _ => tokio::time::timeout(HUGE_TIMEOUT, self.huge_turn(bytes, sender)).await,
        };
        match permits {
            Ok(Ok(permits)) => Ok(BodyReservation(Arc::new(permits))),
            Ok(Err(_)) | Err(_) => {
                let retry = [(header::RETRY_AFTER, "1")];
                let text = "too many large requests are being processed; send it again\n";
                Err((StatusCode::SERVICE_UNAVAILABLE, retry, text).into_response())
            }
        }
    }

    /// Waits for the turn of the sender first, so that a sender of many requests occupies no place while it waits.
    async fn huge_turn(&self, bytes: usize, sender: &str) -> Result<Vec<OwnedSemaphorePermit>, AcquireError> {
        let own = {
            let mut senders = self.huge_senders.lock().unwrap_or_else(PoisonError::into_inner);
            senders.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(senders.entry(sender.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(1))))
        };
        let own = own.acquire_owned().await?;
        let share = u32::try_from(bytes.min(HUGE_MEMORY)).unwrap_or(u32::MAX);
        Ok(vec![own, Arc::clone(&self.huge).acquire_many_owned(share).await?])
    }
}

fn too_large(most: usize) -> Response {
    let text = format!("the request is longer than {most} bytes\n");
    (StatusCode::PAYLOAD_TOO_LARGE, text).into_response()
}
