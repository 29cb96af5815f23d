//! Tests `sidenote sync` with the login that `sidenote login` made: its tokens are used, renewed, and asked for anew.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sidenote::base::clock::Clock;
use sidenote::share::oauth::stored_login::{LoginStore, StoredLogin};
use sidenote::share::{Database, members, team};
use sidenote::store::Role;
use tempfile::TempDir;

use super::cluster::Cluster;
use super::serving::serve_on;
use crate::http::Server;
use crate::login::client::browse;
use crate::login::provider::{Fault, Provider};
use crate::support::{TestVault, clean_env, program, stderr, stdout, until};

/// A person with a folder, a vault of a team, and the provider at which they log in.
struct Fixture {
    cluster: Cluster,
    _home: TempDir,
    provider: Provider,
    server: Server,
    vault: TestVault,
}

impl Fixture {
    fn new() -> Self {
        let (cluster, home, provider) = (Cluster::new(), TempDir::new().unwrap(), Provider::start());
        let database = Database::new(&cluster.app()).unwrap();
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("Plan.md"), "# Plan\n").unwrap();
        team::create(&database, "v", Some(folder.path()), 50_000_000, Clock::System.now(), false).unwrap();
        // The tokens are for the public address, so the port is chosen before.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let login = format!("[login]\nissuer = {:?}\nurl = \"http://{address}\"\n", provider.issuer);
        let server = serve_on(&cluster.app(), home.path(), &address, &login, &[]);
        let fixture = Self { cluster, _home: home, provider, server, vault: TestVault::new(&[]) };
        fixture.grant(Some(Role::Writer));
        fixture
    }

    fn grant(&self, role: Option<Role>) {
        let owner = Database::new(&self.cluster.owner()).unwrap();
        let who = format!("{}#anna", self.provider.issuer);
        members::set_role(&owner, "v", &who, role, Clock::System.now(), false).unwrap();
    }

    fn url(&self) -> String {
        format!("http://{}/v/v", self.server.address())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        clean_env(&mut command, &self.vault.root().join(".home")).args(args);
        command
    }

    /// Synchronises at a time.
    fn sync_at(&self, now: &str) -> Output {
        let folder = self.vault.root().to_str().unwrap();
        let mut command = self.command(&["sync", &self.url(), "--json", "--vault", folder]);
        command.env("SIDENOTE_NOW", now).output().unwrap()
    }

    #[track_caller]
    fn check(&self, now: &str, code: i32, said: &str) {
        let done = self.sync_at(now);
        let all = stdout(&done) + &stderr(&done);
        assert!(done.status.code() == Some(code) && all.contains(said), "{:?}: {all}", done.status);
        let secrets = self.provider.logins(|logins| logins.secrets.clone());
        assert!(secrets.iter().all(|secret| !all.contains(secret.as_str())), "{all}");
    }

    fn log_in(&self) {
        let mut command = self.command(&["login", &self.url(), "--no-browser"]);
        let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        let (status, page) = browse(&lines.next().unwrap().unwrap());
        assert_eq!(status, 200, "{page}");
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(running.wait().unwrap().success(), "{rest:?}");
    }

    fn store(&self) -> LoginStore {
        let data = if cfg!(windows) { "Roaming/sidenote/logins" } else { ".local/share/sidenote/logins" };
        LoginStore::new(self.vault.root().join(".home").join(data))
    }

    fn stored(&self) -> StoredLogin {
        self.store().find(&self.url()).unwrap().unwrap()
    }

    fn requests(&self) -> usize {
        self.provider.logins(|logins| logins.token_requests.len())
    }
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_synchronisation_uses_and_renews_the_stored_login() {
    let now = "2026-11-23T14:05:00Z";
    let it = Fixture::new();
    let hint = format!("run `sidenote login {}`", it.url());
    it.check(now, 2, &hint);
    it.log_in();
    it.check(now, 0, "Plan.md");
    assert_eq!(it.requests(), 1);
    // It has expired by this clock, and is renewed; for the service both tokens count.
    let first = it.stored();
    it.vault.write("By Anna.md", "By Anna");
    it.check("2099-01-01T00:00:00Z", 0, "By Anna.md");
    let second = it.stored();
    assert_eq!(it.requests(), 2);
    assert!(second.access_token != first.access_token && second.refresh_token != first.refresh_token);
    // One that the service refuses is renewed, too.
    let other = StoredLogin { access_token: "not-one-of-theirs".to_owned().into(), ..second };
    it.store().store(&other).unwrap();
    it.check(now, 0, "\"generation\"");
    assert_eq!(it.requests(), 3);
    // Where nothing helps, the message says what does.
    it.provider.fail(Some(Fault::RefreshRefused));
    it.check("2099-06-01T00:00:00Z", 2, &hint);
    let other = StoredLogin { refresh_token: String::new().into(), ..other };
    it.store().store(&other).unwrap();
    it.check(now, 2, "does not accept your login any more");
    it.check(now, 2, &hint);
    it.provider.fail(None);
    it.log_in();
    it.grant(None);
    it.check(now, 3, "you have no right to it");
    it.grant(Some(Role::Writer));
    it.check(now, 0, "\"generation\"");
    let forgotten = it.command(&["login", &it.url(), "--forget"]).output().unwrap();
    assert!(forgotten.status.success(), "{}", stderr(&forgotten));
    it.check(now, 2, &hint);
    let log = it.server.stop();
    let secrets = it.provider.logins(|logins| logins.secrets.clone());
    assert!(secrets.iter().all(|secret| !log.contains(secret.as_str())), "{log}");
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_watched_folder_goes_on_when_tokens_expire() {
    let it = Fixture::new();
    it.provider.fail(Some(Fault::ShortLived));
    it.log_in();
    let folder = it.vault.root().to_str().unwrap().to_owned();
    let mut command = it.command(&["sync", &it.url(), "--json", "--watch", "--vault", &folder]);
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["fetched"][0], "Plan.md");
    let before = it.requests();
    it.vault.write("Later.md", "Later");
    assert_eq!(next()["sent"][0], "Later.md");
    until("the token is renewed again", || it.requests() > before + 2);
    running.kill().unwrap();
    running.wait().unwrap();
    it.server.stop();
}
