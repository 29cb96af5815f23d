//! Cross-origin resource sharing (CORS): the headers for pages of other origins that the user's settings allow. Pages of
//! this machine are answered without them.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};

use crate::error::{Error, Result};

/// Request headers of the protocol, besides those whose names begin with `mcp-`.
const HEADERS: [&str; 4] = ["accept", "authorization", "content-type", "last-event-id"];
/// A browser asks whether a page of this machine or network may be reached from the internet.
const REQUEST_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Origins of web pages that may read the answers.
#[derive(Debug, Clone, Default)]
pub(super) struct Cors {
    allowed: Vec<String>,
}

impl Cors {
    /// Allows these origins, as [`origin`] gives them.
    pub(super) fn new(allowed: Vec<String>) -> Self {
        Self { allowed }
    }

    /// Gives the origin of a request, where its pages may read the answer.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let given = headers.get(ORIGIN)?;
        let asked = origin(given.to_str().ok()?).ok()?;
        self.allowed.contains(&asked).then(|| given.clone())
    }
}

/// Reads the origin of web pages: scheme, host and port, and no more.
///
/// # Errors
/// `Invalid` for any other text.
pub(super) fn origin(text: &str) -> Result<String> {
    let wrong = || {
        Error::invalid(format!("{text:?} is no origin of web pages"))
            .with_hint("write it as browsers do: https://notes.example:8443")
    };
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else { return Err(wrong()) };
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong());
    }
    let (scheme, host) = (scheme.to_lowercase(), host.to_lowercase());
    Ok(match (uri.port_u16(), scheme.as_str()) {
        (Some(port), _) => format!("{scheme}://{host}:{port}"),
        // Without a port an origin would stand for every port of that host.
        (None, "https") => format!("{scheme}://{host}:443"),
        (None, "http") => format!("{scheme}://{host}:80"),
        (None, _) => format!("{scheme}://{host}"),
    })
}

/// Says whether a browser asks before it calls.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Answers a browser that asks before it calls.
pub(super) fn preflight(headers: &HeaderMap) -> Response {
    let wanted = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|value| value.to_str().ok());
    let wanted = wanted.unwrap_or_default().split(',').map(|name| name.trim().to_lowercase());
    let known = |name: &String| HEADERS.contains(&name.as_str()) || name.starts_with("mcp-");
    let granted: Vec<String> = wanted.filter(known).collect();
    let mut response = StatusCode::NO_CONTENT.into_response();
    let answer = response.headers_mut();
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    // Names of headers that came as one are one.
    if let Ok(granted) = HeaderValue::from_str(&granted.join(", ")) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, granted);
    }
    if headers.contains_key(REQUEST_PRIVATE) {
        answer.insert(ALLOW_PRIVATE, HeaderValue::from_static("true"));
    }
    response
}

/// Lets pages of an origin read a response.
pub(super) fn share(mut response: Response, origin: HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("Origin"));
    let exposed = HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate");
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    response
}
