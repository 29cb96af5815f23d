//! Resources: `sidenote:///path` for every note and attachment, and notifications of changes.
//!
//! A note is given as text, any other file as bytes with their media type.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::RoleServer;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ResourceListChangedNotification, ResourceTemplate, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{Peer, ServiceError, SubscriptionContext};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use crate::error::{Error, Result};
use crate::index::SyncReport;
use crate::store::{FileContent, FileItem, Store};
use crate::text::control::plain;
use crate::text::media_type::media_type;
use crate::text::path::NotePath;

/// What every resource's address begins with.
const SCHEME: &str = "sidenote:///";
/// What stands as it is in an address (RFC 3986, unreserved characters, and what parts folders).
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// So many resources are on a page.
const PAGE: usize = 200;
/// A file of more bytes than this is not sent.
const LARGEST: u64 = 8 << 20;
/// A session has at most this many subscriptions.
pub(super) const MAX_SUBSCRIPTIONS: usize = 256;
/// The address of a subscription has at most this many bytes.
const LONGEST_URI: usize = 4096;
/// A connection that lags so many steps behind is told of everything it asked for.
const BACKLOG: usize = 64;

/// Gives the address of a file.
pub(super) fn uri_of(path: &str) -> String {
    format!("{SCHEME}{}", utf8_percent_encode(path, PLAIN))
}

/// Gives what an error says of the address asked for: the address, unless it is too long to be that of a file.
pub(super) fn data_of(uri: &str) -> Option<Value> {
    (uri.len() <= LONGEST_URI).then(|| json!({ "uri": plain(uri) }))
}

/// Gives the path that an address means.
///
/// # Errors
/// `Invalid` for another scheme, and for what is no path in a vault, however it is written.
pub(super) fn path_of(uri: &str) -> Result<NotePath> {
    let wrong = |why: &str| {
        // The address stands beside the sentence, as data.
        Error::invalid(format!("the address {why}"))
            .with_hint(format!("An address looks like {SCHEME}Projects/Ship%20it.md"))
    };
    let rest = uri.strip_prefix(SCHEME).ok_or_else(|| wrong("is no address of a note"))?;
    let path = percent_decode_str(rest).decode_utf8().map_err(|_| wrong("is not UTF-8"))?;
    NotePath::parse(&path)
}

