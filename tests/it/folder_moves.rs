//! Tests that links to files, images and folders lead to the same after random moves of folders, in every dialect. The test
//! follows the links itself.

use std::collections::{BTreeMap, BTreeSet};

use sidenote::store::{MoveRequest, Operation};

use crate::support::{TestVault, text_of};

/// The moves in each dialect.
const MOVES: usize = 50;

/// A generator of pseudorandom numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// What a link leads to, by its path.
#[derive(Debug, Clone, PartialEq)]
enum End {
    File(String),
    Folder(String),
}

/// Joins a relative path to a folder. The percent-encoding of the names in this test is undone.
fn joined(folder: &str, path: &str) -> String {
    let decoded = path.replace("%20", " ").replace("%23", "#").replace("%25", "%");
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in decoded.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop().expect("a link leads above the vault")),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn folders_above(files: &BTreeSet<String>) -> BTreeSet<String> {
    let mut folders = BTreeSet::new();
    for file in files {
        let mut folder = folder_of(file);
        while !folder.is_empty() {
            folders.insert(folder.to_owned());
            folder = folder_of(folder);
        }
    }
    folders
}

/// Follows a destination of the note at `source`.
fn end_of(destination: &str, source: &str, root: &str, files: &BTreeSet<String>) -> Option<End> {
    let path = destination.split(['#', '?']).next().unwrap();
    let place = match path.strip_prefix('/') {
        Some(path) => joined(root, path),
        None => joined(folder_of(source), path),
    };
    if files.contains(&place) {
        return Some(End::File(place));
    }
    folders_above(files).contains(&place).then_some(End::Folder(place))
}

/// Lists the destinations in a note of this test, between `](` and `)`.
fn destinations(text: &str) -> Vec<String> {
    let after = text.split("](").skip(1);
    after.map(|rest| rest.split(')').next().unwrap().trim_matches(['<', '>']).to_owned()).collect()
}

/// Returns the relative path from a folder, encoded as in a link.
fn relative(folder: &str, path: &str) -> String {
    let from: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let to: Vec<&str> = path.split('/').collect();
    let shared = from.iter().zip(&to[..to.len() - 1]).take_while(|(a, b)| a == b).count();
    let up = from[shared..].iter().map(|_| "..");
    let text = up.chain(to[shared..].iter().copied()).collect::<Vec<_>>().join("/");
    text.replace('%', "%25").replace(' ', "%20").replace('#', "%23")
}

