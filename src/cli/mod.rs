//! The command line: the command tree and its dispatch. It parses arguments and prints replies; every answer comes from
//! `Store`.

mod args;
mod backup;
mod change;
mod check;
mod clients;
mod complete;
mod config;
mod eval;
mod handoff;
mod hook;
mod index;
mod links;
mod list;
mod man;
mod mcp;
mod memory;
mod model;
mod open;
mod output;
mod read;
mod related;
mod search;
mod status;
mod tasks;
mod watch;
mod format;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::clock::{Clock, Timestamp};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Open, Store};
use output::Output;

/// Search and follow a folder of Markdown notes, beside Obsidian and for AI agents.
///
/// The notes are the truth and stay untouched; the index in .sidenote/ can be deleted at any time.
#[derive(Debug, Parser)]
#[command(name = "sidenote", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  sidenote search \"how do links survive a rename\"
  sidenote --vault ~/notes index
  sidenote read \"Start here\" --section Search
  sidenote links Projects/Plan.md --json

Exit codes: 0 done, 1 internal error, 2 wrong usage or invalid input,
3 not found, 4 exists or ambiguous, 5 conflict or locked, 6 input/output,
7 damaged index, 8 check --strict found problems, 130 interrupted.";

/// Every exit code: the number, its name in `--help`, and when a command ends with it.
pub const EXIT_CODES: [(u8, &str, &str); 10] = [
    (0, "done", "The command did what was asked."),
    (1, "internal error", "The program has a defect. The message says which step failed."),
    (
        2,
        "wrong usage or invalid input",
        "A flag, an argument, a query, a setting or a file given is not valid.",
    ),
    (3, "not found", "No note, heading, operation or file answers to the name."),
    (4, "exists or ambiguous", "The name is taken, or several notes answer to it."),
    (5, "conflict or locked", "A file changed meanwhile, or another process holds the lock."),
    (6, "input/output", "A file or the network could not be read or written."),
    (7, "damaged index", "The index cannot be read. `sidenote index --rebuild` makes it anew."),
    (8, "check --strict found problems", "`check --strict` found a problem of the severity asked for."),
    (130, "interrupted", "Ctrl-C ended the command before all was done."),
];

#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
struct Global {
    /// The vault: a folder with Markdown in it. Default: the nearest folder upwards with .sidenote/ or .obsidian/, else
    /// the current one.
    #[arg(long, global = true, env = "SIDENOTE_VAULT", value_name = "FOLDER")]
    vault: Option<PathBuf>,
    /// Where the index lies. Default: .sidenote/index in the vault.
    #[arg(long, global = true, env = "SIDENOTE_INDEX", value_name = "FOLDER")]
    index: Option<PathBuf>,
    /// The session that changes are made in: the journal tells it, and eviction spares its notes.
    #[arg(long, global = true, env = "SIDENOTE_SESSION", value_name = "NAME")]
    session: Option<String>,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    /// When colours are used.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    color: terminal::Color,
    /// Print what is longer than the screen without a pager. $SIDENOTE_PAGER or $PAGER names the pager; else it is less.
    #[arg(long, global = true)]
    no_pager: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Index(index::IndexArgs),
    Search(search::SearchArgs),
    Read(read::ReadArgs),
    List(list::ListArgs),
    Tags(list::TagsArgs),
    Properties(list::PropertiesArgs),
    Recent(list::RecentArgs),
    Random(list::RandomArgs),
    Outline(read::OutlineArgs),
    Tasks(tasks::TasksArgs),
    Links(links::LinksArgs),
    Backlinks(links::BacklinksArgs),
    Unresolved(links::UnresolvedArgs),
    Orphans(links::OrphansArgs),
    Path(links::PathArgs),
    Open(open::OpenArgs),
    Related(related::RelatedArgs),
    Mentions(related::MentionsArgs),
    AskWhy(related::WhyArgs),
    Inspect(read::InspectArgs),
    /// Show the state of the vault and its index.
    Status,
    Check(check::CheckArgs),
    #[command(flatten)]
    Change(change::ChangeCommand),
    Memory(memory::MemoryArgs),
    Handoff(handoff::HandoffArgs),
    Backup(backup::BackupArgs),
    Backups(backup::BackupsArgs),
    RestoreBackup(backup::RestoreBackupArgs),
    #[command(hide = true)]
    Maintain(memory::maintain::MaintainArgs),
    #[command(hide = true)]
    Cleanup(memory::cleanup::CleanupArgs),
    #[command(hide = true)]
    Export(memory::export::ExportArgs),
    #[command(hide = true)]
    Import(memory::import::ImportArgs),
    Hook(hook::HookArgs),
    Eval(eval::EvalArgs),
    Model(model::ModelArgs),
    Config(config::ConfigArgs),
    Completions(config::CompletionsArgs),
    Man(man::ManArgs),
    Watch(watch::WatchArgs),
    Mcp(mcp::McpArgs),
    /// Print the whole index, one line for each fact, to compare two indexes.
    #[command(hide = true)]
    Dump,
}

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It did what was asked.
    Done,
    /// `check --strict` found problems.
    ProblemsFound,
    /// Ctrl-C ended it before all was done.
    Interrupted,
}

