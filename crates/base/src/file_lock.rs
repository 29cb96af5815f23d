//! A lock between processes that is waited for only so long: a file beside the one that is changed.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::{platform, safe_open};

/// How long the wait for a lock pauses between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until this process has the lock of a file, which is created for the user alone. The lock is released with the file.
///
/// # Errors
/// `Conflict` if another process does not release it within `limit`; `Io` if the file cannot be created.
pub fn lock_within(path: &Path, limit: Duration) -> Result<File> {
    let failed = |error| Error::io("lock", path, error);
    let file = safe_open::open_or_create(path, 0o600).map_err(failed)?;
    let started = Instant::now();
    while !platform::try_lock(&file).map_err(failed)? {
        if started.elapsed() > limit {
            let text = format!("another process holds {}", path.display());
            return Err(Error::new(ErrorKind::Conflict, text).with_hint("stop the other `sidenote`"));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(file)
}
