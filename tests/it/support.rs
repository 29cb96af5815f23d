//! What tests share: a vault in a temporary folder, a store on it, and the program with a clean environment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use std::{fs, io};

use sidenote::base::clock::{Clock, Timestamp};
use sidenote::base::platform;
use sidenote::index::silent;
use sidenote::markdown::edit::{Edit, apply};
use sidenote::markdown::frontmatter::edit::Refusal;
use sidenote::store::{Open, SearchRequest, Store};
use tempfile::TempDir;

/// How long a test waits for an event that must happen. It is generous, and only ends a test that would hang.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}

/// Does something on a thread of its own, and waits for its end: work that is not linear would hang the tests.
#[track_caller]
pub(crate) fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, ended) = channel();
    std::thread::spawn(move || drop(sender.send(work())));
    ended.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{what} does not end, or panicked"))
}

/// A vault of its own, gone at the end of the test.
pub(crate) struct TestVault {
    folder: TempDir,
}

impl TestVault {
    /// Makes a vault of paths and texts.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::new_in(&std::env::temp_dir(), files)
    }

    /// Makes a vault of paths and texts in a folder.
    pub(crate) fn new_in(folder: &Path, files: &[(&str, &str)]) -> Self {
        // The zone of whoever runs the tests changes nothing.
        sidenote::base::clock::use_utc();
        let vault = Self { folder: TempDir::new_in(folder).unwrap() };
        for (path, text) in files {
            vault.write(path, text);
        }
        vault
    }

    /// Copies the example vault.
    pub(crate) fn example() -> Self {
        Self::copy_of(&repository().join("example-vault"))
    }

    /// Copies a vault.
    pub(crate) fn copy_of(root: &Path) -> Self {
        let vault = Self { folder: tempfile::tempdir().unwrap() };
        copy(root, vault.root());
        vault
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let disk = self.root().join(path);
        fs::create_dir_all(disk.parent().unwrap()).unwrap();
        fs::write(disk, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.root().join(path)).unwrap();
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::create_dir_all(self.root().join(to).parent().unwrap()).unwrap();
        fs::rename(self.root().join(from), self.root().join(to)).unwrap();
    }

    /// Opens the vault without a model and brings the index up to date.
    pub(crate) fn store(&self) -> Store {
        self.store_with("none")
    }

    /// Opens the vault with an embedder and brings the index up to date.
    pub(crate) fn store_with(&self, provider: &str) -> Store {
        let store = self.open(provider);
        store.index().sync(silent()).unwrap();
        store
    }

    pub(crate) fn open(&self, provider: &str) -> Store {
        self.open_set(&[("embed.provider", provider)])
    }

    /// Opens the vault with these settings. The cache of the user who runs the tests is not touched: no vectors are shared.
    pub(crate) fn open_set(&self, settings: &[(&'static str, &str)]) -> Store {
        let own = [("embed.share", "false")];
        Store::open(Open {
            vault: Some(self.root().to_owned()),
            flags: own
                .iter()
                .chain(settings)
                .map(|(key, value)| (*key, (*value).to_owned(), "test"))
                .collect(),
            clock: Clock::Fixed(Timestamp::parse("2026-11-21").unwrap()),
            ..Open::default()
        })
        .unwrap()
    }

    /// Runs the program on the vault, without a model and in an empty environment.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        clean_env(&mut command, &self.root().join(".home"))
            .env("SIDENOTE_NOW", "2026-11-21")
            .env("SIDENOTE_EMBED_PROVIDER", "none")
            .arg("--vault")
            .arg(self.root())
            .args(args);
        command
    }

    /// Gives every file outside `.sidenote` with its bytes and its modification time.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
        let mut found = BTreeMap::new();
        walk(self.root(), &mut |path| {
            let modified = fs::metadata(path).unwrap().modified().unwrap();
            found.insert(path.to_owned(), (fs::read(path).unwrap(), modified));
        });
        found
    }
}

