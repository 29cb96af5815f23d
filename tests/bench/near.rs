//! Owns the measures of the search for the nearest passages: how fast it is, and how many of them it finds.
//!
//! On vectors made from a seed, or, where `SIDENOTE_BENCH_VECTORS` names them, on the vectors of real passages: folders
//! of an index such as `index/vectors/minilm-…`, with `:` between them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sidenote::vectors::{VectorWriter, Vectors};

use crate::Result;
use crate::bed::{Dice, Place};
use crate::measure::ensure;
use crate::meter::Sample;

/// Names the folders of vectors to measure with.
pub(crate) const GIVEN: &str = "SIDENOTE_BENCH_VECTORS";
/// How many vectors are made.
const VECTORS: usize = 60_000;
const DIMENSIONS: usize = 384;
/// Made vectors lie near a surface of so many dimensions, as those of texts do.
const LATENT: usize = 40;
/// Made vectors lie around so many topics.
const TOPICS: usize = 600;
/// Made vectors of look-alikes lie around so many templates.
const TEMPLATES: usize = 4;
/// One of so many made vectors is unlike any other.
const OUTLIERS: usize = 100;
/// How many are asked with; they are not among those that are searched.
const ASKED: usize = 300;
/// A search for ten notes asks for so many passages.
const COUNT: usize = 100;
/// So many of them are compared with the exact answer.
const FIRST: usize = 10;
/// At least this share of the exact answer must be found without a graph.
const LEAST: f64 = 0.99;
/// The same with a graph.
const LEAST_BY_GRAPH: f64 = 0.97;

/// Times searches as they are made for ten notes, and compares what they find with all vectors compared one by one.
pub(crate) fn near(place: &Place, sample: &mut Sample) -> Result<()> {
    search(place, sample, made, LEAST, |writer| writer.build_graph(&|| false))
}

/// Does the same among look-alikes with outliers.
pub(crate) fn near_alike(place: &Place, sample: &mut Sample) -> Result<()> {
    search(place, sample, look_alikes, LEAST, |writer| writer.build_graph(&|| false))
}

/// Does the same as [`near`] by a graph.
pub(crate) fn near_graph(place: &Place, sample: &mut Sample) -> Result<()> {
    search(place, sample, made, LEAST_BY_GRAPH, |writer| writer.build_graph_beyond(0, &|| false))
}

fn search(
    place: &Place,
    sample: &mut Sample,
    made: impl FnOnce() -> Vec<Vec<f32>>,
    least: f64,
    build: impl FnOnce(&VectorWriter) -> sidenote::base::error::Result<bool>,
) -> Result<()> {
    let (mut vectors, source) = match env::var(GIVEN) {
        Ok(folders) => (read_all(&folders)?, "real passages"),
        Err(_) => (made(), "made"),
    };
    ensure(vectors.len() > 2 * ASKED, "there are too few vectors to search among")?;
    let step = vectors.len() / ASKED;
    let asked: Vec<Vec<f32>> = (0..ASKED).rev().map(|at| vectors.swap_remove(at * step)).collect();
    let count = vectors.len();
    let folder = place.work.join("near");
    let vectors = written(&folder, vectors, build)?;
    let keys: Vec<i64> = (0..count as i64).collect();
    let mut met = 0;
    for query in &asked {
        let found = sample.time(|| Ok(vectors.search(query, COUNT, None)?))?;
        let found: HashSet<i64> = found.iter().take(FIRST).map(|near| near.key).collect();
        let mut exact = vectors.compare(query, &keys)?;
        exact.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.key.cmp(&b.key)));
        met += exact.iter().take(FIRST).filter(|near| found.contains(&near.key)).count();
    }
    fs::remove_dir_all(&folder)?;
    let recall = met as f64 / (asked.len() * FIRST) as f64;
    sample.remark = format!("recall@{FIRST} {recall:.4} among {count} vectors, {source}");
    ensure(recall >= least, &sample.remark)
}

