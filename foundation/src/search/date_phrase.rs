//! Dates in queries: the words that tell from when a note is, such as `last week` or `in March 2024`. Pure.
//!
//! Only phrases count that hardly mean anything else: `in May` does, `may` does not.

use jiff::ToSpan as _;
use jiff::civil::{Date, Weekday};

use crate::clock::Timestamp;
use crate::text::folding::is_unspaced;
use crate::text::span::Span;
use crate::text::word_lists::{DatePattern, date_patterns};

/// A phrase of a query that names a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatePhrase {
    /// Where the phrase stands in the query.
    pub span: Span,
    /// The first day of the period.
    pub from: Option<Date>,
    /// The first day after the period.
    pub to: Option<Date>,
}

impl DatePhrase {
    /// Returns whether an instant lies in the period.
    pub fn contains(&self, at: Timestamp) -> bool {
        let after = self.from.and_then(Timestamp::start_of).is_none_or(|from| at >= from);
        after && self.to.and_then(Timestamp::start_of).is_none_or(|to| at < to)
    }

    /// Returns the query without the phrase.
    pub fn without(&self, query: &str) -> String {
        let before = query.get(..self.span.start).unwrap_or("").trim_end();
        let rest = query.get(self.span.end..).unwrap_or("").trim_start();
        format!("{before} {rest}").trim().to_owned()
    }

    /// Describes the period, such as `from 2024-03-01 to 2024-03-31`.
    pub fn period(&self) -> String {
        let last = self.to.and_then(|to| to.yesterday().ok());
        match (self.from, last) {
            (Some(from), Some(last)) if from == last => format!("of {from}"),
            (Some(from), Some(last)) => format!("from {from} to {last}"),
            (Some(from), None) => format!("from {from} on"),
            (None, Some(last)) => format!("until {last}"),
            (None, None) => "of any date".to_owned(),
        }
    }
}

/// The most words of a query whose dates count. A longer one is a message that tells when things happened, not from when
/// the note is that it asks for (docs/dev/queries.md).
const MAX_WORDS: usize = 12;

/// So many characters count as a word in a script without spaces.
const UNSPACED_WORD: usize = 2;

/// The years that a number of four digits can name.
const YEARS: std::ops::RangeInclusive<i16> = 1950..=2099;

/// Finds the first phrase in a query that names a period, as seen at `now`.
pub fn find(query: &str, now: Timestamp) -> Option<DatePhrase> {
    let today = now.date();
    let words = words(query);
    let unspaced = query.chars().filter(|c| is_unspaced(*c)).count() / UNSPACED_WORD;
    if words.len() > MAX_WORDS {
        return None;
    }
    let english = (0..words.len()).find_map(|at| {
        let text = |offset: usize| words.get(at + offset).map_or("", |(word, _)| word.as_str());
        let (length, from, to) = period(text(0), text(1), text(2), today)?;
        let (start, end) = (words.get(at)?.1.start, words.get(at + length - 1)?.1.end);
        Some(DatePhrase { span: Span::new(start, end), from, to })
    });
    if words.len() + unspaced > MAX_WORDS {
        return english;
    }
    let other = date_patterns(query).into_iter().find_map(|pattern| {
        let (from, to) = period_of(&pattern, today)?;
        Some(DatePhrase { span: Span::new(pattern.span.start, pattern.span.end), from, to })
    });
    english.into_iter().chain(other).min_by_key(|phrase| phrase.span.start)
}

/// Splits a query at spaces into words in lower case without signs around them, each with its span.
fn words(query: &str) -> Vec<(String, Span)> {
    let mut found = Vec::new();
    let mut at = 0;
    for piece in query.split_inclusive(char::is_whitespace) {
        let bare = piece.trim_matches(|c: char| !c.is_alphanumeric());
        if !bare.is_empty() {
            let start = at + piece.find(bare).unwrap_or(0);
            found.push((bare.to_lowercase(), Span::new(start, start + bare.len())));
        }
        at += piece.len();
    }
    found
}

/// A number of words, and the first day of the period that they name and the first day after it.
type Period = (usize, Option<Date>, Option<Date>);

fn period(first: &str, second: &str, third: &str, today: Date) -> Option<Period> {
    let day = |date: Date| Some((date, date.tomorrow().ok()?));
    let whole = |length: usize, (from, to): (Date, Date)| Some((length, Some(from), Some(to)));
    match (first, second) {
        ("yesterday", _) => whole(1, day(today.yesterday().ok()?)?),
        ("last", "week") => whole(2, week(today.checked_sub(1.week()).ok()?)?),
        ("this", "week") => whole(2, week(today)?),
        ("last", "month") => whole(2, month(today.first_of_month().yesterday().ok()?)?),
        ("this", "month") => whole(2, month(today)?),
        ("last", "year") => whole(2, year(today.year() - 1)?),
        ("this", "year") => whole(2, year(today.year())?),
        ("in" | "on" | "since" | "before" | "after" | "until" | "during", _) => {
            let (length, (from, to)) = named(second, third, today, first)?;
            match first {
                "since" => Some((length, Some(from), None)),
                "before" => Some((length, None, Some(from))),
                "after" => Some((length, Some(to), None)),
                "until" => Some((length, None, Some(to))),
                _ => whole(length, (from, to)),
            }
        }
        _ => None,
    }
}

