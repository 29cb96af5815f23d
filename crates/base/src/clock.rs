//! Timestamps, the system clock, the local time zone and ids that sort by time.
//!
//! No other module reads the clock or knows the zone. Everywhere else the time is an argument.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp as Instant, Zoned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::error::{Error, Result};

/// Whether [`use_utc`] was called.
static IS_UTC: AtomicBool = AtomicBool::new(false);

/// Makes UTC the time zone of this process, for programs that read its output.
pub fn use_utc() {
    IS_UTC.store(true, Ordering::Relaxed);
}

/// Returns the time zone in which days begin and end, and in which times are shown: that of the system, which is read once.
fn zone() -> TimeZone {
    static SYSTEM: OnceLock<TimeZone> = OnceLock::new();
    if IS_UTC.load(Ordering::Relaxed) { TimeZone::UTC } else { SYSTEM.get_or_init(TimeZone::system).clone() }
}

/// A point in time in milliseconds since 1970-01-01T00:00:00Z, in the years 0 to 9999, which RFC 3339 can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates a timestamp from milliseconds since the Unix epoch. A time beyond the years that can be written becomes the
    /// first or last one that can.
    pub fn from_millis(millis: i64) -> Self {
        /// The beginning of the year 0.
        const FIRST: i64 = -62_167_219_200_000;
        // The last second alone: not all of its parts can be written.
        Self(millis.clamp(FIRST, Instant::MAX.as_second() * 1000))
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
    /// with an offset. A time without an offset is local, as it is in Obsidian, and a date is the start of a local day.
    pub fn parse(text: &str) -> Option<Self> {
        StatedTime::parse(text).map(StatedTime::instant)
    }

    /// Parses a day relative to `now`: `today`, `yesterday`, `tomorrow`, `7d`, `2w`, `3mo`, `1y`, each also spelled out
    /// and with `ago`.
    pub fn relative_day(text: &str, now: Self) -> Option<Date> {
        let lower = text.trim().to_lowercase();
        let today = now.date();
        match lower.as_str() {
            "today" => return Some(today),
            "yesterday" => return today.yesterday().ok(),
            "tomorrow" => return today.tomorrow().ok(),
            _ => {}
        }
        let (count, unit) = counted(&lower)?;
        let span = match unit {
            "d" | "day" | "days" => Span::new().try_days(count),
            "w" | "week" | "weeks" => Span::new().try_weeks(count),
            "mo" | "month" | "months" => Span::new().try_months(count),
            "y" | "year" | "years" => Span::new().try_years(count),
            _ => return None,
        };
        today.checked_sub(span.ok()?).ok()
    }

    /// Parses a time relative to `now`: a [day](Self::relative_day), or `12h` or `30min`, also spelled out and with `ago`.
    /// Returns the start and the exclusive end of the local day that it means, or of the second for hours and minutes.
    pub fn relative(text: &str, now: Self) -> Option<(Self, Self)> {
        if let Some(day) = Self::relative_day(text, now) {
            return Self::day_range(day);
        }
        let lower = text.trim().to_lowercase();
        let (count, unit) = counted(&lower)?;
        let minutes = match unit {
            "min" | "minute" | "minutes" => 1,
            "h" | "hour" | "hours" => 60,
            _ => return None,
        };
        let start = Self::from_millis(now.0.checked_sub(count.checked_mul(minutes)?.checked_mul(60_000)?)?);
        Some((start, Self::from_millis(start.0 + 1_000)))
    }

    /// Returns the start of a local day, and its exclusive end.
    pub fn day_range(day: Date) -> Option<(Self, Self)> {
        Some((Self::start_of(day)?, Self::start_of(day.tomorrow().ok()?)?))
    }

    /// Returns the start of a local day.
    pub fn start_of(day: Date) -> Option<Self> {
        let start = day.to_zoned(zone()).ok()?;
        Some(Self::from_millis(start.timestamp().as_millisecond()))
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
        self.zoned().datetime()
    }

    /// Returns the local day.
    pub fn date(self) -> Date {
        self.local().date()
    }

    /// Formats the local day, such as `2026-11-21`.
    pub fn day(self) -> String {
        self.date().to_string()
    }

    fn zoned(self) -> Zoned {
        Instant::from_millisecond(self.0).unwrap_or_default().to_zoned(zone())
    }

    /// Returns the name of the local time zone: `Europe/Berlin`, or `UTC` with the offset.
    pub fn zone(self) -> String {
        let zoned = self.zoned();
        match zoned.time_zone().iana_name() {
            Some(name) => name.to_owned(),
            None => match offset_of(&zoned).as_str() {
                "Z" => "UTC".to_owned(),
                offset => format!("UTC{offset}"),
            },
        }
    }

    /// Formats the local time as RFC 3339 with its offset and whole seconds, as replies show it.
    pub fn local_rfc3339(self) -> String {
        if Instant::from_millisecond(self.0).is_err() {
            return self.rfc3339();
        }
        let zoned = self.zoned();
        format!("{}{}", zoned.strftime("%Y-%m-%dT%H:%M:%S"), offset_of(&zoned))
    }

    /// Formats the timestamp as RFC 3339 in UTC with milliseconds, as servers written in JavaScript do.
    pub fn millis_rfc3339(self) -> String {
        Instant::from_millisecond(self.0).map_or_else(
            |_| format!("@{}", self.0),
            |instant| instant.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        )
    }

    /// Formats the timestamp as RFC 3339 in UTC, with milliseconds unless it is a whole second.
    pub fn exact_rfc3339(self) -> String {
        if self.0 % 1000 == 0 { self.rfc3339() } else { self.millis_rfc3339() }
    }

    /// Formats the timestamp as RFC 3339 in UTC with whole seconds, as it is stored.
    pub fn rfc3339(self) -> String {
        Instant::from_millisecond(self.0).map_or_else(
            |_| format!("@{}", self.0),
            |instant| instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        )
    }
}

