//! The settings of a repository, and the folder of its hooks.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::error::Result;
use crate::git::Repository;
use crate::git::command::output;
use crate::platform;

impl Repository {
    /// Runs `git config`, which starts no program. Returns the exit code and what was printed.
    fn config<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<(i32, String, String)> {
        self.check_version()?;
        // The settings that a reading call overrides would hide those of the repository.
        let said = output(self.bare_command().arg("config").args(arguments), None)?;
        let printed = String::from_utf8_lossy(&said.stdout).trim_end_matches(['\n', '\r']).to_owned();
        Ok((said.code, printed, said.stderr))
    }

    /// Returns the value of a setting, from the settings of the repository and of the user.
    ///
    /// # Errors
    /// Those of running git.
    pub fn setting(&self, key: &str) -> Result<Option<String>> {
        self.setting_of(&["--get", key])
    }

    fn setting_of(&self, arguments: &[&str]) -> Result<Option<String>> {
        match self.config(arguments)? {
            (0, value, _) => Ok(Some(value)),
            (1, ..) => Ok(None),
            (_, _, stderr) => Err(self.refusal(&stderr)),
        }
    }

    /// Sets a setting of the repository, which all its working trees share.
    ///
    /// # Errors
    /// Those of running git.
    pub fn set_setting(&self, key: &str, value: &str) -> Result<()> {
        match self.config(["--local", key, value])? {
            (0, ..) => Ok(()),
            (_, _, stderr) => Err(self.refusal(&stderr)),
        }
    }

    /// Returns the folder of the hooks, from the setting `core.hooksPath` or the default one. The second value says
    /// whether the folder belongs to this repository. One that does not holds hooks of other repositories, too.
    ///
    /// # Errors
    /// Those of running git.
    pub fn hooks_dir(&self) -> Result<(PathBuf, bool)> {
        let Some(named) = self.setting_of(&["--type=path", "--get", "core.hooksPath"])? else {
            return Ok((self.common_dir().join("hooks"), true));
        };
        // A relative path begins where hooks run, at the top of the working tree.
        let folder = self.work_tree.join(named);
        let full = |path: &PathBuf| platform::canonicalize(path).unwrap_or_else(|_| path.clone());
        let own = [full(&self.work_tree), full(&self.common_dir())];
        let is_own = own.iter().any(|own| full(&folder).starts_with(own));
        Ok((folder, is_own))
    }
}
