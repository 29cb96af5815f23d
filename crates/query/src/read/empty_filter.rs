//! Explains an empty result: names what a filter asks for and no note has, with the nearest name that one has.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{Filter, Kinds};
use sidenote_links::misspelled_name::TypedName;
use sidenote_markdown::path::{NotePath, key, typed_folder, typed_path};
use sidenote_search::metadata_filter::MetadataFilter;
use sidenote_search::path_filter;
use sidenote_search::predicate::has_property;
use sidenote_search::query_parser::{Field, QueryNode};
use sidenote_search::text_match::{Haystack, QueryTerm, QueryTermKind};
use sidenote_vault::symlinks::as_spelled_on_disk;

use crate::read::Reads;
use crate::read::list::PropertyCondition;

/// The largest number of names that are all listed where none of them is near.
const MOST_LISTED: usize = 10;

impl Reads<'_> {
    /// Returns a sentence for each part of a filter that no note meets, with the nearest name that one has: folder, tags, type,
    /// category, dates, a property, a path.
    ///
    /// # Errors
    /// `Invalid` for an invalid glob; `Corrupt` if the catalog cannot be read.
    pub fn absent(
        &self,
        filter: &Filter,
        property: Option<&PropertyCondition>,
        path: Option<&str>,
    ) -> Result<Vec<String>> {
        let mut told = Vec::new();
        if let Some(folder) = &filter.folder
            && let Err(error) = self.refuse_missing_folder(folder)
        {
            told.push(match error.hint() {
                Some(hint) if hint.starts_with(SUGGESTION) => format!("{error}; {hint}"),
                _ => error.to_string(),
            });
        }
        let catalog = self.core.index.catalog();
        let has_none = |only: Filter| -> Result<bool> { Ok(catalog.select_ids(&only)?.is_empty()) };
        let with = Filter { kinds: Kinds::Searched, ..Filter::default() };
        for tag in &filter.tags {
            if has_none(Filter { tags: vec![tag.clone()], ..with.clone() })? {
                let known = catalog.tags()?;
                let near = nearest(tag.trim_start_matches('#'), known.iter().map(|(tag, _)| tag.as_str()));
                told.push(format!("no note has the tag {tag:?}{near}"));
            }
        }
        if let Some(kind) = &filter.note_type
            && has_none(Filter { note_type: Some(kind.clone()), ..with.clone() })?
        {
            let rows = catalog.select(&with)?;
            let near = nearest_or_all(kind, rows.iter().filter_map(|row| row.note_type.as_deref()));
            told.push(format!("no note has the type {kind:?}{near}"));
        }
        if let Some(category) = &filter.category
            && has_none(Filter { category: Some(category.clone()), ..with.clone() })?
        {
            let rows = catalog.select(&with)?;
            let near = nearest_or_all(category, rows.iter().filter_map(|row| row.category.as_deref()));
            told.push(format!("no note has the category {category:?}{near}"));
        }
        let now = self.core.clock.now();
        for (what, after, before) in [
            ("created", filter.created_after, filter.created_before),
            ("updated", filter.updated_after, filter.updated_before),
        ] {
            match (after, before) {
                (Some(after), Some(before)) if after >= before => {
                    told.push(format!(
                        "no note can be {what} after {} and before {}",
                        after.local_rfc3339(),
                        before.local_rfc3339()
                    ));
                }
                (Some(after), _) if after > now => {
                    told.push(format!(
                        "{} is in the future, and no note was {what} after it",
                        after.local_rfc3339()
                    ));
                }
                _ => {}
            }
        }
        if let Some(path) = path
            && let Some(glob) = path_filter(Some(path))?
        {
            let paths = catalog.paths().all()?;
            if !paths.iter().any(|(path, _)| glob.is_match(path.as_str())) {
                let folders = paths.iter().flat_map(|(path, _)| above(path.folder()));
                told.push(format!("no path matches {path:?}{}", nearest_folder(&typed_path(path), folders)));
            }
        }
        if let Some(property) = property {
            let (name, value) = (&property.name, property.value.as_deref());
            told.extend(self.absent_property(name, value, |map| property.is_met_by(map))?);
        }
        Ok(told)
    }

    /// Returns a sentence for each operator of a condition whose tag, type, category, date, property, path or file name no note
    /// has, with the nearest one that a note has. What must not match is left out.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub(crate) fn absent_in(&self, condition: &QueryNode) -> Result<Vec<String>> {
        match condition {
            QueryNode::All(nodes) | QueryNode::Any(nodes) => {
                let mut told = Vec::new();
                for node in nodes {
                    told.extend(self.absent_in(node)?);
                }
                Ok(told)
            }
            QueryNode::Within(_, node) => self.absent_in(node),
            QueryNode::Metadata(filter) => self.absent(&filter_of(filter), None, None),
            QueryNode::Text(field, term) => self.absent_term(*field, term),
            QueryNode::Property(name, value) => {
                let Some(named) = literal(name) else { return Ok(Vec::new()) };
                // Of a value that is a condition, no nearest one is known.
                let value = value.as_deref().and_then(|value| Some((value, literal(value)?)));
                let (value, wanted) = value.unzip();
                let is_met = |map: &Map<String, Value>| {
                    has_property(map, name, value, |verdict| verdict.unwrap_or(true))
                };
                Ok(self.absent_property(named, wanted, is_met)?.into_iter().collect())
            }
            QueryNode::Not(_) | QueryNode::Null | QueryNode::Compare(..) => Ok(Vec::new()),
        }
    }

    /// Returns a sentence if no note has a tag, path or file name that a condition asks for.
    fn absent_term(&self, field: Field, term: &QueryTerm) -> Result<Vec<String>> {
        if matches!(term.kind, QueryTermKind::Regex(_)) {
            return Ok(Vec::new());
        }
        let wanted = &term.text;
        if field == Field::Tag {
            let tags = vec![wanted.trim_start_matches('#').trim_end_matches('/').to_owned()];
            return self.absent(&Filter { tags, ..Filter::default() }, None, None);
        }
        let paths = self.core.index.catalog().paths().all()?;
        let paths = || paths.iter().map(|(path, _)| path);
        let holds = |text: &str| term.is_in_name(&Haystack::new(text)).unwrap_or(true);
        Ok(match field {
            Field::Path if !paths().any(|path| holds(path.as_str())) => {
                let near = nearest_folder(&typed_path(wanted), paths().flat_map(|path| above(path.folder())));
                vec![format!("no path contains {wanted:?}{near}")]
            }
            Field::FileName if !paths().any(|path| holds(path.name())) => {
                let near = nearest(wanted, paths().map(NotePath::stem));
                vec![format!("no file name contains {wanted:?}{near}")]
            }
            _ => Vec::new(),
        })
    }

    /// Returns a sentence if no note has a property with a name, or none has a value of it. `is_met_by` tells whether the properties
    /// of a note meet the condition.
    fn absent_property(
        &self,
        name: &str,
        value: Option<&str>,
        is_met_by: impl Fn(&Map<String, Value>) -> bool,
    ) -> Result<Option<String>> {
        let (mut names, mut values) = (BTreeSet::new(), BTreeSet::new());
        let mut is_met = false;
        let wanted = key(name);
        self.core.index.catalog().properties().each(|_, map| {
            is_met |= is_met_by(&map);
            for (name, value) in map {
                if key(&name) == wanted {
                    let items = if let Value::Array(items) = value { items } else { vec![value] };
                    values.extend(items.iter().take(MOST_VALUES.saturating_sub(values.len())).map(shown));
                }
                names.insert(name);
            }
        })?;
        if is_met {
            return Ok(None);
        }
        let value = value.filter(|_| names.iter().any(|known| key(known) == wanted));
        Ok(Some(match value {
            Some(value) => {
                let near = nearest_or_all(value, values.iter().map(String::as_str));
                format!("no note has the value {value:?} of the property {name:?}{near}")
            }
            None => {
                let near = nearest(name, names.iter().map(String::as_str));
                format!("no note has the property {name:?}{near}")
            }
        }))
    }

    /// Returns an error for a folder that does not exist, so that an empty list means an empty folder.
    ///
    /// # Errors
    /// `NotFound` if there is no such folder, with a similar name if there is one; `Invalid` for an invalid path.
    pub fn refuse_missing_folder(&self, folder: &str) -> Result<()> {
        // A folder that another program made can have a backslash in its name.
        let is_there = |folder: &NotePath| self.core.vault.has_folder(folder.as_str());
        if NotePath::from_disk(folder).as_ref().is_some_and(is_there) {
            return Ok(());
        }
        let wanted = typed_folder(folder);
        if wanted.is_empty() {
            return Ok(());
        }
        let path = as_spelled_on_disk(&self.core.vault, &NotePath::parse(&wanted)?);
        if self.core.vault.has_folder(path.as_str()) {
            return Ok(());
        }
        let paths = self.core.index.catalog().paths().all()?;
        let folders = || paths.iter().flat_map(|(path, _)| above(path.folder()));
        if folders().any(|known| key(known) == key(&wanted)) {
            return Ok(());
        }
        let near = nearest_folder(&wanted, folders());
        let error = Error::not_found(format!("there is no folder {wanted:?} in the vault"));
        let hint = near.strip_prefix("; ").unwrap_or("a folder is a path from the vault's root");
        Err(error.with_hint(hint))
    }
}

