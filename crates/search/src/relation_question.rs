//! Questions by relation: "who invested in Acme" asks for what is at the other end of a relation of a note that the
//! question names.

use std::collections::{HashMap, HashSet};

use sidenote_base::error::Result;
use sidenote_bm25::{Bm25Query, FieldTuning, Tuning};
use sidenote_catalog::{CatalogReader, FileId, FileKind, FileRow, RelationQueries};
use sidenote_index::Snapshot;
use sidenote_language::relation_words::relation_words;
use sidenote_language::terms::{CachedStemmer, is_stop_word};
use sidenote_markdown::relation::{NameStems, PhraseStems, RelationEnd, RelationRules, phrase_end};

use crate::linked_notes::{LinkQuestion, asks_for_past, kinds_of, linked_notes};
use crate::query::Query;
use crate::relation_answer::{Evidence, RelatedNote, RelationAnswer, RelationLookup, Standing};
use crate::typed_relations::{TypedRelation, TypedRelations};

/// The most words of a question.
const MAX_WORDS: usize = 40;
/// The most words of a name.
const MAX_NAME_WORDS: usize = 7;
/// The least length of a part of a name, in characters.
const MIN_PART: usize = 3;
/// The maximum number of titles with one word that are considered.
const MAX_NAMESAKES: usize = 8;
/// The most titles that are compared with a question.
const MAX_TITLES: usize = 20;
/// The most links of a named note that are looked at for notes of a kind, such as its meetings.
const MAX_NEIGHBOURS: usize = 500;

/// A word of a question.
#[derive(Debug, Clone)]
struct Said {
    text: String,
    stem: String,
    /// The number of the clause. What another clause says does not belong to the question.
    clause: usize,
}

/// A name in a question.
#[derive(Debug, Clone)]
struct Named {
    /// Where its words stand, in order.
    words: Vec<usize>,
    files: Vec<FileId>,
}

impl Named {
    fn start(&self) -> usize {
        self.words.first().copied().unwrap_or(0)
    }

    fn end(&self) -> usize {
        self.words.last().map_or(0, |at| at + 1)
    }
}

/// Words of a question that mean a type of relations.
#[derive(Debug, Clone)]
struct Cue {
    kind: String,
    start: usize,
    end: usize,
    /// The number of words that have the same form as in the rules.
    exact: usize,
    /// Whether it names an end, as "founder of" and "investors" do.
    is_name: bool,
    form: CueForm,
}

