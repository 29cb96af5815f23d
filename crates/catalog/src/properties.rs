//! Properties in the catalog. Each name is stored once for the whole vault, and a note has the ids of its names with their
//! values: in a large vault the same few names occur in every note and would take most of the space.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value};
use sidenote_base::error::{Error, Result};

use super::{CatalogReader, CatalogWriter, FileId, sql};

impl CatalogWriter {
    /// Encodes flat properties as a JSON array of name ids and values in turn.
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

    /// Returns the id of a property name, which is inserted if it is new.
    fn property_name(&self, name: &str) -> Result<i64> {
        if let Some(&id) = self.property_names.borrow().get(name) {
            return Ok(id);
        }
        let found = self
            .reader()
            .db
            .prepare_cached("SELECT id FROM property_names WHERE name = ?1")
            .and_then(|mut select| select.query_row([name], |row| row.get(0)).optional())
            .map_err(sql("read"))?;
        let id = match found {
            Some(id) => id,
            None => {
                self.run("INSERT INTO property_names (name) VALUES (?1)", params![name])?;
                self.reader().db.last_insert_rowid()
            }
        };
        self.property_names.borrow_mut().insert(name.to_owned(), id);
        Ok(id)
    }
}

/// Queries of the catalog about properties.
#[derive(Debug, Clone, Copy)]
pub struct PropertyQueries<'a>(&'a CatalogReader);

impl CatalogReader {
    /// Returns the queries about properties.
    pub fn properties(&self) -> PropertyQueries<'_> {
        PropertyQueries(self)
    }
}

impl PropertyQueries<'_> {
    /// Lists every spelling of a property name that was ever indexed.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn names(&self) -> Result<Vec<String>> {
        self.0.collect("SELECT name FROM property_names", [], |row| row.get(0))
    }

    /// Returns the property names by id.
    pub(super) fn names_by_id(&self) -> Result<HashMap<i64, String>> {
        let names = self
            .0
            .collect("SELECT id, name FROM property_names", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(names.into_iter().collect())
    }

    /// Visits the flat properties of every visible note that has any.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn each(&self, mut visit: impl FnMut(FileId, Map<String, Value>)) -> Result<()> {
        let names = self.names_by_id()?;
        let mut statement = self
            .0
            .db
            .prepare_cached("SELECT d.file, d.properties FROM details d JOIN files f ON f.id = d.file WHERE f.kind < 2 AND NOT f.excluded AND d.properties <> '[]'")
            .map_err(sql("read"))?;
        let mut rows = statement.query([]).map_err(sql("read"))?;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            let packed = row.get_ref(1).and_then(|value| Ok(value.as_str()?)).map_err(sql("read"))?;
            visit(row.get(0).map_err(sql("read"))?, unpack(packed, &names)?);
        }
        Ok(())
    }

    /// Returns the flat properties of some notes.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn of(&self, ids: &[FileId]) -> Result<HashMap<FileId, Map<String, Value>>> {
        let names = self.names_by_id()?;
        let mut found = HashMap::with_capacity(ids.len());
        for &id in ids {
            let packed: Vec<String> =
                self.0.collect("SELECT properties FROM details WHERE file = ?1", [id], |row| row.get(0))?;
            for packed in packed {
                found.insert(id, unpack(&packed, &names)?);
            }
        }
        Ok(found)
    }

    /// Returns the flat properties of the notes that are hidden from search.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn of_hidden(&self) -> Result<HashMap<FileId, Map<String, Value>>> {
        let hidden: Vec<FileId> =
            self.0.collect("SELECT id FROM files WHERE excluded AND kind = 0", [], |row| row.get(0))?;
        self.of(&hidden)
    }

    /// Returns the flat properties of a note, and its problems as JSON. Attachments have none.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn with_problems(&self, id: FileId) -> Result<Option<(Map<String, Value>, String)>> {
        let row: Option<(String, String)> = self
            .0
            .collect("SELECT properties, ifnull(problems, '[]') FROM details WHERE file = ?1", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .pop();
        row.map(|(packed, problems)| Ok((unpack(&packed, &self.names_by_id()?)?, problems))).transpose()
    }
}

/// Decodes the properties of a note.
pub(super) fn unpack(packed: &str, names: &HashMap<i64, String>) -> Result<Map<String, Value>> {
    let damaged = || {
        Error::corrupt("the properties in the catalog are damaged")
            .with_hints("run: sidenote index --rebuild", "ask the user to rebuild the index")
    };
    let mut items = serde_json::from_str::<Vec<Value>>(packed).map_err(|_| damaged())?.into_iter();
    let mut properties = Map::new();
    while let Some(id) = items.next() {
        let name = id.as_i64().and_then(|id| names.get(&id)).ok_or_else(damaged)?;
        properties.insert(name.clone(), items.next().ok_or_else(damaged)?);
    }
    Ok(properties)
}
