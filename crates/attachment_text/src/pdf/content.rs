//! The text operators of PDF: what a page shows, as glyphs with their positions.

use std::collections::HashSet;
use std::rc::Rc;

use hayro_font::UNITS_PER_EM;
use hayro_font::kurbo::{Affine, Point, Vec2};
use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction;
use hayro_syntax::object::dict::keys;
use hayro_syntax::object::{Array, Dict, Name, Object, ObjectIdentifier, Rect, Stream};
use hayro_syntax::page::{Page, Resources};

use super::fonts::{Code, Face, Fonts};
use super::text_string;

/// How deep forms stand in forms. Real files use three or four levels.
const MAX_FORM_DEPTH: usize = 16;

/// How many operators of one page are read, with those of its forms each time that they are drawn. The largest maps have
/// some 2 million; forms that draw each other could make it endless.
const MAX_OPERATORS: usize = 8_000_000;

/// How many glyphs of one page are read. A page of a newspaper has 30,000.
const MAX_GLYPHS: usize = 1_000_000;

/// How often the graphics state is saved without being restored.
const MAX_SAVED_STATES: usize = 512;

/// How many bytes of content one page has, unpacked.
const MAX_CONTENT: usize = 256 << 20;

/// What one code of a font shows, on the page.
#[derive(Debug, Clone)]
pub(super) struct Glyph {
    /// Its text: usually one character, several for a ligature.
    pub text: Rc<str>,
    /// Where it begins, in points from the top left corner of the upright page.
    pub origin: Point,
    /// How far the text advances by it, without the spacing of characters.
    pub advance: Vec2,
    /// The size of its font on the page.
    pub size: f64,
}

/// What a page shows, so far as its text is concerned.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// The glyphs, in the order in which they are painted.
    pub glyphs: Vec<Glyph>,
    /// The share of the page that its largest image covers.
    pub image_share: f64,
}

/// The layers of a file that are switched off.
#[derive(Default)]
pub(super) struct HiddenLayers(HashSet<ObjectIdentifier>);

impl HiddenLayers {
    pub(super) fn of(catalog: Option<&Dict<'_>>) -> Self {
        let mut hidden = Self::default();
        let Some(properties) = catalog.and_then(|c| c.get::<Dict<'_>>(keys::OCPROPERTIES)) else {
            return hidden;
        };
        let Some(config) = properties.get::<Dict<'_>>(keys::D) else {
            return hidden;
        };
        let ids = |dict: &Dict<'_>, key: &[u8]| -> Vec<_> {
            let array = dict.get::<Array<'_>>(key);
            array
                .iter()
                .flat_map(|a| a.raw_iter())
                .filter_map(|item| item.as_obj_ref())
                .map(Into::into)
                .collect()
        };
        if config.get::<Name<'_>>(keys::BASE_STATE).as_deref() == Some(b"OFF") {
            hidden.0.extend(ids(&properties, keys::OCGS));
        }
        for id in ids(&config, keys::ON) {
            hidden.0.remove(&id);
        }
        hidden.0.extend(ids(&config, keys::OFF));
        hidden
    }

    /// Whether the layer in the entry `key` of a dictionary is switched off.
    fn contains(&self, dict: &Dict<'_>, key: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let layer =
            |dict: &Dict<'_>, key: &[u8]| dict.get_ref(key).is_some_and(|id| self.0.contains(&id.into()));
        // A membership dictionary names the layers of which one must be shown.
        let membership = dict.get::<Dict<'_>>(key).is_some_and(|member| {
            let named: Vec<_> = match member.get::<Array<'_>>(keys::OCGS) {
                Some(layers) => layers.raw_iter().filter_map(|item| item.as_obj_ref()).collect(),
                None => member.get_ref(keys::OCGS).into_iter().collect(),
            };
            !named.is_empty() && named.into_iter().all(|id| self.0.contains(&id.into()))
        });
        layer(dict, key) || membership
    }
}

