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
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_markdown::control::{plain, plain_lines};
use sidenote_store::{EarlierCall, Intent, Proposal, ProposalState, Role, Store};

use crate::arguments::{self, UnknownArgument};
use crate::error_text::{self, ServedTools, message_for_agent, without_root};
use crate::{reply_limit, resources};

/// The argument that names an operation, so that the caller can repeat the call. Every tool that writes accepts it.
const OPERATION_ARGUMENT: &str = "operation_id";
/// The argument that makes a proposal of a change. Every tool that only changes notes by a plan accepts it.
const PROPOSE_ARGUMENT: &str = "propose";
/// The largest number of files that the answer to a repeated call names.
const MAX_FILES: usize = 100;

/// The effect of a tool on the notes, from which its annotations are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
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

impl Effect {
    /// Returns all hints. A tool that only reads destroys nothing, and the same call again does the same.
    fn all_hints(self) -> ToolAnnotations {
        let is_idempotent = !matches!(self, Self::Additive | Self::Destructive);
        let annotations = self.annotations().idempotent(is_idempotent);
        annotations.destructive(matches!(self, Self::IdempotentDestructive | Self::Destructive))
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
pub struct Answer {
    parts: Vec<AnswerPart>,
    structured: Option<Value>,
    is_error: bool,
    /// Whether the tool itself bounds the answer, so that it is not cut.
    is_whole: bool,
}

impl Answer {
    /// Answers with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![AnswerPart::Text(text.into())], ..Self::default() }
    }

    /// Answers a failed call with an error message.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Appends notices, each as a text block of its own, so that the first block stays as it is.
    pub fn with_notices(mut self, notices: impl IntoIterator<Item = String>) -> Self {
        self.parts.extend(notices.into_iter().map(|notice| AnswerPart::Text(format!("notice: {notice}"))));
        self
    }

    /// Answers with JSON as text, on one line.
    ///
    /// # Errors
    /// `Internal` if the value cannot be written as JSON.
    pub fn json(value: &impl Serialize) -> Result<Self> {
        let value = to_json(value)?;
        Ok(Self { parts: vec![AnswerPart::Json(value, false)], ..Self::default() })
    }

    /// Answers with JSON as text, indented by two spaces.
    ///
    /// # Errors
    /// `Internal` if the value cannot be written as JSON.
    pub fn pretty_json(value: &impl Serialize) -> Result<Self> {
        let value = to_json(value)?;
        Ok(Self { parts: vec![AnswerPart::Json(value, true)], ..Self::default() })
    }

    /// Exempts the answer from the limit of its length. The tool must have a bound of its own.
    pub fn whole(mut self) -> Self {
        self.is_whole = true;
        self
    }

    /// Adds the structured data of the answer.
    ///
    /// # Errors
    /// `Internal` if the value cannot be written as JSON.
    pub fn with_structured(mut self, value: &impl Serialize) -> Result<Self> {
        self.structured = Some(to_json(value)?);
        Ok(self)
    }

    /// Returns all texts and data of the answer, one after the other, by which its length is measured.
    pub fn sent(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            AnswerPart::Text(text) | AnswerPart::Image(text, _) => text.clone(),
            AnswerPart::Json(value, _) => value.to_string(),
        });
        parts.chain(self.structured.iter().map(Value::to_string)).collect()
    }

    /// Appends those of some notices that no block has yet, as [`Answer::with_notices`] does.
    fn with_missing_notices(self, notices: Vec<String>) -> Self {
        let has = |notice: &str| {
            self.parts.iter().any(|part| match part {
                AnswerPart::Text(text) => text.contains(notice),
                AnswerPart::Json(value, _) => value.to_string().contains(notice),
                AnswerPart::Image(..) => false,
            })
        };
        let missing: Vec<String> = notices.into_iter().filter(|notice| !has(notice)).collect();
        self.with_notices(missing)
    }

    /// Appends a text block.
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(AnswerPart::Text(text.into()));
        self
    }

    /// Appends an image block.
    pub fn with_image(mut self, bytes: &[u8], media_type: &'static str) -> Self {
        self.parts.push(AnswerPart::Image(STANDARD.encode(bytes), media_type));
        self
    }

    /// Answers a failed call with the message and hint of its error. The hint names only tools that are served.
    pub fn from_error(error: &Error, served: &ServedTools) -> Self {
        Self::error(message_for_agent(error, |tool| served.has(tool)))
    }

    /// Returns whether the call has failed.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Leaves a folder out of all texts of the answer.
    pub fn without(mut self, root: &str) -> Self {
        for part in &mut self.parts {
            match part {
                AnswerPart::Text(text) if text.contains(root) => *text = without_root(text, root),
                AnswerPart::Text(_) | AnswerPart::Image(..) => {}
                AnswerPart::Json(value, _) => leave_out(value, root),
            }
        }
        self.structured.iter_mut().for_each(|value| leave_out(value, root));
        self
    }

    /// Answers a failed call with JSON as text, on one line.
    ///
    /// # Errors
    /// `Internal` if the value cannot be written as JSON.
    pub fn json_error(value: &impl Serialize) -> Result<Self> {
        Ok(Self { is_error: true, ..Self::json(value)? })
    }

    /// Encodes the answer for the journal, from which a repeated call is answered.
    fn to_journal(&self) -> Value {
        let parts = self.parts.iter().map(|part| match part {
            AnswerPart::Text(text) => json!({ "text": text }),
            AnswerPart::Json(value, is_pretty) => json!({ "json": value, "pretty": is_pretty }),
            AnswerPart::Image(_, media_type) => {
                json!({ "text": format!("an image ({media_type}) was here") })
            }
        });
        let parts = parts.collect::<Vec<_>>();
        json!({ "parts": parts, "structured": self.structured, "whole": self.is_whole })
    }

    /// Answers a repeated call with the answer of the first one, or with the files that it changed if that answer is lost.
    fn from_earlier_call(earlier: EarlierCall) -> Self {
        match earlier {
            EarlierCall::Answered(mut answer) => {
                let encoded = answer.get("parts").and_then(Value::as_array).into_iter().flatten();
                let decode = |part: &Value| match (part.get("text").and_then(Value::as_str), part.get("json"))
                {
                    (Some(text), _) => Some(AnswerPart::Text(text.to_owned())),
                    (None, Some(value)) => {
                        Some(AnswerPart::Json(value.clone(), part.get("pretty") == Some(&Value::Bool(true))))
                    }
                    (None, None) => None,
                };
                let parts = encoded.filter_map(decode).collect();
                let is_whole = answer.get("whole") == Some(&Value::Bool(true));
                let structured =
                    answer.get_mut("structured").map(Value::take).filter(|value| !value.is_null());
                Self { parts, structured, is_error: false, is_whole }
            }
            EarlierCall::Committed(events) => {
                let files = events.iter().flat_map(|event| &event.files).map(|file| file.end().to_string());
                let files: Vec<String> = files.take(MAX_FILES).collect();
                let operation = events.first().map(|event| event.id.clone());
                let notices = ["this was done by an earlier call of the same operation"];
                let structured = json!({
                    "applied": true, "path": files.first(), "operation": operation, "files": files, "notices": notices,
                });
                let text = format!("done before, by the same operation: {}", files.join(", "));
                Self { structured: Some(structured), ..Self::text(text) }
            }
        }
    }

    /// Converts the answer to a result of the protocol. An answer over the limit of length is cut, and an additional block
    /// says so.
    pub fn into_result(mut self) -> CallToolResult {
        if self.is_error {
            for part in &mut self.parts {
                match part {
                    AnswerPart::Text(text) => *text = plain_lines(text),
                    AnswerPart::Json(value, _) => error_text::replace_controls(value),
                    AnswerPart::Image(..) => {}
                }
            }
            self.structured.iter_mut().for_each(error_text::replace_controls);
        }
        let is_limited = !self.is_whole;
        let mut is_cut = is_limited && self.structured.as_mut().is_some_and(reply_limit::limit_value);
        let mut content = Vec::new();
        for part in self.parts {
            match part {
                AnswerPart::Text(mut text) => {
                    is_cut |= is_limited && reply_limit::limit_text(&mut text);
                    content.push(ContentBlock::text(text));
                }
                AnswerPart::Json(mut value, is_pretty) => {
                    is_cut |= is_limited && reply_limit::limit_value(&mut value);
                    let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
                    content.push(ContentBlock::text(text));
                }
                AnswerPart::Image(data, media_type) => content.push(ContentBlock::image(data, media_type)),
            }
        }
        if is_cut {
            content.push(ContentBlock::text(reply_limit::CUT_NOTICE));
        }
        let mut result =
            if self.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = self.structured;
        result
    }
}

