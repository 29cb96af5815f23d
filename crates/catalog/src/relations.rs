//! Relations in the catalog. Their ends are link texts of the note that states them, so that they follow the links to other
//! targets.

use rusqlite::types::Value;
use rusqlite::{Row, params};
use sidenote_base::error::Result;
use sidenote_config::note_kinds::{KIND_PROPERTIES, linked_kind};
use sidenote_markdown::span::Span;

use super::inserts::Inserts;
use super::links::{IDS, id_list};
use super::{CatalogReader, CatalogWriter, FileId, LinkGroup, Record};

/// The name in `meta` of the fingerprint of the rules by which the relations were found.
pub const RELATION_RULES: &str = "relation_rules";

static INTO_RELATIONS: Inserts<8> = Inserts::new("INSERT OR IGNORE INTO relations VALUES");

/// The number in `relations.subject` of the note that states the relation.
const NOTE_ITSELF: i64 = 0;

/// A relation between two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationRow {
    /// The file that it leads from.
    pub subject: FileId,
    /// The type as the note names it, or that of the rules if it is inferred.
    pub kind: String,
    /// The file that it leads to.
    pub object: FileId,
    /// Whether it was inferred from prose.
    pub is_inferred: bool,
    /// The note that states it.
    pub source: FileId,
    /// The line, counted from 1.
    pub line: usize,
    /// The text that states it.
    pub evidence: Span,
}

impl CatalogWriter {
    /// Inserts the relations that a file states. Its links are there already.
    pub(super) fn put_relations(&self, source: FileId, record: &Record) -> Result<()> {
        let linkpath = |at: usize| -> Result<Option<i64>> {
            let group: Option<&LinkGroup> = record.links.get(at);
            group.map(|group| self.linkpath(&group.linkpath, group.syntax)).transpose()
        };
        let mut rows: Vec<[Value; 8]> = Vec::with_capacity(record.relations.len());
        for relation in &record.relations {
            let Some(object) = linkpath(relation.object)? else { continue };
            let subject = match relation.subject {
                None => NOTE_ITSELF,
                Some(at) => match linkpath(at)? {
                    Some(id) => id,
                    None => continue,
                },
            };
            rows.push([
                source.into(),
                object.into(),
                subject.into(),
                relation.kind.clone().into(),
                relation.is_inferred.into(),
                (relation.line as i64).into(),
                (relation.evidence.start as i64).into(),
                (relation.evidence.len() as i64).into(),
            ]);
        }
        INTO_RELATIONS.insert(&self.reader().db, &rows)
    }
}

/// Queries of the catalog about relations.
#[derive(Debug, Clone, Copy)]
pub struct RelationQueries<'a>(&'a CatalogReader);

/// The columns of [`RelationRow`], with the ends as files.
const RELATIONS: &str = "SELECT CASE r.subject WHEN 0 THEN r.source ELSE s.target END, r.type, o.target, r.inferred, r.source, \
    r.line, r.start, r.length FROM relations r JOIN links o ON o.source = r.source AND o.linkpath = r.object \
    LEFT JOIN links s ON s.source = r.source AND s.linkpath = r.subject";

impl<'a> RelationQueries<'a> {
    /// Returns the queries on a catalog.
    pub fn of_catalog(catalog: &'a CatalogReader) -> Self {
        Self(catalog)
    }

    /// Lists the relations from files and to them, in the order of the notes that state them. Notes that are excluded, archived
    /// or forgotten state nothing.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn of(&self, files: &[FileId]) -> Result<Vec<RelationRow>> {
        let query = format!(
            "{RELATIONS} JOIN files f ON f.id = r.source
             WHERE r.source IN (SELECT source FROM links WHERE target IN {IDS} UNION SELECT value FROM {IDS})
             AND (o.target IN {IDS} OR s.target IN {IDS} OR (r.subject = 0 AND r.source IN {IDS}))
             AND o.target IS NOT NULL AND (r.subject = 0 OR s.target IS NOT NULL)
             AND NOT f.excluded AND f.put_away = 0
             ORDER BY f.path, r.start, r.line, r.type, o.target"
        );
        self.0.collect(&query, [id_list(files)], read_relation)
    }

    /// Lists the kinds that a note states by links in its properties, as [`note_kinds`](sidenote_config::note_kinds::note_kinds)
    /// does, in lower case.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn linked_kinds(&self, file: FileId) -> Result<Vec<String>> {
        let places = vec!["?"; KIND_PROPERTIES.len()].join(", ");
        let query = format!(
            "SELECT l.linkpath FROM relations r JOIN linkpaths l ON l.id = r.object
             WHERE r.source = ? AND r.subject = {NOTE_ITSELF} AND NOT r.inferred AND r.type IN ({places})"
        );
        let given =
            std::iter::once(Value::from(file)).chain(KIND_PROPERTIES.map(|name| name.to_owned().into()));
        let paths: Vec<String> =
            self.0.collect(&query, rusqlite::params_from_iter(given), |row| row.get(0))?;
        Ok(paths.iter().map(|path| linked_kind(path)).collect())
    }

    /// Returns whether any note states a relation.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn are_there(&self) -> Result<bool> {
        Ok(!self.0.collect("SELECT 1 FROM relations LIMIT 1", [], |_| Ok(()))?.is_empty())
    }

    /// Lists all relations.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn all(&self) -> Result<Vec<RelationRow>> {
        let query = format!(
            "{RELATIONS} JOIN files f ON f.id = r.source
             WHERE o.target IS NOT NULL AND (r.subject = 0 OR s.target IS NOT NULL)
             AND NOT f.excluded AND f.put_away = 0"
        );
        self.0.collect(&query, [], read_relation)
    }

    /// Lists the relations with one type, under this name.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn with_type(&self, kind: &str) -> Result<Vec<RelationRow>> {
        let query = format!(
            "{RELATIONS} JOIN files f ON f.id = r.source
             WHERE r.type = ?1 AND o.target IS NOT NULL AND (r.subject = 0 OR s.target IS NOT NULL)
             AND NOT f.excluded AND f.put_away = 0"
        );
        self.0.collect(&query, params![kind], read_relation)
    }
}

impl RelationQueries<'_> {
    /// Lists at most `limit` relations with one of these types.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn some_with_types(&self, kinds: &[String], limit: usize) -> Result<Vec<RelationRow>> {
        let places = vec!["?"; kinds.len()].join(", ");
        let query = format!(
            "{RELATIONS} JOIN files f ON f.id = r.source
             WHERE r.type IN ({places}) AND o.target IS NOT NULL AND (r.subject = 0 OR s.target IS NOT NULL)
             AND NOT f.excluded AND f.put_away = 0 LIMIT {limit}"
        );
        self.0.collect(&query, rusqlite::params_from_iter(kinds), read_relation)
    }
}

fn read_relation(row: &Row<'_>) -> rusqlite::Result<RelationRow> {
    let number = |column| Ok::<_, rusqlite::Error>(usize::try_from(row.get::<_, i64>(column)?).unwrap_or(0));
    let start = number(6)?;
    Ok(RelationRow {
        subject: row.get(0)?,
        kind: row.get(1)?,
        object: row.get(2)?,
        is_inferred: row.get(3)?,
        source: row.get(4)?,
        line: number(5)?,
        evidence: Span::new(start, start + number(7)?),
    })
}
