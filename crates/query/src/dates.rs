//! Searches whose query names a period: they are narrowed to the notes that state a date in it.

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_base::wording::Wording;
use sidenote_bm25::{Tuning, Word};
use sidenote_catalog::{FileId, FileRow};
use sidenote_index::Snapshot;
use sidenote_language::language::Language;
use sidenote_markdown::name_date::day_in_name;
use sidenote_open_vault::Core;
use sidenote_search::date_phrase::DatePhrase;
use sidenote_search::note_date::NoteDate;
use sidenote_search::out_of_vocabulary::replace_unknown;
use sidenote_search::query::Query;
use sidenote_search::stage::Stage;
use sidenote_search::{Components, MatchType, Request, SearchHit, allowed_files, date_phrase};
use sidenote_sets::file_set::FileSet;

use crate::extent::Extent;
use crate::search_scope::{ScopeHits, SearchScope};
use crate::verify::SearchHits;

/// The least part of what the best of all notes has of the words or of the meaning that the best note of the period has. A
/// worse match is not what was asked for.
const MIN_MATCH: f32 = 0.5;

/// A query that names a period.
pub(super) struct DatedQuery {
    phrase: DatePhrase,
    /// The phrase as it was written.
    words: String,
    /// The query without the phrase. It has no words if all are too common to rank by.
    rest: Query,
    /// The notes that state a date in the period, the latest first.
    rows: Vec<FileRow>,
    /// Whether a filter selects the notes that are searched.
    is_filtered: bool,
}

/// The result of a search for a query that names a period.
pub(super) struct DatedHits {
    /// The notes of the period. Without them, all notes are searched for the whole query.
    pub(super) narrowed: Option<NarrowedHits>,
    /// Whether the query has no words but those of the period and common ones.
    pub(super) is_date_alone: bool,
    /// Notices of the search, and whether it was narrowed.
    pub(super) notices: Vec<Wording>,
}

/// The result of a search that was narrowed to a period.
pub(super) struct NarrowedHits {
    pub(super) hits: ScopeHits,
    /// The query without the words that name the period.
    pub(super) rest: Query,
    pub(super) period: Period,
}

/// The period to which a search was narrowed.
pub(super) struct Period {
    /// A description for an explanation.
    pub(super) filter: String,
    /// The notes that state a date in it.
    pub(super) files: FileSet,
}

impl DatedQuery {
    /// Returns the period that a query names, with the notes of the period that a request allows.
    ///
    /// # Errors
    /// `Invalid` for a malformed glob; `Corrupt` if the index cannot be read.
    pub(super) fn of(
        core: &Core,
        text: &str,
        snapshot: &Snapshot,
        request: &Request<'_>,
        now: Timestamp,
    ) -> Result<Option<Self>> {
        let Some(phrase) = date_phrase::find(text, now) else { return Ok(None) };
        // A note that the whole query names is what was asked for.
        if !core.index.catalog().names().with_title_or_name(text.trim())?.is_empty() {
            return Ok(None);
        }
        let mut rest = Query::plain(&phrase.without(text));
        rest.in_languages_of(&snapshot.bm25)?;
        let language = rest.language.unwrap_or(Language::ENGLISH);
        if rest.words.iter().all(|word| language.has_stop_word(&word.exact)) {
            // A query of such words alone keeps them, because there is nothing else to rank by. Here there is the period.
            rest.words.clear();
            rest.all_words.clear();
        }
        let allowed = allowed_files(&core.index.catalog(), request)?;
        if allowed.as_ref().is_some_and(FileSet::is_empty) {
            return Ok(None);
        }
        let is_filtered =
            !request.filter.is_unrestricted() || request.path.is_some() || request.among.is_some();
        let table = core.index.file_table(snapshot)?;
        let dated = table.entries().iter().filter(|entry| {
            let is_allowed = allowed.as_ref().is_none_or(|allowed| allowed.contains(entry.id));
            let in_name = day_in_name(&entry.path).is_some_and(|at| phrase.contains(at));
            entry.is_text() && is_allowed && (phrase.contains(entry.created) || in_name)
        });
        let dated: Vec<FileId> = dated.map(|entry| entry.id).collect();
        let mut rows = core.index.catalog().rows(&dated)?;
        rows.retain(|row| {
            let date = NoteDate::of(row);
            date.is_stated && phrase.contains(date.at)
        });
        rows.sort_by(|one, other| {
            NoteDate::of(other).at.cmp(&NoteDate::of(one).at).then_with(|| one.path.cmp(&other.path))
        });
        let words = phrase.span.of(text).to_owned();
        Ok(Some(Self { phrase, words, rest, rows, is_filtered }))
    }

