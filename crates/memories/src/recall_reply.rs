//! The reply of a recall, and its budget: everything that is sent fits, measured in the form in which it is sent.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use sidenote_memory::context::WorkContext;
use sidenote_memory::recall::{RecallItem, estimate_tokens, truncate, xml_block};

/// The minimum number of tokens to which the text of a memory is truncated.
const MIN_TEXT_TOKENS: usize = 16;

/// The recalled memories.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RecallReply {
    /// The active context.
    pub context: Option<WorkContext>,
    /// The memories, best first.
    pub memories: Vec<RecallItem>,
    /// Sentences about what the answer lacks, such as that only words were searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// Returns the tokens of all that is sent of a reply.
type ReplySize = dyn Fn(&RecallReply) -> usize + Send + Sync;

/// The most tokens of a reply.
#[derive(Clone)]
pub struct RecallBudget {
    tokens: usize,
    size: Arc<ReplySize>,
}

impl fmt::Debug for RecallBudget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RecallBudget").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

impl RecallBudget {
    /// Limits a reply to a number of tokens. `text` returns all that is sent of it.
    pub fn new(tokens: usize, text: impl Fn(&RecallReply) -> String + Send + Sync + 'static) -> Self {
        Self { tokens, size: Arc::new(move |reply| estimate_tokens(&text(reply))) }
    }

    /// Limits a reply that is sent as a block.
    pub fn of_block(tokens: usize) -> Self {
        Self::new(tokens, |reply| xml_block(reply.context.as_ref(), &reply.memories))
    }

    fn admits(&self, reply: &RecallReply) -> bool {
        (self.size)(reply) <= self.tokens
    }

    /// Keeps as much of a reply as fits: the context first, then the memories in order. The text of the last one is truncated
    /// if that makes it fit. A reply with nothing in it stays, even if that takes more.
    pub fn fit(&self, reply: RecallReply) -> RecallReply {
        if self.admits(&reply) {
            return reply;
        }
        let RecallReply { context, memories, notices } = reply;
        let mut fitting = RecallReply { context, memories: Vec::new(), notices };
        if !self.admits(&fitting) {
            fitting.context = None;
        }
        // `fit` memories fit, and `exceed` memories do not.
        let (mut fit, mut exceed) = (0, memories.len());
        while exceed - fit > 1 {
            let middle = fit.midpoint(exceed);
            fitting.memories = memories.get(..middle).unwrap_or_default().to_vec();
            if self.admits(&fitting) { fit = middle } else { exceed = middle }
        }
        fitting.memories = memories.get(..fit).unwrap_or_default().to_vec();
        let shortened = memories.get(fit).and_then(|memory| self.shorten(&mut fitting, memory));
        fitting.memories.extend(shortened);
        fitting
    }

    /// Returns a memory with as much of its text as fits into a reply. Returns `None` if less than a line of it does.
    fn shorten(&self, reply: &mut RecallReply, memory: &RecallItem) -> Option<RecallItem> {
        let cut = |tokens| RecallItem { text: truncate(&memory.text, tokens), ..memory.clone() };
        let mut fits = |tokens| {
            reply.memories.push(cut(tokens));
            let fits = self.admits(reply);
            reply.memories.pop();
            fits
        };
        let (mut least, mut most) = (MIN_TEXT_TOKENS, estimate_tokens(&memory.text));
        if least >= most || !fits(least) {
            return None;
        }
        while most - least > 1 {
            let middle = least.midpoint(most);
            if fits(middle) { least = middle } else { most = middle }
        }
        // A long first word leaves next to nothing.
        Some(cut(least)).filter(|memory| estimate_tokens(&memory.text) >= MIN_TEXT_TOKENS / 2)
    }
}
