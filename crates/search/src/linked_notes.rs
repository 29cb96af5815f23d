//! Notes that are linked with the note that a question by relation names. They may answer it in words that no rule knows: the
//! kinds of the notes and the words around their links tell how likely that is.

use std::collections::{HashMap, HashSet};

use sidenote_base::error::Result;
use sidenote_base::parallel;
use sidenote_catalog::{CatalogReader, FileId, FileKind, FileRow};
use sidenote_language::relation_words::{Words, relation_words};
use sidenote_language::terms::{CachedStemmer, is_stop_word};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::relation::{
    LinkContext, NameStems, PhraseStems, RelationEnd, RelationRules, RuleStems, link_contexts,
};

use crate::relation_answer::{Evidence, RelatedNote, RelationLookup, Standing};
use crate::typed_relations::{TypedRelation, TypedRelations};

/// The most notes that are read for the words around their links.
const MAX_SOURCES: usize = 150;
/// The most linked notes that are returned.
const MAX_LINKED: usize = 20;
/// The number of relations of the type that show of which kinds their ends are.
const SAMPLE: usize = 200;
/// The fewest relations that show it.
const MIN_SAMPLE: usize = 3;
/// The least share of the notes at an end that makes their kind one of that end.
const MIN_SHARE: f32 = 0.2;
/// The most relations for one note at an end, on average, of a type that has only one.
const MOST_OF_ONE: f32 = 1.15;

/// What a word of the type or of the question counts, up to two of them.
const OWN_WORD: f32 = 1.0;
const MOST_OWN_WORDS: usize = 2;
/// What a word of another type counts, up to three of them.
const OTHER_WORD: f32 = -0.3;
const MOST_OTHER_WORDS: usize = 3;
/// What counts words that deny what they say, or leave it open.
const DOUBT: f32 = -2.5;
/// What counts a link of the sentence before.
const EARLIER: f32 = -0.2;
/// The weight of words that relate two links to notes other than their own note.
const AMONG_OTHERS: f32 = -1.2;

/// What is looked for among the linked notes.
pub(super) struct LinkQuestion<'a> {
    /// The type of the relation.
    pub(super) kind: &'a str,
    /// The note that the question names.
    pub(super) named: FileId,
    /// The end of the relation at which it is.
    pub(super) end: RelationEnd,
    /// The relations of the note.
    pub(super) own: &'a [TypedRelation],
    /// The notes that state the relation.
    pub(super) stated: &'a [FileId],
    /// The words of the question that name nothing, as stems.
    pub(super) stems: &'a HashSet<String>,
    /// Whether the question asks for a person.
    pub(super) asks_who: bool,
    /// Whether the question asks for what was, as [`asks_for_past`] says.
    pub(super) asks_past: bool,
}

/// A note that may answer, with the words around the link.
struct Candidate {
    file: FileId,
    fit: f32,
    own_words: usize,
    evidence: Evidence,
}

/// Lists the notes that are linked with the named one and of a kind that fits, those first that answer most likely.
pub(super) fn linked_notes(
    catalog: &CatalogReader,
    lookup: RelationLookup<'_>,
    question: &LinkQuestion<'_>,
    stem: &mut CachedStemmer,
) -> Result<Vec<RelatedNote>> {
    let ends = Ends::of_type(catalog, lookup.rules, question, stem)?;
    if !ends.can_be_named {
        return Ok(Vec::new());
    }
    // What has one object only has it already.
    if ends.has_one && !question.stated.is_empty() {
        return Ok(Vec::new());
    }
    let words = TypeWords::new(lookup.rules, question);
    let mut best: HashMap<FileId, Candidate> = HashMap::new();
    for source in sources(catalog, lookup, question.named, &ends, stem)? {
        for context in &source.contexts {
            let candidates = candidates(&source, context, question, lookup.rules);
            if candidates.is_empty() {
                continue;
            }
            let (own_words, mut fit) = words.fit(context, stem);
            // Who left the company works there no longer.
            if !question.asks_past
                && context.words.iter().any(|word| relation_words().ended.contains(word.as_str()))
            {
                fit += DOUBT;
            }
            for (file, weight) in candidates {
                let fit = fit + weight;
                if best.get(&file).is_none_or(|known| fit > known.fit) {
                    let evidence = Evidence { source: source.row.id, line: context.line, span: context.span };
                    best.insert(file, Candidate { file, fit, own_words, evidence });
                }
            }
        }
    }
    let mut found = Vec::new();
    for row in catalog.rows(&best.keys().copied().collect::<Vec<_>>())? {
        let is_shown = row.kind != FileKind::Attachment && !row.excluded;
        let Some(candidate) = best.remove(&row.id).filter(|_| is_shown) else { continue };
        let Some(is_known) = ends.fits(&row, stem) else { continue };
        // Where nothing tells the kind of a note, a word of the relation must. With less likely notes, recall@5 rises by
        // .01 to .03 and precision falls by .3.
        if candidate.fit >= 0.0 && (is_known || candidate.own_words > 0) {
            let Candidate { file, fit, evidence, .. } = candidate;
            let standing = Standing::Likely;
            found.push((RelatedNote { file, standing, fit, evidence: Some(evidence) }, row.path));
        }
    }
    found.sort_by(|(a, of_a), (b, of_b)| {
        b.fit.total_cmp(&a.fit).then_with(|| of_a.as_str().cmp(of_b.as_str()))
    });
    found.truncate(MAX_LINKED);
    Ok(found.into_iter().map(|(note, _)| note).collect())
}

