//! Tests an editor, writing commands, searching commands and a watching process that is killed again and again, all at
//! once. In the end every file has the bytes of its writer, and the index equals a rebuilt one.
//!
//! Nothing sleeps: the editor and the kills follow the commands that have ended.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use sidenote::base::platform::slash_path;
use tempfile::TempDir;

use crate::support::{env_number, program, say, stderr, stdout, tree};

/// A small generator of random numbers (Marsaglia, Xorshift RNGs, 2003).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

/// Words that were ever written; a search may show no others.
#[derive(Default)]
struct Words {
    next: AtomicU64,
    known: Mutex<HashSet<String>>,
}

impl Words {
    /// Makes a word that was never used.
    fn fresh(&self) -> String {
        let word = format!("tok{}", self.next.fetch_add(1, Ordering::SeqCst));
        self.known.lock().unwrap().insert(word.clone());
        word
    }

    fn check(&self, text: &str) {
        let known = self.known.lock().unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.starts_with("tok"));
        for word in words.filter(|word| word.len() > 3 && word[3..].bytes().all(|byte| byte.is_ascii_digit()))
        {
            assert!(known.contains(word), "a search shows {word}, which nobody wrote");
        }
    }
}

/// When a run ends.
#[derive(Debug, Clone, Copy)]
enum End {
    /// After this number of commands.
    Commands(usize),
    /// At this time.
    At(Instant),
}

struct Soak<'a> {
    root: &'a Path,
    end: End,
    words: Words,
    failed: AtomicBool,
    /// The number of commands that have ended.
    commands: Mutex<usize>,
    command_ended: Condvar,
    searches: AtomicUsize,
    kills: AtomicUsize,
}

/// Ends the others where one fails.
struct Alarm<'a>(&'a Soak<'a>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::SeqCst);
            self.0.command_ended.notify_all();
        }
    }
}

