//! Tests the link graph, and finding notes by any of their names.

use insta::assert_snapshot;
use sidenote::base::error::ErrorKind;
use sidenote::store::{ListRequest, PropertyCondition, ReadRequest, SortBy};

use crate::support::{TestVault, stderr};

fn graph() -> TestVault {
    TestVault::new(&[
        (
            "Start.md",
            "---\nup: \"[[Plan]]\"\n---\n[[Plan#Goals]] [[Plan#Nope]] [x](Notes/Other.md) [[Missing]] [[missing|m]]\n",
        ),
        ("Plan.md", "---\nid: plan-1\naliases: [The plan]\n---\n# Goals\n\nnone ^g1\n\n[[Start]]\n"),
        ("Notes/Other.md", "# Another title\n\ntext [[Far]]\n"),
        ("Notes/Far.md", "end"),
        ("Notes/Plan.md", "other plan"),
        ("Alone.md", "nothing"),
    ])
}

#[test]
fn links_are_shown_both_ways() {
    let vault = graph();
    let store = vault.store();
    let links = store.reads().links("Start").unwrap();
    let out: Vec<String> = links
        .outgoing
        .iter()
        .map(|link| {
            format!(
                "{} {} -> {}{}",
                link.line,
                link.original,
                link.resolved.as_deref().unwrap(),
                if link.broken_subpath { " broken" } else { "" }
            )
        })
        .collect();
    assert_snapshot!(out.join("\n"), @r"
    2 [[Plan]] -> Plan.md
    4 [[Plan#Goals]] -> Plan.md
    4 [[Plan#Nope]] -> Plan.md broken
    4 [x](Notes/Other.md) -> Notes/Other.md
    ");
    assert_eq!(links.unresolved.len(), 2);
    let back = store.reads().links("Start").unwrap().backlinks;
    assert_eq!((back[0].path.as_str(), back[0].line, back[0].text.as_str()), ("Plan.md", 9, "[[Start]]"));
}

#[test]
fn a_backlink_from_a_canvas_shows_the_text_of_its_card() {
    let card = |id: &str, rest: &str| format!("{{\"id\":\"{id}\",{rest}}}");
    let nodes = [
        card("1", r#""type":"text","text":"first \"line\"\nsee [[Plan]] and [[Plan]]""#),
        card("2", r##""type":"file","file":"Plan.md","subpath":"#Goals""##),
        card("3", r#""type":"group","label":"Ideas","background":"Plan.md""#),
    ];
    let canvas = format!("{{\"nodes\":[{}]}}", nodes.join(","));
    let vault = TestVault::new(&[("Plan.md", "# Goals\n"), ("Board.canvas", &canvas)]);
    let links = vault.store().reads().links("Plan").unwrap().backlinks;
    let shown: Vec<&str> = links.iter().map(|link| link.text.as_str()).collect();
    assert_eq!(shown, ["see [[Plan]] and [[Plan]]", "see [[Plan]] and [[Plan]]", "Plan.md", "Plan.md"]);
}

#[test]
fn broken_links_are_grouped_ignoring_case() {
    let unresolved = graph().store().reads().unresolved().unwrap();
    let shown: Vec<(&str, usize)> =
        unresolved.iter().map(|item| (item.link.as_str(), item.places.len())).collect();
    assert_eq!(shown, [("Missing", 2)]);
}

#[test]
fn orphans_have_no_links_in_or_out() {
    let orphans: Vec<String> =
        graph().store().reads().orphans().unwrap().into_iter().map(|note| note.path).collect();
    assert_eq!(orphans, ["Alone.md", "Notes/Plan.md"]);
}

#[test]
fn the_shortest_chain_is_found() {
    let store = graph();
    let store = store.store();
    assert_eq!(
        store.reads().path("plan-1", "Far").unwrap().path,
        ["Plan.md", "Start.md", "Notes/Other.md", "Notes/Far.md"]
    );
    assert_eq!(store.reads().path("Far", "Alone").unwrap().distance, None);
    assert_eq!(store.reads().path("Far", "Far").unwrap().distance, Some(0));
}

#[test]
fn a_note_answers_to_all_its_names() {
    let vault = graph();
    let store = vault.store();
    for name in ["Plan.md", "plan-1", "The plan", "Plan", "[[Plan]]", "[[Plan#Goals|x]]", "./Plan.md"] {
        assert_eq!(store.lookup().find(name).unwrap().path.as_str(), "Plan.md", "{name}");
    }
    assert_eq!(store.lookup().find("Another title").unwrap().path.as_str(), "Notes/Other.md");
    assert_eq!(store.lookup().find("Notes/Far").unwrap().path.as_str(), "Notes/Far.md");
}

#[test]
fn an_ambiguous_name_lists_its_candidates() {
    let vault = TestVault::new(&[("a/Plan.md", "x"), ("b/Plan.md", "y")]);
    let error = vault.store().lookup().find("plan").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert_snapshot!(format!("{error} | {}", error.hint().unwrap()), @r#""plan" names 2 notes | give one path: a/Plan.md, b/Plan.md"#);
}

#[test]
fn an_unknown_name_suggests_others() {
    let error = graph().store().lookup().find("Oth").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_snapshot!(error.hint().unwrap(), @"did you mean Other, Another title?");
}

#[test]
fn an_unknown_name_suggests_those_with_other_accents_and_letters() {
    let vault = TestVault::new(&[
        ("Personas/Lucía.md", "x"),
        ("Personas/Jürgen Weiß.md", "x"),
        ("Nube.md", "---\naliases: [El sueño]\n---\n# Sueños"),
        ("Aa.md", "x"),
    ]);
    let store = vault.store();
    let cases = [
        ("lucia", "did you mean Lucía?"),
        ("[[Lucia]]", "did you mean Lucía?"),
        ("Personas/Lucia.md", "did you mean Lucía?"),
        ("Amigos/Lucía", "did you mean Lucía?"),
        ("Luzia", "did you mean Lucía?"),
        ("Juergen Weiss", "did you mean Jürgen Weiß?"),
        ("Sueno", "did you mean Sueños, El sueño?"),
        ("Ab", "did you mean Aa?"),
        ("Lumbago", "a note is named by its path"),
        ("b", "did you mean Nube?"),
        ("Xyz", "a note is named by its path"),
    ];
    for (name, says) in cases {
        let error = store.lookup().find(name).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.starts_with(says)), "{name}: {:?}", error.hint());
    }
    drop(store);
    // Every command and tool finds a note in the same way.
    let commands: [&[&str]; 5] = [
        &["read", "lucia"],
        &["read", "Lucia#Trabajo"],
        &["links", "lucia"],
        &["related", "lucia"],
        &["search", "links-to:lucia"],
    ];
    for args in commands {
        let done = vault.run(args);
        assert!(stderr(&done).contains("hint: did you mean Lucía?"), "{args:?}: {}", stderr(&done));
    }
}

#[test]
fn paths_outside_the_vault_resolve_to_nothing() {
    let vault = graph();
    let store = vault.store();
    for name in
        ["../Start.md", "/etc/passwd", ".obsidian/app.json", "..", "", "a\0b", "C:\\x", "Notes/../../x"]
    {
        assert_eq!(store.lookup().find(name).unwrap_err().kind(), ErrorKind::NotFound, "{name:?}");
    }
}

#[test]
fn sections_blocks_and_lines_are_read_byte_for_byte() {
    let vault = TestVault::new(&[("a.md", "# One\r\n\r\ntext ^b1\r\n## Two\r\nmore\r\n# Three\r\nend")]);
    let store = vault.store();
    let read = |section: Option<&str>, lines| {
        let request = ReadRequest { note: "a".to_owned(), section: section.map(str::to_owned), lines };
        let reply = store.reads().read(&request).unwrap();
        (reply.text, reply.lines)
    };
    assert_eq!(read(Some("One#Two"), None), ("## Two\r\nmore\r\n".to_owned(), (4, 5)));
    assert_eq!(read(Some("^b1"), None).1, (3, 3));
    assert_eq!(read(None, Some((5, 6))), ("more\r\n# Three\r\n".to_owned(), (5, 6)));
    assert_eq!(read(None, None).0.len(), 45);
    let request = ReadRequest { note: "a#Nope".to_owned(), ..ReadRequest::default() };
    assert_eq!(
        store.reads().read(&request).unwrap_err().hint().unwrap(),
        "its headings are: One / Two / Three"
    );
}

#[test]
fn lists_filter_by_property_and_sort() {
    let vault = TestVault::new(&[
        ("a.md", "---\nstatus: active\ncreated: 2026-01-02\nrating: 4\n---\n"),
        ("b.md", "---\nStatus: [Active, later]\ncreated: 2026-01-03\n---\n"),
        ("c.md", "---\ntitle: AAA\nsource: https://x.org/?a=1\ndc:type: book\n---\n"),
    ]);
    let store = vault.store();
    let list = |property: Option<&str>, sort| {
        let property = property.map(|text| PropertyCondition::parse(text).unwrap());
        let notes =
            store.reads().list(&ListRequest { property, sort, ..ListRequest::default() }).unwrap().notes;
        notes.into_iter().map(|note| note.path).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(list(Some("status"), SortBy::Path), "a.md b.md");
    assert_eq!(list(Some("status=active"), SortBy::Created), "b.md a.md");
    assert_eq!(list(Some("rating=4"), SortBy::Path), "a.md");
    // A name can have a colon, and a value either sign.
    let of_c = [
        "source:https://x.org/?a=1",
        "source=https://x.org/?a=1",
        "dc:type",
        "dc:type=book",
        "dc:type=\"book\"",
    ];
    for condition in of_c {
        assert_eq!(list(Some(condition), SortBy::Path), "c.md", "{condition}");
    }
    for condition in ["source:https://x.org/?a=2", "dc:type=film", "dc=book"] {
        assert_eq!(list(Some(condition), SortBy::Path), "", "{condition}");
    }
    assert_eq!(list(None, SortBy::Title), "a.md c.md b.md");
    let properties: Vec<(String, String, usize)> = store
        .reads()
        .properties()
        .unwrap()
        .into_iter()
        .map(|item| (item.property, item.kind, item.notes))
        .collect();
    assert!(properties.contains(&("created".to_owned(), "date".to_owned(), 2)));
    assert!(properties.iter().any(|(name, _, notes)| name.eq_ignore_ascii_case("status") && *notes == 2));
}
