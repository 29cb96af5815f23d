//! The export of ChatGPT: a list of conversations, each a tree of messages of which one branch is shown.
//!
//! `OpenAI` publishes no description. The fields are those that mitkury/chatgpt-export-parser
//! (docs/chatgpt-data-export-format.md) and the exporter pionxzh/chatgpt-exporter read: `mapping`, `current_node`, the roles
//! and content types, `is_visually_hidden_from_conversation`, and exports of 2026 with `conversations-000.json` and so on.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_change::naming::title_of;

use super::chat::{ChatText, code_block, file_line, moment, one_line};
use super::export_files::{ExportFile, ExportFiles};
use super::imported_notes::{ImportedNote, NoteImport};
use super::json_items::each_item;

/// The folder of the notes.
const FOLDER: &str = "ChatGPT";
/// The heading of what the person said.
const PERSON: &str = "You";
/// The heading of what the model said.
const MODEL: &str = "ChatGPT";
/// The marks around a citation that the page of `ChatGPT` replaces by a link.
const CITATION: (char, char) = ('\u{e200}', '\u{e201}');

#[derive(Deserialize)]
struct Conversation {
    #[serde(default)]
    conversation_id: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    create_time: Option<Value>,
    #[serde(default)]
    update_time: Option<Value>,
    #[serde(default)]
    mapping: Option<HashMap<String, Node>>,
    #[serde(default)]
    current_node: Option<String>,
    #[serde(default)]
    default_model_slug: Option<String>,
    /// What conversations of Claude have in its place.
    #[serde(default)]
    chat_messages: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Node {
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    children: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    author: Option<Author>,
    #[serde(default)]
    create_time: Option<Value>,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(default)]
    recipient: Option<String>,
}

