//! The tools of `vector` about conversations, and what a search of memories finds in them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_mcp::reply_limit::TextBudget;
use sidenote_mcp::tool::Answer;
use sidenote_store::transcript::Speaker;
use sidenote_store::{ConversationHit, ConversationRequest, Store};

/// The most characters of a message that a search shows.
const SHOWN: usize = 2_000;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct IndexInput {
    /// A folder in the one that the user allows (default: all of it).
    path: Option<String>,
    /// Only sessions written after this day or moment, such as `2026-11-01`.
    since: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SessionsInput {
    /// At most this many sessions (default 20).
    limit: Option<usize>,
    /// Leave out this many of the first (default 0).
    offset: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReindexInput {
    /// The session's id, as list_indexed_sessions tells it.
    session_id: String,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RoleInput {
    User,
    Assistant,
}

/// What a search of memories finds in conversations.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct HistoryInput {
    /// Find what was said in indexed conversations, too (default true).
    include_history: Option<bool>,
    /// Find only what was said in conversations (default false).
    history_only: Option<bool>,
    /// Of conversations, only this session.
    session_id: Option<String>,
    /// Of conversations, only what the user or the assistant said.
    role_filter: Option<RoleInput>,
    /// Of conversations, only what was said at or after this day or moment.
    history_after: Option<String>,
    /// Of conversations, only what was said before this day or moment.
    history_before: Option<String>,
}

impl HistoryInput {
    /// Returns whether memories are left out.
    pub(super) fn is_only_history(&self) -> bool {
        self.history_only == Some(true)
    }

    /// Lists the arguments that ask something of conversations alone.
    fn asked(&self) -> Vec<&'static str> {
        let given = [
            ("include_history", self.include_history == Some(true)),
            ("session_id", self.session_id.is_some()),
            ("role_filter", self.role_filter.is_some()),
            ("history_after", self.history_after.is_some()),
            ("history_before", self.history_before.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    /// Finds the first `limit` messages. `None` if none are asked for, or given; `notices` says the latter where something was
    /// asked of them.
    ///
    /// # Errors
    /// `Invalid` for a date that is none, or if only conversations are asked for and none are given.
    pub(super) fn find(
        &self,
        store: &Store,
        query: &str,
        (after, before): (Option<Timestamp>, Option<Timestamp>),
        limit: usize,
        notices: &mut Vec<String>,
    ) -> Result<Option<Vec<ConversationHit>>> {
        if self.include_history == Some(false) && !self.is_only_history() {
            return Ok(None);
        }
        let conversations = store.conversations();
        if let Err(error) = conversations.folder() {
            if self.is_only_history() {
                return Err(error);
            }
            let asked = self.asked();
            if !asked.is_empty() {
                notices.push(format!("{}, so this is ignored: {}", error.message(), asked.join(", ")));
            }
            return Ok(None);
        }
        let bound = |name: &str, text: &Option<String>| {
            text.as_deref().map(|text| Timestamp::parse_bound_at(name, text, store.now())).transpose()
        };
        let request = ConversationRequest {
            query: query.to_owned(),
            session: self.session_id.clone(),
            speaker: self.role_filter.map(|role| match role {
                RoleInput::User => Speaker::User,
                RoleInput::Assistant => Speaker::Assistant,
            }),
            after: after.into_iter().chain(bound("history_after", &self.history_after)?).collect(),
            before: before.into_iter().chain(bound("history_before", &self.history_before)?).collect(),
            limit,
        };
        conversations.search(&request).map(Some)
    }
}

/// Formats a message that was found.
pub(super) fn format_hit(hit: &ConversationHit, budget: &mut TextBudget) -> String {
    let end = hit.text.char_indices().nth(SHOWN).map(|(end, _)| end);
    let shown = match end {
        Some(end) => format!("{}…", hit.text.get(..end).unwrap_or("").trim_end()),
        None => hit.text.clone(),
    };
    let (text, _) = budget.take(&shown);
    let (role, at) = (hit.speaker.name(), hit.at.millis_rfc3339());
    let metadata = json!({
        "session_id": hit.session.id, "timestamp": at, "role": role, "message_index_start": hit.index,
        "message_index_end": hit.index, "project": hit.session.project, "git_branch": hit.session.branch,
    });
    format!(
        "[conversation_history] ID: {}\nContent: [{role} @ {at}]: {text}\nMetadata: {metadata}\nSession: {}",
        hit.id, hit.session.id
    )
}

pub(super) fn index_conversations(store: &Store, input: IndexInput) -> Result<Answer> {
    let since = input.since.as_deref();
    let since = since.map(|since| Timestamp::parse_bound_at("since", since, store.now())).transpose()?;
    let path = input.path.as_deref().map(str::trim).filter(|path| !path.is_empty());
    let done = store.conversations().index(path, since)?;
    let errors = match done.errors.as_slice() {
        [] => "- No errors".to_owned(),
        errors => {
            let lines: Vec<String> = errors.iter().map(|error| format!("\n  - {error}")).collect();
            format!("- Errors: {}{}", errors.len(), lines.concat())
        }
    };
    Ok(Answer::text(format!(
        "Indexing complete:\n- Indexed: {} sessions\n- Skipped: {} sessions (unchanged)\n{errors}",
        done.indexed, done.skipped
    )))
}

pub(super) fn list_indexed_sessions(store: &Store, input: SessionsInput) -> Result<Answer> {
    let sessions = store.conversations().sessions()?;
    let (offset, total) = (input.offset.unwrap_or(0), sessions.len());
    let shown: Vec<String> = sessions
        .into_iter()
        .skip(offset)
        .take(input.limit.unwrap_or(20))
        .map(|session| {
            let ((first, last), indexed) = (session.period(), session.indexed());
            format!(
                "Session: {}\n  Project: {}\n  Messages: {} | Chunks: {}\n  Period: {} to {}\n  Indexed: {}",
                session.id,
                session.project,
                session.messages,
                session.messages,
                first.millis_rfc3339(),
                last.millis_rfc3339(),
                indexed.millis_rfc3339()
            )
        })
        .collect();
    if shown.is_empty() {
        return Ok(Answer::text("No indexed sessions found. Run index_conversations first."));
    }
    Ok(Answer::text(format!(
        "Showing {}-{} of {total} sessions:\n\n{}",
        offset + 1,
        offset + shown.len(),
        shown.join("\n\n")
    )))
}

pub(super) fn reindex_session(store: &Store, input: ReindexInput) -> Result<Answer> {
    let messages = store
        .conversations()
        .index_again(&input.session_id)
        .map_err(|error| Error::new(error.kind(), format!("Reindex failed: {}", error.message())))?;
    Ok(Answer::text(format!(
        "Session {} reindexed successfully. {messages} chunks created.",
        input.session_id
    )))
}