/// Returns the notice for an answer from an index that is behind the vault.
fn stale_notice(store: &Store) -> String {
    if store.lookup().is_cut_off() {
        return "notice: the database of the team cannot be reached, so the latest changes of others may be missing from \
                this answer, and changes fail; ask again in a moment"
            .to_owned();
    }
    let files = store.lookup().behind();
    let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    format!(
        "notice: the index is behind: {files} that changed last may be missing from this answer; ask again in a moment"
    )
}

/// Converts a value of a reply to JSON.
///
/// # Errors
/// `Internal` if the value cannot be written as JSON.
pub fn to_json(value: &impl Serialize) -> Result<Value> {
    serde_json::to_value(value)
        .map_err(|error| Error::internal("cannot write the reply as JSON").with_source(error))
}

/// Other names of arguments, which agents know from other tools: pairs of alias and argument. They hold for each of our tools
/// that has the argument, and none of the name of the alias.
const COMMON_ALIASES: [(&str, &str); 20] = [
    ("tag", "tags"),
    ("note_type", "type"),
    ("max_results", "limit"),
    ("top_k", "limit"),
    ("file", "note"),
    ("note_path", "note"),
    ("note_id", "note"),
    ("folder", "path"),
    ("path", "folder"),
    ("heading", "section"),
    ("section", "heading"),
    ("property", "key"),
    ("old_text", "old"),
    ("old_string", "old"),
    ("new_text", "text"),
    ("new_string", "text"),
    ("destination", "to"),
    ("new_name", "to"),
    ("start_line", "first_line"),
    ("end_line", "last_line"),
];

