//! Keeping private text and keys out of everything that is written.

use serde_json::Value;

use super::Store;
use super::change::Operation;
use super::edit::NoteEdit;
use crate::memory::private::{without_private, without_secrets};

impl Store {
    /// Takes private text out of what somebody wants written, and what looks like a key; gives how many keys went.
    pub(super) fn clean(&self, text: &mut String) -> usize {
        let kept = without_private(text);
        let (clean, count) =
            if self.config.privacy.redact { without_secrets(&kept) } else { (kept.as_ref().into(), 0) };
        if *clean != *text {
            *text = clean.into_owned();
        }
        count
    }

    pub(super) fn clean_value(&self, value: &mut Value) -> usize {
        match value {
            Value::String(text) => self.clean(text),
            Value::Array(items) => items.iter_mut().map(|item| self.clean_value(item)).sum(),
            Value::Object(map) => map.values_mut().map(|value| self.clean_value(value)).sum(),
            _ => 0,
        }
    }

    /// As [`Store::clean`], of all texts that an operation brings into notes.
    pub(super) fn clean_operation(&self, operation: &Operation) -> (Operation, usize) {
        let mut operation = operation.clone();
        let count = match &mut operation {
            Operation::New(new) => {
                let texts = [&mut new.title, &mut new.content].into_iter().chain(&mut new.tags);
                let texts = texts.chain(&mut new.category).map(|text| self.clean(text)).sum::<usize>();
                texts + new.properties.iter_mut().map(|(_, value)| self.clean_value(value)).sum::<usize>()
            }
            Operation::Edit(request) => match &mut request.edit {
                NoteEdit::Append(text, _)
                | NoteEdit::Prepend(text, _)
                | NoteEdit::Replace { new: text, .. } => self.clean(text),
                NoteEdit::Set(_, value) | NoteEdit::Add(_, value) => self.clean_value(value),
                NoteEdit::Tags { add, .. } => add.iter_mut().map(|tag| self.clean(tag)).sum(),
                NoteEdit::Unset(_) => 0,
            },
            Operation::Link(request) => request.text.iter_mut().map(|text| self.clean(text)).sum(),
            Operation::RenamePart(request) => self.clean(&mut request.new),
            Operation::Move(_)
            | Operation::RenameEverywhere(_)
            | Operation::Unlink(_)
            | Operation::Merge(_)
            | Operation::Extract(_)
            | Operation::Delete(_)
            | Operation::Restore(_) => 0,
        };
        (operation, count)
    }
}

/// Says how many keys were taken out, where any were.
pub(super) fn told(count: usize) -> Option<String> {
    let what = if count == 1 { "1 text that looks" } else { "texts that look" };
    let number = if count == 1 { String::new() } else { format!("{count} ") };
    (count > 0).then(|| {
        format!("{number}{what} like a key went out; privacy.redact = false in your own settings keeps such")
    })
}