/// Returns the period that one or two words after a preposition name, and the number of words with the preposition.
fn named(word: &str, next: &str, today: Date, preposition: &str) -> Option<(usize, (Date, Date))> {
    let is_point = preposition != "in" && preposition != "during";
    if let Some(number) = month_number(word).filter(|_| preposition != "on") {
        let said = next.parse::<i16>().ok().filter(|year| YEARS.contains(year) && next.len() == 4);
        // A month without a year is the last one that has begun.
        let passed = if number > today.month() { today.year() - 1 } else { today.year() };
        let first = Date::new(said.unwrap_or(passed), number, 1).ok()?;
        return Some((if said.is_some() { 3 } else { 2 }, month(first)?));
    }
    if let Some(weekday) = weekday(word).filter(|_| is_point) {
        // The last such day, and today not.
        let date = today.nth_weekday(-1, weekday).ok()?;
        return Some((2, (date, date.tomorrow().ok()?)));
    }
    if let Some(number) = word.parse::<i16>().ok().filter(|_| word.len() == 4 && preposition != "on") {
        return YEARS.contains(&number).then(|| year(number)).flatten().map(|period| (2, period));
    }
    let is_iso = word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let date: Date = word.parse().ok().filter(|_| is_iso && is_point)?;
    Some((2, (date, date.tomorrow().ok()?)))
}

/// Returns the period that a pattern names.
fn period_of(pattern: &DatePattern, today: Date) -> Option<(Option<Date>, Option<Date>)> {
    let whole = |(from, to): (Date, Date)| Some((Some(from), Some(to)));
    match pattern.meaning {
        "yesterday" => whole(day(today.yesterday().ok()?)?),
        "last_week" => whole(week(today.checked_sub(1.week()).ok()?)?),
        "last_week_day" => whole(day(of_week(week(today.checked_sub(1.week()).ok()?)?, pattern.weekday?)?)?),
        "this_week" => whole(week(today)?),
        "last_month" => whole(month(today.first_of_month().yesterday().ok()?)?),
        "this_month" => whole(month(today)?),
        "last_year" => whole(year(today.year() - 1)?),
        "this_year" => whole(year(today.year())?),
        "in" => whole(named_by(pattern, today)?),
        "since" => Some((Some(named_by(pattern, today)?.0), None)),
        "before" => Some((None, Some(named_by(pattern, today)?.0))),
        "after" => Some((Some(named_by(pattern, today)?.1), None)),
        "until" => Some((None, Some(named_by(pattern, today)?.1))),
        _ => None,
    }
}

/// Returns the period that the slots of a pattern name: a date, a month, a day of the week or a year.
fn named_by(pattern: &DatePattern, today: Date) -> Option<(Date, Date)> {
    if let Some(date) = &pattern.date {
        return day(date.parse().ok()?);
    }
    if pattern.year.is_some_and(|year| !YEARS.contains(&year)) {
        return None;
    }
    if let Some(number) = pattern.month {
        let number = i8::try_from(number).ok()?;
        // A month without a year is the last one that has begun.
        let passed = if number > today.month() { today.year() - 1 } else { today.year() };
        return month(Date::new(pattern.year.unwrap_or(passed), number, 1).ok()?);
    }
    if let Some(number) = pattern.weekday {
        let weekday = Weekday::from_monday_one_offset(i8::try_from(number).ok()?).ok()?;
        // The last such day, and today not.
        return day(today.nth_weekday(-1, weekday).ok()?);
    }
    year(pattern.year?)
}

/// Returns the day of a week, given by its number from Monday on.
fn of_week((monday, _): (Date, Date), weekday: usize) -> Option<Date> {
    monday.checked_add(i64::try_from(weekday).ok()?.checked_sub(1)?.days()).ok()
}

fn day(date: Date) -> Option<(Date, Date)> {
    Some((date, date.tomorrow().ok()?))
}

fn week(day: Date) -> Option<(Date, Date)> {
    let monday = day.checked_sub(i64::from(day.weekday().to_monday_zero_offset()).days()).ok()?;
    Some((monday, monday.checked_add(1.week()).ok()?))
}

fn month(day: Date) -> Option<(Date, Date)> {
    Some((day.first_of_month(), day.last_of_month().tomorrow().ok()?))
}

fn year(number: i16) -> Option<(Date, Date)> {
    Some((Date::new(number, 1, 1).ok()?, Date::new(number.checked_add(1)?, 1, 1).ok()?))
}

fn month_number(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let at = MONTHS.iter().position(|month| *month == word)?;
    i8::try_from(at + 1).ok()
}

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
}
