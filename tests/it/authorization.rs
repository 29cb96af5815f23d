//! Tests the authorization server for one or a few people: the whole dance, who is slowed down, and what is recorded. The
//! wrong requests are in the files below.

mod attacks;
mod served;
mod wrong;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use sidenote::authorization::{AuthorizationServer, Logins, Options, Reply, Request, Resource, Scopes};
use sidenote::base::clock::Timestamp;
use sidenote::base::error::Error;
use tempfile::TempDir;
use url::Url;

pub(crate) const PASSPHRASE: &str = "four words of a list";
const ISSUER: &str = "https://notes.example";
const RESOURCE: &str = "https://notes.example/v/anna/mcp";
const PATH: &str = "/v/anna/mcp";
pub(crate) const REDIRECT: &str = "https://client.example/callback";
/// The example of RFC 7636, appendix B.
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const FORM: &str = "application/x-www-form-urlencoded";
const DOCUMENT: &str = "https://known.example/client.json";
const MINUTE: i64 = 60_000;

type Pairs = Vec<(String, String)>;

/// Makes the parameters of a request, in which `changes` replaces, adds or, without a value, removes some.
fn pairs(base: &[(&str, &str)], changes: &[(&str, Option<&str>)]) -> Pairs {
    let mut all: Pairs = base.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    for (name, value) in changes {
        all.retain(|(known, _)| known != name);
        all.extend(value.map(|value| ((*name).to_owned(), value.to_owned())));
    }
    all
}

