//! Tests relations between notes: how notes state them, and how they are listed, searched by and asked for.

use insta::assert_snapshot;
use proptest::prelude::{Strategy, prop_assert, prop_oneof, proptest};
use serde_json::json;
use sidenote::config::Config;
use sidenote::markdown::note::Note;
use sidenote::markdown::relation::{RelationRules, relation_key, relations};
use sidenote::store::{RelationsRequest, SearchRequest, Store};

use crate::mcp_client::Client;
use crate::support::{TestVault, stderr};

fn rules() -> RelationRules {
    let config = Config::load(std::path::Path::new("/nowhere"), &[]).unwrap();
    RelationRules::new(&config.relations, true)
}

/// Lists the relations of a note with the title `Jane Doe`, as `subject type object`. The note is `.`; an inferred relation
/// has a `~`.
fn stated(text: &str) -> String {
    let note = Note::parse(text);
    let name = |at: usize| note.links[at].path.clone();
    let found = relations(text, &note, &["Jane Doe"], &rules());
    let lines = found.iter().map(|one| {
        let subject = one.subject.map_or(".".to_owned(), name);
        let sign = if one.is_inferred { "~" } else { "" };
        format!("{subject} {sign}{} {}", one.kind, name(one.object))
    });
    lines.collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(stated(text), expected, "of {text:?}");
}

/// Properties, fields, lists, labels and headings state relations.
const STATED: &[(&str, &str)] = &[
    ("---\ncompany: \"[[Acme]]\"\n---\n", ". company Acme"),
    ("---\nreports to: [\"[[Tom]]\", \"[[Ann]]\"]\n---\n", ". reports_to Tom; . reports_to Ann"),
    ("---\nteam:\n  lead: \"[[Tom]]\"\naliases: [\"[[x]]\"]\n---\n", ". lead Tom"),
    ("Employer:: [[Acme]]\n", ". employer Acme"),
    ("- **Works at**:: [[Acme|the firm]]\n", ". works_at Acme"),
    ("Since 2019 [employer:: [[Acme]]], she (boss:: [[Tom]]) said.\n", ". employer Acme; . boss Tom"),
    ("- [[Tom]] [employer:: [[Acme]]]\n", "Tom employer Acme"),
    ("`a::b` [[Acme]] and std::vec [[Beta]]\n", ""),
    ("\\[**Type::Member** is gone, see [[Acme]]\\]\n", ""),
    (
        "## Relations\n- works_at [[Acme]]\n- likes [[Tea]] (green)\n- [[Tom]]\n",
        ". works_at Acme; . likes Tea; . relates_to Tom",
    ),
    (
        "- part_of [[Acme]]\n- invested in [[Beta]]\n- buy milk for [[Tom]]\n",
        ". part_of Acme; . invested_in Beta",
    ),
    ("- [decision] We use [[Beta]] now #tech\n- [x] call [[Tom]]\n", ". decision Beta"),
    (
        "## Attendees\n- [[Tom]] (by phone)\n- [[Ann]]\n\n[[Eve]] came late.\n",
        ". attendees Tom; . attendees Ann",
    ),
    ("## Notes\n- [[Tom]]\n", ""),
    ("## Dependencies\n\nSee [the list][list].\n\n[list]: list.md\n", ""),
    ("**Attendees:** [[Tom]], [[Ann]] and [[Eve]]\n", ". attendees Tom; . attendees Ann; . attendees Eve"),
    ("Remember: [[Tom]], [[Ann]]\n", ""),
    (
        "| Employer | [[Acme]] |\n| --- | --- |\n| Boss | [[Tom]], [[Ann]] |\n",
        ". employer Acme; . boss Tom; . boss Ann",
    ),
    ("| Boss | [[Tom\\|T]], [[Ann\\|A]] | |\n| --- | --- | --- |\n", ". boss Tom; . boss Ann"),
    ("| Colour | [[Red]] |\n| --- | --- |\n", ""),
    ("| Job | [[Print]] | [[Copy]] |\n| --- | --- | --- |\n", ""),
    ("| Job | [[Print]] | 12 |\n| --- | --- | --- |\n", ""),
    ("## 1:1s\n- [[Tom]]\n", ". 1_1s Tom"),
    (
        "---\ninvestors: [\"[[Fund]]\"]\ncompany: \"[[Acme]]\"\n---\n",
        ". investors Fund; . company Acme; Fund invested_in Acme",
    ),
];