#[derive(Deserialize)]
struct Author {
    #[serde(default)]
    role: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    content_type: Option<String>,
    #[serde(default)]
    parts: Option<Vec<Value>>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    language: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    is_visually_hidden_from_conversation: Option<bool>,
    #[serde(default)]
    model_slug: Option<String>,
    #[serde(default)]
    attachments: Option<Vec<Attachment>>,
    #[serde(default)]
    content_references: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

/// Reads an export into a plan.
///
/// # Errors
/// `Invalid`, naming the place, if it is none of `ChatGPT`; those of [`NoteImport::take`].
pub(super) fn read(path: &Path, import: &mut NoteImport<'_>) -> Result<()> {
    let mut export = ExportFiles::open(path)?;
    let mut files = export.list()?;
    if !export.is_single() {
        files.retain(is_of_conversations);
    }
    if files.is_empty() {
        return Err(Error::invalid(format!("{} has no file conversations.json", path.display()))
            .with_hint("give the ZIP archive that ChatGPT sent, or the file conversations.json"));
    }
    let folder = import.folder(FOLDER);
    let total = files.iter().map(|file| file.size).sum();
    let count = export.count();
    for file in &files {
        let place = export.place(file);
        export.read(file, |reader| {
            each_item(reader, (&place, "conversation"), &count, &mut |conversation: Conversation| {
                import.tell(&count, total);
                take(conversation, &folder, import)
            })
        })?;
    }
    Ok(())
}

/// Returns whether a file has conversations: `conversations.json`, or one of the parts of a large export.
pub(super) fn is_of_conversations(file: &ExportFile) -> bool {
    let name = file.base_name().to_ascii_lowercase();
    let part = name.strip_prefix("conversations").and_then(|rest| rest.strip_suffix(".json"));
    // macOS adds files of its own to archives.
    part.is_some_and(|part| {
        let number = part.strip_prefix(['-', '_']).unwrap_or(part);
        part.is_empty() || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    }) && !file.name.starts_with("__MACOSX/")
}

fn take(conversation: Conversation, folder: &str, import: &mut NoteImport<'_>) -> Result<()> {
    let Some(mapping) = &conversation.mapping else {
        let is_other = conversation.chat_messages.is_some();
        let hint = if is_other {
            "name the source claude for an export of Claude"
        } else {
            "give an export of ChatGPT"
        };
        return Err(
            Error::invalid("it has no `mapping`, so it is no conversation of ChatGPT").with_hint(hint)
        );
    };
    let id = conversation.conversation_id.clone().or_else(|| conversation.id.clone());
    let id = id.ok_or_else(|| Error::invalid("it has no `conversation_id`"))?;
    let branch = branch_of(&conversation, mapping)?;
    let said = mapping.values().filter(|node| node.message.as_ref().is_some_and(is_visible)).count();
    let shown = branch.iter().filter(|message| is_visible(message)).count();
    import.leave_out("message of another branch", said.saturating_sub(shown));
    let mut note = ImportedNote { id, folder: folder.to_owned(), ..ImportedNote::default() };
    let mut chat = ChatText::default();
    let mut first = None;
    let mut models: Vec<&str> = Vec::new();
    for message in &branch {
        let (speaker, text) = match said_by(message) {
            Ok(said) => said,
            Err(why) => {
                import.leave_out(why, 1);
                continue;
            }
        };
        if speaker == PERSON && first.is_none() {
            first = Some(text.clone());
        }
        let model = message.metadata.as_ref().and_then(|metadata| metadata.model_slug.as_deref());
        models.extend(model.filter(|model| speaker == MODEL && !models.contains(model)));
        chat.say(speaker, &text);
    }
    let Some(body) = chat.finish() else {
        import.leave_out("conversation without a message", 1);
        return Ok(());
    };
    if models.is_empty() {
        models.extend(conversation.default_model_slug.as_deref());
    }
    let title = conversation.title.as_deref().map(one_line).filter(|title| !title.is_empty());
    note.title = title
        .or_else(|| Some(one_line(&title_of(&first.unwrap_or_default()))))
        .filter(|title| !title.is_empty());
    note.body = body;
    note.properties.push(("type", Value::from("conversation")));
    let (created, updated) = times(&conversation, &branch);
    note.add_time("created_at", created);
    note.add_time("updated_at", updated);
    note.properties.extend(match models.as_slice() {
        [] => None,
        [one] => Some(("model", Value::from(*one))),
        several => Some(("model", Value::from(several.to_vec()))),
    });
    import.take(note).map(drop)
}

/// Returns when a conversation began and when it was last continued. Where it does not say when it began, its earliest message
/// does, and else its last change.
fn times(conversation: &Conversation, branch: &[&Message]) -> (Option<Timestamp>, Option<Timestamp>) {
    let spoken = || branch.iter().filter_map(|message| moment(message.create_time.as_ref()?));
    let updated = conversation.update_time.as_ref().and_then(moment);
    let created = conversation.create_time.as_ref().and_then(moment);
    let created = created.or_else(|| spoken().min()).or(updated);
    (created, updated.or_else(|| spoken().max()))
}

/// Returns the messages of the branch that is shown, the first one first.
fn branch_of<'a>(
    conversation: &Conversation,
    mapping: &'a HashMap<String, Node>,
) -> Result<Vec<&'a Message>> {
    let current = conversation.current_node.as_ref().filter(|id| mapping.contains_key(*id));
    let mut at = current.or_else(|| last_leaf(mapping));
    let mut seen = HashSet::new();
    let mut branch = Vec::new();
    while let Some((id, node)) = at.and_then(|id| mapping.get_key_value(id)) {
        if !seen.insert(id) {
            return Err(Error::invalid("its messages follow each other in a circle"));
        }
        branch.extend(&node.message);
        at = node.parent.as_ref();
    }
    branch.reverse();
    Ok(branch)
}

/// Returns the message without an answer that was written last.
fn last_leaf(mapping: &HashMap<String, Node>) -> Option<&String> {
    let is_leaf = |node: &Node| node.children.as_ref().is_none_or(Vec::is_empty);
    let time = |node: &Node| node.message.as_ref().and_then(|message| moment(message.create_time.as_ref()?));
    let leaves = mapping.iter().filter(|(_, node)| is_leaf(node));
    leaves.max_by_key(|(id, node)| (time(node), *id)).map(|(id, _)| id)
}

fn role(message: &Message) -> &str {
    message.author.as_ref().and_then(|author| author.role.as_deref()).unwrap_or("")
}

fn is_visible(message: &Message) -> bool {
    said_by(message).is_ok()
}

