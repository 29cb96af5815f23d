//! The commands that `sidenote --help` shows, in groups. The others work the same, and the manual pages describe them.

use clap::Command;

use super::terminal;

/// The groups, with the names of their commands.
const GROUPS: [(&str, &[&str]); 9] = [
    ("Find", &["search", "list", "recent", "tags", "tasks", "related"]),
    ("Read", &["read", "links", "backlinks", "history"]),
    ("Write", &["new", "edit", "append", "set", "tag", "task", "link", "extract", "merge"]),
    ("Move and undo", &["move", "rename", "delete", "restore", "undo", "redo"]),
    ("Memory", &["memory", "handoff"]),
    ("Git", &["git", "conflicts"]),
    ("Agents and page", &["mcp", "hook", "web"]),
    ("Vault", &["index", "status", "check", "repair", "backup"]),
    ("Program", &["config", "doctor", "team"]),
];

/// The width of the list. Terminals have at least so many columns.
const COLUMNS: usize = 80;

/// Gives the program help in which the commands are in groups.
pub(super) fn grouped(root: Command) -> Command {
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    for (group, names) in GROUPS {
        text.push_str(&format!("\n{group}:\n"));
        // A program that was built without a part of it has not all commands.
        for (name, command) in names.iter().filter_map(|name| Some((name, root.find_subcommand(name)?))) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let start = width + 4;
            let about = terminal::wrap(&about, COLUMNS - start).join(&format!("\n{}", " ".repeat(start)));
            text.push_str(&format!("  {name:width$}  {about}\n"));
        }
    }
    text.push_str("\n`sidenote COMMAND --help` describes a command, and `sidenote man` all of them.\n");
    text.push_str("\nGlobal options:\n{options}{after-help}");
    root.help_template(text)
}
