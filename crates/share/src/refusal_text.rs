//! What a server says in the body of an answer that refuses a request, in a form that fits a message.

use sidenote_http_client::Reply;
use sidenote_language::graphemes::shortened;
use sidenote_markdown::control::plain;

/// The most characters that are shown.
const MAX_SHOWN: usize = 300;

/// Returns the first line of an answer, as the end of a clause such as `it answers 403: TEXT`. A page of HTML, which a proxy
/// sends, says nothing.
pub(crate) fn said(reply: &Reply) -> String {
    let text = String::from_utf8_lossy(&reply.body);
    let line = text.trim_start().lines().next().unwrap_or_default();
    if line.is_empty() || line.starts_with('<') {
        return String::new();
    }
    format!(": {}", plain(&shortened(line, MAX_SHOWN)))
}
