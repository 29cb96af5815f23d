//! `sidenote completions`, and shell completion: completes commands, and notes, tags, headings, folders and properties
//! from the index.
//!
//! The shell calls the program itself with `COMPLETE` set. On any error no completion is offered and nothing is printed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Arg, Args, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use sidenote_base::error::{Error, Result};
use sidenote_config::expand_home;

use super::{CommandContext, tree};
use crate::store::{Open, Store};

/// Print the completion script of a shell.
///
/// The script completes commands and flags, and notes, tags, headings, folders and properties of the vault.
#[derive(Debug, Args)]
#[command(after_help = "Load it once in each shell:
  bash  source <(sidenote completions bash)       in ~/.bashrc
  zsh   source <(sidenote completions zsh)        in ~/.zshrc
  fish  sidenote completions fish | source        in config.fish")]
pub(super) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// The environment variable that a shell sets to its name to ask for completions.
const VARIABLE: &str = "COMPLETE";
/// The environment variable in which our bash script passes the word as it was typed, with its quotes.
const TYPED: &str = "_SIDENOTE_TYPED";
/// The maximum number of candidates.
const MAX_CANDIDATES: usize = 200;

/// The kind of thing that an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompletionKind {
    Note,
    Tag,
    Heading,
    Folder,
    Property,
}

/// How a shell passes words, and takes candidates.
#[derive(Debug, Clone, Copy)]
struct ShellRules {
    /// A candidate is inserted as it is, so that special characters in it must be escaped.
    escapes: bool,
    /// A backslash in a word is a character like any other, as in paths of Windows.
    is_plain: bool,
}

impl ShellRules {
    fn of(shell: &OsStr) -> Self {
        Self { escapes: shell == "bash", is_plain: shell == "powershell" || shell == "elvish" }
    }
}

/// Prints completions if a shell asks for them. Returns whether one does.
pub(super) fn complete() -> bool {
    let Some(shell) = std::env::var_os(VARIABLE) else { return false };
    // The variable is gone when candidates are asked for.
    let rules = ShellRules::of(&shell);
    let here = std::env::current_dir().ok();
    let env = CompleteEnv::with_factory(|| with_completers(tree(), rules)).bin("sidenote");
    env.try_complete(std::env::args_os(), here.as_deref()).unwrap_or(true)
}

pub(super) fn run(context: &CommandContext, args: &CompletionsArgs) -> Result<()> {
    context.out.print(&script(&args.shell.to_string())?)
}

/// Returns the completion script of a shell.
fn script(shell: &str) -> Result<String> {
    let shells = Shells::builtins();
    let writer = shells.completer(shell).ok_or_else(|| {
        Error::invalid(format!("completion is not supported for {shell}"))
            .with_hint("use bash, zsh, fish, elvish or powershell")
    })?;
    let mut script = Vec::new();
    writer
        .write_registration(VARIABLE, "sidenote", "sidenote", "sidenote", &mut script)
        .map_err(|error| Error::internal("cannot write the completion script").with_source(error))?;
    let script = String::from_utf8_lossy(&script).into_owned();
    // Bash inserts a candidate as it is, so special characters in it must be escaped, but not between quotes.
    let request = format!("{VARIABLE}=\"bash\"");
    Ok(script.replacen(&request, &format!("{TYPED}=\"${{COMP_WORDS[COMP_CWORD]}}\" {request}"), 1))
}

/// Attaches a completer to each argument that names something in the vault.
fn with_completers(command: Command, rules: ShellRules) -> Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|arg| match completion_kind(&name, &arg) {
            Some(kind) => {
                arg.add(ArgValueCompleter::new(move |prefix: &OsStr| candidates(kind, prefix, rules)))
            }
            None => arg,
        })
        .mut_subcommands(|inner| with_completers(inner, rules))
}

/// Returns what an argument of a command names, judged by the name of the argument.
fn completion_kind(command: &str, arg: &Arg) -> Option<CompletionKind> {
    Some(match (command, arg.get_id().as_str()) {
        ("rename-tag", "old" | "new") | ("tag", "tags" | "remove") => CompletionKind::Tag,
        ("rename-property", "old" | "new") => CompletionKind::Property,
        ("rename-heading", "old") => CompletionKind::Heading,
        ("by-tags" | "search" | "list" | "ask-why" | "random" | "tasks" | "new" | "save", "tags") => {
            CompletionKind::Tag
        }
        ("list" | "new" | "random" | "tasks", "folder") => CompletionKind::Folder,
        ("move", "to") => CompletionKind::Folder,
        ("set" | "unset" | "add", "key") | ("list" | "random", "property") => CompletionKind::Property,
        ("read" | "append" | "prepend" | "extract", "section") => CompletionKind::Heading,
        ("path" | "move" | "rename", "from")
        | ("path", "to")
        | ("link" | "unlink", "a" | "b")
        | ("merge", "from" | "into") => CompletionKind::Note,
        (
            "restore" | "pin" | "unpin" | "vote" | "tier" | "explain" | "timeline" | "audit" | "forget",
            "name",
        ) => CompletionKind::Note,
        (_, "note" | "template") => CompletionKind::Note,
        _ => return None,
    })
}

