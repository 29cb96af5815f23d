//! Owns the embedder behind an endpoint that speaks OpenAI's `/v1/embeddings`: what is asked, how often, and what of the
//! answer is believed.
//!
//! Only the user's own settings lead here. What is marked private does not leave the machine.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::http::{Http, Reply, Trouble};
use super::{Effort, Embed, ModelId, OTHER_THRESHOLD, unit};
use crate::config::{EmbedConfig, Secret};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::privacy::without_private;
use crate::memory::secrets::without_secrets;
use crate::text::passage::estimate_tokens;
use crate::wording::Wording;

/// The most texts in one request.
const MOST_TEXTS: usize = 64;
/// The most bytes of text in one request of more than one text.
const MOST_BYTES: usize = 128 << 10;
/// Endpoints refuse texts beyond about 8,000 tokens.
const MAX_TOKENS: usize = 8000;
/// No token is longer than this on average.
const BYTES_A_TOKEN: usize = 3;
/// The first wait between two tries; each next one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// No wait of our own is longer.
const LONGEST_WAIT: Duration = Duration::from_secs(16);
/// A query, and work in the background, have this part of the time.
const HURRY: u32 = 5;
/// What an endpoint says of an error is cut to so many characters.
const DETAIL: usize = 200;
/// OpenAI's own, whose key may stand in `OPENAI_API_KEY`.
const OPENAI_HOST: &str = "api.openai.com";
/// Models whose vectors are known to be so long, and whether they can be asked to be shorter.
const KNOWN: &[(&str, usize, bool)] = &[
    ("text-embedding-3-small", 1536, true),
    ("text-embedding-3-large", 3072, true),
    ("text-embedding-ada-002", 1536, false),
    ("nomic-embed-text", 768, false),
    ("mxbai-embed-large", 1024, false),
    ("all-minilm", 384, false),
    ("bge-m3", 1024, false),
];

/// Waits; tests do not.
pub type Sleep = Arc<dyn Fn(Duration) + Send + Sync>;

/// An endpoint with one of its models.
pub struct OpenAi {
    id: ModelId,
    http: Http,
    url: String,
    /// The host with its port, which messages name.
    host: String,
    model: String,
    /// The length to ask for, where it is not the model's own.
    shorter: Option<usize>,
    key: Secret,
    query_prefix: String,
    passage_prefix: String,
    max_tokens: usize,
    limit: Duration,
    sleep: Sleep,
}

#[derive(Serialize)]
struct Ask<'a> {
    model: &'a str,
    input: &'a [Cow<'a, str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// What became of one try.
enum Tried {
    Done(Vec<Vec<f32>>),
    /// It may work later: why it did not now, and how long the endpoint asks to wait.
    Later(Error, Option<Duration>),
}

impl OpenAi {
    /// Makes the embedder that these settings describe; asks the endpoint nothing yet.
    ///
    /// # Errors
    /// `Invalid` where the address or the model's name is missing, or the length of its vectors is not known.
    pub fn new(config: &EmbedConfig) -> Result<Self> {
        let model = config.model.trim();
        if model.is_empty() {
            return Err(Error::invalid("embed.provider is openai, and embed.model names no model")
                .with_hints(
                    "run: sidenote model use openai:text-embedding-3-small",
                    "ask the user to choose a model",
                ));
        }
        let base = config.base_url.trim().trim_end_matches('/');
        let host = host_of(base)?;
        let known = KNOWN.iter().find(|known| known.0 == model.trim_end_matches(":latest"));
        let dimensions = match (config.dimensions, known) {
            (0, Some(&(_, own, _))) => own,
            (0, None) => {
                return Err(Error::invalid(format!("nobody told how long the vectors of {model:?} are"))
                    .with_hint("set embed.dimensions; the endpoint's own page of the model tells it"));
            }
            (told, _) => told,
        };
        let shorter = known.is_some_and(|&(_, own, bends)| bends && own != dimensions).then_some(dimensions);
        let key = match &config.api_key {
            key if !key.is_empty() => key.clone(),
            // That key is for that host alone.
            _ if host == OPENAI_HOST => std::env::var("OPENAI_API_KEY").unwrap_or_default().into(),
            _ => Secret::default(),
        };
        let told = format!("{base}\n{model}\n{dimensions}\n{}", config.passage_prefix);
        let fingerprint = blake3::hash(told.as_bytes()).to_hex();
        Ok(Self {
            id: ModelId::new(model, dimensions, fingerprint.get(..16).unwrap_or_default()),
            http: Http::default(),
            url: format!("{base}/embeddings"),
            host,
            model: model.to_owned(),
            shorter,
            key,
            query_prefix: config.query_prefix.clone(),
            passage_prefix: config.passage_prefix.clone(),
            max_tokens: if config.max_tokens == 0 { MAX_TOKENS } else { config.max_tokens },
            limit: Duration::from_secs(config.timeout_s.max(1)),
            sleep: Arc::new(std::thread::sleep),
        })
    }

