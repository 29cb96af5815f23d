//! A PostgreSQL of its own in a temporary folder, reached by a socket in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sidenote::share::Database;
use tempfile::TempDir;

use crate::support::until;

/// The user as which PostgreSQL runs where the tests run as root, for which it refuses to.
#[cfg(unix)]
const NOBODY: u32 = 65_534;

/// A running cluster, gone at the end of the test.
pub(super) struct Cluster {
    folder: TempDir,
    programs: Option<PathBuf>,
    /// Where the server listens besides its socket, as options of PostgreSQL.
    options: String,
}

impl Cluster {
    /// Makes a cluster with the tables of a team.
    pub(super) fn new() -> Self {
        let cluster = Self::bare();
        assert!(Database::new(&cluster.owner()).unwrap().init(false).unwrap().applied);
        cluster
    }

    /// Makes a cluster without tables.
    pub(super) fn bare() -> Self {
        let cluster = Self::unmade();
        let data = cluster.data();
        let data = data.to_str().unwrap();
        cluster
            .run("initdb", &["-D", data, "-U", "postgres", "-A", "trust", "-N", "--locale=C", "-E", "UTF8"]);
        cluster.start();
        let socket = cluster.folder.path().to_str().unwrap();
        cluster.run("createdb", &["-h", socket, "-U", "postgres", "notes"]);
        cluster
    }

    /// Makes the folder of a cluster.
    fn unmade() -> Self {
        let folder = TempDir::new().unwrap();
        let programs = std::env::var_os("SIDENOTE_TEST_POSTGRES").map(PathBuf::from);
        #[cfg(unix)]
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Self { folder, programs, options: "-c listen_addresses=''".to_owned() }
    }

    /// Makes a standby that follows this cluster by streaming replication, and starts it.
    pub(super) fn standby(&self) -> Self {
        let standby = Self::unmade();
        let (data, socket) = (standby.data(), self.folder.path().to_str().unwrap());
        let data = data.to_str().unwrap();
        standby.run("pg_basebackup", &["-h", socket, "-U", "postgres", "-D", data, "-R", "-X", "stream"]);
        standby.start();
        standby
    }

    /// Makes a standby the primary, and waits until it is one.
    pub(super) fn promote(&self) {
        let data = self.data();
        self.run("pg_ctl", &["-D", data.to_str().unwrap(), "-w", "promote"]);
    }

    /// Gives the address by which servers find the primary of several clusters.
    pub(super) fn app_of_any(clusters: &[&Self]) -> String {
        let hosts: Vec<String> = clusters.iter().map(|cluster| encoded(cluster.folder.path())).collect();
        format!("postgres://sidenote_app@{}/notes?target_session_attrs=read-write", hosts.join(","))
    }

