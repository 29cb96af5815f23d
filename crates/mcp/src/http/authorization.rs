//! The authorization server of one or a few people over HTTP: its addresses, and the tokens of requests to vaults. What is
//! decided is in the crate `authorization`; only its calls are made here, on threads for blocking work.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::uri::Uri;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use sidenote_authorization::{
    AUTHORIZATION_METADATA, AuthorizationServer, Holder, MAX_DOCUMENT, Options, RESOURCE_METADATA, Resource,
    Scopes,
};
use sidenote_base::clock::Clock;
use sidenote_base::error::{Error, Result};
use sidenote_base::platform::canonicalize;
use sidenote_http::PeerAddress;
use sidenote_http::limits::Admission;
use sidenote_http::reply_body::ending_body;
use sidenote_http_client::fetch_public_document;
use sidenote_store::{Caller, Role};

use super::rights::{Listening, Member, bearer_token};
use crate::Server;

/// The time that the document of a client may take.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which it is checked whether the grant of an open stream was revoked.
const RECHECK: Duration = Duration::from_secs(5);

/// The settings of the authorization server.
#[derive(Debug, Clone)]
pub struct AuthorizationOptions {
    /// The origin by which clients reach the server, such as `https://notes.example`. Default: the address it listens on.
    pub public_url: Option<String>,
    /// The folder with the grants.
    pub folder: PathBuf,
    /// The clock.
    pub clock: Clock,
}

/// The authorization server.
pub(super) struct Authorization(Arc<AuthorizationServer>);

impl Authorization {
    /// Creates the authorization server for these endpoints.
    ///
    /// # Errors
    /// `Invalid` if the public address is no origin with `https`, or is missing where other machines can reach the server.
    pub(super) fn new<'a>(
        options: &AuthorizationOptions,
        address: SocketAddr,
        endpoints: impl Iterator<Item = (&'a str, &'a Server)>,
    ) -> Result<Self> {
        let issuer = match &options.public_url {
            Some(url) => url.clone(),
            None if address.ip().is_loopback() => format!("http://{address}"),
            None => {
                return Err(Error::invalid(format!(
                    "other machines can reach {address}, and its public address is not known"
                ))
                .with_hints("give --public-url https://NAME, the address that clients use", ""));
            }
        };
        let issuer = sidenote_authorization::origin(&issuer)?;
        let mut most = Scopes::Read;
        let mut resources = Vec::new();
        let mut servers = HashMap::new();
        for (path, server) in endpoints {
            let store = &server.shared.store;
            if server.shared.changes_notes() {
                // A server offers the same tools for all its vaults.
                most = Scopes::Write;
            }
            let folder = store.root().file_name().map(|name| name.to_string_lossy().into_owned());
            let name = path.strip_prefix("/v/").and_then(|rest| rest.strip_suffix("/mcp")).map(str::to_owned);
            let all = server.vaults.are_several().then(|| server.vaults.names().join(", "));
            let vault = all.or(name).or(folder).unwrap_or_default();
            // The folders, so that tokens for one vault open no other that is served at the same address later.
            let mut identity = blake3::Hasher::new();
            let vaults = server.vaults.servers().chain((!server.vaults.are_several()).then_some(server));
            for root in vaults.map(|server| server.shared.store.root().to_owned()).collect::<BTreeSet<_>>() {
                let root = canonicalize(&root)
                    .map_err(|error| Error::io("find the folder of the vault", root, error))?;
                identity.update(root.as_os_str().as_encoded_bytes()).update(&[0]);
            }
            let identity = identity.finalize().to_hex().to_string();
            servers.insert(format!("{issuer}{path}"), server.clone());
            resources.push(Resource { address: format!("{issuer}{path}"), vault, identity });
        }
        let fetch = |url: &str| fetch_public_document(url, MAX_DOCUMENT as u64, DOCUMENT_TIMEOUT);
        let clock = options.clock;
        let server = AuthorizationServer::new(Options {
            issuer,
            resources,
            most,
            folder: options.folder.clone(),
            now: Box::new(move || clock.now()),
            fetch: Box::new(fetch),
            rule: Box::new(move |resource, client| servers.get(resource)?.rule_for(client)),
        })?;
        Ok(Self(Arc::new(server)))
    }

    /// Returns the origin by which clients reach the server.
    pub(super) fn issuer(&self) -> &str {
        self.0.issuer()
    }

    /// Returns the host by which clients reach the server.
    pub(super) fn host(&self) -> Option<String> {
        self.issuer().parse::<Uri>().ok()?.host().map(str::to_lowercase)
    }

    /// Answers a request to a vault if its token counts there.
    pub(super) async fn answer<F: Future<Output = Response>>(
        &self,
        mut request: Request,
        handle: impl FnOnce(Request) -> F,
    ) -> Response {
        let path = request.uri().path().to_owned();
        let Some(token) = bearer_token(request.headers()) else { return self.challenge(&path, "") };
        let (server, token, at) = (Arc::clone(&self.0), token.to_owned(), path.clone());
        let holder = match tokio::task::spawn_blocking(move || server.check(&token, &at)).await {
            Ok(Ok(Some(holder))) => holder,
            Ok(Ok(None)) => return self.challenge(&path, "error=\"invalid_token\", "),
            Ok(Err(error)) => return failed(&error),
            Err(error) => return failed(&Error::internal("the check of a token ended").with_source(error)),
        };
        let right = match holder.scopes {
            Scopes::Read => Role::Reader,
            // Whoever may write may do what the tools do: there are no other members.
            Scopes::Write => Role::Admin,
        };
        let caller = Caller {
            issuer: self.issuer().to_owned(),
            subject: holder.grant.clone(),
            name: Some(holder.client_name.clone()),
            client_id: Some(holder.client_id.clone()),
        };
        let member = Member::of_holder(caller, right, self.0.metadata_address(&path));
        let method = request.method().clone();
        request.extensions_mut().insert(member);
        self.limit_stream(holder, &method, handle(request).await)
    }

    /// Refuses a request that has no token that counts, and says where to get one.
    fn challenge(&self, path: &str, error: &str) -> Response {
        let (metadata, scope) = (self.0.metadata_address(path), self.0.most().text());
        let challenge = format!("Bearer {error}resource_metadata=\"{metadata}\", scope=\"{scope}\"");
        let text = "log in: a client does so by itself if it has the address of this endpoint\n";
        (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)], text).into_response()
    }

    /// Lets a stream of events end when the grant is revoked, or, unless it is the answer to one call, when the token expires.
    fn limit_stream(&self, holder: Holder, method: &Method, response: Response) -> Response {
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return response;
        }
        let expires = *method == Method::GET || response.extensions().get::<Listening>().is_some();
        let server = Arc::clone(&self.0);
        let ended = async move {
            loop {
                tokio::time::sleep(RECHECK).await;
                if expires && holder.expires <= server.now() {
                    return;
                }
                let (server, grant) = (Arc::clone(&server), holder.grant.clone());
                let checked = tokio::task::spawn_blocking(move || server.is_granted(&grant)).await;
                if matches!(checked, Ok(Ok(false))) {
                    return;
                }
            }
        };
        response.map(|body: Body| ending_body(body, ended))
    }
}

