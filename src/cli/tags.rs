//! `sidenote tags`: lists the tags of the vault. `sidenote tag`, which changes them, is in `cli/change/tag`.

use clap::Args;
use sidenote_base::error::Result;

use super::format::ListFormat;
use super::{CommandContext, output};
use crate::store::TagItem;

/// List all tags with the number of notes that have each.
#[derive(Debug, Args)]
pub(super) struct TagsArgs {
    #[command(flatten)]
    format: ListFormat,
}

pub(super) fn run(context: &CommandContext, args: &TagsArgs) -> Result<()> {
    let tags = context.fresh_store()?.reads().tags()?;
    let show = |tags: &Vec<TagItem>| {
        let rows = tags.iter().map(|tag| vec![format!("#{}", tag.tag), tag.notes.to_string()]);
        output::columns(&rows.collect::<Vec<_>>())
    };
    args.format.reply(context.out, &tags, |tags| tags, show)
}
