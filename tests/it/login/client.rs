//! Tests the login of a person: what is asked of the identity provider, what is stored, how tokens are renewed, and that every
//! wrong answer is refused.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;
use sidenote::base::clock::{Clock, Timestamp};
use sidenote::base::error::{Error, ErrorKind, Result};
use sidenote::share::address::VaultAddress;
use sidenote::share::oauth::stored_login::LoginStore;
use sidenote::share::oauth::token_source::TokenSource;
use sidenote::share::oauth::{self, LoginReply, LoginRequest, PreparedLogin};
use tempfile::TempDir;

use super::provider::{Fault, Provider, form};
use crate::support::{LIMIT, clean_env, mode_of, program, set_mode, stderr, stdout};

/// The time of the login.
const NOW: i64 = 1_795_000_000_000;

fn at(seconds: i64) -> Clock {
    Clock::Fixed(Timestamp::from_millis(NOW + seconds * 1000))
}

fn address(provider: &Provider) -> VaultAddress {
    VaultAddress::parse(&format!("{}/v/v", provider.issuer)).unwrap()
}

fn request(provider: &Provider) -> LoginRequest {
    LoginRequest { address: address(provider), client_id: None, admin: false, limit: LIMIT, clock: at(0) }
}

/// Sends a request without a body, and gives status, the target of a redirect, and the page.
fn get(url: &str) -> (u16, Option<String>, String) {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let target = text.lines().find_map(|line| line.strip_prefix("Location: ")).map(str::to_owned);
    (status, target, text)
}

/// Follows the redirect of the provider as a browser does, and gives the status and the page at its end.
pub(crate) fn browse(url: &str) -> (u16, String) {
    let (status, target, _) = get(url);
    assert_eq!(status, 302);
    let (status, _, page) = get(&target.unwrap());
    (status, page)
}

/// Logs in with a browser that follows the redirect.
fn log_in(provider: &Provider, store: &LoginStore) -> Result<LoginReply> {
    log_in_with(request(provider), store)
}

fn log_in_with(request: LoginRequest, store: &LoginStore) -> Result<LoginReply> {
    let login = PreparedLogin::new(request)?;
    let mut browser = None;
    let done = login.log_in(store, &AtomicBool::new(false), &mut |url| {
        let url = url.to_owned();
        browser = Some(std::thread::spawn(move || browse(&url)));
        Ok(())
    });
    let page = browser.map(|browser| browser.join().unwrap());
    let expected = if done.is_ok() { (200, "You are logged in") } else { (400, "The login failed") };
    if let Some((status, page)) = page {
        assert!(status == expected.0 && page.contains(expected.1), "{status} {page}");
        assert!(page.contains("default-src 'none'") && !page.contains("code="), "{page}");
    }
    done.map(|reply| reply.expect("it was not stopped"))
}

fn store() -> (TempDir, LoginStore) {
    let home = TempDir::new().unwrap();
    let store = LoginStore::new(home.path().join("data/logins"));
    (home, store)
}

/// Fails if a message has a token or a code.
#[track_caller]
fn check_silent(provider: &Provider, text: &str) {
    let secrets = provider.logins(|logins| logins.secrets.clone());
    for secret in &secrets {
        assert!(!text.contains(secret.as_str()), "{secret} is in {text}");
    }
}

#[test]
fn a_login_is_for_one_vault_and_for_one_user() {
    let (provider, (_home, store)) = (Provider::start(), store());
    let reply = log_in(&provider, &store).unwrap();
    assert_eq!(reply.scopes, ["notes:read", "notes:write", "offline_access"]);
    assert_eq!((reply.client_id.as_str(), reply.renews), ("client 1", true));
    assert_eq!(reply.expires, Some(Timestamp::from_millis(NOW + 600_000)));
    let requests = provider.logins(|logins| logins.token_requests.clone());
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["resource"], format!("{}/v/v/mcp", provider.issuer));
    let address = address(&provider);
    let file = store.file(address.url());
    if cfg!(unix) {
        assert_eq!(mode_of(&file) & 0o777, 0o600);
        assert_eq!(mode_of(file.parent().unwrap()) & 0o777, 0o700);
    }
    let found = store.find(address.url()).unwrap().unwrap();
    assert!(!found.access_token.is_empty() && !found.refresh_token.is_empty());
    check_silent(&provider, &format!("{found:?}"));
    check_silent(&provider, &serde_json::to_string(&oauth::list(&store).unwrap()).unwrap());
    // A second login takes the place of the first one, and no other vault has one.
    let again = LoginRequest { client_id: Some("given".to_owned()), admin: true, ..request(&provider) };
    let again = log_in_with(again, &store).unwrap();
    assert_eq!((again.client_id.as_str(), &again.scopes[2]), ("given", &"notes:admin".to_owned()));
    assert_eq!(oauth::list(&store).unwrap(), [again]);
    assert_eq!(store.find(&format!("{}/v/V", provider.issuer)).unwrap(), None);
    if cfg!(unix) {
        crate::support::set_mode(&file, 0o640);
        let refused = store.find(address.url()).unwrap_err();
        assert!(refused.hint().unwrap().contains("chmod 600"), "{refused}");
    }
}

