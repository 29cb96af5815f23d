//! The errors of the protocol: requests that are no messages, or whose params or methods are none.

use rmcp::ErrorData;
use rmcp::model::{ErrorCode, RequestId};

/// The methods that need params, each with an example of valid ones.
const VALID_PARAMS: [(&str, &str); 8] = [
    ("tools/call", r#"{"name": "a name that tools/list gives", "arguments": {}}"#),
    ("resources/read", r#"{"uri": "sidenote:///Plan.md"}"#),
    ("resources/subscribe", r#"{"uri": "sidenote:///Plan.md"}"#),
    ("resources/unsubscribe", r#"{"uri": "sidenote:///Plan.md"}"#),
    ("subscriptions/listen", r#"{"notifications": {"resourceSubscriptions": ["sidenote:///Plan.md"]}}"#),
    ("prompts/get", r#"{"name": "recall", "arguments": {"topic": "boats"}}"#),
    (
        "completion/complete",
        r#"{"ref": {"type": "ref/prompt", "name": "recall"}, "argument": {"name": "topic", "value": "bo"}}"#,
    ),
    (
        "initialize",
        r#"{"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}"#,
    ),
];

/// Returns the error for invalid params of a method, with an example of valid ones. Returns `None` for an unknown method.
pub(crate) fn invalid_params_error(method: &str) -> Option<ErrorData> {
    let (method, example) = VALID_PARAMS.iter().find(|(known, _)| *known == method)?;
    let text = format!("the params of {method} are invalid. Valid params: {example}");
    Some(ErrorData::invalid_params(text, None))
}

/// The revision of the protocol that has no handshake and no sessions.
const REVISION: &str = "2026-07-28";
/// The methods that this revision removed, each with what a client uses in its place.
const REMOVED_METHODS: [(&str, &str); 4] = [
    ("initialize", "server/discover, or the revision 2025-11-25"),
    ("ping", "server/discover"),
    ("resources/subscribe", "subscriptions/listen"),
    ("resources/unsubscribe", "the end of subscriptions/listen"),
];

/// Returns the error for a request whose method its revision of the protocol removed, whatever its params are, and the id of the
/// request. `header` is the revision that an HTTP request names; the request itself may name it in `_meta`.
pub(crate) fn removed_method(message: &[u8], header: Option<&str>) -> Option<(ErrorData, Option<RequestId>)> {
    let method = serde_json::from_slice::<MethodField>(message).ok()?.method?;
    let (_, instead) = REMOVED_METHODS.iter().find(|(removed, _)| *removed == method)?;
    let message: serde_json::Value = serde_json::from_slice(message).ok()?;
    let named = message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion");
    if named.and_then(|version| version.as_str()).or(header) != Some(REVISION) {
        return None;
    }
    let id = serde_json::from_value(message.get("id")?.clone()).ok();
    let text = format!("{method} is no method of MCP {REVISION}. Use {instead}");
    Some((ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None), id))
}

/// The only field that is read of a message before it is known to be one.
#[derive(serde::Deserialize)]
pub(crate) struct MethodField {
    pub(crate) method: Option<String>,
}

/// Returns the error for JSON that is not a valid message, and the id of the request if the JSON has one.
pub(crate) fn invalid_message(message: &serde_json::Value) -> (ErrorData, Option<RequestId>) {
    let id = message.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
    let is_current = message.get("jsonrpc").and_then(|version| version.as_str()) == Some("2.0");
    let method = message.get("method").and_then(|method| method.as_str()).filter(|_| is_current);
    let error = method
        .and_then(invalid_params_error)
        .unwrap_or_else(|| ErrorData::invalid_request("this is not a JSON-RPC 2.0 message", None));
    (error, id)
}

/// Returns the error for a message that is not valid JSON, and the id of the request if it can be read.
pub(crate) fn parse_error(message: &[u8], error: &serde_json::Error) -> (ErrorData, Option<RequestId>) {
    /// The only field that is read of an invalid message.
    #[derive(serde::Deserialize)]
    struct IdField {
        id: Option<serde_json::Value>,
    }
    // serde skips the other fields without a limit of depth, and without a check of numbers and escapes.
    let field = serde_json::from_slice::<IdField>(message).ok();
    let id = field.and_then(|field| field.id).and_then(|id| serde_json::from_value(id).ok());
    let error = if error.to_string().starts_with("recursion limit") {
        ErrorData::invalid_request("the message nests more than 127 levels deep. Give fewer", None)
    } else {
        ErrorData::new(ErrorCode::PARSE_ERROR, format!("the message is not valid JSON: {error}"), None)
    };
    (error, id)
}
