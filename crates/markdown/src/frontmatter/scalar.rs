//! Formatting of values in YAML and JSON: which style a string allows, and its bytes in that style.

use serde_json::Value;

use super::yaml::core;
use super::{Style, has_shape};
use crate::link::HostEscape;

/// Formats a string in a style, with its quotes. Returns `None` if the style does not allow it outside brackets, or if
/// it would not be read as a string.
///
/// A string that looks like a number, a boolean, null or a date needs quotes, except for the two formats of dates that
/// Obsidian writes: `2026-01-02`, and `2026-01-02T10:00` with or without seconds.
pub fn encode_scalar(value: &str, style: Style) -> Option<String> {
    in_style(value, style, false)
}

/// Encodes text for the inside of a string or file, without quotes around it. Returns `None` if it cannot be
/// represented there.
///
/// The text can be a part of a plain scalar, so the type that it looks like does not matter. The scalar can be in a
/// list in brackets, so the signs of such lists are refused.
pub fn encode_in(host: HostEscape, text: &str) -> Option<String> {
    match host {
        HostEscape::None => Some(text.to_owned()),
        HostEscape::YamlPlain => is_plain(text, true).then(|| text.to_owned()),
        HostEscape::YamlSingle => single(text),
        HostEscape::YamlDouble => Some(double(text)),
        HostEscape::Json => Some(json(text)),
    }
}

/// Formats a value: a string in the wanted style if that is legal, otherwise in double quotes, and a collection in
/// brackets.
pub(super) fn format_value(value: &Value, wanted: Style, flow: bool) -> String {
    match value {
        Value::String(text) => {
            in_style(text, wanted, flow).or_else(|| in_style(text, Style::Plain, flow)).unwrap_or_else(|| {
                let body = double(text);
                format!("\"{body}\"")
            })
        }
        Value::Array(items) => {
            let items: Vec<String> =
                items.iter().map(|item| format_value(item, Style::Plain, true)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entry = |(name, value): (&String, &Value)| {
                format!(
                    "{}: {}",
                    format_key(name, Style::Plain, true),
                    format_value(value, Style::Plain, true)
                )
            };
            let entries: Vec<String> = map.iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// Formats a key in the wanted style if that is legal, otherwise in double quotes.
pub(super) fn format_key(key: &str, wanted: Style, flow: bool) -> String {
    // A plain `<<` merges another mapping.
    let wanted = if key == "<<" && wanted == Style::Plain { Style::Double } else { wanted };
    in_style(key, wanted, flow).unwrap_or_else(|| format!("\"{}\"", double(key)))
}

fn in_style(text: &str, style: Style, flow: bool) -> Option<String> {
    match style {
        Style::Plain => (is_plain(text, flow) && is_string(text)).then(|| text.to_owned()),
        Style::Single => single(text).map(|body| format!("'{body}'")),
        Style::Double => Some(format!("\"{}\"", double(text))),
        _ => None,
    }
}

/// Returns whether a plain scalar with this text is a string, also for readers with the dates and floats of YAML 1.1.
fn is_string(text: &str) -> bool {
    let float = text.trim_start_matches(['-', '+']).to_ascii_lowercase();
    core(text).is_none() && !matches!(float.as_str(), ".inf" | ".nan") && !looks_like_date(text)
}

/// Returns whether a text is a timestamp of YAML 1.1 in any format except the two that Obsidian writes.
fn looks_like_date(text: &str) -> bool {
    if ["0000-00-00", "0000-00-00T00:00", "0000-00-00T00:00:00"].iter().any(|shape| has_shape(text, shape)) {
        return false;
    }
    let day_end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let (day, time) = text.split_at(day_end);
    let mut parts = day.split('-');
    let mut digits = |lens: std::ops::RangeInclusive<usize>| {
        parts
            .next()
            .is_some_and(|part| lens.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_day = digits(4..=4) && digits(1..=2) && digits(1..=2) && parts.next().is_none();
    let clock = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | '+' | '-' | 'Z' | 'z' | ' ');
    let is_time = time.get(1..).is_none_or(|time| time.contains(':') && time.chars().all(clock));
    is_day && is_time
}

/// Returns whether a text needs no quotes; with `flow`, also inside of brackets.
fn is_plain(text: &str, flow: bool) -> bool {
    let mut chars = text.chars();
    let Some(first) = chars.next() else {
        return false;
    };
    let second = chars.next();
    let opens = match first {
        '-' | '?' | ':' => second.is_some_and(|next| !next.is_whitespace()),
        ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
            false
        }
        _ => true,
    };
    opens
        && text.trim() == text
        && !text.contains('\t')
        && text.chars().all(is_printable)
        && !text.contains(": ")
        && !text.ends_with(':')
        && !text.contains(" #")
        && !text.starts_with("---")
        && !text.starts_with("...")
        && !(flow && text.contains([',', '[', ']', '{', '}']))
}

/// Returns whether every version of YAML allows a character unescaped within a line.
fn is_printable(c: char) -> bool {
    match c {
        '\t' | ' '..='~' => true,
        '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}' => false,
        _ => c >= '\u{A0}',
    }
}

fn single(text: &str) -> Option<String> {
    text.chars().all(is_printable).then(|| text.replace('\'', "''"))
}

fn double(text: &str) -> String {
    let mut body = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => body.extend(['\\', c]),
            '\n' => body.push_str("\\n"),
            '\r' => body.push_str("\\r"),
            '\t' => body.push_str("\\t"),
            c if is_printable(c) => body.push(c),
            c => body.push_str(&format!("\\u{:04X}", u32::from(c))),
        }
    }
    body
}

fn json(text: &str) -> String {
    let mut body = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => body.extend(['\\', c]),
            '\n' => body.push_str("\\n"),
            '\r' => body.push_str("\\r"),
            '\t' => body.push_str("\\t"),
            '\u{8}' => body.push_str("\\b"),
            '\u{C}' => body.push_str("\\f"),
            '\0'..='\u{1F}' => body.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => body.push(c),
        }
    }
    body
}
