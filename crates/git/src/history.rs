//! The history of files: which commit wrote a line, where a file was moved, and which commits touched it.

use std::collections::HashMap;

use sidenote_base::error::{Error, Result};

use crate::{ObjectId, Repository, TreeFile};

/// The most files of a commit among which git looks for renames with changes (docs/spec/git.md 3).
pub(super) const RENAME_LIMIT: &str = "-l7000";
/// The least share of common content for which git calls a removed and a new file a rename.
pub(super) const RENAME_SHARE: &str = "-M50%";

/// A line of a file, with the commit that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlamedLine {
    /// The commit.
    pub commit: ObjectId,
    /// The path of the file in that commit, from the repository's folder; `None` if it was outside.
    pub path: Option<String>,
    /// The number of the line in that commit, counted from 1.
    pub line: usize,
}

/// What became of a file in one commit, or what a commit did to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathChange {
    /// The file is new.
    Added {
        /// Its path.
        path: String,
        /// Its content.
        blob: ObjectId,
    },
    /// The content changed.
    Changed {
        /// The path.
        path: String,
        /// The content before.
        before: ObjectId,
        /// The content after.
        after: ObjectId,
    },
    /// The file was removed, and git found no new file like it.
    Removed {
        /// Its path.
        path: String,
        /// Its content.
        blob: ObjectId,
    },
    /// The file was renamed.
    Renamed {
        /// The old path; `None` outside of the repository's folder.
        from: Option<String>,
        /// The new path; `None` outside of the repository's folder.
        to: Option<String>,
        /// The content before.
        before: ObjectId,
        /// The content after.
        after: ObjectId,
        /// The share of common content, in percent. At 100 the content is the same.
        percent: u8,
    },
}

/// The removal of a file from its path by a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStep {
    /// The commit.
    pub commit: ObjectId,
    /// The first parent, in which the file was still there.
    pub parent: ObjectId,
}

/// A commit, as a history shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    /// The id.
    pub id: ObjectId,
    /// The parents.
    pub parents: Vec<ObjectId>,
    /// The time at which the author wrote it, in seconds since 1970.
    pub authored_at: i64,
    /// The time at which it was committed, in seconds since 1970.
    pub committed_at: i64,
    /// The name of the author.
    pub author: String,
    /// The first line of the message.
    pub subject: String,
}

impl Repository {
    /// Finds the commits that wrote some lines of a file, as it is in `commit`. The lines are counted from 1. Returns them by
    /// their number; a line that the file does not have is left out.
    ///
    /// # Errors
    /// Those of running git; `Invalid` if the commit has no such file.
    pub fn blame(
        &self,
        commit: &ObjectId,
        path: &str,
        lines: &[usize],
    ) -> Result<HashMap<usize, BlamedLine>> {
        let mut arguments: Vec<String> =
            ["-c", "blame.ignoreRevsFile=", "blame", "--porcelain", "--no-textconv"]
                .into_iter()
                .map(str::to_owned)
                .collect();
        let mut wanted = lines.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        arguments.extend(wanted.iter().map(|line| format!("-L{line},{line}")));
        arguments.extend([commit.as_str().to_owned(), "--".to_owned(), self.in_tree(path)]);
        let said = self.read(&arguments)?;
        let mut blamed = HashMap::new();
        let mut names: HashMap<ObjectId, Option<String>> = HashMap::new();
        let mut open: Option<(ObjectId, usize, usize)> = None;
        for line in said.split(|byte| *byte == b'\n') {
            if line.starts_with(b"\t") {
                // The content ends the entry.
                if let Some((commit, then, now)) = open.take() {
                    let path = names.get(&commit).cloned().flatten();
                    blamed.insert(now, BlamedLine { commit, path, line: then });
                }
            } else if let Some(name) = line.strip_prefix(b"filename ") {
                if let Some((commit, _, _)) = &open {
                    names.insert(commit.clone(), self.below(&unquoted(name)));
                }
            } else if open.is_none() {
                open = header_of(line);
            }
        }
        Ok(blamed)
    }

