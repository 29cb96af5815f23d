//! Checks that CONTRIBUTING.md and ARCHITECTURE.md name files that exist, that recipes name tests that exist, and that all
//! places name the same toolchain.

use std::path::Path;

use super::{ROOT, read};

/// Lists the texts between backticks that look like the path of a file or folder, but for the placeholder `crates/NAME`.
fn paths(text: &str) -> Vec<&str> {
    // A name that begins with `web/` is one of a module of that crate.
    let folders = ["src/", "crates/", "assets/", "tests/", "docs/", "fixtures/", "packaging/", ".ci/"];
    let top = ["Cargo.toml", "ARCHITECTURE.md", "CHANGELOG.md", "THIRD-PARTY.md", "justfile"];
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let named =
        quoted.filter(|name| folders.iter().any(|start| name.starts_with(start)) || top.contains(name));
    named.filter(|name| *name != "crates/NAME").collect()
}

/// Checks that a document names files that exist, and more of them than a number.
#[track_caller]
fn check_paths(document: &str, more_than: usize) {
    let text = read(document);
    let named = paths(&text);
    assert!(named.len() > more_than, "{document} names only {} files", named.len());
    let missing: Vec<_> = named.into_iter().filter(|path| !Path::new(ROOT).join(path).exists()).collect();
    assert!(missing.is_empty(), "{document} names what is not there: {missing:#?}");
}

#[test]
fn contributing_names_files_that_exist() {
    check_paths("CONTRIBUTING.md", 70);
}

#[test]
fn architecture_names_files_that_exist() {
    check_paths("ARCHITECTURE.md", 150);
}

#[test]
fn all_places_name_the_same_oldest_toolchain() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let version = manifest["workspace"]["package"]["rust-version"].as_str().unwrap().to_owned();
    for (file, sentence) in [
        ("CONTRIBUTING.md", format!("Install Rust {version} or newer")),
        (".github/workflows/ci.yml", format!("rustup toolchain install {version} ")),
        (".github/workflows/ci.yml", format!("rustup default {version}\n")),
        ("justfile", format!("rustup toolchain install {version} ")),
        ("justfile", format!("cargo +{version} check")),
    ] {
        assert!(read(file).contains(&sentence), "{file} does not say {sentence:?}");
    }
}

/// Lists the words of a script that name one test, such as `apply::taken_names_are_refused`.
fn tests_named(script: &str) -> Vec<(&str, &str)> {
    let words = script.split_whitespace().filter_map(|word| word.split_once("::"));
    let is_name = |part: &str| part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    words.filter(|(file, test)| !test.is_empty() && is_name(file) && is_name(test)).collect()
}

#[test]
fn tests_left_out_under_wine_exist() {
    let text = read("tests/wine/left-out");
    let named: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    for name in &named {
        let (module, test) = name.rsplit_once("::").unwrap();
        let source = read(&format!("tests/it/{}.rs", module.replace("::", "/")));
        assert!(test.is_empty() || source.contains(&format!("fn {test}()")), "there is no test {name}");
    }
    assert_eq!(named.len(), 70);
}

#[test]
fn recipes_name_tests_that_exist() {
    let mut checked = 0;
    for (script, count) in [(".ci/run", 3), ("justfile", 11)] {
        let text = read(script);
        let named = tests_named(&text);
        assert_eq!(named.len(), count, "{script} names {named:?}");
        for (file, test) in named {
            let source = read(&format!("tests/it/{file}.rs"));
            assert!(source.contains(&format!("fn {test}()")), "{script} names {file}::{test}");
            checked += 1;
        }
    }
    assert_eq!(checked, 14);
}

#[test]
fn the_map_stays_short() {
    let lines = read("ARCHITECTURE.md").lines().count();
    assert!(lines <= 300, "ARCHITECTURE.md has {lines} lines; details belong in docs/dev/");
}
