//! Tests what a vault asks of its authority, and when: the turn, the commit, events without a change, and the changes of
//! others.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sidenote::base::clock::{Clock, Timestamp};
use sidenote::base::error::{Error, ErrorKind};
use sidenote::index::silent;
use sidenote::journal::Journal;
use sidenote::journal::event::Event;
use sidenote::journal::reader::ReadOrder;
use sidenote::markdown::path::NotePath;
use sidenote::store::{NewRequest, Open, Operation, ReadRequest, Store};
use sidenote::vault::Vault;
use sidenote::vault::authority::{Alone, Authority, ChangeLock, ReadyChange, RecordedEvent, with_authority};

use crate::apply::{at, change, path, plan, snapshot, whole};
use crate::support::{TestVault, paths};

/// What an authority was asked, and what it answers.
#[derive(Debug, Default)]
struct State {
    root: PathBuf,
    asked: Mutex<Vec<String>>,
    committed: Mutex<Vec<Event>>,
    /// The files that the next catching up tells; `None` where the folder is the truth.
    changed: Mutex<Option<Vec<NotePath>>>,
    is_shared: Mutex<bool>,
    refuses_turn: Mutex<bool>,
    refuses_commit: Mutex<bool>,
    /// How many milliseconds a change waits; 0 where the authority does not say.
    wait_limit_ms: AtomicU64,
    is_away: AtomicBool,
}

#[derive(Debug, Clone)]
struct Recorder(Arc<State>);

impl Recorder {
    fn of(vault: &TestVault) -> Self {
        Self(Arc::new(State { root: vault.root().to_owned(), ..State::default() }))
    }

    fn note(&self, what: String) {
        self.0.asked.lock().unwrap().push(what);
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.asked.lock().unwrap())
    }

    fn vault(&self) -> Vault {
        with_authority(Vault::open(&self.0.root).unwrap(), Arc::new(self.clone()))
    }

    fn store(&self) -> Store {
        let settings = [("embed.share", "false"), ("embed.provider", "none")];
        Store::open(Open {
            vault: Some(self.0.root.clone()),
            flags: settings.iter().map(|(key, value)| (*key, (*value).to_owned(), "test")).collect(),
            clock: Clock::Fixed(Timestamp::parse("2026-11-21").unwrap()),
            authority: Some(Arc::new(self.clone())),
            ..Open::default()
        })
        .unwrap()
    }
}

fn refused() -> Error {
    Error::new(ErrorKind::Conflict, "somebody else has the turn")
}

impl Authority for Recorder {
    fn is_shared(&self) -> bool {
        *self.0.is_shared.lock().unwrap()
    }

    fn is_cut_off(&self) -> bool {
        false
    }

    fn distrust(&self, path: &NotePath) {
        self.note(format!("distrust {path}"));
    }

    fn catch_up(&self) -> Result<Option<Vec<NotePath>>, Error> {
        let mut changed = self.0.changed.lock().unwrap();
        Ok(changed.as_mut().map(std::mem::take))
    }

    fn wait_limit(&self) -> Duration {
        match self.0.wait_limit_ms.load(Ordering::Relaxed) {
            0 => Alone.wait_limit(),
            wait_limit => Duration::from_millis(wait_limit),
        }
    }

    fn outage(&self) -> Option<Error> {
        self.0.is_away.load(Ordering::Relaxed).then(|| Error::new(ErrorKind::Io, "the database is away"))
    }

    fn lock_changes(&self, wait_limit: Duration) -> Result<Box<dyn ChangeLock>, Error> {
        self.note(format!("turn within {} s", wait_limit.as_secs_f64().ceil()));
        if *self.0.refuses_turn.lock().unwrap() { Err(refused()) } else { Ok(Box::new(self.clone())) }
    }

    fn record(
        &self,
        deeds: &mut dyn Iterator<Item = Result<RecordedEvent, Error>>,
        durable: bool,
    ) -> Result<(), Error> {
        for deed in deeds {
            let deed = deed?;
            let event: Event = serde_json::from_str(&deed.line).unwrap();
            assert_eq!((event.id, deed.line.contains('\n')), (deed.id, false));
            self.note(format!("record {} {durable}", event.op));
        }
        Ok(())
    }
}

