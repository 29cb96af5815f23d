//! The token endpoint and the revocation endpoint (RFC 7009): codes and refresh tokens become tokens, and tokens end.

use serde_json::json;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;

use crate::AuthorizationServer;
use crate::audit::AuditEntry;
use crate::message::{Parameters, Reply, Request, is_type};
use crate::redirect_uri;
use crate::scope::Scopes;
use crate::state::{AccessToken, Grant, State};
use crate::token::{TokenHash, new_id, new_token, verifies};

/// The time in seconds for which an access token counts.
const ACCESS_SECONDS: i64 = 3600;
/// The time in milliseconds after which a refresh token that was not used expires: a client that is used once a month stays
/// connected.
const REFRESH_LIFETIME: i64 = 45 * 24 * 3_600_000;
/// The refresh tokens before the one that counts that are known: more than ten days of a client that is always used.
const MOST_EARLIER: usize = 300;
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
    fn new() -> Result<Self> {
        Ok(Self { access: new_token(ACCESS_PREFIX)?, refresh: new_token(REFRESH_PREFIX)? })
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
        let Some(code) = self.codes().take(&hash, now) else {
            // A code that was used before has been stolen, by this client or by the one before.
            self.revoke_where("code-reused", request, |grant| grant.code == hash)?;
            return Ok(invalid_grant("the code was used, has expired or does not exist"));
        };
        if code.client_id != client_id {
            return Ok(invalid_grant("the code is one of another client"));
        }
        if form.get("redirect_uri") != Some(&code.redirect_uri) {
            return Ok(invalid_grant("redirect_uri is not the one of the authorization request"));
        }
        if !verifies(verifier, &code.challenge) {
            return Ok(invalid_grant("code_verifier is not the one of code_challenge"));
        }
        if form.get("resource").is_some_and(|given| !self.is_resource(given, &code.resource)) {
            return Ok(Reply::error(
                400,
                "invalid_target",
                "resource is not the one of the authorization request",
            ));
        }
        let tokens = NewTokens::new()?;
        let grant = Grant {
            id: new_id()?,
            client_id: code.client_id,
            client_name: code.client_name,
            redirect: redirect_uri::shown(&code.redirect_uri),
            scopes: code.scopes,
            resource: code.resource,
            granted: now,
            renewed: now,
            code: hash,
            access: vec![tokens.access_at(now)],
            refresh: TokenHash::of(&tokens.refresh),
            earlier: Vec::new(),
            expires: Timestamp::from_millis(now.millis() + REFRESH_LIFETIME),
        };
        let entry = self.entry("granted", &grant, Some(request.address));
        self.state.change(now, |state| state.grants.push(grant))?;
        self.audit.add(&entry);
        Ok(tokens.reply(code.scopes))
    }

    /// Exchanges a refresh token for new tokens. One that was used before ends all tokens of its grant.
    fn refresh(&self, request: &Request<'_>, form: &Parameters, client_id: &str) -> Result<Reply> {
        let now = self.now();
        let Some(given) = form.get("refresh_token") else {
            return Ok(Reply::error(400, "invalid_request", "refresh_token is missing"));
        };
        let hash = TokenHash::of(given);
        self.revoke_where("refresh-token-reused", request, |grant| grant.earlier.contains(&hash))?;
        let tokens = NewTokens::new()?;
        let done = self.state.change(now, |state: &mut State| {
            let found = state.grants.iter_mut().find(|grant| grant.refresh == hash);
            let Some(grant) = found.filter(|grant| grant.client_id == client_id) else {
                return Err(invalid_grant(
                    "the refresh token was used, has expired, was revoked or is of another client",
                ));
            };
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
            // What was given up is not granted again by a later refresh.
            grant.scopes = scopes;
            let used = std::mem::replace(&mut grant.refresh, TokenHash::of(&tokens.refresh));
            grant.earlier.push(used);
            let beyond = grant.earlier.len().saturating_sub(MOST_EARLIER);
            grant.earlier.drain(..beyond);
            grant.access.push(tokens.access_at(now));
            let beyond = grant.access.len().saturating_sub(MOST_ACCESS);
            grant.access.drain(..beyond);
            grant.renewed = now;
            grant.expires = Timestamp::from_millis(now.millis() + REFRESH_LIFETIME);
            Ok((self.entry("refreshed", grant, Some(request.address)), scopes))
        })?;
        Ok(match done {
            Ok((entry, scopes)) => {
                self.audit.add(&entry);
                tokens.reply(scopes)
            }
            Err(refusal) => refusal,
        })
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
        let hash = TokenHash::of(token);
        let client_id = form.get("client_id");
        self.revoke_where("revoked-by-client", request, |grant| {
            let is_token = grant.refresh == hash || grant.access.iter().any(|access| access.hash == hash);
            is_token && client_id.is_none_or(|id| id == grant.client_id)
        })?;
        Ok(Reply::json(200, &json!({})))
    }

    /// Ends the grants of which `is_meant` is true.
    fn revoke_where(
        &self,
        event: &str,
        request: &Request<'_>,
        is_meant: impl Fn(&Grant) -> bool,
    ) -> Result<()> {
        // Most requests mean none, and write nothing.
        if !self.state.read()?.grants.iter().any(&is_meant) {
            return Ok(());
        }
        let ended = self.state.change(self.now(), |state| {
            let ended: Vec<AuditEntry> = state
                .grants
                .iter()
                .filter(|grant| is_meant(grant))
                .map(|grant| self.entry(event, grant, Some(request.address)))
                .collect();
            state.grants.retain(|grant| !is_meant(grant));
            ended
        })?;
        for entry in &ended {
            tracing::warn!("the grant {} ends: {event}", entry.grant.as_deref().unwrap_or_default());
            self.audit.add(entry);
        }
        Ok(())
    }
}
