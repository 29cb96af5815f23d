//! Plans moves and renames of files, folders, headings and blocks, with every link to them.

use std::collections::{BTreeSet, HashSet};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::parallel;
use sidenote_links::resolve::name_keys;
use sidenote_links::rewrite::{Moves, RenameContext, RewriteOptions};
use sidenote_markdown::edit::{
    ChangeSet, Content, Edit, FileChange, FileLocation, FolderMove, Remark, apply,
};
use sidenote_markdown::frontmatter::edit;
use sidenote_markdown::frontmatter::edit::Refusal;
use sidenote_markdown::name_rules::NameRules;
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::Core;
use sidenote_open_vault::catalog_overlay::{GROUP, NamedFiles, View};
use sidenote_open_vault::source::Source;
use sidenote_vault::scan;
use sidenote_vault::symlinks::as_spelled_on_disk;

use crate::Planner;
use crate::follow_headings::{SettledNotes, edits_headings, follow_headings};

/// A file or folder to move or rename.
#[derive(Debug, Clone, Default)]
pub struct MoveRequest {
    /// The note by any of its names, or the path of another file or of a folder.
    pub from: String,
    /// The new path from the root of the vault. An existing folder, or a path with a slash at its end, keeps the file
    /// name.
    pub to: String,
    /// Whether a name without a slash renames the file in its folder.
    pub in_place: bool,
    /// Whether the new path is taken as it is: it means no existing folder, and no extension is added.
    pub is_exact: bool,
    /// Whether names are allowed that only Windows forbids.
    pub relaxed: bool,
    /// Whether the move is made even if links to the new name cannot be written.
    pub force: bool,
    /// Whether links stay as they are.
    pub no_update_links: bool,
    /// See [`RewriteOptions::keep_lookup_links`].
    pub keep_lookup_links: bool,
    /// See [`RewriteOptions::stabilise`].
    pub stabilise: bool,
    /// See [`RewriteOptions::partial_properties`].
    pub partial_properties: bool,
    /// Whether the old name of a note is added to its `aliases`.
    pub keep_alias: bool,
}

