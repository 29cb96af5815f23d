//! The embedder of an endpoint with OpenAI's API `/v1/embeddings`: its requests, their retries, and the validation of
//! its responses.
//!
//! Only the user's own settings can configure an endpoint. Text that is marked as private is not sent.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::wording::Wording;
use sidenote_config::{EmbedConfig, Secret};
use sidenote_http_client::{Http, HttpError, Reply};
use sidenote_markdown::passage::estimate_tokens;
use sidenote_memory::privacy::without_private;
use sidenote_secrets::without_secrets;

use super::{DEFAULT_DUPLICATE_THRESHOLD, Effort, Embed, ModelId, normalize};

/// The most texts of one request.
const MAX_BATCH_TEXTS: usize = 64;
/// The most bytes of text of a request with more than one text.
const MAX_BATCH_BYTES: usize = 128 << 10;
/// The default limit of tokens. Endpoints reject texts of more than about 8,000 tokens.
const MAX_TOKENS: usize = 8000;
/// An upper bound of the mean length of a token in bytes.
const BYTES_PER_TOKEN: usize = 3;
/// The time before the first retry. It doubles with each further retry.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// The longest time before a retry, unless the endpoint asks for a longer one.
const MAX_DELAY: Duration = Duration::from_secs(16);
/// The divisor of the time limit for a query and for work in the background.
const SHORT_LIMIT_DIVISOR: u32 = 5;
/// The most characters of an endpoint's error message that a message quotes.
const MAX_DETAIL: usize = 200;
/// The host of OpenAI, whose key can be in `OPENAI_API_KEY`.
const OPENAI_HOST: &str = "api.openai.com";
/// Known models: the name, the number of dimensions, and whether shorter vectors can be requested.
const KNOWN_MODELS: &[(&str, usize, bool)] = &[
    ("text-embedding-3-small", 1536, true),
    ("text-embedding-3-large", 3072, true),
    ("text-embedding-ada-002", 1536, false),
    ("nomic-embed-text", 768, false),
    ("mxbai-embed-large", 1024, false),
    ("all-minilm", 384, false),
    ("bge-m3", 1024, false),
];

/// A function that sleeps. Tests replace it.
pub type Sleep = Arc<dyn Fn(Duration) + Send + Sync>;

/// An endpoint with one of its models.
pub struct OpenAi {
    id: ModelId,
    http: Http,
    url: String,
    /// The host and port, for messages.
    host: String,
    model: String,
    /// The number of dimensions to request, if it is not the model's own.
    requested_dimensions: Option<usize>,
    key: Secret,
    query_prefix: String,
    passage_prefix: String,
    max_tokens: usize,
    limit: Duration,
    sleep: Sleep,
}

/// The body of a request.
#[derive(Serialize)]
struct EmbeddingsRequest<'a> {
    model: &'a str,
    input: &'a [Cow<'a, str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

/// The body of a response.
#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<EmbeddingItem>,
}

/// One vector of a response.
#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// The outcome of one attempt.
enum Attempt {
    Done(Vec<Vec<f32>>),
    /// The attempt failed, and a retry can succeed: the error, and the time that the endpoint asks to wait.
    Retry(Error, Option<Duration>),
}

