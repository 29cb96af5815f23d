//! The command line: the command tree and its dispatch. It parses arguments and prints replies; every answer comes from
//! `Store`.

mod args;
mod ask_why;
mod backup;
mod change;
mod check;
mod child;
mod client_check;
mod clients;
mod completions;
mod config;
mod conflicts;
mod diff;
mod doctor;
mod eval;
mod format;
mod git;
mod groups;
mod handoff;
mod hook;
mod hook_config;
mod hook_input;
mod index;
mod inspect;
mod interrupt;
mod links;
mod list;
mod login;
mod man;
mod mcp;
mod memory;
#[cfg(feature = "compat")]
mod memory_tool;
mod mentions;
mod merge_driver;
mod model;
mod open;
mod outline;
mod output;
mod progress;
mod properties;
mod proposals;
mod random;
mod reach_check;
mod read;
mod read_attachment;
mod recent;
mod related;
mod search;
mod self_check;
mod settings_json;
mod status;
#[cfg(feature = "team")]
mod sync;
mod tags;
mod tasks;
#[cfg(feature = "team")]
mod team;
mod terminal;
mod toolsets;
mod vault_paths;
mod watch;
mod web_clients;
#[cfg(feature = "web")]
mod web;

use std::cell::Cell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use output::{LogOutput, Output};
use sidenote_base::clock::{Clock, Timestamp};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::{clock, platform};
use sidenote_vault::location::{Location, LocationReason};
pub use toolsets::toolset_names;

use crate::cli::args::{AtArgs, path_from_home};
use crate::cli::change::ChangeCommand;
use crate::store::{Open, Store};

/// Search, link and edit a folder of Markdown notes, alongside Obsidian and for AI agents.
///
/// Everything is stored in the notes. The index in .sidenote/index is derived from them and can be deleted at any time.
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
7 damaged index, 8 problems found, 9 over a quota, 130 interrupted.";

