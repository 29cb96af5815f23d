//! Owns how many rows are written at once: with several to a statement, which costs far less than one for each.

use std::sync::OnceLock;

use rusqlite::{Connection, ToSql, params_from_iter};

use super::sql;
use crate::error::Result;

/// How many rows a statement takes, most first.
const SIZES: [usize; 3] = [32, 6, 1];

/// The statements that write rows of `N` columns.
pub(super) struct Inserts<const N: usize> {
    head: &'static str,
    statements: OnceLock<[String; SIZES.len()]>,
}

impl<const N: usize> Inserts<N> {
    /// Takes what comes before the rows.
    pub(super) const fn new(head: &'static str) -> Self {
        Self { head, statements: OnceLock::new() }
    }

    /// Writes rows in their order.
    pub(super) fn insert(&self, db: &Connection, mut rows: &[[impl ToSql; N]]) -> Result<()> {
        let statement = |size| format!("{} {}", self.head, vec![values(N); size].join(","));
        let statements = self.statements.get_or_init(|| SIZES.map(statement));
        for (size, statement) in SIZES.into_iter().zip(statements) {
            if rows.len() < size {
                continue;
            }
            let mut insert = db.prepare_cached(statement).map_err(sql("write"))?;
            while let Some((now, rest)) = rows.split_at_checked(size) {
                insert.execute(params_from_iter(now.as_flattened())).map_err(sql("write"))?;
                rows = rest;
            }
        }
        Ok(())
    }
}

/// Gives a row of `width` values that are bound later.
fn values(width: usize) -> String {
    format!("({})", vec!["?"; width].join(","))
}
