//! What one file of a vault says: the note, its properties, headings, links, tags and tasks; and the smallest edits of
//! it. It takes bytes and returns values: no file is opened, no clock is read, and where a link leads is not known
//! here.
//!
//! ```
//! use sidenote_markdown::note::Note;
//!
//! let note = Note::parse("---\ntags: [river]\n---\n# Gauges\n\n- [ ] read [[Lowbridge#Levels]]\n");
//! assert_eq!(note.headings[0].text, "Gauges");
//! assert_eq!(note.tags[0].name, "river");
//! assert_eq!((note.tasks[0].line, note.tasks[0].status), (6, ' '));
//! let link = &note.links[0];
//! assert_eq!((link.path.as_str(), link.subpath.as_str()), ("Lowbridge", "#Levels"));
//! ```

pub mod attachment;
pub mod body_edit;
pub mod canvas;
mod character_reference;
pub mod commonmark;
pub mod control;
pub mod date_format;
pub mod decode;
pub mod edit;
pub mod escapes;
pub mod frontmatter;
pub mod inline;
pub mod line;
pub mod line_column;
pub mod line_list;
pub mod list_section;
pub mod link;
pub mod link_syntax;
pub mod media_type;
pub mod name_date;
pub mod note;
pub mod name_rules;
pub mod note_names;
pub mod parse;
pub mod passage;
pub mod path;
pub mod piece_table;
pub mod related_section;
mod reference_search;
pub mod relation;
pub mod revert;
pub mod source_edit;
pub mod span;
pub mod subpath;
pub mod tag;
pub mod tag_conversion;
pub mod tag_edit;
pub mod task_due;
pub mod unified_diff;
pub mod unlinked_reference;
mod whole_link;
pub mod word_sketch;
