//! Lists pairs of similar notes of a real vault with the duplicate guard's verdict, to choose its threshold.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use sidenote::embed::{E5, Effort, Embed as _};
use sidenote::index::indexed_document::ParsedNote;
use sidenote::markdown::frontmatter;
use sidenote::markdown::path::NotePath;
use sidenote::memory::duplicate::{agree, digest};
use sidenote::vectors::Vectors;

use crate::support::{env_path, say};

/// Pairs below this are not listed.
const LEAST: f32 = 0.85;
const THRESHOLDS: [f32; 8] = [0.85, 0.9, 0.93, 0.95, 0.96, 0.97, 0.98, 0.99];

struct Written {
    name: String,
    body: String,
    /// The vector of the body, as a query has it.
    whole: usize,
    /// Vectors of the passages as the index has them, under the note's own title.
    titled: Vec<usize>,
    /// Vectors of the passages under the title that a memory gets where none is given.
    plain: Vec<usize>,
}

/// Texts to embed, each once.
#[derive(Default)]
struct Texts {
    texts: Vec<String>,
    known: HashMap<String, usize>,
}

impl Texts {
    fn add(&mut self, text: String) -> usize {
        *self.known.entry(text.clone()).or_insert_with(|| {
            self.texts.push(text);
            self.texts.len() - 1
        })
    }
}

fn written(folder: &Path, texts: &mut Texts) -> Vec<Written> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut notes = Vec::new();
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let path = NotePath::parse("Note.md").unwrap();
        let reading = ParsedNote::new(&path, &bytes);
        let body = reading.text[frontmatter::read(&reading.text).1..].trim().to_owned();
        let titled = reading.embedded_texts().into_iter().map(|text| texts.add(text)).collect();
        // Its title is its first words, which the passage does not repeat.
        let title: String = body.chars().take(60).collect();
        let own = serde_json::to_string(title.lines().next().unwrap_or("")).unwrap();
        let saved = format!("---\ntitle: {own}\n---\n{body}\n");
        let plain = ParsedNote::new(&path, saved.as_bytes()).embedded_texts();
        let plain = plain.into_iter().map(|text| texts.add(text)).collect();
        notes.push(Written { name, whole: texts.add(body.clone()), body, titled, plain });
    }
    notes
}

#[test]
#[ignore = "it embeds the notes of $SIDENOTE_EVAL/realmem-dev-notes, and lists pairs for people to judge"]
fn notes_with_similar_vectors_are_listed_with_the_verdict() {
    let folder = env_path("SIDENOTE_EVAL");
    let mut texts = Texts::default();
    let mut groups: BTreeMap<String, Vec<Written>> = BTreeMap::new();
    for group in fs::read_dir(folder.join("realmem-dev-notes/notes")).unwrap() {
        let group = group.unwrap();
        let notes = written(&group.path(), &mut texts);
        groups.insert(group.file_name().to_string_lossy().into_owned(), notes);
    }
    let asked: Vec<&str> = texts.texts.iter().map(String::as_str).collect();
    let model = E5::default();
    let vectors = model.embed(&asked, Effort::Bulk).unwrap();
    let scale = Vectors::empty(model.dimensions()).with_mean_passage(model.mean_passage());
    let similarity = |one: usize, other: usize| scale.similarity(&vectors[one], &vectors[other]);
    let best = |passages: &[usize], query: usize| {
        passages.iter().map(|&passage| similarity(passage, query)).fold(-1.0, f32::max)
    };
    // Of all pairs, of those that the guard lets pass, and of those that are the same byte for byte.
    let mut counts = [[0; 3]; THRESHOLDS.len()];
    for notes in groups.values() {
        for (at, newer) in notes.iter().enumerate() {
            for older in &notes[..at] {
                let alike = similarity(older.whole, newer.whole);
                let titled = best(&older.titled, newer.whole);
                let plain = best(&older.plain, newer.whole);
                if alike.max(titled).max(plain) < LEAST {
                    continue;
                }
                let agrees = agree(&older.body, &newer.body);
                let is_same = digest(&older.body) == digest(&newer.body);
                for (count, threshold) in counts.iter_mut().zip(THRESHOLDS) {
                    let counts = alike >= threshold;
                    count[0] += usize::from(counts);
                    count[1] += usize::from(counts && agrees);
                    count[2] += usize::from(counts && is_same);
                }
                let line = serde_json::json!({
                    "one": older.name, "other": newer.name, "alike": alike, "titled": titled, "plain": plain,
                    "agree": agrees, "same": is_same, "texts": [older.body, newer.body],
                });
                say(&line.to_string());
            }
        }
    }
    assert!(counts[0][0] > 0, "no two notes are alike");
    for (threshold, [all, passed, same]) in THRESHOLDS.into_iter().zip(counts) {
        say(&format!("{threshold}: {all} pairs, {passed} pass the guard, {same} are byte for byte the same"));
    }
}
