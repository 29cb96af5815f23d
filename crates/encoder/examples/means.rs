//! Computes the mean vectors of passages and of queries, from which the built-in model measures similarities.
//!
//! usage: means PASSAGES.tsv QUERIES.tsv MEANS.f32.
//!
//! Each line of a file is a group, a tab and a text. Every group counts the same, however many texts it has.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a tool for developers")]

use std::collections::BTreeMap;

use sidenote_encoder::{Asset, BertEncoder, TextKind, Tokenizer, Workspace, built_in};

const MAX_IDS: usize = 512;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let model = || Asset::parse(built_in()).unwrap();
    let (tokenizer, encoder) = (Tokenizer::new(&model()).unwrap(), BertEncoder::new(model()).unwrap());
    let mut bytes = Vec::new();
    for (file, kind) in arguments.iter().zip([TextKind::Passage, TextKind::Query]) {
        let file = std::fs::read_to_string(file).unwrap();
        let mut groups: BTreeMap<&str, Vec<Vec<f32>>> = BTreeMap::new();
        for (group, text) in file.lines().filter_map(|line| line.split_once('\t')) {
            let ids = tokenizer.encode(kind.prefix(), text, MAX_IDS);
            let vector = encoder.embed(&[&ids], &mut Workspace::default()).unwrap().remove(0);
            groups.entry(group).or_default().push(vector);
        }
        let means: Vec<Vec<f32>> = groups.values().map(|vectors| mean(vectors)).collect();
        bytes.extend(mean(&means).into_iter().flat_map(f32::to_le_bytes));
    }
    std::fs::write(&arguments[2], bytes).unwrap();
}

fn mean(vectors: &[Vec<f32>]) -> Vec<f32> {
    let width = vectors[0].len();
    (0..width).map(|at| vectors.iter().map(|vector| vector[at]).sum::<f32>() / vectors.len() as f32).collect()
}
