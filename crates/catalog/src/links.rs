//! Links in the catalog. Each link text is stored once for the whole vault, and each note has one row for all its links
//! with the same text, which have the same target.

use std::cell::RefCell;
use std::collections::HashSet;

use hashbrown::HashMap;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};
use sidenote_base::error::Result;
use sidenote_links::dialect::{DialectUnit, LinkDialects};
use sidenote_links::dialect_evidence::LinkEvidence;
use sidenote_markdown::link::{LinkSyntax, is_placeholder};
use sidenote_markdown::path::{NotePath, key};
use sidenote_sets::interner::Interner;

use super::inserts::Inserts;
use super::{
    CatalogReader, CatalogWriter, FileId, FileRow, LinkGroup, LinkRole, LinkRow, read_file, read_path, sql,
};
use crate::FILE_COLUMNS;
use crate::delta_encoding::{pack_positions, unpack_positions};
use crate::schema::UNSURE;

static INTO_LINKS: Inserts<6> = Inserts::new("INSERT INTO links VALUES");

const COLUMNS: &str = "l.source, p.syntax, p.linkpath, l.target, l.places, l.evidence";
/// The index of the first column after [`COLUMNS`].
const WIDTH: usize = 6;

impl CatalogWriter {
    /// Inserts the links of a file.
    pub(super) fn put_links(&self, source: FileId, groups: &[LinkGroup]) -> Result<()> {
        let row = |links: &LinkGroup| -> Result<[Value; 6]> {
            let linkpath = self.linkpath(&links.linkpath, links.syntax)?;
            let count = links.positions.len() as i64;
            self.counts.add_links(links.evidence, count);
            let target = links.target.map_or(Value::Null, Value::Integer);
            Ok([
                source.into(),
                linkpath.into(),
                target,
                count.into(),
                i64::from(links.evidence.code()).into(),
                pack_positions(&links.positions).into(),
            ])
        };
        let rows = groups.iter().map(row).collect::<Result<Vec<_>>>()?;
        INTO_LINKS.insert(&self.reader().db, &rows)
    }

    /// Returns the id of a link text, which is inserted if it is new.
    ///
    /// During a load there is no index to look it up by, and no text that this batch did not insert itself.
    pub(super) fn linkpath(&self, linkpath: &str, syntax: LinkSyntax) -> Result<i64> {
        if let Some(id) = self.linkpaths.borrow()[code_of(syntax)].find(linkpath) {
            return Ok(id);
        }
        let found = if self.is_loading.get() {
            None
        } else {
            self.reader()
                .db
                .prepare_cached(
                    "SELECT id FROM linkpaths WHERE name_key = ?1 AND linkpath = ?2 AND syntax = ?3",
                )
                .and_then(|mut select| {
                    let wanted = params![link_key(linkpath), linkpath, code_of(syntax) as i64];
                    select.query_row(wanted, |row| row.get(0)).optional()
                })
                .map_err(sql("read"))?
        };
        let id = match found {
            Some(id) => id,
            None => {
                self.run(
                    "INSERT INTO linkpaths (linkpath, syntax, name_key) VALUES (?1, ?2, ?3)",
                    params![linkpath, code_of(syntax) as i64, link_key(linkpath)],
                )?;
                self.reader().db.last_insert_rowid()
            }
        };
        self.linkpaths.borrow_mut()[code_of(syntax)].insert(linkpath, id);
        Ok(id)
    }

    /// Changes the target and the evidence of a note's links with one text. `links` is what the catalog
    /// has now, from which the counts change by difference.
    pub fn retarget(
        &self,
        source: FileId,
        links: &LinkGroup,
        target: Option<FileId>,
        evidence: LinkEvidence,
    ) -> Result<()> {
        let linkpath = self.linkpath(&links.linkpath, links.syntax)?;
        let count = links.positions.len() as i64;
        self.counts.add_links(links.evidence, -count);
        self.counts.add_links(evidence, count);
        self.run(
            "UPDATE links SET target = ?3, evidence = ?4 WHERE source = ?1 AND linkpath = ?2",
            params![source, linkpath, target, evidence.code()],
        )
    }
}

