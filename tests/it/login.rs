//! Tests the check of access tokens: which tokens count, which do not and why, and when keys are fetched.

pub(crate) mod client;
pub(crate) mod provider;
mod refusing;
pub(crate) mod token;
pub(crate) mod wrong;

use std::sync::Arc;
use std::time::Duration;

use provider::{Answer, Provider};
use serde_json::json;
use sidenote::mcp::login::{Identity, KeyTimes, Login, LoginOptions, Refusal};
use sidenote::share::settings::TeamSettings;
use sidenote::store::Role;
use token::{Signer, Token, now};
use wrong::wrong_tokens;

const URL: &str = "https://notes.example";
const AUDIENCE: &str = "https://notes.example/v/handbook/mcp";
/// The wrong tokens that there are at least.
const WRONG: usize = 50;

fn options(issuer: &str) -> LoginOptions {
    LoginOptions {
        issuers: vec![issuer.to_owned()],
        audiences: vec!["sidenote".to_owned()],
        url: URL.to_owned(),
        groups_claim: "groups".to_owned(),
        name_claim: "email".to_owned(),
        algorithms: ["RS256", "PS256", "ES256", "EdDSA"].map(str::to_owned).to_vec(),
        records_reads: false,
        key_times: KeyTimes::default(),
    }
}

fn login(provider: &Provider) -> Login {
    Login::new(options(&provider.issuer)).unwrap()
}

fn right(provider: &Provider) -> Token {
    Token::new(&provider.issuer, AUDIENCE, "anna", "openid notes:read")
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}

fn check(login: &Login, token: &str) -> Result<Identity, Refusal> {
    run(login.check(token, "handbook")).map_err(|refused| refused.refusal)
}

#[test]
fn a_token_names_its_person_groups_and_scopes() {
    let provider = Provider::start();
    let login = login(&provider);
    let token =
        right(&provider).claim("groups", json!(["staff", "", "a\nb"])).claim("scope", "notes:write x");
    let identity = check(&login, &token.sign()).unwrap();
    assert_eq!(identity.caller.who(), format!("{}#anna", provider.issuer));
    assert_eq!(identity.names, [identity.caller.who(), "group:staff".to_owned()]);
    assert_eq!(identity.caller.name.as_deref(), Some("anna@example.org"));
    assert_eq!(identity.caller.client_id.as_deref(), Some("test-client"));
    assert_eq!(identity.allowed, Some(Role::Writer));
    for (claim, value, allowed) in [
        ("scope", json!("notes:read"), Some(Role::Reader)),
        ("scope", json!("notes:admin notes:read"), Some(Role::Admin)),
        ("scope", json!("notes:reader Notes:read"), None),
        ("scp", json!(["notes:read", "notes:write"]), Some(Role::Writer)),
        ("scp", json!("notes:admin"), Some(Role::Admin)),
    ] {
        let token = right(&provider).claim("scope", json!(null)).claim(claim, value.clone());
        assert_eq!(check(&login, &token.sign()).unwrap().allowed, allowed, "{claim} {value}");
    }
}

#[test]
fn tokens_of_all_algorithms_types_and_audiences_count() {
    let provider = Provider::start();
    let login = login(&provider);
    let right = || right(&provider);
    let tokens = [
        right(),
        right().signed_by("PS256", "rsa", Signer::RsaPss),
        right().signed_by("PS256", "ps256-only", Signer::RsaPss),
        right().signed_by("ES256", "p256", Signer::P256),
        right().signed_by("EdDSA", "ed25519", Signer::Ed25519),
        right().header("typ", "JWT"),
        right().header("typ", "application/at+jwt"),
        right().claim("aud", "sidenote"),
        right().claim("aud", json!(["https://other.example", AUDIENCE])),
        // Clocks may differ by a minute.
        right().claim("exp", now() - 30),
        right().claim("nbf", now() + 30),
        // What a header says about keys means nothing.
        right().header("jku", "http://127.0.0.1:1/keys").header("jwk", token::attackers_jwk()),
    ];
    for token in tokens {
        assert_eq!(check(&login, &token.sign()).map(drop), Ok(()), "{} {}", token.header, token.claims);
    }
    assert_eq!(provider.take_asked(), ["/.well-known/openid-configuration", "/keys"]);
}

