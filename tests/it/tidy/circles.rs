//! Checks that no modules of a folder use each other in a cycle, so that of two of them one can be read without the other. What
//! the files inside of a module use, the module uses.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, is_name, sources};

/// The circles that stand today. The list may only shrink: a circle that is gone must leave it.
const KNOWN: [&[&str]; 0] = [];

/// Gives the module that a file is: its folder for `mod.rs`, and the crate's root for `lib.rs` and `main.rs`.
fn module(source: &Source) -> String {
    let modules = source.modules();
    if modules == ["lib"] || modules == ["main"] { String::new() } else { modules.join("::") }
}

/// Gives each path of a `use` tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn flatten(tree: &str, before: &str, found: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((start, group)) = tree.strip_suffix('}').and_then(|tree| tree.split_once('{')) else {
        let name = tree.split(" as ").next().unwrap_or(tree);
        if !name.is_empty() {
            found.push(format!("{before}{name}"));
        }
        return;
    };
    let before = format!("{before}{start}");
    let (mut depth, mut from) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                flatten(&group[from..at], &before, found);
                from = at + 1;
            }
            _ => {}
        }
    }
    flatten(&group[from..], &before, found);
}

/// Lists the paths of this crate that a file names, from the crate's root on.
fn paths(source: &Source) -> BTreeSet<String> {
    let mut found = Vec::new();
    for at in source.words("use") {
        let rest = &source.code[at + "use".len()..];
        let tree = rest.split(';').next().unwrap_or_default().trim_start();
        if ["crate", "super", "self"].iter().any(|start| tree.starts_with(start)) {
            flatten(tree, "", &mut found);
        }
    }
    for at in source.words("crate") {
        let path: String = source.code[at..].chars().take_while(|&c| is_name(c) || c == ':').collect();
        found.push(path);
    }
    let own = module(source);
    let absolute = |path: String| {
        let mut base: Vec<&str> = own.split("::").filter(|name| !name.is_empty()).collect();
        let mut names = path.split("::").map(str::trim).peekable();
        match names.peek() {
            Some(&"crate") => {
                base.clear();
                names.next();
            }
            Some(&"self") => {
                names.next();
            }
            _ => {
                while names.next_if_eq(&"super").is_some() {
                    base.pop();
                }
            }
        }
        base.extend(names);
        base.join("::")
    };
    found.into_iter().map(absolute).collect()
}

/// Maps each module to the modules of its folder that it, or a file inside of it, uses.
fn uses(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let modules: BTreeSet<String> = sources.iter().map(module).collect();
    let file_of = |path: &str| {
        let mut path = path;
        while !path.is_empty() && !modules.contains(path) {
            path = path.rsplit_once("::").map_or("", |(start, _)| start);
        }
        path.to_owned()
    };
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources {
        let own = module(source);
        for used in paths(source).iter().map(|path| file_of(path)) {
            let names = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
            let (one, other) = (names(&own), names(&used));
            let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
            if same < one.len() && same < other.len() && !own.is_empty() && !used.is_empty() {
                graph.entry(one[..=same].join("::")).or_default().insert(other[..=same].join("::"));
            }
        }
    }
    graph
}

/// Finds everything that can be reached from a module.
fn reachable<'a>(graph: &'a BTreeMap<String, BTreeSet<String>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in graph.get(file).into_iter().flatten() {
            if seen.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    seen
}

/// Finds the circles: each largest set of modules that all reach each other.
fn circles(sources: &[Source]) -> BTreeSet<Vec<String>> {
    let graph = uses(sources);
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|file| (file.as_str(), reachable(&graph, file))).collect();
    let in_circle = reach.keys().filter(|file| reach[*file].contains(*file));
    let circle = |file: &&str| {
        let both =
            reach[file].iter().filter(|other| reach.get(*other).is_some_and(|back| back.contains(file)));
        both.map(|&other| other.to_owned()).collect::<Vec<_>>()
    };
    in_circle.map(circle).collect()
}

#[test]
fn no_files_use_each_other_in_a_cycle() {
    let found = circles(&sources());
    let known: BTreeSet<Vec<String>> =
        KNOWN.iter().map(|circle| circle.iter().map(|&file| file.to_owned()).collect()).collect();
    let new: Vec<_> = found.difference(&known).collect();
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "new or changed circles, to be resolved: {new:#?}\ncircles that are gone, to be struck from KNOWN: {gone:#?}"
    );
}

#[track_caller]
fn check_circles(files: &[(&str, &str)], expected: &[&[&str]]) {
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(*path, *text)).collect();
    let expected: BTreeSet<Vec<String>> =
        expected.iter().map(|circle| circle.iter().map(|&file| file.to_owned()).collect()).collect();
    assert_eq!(circles(&sources), expected, "in {files:?}");
}

#[test]
fn cycles_are_found_for_every_import_style() {
    let other = ("a/two.rs", "use super::one::One;");
    for text in [
        "use crate::a::two::Two;",
        "use crate::{a::{two::{self, Two}}, b};",
        "use super::two::Two as Other;",
        "fn f(x: crate::a::two::Two) {}",
    ] {
        check_circles(&[("a/mod.rs", ""), ("a/one.rs", text), other], &[&["a::one", "a::two"]]);
    }
    for text in ["// use crate::a::two::Two;", "use crate::b::Two;", "use super::{A, B};", ""] {
        check_circles(&[("a/mod.rs", ""), ("a/one.rs", text), other], &[]);
    }
}

#[test]
fn a_cycle_is_reported_whole_and_a_folder_may_use_its_own_files() {
    check_circles(
        &[
            ("a.rs", "use crate::b::B; use self::inner::X;"),
            ("a/inner.rs", "use super::Y;"),
            ("b.rs", "use crate::c::C;"),
            ("c.rs", "use crate::a::inner::X; use crate::d::D;"),
            ("d.rs", ""),
        ],
        &[&["a", "b", "c"]],
    );
    check_circles(&[("a.rs", "use self::inner::X;"), ("a/inner.rs", "use super::Y;")], &[]);
    check_circles(
        &[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::X;")],
        &[&["a", "b", "c"]],
    );
}
