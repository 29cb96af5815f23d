//! Relations inferred from the words around links, by the phrases of the rules. What is not certain is left out: negations,
//! questions, conditions, and sentences whose subject is neither a link nor the note.

use sidenote_config::note_kinds::{is_kind_of, note_kinds};
use sidenote_language::relation_words::relation_words;
use sidenote_language::terms::is_stop_word;

use crate::note::Note;
use crate::relation::phrase::{Phrase, RelationEnd};
use crate::relation::rules::RelationRules;
use crate::relation::sentence::{Sentence, Token, sentences};
use crate::relation::{Relation, phrase, relation_key};
use crate::span::Span;

/// The most words between an article and what it belongs to.
const MAX_DESCRIPTION: usize = 3;
/// The most links at one end of a sentence that are related with those at the other end.
const MAX_ENDS: usize = 20;
/// The most words of a subject that is a part of the title.
const MAX_TITLE_WORDS: usize = 5;

/// The subject of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Note,
    Links(Vec<usize>),
}

/// What a sentence says: that its subject is at one end of relations, and other notes at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Statement {
    subject: Subject,
    kind: String,
    /// The end at which the subject is.
    end: RelationEnd,
    others: Vec<usize>,
}

/// Lists the relations inferred from the sentences of a note, in their order. `names` are its title, file name and aliases.
pub(super) fn inferred(text: &str, note: &Note, names: &[&str], rules: &RelationRules) -> Vec<Relation> {
    let names: Vec<String> =
        names.iter().flat_map(|name| name.split_whitespace()).map(str::to_lowercase).collect();
    let kinds = note_kinds(|name| Some(&note.frontmatter.as_ref()?.get(name)?.value));
    let mut found = Vec::new();
    let is_person = kinds.iter().any(|kind| rules.types().any(|(_, rule)| is_kind_of(kind, &rule.subjects)));
    let is_thing = !kinds.is_empty() && !is_person;
    let mut reader = Reader { rules, names: &names, kinds: &kinds, is_thing, is_person, is_about_note: true };
    // A plan is not a fact.
    let open: Vec<Span> = note.tasks.iter().filter(|task| task.status == ' ').map(|task| task.span).collect();
    let mut rows = TableRows { text, line: Span::new(0, 0) };
    for sentence in sentences(text, note) {
        if sentence.begins_block {
            reader.is_about_note = true;
        }
        let at = open.partition_point(|task| task.end <= sentence.span.start);
        if open.get(at).is_some_and(|task| task.start <= sentence.span.start) {
            // The lines below the first of an open task go on about whom it names.
            reader.is_about_note = false;
            continue;
        }
        for statement in reader.statements(&sentence) {
            // "Used by [[Acme]]" in a table is about what its row names.
            if statement.subject == Subject::Note && rows.contain(sentence.span.start) {
                continue;
            }
            let rule = rules.get(&statement.kind);
            // A relation to the note itself has its name from the other end.
            let inverse = rule.map(|rule| rule.inverse.as_ref()).unwrap_or_default();
            let (name, pairs) = match (statement.end, statement.subject) {
                (RelationEnd::Subject, Subject::Note) => {
                    let fits = rule.is_none_or(|rule| {
                        let can_be = |kind| is_kind_of(kind, &rule.subjects);
                        rule.subjects.is_empty() || kinds.is_empty() || kinds.iter().any(|kind| can_be(kind))
                    });
                    let others = if fits { statement.others } else { Vec::new() };
                    (statement.kind.as_str(), others.into_iter().map(|to| (None, to)).collect())
                }
                (RelationEnd::Object, Subject::Note) => {
                    (inverse, statement.others.into_iter().map(|to| (None, to)).collect())
                }
                (RelationEnd::Subject, Subject::Links(from)) => {
                    (statement.kind.as_str(), pairs(&from, &statement.others))
                }
                (RelationEnd::Object, Subject::Links(to)) => {
                    (statement.kind.as_str(), pairs(&statement.others, &to))
                }
            };
            let pairs = pairs.into_iter().filter(|(from, to)| !name.is_empty() && *from != Some(*to));
            found.extend(pairs.map(|(subject, object)| Relation {
                subject,
                kind: relation_key(name),
                object,
                is_inferred: true,
                line: note.links.get(object).map_or(1, |link| link.line),
                evidence: sentence.span,
            }));
        }
        reader.is_about_note = reader.stays_about_note(&sentence);
    }
    found
}

