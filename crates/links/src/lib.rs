//! What a link means, how links change when files and parts move, and how two versions of a note are merged. It takes
//! texts and paths and returns values: no file is opened, and no clock is read.
//!
//! ```
//! use sidenote_links::resolve::FileNames;
//! use sidenote_markdown::path::NotePath;
//!
//! let path = |text: &str| NotePath::from_disk(text).unwrap();
//! let (index, river) = (path("Index.md"), path("Rivers/Lowbridge.md"));
//! let mut names = FileNames::with_capacity(2);
//! [&index, &river].into_iter().for_each(|path| names.insert(path));
//! assert_eq!(names.resolve("lowbridge", &index).map(|found| found.path), Some(&river));
//! ```

pub mod anchor;
pub mod conflict_copy;
pub mod content_similarity;
pub mod dialect;
pub mod dialect_evidence;
pub mod link_lines;
pub mod link_part;
pub mod merge;
pub mod misspelled_name;
pub mod note_diff;
pub mod part_name;
pub mod resolve;
pub mod rewrite;