/// Puts paths in the place of addresses, in a text or a list of texts; what is no address of a file stays.
pub(super) fn unaddress(value: &mut Value) {
    match value {
        Value::String(text) => {
            let path = text.trim().starts_with(SCHEME).then(|| path_of(text.trim()).ok()).flatten();
            if let Some(path) = path {
                *text = path.to_string();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unaddress),
        _ => {}
    }
}

/// Lists files, a page at a time; the cursor is the last path of the page before.
pub(super) fn list(store: &Store, cursor: Option<&str>) -> Result<ListResourcesResult> {
    if cursor.is_none() {
        store.index().refresh()?;
    }
    let after = cursor.map(path_of).transpose()?;
    let mut files = store.reads().files_after(after.as_ref().map_or("", NotePath::as_str), PAGE + 1)?;
    let more = files.len() > PAGE;
    files.truncate(PAGE);
    let next = files.last().filter(|_| more).map(|file| uri_of(&file.path));
    let mut result = ListResourcesResult::with_all_items(files.iter().map(describe).collect());
    result.next_cursor = next;
    Ok(result)
}

fn describe(file: &FileItem) -> Resource {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    let resource =
        Resource::new(uri_of(&file.path), name).with_mime_type(media_type(&file.path)).with_size(file.size);
    if file.title.is_empty() { resource } else { resource.with_title(&file.title) }
}

/// Tells how addresses are made.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(format!("{SCHEME}{{+path}}"), "note")
        .with_title("A note or attachment by its path")
        .with_description("The text of a note, or the bytes of an attachment.")
        .with_mime_type("text/markdown");
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// Reads a file: the text of a note or canvas, and the bytes of anything else.
pub(super) fn read(store: &Store, uri: &str) -> Result<ReadResourceResponse> {
    let path = path_of(uri)?;
    store.index().refresh()?;
    let (file, content) = store.reads().file(&path, LARGEST)?;
    let kind = media_type(&file.path);
    let contents = match content {
        FileContent::Text(text) => ResourceContents::text(text, uri),
        FileContent::Bytes(bytes) => ResourceContents::blob(STANDARD.encode(bytes), uri),
        FileContent::TooLarge => {
            return Err(Error::invalid(format!(
                "{} is {kind} of {} bytes, and no more than {LARGEST} bytes are sent",
                file.path, file.size
            )));
        }
    };
    let contents = contents.with_mime_type(kind);
    Ok(ReadResourceResult::new(vec![contents]).into())
}

/// Refuses an address at which there is no file, or that is too long to be kept.
///
/// # Errors
/// `Invalid` for an address that is none of a file in a vault; `NotFound` where there is no file.
pub(super) fn require(store: &Store, uri: &str) -> Result<()> {
    if uri.len() > LONGEST_URI {
        return Err(Error::invalid(format!("the address has more than {LONGEST_URI} bytes")));
    }
    let path = path_of(uri)?;
    store.index().refresh()?;
    store.reads().require_file(&path)
}

/// One notification that the vault changed.
#[derive(Debug, Clone)]
struct ChangeNotice {
    /// What changed; everything where not given.
    touched: Option<Arc<HashSet<NotePath>>>,
    /// Whether files came or went.
    listing: bool,
}

impl ChangeNotice {
    /// Says whether an address names what changed.
    fn concerns(&self, uri: &str) -> bool {
        let Some(touched) = &self.touched else { return true };
        path_of(uri).is_ok_and(|path| touched.contains(&path))
    }
}

/// Broadcasts changes of the vault to all subscriptions.
#[derive(Debug, Clone)]
pub(super) struct ChangeBroadcast(broadcast::Sender<ChangeNotice>);

impl Default for ChangeBroadcast {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl ChangeBroadcast {
    /// Broadcasts the changes of one sync.
    pub(super) fn tell(&self, report: &SyncReport) {
        if self.0.receiver_count() == 0 {
            return;
        }
        let touched = Some(Arc::new(report.touched.iter().cloned().collect()));
        let listing = report.added + report.removed + report.moved > 0;
        if self.0.send(ChangeNotice { touched, listing }).is_err() {
            tracing::debug!("whoever listened for changes is gone");
        }
    }

    /// Reports whether any subscription listens.
    pub(super) fn has_listeners(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Broadcasts that anything may have changed.
    pub(super) fn send_all(&self) {
        if self.0.send(ChangeNotice { touched: None, listing: true }).is_err() {
            tracing::debug!("whoever listened for changes is gone");
        }
    }

    async fn next(receiver: &mut broadcast::Receiver<ChangeNotice>) -> Option<ChangeNotice> {
        match receiver.recv().await {
            Ok(step) => Some(step),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                Some(ChangeNotice { touched: None, listing: true })
            }
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// Tells one subscription of what it asked for until it ends (protocol 2026-07-28).
    pub(super) async fn listen(&self, context: &SubscriptionContext) {
        let mut receiver = self.0.subscribe();
        let accepted = context.accepted().clone();
        let mut wanted = accepted.resource_subscriptions.unwrap_or_default();
        wanted.sort_unstable();
        wanted.dedup();
        loop {
            let step = tokio::select! {
                step = Self::next(&mut receiver) => step,
                () = context.cancelled() => None,
            };
            let Some(step) = step else { return };
            let mut news: Vec<ServerNotification> = Vec::new();
            if step.listing && accepted.resources_list_changed == Some(true) {
                news.push(ResourceListChangedNotification::default().into());
            }
            news.extend(wanted.iter().filter(|uri| step.concerns(uri)).map(|uri| {
                ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri.clone())).into()
            }));
            for one in news {
                if let Err(error) = context.sink().send(one).await {
                    tracing::debug!("a subscription ends: {error}");
                    return;
                }
            }
        }
    }
}

/// Gives the part of a wish that is granted: addresses of files, each once, and not too many.
pub(super) fn accepted(store: &Store, requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.resources_list_changed = requested.resources_list_changed;
    accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(|uris| {
        let mut known = HashSet::new();
        let granted = uris.iter().take(2 * MAX_SUBSCRIPTIONS).filter(|uri| known.insert(uri.as_str()));
        granted.filter(|uri| require(store, uri).is_ok()).take(MAX_SUBSCRIPTIONS).cloned().collect()
    });
    accepted
}

/// The subscriptions of a connection of the older protocol: resources, and changes of the list of files.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    uris: Arc<Mutex<HashSet<String>>>,
    telling: OnceLock<AbortHandle>,
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        if let Some(telling) = self.telling.get() {
            telling.abort();
        }
    }
}

impl Subscriptions {
    fn uris(uris: &Mutex<HashSet<String>>) -> MutexGuard<'_, HashSet<String>> {
        uris.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to tell a client.
    pub(super) fn begin(&self, changes: &ChangeBroadcast, peer: Peer<RoleServer>) {
        self.telling.get_or_init(|| {
            let (mut receiver, uris) = (changes.0.subscribe(), Arc::clone(&self.uris));
            let telling = tokio::spawn(async move {
                while let Some(step) = ChangeBroadcast::next(&mut receiver).await {
                    if let Err(error) = Self::tell(&peer, &uris, &step).await {
                        tracing::debug!("a subscriber is gone: {error}");
                        return;
                    }
                }
            });
            telling.abort_handle()
        });
    }

    async fn tell(
        peer: &Peer<RoleServer>,
        uris: &Mutex<HashSet<String>>,
        step: &ChangeNotice,
    ) -> Result<(), ServiceError> {
        if step.listing {
            peer.notify_resource_list_changed().await?;
        }
        let touched: Vec<String> =
            Self::uris(uris).iter().filter(|uri| step.concerns(uri)).cloned().collect();
        for uri in touched {
            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await?;
        }
        Ok(())
    }

    /// Adds an address; says whether there was room for it.
    pub(super) fn add(&self, uri: String) -> bool {
        let mut uris = Self::uris(&self.uris);
        let has_room = uris.len() < MAX_SUBSCRIPTIONS || uris.contains(&uri);
        if has_room {
            uris.insert(uri);
        }
        has_room
    }

    /// Takes an address out.
    pub(super) fn remove(&self, uri: &str) {
        Self::uris(&self.uris).remove(uri);
    }
}
