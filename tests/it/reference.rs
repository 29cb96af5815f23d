//! The reference part of the manual, `docs/src/reference/`: each page that the program knows is made here out of the
//! program's own data and compared with the file, so that no command, flag, setting, code, reply or tool is missing.
//!
//! `SIDENOTE_ACCEPT=1` (`just reference`) writes the files instead.

mod commands;
mod json;
mod mcp_tools;
mod settings;

use std::fmt::Write as _;
use std::fs;

use sidenote::base::error::ErrorKind;
use sidenote::cli::{self, EXIT_CODES};
use sidenote::search::query_parser::OPERATORS;
use sidenote::store::{PROBLEM_CODES, ProblemScope};
use similar::TextDiff;

use crate::support::{TestVault, repository, say, source_files, stderr, stdout};

/// The comment below the title of each generated page.
const MADE: &str = "<!-- Made by tests/it/reference.rs; `just reference` writes it anew. -->";

/// Compares a page with its file, or writes it.
#[track_caller]
fn check_page(name: &str, page: &str) {
    let path = repository().join("docs/src/reference").join(name);
    let there = fs::read_to_string(&path).unwrap_or_default();
    if there == page {
        return;
    }
    if std::env::var_os("SIDENOTE_ACCEPT").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, page).unwrap();
        say(&format!("wrote {}", path.display()));
        return;
    }
    let diff =
        TextDiff::from_lines(&there, page).unified_diff().header("the file", "the program").to_string();
    panic!("{} is behind the program; `just reference` writes it anew:\n{diff}", path.display());
}

/// Reads a page that is written by hand.
fn page(name: &str) -> String {
    fs::read_to_string(repository().join("docs/src/reference").join(name)).expect(name)
}

/// Escapes what Markdown would take for its own, outside of code.
fn prose(text: &str) -> String {
    let mut escaped = String::new();
    for (at, part) in text.split('`').enumerate() {
        if at > 0 {
            escaped.push('`');
        }
        for c in part.chars() {
            if at % 2 == 0 && matches!(c, '<' | '[' | ']' | '*' | '|') || c == '|' {
                escaped.push('\\');
            }
            escaped.push(if c == '\n' { ' ' } else { c });
        }
    }
    escaped
}

/// Writes text as code, for a cell of a table.
fn code(text: &str) -> String {
    let text = text.replace('|', "\\|");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// Ends a sentence.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '?', '!', ':']) { text.to_owned() } else { format!("{text}.") }
}

#[test]
fn exit_codes_of_the_reference_are_those_of_the_program() {
    let mut page = format!("# Exit codes\n\n{MADE}\n\n| Code | Name | Meaning |\n| ---: | --- | --- |\n");
    let root = TestVault::new(&[]);
    let help = stdout(&root.run(&["--help"])).split_whitespace().collect::<Vec<_>>().join(" ");
    for (number, name, meaning) in EXIT_CODES {
        assert!(help.contains(&format!("{number} {name}")), "--help says nothing of {number} {name}: {help}");
        writeln!(page, "| {number} | {} | {} |", prose(name), prose(meaning)).unwrap();
    }
    let kinds = [
        ErrorKind::Internal,
        ErrorKind::Invalid,
        ErrorKind::NotFound,
        ErrorKind::Exists,
        ErrorKind::Conflict,
        ErrorKind::Io,
        ErrorKind::Corrupt,
        ErrorKind::Quota,
    ];
    for kind in kinds {
        let number = cli::exit_code(kind);
        assert!(EXIT_CODES.iter().any(|(known, ..)| *known == number), "{kind:?} ends with {number}");
    }
    page.push_str(
        "\nAn error goes to standard error: one line `error: …`, and where something can be done about it, a line \
         `hint: …`. With `--json` it is an object; see [JSON replies](json.md#errors).\n",
    );
    check_page("exit-codes.md", &page);
}

#[test]
fn check_codes_of_the_reference_are_those_of_the_program() {
    let mut page = format!(
        "# Check codes\n\n{MADE}\n\n`sidenote check` reports problems by these codes. `--strict` exits with 8 where \
         an error is found, `--strict=warning` also for a warning, `--strict=info` for anything. `--only CODE` counts \
         problems of this code alone.\n\nThe setting `check.severity` changes the severity of a code or turns it off. \
         In a note, `<!-- sidenote-ignore CODE -->` turns off a code of a place, and `<!-- sidenote-ignore-file CODE \
         -->` one of the whole note, too; see [Checking a vault in CI](../recipes/ci.md#turn-codes-off).\n\n| Code | \
         Severity | Of | Meaning |\n| --- | --- | --- | --- |\n"
    );
    assert!(PROBLEM_CODES.len() >= 18, "only {} codes were found", PROBLEM_CODES.len());
    for known in PROBLEM_CODES {
        let severity = serde_json::to_value(known.severity).unwrap();
        let meaning = prose(&sentence(known.meaning));
        let scope = match known.scope {
            ProblemScope::Place => "a place",
            ProblemScope::Note => "the note",
            ProblemScope::Vault => "the vault",
        };
        writeln!(page, "| `{}` | {} | {scope} | {meaning} |", known.code, severity.as_str().unwrap())
            .unwrap();
    }
    check_page("check-codes.md", &page);
}

#[test]
fn every_operator_of_a_query_is_in_the_reference() {
    let page = page("query.md");
    let operators: Vec<&str> = OPERATORS.split_whitespace().collect();
    assert!(operators.len() >= 20, "only {operators:?} were found");
    for operator in operators {
        assert!(page.contains(&format!("`{operator}")), "query.md says nothing of {operator}");
    }
    for value in ["is:orphan", "is:pinned", "OR", "[property]", "[property:value]", "null", "/regex/"] {
        assert!(page.contains(&format!("`{value}`")), "query.md says nothing of {value}");
    }
}

#[test]
fn queries_of_the_reference_are_understood() {
    let page = page("query.md");
    let examples: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(query, _)| query)
        .collect();
    assert!(examples.len() >= 30, "only {} queries were found", examples.len());
    let vault = TestVault::example();
    for example in examples {
        let query = example.replace("\\|", "|");
        let done = vault.run(&["search", "--mode", "bm25", &query]);
        assert!(done.status.success(), "{query}: {}", stderr(&done));
    }
}

#[test]
fn every_file_and_frontmatter_key_of_the_reference_is_one_of_ours() {
    let page = page("files.md");
    let keys: Vec<&str> = page
        .split("## Frontmatter")
        .nth(1)
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(key, _)| key)
        .collect();
    assert!(keys.len() >= 15, "only {keys:?} were found");
    let text: String = source_files().into_iter().map(|file| file.text).collect();
    for key in keys {
        let key = key.split(':').next().unwrap();
        assert!(text.contains(&format!("\"{key}\"")), "the program does not read {key}");
    }
}

#[test]
fn prose_is_escaped_outside_of_code() {
    let cases = [
        ("a <b> | c", "a \\<b> \\| c"),
        ("`<b>` and [[x]]", "`<b>` and \\[\\[x\\]\\]"),
        ("`a|b`", "`a\\|b`"),
        ("two\nlines", "two lines"),
    ];
    for (text, expected) in cases {
        assert_eq!(prose(text), expected);
    }
    assert_eq!(cases.len(), 4);
}
