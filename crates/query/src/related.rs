//! Finds related notes: similar in meaning, linked with the same notes, or naming a note without a link.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::parallel;
use sidenote_base::wording::Wording;
use sidenote_bm25::Extent;
use sidenote_catalog::{CatalogReader, FileId, FileKind, FileRow, Filter, Inactive, Kinds};
use sidenote_index::Snapshot;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_markdown::canvas;
use sidenote_markdown::decode::decode;
use sidenote_markdown::note::PieceKind;
use sidenote_markdown::span::Span;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::sync::IndexSync;
use sidenote_search::fuse::{Candidates, FusedHit, Fusion, NoteScores, Ranked, fuse, raise_embedded};
use sidenote_search::text_match::{Haystack, QueryTerm, QueryTermKind};
use sidenote_search::tie_order::best_first;
use sidenote_sets::file_set::FileSet;

use crate::Searches;

/// The number of notes of each ranking that are merged.
const DEPTH: usize = 100;

/// The number of links above which a note says little about how two of its neighbours are related.
const HUB: usize = 2_000;

/// How many notes are read at once for mentions: enough for all threads, and few more than a reply needs.
const READ_AT_ONCE: usize = 256;

/// The shortest name that is searched for, in characters.
const SHORTEST_NAME: usize = 2;

/// The largest number of common neighbours that a reply names.
const MOST_COMMON: usize = 5;

/// What relates two notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RelatedBy {
    /// Both meaning and links.
    #[default]
    Both,
    /// The meaning of their passages.
    Vector,
    /// Common neighbours in the link graph.
    Links,
}

impl RelatedBy {
    /// Parses the name of a kind.
    ///
    /// # Errors
    /// `Invalid` if no kind has this name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "both" => Ok(Self::Both),
            "vector" => Ok(Self::Vector),
            "links" => Ok(Self::Links),
            _ => Err(Error::invalid(format!("{name:?} makes no notes related"))
                .with_hint("use both, vector or links")),
        }
    }
}

/// A request for related notes.
#[derive(Debug, Clone, Default)]
pub struct RelatedRequest {
    /// The note: path, id, title, alias, file name or `[[wikilink]]`.
    pub note: String,
    /// What relates the notes.
    pub by: RelatedBy,
    /// The number of notes. Without it, that of search in the settings is used.
    pub limit: Option<usize>,
}

/// A related note.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelatedItem {
    /// Vault path.
    pub path: String,
    /// The note's id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The score, comparable only within one reply: the sum of reciprocal ranks.
    pub score: f32,
    /// The mean similarity of the note's passages and the nearest passage of this note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f32>,
    /// The common neighbours, those with the fewest links first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub common: Vec<String>,
    /// Whether the two notes are linked already.
    pub linked: bool,
}

/// The notes related to a note.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelatedReply {
    /// Vault path of the note.
    pub path: String,
    /// The related notes, best first.
    pub related: Vec<RelatedItem>,
    /// Notices about what the reply lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Wording>,
}

/// A mention of a note without a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MentionItem {
    /// Vault path.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// The name in the text.
    pub name: String,
    /// That line's text, trimmed.
    pub text: String,
}

/// The mentions of a note without a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MentionsReply {
    /// Vault path of the note.
    pub path: String,
    /// The searched names: title, file name and aliases.
    pub names: Vec<String>,
    /// The mentions, by path and line.
    pub mentions: Vec<MentionItem>,
    /// Whether there are more mentions.
    pub more: bool,
}

/// The notes linked with a note, each with its weight as a common neighbour.
type SharedNeighbours = HashMap<FileId, Vec<(FileId, f32)>>;