#[test]
fn every_wrong_token_is_refused_for_its_reason() {
    let provider = Provider::start();
    let login = login(&provider);
    let wrong = wrong_tokens(&provider.issuer, AUDIENCE);
    assert!(wrong.len() >= WRONG, "{}", wrong.len());
    for case in wrong {
        assert_eq!(check(&login, &case.token).map(drop), Err(case.refusal), "{}", case.what);
    }
    assert_eq!(provider.take_asked().len(), 2, "no token had anything fetched");
}

#[test]
fn a_refusal_says_what_was_expected_and_what_was_found() {
    let provider = Provider::start();
    let login = login(&provider);
    let right = || right(&provider);
    let issuer = &provider.issuer;
    let cases = [
        (
            right().claim("iss", "https://other.example"),
            format!("\"https://other.example\", and login.issuer is {issuer}"),
        ),
        (right().claim("iss", json!(null)), format!("the token has nothing, and login.issuer is {issuer}")),
        (
            right().claim("aud", json!(["a", "b"])),
            format!("the token has [\"a\",\"b\"], and accepted are sidenote, {AUDIENCE}"),
        ),
        (right().claim("exp", 0), "exp is 1970-01-01T".to_owned()),
        (right().claim("exp", now() - 90), "s ago; the clock of this server says 20".to_owned()),
        (right().claim("nbf", now() + 90), "s from now; the clock of this server says 20".to_owned()),
        (right().header("kid", "unknown\nkey"), "the token names \"unknown\\nkey\" for RS256".to_owned()),
        (right().header("typ", "dpop+jwt"), "the token has \"dpop+jwt\"".to_owned()),
        (right().claim("aud", "x".repeat(1_000)), format!("{}…, and accepted are", "x".repeat(100))),
    ];
    assert_eq!(cases.len(), 9);
    for (token, expected) in cases {
        let told = run(login.check(&token.sign(), "handbook")).unwrap_err().to_string();
        assert!(told.contains(&expected), "{expected}: {told}");
        assert!(told.len() < 600 && !told.contains('\n'), "{told}");
    }
}

#[test]
fn a_thousand_unknown_keys_are_one_fetch() {
    let provider = Provider::start();
    let login = Arc::new(login(&provider));
    let right_token = right(&provider).sign();
    let tokens = (0..1_000).map(|at| right(&provider).header("kid", format!("unknown {at}")).sign());
    let tokens: Vec<String> = tokens.collect();
    let last = tokens[999].clone();
    run(async {
        let checks: Vec<_> = tokens
            .into_iter()
            .map(|token| {
                let login = Arc::clone(&login);
                tokio::spawn(async move {
                    login.check(&token, "handbook").await.map_err(|refused| refused.refusal)
                })
            })
            .collect();
        for check in checks {
            assert_eq!(check.await.unwrap().map(drop), Err(Refusal::UnknownKey));
        }
        // Whoever has a token of a new key knows when to try again.
        let refused = login.check(&last, "handbook").await.unwrap_err();
        assert!(refused.retry_after.is_some_and(|after| (50..=60).contains(&after.as_secs())), "{refused:?}");
    });
    assert_eq!(provider.take_asked(), ["/.well-known/openid-configuration", "/keys"]);
    assert_eq!(check(&login, &right_token).map(drop), Ok(()));
    assert_eq!(provider.take_asked(), [""; 0]);
}

#[test]
fn keys_are_read_again_and_old_ones_hold_while_the_provider_is_away() {
    let provider = Provider::start();
    let times = KeyTimes {
        refresh: Duration::from_millis(1),
        retry: Duration::from_millis(1),
        hold: Duration::from_secs(3),
    };
    let login = Login::new(LoginOptions { key_times: times, ..options(&provider.issuer) }).unwrap();
    let check = |expected: Result<(), Refusal>| {
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(check(&login, &right(&provider).sign()).map(drop), expected);
    };
    check(Ok(()));
    for answer in [Answer::Nothing, Answer::Redirect, Answer::TooLong] {
        provider.set(answer);
        check(Ok(()));
    }
    // A key that the provider withdrew does not count.
    provider.set(Answer::OtherKeys);
    check(Err(Refusal::UnknownKey));
    provider.set(Answer::Keys);
    check(Ok(()));
    provider.set(Answer::Nothing);
    std::thread::sleep(Duration::from_secs(4));
    check(Err(Refusal::NoKeys));
    provider.set(Answer::Keys);
    check(Ok(()));
    assert!(!provider.take_asked().contains(&"/moved".to_owned()), "a redirect was followed");
}