/// Splits a distance in time such as `7d` or `2 weeks ago` into its number and its unit.
fn counted(lower: &str) -> Option<(i64, &str)> {
    let counted = lower.strip_suffix("ago").unwrap_or(lower).trim_end();
    let unit = counted.trim_start_matches(|c: char| c.is_ascii_digit());
    let count = counted.get(..counted.len() - unit.len())?.parse().ok()?;
    Some((count, unit.trim_start()))
}

/// Formats the offset of a time from UTC, such as `+13:00`; `Z` for none.
fn offset_of(zoned: &Zoned) -> String {
    let minutes = zoned.offset().seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    match minutes.abs() {
        0 => "Z".to_owned(),
        minutes => format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
    }
}

/// A time as somebody wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatedTime {
    /// With an offset, which makes it the same instant everywhere.
    Instant(Timestamp),
    /// Without an offset: a day, or a time of day, wherever the reader is.
    Local(DateTime),
}

impl StatedTime {
    /// Parses what [`Timestamp::parse`] does.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(instant) = text.parse::<Instant>() {
            return Some(Self::Instant(Timestamp::from_millis(instant.as_millisecond())));
        }
        if let Ok(zoned) = text.parse::<Zoned>() {
            return Some(Self::Instant(Timestamp::from_millis(zoned.timestamp().as_millisecond())));
        }
        let day = || text.parse::<Date>().map(|date| date.at(0, 0, 0, 0));
        let local = text.parse::<DateTime>().or_else(|_| day()).ok()?;
        // The last days that can be written are no instants in some zones.
        local.to_zoned(zone()).ok().map(|_| Self::Local(local))
    }

    /// Returns the instant, for a time without an offset in the local zone.
    pub fn instant(self) -> Timestamp {
        match self {
            Self::Instant(instant) => instant,
            Self::Local(local) => {
                let zoned = local.to_zoned(zone()).map(|zoned| zoned.timestamp());
                Timestamp::from_millis(zoned.unwrap_or_default().as_millisecond())
            }
        }
    }

    /// Returns the time without an offset that a local clock shows as these milliseconds since 1970-01-01T00:00.
    pub fn from_wall_millis(millis: i64) -> Self {
        let instant = Instant::from_millisecond(millis).unwrap_or_default();
        Self::Local(instant.to_zoned(TimeZone::UTC).datetime())
    }
}

impl Timestamp {
    /// Returns the milliseconds between 1970-01-01T00:00 and what a local clock shows at this time.
    pub fn wall_millis(self) -> i64 {
        let wall = self.local().to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp().as_millisecond());
        wall.unwrap_or(self.0)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.local_rfc3339())
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
