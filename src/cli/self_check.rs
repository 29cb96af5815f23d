//! `sidenote self-check`: does the real thing in a temporary vault, by running this program as it is installed.
//!
//! The settings of the user are left out, so that only program and system are checked.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use clap::Args;
use console::style;
use serde::Serialize;
use serde_json::{Value, json};
use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use uuid::Uuid;

use super::child::{Finished, Running, next_line, too_slow};
use super::output::{self, Output};
use super::{CommandContext, Outcome};

/// Test this installation in a temporary vault, in a minute at most.
///
/// The steps are: write notes, search by words and by meaning, rename a note with links, undo it, kill a rename in the
/// middle and recover, find an edit from outside while a watch runs, and serve MCP. Your vaults and your settings are
/// not used. The vault is removed at the end, unless a step failed. The exit code is 8 if a step failed. A slow machine
/// may need more than a minute: see --time-limit.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote self-check
  sidenote self-check --keep
  sidenote self-check --time-limit 600
  sidenote self-check --json")]
pub(super) struct SelfCheckArgs {
    /// Keep the temporary vault, and print its path.
    #[arg(long)]
    keep: bool,
    /// The time for all steps, in seconds. One process, or one reply of the server, may take half of it.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_time_limit)]
    time_limit: Duration,
}

/// The longest time that may be allowed: a day.
const LONGEST_TIME_LIMIT: f64 = 86_400.0;
/// How often a file is edited until the watch reports it, because the first edits can come before the watch is set up.
const EDITS: u32 = 5;
/// The time in which the watch has to report the first edit, if all steps may take a minute or less; it grows with their
/// time. Each further edit has twice the time of the one before, because a system without file events is polled every two
/// seconds.
const FIRST_EDIT_LIMIT: Duration = Duration::from_millis(500);
/// The steps of a rename at which it is killed: before its commit, and after it.
const KILL_STEPS: [u32; 3] = [5, 20, 40];
/// The variable that kills a process before its n-th change of the file system.
const FAILPOINT: &str = "SIDENOTE_FAILPOINT";
/// The variables that are handed on to the program; all others that begin with `SIDENOTE_` are left out.
const HANDED_ON: [&str; 2] = [FAILPOINT, "SIDENOTE_LOG"];
/// The variables that name the folders of the user's settings and models on any system.
const HOME_VARIABLES: [&str; 7] =
    ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"];
/// The number of notes in a subfolder that link to the note that is renamed.
const DAYS: usize = 12;
/// The protocol version that the client of the server speaks.
const PROTOCOL: &str = "2025-06-18";

/// The reply of `self-check`.
#[derive(Debug, Serialize)]
struct SelfCheckReply {
    /// The version of the program that was tested.
    version: &'static str,
    /// Whether no step failed.
    passed: bool,
    /// The steps in their order.
    steps: Vec<Step>,
    /// How many milliseconds all steps took.
    ms: u64,
    /// The folder with the temporary vault, if it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<PathBuf>,
}

