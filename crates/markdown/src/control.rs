//! Replacement of control characters, so that text cannot control a terminal or mislead its reader.

/// Makes text safe for a terminal as [`plain`] does, but keeps line breaks and tabs.
pub fn plain_lines(text: &str) -> String {
    text.split_inclusive(['\n', '\t', '\r'])
        .map(|part| {
            let kept = part.len() - part.trim_end_matches(['\n', '\t', '\r']).len();
            let (words, end) = part.split_at(part.len() - kept);
            plain(words) + end.trim_end_matches('\r')
        })
        .collect()
}

/// Makes text safe for a terminal: ASCII control characters become control pictures, and other control characters and
/// bidirectional controls become U+FFFD.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c < ' ' { picture(c) } else { shown(c) }).collect()
}

/// Returns the control picture of an ASCII control character.
pub fn picture(c: char) -> char {
    char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{FFFD}')
}

/// Returns a safe character in place of one that is not an ASCII control character below the space.
pub fn shown(c: char) -> char {
    match c {
        // DEL and the C1 control characters, which some terminals execute.
        '\u{7F}'..='\u{9F}'
        // Embeddings, overrides and isolates of text direction.
        | '\u{202A}'..='\u{202E}'
        | '\u{2066}'..='\u{2069}' => '\u{FFFD}',
        c => c,
    }
}
