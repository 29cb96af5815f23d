//! The files of the memory folder as the memory tool of the Claude API sees them: below `/memories`, with the texts by which
//! models were trained. Every write is a plan.

mod listing;

use serde::Deserialize;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_change::delete::DeleteRequest;
use sidenote_change::move_files::{CapturedLinks, MoveRequest, add_edits, add_new};
use sidenote_change::operation::Operation;
use sidenote_change::{Changes, Planner};
use sidenote_markdown::edit::{ChangeSet, Content, Edit, FileChange, FileLocation, single_edit};
use sidenote_markdown::name_rules::NameRules;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::span::Span;
use sidenote_open_vault::Core;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::source::Source;

use self::listing::{listing, numbered};

/// The folder as the tool names it.
const ROOT: &str = "/memories";
/// The most lines of a file that is shown.
const MAX_LINES: usize = 999_999;
/// The number of lines that are shown around a replacement.
const AROUND: usize = 2;

/// A command of the memory tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum MemoryCommand {
    /// Shows a file, or the files of a folder.
    View {
        /// The path.
        path: String,
        /// The first and last line, counted from 1; -1 is the last line of the file.
        #[serde(default)]
        view_range: Option<Vec<i64>>,
    },
    /// Creates a file.
    Create {
        /// The path.
        path: String,
        /// The text.
        #[serde(default)]
        file_text: String,
    },
    /// Replaces a text that occurs once.
    StrReplace {
        /// The path.
        path: String,
        /// The text to replace.
        old_str: String,
        /// The new text.
        #[serde(default)]
        new_str: String,
    },
    /// Inserts lines.
    Insert {
        /// The path.
        path: String,
        /// The line behind which they are inserted; 0 is the beginning of the file.
        insert_line: i64,
        /// The lines.
        insert_text: String,
    },
    /// Moves a file or folder to the trash.
    Delete {
        /// The path.
        path: String,
    },
    /// Moves a file or folder.
    Rename {
        /// The present path.
        old_path: String,
        /// The new path.
        new_path: String,
    },
}

/// Carries out commands of the memory tool.
#[derive(Debug, Clone, Copy)]
pub struct MemoryTool<'a> {
    core: &'a Core,
}

/// The folder of memories while a command is carried out.
struct Folder<'a> {
    core: &'a Core,
    view: View<'a>,
    /// The path of the folder in the vault; empty for the vault itself.
    root: String,
}

/// What is at a path.
enum Found {
    /// A file, by its path in the vault.
    File(NotePath),
    /// A folder, with its files.
    Folder(Vec<NotePath>),
}

fn absent(path: &str) -> Error {
    Error::not_found(format!("The path {path} does not exist. Please provide a valid path."))
}

fn absent_for_change(path: &str) -> Error {
    Error::not_found(format!("The path {path} does not exist"))
}

