//! Lookup of files by name: id, file name, title and alias.

use std::collections::{BTreeSet, HashMap};

use rusqlite::params;
use sidenote_base::error::Result;
use sidenote_links::resolve::{FileNames, name_keys};
use sidenote_markdown::path::{NotePath, key};
use uuid::Uuid;

use crate::schema::{NAME_ALIAS, NAME_ID, NAME_TITLE};
use crate::{CatalogReader, FILE_COLUMNS, FileId, FileKind, FileRow, path_id, read_file};

/// Returns the query that finds a file by the UUIDv5 of its path. It is public so that a test can check its query plan.
pub fn path_id_query() -> String {
    format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.path_id = ?1")
}

/// Queries of the catalog by name.
#[derive(Debug, Clone, Copy)]
pub struct NameQueries<'a>(&'a CatalogReader);

impl CatalogReader {
    /// Returns the queries by name.
    pub fn names(&self) -> NameQueries<'_> {
        NameQueries(self)
    }
}

impl NameQueries<'_> {
    /// Lists the notes that a name identifies as id, file name, title or alias, in this order of preference. Only the
    /// matches of the first kind that has any are returned.
    pub fn best_matches(&self, name: &str) -> Result<Vec<FileRow>> {
        let wanted = key(name);
        let by_name = |what: i64| {
            self.0.collect(
                &format!("SELECT DISTINCT {FILE_COLUMNS} FROM names n JOIN files f ON f.id = n.file WHERE n.key = ?1 AND n.what = ?2 ORDER BY f.path"),
                params![wanted, what],
                read_file,
            )
        };
        let mut rows = self.with_id(name)?;
        if rows.is_empty() {
            rows = self.0.collect(
                &format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.name_key IN (?1 || '.md', ?1 || '.canvas') ORDER BY f.path"),
                [&wanted],
                read_file,
            )?;
        }
        for what in [NAME_TITLE, NAME_ALIAS] {
            if rows.is_empty() {
                rows = by_name(what)?;
            }
        }
        Ok(rows)
    }

    /// Lists the visible notes with this id: an `id` property, or else the id of the path.
    pub fn with_id(&self, id: &str) -> Result<Vec<FileRow>> {
        let wanted = key(id);
        let mut rows = self.0.collect(
            &format!("SELECT DISTINCT {FILE_COLUMNS} FROM names n JOIN files f ON f.id = n.file WHERE n.key = ?1 AND n.what = ?2 ORDER BY f.path"),
            params![wanted, NAME_ID],
            read_file,
        )?;
        if rows.is_empty() {
            rows.extend(self.at_path_id(&wanted)?.filter(|row| row.note_id == wanted));
        }
        rows.retain(|row| row.kind == FileKind::Note && !row.excluded);
        Ok(rows)
    }

    /// Lists the files with an `id` property that another file has too, as a property or as the id of its path.
    pub fn with_shared_ids(&self) -> Result<Vec<FileId>> {
        let ids: Vec<(String, FileId)> =
            self.0.collect("SELECT key, file FROM names WHERE what = ?1", [NAME_ID], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let mut files: HashMap<String, Vec<FileId>> = HashMap::new();
        for (id, file) in ids {
            files.entry(id).or_default().push(file);
        }
        let mut shared = Vec::new();
        for (id, mut files) in files {
            files.extend(self.at_path_id(&id)?.map(|row| row.id));
            if files.len() > 1 {
                shared.append(&mut files);
            }
        }
        Ok(shared)
    }

    /// Finds the visible note whose path has this id, even if the note has an `id` property.
    pub fn with_path_id(&self, id: &str) -> Result<Option<FileRow>> {
        Ok(self.at_path_id(id)?.filter(|row| row.kind == FileKind::Note && !row.excluded))
    }

    /// Finds the file whose path has this id, by the index on the ids of paths.
    fn at_path_id(&self, id: &str) -> Result<Option<FileRow>> {
        let Ok(uuid) = Uuid::parse_str(id) else { return Ok(None) };
        let row = self.0.collect(&path_id_query(), [uuid.into_bytes()], read_file)?.pop();
        // Other spellings of a UUID are not ids of paths.
        Ok(row.filter(|row| path_id(&row.path) == id))
    }

    /// Lists the notes that a link text without its subpath resolves to from the root of the vault.
    pub fn resolve_link(&self, linkpath: &str) -> Result<Vec<FileRow>> {
        let mut names = FileNames::default();
        let table = self.0.paths().named(&name_keys(linkpath))?;
        table.iter().for_each(|(path, _)| names.insert(path));
        let Some(root) = NotePath::from_disk("root.md") else {
            return Ok(Vec::new());
        };
        let found = names.resolve(linkpath, &root).map(|resolved| resolved.path.as_str().to_owned());
        match found {
            Some(path) => Ok(self.0.row_at(&path)?.into_iter().collect()),
            None => Ok(Vec::new()),
        }
    }

    /// Lists file names, titles and aliases that contain a text, the shortest first, for suggestions.
    pub fn containing(&self, part: &str, limit: usize) -> Result<Vec<String>> {
        // A part of one letter is in most names, of which only the best are kept.
        let mut best: BTreeSet<(usize, String)> = BTreeSet::new();
        self.each_where(
            (
                "AND instr(substr(f.name_key, 1, length(f.name_key) - length('.md')), ?1)",
                "AND instr(n.key, ?1)",
            ),
            [key(part)],
            |name| {
                let length = name.chars().count();
                let is_better = |(last, text): &(usize, String)| (length, name) < (*last, text.as_str());
                if best.len() < limit || best.last().is_some_and(is_better) {
                    best.insert((length, name.to_owned()));
                    if best.len() > limit {
                        best.pop_last();
                    }
                }
            },
        )?;
        Ok(best.into_iter().map(|(_, name)| name).collect())
    }

    /// Visits the file name, title and aliases of each note.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn each(&self, visit: impl FnMut(&str)) -> Result<()> {
        self.each_where(("", ""), [], visit)
    }

    /// Visits the file names of some notes, and titles and aliases, by a condition for each of the two.
    fn each_where(
        &self,
        (of_files, of_names): (&str, &str),
        values: impl rusqlite::Params,
        mut visit: impl FnMut(&str),
    ) -> Result<()> {
        self.0.collect(
            &format!(
                "SELECT f.path, 1 FROM files f WHERE f.kind = 0 {of_files}
                 UNION ALL SELECT ifnull(n.spelling, f.title), 0 FROM names n JOIN files f ON f.id = n.file
                 WHERE n.what < 2 {of_names}"
            ),
            values,
            |row| {
                let Some(name) = row.get_ref(0)?.as_str_or_null()? else { return Ok(()) };
                match row.get(1)? {
                    true => visit(file_name(name)),
                    false => visit(name),
                }
                Ok(())
            },
        )?;
        Ok(())
    }

    /// Lists the searchable files whose title, alias or file name without extension equals a name, ignoring case.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn with_title_or_name(&self, name: &str) -> Result<Vec<FileId>> {
        let searchable = "kind < 2 AND NOT excluded";
        self.0.collect(
            &format!(
                "SELECT id FROM files WHERE name_key IN (?1 || '.md', ?1 || '.canvas') AND {searchable}
                 UNION SELECT f.id FROM names n JOIN files f ON f.id = n.file
                 WHERE n.key = ?1 AND n.what IN ({NAME_TITLE}, {NAME_ALIAS}) AND {searchable} ORDER BY 1"
            ),
            [key(name)],
            |row| row.get(0),
        )
    }
}

/// Returns the name of a note's file without its folder and extension.
fn file_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}
