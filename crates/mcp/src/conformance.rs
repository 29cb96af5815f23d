//! Fixtures of the official MCP conformance suite, built with the feature `conformance` and served by the same server over
//! HTTP. The suite's descriptions of its scenarios define the answers.

use std::sync::LazyLock;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, InputRequiredResult, InputResponses, ListPromptsResult,
    ListResourcesResult, ListToolsResult, ReadResourceResult, ServerCapabilities,
};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// One red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";
/// Two samples of silence.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA==";
/// The URI of the resource that the suite subscribes to. It never changes.
const WATCHED: &str = "test://watched-resource";
/// The delay between two messages of one call.
const STEP: Duration = Duration::from_millis(50);

/// The names of the tools without arguments.
const PLAIN: [&str; 21] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_error_handling",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

type Outcome<T> = Result<T, ErrorData>;

/// Converts JSON to a type of the protocol.
fn from_json<T: DeserializeOwned>(value: Value) -> Outcome<T> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(format!("a fixture is wrong: {error}"), None))
}

/// Adds the capabilities that the fixtures need.
pub(super) fn with_capabilities(mut capabilities: ServerCapabilities) -> ServerCapabilities {
    capabilities.logging = Some(Map::new());
    capabilities
}

/// Adds the fixture tools.
pub(super) fn with_tools(mut list: ListToolsResult) -> Outcome<ListToolsResult> {
    let tool = |name: &str, schema: Value| {
        from_json(
            json!({ "name": name, "description": "A fixture of the conformance suite.", "inputSchema": schema }),
        )
    };
    let takes = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    for name in PLAIN {
        list.tools.push(tool(name, json!({ "type": "object", "properties": {} }))?);
    }
    list.tools.push(tool("test_sampling", takes("prompt"))?);
    list.tools.push(tool("test_elicitation", takes("message"))?);
    list.tools.push(tool(
        "json_schema_2020_12_tool",
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            } },
            "properties": {
                "name": { "type": "string" },
                "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" },
                "email": { "type": "string" },
            },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        }),
    )?);
    Ok(list)
}

/// Calls a fixture tool. Returns `None` if the name is not that of a fixture.
pub(super) async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Outcome<Option<CallToolResponse>> {
    let name = request.name.as_ref();
    let result = match name {
        "test_tool_with_logging" | "test_logging_tool" | "test_tool_with_progress" => {
            call_with_notifications(name, context).await
        }
        "test_sampling"
        | "test_elicitation"
        | "test_elicitation_sep1034_defaults"
        | "test_elicitation_sep1330_enums" => call_with_requests(request, &context.peer).await,
        "test_missing_capability" => {
            if !has_capability(context, "sampling") {
                let required = from_json(json!({ "sampling": {} }))?;
                return Err(ErrorData::missing_required_client_capability(required));
            }
            text("The client can sample.")
        }
        name if name.starts_with("test_input_required_result_") || name == "test_streaming_elicitation" => {
            return call_with_input(request, context);
        }
        name => match fixed_answer(name) {
            Some(result) => result,
            None => return Ok(None),
        },
    };
    result.map(|result| Some(result.into()))
}

/// Returns the answer of a tool that always gives the same one. Returns `None` for any other name.
fn fixed_answer(name: &str) -> Option<Outcome<CallToolResult>> {
    Some(match name {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => content(json!([image()])),
        "test_audio_content" => content(json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }])),
        "test_embedded_resource" => content(json!([{ "type": "resource", "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        } }])),
        "test_multiple_content_types" => content(json!([
            { "type": "text", "text": "Multiple content types test:" },
            image(),
            { "type": "resource", "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": r#"{"test":"data","value":123}"#,
            } },
        ])),
        "test_error_handling" => from_json(json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": "This tool intentionally returns an error for testing" }],
            "isError": true,
        })),
        "json_schema_2020_12_tool" => text("Only the schema of this tool is tested."),
        _ => return None,
    })
}

