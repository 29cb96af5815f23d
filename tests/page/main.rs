//! Runs the page's own tests (Playwright, in `web/`) against the program. They are ignored where node, its packages or Chromium
//! are missing, and the output says which.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

/// The name of the test.
const TEST: &str = "web_page::the_page_passes_its_own_tests";
/// The flags of test programs after which a value stands.
const VALUE_FLAGS: [&str; 6] = ["--skip", "--format", "--color", "--logfile", "--test-threads", "-Z"];

/// Finds a program in `$PATH`.
fn in_path(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let file = |name: &&str| format!("{name}{}", env::consts::EXE_SUFFIX);
    let found =
        env::split_paths(&path).flat_map(|folder| names.iter().map(move |name| folder.join(file(name))));
    found.into_iter().find(|file| file.is_file())
}

fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    env::var_os("CHROMIUM").map(PathBuf::from).or_else(|| in_path(&names))
}

/// Returns the browser of the page's tests, or what is missing for them.
fn browser(web: &Path) -> Result<PathBuf, &'static str> {
    if in_path(&["node"]).is_none() {
        return Err("node is not installed");
    }
    if !web.join("node_modules").is_dir() {
        return Err("run `npm ci` in web/ first");
    }
    chromium().ok_or("Chromium is not installed, and $CHROMIUM does not name one")
}

fn run(root: &Path, browser: Option<&Path>) -> Result<(), Failed> {
    let browser = browser.ok_or("node, the packages of web/ and Chromium are needed")?;
    let program =
        env::var_os("SIDENOTE_TEST_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_sidenote").into());
    let run = || {
        // On Windows, npm is a script.
        Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" })
            .arg("test")
            .current_dir(root.join("web"))
            .env("SIDENOTE_BIN", &program)
            .env("SIDENOTE_EXAMPLE", root.join("example-vault"))
            .env("CHROMIUM", browser)
            .status()
    };
    // A view that a busy machine shows late gets as many tries as this says.
    let tries = env::var("SIDENOTE_TEST_PAGE_TRIES").ok().and_then(|tries| tries.parse().ok()).unwrap_or(1);
    let mut ended = run()?;
    for _ in 1..tries {
        if !ended.success() {
            ended = run()?;
        }
    }
    if ended.success() { Ok(()) } else { Err(format!("npm test ended with {ended}").into()) }
}

/// Leaves one name of the tests to run: the standard test program takes several, and libtest-mimic one. It is one that this test
/// has, if there is any.
fn with_one_name(arguments: Vec<String>) -> Vec<String> {
    let takes_value = |flag: &String| VALUE_FLAGS.contains(&flag.as_str());
    let is_name = |at: usize| {
        let after_flag = at.checked_sub(1).and_then(|before| arguments.get(before)).is_some_and(takes_value);
        at > 0 && !after_flag && arguments.get(at).is_some_and(|text| !text.starts_with('-'))
    };
    let names: Vec<usize> = (0..arguments.len()).filter(|&at| is_name(at)).collect();
    let has = |at: &&usize| arguments.get(**at).is_some_and(|name| TEST.contains(name.as_str()));
    let kept = names.iter().find(has).or(names.first()).copied();
    let all = arguments.into_iter().enumerate();
    all.filter(|(at, _)| !names.contains(at) || Some(*at) == kept).map(|(_, text)| text).collect()
}

#[expect(clippy::print_stderr, reason = "the output of a test program says what is missing")]
fn main() -> ExitCode {
    let arguments = Arguments::from_iter(with_one_name(env::args().collect()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let browser = browser(&root.join("web"));
    if let Err(missing) = &browser
        && !arguments.list
    {
        eprintln!("the tests of the page are ignored: {missing}");
    }
    let is_ignored = browser.is_err();
    let test = move || run(root, browser.as_deref().ok());
    let test = Trial::test(TEST, test).with_ignored_flag(is_ignored);
    libtest_mimic::run(&arguments, vec![test]).exit_code()
}
