//! Lines to paragraphs: which lines stand in one column, and in which order the columns are read.

use super::TextLine;
use super::lines::Line;

/// How far, in ems, the next line of a paragraph is below.
const LEADING: f64 = 1.8;

/// How much larger than the usual distance of the lines of a block a gap between paragraphs is.
const PARAGRAPH_GAP: f64 = 1.25;

/// How many blocks of a page are put in order by their places; the time grows with their third power. Pages with more of
/// them are drawings and maps, where no order is right, and keep the order of the file.
const MAX_ORDERED: usize = 400;

/// A part of a line, or the cells of a table's row.
struct Row {
    text: String,
    start: f64,
    end: f64,
    base: f64,
    size: f64,
    painted: usize,
}

/// Rows that stand under each other.
struct Block {
    rows: Vec<Row>,
    start: f64,
    end: f64,
    top: f64,
    bottom: f64,
    painted: usize,
}

/// Puts lines in order, as paragraphs.
pub(super) fn paragraphs(lines: Vec<Line>) -> Vec<Vec<TextLine>> {
    let blocks = blocks(rows(lines));
    let mut paragraphs = Vec::new();
    for block in in_reading_order(blocks) {
        split(block, &mut paragraphs);
    }
    paragraphs
}

/// Joins cells that follow each other in the file and stand on one base.
fn rows(lines: Vec<Line>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in lines {
        if let Some(row) = rows.last_mut()
            && line.continues_row
            && (line.base - row.base).abs() < 0.35 * line.size
            && line.start >= row.end
        {
            row.text.push('\t');
            row.text.push_str(&line.text);
            row.end = line.end;
            row.size = row.size.max(line.size);
            continue;
        }
        let Line { text, start, end, base, size, painted, .. } = line;
        rows.push(Row { text, start, end, base, size, painted });
    }
    rows
}

/// Puts rows under each other into blocks: where exactly one row is directly below another, and that has no other one
/// directly above.
fn blocks(mut rows: Vec<Row>) -> Vec<Block> {
    rows.sort_by(|a, b| a.base.total_cmp(&b.base));
    let below = directly_below(&rows);
    let mut above = vec![0_usize; rows.len()];
    for &row in below.iter().flatten() {
        above[row] += 1;
    }
    let mut follows: Vec<Option<usize>> = vec![None; rows.len()];
    for (upper, lower) in below.iter().enumerate() {
        if let [lower] = lower[..]
            && above[lower] == 1
            && belong_together(&rows[upper], &rows[lower])
        {
            follows[lower] = Some(upper);
        }
    }
    let mut block_of: Vec<usize> = Vec::with_capacity(rows.len());
    let mut blocks: Vec<Block> = Vec::new();
    for (index, row) in rows.into_iter().enumerate() {
        let (top, bottom) = (row.base - 0.8 * row.size, row.base + 0.2 * row.size);
        if let Some(upper) = follows[index] {
            let number = block_of[upper];
            block_of.push(number);
            let block = &mut blocks[number];
            block.start = block.start.min(row.start);
            block.end = block.end.max(row.end);
            block.bottom = bottom;
            block.painted = block.painted.min(row.painted);
            block.rows.push(row);
        } else {
            block_of.push(blocks.len());
            let Row { start, end, painted, .. } = row;
            blocks.push(Block { rows: vec![row], start, end, top, bottom, painted });
        }
    }
    blocks
}

/// Returns, for each row, the rows that stand directly below it. The rows are sorted by their bases.
fn directly_below(rows: &[Row]) -> Vec<Vec<usize>> {
    let mut all = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let mut below: Vec<usize> = Vec::new();
        for (other, candidate) in rows.iter().enumerate().skip(index + 1) {
            if candidate.base - row.base > LEADING * row.size.max(candidate.size) || below.len() > 8 {
                break;
            }
            let is_lower = candidate.base - row.base > 0.4 * candidate.size.min(row.size);
            let hidden = |&between: &usize| {
                overlap(&rows[between], candidate) > 0.0
                    && candidate.base - rows[between].base > 0.4 * candidate.size
            };
            if is_lower && overlap(row, candidate) > 0.0 && !below.iter().any(hidden) {
                below.push(other);
            }
        }
        all.push(below);
    }
    all
}

fn overlap(a: &Row, b: &Row) -> f64 {
    a.end.min(b.end) - a.start.max(b.start)
}

fn belong_together(upper: &Row, lower: &Row) -> bool {
    let ratio = upper.size / lower.size;
    (0.8..1.25).contains(&ratio)
}

/// Orders blocks by the rules of Breuel ("High performance document layout analysis", 2003): a block is read before one
/// below it in its column, and before one to the right of it if no block between them spans both. Where the rules leave a
/// choice, the order of the file decides.
fn in_reading_order(mut blocks: Vec<Block>) -> Vec<Block> {
    blocks.sort_by_key(|block| block.painted);
    if blocks.len() > MAX_ORDERED {
        return blocks;
    }
    let count = blocks.len();
    let mut waits_for = vec![0_usize; count];
    let mut then: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (a, later) in then.iter_mut().enumerate() {
        later.extend((0..count).filter(|&b| a != b && is_before(&blocks, a, b)));
        for &b in later.iter() {
            waits_for[b] += 1;
        }
    }
    let mut order = Vec::with_capacity(count);
    let mut placed = vec![false; count];
    while order.len() < count {
        // Where the rules contradict each other, the file decides, too.
        let free = (0..count).find(|&index| !placed[index] && waits_for[index] == 0);
        let Some(next) = free.or_else(|| (0..count).find(|&index| !placed[index])) else {
            break;
        };
        placed[next] = true;
        order.push(next);
        for &other in &then[next] {
            waits_for[other] = waits_for[other].saturating_sub(1);
        }
    }
    let mut taken: Vec<Option<Block>> = blocks.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| taken[index].take()).collect()
}

fn is_before(blocks: &[Block], a: usize, b: usize) -> bool {
    let (first, second) = (&blocks[a], &blocks[b]);
    let share = |x: &Block, y: &Block| x.end.min(y.end) - x.start.max(y.start);
    if share(first, second) > 0.0 {
        return first.top < second.top && first.bottom <= second.bottom;
    }
    if first.end > second.start {
        return false;
    }
    let (upper, lower) = (first.bottom.min(second.bottom), first.top.max(second.top));
    !blocks.iter().enumerate().any(|(index, between)| {
        index != a
            && index != b
            && share(first, between) > 0.0
            && share(second, between) > 0.0
            && between.top >= upper - 1.0
            && between.bottom <= lower + 1.0
    })
}

/// Splits a block into paragraphs where its lines stand further apart than usual.
fn split(block: Block, paragraphs: &mut Vec<Vec<TextLine>>) {
    let mut distances: Vec<f64> = block.rows.windows(2).map(|pair| pair[1].base - pair[0].base).collect();
    distances.sort_by(f64::total_cmp);
    let usual = distances.get(distances.len() / 2).copied().unwrap_or(0.0);
    let (start, end) = (block.start, block.end);
    let mut paragraph = Vec::new();
    let mut last: Option<f64> = None;
    for row in block.rows {
        if last.is_some_and(|last| row.base - last > PARAGRAPH_GAP * usual) {
            paragraphs.push(std::mem::take(&mut paragraph));
        }
        last = Some(row.base);
        paragraph.push(TextLine { text: row.text, is_full: end - row.end < 0.15 * (end - start) });
    }
    if !paragraph.is_empty() {
        paragraphs.push(paragraph);
    }
}
