//! Tests the built files of the page: the list that the program includes, their size, and that nothing in them is inline or
//! remote.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{TestVault, repository};
use crate::web::Page;

/// The most bytes of all built files.
const MOST: u64 = 1_500_000;

/// Lists the files of a folder by their paths in it.
fn files_of(folder: &Path, inside: &str, found: &mut BTreeMap<String, u64>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{inside}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            files_of(&entry.path(), &format!("{name}/"), found);
        } else if name != "files.rs" {
            found.insert(name, entry.metadata().unwrap().len());
        }
    }
}

/// Reads the list: the address of each file, whether it is compressed, and its file.
fn listed() -> Vec<(String, bool, String)> {
    let text = fs::read_to_string(repository().join("assets/web/files.rs")).unwrap();
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix('('));
    lines
        .map(|line| {
            let quoted: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
            let [name, encoding, file] = quoted[..] else { panic!("{line}") };
            (name.to_owned(), encoding == "gzip", file.to_owned())
        })
        .collect()
}

#[test]
fn the_list_names_each_built_file() {
    let mut there = BTreeMap::new();
    files_of(&repository().join("assets/web"), "", &mut there);
    let listed = listed();
    let names: Vec<&String> = listed.iter().map(|(_, _, file)| file).collect();
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!(names, there.keys().collect::<Vec<_>>());
    for (name, is_packed, file) in &listed {
        assert_eq!(*file, if *is_packed { format!("{name}.gz") } else { name.clone() });
    }
    let bytes: u64 = there.values().sum();
    assert!(bytes <= MOST, "{bytes} bytes are more than {MOST}");
}

#[test]
fn the_page_has_no_inline_script_and_loads_nothing_remote() {
    let vault = TestVault::new(&[("A.md", "text")]);
    let page = Page::start(&vault, &[]);
    let reply = page.get("/note/A.md");
    assert_eq!(reply.status, 200);
    let html = reply.text().to_lowercase();
    for (at, _) in html.match_indices("<script") {
        let tag = &html[at..at + html[at..].find('>').unwrap()];
        assert!(tag.contains("src="), "{tag}");
    }
    for inline in [" onload=", " onclick=", "javascript:", "http://", "https://", "//cdn"] {
        assert!(!html.contains(inline), "{inline}");
    }
    // Each file that the page names is there, and may be kept.
    for (at, _) in html.match_indices("/assets/") {
        let path = html[at..].split(['"', '\'', ' ', '>']).next().unwrap();
        let path = &reply.text()[at..at + path.len()];
        let asset = page.ask("GET", path, &["Accept-Encoding: gzip"], "");
        assert_eq!(asset.status, 200, "{path}");
        assert!(asset.header("cache-control").unwrap().contains("immutable"), "{path}");
    }
}

#[test]
fn a_client_without_gzip_gets_the_same_file() {
    let vault = TestVault::new(&[("A.md", "text")]);
    let page = Page::start(&vault, &[]);
    let (plain, packed) =
        (page.get("/"), page.ask("GET", "/", &[&page.cookie, "Accept-Encoding: br, gzip"], ""));
    assert_eq!((plain.header("content-encoding"), packed.header("content-encoding")), (None, Some("gzip")));
    assert!(packed.body.len() < plain.body.len());
    assert!(plain.text().starts_with("<!"), "{}", plain.text());
    let refused = page.ask("GET", "/", &[&page.cookie, "Accept-Encoding: gzip;q=0"], "");
    assert_eq!(refused.body, plain.body);
}
