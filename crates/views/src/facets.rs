//! The facets of a search: how many of the notes that meet it are in each folder, have each tag, type and tier, and are of
//! each year.

use std::collections::HashMap;

use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_index::Snapshot;
use sidenote_markdown::tag::tag_name;
use sidenote_memory::tier::Tier;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::note_columns::NoteEntry;
use sidenote_query::Searches;
use sidenote_query::memory_weights::MemoryWeights;
use sidenote_query::search::{SearchRequest, hide};
use sidenote_query::validity::valid_as_of;
use sidenote_search::pipeline::rank;
use sidenote_search::reader::IndexOnly;
use sidenote_search::{Mode, Request, allowed_files};
use sidenote_sets::file_set::FileSet;

use crate::Views;

/// The most notes that are counted for a condition, of which files may have to be read.
const MOST_COUNTED: usize = 10_000;
/// The most values of one facet.
const MOST_VALUES: usize = 50;

/// A value of a facet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FacetValue {
    /// The folder, tag, type, tier or year.
    pub value: String,
    /// The number of notes.
    pub notes: usize,
}

/// The facets of a search, each with its most frequent values first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facets {
    /// The number of notes that meet the query.
    pub total: usize,
    /// Whether there are more notes than are counted.
    pub more: bool,
    /// The folders of the notes, each with the folders in it.
    pub folder: Vec<FacetValue>,
    /// The tags.
    pub tag: Vec<FacetValue>,
    /// The types.
    #[serde(rename = "type")]
    pub note_type: Vec<FacetValue>,
    /// The tiers, in their order.
    pub tier: Vec<FacetValue>,
    /// The years in which the notes were created, the last one first.
    pub year: Vec<FacetValue>,
}

/// The files that meet a query.
pub(crate) struct Matching {
    pub(crate) files: FileSet,
    /// Whether there may be more.
    pub(crate) more: bool,
}

impl Views<'_> {
    /// Counts the notes that meet a search by folder, tag, type, tier and year.
    ///
    /// # Errors
    /// `Invalid`, with the place of the mistake, for an invalid query or filter; `Corrupt` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn facets(&self, request: &SearchRequest) -> Result<Facets> {
        let snapshot = self.core.index.snapshot()?;
        let columns = MemoryWeights::of(self.core).columns(&snapshot)?;
        let Matching { files, more } = self.matching(request, &snapshot)?;
        self.core.check_cancelled()?;
        let notes: Vec<&NoteEntry> = columns.all().filter(|note| files.contains(note.id)).collect();
        let mut own_folders: HashMap<u32, usize> = HashMap::new();
        let (mut kinds, mut years, mut tags) = (HashMap::new(), HashMap::new(), HashMap::new());
        for note in &notes {
            *own_folders.entry(note.folder).or_insert(0) += 1;
            note.year.into_iter().for_each(|year| *years.entry(year).or_insert(0) += 1);
            note.kind.into_iter().for_each(|kind| *kinds.entry(kind).or_insert(0) += 1);
            columns.tags_of(note).iter().for_each(|tag| *tags.entry(*tag).or_insert(0) += 1);
        }
        let mut folders: HashMap<&str, usize> = HashMap::new();
        for (folder, notes) in own_folders {
            let folder = columns.folders.get(folder);
            let inner = folder.match_indices('/').map(|(at, _)| at);
            for end in inner.chain((!folder.is_empty()).then_some(folder.len())) {
                *folders.entry(folder.get(..end).unwrap_or(folder)).or_insert(0) += notes;
            }
        }
        let tiers = MemoryWeights::of(self.core).tiers_of(&columns, notes.iter().copied())?;
        let tier = Tier::ALL.into_iter().map(|tier| FacetValue {
            value: tier.name().to_owned(),
            notes: tiers.iter().filter(|own| **own == tier).count(),
        });
        let mut year: Vec<(i16, usize)> = years.into_iter().collect();
        year.sort_unstable_by(|a, b| b.cmp(a));
        let spelled =
            |(tag, notes): (u32, usize)| (columns.tags.get(tag as usize).map_or("", String::as_str), notes);
        Ok(Facets {
            total: notes.len(),
            more,
            folder: most_frequent(folders.into_iter()),
            tag: most_frequent(tags.into_iter().map(spelled).filter(|(tag, _)| tag_name(tag) == Some(*tag))),
            note_type: most_frequent(kinds.into_iter().map(|(kind, notes)| (columns.kinds.get(kind), notes))),
            tier: tier.filter(|value| value.notes > 0).collect(),
            year: year
                .into_iter()
                .map(|(year, notes)| FacetValue { value: format!("{year:04}"), notes })
                .collect(),
        })
    }

    /// Finds the files that meet a query: those that meet its condition, at most [`MOST_COUNTED`], or, if it has plain
    /// words only, those with at least one of them. Without a query, these are all files that meet the filters.
    pub(crate) fn matching(&self, request: &SearchRequest, snapshot: &Snapshot) -> Result<Matching> {
        let now = self.core.clock.now();
        let query = request.parsed(now)?;
        let filter = hide(&Lookup::of(self.core).with_canonical_folder(&request.filter)?, request.included());
        let filter = valid_as_of(self.core, filter, request.as_of)?;
        let weights = MemoryWeights::of(self.core);
        let in_tier = request.tier.map(|tier| weights.files_in_tier(snapshot, tier)).transpose()?;
        let has_condition = query.condition.is_some();
        let most = if has_condition { MOST_COUNTED } else { usize::MAX };
        let searched = Request {
            query: Some(&query),
            mode: Mode::Bm25,
            limit: most,
            depth: Some(most),
            filter,
            path: request.path.clone(),
            among: in_tier.as_ref(),
            ..Request::default()
        };
        if query.is_empty() {
            let allowed = allowed_files(&self.core.index.catalog(), &searched)?;
            let files = allowed.unwrap_or_else(|| FileSet::all_but([]));
            return Ok(Matching { files, more: false });
        }
        if !has_condition {
            let ranking = rank(&self.core.index, snapshot, &searched, &IndexOnly)?;
            return Ok(Matching { files: ranking.fused.iter().map(|hit| hit.file).collect(), more: false });
        }
        let found = Searches::of(self.core).found(snapshot, &searched, &IndexOnly)?.found;
        let more = found.len() >= most;
        Ok(Matching { files: found.into_iter().map(|hit| hit.row.id).collect(), more })
    }
}

/// Lists values by their number of notes, and then by name.
fn most_frequent<'v>(counts: impl Iterator<Item = (&'v str, usize)>) -> Vec<FacetValue> {
    let mut values: Vec<(&str, usize)> = counts.collect();
    values.sort_by(|(a, notes_a), (b, notes_b)| notes_b.cmp(notes_a).then_with(|| a.cmp(b)));
    values.truncate(MOST_VALUES);
    values.into_iter().map(|(value, notes)| FacetValue { value: value.to_owned(), notes }).collect()
}