impl Outcome {
    fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::ProblemsFound => 8,
            // As a shell reports a process that SIGINT ended.
            Self::Interrupted => 130,
        }
    }
}

/// What every command gets.
struct CommandContext {
    open: Open,
    out: Output,
}

impl CommandContext {
    /// Gives the time of this command.
    fn now(&self) -> Timestamp {
        self.open.clock.now()
    }

    /// Opens the store and prints what opening mended.
    fn store(&self) -> Result<Store> {
        let store = Store::open(self.open.clone())?;
        for notice in store.notices() {
            self.out.message(&format!("notice: {notice}"));
        }
        // Errors in JSON stand alone on standard error.
        if let Some(folder) = store.made_state().filter(|_| !self.out.is_json()) {
            self.out.message(&format!(
                "notice: made {}; the index in it can be deleted at any time",
                folder.display()
            ));
        }
        Ok(store)
    }

    /// Tells which conditions no note meets, where nothing was found.
    fn print_unmet_conditions(&self, told: &[String]) {
        if !self.out.is_json() {
            told.iter().for_each(|told| self.out.message(&format!("note: {}", output::plain(told))));
        }
    }

    /// Opens the store and brings the index up to date, as far as this process may.
    fn fresh_store(&self) -> Result<Store> {
        let store = self.store()?;
        let behind = store.index().refresh()?;
        if behind > 0 {
            let why = if store.lookup().is_index_written_elsewhere() {
                "another sidenote writes the index"
            } else {
                "the index cannot be written now"
            };
            self.out.message(&format!("notice: {why}; {behind} files are not in it yet"));
        }
        Ok(store)
    }
}

/// Runs the program on the process's own arguments.
pub fn main() -> ExitCode {
    if complete::answer() {
        return ExitCode::SUCCESS;
    }
    start_tracing();
    let arguments = change::tag::expand_removed_tags(std::env::args_os());
    let wants_json = arguments.iter().any(|argument| argument == "--json");
    let parsed = tree().try_get_matches_from(arguments).and_then(|matches| {
        let verb = verb_of(&matches);
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut tree()))?;
        Ok((cli, verb))
    });
    let (cli, verb) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if wants_json && error.use_stderr() => {
            Output::new(true).print_error(&Error::invalid(error.to_string().trim_end().to_owned()));
            return ExitCode::from(exit_code(ErrorKind::Invalid));
        }
        Err(error) => error.exit(),
    };
    cli.global.color.apply();
    let out = Output::new(cli.global.json).with_pager(!cli.global.no_pager);
    match run(cli, verb, out) {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        Err(error) => {
            out.print_error(&error);
            ExitCode::from(exit_code(error.kind()))
        }
    }
}

/// Gives the exit code of a command that failed.
pub fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Internal => 1,
        ErrorKind::Invalid => 2,
        ErrorKind::NotFound => 3,
        ErrorKind::Exists => 4,
        ErrorKind::Conflict => 5,
        ErrorKind::Io => 6,
        ErrorKind::Corrupt => 7,
    }
}

