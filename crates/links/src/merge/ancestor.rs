//! The earlier version of a note from which its conflict copy was made.

use std::collections::HashSet;

use crate::merge::count_changed_lines;

/// The earlier versions of a note, the oldest first, and a copy that was made from one of them.
#[derive(Debug, Clone, Copy)]
pub struct Lineage<'t> {
    /// The versions.
    pub versions: &'t [&'t str],
    /// The note as it is.
    pub note: &'t str,
    /// The copy.
    pub copy: &'t str,
}

impl Lineage<'_> {
    /// Finds the version that the copy differs least from, the oldest of several. The note was changed after it, so its
    /// present text is none.
    pub fn nearest(&self) -> Option<usize> {
        let others = self.versions.iter().enumerate().filter(|(_, version)| **version != self.note);
        others.min_by_key(|(_, version)| count_changed_lines(version, self.copy)).map(|(at, _)| at)
    }

    /// Checks a merge with one of the versions as the common ancestor. Returns an older version that the copy may come from
    /// as well, and with which the merge may come out differently; `None` if there is none.
    ///
    /// A line of the note that the merge left out must have been in the copy once. The evidence is other lines of the
    /// version that are as new as this one: the copy must have most of them. Otherwise the copy may be older than the
    /// line.
    pub fn older_than_lost_lines(&self, base: usize, merged: &str) -> Option<usize> {
        let result: HashSet<&str> = merged.lines().collect();
        let copy: HashSet<&str> = self.copy.lines().collect();
        let ancestor: HashSet<&str> = lines(self.versions.get(base)?).collect();
        let lost: HashSet<&str> =
            lines(self.note).filter(|line| ancestor.contains(line) && !result.contains(line)).collect();
        if lost.is_empty() {
            return None;
        }
        let mut older: HashSet<&str> = HashSet::new();
        for (at, version) in self.versions.iter().enumerate().take(base + 1) {
            let is_first_with_lost = lines(version).any(|line| lost.contains(line) && !older.contains(line));
            let new = ancestor.difference(&older);
            let (kept, all) =
                new.fold((0, 0), |(kept, all), line| (kept + usize::from(copy.contains(line)), all + 1));
            if at > 0 && is_first_with_lost && kept * 2 <= all {
                let others = self.versions.get(..at)?.iter().enumerate();
                return others.rev().find(|(_, other)| **other != self.note).map(|(at, _)| at);
            }
            older.extend(lines(version));
        }
        None
    }
}

/// Lists the lines of a text that are not blank.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty())
}
