//! Measures the encoder against the same weights in floats, and its speed.
//!
//! usage: measure cosines|outliers|speed|cold|count TEXTS.tsv [EVERY], or: measure vectors TEXTS.tsv EVERY VECTORS.f32.
//!
//! Each line of the file is a language, a tab and a text. Every so many of them are read.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a tool for developers"
)]

#[path = "../tests/it/floats.rs"]
mod floats;

use std::collections::BTreeMap;
use std::time::Instant;

use floats::{FloatEncoder, dot};
use sidenote_encoder::{Asset, BertEncoder, Tokenizer, Workspace, built_in};

const MAX_IDS: usize = 512;

fn asset() -> Asset {
    Asset::parse(built_in()).unwrap()
}

/// The first words of a text, as many as its place says, or all of it.
fn part(text: &str, at: usize) -> String {
    match at % 3 {
        0 => {
            text.split_whitespace().take(1 + at % 12).collect::<Vec<_>>().join(" ").chars().take(80).collect()
        }
        _ => text.to_owned(),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let every = arguments.get(2).map_or(1, |every| every.parse().unwrap());
    let file = std::fs::read_to_string(&arguments[1]).unwrap();
    let texts: Vec<(&str, &str)> =
        file.lines().filter_map(|line| line.split_once('\t')).step_by(every).collect();
    match arguments[0].as_str() {
        "cosines" => cosines(&texts),
        "outliers" => outliers(&texts),
        "speed" => speed(&texts),
        "cold" => cold(texts[0].1),
        "count" => count(&texts),
        "vectors" => vectors(&texts, &arguments[3]),
        other => println!("{other}?"),
    }
}

fn cosines(texts: &[(&str, &str)]) {
    let start = Instant::now();
    let (tokenizer, encoder) = (Tokenizer::new(&asset()).unwrap(), BertEncoder::new(asset()).unwrap());
    let reference = FloatEncoder::new(asset());
    let each = |(at, (language, text)): (usize, &(&str, &str))| {
        let ids = tokenizer.encode("passage: ", &part(text, at), 256);
        let floats = reference.embed(&ids, &mut |_, _, _| {});
        let ours = encoder.embed(&[&ids], &mut Workspace::default()).unwrap().remove(0);
        ((*language).to_owned(), ids.len(), dot(&ours, &floats))
    };
    let numbered: Vec<_> = texts.iter().enumerate().collect();
    let halves = numbered.split_at(numbered.len() / 2);
    let found: Vec<_> = std::thread::scope(|scope| {
        let first = scope.spawn(|| halves.0.iter().copied().map(each).collect::<Vec<_>>());
        let second: Vec<_> = halves.1.iter().copied().map(each).collect();
        first.join().unwrap().into_iter().chain(second).collect()
    });
    let show = |name: &str, cosines: &mut Vec<f32>| {
        cosines.sort_by(f32::total_cmp);
        let mean = cosines.iter().sum::<f32>() / cosines.len() as f32;
        println!(
            "{name:>8} {:5} texts: mean {mean:.5} tenth {:.5} least {:.5}",
            cosines.len(),
            cosines[cosines.len() / 10],
            cosines[0]
        );
    };
    let mut groups: BTreeMap<String, Vec<f32>> = BTreeMap::new();
    for (language, length, cosine) in found {
        groups.entry(language).or_default().push(cosine);
        let size =
            format!("{:03}+", [0, 8, 16, 32, 64, 128].iter().rev().find(|size| **size <= length).unwrap());
        groups.entry(size).or_default().push(cosine);
        groups.entry("~all".to_owned()).or_default().push(cosine);
    }
    for (name, mut cosines) in groups {
        show(&name, &mut cosines);
    }
    println!("{:?}", start.elapsed());
}

/// Prints for each product the two channels without which the range of a row is the smallest.
fn outliers(texts: &[(&str, &str)]) {
    let tokenizer = Tokenizer::new(&asset()).unwrap();
    let encoder = FloatEncoder::new(asset());
    let mut rows: BTreeMap<(usize, usize), Vec<f32>> = BTreeMap::new();
    for (at, (_, text)) in texts.iter().enumerate() {
        let ids = tokenizer.encode("passage: ", &part(text, at), 128);
        encoder.embed(&ids, &mut |layer, product, states| {
            rows.entry((layer, product)).or_default().extend(states);
        });
    }
    for layer in 0..12 {
        let of = |product: usize| {
            let width = if product == 3 { 1536 } else { 384 };
            let rows = &rows[&(layer, product)];
            let mut without: Vec<usize> = Vec::new();
            let range = |without: &[usize]| -> f64 {
                let range = |row: &[f32]| {
                    let (mut low, mut high) = (0f32, 0f32);
                    for (channel, x) in row.iter().enumerate() {
                        if !without.contains(&channel) {
                            (low, high) = (low.min(*x), high.max(*x));
                        }
                    }
                    f64::from(high - low)
                };
                rows.chunks_exact(width).map(range).sum::<f64>() / (rows.len() / width) as f64
            };
            let whole = range(&[]);
            for _ in 0..2 {
                // Only channels that are the greatest or least of a row can shorten its range.
                let mut counts = vec![0; width];
                for row in rows.chunks_exact(width) {
                    let of = |best: fn(f32, f32) -> bool| {
                        let mut found = usize::MAX;
                        for (channel, x) in row.iter().enumerate() {
                            if !without.contains(&channel) && (found == usize::MAX || best(*x, row[found])) {
                                found = channel;
                            }
                        }
                        found
                    };
                    counts[of(|a, b| a > b)] += 1;
                    counts[of(|a, b| a < b)] += 1;
                }
                let mut order: Vec<usize> = (0..width).collect();
                order.sort_by_key(|channel| std::cmp::Reverse(counts[*channel]));
                let best = order.iter().take(6).map(|channel| {
                    let mut all = without.clone();
                    all.push(*channel);
                    (range(&all), *channel)
                });
                let best = best.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
                without.push(best.1);
            }
            (without.clone(), whole, range(&without))
        };
        let all: Vec<_> = (0..4).map(of).collect();
        let channels: Vec<_> = all.iter().map(|(channels, ..)| channels).collect();
        let ranges: Vec<_> = all.iter().map(|(_, a, b)| format!("{a:.2}->{b:.2}")).collect();
        println!("{channels:?}, // {ranges:?}");
    }
}

fn speed(texts: &[(&str, &str)]) {
    let (tokenizer, encoder) = (Tokenizer::new(&asset()).unwrap(), BertEncoder::new(asset()).unwrap());
    let start = Instant::now();
    let ids: Vec<Vec<u32>> =
        texts.iter().map(|(_, text)| tokenizer.encode("passage: ", text, MAX_IDS)).collect();
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    let tokens: usize = ids.iter().map(Vec::len).sum();
    println!("tokenizer {:.1} MB/s, {tokens} tokens", bytes as f64 / 1e6 / start.elapsed().as_secs_f64());
    let mut space = Workspace::default();
    encoder.embed(&[&ids[0]], &mut space).unwrap();
    for round in 0..3 {
        let start = Instant::now();
        for group in ids.chunks(4) {
            let group: Vec<&[u32]> = group.iter().map(Vec::as_slice).collect();
            encoder.embed(&group, &mut space).unwrap();
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{round}: {:.1} passages/s, {:.0} tokens/s, one thread",
            ids.len() as f64 / seconds,
            tokens as f64 / seconds
        );
    }
    for words in [3, 6, 10, 15] {
        let mut times = Vec::new();
        let mut lengths = 0;
        for (_, text) in texts {
            let text: String = text.split_whitespace().take(words).collect::<Vec<_>>().join(" ");
            let start = Instant::now();
            let ids = tokenizer.encode("query: ", &text, MAX_IDS);
            encoder.embed(&[&ids], &mut space).unwrap();
            times.push(start.elapsed());
            lengths += ids.len();
        }
        times.sort();
        println!("query of {words} words, {} ids: p50 {:?}", lengths / texts.len(), times[times.len() / 2]);
    }
}

fn cold(text: &str) {
    let start = Instant::now();
    let tokenizer = Tokenizer::new(&asset()).unwrap();
    println!("tokenizer {:?}", start.elapsed());
    let ids = tokenizer.encode("query: ", text, 20);
    println!("ids {:?}", start.elapsed());
    let encoder = BertEncoder::new(asset()).unwrap();
    println!("load {:?}", start.elapsed());
    for _ in 0..4 {
        let start = Instant::now();
        let vector = encoder.embed(&[&ids], &mut Workspace::default()).unwrap();
        println!("{} ids: {:?} {:?}", ids.len(), start.elapsed(), &vector[0][..3]);
    }
}

fn count(texts: &[(&str, &str)]) {
    let tokenizer = Tokenizer::new(&asset()).unwrap();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (language, text) in texts {
        let entry = counts.entry(language).or_default();
        entry.0 += tokenizer.count(text);
        entry.1 += text.chars().count();
    }
    for (language, (tokens, characters)) in counts {
        println!("{language:>6} {tokens:7} tokens, {:.2} characters each", characters as f64 / tokens as f64);
    }
}

/// Writes the vectors of texts, those of the language `query` as queries.
fn vectors(texts: &[(&str, &str)], to: &str) {
    let (tokenizer, encoder) = (Tokenizer::new(&asset()).unwrap(), BertEncoder::new(asset()).unwrap());
    let mut space = Workspace::default();
    let mut bytes = Vec::new();
    for (kind, text) in texts {
        let prefix = if *kind == "query" { "query: " } else { "passage: " };
        let ids = tokenizer.encode(prefix, text, 256);
        let vector = encoder.embed(&[&ids], &mut space).unwrap().remove(0);
        bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
    }
    std::fs::write(to, bytes).unwrap();
}