/// Every exit code: the number, its name in `--help`, and when a command ends with it.
pub const EXIT_CODES: [(u8, &str, &str); 11] = [
    (0, "done", "The command succeeded."),
    (
        1,
        "internal error",
        "There is a bug in sidenote. The message says which step failed. `merge-driver` ends with it where there are conflicts, as git expects.",
    ),
    (2, "wrong usage or invalid input", "A flag, argument, query, setting or input file is invalid."),
    (3, "not found", "No note, heading, operation or file has this name."),
    (4, "exists or ambiguous", "The name is taken, or several notes have it."),
    (5, "conflict or locked", "A file was changed at the same time, or another process holds the lock."),
    (6, "input/output", "A file or the network could not be read or written."),
    (7, "damaged index", "The index cannot be read. `sidenote index --rebuild` rebuilds it."),
    (
        8,
        "problems found",
        "`check --strict` found a problem of the given severity or above, `doctor` found a problem, a step of `self-check` failed, or `sync` left a file out.",
    ),
    (
        9,
        "over a quota",
        "A change would exceed a quota of a vault of a team: its size, its notes, or the changes of a person in a minute.",
    ),
    (130, "interrupted", "Ctrl-C stopped the command before it was done."),
];

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// The vault: a folder of Markdown files. Default: the current folder or the nearest one above it with .sidenote/ or
    /// .obsidian/.
    ///
    /// `mcp` takes several, each as NAME=FOLDER.
    #[arg(long, global = true, env = "SIDENOTE_VAULT", value_name = "FOLDER", value_parser = path_from_home())]
    vault: Vec<PathBuf>,
    /// The folder of the index. Default: .sidenote/index in the vault.
    #[arg(long, global = true, hide_short_help = true, env = "SIDENOTE_INDEX", value_name = "FOLDER", value_parser = path_from_home())]
    index: Option<PathBuf>,
    /// The name of the session, in place of that in `SIDENOTE_SESSION`. The journal records it with each change, and eviction
    /// spares notes of the session.
    // The variable is read apart: as a part of this option, it would also choose what `undo` and `history` are about.
    #[arg(long, global = true, hide_short_help = true, value_name = "NAME")]
    session: Option<String>,
    /// Print the reply as JSON.
    #[arg(long, global = true)]
    json: bool,
    /// Count days and show times in UTC, in place of the local time zone.
    #[arg(long, global = true)]
    utc: bool,
    /// When to use colours.
    #[arg(long, global = true, hide_short_help = true, value_enum, value_name = "WHEN", default_value_t)]
    color: terminal::Color,
    /// Do not use a pager for output longer than the screen. The pager is $SIDENOTE_PAGER, $PAGER or less.
    #[arg(long, global = true, hide_short_help = true)]
    no_pager: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Index(index::IndexArgs),
    #[command(aliases = ["find", "grep"])]
    Search(search::SearchArgs),
    #[command(aliases = ["show", "cat"])]
    Read(read::ReadArgs),
    #[command(alias = "ls")]
    List(list::ListArgs),
    Tags(tags::TagsArgs),
    Properties(properties::PropertiesArgs),
    Recent(recent::RecentArgs),
    Random(random::RandomArgs),
    Outline(outline::OutlineArgs),
    #[command(aliases = ["todo", "todos"])]
    Tasks(tasks::TasksArgs),
    Links(links::LinksArgs),
    Backlinks(links::BacklinksArgs),
    Unresolved(links::UnresolvedArgs),
    Orphans(links::OrphansArgs),
    Path(links::PathArgs),
    Open(open::OpenArgs),
    Related(related::RelatedArgs),
    Mentions(mentions::MentionsArgs),
    AskWhy(ask_why::WhyArgs),
    Inspect(inspect::InspectArgs),
    /// Show the state of the vault and its index.
    Status,
    Check(check::CheckArgs),
    Conflicts(conflicts::ConflictsArgs),
    Diff(diff::DiffArgs),
    Doctor(doctor::DoctorArgs),
    SelfCheck(self_check::SelfCheckArgs),
    #[command(flatten)]
    Change(change::ChangeCommand),
    Memory(memory::MemoryArgs),
    #[cfg(feature = "compat")]
    MemoryTool(memory_tool::MemoryToolArgs),
    Handoff(handoff::HandoffArgs),
    Proposals(proposals::ProposalsArgs),
    Backup(backup::BackupArgs),
    #[command(hide = true)]
    Backups(backup::BackupsArgs),
    #[command(hide = true)]
    RestoreBackup(backup::RestoreBackupArgs),
    #[command(hide = true)]
    Maintain(memory::maintain::MaintainArgs),
    #[command(hide = true)]
    Cleanup(memory::cleanup::CleanupArgs),
    #[command(hide = true)]
    Export(memory::export::ExportArgs),
    #[command(hide = true)]
    Import(memory::import::ImportArgs),
    Git(git::GitArgs),
    MergeDriver(merge_driver::MergeDriverArgs),
    Hook(hook::HookArgs),
    Eval(eval::EvalArgs),
    Model(model::ModelArgs),
    Config(config::ConfigArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    Watch(watch::WatchArgs),
    #[cfg(feature = "web")]
    Web(web::WebArgs),
    Mcp(Box<mcp::McpArgs>),
    #[cfg(feature = "team")]
    Team(team::TeamArgs),
    #[cfg(feature = "team")]
    Sync(sync::SyncArgs),
    Login(login::LoginArgs),
    /// Print the contents of the index, one fact a line and sorted, to compare two indexes.
    #[command(hide = true)]
    Dump,
}

impl Command {
    /// Says whether the command uses much memory at once, which it gives back when it ends. A server uses little most of the
    /// time: with huge pages it had 66 MB more with 48,000 notes, and was no faster.
    fn fills_huge_pages(&self) -> bool {
        matches!(self, Self::Index(_) | Self::Check(_) | Self::Eval(_))
    }

    /// Says whether the command makes a vault of the current folder, where neither it nor a folder above is one. A command
    /// that only reads does not: it would leave its folder wherever it is tried.
    fn makes_vault(&self) -> bool {
        match self {
            #[cfg(feature = "web")]
            Self::Web(_) => true,
            #[cfg(feature = "compat")]
            Self::MemoryTool(_) => true,
            Self::Index(_)
            | Self::Watch(_)
            | Self::Mcp(_)
            | Self::RestoreBackup(_)
            | Self::Maintain(_)
            | Self::Cleanup(_)
            | Self::Import(_) => true,
            Self::Backup(args) => args.writes(),
            Self::Change(command) => command.writes(),
            Self::Memory(args) => args.writes(),
            Self::Handoff(args) => args.writes(),
            _ => false,
        }
    }

    /// Says whether the command answers calls for a long time.
    fn is_server(&self) -> bool {
        match self {
            Self::Mcp(_) => true,
            #[cfg(feature = "web")]
            Self::Web(_) => true,
            #[cfg(feature = "team")]
            Self::Team(args) => args.is_server(),
            _ => false,
        }
    }
}

