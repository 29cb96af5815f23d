//! Tests the order of notes that were created in the same second: the journal has the milliseconds.

use std::fs;

use sidenote::base::clock::{Clock, Timestamp};
use sidenote::index::silent;
use sidenote::store::{
    InsertRequest, ListRequest, MemoryListRequest, MoveRequest, Open, Operation, SortBy, Store, TextsRequest,
};

use crate::support::TestVault;

fn at(vault: &TestVault, millis: &str) -> Store {
    let store = Store::open(Open {
        vault: Some(vault.root().to_owned()),
        flags: vec![("embed.provider", "none".to_owned(), "test")],
        clock: Clock::Fixed(Timestamp::parse(&format!("2026-11-21T10:00:05.{millis}Z")).unwrap()),
        ..Open::default()
    })
    .unwrap();
    store.index().sync(silent()).unwrap();
    store
}

fn keep(store: &Store, title: &str) {
    let request = InsertRequest {
        text: format!("What is known of the {title} and of nothing else."),
        title: Some(title.to_owned()),
        ..InsertRequest::default()
    };
    store.memory_writes().insert(&[request]).unwrap();
}

/// Checks every list that goes by time.
#[track_caller]
fn check_order(vault: &TestVault, titles: &[&str]) {
    let store = at(vault, "999");
    let newest_first: Vec<&str> = titles.iter().rev().copied().collect();
    for title in titles {
        let reply = store.memories().timeline(title, 10).unwrap();
        let told: Vec<&str> = reply.memories.iter().map(|memory| memory.title.as_str()).collect();
        assert_eq!((told, titles[reply.anchor]), (titles.to_vec(), *title));
    }
    let memories = store.memories().list(&MemoryListRequest::default()).unwrap();
    assert_eq!(memories.iter().map(|memory| memory.title.as_str()).collect::<Vec<_>>(), newest_first);
    let (_, texts) =
        store.recalls().memory_texts(&TextsRequest { limit: 10, ..TextsRequest::default() }).unwrap();
    assert_eq!(texts.iter().map(|text| text.memory.title.as_str()).collect::<Vec<_>>(), newest_first);
    for sort in [SortBy::Created, SortBy::Updated] {
        let page = store.reads().list(&ListRequest { sort, ..ListRequest::default() }).unwrap();
        assert_eq!(page.notes.iter().map(|note| note.title.as_str()).collect::<Vec<_>>(), newest_first);
    }
}

#[test]
fn notes_created_in_the_same_second_keep_their_order() {
    let vault = TestVault::new(&[]);
    for (title, millis) in [("Zebra", "100"), ("Moth", "250"), ("Adder", "900")] {
        keep(&at(&vault, millis), title);
    }
    // And those of one millisecond.
    let store = at(&vault, "950");
    keep(&store, "Yak");
    keep(&store, "Bee");
    drop(store);
    let titles = ["Zebra", "Moth", "Adder", "Yak", "Bee"];
    check_order(&vault, &titles);

    let store = at(&vault, "999");
    let reply = store.memories().timeline("Adder", 1).unwrap();
    let millis: Vec<i64> = reply.memories.iter().map(|memory| memory.created.millis() % 1000).collect();
    assert_eq!(millis, [250, 900, 950]);

    // The order survives a move and a rebuild of the index.
    let from = store.lookup().find("Moth").unwrap().path.to_string();
    let request = MoveRequest { from, to: "elsewhere/Moth.md".to_owned(), ..MoveRequest::default() };
    assert!(store.changes().change(&Operation::Move(request), false).unwrap().applied);
    drop(store);
    check_order(&vault, &titles);
    fs::remove_dir_all(vault.root().join(".sidenote/index")).unwrap();
    check_order(&vault, &titles);
}

#[test]
fn a_created_property_takes_precedence_over_the_journal() {
    let vault = TestVault::new(&[]);
    let store = at(&vault, "500");
    keep(&store, "Zebra");
    keep(&store, "Adder");
    let path = vault.root().join(store.lookup().find("Adder").unwrap().path.as_str());
    let text = fs::read_to_string(&path).unwrap().replace("2026-11-21T10:00:05", "2026-11-20T10:00:05");
    fs::write(&path, text).unwrap();
    drop(store);
    let store = at(&vault, "999");
    let told: Vec<String> = store
        .memories()
        .timeline("Zebra", 5)
        .unwrap()
        .memories
        .into_iter()
        .map(|memory| memory.title)
        .collect();
    assert_eq!(told, ["Adder", "Zebra"]);
}
