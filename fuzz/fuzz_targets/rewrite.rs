//! Any note in which a file gets another name: each link means the same file afterwards, or is told of.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidenote::markdown::edit::apply;
use sidenote::markdown::path::NotePath;
use sidenote::links::resolve::{FileNames, LinkFormat};
use sidenote::links::rewrite::{Moves, RenameContext, RewriteOptions, parse};

fuzz_target!(|input: (&str, &str, &str, u8)| {
    let (text, old, new, choice) = input;
    let path = |name: &str| NotePath::parse(&format!("{name}.md")).ok();
    let (Some(from), Some(to)) = (path(old), path(new)) else { return };
    let source = NotePath::parse(if choice & 1 == 0 { "d/source.md" } else { "source.canvas" }).expect("a path");
    if from == to || from == source || to == source {
        return;
    }
    let other = NotePath::parse("d/Other.md").expect("a path");
    let table = |paths: [&NotePath; 3]| {
        let mut names = FileNames::default();
        paths.into_iter().for_each(|path| names.insert(path));
        names
    };
    let (before, after) = (table([&source, &other, &from]), table([&source, &other, &to]));
    let mut moves = Moves::default();
    moves.insert(from, to);
    let format = [LinkFormat::Shortest, LinkFormat::Relative, LinkFormat::Absolute][usize::from(choice >> 1) % 3];
    let options = RewriteOptions { format, partial_properties: choice & 8 != 0, ..RewriteOptions::default() };
    let world = RenameContext { before: &before, after: &after, moves: &moves, destination: None, options };
    let note = parse(&source, text);
    let rewritten = world.retarget(&source, text, &note);
    let changed = apply(text.as_bytes(), &rewritten.edits).expect("a plan can be carried out");
    let changed = String::from_utf8(changed).expect("it is UTF-8");
    let again = parse(&source, &changed);
    assert_eq!(again.links.len(), note.links.len(), "{text:?} -> {changed:?}");
    if rewritten.remarks.is_empty() {
        for (one, other) in note.links.iter().zip(&again.links) {
            assert_eq!(one.subpath, other.subpath, "{text:?} -> {changed:?}");
        }
    }
});
