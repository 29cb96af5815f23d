//! Limits of the length of replies: the length that every tool aims for, and the hard limit for all of them.

use serde_json::Value;

/// Replies have about so many characters at most; whoever makes one aims for that.
pub(super) const LONGEST: usize = 20_000;
/// What is longer than this is cut to [`LONGEST`], whichever tool gave it.
const BOUND: usize = 26_000;
/// Texts of a reply are cut to these lengths, one after the other, until the reply fits.
const TEXTS: [usize; 7] = [12_000, 6_000, 3_000, 1_500, 700, 350, 200];
/// Lists and the properties of objects are cut to these numbers, where cutting texts was not enough.
const ITEMS: [usize; 8] = [250, 120, 60, 30, 15, 7, 3, 1];
/// A name of a property is no longer than this.
const NAME: usize = 200;
/// Told where something was cut.
pub(super) const CUT: &str =
    "(cut at about 20000 characters; ask for less: one note, some lines, or a smaller limit)";

/// At least this many characters of each text are shown, however many texts a reply has.
const MIN_TEXT: usize = 200;

/// The number of characters that the texts of one reply may still have, where nobody asked for each of them whole.
#[derive(Debug)]
pub(super) struct TextBudget(usize);

impl Default for TextBudget {
    fn default() -> Self {
        Self(LONGEST)
    }
}

impl TextBudget {
    /// Returns a text, cut where the budget is used up, and whether it was cut.
    pub(super) fn take(&mut self, text: &str) -> (String, bool) {
        let most = self.0.max(MIN_TEXT);
        let Some((end, _)) = text.char_indices().nth(most) else {
            self.0 = self.0.saturating_sub(text.chars().count());
            return (text.to_owned(), false);
        };
        self.0 = 0;
        (format!("{}…", text.get(..end).unwrap_or("").trim_end()), true)
    }
}

/// Counts the characters of a value as JSON.
pub(super) fn length(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => json_length(text),
        Value::Array(items) => 2 + items.iter().map(|item| 1 + length(item)).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(name, field)| 2 + json_length(name) + length(field)).sum::<usize>()
        }
    }
}

/// Counts the characters of a text as JSON writes it, quotes included.
pub(super) fn json_length(text: &str) -> usize {
    2 + text.chars().map(cost).sum::<usize>()
}

/// Counts the characters that JSON writes for one.
pub(super) fn cost(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        _ => 1,
    }
}

/// Cuts a text to a number of characters, at the end of a line where there is one near; says whether it was cut.
pub(super) fn cut(text: &mut String, most: usize) -> bool {
    let Some((end, _)) = text.char_indices().nth(most) else { return false };
    let near = text.get(..end).and_then(|kept| kept.rfind('\n')).filter(|line| *line > end / 2);
    text.truncate(near.map_or(end, |line| line + 1));
    true
}

/// Cuts a text that is longer than any reply, and says whether it was.
pub(super) fn fit_text(text: &mut String) -> bool {
    text.chars().nth(BOUND).is_some() && cut(text, LONGEST)
}

/// Cuts data that are longer than any reply: long texts first, then lists. Says whether anything was cut; an object
/// tells it, too, as `truncated`.
pub(super) fn fit(value: &mut Value) -> bool {
    if length(value) <= BOUND {
        return false;
    }
    let texts = TEXTS.iter().map(|most| (*most, usize::MAX));
    let items = ITEMS.iter().map(|most| (200, *most));
    for (text, items) in texts.chain(items) {
        shrink(value, text, items, true);
        if length(value) <= LONGEST {
            break;
        }
    }
    if let Value::Object(fields) = value {
        fields.insert("truncated".to_owned(), Value::Bool(true));
    }
    true
}

/// Cuts every text and list of a value. What a reply itself consists of stays.
fn shrink(value: &mut Value, text: usize, items: usize, is_reply: bool) {
    match value {
        Value::String(held) => {
            if cut(held, text) {
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
                    left > 0 && name.chars().count() <= NAME
                });
            }
            fields.values_mut().for_each(|field| shrink(field, text, items, false));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
