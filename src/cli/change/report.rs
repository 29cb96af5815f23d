//! The output of the commands that change notes: what changed, or the diff of a dry run.

use console::style;
use sidenote_markdown::edit::FileLocation;
use sidenote_markdown::unlinked_reference::UnlinkedReferenceKind;

use crate::cli::{CommandContext, output};
use crate::store::ChangeReply;

/// Formats what changed, one line for each file, or the diff of a dry run.
pub(in crate::cli) fn show_change(reply: &ChangeReply) -> String {
    if let Some(diff) = &reply.diff {
        return if diff.is_empty() { "nothing would change\n".to_owned() } else { coloured(diff) };
    }
    if !reply.applied {
        return "nothing to change\n".to_owned();
    }
    let mut out = String::new();
    for folder in &reply.plan.folders {
        out.push_str(&format!(
            "{} -> {}\n",
            output::plain(folder.from.as_str()),
            output::plain(folder.to.as_str())
        ));
    }
    let location = |location: &FileLocation| output::plain(&location.to_string());
    for change in &reply.plan.files {
        out.push_str(&match (&change.from, &change.to) {
            (None, Some(to)) => format!("{}\n", location(to)),
            (Some(from), None) => format!("{} removed\n", location(from)),
            (Some(from), Some(to)) if from != to => format!("{} -> {}\n", location(from), location(to)),
            (Some(from), _) => format!("{} changed\n", location(from)),
            (None, None) => String::new(),
        });
    }
    if let (made @ 1.., changed @ 1..) = reply.counts() {
        out.push_str(&format!("{} created, {changed} changed\n", output::count(made, "file")));
    }
    if let Some(id) = reply.commit.as_ref().and_then(|commit| commit.id.as_deref()) {
        out.push_str(&format!("committed as {}\n", id.get(..10).unwrap_or(id)));
    }
    out
}

/// Colours the lines of a unified diff.
pub(in crate::cli) fn coloured(diff: &str) -> String {
    let coloured_line = |line: &str| {
        let plain = output::plain(line);
        let styled = match line.as_bytes().first() {
            Some(b'+') => style(plain).green(),
            Some(b'-') => style(plain).red(),
            Some(b'@') => style(plain).cyan(),
            _ => style(plain),
        };
        format!("{styled}\n")
    };
    diff.lines().map(coloured_line).collect()
}

/// Prints to standard error what an operation left unchanged and what its reply warns of. JSON replies hold both.
pub(in crate::cli) fn print_remarks(context: &CommandContext, reply: &ChangeReply) {
    if context.out.is_json() {
        return;
    }
    for remark in &reply.plan.remarks {
        context.out.message(&output::plain(&remark.to_string()));
    }
    if reply.plan.remarks.iter().any(|remark| remark.message == UnlinkedReferenceKind::PartialProperty.why())
    {
        context.out.message(
            "hint: `sidenote move --partial-properties` updates links next to other text in a property",
        );
    }
    for notice in &reply.notices {
        context.out.message(&format!("notice: {}", output::plain(notice)));
    }
}
