//! The toolsets that this program can serve over MCP: our own, and those of the parts that it was built with.

use sidenote_base::error::{Error, Result};

use sidenote_config::AgentRule;

use crate::mcp::Toolset;

/// Lists the toolsets.
fn all() -> Vec<Toolset> {
    #[cfg(feature = "compat")]
    let others = crate::compat::TOOLSETS;
    #[cfg(not(feature = "compat"))]
    let others = [];
    [Toolset::NOTES, Toolset::MORE, Toolset::CONNECTOR].into_iter().chain(others).collect()
}

/// Lists the names of the toolsets.
pub fn toolset_names() -> Vec<&'static str> {
    all().into_iter().map(Toolset::name).collect()
}

/// Refuses a rule with a tool that there is not: it would allow nothing, and look as if it did.
///
/// # Errors
/// `Invalid` with the name.
pub(super) fn refuse_unknown_tools(rule: &AgentRule) -> Result<()> {
    let all = all();
    let is_known = |name: &&String| all.iter().any(|set| set.name() == name.as_str() || set.has_tool(name));
    match rule.tools.iter().flatten().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!(
            "[[agents]] {:?} has {name:?} among its tools, and there is no tool or toolset of that name",
            rule.name
        ))
        .with_hint(format!("name tools, or toolsets: {}", toolset_names().join(", ")))),
    }
}

/// Finds toolsets by their names, which commas separate.
///
/// # Errors
/// `Invalid` if no toolset has one of the names.
pub(super) fn parse(names: &str) -> Result<Vec<Toolset>> {
    let all = all();
    let find = |name: &str| {
        let found = all.iter().find(|set| set.name() == name.trim()).copied();
        found.ok_or_else(|| {
            Error::invalid(format!("there is no toolset {name:?}"))
                .with_hint(format!("use {}", toolset_names().join(", ")))
        })
    };
    names.split(',').map(find).collect()
}