/// One step of `self-check`.
#[derive(Debug, Serialize)]
struct Step {
    /// What the step does.
    step: &'static str,
    /// How it ended.
    state: StepState,
    /// What was found, or why it failed.
    detail: String,
    /// How many milliseconds it took.
    ms: u64,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum StepState {
    /// It did what it should.
    Ok,
    /// It did not.
    Failed,
    /// It was left out, because the vault could not be prepared or the command was interrupted.
    Skipped,
}

impl Step {
    /// Formats the step as one line.
    fn line(&self) -> String {
        let state = match self.state {
            StepState::Ok => style("ok     ").green(),
            StepState::Failed => style("failed ").red().bold(),
            StepState::Skipped => style("skipped").dim(),
        };
        let seconds = self.ms as f64 / 1000.0;
        format!("{state}  {seconds:>5.1} s  {}: {}\n", self.step, output::plain(&self.detail))
    }
}

/// A step: its name, whether the later steps need it, and what it does. It returns what was found.
type Action = (&'static str, bool, fn(&mut Trial) -> Result<String>);

const STEPS: [Action; 9] = [
    ("write notes", true, Trial::write_notes),
    ("search by words", false, Trial::search_by_words),
    ("search by meaning", false, Trial::search_by_meaning),
    ("rename a note with links", true, Trial::rename),
    ("undo the rename", true, Trial::undo),
    ("recover from a kill", false, Trial::recover),
    ("find an edit from outside", false, Trial::watch),
    ("serve MCP", false, Trial::serve),
    ("check the vault", false, Trial::check),
];

/// Parses the number of seconds that all steps may take.
fn parse_time_limit(seconds: &str) -> Result<Duration, String> {
    let number: f64 =
        seconds.parse().map_err(|_| "write it as a number of seconds, such as 600".to_owned())?;
    if number > 0.0 && number <= LONGEST_TIME_LIMIT {
        Ok(Duration::from_secs_f64(number))
    } else {
        Err(format!("it must be more than 0 seconds and at most {LONGEST_TIME_LIMIT}"))
    }
}

/// The time that is left for the steps.
#[derive(Debug, Clone, Copy)]
struct TimeLeft {
    /// When all steps have to be done.
    end: Instant,
    /// How long all steps may take.
    limit: Duration,
}

impl TimeLeft {
    /// Lets the time for all steps begin.
    fn begin(limit: Duration) -> Self {
        Self { end: Instant::now() + limit, limit }
    }

    /// Returns when a process or a reply that is begun now has to be done.
    fn next_end(self) -> Instant {
        self.end_within(self.limit / 2)
    }

    /// Returns the end of a shorter time, or of the time for all steps if that is earlier.
    fn end_within(self, time: Duration) -> Instant {
        self.end.min(Instant::now() + time)
    }
}

pub(super) fn run(context: &CommandContext, args: &SelfCheckArgs) -> Result<Outcome> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&interrupted);
    ctrlc::set_handler(move || handler.store(true, Ordering::Relaxed))
        .map_err(|error| Error::internal("cannot watch for Ctrl-C").with_source(error))?;
    let began = Instant::now();
    let mut steps = Vec::new();
    let mut trial = None;
    let prepared = timed("prepare a temporary vault", || {
        let folder = create_folder()?;
        let prepared = trial.insert(Trial::new(folder, args.time_limit)?);
        prepared.write_fixtures()?;
        Ok(prepared.folder.display().to_string())
    });
    let mut can_go_on = prepared.state == StepState::Ok;
    report(context.out, prepared, &mut steps)?;
    for (name, is_needed, action) in STEPS {
        let step = match &mut trial {
            Some(trial) if can_go_on && !interrupted.load(Ordering::Relaxed) => timed(name, || action(trial)),
            _ => skipped(name),
        };
        can_go_on &= step.state == StepState::Ok || !is_needed;
        report(context.out, step, &mut steps)?;
    }
    let passed = steps.iter().all(|step| step.state == StepState::Ok);
    let is_interrupted = interrupted.load(Ordering::Relaxed);
    let is_kept = args.keep || !passed && !is_interrupted;
    let kept = trial.and_then(|trial| trial.end(is_kept, context.out));
    let reply = SelfCheckReply { version: env!("CARGO_PKG_VERSION"), passed, steps, ms: millis(began), kept };
    if context.out.is_json() {
        context.out.reply(&reply, |_| String::new())?;
    } else {
        context.out.print(&summary(&reply))?;
    }
    Ok(match (is_interrupted, passed) {
        (true, _) => Outcome::Interrupted,
        (_, true) => Outcome::Done,
        _ => Outcome::ProblemsFound,
    })
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn timed(step: &'static str, action: impl FnOnce() -> Result<String>) -> Step {
    let began = Instant::now();
    let (state, detail) = match action() {
        Ok(found) => (StepState::Ok, found),
        Err(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}"));
            (StepState::Failed, format!("{error}{}", hint.unwrap_or_default()))
        }
    };
    Step { step, state, detail, ms: millis(began) }
}

