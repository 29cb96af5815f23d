//! Tests attachments: they are found by what they say, with their places, and a hostile one harms nothing.

use std::io::Write as _;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, program, stderr, stdout, until};

const NOW: &str = "2026-03-01T12:00:00Z";

/// Makes a PDF file with these pages; each line of a page is a line of text. A page without text shows a picture that covers it.
fn pdf(title: &str, pages: &[&str]) -> Vec<u8> {
    let mut objects: Vec<String> = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Count {} /Kids [{}] >>",
            pages.len(),
            (0..pages.len()).map(|at| format!("{} 0 R ", 6 + 2 * at)).collect::<String>()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        format!("<< /Title ({title}) /Author (Ada Larsen) /CreationDate (D:20250102030405Z) >>"),
        "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>\nstream\n0\nendstream".to_owned(),
    ];
    for (at, page) in pages.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> /XObject << /Im 5 0 R >> >> >>",
            7 + 2 * at
        ));
        let lines: String = page.lines().map(|line| format!("({line}) Tj T* ")).collect();
        let shown = if page.is_empty() {
            "q 612 0 0 792 0 0 cm /Im Do Q".to_owned()
        } else {
            format!("BT /F1 12 Tf 14 TL 72 700 Td {lines}ET")
        };
        objects.push(format!("<< /Length {} >>\nstream\n{shown}\nendstream", shown.len()));
    }
    let mut file = String::from("%PDF-1.4\n");
    let mut offsets = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let start = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    for offset in offsets {
        file.push_str(&format!("{offset:010} 00000 n \n"));
    }
    file.push_str(&format!(
        "trailer\n<< /Size {} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{start}\n%%EOF\n",
        objects.len() + 1
    ));
    file.into_bytes()
}

fn vault() -> TestVault {
    let vault = TestVault::new(&[
        ("Boat.md", "# Boat\n\nThe survey is in ![[survey.pdf#page=2]].\n"),
        (
            "Files/page.html",
            "<html><head><title>Tides</title></head><body><h1>Neap tides</h1><p>The moon is at its quarter.</p><h1>Spring tides</h1><p>The zenith pulls hardest.</p></body></html>",
        ),
        ("Files/list.txt", "rope\nquadrant\nsextant\n"),
        ("Files/gauge.py", "def astrolabe():\n    return 1\n"),
    ]);
    let pages = ["The deck is sound.\nThe mast was stepped.", "The hull shows osmosis near the keel.", ""];
    vault.write("Files/survey.pdf", pdf("Hull survey", &pages));
    vault
}

fn json_of(vault: &TestVault, args: &[&str]) -> Value {
    crate::support::json(vault, NOW, args)
}

