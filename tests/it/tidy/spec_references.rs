//! Checks the references to the specifications in docs/spec: each page and each section that code, tests or documents name
//! exists, and the table of pages lists all of them. Links between pages are checked with those of the manual.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::ROOT;

/// The folders whose files are searched for references.
const FOLDERS: [&str; 6] = ["crates", "src", "tests", "docs", "fuzz", "web/src"];

/// The extensions of these files.
const EXTENSIONS: [&str; 6] = ["rs", "md", "py", "toml", "ts", "tsx"];

/// A reference to a page, or to sections of it.
#[derive(Debug, PartialEq, Eq)]
struct Reference {
    line: usize,
    page: String,
    /// The numbers, beginnings of headings and names in backticks that follow the page.
    sections: Vec<String>,
}

/// Finds the references of a text. One that is broken over two lines of a comment is read as a whole.
fn references(text: &str) -> Vec<Reference> {
    let folder = "docs/spec/";
    let read = |(at, _)| {
        let rest = joined_lines(&text[at + folder.len()..]);
        let page: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
        let behind = rest[page.len()..].strip_prefix(".md").filter(|_| !page.is_empty())?;
        let line = 1 + text[..at].matches('\n').count();
        Some(Reference { line, sections: sections(behind), page })
    };
    text.match_indices(folder).filter_map(read).collect()
}

/// Joins the first lines of a text, without the signs that begin a comment.
fn joined_lines(text: &str) -> String {
    let plain =
        |line: &str| line.trim().trim_start_matches("//").trim_start_matches(['!', '/']).trim().to_owned();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let next = lines.next().map(plain).unwrap_or_default();
    format!("{first} {next}").trim_end().to_owned()
}

/// Reads what follows the name of a page, as far as it names sections.
fn sections(mut rest: &str) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..20 {
        let separator =
            [", ", " and ", " (", "–", " "].into_iter().find(|separator| rest.starts_with(separator));
        let Some(separator) = separator else { break };
        let next = &rest[separator.len()..];
        let can_be_heading = matches!(separator, ", " | " (");
        let Some(section) = section(next, can_be_heading) else { break };
        found.push(section.to_owned());
        rest = &next[section.len()..];
    }
    found
}

/// Reads the number, the heading or the name in backticks that a text begins with.
fn section(text: &str, can_be_heading: bool) -> Option<&str> {
    let first = text.chars().next()?;
    let len = if first.is_ascii_digit() {
        let len = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        text[..len].trim_end_matches('.').len()
    } else if first == '`' {
        2 + text[1..].find('`')?
    } else if first.is_uppercase() && can_be_heading {
        text.find([',', '.', ':', ';', ')']).unwrap_or(text.len())
    } else {
        return None;
    };
    Some(&text[..len])
}

