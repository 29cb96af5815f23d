//! Enforces what no compiler checks of the code: one owner for each engine, headers and sizes of files, a reason for each
//! dependency in docs/dev/decisions.md. Cycles are checked in a file below.
//!
//! The sources are read as text in which comments and literals are replaced by blanks, so that only code counts.

mod circles;
mod comments;
mod contributing;
mod sizes;
mod spec_references;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use crate::support::{crates, source_files};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The crates that alone depend on an engine, and may name its types; the empty name is that of the program. The crates of the
/// async runtime belong to the servers.
const OWNERS: [(&str, &str); 36] = [
    ("hayro-syntax", "attachment_text"),
    ("quick-xml", "attachment_text"),
    ("zip", "attachment_text|upkeep"),
    ("seccompiler", "base"),
    ("tantivy", "bm25"),
    ("rusqlite", "catalog"),
    ("usearch", "vectors"),
    ("rten-gemm", "encoder"),
    ("rten-simd", "encoder"),
    ("rten-tensor", "encoder"),
    ("yada", "encoder"),
    ("fastembed", "embed"),
    ("ort", "embed"),
    ("ureq", "http_client"),
    ("rustls-native-certs", "http_client"),
    ("webpki-root-certs", "http_client"),
    ("pulldown-cmark", "markdown"),
    ("granit-parser", "markdown"),
    ("postgres", "share"),
    ("rustls", "share"),
    ("tokio-postgres-rustls", "share"),
    ("jsonwebtoken", "mcp"),
    ("rmcp", "mcp"),
    ("ammonia", "web"),
    ("flate2", "web"),
    ("rustix", "base"),
    ("windows-sys", "base"),
    ("dunce", "base"),
    ("notify", "vault"),
    ("tokio", "http|mcp|web"),
    ("axum", "http|mcp|web"),
    ("hyper", "http"),
    ("hyper-util", "http"),
    ("schemars", "compat|mcp"),
    ("clap", ""),
    ("clap_mangen", ""),
];

/// The crates that others must not use, though no circle would follow: only `embed` knows the encoder, what the servers share
/// knows nothing of a vault, the servers know nothing of each other, and none knows where a vault comes from.
const FORBIDDEN: [(&str, &[&str]); 5] = [
    ("sidenote-share", &["http", "mcp", "web", "compat"]),
    ("sidenote-mcp", &["http", "web", "share"]),
    ("sidenote-web", &["http", "mcp", "share", "compat"]),
    ("sidenote-store", &["http"]),
    ("sidenote-http", &[""]),
];

/// More lines than this need a reason.
const LONGEST: usize = 900;

/// One source file.
struct Source {
    /// The path in the repository, with forward slashes.
    file: String,
    /// The path of the module, as if all crates were one.
    path: String,
    text: String,
    /// The text with blanks in place of comments and literals.
    code: String,
}

impl Source {
    fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        Self { file: format!("src/{path}"), code: code_of(&text), path, text }
    }

    /// Gives the modules from the crate's root to the file's own.
    fn modules(&self) -> Vec<&str> {
        let stem = self.path.trim_end_matches(".rs");
        stem.strip_suffix("/mod").unwrap_or(stem).split('/').collect()
    }

    fn layer(&self) -> &str {
        self.modules()[0]
    }

    /// Gives a position as compilers print it.
    fn place(&self, at: usize, what: impl Display) -> String {
        self.place_in_line(1 + self.code[..at].matches('\n').count(), what)
    }

    /// Gives a line as compilers print it.
    fn place_in_line(&self, line: usize, what: impl Display) -> String {
        format!("{}:{line}: {what}", self.file)
    }

    fn is_in(&self, module: &str) -> bool {
        let inner = self.path.strip_prefix(module);
        inner.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }

    /// Finds the places of a word, which is no part of a longer one.
    fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        let found = self.code.match_indices(word).map(|(at, _)| at);
        found.filter(move |&at| {
            let before = self.code[..at].chars().next_back();
            let behind = self.code[at + word.len()..].chars().next();
            !before.is_some_and(is_name) && !behind.is_some_and(is_name)
        })
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Blanks comments, strings and characters; line ends stay.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (token, blank) = match silent_len(rest) {
            Some(len) => (&rest[..len], true),
            None => (&rest[..c.len_utf8()], false),
        };
        if blank {
            // A blank for each byte, so that places are the same in both texts.
            code.extend(token.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        } else {
            code.push_str(token);
        }
        rest = &rest[token.len()..];
    }
    code
}

/// Measures the comment or literal that a text starts with, if it does.
fn silent_len(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment_len(rest));
    }
    let raw = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r');
    if let Some(body) = raw.map(|raw| raw.trim_start_matches('#')).filter(|body| body.starts_with('"')) {
        let opened = rest.len() - body.len();
        let close = format!("\"{}", "#".repeat(rest[..opened].matches('#').count()));
        let end = body[1..].find(&close).map_or(body.len(), |at| 1 + at + close.len());
        return Some(opened + end);
    }
    if rest.starts_with('"') {
        return Some(quoted_len(rest, '"'));
    }
    let body = rest.strip_prefix('\'')?;
    let first = body.chars().next()?;
    let is_character = first == '\\' || body[first.len_utf8()..].starts_with('\'');
    is_character.then(|| quoted_len(rest, '\''))
}

fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        let step = match rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (2, 1),
            [b'*', b'/', ..] => (2, -1),
            _ => (1, 0),
        };
        at += step.0;
        depth += step.1;
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted_len(rest: &str, sign: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == sign && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

fn sources() -> Vec<Source> {
    let files = source_files().into_iter();
    files.map(|file| Source { file: file.file, ..Source::new(file.path, file.text) }).collect()
}

/// Applies a rule to every file and fails with all violations.
#[track_caller]
fn check(rule: impl Fn(&Source) -> Vec<String>) {
    let found: Vec<String> = sources().iter().flat_map(rule).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// Reads the manifests of the crates, each with the folder of its crate; the one of the command line last.
fn manifests() -> Vec<(String, toml::Table)> {
    let folders = crates().into_iter().map(|name| (format!("crates/{name}/Cargo.toml"), name));
    let all = folders.chain([("Cargo.toml".to_owned(), String::new())]);
    all.map(|(path, name)| (name, read(&path).parse().unwrap())).collect()
}

/// Lists the dependencies of a manifest of a kind, those of one system included.
fn dependencies<'m>(manifest: &'m toml::Table, kind: &str) -> BTreeSet<&'m str> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let tables = targets.into_iter().flat_map(toml::Table::values).filter_map(toml::Value::as_table);
    let all = tables.chain([manifest]).filter_map(|table| table.get(kind)?.as_table());
    all.flat_map(|table| table.keys().map(String::as_str)).collect()
}

#[test]
fn a_crate_with_unit_tests_has_them_run() {
    for (name, manifest) in manifests() {
        let lib = manifest.get("lib").and_then(toml::Value::as_table);
        let is_run = lib.and_then(|lib| lib.get("test")).and_then(toml::Value::as_bool) != Some(false);
        let folder = format!("{name}/");
        let tested = sources()
            .into_iter()
            .find(|source| source.path.starts_with(&folder) && source.text.contains("#[test]"));
        assert!(is_run || name.is_empty() || tested.is_none(), "{name} has tests that nothing runs");
    }
}

#[test]
fn every_engine_has_one_owner() {
    for (engine, owner) in OWNERS {
        let manifests = manifests();
        let users =
            manifests.iter().filter(|(_, manifest)| dependencies(manifest, "dependencies").contains(engine));
        assert_eq!(users.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("|"), owner, "{engine}");
    }
}

#[test]
fn no_crate_uses_one_that_it_must_not_know() {
    let manifests = manifests();
    for (used, users) in FORBIDDEN {
        for (name, manifest) in manifests.iter().filter(|(name, _)| users.contains(&name.as_str())) {
            assert!(!dependencies(manifest, "dependencies").contains(used), "{name:?} uses {used}");
        }
    }
    let knows = |(_, manifest): &&(String, toml::Table)| {
        dependencies(manifest, "dependencies").contains("sidenote-encoder")
    };
    assert_eq!(manifests.iter().filter(knows).map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["embed"]);
}

/// The files that may have code for one operating system: the platform layer, and the signals, which belong to tokio.
const PLATFORM_FILES: [&str; 2] = ["base/platform", "http/shutdown"];

#[test]
fn code_for_one_operating_system_is_in_the_platform_layer() {
    let marks =
        ["cfg(unix", "cfg(windows", "cfg(target_os", "cfg(not(unix", "cfg(not(windows", "cfg!(", "std::os::"];
    check(|source| {
        let is_platform = PLATFORM_FILES.iter().any(|owner| source.is_in(owner));
        let found = marks.iter().filter(|_| !is_platform).flat_map(|mark| source.code.match_indices(mark));
        found.map(|(at, mark)| source.place(at, format!("{mark} belongs to the platform layer"))).collect()
    });
}

