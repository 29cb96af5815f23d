//! Runs the page's own tests (Playwright, in `web/`) against the program, where there are node, its packages and Chromium.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{program, repository, say};

/// Finds a program in `$PATH`.
fn in_path(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&path).flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    found.into_iter().find(|file| file.is_file())
}

/// Says what is missing for the page's tests.
fn missing(web: &Path) -> Option<String> {
    let browser = std::env::var_os("CHROMIUM").map(PathBuf::from).or_else(chromium);
    match () {
        () if in_path(&["node"]).is_none() => Some("node is not installed".to_owned()),
        () if !web.join("node_modules").is_dir() => Some("run `npm ci` in web/ first".to_owned()),
        () if browser.is_none() => {
            Some("Chromium is not installed, and $CHROMIUM does not name one".to_owned())
        }
        () => None,
    }
}

fn chromium() -> Option<PathBuf> {
    in_path(&["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"])
}

#[test]
#[ignore = "it needs node, the packages of web/ and Chromium; `.ci/run` runs it where it can"]
fn the_page_passes_its_own_tests() {
    let web = repository().join("web");
    if let Some(missing) = missing(&web) {
        say(&format!("the tests of the page are not run: {missing}\n"));
        return;
    }
    let browser = std::env::var_os("CHROMIUM").map(PathBuf::from).or_else(chromium).unwrap();
    let ended = Command::new("npm")
        .arg("test")
        .current_dir(&web)
        .env("SIDENOTE_BIN", program())
        .env("SIDENOTE_EXAMPLE", repository().join("example-vault"))
        .env("CHROMIUM", browser)
        .status()
        .unwrap();
    assert!(ended.success(), "{ended}");
}
