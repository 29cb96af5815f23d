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
/// What is watched and never changes.
const WATCHED: &str = "test://watched-resource";
/// Between two messages of one call.
const STEP: Duration = Duration::from_millis(50);

/// Tools without arguments.
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

/// Reads a protocol type from what stands in the protocol.
fn made<T: DeserializeOwned>(value: Value) -> Outcome<T> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(format!("a fixture is wrong: {error}"), None))
}

/// Adds what the fixtures need.
pub(super) fn with_capabilities(mut capabilities: ServerCapabilities) -> ServerCapabilities {
    capabilities.logging = Some(Map::new());
    capabilities
}

/// Adds the tools.
pub(super) fn with_tools(mut list: ListToolsResult) -> Outcome<ListToolsResult> {
    let tool = |name: &str, schema: Value| {
        made(
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

/// Calls a fixture; nothing where the tool is none.
pub(super) async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Outcome<Option<CallToolResponse>> {
    let argument = |name: &str| request.arguments.as_ref().and_then(|arguments| arguments.get(name)).cloned();
    let given =
        Given { responses: request.input_responses.as_ref(), state: request.request_state.as_deref() };
    let peer = &context.peer;
    let result = match request.name.as_ref() {
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
        "test_error_handling" => made(json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": "This tool intentionally returns an error for testing" }],
            "isError": true,
        })),
        "test_tool_with_logging" => {
            for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                log(peer, line).await?;
                tokio::time::sleep(STEP).await;
            }
            text("Three lines were logged.")
        }
        "test_logging_tool" => {
            // Of the newer era, who wants the log of a call says so with the call.
            if context.meta.log_level().is_some() {
                log(peer, "A line for whoever asked.").await?;
            }
            text("Nothing else is logged.")
        }
        "test_tool_with_progress" => {
            for progress in [0, 50, 100] {
                if let Some(token) = context.meta.get_progress_token() {
                    let params = json!({ "progressToken": token, "progress": progress, "total": 100 });
                    notify(peer, "notifications/progress", params).await?;
                }
                tokio::time::sleep(STEP).await;
            }
            text("Three steps were taken.")
        }
        "test_sampling" => {
            let question = sampling(argument("prompt").unwrap_or_default(), 100);
            let reply = ask(peer, question).await?;
            let said = reply.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
            text(&format!("LLM response: {said}"))
        }
        "test_elicitation" => {
            let fields = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            });
            let message = argument("message").unwrap_or_default();
            elicited(peer, "User response", form(message, fields, &["username", "email"])).await
        }
        "test_elicitation_sep1034_defaults" => {
            let fields = json!({
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                "verified": { "type": "boolean", "default": true },
            });
            elicited(peer, "Elicitation completed", form("Every field has a default.", fields, &[])).await
        }
        "test_elicitation_sep1330_enums" => {
            let options = ["option1", "option2", "option3"];
            let titled = |word: &str| {
                let one =
                    |value: &str, name: &str| json!({ "const": value, "title": format!("{name} {word}") });
                json!([one("value1", "First"), one("value2", "Second"), one("value3", "Third")])
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
            elicited(peer, "Elicitation completed", form("Choose.", fields, &[])).await
        }
        "test_missing_capability" => {
            if !can(context, "sampling") {
                let needed = made(json!({ "sampling": {} }))?;
                return Err(ErrorData::missing_required_client_capability(needed));
            }
            text("The client can sample.")
        }
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            let Some(name) = given.field("user_name", "name") else {
                return require(json!({ "user_name": ask_name() }), None).map(Some);
            };
            text(&format!("Hello, {name}!"))
        }
        "test_input_required_result_sampling" => {
            let Some(reply) = given.response("capital_question", "/content/text") else {
                let question = sampling("What is the capital of France?", 100);
                return require(json!({ "capital_question": question }), None).map(Some);
            };
            text(reply)
        }
        "test_input_required_result_list_roots" => {
            let Some(uri) = given.response("client_roots", "/roots/0/uri") else {
                return require(json!({ "client_roots": ask_roots() }), None).map(Some);
            };
            text(&format!("The first root is {uri}"))
        }
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            if given.state()?.is_none() || !given.accepts("confirm") {
                let confirm = form("Please confirm", json!({ "ok": { "type": "boolean" } }), &["ok"]);
                return require(json!({ "confirm": confirm }), Some("asked")).map(Some);
            }
            text("state-ok")
        }
        "test_input_required_result_multiple_inputs" => {
            let all = ["user_name", "greeting", "client_roots"];
            if given.state()?.is_none() || !all.iter().all(|key| given.has(key)) {
                let greeting = sampling("Generate a greeting", 50);
                let asked =
                    json!({ "user_name": ask_name(), "greeting": greeting, "client_roots": ask_roots() });
                return require(asked, Some("asked")).map(Some);
            }
            text("All is answered.")
        }
        "test_input_required_result_multi_round" => match given.state()? {
            Some("step 2") if given.accepts("step2") => text("Both steps are done."),
            Some("step 1") if given.accepts("step1") => {
                let fields = json!({ "color": { "type": "string" } });
                let asked = form("Step 2: What is your favorite color?", fields, &["color"]);
                return require(json!({ "step2": asked }), Some("step 2")).map(Some);
            }
            _ => {
                let asked =
                    form("Step 1: What is your name?", json!({ "name": { "type": "string" } }), &["name"]);
                return require(json!({ "step1": asked }), Some("step 1")).map(Some);
            }
        },
        "test_input_required_result_capabilities" => {
            let mut asked = Map::new();
            if can(context, "sampling") {
                asked.insert("question".to_owned(), sampling("What is the capital of France?", 100));
            }
            if can(context, "elicitation") {
                asked.insert("user_name".to_owned(), ask_name());
            }
            if asked.is_empty() || asked.keys().all(|key| given.has(key)) {
                text("Nothing more is asked for.")
            } else {
                return require(Value::Object(asked), None).map(Some);
            }
        }
        "json_schema_2020_12_tool" => text("The schema is what counts."),
        _ => return Ok(None),
    };
    result.map(|result| Some(result.into()))
}

