//! The difference of two states of a note: what each kind of change comes to, and that no order of the states matters.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop loudly"
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use sidenote_markdown::note::Note;

use crate::note_diff::{
    HeadingDiff, LinkChange, LinkDiff, LinkEnd, NoteDiff, NoteState, PropertyChange, TagDiff, TaskChange,
    TaskDiff, WordDiff,
};

/// Compares two texts. A link leads to the place that `place` returns for its path; an empty one is nowhere.
fn diff(before: &str, after: &str, place: impl Fn(&str, bool) -> String) -> NoteDiff {
    let read = |text: &str, is_after: bool| {
        let note = Note::parse(text);
        let end = |path: &str| match place(path, is_after) {
            place if place.is_empty() => LinkEnd::Nowhere,
            place => LinkEnd::Place { path: path.to_owned(), identity: place },
        };
        let ends: Vec<LinkEnd> = note.links.iter().map(|link| end(&link.path)).collect();
        (note, ends)
    };
    let ((one, one_ends), (other, other_ends)) = (read(before, false), read(after, true));
    NoteDiff::of(
        NoteState { text: before, note: &one, ends: &one_ends },
        NoteState { text: after, note: &other, ends: &other_ends },
    )
}

/// Checks the difference of two texts in which each link leads to the file that it names, except that `gone` is nowhere
/// in the second, and `old` and `new` are one file.
#[track_caller]
fn check(before: &str, after: &str, expected: Value) {
    let place = |path: &str, is_after: bool| match path {
        "gone" if is_after => String::new(),
        "old" => "new".to_owned(),
        path => path.to_owned(),
    };
    let found = serde_json::to_value(diff(before, after, place)).unwrap();
    assert_eq!(found, expected, "{before:?} -> {after:?}");
}

#[test]
fn each_kind_of_change_is_told() {
    let link =
        |text: &str, line: usize, target: &str| json!({ "text": text, "line": line, "target": target });
    let cases: &[(&str, &str, Value)] = &[
        ("The same.\n", "The same.\n", json!({})),
        (
            "See it.\n",
            "See [[b]].\n",
            json!({ "links": { "added": [link("[[b]]", 1, "b")] }, "words": { "added": 1, "removed": 1 } }),
        ),
        (
            "See [[a]] and [[c]].\n",
            "See [[b]] and [[c]].\n",
            json!({
                "links": { "retargeted": [{ "before": link("[[a]]", 1, "a"), "after": link("[[b]]", 1, "b") }] },
                "words": { "added": 1, "removed": 1 },
            }),
        ),
        (
            "See [it](old.md).\n",
            "A line.\n\nSee [it](old.md).\n",
            json!({ "words": { "added": 2, "removed": 0 } }),
        ),
        (
            "See [[old|it]].\n",
            "See [[new|it]].\n",
            json!({
                "links": { "rewritten": [
                    { "before": link("[[old|it]]", 1, "old"), "after": link("[[new|it]]", 1, "new") },
                ] },
            }),
        ),
        (
            "See [[gone]].\n",
            "See [[gone]].\n",
            json!({
                "links": { "dead": [{
                    "before": link("[[gone]]", 1, "gone"),
                    "after": { "text": "[[gone]]", "line": 1, "dead": true },
                }] },
            }),
        ),
        ("See [the site](https://example.org).\n", "See [the site](https://example.com).\n", json!({})),
        (
            "---\nstatus: draft\ntags: [boat]\n---\n",
            "---\nstatus: done\ntags: [Boat, river]\nmood: 3\n---\n",
            json!({
                "tags": { "added": ["river"] },
                "properties": [
                    { "name": "mood", "after": 3 },
                    { "name": "status", "before": "draft", "after": "done" },
                ],
            }),
        ),
        (
            "# A\n\n## B\n",
            "# A\n\n### B\n",
            json!({
                "headings": { "added": [{ "level": 3, "text": "B" }], "removed": [{ "level": 2, "text": "B" }] },
            }),
        ),
        (
            "- [ ] buy milk\n- [ ] row\n",
            "- [x] buy milk\n- [ ] sail\n",
            json!({
                "tasks": {
                    "added": [{ "status": " ", "text": "sail" }],
                    "removed": [{ "status": " ", "text": "row" }],
                    "changed": [{ "text": "buy milk", "before": " ", "after": "x" }],
                },
                "words": { "added": 1, "removed": 1 },
            }),
        ),
        ("One two.\n\nThree.\n", "Three.\n\nOne two.\n", json!({})),
    ];
    assert_eq!(cases.len(), 11);
    for (before, after, expected) in cases {
        check(before, after, expected.clone());
    }
}