fn skipped(step: &'static str) -> Step {
    let detail = "an earlier step did not succeed".to_owned();
    Step { step, state: StepState::Skipped, detail, ms: 0 }
}

/// Adds a step to the reply. For people, its line is printed at once.
fn report(out: Output, step: Step, steps: &mut Vec<Step>) -> Result<()> {
    if !out.is_json() {
        out.print(&step.line())?;
    }
    steps.push(step);
    Ok(())
}

fn summary(reply: &SelfCheckReply) -> String {
    let failed = reply.steps.iter().filter(|step| step.state == StepState::Failed).count();
    let result = match failed {
        0 if reply.passed => "sidenote works on this system".to_owned(),
        0 => "not every step was done".to_owned(),
        _ => format!("{} failed; `sidenote doctor` may tell why", output::count(failed, "step")),
    };
    let kept = reply.kept.as_ref().map(|folder| format!("; the vault is kept in {}", folder.display()));
    format!("{result} ({:.1} s){}\n", reply.ms as f64 / 1000.0, kept.unwrap_or_default())
}

/// Creates a folder of its own in the temporary folder of the system.
fn create_folder() -> Result<PathBuf> {
    let name = format!("sidenote-self-check-{}", Uuid::new_v4().simple());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir(&folder).map_err(|error| {
        Error::io("create", &folder, error)
            .with_hint("set TMPDIR (TEMP on Windows) to a folder that can be written")
    })?;
    platform::canonicalize(&folder).map_err(|error| Error::io("find", &folder, error))
}

/// The files of a vault by path, without hidden ones.
type Files = BTreeMap<String, Vec<u8>>;

/// The program under test and its temporary vault.
struct Trial {
    program: PathBuf,
    /// The temporary folder: the vault, and a home folder without settings.
    folder: PathBuf,
    vault: PathBuf,
    time: TimeLeft,
    /// The files before the rename.
    before: Files,
    /// The files after the rename.
    after: Files,
}

impl Trial {
    fn new(folder: PathBuf, time_limit: Duration) -> Result<Self> {
        let program = std::env::current_exe().map_err(|error| Error::io("find", "this program", error))?;
        let vault = folder.join("vault");
        let time = TimeLeft::begin(time_limit);
        Ok(Self { program, folder, vault, time, before: Files::new(), after: Files::new() })
    }

