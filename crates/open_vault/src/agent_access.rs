//! What the rule of an agent allows, as the services of a store ask for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_config::AgentRule;
use sidenote_markdown::path::NotePath;
use sidenote_vault::fence::PathRules;

use crate::Core;

/// A minute in milliseconds.
pub const MINUTE: i64 = 60_000;

/// What an agent may change, and the vault as it is for its owner.
#[derive(Debug)]
pub struct AgentAccess {
    /// The rule; the default, which allows everything, if no rule names the agent.
    pub rule: AgentRule,
    /// A path has to be in each of them.
    write: Vec<PathRules>,
    /// The vault with all its files, if the agent knows of a part only.
    pub owner: Option<Core>,
    /// The times of the changes of the last minute.
    changes: Mutex<VecDeque<Timestamp>>,
}

impl AgentAccess {
    /// Makes the access of agents with a rule. A path that the agent may change is in each list of patterns of `write`. `owner` is
    /// the vault with all its files, if the agent knows of a part only.
    ///
    /// # Errors
    /// `Invalid` naming a pattern that is malformed.
    pub fn new(rule: AgentRule, write: &[Vec<String>], owner: Option<Core>) -> Result<Self> {
        let write = write.iter().map(|patterns| PathRules::new(patterns)).collect::<Result<_>>()?;
        Ok(Self { rule, write, owner, changes: Mutex::default() })
    }

    /// Returns whether the rule lets the agent change a file with this path.
    pub fn may_write(&self, path: &NotePath) -> bool {
        self.write.iter().all(|rules| rules.contain(path))
    }

    /// Returns how messages name the rule.
    pub fn name(&self) -> String {
        if self.rule.name.is_empty() {
            "the fence of this server".to_owned()
        } else {
            format!("the rule {:?}", self.rule.name)
        }
    }

    /// Counts a change, unless the last minute has as many as the rule allows. `recorded` is their number in the journal, which
    /// other processes write, too. Returns whether it was counted.
    pub fn count_change(&self, now: Timestamp, recorded: usize) -> bool {
        let Some(rate) = self.rule.rate else { return true };
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back must not shut the agent out for longer than a minute.
        changes.retain(|at| (0..MINUTE).contains(&(now.millis() - at.millis())));
        if changes.len().max(recorded) >= usize::try_from(rate).unwrap_or(usize::MAX) {
            return false;
        }
        changes.push_back(now);
        true
    }
}

impl Core {
    /// Returns the same call in the vault with all its files, if the caller knows of a part only.
    pub fn for_owner(&self) -> Option<Self> {
        let owner = self.agent.as_ref()?.owner.as_ref()?;
        let (vault, index, state) = (owner.vault.clone(), owner.index.clone(), owner.state.clone());
        Some(Self { vault, index, state, agent: None, refreshed: Arc::default(), ..self.clone() })
    }
}