fn written(
    folder: &Path,
    vectors: Vec<Vec<f32>>,
    build: impl FnOnce(&VectorWriter) -> sidenote::base::error::Result<bool>,
) -> Result<Vectors> {
    let dimensions = vectors.first().map_or(DIMENSIONS, Vec::len);
    let (mut writer, _) = VectorWriter::open(folder, dimensions, false)?;
    let vectors: Vec<(i64, Vec<f32>)> = (0..).zip(vectors).collect();
    writer.append(&vectors)?;
    ensure(build(&writer)?, "there are too few vectors to be more than the tail of a log")?;
    let vectors = Vectors::open(folder, dimensions)?;
    vectors.prepare_searches();
    Ok(vectors)
}

/// Makes vectors of length 1 around topics.
fn made() -> Vec<Vec<f32>> {
    let mut dice = Dice(5);
    let surface: Vec<Vec<f32>> = (0..LATENT).map(|_| normal(&mut dice, DIMENSIONS)).collect();
    let topics: Vec<Vec<f32>> = (0..TOPICS).map(|_| normal(&mut dice, LATENT)).collect();
    (0..VECTORS)
        .map(|_| {
            let topic = dice.pick(&topics).clone();
            let place: Vec<f32> =
                topic.iter().zip(normal(&mut dice, LATENT)).map(|(centre, aside)| centre + aside).collect();
            let mut vector: Vec<f32> = normal(&mut dice, DIMENSIONS).iter().map(|x| x * 1.5).collect();
            for (share, axis) in place.iter().zip(&surface) {
                vector.iter_mut().zip(axis).for_each(|(sum, x)| *sum += share * x);
            }
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter().map(|x| x / length).collect()
        })
        .collect()
}

/// Makes vectors of length 1 close to a few templates, and some that are unlike any other.
fn look_alikes() -> Vec<Vec<f32>> {
    let mut dice = Dice(7);
    let templates: Vec<Vec<f32>> = (0..TEMPLATES).map(|_| normal(&mut dice, DIMENSIONS)).collect();
    (0..VECTORS)
        .map(|at| {
            let mut vector = normal(&mut dice, DIMENSIONS);
            if at % OUTLIERS != 0 {
                let template = dice.pick(&templates);
                vector.iter_mut().zip(template).for_each(|(x, template)| *x = template + 0.3 * *x);
            }
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter().map(|x| x / length).collect()
        })
        .collect()
}

/// Gives numbers of a normal distribution, by the sum of twelve even ones.
fn normal(dice: &mut Dice, count: usize) -> Vec<f32> {
    (0..count).map(|_| (0..12).map(|_| dice.unit() as f32).sum::<f32>() - 6.0).collect()
}

fn read_all(folders: &str) -> Result<Vec<Vec<f32>>> {
    let mut vectors = Vec::new();
    for folder in folders.split(':').map(PathBuf::from) {
        vectors.extend(read_log(&folder)?);
    }
    // Two notes of one template have the same text but for a word; the same vector twice has no order.
    let mut known = HashSet::new();
    vectors.retain(|vector: &Vec<f32>| known.insert(vector.iter().map(|x| x.to_bits()).collect::<Vec<_>>()));
    Ok(vectors)
}

/// Reads the log of an index: a header with the dimensions, then a scale and a signed byte for each dimension.
fn read_log(folder: &Path) -> Result<Vec<Vec<f32>>> {
    let bytes = fs::read(folder.join("vectors"))?;
    let (header, records) = bytes.split_at_checked(16).ok_or("the log has no header")?;
    let dimensions = u64::from_le_bytes(header[8..].try_into()?) as usize;
    let vector = |record: &[u8]| {
        let (scale, bytes) = record.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let scale = f32::from_le_bytes(*scale);
        bytes.iter().map(|&byte| scale * f32::from(byte as i8)).collect()
    };
    Ok(records.chunks_exact(4 + dimensions).map(vector).collect())
}
