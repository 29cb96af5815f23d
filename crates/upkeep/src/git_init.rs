//! Prepares the repository of a vault: ignore files, attributes, the merge driver and a hook (docs/spec/git.md 2).
//!
//! It adds lines and settings, and replaces none. Doing it again changes nothing.

use std::path::Path;

use serde::Serialize;
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open;
use sidenote_git::Repository;
use sidenote_markdown::line_list::missing_lines;
use sidenote_vault::Vault;
use sidenote_vault::git_files::{GitFiles, RECORDS_IGNORES, STATE_IGNORES};
use sidenote_vault::write_lock::create_records;

use crate::check::baseline::Baseline;

/// The name of the merge driver, as git shows it.
const DRIVER_NAME: &str = "sidenote: properties by key, links written anew";
/// The command of the merge driver. Where sidenote is not installed, git's own merge of lines is run.
const DRIVER: &str = "if command -v sidenote >/dev/null 2>&1; then \
     sidenote merge-driver -- %O %A %B %L %P %S %X %Y; \
     else git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B; fi";
/// The lines of `.gitattributes`: the pattern, and the attribute of the merge.
const ATTRIBUTES: [(&str, &str); 2] =
    [("*.md", "merge=sidenote"), (".sidenote/records/**/*.jsonl", "merge=union")];
/// The largest hook that is read, in bytes.
const MAX_HOOK: u64 = 1 << 20;

/// The file in the vault that records the problems which the hook lets pass.
const BASELINE: &str = ".sidenote/check-baseline.json";

/// What is prepared besides the ignore files.
#[derive(Debug, Clone, Default)]
pub struct GitInitRequest {
    /// Whether lines are added to `.gitattributes`.
    pub attributes: bool,
    /// Whether the merge driver is set.
    pub driver: bool,
    /// The problems of the vault, which a pre-commit hook lets pass; `None` if no hook is added.
    pub hook: Option<Baseline>,
    /// Whether nothing is written.
    pub dry_run: bool,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GitInitState {
    /// The lines are added, or would be.
    Add,
    /// All lines are there.
    Present,
    /// Something else is there and was left as it is. The lines can be added by hand.
    Left,
}

/// One step: a file or a setting, and its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GitInitStep {
    /// The file, or the setting of git.
    pub target: String,
    /// What became of it.
    pub state: GitInitState,
    /// The lines that are added, that are there, or that can be added by hand.
    pub lines: Vec<String>,
    /// Why it was left as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The result of preparing a repository.
#[derive(Debug, Clone, Serialize)]
pub struct GitInitReply {
    /// Whether something was written.
    pub applied: bool,
    /// The root of the working tree.
    pub repository: String,
    /// The steps.
    pub steps: Vec<GitInitStep>,
}

/// Prepares the repository that a vault is in.
///
/// # Errors
/// `NotFound` if the vault is in no repository or git is not installed; `Invalid` if git refuses the repository or a
/// symbolic link is in the place of a file; `Io` if something cannot be written.
pub fn prepare_repository(vault: &Vault, request: &GitInitRequest) -> Result<GitInitReply> {
    let repository = Repository::discover(vault.root())?.ok_or_else(|| {
        Error::not_found(format!("{} is in no git repository", vault.root().display()))
            .with_hint("run `git init` in the vault first")
    })?;
    // Git says of a repository of another owner what it is, and not with every command.
    repository.head()?;
    let preparation = Preparation { vault, repository: &repository, dry_run: request.dry_run };
    let mut steps = preparation.ignore_files()?;
    if request.attributes {
        steps.push(preparation.attributes()?);
    }
    if request.driver {
        let driver = preparation.setting("merge.sidenote.driver", DRIVER)?;
        // The name is that of our command.
        if driver.state != GitInitState::Left {
            steps.push(preparation.setting("merge.sidenote.name", DRIVER_NAME)?);
        }
        steps.push(driver);
    }
    if let Some(baseline) = &request.hook {
        steps.push(preparation.baseline(baseline)?);
        steps.push(preparation.hook()?);
    }
    let adds = steps.iter().any(|step| step.state == GitInitState::Add);
    let repository = repository.work_tree().display().to_string();
    Ok(GitInitReply { applied: adds && !request.dry_run, repository, steps })
}

impl GitInitStep {
    fn new(target: impl Into<String>, state: GitInitState, lines: &[&str]) -> Self {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Self { target: target.into(), state, lines, reason: None }
    }

    fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }
}

/// A vault whose repository is prepared.
struct Preparation<'a> {
    vault: &'a Vault,
    repository: &'a Repository,
    dry_run: bool,
}

impl Preparation<'_> {
    fn ignore_files(&self) -> Result<Vec<GitInitStep>> {
        let files: [(&str, &[&str]); 2] =
            [(".sidenote/.gitignore", &STATE_IGNORES), (".sidenote/records/.gitignore", &RECORDS_IGNORES)];
        let mut steps = Vec::new();
        for (inner, lines) in files {
            steps.push(self.lines_step(inner, lines)?);
        }
        if !self.dry_run && steps.iter().any(|step| step.state == GitInitState::Add) {
            // It creates the folders, and the files that are missing as a whole.
            create_records(self.vault)?;
            for (inner, lines) in files {
                GitFiles::of(self.vault).add_lines(inner, lines)?;
            }
        }
        Ok(steps)
    }

    /// Compares a file with the lines that it should have.
    fn lines_step(&self, inner: &str, lines: &[&str]) -> Result<GitInitStep> {
        let missing = missing_lines(&GitFiles::of(self.vault).read(inner)?, lines);
        Ok(if missing.is_empty() {
            GitInitStep::new(inner, GitInitState::Present, lines)
        } else {
            GitInitStep::new(inner, GitInitState::Add, &missing)
        })
    }

    fn attributes(&self) -> Result<GitInitStep> {
        let inner = ".gitattributes";
        let text = GitFiles::of(self.vault).read(inner)?;
        let line_of = |(pattern, attribute): &(&str, &str)| format!("{pattern} {attribute}");
        let is_taken = |(pattern, attribute): &&(&str, &str)| {
            text.lines().any(|line| {
                let mut words = line.split_whitespace();
                let is_merge =
                    |word: &str| word.trim_start_matches(['-', '!']).split('=').next() == Some("merge");
                words.next() == Some(*pattern) && words.any(|word| is_merge(word) && word != *attribute)
            })
        };
        let (taken, free): (Vec<_>, Vec<_>) = ATTRIBUTES.iter().partition(is_taken);
        let lines: Vec<String> = free.into_iter().map(line_of).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let step = self.lines_step(inner, &lines)?;
        if !self.dry_run {
            GitFiles::of(self.vault).add_lines(inner, &lines)?;
        }
        if taken.is_empty() {
            return Ok(step);
        }
        let reason = format!(
            "{inner} sets another merge for: {}",
            taken.iter().map(|(pattern, _)| *pattern).collect::<Vec<_>>().join(", ")
        );
        if lines.is_empty() || step.state == GitInitState::Present {
            let lines: Vec<String> = taken.into_iter().map(line_of).collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            return Ok(GitInitStep::new(inner, GitInitState::Left, &lines).because(reason));
        }
        Ok(step.because(reason))
    }

    fn setting(&self, key: &str, value: &str) -> Result<GitInitStep> {
        match self.repository.setting(key)? {
            Some(known) if known == value => Ok(GitInitStep::new(key, GitInitState::Present, &[value])),
            Some(known) => {
                let reason = format!("it is set to: {known}");
                Ok(GitInitStep::new(key, GitInitState::Left, &[value]).because(reason))
            }
            None => {
                if !self.dry_run {
                    self.repository.set_setting(key, value)?;
                }
                Ok(GitInitStep::new(key, GitInitState::Add, &[value]))
            }
        }
    }

    /// Records the problems that the hook lets pass.
    fn baseline(&self, baseline: &Baseline) -> Result<GitInitStep> {
        let file = self.vault.root().join(BASELINE);
        let command = self.baseline_command();
        let lines = [command.as_str()];
        if file.symlink_metadata().is_ok() {
            return Ok(GitInitStep::new(BASELINE, GitInitState::Present, &lines));
        }
        if !self.dry_run {
            let text = baseline.to_json()?;
            AtomicFile::new(&file)
                .write_bytes(text.as_bytes())
                .map_err(|error| Error::io("write", &file, error))?;
        }
        let count = match baseline.count() {
            1 => "1 problem".to_owned(),
            count => format!("{count} problems"),
        };
        Ok(GitInitStep::new(BASELINE, GitInitState::Add, &lines)
            .because(format!("the hook lets {count} of today pass")))
    }

    /// Adds the hook that checks the notes of a commit.
    fn hook(&self) -> Result<GitInitStep> {
        let (folder, is_own) = self.repository.hooks_dir()?;
        let path = folder.join("pre-commit");
        let command = format!("{} || exit 1", self.hook_command());
        let target = path.display().to_string();
        let step = |state| GitInitStep::new(target.clone(), state, &[command.as_str()]);
        if let Some(hook) = read_hook(&path)? {
            let has_command =
                hook.lines().any(|line| line.contains("sidenote") && line.contains("check --staged"));
            return Ok(match has_command {
                true => step(GitInitState::Present),
                false => step(GitInitState::Left).because("there is a hook already; add the line to it"),
            });
        }
        if !is_own {
            let reason =
                "the folder of its hooks is outside of this repository; add the line to the hook there";
            return Ok(step(GitInitState::Left).because(reason));
        }
        if !self.dry_run {
            create_hooks_dir(&folder)?;
            let text = format!(
                "{HOOK_HEAD}\n{WITHOUT_PROGRAM}\n{} || {{ echo {} >&2; exit 1; }}\n",
                self.hook_command(),
                quoted(&self.refusal())
            );
            AtomicFile::new(&path)
                .mode(0o755)
                .write_bytes(text.as_bytes())
                .map_err(|error| Error::io("write", &path, error))?;
        }
        Ok(step(GitInitState::Add))
    }

    /// Returns the path of the vault from the top of the working tree, where hooks run.
    fn vault_from_top(&self) -> String {
        match self.repository.prefix().trim_end_matches('/') {
            "" => ".".to_owned(),
            prefix => format!("./{prefix}"),
        }
    }

    /// Returns the command of the hook.
    fn hook_command(&self) -> String {
        let vault = self.vault_from_top();
        let (baseline, vault) = (quoted(&format!("{vault}/{BASELINE}")), quoted(&vault));
        format!("sidenote --vault {vault} check --staged --since HEAD --strict --baseline {baseline}")
    }

    /// Returns the command that records the problems again, for the top of the working tree.
    fn baseline_command(&self) -> String {
        let vault = self.vault_from_top();
        if vault == "." {
            return format!("sidenote check --write-baseline {BASELINE}");
        }
        let (baseline, vault) = (quoted(&format!("{vault}/{BASELINE}")), quoted(&vault));
        format!("sidenote --vault {vault} check --write-baseline {baseline}")
    }

    /// Returns what the hook says when it refuses a commit.
    fn refusal(&self) -> String {
        format!(
            "sidenote found new errors in what is staged. Correct them and stage the notes again, or skip the check with \
             `git commit --no-verify`. To record them as known, run this in the top folder of the repository: {}",
            self.baseline_command()
        )
    }
}

/// The first lines of the hook.
const HOOK_HEAD: &str = "#!/bin/sh
# Refuses a commit that brings new errors into the notes that it changes, or into links to them.";
/// The line of a hook that lets commits pass where sidenote is not installed.
const WITHOUT_PROGRAM: &str = "command -v sidenote >/dev/null 2>&1 || { echo 'sidenote is not on the PATH, so notes are not checked' >&2; exit 0; }";

/// Returns a text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Reads a hook. Returns `None` if there is none.
fn read_hook(path: &Path) -> Result<Option<String>> {
    match safe_open::read_in_place(path, MAX_HOOK) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if safe_open::is_refusal(&error) => Ok(Some(String::new())),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

#[expect(clippy::disallowed_methods, reason = "the folder of hooks belongs to git")]
fn create_hooks_dir(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| Error::io("make", folder, error))
}
