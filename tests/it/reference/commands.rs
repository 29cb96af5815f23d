//! `commands.md` and the manual pages, out of the command tree.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use clap::{Arg, ArgAction, Command};
use sidenote::cli;

use super::{MADE, check_page, code, prose, sentence};
use crate::support::{TestVault, stderr, stdout};

/// Gives the tree with everything that clap adds to it.
pub(super) fn tree() -> Command {
    let mut root = cli::tree().disable_help_subcommand(true);
    root.build();
    root
}

/// Lists the commands that are not hidden, each before those below it, with its words: `memory save`.
pub(super) fn commands(root: &Command) -> Vec<(String, &Command)> {
    fn add<'a>(above: &str, command: &'a Command, found: &mut Vec<(String, &'a Command)>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let words = format!("{above} {}", inner.get_name()).trim().to_owned();
            found.push((words.clone(), inner));
            add(&words, inner, found);
        }
    }
    let mut found = Vec::new();
    add("", root, &mut found);
    found
}

/// Lists the arguments that are a command's own.
fn own(command: &Command) -> Vec<&Arg> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !arg.is_global_set())
        .filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version"))
        .collect()
}

/// Names an argument as it is typed: `-n, --limit <N>`.
fn typed(arg: &Arg) -> String {
    let mut names: Vec<String> = arg.get_short().iter().map(|short| format!("-{short}")).collect();
    names.extend(arg.get_long().map(|long| format!("--{long}")));
    let takes = !matches!(
        arg.get_action(),
        ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count | ArgAction::Help | ArgAction::Version
    );
    let values: Vec<&str> =
        arg.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
    let values = if values.is_empty() { arg.get_id().as_str().to_uppercase() } else { values.join(" ") };
    let many = arg.get_num_args().is_some_and(|number| number.max_values() > 1);
    let values = if many { format!("{values}…") } else { values };
    match names.is_empty() {
        true => values,
        false if !takes => names.join(", "),
        false if arg.get_num_args().is_some_and(|number| number.min_values() == 0) => {
            format!("{}[={values}]", names.join(", "))
        }
        false => format!("{} {values}", names.join(", ")),
    }
}

/// Says what an argument means, with its values, default and variable.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut meaning = prose(&sentence(&help));
    let shown = |values: &[String]| values.iter().map(|value| code(value)).collect::<Vec<_>>().join(", ");
    let is_flag = !arg.get_action().takes_values();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && !is_flag)
        .map(|value| value.get_name().to_owned())
        .collect();
    if !values.is_empty() && !arg.is_hide_possible_values_set() {
        write!(meaning, " One of {}.", shown(&values)).unwrap();
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if !defaults.is_empty() && !is_flag && !arg.is_hide_default_value_set() {
        write!(meaning, " Default: {}.", shown(&defaults)).unwrap();
    }
    if let Some(variable) = arg.get_env() {
        write!(meaning, " Environment: {}.", code(&variable.to_string_lossy())).unwrap();
    }
    if matches!(arg.get_action(), ArgAction::Append) && !arg.is_positional() {
        meaning.push_str(" May be repeated.");
    }
    meaning.trim().to_owned()
}

/// Writes a table of arguments; nothing where there are none.
fn table(title: &str, args: &[&Arg]) -> String {
    if args.is_empty() {
        return String::new();
    }
    let mut table = format!("| {title} | Meaning |\n| --- | --- |\n");
    for arg in args {
        let is_asked = arg.is_required_set() && !arg.is_positional();
        let required = if is_asked { " (required)" } else { "" };
        writeln!(table, "| {}{required} | {} |", code(&typed(arg)), meaning(arg)).unwrap();
    }
    table.push('\n');
    table
}

/// Writes the text after a command's options in `--help`, mostly examples.
fn after(command: &Command) -> String {
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    let Some(after) = after.map(|after| after.to_string()) else { return String::new() };
    format!("```text\n{}\n```\n\n", after.trim_end())
}

/// Writes one command.
fn section(words: &str, command: &Command) -> String {
    let level = "#".repeat(2 + words.split(' ').count().min(2) - 1);
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
    let about = about.unwrap_or_default();
    let paragraphs: Vec<String> = about.split("\n\n").map(|paragraph| prose(&sentence(paragraph))).collect();
    let usage = command.clone().render_usage().to_string();
    let usage =
        usage.trim_start_matches("Usage: ").lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
    let (arguments, options): (Vec<&Arg>, Vec<&Arg>) =
        own(command).into_iter().partition(|arg| arg.is_positional());
    let mut aliases: Vec<&str> = command.get_visible_aliases().collect();
    aliases.sort_unstable();
    let aliases = match aliases.is_empty() {
        true => String::new(),
        false => format!("Also called {}.\n\n", aliases.join(", ")),
    };
    format!(
        "{level} {words}\n\n{}\n\n```text\n{usage}\n```\n\n{aliases}{}{}{}",
        paragraphs.join("\n\n"),
        table("Argument", &arguments),
        table("Option", &options),
        after(command)
    )
}

#[test]
fn commands_of_the_reference_are_those_of_the_program() {
    let root = tree();
    let all = commands(&root);
    assert!(all.len() >= 80, "only {} commands were found", all.len());
    let mut page = format!(
        "# Commands\n\n{MADE}\n\nThis page says what `sidenote COMMAND --help` says. `NOTE` is a path, id, title, \
         alias, file name or `[[wikilink]]`. `sidenote man --dir FOLDER` writes the same as manual pages.\n\n"
    );
    for (words, command) in &all {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let anchor = words.replace(' ', "-");
        writeln!(page, "- [`{words}`](#{anchor}): {}", prose(&sentence(&about))).unwrap();
    }
    page.push('\n');
    let global: Vec<&Arg> =
        root.get_arguments().filter(|arg| arg.is_global_set() && !arg.is_hide_set()).collect();
    assert!(global.len() >= 6, "only {} options of every command were found", global.len());
    page.push_str("## Options of every command\n\n");
    page.push_str(&table("Option", &global));
    for (words, command) in &all {
        page.push_str(&section(words, command));
    }
    check_page("commands.md", &format!("{}\n", page.trim_end()));
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let vault = TestVault::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let done = vault.run(&["man", "--dir", pages.to_str().unwrap(), "--json"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let listed: Vec<String> = serde_json::from_str(&stdout(&done)).unwrap();
    let root = tree();
    let mut expected: BTreeSet<String> =
        commands(&root).iter().map(|(words, _)| format!("sidenote-{}.1", words.replace(' ', "-"))).collect();
    expected.insert("sidenote.1".to_owned());
    let written: BTreeSet<String> = fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(written, expected);
    assert_eq!(listed.len(), expected.len());
    let page = fs::read_to_string(pages.join("sidenote-memory-save.1")).unwrap();
    for part in [".TH sidenote-memory-save 1", "\\fB\\-\\-title\\fR", "\\fB\\-\\-vault\\fR"] {
        assert!(page.contains(part), "{part} is not in:\n{page}");
    }
    assert!(stdout(&vault.run(&["man"])).contains(".TH sidenote 1"));
}
