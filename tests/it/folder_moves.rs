//! Tests that links to files, images and folders lead to the same after random moves of folders, in every dialect. The test
//! follows the links itself.

use std::collections::{BTreeMap, BTreeSet};

use sidenote::store::{MoveRequest, Operation};

use crate::support::{TestVault, text_of};
#[cfg(unix)]
use crate::support::{set_mode, stderr, stdout, without_root_privileges};

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

/// Returns a random link of a note to a file, in some form.
fn link(numbers: &mut Numbers, source: &str, to: &str) -> String {
    let name = to.rsplit('/').next().unwrap();
    let bare = |path: &str| path.strip_suffix(".md").unwrap_or(path).to_owned();
    match numbers.below(9) {
        0 => format!("[[{}]]", bare(name)),
        1 => format!("[[{}|label]]", bare(to)),
        2 => format!("![[{to}]]"),
        3 => format!("[[{}#part]]", bare(&relative(folder_of(source), to))),
        4 => format!("[l]({name})"),
        5 => format!("[l]({})", relative(folder_of(source), to)),
        6 => format!("[l](<./{}>)", relative(folder_of(source), to)),
        7 => format!("[l](/{to})"),
        _ => format!("[l]({}) [none](missing/{name})", bare(to)),
    }
}

/// Makes a vault of notes and canvases in four folders, with links in all forms and names that occur several times.
fn linked_files(numbers: &mut Numbers) -> Vec<(String, String)> {
    let folders = ["", "A/", "A/in/", "B/", "B/in/deep/"];
    let names = ["one.md", "two.md", "index.md", "image.png", "board.canvas"];
    let mut files: Vec<(String, String)> = Vec::new();
    for folder in folders {
        for name in names.iter().filter(|_| numbers.below(4) > 0) {
            files.push((format!("{folder}{name}"), String::new()));
        }
        files.push((format!("{folder}only {}.md", folder.len()), String::new()));
    }
    let paths: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
    for (path, text) in &mut files {
        let mut to = || numbers.one_of(&paths).clone();
        if path.ends_with(".canvas") {
            let (node, inner) = (to(), to());
            *text = format!(
                r#"{{"nodes":[{{"id":"a","type":"file","file":"{node}"}},{{"id":"b","type":"text","text":"[[{inner}]]"}}],"edges":[]}}"#
            );
        } else if path.ends_with(".md") {
            let (own, part) = (to(), to());
            *text = format!("---\nup: \"[[{own}]]\"\nsaid: \"see [[{part}]] there\"\n---\n");
            for _ in 0..4 {
                let to = numbers.one_of(&paths).clone();
                text.push_str(&format!("{}\n\n", link(numbers, path, &to)));
            }
        }
    }
    files
}

/// Plans a move in a vault with these files, and returns what the plan does apart from the padding.
fn planned(files: &[(String, String)], settings: &str, request: &MoveRequest) -> String {
    let obsidian = Some((".obsidian/app.json", settings)).filter(|(_, settings)| !settings.is_empty());
    let listed: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).chain(obsidian).collect();
    let vault = TestVault::new(&listed);
    let plan = vault.store().changes().plan(&Operation::Move(request.clone())).unwrap();
    format!("{:#?}\n{:#?}\n{:#?}", plan.folders, plan.files, plan.remarks)
}

