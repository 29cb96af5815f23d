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
use sidenote_base::error::{Error, Result};
use sidenote_index::SyncReport;
use sidenote_markdown::control::plain;
use sidenote_markdown::media_type::media_type;
use sidenote_markdown::path::NotePath;
use sidenote_store::{FileContent, FileItem, Store};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

/// The beginning of the URI of every resource, before the name of a vault where a server has several.
const SCHEME: &str = "sidenote://";
/// The characters that a URI escapes: all but the unreserved ones (RFC 3986) and the slash.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The number of resources on a page.
const PAGE_SIZE: usize = 200;
/// The largest file that is sent, in bytes.
const MAX_FILE: u64 = 8 << 20;
/// The largest number of subscriptions of a session.
pub(super) const MAX_SUBSCRIPTIONS: usize = 256;
/// The longest URI of a subscription, in bytes.
const MAX_URI: usize = 4096;
/// The number of pending notices of a subscription. One that is further behind is notified of all its resources.
const BACKLOG: usize = 64;

/// Returns the URI of a file.
pub(super) fn uri_of(vault: &str, path: &str) -> String {
    format!("{SCHEME}{vault}/{}", utf8_percent_encode(path, ESCAPED))
}

/// Names a vault in a URI that names none.
pub(super) fn in_vault(uri: &str, vault: &str) -> String {
    let path = uri.strip_prefix(SCHEME).filter(|rest| rest.starts_with('/'));
    path.map_or_else(|| uri.to_owned(), |path| format!("{SCHEME}{vault}{path}"))
}

/// Returns the name of the vault in a URI; `None` if it has none.
pub(super) fn vault_of(uri: &str) -> Option<&str> {
    let (vault, _) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    Some(vault).filter(|vault| !vault.is_empty())
}

/// Returns the data of an error about a URI: the URI itself, unless it is too long to be that of a file.
pub(super) fn error_data(uri: &str) -> Option<Value> {
    (uri.len() <= MAX_URI).then(|| json!({ "uri": plain(uri) }))
}

/// Returns the path of the file that a URI names.
///
/// # Errors
/// `Invalid` for another scheme, for invalid UTF-8, and for a path that is not one in a vault.
pub(super) fn path_of(uri: &str) -> Result<NotePath> {
    let invalid = |reason: &str| {
        // The data of the error holds the URI.
        Error::invalid(format!("the URI {reason}"))
            .with_hint(format!("A valid URI: {SCHEME}/Projects/Ship%20it.md"))
    };
    let rest = uri.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'));
    let (_, rest) = rest.ok_or_else(|| invalid("is not that of a note"))?;
    let path = percent_decode_str(rest).decode_utf8().map_err(|_| invalid("is not valid UTF-8"))?;
    NotePath::parse(&path)
}

