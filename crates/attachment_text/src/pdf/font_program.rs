//! The text of glyphs by the program of an embedded font: its `cmap` table reversed, and the names of its glyphs. Where a PDF file
//! does not state the text of its codes, nothing else tells it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::rc::Rc;

use hayro_cmap::BfString;
use hayro_font::OutlineFontData;
use skrifa::raw::TableProvider;
use skrifa::raw::ps::agl;
use skrifa::raw::tables::cmap::CmapIterLimits;
use skrifa::{Font, GlyphId};

/// The most characters that are read from the tables of one font. Fonts have at most 65,535 glyphs, few of which have several
/// characters.
const MAX_CHARACTERS: usize = 1 << 18;

/// The most characters that are read from the tables of all fonts of a file. A font of a few bytes can have 65,535 of them.
const MAX_ALL_CHARACTERS: usize = 1 << 22;

/// The most tables that are read of a font. Real fonts have one or two of Unicode.
const MAX_TABLES: usize = 3;

/// The range of the codes of a symbol font in the table (3, 0). Some fonts of letters are made as symbol fonts.
const SYMBOLS: RangeInclusive<u32> = 0xf020..=0xf0ff;

/// The least number of letters of a font that is no symbol font.
const MIN_LETTERS: usize = 10;

/// The font programs of a file that were read so far.
pub(super) struct FontPrograms {
    programs: RefCell<HashMap<u128, Rc<FontProgram>>>,
    characters_left: Cell<usize>,
}

impl Default for FontPrograms {
    fn default() -> Self {
        Self { programs: RefCell::default(), characters_left: Cell::new(MAX_ALL_CHARACTERS) }
    }
}

impl FontPrograms {
    /// Returns the program of a font, which is read on first use.
    pub(super) fn program(&self, font: &OutlineFontData) -> Rc<FontProgram> {
        let mut programs = self.programs.borrow_mut();
        let read = || Rc::new(FontProgram::new(font, &self.characters_left));
        programs.entry(font.cache_key).or_insert_with(read).clone()
    }
}

/// The program of an embedded font.
pub(super) struct FontProgram {
    font: Option<Font>,
    /// The characters of its glyphs.
    characters: HashMap<u32, char>,
    /// The characters of its glyphs if it is a font of letters that was made as a symbol font.
    letters: HashMap<u32, char>,
}

impl FontProgram {
    fn new(data: &OutlineFontData, characters_left: &Cell<usize>) -> Self {
        let font = Font::new(data.data.clone(), 0);
        let limit = MAX_CHARACTERS.min(characters_left.get());
        let (characters, count) = font.as_ref().map(|font| characters(font, limit)).unwrap_or_default();
        characters_left.set(characters_left.get() - count);
        let name = data.postscript_name.as_deref().unwrap_or_default();
        let letters = match &font {
            Some(font) if characters.is_empty() && !is_of_symbols(name) => letters(font),
            _ => HashMap::new(),
        };
        Self { font, characters, letters }
    }

    /// Returns the text of a glyph; `None` if the program does not tell it.
    pub(super) fn text(&self, glyph: u32) -> Option<BfString> {
        if glyph == 0 {
            return None;
        }
        let character = |of: &HashMap<u32, char>| of.get(&glyph).copied().map(BfString::Char);
        character(&self.characters).or_else(|| self.named(glyph)).or_else(|| character(&self.letters))
    }

    fn named(&self, glyph: u32) -> Option<BfString> {
        let name =
            self.font.as_ref()?.glyph_name(GlyphId::new(glyph)).filter(|name| !name.is_synthesized())?;
        // Dingbats have such names, and so have glyphs that a program numbered.
        let is_number = name.as_str().strip_prefix('a').is_some_and(|rest| rest.parse::<u32>().is_ok());
        let text: String = agl::name_to_chars(name.as_str()).filter(|c| is_text(*c)).collect();
        (!is_number && !text.is_empty()).then_some(BfString::String(text))
    }
}

/// Returns the characters of glyphs by the Unicode tables of a font, and the number of characters that were read.
fn characters(font: &Font, limit: usize) -> (HashMap<u32, char>, usize) {
    let Ok(cmap) = font.tables().cmap() else {
        return (HashMap::new(), 0);
    };
    let mut records: Vec<_> = cmap
        .encoding_records()
        .iter()
        .filter_map(|record| Some((preference(record.platform_id() as u16, record.encoding_id())?, record)))
        .collect();
    records.sort_by_key(|(preference, _)| *preference);
    let mut characters = HashMap::new();
    let mut count = 0;
    let limits = CmapIterLimits { max_char: char::MAX.into(), glyph_count: font.num_glyphs() };
    let tables = records.iter().take(MAX_TABLES);
    let codes = tables
        .filter_map(|(_, record)| record.subtable(cmap.offset_data()).ok())
        .flat_map(|table| table.iter_with_limits(limits));
    // The glyph 0, which stands for all that a font has not, counts as well: a table may have nothing else.
    for (code, glyph) in codes.take(limit) {
        count += 1;
        if let Some(character) = char::from_u32(code).filter(|c| is_text(*c)) {
            // Of several characters the first is the usual one, a space rather than one that does not break; but the
            // radicals of Chinese come before the characters that look the same.
            let known = characters.entry(glyph.to_u32()).or_insert(character);
            if matches!(*known, '\u{2e80}'..='\u{2fdf}') {
                *known = character;
            }
        }
    }
    (characters, count)
}

/// Returns the characters of glyphs by the symbol table (3, 0) of a font, if it is a font of letters: it has many of them, and their
/// codes are not the numbers of their glyphs.
fn letters(font: &Font) -> HashMap<u32, char> {
    let charmap = font.charmap();
    let table = charmap.encodings().find(|encoding| encoding.sfnt_ids() == Some((3, 0)));
    let symbols: HashMap<u32, char> = table
        .into_iter()
        .flat_map(|encoding| SYMBOLS.filter_map(move |code| Some((charmap.map_code(encoding, code)?, code))))
        .filter_map(|(glyph, code)| Some((glyph.to_u32(), char::from_u32(code & 0xff)?)))
        .filter(|(_, character)| is_text(*character))
        .collect();
    let letters = symbols.values().filter(|character| character.is_ascii_alphabetic()).count();
    let is_numbered = symbols.iter().all(|(glyph, character)| *glyph == u32::from(*character));
    if letters < MIN_LETTERS || is_numbered { HashMap::new() } else { symbols }
}

/// Returns whether the name of a font is that of a symbol font.
fn is_of_symbols(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["symbol", "ding", "marlett", "icon", "awesome"].iter().any(|part| name.contains(part))
}

/// Returns the place of a table among those that are read, the best first; `None` if it is not one of Unicode.
fn preference(platform: u16, encoding: u16) -> Option<u8> {
    match (platform, encoding) {
        (3, 10) => Some(0),
        (3, 1) => Some(1),
        // Those of variants of characters have no codes.
        (0, encoding) if encoding != 5 => Some(2),
        _ => None,
    }
}

/// Returns whether a character means something outside of its font.
pub(super) fn is_text(character: char) -> bool {
    !character.is_control() && !matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'.. | '\u{fffd}')
}

#[cfg(test)]
mod tests;