/// Returns the program under test: the one that cargo built, or the one that `SIDENOTE_TEST_PROGRAM` names.
pub(crate) fn program() -> PathBuf {
    let named = std::env::var_os("SIDENOTE_TEST_PROGRAM").map(PathBuf::from);
    if let Some(path) = &named {
        assert!(
            path.is_absolute() && path.is_file(),
            "SIDENOTE_TEST_PROGRAM names no file: {}",
            path.display()
        );
        assert_eq!(path.file_stem().unwrap(), "sidenote", "transcripts call the program by this name");
    }
    // A program that was built on another system is named without the drive.
    named.unwrap_or_else(|| std::path::absolute(env!("CARGO_BIN_EXE_sidenote")).unwrap())
}

/// Gives a command an environment that names nothing but the home folder and what a process needs to start.
pub(crate) fn clean_env<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command.env_clear().env("HOME", home).env("TZ", "UTC");
    if cfg!(windows) {
        let needed = ["SystemRoot", "TEMP", "TMP", "WINEPREFIX", "WINEDEBUG"];
        command.envs(needed.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command
            .env("USERPROFILE", home)
            .env("APPDATA", home.join("Roaming"))
            .env("LOCALAPPDATA", home.join("Local"));
    }
    command
}

/// The folder of a user's settings and data, in the home folder of [`TestVault::command`].
pub(crate) const SETTINGS: &str = if cfg!(windows) { ".home/Roaming" } else { ".home/.config" };

/// The folder of a user's models, in the home folder of [`TestVault::command`].
pub(crate) const MODELS: &str =
    if cfg!(windows) { ".home/Roaming/sidenote/models" } else { ".home/.local/share/sidenote/models" };

/// Gives a path as a string of JSON has it.
pub(crate) fn json_path(path: &Path) -> String {
    let quoted = serde_json::to_string(path.to_str().unwrap()).unwrap();
    quoted.trim_matches('"').to_owned()
}

pub(crate) fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A source file of the program, as if all crates were one.
pub(crate) struct SourceFile {
    /// The path in the repository, with forward slashes.
    pub(crate) file: String,
    /// The path of the module, such as `query/read/list.rs`.
    pub(crate) path: String,
    /// The text, in which all paths begin with `crate`.
    pub(crate) text: String,
}

/// Lists the crates of the program but the one of the command line: their folders in `crates`.
pub(crate) fn crates() -> Vec<String> {
    let folders = fs::read_dir(repository().join("crates")).unwrap();
    let mut names: Vec<String> =
        folders.map(|folder| folder.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Reads the source files of the program, in the order of their modules.
pub(crate) fn source_files() -> Vec<SourceFile> {
    let crates = crates();
    let mut files = Vec::new();
    for name in crates.iter().map(String::as_str).chain([""]) {
        let folder = if name.is_empty() { "src".to_owned() } else { format!("crates/{name}/src") };
        let root = repository().join(&folder);
        walk(&root, &mut |path| {
            if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
                let below = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
                files.push(source_file(&crates, &folder, name, &below, &fs::read_to_string(path).unwrap()));
            }
        });
    }
    files.sort_by(|a, b| (&a.path, &a.file).cmp(&(&b.path, &b.file)));
    assert!(files.len() > 20, "the sources were not found");
    files
}

fn source_file(crates: &[String], folder: &str, name: &str, below: &str, text: &str) -> SourceFile {
    let path = match (name, below) {
        ("", below) => below.to_owned(),
        (name, "lib.rs") => format!("{name}/mod.rs"),
        (name, below) => format!("{name}/{below}"),
    };
    let mut text = match name {
        "" => text.to_owned(),
        name => text.replace("crate::", &format!("crate::{name}::")),
    };
    for other in crates {
        text = text.replace(&format!("sidenote_{other}::"), &format!("crate::{other}::"));
    }
    SourceFile { file: format!("{folder}/{below}"), path, text }
}

fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() == ".sidenote" {
            continue;
        }
        if path.is_dir() { walk(&path, visit) } else { visit(&path) }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        if name == ".sidenote" {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name))
        } else {
            fs::copy(&path, to.join(name)).map(drop).unwrap()
        }
    }
}

