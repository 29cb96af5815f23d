//! Vaults that several servers share: PostgreSQL holds their bytes and the order of changes, and each server has a
//! copy. A copy is a folder like any other, so search, links and memory are the same code on the same bytes. There is
//! no other way of searching or changing notes here.

pub mod address;
pub mod authority;
pub mod audit;
mod cache_lock;
mod copy;
pub mod follow;
pub mod host;
pub mod members;
pub mod oauth;
mod postgres;
pub mod quota;
mod refusal_text;
pub mod replica;
pub mod settings;
pub mod team;

pub use crate::postgres::Database;
pub use crate::postgres::schema::TablesReply;
