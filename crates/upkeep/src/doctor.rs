//! Examines an installation and a vault, finding by finding, and writes nothing: no index is created, no lock is taken
//! and no change is recovered.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sidenote_base::error::Error;
use sidenote_base::platform;
use sidenote_base::wording::Wording;
use sidenote_config as config;
use sidenote_config::{CommitPolicy, Config, Origin, expand_home};
use sidenote_embed::model_selection::{PreviousModels, Selection};
use sidenote_embed::{Embed, ModelId, model_selection};
use sidenote_git::Repository;
use sidenote_index::health::{IndexContents, IndexHealth, VectorHealth};
use sidenote_index::shared_vectors::SharedVectorHealth;
use sidenote_open_vault::open::Open;
use sidenote_vault::fence::PathRules;
use sidenote_vault::location::Location;
use sidenote_vault::scan::scan;
use sidenote_vault::{STATE_DIR, Vault, canonical_path_of};

/// The number of open files below which a server with many clients can fail.
const FEW_OPEN_FILES: usize = 256;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing has to be done.
    Note,
    /// Something works less well than it could.
    Warning,
    /// Something does not work.
    Problem,
}

/// One thing that was examined.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// What was examined, such as `vault` or `vectors`.
    pub check: String,
    /// How serious the finding is.
    pub level: Level,
    /// What is the case.
    pub state: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Wording>,
}

impl Finding {
    /// Creates a finding without advice.
    pub fn new(check: impl Into<String>, level: Level, state: impl Into<String>) -> Self {
        Self { check: check.into(), level, state: state.into(), advice: None }
    }

    /// Adds what to do about it, in one form for a person at the command line and one for an agent.
    #[must_use]
    pub fn with_advice(mut self, person: impl Into<String>, agent: impl Into<String>) -> Self {
        self.advice = Some(Wording::new(person, agent));
        self
    }

    fn of_error(check: &str, error: &Error) -> Self {
        let advice = error.wording().cloned();
        Self { advice, ..Self::new(check, Level::Problem, error.to_string()) }
    }
}