    /// Has the server also listen on an address of the network, by TLS alone, and restarts it. Its certificate is valid for the
    /// address. Gives the file with the certificate of the authority that issued it.
    pub(super) fn listen_with_tls(&mut self, ip: &str, port: u16) -> PathBuf {
        let folder = self.folder.path().to_owned();
        fs::write(folder.join("san"), format!("subjectAltName=IP:{ip}\nbasicConstraints=CA:FALSE\n"))
            .unwrap();
        let new = ["req", "-newkey", "rsa:2048", "-nodes", "-sha256"];
        self.run(
            "openssl",
            &[&new[..], &["-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Authority"]].concat(),
        );
        self.run(
            "openssl",
            &[&new[..], &["-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=database"]].concat(),
        );
        let issue =
            ["x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
        self.run("openssl", &[&issue[..], &["-out", "own.pem", "-sha256", "-extfile", "san"]].concat());
        let hba = self.data().join("pg_hba.conf");
        let rules = fs::read_to_string(&hba).unwrap() + &format!("\nhostssl all all {ip}/24 trust\n");
        fs::write(hba, rules.replace("127.0.0.1/32", "127.9.9.9/32")).unwrap();
        let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        self.options = format!(
            "-c listen_addresses={ip} -p {port} -c ssl=on -c ssl_cert_file={} -c ssl_key_file={}",
            file("own.pem"),
            file("own.key")
        );
        self.stop();
        self.start();
        folder.join("ca.pem")
    }

    /// Starts the server, and waits until it takes connections.
    pub(super) fn start(&self) {
        let socket = self.folder.path().to_str().unwrap();
        let options = format!("{} -c fsync=off -k {socket}", self.options);
        let (data, log) = (self.data(), self.folder.path().join("log"));
        let (data, log) = (data.to_str().unwrap(), log.to_str().unwrap());
        self.run("pg_ctl", &["-D", data, "-w", "-l", log, "-o", &options, "start"]);
    }

    /// Stops the server as in a power failure, and waits until it is gone.
    pub(super) fn stop(&self) {
        let data = self.data();
        self.run("pg_ctl", &["-D", data.to_str().unwrap(), "-w", "-m", "immediate", "stop"]);
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = match &self.programs {
            Some(folder) if folder.join(program).exists() => Command::new(folder.join(program)),
            _ => Command::new(program),
        };
        command.env("LC_ALL", "C").current_dir(self.folder.path());
        #[cfg(unix)]
        if rustix::process::geteuid().is_root() {
            std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
            std::os::unix::process::CommandExt::gid(&mut command, NOBODY);
        }
        command
    }

    #[track_caller]
    fn run(&self, program: &str, args: &[&str]) {
        // The server keeps the files that it inherits open, so the output of what starts it goes to a file.
        let out = self.folder.path().join(format!("{program}.out"));
        let file = fs::File::create(&out).unwrap();
        let mut command = self.command(program);
        let done = command.args(args).stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
        assert!(done.success(), "{program}: {}", fs::read_to_string(out).unwrap());
    }

    fn address(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@/{database}?host={}", encoded(self.folder.path()))
    }

    /// Gives the address for the role that makes the tables.
    pub(super) fn owner(&self) -> String {
        self.address("postgres", "notes")
    }

    /// Makes a role that may administer the tables and is no superuser, and gives its address.
    pub(super) fn administrator(&self) -> String {
        let mut client = postgres::Client::connect(&self.owner(), postgres::NoTls).unwrap();
        client.batch_execute("create role operator login; grant sidenote_owner to operator").unwrap();
        self.address("operator", "notes")
    }

    /// Gives the address for the role of servers.
    pub(super) fn app(&self) -> String {
        self.app_of("notes")
    }

    /// Gives the address of another database for the role of servers.
    pub(super) fn app_of(&self, database: &str) -> String {
        self.address("sidenote_app", database)
    }

    /// Gives the address for the role of servers, which does not exist yet.
    pub(super) fn app_before_init(&self) -> String {
        self.app()
    }

    /// Gives the socket by which the cluster is reached.
    #[cfg(unix)]
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    /// Connects as a server does.
    pub(super) fn client(&self) -> postgres::Client {
        postgres::Client::connect(&self.app(), postgres::NoTls).unwrap()
    }

    /// Gives the whole database as text.
    pub(super) fn dump(&self) -> String {
        let socket = self.folder.path().to_str().unwrap().to_owned();
        self.run("pg_dump", &["-h", &socket, "-U", "postgres", "-f", "notes.sql", "notes"]);
        fs::read_to_string(self.folder.path().join("notes.sql")).unwrap()
    }

    /// Copies the database into another one of the cluster, by a dump.
    pub(super) fn dump_and_restore(&self, name: &str) {
        let socket = self.folder.path().to_str().unwrap().to_owned();
        let at = ["-h", &socket, "-U", "postgres"];
        let dump = format!("{name}.dump");
        self.run("pg_dump", &[&at[..], &["-Fc", "-f", &dump, "notes"]].concat());
        self.run("createdb", &[&at[..], &[name]].concat());
        self.run("pg_restore", &[&at[..], &["-d", name, &dump]].concat());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let data = self.data();
        let stopped = self
            .command("pg_ctl")
            .args(["-D", data.to_str().unwrap(), "-m", "immediate", "-w", "stop"])
            .output();
        if stopped.is_ok_and(|done| done.status.success()) {
            until("the server is gone", || !data.join("postmaster.pid").exists());
        }
    }
}

/// Gives a path as an address has it.
fn encoded(path: &Path) -> String {
    path.to_str().unwrap().replace('%', "%25").replace('/', "%2F")
}
