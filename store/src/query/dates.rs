//! Searches whose query names a period: they are narrowed to the notes that state a date in it.

use crate::core::Core;
use crate::query::verify::SearchHits;
use sidenote_foundation::clock::Timestamp;
use sidenote_foundation::error::Result;
use sidenote_foundation::index::Snapshot;
use sidenote_foundation::index::catalog::{FileId, Inactive};
use sidenote_foundation::index::file_set::FileSet;
use sidenote_foundation::search::date_phrase::{self, DatePhrase};
use sidenote_foundation::search::note_date::NoteDate;
use sidenote_foundation::search::query::Query;
use sidenote_foundation::text::name_date::day_in_name;
use sidenote_foundation::text::terms::is_stop_word;
use sidenote_foundation::wording::Wording;

/// The least part of the best BM25 score of all notes that the best note of the period has. A worse match is not what was
/// asked for.
const MIN_MATCH: f32 = 0.5;

/// A query that names a period in which some notes state a date.
pub(super) struct DatedQuery {
    phrase: DatePhrase,
    /// The phrase as it was written.
    words: String,
    /// The query without the phrase.
    rest: Query,
    /// The notes that state a date in the period.
    files: FileSet,
}

/// The result of a search that was narrowed to a period.
pub(super) struct DatedHits {
    pub(super) hits: SearchHits,
    /// The query without the words that name the period.
    pub(super) rest: Query,
    /// Notices of the search, and that it was narrowed.
    pub(super) notices: Vec<Wording>,
    /// A description of the period for an explanation.
    pub(super) filter: String,
}

impl DatedQuery {
    /// Returns the period that a query names, if some notes state a date in it.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    pub(super) fn of(
        core: &Core,
        text: &str,
        snapshot: &Snapshot,
        hidden: Inactive,
        now: Timestamp,
    ) -> Result<Option<Self>> {
        let Some(phrase) = date_phrase::find(text, now) else { return Ok(None) };
        // A note that the whole query names is what was asked for.
        if !core.index.catalog().names().with_title_or_name(text.trim())?.is_empty() {
            return Ok(None);
        }
        let mut rest = Query::plain(&phrase.without(text));
        rest.in_languages_of(&snapshot.bm25)?;
        if rest.words.iter().all(|word| is_stop_word(&word.exact)) {
            return Ok(None);
        }
        let table = core.index.file_table(snapshot)?;
        let dated = table.entries().iter().filter(|entry| {
            let is_hidden =
                hidden.archived && entry.inactive.archived || hidden.forgotten && entry.inactive.forgotten;
            let in_name = day_in_name(&entry.path).is_some_and(|at| phrase.contains(at));
            entry.is_text() && !is_hidden && (phrase.contains(entry.created) || in_name)
        });
        let dated: Vec<FileId> = dated.map(|entry| entry.id).collect();
        let rows = core.index.catalog().rows(&dated)?;
        let dates = rows.iter().map(|row| (row.id, NoteDate::of(row)));
        let files: FileSet =
            dates.filter(|(_, date)| date.is_stated && phrase.contains(date.at)).map(|(id, _)| id).collect();
        let words = phrase.span.of(text).to_owned();
        Ok((!files.is_empty()).then_some(Self { phrase, words, rest, files }))
    }

    /// Searches the notes of the period. Returns `None` if they answer the rest of the query much worse than all notes do.
    ///
    /// # Errors
    /// The errors of `sought`, which searches for a query.
    pub(super) fn search(
        self,
        sought: &mut impl FnMut(&Query, Option<&FileSet>, &mut Vec<Wording>) -> Result<SearchHits>,
    ) -> Result<Option<DatedHits>> {
        let mut notices = Vec::new();
        let hits = sought(&self.rest, Some(&self.files), &mut notices)?;
        let all = sought(&self.rest, None, &mut Vec::new())?;
        let best =
            |hits: &SearchHits| hits.found.iter().filter_map(|hit| hit.components.bm25).fold(0.0, f32::max);
        // What is related with a note need not have the words.
        let is_related = hits.answer.is_some();
        if !is_related && (best(&hits) <= 0.0 || best(&hits) < MIN_MATCH * best(&all)) {
            return Ok(None);
        }
        let Self { phrase, words, rest, .. } = self;
        let period = phrase.period();
        let narrowed = format!("only notes {period} were searched, because the query says \"{words}\"");
        notices.push(format!("{narrowed}; leave these words out to search all notes").into());
        Ok(Some(DatedHits {
            hits,
            rest,
            notices,
            filter: format!("dated {period}, by the words \"{words}\""),
        }))
    }
}
