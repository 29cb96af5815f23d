//! The authorization endpoint: checks a request, asks the person, and leads back to the client with a code.

use std::net::IpAddr;
use std::sync::PoisonError;

use sidenote_base::error::Result;

use crate::client::{self, Client};
use crate::code::Code;
use crate::message::{Parameters, Reply, Request, is_type};
use crate::scope::Scopes;
use crate::ticket::{self, Ticket};
use crate::token::{TokenHash, is_challenge, new_token};
use crate::{AuthorizationServer, page, redirect_uri};

/// The longest `state` of a client, in bytes.
const LONGEST_STATE: usize = 2048;
/// The name of the cookie by which the form knows its browser; with TLS, no other host can set it.
const SECURE_COOKIE: &str = "__Host-sidenote-consent";
const PLAIN_COOKIE: &str = "sidenote-consent";
/// The seconds for which the browser keeps it.
const COOKIE_SECONDS: u32 = 600;

/// The client and the redirect target of a request, which are known to belong together.
struct Known {
    client: Client,
    redirect_uri: String,
    state: Option<String>,
}

impl AuthorizationServer {
    /// Answers at the authorization endpoint.
    pub(crate) fn authorize(&self, request: &Request<'_>) -> Result<Reply> {
        match request.method {
            "GET" => self.ask(request),
            "POST" => self.decide(request),
            _ => Ok(page::refusal(405, "This address takes GET and POST.").with("allow", "GET, POST")),
        }
    }

    /// Shows the page of consent, or says why not.
    fn ask(&self, request: &Request<'_>) -> Result<Reply> {
        let parameters = match Parameters::parse(request.query.as_bytes()) {
            Ok(parameters) => parameters,
            Err(_) => return Ok(page::refusal(400, "The request of the client has a parameter twice.")),
        };
        let known = match self.known(&parameters, request.address)? {
            Ok(known) => known,
            Err(refusal) => return Ok(refusal),
        };
        let (challenge, scopes, resource) = match self.checked(&parameters) {
            Ok(checked) => checked,
            Err((error, why)) => {
                // Whoever registers could have anybody led anywhere from the address of this server (RFC 9700, 4.11.2).
                let is_trusted = client::is_address(&known.client.id)
                    || self.state.read()?.grants.iter().any(|grant| grant.client_id == known.client.id);
                if !is_trusted {
                    return Ok(page::refusal(400, &format!("The request of the client is wrong: {why}.")));
                }
                return Ok(self.lead_back(
                    &known.redirect_uri,
                    known.state.as_deref(),
                    &[("error", error), ("error_description", why)],
                ));
            }
        };
        let state = self.state.read()?;
        if state.passphrase.is_none() {
            return Ok(page::refusal(
                503,
                "This server has no passphrase yet. Set one on its computer: sidenote login passphrase",
            ));
        }
        let given = self.cookie(request).filter(|cookie| is_challenge(cookie));
        let cookie = given.map_or_else(|| new_token(""), |cookie| Ok(cookie.to_owned()))?;
        let ticket = Ticket {
            client_id: known.client.id,
            client_name: known.client.name,
            redirect_uri: known.redirect_uri,
            state: known.state,
            challenge,
            scopes,
            resource,
            browser: TokenHash::of(&cookie),
            expires: ticket::expiry(self.now()),
            generation: state.generation.clone(),
        };
        let reply = self.consent_page(200, &ticket, None)?;
        let is_secure = self.issuer.starts_with("https://");
        let secure = if is_secure { "; Secure" } else { "" };
        let name = if is_secure { SECURE_COOKIE } else { PLAIN_COOKIE };
        Ok(reply.with(
            "set-cookie",
            format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={COOKIE_SECONDS}{secure}"),
        ))
    }

