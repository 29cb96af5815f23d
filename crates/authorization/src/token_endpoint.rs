//! The token endpoint and the revocation endpoint (RFC 7009): codes and refresh tokens become tokens, and tokens end.

use serde_json::json;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;

use crate::AuthorizationServer;
use crate::audit::AuditEntry;
use crate::code::Code;
use crate::message::{Parameters, Reply, Request, is_type};
use crate::redirect_uri;
use crate::scope::Scopes;
use crate::state::{AccessToken, Grant, Refreshes, State, UsedToken};
use crate::token::{TokenHash, family_of, new_id, new_token, next_of_family, verifies};

/// The time in seconds for which an access token counts.
const ACCESS_SECONDS: i64 = 3600;
/// The time in milliseconds after which a refresh token that was not used expires: a client that is used once a month stays
/// connected.
const REFRESH_LIFETIME: i64 = 45 * 24 * 3_600_000;
/// The time in milliseconds for which the refresh token before may be used again, as long as the one after it was not: a
/// reply may be lost.
const GRACE: i64 = 60_000;
/// The refreshes of a grant in each hour. A client needs one, and some more if it starts several processes.
const MOST_REFRESHES: u32 = 60;
const HOUR: i64 = 3_600_000;
/// The access tokens of a grant that count at a time.
const MOST_ACCESS: usize = 4;
/// The beginnings of the tokens.
const ACCESS_PREFIX: &str = "sidenote-access-";
const REFRESH_PREFIX: &str = "sidenote-refresh-";

/// New tokens, which are sent once.
struct NewTokens {
    access: String,
    refresh: String,
}

impl NewTokens {
    /// Makes tokens of a grant, whose refresh tokens are a family.
    fn of_family(family: &str) -> Result<Self> {
        Ok(Self { access: new_token(ACCESS_PREFIX)?, refresh: next_of_family(family)? })
    }

    fn access_at(&self, now: Timestamp) -> AccessToken {
        let expires = Timestamp::from_millis(now.millis() + ACCESS_SECONDS * 1000);
        AccessToken { hash: TokenHash::of(&self.access), expires }
    }

    fn reply(&self, scopes: Scopes) -> Reply {
        let document = json!({
            "access_token": self.access,
            "token_type": "Bearer",
            "expires_in": ACCESS_SECONDS,
            "refresh_token": self.refresh,
            "scope": scopes.text(),
        });
        Reply::json(200, &document).with("pragma", "no-cache")
    }
}

/// What came of a request for tokens.
enum Outcome {
    /// The new tokens count, with these scopes. A line of the audit log belongs to it, if any.
    Issued(Option<AuditEntry>, Scopes),
    /// The request is refused, and these grants have ended, by this event.
    Refused(Reply, Vec<Grant>, &'static str),
}

impl Outcome {
    fn refused(reply: Reply) -> Self {
        Self::Refused(reply, Vec::new(), "")
    }
}

/// Counts a refresh. Returns whether it is the first of its hour, or `None` if there were too many.
fn count_refresh(refreshes: &mut Refreshes, now: Timestamp) -> Option<bool> {
    let hour = now.millis().div_euclid(HOUR);
    if refreshes.hour != hour {
        *refreshes = Refreshes { hour, count: 0 };
    }
    if refreshes.count >= MOST_REFRESHES {
        return None;
    }
    refreshes.count += 1;
    Some(refreshes.count == 1)
}

fn invalid_grant(why: &str) -> Reply {
    Reply::error(400, "invalid_grant", why)
}

/// Reads the form of a request to an endpoint that takes POST alone.
fn form_of(request: &Request<'_>) -> std::result::Result<Parameters, Reply> {
    if request.method != "POST" {
        return Err(Reply::error(405, "invalid_request", "use POST").with("allow", "POST"));
    }
    if !is_type(request.content_type, "application/x-www-form-urlencoded") {
        return Err(Reply::error(415, "invalid_request", "send application/x-www-form-urlencoded"));
    }
    if request.has_credentials {
        let why = "clients have no secret here: send client_id in the body, without an Authorization header";
        return Err(
            Reply::error(401, "invalid_client", why).with("www-authenticate", "Basic realm=\"sidenote\"")
        );
    }
    Parameters::parse(request.body).map_err(|twice| match twice {
        Some(_) => Reply::error(400, "invalid_request", "a parameter is given twice"),
        None => Reply::error(400, "invalid_request", "there are too many parameters"),
    })
}

impl AuthorizationServer {
    /// Answers at the token endpoint.
    pub(crate) fn token(&self, request: &Request<'_>) -> Result<Reply> {
        let form = match form_of(request) {
            Ok(form) => form,
            Err(refusal) => return Ok(refusal),
        };
        let Some(client_id) = form.get("client_id") else {
            return Ok(Reply::error(401, "invalid_client", "client_id is missing"));
        };
        match form.get("grant_type") {
            Some("authorization_code") => self.redeem(request, &form, client_id),
            Some("refresh_token") => self.refresh(request, &form, client_id),
            None => Ok(Reply::error(400, "invalid_request", "grant_type is missing")),
            Some(_) => Ok(Reply::error(
                400,
                "unsupported_grant_type",
                "grant_type is authorization_code or refresh_token",
            )),
        }
    }