/// Swaps the two states of a difference, and orders its lists.
fn mirrored(diff: NoteDiff) -> NoteDiff {
    let links = |changes: Vec<LinkChange>| {
        changes
            .into_iter()
            .map(|LinkChange { before, after }| LinkChange { before: after, after: before })
            .collect()
    };
    let NoteDiff { links: l, tags: t, properties, headings: h, tasks: k, words } = diff;
    let properties = properties.into_iter().map(|PropertyChange { name, before, after }| PropertyChange {
        name,
        before: after,
        after: before,
    });
    let tasks = k.changed.into_iter().map(|TaskChange { text, before, after }| TaskChange {
        text,
        before: after,
        after: before,
    });
    ordered(NoteDiff {
        links: LinkDiff {
            added: l.removed,
            removed: l.added,
            retargeted: links(l.retargeted),
            rewritten: links(l.rewritten),
            dead: links(l.revived),
            revived: links(l.dead),
        },
        tags: TagDiff { added: t.removed, removed: t.added },
        properties: properties.collect(),
        headings: HeadingDiff { added: h.removed, removed: h.added },
        tasks: TaskDiff { added: k.removed, removed: k.added, changed: tasks.collect() },
        words: WordDiff { added: words.removed, removed: words.added },
    })
}

/// Orders the lists whose order follows the text.
fn ordered(mut diff: NoteDiff) -> NoteDiff {
    let links = &mut diff.links;
    for list in [&mut links.retargeted, &mut links.rewritten, &mut links.dead, &mut links.revived] {
        list.sort();
    }
    diff.tasks.changed.sort();
    diff
}

/// Lines of which notes are made.
const LINES: [&str; 16] = [
    "# Heading",
    "## Heading two",
    "See [[a]] and [[b|the other]].",
    "See [[b]] and [[b|the other]].",
    "See [[c#part]] and [[c|the other]].",
    "[label](a.md) and [label](folder/b.md) #boat",
    "[label](c.md) and [label](folder/b.md)",
    "![[a]] ![[a]] ![[d]]",
    "- [ ] a task",
    "- [x] a task",
    "- [x] another [[a]]",
    "plain words, many words",
    "plain words, 木の葉",
    "| a | [[a\\|x]] |",
    "#tag #boat/sail",
    "",
];

fn a_note() -> impl Strategy<Value = String> {
    let front = prop_oneof![
        Just(""),
        Just("---\nup: \"[[a]]\"\ntags: [boat]\n---\n"),
        Just("---\nup: \"[[b]]\"\nstatus: x\n---\n"),
        Just("---\nbroken: [\n---\n"),
    ];
    (front, prop::collection::vec(0..LINES.len(), 0..14)).prop_map(|(front, lines)| {
        lines.into_iter().fold(front.to_owned(), |text, at| text + LINES[at] + "\n")
    })
}

proptest! {
    #[test]
    fn equal_notes_have_no_difference(text in a_note()) {
        prop_assert!(diff(&text, &text, |path, _| path.to_owned()).is_empty());
    }

    #[test]
    fn the_difference_backwards_is_the_mirror(one in a_note(), other in a_note(), dead in 0..16usize) {
        // Each path of a state leads somewhere or nowhere.
        let place = |path: &str, is_after: bool| {
            let number = path.len() + usize::from(path.as_bytes().first().copied().unwrap_or(0));
            let is_dead = (dead >> ((number + usize::from(is_after)) % 4)) & 1 == 1;
            if is_dead { String::new() } else { path.trim_start_matches("folder/").to_owned() }
        };
        let there = diff(&one, &other, place);
        let back = diff(&other, &one, |path, is_after| place(path, !is_after));
        prop_assert_eq!(mirrored(there), ordered(back));
    }
}
