//! Tests of consolidation: a seeded vault with known duplicates, contradictions and replaced facts among others that look
//! like them, and cases for each other rule.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use insta::assert_snapshot;

use sidenote::base::clock::{Clock, Timestamp};
use sidenote::memory::statement::{Comparison, Statement};
use sidenote::store::{
    ConsolidateRequest, MaintainRequest, Open, ProposalItem, ProposalKind, ProposalsRequest, Store,
};

use crate::seeded_memories::{Seeded, Sizes, ordered};
use crate::support::{TestVault, say};

fn pairs_of(store: &Store, items: &[ProposalItem], kind: ProposalKind) -> BTreeSet<(String, String)> {
    let of_kind = items.iter().filter(|item| item.kind == kind);
    of_kind
        .map(|item| {
            let sources = store.proposals().show(&item.id).unwrap().proposal.sources;
            ordered(sources[0].path.clone(), sources[1].path.clone())
        })
        .collect()
}

fn texts(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let notes = fs::read_dir(root.join("Memories")).unwrap();
    notes
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

/// Makes a seeded vault, measures what is found in it, accepts everything, and undoes it.
fn measure(sizes: Sizes) {
    let seeded = Seeded::new(sizes);
    let vault = TestVault::new(&[]);
    seeded.write(vault.root());
    let store = vault.store();
    let facts = texts(vault.root());
    let request = ConsolidateRequest {
        kinds: vec![ProposalKind::Duplicate, ProposalKind::Superseded, ProposalKind::Contradiction],
        ..ConsolidateRequest::default()
    };
    let dry =
        store.proposals().consolidate(&ConsolidateRequest { dry_run: true, ..request.clone() }).unwrap();
    assert_eq!(store.proposals().waiting_count().unwrap(), 0);
    let found = store.proposals().consolidate(&request).unwrap();
    assert_eq!(found.proposals.len(), dry.proposals.len());
    assert!(found.notices.is_empty(), "{:?}", found.notices);
    let by_path: BTreeMap<&str, &str> =
        seeded.notes.iter().map(|(path, text, _)| (path.as_str(), text.as_str())).collect();
    let mut faults = Vec::new();
    for (kind, wanted) in &seeded.pairs {
        let pairs = pairs_of(&store, &found.proposals, *kind);
        let right = pairs.intersection(wanted).count();
        let (precision, recall) =
            (right as f64 / pairs.len().max(1) as f64, right as f64 / wanted.len() as f64);
        say(&format!(
            "{}: {} of {} found, {} wrong; precision {precision:.3}, recall {recall:.3}\n",
            kind.name(),
            right,
            wanted.len(),
            pairs.len() - right
        ));
        for (what, pair) in pairs
            .difference(wanted)
            .map(|pair| ("wrong", pair))
            .chain(wanted.difference(&pairs).map(|pair| ("missed", pair)))
        {
            say(&format!("  {what}: {} | {}\n", by_path[pair.0.as_str()], by_path[pair.1.as_str()]));
        }
        if precision < 0.9 || recall < 0.8 {
            faults.push(format!("{}: precision {precision:.3}, recall {recall:.3}", kind.name()));
        }
    }
    for _ in 0..10 {
        let again = store.proposals().consolidate(&request).unwrap();
        assert_eq!((again.proposals.len(), again.waiting), (0, found.proposals.len()));
    }
    let accepted = store.proposals().accept_all(None, false).unwrap();
    assert!(accepted.refused.is_empty(), "{:?}", accepted.refused);
    let kept: Vec<String> =
        texts(vault.root()).values().map(|bytes| plain(&String::from_utf8_lossy(bytes))).collect();
    for (path, bytes) in &facts {
        let text = String::from_utf8_lossy(bytes).into_owned();
        for line in text.split("---\n").nth(2).unwrap().lines().filter(|line| !line.trim().is_empty()) {
            assert!(kept.iter().any(|text| text.contains(&plain(line))), "{path} lost: {line}");
        }
    }
    let applied = accepted.accepted.iter().filter(|accepted| accepted.change.applied).count();
    store.changes().undo(applied, false).unwrap();
    assert!(texts(vault.root()) == facts, "an undo is not exact");
    assert_eq!(faults, Vec::<String>::new());
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn seeded_faults_are_found_and_no_fact_is_lost() {
    measure(Sizes { duplicates: 20, contradictions: 12, supersessions: 12, all: 300 });
}

#[test]
#[ignore = "it consolidates 3,000 notes, which takes a minute"]
fn seeded_faults_of_a_large_vault_are_found_and_no_fact_is_lost() {
    measure(Sizes { duplicates: 200, contradictions: 100, supersessions: 100, all: 3000 });
}

#[test]
fn statements_are_compared_by_their_words() {
    use Comparison::{Contradicted, Same, Superseded, Unrelated};
    let cases = [
        ("Falcon listens on port 8080.", "Falcon listens on port 8080", Same),
        ("The staging server of Falcon is in Oslo.", "Falcon's staging server is located in Oslo.", Same),
        ("Falcon listens on port 8080.", "Falcon listens on port 9090.", Contradicted),
        ("Falcon listens on port 8080.", "Falcon now listens on port 9090.", Superseded),
        ("Falcon listens on port 8080.", "Heron listens on port 9090.", Unrelated),
        ("Server A is backed up at 3.", "Server B is backed up at 4.", Unrelated),
        ("Falcon supports the offline mode.", "Falcon does not support the offline mode.", Contradicted),
        ("Falcon supports the offline mode.", "Falcon no longer supports the offline mode.", Superseded),
        ("Anna reports to Bernd in the team.", "Bernd reports to Anna in the team.", Unrelated),
        ("Das Team Falke trifft sich am Montag.", "Das Team Falke trifft sich jetzt am Freitag.", Superseded),
        ("Falcon ships on Monday.", "Heron tests on Friday with Anna.", Unrelated),
    ];
    for (older, newer, expected) in cases {
        let (one, other) = (Statement::of(older).unwrap(), Statement::of(newer).unwrap());
        assert_eq!(one.compare(&other), expected, "{older} | {newer}");
    }
    assert!(Statement::of(&"a long text of many words ".repeat(40)).is_none());
}

fn consolidated(vault: &TestVault, kind: ProposalKind) -> (Store, Vec<ProposalItem>) {
    let store = vault.store();
    let request = ConsolidateRequest { kinds: vec![kind], ..ConsolidateRequest::default() };
    let reply = store.proposals().consolidate(&request).unwrap();
    assert!(reply.notices.is_empty(), "{:?}", reply.notices);
    assert_eq!(store.proposals().consolidate(&request).unwrap().proposals, []);
    (store, reply.proposals)
}

#[test]
fn a_merge_keeps_both_texts_and_the_source_in_the_trash() {
    let vault = TestVault::new(&[
        (
            "Memories/Server.md",
            "---\ntags: [sea]\n---\nThe staging server of Falcon is in Oslo.\nAsk Anna for the key.\n",
        ),
        (
            "Memories/Staging.md",
            "---\ntags: [port]\n---\nThe staging server of Falcon is in Oslo.\nAsk Anna for the key!\n",
        ),
        ("Index.md", "See [[Staging]].\n"),
    ]);
    let (store, found) = consolidated(&vault, ProposalKind::Duplicate);
    assert_eq!(found.len(), 1);
    // A link that comes later follows, too.
    vault.write("Later.md", "Also [[Server]] and [[Staging]].\n");
    store.proposals().accept(&found[0].id, false).unwrap();
    let text = vault.read("Memories/Staging.md");
    assert!(text.contains("merged_from:\n  - Memories/Server.md") && text.contains("sea"), "{text}");
    assert_eq!(text.matches("Oslo").count(), 1, "{text}");
    assert!(text.contains("Ask Anna for the key.") && text.contains("Ask Anna for the key!"), "{text}");
    assert!(vault.root().join(".trash/Memories/Server.md").exists());
    assert_eq!(vault.read("Later.md"), "Also [[Staging]] and [[Staging]].\n");
    store.changes().undo(1, false).unwrap();
    assert_eq!(vault.read("Later.md"), "Also [[Server]] and [[Staging]].\n");
    assert!(vault.read("Memories/Server.md").ends_with("Ask Anna for the key.\n"));
}

#[test]
fn a_replaced_fact_gets_the_note_that_replaces_it() {
    let vault = TestVault::new(&[
        ("Old.md", "---\ncreated_at: 2026-01-02\n---\nFalcon listens on port 8080.\n"),
        ("New.md", "---\ncreated_at: 2026-03-04\n---\nFalcon now listens on port 9090.\n"),
        ("Other.md", "---\ncreated_at: 2026-03-04\nsupersedes: \"[[Plan]]\"\n---\nWe sail.\n"),
        ("Plan.md", "---\ncreated_at: 2026-03-01\n---\nWe row in the morning.\n"),
    ]);
    let (store, found) = consolidated(&vault, ProposalKind::Superseded);
    assert_eq!(found.len(), 2, "{found:?}");
    for item in &found {
        store.proposals().accept(&item.id, false).unwrap();
    }
    let old = vault.read("Old.md");
    assert!(old.contains("superseded_by: \"[[New]]\"") && old.contains("valid_until: \"2026-03-04"), "{old}");
    assert!(vault.read("Plan.md").contains("superseded_by: \"[[Other]]\""));
    let request = ConsolidateRequest::default();
    assert_eq!(store.proposals().consolidate(&request).unwrap().proposals, []);
}

#[test]
fn a_rejected_finding_comes_back_when_its_note_changes() {
    let vault = TestVault::new(&[
        ("A.md", "---\ncreated_at: 2026-01-02\n---\nFalcon listens on port 8080.\n"),
        ("B.md", "---\ncreated_at: 2026-03-04\n---\nFalcon listens on port 9090.\n"),
    ]);
    let (store, found) = consolidated(&vault, ProposalKind::Contradiction);
    store.proposals().reject(&found[0].id).unwrap();
    assert_eq!(store.proposals().consolidate(&ConsolidateRequest::default()).unwrap().proposals, []);
    vault.write("B.md", "---\ncreated_at: 2026-03-04\n---\nFalcon listens on port 9091.\n");
    assert_eq!(store.proposals().consolidate(&ConsolidateRequest::default()).unwrap().proposals.len(), 1);
}

#[test]
fn a_note_that_only_has_the_words_hides_no_finding() {
    let vault = TestVault::new(&[
        ("A.md", "---\ncreated: 2026-08-01\n---\nFalcon listens on port 8080.\n"),
        ("B.md", "---\ncreated: 2026-10-01\n---\nFalcon now listens on port 9090.\n"),
        ("C.md", "Projects: Falcon runs the port scanner.\n"),
        ("D.md", "Falcon met the heron at the port of Oslo.\n"),
    ]);
    assert_eq!(consolidated(&vault, ProposalKind::Superseded).1.len(), 1);
}

#[test]
fn what_was_undone_after_it_was_accepted_can_be_accepted_again() {
    let vault = TestVault::new(&[
        ("A.md", "---\ncreated_at: 2026-01-02\n---\nFalcon listens on port 8080.\n"),
        ("B.md", "---\ncreated_at: 2026-03-04\n---\nFalcon listens on port 9090.\n"),
    ]);
    let (store, found) = consolidated(&vault, ProposalKind::Contradiction);
    let before = vault.read("A.md");
    store.proposals().accept(&found[0].id, false).unwrap();
    assert!(store.proposals().accept(&found[0].id, false).is_err());
    store.changes().undo(1, false).unwrap();
    assert_eq!(vault.read("A.md"), before);
    assert_eq!(store.proposals().consolidate(&ConsolidateRequest::default()).unwrap().proposals, []);
    let written = store.proposals().review(None).unwrap().written;
    assert_eq!(written, [], "{written:?}");
    store.proposals().accept(&found[0].id, false).unwrap();
    assert!(vault.read("A.md").contains("superseded_by"));
}

#[test]
fn what_three_handoffs_repeat_becomes_a_memory() {
    let handoff = |project: &str, more: &str| {
        format!(
            "---\ntype: handoff\nproject: {project}\n---\n# Handoff\n\n## Next Steps\n- Run the tests with one thread.\n- {more}\n"
        )
    };
    let vault = TestVault::new(&[
        ("Handoffs/a.md", &handoff("a", "Sew the sail of the boat.")),
        ("Handoffs/b.md", &handoff("b", "Paint the hull of the boat.")),
        ("Handoffs/c.md", &handoff("c", "Paint the hull of the boat.")),
    ]);
    let (store, found) = consolidated(&vault, ProposalKind::Handoffs);
    assert_eq!(found.len(), 1, "{found:?}");
    let made = store.proposals().accept(&found[0].id, false).unwrap().change.made().unwrap();
    let text = vault.read(&made);
    assert!(text.contains("Run the tests with one thread.") && text.contains("[[Handoffs/a]]"), "{text}");
}

#[test]
fn stale_and_unclear_memories_are_proposed_together() {
    let vault = TestVault::new(&[
        (
            "Memories/Fee.md",
            "---\ntype: fact\ncreated_at: 2026-11-01\nvalid_until: 2026-11-10\n---\nThe fee is low.\n",
        ),
        ("Memories/Rope.md", "---\ntype: fact\ncreated_at: 2025-01-01\n---\nThe rope is blue.\n"),
        (
            "Memories/Pinned.md",
            "---\ntype: fact\ncreated_at: 2025-01-01\npinned: true\n---\nThe mast is tall.\n",
        ),
        ("Memories/Untitled 2.md", "---\ncreated_at: 2026-11-01\n---\nWe decided to paint the hull.\n"),
    ]);
    let (store, found) = consolidated(&vault, ProposalKind::Stale);
    assert_eq!(found.len(), 2, "{found:?}");
    let reply = store.proposals().accept_all(Some(ProposalKind::Stale), false).unwrap();
    assert!(reply.refused.is_empty(), "{:?}", reply.refused);
    assert!(vault.read("Memories/Fee.md").contains("tier: archive"));
    assert!(vault.read("Memories/Rope.md").contains("tier: archive"));
    assert!(!vault.read("Memories/Pinned.md").contains("tier: archive"));
    let request = ConsolidateRequest { kinds: vec![ProposalKind::Unclear], ..ConsolidateRequest::default() };
    let unclear = store.proposals().consolidate(&request).unwrap();
    assert_eq!((unclear.proposals.len(), unclear.later), (1, 1), "{unclear:?}");
    store.proposals().accept_all(None, false).unwrap();
    assert!(vault.read("Memories/Untitled 2.md").contains("type: decision"));
    let unclear = store.proposals().consolidate(&request).unwrap();
    assert_eq!(unclear.proposals.len(), 1, "{unclear:?}");
    store.proposals().accept_all(None, false).unwrap();
    assert!(vault.read("Memories/We decided to paint the hull.md").contains("type: decision"));
    drop(store.maintenance().maintain(MaintainRequest::default()));
}

/// Returns the path and text of a memory about something.
fn fact(name: &str, day: u32, more: &str, text: &str) -> (String, String) {
    let front = format!("title: {name}\ntype: fact\ncreated_at: 2026-03-{day:02}\n{more}");
    (format!("Memories/{name}.md"), format!("---\n{front}---\n{text}\n"))
}

#[test]
fn small_memories_about_one_subject_become_one_note() {
    let falcon = [
        fact("Port", 1, "importance: 5\n", "The port of Falcon is 8080."),
        fact("Built", 2, "importance: 8\ntags: [crew]\n", "Built in Oslo, the Falcon belongs to Anna."),
        fact("Mast", 3, "", "The mast of Falcon was made of ash."),
        fact("Red sail", 4, "", "In storms Falcon carries a red sail."),
        fact("Hull", 5, "", "Every spring the hull of Falcon gets new paint."),
    ];
    let others = [
        fact("Anchor", 6, "pinned: true\n", "The anchor of Falcon weighs 40 kilos."),
        fact("Log", 7, "", &"The log of Falcon tells of a day at sea. ".repeat(12)),
        fact("Said elsewhere", 8, "", "The crew of Falcon sings at night."),
        fact("Rope", 9, "author: Bernd\n", "The rope of Falcon is blue."),
    ];
    let vault = TestVault::new(&[("Index.md", "[[Red sail]] and [[Port]].\n")]);
    fs::create_dir_all(vault.root().join("Memories")).unwrap();
    for (path, text) in falcon.iter().chain(&others) {
        vault.write(path, text);
    }
    let before = texts(vault.root());
    let (store, found) = consolidated(&vault, ProposalKind::Cluster);
    assert_eq!(found.len(), 1, "{found:?}");
    let sources = store.proposals().show(&found[0].id).unwrap().proposal.sources;
    let paths: Vec<&str> = sources.iter().map(|source| source.path.as_str()).collect();
    // The first name of the second one is Oslo.
    assert_eq!(paths, ["Memories/Port.md", "Memories/Mast.md", "Memories/Red sail.md", "Memories/Hull.md"]);
    store.proposals().accept(&found[0].id, false).unwrap();
    assert_snapshot!(vault.read("Memories/Port.md"), @r"
    ---
    title: Falcon
    type: fact
    created_at: 2026-03-01
    importance: 5
    merged_from:
      - Memories/Mast.md
      - Memories/Red sail.md
      - Memories/Hull.md
    ---
    The port of Falcon is 8080.

    The mast of Falcon was made of ash.

    In storms Falcon carries a red sail.

    Every spring the hull of Falcon gets new paint.
    ");
    assert_eq!(vault.read("Index.md"), "[[Port]] and [[Port]].\n");
    assert!(vault.root().join(".trash/Memories/Hull.md").exists());
    store.changes().undo(1, false).unwrap();
    assert_eq!(texts(vault.root()), before);
    assert_eq!(vault.read("Index.md"), "[[Red sail]] and [[Port]].\n");
}

#[test]
fn small_memories_with_one_tag_become_one_note_in_any_language() {
    let lines = [
        "発電機の点検は毎月第一月曜日に行う。",
        "予備の燃料は地下倉庫の棚に置いてある。",
        "停電の時は管理室の電話に連絡する。",
        "鍵の保管場所は受付の金庫の中です。",
    ];
    let vault = TestVault::new(&[]);
    fs::create_dir_all(vault.root().join("Memories")).unwrap();
    for (at, line) in lines.iter().enumerate() {
        let title = line.trim_end_matches('。');
        let front = format!("title: {title}\ntype: fact\ntags: [発電機]\ncreated_at: 2026-03-0{}\n", at + 1);
        vault.write(&format!("Memories/{title}.md"), format!("---\n{front}---\n{line}\n"));
    }
    let (store, found) = consolidated(&vault, ProposalKind::Cluster);
    assert_eq!(found.len(), 1, "{found:?}");
    store.proposals().accept(&found[0].id, false).unwrap();
    let text = vault.read(&format!("Memories/{}.md", lines[0].trim_end_matches('。')));
    assert!(lines.iter().all(|line| text.contains(line)) && text.contains("title: 発電機\n"), "{text}");
    // Three more are too few, and those that are one note already do not count again.
    for (at, line) in ["The valve is blue.", "Oil costs much.", "Noise is loud."].iter().enumerate() {
        let front = format!("title: {line}\ntype: fact\ntags: [発電機]\ncreated_at: 2026-04-0{}\n", at + 1);
        vault.write(
            &format!("Memories/{}.md", line.trim_end_matches('.')),
            format!("---\n{front}---\n{line}\n"),
        );
    }
    let request = ConsolidateRequest { kinds: vec![ProposalKind::Cluster], ..ConsolidateRequest::default() };
    assert_eq!(store.proposals().consolidate(&request).unwrap().proposals, []);
}

#[test]
fn a_server_consolidates_once_a_day_if_the_settings_say_so() {
    let vault = TestVault::new(&[
        ("A.md", "---\ncreated_at: 2026-01-02\n---\nFalcon listens on port 8080.\n"),
        ("B.md", "---\ncreated_at: 2026-03-04\n---\nFalcon listens on port 9090.\n"),
    ]);
    let open = |day: &str, is_set: bool| {
        let flags = [("embed.provider", "none".to_owned()), ("memory.consolidate", is_set.to_string())];
        let store = Store::open(Open {
            vault: Some(vault.root().to_owned()),
            flags: flags.into_iter().map(|(key, value)| (key, value, "test")).collect(),
            clock: Clock::Fixed(Timestamp::parse(day).unwrap()),
            ..Open::default()
        });
        store.unwrap()
    };
    assert!(open("2026-06-01T10:00:00Z", false).proposals().consolidate_if_due().unwrap().is_none());
    let found = open("2026-06-01T10:00:00Z", true).proposals().consolidate_if_due().unwrap().unwrap();
    assert_eq!(found.proposals.len(), 1);
    assert!(open("2026-06-02T09:59:00Z", true).proposals().consolidate_if_due().unwrap().is_none());
    let again = open("2026-06-02T10:00:00Z", true).proposals().consolidate_if_due().unwrap().unwrap();
    assert_eq!((again.proposals.len(), again.waiting), (0, 1));
}

#[test]
fn a_memory_gets_the_links_that_it_lacks() {
    let vault = TestVault::new(&[
        ("Dragon boat.md", "A boat.\n"),
        (
            "Memories/Row.md",
            "---\ntype: fact\n---\nThe dragon boat is red. The Dragon boat leaks, see `Dragon boat`.\n",
        ),
        ("Memories/Linked.md", "---\ntype: fact\n---\nThe Dragon boat is [[Dragon boat|red]].\n"),
    ]);
    let (store, found) = consolidated(&vault, ProposalKind::MissingLink);
    assert_eq!(found.len(), 1, "{found:?}");
    store.proposals().accept(&found[0].id, false).unwrap();
    assert!(
        vault
            .read("Memories/Row.md")
            .contains("The [[Dragon boat|dragon boat]] is red. The Dragon boat leaks")
    );
    let all = store.proposals().list(ProposalsRequest { all: true, kind: None }).unwrap();
    assert_eq!(all.proposals.len(), 1);
}

#[test]
fn a_name_in_an_identifier_is_no_mention() {
    let cases = [
        "It has the tag #red-apple here.",
        "Write to red.apple@example.com today.",
        "See src/red_apple.rs for it.",
        "A line of text. ^red-apple",
        "A note[^red-apple] of it.\n\n[^red-apple]: Sweet.",
        "The door is red. Apple trees grow here.",
        "Set colour=red apple.",
        "The file Red apple.png is large.",
    ];
    let mut files = vec![("Red apple.md".to_owned(), "A fruit.\n".to_owned())];
    for (at, text) in cases.iter().enumerate() {
        files.push((format!("Memories/M{at}.md"), format!("---\ntype: fact\n---\n{text}\n")));
    }
    files.push(("Memories/Said.md".to_owned(), "---\ntype: fact\n---\nWe ate a red apple.\n".to_owned()));
    let vault = TestVault::new(&[]);
    fs::create_dir_all(vault.root().join("Memories")).unwrap();
    for (path, text) in &files {
        vault.write(path, text);
    }
    let (store, found) = consolidated(&vault, ProposalKind::MissingLink);
    let paths: Vec<_> = found.iter().flat_map(|item| item.paths.clone()).collect();
    assert_eq!(paths, ["Memories/Said.md"]);
    store.proposals().accept(&found[0].id, false).unwrap();
    assert!(vault.read("Memories/Said.md").contains("a [[Red apple|red apple]]."));
}

#[test]
fn a_name_that_two_files_have_is_not_linked() {
    let vault = TestVault::new(&[
        ("Dragon boat.md", "A boat.\n"),
        ("old/Dragon boat.md", "---\ntier: archive\n---\nAnother boat.\n"),
        ("Memories/Row.md", "---\ntype: fact\n---\nThe Dragon boat is red.\n"),
    ]);
    assert_eq!(consolidated(&vault, ProposalKind::MissingLink).1, []);
}

#[test]
fn notes_that_look_alike_and_say_something_else_are_no_duplicates() {
    let long = "The crew checked each knot of the ropes.\nThen it wrote a list of what is broken.\n";
    let cases = [
        (
            "Allowed",
            "Allowed: coffee, tea\nForbidden: beer, wine\n",
            "Allowed: beer, wine\nForbidden: coffee, tea\n",
        ),
        ("Ports", "Staging 8080\nProduction 9090\n", "Staging 9090\nProduction 8080\n"),
        ("Replica", "postgres replicates to mysql daily\n", "mysql replicates to postgres daily\n"),
        ("Hund", "Der Hund jagt die Katze im Garten.\n", "Die Katze jagt der Hund im Garten.\n"),
        ("Switch", "The light in the shed is on.\n", "The light in the shed is off.\n"),
        ("Bag", "My bag is in the shed.\n", "Your bag is in the shed.\n"),
        ("Tasche", "Meine Tasche liegt im Keller.\n", "Deine Tasche liegt im Keller.\n"),
        ("Archive", "Falcon stores the archive of Heron.\n", "Falcon needs the archive of Heron.\n"),
    ];
    let vault = TestVault::new(&[]);
    fs::create_dir_all(vault.root().join("Memories")).unwrap();
    for (name, one, other) in cases {
        vault.write(&format!("Memories/{name}.md"), one);
        vault.write(&format!("Memories/{name} 2.md"), other);
    }
    for path in
        ["Memories/Anna.md", "Memories/Bernd.md", "2026-03-04.md", "2026-03-05.md", "README.md", "AGENTS.md"]
    {
        vault.write(path, long);
    }
    vault.write("Memories/Knots.md", format!("---\nproject: a\n---\n{long}"));
    vault.write("Memories/Knots 2.md", format!("---\nproject: b\n---\n{long}"));
    assert_eq!(consolidated(&vault, ProposalKind::Duplicate).1, []);
    vault.write("Memories/Anna 2.md", long);
    assert_eq!(consolidated(&vault, ProposalKind::Duplicate).0.proposals().waiting_count().unwrap(), 1);
}

#[test]
fn what_differs_by_its_day_version_or_time_is_no_contradiction() {
    let dated = |day: &str, text: &str| format!("---\ncreated_at: 2026-{day}\n---\n{text}\n");
    let vault = TestVault::new(&[
        ("A.md", "Falcon listens on port 8080.\n"),
        ("B.md", "Falcon listens on port 9090.\n"),
        ("C.md", &dated("01-02", "The flight to Oslo leaves at 10:00.")),
        ("D.md", &dated("03-04", "The flight to Oslo leaves at 18:00.")),
        ("E.md", &dated("01-02", "The release 2.0 of Heron is green.")),
        ("F.md", &dated("03-04", "The release 2.1 of Heron is green.")),
        ("2026-03-04.md", "Anna slept for 7 hours.\n"),
        ("2026-03-05.md", "Anna slept for 8 hours.\n"),
    ]);
    assert_eq!(consolidated(&vault, ProposalKind::Contradiction).1, []);
    vault.write("B.md", dated("03-04", "Falcon listens on port 9090."));
    vault.write("A.md", dated("01-02", "Falcon listens on port 8080."));
    let (store, _) = consolidated(&vault, ProposalKind::Contradiction);
    let reply = store.proposals().accept_all(None, false).unwrap();
    assert_eq!((reply.accepted.len(), reply.contradictions.len()), (0, 1));
}

#[test]
fn what_waits_is_made_anew_after_its_notes_changed_or_moved() {
    let vault = TestVault::new(&[
        ("Dragon boat.md", "A boat.\n"),
        ("Memories/Row.md", "---\ntype: fact\n---\nThe Dragon boat is red.\n"),
    ]);
    let (store, found) = consolidated(&vault, ProposalKind::MissingLink);
    vault.write("Memories/Row.md", "---\ntype: fact\n---\nThe Dragon boat is blue.\n");
    let request =
        ConsolidateRequest { kinds: vec![ProposalKind::MissingLink], ..ConsolidateRequest::default() };
    let reply = store.proposals().consolidate(&request).unwrap();
    assert_eq!((reply.proposals.len(), reply.waiting), (1, 1), "{reply:?}");
    assert_eq!(reply.outdated, [found[0].id.clone()]);
    fs::rename(vault.root().join("Memories/Row.md"), vault.root().join("Memories/Oar.md")).unwrap();
    let moved = store.proposals().consolidate(&request).unwrap();
    assert_eq!(moved.proposals[0].id, reply.proposals[0].id);
    store.proposals().accept(&moved.proposals[0].id, false).unwrap();
    assert!(vault.read("Memories/Oar.md").contains("[[Dragon boat]] is blue."));
}

#[test]
fn a_memory_that_lasts_is_not_stale() {
    let dated = |more: &str| format!("---\ncreated_at: 2025-01-01\n{more}\n---\nThe rope is blue.\n");
    let vault = TestVault::new(&[
        ("Memories/A.md", &dated("type: fact\nimportance: 8")),
        ("Memories/B.md", &dated("type: fact\nimportance: 0.8")),
        ("Memories/C.md", &dated("type: preference")),
        ("Memories/D.md", &dated("type: decision")),
        ("Memories/E.md", &dated("type: fact\npinned: true")),
        ("Memories/F.md", &dated("type: fact\ntags: [core]")),
    ]);
    assert_eq!(consolidated(&vault, ProposalKind::Stale).1, []);
}
