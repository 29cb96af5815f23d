//! Tests `sidenote model` and its settings: names, folders, downloads, a change of model, a reranker.
//!
//! Tests that run a model in ONNX form need `SIDENOTE_TEST_ONNXRUNTIME`: the path of libonnxruntime 1.24 or newer, as in
//! PyPI's package `onnxruntime`. They are ignored; `.ci/run` runs them where the variable is set.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::endpoint::{Say, Server};
use crate::support::{MODELS, SETTINGS, TestVault, env_path, repository, stderr, stdout};

const NOTES: &[(&str, &str)] = &[
    ("Tomatoes.md", "# Tomatoes\n\nTomatoes need a deep watering twice a week.\n"),
    ("Bridge.md", "# Bridge\n\nThe bridge crosses the river since 1932.\n"),
    ("Cat.md", "# Cat\n\nThe cat naps on the warm windowsill.\n"),
];

/// Finds the library to test with.
fn library() -> PathBuf {
    env_path("SIDENOTE_TEST_ONNXRUNTIME")
}

fn tiny(name: &str) -> String {
    repository().join("fixtures/models").join(name).display().to_string()
}

/// A vault and what the environment says of models.
struct Bench {
    vault: TestVault,
    env: Vec<(&'static str, String)>,
}

impl Bench {
    fn new(env: &[(&'static str, &str)]) -> Self {
        let env = env.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { vault: TestVault::new(NOTES), env }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.vault.command(args);
        command
            .env_remove("SIDENOTE_EMBED_PROVIDER")
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn set(&mut self, name: &'static str, value: &str) {
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.to_owned()));
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        let done = self.command(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", stderr(&done));
        stdout(&done)
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[&["--json"], args].concat())).unwrap()
    }

    /// Expects a failure, and gives what it says.
    #[track_caller]
    fn fail(&self, args: &[&str]) -> String {
        let done = self.command(args).output().unwrap();
        assert!(!done.status.success(), "{args:?}: {}", stdout(&done));
        stderr(&done)
    }

    fn settings(&self) -> PathBuf {
        self.vault.root().join(SETTINGS).join("sidenote/config.toml")
    }

    fn write_settings(&self, text: &str) {
        fs::create_dir_all(self.settings().parent().unwrap()).unwrap();
        fs::write(self.settings(), text).unwrap();
    }

    fn read_settings(&self) -> String {
        fs::read_to_string(self.settings()).unwrap_or_default()
    }