/// Gives the comment that a file opens with.
fn header(source: &Source) -> String {
    let lines = source.text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[test]
fn every_file_has_its_own_header() {
    let sources = sources();
    check(|source| {
        let said = header(source);
        let lines = said.lines().filter(|line| !line.is_empty()).count();
        // The documentation of a crate is its first page, and as long as that.
        let fits = (1..=4).contains(&lines) || source.file.ends_with("lib.rs") && lines > 0;
        let length = (!fits).then(|| format!("it opens with {lines} lines of `//!`, not 1 to 4"));
        let fault = comments::fault(&said).filter(|_| !source.file.ends_with("lib.rs"));
        let fault = fault.map(|what| format!("its header {what}: {said}"));
        let same = sources.iter().find(|other| other.file != source.file && header(other) == said);
        let same = same.map(|other| format!("its header is that of {}", other.file));
        [length, fault, same].into_iter().flatten().map(|what| source.place(0, what)).collect()
    });
}

#[test]
fn long_files_state_a_reason() {
    check(|source| {
        let lines = source.text.lines().count();
        let excused = source.text.lines().take(20).any(|line| line.starts_with("// size: "));
        let wrong = (lines > LONGEST && !excused)
            .then(|| source.place(0, format!("{lines} lines and no `// size:` that says why")));
        wrong.into_iter().collect()
    });
}

#[test]
fn no_todo_is_left() {
    check(|source| {
        let marks = ["todo", "unimplemented", "dbg"];
        let calls = marks.iter().flat_map(|mark| source.words(mark).map(move |at| (at, mark)));
        calls
            .filter(|(at, mark)| source.code[at + mark.len()..].starts_with('!'))
            .map(|(at, mark)| source.place(at, format!("{mark}! is left over")))
            .collect()
    });
}

#[test]
fn every_dependency_has_its_reason() {
    let manifests = manifests();
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let used = manifests.iter().flat_map(|(_, manifest)| kinds.map(|kind| dependencies(manifest, kind)));
    let used: BTreeSet<&str> = used.flatten().filter(|name| !name.starts_with("sidenote-")).collect();
    let document = read("docs/dev/decisions.md");
    let section = document.split("\n## ").find(|section| section.starts_with("Dependencies\n")).unwrap();
    let explained: BTreeSet<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next())
        .flat_map(|cell| cell.split('`').step_by(2).map(str::trim))
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(used, explained);
}

#[test]
fn the_program_and_the_doctor_name_the_same_repository() {
    let repository = |path: &str| {
        let manifest: toml::Table = read(path).parse().unwrap();
        manifest["package"].get("repository").cloned()
    };
    assert_eq!(
        repository("Cargo.toml"),
        repository("crates/upkeep/Cargo.toml"),
        "`doctor` names it, which is in the upkeep"
    );
}

/// Commands as messages name them.
const COMMANDS: [&str; 19] = [
    "backup",
    "backups",
    "check",
    "config",
    "handoff",
    "history",
    "index",
    "inspect",
    "list",
    "mcp",
    "memory",
    "model",
    "move",
    "properties",
    "read",
    "search",
    "tags",
    "undo",
    "watch",
];

/// Says whether a message names a command or a flag, which only a person at the command line has.
fn names_a_command(literal: &str) -> bool {
    let is_command = |rest: &str| COMMANDS.contains(&rest.split(|c: char| !is_name(c)).next().unwrap());
    let is_flag = |(at, _): (usize, &str)| {
        !literal[..at].ends_with(|c: char| c == '-' || is_name(c))
            && literal[at + 2..].starts_with(|c: char| c.is_ascii_lowercase())
    };
    literal.match_indices("sidenote ").any(|(at, word)| is_command(&literal[at + word.len()..]))
        || literal.match_indices("--").any(is_flag)
}

/// Lists the literals of a file that name a command, but for those that only the form for a person holds.
fn shown_to_agents(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < source.text.len() {
        let rest = &source.text[at..];
        let Some(len) = silent_len(rest) else {
            at += rest.chars().next().unwrap().len_utf8();
            continue;
        };
        let before = source.code[..at].trim_end().trim_end_matches("format!(").trim_end();
        let is_for_person = ["with_hints(", "with_advice(", "Wording::new(", "let person ="]
            .iter()
            .any(|form| before.ends_with(form));
        if rest.starts_with('"') && names_a_command(&rest[..len]) && !is_for_person {
            found.push(source.place(at, &rest[..len]));
        }
        at += len;
    }
    found
}

#[test]
fn text_for_agents_names_no_command() {
    // Text that only commands print: how a model is set, and parts of hints for a person; and what is written for git.
    let for_people = ["upkeep/models.rs", "upkeep/git_init.rs", "config/layers.rs"];
    let part = "\"--keep\"";
    let sources: Vec<Source> = sources();
    let told = sources
        .iter()
        // Arguments of git are no text.
        .filter(|source| !source.is_in("cli") && !source.is_in("git"))
        // No agent logs in or synchronises a folder.
        .filter(|source| !source.is_in("share/oauth") && !source.is_in("share/replica"))
        .filter(|source| !for_people.contains(&source.path.as_str()))
        .flat_map(shown_to_agents)
        .filter(|found| !found.ends_with(part));
    assert_eq!(told.collect::<Vec<_>>(), Vec::<String>::new());
    let example = |text: &str| shown_to_agents(&Source::new("vault/mod.rs", text)).len();
    assert_eq!(example(r#"e.with_hint("run: sidenote index")"#), 1);
    assert_eq!(example(r#"e.with_hint("give --index PATH")"#), 1);
    assert_eq!(example(r#"e.with_hints("a", "run: sidenote index")"#), 1);
    assert_eq!(example(r#"e.with_hints("run: sidenote index", "ask the user")"#), 0);
    assert_eq!(example(r#"e.with_hint("sidenote keeps --- all of it")"#), 0);
}
