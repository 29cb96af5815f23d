//! The merge driver in real git repositories: single merges, random ones against git without the driver, and kills.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use sidenote::git::{ConflictMarkers, FileVersions, MergedFile, merge_file};
use sidenote::links::merge::{Markers, Merged, Versions, merge};
use sidenote::markdown::note::Note;
use sidenote::store::{MERGE_TIME_LIMIT, MergeDriverReply, MergeDriverRequest, drive_merge};
use tempfile::TempDir;

use crate::git::git;
use crate::support::{clean_env, env_number, program, say, stderr, stdout};

const MARKERS: ConflictMarkers<'_> =
    ConflictMarkers { size: 7, ours: "ours", base: "base", theirs: "theirs" };

/// Merges as git does without the driver.
fn by_git(base: &[u8], ours: &[u8], theirs: &[u8]) -> (Vec<u8>, usize) {
    match merge_file(Path::new("."), FileVersions { base, ours, theirs }, MARKERS).unwrap() {
        MergedFile::Text(bytes, conflicts) => (bytes, conflicts),
        MergedFile::Binary => panic!("the texts are binary"),
    }
}

/// Three files as git gives them to the driver.
struct DriverFiles {
    folder: TempDir,
}

impl DriverFiles {
    fn new(base: impl AsRef<[u8]>, ours: impl AsRef<[u8]>, theirs: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("base", base.as_ref()), ("ours", ours.as_ref()), ("theirs", theirs.as_ref())] {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        Self { folder }
    }

    fn ours(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("ours")).unwrap()
    }

    fn drive(&self, path: &str, time_limit: Duration) -> MergeDriverReply {
        let file = |name: &str| self.folder.path().join(name);
        let (base, ours, theirs) = (file("base"), file("ours"), file("theirs"));
        let markers = Markers::default();
        let request = MergeDriverRequest { base, ours, theirs, path: path.to_owned(), markers, time_limit };
        drive_merge(&request).unwrap()
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(program());
        clean_env(&mut command, self.folder.path()).current_dir(self.folder.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.args(["merge-driver", "base", "ours", "theirs"]).args(more);
        command
    }

    fn run(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }
}

const BASE: &str = "---\ntags: [a]\nupdated: 2026-01-01\n---\nSee [[Guide]].\n";
const OURS: &str = "---\ntags: [a, b]\nupdated: 2026-02-01\n---\nSee [[Handbook]].\n";
const THEIRS: &str = "---\ntags: [a, c]\nupdated: 2026-03-01\n---\nRead [[Guide]] first.\n";
const MERGED: &str = "---\ntags: [a, b, c]\nupdated: 2026-03-01\n---\nRead [[Handbook]] first.\n";

