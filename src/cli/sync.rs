//! `sidenote sync`: keeps a folder equal to a vault of a team, once or all the time.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use sidenote_base::error::{Error, Result};

use super::args::DryRunArgs;
use super::{CommandContext, Outcome, interrupt, output};
use crate::share::address::VaultAddress;
use crate::share::oauth::stored_login::LoginStore;
use crate::share::oauth::token_source::TokenSource;
use crate::share::replica::{FirstSync, POLL_INTERVAL, Phase, Replica, ReplicaOptions, SyncEvent, SyncReply};

/// The most files of one kind that are named to a person.
const MAX_NAMED: usize = 20;

/// Keep a folder equal to a vault of a team.
///
/// Files are fetched and sent byte for byte. Where both sides changed a note, the text of the team stays under its name, and
/// yours becomes `Note (conflict 2026-11-23 14.05 Anna).md` beside it. A note that one side removed and the other one changed
/// stays. Ctrl-C and a crash are safe at any moment: the next run goes on.
///
/// The first time, a folder that has files of its own needs --adopt or --replace; without, only the plan is shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote login https://notes.example/v/handbook
  sidenote sync https://notes.example/v/handbook --vault ~/handbook
  sidenote sync https://notes.example/v/handbook --vault ~/handbook --token-file ~/.config/sidenote/token
  sidenote sync https://notes.example/v/handbook --vault ~/handbook --dry-run
  sidenote sync https://notes.example/v/handbook --vault ~/notes --adopt
  sidenote sync https://notes.example/v/handbook --vault ~/handbook --watch")]
pub(super) struct SyncArgs {
    /// The address of the vault: https://HOST/v/NAME.
    url: String,
    /// Go on until Ctrl-C: the folder is watched, and the service is asked every 2 seconds what changed.
    #[arg(long)]
    watch: bool,
    /// The first time, send the files of the folder to the vault. Where both have a file of one name, both texts are kept.
    #[arg(long, conflicts_with = "replace")]
    adopt: bool,
    /// The first time, replace the files of the folder by those of the vault. `sidenote undo` takes that back.
    #[arg(long)]
    replace: bool,
    /// Carry out a synchronisation that removes more than half of the files of the folder or of the vault. Without it, only the
    /// plan is shown: a folder that is not mounted looks the same. `sidenote undo` in the folder takes it back.
    #[arg(long)]
    remove_many: bool,
    /// The file with the token that the operator of the service gave you, which is read for each request. Only you may be able to
    /// read it. Default: the login
    /// that `sidenote login URL` made.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Your name in the names of conflict copies. Default: the name of your account on this computer, or that of the computer.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn run(context: &CommandContext, args: &SyncArgs) -> Result<Outcome> {
    let root = context.open.vault.clone().ok_or_else(|| {
        Error::invalid("sync needs the folder by name, so that no other one is changed")
            .with_hint("give --vault FOLDER")
    })?;
    if args.watch && args.dry_run.is_set() {
        return Err(Error::invalid("--watch and --dry-run exclude each other"));
    }
    let address = VaultAddress::parse(&args.url)?;
    let token = match &args.token_file {
        Some(file) => TokenSource::File(file.clone()),
        None => TokenSource::of_login(LoginStore::of_user()?, &address, context.open.clock)?,
    };
    let options = ReplicaOptions {
        address,
        root,
        token,
        who: args.name.clone().unwrap_or_else(account_name),
        first: match (args.adopt, args.replace) {
            (true, _) => FirstSync::Adopt,
            (_, true) => FirstSync::Replace,
            _ => FirstSync::Ask,
        },
        may_lose_most: args.remove_many,
        dry_run: args.dry_run.is_set(),
        clock: context.open.clock,
    };
    let stop = interrupt::stop_on_signal()?;
    let mut replica = Replica::open(options)?;
    if args.watch {
        return watch(context, &mut replica, &stop);
    }
    let bar = FileBar::default();
    let reply = replica.synchronise(&stop, &|phase, done, all| bar.show(phase, done, all));
    bar.finish();
    let reply = reply?;
    context.out.reply(&reply, show)?;
    if reply.needs_choice && !args.dry_run.is_set() {
        return Err(choice_needed(&reply));
    }
    Ok(match reply.stopped {
        true => Outcome::Interrupted,
        // A script sees that not all files are equal.
        false if !reply.left_out.is_empty() => Outcome::ProblemsFound,
        false => Outcome::Done,
    })
}

fn choice_needed(reply: &SyncReply) -> Error {
    if reply.loses_most {
        return Error::invalid(format!(
            "{} would be removed here and {} from the vault, more than half of what a side has; nothing was changed",
            output::count(reply.removed_here.len(), "file"),
            reply.removed_there.len()
        ))
        .with_hint(
            "see whether the folder is whole; give --remove-many if the files are to go. Without .sidenote/local/sync.json and with --adopt, nothing is removed",
        );
    }
    Error::invalid(
        "the folder has files that the vault does not have, or has with other contents; nothing was changed",
    )
    .with_hint("give --adopt to send them, or --replace to have the files of the vault in their place")
}

/// Returns the name of the account, or of the computer where the account has none.
fn account_name() -> String {
    let names = ["USER", "USERNAME", "LOGNAME"].iter().filter_map(|name| std::env::var(name).ok());
    let mut names = names.chain([whoami::username(), whoami::hostname()].into_iter().flatten());
    names.find(|name| !name.trim().is_empty()).unwrap_or_default()
}

