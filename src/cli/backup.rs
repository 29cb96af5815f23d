//! `sidenote backup`, `backups` and `restore-backup`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::args::DryRunArgs;
use crate::cli::change::show_change;
use crate::cli::{CommandContext, output};
use crate::error::Result;
use crate::store::BackupItem;

/// Copy the vault and its journal into a folder of backups; the newest ten are kept.
#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// The folder, outside of the notes; .sidenote/backups where nothing is set.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// List backups, the newest first.
#[derive(Debug, Args)]
pub(super) struct BackupsArgs {
    /// Their folder.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Bring a backup back: into this vault, where notes that are gone or different get the bytes that they had and what
/// came since stays; or with --to as a vault of its own.
#[derive(Debug, Args)]
pub(super) struct RestoreBackupArgs {
    /// Its name, or its folder.
    backup: String,
    /// A folder that is empty or not there yet.
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// The folder of backups.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn run(context: &CommandContext, args: &BackupArgs) -> Result<()> {
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
    let item = store.upkeep().backup(args.dir.as_deref())?;
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