#[test]
fn a_note_is_merged_by_the_rules_and_all_else_as_git_does() {
    let files = DriverFiles::new(BASE, OURS, THEIRS);
    assert_eq!(files.drive("a/Note.MD", MERGE_TIME_LIMIT).conflicts, 0);
    assert_eq!(files.ours(), MERGED.as_bytes());
    let (plain, conflicts) = by_git(BASE.as_bytes(), OURS.as_bytes(), THEIRS.as_bytes());
    assert_eq!(conflicts, 1);
    // A canvas is no note, and there is no time left for a note.
    for (path, limit) in [("a/Board.canvas", MERGE_TIME_LIMIT), ("Note.md", Duration::ZERO)] {
        let files = DriverFiles::new(BASE, OURS, THEIRS);
        assert_eq!(files.drive(path, limit).conflicts, 1);
        assert_eq!(files.ours(), plain);
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_merged_as_git_does() {
    let (base, ours, theirs) = (b"a\xff\nb\nc\nd\n", b"A\xff\nb\nc\nd\n", b"a\xff\nb\nc\nD\xfe\n");
    let files = DriverFiles::new(base, ours, theirs);
    assert_eq!(files.drive("a.md", MERGE_TIME_LIMIT).conflicts, 0);
    assert_eq!(files.ours(), b"A\xff\nb\nc\nD\xfe\n");
    let files = DriverFiles::new(b"\0a", b"\0b", b"\0c");
    let reply = files.drive("a.md", MERGE_TIME_LIMIT);
    assert!(reply.binary && reply.conflicts == 1);
    assert_eq!(files.ours(), b"\0b");
}

#[test]
fn the_command_ends_with_the_codes_that_git_knows() {
    let done = DriverFiles::new(BASE, OURS, THEIRS).run(&["7", "a.md"]);
    assert_eq!((done.status.code(), stdout(&done), stderr(&done)), (Some(0), String::new(), String::new()));
    let files = DriverFiles::new("a\n", "b\n", "c\n");
    let done = files.run(&["9", "a.md", "1234", "HEAD", "topic"]);
    assert_eq!(done.status.code(), Some(1));
    let expected = "<<<<<<<<< HEAD\nb\n=========\nc\n>>>>>>>>> topic\n";
    assert_eq!(String::from_utf8(files.ours()).unwrap(), expected);
    // Git before 2.44 passes the placeholders of labels as they are.
    let files = DriverFiles::new("a\n", "b\n", "c\n");
    assert_eq!(files.run(&["7", "a.md", "%S", "%X", "%Y"]).status.code(), Some(1));
    assert!(String::from_utf8(files.ours()).unwrap().contains("<<<<<<< ours\n"));
    // An error ends the merge of git, and the file is as it was.
    fs::remove_file(files.folder.path().join("theirs")).unwrap();
    fs::write(files.folder.path().join("ours"), "mine\n").unwrap();
    let done = files.run(&["7", "a.md"]);
    assert_eq!(done.status.code(), Some(129));
    assert!(stderr(&done).contains("theirs"), "{}", stderr(&done));
    assert_eq!(files.ours(), b"mine\n");
}

/// Git names the file with `%P`, which may look like an option, or be no UTF-8. A conflict needs its markers: without them
/// the next `git add` would drop the other side.
#[cfg(unix)]
#[test]
fn a_file_of_any_name_is_merged_and_conflicts_have_markers() {
    use std::os::unix::ffi::OsStrExt as _;

    use crate::git::{commit, init};
    use crate::support::TestVault;

    let vault = TestVault::new(&[(".gitignore", ".home/\n.sidenote/\n")]);
    let root = vault.root();
    init(&vault);
    git(root, &["config", "user.name", "Ada"]);
    git(root, &["config", "user.email", "ada@example.org"]);
    let folder = root.join(".home/bin");
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(program(), folder.join("sidenote")).unwrap();
    assert!(vault.run(&["git", "init", "--driver", "--attributes"]).status.success());
    let names: [&[u8]; 9] = [
        b"-h.md",
        b"-x.md",
        b"--help.md",
        b"--json.md",
        b"-h/n.md",
        b"caf\xe9.md",
        b"it's $HOME `x`.md",
        b"zero.md",
        b"huge.md",
    ];
    vault.write(
        ".gitattributes",
        vault.read(".gitattributes") + "zero.md conflict-marker-size=0\nhuge.md conflict-marker-size=99999\n",
    );
    let paths: Vec<PathBuf> = names.iter().map(|name| root.join(std::ffi::OsStr::from_bytes(name))).collect();
    let write = |middle: &str| {
        for path in &paths {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("first\n{middle}\nlast\n")).unwrap();
        }
    };
    write("middle");
    commit(&vault, "base");
    git(root, &["checkout", "-qb", "side"]);
    write("side");
    commit(&vault, "side");
    git(root, &["checkout", "-q", "-"]);
    write("main");
    commit(&vault, "main");
    let path = std::env::join_paths(
        [folder.clone()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let done = Command::new("git")
        .current_dir(root)
        .args(["merge", "-q", "side"])
        .env("PATH", path)
        .env("HOME", root.join(".home"))
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    assert_eq!(paths.len(), 9);
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let has = |line: &str| text.lines().any(|other| other == line);
        assert!(has("main") && has("side") && text.contains("<<<<<<<"), "{path:?}: {text}{}", stderr(&done));
    }
}

#[test]
fn a_usage_error_and_the_help_are_no_merge() {
    for (args, code) in [
        (&["merge-driver", "a", "b"][..], 129),
        (&["merge-driver", "a", "b", "c", "7", "-h"], 129),
        (&["merge-driver", "--nonsense", "a", "b", "c"], 129),
        (&["merge-driver", "--help"], 0),
    ] {
        let mut command = Command::new(program());
        let done = command.args(args).output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}", stderr(&done));
    }
}

#[test]
fn a_killed_driver_leaves_no_half_file() {
    let kills = env_number("SIDENOTE_DRIVER_KILLS", 40);
    let text = |word: &str| -> String {
        let lines = (0..5_000).map(|line| format!("{word} {} [[Note {line}]]\n", line % 7));
        format!("---\ntags: [{word}]\n---\n{}", lines.collect::<String>())
    };
    let (base, ours) = (text("base"), text("ours"));
    let theirs = base.replace("---\ntags: [base]\n", "---\ntags: [theirs]\n");
    let whole = DriverFiles::new(&base, &ours, &theirs);
    // On a busy machine the time can be over, and the result is that of git, with a conflict.
    assert!(whole.run(&["7", "a.md"]).status.code().is_some_and(|code| code <= 1));
    let (plain, _) = by_git(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
    let is_result = |bytes: &[u8]| bytes != ours.as_bytes() && (bytes == whole.ours() || bytes == plain);
    assert!(is_result(&whole.ours()));
    let (mut unchanged, mut merged, mut while_writing) = (0, 0, 0);
    for kill in 0..kills {
        let files = DriverFiles::new(&base, &ours, &theirs);
        let mut child = files.command(&["7", "a.md"]).stderr(Stdio::null()).spawn().unwrap();
        // Every other kill comes when the temporary file is there, the rest at any moment before.
        let temporary = files.folder.path().join(format!("ours.{}.tmp", child.id()));
        let end = Instant::now() + Duration::from_micros(kill as u64 * 5_000 % 400_000);
        let is_due = || if kill % 2 == 0 { temporary.exists() } else { Instant::now() >= end };
        while !is_due() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        // A process that has ended cannot be killed.
        drop(child.kill());
        child.wait().unwrap();
        while_writing += usize::from(temporary.exists());
        let found = files.ours();
        assert!(found == ours.as_bytes() || is_result(&found), "the file is half after kill {kill}");
        if is_result(&found) { merged += 1 } else { unchanged += 1 }
    }
    say(&format!(
        "{unchanged} kills left the file as it was, {while_writing} of them while the result was written; {merged} came \
         after it"
    ));
    assert_eq!(unchanged + merged, kills);
}

/// Makes a base and two versions of it, with a few changes of single lines each.
fn versions() -> impl Strategy<Value = [String; 3]> {
    let head = || {
        prop_oneof![
            Just("---\ntags: [a]\nx: 1\n---\n"),
            Just("---\ntags: [a, b]\nx: 1\n---\n"),
            Just("---\nx: 2\n---\n"),
            Just("---\nx: 1\ntags:\n  - c\nupdated: 2026-01-01\n---\n"),
            Just("---\ntags: [a]\nupdated: 2026-02-01\n---\n"),
        ]
    };
    let line = || {
        prop_oneof![
            Just("See [[A]].\n"),
            Just("See [[B]].\n"),
            Just("Do see [[A]]!\n"),
            Just("one\n"),
            Just("two\n"),
            Just("\n"),
            Just("- [a](A.md)\n"),
            Just("- [a](B.md)\n"),
            Just("- now [a](A.md)\n"),
        ]
    };
    let changes = || (head(), proptest::collection::vec((0_usize..9, line()), 0..3));
    let version = |lines: &[&str], (head, changes): (&str, Vec<(usize, &str)>)| {
        let mut lines: Vec<&str> = lines.to_vec();
        for (at, line) in changes {
            if let Some(place) = lines.get_mut(at) {
                *place = line;
            }
        }
        format!("{head}{}", lines.concat())
    };
    let lines = proptest::collection::vec(line(), 4..9);
    (head(), lines, changes(), changes()).prop_map(move |(head, lines, ours, theirs)| {
        [version(&lines, (head, Vec::new())), version(&lines, ours), version(&lines, theirs)]
    })
}

#[test]
fn merging_with_the_lines_of_git_has_no_more_conflicts_than_git() {
    let lines = |texts: Versions<'_>| {
        let (bytes, conflicts) =
            by_git(texts.base.as_bytes(), texts.ours.as_bytes(), texts.theirs.as_bytes());
        Ok(Merged { text: String::from_utf8(bytes).unwrap(), conflicts })
    };
    let fewer = Cell::new(0);
    proptest!(ProptestConfig::with_cases(150), |([base, ours, theirs] in versions())| {
        let texts = Versions { base: &base, ours: &ours, theirs: &theirs };
        let (found, plain) = (merge(texts, &lines).unwrap(), lines(texts).unwrap());
        prop_assert!(found.conflicts <= plain.conflicts);
        fewer.set(fewer.get() + usize::from(found.conflicts < plain.conflicts));
    });
    assert!(fewer.get() > 10, "the rules resolved {} conflicts only", fewer.get());
}

/// A generator of numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % limit
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// A repository in which two branches change the same notes.
struct RandomHistory {
    folder: TempDir,
    random: Random,
    /// The paths of notes, at the moment.
    notes: Vec<String>,
    count: usize,
}

impl RandomHistory {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "-q", "-b", "main"]);
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut history = Self { folder, random, notes: Vec::new(), count: 0 };
        history.write(".gitignore", ".home/\n");
        history.write(".gitattributes", "*.md merge=sidenote -text\n");
        for at in 0..6 {
            let path = format!("{}Note {at}.md", ["", "docs/", "docs/deep/"][at % 3]);
            let text = history.note(at);
            history.write(&path, &text);
            history.notes.push(path);
        }
        history.write("Board.canvas", "{\"nodes\":[\n{\"id\":\"a\",\"type\":\"file\",\"file\":\"Note 0.md\"},\n{\"id\":\"b\",\"type\":\"text\",\"text\":\"x\"}\n]}\n");
        history.commit("base");
        history
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, path: &str, text: &str) {
        let disk = self.path().join(path);
        fs::create_dir_all(disk.parent().unwrap()).unwrap();
        fs::write(disk, text).unwrap();
    }

    fn commit(&self, message: &str) {
        git(self.path(), &["add", "--all"]);
        git(self.path(), &["commit", "-qm", message, "--allow-empty"]);
    }

    /// Makes a note with properties, links to others and text. Every third one has CRLF.
    fn note(&mut self, at: usize) -> String {
        let mut text =
            format!("---\nid: note-{at}\ntags: [a, b]\nupdated: 2026-01-0{}\n---\n# Note {at}\n", 1 + at);
        for line in 0..12 {
            let other = self.random.below(6);
            text.push_str(&match line % 4 {
                0 => format!("Line {line} of note {at} leads to [[Note {other}]].\n"),
                1 => format!("- [Note {other}](<Note {other}.md>) in line {line} of {at}\n"),
                _ => format!("Plain line {line} of note {at}.\n"),
            });
        }
        if at.is_multiple_of(3) { text.replace('\n', "\r\n") } else { text }
    }

    /// Makes one change, as a person or `sidenote rename` would.
    fn change(&mut self, side: &str) {
        self.count += 1;
        let count = self.count;
        let path = self.random.pick(&self.notes.clone()).clone();
        let text = fs::read_to_string(self.path().join(&path)).unwrap();
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        let at = 6 + self.random.below(lines.len().saturating_sub(6).max(1));
        match self.random.below(10) {
            0..=2 if at < lines.len() => {
                lines[at] = format!("{} and {side} {count}{end}", lines[at].trim_end())
            }
            3 if at < lines.len() => {
                lines[at].insert_str(0, &format!("{side} {count}: see [[Note 1]].{end}"))
            }
            4 if at < lines.len() && lines.len() > 10 => drop(lines.remove(at)),
            5 => {
                let tag = format!("tags: [a, {side}{count}]");
                lines[2] = format!("{tag}{end}");
            }
            6 => {
                lines[3] =
                    format!("updated: 2026-0{}-1{}{end}", 2 + self.random.below(7), self.random.below(9))
            }
            7 => return self.rename(&path, side),
            8 => return self.edit_canvas(side),
            _ if self.notes.len() > 4 && self.random.below(4) == 0 => {
                self.notes.retain(|note| *note != path);
                return fs::remove_file(self.path().join(&path)).unwrap();
            }
            _ => lines.push(format!("New at the end by {side} {count}: [[Note 2]]{end}")),
        }
        self.write(&path, &lines.concat());
    }

    /// Renames a note, or moves its folder, and updates all links as `sidenote move` does.
    fn rename(&mut self, path: &str, side: &str) {
        let old = Path::new(path).file_stem().unwrap().to_str().unwrap().to_owned();
        if self.random.below(3) == 0
            && path.starts_with("docs/")
            && !self.notes.iter().any(|note| note.starts_with("moved"))
        {
            // Links by name stay as they are.
            fs::rename(self.path().join("docs"), self.path().join(format!("moved by {side}"))).unwrap();
            for note in &mut self.notes {
                *note = note.replace("docs/", &format!("moved by {side}/"));
            }
            return;
        }
        let new = format!("{old} {side}");
        let moved = format!("{}{new}.md", &path[..path.len() - old.len() - 3]);
        fs::rename(self.path().join(path), self.path().join(&moved)).unwrap();
        for note in &mut self.notes {
            if note == path {
                note.clone_from(&moved);
            }
        }
        for note in self.notes.clone() {
            let text = fs::read_to_string(self.path().join(&note)).unwrap();
            let text = text.replace(&format!("[[{old}]]"), &format!("[[{new}]]"));
            let text = text.replace(&format!("[{old}](<{old}.md>)"), &format!("[{new}](<{new}.md>)"));
            self.write(&note, &text);
        }
    }

    fn edit_canvas(&mut self, side: &str) {
        let text = fs::read_to_string(self.path().join("Board.canvas")).unwrap();
        let node = format!("{{\"id\":\"{side}{}\",\"type\":\"text\",\"text\":\"new\"}},\n", self.count);
        self.write("Board.canvas", &text.replacen("{\"id\":\"b\"", &format!("{node}{{\"id\":\"b\""), 1));
    }

    /// Makes both branches. The current one is `ours` then.
    fn branches(&mut self) {
        let notes = self.notes.clone();
        for side in ["ours", "theirs"] {
            git(self.path(), &["checkout", "-q", "-b", side, "main"]);
            self.notes.clone_from(&notes);
            for _ in 0..2 + self.random.below(6) {
                self.change(side);
            }
            self.commit(side);
        }
        git(self.path(), &["checkout", "-q", "ours"]);
    }

    /// Merges, and returns the paths in conflict, and the number of conflict markers in all notes.
    fn merge(&self, driver: Option<&str>) -> (BTreeSet<String>, usize) {
        let setting = format!("merge.sidenote.driver={}", driver.unwrap_or(""));
        let mut command = Command::new("git");
        command
            .current_dir(self.path())
            .env("HOME", self.path().join(".home"))
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        if driver.is_some() {
            command.args(["-c", &setting]);
        }
        let done = command.args(["merge", "-q", "--no-edit", "theirs"]).output().unwrap();
        assert!(done.status.code().is_some_and(|code| code <= 1), "{}{}", stdout(&done), stderr(&done));
        let unmerged = git(self.path(), &["diff", "--name-only", "--diff-filter=U"]);
        let files = git(self.path(), &["ls-files", "-z"]);
        let markers = files.split('\0').filter(|path| path.ends_with(".md")).map(|path| {
            // A file that one side removed may be absent.
            let text = fs::read_to_string(self.path().join(path)).unwrap_or_default();
            text.lines().filter(|line| line.starts_with("<<<<<<<")).count()
        });
        let markers = markers.collect::<Vec<_>>().into_iter();
        (unmerged.lines().map(str::to_owned).collect(), markers.sum())
    }

    fn reset(&self) {
        git(self.path(), &["reset", "-q", "--hard", "ours"]);
        git(self.path(), &["clean", "-qfd", "-e", ".home"]);
    }
}