/// How a command ended, if it did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It succeeded.
    Done,
    /// `check --strict`, `doctor` or `self-check` found problems, or `sync` left files out.
    ProblemsFound,
    /// Ctrl-C stopped it before it was done.
    Interrupted,
    /// The merge driver ended with this code, of which git knows the meaning.
    MergeDriver(u8),
}

impl Outcome {
    fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::ProblemsFound => 8,
            // The number with which shells report a process that SIGINT ended: 128 + 2.
            Self::Interrupted => 130,
            Self::MergeDriver(code) => code,
        }
    }
}

/// What every command needs: how to open the vault, and where to print.
struct CommandContext {
    open: Open,
    out: Output,
    /// Whether it was said which folder is the vault.
    vault_is_told: Cell<bool>,
}

impl CommandContext {
    /// Returns the time at which this command runs.
    fn now(&self) -> Timestamp {
        self.open.clock.now()
    }

    /// Finds the folder of the vault, and says which it is where it is another one than the current folder.
    fn location(&self) -> Result<Location> {
        let location = Location::find(self.open.vault.as_deref())?;
        // With --json, standard error holds only an error in JSON.
        let is_elsewhere = location.reason == LocationReason::Above && !self.out.is_json();
        if is_elsewhere && !self.vault_is_told.replace(true) {
            self.out.message(&format!("notice: the vault is {}", location.root.display()));
        }
        Ok(location)
    }

    /// Asks on a terminal whether the current folder becomes a vault, if it is none.
    fn may_make_vault(&self, open: &Open) -> Result<bool> {
        let is_asked = !open.makes_vault && open.index.is_none() && open.at.is_none() && !self.out.is_json();
        let location = self.location()?;
        if !is_asked || location.reason != LocationReason::Unmarked || !terminal::can_ask() {
            return Ok(open.makes_vault);
        }
        let root = location.root.display();
        terminal::ask(&format!("{root} is no vault yet. Make it one, with a folder .sidenote? [y/N] "))
    }

    /// Opens the store and prints its notices, such as a repair of the index.
    fn store(&self) -> Result<Store> {
        self.store_at(&AtArgs { at: None })
    }

    /// Opens the store as [`CommandContext::store`] does, or one of the notes of a git revision.
    fn store_at(&self, at: &AtArgs) -> Result<Store> {
        self.open_store(Open { at: at.at.clone(), ..self.open.clone() })
    }

    /// Opens the store with these options, prints its notices, and makes the first index, with its progress. A server does
    /// that in the background, and `index` itself.
    fn open_store(&self, open: Open) -> Result<Store> {
        let (is_server, is_index) = (open.fill, open.merge_loads);
        let store = Store::open(Open { makes_vault: self.may_make_vault(&open)?, ..open })?;
        for notice in store.notices() {
            self.out.message(&format!("notice: {notice}"));
        }
        // With --json, standard error holds only an error in JSON.
        if let Some(folder) = store.created_state_dir().filter(|_| !self.out.is_json()) {
            self.out.message(&format!(
                "notice: created {}; the index in it can be deleted at any time",
                folder.display()
            ));
        }
        if !is_server && !is_index && store.index().is_new()? {
            let bar = progress::PhaseBar::new();
            let synced = store.index().sync(bar.progress());
            bar.finish();
            for warning in synced?.warnings {
                self.out.message(&format!("warning: {warning}"));
            }
        }
        Ok(store)
    }

    /// Prints which conditions no note meets, after a command that found nothing.
    fn print_unmet_conditions(&self, messages: &[String]) {
        if !self.out.is_json() {
            messages.iter().for_each(|text| self.out.message(&format!("note: {}", output::plain(text))));
        }
    }

    /// Opens the store and updates the index, unless another process writes it.
    fn fresh_store(&self) -> Result<Store> {
        self.fresh_store_at(&AtArgs { at: None })
    }

