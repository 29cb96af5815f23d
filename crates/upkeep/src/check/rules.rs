//! The settings of `check`: the severity of each code, and the paths in which codes are turned off.

use std::collections::BTreeMap;

use globset::GlobSet;
use sidenote_base::error::{Error, Result};
use sidenote_config::{CheckConfig, Config};
use sidenote_search::path_glob;

use crate::check::codes;
use crate::check::codes::{Severity, hint_of_unknown};
use crate::check::problem::Problem;

/// The keys of the settings.
const SEVERITY: &str = "check.severity";
const IGNORE: &str = "check.ignore";
const IGNORE_CODE: &str = "check.ignore_code";

/// The value of a severity that turns a code off.
const OFF: &str = "off";

/// The settings of `check`, checked and compiled.
pub(super) struct Rules {
    /// The severities that differ from the default; `None` is off.
    severities: BTreeMap<&'static str, Option<Severity>>,
    ignored: Vec<GlobSet>,
    ignored_by_code: BTreeMap<&'static str, Vec<GlobSet>>,
}

impl Rules {
    /// Reads the settings.
    ///
    /// # Errors
    /// `Invalid` for an unknown code, an unknown severity or a malformed glob, with the file or flag that has it.
    pub(super) fn new(config: &Config) -> Result<Self> {
        Self::of(&config.check, |key| format!("{}: {key}", config.origin_of(key)))
    }

    /// Reads settings; `within` names a key in messages.
    fn of(check: &CheckConfig, within: impl Fn(&str) -> String) -> Result<Self> {
        let known = |key: &str, code: &str| {
            let found = codes::find(code).map(|known| known.code);
            found.ok_or_else(|| {
                Error::invalid(format!("{} has the unknown code {code:?}", within(key)))
                    .with_hint(hint_of_unknown(code))
            })
        };
        let globs = |key: &str, patterns: &[String]| -> Result<Vec<GlobSet>> {
            patterns
                .iter()
                .map(|pattern| path_glob(pattern).map_err(|error| error.of(&within(key))))
                .collect()
        };
        let mut severities = BTreeMap::new();
        for (code, name) in &check.severity {
            let severity = Severity::ALL.into_iter().find(|severity| severity.name() == name);
            if severity.is_none() && name != OFF {
                let message = format!("{} gives {code} the unknown severity {name:?}", within(SEVERITY));
                return Err(Error::invalid(message).with_hint("use off, info, warning or error"));
            }
            severities.insert(known(SEVERITY, code)?, severity);
        }
        let mut ignored_by_code = BTreeMap::new();
        for (code, patterns) in &check.ignore_code {
            ignored_by_code.insert(known(IGNORE_CODE, code)?, globs(IGNORE_CODE, patterns)?);
        }
        Ok(Self { severities, ignored: globs(IGNORE, &check.ignore)?, ignored_by_code })
    }

    /// Gives a problem its severity. Returns false if the settings turn it off.
    pub(super) fn admit(&self, problem: &mut Problem) -> bool {
        match self.severities.get(problem.code) {
            Some(None) => return false,
            Some(Some(severity)) => problem.severity = *severity,
            None => {}
        }
        let by_code = self.ignored_by_code.get(problem.code).into_iter().flatten();
        let mut globs = self.ignored.iter().chain(by_code);
        problem.is_of_vault() || !globs.any(|glob| glob.is_match(&problem.path))
    }
}

/// Refuses settings of `check` with an unknown code, an unknown severity or a malformed glob.
///
/// # Errors
/// `Invalid` for these.
pub fn refuse_invalid_check_settings(check: &CheckConfig) -> Result<()> {
    Rules::of(check, str::to_owned).map(drop)
}
