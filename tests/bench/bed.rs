//! Owns what is measured on: a synthetic vault, or a copy of a given one, its past in the journal, and queries
//! of words that occur.
//!
//! Everything follows from a seed. A given vault is never written to.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sidenote::base::clock::{Clock, Timestamp};
use sidenote::base::platform::create_symlink;
use sidenote::journal::Journal;
use sidenote::journal::event::{Event, TouchedFile};
use sidenote::markdown::edit::{ContentHash, FileLocation as Spot};
use sidenote::markdown::path::NotePath;
use sidenote::vault::Vault;

use crate::Result;

/// How many queries are made.
const QUERIES: usize = 200;
/// The number of events that the journal holds of a note.
pub(crate) const EVENTS: usize = 10;
/// The largest number of notes that have events.
const REMEMBERED: usize = 10_000;
/// The number of months, of thirty days each, over which events are spread.
const MONTHS: usize = 8;
/// How many words the synthetic vault is written with.
const VOCABULARY: usize = 30_000;

/// Where a measure finds its vault and keeps its files.
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    pub(crate) work: PathBuf,
}

impl Place {
    pub(crate) fn new(root: impl Into<PathBuf>, work: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), work: work.into() }
    }

    /// Gives the folder of sidenote's index.
    pub(crate) fn index(&self) -> PathBuf {
        self.work.join("index")
    }

    /// Gives the folder of the baseline's index.
    pub(crate) fn limit(&self) -> PathBuf {
        self.work.join("limit")
    }

    /// Reads the queries.
    pub(crate) fn queries(&self) -> Result<Vec<String>> {
        let text = fs::read_to_string(self.work.join("queries"))?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

/// A vault to measure on.
pub(crate) struct Bed {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) notes: usize,
    /// Bytes of all notes.
    pub(crate) bytes: u64,
}

impl Bed {
    /// Writes a vault of `notes` notes.
    pub(crate) fn synthetic(work: &Path, notes: usize, seed: u64) -> Result<Self> {
        let root = work.join("vault");
        let mut dice = Dice(seed);
        let names: Vec<String> = (0..notes).map(|at| format!("{} {at}", title(&mut dice))).collect();
        for (at, name) in names.iter().enumerate() {
            let folder = root.join(format!("Area {}/Topic {}", at % 8, at % 40));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(format!("{name}.md")), note(&mut dice, name, &names))?;
        }
        Self::survey(format!("synthetic vault, seed {seed}"), root, work, seed)
    }

    /// Copies a vault without its index, its journal and its history in git, so that notes can be added and changed.
    pub(crate) fn copy(vault: &Path, work: &Path, seed: u64) -> Result<Self> {
        let root = work.join("vault");
        let vault = vault.canonicalize()?;
        copy_folder(&vault, &root)?;
        Self::survey(vault.display().to_string(), root, work, seed)
    }

    /// Reads everything once, which also brings it into the page cache, and makes the queries.
    fn survey(name: String, root: PathBuf, work: &Path, seed: u64) -> Result<Self> {
        let files = notes(&root)?;
        let mut bytes = 0;
        for file in &files {
            bytes += fs::read(file)?.len() as u64;
        }
        let mut dice = Dice(!seed);
        let mut queries: Vec<String> = Vec::new();
        // Notes of other scripts may have no words to ask with, so the tries have an end.
        for _ in 0..QUERIES * 100 {
            if queries.len() == QUERIES || files.is_empty() {
                break;
            }
            let bytes = fs::read(dice.pick(&files))?;
            let text = String::from_utf8_lossy(&bytes);
            let words: Vec<&str> =
                text.split(|c: char| !c.is_alphabetic()).filter(|word| is_telling(word)).collect();
            if words.len() >= 20 {
                let count = 2 + dice.below(3);
                let asked: Vec<&str> = (0..count).map(|_| *dice.pick(&words)).collect();
                queries.push(asked.join(" "));
            }
        }
        if queries.is_empty() {
            return Err(format!("{name} holds no words to ask with").into());
        }
        fs::write(work.join("queries"), queries.join("\n"))?;
        remember(&root, &files, &mut Dice(seed ^ 1))?;
        Ok(Self { name, place: Place::new(root, work), notes: files.len(), bytes })
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if name == ".sidenote" || name == ".git" {
            continue;
        }
        let to = to.join(&name);
        if kind.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), to)?;
        } else if kind.is_symlink() {
            create_symlink(&fs::read_link(entry.path())?, &to)?;
        }
    }
    Ok(())
}

