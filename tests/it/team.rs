//! Tests vaults of a team on a PostgreSQL of their own: tables and roles, import and export, two servers that write one vault,
//! and servers that are killed or cut off.

mod administering;
mod cluster;
mod failover;
mod following;
mod limits;
#[cfg(target_os = "linux")]
mod network;
mod lifecycle;
mod observing;
mod operating;
#[cfg(unix)]
mod proxy;
mod quotas;
mod rights;
mod serving;
mod sessions;
mod settings;
mod stored_login;
mod syncing;
mod vectors;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::Cluster;
use sidenote::base::clock::Clock;
use sidenote::base::error::ErrorKind;
use sidenote::share::authority::VaultLimits;
use sidenote::share::host::Host;
use sidenote::share::quota::Quotas;
use sidenote::share::settings::TeamSettings;
use sidenote::share::{Database, team};
use sidenote::store::{MoveRequest, NewRequest, Open, Operation, Store};
use tempfile::TempDir;

use crate::support::{
    TestVault, clean_env, env_number, paths, program, say, stderr, stdout, tree, was_killed,
};

/// A server of a team: its copies, and a host that serves them.
struct Server {
    cache: TempDir,
    host: Host,
}

fn settings(address: &str, cache: &Path) -> TeamSettings {
    let text = format!("database = {address:?}\ncache = {:?}\n", cache.display().to_string());
    toml::from_str(&text).unwrap()
}

fn host(settings: TeamSettings) -> Host {
    let flags = [("embed.share", "false"), ("embed.provider", "none")];
    let open = Open {
        flags: flags.iter().map(|(key, value)| (*key, (*value).to_owned(), "test")).collect(),
        clock: Clock::System,
        ..Open::default()
    };
    Host::new(settings, open).unwrap()
}

impl Server {
    fn new(cluster: &Cluster) -> Self {
        Self::of_address(&cluster.app())
    }

    fn of_address(address: &str) -> Self {
        let cache = tempfile::tempdir().unwrap();
        let host = host(settings(address, cache.path()));
        Self { cache, host }
    }

    fn store(&self) -> Store {
        self.host.store("v").unwrap()
    }

    fn files(&self) -> PathBuf {
        files_of(self.cache.path())
    }
}

/// Gives the folder of the only copy in a cache.
fn files_of(cache: &Path) -> PathBuf {
    let copies = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path().join("files"));
    let copies: Vec<PathBuf> = copies.filter(|files| files.exists()).collect();
    assert_eq!(copies.len(), 1);
    copies[0].clone()
}

fn create(cluster: &Cluster, from: Option<&Path>) {
    let database = Database::new(&cluster.app()).unwrap();
    team::create(&database, "v", from, 50_000_000, Clock::System.now(), false).unwrap();
}

fn note(store: &Store, title: &str, content: &str) -> String {
    let request =
        NewRequest { title: title.to_owned(), content: content.to_owned(), ..NewRequest::default() };
    store.changes().change(&Operation::New(request), false).unwrap().id.unwrap()
}

fn rename(store: &Store, from: &str, to: &str) {
    let request =
        MoveRequest { from: from.to_owned(), to: to.to_owned(), in_place: true, ..MoveRequest::default() };
    store.changes().change(&Operation::Move(request), false).unwrap();
}

fn dump(store: &Store) -> Vec<String> {
    store.index().refresh().unwrap();
    store.index().dump().unwrap()
}

#[track_caller]
fn check_whole(cluster: &Cluster) {
    let reply = team::check(&Database::new(&cluster.app()).unwrap(), "v").unwrap();
    assert_eq!(reply.problems, [""; 0]);
}

fn sidenote(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program());
    clean_env(&mut command, home).args(args).output().unwrap()
}