/// Says whether a question, whose words are in lower case, asks for what was: "who was director of Acme", "who worked at
/// Acme".
pub(super) fn asks_for_past<'w>(words: impl Iterator<Item = &'w str> + Clone) -> bool {
    let any = |known: &Words| words.clone().any(|word| known.contains(word));
    let has_past_form = words.clone().any(|word| word.len() > 4 && word.ends_with("ed"));
    any(&relation_words().asks_past) || (has_past_form && !any(&relation_words().asks_present))
}

/// A note with a link from or to the named note.
struct Source {
    row: FileRow,
    contexts: Vec<LinkContext>,
    /// The files that its links mean, by the index of the link.
    targets: HashMap<usize, FileId>,
}

/// Reads the named note and the notes that link to it, those left out whose links and own kinds are all of kinds that do not
/// fit: nothing in them can answer.
fn sources(
    catalog: &CatalogReader,
    lookup: RelationLookup<'_>,
    named: FileId,
    ends: &Ends,
    stem: &mut CachedStemmer,
) -> Result<Vec<Source>> {
    let mut files = vec![named];
    files.extend(catalog.links().incoming(named)?.iter().map(|link| link.source));
    files.dedup();
    files.truncate(MAX_SOURCES);
    let mut rows = catalog.rows(&files)?;
    rows.retain(|row| row.kind == FileKind::Note && !row.excluded);
    let mut known_fits: HashMap<FileId, bool> = HashMap::new();
    let mut may_answer = |file: FileId| -> Result<bool> {
        if file == named {
            return Ok(false);
        }
        if let Some(fits) = known_fits.get(&file) {
            return Ok(*fits);
        }
        let found = catalog.paths().with_type(file)?;
        let fits = found.is_some_and(|(path, kind)| ends.fit_kinds(&path, kind.as_deref(), stem).is_some());
        known_fits.insert(file, fits);
        Ok(fits)
    };
    let mut promising: Vec<(FileRow, HashMap<usize, FileId>)> = Vec::with_capacity(rows.len());
    for row in rows {
        let links = catalog.links().outgoing(row.id)?;
        let targets: HashMap<usize, FileId> =
            links.into_iter().filter_map(|link| Some((link.position.ord, link.target?))).collect();
        for file in std::iter::once(row.id).chain(targets.values().copied()) {
            if may_answer(file)? {
                promising.push((row, targets));
                break;
            }
        }
    }
    let read = |_: &mut (), (row, _): &(FileRow, _)| {
        let reading = lookup.reader.note(&row.path)?;
        Some(link_contexts(&reading.text, &reading.note))
    };
    let readings = parallel::map_largest_first(&promising, |(row, _)| row.size, || (), read);
    let sources = promising.into_iter().zip(readings);
    Ok(sources
        .filter_map(|((row, targets), contexts)| Some(Source { row, contexts: contexts?, targets }))
        .collect())
}