impl<'a> MemoryTool<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }

    /// Carries out a command on the files of a folder, or of that of the settings, and returns what the tool answers. With
    /// `dry_run` nothing is changed.
    ///
    /// # Errors
    /// An error whose message is the answer of the tool.
    #[tracing::instrument(skip_all)]
    pub fn run(&self, folder: Option<&str>, mut command: MemoryCommand, dry_run: bool) -> Result<String> {
        let root = folder.unwrap_or(&self.core.config.memory.folder).trim_matches('/').to_owned();
        self.clean(&mut command);
        let open =
            || Ok::<_, Error>(Folder { core: self.core, view: View::new(self.core)?, root: root.clone() });
        match command {
            MemoryCommand::View { path, view_range } => open()?.view(&path, view_range.as_deref()),
            MemoryCommand::Create { path, file_text } => {
                self.apply(dry_run, || open()?.plan_create(&path, &file_text))?;
                Ok(format!("File created successfully at: {path}"))
            }
            MemoryCommand::StrReplace { path, old_str, new_str } => {
                let mut snippet = String::new();
                self.apply(dry_run, || {
                    let (plan, shown) = open()?.plan_replace(&path, &old_str, &new_str)?;
                    snippet = shown;
                    Ok(plan)
                })?;
                Ok(format!(
                    "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
                ))
            }
            MemoryCommand::Insert { path, insert_line, insert_text } => {
                self.apply(dry_run, || open()?.plan_insert(&path, insert_line, &insert_text))?;
                Ok(format!("The file {path} has been edited."))
            }
            MemoryCommand::Delete { path } => self.delete(&open()?, &path, dry_run),
            MemoryCommand::Rename { old_path, new_path } => {
                self.rename(&open()?, &old_path, &new_path, dry_run)
            }
        }
    }

    /// Removes private passages and secrets from what a command writes.
    fn clean(&self, command: &mut MemoryCommand) {
        let texts = match command {
            MemoryCommand::Create { path, file_text } => vec![path, file_text],
            MemoryCommand::StrReplace { new_str, .. } => vec![new_str],
            MemoryCommand::Insert { insert_text, .. } => vec![insert_text],
            MemoryCommand::Rename { new_path, .. } => vec![new_path],
            MemoryCommand::View { .. } | MemoryCommand::Delete { .. } => Vec::new(),
        };
        for text in texts {
            for notice in self.core.clean(text).notices() {
                tracing::info!("{notice}");
            }
        }
    }

    fn apply(&self, dry_run: bool, plan: impl FnOnce() -> Result<ChangeSet>) -> Result<()> {
        let reply = Changes::of(self.core).apply_planned(|_| plan(), dry_run)?;
        for notice in &reply.notices {
            tracing::info!("{notice}");
        }
        Ok(())
    }

    fn delete(&self, folder: &Folder<'_>, path: &str, dry_run: bool) -> Result<String> {
        if folder.place(path)?.is_empty() {
            return Err(Error::invalid("Cannot delete the /memories directory itself"));
        }
        match folder.find(path)?.ok_or_else(|| absent_for_change(path))? {
            Found::File(file) => {
                let request = DeleteRequest { note: file.to_string(), ..DeleteRequest::default() };
                Changes::of(self.core).change(&Operation::Delete(request), dry_run)?;
            }
            Found::Folder(_) => self.apply(dry_run, || {
                let root = folder.root.clone();
                let folder = Folder { core: self.core, view: View::new(self.core)?, root };
                match folder.find(path)? {
                    Some(Found::Folder(files)) => folder.plan_trash(files),
                    _ => Err(absent_for_change(path)),
                }
            })?,
        }
        Ok(format!("Successfully deleted {path}"))
    }

    fn rename(&self, folder: &Folder<'_>, old: &str, new: &str, dry_run: bool) -> Result<String> {
        if folder.place(old)?.is_empty() {
            return Err(Error::invalid("Cannot rename the /memories directory itself"));
        }
        let taken = || Error::new(ErrorKind::Exists, format!("The destination {new} already exists"));
        let to = folder.new_path(new)?;
        if folder.find(new)?.is_some() {
            return Err(taken());
        }
        if folder.find(old)?.is_none() {
            return Err(absent_for_change(old));
        }
        let from = folder.path(&folder.place(old)?)?.to_string();
        let request = MoveRequest { from, to: to.to_string(), is_exact: true, ..MoveRequest::default() };
        let moved = Changes::of(self.core).change(&Operation::Move(request), dry_run);
        moved.map_err(|error| match error.kind() {
            ErrorKind::NotFound => absent_for_change(old),
            _ => error,
        })?;
        Ok(format!("Successfully renamed {old} to {new}"))
    }
}