impl Searches<'_> {
    /// Finds the notes related to a note: by the meaning of their passages, and by common neighbours, of which one with
    /// few links weighs more (Adamic & Adar 2003, *Friends and neighbors on the web*).
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    #[tracing::instrument(skip_all)]
    pub fn related(&self, request: &RelatedRequest) -> Result<RelatedReply> {
        IndexSync::of(self.core).refresh()?;
        let row = Lookup::of(self.core).find(&request.note)?;
        let snapshot = self.core.index.snapshot()?;
        let mut notes = Vec::new();
        let hidden = Inactive { archived: true, forgotten: true };
        let catalog = self.core.index.catalog();
        let others: FileSet = catalog
            .select_ids(&Filter { hidden, kinds: Kinds::Searched, ..Filter::default() })?
            .into_iter()
            .map(|(id, _)| id)
            .filter(|&id| id != row.id)
            .collect();
        let near = if request.by == RelatedBy::Links {
            Vec::new()
        } else {
            let near = near(&catalog, &snapshot, &row, &others)?;
            if near.is_none() {
                let so = if request.by == RelatedBy::Both {
                    "only links are used"
                } else {
                    "no note is found by meaning"
                };
                notes.push(self.missing_vectors_notice(&format!("{} has no vector, so {so}", row.path)));
            }
            near.unwrap_or_default()
        };
        let shared =
            if request.by == RelatedBy::Vector { SharedNeighbours::new() } else { shared(&catalog, row.id)? };
        let linked: HashSet<FileId> = catalog.links().neighbours(row.id)?.into_iter().collect();
        let mut joined: Vec<Ranked> = shared
            .iter()
            .filter(|(file, _)| others.contains(**file))
            .map(|(&file, joints)| Ranked { file, score: sum(joints) })
            .collect();
        best_first(&catalog, &mut joined, |hit| (hit.score, hit.file))?;
        joined.truncate(DEPTH);
        let known = if near.is_empty() { HashMap::new() } else { lacking(&catalog, &snapshot, &joined)? };
        let candidates =
            Candidates { embedded: snapshot.embedded_share(), ..Candidates::listed(&joined, &near, &known) };
        let mut fused = fuse(&candidates, Fusion::Rrf);
        raise_embedded(&mut fused, &candidates, Fusion::Rrf);
        best_first(&catalog, &mut fused, |hit| (hit.score, hit.file))?;
        fused.truncate(request.limit.unwrap_or(self.core.config.search.limit));
        let related = fused
            .iter()
            .filter_map(|hit| item(&catalog, hit, &shared, &linked).transpose())
            .collect::<Result<_>>()?;
        Ok(RelatedReply { path: row.path.as_str().to_owned(), related, notes })
    }

    /// Lists mentions of a note by title, file name or alias that are not links.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    #[tracing::instrument(skip_all)]
    pub fn unlinked_mentions(&self, note: &str, limit: usize) -> Result<MentionsReply> {
        IndexSync::of(self.core).refresh()?;
        let row = Lookup::of(self.core).find(note)?;
        let names = self.names_of(&row)?;
        let terms: Vec<QueryTerm> =
            names.iter().map(|name| QueryTerm::new(QueryTermKind::Phrase, name, false)).collect();
        let snapshot = self.core.index.snapshot()?;
        let catalog = self.core.index.catalog();
        let mut candidates: HashSet<FileId> = HashSet::new();
        for name in &names {
            match snapshot.bm25.may_contain(name, Extent::WholeWords)? {
                Some(files) => candidates.extend(files.iter()),
                None => candidates.extend(catalog.newest_first(None)?),
            }
        }
        candidates.remove(&row.id);
        let mut order = catalog.paths().sorted_by_path(&candidates.iter().copied().collect::<Vec<_>>())?;
        order.retain(|file| candidates.contains(file));
        drop(catalog);
        let mut mentions = Vec::new();
        // Notes are read in the order of the reply, and only until it is full.
        for part in order.chunks(READ_AT_ONCE) {
            let mut rows = self.core.index.catalog().rows(part)?;
            // Nothing can be linked in an attachment.
            rows.retain(|row| !row.excluded && row.kind != FileKind::Attachment);
            for found in parallel::map(&rows, 4, || (), |(), other| self.mentions_in(other, &terms)) {
                mentions.extend(found?);
            }
            if mentions.len() > limit {
                break;
            }
        }
        let more = mentions.len() > limit;
        mentions.truncate(limit);
        Ok(MentionsReply { path: row.path.as_str().to_owned(), names, mentions, more })
    }

    /// Returns the names of a note, each once.
    fn names_of(&self, row: &FileRow) -> Result<Vec<String>> {
        let mut names = vec![row.title.clone(), row.path.stem().to_owned()];
        if row.kind == FileKind::Note {
            let reading = ParsedNote::new(&row.path, &self.core.read_bytes(&row.path)?);
            names.extend(reading.note.frontmatter.into_iter().flat_map(|front| front.aliases));
        }
        let mut seen = HashSet::new();
        names.retain(|name| {
            name.trim().chars().count() >= SHORTEST_NAME && seen.insert(name.trim().to_lowercase())
        });
        Ok(names)
    }

    fn mentions_in(&self, row: &FileRow, terms: &[QueryTerm]) -> Result<Vec<MentionItem>> {
        let bytes = match self.core.read_bytes(&row.path) {
            Ok(bytes) => bytes,
            // A note that was removed since it was indexed has no mentions.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                tracing::warn!("{error}; it is left out");
                return Ok(Vec::new());
            }
        };
        // Few candidates have a name in their words, and fewer outside of links.
        if !row.path.is_canvas() {
            let text = decode(&bytes).text;
            let text = Haystack::new(&text);
            // A phrase is not a pattern and takes no steps.
            if !terms.iter().any(|term| term.is_in(&text).unwrap_or_default()) {
                return Ok(Vec::new());
            }
        }
        let reading = ParsedNote::new(&row.path, &bytes);
        let plain = unlinked(&reading);
        let mut found: Vec<MentionItem> = Vec::new();
        for term in terms {
            // A phrase is not a pattern and takes no steps.
            for line in term.lines_in(&plain).unwrap_or_default() {
                let (line, text) = if row.path.is_canvas() {
                    place_in_canvas(&reading.text, &plain, line, term)
                } else {
                    (line + 1, reading.text.lines().nth(line).unwrap_or("").trim().to_owned())
                };
                if found.iter().all(|item| (item.line, &item.text) != (line, &text)) {
                    found.push(MentionItem {
                        path: row.path.as_str().to_owned(),
                        line,
                        name: term.text.clone(),
                        text,
                    });
                }
            }
        }
        found.sort_by_key(|item| item.line);
        Ok(found)
    }
}

