//! The built files of the page, which are in the program.

use std::io::Read as _;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use flate2::read::GzDecoder;
use sidenote_markdown::media_type::media_type;

use crate::reply::accepts_gzip;

/// The header that says which sites may load an answer.
pub(crate) const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// A built file: its address below the root, `gzip` if it is compressed, and its bytes.
pub type Asset = (&'static str, &'static str, &'static [u8]);

/// What the page may do and load. It sets styles by its scripts alone.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
media-src 'self'; frame-src 'self'; worker-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
form-action 'none'; frame-ancestors 'none'";

/// What the frame of diagrams may do. Mermaid draws with styles of its own, so it runs in a frame that has no origin
/// and loads only its script.
const FRAME_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; sandbox allow-scripts; \
frame-ancestors 'self'";

/// The beginning of the names of the files in the frame of diagrams.
const FRAME: &str = "assets/mermaid-";

/// Returns whether a built file is one of the frame of diagrams. Requests of the frame have the origin `null`.
pub(crate) fn is_of_frame(name: &str) -> bool {
    name.starts_with(FRAME)
}

/// The page that is shown before the browser is signed in.
const SIGN_IN: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>sidenote</title>\
<h1>Not signed in</h1><p>Open the address that <code>sidenote web</code> printed when it started. It has a token, \
which this browser keeps as a cookie.</p></html>\n";

/// Finds a built file.
pub(crate) fn find(assets: &'static [Asset], name: &str) -> Option<&'static Asset> {
    assets.iter().find(|(own, ..)| *own == name)
}

/// Answers with a built file.
pub(crate) fn response(asset: &'static Asset, headers: &HeaderMap) -> Response {
    let (name, encoding, bytes) = *asset;
    let is_packed = encoding == "gzip";
    let mut response = if is_packed && !accepts_gzip(headers) {
        let mut plain = Vec::new();
        match GzDecoder::new(bytes).read_to_end(&mut plain) {
            Ok(_) => Response::new(Body::from(plain)),
            Err(error) => {
                tracing::error!("the built file {name} is damaged: {error}");
                let mut failed = Response::new(Body::empty());
                *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                failed
            }
        }
    } else {
        let mut packed = Response::new(Body::from(Bytes::from_static(bytes)));
        if is_packed {
            packed.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        packed
    };
    let answer = response.headers_mut();
    answer.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
    answer.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    // The name of each file but the first has a hash of its content.
    let caching =
        if name.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    let is_frame = is_of_frame(name);
    let policy = if is_frame { FRAME_POLICY } else { POLICY };
    answer.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    if is_frame {
        // A frame without an origin counts as another site.
        answer.insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    }
    response
}

/// Answers to a browser that is not signed in.
pub(crate) fn sign_in_page() -> Response {
    let mut response = Response::new(Body::from(SIGN_IN));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let answer = response.headers_mut();
    answer.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    answer.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns the media type of a built file.
fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or("") {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "ttf" => "font/ttf",
        "svg" => "image/svg+xml",
        "wasm" => "application/wasm",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        _ => media_type(name),
    }
}
