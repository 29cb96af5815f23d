//! Fonts of PDF: what their codes mean, and how wide they are.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use hayro_cmap::{BfString, CMap, CMapName};
use hayro_font::kurbo::Vec2;
use hayro_font::{
    CMapResolverFn, Font, FontCache, FontGlyph, FontQuery, FontResolverFn, OutlineGlyph, StandardFont,
};
use hayro_syntax::object::dict::keys;
use hayro_syntax::object::{Array, Dict, Name, Rect, Stream};

use super::font_program::{FontProgram, FontPrograms, is_text};

/// What all pages of a file share.
pub(super) struct Fonts<'a> {
    cache: FontCache<'a>,
    faces: HashMap<Vec<u8>, Option<Rc<Face<'a>>>>,
    font_resolver: FontResolverFn,
    cmap_resolver: CMapResolverFn,
    collections: HashMap<Vec<u8>, Option<Rc<CMap>>>,
    programs: Rc<FontPrograms>,
}

impl<'a> Fonts<'a> {
    pub(super) fn new() -> Self {
        Self {
            cache: FontCache::new(),
            faces: HashMap::new(),
            font_resolver: Arc::new(|query| {
                Some(match query {
                    FontQuery::Standard(font) => font.get_font_data(),
                    FontQuery::Fallback(wanted) => wanted.pick_standard_font().get_font_data(),
                })
            }),
            cmap_resolver: Arc::new(hayro_cmap::load_embedded),
            collections: HashMap::new(),
            programs: Rc::default(),
        }
    }

    pub(super) fn face(&mut self, dict: &Dict<'a>) -> Option<Rc<Face<'a>>> {
        // A dictionary's bytes are its identity; the object that they stand in tells equal ones apart.
        let mut key = dict.data().to_vec();
        if let Some(id) = dict.obj_id() {
            key.extend(format!("{id:?}").into_bytes());
        }
        if let Some(face) = self.faces.get(&key) {
            return face.clone();
        }
        let font = self.cache.font(dict, &self.font_resolver, &self.cmap_resolver);
        let unstated = self.unstated(dict);
        let programs = &self.programs;
        let face = font.map(|font| {
            let embedded = embedded(dict).map(|stream| (stream, programs.clone()));
            Rc::new(Face { embedded, ..Face::new(font, em_of_type3(dict), unstated) })
        });
        self.faces.insert(key, face.clone());
        face
    }

    /// Returns what tells the text of codes where neither the font nor its glyphs' names do.
    fn unstated(&mut self, font: &Dict<'a>) -> Unstated {
        match font.get::<Name<'_>>(keys::SUBTYPE).as_deref() {
            Some(keys::TYPE3 | keys::TRUE_TYPE) => Unstated::Codes,
            Some(keys::TYPE0) if !font.contains_key(keys::TO_UNICODE) => {
                self.characters(font).unwrap_or(Unstated::Nothing)
            }
            _ => Unstated::Nothing,
        }
    }

    /// Returns the table of a font whose codes are numbers of one of Adobe's collections of characters.
    fn characters(&mut self, font: &Dict<'a>) -> Option<Unstated> {
        let descendant = font.get::<Array<'_>>(keys::DESCENDANT_FONTS)?.iter::<Dict<'_>>().next()?;
        let system = descendant.get::<Dict<'_>>(b"CIDSystemInfo")?;
        let ordering = system.get::<hayro_syntax::object::String<'_>>(keys::ORDERING)?;
        let name = [b"Adobe-", ordering.as_bytes(), b"-UCS2"].concat();
        let table = self.collections.entry(name.clone()).or_insert_with(|| {
            let data = hayro_cmap::load_embedded(CMapName::from_bytes(&name))?;
            CMap::parse(data, hayro_cmap::load_embedded).map(Rc::new)
        });
        let characters = table.clone()?;
        let numbers = if let Some(stream) = font.get::<Stream<'_>>(keys::ENCODING) {
            CMap::parse(&stream.decoded_data().ok()?, hayro_cmap::load_embedded).map(Box::new)
        } else {
            let name = font.get::<Name<'_>>(keys::ENCODING)?;
            match CMapName::from_bytes(&name) {
                CMapName::IdentityH | CMapName::IdentityV => None,
                name => {
                    CMap::parse(hayro_cmap::load_embedded(name)?, hayro_cmap::load_embedded).map(Box::new)
                }
            }
        };
        Some(Unstated::Characters { numbers, characters })
    }

    pub(super) fn fallback(&self) -> Option<Rc<Face<'a>>> {
        let font = self.cache.standard_font(StandardFont::Helvetica, &self.font_resolver)?;
        Some(Rc::new(Face::new(font, 1.0, Unstated::Nothing)))
    }
}

/// A font with what was found out about its codes.
pub(super) struct Face<'a> {
    pub(super) font: Font<'a>,
    /// How large an em is in units of the font's size.
    pub(super) em: f64,
    unstated: Unstated,
    /// The stream with the font's program, if the file has one, and the programs that were read.
    embedded: Option<(Stream<'a>, Rc<FontPrograms>)>,
    program: OnceCell<Option<Rc<FontProgram>>>,
    codes: RefCell<HashMap<(u32, usize), Code>>,
}

/// What a code of a font means.
#[derive(Clone)]
pub(super) struct Code {
    pub(super) text: Rc<str>,
    pub(super) advance: Vec2,
}

impl<'a> Face<'a> {
    fn new(font: Font<'a>, em: f64, unstated: Unstated) -> Self {
        Self { font, em, unstated, embedded: None, program: OnceCell::new(), codes: RefCell::default() }
    }