/// Calls a tool that sends notifications during the call.
async fn call_with_notifications(
    name: &str,
    context: &RequestContext<RoleServer>,
) -> Outcome<CallToolResult> {
    let peer = &context.peer;
    match name {
        "test_tool_with_logging" => {
            for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                log(peer, line).await?;
                tokio::time::sleep(STEP).await;
            }
            text("Three lines were logged.")
        }
        "test_logging_tool" => {
            // In protocol versions without `logging/setLevel`, a call itself asks for its log.
            if context.meta.log_level().is_some() {
                log(peer, "A line for this call.").await?;
            }
            text("Nothing else is logged.")
        }
        _ => {
            for progress in [0, 50, 100] {
                if let Some(token) = context.meta.get_progress_token() {
                    let params = json!({ "progressToken": token, "progress": progress, "total": 100 });
                    notify(peer, "notifications/progress", params).await?;
                }
                tokio::time::sleep(STEP).await;
            }
            text("Three steps were taken.")
        }
    }
}

/// Calls a tool that sends the client a request during the call, and answers with what the client replied.
async fn call_with_requests(
    request: &CallToolRequestParams,
    peer: &Peer<RoleServer>,
) -> Outcome<CallToolResult> {
    let argument = |name: &str| request.arguments.as_ref().and_then(|arguments| arguments.get(name)).cloned();
    match request.name.as_ref() {
        "test_sampling" => {
            let prompt = sampling(argument("prompt").unwrap_or_default(), 100);
            let reply = ask(peer, prompt).await?;
            let answer = reply.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
            text(&format!("LLM response: {answer}"))
        }
        "test_elicitation" => {
            let fields = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            });
            let message = argument("message").unwrap_or_default();
            elicit(peer, "User response", form(message, fields, &["username", "email"])).await
        }
        "test_elicitation_sep1034_defaults" => {
            let fields = json!({
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                "verified": { "type": "boolean", "default": true },
            });
            elicit(peer, "Elicitation completed", form("Every field has a default.", fields, &[])).await
        }
        _ => {
            let options = ["option1", "option2", "option3"];
            let titled = |word: &str| {
                let option =
                    |value: &str, name: &str| json!({ "const": value, "title": format!("{name} {word}") });
                json!([option("value1", "First"), option("value2", "Second"), option("value3", "Third")])
            };
            let fields = json!({
                "untitledSingle": { "type": "string", "enum": options },
                "titledSingle": { "type": "string", "oneOf": titled("Option") },
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
                "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
            });
            elicit(peer, "Elicitation completed", form("Choose.", fields, &[])).await
        }
    }
}

/// Calls a tool that requires input: the first call is answered with the requests for it, and the client repeats the call
/// with its responses. Returns `None` if the name is not that of such a tool.
fn call_with_input(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Outcome<Option<CallToolResponse>> {
    let input =
        RetryInput { responses: request.input_responses.as_ref(), state: request.request_state.as_deref() };
    let result = match request.name.as_ref() {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            let Some(name) = input.field("user_name", "name") else {
                return require(json!({ "user_name": ask_name() }), None).map(Some);
            };
            text(&format!("Hello, {name}!"))
        }
        "test_input_required_result_sampling" => {
            let Some(reply) = input.response("capital_question", "/content/text") else {
                let question = sampling("What is the capital of France?", 100);
                return require(json!({ "capital_question": question }), None).map(Some);
            };
            text(reply)
        }
        "test_input_required_result_list_roots" => {
            let Some(uri) = input.response("client_roots", "/roots/0/uri") else {
                return require(json!({ "client_roots": ask_roots() }), None).map(Some);
            };
            text(&format!("The first root is {uri}"))
        }
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            if input.state()?.is_none() || !input.accepts("confirm") {
                let confirm = form("Please confirm", json!({ "ok": { "type": "boolean" } }), &["ok"]);
                return require(json!({ "confirm": confirm }), Some("asked")).map(Some);
            }
            text("state-ok")
        }
        "test_input_required_result_multiple_inputs" => {
            let keys = ["user_name", "greeting", "client_roots"];
            if input.state()?.is_none() || !keys.iter().all(|key| input.has(key)) {
                let greeting = sampling("Generate a greeting", 50);
                let requests =
                    json!({ "user_name": ask_name(), "greeting": greeting, "client_roots": ask_roots() });
                return require(requests, Some("asked")).map(Some);
            }
            text("All requests were answered.")
        }
        "test_input_required_result_multi_round" => match input.state()? {
            Some("step 2") if input.accepts("step2") => text("Both steps are done."),
            Some("step 1") if input.accepts("step1") => {
                let fields = json!({ "color": { "type": "string" } });
                let step = form("Step 2: What is your favorite color?", fields, &["color"]);
                return require(json!({ "step2": step }), Some("step 2")).map(Some);
            }
            _ => {
                let fields = json!({ "name": { "type": "string" } });
                let step = form("Step 1: What is your name?", fields, &["name"]);
                return require(json!({ "step1": step }), Some("step 1")).map(Some);
            }
        },
        "test_input_required_result_capabilities" => {
            let mut requests = Map::new();
            if has_capability(context, "sampling") {
                requests.insert("question".to_owned(), sampling("What is the capital of France?", 100));
            }
            if has_capability(context, "elicitation") {
                requests.insert("user_name".to_owned(), ask_name());
            }
            if !requests.is_empty() && !requests.keys().all(|key| input.has(key)) {
                return require(Value::Object(requests), None).map(Some);
            }
            text("No further input is required.")
        }
        _ => return Ok(None),
    };
    result.map(|result| Some(result.into()))
}