impl ChangeLock for Recorder {
    fn commit(&mut self, change: &ReadyChange<'_>) -> Result<(), Error> {
        let applied = change.applied();
        // The files are as they were; what is new is prepared beside them.
        for (file, content) in applied.files.iter().zip(change.contents()) {
            let now = |place: &Option<_>| {
                place.as_ref().and_then(|place| fs::read(self.0.root.join(format!("{place}"))).ok())
            };
            assert_eq!(
                now(&file.from).map(|bytes| blake3::hash(&bytes).to_hex().to_string()),
                file.before.map(|hash| hash.to_string())
            );
            let after = content.map(|bytes| blake3::hash(bytes).to_hex().to_string());
            assert!(after.is_none() || after == file.after.map(|hash| hash.to_string()));
            let content = content.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
            let name =
                |place: &Option<_>| place.as_ref().map_or_else(|| "-".to_owned(), |place| format!("{place}"));
            self.note(format!("{} -> {}: {content:?}", name(&file.from), name(&file.to)));
        }
        let pending = self.0.root.join(".sidenote/records/pending").join(&applied.id);
        assert!(pending.join("manifest.json").exists() && !pending.join("committed.json").exists());
        if *self.0.refuses_commit.lock().unwrap() {
            return Err(refused());
        }
        self.0.committed.lock().unwrap().push(Event::of(&applied));
        Ok(())
    }
}

#[test]
fn a_change_is_committed_when_all_is_prepared_and_before_a_file_changes() {
    let vault = TestVault::new(&[("a.md", "a"), ("b.md", "b"), ("c.md", "c")]);
    let recorder = Recorder::of(&vault);
    let opened = recorder.vault();
    let root = vault.root();
    let files = vec![
        change(root, Some("a.md"), Some("a.md"), whole("new")),
        change(root, Some("b.md"), Some("d/b.md"), sidenote::markdown::edit::Content::Keep),
        change(root, Some("c.md"), None, sidenote::markdown::edit::Content::Keep),
        change(root, None, Some("e.md"), whole("e")),
    ];
    let lock = opened.lock(&opened.records()).unwrap();
    let applied = opened.apply(&lock, &plan(files), at(0)).unwrap();
    let expected = [
        "turn within 10 s",
        "a.md -> a.md: Some(\"new\")",
        "b.md -> d/b.md: None",
        "c.md -> -: None",
        "- -> e.md: Some(\"e\")",
    ];
    assert_eq!(recorder.asked(), expected);
    assert_eq!(*recorder.0.committed.lock().unwrap(), [Event::of(&applied)]);
    assert_eq!(
        (vault.read("a.md"), vault.read("d/b.md"), vault.read("e.md")),
        ("new".into(), "b".into(), "e".into())
    );
    // A change that does nothing needs no commit.
    let nothing = vec![change(root, Some("a.md"), Some("a.md"), whole("new"))];
    opened.apply(&lock, &plan(nothing), at(1)).unwrap();
    assert_eq!(recorder.asked(), [""; 0]);
}

#[test]
fn a_refused_commit_changes_nothing() {
    let vault = TestVault::new(&[("a.md", "a")]);
    let recorder = Recorder::of(&vault);
    let opened = recorder.vault();
    let before = snapshot(vault.root());
    let lock = opened.lock(&opened.records()).unwrap();
    let files = || {
        let root = vault.root();
        vec![
            change(root, Some("a.md"), Some("f/b.md"), whole("new")),
            change(root, None, Some("g/c.md"), whole("c")),
        ]
    };
    *recorder.0.refuses_commit.lock().unwrap() = true;
    let error = opened.apply(&lock, &plan(files()), at(0)).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Conflict, refused().message()));
    assert_eq!(snapshot(vault.root()), before);
    assert_eq!(fs::read_dir(lock.records().join("pending")).unwrap().count(), 0);
    *recorder.0.refuses_commit.lock().unwrap() = false;
    opened.apply(&lock, &plan(files()), at(1)).unwrap();
    assert_eq!((vault.read("f/b.md"), vault.read("g/c.md")), ("new".into(), "c".into()));
}

#[test]
fn a_refused_turn_releases_the_lock_of_the_folder() {
    let vault = TestVault::new(&[("a.md", "a")]);
    let recorder = Recorder::of(&vault);
    *recorder.0.refuses_turn.lock().unwrap() = true;
    let opened = recorder.vault();
    let error = opened.lock_with_timeout(&opened.records(), Duration::ZERO).unwrap_err();
    assert_eq!(error.message(), refused().message());
    let alone = Vault::open(vault.root()).unwrap();
    alone.lock_with_timeout(&alone.records(), Duration::ZERO).unwrap();
    assert_eq!(recorder.asked(), ["turn within 0 s"]);
}

#[test]
fn a_change_waits_for_the_lock_and_the_turn_as_long_as_its_authority_says() {
    let vault = TestVault::new(&[("a.md", "a")]);
    let recorder = Recorder::of(&vault);
    let opened = recorder.vault();
    recorder.0.wait_limit_ms.store(40_000, Ordering::Relaxed);
    let lock = opened.lock(&opened.records()).unwrap();
    assert_eq!(recorder.asked(), ["turn within 40 s"]);
    recorder.0.wait_limit_ms.store(1, Ordering::Relaxed);
    let waiting = || opened.lock(&opened.records()).unwrap_err();
    let held = format!("process {} holds the write lock of this vault", std::process::id());
    assert_eq!((waiting().kind(), waiting().message()), (ErrorKind::Conflict, held.as_str()));
    // Those who wait behind a change that cannot reach the database are told what they wait for.
    recorder.0.is_away.store(true, Ordering::Relaxed);
    assert_eq!((waiting().kind(), waiting().message()), (ErrorKind::Io, "the database is away"));
    assert_eq!(recorder.asked(), [""; 0]);
    drop(lock);
}

