//! Arguments that several commands share, and the reading of text arguments.

use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_config::expand_home;

use crate::store::Searches;

/// The flag `--dry-run` of the commands that change something.
#[derive(Debug, Args)]
pub(super) struct DryRunArgs {
    /// Change nothing; print what would change. Changes of notes are printed as a diff, with --json as exact edits.
    #[arg(long)]
    dry_run: bool,
}

impl DryRunArgs {
    /// Returns whether nothing may change.
    pub(super) fn is_set(&self) -> bool {
        self.dry_run
    }
}

/// Returns a parser of paths that may begin with the home folder. A shell replaces `~` only where it is not quoted, and
/// MCP clients start programs without a shell.
pub(super) fn path_from_home() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| expand_home(&path))
}

/// The flag `--at` of the commands that can read the vault of a commit.
#[derive(Debug, Args)]
pub(super) struct AtArgs {
    /// Read the notes of this git revision, not the present ones: a branch, a tag, a commit, HEAD~3, or a date such as
    /// 2026-01-01, yesterday or 7d, which means the last commit before the end of that day. Search is by words.
    #[arg(long, value_name = "REV", hide_short_help = true)]
    pub(super) at: Option<String>,
}

/// The flag `--as-of` of the commands that search and list notes.
#[derive(Debug, Args)]
pub(super) struct AsOfArgs {
    /// Only notes that were valid at this time, by their properties valid_from, valid_until and superseded_by: a time, or
    /// a date such as 2026-01-01, yesterday or 7d, which means the end of that day.
    #[arg(long, value_name = "DATE", hide_short_help = true)]
    as_of: Option<String>,
}

impl AsOfArgs {
    /// Parses the instant. Dates such as 7d are relative to `now`.
    ///
    /// # Errors
    /// `Invalid` if the text is not a date.
    pub(super) fn instant(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        Searches::as_of("--as-of", self.as_of.as_deref(), now)
    }
}

/// The flags of the commands that print settings of a client, or write them.
#[derive(Debug, Args)]
pub(super) struct SettingsFileArgs {
    /// Merge the settings into the settings file of the client. The previous file is kept as FILE.bak.
    #[arg(long)]
    pub(super) write: bool,
    /// The settings file, if it is not the default one of the client.
    #[arg(long, value_name = "FILE", requires = "write")]
    pub(super) file: Option<PathBuf>,
    /// Write nothing; print what would be written.
    #[arg(long, requires = "write")]
    pub(super) dry_run: bool,
}

/// Returns the text of an argument, or the whole of standard input for `-`.
///
/// # Errors
/// `Io` if standard input cannot be read or is not UTF-8.
pub(super) fn text_or_stdin(argument: &str) -> Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| Error::io("read", "standard input", error))?;
    Ok(text)
}

/// Returns tags without the `#` that may precede them.
pub(super) fn without_hash_signs(tags: &[String]) -> Vec<String> {
    tags.iter().map(|tag| tag.trim().trim_start_matches('#').to_owned()).collect()
}