/// The input that a client gives when it repeats a call.
struct RetryInput<'a> {
    responses: Option<&'a InputResponses>,
    state: Option<&'a str>,
}

impl<'a> RetryInput<'a> {
    fn has(&self, key: &str) -> bool {
        self.responses.is_some_and(|responses| responses.get(key).is_some_and(Value::is_object))
    }

    fn response(&self, key: &str, pointer: &str) -> Option<&'a str> {
        self.responses?.get(key)?.pointer(pointer)?.as_str()
    }

    /// Returns a field of a form that the user submitted.
    fn field(&self, key: &str, name: &str) -> Option<&'a str> {
        self.response(key, &format!("/content/{name}")).filter(|_| self.accepts(key))
    }

    fn accepts(&self, key: &str) -> bool {
        self.response(key, "/action") == Some("accept")
    }

    /// Verifies the request state and returns it without its signature.
    ///
    /// # Errors
    /// An error for invalid params if the signature is not ours.
    fn state(&self) -> Outcome<Option<&'a str>> {
        let Some(signed) = self.state else { return Ok(None) };
        let verified = signed.rsplit_once('.').filter(|(state, _)| sign(state) == signed);
        let forged = || ErrorData::invalid_params("requestState is not what the server gave", None);
        verified.map(|(state, _)| Some(state)).ok_or_else(forged)
    }
}

/// Signs a state, because the client could change it.
fn sign(state: &str) -> String {
    static KEY: LazyLock<[u8; 32]> = LazyLock::new(|| {
        let halves = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()];
        std::array::from_fn(|at| halves[at / 16][at % 16])
    });
    format!("{state}.{}", blake3::keyed_hash(&KEY, state.as_bytes()).to_hex())
}

fn require<T: From<InputRequiredResult>>(requests: Value, state: Option<&str>) -> Outcome<T> {
    Ok(InputRequiredResult::new(Some(from_json(requests)?), state.map(sign)).into())
}

fn has_capability(context: &RequestContext<RoleServer>, capability: &str) -> bool {
    let capabilities = context.client_capabilities().and_then(|known| serde_json::to_value(known).ok());
    capabilities.is_some_and(|capabilities| capabilities.get(capability).is_some())
}

fn content(items: Value) -> Outcome<CallToolResult> {
    from_json(json!({ "resultType": "complete", "content": items }))
}

fn text(text: &str) -> Outcome<CallToolResult> {
    content(json!([{ "type": "text", "text": text }]))
}

fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

fn sampling(prompt: impl Into<Value>, tokens: u32) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt.into() } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": tokens } })
}

fn form(message: impl Into<Value>, fields: Value, required: &[&str]) -> Value {
    let schema = json!({ "type": "object", "properties": fields, "required": required });
    let params = json!({ "mode": "form", "message": message.into(), "requestedSchema": schema });
    json!({ "method": "elicitation/create", "params": params })
}

fn ask_name() -> Value {
    form("What is your name?", json!({ "name": { "type": "string" } }), &["name"])
}

fn ask_roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

