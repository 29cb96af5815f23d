//! Differences of two texts as unified diffs, as `git diff` shows them.

use similar::TextDiff;

/// The lines without a change that are shown around one.
const CONTEXT: usize = 2;

/// Returns the changed lines of two texts, each with the name that its header shows. Empty if the texts are equal.
pub fn unified_diff((from, old): (&str, &str), (to, new): (&str, &str)) -> String {
    TextDiff::from_lines(old, new).unified_diff().context_radius(CONTEXT).header(from, to).to_string()
}