#[test]
fn a_provider_that_never_answered_gives_no_reason_to_trust() {
    for answer in [Answer::Nothing, Answer::Redirect, Answer::TooLong] {
        let provider = Provider::start();
        provider.set(answer);
        assert_eq!(check(&login(&provider), &right(&provider).sign()).map(drop), Err(Refusal::NoKeys));
        assert!(!provider.take_asked().contains(&"/moved".to_owned()), "a redirect was followed");
    }
}

#[test]
fn the_settings_of_login_are_tables_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("team.toml");
    let load = |more: &str| {
        std::fs::write(&file, format!("[team]\ndatabase = \"postgres:///x\"\ncache = \"c\"\n{more}"))
            .unwrap();
        #[cfg(unix)]
        crate::support::set_mode(&file, 0o600);
        TeamSettings::load(&file)
    };
    let without = load("").unwrap();
    assert_eq!((without.login, without.audit.reads), (None, false));
    let url = "url = \"https://notes.example\"";
    let with = load(&format!("[login]\nissuer = \"https://a\"\n{url}\n[audit]\nreads = true\n")).unwrap();
    let login = with.login.unwrap();
    assert_eq!((login.issuer, with.audit.reads), (vec!["https://a".to_owned()], true));
    assert_eq!((login.groups_claim.as_str(), login.name_claim.as_str()), ("groups", "email"));
    assert_eq!(login.algorithms, ["RS256", "PS256", "ES256", "EdDSA"]);
    let with = load(&format!("[login]\nissuer = [\"https://a\", \"https://b\"]\n{url}\n")).unwrap();
    assert_eq!(with.login.unwrap().issuer.len(), 2);
    for (wrong, named) in [
        (format!("[login]\n{url}\n"), "issuer"),
        ("[login]\nissuer = \"https://a\"\n".to_owned(), "url"),
        (format!("[login]\nissuer = 1\n{url}\n"), "a list of addresses"),
        (format!("[login]\nissuer = \"https://a\"\n{url}\nsecret = 1\n"), "secret"),
        ("[audit]\nwrites = true\n".to_owned(), "writes"),
        ("[logins]\n".to_owned(), "logins"),
    ] {
        let error = load(&wrong).unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("team.toml"), "{wrong}: {error}");
    }
}

#[test]
fn settings_that_cannot_be_trusted_are_refused_by_name() {
    let right = || options("https://login.example/realm");
    assert!(Login::new(right()).is_ok());
    let wrong = [
        (LoginOptions { issuers: Vec::new(), ..right() }, "login.issuer"),
        (LoginOptions { issuers: vec!["http://login.example".to_owned()], ..right() }, "login.issuer"),
        (LoginOptions { issuers: vec!["login.example".to_owned()], ..right() }, "login.issuer"),
        (LoginOptions { issuers: vec!["https://login.example?x=1".to_owned()], ..right() }, "login.issuer"),
        (LoginOptions { issuers: vec!["https://a@login.example".to_owned()], ..right() }, "login.issuer"),
        (LoginOptions { url: "http://notes.example".to_owned(), ..right() }, "login.url"),
        (LoginOptions { url: "https://notes.example/team".to_owned(), ..right() }, "login.url"),
        (LoginOptions { url: "notes.example".to_owned(), ..right() }, "login.url"),
        (LoginOptions { algorithms: Vec::new(), ..right() }, "login.algorithms"),
        (LoginOptions { algorithms: vec!["none".to_owned()], ..right() }, "login.algorithms"),
        (LoginOptions { algorithms: vec!["HS256".to_owned()], ..right() }, "login.algorithms"),
        (LoginOptions { algorithms: vec!["rs256".to_owned()], ..right() }, "login.algorithms"),
    ];
    for (options, key) in wrong {
        let error = Login::new(options.clone()).map(drop).unwrap_err();
        assert!(error.message().contains(key), "{options:?}: {error}");
        assert!(error.hint().is_some(), "{options:?}");
    }
    assert!(Login::new(LoginOptions { url: "http://127.0.0.1:3000".to_owned(), ..right() }).is_ok());
}
