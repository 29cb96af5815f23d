//! `sidenote check`: finds the problems of a vault and prints them for people or for programs.

mod github;
mod junit;
mod sarif;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use serde::Serialize;
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform;
use sidenote_vault::path_in_repository;

use super::args::AtArgs;
use super::progress::Spinner;
use super::{CommandContext, Outcome, output, terminal};
use crate::cli::output::Output;
use crate::cli::vault_paths::{current_folder, vault_paths, vault_root};
use crate::store::{
    Baseline, Certainty, CheckReply, CheckRequest, PROBLEM_CODES, Problem, ProblemCode, RepairRequest,
    Severity, Store,
};

/// Report problems of the vault, such as broken links.
///
/// Problems are broken and ambiguous links, names that differ only in case or accents, duplicate ids and notes, invalid
/// frontmatter, merge conflicts and more; --only lists all kinds. No note is changed without --fix=links, and no index is
/// needed. The exit code is 0 even if problems are found; with --strict it is 8 if a problem of that severity or above is shown.
///
/// The settings check.severity, check.ignore and check.ignore_code change severities and leave out paths. In a note,
/// <!-- sidenote-ignore CODE --> on a line of its own turns a code off for the next block, and
/// <!-- sidenote-ignore-file CODE --> for the whole note.
#[expect(clippy::doc_paragraphs_missing_punctuation, reason = "a part of the help is a table")]
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote check
  sidenote check --only broken-link --only broken-subpath
  sidenote check --strict docs/ README.md
  sidenote check --strict=info --json
  sidenote check --strict --since origin/main --format github
  sidenote check --strict --staged
  sidenote check --fix=links
  sidenote check --format sarif > check.sarif
  sidenote check --write-baseline .sidenote/check-baseline.json
  sidenote check --strict --baseline .sidenote/check-baseline.json
  sidenote check --at HEAD~1 --only broken-link")]
pub(super) struct CheckArgs {
    /// Report only problems of these notes and of the notes in these folders. Links are resolved in the whole vault.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Update the index, instead of reporting that it is out of date. With links: also repair links whose meaning is
    /// certain, as `repair --apply certain` does.
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "index", conflicts_with = "at")]
    fix: Option<FixArg>,
    /// Show only problems with this code; may be repeated.
    #[arg(long, value_name = "CODE", value_parser = code_parser())]
    only: Vec<String>,
    /// Exit with 8 if a problem of this severity or above is found. Without a severity: error.
    #[arg(long, value_enum, value_name = "SEVERITY", num_args = 0..=1, require_equals = true,
          default_missing_value = "error")]
    strict: Option<SeverityArg>,
    /// Report only problems of files that changed since the present branch left this revision of git, and of links into
    /// these files.
    #[arg(long, value_name = "REV", conflicts_with = "at")]
    since: Option<String>,
    /// Check the files that git has staged, as they will be in the next commit, instead of those on the disk.
    #[arg(long, conflicts_with_all = ["fix", "at"])]
    staged: bool,
    /// How to print the problems.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: FormatArg,
    /// Do not report the problems that this file records. --write-baseline writes such a file.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Record all problems of the vault in this file, to report only new ones later, with --baseline.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "only", "since", "baseline", "format"])]
    write_baseline: Option<PathBuf>,
    #[command(flatten)]
    at: AtArgs,
}

/// The values of `--fix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FixArg {
    /// The index.
    Index,
    /// The index, and links whose files moved without sidenote.
    Links,
}

/// The values of `--strict`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SeverityArg {
    /// Something is broken or lost.
    Error,
    /// Something is broken or may be misleading.
    Warning,
    /// Any problem.
    Info,
}

impl From<SeverityArg> for Severity {
    fn from(severity: SeverityArg) -> Self {
        match severity {
            SeverityArg::Error => Self::Error,
            SeverityArg::Warning => Self::Warning,
            SeverityArg::Info => Self::Info,
        }
    }
}

/// The values of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum FormatArg {
    /// A line for each problem, and the counts.
    #[default]
    Human,
    /// The same as --json.
    Json,
    /// SARIF 2.1.0, for code scanning and editors.
    Sarif,
    /// Workflow commands of GitHub Actions, which annotate lines.
    Github,
    /// JUnit XML, for CI systems that show test reports.
    Junit,
}