/// What a client sent along with a call that it makes again.
struct Given<'a> {
    responses: Option<&'a InputResponses>,
    state: Option<&'a str>,
}

impl<'a> Given<'a> {
    fn has(&self, key: &str) -> bool {
        self.responses.is_some_and(|responses| responses.get(key).is_some_and(Value::is_object))
    }

    fn response(&self, key: &str, pointer: &str) -> Option<&'a str> {
        self.responses?.get(key)?.pointer(pointer)?.as_str()
    }

    /// Gives a field of a form that was filled in.
    fn field(&self, key: &str, name: &str) -> Option<&'a str> {
        self.response(key, &format!("/content/{name}")).filter(|_| self.accepts(key))
    }

    fn accepts(&self, key: &str) -> bool {
        self.response(key, "/action") == Some("accept")
    }

    /// Opens the state that we gave; refuses one that is not ours.
    fn state(&self) -> Outcome<Option<&'a str>> {
        let Some(sealed) = self.state else { return Ok(None) };
        let opened = sealed.rsplit_once('.').filter(|(state, _)| seal(state) == sealed);
        let broken = || ErrorData::invalid_params("requestState is not what the server gave", None);
        opened.map(|(state, _)| Some(state)).ok_or_else(broken)
    }
}

/// Signs a state, for it goes through the client's hands.
fn seal(state: &str) -> String {
    static KEY: LazyLock<[u8; 32]> = LazyLock::new(|| {
        let halves = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()];
        std::array::from_fn(|at| halves[at / 16][at % 16])
    });
    format!("{state}.{}", blake3::keyed_hash(&KEY, state.as_bytes()).to_hex())
}

fn require<T: From<InputRequiredResult>>(asked: Value, state: Option<&str>) -> Outcome<T> {
    Ok(InputRequiredResult::new(Some(made(asked)?), state.map(seal)).into())
}

fn can(context: &RequestContext<RoleServer>, capability: &str) -> bool {
    let capabilities = context.client_capabilities().and_then(|known| serde_json::to_value(known).ok());
    capabilities.is_some_and(|capabilities| capabilities.get(capability).is_some())
}

fn content(items: Value) -> Outcome<CallToolResult> {
    made(json!({ "resultType": "complete", "content": items }))
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

/// Asks a client of the older era while its call is under way.
async fn ask(peer: &Peer<RoleServer>, request: Value) -> Outcome<Value> {
    let failed =
        |error: &dyn std::fmt::Display| ErrorData::internal_error(format!("the client: {error}"), None);
    let reply = peer.send_request(made(request)?).await.map_err(|error| failed(&error))?;
    serde_json::to_value(reply).map_err(|error| failed(&error))
}

async fn elicited(peer: &Peer<RoleServer>, said: &str, request: Value) -> Outcome<CallToolResult> {
    let reply = ask(peer, request).await?;
    let action = reply.get("action").and_then(Value::as_str).unwrap_or_default();
    let content = reply.get("content").cloned().unwrap_or_default();
    text(&format!("{said}: action={action}, content={content}"))
}

async fn notify(peer: &Peer<RoleServer>, method: &str, params: Value) -> Outcome<()> {
    let sent = peer.send_notification(made(json!({ "method": method, "params": params }))?).await;
    sent.map_err(|error| ErrorData::internal_error(format!("the client: {error}"), None))
}

async fn log(peer: &Peer<RoleServer>, line: &str) -> Outcome<()> {
    notify(peer, "notifications/message", json!({ "level": "info", "data": line })).await
}

/// Adds the resources.
pub(super) fn with_resources(mut list: ListResourcesResult) -> Outcome<ListResourcesResult> {
    for (uri, kind) in
        [("test://static-text", "text/plain"), ("test://static-binary", "image/png"), (WATCHED, "text/plain")]
    {
        let description = "A fixture of the conformance suite.";
        list.resources
            .push(made(json!({ "uri": uri, "name": uri, "description": description, "mimeType": kind }))?);
    }
    Ok(list)
}

/// Reads a fixture; nothing where the address names none.
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
    made(json!({ "resultType": "complete", "contents": [contents] })).map(Some)
}

/// Says whether an address is that of the fixture to watch.
pub(super) fn is_watched(uri: &str) -> bool {
    uri == WATCHED
}

/// Adds the prompts.
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
        list.prompts.push(made(json!({ "name": name, "description": description, "arguments": arguments }))?);
    }
    Ok(list)
}

/// Fills in a fixture; nothing where the prompt is none.
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
            let given = Given { responses: request.input_responses.as_ref(), state: None };
            let Some(topic) = given.field("user_context", "context") else {
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
    let result: GetPromptResult = made(json!({ "resultType": "complete", "messages": messages }))?;
    Ok(Some(result.into()))
}
