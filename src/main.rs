//! Parses arguments, starts tracing, runs, and turns an error into a message and an exit code.

use std::process::ExitCode;

/// Indexing makes and drops millions of small strings, which the system's allocator takes its time for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    sidenote::cli::main()
}