/// The arguments of our tools that name notes or folders.
const NOTE_ARGUMENTS: [&str; 11] =
    ["note", "notes", "from", "to", "a", "b", "around", "into", "folder", "path", "paths"];

/// Makes the title of a tool from its name.
fn title_of(name: &str) -> String {
    let mut title = name.replace('_', " ");
    title.get_mut(..1).into_iter().for_each(str::make_ascii_uppercase);
    title
}

type Handler = dyn Fn(&Store, JsonObject) -> Result<Answer> + Send + Sync;

/// A tool that an agent can call.
pub struct Tool {
    /// The name of the tool, unique among the tools of a server.
    pub name: &'static str,
    /// What a call does to the vault.
    pub effect: Effect,
    description: &'static str,
    example: &'static str,
    /// The schema of the arguments, with the keys of [`arguments`].
    input: Arc<JsonObject>,
    output: Option<Arc<JsonObject>>,
    aliases: &'static [(&'static str, &'static str)],
    is_strict: bool,
    is_proposable: bool,
    /// The title, if it is not made from the name.
    title: Option<&'static str>,
    /// Whether all hints are declared, also those that say what a client assumes anyway.
    has_all_hints: bool,
    format_error: fn(&Error, &ServedTools) -> Answer,
    handler: Box<Handler>,
}

