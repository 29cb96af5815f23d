//! The export of Claude: conversations, projects with their documents, and what is remembered of a person. Anthropic
//! publishes no description: the fields are those that Sinity/polylogue (docs/providers/claude-ai.md) and
//! bearspear/claude-takeout read. Exports of 2026 have `projects/UUID.json` and `memories/UUID.json` in place of the lists
//! `projects.json` and `memories.json`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use sidenote_base::error::{Error, Result};
use sidenote_change::naming::title_of;
use sidenote_markdown::frontmatter;
use sidenote_markdown::path::NotePath;
use sidenote_memory::duplicate::digest;
use sidenote_query::memory_weights::MemoryWeights;

use super::chat::{ChatText, code_block, file_line, moment, one_line};
use super::chatgpt::is_of_conversations;
use super::export_files::{ExportFile, ExportFiles, ReadCount};
use super::imported_notes::{ImportedNote, NoteImport};
use super::json_items::each_item;

/// The folder of the notes.
const FOLDER: &str = "Claude";
/// The folder of the projects in it.
const PROJECTS: &str = "Projects";
/// The heading of what the person said.
const PERSON: &str = "You";
/// The heading of what the model said.
const MODEL: &str = "Claude";
/// The message before the first one.
const NO_MESSAGE: &str = "00000000-0000-4000-8000-000000000000";

#[derive(Deserialize)]
struct Conversation {
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    created_at: Option<Value>,
    #[serde(default)]
    updated_at: Option<Value>,
    #[serde(default)]
    chat_messages: Option<Vec<Message>>,
    #[serde(default)]
    current_leaf_message_uuid: Option<String>,
    #[serde(default)]
    project: Option<Value>,
    /// What conversations of `ChatGPT` have in place of messages.
    #[serde(default)]
    mapping: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default)]
    sender: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    content: Option<Vec<Value>>,
    #[serde(default)]
    created_at: Option<Value>,
    #[serde(default)]
    parent_message_uuid: Option<String>,
    #[serde(default)]
    attachments: Option<Vec<Attachment>>,
    #[serde(default)]
    files: Option<Vec<Attachment>>,
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(default)]
    file_name: Option<String>,
    #[serde(default)]
    extracted_content: Option<String>,
}

#[derive(Deserialize)]
struct Project {
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    prompt_template: Option<String>,
    #[serde(default)]
    created_at: Option<Value>,
    #[serde(default)]
    updated_at: Option<Value>,
    #[serde(default)]
    docs: Option<Vec<Document>>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default)]
    filename: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    created_at: Option<Value>,
}

#[derive(Deserialize)]
struct Memories {
    #[serde(default)]
    conversations_memory: Option<String>,
    #[serde(default)]
    project_memories: Option<BTreeMap<String, Option<String>>>,
    #[serde(default)]
    memory_files: Option<Vec<IgnoredAny>>,
}

/// What a file of the export has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Projects,
    Memories,
    Conversations,
}

/// The projects that were read, by their ids.
#[derive(Default)]
struct Projects {
    /// The path of the note of each, and its name.
    notes: HashMap<String, (NotePath, String)>,
}

impl Projects {
    /// Returns the link to the note of a project.
    fn link(&self, id: &str) -> Option<Value> {
        let (path, _) = self.notes.get(id)?;
        Some(Value::from(format!("[[{}]]", path.as_str().trim_end_matches(".md"))))
    }
}

/// Reads an export into a plan.
///
/// # Errors
/// `Invalid`, naming the place, if it is none of Claude; those of [`NoteImport::take`].
pub(super) fn read(path: &Path, import: &mut NoteImport<'_>) -> Result<()> {
    let mut export = ExportFiles::open(path)?;
    let is_single = export.is_single();
    let mut files: Vec<(Kind, ExportFile)> = Vec::new();
    for file in export.list()? {
        match kind_of(&file, is_single) {
            Some(kind) => files.push((kind, file)),
            None if file.base_name() == "users.json" => {}
            None => import.leave_out("other file of the export", 1),
        }
    }
    if files.is_empty() {
        return Err(Error::invalid(format!("{} has no file conversations.json", path.display()))
            .with_hint("give the ZIP archive that Claude sent, or the file conversations.json, projects.json or memories.json"));
    }
    // Conversations and memories name the projects.
    files.sort_by(|one, other| (one.0, &one.1.name).cmp(&(other.0, &other.1.name)));
    let folder = import.folder(FOLDER);
    let total = files.iter().map(|(_, file)| file.size).sum();
    let count: ReadCount = export.count();
    let mut projects = Projects::default();
    for (kind, file) in &files {
        let place = export.place(file);
        export.read(file, |reader| match kind {
            Kind::Projects => each_item(reader, (&place, "project"), &count, &mut |project: Project| {
                import.tell(&count, total);
                take_project(project, &folder, &mut projects, import)
            }),
            Kind::Memories => each_item(reader, (&place, "account"), &count, &mut |memories: Memories| {
                import.tell(&count, total);
                take_memories(memories, &projects, import)
            }),
            Kind::Conversations => {
                each_item(reader, (&place, "conversation"), &count, &mut |conversation: Conversation| {
                    import.tell(&count, total);
                    take_conversation(conversation, &folder, &projects, import)
                })
            }
        })?;
    }
    Ok(())
}

