//! Tests on PDF files that are written here, as text.

use std::fmt::Write;

use super::{read, text_string};
use crate::{AttachmentText, Unreadable};

/// Writes a file of pages with the given content and entries, and further objects from number 100 on.
pub(crate) fn file(pages: &[(&str, &str)], objects: &[&str]) -> Vec<u8> {
    let mut bodies: Vec<(usize, String)> = Vec::new();
    let kids: String = (0..pages.len()).fold(String::new(), |mut kids, index| {
        write!(kids, "{} 0 R ", 10 + 2 * index).expect("a string takes all");
        kids
    });
    bodies.push((1, "<< /Type /Catalog /Pages 2 0 R >>".to_owned()));
    bodies.push((2, format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len())));
    bodies.push((
        3,
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ));
    bodies
        .push((4, "<< /Title (A title) /Author (Ada) /CreationDate (D:20240203040506+02'00') >>".to_owned()));
    for (index, (content, entries)) in pages.iter().enumerate() {
        let number = 10 + 2 * index;
        let page = format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {} 0 R \
             /Resources << /Font << /F 3 0 R /G 100 0 R >> /XObject << /X 101 0 R >> >> {entries} >>",
            number + 1
        );
        bodies.push((number, page));
        bodies.push((number + 1, format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len())));
    }
    for (index, object) in objects.iter().enumerate() {
        bodies.push((100 + index, (*object).to_owned()));
    }
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut table = String::new();
    for (number, body) in &bodies {
        write!(table, "{number} 1\n{:010} 00000 n \n", file.len()).expect("a string takes all");
        file.extend(format!("{number} 0 obj\n{body}\nendobj\n").into_bytes());
    }
    let start = file.len();
    let end = format!(
        "xref\n0 1\n0000000000 65535 f \n{table}trailer\n<< /Size 200 /Root 1 0 R /Info 4 0 R >>\nstartxref\n{start}\n%%EOF\n"
    );
    file.extend(end.into_bytes());
    file
}

/// Content that shows texts at places, from the bottom left corner.
pub(crate) fn shows(texts: &[(f64, f64, &str)]) -> String {
    texts.iter().fold(String::new(), |mut content, (x, y, text)| {
        writeln!(content, "BT /F 10 Tf {x} {y} Td ({text}) Tj ET").expect("a string takes all");
        content
    })
}

fn only_page(content: &str) -> String {
    text_of(&file(&[(content, "")], &[]))
}

fn text_of(bytes: &[u8]) -> String {
    let text = read(bytes).expect("the file is sound");
    text.places[0].text.clone()
}

const IMAGE: &str = "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray \
                     /Length 1 >>\nstream\nx\nendstream";

#[test]
fn pages_have_numbers_and_the_file_its_properties() {
    let (first, second) = (shows(&[(50.0, 700.0, "One")]), shows(&[(50.0, 700.0, "Two")]));
    let text = read(&file(&[(&first, ""), (&second, "")], &[])).expect("the file is sound");
    let pages: Vec<_> = text.places.iter().map(|place| (place.number, place.text.as_str())).collect();
    assert_eq!(pages, [(1, "One"), (2, "Two")]);
    let AttachmentText { title, authors, created, .. } = text;
    assert_eq!(title.as_deref(), Some("A title"));
    assert_eq!(authors, ["Ada"]);
    assert_eq!(created.as_deref(), Some("2024-02-03T04:05:06+02:00"));
}

#[test]
fn texts_are_in_reading_order() {
    let columns = (0..6).flat_map(|row| {
        let y = 700.0 - 12.0 * f64::from(row);
        [(50.0, y, "left words of this line"), (320.0, y, "right words of that line")]
    });
    let columns = columns.collect::<Vec<_>>();
    // Painted column by column below a title, and a title that is painted last.
    let mut painted: Vec<_> = columns.iter().copied().filter(|text| text.0 < 100.0).collect();
    painted.extend(columns.iter().copied().filter(|text| text.0 > 100.0));
    painted.push((
        50.0,
        740.0,
        "A title over both of the columns, which is as wide as the text of the page, or is it",
    ));
    let text = only_page(&shows(&painted));
    let order: Vec<_> =
        ["A title", "left", "right"].iter().map(|word| text.find(word).expect("the word is there")).collect();
    assert!(order.is_sorted(), "{text}");
    assert!(text.rfind("left") < text.find("right"), "{text}");
}

#[test]
fn cells_of_a_row_are_one_line() {
    let cells =
        [(50.0, 700.0, "Name"), (200.0, 700.0, "Price"), (50.0, 688.0, "Pen"), (200.0, 688.0, "3.50")];
    assert_eq!(only_page(&shows(&cells)), "Name\tPrice\nPen\t3.50");
}

