//! Differences between trees of the repository, asked one after the other from one long-lived `git diff-tree`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use sidenote_base::error::{Error, Result};

use crate::history::{RENAME_LIMIT, RENAME_SHARE};
use crate::process::{GitErrors, GitInput, GitOutputPipe, GitProcess, TimeLimit};
use crate::{ObjectId, PathChange, Repository, TreeFile};

/// The number of requests to a process that are under way at a time. A pipe holds them, so neither side waits for the other.
const AHEAD: usize = 64;
/// The line after each request, which git repeats when it has answered.
const MARK: &[u8] = b"=\n";
/// The ids of a tree without files.
const EMPTY_TREES: [&str; 2] = [
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
];

/// A running `git diff-tree`. It ends when this is dropped.
#[derive(Debug)]
pub struct TreeDiffs {
    repository: Repository,
    input: Option<GitInput>,
    output: BufReader<GitOutputPipe>,
    /// Reads what git says of errors.
    errors: Option<GitErrors>,
    /// Git ends when its input is closed, so `input` is declared, and dropped, before the process.
    _process: GitProcess,
}

impl Repository {
    /// Starts the process that compares trees.
    ///
    /// # Errors
    /// `NotFound` if there is no git.
    pub fn tree_diffs(&self) -> Result<TreeDiffs> {
        let mut command = self.plumbing();
        command.args(["diff-tree", "--stdin", "--always", "-r", "-z", "--raw", "--no-abbrev"]);
        command.args(["--no-ext-diff", "--no-textconv", "--no-relative"]);
        command.args([RENAME_SHARE, RENAME_LIMIT]);
        command.stdin(Stdio::piped());
        let (process, (input, output, errors)) = GitProcess::start(&mut command, TimeLimit::WhileAnswering)?;
        let errors = errors.map(GitErrors::read).transpose()?;
        let output = output.ok_or_else(|| Error::internal("git has no pipes"))?;
        Ok(TreeDiffs {
            repository: self.clone(),
            input,
            output: BufReader::new(output),
            errors,
            _process: process,
        })
    }
}

impl TreeDiffs {
    /// Lists what each commit of some pairs of a parent and a commit changed, with renames, below the repository's folder.
    ///
    /// # Errors
    /// `Invalid` with what git said if it cannot read a commit; `Io` if it cannot be asked.
    pub fn of_commits(&mut self, pairs: &[(&ObjectId, &ObjectId)]) -> Result<Vec<Vec<PathChange>>> {
        let mut found = Vec::with_capacity(pairs.len());
        for group in pairs.chunks(AHEAD) {
            let requests: String =
                group.iter().map(|(parent, commit)| format!("{commit} {parent}\n=\n")).collect();
            self.send(&requests)?;
            for (_, commit) in group {
                let (header, raw) = self.answer()?;
                if !header.starts_with(commit.as_str().as_bytes()) {
                    return Err(self.failure(&format!("commit {}", commit.short())));
                }
                found.push(self.repository.raw_changes(&raw)?);
            }
        }
        Ok(found)
    }

    /// Lists the files of a tree, below the repository's folder, ordered by path. Submodules are left out.
    ///
    /// # Errors
    /// `Invalid` with what git said if it cannot read the tree; `Io` if it cannot be asked.
    pub fn files_of(&mut self, tree: &ObjectId) -> Result<Vec<TreeFile>> {
        let empty = EMPTY_TREES.iter().find(|id| id.len() == tree.as_str().len()).unwrap_or(&EMPTY_TREES[0]);
        self.send(&format!("{empty} {tree}\n=\n"))?;
        let (header, raw) = self.answer()?;
        if !header.starts_with(empty.as_bytes()) {
            return Err(self.failure(&format!("tree {}", tree.short())));
        }
        self.repository.raw_files(&raw)
    }

    fn send(&mut self, requests: &str) -> Result<()> {
        let input = self.input.as_mut().ok_or_else(|| Error::internal("git has no input"))?;
        let sent = input.write_all(requests.as_bytes());
        sent.map_err(|_| self.failure("its history"))
    }

    /// Reads one answer: what names the request, and the raw differences. Both are empty if git cannot read something.
    fn answer(&mut self) -> Result<(Vec<u8>, Vec<u8>)> {
        let (mut header, mut raw) = (Vec::new(), Vec::new());
        loop {
            let field = match self.field() {
                Ok(field) if !field.is_empty() => field,
                _ => return Err(self.failure("its history")),
            };
            match field.first() {
                Some(b':') => raw.extend(field),
                _ if field == MARK => return Ok((header, raw)),
                _ => header = field,
            }
        }
    }

    /// Reads a difference with its paths, the name of a request, or the mark. It is empty at the end.
    fn field(&mut self) -> std::io::Result<Vec<u8>> {
        let mut field = Vec::new();
        if self.output.fill_buf()?.first() == Some(&b':') {
            self.output.read_until(0, &mut field)?;
            let status = field.rsplit(|byte| *byte == b' ').next().and_then(|status| status.first());
            let paths = if matches!(status, Some(b'R' | b'C')) { 2 } else { 1 };
            for _ in 0..paths {
                self.output.read_until(0, &mut field)?;
            }
            return Ok(field);
        }
        // The name ends with a null byte for a commit, and with a line feed for a tree.
        for byte in self.output.by_ref().bytes() {
            field.push(byte?);
            if matches!(field.last(), Some(0 | b'\n')) {
                break;
            }
        }
        Ok(field)
    }

    /// Returns the error that git could not read something, with what it said. The process has ended then.
    fn failure(&mut self, what: &str) -> Error {
        self.input = None;
        let said = self.errors.take().map(GitErrors::said).unwrap_or_default();
        if said.trim().is_empty() {
            return Error::invalid(format!(
                "git cannot read {what} of {}",
                self.repository.work_tree.display()
            ));
        }
        self.repository.refusal(&said)
    }
}
