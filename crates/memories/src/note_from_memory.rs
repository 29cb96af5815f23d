//! Creates notes from memories that are inserted or imported.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_catalog::path_id_at;
use sidenote_change::free_names::FreeNames;
use sidenote_change::move_files::{CapturedLinks, add_new};
use sidenote_change::naming::{file_name, number, title_of};
use sidenote_change::properties::{originals, with_properties};
use sidenote_markdown::edit::{ChangeSet, FileChange};
use sidenote_markdown::name_rules::NameRules;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::tag_conversion::StoredTags;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::redaction::Cleaned;
use sidenote_query::memory_weights::MemoryWeights;

use crate::MemoryWrites;

/// The longest id of an imported memory, in bytes.
pub const LONGEST_ID: usize = 100;

/// A memory that becomes a note.
#[derive(Debug, Clone, Default)]
pub struct IncomingMemory {
    /// The id that the other program gave the memory.
    pub id: Option<String>,
    /// The path of the memory, if it was exported from a vault.
    pub path: Option<NotePath>,
    /// The frontmatter there, with its delimiters.
    pub frontmatter: Option<String>,
    /// The title, if the memory has one.
    pub title: Option<String>,
    /// The text.
    pub content: String,
    /// The type of the memory.
    pub kind: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// The importance, 1 to 10.
    pub importance: Option<f64>,
    /// When the memory was made.
    pub created: Option<Timestamp>,
    /// More properties of the note.
    pub properties: Map<String, Value>,
}

impl MemoryWrites<'_> {
    /// Removes private passages and secrets from all fields of a memory.
    pub fn clean_incoming_memory(&self, memory: &mut IncomingMemory) -> Cleaned {
        let texts = [&mut memory.id, &mut memory.title, &mut memory.kind, &mut memory.frontmatter];
        let texts = texts.into_iter().flatten().chain(&mut memory.tags).chain([&mut memory.content]);
        let mut cleaned: Cleaned = texts.map(|text| self.core.clean(text)).sum();
        let properties = std::mem::take(&mut memory.properties);
        for (mut name, mut value) in properties {
            cleaned += self.core.clean(&mut name);
            cleaned += self.core.clean_value(&mut value);
            memory.properties.insert(name, value);
        }
        let path = memory.path.as_ref().map(|path| {
            let mut text = path.to_string();
            cleaned += self.core.clean(&mut text);
            self.core.vault.new_path(&text, NameRules::default()).ok()
        });
        memory.path = path.flatten();
        cleaned
    }

    /// Returns the path and the bytes of the note of a memory.
    pub fn new_note(
        &self,
        memory: IncomingMemory,
        names: &mut FreeNames<'_>,
        now: Timestamp,
    ) -> Result<(NotePath, Vec<u8>)> {
        let created = memory.created.unwrap_or(now);
        let title = memory.title.clone().unwrap_or_else(|| title_of(&memory.content));
        let given = memory.path.as_ref().map(|path| (path.folder().to_owned(), path.stem().to_owned()));
        let folder = self.core.config.memory.folder.trim_matches('/');
        let (folder, stem) = match given {
            Some(given) => given,
            // A title that gives no file name stays the title, and the file gets another name.
            None => {
                let names =
                    [&title, &title_of(&memory.content), &"Memory".to_owned()].map(|text| file_name(text));
                let fits = |name: &String| NameRules::default().check(&format!("{name}.md")).is_ok();
                let name = names.into_iter().flatten().find(fits);
                (folder.to_owned(), name.unwrap_or_else(|| "Memory".to_owned()))
            }
        };
        let path = names.take(&folder, &stem)?;
        if let (Some(_), Some(front)) = (&memory.path, &memory.frontmatter) {
            return Ok((path, format!("{front}{}", memory.content).into_bytes()));
        }
        let mut properties: BTreeMap<usize, (String, Value)> = BTreeMap::new();
        let mut add = |name: &str, value: Value| {
            properties.insert(properties.len(), (name.to_owned(), value));
        };
        let own = &memory.properties;
        if memory.path.is_none() || !own.contains_key("id") {
            add("id", Value::from(memory.id.clone().unwrap_or_else(|| path_id_at(&path, created))));
        }
        if memory.path.is_none() {
            // A given title is written even if the file name is the same, so that it stays when the text changes.
            if title != path.stem()
                || memory.title.as_ref().is_some_and(|given| *given == title_of(&memory.content))
            {
                add("title", Value::from(title));
            }
            let tags = StoredTags::of(&memory.tags);
            if !tags.tags.is_empty() {
                add("tags", Value::from(tags.tags.clone()));
            }
            if let Some((name, value)) = originals(&tags) {
                add(&name, value);
            }
            let kind = memory
                .kind
                .clone()
                .unwrap_or_else(|| MemoryWeights::of(self.core).kinds().classify(&memory.content).to_owned());
            add("type", Value::from(kind));
            add("created_at", Value::from(created.exact_rfc3339()));
            if let Some(importance) = memory.importance {
                add("importance", number(importance));
            }
        }
        for (name, value) in own {
            add(name, value.clone());
        }
        // The properties are a block of their own, so that the beginning of the text is never read as frontmatter.
        let mut text = with_properties(String::new(), &path, properties.into_values().collect())?;
        text.push_str(&memory.content);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Ok((path, text.into_bytes()))
    }

    /// Plans new notes as one operation.
    ///
    /// # Errors
    /// `Exists` if a name captures links of other notes.
    pub fn plan_notes(
        &self,
        view: &View<'_>,
        operation: &str,
        made: &[(NotePath, Vec<u8>)],
    ) -> Result<ChangeSet> {
        let mut plan = ChangeSet::new(operation);
        let paths = made
            .iter()
            .map(|(path, _)| self.core.vault.canonical_path(path))
            .collect::<Result<Vec<NotePath>>>()?;
        let contents = made.iter().map(|(_, bytes)| bytes.clone());
        plan.files
            .extend(paths.iter().cloned().zip(contents).map(|(path, bytes)| FileChange::create(path, bytes)));
        add_new(view, &paths, CapturedLinks::Refuse, &mut plan)?;
        Ok(plan)
    }
}