/// Sentences state relations by the words around links.
const INFERRED: &[(&str, &str)] = &[
    ("[[Tom]] works at [[Acme]].", "Tom ~works_at Acme"),
    ("[[Tom]] and [[Ann]] founded [[Acme]].", "Tom ~founded Acme; Ann ~founded Acme"),
    ("[[Tom]] founded [[Acme]] in 2016 with [[Ann]].", "Tom ~founded Acme"),
    ("[[Acme]] was founded by [[Tom]] and [[Ann]].", "Tom ~founded Acme; Ann ~founded Acme"),
    ("[[Acme]], founded by [[Tom]], makes pumps.", "Tom ~founded Acme"),
    ("She works at [[Acme]] as CTO.", ". ~works_at Acme"),
    ("Jane works at [[Acme]].", ". ~works_at Acme"),
    ("CTO at [[Acme]] since May.", ". ~works_at Acme"),
    // What "joined" means depends on the kind of the object, which one text does not tell.
    ("She joined [[Acme]].", ". ~attended Acme; . ~works_at Acme"),
    ("Jane is currently managing director at [[Acme]].", ". ~works_at Acme"),
    ("[[Acme]] is part of [[Beta]].", "Beta ~owns Acme; Acme ~part_of Beta"),
    ("[[Tom]], who works at [[Acme]], called.", "Tom ~works_at Acme"),
    ("Called by [[Tom]] (head of sales at [[Acme]]).", "Tom ~works_at Acme"),
    ("[[Tom]] is an early investor in [[Acme]].", "Tom ~invested_in Acme"),
    (
        "[[Tom]] invested 2 million euros in [[Acme]] and [[Beta]].",
        "Tom ~invested_in Acme; Tom ~invested_in Beta",
    ),
    ("I met with [[Tom]], [[Ann]] and [[Eve]].", ". ~met_with Tom; . ~met_with Ann; . ~met_with Eve"),
    ("[[nom]] depends on the [[serde]] crate.", "nom ~depends_on serde"),
    ("Founded by [[Tom]].", ". ~founded_by Tom"),
    ("[[Tom]] and [[Ann]] work here.", ". ~employs Tom; . ~employs Ann"),
    ("[[Tom]] reports to her.", ". ~manages Tom"),
    ("Staff engineer at [[Acme]].", ". ~works_at Acme"),
    ("Met an engineer at [[Acme]].", ""),
    ("---\ntype: meeting\n---\n[[Tom]] and [[Ann]] attended.", ". ~attendees Tom; . ~attendees Ann"),
    ("---\ntype: meeting\n---\n[[Tom]] was there.", ". ~attendees Tom"),
    (
        "---\ncategories: [\"[[Kinds/Meetings|all]]\"]\n---\n[[Tom]] was there.",
        ". categories Kinds/Meetings; . ~attendees Tom",
    ),
    // Each clause has its own subject.
    (
        "[[a]] replaces [[b]], [[c]] replaces [[d]], and [[e]] replaces [[f]].",
        "a ~supersedes b; c ~supersedes d; e ~supersedes f",
    ),
    ("[[Tom]] founded [[Acme]], and [[Ann]] was born in Oslo.", "Tom ~founded Acme"),
    (
        "[[Tom]] founded [[Acme]] and [[Beta]], and [[Ann]] owns [[Gamma]].",
        "Tom ~founded Acme; Tom ~founded Beta; Ann ~owns Gamma",
    ),
    (
        "---\ncategories: [\"[[People]]\"]\n---\nShe works at [[Acme]].",
        ". categories People; . ~works_at Acme",
    ),
    ("[[Tom]] attended.", ""),
    ("- [ ] [[Tom]] joined [[Acme]]", ""),
    // What follows in the item of an open task is about neither the note nor anybody before the task.
    ("[[Ann]] eats cake.\n\n- [ ] Ask [[Tom]] soon.\n  She works at [[Acme]].", ""),
    ("[[Ann]] lives in Rome.\n\n## Cake\n\n- [ ] Ask Tom.\n  She works at [[Acme]].", ""),
    ("- [x] [[Tom]] joined [[Acme]]", "Tom ~attended Acme; Tom ~works_at Acme"),
    ("[[Tom]] no longer works at [[Acme]].", "Tom ~worked_at Acme"),
    // What is not said of a link or of the note is left out.
    ("Her brother works at [[Acme]].", ""),
    ("[[Tom]]'s brother works at [[Acme]].", ""),
    ("[[Tom]] works at [[Acme]]'s competitor.", ""),
    ("The CEO of [[Beta]] founded [[Acme]].", ""),
    ("[[Tom]] and Eve spoke. She works at [[Acme]].", ""),
    ("Last week [[Tom]] and [[Ann]] spoke. She works at [[Acme]].", ""),
    ("I joined [[Acme]].", ""),
    (
        "| Part | Use |\n| --- | --- |\n| Pump | Used by [[Acme]]. |\n| Valve | [[Tom]] works at [[Beta]]. |\n\nUsed by [[Beta]].\n",
        "Tom ~works_at Beta; . ~required_by Beta",
    ),
    // What is denied, asked or supposed is left out.
    ("[[nom]] does not depend on [[serde]].", ""),
    ("[[Tom]] never worked at [[Acme]].", ""),
    ("Does [[Tom]] work at [[Acme]]?", ""),
    ("If [[Tom]] joined [[Acme]], we would know.", ""),
    ("Someone asked whether [[nom]] depends on [[serde]].", ""),
    ("[[Tom]] considered investing in [[Acme]].", ""),
    ("[[Tom]] may have founded [[Acme]].", ""),
    ("[[Tom]] plans to invest in [[Acme]].", ""),
    ("[[Tom]] was director of [[Acme]].", ""),
    ("[[Tom]] works at `x` [[Acme]].", ""),
];

