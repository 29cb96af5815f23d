//! Tests the scripts in docs/dev/eval, which convert public data sets to sets for `sidenote eval`. The samples were written
//! for these tests in the formats that the publishers describe; nothing in them is from the data sets.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{TestVault, repository, stderr, stdout};

fn script(vault: &TestVault, name: &str, args: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command.arg(repository().join("docs/dev/eval").join(name)).args(args).current_dir(vault.root());
    command.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap()
}

/// Converts a sample into the set `set`, and returns the numbers of its notes, queries and judgements.
#[track_caller]
fn convert(vault: &TestVault, name: &str, args: &[&str]) -> (usize, usize, usize) {
    let done = script(vault, name, args);
    assert!(done.status.success(), "{name}: {}", stderr(&done));
    (notes(vault).len(), vault.read("set/queries.jsonl").lines().count(), qrels(vault).len())
}

/// Lists the notes of the set by their paths, sorted.
fn notes(vault: &TestVault) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("set/notes")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(vault.root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            match path.extension() {
                Some(extension) if extension == "md" => found.push(path.to_str().unwrap().to_owned()),
                _ => folders.push(path),
            }
        }
    }
    found.sort();
    found
}

fn qrels(vault: &TestVault) -> Vec<String> {
    vault.read("set/qrels.tsv").lines().map(|line| line.replace('\t', " ")).collect()
}

fn query(vault: &TestVault, at: usize) -> Value {
    serde_json::from_str(vault.read("set/queries.jsonl").lines().nth(at).unwrap()).unwrap()
}

/// Measures search by words on the set, and returns its recall@5.
fn recall_at_5(vault: &TestVault) -> f64 {
    let set = vault.root().join("set");
    let done = vault.run(&["eval", set.to_str().unwrap(), "--mode", "bm25", "--json"]);
    let reply: Value = serde_json::from_str(&stdout(&done)).unwrap();
    reply[0]["modes"][0]["recall_at_5"].as_f64().unwrap()
}

#[test]
#[ignore = "it needs python3; `.ci/run` runs it where it can"]
fn a_data_set_of_beir_is_converted() {
    let vault = TestVault::new(&[
        (
            "corpus.jsonl",
            "{\"_id\": \"d 1\", \"title\": \"Herons: a \\\"survey\\\"\", \"text\": \"They nest in old oaks.\", \"metadata\": {}}\n\
             {\"_id\": \"D/2\", \"title\": \"\", \"text\": \"Otters sleep on their backs.\"}\n\
             {\"_id\": \"d/2\", \"text\": \"Storms are loud.\"}\n",
        ),
        (
            "queries.jsonl",
            "{\"_id\": \"q1\", \"text\": \"where do herons nest\", \"metadata\": {}}\n\
             {\"_id\": \"q2\", \"text\": \"how do otters sleep\"}\n{\"_id\": \"q3\", \"text\": \"not judged\"}\n",
        ),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td 1\t2\nq1\td/2\t0\nq2\tD/2\t1\n"),
        ("qrels/train.tsv", "query-id\tcorpus-id\tscore\nq3\tgone\t1\n"),
    ]);
    assert_eq!(convert(&vault, "beir.py", &[".", "set"]), (3, 2, 3));
    assert_eq!(notes(&vault), ["set/notes/D-2.md", "set/notes/d-2-2.md", "set/notes/d_1.md"]);
    assert_eq!(qrels(&vault), ["q1 d_1 2", "q1 d/2 0", "q2 D/2 1"]);
    assert_eq!(
        vault.read("set/notes/d_1.md"),
        "---\nid: \"d_1\"\ntitle: \"Herons: a \\\"survey\\\"\"\n---\n\n# Herons: a \"survey\"\n\nThey nest in old oaks.\n"
    );
    assert_eq!(recall_at_5(&vault), 1.0);
    let again = script(&vault, "beir.py", &[".", "set"]);
    assert!(stderr(&again).contains("set has notes already"), "notes are not replaced: {}", stderr(&again));
}