    /// As it is, but waiting in another way.
    #[must_use]
    pub fn with_sleep(self, sleep: Sleep) -> Self {
        Self { sleep, ..self }
    }

    fn ask_in_batches(&self, texts: &[Cow<'_, str>], effort: Effort) -> Result<Vec<Vec<f32>>> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while !rest.is_empty() {
            let (batch, behind) = rest.split_at(batch_len(rest));
            vectors.extend(self.ask(batch, effort)?);
            rest = behind;
        }
        Ok(vectors)
    }

    /// Asks for the vectors of one batch, again and again while that may help.
    fn ask(&self, batch: &[Cow<'_, str>], effort: Effort) -> Result<Vec<Vec<f32>>> {
        let ask = Ask { model: &self.model, input: batch, dimensions: self.shorter };
        let body = serde_json::to_string(&ask)
            .map_err(|error| Error::internal("cannot write the request").with_source(error))?;
        // Whoever waits has words to go on with, and the end of a server must not wait long for its background.
        let limit = if effort == Effort::Bulk { self.limit } else { self.limit / HURRY };
        let mut spent = Duration::ZERO;
        let mut own_wait = FIRST_WAIT;
        loop {
            let begun = Instant::now();
            let tried = self.try_once(&body, batch.len(), limit.saturating_sub(spent))?;
            spent += begun.elapsed();
            let (error, asked) = match tried {
                Tried::Done(vectors) => return Ok(vectors),
                Tried::Later(error, asked) => (error, asked),
            };
            let wait = asked.unwrap_or(own_wait);
            if spent + wait >= limit {
                return Err(match asked {
                    Some(asked) if asked > limit => error.with_hint(format!(
                        "it asks to wait {} s; what is there already is kept, so go on later",
                        asked.as_secs()
                    )),
                    _ => error,
                });
            }
            tracing::debug!(wait_ms = wait.as_millis(), "the endpoint is asked again: {error}");
            (self.sleep)(wait);
            spent += wait;
            own_wait = (own_wait * 2).min(LONGEST_WAIT);
        }
    }

    fn try_once(&self, body: &str, count: usize, limit: Duration) -> Result<Tried> {
        match self.http.post_json(&self.url, &self.key, body, limit) {
            Ok(reply) => match reply.status {
                200 => self.read(&reply, count).map(Tried::Done),
                status => self.refusal(status, &reply),
            },
            Err(Trouble::TimedOut) => {
                let said = format!("{} did not answer within {} s", self.host, limit.as_secs().max(1));
                Ok(Tried::Later(
                    Error::new(ErrorKind::Io, said)
                        .with_hint("words answer meanwhile; embed.timeout_s gives it longer"),
                    None,
                ))
            }
            Err(Trouble::Broken(why)) => {
                let said = format!("the answer of {} broke off: {}", self.host, self.shown(&why));
                Ok(Tried::Later(Error::new(ErrorKind::Io, said), None))
            }
            Err(Trouble::Address(why)) => {
                Err(Error::invalid(format!("embed.base_url or embed.api_key cannot be used: {why}")))
            }
            Err(Trouble::Unreachable(why)) => {
                Err(Error::new(ErrorKind::Io, format!("{} cannot be reached: {why}", self.host))
                    .with_hint("see that it runs and that embed.base_url is right; words answer meanwhile"))
            }
            Err(Trouble::Kept(error)) => Err(Error::io("read from", &self.host, error)),
        }
    }

    /// Explains an answer that holds no vectors.
    fn refusal(&self, status: u16, reply: &Reply) -> Result<Tried> {
        let (host, model) = (&self.host, &self.model);
        let detail = self.detail(&reply.body);
        let because = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        let error = |kind, said: String, hint: Wording| Error::new(kind, said).with_hint(hint);
        let later = |said: String, hint: &str| {
            Ok(Tried::Later(error(ErrorKind::Io, said, hint.into()), reply.retry_after))
        };
        match status {
            401 | 403 if self.key.is_empty() => Err(error(
                ErrorKind::Invalid,
                format!("{host} asks for a key, and none is set ({status})"),
                "set SIDENOTE_EMBED_API_KEY, or embed.api_key in your own settings file".into(),
            )),
            401 | 403 => Err(error(
                ErrorKind::Invalid,
                format!("{host} refuses the key ({status}){because}"),
                "see that SIDENOTE_EMBED_API_KEY, or embed.api_key in your own settings file, holds a valid one".into(),
            )),
            404 | 405 => Err(error(
                ErrorKind::Invalid,
                format!("{host} has no model {model:?} under this address ({status}){because}"),
                "see that embed.model is right, and that embed.base_url ends where /embeddings begins".into(),
            )),
            429 if detail.contains("insufficient_quota") || detail.contains("quota") => Err(error(
                ErrorKind::Io,
                format!("the quota at {host} is used up (429){because}"),
                Wording::new(
                    "raise it there, or run: sidenote model use minilm",
                    "ask the user to raise it there, or to choose another model",
                ),
            )),
            429 => later(
                format!("{host} is asked too often (429){because}"),
                "what is there already is kept; go on later",
            ),
            408 | 500..=599 => later(
                format!("{host} has trouble of its own ({status}){because}"),
                "what is there already is kept; go on later",
            ),
            300..=399 => Err(error(
                ErrorKind::Invalid,
                format!("{host} leads on to another address ({status}), which is not followed"),
                "set embed.base_url to where it leads".into(),
            )),
            _ => Err(error(
                ErrorKind::Invalid,
                format!("{host} refuses the request ({status}){because}"),
                "see that embed.model, embed.dimensions and embed.max_tokens are what it serves".into(),
            )),
        }
    }

    /// Finds what an endpoint says of an error: OpenAI's form, or others' usual ones, else the text itself.
    fn detail(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        let said = serde_json::from_str::<serde_json::Value>(&text).ok().and_then(|value| {
            let error = value.get("error").unwrap_or(&value);
            let parts =
                ["message", "detail", "code"].map(|name| error.get(name).and_then(|part| part.as_str()));
            let said: Vec<&str> = parts.into_iter().flatten().collect();
            if said.is_empty() { error.as_str().map(str::to_owned) } else { Some(said.join("; ")) }
        });
        self.shown(said.as_deref().unwrap_or(&text))
    }

    /// Makes what came from outside fit to be shown: one line, not long, and without the key or parts of it.
    fn shown(&self, text: &str) -> String {
        let text = if self.key.is_empty() {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(text.replace(self.key.reveal(), "(the key)"))
        };
        let (text, _) = without_secrets(&text);
        let words: Vec<&str> = text.split_whitespace().collect();
        let line: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
        match line.char_indices().nth(DETAIL) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
            None => line,
        }
    }

