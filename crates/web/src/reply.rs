//! Answers of the API: JSON, compressed where it is long, and errors with their status.

use std::io::{Read as _, Write as _};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sidenote_base::error::{Error, ErrorKind};

/// Replies from this length on are compressed.
const LONG: usize = 128 << 10;

/// An error of the API.
#[derive(Debug)]
pub(crate) struct ApiError(Box<ErrorReply>);

/// What the answer to a failed request says.
#[derive(Debug)]
struct ErrorReply {
    status: StatusCode,
    kind: &'static str,
    message: String,
    hint: Option<String>,
    more: Map<String, Value>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: &str) -> Self {
        let message = message.to_owned();
        Self(Box::new(ErrorReply { status, kind, message, hint: None, more: Map::new() }))
    }

    /// Creates an error about a malformed request.
    pub(crate) fn invalid(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    /// Creates an error about an address that there is not.
    pub(crate) fn not_found(message: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", message)
    }

    /// Creates an error about a name or an origin that is not allowed.
    pub(crate) fn forbidden(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// Creates an error about a change where nothing may be changed.
    pub(crate) fn read_only() -> Self {
        Self::new(StatusCode::FORBIDDEN, "read-only", "this server was started so that it only reads")
            .with_hint("the person who started it can restart it so that it may write")
    }

    /// Creates an error about a missing or wrong token.
    pub(crate) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "this browser is not signed in, or the token is wrong",
        )
        .with_hint("open the address that `sidenote web` printed when it started")
    }

    /// Creates an error about a method that an address does not have.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "invalid", "this address has no such method")
    }

    /// Creates an error about a body that is not JSON.
    pub(crate) fn unsupported() -> Self {
        let message = "a change is sent as JSON, with Content-Type: application/json";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", message)
    }

    /// Creates an error of the limits of requests.
    pub(crate) fn of_limits(status: StatusCode) -> Self {
        let (kind, message) = match status {
            StatusCode::PAYLOAD_TOO_LARGE => ("too-large", "the request is too long"),
            StatusCode::REQUEST_TIMEOUT => ("timeout", "the request did not arrive in time"),
            StatusCode::SERVICE_UNAVAILABLE => {
                ("busy", "too many large requests are being processed; send it again")
            }
            _ => ("invalid", "the request is incomplete"),
        };
        Self::new(status, kind, message)
    }

    /// Adds what to do.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.0.hint = Some(hint.to_owned());
        self
    }

    /// Adds a field.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.0.more.insert(name.to_owned(), value);
        self
    }

    /// Adds the place of the mistake in a query, in bytes and in the units of JavaScript's strings.
    #[must_use]
    pub(crate) fn in_query(self, query: &str, place: Option<(usize, usize)>) -> Self {
        let Some((start, end)) = place else { return self };
        let units = |at: usize| query.get(..at).map(|before| before.encode_utf16().count());
        let Some((first, last)) = units(start).zip(units(end)) else { return self };
        self.with("span", json!({"start": start, "end": end}))
            .with("utf16", json!({"start": first, "end": last}))
    }

    /// Returns whether a file changed meanwhile.
    pub(crate) fn is_conflict(&self) -> bool {
        self.0.kind == ErrorKind::Conflict.name()
    }

    /// Returns whether a name is taken.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.kind == ErrorKind::Exists.name()
    }

    /// Converts the error to an answer in JSON.
    pub(crate) fn into_response(self) -> Response {
        let ErrorReply { status, kind, message, hint, more } = *self.0;
        let mut error = json!({"kind": kind, "message": message, "hint": hint});
        if let Some(fields) = error.as_object_mut() {
            fields.extend(more);
        }
        json_response(status, Body::from(format!("{}\n", json!({ "error": error }))))
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Exists | ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::Quota => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::Io | ErrorKind::Corrupt | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let hint = error.wording().map(|hint| hint.for_page().to_owned()).filter(|hint| !hint.is_empty());
        let (kind, message) = (error.kind().name(), error.to_string());
        Self(Box::new(ErrorReply { status, kind, message, hint, more: Map::new() }))
    }
}

/// Writes a reply as JSON.
///
/// # Errors
/// `internal` if it cannot be written.
pub(crate) fn to_json(reply: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(reply)
        .map_err(|error| Error::internal("a reply cannot be written as JSON").with_source(error).into())
}

/// Writes a reply as JSON with more fields.
///
/// # Errors
/// `internal` if it cannot be written.
pub(crate) fn to_json_with(reply: &impl Serialize, more: Value) -> Result<Vec<u8>, ApiError> {
    let value = serde_json::to_value(reply)
        .map_err(|error| Error::internal("a reply cannot be written as JSON").with_source(error))?;
    match (value, more) {
        (Value::Object(mut fields), Value::Object(more)) => {
            fields.extend(more);
            to_json(&fields)
        }
        (value, _) => to_json(&value),
    }
}

/// Returns whether a client accepts compressed answers.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let given = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|part| part.replace(' ', "").starts_with("q=0") && !part.contains("0."))
    })
}

/// Compresses bytes.
pub(crate) fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// The beginning of a gzip stream, which no JSON has.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Compresses a reply that is kept.
///
/// # Errors
/// `internal` if it cannot be compressed.
pub(crate) fn packed(bytes: &[u8]) -> Result<Vec<u8>, ApiError> {
    gzip(bytes).map_err(|error| Error::internal("a reply cannot be compressed").with_source(error).into())
}

/// Answers with a reply that is compressed already.
fn packed_reply(bytes: Bytes, is_gzip_accepted: bool) -> Response {
    if is_gzip_accepted {
        let mut response = json_response(StatusCode::OK, Body::from(bytes));
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        return response;
    }
    let mut plain = Vec::new();
    match GzDecoder::new(bytes.as_ref()).read_to_end(&mut plain) {
        Ok(_) => json_response(StatusCode::OK, Body::from(plain)),
        Err(error) => {
            ApiError::from(Error::internal("a reply is damaged").with_source(error)).into_response()
        }
    }
}

/// Answers with JSON. A long reply is compressed for a client that accepts that.
pub(crate) fn json_reply(bytes: Bytes, is_gzip_accepted: bool) -> Response {
    if bytes.starts_with(&GZIP_MAGIC) {
        return packed_reply(bytes, is_gzip_accepted);
    }
    if bytes.len() >= LONG && is_gzip_accepted {
        match gzip(&bytes) {
            Ok(packed) => {
                let mut response = json_response(StatusCode::OK, Body::from(packed));
                response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                return response;
            }
            Err(error) => tracing::debug!("a reply is not compressed: {error}"),
        }
    }
    json_response(StatusCode::OK, Body::from(bytes))
}

fn json_response(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}
