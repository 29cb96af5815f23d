//! Relations by the types of the rules, independent of the name that a note gives them and of the end that states them.

use std::collections::{HashMap, HashSet};

use sidenote_base::error::Result;
use sidenote_catalog::{CatalogReader, FileId, RelationQueries, RelationRow};
use sidenote_config::RelationConfig;
use sidenote_config::note_kinds::is_kind_of;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::relation::{RelationEnd, RelationRules};

/// The most notes over which a shared relation is followed, such as the meetings of a person.
const MAX_SHARED: usize = 100;

/// A relation of a type, between two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedRelation {
    /// The name of the type, or of the relation where the rules have no type for it.
    pub kind: String,
    /// The file that it leads from.
    pub subject: FileId,
    /// The file that it leads to.
    pub object: FileId,
    /// How a note states it.
    pub stated: RelationRow,
    /// Whether it follows from two relations of another type, which `stated` is one of: who attended one meeting has met.
    pub is_shared: bool,
}

impl TypedRelation {
    /// Returns the file at one end.
    pub fn at(&self, end: RelationEnd) -> FileId {
        match end {
            RelationEnd::Subject => self.subject,
            RelationEnd::Object => self.object,
        }
    }
}

/// A file at an end of a relation.
#[derive(Debug)]
struct RelationFile {
    path: NotePath,
    /// The kinds that the note states, in lower case.
    kinds: Vec<String>,
}

/// Returns a relation from the other end.
fn turned(relation: TypedRelation) -> TypedRelation {
    TypedRelation { subject: relation.object, object: relation.subject, ..relation }
}

/// Looks up relations by type.
#[derive(Debug, Clone, Copy)]
pub struct TypedRelations<'a> {
    catalog: &'a CatalogReader,
    rules: &'a RelationRules,
}

impl<'a> TypedRelations<'a> {
    /// Looks up the relations of a catalog by these rules.
    pub fn new(catalog: &'a CatalogReader, rules: &'a RelationRules) -> Self {
        Self { catalog, rules }
    }

    /// Lists the relations from a file and to it, those that are written as such before inferred ones. One that several
    /// types can mean is listed for each.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the catalog cannot be read.
    pub fn of(&self, file: FileId) -> Result<Vec<TypedRelation>> {
        let mut relations = self.typed(RelationQueries::of_catalog(self.catalog).of(&[file])?)?;
        relations.sort_by_key(|relation| relation.stated.is_inferred);
        Ok(relations)
    }

    /// Lists the relations of a type in which a file is at one end. Two notes that share the objects of another type are
    /// related, too, if the rules say so: people who attended one meeting have met.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the catalog cannot be read.
    pub fn with_end(&self, kind: &str, file: FileId, end: RelationEnd) -> Result<Vec<TypedRelation>> {
        self.with_end_among(&self.of(file)?, kind, file, end)
    }

    /// Lists what [`TypedRelations::with_end`] does, from all relations of the file.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the catalog cannot be read.
    pub(crate) fn with_end_among(
        &self,
        own: &[TypedRelation],
        kind: &str,
        file: FileId,
        end: RelationEnd,
    ) -> Result<Vec<TypedRelation>> {
        let mut found = self.direct(own, kind, file, end);
        let shared =
            self.rules.get(kind).map(|kind| kind.shared.as_str()).filter(|shared| !shared.is_empty());
        let Some(shared) = shared else { return Ok(found) };
        for common in self.direct(own, shared, file, RelationEnd::Subject).iter().take(MAX_SHARED) {
            let around = self.of(common.object)?;
            for other in self.direct(&around, shared, common.object, RelationEnd::Object) {
                if other.subject != file {
                    let met = TypedRelation {
                        kind: kind.to_owned(),
                        subject: file,
                        object: other.subject,
                        is_shared: true,
                        ..other
                    };
                    found.push(if end == RelationEnd::Subject { met } else { turned(met) });
                }
            }
        }
        Ok(found)
    }