    /// Opens the store as [`CommandContext::fresh_store`] does, or one of the notes of a git revision.
    fn fresh_store_at(&self, at: &AtArgs) -> Result<Store> {
        let store = self.store_at(at)?;
        let behind = store.index().refresh()?;
        if behind > 0 {
            let reason = if store.lookup().is_index_written_elsewhere() {
                "another sidenote process writes the index"
            } else {
                "the index cannot be written"
            };
            let files = output::count(behind, "changed file");
            self.out.message(&format!("notice: {reason}; it does not include {files} yet"));
        }
        Ok(store)
    }
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    // Before the first large piece of memory is used, as most commands end soon.
    platform::allow_huge_pages(false);
    if completions::complete() {
        return ExitCode::SUCCESS;
    }
    if let Some(end) = read_attachment::serve_as_child() {
        return end;
    }
    start_tracing();
    let arguments = change::tag::expand_removed_tags(std::env::args_os());
    let wants_json = arguments.iter().any(|argument| argument == "--json");
    let is_merge_driver = arguments.get(1).is_some_and(|command| command == "merge-driver")
        && arguments.get(2).is_none_or(|argument| argument != "--help" && argument != "-h");
    let parsed = tree().try_get_matches_from(arguments).and_then(|matches| {
        let call = CommandCall { verb: command_name(&matches), is_dry_run: is_dry_run(&matches) };
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut tree()))?;
        Ok((cli, call))
    });
    let (cli, call) = match parsed {
        Ok(parsed) => parsed,
        // Git would take the exit code of a usage error for a conflict, and that of the help for a merge.
        Err(error) if is_merge_driver => {
            drop(error.print());
            return ExitCode::from(merge_driver::DRIVER_FAILED);
        }
        Err(error) if wants_json && error.use_stderr() => {
            Output::new(true).print_error(&Error::invalid(error.to_string().trim_end().to_owned()));
            return ExitCode::from(exit_code(ErrorKind::Invalid));
        }
        Err(error) => error.exit(),
    };
    cli.global.color.apply();
    if cli.global.utc {
        clock::use_utc();
    }
    let prints_json = cli.global.json || matches!(&cli.command, Command::Check(args) if args.prints_json());
    let out = Output::new(prints_json).with_pager(!cli.global.no_pager);
    let has_changed = Arc::new(AtomicBool::new(false));
    let outcome = run(cli, call, out, Arc::clone(&has_changed));
    platform::keep_free_memory();
    match outcome {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        // Who takes this for a failure makes the change twice.
        Err(error) if has_changed.load(Ordering::Relaxed) && output::is_unwritable(&error) => {
            out.message(&format!("notice: the change is made, and its report is lost: {error}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            out.print_error(&error);
            ExitCode::from(exit_code(error.kind()))
        }
    }
}

/// Returns how every command opens a vault: with the time of the environment, and with this program as the reader of
/// attachments.
fn open_by_this_program() -> Result<Open> {
    Ok(Open { reader: std::env::current_exe().ok(), clock: Clock::from_env()?, ..Open::default() })
}

/// Returns the exit code for a kind of error.
pub fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Internal => 1,
        ErrorKind::Invalid => 2,
        ErrorKind::NotFound => 3,
        ErrorKind::Exists => 4,
        ErrorKind::Conflict => 5,
        ErrorKind::Io => 6,
        ErrorKind::Corrupt => 7,
        ErrorKind::Quota => 9,
    }
}

/// Sends logs to stderr, warnings and worse unless `SIDENOTE_LOG` says otherwise.
fn start_tracing() {
    use tracing_subscriber::EnvFilter;
    // Protocol libraries log whole requests, which contain queries, so they are silent unless SIDENOTE_LOG names them.
    let directives = std::env::var("SIDENOTE_LOG").unwrap_or_default();
    let mut filter = directives.clone();
    for library in ["rmcp", "ureq"].iter().filter(|library| !directives.contains(**library)) {
        filter.push_str(&format!(",{library}=warn"));
    }
    let filter = if directives.is_empty() { "sidenote=warn".to_owned() } else { filter };
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("sidenote=warn"));
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| LogOutput)
        .with_ansi(console::colors_enabled_stderr())
        .without_time()
        .with_target(false)
        .try_init();
    debug_assert!(started.is_ok(), "tracing starts once");
}

/// The options of a call that concern every command.
struct CommandCall {
    /// The names of the command and its subcommands, such as `memory save`.
    verb: String,
    /// Whether nothing may change.
    is_dry_run: bool,
}

/// Returns whether the command has the flag `--dry-run`, and was given it.
fn is_dry_run(matches: &ArgMatches) -> bool {
    let mut last = matches;
    while let Some((_, inner)) = last.subcommand() {
        last = inner;
    }
    matches!(last.try_get_one::<bool>("dry_run"), Ok(Some(true)))
}

