//! Requests of the operating system that the process ends.

use sidenote_base::error::{Error, Result};

/// Listens from now on for a request that the process ends: SIGTERM or SIGINT on Unix; Ctrl-C, Ctrl-Break, a closed
/// console or a shutdown on Windows. The future completes at the first one.
///
/// # Errors
/// `Internal` if the system does not let the process listen.
pub fn requested() -> Result<impl Future<Output = ()>> {
    listen().map_err(|error| Error::internal("cannot listen for signals").with_source(error))
}

#[cfg(unix)]
fn listen() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(windows)]
fn listen() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};
    let (mut interrupt, mut end, mut close, mut shutdown) =
        (ctrl_c()?, ctrl_break()?, ctrl_close()?, ctrl_shutdown()?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = end.recv() => {}
            _ = close.recv() => {}
            _ = shutdown.recv() => {}
        }
    })
}
