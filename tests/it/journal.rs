//! Tests the journal: what is written, what is read back, the history of a note, and undo.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use sidenote::base::error::ErrorKind;
use sidenote::journal::Journal;
use sidenote::journal::event::Event;
use sidenote::journal::reader::ReadOrder;
use sidenote::markdown::edit::{ChangeSet, Content, ContentHash, FileChange};
use sidenote::vault::Vault;
use sidenote::vault::undo_log::UndoLog;

use crate::apply::{at, change, folder, path, plan, snapshot, whole};
use crate::support::{TestVault, clone_journal};

struct Written {
    folder: TestVault,
    vault: Vault,
    journal: Journal,
    clock: i64,
}

impl Written {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TestVault::new(files);
        let vault = Vault::open(folder.root()).unwrap();
        let journal = Journal::open(&vault, &vault.records());
        Self { folder, vault, journal, clock: 0 }
    }

    fn root(&self) -> &Path {
        self.folder.root()
    }

    fn run(&mut self, operation: &str, plan: ChangeSet) -> Event {
        self.clock += 1000;
        let lock = self.vault.lock(&self.vault.records()).unwrap();
        let plan = ChangeSet { operation: operation.to_owned(), ..plan };
        let event = Event::of(&self.vault.apply(&lock, &plan, at(self.clock)).unwrap());
        self.journal.record(&event).unwrap();
        event
    }

    fn change(&mut self, operation: &str, from: Option<&str>, to: Option<&str>, content: Content) -> Event {
        let change = change(self.root(), from, to, content);
        self.run(operation, plan(vec![change]))
    }

    fn undo(&mut self, event: &Event) -> Result<Event, sidenote::base::error::Error> {
        self.clock += 1000;
        let lock = self.vault.lock(&self.vault.records()).unwrap();
        self.journal.undo(&lock, event, at(self.clock)).map(|(_, undo)| undo)
    }

    fn life(&self, name: &str) -> Vec<String> {
        self.journal.history(&path(name)).unwrap().into_iter().map(|event| event.op).collect()
    }

    fn undoable(&self) -> Vec<String> {
        self.journal.undoable().unwrap().into_iter().map(|event| event.op).collect()
    }

    fn log(&self) -> String {
        let mut log = String::new();
        for event in self.journal.events(ReadOrder::OldestFirst).unwrap() {
            log.push_str(&format!("{} ", event.unwrap().op));
        }
        log
    }
}

#[test]
fn an_event_is_one_line_of_json() {
    let mut written = Written::new(&[("a.md", "a")]);
    written.change("move", Some("a.md"), Some("b/c.md"), whole("c"));
    let text = fs::read_to_string(clone_journal(written.vault.root(), "2026-11")).unwrap();
    let (id, rest) = text.split_once(r#"","at""#).unwrap();
    assert_eq!(id.len(), r#"{"id":""#.len() + 32);
    let hashed = |text: &[u8]| ContentHash::of(text).to_string();
    let rest = rest.replace(&hashed(b"a"), "A").replace(&hashed(b"c"), "C");
    insta::assert_snapshot!(rest, @r#":"2026-11-18T11:06:41Z","op":"move","files":[{"path":"a.md","to":"b/c.md","before":"A","after":"C"}]}"#);
    let events: Vec<Event> =
        written.journal.events(ReadOrder::OldestFirst).unwrap().map(|event| event.unwrap()).collect();
    assert_eq!(serde_json::to_string(&events[0]).unwrap(), text.trim_end());
}

#[test]
fn damaged_lines_are_counted_and_kept() {
    let written = Written::new(&[]);
    written.journal.append(&Event::new("one", at(0))).unwrap();
    let file = written.vault.root().join(".sidenote/local/2026-11.jsonl");
    let mut open = fs::OpenOptions::new().append(true).open(&file).unwrap();
    open.write_all(b"not json\n\n{\"id\":\"torn").unwrap();
    written.journal.append_all(&[Event::new("two", at(1)), Event::new("three", at(2))]).unwrap();
    for (order, expected) in
        [(ReadOrder::OldestFirst, "one two three"), (ReadOrder::NewestFirst, "three two one")]
    {
        let mut events = written.journal.events(order).unwrap();
        let read: Vec<String> = events.by_ref().map(|event| event.unwrap().op).collect();
        assert_eq!((read.join(" ").as_str(), events.corrupt()), (expected, 2));
    }
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("not json\n\n{\"id\":\"torn\n{"), "{text}");
}

#[test]
fn events_that_another_program_joined_into_one_line_are_read() {
    let written = Written::new(&[]);
    written
        .journal
        .append_all(&[Event::new("one", at(0)), Event::new("two", at(1)), Event::new("three", at(2))])
        .unwrap();
    let file = written.vault.root().join(".sidenote/local/2026-11.jsonl");
    let joined = fs::read_to_string(&file).unwrap().replacen('\n', "", 1).replacen('\n', "  ", 1);
    assert_eq!(joined.lines().count(), 1);
    fs::write(&file, &joined).unwrap();
    for (order, expected) in
        [(ReadOrder::OldestFirst, "one two three"), (ReadOrder::NewestFirst, "three two one")]
    {
        let mut events = written.journal.events(order).unwrap();
        let read: Vec<String> = events.by_ref().map(|event| event.unwrap().op).collect();
        assert_eq!((read.join(" ").as_str(), events.corrupt()), (expected, 0));
    }
    // What is not whole is one damaged line, as before.
    fs::write(&file, joined.trim_end().trim_end_matches('}')).unwrap();
    let mut events = written.journal.events(ReadOrder::OldestFirst).unwrap();
    assert_eq!((events.by_ref().count(), events.corrupt()), (0, 1));
}

#[test]
fn unknown_parts_of_an_event_are_kept() {
    let text = r#"{"id":"x","at":"2026-11-21T10:00:00Z","op":"use","path":"a.md","weight":2}"#;
    let event: Event = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&event).unwrap(), text);
    let outside = r#"{"id":"x","at":"2026-11-21T10:00:00Z","op":"set","files":[{"path":"../a.md"}]}"#;
    assert!(serde_json::from_str::<Event>(outside).is_err());
}

