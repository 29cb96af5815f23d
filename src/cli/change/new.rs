//! `sidenote new`: creates a note, from a template or as today's daily note where asked for.

use clap::Args;
use sidenote_base::error::{Error, Result};

use super::report;
use crate::cli::args::{DryRunArgs, text_or_stdin, without_hash_signs};
use crate::cli::{CommandContext, output};
use crate::store::{NewRequest, Operation, json_or_text};

/// Create a note and print its path.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote new \"Trip to Kyoto\" --folder Travel --tag travel
  git log -1 | sidenote new \"Release notes\" --content -
  sidenote new --daily")]
pub(in crate::cli) struct NewArgs {
    /// The title. The file name is derived from it.
    #[arg(required_unless_present = "daily")]
    title: Option<String>,
    /// The text of the note; - reads standard input.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    content: Option<String>,
    /// The folder, as a path from the root of the vault.
    #[arg(long)]
    folder: Option<String>,
    /// The category. It is also the folder if --folder is not given.
    #[arg(long)]
    category: Option<String>,
    /// Add this tag; may be repeated.
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// The type of the note.
    #[arg(long = "type", value_name = "TYPE")]
    note_type: Option<String>,
    /// Set a property; may be repeated. VALUE is parsed as JSON if it is valid JSON, and is text otherwise.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Copy this template note and fill in {{title}}, {{date}} and {{time}}.
    #[arg(long)]
    template: Option<String>,
    /// Create today's daily note as Obsidian does. If it exists, append the text to it.
    #[arg(long, conflicts_with = "title")]
    daily: bool,
    /// Create the note even if links mean another note by its name. These links are lengthened, so that they keep leading
    /// to that note.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Create today's daily note, or append to it, as `new --daily` does.
#[derive(Debug, Args)]
pub(in crate::cli) struct DailyArgs {
    /// The text; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    text: Option<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Creates today's daily note.
pub(super) fn daily(context: &CommandContext, args: DailyArgs) -> Result<()> {
    let content = args.text.as_deref().map(text_or_stdin).transpose()?.unwrap_or_default();
    create(context, NewRequest { content, daily: true, ..NewRequest::default() }, &args.dry_run)
}

pub(super) fn run(context: &CommandContext, args: NewArgs) -> Result<()> {
    let (request, dry_run) = request(args)?;
    create(context, request, &dry_run)
}

fn create(context: &CommandContext, request: NewRequest, dry_run: &DryRunArgs) -> Result<()> {
    let (dry_run, daily) = (dry_run.is_set(), request.daily);
    let store = context.store()?;
    let reply = store.changes().change(&Operation::New(request), dry_run)?;
    let existing_daily_note = if daily && !dry_run && reply.made().is_none() {
        Some(store.planner().daily_note(None)?)
    } else {
        None
    };
    context.out.reply(&reply, |reply| match &existing_daily_note {
        Some(path) => format!("{}\n", output::plain(path.as_str())),
        None => report::show_change(reply),
    })?;
    report::print_remarks(context, &reply);
    Ok(())
}

fn request(args: NewArgs) -> Result<(NewRequest, DryRunArgs)> {
    let property = |argument: &String| {
        let (key, value) = argument.split_once('=').ok_or_else(|| {
            Error::invalid(format!("--set {argument:?} has no `=`"))
                .with_hint("write KEY=VALUE, such as --set status=open")
        })?;
        Ok((key.trim().to_owned(), json_or_text(value)))
    };
    let request = NewRequest {
        title: args.title.unwrap_or_default(),
        content: args.content.as_deref().map(text_or_stdin).transpose()?.unwrap_or_default(),
        folder: args.folder,
        category: args.category,
        tags: without_hash_signs(&args.tags),
        note_type: args.note_type,
        properties: args.set.iter().map(property).collect::<Result<_>>()?,
        template: args.template,
        daily: args.daily,
        force: args.force,
        ..NewRequest::default()
    };
    Ok((request, args.dry_run))
}