/// Tells which places are in rows of tables.
struct TableRows<'a> {
    text: &'a str,
    /// The line of the last place.
    line: Span,
}

impl TableRows<'_> {
    /// Returns whether a place is in a row. Places ascend, so that each byte is looked at once.
    fn contain(&mut self, at: usize) -> bool {
        if at >= self.line.end {
            let between = self.text.get(self.line.end..at).unwrap_or("");
            let start = between.rfind('\n').map_or(self.line.end, |end| self.line.end + end + 1);
            let rest = self.text.get(at..).unwrap_or("");
            self.line = Span::new(start, rest.find('\n').map_or(self.text.len(), |length| at + length + 1));
        }
        self.line.of(self.text).trim_start_matches([' ', '\t', '>']).starts_with('|')
    }
}

fn pairs(from: &[usize], to: &[usize]) -> Vec<(Option<usize>, usize)> {
    let from = from.get(..MAX_ENDS.min(from.len())).unwrap_or_default();
    let to = to.get(..MAX_ENDS.min(to.len())).unwrap_or_default();
    from.iter().flat_map(|&from| to.iter().map(move |&to| (Some(from), to))).collect()
}

struct Reader<'a> {
    rules: &'a RelationRules,
    /// The words of its title, file name and aliases.
    names: &'a [String],
    /// The kinds that the note states.
    kinds: &'a [String],
    /// Whether none of them is that of a person.
    is_thing: bool,
    /// Whether one of them is that of a person.
    is_person: bool,
    /// Whether "she" can mean the note: no sentence before in the block is about something else.
    is_about_note: bool,
}

impl<'a> Reader<'a> {
    /// Returns whether "she" can mean the note after a sentence.
    fn stays_about_note(&self, sentence: &Sentence<'_>) -> bool {
        let has_link = sentence.tokens.iter().any(|token| matches!(token, Token::Link(_)));
        match sentence.tokens.first() {
            // It goes on about the same.
            Some(Token::Word(word)) if relation_words().third_person.contains(word.as_ref()) || !has_link => {
                self.is_about_note
            }
            Some(Token::Word(_)) => self.begins_with_title(&sentence.tokens),
            _ => false,
        }
    }