/// The ids of link texts that a batch looked up or inserted.
#[derive(Debug, Default)]
pub(super) struct LinkpathIds {
    texts: Interner,
    /// The id of each text, by its number.
    ids: Vec<i64>,
}

impl LinkpathIds {
    /// The most bytes of link texts that are remembered. A text that is not remembered is looked up or inserted again.
    const MAX_SIZE: usize = 1 << 31;

    fn find(&self, linkpath: &str) -> Option<i64> {
        self.texts.find(linkpath.as_bytes()).and_then(|number| self.ids.get(number as usize).copied())
    }

    fn insert(&mut self, linkpath: &str, id: i64) {
        if self.texts.strings().size() + linkpath.len() < Self::MAX_SIZE
            && self.texts.number_of(linkpath.as_bytes()) as usize == self.ids.len()
        {
            self.ids.push(id);
        }
    }
}

/// The link texts of all files, each text once.
#[derive(Debug, Default)]
pub struct LinkTexts {
    /// The texts, with how their paths are read.
    pub texts: Vec<(String, LinkSyntax)>,
    /// The files with links or mentions, each with the indexes of its texts.
    pub files: Vec<(NotePath, Vec<usize>)>,
}

/// The unresolved ones of the links without a target. The others lead to a folder or beyond the files of the vault, or stand
/// for a name that is filled in later.
struct UnresolvedLinks<'a> {
    catalog: &'a CatalogReader,
    dialects: LinkDialects,
    /// Whether each folder exists that was asked for. Many links name few folders.
    folders: RefCell<HashMap<String, bool>>,
}

impl<'a> UnresolvedLinks<'a> {
    fn new(catalog: &'a CatalogReader) -> Result<Self> {
        Ok(Self { catalog, dialects: catalog.links().dialects()?, folders: RefCell::default() })
    }

    /// Returns whether the place that a link means depends on the file that has it.
    fn depends_on_source(&self, linkpath: &str, syntax: LinkSyntax) -> bool {
        let is_rooted = linkpath.starts_with('/') && self.dialects.units().len() == 1;
        syntax == LinkSyntax::Markdown && !is_rooted
    }

    /// Returns whether a link without a target is unresolved in a file.
    fn contain(&self, linkpath: &str, syntax: LinkSyntax, source: &NotePath) -> Result<bool> {
        if is_placeholder(linkpath) {
            return Ok(false);
        }
        match syntax {
            LinkSyntax::Markdown => self.contain_in(self.dialects.unit_of(source), linkpath, source),
            _ => Ok(true),
        }
    }

    fn contain_in(&self, unit: &DialectUnit, linkpath: &str, source: &NotePath) -> Result<bool> {
        let has_folder = |folder: &str| {
            if let Some(is_there) = self.folders.borrow().get(folder) {
                return Ok(*is_there);
            }
            let is_there = self.catalog.paths().has_folder(folder)?;
            self.folders.borrow_mut().insert(folder.to_owned(), is_there);
            Ok(is_there)
        };
        Ok(!unit.can_lead_beyond() || !unit.leads_beyond_files(linkpath, source, has_folder)?)
    }
}

/// Queries of the catalog about links.
#[derive(Debug, Clone, Copy)]
pub struct LinkQueries<'a>(pub(super) &'a CatalogReader);

impl CatalogReader {
    /// Returns the queries about links.
    pub fn links(&self) -> LinkQueries<'_> {
        LinkQueries(self)
    }
}

