//! `sidenote memory tier`: archives a memory.

use clap::Args;
use sidenote_base::error::{Error, Result};

use super::{parse_tier, print_change};
use crate::cli::CommandContext;
use crate::cli::args::DryRunArgs;
use crate::store::Tier;

/// Archive a memory.
///
/// The other tiers are computed from age and use, and cannot be set.
#[derive(Debug, Args)]
pub(super) struct TierArgs {
    /// The memory: id, path, title, alias or [[wikilink]].
    name: String,
    /// The tier, which must be archive.
    tier: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn run(context: &CommandContext, args: &TierArgs) -> Result<()> {
    if parse_tier(&args.tier)? != Tier::Archive {
        return Err(Error::invalid(format!("the tier {} cannot be set", args.tier))
            .with_hint("hot, warm and cold are computed from age and use; `pin` keeps a memory warm"));
    }
    let store = context.fresh_store()?;
    print_change(context, &store.memory_writes().archive(&args.name, args.dry_run.is_set())?)
}
