//! The settings of a repository, and the folder of its hooks.

use std::ffi::OsStr;
use std::path::PathBuf;

use sidenote_base::error::{Error, Result};
use sidenote_base::platform;

use crate::Repository;
use crate::process::TimeLimit;

impl Repository {
    /// Runs `git config`, which starts no program. Returns the exit code and what was printed.
    fn config<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<(i32, String, String)> {
        // The settings that a reading call overrides would hide those of the repository.
        let mut command = self.bare_command();
        let said = self.run(command.arg("config").args(arguments), None, TimeLimit::WhileAnswering)?;
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
    /// `Invalid` if the settings are behind a symbolic link, because git would write to where it leads; those of running git.
    pub fn set_setting(&self, key: &str, value: &str) -> Result<()> {
        let file = self.common_dir().join("config");
        let links = [self.work_tree.join(".git"), file.clone()];
        if let Some(link) = links.into_iter().find(|place| place.is_symlink()) {
            return Err(Error::invalid(format!("{} is a symbolic link (symlink)", link.display()))
                .with_hint(format!("replace it with what it leads to, or run: git config {key} '{value}'")));
        }
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
        // A relative path begins where hooks run, at the top of the working tree.
        let folder = match self.setting_of(&["--type=path", "--get", "core.hooksPath"])? {
            Some(named) => self.work_tree.join(named),
            None => self.common_dir().join("hooks"),
        };
        let full = |path: &PathBuf| platform::canonicalize(path).unwrap_or_else(|_| path.clone());
        let own = [full(&self.work_tree), full(&self.common_dir())];
        let real = match platform::canonicalize(&folder) {
            Ok(real) => Some(real),
            // A link to a place that is not there.
            Err(_) if folder.is_symlink() => None,
            // A folder that is not there yet is where its parent leads.
            Err(_) => {
                folder.parent().zip(folder.file_name()).map(|(parent, name)| full(&parent.into()).join(name))
            }
        };
        let is_own = real.is_some_and(|real| own.iter().any(|own| real.starts_with(own)));
        Ok((folder, is_own))
    }
}
