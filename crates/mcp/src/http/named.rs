//! The endpoints of vaults that are opened when a request names them, and closed again when others need their place.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_store::{Role, Store};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use super::endpoint::{Endpoint, handle_authorized};
use super::gate::Gate;
use super::metrics::Metrics;
pub use super::rights::VaultState;
use super::rights::{Access, NO_VAULT};
use crate::login::Login;
use crate::server_end::end_within;
use crate::{END_LIMIT, Server, Toolset};

/// Opens vaults by their names for a server. Its calls may block.
pub trait VaultSource: Send + Sync {
    /// Opens a vault. Returns `None` if there is none of this name.
    ///
    /// # Errors
    /// An error that says why the vault cannot be opened now.
    fn open(&self, name: &str) -> Result<Option<Store>>;

    /// Returns the role that a person has in a vault under any of these names, and the state of the vault. Returns
    /// `None` if there is no such vault, or the person has no role in it. Without login it is never asked for.
    ///
    /// # Errors
    /// An error that says why it cannot be read now.
    fn role(&self, name: &str, who: &[String]) -> Result<Option<(Role, VaultState)>>;

    /// Returns the state of a vault; `None` if there is none.
    ///
    /// # Errors
    /// An error that says why it cannot be read now.
    fn state(&self, name: &str) -> Result<Option<VaultState>>;

    /// Returns whether vaults were renamed or deleted since this was last asked.
    fn take_news(&self) -> bool;

    /// Takes back a vault that is not served any more. Calls of it may still be running.
    fn close(&self, name: &str);

    /// Checks whether vaults can be opened.
    ///
    /// # Errors
    /// An error that says why not.
    fn check(&self) -> Result<()>;

    /// Returns whether vaults are known to be out of reach, which was logged when it began.
    fn is_away(&self) -> bool;

    /// The vaults that are opened before the server is ready.
    fn warm(&self) -> &[String];

    /// The largest number of vaults that are open at a time. More are open only while more are in use.
    fn most_open(&self) -> usize;

    /// Counts the open vaults whose settings cannot be read, so that earlier ones are used.
    fn with_earlier_settings(&self) -> usize;

    /// Returns lines for `/metrics`.
    fn metrics(&self) -> String;
}

impl Server {
    /// Waits for all running calls, so that no write ends half-done, and ends all sessions. The store can still be used: a vault that
    /// is asked for while it is being closed goes on with it.
    pub(crate) fn end_calls(&self) {
        drop(self.shared.running_calls.write().unwrap_or_else(PoisonError::into_inner));
        self.shared.store.changes().end_all_sessions();
    }
}

/// A vault that is served.
struct OpenVault {
    endpoint: Endpoint,
    server: Server,
    /// Tells subscribers of changes by other processes.
    watcher: JoinHandle<()>,
}

