//! The one integration-test binary; each module tests one feature from outside.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop loudly"
)]

mod apply;
mod canvas;
mod change;
mod check;
mod cli;
mod compose;
mod damage;
mod duplicates;
mod embed;
mod fm_edit;
mod frontmatter;
mod fusion;
mod journal;
mod keep;
mod kill;
mod links;
mod memory;
mod mcp;
mod parse;
mod passages;
mod resolve;
mod rewrite;
mod search;
mod security;
mod soak;
mod support;
mod sync;
mod terms;
mod tidy;
mod together;
mod vault;
mod watch;