    /// Reads the vectors of an answer, in the order of the texts.
    fn read(&self, reply: &Reply, count: usize) -> Result<Vec<Vec<f32>>> {
        let wrong = |what: String| {
            Error::new(ErrorKind::Io, format!("{} {what}", self.host))
                .with_hint("see that embed.base_url leads to an endpoint that speaks OpenAI's /v1/embeddings")
        };
        let answer: Answer = serde_json::from_slice(&reply.body).map_err(|error| {
            // The cause names a place, and could quote what stands there.
            wrong(format!("gave no list of vectors (line {}, column {})", error.line(), error.column()))
        })?;
        if answer.data.len() != count {
            return Err(wrong(format!("gave {} vectors for {count} texts", answer.data.len())));
        }
        let mut slots: Vec<Option<Vec<f32>>> = vec![None; count];
        for (at, item) in answer.data.into_iter().enumerate() {
            let index = item.index.unwrap_or(at);
            let slot = slots.get_mut(index).filter(|slot| slot.is_none());
            let slot = slot.ok_or_else(|| {
                wrong(format!("gave a vector for text {index} of {count} twice, or for none"))
            })?;
            *slot = Some(self.checked(item.embedding)?);
        }
        Ok(slots.into_iter().flatten().collect())
    }

    /// Refuses a vector that cannot be compared, and brings any other to length 1.
    fn checked(&self, vector: Vec<f32>) -> Result<Vec<f32>> {
        let (told, wanted) = (vector.len(), self.id.dimensions());
        if told != wanted {
            return Err(Error::invalid(format!(
                "{} gives vectors of {told} numbers for {:?}, not {wanted}",
                self.host, self.model
            ))
            .with_hint(format!("set embed.dimensions to {told}")));
        }
        unit(vector).ok_or_else(|| {
            Error::new(ErrorKind::Io, format!("{} gave a vector that is no direction", self.host))
                .with_hint("the model behind the endpoint may be damaged")
        })
    }