/// Lists the notes that a context may relate with the named one, each with what counts that it may not.
fn candidates(
    source: &Source,
    context: &LinkContext,
    question: &LinkQuestion<'_>,
    rules: &RelationRules,
) -> Vec<(FileId, f32)> {
    let named = question.named;
    let target = |at: usize| source.targets.get(&at).copied();
    let lists: Vec<usize> =
        context.links.iter().filter(|(at, _)| target(*at) == Some(named)).map(|(_, list)| *list).collect();
    let is_own = source.row.id == named;
    if !is_own && lists.is_empty() {
        return Vec::new();
    }
    let is_symmetric = rules.get(question.kind).is_some_and(|rule| rule.inverse == question.kind);
    let mut found: Vec<(FileId, f32)> = Vec::new();
    for &(at, list) in &context.links {
        // "[[Jane]] joined [[Kickoff]]" relates the two, and not the note.
        let is_among_others = is_own && context.links.iter().any(|(_, other)| *other != list);
        // What is listed beside the named note has the same relation to something else.
        let is_beside = !is_own && lists.contains(&list) && !is_symmetric;
        let weight = if is_among_others { AMONG_OTHERS } else { 0.0 };
        found.extend(target(at).filter(|_| !is_beside).map(|file| (file, weight)));
    }
    if !is_own {
        let is_among_others = context.links.iter().any(|(_, list)| !lists.contains(list));
        found.push((source.row.id, if is_among_others { AMONG_OTHERS } else { 0.0 }));
        let earlier = context.earlier.filter(|_| context.links.len() == 1).and_then(target);
        found.extend(earlier.map(|file| (file, EARLIER)));
    }
    let states_other = |file: FileId| {
        question.own.iter().any(|one| {
            let evidence = one.stated.evidence;
            let ends = [one.subject, one.object];
            rules.get(&one.kind).is_some()
                && one.stated.source == source.row.id
                && ends.contains(&file)
                && ends.contains(&named)
                && evidence.start < context.span.end
                && context.span.start < evidence.end
        })
    };
    found.retain(|(file, _)| *file != named && !question.stated.contains(file) && !states_other(*file));
    found
}

/// The words that tell a type of relations from the others, as stems.
struct TypeWords {
    own: HashSet<String>,
    others: HashSet<String>,
}

impl TypeWords {
    fn new(rules: &RelationRules, question: &LinkQuestion<'_>) -> Self {
        let (mut own, mut others) = (question.stems.clone(), HashSet::new());
        let is_own = |kind: &str| kind == question.kind;
        let RuleStems { phrases, names } = rules.stems();
        let mut add = |kind: &str, words: &mut dyn Iterator<Item = &str>, stems: &[String]| {
            let set = if is_own(kind) { &mut own } else { &mut others };
            let telling = words.zip(stems).filter(|(word, _)| is_telling(word));
            set.extend(telling.map(|(_, stem)| stem.clone()));
        };
        for PhraseStems { phrase, stems } in phrases {
            add(&phrase.kind, &mut phrase.words.iter().map(String::as_str), stems);
        }
        for NameStems { kind, name, stems, .. } in names {
            add(kind, &mut name.split('_'), stems);
        }
        Self { own, others }
    }

    /// Returns the number of words of the type in a context, and how well its words fit the question.
    fn fit(&self, context: &LinkContext, stem: &mut CachedStemmer) -> (usize, f32) {
        let told = context.words.iter().filter(|word| is_telling(word));
        let stems: HashSet<String> = told.map(|word| stem.of(word).to_owned()).collect();
        let own = stems.iter().filter(|word| self.own.contains(*word)).count();
        let is_other = |word: &&String| !self.own.contains(*word) && self.others.contains(*word);
        let others = stems.iter().filter(is_other).count();
        let fit =
            OWN_WORD * own.min(MOST_OWN_WORDS) as f32 + OTHER_WORD * others.min(MOST_OTHER_WORDS) as f32;
        (own, if context.is_doubtful { fit + DOUBT } else { fit })
    }
}

fn is_telling(word: &str) -> bool {
    !is_stop_word(word)
        && !relation_words().prepositions.contains(word)
        && !relation_words().generic.contains(word)
        && word != "*"
}

/// Of which kinds the notes at an end of a type are.
struct Ends {
    /// The kinds that tell the end that is asked for from the other one; empty if nothing is known.
    wanted: HashSet<String>,
    /// Whether a note at the end of the named one usually has one relation of the type only.
    has_one: bool,
    /// Whether the named note can be at its end.
    can_be_named: bool,
}

