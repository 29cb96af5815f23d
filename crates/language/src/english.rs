//! How common a word is in English texts, by a list that is part of the program and read in place.

/// The words in the order of their bytes, one per line, each with its place in the order of frequency.
static WORDS: &str = include_str!("../assets/english-words.txt");

/// Returns the place of a folded word in a list of words by how often English texts have them, the commonest first. `None`
/// for a word that is not among the 22,000 commonest.
pub fn english_rank(word: &str) -> Option<usize> {
    let mut rest = WORDS;
    loop {
        // The line around the middle.
        let middle = rest.floor_char_boundary(rest.len() / 2);
        let (before, after) = rest.split_at(middle);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let end = after.find('\n').map_or(rest.len(), |at| middle + at);
        let (found, place) = rest.get(start..end)?.split_once(' ')?;
        rest = match word.cmp(found) {
            std::cmp::Ordering::Equal => return place.parse().ok(),
            std::cmp::Ordering::Less => rest.get(..start)?,
            std::cmp::Ordering::Greater => rest.get(end + 1..)?,
        };
    }
}
