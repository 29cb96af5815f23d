//! What Claude Code keeps of a project: the Markdown files of its memory, and the transcripts of its sessions.
//!
//! `~/.claude/projects/PROJECT/memory/` has `MEMORY.md` and a file for each topic, with `name`, `description` and
//! `metadata.type` in its frontmatter and links between them (code.claude.com/docs/en/memory); beside the folder are the
//! sessions as `UUID.jsonl`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use sidenote_markdown::frontmatter;
use sidenote_memories::transcript::{Speaker, each_message};
use sidenote_memory::capture::pick;
use sidenote_memory::privacy::without_private;
use sidenote_memory::recall::without_injected;

use super::chat::one_line;
use super::export_files::{ExportFile, ExportFiles};
use super::imported_notes::{ImportedNote, NoteImport};

/// The folder of the notes.
const FOLDER: &str = "Claude Code";
/// The folder of the sessions in that of a project.
const SESSIONS: &str = "Sessions";
/// The folder of a project that has its memory files.
const MEMORY: &str = "memory";

/// A file of a project.
struct ProjectFile {
    /// The folder of the project, as Claude Code names it after the path of the project.
    project: String,
    /// The path in the memory of the project.
    inner: String,
    file: ExportFile,
}

/// Reads a folder into a plan.
///
/// # Errors
/// `Invalid`, naming the place, if there are neither memory files nor sessions, or one is not UTF-8; those of
/// [`NoteImport::take`].
pub(super) fn read(path: &Path, import: &mut NoteImport<'_>) -> Result<()> {
    let mut export = ExportFiles::open(path)?;
    // A relative path does not name the project.
    let whole = platform::canonicalize(path).map_err(|error| Error::io("read", path, error))?;
    let all: Vec<ProjectFile> = export.list()?.into_iter().map(|file| project_file(&whole, file)).collect();
    let ends = |file: &ProjectFile, end: &str| file.file.name.to_ascii_lowercase().ends_with(end);
    let (notes, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|file| ends(file, ".md"));
    let sessions: Vec<ProjectFile> = others.into_iter().filter(|file| ends(file, ".jsonl")).collect();
    if notes.is_empty() && sessions.is_empty() {
        return Err(Error::invalid(format!(
            "{} has neither memory files nor sessions of Claude Code",
            path.display()
        ))
        .with_hint("give the folder of a project in ~/.claude/projects, or the folder memory in it"));
    }
    let projects: BTreeSet<String> = notes.iter().chain(&sessions).map(|file| file.project.clone()).collect();
    let folder_of = |import: &NoteImport<'_>, project: &str| {
        let base = import.folder(FOLDER);
        let project = project.trim_start_matches('-');
        let is_given = import.request.into.is_some() && projects.len() == 1;
        [base.as_str(), if is_given { "" } else { project }]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("/")
    };
    let total = notes.iter().map(|file| file.file.size).sum();
    let count = export.count();
    for found in &notes {
        let text = export.read_text(&found.file)?;
        import.tell(&count, total);
        take_file(found, &text, &folder_of(import, &found.project), import)?;
    }
    if !import.request.sessions {
        import.leave_out("session", sessions.len());
        return Ok(());
    }
    for found in &sessions {
        let file = if export.is_single() { path.to_owned() } else { path.join(&found.file.name) };
        if !file.is_file() {
            import.leave_out("session in an archive", 1);
            continue;
        }
        let folder = folder_of(import, &found.project);
        take_session(&file, found, &folder, import)?;
    }
    Ok(())
}

/// Finds the project of a file, and its path in the memory of the project: the folder before the folder of memory files, and
/// else the one that is given.
fn project_file(path: &Path, file: ExportFile) -> ProjectFile {
    let mut parts: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    let given = parts.len();
    parts.extend(file.name.split('/').map(str::to_owned));
    if path.is_file() {
        // The name of a file that is given alone is the end of the path.
        parts.pop();
    }
    let last = parts.len() - 1;
    let memory = (1..last).rev().find(|at| parts.get(*at).is_some_and(|part| part == MEMORY));
    let (project, inner) = match memory {
        Some(at) => (at - 1, at + 1),
        // Sessions are in the folder of their project itself.
        None if file.name.ends_with(".jsonl") => (last - 1, last),
        None => (given.min(last).saturating_sub(1), given.min(last)),
    };
    let project = parts.get(project).cloned().unwrap_or_default();
    let inner = parts.get(inner..).unwrap_or_default().join("/");
    ProjectFile { project, inner, file }
}