/// Sends the client a request during its call, as older protocol versions allow.
async fn ask(peer: &Peer<RoleServer>, request: Value) -> Outcome<Value> {
    let failed =
        |error: &dyn std::fmt::Display| ErrorData::internal_error(format!("the client: {error}"), None);
    let reply = peer.send_request(from_json(request)?).await.map_err(|error| failed(&error))?;
    serde_json::to_value(reply).map_err(|error| failed(&error))
}

async fn elicit(peer: &Peer<RoleServer>, said: &str, request: Value) -> Outcome<CallToolResult> {
    let reply = ask(peer, request).await?;
    let action = reply.get("action").and_then(Value::as_str).unwrap_or_default();
    let content = reply.get("content").cloned().unwrap_or_default();
    text(&format!("{said}: action={action}, content={content}"))
}

async fn notify(peer: &Peer<RoleServer>, method: &str, params: Value) -> Outcome<()> {
    let sent = peer.send_notification(from_json(json!({ "method": method, "params": params }))?).await;
    sent.map_err(|error| ErrorData::internal_error(format!("the client: {error}"), None))
}

async fn log(peer: &Peer<RoleServer>, line: &str) -> Outcome<()> {
    notify(peer, "notifications/message", json!({ "level": "info", "data": line })).await
}

/// Adds the fixture resources.
pub(super) fn with_resources(mut list: ListResourcesResult) -> Outcome<ListResourcesResult> {
    for (uri, kind) in
        [("test://static-text", "text/plain"), ("test://static-binary", "image/png"), (WATCHED, "text/plain")]
    {
        let description = "A fixture of the conformance suite.";
        list.resources.push(from_json(
            json!({ "uri": uri, "name": uri, "description": description, "mimeType": kind }),
        )?);
    }
    Ok(list)
}

/// Reads a fixture resource. Returns `None` if the URI is not that of a fixture.
pub(super) fn read(uri: &str) -> Outcome<Option<ReadResourceResult>> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let contents = match (uri, id) {
        ("test://static-text", _) => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        (WATCHED, _) => json!({ "uri": uri, "mimeType": "text/plain", "text": "This never changes." }),
        (_, Some(id)) => {
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
        }
        _ => return Ok(None),
    };
    from_json(json!({ "resultType": "complete", "contents": [contents] })).map(Some)
}

/// Returns whether a URI is that of the resource that the suite subscribes to.
pub(super) fn is_watched(uri: &str) -> bool {
    uri == WATCHED
}

/// Adds the fixture prompts.
pub(super) fn with_prompts(mut list: ListPromptsResult) -> Outcome<ListPromptsResult> {
    for (name, arguments) in [
        ("test_simple_prompt", [].as_slice()),
        ("test_prompt_with_arguments", &["arg1", "arg2"]),
        ("test_prompt_with_embedded_resource", &["resourceUri"]),
        ("test_prompt_with_image", &[]),
        ("test_input_required_result_prompt", &[]),
    ] {
        let arguments: Vec<Value> =
            arguments.iter().map(|name| json!({ "name": name, "required": true })).collect();
        let description = "A fixture of the conformance suite.";
        list.prompts
            .push(from_json(json!({ "name": name, "description": description, "arguments": arguments }))?);
    }
    Ok(list)
}

/// Returns the messages of a fixture prompt, or `None` if the name is not that of a fixture.
pub(super) fn prompt(request: &GetPromptRequestParams) -> Outcome<Option<GetPromptResponse>> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let says = |text: &str| json!({ "type": "text", "text": text });
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![says("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => vec![says(&format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1"),
            argument("arg2")
        ))],
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            let asked = says("Please process the embedded resource above.");
            vec![json!({ "type": "resource", "resource": resource }), asked]
        }
        "test_prompt_with_image" => vec![image(), says("Please analyze the image above.")],
        "test_input_required_result_prompt" => {
            let input = RetryInput { responses: request.input_responses.as_ref(), state: None };
            let Some(topic) = input.field("user_context", "context") else {
                let fields = json!({ "context": { "type": "string" } });
                let asked = form("What context should the prompt use?", fields, &["context"]);
                return require(json!({ "user_context": asked }), None).map(Some);
            };
            vec![says(&format!("Prompt with context: {topic}"))]
        }
        _ => return Ok(None),
    };
    let messages: Vec<Value> =
        contents.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
    let result: GetPromptResult = from_json(json!({ "resultType": "complete", "messages": messages }))?;
    Ok(Some(result.into()))
}