/// Gives the paths that a search finds, best first.
pub(crate) fn paths(store: &Store, query: &str) -> Vec<String> {
    found(store, &SearchRequest { query: query.to_owned(), ..SearchRequest::default() })
}

/// Gives the paths that a request finds, best first.
pub(crate) fn found(store: &Store, request: &SearchRequest) -> Vec<String> {
    store.searches().search(request).unwrap().results.into_iter().map(|result| result.path).collect()
}

/// Runs a command on a vault, at a time, and gives what it prints.
#[track_caller]
pub(crate) fn run(vault: &TestVault, now: &str, args: &[&str]) -> String {
    let mut command = vault.command(args);
    let done = command.env("SIDENOTE_NOW", now).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", stderr(&done));
    stdout(&done)
}

/// As [`run`], of an answer in JSON.
#[track_caller]
pub(crate) fn json(vault: &TestVault, now: &str, args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&run(vault, now, &[&["--json"], args].concat())).unwrap()
}

/// Gives what a program printed, as text.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Gives what a program logged, as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Reads how much of something a longer run asks for.
pub(crate) fn env_number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Says what a test measured.
#[expect(clippy::print_stderr, reason = "it is for whoever runs the tests")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// Does something on a thread for which permissions of files hold, and for the processes that it starts, also where the
/// superuser runs the tests.
#[cfg(unix)]
pub(crate) fn without_root_privileges(test: impl FnOnce() + Send) {
    let checked = || {
        #[cfg(target_os = "linux")]
        if rustix::process::geteuid().is_root() {
            use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};
            // A program that root starts would get all capabilities back.
            rustix::thread::set_capabilities_secure_bits(CapabilitiesSecureBits::NO_ROOT).unwrap();
            let none = CapabilitySet::empty();
            let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
            rustix::thread::set_capabilities(None, sets).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), 0o555);
        assert!(fs::write(folder.path().join("x"), "x").is_err(), "permissions of files do not hold");
        set_mode(folder.path(), 0o755);
        test();
    };
    let done = std::thread::scope(|scope| scope.spawn(checked).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Makes a symbolic link. Its target need not exist yet.
#[track_caller]
pub(crate) fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) {
    platform::create_symlink(target.as_ref(), link.as_ref()).unwrap();
}

/// Sets the permission bits of a file or folder. On Windows only the owner's right to write counts: without it the file
/// is marked as read-only.
#[track_caller]
pub(crate) fn set_mode(path: impl AsRef<Path>, mode: u32) {
    #[cfg(unix)]
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
    #[cfg(windows)]
    let permissions = {
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(mode & 0o200 == 0);
        permissions
    };
    fs::set_permissions(path, permissions).unwrap();
}

/// Gives the permission bits of a file.
#[cfg(unix)]
#[track_caller]
pub(crate) fn mode_of(path: impl AsRef<Path>) -> u32 {
    platform::metadata(path.as_ref()).unwrap().mode & 0o7777
}

/// Gives the number of a file on its volume, which it keeps when it is renamed.
#[track_caller]
pub(crate) fn inode(path: impl AsRef<Path>) -> u64 {
    platform::metadata(path.as_ref()).unwrap().inode
}

/// Says whether a process ended at a failpoint, as by a crash.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
    // The status of a process that calls `abort`.
    #[cfg(windows)]
    return status.code() == Some(0xC000_0409_u32.cast_signed());
}

