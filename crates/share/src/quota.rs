//! Quotas of a vault: the size of its files, the number of its notes, and the changes of a person. Pure.
//!
//! A change that increases neither the size nor the number of notes never exceeds a quota of size, and one that only
//! removes files never exceeds that of changes.

use std::time::Duration;

use serde::{Serialize, Serializer};
use sidenote_base::error::{Error, ErrorKind, Result};

/// The time in which the changes of a person are counted.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);
/// The value in the database for a vault without a limit, whatever the default of servers is.
const NO_LIMIT: i64 = i64::MAX;

/// What a quota limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// The size of all files as they are now, in bytes.
    Bytes,
    /// The number of notes.
    Notes,
    /// The changes of a person in a minute.
    Changes,
}

impl Quota {
    /// All quotas.
    pub const ALL: [Self; 3] = [Self::Bytes, Self::Notes, Self::Changes];

    /// Returns the name of the quota.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Notes => "notes",
            Self::Changes => "changes",
        }
    }
}

/// What is set for a quota of a vault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QuotaSetting {
    /// The default of the servers.
    #[default]
    Default,
    /// No limit, whatever the default is.
    Unlimited,
    /// At most this.
    Limit(u64),
}

impl QuotaSetting {
    /// Reads a setting as a person writes it: a number, `none` or `default`.
    ///
    /// # Errors
    /// `Invalid` if it is something else.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "default" => Ok(Self::Default),
            "none" => Ok(Self::Unlimited),
            number => number.parse().map(Self::Limit).map_err(|_| {
                Error::invalid(format!("{text:?} is no quota"))
                    .with_hint("write a number, none for no limit, or default for that of the servers")
            }),
        }
    }

    /// Reads a setting as the database has it.
    pub(crate) fn of_stored(stored: Option<i64>) -> Self {
        match stored {
            None => Self::Default,
            Some(NO_LIMIT) => Self::Unlimited,
            Some(limit) => Self::Limit(limit.unsigned_abs()),
        }
    }

    /// Returns the setting as the database has it.
    pub(crate) fn to_stored(self) -> Option<i64> {
        match self {
            Self::Default => None,
            Self::Unlimited => Some(NO_LIMIT),
            Self::Limit(limit) => Some(i64::try_from(limit).unwrap_or(NO_LIMIT)),
        }
    }

    /// Returns the limit, where servers have a default.
    fn or(self, default: Option<u64>) -> Option<u64> {
        match self {
            Self::Default => default,
            Self::Unlimited => None,
            Self::Limit(limit) => Some(limit),
        }
    }
}

impl Serialize for QuotaSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Default => serializer.serialize_str("default"),
            Self::Unlimited => serializer.serialize_str("none"),
            Self::Limit(limit) => serializer.serialize_u64(*limit),
        }
    }
}

/// What is set for the quotas of a vault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QuotaSettings {
    /// The size of all files as they are now, in bytes.
    pub bytes: QuotaSetting,
    /// The number of notes.
    pub notes: QuotaSetting,
    /// The changes of a person in a minute.
    pub changes: QuotaSetting,
}

impl QuotaSettings {
    /// Returns the limits, where servers have defaults.
    pub(crate) fn or(self, defaults: Quotas) -> Quotas {
        Quotas {
            bytes: self.bytes.or(defaults.bytes),
            notes: self.notes.or(defaults.notes),
            changes: self.changes.or(defaults.changes),
        }
    }
}

/// The limits of a vault; `None` for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// The size of all files as they are now, in bytes.
    pub bytes: Option<u64>,
    /// The number of notes.
    pub notes: Option<u64>,
    /// The changes of a person in a minute.
    pub changes: Option<u64>,
}

impl Quotas {
    /// Returns the limit of a quota.
    pub(crate) fn limit(&self, quota: Quota) -> Option<u64> {
        match quota {
            Quota::Bytes => self.bytes,
            Quota::Notes => self.notes,
            Quota::Changes => self.changes,
        }
    }

    /// Finds the quota of size that a change would exceed, by what the vault holds and the difference that the change makes.
    pub(crate) fn exceeded(&self, usage: Usage, difference: Difference) -> Option<Quota> {
        let is_over = |used: u64, more: i64, limit: Option<u64>| {
            more > 0 && limit.is_some_and(|limit| used.saturating_add_signed(more) > limit)
        };
        if is_over(usage.bytes, difference.bytes, self.bytes) {
            Some(Quota::Bytes)
        } else if is_over(usage.notes, difference.notes, self.notes) {
            Some(Quota::Notes)
        } else {
            None
        }
    }
}

/// How much the files of a vault are now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Their size in bytes.
    pub bytes: u64,
    /// The number of notes among them.
    pub notes: u64,
}

/// By how much a change makes the files of a vault more, or less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) bytes: i64,
    pub(crate) notes: i64,
}

/// Returns the error for a change that would exceed a quota of size.
pub(crate) fn too_much(quota: Quota, limit: u64, usage: Usage, difference: Difference) -> Error {
    let text = match quota {
        Quota::Notes => format!(
            "the vault has {} notes, and would have {} of its quota of {limit}; nothing was written",
            usage.notes,
            usage.notes.saturating_add_signed(difference.notes)
        ),
        _ => format!(
            "the files of the vault are {}, and would be {} of its quota of {}; nothing was written",
            size(usage.bytes),
            size(usage.bytes.saturating_add_signed(difference.bytes)),
            size(limit)
        ),
    };
    let remedy = match quota {
        Quota::Notes => "delete notes",
        _ => "remove files for good (those in the trash count)",
    };
    Error::new(ErrorKind::Quota, text).with_hints(
        format!("{remedy}, or ask the operator of the service for a higher quota"),
        format!("{remedy} if the user agrees, or tell the user"),
    )
}

/// Returns the error for a change of a person who has made as many in a minute as the quota allows.
pub(crate) fn too_often(limit: u64, wait: Duration) -> Error {
    let seconds = wait.as_secs().max(1);
    let text = format!(
        "you have made {limit} changes of this vault within a minute, which is its quota; nothing was written"
    );
    Error::new(ErrorKind::Quota, text)
        .with_retry_after(Duration::from_secs(seconds))
        .with_hint(format!("try again in {seconds} s; several edits in one call are one change"))
}

/// Formats a size for a message.
fn size(bytes: u64) -> String {
    const MEGABYTE: u64 = 1_000_000;
    match bytes {
        ..MEGABYTE => format!("{bytes} bytes"),
        _ => format!("{}.{:02} MB", bytes / MEGABYTE, bytes % MEGABYTE / 10_000),
    }
}
