//! The period in which a note is valid, as its properties say it, and why a note is not valid now.

use serde::Serialize;
use sidenote_base::clock::Timestamp;

/// The period in which a note is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidityPeriod {
    /// When the note was created, which is its start without `valid_from`.
    pub created: Timestamp,
    /// The property `valid_from`.
    pub from: Option<Timestamp>,
    /// The first instant after the period, by the property `valid_until`.
    pub until: Option<Timestamp>,
}

impl ValidityPeriod {
    /// Returns the first instant of the period.
    pub fn start(&self) -> Timestamp {
        self.from.unwrap_or(self.created)
    }

    /// Returns whether an instant lies in the period.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start() <= at && self.until.is_none_or(|until| at < until)
    }

    /// Returns whether the note replaces others at `now`. A note that exists does so unless its `valid_from` lies ahead.
    pub fn replaces_at(&self, now: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= now)
    }
}

/// Returns the first instant after a `valid_until`: a date is valid to the end of its day, a time ends the period itself.
pub fn end_of(text: &str) -> Option<Timestamp> {
    let start = Timestamp::parse(text)?;
    if !is_date(text) {
        return Some(start);
    }
    // The calendar has no day after the last one of the year 9999, which people write for "without an end".
    let last = || Timestamp::from_millis(start.millis() + 24 * 60 * 60 * 1_000);
    Some(Timestamp::day_range(start.date()).map_or_else(last, |(_, end)| end))
}

/// Returns the instant that a date means in a question about what was valid then: the last millisecond of the day. A
/// time means itself.
pub fn as_of(text: &str, start: Timestamp) -> Timestamp {
    let text = text.trim();
    let is_time = Timestamp::parse(text).is_some() && !is_date(text);
    // `12h` and `45min` are instants, `7d` and `yesterday` days.
    let is_instant = text.contains("min") || (text.contains('h') && !text.contains("mo"));
    let day = Timestamp::day_range(start.date()).filter(|_| !is_time && !is_instant);
    day.map_or(start, |(_, end)| Timestamp::from_millis(end.millis() - 1))
}

/// Returns whether a text that is a date or a time has no time.
fn is_date(text: &str) -> bool {
    text.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Why a note is not valid now. Nothing is set for a valid note.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Invalidity {
    /// The path of the newest note that supersedes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// When it becomes valid, if that lies ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_valid_before: Option<Timestamp>,
    /// When it ceased to be valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_valid_since: Option<Timestamp>,
}

impl Invalidity {
    /// Returns the name and the value of each reason, as JSON has them.
    pub fn reasons(&self) -> Vec<(&'static str, String)> {
        let superseded = self.superseded_by.iter().map(|path| ("superseded_by", path.clone()));
        let before = self.not_valid_before.iter().map(|from| ("not_valid_before", day_or_time(*from)));
        let since = self.not_valid_since.iter().map(|end| ("not_valid_since", day_or_time(*end)));
        superseded.chain(before).chain(since).collect()
    }

    /// Returns a phrase that tells all reasons, such as `superseded by plans/New.md`. It is empty for a valid note.
    pub fn phrase(&self) -> String {
        let phrases =
            self.reasons().into_iter().map(|(name, value)| format!("{} {value}", name.replace('_', " ")));
        phrases.collect::<Vec<_>>().join(", ")
    }
}

/// Formats a time as a date, or in full if it is not the start of a day.
fn day_or_time(time: Timestamp) -> String {
    let is_day = Timestamp::start_of(time.date()) == Some(time);
    if is_day { time.day() } else { time.local_rfc3339() }
}
