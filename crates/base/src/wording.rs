//! Hints and notices with one form for a person at the command line and one for an agent, because they name commands,
//! flags or tools; and one for the web page, where it has a button instead.

use std::fmt;

use serde::{Serialize, Serializer};

/// A sentence in a form for a person, a form for an agent, and perhaps one for the web page.
///
/// The form for an agent names no command and no flag. A tool is named in a part of its own, which is shown only
/// if the server has that tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wording {
    person: String,
    /// The form for a person if not given.
    agent: Option<String>,
    /// The form for a person if not given.
    page: Option<String>,
    tool: Option<Box<(&'static str, String)>>,
}

impl Wording {
    /// Returns a sentence with one form for a person and one for an agent; an empty form says nothing.
    pub fn new(person: impl Into<String>, agent: impl Into<String>) -> Self {
        Self { person: person.into(), agent: Some(agent.into()), page: None, tool: None }
    }

    /// Gives the form for somebody who sees the web page.
    #[must_use]
    pub fn with_page(mut self, page: impl Into<String>) -> Self {
        self.page = Some(page.into());
        self
    }

    /// Adds a part for an agent whose server has `tool`.
    #[must_use]
    pub fn with_tool(mut self, tool: &'static str, says: impl Into<String>) -> Self {
        self.tool = Some(Box::new((tool, says.into())));
        self
    }

    /// Prepends a clause to all forms.
    #[must_use]
    pub fn after(self, before: &str) -> Self {
        let joined =
            |form: String| if form.is_empty() { before.to_owned() } else { format!("{before}; {form}") };
        self.each(joined)
    }

    /// Prepends text to all forms without a separator.
    #[must_use]
    pub fn led_by(self, beginning: &str) -> Self {
        let joined = |form: String| format!("{beginning}{form}");
        self.each(joined)
    }

    /// Appends a clause to all forms.
    #[must_use]
    pub fn before(self, after: &str) -> Self {
        let joined =
            |form: String| if form.is_empty() { after.to_owned() } else { format!("{form}; {after}") };
        self.each(joined)
    }

    /// Changes each form.
    fn each(self, change: impl Fn(String) -> String) -> Self {
        let (agent, page) = (self.agent.map(&change), self.page.map(&change));
        Self { person: change(self.person), agent, page, tool: self.tool }
    }

    /// Returns the form for somebody who sees the web page.
    pub fn for_page(&self) -> &str {
        self.page.as_ref().unwrap_or(&self.person)
    }

    /// Returns the form for a person at the command line.
    pub fn for_person(&self) -> &str {
        &self.person
    }

    /// Returns the form for an agent whose server has the tools that `is_served` accepts; empty if the agent can do
    /// nothing.
    pub fn for_agent(&self, is_served: impl Fn(&str) -> bool) -> String {
        let mut said = self.agent.as_ref().unwrap_or(&self.person).clone();
        if let Some((_, tool)) = self.tool.as_deref().filter(|(name, _)| is_served(name)) {
            if !said.is_empty() {
                said.push_str("; ");
            }
            said.push_str(tool);
        }
        said
    }
}

impl From<String> for Wording {
    fn from(person: String) -> Self {
        Self { person, ..Self::default() }
    }
}

impl From<&str> for Wording {
    fn from(person: &str) -> Self {
        person.to_owned().into()
    }
}

impl fmt::Display for Wording {
    /// Writes the form for a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.person)
    }
}

impl PartialEq<str> for Wording {
    fn eq(&self, other: &str) -> bool {
        self.person == other
    }
}

impl PartialEq<&str> for Wording {
    fn eq(&self, other: &&str) -> bool {
        self.person == *other
    }
}

impl Serialize for Wording {
    /// Writes the form for a person, because only commands serialize whole replies.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.person)
    }
}
