//! The base of every crate of sidenote: errors with a hint, sentences for people and for agents, time, atomic
//! replacement of files, and the differences between operating systems. Nothing here knows a note.
//!
//! ```
//! use sidenote_base::error::{Error, ErrorKind};
//!
//! let error = Error::invalid("\"2026-13-01\" is no day").with_hint("write 2026-12-01");
//! assert_eq!(error.kind(), ErrorKind::Invalid);
//! assert_eq!(error.to_string(), "\"2026-13-01\" is no day");
//! ```

pub mod atomic_file;
pub mod clock;
pub mod error;
pub mod file_lock;
pub mod parallel;
pub mod platform;
pub mod safe_open;
pub mod wording;