    /// Finds the client and the redirect target of a request. What is wrong with them is told to the person, and nobody is
    /// redirected.
    fn known(&self, parameters: &Parameters, address: IpAddr) -> Result<std::result::Result<Known, Reply>> {
        let Some(client_id) = parameters.get("client_id") else {
            return Ok(Err(page::refusal(400, "The request names no client (client_id).")));
        };
        let client = match self.find_client(client_id, address)? {
            Ok(client) => client,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let given = parameters.get("redirect_uri").unwrap_or_default();
        if !client.redirect_uris.iter().any(|registered| redirect_uri::matches(registered, given)) {
            let why = "The client asks to be led to an address that it has not registered (redirect_uri).";
            return Ok(Err(page::refusal(400, why)));
        }
        let state = parameters.get("state").map(str::to_owned);
        if state.as_ref().is_some_and(|state| state.len() > LONGEST_STATE) {
            return Ok(Err(page::refusal(400, "The request of the client is too long (state).")));
        }
        Ok(Ok(Known { client, redirect_uri: given.to_owned(), state }))
    }

    /// Finds a client by its id, or says to the person why there is none.
    fn find_client(&self, id: &str, address: IpAddr) -> Result<std::result::Result<Client, Reply>> {
        if client::is_address(id) {
            return Ok(self
                .documents
                .client(id, address, self.now())
                .map_err(|why| page::refusal(400, &why)));
        }
        let state = self.state.read()?;
        let found = state.clients.iter().find(|client| client.id == id).cloned();
        let why =
            "This server does not know the client. Remove the connection in the client, and add it again.";
        Ok(found.ok_or_else(|| page::refusal(400, why)))
    }

    /// Checks the rest of a request: what is wrong is told to the client.
    fn checked(
        &self,
        parameters: &Parameters,
    ) -> std::result::Result<(String, Scopes, String), (&'static str, &'static str)> {
        if parameters.get("request").is_some() || parameters.get("request_uri").is_some() {
            return Err(("request_not_supported", "give the parameters themselves"));
        }
        match parameters.get("response_type") {
            Some("code") => {}
            None => return Err(("invalid_request", "response_type is missing")),
            Some(_) => return Err(("unsupported_response_type", "response_type must be code")),
        }
        if parameters.get("response_mode").is_some_and(|mode| mode != "query") {
            return Err(("invalid_request", "response_mode must be query"));
        }
        let Some(challenge) = parameters.get("code_challenge") else {
            return Err(("invalid_request", "code_challenge is missing: PKCE is required"));
        };
        if parameters.get("code_challenge_method") != Some("S256") || !is_challenge(challenge) {
            return Err(("invalid_request", "code_challenge must be of the method S256"));
        }
        let Some(scopes) = Scopes::of_request(parameters.get("scope"), self.most) else {
            return Err(("invalid_scope", "the scopes are read and write"));
        };
        let Some(resource) = self.resource(parameters.get("resource")) else {
            return Err(("invalid_target", "resource must be the address of an endpoint of this server"));
        };
        Ok((challenge.to_owned(), scopes, resource.to_owned()))
    }

    /// Shows the page of consent.
    fn consent_page(&self, status: u16, ticket: &Ticket, fault: Option<&str>) -> Result<Reply> {
        let vault = self.resources.iter().find(|resource| resource.address == ticket.resource);
        let vault = vault.map_or("", |resource| resource.vault.as_str());
        let rule = (self.rule)(&ticket.resource, &ticket.client_name);
        Ok(page::consent(status, ticket, &self.key.seal(ticket)?, (vault, rule.as_deref()), fault))
    }

    fn cookie<'a>(&self, request: &Request<'a>) -> Option<&'a str> {
        let name = if self.issuer.starts_with("https://") { SECURE_COOKIE } else { PLAIN_COOKIE };
        let mut pairs = request.cookie?.split(';').filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Takes the decision of the person.
    fn decide(&self, request: &Request<'_>) -> Result<Reply> {
        let expired = "This page has expired, or was opened by another browser. Begin again in the client.";
        if request.fetch_site.is_some_and(|site| site != "same-origin") {
            return Ok(page::refusal(403, "This form was sent by another site."));
        }
        if !is_type(request.content_type, "application/x-www-form-urlencoded") {
            return Ok(page::refusal(415, "This address takes its own form alone."));
        }
        let Ok(form) = Parameters::parse(request.body) else { return Ok(page::refusal(400, expired)) };
        let ticket = self.cookie(request).and_then(|cookie| {
            let sealed = form.get("ticket")?;
            self.key.open(sealed, cookie, self.now())
        });
        let sealed = form.get("ticket").map(TokenHash::of);
        let (Some(mut ticket), Some(sealed)) = (ticket, sealed) else {
            return Ok(page::refusal(403, expired));
        };
        if self.decided().has(&sealed) || self.state.read()?.generation != ticket.generation {
            return Ok(page::refusal(403, expired));
        }
        match form.get("decision") {
            Some("allow") => {}
            Some("deny") => {
                if !self.decided().add(sealed, ticket.expires, self.now()) {
                    return Ok(page::refusal(403, expired));
                }
                self.note(&ticket, "denied", request.address);
                let denied = [("error", "access_denied"), ("error_description", "the person said no")];
                return Ok(self.lead_back(&ticket.redirect_uri, ticket.state.as_deref(), &denied));
            }
            _ => return Ok(page::refusal(400, expired)),
        }
        if let Err(refusal) = self.check_passphrase(&ticket, form.get("passphrase"), request.address)? {
            return Ok(refusal);
        }
        if !self.decided().add(sealed, ticket.expires, self.now()) {
            return Ok(page::refusal(403, expired));
        }
        if form.get("write").is_none() {
            ticket.scopes = Scopes::Read;
        }
        let code = new_token("sidenote-code-")?;
        self.note(&ticket, "consented", request.address);
        let reply = self.lead_back(&ticket.redirect_uri, ticket.state.as_deref(), &[("code", &code)]);
        self.codes().add(&code, Code::of(ticket, self.now()), self.now());
        Ok(reply)
    }

