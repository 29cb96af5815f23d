//! `repair` over random histories of git: notes and folders move, branches merge and are squashed, and nobody updates a
//! link. The checker follows paths by itself, as GitHub does, and knows each file by a word in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::git::{git, init};
use crate::support::{TestVault, env_number, json};

const NOW: &str = "2026-11-20";

/// A small generator of random numbers (SplitMix64), so that a seed gives one history.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }
}

/// A history under way.
struct History {
    seed: u64,
    vault: TestVault,
    random: Random,
    /// The next number for a name that is free.
    next: usize,
}

/// What a link means: its note and its target, each by the word in it, and how often the note has it.
type Meanings = BTreeMap<(String, String), usize>;

impl History {
    fn new(seed: u64) -> Self {
        let vault = TestVault::new(&[]);
        vault.write(".gitignore", ".home/\n.sidenote/\n");
        // After many moves, more of the links lead to a file by name than by path.
        vault.write(".sidenote/config.toml", "[links]\ndialect = \"github\"\n");
        let mut history = Self { seed, vault, random: Random(seed), next: 0 };
        for folder in ["", "docs/", "docs/guide/", "notes/", "notes/old/"] {
            for _ in 0..6 {
                let name = history.name();
                history.write_note(&format!("{folder}{name}.md"));
            }
        }
        for path in history.notes() {
            history.add_links(&path, 4);
        }
        init(&history.vault);
        history
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("n{}", self.next)
    }

    /// Writes a note with a word of its own and lines that no other note has.
    fn write_note(&mut self, path: &str) {
        let word = format!("word{}", self.next);
        let lines: String =
            (0..12).map(|line| format!("Line {line} of {word}, which is {word}{line}.\n")).collect();
        self.vault.write(path, format!("# {word}\n\n{lines}"));
    }

    /// Lists the notes on the disk.
    fn notes(&self) -> Vec<String> {
        let listed = git_files(self.vault.root());
        listed.into_iter().filter(|path| path.ends_with(".md")).collect()
    }

    /// Appends links to random notes, as relative paths.
    fn add_links(&mut self, path: &str, count: usize) {
        let notes = self.notes();
        let mut text = self.vault.read(path);
        for _ in 0..count {
            let target = notes[self.random.below(notes.len())].clone();
            text.push_str(&format!("\nA [link]({}) number {}.\n", relative(path, &target), self.next));
            self.next += 1;
        }
        self.vault.write(path, text);
    }

    fn commit(&mut self) {
        git(self.vault.root(), &["add", "--all"]);
        git(self.vault.root(), &["commit", "-q", "--allow-empty", "-m", "step"]);
    }

    /// Moves a random note or folder by git.
    fn move_something(&mut self) {
        let notes = self.notes();
        let note = notes[self.random.below(notes.len())].clone();
        let folders = ["", "docs/", "docs/guide/", "notes/", "notes/old/", "new/", "new/deep/"];
        let folder = folders[self.random.below(folders.len())];
        let name = self.name();
        let (from, to) = match (self.random.below(3), note.split_once('/')) {
            (0, Some((first, _))) => (first.to_owned(), name),
            (1, _) => (note.clone(), format!("{folder}{name}.md")),
            _ => (note.clone(), format!("{folder}{}", note.rsplit('/').next().unwrap())),
        };
        if self.vault.root().join(&to).exists() {
            return;
        }
        fs::create_dir_all(self.vault.root().join(&to).parent().unwrap()).unwrap();
        git(self.vault.root(), &["mv", &from, &to]);
    }

    /// Lets two branches move notes and write links, and merges them, as a merge commit or squashed.
    fn branch_and_merge(&mut self) {
        git(self.vault.root(), &["switch", "-qc", "side"]);
        // The new note is one that no move of the other branch touches.
        let name = self.name();
        let path = format!("side-{name}.md");
        self.write_note(&path);
        self.add_links(&path, 5);
        self.commit();
        git(self.vault.root(), &["switch", "-q", "main"]);
        self.move_something();
        self.commit();
        if self.random.below(2) == 0 {
            git(self.vault.root(), &["merge", "-q", "--no-edit", "side"]);
        } else {
            git(self.vault.root(), &["merge", "-q", "--squash", "side"]);
            self.commit();
        }
        git(self.vault.root(), &["branch", "-qD", "side"]);
    }

    /// Notes what every link means, by the words. All links must lead to a note.
    fn meanings(&self) -> Meanings {
        let mut meanings = Meanings::new();
        for path in self.notes() {
            let text = self.vault.read(&path);
            for target in links_of(&text) {
                let to = joined(&path, target);
                let found = fs::read_to_string(self.vault.root().join(&to)).unwrap_or_else(|_| {
                    panic!("seed {}: {path} has a link to {to}, which is no file", self.seed)
                });
                *meanings.entry((word_of(&text), word_of(&found))).or_default() += 1;
            }
        }
        meanings
    }
}

/// Lists the files that are not ignored.
fn git_files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = folder.join(&name);
            if name.starts_with('.') {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else {
                found.push(path.to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

fn word_of(text: &str) -> String {
    text.lines().next().unwrap().trim_start_matches("# ").to_owned()
}

fn links_of(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap())
}

fn relative(from: &str, to: &str) -> String {
    let up = from.matches('/').count();
    let shared = from
        .split('/')
        .zip(to.split('/'))
        .take(up.min(to.matches('/').count()))
        .take_while(|(a, b)| a == b)
        .count();
    let rest: Vec<&str> = to.split('/').skip(shared).collect();
    format!("{}{}", "../".repeat(up - shared), rest.join("/"))
}

fn joined(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir if parts.pop().is_some() => {}
            Component::ParentDir => parts.push("above"),
            Component::Normal(name) => parts.push(name.to_str().unwrap()),
            _ => {}
        }
    }
    parts.join("/")
}

/// Plays one history, repairs, and checks that every link means what it meant. Returns the number of repaired links.
fn check_history(seed: u64) -> u64 {
    let mut history = History::new(seed);
    let meant = history.meanings();
    for _ in 0..3 {
        for _ in 0..=history.random.below(3) {
            history.move_something();
            if history.random.below(3) > 0 {
                history.commit();
            }
        }
        history.commit();
    }
    history.move_something();
    let mut repaired = 0;
    let reply = json(&history.vault, NOW, &["repair", "--apply", "certain"]);
    repaired += reply["repaired"].as_u64().unwrap();
    assert_eq!(history.meanings(), meant, "seed {seed}");
    history.commit();

    // Links that are written on a branch while the other one moves their targets.
    let all = history.meanings().values().sum::<usize>();
    history.branch_and_merge();
    let reply = json(&history.vault, NOW, &["repair", "--apply", "strong"]);
    repaired += reply["repaired"].as_u64().unwrap();
    assert_eq!(history.meanings().values().sum::<usize>(), all + 5, "seed {seed}");
    let again = json(&history.vault, NOW, &["repair", "--apply", "strong"]);
    assert_eq!(again["repaired"], 0, "seed {seed}: {again}");
    repaired
}

#[test]
fn every_link_means_what_it_meant_after_random_histories() {
    let histories = env_number("SIDENOTE_TEST_HISTORIES", 4);
    let repaired: u64 = (0..histories).map(|seed| check_history(seed as u64)).sum();
    assert!(repaired as usize > 10 * histories, "{repaired} links in {histories} histories");
}
