//! Removes private passages and secrets from operations before they are planned.

use sidenote_open_vault::redaction::Cleaned;

use crate::Changes;
use crate::edit::NoteEdit;
use crate::operation::Operation;

impl Changes<'_> {
    /// Removes private passages and secrets from all texts of an operation.
    pub fn clean_operation(&self, operation: &Operation) -> (Operation, Cleaned) {
        let mut operation = operation.clone();
        let cleaned = match &mut operation {
            Operation::New(new) => {
                let texts = [&mut new.title, &mut new.content].into_iter().chain(&mut new.tags);
                let texts = texts.chain(&mut new.category).chain(&mut new.note_type).chain(&mut new.folder);
                let mut sum: Cleaned = texts.map(|text| self.core.clean(text)).sum();
                for (name, value) in &mut new.properties {
                    sum += self.core.clean(name);
                    sum += self.core.clean_value(value);
                }
                sum
            }
            Operation::Edit(request) => self.clean_edit(&mut request.edit),
            Operation::EditMany(requests) => {
                requests.iter_mut().map(|request| self.clean_edit(&mut request.edit)).sum()
            }
            Operation::Revise(request) => {
                let texts = request.title.iter_mut().chain(&mut request.content).chain(&mut request.category);
                let texts = texts.chain(request.tags.iter_mut().flatten());
                let mut sum: Cleaned = texts.map(|text| self.core.clean(text)).sum();
                for (name, value) in &mut request.properties {
                    sum += self.core.clean(name);
                    sum += self.core.clean_value(value);
                }
                sum
            }
            Operation::Link(request) => request.text.iter_mut().map(|text| self.core.clean(text)).sum(),
            Operation::RenamePart(request) => self.core.clean(&mut request.new),
            Operation::Move(request) => self.core.clean(&mut request.to),
            Operation::RenameEverywhere(request) => self.core.clean(&mut request.new),
            Operation::Extract(request) => self.core.clean(&mut request.title),
            Operation::Unlink(_) | Operation::Merge(_) | Operation::Delete(_) | Operation::Restore(_) => {
                Cleaned::default()
            }
        };
        (operation, cleaned)
    }

    fn clean_edit(&self, edit: &mut NoteEdit) -> Cleaned {
        match edit {
            NoteEdit::Append(text, _)
            | NoteEdit::Prepend(text, _)
            | NoteEdit::ReplaceSection(_, text)
            | NoteEdit::ReplacePattern { new: text, .. }
            | NoteEdit::Replace { new: text, .. } => self.core.clean(text),
            NoteEdit::Set(name, value) | NoteEdit::Add(name, value) => {
                [self.core.clean(name), self.core.clean_value(value)].into_iter().sum()
            }
            NoteEdit::Tags { add, .. } => add.iter_mut().map(|tag| self.core.clean(tag)).sum(),
            // Who edits the whole source sees what is in it, as in any other editor.
            NoteEdit::Unset(_) | NoteEdit::Task { .. } | NoteEdit::Source(_) => Cleaned::default(),
        }
    }
}