    /// Lists the models that have vectors in the index.
    fn kept_vectors(&self) -> Vec<String> {
        let entries = fs::read_dir(self.vault.root().join(".sidenote/index/vectors")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Searches by meaning and words: the first path, the embedder, and the notes.
    #[track_caller]
    fn search(&self, query: &str) -> (String, String, String) {
        let reply = self.json(&["search", query]);
        let notes = reply["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        // That no note has the word is not about the model.
        let notes = notes.filter(|note| !note.starts_with("no note that was searched has the word"));
        (
            reply["results"][0]["path"].as_str().unwrap_or_default().to_owned(),
            reply["mode"].as_str().unwrap().to_owned(),
            notes.collect::<Vec<_>>().join("\n"),
        )
    }
}

#[test]
fn the_list_names_embedders_and_rerankers() {
    let bench = Bench::new(&[]);
    let items = bench.json(&["model", "list"]);
    let find =
        |name: &str| items.as_array().unwrap().iter().find(|item| item["name"] == name).unwrap().clone();
    let e5 = find("e5");
    assert_eq!((&e5["in_use"], &e5["dimensions"]), (&Value::from(true), &Value::from(384)));
    let bge = find("BGESmallENV15");
    assert_eq!((&bge["installed"], &bge["dimensions"]), (&Value::from(false), &Value::from(384)));
    assert_eq!(find("BGERerankerBase")["kind"], "reranker");
    let text = bench.run(&["model", "list"]);
    assert!(text.starts_with("Embedders\n  e5"), "{text}");
    assert!(text.contains("\nRerankers\n"));
}

#[test]
fn show_reports_the_model_and_what_is_missing() {
    let bench =
        Bench::new(&[("SIDENOTE_EMBED_PROVIDER", "fastembed"), ("SIDENOTE_EMBED_MODEL", "BGESmallENV15")]);
    let shown = bench.json(&["model", "show"]);
    assert_eq!(shown["embedder"]["name"], "none");
    let trouble = shown["embedder"]["trouble"].as_str().unwrap();
    assert!(trouble.contains("BGESmallENV15 is not installed"), "{trouble}");
    assert!(trouble.contains("sidenote model install BGESmallENV15"), "{trouble}");
    assert_eq!(Bench::new(&[]).json(&["model", "show"])["embedder"]["name"], "e5");
}

#[test]
fn use_changes_one_setting_and_keeps_the_rest() {
    let bench = Bench::new(&[]);
    let before = "# mine\n[search]\nlimit = 5 # few\n\n[embed]\nprovider = \"none\"   # for now\n";
    bench.write_settings(before);
    let dry = bench.run(&["model", "use", "e5", "--dry-run"]);
    assert!(dry.contains("would change") && dry.contains("embed.provider: \"none\" -> \"e5\""), "{dry}");
    assert_eq!(bench.read_settings(), before);
    let set = bench.json(&["model", "use", "e5"]);
    assert_eq!(set["applied"], true);
    assert_eq!(bench.read_settings(), before.replace("\"none\"", "\"e5\""));
    assert!(bench.run(&["model", "use", "e5"]).contains("is up to date already"));

    let bench = Bench::new(&[("SIDENOTE_EMBED_PROVIDER", "none")]);
    let said = bench.run(&["model", "use", "e5"]);
    assert!(said.contains("SIDENOTE_EMBED_PROVIDER also sets embed.provider and takes precedence"), "{said}");
    assert_eq!(bench.read_settings(), "[embed]\nprovider = \"e5\"\n");
}

#[test]
fn an_endpoint_is_set_with_its_address() {
    let bench = Bench::new(&[]);
    bench.run(&["model", "use", "openai:nomic-embed-text", "--base-url", "http://127.0.0.1:11434/v1"]);
    let text = bench.read_settings();
    for line in
        ["provider = \"openai\"", "model = \"nomic-embed-text\"", "base_url = \"http://127.0.0.1:11434/v1\""]
    {
        assert!(text.contains(line), "{text}");
    }
    // The address stays when only the model changes, and goes with the endpoint.
    bench.run(&["model", "use", "openai:other", "--dimensions", "12"]);
    assert!(bench.read_settings().contains("11434") && bench.read_settings().contains("dimensions = 12"));
    let said = bench.fail(&["model", "use", "openai:unheard-of"]);
    assert!(said.contains("the length of the vectors"), "{said}");
}

#[test]
fn an_invalid_model_is_refused() {
    let bench = Bench::new(&[]);
    assert!(bench.fail(&["model", "use", "nonsense"]).contains("no model named \"nonsense\""));
    assert!(bench.fail(&["model", "use", "BGERerankerBase"]).contains("is not installed"));
    let said = bench.fail(&["model", "use", "nomic-ai/nomic-embed-text-v1.5"]);
    assert!(said.contains("NomicEmbedTextV15, NomicEmbedTextV15Q"), "{said}");
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().to_str().unwrap();
    assert!(bench.fail(&["model", "path", path]).contains("contains no ONNX model"));
    fs::write(empty.path().join("a.onnx"), "x").unwrap();
    assert!(bench.fail(&["model", "path", path]).contains("no tokenizer.json"));
    fs::write(empty.path().join("b.onnx"), "x").unwrap();
    assert!(bench.fail(&["model", "path", path]).contains("several models: a.onnx, b.onnx"));
    assert_eq!(bench.read_settings(), "");
}

#[test]
fn vault_settings_cannot_name_models_or_endpoints() {
    for (section, line) in [
        ("embed", "provider = \"openai\""),
        ("embed", "model = \"m\""),
        ("embed", "dir = \"/m\""),
        ("embed", "onnxruntime = \"/m\""),
        ("embed", "base_url = \"http://127.0.0.1:9\""),
        ("embed", "api_key = \"k\""),
        ("rerank", "dir = \"/m\""),
        ("rerank", "model = \"m\""),
    ] {
        let bench = Bench::new(&[]);
        bench.vault.write(".sidenote/config.toml", format!("[{section}]\n{line}\n"));
        let said = bench.fail(&["status"]);
        assert!(said.contains("which only your own settings can do"), "{line}: {said}");
    }
}

#[test]
fn a_key_is_never_shown() {
    let key = "sk-test-0123456789SECRET";
    let bench = Bench::new(&[]);
    bench.write_settings(&format!("[embed]\napi_key = \"{key}\"\n"));
    let shown = bench.run(&["config", "show"]);
    assert!(
        shown.contains("embed.api_key") && shown.contains("(set)") && !shown.contains("SECRET"),
        "{shown}"
    );
    bench.write_settings(&format!("[embed]\napi_key = \"{key}\n"));
    assert!(!bench.fail(&["config", "show"]).contains("SECRET"));
    bench.write_settings(&format!("[embed]\napi_key = \"{key}\"\n[search]\nlimit = \"x\"\n"));
    assert!(!bench.fail(&["config", "show"]).contains("SECRET"));
    for log in ["trace", "trace,ureq=trace"] {
        let mut bench = Bench::new(&[("SIDENOTE_EMBED_API_KEY", key), ("SIDENOTE_LOG", log)]);
        let server = Server::new(8, &[]);
        ask_endpoint(&mut bench, &server, "first", 8);
        let done = bench.command(&["index"]).output().unwrap();
        assert!(
            server.asked().iter().any(|asked| asked.key.as_ref().is_some_and(|sent| sent.ends_with(key)))
        );
        assert!(!format!("{}{}", stdout(&done), stderr(&done)).contains("SECRET"), "{}", stderr(&done));
    }
}

#[test]
fn search_falls_back_to_words_where_the_model_cannot_run() {
    let folder = tempfile::tempdir().unwrap();
    let no_library = folder.path().join("libonnxruntime.so");
    fs::write(&no_library, "this is no library").unwrap();
    let no_library = no_library.to_str().unwrap();
    let tiny = tiny("tiny-embedder");
    let set = |library: &str, provider: &str| {
        Bench::new(&[
            ("SIDENOTE_EMBED_PROVIDER", provider),
            ("SIDENOTE_EMBED_DIR", &tiny),
            ("SIDENOTE_EMBED_ONNXRUNTIME", library),
        ])
    };
    let bench = set(no_library, "fastembed");
    let said = bench.fail(&["index"]);
    assert!(said.contains("cannot be used") && said.contains("pip install onnxruntime"), "{said}");
    assert_eq!(bench.search("cat windowsill").0, "Cat.md");
    let gone = set("/nowhere/libonnxruntime.so", "fastembed");
    assert!(gone.fail(&["model", "verify"]).contains("there is no ONNX runtime"));
    // A library that is one, but another.
    if let Some(libc) =
        ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"].iter().find(|path| Path::new(path).exists())
    {
        let said = set(libc, "fastembed").fail(&["model", "verify"]);
        assert!(said.contains("cannot be used"), "{said}");
    }
    // With `auto`, the embedded model is used instead.
    let bench = set("/nowhere/libonnxruntime.so", "auto");
    let shown = bench.json(&["model", "show"]);
    assert_eq!(shown["embedder"]["name"], "e5");
    assert!(shown["embedder"]["trouble"].as_str().unwrap().contains("no ONNX runtime"));
    let done = bench.command(&["search", "cat"]).output().unwrap();
    assert!(stderr(&done).contains("notice: embed.onnxruntime is set to /nowhere"), "{}", stderr(&done));
    // The reply says when a model is missing.
    let bench = Bench::new(&[("SIDENOTE_EMBED_PROVIDER", "fastembed"), ("SIDENOTE_EMBED_DIR", "/nowhere")]);
    let (first, mode, notes) = bench.search("cat windowsill");
    assert_eq!((first.as_str(), mode.as_str()), ("Cat.md", "bm25"));
    assert!(
        notes.contains("this searched by words only: there is no folder ") && notes.contains("nowhere;"),
        "{notes}"
    );
}

/// Sets an endpoint's model in the environment.
fn ask_endpoint(bench: &mut Bench, server: &Server, model: &str, dimensions: usize) {
    bench.set("SIDENOTE_EMBED_PROVIDER", "openai");
    bench.set("SIDENOTE_EMBED_MODEL", model);
    bench.set("SIDENOTE_EMBED_BASE_URL", &server.url);
    bench.set("SIDENOTE_EMBED_DIMENSIONS", &dimensions.to_string());
    bench.set("SIDENOTE_EMBED_TIMEOUT_S", "10");
}

#[test]
fn old_vectors_serve_until_new_ones_are_complete() {
    let mut bench = Bench::new(&[("SIDENOTE_EMBED_PROVIDER", "e5")]);
    bench.run(&["index"]);
    let e5 = bench.kept_vectors();
    assert_eq!(bench.search("vegetables"), ("Tomatoes.md".to_owned(), "hybrid".to_owned(), String::new()));

    let server = Server::new(8, &[]);
    ask_endpoint(&mut bench, &server, "first", 8);
    let (first, mode, notes) = bench.search("vegetables");
    assert_eq!((first.as_str(), mode.as_str()), ("Tomatoes.md", "hybrid"));
    assert_eq!(notes, "vectors of e5 answer; 3 passages wait for those of first");
    assert_eq!(server.asked().len(), 0, "the query is embedded by the model of the vectors");
    assert_eq!(bench.json(&["status"])["former_embedder"], "e5");
    let doctor = bench.run(&["doctor"]);
    assert!(doctor.contains("until then those of the model before answer"), "{doctor}");

    // What fails in between changes nothing.
    server.then(&[Say::Status(400, "", String::new())]);
    assert!(bench.fail(&["index"]).contains("rejects the request"));
    assert_eq!(bench.search("vegetables").2, notes);

    bench.run(&["index"]);
    assert!(!bench.kept_vectors().iter().any(|name| e5.contains(name)), "{:?}", bench.kept_vectors());
    let before = server.asked().len();
    assert_eq!(bench.search("bridge"), ("Bridge.md".to_owned(), "hybrid".to_owned(), String::new()));
    assert_eq!(server.asked().len(), before + 1);
    assert!(bench.json(&["status"]).get("former_embedder").is_none());

    // Another model of the same endpoint: the first one serves, as it is known by what was set.
    let other = Server::new(16, &[]);
    ask_endpoint(&mut bench, &other, "second", 16);
    assert_eq!(bench.search("bridge").2, "vectors of first answer; 3 passages wait for those of second");
    assert_eq!(other.asked().len(), 0);
    // And going back embeds nothing twice.
    ask_endpoint(&mut bench, &server, "first", 8);
    let before = server.asked().len();
    bench.run(&["index"]);
    assert_eq!(server.asked().len(), before);

    // After a change to another model, the endpoint gets no more requests.
    bench.set("SIDENOTE_EMBED_PROVIDER", "e5");
    let (_, mode, notes) = bench.search("bridge");
    // So few notes are embedded at once.
    assert_eq!((mode.as_str(), notes.contains("first")), ("hybrid", false), "{notes}");
    assert_eq!(server.asked().len(), before);
}

#[test]
fn vectors_of_another_model_go_with_a_catalog_that_is_lost() {
    let bench = Bench::new(&[("SIDENOTE_EMBED_PROVIDER", "e5")]);
    bench.run(&["index"]);
    let kept = bench.kept_vectors();
    let index = bench.vault.root().join(".sidenote/index");
    fs::create_dir(index.join("vectors/minilm-5a85d15cd871")).unwrap();
    for entry in fs::read_dir(&index).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("catalog") {
            fs::remove_file(path).unwrap();
        }
    }
    bench.run(&["index"]);
    assert_eq!(bench.kept_vectors(), kept);
}

#[test]
fn the_notice_of_waiting_passages_uses_the_right_number() {
    let mut bench = Bench::new(&[("SIDENOTE_EMBED_PROVIDER", "e5")]);
    for name in ["Bridge.md", "Cat.md"] {
        fs::remove_file(bench.vault.root().join(name)).unwrap();
    }
    bench.run(&["index"]);
    let server = Server::new(8, &[]);
    ask_endpoint(&mut bench, &server, "first", 8);
    assert_eq!(bench.search("vegetables").2, "vectors of e5 answer; 1 passage waits for those of first");
}

#[test]
fn a_rebuild_keeps_the_old_vectors_serving() {
    let mut bench = Bench::new(&[("SIDENOTE_EMBED_PROVIDER", "e5")]);
    bench.run(&["index"]);
    let server = Server::new(8, &[]);
    ask_endpoint(&mut bench, &server, "first", 8);
    bench.run(&["index", "--rebuild", "--no-embed"]);
    assert_eq!(bench.search("vegetables").2, "vectors of e5 answer; 3 passages wait for those of first");
    bench.vault.write("New.md", "# New\n\nThe kitten purrs.\n");
    let found = bench.json(&["search", "purrs"]);
    let mut results = found["results"].as_array().unwrap().iter();
    assert!(results.any(|hit| hit["path"] == "New.md"), "what is new is found by its words: {found}");
    bench.run(&["index"]);
    assert_eq!(bench.search("purrs").2, "");
    assert_eq!(bench.kept_vectors().len(), 1);
}

/// Serves files at paths, as a hub does; the rest is not there.
fn hub(files: HashMap<String, Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut stream = stream;
            let mut request = String::new();
            while reader.read_line(&mut request).is_ok_and(|read| read > 2) {}
            let path = request.split(' ').nth(1).unwrap_or_default();
            let (status, body) = files.get(path).map_or((404, &[][..]), |body| (200, body));
            let head = format!(
                "HTTP/1.1 {status} So\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)));
        }
    });
    url
}

/// Serves a model of ours in place of one of the list.
fn hub_with(fixture: &str, source: &str, graph: &str) -> String {
    let folder = PathBuf::from(tiny(fixture));
    let file = |name: &str| fs::read(folder.join(name)).unwrap();
    let at = |name: &str| format!("/{source}/resolve/main/{name}");
    hub(HashMap::from([
        (at(graph), file("model.onnx")),
        (at("tokenizer.json"), file("tokenizer.json")),
        (at("config.json"), file("config.json")),
    ]))
}

#[test]
fn install_fetches_a_model_whole_or_not_at_all() {
    let mut bench = Bench::new(&[]);
    let models = bench.vault.root().join(MODELS);
    bench.set("HF_ENDPOINT", "http://127.0.0.1:9");
    let said = bench.fail(&["model", "install", "JINARerankerV1TurboEn"]);
    assert!(said.contains("cannot be reached") && said.contains("sidenote model path FOLDER"), "{said}");
    // The graph is there and the tokenizer is not.
    let at = "/jinaai/jina-reranker-v1-turbo-en/resolve/main/onnx/model.onnx";
    bench.set("HF_ENDPOINT", &hub(HashMap::from([(at.to_owned(), b"x".to_vec())])));
    assert!(bench.fail(&["model", "install", "JINARerankerV1TurboEn"]).contains("has no tokenizer.json"));
    assert_eq!(fs::read_dir(&models).unwrap().count(), 0);

    bench.set(
        "HF_ENDPOINT",
        &hub_with("tiny-reranker", "jinaai/jina-reranker-v1-turbo-en", "onnx/model.onnx"),
    );
    let installed = bench.json(&["model", "install", "jinaai/jina-reranker-v1-turbo-en"]);
    assert_eq!(installed["was_there"], false);
    assert!(models.join("JINARerankerV1TurboEn/onnx/model.onnx").is_file());
    assert_eq!(bench.json(&["model", "install", "JINARerankerV1TurboEn"])["was_there"], true);
    bench.run(&["model", "use", "JINARerankerV1TurboEn"]);
    assert_eq!(bench.json(&["model", "show"])["reranker"]["name"], "JINARerankerV1TurboEn");
    bench.run(&["model", "use", "none", "--rerank"]);
    assert_eq!(bench.json(&["model", "show"])["reranker"]["name"], "none");
}

#[test]
#[ignore = "it needs SIDENOTE_TEST_ONNXRUNTIME, a libonnxruntime"]
fn a_model_in_a_folder_is_verified_set_and_used() {
    let library = library();
    let bench = Bench::new(&[("SIDENOTE_EMBED_ONNXRUNTIME", library.to_str().unwrap())]);
    let dry = bench.run(&["model", "path", &tiny("tiny-embedder"), "--dry-run"]);
    assert!(dry.contains("tiny-embedder was tried, and works"), "{dry}");
    assert_eq!(bench.read_settings(), "");
    bench.run(&["model", "path", &tiny("tiny-embedder")]);
    assert_eq!(bench.json(&["model", "show"])["embedder"]["dimensions"], 8);
    let items = bench.json(&["model", "list"]);
    let used: Vec<&Value> = items.as_array().unwrap().iter().filter(|item| item["in_use"] == true).collect();
    assert_eq!((used.len(), &used[0]["name"]), (1, &Value::from("tiny-embedder")));
    let tried = bench.json(&["model", "verify"]);
    let checks = tried[0]["checks"].as_array().unwrap();
    assert!(!checks.is_empty() && checks.iter().all(|check| check["ok"] == true), "{tried}");
    bench.run(&["index"]);
    // "kitten" is in no note, and means what "cat" does.
    assert_eq!(bench.search("kitten"), ("Cat.md".to_owned(), "hybrid".to_owned(), String::new()));
    // A reranker is no embedder, and the other way round.
    assert!(bench.fail(&["model", "path", &tiny("tiny-reranker")]).contains("embed.dimensions"));
    assert!(bench.fail(&["model", "path", &tiny("tiny-embedder"), "--rerank"]).contains("cannot be run"));
}

#[test]
#[ignore = "it needs SIDENOTE_TEST_ONNXRUNTIME, a libonnxruntime"]
fn vectors_of_an_unexpected_length_are_refused() {
    let library = library();
    let tiny = tiny("tiny-embedder");
    let bench = Bench::new(&[
        ("SIDENOTE_EMBED_PROVIDER", "fastembed"),
        ("SIDENOTE_EMBED_DIR", &tiny),
        ("SIDENOTE_EMBED_ONNXRUNTIME", library.to_str().unwrap()),
        ("SIDENOTE_EMBED_DIMENSIONS", "9"),
    ]);
    let said = bench.fail(&["index"]);
    assert!(
        said.contains("vectors of 8 numbers, not 9") && said.contains("set embed.dimensions to 8"),
        "{said}"
    );
}

/// Makes a bench with notes of which words prefer one, and the tiny reranker another.
fn rerank_bench(env: &[(&'static str, &str)]) -> Bench {
    let bench = Bench::new(&[&[("SIDENOTE_EMBED_PROVIDER", "none")], env].concat());
    bench.vault.write("Loud.md", "# Watering week\n\nwatering week watering week\n");
    // "deep", the word that the loud note lacks, is in many.
    bench.vault.write("Other.md", "# Other\n\nThe bank raised a loan, deep in debt.\n");
    bench.vault.write("Sea.md", "# Sea\n\nThe sea is deep.\n");
    bench
}

const ASKED: &str = "watering week deep";

#[test]
#[ignore = "it needs SIDENOTE_TEST_ONNXRUNTIME, a libonnxruntime"]
fn a_reranker_reorders_the_best_hits() {
    let library = library();
    let tiny = tiny("tiny-reranker");
    let set: &[(&'static str, &str)] =
        &[("SIDENOTE_RERANK_DIR", &tiny), ("SIDENOTE_EMBED_ONNXRUNTIME", library.to_str().unwrap())];
    let bench = rerank_bench(set);
    let plain = rerank_bench(&[]);
    let results = |bench: &Bench, args: &[&str]| {
        bench.json(&[&["search", ASKED, "--explain"], args].concat())["results"].as_array().unwrap().clone()
    };
    let (read, unread) = (results(&bench, &[]), results(&plain, &[]));
    let first = |results: &[Value]| results[0]["path"].as_str().unwrap().to_owned();
    assert_eq!([first(&read), first(&unread)], ["Tomatoes.md", "Loud.md"]);
    let scores =
        |results: &[Value]| results.iter().map(|hit| hit["score"].as_f64().unwrap()).collect::<Vec<_>>();
    assert_eq!(scores(&read), scores(&unread), "the scores are dealt out anew");
    let verdicts: Vec<f64> = read.iter().map(|hit| hit["explain"]["rerank"].as_f64().unwrap()).collect();
    assert!(verdicts.is_sorted_by(|a, b| a >= b) && verdicts[0] > verdicts[1], "{verdicts:?}");
    for hit in &read {
        let share = |name: &str| hit["explain"][name].as_f64().unwrap_or_default();
        let sum = share("from_bm25") + share("from_vector") + share("from_rerank");
        assert!((sum - hit["score"].as_f64().unwrap()).abs() < 1e-5, "{hit}");
    }
    assert!(unread.iter().all(|hit| hit["explain"].get("rerank").is_none()));
    assert!(bench.run(&["search", ASKED, "--explain"]).contains("; reranker "));
    // Words alone are words alone.
    let by_words = results(&bench, &["--mode", "bm25"]);
    assert!(!by_words.is_empty() && by_words.iter().all(|hit| hit["explain"].get("rerank").is_none()));
    // What explains a place goes through the reranker, too.
    let place = |bench: &Bench| bench.json(&["ask-why", ASKED, "Tomatoes"])["rank"].clone();
    assert_eq!(place(&bench), 1);
    assert_ne!(place(&plain), 1);
    // A page holds what was asked for, and beyond the top all stays.
    assert_eq!(results(&bench, &["--limit", "1"]).len(), 1);
    assert!(bench.json(&["model", "verify"])[0]["checks"][0]["ok"] == true);

    let mut hurried = rerank_bench(set);
    hurried.set("SIDENOTE_RERANK_BUDGET_MS", "0");
    let reply = hurried.json(&["search", ASKED]);
    assert!(reply["notes"].to_string().contains("had no time"), "{reply}");
    assert_eq!(reply["results"][0]["path"], rerank_bench(&[]).json(&["search", ASKED])["results"][0]["path"]);
}

#[test]
fn a_reranker_that_cannot_run_changes_nothing() {
    let plain = rerank_bench(&[]).json(&["search", ASKED]);
    for (dir, library) in [("/nowhere".to_owned(), ""), (tiny("tiny-reranker"), "/nowhere")] {
        let bench = rerank_bench(&[("SIDENOTE_RERANK_DIR", &dir), ("SIDENOTE_EMBED_ONNXRUNTIME", library)]);
        let done = bench.command(&["--json", "search", ASKED]).output().unwrap();
        let reply: Value = serde_json::from_str(&stdout(&done)).unwrap();
        assert_eq!(reply["results"], plain["results"]);
        let said = format!("{}{}", reply["notes"], stderr(&done));
        assert!(said.contains("nowhere"), "{said}");
    }
}
