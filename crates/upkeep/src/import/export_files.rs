//! The files of an export that a person downloaded: a ZIP archive, a folder, or one file. They are only read, and nothing is
//! unpacked to the disk.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open;
use zip::ZipArchive;
use zip::result::ZipError;

/// How often a file of an archive may be larger than its compressed form. Conversations as JSON are 4 to 20 times larger, and
/// deflate can do 1,032 times.
const MAX_EXPANSION: u64 = 200;
/// A file of this size is no danger, however well it is compressed.
const HARMLESS: u64 = 16 << 20;
/// The most files in an archive. An export has one for each image.
const MAX_ENTRIES: usize = 200_000;
/// The most bytes of one conversation, document or memory as JSON. It is read into memory, and a book has 1 MB.
const MAX_ITEM: u64 = 64 << 20;
/// The most bytes of a text: a book.
const MAX_TEXT: u64 = 4 << 20;
/// The depth of the folders of an export.
const DEPTH: usize = 8;

/// What keeps count while an export is read.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadCount {
    /// The bytes that were read of all files.
    total: Rc<Cell<u64>>,
    /// The bytes that were read since the last item began.
    item: Rc<Cell<u64>>,
}

impl ReadCount {
    /// Returns the number of bytes that were read.
    pub(super) fn total(&self) -> u64 {
        self.total.get()
    }

    /// Begins the next item.
    pub(super) fn begin_item(&self) {
        self.item.set(0);
    }
}

/// The files of an export.
#[derive(Debug)]
pub(super) struct ExportFiles {
    path: PathBuf,
    form: Form,
    count: ReadCount,
}

#[derive(Debug)]
enum Form {
    Archive(Box<ZipArchive<BufReader<File>>>),
    Folder,
    File,
}

/// A file of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExportFile {
    /// Its path in the export, with forward slashes.
    pub(super) name: String,
    /// Its size in bytes.
    pub(super) size: u64,
}

impl ExportFile {
    /// Returns the name without the folders.
    pub(super) fn base_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// Returns the name of the folder in which it is; nothing for the outermost one.
    pub(super) fn folder_name(&self) -> &str {
        self.name.rsplit('/').nth(1).unwrap_or("")
    }
}

