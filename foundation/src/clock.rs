//! Timestamps, the system clock and ids that sort by time.
//!
//! No other module reads the clock. Everywhere else the time is an argument.

use std::sync::{Mutex, PoisonError};

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp as Instant, Zoned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::error::{Error, Result};

/// A point in time in milliseconds since 1970-01-01T00:00:00Z, in the years 0 to 9999, which RFC 3339 can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates a timestamp from milliseconds since the Unix epoch. A time beyond the years that can be written becomes the
    /// first or last one that can.
    pub fn from_millis(millis: i64) -> Self {
        /// The beginning of the year 0.
        const FIRST: i64 = -62_167_219_200_000;
        Self(millis.clamp(FIRST, Instant::MAX.as_millisecond()))
    }

    /// Creates a timestamp from nanoseconds since the Unix epoch, as file systems report them.
    pub fn from_nanos(nanos: i64) -> Self {
        Self::from_millis(nanos.div_euclid(1_000_000))
    }

    /// Returns the milliseconds since the Unix epoch.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// Parses a date or a time as people and frontmatter write it: `2026-11-21`, `2026-11-21T10:30`, `2026-11-21 10:30:05`, or RFC 3339
    /// with an offset. A time without an offset is UTC, so that it means the same on every machine.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(instant) = text.parse::<Instant>() {
            return Some(Self::from_millis(instant.as_millisecond()));
        }
        if let Ok(zoned) = text.parse::<Zoned>() {
            return Some(Self::from_millis(zoned.timestamp().as_millisecond()));
        }
        let civil = text
            .parse::<DateTime>()
            .or_else(|_| text.parse::<Date>().map(|date| date.at(0, 0, 0, 0)))
            .ok()?;
        let zoned = civil.to_zoned(TimeZone::UTC).ok()?;
        Some(Self::from_millis(zoned.timestamp().as_millisecond()))
    }

    /// Parses a date relative to `now`: `today`, `yesterday`, `tomorrow`, `12h`, `7d`, `2w`, `3mo`, `1y`, each also
    /// spelled out and with `ago`. Returns the start and the exclusive end of the local day that it means, or of the
    /// second for hours and minutes.
    pub fn relative(text: &str, now: Self) -> Option<(Self, Self)> {
        let lower = text.trim().to_lowercase();
        let today = now.local().date();
        let day = |date: Date| {
            let start = Self::parse(&date.to_string())?;
            Some((start, Self::from_millis(start.0 + 86_400_000)))
        };
        match lower.as_str() {
            "today" => return day(today),
            "yesterday" => return day(today.yesterday().ok()?),
            "tomorrow" => return day(today.tomorrow().ok()?),
            _ => {}
        }
        let counted = lower.strip_suffix("ago").unwrap_or(&lower).trim_end();
        let unit = counted.trim_start_matches(|c: char| c.is_ascii_digit());
        let count: i64 = counted.get(..counted.len() - unit.len())?.parse().ok()?;
        let before =
            |span: std::result::Result<Span, jiff::Error>| day(today.checked_sub(span.ok()?).ok()?);
        let earlier = |minutes: i64| {
            let start =
                Self::from_millis(now.0.checked_sub(count.checked_mul(minutes)?.checked_mul(60_000)?)?);
            Some((start, Self::from_millis(start.0 + 1_000)))
        };
        match unit.trim_start() {
            "min" | "minute" | "minutes" => earlier(1),
            "h" | "hour" | "hours" => earlier(60),
            "d" | "day" | "days" => before(Span::new().try_days(count)),
            "w" | "week" | "weeks" => before(Span::new().try_weeks(count)),
            "mo" | "month" | "months" => before(Span::new().try_months(count)),
            "y" | "year" | "years" => before(Span::new().try_years(count)),
            _ => None,
        }
    }

    /// Parses the bound of a filter such as `--created-after`: a date, or one relative to `now`.
    ///
    /// # Errors
    /// `Invalid` if the text is not a date.
    pub fn parse_bound_at(flag: &str, text: &str, now: Self) -> Result<Self> {
        match Self::relative(text, now) {
            Some((start, _)) => Ok(start),
            None => Self::parse_bound(flag, text).map_err(|error| {
                error.with_hint("write 2026-11-21, 2026-11-21T10:30:00, today, yesterday, 7d, 2w, 3mo or 12h")
            }),
        }
    }

    /// Parses a date from a flag or an environment variable.
    ///
    /// # Errors
    /// `Invalid` if the text is not a date.
    pub fn parse_bound(flag: &str, text: &str) -> Result<Self> {
        Self::parse(text).ok_or_else(|| {
            Error::invalid(format!("{flag} {text:?} is not a date"))
                .with_hint("write 2026-11-21 or 2026-11-21T10:30:00")
        })
    }

    /// Returns the date and time in the local time zone.
    pub fn local(self) -> DateTime {
        let instant = Instant::from_millisecond(self.0).unwrap_or_default();
        instant.to_zoned(TimeZone::system()).datetime()
    }

    /// Returns the name of the local time zone: `Europe/Berlin`, or `UTC` with the offset.
    pub fn zone(self) -> String {
        let zone = TimeZone::system();
        let instant = Instant::from_millisecond(self.0).unwrap_or_default();
        if let Some(name) = zone.iana_name() {
            return name.to_owned();
        }
        let minutes = zone.to_offset(instant).seconds() / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        match minutes.abs() {
            0 => "UTC".to_owned(),
            minutes => format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        }
    }

    /// Formats the timestamp as RFC 3339 in UTC with whole seconds.
    pub fn rfc3339(self) -> String {
        Instant::from_millisecond(self.0).map_or_else(
            |_| format!("@{}", self.0),
            |instant| instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a time")))
    }
}