impl Tool {
    /// Creates a tool. `example` is the arguments of a valid call as JSON; the answer to an invalid call quotes it.
    pub fn new<I: DeserializeOwned + JsonSchema + 'static>(
        name: &'static str,
        effect: Effect,
        description: &'static str,
        example: &'static str,
        handler: fn(&Store, I) -> Result<Answer>,
    ) -> Self {
        let input = Arc::new(schema_of::<I>());
        let schema = Arc::clone(&input);
        let parse_and_run = move |store: &Store, arguments: JsonObject| {
            let input = I::deserialize(&arguments).map_err(|error| {
                let mismatch = error_text::schema_mismatch(&schema, &arguments);
                let mismatch = mismatch.unwrap_or_else(|| error.to_string());
                Error::invalid(format!("{name}: {mismatch}")).with_hint(format!("A valid call: {example}"))
            })?;
            handler(store, input)
        };
        let handler = Box::new(parse_and_run);
        let (output, aliases, is_strict, is_proposable) = (None, [].as_slice(), false, false);
        let format_error = Answer::from_error;
        Self {
            name,
            effect,
            description,
            example,
            input,
            output,
            aliases,
            is_strict,
            is_proposable,
            title: None,
            has_all_hints: false,
            format_error,
            handler,
        }
    }

    /// Declares that the answers have structured data. The output schema only says that it is an object: a longer schema would
    /// take tokens of every conversation.
    pub fn with_structured_output(mut self) -> Self {
        self.output = Some(Arc::new(JsonObject::from_iter([("type".to_owned(), Value::from("object"))])));
        self
    }

    /// Declares the whole schema of the structured data, where clients of another server expect it.
    pub fn with_output_schema(mut self, schema: JsonObject) -> Self {
        self.output = Some(Arc::new(schema));
        self
    }

    /// Declares a title and all hints, as another server does.
    pub fn described_as(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self.has_all_hints = true;
        self
    }

    /// Accepts other names of arguments, given as pairs of alias and argument. The schema does not list them.
    pub fn with_aliases(mut self, aliases: &'static [(&'static str, &'static str)]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Makes the tool reject unknown arguments, and accept the URI of a resource wherever an argument names a note.
    pub fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Makes the tool accept the argument `propose`: a reason, or true. Its change then waits for the user.
    pub fn proposable(mut self) -> Self {
        self.is_proposable = true;
        self
    }

    /// Sets how errors are converted to answers.
    pub fn with_error_format(mut self, format_error: fn(&Error, &ServedTools) -> Answer) -> Self {
        self.format_error = format_error;
        self
    }

    /// Returns the role that a person needs to call the tool.
    pub fn needed_role(&self) -> Role {
        if self.effect == Effect::ReadOnly { Role::Reader } else { Role::Writer }
    }

    /// Returns the definition of the tool for clients.
    pub fn definition(&self) -> rmcp::model::Tool {
        let input = Arc::new(published(&self.input));
        let mut tool = rmcp::model::Tool::new(self.name, self.description, input);
        tool.title = Some(self.title.map_or_else(|| title_of(self.name), str::to_owned));
        tool.output_schema.clone_from(&self.output);
        tool.annotations =
            Some(if self.has_all_hints { self.effect.all_hints() } else { self.effect.annotations() });
        tool
    }

    /// Runs a call and returns its answer, also where the call fails. `operation_id` is the caller's name of the operation: a
    /// repeated call with the same one gets the first answer.
    pub fn call(
        &self,
        store: &Store,
        mut arguments: JsonObject,
        operation_id: Option<String>,
        served: &ServedTools,
    ) -> Answer {
        let common: &arguments::Aliases = if self.is_strict { &COMMON_ALIASES } else { &[] };
        let aliases = [self.aliases, common];
        let root = store.root().to_str().unwrap_or_default();
        if self.is_strict {
            // A folder must be relative before it is normalized.
            aliases.iter().for_each(|set| arguments::rename_aliases(&self.input, set, &mut arguments));
            for name in NOTE_ARGUMENTS {
                arguments.get_mut(name).into_iter().for_each(|value| resources::to_vault_paths(root, value));
            }
        }
        arguments::normalize(&self.input, &aliases, &mut arguments);
        if self.is_strict {
            // Each edit of a batch names a note.
            let edits = arguments.get_mut("edits").and_then(Value::as_array_mut).into_iter().flatten();
            edits
                .filter_map(|edit| edit.get_mut("note"))
                .for_each(|value| resources::to_vault_paths(root, value));
        }
        let is_read_only = self.effect == Effect::ReadOnly;
        if let Some(reason) =
            arguments.get(PROPOSE_ARGUMENT).and_then(proposal_reason).filter(|_| self.is_proposable)
        {
            arguments.remove(PROPOSE_ARGUMENT);
            arguments.remove(OPERATION_ARGUMENT);
            return self.propose(&store.proposing(), arguments, &reason, served);
        }
        if self.is_proposable {
            arguments.remove(PROPOSE_ARGUMENT);
        }
        // A tool that reads can be called again anyway.
        let argument = arguments.remove(OPERATION_ARGUMENT).filter(|_| !is_read_only);
        let operation_id = match argument {
            Some(Value::String(id)) => Some(id).filter(|id| !id.is_empty()),
            Some(Value::Number(id)) => Some(id.to_string()),
            Some(other) => {
                return Answer::error(format!(
                    "{OPERATION_ARGUMENT} is {other}. Give a string, such as a UUID"
                ));
            }
            None => operation_id.filter(|_| !is_read_only),
        };
        let Some(operation_id) = operation_id else {
            let store = store.for_call(None);
            let mut answer = self.answer_or_propose(&store, arguments, served);
            answer = answer.with_missing_notices(store.calls().take_uncommitted());
            if is_read_only && store.lookup().behind() > 0 && !answer.is_error {
                answer.parts.push(AnswerPart::Text(stale_notice(&store)));
            }
            return answer;
        };
        let call = Value::Array(vec![Value::from(self.name), Value::Object(arguments.clone())]).to_string();
        let store = store.for_call(Some((&operation_id, &call)));
        let calls = store.calls();
        let _lock = calls.alone();
        let earlier =
            |store: &Store| store.calls().earlier().map(|earlier| earlier.map(Answer::from_earlier_call));
        match earlier(&store) {
            Ok(None) => {}
            Ok(Some(answer)) => return answer,
            Err(error) => return (self.format_error)(&error, served),
        }
        let answer = self.answer_or_propose(&store, arguments, served);
        let answer = answer.with_missing_notices(calls.take_uncommitted());
        if answer.is_error {
            // Another process may have run the operation while this one waited for the write lock.
            return earlier(&store.for_call(Some((&operation_id, &call)))).ok().flatten().unwrap_or(answer);
        }
        store.calls().keep_answer(answer.to_journal());
        answer
    }

    /// Runs a call whose changes are kept as proposals. The same call again finds the same proposal.
    fn propose(&self, store: &Store, arguments: JsonObject, reason: &str, served: &ServedTools) -> Answer {
        let unknown = arguments::unknown_arguments(&self.input, &arguments);
        if let Some(unknown) = unknown.first() {
            return (self.format_error)(&self.unknown_argument_error(unknown), served);
        }
        // What the tool says of a note that does not exist yet means nothing.
        let outcome = (self.handler)(store, arguments);
        match store.propose_planned(Some(reason)) {
            Err(error) => (self.format_error)(&error, served),
            Ok(made) => match (made.first(), outcome) {
                (Some(first), _) => {
                    proposed_answer(first).unwrap_or_else(|error| (self.format_error)(&error, served))
                }
                (None, Err(error)) => (self.format_error)(&error, served),
                (None, Ok(answer)) => {
                    answer.with_notices(["nothing was proposed, because nothing would change".to_owned()])
                }
            },
        }
    }

    /// Runs a call. What a person has to confirm by a rule becomes a proposal, where nothing else is done.
    fn answer_or_propose(&self, store: &Store, arguments: JsonObject, served: &ServedTools) -> Answer {
        if !self.is_proposable {
            return self.answer(store, arguments, served);
        }
        store.allow_proposals();
        let answer = self.answer(store, arguments, served);
        let made = store.propose_planned(None);
        let proposed = made.and_then(|made| made.first().map(proposed_answer).transpose());
        match proposed {
            Ok(proposed) => proposed.unwrap_or(answer),
            Err(error) => (self.format_error)(&error, served),
        }
    }

    fn answer(&self, store: &Store, arguments: JsonObject, served: &ServedTools) -> Answer {
        let unknown = arguments::unknown_arguments(&self.input, &arguments);
        if let Some(unknown) = unknown.first().filter(|_| self.is_strict) {
            return (self.format_error)(&self.unknown_argument_error(unknown), served);
        }
        let answer = (self.handler)(store, arguments);
        let mut answer = answer.unwrap_or_else(|error| (self.format_error)(&error, served));
        if self.effect != Effect::ReadOnly && !answer.is_error {
            answer = answer.with_notices(make_due_backup(store));
        }
        // Other servers ignore what they do not know, and so do the tools that take their place, but they say so.
        answer.with_notices(unknown.iter().map(|unknown| {
            format!(
                "{} has no argument {:?}, so it was ignored{}",
                self.name,
                unknown.place,
                unknown.suggestion()
            )
        }))
    }

    fn unknown_argument_error(&self, unknown: &UnknownArgument) -> Error {
        let UnknownArgument { place, known } = unknown;
        let what = format!("{} has no argument {place:?}{}", self.name, unknown.suggestion());
        Error::invalid(what).with_hint(format!(
            "It takes {}. A valid call: {}",
            known.join(", "),
            self.example
        ))
    }
}