impl Ends {
    /// Learns the kinds from the relations that the vault states, and takes those that the rules name.
    fn of_type(
        catalog: &CatalogReader,
        rules: &RelationRules,
        question: &LinkQuestion<'_>,
        stem: &mut CachedStemmer,
    ) -> Result<Self> {
        let sample = TypedRelations::new(catalog, rules).sample(question.kind, SAMPLE)?;
        let mut shares = HashMap::new();
        for end in [question.end, question.end.other()] {
            let files: HashSet<FileId> = sample.iter().map(|relation| relation.at(end)).collect();
            let mut counts: HashMap<String, usize> = HashMap::new();
            for row in catalog.rows(&files.iter().copied().collect::<Vec<_>>())? {
                for kind in kinds_of(&row, stem).into_iter().collect::<HashSet<_>>() {
                    *counts.entry(kind).or_default() += 1;
                }
            }
            let least = (MIN_SHARE * files.len() as f32).max(1.0);
            let common = counts.into_iter().filter(|(_, count)| *count as f32 >= least);
            shares.insert(end, (common.map(|(kind, _)| kind).collect::<HashSet<_>>(), files.len()));
        }
        let (named, count) = shares.remove(&question.end).unwrap_or_default();
        let (asked, _) = shares.remove(&question.end.other()).unwrap_or_default();
        let is_known = sample.len() >= MIN_SAMPLE;
        let telling: HashSet<String> = asked.difference(&named).cloned().collect();
        let mut wanted = if telling.is_empty() { asked } else { telling };
        if !is_known {
            wanted.clear();
        }
        let of_rule = |end: RelationEnd| {
            rules.get(question.kind).map_or(&[][..], |rule| match end {
                RelationEnd::Subject => rule.subjects.as_slice(),
                RelationEnd::Object => rule.objects.as_slice(),
            })
        };
        wanted.extend(of_rule(question.end.other()).iter().map(|kind| stem.of(kind).to_owned()));
        // "Who" is a person or a company.
        if wanted.is_empty() && question.asks_who {
            let kinds = rules.types().flat_map(|(_, rule)| match rule.subjects.as_slice() {
                [] => rule.objects.as_slice(),
                people => people,
            });
            wanted.extend(kinds.map(|kind| stem.of(kind).to_owned()));
        }
        let has_one = is_known && sample.len() as f32 <= MOST_OF_ONE * count as f32;
        let mut can_be = if is_known { named } else { HashSet::new() };
        can_be.extend(of_rule(question.end).iter().map(|kind| stem.of(kind).to_owned()));
        let row = catalog.rows(&[question.named])?.pop();
        let kinds = row.map(|row| kinds_of(&row, stem)).unwrap_or_default();
        let can_be_named =
            kinds.is_empty() || can_be.is_empty() || kinds.iter().any(|kind| can_be.contains(kind));
        Ok(Self { wanted, has_one, can_be_named })
    }

    /// Says whether a note can be at the end that is asked for: `Some(true)` if its kind fits, `Some(false)` if nothing tells,
    /// and `None` if it is of another kind.
    fn fits(&self, row: &FileRow, stem: &mut CachedStemmer) -> Option<bool> {
        self.fit_kinds(&row.path, row.note_type.as_deref(), stem)
    }

    /// Says the same of a note by its path and its property `type`.
    fn fit_kinds(&self, path: &NotePath, note_type: Option<&str>, stem: &mut CachedStemmer) -> Option<bool> {
        let kinds = kinds_by(path, note_type, stem);
        if kinds.is_empty() || self.wanted.is_empty() {
            return Some(false);
        }
        kinds.iter().any(|kind| self.wanted.contains(kind)).then_some(true)
    }
}

/// Lists what a note is, as stems: its property `type`, and the names of its folders.
pub(super) fn kinds_of(row: &FileRow, stem: &mut CachedStemmer) -> Vec<String> {
    kinds_by(&row.path, row.note_type.as_deref(), stem)
}

fn kinds_by(path: &NotePath, note_type: Option<&str>, stem: &mut CachedStemmer) -> Vec<String> {
    let folders = path.folder().split('/').filter(|name| !name.is_empty());
    let named = note_type.into_iter().chain(folders);
    named.map(|name| stem.of(&name.to_lowercase()).to_owned()).collect()
}