/// How a question about a note is understood.
struct Understood {
    /// The answers by what its words can mean, each with the places of the words of the note and of the relation. The first
    /// one has notes that state the relation, if any has.
    meanings: Vec<(RelationAnswer, Vec<usize>)>,
    /// The kinds of the notes around.
    kinds: Vec<(String, Vec<FileId>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CueForm {
    /// A phrase, with the end that precedes it. It is `open` if its preposition is missing.
    Phrase { before: RelationEnd, is_open: bool },
    /// A name that notes of this end use: `employer` is used in notes of the subject.
    Noun(RelationEnd),
}

/// Answers a question by relation, and adds notes that are linked with the named one. Returns `None` if it is not a
/// question by relation, or if no note answers.
///
/// # Errors
/// `Corrupt` or `Io` if the index cannot be read.
pub(super) fn answer(
    (catalog, snapshot): (&CatalogReader, &Snapshot),
    lookup: RelationLookup<'_>,
    question: &str,
) -> Result<Option<RelationAnswer>> {
    let mut stem = CachedStemmer::with_small_cache();
    let said = words(question, &mut stem);
    if said.len() < 2 || said.len() > MAX_WORDS || !RelationQueries::of_catalog(catalog).are_there()? {
        return Ok(None);
    }
    let mut reader = Reader { catalog, snapshot, rules: lookup.rules, said: &said, named: HashSet::new() };
    let cues = reader.cues();
    let mut names = reader.names(&mut stem)?;
    if names.is_empty() && !cues.is_empty() {
        names = reader.parts_of_names(&cues, &mut stem)?;
    }
    // A note with the name of a verb is not meant by it.
    let is_phrase = |cue: &&Cue| matches!(cue.form, CueForm::Phrase { is_open: false, .. });
    names.retain(|named| {
        named.words.len() > 1
            || !cues
                .iter()
                .filter(is_phrase)
                .any(|cue| named.words.iter().all(|at| (cue.start..cue.end).contains(at)))
    });
    reader.named = names.iter().flat_map(|named| named.words.iter().copied()).collect();
    let mut unstated = Vec::new();
    for named in &names {
        for &file in &named.files {
            let Some(Understood { meanings, kinds }) = reader.about(named, file, &cues, &mut stem)? else {
                continue;
            };
            for (mut answer, used) in meanings {
                if answer.notes.is_empty() {
                    unstated.push((answer, used, kinds.clone(), named));
                } else if reader.narrow_by_others(&mut answer.notes, named, &names)? {
                    let others = (named, names.as_slice());
                    reader.add_linked(&mut answer, (&used, &kinds), others, lookup, &mut stem)?;
                    return Ok(Some(answer));
                }
            }
        }
    }
    for (mut answer, used, kinds, named) in unstated {
        let others = (named, names.as_slice());
        reader.add_linked(&mut answer, (&used, &kinds), others, lookup, &mut stem)?;
        if answer.notes.iter().any(|note| note.standing == Standing::Likely) {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

fn words(question: &str, stem: &mut CachedStemmer) -> Vec<Said> {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '&' | '+' | '#' | '/');
    let question = question.replace('’', "'").replace("'s ", " ").replace("s' ", "s ");
    let question = question.strip_suffix("'s").unwrap_or(&question);
    let mut said = Vec::new();
    for (clause, text) in question.split([',', ';', ':', '?', '!', '\n', '(', ')', '–', '—']).enumerate()
    {
        let split = text.split(|c: char| !is_inner(c)).map(|word| word.trim_matches(['.', '-', '/', '&']));
        let words = split.filter(|word| !word.is_empty()).map(str::to_lowercase);
        said.extend(words.map(|text| Said { stem: stem.of(&text).to_owned(), text, clause }));
    }
    said
}

struct Reader<'a> {
    catalog: &'a CatalogReader,
    snapshot: &'a Snapshot,
    rules: &'a RelationRules,
    said: &'a [Said],
    /// Where the words of all names stand.
    named: HashSet<usize>,
}

impl Reader<'_> {
    /// Finds the notes that the question names, those first that take the most of its words: by a whole title, alias or file
    /// name, or by all words of a title in any order.
    fn names(&self, stem: &mut CachedStemmer) -> Result<Vec<Named>> {
        let mut found: Vec<Named> = Vec::new();
        for length in (1..=MAX_NAME_WORDS.min(self.said.len())).rev() {
            for start in 0..=self.said.len() - length {
                let at: Vec<usize> = (start..start + length).collect();
                let is_free = found.iter().all(|named| at.iter().all(|one| !named.words.contains(one)));
                let words = self.said.get(start..start + length).unwrap_or_default();
                if !is_free || words.iter().all(|word| is_stop_word(&word.text)) {
                    continue;
                }
                let name = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
                let files = self.catalog.names().with_title_or_name(&name)?;
                if !files.is_empty() {
                    found.push(Named { words: at, files });
                }
            }
        }
        found.extend(self.titles(stem)?);
        found.sort_by_key(|named| std::cmp::Reverse(named.words.len()));
        Ok(found)
    }

    /// Finds the notes whose title has two words or more that are all in the question, dates and small words left out.
    fn titles(&self, stem: &mut CachedStemmer) -> Result<Vec<Named>> {
        let text: Vec<&str> =
            self.said.iter().map(|word| word.text.as_str()).filter(|word| !is_filler(word)).collect();
        let query = Query::plain(&text.join(" "));
        let words = Bm25Query { words: &query.words, allowed: None, limit: MAX_TITLES };
        let best: Vec<FileId> =
            self.snapshot.bm25.search(&words, &in_titles())?.into_iter().map(|hit| hit.file).collect();
        // "Usage-based" is one word of the question and two of a title.
        let mut parts: Vec<(usize, String)> = Vec::with_capacity(self.said.len());
        for (at, word) in self.said.iter().enumerate() {
            parts.extend(word.text.split('-').map(|part| (at, stem.of(part).to_owned())));
        }
        let mut found = Vec::new();
        for row in self.catalog.rows(&best)? {
            let is_word = |word: &&Said| !is_stop_word(&word.text) && !is_number(&word.text);
            let mut places_of = |name: &str| -> Option<Vec<usize>> {
                let name = words_of(name, stem);
                let places = name.iter().filter(is_word);
                places
                    .map(|part| parts.iter().find(|(_, stem)| *stem == part.stem).map(|(at, _)| *at))
                    .collect()
            };
            let Some(mut places) = places_of(&row.title).or_else(|| places_of(row.path.stem())) else {
                continue;
            };
            places.sort_unstable();
            places.dedup();
            if places.len() > 1 {
                found.push(Named { words: places, files: vec![row.id] });
            }
        }
        // If several titles have the same words, none is meant.
        let counted: Vec<usize> =
            found.iter().map(|one| found.iter().filter(|other| other.words == one.words).count()).collect();
        let mut counts = counted.into_iter();
        found.retain(|_| counts.next() == Some(1));
        Ok(found)
    }

    /// Finds the notes that the question names by a word that is in one title only, such as a first name.
    fn parts_of_names(&self, cues: &[Cue], stem: &mut CachedStemmer) -> Result<Vec<Named>> {
        let mut found = Vec::new();
        for (at, word) in self.said.iter().enumerate() {
            let is_cue = cues.iter().any(|cue| (cue.start..cue.end).contains(&at));
            if is_cue || is_filler(&word.text) || word.text.chars().count() < MIN_PART {
                continue;
            }
            let query = Query::plain(&word.text);
            let words = Bm25Query { words: &query.words, allowed: None, limit: MAX_NAMESAKES + 1 };
            let hits = self.snapshot.bm25.search(&words, &in_titles())?;
            if hits.len() > MAX_NAMESAKES {
                continue;
            }
            let mut rows = self.catalog.rows(&hits.iter().map(|hit| hit.file).collect::<Vec<_>>())?;
            let mut has = |row: &FileRow, is_first: bool| {
                [row.title.as_str(), row.path.stem()].into_iter().any(|name| {
                    let name = words_of(name, stem);
                    name.iter().take(if is_first { 1 } else { name.len() }).any(|part| part.stem == word.stem)
                })
            };
            rows.retain(|row| has(row, false));
            // Of several, the shortest is meant if the others begin with it: "Thistle Studio", and no deal with it.
            if rows.len() > 1 {
                rows.retain(|row| has(row, true));
                rows.sort_by_key(|row| row.title.len());
                let shortest = rows.first().map(|row| row.title.clone()).unwrap_or_default();
                let is_beginning =
                    rows.iter().skip(1).all(|row| row.title.starts_with(&format!("{shortest} ")));
                rows.truncate(usize::from(is_beginning));
            }
            found.extend(rows.first().map(|only| Named { words: vec![at], files: vec![only.id] }));
        }
        Ok(found)
    }

    /// Finds the words that mean a type of the rules, the longest first, and phrases before names of relations.
    fn cues(&self) -> Vec<Cue> {
        let mut cues = Vec::new();
        let rules = self.rules.stems();
        // Few of the phrases and names begin with a word of the question.
        let can_begin = |stems: &[String]| {
            let first = stems.first().map_or("", String::as_str);
            first == "*" || self.said.iter().any(|word| word.stem == first)
        };
        for PhraseStems { phrase, stems } in rules.phrases.iter().filter(|phrase| can_begin(&phrase.stems)) {
            let head = stems.get(..phrase.head().len()).unwrap_or_default();
            if phrase.is_role && !self.is_role_of_type(&phrase.kind, phrase.words.first()) {
                continue;
            }
            // "Is at" must not match the "is" of any question.
            let can_be_open = phrase.words.iter().take(head.len()).any(|word| !is_filler(word));
            for start in 0..self.said.len() {
                let whole = self.matched(start, stems).map(|end| (end, false));
                let open = || {
                    let end = self.matched(start, head).filter(|_| can_be_open)?;
                    Some((end, true))
                };
                if let Some((end, is_open)) = whole.or_else(open) {
                    let form = CueForm::Phrase { before: phrase.before, is_open };
                    let said = self.said.get(start..end).unwrap_or_default();
                    let exact =
                        said.iter().zip(&phrase.words).filter(|(said, word)| said.text == **word).count();
                    let (kind, is_name) = (phrase.kind.clone(), phrase.is_role);
                    cues.push(Cue { kind, start, end, exact, is_name, form });
                }
            }
        }
        for name in rules.names.iter().filter(|name| can_begin(&name.stems)) {
            cues.extend(self.nouns(name));
        }
        let rank = |cue: &Cue| {
            (matches!(cue.form, CueForm::Phrase { .. }), cue.end - cue.start, cue.exact, !is_open(cue))
        };
        cues.sort_by(|a, b| rank(b).cmp(&rank(a)).then(a.kind.cmp(&b.kind)));
        cues
    }

    /// Says whether a word names an end of the type: a founder is what "founded by" leads to, a director is not an
    /// employee by name.
    fn is_role_of_type(&self, kind: &str, role: Option<&String>) -> bool {
        let role = role.map_or("", String::as_str).replace('-', "_");
        let names = self.rules.stems();
        names.has_name(kind, &role) || names.has_name(kind, &format!("{role}s"))
    }

    /// Finds the words of a name of a relation in the question.
    fn nouns(&self, NameStems { kind, name, end, stems }: &NameStems) -> Vec<Cue> {
        let starts = 0..self.said.len();
        let form = CueForm::Noun(*end);
        let cue = |start| {
            let end = self.matched(start, stems)?;
            // A name in the plural is meant by the plural alone: "reports" are people, and "report" can be a verb or a text.
            let last = self.said.get(end.checked_sub(1)?)?;
            let is_name = !name.ends_with('s') || last.text.ends_with('s');
            Some(Cue { kind: kind.clone(), start, end, exact: 0, is_name, form })
        };
        starts.filter_map(cue).collect()
    }

    /// Returns the end of words with these stems that begin at `start`.
    fn matched(&self, start: usize, stems: &[String]) -> Option<usize> {
        let is_word = |at: usize| at < self.said.len();
        let is_same = |at: usize, stem: &str| self.said.get(at).is_some_and(|word| word.stem == stem);
        phrase_end(stems, start, &is_word, &is_same).filter(|end| *end > start)
    }

    /// Answers the question about a note that it names.
    fn about(
        &self,
        named: &Named,
        file: FileId,
        cues: &[Cue],
        stem: &mut CachedStemmer,
    ) -> Result<Option<Understood>> {
        let relations = TypedRelations::new(self.catalog, self.rules);
        let own = relations.of(file)?;
        let kinds = self.kinds_around(file, &own, stem)?;
        let is_outside = |cue: &&Cue| (cue.start..cue.end).all(|at| !named.words.contains(&at));
        // "Meetings" are notes of a kind, and no phrase.
        let is_verb = |cue: &&Cue| {
            let first = self.said.get(cue.start);
            let is_kind = first
                .is_some_and(|word| kinds.iter().any(|(stem, _)| *stem == word.stem && word.text != *stem));
            !(matches!(cue.form, CueForm::Phrase { .. }) && is_kind && self.is_noun(cue.start))
        };
        let unknown = self.names_in(&own, stem);
        let own_cues: Vec<&Cue> = cues.iter().filter(is_outside).filter(is_verb).collect();
        // "Used to work at" is not "work at".
        let is_part = |cue: &Cue| {
            own_cues.iter().any(|other| {
                let (inner, outer) = (cue.end - cue.start, other.end - other.start);
                inner < outer && cue.kind != other.kind && other.start <= cue.start && cue.end <= other.end
            })
        };
        let mut own_cues: Vec<&Cue> = own_cues.iter().filter(|cue| !is_part(cue)).copied().collect();
        own_cues.sort_by_key(|cue| self.is_apart(cue, named));
        let asks_past = self.asks_past();
        let mut tried: Option<&Cue> = None;
        let mut unstated = Vec::new();
        for cue in own_cues.into_iter().chain(unknown.iter().filter(is_outside)) {
            let Some(end) = self.end_of_named(cue, named) else { continue };
            // Only other meanings of the same words may answer instead: "joined" a company, or a meeting.
            if tried.is_some_and(|first| cue.end <= first.start || first.end <= cue.start) {
                continue;
            }
            // Who worked there once does not answer for who works there.
            if !asks_past && tried.is_some_and(|first| first.kind != cue.kind && first.exact > cue.exact) {
                continue;
            }
            tried = tried.or(Some(cue));
            let used: Vec<usize> = (cue.start..cue.end).chain(named.words.iter().copied()).collect();
            if self.asks_otherwise(&used) {
                return Ok(None);
            }
            let found = relations.with_end_among(&own, &cue.kind, file, end)?;
            let notes = self.other_ends(&found, end.other(), file);
            let notes = self.of_asked_kind(notes, &used, &kinds, stem)?;
            let is_noun = matches!(cue.form, CueForm::Noun(_));
            let is_asked = cue.is_name || self.asks(&used, &kinds);
            let is_whole = self.is_whole(&used, &kinds) && (is_noun || self.asks(&used, &kinds));
            let is_answered = !notes.is_empty();
            let answer =
                RelationAnswer { kind: cue.kind.clone(), named: file, end: Some(end), notes, is_whole };
            if !is_answered {
                // What is stated by other words may be linked.
                unstated.extend(Some((answer, used)).filter(|_| is_asked));
                continue;
            }
            // "Meetings of Jane" can be those that her note lists, or all that state a relation with her.
            let of_kind = if is_noun { self.of_kind(named, file, &own, &kinds)? } else { None };
            let more = of_kind.filter(|other| other.notes.len() > answer.notes.len());
            let meanings = vec![(more.unwrap_or(answer), used)];
            return Ok(Some(Understood { meanings, kinds }));
        }
        let of_kind = if tried.is_some() { None } else { self.of_kind(named, file, &own, &kinds)? };
        let meanings: Vec<_> =
            unstated.into_iter().chain(of_kind.map(|answer| (answer, Vec::new()))).collect();
        Ok((!meanings.is_empty()).then_some(Understood { meanings, kinds }))
    }

    /// Says whether the question asks for what was.
    fn asks_past(&self) -> bool {
        // "Fred" and "Left Bank" are no words of the past.
        let words = self.said.iter().enumerate().filter(|(at, _)| !self.named.contains(at));
        asks_for_past(words.map(|(_, word)| word.text.as_str()))
    }

    /// Says whether "and" stands between a cue and the name, so that another cue comes first: "who attended the kickoff and
    /// lives in Oslo".
    fn is_apart(&self, cue: &Cue, named: &Named) -> bool {
        let between = if cue.start < named.start() { cue.end..named.start() } else { named.end()..cue.start };
        self.said.get(between).is_some_and(|words| words.iter().any(|word| word.text == "and"))
    }

    /// Returns the words in the clauses of these places.
    fn words_around<'s>(&'s self, used: &[usize]) -> impl Iterator<Item = (usize, &'s Said)> {
        let clauses: HashSet<usize> =
            used.iter().filter_map(|at| self.said.get(*at)).map(|word| word.clause).collect();
        self.said.iter().enumerate().filter(move |(_, word)| clauses.contains(&word.clause))
    }

    /// Returns whether the words around ask for no note at an end: for a time, a way or a reason, or for what is not so.
    fn asks_otherwise(&self, used: &[usize]) -> bool {
        self.words_around(used)
            .any(|(at, word)| !used.contains(&at) && relation_words().otherwise.contains(word.text.as_str()))
    }

    /// Returns whether the words around ask for notes, and are no statement.
    fn asks(&self, used: &[usize], kinds: &[(String, Vec<FileId>)]) -> bool {
        self.words_around(used).any(|(at, word)| {
            relation_words().asking.contains(word.text.as_str())
                || (!used.contains(&at) && kinds.iter().any(|(kind, _)| *kind == word.stem))
        })
    }

    /// Answers a question for notes of a kind: "meetings with Acme" are those that state a relation with it, or else those
    /// that are linked with it.
    fn of_kind(
        &self,
        named: &Named,
        file: FileId,
        own: &[TypedRelation],
        kinds: &[(String, Vec<FileId>)],
    ) -> Result<Option<RelationAnswer>> {
        let is_plural = |word: &Said, kind: &str| word.stem == kind && word.text.ends_with('s');
        let asked = self.said.iter().enumerate().find_map(|(at, word)| {
            let kind = kinds.iter().find(|(kind, _)| is_plural(word, kind) && !named.words.contains(&at))?;
            Some((at, kind))
        });
        let Some((at, (kind, notes))) = asked else { return Ok(None) };
        let stated: HashSet<FileId> = own
            .iter()
            .flat_map(|one| {
                let source = Some(one.stated.source).filter(|_| one.at(RelationEnd::Object) == file);
                [Some(one.subject), Some(one.object), source]
            })
            .flatten()
            .collect();
        let rows = self.catalog.rows(&notes.iter().copied().chain([file]).collect::<Vec<_>>())?;
        let title = rows.iter().find(|row| row.id == file).map(|row| row.title.to_lowercase());
        let title = title.filter(|title| !title.is_empty());
        let is_titled = |row: &&FileRow| {
            title.as_ref().is_some_and(|title| row.title.to_lowercase().contains(title.as_str()))
        };
        let titled: HashSet<FileId> = rows.iter().filter(is_titled).map(|row| row.id).collect();
        let stating: Vec<FileId> =
            notes.iter().copied().filter(|note| stated.contains(note) || titled.contains(note)).collect();
        let notes = if stating.is_empty() { notes.clone() } else { stating };
        let used: Vec<usize> = named.words.iter().copied().chain([at]).collect();
        let is_whole = self.is_whole(&used, kinds);
        let related = |file| RelatedNote { file, standing: Standing::Stated, fit: 0.0, evidence: None };
        let notes = notes.into_iter().map(related).collect();
        Ok(is_whole.then(|| RelationAnswer { kind: kind.clone(), named: file, end: None, notes, is_whole }))
    }

    /// Keeps of an answer what is related or linked with the other notes that the question names: "who did Tom meet at the
    /// kickoff". Returns whether anything is left.
    fn narrow_by_others(&self, notes: &mut Vec<RelatedNote>, named: &Named, names: &[Named]) -> Result<bool> {
        let relations = TypedRelations::new(self.catalog, self.rules);
        let others = names.iter().filter(|other| other.words.iter().all(|at| !named.words.contains(at)));
        for other in others {
            let (mut related, mut linked) = (HashSet::new(), HashSet::new());
            for &file in &other.files {
                related.extend(relations.of(file)?.iter().flat_map(|one| [one.subject, one.object]));
                linked.extend(self.catalog.links().neighbours(file)?);
            }
            notes.retain(|note| {
                related.contains(&note.file)
                    || (note.standing == Standing::Likely && linked.contains(&note.file))
            });
        }
        Ok(!notes.is_empty())
    }

    /// Adds the notes that are linked with the named one and may answer in other words.
    fn add_linked(
        &self,
        answer: &mut RelationAnswer,
        (used, kinds): (&[usize], &[(String, Vec<FileId>)]),
        (named, names): (&Named, &[Named]),
        lookup: RelationLookup<'_>,
        stem: &mut CachedStemmer,
    ) -> Result<()> {
        let Some(end) = answer.end else { return Ok(()) };
        let own = TypedRelations::new(self.catalog, self.rules).of(answer.named)?;
        let stated: Vec<FileId> = answer.notes.iter().map(|note| note.file).collect();
        let is_kind = |word: &Said| kinds.iter().any(|(kind, _)| *kind == word.stem);
        let is_free =
            |at: &usize, word: &Said| !self.named.contains(at) && !is_filler(&word.text) && !is_kind(word);
        let around = self.words_around(used).filter(|(at, word)| is_free(at, word));
        let question = LinkQuestion {
            kind: &answer.kind,
            named: answer.named,
            end,
            own: &own,
            stated: &stated,
            stems: &around.map(|(_, word)| word.stem.clone()).collect(),
            asks_who: self.said.iter().any(|word| matches!(word.text.as_str(), "who" | "whom" | "whose")),
            asks_past: self.asks_past(),
        };
        let linked = linked_notes(self.catalog, lookup, &question, stem)?;
        let mut linked = self.of_asked_kind(linked, used, kinds, stem)?;
        self.narrow_by_others(&mut linked, named, names)?;
        answer.notes.extend(linked);
        Ok(())
    }

    /// Says whether the word can be a noun made of a verb: "meetings".
    fn is_noun(&self, at: usize) -> bool {
        self.said.get(at).is_some_and(|word| word.text.trim_end_matches('s').ends_with("ing"))
    }

    /// Returns the end of the relation at which the named note is.
    fn end_of_named(&self, cue: &Cue, named: &Named) -> Option<RelationEnd> {
        let is_before = named.end() <= cue.start;
        match cue.form {
            CueForm::Noun(end) => Some(end),
            CueForm::Phrase { before, is_open } => {
                if is_open
                    && !is_before
                    && self.said.get(cue.end).is_some_and(|word| word.text != "by")
                    && cue.end != named.start()
                {
                    // "Who works from Acme" has another preposition.
                    let between = self.said.get(cue.end..named.start()).unwrap_or_default();
                    if between.iter().any(|word| relation_words().prepositions.contains(word.text.as_str())) {
                        return None;
                    }
                }
                let has_by = self.said.get(cue.start..cue.end)?.iter().any(|word| word.text == "by");
                let is_by_behind = !has_by && self.said.get(cue.end).is_some_and(|word| word.text == "by");
                let verb = self.said.get(cue.start)?;
                let is_passive = !has_by
                    && !is_by_behind
                    && is_before
                    && verb.text.ends_with("ed")
                    && self
                        .said
                        .iter()
                        .take(cue.start)
                        .any(|word| relation_words().passive.contains(word.text.as_str()));
                let end = if is_before { before } else { before.other() };
                Some(if is_by_behind || is_passive { end.other() } else { end })
            }
        }
    }

    /// Finds names of relations of the note that the rules do not have.
    fn names_in(&self, own: &[TypedRelation], stem: &mut CachedStemmer) -> Vec<Cue> {
        let mut kinds: Vec<&String> = own.iter().map(|relation| &relation.kind).collect();
        kinds.sort();
        kinds.dedup();
        kinds.retain(|kind| self.rules.get(kind).is_none());
        let both = [RelationEnd::Subject, RelationEnd::Object];
        kinds
            .iter()
            .flat_map(|kind| both.map(|end| (*kind, end)))
            .flat_map(|(kind, end)| self.nouns(&NameStems::new(kind, kind, end, stem)))
            .collect()
    }

    /// Lists the notes at an end, each once, those that are stated most often first.
    fn other_ends(&self, found: &[TypedRelation], end: RelationEnd, file: FileId) -> Vec<RelatedNote> {
        let mut times: HashMap<FileId, (usize, usize)> = HashMap::new();
        for (place, note) in found.iter().map(|relation| relation.at(end)).enumerate() {
            times.entry(note).or_insert((place, 0)).1 += 1;
        }
        times.remove(&file);
        let mut notes: Vec<(FileId, (usize, usize))> = times.into_iter().collect();
        // What is stated of the note itself comes before what follows from others.
        let is_shared = |place: usize| found.get(place).is_some_and(|relation| relation.is_shared);
        notes.sort_by_key(|(_, (place, times))| (is_shared(*place), std::cmp::Reverse(*times), *place));
        let related = |(file, (place, _)): (FileId, (usize, usize))| {
            let stated = found.get(place).map(|relation| &relation.stated);
            let standing = if is_shared(place) { Standing::Shared } else { Standing::Stated };
            let evidence =
                stated.map(|row| Evidence { source: row.source, line: row.line, span: row.evidence });
            RelatedNote { file, standing, fit: 0.0, evidence }
        };
        notes.into_iter().map(related).collect()
    }

    /// Keeps the searchable notes, and of those the ones of a kind that the question names, if there are any. `used` are the
    /// places of words that mean something else.
    fn of_asked_kind(
        &self,
        notes: Vec<RelatedNote>,
        used: &[usize],
        kinds: &[(String, Vec<FileId>)],
        stem: &mut CachedStemmer,
    ) -> Result<Vec<RelatedNote>> {
        let rows = self.catalog.rows(&notes.iter().map(|note| note.file).collect::<Vec<_>>())?;
        let is_shown = |row: &&FileRow| row.kind != FileKind::Attachment && !row.excluded;
        let shown: HashSet<FileId> = rows.iter().filter(is_shown).map(|row| row.id).collect();
        let free =
            self.said.iter().enumerate().filter(|(at, word)| !used.contains(at) && !is_filler(&word.text));
        let kinds: Vec<&String> = free
            .filter_map(|(_, word)| kinds.iter().map(|(kind, _)| kind).find(|kind| **kind == word.stem))
            .collect();
        let mut asked = HashSet::new();
        for row in &rows {
            if kinds_of(row, stem).iter().any(|kind| kinds.contains(&kind)) {
                asked.insert(row.id);
            }
        }
        let kept = notes.into_iter().filter(|note| shown.contains(&note.file));
        Ok(kept.filter(|note| kinds.is_empty() || asked.contains(&note.file)).collect())
    }

    /// Lists the kinds of the notes around one, as stems, each with the notes of the kind.
    fn kinds_around(
        &self,
        file: FileId,
        own: &[TypedRelation],
        stem: &mut CachedStemmer,
    ) -> Result<Vec<(String, Vec<FileId>)>> {
        let mut around = self.catalog.links().neighbours(file)?;
        around.truncate(MAX_NEIGHBOURS);
        around.extend(
            own.iter().flat_map(|relation| [relation.subject, relation.object, relation.stated.source]),
        );
        around.sort_unstable();
        around.dedup();
        let mut kinds: Vec<(String, Vec<FileId>)> = Vec::new();
        for row in self.catalog.rows(&around)?.iter().filter(|row| row.id != file) {
            // "Acme notes" asks for no kind, although the notes are in a folder `Notes`.
            for kind in kinds_of(row, stem)
                .into_iter()
                .filter(|kind| !relation_words().any_note.contains(kind.as_str()))
            {
                match kinds.iter_mut().find(|(known, _)| *known == kind) {
                    Some((_, notes)) => notes.push(row.id),
                    None => kinds.push((kind, vec![row.id])),
                }
            }
        }
        Ok(kinds)
    }

    /// Says whether every word in the clauses of these places that is not at one of them narrows nothing.
    fn is_whole(&self, used: &[usize], kinds: &[(String, Vec<FileId>)]) -> bool {
        let clauses: HashSet<usize> =
            used.iter().filter_map(|at| self.said.get(*at)).map(|word| word.clause).collect();
        self.said.iter().enumerate().all(|(at, word)| {
            !clauses.contains(&word.clause)
                || used.contains(&at)
                || self.named.contains(&at)
                || is_filler(&word.text)
                || kinds.iter().any(|(kind, _)| *kind == word.stem)
        })
    }
}

fn is_open(cue: &Cue) -> bool {
    matches!(cue.form, CueForm::Phrase { is_open: true, .. })
}

fn is_filler(word: &str) -> bool {
    is_stop_word(word)
        || relation_words().question_words.contains(word)
        || relation_words().prepositions.contains(word)
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| !c.is_alphabetic())
}

fn words_of(title: &str, stem: &mut CachedStemmer) -> Vec<Said> {
    let title = title.replace('-', " ");
    words(&title, stem)
}

/// Returns the constants by which titles alone are searched.
fn in_titles() -> Tuning {
    let nothing = FieldTuning { weight: 0.0, ..Tuning::default().title };
    let title = FieldTuning { weight: 1.0, ..nothing };
    Tuning {
        title,
        headings: nothing,
        body: nothing,
        code: nothing,
        meta: nothing,
        exact: 0.0,
        ..Tuning::default()
    }
}