/// Sends logs to stderr, warnings and worse unless `SIDENOTE_LOG` says otherwise.
fn start_tracing() {
    use tracing_subscriber::EnvFilter;
    // Libraries of protocols log whole requests, queries among them, so they have to be asked by name.
    let asked = std::env::var("SIDENOTE_LOG").unwrap_or_default();
    let mut quiet = asked.clone();
    for library in ["rmcp", "ureq"].iter().filter(|library| !asked.contains(**library)) {
        quiet.push_str(&format!(",{library}=warn"));
    }
    let filter = if asked.is_empty() { "sidenote=warn".to_owned() } else { quiet };
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("sidenote=warn"));
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(console::colors_enabled_stderr())
        .without_time()
        .with_target(false)
        .try_init();
    debug_assert!(started.is_ok(), "tracing starts once");
}

/// Names the command and what stands below it, such as `memory save`, without anything that was given to it.
fn verb_of(matches: &ArgMatches) -> String {
    let mut names = Vec::new();
    let mut inner = matches.subcommand();
    while let Some((name, below)) = inner {
        names.push(name);
        inner = below.subcommand();
    }
    names.join(" ")
}

fn run(cli: Cli, verb: String, out: Output) -> Result<Outcome> {
    let open = Open {
        vault: cli.global.vault,
        index: cli.global.index,
        session: cli.global.session,
        verb,
        clock: Clock::from_env()?,
        ..Open::default()
    };
    let mut context = CommandContext { open, out };
    let done = match cli.command {
        Command::Index(args) => return index::run(&mut context, &args),
        Command::Search(args) => search::run(&context, &args),
        Command::Read(args) => read::run(&context, &args),
        Command::List(args) => list::run(&context, &args),
        Command::Tags(args) => list::tags(&context, &args),
        Command::Properties(args) => list::properties(&context, &args),
        Command::Recent(args) => list::recent(&context, &args),
        Command::Random(args) => list::random(&context, &args),
        Command::Outline(args) => read::outline(&context, &args),
        Command::Tasks(args) => tasks::run(&context, &args),
        Command::Links(args) => links::run(&context, &args),
        Command::Backlinks(args) => links::backlinks(&context, &args),
        Command::Unresolved(args) => links::unresolved(&context, &args),
        Command::Orphans(args) => links::orphans(&context, &args),
        Command::Path(args) => links::path(&context, &args),
        Command::Open(args) => open::run(&context, &args),
        Command::Related(args) => related::related(&context, &args),
        Command::Mentions(args) => related::mentions(&context, &args),
        Command::AskWhy(args) => related::why(&context, &args),
        Command::Inspect(args) => read::inspect(&context, &args),
        Command::Status => status::run(&context),
        Command::Check(args) => return check::run(&context, &args),
        Command::Change(command) => change::run(&context, command),
        Command::Hook(args) => {
            hook::run(&context, &args);
            Ok(())
        }
        Command::Memory(args) => memory::run(&context, args),
        Command::Handoff(args) => handoff::run(&context, args),
        Command::Backup(args) => backup::run(&context, &args),
        Command::Backups(args) => backup::list(&context, &args),
        Command::RestoreBackup(args) => backup::restore(&context, &args),
        Command::Maintain(args) => memory::maintain::run(&context, &args),
        Command::Cleanup(args) => memory::cleanup::run(&context, &args),
        Command::Export(args) => memory::export::run(&context, &args),
        Command::Import(args) => memory::import::run(&context, &args),
        Command::Eval(args) => eval::run(&mut context, &args),
        Command::Model(args) => model::run(&context, &args),
        Command::Config(args) => config::run(&context, &args),
        Command::Completions(args) => config::completions(&context, &args),
        Command::Man(args) => man::run(&context, &args),
        Command::Watch(args) => watch::run(&mut context, &args),
        Command::Mcp(args) => mcp::run(&mut context, &args),
        Command::Dump => status::dump(&context),
    };
    done.map(|()| Outcome::Done)
}

/// Gives the command tree, from which the parser, completions, manual pages and the reference are made.
pub fn tree() -> clap::Command {
    Cli::command()
}

/// Reads a flag's value into an error of the right kind.
fn split_lines(text: &str) -> Result<(usize, usize)> {
    let wrong = || {
        Error::invalid(format!("--lines {text:?} is no range of lines"))
            .with_hint("write 10-20, or 7 for one line")
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |part: &str| part.trim().parse::<usize>().map_err(|_| wrong());
    Ok((number(first)?, number(last)?))
}