fn locomo() -> TestVault {
    let turn = |speaker: &str, id: &str, text: &str| json!({"speaker": speaker, "dia_id": id, "text": text});
    let mut image = turn("Bo", "D1:2", "Look at this!");
    image["blip_caption"] = "a photo of a red kite".into();
    image["img_url"] = json!(["https://example.org/kite.jpg"]);
    let ask = |text: &str, evidence: &[&str], category: u8| json!({"question": text, "answer": "x", "evidence": evidence, "category": category});
    let sample = json!([{
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada", "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2031",
            "session_1": [turn("Ada", "D1:1", "I bought a canoe."), image],
            "session_2_date_time": "12:09 am on 13 September, 2031",
            "session_2": [turn("Bo", "D2:1", "My sister moved to Oslo.")],
            "session_3_date_time": "9:00 am on 14 September, 2031",
        },
        "qa": [
            ask("What did Ada buy?", &["D1:1"], 4),
            ask("Where is the kite, and where did Bo's sister move?", &["D1:02; D2:1", "D"], 1),
            ask("Is Ada shy?", &[], 3),
            ask("What did Bo buy?", &["D1:1"], 5),
        ],
        "observation": {}, "session_summary": {}, "event_summary": {},
    }]);
    TestVault::new(&[("locomo10.json", &sample.to_string())])
}

#[test]
#[ignore = "it needs python3; `.ci/run` runs it where it can"]
fn turns_of_locomo_are_converted() {
    let vault = locomo();
    assert_eq!(convert(&vault, "locomo.py", &["locomo10.json", "set"]), (3, 2, 3));
    assert_eq!(
        vault.read("set/notes/conv-1/conv-1.D1.2.md"),
        "---\nid: \"conv-1.D1.2\"\nspeaker: \"Bo\"\ndate: \"2031-05-08T13:56\"\nsession: 1\nseq: 0\n---\n\n\
         Look at this!\n\n[image: a photo of a red kite]\n"
    );
    assert!(vault.read("set/notes/conv-1/conv-1.D2.1.md").contains("date: \"2031-09-13T00:09\"\n"));
    assert_eq!(
        qrels(&vault),
        ["conv-1.q001 conv-1.D1.1 1", "conv-1.q002 conv-1.D1.2 1", "conv-1.q002 conv-1.D2.1 1"]
    );
    assert_eq!(query(&vault, 0)["scope"], "conv-1");
    assert_eq!(recall_at_5(&vault), 1.0);
}

#[test]
#[ignore = "it needs python3; `.ci/run` runs it where it can"]
fn sessions_of_locomo_are_converted() {
    let vault = locomo();
    let args = ["locomo10.json", "set", "--unit", "session", "--adversarial"];
    assert_eq!(convert(&vault, "locomo.py", &args), (2, 3, 4));
    let session = vault.read("set/notes/conv-1/conv-1.S01.md");
    assert!(session.contains("title: \"Ada and Bo, session 1\"\n"), "{session}");
    assert!(session.ends_with(
        "**Ada:** I bought a canoe.\n\n**Bo:** Look at this!\n\n[image: a photo of a red kite]\n"
    ));
    assert_eq!(qrels(&vault)[1..3], ["conv-1.q002 conv-1.S01 1", "conv-1.q002 conv-1.S02 1"]);
    assert_eq!(recall_at_5(&vault), 1.0);
}

fn longmemeval() -> TestVault {
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let mut evidence = said("user", "I adopted a beagle.");
    evidence["has_answer"] = true.into();
    let ask = |id: &str, kind: &str| {
        json!({
            "question_id": id, "question_type": kind, "question": "Which dog did I adopt?", "answer": "a beagle",
            "question_date": "2031/06/15 (Sun) 09:12",
            "haystack_session_ids": ["answer_1", "filler_1"],
            "haystack_dates": ["2031/05/20 (Tue) 14:03", "2031/05/22 (Thu) 10:41"],
            "haystack_sessions": [[evidence, said("assistant", "Congratulations!")], [said("user", "Tell me of Rome.")]],
            "answer_session_ids": ["answer_1"],
        })
    };
    let kind = "single-session-user";
    let sample = json!([ask("q1", kind), ask("q2_abs", kind), ask("q3", kind), ask("q4", "multi-session")]);
    TestVault::new(&[("longmemeval_s.json", &sample.to_string())])
}

