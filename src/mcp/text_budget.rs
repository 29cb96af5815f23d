//! Owns how much of texts a reply holds where nobody asked for each of them whole.

use crate::mcp::reply_limit::LONGEST;

/// Of each at least so many are shown, however many texts there are.
const LEAST: usize = 200;

/// The room that is left in a reply.
#[derive(Debug)]
pub(super) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(LONGEST)
    }
}

impl Room {
    /// Gives a text, cut where there is no more room for it, and says whether it was.
    pub(super) fn take(&mut self, text: &str) -> (String, bool) {
        let most = self.0.max(LEAST);
        let Some((end, _)) = text.char_indices().nth(most) else {
            self.0 = self.0.saturating_sub(text.chars().count());
            return (text.to_owned(), false);
        };
        self.0 = 0;
        (format!("{}…", text.get(..end).unwrap_or("").trim_end()), true)
    }
}
