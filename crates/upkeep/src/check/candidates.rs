//! The notes that can have a problem of some codes, by what the index knows of names and links. No other note is parsed then.

use std::collections::{HashMap, HashSet};

use sidenote_base::error::{Error, Result};
use sidenote_catalog::{CatalogReader, FileId};
use sidenote_links::dialect::{DialectChoice, PathSpelling};
use sidenote_links::resolve::{FileNames, LinkTarget, name_keys};
use sidenote_links::rewrite::fits_in_wikilink;
use sidenote_markdown::link::LinkSyntax;
use sidenote_markdown::path::{NotePath, key};
use sidenote_vault::Vault;
use sidenote_vault::link_dialects::{DialectRules, is_marker};

use crate::check::across_notes::name_clashes;
use crate::check::codes::{CODES, ProblemCode, Scope};

/// The notes that can have a problem.
#[derive(Default)]
pub(super) struct Candidates {
    /// The notes that are parsed.
    pub(super) parsed: HashSet<NotePath>,
    /// Whether the text of each other note is read, which alone tells of marks of git, comments and similar notes.
    pub(super) reads_others: bool,
    /// The notes that no other note links to and that link to none. The links of the notes that are read do not tell this.
    pub(super) orphans: HashSet<NotePath>,
}

impl Candidates {
    /// Lists the notes that can have a problem of the wanted codes. `None` if the index was made under other settings, so that
    /// all are parsed. The index must have every file as it is; `paths` are those of all files, `names` their names, and `known`
    /// is the dialect that the links chose.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the catalog cannot be read.
    pub(super) fn of(
        catalog: &CatalogReader,
        vault: &Vault,
        wants: impl Fn(&str) -> bool,
        (paths, names): (&[NotePath], &FileNames),
        known: Option<DialectChoice>,
    ) -> Result<Option<Self>> {
        if !is_made_by_settings(catalog, vault, paths, known)? {
            return Ok(None);
        }
        let mut found = Self::default();
        let mut files: Vec<FileId> = Vec::new();
        // The notes with a problem that has no place in the text, so that the text only says whether a comment turns it off.
        let mut unplaced: Vec<NotePath> = Vec::new();
        let mut follows_links = false;
        for ProblemCode { code, scope, .. } in CODES.iter().filter(|known| wants(known.code)) {
            match *code {
                "broken-link" => files.extend(catalog.links().sources_of_unresolved()?),
                "broken-subpath" => files.extend(catalog.links().sources_of_part_links()?),
                "ambiguous-link" | "path-not-followed" | "link-out-of-site" | "wikilink-as-text" => {
                    follows_links = true;
                }
                "duplicate-id" => files.extend(catalog.names().with_shared_ids()?),
                "orphan" => {
                    found.orphans.extend(catalog.links().orphans()?.into_iter().map(|row| row.path));
                    unplaced.extend(found.orphans.iter().cloned());
                }
                // A comment in the note can turn the code off.
                "name-clash" => {
                    let named = name_clashes(paths);
                    unplaced.extend(named.iter().filter_map(|problem| NotePath::from_disk(&problem.path)));
                }
                "name-not-linkable" => {
                    let named = paths.iter().filter(|path| !fits_in_wikilink(path.as_str()));
                    found.parsed.extend(named.cloned());
                }
                "conflict-copy" | "conflict-markers" | "invalid-ignore" | "near-duplicate" | "unreadable" => {
                    found.reads_others = true;
                }
                // It is found in the texts themselves.
                "okf" => {}
                _ if *scope == Scope::Vault => {}
                _ => files.extend(catalog.paths().with_problems()?),
            }
        }
        if !found.reads_others {
            found.parsed.extend(unplaced);
        }
        if follows_links {
            files.extend(sources_of_unclear_links(catalog, paths, names)?);
        }
        files.sort_unstable();
        files.dedup();
        found.parsed.extend(catalog.rows(&files)?.into_iter().map(|row| row.path));
        Ok(Some(found))
    }
}

/// Lists the files with a link that could mean several files, or that the pages of its folder do not follow.
fn sources_of_unclear_links(
    catalog: &CatalogReader,
    paths: &[NotePath],
    names: &FileNames,
) -> Result<Vec<FileId>> {
    let mut count_of: HashMap<String, usize> = HashMap::new();
    for path in paths {
        *count_of.entry(key(path.name())).or_default() += 1;
    }
    let is_shared = |text: &str| {
        let counts = name_keys(text).into_iter().filter_map(|name| count_of.get(&name));
        counts.sum::<usize>() > 1
    };
    let dialects = names.dialects();
    let has_pages = dialects.units().iter().any(|unit| unit.dialect.follows_paths());
    let sources: HashMap<FileId, NotePath> =
        catalog.paths().all()?.into_iter().map(|(path, file)| (file, path)).collect();
    let is_unclear = |path: &NotePath, text: &str, syntax: LinkSyntax| {
        let unit = dialects.unit_of(path);
        let has_pages = unit.dialect.follows_paths();
        if has_pages && syntax == LinkSyntax::Lookup {
            return !unit.is_assumed();
        }
        match names.target(text, syntax, path) {
            Some(LinkTarget::File(found, spelling)) => {
                found.unstable || spelling == Some(PathSpelling::ByOtherRules)
            }
            _ => has_pages && syntax == LinkSyntax::Markdown && unit.leaves_pages(text, path),
        }
    };
    let mut unclear = HashSet::new();
    catalog.links().each_with_text(
        |text, syntax| has_pages && syntax != LinkSyntax::Exact || is_shared(text),
        |source, text, syntax| {
            let is_new = !unclear.contains(&source);
            if is_new && sources.get(&source).is_some_and(|path| is_unclear(path, text, syntax)) {
                unclear.insert(source);
            }
        },
    )?;
    Ok(unclear.into_iter().collect())
}

/// Returns whether the index has all notes, excludes those that the settings exclude now, and follows links by the dialects
/// that they give now.
fn is_made_by_settings(
    catalog: &CatalogReader,
    vault: &Vault,
    paths: &[NotePath],
    known: Option<DialectChoice>,
) -> Result<bool> {
    let settings = vault.settings();
    let is_same = |(path, excluded, was_read): &(NotePath, bool, bool)| {
        *was_read && settings.is_excluded(path) == *excluded
    };
    let is_too_large = !catalog.paths().larger_than(vault.max_file_size())?.is_empty();
    if is_too_large || !catalog.paths().read_states()?.iter().all(is_same) {
        return Ok(false);
    }
    let markers: Vec<NotePath> = paths.iter().filter(|path| is_marker(path)).cloned().collect();
    let unknown = || Error::internal("the links of the index chose no dialect");
    let now = DialectRules::of(vault).decide(&markers, || known.ok_or_else(unknown));
    let stored = catalog.links().dialects()?;
    Ok(now.is_ok_and(|now| now.has_same_rules(&stored)))
}
