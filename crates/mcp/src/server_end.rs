//! The end of servers, which is bounded in time.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use sidenote_store::Follower;

use crate::Server;

/// Ends servers side by side, each with what follows its files, and waits for that for a limited time.
pub(crate) fn end_within(servers: impl IntoIterator<Item = (Server, Option<Follower>)>, limit: Duration) {
    let (ending, ended) = std::sync::mpsc::channel::<()>();
    for (server, follower) in servers {
        let ending = ending.clone();
        let end = move || {
            drop(follower);
            server.end();
            drop(ending);
        };
        if let Err(error) = std::thread::Builder::new().name("sidenote-end".to_owned()).spawn(end) {
            tracing::warn!("the server does not wait for its calls: {error}");
        }
    }
    drop(ending);
    if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
        tracing::warn!(
            "the server does not wait any longer for its calls: the next command completes or undoes a change"
        );
    }
}