/// Returns the text that a part of a condition on a property compares with; `None` if it is a condition itself.
fn literal(node: &QueryNode) -> Option<&str> {
    match node {
        QueryNode::Text(_, term) if !matches!(term.kind, QueryTermKind::Regex(_)) => Some(&term.text),
        _ => None,
    }
}

/// Returns an operator on metadata as a filter; one that selects all notes for what is not spelled freely, and for a note that
/// is found or refused by its name.
fn filter_of(operator: &MetadataFilter) -> Filter {
    let all = Filter::default();
    match operator {
        MetadataFilter::Type(name) => Filter { note_type: Some(name.clone()), ..all },
        MetadataFilter::Category(name) => Filter { category: Some(name.clone()), ..all },
        MetadataFilter::Created(from, to) => Filter { created_after: *from, created_before: *to, ..all },
        MetadataFilter::Updated(from, to) => Filter { updated_after: *from, updated_before: *to, ..all },
        MetadataFilter::Tier(_)
        | MetadataFilter::LinksTo(_)
        | MetadataFilter::LinkedFrom(_)
        | MetadataFilter::Relation(..)
        | MetadataFilter::Orphan
        | MetadataFilter::Pinned => all,
    }
}

/// The beginning of a suggestion.
const SUGGESTION: &str = "did you mean ";
/// The largest number of values of a property that are compared with a wanted one.
const MOST_VALUES: usize = 1_000;

