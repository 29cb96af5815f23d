//! An identity provider on this machine: its metadata and its keys over HTTP, and counts of what was asked for. People log in
//! at it as at a real one, with a code and PKCE, except that they are redirected back at once.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use serde_json::{Value, json};

use super::token::{Token, key_set};

/// What goes wrong at a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another state is given back.
    OtherState,
    /// The answer names another issuer.
    OtherIssuer,
    /// The answer names no issuer.
    NoIssuer,
    /// The person says no.
    Denied,
    /// The answer has no code.
    NoCode,
    /// The answer has two codes.
    TwoCodes,
    /// The code is not known.
    CodeRefused,
    /// The tokens are of another type.
    OtherType,
    /// The answer with the tokens is no JSON, and has a secret.
    NoJson,
    /// The metadata are those of another issuer.
    OtherMetadata,
    /// There is no metadata.
    NoMetadata,
    /// The metadata name an endpoint without TLS on another machine.
    InsecureEndpoint,
    /// Clients cannot register.
    NoRegistration,
    /// Registration refuses.
    RegistrationRefused,
    /// PKCE is not supported.
    NoPkce,
    /// The metadata redirect.
    MetadataMoved,
    /// The metadata are longer than allowed.
    MetadataTooLong,
    /// The refresh token is not known.
    RefreshRefused,
    /// Tokens count for so short a time that each request renews them.
    ShortLived,
    /// The vault names no metadata, and has them at the default address.
    NoChallenge,
    /// The vault has no metadata.
    NoLogin,
    /// The metadata are those of another vault.
    OtherResource,
    /// The metadata of the vault are at an address without TLS on another machine.
    InsecureMetadata,
    /// The vault trusts an issuer without TLS on another machine.
    InsecureIssuer,
    /// The vault trusts no issuer.
    NoIssuers,
}

/// What a login at the provider leaves.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    pub(crate) fault: Option<Fault>,
    /// The parameters of each authorization by its code.
    codes: BTreeMap<String, BTreeMap<String, String>>,
    /// The refresh tokens that count, with resource and scope.
    refresh: BTreeMap<String, (String, String)>,
    clients: Vec<String>,
    /// The bodies of the requests for tokens.
    pub(crate) token_requests: Vec<BTreeMap<String, String>>,
    /// The tokens that were revoked.
    pub(crate) revoked: Vec<String>,
    /// All tokens and codes that were given out.
    pub(crate) secrets: Vec<String>,
}

/// The path of the metadata of the vault.
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource/v/v/mcp";

/// What the provider answers to requests for its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Keys,
    /// Closes the connection.
    Nothing,
    /// Redirects to the keys at another path.
    Redirect,
    /// A document that is longer than allowed.
    TooLong,
    /// Keys without that of the tests.
    OtherKeys,
}

struct State {
    answer: Answer,
    asked: Vec<String>,
    logins: Logins,
}

/// A running provider. Its thread lives as long as the tests.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) issuer: String,
    state: Arc<Mutex<State>>,
}

