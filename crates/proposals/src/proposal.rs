//! What a proposal is: its plan, its reason and evidence, its sources, and what was decided about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_markdown::edit::{ChangeSet, ContentHash, FileLocation};

/// Why something is proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalKind {
    /// An agent or a tool asks for a change.
    Change,
    /// Two notes say the same.
    Duplicate,
    /// A newer note says that what an older one says no longer holds.
    Superseded,
    /// Two notes say opposite things about the same, and none says that it replaces the other.
    Contradiction,
    /// Three or more handoffs repeat something.
    Handoffs,
    /// A memory is over or was never used.
    Stale,
    /// A memory has no type, or a title that says nothing.
    Unclear,
    /// Small memories about one subject could be one note.
    Cluster,
    /// A note names another one without a link.
    MissingLink,
    /// Links lead to nothing, and what they meant is certain.
    DeadLink,
}

impl ProposalKind {
    /// All kinds, in the order in which they are looked for.
    pub const ALL: [Self; 10] = [
        Self::Change,
        Self::Duplicate,
        Self::Superseded,
        Self::Contradiction,
        Self::Handoffs,
        Self::Stale,
        Self::Unclear,
        Self::Cluster,
        Self::MissingLink,
        Self::DeadLink,
    ];

    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Duplicate => "duplicate",
            Self::Superseded => "superseded",
            Self::Contradiction => "contradiction",
            Self::Handoffs => "handoffs",
            Self::Stale => "stale",
            Self::Unclear => "unclear",
            Self::Cluster => "cluster",
            Self::MissingLink => "missing-link",
            Self::DeadLink => "dead-link",
        }
    }

    /// Parses the name of a kind.
    ///
    /// # Errors
    /// `Invalid` if there is no such kind.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::invalid(format!("{name:?} is not a kind of proposal"))
                .with_hint(format!("use one of: {names}"))
        })
    }
}

/// What was decided about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalState {
    /// Nothing yet.
    Waiting,
    /// It was applied.
    Accepted,
    /// It was rejected. It does not come back unless a source changes.
    Rejected,
}

impl ProposalState {
    /// Returns the name of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }
}

/// A note that a proposal is made of, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalSource {
    /// The path of the note.
    pub path: String,
    /// The hash of its bytes.
    pub hash: ContentHash,
}

/// A passage that speaks for a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalEvidence {
    /// The path of the note.
    pub path: String,
    /// What the note says.
    pub text: String,
}

/// The operation of a proposal whose links are planned again when it is accepted, because other notes may link to its
/// sources since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// The change set of the proposal is applied as it is.
    Plan,
    /// Notes are merged into another one.
    Merge {
        /// The paths of the notes that go to the trash.
        from: Vec<String>,
        /// The path of the note that receives their texts.
        into: String,
        /// The title that it gets, if it gets another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
}

/// What was decided, when and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The time.
    pub at: Timestamp,
    /// Who decided.
    pub by: String,
    /// The id of the operation in the journal, if the proposal was accepted and changed something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

/// A planned change that a person accepts or rejects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The id: the beginning of a hash of the kind and the sources.
    pub id: String,
    /// Why it is proposed.
    pub kind: ProposalKind,
    /// What was decided.
    pub state: ProposalState,
    /// The reason in a sentence.
    pub reason: String,
    /// What the sources say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<ProposalEvidence>,
    /// Who proposes it.
    pub author: String,
    /// When it was proposed.
    pub created: Timestamp,
    /// The notes that it is made of. It cannot be accepted after one of them changed.
    pub sources: Vec<ProposalSource>,
    /// How its plan is made when it is accepted.
    pub recipe: Recipe,
    /// The planned change.
    pub plan: ChangeSet,
    /// The planned change as a unified diff.
    pub diff: String,
    /// The texts that a person or an agent gave to files, in place of those of the plan.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, String>,
    /// The files that these texts replace and that are no sources, as they were then. The proposal cannot be accepted
    /// after one of them changed, either.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<ProposalSource>,
    /// The numbers, names and dates of the sources that a given text leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// When it was last begun to be applied. The journal then tells whether it was, if the program ended meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// What was decided, if something was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