impl Soak<'_> {
    fn goes_on(&self) -> bool {
        let is_over = match self.end {
            End::Commands(count) => *self.commands.lock().unwrap() >= count,
            End::At(time) => Instant::now() >= time,
        };
        !is_over && !self.failed.load(Ordering::SeqCst)
    }

    /// Waits until so many more commands have ended, or the run is over.
    fn wait_for_commands(&self, count: usize) {
        let enough = *self.commands.lock().unwrap() + count;
        while self.goes_on() {
            let ended = self.commands.lock().unwrap();
            if *ended >= enough {
                return;
            }
            // A run that ends at a time is over without a further command.
            drop(self.command_ended.wait_timeout(ended, Duration::from_secs(1)).unwrap());
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        crate::support::clean_env(&mut command, &self.root.join(".home"))
            .env("SIDENOTE_EMBED_PROVIDER", "none");
        command.arg("--vault").arg(self.root).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        let output = self.command(args).output().unwrap();
        *self.commands.lock().unwrap() += 1;
        self.command_ended.notify_all();
        output
    }

    /// Does what a person does with other programs, in folders of its own; gives what each file must hold.
    fn edit(&self, seed: u64) -> BTreeMap<PathBuf, Vec<u8>> {
        let _alarm = Alarm(self);
        let mut dice = Dice(seed);
        let mut files: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
        let mut folders: Vec<String> = (0..6).map(|at| format!("e{at}")).collect();
        folders.iter().for_each(|folder| fs::create_dir_all(self.root.join(folder)).unwrap());
        let mut made = 0;
        while self.goes_on() {
            let pick = |dice: &mut Dice| files.keys().nth(dice.below(files.len().max(1))).cloned();
            match (dice.below(20), pick(&mut dice)) {
                (0..6, _) | (_, None) => {
                    made += 1;
                    let folder = &folders[dice.below(folders.len())];
                    let path = PathBuf::from(format!("{folder}/Note {made}.md"));
                    self.save(&path, self.text(&mut dice), &mut dice, &mut files);
                }
                (6..14, Some(path)) => self.save(&path, self.text(&mut dice), &mut dice, &mut files),
                (14..16, Some(path)) => {
                    fs::remove_file(self.root.join(&path)).unwrap();
                    files.remove(&path);
                }
                (16..18, Some(path)) => {
                    // A change of case alone.
                    let name = path.file_name().unwrap().to_str().unwrap();
                    let other =
                        if name.starts_with('N') { name.to_lowercase() } else { name.replace('n', "N") };
                    let to = path.with_file_name(other);
                    if !files.contains_key(&to) {
                        fs::rename(self.root.join(&path), self.root.join(&to)).unwrap();
                        let bytes = files.remove(&path).unwrap();
                        files.insert(to, bytes);
                    }
                }
                _ => {
                    let at = dice.below(folders.len());
                    let to = format!("e{}", made + 1000);
                    made += 1;
                    fs::rename(self.root.join(&folders[at]), self.root.join(&to)).unwrap();
                    let moved = std::mem::take(&mut files).into_iter().map(|(path, bytes)| {
                        (
                            path.strip_prefix(&folders[at])
                                .map_or(path.clone(), |rest| Path::new(&to).join(rest)),
                            bytes,
                        )
                    });
                    files = moved.collect();
                    folders[at] = to;
                }
            }
            if dice.below(3) == 0 {
                self.wait_for_commands(1);
            }
        }
        files
    }

    fn text(&self, dice: &mut Dice) -> Vec<u8> {
        let word = self.words.fresh();
        let lines = (0..1 + dice.below(30)).map(|_| format!("Some more text, {}.\n", self.words.fresh()));
        let text = format!("# About {word}\n\n{}[[Note {}]]\n", lines.collect::<String>(), dice.below(100));
        match dice.below(10) {
            0 => text.replace('\n', "\r\n").into_bytes(),
            1 => [text.as_bytes(), b"\xFF\xFE\x00 bytes"].concat(),
            2 => format!("<<<<<<< HEAD\n{text}=======\nother\n>>>>>>> theirs\n").into_bytes(),
            3 => format!("---\ntags: [x, {word}\n---\n{text}").into_bytes(),
            4 => Vec::new(),
            _ => text.into_bytes(),
        }
    }

    fn save(&self, path: &Path, bytes: Vec<u8>, dice: &mut Dice, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
        let disk = self.root.join(path);
        if dice.below(2) == 0 {
            fs::write(&disk, &bytes).unwrap();
        } else {
            let temporary = disk.with_extension("tmp~");
            fs::write(&temporary, &bytes).unwrap();
            fs::rename(&temporary, &disk).unwrap();
        }
        files.insert(path.to_owned(), bytes);
    }

    /// Writes through the program: lines to notes that all writers share, and notes of its own that it moves about.
    /// Gives the words that must stand in the vault, once each.
    fn write(&self, writer: usize) -> Vec<String> {
        let _alarm = Alarm(self);
        let mut dice = Dice(77 + writer as u64);
        let mut accepted = Vec::new();
        let mut own = format!("Own {writer}");
        let made = self.run(&["new", &own, "--folder", "w"]);
        assert!(made.status.success(), "{}", stderr(&made));
        while self.goes_on() {
            let word = self.words.fresh();
            let shared = format!("w/Shared {}", dice.below(5));
            let done = match dice.below(4) {
                0 => {
                    let next = format!("Own {writer} {word}");
                    let moved = self.run(&["move", &own, &format!("w/{next}")]);
                    if moved.status.success() {
                        own = next;
                    }
                    check(&moved);
                    continue;
                }
                1 => self.run(&["append", &own, &format!("[[Shared {}]] {word}", dice.below(5))]),
                _ => self.run(&["append", &shared, &word]),
            };
            if check(&done) {
                accepted.push(word);
            }
        }
        accepted
    }

    fn search(&self, reader: u64) {
        let _alarm = Alarm(self);
        let mut dice = Dice(991 + reader);
        while self.goes_on() {
            let newest = self.words.next.load(Ordering::SeqCst).max(1);
            let asked = format!("tok{} text", dice.below(usize::try_from(newest).unwrap()));
            let found = self.run(&["--json", "search", "--mode", "bm25", &asked]);
            assert!(found.status.success(), "{}", stderr(&found));
            self.words.check(&stdout(&found));
            self.searches.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Watches the vault, and is killed after every few commands.
    fn watch(&self) {
        let _alarm = Alarm(self);
        let mut dice = Dice(5);
        while self.goes_on() {
            let mut server: Child =
                self.command(&["watch"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            self.wait_for_commands(1 + dice.below(20));
            server.kill().unwrap();
            server.wait().unwrap();
            self.kills.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Says whether a command did its work; it may find the vault busy, and no other reason not to.
fn check(done: &Output) -> bool {
    let busy = done.status.code() == Some(5);
    assert!(done.status.success() || busy, "{:?} {}", done.status, stderr(done));
    done.status.success()
}

fn check_soak(end: End) {
    let root = TempDir::new().unwrap();
    let soak = Soak {
        root: root.path(),
        end,
        words: Words::default(),
        failed: AtomicBool::new(false),
        commands: Mutex::new(0),
        command_ended: Condvar::new(),
        searches: AtomicUsize::new(0),
        kills: AtomicUsize::new(0),
    };
    fs::create_dir_all(root.path().join("w")).unwrap();
    for at in 0..5 {
        fs::write(root.path().join(format!("w/Shared {at}.md")), "# Shared\n").unwrap();
    }
    let (edited, accepted) = std::thread::scope(|scope| {
        let editor = scope.spawn(|| soak.edit(12345));
        let soak = &soak;
        let writers: Vec<_> = (0..3).map(|writer| scope.spawn(move || soak.write(writer))).collect();
        let others: Vec<_> = (0..2).map(|reader| scope.spawn(move || soak.search(reader))).collect();
        let server = scope.spawn(|| soak.watch());
        others.into_iter().chain([server]).for_each(|other| other.join().unwrap());
        let accepted: Vec<String> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        (editor.join().unwrap(), accepted)
    });
    let dump = soak.run(&["dump"]);
    assert!(dump.status.success(), "{}", stderr(&dump));
    let now = tree(root.path());
    let (own, rest): (BTreeMap<_, _>, BTreeMap<_, _>) =
        now.into_iter().partition(|(path, _)| path.starts_with('e'));
    let edited: BTreeMap<_, _> =
        edited.into_iter().map(|(path, bytes)| (slash_path(&path).unwrap(), bytes)).collect();
    assert!(own == edited, "the editor's files are not as it left them");
    assert!(rest.keys().all(|path| path.ends_with(".md")), "{:?}", rest.keys());
    let written: String = rest.values().map(|bytes| String::from_utf8(bytes.clone()).unwrap()).collect();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for word in written.split(|c: char| !c.is_ascii_alphanumeric()) {
        *times.entry(word).or_default() += 1;
    }
    let lost: Vec<&String> = accepted.iter().filter(|word| times.get(word.as_str()) != Some(&1)).collect();
    assert!(lost.is_empty(), "not there once: {lost:?}");
    assert!(soak.run(&["index", "--rebuild", "--no-embed"]).status.success());
    assert!(stdout(&dump) == stdout(&soak.run(&["dump"])), "the index is not that of a rebuild");
    let (searches, kills) = (soak.searches.into_inner(), soak.kills.into_inner());
    let counts = format!(
        "{} files of the editor, {} lines by commands, {searches} searches, {kills} kills",
        edited.len(),
        accepted.len()
    );
    assert!(!edited.is_empty() && !accepted.is_empty() && searches > 0 && kills > 0, "{counts}");
    say(&counts);
}

#[test]
fn an_editor_commands_and_a_killed_watcher_share_a_vault() {
    check_soak(End::Commands(60));
}

#[test]
#[ignore = "it takes as many minutes as SIDENOTE_TEST_MINUTES says: `just soak`"]
fn an_editor_commands_and_a_killed_watcher_share_a_vault_for_minutes() {
    let time = Duration::from_secs(60 * env_number("SIDENOTE_TEST_MINUTES", 20) as u64);
    check_soak(End::At(Instant::now() + time));
}
