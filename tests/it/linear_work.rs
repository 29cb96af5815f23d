//! Tests that the work for one note grows linearly with it. The work is counted, not timed.

use std::fmt::Write as _;

use proptest::prelude::*;
use sidenote::store::RepairRequest;
use sidenote::text::anchor::AnchorTable;
use sidenote::text::dialect::LinkDialect;
use sidenote::text::link::Link;
use sidenote::text::link_lines::{LinkLines, positions};
use sidenote::text::note::Note;
use sidenote::text::path::NotePath;
use sidenote::text::resolve::FileNames;
use sidenote::text::rewrite::{
    AnchorRename, Moves, PartRename, RenameContext, RewriteOptions, parse, rename_part,
};
use sidenote::text::subpath::{SubpathTable, SubpathTarget};

use crate::support::{TestVault, ends};

/// Checks that four times the input takes no more than five times the work.
#[track_caller]
fn check_linear(work: impl Fn(usize) -> usize) {
    let (few, many) = (work(500), work(2000));
    assert!(few > 0 && many <= 5 * few, "{few} steps for 500, {many} for 2000");
}

fn path(text: &str) -> NotePath {
    NotePath::parse(text).unwrap()
}

/// Moves a file that a note links to, and gives the work and how many links were rewritten and refused.
fn retargeted(note: &str, from: &str, to: &str) -> (usize, usize, usize) {
    let (source, from, to) = (path("source.md"), path(from), path(to));
    let (mut before, mut after, mut moves) = (FileNames::default(), FileNames::default(), Moves::default());
    [&source, &from].into_iter().for_each(|path| before.insert(path));
    [&source, &to].into_iter().for_each(|path| after.insert(path));
    moves.insert(from, to);
    let world = RenameContext {
        before: &before,
        after: &after,
        moves: &moves,
        destination: None,
        options: RewriteOptions::default(),
    };
    let done = world.retarget(&source, note, &parse(&source, note));
    (done.work, done.links, done.remarks.len())
}

#[test]
fn links_of_one_note_are_rewritten_in_linear_time() {
    check_linear(|count| {
        let (work, links, _) = retargeted(&"[[t]] and [t](t.md)\n".repeat(count), "t.md", "new name.md");
        assert_eq!(links, 2 * count);
        work
    });
    // Each second property has an anchor, and so its link is left alone.
    check_linear(|count| {
        let mut note = "---\n".to_owned();
        for at in 0..count {
            writeln!(note, "a{at}: &x{at} \"[[t]]\"\nb{at}: \"[[t]]\"").unwrap();
        }
        note.push_str("---\n");
        let (work, links, refused) = retargeted(&note, "t.md", "u.md");
        assert_eq!((links, refused), (count, count));
        work
    });
}

#[test]
fn rewrites_that_do_not_read_back_are_found_in_linear_time() {
    // The text after each of these links would make the new name a part of another construct.
    for (bad, to) in
        [("`[[t]]\n", "a`b.md"), ("$[[t]]\n", "a$b.md"), ("<b [[t]]\n", "a>b.md"), ("==[[t]]\n", "a==b.md")]
    {
        check_linear(|count| {
            let (work, links, refused) =
                retargeted(&format!("[[t]]\n{bad}\n[t](t.md)\n\n").repeat(count), "t.md", to);
            assert!(links + refused > 0, "{bad}");
            work
        });
    }
}