/// Gives the vault a past: ten events of each of 10,000 notes, nearly all of them uses, in the journal where it belongs.
fn remember(root: &Path, files: &[PathBuf], dice: &mut Dice) -> Result<()> {
    const DAY: i64 = 86_400_000;
    let from = Clock::System.now().millis() - 30 * MONTHS as i64 * DAY;
    let mut events = Vec::with_capacity(files.len().min(REMEMBERED) * EVENTS);
    for file in files.iter().step_by(files.len().div_ceil(REMEMBERED).max(1)) {
        let Some(path) = file.strip_prefix(root).ok().and_then(Path::to_str).and_then(NotePath::from_disk)
        else {
            continue;
        };
        // One note in twenty had another name at first.
        let former = NotePath::from_disk(&format!("Former/{path}")).filter(|_| dice.below(20) == 0);
        let mut times: Vec<i64> =
            (0..EVENTS).map(|_| from + (dice.unit() * (30 * MONTHS) as f64 * DAY as f64) as i64).collect();
        times.sort_unstable();
        for (at, time) in times.into_iter().enumerate() {
            let name = former.as_ref().filter(|_| at <= EVENTS / 2).unwrap_or(&path);
            let hash = ContentHash::of(name.as_str().as_bytes());
            let touched = |to| TouchedFile {
                path: Spot::Vault(name.clone()),
                to,
                before: Some(hash),
                after: Some(hash),
            };
            let is_move = at == EVENTS / 2 && former.is_some();
            let (op, files, more) = match at {
                _ if is_move => ("move", vec![touched(Some(Spot::Vault(path.clone())))], None),
                2 => ("set", vec![touched(None)], None),
                7 => ("vote", Vec::new(), Some(("useful", Value::from(dice.below(4) > 0)))),
                _ => ("use", Vec::new(), Some(("by", Value::from("recall")))),
            };
            let mut event = Event { files, ..Event::new(op, Timestamp::from_millis(time)) };
            if let Some((key, value)) = more {
                event.more.insert("notes".to_owned(), json!([{ "path": name.as_str() }]));
                event.more.insert(key.to_owned(), value);
            }
            events.push(event);
        }
    }
    events.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
    let vault = Vault::open(root)?;
    let journal = Journal::open(&vault, &vault.records());
    let month = |event: &Event| event.at.rfc3339().get(..7).map(str::to_owned);
    Ok(events
        .chunk_by(|one, other| month(one) == month(other))
        .try_for_each(|month| journal.append_all(month))?)
}

fn is_telling(word: &str) -> bool {
    (4..=12).contains(&word.chars().count())
}

/// Lists the Markdown files of a vault, as plainly as can be; links count at the root alone.
pub(crate) fn notes(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            let linked = folder == root && entry.file_type()?.is_symlink();
            let is_folder = if linked { path.is_dir() } else { entry.file_type()?.is_dir() };
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if is_folder {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md")) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Adds up the bytes of the files in a folder; 0 where there is none.
pub(crate) fn folder_size(folder: &Path) -> Result<u64> {
    let mut total = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop().filter(|inner| inner.exists()) {
        for entry in fs::read_dir(inner)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            if meta.is_dir() {
                folders.push(entry.path());
            } else {
                total += meta.len();
            }
        }
    }
    Ok(total)
}

/// A seeded source of numbers: SplitMix64 (Steele, Lea & Flood 2014).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Gives a number from 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.unit() * end as f64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Gives a word; the word of rank r comes with a frequency of about 1/r, as in any language (Zipf 1949).
    fn word(&mut self) -> String {
        const HEADS: &[u8] = b"bdfgklmnprstvz";
        const TAILS: &[u8] = b"aeiou";
        let mut rank = (VOCABULARY as f64).powf(self.unit()) as usize + HEADS.len() * TAILS.len();
        let mut word = String::new();
        while rank > 0 {
            word.push(char::from(HEADS[rank % HEADS.len()]));
            rank /= HEADS.len();
            word.push(char::from(TAILS[rank % TAILS.len()]));
            rank /= TAILS.len();
        }
        word
    }

    fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

fn title(dice: &mut Dice) -> String {
    let count = 1 + dice.below(3);
    dice.words(count)
}

/// Writes a note of about five kilobytes with some of everything: properties, headings, lists, code, links.
fn note(dice: &mut Dice, name: &str, names: &[String]) -> String {
    let mut text = String::new();
    if dice.below(2) == 0 {
        let (tag, day) = (dice.word(), 1 + dice.below(28));
        text.push_str(&format!(
            "---\ntags: [{tag}, bench]\ncreated: 2026-03-{day:02}\nstatus: draft\n---\n\n"
        ));
    }
    text.push_str(&format!("# {name}\n\n"));
    for _ in 0..3 + dice.below(7) {
        text.push_str(&format!("## {}\n\n", title(dice)));
        for _ in 0..1 + dice.below(4) {
            let count = 30 + dice.below(60);
            let paragraph = dice.words(count);
            text.push_str(&match dice.below(6) {
                0 => format!("{paragraph} [[{}]].\n\n", dice.pick(names)),
                1 => format!("- {paragraph}\n- [ ] {}\n- #{}\n\n", dice.word(), dice.word()),
                2 => format!("```rust\nlet {} = {:?};\n```\n\n", dice.word(), paragraph),
                _ => format!("{paragraph}.\n\n"),
            });
        }
    }
    text
}
