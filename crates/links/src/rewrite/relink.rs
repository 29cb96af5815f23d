//! New texts for single links that have to lead to another file, as a repair needs. The files have moved already.

use std::collections::{HashMap, HashSet};

use sidenote_markdown::edit::{Edit, Remark, apply};
use sidenote_markdown::link::Link;
use sidenote_markdown::note::Note;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::span::Span;

use crate::resolve::FileNames;
use crate::rewrite::{
    Aim, EncodingLevel, LinkRewrite, LinkingFile, MAX_ATTEMPTS, Moves, RenameContext, RewriteOptions, aim,
    parse, remark,
};

/// What a link leads to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkedPlace {
    /// A file of the vault.
    File(NotePath),
    /// A folder of the vault, which links by path can lead to.
    Folder(NotePath),
    /// A file out of the vault, from its root, with leading `..`.
    Outside(String),
}

impl std::fmt::Display for LinkedPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) | Self::Folder(path) => path.fmt(f),
            Self::Outside(path) => path.fmt(f),
        }
    }
}

/// A link that has to lead to another place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relink {
    /// The span of the link in the text.
    pub span: Span,
    /// The path of the linking file when the link led to the right place; `None` if it is not known.
    pub source_then: Option<NotePath>,
    /// The right place then.
    pub target_then: LinkedPlace,
    /// The right place now.
    pub target: LinkedPlace,
}

/// The edits for some links of one file.
struct Relinker<'a> {
    names: &'a FileNames,
    options: RewriteOptions,
    path: &'a NotePath,
    text: &'a str,
    note: &'a Note,
}

/// Plans the edits by which links of the file at `path` lead to their new targets. Each keeps its form, as in a move
/// (docs/spec/obsidian.md 4). `names` are the present files.
///
/// A link that is not among `relinks` keeps every byte. One that cannot be written is reported and stays.
pub fn relink(
    names: &FileNames,
    options: RewriteOptions,
    (path, text, note): (&NotePath, &str, &Note),
    relinks: &[Relink],
) -> LinkRewrite {
    let relinker = Relinker { names, options, path, text, note };
    let mut last = LinkRewrite::default();
    for level in [EncodingLevel::Minimal, EncodingLevel::Strict] {
        last = relinker.plan(relinks.iter(), level);
        if relinker.reads_back(relinks.iter(), &last.edits) {
            return last;
        }
    }
    // Some of the links cannot be written together with the others.
    let (mut kept, mut edits): (Vec<&Relink>, Vec<Edit>) = (Vec::new(), Vec::new());
    let mut remarks = std::mem::take(&mut last.remarks);
    for (at, one) in relinks.iter().enumerate() {
        let tried: Vec<&Relink> = kept.iter().copied().chain([one]).collect();
        let plan = relinker.plan(tried.iter().copied(), EncodingLevel::Strict);
        if at < MAX_ATTEMPTS && relinker.reads_back(tried.iter().copied(), &plan.edits) {
            (kept, edits) = (tried, plan.edits);
        } else {
            let message = "the link could not be written in a form that is read back correctly";
            remarks.push(relinker.remark("reparse-mismatch", one.span, message));
        }
    }
    LinkRewrite { links: kept.len(), edits, remarks, work: last.work }
}

impl Relinker<'_> {
    /// Plans the edits of some links. Each is written as if its file and its target alone had moved.
    fn plan<'r>(&self, relinks: impl Iterator<Item = &'r Relink>, level: EncodingLevel) -> LinkRewrite {
        let mut planned = LinkRewrite::default();
        let links: HashMap<usize, &Link> =
            self.note.links.iter().map(|link| (link.span.start, link)).collect();
        let mut files: HashMap<&NotePath, LinkingFile<'_>> = HashMap::new();
        for one in relinks {
            let found = links.get(&one.span.start).filter(|link| link.span == one.span);
            let Some(link) = found.copied() else { continue };
            let mut before = self.names.empty_table();
            let mut moves = Moves::default();
            match (&one.target_then, &one.target) {
                (LinkedPlace::File(then), LinkedPlace::File(now)) => {
                    before.insert(then);
                    before.insert_folders_above(then);
                    moves.insert(then.clone(), now.clone());
                }
                (LinkedPlace::Folder(then), LinkedPlace::Folder(now)) => {
                    before.insert_folder(then.as_str());
                    moves.insert_folder(then, now);
                }
                // A path out of the vault stays, and only its text can change.
                _ => {}
            }
            let context = RenameContext {
                before: &before,
                after: self.names,
                moves: &moves,
                destination: Some(self.path),
                options: self.options,
            };
            let path = one.source_then.as_ref().unwrap_or(self.path);
            let file = files.entry(path).or_insert_with(|| LinkingFile::new(path, self.text, self.note));
            context.plan_link(file, link, level, &mut planned);
            planned.work += 1;
        }
        for remark in &mut planned.remarks {
            remark.path = self.path.clone();
        }
        planned.edits.sort_by_key(|edit| edit.span);
        planned
    }

    /// Parses the edited text again. It must have the same links in the same order; those that were to change must lead to
    /// their targets, and the others must be as they were.
    fn reads_back<'r>(&self, relinks: impl Iterator<Item = &'r Relink>, edits: &[Edit]) -> bool {
        let Ok(changed) = apply(self.text.as_bytes(), edits) else { return false };
        let Ok(changed) = String::from_utf8(changed) else { return false };
        let reparsed = parse(self.path, &changed);
        if reparsed.links.len() != self.note.links.len() {
            return false;
        }
        let wanted: HashMap<usize, &Relink> = relinks.map(|one| (one.span.start, one)).collect();
        let edited: HashSet<usize> = edits.iter().map(|edit| edit.span.start).collect();
        self.note.links.iter().zip(&reparsed.links).all(|(old, new)| {
            let is_same = old.form == new.form && old.subpath == new.subpath && old.embed == new.embed;
            let is_edited = edited.contains(&old.path_span.start);
            let one = wanted.get(&old.span.start).filter(|one| one.span == old.span && is_edited);
            is_same
                && match one {
                    Some(one) => {
                        let leads = aim(self.names, &new.path, new.form.syntax(), self.path);
                        match &one.target {
                            LinkedPlace::File(target) => leads == Some(Aim::File(target)),
                            LinkedPlace::Folder(target) => {
                                leads == Some(Aim::Folder(target.as_str().to_owned()))
                            }
                            LinkedPlace::Outside(target) => leads == Some(Aim::Elsewhere(target.clone())),
                        }
                    }
                    None => old.path == new.path,
                }
        })
    }

    fn remark(&self, code: &str, span: Span, message: &str) -> Remark {
        let file = LinkingFile::new(self.path, self.text, self.note);
        remark(code, self.path, self.text, &file.lines, span, message)
    }
}
