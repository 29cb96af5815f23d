//! The facets of a search: how many of the notes that meet it are in each folder, have each tag, type and tier, and are of
//! each year.

use std::collections::HashMap;

use serde::Serialize;

use crate::lookup::Lookup;
use crate::memory_weights::MemoryWeights;
use crate::query::Searches;
use crate::query::search::{SearchRequest, files_in_tier, hide};
use crate::query::validity::valid_as_of;
use crate::view::Views;
use sidenote_foundation::error::Result;
use sidenote_foundation::index::catalog::{FileId, FileKind, FileRow};
use sidenote_foundation::memory::tier::Tier;
use sidenote_foundation::search::{Mode, Request};

/// The most notes that are counted.
pub(crate) const MOST_COUNTED: usize = 10_000;
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

/// The notes that meet a query.
pub(crate) struct Matching {
    pub(crate) rows: Vec<FileRow>,
    pub(crate) more: bool,
}

impl Views<'_> {
    /// Counts the notes that meet a search by folder, tag, type, tier and year.
    ///
    /// # Errors
    /// `Invalid`, with the place of the mistake, for an invalid query or filter; `Corrupt` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn facets(&self, request: &SearchRequest) -> Result<Facets> {
        let Matching { rows, more } = self.matching(request, MOST_COUNTED)?;
        let notes: Vec<FileRow> = rows.into_iter().filter(|row| row.kind == FileKind::Note).collect();
        let (mut folders, mut types, mut years) = (HashMap::new(), HashMap::new(), HashMap::new());
        for row in &notes {
            let folder = row.path.folder();
            let ends = folder
                .match_indices('/')
                .map(|(at, _)| at)
                .chain((!folder.is_empty()).then_some(folder.len()));
            for end in ends {
                *folders.entry(folder.get(..end).unwrap_or(folder).to_owned()).or_insert(0) += 1;
            }
            if let Some(kind) = &row.note_type {
                *types.entry(kind.to_lowercase()).or_insert(0) += 1;
            }
            *years.entry(row.created.rfc3339().get(..4).unwrap_or_default().to_owned()).or_insert(0) += 1;
        }
        let tags = self.tag_counts(&notes)?;
        let total = notes.len();
        let weighed = MemoryWeights::of(self.core).weigh_all(&notes, self.core.clock.now())?;
        let tier = Tier::ALL.into_iter().map(|tier| FacetValue {
            value: tier.name().to_owned(),
            notes: weighed.iter().filter(|weighed| weighed.state.tier == tier).count(),
        });
        let mut year: Vec<FacetValue> =
            years.into_iter().map(|(value, notes)| FacetValue { value, notes }).collect();
        year.sort_by(|a, b| b.value.cmp(&a.value));
        Ok(Facets {
            total,
            more,
            folder: most_frequent(folders),
            tag: most_frequent(tags),
            note_type: most_frequent(types),
            tier: tier.filter(|value| value.notes > 0).collect(),
            year,
        })
    }

    /// Counts the tags of notes, in their first spelling.
    fn tag_counts(&self, notes: &[FileRow]) -> Result<HashMap<String, usize>> {
        /// The most notes whose tags are read one by one.
        const FEW: usize = 200;
        let catalog = self.core.index.catalog();
        let mut all = if notes.len() > FEW { catalog.all_tags()? } else { HashMap::new() };
        let mut counts: HashMap<String, (String, usize)> = HashMap::new();
        for row in notes {
            let tags = match notes.len() > FEW {
                true => all.remove(&row.id).unwrap_or_default(),
                false => catalog.tags_of(row.id)?,
            };
            for tag in tags {
                counts.entry(tag.to_lowercase()).or_insert((tag, 0)).1 += 1;
            }
        }
        Ok(counts.into_values().collect())
    }

    /// Finds the notes that meet a query, at most `most`: its condition or, of plain words, those with one of them. Without a
    /// query, all that meet the filters do.
    pub(crate) fn matching(&self, request: &SearchRequest, most: usize) -> Result<Matching> {
        let now = self.core.clock.now();
        let query = request.parsed(now)?;
        let filter = hide(&Lookup::of(self.core).with_canonical_folder(&request.filter)?, request.included());
        let filter = valid_as_of(self.core, filter, request.as_of)?;
        let in_tier = request.tier.map(|tier| files_in_tier(self.core, tier)).transpose()?;
        if query.is_empty() {
            let mut rows = self.core.index.catalog().select(&filter)?;
            rows.retain(|row| in_tier.as_ref().is_none_or(|files| files.contains(row.id)));
            let more = rows.len() > most;
            rows.truncate(most);
            return Ok(Matching { rows, more });
        }
        let snapshot = self.core.index.snapshot()?;
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
        let found = Searches::of(self.core).found(&snapshot, &searched, || Ok(None))?.found;
        let more = found.len() >= most;
        let mut seen: std::collections::HashSet<FileId> = std::collections::HashSet::new();
        let rows = found.into_iter().map(|hit| hit.row).filter(|row| seen.insert(row.id)).collect();
        Ok(Matching { rows, more })
    }
}

/// Lists values by their number of notes, and then by name.
fn most_frequent(counts: HashMap<String, usize>) -> Vec<FacetValue> {
    let mut values: Vec<FacetValue> =
        counts.into_iter().map(|(value, notes)| FacetValue { value, notes }).collect();
    values.sort_by(|a, b| b.notes.cmp(&a.notes).then_with(|| a.value.cmp(&b.value)));
    values.truncate(MOST_VALUES);
    values
}