/// Asks a process to end, as a system does that shuts down.
#[cfg(unix)]
pub(crate) fn terminate(process: u32) {
    let pid = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

/// Gives the path of a file from a folder, as notes name it.
#[track_caller]
pub(crate) fn path_from(folder: &Path, file: &Path) -> String {
    platform::slash_path(file.strip_prefix(folder).unwrap()).unwrap()
}

/// Gives the text of a file of a vault.
pub(crate) fn text_of(vault: &TestVault, path: &str) -> String {
    fs::read_to_string(vault.root().join(path)).expect(path)
}

/// Counts the uses of a memory.
pub(crate) fn uses(vault: &TestVault, id: &str) -> u64 {
    json(vault, "2026-11-23", &["memory", "explain", id])["uses"].as_u64().unwrap()
}

/// Gives every file outside `.sidenote`, hidden ones too, by its path from the root.
pub(crate) fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let with_bytes = |file: PathBuf| (path_from(root, &file), fs::read(&file).unwrap());
    files_below(root).into_iter().map(with_bytes).collect()
}

/// Lists every file outside `.sidenote`, hidden ones too, also while another program writes: a folder that disappears
/// meanwhile has no files.
pub(crate) fn files_below(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder != root => continue,
            entries => entries.unwrap(),
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.ends_with(".sidenote") || path.ends_with(".home") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path);
            }
        }
    }
    found
}

/// Prepares a command that runs after `script`, as root in user and mount namespaces of its own. The script must end with
/// `exec "$@"`. Tests that call it are ignored, since many systems do not allow it; `.ci/run` runs them where the system
/// does.
pub(crate) fn in_namespaces(script: &str, command: &Command) -> Command {
    let mut apart = Command::new("unshare");
    apart.args(["--user", "--map-root-user", "--mount", "sh", "-ec", script, "sh"]);
    apart.arg(command.get_program()).args(command.get_args());
    apart.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    apart.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    apart
}

/// Reads the variable that names what a test needs; such a test is ignored with the variable's name in the reason.
pub(crate) fn env_path(name: &str) -> PathBuf {
    std::env::var_os(name).unwrap_or_else(|| panic!("set {name} to run this test")).into()
}

/// Gives the cases of the specification of one kind, of which there must be this many.
#[track_caller]
pub(crate) fn cases_of(kind: &str, count: usize) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(repository().join("fixtures/obsidian/cases.json")).unwrap();
    let all: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let cases: Vec<_> = all.into_iter().filter(|case| case["kind"] == kind).collect();
    assert_eq!(cases.len(), count, "cases of the kind {kind}");
    cases
}

/// The edits that a plan consists of, or why there is none.
pub(crate) type PlannedEdits = Result<Vec<Edit>, Refusal>;

/// Applies edits to a text.
pub(crate) fn edited(text: &str, edits: &[Edit]) -> String {
    String::from_utf8(apply(text.as_bytes(), edits).unwrap()).unwrap()
}

/// Applies planned edits to a text; a refusal gives its code.
pub(crate) fn edit_outcome(text: &str, planned: &PlannedEdits) -> String {
    match planned {
        Ok(edits) => edited(text, edits),
        Err(refusal) => format!("! {}", refusal.code),
    }
}

/// Lists the files of a vault's journal: those of all clones, and those of the working copy.
pub(crate) fn journal_files(root: &Path) -> Vec<PathBuf> {
    let state = root.join(".sidenote");
    let mut folders = vec![state.join("records"), state.join("local")];
    for folder in folders.clone() {
        let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        folders.extend(
            entries.filter(|path| path.is_dir() && path.file_name().is_none_or(|name| name != "undo")),
        );
    }
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
    files.sort();
    files
}

/// Returns the path of the journal of this clone for a month such as `2026-11`.
pub(crate) fn clone_journal(root: &Path, month: &str) -> PathBuf {
    let state = root.join(".sidenote");
    let name = fs::read_to_string(state.join("local/clone")).unwrap();
    state.join("records").join(name.lines().next().unwrap()).join(format!("{month}.jsonl"))
}
