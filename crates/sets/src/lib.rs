//! Sets of the small numbers that identify files in an index, and compact forms of numbers and names. The meaning of a
//! number is not known here.

pub mod bitset;
pub mod file_set;
pub mod interner;
pub mod leb128;
