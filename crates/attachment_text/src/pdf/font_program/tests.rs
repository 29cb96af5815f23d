//! Tests on fonts that are written here, byte by byte.

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::pdf::read;
use crate::pdf::tests::file;

/// A table of characters: its platform, its encoding and its bytes.
type Table = (u16, u16, Vec<u8>);

fn shorts(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

fn longs(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

/// Writes a table of runs of characters of 16 bits, each with the glyph of its first; the last run has to be 0xffff.
fn runs(runs: &[(u16, u16, u16)]) -> Vec<u8> {
    let count = u16::try_from(runs.len()).expect("runs are few");
    let mut table = shorts(&[4, 16 + 8 * count, 0, 2 * count, 0, 0, 0]);
    table.extend(runs.iter().flat_map(|(_, end, _)| end.to_be_bytes()));
    table.extend([0, 0]);
    table.extend(runs.iter().flat_map(|(start, ..)| start.to_be_bytes()));
    table.extend(runs.iter().flat_map(|(start, _, glyph)| glyph.wrapping_sub(*start).to_be_bytes()));
    table.extend(runs.iter().flat_map(|_| [0, 0]));
    table
}

/// Writes a table of groups of characters of 32 bits, each with the glyph of its first.
fn groups(groups: &[(u32, u32, u32)]) -> Vec<u8> {
    let count = u32::try_from(groups.len()).expect("groups are few");
    let mut table = shorts(&[12, 0]);
    table.extend(longs(&[16 + 12 * count, 0, count]));
    table.extend(groups.iter().flat_map(|(start, end, glyph)| longs(&[*start, *end, *glyph])));
    table
}

/// Writes the names of glyphs from number 1 on.
fn names(names: &[&str]) -> Vec<u8> {
    let count = u16::try_from(names.len()).expect("names are few");
    let mut table = longs(&[0x0002_0000, 0, 0, 0, 0, 0, 0, 0]);
    table.extend(shorts(&[count + 1, 0]));
    table.extend((0..count).flat_map(|index| (258 + index).to_be_bytes()));
    for name in names {
        table.push(u8::try_from(name.len()).expect("a name is short"));
        table.extend(name.as_bytes());
    }
    table
}

/// Writes a font with tables of characters and a number of glyphs, and with names of them if there are any.
fn font(characters: &[Table], glyphs: u16, named: &[&str]) -> Vec<u8> {
    let count = u16::try_from(characters.len()).expect("tables are few");
    let mut cmap = shorts(&[0, count]);
    let mut at = 4 + 8 * u32::from(count);
    for (platform, encoding, bytes) in characters {
        cmap.extend(shorts(&[*platform, *encoding]));
        cmap.extend(at.to_be_bytes());
        at += u32::try_from(bytes.len()).expect("a table is small");
    }
    cmap.extend(characters.iter().flat_map(|(.., bytes)| bytes));
    let mut head = longs(&[0x0001_0000, 0, 0, 0x5f0f_3cf5]);
    head.extend(shorts(&[0, 1000]));
    head.resize(54, 0);
    let mut maxp = longs(&[0x0001_0000]);
    maxp.extend(shorts(&[glyphs]));
    maxp.resize(32, 0);
    let mut tables = vec![(b"cmap", cmap), (b"head", head), (b"maxp", maxp)];
    if !named.is_empty() {
        tables.push((b"post", names(named)));
    }
    let mut file = longs(&[0x0001_0000]);
    file.extend(shorts(&[u16::try_from(tables.len()).expect("tables are few"), 0, 0, 0]));
    let mut at = 12 + 16 * tables.len();
    for (tag, bytes) in &tables {
        file.extend(*tag);
        let place = [0, at, bytes.len()].map(|value| u32::try_from(value).expect("a font is small"));
        file.extend(longs(&place));
        at += bytes.len();
    }
    file.extend(tables.into_iter().flat_map(|(_, bytes)| bytes));
    file
}

/// Writes a font of PostScript's compact form with three glyphs, of which the form itself knows the names: E, F and fi.
fn compact_font() -> Vec<u8> {
    const CHARSET: u8 = 31;
    const GLYPHS: u8 = CHARSET + 7;
    let mut font = vec![1, 0, 4, 4];
    font.extend([0, 1, 1, 1, 2, b'T']);
    font.extend([0, 1, 1, 1, 13, 29, 0, 0, 0, CHARSET, 15, 29, 0, 0, 0, GLYPHS, 17]);
    font.extend([0, 0, 0, 0]);
    font.extend([0, 0, 38, 0, 39, 0, 109]);
    font.extend([0, 4, 1, 1, 2, 3, 4, 5, 14, 14, 14, 14]);
    font
}

fn stream(bytes: &[u8]) -> String {
    let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes all");
        hex
    });
    format!("<< /Length {} /Filter /ASCIIHexDecode >>\nstream\n{hex}>\nendstream", hex.len() + 1)
}

/// Returns what a page shows with a composite font of the given program and name, that says nothing of its text.
fn shown(program: &[u8], name: &str, map: &str, codes: &str) -> String {
    let font = format!(
        "<< /Type /Font /Subtype /Type0 /BaseFont /{name} /Encoding /Identity-H /DescendantFonts \
         [<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{name} /CIDToGIDMap {map} \
         /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> \
         /FontDescriptor << /Type /FontDescriptor /FontName /{name} /Flags 4 /FontFile2 102 0 R >> >>] >>"
    );
    let numbers = stream(&shorts(&[0, 3, 2, 1]));
    let content = format!("BT /G 10 Tf 50 700 Td <{codes}> Tj ET");
    let bytes = file(&[(&content, "")], &[&font, "null", &stream(program), &numbers]);
    read(&bytes).expect("the file is sound").places[0].text.clone()
}

