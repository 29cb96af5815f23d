//! Login: checks of access tokens that identity providers issue, as an OAuth 2.1 resource server does. The only user of
//! `jsonwebtoken` and `ring`.
//!
//! No token is issued or stored here. The log gets values of a refused token that say why it is refused, and never the token.

mod issuer;
mod provider;
mod refusal;

use std::time::Duration;

use axum::http::Uri;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::{Algorithm, Validation, decode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value};
use sidenote_base::error::{Error, Result};
use sidenote_http_client::is_secure;
use sidenote_language::graphemes::beginning;
use sidenote_markdown::control::plain;
use sidenote_store::{Caller, Role};

use self::issuer::Issuer;
pub use self::issuer::KeyTimes;
pub use self::refusal::{Refusal, Refused};
use self::refusal::{quoted, told_time};

/// The longest token in bytes.
const MAX_TOKEN: usize = 8 << 10;
/// The seconds by which clocks may differ.
const LEEWAY: u64 = 60;
/// The longest shown name of a person, in characters.
const MAX_NAME: usize = 200;
/// The scopes, each with the role that it allows at most.
pub(super) const SCOPES: [(&str, Role); 3] =
    [("notes:read", Role::Reader), ("notes:write", Role::Writer), ("notes:admin", Role::Admin)];
/// What is not escaped in the name of a vault in an address.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The settings of login.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// The identity providers that are trusted, as tokens name them.
    pub issuers: Vec<String>,
    /// The audiences of tokens that are accepted besides the address of the vault.
    pub audiences: Vec<String>,
    /// The public address of the service.
    pub url: String,
    /// The claim with the groups of a person.
    pub groups_claim: String,
    /// The claim with the name of a person that is shown.
    pub name_claim: String,
    /// The names of the algorithms of signatures that are accepted.
    pub algorithms: Vec<String>,
    /// Whether the journal also records who read which notes.
    pub records_reads: bool,
    /// When keys are read again.
    pub key_times: KeyTimes,
}

/// The person of a token, and what the token allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The person.
    pub caller: Caller,
    /// The names under which the person may have rights: `issuer#subject`, and `group:NAME` for each group.
    pub names: Vec<String>,
    /// The role that the scopes of the token allow at most; `None` without a scope of ours.
    pub allowed: Option<Role>,
    /// The time until which the token is valid, in seconds since 1970.
    pub expires: u64,
}

/// Checks access tokens.
#[derive(Debug)]
pub struct Login {
    issuers: Vec<Issuer>,
    audiences: Vec<String>,
    url: String,
    groups_claim: String,
    name_claim: String,
    algorithms: Vec<(&'static str, Algorithm)>,
    pub(super) records_reads: bool,
}

/// The fields of a token's header that decide. Others, such as `jku`, `x5u` and `jwk`, mean nothing here.
#[derive(Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
    crit: Option<Value>,
}

impl Login {
    /// Reads the settings of login.
    ///
    /// # Errors
    /// `Invalid`, naming the key, if a setting cannot be used.
    pub fn new(options: LoginOptions) -> Result<Self> {
        provider::install();
        if options.issuers.is_empty() {
            return Err(Error::invalid("login.issuer names no identity provider")
                .with_hint("write the issuer as the provider's metadata has it: https://login.example"));
        }
        for issuer in &options.issuers {
            let is_plain = !issuer.contains(['#', '?', '@']) && !issuer.contains(char::is_whitespace);
            if !is_plain || !is_secure(issuer) {
                return Err(Error::invalid(format!("login.issuer has {issuer:?}, which cannot be trusted"))
                    .with_hint("write an address with https, without a query: https://login.example"));
            }
        }
        let url = options.url.trim_end_matches('/').to_owned();
        let uri = url.parse::<Uri>().ok().filter(|_| is_secure(&url));
        let is_origin =
            uri.is_some_and(|uri| uri.path() == "/" && uri.query().is_none() && !url.contains(['@', '#']));
        if !is_origin {
            return Err(Error::invalid(format!("login.url is {:?}", options.url)).with_hint(
                "write the public address of this service, with https and without a path: https://notes.example",
            ));
        }
        let mut algorithms = Vec::new();
        for name in &options.algorithms {
            let found = provider::ALGORITHMS.iter().find(|(known, _)| known == name);
            algorithms.push(*found.ok_or_else(|| {
                let known: Vec<&str> = provider::ALGORITHMS.iter().map(|(known, _)| *known).collect();
                Error::invalid(format!("login.algorithms has {name:?}, which is not accepted"))
                    .with_hint(format!("use some of {}", known.join(", ")))
            })?);
        }
        if algorithms.is_empty() {
            return Err(Error::invalid("login.algorithms is empty").with_hint("leave it out, or name some"));
        }
        let issuers = options.issuers.into_iter().map(|name| Issuer::new(name, options.key_times));
        Ok(Self {
            issuers: issuers.collect(),
            audiences: options.audiences,
            url,
            groups_claim: options.groups_claim,
            name_claim: options.name_claim,
            algorithms,
            records_reads: options.records_reads,
        })
    }

