//! Sentences with links, as words, links and punctuation.

use std::borrow::Cow;

use sidenote_language::relation_words::relation_words;

use crate::link::Link;
use crate::note::{Note, Piece, PieceKind, Separator};
use crate::span::Span;

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A word in lower case.
    Word(Cow<'a, str>),
    /// A link, as an index in [`Note::links`].
    Link(usize),
    /// A punctuation mark, or code.
    Mark(char),
}

/// A sentence that has a link, or precedes one that has, in its block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sentence<'a> {
    pub(super) tokens: Vec<Token<'a>>,
    /// From the first token to the last one.
    pub(super) span: Span,
    /// Whether it ends with a question mark.
    pub(super) is_question: bool,
    /// Whether it is the first one of a block.
    pub(super) begins_block: bool,
}

/// The most tokens of a sentence. A longer one is cut, so that the time is proportional to the length of the note.
const MAX_TOKENS: usize = 300;

/// Splits the blocks that have links into sentences.
pub(super) fn sentences<'a>(text: &'a str, note: &Note) -> Vec<Sentence<'a>> {
    let mut builder = Builder { text, found: Vec::new(), block: Vec::new(), current: Sentence::default() };
    // Links are in the order of the text, those of properties first.
    let mut links = note.links.iter().enumerate().filter(|(_, link)| link.key.is_none()).peekable();
    let begins_block =
        |piece: &Piece| piece.separator == Separator::Block || piece.kind == PieceKind::Heading;
    let mut rest = note.pieces.as_slice();
    while let Some(first) = rest.first() {
        let Some((_, next)) = links.peek() else { break };
        let length = 1 + rest.iter().skip(1).take_while(|piece| !begins_block(piece)).count();
        let (block, others) = rest.split_at(length);
        // A link can begin before its first piece, and have none. It is in this block if it begins before the next one.
        let end = others.first().map_or(usize::MAX, |piece| piece.span.start);
        if next.span.start < end && first.kind != PieceKind::Heading {
            let mut covered = 0;
            for piece in block.iter().filter(|piece| piece.kind != PieceKind::Url) {
                while let Some((ord, link)) = links.next_if(|(_, link)| link.span.start <= piece.span.start) {
                    builder.link(ord, link);
                    covered = covered.max(link.span.end);
                }
                if piece.span.start >= covered {
                    builder.piece(piece);
                }
            }
            while let Some((ord, link)) = links.next_if(|(_, link)| link.span.end <= end) {
                builder.link(ord, link);
            }
        }
        while links.next_if(|(_, link)| link.span.end <= end).is_some() {}
        builder.end_block();
        rest = others;
    }
    builder.found
}

struct Builder<'a> {
    text: &'a str,
    found: Vec<Sentence<'a>>,
    /// The sentences of the current block.
    block: Vec<Sentence<'a>>,
    current: Sentence<'a>,
}

impl<'a> Builder<'a> {
    fn link(&mut self, ord: usize, link: &Link) {
        let token = if link.embed || link.in_comment { Token::Mark('!') } else { Token::Link(ord) };
        self.push(token, link.span);
    }

    fn push(&mut self, token: Token<'a>, span: Span) {
        if self.current.tokens.len() >= MAX_TOKENS {
            self.end_sentence();
        }
        if self.current.tokens.is_empty() {
            self.current.span = span;
        }
        self.current.span.end = span.end;
        self.current.tokens.push(token);
    }

    fn end_sentence(&mut self) {
        let mut sentence = std::mem::take(&mut self.current);
        if !sentence.tokens.is_empty() {
            sentence.begins_block = self.block.is_empty();
            self.block.push(sentence);
        }
    }

    fn end_block(&mut self) {
        self.end_sentence();
        let has_link =
            |sentence: &Sentence<'_>| sentence.tokens.iter().any(|token| matches!(token, Token::Link(_)));
        if self.block.iter().any(has_link) {
            self.found.append(&mut self.block);
        }
        self.block.clear();
    }

    fn piece(&mut self, piece: &Piece) {
        if piece.kind != PieceKind::Prose {
            return self.push(Token::Mark('`'), piece.span);
        }
        let source = piece.span.of(self.text);
        let mut rest = source;
        while let Some(c) = rest.chars().next() {
            let at = piece.span.start + source.len() - rest.len();
            if c.is_alphanumeric() || matches!(c, '\'' | '’' | '_') {
                let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '_' | '-' | '&');
                let len = rest.find(|c| !is_inner(c)).unwrap_or(rest.len());
                let (word, behind) = rest.split_at(len);
                let word = word.trim_end_matches('-');
                let is_folded = word.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase());
                let word = if is_folded {
                    Cow::Borrowed(word)
                } else {
                    Cow::Owned(word.to_lowercase().replace('’', "'"))
                };
                self.push(Token::Word(word), Span::new(at, at + len));
                rest = behind;
                continue;
            }
            rest = rest.get(c.len_utf8()..).unwrap_or("");
            if c.is_whitespace() {
                continue;
            }
            let is_last = rest.chars().next().is_none_or(char::is_whitespace);
            let is_end = match c {
                '!' | '?' | ';' => true,
                '.' => is_last && !self.is_after_abbreviation(),
                _ => false,
            };
            self.push(Token::Mark(c), Span::new(at, at + c.len_utf8()));
            if is_end {
                self.current.is_question = c == '?';
                self.end_sentence();
            }
        }
    }

    fn is_after_abbreviation(&self) -> bool {
        matches!(self.current.tokens.last(), Some(Token::Word(word)) if relation_words().abbreviations.contains(word.as_ref()))
    }
}