    /// Searches the notes of the period, if they answer the rest of the query about as well as all notes of the scope do.
    ///
    /// # Errors
    /// The errors of [`SearchScope::find`]; `Corrupt` if the index cannot be read.
    pub(super) fn search(self, scope: &SearchScope<'_>) -> Result<DatedHits> {
        let Self { phrase, words, rest, rows, is_filtered } = self;
        let snapshot = scope.snapshot;
        let period = phrase.period();
        let is_date_alone = rest.words.is_empty();
        let whole =
            |notice: String| DatedHits { narrowed: None, is_date_alone, notices: vec![notice.into()] };
        if rows.is_empty() {
            let (none, all) = match is_filtered {
                true => ("the filter leaves no notes", "all that it leaves"),
                false => ("there are no notes", "all notes"),
            };
            let missing = format!("{none} {period}, although the query says \"{words}\"");
            let dated = "a note is of the day that its properties or its name state";
            return Ok(whole(format!("{missing}, so {all} were searched; {dated}")));
        }
        let mut notices = Vec::new();
        let files: FileSet = rows.iter().map(|row| row.id).collect();
        let mut found = scope.find(&rest, Some(&files))?;
        notices.append(&mut found.used.notes);
        let (hits, all) = (&mut found.hits, scope.find(&rest, None)?.hits);
        let ranking = replace_unknown(&rest, &snapshot.bm25)?.unwrap_or_else(|| rest.words.clone());
        let best_words = words_of_best(snapshot, &rest, &ranking, &all)?;
        let is_match = |best: f32, of_all: f32| best >= MIN_MATCH * of_all;
        // Cosines of a model whose mean is not known are high for unrelated texts, too.
        let has_mean = snapshot.model.as_ref().is_some_and(|model| model.mean_passage().is_some());
        let meaning = meaning_of_best(&all);
        let has_meaning = has_mean && meaning > 0.0;
        let is_by_meaning = has_meaning && is_match(meaning_of_best(hits), meaning);
        // Where no note has a word of the rest, meaning alone decides which notes answer it.
        let is_by_words = match best_words > 0.0 {
            true => is_match(words_of_best(snapshot, &rest, &ranking, hits)?, best_words),
            false => is_date_alone || !has_meaning,
        };
        // What is related with a note need not have the words.
        if !(hits.answer.is_some() || is_by_words || is_by_meaning) {
            let worse = format!("the notes {period} answer the query much worse than others");
            let searched = format!("all notes were searched, although it says \"{words}\"");
            return Ok(whole(format!("{worse}, so {searched}")));
        }
        if best_words <= 0.0 {
            // No word tells the notes of the period apart.
            let ranked: FileSet = hits.found.iter().map(|hit| hit.row.id).collect();
            let missing = scope.most.saturating_sub(hits.found.len());
            let others = rows.into_iter().filter(|row| !ranked.contains(row.id));
            let others = others.map(without_rank);
            match scope.extent {
                Extent::Pages => hits.found.extend(others.take(missing)),
                Extent::All => hits.found.extend(others),
            }
            hits.best = hits.found.len().min(hits.best + missing);
            if let Some(trace) = &mut hits.trace {
                trace.record(Stage::Period, hits.found.iter().map(|hit| hit.row.id));
            }
        }
        let narrowed = format!("only notes {period} were searched, because the query says \"{words}\"");
        notices.push(format!("{narrowed}; leave these words out to search all notes").into());
        let filter = format!("dated {period}, by the words \"{words}\"");
        let narrowed = NarrowedHits { hits: found, rest, period: Period { filter, files } };
        Ok(DatedHits { narrowed: Some(narrowed), is_date_alone, notices })
    }
}

/// Returns the most that one of the hits has of the words of a query, each weighed by its inverse document frequency. Where
/// in a note a word stands, and how often, tells nothing of its date.
fn words_of_best(snapshot: &Snapshot, query: &Query, words: &[Word], hits: &SearchHits) -> Result<f32> {
    if words.is_empty() {
        return Ok(0.0);
    }
    // A frequency saturates at once.
    let tuning = Tuning { k1: f32::EPSILON, ..Tuning::of(query.language) };
    let files: FileSet = hits.best().iter().map(|hit| hit.row.id).collect();
    Ok(snapshot.bm25.scores_of(words, &files, &tuning)?.into_values().fold(0.0, f32::max))
}

/// Returns the highest similarity of a query and one of the hits.
fn meaning_of_best(hits: &SearchHits) -> f32 {
    hits.best().iter().filter_map(|hit| hit.components.cosine).fold(0.0, f32::max)
}

/// Returns a note of the period by which nothing ranks.
fn without_rank(row: FileRow) -> SearchHit {
    SearchHit {
        row,
        score: 0.0,
        match_type: MatchType::Exact,
        passage: None,
        quoted: None,
        components: Components::default(),
        evidence: None,
        updated_by: None,
    }
}