#[test]
fn properties_fields_and_lists_state_relations() {
    assert_eq!(STATED.len(), 24);
    STATED.iter().for_each(|(text, expected)| check(text, expected));
}

#[test]
fn sentences_state_relations() {
    assert_eq!(INFERRED.len(), 53);
    INFERRED.iter().for_each(|(text, expected)| check(text, expected));
}

/// "This constant" in a list of constants is one of them.
#[test]
fn a_text_is_not_one_of_the_things_that_it_lists() {
    let of = |title: &str| {
        let text = "This constant is used by [[Acme]].";
        relations(text, &Note::parse(text), &[title], &rules()).len()
    };
    assert_eq!((of("Print constant"), of("Print constants")), (1, 0));
}

#[test]
fn names_of_relations_are_compared_in_one_form() {
    let cases = [
        ("Works at", "works_at"),
        ("works-at", "works_at"),
        ("worksAt", "works_at"),
        ("  é! ", "é"),
        ("--", ""),
    ];
    for (name, key) in cases {
        assert_eq!(relation_key(name), key, "of {name:?}");
    }
}

fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-zé ,.;:?!()'\\[\\]-]{0,12}",
        proptest::sample::select(vec![
            "[[Tom]]",
            "[x](y.md)",
            " works at ",
            " founded by ",
            " and ",
            "\n- ",
            "\n## Team\n",
            "a:: ",
            "[b:: ",
            "(c:: ",
            "\n\n",
            " invested 2 in ",
            "**",
            "`",
            "’s ",
            "]",
            ")",
            "investors: ",
        ])
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    /// Whatever a note says, the ends of its relations are its links, and their evidence is a part of its text.
    #[test]
    fn relations_are_within_their_note(text in texts()) {
        let note = Note::parse(&text);
        for one in relations(&text, &note, &["Tom Ray"], &rules()) {
            prop_assert!(one.object < note.links.len());
            prop_assert!(one.subject.is_none_or(|subject| subject < note.links.len() && subject != one.object));
            prop_assert!(text.get(one.evidence.start..one.evidence.end).is_some());
            prop_assert!(!one.kind.is_empty() && one.line >= 1);
        }
    }
}

fn vault() -> TestVault {
    TestVault::new(&[
        (
            "People/Jane Doe.md",
            "---\ntype: person\nemployer: \"[[Acme]]\"\n---\nJane founded [[Beta]] in 2012.\n",
        ),
        (
            "People/Tom Ray.md",
            "---\ntype: person\n---\nTom used to work at [[Acme]]. He is an investor in [[Beta]].\n",
        ),
        ("People/Ann Lee.md", "---\ntype: person\n---\nLikes the pumps of [[Acme]].\n"),
        ("Companies/Acme.md", "---\ntype: company\n---\n# Acme\n\n## Staff\n- [[Eve Sun]]\n"),
        (
            "Companies/Beta.md",
            "---\ntype: company\ninvestors: [\"[[Tom Ray]]\"]\n---\nBeta depends on its founders.\n",
        ),
        ("People/Eve Sun.md", "---\ntype: person\n---\nOut of office.\n"),
        (
            "Meetings/Kickoff.md",
            "---\ntype: meeting\nattendees: [\"[[Jane Doe]]\", \"[[Tom Ray]]\"]\ncompany: \"[[Acme]]\"\n---\nNotes.\n",
        ),
        ("Deals/Round.md", "---\ntype: deal\ncompany: \"[[Acme]]\"\n---\nTerms for [[Acme]].\n"),
    ])
}

