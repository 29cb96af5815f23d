//! Dates in queries: words for the date of a note, such as `last week` or `in March 2024`. Pure.
//!
//! Only phrases that hardly mean anything else count: `in May` and `on May 3` do, `may` and `may 3` do not.

use jiff::ToSpan as _;
use jiff::civil::{Date, Weekday};
use sidenote_base::clock::Timestamp;
use sidenote_language::folding::is_unspaced;
use sidenote_language::word_lists::{DatePattern, count_in_digits, date_in_digits, date_patterns};
use sidenote_markdown::span::Span;

/// A phrase of a query that names a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatePhrase {
    /// The position of the phrase in the query.
    pub span: Span,
    /// The first day of the period.
    pub from: Option<Date>,
    /// The first day after the period.
    pub to: Option<Date>,
    /// The instants at which these days begin.
    begins: (Option<Timestamp>, Option<Timestamp>),
}

impl DatePhrase {
    fn of(span: Span, (from, to): Period) -> Self {
        let begins = (from.and_then(Timestamp::start_of), to.and_then(Timestamp::start_of));
        Self { span, from, to, begins }
    }

    /// Returns whether an instant lies in the period.
    pub fn contains(&self, at: Timestamp) -> bool {
        let (from, to) = self.begins;
        from.is_none_or(|from| at >= from) && to.is_none_or(|to| at < to)
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

/// The number of characters that count as a word in a script without spaces.
const UNSPACED_WORD: usize = 2;

/// The digits of a year.
const YEAR_DIGITS: usize = 4;

/// The years that a number of four digits can name.
const YEARS: std::ops::RangeInclusive<i16> = 1950..=2099;

/// Words and signs between two dates of a range or a list.
const JOINTS: &[&str] = &[
    "to", "and", "or", "until", "through", "bis", "und", "oder", "al", "a", "y", "o", "hasta", "au", "et",
    "ou", "e", "até", "i", "do", "lub", "en", "tot", "и", "или", "до", "по", "到", "至", "和", "或", "と",
    "から", "와", "과", "-", "–", "—", "~", "〜", "～", "&", "+", "/",
];

/// Finds the phrase in a query that names a period, as seen at `now`. A query with several dates, or with one that is
/// read in part, has no period, because it is not clear which one is meant.
pub fn find(query: &str, now: Timestamp) -> Option<DatePhrase> {
    let mut phrases = phrases(query, now);
    // Of two at one place the longer one says more.
    phrases.sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
    let (span, period) = *phrases.first()?;
    let phrase = DatePhrase::of(span, period);
    let is_alone = !phrase.without(query).contains(char::is_alphanumeric);
    let is_several = phrases.iter().any(|(other, _)| other.start >= span.end);
    let is_version = !is_alone && is_version(span.of(query));
    (!is_several && !is_version && !is_part(query, span, period)).then_some(phrase)
}

/// Returns whether a phrase is a part of a longer one, because a number or a day goes on with the date: `November 3 to 5`,
/// `3 and 5 November`, `June 7 1944`.
fn is_part(query: &str, span: Span, (from, to): Period) -> bool {
    let behind =
        query.get(span.end..).unwrap_or("").trim_start_matches(|c: char| c.is_whitespace() || c == ',');
    let before = query.get(..span.start).unwrap_or("").trim_end();
    let is_letter = |c: char| c.is_alphabetic() && !is_unspaced(c);
    // A word of letters ends where no letter follows.
    let after_joint = JOINTS.iter().find_map(|joint| {
        let rest = behind.strip_prefix(joint)?;
        (!joint.ends_with(is_letter) || !rest.starts_with(is_letter)).then(|| rest.trim_start())
    });
    let before_joint = JOINTS.iter().find_map(|joint| {
        let rest = before.strip_suffix(joint)?;
        (!joint.starts_with(is_letter) || !rest.ends_with(is_letter)).then(|| rest.trim_end())
    });
    let starts = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let goes_on = |rest: &str| {
        let word = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_lowercase();
        starts(rest) || weekday(&word).is_some() || month_number(&word).is_some()
    };
    let ends = |rest: &str| rest.trim_end_matches('.').ends_with(|c: char| c.is_ascii_digit());
    let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
    // A bound has the word between the dates itself: `bis 5. November`.
    digits == YEAR_DIGITS
        || to.is_none() && starts(behind)
        || from.is_none() && ends(before)
        || after_joint.is_some_and(goes_on)
        || before_joint.is_some_and(ends)
}

/// Returns whether a date is written as versions are: with full stops, the year first.
fn is_version(date: &str) -> bool {
    let is_year_first = date.bytes().take_while(u8::is_ascii_digit).count() > 2;
    is_year_first
        && date.contains('.')
        && date_in_digits(date).is_some_and(|(length, _)| length == date.len())
}

/// Finds the phrases of a query that name periods.
fn phrases(query: &str, now: Timestamp) -> Vec<(Span, Period)> {
    let words = words(query);
    let unspaced = query.chars().filter(|c| is_unspaced(*c)).count() / UNSPACED_WORD;
    if words.len() > MAX_WORDS {
        return Vec::new();
    }
    let texts: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
    let english = (0..words.len()).filter_map(|at| {
        let (length, period) = period(texts.get(at..)?, now)?;
        let (start, end) = (words.get(at)?.1.start, words.get(at + length - 1)?.1.end);
        Some((Span::new(start, end), period))
    });
    let mut found: Vec<(Span, Period)> = english.collect();
    if words.len() + unspaced <= MAX_WORDS {
        let mut refused = 0;
        for pattern in date_patterns(query) {
            match period_of(&pattern, now) {
                Some(_) if pattern.span.start < refused => {}
                Some(period) => found.push((Span::new(pattern.span.start, pattern.span.end), period)),
                // A part of a date that is none is none, either.
                None => refused = refused.max(pattern.span.end),
            }
        }
    }
    found
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

/// The first day of a period and the first day after it, each if there is one.
type Period = (Option<Date>, Option<Date>);

/// Returns the period that English words begin with, and the number of words that name it.
fn period(words: &[&str], now: Timestamp) -> Option<(usize, Period)> {
    let whole = |length: usize, (from, to): (Date, Date)| Some((length, (Some(from), Some(to))));
    match words {
        ["the", "day", "before", "yesterday", ..] => whole(4, back(2, "day", now)?),
        ["day", "before", "yesterday", ..] => whole(3, back(2, "day", now)?),
        ["yesterday", ..] => whole(1, back(1, "day", now)?),
        ["last", unit @ ("week" | "month" | "year"), ..] => whole(2, back(1, unit, now)?),
        ["this", unit @ ("week" | "month" | "year"), ..] => whole(2, back(0, unit, now)?),
        ["last", name, ..] if weekday(name).is_some() => whole(2, last_weekday(weekday(name)?, now)?),
        [count, unit, "ago", ..] => {
            let unit = unit.strip_suffix('s').unwrap_or(unit);
            whole(3, back(number(count)?, unit, now)?)
        }
        [name, "of", rest @ ..] if Part::of(name).is_some() => {
            let (length, period) = month_of(rest, now)?;
            whole(length + 2, Part::of(name)?.of_month(period)?)
        }
        [name @ ("early" | "mid" | "late"), rest @ ..] => {
            let (length, period) = month_of(rest, now)?;
            whole(length + 1, Part::of(name)?.of_month(period)?)
        }
        ["from" | "between", rest @ ..] => {
            let (length, (from, _)) = point(rest, now, "since")?;
            match rest.get(length..)? {
                ["to" | "and" | "until" | "till", other @ ..] => {
                    let (more, (_, to)) = point(other, now, "since")?;
                    (from < to).then_some((length + more + 2, (Some(from), Some(to))))
                }
                // `notes from Monday` are of that day.
                ["on"] | ["onward" | "onwards", ..] => Some((length + 2, (Some(from), None))),
                _ => None,
            }
        }
        [
            preposition @ ("in" | "on" | "since" | "before" | "after" | "until" | "till" | "by" | "during"),
            rest @ ..,
        ] => {
            let (length, period) = point(rest, now, preposition)?;
            Some((length + 1, bounded(preposition, period)))
        }
        [first, ..] => {
            if let Some(month) = first.strip_prefix("mid-") {
                let rest: Vec<&str> = std::iter::once(month).chain(words.iter().skip(1).copied()).collect();
                let (length, period) = month_of(&rest, now)?;
                return whole(length, Part::Middle.of_month(period)?);
            }
            if let Some(date) = full_date(first) {
                return whole(1, day(date)?);
            }
            let (length, date) = day_of_month(words, now)?;
            let spoken = words.get(..length)?;
            let is_verb = spoken.iter().any(|word| matches!(*word, "may" | "march"));
            let is_ordinal = spoken.iter().any(|word| ORDINALS.iter().any(|ending| word.ends_with(ending)));
            (!is_verb || is_ordinal || length > 2).then_some(())?;
            whole(length, day(date)?)
        }
        [] => None,
    }
}

/// Returns what lies before, after or in a period.
fn bounded(preposition: &str, (from, to): (Date, Date)) -> Period {
    match preposition {
        "since" => (Some(from), None),
        "before" => (None, Some(from)),
        "after" => (Some(to), None),
        "until" | "till" | "by" => (None, Some(to)),
        _ => (Some(from), Some(to)),
    }
}

/// Returns the whole period that words after a preposition begin with, and the number of words.
fn point(words: &[&str], now: Timestamp, preposition: &str) -> Option<(usize, (Date, Date))> {
    let spoken = || match words {
        // What is on today need not be a note of that day.
        ["today", ..] if !matches!(preposition, "in" | "on" | "during") => Some((1, day(now.date())?)),
        ["the", rest @ ..] if period(words, now).is_none() => {
            let (length, period) = closed(period(rest, now)?)?;
            Some((length + 1, period))
        }
        _ => closed(period(words, now)?),
    };
    // `by June` may name an author, and `by Friday` one to come.
    let named = Some(preposition).filter(|said| *said != "by").and_then(|said| named(words, now, said));
    named.or_else(spoken)
}

/// Returns a period that has both ends.
fn closed((length, (from, to)): (usize, Period)) -> Option<(usize, (Date, Date))> {
    Some((length, (from?, to?)))
}

/// Returns the period that words after a preposition name, and the number of words.
fn named(words: &[&str], now: Timestamp, preposition: &str) -> Option<(usize, (Date, Date))> {
    let is_point = preposition != "in" && preposition != "during";
    let first = *words.first()?;
    if is_point {
        if let Some((length, date)) = day_of_month(words, now) {
            return Some((length, day(date)?));
        }
        if let Some(weekday) = weekday(first) {
            return Some((1, last_weekday(weekday, now)?));
        }
        if let Some(date) = full_date(first) {
            return Some((1, day(date)?));
        }
    }
    if preposition == "on" {
        return None;
    }
    month_of(words, now).or_else(|| Some((1, year(year_number(first)?)?)))
}

/// Returns the month that words begin with, and the number of words: it may have a year.
fn month_of(words: &[&str], now: Timestamp) -> Option<(usize, (Date, Date))> {
    let number = month_number(words.first()?)?;
    let said = words.get(1).and_then(|word| year_number(word));
    Some((1 + usize::from(said.is_some()), month(dated(said, number, 1, now)?)?))
}

/// Returns the date that words begin with, such as `November 18`, `18 November 2026` and `18th of November`, and the number
/// of words.
fn day_of_month(words: &[&str], now: Timestamp) -> Option<(usize, Date)> {
    let (length, month, day) = match words {
        [day, "of", month, ..] => (3, month_number(month)?, day_number(day)?),
        [first, second, ..] => match month_number(first) {
            Some(month) => (2, month, day_number(second)?),
            None => (2, month_number(second)?, day_number(first)?),
        },
        _ => return None,
    };
    let said = words.get(length).and_then(|word| year_number(word));
    Some((length + usize::from(said.is_some()), dated(said, month, day, now)?))
}

/// Returns a date, without a year the last one that has begun.
fn dated(year: Option<i16>, month: i8, day: i8, now: Timestamp) -> Option<Date> {
    let of = |year: i16| Date::new(year, month, day).ok();
    match year {
        Some(year) => of(year),
        None => {
            let today = now.date();
            of(today.year()).filter(|date| *date <= today).or_else(|| of(today.year() - 1))
        }
    }
}

/// Returns a date in digits that means the same everywhere: the year is first, or its signs are full stops.
fn full_date(word: &str) -> Option<Date> {
    let is_year_first = word.bytes().take_while(u8::is_ascii_digit).count() > 2;
    let (length, date) = date_in_digits(word)?;
    let is_sure = length == word.len() && (is_year_first || word.contains('.'));
    (is_sure && YEARS.contains(&date.year())).then_some(date)
}

/// Returns the period that a pattern names.
fn period_of(pattern: &DatePattern, now: Timestamp) -> Option<Period> {
    let unit = |name: &'static str| name.trim_start_matches("last_").trim_start_matches("this_");
    let whole = match pattern.meaning {
        "yesterday" => back(1, "day", now)?,
        "day_before_yesterday" => back(2, "day", now)?,
        "last_week_day" => day(of_week(back(1, "week", now)?, pattern.weekday?)?)?,
        meaning @ ("last_week" | "last_month" | "last_year") => back(1, unit(meaning), now)?,
        meaning @ ("this_week" | "this_month" | "this_year") => back(0, unit(meaning), now)?,
        meaning @ ("days_ago" | "weeks_ago" | "months_ago" | "years_ago") => {
            back(pattern.number?, meaning.trim_end_matches("s_ago"), now)?
        }
        meaning @ ("early" | "middle" | "late") => Part::of(meaning)?.of_month(named_by(pattern, now)?)?,
        "in" => named_by(pattern, now)?,
        _ => return None,
    };
    Some(bounded(pattern.bound.unwrap_or("in"), whole))
}

/// Returns the period that the slots of a pattern name: a date, a month, a day of the week or a year.
fn named_by(pattern: &DatePattern, now: Timestamp) -> Option<(Date, Date)> {
    if pattern.date.is_some_and(|date| !YEARS.contains(&date.year()))
        || pattern.year.is_some_and(|year| !YEARS.contains(&year))
    {
        return None;
    }
    if let Some(date) = pattern.date {
        return day(date);
    }
    if let Some(number) = pattern.month {
        let number = i8::try_from(number).ok()?;
        return match pattern.day {
            Some(said) => day(dated(pattern.year, number, said, now)?),
            None => month(dated(pattern.year, number, 1, now)?),
        };
    }
    if let Some(number) = pattern.weekday {
        return last_weekday(Weekday::from_monday_one_offset(i8::try_from(number).ok()?).ok()?, now);
    }
    year(pattern.year?)
}

/// A third of a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Early,
    Middle,
    Late,
}

impl Part {
    fn of(name: &str) -> Option<Self> {
        match name {
            "early" | "beginning" | "start" => Some(Self::Early),
            "mid" | "middle" => Some(Self::Middle),
            "late" | "end" => Some(Self::Late),
            _ => None,
        }
    }

    fn of_month(self, (first, next): (Date, Date)) -> Option<(Date, Date)> {
        let (eleventh, twenty_first) =
            (first.checked_add(10.days()).ok()?, first.checked_add(20.days()).ok()?);
        Some(match self {
            Self::Early => (first, eleventh),
            Self::Middle => (eleventh, twenty_first),
            Self::Late => (twenty_first, next),
        })
    }
}

/// Returns the day, week, month or year that is `count` units back.
fn back(count: i64, unit: &str, now: Timestamp) -> Option<(Date, Date)> {
    let today = now.date();
    match unit {
        "day" => day(today.checked_sub(count.days()).ok()?),
        "week" => week(today.checked_sub(count.weeks()).ok()?),
        "month" => month(today.first_of_month().checked_sub(count.months()).ok()?),
        "year" => year(i16::try_from(i64::from(today.year()) - count).ok()?),
        _ => None,
    }
}

/// Returns the last such day of the week, and today not.
fn last_weekday(weekday: Weekday, now: Timestamp) -> Option<(Date, Date)> {
    day(now.date().nth_weekday(-1, weekday).ok()?)
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

/// The endings of ordinal numbers.
const ORDINALS: [&str; 4] = ["st", "nd", "rd", "th"];

fn day_number(word: &str) -> Option<i8> {
    let digits = ORDINALS.iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
    digits.parse().ok().filter(|_| digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn year_number(word: &str) -> Option<i16> {
    word.parse().ok().filter(|year| YEARS.contains(year) && word.len() == YEAR_DIGITS)
}

fn number(word: &str) -> Option<i64> {
    const NUMBERS: [&str; 10] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let word = if matches!(word, "a" | "an") { "one" } else { word };
    let at = NUMBERS.iter().position(|number| *number == word);
    at.map_or_else(|| count_in_digits(word), |at| i64::try_from(at + 1).ok())
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
