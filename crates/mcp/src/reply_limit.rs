//! Limits of the length of replies: the length that every tool aims for, and the hard limit for all of them.

use serde_json::Value;
use sidenote_language::graphemes::beginning;

/// The number of characters that a tool aims for at most.
pub const TARGET_LENGTH: usize = 20_000;
/// The number of characters beyond which the reply of any tool is cut to [`TARGET_LENGTH`].
const MAX_LENGTH: usize = 26_000;
/// The lengths to which the texts of a reply are cut: each is tried in turn until the reply fits.
const TEXT_LIMITS: [usize; 7] = [12_000, 6_000, 3_000, 1_500, 700, 350, 200];
/// The numbers of items to which lists and objects are cut in turn, after cutting texts was not enough.
const ITEM_LIMITS: [usize; 8] = [250, 120, 60, 30, 15, 7, 3, 1];
/// The longest name of a property, in characters.
const MAX_NAME: usize = 200;
/// The text block that follows a reply that was cut.
pub const CUT_NOTICE: &str =
    "(cut at about 20000 characters; ask for less: one note, some lines, or a smaller limit)";

/// The number of characters of each text that are shown at least, however many texts a reply has.
const MIN_TEXT: usize = 200;

/// The number of characters that the texts of one reply may still take.
#[derive(Debug)]
pub struct TextBudget(usize);

impl Default for TextBudget {
    fn default() -> Self {
        Self(TARGET_LENGTH)
    }
}

impl TextBudget {
    /// Returns a text, cut to what is left of the budget, and whether it was cut.
    pub fn take(&mut self, text: &str) -> (String, bool) {
        let most = self.0.max(MIN_TEXT);
        let Some((end, _)) = text.char_indices().nth(most) else {
            self.0 = self.0.saturating_sub(text.chars().count());
            return (text.to_owned(), false);
        };
        self.0 = 0;
        (format!("{}…", text.get(..end).unwrap_or("").trim_end()), true)
    }
}

/// Counts the characters that JSON uses for a value.
pub fn json_value_length(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => json_length(text),
        Value::Array(items) => 2 + items.iter().map(|item| 1 + json_value_length(item)).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields
                .iter()
                .map(|(name, field)| 2 + json_length(name) + json_value_length(field))
                .sum::<usize>()
        }
    }
}

/// Counts the characters that JSON uses for a string, with its quotes.
pub fn json_length(text: &str) -> usize {
    2 + text.chars().map(json_char_length).sum::<usize>()
}

/// Counts the characters that JSON uses for one character of a string.
pub fn json_char_length(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        _ => 1,
    }
}

/// Cuts a text to a number of characters, or at the last line end if that keeps more than half of them. Returns whether it
/// was cut.
pub fn truncate(text: &mut String, most: usize) -> bool {
    let end = beginning(text, most).len();
    if end == text.len() {
        return false;
    }
    let line_end = text.get(..end).and_then(|kept| kept.rfind('\n')).filter(|line_end| *line_end > end / 2);
    text.truncate(line_end.map_or(end, |line_end| line_end + 1));
    true
}

/// Cuts a text that is longer than a reply may be. Returns whether it was cut.
pub fn limit_text(text: &mut String) -> bool {
    text.chars().nth(MAX_LENGTH).is_some() && truncate(text, TARGET_LENGTH)
}

/// Cuts data that are longer than a reply may be: long texts first, then lists. Returns whether anything was cut; an object
/// that was cut gets the field `truncated`.
pub fn limit_value(value: &mut Value) -> bool {
    if json_value_length(value) <= MAX_LENGTH {
        return false;
    }
    let texts = TEXT_LIMITS.iter().map(|most| (*most, usize::MAX));
    let items = ITEM_LIMITS.iter().map(|most| (200, *most));
    for (text, items) in texts.chain(items) {
        shrink(value, text, items, true);
        if json_value_length(value) <= TARGET_LENGTH {
            break;
        }
    }
    if let Value::Object(fields) = value {
        fields.insert("truncated".to_owned(), Value::Bool(true));
    }
    true
}

/// Cuts every text and list inside a value. The fields of the reply itself stay.
fn shrink(value: &mut Value, text: usize, items: usize, is_reply: bool) {
    match value {
        Value::String(held) => {
            if truncate(held, text) {
                held.push('…');
            }
        }
        Value::Array(list) => {
            list.truncate(items);
            list.iter_mut().for_each(|item| shrink(item, text, items, false));
        }
        Value::Object(fields) => {
            if !is_reply && items < usize::MAX {
                let mut left = items.max(12);
                fields.retain(|name, _| {
                    left = left.saturating_sub(1);
                    left > 0 && name.chars().count() <= MAX_NAME
                });
            }
            fields.values_mut().for_each(|field| shrink(field, text, items, false));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
