//! Refuses paths at which an agent may not write.

use sidenote_base::error::{Error, Result};
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::Core;
use sidenote_open_vault::agent_access::AgentAccess;

/// Refuses a path at which no file can exist for the caller, whether or not one is there.
pub(crate) fn refuse_fenced(core: &Core, to: &NotePath) -> Result<()> {
    match &core.agent {
        Some(access) if !core.vault.may_show(to) => Err(not_written(access, core, to)),
        _ => Ok(()),
    }
}

/// Names the path only if a file can exist there for the caller: what leads to another one may have been found on the disk.
pub(crate) fn not_written(access: &AgentAccess, core: &Core, path: &NotePath) -> Error {
    let place = if core.vault.may_show(path) { path.to_string() } else { "there".to_owned() };
    Error::invalid(format!("{} does not let this agent write {place}; nothing was changed", access.name()))
        .with_hint("choose another place, or ask the user to widen the rule: `[[agents]]` in the settings")
}
