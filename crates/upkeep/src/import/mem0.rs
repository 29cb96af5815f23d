//! The memories of Mem0 and `OpenMemory`.
//!
//! Mem0's API answers `{"results": [{id, memory, user_id, metadata, categories, created_at, updated_at}]}`, or the list alone
//! in its first version (docs.mem0.ai/api-reference/memory). `OpenMemory` exports an archive with `memories.json`, in which
//! `category_ids` and `app_id` refer to lists of their own (mem0ai/mem0, openmemory/api/app/routers/backup.py).

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value};
use sidenote_base::error::{Error, Result};
use sidenote_change::naming::title_of;
use sidenote_change::properties::originals;
use sidenote_markdown::tag_conversion::StoredTags;
use sidenote_query::memory_weights::MemoryWeights;

use super::chat::moment;
use super::export_files::ExportFiles;
use super::imported_notes::{ImportedNote, NoteImport};
use super::json_items::each_item;

/// The keys of the text of a memory.
const TEXT: [&str; 3] = ["memory", "content", "text"];
/// The keys of a list of memories.
const LISTS: [&str; 3] = ["results", "memories", "items"];
/// Keys that become properties, with their names there.
const PLAIN: [(&str, &str); 7] = [
    ("user_id", "user_id"),
    ("agent_id", "agent_id"),
    ("run_id", "session"),
    ("app", "app"),
    ("app_name", "app"),
    ("app_id", "app"),
    ("expiration_date", "valid_until"),
];
/// Keys that are read in another way, or say nothing of the memory itself.
const READ: [&str; 10] = [
    "id",
    "created_at",
    "updated_at",
    "metadata",
    "metadata_",
    "categories",
    "category_ids",
    "state",
    "hash",
    "score",
];

/// The names to which ids of an export refer.
#[derive(Default)]
struct Names {
    categories: HashMap<String, String>,
    apps: HashMap<String, String>,
}

/// Reads an export into a plan.
///
/// # Errors
/// `Invalid`, naming the place, if it has no memories; those of [`NoteImport::take`].
pub(super) fn read(path: &Path, import: &mut NoteImport<'_>) -> Result<()> {
    let mut export = ExportFiles::open(path)?;
    let mut files = export.list()?;
    if !export.is_single() {
        files.retain(|file| file.base_name() == "memories.json" && !file.name.starts_with("__MACOSX/"));
    }
    if files.is_empty() {
        return Err(Error::invalid(format!("{} has no file memories.json", path.display()))
            .with_hint("give the answer of Mem0's API as a file, or the archive that OpenMemory exports"));
    }
    let folder = import.folder(&import.memory_folder());
    let total = files.iter().map(|file| file.size).sum();
    let count = export.count();
    for file in &files {
        let place = export.place(file);
        export.read(file, |reader| {
            each_item(reader, (&place, "memory"), &count, &mut |item: Map<String, Value>| {
                import.tell(&count, total);
                take_item(item, &folder, import)
            })
        })?;
    }
    Ok(())
}

/// Takes a memory, or an object with a list of them.
fn take_item(mut item: Map<String, Value>, folder: &str, import: &mut NoteImport<'_>) -> Result<()> {
    let list = LISTS.into_iter().find(|name| item.get(*name).is_some_and(Value::is_array));
    let Some(list) = list else { return take_memory(item, &Names::default(), folder, import) };
    let names = Names { categories: named(item.get("categories")), apps: named(item.get("apps")) };
    import.leave_out("relation", item.get("relations").and_then(Value::as_array).map_or(0, Vec::len));
    let Some(Value::Array(memories)) = item.remove(list) else { return Ok(()) };
    for (at, memory) in memories.into_iter().enumerate() {
        let number = at + 1;
        let Value::Object(memory) = memory else {
            return Err(Error::invalid(format!("memory {number} of `{list}` is no object")));
        };
        take_memory(memory, &names, folder, import)
            .map_err(|error| Error::new(error.kind(), format!("memory {number}: {}", error.message())))?;
    }
    Ok(())
}

/// Returns the names of a list of objects by their ids.
fn named(list: Option<&Value>) -> HashMap<String, String> {
    let one = |object: &Value| {
        let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
        Some((text("id")?, text("name")?))
    };
    list.and_then(Value::as_array).into_iter().flatten().filter_map(one).collect()
}

fn take_memory(
    memory: Map<String, Value>,
    names: &Names,
    folder: &str,
    import: &mut NoteImport<'_>,
) -> Result<()> {
    let said = |name: &str| memory.get(name).and_then(Value::as_str);
    if !TEXT.iter().any(|name| memory.contains_key(*name)) {
        return Err(Error::invalid("it has no `memory` and no `content`")
            .with_hint("give the answer of Mem0's API as a file, or the archive that OpenMemory exports"));
    }
    let id = said("id").ok_or_else(|| Error::invalid("it has no `id`"))?.to_owned();
    let Some(text) = TEXT.into_iter().find_map(said).filter(|text| !text.trim().is_empty()) else {
        import.leave_out("memory without text", 1);
        return Ok(());
    };
    if said("state") == Some("deleted") {
        import.leave_out("deleted memory", 1);
        return Ok(());
    }
    let tags = StoredTags::of(&categories(&memory, names));
    let kind = MemoryWeights::of(import.upkeep().core).kinds().classify(text).to_owned();
    let title = Some(title_of(text)).filter(|title| !title.is_empty());
    let mut note = ImportedNote { id, folder: folder.to_owned(), title, ..ImportedNote::default() };
    if !tags.tags.is_empty() {
        note.properties.push(("tags", Value::from(tags.tags.clone())));
    }
    note.properties
        .extend(originals(&tags).map(|(_, value)| (sidenote_markdown::tag_conversion::ORIGINALS, value)));
    note.properties.push(("type", Value::from(kind)));
    note.add_time("created_at", memory.get("created_at").and_then(moment));
    note.add_time("updated_at", memory.get("updated_at").and_then(moment));
    for (key, property) in PLAIN {
        let is_new = note.properties.iter().all(|(name, _)| *name != property);
        let value = said(key).filter(|value| is_new && !value.is_empty());
        let value =
            value.map(
                |value| {
                    if key == "app_id" { names.apps.get(value).map_or(value, |name| name) } else { value }
                },
            );
        note.properties.extend(value.map(|value| (property, Value::from(value))));
    }
    let metadata = memory.get("metadata").or_else(|| memory.get("metadata_"));
    let metadata = metadata.filter(|value| value.as_object().is_some_and(|map| !map.is_empty()));
    note.properties.extend(metadata.map(|value| ("metadata", value.clone())));
    if matches!(said("state"), Some("archived" | "paused")) {
        note.properties.push(("tier", Value::from("archive")));
    }
    for (name, value) in &memory {
        let is_read = TEXT.contains(&name.as_str())
            || READ.contains(&name.as_str())
            || PLAIN.iter().any(|(key, _)| key == name);
        let is_empty = match value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(list) => list.is_empty(),
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        import.leave_out(format!("key {name}"), usize::from(!is_read && !is_empty));
    }
    note.body = format!("{}\n", text.trim());
    import.take(note).map(drop)
}

/// Returns the categories of a memory, which are its tags.
fn categories(memory: &Map<String, Value>, names: &Names) -> Vec<String> {
    let list = |name: &str| memory.get(name).and_then(Value::as_array).into_iter().flatten();
    let own = list("categories").filter_map(|one| one.as_str().or_else(|| one.get("name")?.as_str()));
    let by_id = list("category_ids").filter_map(|id| names.categories.get(id.as_str()?).map(String::as_str));
    own.chain(by_id).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}