    /// Lists the relations of a type in which a file is at one end, without shared ones.
    fn direct(
        &self,
        own: &[TypedRelation],
        kind: &str,
        file: FileId,
        end: RelationEnd,
    ) -> Vec<TypedRelation> {
        let is_symmetric = self.is_symmetric(kind);
        let of_kind = own.iter().filter(|relation| relation.kind == kind);
        let found = of_kind.filter_map(|relation| {
            if relation.at(end) == file {
                Some(relation.clone())
            } else {
                (is_symmetric && relation.at(end.other()) == file).then(|| turned(relation.clone()))
            }
        });
        found.collect()
    }

    /// Lists the relations of a type between any files.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the catalog cannot be read.
    pub fn of_type(&self, kind: &str) -> Result<Vec<TypedRelation>> {
        let mut rows = Vec::new();
        for (name, _) in self.rules.names_of(kind) {
            rows.extend(RelationQueries::of_catalog(self.catalog).with_type(&name)?);
        }
        Ok(self.typed(rows)?.into_iter().filter(|relation| relation.kind == kind).collect())
    }

    /// Lists some relations of a type between any files, at most `limit`.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the catalog cannot be read.
    pub fn sample(&self, kind: &str, limit: usize) -> Result<Vec<TypedRelation>> {
        let names: Vec<String> = self.rules.names_of(kind).into_iter().map(|(name, _)| name).collect();
        let rows = RelationQueries::of_catalog(self.catalog).some_with_types(&names, limit)?;
        Ok(self.typed(rows)?.into_iter().filter(|relation| relation.kind == kind).collect())
    }

    /// Returns whether a type is its own inverse.
    pub(crate) fn is_symmetric(&self, kind: &str) -> bool {
        self.rules.get(kind).is_some_and(|rule| rule.inverse == kind)
    }

    /// Gives relations the types that their names mean.
    fn typed(&self, rows: Vec<RelationRow>) -> Result<Vec<TypedRelation>> {
        let files = self.files_at(&rows)?;
        // A note about a deal states what its investors invested in, and is not the object itself.
        let is_between = |row: &RelationRow| row.subject != row.source && row.object != row.source;
        let between: HashSet<(FileId, String, usize)> = rows
            .iter()
            .filter(|row| is_between(row) && !row.is_inferred)
            .map(|row| (row.source, row.kind.clone(), row.evidence.start))
            .collect();
        // Words of several types mean the one that asks for notes of this kind: who joined a meeting attended it.
        let has_objects = |kind: &str| self.rules.get(kind).is_some_and(|rule| !rule.objects.is_empty());
        let asks_for = |row: &RelationRow| {
            row.is_inferred
                && has_objects(&row.kind)
                && self.can_be_object(&row.kind, files.get(&row.object), false)
        };
        let place = |row: &RelationRow| (row.source, row.subject, row.object, row.evidence.start);
        let claimed: HashSet<_> = rows.iter().filter(|row| asks_for(row)).map(place).collect();
        let mut found = Vec::with_capacity(rows.len());
        for stated in rows {
            if stated.is_inferred && claimed.contains(&place(&stated)) && !asks_for(&stated) {
                continue;
            }
            let before = found.len();
            let meanings = self.rules.meant_by(&stated.kind);
            let is_sure = meanings.len() == 1 && !stated.is_inferred;
            for (kind, end) in meanings {
                let (subject, object) = match end {
                    RelationEnd::Subject => (stated.subject, stated.object),
                    RelationEnd::Object => (stated.object, stated.subject),
                };
                let fits = self.can_be_subject(&kind, files.get(&subject))
                    && self.can_be_object(&kind, files.get(&object), is_sure);
                let is_of_deal = object == stated.source
                    && between.contains(&(stated.source, kind.clone(), stated.evidence.start));
                if subject != object && fits && is_of_deal {
                    continue;
                }
                if let Some((kind, met)) = self.met_in(&kind, (subject, object), &files).filter(|_| fits) {
                    let (subject, object) = (met, if met == subject { object } else { subject });
                    let stated = stated.clone();
                    found.push(TypedRelation { kind, subject, object, stated, is_shared: false });
                } else if subject != object && fits {
                    let stated = stated.clone();
                    found.push(TypedRelation { kind, subject, object, stated, is_shared: false });
                }
            }
            // So do names: `people` of a meeting attended it, and do not work there.
            let meant = found.split_off(before);
            let pair = |one: &TypedRelation| (one.subject, one.object);
            let claimed: HashSet<_> = meant.iter().filter(|one| has_objects(&one.kind)).map(pair).collect();
            found.extend(
                meant.into_iter().filter(|one| has_objects(&one.kind) || !claimed.contains(&pair(one))),
            );
            // `company` in a note about a deal is not an employer, but it is its company.
            if found.len() == before && stated.subject != stated.object && !stated.is_inferred {
                let (kind, subject, object) = (stated.kind.clone(), stated.subject, stated.object);
                found.push(TypedRelation { kind, subject, object, stated, is_shared: false });
            }
        }
        Ok(found)
    }

