//! Login of a person at a vault of a team, as a public client of OAuth 2.1: the browser, a code with PKCE, tokens for
//! this vault alone. `share/oauth/stored_login` stores the login, and no token reaches a message or the log.

mod discovery;
mod endpoints;
mod redirect;
pub mod stored_login;
pub mod token_source;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use sidenote_base::clock::{Clock, Timestamp};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_http_client::Http;
use uuid::Uuid;

use crate::address::VaultAddress;
use crate::oauth::discovery::ServerMetadata;
use crate::oauth::endpoints::Tokens;
use crate::oauth::redirect::{RedirectListener, RedirectRequest};
use crate::oauth::stored_login::{LoginStore, StoredLogin};

/// The scopes that every login asks for.
const SCOPES: [&str; 2] = ["notes:read", "notes:write"];
/// The scope for the settings of a vault.
const ADMIN_SCOPE: &str = "notes:admin";
/// The scope without which some providers give no refresh token.
const OFFLINE_SCOPE: &str = "offline_access";

/// What a login works on.
#[derive(Debug, Clone)]
pub struct LoginRequest {
    /// The vault.
    pub address: VaultAddress,
    /// The id that this program has at the provider; `None` to register it.
    pub client_id: Option<String>,
    /// Whether the right to change settings is asked for.
    pub admin: bool,
    /// How long the person may take in the browser.
    pub limit: Duration,
    /// The time.
    pub clock: Clock,
}

/// What a login would ask, and of whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoginPlan {
    /// The address of the vault.
    pub address: String,
    /// The identity provider.
    pub issuer: String,
    /// The address that the browser opens.
    pub authorization_endpoint: String,
    /// The address that gives the tokens.
    pub token_endpoint: String,
    /// The address at which this program is registered; `None` with a client id.
    pub registration_endpoint: Option<String>,
    /// The id that this program has at the provider, if it was given.
    pub client_id: Option<String>,
    /// The vault's endpoint, for which alone the tokens count.
    pub resource: String,
    /// The scopes.
    pub scopes: Vec<String>,
}

/// A login without its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoginReply {
    /// The address of the vault.
    pub address: String,
    /// The identity provider.
    pub issuer: String,
    /// The id that this program has at the provider.
    pub client_id: String,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// The time at which the token expires, if the provider says it.
    pub expires: Option<Timestamp>,
    /// Whether the token is renewed without the browser.
    pub renews: bool,
}

/// What the removal of a login did or would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForgetLoginReply {
    /// The address of the vault.
    pub address: String,
    /// Whether the provider offers to revoke tokens.
    pub revocable: bool,
    /// Whether the provider has revoked the tokens.
    pub revoked: bool,
    /// Why the provider has not revoked them.
    pub reason: Option<String>,
    /// Whether the login was removed.
    pub applied: bool,
}

/// A login whose identity provider is known.
#[derive(Debug)]
pub struct PreparedLogin {
    request: LoginRequest,
    http: Http,
    server: ServerMetadata,
}

impl LoginReply {
    fn of(login: &StoredLogin) -> Self {
        Self {
            address: login.address.clone(),
            issuer: login.issuer.clone(),
            client_id: login.client_id.clone(),
            scopes: login.scope.split_whitespace().map(str::to_owned).collect(),
            expires: login.expires,
            renews: !login.refresh_token.is_empty(),
        }
    }
}

impl PreparedLogin {
    /// Finds the identity provider of a vault. Nothing is asked of the person yet.
    ///
    /// # Errors
    /// `NotFound` if the vault has no login; `Invalid` if its provider cannot be used; `Io` if one of them cannot be reached.
    pub fn new(request: LoginRequest) -> Result<Self> {
        let http = Http::default();
        let server = discovery::discover(&http, &request.address)?;
        if request.client_id.is_none() && server.registration_endpoint.is_none() {
            return Err(Error::invalid(format!("{} does not register programs by itself", server.issuer))
                .with_hint("ask the operator of the service for a client id, and give it with --client-id"));
        }
        Ok(Self { request, http, server })
    }

    /// Returns what the login would ask.
    pub fn plan(&self) -> LoginPlan {
        let (request, server) = (&self.request, &self.server);
        let registration = server.registration_endpoint.clone().filter(|_| request.client_id.is_none());
        LoginPlan {
            address: request.address.url().to_owned(),
            issuer: server.issuer.clone(),
            authorization_endpoint: server.authorization_endpoint.clone(),
            token_endpoint: server.token_endpoint.clone(),
            registration_endpoint: registration,
            client_id: request.client_id.clone(),
            resource: request.address.resource(),
            scopes: self.scopes().into_iter().map(str::to_owned).collect(),
        }
    }