    /// Exchanges a code for tokens.
    fn redeem(&self, request: &Request<'_>, form: &Parameters, client_id: &str) -> Result<Reply> {
        let now = self.now();
        let (Some(code), Some(verifier)) = (form.get("code"), form.get("code_verifier")) else {
            return Ok(Reply::error(400, "invalid_request", "code and code_verifier are required"));
        };
        let hash = TokenHash::of(code);
        let unknown = || invalid_grant("the code was used, has expired or does not exist");
        // What is made up takes no lock.
        let is_known =
            self.codes().knows(&hash) || self.state.read()?.grants.iter().any(|grant| grant.code == hash);
        if !is_known {
            return Ok(unknown());
        }
        let family = new_token(REFRESH_PREFIX)?;
        let (tokens, id) = (NewTokens::of_family(&family)?, new_id()?);
        // The code is taken and the grant stored in one change, so that a second use always finds the one or the other.
        let done = self.state.change(now, |state| {
            let Some(code) = self.codes().take(&hash, now) else {
                // A code that was used before has been stolen, by this client or by the one before.
                let ended = state.end(|grant| grant.code == hash);
                return Outcome::Refused(unknown(), ended, "code-reused");
            };
            if let Some(refusal) = self.code_fault(&code, form, client_id, verifier) {
                return Outcome::refused(refusal);
            }
            if code.generation != state.generation {
                return Outcome::refused(invalid_grant(
                    "access was taken back since, or another passphrase was set",
                ));
            }
            let vault = self.resources.iter().find(|known| known.address == code.resource);
            let grant = Grant {
                id,
                vault: vault.map(|vault| vault.identity.clone()).unwrap_or_default(),
                client_id: code.client_id,
                client_name: code.client_name,
                redirect: redirect_uri::shown(&code.redirect_uri),
                scopes: code.scopes,
                resource: code.resource,
                granted: now,
                renewed: now,
                code: hash.clone(),
                access: vec![tokens.access_at(now)],
                family: TokenHash::of(&family),
                refresh: TokenHash::of(&tokens.refresh),
                previous: None,
                refreshes: Refreshes::default(),
                expires: Timestamp::from_millis(now.millis() + REFRESH_LIFETIME),
            };
            let entry = self.entry("granted", &grant, Some(request.address));
            state.grants.push(grant);
            Outcome::Issued(Some(entry), code.scopes)
        })?;
        Ok(self.finish(request, done, &tokens))
    }

    /// Says why a request may not have the tokens of a code, if so.
    fn code_fault(&self, code: &Code, form: &Parameters, client_id: &str, verifier: &str) -> Option<Reply> {
        if code.client_id != client_id {
            return Some(invalid_grant("the code is one of another client"));
        }
        if form.get("redirect_uri") != Some(&code.redirect_uri) {
            return Some(invalid_grant("redirect_uri is not the one of the authorization request"));
        }
        if !verifies(verifier, &code.challenge) {
            return Some(invalid_grant("code_verifier is not the one of code_challenge"));
        }
        if form.get("resource").is_some_and(|given| !self.is_resource(given, &code.resource)) {
            let why = "resource is not the one of the authorization request";
            return Some(Reply::error(400, "invalid_target", why));
        }
        None
    }