impl OpenAi {
    /// Creates the embedder that these settings select. No request is sent yet.
    ///
    /// # Errors
    /// Returns `Invalid` if the address is missing or malformed, no model is configured, or the length of its vectors
    /// is not known.
    pub fn new(config: &EmbedConfig) -> Result<Self> {
        let model = config.model.trim();
        if model.is_empty() {
            return Err(Error::invalid("embed.provider is openai, but embed.model is not set").with_hints(
                "run: sidenote model use openai:text-embedding-3-small",
                "ask the user to choose a model",
            ));
        }
        let base = config.base_url.trim().trim_end_matches('/');
        let host = host_of(base)?;
        let known = KNOWN_MODELS.iter().find(|known| known.0 == model.trim_end_matches(":latest"));
        let dimensions = match (config.dimensions, known) {
            (0, Some(&(_, own, _))) => own,
            (0, None) => {
                return Err(Error::invalid(format!("the length of the vectors of {model:?} is not known"))
                    .with_hint("set embed.dimensions to the number in the documentation of the model"));
            }
            (set, _) => set,
        };
        let requested_dimensions = known
            .is_some_and(|&(_, own, is_adjustable)| is_adjustable && own != dimensions)
            .then_some(dimensions);
        let key = match &config.api_key {
            key if !key.is_empty() => key.clone(),
            // That key is sent to that host only.
            _ if host == OPENAI_HOST => std::env::var("OPENAI_API_KEY").unwrap_or_default().into(),
            _ => Secret::default(),
        };
        let parameters = format!("{base}\n{model}\n{dimensions}\n{}", config.passage_prefix);
        let fingerprint = blake3::hash(parameters.as_bytes()).to_hex();
        Ok(Self {
            id: ModelId::new(model, dimensions, fingerprint.get(..16).unwrap_or_default()),
            http: Http::default(),
            url: format!("{base}/embeddings"),
            host,
            model: model.to_owned(),
            requested_dimensions,
            key,
            query_prefix: config.query_prefix.clone(),
            passage_prefix: config.passage_prefix.clone(),
            max_tokens: if config.max_tokens == 0 { MAX_TOKENS } else { config.max_tokens },
            limit: Duration::from_secs(config.timeout_s.max(1)),
            sleep: Arc::new(std::thread::sleep),
        })
    }

    /// Returns the embedder with another function for sleeping.
    #[must_use]
    pub fn with_sleep(self, sleep: Sleep) -> Self {
        Self { sleep, ..self }
    }

    fn request_all(&self, texts: &[Cow<'_, str>], effort: Effort) -> Result<Vec<Vec<f32>>> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while !rest.is_empty() {
            let (batch, remainder) = rest.split_at(batch_len(rest));
            vectors.extend(self.request(batch, effort)?);
            rest = remainder;
        }
        Ok(vectors)
    }

