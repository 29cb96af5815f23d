//! `sidenote man`: prints or writes the manual pages, which are generated from the command tree.

use std::path::PathBuf;

use clap::Args;
use clap_mangen::Man;
use sidenote_base::error::{Error, Result};

use crate::cli::{CommandContext, output, tree};

/// Print the manual page, or write those of all commands.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote man | man -l -
  sidenote man --dir ~/.local/share/man/man1")]
pub(super) struct ManArgs {
    /// Write one page for each command into this folder, which is created if it is missing.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

pub(super) fn run(context: &CommandContext, args: &ManArgs) -> Result<()> {
    let Some(folder) = &args.dir else {
        let mut page = Vec::new();
        Man::new(tree())
            .render(&mut page)
            .map_err(|error| Error::internal("cannot generate the manual page").with_source(error))?;
        return context.out.print(&String::from_utf8_lossy(&page));
    };
    #[expect(clippy::disallowed_methods, reason = "a folder that the user names, outside of any vault")]
    std::fs::create_dir_all(folder).map_err(|error| Error::io("make", folder, error))?;
    let mut files = Vec::new();
    for (name, page) in pages()? {
        let file = folder.join(name);
        #[expect(clippy::disallowed_methods, reason = "a file of ours in a folder that the user names")]
        std::fs::write(&file, page).map_err(|error| Error::io("write", &file, error))?;
        files.push(file.display().to_string());
    }
    context.out.reply(&files, |files| files.iter().map(|file| format!("{}\n", output::plain(file))).collect())
}

/// Generates the page of every command that is not hidden. Returns file names and texts.
fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut root = tree().disable_help_subcommand(true);
    root.build();
    let (mut pages, mut queue) = (Vec::new(), vec![root]);
    while let Some(command) = queue.pop() {
        queue.extend(command.get_subcommands().filter(|inner| !inner.is_hide_set()).cloned());
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        let mut page = Vec::new();
        Man::new(command).title(name.clone()).render(&mut page).map_err(|error| {
            Error::internal(format!("cannot generate the manual page of {name}")).with_source(error)
        })?;
        pages.push((format!("{name}.1"), page));
    }
    pages.sort();
    Ok(pages)
}
