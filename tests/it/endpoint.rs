//! Tests the embedder behind an OpenAI-compatible endpoint, against a server of the test's own: order, batches,
//! retries, errors, and that the key is never shown.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sidenote::config::{Config, EmbedConfig};
use sidenote::embed::{Effort, Embed, OpenAi};

/// A key that must never be shown.
const KEY: &str = "sk-test-0123456789abcdefSECRET";

/// How the server answers a request.
#[derive(Clone)]
pub(crate) enum Say {
    /// Vectors made of the texts, as an endpoint should.
    Vectors,
    /// The same, the last one first.
    Backwards,
    /// A status, headers and a body.
    Status(u16, &'static str, String),
    /// Nothing at all.
    Silence,
    /// A body with status 200.
    Body(String),
}

/// What one request held.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) key: Option<String>,
    pub(crate) body: Value,
}

impl Asked {
    fn texts(&self) -> Vec<&str> {
        self.body["input"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// What gives a text its vector.
type Model = dyn Fn(&str) -> Vec<f32> + Send + Sync;

/// A server that gives the requested answers, and after them those of a correct endpoint.
pub(crate) struct Server {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    says: Arc<Mutex<VecDeque<Say>>>,
}

impl Server {
    pub(crate) fn new(dimensions: usize, says: &[Say]) -> Self {
        Self::of_model(move |text| vector_of(text, dimensions), says)
    }

    /// A server whose vectors `model` computes.
    pub(crate) fn of_model(model: impl Fn(&str) -> Vec<f32> + Send + Sync + 'static, says: &[Say]) -> Self {
        let model: Arc<Model> = Arc::new(model);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let says = Arc::new(Mutex::new(says.iter().cloned().collect::<VecDeque<Say>>()));
        let (heard, told) = (Arc::clone(&asked), Arc::clone(&says));
        // It ends with the process of the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (heard, told, model) = (Arc::clone(&heard), Arc::clone(&told), Arc::clone(&model));
                std::thread::spawn(move || serve(stream, &*model, &heard, &told));
            }
        });
        Self { url, asked, says }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Sets the next answers of the server.
    pub(crate) fn then(&self, says: &[Say]) {
        self.says.lock().unwrap().extend(says.iter().cloned());
    }
}

fn serve(stream: TcpStream, model: &Model, heard: &Mutex<Vec<Asked>>, told: &Mutex<VecDeque<Say>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    // One connection may bring several requests.
    while let Some(asked) = read_request(&mut reader) {
        let say = told.lock().unwrap().pop_front().unwrap_or(Say::Vectors);
        heard.lock().unwrap().push(asked.clone());
        let (status, headers, body) = match say {
            Say::Vectors => (200, "", vectors(&asked, model, false)),
            Say::Backwards => (200, "", vectors(&asked, model, true)),
            Say::Body(body) => (200, "", body),
            Say::Status(status, headers, body) => (status, headers, body),
            Say::Silence => {
                // Until the client gives up and closes.
                drop(reader.read(&mut [0]));
                return;
            }
        };
        let head = format!("HTTP/1.1 {status} So\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (mut length, mut key) = (0, None);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "authorization" => key = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { path, key, body: serde_json::from_slice(&body).unwrap_or_default() })
}

/// Gives each text the direction that its letters make: texts of the same words point the same way.
fn vector_of(text: &str, dimensions: usize) -> Vec<f32> {
    let mut vector = vec![0.01; dimensions];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let at = word.bytes().fold(7usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        vector[at % dimensions] += 2.0;
    }
    vector
}

fn vectors(asked: &Asked, model: &Model, backwards: bool) -> String {
    let texts = asked.texts();
    let mut data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({ "index": index, "embedding": model(text) }))
        .collect();
    if backwards {
        data.reverse();
    }
    json!({ "object": "list", "data": data, "model": "m" }).to_string()
}

fn settings(url: &str, dimensions: usize) -> EmbedConfig {
    let nowhere = tempfile::tempdir().unwrap();
    let flags = [
        ("embed.provider", "openai".to_owned(), "test"),
        ("embed.model", "some-model".to_owned(), "test"),
        ("embed.base_url", url.to_owned(), "test"),
        ("embed.api_key", KEY.to_owned(), "test"),
        ("embed.dimensions", dimensions.to_string(), "test"),
        ("embed.timeout_s", "30".to_owned(), "test"),
    ];
    Config::load(nowhere.path(), &flags).unwrap().embed
}

/// An embedder at a server, and how long it would have waited.
struct Rig {
    server: Server,
    embedder: OpenAi,
    waits: Arc<Mutex<Vec<Duration>>>,
}

fn rig(says: &[Say]) -> Rig {
    rig_with(8, says, |_| {})
}

fn rig_with(dimensions: usize, says: &[Say], change: impl FnOnce(&mut EmbedConfig)) -> Rig {
    let server = Server::new(dimensions, says);
    let mut config = settings(&server.url, dimensions);
    change(&mut config);
    let waits: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let kept = Arc::clone(&waits);
    let embedder = OpenAi::new(&config).unwrap();
    let embedder = embedder.with_sleep(Arc::new(move |wait| kept.lock().unwrap().push(wait)));
    Rig { server, embedder, waits }
}

impl Rig {
    fn embed(&self, texts: &[&str]) -> sidenote::base::error::Result<Vec<Vec<f32>>> {
        self.embedder.embed(texts, Effort::Bulk)
    }

    fn seconds_waited(&self) -> Vec<f64> {
        self.waits.lock().unwrap().iter().map(Duration::as_secs_f64).collect()
    }
}

/// Asks for one text and expects a failure; gives its sentence and hint, in which no key may stand.
#[track_caller]
fn refused(rig: &Rig) -> String {
    let error = rig.embed(&["a text"]).unwrap_err();
    let said = format!("{error} | {}", error.hint().unwrap_or_default());
    assert!(!format!("{said}{error:?}").contains("SECRET"), "{error:?}");
    said
}

/// Expects a failure at the first answer, in these words.
#[track_caller]
fn check_refusal(say: Say, words: &[&str]) {
    let rig = rig(&[say]);
    let said = refused(&rig);
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
    assert_eq!(rig.server.asked().len(), 1, "{said}");
}

fn is_vector_of(vector: &[f32], text: &str) -> bool {
    let wanted = vector_of(text, vector.len());
    let length = wanted.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter().zip(&wanted).all(|(is, should)| (is - should / length).abs() < 1e-5)
}

#[test]
fn vectors_come_in_the_order_of_the_texts_and_with_length_one() {
    for say in [Say::Vectors, Say::Backwards] {
        let rig = rig(&[say]);
        let texts = ["first words", "second", "third of all"];
        let vectors = rig.embed(&texts).unwrap();
        assert!(
            vectors.len() == texts.len()
                && texts.iter().zip(&vectors).all(|(text, is)| is_vector_of(is, text))
        );
        let asked = rig.server.asked();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].path, "/v1/embeddings");
        assert_eq!(asked[0].key.as_deref(), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(asked[0].body["model"], "some-model");
        assert!(asked[0].body.get("dimensions").is_none());
    }
}

#[test]
fn texts_are_batched_by_count_and_bytes() {
    let rig = rig(&[]);
    let texts: Vec<String> = (0..150).map(|number| format!("text {number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = rig.embed(&texts).unwrap();
    assert!(
        vectors.len() == texts.len() && texts.iter().zip(&vectors).all(|(text, is)| is_vector_of(is, text))
    );
    let counts = |rig: &Rig| rig.server.asked().iter().map(|asked| asked.texts().len()).collect::<Vec<_>>();
    assert_eq!(counts(&rig), [64, 64, 22]);

    let long = self::rig(&[]);
    let text = "word ".repeat(4_000);
    assert_eq!(long.embed(&[&*text; 10]).unwrap().len(), 10);
    assert_eq!(counts(&long), [6, 4]);
    // More than a model sees is not sent.
    let huge = "word ".repeat(40_000);
    long.embed(&[&huge]).unwrap();
    assert_eq!(long.server.asked()[2].texts()[0].len(), 24_000);
}

#[test]
fn transient_errors_are_retried() {
    let busy = || Say::Status(503, "", String::new());
    let patient = rig(&[busy(), busy(), busy()]);
    patient.embed(&["a text"]).unwrap();
    assert_eq!(patient.seconds_waited(), [0.5, 1.0, 2.0]);
    assert_eq!(patient.server.asked().len(), 4);

    let limited = |headers| Say::Status(429, headers, json!({"error": {"message": "slow down"}}).to_string());
    for (headers, wait) in [("Retry-After: 7\r\n", 7.0), ("retry-after-ms: 250\r\n", 0.25)] {
        let rig = rig(&[limited(headers)]);
        rig.embed(&["a text"]).unwrap();
        assert_eq!(rig.seconds_waited(), [wait]);
    }
    // There is no wait beyond the limit.
    let late = rig(&[limited("Retry-After: 600\r\n")]);
    let said = refused(&late);
    assert!(said.contains("limits the rate of requests (429): slow down | it asks to wait 600 s"), "{said}");
    assert!(late.seconds_waited().is_empty());
    // The number of retries is limited.
    let broken = rig(&vec![busy(); 40]);
    let said = refused(&broken);
    assert!(said.contains("failed to handle the request (503)"), "{said}");
    assert_eq!(broken.seconds_waited(), [0.5, 1.0, 2.0, 4.0, 8.0]);
}

#[test]
fn permanent_errors_are_reported_without_retries() {
    let error = |text: &str| json!({ "error": { "message": text, "code": "c" } }).to_string();
    let told = error(&format!("Incorrect API key provided: {KEY}"));
    check_refusal(
        Say::Status(401, "", told),
        &["rejects the API key (401)", "(the key)", "SIDENOTE_EMBED_API_KEY"],
    );
    check_refusal(
        Say::Status(400, "", error("bad model")),
        &["rejects the request (400): bad model", "embed.model"],
    );
    check_refusal(
        Say::Status(404, "", error("no such model")),
        &["has no model \"some-model\"", "embed.base_url"],
    );
    check_refusal(Say::Status(429, "", error("insufficient_quota")), &["quota", "used up"]);
    check_refusal(Say::Status(307, "Location: http://127.0.0.1:9/\r\n", String::new()), &["is not followed"]);
    check_refusal(Say::Body("<html>hello</html>".to_owned()), &["returned no list of vectors", "line 1"]);
    check_refusal(Say::Body(json!({"data": []}).to_string()), &["returned 0 vectors for 1 texts"]);
    let one = |index: usize, vector: Value| {
        Say::Body(json!({"data": [{"index": index, "embedding": vector}]}).to_string())
    };
    check_refusal(one(0, json!([1.0, 2.0])), &["vectors of 2 numbers", "not 8", "set embed.dimensions to 2"]);
    check_refusal(one(1, json!([1, 0, 0, 0, 0, 0, 0, 0])), &["text 1 of 1"]);
    check_refusal(one(0, json!([0, 0, 0, 0, 0, 0, 0, 0])), &["zero or infinite"]);
    check_refusal(one(0, json!([1e39, 0, 0, 0, 0, 0, 0, 0])), &["vector"]);
    check_refusal(one(0, json!([null, 0, 0, 0, 0, 0, 0, 0])), &["returned no list of vectors"]);
}

#[test]
fn a_missing_key_is_distinguished_from_a_wrong_one() {
    let rig =
        rig_with(8, &[Say::Status(401, "", String::new())], |config| config.api_key = String::new().into());
    let said = refused(&rig);
    assert!(said.contains("requires an API key, and none is set"), "{said}");
    assert_eq!(rig.server.asked()[0].key, None);
}

#[test]
fn timeouts_and_refused_connections_are_reported() {
    let rig = rig_with(8, &[Say::Silence], |config| config.timeout_s = 1);
    let said = refused(&rig);
    assert!(said.contains("did not answer within 1 s"), "{said}");

    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let gone = OpenAi::new(&settings(&format!("http://127.0.0.1:{port}/v1"), 8)).unwrap();
    let error = gone.embed(&["a text"], Effort::Bulk).unwrap_err();
    assert!(error.to_string().starts_with(&format!("127.0.0.1:{port} cannot be reached")), "{error}");
    assert!(error.hint().unwrap().contains("embed.base_url"));
}

#[test]
fn private_text_is_not_sent() {
    let rig = rig(&[]);
    rig.embed(&["seen <private>hidden</private> seen too", "<private>all of it"]).unwrap();
    assert_eq!(rig.server.asked()[0].texts(), ["seen  seen too", " "]);
}

#[test]
fn queries_and_passages_may_have_prefixes() {
    let rig = rig_with(8, &[], |config| {
        config.query_prefix = "query: ".to_owned();
        config.passage_prefix = "passage: ".to_owned();
    });
    rig.embed(&["a text"]).unwrap();
    rig.embedder.embed_query("a question").unwrap();
    let asked = rig.server.asked();
    assert_eq!([asked[0].texts(), asked[1].texts()], [["passage: a text"], ["query: a question"]]);
}

#[test]
fn a_known_model_can_be_asked_for_shorter_vectors() {
    let ask = |dimensions| {
        let rig = rig_with(dimensions, &[], |config| config.model = "text-embedding-3-small".to_owned());
        rig.embed(&["a text"]).unwrap();
        rig.server.asked()[0].body.get("dimensions").cloned()
    };
    assert_eq!(ask(256), Some(json!(256)));
    assert_eq!(ask(1536), None);
}

/// Expects settings to be refused in these words.
#[track_caller]
fn check_settings(change: impl FnOnce(&mut EmbedConfig), words: &str) {
    let mut config = settings("http://127.0.0.1:9/v1", 8);
    change(&mut config);
    let error = OpenAi::new(&config).err().unwrap();
    assert!(error.to_string().contains(words), "{error}");
    assert!(!format!("{config:?}{error:?}").contains("SECRET"));
}

#[test]
fn invalid_settings_are_refused() {
    check_settings(|config| config.model.clear(), "embed.model is not set");
    check_settings(|config| config.dimensions = 0, "the length of the vectors");
    check_settings(|config| config.base_url = "ftp://host/v1".to_owned(), "does not begin with https://");
    check_settings(|config| config.base_url = "http://me:word@host/v1".to_owned(), "a name or password");
    check_settings(|config| config.base_url = "https:///v1".to_owned(), "has no host");
}

#[test]
fn another_address_or_length_is_another_model() {
    let id = |url: &str, dimensions| OpenAi::new(&settings(url, dimensions)).unwrap().model().key();
    let one = id("http://127.0.0.1:9/v1", 8);
    assert_eq!(one, id("http://127.0.0.1:9/v1/", 8));
    assert_ne!(one, id("http://127.0.0.1:8/v1", 8));
    assert_ne!(one, id("http://127.0.0.1:9/v1", 16));
}