/// The part of the graphics state on which text depends.
#[derive(Clone)]
struct State<'a> {
    transform: Affine,
    face: Option<Rc<Face<'a>>>,
    size: f64,
    character_spacing: f64,
    word_spacing: f64,
    horizontal_scale: f64,
    leading: f64,
    rise: f64,
}

/// A marked part of the content.
#[derive(Default)]
struct Marked {
    hidden: bool,
    /// The text that stands for its glyphs, and the number of glyphs before it.
    actual: Option<(Rc<str>, usize)>,
}

/// Reads what a page shows.
pub(super) fn shown<'a>(page: &Page<'a>, fonts: &mut Fonts<'a>, layers: &HiddenLayers) -> Shown {
    let (width, height) = page.render_dimensions();
    let mut reader = Reader {
        fonts,
        layers,
        state: State {
            transform: Affine::new(page.initial_transform(true).as_coeffs()),
            face: None,
            size: 1.0,
            character_spacing: 0.0,
            word_spacing: 0.0,
            horizontal_scale: 1.0,
            leading: 0.0,
            rise: 0.0,
        },
        saved: Vec::new(),
        text_matrix: Affine::IDENTITY,
        line_matrix: Affine::IDENTITY,
        marked: Vec::new(),
        operators: MAX_OPERATORS,
        page_size: (f64::from(width), f64::from(height)),
        shown: Shown::default(),
    };
    let content = content(page);
    reader.run(&content, page.resources(), 0);
    reader.annotations(page);
    reader.shown
}

/// Returns the content of a page; it is not cached with the page, so that only one page's is in memory.
fn content(page: &Page<'_>) -> Vec<u8> {
    let decoded =
        |stream: Stream<'_>| stream.decoded_data().map(|data| data.into_owned()).unwrap_or_default();
    if let Some(stream) = page.raw().get::<Stream<'_>>(keys::CONTENTS) {
        return decoded(stream);
    }
    let mut all = Vec::new();
    if let Some(parts) = page.raw().get::<Array<'_>>(keys::CONTENTS) {
        for part in parts.iter::<Stream<'_>>() {
            all.extend(decoded(part));
            all.push(b'\n');
            if all.len() > MAX_CONTENT {
                break;
            }
        }
    }
    all
}

struct Reader<'f, 'a> {
    fonts: &'f mut Fonts<'a>,
    layers: &'f HiddenLayers,
    state: State<'a>,
    saved: Vec<State<'a>>,
    text_matrix: Affine,
    line_matrix: Affine,
    marked: Vec<Marked>,
    operators: usize,
    page_size: (f64, f64),
    shown: Shown,
}

