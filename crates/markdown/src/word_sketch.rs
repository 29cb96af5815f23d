//! The share of word sequences that two notes have in common, estimated by a small sample of each (Broder, On the
//! resemblance and containment of documents, 1997).

use std::cmp::Ordering;
use std::collections::HashMap;

use sidenote_language::terms::Terms;
use xxhash_rust::xxh3::xxh3_64;

use crate::note::Note;

/// The number of hashes of word sequences that are kept of each note.
const SKETCH: usize = 32;

/// The number of words of a sequence.
const SHINGLE: usize = 4;

/// The number of sequences below which a note is too short to be compared.
const SHORTEST: usize = 12;

/// The share of common sequences from which on two notes say about the same.
pub const ALIKE: f64 = 0.8;

/// A sample of the word sequences of a note. It is empty for a note that is too short.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WordSketch {
    /// The smallest hashes of the sequences, in order.
    hashes: Vec<u64>,
    /// The hash of all words.
    words: u64,
}

impl WordSketch {
    /// Makes the sketch of the body of a note.
    pub fn of(note: &Note, text: &str) -> Self {
        Self::of_body(text.get(note.body_start..).unwrap_or(""))
    }

    /// Makes the sketch of a text without properties.
    pub fn of_body(body: &str) -> Self {
        let mut walk = Terms::new(body);
        let mut words = Vec::new();
        loop {
            while let Some(word) = walk.next_short() {
                let bytes = word.folded.to_le_bytes();
                words.push(xxh3_64(bytes.get(..word.length).unwrap_or_default()));
            }
            let Some(word) = walk.next_text() else { break };
            words.push(xxh3_64(word.as_bytes()));
        }
        let mut hashes: Vec<u64> = words.windows(SHINGLE).map(hash_sequence).collect();
        hashes.sort_unstable();
        hashes.dedup();
        if hashes.len() < SHORTEST {
            return Self::default();
        }
        hashes.truncate(SKETCH);
        hashes.shrink_to_fit();
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Self { hashes, words: xxh3_64(&words) }
    }

    /// Returns the smallest hashes. Two notes that are alike share one of them almost certainly.
    pub fn smallest(&self) -> impl Iterator<Item = u64> {
        self.hashes.iter().take(4).copied()
    }

    /// Estimates the share of word sequences that two notes have in common, from 0 to 1.
    pub fn share(&self, other: &Self) -> f64 {
        let (mut one, mut other) = (self.hashes.iter().peekable(), other.hashes.iter().peekable());
        let (mut all, mut common) = (0, 0);
        // Both are in order.
        while all < SKETCH {
            let order = match (one.peek(), other.peek()) {
                (Some(a), Some(b)) => a.cmp(b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            if order.is_le() {
                one.next();
            }
            if order.is_ge() {
                other.next();
            }
            common += usize::from(order.is_eq());
            all += 1;
        }
        common as f64 / all.max(1) as f64
    }

    /// Returns the share in percent. Only notes with the same words have 100: a sample can miss the few that differ.
    pub fn percent(&self, other: &Self) -> u8 {
        let most = if self.words == other.words { 100.0 } else { 99.0 };
        (self.share(other) * 100.0).round().clamp(0.0, most) as u8
    }
}

/// The number of notes above which a shared sequence counts as part of a template.
const CROWD: usize = 40;

/// Finds the pairs of sketches that are alike, by their places, with the share of each in percent. Only sketches that
/// share one of their four smallest hashes are compared, so the cost grows linearly with their number.
pub fn similar_pairs(sketches: &[&WordSketch]) -> HashMap<(usize, usize), u8> {
    let mut holding: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, sketch) in sketches.iter().enumerate() {
        for hash in sketch.smallest() {
            holding.entry(hash).or_default().push(at);
        }
    }
    // Two notes can share several hashes. To compare them again takes less than a set of all pairs.
    let mut found = HashMap::new();
    for group in holding.values().filter(|group| group.len() <= CROWD) {
        for (place, &one) in group.iter().enumerate() {
            for &other in group.iter().skip(place + 1) {
                let (Some(a), Some(b)) = (sketches.get(one), sketches.get(other)) else { continue };
                if a.share(b) >= ALIKE {
                    found.insert((one, other), a.percent(b));
                }
            }
        }
    }
    found
}

/// Returns the hash of a sequence of words, given by their hashes.
fn hash_sequence(words: &[u64]) -> u64 {
    let mut bytes = [0; 8 * SHINGLE];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    xxh3_64(&bytes)
}