/// What `doctor` found out about a vault and the program.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// The version of the program.
    pub version: &'static str,
    /// The system for which the program was built.
    pub target: String,
    /// The folder of the vault.
    pub vault: PathBuf,
    /// The folder of the index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<PathBuf>,
    /// The folder of the records: journal, before-images and unfinished changes.
    pub records: PathBuf,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Examines the program, and the vault that `open` names or that the current folder is in.
    pub fn of(open: &Open) -> Self {
        let root = Location::of_settings(open.vault.as_deref()).unwrap_or_else(|_| PathBuf::from("."));
        let vault = Location::find(open.vault.as_deref()).and_then(|location| Vault::open(location.root));
        let root = vault.as_ref().map_or(root, |vault| vault.root().to_owned());
        let mut diagnosis = Self {
            version: env!("CARGO_PKG_VERSION"),
            target: platform::target(),
            index: None,
            records: root.join(STATE_DIR).join("records"),
            vault: root,
            findings: Vec::new(),
        };
        diagnosis.program();
        let config = Config::load(&diagnosis.vault, &open.flags);
        match &config {
            Ok(config) => diagnosis.settings(config),
            Err(error) => diagnosis.add(Finding::of_error("settings", error)),
        }
        let vault = match (vault, &config) {
            (Ok(vault), Ok(config)) => diagnosis.vault(vault, config, open.index.as_deref()),
            (Err(error), _) => {
                diagnosis.add(Finding::of_error("vault", &error));
                None
            }
            _ => None,
        };
        let model = config.as_ref().ok().and_then(|config| diagnosis.models(config));
        if let (Ok(config), Some(_)) = (&config, &model) {
            diagnosis.shared_vectors(config);
        }
        if let Some((vault, folder)) = vault {
            diagnosis.permissions(&vault);
            diagnosis.unfinished_changes(&vault);
            let earlier =
                config.as_ref().map(|config| PreviousModels::before(&config.embed)).unwrap_or_default();
            diagnosis.index(&vault, folder.as_deref(), model.as_ref().map(|model| (model, &earlier)));
            diagnosis.watching(&vault);
            diagnosis.git(&vault);
            if let Ok(config) = &config {
                diagnosis.commits(&vault, config);
            }
        }
        diagnosis.open_files();
        diagnosis
    }

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Returns the most serious level of all findings.
    pub fn worst(&self) -> Level {
        self.findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
    }

    fn program(&mut self) {
        let repository = env!("CARGO_PKG_REPOSITORY");
        let releases = if repository.is_empty() {
            "releases are listed where it was installed from".to_owned()
        } else {
            format!("releases are listed at {repository}/releases")
        };
        let state = format!("sidenote {} for {}; {releases}", self.version, self.target);
        self.add(Finding::new("version", Level::Ok, state));
        self.add(match std::env::current_exe() {
            Ok(program) => Finding::new("program", Level::Ok, program.display().to_string()),
            Err(error) => Finding::of_error("program", &Error::io("find", "this program", error)),
        });
    }

    /// Says how many settings each layer gives.
    fn settings(&mut self, config: &Config) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (_, _, origin) in config.entries().filter(|(_, _, origin)| **origin != Origin::Default) {
            *counts.entry(origin.to_string()).or_default() += 1;
        }
        let files = [config::user_file(), Some(config::vault_settings_file(&self.vault))];
        for (check, file) in ["user settings", "vault settings"].into_iter().zip(files) {
            let Some(file) = file else {
                let state = "there is no home folder for settings".to_owned();
                self.add(Finding::new(check, Level::Note, state));
                continue;
            };
            let given = counts.remove(&file.display().to_string());
            let state = match given {
                Some(count) => format!("{} ({count} set)", file.display()),
                None if file.exists() => format!("{} (nothing set)", file.display()),
                None => format!("{} (no such file, the defaults hold)", file.display()),
            };
            self.add(Finding::new(check, Level::Ok, state));
        }
        for rule in &config.agents {
            let patterns = [&rule.read, &rule.write].into_iter().flatten();
            let wrong = patterns.filter_map(|patterns| PathRules::new(patterns).err()).next();
            let name = format!("agent {}", rule.name);
            let vault = rule.vault.as_deref().map(|vault| expand_home(Path::new(vault)));
            let missing = vault.filter(|vault| !vault.is_dir());
            self.add(match (wrong, missing) {
                (Some(error), _) => Finding::of_error("agents", &error.of(&name)),
                (None, Some(vault)) => {
                    let state = format!(
                        "{name} is for {}, which is no folder, so its rule does nothing",
                        vault.display()
                    );
                    Finding::new("agents", Level::Problem, state)
                }
                (None, None) => Finding::new("agents", Level::Ok, format!("{name} {}", rule.describe())),
            });
        }
        if !counts.is_empty() {
            let names: Vec<String> = counts.into_keys().collect();
            let state = format!("set by {}", names.join(", "));
            self.add(Finding::new("other settings", Level::Ok, state));
        }
    }

    /// Opens the vault with its settings; returns it with the index folder that was named.
    fn vault(
        &mut self,
        vault: Vault,
        config: &Config,
        index: Option<&Path>,
    ) -> Option<(Vault, Option<PathBuf>)> {
        let folder =
            index.map(|folder| canonical_path_of(folder).map_err(|error| Error::io("find", folder, error)));
        let opened = vault.refuse_linked_state().and_then(|()| {
            let vault = vault
                .with_config_dir(&config.vault.config_dir)?
                .with_max_file_size(config.vault.max_file_bytes)
                .with_link_rules(&config.links)
                .with_follow_outside(config.vault.follow_outside);
            match folder.transpose()? {
                Some(folder) => Ok((vault.with_index_in(&folder)?, Some(folder))),
                None => Ok((vault, None)),
            }
        });
        match opened {
            Ok(opened) => {
                let has_obsidian = opened.0.config_folder().is_dir();
                let with = if has_obsidian { "with settings of Obsidian" } else { "without Obsidian" };
                let state = format!("{}, {with}", self.vault.display());
                self.add(Finding::new("vault", Level::Ok, state));
                Some(opened)
            }
            Err(error) => {
                self.add(Finding::of_error("vault", &error));
                None
            }
        }
    }

    /// Says which models the settings select. None is loaded, and no endpoint is contacted.
    fn models(&mut self, config: &Config) -> Option<ModelId> {
        let Selection { model, problem } = match model_selection::embedder(&config.embed) {
            Ok(selection) => selection,
            Err(error) => {
                self.add(Finding::of_error("embedding model", &error));
                return None;
            }
        };
        let name = model.as_ref().map(|model| model.model().to_string());
        let correct = |finding: Finding| {
            finding.with_advice(
                "correct the setting, or choose another model: sidenote model use NAME",
                "ask the user to correct the settings of the model",
            )
        };
        let of_level = |level, state: String| Finding::new("embedding model", level, state);
        let finding = match (&name, &problem) {
            (Some(name), None) => of_level(Level::Ok, name.clone()),
            (Some(name), Some(why)) => {
                correct(of_level(Level::Warning, format!("{name} instead of the one set: {why}")))
            }
            (None, Some(why)) => {
                correct(of_level(Level::Problem, format!("search by meaning is off: {why}")))
            }
            (None, None) => of_level(Level::Note, "none is set, so words alone decide".to_owned())
                .with_advice("to search by meaning, too: sidenote model use e5", ""),
        };
        self.add(finding);
        if let Some(why) = model_selection::reranker(&config.rerank, &config.embed).problem {
            self.add(
                Finding::new("reranker", Level::Warning, format!("results are not reranked: {why}"))
                    .with_advice(
                        "correct or remove the settings rerank.model and rerank.dir",
                        "ask the user to correct the settings of the reranker",
                    ),
            );
        }
        model.map(|model| Embed::model(&*model).clone())
    }

    fn permissions(&mut self, vault: &Vault) {
        let root = vault.root();
        let case = match platform::is_case_sensitive(root) {
            Some(true) => "names that differ in case are different files",
            Some(false) => "names that differ only in case are the same file",
            None => "whether names that differ in case are different files is not known",
        };
        self.add(Finding::new("file names", Level::Ok, case));
        let is_there = if self.records.exists() { "" } else { " (not there yet)" };
        let records = format!("{}{is_there}", self.records.display());
        self.add(Finding::new("records", Level::Ok, records));
        let is_mounted_read_only = platform::is_on_read_only_file_system(root) == Some(true);
        if is_mounted_read_only || !platform::is_writable(root) {
            let why = if is_mounted_read_only {
                "its file system is mounted read-only"
            } else {
                "you may not write in it"
            };
            self.add(
                Finding::new(
                    "writing notes",
                    Level::Warning,
                    format!("{} can be searched, but not changed: {why}", root.display()),
                )
                .with_advice(
                    "if you want to change notes, give yourself the right to write, or mount the file system for writing",
                    "ask the user for the right to write, if notes are to be changed",
                ),
            );
            return;
        }
        let places = [root.join(STATE_DIR), self.records.clone()];
        let closed: Vec<String> = places
            .iter()
            .filter(|place| place.exists() && !platform::is_writable(place))
            .map(|place| place.display().to_string())
            .collect();
        self.add(if closed.is_empty() {
            Finding::new("writing notes", Level::Ok, "the vault and its records can be written")
        } else {
            Finding::new(
                "writing notes",
                Level::Problem,
                format!("{} cannot be written, so no note can be changed", closed.join(" and ")),
            )
            .with_advice(
                "give yourself the right to write there; another user may have created it",
                "ask the user for the right to write there",
            )
        });
    }

    fn unfinished_changes(&mut self, vault: &Vault) {
        if vault.has_pending_transactions(&self.records) {
            self.add(
                Finding::new("changes", Level::Warning, "a change is under way, or was interrupted").with_advice(
                    "run any other command, such as `sidenote status`: it completes the change or takes it back",
                    "the next call completes it or takes it back",
                ),
            );
        }
    }

    fn index(&mut self, vault: &Vault, folder: Option<&Path>, model: Option<(&ModelId, &PreviousModels)>) {
        let health = match IndexHealth::examine(vault, folder, model) {
            Ok(health) => health,
            Err(error) => return self.add(Finding::of_error("index", &error)),
        };
        self.index = Some(health.folder.clone());
        let place = health.folder.display();
        if !health.exists {
            return self.add(
                Finding::new("index", Level::Note, format!("there is none in {place} yet"))
                    .with_advice("the first command builds it; to build it now: sidenote index", ""),
            );
        }
        if let Some(holder) = &health.holder {
            let state = format!("process {} ({}) writes the index", holder.pid, holder.command);
            self.add(Finding::new("index lock", Level::Ok, state));
        } else if !platform::is_writable(&health.folder) {
            self.add(
                Finding::new(
                    "index lock",
                    Level::Warning,
                    format!("{place} cannot be written, so it gets out of date"),
                )
                .with_advice(
                    "give yourself the right to write there, or put the index elsewhere: --index FOLDER",
                    "ask the user for the right to write there",
                ),
            );
        }
        if health.is_of_other_version() {
            let state = format!("{place} was written by another version of sidenote");
            return self.add(
                Finding::new("index", Level::Note, state)
                    .with_advice("the next command builds it again; vectors are kept", ""),
            );
        }
        for what in &health.damage {
            self.add(Finding::new("index", Level::Problem, format!("it is damaged: {what}")).with_advice(
                "run: sidenote index --rebuild (notes and vectors are kept)",
                "ask the user to rebuild the index",
            ));
        }
        let Some(contents) = &health.contents else { return };
        if health.damage.is_empty() {
            self.add(Finding::new("index", Level::Ok, state_of(&health, contents)));
        }
        self.staleness(&health, contents);
        if let Some(vectors) = &contents.vectors {
            self.vectors(vectors);
        }
    }

    fn staleness(&mut self, health: &IndexHealth, contents: &IndexContents) {
        let files = |count: usize| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        if contents.unfinished > 0 || !health.is_sealed && health.holder.is_none() {
            let state = "the last process that wrote the index did not close it; its checksums are right";
            self.add(
                Finding::new("index state", Level::Note, state)
                    .with_advice("the next command checks it and completes it", ""),
            );
        }
        self.add(if contents.stale == 0 {
            Finding::new("index content", Level::Ok, "every file is indexed as it is now")
        } else {
            Finding::new(
                "index content",
                Level::Note,
                format!("{} changed since the index was updated", files(contents.stale)),
            )
            .with_advice("the next search updates the index; to update it now: sidenote index", "")
        });
    }

    fn vectors(&mut self, vectors: &VectorHealth) {
        if vectors.damaged > 0 {
            let state = format!("{} of {} are damaged", vectors.damaged, vectors.count + vectors.damaged);
            self.add(Finding::new("vectors", Level::Problem, state).with_advice(
                "run: sidenote index --rebuild (they are made again)",
                "ask the user to rebuild the index",
            ));
            return;
        }
        let [until, until_first] = if vectors.is_former_used {
            ["; until then those of the model before answer"; 2]
        } else {
            ["", "; until then words alone answer"]
        };
        let wait = |state: String| {
            Finding::new("vectors", Level::Note, state)
                .with_advice("run: sidenote index", "ask the user to build the vectors")
        };
        self.add(match vectors.pending {
            Some(0) => Finding::new("vectors", Level::Ok, format!("{}, none is missing", vectors.count)),
            Some(pending) => wait(format!("{}, and {pending} passages wait for one{until}", vectors.count)),
            None => wait(format!("none of this model was made yet{until_first}")),
        });
    }

    /// Says where vectors are shared with other vaults, and what keeps them from being shared.
    fn shared_vectors(&mut self, config: &Config) {
        let finding = |level, state: String| Finding::new("shared vectors", level, state);
        let Some(root) = config.embed.shared_vectors() else {
            let why = if config.embed.share {
                "you have no cache folder"
            } else {
                "the setting embed.share is false"
            };
            return self.add(finding(Level::Ok, format!("none: {why}")));
        };
        let SharedVectorHealth { models, bytes, problem } = SharedVectorHealth::examine(&root);
        let place = root.display();
        self.add(match problem {
            Some(why) => finding(Level::Warning, format!("{place} is not used: {why}")).with_advice(
                "correct that, or share no vectors: sidenote config set embed.share false",
                "ask the user to correct that, or to set embed.share to false",
            ),
            None if models == 0 => finding(Level::Ok, format!("none yet in {place}")),
            None => finding(
                Level::Ok,
                format!(
                    "{:.1} MB of {} in {place}; the folder can be deleted at any time",
                    bytes as f64 / 1e6,
                    if models == 1 { "1 model".to_owned() } else { format!("{models} models") }
                ),
            ),
        });
    }

    /// Compares the number of folders with the limit of the system, and names what could not be read.
    fn watching(&mut self, vault: &Vault) {
        let found = scan(vault.root(), &vault.scan_options());
        if let Some((path, error)) = found.gaps.unreadable.iter().next() {
            let place = if path.is_empty() { "the vault" } else { path };
            let more = found.gaps.unreadable.len() - 1;
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            self.add(
                Finding::new(
                    "reading notes",
                    Level::Warning,
                    format!("{place} cannot be read: {error}{more}"),
                )
                .with_advice(
                    "give yourself the right to read it, or let Obsidian exclude it",
                    "ask the user for the right to read it",
                ),
            );
        }
        if let Some(kind) = platform::unnotified_file_system(vault.root()) {
            let state =
                format!("the file system ({kind}) does not report what other machines and programs change");
            self.add(Finding::new(
                "changes",
                Level::Note,
                state + "; the vault is compared before each answer",
            ));
        }
        // The folder of the watch itself, and that of Obsidian's settings.
        let folders = found.folders.len() + 2;
        let Some(limit) = platform::watch_limit() else {
            return self.add(Finding::new("watching", Level::Ok, "the number of folders is not limited"));
        };
        let state = format!("{folders} folders of the {limit} that your programs may watch together");
        self.add(if folders >= limit {
            Finding::new(
                "watching",
                Level::Warning,
                format!("{state}; the vault is scanned every two seconds instead"),
            )
            .with_advice(
                format!(
                    "raise the limit: sudo sysctl fs.inotify.max_user_watches={}",
                    (folders * 4).max(524_288)
                ),
                "ask the user to raise fs.inotify.max_user_watches",
            )
        } else {
            Finding::new("watching", Level::Ok, state)
        });
    }

    fn open_files(&mut self) {
        self.add(match platform::open_file_limit() {
            None => Finding::new("open files", Level::Ok, "their number is not limited"),
            Some(limit) if limit >= FEW_OPEN_FILES => {
                Finding::new("open files", Level::Ok, format!("this process may open {limit}"))
            }
            Some(limit) => {
                Finding::new("open files", Level::Warning, format!("this process may open only {limit}"))
                    .with_advice(
                        "raise the limit, for example: ulimit -n 1024",
                        "ask the user to raise the limit",
                    )
            }
        });
    }

    /// Says whether changes are committed in git. No program is run.
    fn commits(&mut self, vault: &Vault, config: &Config) {
        let when = match config.git.commit {
            CommitPolicy::Off => return,
            CommitPolicy::Operation => "after each operation",
            CommitPolicy::Session => "at the end of each MCP session, and after each operation of a command",
        };
        let is_in_git = Repository::discover(vault.root()).is_ok_and(|repository| repository.is_some());
        self.add(if is_in_git {
            Finding::new("commits", Level::Ok, format!("changes are committed {when}"))
        } else {
            let state = "git.commit is set, and the vault is in no git repository";
            Finding::new("commits", Level::Warning, state).with_advice(
                "run `git init` in the vault, or: sidenote --vault FOLDER config unset git.commit",
                "ask the user to make a git repository of the vault, or to unset git.commit",
            )
        });
    }

    /// Says whether git is in the middle of something that leaves conflict marks in notes. No program is run.
    fn git(&mut self, vault: &Vault) {
        let unfinished = match Repository::discover(vault.root()) {
            Ok(repository) => repository.and_then(|repository| repository.unfinished()),
            Err(error) => {
                let state = format!("a merge is not seen: {error}");
                return self.add(Finding::new("git", Level::Note, state));
            }
        };
        if let Some(what) = unfinished.filter(|what| what.leaves_conflict_marks()) {
            self.add(
                Finding::new(
                    "git",
                    Level::Note,
                    format!("{what} is under way; notes may have conflict marks"),
                )
                .with_advice(
                    "to list them: sidenote check --only conflict-markers",
                    "resolve conflict marks before you change these notes",
                ),
            );
        }
    }
}

/// Describes a sound index in one line.
fn state_of(health: &IndexHealth, contents: &IndexContents) -> String {
    let depth = if health.is_sealed { "all checksums are right" } else { "it is sound" };
    format!(
        "{}: {} notes, schema {}, generation {}, {:.1} MB; {depth}",
        health.folder.display(),
        contents.counts.notes,
        health.schema.unwrap_or_default(),
        contents.generation,
        contents.bytes as f64 / 1e6
    )
}
