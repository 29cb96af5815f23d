//! `sidenote mcp`: hands the store to the server.

use super::Session;
use crate::error::Result;

pub(super) fn run(session: &mut Session) -> Result<()> {
    session.open.fill = true;
    let store = session.store()?;
    crate::mcp::serve_stdio(store)
}
