//! Cross-origin resource sharing (CORS): the headers for pages of other origins that the user's settings allow. Pages of
//! this machine are answered without them.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use sidenote_base::error::{Error, Result};

/// Request headers of the protocol, besides those whose names begin with `mcp-`.
const HEADERS: [&str; 4] = ["accept", "authorization", "content-type", "last-event-id"];
/// The header by which a browser asks whether a public web page may reach this machine or network.
const REQUEST_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// The origins of web pages that may read the answers.
#[derive(Debug, Clone, Default)]
pub(super) struct Cors {
    allowed: Vec<String>,
}

impl Cors {
    /// Allows the given origins, normalized by [`origin`].
    pub(super) fn new(allowed: Vec<String>) -> Self {
        Self { allowed }
    }

    /// Returns the `Origin` of a request if it is allowed.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let given = headers.get(ORIGIN)?;
        let normalized = origin(given.to_str().ok()?).ok()?;
        self.allowed.contains(&normalized).then(|| given.clone())
    }
}

/// Parses and normalizes the origin of web pages: scheme, host and port.
///
/// # Errors
/// `Invalid` if the text is not an origin.
pub(super) fn origin(text: &str) -> Result<String> {
    let invalid = || {
        Error::invalid(format!("{text:?} is not an origin of web pages"))
            .with_hint("write it as browsers do: https://notes.example:8443")
    };
    let uri: Uri = text.parse().map_err(|_| invalid())?;
    let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else { return Err(invalid()) };
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(invalid());
    }
    let (scheme, host) = (scheme.to_lowercase(), host.to_lowercase());
    Ok(match (uri.port_u16(), scheme.as_str()) {
        (Some(port), _) => format!("{scheme}://{host}:{port}"),
        // rmcp would allow every port of the host if the origin had none.
        (None, "https") => format!("{scheme}://{host}:443"),
        (None, "http") => format!("{scheme}://{host}:80"),
        (None, _) => format!("{scheme}://{host}"),
    })
}

/// Returns whether a request is a CORS preflight request.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Answers a preflight request.
pub(super) fn preflight(headers: &HeaderMap) -> Response {
    let requested = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|value| value.to_str().ok());
    let requested = requested.unwrap_or_default().split(',').map(|name| name.trim().to_lowercase());
    let is_known = |name: &String| HEADERS.contains(&name.as_str()) || name.starts_with("mcp-");
    let granted: Vec<String> = requested.filter(is_known).collect();
    let mut response = StatusCode::NO_CONTENT.into_response();
    let answer = response.headers_mut();
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    // Parts of a valid header value always form a valid one.
    if let Ok(granted) = HeaderValue::from_str(&granted.join(", ")) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, granted);
    }
    if headers.contains_key(REQUEST_PRIVATE) {
        answer.insert(ALLOW_PRIVATE, HeaderValue::from_static("true"));
    }
    response
}

/// Adds the headers that let pages of an origin read a response.
pub(super) fn allow_origin(mut response: Response, origin: HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("Origin"));
    let exposed = HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate");
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    response
}