/// A line of `sync --watch --json`.
#[derive(Debug, Serialize)]
struct WatchLine<'a> {
    /// What happened: `synchronised`, `lost` or `found`.
    event: &'static str,
    /// What a synchronisation did.
    #[serde(flatten)]
    reply: Option<&'a SyncReply>,
    /// Why the service is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn watch(context: &CommandContext, replica: &mut Replica, stop: &Arc<AtomicBool>) -> Result<Outcome> {
    let out = context.out;
    let undecided = RefCell::new(None);
    out.message(&format!(
        "keeping the folder equal to the vault, which is asked every {} s; press Ctrl-C to stop",
        POLL_INTERVAL.as_secs()
    ));
    let bar = FileBar::default();
    let watched = replica.watch(stop, &|phase, done, all| bar.show(phase, done, all), &mut |heard| {
        bar.finish();
        let (line, text) = match heard {
            SyncEvent::Synchronised(reply) => {
                if reply.needs_choice {
                    *undecided.borrow_mut() = Some(choice_needed(reply));
                }
                (WatchLine { event: "synchronised", reply: Some(reply), error: None }, show(reply))
            }
            SyncEvent::Lost(error) => {
                let text = format!("{error}; trying again until it works\n");
                (WatchLine { event: "lost", reply: None, error: Some(error.to_string()) }, text)
            }
            SyncEvent::Found => {
                let text = "the service can be reached again\n".to_owned();
                (WatchLine { event: "found", reply: None, error: None }, text)
            }
        };
        let printed = match (out.is_json(), serde_json::to_string(&line)) {
            (true, Ok(line)) => out.print_until_closed(&format!("{line}\n")),
            (true, Err(error)) => Err(Error::internal("cannot write a line as JSON").with_source(error)),
            (false, _) => out.print_until_closed(&output::plain_lines(&text)),
        };
        match printed {
            Ok(true) => {}
            // Nobody reads the lines any more.
            Ok(false) => stop.store(true, Ordering::Relaxed),
            Err(error) => tracing::warn!("{error}"),
        }
    });
    bar.finish();
    watched?;
    undecided.into_inner().map_or(Ok(Outcome::Done), Err)
}

fn show(reply: &SyncReply) -> String {
    let mut text = String::new();
    let mut list = |what: &str, paths: &[String]| {
        if paths.is_empty() {
            return;
        }
        let named = paths.iter().take(MAX_NAMED).map(|path| output::plain(path)).collect::<Vec<String>>();
        let more = match paths.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text.push_str(&format!("{what}: {}{more}\n", named.join(", ")));
    };
    list("from the vault", &reply.fetched);
    list("removed here", &reply.removed_here);
    list("to the vault", &reply.sent);
    list("removed from the vault", &reply.removed_there);
    for conflict in &reply.conflicts {
        let (path, copy) = (output::plain(&conflict.path), output::plain(&conflict.copy));
        text.push_str(&format!("conflict: {path} has the text of the vault, and yours is in {copy}\n"));
    }
    if !reply.conflicts.is_empty() {
        text.push_str("`sidenote conflicts merge NOTE` brings both texts together\n");
    }
    for link in reply.broken_links.iter().take(MAX_NAMED) {
        let (path, target) = (output::plain(&link.path), output::plain(&link.target));
        text.push_str(&format!("broken link: {path}:{} leads to {target}, which was removed\n", link.line));
    }
    if let Some(more) = reply.broken_links.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        text.push_str(&format!("and {more} more broken links\n"));
    }
    if !reply.broken_links.is_empty() {
        text.push_str("`sidenote repair` finds what they meant\n");
    }
    for left in &reply.left_out {
        text.push_str(&format!("left out: {}: {}\n", output::plain(&left.path), output::plain(&left.reason)));
    }
    if reply.is_quiet() && reply.left_out.is_empty() {
        text.push_str("folder and vault are equal\n");
    } else if reply.is_quiet() {
        text.push_str("all other files are equal\n");
    } else if !reply.applied {
        text.push_str("nothing was changed: this is what would be done\n");
    }
    if reply.needs_choice && !reply.loses_most {
        text.push_str("the first time, choose --adopt or --replace\n");
    }
    if reply.loses_most && reply.applied {
        text.push_str("more than half of the files of a side were removed; `sidenote undo` in the folder takes that back\n");
    } else if reply.loses_most {
        text.push_str("more than half of the files of a side would be removed, which needs --remove-many\n");
    }
    if reply.unfinished {
        text.push_str("files kept changing; the next run goes on\n");
    }
    if reply.stopped {
        text.push_str("stopped before it was done; the next run goes on\n");
    }
    text
}

/// A progress bar for files, which appears when there is something to do.
#[derive(Default)]
struct FileBar(RefCell<Option<(Phase, ProgressBar)>>);

impl FileBar {
    fn show(&self, phase: Phase, done: usize, all: usize) {
        let mut shown = self.0.borrow_mut();
        if shown.as_ref().is_none_or(|(known, _)| *known != phase) {
            if let Some((_, bar)) = shown.take() {
                bar.finish_and_clear();
            }
            let bar = ProgressBar::new(all as u64);
            let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {eta}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar.set_message(match phase {
                Phase::Reading => "reading",
                Phase::Fetching => "fetching",
                Phase::Sending => "sending",
            });
            *shown = Some((phase, bar));
        }
        if let Some((_, bar)) = shown.as_ref() {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        }
    }

    fn finish(&self) {
        if let Some((_, bar)) = self.0.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }
}