impl<'a> Reader<'_, 'a> {
    fn run(&mut self, content: &[u8], resources: &Resources<'a>, depth: usize) {
        let saved_before = self.saved.len();
        let marked_before = self.marked.len();
        let outer = self.state.clone();
        let mut instructions = TypedIter::new(content);
        while let Some(instruction) = instructions.next() {
            if self.operators == 0 || self.shown.glyphs.len() >= MAX_GLYPHS {
                break;
            }
            self.operators -= 1;
            match instruction {
                TypedInstruction::SaveState(_) if self.saved.len() < MAX_SAVED_STATES => {
                    self.saved.push(self.state.clone());
                }
                TypedInstruction::RestoreState(_) if self.saved.len() > saved_before => {
                    if let Some(state) = self.saved.pop() {
                        self.state = state;
                    }
                }
                TypedInstruction::EndMarkedContent(_) if self.marked.len() > marked_before => {
                    self.end_marked()
                }
                other => self.apply(other, resources, depth),
            }
        }
        while self.marked.len() > marked_before {
            self.end_marked();
        }
        self.saved.truncate(saved_before);
        self.state = outer;
    }

    fn apply(&mut self, instruction: TypedInstruction<'_, '_>, resources: &Resources<'a>, depth: usize) {
        match instruction {
            TypedInstruction::Transform(t) => {
                let of = [t.0, t.1, t.2, t.3, t.4, t.5].map(|number| number.as_f64());
                self.state.transform *= Affine::new(of);
            }
            TypedInstruction::SetGraphicsState(name) => self.graphics_state(name.0, resources),
            TypedInstruction::BeginText(_) => self.set_line(Affine::IDENTITY),
            TypedInstruction::SetTextMatrix(m) => {
                self.set_line(Affine::new([m.0, m.1, m.2, m.3, m.4, m.5].map(|number| number.as_f64())));
            }
            TypedInstruction::TextFont(font) => {
                self.state.face = match resources.get_font(font.0) {
                    Some(dict) => self.fonts.face(&dict),
                    None => self.fonts.fallback(),
                };
                self.state.size = font.1.as_f64();
            }
            TypedInstruction::CharacterSpacing(spacing) => self.state.character_spacing = spacing.0.as_f64(),
            TypedInstruction::WordSpacing(spacing) => self.state.word_spacing = spacing.0.as_f64(),
            TypedInstruction::HorizontalScaling(scale) => {
                self.state.horizontal_scale = scale.0.as_f64() / 100.0
            }
            TypedInstruction::TextLeading(leading) => self.state.leading = leading.0.as_f64(),
            TypedInstruction::TextRise(rise) => self.state.rise = rise.0.as_f64(),
            TypedInstruction::NextLine(by) => self.next_line(by.0.as_f64(), by.1.as_f64()),
            TypedInstruction::NextLineAndSetLeading(by) => {
                self.state.leading = -by.1.as_f64();
                self.next_line(by.0.as_f64(), by.1.as_f64());
            }
            TypedInstruction::NextLineUsingLeading(_) => self.next_line(0.0, -self.state.leading),
            TypedInstruction::NextLineAndShowText(text) => {
                self.next_line(0.0, -self.state.leading);
                self.show(text.0.as_bytes());
            }
            TypedInstruction::ShowTextWithParameters(text) => {
                self.state.word_spacing = text.0.as_f64();
                self.state.character_spacing = text.1.as_f64();
                self.next_line(0.0, -self.state.leading);
                self.show(text.2.as_bytes());
            }
            TypedInstruction::ShowText(text) => self.show(text.0.as_bytes()),
            TypedInstruction::ShowTexts(texts) => {
                for item in texts.0.iter::<Object<'_>>() {
                    match item {
                        Object::Number(adjustment) => self.adjust(adjustment.as_f64()),
                        Object::String(text) => self.show(text.as_bytes()),
                        _ => {}
                    }
                }
            }
            TypedInstruction::BeginMarkedContent(_) => self.marked.push(Marked::default()),
            TypedInstruction::BeginMarkedContentWithProperties(marked) => {
                self.begin_marked(marked.1, resources)
            }
            TypedInstruction::XObject(object) => {
                if let Some(stream) = resources.get_x_object(object.0) {
                    self.object(&stream, resources, depth);
                }
            }
            TypedInstruction::InlineImage(_) => self.image(),
            _ => {}
        }
    }

    fn graphics_state(&mut self, name: &Name<'_>, resources: &Resources<'a>) {
        let Some(font) = resources.get_ext_g_state(name).and_then(|dict| dict.get::<Array<'a>>(keys::FONT))
        else {
            return;
        };
        let mut parts = font.iter::<Object<'a>>();
        if let (Some(Object::Dict(dict)), Some(Object::Number(size))) = (parts.next(), parts.next()) {
            self.state.face = self.fonts.face(&dict);
            self.state.size = size.as_f64();
        }
    }

    fn begin_marked(&mut self, properties: &Object<'_>, resources: &Resources<'a>) {
        let mut marked = Marked::default();
        fn actual(dict: &Dict<'_>) -> Option<Rc<str>> {
            let text = dict.get::<hayro_syntax::object::String<'_>>(b"ActualText")?;
            Some(text_string(text.as_bytes()).into())
        }
        let text = match properties {
            Object::Name(name) => {
                marked.hidden = self.layers.contains(&resources.properties, name);
                resources.properties.get::<Dict<'_>>(name).and_then(|dict| actual(&dict))
            }
            Object::Dict(dict) => actual(dict),
            _ => None,
        };
        // A text inside of another one that stands for all of it is left out.
        if !self.marked.iter().any(|outer| outer.actual.is_some()) {
            marked.actual = text.map(|text| (text, self.shown.glyphs.len()));
        }
        self.marked.push(marked);
    }

    fn end_marked(&mut self) {
        let Some(Marked { actual: Some((text, before)), .. }) = self.marked.pop() else {
            return;
        };
        let glyphs = &mut self.shown.glyphs;
        let (Some(first), Some(last)) = (glyphs.get(before).cloned(), glyphs.last()) else {
            return;
        };
        let along = first.advance.normalize();
        let whole = (last.origin + last.advance - first.origin).dot(along).max(first.advance.dot(along));
        let advance = if whole.is_finite() { along * whole } else { first.advance };
        glyphs.truncate(before);
        glyphs.push(Glyph { text, advance, ..first });
    }

    fn object(&mut self, stream: &Stream<'a>, resources: &Resources<'a>, depth: usize) {
        let dict = stream.dict();
        if self.layers.contains(dict, keys::OC) {
            return;
        }
        match dict.get::<Name<'_>>(keys::SUBTYPE).as_deref() {
            Some(keys::IMAGE) => self.image(),
            Some(keys::FORM) if depth < MAX_FORM_DEPTH => {
                self.form(stream, resources, depth, Affine::IDENTITY)
            }
            _ => {}
        }
    }

    fn form(&mut self, stream: &Stream<'a>, resources: &Resources<'a>, depth: usize, placed: Affine) {
        let dict = stream.dict();
        let Ok(content) = stream.decoded_data() else {
            return;
        };
        let own = dict.get::<Dict<'a>>(keys::RESOURCES).map(Resources::new);
        let outer = self.state.transform;
        self.state.transform *=
            placed * dict.get::<[f64; 6]>(keys::MATRIX).map_or(Affine::IDENTITY, Affine::new);
        self.run(&content, own.as_ref().unwrap_or(resources), depth + 1);
        self.state.transform = outer;
    }

    /// Reads what fields of forms and notes on the page show.
    fn annotations(&mut self, page: &Page<'a>) {
        const HIDDEN: u32 = 1 << 1;
        const NO_VIEW: u32 = 1 << 5;
        let Some(annotations) = page.raw().get::<Array<'a>>(keys::ANNOTS) else {
            return;
        };
        for annotation in annotations.iter::<Dict<'a>>() {
            if annotation.get::<u32>(keys::F).unwrap_or(0) & (HIDDEN | NO_VIEW) != 0 {
                continue;
            }
            let appearance =
                annotation.get::<Dict<'a>>(keys::AP).and_then(|all| all.get::<Object<'a>>(keys::N));
            let stream = match appearance {
                Some(Object::Stream(stream)) => stream,
                Some(Object::Dict(states)) => {
                    let state = annotation.get::<Name<'_>>(keys::AS);
                    match state.and_then(|state| states.get::<Stream<'a>>(state)) {
                        Some(stream) => stream,
                        None => continue,
                    }
                }
                _ => continue,
            };
            let Some(place) = annotation.get::<Rect>(keys::RECT) else {
                continue;
            };
            // A form's box begins at its place on the page; that it may be scaled, too, does not matter to the text.
            let bounds = stream.dict().get::<Rect>(keys::BBOX);
            let corner = bounds.map_or((0.0, 0.0), |bounds| (bounds.x0, bounds.y0));
            let placed = Affine::translate((place.x0 - corner.0, place.y0 - corner.1));
            self.form(&stream, page.resources(), 0, placed);
        }
    }

    fn image(&mut self) {
        if self.is_hidden() {
            return;
        }
        let corners = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
            .map(|corner| self.state.transform * Point::from(corner));
        let (width, height) = self.page_size;
        let extent = |values: [f64; 4], limit: f64| {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min).clamp(0.0, limit);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max).clamp(0.0, limit);
            (high - low).max(0.0)
        };
        let share =
            extent(corners.map(|p| p.x), width) * extent(corners.map(|p| p.y), height) / (width * height);
        // Some scanners cut a page into strips.
        self.shown.image_share += share;
    }

    fn is_hidden(&self) -> bool {
        self.marked.iter().any(|marked| marked.hidden)
    }

    fn set_line(&mut self, matrix: Affine) {
        self.text_matrix = matrix;
        self.line_matrix = matrix;
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.set_line(self.line_matrix * Affine::translate((x, y)));
    }

    fn adjust(&mut self, thousandths: f64) {
        let horizontal = self.state.face.as_ref().is_none_or(|face| face.font.is_horizontal());
        let by = -thousandths / f64::from(UNITS_PER_EM) * self.state.size;
        let by = if horizontal { (by * self.state.horizontal_scale, 0.0) } else { (0.0, by) };
        self.text_matrix *= Affine::translate(by);
    }

    fn show(&mut self, bytes: &[u8]) {
        if self.state.face.is_none() {
            self.state.face = self.fonts.fallback();
        }
        let Some(face) = self.state.face.clone() else {
            return;
        };
        let hidden = self.is_hidden();
        let horizontal = face.font.is_horizontal();
        let mut at = 0;
        while at < bytes.len() && self.shown.glyphs.len() < MAX_GLYPHS {
            let (code, length) = face.font.read_code(bytes, at);
            at += length.max(1);
            let meaning = face.code(code, length);
            if !hidden {
                self.push(&meaning, face.em, horizontal);
            }
            let state = &self.state;
            let word_spacing = if code == 32 && length == 1 { state.word_spacing } else { 0.0 };
            let em = state.size / f64::from(UNITS_PER_EM);
            let spacing = state.character_spacing + word_spacing;
            let by = if horizontal {
                ((meaning.advance.x * em + spacing) * state.horizontal_scale, 0.0)
            } else {
                (0.0, meaning.advance.y * em + spacing)
            };
            self.text_matrix *= Affine::translate(by);
        }
    }

    fn push(&mut self, meaning: &Code, em: f64, horizontal: bool) {
        let state = &self.state;
        let scale = [state.size * state.horizontal_scale, 0.0, 0.0, state.size, 0.0, state.rise];
        let matrix = state.transform * self.text_matrix * Affine::new(scale);
        let direct = |v: Vec2| {
            let [a, b, c, d, ..] = matrix.as_coeffs();
            Vec2::new(a * v.x + c * v.y, b * v.x + d * v.y)
        };
        let origin = matrix * Point::ZERO;
        let mut advance = direct(meaning.advance / f64::from(UNITS_PER_EM));
        let along = if horizontal { direct(Vec2::new(1.0, 0.0)) } else { direct(Vec2::new(0.0, -1.0)) };
        let across = if horizontal { direct(Vec2::new(0.0, 1.0)) } else { direct(Vec2::new(1.0, 0.0)) };
        let size = across.hypot() * em;
        if !(origin.is_finite() && advance.is_finite() && size.is_finite()) || size <= 0.0 {
            return;
        }
        if advance.hypot() < size * 1e-3 {
            // A mark without a width keeps the direction of its line.
            advance = along.normalize() * (size * 1e-3);
        }
        let (width, height) = self.page_size;
        let end = origin + advance;
        let outside = |a: f64, b: f64, limit: f64| a.max(b) < 0.0 || a.min(b) > limit;
        if advance.is_finite() && !outside(origin.x, end.x, width) && !outside(origin.y, end.y, height) {
            self.shown.glyphs.push(Glyph { text: meaning.text.clone(), origin, advance, size });
        }
    }
}