    /// Returns the address of the endpoint of a vault, which is the audience of tokens for it.
    pub fn resource(&self, vault: &str) -> String {
        format!("{}{}", self.url, resource_path(vault))
    }

    /// Returns the address of the metadata of a vault's endpoint (RFC 9728).
    pub(super) fn metadata_address(&self, vault: &str) -> String {
        format!("{}/.well-known/oauth-protected-resource{}", self.url, resource_path(vault))
    }

    /// Returns the host of the public address, with its port if it names one.
    pub(super) fn host(&self) -> Option<String> {
        let uri = self.url.parse::<Uri>().ok()?;
        uri.authority().map(ToString::to_string)
    }

    /// Lists the identity providers.
    pub(super) fn issuers(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(|issuer| issuer.name.as_str())
    }

    /// Returns an issuer whose keys are not known, so that none of its tokens can be checked. They are read first, if that was
    /// not tried a moment ago.
    pub(super) async fn issuer_without_keys(&self) -> Option<&str> {
        for issuer in &self.issuers {
            if !issuer.has_keys().await {
                return Some(&issuer.name);
            }
        }
        None
    }

    /// Checks a token for the endpoint of a vault.
    ///
    /// # Errors
    /// The reason for which the token is refused.
    pub async fn check(&self, token: &str, vault: &str) -> Result<Identity, Refused> {
        if token.len() > MAX_TOKEN {
            return Err(Refusal::TooLong.told(format!("it has {} bytes", token.len())));
        }
        let (algorithm, key_id) = self.check_header(token)?;
        let claims = insecure_decode_claims::<Map<String, Value>>(token)
            .map_err(|_| Refusal::Issuer.told(self.told_issuer(None)))?;
        let named = claims.get("iss");
        let issuer = self.issuers.iter().find(|known| named.and_then(Value::as_str) == Some(&known.name));
        let issuer = issuer.ok_or_else(|| Refusal::Issuer.told(self.told_issuer(named)))?;
        let key = issuer.find(&key_id, algorithm).await.map_err(|refusal| match refusal {
            Refusal::UnknownKey => {
                let retry_after = issuer.next_reading();
                let told = refusal.told(format!(
                    "the token names {} for {algorithm:?}, and the keys of {} were read recently; they are read again in {} s at the earliest",
                    quoted(Some(&key_id.as_str().into())),
                    issuer.name,
                    retry_after.as_secs() + 1
                ));
                Refused { retry_after: Some(retry_after), ..told }
            }
            _ => refusal.told(issuer.name.clone()),
        })?;
        let mut validation = Validation::new(algorithm);
        let resource = self.resource(vault);
        let audiences: Vec<&String> = self.audiences.iter().chain([&resource]).collect();
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.set_audience(&audiences);
        validation.set_issuer(&[&issuer.name]);
        validation.set_required_spec_claims(&["exp", "aud", "iss"]);
        let checked = decode::<Map<String, Value>>(token, &key, &validation).map_err(|error| {
            let refusal = Refusal::from(&error);
            refusal.told(told_claims(refusal, &claims, &audiences))
        })?;
        self.identity(&issuer.name, &checked.claims).map_err(Refused::from)
    }

    fn told_issuer(&self, named: Option<&Value>) -> String {
        format!(
            "the token has {}, and login.issuer is {}",
            quoted(named),
            self.issuers().collect::<Vec<_>>().join(", ")
        )
    }

