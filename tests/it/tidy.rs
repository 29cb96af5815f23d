//! Enforces what ARCHITECTURE.md says of the code: the order of layers, one owner for each engine, headers and sizes of
//! files, a reason for each dependency in docs/dev/decisions.md. Cycles, comments, sizes and the map are checked in the
//! files below.
//!
//! The sources are read as text in which comments and literals are replaced by blanks, so that only code counts.

mod circles;
mod comments;
mod contributing;
mod map;
mod sizes;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use crate::support::source_files;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The layers; each may use itself and those before it.
const LAYERS: [&str; 24] = [
    "encoder",
    "wording",
    "platform",
    "error",
    "parallel",
    "safe_open",
    "atomic_file",
    "clock",
    "config",
    "http_client",
    "git",
    "text",
    "memory",
    "vault",
    "journal",
    "index",
    "search",
    "store",
    "share",
    "http",
    "mcp",
    "web",
    "cli",
    "main",
];

/// The manifests of the crates, the lower ones first.
const CRATES: [&str; 8] = [
    "encoder/Cargo.toml",
    "foundation/Cargo.toml",
    "store/Cargo.toml",
    "share/Cargo.toml",
    "http/Cargo.toml",
    "mcp/Cargo.toml",
    "web_server/Cargo.toml",
    "Cargo.toml",
];

