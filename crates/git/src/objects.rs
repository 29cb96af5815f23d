//! Trees and contents of files in the repository, read by one long-lived `git cat-file`.

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use sidenote_base::error::{Error, Result};

use crate::command::USAGE;
use crate::process::{GitInput, GitOutputPipe, GitProcess, TimeLimit, cannot_run};
use crate::{ObjectId, Repository};

/// The number of requests to a process that are under way at a time. A pipe holds them, so neither side waits for the other.
const AHEAD: usize = 64;

/// A file in the tree of a commit or in the index of git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// The path from the repository's folder.
    pub path: String,
    /// The id of the content.
    pub blob: ObjectId,
    /// Whether it is a symbolic link.
    pub is_link: bool,
}

/// A file or folder in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its name.
    pub name: String,
    /// The id of its content, or of its own tree.
    pub id: ObjectId,
    /// Whether it is a folder.
    pub is_folder: bool,
}

impl Repository {
    /// Returns the id of the commit that a revision names: anything that `git rev-parse` takes. Returns `None` if it names
    /// none.
    ///
    /// # Errors
    /// Those of running git.
    pub fn commit(&self, revision: &str) -> Result<Option<ObjectId>> {
        // What follows a search for a message belongs to the search.
        let id = match revision.starts_with(":/") {
            true => {
                let said =
                    self.try_read(["rev-parse", "--verify", "--quiet", "--end-of-options", revision], None)?;
                String::from_utf8_lossy(&said.stdout).trim().to_owned()
            }
            false => revision.to_owned(),
        };
        let revision = format!("{id}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &revision];
        let said = self.try_read(arguments, None)?;
        if said.code != 0 && said.stderr.contains("safe.directory") {
            return Err(self.refusal(&said.stderr));
        }
        let text = String::from_utf8_lossy(&said.stdout);
        Ok(if said.code == 0 { ObjectId::parse(text.trim()) } else { None })
    }

    /// Returns the commit at which the working tree is; `None` before the first commit.
    ///
    /// # Errors
    /// Those of running git.
    pub fn head(&self) -> Result<Option<ObjectId>> {
        self.commit("HEAD")
    }

    /// Returns the id of the tree below the repository's folder in a commit. Returns `None` if the commit has no such folder.
    ///
    /// # Errors
    /// Those of running git.
    pub fn tree_id(&self, commit: &ObjectId) -> Result<Option<ObjectId>> {
        let tree = format!("{commit}:{}", self.prefix.trim_end_matches('/'));
        let said = self.try_read(["rev-parse", "--verify", "--quiet", "--end-of-options", &tree], None)?;
        let text = String::from_utf8_lossy(&said.stdout);
        Ok(if said.code == 0 { ObjectId::parse(text.trim()) } else { None })
    }

    /// Lists the files below the repository's folder in the tree of a commit, ordered by path. Submodules are left out.
    ///
    /// # Errors
    /// Those of running git.
    pub fn tree(&self, commit: &ObjectId) -> Result<Vec<TreeFile>> {
        let mut arguments = vec!["ls-tree", "-r", "-z", "--full-tree", commit.as_str()];
        let folder = self.prefix.trim_end_matches('/');
        if !folder.is_empty() {
            arguments.extend(["--", folder]);
        }
        let listed = self.read(arguments)?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        Ok(entries.filter_map(|entry| self.tree_file(entry)).collect())
    }

    /// Reads an entry such as `100644 blob ID<tab>PATH`.
    fn tree_file(&self, entry: &[u8]) -> Option<TreeFile> {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let mut fields = std::str::from_utf8(&entry[..tab]).ok()?.split(' ');
        let (mode, kind, blob) = (fields.next()?, fields.next()?, ObjectId::parse(fields.next()?)?);
        let path = self.below(&entry[tab + 1..])?;
        (kind == "blob").then(|| TreeFile { path, blob, is_link: mode == "120000" })
    }

    /// Lists the files below the repository's folder in the index of git, without those in conflict, ordered by path.
    ///
    /// # Errors
    /// Those of running git.
    pub fn staged(&self) -> Result<Vec<TreeFile>> {
        let listed = self.read(["ls-files", "--stage", "-z", "--full-name"])?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        Ok(entries.filter_map(|entry| self.staged_file(entry)).collect())
    }

    /// Lists the files below the repository's folder that are in conflict in the index of git.
    ///
    /// # Errors
    /// Those of running git.
    pub fn unmerged(&self) -> Result<BTreeSet<String>> {
        let listed = self.read(["ls-files", "--unmerged", "-z", "--full-name"])?;
        let entries = listed.split(|byte| *byte == 0);
        let path = |entry: &[u8]| {
            let tab = entry.iter().position(|byte| *byte == b'\t')?;
            self.below(&entry[tab + 1..])
        };
        Ok(entries.filter_map(path).collect())
    }

    /// Reads an entry such as `100644 ID 0<tab>PATH`.
    fn staged_file(&self, entry: &[u8]) -> Option<TreeFile> {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let mut fields = std::str::from_utf8(&entry[..tab]).ok()?.split(' ');
        let (mode, blob, stage) = (fields.next()?, ObjectId::parse(fields.next()?)?, fields.next()?);
        let path = self.below(&entry[tab + 1..])?;
        (stage == "0" && mode != "160000").then(|| TreeFile { path, blob, is_link: mode == "120000" })
    }

    /// Lists the paths of the files in conflict below the repository's folder.
    ///
    /// # Errors
    /// Those of running git.
    pub fn conflicted(&self) -> Result<Vec<String>> {
        let listed = self.read(["ls-files", "--unmerged", "-z", "--full-name"])?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        let path = |entry: &[u8]| {
            let tab = entry.iter().position(|byte| *byte == b'\t')?;
            self.below(entry.get(tab + 1..)?)
        };
        let mut paths: Vec<String> = entries.filter_map(path).collect();
        paths.dedup();
        Ok(paths)
    }

    /// Starts the process that reads contents.
    ///
    /// # Errors
    /// Those of running git.
    pub fn objects(&self) -> Result<Objects> {
        self.refuse_special_files()?;
        let mut command = self.plumbing();
        command.args(["cat-file", "--batch-command", "-z"]).stdin(Stdio::piped()).stderr(Stdio::null());
        let (process, (input, output, _)) = GitProcess::start(&mut command, TimeLimit::WhileAnswering)?;
        let output = output.ok_or_else(|| Error::internal("git has no pipes"))?;
        Ok(Objects { repository: self.clone(), input, output: BufReader::new(output), process })
    }
}

/// A running `git cat-file`. It ends when this is dropped.
#[derive(Debug)]
pub struct Objects {
    repository: Repository,
    /// Git ends when this is closed, so it is declared, and dropped, before the process.
    input: Option<GitInput>,
    output: BufReader<GitOutputPipe>,
    process: GitProcess,
}

impl Objects {
    /// Reads the content of a file in the tree of a commit. Returns `None` if the tree has no such file.
    ///
    /// # Errors
    /// `Io` if git ends.
    pub fn file(&mut self, commit: &ObjectId, path: &str) -> Result<Option<Vec<u8>>> {
        let name = format!("{commit}:{}{path}", self.repository.prefix);
        self.ask("contents", &name)
    }

