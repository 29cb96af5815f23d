//! Several vaults in one server: which vault a request is for, and one answer of all.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, ErrorData, JsonObject};
use serde_json::{Value, json};

use crate::Server;
use crate::resources::{self, ChangeBroadcast, Shows};

/// The argument of every tool that names the vault.
pub(super) const ARGUMENT: &str = "vault";

/// The field of an answer by which a next call goes on.
const CURSOR: &str = "next_cursor";

/// The tools that look into all vaults if the call names none.
const OVER_ALL: [&str; 2] = ["search_notes", "recall"];

/// A vault of a server under its name.
#[derive(Clone)]
pub(super) struct NamedVault {
    pub(super) name: String,
    pub(super) server: Server,
}

/// The vaults for which a call is.
pub(super) enum Called<'v> {
    One(&'v NamedVault),
    All,
}

/// The vaults of a server that has several. The first is asked where a request names none.
#[derive(Clone, Default)]
pub(super) struct Vaults(Vec<NamedVault>);

impl Vaults {
    pub(super) fn new(vaults: Vec<NamedVault>) -> Self {
        Self(vaults)
    }

    /// Returns whether there are several vaults.
    pub(super) fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Lists the servers of the vaults.
    pub(super) fn servers(&self) -> impl Iterator<Item = &Server> {
        self.0.iter().map(|vault| &vault.server)
    }

    /// Lists the changes of each vault under its name.
    pub(super) fn broadcasts(&self) -> Vec<(String, ChangeBroadcast, Shows)> {
        let broadcast = |vault: &NamedVault| {
            (vault.name.clone(), vault.server.shared.changes.clone(), vault.server.shows())
        };
        self.0.iter().map(broadcast).collect()
    }

    /// Returns the vaults for another connection.
    pub(super) fn connection(&self) -> Self {
        let vaults = self.0.iter();
        Self(
            vaults
                .map(|vault| NamedVault { name: vault.name.clone(), server: vault.server.connection() })
                .collect(),
        )
    }

