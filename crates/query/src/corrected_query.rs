//! Suggests the spelling that was meant where a search finds nothing by words.

use sidenote_base::error::Result;
use sidenote_bm25::{Bm25Query, Tuning};
use sidenote_index::Snapshot;
use sidenote_language::english::english_rank;
use sidenote_language::language::typed_form;
use sidenote_language::terms::{Terms, terms};
use sidenote_open_vault::Core;
use sidenote_search::query::Query;

/// Returns what was typed as a query with the spelling corrected; `None` if there is nothing to correct.
///
/// # Errors
/// `Corrupt` or `Io` if the index cannot be read.
pub(super) fn suggestion(
    core: &Core,
    typed: &str,
    query: &Query,
    snapshot: &Snapshot,
) -> Result<Option<String>> {
    corrected_query(typed, query, snapshot, |word| written_form(core, word, snapshot))
}

/// Returns a folded word as a note writes it, in lower case: with its diacritics and in its own letters.
fn written_form(core: &Core, folded: &str, snapshot: &Snapshot) -> Result<Option<String>> {
    let words = Query::plain(folded).words;
    let query = Bm25Query { words: &words, allowed: None, limit: 1 };
    let best = snapshot.bm25.search(&query, &Tuning::default())?;
    let files: Vec<_> = best.first().map(|hit| hit.file).into_iter().collect();
    let Some(row) = core.index.catalog().rows(&files)?.pop() else { return Ok(None) };
    // A note that was removed since it was indexed tells nothing.
    let Some(note) = core.parsed_note(&row.path) else { return Ok(None) };
    let mut walk = Terms::new(&note.text);
    while walk.advance() {
        let term = walk.term();
        if term.text == folded {
            return Ok(note.text.get(term.start..term.end).map(|raw| typed_form(raw).into_owned()));
        }
    }
    Ok(None)
}

/// Returns a query with each word that no note contains replaced by the nearest one. Returns `None` if there is none.
/// English words and possible parts of a compound are not taken for mistakes, whether a note has them or not, and stop
/// words are not looked up. `written` gives the spelling of the notes for a folded word.
fn corrected_query(
    typed: &str,
    query: &Query,
    snapshot: &Snapshot,
    written: impl Fn(&str) -> Result<Option<String>>,
) -> Result<Option<String>> {
    let bm25 = &snapshot.bm25;
    let languages = bm25.languages()?;
    let mut better = typed.to_owned();
    for word in &query.words {
        let is_right = word.prefix
            || english_rank(&word.exact).is_some()
            || !bm25.is_out_of_vocabulary(word)?
            || bm25.is_in_longer_word(word)?;
        if is_right {
            continue;
        }
        let may_be_meant =
            |other: &str| is_plausible_correction(&word.exact, other) && !languages.have_stop_word(other);
        let Some(nearest) = bm25.nearest_word(&word.exact, may_be_meant)? else { continue };
        // A word after an operator, or one that must not occur, does not rank.
        let is_free = |start: usize| !better.get(..start).unwrap_or("").ends_with([':', '-', '#', '/', '[']);
        let found = terms(&better).into_iter().find(|term| term.text == word.exact && is_free(term.start));
        if let Some(term) = found {
            better.replace_range(term.start..term.end, &written(&nearest)?.unwrap_or(nearest));
        }
    }
    Ok((better != typed).then_some(better))
}

/// Returns whether a word may be a misspelling of another one. One changed letter often makes another word of a word of
/// four letters (`Zahn`, `zehn`), and rarely of a word of five. Mistakes in the first letter are rare: such a mistake
/// must be the only one, and must not change the letter, since words that differ only in it are different words
/// (`Woche`, `coche`).
fn is_plausible_correction(typed: &str, other: &str) -> bool {
    let has_few = 5 * letters_of_one(typed, other) <= 2 * typed.chars().count();
    let begins_alike = typed.chars().next() == other.chars().next();
    let is_first_changed = typed.chars().skip(1).eq(other.chars().skip(1));
    has_few && (begins_alike || !is_first_changed && strsim::osa_distance(typed, other) <= 1)
}

/// Counts the letters that only one of two words has. A changed letter counts twice, and letters in another order do not.
fn letters_of_one(one: &str, other: &str) -> usize {
    let mut rest: Vec<char> = other.chars().collect();
    let mut missing = 0;
    for letter in one.chars() {
        match rest.iter().position(|&known| known == letter) {
            Some(at) => {
                rest.swap_remove(at);
            }
            None => missing += 1,
        }
    }
    missing + rest.len()
}