impl Planner<'_> {
    /// Plans the move of a file or folder, with the edits of links to it.
    ///
    /// # Errors
    /// `NotFound` if there is no such file; `Exists` if another file has the new path; `Invalid` for an invalid name.
    pub(super) fn plan_move(&self, view: &View<'_>, request: &MoveRequest) -> Result<ChangeSet> {
        let is_rename = request.in_place && !request.to.contains('/');
        let mut plan = ChangeSet::new(if is_rename { "rename" } else { "move" });
        let (moves, moved) = match self.folder_named(&request.from) {
            Some(folder) => {
                let to = self.new_place(&folder, request, "")?;
                if to == folder {
                    return Ok(plan);
                }
                if to.as_str().starts_with(&format!("{folder}/")) {
                    return Err(Error::invalid(format!("{folder} cannot move into itself")));
                }
                self.refuse_taken(&to, Some(&folder))?;
                let mut moves = Moves::default();
                let inside = view.below(&folder)?;
                for path in &inside {
                    let rest = path.as_str().strip_prefix(folder.as_str()).unwrap_or_default();
                    // What is there keeps its name, also one that nobody could type.
                    let place = format!("{to}{rest}");
                    let place = NotePath::from_disk(&place)
                        .ok_or_else(|| Error::invalid(format!("{place} is too deep for a path")))?;
                    moves.insert(path.clone(), place);
                }
                moves.insert_folder(&folder, &to);
                plan.folders.push(FolderMove { from: folder, to });
                (moves, inside)
            }
            None => {
                let from = self.file_named(view, &request.from)?;
                let to = self.new_place(&from, request, from.extension())?;
                if to == from {
                    return Ok(plan);
                }
                self.refuse_taken(&to, Some(&from))?;
                plan.remarks.extend(same_name(self.core, &from, &to)?);
                let mut moves = Moves::default();
                moves.insert(from.clone(), to.clone());
                let places = (Some(FileLocation::Vault(from.clone())), Some(FileLocation::Vault(to)));
                plan.files.push(FileChange {
                    from: places.0,
                    to: places.1,
                    before: None,
                    content: Content::Keep,
                });
                (moves, vec![from])
            }
        };
        if !request.no_update_links {
            let options = RewriteOptions {
                keep_lookup_links: request.keep_lookup_links,
                stabilise: request.stabilise,
                partial_properties: request.partial_properties,
                ..self.core.rewrite_options()
            };
            follow(view, &moves, &moved, &[], options, &mut plan)?;
        }
        if request.keep_alias {
            keep_name(view, &moves, &mut plan)?;
        }
        self.mentions(&moves, &mut plan)?;
        Ok(plan)
    }

    /// Returns remarks about files that name a moved file and are never edited: bases and bookmarks
    /// (docs/spec/obsidian.md 2.10, 4.6).
    fn mentions(&self, moves: &Moves, plan: &mut ChangeSet) -> Result<()> {
        let remark = |code: &str, path: &NotePath, (line, column): (usize, usize), message: String| Remark {
            code: code.to_owned(),
            path: path.clone(),
            line,
            column,
            message,
        };
        let bases = self.core.index.catalog().paths().with_suffix(".base")?;
        let is_cancellable = moves.iter().count() >= GROUP;
        for base in bases {
            let text = match self.core.read_bytes(&base) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(error) => {
                    tracing::warn!("{error}, so it may name the moved file");
                    continue;
                }
            };
            if is_cancellable {
                self.core.check_cancelled()?;
            }
            for (from, at) in moves.iter().filter_map(|(from, _)| Some((from, text.find(from.stem())?))) {
                let before = text.get(..at).unwrap_or("");
                let line = 1 + before.matches('\n').count();
                let place = (line, 1 + at - before.rfind('\n').map_or(0, |end| end + 1));
                let message =
                    format!("the base contains the name {:?}; check whether it means {from}", from.stem());
                plan.remarks.push(remark("base-mention", &base, place, message));
            }
        }
        plan.remarks.extend(self.unread(&moves.iter().map(|(from, _)| from).collect::<Vec<_>>())?);
        let bookmarks = self.core.vault.bookmarks();
        for (from, to) in moves.iter().filter(|(from, _)| bookmarks.contains(from.as_str())) {
            let message = format!("a bookmark in Obsidian names {from}; change it there to {to}");
            plan.remarks.push(remark("bookmark", from, (1, 1), message));
        }
        Ok(())
    }

    /// Returns remarks about notes that are too large to be read and contain the name of a moved file, so may link to
    /// it.
    pub(crate) fn unread(&self, names: &[&NotePath]) -> Result<Vec<Remark>> {
        /// The largest number of names that files are searched for.
        const MOST: usize = 64;
        let limit = self.core.vault.max_file_size();
        let large = self.core.index.catalog().paths().larger_than(limit)?;
        let mut remarks = Vec::new();
        for path in large.into_iter().filter(|path| !names.contains(&path)) {
            let stems: Vec<&str> = names.iter().map(|name| name.stem()).collect();
            let what = if names.len() > MOST {
                "so whether it links to what changes is not known".to_owned()
            } else {
                match self.core.vault.holds_any(&path, &stems) {
                    Ok(true) => "so a link in it that names what changes was left as it is".to_owned(),
                    Ok(false) => continue,
                    Err(error) => format!("so whether it links to what changes is not known: {error}"),
                }
            };
            let message = format!("it has more than {limit} bytes (vault.max_file_bytes), {what}");
            let code = "too-large".to_owned();
            remarks.push(Remark { code, path, line: 1, column: 1, message });
        }
        Ok(remarks)
    }

    /// Finds a folder by its path.
    fn folder_named(&self, name: &str) -> Option<NotePath> {
        let path = as_spelled_on_disk(&self.core.vault, &NotePath::parse(name.trim_end_matches('/')).ok()?);
        self.core.vault.has_folder(path.as_str()).then_some(path)
    }

    /// Finds a file: a note by any of its names, any other file by its path.
    pub(super) fn file_named(&self, view: &View<'_>, name: &str) -> Result<NotePath> {
        if let Ok(path) = NotePath::parse(name) {
            for path in [as_spelled_on_disk(&self.core.vault, &path), path] {
                if view.holds(&path)? {
                    return Ok(path);
                }
            }
        }
        view.find(name)
    }

    fn new_place(&self, from: &NotePath, request: &MoveRequest, extension: &str) -> Result<NotePath> {
        if request.is_exact {
            return self.core.vault.moved_path(from, &request.to, NameRules::default());
        }
        // White space around a path is ignored, because no new name begins or ends with it.
        let is_there = self.folder_named(&request.to).is_some();
        let to = if is_there { request.to.as_str() } else { request.to.trim() };
        let wanted = to.trim_end_matches('/');
        let stays = request.in_place && !to.contains('/');
        let is_into_folder = match self.folder_named(wanted) {
            // A folder that is to change its case is found by both names on some file systems.
            Some(folder) => folder != *from && !scan::is_other_spelling(&self.core.vault, &folder, from)?,
            None => false,
        };
        let into = !stays && (to.ends_with('/') || is_into_folder);
        let mut text = if stays && !from.folder().is_empty() {
            format!("{}/{wanted}", from.folder())
        } else if into && wanted.is_empty() {
            from.name().to_owned()
        } else if into {
            format!("{wanted}/{}", from.name())
        } else {
            wanted.to_owned()
        };
        let given = NotePath::parse(&text)?;
        let is_named = if from.is_note() { given.is_note() } else { !given.extension().is_empty() };
        if !extension.is_empty() && !is_named {
            text = format!("{text}.{extension}");
        }
        let rules = NameRules { relaxed: request.relaxed, unlinkable: request.force };
        self.core.vault.moved_path(from, &text, rules)
    }
}