#[test]
fn words_are_found_as_they_are_read() {
    let cases = [
        ("a gap is a space", "BT /F 10 Tf 50 700 Td [(two) -300 (words)] TJ ET", "two words"),
        ("kerning is none", "BT /F 10 Tf 50 700 Td [(A) 80 (V) 60 (ATAR)] TJ ET", "AVATAR"),
        (
            "spaced letters are a word",
            "BT /F 10 Tf 2 Tc 50 700 Td (spaced letters) Tj 0 Tc ET",
            "spaced letters",
        ),
        (
            "a hyphen at the end of a line",
            &shows(&[(50.0, 700.0, "the exam-"), (50.0, 688.0, "ple is long")]),
            "the example\nis long",
        ),
        (
            "a hyphen that stands elsewhere",
            &shows(&[(50.0, 700.0, "well-known is well-"), (50.0, 688.0, "known")]),
            "well-known is well-known",
        ),
        ("bold by painting twice", &shows(&[(50.0, 700.0, "bold"), (50.3, 700.0, "bold")]), "bold"),
        ("a superscript", "BT /F 10 Tf 50 700 Td (E = mc) Tj /F 6 Tf 4 Ts (2) Tj ET", "E = mc2"),
        (
            "an accent over a letter",
            "BT /F 10 Tf 50 700 Td [(\\264) 280 (e) -0 (t\\264) 310 (e)] TJ ET",
            "été",
        ),
        (
            "text that stands for glyphs",
            "/Span << /ActualText (ffi) >> BDC BT /F 10 Tf 50 700 Td (xyz) Tj ET EMC",
            "ffi",
        ),
        ("an escaped letter", "BT /F 10 Tf 50 700 Td (caf\\351) Tj ET", "café"),
        ("a turned page's text", "BT /F 10 Tf 0 1 -1 0 300 100 Tm (upwards we go) Tj ET", "upwards we go"),
        (
            "text outside of the page",
            &shows(&[(50.0, 700.0, "in"), (50.0, 900.0, "out"), (-90.0, 20.0, "out")]),
            "in",
        ),
    ];
    assert_eq!(cases.len(), 12);
    for (name, content, expected) in cases {
        assert_eq!(only_page(content), expected, "{name}");
    }
}

#[test]
fn ligatures_and_right_to_left_scripts_are_letters_in_logical_order() {
    let cases = [
        ("a ligature by its name", "[65 /fi /ffi]", "(AndB)", "findffi"),
        ("Hebrew from left to right", "[65 /afii57677 /afii57676 /afii57673 /afii57689]", "(ABCD)", "שילם"),
        ("Hebrew with a number", "[65 /afii57664 /afii57665]", "(12 BA)", "אב 12"),
    ];
    assert_eq!(cases.len(), 3);
    for (name, differences, shown, expected) in cases {
        let font = format!(
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Differences {differences} >> >>"
        );
        let content = format!("BT /G 10 Tf 50 700 Td {shown} Tj ET");
        let text = text_of(&file(&[(&content, "")], &[&font]));
        assert_eq!(text, expected, "{name}");
    }
}

#[test]
fn a_page_with_an_image_and_no_text_is_a_scan() {
    let cases = [
        ("a whole page", "q 600 0 0 800 0 0 cm /X Do Q".to_owned(), true),
        ("a small image", "q 60 0 0 80 0 0 cm /X Do Q".to_owned(), false),
        (
            "an image with text",
            format!("q 600 0 0 800 0 0 cm /X Do Q {}", shows(&[(50.0, 700.0, "text")])),
            false,
        ),
        ("nothing", String::new(), false),
    ];
    assert_eq!(cases.len(), 4);
    for (name, content, expected) in cases {
        let text = read(&file(&[(&content, "")], &["null", IMAGE])).expect("the file is sound");
        assert_eq!(text.places[0].is_scan, expected, "{name}");
    }
}

#[test]
fn a_page_that_is_turned_reads_upright() {
    let content =
        "BT /F 10 Tf 0 1 -1 0 300 100 Tm (sideways) Tj ET BT /F 10 Tf 0 1 -1 0 312 100 Tm (second) Tj ET";
    assert_eq!(text_of(&file(&[(content, "/Rotate 90")], &[])), "sideways\nsecond");
}

#[test]
fn passwords_protect_only_when_they_are_needed() {
    assert_eq!(text_of(include_bytes!("fixtures/empty-password.pdf")), "Sealed words");
    assert_eq!(read(include_bytes!("fixtures/user-password.pdf")), Err(Unreadable::Encrypted));
}

#[test]
fn hostile_files_end_soon() {
    let text = shows(&[(50.0, 700.0, "text")]);
    let form = "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 101 0 R >> >> /Length 12 >>\n\
                stream\n/X Do /X Do \nendstream";
    let sound = String::from_utf8(file(&[(&text, "")], &[])).expect("the file is ASCII");
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("a header only", b"%PDF-1.7".to_vec()),
        (
            "a page tree that is its own child",
            sound.replace("/Kids [10 0 R ]", "/Kids [2 0 R 2 0 R]").into_bytes(),
        ),
        ("a length of 10 GB", sound.replace("/Length ", "/Length 10000000000").into_bytes()),
        ("a table that points to itself", sound.replace("/Size 200", "/Size 200 /Prev 9").into_bytes()),
        ("two billion objects", sound.replace("0 1\n", "0 2000000000\n").into_bytes()),
        ("a form that draws itself twice", file(&[("/X Do", "")], &["null", form])),
        ("arrays in arrays", file(&[(&"[".repeat(100_000), "")], &[])),
        ("a catalog that is the page tree", sound.replace("/Root 1 0 R", "/Root 2 0 R").into_bytes()),
        ("half a file", sound.as_bytes()[..sound.len() / 2].to_vec()),
    ];
    assert_eq!(cases.len(), 10);
    for (name, bytes) in cases {
        let start = std::time::Instant::now();
        let result = crate::read(crate::Format::Pdf, &bytes);
        assert!(start.elapsed().as_secs() < 20, "{name} took {:?}", start.elapsed());
        if let Ok(text) = result {
            assert!(text.places.len() < 10, "{name}");
        }
    }
}

#[test]
fn text_strings_have_three_encodings() {
    let cases: [(&[u8], &str); 5] = [
        (b"plain", "plain"),
        (b"\x8d\xfc\x8e", "“ü”"),
        (b"\xfe\xff\x00A\x20\xac", "A€"),
        (b"\xef\xbb\xbf\xc3\xa9", "é"),
        (b"\xfe\xff\x00\x1b\x00e\x00n\x00\x1b\x00A", "A"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(text_string(bytes), expected);
    }
}
