//! `sidenote memory pin` and `sidenote memory unpin`.

use sidenote_base::error::Result;

use super::{MemoryNameArgs, print_change};
use crate::cli::CommandContext;

pub(super) fn pin(context: &CommandContext, args: &MemoryNameArgs) -> Result<()> {
    let store = context.fresh_store()?;
    print_change(context, &store.memory_writes().pin(&args.name, args.dry_run.is_set())?)
}

pub(super) fn unpin(context: &CommandContext, args: &MemoryNameArgs) -> Result<()> {
    let store = context.fresh_store()?;
    print_change(context, &store.memory_writes().unpin(&args.name, args.dry_run.is_set())?)
}