/// Reports the other files that have the new name of a file.
fn same_name(core: &Core, from: &NotePath, to: &NotePath) -> Result<Option<Remark>> {
    if key(from.name()) == key(to.name()) {
        return Ok(None);
    }
    let named = core.index.catalog().paths().named(&[key(to.name())])?;
    let others: Vec<String> =
        named.into_iter().filter(|(path, _)| path != from).map(|(path, _)| path.to_string()).collect();
    let Some((first, more)) = others.split_first() else { return Ok(None) };
    let who = match more.len() {
        0 => format!("{first} has"),
        1 => format!("{first} and 1 other file have"),
        count => format!("{first} and {count} other files have"),
    };
    let message = format!("{who} the same name, so links to either file may need a folder");
    Ok(Some(Remark { code: "same-name".to_owned(), path: to.clone(), line: 1, column: 1, message }))
}

/// Adds the old name of each renamed note to its `aliases` (docs/spec/obsidian.md 4.4).
fn keep_name(view: &View<'_>, moves: &Moves, plan: &mut ChangeSet) -> Result<()> {
    let renamed = moves.iter().filter(|(from, to)| from.is_note() && from.stem() != to.stem());
    for (from, _) in renamed {
        let source = view.source(from)?;
        let front = source.note.frontmatter.as_ref();
        if front.is_some_and(|front| front.aliases.iter().any(|alias| key(alias) == key(from.stem()))) {
            continue;
        }
        let place = Some(FileLocation::Vault(from.clone()));
        let Some(change) = plan.files.iter_mut().find(|change| change.from == place) else { continue };
        if let Some(refusal) = source.refusal() {
            plan.remarks.push(refusal);
            continue;
        }
        let planned = match &change.content {
            Content::Edits(edits) => edits.clone(),
            _ => Vec::new(),
        };
        let added = edit::add(&source.text, "aliases", &[from.stem().into()]).and_then(|edits| {
            let all: Vec<Edit> = planned.into_iter().chain(edits.iter().cloned()).collect();
            let at = edits.first().map_or(0, |edit| edit.span.start);
            let together = apply(source.text.as_bytes(), &all).map(|_| edits);
            together.map_err(|_| Refusal::new("yaml-style", at, "`aliases` holds a link that changes too"))
        });
        match added {
            Ok(edits) => {
                change.before = Some(source.hash);
                match &mut change.content {
                    Content::Edits(earlier) => earlier.extend(edits),
                    content => *content = Content::Edits(edits),
                }
            }
            Err(refusal) => plan.remarks.push(refusal.remark(from.clone(), &source.text)),
        }
    }
    Ok(())
}