/// What goes wrong, the kind of the error, and a part of its message.
const FAULTS: [(Fault, ErrorKind, &str); 22] = [
    (Fault::OtherState, ErrorKind::Invalid, "is not one to this login"),
    (Fault::OtherIssuer, ErrorKind::Invalid, "is from another identity provider"),
    (Fault::NoIssuer, ErrorKind::Invalid, "does not name the identity provider"),
    (Fault::Denied, ErrorKind::Invalid, "refuses the login: access_denied: Not today␛[31m"),
    (Fault::NoCode, ErrorKind::Invalid, "has no code"),
    (Fault::TwoCodes, ErrorKind::Invalid, "has code twice"),
    (Fault::CodeRefused, ErrorKind::Invalid, "does not accept the code of the login: it answers 400"),
    (Fault::OtherType, ErrorKind::Invalid, "without a token that can be used"),
    (Fault::NoJson, ErrorKind::Invalid, "without a token that can be used"),
    (Fault::OtherMetadata, ErrorKind::Invalid, "is the metadata of another issuer, https://other.example"),
    (Fault::NoMetadata, ErrorKind::NotFound, "has no metadata"),
    (Fault::InsecureEndpoint, ErrorKind::Invalid, "names an endpoint without https"),
    (Fault::NoRegistration, ErrorKind::Invalid, "does not register programs by itself"),
    (Fault::RegistrationRefused, ErrorKind::Invalid, "invalid_client_metadata: not here"),
    (Fault::NoPkce, ErrorKind::Invalid, "PKCE with S256"),
    (Fault::MetadataMoved, ErrorKind::Invalid, "leads to another address, which is not followed"),
    (Fault::MetadataTooLong, ErrorKind::Io, "cannot be reached"),
    (Fault::NoLogin, ErrorKind::NotFound, "names no identity provider"),
    (Fault::OtherResource, ErrorKind::Invalid, "/v/other/mcp, not of http://127.0.0.1:"),
    (Fault::InsecureMetadata, ErrorKind::Invalid, "metadata at an address without https"),
    (Fault::InsecureIssuer, ErrorKind::Invalid, "http://login.example has an address without https"),
    (Fault::NoIssuers, ErrorKind::NotFound, "names no identity provider"),
];

#[test]
fn every_wrong_answer_is_refused_and_nothing_is_stored() {
    let (provider, (_home, store)) = (Provider::start(), store());
    let mut refused = 0;
    for (fault, kind, said) in &FAULTS {
        provider.fail(Some(*fault));
        let error = log_in(&provider, &store).expect_err(&format!("{fault:?}"));
        let text = format!("{error} {:?} {error:?}", error.hint());
        assert!(error.kind() == *kind && text.contains(said), "{fault:?}: {error:?}");
        assert!(!error.to_string().contains('\x1b'), "{fault:?}");
        check_silent(&provider, &text);
        assert_eq!(oauth::list(&store).unwrap(), [], "{fault:?}");
        refused += 1;
    }
    assert_eq!(refused, 22);
    // A provider without registration takes a client that its operator has registered.
    provider.fail(Some(Fault::NoRegistration));
    let given = LoginRequest { client_id: Some("given".to_owned()), ..request(&provider) };
    assert_eq!(log_in_with(given, &store).unwrap().client_id, "given");
    // The metadata may be named by nobody.
    provider.fail(Some(Fault::NoChallenge));
    assert_eq!(log_in(&provider, &store).unwrap().client_id, "client 10");
}