/// Returns the line of the JSON, counted from 1, and the text of the card for a mention in a line of a canvas's running
/// text. The running text has more lines than the JSON, because escaped line ends are lines in it.
fn place_in_canvas(json: &str, plain: &str, line: usize, term: &QueryTerm) -> (usize, String) {
    let mut offset: usize = plain.split_inclusive('\n').take(line).map(str::len).sum();
    let mut label = "";
    for part in plain.lines().nth(line).unwrap_or("").split_inclusive('\0') {
        if term.lines_in(part).is_ok_and(|lines| !lines.is_empty()) {
            label = part.trim_matches(|c: char| c == '\0' || c.is_whitespace());
            break;
        }
        offset += part.len();
    }
    let before = json.get(..offset).unwrap_or("");
    (1 + before.matches('\n').count(), canvas::shown_at(json, offset).unwrap_or_else(|| label.to_owned()))
}

/// Gives a note's running text at its own places, with everything else blanked: links, code, comments, properties.
fn unlinked(reading: &ParsedNote) -> String {
    let text = reading.prose();
    let mut plain: Vec<u8> =
        text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { byte } else { 0 }).collect();
    let is_prose = |kind| matches!(kind, PieceKind::Prose | PieceKind::Heading);
    for piece in reading.note.pieces.iter().filter(|piece| is_prose(piece.kind)) {
        let (from, to) = (piece.span.start, piece.span.end);
        if let (Some(here), Some(there)) = (plain.get_mut(from..to), text.as_bytes().get(from..to)) {
            here.copy_from_slice(there);
        }
    }
    let tags = reading.note.tags.iter().map(|tag| tag.span);
    for Span { start, end } in reading.note.links.iter().map(|link| link.span).chain(tags) {
        if let Some(link) = plain.get_mut(start..end) {
            link.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = 0);
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Ranks other notes by the mean similarity of their nearest passage and a note's passages. Returns no notes if it
/// has no vectors.
fn near(
    catalog: &CatalogReader,
    snapshot: &Snapshot,
    row: &FileRow,
    others: &FileSet,
) -> Result<Option<Vec<Ranked>>> {
    let own = catalog.passages().of(row.id)?;
    let Some(mean) = snapshot.vectors.mean_direction(&own)? else { return Ok(None) };
    let mut list: Vec<Ranked> = Vec::new();
    let mut seen = HashSet::new();
    for passage in snapshot.vectors.search(&mean, DEPTH * 2 + own.len(), None)? {
        for (_, file, _) in catalog.passages().files_containing(&[passage.key])? {
            if others.contains(file) && seen.insert(file) {
                list.push(Ranked { file, score: passage.similarity });
            }
        }
    }
    best_first(catalog, &mut list, |hit| (hit.score, hit.file))?;
    list.truncate(DEPTH);
    Ok(Some(list))
}

/// Returns which of these notes have no vectors, so that they are not ranked lower because of that.
fn lacking(
    catalog: &CatalogReader,
    snapshot: &Snapshot,
    list: &[Ranked],
) -> Result<HashMap<FileId, NoteScores>> {
    let mut known = HashMap::new();
    for hit in list.iter().filter(|_| snapshot.pending > 0) {
        let keys = catalog.passages().of(hit.file)?;
        let missing = keys.iter().filter(|&&key| !snapshot.vectors.contains(key)).count();
        let missing = missing as f32 / keys.len().max(1) as f32;
        known.insert(hit.file, NoteScores { missing, ..NoteScores::default() });
    }
    Ok(known)
}

/// Sums the weights of common neighbours, the largest first, so that the order of files makes no difference to
/// rounding.
fn sum(joints: &[(FileId, f32)]) -> f32 {
    let mut weights: Vec<f32> = joints.iter().map(|(_, weight)| *weight).collect();
    weights.sort_by(|one, other| other.total_cmp(one));
    weights.into_iter().sum()
}

/// Finds the notes two links away, with the common neighbours.
fn shared(catalog: &CatalogReader, id: FileId) -> Result<SharedNeighbours> {
    let mut found = SharedNeighbours::new();
    for between in catalog.links().neighbours(id)? {
        let around = catalog.links().neighbours(between)?;
        if around.len() > HUB {
            continue;
        }
        let weight = 1.0 / (around.len().max(2) as f32).ln();
        for other in around.into_iter().filter(|&other| other != id) {
            found.entry(other).or_default().push((between, weight));
        }
    }
    Ok(found)
}

fn item(
    catalog: &CatalogReader,
    hit: &FusedHit,
    shared: &SharedNeighbours,
    linked: &HashSet<FileId>,
) -> Result<Option<RelatedItem>> {
    let Some(row) = catalog.rows(&[hit.file])?.pop() else { return Ok(None) };
    let mut joints = shared.get(&hit.file).cloned().unwrap_or_default();
    best_first(catalog, &mut joints, |&(file, weight)| (weight, file))?;
    let between: Vec<FileId> = joints.into_iter().take(MOST_COMMON).map(|(file, _)| file).collect();
    let common = catalog.rows(&between)?.into_iter().map(|row| row.path.as_str().to_owned()).collect();
    Ok(Some(RelatedItem {
        path: row.path.as_str().to_owned(),
        id: row.note_id,
        title: row.title,
        score: hit.score,
        cosine: hit.components.cosine,
        common,
        linked: linked.contains(&hit.file),
    }))
}