/// Returns the names of the command and its subcommands, such as `memory save`, without arguments.
fn command_name(matches: &ArgMatches) -> String {
    let mut names = Vec::new();
    let mut inner = matches.subcommand();
    while let Some((name, matches)) = inner {
        names.push(name);
        inner = matches.subcommand();
    }
    names.join(" ")
}

fn run(cli: Cli, call: CommandCall, out: Output, has_changed: Arc<AtomicBool>) -> Result<Outcome> {
    let vaults = cli.global.vault;
    if vaults.len() > 1 && !matches!(&cli.command, Command::Mcp(_)) {
        return Err(Error::invalid("--vault is given more than once")
            .with_hint("only mcp takes several vaults; run the command once for each"));
    }
    let open = Open {
        vault: vaults.first().cloned(),
        index: cli.global.index,
        session: own_session(&cli.command, cli.global.session),
        verb: call.verb,
        makes_vault: cli.command.makes_vault() && !call.is_dry_run,
        has_changed,
        ..open_by_this_program()?
    };
    platform::allow_huge_pages(cli.command.fills_huge_pages());
    if cli.command.is_server() {
        platform::keep_free_memory_for_a_second();
    }
    let mut context = CommandContext { open, out, vault_is_told: Cell::new(false) };
    let done = match cli.command {
        Command::Index(args) => return index::run(&mut context, &args),
        Command::Search(args) => search::run(&context, &args),
        Command::Read(args) => read::run(&context, &args),
        Command::List(args) => list::run(&context, &args),
        Command::Tags(args) => tags::run(&context, &args),
        Command::Properties(args) => properties::run(&context, &args),
        Command::Recent(args) => recent::run(&context, &args),
        Command::Random(args) => random::run(&context, &args),
        Command::Outline(args) => outline::run(&context, &args),
        Command::Tasks(args) => tasks::run(&context, &args),
        Command::Links(args) => links::run(&context, &args),
        Command::Backlinks(args) => links::backlinks(&context, &args),
        Command::Unresolved(args) => links::unresolved(&context, &args),
        Command::Orphans(args) => links::orphans(&context, &args),
        Command::Path(args) => links::path(&context, &args),
        Command::Open(args) => open::run(&context, &args),
        Command::Related(args) => related::run(&context, &args),
        Command::Mentions(args) => mentions::run(&context, &args),
        Command::AskWhy(args) => ask_why::run(&context, &args),
        Command::Inspect(args) => inspect::run(&context, &args),
        Command::Status => status::run(&context),
        Command::Check(args) => return check::run(&context, &args),
        Command::Conflicts(args) => return conflicts::run(&context, args),
        Command::Git(args) => git::run(&context, args),
        Command::MergeDriver(args) => return Ok(merge_driver::run(&context, args)),
        Command::Diff(args) => diff::run(&context, &args),
        Command::Doctor(args) => return doctor::run(&context, &args),
        Command::SelfCheck(args) => return self_check::run(&context, &args),
        Command::Change(command) => change::run(&context, command),
        Command::Hook(args) => hook::run(&context, &args),
        Command::Memory(args) => memory::run(&context, args),
        #[cfg(feature = "compat")]
        Command::MemoryTool(args) => memory_tool::run(&context, &args),
        Command::Handoff(args) => handoff::run(&context, args),
        Command::Proposals(args) => proposals::run(&context, &args),
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
        Command::Completions(args) => completions::run(&context, &args),
        Command::Man(args) => man::run(&context, &args),
        Command::Watch(args) => watch::run(&mut context, &args),
        #[cfg(feature = "web")]
        Command::Web(args) => web::run(&mut context, &args),
        Command::Mcp(args) => mcp::run(&mut context, &args, &vaults),
        #[cfg(feature = "team")]
        Command::Team(args) => return team::run(&mut context, args),
        #[cfg(feature = "team")]
        Command::Sync(args) => return sync::run(&context, &args),
        Command::Login(args) => return login::run(&context, &args),
        Command::Dump => status::dump(&context),
    };
    done.map(|()| Outcome::Done)
}

/// Returns the session of what a command does: that of the option, or of the variable.
fn own_session(command: &Command, option: Option<String>) -> Option<String> {
    // The option of these commands names the session that they are about.
    let is_about = matches!(command, Command::Change(ChangeCommand::Undo(_) | ChangeCommand::History(_)));
    option.filter(|_| !is_about).or_else(|| std::env::var("SIDENOTE_SESSION").ok())
}

/// Returns the command tree, from which the parser, completions, manual pages and the reference are generated.
pub fn tree() -> clap::Command {
    groups::grouped(Cli::command())
}