/// What many merges added up to.
#[derive(Debug, Default)]
struct Sums {
    merges: usize,
    driven: usize,
    files_in_conflict: (usize, usize),
    conflicts: (usize, usize),
    as_git: usize,
}

/// Removes the destinations of links, and labels that repeat them, which a merge may write anew.
fn without_links(text: &str) -> String {
    let note = Note::parse(text);
    let mut spans: Vec<_> =
        note.links.iter().flat_map(|link| std::iter::once(link.dest_span).chain(link.alias_span)).collect();
    spans.sort();
    let mut out = text.to_owned();
    for span in spans.into_iter().rev() {
        out.replace_range(span.start..span.end, "");
    }
    out
}

/// Checks one call of the driver: nothing of either side is lost, and what git merges without conflict is the same
/// outside of frontmatter.
fn check_call(folder: &Path, sums: &mut Sums) {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (base, ours, theirs, result) = (read("base"), read("ours"), read("theirs"), read("result"));
    let (plain, plain_conflicts) = by_git(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
    let plain = String::from_utf8(plain).unwrap();
    let conflicts = result.lines().filter(|line| line.starts_with("<<<<<<<")).count();
    assert!(
        conflicts <= plain_conflicts,
        "{conflicts} conflicts and not {plain_conflicts}: {}",
        folder.display()
    );
    let body = |text: &str| text[Note::parse(text).body_start..].to_owned();
    if plain_conflicts == 0 {
        assert_eq!(body(&result), body(&plain), "{}", folder.display());
        sums.as_git += 1;
    }
    let lines = |text: &str| -> BTreeSet<String> { without_links(text).lines().map(str::to_owned).collect() };
    let (bases, found) = (lines(&base), lines(&result));
    for (side, other) in [(&ours, &theirs), (&theirs, &ours)] {
        let others = lines(other);
        for line in without_links(&body(side)).lines() {
            if others.contains(line) || !bases.contains(line) {
                assert!(found.contains(line), "{line:?} is lost in {}:\n{result}", folder.display());
            }
        }
        if conflicts == 0
            && let Some(front) = Note::parse(side).frontmatter
        {
            let merged = Note::parse(&result).frontmatter.unwrap();
            let old = Note::parse(&base).frontmatter.unwrap_or_default();
            let [tags, kept] = [&front, &old]
                .map(|front| front.tags.iter().map(|tag| tag.name.clone()).collect::<BTreeSet<_>>());
            let there: BTreeSet<_> = merged.tags.iter().map(|tag| tag.name.clone()).collect();
            assert!(tags.difference(&kept).all(|tag| there.contains(tag)), "{result}");
        }
    }
    sums.driven += 1;
}

/// A driver that keeps what it is called with, and what it leaves.
fn recording_driver(folder: &Path) -> (String, PathBuf) {
    let script = folder.join("driver.sh");
    let calls = folder.join("calls");
    fs::create_dir_all(&calls).unwrap();
    let text = format!(
        "#!/bin/sh\ncall=$(mktemp -d '{calls}/XXXXXXXX')\ncp \"$1\" \"$call/base\"\ncp \"$2\" \"$call/ours\"\ncp \"$3\" \"$call/theirs\"\n\
         '{program}' merge-driver \"$@\"\ncode=$?\ncp \"$2\" \"$call/result\"\nexit $code\n",
        calls = calls.display(),
        program = program().display(),
    );
    fs::write(&script, text).unwrap();
    (format!("sh '{}' %O %A %B %L %P %S %X %Y", script.display()), calls)
}

/// Merges random branches with and without the driver.
fn random_merges(from: u64, count: usize) -> Sums {
    let mut sums = Sums::default();
    for seed in from..from + count as u64 {
        let mut history = RandomHistory::new(seed);
        history.branches();
        let canvas = |history: &RandomHistory| fs::read(history.path().join("Board.canvas")).unwrap();
        let (plain_files, plain_markers) = history.merge(None);
        let plain_canvas = canvas(&history);
        history.reset();
        let record = tempfile::tempdir().unwrap();
        let (driver, calls) = recording_driver(record.path());
        let (files, markers) = history.merge(Some(&driver));
        assert!(files.is_subset(&plain_files), "seed {seed}: {files:?} and not {plain_files:?}");
        assert!(markers <= plain_markers, "seed {seed}: {markers} conflicts and not {plain_markers}");
        assert!(canvas(&history) == plain_canvas, "seed {seed}: the canvas differs");
        for call in fs::read_dir(&calls).unwrap() {
            check_call(&call.unwrap().path(), &mut sums);
        }
        sums.merges += 1;
        sums.files_in_conflict.0 += plain_files.len();
        sums.files_in_conflict.1 += files.len();
        sums.conflicts.0 += plain_markers;
        sums.conflicts.1 += markers;
    }
    say(&format!(
        "{} merges, {} calls of the driver ({} without conflict in git, same bodies); files in conflict {} without the \
         driver, {} with it; conflicts {} and {}",
        sums.merges,
        sums.driven,
        sums.as_git,
        sums.files_in_conflict.0,
        sums.files_in_conflict.1,
        sums.conflicts.0,
        sums.conflicts.1
    ));
    sums
}

#[test]
fn random_merges_lose_nothing_and_conflict_no_more_than_without_the_driver() {
    let sums = random_merges(1, 12);
    assert!(sums.driven > 10 && sums.files_in_conflict.0 > sums.files_in_conflict.1, "{sums:?}");
}

#[test]
#[ignore = "takes some minutes; `just random-merges` runs it"]
fn a_thousand_random_merges_lose_nothing() {
    let sums = random_merges(1000, env_number("SIDENOTE_MERGES", 1000));
    assert!(sums.driven > sums.merges / 2, "{sums:?}");
}