/// Crates that only one module may name; a module is its file and the folder of the same name. The crates of the async
/// runtime belong to the servers.
const OWNERS: [(&str, &str); 32] = [
    ("tantivy", "index/bm25"),
    ("rusqlite", "index/catalog"),
    ("usearch", "index/vectors"),
    ("rayon", "index/embed/e5|parallel"),
    ("rten_gemm", "encoder/bert"),
    ("rten_simd", "encoder/bert/rows"),
    ("rten_tensor", "encoder/bert"),
    ("yada", "encoder/tokenizer"),
    ("fastembed", "index/embed/onnx"),
    ("ort", "index/embed/onnx"),
    ("ureq", "http_client"),
    ("rustls_native_certs", "http_client/authorities"),
    ("webpki_root_certs", "http_client/authorities"),
    ("pulldown_cmark", "text/markdown"),
    ("granit_parser", "text/frontmatter/yaml"),
    ("postgres", "share"),
    ("rustls", "share/postgres"),
    ("tokio_postgres_rustls", "share/postgres"),
    ("jsonwebtoken", "mcp/login"),
    ("rmcp", "mcp"),
    ("tokio", "http|mcp|web"),
    ("axum", "http|mcp|web"),
    ("hyper", "http"),
    ("hyper_util", "http"),
    ("schemars", "mcp"),
    ("ammonia", "web/sanitize"),
    ("flate2", "web"),
    ("rustix", "platform"),
    ("windows_sys", "platform/windows"),
    ("dunce", "platform/windows"),
    ("clap", "cli"),
    ("clap_mangen", "cli/man"),
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

    /// Lists the modules of the crate's root that the file names, and where.
    fn root_names(&self) -> Vec<(usize, &str)> {
        let root = "crate";
        let mut names = Vec::new();
        for at in self.words(root) {
            if let Some(path) = self.code[at + root.len()..].strip_prefix("::") {
                names.extend(first_names(path).into_iter().map(|name| (at, name)));
            }
        }
        let depth = self.modules().len();
        for at in self.words("super") {
            let path = self.code[at..].trim_start_matches("super::");
            let climbed = (self.code[at..].len() - path.len()) / "super::".len();
            if climbed >= depth {
                names.extend(first_names(path).into_iter().map(|name| (at, name)));
            }
        }
        names
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Gives the names that a path starts with: one, or one for each branch of `{…}`.
fn first_names(path: &str) -> Vec<&str> {
    let first = |text: &'_ str| text.find(|c| !is_name(c)).unwrap_or(text.len());
    let Some(group) = path.strip_prefix('{') else {
        return vec![&path[..first(path)]];
    };
    let (mut names, mut depth, mut start) = (Vec::new(), 1, 0);
    for (at, c) in group.char_indices() {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 || depth == 1 && c == ',' {
            let branch = group[start..at].trim_start();
            names.push(&branch[..first(branch)]);
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names.retain(|name| !name.is_empty());
    names
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

fn imports(source: &Source) -> Vec<String> {
    let rank = |name: &str| LAYERS.iter().position(|layer| *layer == name);
    if source.path == "lib.rs" {
        return Vec::new();
    }
    let Some(own) = rank(source.layer()) else {
        return vec![source.place(0, "this is in no layer")];
    };
    let wrong = source.root_names().into_iter().filter_map(|(at, name)| match rank(name) {
        None => Some(source.place(at, format!("{name} is no layer"))),
        Some(other) if other > own => {
            Some(source.place(at, format!("{} is below {name} and must not use it", source.layer())))
        }
        Some(_) => None,
    });
    wrong.collect()
}

#[test]
fn imports_point_to_lower_layers() {
    check(imports);
}

#[test]
fn the_crates_list_their_layers_in_order() {
    let listed = |library: &str| -> Vec<String> {
        let lines = read(library);
        let names = lines.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
        names.map(str::to_owned).collect()
    };
    let mut all = vec!["encoder".to_owned()];
    all.extend(listed("foundation/src/lib.rs"));
    all.extend(["store", "share", "http", "mcp", "web"].map(str::to_owned));
    all.extend(listed("src/lib.rs"));
    let layers: Vec<&str> = LAYERS.into_iter().filter(|layer| *layer != "main").collect();
    assert_eq!(all, layers);
}

#[test]
fn a_crate_depends_on_lower_ones_alone() {
    let names = [
        "sidenote-encoder",
        "sidenote-foundation",
        "sidenote-store",
        "sidenote-share",
        "sidenote-http",
        "sidenote-mcp",
        "sidenote-web",
    ];
    // Only an embedder knows the encoder. What the servers share knows nothing of the vault, the two servers know nothing of each other, and none knows where a
    // vault comes from.
    let unused = |path: &str, name: &str| match path {
        "foundation/Cargo.toml" => false,
        _ if name == "sidenote-encoder" => true,
        "http/Cargo.toml" => name == "sidenote-store" || name == "sidenote-share",
        "mcp/Cargo.toml" => name == "sidenote-share",
        "web_server/Cargo.toml" => name == "sidenote-mcp" || name == "sidenote-share",
        "Cargo.toml" => name == "sidenote-http",
        _ => false,
    };
    for (at, path) in CRATES.iter().enumerate() {
        let manifest: toml::Table = read(path).parse().unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap();
        let used: Vec<&str> = names.into_iter().filter(|name| dependencies.contains_key(*name)).collect();
        let lower: Vec<&str> = names[..at].iter().copied().filter(|name| !unused(path, name)).collect();
        assert_eq!(used, lower, "{path}");
    }
}

#[test]
fn every_engine_has_one_owner() {
    check(|source| {
        let foreign = OWNERS.iter().filter(|(_, owners)| !owners.split('|').any(|owner| source.is_in(owner)));
        foreign
            .flat_map(|(engine, owner)| {
                let wrong = source.words(engine);
                wrong.map(move |at| source.place(at, format!("{engine} belongs to {owner} alone")))
            })
            .collect()
    });
}

/// The files that may have code for one operating system: the platform layer, and the signals, which belong to tokio.
const PLATFORM_FILES: [&str; 2] = ["platform", "http/shutdown"];

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
        // The crate's own documentation is the map of its layers, and as long as that.
        let fits = (1..=4).contains(&lines) || source.path == "lib.rs" && lines > 0;
        let length = (!fits).then(|| format!("it opens with {lines} lines of `//!`, not 1 to 4"));
        let fault = comments::fault(&said).filter(|_| source.path != "lib.rs");
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
    let manifests: Vec<toml::Table> = CRATES.iter().map(|path| read(path).parse().unwrap()).collect();
    let targets = manifests.iter().filter_map(|manifest| manifest.get("target")?.as_table());
    let tables = targets.flat_map(toml::Table::values).filter_map(toml::Value::as_table);
    let used: BTreeSet<&str> = manifests
        .iter()
        .chain(tables)
        .flat_map(|table| {
            ["dependencies", "dev-dependencies", "build-dependencies"].map(|kind| table.get(kind))
        })
        .flatten()
        .filter_map(toml::Value::as_table)
        .flat_map(|table| table.keys().map(String::as_str))
        .filter(|name| !name.starts_with("sidenote-"))
        .collect();
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
fn the_program_and_the_store_name_the_same_repository() {
    let repository = |path: &str| {
        let manifest: toml::Table = read(path).parse().unwrap();
        manifest["package"].get("repository").cloned()
    };
    assert_eq!(
        repository("Cargo.toml"),
        repository("store/Cargo.toml"),
        "`doctor` names it, which is in the store"
    );
}

fn check_names(path: &str, text: &str, expected: &[&str]) {
    let source = Source::new(path, text);
    let names: Vec<&str> = source.root_names().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, expected, "in {text:?}");
}

#[test]
fn crate_paths_are_found_only_in_code() {
    check_names(
        "store/read/list.rs",
        "use crate::index::Index; fn f(x: crate::text::Span) {}",
        &["index", "text"],
    );
    check_names("store/read/list.rs", "use crate::{cli::{a, b}, mcp, text::*};", &["cli", "mcp", "text"]);
    check_names("store/read.rs", "use super::Store; use super::super::cli::run;", &["cli"]);
    check_names("store/mod.rs", "use super::mcp::Server;", &["mcp"]);
    check_names("text/markdown/nesting.rs", "use super::super::path;", &[]);
    check_names("main.rs", "fn main() { crate::cli::main() }", &["cli"]);
    check_names("text/path.rs", "//! See crate::cli.\n/* crate::mcp /* and */ crate::cli */", &[]);
    check_names("text/path.rs", r##"let s = "crate::cli \" crate::cli"; r#"crate::"mcp"#; "##, &[]);
    check_names(
        "text/path.rs",
        r"let c = ['\'', '/', '/']; fn f<'a>(x: &'a crate::error::Error) {}",
        &["error"],
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
    let for_people = ["store/upkeep/models.rs", "store/upkeep/git_init.rs", "config.rs"];
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