pub(crate) fn encoded(pairs: &[(String, String)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Gives the value of a hidden field of a page.
pub(crate) fn ticket_of(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"ticket\" value=\"").expect(page);
    rest.split_once('"').unwrap().0.to_owned()
}

/// Gives a parameter of the address that a reply leads to.
pub(crate) fn parameter(location: &str, name: &str) -> Option<String> {
    let url = Url::parse(location).unwrap();
    url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// A server whose time does not move by itself.
struct Bench {
    server: AuthorizationServer,
    logins: Logins,
    now: Arc<AtomicI64>,
    address: IpAddr,
    _data: Arc<TempDir>,
}

/// A page of consent that is open in a browser.
struct Consent {
    ticket: String,
    cookie: String,
}

impl Bench {
    fn new() -> Self {
        let data = Arc::new(tempfile::tempdir().unwrap());
        let logins = Logins::new(data.path().to_owned());
        let bench = Self::of(&data, ISSUER, Scopes::Write);
        logins.set_passphrase(PASSPHRASE, bench.server.now()).unwrap();
        bench
    }

    /// Starts a server on the data of a user.
    fn of(data: &Arc<TempDir>, issuer: &str, most: Scopes) -> Self {
        Self::with_vaults(data, issuer, most, "")
    }

    /// Starts a server of vaults in a folder.
    fn with_vaults(data: &Arc<TempDir>, issuer: &str, most: Scopes, folder: &str) -> Self {
        let logins = Logins::new(data.path().to_owned());
        let now = Arc::new(AtomicI64::new(Timestamp::parse("2026-11-21").unwrap().millis()));
        let clock = Arc::clone(&now);
        let resource = |name: &str| Resource {
            address: format!("{issuer}/v/{name}/mcp"),
            vault: name.to_owned(),
            identity: format!("{folder}/{name}"),
        };
        let server = AuthorizationServer::new(Options {
            issuer: issuer.to_owned(),
            resources: vec![resource("anna"), resource("family")],
            most,
            folder: logins.folder(),
            now: Box::new(move || Timestamp::from_millis(clock.load(Ordering::Relaxed))),
            fetch: Box::new(fetch),
            rule: Box::new(|_, client| client.contains("fenced").then(|| "reads Public".to_owned())),
        });
        let address = [192, 0, 2, 1].into();
        Self { server: server.unwrap(), logins, now, address, _data: Arc::clone(data) }
    }

    fn pass(&self, milliseconds: i64) {
        self.now.fetch_add(milliseconds, Ordering::Relaxed);
    }

    fn send(&self, method: &str, path: &str, content_type: &str, body: &str) -> Reply {
        self.send_with(method, path, content_type, body, None)
    }

    fn send_with(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
        cookie: Option<&str>,
    ) -> Reply {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let request = Request {
            method,
            path,
            query,
            content_type: Some(content_type).filter(|kind| !kind.is_empty()),
            body: body.as_bytes(),
            cookie,
            has_credentials: false,
            fetch_site: None,
            address: self.address,
        };
        self.server.handle(&request).unwrap()
    }

    fn register(&self, metadata: &Value) -> Reply {
        self.send("POST", "/register", "application/json", &metadata.to_string())
    }

    /// Registers the client of these tests, and gives its id.
    fn client(&self) -> String {
        let reply =
            self.register(&json!({ "client_name": "Test <b>client</b>", "redirect_uris": [REDIRECT] }));
        assert_eq!(reply.status, 201, "{}", reply.body);
        // The log is in the order of time, in seconds.
        self.pass(1000);
        json_of(&reply)["client_id"].as_str().unwrap().to_owned()
    }

    fn ask(&self, client: &str, changes: &[(&str, Option<&str>)]) -> Reply {
        let base = [
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("state", "st&te"),
            ("scope", "read write"),
            ("resource", RESOURCE),
        ];
        self.send("GET", &format!("/authorize?{}", encoded(&pairs(&base, changes))), "", "")
    }

    fn consent(&self, client: &str, changes: &[(&str, Option<&str>)]) -> Consent {
        let reply = self.ask(client, changes);
        assert_eq!(reply.status, 200, "{}", reply.body);
        let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        Consent { ticket: ticket_of(&reply.body), cookie }
    }

    fn decide(&self, consent: &Consent, changes: &[(&str, Option<&str>)]) -> Reply {
        let base = [
            ("ticket", consent.ticket.as_str()),
            ("passphrase", PASSPHRASE),
            ("write", "yes"),
            ("decision", "allow"),
        ];
        let body = encoded(&pairs(&base, changes));
        self.send_with("POST", "/authorize", FORM, &body, Some(&consent.cookie))
    }

    /// Gives a code for a client.
    fn code(&self, client: &str, changes: &[(&str, Option<&str>)]) -> String {
        let reply = self.decide(&self.consent(client, changes), &[]);
        parameter(reply.header("location").expect(&reply.body), "code").unwrap()
    }

    fn redeem(&self, client: &str, code: &str, changes: &[(&str, Option<&str>)]) -> Reply {
        let base = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
            ("resource", RESOURCE),
        ];
        self.send("POST", "/token", FORM, &encoded(&pairs(&base, changes)))
    }

    fn refresh(&self, client: &str, token: &str, changes: &[(&str, Option<&str>)]) -> Reply {
        let base = [("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)];
        self.send("POST", "/token", FORM, &encoded(&pairs(&base, changes)))
    }

    /// Goes the whole way, and gives the client and the reply with the tokens.
    fn log_in(&self) -> (String, Value) {
        let client = self.client();
        let reply = self.redeem(&client, &self.code(&client, &[]), &[]);
        assert_eq!(reply.status, 200, "{}", reply.body);
        (client, json_of(&reply))
    }

    fn counts(&self, token: &str) -> bool {
        self.server.check(token, PATH).unwrap().is_some()
    }

    /// Gives what the audit log has.
    fn events(&self) -> Vec<String> {
        self.logins.audit(1000).unwrap().into_iter().map(|entry| entry.event).collect()
    }
}

/// Gives the documents that clients publish.
fn fetch(url: &str) -> Result<Vec<u8>, Error> {
    let document = match url {
        DOCUMENT => json!({ "client_id": url, "client_name": "Known", "redirect_uris": [REDIRECT] }),
        "https://known.example/other.json" => json!({ "client_id": DOCUMENT, "redirect_uris": [REDIRECT] }),
        "https://known.example/secret.json" => {
            json!({ "client_id": url, "redirect_uris": [REDIRECT], "client_secret": "s" })
        }
        "https://known.example/long.json" => json!({ "client_id": url, "client_name": "x".repeat(20_000) }),
        "https://known.example/text" => return Ok(b"no JSON".to_vec()),
        _ => return Err(Error::not_found("there is no such document")),
    };
    Ok(document.to_string().into_bytes())
}

fn json_of(reply: &Reply) -> Value {
    serde_json::from_str(&reply.body).expect(&reply.body)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn metadata_name_what_is_there() {
    let bench = Bench::new();
    let get = |path: &str| bench.send("GET", path, "", "");
    let server = json_of(&get("/.well-known/oauth-authorization-server"));
    assert_eq!(server["issuer"], ISSUER);
    for (key, path) in [
        ("authorization_endpoint", "/authorize"),
        ("token_endpoint", "/token"),
        ("registration_endpoint", "/register"),
        ("revocation_endpoint", "/revoke"),
    ] {
        assert_eq!(server[key], format!("{ISSUER}{path}"));
    }
    assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(server["authorization_response_iss_parameter_supported"], true);
    let resource = json_of(&get(&format!("/.well-known/oauth-protected-resource{PATH}")));
    assert_eq!(resource["resource"], RESOURCE);
    assert_eq!(resource["authorization_servers"], json!([ISSUER]));
    for path in ["", "/", "/mcp", "/v/nobody/mcp"] {
        assert_eq!(get(&format!("/.well-known/oauth-protected-resource{path}")).status, 404, "{path}");
    }
}

#[test]
fn a_client_registers_is_consented_to_and_gets_tokens_that_are_renewed() {
    let bench = Bench::new();
    let client = bench.client();
    let page = bench.ask(&client, &[]);
    for part in ["Test &lt;b&gt;client", "client.example", "anna", "<code>write</code>"] {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    assert!(!page.body.contains("<script") && !page.body.contains("<b>"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(policy.contains("form-action 'self' https://client.example;"), "{policy}");
    let cookie = page.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-") && cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    let reply = bench.decide(&bench.consent(&client, &[]), &[]);
    assert_eq!(reply.status, 303);
    let location = reply.header("location").unwrap();
    assert!(location.starts_with("https://client.example/callback?"));
    assert_eq!(parameter(location, "state").as_deref(), Some("st&te"));
    assert_eq!(parameter(location, "iss").as_deref(), Some(ISSUER));
    let reply = bench.redeem(&client, &parameter(location, "code").unwrap(), &[]);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let first = json_of(&reply);
    assert_eq!((&first["token_type"], &first["expires_in"]), (&json!("Bearer"), &json!(3600)));
    assert_eq!(first["scope"], "read write");
    let holder = bench.server.check(text(&first["access_token"]), PATH).unwrap().unwrap();
    assert_eq!((holder.client_id, holder.scopes), (client.clone(), Scopes::Write));
    // Until it expires, the token before counts as well: a call may be under way.
    let second = json_of(&bench.refresh(&client, text(&first["refresh_token"]), &[]));
    assert!(bench.counts(text(&first["access_token"])) && bench.counts(text(&second["access_token"])));
    bench.pass(59 * MINUTE);
    assert!(bench.counts(text(&second["access_token"])));
    bench.pass(MINUTE);
    assert!(!bench.counts(text(&second["access_token"])));
    let third = json_of(&bench.refresh(&client, text(&second["refresh_token"]), &[]));
    assert!(bench.counts(text(&third["access_token"])));
    assert_eq!(
        bench.events(),
        ["passphrase-set", "registered", "consented", "granted", "refreshed", "refreshed"]
    );
}

#[test]
fn nothing_that_is_stored_is_a_secret() {
    let bench = Bench::new();
    let (_, tokens) = bench.log_in();
    let stored: String = ["state.json", "audit.jsonl"]
        .map(|name| std::fs::read_to_string(bench.logins.folder().join(name)).unwrap())
        .concat();
    for secret in [PASSPHRASE, text(&tokens["access_token"]), text(&tokens["refresh_token"]), VERIFIER] {
        assert!(!stored.contains(secret));
    }
    #[cfg(unix)]
    assert_eq!(crate::support::mode_of(bench.logins.folder().join("state.json")) & 0o777, 0o600);
}

#[test]
fn a_reused_code_or_refresh_token_ends_the_whole_grant() {
    let bench = Bench::new();
    let client = bench.client();
    let code = bench.code(&client, &[]);
    let tokens = json_of(&bench.redeem(&client, &code, &[]));
    assert_eq!(json_of(&bench.redeem(&client, &code, &[]))["error"], "invalid_grant");
    assert!(!bench.counts(text(&tokens["access_token"])));
    assert_eq!(bench.refresh(&client, text(&tokens["refresh_token"]), &[]).status, 400);

    let (client, first) = bench.log_in();
    let used = json_of(&bench.refresh(&client, text(&first["refresh_token"]), &[]));
    let second = json_of(&bench.refresh(&client, text(&used["refresh_token"]), &[]));
    assert_eq!(
        json_of(&bench.refresh(&client, text(&first["refresh_token"]), &[]))["error"],
        "invalid_grant"
    );
    for tokens in [&first, &second] {
        assert!(!bench.counts(text(&tokens["access_token"])));
        assert_eq!(bench.refresh(&client, text(&tokens["refresh_token"]), &[]).status, 400);
    }
    let events = bench.events();
    assert!(
        events.contains(&"code-reused".to_owned()) && events.contains(&"refresh-token-reused".to_owned())
    );
    assert_eq!(bench.logins.list(bench.server.now()).unwrap(), []);
}

#[test]
fn the_person_may_give_less_or_nothing_and_takes_it_back() {
    let bench = Bench::new();
    let client = bench.client();
    let reply =
        bench.decide(&bench.consent(&client, &[]), &[("decision", Some("deny")), ("passphrase", None)]);
    assert_eq!(parameter(reply.header("location").unwrap(), "error").as_deref(), Some("access_denied"));
    let reply = bench.decide(&bench.consent(&client, &[]), &[("write", None)]);
    let code = parameter(reply.header("location").unwrap(), "code").unwrap();
    let tokens = json_of(&bench.redeem(&client, &code, &[]));
    assert_eq!(tokens["scope"], "read");
    let wider = bench.refresh(&client, text(&tokens["refresh_token"]), &[("scope", Some("read write"))]);
    assert_eq!(json_of(&wider)["error"], "invalid_scope");
    let now = bench.server.now();
    let grants = bench.logins.list(now).unwrap();
    assert_eq!(grants.len(), 1);
    let planned = bench.logins.revoke(Some(&grants[0].id[..4]), now, true).unwrap();
    assert!(!planned.applied && bench.counts(text(&tokens["access_token"])));
    // Another process does it.
    assert!(Logins::new(bench._data.path().to_owned()).revoke(None, now, false).unwrap().applied);
    assert!(!bench.counts(text(&tokens["access_token"])));
    assert_eq!(bench.logins.revoke(Some("4f1c"), now, false).unwrap_err().kind().name(), "not-found");
    assert_eq!(bench.logins.revoke(Some("4f"), now, false).unwrap_err().kind().name(), "invalid");
}

#[test]
fn a_client_ends_its_grant_by_any_of_its_tokens() {
    let bench = Bench::new();
    for token in ["access_token", "refresh_token"] {
        let (client, tokens) = bench.log_in();
        let other = bench.client();
        let revoke = |client: &str, token: &str| {
            let form = encoded(&pairs(&[("client_id", client), ("token", token)], &[]));
            bench.send("POST", "/revoke", FORM, &form).status
        };
        // What is no token of the client ends nothing, and is no error.
        assert_eq!(revoke(&client, "made-up"), 200);
        assert_eq!(revoke(&other, text(&tokens[token])), 200);
        assert!(bench.counts(text(&tokens["access_token"])));
        assert_eq!(revoke(&client, text(&tokens[token])), 200);
        assert!(!bench.counts(text(&tokens["access_token"])));
    }
}

#[test]
fn a_client_is_known_by_the_document_at_its_address() {
    let bench = Bench::new();
    let page = bench.ask(DOCUMENT, &[]);
    assert!(page.body.contains("its address is https://known.example/client.json"), "{}", page.body);
    let tokens = json_of(&bench.redeem(DOCUMENT, &bench.code(DOCUMENT, &[]), &[]));
    assert!(bench.counts(text(&tokens["access_token"])));
    // Strangers cannot have more than some documents fetched.
    let asked: Vec<u16> =
        (0..8).map(|at| bench.ask(&format!("https://known.example/{at}"), &[]).status).collect();
    assert!(asked.iter().all(|status| *status == 400));
    assert!(bench.ask("https://known.example/9", &[]).body.contains("Too many clients were looked up"));
    assert_eq!(bench.ask(DOCUMENT, &[]).status, 200);
}

#[test]
fn a_program_of_this_machine_may_use_any_port() {
    let bench = Bench::new();
    let registered = json!({ "redirect_uris": ["http://127.0.0.1/callback", "cursor://anysphere/callback", "com.example.app:/callback"] });
    let client = json_of(&bench.register(&registered))["client_id"].as_str().unwrap().to_owned();
    for (uri, status) in [
        ("http://127.0.0.1:4711/callback", 200),
        ("http://127.0.0.1/callback", 200),
        ("cursor://anysphere/callback", 200),
        ("http://127.0.0.1:4711/callback/", 400),
        ("http://127.0.0.1:4711/callback?x=1", 400),
        ("http://localhost:4711/callback", 400),
        ("http://127.0.0.2:4711/callback", 400),
        ("https://127.0.0.1:4711/callback", 400),
        ("http://127.0.0.1:4711@evil.example/callback", 400),
        ("http://127.0.0.1:4711/x/../callback", 400),
        ("cursor://anysphere:1/callback", 400),
        ("com.example.app:/callback", 200),
        ("http:127.0.0.1/callback", 400),
        ("http:127.0.0.1:2/callback", 400),
        ("http://127.0.0.1:2?/callback", 400),
        ("http://127.0.0.1:2#/callback", 400),
        ("http://127.0.0.1:2\\callback", 400),
        ("http://x@127.0.0.1:2/callback", 400),
        ("http://127.0.0.1.evil.example/callback", 400),
        ("http://127.1:2/callback", 400),
        ("http://0x7f000001:2/callback", 400),
        ("http://127.0.0.1:2/%63allback", 400),
    ] {
        assert_eq!(bench.ask(&client, &[("redirect_uri", Some(uri))]).status, status, "{uri}");
    }
}

#[test]
fn the_page_shows_where_it_leads_and_no_name_that_cannot_be_read() {
    let bench = Bench::new();
    for (name, shown) in [
        (
            "\u{202E}\u{061C}\u{3164}\u{115F}\u{1160}\u{FFA0}\u{00AD}\u{E0041}\u{E007F}\u{FE0F}",
            "a client without a name",
        ),
        ("  \u{2800} ", "a client without a name"),
        ("Cl\u{00AD}au\u{200B}de\u{E0041}", "Claude"),
    ] {
        let registered = json!({ "client_name": name, "redirect_uris": ["https://client.example:8443/callback", "http://[::1]/callback"] });
        let client = json_of(&bench.register(&registered));
        assert_eq!(client["client_name"], shown, "{name:?}");
        let id = text(&client["client_id"]);
        let page = bench.ask(id, &[("redirect_uri", Some("https://client.example:8443/callback"))]);
        assert!(page.body.contains("<dd>client.example:8443</dd>"), "{}", page.body);
        let page = bench.ask(id, &[("redirect_uri", Some("http://[::1]:4711/callback"))]);
        assert!(page.body.contains("<dd>this computer, port 4711</dd>"), "{}", page.body);
    }
}

#[test]
fn ten_thousand_wrong_logins_change_nothing_but_the_log() {
    let mut bench = Bench::new();
    let (client, tokens) = bench.log_in();
    let consent = bench.consent(&client, &[]);
    let state = || std::fs::read(bench.logins.folder().join("state.json")).unwrap();
    let before = state();
    let (mut looked_at, mut slowed) = (0, 0);
    for at in 0..10_000_u32 {
        bench.address = IpAddr::from((0xC633_6400 + at % 2_000).to_be_bytes());
        match bench.decide(&consent, &[("passphrase", Some("wrong wrong wrong"))]).status {
            403 => looked_at += 1,
            429 => slowed += 1,
            status => panic!("{status}"),
        }
    }
    // Ten addresses without a wrong one before are looked at while the others wait.
    assert_eq!((looked_at, slowed), (30, 9_970));
    let state = || std::fs::read(bench.logins.folder().join("state.json")).unwrap();
    assert_eq!(state(), before);
    assert!(bench.counts(text(&tokens["access_token"])));
    assert_eq!(bench.events().iter().filter(|event| *event == "wrong-passphrase").count(), 30);
    // After some seconds, the owner gets in.
    bench.address = [192, 0, 2, 1].into();
    assert_eq!(bench.decide(&consent, &[]).status, 429);
    bench.pass(10_000);
    assert_eq!(bench.decide(&consent, &[]).status, 303);
}

#[test]
fn wrong_passphrases_of_one_address_are_slowed_down_for_it_alone() {
    let mut bench = Bench::new();
    let consent = bench.consent(&bench.client(), &[]);
    let wrong = [("passphrase", Some("wrong wrong wrong"))];
    for expected in [403, 403, 403, 403, 403, 429] {
        assert_eq!(bench.decide(&consent, &wrong).status, expected);
    }
    let refused = bench.decide(&consent, &[]);
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    // The waits double.
    for seconds in [1, 2, 4, 8] {
        bench.pass(seconds * 1000 - 1);
        assert_eq!(bench.decide(&consent, &wrong).status, 429, "{seconds}");
        bench.pass(1);
        assert_eq!(bench.decide(&consent, &wrong).status, 403, "{seconds}");
    }
    bench.address = [192, 0, 2, 2].into();
    assert_eq!(bench.decide(&consent, &[]).status, 303);
    // What an address tried is forgotten after an hour.
    bench.address = [192, 0, 2, 1].into();
    bench.pass(61 * MINUTE);
    let consent = bench.consent(&bench.client(), &[]);
    for expected in [403, 403, 403, 403, 403, 429] {
        assert_eq!(bench.decide(&consent, &wrong).status, expected);
    }
}

#[test]
fn registrations_are_bounded_and_keep_clients_with_access() {
    let mut bench = Bench::new();
    let (client, _) = bench.log_in();
    for _ in 1..20 {
        bench.client();
    }
    let refused = bench.register(&json!({ "redirect_uris": [REDIRECT] }));
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("3600")));
    for at in 0..400_u32 {
        if at % 80 == 0 {
            bench.pass(61 * MINUTE);
        }
        bench.address = IpAddr::from(at.to_be_bytes());
        bench.client();
    }
    let state = std::fs::read_to_string(bench.logins.folder().join("state.json")).unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!(state["clients"].as_array().unwrap().len(), 201);
    assert_eq!(bench.ask(&client, &[]).status, 200);
}

#[test]
fn a_public_address_is_an_origin_with_tls() {
    for (text, origin) in [
        ("https://notes.example", Some("https://notes.example")),
        ("https://Notes.example:443/", Some("https://notes.example")),
        ("https://notes.example:8443", Some("https://notes.example:8443")),
        ("http://127.0.0.1:3000", Some("http://127.0.0.1:3000")),
        ("http://localhost:3000", Some("http://localhost:3000")),
        ("http://notes.example", None),
        ("https://notes.example/path", None),
        ("https://user@notes.example", None),
        ("https://notes.example?x", None),
        ("notes.example", None),
        ("ftp://notes.example", None),
    ] {
        assert_eq!(sidenote::authorization::origin(text).ok().as_deref(), origin, "{text}");
    }
}

#[test]
fn only_public_addresses_are_asked_for_documents() {
    use sidenote::http_client::{fetch_public_document, is_public};
    for (address, expected) in [
        ("93.184.216.34", true),
        ("2606:2800:220:1:248:1893:25c8:1946", true),
        ("127.0.0.1", false),
        ("10.1.2.3", false),
        ("172.16.0.1", false),
        ("192.168.1.1", false),
        ("169.254.169.254", false),
        ("100.100.100.200", false),
        ("0.0.0.0", false),
        ("224.0.0.1", false),
        ("255.255.255.255", false),
        ("198.18.0.1", false),
        ("::1", false),
        ("::", false),
        ("::ffff:127.0.0.1", false),
        ("::ffff:10.0.0.1", false),
        ("64:ff9b::7f00:1", false),
        ("2002:7f00:1::", false),
        ("2001::1", false),
        ("2001:db8::1", false),
        ("fc00::1", false),
        ("fe80::1", false),
        ("ff02::1", false),
    ] {
        assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
    }
    let limit = std::time::Duration::from_secs(5);
    for url in ["http://93.184.216.34/", "https://127.0.0.1/x", "https://localhost/x", "https://[::1]/x"] {
        assert!(fetch_public_document(url, 1000, limit).is_err(), "{url}");
    }
}
