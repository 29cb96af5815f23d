//! Owns how properties are kept: each name once for the whole vault, and a note's values beside the names' numbers.
//!
//! In a large vault the same few names stand in every note and would be the greater part of what is kept.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value};

use super::{Catalog, FileId, sql};
use crate::error::{Error, Result};

impl Catalog {
    /// Writes flat properties as a JSON array of numbers of names and values in turn.
    pub(super) fn pack_properties(&self, properties: &Map<String, Value>) -> Result<String> {
        let mut packed = String::from("[");
        for (name, value) in properties {
            if packed.len() > 1 {
                packed.push(',');
            }
            packed.push_str(&self.property_name(name)?.to_string());
            packed.push(',');
            packed.push_str(&value.to_string());
        }
        packed.push(']');
        Ok(packed)
    }

    /// Gives the number of a property's name, making it where it is new.
    fn property_name(&self, name: &str) -> Result<i64> {
        if let Some(&id) = self.property_names.borrow().get(name) {
            return Ok(id);
        }
        let found = self
            .db
            .prepare_cached("SELECT id FROM property_names WHERE name = ?1")
            .and_then(|mut select| select.query_row([name], |row| row.get(0)).optional())
            .map_err(sql("read"))?;
        let id = match found {
            Some(id) => id,
            None => {
                self.run("INSERT INTO property_names (name) VALUES (?1)", params![name])?;
                self.db.last_insert_rowid()
            }
        };
        self.property_names.borrow_mut().insert(name.to_owned(), id);
        Ok(id)
    }

    /// Lists every spelling of a property's name that was ever met.
    ///
    /// # Errors
    /// `Corrupt` where they cannot be read.
    pub fn property_names(&self) -> Result<Vec<String>> {
        self.collect("SELECT name FROM property_names", [], |row| row.get(0))
    }

    pub(super) fn names_of_properties(&self) -> Result<HashMap<i64, String>> {
        let names =
            self.collect("SELECT id, name FROM property_names", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(names.into_iter().collect())
    }

    /// Visits the flat properties of every visible note that has any.
    ///
    /// # Errors
    /// `Corrupt` where they cannot be read.
    pub fn each_properties(&self, mut visit: impl FnMut(FileId, Map<String, Value>)) -> Result<()> {
        let names = self.names_of_properties()?;
        let mut statement = self
            .db
            .prepare_cached("SELECT d.file, d.properties FROM details d JOIN files f ON f.id = d.file WHERE NOT f.excluded AND d.properties <> '[]'")
            .map_err(sql("read"))?;
        let mut rows = statement.query([]).map_err(sql("read"))?;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            let packed = row.get_ref(1).and_then(|value| Ok(value.as_str()?)).map_err(sql("read"))?;
            visit(row.get(0).map_err(sql("read"))?, unpack(packed, &names)?);
        }
        Ok(())
    }

    /// Gives the flat properties of some notes.
    ///
    /// # Errors
    /// `Corrupt` where they cannot be read.
    pub fn properties_of(&self, ids: &[FileId]) -> Result<HashMap<FileId, Map<String, Value>>> {
        let names = self.names_of_properties()?;
        let mut found = HashMap::with_capacity(ids.len());
        for &id in ids {
            let packed: Vec<String> =
                self.collect("SELECT properties FROM details WHERE file = ?1", [id], |row| row.get(0))?;
            for packed in packed {
                found.insert(id, unpack(&packed, &names)?);
            }
        }
        Ok(found)
    }

    /// Gives one note's flat properties, and its problems as JSON; `None` for attachments.
    ///
    /// # Errors
    /// `Corrupt` where they cannot be read.
    pub fn details(&self, id: FileId) -> Result<Option<(Map<String, Value>, String)>> {
        let row: Option<(String, String)> = self
            .collect("SELECT properties, ifnull(problems, '[]') FROM details WHERE file = ?1", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .pop();
        row.map(|(packed, problems)| Ok((unpack(&packed, &self.names_of_properties()?)?, problems)))
            .transpose()
    }
}

pub(super) fn unpack(packed: &str, names: &HashMap<i64, String>) -> Result<Map<String, Value>> {
    let damaged = || {
        Error::corrupt("the catalog holds properties that are damaged")
            .with_hint("run: sidenote index --rebuild")
    };
    let mut items = serde_json::from_str::<Vec<Value>>(packed).map_err(|_| damaged())?.into_iter();
    let mut properties = Map::new();
    while let Some(id) = items.next() {
        let name = id.as_i64().and_then(|id| names.get(&id)).ok_or_else(damaged)?;
        properties.insert(name.clone(), items.next().ok_or_else(damaged)?);
    }
    Ok(properties)
}