    /// Makes what is sent of a text.
    fn outgoing<'a>(&self, prefix: &str, text: &'a str) -> Cow<'a, str> {
        let text = without_private(text);
        let end = text.floor_char_boundary(self.max_tokens.saturating_mul(BYTES_A_TOKEN));
        let is_whole = end == text.len();
        if text.trim().is_empty() {
            // Endpoints refuse empty texts.
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
        OTHER_THRESHOLD
    }

    fn batch(&self, effort: Effort) -> usize {
        match effort {
            // The way there costs more than the vectors.
            Effort::Bulk => MOST_TEXTS,
            Effort::Foreground | Effort::Background => MOST_TEXTS / 4,
        }
    }

    fn embed(&self, texts: &[&str], effort: Effort) -> Result<Vec<Vec<f32>>> {
        let texts: Vec<_> = texts.iter().map(|text| self.outgoing(&self.passage_prefix, text)).collect();
        self.ask_in_batches(&texts, effort)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        let asked = self.ask(&[self.outgoing(&self.query_prefix, text)], Effort::Foreground)?.pop();
        asked.ok_or_else(|| Error::internal("the embedder gave no vector"))
    }

    fn count_tokens(&self, text: &str) -> usize {
        estimate_tokens(text)
    }
}

/// Counts the texts that go into the next request: one at least.
fn batch_len(texts: &[Cow<'_, str>]) -> usize {
    let mut bytes = 0;
    let fits = texts.iter().take(MOST_TEXTS).take_while(|text| {
        bytes += text.len();
        bytes <= MOST_BYTES
    });
    fits.count().max(1)
}

/// Gives the host, with its port, of an address.
fn host_of(base: &str) -> Result<String> {
    let wrong = |what: &str| {
        // The address may hold a password, so it is not repeated.
        Error::invalid(format!("embed.base_url {what}"))
            .with_hint("write it as https://api.openai.com/v1 or http://127.0.0.1:11434/v1")
    };
    let rest = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://"));
    let rest = rest.ok_or_else(|| wrong("does not begin with https:// or http://"))?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err(wrong("holds a name or password"));
    }
    if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(wrong("names no host"));
    }
    Ok(host.to_owned())
}