/// Answers that something failed on this side, which the log describes.
fn failed(error: &Error) -> Response {
    tracing::error!("the authorization server cannot answer: {error}");
    let text = "the server cannot answer now; its log says why\n";
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "5")], text).into_response()
}

/// Returns the paths of the authorization server.
pub(super) fn paths() -> [String; 7] {
    let resources = format!("{RESOURCE_METADATA}/{{*path}}");
    let fixed = ["/authorize", "/token", "/register", "/revoke", AUTHORIZATION_METADATA, RESOURCE_METADATA];
    let [a, b, c, d, e, f] = fixed.map(str::to_owned);
    [a, b, c, d, e, f, resources]
}

/// Has the authorization server answer a request.
pub(super) async fn answer(
    authorization: &Authorization,
    admission: &Admission,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = match admission.read_small(&parts.headers, body).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let peer = parts.extensions.get::<PeerAddress>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
    let address = client_address(peer, &parts.headers);
    let server = Arc::clone(&authorization.0);
    let answered = tokio::task::spawn_blocking(move || {
        let text = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
        server.handle(&sidenote_authorization::Request {
            method: parts.method.as_str(),
            path: parts.uri.path(),
            query: parts.uri.query().unwrap_or_default(),
            content_type: text(header::CONTENT_TYPE),
            body: &bytes,
            cookie: text(header::COOKIE),
            has_credentials: parts.headers.contains_key(header::AUTHORIZATION),
            fetch_site: text(HeaderName::from_static("sec-fetch-site")),
            address,
        })
    });
    let reply = match answered.await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => return failed(&error),
        Err(error) => return failed(&Error::internal("the answer ended").with_source(error)),
    };
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, reply.body).into_response();
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// Returns the address of the client: that of the connection, or what the proxy on this machine adds to the end of
/// `X-Forwarded-For`. What stands before it is the word of the client.
fn client_address(peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
    let forwarded = forwarded.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
    forwarded.filter(|_| peer.to_canonical().is_loopback()).unwrap_or(peer)
}