#[test]
fn a_folder_of_many_files_moves_as_one_of_few() {
    // So many files that the plan looks at all links at once. Nothing links to them, and they link to nothing.
    let padding: Vec<(String, String)> =
        (0..260).map(|at| (format!("A/in/padding {at}.md"), String::new())).collect();
    let settings = ["", "{}", r#"{"newLinkFormat":"relative"}"#, r#"{"newLinkFormat":"absolute"}"#];
    let mut changed = 0;
    for seed in 0..20 {
        let mut numbers = Numbers(seed);
        let files = linked_files(&mut numbers);
        let (from, to) =
            *numbers.one_of(&[("A", "C"), ("A", "B/A"), ("A/in", "in"), ("A/in", "B/x y"), ("A", "B/in/A")]);
        let mut is = || numbers.below(2) == 0;
        let request = MoveRequest {
            from: from.to_owned(),
            to: to.to_owned(),
            keep_lookup_links: is(),
            stabilise: is(),
            partial_properties: is(),
            ..MoveRequest::default()
        };
        let settings = settings[seed as usize % settings.len()];
        let few = planned(&files, settings, &request);
        let many = planned(&[files, padding.clone()].concat(), settings, &request);
        assert_eq!(few, many, "{seed}: {request:?} with {settings:?}");
        changed += few.matches("Edits(").count();
    }
    assert!(changed > 60, "{changed}");
}

#[test]
fn the_plan_of_a_folder_move_grows_linearly_with_what_it_touches() {
    // Each note links to two others in the folder, and some notes outside link to it. The first vault has the folder alone, in
    // the second one it is a small part.
    for outside in [0, 20] {
        let work = |count: usize| {
            let mut files: Vec<(String, String)> = (0..count)
                .map(|at| {
                    let text = format!("[[n{}]] [l](n{}.md)", (at + 1) % count, (at + 7) % count);
                    (format!("A/n{at}.md"), text)
                })
                .collect();
            files.extend((0..count / 10).map(|at| (format!("links{at}.md"), format!("[l](A/n{at}.md)"))));
            files.extend((0..count * outside).map(|at| (format!("B/other{at}.md"), String::new())));
            let listed: Vec<(&str, &str)> =
                files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let vault = TestVault::new(&listed);
            let request = MoveRequest { from: "A".to_owned(), to: "C".to_owned(), ..MoveRequest::default() };
            let (plan, work) = vault.store().changes().plan_with_work(&Operation::Move(request)).unwrap();
            assert_eq!(plan.files.len(), count / 10);
            work
        };
        let (few, many) = (work(300), work(1200));
        assert!(few > 300 && many <= 5 * few, "{few} steps for 300, {many} for 1200");
        assert!(many <= 24 * 1200, "{many}");
    }
}

/// A move of many files stabilises links where one of few does: in notes that the move concerns.
#[test]
fn a_move_of_many_files_leaves_links_of_others_as_they_are() {
    let mut files: Vec<(String, String)> =
        (0..300).map(|at| (format!("A/n{at}.md"), String::new())).collect();
    for (path, text) in [("P/twice.md", ""), ("Q/twice.md", ""), ("other.md", "[[twice]]")] {
        files.push((path.to_owned(), text.to_owned()));
    }
    let to = MoveRequest { from: "A".to_owned(), to: "C".to_owned(), ..MoveRequest::default() };
    let stabilising = MoveRequest { stabilise: true, ..to.clone() };
    for request in [to, stabilising] {
        let plan = planned(&files, "", &request);
        assert!(!plan.contains("other.md"), "{request:?}: {plan}");
    }
}

/// Nobody knows the links of a note that cannot be read, so it cannot follow a move.
#[cfg(unix)]
#[test]
fn a_folder_with_a_note_that_cannot_be_read_stays_where_it_is() {
    without_root_privileges(|| {
        for count in [3, 300] {
            let padding: Vec<String> = (0..count).map(|at| format!("A/n{at}.md")).collect();
            let notes = padding.iter().map(|path| (path.as_str(), ""));
            let vault = TestVault::new(
                &notes.chain([("A/secret.md", "[l](../t.md)"), ("t.md", "")]).collect::<Vec<_>>(),
            );
            set_mode(vault.root().join("A/secret.md"), 0);
            let moved = vault.run(&["move", "A", "B/C"]);
            assert_eq!(moved.status.code(), Some(6), "{count}: {}", stdout(&moved));
            assert!(stderr(&moved).contains("cannot read A/secret.md"), "{count}: {}", stderr(&moved));
            assert!(vault.root().join("A/n0.md").exists());
        }
    });
}
