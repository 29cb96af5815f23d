//! Which notes a prompt means: those that it names, or else those that are about it.

use std::collections::{HashMap, HashSet};

use sidenote_base::error::Result;
use sidenote_catalog::Filter;
use sidenote_language::english::english_rank;
use sidenote_memory::mention::{Mention, PromptWord, prompt_words};
use sidenote_search::query::Query;
use sidenote_search::{Mode, SearchHit};

use crate::Recalls;
use crate::prompt_evidence::EvaluatedMatch;

/// The most words of a prompt by which it names notes.
const MOST_PROMPT_WORDS: usize = 400;

/// The most words of a prompt for which a nearest word is looked for, which takes a look at all words of the vault.
const MOST_CORRECTIONS: usize = 3;

/// A word that more than one in `TERM_SHARE` notes has is a term.
const TERM_SHARE: u64 = 50;

/// The least strength of the evidence, where the prompt is an order to an agent.
const STRONG_FOR_ORDER: f32 = 1.4;

/// The least length of a word that may have a mistake, in characters.
const MIN_CORRECTED: usize = 6;

/// The most notes that are looked at because a prompt may name them.
const MOST_NAMED: usize = 12;

/// The most notes that are meant by one word of a proper name.
const MOST_NAMESAKES: usize = 3;

/// How strong the evidence for a note must be, relative to that of the best one.
const CLEARNESS: f32 = 0.9;

impl Recalls<'_> {
    /// Splits a prompt into the words by which it can name a note. A long word that neither a note nor the list of common
    /// words has is replaced by the nearest one that a note has.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the index cannot be read.
    pub(super) fn prompt_words(&self, prompt: &str) -> Result<Vec<PromptWord>> {
        let snapshot = self.core.index.snapshot()?;
        let mut words = prompt_words(prompt, &english_rank);
        words.truncate(MOST_PROMPT_WORDS);
        let mut left = MOST_CORRECTIONS;
        let most = 3 + snapshot.bm25.documents() / TERM_SHARE;
        for word in &mut words {
            let is_long = word.text.chars().count() >= MIN_CORRECTED;
            if !word.is_distinctive() {
                continue;
            }
            let typed = Query::plain(&word.text);
            let [only] = typed.words.as_slice() else { continue };
            let mut notes = snapshot.bm25.document_frequency(only)?;
            let bm25 = &snapshot.bm25;
            if left > 0
                && is_long
                && bm25.is_out_of_vocabulary(only)?
                && !bm25.is_part_of_compound(only, 1)?
            {
                left -= 1;
                if let Some(nearest) = snapshot.bm25.nearest_word(&word.text, |_| true)? {
                    // What was meant can be a word of everybody.
                    word.rank = english_rank(&nearest);
                    let meant = Query::plain(&nearest);
                    notes = match meant.words.as_slice() {
                        [only] => snapshot.bm25.document_frequency(only)?,
                        _ => notes,
                    };
                    word.text = nearest;
                }
            }
            word.is_term = notes > most;
        }
        Ok(words)
    }

    /// Finds notes with the words of a prompt that can be a part of a proper name, besides those that were found.
    ///
    /// # Errors
    /// The errors of [`Recalls::candidates`].
    pub(super) fn notes_with_names(
        &self,
        prompt: &[PromptWord],
        filter: Filter,
        found: &[SearchHit],
    ) -> Result<Vec<SearchHit>> {
        let names: Vec<&str> =
            prompt.iter().filter(|word| word.is_distinctive()).map(|word| word.text.as_str()).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let query = Query::plain(&names.join(" "));
        let named = self.candidates(&query, Some(Mode::Bm25), filter, MOST_NAMED)?.found;
        let is_new = |hit: &SearchHit| found.iter().all(|known| known.row.id != hit.row.id);
        Ok(named.into_iter().filter(is_new).collect())
    }
}

/// Returns the numbers of the notes that a prompt means: those that it names and those that say something about them,
/// or else those that are about it nearly as clearly as the best one. Every pinned note that is about the prompt is
/// meant, because a person chose it to be at hand.
pub(super) fn meant(
    weighed: &[Option<EvaluatedMatch>],
    prompt: &[PromptWord],
    floor: Option<f32>,
    is_pinned: impl Fn(usize) -> bool,
) -> HashSet<usize> {
    let mut meant = clearly_meant(weighed, prompt, floor);
    if !meant.is_empty() {
        let about = |at: &usize| {
            weighed.get(*at).and_then(Option::as_ref).is_some_and(|weighed| weighed.evidence.is_about(floor))
        };
        meant.extend((0..weighed.len()).filter(|at| is_pinned(*at)).filter(about));
    }
    meant
}

/// Returns the numbers of the notes that a prompt means, pinned or not.
fn clearly_meant(
    weighed: &[Option<EvaluatedMatch>],
    prompt: &[PromptWord],
    floor: Option<f32>,
) -> HashSet<usize> {
    let known: Vec<(usize, &EvaluatedMatch)> =
        weighed.iter().enumerate().filter_map(|(at, weighed)| Some((at, weighed.as_ref()?))).collect();
    let strength = |weighed: &EvaluatedMatch| weighed.evidence.strength(floor);
    let mut by_part: HashMap<&str, usize> = HashMap::new();
    for (_, weighed) in &known {
        if let Some(Mention::Part(word)) = &weighed.mention {
            *by_part.entry(word).or_default() += 1;
        }
    }
    let is_named = |weighed: &EvaluatedMatch| match &weighed.mention {
        Some(Mention::Whole) => true,
        // A word of many names is none.
        Some(Mention::Part(word)) => by_part.get(word.as_str()).is_some_and(|notes| *notes <= MOST_NAMESAKES),
        None => weighed.evidence.is_named,
    };
    let (named, others): (Vec<_>, Vec<_>) = known.into_iter().partition(|(_, weighed)| is_named(weighed));
    if named.is_empty() {
        let best = others.iter().map(|(_, weighed)| strength(weighed)).fold(0.0, f32::max);
        let is_order = prompt.first().is_some_and(|word| word.begins_order);
        if is_order && best < STRONG_FOR_ORDER {
            return HashSet::new();
        }
        let least = f32::max(1.0, best * CLEARNESS);
        return others.iter().filter(|(_, weighed)| strength(weighed) >= least).map(|(at, _)| *at).collect();
    }
    // What another note says of the one who is named helps, too.
    let is_name = |word: &&String| prompt.iter().any(|said| said.is_distinctive() && said.text == **word);
    let names: HashSet<&String> =
        named.iter().flat_map(|(_, weighed)| &weighed.found).filter(is_name).collect();
    let least = named.iter().map(|(_, weighed)| strength(weighed)).fold(1.0, f32::max);
    let says = |weighed: &EvaluatedMatch| {
        strength(weighed) >= least && weighed.found.iter().any(|word| names.contains(word))
    };
    named.iter().chain(others.iter().filter(|(_, weighed)| says(weighed))).map(|(at, _)| *at).collect()
}