    pub(super) fn code(&self, code: u32, length: usize) -> Code {
        self.codes.borrow_mut().entry((code, length)).or_insert_with(|| self.look_up(code, length)).clone()
    }

    fn look_up(&self, code: u32, length: usize) -> Code {
        let text = match self.font.glyph(self.font.map_code(code), code) {
            FontGlyph::Outline(glyph) => match glyph.as_unicode() {
                // Some tables name places of which only the font knows what they mean.
                Some(stated) if !means_text(&stated) => self.of_program(&glyph).or(Some(stated)),
                stated => stated.or_else(|| self.found(&glyph, code, length)),
            },
            FontGlyph::Type3(glyph) => glyph.as_unicode().or_else(|| self.unstated.text(code, length)),
        };
        let text = match text {
            Some(BfString::Char(c)) => Rc::from(c.to_string()),
            Some(BfString::String(s)) => Rc::from(s),
            None => Rc::from(""),
        };
        Code { text, advance: self.font.code_advance(code) }
    }

    /// Returns the text of a code that the font does not state.
    fn found(&self, glyph: &OutlineGlyph, code: u32, length: usize) -> Option<BfString> {
        match self.unstated {
            // A guess is the last resort.
            Unstated::Codes => self.of_program(glyph).or_else(|| self.unstated.text(code, length)),
            _ => self.unstated.text(code, length).or_else(|| self.of_program(glyph)),
        }
    }

    /// Returns the text of a glyph by the font's program.
    fn of_program(&self, glyph: &OutlineGlyph) -> Option<BfString> {
        self.program(glyph)?.text(glyph.glyph_id().to_u32())
    }

    fn program(&self, glyph: &OutlineGlyph) -> Option<&FontProgram> {
        let (stream, programs) = self.embedded.as_ref()?;
        let program = self.program.get_or_init(|| {
            let font = glyph.font_data()?;
            // A font of the reader stands for one whose program is damaged; it has other glyphs.
            let data: &[u8] = (*font.data).as_ref();
            (*stream.decoded_data().ok()? == *data).then(|| programs.program(&font))
        });
        program.as_deref()
    }
}

/// Returns whether a text has a character that means something outside of its font.
fn means_text(text: &BfString) -> bool {
    match text {
        BfString::Char(c) => is_text(*c),
        BfString::String(s) => s.chars().any(is_text),
    }
}

/// Returns the stream with the program of a font, if the file has one.
fn embedded<'a>(font: &Dict<'a>) -> Option<Stream<'a>> {
    let of = |font: &Dict<'a>| {
        let descriptor = font.get::<Dict<'a>>(keys::FONT_DESC)?;
        [keys::FONT_FILE2, keys::FONT_FILE3, keys::FONT_FILE]
            .iter()
            .find_map(|key| descriptor.get::<Stream<'a>>(*key))
    };
    of(font).or_else(|| of(&font.get::<Array<'a>>(keys::DESCENDANT_FONTS)?.iter::<Dict<'a>>().next()?))
}

/// Returns how large an em of a font is in units of its size. It is 1, but fonts of Type 3 have units of their own, of
/// which the height of all glyphs and the widest glyph tell something: some glyphs are much higher than an em, and a small
/// font may have narrow glyphs only.
fn em_of_type3(font: &Dict<'_>) -> f64 {
    if font.get::<Name<'_>>(keys::SUBTYPE).as_deref() != Some(keys::TYPE3) {
        return 1.0;
    }
    let matrix = font.get::<[f64; 6]>(keys::FONT_MATRIX).unwrap_or([0.001, 0.0, 0.0, 0.001, 0.0, 0.0]);
    let height = font.get::<Rect>(keys::FONT_BBOX).map_or(0.0, |bounds| bounds.height()) * matrix[3].abs();
    let widths = font.get::<Array<'_>>(keys::WIDTHS);
    let widest = widths.iter().flat_map(|widths| widths.iter::<f64>()).fold(0.0, f64::max) * matrix[0].abs();
    let em = if height > 0.0 { height.min(widest.max(0.6 * height)) } else { widest };
    if em > 0.0 && em.is_finite() { em } else { 1.0 }
}

/// What tells the text of codes where neither the font nor its glyphs' names do.
enum Unstated {
    /// Nothing does.
    Nothing,
    /// The codes are those of ASCII or of a font of TeX.
    Codes,
    /// The codes stand for numbers of a collection of characters; without a table they are these numbers.
    Characters { numbers: Option<Box<CMap>>, characters: Rc<CMap> },
}

impl Unstated {
    fn text(&self, code: u32, length: usize) -> Option<BfString> {
        match self {
            Self::Nothing => None,
            Self::Codes => of_code(code),
            Self::Characters { numbers, characters } => {
                let number = match numbers {
                    Some(numbers) => numbers.lookup_cid_code(code, u8::try_from(length).ok()?)?,
                    None => code,
                };
                characters.lookup_bf_string(number)
            }
        }
    }
}

/// Returns the text of a code without any name: ASCII and Latin 1, with which the encodings of TeX agree but for their
/// ligatures.
fn of_code(code: u32) -> Option<BfString> {
    let ligature = match code {
        0x0b | 0x1b => "ff",
        0x0c | 0x1c => "fi",
        0x0d | 0x1d => "fl",
        0x0e | 0x1e => "ffi",
        0x0f | 0x1f => "ffl",
        0x21..=0x7e | 0xa1..=0xff => return char::from_u32(code).map(BfString::Char),
        _ => return None,
    };
    Some(BfString::String(ligature.to_owned()))
}
