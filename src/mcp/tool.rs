//! The definition of a tool: name, annotations, schemas, parsing of arguments, and the answer.
//!
//! A toolset is a list of tools. A tool is a plain function of `Store` and its arguments: not async, and without types of
//! the protocol.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::mcp::error_text::{self, Served, sentence};
use crate::mcp::{reply_limit, resources};
use crate::store::{EarlierCall, Intent, Store};
use crate::text::control::plain_lines;

/// The argument by which a caller names an operation that it may repeat; every tool that writes takes it.
pub(super) const OPERATION: &str = "operation_id";
/// Of what an earlier call did, so many files are named.
const MOST_FILES: usize = 100;

/// The effect of a tool on the notes, from which its annotations are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The tool changes no note; at most it records a use in the journal.
    ReadOnly,
    /// The tool adds something and keeps what exists. The same call again may add more.
    Additive,
    /// The tool changes notes and loses nothing. The same call again changes nothing more.
    IdempotentAdditive,
    /// The tool replaces what exists. The same call again changes nothing more.
    IdempotentDestructive,
    /// The tool changes or removes what exists. The same call again may do more.
    Destructive,
}

impl Effect {
    fn annotations(self) -> ToolAnnotations {
        let annotations = ToolAnnotations::new().read_only(self == Self::ReadOnly).open_world(false);
        if self == Self::ReadOnly {
            // The other hints have no meaning for a tool that only reads.
            return annotations;
        }
        let annotations =
            annotations.destructive(matches!(self, Self::IdempotentDestructive | Self::Destructive));
        // Without the hint, a client assumes that the same call again may do more.
        if matches!(self, Self::IdempotentAdditive | Self::IdempotentDestructive) {
            annotations.idempotent(true)
        } else {
            annotations
        }
    }
}

/// One content block of an answer.
#[derive(Debug, Clone, PartialEq)]
enum AnswerPart {
    Text(String),
    /// JSON as text, on one line or indented.
    Json(Value, bool),
    /// Bytes in base64, and their media type.
    Image(String, &'static str),
}

/// The answer of a tool: content blocks, and the same as structured data where the tool gives them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer {
    parts: Vec<AnswerPart>,
    structured: Option<Value>,
    is_error: bool,
}