/// Returns what a file has, by its name. A file that is given alone has conversations unless its name says something else.
fn kind_of(file: &ExportFile, is_single: bool) -> Option<Kind> {
    let name = file.base_name().to_ascii_lowercase();
    let is_json = name.ends_with(".json");
    let is_in = |folder: &str, alone: &str| {
        name == alone || (is_json && file.folder_name() == folder) || (is_single && name.contains(folder))
    };
    if file.name.starts_with("__MACOSX/") {
        None
    } else if is_in("projects", "projects.json") {
        Some(Kind::Projects)
    } else if is_in("memories", "memories.json") {
        Some(Kind::Memories)
    } else {
        (is_single || is_of_conversations(file)).then_some(Kind::Conversations)
    }
}

fn take_conversation(
    conversation: Conversation,
    folder: &str,
    projects: &Projects,
    import: &mut NoteImport<'_>,
) -> Result<()> {
    let Some(messages) = &conversation.chat_messages else {
        let is_other = conversation.mapping.is_some();
        let hint = if is_other {
            "name the source chatgpt for an export of ChatGPT"
        } else {
            "give an export of Claude"
        };
        return Err(
            Error::invalid("it has no `chat_messages`, so it is no conversation of Claude").with_hint(hint)
        );
    };
    let id = conversation.uuid.clone().ok_or_else(|| Error::invalid("it has no `uuid`"))?;
    let branch = branch_of(&conversation, messages)?;
    import.leave_out("message of another branch", messages.len().saturating_sub(branch.len()));
    let mut chat = ChatText::default();
    let mut first = None;
    for message in &branch {
        let speaker = match message.sender.as_deref() {
            Some("human" | "user") => PERSON,
            Some("assistant") => MODEL,
            _ => {
                import.leave_out("message of nobody", 1);
                continue;
            }
        };
        let text = text_of(message, import);
        if speaker == PERSON && first.is_none() {
            first = Some(text.clone());
        }
        chat.say(speaker, &text);
    }
    let Some(body) = chat.finish() else {
        import.leave_out("conversation without a message", 1);
        return Ok(());
    };
    let title = conversation.name.as_deref().map(one_line).filter(|title| !title.is_empty());
    let title = title
        .or_else(|| Some(one_line(&title_of(&first.unwrap_or_default()))))
        .filter(|title| !title.is_empty());
    let mut note = ImportedNote { id, folder: folder.to_owned(), title, body, ..ImportedNote::default() };
    note.properties.push(("type", Value::from("conversation")));
    let spoken = || branch.iter().filter_map(|message| moment(message.created_at.as_ref()?));
    let updated = conversation.updated_at.as_ref().and_then(moment);
    let created = conversation.created_at.as_ref().and_then(moment);
    note.add_time("created_at", created.or_else(|| spoken().min()).or(updated));
    note.add_time("updated_at", updated.or_else(|| spoken().max()));
    note.properties.extend(conversation.model.map(|model| ("model", Value::from(model))));
    let project = conversation.project.as_ref().and_then(|project| project.get("uuid")?.as_str());
    note.properties.extend(project.and_then(|id| projects.link(id)).map(|link| ("project", link)));
    import.take(note).map(drop)
}

/// Returns the messages of the branch that is shown. An export that does not say how they follow each other has them in order.
fn branch_of<'a>(conversation: &Conversation, messages: &'a [Message]) -> Result<Vec<&'a Message>> {
    let all = || messages.iter().collect();
    let by_id: HashMap<&str, &Message> =
        messages.iter().filter_map(|message| Some((message.uuid.as_deref()?, message))).collect();
    let current = conversation.current_leaf_message_uuid.as_deref().filter(|id| by_id.contains_key(id));
    let last = || {
        messages
            .iter()
            .enumerate()
            .max_by_key(|(at, message)| (message.created_at.as_ref().and_then(moment), *at))
    };
    let mut at = current.or_else(|| last().and_then(|(_, message)| message.uuid.as_deref()));
    let mut branch = Vec::new();
    let mut seen = HashSet::new();
    while let Some(id) = at.filter(|id| *id != NO_MESSAGE) {
        let Some(message) = by_id.get(id) else { return Ok(all()) };
        if !seen.insert(id) {
            return Err(Error::invalid("its messages follow each other in a circle"));
        }
        branch.push(*message);
        at = message.parent_message_uuid.as_deref();
        if at.is_none() && branch.len() < messages.len() {
            return Ok(all());
        }
    }
    branch.reverse();
    Ok(if branch.is_empty() { all() } else { branch })
}