impl Provider {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State {
            answer: Answer::Keys,
            asked: Vec::new(),
            logins: Logins::default(),
        }));
        let provider = Self { issuer, state };
        let served = provider.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                served.answer(stream);
            }
        });
        provider
    }

    /// Sets what is answered to requests for the keys from now on.
    pub(crate) fn set(&self, answer: Answer) {
        self.state.lock().unwrap().answer = answer;
    }

    /// Gives the paths that were asked for since the last call.
    pub(crate) fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().asked)
    }

    /// Has logins fail from now on.
    pub(crate) fn fail(&self, fault: Option<Fault>) {
        self.state.lock().unwrap().logins.fault = fault;
    }

    /// Looks at what logins have left.
    pub(crate) fn logins<T>(&self, look: impl FnOnce(&Logins) -> T) -> T {
        look(&self.state.lock().unwrap().logins)
    }

    fn answer(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut lines = reader.by_ref().lines();
        let Some(Ok(first)) = lines.next() else { return };
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut length = 0;
        while let Some(Ok(line)) =
            lines.next().filter(|line| line.as_ref().is_ok_and(|line| !line.is_empty()))
        {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body = String::from_utf8(body).unwrap();
        let mut state = self.state.lock().unwrap();
        state.asked.push(path.clone());
        let answer = state.answer;
        drop(state);
        let (status, body) = match (path.as_str(), answer) {
            (_, Answer::Nothing) => return,
            ("/.well-known/openid-configuration", _) => self.metadata(),
            (path, _) if path.starts_with("/authorize?") => {
                let location = self.authorize(&form(path.split_once('?').unwrap().1));
                let length = "Content-Length: 0\r\nConnection: close";
                drop(write!(stream, "HTTP/1.1 302 Found\r\nLocation: {location}\r\n{length}\r\n\r\n"));
                return;
            }
            ("/v/v/mcp", _) => {
                let place = match self.logins(|logins| logins.fault) {
                    Some(Fault::NoChallenge | Fault::NoLogin) => String::new(),
                    Some(Fault::InsecureMetadata) => {
                        " resource_metadata=\"http://notes.example/x\",".to_owned()
                    }
                    _ => format!(" resource_metadata=\"{}{RESOURCE_METADATA}\",", self.issuer),
                };
                let challenge = format!("Bearer{place} scope=\"notes:read\"");
                let length = "Content-Length: 0\r\nConnection: close";
                drop(write!(
                    stream,
                    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: {challenge}\r\n{length}\r\n\r\n"
                ));
                return;
            }
            (RESOURCE_METADATA, _) => self.resource_metadata(),
            ("/register", _) => self.register(&body),
            ("/token", _) => self.give_tokens(&form(&body)),
            ("/revoke", _) => {
                let form = form(&body);
                self.state.lock().unwrap().logins.revoked.push(form["token"].clone());
                ("200 OK", String::new())
            }
            ("/keys", Answer::Redirect) => ("302 Found\r\nLocation: /moved", String::new()),
            ("/keys", Answer::TooLong) => ("200 OK", format!("{}{}", key_set(), " ".repeat(1 << 20))),
            ("/keys", Answer::OtherKeys) => {
                let mut keys = key_set();
                keys["keys"].as_array_mut().unwrap().remove(0);
                ("200 OK", keys.to_string())
            }
            ("/keys" | "/moved", _) => ("200 OK", key_set().to_string()),
            _ => ("404 Not Found", String::new()),
        };
        let length = body.len();
        // The client may be gone.
        drop(write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ));
    }

    /// Gives the metadata of the vault `v`, which is on the same host.
    fn resource_metadata(&self) -> (&'static str, String) {
        let resource = format!("{}/v/v/mcp", self.issuer);
        let (resource, issuers) = match self.logins(|logins| logins.fault) {
            Some(Fault::NoLogin) => return ("404 Not Found", String::new()),
            Some(Fault::OtherResource) => (resource.replace("/v/v/", "/v/other/"), vec![self.issuer.clone()]),
            Some(Fault::InsecureIssuer) => (resource, vec!["http://login.example".to_owned()]),
            Some(Fault::NoIssuers) => (resource, Vec::new()),
            _ => (resource, vec![self.issuer.clone()]),
        };
        ("200 OK", json!({ "resource": resource, "authorization_servers": issuers }).to_string())
    }

    fn metadata(&self) -> (&'static str, String) {
        let fault = self.logins(|logins| logins.fault);
        let at = |path: &str| format!("{}/{path}", self.issuer);
        let mut metadata = json!({
            "issuer": self.issuer,
            "jwks_uri": at("keys"),
            "authorization_endpoint": at("authorize"),
            "token_endpoint": at("token"),
            "registration_endpoint": at("register"),
            "revocation_endpoint": at("revoke"),
            "scopes_supported": ["offline_access", "notes:read", "notes:write", "notes:admin"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        match fault {
            Some(Fault::NoMetadata) => return ("404 Not Found", String::new()),
            Some(Fault::MetadataMoved) => return ("302 Found\r\nLocation: /moved", String::new()),
            Some(Fault::MetadataTooLong) => return ("200 OK", format!("{metadata}{}", " ".repeat(1 << 20))),
            Some(Fault::OtherMetadata) => metadata["issuer"] = json!("https://other.example"),
            Some(Fault::InsecureEndpoint) => metadata["token_endpoint"] = json!("http://login.example/token"),
            Some(Fault::NoRegistration) => metadata["registration_endpoint"] = Value::Null,
            Some(Fault::NoPkce) => metadata["code_challenge_methods_supported"] = json!(["plain"]),
            _ => {}
        }
        ("200 OK", metadata.to_string())
    }

    /// Registers a public client of this machine.
    fn register(&self, body: &str) -> (&'static str, String) {
        let metadata: Value = serde_json::from_str(body).unwrap();
        let redirect = metadata["redirect_uris"][0].as_str().unwrap();
        let mut state = self.state.lock().unwrap();
        let is_public =
            metadata["token_endpoint_auth_method"] == "none" && redirect.starts_with("http://127.0.0.1:");
        if !is_public || state.logins.fault == Some(Fault::RegistrationRefused) {
            let refusal = json!({ "error": "invalid_client_metadata", "error_description": "not here" });
            return ("400 Bad Request", refusal.to_string());
        }
        let id = format!("client {}", state.logins.clients.len() + 1);
        state.logins.clients.push(id.clone());
        ("201 Created", json!({ "client_id": id, "redirect_uris": [redirect] }).to_string())
    }

    /// Gives the address to which the person is sent back.
    fn authorize(&self, asked: &BTreeMap<String, String>) -> String {
        let mut state = self.state.lock().unwrap();
        let logins = &mut state.logins;
        assert!(logins.clients.contains(&asked["client_id"]) || asked["client_id"] == "given", "{asked:?}");
        assert_eq!(
            (asked["response_type"].as_str(), asked["code_challenge_method"].as_str()),
            ("code", "S256")
        );
        assert_eq!((asked["code_challenge"].len(), asked["prompt"].as_str()), (43, "consent"));
        let code = format!("code-{}-of-a-login", logins.codes.len() + 1);
        logins.codes.insert(code.clone(), asked.clone());
        logins.secrets.push(code.clone());
        let given = match logins.fault {
            Some(Fault::OtherState) => "0000",
            _ => &asked["state"],
        };
        let issuer = match logins.fault {
            Some(Fault::OtherIssuer) => "&iss=https%3A%2F%2Fother.example".to_owned(),
            Some(Fault::NoIssuer) => String::new(),
            _ => format!("&iss={}", self.issuer.replace(':', "%3A").replace('/', "%2F")),
        };
        let code = match logins.fault {
            Some(Fault::Denied) => "error=access_denied&error_description=Not+today%1B%5B31m".to_owned(),
            Some(Fault::NoCode) => "x=y".to_owned(),
            Some(Fault::TwoCodes) => format!("code={code}&code=other"),
            _ => format!("code={code}"),
        };
        format!("{}?{code}&state={given}{issuer}", asked["redirect_uri"])
    }

    /// Checks a request for tokens as RFC 6749, 7636 and 8707 say, and answers it.
    fn give_tokens(&self, form: &BTreeMap<String, String>) -> (&'static str, String) {
        let mut state = self.state.lock().unwrap();
        let logins = &mut state.logins;
        logins.token_requests.push(form.clone());
        let refused = |error: &str| ("400 Bad Request", json!({ "error": error }).to_string());
        let (resource, scope) = match form["grant_type"].as_str() {
            "authorization_code" => {
                let Some(asked) = logins.codes.remove(&form["code"]) else { return refused("invalid_grant") };
                let hash = digest::digest(&digest::SHA256, form["code_verifier"].as_bytes());
                let is_same =
                    ["redirect_uri", "client_id", "resource"].iter().all(|name| form[*name] == asked[*name]);
                let is_proved = URL_SAFE_NO_PAD.encode(hash) == asked["code_challenge"];
                if !is_same || !is_proved || logins.fault == Some(Fault::CodeRefused) {
                    // Some providers repeat what they were sent.
                    let said = format!("the code {} is not known", form["code"]);
                    let refusal = json!({ "error": "invalid_grant", "error_description": said });
                    return ("400 Bad Request", refusal.to_string());
                }
                (asked["resource"].clone(), asked["scope"].clone())
            }
            "refresh_token" => match logins.refresh.remove(&form["refresh_token"]) {
                Some(known) if known.0 == form["resource"] && logins.fault != Some(Fault::RefreshRefused) => {
                    known
                }
                _ => return refused("invalid_grant"),
            },
            _ => return refused("unsupported_grant_type"),
        };
        let access = Token::new(&self.issuer, &resource, "anna", &scope);
        let access = access.claim("jti", logins.token_requests.len()).sign();
        let refresh = format!("refresh-token-{}-of-anna", logins.token_requests.len());
        logins.refresh.insert(refresh.clone(), (resource, scope.clone()));
        logins.secrets.extend([access.clone(), refresh.clone()]);
        match logins.fault {
            Some(Fault::NoJson) => return ("200 OK", format!("access_token={access}")),
            Some(Fault::OtherType) => {
                return ("200 OK", json!({ "access_token": access, "token_type": "mac" }).to_string());
            }
            _ => {}
        }
        let seconds = if logins.fault == Some(Fault::ShortLived) { 10 } else { 600 };
        let reply = json!({
            "access_token": access, "token_type": "Bearer", "expires_in": seconds, "refresh_token": refresh, "scope": scope,
        });
        ("200 OK", reply.to_string())
    }
}

/// Reads a form or a query.
pub(crate) fn form(text: &str) -> BTreeMap<String, String> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8().unwrap().into_owned()
    };
    let pairs = text.split('&').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}
