//! The bytes of files of the vault. They are sent in parts, with their media type or as a download, and can run nothing.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sidenote_base::error::ErrorKind;
use sidenote_http::reply_body::channel_body;
use sidenote_markdown::media_type::media_type;
use sidenote_markdown::path::NotePath;
use sidenote_store::Store;

use crate::reply::ApiError;

/// The bytes that are read at a time.
const PART: usize = 64 << 10;
/// What a file may do that a browser shows by itself: nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src 'self'; sandbox; frame-ancestors 'self'";
/// The same for PDF, which browsers do not show in a sandbox.
const PDF_POLICY: &str =
    "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'";

/// The part of a file that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    start: u64,
    /// The offset behind the last byte.
    end: u64,
}

/// Answers with a file, or a part of it.
///
/// # Errors
/// `not-found` if the vault has no such file; `invalid` if the address is no path.
pub(crate) fn response(store: &Store, address: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let decoded =
        percent_decode_str(address).decode_utf8().map_err(|_| ApiError::invalid("the path is not UTF-8"))?;
    let path = NotePath::parse(&decoded)?;
    let (file, length) = match store.reads().open(&path) {
        // It may have been added a moment ago.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            store.index().refresh()?;
            store.reads().open(&path)?
        }
        opened => opened?,
    };
    let kind = media_type(path.as_str());
    let range = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let Some(part) = range.map_or(Some(Part { start: 0, end: length }), |range| part_of(range, length))
    else {
        let mut response = Response::new(axum::body::Body::empty());
        *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
        insert(&mut response, header::CONTENT_RANGE, &format!("bytes */{length}"));
        return Ok(response);
    };
    let mut response = Response::new(stream(file, part, path.as_str())?);
    if range.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let last = part.end.saturating_sub(1);
        insert(&mut response, header::CONTENT_RANGE, &format!("bytes {}-{last}/{length}", part.start));
    }
    insert(&mut response, header::CONTENT_LENGTH, &(part.end - part.start).to_string());
    let is_shown = kind.starts_with("image/") || kind.starts_with("audio/") || kind.starts_with("video/");
    let is_pdf = kind == "application/pdf";
    // Text is sent as text: a page of somebody else's would run as one of ours.
    let sent = if is_shown || is_pdf { kind } else { "application/octet-stream" };
    insert(&mut response, header::CONTENT_TYPE, sent);
    if !(is_shown || is_pdf) {
        let name = utf8_percent_encode(path.name(), NON_ALPHANUMERIC);
        insert(&mut response, header::CONTENT_DISPOSITION, &format!("attachment; filename*=UTF-8''{name}"));
    }
    insert(&mut response, header::CONTENT_SECURITY_POLICY, if is_pdf { PDF_POLICY } else { POLICY });
    insert(&mut response, header::ACCEPT_RANGES, "bytes");
    insert(&mut response, header::CACHE_CONTROL, "no-cache");
    Ok(response)
}

/// Sets a header whose value is made of characters that headers can have.
fn insert(response: &mut Response, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Reads a range such as `bytes=0-99`, `bytes=100-` or `bytes=-50`. Of several, the first one counts. `None` if it lies
/// outside of the file.
fn part_of(range: &str, length: u64) -> Option<Part> {
    let spec = range.trim().strip_prefix("bytes=")?.split(',').next()?.trim();
    let (first, last) = spec.split_once('-')?;
    let part = match (first.trim(), last.trim()) {
        ("", last) => Part { start: length.saturating_sub(last.parse().ok()?), end: length },
        (first, "") => Part { start: first.parse().ok()?, end: length },
        (first, last) => {
            let end = last.parse::<u64>().ok()?.saturating_add(1).min(length);
            Part { start: first.parse().ok()?, end }
        }
    };
    (part.start < part.end).then_some(part)
}

/// Sends a part of a file as it is read.
fn stream(mut file: File, part: Part, name: &str) -> Result<axum::body::Body, ApiError> {
    file.seek(SeekFrom::Start(part.start))
        .map_err(|error| sidenote_base::error::Error::io("read", name, error))?;
    let (sender, body) = channel_body();
    let name = name.to_owned();
    tokio::task::spawn_blocking(move || {
        let mut left = part.end - part.start;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(PART).min(PART);
            let mut bytes = Vec::with_capacity(wanted);
            match (&mut file).take(wanted as u64).read_to_end(&mut bytes) {
                // The file became shorter, so the answer is incomplete, and the client notices that.
                Ok(0) => return,
                Ok(read) => left -= read as u64,
                Err(error) => return tracing::warn!("{name} cannot be read to its end: {error}"),
            }
            if sender.blocking_send(Bytes::from(bytes)).is_err() {
                return;
            }
        }
    });
    Ok(body)
}