/// A vault with everything that a file can be.
fn odd_vault() -> TestVault {
    let vault = TestVault::new(&[
        ("Plan.md", "# Plan\r\nWith CRLF and [[Über]].\r\n"),
        ("\u{dc}ber.md", "composed, no newline at the end"),
        ("U\u{308}ber 2.md", "decomposed\n"),
        ("empty.md", ""),
        ("a/b/c/deep.md", "\u{feff}with a BOM\n"),
        ("same 1.md", "the same bytes\n"),
        ("same 2.md", "the same bytes\n"),
        (".trash/gone.md", "deleted\n"),
        (".obsidian/app.json", "{\"newLinkFormat\": \"shortest\"}"),
        (".sidenote/config.toml", "[memory]\nfolder = \"Mem\"\n"),
    ]);
    vault.write("bytes.md", b"\xff\xfe not UTF-8 \x00 at all");
    vault.write("picture.png", (0..=255).cycle().take(300_000).collect::<Vec<u8>>());
    // What is not shared.
    vault.write(".obsidian/workspace.json", "{}");
    vault.write(".obsidian/plugins/x/main.js", "x");
    vault.write(".sidenote/records/x", "x");
    vault.write(".hidden/x.md", "x");
    vault
}

fn shared_tree(root: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut found = tree(root);
    found.retain(|path, _| {
        !path.starts_with(".obsidian/workspace")
            && !path.starts_with(".obsidian/plugins")
            && !path.starts_with(".hidden")
    });
    found
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn init_makes_tables_whose_policies_bind_the_role_of_servers() {
    let cluster = Cluster::bare();
    let home = tempfile::tempdir().unwrap();
    let init = |more: &[&str]| {
        let address = cluster.owner();
        let args = [&["team", "init", "--database", &address, "--json"], more].concat();
        let done = sidenote(home.path(), &args);
        assert!(done.status.success(), "{}", stderr(&done));
        serde_json::from_str::<serde_json::Value>(&stdout(&done)).unwrap()
    };
    let app = Database::new(&cluster.app_before_init()).unwrap();
    assert_eq!(init(&["--dry-run"]), serde_json::json!({ "from": 0, "to": 3, "applied": false }));
    assert!(app.check_role().is_err());
    assert_eq!(init(&[]), serde_json::json!({ "from": 0, "to": 3, "applied": true }));
    assert_eq!(init(&[]), serde_json::json!({ "from": 3, "to": 3, "applied": false }));
    app.check_role().unwrap();
    let owner = Database::new(&cluster.owner()).unwrap();
    let refused = owner.check_role().unwrap_err();
    assert_eq!(
        (refused.kind(), refused.message().contains("not bound by row-level security")),
        (ErrorKind::Invalid, true)
    );
    let vault = odd_vault();
    create(&cluster, Some(vault.root()));
    // Without the vault set, nothing is seen; with another one, nothing is written; and no line of the journal changes.
    let mut client = cluster.client();
    for table in ["vault", "blob", "file", "event", "deed", "vector", "member", "block"] {
        let row = client.query_one(&format!("select count(*) from sidenote.{table}"), &[]).unwrap();
        assert_eq!(row.get::<_, i64>(0), 0, "{table}");
    }
    let id = app.vault_id("v").unwrap();
    let insert = format!(
        "insert into sidenote.event (vault, gen, id, at, op, line) values ('{id}', 9, 'x', now(), 'x', '{{}}')"
    );
    let other = "select set_config('sidenote.vault', '11111111-1111-4111-8111-111111111111', true)";
    let own = format!("select set_config('sidenote.vault', '{id}', true)");
    for (set, statement) in [
        (other, insert.as_str()),
        (&own, "update sidenote.event set line = '{}'"),
        (&own, "delete from sidenote.event"),
        (&own, "delete from sidenote.blob"),
        (&own, "update sidenote.vault set name = 'x'"),
        (&own, "truncate sidenote.file"),
        (&own, "insert into sidenote.member select id, 'x', 'admin' from sidenote.vault"),
        (&own, "update sidenote.member set role = 'admin'"),
        (&own, "insert into sidenote.block (who, is_blocked, line) values ('x', false, '{}')"),
        (&own, "delete from sidenote.block"),
        (&own, "delete from sidenote.deed"),
    ] {
        let done = client.batch_execute(&format!("begin; {set}; {statement}"));
        assert!(done.is_err(), "{statement}");
        client.batch_execute("rollback").unwrap();
    }
    check_whole(&cluster);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_vault_is_exported_byte_for_byte_also_from_a_restored_dump() {
    let cluster = Cluster::new();
    let vault = odd_vault();
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("team.toml");
    let write_config = |address: &str| {
        let cache = home.path().join("cache");
        fs::write(
            &config,
            format!("[team]\ndatabase = {address:?}\ncache = {:?}\n", cache.display().to_string()),
        )
        .unwrap();
        crate::support::set_mode(&config, 0o600);
    };
    write_config(&cluster.app());
    let run = |args: &[&str], code: i32| {
        let args = [&["team"], args, &["--config", config.to_str().unwrap()]].concat();
        let done = sidenote(home.path(), &args);
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}", stderr(&done));
        stdout(&done) + &stderr(&done)
    };
    let from = vault.root().to_str().unwrap();
    assert!(
        run(&["create", "v", "--from", from, "--dry-run"], 0).starts_with("v would be created: 12 files")
    );
    assert!(run(&["check", "v"], 3).contains("there is no vault"));
    assert!(run(&["create", "v", "--from", from], 0).starts_with("v created: 12 files"));
    assert!(run(&["create", "v"], 4).contains("already"));
    assert!(run(&["create", "a b"], 2).contains("cannot be the name"));
    let export = |folder: &str| {
        let to = home.path().join(folder);
        run(&["export", "v", to.to_str().unwrap(), "--dry-run"], 0);
        assert!(!to.exists());
        run(&["export", "v", to.to_str().unwrap()], 0);
        assert!(run(&["export", "v", to.to_str().unwrap()], 4).contains("is not empty"));
        let exported = tree(&to);
        assert_eq!(
            fs::read(to.join(".sidenote/config.toml")).unwrap(),
            fs::read(vault.root().join(".sidenote/config.toml")).unwrap()
        );
        exported
    };
    assert_eq!(export("one"), shared_tree(vault.root()));
    assert_eq!(run(&["check", "v"], 0), "v: 12 files are as they should be\n");
    // A server has the same files, and the same again after a dump, a restore elsewhere and an empty cache.
    let server = Server::new(&cluster);
    note(&server.store(), "Later", "written through a server");
    let before = dump(&server.store());
    let expected = tree(&server.files());
    cluster.dump_and_restore("elsewhere");
    write_config(&cluster.app_of("elsewhere"));
    assert_eq!(export("two"), expected);
    run(&["check", "v"], 0);
    let cache = tempfile::tempdir().unwrap();
    let fresh = host(settings(&cluster.app_of("elsewhere"), cache.path()));
    assert_eq!(dump(&fresh.store("v").unwrap()), before);
    crate::support::set_mode(&config, 0o644);
    if cfg!(unix) {
        assert!(run(&["check", "v"], 2).contains("other users can read"));
    }
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn what_one_server_writes_another_one_finds_at_once() {
    let cluster = Cluster::new();
    create(&cluster, None);
    let (one, other) = (Server::new(&cluster), Server::new(&cluster));
    let (a, b) = (one.store(), other.store());
    let count = env_number("SIDENOTE_TEST_TEAM_NOTES", 40);
    let started = Instant::now();
    for at in 0..count {
        let (writes, reads) = if at % 2 == 0 { (&a, &b) } else { (&b, &a) };
        let word = format!("word{at}");
        note(writes, &format!("Note {at}"), &format!("It says {word}."));
        assert_eq!(paths(reads, &word), [format!("Note {at}.md")]);
    }
    say(&format!("{count} of {count} found, {:?} each", started.elapsed() / u32::try_from(count).unwrap()));
    assert_eq!(dump(&a), dump(&b));
    assert_eq!(dump(&Server::new(&cluster).store()), dump(&a));
    check_whole(&cluster);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_copy_is_indexed_and_searched_as_the_plain_folder() {
    let cluster = Cluster::new();
    let plain = TestVault::example();
    create(&cluster, Some(plain.root()));
    let server = Server::new(&cluster);
    let (store, own) = (server.store(), plain.store());
    assert_eq!(dump(&store), own.index().dump().unwrap());
    for query in ["links", "how do links survive a rename", "tag:#tour", "search"] {
        let scores = |store: &Store| {
            let request = sidenote::store::SearchRequest { query: query.to_owned(), ..Default::default() };
            let found = store.searches().search(&request).unwrap().results;
            found.into_iter().map(|found| (found.path, found.score.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(scores(&store), scores(&own), "{query}");
    }
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn links_follow_what_another_server_wrote_and_changes_by_hand_are_put_right() {
    let cluster = Cluster::new();
    create(&cluster, None);
    let (one, other) = (Server::new(&cluster), Server::new(&cluster));
    let (a, b) = (one.store(), other.store());
    note(&a, "Hub", "# Hub\n");
    note(&b, "Spoke", "It belongs to [[Hub]].");
    // The plan of A considers the link that B wrote a moment ago.
    rename(&a, "Hub", "Centre");
    assert!(fs::read_to_string(one.files().join("Spoke.md")).unwrap().contains("[[Centre]]"));
    rename(&b, "Centre", "Middle");
    assert_eq!(paths(&a, "belongs"), ["Spoke.md"]);
    assert!(fs::read_to_string(one.files().join("Spoke.md")).unwrap().contains("[[Middle]]"));
    // Any server can undo what another one did.
    a.index().refresh().unwrap();
    a.changes().undo(1, false).unwrap();
    assert_eq!(paths(&b, "belongs"), ["Spoke.md"]);
    assert!(fs::read_to_string(other.files().join("Spoke.md")).unwrap().contains("[[Centre]]"));
    check_whole(&cluster);
    // What somebody changed in the copy is not shared. A copy that catches up with the same file puts it right at once.
    a.index().refresh().unwrap();
    fs::write(one.files().join("Spoke.md"), "changed by hand").unwrap();
    let refused = a.changes().change(
        &Operation::Move(MoveRequest {
            from: "Spoke".into(),
            to: "Wheel".into(),
            in_place: true,
            ..Default::default()
        }),
        false,
    );
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    rename(&a, "Spoke", "Wheel");
    assert!(fs::read_to_string(one.files().join("Wheel.md")).unwrap().starts_with("It belongs to"));
    assert_eq!(dump(&a), dump(&b));
    check_whole(&cluster);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_database_that_went_back_is_fetched_anew() {
    let cluster = Cluster::new();
    create(&cluster, None);
    let Server { cache, host: first } = Server::new(&cluster);
    let store = first.store("v").unwrap();
    note(&store, "First", "alpha");
    cluster.dump_and_restore("older");
    note(&store, "Second", "beta");
    drop((store, first));
    // The same cache meets the older state, and then one that went on from there in another way.
    let address = cluster.app_of("older");
    let older = host(settings(&address, cache.path()));
    let store = older.store("v").unwrap();
    assert_eq!((paths(&store, "alpha"), paths(&store, "beta")), (vec!["First.md".to_owned()], vec![]));
    let elsewhere = tempfile::tempdir().unwrap();
    note(&host(settings(&address, elsewhere.path())).store("v").unwrap(), "Third", "gamma");
    assert_eq!(paths(&store, "gamma"), ["Third.md"]);
    drop((store, older));
    let back = host(settings(&cluster.app(), cache.path()));
    let back = back.store("v").unwrap();
    assert_eq!((paths(&back, "beta"), paths(&back, "gamma")), (vec!["Second.md".to_owned()], vec![]));
    assert_eq!(dump(&back), dump(&Server::new(&cluster).store()));
}

#[cfg(unix)]
#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_commit_whose_answer_is_lost_is_looked_up() {
    use proxy::{Cut, Proxy};
    let cluster = Cluster::new();
    create(&cluster, None);
    let proxy = Proxy::start(&cluster.socket());
    let cache = tempfile::tempdir().unwrap();
    let address = proxy.address("sidenote_app", "notes");
    let behind = host(settings(&address, cache.path()));
    let store = behind.store("v").unwrap();
    proxy.cut(Cut::Answer);
    note(&store, "Answered", "alpha");
    assert!(proxy.has_cut());
    proxy.cut(Cut::Request);
    let request =
        NewRequest { title: "Lost".to_owned(), content: "beta".to_owned(), ..NewRequest::default() };
    let error = store.changes().change(&Operation::New(request), false).unwrap_err();
    assert!(proxy.has_cut());
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    note(&store, "After", "gamma");
    let fresh = Server::new(&cluster);
    for (word, expected) in [("alpha", vec!["Answered.md"]), ("beta", vec![]), ("gamma", vec!["After.md"])] {
        assert_eq!(paths(&store, word), expected);
        assert_eq!(paths(&fresh.store(), word), expected);
    }
    assert_eq!(dump(&store), dump(&fresh.store()));
    check_whole(&cluster);
}

/// What a child process is told, in its environment.
fn child(test: &str, cluster: &Cluster, cache: &Path, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--ignored", "--test-threads=1", "--nocapture"])
        .env("SIDENOTE_TEST_DATABASE", cluster.app())
        .env("SIDENOTE_TEST_CACHE", cache)
        .env("SIDENOTE_TEST_NAME", name);
    command
}

fn told(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
#[ignore = "a child process of other tests"]
fn child_writes() {
    let Some(address) = told("SIDENOTE_TEST_DATABASE") else { return };
    let (cache, name) = (told("SIDENOTE_TEST_CACHE").unwrap(), told("SIDENOTE_TEST_NAME").unwrap());
    let store = host(settings(&address, Path::new(&cache))).store("v").unwrap();
    for at in 0..4 {
        note(&store, &format!("{name} {at}"), &format!("By {name}, see [[Hub {name}]]."));
        say(&format!("acknowledged {name} {at}.md"));
    }
    // A change of several files.
    note(&store, &format!("Hub {name}"), "The hub.");
    rename(&store, &format!("Hub {name}"), &format!("Centre {name}"));
    say(&format!("acknowledged Centre {name}.md"));
}

/// Lets one server write all the time and kills another one at every step, and checks that nothing that was acknowledged is
/// lost, nothing is half done, and all copies are equal.
fn check_kills(kills: usize) {
    let cluster = Cluster::new();
    create(&cluster, None);
    let killed_cache = tempfile::tempdir().unwrap();
    let steady = Server::new(&cluster);
    let store = steady.store();
    let mut acknowledged = BTreeSet::new();
    let (mut died, mut lived, mut step) = (0, 0, 1_usize);
    for round in 0..kills {
        let name = format!("k{round}");
        let mut command = child("team::child_writes", &cluster, killed_cache.path(), &name);
        let running = command.env("SIDENOTE_FAILPOINT", step.to_string()).stdout(std::process::Stdio::null());
        let running = running.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let own = format!("steady {round}");
        note(&store, &own, "By the steady server.");
        acknowledged.insert(format!("{own}.md"));
        let done = running.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let killed = was_killed(done.status);
        assert!(killed || done.status.success(), "{said}");
        if killed {
            died += 1
        } else {
            lived += 1
        }
        acknowledged
            .extend(said.lines().filter_map(|line| line.strip_prefix("acknowledged ").map(str::to_owned)));
        // A child that lived has no more steps.
        step = if killed { step + 1 } else { 1 };
    }
    check_whole(&cluster);
    let again = host(settings(&cluster.app(), killed_cache.path()));
    let (killed, fresh) = (again.store("v").unwrap(), Server::new(&cluster));
    let expected = dump(&fresh.store());
    assert_eq!(dump(&store), expected);
    assert_eq!(dump(&killed), expected);
    assert_eq!(tree(&steady.files()), tree(&fresh.files()));
    let files = tree(&fresh.files());
    let lost: Vec<&String> = acknowledged.iter().filter(|path| !files.contains_key(*path)).collect();
    assert_eq!(lost, [""; 0]);
    for (path, bytes) in &files {
        let Some((name, _)) = path.strip_suffix(".md").and_then(|stem| stem.split_once(' ')) else {
            continue;
        };
        if name.starts_with('k') {
            let text = String::from_utf8(bytes.clone()).unwrap();
            let is_renamed = files.contains_key(&format!("Centre {name}.md"));
            let hub = if is_renamed { "Centre" } else { "Hub" };
            assert!(text.contains(&format!("[[{hub} {name}]]")), "{path} is half renamed: {text}");
        }
    }
    say(&format!("{died} kills, {lived} lived, {} acknowledged, {} files", acknowledged.len(), files.len()));
    assert!(died > 0 || kills == 0);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_killed_server_loses_nothing_that_was_acknowledged() {
    check_kills(env_number("SIDENOTE_TEST_KILLS", 12));
}

#[test]
#[ignore = "a child process of other tests"]
fn child_keeps_the_turn() {
    let Some(address) = told("SIDENOTE_TEST_DATABASE") else { return };
    let (cache, name) = (told("SIDENOTE_TEST_CACHE").unwrap(), told("SIDENOTE_TEST_NAME").unwrap());
    let database = Arc::new(Database::new(&address).unwrap());
    let shared = sidenote::share::authority::SharedVault::open(
        &database,
        "v",
        Path::new(&cache),
        VaultLimits {
            lock_time: Duration::from_secs(15),
            max_file: 50_000_000,
            stale_time: Duration::ZERO,
            quotas: Quotas::default(),
        },
    )
    .unwrap();
    let vault = sidenote::vault::authority::with_authority(
        sidenote::vault::Vault::open(shared.root()).unwrap(),
        Arc::new(shared),
    );
    let lock = vault.lock(&vault.records()).unwrap();
    say("has the turn");
    // The parent stops this process here, and lets it go on when the turn is lost.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let change =
        crate::apply::change(vault.root(), None, Some(&format!("{name}.md")), crate::apply::whole("late"));
    let done = vault.apply(&lock, &crate::apply::plan(vec![change]), Clock::System.now());
    say(&format!("refused: {}", done.unwrap_err()));
}

#[cfg(unix)]
#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_server_that_stops_loses_its_turn_and_its_late_commit_is_refused() {
    use std::io::{BufRead as _, Write as _};
    let cluster = Cluster::new();
    create(&cluster, None);
    let cache = tempfile::tempdir().unwrap();
    let mut command = child("team::child_keeps_the_turn", &cluster, cache.path(), "late");
    let piped = std::process::Stdio::piped;
    let mut running =
        command.stdin(piped()).stdout(std::process::Stdio::null()).stderr(piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(running.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("has the turn") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "the child ended");
    }
    let pid = rustix::process::Pid::from_child(&running);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let started = Instant::now();
    let server = Server::new(&cluster);
    note(&server.store(), "Other", "The other server goes on.");
    let waited = started.elapsed();
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    running.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut said, &mut rest).unwrap();
    assert!(running.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("refused: "), "{rest}");
    say(&format!(
        "the other server waited {waited:?}; the late one was {}",
        rest.lines().find(|line| line.contains("refused")).unwrap()
    ));
    assert!(waited < Duration::from_secs(13), "{waited:?}");
    assert!(!server.files().join("late.md").exists());
    assert_eq!(paths(&server.store(), "late"), [""; 0]);
    check_whole(&cluster);
}
