//! Sets of the small numbers by which files are known in an index, and short forms of numbers and names.

pub mod bitset;
pub mod file_set;
pub mod interner;
pub mod leb128;
