//! What each agent gets of a vault: the rules of the settings, and the store with which the calls of an agent are served.
//!
//! An agent that may not read everything is served by a store of its own. Its vault neither lists nor opens other files, and its
//! index was made of the files that exist for the agent alone, so that no service has to think of a fence.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};
use sidenote_base::error::{Error, Result};
use sidenote_config::{AgentRule, cache_folder, expand_home};
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::Core;
use sidenote_open_vault::agent_access::AgentAccess;
use sidenote_upkeep::follow::Follower;
use sidenote_vault::fence::{Fence, NoteAccess, PathRules};
use sidenote_vault::{STATE_DIR, Vault};

use crate::{Open, Store};

/// The agents of one vault.
#[derive(Debug)]
pub struct Agents {
    /// The vault with all its files.
    owner: Store,
    /// How the vault was opened.
    open: Open,
    /// What holds for all agents of a server, besides their rules.
    flags: AgentRule,
    /// The rules that are for this vault, in their order.
    rules: Vec<AgentRule>,
    /// The vault without the notes that hide themselves, read with the index of all notes.
    plain: Arc<Vault>,
    /// Whether the index is brought up to date before it is asked for notes that hide themselves.
    is_current: bool,
    state: Mutex<AgentsState>,
}

/// The names of an agent, in groups: those that lead to one rule, such as the name of a client and of its session. The rules of
/// all groups hold together, so that a name which the agent gives itself cannot widen what another one allows.
pub type AgentNames = Vec<Vec<String>>;

/// The places of the rules that hold together for an agent.
type Places = Vec<usize>;

#[derive(Debug, Default)]
struct AgentsState {
    /// What was opened for lists of patterns; for none, the whole vault without the notes that hide themselves.
    fenced: HashMap<Vec<Vec<String>>, FencedStore>,
    /// What agents may change by their rules, and whether they know of a part only.
    access: HashMap<(Places, bool), Arc<AgentAccess>>,
    /// Whether notes hide themselves, in a generation of the index.
    hiding: Option<(i64, bool)>,
    /// Whether the files are followed.
    follows: bool,
}

#[derive(Debug)]
struct FencedStore {
    store: Store,
    /// Keeps the index up to date while the server runs.
    _follower: Option<Follower>,
}

/// What an agent may do, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentSummary {
    /// The rule; `None` if no rule names the agent.
    pub rule: Option<AgentRule>,
    /// The number of files that exist for the agent.
    pub files: usize,
    /// The number of files that do not.
    pub fenced_files: usize,
    /// What the agent may do, as a text for people.
    pub text: String,
}

impl Agents {
    /// Reads the rules for a vault. `flags` has what the agents of a server may read and write by its flags, whatever their rules.
    ///
    /// # Errors
    /// `Invalid` naming a pattern that is malformed.
    pub fn new(owner: Store, open: Open, flags: AgentRule) -> Result<Self> {
        let rules = rules_for(&owner);
        for rule in rules.iter().chain([&flags]) {
            for patterns in [&rule.read, &rule.write].into_iter().flatten() {
                PathRules::new(patterns).map_err(|error| error.of(&format!("[[agents]] {:?}", rule.name)))?;
            }
        }
        let vault = Vault::clone(&owner.core.vault);
        let plain = Arc::new(vault.fenced(Arc::new(Fence::new(&[], owner.core.vault.hidden())?)));
        Ok(Self { owner, open, flags, rules, plain, is_current: true, state: Mutex::default() })
    }

    /// Lists the patterns of the flags of the server that match no file of the index. An index that is still to be made has none.
    ///
    /// # Errors
    /// `Io` and `Corrupt` if the index cannot be read.
    pub fn unmatched_flags(&self) -> Result<Vec<String>> {
        if self.flags.read.is_none() && self.flags.write.is_none() {
            return Ok(Vec::new());
        }
        let paths = self.owner.core.index.catalog().paths().all()?;
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let found = unmatched(Some(&self.flags), paths.iter().map(|(path, _)| path))?;
        Ok(found.into_iter().map(str::to_owned).collect())
    }