#[test]
fn a_copy_is_indexed_as_its_authority_tells() {
    let vault = TestVault::new(&[("a.md", "apple"), ("b.md", "banana")]);
    let recorder = Recorder::of(&vault);
    *recorder.0.changed.lock().unwrap() = Some(Vec::new());
    let store = recorder.store();
    // The first look scans everything: an earlier process may have ended before it indexed what it fetched.
    assert_eq!(paths(&store, "banana"), ["b.md"]);
    vault.write("a.md", "cherry");
    vault.write("b.md", "cherry");
    *recorder.0.changed.lock().unwrap() = Some(vec![path("b.md")]);
    assert_eq!(
        (paths(&store, "cherry"), paths(&store, "apple")),
        (vec!["b.md".to_owned()], vec!["a.md".to_owned()])
    );
    // A plan sees them, too, without a search before it.
    fs::remove_file(vault.root().join("b.md")).unwrap();
    *recorder.0.changed.lock().unwrap() = Some(vec![path("b.md")]);
    let request = NewRequest { title: "b".to_owned(), content: "date".to_owned(), ..NewRequest::default() };
    store.changes().change(&Operation::New(request), false).unwrap();
    assert_eq!(paths(&store, "date"), ["b.md"]);
    // Where the folder is the truth, a look at the disk finds what nobody told.
    *recorder.0.changed.lock().unwrap() = None;
    assert_eq!(paths(&store, "cherry"), ["a.md"]);
}

#[test]
fn a_read_of_a_copy_asks_only_about_a_file_that_was_changed_or_removed() {
    let notes = [("Same.md", "same"), ("Sparse.md", "small"), ("Changed.md", "before"), ("Gone.md", "gone")];
    let vault = TestVault::new(&notes);
    let recorder = Recorder::of(&vault);
    *recorder.0.is_shared.lock().unwrap() = true;
    *recorder.0.changed.lock().unwrap() = Some(Vec::new());
    let store = recorder.store();
    // The first look scans everything.
    assert_eq!(paths(&store, "same"), ["Same.md"]);
    recorder.asked();
    vault.write("Changed.md", "after");
    fs::remove_file(vault.root().join("Gone.md")).unwrap();
    let sparse = fs::OpenOptions::new().write(true).open(vault.root().join("Sparse.md")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    for (note, expected) in [
        ("Same", &[][..]),
        // What is not read is not compared either.
        ("Sparse", &[]),
        ("Changed", &["distrust Changed.md"]),
        ("Gone", &["distrust Gone.md"]),
    ] {
        let request = ReadRequest { note: note.to_owned(), ..ReadRequest::default() };
        let read = store.reads().read(&request);
        assert_eq!(read.is_ok(), matches!(note, "Same" | "Changed"), "{note}: {read:?}");
        let mut asked = recorder.asked();
        asked.dedup();
        assert_eq!(asked, expected, "{note}");
    }
}

#[test]
fn an_event_without_a_change_is_recorded_and_a_change_is_committed_only() {
    let vault = TestVault::new(&[("a.md", "apple")]);
    let recorder = Recorder::of(&vault);
    let journal = || {
        let journal = Journal::open(&recorder.vault(), &recorder.vault().records());
        let events = journal.events(ReadOrder::OldestFirst).unwrap();
        events.map(|event| event.unwrap().op).collect::<Vec<_>>()
    };
    let store = recorder.store();
    store.index().sync(silent()).unwrap();
    // Where the folder is the truth, its journal is, too.
    store.memories().vote("a", true).unwrap();
    assert_eq!((recorder.asked(), journal()), (vec![], vec!["vote".to_owned()]));
    *recorder.0.is_shared.lock().unwrap() = true;
    store.memories().vote("a", true).unwrap();
    assert_eq!(recorder.asked(), ["record vote true"]);
    let request = NewRequest { title: "b".to_owned(), content: "banana".to_owned(), ..NewRequest::default() };
    let reply = store.changes().change(&Operation::New(request), false).unwrap();
    let asked = recorder.asked();
    assert_eq!(asked.iter().filter(|asked| asked.starts_with("record")).count(), 0, "{asked:?}");
    // The journal of a copy gets both by catching up.
    assert_eq!(journal(), ["vote"]);
    let committed = recorder.0.committed.lock().unwrap();
    assert_eq!((committed[0].op.as_str(), Some(&committed[0].id)), ("new", reply.id.as_ref()));
}