/// Returns a scalar as text.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns a suggestion with the nearest folder: one that is spelled like the wanted one, or the only one whose last part is.
fn nearest_folder<'a>(wanted: &str, folders: impl Iterator<Item = &'a str>) -> String {
    let folders: BTreeSet<&str> = folders.collect();
    let by_path = nearest(wanted, folders.iter().copied());
    if !by_path.is_empty() {
        return by_path;
    }
    let is_last = |folder: &&&str| folder.rsplit('/').next().is_some_and(|last| key(last) == key(wanted));
    let mut ends = folders.iter().filter(is_last);
    match (ends.next(), ends.next()) {
        (Some(only), None) => format!("; {SUGGESTION}{only:?}?"),
        _ => String::new(),
    }
}

/// Returns a suggestion with the nearest name, or all names if none is near and there are few.
fn nearest_or_all<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: BTreeSet<&str> = known.filter(|name| !name.is_empty()).collect();
    let near = nearest(wanted, known.iter().copied());
    if !near.is_empty() || known.is_empty() || known.len() > MOST_LISTED {
        return near;
    }
    let listed: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
    format!("; there is {}", listed.join(", "))
}

/// Lists a folder and its parents.
fn above(folder: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(folder).filter(|folder| !folder.is_empty());
    std::iter::from_fn(move || {
        let here = rest?;
        rest = here.rfind('/').and_then(|slash| here.get(..slash));
        Some(here)
    })
}

/// Returns a question with the nearest name, such as `; did you mean "boat"?`, or an empty text if no name is near.
pub fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> String {
    let wanted = TypedName::new(wanted);
    let near = known.filter_map(|name| Some((wanted.edits_to(name)?, name))).min();
    near.map(|(_, name)| format!("; {SUGGESTION}{name:?}?")).unwrap_or_default()
}
