//! Tests that the work for one note grows linearly with it. The work is counted, not timed.

use std::fmt::Write as _;

use proptest::prelude::*;
use sidenote::links::anchor::AnchorTable;
use sidenote::links::dialect::LinkDialect;
use sidenote::links::link_lines::{LinkLines, positions};
use sidenote::links::resolve::FileNames;
use sidenote::links::rewrite::{
    Moves, PartChanges, PartMap, PartRename, RenameContext, RewriteOptions, parse, rename_parts,
};
use sidenote::markdown::line_column::Locator;
use sidenote::markdown::link::Link;
use sidenote::markdown::note::Note;
use sidenote::markdown::path::NotePath;
use sidenote::markdown::span::Span;
use sidenote::markdown::subpath::{SubpathTable, SubpathTarget};
use sidenote::store::RepairRequest;

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
        let (dialect, note_after, map) = (LinkDialect::Obsidian, target.clone(), PartMap::same());
        let changes = PartChanges { dialect, before, after, note_after, map };
        let note = Note::parse(&text);
        let done = rename_parts((&path("s.md"), &text, &note), &target, &[part], &changes, |_| true);
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

/// Counts lines and columns character by character.
fn placed_slowly(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let mark = usize::from(start == 0 && before.starts_with('\u{FEFF}'));
    (1 + before.matches('\n').count(), 1 + before[start..].chars().count() - mark)
}

proptest! {
    #[test]
    fn lines_and_columns_agree_with_a_count_of_characters(
        parts in prop::collection::vec(prop::sample::select(vec!["a", "é", "日本", "\n", "🚣", " long ".repeat(300).leak()]), 0..40),
        has_mark in any::<bool>(),
    ) {
        let text = format!("{}{}", if has_mark { "\u{FEFF}" } else { "" }, parts.concat());
        let locator = Locator::new(&text);
        for (offset, _) in text.char_indices().step_by(7).chain([(text.len(), 'x')]) {
            let region = locator.region(Span::new(offset, offset));
            prop_assert_eq!((region.line, region.column), placed_slowly(&text, offset));
        }
    }
}

#[test]
fn very_many_broken_links_on_one_line_are_checked() {
    let vault = TestVault::new(&[]);
    let links: String = (0..100_000).fold(String::new(), |mut text, at| {
        write!(text, "[[n{at}]] ").unwrap();
        text
    });
    vault.write("one.md", &links);
    vault.write(
        "One.canvas",
        serde_json::json!({ "nodes": [{ "id": "a", "type": "text", "text": links }] }).to_string(),
    );
    let told = ends("the check", move || vault.run(&["check", "--json"]));
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let problems = told["problems"].as_array().unwrap();
    assert!(problems.len() >= 200_000, "{}", problems.len());
    let prints: std::collections::HashSet<&str> =
        problems.iter().map(|problem| problem["fingerprint"].as_str().unwrap()).collect();
    assert!(prints.len() >= 200_000, "each link has a fingerprint of its own: {}", prints.len());
}

#[test]
fn very_many_scripts_and_embeds_of_one_note_are_shown() {
    let vault = TestVault::new(&[("Scripts.md", &"<script></SCRIPT >".repeat(400_000))]);
    let sections: String = (0..20_000).fold(String::new(), |mut text, at| {
        write!(text, "# S{at}\n\n{}\n\n", "long ".repeat(20)).unwrap();
        text
    });
    vault.write("Long.md", sections);
    let embeds: String = (0..20_000).fold(String::new(), |mut text, at| {
        write!(text, "![[Long#S{at}]]\n\n").unwrap();
        text
    });
    vault.write("Embeds.md", embeds);
    let page = ends("the pages", move || {
        let store = vault.store();
        [store.views().note("Scripts").unwrap(), store.views().note("Embeds").unwrap()].map(|page| page.html)
    });
    assert!(!page[0].contains("script"));
    let embedded = page[1].matches("class=\"embed\"").count();
    assert!((10..1_000).contains(&embedded), "{embedded} sections are embedded");
    assert!(
        page[1].matches("Long#S").count() + page[1].matches("href").count() >= 20_000,
        "the others are links"
    );
}