/// Returns the candidates for a word that begins with `prefix`.
fn candidates(kind: CompletionKind, prefix: &OsStr, rules: ShellRules) -> Vec<CompletionCandidate> {
    let Some(prefix) = prefix.to_str() else { return Vec::new() };
    let typed = std::env::var(TYPED).unwrap_or_default();
    let escapes = rules.escapes && !typed.starts_with(['"', '\'']);
    let plain = if escapes { unescaped(prefix) } else { prefix.trim_start_matches(['"', '\'']).to_owned() };
    // The arguments of `tag` are +TAG and -TAG.
    let sign = if kind == CompletionKind::Tag {
        plain.get(..1).filter(|sign| matches!(*sign, "+" | "-" | "#"))
    } else {
        None
    };
    let sign = sign.unwrap_or("").to_owned();
    let wanted = plain.get(sign.len()..).unwrap_or("");
    let found = values(kind, wanted, rules).unwrap_or_default();
    let candidate = |value: String| {
        let value = format!("{sign}{value}");
        CompletionCandidate::new(if escapes { escaped(&value) } else { value })
    };
    found.into_iter().take(MAX_CANDIDATES).map(candidate).collect()
}

/// Returns the values that begin with `prefix`, from the index as it is, without a scan of the files.
fn values(kind: CompletionKind, prefix: &str, rules: ShellRules) -> Result<Vec<String>> {
    // In a folder that is not a vault yet, nothing is created.
    let store = Store::open(Open { vault: vault(rules), existing: true, ..Open::default() })?;
    let prefix_lowercase = prefix.to_lowercase();
    let has_prefix = |value: &str| value.to_lowercase().starts_with(&prefix_lowercase);
    let mut values = match kind {
        CompletionKind::Note => {
            let mut values: Vec<String> = store
                .reads()
                .paths_like(prefix, usize::MAX)?
                .into_iter()
                .filter(|path| path.ends_with(".md"))
                .collect();
            if !prefix.is_empty() {
                values.extend(store.reads().names_like(prefix, MAX_CANDIDATES)?);
            }
            values
        }
        CompletionKind::Tag => store.reads().tags()?.into_iter().map(|item| item.tag).collect(),
        CompletionKind::Property => {
            store.reads().properties()?.into_iter().map(|item| item.property).collect()
        }
        CompletionKind::Heading => note(&store, rules)
            .map(|note| store.reads().inspect(&note))
            .transpose()?
            .map_or_else(Vec::new, |note| note.headings.into_iter().map(|heading| heading.text).collect()),
        CompletionKind::Folder => {
            let paths = store.reads().paths_like("", usize::MAX)?;
            let folders = paths.iter().filter_map(|path| path.rsplit_once('/'));
            let mut folders: Vec<String> = folders.map(|(folder, _)| format!("{folder}/")).collect();
            folders.dedup();
            folders
        }
    };
    values.retain(|value| has_prefix(value));
    if kind != CompletionKind::Heading {
        values.sort();
    }
    values.dedup();
    Ok(values)
}

/// Returns the words of the command line that is completed, without the name of the program.
fn words(rules: ShellRules) -> Vec<String> {
    let words = std::env::args().skip_while(|word| word != "--").skip(2);
    words.map(|word| if rules.is_plain { word } else { unescaped(&word) }).collect()
}

/// Returns the vault that the command line or the environment names, if either does.
fn vault(rules: ShellRules) -> Option<PathBuf> {
    let words = words(rules);
    let after_flag = words.iter().position(|word| word == "--vault").and_then(|at| words.get(at + 1));
    let flag = after_flag
        .map(String::as_str)
        .or_else(|| words.iter().find_map(|word| word.strip_prefix("--vault=")));
    let variable = std::env::var("SIDENOTE_VAULT").ok().filter(|value| !value.is_empty());
    // The shell has not expanded ~ yet.
    Some(expand_home(Path::new(&flag.map(str::to_owned).or(variable)?)))
}

/// Finds the note on the command line: the first word that names one.
fn note(store: &Store, rules: ShellRules) -> Option<String> {
    words(rules).into_iter().skip(1).find(|word| !word.starts_with('-') && store.lookup().find(word).is_ok())
}

/// Removes the quotes and backslashes of a word of bash.
fn unescaped(word: &str) -> String {
    let mut plain = String::new();
    let mut chars = word.trim_matches(['"', '\'']).chars();
    while let Some(c) = chars.next() {
        plain.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    plain
}

/// Escapes the characters that bash treats specially.
fn escaped(value: &str) -> String {
    let mut out = String::new();
    for c in value.chars() {
        if !c.is_alphanumeric() && !matches!(c, '/' | '.' | '-' | '_' | '+' | ',' | ':' | '@' | '%') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