/// Returns the text of a message, with files as their names.
fn text_of(message: &Message, import: &mut NoteImport<'_>) -> String {
    let mut texts: Vec<String> = Vec::new();
    for block in message.content.iter().flatten() {
        match block_text(block) {
            Ok(text) => texts.push(text),
            Err(why) => import.leave_out(why, 1),
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    if texts.is_empty() {
        texts.extend(message.text.clone());
    }
    for file in message.attachments.iter().flatten() {
        match (file.file_name.as_deref().filter(|name| !name.is_empty()), file.extracted_content.as_deref()) {
            // A long text that was pasted has no name.
            (None, Some(pasted)) => texts.push(code_block("", pasted)),
            (None, None) => {}
            (Some(name), pasted) => {
                import.leave_out(
                    "text of an attached file",
                    usize::from(pasted.is_some_and(|text| !text.is_empty())),
                );
                texts.push(file_line("File", name));
            }
        }
    }
    let names = message.files.iter().flatten().filter_map(|file| file.file_name.as_deref());
    texts.extend(names.filter(|name| !name.is_empty()).map(|name| file_line("File", name)));
    texts.join("\n\n")
}

/// Returns the text of a block, or why it is left out.
fn block_text(block: &Value) -> std::result::Result<String, String> {
    let said = |name: &str| block.get(name).and_then(Value::as_str);
    match said("type").unwrap_or("text") {
        "text" | "voice_note" => Ok(said("text").unwrap_or_default().to_owned()),
        "thinking" | "redacted_thinking" => Err("reasoning".to_owned()),
        "tool_use" => made_file(block).ok_or_else(|| "call of a tool".to_owned()),
        "tool_result" => Err("message of a tool".to_owned()),
        "token_budget" | "flag" => Err("message of the system".to_owned()),
        other => Err(format!("content of the type {}", one_line(other))),
    }
}

/// Returns the text of a file or artifact that the model makes.
fn made_file(call: &Value) -> Option<String> {
    let input = call.get("input")?;
    let said = |name: &str| input.get(name).and_then(Value::as_str);
    let (what, name, text) = match call.get("name").and_then(Value::as_str)? {
        "artifacts" => ("Artifact", said("title").unwrap_or("artifact"), said("content")?),
        "create_file" => ("File", said("path").unwrap_or("file"), said("file_text")?),
        _ => return None,
    };
    let text = if said("type") == Some("text/markdown") {
        text.to_owned()
    } else {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        code_block(said("language").unwrap_or(extension), text)
    };
    Some(format!("{}\n\n{text}", file_line(what, name)))
}

fn take_project(
    project: Project,
    folder: &str,
    projects: &mut Projects,
    import: &mut NoteImport<'_>,
) -> Result<()> {
    let (Some(id), Some(name)) = (project.uuid, project.name) else {
        return Err(Error::invalid("it has no `uuid` or no `name`, so it is no project of Claude")
            .with_hint("give an export of Claude"));
    };
    let text = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let (about, prompt) = (text(project.description), text(project.prompt_template));
    let documents = project.docs.unwrap_or_default();
    if about.is_none() && prompt.is_none() && documents.is_empty() {
        import.leave_out("project without a text", 1);
        return Ok(());
    }
    let title =
        Some(one_line(&name)).filter(|title| !title.is_empty()).unwrap_or_else(|| "Project".to_owned());
    let place = if folder.is_empty() { PROJECTS.to_owned() } else { format!("{folder}/{PROJECTS}") };
    let mut body = about.map(|about| format!("{}\n", about.trim())).unwrap_or_default();
    if let Some(prompt) = prompt {
        let gap = if body.is_empty() { "" } else { "\n" };
        body.push_str(&format!("{gap}## Instructions\n\n{}\n", prompt.trim()));
    }
    let mut note = ImportedNote {
        id: id.clone(),
        folder: place,
        title: Some(title.clone()),
        body,
        ..ImportedNote::default()
    };
    note.properties.push(("type", Value::from("project")));
    note.add_time("created_at", project.created_at.as_ref().and_then(moment));
    note.add_time("updated_at", project.updated_at.as_ref().and_then(moment));
    if let Some(path) = import.take(note)? {
        projects.notes.insert(id.clone(), (path, title));
    }
    let Some((path, _)) = projects.notes.get(&id).cloned() else { return Ok(()) };
    let inside = path.as_str().trim_end_matches(".md").to_owned();
    for (at, document) in documents.into_iter().enumerate() {
        let number = at + 1;
        let note = document_note(document, &inside, number)?;
        let link = projects.link(&id).map(|link| ("project", link));
        import
            .take(ImportedNote { properties: note.properties.into_iter().chain(link).collect(), ..note })?;
    }
    Ok(())
}

/// Makes the note of a document of a project.
fn document_note(document: Document, folder: &str, number: usize) -> Result<ImportedNote> {
    let (Some(id), Some(content)) = (document.uuid, document.content) else {
        return Err(Error::invalid(format!("its document {number} has no `uuid` or no `content`")));
    };
    let name = document.filename.unwrap_or_default();
    let name = one_line(name.rsplit(['/', '\\']).next().unwrap_or_default());
    let (stem, extension) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).unwrap_or((&name, ""));
    let is_text = matches!(extension.to_ascii_lowercase().as_str(), "" | "md" | "markdown" | "txt");
    let (front, body) = if is_text {
        let (front, body) = content.split_at_checked(frontmatter::read(&content).1).unwrap_or(("", &content));
        (front.to_owned(), body.to_owned())
    } else {
        (String::new(), format!("{}\n", code_block(extension, &content)))
    };
    let stem =
        Some(stem.to_owned()).filter(|stem| !stem.trim().is_empty()).unwrap_or_else(|| title_of(&body));
    let mut note = ImportedNote {
        id,
        folder: folder.to_owned(),
        stem: Some(stem),
        frontmatter: front,
        body,
        ..ImportedNote::default()
    };
    note.add_time("created_at", document.created_at.as_ref().and_then(moment));
    Ok(note)
}

/// Makes a memory of each paragraph and list item that Claude remembers. A headline is the category of what follows it.
fn take_memories(memories: Memories, projects: &Projects, import: &mut NoteImport<'_>) -> Result<()> {
    if memories.conversations_memory.is_none() && memories.project_memories.is_none() {
        return Err(Error::invalid("it has neither `conversations_memory` nor `project_memories`")
            .with_hint("give an export of Claude"));
    }
    import.leave_out("memory file", memories.memory_files.map_or(0, |files| files.len()));
    for (category, text) in facts_of(&memories.conversations_memory.unwrap_or_default()) {
        take_memory("memory", category, text, None, import)?;
    }
    for (project, text) in memories.project_memories.unwrap_or_default() {
        for (category, text) in facts_of(&text.unwrap_or_default()) {
            let link = projects.link(&project);
            take_memory(&format!("memory/{project}"), category, text, link, import)?;
        }
    }
    Ok(())
}

fn take_memory(
    of: &str,
    category: Option<String>,
    text: String,
    project: Option<Value>,
    import: &mut NoteImport<'_>,
) -> Result<()> {
    let core = import.upkeep().core;
    let digest = digest(&text);
    let mut note = ImportedNote {
        // A text that changes is another memory.
        id: format!("{of}/{}", digest.get(..16).unwrap_or(&digest)),
        folder: import.memory_folder(),
        title: Some(title_of(&text)),
        ..ImportedNote::default()
    };
    let kind = MemoryWeights::of(core).kinds().classify(&text).to_owned();
    note.properties.push(("type", Value::from(kind)));
    note.add_time("created_at", Some(core.clock.now()));
    note.properties.extend(category.map(|category| ("category", Value::from(category))));
    note.properties.extend(project.map(|project| ("project", project)));
    note.body = format!("{text}\n");
    import.take(note).map(drop)
}

/// Splits a text into paragraphs and list items, each with the headline above it.
fn facts_of(text: &str) -> Vec<(Option<String>, String)> {
    let mut facts = Vec::new();
    let mut category: Option<String> = None;
    let mut lines: Vec<&str> = Vec::new();
    let mut end = |lines: &mut Vec<&str>, category: &Option<String>| {
        let fact = lines.join("\n").trim().to_owned();
        lines.clear();
        if !fact.is_empty() {
            facts.push((category.clone(), fact));
        }
    };
    for line in text.lines() {
        let trimmed = line.trim();
        let bold = trimmed.strip_prefix("**").and_then(|rest| rest.trim_end_matches(':').strip_suffix("**"));
        let heading = trimmed.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim());
        let headline = heading.or_else(|| bold.filter(|bold| !bold.contains("**")));
        let item = ["- ", "* ", "• "].into_iter().find_map(|mark| line.strip_prefix(mark));
        if let Some(headline) = headline {
            end(&mut lines, &category);
            category = Some(one_line(headline.trim_end_matches(':'))).filter(|headline| !headline.is_empty());
        } else if trimmed.is_empty() {
            end(&mut lines, &category);
        } else if let Some(item) = item {
            end(&mut lines, &category);
            lines.push(item);
        } else {
            lines.push(line);
        }
    }
    end(&mut lines, &category);
    facts
}