    /// Checks the passphrase. Returns the page to show if it is wrong, or was not looked at because there were too many tries.
    fn check_passphrase(
        &self,
        ticket: &Ticket,
        passphrase: Option<&str>,
        address: IpAddr,
    ) -> Result<std::result::Result<(), Reply>> {
        let Some(passphrase) = passphrase else {
            return Ok(Err(self.consent_page(400, ticket, Some("Enter the passphrase."))?));
        };
        let wait = |seconds: u64| {
            let text = {
                let unit = if seconds == 1 { "second" } else { "seconds" };
                format!("There were too many wrong passphrases. Try again in {seconds} {unit}.")
            };
            Ok(Err(self.consent_page(429, ticket, Some(&text))?.with("retry-after", seconds.to_string())))
        };
        let begun = self.slowdown().begin(address, self.now());
        if let Err(seconds) = begun {
            tracing::debug!("a login is slowed down");
            return wait(seconds);
        }
        // One hash at a time: each takes 19 MiB of memory. Those who wait are few, because the others were slowed down.
        let _hashing = self.hashing.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state.read()?;
        let is_right = match &state.passphrase {
            Some(known) => known.verifies(passphrase)?,
            None => false,
        };
        if !is_right {
            tracing::warn!("a login with a wrong passphrase is refused");
            self.note(ticket, "wrong-passphrase", address);
            return Ok(Err(self.consent_page(403, ticket, Some("The passphrase is wrong."))?));
        }
        self.slowdown().succeed(address);
        Ok(Ok(()))
    }

    /// Leads the browser back to the client, with the issuer (RFC 9207) and the state of the request.
    fn lead_back(&self, redirect_uri: &str, state: Option<&str>, parameters: &[(&str, &str)]) -> Reply {
        let mut all = parameters.to_vec();
        all.extend(state.map(|state| ("state", state)));
        all.push(("iss", &self.issuer));
        let location = redirect_uri::with_parameters(redirect_uri, &all);
        let headers = vec![
            ("location", location),
            ("cache-control", "no-store".to_owned()),
            ("referrer-policy", "no-referrer".to_owned()),
        ];
        Reply { status: 303, headers, body: String::new() }
    }
}
