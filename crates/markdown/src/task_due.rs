//! The day on which a task is due, as the plugins Tasks and Dataview of Obsidian write it.

use jiff::civil::Date;

use crate::path::key;

/// The signs before the day in the form of the plugin Tasks.
const SIGNS: [char; 3] = ['📅', '📆', '🗓'];
/// The field of the plugin Dataview.
const FIELD: &str = "due";

/// Returns the day on which a task is due, if its text says so: `📅 2026-11-30`, or `due:: 2026-11-30` with or without brackets.
pub fn due_day(text: &str) -> Option<String> {
    let by_sign = text.char_indices().filter(|(_, sign)| SIGNS.contains(sign));
    let by_sign = by_sign.filter_map(|(at, sign)| text.get(at + sign.len_utf8()..));
    // The sign of a calendar can be followed by the one that asks for a picture.
    let after_sign = by_sign.map(|rest| rest.trim_start_matches('\u{FE0F}'));
    let after_field = text.match_indices("::").filter_map(|(at, found)| {
        let name = text.get(..at)?.trim_end();
        let name = name.rsplit(|sign: char| !sign.is_alphanumeric() && sign != '-' && sign != '_').next()?;
        (key(name) == FIELD).then(|| text.get(at + found.len()..)).flatten()
    });
    after_sign.chain(after_field).find_map(day_at)
}

/// Returns the day at the beginning of a text.
fn day_at(text: &str) -> Option<String> {
    let text = text.trim_start();
    let is_longer = text.as_bytes().get(10).is_some_and(u8::is_ascii_digit);
    let day = Date::strptime("%Y-%m-%d", text.get(..10)?).ok().filter(|_| !is_longer)?;
    Some(day.to_string())
}
