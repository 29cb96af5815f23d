//! A bundle of the Open Knowledge Format: a folder or archive of Markdown files, each a concept with a type
//! (docs/spec/memory.md, Open Knowledge Format). `index.md` and `log.md` are lists, and no concepts.

use std::path::Path;

use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use sidenote_markdown::edit::{Edit, apply};
use sidenote_markdown::frontmatter;
use sidenote_markdown::link::LinkSyntax;
use sidenote_markdown::note::Note;
use sidenote_markdown::span::Span;

use super::export_files::ExportFiles;
use super::imported_notes::{ImportedNote, NoteImport};

/// Reads a bundle into a plan.
///
/// # Errors
/// `Invalid`, naming the place, if no file is a concept, or one is not UTF-8; those of [`NoteImport::take`].
pub(super) fn read(path: &Path, import: &mut NoteImport<'_>) -> Result<()> {
    let mut export = ExportFiles::open(path)?;
    let whole = platform::canonicalize(path).map_err(|error| Error::io("read", path, error))?;
    let bundle = whole.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = import.folder(&bundle);
    let (concepts, others): (Vec<_>, Vec<_>) = export
        .list()?
        .into_iter()
        .filter(|file| !file.name.split('/').any(|part| part.starts_with('.') || part == "__MACOSX"))
        .partition(|file| file.name.ends_with(".md") && !matches!(file.base_name(), "index.md" | "log.md"));
    let lists = others.iter().filter(|file| file.name.ends_with(".md")).count();
    import.leave_out("list of a folder", lists);
    import.leave_out("file that is no concept", others.len() - lists);
    let total = concepts.iter().map(|file| file.size).sum();
    let count = export.count();
    let mut typed = 0;
    for file in &concepts {
        let text = export.read_text(file)?;
        import.tell(&count, total);
        let (block, start) = frontmatter::read(&text);
        typed += usize::from(block.is_some_and(|block| {
            block.properties.iter().any(|property| property.key == "type" && property.value.is_string())
        }));
        let (front, _) = text.split_at_checked(start).unwrap_or_default();
        let (inner, name) = file.name.rsplit_once('/').unwrap_or(("", &file.name));
        let place = [folder.as_str(), inner].into_iter().filter(|part| !part.is_empty());
        import.take(ImportedNote {
            id: format!("{bundle}/{}", file.name.trim_end_matches(".md")),
            folder: place.collect::<Vec<_>>().join("/"),
            stem: Some(name.trim_end_matches(".md").to_owned()),
            frontmatter: front.to_owned(),
            body: with_relative_links(&text, start, inner)?,
            ..ImportedNote::default()
        })?;
    }
    if typed == 0 {
        return Err(Error::invalid(format!(
            "{} has no Markdown file with a property `type`, so it is no bundle of the Open Knowledge Format",
            path.display()
        ))
        .with_hint("give the folder of a bundle, or a ZIP archive of it"));
    }
    Ok(())
}

/// Returns the text behind the frontmatter. Links that begin at the root of the bundle lead from the folder of the concept
/// instead, because the bundle is not the root of the vault.
fn with_relative_links(text: &str, start: usize, folder: &str) -> Result<String> {
    let depth = folder.split('/').filter(|part| !part.is_empty()).count();
    let up = if depth == 0 { "./".to_owned() } else { "../".repeat(depth) };
    let links = Note::parse(text).links;
    let absolute = links.iter().filter(|link| {
        let is_markdown = link.form.syntax() != LinkSyntax::Lookup;
        is_markdown && link.span.start >= start && link.path_span.of(text).starts_with('/')
    });
    let edits: Vec<Edit> = absolute
        .map(|link| Edit::replace(Span::new(link.path_span.start, link.path_span.start + 1), up.clone()))
        .collect();
    let new = String::from_utf8(apply(text.as_bytes(), &edits)?)
        .map_err(|error| Error::internal("an edit produced invalid UTF-8").with_source(error))?;
    Ok(new.get(start..).unwrap_or_default().to_owned())
}