impl CheckArgs {
    /// Returns whether the problems are printed as JSON.
    pub(super) fn prints_json(&self) -> bool {
        self.format == FormatArg::Json
    }
}

/// Returns a parser that accepts the known codes. `--help` lists them with their meanings.
fn code_parser() -> PossibleValuesParser {
    let value = |known: &ProblemCode| {
        PossibleValue::new(known.code).help(format!("{}: {}", known.severity.name(), known.meaning))
    };
    PossibleValuesParser::new(PROBLEM_CODES.iter().map(value))
}

pub(super) fn run(context: &CommandContext, args: &CheckArgs) -> Result<Outcome> {
    if context.out.is_json() && !matches!(args.format, FormatArg::Human | FormatArg::Json) {
        return Err(Error::invalid("--json cannot be combined with another --format")
            .with_hint("leave out one of them"));
    }
    let root = vault_root(context)?;
    let request = CheckRequest {
        fix: args.fix.is_some(),
        paths: vault_paths(context, &args.paths)?,
        since: args.since.clone(),
        is_staged: args.staged,
        baseline: args.baseline.as_deref().map(read_baseline).transpose()?,
        codes: (!args.only.is_empty()).then(|| args.only.clone()),
    };
    // A check needs no index, and makes none.
    let uses_index =
        args.fix.is_some() || args.at.at.is_some() || !args.staged && Store::has_index(&context.open)?;
    let reply = if uses_index {
        let store = context.store_at(&args.at)?;
        let _spinner = Spinner::start("checking");
        if args.fix == Some(FixArg::Links) {
            repair_links(context.out, &store, request.paths.clone())?;
        }
        store.upkeep().check_with(&request)?
    } else {
        context.location()?;
        let _spinner = Spinner::start("checking");
        Store::check_without_index(&context.open, &request)?
    };
    if let Some(file) = &args.write_baseline {
        return write_baseline(context.out, file, &reply);
    }
    print(context.out, args.format, &root, &reply)?;
    let min_severity = args.strict.map(Severity::from);
    let is_found =
        min_severity.is_some_and(|min| reply.problems.iter().any(|problem| problem.severity >= min));
    Ok(if is_found { Outcome::ProblemsFound } else { Outcome::Done })
}

/// Repairs the links whose meaning is certain, and says so on standard error.
fn repair_links(out: Output, store: &Store, paths: Option<Vec<String>>) -> Result<()> {
    let request = RepairRequest {
        paths: paths.unwrap_or_default(),
        apply: Some(Certainty::Certain),
        ..RepairRequest::default()
    };
    let reply = store.repairs().repair(&request)?;
    if out.is_json() {
        return Ok(());
    }
    let said = reply.change.plan.remarks.iter().map(ToString::to_string);
    let notices = reply.change.notices.iter().map(|notice| format!("notice: {notice}"));
    for line in said.chain(notices) {
        out.message(&output::plain(&line));
    }
    if reply.repaired > 0 {
        let notes = output::count(reply.change.plan.files.len(), "note");
        out.message(&format!("notice: {} in {notes} repaired", output::count(reply.repaired, "link")));
    }
    Ok(())
}

/// The problems of a check, and where the vault is.
struct Report<'a> {
    problems: &'a [Problem],
    /// The path of the vault below the root of the repository, or below the current folder; empty if it is that folder.
    prefix: String,
}

impl Report<'_> {
    /// Returns the path of the file with a problem, from the root of the repository.
    fn path_of(&self, problem: &Problem) -> String {
        match self.prefix.as_str() {
            "" => problem.path.clone(),
            prefix => format!("{prefix}/{}", problem.path),
        }
    }
}

/// Returns problems with the worst first, and otherwise in their order.
fn worst_first(problems: &[Problem]) -> Vec<&Problem> {
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort_by_key(|problem| std::cmp::Reverse(problem.severity));
    sorted
}

