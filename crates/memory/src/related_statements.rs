//! Finds among many statements the pairs that say the same, and those of which one replaces or contradicts the other. Two
//! statements are compared if they share words that hardly another one has together.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::statement::{Comparison, Names, Statement};

/// The number of the rarest words of a statement by which others are looked up.
const RAREST: usize = 8;

/// The most statements with a word by which others are looked up. A more common word tells too little of a subject.
const MOST_WITH_WORD: usize = 500;

/// The number of statements that are compared with each.
const COMPARED: usize = 48;

/// The most statements that have all words which two of them share, if those words name one subject: the two, and other
/// versions of them.
const MOST_ON_SUBJECT: usize = 4;

/// The same for words without a name, which tell less of a subject.
const MOST_WITHOUT_NAME: usize = 2;

/// Two statements about the same, by their places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelatedPair {
    /// The older one. Where dates do not tell, the newer one is that which says that it replaces the other.
    pub older: usize,
    /// The newer one.
    pub newer: usize,
    /// What they are to each other; not [`Comparison::Unrelated`].
    pub comparison: Comparison,
    /// The sum of the weights of the rare words that both have.
    pub weight: f64,
}

/// Finds the pairs of related statements. Those that share the most telling words come first. `is_after` says whether
/// the first one is surely newer than the second.
pub fn related(statements: &[&Statement], is_after: impl Fn(usize, usize) -> bool) -> Vec<RelatedPair> {
    let shared = SharedWords::of(statements);
    let names = Names::of(statements.iter().copied());
    let mut seen: HashSet<(usize, usize)> = HashSet::new();
    let mut pairs = Vec::new();
    for at in 0..statements.len() {
        for (other, weight) in shared.candidates(at) {
            let (one, two) = (at.min(other), at.max(other));
            if !seen.insert((one, two)) {
                continue;
            }
            let (Some(first), Some(second)) = (statements.get(one), statements.get(two)) else { continue };
            let there = first.compare_by(second, &names);
            let back = second.compare_by(first, &names);
            let replaces_back = back.0 == Comparison::Superseded && there.0 != Comparison::Superseded;
            let is_back = is_after(one, two) || !is_after(two, one) && replaces_back;
            let (older, newer, (comparison, has_name)) =
                if is_back { (two, one, back) } else { (one, two, there) };
            if comparison == Comparison::Unrelated {
                continue;
            }
            let most = if has_name { MOST_ON_SUBJECT } else { MOST_WITHOUT_NAME };
            if comparison == Comparison::Same
                || shared.count_with_all(one, two, (statements, &names), most) <= most
            {
                pairs.push(RelatedPair { older, newer, comparison, weight });
            }
        }
    }
    pairs.sort_by(|one, other| {
        other.weight.total_cmp(&one.weight).then((one.older, one.newer).cmp(&(other.older, other.newer)))
    });
    pairs
}

/// The words of all statements, and which statements have each.
struct SharedWords<'s> {
    stems: Vec<BTreeSet<&'s str>>,
    holding: HashMap<&'s str, Vec<usize>>,
}

impl<'s> SharedWords<'s> {
    fn of(statements: &[&'s Statement]) -> Self {
        let stems: Vec<BTreeSet<&str>> = statements.iter().map(|statement| statement.stems()).collect();
        let mut holding: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, own) in stems.iter().enumerate() {
            for word in own {
                holding.entry(word).or_default().push(at);
            }
        }
        Self { stems, holding }
    }

    fn count(&self, word: &str) -> usize {
        self.holding.get(word).map_or(0, Vec::len)
    }

    /// Returns the statements that share the most telling words with one, each with the sum of the weights of the words.
    fn candidates(&self, at: usize) -> Vec<(usize, f64)> {
        let own = self.stems.get(at).into_iter().flatten().copied();
        let mut rare: Vec<&str> =
            own.filter(|word| (2..=MOST_WITH_WORD).contains(&self.count(word))).collect();
        rare.sort_by_key(|word| (self.count(word), *word));
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        for word in rare.into_iter().take(RAREST) {
            let weight = (self.stems.len() as f64 / self.count(word) as f64).ln().max(0.1);
            for other in self.holding.get(word).into_iter().flatten().filter(|other| **other != at) {
                *scores.entry(*other).or_default() += weight;
            }
        }
        let mut best: Vec<(usize, f64)> = scores.into_iter().collect();
        best.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        best.truncate(COMPARED);
        best
    }

    /// Counts the statements that have all words which two of them share and no longer name, and that are about them: the words are
    /// most of theirs. Counts up to one more than `most`.
    fn count_with_all(
        &self,
        one: usize,
        other: usize,
        (statements, names): (&[&Statement], &Names),
        most: usize,
    ) -> usize {
        let (Some(one), Some(other)) = (self.stems.get(one), self.stems.get(other)) else { return 0 };
        let shared: BTreeSet<&str> = one.intersection(other).copied().collect();
        let rarest = shared.iter().filter_map(|word| self.holding.get(word)).min_by_key(|notes| notes.len());
        let has_all = |at: &&usize| {
            let is_about = |own: &BTreeSet<&str>| 2 * shared.len() > own.len();
            let is_there = self.stems.get(**at).is_some_and(|own| is_about(own) && shared.is_subset(own));
            is_there && statements.get(**at).is_some_and(|own| !own.extends_name_of(&shared, names))
        };
        rarest.into_iter().flatten().filter(has_all).take(most + 1).count()
    }
}
