//! The tool of `mem` that puts the links of a memory in order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sidenote_base::error::Result;
use sidenote_mcp::error_text::message_for_agent;
use sidenote_mcp::tool::Answer;
use sidenote_store::{Certainty, EditRequest, NoteEdit, Operation, RepairRequest, Store};

use super::{find_memory, link_request, text_of_memory};

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FixInput {
    /// The memory's id, title, or the slug of its title.
    memory_id: String,
}

#[derive(Debug, Default, Serialize)]
struct FixOutput {
    success: bool,
    id: String,
    /// The ids of the memories that it is linked to now.
    links: Vec<String>,
    /// Those of them to or from which a link was missing.
    recreated: Vec<String>,
    /// Ids in its property `links` that no memory has, and that were removed.
    removed: Vec<String>,
    /// Ids to which no link could be made.
    failed: Vec<String>,
    /// The number of links in its text that led nowhere and lead to the moved file now.
    repaired: usize,
    message: String,
}

pub(super) fn fix_links(store: &Store, input: FixInput) -> Result<Answer> {
    let behind = store.index().refresh()?;
    let memory = find_memory(store, &input.memory_id)?;
    // To an agent that knows of a part of the notes, and before everything is indexed, a hidden memory looks absent.
    let sees_all = store.repairs().sees_all() && behind == 0;
    let mut output = FixOutput { id: memory.id.clone(), ..FixOutput::default() };
    let mut notices = Vec::new();
    if sees_all {
        let (paths, apply) = (vec![memory.path.clone()], Some(Certainty::Certain));
        let request = RepairRequest { paths, apply, ..RepairRequest::default() };
        output.repaired = store.repairs().repair(&request)?.repaired;
    }
    let text = text_of_memory(store, memory.clone())?;
    let mut related = Vec::new();
    for id in store.recalls().related_ids(&text)? {
        match store.recalls().memory_by_id(&id) {
            Ok(Some(other)) if other.id != memory.id => related.push(other),
            Ok(Some(_)) => {}
            Ok(None) if sees_all && store.lookup().rows_with_id(&id)?.is_empty() => output.removed.push(id),
            Ok(None) => output.failed.push(id),
            Err(error) => {
                notices.push(format!("no link to {id}: {}", message_for_agent(&error, |_| false)));
                output.failed.push(id);
            }
        }
    }
    if !output.removed.is_empty() {
        let named = text.properties.get("links").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_left =
            |id: &Value| !id.as_str().is_some_and(|id| output.removed.iter().any(|gone| gone == id));
        let edit = NoteEdit::Set("links".to_owned(), named.into_iter().filter(is_left).collect());
        let request = EditRequest { note: memory.path.clone(), edit, expect: None };
        store.changes().change(&Operation::Edit(request), false)?;
    }
    for other in related {
        let request = link_request(store, &memory, &other, None);
        match store.changes().change(&Operation::Link(request), false) {
            Ok(done) if done.applied => output.recreated.push(other.id),
            Ok(_) => {}
            // A memory that cannot be linked does not keep the others from it.
            Err(error) => {
                notices.push(format!("no link to {}: {}", other.id, message_for_agent(&error, |_| false)));
                output.failed.push(other.id);
            }
        }
    }
    let text = text_of_memory(store, memory)?;
    output.links = store.recalls().linked_ids(&text)?;
    output.success = output.failed.is_empty();
    output.message = format!(
        "Link structure fixed for memory {:?} (ID: {}): {} linked anew, {} without a memory removed, {} repaired in the text, \
         {} failed",
        text.memory.title,
        output.id,
        output.recreated.len(),
        output.removed.len(),
        output.repaired,
        output.failed.len()
    );
    Ok(Answer::json(&output)?.with_notices(notices))
}
