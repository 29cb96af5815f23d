//! Owns the short form of a memory, as replies show it.

/// A preview has so many characters at most, and dots behind them where there is more.
const LONGEST: usize = 120;

/// Gives the first 120 characters of a text, with `...` behind them where it is longer (spec/toolsets.md, `longterm`).
pub fn preview(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or("")),
    }
}