impl Drop for OpenVault {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// The place of a vault, from the first request that names it on.
#[derive(Default)]
struct Slot {
    vault: OnceCell<OpenVault>,
    /// The requests that are being answered.
    running: AtomicUsize,
    last_use: Mutex<Option<Instant>>,
}

impl Slot {
    fn last_use(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a request of a vault until it is dropped, so that the vault is not closed meanwhile.
struct Lease(Arc<Slot>);

impl Lease {
    fn new(slot: Arc<Slot>) -> Self {
        slot.running.fetch_add(1, Ordering::Relaxed);
        *slot.last_use() = Some(Instant::now());
        Self(slot)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.0.last_use() = Some(Instant::now());
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The vaults of a server by their names.
#[derive(Clone)]
pub(super) struct NamedVaults {
    source: Arc<dyn VaultSource>,
    sets: Arc<[Toolset]>,
    pub(super) gate: Gate,
    /// Who may use which vault; `None` where nobody logs in.
    access: Option<Access>,
    slots: Arc<Mutex<HashMap<String, Arc<Slot>>>>,
    is_warm: Arc<AtomicBool>,
    /// The vaults that could not be opened when that was last tried.
    failing: Arc<Mutex<BTreeSet<String>>>,
    pub(super) metrics: Arc<Metrics>,
}

impl NamedVaults {
    pub(super) fn new(
        source: Arc<dyn VaultSource>,
        sets: &[Toolset],
        gate: Gate,
        login: Option<Arc<Login>>,
    ) -> Self {
        let asked = Arc::clone(&source);
        let role = Arc::new(move |name: &str, who: &[String]| asked.role(name, who));
        let away = Arc::clone(&source);
        let is_away = Arc::new(move || away.is_away());
        let metrics = Arc::<Metrics>::default();
        let counted = Arc::clone(&metrics);
        let access = login.map(|login| Access { login, role, is_away, metrics: counted });
        Self {
            source,
            sets: sets.into(),
            gate,
            access,
            slots: Arc::default(),
            is_warm: Arc::default(),
            failing: Arc::default(),
            metrics,
        }
    }

    /// Returns the routes: the endpoint of each vault, and what an operator watches.
    pub(super) fn router(self) -> Router {
        let mut router = Router::new()
            .route("/v/{name}/mcp", any(handle_named))
            .route("/ready", get(ready))
            .route("/metrics", get(metrics));
        if self.access.is_some() {
            router = router.route("/.well-known/oauth-protected-resource/v/{name}/mcp", get(metadata));
        }
        router.with_state(self)
    }

    /// Answers a request for a vault: refuses it, or has it handled. Where people log in, the handler finds the `Member` in
    /// the extensions of the request.
    pub(super) async fn answer<F: Future<Output = Response>>(
        &self,
        name: &str,
        request: Request,
        handle: impl FnOnce(Request) -> F,
    ) -> Response {
        let Some(access) = &self.access else {
            let checked = |request: Request| async {
                match self.state(name).await {
                    Ok(Some(VaultState::Present)) => handle(request).await,
                    Ok(Some(state)) => self.not_here(name, &state, request.uri()),
                    Ok(None) => {
                        self.retire(name);
                        no_vault()
                    }
                    Err(error) => {
                        // A vault that is open is served for a while.
                        tracing::debug!("it is not known whether the vault {name} has this name: {error}");
                        handle(request).await
                    }
                }
            };
            return self.gate.answer(request, checked).await;
        };
        let admitted = |mut request: Request| async {
            let (identity, member, state) = match access.admit(name, request.headers()).await {
                Ok(admitted) => admitted,
                Err(refusal) => return refusal,
            };
            if state != VaultState::Present {
                return self.not_here(name, &state, request.uri());
            }
            let method = request.method().clone();
            request.extensions_mut().insert(member);
            access.limit_stream(name, identity, &method, handle(request).await)
        };
        self.gate.answer_without_token(request, admitted).await
    }

    /// Asks for the state of a vault; `None` if there is none.
    async fn state(&self, name: &str) -> Result<Option<VaultState>> {
        let (source, name) = (Arc::clone(&self.source), name.to_owned());
        let asked = tokio::task::spawn_blocking(move || source.state(&name)).await;
        asked.map_err(|error| Error::internal("the look at a vault ended").with_source(error))?
    }

    /// Returns the answer for a vault that has another name now or was deleted, and closes it here.
    fn not_here(&self, name: &str, state: &VaultState, uri: &Uri) -> Response {
        self.retire(name);
        let VaultState::Renamed(new) = state else {
            let text = format!(
                "the vault {name} was deleted; the operator of the service can bring it back for a while\n"
            );
            return (StatusCode::GONE, text).into_response();
        };
        // What follows the name in the address, such as `mcp` or `blob/HASH`.
        let rest = uri.path().splitn(4, '/').nth(3).unwrap_or_default();
        let up = "../".repeat(rest.matches('/').count() + 1);
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let place = format!("{up}{new}/{rest}{query}");
        let text = format!("the vault {name} is called {new} now\n");
        (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, place)], text).into_response()
    }

    /// Closes the vaults that have another name now or were deleted, if there is news of such.
    async fn retire_changed(&self) {
        if !self.source.take_news() {
            return;
        }
        let names: Vec<String> = self.slots().keys().cloned().collect();
        for name in names {
            match self.state(&name).await {
                Ok(Some(VaultState::Present)) => {}
                Ok(_) => self.retire(&name),
                // The next request of the vault finds it out.
                Err(error) => tracing::debug!("it is not known whether the vault {name} is there: {error}"),
            }
        }
    }

    /// Closes a vault, even if it is in use.
    fn retire(&self, name: &str) {
        let retired = self.slots().remove_entry(name);
        if let Some((name, slot)) = retired {
            self.close(name, slot);
        }
    }

    /// Opens the vaults that must be open before the server is ready. A vault that cannot be opened is logged, and
    /// opened by the first request of it.
    pub(super) async fn warm_up(self) {
        for mut name in self.source.warm().to_vec() {
            if let Ok(Some(VaultState::Renamed(new))) = self.state(&name).await {
                tracing::warn!("the vault {name}, which is opened at the start, is called {new} now");
                name = new;
            }
            match self.lease(&name).await {
                Ok(Some(_)) => {}
                Ok(None) => tracing::warn!("the vault {name}, which is opened at the start, does not exist"),
                Err(error) => self.log_failure(&format!("the vault {name} cannot be opened yet: {error}")),
            }
        }
        self.is_warm.store(true, Ordering::Relaxed);
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failing(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the vaults that are open, and those that could not be opened when that was last tried.
    fn counts(&self) -> (usize, usize) {
        let open = self.slots().values().filter(|slot| slot.vault.initialized()).count();
        (open, self.failing().len())
    }

    /// Answers a request of one vault, which is open until then: has it handled, or says why the vault is not there.
    pub(super) async fn with_server<F: Future<Output = Response>>(
        &self,
        name: &str,
        handle: impl FnOnce(Server) -> F,
    ) -> Response {
        match self.lease(name).await {
            Ok(Some(lease)) => match lease.0.vault.get() {
                Some(vault) => handle(vault.server.clone()).await,
                None => no_vault(),
            },
            Ok(None) => no_vault(),
            Err(error) => self.cannot_open(name, &error),
        }
    }

    /// Logs that something failed, unless that follows from an outage, which was logged when it began.
    fn log_failure(&self, text: &str) {
        if self.source.is_away() { tracing::debug!("{text}") } else { tracing::warn!("{text}") }
    }

    /// Returns the answer for a vault that cannot be opened now.
    fn cannot_open(&self, name: &str, error: &Error) -> Response {
        self.log_failure(&format!("the vault {name} cannot be opened: {error}"));
        // The reason may name files of this server.
        let text = match self.source.is_away() {
            true => format!("the vault cannot be opened now: {}\n", error.message()),
            false => "the vault cannot be opened now; the log of the server says why\n".to_owned(),
        };
        (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], text).into_response()
    }

    /// Opens a vault, unless it is open. Requests of one vault wait for each other, and for no other vault.
    async fn lease(&self, name: &str) -> Result<Option<Lease>> {
        let lease = Lease::new(Arc::clone(self.slots().entry(name.to_owned()).or_default()));
        let open = || async {
            let started = Instant::now();
            let (source, owned) = (Arc::clone(&self.source), name.to_owned());
            let opened = tokio::task::spawn_blocking(move || source.open(&owned)).await;
            let opened =
                opened.map_err(|error| Error::internal("opening a vault ended").with_source(error))?;
            let Some(store) = opened? else { return Err(Error::not_found(NO_VAULT)) };
            let server = Server::new(store, None, &self.sets)?;
            server.tell_changes();
            let watcher = tokio::spawn(server.clone().watch_other_writers());
            let endpoint = Endpoint::of_team(&server, self.gate.clone());
            self.metrics.count_opened(started.elapsed());
            Ok(OpenVault { endpoint, server, watcher })
        };
        match lease.0.vault.get_or_try_init(open).await {
            Ok(_) => {
                self.failing().remove(name);
                self.close_idle();
                self.retire_changed().await;
                Ok(Some(lease))
            }
            Err(error) => {
                drop(lease);
                // A name that is tried takes no memory.
                self.slots()
                    .retain(|_, slot| slot.vault.initialized() || slot.running.load(Ordering::Relaxed) > 0);
                if error.kind() == ErrorKind::NotFound {
                    self.failing().remove(name);
                    return Ok(None);
                }
                // An outage is not a fault of the vault, and ends by itself.
                if !self.source.is_away() {
                    self.failing().insert(name.to_owned());
                }
                Err(error)
            }
        }
    }

    /// Closes the vaults that were not used for the longest time, where too many are open. Closing may wait for a client that
    /// does not read, so it runs in a task of its own.
    fn close_idle(&self) {
        while let Some((name, slot)) = self.take_idle() {
            self.metrics.count_closed();
            self.close(name, slot);
        }
    }

    /// Closes a vault that is not in the list any more.
    fn close(&self, name: String, slot: Arc<Slot>) {
        let source = Arc::clone(&self.source);
        tokio::spawn(async move {
            let Some(vault) = slot.vault.get() else { return };
            vault.endpoint.close_sessions().await;
            let server = vault.server.clone();
            let ended = tokio::task::spawn_blocking(move || {
                server.end_calls();
                drop(server);
                drop(slot);
                source.close(&name);
            });
            if let Err(error) = ended.await {
                tracing::warn!("a vault was not closed in order: {error}");
            }
        });
    }

    fn take_idle(&self) -> Option<(String, Arc<Slot>)> {
        let mut slots = self.slots();
        let open = slots.values().filter(|slot| slot.vault.initialized()).count();
        if open <= self.source.most_open().max(1) {
            return None;
        }
        let idle = slots
            .iter()
            .filter(|(_, slot)| slot.vault.initialized() && slot.running.load(Ordering::Relaxed) == 0);
        let (name, _) = idle.min_by_key(|(_, slot)| *slot.last_use())?;
        let name = name.clone();
        slots.remove_entry(&name)
    }

    /// Ends the sessions of all vaults, and waits for their running calls.
    pub(super) fn end(&self) {
        let slots = self.slots();
        let open = slots.values().filter_map(|slot| slot.vault.get().map(|vault| vault.server.clone()));
        let open: Vec<Server> = open.collect();
        drop(slots);
        end_within(open.into_iter().map(|server| (server, None)), END_LIMIT);
    }
}

fn no_vault() -> Response {
    (StatusCode::NOT_FOUND, NO_VAULT).into_response()
}

async fn handle_named(
    State(vaults): State<NamedVaults>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let started = Instant::now();
    let answered = vaults.answer(&name, request, |mut request| async {
        request.extensions_mut().insert(Arc::clone(&vaults.metrics));
        match vaults.lease(&name).await {
            Ok(Some(lease)) => match lease.0.vault.get() {
                Some(vault) => handle_authorized(&vault.endpoint, request).await,
                None => no_vault(),
            },
            Ok(None) => no_vault(),
            Err(error) => vaults.cannot_open(&name, &error),
        }
    });
    let response = answered.await;
    vaults.metrics.count_request(response.status(), started.elapsed());
    response
}

impl NamedVaults {
    /// Tries to open a vault again where none is open, because nobody asks for one at a server that is not ready.
    async fn try_failing(&self) {
        let names: Vec<String> = match self.counts() {
            (0, failing) if failing > 0 => self.failing().iter().cloned().collect(),
            _ => return,
        };
        for name in names {
            match self.lease(&name).await {
                Ok(_) => return,
                Err(error) => tracing::debug!("the vault {name} cannot be opened: {error}"),
            }
        }
    }

    /// Answers that the server is ready, and says what is wrong without naming a vault, because this request needs no
    /// token. The server is not ready if no vault could be opened.
    fn how_ready(&self) -> Response {
        let (open, failing) = self.counts();
        let earlier = self.source.with_earlier_settings();
        let mut text = String::new();
        for (count, what) in [
            (failing, "cannot be opened"),
            (earlier, "have settings that cannot be read, and are served with earlier ones"),
        ] {
            if count > 0 {
                text += &format!("vaults that {what}: {count}; the log of the server says why\n");
            }
        }
        if failing > 0 && open == 0 {
            return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
        }
        format!("ready\n{text}").into_response()
    }
}

/// Answers with the metadata of the endpoint of a vault, for which no token is needed.
async fn metadata(State(vaults): State<NamedVaults>, Path(name): Path<String>, request: Request) -> Response {
    let document = |_| async {
        match &vaults.access {
            Some(access) => access.metadata(&name),
            None => StatusCode::NOT_FOUND.into_response(),
        }
    };
    vaults.gate.answer_without_token(request, document).await
}

/// Answers whether the server can serve: the warm vaults are open, others can be opened, and there are keys by which access
/// tokens are checked.
async fn ready(State(vaults): State<NamedVaults>, request: Request) -> Response {
    /// The time that the check may take.
    const WAIT_LIMIT: Duration = Duration::from_secs(5);
    if let Some(refusal) = vaults.gate.refuse_by_host_or_origin(request.uri(), request.headers()).await {
        return refusal;
    }
    let not_ready = |text: &'static str| (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    if !vaults.is_warm.load(Ordering::Relaxed) {
        return not_ready("vaults are being opened\n");
    }
    if let Some(access) = &vaults.access
        && let Some(issuer) = access.login.issuer_without_keys().await
    {
        let text = format!("the keys of {issuer} cannot be read; the log of the server says why\n");
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    }
    let source = Arc::clone(&vaults.source);
    let checked = tokio::task::spawn_blocking(move || source.check());
    let why = match tokio::time::timeout(WAIT_LIMIT, checked).await {
        Ok(Ok(Ok(()))) => {
            vaults.try_failing().await;
            vaults.retire_changed().await;
            return vaults.how_ready();
        }
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the check takes more than 5 s".to_owned(),
    };
    // Whoever asks needs no token, and the reason may name the database.
    vaults.log_failure(&format!("the server is not ready: {why}"));
    not_ready("vaults cannot be opened now; the log of the server says why\n")
}

async fn metrics(State(vaults): State<NamedVaults>, request: Request) -> Response {
    let gate = vaults.gate.clone();
    gate.answer(request, |_| async {
        let (open, failing) = vaults.counts();
        let text = vaults.metrics.text(open, failing) + &vaults.source.metrics();
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
    })
    .await
}