impl Answer {
    /// Answers with a text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![AnswerPart::Text(text.into())], ..Self::default() }
    }

    /// Says what was wrong with a call that cannot be done.
    pub(super) fn refusal(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Appends notices, each as a text block of its own, so that the first block stays as it is.
    pub(super) fn noting(mut self, notices: impl IntoIterator<Item = String>) -> Self {
        self.parts.extend(notices.into_iter().map(|notice| AnswerPart::Text(format!("notice: {notice}"))));
        self
    }

    /// Answers with JSON as text, on one line.
    ///
    /// # Errors
    /// `Internal` for a value that JSON cannot hold.
    pub(super) fn json(value: &impl Serialize) -> Result<Self> {
        let value = serde_json::to_value(value).map_err(unwritten)?;
        Ok(Self { parts: vec![AnswerPart::Json(value, false)], ..Self::default() })
    }

    /// Answers with JSON as text, indented by two spaces.
    ///
    /// # Errors
    /// `Internal` for a value that JSON cannot hold.
    pub(super) fn pretty(value: &impl Serialize) -> Result<Self> {
        let value = serde_json::to_value(value).map_err(unwritten)?;
        Ok(Self { parts: vec![AnswerPart::Json(value, true)], ..Self::default() })
    }

    /// Adds the structured data of the answer.
    ///
    /// # Errors
    /// `Internal` for a value that JSON cannot hold.
    pub(super) fn with(mut self, value: &impl Serialize) -> Result<Self> {
        self.structured = Some(serde_json::to_value(value).map_err(unwritten)?);
        Ok(self)
    }

    /// Appends a text block.
    pub(super) fn and_text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(AnswerPart::Text(text.into()));
        self
    }

    /// Appends an image block.
    pub(super) fn and_image(mut self, bytes: &[u8], media_type: &'static str) -> Self {
        self.parts.push(AnswerPart::Image(STANDARD.encode(bytes), media_type));
        self
    }

    /// Turns an error into the sentence that a caller reads: what is wrong, and what to do with the tools that are
    /// served.
    pub(super) fn of_error(error: &Error, served: &Served) -> Self {
        Self::refusal(sentence(error, |tool| served.has(tool)))
    }

    /// Answers a call that cannot be done with JSON as text.
    ///
    /// # Errors
    /// `Internal` for a value that JSON cannot hold.
    pub(super) fn json_refusal(value: &impl Serialize) -> Result<Self> {
        Ok(Self { is_error: true, ..Self::json(value)? })
    }

    /// Encodes the answer as the journal keeps it, for a repetition of the call.
    fn kept(&self) -> Value {
        let parts = self.parts.iter().map(|part| match part {
            AnswerPart::Text(text) => json!({ "text": text }),
            AnswerPart::Json(value, is_pretty) => json!({ "json": value, "pretty": is_pretty }),
            AnswerPart::Image(_, media_type) => {
                json!({ "text": format!("an image ({media_type}) stood here") })
            }
        });
        json!({ "parts": parts.collect::<Vec<_>>(), "structured": self.structured })
    }

    /// Answers a repeated call as the first one was answered, or, where that answer is lost, says what was done.
    fn of_earlier(earlier: EarlierCall) -> Self {
        match earlier {
            EarlierCall::Answered(mut answer) => {
                let kept = answer.get("parts").and_then(Value::as_array).into_iter().flatten();
                let part = |kept: &Value| match (kept.get("text").and_then(Value::as_str), kept.get("json")) {
                    (Some(text), _) => Some(AnswerPart::Text(text.to_owned())),
                    (None, Some(value)) => {
                        Some(AnswerPart::Json(value.clone(), kept.get("pretty") == Some(&Value::Bool(true))))
                    }
                    (None, None) => None,
                };
                let parts = kept.filter_map(part).collect();
                let structured = answer.get_mut("structured").map(Value::take).filter(|it| !it.is_null());
                Self { parts, structured, is_error: false }
            }
            EarlierCall::Committed(events) => {
                let files = events.iter().flat_map(|event| &event.files).map(|file| file.end().to_string());
                let files: Vec<String> = files.take(MOST_FILES).collect();
                let operation = events.first().map(|event| event.id.clone());
                let notices = ["this was done by an earlier call of the same operation"];
                let done = json!({
                    "applied": true, "path": files.first(), "operation": operation, "files": files, "notices": notices,
                });
                let text = format!("done before, by the same operation: {}", files.join(", "));
                Self { structured: Some(done), ..Self::text(text) }
            }
        }
    }

    /// Converts the answer into a result of the protocol. A reply beyond the limit is cut here, and a block says so.
    pub(super) fn into_result(mut self) -> CallToolResult {
        if self.is_error {
            for part in &mut self.parts {
                match part {
                    AnswerPart::Text(text) => *text = plain_lines(text),
                    AnswerPart::Json(value, _) => error_text::clean(value),
                    AnswerPart::Image(..) => {}
                }
            }
            self.structured.iter_mut().for_each(error_text::clean);
        }
        let mut is_cut = self.structured.as_mut().is_some_and(reply_limit::fit);
        let mut content = Vec::new();
        for part in self.parts {
            match part {
                AnswerPart::Text(mut text) => {
                    is_cut |= reply_limit::fit_text(&mut text);
                    content.push(ContentBlock::text(text));
                }
                AnswerPart::Json(mut value, is_pretty) => {
                    is_cut |= reply_limit::fit(&mut value);
                    let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
                    content.push(ContentBlock::text(text));
                }
                AnswerPart::Image(data, media_type) => content.push(ContentBlock::image(data, media_type)),
            }
        }
        if is_cut {
            content.push(ContentBlock::text(reply_limit::CUT));
        }
        let mut result =
            if self.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = self.structured;
        result
    }
}

/// Says that an answer may lack what changed last.
fn behind(files: usize) -> String {
    let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    format!(
        "notice: the index is behind: {files} that changed last may be missing from this answer; ask again in a moment"
    )
}

fn unwritten(error: serde_json::Error) -> Error {
    Error::internal("cannot write the reply as JSON").with_source(error)
}

/// Arguments that name notes.
const NAMES: [&str; 9] = ["note", "notes", "from", "to", "a", "b", "around", "into", "path"];

/// Makes a title of a tool's name.
fn title_of(name: &str) -> String {
    let mut title = name.replace('_', " ");
    title.get_mut(..1).into_iter().for_each(str::make_ascii_uppercase);
    title
}

type Run = dyn Fn(&Store, JsonObject) -> Result<Answer> + Send + Sync;

/// A tool that an agent may call.
pub(super) struct Tool {
    /// The name of the tool, which no other tool of any set has.
    pub(super) name: &'static str,
    pub(super) effect: Effect,
    description: &'static str,
    example: &'static str,
    input: Arc<JsonObject>,
    output: Option<Arc<JsonObject>>,
    aliases: &'static [(&'static str, &'static str)],
    is_strict: bool,
    refuse: fn(&Error, &Served) -> Answer,
    run: Box<Run>,
}