#[test]
fn a_search_finds_what_an_attachment_says_and_names_the_place() {
    let vault = vault();
    for (query, path, place) in [
        ("osmosis keel", "Files/survey.pdf", json!({ "kind": "page", "number": 2 })),
        ("\"mast was\"", "Files/survey.pdf", json!({ "kind": "page", "number": 1 })),
        ("zenith", "Files/page.html", json!({ "kind": "chapter", "number": 2, "name": "Spring tides" })),
        ("sextant", "Files/list.txt", Value::Null),
        ("astrolabe", "Files/gauge.py", Value::Null),
        ("path:Files osmosis", "Files/survey.pdf", json!({ "kind": "page", "number": 2 })),
        ("[author:Ada]", "Files/survey.pdf", json!({ "kind": "page", "number": 1 })),
        ("file:survey.pdf", "Files/survey.pdf", json!({ "kind": "page", "number": 1 })),
    ] {
        let reply = json_of(&vault, &["search", query]);
        let first = &reply["results"][0];
        assert_eq!((&first["path"], &first["place"]), (&json!(path), &place), "{query}: {reply}");
    }
    assert_snapshot!(crate::support::run(&vault, NOW, &["search", "osmosis"]), @r"
    1. survey.pdf  Files/survey.pdf:6-8
       Page 2
       The hull shows osmosis near the keel.
    ");
}

#[test]
fn a_place_of_an_attachment_is_read_by_its_number_or_name() {
    let vault = vault();
    for (args, expected) in [
        (&["read", "survey.pdf#page=2"][..], "# Page 2\n\nThe hull shows osmosis near the keel.\n\n"),
        (
            &["read", "Files/survey.pdf", "--section", "page 2"],
            "# Page 2\n\nThe hull shows osmosis near the keel.\n\n",
        ),
        (
            &["read", "page.html", "--section", "spring tides"],
            "# Chapter 2: Spring tides\n\nSpring tides\n\nThe zenith pulls hardest.\n\n",
        ),
        (&["read", "survey.pdf", "--lines", "8"], "The hull shows osmosis near the keel.\n"),
    ] {
        let output = vault.run(args);
        assert_eq!(stdout(&output).trim_end(), expected.trim_end(), "{args:?}: {}", stderr(&output));
    }
    let missing = vault.run(&["read", "survey.pdf#page=9"]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(stderr(&missing).contains("it has Page 1 to Page 3"), "{}", stderr(&missing));
}

#[test]
fn an_agent_gets_the_text_and_never_the_bytes() {
    let vault = vault();
    let mut client = Client::start(&vault, &[]);
    let mut found = Value::Null;
    // The server reads attachments in the background, and says so as long as one waits.
    until("the attachments are read", || {
        found = client.call("search_notes", json!({ "query": "osmosis" }));
        !found.to_string().contains("not read yet")
    });
    let first = &found["structuredContent"]["results"][0];
    assert_eq!(
        (&first["path"], &first["heading"]),
        (&json!("Files/survey.pdf"), &json!("Page 2")),
        "{found}"
    );
    let read = client.call("read_note", json!({ "notes": "Files/survey.pdf#page=2" }));
    let text = read["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("# Page 2\n\nThe hull shows osmosis"), "{read}");
    assert!(!read.to_string().contains("%PDF"), "{read}");
    // What it may do to a note it may not do to an attachment.
    let edit =
        client.call("edit_note", json!({ "note": "Files/survey.pdf", "action": "append", "text": "x" }));
    assert_eq!(edit["isError"], true, "{edit}");
}

#[test]
fn an_attachment_is_no_note_and_no_memory() {
    let vault = vault();
    vault.run(&["index"]);
    for args in [
        &["list", "--json"][..],
        &["recent", "--json"],
        &["tags", "--json"],
        &["memory", "search", "osmosis", "--json"],
        &["memory", "list", "--json"],
        &["mentions", "Boat", "--json"],
        &["properties", "--json"],
    ] {
        let output = vault.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        let text = stdout(&output);
        assert!(!text.contains("survey.pdf") && !text.contains("Ada Larsen"), "{args:?}: {text}");
    }
    let recalled =
        vault.run(&["memory", "recall", "what did the survey say of osmosis near the keel", "--json"]);
    assert!(!stdout(&recalled).contains("Files/survey.pdf\""), "{}", stdout(&recalled));
}

#[test]
fn what_is_not_searched_is_named_with_its_reason() {
    let vault = vault();
    vault.write("Files/broken.pdf", "%PDF-1.7 and no more");
    vault.write("Files/no.docx", "no archive");
    vault.run(&["index"]);
    let reply = json_of(&vault, &["check", "--only", "attachment-unreadable", "--only", "scanned"]);
    let mut found: Vec<_> = reply["problems"].as_array().unwrap().iter().collect();
    found.sort_by_key(|problem| problem["path"].as_str());
    let found: Vec<_> = found
        .iter()
        .map(|problem| (problem["path"].as_str().unwrap(), problem["code"].as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ("Files/broken.pdf", "attachment-unreadable"),
            ("Files/no.docx", "attachment-unreadable"),
            ("Files/survey.pdf", "scanned"),
        ],
        "{reply}"
    );
    assert!(reply.to_string().contains("1 of 3 pages is a scan and has no text"), "{reply}");
    let read = vault.run(&["read", "broken.pdf"]);
    assert!(
        stderr(&read).starts_with("error: Files/broken.pdf: its text cannot be read: "),
        "{}",
        stderr(&read)
    );
    let found = json_of(&vault, &["search", "osmosis"]);
    assert_eq!(found["results"][0]["path"], "Files/survey.pdf");
}

#[test]
fn an_attachment_is_read_once_wherever_it_lies() {
    let vault = vault();
    let read = |vault: &TestVault| json_of(vault, &["index"])["attachments"].as_u64().unwrap();
    assert_eq!(read(&vault), 4);
    assert_eq!(read(&vault), 0, "nothing changed");
    let kept = || {
        let folder = vault.root().join(".home");
        walkdir::WalkDir::new(folder)
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| {
                entry.path().extension().is_some_and(|end| end == "json")
                    && entry.path().to_string_lossy().contains("attachments")
            })
            .map(|entry| (entry.path().to_owned(), entry.metadata().unwrap().modified().unwrap()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = kept();
    assert_eq!(before.len(), 2, "the PDF and the page: {before:?}");
    vault.rename("Files/survey.pdf", "Moved.pdf");
    assert_eq!(read(&vault), 1);
    assert_eq!(kept(), before, "the same bytes are not read again");
    let reply = json_of(&vault, &["search", "osmosis"]);
    assert_eq!(reply["results"][0]["path"], "Moved.pdf");
    assert_eq!(reply["results"].as_array().unwrap().len(), 1);
    vault.write("Moved.pdf", pdf("New", &["Only barnacles are left."]));
    let reply = json_of(&vault, &["search", "barnacles"]);
    assert_eq!(reply["results"][0]["path"], "Moved.pdf", "a search reads what is new: {reply}");
    assert_eq!(json_of(&vault, &["search", "osmosis"])["results"].as_array().unwrap().len(), 0);
    vault.remove("Moved.pdf");
    assert_eq!(json_of(&vault, &["search", "barnacles"])["results"].as_array().unwrap().len(), 0);
}

#[test]
fn an_excluded_attachment_is_not_read() {
    let vault = vault();
    vault.write(".obsidian/app.json", r#"{"userIgnoreFilters": ["Files/survey.pdf"]}"#);
    assert_eq!(json_of(&vault, &["index"])["attachments"], 3);
    assert_eq!(json_of(&vault, &["search", "osmosis"])["results"].as_array().unwrap().len(), 0);
    // As a target of links it stays.
    assert_eq!(json_of(&vault, &["status"])["unresolved"], 0);
}

#[test]
fn two_hundred_hostile_files_end_no_search() {
    let vault = vault();
    let whole = pdf("Seed", &["The first page says something.", "The second page says more."]);
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize
    };
    let extensions = ["pdf", "docx", "pptx", "xlsx", "odt", "epub", "html"];
    for at in 0..200 {
        let mut bytes = whole.clone();
        match at % 4 {
            0 => bytes.truncate(next() % bytes.len()),
            1 => (0..20).for_each(|_| {
                let place = next() % bytes.len();
                bytes[place] = next() as u8;
            }),
            // A page tree that leads back to itself, and lengths that no file has.
            2 => {
                bytes = String::from_utf8(bytes)
                    .unwrap()
                    .replace("/Kids [6 0 R", "/Kids [2 0 R 2 0 R")
                    .into_bytes()
            }
            _ => {
                bytes =
                    String::from_utf8(bytes).unwrap().replace("/Length ", "/Length 9999999999").into_bytes()
            }
        }
        let extension = if at % 2 == 0 { "pdf" } else { extensions[at / 2 % extensions.len()] };
        vault.write(&format!("Hostile/{at}.{extension}"), bytes);
    }
    let reply = json_of(&vault, &["index"]);
    assert_eq!(reply["attachments"], 204, "each is read or has its reason: {reply}");
    assert_eq!(json_of(&vault, &["status"])["attachments_waiting"], 0);
    let found = json_of(&vault, &["search", "osmosis"]);
    assert_eq!(found["results"][0]["path"], "Files/survey.pdf");
}

/// Runs the process that reads an attachment.
fn read_by_child(format: &str, bytes: &[u8]) -> std::process::Output {
    let mut child = std::process::Command::new(program())
        .args(["read-attachment", format])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read all.
    drop(child.stdin.take().unwrap().write_all(bytes));
    child.wait_with_output().unwrap()
}

#[test]
fn a_process_that_reads_an_attachment_is_given_its_format() {
    let output = read_by_child("html", b"<p>Only this.</p>");
    assert!(output.status.success());
    let text: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(text["Ok"]["places"][0]["text"].as_str().map(str::trim), Some("Only this."));
    let unknown = read_by_child("exe", b"");
    assert!(!unknown.status.success() && unknown.stdout.is_empty());
}

#[test]
fn a_healthy_file_is_read_each_time() {
    let pages: Vec<String> =
        (0..40).map(|page| format!("Page {page} tells of the keel.\n").repeat(50)).collect();
    let file = pdf("Long", &pages.iter().map(String::as_str).collect::<Vec<_>>());
    let first = read_by_child("pdf", &file).stdout;
    for round in 0..60 {
        let output = read_by_child("pdf", &file);
        assert!(output.status.success() && output.stdout == first, "round {round}: {:?}", output.status);
    }
}

#[test]
fn a_file_is_read_by_what_its_name_says_now() {
    let vault = TestVault::new(&[("Note.md", "x")]);
    vault.write("book.pdf", "<html><body><p>The narwhal surfaced.</p></body></html>");
    let found =
        |vault: &TestVault| json_of(vault, &["search", "narwhal"])["results"].as_array().unwrap().len();
    assert_eq!(found(&vault), 0);
    vault.rename("book.pdf", "book.html");
    assert_eq!(found(&vault), 1);
}

#[test]
fn text_files_are_searched_in_their_encodings() {
    let vault = TestVault::new(&[("Note.md", "x")]);
    let utf16: Vec<u8> = "\u{FEFF}Größe der Jolle\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    vault.write("wide.txt", &utf16);
    vault.write("western.txt", b"L\xE4nge der Yawl\n");
    vault.write("feed.txt", b"first\n\x0C# Page 77\nkea\n");
    vault.write("nul.txt", b"a\0b cutter");
    for (query, path, text) in [
        ("Jolle", "wide.txt", "Größe der Jolle"),
        ("Länge", "western.txt", "Länge der Yawl"),
        ("kea", "feed.txt", "kea"),
    ] {
        let reply = json_of(&vault, &["search", query]);
        let first = &reply["results"][0];
        assert_eq!((&first["path"], &first["place"]), (&json!(path), &Value::Null), "{reply}");
        assert!(first["snippet"].as_str().unwrap().contains(text), "{reply}");
        assert!(stdout(&vault.run(&["read", path])).contains(text), "{path}");
    }
    assert!(stdout(&vault.run(&["read", "feed.txt"])).contains("first\n # Page 77\nkea"));
    let reply = json_of(&vault, &["check", "--only", "attachment-unreadable"]);
    assert_eq!(reply["problems"][0]["path"], "nul.txt", "{reply}");
}

#[test]
fn a_pasted_sentence_leads_to_the_page_in_which_it_stands() {
    let sentence = "The kettle has to boil for three minutes before the tea is put in";
    let words = "kettle boil minutes tea three put before";
    let scattered = format!("{words}.\nTea, kettle: three minutes.\n{words} again, {words}.");
    let vault = TestVault::new(&[(
        "Boil three minutes before tea.md",
        &format!("# Kettle\n\n{scattered}\n\n{words} {words}\n"),
    )]);
    let filler = "Nothing of it here, but much else.\n".repeat(40);
    vault.write(
        "manual.pdf",
        pdf("Manual", &[&filler, &filler, &format!("Rules.\n{sentence}.\nEnd."), &filler]),
    );
    vault.write("other.pdf", pdf("Other", &[&scattered, &scattered]));
    let pasted = "has to boil for three minutes, before the tea is put";
    for limit in ["1", "5"] {
        let found = json_of(&vault, &["search", pasted, "--limit", limit, "--explain"]);
        let first = &found["results"][0];
        assert_eq!((&first["path"], &first["place"]["number"]), (&json!("manual.pdf"), &json!(3)), "{found}");
        assert_eq!(first["explain"]["from_quotation"], 1.5, "{found}");
        assert!(found["explain"]["stages"].as_array().unwrap().contains(&json!("quotations")), "{found}");
    }
    // The same words in a question quote nothing.
    let asked = json_of(&vault, &["search", "tea three minutes kettle put boil before", "--explain"]);
    let quoted =
        asked["results"].as_array().unwrap().iter().any(|hit| hit["explain"]["from_quotation"].is_f64());
    assert!(!quoted, "{asked}");
}
