//! Runs the transcripts of README.md and the manual: every fenced block with the info string `console`.
//!
//! A line `$ COMMAND` is run by `sh`; `\` at its end joins the next line. The lines up to the next command are what it
//! prints, standard error included; a line `…` stands for any number of lines. All blocks of a page run in order on one
//! fresh copy of the example vault, which is the current folder `~/notes`. The time is [`NOW`]. Empty lines at the end
//! of an answer do not count, and neither does the notice that `.sidenote/` was made, unless the page shows it.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use similar::TextDiff;

use crate::support::{TestVault, program, repository};

/// The time of every command.
const NOW: &str = "2026-11-21T12:00:00Z";

/// Programs that a transcript may run.
const PROGRAMS: [&str; 8] = ["cat", "cd", "cp", "git", "ls", "mkdir", "printf", "sidenote"];

/// The line of a transcript that matches any number of lines.
const ANY: &str = "…";

/// So many pages have transcripts, and so many commands stand in them, or more.
const LEAST_PAGES: usize = 16;
const LEAST_COMMANDS: usize = 73;

/// One command of a page and what it is to print.
#[derive(Debug, PartialEq)]
struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
}

/// Lists README.md and every page of the manual, as paths from the root of the repository.
fn pages() -> Vec<PathBuf> {
    let (mut found, mut folders) = (vec![PathBuf::from("README.md")], vec![PathBuf::from("docs/src")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(repository().join(&folder)).into_iter().flatten() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Reads the commands of a page, with what they are to print.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    while let Some((opened, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let is_transcript = info.trim() == "console";
        let mut is_first = true;
        loop {
            let Some((at, line)) = lines.next() else { panic!("line {opened}: the block has no end") };
            if line.trim() == "```" {
                break;
            }
            if !is_transcript {
                continue;
            }
            if let Some(command) = line.strip_prefix("$ ") {
                let mut command = command.to_owned();
                while command.ends_with('\\') {
                    let (_, more) = lines.next().expect("a command goes on after `\\`");
                    command = format!("{command}\n{more}");
                }
                steps.push(Step { line: at, command, expected: Vec::new() });
                is_first = false;
                continue;
            }
            assert!(!is_first, "line {at}: a transcript begins with a command");
            steps.last_mut().into_iter().for_each(|step| step.expected.push(line.trim_end().to_owned()));
        }
    }
    for step in &mut steps {
        trim(&mut step.expected);
    }
    steps
}

/// Drops empty lines at the end.
fn trim(lines: &mut Vec<String>) {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
}

/// Says whether lines are what a transcript shows.
fn matches(expected: &[String], got: &[String]) -> bool {
    match expected.split_first() {
        None => got.is_empty(),
        Some((any, rest)) if any == ANY => (0..=got.len()).any(|skipped| matches(rest, &got[skipped..])),
        Some((line, rest)) => got.first() == Some(line) && matches(rest, &got[1..]),
    }
}

/// One page's copy of the example vault, with the folder that its commands are run in.
struct Page {
    home: tempfile::TempDir,
    folder: PathBuf,
}

impl Page {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("notes");
        fs::rename(TestVault::example().root(), &folder).unwrap();
        Self { home, folder }
    }

    /// Runs a command; gives what it printed, and its exit code where it ended by itself.
    fn run(&mut self, command: &str) -> (Vec<String>, Option<i32>) {
        if let Some(folder) = command.strip_prefix("cd ") {
            let folder = folder.trim().trim_matches(['"', '\'']);
            self.folder = match folder.strip_prefix("~/") {
                Some(folder) => self.home.path().join(folder),
                None => self.folder.join(folder),
            };
            let is_there = if self.folder.is_dir() { Some(0) } else { None };
            return (Vec::new(), is_there);
        }
        let tested = program();
        let programs = tested.parent().unwrap();
        let done = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()))
            .env("HOME", self.home.path())
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .env("COLUMNS", "100")
            .env("SIDENOTE_NOW", NOW)
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "Hanne")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "hanne@example.org")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_DATE"), NOW)))
            .output()
            .unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        // A reader's vault is not in a temporary folder.
        let real = fs::canonicalize(self.home.path()).unwrap();
        let text = text.replace(real.to_str().unwrap(), "~").replace(self.home.path().to_str().unwrap(), "~");
        let text = text.replace(tested.to_str().unwrap(), "sidenote");
        let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        trim(&mut lines);
        (lines, done.status.code())
    }

    /// Runs a command and says how what it does differs from the transcript.
    fn check(&mut self, step: &Step) -> Option<String> {
        let program = step.command.split_whitespace().next().unwrap_or_default();
        if !PROGRAMS.contains(&program) {
            return Some(format!("a transcript runs {}, not {program:?}\n", PROGRAMS.join(", ")));
        }
        let (mut got, code) = self.run(&step.command);
        let is_notice = |line: &String| line.starts_with("notice: created ~");
        if !step.expected.iter().any(is_notice) {
            got.retain(|line| !is_notice(line));
        }
        // `check --strict` ends with 8; else a transcript shows what went wrong.
        let tells =
            step.expected.iter().any(|line| line.starts_with("error: ") || line.starts_with("hint: "));
        let ends_well = match code {
            Some(0 | 8) => true,
            Some(code) => tells && code != 101,
            None => false,
        };
        if ends_well && matches(&step.expected, &got) {
            return None;
        }
        let joined = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let (expected, got) = (joined(&step.expected), joined(&got));
        let diff = TextDiff::from_lines(&expected, &got);
        let diff = diff.unified_diff().context_radius(50).header("expected", "got").to_string();
        Some(format!("exit code {code:?}\n{diff}"))
    }
}

