//! Inserts of many rows, several per statement, which is much faster than one by one.

use std::sync::OnceLock;

use rusqlite::{Connection, ToSql, params_from_iter};
use sidenote_base::error::Result;

use super::sql;

/// The numbers of rows per statement, the largest first.
const SIZES: [usize; 3] = [32, 6, 1];

/// The statements that insert rows of `N` columns into one table.
pub(super) struct Inserts<const N: usize> {
    head: &'static str,
    statements: OnceLock<[String; SIZES.len()]>,
}

impl<const N: usize> Inserts<N> {
    /// Creates the statements from the text before the rows.
    pub(super) const fn new(head: &'static str) -> Self {
        Self { head, statements: OnceLock::new() }
    }

    /// Inserts rows in order.
    pub(super) fn insert(&self, db: &Connection, mut rows: &[[impl ToSql; N]]) -> Result<()> {
        let statement = |size| format!("{} {}", self.head, vec![values(N); size].join(","));
        let statements = self.statements.get_or_init(|| SIZES.map(statement));
        for (size, statement) in SIZES.into_iter().zip(statements) {
            if rows.len() < size {
                continue;
            }
            let mut insert = db.prepare_cached(statement).map_err(sql("write"))?;
            while let Some((batch, rest)) = rows.split_at_checked(size) {
                insert.execute(params_from_iter(batch.as_flattened())).map_err(sql("write"))?;
                rows = rest;
            }
        }
        Ok(())
    }
}

/// Returns the placeholders of a row of `width` values.
fn values(width: usize) -> String {
    format!("({})", vec!["?"; width].join(","))
}