    /// Checks the header of a token, and returns its algorithm and the id of its key.
    fn check_header(&self, token: &str) -> Result<(Algorithm, String), Refused> {
        let mut parts = token.split('.');
        let (Some(header), Some(_), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Refusal::Malformed.into());
        };
        let header = URL_SAFE_NO_PAD.decode(header).map_err(|_| Refusal::Malformed)?;
        let header: Header = serde_json::from_slice(&header).map_err(|_| Refusal::Malformed)?;
        let algorithm = self.algorithms.iter().find(|(name, _)| *name == header.alg);
        let (_, algorithm) = *algorithm.ok_or_else(|| {
            let accepted: Vec<&str> = self.algorithms.iter().map(|(name, _)| *name).collect();
            let found = quoted(Some(&header.alg.as_str().into()));
            Refusal::Algorithm
                .told(format!("the token has {found}, and accepted are {}", accepted.join(", ")))
        })?;
        let typ = header.typ.clone().unwrap_or_default().to_lowercase();
        if !matches!(typ.strip_prefix("application/").unwrap_or(&typ), "at+jwt" | "jwt") {
            let found = quoted(header.typ.map(Value::from).as_ref());
            return Err(Refusal::Type.told(format!("the token has {found}")));
        }
        if header.crit.is_some() {
            return Err(Refusal::Critical.into());
        }
        Ok((algorithm, header.kid.filter(|kid| !kid.is_empty()).ok_or(Refusal::NoKeyId)?))
    }

    /// Reads the person and the scopes of claims whose signature was verified.
    fn identity(&self, issuer: &str, claims: &Map<String, Value>) -> Result<Identity, Refusal> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let is_usable = |text: &&str| !text.is_empty() && !text.contains(char::is_control);
        let subject = text("sub").filter(is_usable).ok_or(Refusal::Subject)?.to_owned();
        let name = text(&self.name_claim).map(|name| plain(beginning(name, MAX_NAME)));
        let client_id = text("client_id").or_else(|| text("azp")).filter(is_usable).map(str::to_owned);
        let caller = Caller { issuer: issuer.to_owned(), subject, name, client_id };
        let groups = list(claims.get(&self.groups_claim));
        let groups = groups.into_iter().filter(is_usable).map(|group| format!("group:{group}"));
        let names = std::iter::once(caller.who()).chain(groups).collect();
        let scopes = [claims.get("scope"), claims.get("scp")].into_iter().flat_map(list);
        let scopes = scopes.flat_map(str::split_whitespace);
        let allowed = scopes.filter_map(role_of_scope).max();
        let expires = claims.get("exp").and_then(Value::as_f64).unwrap_or_default() as u64;
        Ok(Identity { caller, names, allowed, expires })
    }
}

/// Says what was expected of the claims of a token whose signature is right, and what was found. Empty for a token whose
/// signature is wrong.
fn told_claims(refusal: Refusal, claims: &Map<String, Value>, audiences: &[&String]) -> String {
    let now = jsonwebtoken::get_current_timestamp();
    match refusal {
        Refusal::Audience => {
            let accepted: Vec<&str> = audiences.iter().map(|audience| audience.as_str()).collect();
            format!("the token has {}, and accepted are {}", quoted(claims.get("aud")), accepted.join(", "))
        }
        Refusal::Expired => told_time(claims, "exp", now),
        Refusal::Early => told_time(claims, "nbf", now),
        _ => String::new(),
    }
}

impl Identity {
    /// Returns how long the token is still valid.
    pub(super) fn remaining(&self) -> Duration {
        Duration::from_secs(
            self.expires.saturating_add(LEEWAY).saturating_sub(jsonwebtoken::get_current_timestamp()),
        )
    }
}

/// Returns the path of the endpoint of a vault.
fn resource_path(vault: &str) -> String {
    format!("/v/{}/mcp", utf8_percent_encode(vault, UNESCAPED))
}

fn role_of_scope(scope: &str) -> Option<Role> {
    SCOPES.iter().find(|(name, _)| *name == scope).map(|(_, role)| *role)
}

/// Returns the texts of a claim that is one text or a list of them.
fn list(claim: Option<&Value>) -> Vec<&str> {
    match claim {
        Some(Value::String(text)) => vec![text.as_str()],
        Some(Value::Array(texts)) => texts.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}