#[test]
fn tokens_are_renewed_once_for_all() {
    let (provider, (_home, store)) = (Provider::start(), store());
    log_in(&provider, &store).unwrap();
    let address = address(&provider);
    let source = |seconds| TokenSource::of_login(store.clone(), &address, at(seconds)).unwrap();
    let requests = || provider.logins(|logins| logins.token_requests.len());
    let first = source(0).current().unwrap();
    assert_eq!((source(570).current().unwrap(), requests()), (first.clone(), 1));
    // Two processes that know the old token: one renews it, the other one takes what is stored.
    let (one, other) = (source(590), source(590));
    let second = one.current().unwrap();
    assert!(second != first);
    assert_eq!((other.current().unwrap(), requests()), (second.clone(), 2));
    assert_eq!((one.current().unwrap(), requests()), (second.clone(), 2));
    let renewed = provider.logins(|logins| logins.token_requests[1].clone());
    assert_eq!(renewed["resource"], address.resource());
    // One that the service does not accept is renewed as well, however long it counts.
    let third = one.renewed(&second).unwrap().unwrap();
    assert_eq!((other.renewed(&second).unwrap(), requests()), (Some(third.clone()), 3));
    // Before it expires, a provider that is away is no error; afterwards it is.
    let stored = store.find(address.url()).unwrap().unwrap();
    let away = sidenote::share::oauth::stored_login::StoredLogin {
        token_endpoint: "http://127.0.0.1:9/token".to_owned(),
        ..stored.clone()
    };
    store.store(&away).unwrap();
    assert_eq!(source(590 + 590).current().unwrap(), third);
    let error = source(590 + 600).current().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    // A refresh token that does not count any more ends the login.
    store.store(&stored).unwrap();
    provider.fail(Some(Fault::RefreshRefused));
    let ended = source(5_000).current().unwrap_err();
    let hint = format!("run `sidenote login {}`", address.url());
    assert_eq!((ended.kind(), ended.hint()), (ErrorKind::Invalid, Some(hint.as_str())));
    assert!(ended.to_string().contains("has ended"), "{ended}");
    check_silent(&provider, &format!("{ended:?} {:?}", source(0)));
    // Without a login there is no token.
    assert!(oauth::forget(&store, &address, false).unwrap().applied);
    assert!(matches!(source(0), TokenSource::None));
}

#[test]
fn a_login_that_was_removed_meanwhile_ends_and_does_not_come_back() {
    let (provider, (_home, store)) = (Provider::start(), store());
    log_in(&provider, &store).unwrap();
    let address = address(&provider);
    let source = TokenSource::of_login(store.clone(), &address, at(590)).unwrap();
    assert!(store.remove(address.url()).unwrap());
    let ended = source.current().unwrap_err();
    assert!(ended.kind() == ErrorKind::Invalid && ended.to_string().contains("was removed"), "{ended}");
    assert_eq!(store.find(address.url()).unwrap(), None);
    // The login's first token is the only one that was asked for.
    assert_eq!(provider.logins(|logins| logins.token_requests.len()), 1);
}

/// The token in a file is read again, so that another program may replace it.
#[test]
fn a_token_file_is_read_for_each_request() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("token");
    let write = |token: &str| {
        fs::write(&file, token).unwrap();
        set_mode(&file, 0o600);
    };
    write("first");
    let source = TokenSource::File(file.clone());
    let first = source.current().unwrap();
    assert_eq!((first.reveal(), source.renewed(&first).unwrap()), ("first", None));
    write("second");
    assert_eq!(source.renewed(&first).unwrap().unwrap().reveal(), "second");
    assert_eq!(source.current().unwrap().reveal(), "second");
    fs::remove_file(&file).unwrap();
    let gone = source.current().unwrap_err();
    assert!(gone.kind() == ErrorKind::NotFound && gone.to_string().contains("token"), "{gone}");
}

#[test]
fn a_forgotten_login_is_revoked_and_gone() {
    let (provider, (_home, store)) = (Provider::start(), store());
    log_in(&provider, &store).unwrap();
    let address = address(&provider);
    let would = oauth::forget(&store, &address, true).unwrap();
    assert_eq!((would.revocable, would.revoked, would.applied), (true, false, false));
    assert_eq!(oauth::list(&store).unwrap().len(), 1);
    let login = store.find(address.url()).unwrap().unwrap();
    let did = oauth::forget(&store, &address, false).unwrap();
    assert_eq!((did.revoked, did.reason, did.applied), (true, None, true));
    assert_eq!(provider.logins(|logins| logins.revoked.clone()), [login.refresh_token.reveal()]);
    assert!(!store.file(address.url()).exists());
    let error = oauth::forget(&store, &address, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // A provider that is away keeps nobody from it.
    let away = Some("http://127.0.0.1:9/revoke".to_owned());
    let stored = sidenote::share::oauth::stored_login::StoredLogin { revocation_endpoint: away, ..login };
    store.store(&stored).unwrap();
    let did = oauth::forget(&store, &address, false).unwrap();
    assert!(did.applied && !did.revoked && did.reason.is_some());
    assert_eq!(oauth::list(&store).unwrap(), []);
}

#[test]
fn a_login_ends_with_time_and_with_ctrl_c_and_not_with_other_requests() {
    let (provider, (_home, store)) = (Provider::start(), store());
    let late = LoginRequest { limit: Duration::ZERO, ..request(&provider) };
    let login = PreparedLogin::new(late).unwrap();
    let error: Error = login.log_in(&store, &AtomicBool::new(false), &mut |_| Ok(())).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("nobody logged in"), "{error}");
    let login = PreparedLogin::new(request(&provider)).unwrap();
    assert_eq!(login.log_in(&store, &AtomicBool::new(true), &mut |_| Ok(())).unwrap(), None);
    // Browsers ask for icons, open connections that they do not use, and others may knock.
    let mut browser = None;
    let done = login.log_in(&store, &AtomicBool::new(false), &mut |url| {
        let url = url.to_owned();
        browser = Some(std::thread::spawn(move || {
            let asked = form(url.split_once('?').unwrap().1);
            let redirect = &asked["redirect_uri"];
            let host = redirect.strip_prefix("http://").unwrap().split('/').next().unwrap();
            drop(TcpStream::connect(host).unwrap());
            for wrong in ["/favicon.ico", "/", "/callback/x?code=1", "/Callback?code=1"] {
                assert_eq!(get(&format!("http://{host}{wrong}")).0, 404, "{wrong}");
            }
            for wrong in ["POST /callback?code=1 HTTP/1.1", "GET /callback?code=1", "GET  /callback HTTP/1.1"]
            {
                let mut stream = TcpStream::connect(host).unwrap();
                write!(stream, "{wrong}\r\n\r\n").unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).unwrap();
                assert!(text.starts_with("HTTP/1.1 404"), "{wrong}: {text}");
            }
            browse(&url)
        }));
        Ok(())
    });
    assert_eq!(browser.unwrap().join().unwrap().0, 200);
    assert!(done.unwrap().is_some());
}