#[test]
fn parts_of_one_note_are_found_in_linear_time() {
    let heading = |at: usize, _: usize| (format!("# H{at}\n\n## Same\n\n"), format!("#H{at}#Same"));
    let block = |at: usize, _: usize| (format!("text ^b{at}\n\n"), format!("#^B{at}"));
    let footnote = |at: usize, _: usize| (format!("x[^f{at}]\n\n[^f{at}]: y\n\n"), format!("#[^f{at}]"));
    let missing = |at: usize, _: usize| (format!("## H{at}\n\n"), format!("#None{at}"));
    let deep = |at: usize, count: usize| {
        (format!("{} H{at}\n\n", "#".repeat(at % 6 + 1)), format!("#H{}#H{at}", (at + 1) % count))
    };
    type Case<'a> = &'a dyn Fn(usize, usize) -> (String, String);
    let cases: [Case<'_>; 5] = [&heading, &block, &footnote, &missing, &deep];
    for case in cases {
        check_linear(|count| {
            let (texts, subpaths): (Vec<_>, Vec<_>) = (0..count).map(|at| case(at, count)).unzip();
            let note = Note::parse(&texts.concat());
            let parts = SubpathTable::new(&note);
            subpaths.iter().for_each(|subpath| _ = parts.find(subpath));
            parts.work()
        });
    }
    check_linear(|count| {
        let (texts, links): (Vec<_>, Vec<_>) =
            (0..count).map(|at| (format!("## H{at}\n\n"), format!("[[t#H{at}]]\n"))).unzip();
        let (target, text) = (Note::parse(&texts.concat()), links.concat());
        let part = PartRename::Heading(count - 1, "New".to_owned());
        let (before, after) = (AnchorTable::default(), AnchorTable::default());
        let note_after = target.clone();
        let anchors = AnchorRename { dialect: LinkDialect::Obsidian, before, after, note_after };
        let done =
            rename_part((&path("s.md"), &text, &Note::parse(&text)), &target, &part, &anchors, |_| true);
        assert_eq!(done.links, 1);
        done.work
    });
}

/// Finds a heading as the specification says, going through all of them.
fn found_slowly(note: &Note, subpath: &str) -> Option<SubpathTarget> {
    let keys: Vec<String> =
        subpath.split('#').map(|part| part.trim().to_lowercase()).filter(|part| !part.is_empty()).collect();
    (0..note.headings.len()).find_map(|at| {
        let mut left = keys.iter().rev();
        let mut wanted = left.next()?;
        let mut level = note.headings[at].level;
        if note.headings[at].text.to_lowercase() != *wanted {
            return None;
        }
        for heading in note.headings[..at].iter().rev() {
            if heading.level < level {
                level = heading.level;
                let Some(outer) = left.clone().next() else { break };
                wanted = outer;
                if heading.text.to_lowercase() == *wanted {
                    left.next();
                }
            }
        }
        (left.len() == 0).then_some(SubpathTarget::Heading(at))
    })
}

#[test]
fn the_subpath_table_agrees_with_a_linear_search() {
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut found = 0;
    for _ in 0..300 {
        let mut text = String::new();
        for _ in 0..random(12) {
            writeln!(
                text,
                "{} {}\n",
                "#".repeat(1 + random(6) as usize),
                ["A", "B", "C"][random(3) as usize]
            )
            .unwrap();
        }
        let note = Note::parse(&text);
        let parts = SubpathTable::new(&note);
        for _ in 0..20 {
            let subpath: String =
                (0..1 + random(4)).map(|_| ["#a", "#B", "#C"][random(3) as usize]).collect();
            assert_eq!(parts.find(&subpath), found_slowly(&note, &subpath), "{subpath} in {text}");
            found += usize::from(parts.find(&subpath).is_some());
        }
    }
    assert!(found > 500, "{found}");
}

/// Finds the line of a link in an earlier version of its note by comparing it with all links.
fn line_found_slowly<'n>(earlier: &'n str, links: &[Link], at: usize) -> Option<&'n str> {
    let is_same = |one: &Link, other: &Link| one.path == other.path && one.form == other.form;
    let position = links[..at].iter().filter(|link| is_same(link, &links[at])).count();
    let then = Note::parse(earlier);
    let mut same = then.links.iter().filter(|link| is_same(link, &links[at]));
    let line = same.nth(position)?.line;
    earlier.lines().nth(line - 1).map(str::trim_end)
}

#[test]
fn lines_of_links_agree_with_a_search_of_all_links() {
    let words = ["[[a]]", "[[b]]", "[a](a)", "text ", "\n", "  \n", "`[[a]]`", "[[b|c]]", "\r\n"];
    let text = prop::collection::vec(prop::sample::select(words.to_vec()), 0..24);
    proptest!(|(then in text.clone(), now in text)| {
        let (then, now) = (then.concat(), now.concat());
        let (earlier, note) = (Note::parse(&then), Note::parse(&now));
        let lines = LinkLines::new(&then, &earlier.links);
        for (at, position) in positions(&note.links).into_iter().enumerate() {
            let found = lines.same(&note.links[at], position);
            prop_assert_eq!(found, line_found_slowly(&then, &note.links, at));
            let first = lines.same(&note.links[at], 0);
            prop_assert_eq!(lines.same_or_first(&note.links[at], position), found.or(first));
        }
    });
}

#[test]
fn lines_of_very_many_links_are_found() {
    ends("finding the lines of 200,000 links", || {
        let text = "[[a]] [[b]]\n".repeat(100_000);
        let note = Note::parse(&text);
        let lines = LinkLines::new(&text, &note.links);
        let positions = positions(&note.links);
        let found = |(link, &position)| lines.same(link, position) == Some("[[a]] [[b]]");
        assert_eq!(note.links.iter().zip(&positions).filter(|pair| found(*pair)).count(), 200_000);
    });
}

#[test]
fn dead_links_are_explained_in_linear_time() {
    let [few, many] = [100, 400].map(|count| {
        let notes: Vec<(String, String)> = (0..count)
            .map(|at| (format!("new/n{at}.md"), format!("[n](../old/n{at}.md) and [none](none{at}.md)\n")))
            .collect();
        let notes: Vec<(&str, &str)> =
            notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let request = RepairRequest { paths: vec!["new".to_owned()], ..RepairRequest::default() };
        let reply = TestVault::new(&notes).store().changes().repair(&request).unwrap();
        assert_eq!((reply.links.len(), reply.unexplained), (count, count));
        reply.work
    });
    assert!(few > 0 && many <= 5 * few, "{few} files for 100 links, {many} for 400");
}