    fn find(&self, name: &str) -> Option<&NamedVault> {
        let name = name.trim();
        self.0.iter().find(|vault| vault.name.eq_ignore_ascii_case(name))
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|vault| vault.name.as_str()).collect()
    }

    /// Says in the instructions for clients which vaults there are.
    pub(super) fn instructions(&self) -> String {
        let first = self.0.first().map_or("", |vault| vault.name.as_str());
        format!(
            " This server has the vaults {}. Name one by the argument `vault`; without it, `search_notes` and `recall` look into \
             all, a handoff goes to the vault that has the name of its project, and everything else is done in {first}.",
            self.names().join(", ")
        )
    }

    /// Adds the argument that names the vault to the definition of a tool. The first tool of the list names the vaults: each other
    /// copy of the names would take tokens of every conversation.
    pub(super) fn add_argument(&self, tool: &mut rmcp::model::Tool, is_first: bool) {
        let mut schema = JsonObject::clone(&tool.input_schema);
        let mut argument = json!({ "type": "string" });
        if is_first && let Some(fields) = argument.as_object_mut() {
            fields.insert("enum".to_owned(), json!(self.names()));
        }
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            fields.insert(ARGUMENT.to_owned(), argument);
        }
        tool.input_schema = Arc::new(schema);
    }

    /// Takes the name of the vault out of the arguments of a call. Without one, the vault that has the name of the project of the
    /// call is meant.
    ///
    /// # Errors
    /// The text of an answer that names the vaults, for a name that is none of them.
    pub(super) fn called(&self, tool: &str, arguments: &mut JsonObject) -> Result<Called<'_>, String> {
        let given = match arguments.remove(ARGUMENT) {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name).filter(|name| !name.trim().is_empty()),
            Some(other) => {
                return Err(format!("{ARGUMENT} is {other}. Give one of {}", self.names().join(", ")));
            }
        };
        if let Some(name) = given {
            let found = self.find(&name).map(Called::One);
            return found.ok_or_else(|| {
                format!("there is no vault {name:?}. Give one of {}", self.names().join(", "))
            });
        }
        let project = arguments.get("project").and_then(Value::as_str);
        if let Some(vault) = project.and_then(|project| self.find(project)) {
            return Ok(Called::One(vault));
        }
        match self.0.first() {
            Some(first) if !OVER_ALL.contains(&tool) => Ok(Called::One(first)),
            _ => Ok(Called::All),
        }
    }

    /// Makes one answer of the answers of all vaults, in their order. Each text says of which vault it is, and so does each item
    /// of the structured data.
    pub(super) fn merged(&self, answers: Vec<CallToolResult>) -> CallToolResult {
        let mut content = Vec::new();
        let mut structured = JsonObject::new();
        let mut has_answer = false;
        for (vault, answer) in self.0.iter().zip(answers) {
            let answer = self.with_uris(vault, answer);
            let failed = answer.is_error == Some(true);
            has_answer |= !failed;
            content.push(ContentBlock::text(format!("In the vault {}:", vault.name)));
            content.extend(answer.content);
            let Some(Value::Object(fields)) = answer.structured_content else { continue };
            // A cursor goes on in one vault, whose text tells it.
            for (name, mut value) in fields.into_iter().filter(|(name, _)| name != CURSOR) {
                mark(&mut value, &vault.name);
                add(&mut structured, name, value);
            }
        }
        let mut merged =
            if has_answer { CallToolResult::success(content) } else { CallToolResult::error(content) };
        merged.structured_content = has_answer.then_some(Value::Object(structured));
        merged
    }

    /// Names the vault in the URIs of the structured data of an answer, unless it is the first. Texts of notes stay as they are.
    pub(super) fn with_uris(&self, vault: &NamedVault, mut answer: CallToolResult) -> CallToolResult {
        if self.0.first().is_some_and(|first| first.name == vault.name) {
            return answer;
        }
        answer.structured_content.iter_mut().for_each(|value| name_vault(value, &vault.name));
        answer
    }

    /// Returns the vault whose file a URI names: the first one without a name in the URI.
    ///
    /// # Errors
    /// The error of the protocol for the name of no vault.
    pub(super) fn of_uri(&self, uri: &str) -> Result<Option<&NamedVault>, ErrorData> {
        let Some(name) = resources::vault_of(uri) else { return Ok(self.0.first()) };
        if !self.are_several() {
            let text =
                format!("the URI names the vault {name:?}, and this server has one vault without a name");
            return Err(ErrorData::invalid_params(text, resources::error_data(uri)));
        }
        match self.find(name) {
            Some(vault) => Ok(Some(vault)),
            None => {
                let text = format!("there is no vault {name:?}. The vaults are {}", self.names().join(", "));
                Err(ErrorData::resource_not_found(text, resources::error_data(uri)))
            }
        }
    }

    /// Returns the vault after a vault.
    pub(super) fn after(&self, name: &str) -> Option<&NamedVault> {
        let at = self.0.iter().position(|vault| vault.name == name)?;
        self.0.get(at + 1)
    }
}

/// Names the vault in the URIs of a value.
fn name_vault(value: &mut Value, vault: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| name_vault(item, vault)),
        Value::Object(fields) => {
            if let Some(Value::String(uri)) = fields.get_mut("uri") {
                *uri = resources::in_vault(uri, vault);
            }
            fields.values_mut().for_each(|field| name_vault(field, vault));
        }
        _ => {}
    }
}

/// Says of each item of a list of which vault it is.
fn mark(value: &mut Value, vault: &str) {
    for item in value.as_array_mut().into_iter().flatten() {
        if let Some(fields) = item.as_object_mut() {
            fields.insert(ARGUMENT.to_owned(), json!(vault));
        }
    }
}

/// Adds a field of another answer: lists are joined, numbers added, texts put below each other, and truths are true if one is.
fn add(all: &mut JsonObject, name: String, value: Value) {
    match (all.get_mut(&name), value) {
        (None, value) => drop(all.insert(name, value)),
        // What the call asked for is the same in each.
        (Some(known), more) if *known == more && !more.is_number() => {}
        (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
        (Some(Value::String(known)), Value::String(more)) => {
            let gap = if known.is_empty() || more.is_empty() { "" } else { "\n" };
            known.push_str(gap);
            known.push_str(&more);
        }
        (Some(Value::Bool(known)), Value::Bool(more)) => *known |= more,
        (Some(known @ Value::Number(_)), Value::Number(more)) => {
            let sum = known.as_u64().zip(more.as_u64()).map(|(one, other)| one + other);
            *known = sum.map_or_else(|| known.clone(), Value::from);
        }
        (Some(_), _) => {}
    }
}
