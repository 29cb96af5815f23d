//! Owns the test that the map of ARCHITECTURE.md names every module of `src`, and no other.

use std::collections::BTreeSet;

use super::{read, sources};

/// The modules without a row today. The list may only shrink.
const UNMAPPED: &[&str] = &[
    "cli/change",
    "cli/check",
    "cli/clients",
    "cli/complete",
    "cli/config",
    "cli/eval",
    "cli/format",
    "cli/hook",
    "cli/index",
    "cli/links",
    "cli/list",
    "cli/maintenance",
    "cli/mcp",
    "cli/memory",
    "cli/model",
    "cli/open",
    "cli/output",
    "cli/read",
    "cli/related",
    "cli/search",
    "cli/status",
    "cli/tasks",
    "cli/terminal",
    "cli/watch",
    "index/embed/minilm",
    "index/embed/onnx/runtime",
    "index/embed/wordpiece",
    "mcp/compat",
    "mcp/conformance",
    "mcp/notes/change",
    "mcp/notes/find",
    "mcp/notes/graph",
    "mcp/notes/memory",
    "mcp/text_budget",
    "memory/secrets/public",
    "memory/secrets/rules",
    "memory/similarity",
    "text/frontmatter/list",
    "text/frontmatter/scalar",
    "text/frontmatter/simple",
    "text/frontmatter/yaml",
    "text/markdown/blocks",
    "text/markdown/nesting",
];

/// Lists what the first cells of the map's table name.
fn mapped(document: &str) -> BTreeSet<&str> {
    let map = document.split("\n## ").find(|section| section.starts_with("Map\n"));
    let rows =
        map.into_iter().flat_map(str::lines).filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    rows.flat_map(|cell| cell.split('`').step_by(2)).map(str::trim).filter(|name| !name.is_empty()).collect()
}

#[test]
fn the_map_names_every_module() {
    let sources = sources();
    let modules: BTreeSet<String> = sources
        .iter()
        .map(|source| source.modules().join("/"))
        .filter(|module| module != "lib" && module != "main")
        .collect();
    let modules: BTreeSet<&str> = modules.iter().map(String::as_str).collect();
    let document = read("ARCHITECTURE.md");
    let mapped = mapped(&document);
    let missing: BTreeSet<&str> = modules.difference(&mapped).copied().collect();
    let unmapped: BTreeSet<&str> = UNMAPPED.iter().copied().collect();
    let unknown: Vec<_> = mapped.difference(&modules).collect();
    assert!(unknown.is_empty(), "the map names what is no module: {unknown:#?}");
    let new: Vec<_> = missing.difference(&unmapped).collect();
    let gone: Vec<_> = unmapped.difference(&missing).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "modules without a row in ARCHITECTURE.md's map: {new:#?}\nto be struck from UNMAPPED: {gone:#?}"
    );
}

#[test]
fn a_row_of_the_map_may_name_several_modules() {
    let document = "# A\n\n## Map\n\n| Module | Answers |\n| --- | --- |\n| `a` | What? |\n| `a/b`, `a/c` | `d`? |\n\n## B\n\n| `e` | f |\n";
    assert_eq!(mapped(document), BTreeSet::from(["a", "a/b", "a/c"]));
}