    /// Serves hooks, which compare the files with the index while they look for what matches, or need no index. What they show of
    /// notes is read then, so that a note which has just hidden itself does not exist for them, either.
    #[must_use]
    pub fn for_hooks(self) -> Self {
        Self { is_current: false, ..self }
    }

    /// Has the index of each agent follow the files from now on, as that of a server does.
    pub fn follow(&self) {
        self.state().follows = true;
    }

    fn state(&self) -> MutexGuard<'_, AgentsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the vault with all its files.
    pub fn owner(&self) -> &Store {
        &self.owner
    }

    /// Lists the rules that hold for an agent with some names.
    pub fn rules_of(&self, names: &[Vec<String>]) -> Vec<&AgentRule> {
        self.places_of(names).into_iter().filter_map(|at| self.rules.get(at)).collect()
    }

    fn places_of(&self, names: &[Vec<String>]) -> Places {
        let first_for = |names: &Vec<String>| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            self.rules.iter().position(|rule| rule.names_any(&names))
        };
        let is_special = |at: &usize| self.rules.get(*at).is_some_and(|rule| rule.name != "*");
        // The rule for all others is for an agent that the names before lead to no rule of its own.
        let first = names.first().map_or_else(|| first_for(&Vec::new()), first_for);
        let more = names.iter().skip(1).filter_map(first_for).filter(is_special);
        first.into_iter().chain(more).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Lists the patterns that hold for agents with some rules, those of the flags included.
    fn patterns(&self, places: &[usize], of: fn(&AgentRule) -> &Option<Vec<String>>) -> Vec<Vec<String>> {
        let rules = places.iter().filter_map(|at| self.rules.get(*at)).chain([&self.flags]);
        rules.filter_map(|rule| of(rule).clone()).collect()
    }

    /// Returns the store for a call of an agent: `call` with the vault as it exists for the agent, and with what its rule allows.
    ///
    /// # Errors
    /// Those of opening a store; `Io` and `Corrupt` if the index cannot be read.
    pub fn serve(&self, call: &Store, names: &[Vec<String>]) -> Result<Store> {
        let places = self.places_of(names);
        let patterns = self.patterns(&places, |rule| &rule.read);
        let (is_fenced, behind) = match patterns.is_empty() {
            true => self.has_hidden_notes()?,
            false => (true, None),
        };
        let fenced = if is_fenced { Some(self.fenced(patterns)?) } else { None };
        let is_limited = fenced.is_some() || !places.is_empty() || self.flags.write.is_some();
        let agent = is_limited.then(|| self.access(places, fenced.is_some())).transpose()?;
        let core = call.core.clone();
        let core = match fenced {
            Some(Store { core: fenced }) => {
                Core { vault: fenced.vault, index: fenced.index, state: fenced.state, agent, ..core }
            }
            // A note may hide itself that the index does not know as such yet.
            None => {
                let refreshed = Arc::new(Mutex::new(behind));
                Core { vault: Arc::clone(&self.plain), agent, refreshed, ..core }
            }
        };
        Ok(Store { core })
    }

    /// Returns whether a file exists for an agent, without looking into an index.
    pub fn shows(&self, names: &[Vec<String>], path: &NotePath) -> bool {
        let patterns = self.patterns(&self.places_of(names), |rule| &rule.read);
        // The patterns were compiled before.
        let fence = Fence::new(&patterns, self.owner.core.vault.hidden());
        // A note that is gone may have hidden itself.
        let may_have_hidden = self.state().hiding.is_some_and(|(_, hiding)| hiding)
            && path.is_note()
            && !self.owner.core.vault.has_entry(path);
        fence.is_ok_and(|fence| fence.contains(path)) && !may_have_hidden && !self.plain.withholds(path)
    }

    /// Returns whether all files exist for an agent, as far as the index told when it last asked.
    pub fn show_all(&self, names: &[Vec<String>]) -> bool {
        let patterns = self.patterns(&self.places_of(names), |rule| &rule.read);
        patterns.is_empty() && self.state().hiding.is_none_or(|(_, hiding)| !hiding)
    }