impl Folder<'_> {
    /// Returns the path of a file or folder from the folder of memories; empty for that folder itself.
    fn place(&self, path: &str) -> Result<String> {
        let inside = path.strip_prefix(ROOT).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let inside =
            inside.ok_or_else(|| Error::invalid(format!("Path must start with {ROOT}, got: {path}")))?;
        let escapes = || Error::invalid(format!("Path {path} would escape {ROOT} directory"));
        let mut names: Vec<&str> = Vec::new();
        for name in inside.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(names.pop().ok_or_else(escapes)?),
                // On other systems a backslash separates folders, too.
                name if name.contains('\\') => return Err(escapes()),
                name => names.push(name),
            }
        }
        Ok(names.join("/"))
    }

    /// Returns the path in the vault of a place.
    fn path(&self, place: &str) -> Result<NotePath> {
        NotePath::parse(&if self.root.is_empty() {
            place.to_owned()
        } else {
            format!("{}/{place}", self.root)
        })
    }

    /// Returns the path in the vault of a new file or folder.
    fn new_path(&self, path: &str) -> Result<NotePath> {
        let place = self.place(path)?;
        if place.is_empty() {
            return Err(Error::new(ErrorKind::Exists, format!("The destination {path} already exists")));
        }
        let wanted = self.path(&place)?;
        let new = self.core.vault.new_path(wanted.as_str(), NameRules::default())?;
        // A folder that a symbolic link makes lies elsewhere.
        let is_inside = self.root.is_empty()
            || new.as_str().strip_prefix(&self.root).is_some_and(|rest| rest.starts_with('/'));
        if is_inside {
            Ok(new)
        } else {
            Err(Error::invalid(format!("Path {path} would escape {ROOT} directory")))
        }
    }

    /// Lists all files, each with its path from the folder of memories.
    fn files(&self) -> Result<Vec<NotePath>> {
        if self.root.is_empty() {
            self.view.all_files()
        } else {
            self.view.below(&NotePath::parse(&self.root)?)
        }
    }

    fn find(&self, path: &str) -> Result<Option<Found>> {
        let place = self.place(path)?;
        let mut files = self.files()?;
        if place.is_empty() {
            return Ok(Some(Found::Folder(files)));
        }
        // A hidden file does not exist here.
        let Ok(wanted) = self.path(&place) else { return Ok(None) };
        if files.contains(&wanted) {
            return Ok(Some(Found::File(wanted)));
        }
        let prefix = format!("{wanted}/");
        files.retain(|file| file.as_str().starts_with(&prefix));
        Ok((!files.is_empty()).then_some(Found::Folder(files)))
    }

    /// Reads a file whose text is changed or shown.
    fn source(&self, path: &str) -> Result<Source> {
        match self.find(path)?.ok_or_else(|| absent(path))? {
            Found::File(file) => {
                let source = self.view.source(&file)?;
                match source.refusal() {
                    Some(refusal) => Err(Error::invalid(format!("{path}: {}", refusal.message))),
                    None => Ok(source),
                }
            }
            Found::Folder(_) => Err(Error::invalid(format!("The path {path} is not a file."))),
        }
    }

    fn view(&self, path: &str, range: Option<&[i64]>) -> Result<String> {
        let place = self.place(path)?;
        let files = match self.find(path)?.ok_or_else(|| absent(path))? {
            Found::Folder(files) => files,
            Found::File(_) => return Self::view_text(path, &self.source(path)?.text, range),
        };
        let top = match (self.root.as_str(), place.as_str()) {
            (root, "") => root.to_owned(),
            (_, place) => self.path(place)?.to_string(),
        };
        let sized = files.iter().filter_map(|file| {
            let rest = if top.is_empty() {
                file.as_str()
            } else {
                file.as_str().strip_prefix(&top)?.strip_prefix('/')?
            };
            let size =
                std::fs::symlink_metadata(self.core.vault.disk_path(file)).map_or(0, |found| found.len());
            Some((rest.to_owned(), size))
        });
        Ok(listing(path, sized.collect()))
    }

    fn view_text(path: &str, text: &str, range: Option<&[i64]>) -> Result<String> {
        let lines: Vec<&str> = text.split('\n').collect();
        if lines.len() > MAX_LINES {
            return Err(Error::invalid(format!("File {path} exceeds maximum line limit of 999,999 lines.")));
        }
        let (first, last) = match range {
            Some(&[first, last]) => {
                let first = usize::try_from(first.max(1) - 1).unwrap_or(0);
                (first, usize::try_from(last).unwrap_or(lines.len()))
            }
            _ => (0, lines.len()),
        };
        let shown = numbered(&lines, first, last);
        Ok(format!("Here's the content of {path} with line numbers:\n{shown}"))
    }

    fn plan_create(&self, path: &str, text: &str) -> Result<ChangeSet> {
        let taken = || Error::new(ErrorKind::Exists, format!("File {path} already exists"));
        if self.find(path)?.is_some() {
            return Err(taken());
        }
        let file = self.new_path(path)?;
        Planner::of(self.core).refuse_taken(&file, None).map_err(|error| match error.kind() {
            ErrorKind::Exists => taken(),
            _ => error,
        })?;
        let mut plan = ChangeSet::new("new");
        plan.files.push(FileChange::create(file.clone(), text.as_bytes().to_vec()));
        add_new(&self.view, std::slice::from_ref(&file), CapturedLinks::Lengthen, &mut plan)?;
        Ok(plan)
    }

    /// Plans a replacement, and returns the lines around it.
    fn plan_replace(&self, path: &str, old: &str, new: &str) -> Result<(ChangeSet, String)> {
        let source = self.source(path)?;
        let text = source.text.as_str();
        let found: Vec<usize> = if old.is_empty() { Vec::new() } else { starts_of(text, old) };
        let line_of = |at: usize| text.get(..at).unwrap_or("").matches('\n').count();
        let count = if old.is_empty() { 0 } else { text.matches(old).count() };
        let Some(&at) = found.first() else {
            return Err(Error::not_found(format!(
                "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
            )));
        };
        if count > 1 {
            let (mut from, mut line, mut lines) = (0, 1, Vec::with_capacity(found.len()));
            for &at in &found {
                line += text.get(from..at).unwrap_or("").matches('\n').count();
                from = at;
                lines.push(line.to_string());
            }
            return Err(Error::invalid(format!(
                "No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {}. Please ensure it is unique",
                lines.join(", ")
            )));
        }
        let edit = Edit::replace(Span::new(at, at + old.len()), new);
        let line = line_of(at);
        let changed = text.replacen(old, new, 1);
        let lines: Vec<&str> = changed.split('\n').collect();
        let snippet = numbered(&lines, line.saturating_sub(AROUND), line + AROUND + 1);
        let mut plan = ChangeSet::new("replace");
        add_edits(&mut plan, &source, None, vec![edit], Vec::new());
        Ok((plan, snippet))
    }

    fn plan_insert(&self, path: &str, line: i64, text: &str) -> Result<ChangeSet> {
        let source = self.source(path)?;
        let mut lines: Vec<&str> = source.text.split('\n').collect();
        if lines.last() == Some(&"") {
            lines.pop();
        }
        let at = usize::try_from(line).ok().filter(|at| *at <= lines.len()).ok_or_else(|| {
            Error::invalid(format!(
                "Invalid `insert_line` parameter: {line}. It should be within the range [0, {}].",
                lines.len()
            ))
        })?;
        lines.insert(at, text.trim_end_matches('\n'));
        let mut new = lines.join("\n");
        if !new.ends_with('\n') {
            new.push('\n');
        }
        let edits = single_edit(&source.text, &new).into_iter().collect();
        let mut plan = ChangeSet::new("edit");
        add_edits(&mut plan, &source, None, edits, Vec::new());
        Ok(plan)
    }

    /// Plans the move of files to the trash.
    fn plan_trash(&self, files: Vec<NotePath>) -> Result<ChangeSet> {
        let mut plan = ChangeSet::new("delete");
        let mut taken = std::collections::BTreeSet::new();
        for file in files {
            let place = Planner::of(self.core).free_in_trash(&file, &taken)?;
            taken.insert(place.clone());
            let (from, to) = (Some(FileLocation::Vault(file)), Some(FileLocation::Trash(place)));
            plan.files.push(FileChange { from, to, before: None, content: Content::Keep });
        }
        Ok(plan)
    }
}

/// Lists the offsets at which a text occurs, also where the occurrences overlap.
fn starts_of(text: &str, wanted: &str) -> Vec<usize> {
    text.char_indices()
        .map(|(at, _)| at)
        .filter(|&at| text.get(at..).is_some_and(|rest| rest.starts_with(wanted)))
        .collect()
}