impl Proposal {
    /// Returns whether nothing was decided yet.
    pub fn is_waiting(&self) -> bool {
        self.state == ProposalState::Waiting
    }

    /// Returns the paths of the files that the plan changes, without those that only follow.
    pub fn paths(&self) -> Vec<String> {
        let place = |place: &FileLocation| place.in_vault().map(ToString::to_string);
        let mut paths: Vec<String> =
            self.plan.files.iter().filter_map(|file| file.places().find_map(place)).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

/// What a proposal says in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProposalItem {
    /// The id.
    pub id: String,
    /// Why it is proposed.
    pub kind: ProposalKind,
    /// What was decided.
    pub state: ProposalState,
    /// The reason in a sentence.
    pub reason: String,
    /// Who proposes it.
    pub author: String,
    /// When it was proposed.
    pub created: Timestamp,
    /// The files that it changes.
    pub paths: Vec<String>,
    /// Whether it removes files for good, which an undo does not take back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_final: bool,
    /// Of one that waits, the sources that changed or were removed since. It cannot be accepted if there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

impl ProposalItem {
    /// Returns whether a source changed since the proposal was made, so that it cannot be accepted.
    pub fn is_outdated(&self) -> bool {
        !self.changed.is_empty()
    }
}

impl From<&Proposal> for ProposalItem {
    fn from(proposal: &Proposal) -> Self {
        Self {
            id: proposal.id.clone(),
            kind: proposal.kind,
            state: proposal.state,
            reason: proposal.reason.clone(),
            author: proposal.author.clone(),
            created: proposal.created,
            paths: proposal.paths(),
            is_final: proposal.plan.files.iter().any(|file| file.to.is_none()),
            changed: Vec::new(),
        }
    }
}

/// A proposal before it is kept.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Why it is proposed.
    pub kind: ProposalKind,
    /// The reason in a sentence.
    pub reason: String,
    /// What the sources say.
    pub evidence: Vec<ProposalEvidence>,
    /// The notes that it is made of.
    pub sources: Vec<ProposalSource>,
    /// How its plan is made when it is accepted.
    pub recipe: Recipe,
    /// The planned change.
    pub plan: ChangeSet,
}

impl Draft {
    /// Makes a draft of a planned change. Its sources are the files that the plan changes.
    pub fn of_change(plan: ChangeSet, reason: &str) -> Self {
        let source = |file: &sidenote_markdown::edit::FileChange| {
            Some(ProposalSource { path: file.from.as_ref()?.to_string(), hash: file.before? })
        };
        let sources = plan.files.iter().filter_map(source).collect();
        Self {
            kind: ProposalKind::Change,
            reason: reason.to_owned(),
            evidence: Vec::new(),
            sources,
            recipe: Recipe::Plan,
            plan,
        }
    }

    /// Returns the id of the proposal. It is the same for the same kind and the same contents of the sources, whatever
    /// their names. A change also counts what it does, and equal sources are told apart by their paths.
    pub fn id(&self) -> Result<String> {
        let mut hashes: Vec<String> = self.sources.iter().map(|source| source.hash.to_string()).collect();
        hashes.sort();
        let all = hashes.len();
        hashes.dedup();
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.kind.name().as_bytes());
        let mut add = |text: &str| {
            hasher.update(&[0]).update(text.as_bytes());
        };
        hashes.iter().for_each(|hash| add(hash));
        if hashes.len() < all {
            let mut paths: Vec<&str> = self.sources.iter().map(|source| source.path.as_str()).collect();
            paths.sort_unstable();
            paths.into_iter().for_each(&mut add);
        }
        if self.kind == ProposalKind::Unclear {
            // A memory can lack a type and a title.
            add(&self.reason);
        }
        if matches!(self.kind, ProposalKind::Change | ProposalKind::DeadLink) {
            let plan = serde_json::to_string(&self.plan)
                .map_err(|error| Error::internal("cannot write the plan as JSON").with_source(error))?;
            add(&plan);
        }
        Ok(hasher.finalize().to_hex().as_str().chars().take(ID_LENGTH).collect())
    }
}

/// The digits of an id. Two of a million proposals have the same one with a chance of one in 500.
const ID_LENGTH: usize = 12;
