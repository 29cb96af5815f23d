//! Tests the API of the web page on the example vault: the shape of each reply, that it is what the command prints, changes
//! with their plans, conflicts, and events.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use sidenote::markdown::word_sketch::WordSketch;

use crate::support::{TestVault, run, stdout};
use crate::web::Page;

/// Describes a value: the keys of objects, the first item of lists, the types of the rest.
fn shape(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "text".to_owned(),
        Value::Array(items) => match items.first() {
            None => "[]".to_owned(),
            Some(first) => format!("[{}]", shape(first)),
        },
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}: {}", shape(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

fn command(vault: &TestVault, args: &[&str]) -> Value {
    let output = vault.run(&[args, &["--json"]].concat());
    serde_json::from_str(&stdout(&output))
        .unwrap_or_else(|error| panic!("{args:?}: {error}: {}", stdout(&output)))
}

/// A vault with some history: memories, an operation and its undo, a duplicate, a file in the trash.
fn lived_in() -> TestVault {
    let vault = TestVault::example();
    vault.write("Twin.md", "The same words in two notes, more than twenty bytes.\n");
    vault.write("Twin 2.md", "The same words in two notes, more than twenty bytes.\n");
    for args in [
        vec!["index"],
        vec!["memory", "pin", "Varnish log"],
        vec!["memory", "vote", "Start here", "up"],
        vec!["set", "Someday", "tier", "archive"],
        vec!["set", "Inbox", "status", "open"],
        vec!["undo"],
        vec!["delete", "Twin 2"],
        vec!["restore", "Twin 2"],
    ] {
        let output = vault.run(&args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    vault
}

#[test]
fn each_address_has_its_shape() {
    let vault = lived_in();
    let page = Page::start(&vault, &[]);
    let mut shapes = String::new();
    for path in [
        "session",
        "search?q=garden&explain=1&limit=1",
        "facets?q=",
        "suggest?q=start&limit=1",
        "why?q=search&name=Start+here",
        "note?name=Start+here",
        "links?name=Start+here",
        "relations?name=Start+here",
        "mentions?name=Start+here",
        "related?name=Start+here&limit=1",
        "history?name=Inbox",
        "git-history?name=Inbox",
        "weight?name=Start+here",
        "graph",
        "graph/around?name=Start+here",
        "graph/matches?q=garden",
        "graph/positions",
        "memory/stats",
        "memory/list?folder=Memories&limit=1",
        "memory/explain?name=Start+here",
        "memory/points",
        "memory/months?months=3",
        "memory/changes?days=7",
        "memory/inactive",
        "memory/inactive/counts",
        "memory/duplicates",
        "trash/matches?q=twin",
        "activity?limit=1",
        "check",
        "status",
        "settings",
        "tags",
        "properties",
    ] {
        shapes.push_str(&format!("{path}\n    {}\n", shape(&page.read(path))));
    }
    let id = page.read("activity?limit=1")["events"][0]["id"].as_str().unwrap().to_owned();
    shapes.push_str(&format!("operations/ID\n    {}\n", shape(&page.read(&format!("operations/{id}")))));
    insta::assert_snapshot!("shapes", shapes);
}

#[test]
fn replies_are_what_the_commands_print() {
    let vault = lived_in();
    let page = Page::start(&vault, &[]);
    let pairs: [(&str, &[&str]); 9] = [
        ("links?name=Start+here", &["links", "Start here"]),
        ("mentions?name=Start+here", &["mentions", "Start here"]),
        ("related?name=Start+here", &["related", "Start here"]),
        ("history?name=Inbox", &["history", "Inbox"]),
        ("memory/stats", &["memory", "stats"]),
        ("memory/explain?name=Start+here", &["memory", "explain", "Start here"]),
        ("tags", &["tags"]),
        ("properties", &["properties"]),
        ("settings", &["config", "show"]),
    ];
    for (path, args) in pairs {
        let mut shown = page.read(path);
        if let Some(fields) = shown.as_object_mut() {
            fields.remove("titles");
        }
        assert_eq!(shown, command(&vault, args), "{path}");
    }
    let (mut found, mut printed) =
        (page.read("search?q=garden&explain=1"), command(&vault, &["search", "garden", "--explain"]));
    for reply in [&mut found, &mut printed] {
        reply["took_ms"] = json!(0);
    }
    assert_eq!(found, printed);
}

#[test]
fn facets_count_what_the_query_meets() {
    let vault = TestVault::new(&[
        ("A/one.md", "---\ntags: [x, y/z]\ntype: fact\ncreated: 2024-05-01\n---\nboat\n"),
        ("A/B/two.md", "---\ntags: [x]\ncreated: 2025-01-01\n---\nboat\n"),
        ("three.md", "---\ncreated: 2025-01-01\n---\ntrain\n"),
    ]);
    let page = Page::start(&vault, &[]);
    let facets = page.read("facets?q=boat");
    assert_eq!(facets["total"], 2);
    assert_eq!(facets["folder"], json!([{"value": "A", "notes": 2}, {"value": "A/B", "notes": 1}]));
    assert_eq!(facets["tag"], json!([{"value": "x", "notes": 2}, {"value": "y/z", "notes": 1}]));
    assert_eq!(facets["type"], json!([{"value": "fact", "notes": 1}]));
    assert_eq!(facets["year"], json!([{"value": "2025", "notes": 1}, {"value": "2024", "notes": 1}]));
    assert_eq!(facets["tier"], json!([{"value": "COLD", "notes": 2}]));
    assert_eq!(page.read("facets?q=")["total"], 3);
    assert_eq!(page.read("facets?q=path:A")["total"], 2);
    let paths = |query: &str| {
        let reply = page.read(&format!("search?{query}"));
        let found = reply["results"].as_array().unwrap().iter();
        found.map(|result| result["path"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    assert_eq!(paths("q=boat&folder=A/B"), BTreeSet::from(["A/B/two.md".to_owned()]));
    assert_eq!(paths("q=boat&type=fact"), BTreeSet::from(["A/one.md".to_owned()]));
    assert_eq!(paths("q=boat&year=2025"), BTreeSet::from(["A/B/two.md".to_owned()]));
    assert_eq!(paths("q=boat&tag=x&tag=y"), BTreeSet::from(["A/one.md".to_owned()]));
    assert_eq!(paths("q=boat&tier=HOT"), BTreeSet::new());
    assert_eq!(paths("q=boat&tier=COLD").len(), 2);
}

#[test]
fn a_tier_shows_no_note_that_is_forgotten() {
    let vault = TestVault::new(&[
        ("One.md", "---\ncreated: 2024-05-01\n---\nboat\n"),
        ("Two.md", "---\ncreated: 2024-05-01\nforgotten: true\n---\nboat\n"),
    ]);
    let page = Page::start(&vault, &[]);
    for query in ["q=boat&tier=COLD", "q=path:md&tier=COLD", "q=&tier=COLD"] {
        assert_eq!(page.read(&format!("facets?{query}"))["total"], 1, "{query}");
    }
    for query in ["q=boat&tier=COLD", "q=path:md&tier=COLD"] {
        let results = page.read(&format!("search?{query}"))["results"].clone();
        assert_eq!(results.as_array().unwrap().len(), 1, "{query}");
        assert_eq!(results[0]["path"], "One.md", "{query}");
    }
    page.stop();
}

#[test]
fn a_notice_names_what_the_page_has_and_no_flag() {
    let vault = TestVault::new(&[
        ("Companies/Acme.md", "---\ntype: company\n---\nAnvils.\n"),
        ("People/Ann.md", "---\ntype: person\nworks_at: \"[[Acme]]\"\n---\nAnn.\n"),
    ]);
    let query = "who works at Acme";
    let printed = command(&vault, &["search", query]);
    let page = Page::start(&vault, &[]);
    let shown = page.read(&format!("search?q={}", query.replace(' ', "+")));
    let note = |reply: &Value| {
        let notes = reply["notes"].as_array().unwrap().iter();
        notes.map(|note| note.as_str().unwrap()).find(|note| note.contains("works_at")).unwrap().to_owned()
    };
    let (command, page) = (note(&printed), note(&shown));
    assert!(command.ends_with("; --no-relations searches for the words"), "{printed}");
    assert!(page.ends_with("; “Words” and “Meaning” above search all notes"), "{shown}");
    assert!(!page.contains("--"), "{page}");
}

#[test]
fn a_mistake_in_a_query_has_its_place() {
    let vault = TestVault::new(&[("A.md", "text")]);
    let page = Page::start(&vault, &[]);
    for path in ["search", "facets", "graph"] {
        // `é😀 ` is 7 bytes and 4 units of UTF-16.
        let reply = page.get(&format!("/api/v1/{path}?q=%C3%A9%F0%9F%98%80%20%29"));
        assert_eq!(reply.status, 400, "{path}");
        let error = &reply.json()["error"];
        assert_eq!(error["kind"], "invalid");
        assert_eq!(error["span"], json!({"start": 7, "end": 8}), "{path}");
        assert_eq!(error["utf16"], json!({"start": 4, "end": 5}), "{path}");
    }
    let reply = page.get("/api/v1/note?name=Nothing");
    assert_eq!((reply.status, reply.json()["error"]["kind"].clone()), (404, json!("not-found")));
    assert_eq!(page.get("/api/v1/note").status, 400);
    assert_eq!(page.get("/api/v1/search?q=a&limit=x").status, 400);
}

#[test]
fn the_graph_has_every_kind_of_edge() {
    let vault = TestVault::new(&[
        (
            "A.md",
            "---\nup: \"[[B]]\"\n---\n[[B]] [[B]] ![[C]] ![[x.png]] [[Missing]] [[missing]]\nworks_at:: [[C]]\n",
        ),
        ("B.md", "[A](A.md)\n"),
        ("C.md", "# Title of C\n"),
        ("x.png", "png"),
        ("alone.png", "png"),
    ]);
    let page = Page::start(&vault, &[]);
    let graph = page.read("graph");
    let list = |name: &str| graph[name].as_array().unwrap().clone();
    assert_eq!(graph["paths"], json!(["A.md", "B.md", "C.md", "x.png"]));
    assert_eq!(graph["titles"], json!(["", "", "Title of C", ""]));
    assert_eq!(graph["kinds"], json!([0, 0, 0, 2]));
    assert_eq!(graph["unresolved"].as_array().unwrap().len(), 1);
    let edges = &graph["edges"];
    let edge = |at: usize| {
        let relation = edges["relation"][at].as_i64().unwrap();
        let named =
            usize::try_from(relation).ok().map(|at| graph["relations"][at].as_str().unwrap().to_owned());
        (
            edges["from"][at].as_u64().unwrap(),
            edges["to"][at].as_u64().unwrap(),
            edges["kind"][at].as_u64().unwrap(),
            named,
        )
    };
    let found: BTreeSet<_> = (0..edges["from"].as_array().unwrap().len()).map(edge).collect();
    for wanted in [
        (0, 1, 0, None),
        (0, 1, 2, None),
        (0, 2, 0, None),
        (0, 2, 1, None),
        (0, 3, 1, None),
        (0, 4, 0, None),
        (1, 0, 0, None),
        (0, 2, 3, Some("works_at".to_owned())),
    ] {
        assert!(found.contains(&wanted), "{wanted:?} in {found:?}");
    }
    assert_eq!(list("out")[0], 3);
    let around = page.read("graph/around?name=B");
    assert_eq!(around["paths"], json!(["B.md", "A.md"]));
    assert_eq!(page.read("graph?q=path:B")["matched"], json!([1]));
    let positions = json!({"ids": graph["ids"], "x": [1, 2.5, -3, 0], "y": [0, 0, 0, 1]});
    let headers = [page.cookie.as_str(), "Content-Type: application/json"];
    let more = json!({"ids": [1], "names": ["Missing"], "x": [1, 2], "y": [3, 4]});
    assert_eq!(page.ask("PUT", "/api/v1/graph/positions", &headers, &more.to_string()).status, 200);
    assert_eq!(page.read("graph/positions")["names"][0], "Missing");
    let stored = page.ask("PUT", "/api/v1/graph/positions", &headers, &positions.to_string());
    assert_eq!(stored.status, 200, "{}", stored.text());
    assert_eq!(page.read("graph/positions")["x"][1], 2.5);
    let uneven = json!({"ids": [1], "x": [], "y": []});
    assert_eq!(page.ask("PUT", "/api/v1/graph/positions", &headers, &uneven.to_string()).status, 400);
    page.stop();
    let again = Page::start(&vault, &[]);
    assert_eq!(again.read("graph/positions")["ids"], graph["ids"]);
}

#[test]
fn a_note_is_rendered_with_the_additions_of_obsidian() {
    let text = "---\ntags: [t]\nup: \"[[Other]]\"\n---\n# One *two*\n\nText ==marked== and [[Other#Part|shown]], [[Nowhere]], #tag/inner.\n\
        %%secret%% $a<b$ [w](https://x.example) ![far](https://x.example/p.png) ^bid\n\n\
        > [!warning]- Mind *this*\n> body\n\n- [x] done\n- [ ] open\n\n![[Other#Part]]\n\n![[pic.png|100x50]]\n\n\
        | a | b |\n|---|--:|\n| 1 | 2 |\n\nFoot[^1].\n\n[^1]: note\n\n```rust\nlet a = 1 < 2;\n```\n\n%%\nhidden\n\nblock\n%%\n\n$$\nx\n\ny\n$$\n";
    let vault = TestVault::new(&[
        ("A.md", text),
        ("Other.md", "# Other\n\nno\n\n## Part\n\npart text\n\n## Next\n\nno\n"),
        ("pic.png", "png"),
    ]);
    let page = Page::start(&vault, &[]);
    let note = page.read("note?name=A");
    let html = note["html"].as_str().unwrap();
    for part in [
        "<h1 id=\"h-one-two\" data-line=\"5\">One <em>two</em></h1>",
        "<mark>marked</mark>",
        "<a class=\"internal\" href=\"/note/Other.md#h-part\" data-path=\"Other.md\">shown</a>",
        "<a class=\"internal unresolved\" data-link=\"Nowhere\">Nowhere</a>",
        "<a class=\"tag\" href=\"/search?q=tag%3A%23tag%2Finner\" data-tag=\"tag/inner\">#tag/inner</a>",
        "<span class=\"math inline\">a&lt;b</span>",
        "<a class=\"external\" href=\"https://x.example\" rel=\"noopener noreferrer\" target=\"_blank\">w</a>",
        "<a class=\"external remote-image\" href=\"https://x.example/p.png\"",
        "id=\"^bid\"",
        "<details class=\"callout\" data-callout=\"warning\"",
        "<summary class=\"callout-title\">Mind <em>this</em></summary>",
        "data-task=\"x\"",
        "<input type=\"checkbox\" disabled=\"\" checked=\"\"> done",
        "<div class=\"embed\" data-path=\"Other.md\">",
        "part text",
        "<img src=\"/api/v1/raw/pic.png\" alt=\"pic.png\" width=\"100\" height=\"50\" loading=\"lazy\">",
        "<td align=\"right\">2</td>",
        "<sup class=\"footnote-ref\"><a href=\"#fn-1\" id=\"fnref-1\">1</a></sup>",
        "<li id=\"fn-1\">",
        "<code class=\"language-rust\">let a = 1 &lt; 2;\n</code>",
        "<span class=\"math display\">x\n\ny</span>",
    ] {
        assert!(html.contains(part), "{part}\nin\n{html}");
    }
    for absent in ["secret", "hidden", "^bid<", "[!warning]", "[x]", "==", "%%", "<p></p>", "[[", ">no<"] {
        assert!(!html.contains(absent), "{absent}\nin\n{html}");
    }
    assert_eq!(note["outline"][0], json!({"level": 1, "text": "One *two*", "line": 5, "id": "h-one-two"}));
    let up = note["properties"].as_array().unwrap().iter().find(|property| property["key"] == "up").unwrap();
    assert_eq!(up["html"], "<a class=\"internal\" href=\"/note/Other.md\" data-path=\"Other.md\">Other</a>");
}

#[test]
fn a_change_is_shown_then_made_then_undone() {
    let vault = TestVault::new(&[("A.md", "text\n")]);
    let page = Page::start(&vault, &[]);
    let plan = page.post("actions/pin", &json!({"name": "A", "dry_run": true})).json();
    assert_eq!(plan["applied"], false);
    assert!(plan["diff"].as_str().unwrap().contains("+pinned: true"), "{plan}");
    assert_eq!(vault.read("A.md"), "text\n");
    let done = page.post("actions/pin", &json!({"name": "A", "expect_hash": plan["expect_hash"]})).json();
    assert_eq!(done["applied"], true, "{done}");
    assert_eq!(vault.read("A.md"), "---\npinned: true\n---\ntext\n");
    let id = done["id"].as_str().unwrap();
    let seen = page.read(&format!("operations/{id}"));
    assert!(seen["diff"].as_str().unwrap().contains("+pinned: true"), "{seen}");
    assert_eq!(seen["undo"]["possible"], true);
    assert_eq!(page.read("activity")["events"][0]["undoable"], true);
    let undo = page.post("actions/undo", &json!({"id": id, "dry_run": true})).json();
    let undone = page.post("actions/undo", &json!({"id": id, "expect_hash": undo["expect_hash"]}));
    assert_eq!(undone.status, 200, "{}", undone.text());
    assert_eq!(vault.read("A.md"), "text\n");
    let events = page.read("activity");
    assert_eq!(events["events"][1]["undone"], events["events"][0]["id"]);
    assert_eq!(events["agents"], json!(["cli"]));
}

#[test]
fn a_note_that_changed_meanwhile_is_a_conflict_with_its_text() {
    let vault = TestVault::new(&[("A.md", "text\n")]);
    let page = Page::start(&vault, &[]);
    let hash = page.read("note?name=A")["hash"].clone();
    let plan = page.post("actions/pin", &json!({"name": "A", "dry_run": true})).json();
    vault.write("A.md", "another text\n");
    let bodies = [
        json!({"name": "A", "expect_hash": plan["expect_hash"]}),
        json!({"name": "A", "hash": hash}),
        json!({"name": "A", "hash": hash, "dry_run": true}),
    ];
    for body in bodies {
        let refused = page.post("actions/pin", &body);
        assert_eq!(refused.status, 409, "{body}: {}", refused.text());
        let error = &refused.json()["error"];
        assert_eq!(error["kind"], "conflict");
        assert_eq!(error["files"][0]["path"], "A.md");
        assert_eq!(error["files"][0]["text"], "another text\n");
    }
    assert_eq!(vault.read("A.md"), "another text\n");
    // What stands in the way of an undo is named.
    let done = page.post("actions/set", &json!({"name": "A", "property": "p", "value": 1})).json();
    let id = done["id"].as_str().unwrap();
    vault.write("A.md", "all of it is new\n");
    let refused = page.post("actions/undo", &json!({"id": id}));
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(refused.json()["error"]["files"][0]["text"], "all of it is new\n");
    let outlook = &page.read(&format!("operations/{id}"))["undo"];
    assert_eq!((&outlook["possible"], &outlook["kind"]), (&json!(false), &json!("conflict")));
    assert_eq!(outlook["files"][0][0], "A.md");
}

#[test]
fn each_action_does_what_its_command_does() {
    let vault = TestVault::new(&[("A.md", "- [ ] do it\n"), ("Old.md", "old\n")]);
    let page = Page::start(&vault, &[]);
    #[track_caller]
    fn done(page: &Page, action: &str, body: Value) {
        let reply = page.post(&format!("actions/{action}"), &body);
        assert_eq!(reply.status, 200, "{action}: {}", reply.text());
        assert_eq!(reply.json()["applied"], true, "{action}: {}", reply.text());
    }
    done(&page, "pin", json!({"name": "A"}));
    done(&page, "unpin", json!({"name": "A"}));
    done(&page, "archive", json!({"name": "A"}));
    assert_eq!(page.read("memory/inactive")["archived"][0]["path"], "A.md");
    done(&page, "restore", json!({"name": "A"}));
    done(&page, "forget", json!({"name": "A"}));
    assert_eq!(page.read("memory/inactive")["forgotten"][0]["path"], "A.md");
    done(&page, "restore", json!({"name": "A"}));
    let line = 1 + vault.read("A.md").lines().position(|line| line.starts_with("- [ ]")).unwrap();
    done(&page, "task", json!({"name": "A", "line": line, "status": "x"}));
    assert!(vault.read("A.md").ends_with("- [x] do it\n"), "{}", vault.read("A.md"));
    done(&page, "set", json!({"name": "A", "property": "status", "value": ["a", 1]}));
    assert!(vault.read("A.md").contains("status:"), "{}", vault.read("A.md"));
    done(&page, "set", json!({"name": "A", "property": "status", "value": null}));
    assert!(!vault.read("A.md").contains("status:"), "{}", vault.read("A.md"));
    done(&page, "forget", json!({"name": "Old", "hard": true}));
    let inactive = page.read("memory/inactive");
    let trashed = &inactive["trash"][0];
    assert_eq!((&trashed["path"], &trashed["was"]), (&json!(".trash/Old.md"), &json!("Old.md")));
    assert_eq!((&trashed["agent"], &trashed["title"]), (&json!("cli"), &json!("Old")));
    assert_eq!(page.read("trash?name=.trash/Old.md")["text"], "old");
    assert_eq!(page.get("/api/v1/trash?name=.trash/../A.md").status, 400);
    assert_eq!(page.get("/api/v1/trash?name=.trash/B.md").status, 404);
    done(&page, "restore-file", json!({"name": ".trash/Old.md"}));
    assert_eq!(vault.read("Old.md"), "old\n");
    let voted = page.post("actions/vote", &json!({"name": "A", "useful": true})).json();
    assert_eq!(voted["usefulness"], 1);
    assert_eq!(page.read("weight?name=A")["events"][0]["kind"], "vote");
}

/// Posts an action that has to be applied, and returns its id.
#[track_caller]
fn applied(page: &Page, action: &str, body: &Value) -> String {
    let reply = page.post(&format!("actions/{action}"), body);
    assert_eq!(reply.status, 200, "{action}: {}", reply.text());
    reply.json()["id"].as_str().unwrap_or_else(|| panic!("{action}: {}", reply.text())).to_owned()
}

#[test]
fn the_timeline_says_what_was_restored_undone_and_can_be_done_again() {
    let vault = TestVault::new(&[("A.md", "a\n"), ("B.md", "b\n")]);
    let page = Page::start(&vault, &[]);
    let deleted = applied(&page, "forget", &json!({"name": "A", "hard": true}));
    let restored = applied(&page, "restore-file", &json!({"name": ".trash/A.md"}));
    let events = page.read("activity")["events"].clone();
    assert_eq!((&events[1]["id"], &events[1]["restored"]), (&json!(deleted), &json!(restored)));
    assert_eq!(events[1]["undoable"], false);
    let seen = page.read(&format!("operations/{deleted}"));
    assert_eq!(seen["event"]["restored"], json!(restored));
    assert_eq!(
        seen["undo"],
        json!({"possible": false, "kind": "exists", "message": "it was restored already"})
    );
    // Without the restoration, the deletion stands again.
    applied(&page, "undo", &json!({"id": restored}));
    assert_eq!(page.read(&format!("operations/{deleted}"))["undo"]["possible"], true);
    let reply = page.read("activity");
    assert_eq!(reply["redo"], json!({"id": restored, "op": "restore", "subject": ".trash/A.md -> A.md"}));
    assert_eq!(reply["events"][0]["of"], reply["redo"]);
    applied(&page, "pin", &json!({"name": "B"}));
    assert!(page.read("activity").get("redo").is_none());
}

#[test]
fn a_brief_timeline_has_the_same_events_and_no_lists() {
    let vault = lived_in();
    let page = Page::start(&vault, &[]);
    for limit in [1, 2, 3, 50] {
        let whole = page.read(&format!("activity?limit={limit}"));
        let brief = page.read(&format!("activity?limit={limit}&brief=1"));
        assert_eq!((&brief["events"], &brief["next"]), (&whole["events"], &whole["next"]), "{limit}");
        for list in ["sessions", "agents", "ops"] {
            assert_eq!(brief[list], json!([]), "{limit}: {list}");
        }
    }
    assert!(
        page.read("activity?limit=2")["ops"].as_array().unwrap().len() > 2,
        "the lists are of all events"
    );
}

#[test]
fn the_lists_of_the_timeline_are_those_of_the_period() {
    let vault = TestVault::new(&[("A.md", "a\n")]);
    for (now, value) in [("2026-11-01T10:00:00Z", "1"), ("2026-11-02T10:00:00Z", "2")] {
        run(&vault, now, &["set", "A", "p", value]);
    }
    run(&vault, "2026-11-03T10:00:00Z", &["append", "A", "more"]);
    let page = Page::start(&vault, &[]);
    let first = page.read("activity?limit=1");
    assert_eq!(first["ops"], json!(["append", "set"]), "all of the period, not those of the page");
    assert_eq!(page.read("activity?limit=1&op=append")["ops"], json!(["append", "set"]));
    let day = page.read("activity?from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z");
    assert_eq!(day["ops"], json!(["set"]));
}

#[test]
fn a_broken_link_leads_to_a_chosen_note_or_becomes_text() {
    let vault = TestVault::new(&[
        ("A.md", "see [[Missing#Part|there]], [[Missing]] and ![[gone.png]]\n\n[x](Notes/absent.md)\n"),
        ("B/Target.md", "# Part\n"),
    ]);
    let page = Page::start(&vault, &[]);
    let plan = json!({"name": "A", "link": "Missing#Part", "to": "B/Target.md", "dry_run": true});
    let plan = page.post("actions/link-target", &plan).json();
    assert!(plan["diff"].as_str().unwrap().contains("[[Target#Part|there]]"), "{plan}");
    applied(
        &page,
        "link-target",
        &json!({"name": "A", "link": "Missing#Part", "to": "B/Target.md", "expect_hash": plan["expect_hash"]}),
    );
    applied(&page, "link-target", &json!({"name": "A", "link": "Missing", "line": 1, "to": "B/Target.md"}));
    applied(&page, "link-text", &json!({"name": "A", "link": "gone.png"}));
    applied(&page, "link-target", &json!({"name": "A", "link": "Notes/absent.md", "to": "B/Target.md"}));
    let text = vault.read("A.md");
    assert!(text.starts_with("see [[Target#Part|there]], [[Target]] and gone.png\n"), "{text}");
    assert!(text.contains("[x](") && text.contains("Target.md)"), "{text}");
    assert_eq!(page.read("links?name=A")["unresolved"], json!([]));
    let gone = page.post("actions/link-text", &json!({"name": "A", "link": "Missing"}));
    assert_eq!(gone.status, 404, "{}", gone.text());
    applied(&page, "create", &json!({"name": "Plans/New note"}));
    assert!(vault.root().join("Plans/New note.md").is_file());
}

#[test]
fn a_filter_of_the_graph_is_a_condition() {
    let vault = TestVault::new(&[
        ("A.md", "#sensor on the bridge\n"),
        ("B.md", "a sensor without the tag\n"),
        ("C.md", "---\ntags: [sensor/radar]\ntype: fact\n---\nbridge\n"),
    ]);
    let page = Page::start(&vault, &[]);
    let matched = |query: &str| {
        let graph = page.read(&format!("graph?q={query}"));
        let nodes = graph["matched"].as_array().unwrap().iter();
        let paths: Vec<String> = nodes
            .map(|node| graph["paths"][node.as_u64().unwrap() as usize].as_str().unwrap().to_owned())
            .collect();
        let ids: Vec<&Value> = graph["matched"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| &graph["ids"][node.as_u64().unwrap() as usize])
            .collect();
        let matches = page.read(&format!("graph/matches?q={query}"));
        assert_eq!(matches["ids"].as_array().unwrap().iter().collect::<Vec<_>>(), ids, "{query}");
        paths
    };
    assert_eq!(matched("%23sensor"), ["A.md", "C.md"]);
    assert_eq!(matched("sensor"), ["A.md", "B.md", "C.md"]);
    assert_eq!(matched("%23sensor+bridge"), ["A.md", "C.md"]);
    assert_eq!(matched("-%23sensor"), ["B.md"]);
    assert_eq!(matched("%23sensor+type:fact"), ["C.md"]);
    assert_eq!(page.get("/api/v1/graph/matches?q=+").status, 400);
}

#[test]
fn an_inactive_note_names_the_operation_that_made_it_so() {
    let vault = TestVault::new(&[
        ("Archived.md", "a\n"),
        ("By hand.md", "---\nforgotten: true\n---\nb\n"),
        ("Changed.md", "c\n"),
        ("Folder/In a folder.md", "f\n"),
        ("Moved.md", "d\n"),
        ("Twice.md", "e\n"),
    ]);
    let page = Page::start(&vault, &[]);
    let forget = |name: &str| applied(&page, "forget", &json!({"name": name}));
    let archived = applied(&page, "archive", &json!({"name": "Archived"}));
    let (moved, changed, in_folder) = (forget("Moved"), forget("Changed"), forget("In a folder"));
    forget("Twice");
    applied(&page, "restore", &json!({"name": "Twice"}));
    let twice = forget("Twice");
    command(&vault, &["rename", "Moved", "Elsewhere"]);
    command(&vault, &["move", "Folder", "Another folder"]);
    applied(&page, "set", &json!({"name": "Changed", "property": "status", "value": "open"}));
    applied(&page, "set", &json!({"name": "By hand", "property": "status", "value": "open"}));
    let inactive = page.read("memory/inactive");
    let cases = [
        ("archived", "Archived.md", Some(archived)),
        ("forgotten", "Another folder/In a folder.md", Some(in_folder)),
        ("forgotten", "By hand.md", None),
        ("forgotten", "Changed.md", Some(changed)),
        ("forgotten", "Elsewhere.md", Some(moved)),
        ("forgotten", "Twice.md", Some(twice)),
    ];
    let count = |list: &str| inactive[list].as_array().unwrap().len();
    assert_eq!(count("archived") + count("forgotten"), cases.len());
    for (list, path, operation) in cases {
        let mut notes = inactive[list].as_array().unwrap().iter();
        let note = notes.find(|note| note["path"] == path).unwrap_or_else(|| panic!("{path}: {inactive}"));
        assert_eq!(note["since"]["operation"].as_str(), operation.as_deref(), "{path}: {note}");
        let agent = operation.map(|_| "cli");
        assert_eq!(note["since"]["agent"].as_str(), agent, "{path}: {note}");
        // Where no operation is known, the time of the file says when it was at the latest.
        assert_eq!(note["latest"].is_string(), agent.is_none(), "{path}: {note}");
    }
    let counts = json!({"archived": 1, "forgotten": 5, "trash": 0});
    assert_eq!(page.read("memory/inactive/counts"), counts);
}

#[test]
fn a_note_that_was_archived_by_hand_says_when_at_the_latest() {
    let text = "---\ntier: archive\nupdated: 2001-01-01\n---\na\n";
    let vault = TestVault::new(&[("By hand.md", text)]);
    let file = fs::File::options().append(true).open(vault.root().join("By hand.md")).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
    let page = Page::start(&vault, &[]);
    let note = &page.read("memory/inactive")["archived"][0];
    assert_eq!(
        (&note["updated"], &note["latest"]),
        (&json!("2001-01-01T00:00:00Z"), &json!("2023-11-14T22:13:20Z"))
    );
}

#[test]
fn counts_of_the_trash_follow_every_change_of_it() {
    let vault = TestVault::new(&[("A.md", "a\n"), ("Boats/B.md", "b\n"), ("C.md", "c\n")]);
    let page = Page::start(&vault, &[]);
    let trash = || page.read("memory/inactive/counts")["trash"].as_u64().unwrap();
    let matched = || page.read("trash/matches?q=-zebra")["total"].as_u64().unwrap();
    let listed = || page.read("memory/inactive")["trash"].as_array().unwrap().len() as u64;
    let check = |expected: u64, when: &str| {
        assert_eq!([trash(), matched(), listed()], [expected; 3], "{when}");
    };
    check(0, "without a trash");
    applied(&page, "forget", &json!({"name": "A", "hard": true}));
    check(1, "after a deletion by the page");
    command(&vault, &["delete", "Boats/B"]);
    check(2, "after one by another process");
    vault.write(".trash/Foreign.md", "by another program\n");
    check(2, "of what another program put there nothing is known");
    command(&vault, &["restore", "A"]);
    check(1, "after a restoration by another process");
    fs::remove_file(vault.root().join(".trash/Boats/B.md")).unwrap();
    check(0, "after another program removed a file");
    command(&vault, &["delete", "C"]);
    check(1, "after a deletion beside a foreign file");
}

#[test]
fn deleted_notes_are_matched_by_a_query() {
    let vault = TestVault::new(&[
        ("Boats/Hull.md", "---\nstatus: done\n---\n# The old hull\n\nTarred in spring. #boat\n"),
        ("Oak.md", "about oak\n"),
        ("Present.md", "tarred too\n"),
    ]);
    let page = Page::start(&vault, &[]);
    for name in ["Hull", "Oak"] {
        applied(&page, "forget", &json!({"name": name, "hard": true}));
    }
    let matched = |query: &str| {
        let found = page.read(&format!("trash/matches?q={query}"));
        let files = found["files"].as_array().unwrap().clone();
        assert_eq!(found["total"], files.len());
        files.iter().map(|file| file["was"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(matched("tarred"), ["Boats/Hull.md"]);
    assert_eq!(matched("tarred+oak"), [""; 0]);
    assert_eq!(matched("path:Boats"), ["Boats/Hull.md"]);
    assert_eq!(matched("tag:%23boat+[status:done]"), ["Boats/Hull.md"]);
    assert_eq!(matched("-tarred"), ["Oak.md"]);
    let limited = page.read("trash/matches?q=o&limit=1");
    assert_eq!((&limited["total"], limited["files"].as_array().unwrap().len()), (&json!(2), 1));
    assert_eq!(page.get("/api/v1/trash/matches?q=(").status, 400);
}

#[test]
fn the_history_of_a_deleted_note_is_found_by_its_title() {
    let vault = TestVault::new(&[("Boats/Hull.md", "# The old hull\n"), ("Keel.md", "keel\n")]);
    let page = Page::start(&vault, &[]);
    applied(&page, "set", &json!({"name": "Hull", "property": "status", "value": "done"}));
    applied(&page, "forget", &json!({"name": "Hull", "hard": true}));
    for name in ["Boats/Hull.md", "Hull", "The old hull", "the OLD hull"] {
        let of = |events: &Value| {
            let events = events.as_array().unwrap_or_else(|| panic!("{name}: {events}"));
            events.iter().map(|event| event["op"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let encoded = name.replace(' ', "+");
        assert_eq!(of(&page.read(&format!("history?name={encoded}"))), ["delete", "set"], "{name}");
        assert_eq!(
            of(&page.read(&format!("activity?note={encoded}"))["events"]),
            ["delete", "set"],
            "{name}"
        );
        assert_eq!(of(&command(&vault, &["history", name])), ["delete", "set"], "{name}");
    }
    std::fs::remove_file(vault.root().join(".trash/Boats/Hull.md")).unwrap();
    assert_eq!(page.read("history?name=Hull").as_array().unwrap().len(), 2);
    assert_eq!(page.get("/api/v1/history?name=The+old+hull").status, 404);
}

#[test]
fn points_beyond_the_limit_are_counted() {
    let vault = TestVault::new(&[
        ("New.md", "---\ncreated: 2026-03-01\n---\n"),
        ("Old.md", "---\ncreated: 2020-01-01\n---\n"),
        ("Used.md", "---\ncreated: 2020-01-01\n---\n"),
    ]);
    let page = Page::start(&vault, &[]);
    page.post("actions/vote", &json!({"name": "Used", "useful": true}));
    let given = |query: &str| {
        let points = page.read(&format!("memory/points{query}"));
        (points["total"].clone(), points["paths"].clone(), points["tiers"]["of"].as_array().unwrap().len())
    };
    assert_eq!(given(""), (json!(3), json!(["New.md", "Old.md", "Used.md"]), 3));
    assert_eq!(given("?limit=2"), (json!(3), json!(["New.md", "Used.md"]), 2));
}

#[test]
fn the_value_that_decides_a_tier_is_named() {
    let vault = TestVault::new(&[
        ("Archived.md", "---\ncreated: 2020-01-01\ntier: archive\n---\n"),
        ("Few days.md", "---\ncreated: 2020-01-01\n---\n"),
        ("Few uses.md", "---\ncreated: 2020-01-01\n---\n"),
        ("Pinned.md", "---\ncreated: 2020-01-01\npinned: true\n---\n"),
    ]);
    let page = Page::start(&vault, &[]);
    for (name, votes) in [("Few days", 3), ("Few uses", 1)] {
        for _ in 0..votes {
            page.post("actions/vote", &json!({"name": name, "useful": true}));
        }
    }
    let cases = [
        ("Archived", "ARCHIVE", "archived", "its property `tier` is archive"),
        ("Few days", "COLD", "few-days", "it was used on too few days; WARM takes 3 uses on 2 days"),
        ("Few uses", "COLD", "few-uses", "it has too few uses; WARM takes 3 uses on 2 days"),
        ("Pinned", "WARM", "pinned", "it is pinned"),
    ];
    for (name, tier, reason, said) in cases {
        let weight = page.read(&format!("weight?name={}", name.replace(' ', "+")));
        assert_eq!((&weight["tier"], &weight["tier_reason"]), (&json!(tier), &json!(reason)), "{name}");
        let explained = stdout(&vault.run(&["memory", "explain", name]));
        assert!(explained.contains(&format!("tier: {tier}, because {said}")), "{explained}");
    }
}

#[test]
fn near_duplicates_are_those_of_the_check() {
    let text: String = (0..60).map(|word| format!("word{word} ")).collect();
    let ignored = format!("<!-- sidenote-ignore-file near-duplicate -->\n\n{text}more or less\n");
    let vault = TestVault::new(&[
        ("A.md", &text),
        ("B.md", &format!("{text}and more\n")),
        ("C.md", "else\n"),
        ("Ignored.md", &ignored),
    ]);
    let page = Page::start(&vault, &[]);
    let found = page.read("memory/duplicates");
    assert_eq!((&found["by_text"], &found["pairs"][0]["by"]), (&json!(1), &json!("text")));
    let checked = page.read("check");
    assert_eq!(checked["counts"]["near-duplicate"], 1);
    let percent = (found["pairs"][0]["similarity"].as_f64().unwrap() * 100.0).round();
    let message = format!("has about the same text as A.md ({percent} % of its word sequences)");
    let problems = checked["problems"].as_array().unwrap();
    assert!(problems.iter().any(|problem| problem["message"] == message.as_str()), "{message}: {checked}");
}

#[test]
fn short_notes_with_the_same_text_differ_in_line_ends_at_most() {
    let text = "Quince trees flower\nin late April here.";
    let vault = TestVault::new(&[
        ("One.md", &format!("{text}\n")),
        ("Two.md", text),
        ("Three.md", &format!("{}\r\n\r\n", text.replace('\n', "\r\n"))),
        ("Other.md", &format!("{text}!\n")),
        ("Few.md", "Quince.\n"),
        ("Few 2.md", "Quince."),
    ]);
    let page = Page::start(&vault, &[]);
    let found = page.read("memory/duplicates");
    let pairs = found["pairs"].as_array().unwrap().iter();
    let named = pairs.filter(|pair| pair["by"] == "content").map(|pair| {
        let mut both = [pair["a"]["path"].as_str().unwrap(), pair["b"]["path"].as_str().unwrap()];
        both.sort_unstable();
        both.join(" ")
    });
    let named: BTreeSet<String> = named.collect();
    assert_eq!(named.len(), 2, "three notes are two pairs: {found}");
    let all: BTreeSet<&str> = named.iter().flat_map(|pair| pair.split(' ')).collect();
    assert_eq!(all, BTreeSet::from(["One.md", "Two.md", "Three.md"]), "{found}");
    let other = |pair: &&Value| pair["by"] != "content" && !pair.to_string().contains("Other.md");
    assert_eq!(found["pairs"].as_array().unwrap().iter().find(other), None, "no pair is named twice");
}

#[test]
fn a_share_of_all_word_sequences_is_that_of_the_same_words() {
    let words: Vec<String> = (0..400).map(|word| format!("word{word}")).collect();
    let changed = |at: usize| {
        let mut words = words.clone();
        words[at] = "else".to_owned();
        words.join(" ")
    };
    let text = words.join(" ");
    // The sample of at least one of them misses the word that differs.
    for at in [40, 80, 120, 160, 200, 240, 280, 320] {
        let (one, other) = (WordSketch::of_body(&text), WordSketch::of_body(&changed(at)));
        assert!((80..100).contains(&one.percent(&other)), "{at}: {}", one.percent(&other));
    }
    assert!([40, 80, 120, 160, 200, 240, 280, 320].iter().any(|at| {
        let (one, other) = (WordSketch::of_body(&text), WordSketch::of_body(&changed(*at)));
        one.share(&other) > 0.999
    }));
    let twin = WordSketch::of_body(&text.to_uppercase().replace(' ', ", "));
    assert_eq!(WordSketch::of_body(&text).percent(&twin), 100, "the words are the same");
}

#[test]
fn fixes_are_made_as_one_operation() {
    let vault = TestVault::new(&[
        ("A.md", "see [[target]] and [[TARGET]]\n\n[x](Target.md#absent)\n"),
        ("Target.md", "# Here\n"),
    ]);
    let page = Page::start(&vault, &[]);
    let checked = page.read("check");
    let fixable = checked["fixable"].as_u64().unwrap();
    let problems = checked["problems"].as_array().unwrap();
    let with_fix: Vec<&Value> = problems.iter().filter(|problem| problem.get("fixes").is_some()).collect();
    assert_eq!(fixable, with_fix.len() as u64, "{checked}");
    for problem in problems {
        let code = problem["code"].as_str().unwrap();
        assert!(checked["codes"][code].is_string(), "{code}");
    }
    let Some(first) = with_fix.first() else {
        let refused = page.post("actions/fix", &json!({}));
        assert_eq!(refused.status, 404, "{}", refused.text());
        return;
    };
    let body = json!({"fingerprints": [first["fingerprint"]], "dry_run": true});
    let plan = page.post("actions/fix", &body).json();
    assert!(!plan["diff"].as_str().unwrap().is_empty(), "{plan}");
    let body = json!({"fingerprints": [first["fingerprint"]], "expect_hash": plan["expect_hash"]});
    let done = page.post("actions/fix", &body).json();
    assert_eq!(done["applied"], true, "{done}");
    assert!(page.read("check")["fixable"].as_u64().unwrap() < fixable);
}

#[test]
fn weights_and_tiers_agree_with_the_memory_commands() {
    let vault = TestVault::new(&[
        ("New.md", "---\ncreated: 2026-11-20\nimportance: 8\n---\nnew\n"),
        ("Old.md", "---\ncreated: 2026-01-20\nimportance: 8\n---\nold\n"),
    ]);
    let page = Page::start(&vault, &[]);
    let explained = command(&vault, &["memory", "explain", "Old"]);
    let weight = page.read("weight?name=Old");
    assert_eq!(weight["importance"], explained["importance"]);
    assert_eq!(weight["points"].as_array().unwrap().last().unwrap()[1], explained["importance"]);
    assert_eq!(weight["points"][0][1], 8.0);
    let ahead: Vec<f64> =
        weight["ahead"].as_array().unwrap().iter().map(|point| point[1].as_f64().unwrap()).collect();
    assert!(ahead.is_sorted_by(|a, b| a >= b), "{ahead:?}");
    let changes = page.read("memory/changes?days=7");
    assert_eq!(changes["changes"][0]["path"], "New.md");
    assert_eq!(
        (&changes["changes"][0]["from"], &changes["changes"][0]["to"]),
        (&json!("HOT"), &json!("COLD"))
    );
    let months = page.read("memory/months?months=2");
    assert_eq!(months["months"], json!(["2026-10", "2026-11"]));
    assert_eq!((&months["HOT"], &months["COLD"]), (&json!([0, 1]), &json!([1, 1])));
    let points = page.read("memory/points");
    assert_eq!(points["tiers"]["of"].as_array().unwrap().len(), 2);
}

#[test]
fn an_edit_on_disk_sends_an_event() {
    let vault = TestVault::new(&[("A.md", "text\n")]);
    let page = Page::start(&vault, &[]);
    let mut stream = page.connect();
    let (host, cookie) = (&page.address, &page.cookie);
    write!(
        stream,
        "GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\nAccept: text/event-stream\r\n\r\n"
    )
    .unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut next = |name: &str| -> Value {
        let wanted = format!("event: {name}");
        assert!(lines.by_ref().any(|line| line == wanted), "the stream ended before {name}");
        let data = lines.by_ref().find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).unwrap();
        serde_json::from_str(&data).unwrap()
    };
    let hello = next("hello");
    assert!(hello["instance"].is_string());
    // The first scan may be an event of its own.
    page.read("search?q=text");
    vault.write("New note.md", "new\n");
    let event = loop {
        let event = next("index");
        if event["paths"] == json!(["New note.md"]) {
            break event;
        }
    };
    assert!(event["generation"].as_i64() > hello["generation"].as_i64());
    page.stop();
    assert!(lines.all(|line| !line.starts_with("event: index")), "the stream ends with the server");
}
