//! What clients of older protocol versions missed when a connection broke: the events of streams are kept for a while, and a
//! client that names the last event that it got receives the later ones.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_channel::mpsc::{UnboundedSender, unbounded};
use rmcp::model::JsonRpcMessage;
use rmcp::transport::streamable_http_server::session::{
    EventId, EventStore, EventStoreError, EventStream, ServerSseMessage,
};
use uuid::Uuid;

/// How long the events of a stream are kept after the last one. Clients that wait the announced three seconds, and a proxy that is
/// restarted meanwhile, are back by then.
const KEPT: Duration = Duration::from_secs(120);

/// The most streams whose events are kept. Replies have some ten kilobytes, so all take some ten megabytes.
const MOST_STREAMS: usize = 1_000;

/// How the streams of a session end whose events are no answers to a request.
const COMMON: &str = ":common";

/// The events of one stream.
struct Kept {
    events: Vec<ServerSseMessage>,
    last: Instant,
    /// Whether the answer was sent, with which the stream ends.
    is_over: bool,
    /// Those that resumed the stream, and wait for more.
    listeners: Vec<UnboundedSender<ServerSseMessage>>,
}

#[derive(Default)]
struct Streams {
    streams: HashMap<String, Kept>,
    /// The stream of each event, and its place in it.
    places: HashMap<String, (String, usize)>,
}

impl Streams {
    fn add(&mut self, stream: &str, event: &ServerSseMessage, now: Instant) -> String {
        self.forget(now);
        // An id is a secret: who has it gets the answers to another request.
        let id = Uuid::new_v4().simple().to_string();
        let event = with_id(event, &id);
        let kept = self.streams.entry(stream.to_owned()).or_insert_with(|| Kept {
            events: Vec::new(),
            last: now,
            is_over: false,
            listeners: Vec::new(),
        });
        kept.listeners.retain(|listener| listener.unbounded_send(event.clone()).is_ok());
        kept.is_over |= !stream.ends_with(COMMON) && is_answer(&event);
        if kept.is_over {
            kept.listeners.clear();
        }
        self.places.insert(id.clone(), (stream.to_owned(), kept.events.len()));
        kept.events.push(event);
        kept.last = now;
        id
    }

    /// Removes the streams that are kept for too long, and the oldest ones if there are too many.
    fn forget(&mut self, now: Instant) {
        let mut gone: Vec<(Instant, String)> = Vec::new();
        if self.streams.len() >= MOST_STREAMS {
            let ages = self.streams.iter().map(|(name, kept)| (kept.last, name.clone()));
            gone.extend(ages.min());
        }
        let is_old = |kept: &Kept| now.duration_since(kept.last) > KEPT && kept.listeners.is_empty();
        let old = self.streams.iter().filter(|(_, kept)| is_old(kept));
        gone.extend(old.map(|(name, kept)| (kept.last, name.clone())));
        for (_, name) in gone {
            for event in self.streams.remove(&name).into_iter().flat_map(|kept| kept.events) {
                self.places.remove(event.event_id.as_deref().unwrap_or_default());
            }
        }
    }

    fn after(&mut self, last: &str) -> Option<EventStream> {
        let (stream, place) = self.places.get(last)?;
        let kept = self.streams.get_mut(stream)?;
        let (sender, receiver) = unbounded();
        for event in kept.events.iter().skip(place + 1) {
            sender.unbounded_send(event.clone()).ok()?;
        }
        if !kept.is_over {
            kept.listeners.push(sender);
        }
        Some(Box::pin(receiver))
    }
}

fn with_id(event: &ServerSseMessage, id: &str) -> ServerSseMessage {
    let mut event = event.clone();
    event.event_id = Some(id.to_owned());
    event
}

fn is_answer(event: &ServerSseMessage) -> bool {
    let message = event.message.as_deref();
    message.is_some_and(|message| matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)))
}

/// Keeps the events of the streams of one endpoint in memory.
#[derive(Default)]
pub(super) struct StreamReplay(Mutex<Streams>);

type Stored<'f, T> = Pin<Box<dyn Future<Output = Result<T, EventStoreError>> + Send + 'f>>;

impl EventStore for StreamReplay {
    fn store_event<'a, 's: 'f, 'e: 'f, 'f>(
        &'a self,
        stream: &'s str,
        event: &'e ServerSseMessage,
    ) -> Stored<'f, EventId>
    where
        'a: 'f,
        Self: 'f,
    {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(ready(Ok(streams.add(stream, event, Instant::now()))))
    }

    fn replay_events_after<'a, 'i: 'f, 'f>(&'a self, last: &'i str) -> Stored<'f, EventStream>
    where
        'a: 'f,
        Self: 'f,
    {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = streams.after(last).ok_or_else(|| EventStoreError::from("no such event is kept"));
        Box::pin(ready(found))
    }
}