fn command(home: &Path, provider: &Provider, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    clean_env(&mut command, home).env("SIDENOTE_LOG", "trace");
    command.arg("login").arg(format!("{}/v/v/mcp", provider.issuer)).args(args);
    command
}

#[test]
fn the_command_logs_in_lists_and_forgets_without_a_word_of_tokens() {
    let (provider, home) = (Provider::start(), TempDir::new().unwrap());
    let run = |args: &[&str], code: i32| {
        let done = command(home.path(), &provider, args).output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{}", stderr(&done));
        check_silent(&provider, &(stdout(&done) + &stderr(&done)));
        stdout(&done)
    };
    let plan: Value = serde_json::from_str(&run(&["--dry-run", "--json", "--admin"], 0)).unwrap();
    assert_eq!(plan["resource"], format!("{}/v/v/mcp", provider.issuer));
    assert_eq!(
        plan["scopes"],
        serde_json::json!(["notes:read", "notes:write", "notes:admin", "offline_access"])
    );
    assert!(run(&["--dry-run"], 0).contains("nothing was changed"));
    assert_eq!(provider.logins(|logins| logins.token_requests.len()), 0);
    run(&["--forget"], 3);
    let mut running = command(home.path(), &provider, &["--no-browser", "--json"]);
    let running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (running, url) = first_line(running);
    let opened: Value = serde_json::from_str(&url).unwrap();
    assert_eq!(opened["event"], "open");
    assert_eq!(browse(opened["address"].as_str().unwrap()).0, 200);
    let (status, said, log) = rest_of(running);
    assert!(status, "{log}");
    let done: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&done["event"], &done["renews"]), (&"logged-in".into(), &true.into()));
    check_silent(&provider, &(said + &log));
    let mut list = Command::new(program());
    let listed = clean_env(&mut list, home.path()).args(["login", "--list"]).output().unwrap();
    assert!(stdout(&listed).contains(&format!("{}/v/v  ", provider.issuer)), "{}", stdout(&listed));
    assert!(run(&["--forget", "--dry-run"], 0).contains("would be removed"));
    assert!(run(&["--forget"], 0).contains("its tokens are revoked"));
    // The browser is opened with the program of the user.
    #[cfg(unix)]
    {
        let opener = home.path().join("opener");
        std::fs::write(&opener, "printf %s \"$1\" > \"$0.told\"; exit 1").unwrap();
        let mut running = command(home.path(), &provider, &[]);
        running.env("SIDENOTE_OPENER", format!("/bin/sh {}", opener.display()));
        let running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let id = running.id();
        let (running, url) = first_line(running);
        let told = home.path().join("opener.told");
        crate::support::until("the browser is opened", || {
            std::fs::read_to_string(&told).is_ok_and(|told| told == url.trim())
        });
        crate::support::terminate(id);
        let (status, said, log) = rest_of(running);
        assert!(!status && said.is_empty() && !log.contains("error"), "{said} {log}");
    }
}

type Reader = std::io::BufReader<std::process::ChildStdout>;

/// Reads the first line that a program prints.
fn first_line(mut child: std::process::Child) -> ((std::process::Child, Reader), String) {
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
    ((child, reader), line)
}

/// Waits for the end of a program, and gives whether it succeeded, the rest that it printed, and its log.
fn rest_of((child, mut reader): (std::process::Child, Reader)) -> (bool, String, String) {
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    let done = child.wait_with_output().unwrap();
    (done.status.success(), said, stderr(&done))
}
