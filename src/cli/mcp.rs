//! `sidenote mcp`: hands the store to the server.

use super::Session;
use crate::error::Result;
use crate::store::Event;

pub(super) fn run(session: &mut Session) -> Result<()> {
    session.open.fill = true;
    // Over standard input and output there is one connection, and that is a session.
    let now = session.open.clock.now();
    session.open.session.get_or_insert_with(|| Event::new("session", now).id);
    let store = session.store()?;
    crate::mcp::serve_stdio(store)
}
