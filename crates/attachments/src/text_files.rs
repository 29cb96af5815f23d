//! Attachments that are text as they are: plain text and source files.

use encoding_rs::{Encoding, WINDOWS_1252};

/// What a text file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Prose and tables.
    Prose,
    /// Source code.
    Code,
}

/// The extensions of plain text.
const PROSE: &[&str] =
    &["adoc", "asciidoc", "bib", "csv", "org", "rst", "srt", "tex", "text", "textile", "tsv", "txt", "vtt"];

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

/// The most bytes of a text file that is searched, as of the text of other attachments.
const MOST_TEXT: usize = 32 << 20;

/// Returns the text of a text file in UTF-8: UTF-8 as it is, UTF-16 by its byte order mark, and else Windows-1252, as which
/// everything can be read that older programs wrote in western languages.
///
/// # Errors
/// Returns the reason as a phrase that follows the path of the file and a colon, if the file is no text or too long.
pub fn decode_text(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if bytes.len() > MOST_TEXT {
        return Err(format!("it has more than {} MB of text, which is not searched", MOST_TEXT / 1_000_000));
    }
    let mut text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let bytes = error.into_bytes();
            let encoding = Encoding::for_bom(&bytes).map_or(WINDOWS_1252, |(encoding, _)| encoding);
            encoding.decode(&bytes).0.into_owned()
        }
    };
    if text.contains('\0') {
        return Err("it holds bytes that no text has, so it is not searched".to_owned());
    }
    // A form feed stands before the places of other attachments.
    if text.contains('\u{0C}') {
        text = text.replace('\u{0C}', " ");
    }
    Ok(text.into_bytes())
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

    #[test]
    fn text_is_read_in_the_encodings_of_text_files() {
        let utf16 = |text: &str| {
            "\u{FEFF}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
        };
        for (bytes, text) in [
            ("Müller".as_bytes().to_vec(), "Müller"),
            (utf16("Müller"), "Müller"),
            (b"M\xFCller \x80".to_vec(), "Müller €"),
            (b"a\x0C# Page 9".to_vec(), "a # Page 9"),
            (Vec::new(), ""),
        ] {
            assert_eq!(decode_text(bytes).map(|text| String::from_utf8(text).unwrap()), Ok(text.to_owned()));
        }
        assert!(decode_text(b"a\0b".to_vec()).is_err());
        assert!(decode_text(vec![b'a'; MOST_TEXT + 1]).is_err());
    }
}
