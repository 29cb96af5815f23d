//! The lines that contain links, for comparing two versions of a note.

use std::collections::HashMap;

use sidenote_markdown::link::{Link, LinkForm, LinkSyntax};

/// The destination of a link as it is written: its path, how that is read, and whether it is a wikilink.
type LinkDestination<'n> = (&'n str, LinkSyntax, bool);

fn destination_of(link: &Link) -> LinkDestination<'_> {
    (&link.path, link.form.syntax(), matches!(link.form, LinkForm::Wiki))
}

/// The lines of one version of a note, and which of them have links to a destination. Made in time linear in the note.
pub struct LinkLines<'n> {
    lines: Vec<&'n str>,
    by_destination: HashMap<LinkDestination<'n>, Vec<usize>>,
}

impl<'n> LinkLines<'n> {
    /// Reads the lines of a note. `links` are all links of it, in their order.
    pub fn new(text: &'n str, links: &'n [Link]) -> Self {
        let mut by_destination: HashMap<_, Vec<usize>> = HashMap::new();
        for link in links {
            by_destination.entry(destination_of(link)).or_default().push(link.line);
        }
        Self { lines: text.lines().map(str::trim_end).collect(), by_destination }
    }

    /// Returns the text of a line without spaces at its end; empty if the note has no such line. Lines count from 1.
    pub fn text(&self, line: usize) -> &'n str {
        line.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or_default()
    }

    /// Returns the text of the line with the same link: of several links with its destination, the one in the same position
    /// among them, as [`positions`] gives it. Returns `None` if there is none in that position.
    pub fn same(&self, link: &Link, position: usize) -> Option<&'n str> {
        self.by_destination.get(&destination_of(link))?.get(position).map(|line| self.text(*line))
    }

    /// Returns the text of the line with the same link, or with the first one that has its destination.
    pub fn same_or_first(&self, link: &Link, position: usize) -> Option<&'n str> {
        self.same(link, position).or_else(|| self.same(link, 0))
    }
}

/// Returns of each link how many links before it have the same destination.
pub fn positions(links: &[Link]) -> Vec<usize> {
    let mut next: HashMap<LinkDestination<'_>, usize> = HashMap::new();
    let position_of = |link| {
        let next = next.entry(destination_of(link)).or_default();
        std::mem::replace(next, *next + 1)
    };
    links.iter().map(position_of).collect()
}
