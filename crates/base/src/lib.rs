//! The base of every crate of sidenote: errors with a hint, sentences for people and for agents, time, atomic
//! replacement of files, and the differences between operating systems. Nothing here knows a note.

pub mod atomic_file;
pub mod clock;
pub mod error;
pub mod parallel;
pub mod platform;
pub mod safe_open;
pub mod wording;
