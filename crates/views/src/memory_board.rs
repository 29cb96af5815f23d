//! All notes as memories at once: their weights in columns, their tiers by month, what changes tier soon, and which notes
//! say nearly the same.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_base::parallel;
use sidenote_catalog::{FileId, FileRow, Filter, Inactive, Kinds};
use sidenote_index::Snapshot;
use sidenote_language::graphemes::end_before;
use sidenote_memory::tier::Tier;
use sidenote_memory::tier_rule::tier_at;
use sidenote_memory::types::GENERAL;
use sidenote_open_vault::source::body_of;
use sidenote_query::memory_weights::{MemoryWeights, Weighed};
use sidenote_query::search::hide;
use sidenote_upkeep::check::similar_texts::RepeatedTexts;

use crate::curve::{FallReason, tiers_ahead};
use crate::{NamedColumn, Views};

/// The most days that are looked ahead.
const MOST_DAYS: i64 = 3_650;
/// The most months of one reply.
const MOST_MONTHS: usize = 240;
/// The most notes whose weights are given.
const MOST_POINTS: usize = 50_000;
/// The most notes whose texts are compared by their vectors, the last changed ones.
const MOST_COMPARED: usize = 2_000;
/// The passages that are compared with those of one note.
const NEIGHBOURS: usize = 8;
/// The most bytes of a text that is shown beside its duplicate.
const MOST_SHOWN: usize = 4_000;

/// The weights of notes in columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MemoryPoints {
    /// The number of all notes, also of those that are left out.
    pub total: usize,
    /// The numbers of the files.
    pub ids: Vec<FileId>,
    /// The paths.
    pub paths: Vec<String>,
    /// The titles.
    pub titles: Vec<String>,
    /// The types.
    pub types: NamedColumn,
    /// The tiers.
    pub tiers: NamedColumn,
    /// The importance.
    pub importance: Vec<f64>,
    /// The last uses in milliseconds since 1970; 0 for none.
    pub last_use: Vec<i64>,
    /// The creation in milliseconds since 1970.
    pub created: Vec<i64>,
    /// The numbers of uses.
    pub uses: Vec<usize>,
    /// 1 for pinned, 2 for protected, 4 for forgotten, added.
    pub flags: Vec<u8>,
}

/// The number of notes of each tier by month.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TierMonths {
    /// The months, as `2026-01`.
    pub months: Vec<String>,
    /// For each tier the numbers at the ends of these months.
    #[serde(flatten)]
    pub tiers: BTreeMap<Tier, Vec<usize>>,
}

/// A note that is about to fall to another tier.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TierFall {
    /// The path of the note.
    pub path: String,
    /// Its title.
    pub title: String,
    /// The tier now.
    pub from: Tier,
    /// The tier then.
    pub to: Tier,
    /// When it changes.
    pub at: Timestamp,
    /// The importance now.
    pub importance: f64,
    /// Why it changes.
    pub why: Option<FallReason>,
    /// When the note was last used.
    pub last_use: Option<Timestamp>,
}

/// The notes that are about to fall to another tier.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TierFalls {
    /// The number of days ahead.
    pub days: i64,
    /// The number of notes.
    pub total: usize,
    /// The number of notes by the tier that they fall to.
    pub counts: BTreeMap<Tier, usize>,
    /// The first of them.
    pub changes: Vec<TierFall>,
}

/// One of two notes that say nearly the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PairSide {
    /// The path of the note.
    pub path: String,
    /// Its title.
    pub title: String,
    /// The beginning of its text, without properties.
    pub text: String,
    /// When it was last changed.
    pub updated: Timestamp,
}

/// Two notes that say nearly the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DuplicatePair {
    /// The older note.
    pub a: PairSide,
    /// The newer note.
    pub b: PairSide,
    /// The share of word sequences that they have in common, or, of a pair that is alike in meaning alone, the similarity of
    /// their nearest passages.
    pub similarity: f32,
    /// What they have in common.
    pub by: PairKind,
}

