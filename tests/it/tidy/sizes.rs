//! Checks how many methods a type has. A type with more states a reason beside it, in a comment `// size: …`. Clippy counts
//! the lines of functions.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, is_name, sources};

/// A type with more methods than this needs a reason.
const MOST_METHODS: usize = 40;

/// Gives the place behind the bracket that closes the first `{` from a place on, if a `;` does not come before.
fn end_of_body(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut brackets = 0_usize;
    for (at, c) in code[from..].char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            ';' if depth == 0 && brackets == 0 => return None,
            '{' => depth += 1,
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(from + at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn name_at(code: &str, at: usize) -> &str {
    let rest = code[at..].trim_start();
    &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]
}

/// Says whether a comment `// size: ` is among the comments and attributes above a position.
fn states_reason(source: &Source, at: usize) -> bool {
    let above = source.text.lines().take(source.code[..at].matches('\n').count());
    let mut above: Vec<&str> = above.map(str::trim).collect();
    while let Some(line) = above.pop() {
        if line.starts_with("// size: ") {
            return true;
        }
        if !line.starts_with("//") && !line.starts_with("#[") {
            return false;
        }
    }
    false
}

/// Names a type by its crate, or by its file where several files of the crate define one of that name.
fn type_name(source: &Source, name: &str, definitions: &BTreeMap<(String, String), usize>) -> String {
    let layer = source.layer();
    match definitions.get(&(layer.to_owned(), name.to_owned())) {
        Some(2..) => format!("{}: {name}", source.path),
        _ => format!("{layer}: {name}"),
    }
}

/// Lists the types that a file defines, and where.
fn types(source: &Source) -> Vec<(usize, &str)> {
    let words = ["struct", "enum", "trait"];
    let found = words.iter().flat_map(|word| source.words(word).map(move |at| (at, at + word.len())));
    found.map(|(at, end)| (at, name_at(&source.code, end))).filter(|(_, name)| !name.is_empty()).collect()
}

/// Lists the types that a file implements methods for, with their number. What a trait asks for does not count.
fn methods(source: &Source) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for at in source.words("impl") {
        let Some(open) = source.code[at..].find('{').map(|open| at + open) else { continue };
        let head = &source.code[at + "impl".len()..open];
        // An `impl` amid an item is a type of an argument or a result.
        let starts_line = source.code[..at].rsplit('\n').next().is_some_and(|start| start.trim().is_empty());
        if !starts_line || head.split_whitespace().any(|word| word == "for") {
            continue;
        }
        let mut head = head.trim_start();
        if head.starts_with('<') {
            let mut depth = 0;
            let close = head.find(|c| {
                depth += match c {
                    '<' => 1,
                    '>' => -1,
                    _ => 0,
                };
                depth == 0
            });
            head = head[close.map_or(0, |close| close + 1)..].trim_start();
        }
        let path = head.split(['<', ' ', '\n']).next().unwrap_or(head);
        let name = path.rsplit("::").next().unwrap_or(path);
        let end = end_of_body(&source.code, at).unwrap_or(source.code.len());
        let body = &source.code[open + 1..end];
        let mut depth = 0_usize;
        let mut methods = 0;
        for (at, c) in body.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                'f' if depth == 0 && body[at..].starts_with("fn ") => {
                    methods += usize::from(!body[..at].ends_with(is_name));
                }
                _ => {}
            }
        }
        found.push((name, methods));
    }
    found
}

/// Lists the types with more methods than allowed and no reason.
fn large_types(sources: &[Source]) -> Vec<String> {
    let mut definitions: BTreeMap<(String, String), usize> = BTreeMap::new();
    for source in sources {
        for (_, name) in types(source) {
            *definitions.entry((source.layer().to_owned(), name.to_owned())).or_default() += 1;
        }
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut excused = BTreeSet::new();
    for source in sources {
        for (name, methods) in methods(source) {
            *counts.entry(type_name(source, name, &definitions)).or_default() += methods;
        }
        let with_reason = types(source).into_iter().filter(|&(at, _)| states_reason(source, at));
        excused.extend(with_reason.map(|(_, name)| type_name(source, name, &definitions)));
    }
    counts.retain(|name, count| *count > MOST_METHODS && !excused.contains(name));
    counts.into_keys().collect()
}

#[test]
fn large_types_state_a_reason() {
    let found = large_types(&sources());
    assert!(
        found.is_empty(),
        "types over {MOST_METHODS} methods, to be divided or given a reason: {found:#?}"
    );
}

#[test]
fn methods_of_a_type_count_wherever_they_stand() {
    let methods = |count: usize| "    pub fn f(&self) { fn inner() {} }\n".repeat(count);
    let check = |texts: &[String], expected: &[&str]| {
        let sources: Vec<Source> =
            texts.iter().map(|text| Source::new("store/a.rs", text.as_str())).collect();
        assert_eq!(large_types(&sources), expected, "in {texts:?}");
    };
    let half = format!("impl<'a, T: Into<u8>> Store<'a> {{\n{}}}\n", methods(MOST_METHODS / 2));
    check(&[half.clone(), half.clone()], &[]);
    let one = "impl super::Store<'_> {\n    fn g() {}\n}\n".to_owned();
    check(&[half.clone(), half.clone(), one.clone()], &["store: Store"]);
    check(
        &[half.clone(), half.clone(), "impl Drop for Store {\n    fn drop(&mut self) {}\n}\n".to_owned()],
        &[],
    );
    check(&[half.clone(), half, one, "// size: one API.\npub struct Store {}\n".to_owned()], &[]);
}