/// Returns whether a page has a section: a heading with its number, a heading that begins with it, or a name in backticks.
fn has_section(page: &str, section: &str) -> bool {
    if section.starts_with('`') {
        return page.contains(section);
    }
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let mut rests = headings.filter_map(|line| line.trim_start_matches('#').trim().strip_prefix(section));
    if section.starts_with(|c: char| c.is_ascii_digit()) {
        return rests.any(|rest| rest.starts_with(' ') || rest.starts_with(". "));
    }
    rests.any(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Lists what is wrong with the references of a text.
fn faults(pages: &BTreeMap<String, String>, file: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for Reference { line, page, sections } in references(text) {
        let Some(content) = pages.get(&page) else {
            found.push(format!("{file}:{line}: there is no page {page}.md"));
            continue;
        };
        let missing = sections.iter().filter(|section| !has_section(content, section));
        found.extend(missing.map(|section| format!("{file}:{line}: {page}.md has no section {section}")));
    }
    found
}

/// Lists the references of a text to a folder of specifications that is not the one of the repository.
fn misplaced(file: &str, text: &str) -> Vec<String> {
    let is_page = |rest: &str| {
        let behind = rest.trim_start_matches(|c: char| c.is_ascii_lowercase());
        behind.len() < rest.len() && behind.starts_with(".md")
    };
    let folder = "spec/";
    let found = text.match_indices(folder).filter(|(at, _)| {
        !text[..*at].ends_with(|c: char| c == '/' || c.is_alphanumeric())
            && is_page(&text[at + folder.len()..])
    });
    found
        .map(|(at, _)| format!("{file}:{}: begin with docs/", 1 + text[..at].matches('\n').count()))
        .collect()
}

/// Reads the pages of docs/spec by their names without the extension.
fn pages() -> BTreeMap<String, String> {
    let entries = fs::read_dir(Path::new(ROOT).join("docs/spec")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// Reads the files that can have references, each with its path in the repository.
fn files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        let all = walkdir::WalkDir::new(Path::new(ROOT).join(folder)).into_iter();
        let all = all.filter_entry(|entry| {
            !["target", "node_modules", ".sidenote"].iter().any(|name| entry.file_name() == *name)
        });
        for entry in all.map(Result::unwrap) {
            let path = entry.path();
            let is_text =
                path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known));
            if is_text && entry.file_type().is_file() {
                let name = path.strip_prefix(ROOT).unwrap().to_str().unwrap().replace('\\', "/");
                files.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    files
}

#[test]
fn references_to_specifications_lead_somewhere() {
    let (pages, mut count, mut found) = (pages(), 0, Vec::new());
    for (file, text) in files() {
        count += references(&text).len();
        found.extend(faults(&pages, &file, &text));
        found.extend(misplaced(&file, &text));
    }
    let top = "ARCHITECTURE.md";
    found.extend(faults(&pages, top, &super::read(top)));
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    assert!(count > 150, "only {count} references were found");
}

#[test]
fn the_table_lists_every_specification() {
    let pages = pages();
    let table = &pages["README"];
    for name in pages.keys().filter(|name| *name != "README") {
        assert!(table.contains(&format!("| [{name}.md]({name}.md) | ")), "the table lacks {name}.md");
    }
    let rows = table.lines().filter(|line| line.starts_with("| [")).count();
    assert_eq!(rows, pages.len() - 1);
}

/// Writes the folder of the specifications into an example, which would be a reference itself otherwise.
fn example(text: &str) -> String {
    text.replace("SPEC/", "docs/spec/")
}

#[test]
fn references_are_found_in_all_their_forms() {
    for (text, page, expected) in [
        ("Parses tags (SPEC/obsidian.md 6).", "obsidian", &["6"] as &[&str]),
        ("the rules of SPEC/obsidian.md 3.3, step 11, and more", "obsidian", &["3.3"]),
        ("SPEC/obsidian.md 2, 3.6, 5–7).", "obsidian", &["2", "3.6", "5", "7"]),
        ("the rules of SPEC/obsidian.md 5 and 2.7, and hostile input", "obsidian", &["5", "2.7"]),
        ("/// A trash (SPEC/obsidian.md\n    /// 1.7). Else", "obsidian", &["1.7"]),
        (
            "//! Eviction (SPEC/memory.md, Forgetting and\n//! eviction).",
            "memory",
            &["Forgetting and eviction"],
        ),
        ("(SPEC/memory.md, Tiers, Forgetting).", "memory", &["Tiers", "Forgetting"]),
        ("those of SPEC/search.md (Text analysis): terms", "search", &["Text analysis"]),
        ("SPEC/toolsets.md `mem`).", "toolsets", &["`mem`"]),
        ("SPEC/git.md 3, *strong*). One", "git", &["3"]),
        ("as SPEC/memory.md says", "memory", &[]),
        ("(SPEC/git.md). It", "git", &[]),
    ] {
        let sections = expected.iter().copied().map(str::to_owned).collect();
        let expected = Reference { line: 1, page: page.to_owned(), sections };
        assert_eq!(references(&example(text)), [expected], "{text}");
    }
    assert_eq!(references("docs/spec/ and docs/spec/*.md"), []);
}

#[test]
fn references_to_nothing_are_faults() {
    let page = "# Git\n\n## 1. Link dialects\n\n### 1.2 Paths and more\n\n`mem`\n";
    let pages = BTreeMap::from([("git".to_owned(), page.to_owned())]);
    let check = |text: &str| faults(&pages, "a.rs", &example(text));
    for text in
        ["SPEC/git.md", "SPEC/git.md 1", "SPEC/git.md 1 and 1.2", "SPEC/git.md, Git", "SPEC/git.md `mem`"]
    {
        assert_eq!(check(text), [""; 0], "{text}");
    }
    assert_eq!(check("\nSPEC/tig.md 1"), ["a.rs:2: there is no page tig.md"]);
    assert_eq!(check("SPEC/git.md 1, 2"), ["a.rs:1: git.md has no section 2"]);
    assert_eq!(check("SPEC/git.md 1.3"), ["a.rs:1: git.md has no section 1.3"]);
    assert_eq!(check("SPEC/git.md, Gi"), ["a.rs:1: git.md has no section Gi"]);
    assert_eq!(check("SPEC/git.md `vector`"), ["a.rs:1: git.md has no section `vector`"]);
    let bare = |text: &str| misplaced("a.rs", &text.replace("SPEC", "spec"));
    assert_eq!(bare("\n(SPEC/git.md 1)"), ["a.rs:2: begin with docs/"]);
    assert_eq!(bare("docs/SPEC/git.md, ../SPEC/git.md, SPEC/*.md, my_SPEC/"), [""; 0]);
}