    /// Lists the commits that removed a path, between `since` and `head`: those that `head` has and `since` does not
    /// have. The oldest is first. A merge with a branch that removed it is none of them.
    ///
    /// # Errors
    /// Those of running git.
    pub fn removals(&self, since: Option<&ObjectId>, head: &ObjectId, path: &str) -> Result<Vec<FileStep>> {
        let mut arguments = vec![
            "rev-list".to_owned(),
            "--topo-order".to_owned(),
            "--reverse".to_owned(),
            "--full-history".to_owned(),
            head.as_str().to_owned(),
        ];
        arguments.extend(since.map(|since| format!("^{since}")));
        arguments.extend(["--".to_owned(), self.in_tree(path)]);
        let listed = self.read(&arguments)?;
        let commits: Vec<ObjectId> =
            lines_of(&listed).filter_map(|line| ObjectId::parse(line.split(' ').next()?)).collect();
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let mut objects = self.objects()?;
        let mut removals = Vec::new();
        for commit in commits {
            if objects.blob_at(&commit, path)?.is_some() {
                continue;
            }
            let parents = self.parents(&commit)?;
            let mut had_it = Vec::with_capacity(parents.len());
            for parent in parents {
                if objects.blob_at(&parent, path)?.is_some() {
                    had_it.push(parent);
                } else {
                    // A merge with a branch that had removed it.
                    had_it.clear();
                    break;
                }
            }
            removals.extend(had_it.into_iter().next().map(|parent| FileStep { commit, parent }));
        }
        Ok(removals)
    }

    /// Lists the parents of a commit.
    ///
    /// # Errors
    /// Those of running git.
    pub fn parents(&self, commit: &ObjectId) -> Result<Vec<ObjectId>> {
        let said = self.read(["rev-list", "--parents", "--max-count=1", commit.as_str()])?;
        let text = String::from_utf8_lossy(&said);
        Ok(text.trim().split(' ').skip(1).filter_map(ObjectId::parse).collect())
    }

    /// Returns whether a commit is an ancestor of another one, or the same.
    ///
    /// # Errors
    /// Those of running git.
    pub fn is_ancestor(&self, commit: &ObjectId, of: &ObjectId) -> Result<bool> {
        let said = self.try_read(["merge-base", "--is-ancestor", commit.as_str(), of.as_str()], None)?;
        match said.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(self.refusal(&said.stderr)),
        }
    }

    /// Returns the best common ancestor of two commits; `None` if they have none.
    ///
    /// # Errors
    /// Those of running git.
    pub fn merge_base(&self, one: &ObjectId, other: &ObjectId) -> Result<Option<ObjectId>> {
        let said = self.try_read(["merge-base", one.as_str(), other.as_str()], None)?;
        match said.code {
            0 => Ok(lines_of(&said.stdout).next().and_then(|line| ObjectId::parse(line.trim()))),
            1 => Ok(None),
            _ => Err(self.refusal(&said.stderr)),
        }
    }

    /// Lists what differs between the trees of two commits below the repository's folder; with `renames`, a removed and a
    /// new file that are alike are one rename.
    ///
    /// # Errors
    /// Those of running git.
    pub fn changes(&self, from: &ObjectId, to: &ObjectId, renames: bool) -> Result<Vec<PathChange>> {
        let mut arguments =
            vec!["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv"];
        if renames {
            arguments.extend([RENAME_SHARE, RENAME_LIMIT]);
        } else {
            arguments.push("--no-renames");
        }
        arguments.extend(["--no-relative", from.as_str(), to.as_str()]);
        let said = self.read(arguments)?;
        self.raw_changes(&said)
    }

    /// Reads the raw form of a difference with null bytes between its fields.
    pub(super) fn raw_changes(&self, raw: &[u8]) -> Result<Vec<PathChange>> {
        let mut fields = raw.split(|byte| *byte == 0);
        let mut changes = Vec::new();
        while let Some(head) = fields.next() {
            let Some(head) = head.strip_prefix(b":") else { continue };
            let bad = || Error::internal("git prints a difference in another form than expected");
            let head = std::str::from_utf8(head).map_err(|_| bad())?;
            let parts: Vec<&str> = head.split(' ').collect();
            let [mode_before, mode_after, before, after, status] = parts[..] else { return Err(bad()) };
            let (before, after) = ObjectId::parse(before).zip(ObjectId::parse(after)).ok_or_else(bad)?;
            let first = fields.next().ok_or_else(bad)?;
            let is_submodule = mode_before == "160000" || mode_after == "160000";
            let (kind, score) = status.split_at(1);
            let second = if matches!(kind, "R" | "C") { Some(fields.next().ok_or_else(bad)?) } else { None };
            if is_submodule {
                continue;
            }
            let path = self.below(first);
            changes.extend(match (kind, second) {
                ("R", Some(second)) => {
                    let to = self.below(second);
                    let is_inside = path.is_some() || to.is_some();
                    let percent = score.parse().unwrap_or(0);
                    is_inside.then_some(PathChange::Renamed { from: path, to, before, after, percent })
                }
                ("C", Some(second)) => self.below(second).map(|path| PathChange::Added { path, blob: after }),
                ("A", _) => path.map(|path| PathChange::Added { path, blob: after }),
                ("D", _) => path.map(|path| PathChange::Removed { path, blob: before }),
                _ => path.filter(|_| !before.is_null() && !after.is_null()).map(|path| PathChange::Changed {
                    path,
                    before,
                    after,
                }),
            });
        }
        Ok(changes)
    }

    /// Reads the files of the raw form of a difference with an empty tree.
    pub(super) fn raw_files(&self, raw: &[u8]) -> Result<Vec<TreeFile>> {
        let mut fields = raw.split(|byte| *byte == 0);
        let mut files = Vec::new();
        let bad = || Error::internal("git prints a tree in another form than expected");
        while let Some(head) = fields.next() {
            let Some(head) = head.strip_prefix(b":") else { continue };
            let head = std::str::from_utf8(head).map_err(|_| bad())?;
            let [_, mode, _, blob, _] = head.split(' ').collect::<Vec<_>>()[..] else { return Err(bad()) };
            let blob = ObjectId::parse(blob).ok_or_else(bad)?;
            let path = self.below(fields.next().ok_or_else(bad)?).filter(|_| mode != "160000");
            files.extend(path.map(|path| TreeFile { path, blob, is_link: mode == "120000" }));
        }
        Ok(files)
    }

    /// Describes a commit.
    ///
    /// # Errors
    /// Those of running git.
    pub fn describe(&self, commit: &ObjectId) -> Result<CommitInfo> {
        self.describe_all(std::slice::from_ref(commit))?.pop().ok_or_else(bad_description)
    }

    /// Describes several commits, in order.
    ///
    /// # Errors
    /// Those of running git.
    pub(crate) fn describe_all(&self, commits: &[ObjectId]) -> Result<Vec<CommitInfo>> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = [
            "rev-list",
            "--no-walk=unsorted",
            "--no-commit-header",
            "--encoding=UTF-8",
            "--format=%H%x00%P%x00%at%x00%ct%x00%an%x00%s",
            "--stdin",
        ];
        let input: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let said = self.try_read(arguments, Some(input.as_bytes()))?;
        if said.code != 0 {
            return Err(self.refusal(&said.stderr));
        }
        let text = String::from_utf8_lossy(&said.stdout);
        // git describes a commit that is named twice once.
        let told: HashMap<ObjectId, CommitInfo> =
            text.lines().filter_map(info_of).map(|info| (info.id.clone(), info)).collect();
        commits.iter().map(|commit| told.get(commit).cloned().ok_or_else(bad_description)).collect()
    }
}