/// Moves folders of a vault with this marker. `root` is where links with a leading slash begin.
fn check(marker: (&str, &str), root: &str, with_folders: bool, seed: u64) {
    let mut numbers = Numbers(seed);
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    // In Obsidian, a link ends at the sign `#`, also at an encoded one.
    let names = ["a", "b b", "c-d", "ü", "50%", if with_folders { "e#" } else { "e" }];
    let mut folders = vec![String::new()];
    for _ in 0..24 {
        let parent = numbers.one_of(&folders).clone();
        if parent.matches('/').count() < 3 {
            let name = format!("{}{}", numbers.one_of(&names), folders.len());
            folders.push(if parent.is_empty() { name } else { format!("{parent}/{name}") });
        }
    }
    let below = |folder: &str, name: &str| {
        if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
    };
    let in_root = |path: String| below(root, &path);
    for (at, folder) in folders.iter().enumerate() {
        for name in [format!("n{at}.md"), format!("i{at}.png"), format!("p {at}.pdf")] {
            files.insert(in_root(below(folder, &name)), String::new());
        }
    }
    let paths: Vec<String> = files.keys().cloned().collect();
    let known = folders_above(&files.keys().cloned().collect());
    let known: Vec<String> = known.into_iter().filter(|folder| folder.as_str() != root).collect();
    for (path, text) in &mut files {
        if !path.ends_with(".md") {
            continue;
        }
        for _ in 0..4 {
            let to = relative(folder_of(path), numbers.one_of(&paths).as_str());
            text.push_str(&format!("[f]({to}) ![f](<./{to}>)\n"));
            if with_folders {
                let to = relative(folder_of(path), numbers.one_of(&known).as_str());
                text.push_str(&format!("[d]({to}) [d]({to}/)\n"));
                let to = relative(root, numbers.one_of(&known).as_str());
                text.push_str(&format!("[r](/{to}/)\n"));
            }
        }
    }
    let listed: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).chain([marker]).collect();
    let vault = TestVault::new(&listed);
    let store = vault.store();
    let mut now: BTreeSet<String> = paths.iter().cloned().collect();
    let (mut done, mut followed) = (0, 0);
    while done < MOVES {
        let there: Vec<String> =
            folders_above(&now).into_iter().filter(|folder| folder.as_str() != root).collect();
        let from = numbers.one_of(&there).clone();
        let into = if numbers.below(5) == 0 { root.to_owned() } else { numbers.one_of(&there).clone() };
        let name = match numbers.below(2) {
            0 => from.rsplit('/').next().unwrap().to_owned(),
            _ => format!("{} {done}%", numbers.one_of(&["x", "y y", "é"])),
        };
        let to = below(&into, &name);
        let is_inside = format!("{into}/").starts_with(&format!("{from}/"));
        if is_inside || there.contains(&to) || to.matches('/').count() > 6 {
            continue;
        }
        let after = |path: &str| match path.strip_prefix(&from) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{to}{rest}"),
            _ => path.to_owned(),
        };
        let before: BTreeMap<String, String> = now
            .iter()
            .filter(|path| path.ends_with(".md"))
            .map(|path| (path.clone(), text_of(&vault, path)))
            .collect();
        // A name of the generated tree that no new folder may have comes along with `force`.
        let request =
            MoveRequest { from: from.clone(), to: to.clone(), force: true, ..MoveRequest::default() };
        store.changes().change(&Operation::Move(request), false).unwrap();
        let moved: BTreeSet<String> = now.iter().map(|path| after(path)).collect();
        let then = std::mem::replace(&mut now, moved);
        let left = folders_above(&now);
        for (path, text) in &before {
            let (old, new) = (destinations(text), destinations(&text_of(&vault, &after(path))));
            assert_eq!(old.len(), new.len(), "{path} after {from} -> {to}");
            for (old, new) in old.iter().zip(&new) {
                if !with_folders {
                    // Obsidian finds a file by its name, and each name is there once.
                    let name = |text: &str| joined("", text.rsplit('/').next().unwrap());
                    assert_eq!(name(old), name(new), "{old} -> {new}");
                    let is_there = |file: &String| file.rsplit('/').next() == Some(&name(new));
                    assert_eq!(now.iter().filter(|file| is_there(file)).count(), 1, "{new}");
                    followed += 1;
                    continue;
                }
                let wanted = match end_of(old, path, root, &then) {
                    Some(End::File(file)) => End::File(after(&file)),
                    // A folder whose last folder moved away is gone.
                    Some(End::Folder(folder)) if !left.contains(&after(&folder)) => continue,
                    Some(End::Folder(folder)) => End::Folder(after(&folder)),
                    None => continue,
                };
                let found = end_of(new, &after(path), root, &now);
                assert_eq!(found, Some(wanted), "{old} -> {new} in {path} after {from} -> {to}");
                assert_eq!(old.ends_with('/'), new.ends_with('/'), "{old} -> {new}");
                followed += 1;
            }
        }
        done += 1;
    }
    assert!(followed > MOVES * 100, "{followed} links");
}

#[test]
fn links_on_github_follow_folders() {
    check(("x.txt", ""), "", true, 1);
}

#[test]
fn links_of_a_book_follow_folders() {
    check(("book.toml", "[book]\nsrc = \"text\"\n"), "text", true, 2);
}

#[test]
fn links_of_a_site_follow_folders() {
    check(("mkdocs.yml", "docs_dir: text\n"), "text", true, 3);
}

#[test]
fn links_of_obsidian_follow_files_of_folders() {
    check((".obsidian/app.json", "{\"newLinkFormat\": \"relative\"}"), "", false, 4);
}
