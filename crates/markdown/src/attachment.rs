//! The text of an attachment in the one form in which it is indexed, searched and shown: a line names each place, such as a
//! page, and the text of the place follows. A form feed begins such a line, as between the pages of a printed text, so that no
//! text of a file can look like one.

use crate::note::{Heading, Note, Piece, PieceKind, Separator};
use crate::span::Span;

/// The level of the heading that stands for a place.
pub const PLACE: u8 = 0;

/// The sign before a line that names a place.
const SIGN: char = '\u{0C}';

/// A place in an attachment, by which a person finds a text in it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// What it is, in lower case: `page`, `slide`, `sheet` or `chapter`.
    pub kind: String,
    /// Its number, from 1.
    pub number: usize,
    /// The name of a sheet, the title of a slide, or the heading of a chapter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Place {
    /// Returns what names the place in its line, such as `Page 37` or `Sheet 2: Budget`.
    fn label(&self) -> String {
        let mut kind = self.kind.clone();
        if let Some(first) = kind.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let name = self.name.as_deref().map(|name| format!(": {name}")).unwrap_or_default();
        format!("{kind} {}{name}", self.number)
    }

    /// Reads the label of a place.
    fn read(label: &str) -> Option<Self> {
        let (kind, rest) = label.split_once(' ')?;
        let (number, name) = match rest.split_once(": ") {
            Some((number, name)) => (number, Some(name.to_owned())),
            None => (rest, None),
        };
        Some(Self { kind: kind.to_ascii_lowercase(), number: number.parse().ok()?, name })
    }
}

/// Appends a place and its text to the text of an attachment.
pub fn push_place(out: &mut String, place: &Place, text: &str) {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    out.extend([SIGN.to_string(), "# ".to_owned(), one_line(&place.label()), "\n\n".to_owned()]);
    let before = out.len();
    out.extend(text.chars().filter(|&c| c == '\n' || c == '\t' || !c.is_control()));
    let length = out.trim_end().len().max(before);
    out.truncate(length);
    out.push_str(if length > before { "\n\n" } else { "" });
}

/// Returns the structure of the text of an attachment: a heading for each place, and its lines as pieces of a kind.
pub fn parse(text: &str, kind: PieceKind) -> Note {
    let mut note = Note::default();
    let (mut start, mut separator) = (0, Separator::Block);
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let from = start;
        start += line.len();
        let bare = line.trim_end_matches(['\n', '\r']);
        let span = Span::new(from, from + bare.len());
        if let Some(label) = bare.strip_prefix(SIGN).and_then(|label| label.strip_prefix("# ")) {
            note.headings.push(Heading { level: PLACE, text: label.to_owned(), line: at + 1, span });
            // A passage begins behind the line, whose text is that of no file.
            let behind = Span::new(span.end, span.end);
            note.pieces.push(Piece { kind: PieceKind::Heading, span: behind, separator: Separator::Block });
            separator = Separator::Block;
        } else if bare.trim().is_empty() {
            separator = Separator::Block;
        } else {
            let lead = bare.len() - bare.trim_start().len();
            let span = Span::new(from + lead, from + bare.trim_end().len());
            note.pieces.push(Piece { kind, span, separator });
            separator = Separator::Line;
        }
    }
    note
}

/// Returns the text as a person reads it: without the signs before the names of places. Lines keep their numbers.
pub fn shown(text: &str) -> String {
    text.replace(SIGN, "")
}

/// Returns the place in which an offset of a text with this structure lies.
pub fn place_at(note: &Note, offset: usize) -> Option<Place> {
    let heading = note.headings.iter().rev().find(|heading| heading.span.start <= offset)?;
    Place::read(&heading.text)
}

/// Returns the index of the heading of a place: by the subpath of a link as Obsidian writes it, `page=37`, or by the name of a
/// sheet, slide or chapter.
pub fn find_place(note: &Note, wanted: &str) -> Option<usize> {
    let wanted = wanted.trim_start_matches('#').trim();
    let places = || note.headings.iter().map(|heading| Place::read(&heading.text));
    // A link can name more than the place, such as the height of what is embedded.
    let numbered = wanted.split(['&', ',']).find_map(|part| {
        let (kind, number) = part.split_once('=')?;
        let (kind, number) = (kind.trim().to_ascii_lowercase(), number.trim().parse::<usize>().ok()?);
        places().position(|place| place.is_some_and(|place| place.kind == kind && place.number == number))
    });
    let is_wanted = |text: &str| text.eq_ignore_ascii_case(wanted);
    let named = || {
        note.headings.iter().position(|heading| is_wanted(&heading.text)).or_else(|| {
            places().position(|place| place.and_then(|place| place.name).is_some_and(|name| is_wanted(&name)))
        })
    };
    numbered.or_else(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: usize) -> Place {
        Place { kind: "page".to_owned(), number, name: None }
    }

    #[test]
    fn places_are_read_as_they_were_written() {
        let mut text = String::new();
        push_place(&mut text, &page(1), "First line\nsecond line\n\n# no place\n");
        let sheet = Place { kind: "sheet".to_owned(), number: 2, name: Some("Budget:  2026\n".to_owned()) };
        push_place(&mut text, &sheet, "a\tb \u{0C}# Page 9\n");
        push_place(&mut text, &page(3), " \n");
        assert_eq!(
            shown(&text),
            "# Page 1\n\nFirst line\nsecond line\n\n# no place\n\n# Sheet 2: Budget: 2026\n\na\tb # Page 9\n\n# Page 3\n\n"
        );
        let note = parse(&text, PieceKind::Prose);
        let labels: Vec<_> = note.headings.iter().map(|heading| heading.text.as_str()).collect();
        assert_eq!(labels, ["Page 1", "Sheet 2: Budget: 2026", "Page 3"]);
        let pieces: Vec<_> =
            note.pieces.iter().map(|piece| (piece.span.of(&text), piece.separator)).collect();
        assert_eq!(pieces[1], ("First line", Separator::Block));
        assert_eq!(pieces[2], ("second line", Separator::Line));
        assert_eq!(pieces[3], ("# no place", Separator::Block));
        let at = text.find("a\tb").unwrap();
        assert_eq!(place_at(&note, at).unwrap().name.as_deref(), Some("Budget: 2026"));
        assert_eq!(place_at(&note, 0), Some(page(1)));
    }

    #[test]
    fn a_place_is_found_by_number_or_name() {
        let mut text = String::new();
        push_place(&mut text, &page(1), "one");
        push_place(&mut text, &page(2), "two");
        push_place(
            &mut text,
            &Place { kind: "chapter".to_owned(), number: 3, name: Some("The whale".to_owned()) },
            "three",
        );
        let note = parse(&text, PieceKind::Prose);
        for (wanted, found) in [
            ("#page=2", Some(1)),
            ("page=2&rect=1,2,3,4", Some(1)),
            ("height=400, page=1", Some(0)),
            ("Page 2", Some(1)),
            ("the WHALE", Some(2)),
            ("chapter=3", Some(2)),
            ("page=3", None),
            ("page=x", None),
            ("", None),
        ] {
            assert_eq!(find_place(&note, wanted), found, "{wanted}");
        }
    }
}
