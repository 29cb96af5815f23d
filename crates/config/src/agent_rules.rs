//! The rules about agents, `[[agents]]` in the user's settings: what an agent may read and write, and by which tools.
//! `vault/fence` compiles the patterns, and `store/agents` applies the rules.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sidenote_base::error::{Error, Result};

use crate::home::expand_home;

/// What a rule allows and forbids the agents that it names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRule {
    /// The agent: the name of a client, a session or a token, with `*` for any characters. `*` alone names every agent.
    pub name: String,
    /// The folder of the vault for which the rule is: an absolute path, or one from `~/` on. Every vault without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault: Option<String>,
    /// The patterns of the paths that the agent may read; every path without it. `!` before a pattern takes its paths out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<String>>,
    /// The patterns of the paths that the agent may change; every path that it may read without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
    /// The tools and toolsets that the agent is offered; every served one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The kinds of changes that a person has to confirm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirm: Vec<ConfirmedChange>,
    /// The most changes in one minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// The most bytes that a note has after a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_note_bytes: Option<u64>,
    /// What a change does with links to its notes in notes that the agent may not change.
    #[serde(default, skip_serializing_if = "OutsideLinks::is_default")]
    pub links: OutsideLinks,
}

/// A kind of change that a person has to confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfirmedChange {
    /// A new file.
    Create,
    /// Another content of a file.
    Edit,
    /// Another path of a file.
    Move,
    /// A file that goes to the trash.
    Delete,
    /// A file that is removed and not kept.
    Permanent,
}

/// What a change does that needs other links in notes that the agent may not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutsideLinks {
    /// The change is refused.
    #[default]
    Refuse,
    /// The links are rewritten, and nothing else of those notes.
    Rewrite,
}

impl ConfirmedChange {
    /// Returns the name of the kind in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Edit => "edit",
            Self::Move => "move",
            Self::Delete => "delete",
            Self::Permanent => "permanent",
        }
    }
}

impl OutsideLinks {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl AgentRule {
    /// Returns whether the rule is for an agent that has any of these names. Case is ignored.
    pub fn names_any(&self, names: &[&str]) -> bool {
        let pattern = self.name.to_lowercase();
        names.iter().any(|name| matches_name(&pattern, &name.to_lowercase())) || pattern == "*"
    }

    /// Makes the rule of an agent for which several rules hold: what each of them forbids. The patterns of `read` and `write` and the
    /// `tools` are left out, because two lists cannot be made one; those who use them ask each rule.
    #[must_use]
    pub fn together(rules: &[&Self]) -> Self {
        let mut all = Self::default();
        for rule in rules {
            let gap = if all.name.is_empty() { "" } else { " and " };
            all.name.push_str(gap);
            all.name.push_str(&rule.name);
            all.confirm.extend(&rule.confirm);
            all.rate = all.rate.into_iter().chain(rule.rate).min();
            all.max_note_bytes = all.max_note_bytes.into_iter().chain(rule.max_note_bytes).min();
        }
        let rewrites = !rules.is_empty() && rules.iter().all(|rule| rule.links == OutsideLinks::Rewrite);
        all.links = if rewrites { OutsideLinks::Rewrite } else { OutsideLinks::Refuse };
        all
    }

    /// Says what the rule allows, as the rest of a sentence about an agent.
    pub fn describe(&self) -> String {
        let listed = |patterns: &[String]| match patterns {
            [] => "nothing".to_owned(),
            patterns => patterns.join(", "),
        };
        let reads = self.read.as_deref().map_or_else(|| "everything".to_owned(), listed);
        let writes = self.write.as_deref().map_or_else(|| "what it reads".to_owned(), listed);
        let mut text = format!("reads {reads}; changes {writes}");
        if let Some(tools) = &self.tools {
            text.push_str(&format!("; has the tools {}", listed(tools)));
        }
        if !self.confirm.is_empty() {
            let kinds: Vec<&str> = self.confirm.iter().map(|kind| kind.name()).collect();
            text.push_str(&format!("; a person confirms {}", kinds.join(", ")));
        }
        if let Some(rate) = self.rate {
            text.push_str(&format!("; at most {rate} changes a minute"));
        }
        if let Some(bytes) = self.max_note_bytes {
            text.push_str(&format!("; notes of at most {bytes} bytes"));
        }
        text
    }

    /// Refuses a rule without a name, a name with which nothing is meant, and a limit that allows nothing.
    pub(crate) fn checked(self) -> Result<Self> {
        let wrong = |what: &str| {
            Err(Error::invalid(format!("[[agents]] {:?} {what}", self.name)).with_hints(
                "`sidenote config show` tells which file has it",
                "ask the user to correct the settings",
            ))
        };
        if self.name.trim().is_empty() {
            return wrong("has no name; write the name of a client, or * for every agent");
        }
        let vault = self.vault.as_deref().map(Path::new);
        if vault.is_some_and(|vault| !expand_home(vault).is_absolute()) {
            return wrong(
                "has a vault that is not absolute; write its whole path, or one that begins with ~/",
            );
        }
        if self.rate == Some(0) {
            return wrong("has the rate 0; write = [] forbids all changes");
        }
        if self.max_note_bytes == Some(0) {
            return wrong("has max_note_bytes 0; write = [] forbids all changes");
        }
        Ok(self)
    }
}

/// Says whether a name matches a pattern in which `*` stands for any characters.
fn matches_name(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{AgentRule, ConfirmedChange, OutsideLinks, matches_name};

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("*", "claude-code", true),
            ("claude*", "claude-code", true),
            ("claude*", "not-claude", false),
            ("*-code", "claude-code", true),
            ("c*e-c*e", "claude-code", true),
            ("claude", "claude-code", false),
            ("a*a", "a", false),
            ("", "", true),
        ] {
            assert_eq!(matches_name(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn of_several_rules_each_forbids_what_it_does() {
        let rule = |text: &str| toml::from_str::<AgentRule>(text).unwrap();
        let wide = rule("name = 'a'\nlinks = 'rewrite'");
        let narrow = rule("name = '*'\nconfirm = ['delete']\nrate = 3\nmax_note_bytes = 10");
        let both = AgentRule::together(&[&wide, &narrow]);
        assert_eq!((both.name.as_str(), both.rate, both.max_note_bytes), ("a and *", Some(3), Some(10)));
        assert_eq!((both.confirm, both.links), (vec![ConfirmedChange::Delete], OutsideLinks::Refuse));
        assert_eq!(AgentRule::together(&[&wide]).links, OutsideLinks::Rewrite);
    }

    #[test]
    fn a_rule_without_a_name_or_with_an_empty_limit_is_refused() {
        let rule = |text: &str| toml::from_str::<AgentRule>(text).unwrap().checked();
        assert!(rule("name = ' '").is_err());
        assert!(rule("name = 'x'\nrate = 0").is_err());
        assert!(rule("name = 'x'\nmax_note_bytes = 0").is_err());
        assert!(rule("name = 'x'\nread = []").is_ok());
    }
}