    /// Returns the id of the content of a file in the tree of a commit. Returns `None` if the tree has no such file.
    ///
    /// # Errors
    /// `Io` if git ends.
    pub fn blob_at(&mut self, commit: &ObjectId, path: &str) -> Result<Option<ObjectId>> {
        let name = format!("{commit}:{}{path}", self.repository.prefix);
        if !is_name(&name) {
            return Ok(None);
        }
        self.send("info", &name)?;
        let Some((id, kind, _)) = self.header()? else { return Ok(None) };
        Ok((kind == "blob").then_some(id))
    }

    /// Reads the tree of a commit, with its id. Returns `None` if there is no such commit.
    ///
    /// # Errors
    /// `Io` if git ends.
    pub fn tree_of(&mut self, commit: &ObjectId) -> Result<Option<(ObjectId, Vec<TreeEntry>)>> {
        self.ask_tree(&format!("{commit}^{{tree}}"))
    }

    /// Reads a tree by its id. Returns `None` if there is no such tree.
    ///
    /// # Errors
    /// `Io` if git ends.
    pub fn tree(&mut self, id: &ObjectId) -> Result<Option<Vec<TreeEntry>>> {
        Ok(self.ask_tree(id.as_str())?.map(|(_, entries)| entries))
    }

    fn ask_tree(&mut self, name: &str) -> Result<Option<(ObjectId, Vec<TreeEntry>)>> {
        self.send("contents", name)?;
        let Some((id, kind, size)) = self.header()? else { return Ok(None) };
        let content = self.bytes(size)?;
        Ok((kind == "tree").then(|| {
            let entries = tree_entries(&content, id.as_str().len() / 2);
            (id, entries)
        }))
    }

    /// Returns the first line of a commit's message. It is empty if the commit cannot be read.
    ///
    /// # Errors
    /// `Io` if git ends.
    pub fn subject(&mut self, commit: &ObjectId) -> Result<String> {
        self.send("contents", commit.as_str())?;
        let Some((_, kind, size)) = self.header()? else { return Ok(String::new()) };
        let content = self.bytes(size)?;
        let text = String::from_utf8_lossy(&content);
        let message = text.split_once("\n\n").filter(|_| kind == "commit").map_or("", |(_, message)| message);
        Ok(message.trim_start().lines().next().unwrap_or_default().to_owned())
    }

