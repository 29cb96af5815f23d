//! `sidenote memory restore`: brings back a memory that was forgotten, archived or cleaned up.

use sidenote_base::error::Result;

use super::{MemoryNameArgs, print_change};
use crate::cli::CommandContext;

pub(super) fn run(context: &CommandContext, args: &MemoryNameArgs) -> Result<()> {
    let store = context.fresh_store()?;
    print_change(context, &store.memory_writes().restore_memory(&args.name, args.dry_run.is_set())?)
}
