//! The audit of a vault: what its journal says of changes, refused calls, roles and blocks, each with its person.

use serde::Serialize;
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_journal::event::{Event, TouchedFile};
use sidenote_markdown::path::is_below;
use sidenote_store::person_of;

use crate::postgres::Database;

/// The most files and folders of one event that are named to a person.
const MAX_PLACES: usize = 50;

/// What an audit selects.
#[derive(Debug, Clone, Default)]
pub struct AuditRequest {
    /// Only events at or after this time.
    pub since: Option<Timestamp>,
    /// Only events of this person, or about it: `issuer#subject`, the subject, the shown name, or `group:NAME`.
    pub who: Option<String>,
}

/// One event of an audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AuditEvent {
    /// The event, as the journal has it.
    pub event: Event,
}

impl AuditEvent {
    fn text(&self, name: &str) -> Option<&str> {
        self.event.more.get(name).and_then(Value::as_str)
    }

    /// Names the vault in the event, for a list of several.
    pub fn set_vault(&mut self, name: &str) {
        self.event.more.insert("vault".to_owned(), name.into());
    }

    /// Returns the vault that [`Self::set_vault`] named.
    pub fn vault(&self) -> &str {
        self.text("vault").unwrap_or_default()
    }

    fn caller(&self) -> Option<&Map<String, Value>> {
        self.event.more.get("caller").and_then(Value::as_object)
    }

    fn of_caller(&self, name: &str) -> Option<&str> {
        self.caller()?.get(name)?.as_str()
    }

    /// Returns who did it: the person, else the role of the database, else the client.
    pub fn actor(&self) -> String {
        let other = || self.text("operator").or_else(|| self.text("client")).unwrap_or_default().to_owned();
        person_of(&self.event).unwrap_or_else(other)
    }

    /// Returns the client by which a person did it: as it calls itself, else its id at the identity provider.
    pub fn client(&self) -> &str {
        let Some(client_id) = self.caller().map(|_| self.of_caller("client_id")) else { return "" };
        self.text("client").or(client_id).unwrap_or_default()
    }

    /// Returns what it was done with: the tool, or nothing for an operator.
    pub fn tool(&self) -> &str {
        self.text("tool").unwrap_or_default()
    }

    /// Returns what it was done to: the person and role of a grant, the reason of a refusal, or all files and folders.
    pub fn object(&self) -> String {
        match (self.text("who"), self.text("role").or_else(|| self.text("role_before"))) {
            (Some(who), Some(role)) => format!("{who} {role}"),
            (Some(who), None) => who.to_owned(),
            _ if let Some(name) = self.text("name_before") => {
                format!("{name} -> {}", self.text("name").unwrap_or_default())
            }
            _ if let Some(quotas) = self.event.more.get("quotas") => quotas.to_string(),
            _ if let Some(reason) = self.text("reason") => reason.to_owned(),
            _ => self.places().join(", "),
        }
    }

    /// Lists the folders that moved, and the files of the change. Files of a moved folder are not named if nothing else
    /// happened to them.
    fn places(&self) -> Vec<String> {
        let moved = self.event.folders.iter().map(|folder| format!("{} -> {}", folder.from, folder.to));
        let in_moved = |file: &&TouchedFile| {
            let from = file.path.to_string();
            file.to.is_some()
                && file.before == file.after
                && self.event.folders.iter().any(|folder| is_below(&from, folder.from.as_str()))
        };
        let files = self.event.files.iter().filter(|file| !in_moved(file)).map(|file| match &file.to {
            Some(to) => format!("{} -> {to}", file.path),
            None => file.path.to_string(),
        });
        let mut places: Vec<String> = moved.chain(files).collect();
        let more = places.len().saturating_sub(MAX_PLACES);
        if more > 0 {
            places.truncate(MAX_PLACES);
            places.push(format!("and {more} more"));
        }
        places
    }

    /// Returns whether a person did it, or it was done to the person.
    fn is_of(&self, who: &str) -> bool {
        let person = format!(
            "{}#{}",
            self.of_caller("issuer").unwrap_or_default(),
            self.of_caller("subject").unwrap_or_default()
        );
        person == who
            || ["subject", "name"].iter().any(|name| self.of_caller(name) == Some(who))
            || self.text("who").is_some_and(|about| {
                about == who || about.split_once('#').is_some_and(|(_, subject)| subject == who)
            })
    }
}

/// Lists the events of a vault that name a person, the oldest first, and the changes that name none.
///
/// # Errors
/// `NotFound` if there is no such vault; `Io` if the database cannot be reached; `Corrupt` if an event cannot be read.
pub fn audit(database: &Database, vault: &str, request: &AuditRequest) -> Result<Vec<AuditEvent>> {
    let id = database.vault_id(vault)?;
    let mut found = Vec::new();
    database.audit_lines(id, request.since, |line| {
        let event: Event = serde_json::from_str(line).map_err(|error| {
            Error::corrupt("the database has an event that cannot be read").with_source(error)
        })?;
        let event = AuditEvent { event };
        let is_recent = request.since.is_none_or(|since| event.event.at >= since);
        if is_recent && request.who.as_deref().is_none_or(|who| event.is_of(who)) {
            found.push(event);
        }
        Ok(())
    })?;
    found.sort_by(|a, b| (a.event.at, &a.event.id).cmp(&(b.event.at, &b.event.id)));
    // What was read before a connection was lost is read again.
    found.dedup_by(|a, b| a.event.id == b.event.id);
    Ok(found)
}
