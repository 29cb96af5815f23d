//! `sidenote backup`: makes, lists and restores backups. `backups` and `restore-backup` are earlier names of its commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sidenote_base::error::Result;

use crate::cli::args::DryRunArgs;
use crate::cli::change::show_change;
use crate::cli::progress::Spinner;
use crate::cli::{CommandContext, output};
use crate::store::BackupItem;

/// Back up the vault and its journal, or list and restore backups.
///
/// The latest ten backups are kept.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  sidenote backup
  sidenote backup list
  sidenote backup restore memory_backup_20261121_093000 --dry-run"
)]
pub(super) struct BackupArgs {
    #[command(subcommand)]
    action: Option<BackupAction>,
    /// The folder of backups. Default: the setting backup.dir, or .sidenote/backups.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

#[derive(Debug, Subcommand)]
enum BackupAction {
    List(BackupsArgs),
    Restore(RestoreBackupArgs),
}

impl BackupArgs {
    /// Returns whether the command makes or restores a backup.
    pub(super) fn writes(&self) -> bool {
        !matches!(self.action, Some(BackupAction::List(_)))
    }
}

/// List backups, newest first.
#[derive(Debug, Args)]
pub(super) struct BackupsArgs {
    /// The folder of backups. Default: the setting backup.dir, or .sidenote/backups.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Restore a backup.
///
/// Without --to, it is restored into this vault: missing and changed files are restored, and files created since the
/// backup stay.
#[derive(Debug, Args)]
pub(super) struct RestoreBackupArgs {
    /// The name of the backup as `backup list` prints it, or its folder.
    backup: String,
    /// Restore into this folder, which must be empty or missing.
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// The folder of backups.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn run(context: &CommandContext, args: &BackupArgs) -> Result<()> {
    match &args.action {
        Some(BackupAction::List(args)) => return list(context, args),
        Some(BackupAction::Restore(args)) => return restore(context, args),
        None => {}
    }
    let store = context.fresh_store()?;
    if args.dry_run.is_set() {
        let folder = store.upkeep().backup_folder(args.dir.as_deref());
        let status = store.index().status()?;
        let reply = serde_json::json!({ "folder": folder, "notes": status.counts.notes });
        return context.out.reply(&reply, |_| {
            let notes = output::count(status.counts.notes, "note");
            format!("{notes} would be copied to {}\n", folder.display())
        });
    }
    let spinner = Spinner::start("copying");
    let item = store.upkeep().backup(args.dir.as_deref())?;
    drop(spinner);
    for path in &item.left_out {
        context.out.message(&format!("notice: {} is not in the backup", output::plain(path)));
    }
    context.out.reply(&item, |item| format!("{}\n", item.path.display()))
}

pub(super) fn list(context: &CommandContext, args: &BackupsArgs) -> Result<()> {
    let items = context.store()?.upkeep().backups(args.dir.as_deref())?;
    context.out.reply(&items, |items| {
        let row = |item: &BackupItem| {
            vec![
                item.name.clone(),
                item.at.clone(),
                output::count(item.notes, "note"),
                output::count(item.files, "file"),
                output::bytes(item.bytes),
            ]
        };
        output::columns(&items.iter().map(row).collect::<Vec<_>>())
    })
}

pub(super) fn restore(context: &CommandContext, args: &RestoreBackupArgs) -> Result<()> {
    let store = context.fresh_store()?;
    let (dir, to) = (args.dir.as_deref(), args.to.as_deref());
    let reply = store.upkeep().restore_backup(&args.backup, dir, to, args.dry_run.is_set())?;
    context.out.reply(&reply, |reply| match (&reply.to, &reply.change) {
        (Some(to), _) => format!("{}: {}\n", to.display(), output::count(reply.backup.files, "file")),
        (None, Some(change)) => show_change(change),
        (None, None) => String::new(),
    })
}