impl LinkQueries<'_> {
    /// Lists the links whose target or evidence can change when files with these names are added, removed or renamed: links
    /// with such a name that are unresolved or lead to a file under some dialects alone, and resolved links to files with such a
    /// name. Each comes once, with the id and path of its source.
    pub fn affected_by_names(&self, name_keys: &[String]) -> Result<Vec<(FileId, NotePath, LinkGroup)>> {
        let mut found: Vec<(FileId, NotePath, LinkGroup)> = Vec::new();
        let mut texts = HashSet::new();
        let mut files = HashSet::new();
        for name in name_keys {
            let folded = link_key(name);
            let bare = folded.strip_suffix(".md").unwrap_or(&folded);
            // A link can omit `.md`, and a file without `.md` in its name can take precedence over one with it.
            texts.extend([bare.to_owned(), folded.clone()]);
            files.extend([name.clone(), format!("{name}.md"), format!("{folded}.md")]);
        }
        let read = |row: &Row<'_>| Ok((row.get(0)?, read_path(row, WIDTH)?, read_group(row)?));
        let by_text = format!("p.name_key = ?1 AND {UNSURE}");
        for (condition, keys) in
            [(by_text.as_str(), texts), ("l.target IN (SELECT id FROM files WHERE name_key = ?1)", files)]
        {
            let query = format!(
                "SELECT {COLUMNS}, f.path FROM links l JOIN linkpaths p ON p.id = l.linkpath JOIN files f ON f.id = l.source WHERE {condition}"
            );
            for key in keys {
                found.extend(self.0.collect(&query, [key], read)?);
            }
        }
        let link = |(source, _, links): &(FileId, NotePath, LinkGroup)| {
            (*source, code_of(links.syntax), links.linkpath.clone())
        };
        found.sort_by_cached_key(link);
        found.dedup_by(|one, other| link(one) == link(other));
        Ok(found)
    }

    /// Lists the paths of the files that link to any of these files.
    pub fn sources_of(&self, targets: &[NotePath]) -> Result<HashSet<NotePath>> {
        let mut found = HashSet::new();
        for target in targets {
            found.extend(self.0.collect(
                "SELECT DISTINCT f.path FROM files t JOIN links l ON l.target = t.id JOIN files f ON f.id = l.source WHERE t.path = ?1",
                [target.as_str()],
                |row| read_path(row, 0),
            )?);
        }
        Ok(found)
    }

    /// Lists the link texts of all files, those of mentions included. Each table is read once, in order.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn texts(&self) -> Result<LinkTexts> {
        let mut texts = LinkTexts::default();
        let mut places: HashMap<i64, usize> = HashMap::new();
        let all = self.0.collect("SELECT id, linkpath, syntax FROM linkpaths", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, syntax_of(row.get(2)?)))
        })?;
        for (id, linkpath, syntax) in all {
            places.insert(id, texts.texts.len());
            texts.texts.push((linkpath, syntax));
        }
        let files = self.0.collect("SELECT id, path FROM files", [], |row| {
            Ok((row.get::<_, FileId>(0)?, read_path(row, 1)?))
        })?;
        let mut files: HashMap<FileId, NotePath> = files.into_iter().collect();
        let mut statement = self
            .0
            .db
            .prepare_cached("SELECT source, linkpath FROM links ORDER BY source")
            .map_err(sql("read"))?;
        let mut rows = statement.query([]).map_err(sql("read"))?;
        let mut last: Option<(FileId, Vec<usize>)> = None;
        let mut keep = |ended: Option<(FileId, Vec<usize>)>| {
            let ended = ended.and_then(|(source, inside)| Some((files.remove(&source)?, inside)));
            texts.files.extend(ended);
        };
        while let Some(row) = rows.next().map_err(sql("read"))? {
            let source: FileId = row.get(0).map_err(sql("read"))?;
            let text: i64 = row.get(1).map_err(sql("read"))?;
            if last.as_ref().is_none_or(|(known, _)| *known != source) {
                keep(last.replace((source, Vec::new())));
            }
            if let (Some((_, inside)), Some(&at)) = (&mut last, places.get(&text)) {
                inside.push(at);
            }
        }
        keep(last);
        Ok(texts)
    }

    fn link_rows<P: rusqlite::Params>(&self, rest: &str, values: P) -> Result<Vec<LinkRow>> {
        let query = format!("SELECT {COLUMNS} FROM links l JOIN linkpaths p ON p.id = l.linkpath {rest}");
        let groups = self.0.collect(&query, values, |row| Ok((row.get(0)?, read_group(row)?)))?;
        Ok(groups.into_iter().flat_map(|(source, links)| links.rows(source)).collect())
    }

    /// Lists the links of a file in order.
    pub fn outgoing(&self, id: FileId) -> Result<Vec<LinkRow>> {
        let mut rows = self.link_rows("WHERE l.source = ?1", [id])?;
        rows.sort_by_key(|row| row.position.ord);
        Ok(rows)
    }

    /// Lists the links to a file from other files, ordered by source and position.
    pub fn incoming(&self, id: FileId) -> Result<Vec<LinkRow>> {
        let mut rows = self.link_rows(
            "JOIN files f ON f.id = l.source WHERE l.target = ?1 AND l.source <> ?1 ORDER BY f.path",
            [id],
        )?;
        for group in rows.chunk_by_mut(|a, b| a.source == b.source) {
            group.sort_by_key(|row| row.position.ord);
        }
        Ok(rows)
    }

    /// Lists the unresolved links of visible files, or of some of these, ordered by link text.
    pub fn unresolved(&self, files: Option<&[FileId]>) -> Result<Vec<LinkRow>> {
        let among = files.map_or_else(String::new, |_| format!("AND l.source IN {IDS} "));
        let rest = format!("{among}AND NOT f.excluded ORDER BY lower(p.linkpath), f.path");
        let unresolved = UnresolvedLinks::new(self.0)?;
        let mut broken = Vec::new();
        let groups =
            self.groups(&format!("WHERE l.target IS NULL {rest}"), params_from_iter(files.map(id_list)))?;
        for (source, path, links) in groups {
            if unresolved.contain(&links.linkpath, links.syntax, &path)? {
                broken.push((source, links));
            }
        }
        Ok(broken.into_iter().flat_map(|(source, links)| links.rows(source)).collect())
    }

    /// Lists the paths of the files with a link without a target that leads above its folder, and so perhaps out of the vault.
    pub fn sources_of_links_above(&self) -> Result<Vec<NotePath>> {
        let groups = self.groups("WHERE l.target IS NULL AND p.linkpath LIKE '../%'", [])?;
        Ok(groups.into_iter().map(|(_, path, _)| path).collect())
    }

    /// Lists the paths of the files with a link that leads to a file by the rules of some dialects, and not of all.
    pub fn sources_by_some_dialects(&self) -> Result<Vec<NotePath>> {
        let groups = self.groups("WHERE l.target IS NOT NULL AND (l.evidence & 15) BETWEEN 1 AND 14", [])?;
        Ok(groups.into_iter().map(|(_, path, _)| path).collect())
    }

    /// Counts the unresolved links of all files.
    pub(super) fn count_unresolved(&self) -> Result<usize> {
        let mut count = 0;
        self.each_unresolved(|_, links| count += links)?;
        Ok(count)
    }

    /// Lists the files with an unresolved link.
    pub fn sources_of_unresolved(&self) -> Result<Vec<FileId>> {
        let mut sources = HashSet::new();
        self.each_unresolved(|source, _| {
            sources.insert(source);
        })?;
        let mut sources: Vec<FileId> = sources.into_iter().collect();
        sources.sort_unstable();
        Ok(sources)
    }

    /// Visits the unresolved links of all files: the source, and the number of its links of one text.
    fn each_unresolved(&self, mut visit: impl FnMut(FileId, usize)) -> Result<()> {
        let unresolved = UnresolvedLinks::new(self.0)?;
        let db = &self.0.db;
        let read =
            "SELECT linkpath, source, count FROM links WHERE target IS NULL AND count > 0 ORDER BY linkpath";
        let mut select = db.prepare_cached(read).map_err(sql("read"))?;
        let mut text_of =
            db.prepare_cached("SELECT linkpath, syntax FROM linkpaths WHERE id = ?1").map_err(sql("read"))?;
        let mut path_of = db.prepare_cached("SELECT path FROM files WHERE id = ?1").map_err(sql("read"))?;
        let mut rows = select.query([]).map_err(sql("read"))?;
        // The text of the last link, and whether such a link is unresolved wherever it stands, if that is known.
        let mut last: Option<(i64, String, LinkSyntax, Option<bool>)> = None;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            let id: i64 = row.get(0).map_err(sql("read"))?;
            if last.as_ref().is_none_or(|(known, ..)| *known != id) {
                let read = |row: &Row<'_>| Ok((id, row.get(0)?, syntax_of(row.get(1)?), None));
                last = Some(text_of.query_row([id], read).map_err(sql("read"))?);
            }
            let Some((_, text, syntax, known)) = &mut last else { continue };
            let source: FileId = row.get(1).map_err(sql("read"))?;
            let is_unresolved = match known {
                Some(is_unresolved) => *is_unresolved,
                None => {
                    let path = path_of.query_row([source], |row| read_path(row, 0)).map_err(sql("read"))?;
                    let is_unresolved = unresolved.contain(text, *syntax, &path)?;
                    *known = Some(is_unresolved).filter(|_| !unresolved.depends_on_source(text, *syntax));
                    is_unresolved
                }
            };
            if is_unresolved {
                let links: i64 = row.get(2).map_err(sql("read"))?;
                visit(source, usize::try_from(links).unwrap_or(0));
            }
        }
        Ok(())
    }

    /// Lists the files with a link that names a part of a note.
    pub fn sources_of_part_links(&self) -> Result<Vec<FileId>> {
        self.0.collect("SELECT file FROM details WHERE names_parts", [], |row| row.get(0))
    }

    /// Visits the links whose text and syntax are wanted: the source, the text and the syntax, once for each source and text.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn each_with_text(
        &self,
        wanted: impl Fn(&str, LinkSyntax) -> bool,
        mut visit: impl FnMut(FileId, &str, LinkSyntax),
    ) -> Result<()> {
        let texts: Vec<(i64, String, LinkSyntax)> =
            self.0.collect("SELECT id, linkpath, syntax FROM linkpaths", [], |row| {
                Ok((row.get(0)?, row.get(1)?, syntax_of(row.get(2)?)))
            })?;
        let texts = texts.into_iter().filter(|(_, text, syntax)| wanted(text, *syntax));
        let texts: HashMap<i64, (String, LinkSyntax)> =
            texts.map(|(id, text, syntax)| (id, (text, syntax))).collect();
        if texts.is_empty() {
            return Ok(());
        }
        let mut select = self
            .0
            .db
            .prepare_cached("SELECT linkpath, source FROM links WHERE count > 0")
            .map_err(sql("read"))?;
        let mut rows = select.query([]).map_err(sql("read"))?;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            if let Some((text, syntax)) = texts.get(&row.get::<_, i64>(0).map_err(sql("read"))?) {
                visit(row.get(1).map_err(sql("read"))?, text, *syntax);
            }
        }
        Ok(())
    }

    /// Lists all groups of links with the id and path of their source.
    pub fn all(&self) -> Result<Vec<(FileId, NotePath, LinkGroup)>> {
        self.groups("", [])
    }

    /// Lists groups of links with the id and path of their source. `rest` is the end of the query.
    fn groups(
        &self,
        rest: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<(FileId, NotePath, LinkGroup)>> {
        let query = format!(
            "SELECT {COLUMNS}, f.path FROM links l JOIN linkpaths p ON p.id = l.linkpath JOIN files f ON f.id = l.source {rest}"
        );
        self.0.collect(&query, values, |row| Ok((row.get(0)?, read_path(row, WIDTH)?, read_group(row)?)))
    }

    /// Visits the links between visible files: the source, the target, and the roles of the links between the two; with `files`,
    /// only those from or to one of these. Links of one pair with different texts are visited one after another.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn each_edge(
        &self,
        files: Option<&[FileId]>,
        mut visit: impl FnMut(FileId, FileId, LinkRole),
    ) -> Result<()> {
        let edges = "SELECT l.source, l.target, l.places FROM links l JOIN files f ON f.id = l.source
            JOIN files t ON t.id = l.target WHERE l.count > 0 AND NOT f.excluded AND NOT t.excluded";
        let query = match files {
            None => edges.to_owned(),
            Some(_) => {
                format!(
                    "{edges} AND l.source IN {IDS} UNION ALL {edges} AND l.target IN {IDS} AND l.source NOT IN {IDS}"
                )
            }
        };
        let ids = files.map(id_list);
        let mut statement = self.0.db.prepare_cached(&query).map_err(sql("read"))?;
        let mut rows = statement.query(params_from_iter(ids)).map_err(sql("read"))?;
        while let Some(row) = rows.next().map_err(sql("read"))? {
            let (source, target) = (row.get(0).map_err(sql("read"))?, row.get(1).map_err(sql("read"))?);
            let packed = row.get_ref(2).and_then(|value| Ok(value.as_blob()?)).map_err(sql("read"))?;
            let positions = unpack_positions(packed).unwrap_or_default();
            let mut roles: Vec<LinkRole> = positions.into_iter().map(|position| position.role).collect();
            roles.sort_unstable();
            roles.dedup();
            roles.into_iter().for_each(|role| visit(source, target, role));
        }
        Ok(())
    }

    /// Lists the visible notes that have no link to or from another file.
    pub fn orphans(&self) -> Result<Vec<FileRow>> {
        self.0.collect(
            &format!(
                "SELECT {FILE_COLUMNS} FROM files f WHERE f.kind = 0 AND NOT f.excluded
                 AND NOT EXISTS (SELECT 1 FROM links l WHERE l.target = f.id AND l.source <> f.id AND l.count > 0)
                 AND NOT EXISTS (SELECT 1 FROM links l WHERE l.source = f.id AND l.target IS NOT NULL AND l.target <> f.id AND l.count > 0)
                 ORDER BY f.path"
            ),
            [],
            read_file,
        )
    }

    /// Lists the files that link to a file or that it links to, each once.
    pub fn neighbours(&self, id: FileId) -> Result<Vec<FileId>> {
        self.0.collect(
            "SELECT target FROM links WHERE source = ?1 AND target IS NOT NULL AND count > 0 UNION SELECT source FROM links WHERE target = ?1 AND count > 0",
            [id],
            |row| row.get(0),
        )
    }
}

