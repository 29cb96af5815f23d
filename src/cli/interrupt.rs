//! Ctrl-C as a flag, for commands that can be stopped between two steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidenote_base::error::{Error, Result};

use crate::cli::output::Output;

/// Sets `stop` on Ctrl-C, says so at once, and returns a flag that tells it from other reasons to stop. A second Ctrl-C ends
/// the process at once, which is safe at any moment.
pub(super) fn stop_with(stop: Arc<AtomicBool>, out: Output) -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        stop.store(true, Ordering::Relaxed);
        if !out.is_json() {
            out.message("stopping after this batch; Ctrl-C again stops at once");
        }
    })
    .map_err(|error| Error::internal("cannot watch for Ctrl-C").with_source(error))?;
    Ok(interrupted)
}

/// Returns a flag that Ctrl-C sets. A second Ctrl-C ends the process at once, which is safe at any moment.
#[cfg(feature = "team")]
pub(super) fn stop_on_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .map_err(|error| Error::internal("cannot watch for Ctrl-C").with_source(error))?;
    Ok(stop)
}
