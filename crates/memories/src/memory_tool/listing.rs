//! What the memory tool shows: the files of a folder with their sizes, and lines with their numbers.

use std::collections::BTreeMap;

/// The depth to which folders are listed.
const DEPTH: usize = 2;
/// The width of a line number.
const WIDTH: usize = 6;
/// The size that is shown for a folder, in bytes: what its own entry takes on most disks.
const FOLDER_SIZE: u64 = 4096;

/// A folder by the names in it: files with their sizes, and folders.
#[derive(Default)]
struct Tree(BTreeMap<String, Entry>);

enum Entry {
    File(u64),
    Folder(Tree),
}

impl Tree {
    fn insert(&mut self, path: &str, size: u64) {
        match path.split_once('/') {
            None => drop(self.0.insert(path.to_owned(), Entry::File(size))),
            Some((folder, rest)) => {
                let entry = self.0.entry(folder.to_owned()).or_insert_with(|| Entry::Folder(Self::default()));
                if let Entry::Folder(inside) = entry {
                    inside.insert(rest, size);
                }
            }
        }
    }

    fn list(&self, above: &str, depth: usize, lines: &mut Vec<String>) {
        for (name, entry) in &self.0 {
            let path = format!("{above}/{name}");
            match entry {
                Entry::File(size) => lines.push(format!("{}\t{path}", short_size(*size))),
                Entry::Folder(inside) => {
                    lines.push(format!("{}\t{path}/", short_size(FOLDER_SIZE)));
                    if depth < DEPTH {
                        inside.list(&path, depth + 1, lines);
                    }
                }
            }
        }
    }
}

/// Lists the files of a folder, given by their paths from it, each with its size in bytes.
pub(super) fn listing(path: &str, files: Vec<(String, u64)>) -> String {
    let mut tree = Tree::default();
    files.iter().for_each(|(file, size)| tree.insert(file, *size));
    let mut lines = vec![
        format!("Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"),
        format!("{}\t{path}", short_size(FOLDER_SIZE)),
    ];
    tree.list(path.trim_end_matches('/'), 1, &mut lines);
    lines.join("\n")
}

/// Returns some lines with their numbers, from one and up to another, which are counted from 0.
pub(super) fn numbered(lines: &[&str], first: usize, end: usize) -> String {
    let shown = lines.iter().enumerate().take(end).skip(first);
    let shown: Vec<String> = shown.map(|(at, line)| format!("{:>WIDTH$}\t{line}", at + 1)).collect();
    shown.join("\n")
}

/// Returns a size as `du -h` shows it: `4.0K`, and bytes below that.
fn short_size(bytes: u64) -> String {
    let mut size = bytes as f64;
    let mut unit = "B";
    for larger in ["K", "M", "G"] {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    if unit == "B" { format!("{bytes}B") } else { format!("{size:.1}{unit}") }
}
