//! Tests `sidenote eval`: the scores of a set, several sets in one table, and folders that hold sets.

use serde_json::Value;

use crate::support::{TestVault, stderr, stdout};

/// A folder with the set `birds`, the set `deep/pond` below another folder, and things that are no sets.
fn collection() -> TestVault {
    let note = |id: &str, text: &str| format!("---\nid: {id}\n---\n{text}\n");
    TestVault::new(&[
        ("birds/notes/1.md", &note("b1", "heron and otter")),
        ("birds/notes/2.md", &note("b2", "heron alone")),
        ("birds/queries.jsonl", "{\"qid\": \"q1\", \"text\": \"heron otter\"}\n"),
        ("birds/qrels.tsv", "q1\tb1\t1\n"),
        ("deep/pond/notes/1.md", &note("p1", "the pond is deep")),
        ("deep/pond/queries.jsonl", "{\"qid\": \"q1\", \"text\": \"pond\"}\n"),
        ("deep/pond/qrels.tsv", "q1\tp1\t1\n"),
        ("deep/half/queries.jsonl", "{\"qid\": \"q1\", \"text\": \"pond\"}\n"),
        (".old/notes/1.md", "hidden\n"),
        (".old/queries.jsonl", ""),
        (".old/qrels.tsv", ""),
        ("other/README.md", "no set\n"),
    ])
}

fn eval(vault: &TestVault, args: &[&str]) -> std::process::Output {
    vault.command(&[&["eval"], args].concat()).current_dir(vault.root()).output().unwrap()
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

fn sets(reply: &Value) -> Vec<&str> {
    reply.as_array().unwrap().iter().map(|set| set["set"].as_str().unwrap()).collect()
}

#[test]
fn eval_measures_a_set() {
    let vault = TestVault::new(&[
        ("notes/a/1.md", "---\nid: n1\nseq: 1\n---\nheron and otter"),
        ("notes/a/2.md", "---\nid: n2\nseq: 5\n---\nheron alone"),
        ("notes/b/3.md", "---\nid: n3\nseq: 1\n---\nheron elsewhere"),
        (
            "queries.jsonl",
            "{\"qid\": \"q1\", \"text\": \"heron otter\", \"scope\": \"a\", \"before_seq\": 3}\n",
        ),
        ("qrels.tsv", "q1\tn2\t1\n"),
    ]);
    let set = vault.root().to_str().unwrap();
    let scores = |args: &[&str]| {
        json(&vault.run(&[&["eval", set, "--mode", "bm25", "--json"], args].concat()))[0]["modes"][0].clone()
    };
    let all = scores(&[]);
    assert!((all["ndcg_at_10"].as_f64().unwrap() - 0.6309).abs() < 1e-3, "{all}");
    assert_eq!(all["mrr_at_10"], 0.5);
    assert_eq!(all["recall_at_5"], 1.0);
    assert_eq!(scores(&["--causal"])["recall_at_100"], 0.0, "the judged note is later than the query");
}

#[test]
fn recall_at_5_counts_the_first_five_only() {
    let vault = TestVault::new(&[("queries.jsonl", "{\"qid\": \"q1\", \"text\": \"heron\"}\n")]);
    // The longer a note is, the lower it ranks.
    for number in 1..=8 {
        let text = format!("---\nid: n{number}\n---\nheron{}\n", " and more".repeat(number * 10));
        vault.write(&format!("notes/{number}.md"), text);
    }
    vault.write("qrels.tsv", "q1\tn1\t1\nq1\tn5\t1\nq1\tn6\t1\nq1\tn7\t1\n");
    let reply = json(&eval(&vault, &[".", "--mode", "bm25", "--json"]));
    let scores = &reply[0]["modes"][0];
    assert_eq!((&scores["recall_at_5"], &scores["recall_at_10"]), (&0.5.into(), &1.0.into()), "{scores}");
}

#[test]
fn one_set_is_printed_with_a_line_for_each_comparison() {
    let vault = collection();
    let printed = stdout(&eval(&vault, &["birds", "--against", "rrf"]));
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "2 notes, 1 judged query");
    let head: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(
        head,
        ["mode", "nDCG@10", "recall@5", "recall@10", "recall@100", "MRR@10", "ms/query"],
        "{printed}"
    );
    assert!(lines.contains(&"hybrid - bm25: +0.0000, 95 % of samples +0.0000 to +0.0000"), "{printed}");
    assert!(lines.iter().any(|line| line.starts_with("hybrid - hybrid rrf: ")), "{printed}");
}

#[test]
fn several_sets_are_one_table() {
    let vault = collection();
    let printed = stdout(&eval(&vault, &["birds", "deep/pond", "--against", "rrf", "--vectors", "0,100"]));
    assert!(
        printed.starts_with("birds: 2 notes, 1 judged query\npond: 1 note, 1 judged query\n"),
        "{printed}"
    );
    let rows: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
    let starts: Vec<String> = rows.iter().skip(3).map(|row| row[..2].join(" ")).collect();
    let modes = ["bm25", "vector", "hybrid", "hybrid"];
    let expected = ["birds", "pond"].iter().flat_map(|set| modes.map(|mode| format!("{set} {mode}")));
    let shares = ["set vectors", "birds 0", "birds 100", "pond 0", "pond 100"].map(str::to_owned);
    assert_eq!(starts, expected.chain(shares).collect::<Vec<_>>(), "{printed}");
    let bm25 = printed.lines().find(|line| line.starts_with("pond") && line.contains("bm25")).unwrap();
    assert!(bm25.ends_with("+0.0000        +0.0000 to +0.0000"), "{bm25}");
}

#[test]
fn a_folder_stands_for_the_sets_below_it() {
    let vault = collection();
    let reply = json(&eval(&vault, &[".", "--mode", "bm25", "--json"]));
    assert_eq!(sets(&reply), ["./birds", "./deep/pond"]);
    let reply = json(&eval(&vault, &["deep", "birds", "deep/pond", "--mode", "bm25", "--json"]));
    assert_eq!(sets(&reply), ["deep/pond", "birds"], "a set is measured once");
    let reply = json(&eval(&vault, &["birds", "--mode", "bm25", "--json"]));
    assert_eq!(sets(&reply), ["birds"], "one set is a list, too");
}

#[test]
fn sets_of_the_same_name_are_shown_by_their_paths() {
    let vault = collection();
    for file in ["notes/1.md", "queries.jsonl", "qrels.tsv"] {
        vault.write(&format!("more/birds/{file}"), vault.read(&format!("birds/{file}")));
    }
    let printed = stdout(&eval(&vault, &["birds", "more", "--mode", "bm25"]));
    assert!(printed.starts_with("birds: 2 notes, 1 judged query\nmore/birds: 1 note,"), "{printed}");
}

#[test]
fn what_is_no_set_is_refused_before_anything_is_measured() {
    let vault = collection();
    for (args, message) in [
        (&["birds", "deep/half"][..], "deep/half has no notes"),
        (&["birds", "other"], "other holds no evaluation set"),
        (&["missing"], "cannot read missing"),
        (&["birds", "deep", "--index", "index"], "--index names one index, which several sets cannot share"),
    ] {
        let done = eval(&vault, args);
        assert!(!done.status.success(), "{args:?}");
        assert!(stderr(&done).contains(message), "{args:?}: {}", stderr(&done));
    }
    assert!(!vault.root().join("birds/notes/.sidenote").exists());
}
