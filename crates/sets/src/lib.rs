//! Sets of the small numbers by which files are known in an index, and short forms of numbers and names. What a number
//! stands for is not known here.

pub mod bitset;
pub mod file_set;
pub mod interner;
pub mod leb128;
