//! Tests questions by relation that notes answer in other words: linked notes, and the words around their links.

use insta::assert_snapshot;
use sidenote::markdown::note::Note;
use sidenote::markdown::relation::link_contexts;
use sidenote::store::{SearchRequest, Store};

use crate::support::{TestVault, stdout};

/// Lists the contexts of the links in a text, as `links | words`. Lists of links are separated by `/`; a doubtful context has
/// a `?`.
fn contexts(text: &str) -> String {
    let note = Note::parse(text);
    let shown = link_contexts(text, &note).into_iter().map(|context| {
        let lists = context.links.chunk_by(|a, b| a.1 == b.1);
        let names = |list: &[(usize, usize)]| {
            list.iter().map(|(at, _)| note.links[*at].path.as_str()).collect::<Vec<_>>().join(" ")
        };
        let sign = if context.is_doubtful { "?" } else { "" };
        let earlier = context.earlier.map_or(String::new(), |at| format!("({}) ", note.links[at].path));
        let links: Vec<String> = lists.map(names).collect();
        format!("{earlier}{} |{sign} {}", links.join(" / "), context.words.join(" "))
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_words_around_links_are_those_of_their_sentence_field_row_or_heading() {
    let text = "---\nboss: \"[[Tom]]\"\n---\n\
        Spoke to [[Wei]] about it. Works at [[Acme]] now. [[Ann]], [[Bob]] and [[Cem]] said no to [[Beta]].\n\n\
        Employer:: [[Acme]]\nTeam: [[Ann]], [[Bob]]\n\n\
        ## On the call\n- [[Tom]]\n\n\
        | Lead | [[Ann]] |\n| --- | --- |\n";
    assert_snapshot!(contexts(text), @r"
    Tom | boss
    Wei | spoke to about it
    (Wei) Acme | works at now
    (Acme) Ann Bob Cem / Beta |? and said no to
    Acme | employer
    Ann Bob | team
    Tom | on the call
    Ann | lead on the call
    ");
}

fn vault() -> TestVault {
    let person = |text: &str| format!("---\ntype: person\n---\n{text}\n");
    let company = |text: &str| format!("---\ntype: company\n---\n{text}\n");
    TestVault::new(&[
        ("People/Jane Doe.md", &person("Jane has a desk at [[Acme]], near the window.")),
        ("People/Tom Ray.md", &person("Tom turned down an offer from [[Acme]]. He works at [[Beta]].")),
        ("People/Ann Lee.md", &person("Employer:: [[Beta]]")),
        ("People/Eve Sun.md", &person("Company:: [[Gamma]]\n\nEve left [[Acme]] in 2019.")),
        ("People/Bo Fox.md", &person("Bo reads a lot.")),
        ("Companies/Acme.md", &company("Acme makes pumps.")),
        ("Companies/Beta.md", &company("Beta sells the pumps of [[Acme]].")),
        ("Companies/Gamma.md", &company("Gamma is quiet.")),
        (
            "Meetings/Kickoff.md",
            "---\ntype: meeting\n---\nWe met with [[Tom Ray]]. [[Bo Fox]] of [[Acme]] works on the plan with us.\n",
        ),
        (
            "Deals/Round.md",
            "---\ntype: deal\ninvestors: [\"[[Ann Lee]]\"]\ncompany: \"[[Gamma]]\"\n---\nTerms.\n",
        ),
    ])
}

fn found(store: &Store, query: &str) -> String {
    let request = SearchRequest { query: query.to_owned(), limit: Some(4), ..SearchRequest::default() };
    let reply = store.searches().search(&request).unwrap();
    let lines = reply.results.iter().map(|result| {
        let stated = result.statement.as_ref();
        let stated = stated.map_or(String::new(), |one| format!(" | {}:{} {}", one.path, one.line, one.text));
        format!("\n  {}{stated}", result.path)
    });
    let lines: String = lines.collect();
    let notes = reply.notes.iter().map(ToString::to_string).filter(|note| note.contains("--no-relations"));
    format!("{query}{lines}{}", notes.map(|note| format!("\n  > {note}")).collect::<String>())
}

#[test]
fn linked_notes_answer_where_no_rule_knows_the_words() {
    let vault = vault();
    let store = vault.store();
    let questions = [
        "who works at Acme?",
        "who worked at Acme?",
        "who works at Beta?",
        "where does Jane Doe work?",
        "who attended the Kickoff?",
        "what did Ann Lee invest in?",
        "who founded Acme?",
    ];
    let answers: Vec<String> = questions.iter().map(|question| found(&store, question)).collect();
    assert_snapshot!(answers.join("\n"), @r#"
    who works at Acme?
      People/Jane Doe.md | People/Jane Doe.md:4 Jane has a desk at [[Acme]], near the window.
      Meetings/Kickoff.md
      People/Tom Ray.md
      Companies/Acme.md
      > no note states works_at of Companies/Acme.md; first come notes that are linked with it and may answer; --no-relations searches for the words
    who worked at Acme?
      People/Eve Sun.md | People/Eve Sun.md:6 Eve left [[Acme]] in 2019.
      Companies/Beta.md | Companies/Beta.md:4 Beta sells the pumps of [[Acme]].
      People/Jane Doe.md | People/Jane Doe.md:4 Jane has a desk at [[Acme]], near the window.
      > this is the note that leads to Companies/Acme.md by worked_at, and 2 that may answer: linked with it, but not stated; --no-relations searches for the words
    who works at Beta?
      People/Tom Ray.md | People/Tom Ray.md:4 He works at [[Beta]].
      People/Ann Lee.md | People/Ann Lee.md:4 Employer:: [[Beta]]
      > these are the notes that lead to Companies/Beta.md by works_at; --no-relations searches for the words
    where does Jane Doe work?
      Companies/Acme.md | People/Jane Doe.md:4 Jane has a desk at [[Acme]], near the window.
      People/Jane Doe.md
      Meetings/Kickoff.md
      People/Tom Ray.md
      > no note states works_at of People/Jane Doe.md; first come notes that are linked with it and may answer; --no-relations searches for the words
    who attended the Kickoff?
      People/Tom Ray.md | Meetings/Kickoff.md:4 We met with [[Tom Ray]].
      > this is the note that leads to Meetings/Kickoff.md by attended; --no-relations searches for the words
    what did Ann Lee invest in?
      Companies/Gamma.md | Deals/Round.md:3 investors: ["[[Ann Lee]]"]
      Deals/Round.md | Deals/Round.md:3 investors: ["[[Ann Lee]]"]
      > this is the note to which People/Ann Lee.md leads by invested_in, and 1 that may answer: linked with it, but not stated; --no-relations searches for the words
    who founded Acme?
      Companies/Beta.md | Companies/Beta.md:4 Beta sells the pumps of [[Acme]].
      People/Jane Doe.md | People/Jane Doe.md:4 Jane has a desk at [[Acme]], near the window.
      Companies/Acme.md
      Meetings/Kickoff.md
      > no note states founded of Companies/Acme.md; first come notes that are linked with it and may answer; --no-relations searches for the words
    "#);
}

#[test]
fn a_word_that_only_sounds_like_a_name_of_a_relation_asks_for_nothing() {
    let vault = vault();
    let store = vault.store();
    for query in ["Jane report Acme", "Ann Lee report terms"] {
        let found = found(&store, query);
        assert!(!found.contains("--no-relations"), "{found}");
    }
    let answer = found(&store, "who are the reports of Jane Doe?");
    assert!(answer.contains("no note states reports_to of People/Jane Doe.md"), "{answer}");
}

#[test]
fn a_word_for_any_note_asks_for_no_kind() {
    let vault = vault();
    for folder in ["Notes", "Docs", "Pages"] {
        let text = format!("It is linked with [[Acme]] and in {folder}.\n");
        vault.write(&format!("{folder}/About {folder}.md"), &text);
    }
    vault.write("Recipes/Soup.md", "A soup that [[Acme]] serves.\n");
    let store = vault.store();
    for query in ["Acme notes", "notes on Acme", "docs of Acme", "Acme pages"] {
        let found = found(&store, query);
        assert!(!found.contains("--no-relations"), "{found}");
    }
    // A folder whose name says what its notes are is a kind.
    let answer = found(&store, "Acme recipes");
    assert!(answer.contains("of this kind"), "{answer}");
}

#[test]
fn a_name_that_sounds_like_the_past_asks_for_nothing_past() {
    let vault = vault();
    vault.write("Companies/Left Bank.md", "---\ntype: company\n---\nLeft Bank lends money.\n");
    vault.write("People/Fay Orr.md", "---\ntype: person\n---\nFay has a desk at [[Left Bank]].\n");
    vault.write("People/Gus Poe.md", "---\ntype: person\n---\nFormerly, Gus had a desk at [[Left Bank]].\n");
    let answer = found(&vault.store(), "who works at Left Bank?");
    let shown = |name: &str| answer.contains(&format!("People/{name}.md | "));
    assert!(shown("Fay Orr") && !shown("Gus Poe"), "{answer}");
}

#[test]
fn what_states_a_relation_is_shown_with_the_result() {
    let vault = vault();
    let shown = stdout(&vault.run(&["search", "who attended the Kickoff?"]));
    assert!(shown.contains("    Meetings/Kickoff.md:4  We met with [[Tom Ray]]."), "{shown}");
    let explained = stdout(&vault.run(&["search", "who works at Acme?", "--explain"]));
    assert!(explained.contains("link in words that fit -> "), "{explained}");
    let plain = stdout(&vault.run(&["search", "who works at Acme?", "--explain", "--no-relations"]));
    assert!(!plain.contains("link in words that fit"), "{plain}");
}
