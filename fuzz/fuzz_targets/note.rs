//! Any bytes are a note or a canvas: reading never fails, and every span lies in the text, on characters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidenote::markdown::decode::decode;
use sidenote::markdown::note::Note;
use sidenote::markdown::passage::passages;
use sidenote::language::terms::terms;
use sidenote::markdown::canvas;
use sidenote::markdown::span::Span;

fn check(text: &str, note: &Note, name: &str) {
    let fits = |span: Span| assert!(text.get(span.start..span.end).is_some(), "{name}: {span:?} in {text:?}");
    for link in note.links.iter().chain(note.mentions.iter().map(|mention| &mention.link)) {
        [link.span, link.dest_span, link.path_span, link.subpath_span].into_iter().for_each(fits);
        link.alias_span.map(fits);
    }
    note.tags.iter().for_each(|tag| fits(tag.span));
    note.headings.iter().for_each(|heading| fits(heading.span));
    note.blocks.iter().for_each(|block| fits(block.id_span));
}

fuzz_target!(|bytes: &[u8]| {
    let text = decode(bytes).text;
    let note = Note::parse(&text);
    check(&text, &note, "note");
    note.pieces.iter().for_each(|piece| assert!(text.get(piece.span.start..piece.span.end).is_some()));
    for passage in passages(&text, &note) {
        assert!(text.get(passage.span.start..passage.span.end).is_some());
        assert!(passage.trail.iter().all(|&heading| heading < note.headings.len()));
    }
    check(&text, &canvas::parse(&text), "canvas");
    for term in terms(&text) {
        assert!(text.get(term.start..term.end).is_some());
    }
});