impl Tool {
    /// Makes a tool. `example` is a valid call's arguments, as JSON: what a wrong call is answered with.
    pub(super) fn new<I: DeserializeOwned + JsonSchema + 'static>(
        name: &'static str,
        effect: Effect,
        description: &'static str,
        example: &'static str,
        run: fn(&Store, I) -> Result<Answer>,
    ) -> Self {
        let input = Arc::new(schema_of::<I>());
        let schema = Arc::clone(&input);
        let read = move |store: &Store, arguments: JsonObject| {
            let input = I::deserialize(&arguments).map_err(|_| {
                let why = error_text::mismatch(&schema, &arguments);
                let why = why.unwrap_or_else(|| "the arguments do not have the right form".to_owned());
                Error::invalid(format!("{name}: {why}")).with_hint(format!("A valid call: {example}"))
            })?;
            run(store, input)
        };
        let run = Box::new(read);
        let (output, aliases, is_strict) = (None, [].as_slice(), false);
        let refuse = Answer::of_error;
        Self { name, effect, description, example, input, output, aliases, is_strict, refuse, run }
    }

    /// Says that an answer is an object. More is not told: a schema is paid for in every conversation, and the answer shows
    /// the rest.
    pub(super) fn giving_data(mut self) -> Self {
        self.output = Some(Arc::new(JsonObject::from_iter([("type".to_owned(), Value::from("object"))])));
        self
    }

    /// Takes other names for arguments, silently: (what is given, what is meant).
    pub(super) fn also(mut self, aliases: &'static [(&'static str, &'static str)]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Makes it one of our own: it refuses arguments that it does not know and takes addresses of resources for names
    /// of notes.
    pub(super) fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Says errors in another shape.
    pub(super) fn refusing(mut self, refuse: fn(&Error, &Served) -> Answer) -> Self {
        self.refuse = refuse;
        self
    }

    /// Describes the tool to a client.
    pub(super) fn describe(&self) -> rmcp::model::Tool {
        let mut tool = rmcp::model::Tool::new(self.name, self.description, Arc::clone(&self.input));
        tool.title = Some(title_of(self.name));
        tool.output_schema.clone_from(&self.output);
        tool.annotations = Some(self.effect.annotations());
        tool
    }

    /// Carries a call out; a failure is an answer, too. `name` is what the caller calls the operation by, so that it
    /// may repeat the call: the repetition gets the first answer.
    pub(super) fn call(
        &self,
        store: &Store,
        mut arguments: JsonObject,
        name: Option<String>,
        served: &Served,
    ) -> Answer {
        // What is not given and what is null are the same to many clients.
        arguments.retain(|_, value| !value.is_null());
        let given = if self.effect == Effect::ReadOnly { None } else { arguments.remove(OPERATION) };
        let name = match given {
            Some(Value::String(name)) => Some(name),
            Some(other) => {
                return Answer::refusal(format!("{OPERATION} is {other}. Give a text, such as a UUID"));
            }
            None => name.filter(|_| self.effect != Effect::ReadOnly),
        };
        let Some(name) = name else {
            let store = store.for_call(None);
            let mut answer = self.answer(&store, arguments, served);
            if self.effect == Effect::ReadOnly && store.lookup().behind() > 0 && !answer.is_error {
                answer.parts.push(AnswerPart::Text(behind(store.lookup().behind())));
            }
            return answer;
        };
        let called = Value::Array(vec![Value::from(self.name), Value::Object(arguments.clone())]).to_string();
        let store = store.for_call(Some((&name, &called)));
        let calls = store.calls();
        let _alone = calls.alone();
        let earlier = |store: &Store| store.calls().earlier().map(|earlier| earlier.map(Answer::of_earlier));
        match earlier(&store) {
            Ok(None) => {}
            Ok(Some(answer)) => return answer,
            Err(error) => return (self.refuse)(&error, served),
        }
        let answer = self.answer(&store, arguments, served);
        if answer.is_error {
            // Another process may have done it while this one waited to.
            return earlier(&store.for_call(Some((&name, &called)))).ok().flatten().unwrap_or(answer);
        }
        store.calls().keep_answer(answer.kept());
        answer
    }

    fn answer(&self, store: &Store, mut arguments: JsonObject, served: &Served) -> Answer {
        for (given, meant) in self.aliases {
            if !arguments.contains_key(*meant)
                && let Some(value) = arguments.remove(*given)
            {
                arguments.insert((*meant).to_owned(), value);
            }
        }
        if self.is_strict {
            for name in NAMES {
                arguments.get_mut(name).into_iter().for_each(resources::unaddress);
            }
            // A batch names a note in each of its parts.
            let parts = arguments.get_mut("edits").and_then(Value::as_array_mut).into_iter().flatten();
            parts.filter_map(|part| part.get_mut("note")).for_each(resources::unaddress);
        }
        self.refuse_unknown(&arguments)
            .and_then(|()| (self.run)(store, arguments))
            .unwrap_or_else(|error| (self.refuse)(&error, served))
    }

    fn refuse_unknown(&self, arguments: &JsonObject) -> Result<()> {
        let Some(Value::Object(fields)) = self.input.get("properties").filter(|_| self.is_strict) else {
            return Ok(());
        };
        let Some(unknown) = arguments.keys().find(|name| !fields.contains_key(*name)) else { return Ok(()) };
        let known: Vec<&str> = fields.keys().map(String::as_str).collect();
        Err(Error::invalid(format!("{} has no argument {unknown:?}", self.name)).with_hint(format!(
            "It takes {}. A valid call: {}",
            known.join(", "),
            self.example
        )))
    }
}

