//! Tests of all formats, on small files that are written here.

use std::io::{Cursor, Read, Write};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use zip::write::SimpleFileOptions;

use crate::{AttachmentText, Format, MAX_TEXT, Place, Unreadable, pdf, read};

/// Writes an archive.
fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).expect("a vector takes all");
        writer.write_all(content.as_bytes()).expect("a vector takes all");
    }
    writer.finish().expect("a vector takes all").into_inner()
}

const CORE: &str =
    "<cp:coreProperties><dc:title>A title</dc:title><dc:creator>Ada</dc:creator></cp:coreProperties>";

fn docx() -> Vec<u8> {
    let paragraph = |style: &str, text: &str| {
        format!(r#"<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#)
    };
    let document = format!(
        r#"<w:document><w:body>{}{}{}{}<w:p><w:r><w:t xml:space="preserve">With a </w:t><w:t>note</w:t>
        <w:footnoteReference w:id="2"/></w:r><w:r><w:delText>gone</w:delText></w:r></w:p>
        <w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>
        </w:body></w:document>"#,
        paragraph("Body", "Before all."),
        paragraph("H1", "First &amp; foremost"),
        paragraph("Body", "Text of the first."),
        paragraph("H1", "Second"),
        paragraph("Body", "Name"),
        paragraph("Body", "Price"),
        paragraph("Body", "Pen"),
        paragraph("Body", "3"),
    );
    archive(&[
        ("word/document.xml", &document),
        (
            "word/styles.xml",
            r#"<w:styles><w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style></w:styles>"#,
        ),
        (
            "word/footnotes.xml",
            r#"<w:footnotes><w:footnote w:id="2"><w:p><w:r><w:t>A footnote.</w:t></w:r></w:p></w:footnote></w:footnotes>"#,
        ),
        ("word/header1.xml", "<w:hdr><w:p><w:r><w:t>Page head</w:t></w:r></w:p></w:hdr>"),
        ("word/header2.xml", "<w:hdr><w:p><w:r><w:t>Page head</w:t></w:r></w:p></w:hdr>"),
        (
            "word/_rels/document.xml.rels",
            r#"<Relationships><Relationship Id="r1" Type="http://x/header" Target="header1.xml"/>
            <Relationship Id="r2" Type="http://x/header" Target="header2.xml"/></Relationships>"#,
        ),
        ("docProps/core.xml", CORE),
    ])
}

fn pptx() -> Vec<u8> {
    let slide = |title: &str, text: &str| {
        format!(
            r#"<p:sld><p:sp><p:ph type="title"/><a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:sp>
            <p:sp><p:ph/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sp></p:sld>"#
        )
    };
    archive(&[
        (
            "ppt/presentation.xml",
            r#"<p:presentation><p:sldIdLst><p:sldId id="256" r:id="b"/><p:sldId id="257" r:id="a"/></p:sldIdLst></p:presentation>"#,
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            r#"<Relationships><Relationship Id="a" Type="x/slide" Target="slides/slide1.xml"/>
            <Relationship Id="b" Type="x/slide" Target="/ppt/slides/slide2.xml"/></Relationships>"#,
        ),
        ("ppt/slides/slide1.xml", &slide("Shown last", "One")),
        ("ppt/slides/slide2.xml", &slide("Shown first", "Two")),
        (
            "ppt/slides/_rels/slide2.xml.rels",
            r#"<Relationships><Relationship Id="n" Type="x/notesSlide" Target="../notesSlides/n.xml"/></Relationships>"#,
        ),
        (
            "ppt/notesSlides/n.xml",
            r#"<p:notes><p:sp><p:ph type="body"/><a:p><a:r><a:t>Say hello.</a:t></a:r></a:p></p:sp>
            <p:sp><p:ph type="sldNum"/><a:p><a:r><a:t>1</a:t></a:r></a:p></p:sp></p:notes>"#,
        ),
    ])
}

fn xlsx() -> Vec<u8> {
    archive(&[
        (
            "xl/workbook.xml",
            r#"<workbook><sheets><sheet name="Prices" sheetId="1" r:id="s"/></sheets></workbook>"#,
        ),
        (
            "xl/_rels/workbook.xml.rels",
            r#"<Relationships><Relationship Id="s" Type="x/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#,
        ),
        (
            "xl/sharedStrings.xml",
            "<sst><si><t>Name</t></si><si><r><t>Da</t></r><r><t>te</t></r><rPh><t>no</t></rPh></si></sst>",
        ),
        (
            "xl/styles.xml",
            r#"<styleSheet><numFmts><numFmt numFmtId="164" formatCode="dd/mm/yyyy"/></numFmts>
            <cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="9"/></cellXfs></styleSheet>"#,
        ),
        (
            "xl/worksheets/sheet1.xml",
            r#"<worksheet><sheetData><row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row>
            <row><c t="inlineStr"><is><t>Pen</t></is></c><c s="1"><v>45325</v></c><c s="2"><v>45325.5</v></c></row>
            <row><c><v>0.30000000000000004</v></c><c s="3"><v>0.25</v></c><c t="b"><v>1</v></c><c s="1"/></row></sheetData></worksheet>"#,
        ),
    ])
}

fn open_document(body: &str) -> Vec<u8> {
    let content =
        format!("<office:document-content><office:body>{body}</office:body></office:document-content>");
    let meta = "<office:meta><dc:title>A title</dc:title><dc:creator>Ada</dc:creator></office:meta>";
    archive(&[("content.xml", &content), ("meta.xml", meta)])
}

fn odt() -> Vec<u8> {
    open_document(
        r#"<office:text><text:h text:outline-level="1">First</text:h><text:p>Some <text:span>words</text:span><text:s text:c="2"/>here<text:note>
        <text:note-citation>1</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body></text:note></text:p>
        <table:table table:name="T"><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell>
        <text:p>b</text:p></table:table-cell></table:table-row></table:table></office:text>"#,
    )
}

fn ods() -> Vec<u8> {
    open_document(
        r#"<office:spreadsheet><table:table table:name="One"><table:table-row><table:table-cell><text:p>Pen</text:p></table:table-cell>
        <table:table-cell office:value-type="date" office:date-value="2024-02-03"><text:p>3 Feb</text:p></table:table-cell></table:table-row>
        </table:table><table:table table:name="Two"><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell>
        </table:table-row></table:table></office:spreadsheet>"#,
    )
}

fn odp() -> Vec<u8> {
    open_document(
        r#"<office:presentation><draw:page draw:name="page1"><draw:frame presentation:class="title"><draw:text-box><text:p>Hello</text:p>
        </draw:text-box></draw:frame><draw:frame><draw:text-box><text:p>World</text:p></draw:text-box></draw:frame>
        <presentation:notes><draw:frame><text:p>Say it.</text:p></draw:frame></presentation:notes></draw:page></office:presentation>"#,
    )
}

fn epub() -> Vec<u8> {
    archive(&[
        (
            "META-INF/container.xml",
            r#"<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>"#,
        ),
        (
            "OEBPS/book.opf",
            r#"<package><metadata><dc:title>A book</dc:title><dc:creator>Ada</dc:creator></metadata><manifest>
            <item id="a" href="a.xhtml"/><item id="b" href="text/b%20c.xhtml"/><item id="n" href="nav.xhtml" properties="nav"/></manifest>
            <spine><itemref idref="b"/><itemref idref="a"/></spine></package>"#,
        ),
        (
            "OEBPS/nav.xhtml",
            r#"<html><nav><ol><li><a href="text/b%20c.xhtml#x">In the <b>table</b></a></li></ol></nav></html>"#,
        ),
        (
            "OEBPS/a.xhtml",
            "<html><head><title/><script/></head><body><h1>Its heading</h1><p>Second &#233;&amp;</p></body></html>",
        ),
        ("OEBPS/text/b c.xhtml", "<html><head><title>t</title></head><body><p>First</p></body></html>"),
    ])
}

const HTML: &str = "<!doctype html><html><head><title>A &amp; B</title><meta name=author content=Ada><style>p{}</style></head><body>\
    <p>Before <b>all</b>.<script>if (1 < 2) { document.write('<p>no</p>') }</script><h1>One</h1><p>First\n  text<br>line</p>\
    <table><tr><td>a<td>b<tr><td>c<td>d</table><pre>x\n  y</pre><h2>Two</h2>End</body></html>";

/// A sound file of each format.
fn sound() -> Vec<(Format, Vec<u8>)> {
    let page = pdf::tests::shows(&[(50.0, 700.0, "Words on a page"), (50.0, 688.0, "and more of them")]);
    vec![
        (Format::Pdf, pdf::tests::file(&[(&page, ""), (&page, "/Rotate 90")], &[])),
        (Format::Docx, docx()),
        (Format::Pptx, pptx()),
        (Format::Xlsx, xlsx()),
        (Format::Odt, odt()),
        (Format::Ods, ods()),
        (Format::Odp, odp()),
        (Format::Epub, epub()),
        (Format::Html, HTML.as_bytes().to_vec()),
    ]
}

/// The name and the text of a place.
type Expected<'a> = (Option<&'a str>, &'a str);

fn places(text: &AttachmentText) -> Vec<Expected<'_>> {
    text.places.iter().map(|Place { name, text, .. }| (name.as_deref(), text.as_str())).collect()
}