fn print(out: Output, format: FormatArg, root: &Path, reply: &CheckReply) -> Result<()> {
    let report = Report { problems: &reply.problems, prefix: prefix_of(root)? };
    match format {
        FormatArg::Human | FormatArg::Json => out.reply(reply, show),
        FormatArg::Github => out.print(&github::format(&report)),
        FormatArg::Junit => out.print(&junit::format(&report)),
        FormatArg::Sarif => {
            if reply.problems.len() > sarif::MAX_RESULTS {
                out.message(&format!(
                    "notice: only the {} worst of {} problems are in the report, the most that GitHub accepts",
                    sarif::MAX_RESULTS,
                    reply.problems.len()
                ));
            }
            out.print(&sarif::format(&report, sarif::MAX_RESULTS)?)
        }
    }
}

/// Returns the path of the vault below the root of its repository. Without a repository, it is the path below the current
/// folder; it is empty if the vault is not below that.
fn prefix_of(root: &Path) -> Result<String> {
    if let Some(inner) = path_in_repository(root) {
        return Ok(inner);
    }
    let here = current_folder()?;
    Ok(root.strip_prefix(&here).ok().and_then(platform::slash_path).unwrap_or_default())
}

fn read_baseline(file: &Path) -> Result<Baseline> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Error::io("read the baseline", file, error).with_hint(format!(
            "record the present problems: sidenote check --write-baseline {}",
            file.display()
        ))
    })?;
    Baseline::parse(&text, file)
}

/// A baseline that was written.
#[derive(Debug, Serialize)]
struct BaselineWritten {
    /// The file.
    file: PathBuf,
    /// The number of problems that it records.
    problems: usize,
}

/// Records the problems of a reply in a file.
fn write_baseline(out: Output, file: &Path, reply: &CheckReply) -> Result<Outcome> {
    use std::io::Write as _;
    let baseline = Baseline::of(&reply.problems);
    let text = baseline.to_json()?;
    let failed = |error| Error::io("write the baseline", file, error);
    let is_other =
        || std::fs::read_to_string(file).map_or(true, |text| Baseline::parse(&text, file).is_err());
    if file.symlink_metadata().is_ok() && is_other() {
        return Err(Error::new(
            ErrorKind::Exists,
            format!("{} is there, and is no baseline", file.display()),
        )
        .with_hint("name a file that is not there, such as check-baseline.json"));
    }
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        #[expect(clippy::disallowed_methods, reason = "the folder of a file that the user names")]
        std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    }
    AtomicFile::new(file).sync().write(failed, |to| to.write_all(text.as_bytes()).map_err(failed))?;
    let written = BaselineWritten { file: file.to_owned(), problems: baseline.count() };
    out.reply(&written, |written| {
        format!("{} recorded in {}\n", output::count(written.problems, "problem"), written.file.display())
    })?;
    Ok(Outcome::Done)
}

fn show(reply: &CheckReply) -> String {
    let mut text = String::new();
    for problem in &reply.problems {
        let place: Cow<'_, str> = match problem.line {
            0 => "".into(),
            line => format!(":{line}:{}", problem.column).into(),
        };
        let (path, message) = (output::plain(&problem.path), output::plain(&problem.message));
        let head = format!("{path}{place}  {}  {}", problem.severity.name(), problem.code);
        text.push_str(&match terminal::width() {
            // A long message begins on a line of its own, where it is wrapped at words.
            Some(width)
                if console::measure_text_width(&head) + 2 + console::measure_text_width(&message) > width =>
            {
                format!("{head}\n{}", terminal::indented("    ", &message))
            }
            _ => format!("{head}  {message}\n"),
        });
        for fix in &problem.fixes {
            text.push_str(&format!("  -> {}\n", output::plain(&fix.description)));
        }
    }
    let counts: Vec<String> = reply.counts.iter().map(|(code, count)| format!("{count} {code}")).collect();
    let summary = if counts.is_empty() { "no problems".to_owned() } else { counts.join(", ") };
    let canvases = match reply.canvases {
        0 => String::new(),
        1 => ", 1 canvas".to_owned(),
        count => format!(", {count} canvases"),
    };
    text.push_str(&format!("{}{canvases}: {summary}\n", output::count(reply.notes, "note")));
    if let Some(baseline) = &reply.baseline {
        text.push_str(&format!("baseline: {} known, {} fixed\n", baseline.known, baseline.fixed));
    }
    text
}