// What a search of memories is for, as an argument. No doc comment: it would stand in every schema.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum IntentInput {
    Continuity,
    FactCheck,
    Frequent,
    Associative,
    Explore,
}

impl From<IntentInput> for Intent {
    fn from(intent: IntentInput) -> Self {
        match intent {
            IntentInput::Continuity => Self::Continuity,
            IntentInput::FactCheck => Self::FactCheck,
            IntentInput::Frequent => Self::Frequent,
            IntentInput::Associative => Self::Associative,
            IntentInput::Explore => Self::Explore,
        }
    }
}

/// Refuses a number outside of its bounds.
///
/// # Errors
/// `Invalid` naming the argument and its bounds.
pub(super) fn within<T: PartialOrd + std::fmt::Display>(
    name: &str,
    value: T,
    least: T,
    most: T,
) -> Result<T> {
    if value >= least && value <= most {
        return Ok(value);
    }
    Err(Error::invalid(format!("{name} is {value}")).with_hint(format!("Give one from {least} to {most}")))
}

/// Writes the schema of a type as short as clients understand it.
fn schema_of<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let Value::Object(mut schema) = schema.to_value() else { return JsonObject::new() };
    tidy(&mut schema);
    // What is told of the type of all arguments is for those who read the code.
    schema.remove("description");
    schema.entry("type").or_insert_with(|| Value::from("object"));
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    schema
}

/// Drops what tells a client nothing: number formats that JSON Schema does not know, `null` beside what is optional
/// anyway, titles, line breaks in descriptions.
fn tidy(schema: &mut JsonObject) {
    for name in ["$schema", "title", "format"] {
        if schema.get(name).is_some_and(Value::is_string) {
            schema.remove(name);
        }
    }
    // Of what counts, there are never less than none.
    if schema.get("minimum") == Some(&Value::from(0)) {
        schema.remove("minimum");
    }
    if schema.get("default").is_some_and(|default| {
        let is_empty = default.as_array().is_some_and(Vec::is_empty)
            || default.as_object().is_some_and(JsonObject::is_empty);
        default.is_null() || is_empty || default == &Value::Bool(false)
    }) {
        schema.remove("default");
    }
    // An object may hold anything where nothing else is said.
    if schema.get("additionalProperties") == Some(&Value::Bool(true)) {
        schema.remove("additionalProperties");
    }
    // Where one of several shapes is null, the other one alone stays.
    if let Some(Value::Array(shapes)) = schema.get_mut("anyOf") {
        shapes.retain(|shape| shape.get("type") != Some(&Value::from("null")));
        if shapes.len() == 1
            && let Some(Value::Object(only)) = shapes.pop()
        {
            schema.remove("anyOf");
            for (name, value) in only {
                schema.entry(name).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for field in fields.values_mut() {
            if *field == Value::Bool(true) {
                // What allows everything is an object, too, or clients refuse the whole list.
                *field = Value::Object(JsonObject::new());
            }
            if let Some(inner) = field.as_object_mut() {
                tidy(inner);
            }
        }
    }
    for name in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(name) {
            tidy(inner);
        }
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(Value::Array(inner)) = schema.get_mut(name) {
            inner.iter_mut().filter_map(Value::as_object_mut).for_each(tidy);
        }
    }
}
