//! Parses arguments, starts tracing, runs, and turns an error into a message and an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    sidenote::cli::main()
}