fn bad_description() -> Error {
    Error::internal("git describes a commit in another form than expected")
}

/// Iterates over the lines of an output that are UTF-8.
pub(super) fn lines_of(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok())
}

/// Reads a commit whose fields have null bytes between them.
fn info_of(text: &str) -> Option<CommitInfo> {
    let mut fields = text.split('\0');
    let id = ObjectId::parse(fields.next()?.trim())?;
    let parents = fields.next()?.split(' ').filter_map(ObjectId::parse).collect();
    let authored_at = fields.next()?.parse().ok()?;
    let committed_at = fields.next()?.parse().ok()?;
    let author = fields.next()?.to_owned();
    Some(CommitInfo {
        id,
        parents,
        authored_at,
        committed_at,
        author,
        subject: fields.next().unwrap_or_default().to_owned(),
    })
}

/// Reads the first line of an entry of `git blame --porcelain`: the commit, the line then and the line now.
fn header_of(line: &[u8]) -> Option<(ObjectId, usize, usize)> {
    let mut fields = std::str::from_utf8(line).ok()?.split(' ');
    let commit = ObjectId::parse(fields.next()?)?;
    Some((commit, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Takes off the quotes and escapes of a path as git prints it (`core.quotePath`): `"a\tb"`.
fn unquoted(name: &[u8]) -> Vec<u8> {
    let Some(inner) = name.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else {
        return name.to_owned();
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'a') => out.push(7),
            Some(b'b') => out.push(8),
            Some(b't') => out.push(b'\t'),
            Some(b'n') => out.push(b'\n'),
            Some(b'v') => out.push(11),
            Some(b'f') => out.push(12),
            Some(b'r') => out.push(b'\r'),
            Some(first @ b'0'..=b'3') => {
                let digit = |byte: Option<u8>| u32::from(byte.unwrap_or(b'0').saturating_sub(b'0'));
                let value = u32::from(first - b'0') * 64 + digit(bytes.next()) * 8 + digit(bytes.next());
                out.push(u8::try_from(value & 0xff).unwrap_or(b'?'));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}
