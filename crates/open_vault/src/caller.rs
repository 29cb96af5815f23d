//! The person for whom a request is made, as an identity provider names them, and the role of a person in a vault.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sidenote_base::error::{Error, Result};
use sidenote_journal::event::Event;

/// The operation of journal events of calls that were refused because their caller lacks the right to them.
pub const OP_REFUSED: &str = "refused";

/// What a person may do in a vault of a team. A later role includes the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads notes.
    Reader,
    /// Reads and changes notes and attachments.
    Writer,
    /// Also changes settings in the vault.
    Admin,
}

impl Role {
    const ALL: [(&str, Self); 3] =
        [("reader", Self::Reader), ("writer", Self::Writer), ("admin", Self::Admin)];

    /// Parses the name of a role.
    ///
    /// # Errors
    /// `Invalid` if no role has this name.
    pub fn parse(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, role)| *role).ok_or_else(|| {
            Error::invalid(format!("there is no role {name:?}")).with_hint("use reader, writer or admin")
        })
    }

    /// Returns the name of the role.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Writer => "writer",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The person for whom a request is made. Its token was checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The identity provider that vouches for the person.
    pub issuer: String,
    /// The id of the person at the provider.
    pub subject: String,
    /// The name that people know, such as a mail address.
    pub name: Option<String>,
    /// The id of the program that acts for the person, as the provider knows it.
    pub client_id: Option<String>,
}

impl Caller {
    /// Returns the form in which rights name the person.
    pub fn who(&self) -> String {
        format!("{}#{}", self.issuer, self.subject)
    }

    /// Returns the name that people know, or else the id of the person.
    pub fn shown(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.who())
    }

    /// Returns the fields for an event of the journal.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = json!({ "issuer": self.issuer, "subject": self.subject });
        for (key, value) in [("name", &self.name), ("client_id", &self.client_id)] {
            if let (Some(value), Some(fields)) = (value, fields.as_object_mut()) {
                fields.insert(key.to_owned(), Value::from(value.as_str()));
            }
        }
        fields
    }
}

/// The tool that is called, and the person for whom it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOrigin {
    /// The name of the tool.
    pub tool: String,
    /// The toolset that has the tool; `None` for what is no tool of MCP, such as a synchronisation.
    pub toolset: Option<String>,
    /// The person, where people log in.
    pub caller: Option<Caller>,
}

impl CallOrigin {
    /// Returns the fields for an event of the journal.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (String, Value)> {
        let caller = self.caller.as_ref().map(|caller| ("caller", caller.to_json()));
        let toolset = self.toolset.as_deref().map(|toolset| ("toolset", Value::from(toolset)));
        let tool = ("tool", Value::from(self.tool.as_str()));
        caller.into_iter().chain([tool]).chain(toolset).map(|(name, value)| (name.to_owned(), value))
    }
}

/// Returns the person who made the call of an event: the shown name, else `issuer#subject`. Returns `None` where nobody
/// logged in.
pub fn person_of(event: &Event) -> Option<String> {
    let caller = event.more.get("caller")?;
    let text = |name: &str| caller.get(name).and_then(Value::as_str);
    text("name").map(str::to_owned).or_else(|| Some(format!("{}#{}", text("issuer")?, text("subject")?)))
}

/// Lists what an event is about: the folders and files of a change, as `a` or `a -> b`, or the notes that were used or voted
/// for.
pub fn names_of(event: &Event) -> Vec<String> {
    let folders = event.folders.iter().map(|folder| format!("{}/ -> {}/", folder.from, folder.to));
    let files = event.files.iter().map(|file| match &file.to {
        Some(to) => format!("{} -> {to}", file.path),
        None => file.path.to_string(),
    });
    let notes = event.more.get("notes").and_then(Value::as_array).into_iter().flatten();
    let notes = notes.filter_map(|note| Some(note.get("path")?.as_str()?.to_owned()));
    folders.chain(files).chain(notes).collect()
}

/// Returns who made the call of an event: the person where people log in, else the agent. Returns `None` for what a person
/// did at the command line or the page.
pub fn actor_of(event: &Event) -> Option<String> {
    let client = || event.more.get("client").and_then(Value::as_str).map(str::to_owned);
    person_of(event).or_else(client)
}

/// Returns the tool of an event with its toolset, such as `edit_note (notes)`. Returns `None` where no tool was called.
pub fn tool_of(event: &Event) -> Option<String> {
    let text = |name: &str| event.more.get(name).and_then(Value::as_str);
    let tool = text("tool")?;
    Some(text("toolset").map_or_else(|| tool.to_owned(), |toolset| format!("{tool} ({toolset})")))
}
