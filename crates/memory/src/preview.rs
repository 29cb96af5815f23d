//! Previews: the short form of a memory in replies.

/// The maximum length of a preview in characters, without the dots.
const LONGEST: usize = 120;

/// Returns the first 120 characters of a text, followed by `...` if it is longer (docs/spec/toolsets.md, `longterm`).
pub fn preview(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or("")),
    }
}