    /// Writes notes as another program would: with links of several forms, CRLF, and a name that is not ASCII.
    #[expect(
        clippy::disallowed_methods,
        reason = "notes of a temporary vault, as another program writes them"
    )]
    fn write_fixtures(&self) -> Result<()> {
        for folder in [self.vault.join("Trips"), self.folder.join("home")] {
            std::fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
        }
        let mut notes = vec![
            ("Harbour.md".to_owned(), "It lies on the west side.\n\n## Depth\n\nFour metres.\n".to_owned()),
            (
                "Bräcke.md".to_owned(),
                "See [[Harbour]] and [[Harbour#Depth|the depth]].\r\n\r\nAlso [by path](Harbour.md#Depth).\r\n"
                    .to_owned(),
            ),
            (
                "Spring.md".to_owned(),
                "The hull was sanded down and given two coats of lacquer before it went back into the water.\n"
                    .to_owned(),
            ),
            (
                "Kitchen.md".to_owned(),
                "Flour, yeast and warm milk rest in a bowl until the dough has doubled.\n".to_owned(),
            ),
            (
                "Minutes.md".to_owned(),
                "The committee met on Tuesday and approved the minutes.\n".to_owned(),
            ),
        ];
        notes.extend((1..=DAYS).map(|day| {
            let text =
                format!("---\nup: \"[[Harbour]]\"\n---\nDay {day} began in [[Harbour|the harbour]].\n");
            (format!("Trips/Day {day}.md"), text)
        }));
        for (path, text) in notes {
            let file = self.vault.join(path);
            std::fs::write(&file, text).map_err(|error| Error::io("write", &file, error))?;
        }
        Ok(())
    }

    fn write_notes(&mut self) -> Result<String> {
        let (first, second) = ("A sextant measures the angle of the sun.", "It was used on every ship.");
        self.run(&["new", "Sextant", "--content", first])?;
        self.run(&["append", "Sextant", second])?;
        let files = self.files()?;
        let text = files.get("Sextant.md").map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let text = text.ok_or_else(|| Error::internal("the note Sextant.md was not created"))?;
        if !text.contains(first) || !text.trim_end().ends_with(second) {
            return Err(Error::internal(format!("Sextant.md has another text than it was given: {text:?}")));
        }
        self.before = files;
        Ok(format!("one of {} is created and extended", output::count(self.before.len(), "note")))
    }

    /// Searches in a mode, and expects a note at the first place.
    fn expect_found(&self, query: &str, mode: &str, expected: &str) -> Result<String> {
        let reply = self.run_json(&["search", query, "--mode", mode])?;
        let paths: Vec<&str> = reply
            .get("results")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|result| result.get("path").and_then(Value::as_str))
            .collect();
        match paths.first() {
            Some(first) if *first == expected => Ok(format!("{query:?} finds {expected}")),
            Some(first) => Err(Error::internal(format!("{query:?} finds {first} before {expected}"))),
            None => Err(Error::internal(format!("{query:?} finds nothing instead of {expected}"))),
        }
    }

    fn search_by_words(&mut self) -> Result<String> {
        self.expect_found("sextant", "bm25", "Sextant.md")
    }

    fn search_by_meaning(&mut self) -> Result<String> {
        self.run(&["index"])?;
        self.expect_found("maintaining a wooden boat", "vector", "Spring.md")
    }

    fn rename(&mut self) -> Result<String> {
        self.run(&["rename", "Harbour", "Marina"])?;
        for (path, bytes) in &self.before {
            let text = String::from_utf8_lossy(bytes);
            let text = text.replace("[[Harbour", "[[Marina").replace("(Harbour.md", "(Marina.md");
            self.after.insert(path.replace("Harbour", "Marina"), text.into_bytes());
        }
        self.expect_files(&self.after)?;
        let linking = self.before.values().filter(|bytes| bytes.windows(2).any(|pair| pair == b"[["));
        Ok(format!(
            "the links of {} follow, all other bytes are the same",
            output::count(linking.count(), "note")
        ))
    }

    fn undo(&mut self) -> Result<String> {
        self.run(&["undo"])?;
        self.expect_files(&self.before)?;
        Ok("every byte is as before".to_owned())
    }

    fn recover(&mut self) -> Result<String> {
        let (mut kills, mut undone, mut completed) = (0, 0, 0);
        for step in KILL_STEPS {
            let mut command = self.command(&["rename", "Harbour", "Marina"]);
            command.env(FAILPOINT, step.to_string());
            let killed = self.finish(&mut command)?;
            if !killed.status.success() {
                kills += 1;
            }
            // Any command recovers.
            self.run(&["list"])?;
            let files = self.files()?;
            if files == self.before {
                undone += 1;
                continue;
            }
            if files != self.after {
                let files = differing(&files, &self.before).join(", ");
                return Err(Error::internal(format!(
                    "a kill at step {step} left a part of a rename: {files}"
                )));
            }
            completed += 1;
            self.run(&["undo"])?;
            self.expect_files(&self.before)?;
        }
        if kills == 0 {
            return Err(Error::internal(format!("no rename was killed, although {FAILPOINT} was set")));
        }
        Ok(format!(
            "{}; the next command took {undone} back and completed {completed}",
            output::count(kills, "kill")
        ))
    }

    fn watch(&mut self) -> Result<String> {
        let (mut watching, lines) = Running::start_with_lines(&mut self.command(&["watch", "--json"]))?;
        let file = self.vault.join("Minutes.md");
        let mut limit = FIRST_EDIT_LIMIT.max(self.time.limit / 120);
        for edit in 1..=EDITS {
            append(&file, "A quagga was seen at the gate.\n")?;
            let end = self.time.end_within(limit);
            limit *= 2;
            while let Some(line) = next_line(&lines, end)? {
                let batch: Value = serde_json::from_str(&line)
                    .map_err(|error| Error::internal(format!("watch prints {line}")).with_source(error))?;
                let paths = batch.get("paths").and_then(Value::as_array);
                if paths.is_some_and(|paths| paths.iter().any(|path| path == "Minutes.md")) {
                    let found = self.expect_found("quagga", "bm25", "Minutes.md")?;
                    watching.stop()?;
                    return Ok(format!("the watch reports edit {edit}, and {found}"));
                }
            }
        }
        Err(Error::internal(format!("the watch reports none of {EDITS} edits of Minutes.md")))
    }

    fn serve(&mut self) -> Result<String> {
        let mut command = self.command(&["mcp"]);
        command.stdin(Stdio::piped());
        let (mut server, lines) = Running::start_with_lines(&mut command)?;
        let input = server.take_input().ok_or_else(|| Error::internal("the server has no input"))?;
        let mut client = McpClient { input, lines, time: self.time, id: 0 };
        let client_info = json!({ "name": "sidenote self-check", "version": env!("CARGO_PKG_VERSION") });
        let hello = json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client_info });
        let hello = client.call("initialize", &hello)?;
        let version = hello.pointer("/serverInfo/version").and_then(Value::as_str);
        if version != Some(env!("CARGO_PKG_VERSION")) {
            return Err(Error::internal(format!("the server says that it has version {version:?}")));
        }
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        let tools = client.call("tools/list", &json!({}))?;
        let tools: Vec<&str> = tools
            .get("tools")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|tool| tool.get("name").and_then(Value::as_str))
            .collect();
        if !tools.contains(&"search_notes") {
            return Err(Error::internal(format!("the server lists no tool search_notes, but {tools:?}")));
        }
        let search = json!({ "name": "search_notes", "arguments": { "query": "sextant" } });
        let answer = client.call("tools/call", &search)?;
        let text = answer.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
        if !text.contains("Sextant.md") {
            return Err(Error::internal(format!(
                "search_notes does not find Sextant.md, but answers {text:?}"
            )));
        }
        // The server ends when its input is closed.
        drop(client.input);
        let status = server.wait(self.time.next_end())?;
        if !status.success() {
            return Err(Error::internal(format!("the server ended with {status}")));
        }
        Ok(format!("{}, search_notes finds Sextant.md", output::count(tools.len(), "tool")))
    }

    fn check(&mut self) -> Result<String> {
        let reply = self.run_json(&["check"])?;
        let problems = reply.get("problems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let broken: Vec<String> = problems
            .iter()
            .filter(|problem| problem.get("severity").is_some_and(|severity| severity == "error"))
            .map(Value::to_string)
            .collect();
        if broken.is_empty() {
            Ok("no link is broken".to_owned())
        } else {
            Err(Error::internal(format!("`check` reports {}", broken.join(", "))))
        }
    }

    /// Compares the files of the vault with the expected ones, byte for byte.
    fn expect_files(&self, expected: &Files) -> Result<()> {
        let differing = differing(&self.files()?, expected);
        if differing.is_empty() {
            Ok(())
        } else {
            Err(Error::internal(format!("other bytes than expected in {}", differing.join(", "))))
        }
    }

    fn files(&self) -> Result<Files> {
        let mut files = Files::new();
        let mut folders = vec![self.vault.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).map_err(|error| Error::io("list", &folder, error))? {
                let entry = entry.map_err(|error| Error::io("list", &folder, error))?;
                let path = entry.path();
                if entry.file_name().to_string_lossy().starts_with('.') {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = std::fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
                    let inner = path.strip_prefix(&self.vault).ok().and_then(platform::slash_path);
                    files.insert(inner.unwrap_or_else(|| path.display().to_string()), bytes);
                }
            }
        }
        Ok(files)
    }

    /// Returns a command of this program on the vault, without settings of the user.
    fn command(&self, args: &[&str]) -> Command {
        let home = self.folder.join("home");
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            let shown = name.to_string_lossy();
            if shown.starts_with("SIDENOTE_") && !HANDED_ON.iter().any(|kept| *kept == shown) {
                command.env_remove(&name);
            }
        }
        for name in HOME_VARIABLES {
            command.env(name, &home);
        }
        // The model in the program needs no network.
        command.env("SIDENOTE_EMBED_PROVIDER", "e5");
        command.current_dir(&self.vault).arg("--vault").arg(&self.vault).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command that has to succeed, and returns what it prints.
    fn run(&self, args: &[&str]) -> Result<String> {
        let done = self.finish(&mut self.command(args))?;
        if done.status.success() {
            return Ok(done.stdout);
        }
        let verb = args.first().copied().unwrap_or_default();
        let said = done.stderr.trim().replace('\n', "; ");
        Err(Error::internal(format!("`sidenote {verb}` ended with {}: {said}", done.status)))
    }

    fn run_json(&self, args: &[&str]) -> Result<Value> {
        let printed = self.run(&[args, &["--json"]].concat())?;
        let verb = args.first().copied().unwrap_or_default();
        serde_json::from_str(&printed)
            .map_err(|error| Error::internal(format!("`sidenote {verb}` prints no JSON")).with_source(error))
    }

    fn finish(&self, command: &mut Command) -> Result<Finished> {
        Running::start(command)?.finish(self.time.next_end())
    }

    /// Removes the temporary folder, unless it is kept. Returns the folder if it is still there.
    #[expect(clippy::disallowed_methods, reason = "a temporary folder of its own")]
    fn end(self, is_kept: bool, out: Output) -> Option<PathBuf> {
        if is_kept {
            return Some(self.folder);
        }
        match std::fs::remove_dir_all(&self.folder) {
            Ok(()) => None,
            Err(error) => {
                out.message(&format!("warning: {}", Error::io("remove", &self.folder, error)));
                Some(self.folder)
            }
        }
    }
}

