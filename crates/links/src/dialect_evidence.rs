//! The link dialect under which most links of a vault lead to a file (docs/spec/git.md 1).
//!
//! Values only. `links/resolve` finds the evidence of one link, and the index keeps the sums.

use serde::Serialize;

use crate::dialect::{DialectChoice, LinkDialect};

/// A choice is not made by fewer links than this: a few can be dead because their files have just moved, and then only a lookup by
/// name finds them.
const LEAST_LEAD: i64 = 5;
/// A choice whose margin is below this share of the links, in percent, is not made by the links.
const MARGIN_PERCENT: i64 = 5;
/// Another dialect has to lead by this share of the links, in percent, before a choice is changed.
const CHANGE_PERCENT: i64 = 10;

/// The dialects under which a link leads to a file.
///
/// A wikilink is looked up by name everywhere, and is plain text on a page of GitHub, of a book or of a site. So a
/// wikilink that leads to a file speaks for Obsidian's dialect. It has a bit of its own, because it leads to the same
/// file in every dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkEvidence(u8);

impl LinkEvidence {
    /// The bits of [`LinkEvidence::code`] that mean dialects, in the order of [`LinkDialect::ALL`].
    pub(crate) const DIALECTS: u8 = 0b1111;
    /// The bit of a link that counts: one between files of the vault, outside of the books and sites in it.
    const COUNTED: u8 = 1 << 4;
    /// The bit of a wikilink that leads to a file.
    const WIKILINK: u8 = 1 << 5;

    /// Returns the evidence of a link that counts and leads nowhere.
    pub fn none() -> Self {
        Self(Self::COUNTED)
    }

    /// Returns the evidence of a wikilink.
    pub(crate) fn of_wikilink(leads: bool) -> Self {
        Self(Self::COUNTED | if leads { Self::WIKILINK } else { 0 })
    }

    /// Adds a dialect under which the link leads to a file.
    pub fn add(&mut self, dialect: LinkDialect) {
        self.0 |= Self::bit(dialect);
    }

    /// Removes a dialect.
    pub fn remove(&mut self, dialect: LinkDialect) {
        self.0 &= !Self::bit(dialect);
    }

    fn bit(dialect: LinkDialect) -> u8 {
        LinkDialect::ALL.iter().position(|known| *known == dialect).map_or(0, |at| 1 << at)
    }

    /// Returns the number of the evidence in the catalog.
    pub fn code(self) -> u8 {
        self.0
    }

    /// Returns the evidence with a number, if there is one.
    pub fn from_code(code: i64) -> Option<Self> {
        let known = Self::DIALECTS | Self::COUNTED | Self::WIKILINK;
        u8::try_from(code).ok().filter(|code| code & !known == 0).map(Self)
    }
}

/// The number of links between files of a vault, and how many of them lead to a file under each dialect. Links in the books and
/// sites that the vault contains are left out, because their files say which dialect they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DialectCounts {
    /// The wikilinks and Markdown links.
    pub links: i64,
    /// Those that lead to a file by Obsidian's rules.
    pub obsidian: i64,
    /// The Markdown links that lead to a file by GitHub's rules.
    pub github: i64,
    /// The Markdown links that lead to a file by mdBook's rules.
    pub mdbook: i64,
    /// The Markdown links that lead to a file by the rules of a site.
    pub site: i64,
}

impl DialectCounts {
    /// Adds a link `times` times. A negative number removes it.
    pub fn add(&mut self, evidence: LinkEvidence, times: i64) {
        let has = |bit: u8| if evidence.0 & bit == 0 { 0 } else { times };
        self.links += has(LinkEvidence::COUNTED);
        self.obsidian += has(LinkEvidence::bit(LinkDialect::Obsidian) | LinkEvidence::WIKILINK);
        self.github += has(LinkEvidence::bit(LinkDialect::Github));
        self.mdbook += has(LinkEvidence::bit(LinkDialect::Mdbook));
        self.site += has(LinkEvidence::bit(LinkDialect::Site));
    }

    /// Adds two counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            links: self.links + other.links,
            obsidian: self.obsidian + other.obsidian,
            github: self.github + other.github,
            mdbook: self.mdbook + other.mdbook,
            site: self.site + other.site,
        }
    }

    /// Returns how many links lead to a file under a dialect.
    pub fn of(&self, dialect: LinkDialect) -> i64 {
        match dialect {
            LinkDialect::Obsidian => self.obsidian,
            LinkDialect::Github => self.github,
            LinkDialect::Mdbook => self.mdbook,
            LinkDialect::Site => self.site,
        }
    }

    /// Chooses the dialect under which most links lead to a file. If several are nearly equal, the simplest one of a
    /// published page is chosen in a repository, and Obsidian's elsewhere. In a repository, GitHub's is also chosen if
    /// at least half of the links lead to a file by it and no other path dialect finds as many as Obsidian's. The
    /// `settled` dialect stays until another one leads clearly.
    pub fn choose(&self, settled: Option<LinkDialect>, in_repository: bool) -> DialectChoice {
        let most = LinkDialect::ALL.into_iter().map(|dialect| self.of(dialect)).max().unwrap_or(0);
        let behind = |dialect: LinkDialect| most - self.of(dialect);
        let leads_by = |lead: i64, percent: i64| lead >= LEAST_LEAD && lead * 100 >= self.links * percent;
        let is_near = |dialect: LinkDialect| !leads_by(behind(dialect), MARGIN_PERCENT);
        // The simplest first. A site follows what mdBook follows, and a book is known by its files.
        let paths = [LinkDialect::Github, LinkDialect::Site, LinkDialect::Mdbook];
        let near_path = paths.into_iter().find(|dialect| is_near(*dialect));
        let is_assumed = is_near(LinkDialect::Obsidian) && near_path.is_some();
        let is_overtaken = |dialect: LinkDialect| leads_by(behind(dialect), CHANGE_PERCENT);
        // Files that moved without sidenote leave links that only a lookup by name finds.
        let is_published = in_repository && self.github * 2 >= self.links;
        let dialect = match (settled.filter(|settled| !is_overtaken(*settled)), near_path) {
            (Some(settled), _) => settled,
            (None, Some(near)) if in_repository || !is_near(LinkDialect::Obsidian) => near,
            (None, None) if is_published => LinkDialect::Github,
            (None, _) => LinkDialect::Obsidian,
        };
        DialectChoice { dialect, is_assumed }
    }
}