#[test]
fn every_transcript_of_the_manual_is_what_the_program_does() {
    let (mut pages_run, mut commands_run, mut told) = (0, 0, String::new());
    for path in pages() {
        let steps = steps(&fs::read_to_string(repository().join(&path)).unwrap());
        if steps.is_empty() {
            continue;
        }
        pages_run += 1;
        let mut page = Page::new();
        for step in &steps {
            commands_run += 1;
            if let Some(differs) = page.check(step) {
                writeln!(told, "\n{}:{}: $ {}\n{differs}", path.display(), step.line, step.command).unwrap();
            }
        }
    }
    assert!(told.is_empty(), "transcripts differ from what the program does:\n{told}");
    assert!(pages_run >= LEAST_PAGES, "only {pages_run} pages have transcripts");
    assert!(commands_run >= LEAST_COMMANDS, "only {commands_run} commands were run");
}

#[test]
fn transcripts_are_read_as_commands_and_answers() {
    let text = "# Page\n\n```sh\n$ rm -r /\n```\n\n```console\n$ sidenote status\n55 notes\n…\n\n$ sidenote new A \\\n  \
                --tag b\nA.md\n```\n";
    let read = steps(text);
    let step = |line, command: &str, expected: &[&str]| Step {
        line,
        command: command.to_owned(),
        expected: expected.iter().map(|&line| line.to_owned()).collect(),
    };
    assert_eq!(
        read,
        [step(8, "sidenote status", &["55 notes", "…"]), step(12, "sidenote new A \\\n  --tag b", &["A.md"])]
    );
}

#[test]
fn an_ellipsis_stands_for_any_number_of_lines() {
    let cases: &[(&[&str], &[&str], bool)] = &[
        (&[], &[], true),
        (&[], &["a"], false),
        (&["a"], &["a"], true),
        (&["a"], &["a", "b"], false),
        (&["a", "b"], &["a"], false),
        (&["…"], &[], true),
        (&["…"], &["a", "b"], true),
        (&["a", "…"], &["a", "b", "c"], true),
        (&["a", "…"], &["b", "c"], false),
        (&["…", "c"], &["a", "c", "b", "c"], true),
        (&["…", "b", "…", "d"], &["a", "b", "c", "d"], true),
        (&["…", "d", "…", "b"], &["a", "b", "c", "d"], false),
        (&["a …"], &["a b"], false),
    ];
    let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    for (expected, got, is_match) in cases {
        assert_eq!(matches(&owned(expected), &owned(got)), *is_match, "{expected:?} against {got:?}");
    }
    assert_eq!(cases.len(), 13);
}