    /// Requests the vectors of one batch, with retries while they can succeed within the time limit.
    fn request(&self, batch: &[Cow<'_, str>], effort: Effort) -> Result<Vec<Vec<f32>>> {
        let request =
            EmbeddingsRequest { model: &self.model, input: batch, dimensions: self.requested_dimensions };
        let body = serde_json::to_string(&request)
            .map_err(|error| Error::internal("cannot write the request").with_source(error))?;
        // A search can fall back to words, and a server that shuts down must not wait long for work in the background.
        let limit = if effort == Effort::Bulk { self.limit } else { self.limit / SHORT_LIMIT_DIVISOR };
        let mut spent = Duration::ZERO;
        let mut delay = FIRST_DELAY;
        loop {
            let started = Instant::now();
            let attempt = self.try_once(&body, batch.len(), limit.saturating_sub(spent))?;
            spent += started.elapsed();
            let (error, asked) = match attempt {
                Attempt::Done(vectors) => return Ok(vectors),
                Attempt::Retry(error, asked) => (error, asked),
            };
            let wait = asked.unwrap_or(delay);
            if spent + wait >= limit {
                return Err(match asked {
                    Some(asked) if asked > limit => error.with_hint(format!(
                        "it asks to wait {} s; vectors that are computed already are kept, so continue later",
                        asked.as_secs()
                    )),
                    _ => error,
                });
            }
            tracing::debug!(wait_ms = wait.as_millis(), "the request is repeated: {error}");
            (self.sleep)(wait);
            spent += wait;
            delay = (delay * 2).min(MAX_DELAY);
        }
    }

    fn try_once(&self, body: &str, count: usize, limit: Duration) -> Result<Attempt> {
        match self.http.post_json(&self.url, &self.key, body, limit) {
            Ok(reply) => match reply.status {
                200 => self.read(&reply, count).map(Attempt::Done),
                status => self.refusal(status, &reply),
            },
            Err(HttpError::TimedOut) => {
                let message = format!("{} did not answer within {} s", self.host, limit.as_secs().max(1));
                Ok(Attempt::Retry(
                    Error::new(ErrorKind::Io, message)
                        .with_hint("searches use only words meanwhile; embed.timeout_s sets the limit"),
                    None,
                ))
            }
            Err(HttpError::Broken(why)) => {
                let message = format!("the response of {} is incomplete: {}", self.host, self.sanitize(&why));
                Ok(Attempt::Retry(Error::new(ErrorKind::Io, message), None))
            }
            Err(HttpError::Address(why)) => {
                Err(Error::invalid(format!("embed.base_url or embed.api_key cannot be used: {why}")))
            }
            Err(HttpError::Unreachable(why)) => Err(Error::new(
                ErrorKind::Io,
                format!("{} cannot be reached: {why}", self.host),
            )
            .with_hint(
                "check that it runs and that embed.base_url is correct; searches use only words meanwhile",
            )),
            Err(HttpError::Write(error)) => Err(Error::io("read from", &self.host, error)),
        }
    }

    /// Converts a response with an error status to an error, or to a retry.
    fn refusal(&self, status: u16, reply: &Reply) -> Result<Attempt> {
        let (host, model) = (&self.host, &self.model);
        let detail = self.detail(&reply.body);
        let reason = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        let error = |kind, message: String, hint: Wording| Error::new(kind, message).with_hint(hint);
        let retry = |message: String, hint: &str| {
            Ok(Attempt::Retry(error(ErrorKind::Io, message, hint.into()), reply.retry_after))
        };
        match status {
            401 | 403 if self.key.is_empty() => Err(error(
                ErrorKind::Invalid,
                format!("{host} requires an API key, and none is set ({status})"),
                "set SIDENOTE_EMBED_API_KEY, or embed.api_key in your own settings file".into(),
            )),
            401 | 403 => Err(error(
                ErrorKind::Invalid,
                format!("{host} rejects the API key ({status}){reason}"),
                "check that SIDENOTE_EMBED_API_KEY, or embed.api_key in your own settings file, is a valid key".into(),
            )),
            404 | 405 => Err(error(
                ErrorKind::Invalid,
                format!("{host} has no model {model:?} at this address ({status}){reason}"),
                "check that embed.model is correct, and that embed.base_url is the address without /embeddings".into(),
            )),
            429 if detail.contains("insufficient_quota") || detail.contains("quota") => Err(error(
                ErrorKind::Io,
                format!("the quota at {host} is used up (429){reason}"),
                Wording::new(
                    "increase the quota, or run: sidenote model use e5",
                    "ask the user to increase the quota, or to choose another model",
                ),
            )),
            429 => retry(
                format!("{host} limits the rate of requests (429){reason}"),
                "vectors that are computed already are kept; continue later",
            ),
            408 | 500..=599 => retry(
                format!("{host} failed to handle the request ({status}){reason}"),
                "vectors that are computed already are kept; continue later",
            ),
            300..=399 => Err(error(
                ErrorKind::Invalid,
                format!("{host} redirects to another address ({status}), which is not followed"),
                "set embed.base_url to the new address".into(),
            )),
            _ => Err(error(
                ErrorKind::Invalid,
                format!("{host} rejects the request ({status}){reason}"),
                "check that the endpoint supports embed.model, embed.dimensions and embed.max_tokens".into(),
            )),
        }
    }

    /// Extracts the error message of a response: in OpenAI's format, or in other usual ones, or else the whole text.
    fn detail(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        let message = serde_json::from_str::<serde_json::Value>(&text).ok().and_then(|value| {
            let error = value.get("error").unwrap_or(&value);
            let parts =
                ["message", "detail", "code"].map(|name| error.get(name).and_then(|part| part.as_str()));
            let found: Vec<&str> = parts.into_iter().flatten().collect();
            if found.is_empty() { error.as_str().map(str::to_owned) } else { Some(found.join("; ")) }
        });
        self.sanitize(message.as_deref().unwrap_or(&text))
    }

    /// Makes text from outside fit for a message: one short line, without control characters, the key and other
    /// secrets.
    fn sanitize(&self, text: &str) -> String {
        let text = if self.key.is_empty() {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(text.replace(self.key.reveal(), "(the key)"))
        };
        let (text, _) = without_secrets(&text);
        let words: Vec<&str> = text.split_whitespace().collect();
        let line: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
        match line.char_indices().nth(MAX_DETAIL) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
            None => line,
        }
    }