fn take_file(found: &ProjectFile, text: &str, folder: &str, import: &mut NoteImport<'_>) -> Result<()> {
    let text = text.trim_start_matches('\u{feff}');
    let (block, start) = frontmatter::read(text);
    let (front, body) = text.split_at_checked(start).unwrap_or(("", text));
    if body.trim().is_empty() && front.is_empty() {
        import.leave_out("empty file", 1);
        return Ok(());
    }
    let (inner, name) = found.inner.rsplit_once('/').unwrap_or(("", &found.inner));
    let folder = if inner.is_empty() { folder.to_owned() } else { format!("{folder}/{inner}") };
    let properties = block.map(|block| block.properties).unwrap_or_default();
    let value =
        |key: &str| properties.iter().find(|property| property.key == key).map(|property| &property.value);
    let kind =
        value("metadata").and_then(|metadata| metadata.get("type")).filter(|_| value("type").is_none());
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let note = ImportedNote {
        id: format!("{}/{}", found.project, found.inner),
        folder,
        stem: Some(stem.to_owned()),
        frontmatter: front.to_owned(),
        properties: kind.map(|kind| ("type", kind.clone())).into_iter().collect(),
        body: body.to_owned(),
        ..ImportedNote::default()
    };
    let Some(path) = import.take(note)? else { return Ok(()) };
    if path.stem() != stem && import.reply.imported.last().is_some_and(|last| last == path.as_str()) {
        let notice = format!("{} is imported as {path}; links to {stem} do not lead to it", found.inner);
        import.reply.notices.push(notice);
    }
    Ok(())
}

/// Makes a note of what is worth keeping of a session: what the person asked first, and what the capture of memories would
/// keep of the answers.
fn take_session(file: &Path, found: &ProjectFile, folder: &str, import: &mut NoteImport<'_>) -> Result<()> {
    let (mut asked, mut answers) = (None, String::new());
    let (mut first, mut last): (Option<Timestamp>, Option<Timestamp>) = (None, None);
    let (mut work_folder, mut branch) = (None, None);
    each_message(file, |message| {
        if message.is_sidechain {
            return;
        }
        first = first.or(message.at);
        last = message.at.or(last);
        work_folder = message.folder.or(work_folder.take());
        branch = message.branch.or(branch.take());
        match message.speaker {
            // Commands and what hooks add begin with a tag.
            Speaker::User if asked.is_none() && !message.text.trim_start().starts_with('<') => {
                let question = one_line(&without_injected(&without_private(&message.text)));
                asked = Some(question).filter(|question| !question.is_empty());
            }
            Speaker::User => {}
            Speaker::Assistant => {
                answers.push_str(&message.text);
                answers.push_str("\n\n");
            }
        }
    })?;
    let parts = pick(&without_injected(&without_private(&answers)));
    let Some(best) = parts.first() else {
        import.leave_out("session without anything worth keeping", 1);
        return Ok(());
    };
    let title = asked.clone().unwrap_or_else(|| sidenote_change::naming::title_of(&best.text));
    let mut texts: Vec<String> = asked.map(|asked| format!("> {asked}")).into_iter().collect();
    texts.extend(parts.iter().map(|part| part.text.trim().to_owned()));
    let name = found.file.base_name();
    let session = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let mut note = ImportedNote {
        id: format!("session/{session}"),
        folder: format!("{folder}/{SESSIONS}"),
        title: Some(title),
        body: format!("{}\n", texts.join("\n\n")),
        ..ImportedNote::default()
    };
    note.properties.push(("type", Value::from("session")));
    note.add_time("created_at", first);
    note.add_time("updated_at", last);
    note.properties.push(("session", Value::from(session)));
    note.properties.extend(work_folder.map(|folder| ("project", Value::from(folder))));
    note.properties.extend(branch.map(|branch| ("branch", Value::from(branch))));
    import.take(note).map(drop)
}