/// Returns who says a message and its text, or why it is left out.
fn said_by(message: &Message) -> std::result::Result<(&'static str, String), String> {
    let hidden = message.metadata.as_ref().and_then(|metadata| metadata.is_visually_hidden_from_conversation)
        == Some(true);
    if hidden {
        return Err("hidden message".to_owned());
    }
    let Some(content) = &message.content else { return Err("message without content".to_owned()) };
    let kind = content.content_type.as_deref().unwrap_or("text");
    let speaker = match role(message) {
        "user" => PERSON,
        "assistant" => MODEL,
        // Images that the model made come as a message of a tool.
        "tool"
            if kind == "multimodal_text"
                && parts(content).any(|part| part.get("asset_pointer").is_some()) =>
        {
            MODEL
        }
        "system" => return Err("message of the system".to_owned()),
        "tool" => return Err("message of a tool".to_owned()),
        _ => return Err("message of nobody".to_owned()),
    };
    let text = match kind {
        "text" | "multimodal_text" => text_of(message, content),
        "code" => code_of(message, content).ok_or("call of a tool")?,
        "thoughts" | "reasoning_recap" => return Err("reasoning".to_owned()),
        "user_editable_context" | "model_editable_context" => return Err("message of the system".to_owned()),
        other => match content.text.as_deref().or_else(|| parts(content).find_map(Value::as_str)) {
            Some(text) => text.to_owned(),
            None => return Err(format!("content of the type {}", one_line(other))),
        },
    };
    if text.trim().is_empty() {
        return Err("message without text".to_owned());
    }
    Ok((speaker, text))
}

fn parts(content: &Content) -> impl Iterator<Item = &Value> {
    content.parts.iter().flatten()
}

/// Returns the text of a message, with images and files as their names.
fn text_of(message: &Message, content: &Content) -> String {
    let attachments = || message.metadata.iter().flat_map(|metadata| metadata.attachments.iter().flatten());
    let mut named = HashSet::new();
    let mut texts: Vec<String> = Vec::new();
    for part in parts(content) {
        if let Some(text) = part.as_str() {
            texts.push(text.to_owned());
        } else if let Some(pointer) = part.get("asset_pointer").and_then(Value::as_str) {
            let id = pointer.rsplit('/').next().unwrap_or(pointer);
            let named_so = attachments().find(|file| file.id.as_deref() == Some(id));
            let what = if part.get("content_type").and_then(Value::as_str) == Some("audio_asset_pointer") {
                "Recording"
            } else {
                "Image"
            };
            named.insert(id);
            texts.push(file_line(what, named_so.and_then(|file| file.name.as_deref()).unwrap_or(id)));
        } else if let Some(text) = part.get("text").and_then(Value::as_str) {
            texts.push(text.to_owned());
        }
    }
    let others = attachments().filter(|file| !file.id.as_deref().is_some_and(|id| named.contains(id)));
    let files: Vec<String> =
        others.filter_map(|file| file.name.as_deref()).map(|name| file_line("File", name)).collect();
    texts.extend(files);
    texts.retain(|text| !text.trim().is_empty());
    with_citations(texts.join("\n\n"), message)
}

/// Replaces the marks of citations by the links that they stand for.
fn with_citations(mut text: String, message: &Message) -> String {
    let references =
        message.metadata.iter().flat_map(|metadata| metadata.content_references.iter().flatten());
    for reference in references {
        let said = |name: &str| reference.get(name).and_then(Value::as_str);
        let Some(mark) = said("matched_text").filter(|mark| mark.starts_with([CITATION.0, '【'])) else {
            continue;
        };
        let link = said("alt").map(str::to_owned).or_else(|| {
            let url = said("url")?;
            Some(format!("([{}]({url}))", said("title").map_or_else(|| url.to_owned(), one_line)))
        });
        text = text.replace(mark, &link.unwrap_or_default());
    }
    while let Some(start) = text.find(CITATION.0) {
        let rest = text.get(start..).unwrap_or_default();
        let end = rest.find(CITATION.1).map_or(CITATION.0.len_utf8(), |end| end + CITATION.1.len_utf8());
        text.replace_range(start..start + end, "");
    }
    text
}

/// Returns code that the model wrote for the person to see: what it has run, and the documents of the canvas. Other calls of
/// tools have none.
fn code_of(message: &Message, content: &Content) -> Option<String> {
    let code = content.text.as_deref()?;
    let language = content.language.as_deref().filter(|language| *language != "unknown").unwrap_or("");
    match message.recipient.as_deref().unwrap_or("all") {
        "all" => Some(code_block(language, code)),
        "python" => Some(code_block("python", code)),
        "canmore.create_textdoc" => {
            let document: Value = serde_json::from_str(code).ok()?;
            let said = |name: &str| document.get(name).and_then(Value::as_str);
            let text = said("content")?;
            let text = match said("type").and_then(|kind| kind.strip_prefix("code/")) {
                Some(language) => code_block(language, text),
                None => text.to_owned(),
            };
            Some(format!("{}\n\n{text}", file_line("Canvas", said("name").unwrap_or("document"))))
        }
        _ => None,
    }
}