const END: (u16, u16, u16) = (0xffff, 0xffff, 0);

#[test]
fn glyphs_without_stated_text_have_that_of_their_program() {
    let abc = || runs(&[(0x61, 0x63, 1), END]);
    let greek = || runs(&[(0x3b1, 0x3b3, 1), END]);
    let large = groups(&[(0x20000, 0x20002, 1)]);
    let doubles = [(0x20, 1), (0x61, 3), (0xa0, 1), (0x2f00, 2), (0x4e00, 2)].map(|(c, glyph)| (c, c, glyph));
    let doubles = runs(&[&doubles[..], &[END]].concat());
    let own = runs(&[(0xe001, 0xe003, 1), END]);
    let cases = [
        ("a table of Windows", font(&[(3, 1, abc())], 4, &[]), "abc"),
        ("a table of Unicode", font(&[(0, 3, abc())], 4, &[]), "abc"),
        ("the better of two tables", font(&[(0, 3, abc()), (3, 1, greek())], 4, &[]), "αβγ"),
        ("a table of large characters", font(&[(3, 10, large), (3, 1, greek())], 4, &[]), "𠀀𠀁𠀂"),
        ("two characters of a glyph", font(&[(3, 1, doubles)], 4, &[]), "一a"),
        ("names", font(&[], 4, &["alpha", "f_f_i", "uni0041"]), "αffiA"),
        ("names of a compact font", compact_font(), "EFfi"),
        ("names that are numbers", font(&[], 4, &["a1", "g2", "cid3"]), ""),
        ("characters of the font's own", font(&[(3, 1, own)], 4, &[]), ""),
        ("another table only", font(&[(1, 0, abc())], 4, &[]), ""),
        ("no font", b"no font".to_vec(), ""),
    ];
    assert_eq!(cases.len(), 11);
    for (name, program, expected) in cases {
        assert_eq!(shown(&program, "Text", "/Identity", "000100020003"), expected, "{name}");
    }
}

#[test]
fn numbers_of_glyphs_are_those_of_the_map() {
    let program = font(&[(3, 1, runs(&[(0x61, 0x63, 1), END]))], 4, &[]);
    assert_eq!(shown(&program, "Text", "103 0 R", "000100020003"), "cba");
}

#[test]
fn codes_of_simple_fonts_have_the_text_of_their_glyphs() {
    let codes = runs(&[(1, 3, 1), END]);
    let program = font(&[(1, 0, codes), (3, 1, runs(&[(0x61, 0x63, 1), END]))], 4, &[]);
    let font = "<< /Type /Font /Subtype /TrueType /BaseFont /Text /FirstChar 1 /LastChar 3 /Widths [500 500 500] \
                /FontDescriptor << /Type /FontDescriptor /FontName /Text /Flags 4 /FontFile2 102 0 R >> >>";
    let content = "BT /G 10 Tf 50 700 Td <010203> Tj ET";
    let bytes = file(&[(content, "")], &[font, "null", &stream(&program)]);
    assert_eq!(read(&bytes).expect("the file is sound").places[0].text, "abc");
}

#[test]
fn symbols_are_letters_only_in_fonts_of_letters() {
    let letters = || runs(&[(0xf041, 0xf05a, 1), END]);
    let numbered = runs(&[(0xf041, 0xf05a, 0x41), END]);
    let few = runs(&[(0xf041, 0xf043, 1), END]);
    let cases = [
        ("letters", "Text", font(&[(3, 0, letters())], 28, &[]), "000100020003", "ABC"),
        ("a font of symbols", "Wingdings", font(&[(3, 0, letters())], 28, &[]), "000100020003", ""),
        ("numbers of glyphs", "Text", font(&[(3, 0, numbered)], 128, &[]), "004100420043", ""),
        ("few letters", "Text", font(&[(3, 0, few)], 4, &[]), "000100020003", ""),
    ];
    assert_eq!(cases.len(), 4);
    for (name, font_name, program, codes, expected) in cases {
        assert_eq!(shown(&program, font_name, "/Identity", codes), expected, "{name}");
    }
}

#[test]
fn hostile_tables_of_characters_end_soon() {
    let huge = || groups(&vec![(0, u32::MAX, 1); 500]);
    let to_nothing = || [shorts(&[13, 0]), longs(&[28, 0, 1, 0, u32::MAX, 0])].concat();
    let overlapping = || runs(&vec![(0, 0xfffe, 1); 4000]);
    let mut endless = groups(&[(0, 9, 1)]);
    endless[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
    let half = font(&[(3, 1, runs(&[(0x61, 0x63, 1), END]))], 4, &[]);
    let cases = vec![
        ("huge groups", font(&[(3, 10, huge())], u16::MAX, &[])),
        ("huge groups in many tables", font(&vec![(3, 10, huge()); 200], u16::MAX, &[])),
        ("all characters without a glyph", font(&vec![(3, 10, to_nothing()); 200], u16::MAX, &[])),
        ("runs one over another", font(&[(3, 1, overlapping())], u16::MAX, &[])),
        ("more groups than bytes", font(&[(3, 10, endless)], 4, &[])),
        ("half a font", half[..half.len() / 2].to_vec()),
    ];
    assert_eq!(cases.len(), 6);
    for (name, program) in cases {
        let start = Instant::now();
        let text = shown(&program, "Text", "/Identity", "00010002fffe");
        assert!(start.elapsed() < Duration::from_secs(10), "{name} took {:?}", start.elapsed());
        assert!(text.chars().count() < 10, "{name}");
    }
}