#[test]
#[ignore = "it needs python3; `.ci/run` runs it where it can"]
fn sessions_of_longmemeval_are_converted() {
    let vault = longmemeval();
    assert_eq!(convert(&vault, "longmemeval.py", &["longmemeval_s.json", "set"]), (6, 3, 3));
    let session = vault.read("set/notes/q1/q1.000.md");
    assert_eq!(
        session,
        "---\nid: \"q1.000\"\ndate: \"2031-05-20T14:03\"\nseq: 0\n---\n\n\
         **User:** I adopted a beagle.\n\n**Assistant:** Congratulations!\n",
        "nothing tells which session answers"
    );
    assert_eq!(qrels(&vault), ["q1 q1.000 1", "q3 q3.000 1", "q4 q4.000 1"]);
    assert_eq!(query(&vault, 1)["scope"], "q3");
    assert_eq!(recall_at_5(&vault), 1.0);
}

#[test]
#[ignore = "it needs python3; `.ci/run` runs it where it can"]
fn turns_of_longmemeval_are_converted() {
    let vault = longmemeval();
    let args = ["longmemeval_s.json", "set", "--unit", "turn", "--limit", "1"];
    assert_eq!(convert(&vault, "longmemeval.py", &args), (6, 2, 2));
    assert_eq!(qrels(&vault), ["q1 q1.000.01 1", "q4 q4.000.01 1"]);
    assert_eq!(recall_at_5(&vault), 1.0);
}

/// Returns the messages of a conversation of BEAM, in two sessions.
fn beam_messages() -> [Vec<Value>; 2] {
    let said = |role: &str, id: u32, content: &str| json!({"role": role, "id": id, "content": content});
    let mut first = said("user", 0, "My first sprint ends on March 29. ->-> 1,1");
    first["time_anchor"] = "March-15-2031".into();
    first["question_type"] = "main_question".into();
    let mut third = said("user", 4, "The sprint now ends on April 2. ->-> 2,1");
    third["time_anchor"] = "April-01-2031".into();
    [
        vec![first, said("assistant", 1, "Noted."), said("user", 2, "I use Flask.")],
        vec![third, said("assistant", 5, "Good."), said("assistant", 5, "Really.")],
    ]
}

fn beam_questions() -> String {
    json!({
        "abstention": [{"question": "What is my cat called?", "ideal_response": "unknown"}],
        "information_extraction": [{"question": "Which framework do I use?", "source_chat_ids": [2]}],
        "knowledge_update": [{
            "question": "When does my sprint end?",
            "source_chat_ids": {"original_info": [0], "updated_info": [4]},
        }],
        "summarization": [
            {"question": "What was good?", "source_chat_ids": [0, 5]},
            {"question": "What was bad?", "source_chat_ids": [99]},
        ],
    })
    .to_string()
}

#[track_caller]
fn check_beam(vault: &TestVault) {
    assert_eq!(convert(vault, "beam.py", &["100K", "set"]), (6, 2, 3));
    assert_eq!(
        vault.read("set/notes/7/7.00001.md"),
        "---\nid: \"7.00001\"\nrole: \"assistant\"\ndate: \"2031-03-15\"\nsession: 1\nseq: 1\n---\n\nNoted.\n"
    );
    assert!(
        vault.read("set/notes/7/7.00003.md").ends_with("seq: 3\n---\n\nThe sprint now ends on April 2.\n")
    );
    assert_eq!(
        qrels(vault),
        [
            "7.information_extraction.1 7.00002 1",
            "7.knowledge_update.1 7.00000 1",
            "7.knowledge_update.1 7.00003 1"
        ]
    );
    assert_eq!(recall_at_5(vault), 1.0);
}

#[test]
#[ignore = "it needs python3; `.ci/run` runs it where it can"]
fn conversations_of_beam_are_converted() {
    let [first, second] = beam_messages();
    let (opening, rest) = first.split_at(2);
    let chat = json!([
        {"batch_number": 1, "turns": [opening, rest]},
        {"batch_number": 2, "turns": [second]},
    ]);
    let questions = beam_questions();
    check_beam(&TestVault::new(&[
        ("100K/7/chat.json", "[]"),
        ("100K/7/chat_trunecated.json", &chat.to_string()),
        ("100K/7/probing_questions/probing_questions.json", &questions),
    ]));
    check_beam(&TestVault::new(&[
        ("100K/7/chat.json", &json!(beam_messages()).to_string()),
        ("100K/7/probing_questions/probing_questions.json", &questions),
    ]));
}