/// Lists the paths at which two sets of files differ.
fn differing(found: &Files, expected: &Files) -> Vec<String> {
    let paths = found.keys().chain(expected.keys().filter(|path| !found.contains_key(*path)));
    paths.filter(|path| found.get(*path) != expected.get(*path)).cloned().collect()
}

/// Appends a line to a file, as another program would.
#[expect(clippy::disallowed_methods, reason = "a note of a temporary vault, as another program writes it")]
fn append(file: &Path, line: &str) -> Result<()> {
    let opened = std::fs::OpenOptions::new().append(true).open(file);
    opened
        .and_then(|mut opened| opened.write_all(line.as_bytes()))
        .map_err(|error| Error::io("write", file, error))
}

/// A client of the server, which sends one request at a time.
struct McpClient {
    input: ChildStdin,
    lines: Receiver<String>,
    time: TimeLeft,
    id: u64,
}

impl McpClient {
    fn send(&mut self, message: &Value) -> Result<()> {
        let written = writeln!(self.input, "{message}").and_then(|()| self.input.flush());
        written.map_err(|error| Error::io("write to", "the MCP server", error))
    }

    /// Sends a request, and waits for its result.
    fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }))?;
        let end = self.time.next_end();
        while let Some(line) = next_line(&self.lines, end)? {
            let mut message: Value = serde_json::from_str(&line)
                .map_err(|error| Error::internal(format!("the server prints {line}")).with_source(error))?;
            if message.get("id").and_then(Value::as_u64) != Some(self.id) {
                continue;
            }
            let is_error = message.pointer("/result/isError") == Some(&Value::Bool(true));
            return match message.get_mut("result").map(Value::take) {
                Some(result) if !is_error => Ok(result),
                _ => Err(Error::internal(format!("the server answers {method} with {line}"))),
            };
        }
        Err(too_slow())
    }
}