/// Returns the reason of a proposal that an argument gives: a text, or a default for true. `None` for what asks for none.
fn proposal_reason(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.trim().is_empty() || text == "false" => None,
        Value::String(text) if text != "true" => Some(text.trim().to_owned()),
        Value::String(_) | Value::Bool(true) => Some("an agent asks for this change".to_owned()),
        _ => None,
    }
}

/// Tells an agent that its change waits.
fn proposed_answer(proposal: &Proposal) -> Result<Answer> {
    let fate = match proposal.state {
        ProposalState::Rejected => "was rejected by the user before, and is not proposed again",
        _ => "waits for the user, who accepts or rejects it",
    };
    let text = format!("not changed: the proposal {} {fate}\n{}", proposal.id, proposal.diff);
    Answer::text(text).with_structured(&json!({
        "applied": false, "proposal": proposal.id, "state": proposal.state.name(), "paths": proposal.paths(), "diff": proposal.diff,
    }))
}

/// Makes the backup that a change made due, such as that at every hundredth note, before the change is answered. Returns a
/// notice if it cannot be made.
fn make_due_backup(store: &Store) -> Option<String> {
    match store.upkeep().backup_if_due() {
        // Another thread or process is making it.
        Err(error) if error.kind() == ErrorKind::Conflict => None,
        Err(error) => Some(format!("the backup that is due was not made: {error}")),
        Ok(_) => None,
    }
}