impl ExportFiles {
    /// Opens an export.
    ///
    /// # Errors
    /// `Io` or `Invalid` if it cannot be read; `Invalid`, naming the place, if it is no sound archive, or has a file that leads
    /// out of it.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |error| safe_open::failed("read", path, error);
        let count = ReadCount::default();
        let form = if std::fs::metadata(path).map_err(failed)?.is_dir() {
            Form::Folder
        } else {
            let file = safe_open::open_in_place(path).map_err(failed)?;
            let mut beginning = [0; 4];
            let mut reader = BufReader::new(file);
            let length = read_up_to(&mut reader, &mut beginning).map_err(failed)?;
            if beginning.get(..length).is_some_and(|read| read.starts_with(b"PK")) {
                Form::Archive(Box::new(open_archive(path, reader.into_inner())?))
            } else {
                Form::File
            }
        };
        Ok(Self { path: path.to_owned(), form, count })
    }

    /// Returns the count of what is read.
    pub(super) fn count(&self) -> ReadCount {
        self.count.clone()
    }

    /// Returns whether the export is one file, and neither an archive nor a folder.
    pub(super) fn is_single(&self) -> bool {
        matches!(self.form, Form::File)
    }

    /// Lists the files in the order of their names.
    ///
    /// # Errors
    /// `Io` if a folder cannot be listed; `Invalid` if the archive is damaged.
    pub(super) fn list(&mut self) -> Result<Vec<ExportFile>> {
        let path = &self.path;
        let mut files = match &mut self.form {
            Form::File => {
                let size = std::fs::metadata(path).map_err(|error| Error::io("read", path, error))?.len();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                vec![ExportFile { name, size }]
            }
            Form::Folder => {
                let mut files = Vec::new();
                list_folder(path, "", DEPTH, &mut files)?;
                files
            }
            Form::Archive(archive) => {
                let mut files = Vec::new();
                for at in 0..archive.len() {
                    let file = archive.by_index_raw(at).map_err(|error| damaged(path, &error))?;
                    let name = file.name().map_err(|error| damaged(path, &error))?.into_owned();
                    if !file.is_dir() {
                        files.push(ExportFile { name, size: file.size() });
                    }
                }
                files
            }
        };
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(files)
    }

    /// Returns how messages name a file of the export.
    pub(super) fn place(&self, file: &ExportFile) -> String {
        match self.form {
            Form::File => self.path.display().to_string(),
            Form::Folder => self.path.join(&file.name).display().to_string(),
            Form::Archive(_) => format!("{} in {}", file.name, self.path.display()),
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// `Invalid`, naming the place, if it is too long or not UTF-8; those of [`Self::read`].
    pub(super) fn read_text(&mut self, file: &ExportFile) -> Result<String> {
        let place = self.place(file);
        self.read(file, |reader| {
            let mut bytes = Vec::new();
            let read = reader.take(MAX_TEXT + 1).read_to_end(&mut bytes);
            read.map_err(|error| Error::invalid(format!("{place}: {error}")))?;
            if bytes.len() as u64 > MAX_TEXT {
                return Err(Error::invalid(format!("{place} has more than {} MB", MAX_TEXT >> 20))
                    .with_hint("leave the file out"));
            }
            String::from_utf8(bytes).map_err(|_| {
                Error::invalid(format!("{place} is not UTF-8")).with_hint("leave the file out, or convert it")
            })
        })
    }

    /// Gives a file to a function that reads it.
    ///
    /// # Errors
    /// Those of the function; `Io` or `Invalid` if the file cannot be opened.
    pub(super) fn read<T>(
        &mut self,
        file: &ExportFile,
        read: impl FnOnce(&mut dyn Read) -> Result<T>,
    ) -> Result<T> {
        let place = self.place(file);
        let path = match self.form {
            Form::Folder => self.path.join(&file.name),
            _ => self.path.clone(),
        };
        let count = self.count();
        count.begin_item();
        match &mut self.form {
            Form::File | Form::Folder => {
                let opened = safe_open::open_in_place(&path);
                let opened = opened.map_err(|error| safe_open::failed("read", &path, error))?;
                let limit = u64::MAX;
                read(&mut BufReader::with_capacity(
                    64 << 10,
                    Counted { inner: opened, limit, read: 0, count },
                ))
            }
            Form::Archive(archive) => {
                let opened = archive.by_name(&file.name).map_err(|error| match error {
                    ZipError::UnsupportedArchive(why) => {
                        Error::invalid(format!("{place} cannot be read: {why}"))
                            .with_hint("unpack the archive, and give the folder")
                    }
                    error => Error::invalid(format!("{place} is damaged: {error}"))
                        .with_hint("download the export again"),
                })?;
                let limit = opened.compressed_size().saturating_mul(MAX_EXPANSION).max(HARMLESS);
                if opened.size() > limit {
                    return Err(Error::invalid(format!("{place}: {}", expansion()))
                        .with_hint("download the export again, and from its own site"));
                }
                read(&mut BufReader::with_capacity(
                    64 << 10,
                    Counted { inner: opened, limit, read: 0, count },
                ))
            }
        }
    }
}

/// Opens an archive, and checks the names of its files.
fn open_archive(path: &Path, file: File) -> Result<ZipArchive<BufReader<File>>> {
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| damaged(path, &error))?;
    let shown = path.display();
    if archive.len() > MAX_ENTRIES {
        return Err(Error::invalid(format!(
            "{shown} has {} files; an export has {MAX_ENTRIES} at most",
            archive.len()
        )));
    }
    if archive.has_duplicate_names() {
        return Err(Error::invalid(format!("{shown} has two files with the same name"))
            .with_hint("download the export again"));
    }
    for at in 0..archive.len() {
        let file = archive.by_index_raw(at).map_err(|error| damaged(path, &error))?;
        let name = file.name().map_err(|error| damaged(path, &error))?;
        if leads_out(&name) || file.is_symlink() {
            let name = name.escape_debug();
            return Err(Error::invalid(format!("the file {name} of {shown} leads out of the archive"))
                .with_hint("download the export again, and from its own site"));
        }
    }
    Ok(archive)
}

/// Returns whether the name of a file in an archive leads out of the folder in which it would be unpacked.
fn leads_out(name: &str) -> bool {
    let has_drive = name.as_bytes().get(1) == Some(&b':');
    name.starts_with(['/', '\\'])
        || has_drive
        || name.contains('\0')
        || name.split(['/', '\\']).any(|part| part == "..")
}

fn damaged(path: &Path, error: &ZipError) -> Error {
    Error::invalid(format!("{} is no sound ZIP archive: {error}", path.display()))
        .with_hint("download the export again")
}

fn expansion() -> String {
    format!("it is more than {MAX_EXPANSION} times as large as its compressed form, as in a ZIP bomb")
}

/// Lists the files of a folder. Links are not followed.
fn list_folder(root: &Path, inner: &str, depth: usize, files: &mut Vec<ExportFile>) -> Result<()> {
    let folder = root.join(inner);
    let failed = |error| Error::io("list", &folder, error);
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let found = entry.metadata().map_err(failed)?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let name = if inner.is_empty() { name } else { format!("{inner}/{name}") };
        if found.is_file() {
            files.push(ExportFile { name, size: found.len() });
        } else if found.is_dir() && depth > 1 {
            list_folder(root, &name, depth - 1, files)?;
        }
    }
    Ok(())
}

fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// A reader that counts, and that refuses what is too large.
struct Counted<R> {
    inner: R,
    limit: u64,
    read: u64,
    count: ReadCount,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.read += length as u64;
        if self.read > self.limit {
            return Err(io::Error::other(expansion()));
        }
        let item = self.count.item.get() + length as u64;
        if item > MAX_ITEM {
            return Err(io::Error::other(format!("a single item has more than {} MB", MAX_ITEM >> 20)));
        }
        self.count.item.set(item);
        self.count.total.set(self.count.total.get() + length as u64);
        Ok(length)
    }
}
