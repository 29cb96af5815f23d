//! What a link means, and how links change when files and parts move; merging two versions of a note. Pure: texts and paths in,
//! values out.

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
