//! Shell completion: completes notes, tags, headings, folders and properties from the index.
//!
//! The shell calls the program itself with `COMPLETE` set. On any error no completion is offered and nothing is printed.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;

use super::tree;
use crate::error::{Error, Result};
use crate::store::{Open, Store};

/// The variable by which a shell asks for completions: its name.
const VARIABLE: &str = "COMPLETE";
/// The variable by which our bash script tells the word as it was typed, with its quotes.
const TYPED: &str = "_SIDENOTE_TYPED";
/// More candidates than this help nobody.
const MAX_CANDIDATES: usize = 200;

/// What an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompletionKind {
    Note,
    Tag,
    Heading,
    Folder,
    Property,
}

/// Answers a shell that asks for completions; says whether one did.
pub(super) fn answer() -> bool {
    let Some(shell) = std::env::var_os(VARIABLE) else { return false };
    let is_bash = shell == "bash";
    let here = std::env::current_dir().ok();
    let env = CompleteEnv::with_factory(|| with_completers(tree(), is_bash)).bin("sidenote");
    env.try_complete(std::env::args_os(), here.as_deref()).unwrap_or(true)
}

/// Writes the script that a shell loads once.
pub(super) fn script(shell: &str) -> Result<String> {
    let shells = Shells::builtins();
    let writer = shells.completer(shell).ok_or_else(|| {
        Error::invalid(format!("there are no completions for {shell}"))
            .with_hint("bash, zsh, fish, elvish and powershell can be completed")
    })?;
    let mut script = Vec::new();
    writer
        .write_registration(VARIABLE, "sidenote", "sidenote", "sidenote", &mut script)
        .map_err(|error| Error::internal("the script cannot be written").with_source(error))?;
    let script = String::from_utf8_lossy(&script).into_owned();
    // Bash inserts a candidate as it is, so that signs in it must be escaped, but not between quotes.
    let asks = format!("{VARIABLE}=\"bash\"");
    Ok(script.replacen(&asks, &format!("{TYPED}=\"${{COMP_WORDS[COMP_CWORD]}}\" {asks}"), 1))
}

/// Tells every argument of every command what completes it.
fn with_completers(command: Command, is_bash: bool) -> Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|arg| match named(&name, &arg) {
            Some(what) => arg.add(ArgValueCompleter::new(move |begun: &OsStr| offered(what, begun, is_bash))),
            None => arg,
        })
        .mut_subcommands(|inner| with_completers(inner, is_bash))
}

/// Says what an argument of a command names, by the names that the commands give their arguments.
fn named(command: &str, arg: &Arg) -> Option<CompletionKind> {
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
        ("path" | "move", "from")
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

/// Gives the candidates for a word that was begun.
fn offered(what: CompletionKind, begun: &OsStr, is_bash: bool) -> Vec<CompletionCandidate> {
    let Some(begun) = begun.to_str() else { return Vec::new() };
    let typed = std::env::var(TYPED).unwrap_or_default();
    let escapes = is_bash && !typed.starts_with(['"', '\'']);
    let plain = if escapes { unescaped(begun) } else { begun.trim_start_matches(['"', '\'']).to_owned() };
    // `tag` is given +TAG and -TAG.
    let sign = if what == CompletionKind::Tag {
        plain.get(..1).filter(|sign| matches!(*sign, "+" | "-" | "#"))
    } else {
        None
    };
    let sign = sign.unwrap_or("").to_owned();
    let wanted = plain.get(sign.len()..).unwrap_or("");
    let found = values(what, wanted).unwrap_or_default();
    let candidate = |value: String| {
        let value = format!("{sign}{value}");
        CompletionCandidate::new(if escapes { escaped(&value) } else { value })
    };
    found.into_iter().take(MAX_CANDIDATES).map(candidate).collect()
}

/// Lists the values that begin with a text, as the index knows them without a look at the files.
fn values(what: CompletionKind, begun: &str) -> Result<Vec<String>> {
    // Nothing is made in a folder that nobody made a vault of.
    let store = Store::open(Open { vault: vault(), existing: true, ..Open::default() })?;
    let wanted = begun.to_lowercase();
    let begins = |value: &str| value.to_lowercase().starts_with(&wanted);
    let mut values = match what {
        CompletionKind::Note => {
            let mut values: Vec<String> = store
                .reads()
                .paths_like(begun, usize::MAX)?
                .into_iter()
                .filter(|path| path.ends_with(".md"))
                .collect();
            if !begun.is_empty() {
                values.extend(store.reads().names_like(begun, MAX_CANDIDATES)?);
            }
            values
        }
        CompletionKind::Tag => store.reads().tags()?.into_iter().map(|item| item.tag).collect(),
        CompletionKind::Property => {
            store.reads().properties()?.into_iter().map(|item| item.property).collect()
        }
        CompletionKind::Heading => note(&store)
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
    values.retain(|value| begins(value));
    if what != CompletionKind::Heading {
        values.sort();
    }
    values.dedup();
    Ok(values)
}

/// Gives the words of the command line that is being completed, without the program's own.
fn words() -> Vec<String> {
    let words = std::env::args().skip_while(|word| word != "--").skip(2);
    words.map(|word| unescaped(&word)).collect()
}

/// Gives the vault that the command line names; else it is found as ever.
fn vault() -> Option<PathBuf> {
    let words = words();
    let behind = words.iter().position(|word| word == "--vault").and_then(|at| words.get(at + 1));
    let named =
        behind.map(String::as_str).or_else(|| words.iter().find_map(|word| word.strip_prefix("--vault=")));
    let set = std::env::var("SIDENOTE_VAULT").ok().filter(|set| !set.is_empty());
    let path = named.map(str::to_owned).or(set)?;
    // The shell has not expanded it yet.
    let home =
        path.strip_prefix("~/").and_then(|rest| Some(PathBuf::from(std::env::var_os("HOME")?).join(rest)));
    Some(home.unwrap_or_else(|| PathBuf::from(path)))
}

/// Finds the note that the command line names: the first word that one answers to.
fn note(store: &Store) -> Option<String> {
    words().into_iter().skip(1).find(|word| !word.starts_with('-') && store.lookup().find(word).is_ok())
}

/// Takes a word as bash holds it apart from its quotes and backslashes.
fn unescaped(word: &str) -> String {
    let mut plain = String::new();
    let mut signs = word.trim_matches(['"', '\'']).chars();
    while let Some(sign) = signs.next() {
        plain.extend(if sign == '\\' { signs.next() } else { Some(sign) });
    }
    plain
}

/// Puts a backslash before every sign that means something to bash.
fn escaped(value: &str) -> String {
    let mut out = String::new();
    for sign in value.chars() {
        if !sign.is_alphanumeric() && !matches!(sign, '/' | '.' | '-' | '_' | '+' | ',' | ':' | '@' | '%') {
            out.push('\\');
        }
        out.push(sign);
    }
    out
}