    fn scopes(&self) -> Vec<&'static str> {
        let mut scopes = SCOPES.to_vec();
        if self.request.admin {
            scopes.push(ADMIN_SCOPE);
        }
        if self.server.scopes_supported.iter().any(|scope| scope == OFFLINE_SCOPE) {
            scopes.push(OFFLINE_SCOPE);
        }
        scopes
    }

    /// Lets the person log in, and stores the tokens. `open` gets the address that the browser must open. Returns
    /// `None` if `stop` was set before the person was back.
    ///
    /// # Errors
    /// `Invalid` if the provider refuses, or its answer is not one to this login; `Io` if it cannot be reached, the person
    /// does not come back in time, or the tokens cannot be stored.
    pub fn log_in(
        &self,
        store: &LoginStore,
        stop: &AtomicBool,
        open: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<Option<LoginReply>> {
        let listener = RedirectListener::start()?;
        let redirect = listener.address();
        let client_id = match (&self.request.client_id, &self.server.registration_endpoint) {
            (Some(id), _) => id.clone(),
            (None, endpoint) => {
                endpoints::register(&self.http, endpoint.as_deref().unwrap_or_default(), redirect)?
            }
        };
        let (state, verifier) = (random_text(), random_text());
        open(&self.authorization_address(&client_id, redirect, &state, &verifier))?;
        let Some(request) = listener.wait(stop, self.request.limit)? else {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let text = format!("nobody logged in within {} s", self.request.limit.as_secs());
            return Err(Error::new(ErrorKind::Io, text).with_hint("run the command again"));
        };
        let stored = self.code(&request, &state).and_then(|code| {
            let resource = self.request.address.resource();
            let (endpoint, client) = (&self.server.token_endpoint, (&*client_id, redirect, &*resource));
            let tokens = endpoints::exchange_code(&self.http, endpoint, code, &verifier, client)
                .map_err(|error| error.with_hint("run the command again"))?;
            let login = self.login(client_id.clone(), tokens);
            let _lock = store.lock(&login.address)?;
            store.store(&login)?;
            Ok(login)
        });
        request.respond(stored.is_ok());
        stored.map(|login| Some(LoginReply::of(&login)))
    }

    fn authorization_address(&self, client_id: &str, redirect: &str, state: &str, verifier: &str) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
        let (scope, resource) = (self.scopes().join(" "), self.request.address.resource());
        let mut parameters = vec![
            ("response_type", "code"),
            ("client_id", client_id),
            ("redirect_uri", redirect),
            ("scope", &scope),
            ("state", state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &resource),
        ];
        // OpenID Connect Core, 11: a provider may ignore the scope without it.
        if self.scopes().contains(&OFFLINE_SCOPE) {
            parameters.push(("prompt", "consent"));
        }
        endpoints::authorization_address(&self.server, &parameters)
    }

    /// Checks the answer of the provider, and returns its code.
    fn code<'a>(&self, request: &'a RedirectRequest, state: &str) -> Result<&'a str> {
        let again = "run the command again, and use the page that it opens";
        if request.parameter("state")? != Some(state) {
            return Err(Error::invalid("the answer in the browser is not one to this login").with_hint(again));
        }
        match request.parameter("iss")? {
            Some(issuer) if issuer != self.server.issuer => {
                return Err(Error::invalid("the answer in the browser is from another identity provider")
                    .with_hint(
                        "somebody may be trying to get at your login; tell the operator of the service",
                    ));
            }
            None if self.server.names_issuer => {
                return Err(Error::invalid("the answer in the browser does not name the identity provider")
                    .with_hint(again));
            }
            _ => {}
        }
        if let Some(error) = request.parameter("error")? {
            let description = request.parameter("error_description")?.unwrap_or_default();
            let said = endpoints::said(error, description);
            return Err(Error::invalid(format!("{} refuses the login: {said}", self.server.issuer))
                .with_hint("run the command again; if it fails again, ask the operator of the service"));
        }
        let code = request.parameter("code")?.filter(|code| !code.is_empty());
        code.ok_or_else(|| Error::invalid("the answer in the browser has no code").with_hint(again))
    }

    fn login(&self, client_id: String, tokens: Tokens) -> StoredLogin {
        StoredLogin {
            address: self.request.address.url().to_owned(),
            issuer: self.server.issuer.clone(),
            client_id,
            scope: tokens.scope.unwrap_or_else(|| self.scopes().join(" ")),
            token_endpoint: self.server.token_endpoint.clone(),
            revocation_endpoint: self.server.revocation_endpoint.clone(),
            access_token: tokens.access,
            refresh_token: tokens.refresh,
            expires: token_source::expiry(self.request.clock.now(), tokens.seconds),
        }
    }
}

/// Lists the logins of a user, without their tokens.
///
/// # Errors
/// The errors of [`LoginStore::list`].
pub fn list(store: &LoginStore) -> Result<Vec<LoginReply>> {
    Ok(store.list()?.iter().map(LoginReply::of).collect())
}

/// Removes the login at a vault, and has the provider revoke its tokens if it offers that. A provider that cannot be reached
/// does not keep the login from being removed.
///
/// # Errors
/// `NotFound` without a login; `Io` if it cannot be removed.
pub fn forget(store: &LoginStore, address: &VaultAddress, dry_run: bool) -> Result<ForgetLoginReply> {
    let find = || {
        store.find(address.url())?.ok_or_else(|| {
            Error::not_found(format!("there is no login at {}", address.url()))
                .with_hint("`sidenote login --list` shows the logins")
        })
    };
    let mut login = find()?;
    let mut reply = ForgetLoginReply {
        address: login.address.clone(),
        revocable: login.revocation_endpoint.is_some(),
        revoked: false,
        reason: None,
        applied: !dry_run,
    };
    if dry_run {
        return Ok(reply);
    }
    let _lock = store.lock(address.url())?;
    // Another process may have renewed it.
    login = find()?;
    if let Some(endpoint) = &login.revocation_endpoint {
        match revoke(endpoint, &login) {
            Ok(()) => reply.revoked = true,
            Err(error) => reply.reason = Some(error.to_string()),
        }
    }
    store.remove(address.url())?;
    Ok(reply)
}

/// Revokes the refresh token, with which providers revoke the access token, and else the access token.
fn revoke(endpoint: &str, login: &StoredLogin) -> Result<()> {
    let (token, kind) = match login.refresh_token.is_empty() {
        false => (&login.refresh_token, "refresh_token"),
        true => (&login.access_token, "access_token"),
    };
    endpoints::revoke(&Http::default(), endpoint, token, kind, &login.client_id)
}

/// Returns 64 characters with 244 random bits.
fn random_text() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
