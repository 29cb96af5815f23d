//! Owns the test that CONTRIBUTING.md names files that exist, and that all places name the same toolchain.

use std::path::Path;

use super::{ROOT, read};

/// Lists what stands between backticks in a text and looks like the path of a file or folder.
fn paths(text: &str) -> Vec<&str> {
    let folders = ["src/", "tests/", "docs/", "fixtures/", ".ci/"];
    let top = ["Cargo.toml", "ARCHITECTURE.md", "CHANGELOG.md", "THIRD-PARTY.md", "justfile"];
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(|name| folders.iter().any(|start| name.starts_with(start)) || top.contains(name)).collect()
}

#[test]
fn contributing_names_files_that_exist() {
    let text = read("CONTRIBUTING.md");
    let named = paths(&text);
    assert!(named.len() > 30, "only {} files are named", named.len());
    let missing: Vec<_> = named.into_iter().filter(|path| !Path::new(ROOT).join(path).exists()).collect();
    assert!(missing.is_empty(), "CONTRIBUTING.md names what is not there: {missing:#?}");
}

#[test]
fn all_places_name_the_same_oldest_toolchain() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let version = manifest["package"]["rust-version"].as_str().unwrap().to_owned();
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