#[test]
fn events_keep_their_order_when_the_clock_goes_back() {
    let written = Written::new(&[]);
    let day = 86_400_000;
    for (op, days) in [("a", 0), ("b", 40), ("c", 5), ("d", 80)] {
        written.journal.append(&Event::new(op, at(days * day))).unwrap();
    }
    assert_eq!(written.log(), "a b c d ");
    assert!(
        Journal::open(&written.vault, Path::new("/nowhere"))
            .events(ReadOrder::OldestFirst)
            .unwrap()
            .next()
            .is_none()
    );
}

/// A hook asks at each prompt what its session got during the last day.
#[test]
fn events_since_an_instant_are_found_without_reading_the_whole_journal() {
    let written = Written::new(&[]);
    let hour = 3_600_000;
    let events = (0..40_000).map(|at_hour| Event::new("use", at(at_hour * hour)));
    written.journal.append_all(&events.collect::<Vec<_>>()).unwrap();
    let last_day = at((40_000 - 24) * hour);
    let mut events = written.journal.events(ReadOrder::NewestFirst).unwrap().since(last_day);
    let found: Vec<Event> =
        events.by_ref().map(Result::unwrap).filter(|event| event.at >= last_day).collect();
    assert_eq!(found.len(), 24);
    let mut all = written.journal.events(ReadOrder::NewestFirst).unwrap();
    assert_eq!(all.by_ref().count(), 40_000);
    let (few, many) = (events.bytes_read(), all.bytes_read());
    assert!(few > 0 && few * 4 < many, "{few} of {many} bytes were read");

    // What is looked for may be nowhere in the last day, or in the journal at all.
    let of_session = written.journal.events(ReadOrder::NewestFirst).unwrap();
    let mut of_session = of_session.since(last_day).with_any(&["\"session\":\"none\""]);
    assert!(of_session.next().is_none());
    assert_eq!(of_session.bytes_read(), few);
}

#[test]
fn the_history_of_a_note_follows_moves() {
    let mut written = Written::new(&[("other.md", "o")]);
    let create = |name: &str| plan(vec![FileChange::create(path(name), b"1".to_vec())]);
    written.run("write", create("a.md"));
    written.change("set", Some("other.md"), Some("other.md"), whole("oo"));
    written.change("edit", Some("a.md"), Some("a.md"), whole("2"));
    written.change("rename", Some("a.md"), Some("d/b.md"), Content::Keep);
    let mut folders = plan(Vec::new());
    folders.folders = vec![folder("d", "e")];
    written.run("folder", folders);
    written.change("append", Some("e/b.md"), Some("e/b.md"), whole("3"));
    let life = ["write", "edit", "rename", "folder", "append"];
    for name in ["a.md", "d/b.md", "e/b.md"] {
        assert_eq!(written.life(name), life, "{name}");
    }
    assert_eq!(written.life("other.md"), ["set"]);
    assert_eq!(written.life("never.md"), [""; 0]);
    // Another note takes the first name.
    written.run("second", create("a.md"));
    assert_eq!(written.life("a.md"), ["second"]);
    assert_eq!(written.life("e/b.md"), life);
    written.change("delete", Some("e/b.md"), Some(".trash/e/b.md"), Content::Keep);
    assert_eq!(written.life("e/b.md").last().unwrap(), "delete");
    written.change("remove", Some("a.md"), None, Content::Keep);
    assert_eq!(written.life("a.md"), ["second", "remove"]);
}