    /// Says what an agent may do by its rule and the flags of the server. Returns `None` if nothing is limited.
    pub fn describe(&self, names: &[Vec<String>]) -> Option<String> {
        let rules = self.rules_of(names).into_iter().chain([&self.flags]);
        let limits =
            rules.filter(|rule| **rule != AgentRule { name: rule.name.clone(), ..AgentRule::default() });
        let texts: Vec<String> = limits.map(AgentRule::describe).collect();
        (!texts.is_empty()).then(|| texts.join("; besides, "))
    }

    /// Returns whether the rules may fence an agent whose names are not known.
    pub fn may_fence(&self) -> bool {
        self.rules.iter().any(|rule| rule.read.is_some())
    }

    fn access(&self, places: Places, is_fenced: bool) -> Result<Arc<AgentAccess>> {
        let mut state = self.state();
        if let Some(known) = state.access.get(&(places.clone(), is_fenced)) {
            return Ok(Arc::clone(known));
        }
        let owner = is_fenced.then(|| self.owner.core.clone());
        let write = self.patterns(&places, |rule| &rule.write);
        let rules: Vec<&AgentRule> = places.iter().filter_map(|at| self.rules.get(*at)).collect();
        let rule = AgentRule::together(&rules);
        let access = Arc::new(AgentAccess::new(rule, &write, owner)?);
        state.access.insert((places, is_fenced), Arc::clone(&access));
        Ok(access)
    }

    /// Returns the store of agents for which some paths exist alone. It is opened when it is first wanted.
    fn fenced(&self, patterns: Vec<Vec<String>>) -> Result<Store> {
        let mut state = self.state();
        if let Some(known) = state.fenced.get(&patterns) {
            return Ok(known.store.clone());
        }
        let fence = Arc::new(Fence::new(&patterns, self.owner.core.vault.hidden())?);
        let index = Some(self.index_folder(&patterns)?);
        let vault = Some(self.owner.root().to_owned());
        let open =
            Open { fence: Some(fence), index, vault, existing: false, rebuild: false, ..self.open.clone() };
        let store = Store::open(open)?;
        let follower = if state.follows { Some(store.upkeep().follow(|_| {})?) } else { None };
        state.fenced.insert(patterns, FencedStore { store: store.clone(), _follower: follower });
        Ok(store)
    }

    /// Returns the folder of the index for some patterns: beside the index in the vault, or else in the user's cache.
    fn index_folder(&self, patterns: &[Vec<String>]) -> Result<PathBuf> {
        /// The bytes of a hash that are enough to tell the few fences of a vault apart.
        const NAME: usize = 16;
        let hash = blake3::hash(serde_json::json!(patterns).to_string().as_bytes()).to_hex();
        let name = hash.get(..NAME).unwrap_or_default();
        let state = self.owner.root().join(STATE_DIR);
        if self.owner.core.index.folder().parent() == Some(&state) && !self.owner.is_read_only() {
            return Ok(state.join("fenced").join(name));
        }
        let cache = cache_folder(self.owner.root(), None);
        let cache = cache.ok_or_else(|| {
            Error::not_found("there is no folder for the index of an agent").with_hint("set HOME")
        })?;
        Ok(cache.join("fenced").join(name))
    }

    /// Returns whether some notes do not exist for any agent, because they say so, and how many files the index is behind if it
    /// was brought up to date.
    fn has_hidden_notes(&self) -> Result<(bool, Option<usize>)> {
        let behind = if self.is_current { Some(self.owner.index().refresh()?) } else { None };
        let generation = self.owner.core.index.snapshot()?.generation;
        if let Some((of, hiding)) = self.state().hiding
            && of == generation
        {
            return Ok((hiding, behind));
        }
        let hiding = !hidden_notes(&self.owner)?.is_empty();
        self.state().hiding = Some((generation, hiding));
        Ok((hiding, behind))
    }

    /// Ends the writing of the indexes that were opened for agents.
    pub fn close(&self, limit: Duration) -> bool {
        let stores: Vec<Store> = {
            let mut state = self.state();
            state.fenced.drain().map(|(_, fenced)| fenced.store).collect()
        };
        // Each is closed, whether or not another one was in time.
        stores.iter().map(|store| store.close(limit)).filter(|in_time| !in_time).count() == 0
    }
}