    /// Exchanges a refresh token for new tokens. One that was used before ends all tokens of its grant, but for the last one
    /// within [`GRACE`].
    fn refresh(&self, request: &Request<'_>, form: &Parameters, client_id: &str) -> Result<Reply> {
        let now = self.now();
        let Some(given) = form.get("refresh_token") else {
            return Ok(Reply::error(400, "invalid_request", "refresh_token is missing"));
        };
        let why = "the refresh token was used, has expired, was revoked or is of another client";
        let unknown = || Outcome::refused(invalid_grant(why));
        let Some(secret) = family_of(given) else { return Ok(invalid_grant(why)) };
        let (hash, family) = (TokenHash::of(given), TokenHash::of(secret));
        // What is made up takes no lock.
        if !self.state.read()?.grants.iter().any(|grant| grant.family == family) {
            return Ok(invalid_grant(why));
        }
        let tokens = NewTokens::of_family(secret)?;
        let done = self.state.change(now, |state: &mut State| {
            let Some(grant) = state.grants.iter_mut().find(|grant| grant.family == family) else {
                return unknown();
            };
            let is_current = grant.refresh == hash;
            let is_repeated = grant.previous.as_ref().is_some_and(|previous| {
                let age = now.millis() - previous.used.millis();
                previous.hash == hash && (0..GRACE).contains(&age)
            });
            if !is_current && !is_repeated {
                let ended = state.end(|grant| grant.family == family);
                return Outcome::Refused(invalid_grant(why), ended, "refresh-token-reused");
            }
            if grant.client_id != client_id {
                return unknown();
            }
            let scopes = match self.refresh_scopes(grant, form) {
                Ok(scopes) => scopes,
                Err(refusal) => return Outcome::refused(refusal),
            };
            let Some(is_first) = count_refresh(&mut grant.refreshes, now) else {
                let why = "the client asks for tokens too often; use the ones that it has";
                let refusal = Reply::error(429, "temporarily_unavailable", why);
                return Outcome::refused(refusal.with("retry-after", "3600"));
            };
            // What was given up is not granted again by a later refresh.
            grant.scopes = scopes;
            let successor = std::mem::replace(&mut grant.refresh, TokenHash::of(&tokens.refresh));
            // At a repetition, the successor was not used by anybody, and counts no more.
            if is_current {
                grant.previous = Some(UsedToken { hash: successor, used: now });
            }
            grant.access.push(tokens.access_at(now));
            let beyond = grant.access.len().saturating_sub(MOST_ACCESS);
            grant.access.drain(..beyond);
            grant.renewed = now;
            grant.expires = Timestamp::from_millis(now.millis() + REFRESH_LIFETIME);
            let entry = is_first.then(|| self.entry("refreshed", grant, Some(request.address)));
            Outcome::Issued(entry, scopes)
        })?;
        Ok(self.finish(request, done, &tokens))
    }

    /// Returns the scopes that a refresh asks for, or says why it cannot have them.
    fn refresh_scopes(&self, grant: &Grant, form: &Parameters) -> std::result::Result<Scopes, Reply> {
        let asked = form.get("scope").map(|text| Scopes::of_request(Some(text), Scopes::Write));
        let scopes = match asked {
            None => grant.scopes,
            Some(Some(asked)) if asked <= grant.scopes => asked,
            Some(_) => {
                return Err(Reply::error(400, "invalid_scope", "the scope is more than was granted"));
            }
        };
        if form.get("resource").is_some_and(|given| !self.is_resource(given, &grant.resource)) {
            return Err(Reply::error(400, "invalid_target", "the grant is for another resource"));
        }
        if !self.serves(grant) {
            return Err(invalid_grant("the endpoint has another vault now; connect the client again"));
        }
        Ok(scopes)
    }

    /// Notes what came of a request for tokens, and answers it.
    fn finish(&self, request: &Request<'_>, done: Outcome, tokens: &NewTokens) -> Reply {
        match done {
            Outcome::Issued(entry, scopes) => {
                if let Some(entry) = entry {
                    self.audit.add(&entry);
                }
                tokens.reply(scopes)
            }
            Outcome::Refused(reply, ended, event) => {
                self.note_ended(request, event, &ended);
                reply
            }
        }
    }

    /// Answers at the revocation endpoint. Any of its tokens ends the whole grant; a token that is none is no error.
    pub(crate) fn revoke(&self, request: &Request<'_>) -> Result<Reply> {
        let form = match form_of(request) {
            Ok(form) => form,
            Err(refusal) => return Ok(refusal),
        };
        let Some(token) = form.get("token") else {
            return Ok(Reply::error(400, "invalid_request", "token is missing"));
        };
        let (hash, family) = (TokenHash::of(token), family_of(token).map(TokenHash::of));
        let client_id = form.get("client_id");
        let is_meant = |grant: &Grant| {
            // A refresh token that was used before ends its grant as well.
            let is_token = family.as_ref() == Some(&grant.family)
                || grant.access.iter().any(|access| access.hash == hash);
            is_token && client_id.is_none_or(|id| id == grant.client_id)
        };
        // Most requests of strangers mean none, and write nothing.
        if self.state.read()?.grants.iter().any(is_meant) {
            let ended = self.state.change(self.now(), |state| state.end(is_meant))?;
            self.note_ended(request, "revoked-by-client", &ended);
        }
        Ok(Reply::json(200, &json!({})))
    }

    /// Notes in the log that grants have ended.
    fn note_ended(&self, request: &Request<'_>, event: &str, ended: &[Grant]) {
        for grant in ended {
            tracing::warn!("the grant {} ends: {event}", grant.id);
            self.audit.add(&self.entry(event, grant, Some(request.address)));
        }
    }
}
