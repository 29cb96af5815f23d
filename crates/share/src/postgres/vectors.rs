//! The vectors of the passages of a vault, each made once in the whole service.

use postgres::types::Type;
use sidenote_base::error::Result;
use sidenote_vault::authority::StoredVector;
use sidenote_vault::failpoint;
use uuid::Uuid;

use super::{Database, failed};

impl Database {
    /// Reads the vectors of a model for those of some passages that have one.
    pub(crate) fn vectors(&self, vault: Uuid, model: i64, keys: &[i64]) -> Result<Vec<StoredVector>> {
        self.read(Some(vault), |transaction| {
            failpoint();
            let rows = transaction.query_typed(
                "select key, bytes from sidenote.vector where vault = $1 and model = $2 and key = any($3)",
                &[(&vault, Type::UUID), (&model, Type::INT8), (&keys, Type::INT8_ARRAY)],
            );
            let rows = rows.map_err(|error| failed("read vectors", error))?;
            Ok(rows.iter().map(|row| StoredVector { key: row.get(0), bytes: row.get(1) }).collect())
        })
    }

    /// Stores vectors of a model. Those that are there stay.
    pub(crate) fn add_vectors(&self, vault: Uuid, model: i64, vectors: &[StoredVector]) -> Result<()> {
        let mut vectors: Vec<&StoredVector> = vectors.iter().collect();
        // In one order everywhere, so that two servers that store the same ones do not wait for each other in a circle.
        vectors.sort_unstable_by_key(|vector| vector.key);
        let keys: Vec<i64> = vectors.iter().map(|vector| vector.key).collect();
        let bytes: Vec<&[u8]> = vectors.iter().map(|vector| vector.bytes.as_slice()).collect();
        self.write(Some(vault), |transaction| {
            failpoint();
            transaction
                .execute_typed(
                    "insert into sidenote.vector (vault, model, key, bytes)
                    select $1, $2, key, bytes from unnest($3, $4) as new (key, bytes) on conflict do nothing",
                    &[
                        (&vault, Type::UUID),
                        (&model, Type::INT8),
                        (&keys, Type::INT8_ARRAY),
                        (&bytes, Type::BYTEA_ARRAY),
                    ],
                )
                .map(drop)
                .map_err(|error| failed("store vectors", error))
        })
    }
}