/// Replaces URIs of files and absolute paths below `root` by paths from the root of the vault, in a string or an array of
/// strings. Other strings stay as they are.
pub(super) fn to_vault_paths(root: &str, value: &mut Value) {
    match value {
        Value::String(text) => {
            let path = text.trim().starts_with(SCHEME).then(|| path_of(text.trim()).ok()).flatten();
            if let Some(path) = path {
                *text = path.to_string();
            } else if let Some(inside) = text.strip_prefix(root).filter(|_| !root.is_empty())
                && inside.starts_with(['/', '\\'])
            {
                // The slash says that the path begins at the root of the vault.
                *text = inside.replace('\\', "/");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| to_vault_paths(root, item)),
        _ => {}
    }
}

/// Lists files, a page at a time. The cursor is the URI of the last file of the page before.
pub(super) fn list(store: &Store, vault: &str, cursor: Option<&str>) -> Result<ListResourcesResult> {
    if cursor.is_none() {
        store.index().refresh()?;
    }
    // The cursor of a vault that was not begun has no path.
    let cursor = cursor.filter(|cursor| !cursor.ends_with('/'));
    let after = cursor.map(path_of).transpose()?;
    let mut files = store.reads().files_after(after.as_ref().map_or("", NotePath::as_str), PAGE_SIZE + 1)?;
    let has_more = files.len() > PAGE_SIZE;
    files.truncate(PAGE_SIZE);
    let next = files.last().filter(|_| has_more).map(|file| uri_of(vault, &file.path));
    let mut result =
        ListResourcesResult::with_all_items(files.iter().map(|file| describe(vault, file)).collect());
    result.next_cursor = next;
    Ok(result)
}

fn describe(vault: &str, file: &FileItem) -> Resource {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    let resource = Resource::new(uri_of(vault, &file.path), name)
        .with_mime_type(media_type(&file.path))
        .with_size(file.size);
    if file.title.is_empty() { resource } else { resource.with_title(&file.title) }
}

/// Lists the one template of URIs.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(format!("{SCHEME}/{{+path}}"), "note")
        .with_title("A note or attachment by its path")
        .with_description("The text of a note, or the bytes of an attachment.")
        .with_mime_type("text/markdown");
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// Reads a file: the text of a note or canvas, the bytes of any other file.
///
/// # Errors
/// `Invalid` for a URI that is not that of a file, and for a file that is too large to be sent; `NotFound` if there is
/// no such file.
pub(super) fn read(store: &Store, uri: &str) -> Result<ReadResourceResponse> {
    let path = path_of(uri)?;
    store.index().refresh()?;
    let (file, content) = store.reads().file(&path, MAX_FILE)?;
    let kind = media_type(&file.path);
    let contents = match content {
        FileContent::Text(text) => ResourceContents::text(text, uri),
        FileContent::Bytes(bytes) => ResourceContents::blob(STANDARD.encode(bytes), uri),
        FileContent::TooLarge => {
            return Err(Error::invalid(format!(
                "{} ({kind}) has {} bytes; files of more than {MAX_FILE} bytes are not sent",
                file.path, file.size
            )));
        }
    };
    let contents = contents.with_mime_type(kind);
    Ok(ReadResourceResult::new(vec![contents]).into())
}

/// Checks that a URI names a file and is short enough for a subscription.
///
/// # Errors
/// `Invalid` for a URI that is too long or not that of a file; `NotFound` if there is no such file.
pub(super) fn require(store: &Store, uri: &str) -> Result<()> {
    if uri.len() > MAX_URI {
        return Err(Error::invalid(format!("the URI has more than {MAX_URI} bytes")));
    }
    let path = path_of(uri)?;
    store.index().refresh()?;
    store.reads().require_file(&path)
}

/// A notice that the vault changed.
#[derive(Debug, Clone)]
struct ChangeNotice {
    /// The changed files; `None` if any file may have changed.
    touched: Option<Arc<HashSet<NotePath>>>,
    /// Whether files were added, removed or moved.
    list_changed: bool,
}

/// Says whether a file exists for the agent of a subscription; without a file, whether all do.
pub(super) type Shows = Arc<dyn Fn(Option<&NotePath>) -> bool + Send + Sync>;

impl ChangeNotice {
    /// Returns what the notice says of files that exist for an agent.
    fn seen(self, shows: &Shows) -> Self {
        let Some(touched) = &self.touched else {
            // Which files changed is not known: a fenced agent would learn of changes of others.
            let is_all = tokio::task::block_in_place(|| shows(None));
            return if is_all { self } else { Self { list_changed: false, touched: Some(Arc::default()) } };
        };
        // Whether a file exists for the agent can depend on what it says.
        let seen = || touched.iter().filter(|path| shows(Some(path))).cloned().collect::<HashSet<NotePath>>();
        let seen = tokio::task::block_in_place(seen);
        Self { list_changed: self.list_changed && !seen.is_empty(), touched: Some(Arc::new(seen)) }
    }

    /// Returns whether a URI names a changed file. The vault in it was looked at when it was subscribed to.
    fn concerns(&self, uri: &str) -> bool {
        let Some(touched) = &self.touched else { return true };
        if !uri.starts_with(SCHEME) {
            // The resource of a toolset is made of all files.
            return !touched.is_empty();
        }
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
    pub(super) fn send(&self, report: &SyncReport) {
        if self.0.receiver_count() == 0 {
            return;
        }
        let touched = Some(Arc::new(report.touched.iter().cloned().collect()));
        let list_changed = report.added + report.removed + report.moved > 0;
        self.broadcast(ChangeNotice { touched, list_changed });
    }

    fn broadcast(&self, notice: ChangeNotice) {
        if self.0.send(notice).is_err() {
            tracing::debug!("no subscription receives the notice of a change any more");
        }
    }

    /// Returns whether any subscription receives notices.
    pub(super) fn has_listeners(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Broadcasts that any file may have changed.
    pub(super) fn send_all(&self) {
        self.broadcast(ChangeNotice { touched: None, list_changed: true });
    }

    async fn next(receiver: &mut broadcast::Receiver<ChangeNotice>) -> Option<ChangeNotice> {
        match receiver.recv().await {
            Ok(notice) => Some(notice),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                Some(ChangeNotice { touched: None, list_changed: true })
            }
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// Sends a subscription the notifications of vaults until it ends (protocol 2026-07-28). A URI without the name of a vault is
    /// one of the first.
    pub(super) async fn listen(vaults: Vec<(String, Self, Shows)>, context: &SubscriptionContext) {
        let first = vaults.first().map(|(name, ..)| name.clone()).unwrap_or_default();
        let (sender, mut notices) = tokio::sync::mpsc::channel(BACKLOG);
        // The tasks end with this function.
        let mut tasks = tokio::task::JoinSet::new();
        for (vault, changes, shows) in vaults {
            let (mut receiver, sender) = (changes.0.subscribe(), sender.clone());
            tasks.spawn(async move {
                while let Some(notice) = Self::next(&mut receiver).await {
                    if sender.send((vault.clone(), notice.seen(&shows))).await.is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let accepted = context.accepted().clone();
        let mut uris = accepted.resource_subscriptions.unwrap_or_default();
        uris.sort_unstable();
        uris.dedup();
        loop {
            let notice = tokio::select! {
                notice = notices.recv() => notice,
                () = context.cancelled() => None,
            };
            let Some((vault, notice)) = notice else { return };
            let is_of_vault = |uri: &str| vault_of(uri).unwrap_or(&first).eq_ignore_ascii_case(&vault);
            let mut notifications: Vec<ServerNotification> = Vec::new();
            if notice.list_changed && accepted.resources_list_changed == Some(true) {
                notifications.push(ResourceListChangedNotification::default().into());
            }
            notifications.extend(uris.iter().filter(|uri| is_of_vault(uri) && notice.concerns(uri)).map(
                |uri| {
                    ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri.clone()))
                        .into()
                },
            ));
            for notification in notifications {
                if let Err(error) = context.sink().send(notification).await {
                    tracing::debug!("a subscription ends: {error}");
                    return;
                }
            }
        }
    }
}

/// Returns the part of a requested subscription that is accepted: URIs of existing files, each once, up to the limit.
pub(super) fn accepted(requested: &SubscriptionFilter, exists: impl Fn(&str) -> bool) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.resources_list_changed = requested.resources_list_changed;
    accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(|uris| {
        let mut known = HashSet::new();
        let granted = uris.iter().take(2 * MAX_SUBSCRIPTIONS).filter(|uri| known.insert(uri.as_str()));
        granted.filter(|uri| exists(uri)).take(MAX_SUBSCRIPTIONS).cloned().collect()
    });
    accepted
}

/// The subscriptions of a connection of older protocol versions: resources, and changes of the list of files.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    uris: Arc<Mutex<HashSet<String>>>,
    task: OnceLock<AbortHandle>,
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

impl Subscriptions {
    fn uris(uris: &Mutex<HashSet<String>>) -> MutexGuard<'_, HashSet<String>> {
        uris.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the task that sends notifications to the client, unless it is running.
    pub(super) fn begin(&self, changes: &ChangeBroadcast, peer: Peer<RoleServer>, shows: Shows) {
        self.task.get_or_init(|| {
            let (mut receiver, uris) = (changes.0.subscribe(), Arc::clone(&self.uris));
            let task = tokio::spawn(async move {
                while let Some(notice) = ChangeBroadcast::next(&mut receiver).await {
                    if let Err(error) = Self::notify(&peer, &uris, &notice.seen(&shows)).await {
                        tracing::debug!("the notifications of a connection end: {error}");
                        return;
                    }
                }
            });
            task.abort_handle()
        });
    }

    async fn notify(
        peer: &Peer<RoleServer>,
        uris: &Mutex<HashSet<String>>,
        notice: &ChangeNotice,
    ) -> Result<(), ServiceError> {
        if notice.list_changed {
            peer.notify_resource_list_changed().await?;
        }
        let touched: Vec<String> =
            Self::uris(uris).iter().filter(|uri| notice.concerns(uri)).cloned().collect();
        for uri in touched {
            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await?;
        }
        Ok(())
    }

    /// Adds a URI. Returns `false` if there are too many already.
    pub(super) fn add(&self, uri: String) -> bool {
        let mut uris = Self::uris(&self.uris);
        let has_room = uris.len() < MAX_SUBSCRIPTIONS || uris.contains(&uri);
        if has_room {
            uris.insert(uri);
        }
        has_room
    }

    /// Removes a URI.
    pub(super) fn remove(&self, uri: &str) {
        Self::uris(&self.uris).remove(uri);
    }
}