/// Adds the edits of links to a plan that moves or creates files.
pub(crate) fn follow(
    view: &View<'_>,
    moves: &Moves,
    moved: &[NotePath],
    added: &[NotePath],
    options: RewriteOptions,
    plan: &mut ChangeSet,
) -> Result<()> {
    let coming = || moves.iter().map(|(_, to)| to).chain(added);
    // Links become stable only in the notes that a plan by names would read.
    let is_bulk = !options.stabilise && view.moves_much(moved.len())?;
    let (sources, files) = if is_bulk {
        (Vec::new(), view.all_names()?)
    } else {
        touched_by(view, moves, moved, &coming().map(|path| key(path.name())).collect())?
    };
    let (before, after) = (files.table(), files.table_after(moves, coming()));
    let world = RenameContext { before: &before, after: &after, moves, destination: None, options };
    let sources = if is_bulk { view.sources(view.changing(&world, moved)?)? } else { sources };
    let retarget = |(): &mut (), source: &Source| world.retarget(&source.path, &source.text, &source.note);
    let mut rewritten = Vec::with_capacity(sources.len());
    for group in sources.chunks(GROUP) {
        rewritten.extend(parallel::map(group, 16, || (), retarget));
        view.check_cancelled_after(group.len())?;
    }
    let earlier: HashSet<Option<FileLocation>> =
        plan.files.iter().map(|change| change.from.clone()).collect();
    let mut settled = SettledNotes::default();
    for (source, rewritten) in sources.into_iter().zip(rewritten) {
        let to = moves.of(&source.path).clone();
        let is_first = || !earlier.contains(&Some(FileLocation::Vault(source.path.clone())));
        let edits = &rewritten.edits;
        if !edits.is_empty() && is_first() && !edits_headings(&source.text, edits) {
            settled.untouched.insert(source.path.clone());
        }
        add_edits(plan, &source, Some(to), rewritten.edits, rewritten.remarks);
    }
    plan.files.sort_by(|a, b| a.from.cmp(&b.from));
    follow_headings(view, plan, &settled)
}

/// What happens if the name of a new note captures links: they would lead to it, and mean another note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapturedLinks {
    /// The plan is refused.
    Refuse,
    /// They are lengthened, so that they lead where they led.
    Lengthen,
}

/// Adds to a plan what new notes do to the links of others.
///
/// # Errors
/// `Exists`, naming the note that has the name already, if links would be captured and that is refused.
pub fn add_new(
    view: &View<'_>,
    added: &[NotePath],
    captured: CapturedLinks,
    plan: &mut ChangeSet,
) -> Result<()> {
    let before = plan.files.len();
    follow(view, &Moves::default(), &[], added, view.rewrite_options(), plan)?;
    let notes = plan.files.len() - before;
    if notes == 0 || captured == CapturedLinks::Lengthen {
        return Ok(());
    }
    let names: BTreeSet<String> = added.iter().map(|path| key(path.name())).collect();
    let mut others = view.named(&names)?;
    others.retain(|path| !added.contains(path));
    others.sort();
    let other = others.first().map_or_else(|| "Another file".to_owned(), ToString::to_string);
    let links = if notes == 1 { "links in 1 note".to_owned() } else { format!("links in {notes} notes") };
    let new =
        added.iter().find(|path| others.first().is_none_or(|other| key(other.name()) == key(path.name())));
    let new = new.map_or("it", NotePath::as_str);
    Err(Error::new(
        ErrorKind::Exists,
        format!("{other} has this name, and {links} that mean it would lead to {new} (same-name)"),
    )
    .with_hints(
        "choose another title or folder; `sidenote new --force` creates the note, and lengthens these links",
        "choose another title, or change the note that has this one",
    ))
}