    /// Reads a content by its id. Returns `None` if there is no such object, or if it is in another place and would have to
    /// be fetched.
    ///
    /// # Errors
    /// `Io` if git ends.
    pub fn blob(&mut self, id: &ObjectId) -> Result<Option<Vec<u8>>> {
        self.ask("contents", id.as_str())
    }

    /// Reads many contents by their ids, in order.
    ///
    /// # Errors
    /// `Io` if git ends.
    pub fn blobs(&mut self, ids: &[ObjectId]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = Vec::with_capacity(ids.len());
        let mut waiting = VecDeque::new();
        for id in ids {
            if waiting.len() == AHEAD {
                waiting.pop_front();
                found.push(self.content()?);
            }
            self.send("contents", id.as_str())?;
            waiting.push_back(());
        }
        for () in waiting {
            found.push(self.content()?);
        }
        Ok(found)
    }

    /// Returns the sizes of many contents by their ids, in order. A content that is not there has none.
    ///
    /// # Errors
    /// `Io` if git ends.
    pub fn sizes(&mut self, ids: &[ObjectId]) -> Result<Vec<Option<u64>>> {
        let mut sizes = Vec::with_capacity(ids.len());
        for group in ids.chunks(AHEAD) {
            for id in group {
                self.send("info", id.as_str())?;
            }
            for _ in group {
                let header = self.header()?.filter(|(_, kind, _)| kind == "blob");
                sizes.push(header.and_then(|(_, _, size)| u64::try_from(size).ok()));
            }
        }
        Ok(sizes)
    }

    fn ask(&mut self, command: &str, name: &str) -> Result<Option<Vec<u8>>> {
        if !is_name(name) {
            return Ok(None);
        }
        self.send(command, name)?;
        self.content()
    }

    fn send(&mut self, command: &str, name: &str) -> Result<()> {
        let input = self.input.as_mut().ok_or_else(|| Error::internal("git has no input"))?;
        match input.write_all(format!("{command} {name}\0").as_bytes()) {
            // What git said before it ended is read.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(cannot_run(error)),
            _ => Ok(()),
        }
    }

    /// Reads the first line of an answer: the id, the kind and the size. Returns `None` for a missing object.
    fn header(&mut self) -> Result<Option<(ObjectId, String, usize)>> {
        let mut line = Vec::new();
        self.output.read_until(b'\n', &mut line).map_err(cannot_run)?;
        if line.is_empty() {
            self.input = None;
            if self.process.wait().map_err(cannot_run)?.code() == Some(USAGE) {
                self.repository.check_version()?;
            }
            return Err(Error::io("read from", "git cat-file", std::io::ErrorKind::UnexpectedEof.into()));
        }
        let line = String::from_utf8_lossy(&line);
        let mut fields = line.trim_end().split(' ');
        let header = (|| {
            let (id, kind) = (ObjectId::parse(fields.next()?)?, fields.next()?.to_owned());
            Some((id, kind, fields.next()?.parse().ok()?))
        })();
        Ok(header)
    }

    fn content(&mut self) -> Result<Option<Vec<u8>>> {
        let Some((_, kind, size)) = self.header()? else { return Ok(None) };
        let content = self.bytes(size)?;
        Ok((kind == "blob").then_some(content))
    }

    /// Reads the content of an answer, and the line end after it.
    fn bytes(&mut self, size: usize) -> Result<Vec<u8>> {
        let mut content = vec![0; size];
        self.output.read_exact(&mut content).map_err(cannot_run)?;
        self.output.read_exact(&mut [0]).map_err(cannot_run)?;
        Ok(content)
    }
}

/// Reads the entries of a tree: the mode, a space, the name, a null byte, and the bytes of the id. What is neither a file nor a
/// folder is left out.
fn tree_entries(content: &[u8], id_length: usize) -> Vec<TreeEntry> {
    let mut entries = Vec::new();
    let mut rest = content;
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        let (head, after) = rest.split_at(end);
        let Some((id, next)) = after.get(1..).and_then(|after| after.split_at_checked(id_length)) else {
            break;
        };
        rest = next;
        let Some((mode, name)) = std::str::from_utf8(head).ok().and_then(|head| head.split_once(' ')) else {
            continue;
        };
        let is_folder = match mode {
            "40000" => true,
            // The commit of a submodule.
            "160000" => continue,
            _ => false,
        };
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        entries.push(TreeEntry { name: name.to_owned(), id: ObjectId(id), is_folder });
    }
    entries
}

/// Returns whether a name can be asked for. One with a line break would be answered in several lines.
fn is_name(name: &str) -> bool {
    !name.contains(['\0', '\n'])
}
