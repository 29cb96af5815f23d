//! `sidenote memory restore`: brings back a memory that was forgotten, archived or cleaned up.

use super::{MemoryNameArgs, print_change};
use crate::cli::CommandContext;
use sidenote_base::error::Result;

pub(super) fn run(context: &CommandContext, args: &MemoryNameArgs) -> Result<()> {
    let store = context.fresh_store()?;
    print_change(context, &store.memory_writes().restore_memory(&args.name, args.dry_run.is_set())?)
}