/// Returns whether links of other notes would lead to a new note at a path, and mean another one now.
pub(crate) fn captures_links(view: &View<'_>, path: &NotePath) -> Result<bool> {
    Ok(notes_captured_by(view, path)? > 0)
}

/// Returns a remark about links that lead to a restored file, and led to another one while it was away.
pub(crate) fn captured_again(view: &View<'_>, path: &NotePath) -> Result<Option<Remark>> {
    let notes = notes_captured_by(view, path)?;
    let named = view.named(&BTreeSet::from([key(path.name())]))?;
    let Some(other) = named.iter().find(|other| *other != path).filter(|_| notes > 0) else {
        return Ok(None);
    };
    let links =
        if notes == 1 { "links in 1 note lead".to_owned() } else { format!("links in {notes} notes lead") };
    let message = format!("{links} to it now, which led to {other} before");
    Ok(Some(Remark { code: "same-name".to_owned(), path: path.clone(), line: 1, column: 1, message }))
}

/// Counts the notes with links that a new file would capture.
fn notes_captured_by(view: &View<'_>, path: &NotePath) -> Result<usize> {
    let mut plan = ChangeSet::new("new");
    follow(view, &Moves::default(), &[], std::slice::from_ref(path), view.rewrite_options(), &mut plan)?;
    Ok(plan.files.len())
}

/// Reads the notes whose links the moves can change, and lists the files that these links can lead to.
fn touched_by(
    view: &View<'_>,
    moves: &Moves,
    moved: &[NotePath],
    new_names: &BTreeSet<String>,
) -> Result<(Vec<Source>, NamedFiles)> {
    let old_names: BTreeSet<String> = moves.iter().map(|(from, _)| key(from.name())).collect();
    let bare = |names: &BTreeSet<String>| -> BTreeSet<String> {
        names.iter().flat_map(|name| name_keys(name)).collect()
    };
    let mut captured = new_names.clone();
    if view.dialects().any_follows_paths() && moves.folders().next().is_some() {
        // A link to a folder has no file as its target, and is found by the name of the folder.
        captured.extend(moves.iter().flat_map(|(from, _)| from.folder().split('/')).map(key));
    }
    let sources = view.sources(view.concerned(moved, &captured)?)?;
    let mut keys: BTreeSet<String> = old_names.union(new_names).cloned().collect();
    keys.extend(bare(&keys));
    let files = view.names(&sources, keys)?;
    Ok((sources, files))
}

/// Adds the edits of a file to a plan, if there are any.
pub fn add_edits(
    plan: &mut ChangeSet,
    source: &Source,
    to: Option<NotePath>,
    edits: Vec<Edit>,
    remarks: Vec<Remark>,
) {
    plan.remarks.extend(remarks);
    if edits.is_empty() {
        return;
    }
    if let Some(refusal) = source.refusal() {
        return plan.remarks.push(refusal);
    }
    let from = FileLocation::Vault(source.path.clone());
    // The first change of a file is its move, if it has one.
    match plan.files.first_mut().filter(|change| change.from.as_ref() == Some(&from)) {
        Some(change) => {
            change.before = Some(source.hash);
            change.content = Content::Edits(edits);
        }
        None => plan.files.push(FileChange {
            to: Some(to.map_or_else(|| from.clone(), FileLocation::Vault)),
            from: Some(from),
            before: Some(source.hash),
            content: Content::Edits(edits),
        }),
    }
}
