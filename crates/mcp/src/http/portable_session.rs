//! Sessions that every server of a team can go on with: their id says all that a server needs to know of them.
//!
//! An id gives no right. Each request is authorized by its own token, and a session can be continued by its person alone.

use std::future::{Future, ready};
use std::pin::Pin;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::{ClientCapabilities, Implementation, InitializeRequestParams, ProtocolVersion};
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};
use serde::{Deserialize, Serialize};
use sidenote_base::clock::{Timestamp, event_id};
use sidenote_language::graphemes::beginning;
use sidenote_markdown::control::plain;
use uuid::{Builder, Uuid};

/// The longest id that is read, in bytes.
const MAX_ID: usize = 1_024;
/// The longest name or version of a client in an id, in characters.
const MAX_CLIENT: usize = 60;
/// The number of bytes of a UUIDv7 that hold its time.
const TIME_BYTES: usize = 8;

/// The name of the session of a request in the journal. Every server gives a session the same one.
#[derive(Debug, Clone)]
pub(crate) struct SessionName(pub(crate) String);

/// What the id of a session says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PortableSession {
    /// A UUIDv7, which makes the id unique.
    id: Uuid,
    /// The name of the client.
    client: String,
    /// The version of the client.
    version: String,
    /// The version of the protocol that the client asked for.
    protocol: ProtocolVersion,
    /// A hash of the person to whom the session belongs.
    owner: String,
}

/// The fields that are read of an `initialize` request.
#[derive(Deserialize)]
struct InitializeFields {
    params: InitializeRequestParams,
}

impl PortableSession {
    /// Begins the session that a client asks for. Returns `None` if the message is no valid `initialize` request.
    pub(super) fn begin(message: &[u8], owner: Option<&str>, now: Timestamp) -> Option<Self> {
        let InitializeFields { params } = serde_json::from_slice(message).ok()?;
        let short = |text: &str| plain(beginning(text, MAX_CLIENT));
        Some(Self {
            id: event_id(now),
            client: short(&params.client_info.name),
            version: short(&params.client_info.version),
            protocol: params.protocol_version,
            owner: owner_hash(owner),
        })
    }

    /// Reads the id of a session that belongs to a person.
    pub(super) fn of(id: &str, owner: Option<&str>) -> Option<Self> {
        Self::parse(id).filter(|session| session.owner == owner_hash(owner))
    }

    fn parse(id: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(Some(id).filter(|id| id.len() <= MAX_ID)?).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Returns the id of the session, by which its client names it. Returns `None` for one that would be too long.
    pub(super) fn id(&self) -> Option<String> {
        let id = URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).ok()?);
        Some(id).filter(|id| id.len() <= MAX_ID)
    }

    /// Returns the name of the session in the journal: a UUIDv7 of the time at which it began. It depends on the whole id, so
    /// that nobody can choose that of another session.
    pub(super) fn name(&self, id: &str) -> SessionName {
        let hash = blake3::hash(id.as_bytes());
        let mut bytes = self.id.into_bytes();
        for (byte, random) in bytes.iter_mut().zip(hash.as_bytes()).skip(TIME_BYTES) {
            *byte = *random;
        }
        let name = Builder::from_bytes(bytes)
            .with_version(uuid::Version::SortRand)
            .with_variant(uuid::Variant::RFC4122)
            .into_uuid();
        SessionName(name.simple().to_string())
    }
}

fn owner_hash(owner: Option<&str>) -> String {
    let hash = blake3::hash(owner.unwrap_or_default().as_bytes());
    hash.to_hex().chars().take(32).collect()
}

/// Gives rmcp the state of a session that another server has begun, which the id says. Nothing is stored.
pub(super) struct StateInId;

type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'a>>;

impl SessionStore for StateInId {
    fn load<'a, 'i: 'f, 'f>(&'a self, id: &'i str) -> Stored<'f, Option<SessionState>>
    where
        'a: 'f,
        Self: 'f,
    {
        let state = PortableSession::parse(id).map(|session| {
            let client = Implementation::new(session.client, session.version);
            let params = InitializeRequestParams::new(ClientCapabilities::default(), client);
            SessionState::new(params.with_protocol_version(session.protocol))
        });
        Box::pin(ready(Ok(state)))
    }

    fn store<'a, 'i: 'f, 's: 'f, 'f>(&'a self, _: &'i str, _: &'s SessionState) -> Stored<'f, ()>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(ready(Ok(())))
    }

    fn delete<'a, 'i: 'f, 'f>(&'a self, _: &'i str) -> Stored<'f, ()>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(ready(Ok(())))
    }
}