    /// Reads the vectors of a response, in the order of the texts.
    fn read(&self, reply: &Reply, count: usize) -> Result<Vec<Vec<f32>>> {
        let invalid = |what: String| {
            Error::new(ErrorKind::Io, format!("{} {what}", self.host))
                .with_hint("check that embed.base_url is an endpoint with OpenAI's API /v1/embeddings")
        };
        let response: EmbeddingsResponse = serde_json::from_slice(&reply.body).map_err(|error| {
            // Only the position is shown, since the message of the parser could quote the response.
            invalid(format!("returned no list of vectors (line {}, column {})", error.line(), error.column()))
        })?;
        if response.data.len() != count {
            return Err(invalid(format!("returned {} vectors for {count} texts", response.data.len())));
        }
        let mut slots: Vec<Option<Vec<f32>>> = vec![None; count];
        for (at, item) in response.data.into_iter().enumerate() {
            let index = item.index.unwrap_or(at);
            let slot = slots.get_mut(index).filter(|slot| slot.is_none());
            let slot = slot.ok_or_else(|| {
                invalid(format!(
                    "returned two vectors for text {index} of {count}, or that text does not exist"
                ))
            })?;
            *slot = Some(self.normalized(item.embedding)?);
        }
        Ok(slots.into_iter().flatten().collect())
    }

    /// Checks and normalizes a vector.
    ///
    /// # Errors
    /// Returns `Invalid` if it has the wrong length, and `Io` if it cannot be normalized.
    fn normalized(&self, vector: Vec<f32>) -> Result<Vec<f32>> {
        let (found, expected) = (vector.len(), self.id.dimensions());
        if found != expected {
            return Err(Error::invalid(format!(
                "{} returns vectors of {found} numbers for {:?}, not {expected}",
                self.host, self.model
            ))
            .with_hint(format!("set embed.dimensions to {found}")));
        }
        normalize(vector).ok_or_else(|| {
            Error::new(ErrorKind::Io, format!("{} returned a vector of zero or infinite length", self.host))
                .with_hint("the model behind the endpoint may be damaged")
        })
    }

    /// Returns what is sent of a text: its prefix and its public part, truncated to the limit of tokens.
    fn prepare<'a>(&self, prefix: &str, text: &'a str) -> Cow<'a, str> {
        let text = without_private(text);
        let end = text.floor_char_boundary(self.max_tokens.saturating_mul(BYTES_PER_TOKEN));
        let is_whole = end == text.len();
        if text.trim().is_empty() {
            // Endpoints reject empty texts.
            Cow::Owned(format!("{prefix} "))
        } else if is_whole && prefix.is_empty() {
            text
        } else {
            Cow::Owned(format!("{prefix}{}", text.get(..end).unwrap_or_default()))
        }
    }
}

impl Embed for OpenAi {
    fn model(&self) -> &ModelId {
        &self.id
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn duplicate_threshold(&self) -> f32 {
        DEFAULT_DUPLICATE_THRESHOLD
    }

    fn batch(&self, effort: Effort) -> usize {
        match effort {
            // A request costs more than the vectors.
            Effort::Bulk => MAX_BATCH_TEXTS,
            Effort::Foreground | Effort::Background => MAX_BATCH_TEXTS / 4,
        }
    }

    fn embed(&self, texts: &[&str], effort: Effort) -> Result<Vec<Vec<f32>>> {
        let texts: Vec<_> = texts.iter().map(|text| self.prepare(&self.passage_prefix, text)).collect();
        self.request_all(&texts, effort)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        let vector = self.request(&[self.prepare(&self.query_prefix, text)], Effort::Foreground)?.pop();
        vector.ok_or_else(|| Error::internal("the embedder returned no vector"))
    }

    fn count_tokens(&self, text: &str) -> usize {
        estimate_tokens(text)
    }
}

/// Returns the number of texts in the next request: at least one.
fn batch_len(texts: &[Cow<'_, str>]) -> usize {
    let mut bytes = 0;
    let fits = texts.iter().take(MAX_BATCH_TEXTS).take_while(|text| {
        bytes += text.len();
        bytes <= MAX_BATCH_BYTES
    });
    fits.count().max(1)
}

/// Returns the host and port of an address.
///
/// # Errors
/// Returns `Invalid` if it is not an HTTP address, or contains a user name or password.
fn host_of(base: &str) -> Result<String> {
    let invalid = |what: &str| {
        // The address can contain a password, so it is not repeated.
        Error::invalid(format!("embed.base_url {what}"))
            .with_hint("write it as https://api.openai.com/v1 or http://127.0.0.1:11434/v1")
    };
    let rest = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://"));
    let rest = rest.ok_or_else(|| invalid("does not begin with https:// or http://"))?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err(invalid("contains a name or password"));
    }
    if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(invalid("has no host"));
    }
    Ok(host.to_owned())
}