#[test]
fn very_many_tags_are_one_condition() {
    let vault = TestVault::new(&[("a.md", "heron #x #y/z\n"), ("b.md", "heron #x\n")]);
    let store = vault.store();
    let with = |tags: Vec<String>| {
        let filter = sidenote::catalog::Filter { tags, ..Default::default() };
        let request = sidenote::store::SearchRequest { query: "heron".into(), filter, ..Default::default() };
        crate::support::found(&store, &request)
    };
    let all = |tags: &[&str]| with(tags.iter().map(|tag| (*tag).to_owned()).collect());
    assert_eq!(all(&["x", "#Y"]), ["a.md"]);
    assert_eq!(all(&["x", "x", "X"]).len(), 2);
    assert!(all(&["x", "z"]).is_empty());
    assert_eq!(with(["x".to_owned()].into_iter().cycle().take(40_000).collect()).len(), 2);
    assert!(with((0..40_000).map(|at| format!("t{at}")).collect()).is_empty());
    // More tags than are looked up one by one, of which one note has all.
    let many: Vec<String> = (0..40).map(|at| format!("#m{at}/n")).collect();
    vault.write("c.md", format!("heron {}\n", many.join(" ")));
    vault.write("d.md", format!("heron {}\n", many[1..].join(" ")));
    let wanted: Vec<String> = (0..40).map(|at| format!("M{at}")).collect();
    store.index().refresh().unwrap();
    assert_eq!(with(wanted), ["c.md"]);
}

#[test]
fn a_list_of_changes_is_as_long_as_it_says_and_no_longer_than_a_vault() {
    use sidenote::store::replication::protocol::{Changes, MAX_FILES};
    let list = |announced: usize, lines: usize| {
        let head = format!(
            "{{\"origin\":\"o\",\"generation\":1,\"event\":null,\"is_full\":true,\"files\":{announced},\"max_file\":1}}\n"
        );
        head + &"{\"path\":\"a.md\",\"hash\":null}\n".repeat(lines)
    };
    assert_eq!(Changes::parse(list(3, 3).as_bytes()).unwrap().files.len(), 3);
    for (announced, lines) in [(3, 2), (3, 4), (MAX_FILES + 1, 1), (usize::MAX, 1), (0, 2_000_000)] {
        let refused = Changes::parse(list(announced, lines).as_bytes()).unwrap_err().to_string();
        assert!(refused.contains("files"), "{announced}, {lines}: {refused}");
    }
}

#[test]
fn an_answer_that_drips_is_given_up() {
    use std::time::Duration;
    let cases = [
        (1, 0, false),
        (60, 0, false),
        (70, 1 << 20, false),
        (70, 10, true),
        (3_600, 8 << 20, true),
        (3_600, 20 << 20, false),
    ];
    assert_eq!(cases.len(), 6);
    for (seconds, bytes, is_slow) in cases {
        let slow = sidenote::http_client::is_too_slow(Duration::from_secs(seconds), bytes);
        assert_eq!(slow, is_slow, "{bytes} bytes in {seconds} s");
    }
}

#[test]
fn every_time_can_be_written_and_read() {
    use sidenote::base::clock::Timestamp;
    for millis in [i64::MIN, -377_705_116_800_001, -1, 0, 253_402_300_799_999, 253_402_300_800_000, i64::MAX]
    {
        let time = Timestamp::from_millis(millis);
        let written = time.rfc3339();
        let read = Timestamp::parse(&written).unwrap_or_else(|| panic!("{written} is not read"));
        assert!((time.millis() - read.millis()).abs() < 1_000, "{millis}: {written}");
    }
    let now = Timestamp::parse("2026-11-21").unwrap();
    let (start, end) = Timestamp::relative("900000000000 h", now).unwrap();
    assert!(start < end && Timestamp::parse(&start.rfc3339()).is_some());
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
        let reply = TestVault::new(&notes).store().repairs().repair(&request).unwrap();
        assert_eq!((reply.links.len(), reply.unexplained), (count, count));
        reply.work
    });
    assert!(few > 0 && many <= 5 * few, "{few} files for 100 links, {many} for 400");
}