impl AgentSummary {
    fn of(store: &Store, rule: Option<&AgentRule>, hidden: &HashSet<NotePath>) -> Result<Self> {
        let read = rule.and_then(|rule| rule.read.clone());
        let fence = Fence::new(read.as_slice(), store.core.vault.hidden())?;
        let paths = store.core.index.catalog().paths().all()?;
        let files = paths.iter().filter(|(path, _)| fence.contains(path) && !hidden.contains(path)).count();
        let (all, rule) = (paths.len(), rule.cloned());
        let allowed = rule.clone().unwrap_or_default().describe();
        let mut text = format!("{files} of {all} files: {allowed}");
        for pattern in unmatched(rule.as_ref(), paths.iter().map(|(path, _)| path))? {
            text.push_str(&format!("; no file matches {pattern}"));
        }
        Ok(Self { text, rule, files, fenced_files: all - files })
    }
}

/// Lists the patterns of a rule that match no file, with or without `!`: they may be misspelt.
fn unmatched<'p, 'r>(
    rule: Option<&'r AgentRule>,
    paths: impl Iterator<Item = &'p NotePath> + Clone,
) -> Result<Vec<&'r str>> {
    let mut found = Vec::new();
    for pattern in rule.into_iter().flat_map(|rule| [&rule.read, &rule.write]).flatten().flatten() {
        let alone = PathRules::new(&[pattern.trim().trim_start_matches('!').to_owned()])?;
        if !paths.clone().any(|path| alone.contain(path)) {
            found.push(pattern.as_str());
        }
    }
    Ok(found)
}

/// Says what agents may do in a vault, by each rule in its order. The list is empty if nothing is limited; otherwise its last
/// item is for the agents that no rule names.
///
/// # Errors
/// `Invalid` naming a pattern that is malformed; `Io` and `Corrupt` if the index cannot be read.
pub fn summaries(store: &Store) -> Result<Vec<AgentSummary>> {
    let rules = rules_for(store);
    let hidden = hidden_notes(store)?;
    if rules.is_empty() && hidden.is_empty() {
        return Ok(Vec::new());
    }
    let others = (!rules.iter().any(|rule| rule.name == "*")).then_some(None);
    rules.iter().map(Some).chain(others).map(|rule| AgentSummary::of(store, rule, &hidden)).collect()
}

/// Lists the rules of the settings that are for a vault, in their order.
fn rules_for(store: &Store) -> Vec<AgentRule> {
    let full = |path: PathBuf| sidenote_base::platform::canonicalize(&path).unwrap_or(path);
    let is_here = |rule: &&AgentRule| {
        let vault = rule.vault.as_deref();
        vault.is_none_or(|vault| full(expand_home(Path::new(vault))) == store.root())
    };
    store.config().agents.iter().filter(is_here).cloned().collect()
}

/// Lists the notes that no agent may know of, because they say so.
fn hidden_notes(store: &Store) -> Result<HashSet<NotePath>> {
    let catalog = store.core.index.catalog();
    let mut ids = Vec::new();
    let hides = |values: &Map<String, Value>| {
        values.iter().any(|(name, value)| NoteAccess::of_property(name, value) == NoteAccess::None)
    };
    if catalog.properties().names()?.iter().any(|name| NoteAccess::is_named(name)) {
        catalog.properties().each(|id, values| ids.extend(hides(&values).then_some(id)))?;
        let excluded = catalog.properties().of_hidden()?;
        ids.extend(excluded.into_iter().filter(|(_, values)| hides(values)).map(|(id, _)| id));
    }
    // The properties of a note with broken YAML are not in the catalog.
    ids.extend(catalog.paths().with_problem("yaml-unparsable")?);
    let hides = |path: &NotePath| {
        store.core.read_bytes(path).is_ok_and(|bytes| NoteAccess::of(&bytes) == NoteAccess::None)
    };
    Ok(catalog.rows(&ids)?.into_iter().map(|row| row.path).filter(hides).collect())
}
