//! `sidenote properties`: lists the properties of the vault.

use clap::Args;
use sidenote_base::error::Result;

use super::format::ListFormat;
use super::{CommandContext, output};
use crate::store::PropertyItem;

/// List all properties with their type and the number of notes that have each.
#[derive(Debug, Args)]
pub(super) struct PropertiesArgs {
    #[command(flatten)]
    format: ListFormat,
}

pub(super) fn run(context: &CommandContext, args: &PropertiesArgs) -> Result<()> {
    let properties = context.fresh_store()?.reads().properties()?;
    let show = |properties: &Vec<PropertyItem>| {
        let rows = properties
            .iter()
            .map(|item| vec![item.property.clone(), item.kind.clone(), item.notes.to_string()]);
        output::columns(&rows.collect::<Vec<_>>())
    };
    args.format.reply(context.out, &properties, |properties| properties, show)
}