fn shown(store: &Store, note: &str, kind: Option<&str>, depth: usize) -> String {
    let kind = kind.map(str::to_owned);
    let request = RelationsRequest { note: note.to_owned(), kind, depth: Some(depth) };
    let reply = store.reads().relations(&request).unwrap();
    let line = |item: &sidenote::store::RelationItem| {
        let sign = if item.inferred { "~" } else { "" };
        format!(
            "{} {sign}{} {} | {}:{} {}",
            item.from, item.kind, item.to, item.stated_in, item.line, item.evidence
        )
    };
    reply.relations.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn relations_of_a_note_have_one_name_whichever_end_states_them() {
    let vault = vault();
    assert_snapshot!(shown(&vault.store(), "Acme", None, 1), @r"
    Deals/Round.md company Companies/Acme.md | Deals/Round.md:3 company: [[Acme]]
    Meetings/Kickoff.md company Companies/Acme.md | Meetings/Kickoff.md:4 company: [[Acme]]
    People/Tom Ray.md ~worked_at Companies/Acme.md | People/Tom Ray.md:4 Tom used to work at [[Acme]].
    People/Eve Sun.md works_at Companies/Acme.md | Companies/Acme.md:7 - [[Eve Sun]]
    People/Jane Doe.md works_at Companies/Acme.md | People/Jane Doe.md:3 employer: [[Acme]]
    ");
    assert_snapshot!(shown(&vault.store(), "Beta", Some("founders"), 1), @"People/Jane Doe.md ~founded Companies/Beta.md | People/Jane Doe.md:5 Jane founded [[Beta]] in 2012.");
}

#[test]
fn relations_are_followed_by_type_and_depth() {
    let vault = vault();
    assert_snapshot!(shown(&vault.store(), "Eve Sun", Some("works_at"), 2), @r"
    People/Eve Sun.md works_at Companies/Acme.md | Companies/Acme.md:7 - [[Eve Sun]]
    People/Jane Doe.md works_at Companies/Acme.md | People/Jane Doe.md:3 employer: [[Acme]]
    ");
}

fn found(store: &Store, query: &str) -> String {
    let request = SearchRequest { query: query.to_owned(), limit: Some(5), ..SearchRequest::default() };
    let reply = store.searches().search(&request).unwrap();
    let paths: Vec<&str> = reply.results.iter().map(|result| result.path.as_str()).collect();
    let notes: Vec<String> = reply.notes.iter().map(ToString::to_string).collect();
    let notes = notes.into_iter().filter(|note| note.contains("--no-relations"));
    format!("{}{}", paths.join(", "), notes.map(|note| format!("\n  {note}")).collect::<String>())
}

#[test]
fn a_condition_selects_notes_by_relation() {
    let vault = vault();
    let store = vault.store();
    let cases = [
        ("rel:works_at:[[Acme]]", "People/Eve Sun.md, People/Jane Doe.md"),
        ("rel:employs:[[Jane Doe]]", "Companies/Acme.md"),
        ("rel:employees", "Companies/Acme.md"),
        ("rel:met_with:[[Tom Ray]]", "People/Jane Doe.md"),
        ("rel:works_at:[[Acme]] -path:Eve", "People/Jane Doe.md"),
        ("rel:[[Eve Sun]]", "Companies/Acme.md"),
        ("rel:nothing:[[Acme]]", ""),
    ];
    for (query, expected) in cases {
        assert_eq!(found(&store, query), expected, "of {query}");
    }
}

#[test]
fn a_question_by_relation_is_answered_by_it() {
    let vault = vault();
    let store = vault.store();
    let questions = [
        "who works at Acme?",
        "where does Jane work",
        "Acme's employees",
        "who used to work at Acme",
        "companies founded by Jane Doe",
        "who invested in Beta, I need to write to them",
        "which meetings did Tom attend?",
        "who did Jane Doe meet at the kickoff",
        "who works at Acme and plays chess",
        "pumps of Acme",
        "who works at Nowhere",
        "what is Acme",
        "when did Jane Doe found Beta",
        "Jane Doe founded Beta",
        "who does not work at Acme",
        "who acquired Acme",
        "Kickoff",
    ];
    let answers: Vec<String> =
        questions.iter().map(|question| format!("{question}: {}", found(&store, question))).collect();
    assert_snapshot!(answers.join("\n"), @r"
    who works at Acme?: People/Jane Doe.md, People/Eve Sun.md, People/Ann Lee.md
      these are 2 notes that lead to Companies/Acme.md by works_at, and 1 that may answer: linked with it, but not stated; --no-relations searches for the words
    where does Jane work: Companies/Acme.md
      this is the note to which People/Jane Doe.md leads by works_at; --no-relations searches for the words
    Acme's employees: People/Jane Doe.md, People/Eve Sun.md, People/Ann Lee.md
      these are 2 notes that lead to Companies/Acme.md by works_at, and 1 that may answer: linked with it, but not stated; --no-relations searches for the words
    who used to work at Acme: People/Tom Ray.md, People/Ann Lee.md
      this is the note that leads to Companies/Acme.md by worked_at, and 1 that may answer: linked with it, but not stated; --no-relations searches for the words
    companies founded by Jane Doe: Companies/Beta.md
      this is the note to which People/Jane Doe.md leads by founded; --no-relations searches for the words
    who invested in Beta, I need to write to them: People/Tom Ray.md, Companies/Acme.md
      this is the note that leads to Companies/Beta.md by invested_in, and 1 that may answer: linked with it, but not stated; --no-relations searches for the words
    which meetings did Tom attend?: Meetings/Kickoff.md
      this is the note to which People/Tom Ray.md leads by attended; --no-relations searches for the words
    who did Jane Doe meet at the kickoff: People/Tom Ray.md
      this is the note to which People/Jane Doe.md leads by met_with; --no-relations searches for the words
    who works at Acme and plays chess: People/Jane Doe.md, People/Eve Sun.md, People/Ann Lee.md, People/Tom Ray.md, Companies/Acme.md
      first come 2 notes that lead to Companies/Acme.md by works_at, and 1 that may answer: linked with it, but not stated; --no-relations searches for the words
    pumps of Acme: People/Ann Lee.md, Companies/Acme.md, Deals/Round.md, People/Tom Ray.md, People/Jane Doe.md
    who works at Nowhere: People/Tom Ray.md
    what is Acme: Companies/Acme.md, Deals/Round.md, People/Ann Lee.md, People/Tom Ray.md, People/Jane Doe.md
    when did Jane Doe found Beta: People/Jane Doe.md, Companies/Beta.md, People/Tom Ray.md, Meetings/Kickoff.md
    Jane Doe founded Beta: Companies/Beta.md, People/Jane Doe.md, People/Tom Ray.md, Meetings/Kickoff.md
      first comes the note to which People/Jane Doe.md leads by founded; --no-relations searches for the words
    who does not work at Acme: People/Tom Ray.md, Companies/Acme.md, Deals/Round.md, People/Ann Lee.md, People/Jane Doe.md
    who acquired Acme: People/Ann Lee.md, Companies/Acme.md, Deals/Round.md, People/Tom Ray.md, People/Jane Doe.md
      no note states acquired of Companies/Acme.md; first come notes that are linked with it and may answer; --no-relations searches for the words
    Kickoff: Meetings/Kickoff.md
    ");
}

#[test]
fn an_agent_follows_relations_by_type() {
    let vault = vault();
    let mut client = Client::start(&vault, &[]);
    let shown = client.text("explore_links", json!({ "note": "Beta", "relation": "founders" }));
    assert_eq!(
        shown,
        "People/Jane Doe.md founded (inferred) Companies/Beta.md  (People/Jane Doe.md:5)  Jane founded [[Beta]] in 2012.\n"
    );
}

#[test]
fn other_rules_make_other_relations() {
    let vault = vault();
    assert_eq!(found(&vault.store(), "rel:likes:[[Acme]]"), "");
    let rule = "[relations]\nlikes = { forward = [\"likes the pumps of\"], inverse = \"liked_by\" }\n";
    std::fs::create_dir_all(vault.root().join(".sidenote")).unwrap();
    std::fs::write(vault.root().join(".sidenote/config.toml"), rule).unwrap();
    assert_eq!(found(&vault.store(), "rel:likes:[[Acme]]"), "People/Ann Lee.md");
    assert_eq!(found(&vault.store(), "rel:works_at:[[Acme]]"), "People/Eve Sun.md, People/Jane Doe.md");
    std::fs::write(vault.root().join(".sidenote/config.toml"), "[links]\ninfer_relations = false\n").unwrap();
    assert_eq!(found(&vault.store(), "rel:founded:[[Beta]]"), "");
}

#[test]
fn a_type_keeps_what_a_setting_does_not_name() {
    let vault = vault();
    std::fs::create_dir_all(vault.root().join(".sidenote")).unwrap();
    let settings = |text: &str| std::fs::write(vault.root().join(".sidenote/config.toml"), text).unwrap();
    settings("[relations.works_at]\nforward = [\"likes the pumps of\"]\n");
    assert_eq!(
        found(&vault.store(), "rel:works_at:[[Acme]]"),
        "People/Ann Lee.md, People/Eve Sun.md, People/Jane Doe.md"
    );
    assert_eq!(found(&vault.store(), "rel:worked_at:[[Acme]]"), "People/Tom Ray.md");
    settings("[relations.worked_at]\nforward = [\"quit\", \"-used to work at\"]\n");
    assert_eq!(found(&vault.store(), "rel:worked_at:[[Acme]]"), "");
    // The last change counts, and upper case is no other phrase.
    settings("[relations.worked_at]\nforward = [\"-Used to work at\", \"used to work at\"]\n");
    assert_eq!(found(&vault.store(), "rel:worked_at:[[Acme]]"), "People/Tom Ray.md");
    settings("[relations.worked_at]\nforward = [\"-use to work\"]\n");
    let refused = stderr(&vault.run(&["search", "rel:likes"]));
    assert!(
        refused.contains("relations.worked_at.forward takes out \"use to work\", which is not in the list"),
        "{refused}"
    );
    settings("[relations.worked_at]\nforward = \"left\"\n");
    let refused = stderr(&vault.run(&["search", "rel:likes"]));
    assert!(refused.contains("relations.worked_at is not valid"), "{refused}");
    settings("[relations.likes]\nforward = [\"likes\"]\nshared = \"likes\"\n");
    let refused = stderr(&vault.run(&["search", "rel:likes"]));
    assert!(
        refused.contains("relations.likes shares \"likes\", which is no type or shares another"),
        "{refused}"
    );
}

#[test]
fn a_forgotten_note_states_nothing() {
    let vault = vault();
    vault.write("Rumour.md", "[[Ann Lee]] works at [[Acme]].\n");
    assert!(found(&vault.store(), "rel:works_at:[[Acme]]").contains("Ann Lee"));
    vault.run(&["memory", "forget", "Rumour"]);
    assert!(!found(&vault.store(), "rel:works_at:[[Acme]]").contains("Ann Lee"));
}

/// Obsidian vaults often say what a note is by a link in `categories`.
#[test]
fn links_in_categories_say_what_a_note_is() {
    let vault = TestVault::new(&[]);
    let note = |name: &str, kind: &str, more: &str| {
        vault.write(&format!("{name}.md"), format!("---\ncategories:\n  - \"[[{kind}]]\"\n{more}---\n"));
    };
    note("Acme", "Companies", "");
    note("Jane", "People", "org: \"[[Acme]]\"\n");
    note("Pump", "Projects", "org: \"[[Acme]]\"\n");
    note("Monday", "Meetings", "org: \"[[Acme]]\"\npeople: [\"[[Jane]]\", \"[[Tom]]\"]\n");
    note("Tom", "People", "");
    let store = vault.store();
    assert_eq!(found(&store, "rel:works_at:[[Acme]]"), "Jane.md");
    assert_eq!(found(&store, "rel:attended:[[Monday]]"), "Jane.md, Tom.md");
    assert_eq!(found(&store, "rel:works_at:[[Monday]]"), "");
}

#[test]
fn a_relation_follows_its_link() {
    let vault = vault();
    assert_eq!(found(&vault.store(), "rel:works_at:[[Acme]]"), "People/Eve Sun.md, People/Jane Doe.md");
    vault.run(&["move", "Acme", "Companies/Apex.md"]);
    assert_eq!(found(&vault.store(), "rel:works_at:[[Apex]]"), "People/Eve Sun.md, People/Jane Doe.md");
}