#[test]
#[ignore = "it needs python3; `.ci/run` runs it where it can"]
fn questions_by_relation_are_written_the_same_each_time() {
    for (name, hash) in [
        ("relations_1.py", "94bb3730402478dd"),
        ("relations_2.py", "84e474906f9dbc6a"),
        ("relations_3.py", "a10a2c1ed8c61e9c"),
    ] {
        let vault = TestVault::new(&[]);
        let (count, queries, _) = convert(&vault, name, &["set"]);
        assert_eq!((count, queries), (240, 150), "{name}");
        let mut files = notes(&vault);
        files.extend(["set/queries.jsonl", "set/qrels.tsv"].map(str::to_owned));
        let mut hasher = blake3::Hasher::new();
        for file in &files {
            hasher.update(file.as_bytes()).update(vault.read(file).as_bytes());
        }
        assert_eq!(hasher.finalize().to_hex()[..16], *hash, "{name}");
        for args in [&[][..], &["--help"]] {
            assert!(stderr(&script(&vault, name, args)).starts_with("usage: "), "{name} {args:?}");
        }
    }
}

/// Packs files into a Debian package: the paths and texts of a JSON object, compressed as Debian does it.
const PACK: &str = r#"
import gzip, io, json, lzma, sys, tarfile
data = io.BytesIO()
with tarfile.open(fileobj=data, mode="w") as archive:
    for path, text in json.loads(sys.argv[1]).items():
        content = gzip.compress(text.encode()) if path.endswith(".gz") else text.encode()
        member = tarfile.TarInfo("./" + path)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
with open("sample.deb", "wb") as package:
    package.write(b"!<arch>\n")
    for name, content in (("debian-binary", b"2.0\n"), ("data.tar.xz", lzma.compress(data.getvalue()))):
        package.write(f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode())
        package.write(content + b"\n" * (len(content) % 2))
"#;

/// A description of a page and a sentence in each language that has manual pages; the first is of the folder.
const PAGES: [(&str, &str, &str); 11] = [
    ("", "find pages by a word", "This page tells how the names of pages are found. "),
    ("de/", "Handbuchseiten nach einem Wort suchen", "Diese Seite sagt, wie man Namen von Seiten findet. "),
    ("es/", "busca páginas por una palabra", "Esta página dice cómo se encuentran los nombres. "),
    ("fr/", "chercher des pages par un mot", "Cette page dit comment trouver les noms des pages. "),
    ("it/", "cerca le pagine con una parola", "Questa pagina dice come si trovano i nomi. "),
    ("ja/", "言葉でマニュアルページを探す", "このページは、ページの名前を見つける方法を説明します。"),
    ("nl/", "zoek bladzijden met een woord", "Deze bladzijde zegt hoe namen gevonden worden. "),
    ("pl/", "szuka stron według słowa", "Ta strona mówi, jak znaleźć nazwy stron. "),
    ("pt_BR/", "procura páginas por uma palavra", "Esta página diz como se encontram os nomes. "),
    ("ru/", "ищет страницы по слову", "Эта страница говорит, как найти имена страниц. "),
    ("zh_CN/", "按关键字查找手册页", "本页说明如何找到页面的名称。"),
];

