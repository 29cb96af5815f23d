//! Sets of the small numbers that identify files in an index, and compact forms of numbers and names. The meaning of a
//! number is not known here.
//!
//! ```
//! use sidenote_sets::file_set::FileSet;
//!
//! let notes: FileSet = [1, 2, 3].into_iter().collect();
//! let visible = FileSet::all_but([2]);
//! assert_eq!(notes.and(&visible).iter().collect::<Vec<_>>(), [1, 3]);
//! ```

pub mod bitset;
pub mod file_set;
pub mod interner;
pub mod leb128;
