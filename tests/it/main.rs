//! The one integration-test binary; each module tests one feature from outside.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop loudly"
)]

mod apply;
mod behind;
mod birth;
mod canvas;
mod change;
mod check;
mod client;
mod clock;
mod contract_rulebook;
mod contract_tiered;
mod contract_vector;
mod cli;
mod conditions;
mod commands;
mod compose;
mod contract_longterm;
mod contract_mem;
mod crafted;
mod creation;
mod damage;
mod difference;
mod duplicates;
mod embed;
mod endpoint;
mod finding;
mod fm_edit;
mod frontmatter;
mod fusion;
mod history;
mod http;
mod journal;
mod keep;
mod kill;
mod kin;
mod languages;
mod licenses;
mod limits;
mod linear;
mod links;
mod long;
mod memory;
mod mcp;
mod model;
mod more;
mod nofollow;
mod parse;
mod partial;
mod passages;
mod people;
mod recalling;
mod redaction;
mod resolve;
mod resources;
mod rewrite;
mod search;
mod secrets;
mod serve;
mod security;
mod soak;
mod story;
mod support;
mod sync;
mod tags;
mod terminal;
mod terms;
mod tidy;
mod together;
mod toolsets;
mod undo;
mod vault;
mod watch;
