//! The settings of `check` as they are written. `upkeep/check/rules` knows the codes and compiles the globs.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Settings about checking.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckConfig {
    /// The severity of codes: `off`, `info`, `warning` or `error`.
    pub severity: BTreeMap<String, String>,
    /// Globs of the paths whose problems are not reported.
    pub ignore: Vec<String>,
    /// Globs of the paths for which a code is not reported.
    pub ignore_code: BTreeMap<String, Vec<String>>,
}
