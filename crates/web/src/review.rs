//! The proposals of the page: lists them, shows what each would do now, and carries out what a person decides.

use serde::Deserialize;
use serde_json::json;
use sidenote_base::error::{Error, ErrorKind};
use sidenote_store::{
    ConsolidateRequest, ProposalKind, ProposalOutlook, ProposalsRequest, Store, plan_basis,
};

use crate::params::{Params, day_of, parsed};
use crate::reply::{ApiError, to_json, to_json_with};

/// The names of the actions about proposals.
const ACTIONS: [&str; 5] =
    ["accept-proposal", "reject-proposal", "reopen-proposal", "edit-proposal", "consolidate"];

/// The body of an action about proposals.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Decision {
    /// The id of the proposal, or the beginning of it.
    id: Option<String>,
    /// What the page showed, as the reply about the proposal named it.
    expect_hash: Option<String>,
    /// The file that gets another text.
    path: Option<String>,
    /// The text.
    text: Option<String>,
    /// The kinds that a consolidation looks for; all if it is empty.
    kinds: Vec<String>,
    dry_run: bool,
}

impl Decision {
    fn id(&self) -> Result<&str, ApiError> {
        self.id.as_deref().ok_or_else(|| ApiError::invalid("id is missing"))
    }
}

/// Lists proposals.
pub(crate) fn list(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    let kind = params.get("kind").map(ProposalKind::parse).transpose()?;
    to_json(&store.proposals().list(ProposalsRequest { kind, all: params.is_set("decided") })?)
}

/// Shows a proposal with what it would do now.
///
/// # Errors
/// Those of [`sidenote_store::Proposals::outlook`].
pub(crate) fn show(store: &Store, id: &str) -> Result<Vec<u8>, ApiError> {
    let outlook = store.proposals().outlook(id)?;
    let hash = shown_hash(&outlook);
    to_json_with(&outlook, json!({"expect_hash": hash}))
}

/// Reviews a week.
pub(crate) fn week(store: &Store, params: &Params) -> Result<Vec<u8>, ApiError> {
    to_json(&store.proposals().review(day_of(params.get("week"))?)?)
}

/// Returns whether an action is about proposals.
pub(crate) fn is_action(name: &str) -> bool {
    ACTIONS.contains(&name)
}

/// Carries out an action about proposals.
///
/// # Errors
/// `invalid` if the body is malformed; `conflict` if the proposal is not as the page showed it; those of the store.
pub(crate) fn decide(store: &Store, name: &str, body: &[u8]) -> Result<Vec<u8>, ApiError> {
    let action: Decision = parsed(body)?;
    let proposals = store.proposals();
    match name {
        "accept-proposal" => accept(store, &action),
        "reject-proposal" if action.dry_run => to_json(&proposals.show(action.id()?)?),
        "reject-proposal" => to_json(&proposals.reject(action.id()?)?),
        "reopen-proposal" if action.dry_run => to_json(&proposals.rejected(action.id()?)?),
        "reopen-proposal" => to_json(&proposals.reopen(action.id()?)?),
        "edit-proposal" => {
            let text = action.text.as_deref().ok_or_else(|| ApiError::invalid("text is missing"))?;
            let path = action.path.as_deref();
            to_json(&proposals.edit(action.id()?, path, text, &[], action.dry_run)?)
        }
        "consolidate" => {
            let kinds = action.kinds.iter().map(|name| ProposalKind::parse(name));
            let request = ConsolidateRequest {
                kinds: kinds.collect::<Result<_, _>>()?,
                folder: None,
                dry_run: action.dry_run,
            };
            to_json(&proposals.consolidate(&request)?)
        }
        _ => Err(ApiError::not_found(&format!("there is no action {name:?}"))),
    }
}

/// Applies the change of a proposal, if it is the one that the page showed.
fn accept(store: &Store, action: &Decision) -> Result<Vec<u8>, ApiError> {
    let id = action.id()?;
    if action.dry_run {
        return to_json(&store.proposals().accept(id, true)?);
    }
    let Some(expected) = &action.expect_hash else {
        return to_json(&store.proposals().accept(id, false)?);
    };
    let now = store.proposals().outlook(id)?;
    // Where nothing can be applied now, the refusal of the proposal itself says why.
    if shown_hash(&now).is_some_and(|hash| hash != *expected) {
        let text =
            format!("the proposal {} is not as it was shown; nothing was written", now.reply.proposal.id);
        let error = Error::new(ErrorKind::Conflict, text).with_hint("look at it again, and decide then");
        return Err(error.into());
    }
    let expecting = store.expecting(Some(plan_basis(&now.reply.proposal.plan)));
    to_json(&expecting.proposals().accept(id, false)?)
}

/// Returns what stands for everything that a proposal would do now: the files that it changes, and how. `None` if it cannot be
/// accepted.
fn shown_hash(outlook: &ProposalOutlook) -> Option<String> {
    let ProposalOutlook { reply, obstacle, .. } = outlook;
    if !reply.proposal.is_waiting() || !reply.changed.is_empty() || obstacle.is_some() {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(plan_basis(&reply.proposal.plan).as_bytes()).update(reply.proposal.diff.as_bytes());
    Some(hasher.finalize().to_hex().to_string())
}