    fn has_no_link(&self, tokens: &[Token<'_>], end: usize) -> bool {
        self.is_about_note && !tokens.iter().take(end).any(|token| matches!(token, Token::Link(_)))
    }

    fn begins_with_title(&self, tokens: &[Token<'_>]) -> bool {
        matches!((tokens.first(), self.names.first()), (Some(Token::Word(word)), Some(first)) if word == first)
    }

    /// Lists the statements of a sentence.
    fn statements(&self, sentence: &Sentence<'_>) -> Vec<Statement> {
        let tokens = &sentence.tokens;
        let first = word(tokens, 0).unwrap_or("");
        if sentence.is_question || relation_words().conditions.contains(first) {
            return Vec::new();
        }
        let mut found = Vec::new();
        // A clause begins at its subject, which may be in one list with the objects of the clause before.
        let (mut clause, mut at) = (0, 0);
        while let Some(token) = tokens.get(at) {
            let Token::Word(first) = token else {
                at += 1;
                continue;
            };
            let mut phrases = self.rules.phrases(first);
            let stated = phrases.find_map(|phrase| {
                let end = phrase_end(tokens, at, &phrase.words)?;
                let (objects, behind) = objects(tokens, end)?;
                Some((phrase, objects, behind))
            });
            let Some((phrase, mut objects, mut behind)) = stated else {
                // "No longer works at" is a phrase, and "no" alone a doubt.
                if is_doubt(first) {
                    break;
                }
                if self.rules.phrases(first).next().is_some() {
                    found.extend(self.about_note(tokens, at));
                    found.extend(self.without_object(tokens, at));
                }
                at += 1;
                continue;
            };
            // The same words can state several types. The kinds of the notes decide later.
            let same = self.rules.phrases(first).filter(|other| other.words == phrase.words);
            let next = self.next_clause(tokens, &objects, behind);
            if let Some(next) = next {
                objects.pop();
                behind = next;
            }
            for phrase in same {
                let Some(own) = tokens.get(clause..) else { continue };
                let Some(subject) = self.subject(own, at - clause, phrase) else { continue };
                let others = objects.clone();
                found.push(Statement { subject, kind: phrase.kind.clone(), end: phrase.before, others });
            }
            clause = next.unwrap_or(clause);
            at = behind;
        }
        found
    }

    /// Returns where the next clause begins, if the last one of several objects is its subject: "[[a]] replaces [[b]], [[c]]
    /// replaces [[d]]". `behind` is the end of the objects.
    fn next_clause(&self, tokens: &[Token<'_>], objects: &[usize], behind: usize) -> Option<usize> {
        let last = objects.last().filter(|_| objects.len() > 1)?;
        let goes_on = |verb: &str| {
            let states = |phrase: &Phrase| {
                phrase_end(tokens, behind, &phrase.words)
                    .is_some_and(|end| self::objects(tokens, end).is_some())
            };
            relation_words().copulas.contains(verb)
                || relation_words().past_auxiliaries.contains(verb)
                || self.rules.phrases(verb).any(states)
        };
        word(tokens, behind).filter(|verb| goes_on(verb))?;
        tokens.iter().take(behind).rposition(|token| matches!(token, Token::Link(link) if link == last))
    }

    /// Reads "[[Jane]] works here" and "[[Tom]] reports to her" at `at`, which relate links to the note.
    fn about_note(&self, tokens: &[Token<'_>], at: usize) -> Option<Statement> {
        if !self.is_about_note {
            return None;
        }
        let phrase = self.rules.phrases(word(tokens, at)?).find(|phrase| {
            let end = phrase_end(tokens, at, &phrase.words);
            let is_named = end.is_some_and(|end| match word(tokens, end) {
                Some("it" | "them") => true,
                Some("him" | "her" | "me") => !self.is_thing,
                Some("the" | "this") => {
                    word(tokens, end + 1).is_some_and(|one| relation_words().generic_subjects.contains(one))
                }
                _ => false,
            });
            let verb = phrase.head();
            let is_here = phrase_end(tokens, at, verb).is_some_and(|end| word(tokens, end) == Some("here"));
            is_named || (is_here && verb.len() < phrase.words.len())
        })?;
        let Subject::Links(others) = self.subject(tokens, at, phrase)? else { return None };
        let links = tokens.iter().take(at).filter(|token| matches!(token, Token::Link(_))).count();
        if links > others.len() {
            return None;
        }
        let (kind, end) = (phrase.kind.clone(), phrase.before.other());
        Some(Statement { subject: Subject::Note, kind, end, others })
    }

    /// Reads "[[Jane]] attended" and "[[Tom]] left in 2019" at `at`. The other end is the note itself, if it is of a
    /// kind that the type asks for.
    fn without_object(&self, tokens: &[Token<'_>], at: usize) -> Option<Statement> {
        let phrase = self.rules.phrases(word(tokens, at)?).find(|phrase| {
            let kinds = self.rules.get(&phrase.kind).map_or(&[][..], |rule| rule.objects.as_slice());
            let fits = self.kinds.iter().any(|kind| is_kind_of(kind, kinds));
            let end = phrase_end(tokens, at, &phrase.words);
            fits && end.is_some_and(|end| match tokens.get(end) {
                None | Some(Token::Mark('.' | '!' | ',' | ';')) => true,
                Some(Token::Word(word)) => {
                    let is_year = |at| {
                        self::word(tokens, at).is_some_and(|one| one.bytes().all(|b| b.is_ascii_digit()))
                    };
                    matches!(word.as_ref(), "in" | "since" | "until") && is_year(end + 1)
                }
                Some(_) => false,
            })
        })?;
        let Subject::Links(others) = self.subject(tokens, at, phrase)? else { return None };
        let (kind, end) = (phrase.kind.clone(), phrase.before.other());
        Some(Statement { subject: Subject::Note, kind, end, others })
    }

    /// Finds what a phrase at `at` says something about.
    fn subject(&self, tokens: &[Token<'_>], at: usize, phrase: &Phrase) -> Option<Subject> {
        let mut end = at;
        let mut is_past = false;
        while let Some(aux) = end
            .checked_sub(1)
            .and_then(|at| word(tokens, at))
            .filter(|one| relation_words().auxiliaries.contains(one))
        {
            is_past |= relation_words().past_auxiliaries.contains(aux);
            end -= 1;
        }
        let has_copula = end < at;
        if has_copula && is_past && phrase.is_role {
            return None;
        }
        if !has_copula {
            // "Jane works at" has no description before the verb.
            if let Some(before) = described(tokens, end).filter(|before| *before > 0 || phrase.is_role) {
                return self.before_description(tokens, before, phrase);
            }
            let mark = end.checked_sub(1).and_then(|at| tokens.get(at));
            let is_apposition = phrase.is_role || phrase.before == RelationEnd::Object;
            if is_apposition && matches!(mark, Some(Token::Mark(',' | '(' | '–' | '—'))) {
                return links_before(tokens, end - 1).map(|(links, _)| Subject::Links(links));
            }
        }
        self.agent(tokens, end, phrase)
    }

    /// Finds the subject before an article: "[[Jane]] is an early investor in", "[[Jane]], a founder of".
    fn before_description(&self, tokens: &[Token<'_>], before: usize, phrase: &Phrase) -> Option<Subject> {
        let Some(last) = before.checked_sub(1) else {
            // "A partner at [[Acme]]" is about the note; "her partner at [[Acme]]" and "the partner" are not.
            let is_other =
                word(tokens, 0).is_some_and(|one| relation_words().possessives.contains(one) || one == "the");
            return (phrase.is_role && !is_other).then_some(Subject::Note);
        };
        match tokens.get(last)? {
            Token::Mark(',' | '(' | '–' | '—') => {
                links_before(tokens, last).map(|(links, _)| Subject::Links(links))
            }
            // "Day job: engineer at" is about the note.
            Token::Mark(':') => self.has_no_link(tokens, last).then_some(Subject::Note),
            Token::Word(word) if relation_words().copulas.contains(word.as_ref()) => {
                self.agent(tokens, last, phrase)
            }
            Token::Word(word) if word == "as" => {
                links_before(tokens, last).map(|(links, _)| Subject::Links(links))
            }
            _ => None,
        }
    }

    /// Finds what stands directly before `end`: links, or the note by its title or a pronoun.
    fn agent(&self, tokens: &[Token<'_>], end: usize, phrase: &Phrase) -> Option<Subject> {
        let Some(last) = end.checked_sub(1) else { return Some(Subject::Note) };
        match tokens.get(last)? {
            Token::Link(_) => {
                let (links, is_free) = links_before(tokens, end)?;
                is_free.then_some(Subject::Links(links))
            }
            Token::Word(one) if relation_words().relatives.contains(one.as_ref()) => {
                let comma = last.checked_sub(1).filter(|&at| tokens.get(at) == Some(&Token::Mark(',')));
                links_before(tokens, comma.unwrap_or(last)).map(|(links, _)| Subject::Links(links))
            }
            Token::Word(_) => {
                let is_clause_end = |token: &Token| matches!(token, Token::Mark(',' | '(' | ':' | '–' | '—'));
                let start = tokens.get(..end)?.iter().rposition(is_clause_end).map_or(0, |at| at + 1);
                self.named(tokens.get(start..end)?, phrase)
            }
            Token::Mark(_) => None,
        }
    }

    /// Returns what words mean that are a whole subject.
    fn named(&self, clause: &[Token<'_>], phrase: &Phrase) -> Option<Subject> {
        let words: Vec<&str> = clause
            .iter()
            .map(|token| match token {
                Token::Word(word) => Some(word.as_ref()),
                Token::Link(_) | Token::Mark(_) => None,
            })
            .collect::<Option<_>>()?;
        match words.as_slice() {
            [] => None,
            [only] if relation_words().third_person.contains(only) => {
                let is_thing = matches!(*only, "it" | "they");
                let fits = if is_thing { !self.is_person } else { !self.is_thing };
                (fits && self.is_about_note).then_some(Subject::Note)
            }
            // What the author did is not a property of what the note is about, but a meeting can be.
            [only] if relation_words().first_person.contains(only) => {
                let is_meeting = self.rules.get(&phrase.kind).is_some_and(|kind| !kind.shared.is_empty());
                is_meeting.then_some(Subject::Note)
            }
            ["the", thing] if relation_words().generic_subjects.contains(thing) => {
                self.is_about_note.then_some(Subject::Note)
            }
            // "This proposal" is the note, unless the sentence before had a subject of its own.
            ["this", thing] => {
                // "This constant" in a note with the title "Constants" is one of several.
                let is_note = relation_words().generic_subjects.contains(thing)
                    || relation_words().texts.contains(thing)
                    || self.names.iter().any(|part| part == thing);
                (is_note && self.is_about_note).then_some(Subject::Note)
            }
            words if words.len() <= MAX_TITLE_WORDS => {
                let is_titled = words.iter().all(|word| self.names.iter().any(|part| part == word));
                let is_distinctive = words.iter().any(|word| !is_stop_word(word));
                (is_titled && is_distinctive).then_some(Subject::Note)
            }
            _ => None,
        }
    }
}

fn word<'a>(tokens: &'a [Token<'_>], at: usize) -> Option<&'a str> {
    match tokens.get(at)? {
        Token::Word(word) => Some(word),
        Token::Link(_) | Token::Mark(_) => None,
    }
}

pub(super) fn is_doubt(word: &str) -> bool {
    relation_words().doubts.contains(word) || word.ends_with("n't")
}

/// Returns the end of a phrase that begins at `at`.
fn phrase_end(tokens: &[Token<'_>], at: usize, words: &[String]) -> Option<usize> {
    let is_word = |at: usize| word(tokens, at).is_some();
    phrase::phrase_end(words, at, &is_word, &|at, wanted| word(tokens, at) == Some(wanted))
}

/// Returns the links from `at` on that are joined by commas or "and", and the end of the last one. A link with "'s" behind
/// it ends the list before it.
fn listed(tokens: &[Token<'_>], at: usize) -> (Vec<usize>, usize) {
    let mut links = Vec::new();
    let (mut next, mut end) = (at, at);
    while let Some(Token::Link(link)) = tokens.get(next) {
        if word(tokens, next + 1).is_some_and(|behind| behind.starts_with('\'')) {
            break;
        }
        links.push(*link);
        next += 1;
        end = next;
        while matches!(tokens.get(next), Some(Token::Mark(',')))
            || matches!(word(tokens, next), Some("and" | "&" | "the"))
        {
            next += 1;
        }
        if next == end {
            break;
        }
    }
    (links, end)
}

/// Returns the links that are the object of a phrase that ends at `at`, and the end of the last one.
fn objects(tokens: &[Token<'_>], at: usize) -> Option<(Vec<usize>, usize)> {
    let mut next = at;
    if word(tokens, next).is_some_and(|one| relation_words().titles.contains(one) || one == "both") {
        next += 1;
        next += usize::from(tokens.get(next) == Some(&Token::Mark('.')));
    } else if word(tokens, next).is_some_and(|one| relation_words().articles.contains(one)) {
        next += 1;
        let is_description = |one: &&str| !is_stop_word(one) && !relation_words().prepositions.contains(one);
        let most = next + MAX_DESCRIPTION;
        while next < most && word(tokens, next).filter(is_description).is_some() {
            next += 1;
        }
    }
    let (links, end) = listed(tokens, next);
    (!links.is_empty()).then_some((links, end))
}

/// Returns the end of the words before a description that ends at `end`, such as "an early" in "is an early investor
/// in", or "finance" in "is finance lead at".
fn described(tokens: &[Token<'_>], end: usize) -> Option<usize> {
    let mut at = end;
    loop {
        // "Staff engineer at" begins the sentence, which is about the note then.
        let Some(last) = at.checked_sub(1) else { return (at < end).then_some(at) };
        let one = match tokens.get(last)? {
            Token::Mark(',' | '(' | '–' | '—' | ':') if at < end => return Some(at),
            Token::Word(one) => one.as_ref(),
            Token::Mark(_) | Token::Link(_) => return None,
        };
        if relation_words().articles.contains(one) {
            return Some(last);
        }
        if relation_words().copulas.contains(one) || one == "as" {
            return (at < end).then_some(at);
        }
        // "Is currently a director of" and "is now director of".
        if at < end && relation_words().auxiliaries.contains(one) {
            let before = last.checked_sub(1).and_then(|at| word(tokens, at));
            return before.filter(|one| relation_words().copulas.contains(one)).map(|_| last);
        }
        let is_ending = one.ends_with("ed") || one.ends_with("ing");
        let is_verb =
            relation_words().irregular.contains(one) || (is_ending && !relation_words().ranks.contains(one));
        let is_other = relation_words().prepositions.contains(one)
            || relation_words().no_role.contains(one)
            || relation_words().auxiliaries.contains(one);
        let is_role = !is_verb && !is_other && !is_doubt(one);
        let is_word = !is_stop_word(one) || matches!(one, "and" | "of");
        if end - at >= MAX_DESCRIPTION || !((is_role && is_word) || one == "of") {
            return None;
        }
        at = last;
    }
}

/// Returns the links before `end` that are joined by commas or "and", and whether they can be the subject of a verb,
/// because no preposition precedes them.
fn links_before(tokens: &[Token<'_>], end: usize) -> Option<(Vec<usize>, bool)> {
    let mut end = end;
    // A remark may follow the link.
    if end.checked_sub(1).and_then(|at| tokens.get(at)) == Some(&Token::Mark(')')) {
        let open = tokens.get(..end - 1)?.iter().rposition(|token| *token == Token::Mark('('))?;
        end = open;
    }
    let mut links = Vec::new();
    let mut at = end;
    while let Some(Token::Link(link)) = at.checked_sub(1).and_then(|at| tokens.get(at)) {
        links.push(*link);
        at -= 1;
        let mut before = at;
        while let Some(joint) = before.checked_sub(1).and_then(|at| tokens.get(at)) {
            let is_joint =
                *joint == Token::Mark(',') || matches!(joint, Token::Word(one) if one == "and" || one == "&");
            if !is_joint {
                break;
            }
            before -= 1;
        }
        if before == at
            || !matches!(before.checked_sub(1).and_then(|at| tokens.get(at)), Some(Token::Link(_)))
        {
            break;
        }
        at = before;
    }
    let before = at.checked_sub(1).and_then(|at| word(tokens, at));
    let before = if before.is_some_and(|one| relation_words().articles.contains(one)) {
        at.checked_sub(2).and_then(|at| word(tokens, at))
    } else {
        before
    };
    let is_free = before.is_none_or(|one| !relation_words().prepositions.contains(one));
    links.reverse();
    (!links.is_empty()).then_some((links, is_free))
}