/// Creates a UUIDv7 for this time. Ids of one process increase strictly, even within one millisecond.
pub fn event_id(at: Timestamp) -> Uuid {
    static LAST: Mutex<(u64, u128)> = Mutex::new((0, 0));
    let millis = u64::try_from(at.millis()).unwrap_or(0);
    let nanos = u32::try_from(millis % 1000).unwrap_or(0) * 1_000_000;
    let mut id = Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, millis / 1000, nanos)).as_u128();
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.0 == millis && id <= last.1 {
        id = last.1.saturating_add(1);
    }
    *last = (millis, id);
    Uuid::from_u128(id)
}

/// The source of the current time: the system, or a fixed value in tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clock {
    /// The system clock.
    #[default]
    System,
    /// A fixed time.
    Fixed(Timestamp),
}

impl Clock {
    /// Creates the clock of this process: fixed if `SIDENOTE_NOW` holds a date, otherwise the system clock.
    ///
    /// # Errors
    /// `Invalid` if `SIDENOTE_NOW` is not a date.
    pub fn from_env() -> Result<Self> {
        match std::env::var("SIDENOTE_NOW") {
            Ok(text) if !text.is_empty() => Timestamp::parse_bound("SIDENOTE_NOW", &text).map(Self::Fixed),
            _ => Ok(Self::System),
        }
    }

    /// Returns the current time.
    pub fn now(self) -> Timestamp {
        match self {
            Self::System => Timestamp::from_nanos(wall_nanos()),
            Self::Fixed(time) => time,
        }
    }
}

/// Returns the system clock in nanoseconds since the Unix epoch, whatever [`Clock`] is in use. It is compared with file
/// times, which no test can fix.
#[expect(clippy::disallowed_methods, reason = "this file is where time is read")]
pub fn wall_nanos() -> i64 {
    // A system clock can be set to any time, also to one before 1970 or beyond what fits.
    let nanos = |time: std::time::Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => -nanos(before.duration()),
    }
}

/// A time stamp this close to the present does not prove that a file is unchanged, because kernel clocks are coarse. Kernels
/// advance them every 10 ms or more often, and Windows every 16.
const RACY_NS: i64 = 20_000_000;
/// The same margin for file systems that store times in whole seconds.
const RACY_COARSE_NS: i64 = 2_100_000_000;

/// Says whether a file or folder with these times of modification and change, in nanoseconds since 1970, can change now without
/// getting others.
pub fn is_racy(mtime_ns: i64, ctime_ns: i64) -> bool {
    let margin = if mtime_ns % 1_000_000_000 == 0 { RACY_COARSE_NS } else { RACY_NS };
    mtime_ns.max(ctime_ns).saturating_add(margin) >= wall_nanos()
}
