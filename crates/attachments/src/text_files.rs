//! Attachments that are text as they are: plain text and source files.

/// What a text file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Prose and tables.
    Prose,
    /// Source code.
    Code,
}

/// The extensions of plain text.
const PROSE: &[&str] = &[
    "adoc", "asciidoc", "bib", "csv", "log", "org", "rst", "srt", "tex", "text", "textile", "tsv", "txt",
    "vtt",
];

/// The extensions of source files in the languages of the Stack Overflow survey of 2025, and of scripts. Formats of data and of
/// settings, such as JSON, are no source: programs write them.
const CODE: &[&str] = &[
    "asm", "awk", "bash", "bat", "c", "cc", "clj", "cpp", "cs", "cxx", "dart", "el", "erl", "ex", "exs",
    "f90", "fs", "gd", "go", "gradle", "groovy", "h", "hpp", "hs", "java", "jl", "js", "jsx", "kt", "kts",
    "lisp", "lua", "m", "ml", "nim", "pas", "php", "pl", "pm", "ps1", "py", "r", "rb", "rs", "sass", "scala",
    "scm", "sh", "sol", "sql", "swift", "tcl", "ts", "tsx", "v", "vb", "vim", "vue", "zig", "zsh",
];

impl TextKind {
    /// Returns what a file has by the extension of its name; `None` if it is no text that is searched.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        let extension = extension.to_ascii_lowercase();
        let is_in = |list: &[&str]| list.binary_search(&extension.as_str()).is_ok();
        if is_in(PROSE) {
            return Some(Self::Prose);
        }
        is_in(CODE).then_some(Self::Code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extensions_are_sorted_and_each_is_found() {
        for (list, kind) in [(PROSE, TextKind::Prose), (CODE, TextKind::Code)] {
            assert!(list.is_sorted());
            assert!(list.iter().all(|extension| TextKind::of(&format!("a.{extension}")) == Some(kind)));
        }
        assert_eq!(TextKind::of("data.json"), None);
        assert_eq!(TextKind::of("README"), None);
        assert_eq!(TextKind::of("A.TXT"), Some(TextKind::Prose));
    }
}