#[test]
#[ignore = "it needs python3; `.ci/run` runs it where it can"]
fn manual_pages_are_converted() {
    let mut files = serde_json::Map::new();
    for (folder, description, sentence) in PAGES {
        let page = format!(
            ".TH APROPOS 1\n.de XX\n.SH NAME\n..\n.SH NAME\napropos \\- {description}\n.SH TEXT\n{}\n",
            sentence.repeat(30)
        );
        files.insert(format!("usr/share/man/{folder}man1/apropos.1.gz"), page.into());
    }
    let english = ".TH ASCII 7\n.SH NAME\nascii \\- the set of \\(lqASCII\\(rq characters\n.SH \"THE TABLE\"\n\
                   .TP\n.BR \\-a \", \" \\-\\-all\nShow \\fIall\\fP of <them>, \\(:u and \\e.\n.nf\nint a;\n\nint b;\n.fi\n\
                   .TS\nl l.\n61\tT{\na\nT}\n.TE\n.PP\n";
    let english = format!("{english}{}\n", "A long line of text. ".repeat(20));
    // This page is not translated but for its description.
    let german = english.replace("the set of \\(lqASCII\\(rq characters", "der Zeichensatz ASCII");
    files.insert("usr/share/man/de/man7/ascii.7.gz".to_owned(), german.into());
    files.insert("usr/share/man/man7/ascii.7.gz".to_owned(), english.into());
    files.insert("usr/share/man/man1/intro.1.gz".to_owned(), ".so man1/apropos.1\n".into());
    let help = format!(
        "<h1>문서 내보내기</h1><p>문서를 다른 형식으로 내보냅니다.</p><p>{}</p><div id=\"DEBUG\"><p>x</p></div>",
        "파일 메뉴에서 내보내기를 선택합니다. ".repeat(30)
    );
    files.insert("usr/share/libreoffice/help/ko/text/shared/guide/export_ms.html".to_owned(), help.into());

    let vault = TestVault::new(&[]);
    let mut pack = Command::new("python3");
    let packed =
        pack.args(["-c", PACK, &json!(files).to_string()]).current_dir(vault.root()).output().unwrap();
    assert!(packed.status.success(), "{}", stderr(&packed));
    let done = script(&vault, "languages.py", &[".", "set"]);
    assert!(done.status.success(), "{}", stderr(&done));

    let lines = |path: &str| vault.read(&format!("set/{path}/queries.jsonl")).lines().count();
    let counts = [("en", 2), ("de", 1), ("ko", 1), ("zh", 1), ("cross/de", 1), ("cross/pt", 1), ("mixed", 2)];
    for (set, count) in counts {
        assert_eq!(lines(set), count, "{set}");
    }
    let query: Value =
        serde_json::from_str(vault.read("set/cross/zh/queries.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!(query, json!({"qid": "zh.apropos.1", "text": "按关键字查找手册页"}));
    assert_eq!(vault.read("set/cross/zh/qrels.tsv"), "zh.apropos.1\ten.apropos.1\t1\n");
    let note = vault.read("set/en/notes/en.ascii.7.md");
    let start = "---\nid: \"en.ascii.7\"\ntitle: \"ascii(7)\"\n---\n\n# ascii(7)\n\n## THE TABLE\n\n\
                 -a, --all Show all of \\<them>, ü and \\.\n\n```\nint a;\nint b;\n```\n\n61\na\n\nA long line";
    assert!(note.starts_with(start), "{note}");
    let korean = vault.read("set/ko/notes/ko.shared-guide-export_ms.md");
    assert!(
        korean.contains("\n\n# 문서 내보내기\n\n파일 메뉴에서") && korean.ends_with("선택합니다.\n"),
        "{korean}"
    );
}

#[test]
#[ignore = "it needs python3; `.ci/run` runs it where it can"]
fn sets_are_compared() {
    let scores = |mode: &str, ndcg: [f64; 2]| {
        let queries = json!([["a", ndcg[0]], ["b", ndcg[1]]]);
        let mean = f64::midpoint(ndcg[0], ndcg[1]);
        json!({"mode": mode, "ndcg_at_10": mean, "mrr_at_10": 0.5, "recall_at_10": 1.0, "queries": queries})
    };
    let reply = json!([{"set": "sets/one", "notes": 3, "queries": 2, "pending": 0, "modes": [
        scores("bm25", [0.5, 1.0]), scores("vector", [0.25, 0.0]), scores("hybrid", [0.5, 0.5]),
    ]}]);
    // `sh eval …` runs the file `eval`, so that `sh` stands for the program.
    let vault = TestVault::new(&[
        ("eval", "cat reply.json\n"),
        ("reply.json", &reply.to_string()),
        ("sets/one/queries.jsonl", ""),
    ]);
    let done = script(&vault, "compare.py", &["sets", "--program", "sh"]);
    let row = "sets/one                  3       2   0.750  0.125  0.500  0.500  0.500  0.500  1.000  1.000  1.000  \
               -0.250 (-0.500 to +0.000) bm25";
    assert_eq!(stdout(&done).lines().last(), Some(row), "{}", stderr(&done));
    let failed = script(&vault, "compare.py", &["sets", "--program", "sh", "--floor", "-0.1"]);
    assert!(!failed.status.success() && stderr(&failed).ends_with("by more than 0.1 in: sets/one\n"));
}