    /// Returns the files at the ends of relations, with the kinds that they state where a type asks for kinds.
    fn files_at(&self, rows: &[RelationRow]) -> Result<HashMap<FileId, RelationFile>> {
        let ids: HashSet<FileId> = rows.iter().flat_map(|row| [row.subject, row.object]).collect();
        let names: HashSet<&str> = rows.iter().map(|row| row.kind.as_str()).collect();
        let asks_for_kinds = names.into_iter().flat_map(|name| self.rules.meant_by(name)).any(|(kind, _)| {
            let asks = |rule: &RelationConfig| {
                !(rule.subjects.is_empty() && rule.objects.is_empty() && rule.shared.is_empty())
            };
            self.rules.get(&kind).is_some_and(asks)
        });
        let queries = RelationQueries::of_catalog(self.catalog);
        let mut files = HashMap::with_capacity(ids.len());
        for row in self.catalog.rows(&ids.into_iter().collect::<Vec<_>>())? {
            let kinds = match &row.note_type {
                Some(kind) => vec![kind.to_lowercase()],
                None if asks_for_kinds => queries.linked_kinds(row.id)?,
                None => Vec::new(),
            };
            files.insert(row.id, RelationFile { path: row.path, kinds });
        }
        Ok(files)
    }

    /// Reads "met with [[Jane]]" in a note about a meeting: Jane attended it. Returns the type that the relation shares, and who
    /// is its subject.
    fn met_in(
        &self,
        kind: &str,
        (subject, object): (FileId, FileId),
        files: &HashMap<FileId, RelationFile>,
    ) -> Option<(String, FileId)> {
        let shared = self.rules.get(kind).map(|rule| rule.shared.as_str()).filter(|name| !name.is_empty())?;
        let is_meeting = |file: FileId| {
            let row = files.get(&file);
            row.is_some() && self.can_be_object(shared, row, false)
        };
        let met = match (is_meeting(subject), is_meeting(object)) {
            (true, false) => object,
            (false, true) => subject,
            _ => return None,
        };
        Some((shared.to_owned(), met))
    }

    /// Says whether a file can be the object of a type. If the relation is not sure, the file must be of a wanted kind.
    fn can_be_object(&self, kind: &str, file: Option<&RelationFile>, is_sure: bool) -> bool {
        let wanted = self.rules.get(kind).map_or(&[][..], |kind| kind.objects.as_slice());
        let Some(file) = file.filter(|_| !wanted.is_empty()) else { return true };
        let is_in_folder =
            || file.path.folder().split('/').any(|name| is_kind_of(&name.to_lowercase(), wanted));
        let is_wanted = file.kinds.iter().any(|kind| is_kind_of(kind, wanted));
        is_wanted || (is_sure && file.kinds.is_empty()) || (!is_sure && is_in_folder())
    }

    fn can_be_subject(&self, kind: &str, file: Option<&RelationFile>) -> bool {
        let wanted = self.rules.get(kind).map_or(&[][..], |kind| kind.subjects.as_slice());
        let kinds = file.map_or(&[][..], |file| file.kinds.as_slice());
        wanted.is_empty() || kinds.is_empty() || kinds.iter().any(|kind| is_kind_of(kind, wanted))
    }
}