#[test]
fn undo_reverts_one_operation_at_a_time() {
    let mut written = Written::new(&[("a.md", "1"), ("gone.md", "g"), ("d/x.md", "x")]);
    let first = snapshot(written.root());
    let edit = written.change("edit", Some("a.md"), Some("a.md"), whole("2"));
    let second = snapshot(written.root());
    let mut all = plan(vec![
        change(written.root(), Some("a.md"), Some("new/folder/a.md"), whole("3")),
        change(written.root(), Some("gone.md"), None, Content::Keep),
        change(written.root(), Some("d/x.md"), Some("e/x.md"), whole("y")),
        FileChange::create(path("e/n.md"), b"n".to_vec()),
    ]);
    all.folders = vec![folder("d", "e")];
    let big = written.run("move", all);
    let third = snapshot(written.root());
    assert_eq!(written.undoable(), ["move", "edit"]);
    // The first one cannot be undone before the second.
    let error = written.undo(&edit).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("a.md"), "{error}");
    let undo = written.undo(&big).unwrap();
    assert_eq!((undo.op.as_str(), undo.undoes.as_deref()), ("undo", Some(big.id.as_str())));
    assert_eq!(snapshot(written.root()), second);
    assert_eq!(written.undoable(), ["edit"]);
    written.undo(&edit).unwrap();
    assert_eq!(snapshot(written.root()), first);
    assert_eq!(written.undoable(), [""; 0]);
    assert_eq!(written.log(), "edit move undo undo ");
    // An undo can be taken back by name, and then what it took back can be undone again.
    let last = written.journal.events(ReadOrder::NewestFirst).unwrap().next().unwrap().unwrap();
    written.undo(&last).unwrap();
    assert_eq!(snapshot(written.root()), second);
    assert_eq!(written.undoable(), ["edit"]);
    written.undo(&undo).unwrap();
    assert_eq!(snapshot(written.root()), third);
    assert_eq!(written.undoable(), ["move", "edit"]);
}

#[test]
fn undo_names_files_that_changed_since() {
    let mut written = Written::new(&[("a.md", "a"), ("b.md", "b")]);
    let files = ["a.md", "b.md"].map(|name| change(written.root(), Some(name), Some(name), whole("new")));
    let event = written.run("set", plan(files.to_vec()));
    written.folder.write("b.md", "mine");
    let before = snapshot(written.root());
    let error = written.undo(&event).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("b.md"), "{error}");
    assert_eq!(snapshot(written.root()), before);
}

#[test]
fn an_operation_missing_from_the_journal_after_a_crash_is_recorded() {
    let written = Written::new(&[("a.md", "a")]);
    let lock = written.vault.lock(&written.vault.records()).unwrap();
    let change = change(written.root(), Some("a.md"), Some("b.md"), Content::Keep);
    let applied = written.vault.apply(&lock, &plan(vec![change]), at(0)).unwrap();
    assert_eq!(written.log(), "");
    assert_eq!(written.journal.record_missing(&lock).unwrap(), 1);
    assert_eq!(written.journal.record_missing(&lock).unwrap(), 0);
    let event = written.journal.events(ReadOrder::NewestFirst).unwrap().next().unwrap().unwrap();
    assert_eq!(event, Event::of(&applied));
}

#[test]
fn an_undo_prunes_no_operation_that_can_still_be_undone() {
    let mut written = Written::new(&[("a.md", "0")]);
    for number in 1..=20 {
        written.change("set", Some("a.md"), Some("a.md"), whole(&number.to_string()));
    }
    for left in (0..20).rev() {
        let last = written.journal.undoable().unwrap().remove(0);
        written.undo(&last).unwrap();
        let lock = written.vault.lock(&written.vault.records()).unwrap();
        written.journal.prune(&lock, 20, 30, at(0)).unwrap();
        assert_eq!(written.undoable().len(), left);
    }
    assert_eq!(std::fs::read(written.root().join("a.md")).unwrap(), b"0");
}

#[test]
fn before_images_are_pruned_by_count_and_age() {
    let mut written = Written::new(&[("a.md", "0")]);
    for number in 1..=6 {
        written.change("set", Some("a.md"), Some("a.md"), whole(&number.to_string()));
    }
    let lock = written.vault.lock(&written.vault.records()).unwrap();
    let kept = || UndoLog::open(&written.vault.records()).unwrap().ids().unwrap().len();
    assert_eq!(written.journal.prune(&lock, 4, 30, at(0)).unwrap(), 2);
    assert_eq!((kept(), written.undoable().len()), (4, 4));
    assert_eq!(written.journal.prune(&lock, 4, 30, at(86_400_000 * 30 + 5000)).unwrap(), 2);
    assert_eq!(kept(), 2);
    let oldest = written.journal.events(ReadOrder::OldestFirst).unwrap().next().unwrap().unwrap();
    assert_eq!(written.journal.inverse(&oldest).unwrap_err().kind(), ErrorKind::NotFound);
}