/// The files of a query, which [`id_list`] gives as its first parameter. A list of parameters has a limit.
pub(super) const IDS: &str = "(SELECT value FROM json_each(?1))";

/// Returns ids as the parameter of [`IDS`].
pub(super) fn id_list(files: &[FileId]) -> String {
    serde_json::json!(files).to_string()
}

fn read_group(row: &Row<'_>) -> rusqlite::Result<LinkGroup> {
    let packed = row.get_ref(4)?.as_blob()?;
    let positions = unpack_positions(packed).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(
            4,
            rusqlite::types::Type::Blob,
            "not a list of positions".into(),
        )
    })?;
    Ok(LinkGroup {
        syntax: syntax_of(row.get(1)?),
        linkpath: row.get(2)?,
        target: row.get(3)?,
        evidence: read_evidence(row, 5)?,
        positions,
    })
}

/// Reads the evidence of a link. A number without a meaning does not pass the check of the catalog.
pub(super) fn read_evidence(row: &Row<'_>, column: usize) -> rusqlite::Result<LinkEvidence> {
    Ok(LinkEvidence::from_code(row.get(column)?).unwrap_or_default())
}

/// The syntaxes of links. In the catalog, a syntax is its index in this list.
const SYNTAXES: [LinkSyntax; 3] = [LinkSyntax::Lookup, LinkSyntax::Exact, LinkSyntax::Markdown];

fn code_of(syntax: LinkSyntax) -> usize {
    SYNTAXES.iter().position(|known| *known == syntax).unwrap_or(0)
}

fn syntax_of(code: i64) -> LinkSyntax {
    usize::try_from(code).ok().and_then(|code| SYNTAXES.get(code)).copied().unwrap_or(LinkSyntax::Lookup)
}

/// Returns the form in which link texts and file names are compared: the key of the last segment up to a `#` or `?`, where the
/// path of a link can end. It has one form of the Greek sigma, because adding or removing `.md` changes which sigma is
/// final.
pub(super) fn link_key(text: &str) -> String {
    let mut segments = text.trim_end_matches('/').rsplit('/');
    let last = segments.next().unwrap_or(text);
    // A query can follow the path of a folder.
    let name = segments.find(|name| last.starts_with('?') && !name.is_empty()).unwrap_or(last);
    let name = name.find(['#', '?']).filter(|&at| at > 0).and_then(|at| name.get(..at)).unwrap_or(name);
    key(name).replace('ς', "σ")
}
