//! The addresses of the server: who may ask, what answers, and the headers of all answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use sidenote_base::platform;
use sidenote_http::limits::Admission;
use sidenote_store::Store;
use tokio::sync::{Semaphore, oneshot};

use crate::access::Access;
use crate::assets::Asset;
use crate::events::Events;
use crate::params::Params;
use crate::reply::{ApiError, accepts_gzip, json_reply};
use crate::reply_cache::ReplyCache;
use crate::{actions, assets, files, read};

/// The beginning of the addresses of the API.
const API: &str = "/api/v1/";

/// Headers of every answer.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (assets::RESOURCE_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The state of the server.
pub(crate) struct Api {
    store: Store,
    access: Access,
    admission: Admission,
    events: Events,
    assets: &'static [Asset],
    cache: ReplyCache,
    /// Replies from the rows of all notes are made one after another: a view asks for several, whose memory would add up.
    whole_vault: Arc<Semaphore>,
}

/// Cancels a call when it is dropped, because the client is gone.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Api {
    pub(crate) fn new(store: Store, access: Access, events: Events, assets: &'static [Asset]) -> Self {
        Self {
            store,
            access,
            admission: Admission::default(),
            events,
            assets,
            cache: ReplyCache::default(),
            whole_vault: Arc::new(Semaphore::new(1)),
        }
    }

    /// Runs a call on a thread that may wait. A panic fails that call alone.
    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &Store) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let cancel = CancelOnDrop::default();
        let store = self.store.cancelled_by(Arc::clone(&cancel.0));
        let api = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&api, &store)).await;
        drop(cancel);
        done.unwrap_or_else(|_| {
            let text = "the call failed; the server's log says why";
            Err(sidenote_base::error::Error::internal(text).into())
        })
    }

    /// Runs a call that frees much memory, such as the rows of all notes. Its thread gives the memory back when the reply is on
    /// its way, since no other thread can.
    async fn run_and_release<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &Store) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (send, mut reply) = oneshot::channel();
        let running = self.run(move |api, store| {
            // The client may be gone.
            drop(send.send(work(api, store)));
            platform::release_free_memory();
            Ok(())
        });
        tokio::pin!(running);
        let no_reply = || sidenote_base::error::Error::internal("the call ended without a reply").into();
        tokio::select! {
            replied = &mut reply => match replied {
                Ok(replied) => replied,
                // It panicked.
                Err(_) => running.await.and_then(|()| Err(no_reply())),
            },
            ended = &mut running => {
                ended?;
                reply.await.unwrap_or_else(|_| Err(no_reply()))
            }
        }
    }

    async fn api(self: &Arc<Self>, name: &str, parts: &Parts, body: Body) -> Result<Response, ApiError> {
        let params = Params::of(&parts.uri);
        if parts.method == Method::GET || parts.method == Method::HEAD {
            if name == "events" {
                return Ok(self.events.response(&self.store).await);
            }
            if let Some(address) = name.strip_prefix("raw/") {
                let (address, headers) = (address.to_owned(), parts.headers.clone());
                return self.run(move |_, store| files::response(store, &address, &headers)).await;
            }
            let frees_much = read::frees_much(name);
            let turn = match read::is_of_whole_vault(name) {
                // The semaphore is never closed.
                true => Arc::clone(&self.whole_vault).acquire_owned().await.ok(),
                false => None,
            };
            let name = name.to_owned();
            let work = move |api: &Self, store: &Store| {
                let reply = read::reply(&api.cache, store, &name, &params);
                // The next one begins when this one has ended, also if the client is gone.
                drop(turn);
                reply
            };
            let bytes = match frees_much {
                true => self.run_and_release(work).await?,
                false => self.run(work).await?,
            };
            return Ok(json_reply(bytes, accepts_gzip(&parts.headers)));
        }
        if !actions::is_action(name, &parts.method) {
            return Err(ApiError::method_not_allowed());
        }
        if !is_json(&parts.headers) {
            return Err(ApiError::unsupported());
        }
        let read = self.admission.read(&parts.headers, body).await;
        let (bytes, reserved) = read.map_err(|refusal| ApiError::of_limits(refusal.status()))?;
        let name = name.to_owned();
        let bytes = self
            .run(move |_, store| {
                let reply = actions::reply(store, &name, &bytes);
                drop(reserved);
                reply
            })
            .await?;
        Ok(json_reply(bytes.into(), accepts_gzip(&parts.headers)))
    }

    async fn answer(self: &Arc<Self>, parts: &Parts, body: Body) -> Response {
        let path = parts.uri.path();
        let api = path.strip_prefix(API);
        let is_api = path.starts_with("/api/");
        let is_of_frame = assets::is_of_frame(path.trim_start_matches('/'));
        let checked = match is_of_frame {
            true => self.access.check_host(&parts.headers).map(drop),
            false => self.access.check_origin(&parts.headers, is_api),
        };
        if let Err(refusal) = checked {
            return refusal.into_response();
        }
        if is_api {
            if !self.access.is_signed_in(&parts.headers) {
                return ApiError::unauthorized().into_response();
            }
            let Some(name) = api else {
                return ApiError::not_found("there is no such address").into_response();
            };
            return self.api(name, parts, body).await.unwrap_or_else(ApiError::into_response);
        }
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return ApiError::method_not_allowed().into_response();
        }
        let name = path.trim_start_matches('/');
        if name.starts_with("assets/") {
            return match assets::find(self.assets, name) {
                Some(asset) => assets::response(asset, &parts.headers),
                None => ApiError::not_found("there is no such file").into_response(),
            };
        }
        match self.access.sign_in(&parts.uri) {
            Ok(Some((to, cookie))) => return redirect(&to, &cookie),
            Ok(None) if self.access.is_signed_in(&parts.headers) => {}
            Ok(None) | Err(_) => return assets::sign_in_page(),
        }
        let known = assets::find(self.assets, name).filter(|(name, ..)| *name != "index.html");
        match known.or_else(|| assets::find(self.assets, "index.html")) {
            Some(asset) => assets::response(asset, &parts.headers),
            None => ApiError::not_found("the page is not built").into_response(),
        }
    }
}

/// Answers a request.
pub(crate) async fn handle(State(api): State<Arc<Api>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = api.answer(&parts, body).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

fn redirect(to: &str, cookie: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    for (name, value) in [(header::LOCATION, to), (header::SET_COOKIE, cookie)] {
        // An address that came in a request has only characters that a header can have.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}
