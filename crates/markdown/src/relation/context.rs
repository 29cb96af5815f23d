//! The words around links: what a sentence, a property, a field or a row of a table says of the links in it, whether or not a
//! phrase of the rules states a relation.

use sidenote_language::relation_words::relation_words;
use sidenote_language::terms::is_stop_word;

use crate::note::Note;
use crate::relation::inference::is_doubt;
use crate::relation::relation_key;
use crate::relation::sentence::{Sentence, Token, sentences};
use crate::relation::stated::Line;
use crate::span::Span;

/// Links that stand together in a note, and the words around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkContext {
    /// The links, as indices in [`Note::links`], each with the number of its list: links that only commas and "and" separate
    /// are in one list.
    pub links: Vec<(usize, usize)>,
    /// The only link of the sentence before in the same block, of which this sentence may go on.
    pub earlier: Option<usize>,
    /// The words around the links in lower case, with those of the heading above an item or a row.
    pub words: Vec<String>,
    /// Whether the words deny the statement, or leave it open.
    pub is_doubtful: bool,
    /// The sentence, the line or the property.
    pub span: Span,
    /// The line of the first link, counted from 1.
    pub line: usize,
}

/// Lists the contexts of the links of a note: those of properties, and then those of the text, in order.
pub fn link_contexts(text: &str, note: &Note) -> Vec<LinkContext> {
    let mut found = Vec::new();
    for (at, link) in note.links.iter().enumerate() {
        let Some(key) = &link.key else { continue };
        let words = words_of(&relation_key(key).replace('_', " "));
        found.push(LinkContext {
            links: vec![(at, 0)],
            earlier: None,
            words,
            is_doubtful: false,
            span: link.span,
            line: link.line,
        });
    }
    let mut earlier = None;
    for sentence in sentences(text, note) {
        if sentence.begins_block {
            earlier = None;
        }
        let only = of_sentence(text, note, &sentence, earlier, &mut found);
        earlier = only;
    }
    found
}

/// Adds the contexts of a sentence. Returns its only link, if it has one.
fn of_sentence(
    text: &str,
    note: &Note,
    sentence: &Sentence<'_>,
    earlier: Option<usize>,
    found: &mut Vec<LinkContext>,
) -> Option<usize> {
    let mut links: Vec<(usize, usize)> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut is_list_over = true;
    let mut list = 0;
    for token in &sentence.tokens {
        match token {
            Token::Link(link) => {
                list += usize::from(is_list_over);
                is_list_over = false;
                links.push((*link, list));
            }
            Token::Word(word) => {
                is_list_over |= !matches!(word.as_ref(), "and" | "&" | "the");
                words.push(word.clone().into_owned());
            }
            Token::Mark(mark) => is_list_over |= *mark != ',',
        }
    }
    let only = match links.as_slice() {
        [(only, _)] => Some(*only),
        // Of a longer sentence it is not clear what the next one goes on about.
        [] => earlier,
        _ => None,
    };
    let mut rest = Vec::with_capacity(links.len());
    for &(at, list) in &links {
        let line = note.links.get(at).and_then(|link| Line::of(text, note, link));
        match line.filter(Line::is_field) {
            // Fields on consecutive lines are one block, and no sentence.
            Some(line) => match found.last_mut().filter(|context| context.span == line.span()) {
                Some(context) => context.links.push((at, 0)),
                None => {
                    let line_of = note.links.get(at).map_or(1, |link| link.line);
                    found.push(field(&line, at, line_of));
                }
            },
            None => rest.push((at, list)),
        }
    }
    let first = rest.first().and_then(|(at, _)| note.links.get(*at))?;
    let is_doubtful = sentence.is_question
        || words.first().is_some_and(|word| relation_words().conditions.contains(word.as_str()))
        || says_otherwise(&words);
    let line = Line::of(text, note, first);
    let is_short = words.iter().all(|word| is_stop_word(word));
    if let Some(line) = line.filter(|line| line.is_item() || line.is_row() || is_short) {
        if line.is_row() {
            words.extend(words_of(&without_links(&line.around())));
        }
        words.extend(words_of(line.heading()));
    }
    let span = sentence.span;
    found.push(LinkContext { links: rest, earlier, words, is_doubtful, span, line: first.line });
    only
}

fn field(line: &Line<'_>, link: usize, number: usize) -> LinkContext {
    let mut words = words_of(&without_links(line.before()));
    words.extend(words_of(line.heading()));
    let is_doubtful = says_otherwise(&words);
    LinkContext { links: vec![(link, 0)], earlier: None, words, is_doubtful, span: line.span(), line: number }
}

/// Returns whether words deny what a sentence says, or leave it open.
fn says_otherwise(words: &[String]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let next = words.get(at + 1).map_or("", String::as_str);
        is_doubt(word) || relation_words().unrealised.contains_start(word, next)
    })
}

fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn without_links(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[[") {
        left.push_str(before);
        left.push(' ');
        rest = link.split_once("]]").map_or("", |(_, behind)| behind);
    }
    left + rest
}
