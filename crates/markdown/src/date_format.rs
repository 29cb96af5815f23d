//! Date formats with Moment's tokens (<https://momentjs.com/docs/#/displaying/>), as Obsidian uses them, and template
//! variables (docs/spec/obsidian.md 9). The names of months and days are English.

use jiff::civil::DateTime;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The tokens. A longer token comes before its prefixes.
const TOKENS: &[&str] = &[
    "YYYY", "YY", "Y", "MMMM", "MMM", "MM", "Mo", "M", "DDDD", "DDDo", "DDD", "DD", "Do", "D", "dddd", "ddd",
    "dd", "do", "d", "GGGG", "gggg", "GG", "gg", "WW", "Wo", "W", "ww", "wo", "w", "Qo", "Q", "E", "e", "HH",
    "H", "hh", "h", "kk", "k", "mm", "m", "ss", "s", "SSS", "SS", "S", "A", "a",
];

/// The tokens of Moment that depend on a language, an era, a time zone or an instant, and are not written.
const UNKNOWN: &[&str] = &[
    "LTS", "LT", "LLLL", "LLL", "LL", "L", "llll", "lll", "ll", "l", "SSSS", "YYYYY", "N", "y", "X", "x",
    "Z", "z",
];

/// A token of Moment that this module does not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownToken(pub &'static str);

impl std::fmt::Display for UnknownToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the token {} of dates is not supported", self.0)
    }
}

/// Formats a time by a pattern. Text in `[ ]` and everything that is not a token is copied.
///
/// # Errors
/// The first token of Moment that is not supported.
pub fn format(pattern: &str, at: DateTime) -> Result<String, UnknownToken> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let literal = rest.strip_prefix('[').and_then(|inner| inner.find(']').map(|end| inner.split_at(end)));
        if let Some((inside, behind)) = literal {
            out.push_str(inside);
            rest = behind.strip_prefix(']').unwrap_or(behind);
        } else if let Some(token) = UNKNOWN.iter().find(|token| rest.starts_with(**token)) {
            return Err(UnknownToken(token));
        } else if let Some(token) = TOKENS.iter().find(|token| rest.starts_with(**token)) {
            out.push_str(&write(token, at));
            rest = rest.strip_prefix(*token).unwrap_or_default();
        } else {
            out.push(c);
            rest = rest.strip_prefix(c).unwrap_or_default();
        }
    }
    Ok(out)
}

fn write(token: &str, at: DateTime) -> String {
    let date = at.date();
    let (month, day, hour) = (date.month(), date.day(), at.hour());
    let weekday = date.weekday().to_sunday_zero_offset();
    let month_name =
        || MONTHS.get(usize::from(month.unsigned_abs()).saturating_sub(1)).copied().unwrap_or("");
    let day_name = || DAYS.get(usize::from(weekday.unsigned_abs())).copied().unwrap_or("");
    let short = |name: &str, length: usize| name.get(..length).unwrap_or(name).to_owned();
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let iso = date.iso_week_date();
    match token {
        "YYYY" | "Y" => format!("{:04}", date.year()),
        "YY" => format!("{:02}", date.year() % 100),
        "MMMM" => month_name().to_owned(),
        "MMM" => short(month_name(), 3),
        "MM" => format!("{month:02}"),
        "Mo" => ordinal(month.into()),
        "M" => month.to_string(),
        "DDDD" => format!("{:03}", date.day_of_year()),
        "DDDo" => ordinal(date.day_of_year().into()),
        "DDD" => date.day_of_year().to_string(),
        "DD" => format!("{day:02}"),
        "Do" => ordinal(day.into()),
        "D" => day.to_string(),
        "dddd" => day_name().to_owned(),
        "ddd" => short(day_name(), 3),
        "dd" => short(day_name(), 2),
        "do" => ordinal(weekday.into()),
        "d" | "e" => weekday.to_string(),
        "E" => date.weekday().to_monday_one_offset().to_string(),
        "GGGG" | "gggg" => format!("{:04}", iso.year()),
        "GG" | "gg" => format!("{:02}", iso.year() % 100),
        "WW" | "ww" => format!("{:02}", iso.week()),
        "Wo" | "wo" => ordinal(iso.week().into()),
        "W" | "w" => iso.week().to_string(),
        "Qo" => ordinal(i64::from(month - 1) / 3 + 1),
        "Q" => ((month - 1) / 3 + 1).to_string(),
        "HH" => format!("{hour:02}"),
        "H" => hour.to_string(),
        "hh" => format!("{twelve:02}"),
        "h" => twelve.to_string(),
        "kk" => format!("{:02}", if hour == 0 { 24 } else { hour }),
        "k" => if hour == 0 { 24 } else { hour }.to_string(),
        "mm" => format!("{:02}", at.minute()),
        "m" => at.minute().to_string(),
        "ss" => format!("{:02}", at.second()),
        "s" => at.second().to_string(),
        "SSS" => format!("{:03}", at.millisecond()),
        "SS" => format!("{:02}", at.millisecond() / 10),
        "S" => (at.millisecond() / 100).to_string(),
        "A" => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        "a" => if hour < 12 { "am" } else { "pm" }.to_owned(),
        other => other.to_owned(),
    }
}

fn ordinal(number: i64) -> String {
    let end = match (number % 10, number % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

/// Replaces the variables of a template: `{{title}}`, `{{date}}` and `{{time}}`, the last two optionally with a pattern
/// after a colon. Names are matched ignoring case, and unknown variables are kept.
///
/// # Errors
/// The first token of a pattern that is not supported.
pub fn fill(
    template: &str,
    title: &str,
    at: DateTime,
    date_format: &str,
    time_format: &str,
) -> Result<String, UnknownToken> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find("{{") {
        let (before, tail) = rest.split_at(open);
        out.push_str(before);
        let Some(end) = tail.find("}}") else {
            out.push_str(tail);
            return Ok(out);
        };
        let variable = tail.get(2..end).unwrap_or_default();
        let (name, pattern) = match variable.split_once(':') {
            Some((name, pattern)) => (name, Some(pattern)),
            None => (variable, None),
        };
        match name.trim().to_lowercase().as_str() {
            "title" if pattern.is_none() => out.push_str(title),
            "date" => out.push_str(&format(pattern.unwrap_or(date_format), at)?),
            "time" => out.push_str(&format(pattern.unwrap_or(time_format), at)?),
            _ => out.push_str(tail.get(..end + 2).unwrap_or(tail)),
        }
        rest = tail.get(end + 2..).unwrap_or_default();
    }
    out.push_str(rest);
    Ok(out)
}