// The purpose of a search of memories, as an argument.
#[allow(missing_docs, reason = "a doc comment would appear in every schema")]
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IntentInput {
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

/// Returns one line of a text reply. A line break in a name, a title or a property cannot begin another line, which would look
/// like another item.
pub fn text_line(text: &str) -> String {
    plain(text) + "\n"
}

/// Returns a number if it is within its bounds.
///
/// # Errors
/// `Invalid`, naming the argument and its bounds, if it is not.
pub fn within<T: PartialOrd + std::fmt::Display>(name: &str, value: T, min: T, max: T) -> Result<T> {
    if value >= min && value <= max {
        return Ok(value);
    }
    Err(Error::invalid(format!("{name} is {value}")).with_hint(format!("Give a number from {min} to {max}")))
}

/// The keys of a schema that clients see, in their order.
const SCHEMA_KEYS: [&str; 10] = [
    "type",
    "description",
    "enum",
    "properties",
    "required",
    "items",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
];

/// Returns a schema as clients see it.
fn published(schema: &JsonObject) -> JsonObject {
    let shown = |(key, value): (&&str, &Value)| {
        let value = match (*key, value) {
            ("properties", Value::Object(fields)) => fields
                .iter()
                .map(|(name, field)| {
                    (name.clone(), field.as_object().map_or(Value::Null, |field| published(field).into()))
                })
                .collect::<JsonObject>()
                .into(),
            ("items", Value::Object(item)) => published(item).into(),
            (_, value) => value.clone(),
        };
        ((*key).to_owned(), value)
    };
    SCHEMA_KEYS.iter().filter_map(|key| Some((key, schema.get(*key)?))).map(shown).collect()
}

/// Returns the schema of a type, as short as clients accept it.
fn schema_of<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let Value::Object(mut schema) = schema.to_value() else { return JsonObject::new() };
    simplify(&mut schema);
    // The doc comment of the type is for readers of the code.
    schema.remove("description");
    schema.entry("type").or_insert_with(|| Value::from("object"));
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    schema
}

/// Removes from a schema what means nothing to a client: titles, number formats that JSON Schema does not define, `null` of
/// optional fields, line breaks in descriptions.
fn simplify(schema: &mut JsonObject) {
    for name in ["$schema", "title", "format"] {
        if schema.get(name).is_some_and(Value::is_string) {
            schema.remove(name);
        }
    }
    // All integers are counts.
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
    // This is the default of JSON Schema.
    if schema.get("additionalProperties") == Some(&Value::Bool(true)) {
        schema.remove("additionalProperties");
    }
    // Of two alternatives of which one is null, the other one replaces the list.
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
            if let Some(inner) = field.as_object_mut() {
                simplify(inner);
            }
        }
    }
    if let Some(Value::Object(inner)) = schema.get_mut("items") {
        simplify(inner);
    }
}

/// Leaves a folder out of all strings of a value.
fn leave_out(value: &mut Value, root: &str) {
    match value {
        Value::String(text) if text.contains(root) => *text = without_root(text, root),
        Value::Array(items) => items.iter_mut().for_each(|item| leave_out(item, root)),
        Value::Object(fields) => fields.values_mut().for_each(|field| leave_out(field, root)),
        _ => {}
    }
}
