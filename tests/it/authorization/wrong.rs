//! Wrong requests to the authorization server, as data: what is changed of a right request, and how it is answered. None of
//! them gives a code or a token, and none is led back to an address that was not registered.

use serde_json::{Value, json};
use sidenote::authorization::{Request, Scopes};

use super::{
    Bench, CHALLENGE, DOCUMENT, FORM, ISSUER, MINUTE, PATH, REDIRECT, VERIFIER, encoded, json_of, pairs,
    parameter, text,
};

/// The fewest wrong requests that there are to be.
const FEWEST: usize = 60;

type Change<'a> = (&'a str, Option<&'a str>);

/// Requests to the authorization endpoint that are not led back: the change, and what the page says.
const NOT_LED_BACK: [(Change<'_>, &str); 15] = [
    (("client_id", None), "names no client"),
    (("client_id", Some("sidenote-client-000000000000000000000000")), "does not know the client"),
    (("client_id", Some("http://known.example/client.json")), "does not know the client"),
    (("client_id", Some("https://known.example/other.json")), "another client_id"),
    (("client_id", Some("https://known.example/secret.json")), "name a secret"),
    (("client_id", Some("https://known.example/long.json")), "too long"),
    (("client_id", Some("https://known.example/text")), "no JSON"),
    (("client_id", Some("https://known.example/")), "must have a path"),
    (("client_id", Some("https://127.0.0.1/client.json")), "public host name"),
    (("client_id", Some("https://known.example:8443/client.json")), "no port"),
    (("redirect_uri", None), "has not registered"),
    (("redirect_uri", Some("https://evil.example/callback")), "has not registered"),
    (("redirect_uri", Some("https://client.example/callback/")), "has not registered"),
    (("redirect_uri", Some("https://client.example/callback?x=1")), "has not registered"),
    (("redirect_uri", Some("https://client.example:444/callback")), "has not registered"),
];

/// Requests to the authorization endpoint that are led back with an error.
const LED_BACK: [(Change<'_>, &str); 15] = [
    (("response_type", None), "invalid_request"),
    (("response_type", Some("token")), "unsupported_response_type"),
    (("response_type", Some("code token")), "unsupported_response_type"),
    (("response_mode", Some("fragment")), "invalid_request"),
    (("code_challenge", None), "invalid_request"),
    (("code_challenge", Some("short")), "invalid_request"),
    (("code_challenge", Some("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-c=")), "invalid_request"),
    (("code_challenge_method", None), "invalid_request"),
    (("code_challenge_method", Some("plain")), "invalid_request"),
    (("scope", Some("notes:admin")), "invalid_scope"),
    (("resource", None), "invalid_target"),
    (("resource", Some("https://evil.example/v/anna/mcp")), "invalid_target"),
    (("resource", Some("https://notes.example/v/nobody/mcp")), "invalid_target"),
    (("request", Some("eyJ")), "request_not_supported"),
    (("request_uri", Some("https://client.example/r")), "request_not_supported"),
];

/// Decisions at the page of consent: the change, and the status.
const DECISIONS: [(Change<'_>, u16); 6] = [
    (("ticket", None), 403),
    (("ticket", Some("e30.00")), 403),
    (("decision", None), 400),
    (("decision", Some("maybe")), 400),
    (("passphrase", None), 400),
    (("passphrase", Some("four words of a lisT")), 403),
];

/// Exchanges of a code: the change, and the error.
const EXCHANGES: [(Change<'_>, &str); 14] = [
    (("grant_type", None), "invalid_request"),
    (("grant_type", Some("password")), "unsupported_grant_type"),
    (("grant_type", Some("client_credentials")), "unsupported_grant_type"),
    (("client_id", None), "invalid_client"),
    (("client_id", Some(DOCUMENT)), "invalid_grant"),
    (("code", None), "invalid_request"),
    (("code", Some("sidenote-code-made-up")), "invalid_grant"),
    (("redirect_uri", None), "invalid_grant"),
    (("redirect_uri", Some("https://evil.example/callback")), "invalid_grant"),
    (("code_verifier", None), "invalid_request"),
    (("code_verifier", Some(CHALLENGE)), "invalid_grant"),
    (("code_verifier", Some("short")), "invalid_grant"),
    (("code_verifier", Some("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXK")), "invalid_grant"),
    (("resource", Some("https://notes.example/v/family/mcp")), "invalid_target"),
];

/// Refreshes: the change, and the error.
const REFRESHES: [(Change<'_>, &str); 5] = [
    (("refresh_token", None), "invalid_request"),
    (("refresh_token", Some("sidenote-refresh-made-up")), "invalid_grant"),
    (("client_id", Some(DOCUMENT)), "invalid_grant"),
    (("scope", Some("notes:admin")), "invalid_scope"),
    (("resource", Some("https://notes.example/v/family/mcp")), "invalid_target"),
];

/// Requests that are wrong by their form: method, path, media type and status.
const FORMS: [(&str, &str, &str, u16); 12] = [
    ("PUT", "/authorize", FORM, 405),
    ("GET", "/token", "", 405),
    ("GET", "/register", "", 405),
    ("GET", "/revoke", "", 405),
    ("POST", "/.well-known/oauth-authorization-server", FORM, 405),
    ("POST", "/token", "application/json", 415),
    ("POST", "/token", "", 415),
    ("POST", "/token", "multipart/form-data", 415),
    ("POST", "/register", FORM, 415),
    ("POST", "/revoke", "text/plain", 415),
    ("POST", "/authorize", "application/json", 415),
    ("POST", "/revoke", FORM, 400),
];

/// The metadata of clients that are refused, each with the error.
fn registrations() -> Vec<(Value, &'static str)> {
    let uris = |uri: &str| json!({ "redirect_uris": [uri] });
    vec![
        (json!([]), "invalid_client_metadata"),
        (json!({}), "invalid_redirect_uri"),
        (json!({ "redirect_uris": [] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": REDIRECT }), "invalid_client_metadata"),
        (json!({ "redirect_uris": [1] }), "invalid_client_metadata"),
        (json!({ "redirect_uris": vec![REDIRECT; 11] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": [REDIRECT], "client_name": 1 }), "invalid_client_metadata"),
        (json!({ "redirect_uris": [REDIRECT], "grant_types": ["implicit"] }), "invalid_client_metadata"),
        (json!({ "redirect_uris": [REDIRECT], "response_types": ["token"] }), "invalid_client_metadata"),
        (uris("http://client.example/callback"), "invalid_redirect_uri"),
        (uris("https://client.example/callback#x"), "invalid_redirect_uri"),
        (uris("https://user@client.example/callback"), "invalid_redirect_uri"),
        (uris("javascript:alert(1)"), "invalid_redirect_uri"),
        (uris("data:text/html,x"), "invalid_redirect_uri"),
        (uris("file:///etc/passwd"), "invalid_redirect_uri"),
        (uris("/callback"), "invalid_redirect_uri"),
        (uris("http:localhost/callback"), "invalid_redirect_uri"),
        (uris("http:/localhost/callback"), "invalid_redirect_uri"),
        (uris("http://127.1/callback"), "invalid_redirect_uri"),
        (uris("http://127.0.0.2/callback"), "invalid_redirect_uri"),
        (uris("http://LOCALHOST/callback"), "invalid_redirect_uri"),
        (uris("http://localhost:99999/callback"), "invalid_redirect_uri"),
        (uris("https:client.example/callback"), "invalid_redirect_uri"),
        (uris("https://client.example;script-src/callback"), "invalid_redirect_uri"),
        (uris("https://*.example/callback"), "invalid_redirect_uri"),
        (uris("ms-settings:display"), "invalid_redirect_uri"),
        (uris("steam://run/1"), "invalid_redirect_uri"),
        (uris("https://client.example/\r\nx"), "invalid_redirect_uri"),
        (uris(&format!("https://client.example/{}", "x".repeat(2048))), "invalid_redirect_uri"),
    ]
}

#[test]
fn there_are_many_wrong_requests() {
    let counted =
        [NOT_LED_BACK.len(), LED_BACK.len(), DECISIONS.len(), EXCHANGES.len(), REFRESHES.len(), FORMS.len()];
    let all = counted.iter().sum::<usize>() + registrations().len();
    assert!(all >= FEWEST, "{all}");
}

#[test]
fn wrong_clients_and_redirects_are_told_to_the_person_alone() {
    for (change, says) in NOT_LED_BACK {
        let bench = Bench::new();
        let reply = bench.ask(&bench.client(), &[change]);
        assert_eq!((reply.status, reply.header("location")), (400, None), "{change:?}");
        assert!(reply.body.contains(says), "{change:?}: {}", reply.body);
    }
}

#[test]
fn wrong_authorization_requests_are_led_back_with_the_error() {
    let bench = Bench::new();
    // Nobody is led back to a client that anybody may have registered, and to which nobody gave access.
    let stranger = bench.client();
    for (change, _) in LED_BACK {
        let reply = bench.ask(&stranger, &[change]);
        assert_eq!((reply.status, reply.header("location")), (400, None), "{change:?}");
        assert!(reply.body.contains("The request of the client is wrong"), "{change:?}: {}", reply.body);
    }
    let (client, _) = bench.log_in();
    for (change, error) in LED_BACK {
        let reply = bench.ask(&client, &[change]);
        let location = reply.header("location").unwrap_or_else(|| panic!("{change:?}: {}", reply.body));
        assert!(location.starts_with(REDIRECT), "{change:?}");
        let told = |name: &str| parameter(location, name);
        assert_eq!(told("error").as_deref(), Some(error), "{change:?}");
        assert_eq!((told("iss").as_deref(), told("state").as_deref()), (Some(ISSUER), Some("st&te")));
        assert_eq!(told("code"), None);
    }
    let twice = bench.send("GET", &format!("/authorize?client_id={client}&client_id={client}"), "", "");
    assert_eq!(twice.status, 400);
}

#[test]
fn wrong_decisions_give_no_code() {
    for (change, status) in DECISIONS {
        let bench = Bench::new();
        let reply = bench.decide(&bench.consent(&bench.client(), &[]), &[change]);
        assert_eq!((reply.status, reply.header("location")), (status, None), "{change:?}");
    }
    let bench = Bench::new();
    let client = bench.client();
    let consent = bench.consent(&client, &[]);
    let other = bench.consent(&client, &[]);
    let form = encoded(&pairs(
        &[("ticket", &consent.ticket), ("passphrase", super::PASSPHRASE), ("decision", "allow")],
        &[],
    ));
    for cookie in [None, Some(other.cookie.as_str()), Some("__Host-sidenote-consent="), Some("x")] {
        let reply = bench.send_with("POST", "/authorize", FORM, &form, cookie);
        assert_eq!((reply.status, reply.header("location")), (403, None), "{cookie:?}");
    }
    // What another site sends is refused before it is looked at.
    for site in ["cross-site", "same-site", "none"] {
        let request = Request {
            method: "POST",
            path: "/authorize",
            query: "",
            content_type: Some(FORM),
            body: form.as_bytes(),
            cookie: Some(&consent.cookie),
            has_credentials: false,
            fetch_site: Some(site),
            address: bench.address,
        };
        assert_eq!(bench.server.handle(&request).unwrap().status, 403, "{site}");
    }
    bench.pass(10 * MINUTE);
    assert_eq!(bench.decide(&consent, &[]).status, 403);
    // Another process has another key.
    let restarted = Bench::of(&bench._data, ISSUER, Scopes::Write);
    assert_eq!(restarted.decide(&bench.consent(&client, &[]), &[]).status, 403);
}

#[test]
fn wrong_exchanges_give_no_token() {
    for (change, error) in EXCHANGES {
        let bench = Bench::new();
        let client = bench.client();
        let reply = bench.redeem(&client, &bench.code(&client, &[]), &[change]);
        let status = if error == "invalid_client" { 401 } else { 400 };
        assert_eq!((reply.status, &json_of(&reply)["error"]), (status, &json!(error)), "{change:?}");
        assert_eq!(bench.logins.list(bench.server.now()).unwrap(), [], "{change:?}");
    }
    let bench = Bench::new();
    let client = bench.client();
    let code = bench.code(&client, &[]);
    bench.pass(MINUTE);
    assert_eq!(json_of(&bench.redeem(&client, &code, &[]))["error"], "invalid_grant");
    // A code counts once, also where it was not redeemed.
    let code = bench.code(&client, &[]);
    assert_eq!(bench.redeem(&client, &code, &[("code_verifier", Some(CHALLENGE))]).status, 400);
    assert_eq!(bench.redeem(&client, &code, &[]).status, 400);
    // Nobody has a secret here.
    let body = format!("grant_type=authorization_code&code={code}&code_verifier={VERIFIER}");
    let request = Request {
        method: "POST",
        path: "/token",
        query: "",
        content_type: Some(FORM),
        body: body.as_bytes(),
        cookie: None,
        has_credentials: true,
        fetch_site: None,
        address: bench.address,
    };
    let reply = bench.server.handle(&request).unwrap();
    assert_eq!((reply.status, &json_of(&reply)["error"]), (401, &json!("invalid_client")));
}

#[test]
fn wrong_refreshes_give_no_token() {
    for (change, error) in REFRESHES {
        let bench = Bench::new();
        let (client, tokens) = bench.log_in();
        let reply = bench.refresh(&client, text(&tokens["refresh_token"]), &[change]);
        assert_eq!((reply.status, &json_of(&reply)["error"]), (400, &json!(error)), "{change:?}");
        // The token was not used up by that.
        assert_eq!(bench.refresh(&client, text(&tokens["refresh_token"]), &[]).status, 200, "{change:?}");
    }
    let bench = Bench::new();
    let (client, tokens) = bench.log_in();
    assert_eq!(bench.refresh(&client, text(&tokens["access_token"]), &[]).status, 400);
    bench.pass(46 * 24 * 60 * MINUTE);
    assert_eq!(bench.refresh(&client, text(&tokens["refresh_token"]), &[]).status, 400);
}

#[test]
fn wrong_forms_are_refused() {
    let bench = Bench::new();
    for (method, path, kind, status) in FORMS {
        assert_eq!(bench.send(method, path, kind, "").status, status, "{method} {path} {kind}");
    }
    let large = "x".repeat((64 << 10) + 1);
    for (path, kind) in [("/token", FORM), ("/register", "application/json"), ("/authorize", FORM)] {
        assert_eq!(bench.send("POST", path, kind, &large).status, 413, "{path}");
    }
    for body in ["grant_type=refresh_token&grant_type=refresh_token&client_id=x", &"a=1&b=2&".repeat(30)] {
        assert_eq!(bench.send("POST", "/token", FORM, body).status, 400, "{body}");
    }
    assert_eq!(bench.send("POST", "/register", "application/json", "{").status, 400);
}

#[test]
fn wrong_registrations_are_refused() {
    let bench = Bench::new();
    for (metadata, error) in registrations() {
        let reply = bench.register(&metadata);
        assert_eq!((reply.status, &json_of(&reply)["error"]), (400, &json!(error)), "{metadata}");
    }
}

#[test]
fn wrong_tokens_open_nothing() {
    let bench = Bench::new();
    let (client, tokens) = bench.log_in();
    let right = text(&tokens["access_token"]);
    let (upper, cut) = (right.to_uppercase(), &right[..right.len() - 1]);
    let family = [("resource", Some("https://notes.example/v/family/mcp"))];
    let other = json_of(&bench.redeem(&client, &bench.code(&client, &family), &family));
    for wrong in ["", "made-up", text(&tokens["refresh_token"]), &upper, cut, text(&other["access_token"])] {
        assert!(!bench.counts(wrong), "{wrong}");
    }
    for path in ["/v/family/mcp", "/mcp", "/v/anna/mcp/", "/v/Anna/mcp", ""] {
        assert!(bench.server.check(right, path).unwrap().is_none(), "{path}");
    }
    // Another address of the server is another resource, and the tokens of another one count for none.
    let elsewhere = Bench::of(&bench._data, "https://other.example", Scopes::Write);
    assert!(!elsewhere.counts(right));
    let read_only = Bench::of(&bench._data, ISSUER, Scopes::Read);
    assert_eq!(read_only.server.check(right, PATH).unwrap().unwrap().scopes, Scopes::Read);
}