#[test]
fn each_format_has_its_places() {
    let cases: Vec<(Format, Vec<u8>, &[Expected<'_>])> = vec![
        (
            Format::Docx,
            docx(),
            &[
                (None, "Before all."),
                (Some("First & foremost"), "First & foremost\n\nText of the first."),
                (Some("Second"), "Second\n\nWith a note\n\nA footnote.\n\nName\tPrice\nPen\t3\n\nPage head"),
            ],
        ),
        (
            Format::Pptx,
            pptx(),
            &[
                (Some("Shown first"), "Shown first\n\nTwo\n\nSay hello."),
                (Some("Shown last"), "Shown last\n\nOne"),
            ],
        ),
        (
            Format::Xlsx,
            xlsx(),
            &[(Some("Prices"), "Name\tDate\nPen\t2024-02-03\t2024-02-03T12:00:00\n0.3\t25%\tTRUE")],
        ),
        (Format::Odt, odt(), &[(Some("First"), "First\n\nSome words  here  A note.\n\na\tb")]),
        (Format::Ods, ods(), &[(Some("One"), "Pen\t2024-02-03"), (Some("Two"), "x")]),
        (Format::Odp, odp(), &[(Some("Hello"), "Hello\n\nWorld\n\nSay it.")]),
        (
            Format::Epub,
            epub(),
            &[(Some("In the table"), "First"), (Some("Its heading"), "Its heading\n\nSecond é&")],
        ),
        (
            Format::Html,
            HTML.as_bytes().to_vec(),
            &[
                (None, "Before all."),
                (Some("One"), "One\n\nFirst text\nline\n\na\tb\nc\td\n\nx\n  y"),
                (Some("Two"), "Two\n\nEnd"),
            ],
        ),
    ];
    assert_eq!(cases.len(), 8);
    for (format, bytes, expected) in cases {
        let text = read(format, &bytes).expect("the file is sound");
        assert_eq!(places(&text), expected, "{format:?}");
        assert!(text.places.iter().enumerate().all(|(index, place)| place.number == index + 1), "{format:?}");
    }
}

#[test]
fn files_state_their_title_and_authors() {
    for (format, bytes) in sound() {
        let text = read(format, &bytes).expect("the file is sound");
        let title = match format {
            Format::Pptx | Format::Xlsx => continue,
            Format::Html => "A & B",
            Format::Epub => "A book",
            _ => "A title",
        };
        assert_eq!(
            (text.title.as_deref(), text.authors),
            (Some(title), vec!["Ada".to_owned()]),
            "{format:?}"
        );
    }
}

#[test]
fn encodings_of_web_pages_are_known() {
    let cases: [(&str, &[u8]); 7] = [
        ("UTF-8 without a word of it", "<p>é".as_bytes()),
        ("what is no UTF-8", b"<p>\xe9"),
        ("a stated encoding", b"<meta charset=iso-8859-1><p>\xe9"),
        (
            "a stated encoding in the old form",
            b"<meta http-equiv=content-type content='text/html; charset=windows-1252'><p>\xe9",
        ),
        ("XHTML's declaration", b"<?xml version='1.0' encoding='ISO-8859-1'?><p>\xe9"),
        ("a byte order mark", b"\xff\xfe<\0p\0>\0\xe9\0"),
        ("a wrong claim of UTF-16", "<meta charset=utf-16><p>é".as_bytes()),
    ];
    for (name, bytes) in cases {
        assert_eq!(read(Format::Html, bytes).expect("the page is sound").places[0].text, "é", "{name}");
    }
}

#[test]
fn dates_of_spreadsheets_are_those_of_excel() {
    let cases = [
        ("1", "1900-01-01"),
        ("59", "1900-02-28"),
        ("61", "1900-03-01"),
        ("36526", "2000-01-01"),
        ("0.75", "18:00:00"),
    ];
    for (value, expected) in cases {
        let sheet = format!(r#"<worksheet><row><c s="1"><v>{value}</v></c></row></worksheet>"#);
        let bytes = archive(&[
            ("xl/workbook.xml", r#"<workbook><sheet name="S" r:id="s"/></workbook>"#),
            ("xl/_rels/workbook.xml.rels", r#"<R><Relationship Id="s" Type="x" Target="s.xml"/></R>"#),
            ("xl/styles.xml", r#"<s><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs></s>"#),
            ("xl/s.xml", &sheet),
        ]);
        assert_eq!(read(Format::Xlsx, &bytes).expect("the file is sound").places[0].text, expected);
    }
}

#[test]
fn hostile_archives_and_pages_are_refused_or_end_soon() {
    let deep = "<a>".repeat(1_000_000);
    let entities = format!(
        "<!DOCTYPE d [<!ENTITY a \"{}\"><!ENTITY b \"&a;&a;&a;&a;\"><!ENTITY c SYSTEM \"file:///etc/passwd\">]><w:document><w:p><w:r><w:t>x&b;&c;</w:t></w:r></w:p></w:document>",
        "a".repeat(1000)
    );
    let long =
        format!("<w:document>{}</w:document>", "<w:p><w:r><w:t>words</w:t></w:r></w:p>".repeat(MAX_TEXT / 6));
    let mut claims = docx();
    // The table of contents claims another size for each part.
    for at in 0..claims.len() - 4 {
        if claims[at..].starts_with(b"PK\x01\x02") {
            claims[at + 24..at + 28].copy_from_slice(&[0xff; 4]);
        }
    }
    let itself = r#"<Relationships><Relationship Id="a" Type="x/slide" Target="../ppt/presentation.xml"/></Relationships>"#;
    let cases: Vec<(&str, Format, Vec<u8>)> = vec![
        ("nothing", Format::Docx, Vec::new()),
        ("no archive", Format::Docx, b"words".to_vec()),
        ("an archive of nothing", Format::Epub, archive(&[])),
        ("an old file of Office", Format::Docx, [&[0xd0, 0xcf, 0x11, 0xe0][..], &[0; 600]].concat()),
        ("half an archive", Format::Xlsx, xlsx()[..xlsx().len() / 2].to_vec()),
        ("a bomb", Format::Docx, archive(&[("word/document.xml", &" ".repeat(300 << 20))])),
        ("elements in elements", Format::Docx, archive(&[("word/document.xml", &deep)])),
        ("elements in elements of HTML", Format::Html, deep.clone().into_bytes()),
        ("entities of its own", Format::Docx, archive(&[("word/document.xml", &entities)])),
        ("claimed sizes", Format::Docx, claims),
        ("too much text", Format::Docx, archive(&[("word/document.xml", &long)])),
        (
            "a presentation that is its own slide",
            Format::Pptx,
            archive(&[
                ("ppt/presentation.xml", r#"<p><sldId r:id="a"/><sldId r:id="a"/></p>"#),
                ("ppt/_rels/presentation.xml.rels", itself),
            ]),
        ),
        (
            "parts that climb",
            Format::Epub,
            archive(&[("META-INF/container.xml", r#"<c><rootfile full-path="../../etc/passwd"/></c>"#)]),
        ),
        ("a plain text that is called a PDF file", Format::Pdf, b"words".to_vec()),
    ];
    assert_eq!(cases.len(), 14);
    for (name, format, bytes) in cases {
        let start = Instant::now();
        let result = read(format, &bytes);
        assert!(start.elapsed() < Duration::from_secs(20), "{name} took {:?}", start.elapsed());
        match (name, result) {
            ("too much text", result) => assert_eq!(result, Err(Unreadable::TooLong(MAX_TEXT))),
            ("entities of its own", result) => {
                assert_eq!(result.expect("the rest is sound").places[0].text, "x")
            }
            ("a bomb", result) => {
                assert!(matches!(result, Err(Unreadable::Damaged(why)) if why.contains("unpacks")))
            }
            (_, Err(Unreadable::Damaged(why))) => {
                assert!(!why.is_empty() && why.len() < 100, "{name}: {why}")
            }
            (_, Ok(text)) => assert!(text.places.len() <= 4, "{name}"),
            (_, Err(other)) => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn protected_archives_are_encrypted() {
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let office = [&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1][..], &[0; 500], &name].concat();
    let manifest = "<manifest:manifest><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>";
    let open = archive(&[("META-INF/manifest.xml", manifest), ("content.xml", "sealed")]);
    assert_eq!(read(Format::Docx, &office), Err(Unreadable::Encrypted));
    assert_eq!(read(Format::Odt, &open), Err(Unreadable::Encrypted));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn changed_and_cut_files_end_soon(
        which in 0_usize..9,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (format, mut bytes) = sound().swap_remove(which);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let start = Instant::now();
        let result = read(format, &bytes);
        prop_assert!(start.elapsed() < Duration::from_secs(10), "{:?} took {:?}", format, start.elapsed());
        prop_assert_ne!(result, Err(Unreadable::Damaged("the parser failed".to_owned())), "{:?}", format);
    }

    #[test]
    fn changed_parts_of_archives_end_soon(
        which in 1_usize..8,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let (format, bytes) = sound().swap_remove(which);
        let start = Instant::now();
        let result = read(format, &with_changed_parts(&bytes, &changes));
        prop_assert!(start.elapsed() < Duration::from_secs(10), "{:?} took {:?}", format, start.elapsed());
        prop_assert_ne!(result, Err(Unreadable::Damaged("the parser failed".to_owned())), "{:?}", format);
    }
}

/// Changes bytes of the parts of an archive, behind its checksums.
fn with_changed_parts(bytes: &[u8], changes: &[(prop::sample::Index, prop::sample::Index, u8)]) -> Vec<u8> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("the file is sound");
    let mut parts = Vec::new();
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).expect("the part is sound");
        let mut content = Vec::new();
        part.read_to_end(&mut content).expect("the part is sound");
        parts.push((part.name().expect("the name is text").into_owned(), content));
    }
    for (part, at, byte) in changes {
        let (_, content) = &mut parts[part.index(archive.len())];
        let at = at.index(content.len());
        content[at] = *byte;
    }
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        writer.start_file(name, SimpleFileOptions::default()).expect("a vector takes all");
        writer.write_all(&content).expect("a vector takes all");
    }
    writer.finish().expect("a vector takes all").into_inner()
}

/// Compares the words of PDF files with those of `pdftotext`, without order, and prints the share that was found.
#[test]
#[ignore = "needs a folder of PDF files in SIDENOTE_TEST_PDFS, and pdftotext"]
fn words_of_pdf_files_are_those_of_pdftotext() {
    let folder = std::env::var_os("SIDENOTE_TEST_PDFS").expect("SIDENOTE_TEST_PDFS names a folder");
    let mut folders = vec![std::path::PathBuf::from(folder)];
    let (mut files, mut wanted, mut found) = (0_usize, 0_usize, 0_usize);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "pdf") {
                continue;
            }
            let output =
                std::process::Command::new("pdftotext").arg(&path).arg("-").output().expect("pdftotext runs");
            let bytes = std::fs::read(&path).expect("the file can be read");
            let Ok(text) = read(Format::Pdf, &bytes) else {
                continue;
            };
            let mut ours = std::collections::BTreeMap::<String, usize>::new();
            for word in text.places.iter().flat_map(|place| words(&place.text)) {
                *ours.entry(word).or_default() += 1;
            }
            files += 1;
            for word in words(&String::from_utf8_lossy(&output.stdout)) {
                wanted += 1;
                if let Some(count) = ours.get_mut(&word).filter(|count| **count > 0) {
                    *count -= 1;
                    found += 1;
                }
            }
        }
    }
    let figures = format!("{files} files, {found} of {wanted} words\n");
    std::io::stderr().write_all(figures.as_bytes()).expect("the figures can be shown");
    assert!(found * 100 >= wanted * 97, "{figures}");
}

fn words(text: &str) -> Vec<String> {
    use unicode_normalization::UnicodeNormalization;
    let text: String = text.replace("-\n", "").nfkc().collect();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[test]
fn a_table_below_the_number_of_a_slide_is_read() {
    let slide = r#"<p:sld><p:sp><p:ph type="sldNum"/><a:p><a:r><a:t>7</a:t></a:r></a:p></p:sp>
        <p:graphicFrame><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>Keel</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl></p:graphicFrame></p:sld>"#;
    let file = archive(&[
        (
            "ppt/presentation.xml",
            r#"<p:presentation><p:sldIdLst><p:sldId id="256" r:id="a"/></p:sldIdLst></p:presentation>"#,
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            r#"<Relationships><Relationship Id="a" Type="x/slide" Target="slides/slide1.xml"/></Relationships>"#,
        ),
        ("ppt/slides/slide1.xml", slide),
    ]);
    assert_eq!(read(Format::Pptx, &file).unwrap().places[0].text, "Keel");
}

#[test]
fn the_main_part_of_a_document_is_the_one_that_it_names() {
    let file = archive(&[
        (
            "_rels/.rels",
            r#"<Relationships><Relationship Id="a" Type="x/officeDocument" Target="word/document2.xml"/></Relationships>"#,
        ),
        (
            "word/document2.xml",
            "<w:document><w:body><w:p><w:r><w:t>Keel</w:t></w:r></w:p></w:body></w:document>",
        ),
    ]);
    assert_eq!(read(Format::Docx, &file).unwrap().places[0].text, "Keel");
}
