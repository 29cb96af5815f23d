//! Tests servers and a database on several hosts, as network namespaces: encrypted connections, and a network that is cut.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sidenote::share::Database;

use super::cluster::Cluster;
use super::{Server, check_whole, create, note, paths};
use crate::support::{clean_env, program, say, stderr};

/// The address of the database, and that of the other host.
const DATABASE: &str = "10.213.7.1";
const HOST: &str = "10.213.7.2";
/// The time after which the database ends the transaction of a server that was cut off, and two seconds more.
const TURN: Duration = Duration::from_secs(12);

#[track_caller]
fn ip(args: &str) {
    let done = Command::new("ip").args(args.split(' ')).output().unwrap();
    assert!(done.status.success(), "ip {args}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Another host: a network namespace that a cable joins to this one. Gone at the end of the test.
struct OtherHost {
    name: String,
    cable: String,
}

impl OtherHost {
    fn new() -> Self {
        let id = std::process::id() % 100_000;
        let host = Self { name: format!("sidenote{id}"), cable: format!("sn{id}") };
        let (name, cable) = (&host.name, &host.cable);
        ip(&format!("netns add {name}"));
        ip(&format!("link add {cable} type veth peer name {cable}p netns {name}"));
        ip(&format!("address add {DATABASE}/24 dev {cable}"));
        ip(&format!("-n {name} address add {HOST}/24 dev {cable}p"));
        ip(&format!("link set {cable} up"));
        ip(&format!("-n {name} link set {cable}p up"));
        ip(&format!("-n {name} link set lo up"));
        host
    }

    /// Pulls the cable, or plugs it in again.
    fn connect(&self, is_connected: bool) {
        // The other end: an address of this end would be gone with it.
        let state = if is_connected { "up" } else { "down" };
        ip(&format!("-n {} link set {}p {state}", self.name, self.cable));
    }

    /// Prepares a command on the host.
    fn command(&self, command: &Command) -> Command {
        let mut there = Command::new("ip");
        there.args(["netns", "exec", &self.name]).arg(command.get_program()).args(command.get_args());
        there.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        there
    }
}

impl Drop for OtherHost {
    fn drop(&mut self) {
        // A failed test leaves no namespace. The cable goes with it.
        drop(Command::new("ip").args(["netns", "delete", &self.name]).output());
    }
}

fn encrypted(host: &str, port: u16, authority: &Path) -> String {
    let authority = authority.to_str().unwrap().replace('/', "%2F");
    format!("postgres://sidenote_app@{host}:{port}/notes?sslmode=verify-full&sslrootcert={authority}")
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH; and openssl"]
fn only_certificates_of_the_named_authority_count() {
    let mut cluster = Cluster::new();
    create(&cluster, None);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let authority = cluster.listen_with_tls("127.0.0.1", port);
    let check = |address: &str| Database::new(address).and_then(|database| database.check_role());
    let right = encrypted("127.0.0.1", port, &authority);
    check(&right).unwrap();
    // Without a named authority those of the system count, in whose place the variable names others.
    let home = tempfile::tempdir().unwrap();
    let address = format!("postgres://sidenote_app@127.0.0.1:{port}/notes?sslmode=verify-full");
    for (variable, code) in [("SSL_CERT_FILE", Some(0)), ("NO_CERT_FILE", Some(6))] {
        let mut command = Command::new(program());
        clean_env(&mut command, home.path()).env(variable, &authority);
        let done = command.args(["team", "check", "v", "--database", &address]).output().unwrap();
        assert_eq!(done.status.code(), code, "{variable}: {}", stderr(&done));
    }
    let mut other = Cluster::bare();
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let stranger = other.listen_with_tls("127.0.0.1", elsewhere);
    let cases = [
        (encrypted("127.0.0.1", port, &stranger), "certificate"),
        (encrypted("localhost", port, &authority), "certificate"),
        (format!("postgres://sidenote_app@127.0.0.1:{port}/notes?sslmode=require"), "certificate"),
    ];
    for (address, cause) in cases {
        let error = check(&address).unwrap_err();
        assert!(error.message().contains(cause), "{address}: {error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("sslrootcert=FILE")), "{:?}", error.hint());
    }
}

#[test]
#[ignore = "needs root, iproute2, openssl and PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_server_whose_network_is_cut_loses_its_turn_and_its_late_commit_is_refused() {
    let host = OtherHost::new();
    let mut cluster = Cluster::new();
    create(&cluster, None);
    let authority = cluster.listen_with_tls(DATABASE, 5432);
    let cache = tempfile::tempdir().unwrap();
    let mut child = super::child("team::child_keeps_the_turn", &cluster, cache.path(), "late");
    child.env("SIDENOTE_TEST_DATABASE", encrypted(DATABASE, 5432, &authority));
    let mut child = host.command(&child);
    child.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = child.spawn().unwrap();
    let mut said = BufReader::new(running.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("has the turn") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "the child ended");
    }
    host.connect(false);
    let started = Instant::now();
    let server = Server::new(&cluster);
    note(&server.store(), "Other", "The other server goes on.");
    let waited = started.elapsed();
    host.connect(true);
    running.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(running.wait().unwrap().success(), "{rest}");
    let refusal = rest.lines().find(|line| line.contains("refused: ")).unwrap_or_else(|| panic!("{rest}"));
    say(&format!("the other server waited {waited:?}; the late one was {refusal}"));
    assert!(waited < TURN, "{waited:?}");
    assert!(!server.files().join("late.md").exists());
    assert_eq!(paths(&server.store(), "late"), [""; 0]);
    check_whole(&cluster);
}