/// What two notes have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PairKind {
    /// Their texts are about the same, as `check` finds.
    Text,
    /// Their texts are the same except for the ends of lines and of the file, and too short for `check` to compare.
    Content,
    /// Their passages are alike in meaning.
    Meaning,
}

/// The notes that say nearly the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DuplicatePairs {
    /// The pairs, those with about the same text first, then the most similar.
    pub pairs: Vec<DuplicatePair>,
    /// The number of pairs with about the same text, as `check` counts them.
    pub by_text: usize,
    /// The number of notes that were compared by meaning.
    pub compared: usize,
    /// Whether there are more pairs or notes than were compared.
    pub more: bool,
}

impl Views<'_> {
    /// Returns the weights of notes: those that were used or created last, at most `limit` of them.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read; `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn memory_points(&self, limit: usize) -> Result<MemoryPoints> {
        let rows = self.core.index.catalog().select(&Filter::default())?;
        let weighed = MemoryWeights::of(self.core).weigh_all(&rows, self.core.clock.now())?;
        let total = rows.len();
        let mut notes: Vec<(FileRow, Weighed)> = rows.into_iter().zip(weighed).collect();
        let limit = limit.min(MOST_POINTS);
        if total > limit {
            // Stable sorts keep the order of the paths among notes of the same time.
            notes.sort_by_key(|(row, weighed)| Reverse(weighed.state.last_use.max(Some(row.created))));
            notes.truncate(limit);
            notes.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
        }
        let mut points = MemoryPoints {
            total,
            types: NamedColumn::new(notes.iter().map(|(row, _)| row.note_type.as_deref().unwrap_or(GENERAL))),
            tiers: NamedColumn::of_tiers(notes.iter().map(|(_, weighed)| weighed.state.tier)),
            ..MemoryPoints::default()
        };
        for (row, Weighed { usage, state, .. }) in notes {
            let flags = [(state.pinned, 1), (state.protected, 2), (state.forgotten, 4)];
            points.ids.push(row.id);
            points.importance.push(state.importance);
            points.last_use.push(state.last_use.map_or(0, Timestamp::millis));
            points.created.push(usage.creation_order(row.created).0.millis());
            points.uses.push(state.uses);
            points.flags.push(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, bit)| bit).sum());
            points.paths.push(row.path.as_str().to_owned());
            points.titles.push(row.title);
        }
        Ok(points)
    }

    /// Counts the notes of each tier at the ends of the last months, by the uses in the journal and the present properties.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read; `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn tier_months(&self, months: usize) -> Result<TierMonths> {
        let now = self.core.clock.now();
        let weights = MemoryWeights::of(self.core);
        let rows = self.core.index.catalog().select(&Filter::default())?;
        let memories = weights.weigh_all(&rows, now)?;
        let ends = month_ends(now, months.clamp(1, MOST_MONTHS));
        let mut reply = TierMonths {
            months: ends.iter().map(|(month, _)| month.clone()).collect(),
            tiers: Tier::ALL.into_iter().map(|tier| (tier, Vec::with_capacity(ends.len()))).collect(),
        };
        for (_, end) in &ends {
            let mut counts: HashMap<Tier, usize> = HashMap::new();
            for memory in
                memories.iter().filter(|memory| memory.said.created <= *end && !memory.state.forgotten)
            {
                let tier = tier_at(&memory.thresholds, &memory.said, &memory.usage, *end);
                *counts.entry(tier).or_default() += 1;
            }
            for (tier, list) in &mut reply.tiers {
                list.push(counts.get(tier).copied().unwrap_or(0));
            }
        }
        Ok(reply)
    }

    /// Lists the first `limit` notes that fall to another tier within some days if nobody uses them, the soonest first.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read; `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn tier_changes(&self, days: i64, limit: usize) -> Result<TierFalls> {
        let now = self.core.clock.now();
        let weights = MemoryWeights::of(self.core);
        let rows = self.core.index.catalog().select(&Filter::default())?;
        let days = days.clamp(1, MOST_DAYS);
        let mut changes = Vec::new();
        for (at, weighed) in weights.weigh_all(&rows, now)?.into_iter().enumerate() {
            let spans = tiers_ahead((&weighed.said, &weighed.usage), &weighed.thresholds, now, days);
            if let [first, second, ..] = spans.as_slice()
                && !weighed.state.forgotten
            {
                let (importance, last_use) = (weighed.state.importance, weighed.state.last_use);
                let fall = TierFall {
                    path: String::new(),
                    title: String::new(),
                    from: first.tier,
                    to: second.tier,
                    at: second.from,
                    importance,
                    why: second.why,
                    last_use,
                };
                changes.push((at, fall));
            }
        }
        // The rows are in the order of their paths.
        changes.sort_by_key(|(at, fall)| (fall.at, *at));
        let total = changes.len();
        let mut counts = BTreeMap::new();
        for (_, fall) in &changes {
            *counts.entry(fall.to).or_default() += 1;
        }
        let named = changes.into_iter().take(limit).filter_map(|(at, fall)| {
            let row = rows.get(at)?;
            let (path, title) = (row.path.as_str().to_owned(), row.title.clone());
            Some(TierFall { path, title, ..fall })
        });
        Ok(TierFalls { days, total, counts, changes: named.collect() })
    }

    /// Finds pairs of notes that say nearly the same: those whose texts are equal, or nearly equal by `check`, and,
    /// among the last changed notes, those with similar passages.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn duplicates(&self, limit: usize, threshold: f32, texts: &RepeatedTexts) -> Result<DuplicatePairs> {
        let all = self
            .core
            .index
            .catalog()
            .select(&Filter { kinds: Kinds::NotesAndCanvases, ..Filter::default() })?;
        let by_path: HashMap<&str, &FileRow> = all.iter().map(|row| (row.path.as_str(), row)).collect();
        let by_id: HashMap<FileId, &FileRow> = all.iter().map(|row| (row.id, row)).collect();
        let known = texts.similar.iter().filter_map(|texts| {
            let (one, other) = (by_path.get(texts.a.as_str())?, by_path.get(texts.b.as_str())?);
            Some((one.id, other.id, f32::from(texts.percent) / 100.0, PairKind::Text))
        });
        let mut pairs: Vec<(FileId, FileId, f32, PairKind)> = known.collect();
        let by_text = pairs.len();
        let mut seen: HashSet<(FileId, FileId)> =
            pairs.iter().map(|(one, other, ..)| (*one.min(other), *one.max(other))).collect();
        let hidden = Inactive::default();
        let mut rows = self.core.index.catalog().select(&hide(&Filter::default(), hidden))?;
        rows.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.path.cmp(&b.path)));
        for (one, other) in same_text(&rows, &texts.equal) {
            if seen.insert((one.min(other), one.max(other))) {
                pairs.push((one, other, 1.0, PairKind::Content));
            }
        }
        let visible: HashSet<FileId> = rows.iter().map(|row| row.id).collect();
        let compared = rows.get(..rows.len().min(MOST_COMPARED)).unwrap_or_default();
        for (one, other, similarity) in self.alike(compared, threshold)? {
            if visible.contains(&other) && seen.insert((one.min(other), one.max(other))) {
                pairs.push((one, other, similarity, PairKind::Meaning));
            }
        }
        pairs.sort_by(|a, b| {
            a.3.cmp(&b.3).then_with(|| b.2.total_cmp(&a.2)).then_with(|| (a.0, a.1).cmp(&(b.0, b.1)))
        });
        let more = pairs.len() > limit || rows.len() > MOST_COMPARED;
        pairs.truncate(limit);
        let compared = compared.len();
        let mut shown = Vec::new();
        for (one, other, similarity, by) in pairs {
            let (Some(one), Some(other)) = (by_id.get(&one), by_id.get(&other)) else { continue };
            let (older, newer) = if one.updated <= other.updated { (one, other) } else { (other, one) };
            if let (Some(a), Some(b)) = (self.side(older), self.side(newer)) {
                shown.push(DuplicatePair { a, b, similarity, by });
            }
        }
        Ok(DuplicatePairs { pairs: shown, by_text, compared, more })
    }

    /// Finds the notes whose nearest passage is like the mean of the passages of another one.
    fn alike(&self, rows: &[FileRow], threshold: f32) -> Result<Vec<(FileId, FileId, f32)>> {
        let snapshot = self.core.index.snapshot()?;
        if snapshot.vectors.is_empty() {
            return Ok(Vec::new());
        }
        let found = parallel::map(rows, 16, || (), |(), row| self.alike_to(row, threshold, &snapshot));
        Ok(found.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Finds the notes with a passage that is like the mean of the passages of one.
    fn alike_to(
        &self,
        row: &FileRow,
        threshold: f32,
        snapshot: &Snapshot,
    ) -> Result<Vec<(FileId, FileId, f32)>> {
        self.core.check_cancelled()?;
        let catalog = self.core.index.catalog();
        let own = catalog.passages().of(row.id)?;
        let Some(mean) = snapshot.vectors.mean_direction(&own)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for near in snapshot.vectors.search(&mean, NEIGHBOURS + own.len(), None)? {
            if near.similarity < threshold || own.contains(&near.key) {
                continue;
            }
            let files = catalog.passages().files_containing(&[near.key])?;
            let others = files.into_iter().filter(|(_, file, _)| *file != row.id);
            found.extend(others.map(|(_, file, _)| (row.id, file, near.similarity)));
        }
        Ok(found)
    }

    /// Reads one note of a pair. `None` if it was removed meanwhile.
    fn side(&self, row: &FileRow) -> Option<PairSide> {
        let bytes = self.core.read_bytes(&row.path).ok()?;
        let mut text = body_of(&bytes);
        text.truncate(end_before(&text, MOST_SHOWN));
        Some(PairSide {
            path: row.path.as_str().to_owned(),
            title: row.title.clone(),
            text,
            updated: row.updated,
        })
    }
}

/// Pairs notes with the same text: each with the first of them.
fn same_text(rows: &[FileRow], equal: &[Vec<String>]) -> Vec<(FileId, FileId)> {
    let group = |(number, paths)| (paths as &Vec<String>).iter().map(move |path| (path.as_str(), number));
    let groups: HashMap<&str, usize> = equal.iter().enumerate().flat_map(group).collect();
    let mut first: HashMap<usize, FileId> = HashMap::new();
    let mut pairs = Vec::new();
    for row in rows {
        let Some(number) = groups.get(row.path.as_str()) else { continue };
        match first.get(number) {
            Some(other) => pairs.push((*other, row.id)),
            None => drop(first.insert(*number, row.id)),
        }
    }
    pairs
}

/// Returns the last months, each with the instant at which it ends; the last one ends now.
fn month_ends(now: Timestamp, months: usize) -> Vec<(String, Timestamp)> {
    let text = now.day();
    let number = |range: std::ops::Range<usize>| {
        text.get(range).and_then(|part| part.parse::<i64>().ok()).unwrap_or(1)
    };
    let current = number(0..4) * 12 + number(5..7) - 1;
    let name = |month: i64| format!("{:04}-{:02}", month.div_euclid(12), month.rem_euclid(12) + 1);
    let ends = (0..months as i64).rev().filter_map(|back| {
        let month = current - back;
        let end = if back == 0 { Some(now) } else { Timestamp::parse(&format!("{}-01", name(month + 1))) };
        Some((name(month), end?))
    });
    ends.collect()
}
