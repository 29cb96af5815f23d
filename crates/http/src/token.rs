//! The token that clients of a server send: reading its file, which is created with a new token if it is missing.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use sidenote_base::platform::OpenMode;
use uuid::Uuid;

/// The least number of characters of a token.
const SHORTEST: usize = 16;

/// Returns a new random token.
pub fn new_token() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// Reads the token in a file. Creates the file with a new token if it does not exist, and says so if `is_told` is set.
///
/// # Errors
/// `Invalid` if other users can read the file, or the token has less than 16 characters; `Io` if the file cannot be
/// read or created.
pub fn read_or_create(path: &Path, is_told: bool) -> Result<String> {
    let failed = |error| Error::io("read the token in", path, error);
    if !path.exists() {
        let file = platform::open_in_place(path, OpenMode::CreateNew(0o600));
        let written = file.and_then(|mut file| file.write_all(format!("{}\n", new_token()).as_bytes()));
        written.map_err(|error| Error::io("create a token in", path, error))?;
        if is_told {
            tracing::warn!("a new token was written to {}", path.display());
        }
    }
    if !platform::is_private(path).map_err(failed)? {
        return Err(Error::invalid(format!("other users can read the token in {}", path.display()))
            .with_hint(format!("run: chmod 600 {}", path.display())));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let token = text.trim();
    if token.len() < SHORTEST {
        return Err(Error::invalid(format!("the token in {} has less than 16 characters", path.display()))
            .with_hint("remove the file; a new token is created at the next start"));
    }
    Ok(token.to_owned())
}

/// Refuses to listen without a token at an address that other machines can reach.
///
/// # Errors
/// `Invalid` if it is no address of this machine alone.
pub fn refuse_without_token(address: SocketAddr) -> Result<()> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(Error::invalid(format!("other machines can reach {address}, and there is no token"))
        .with_hints("give --token-file FILE, or listen on 127.0.0.1", ""))
}
