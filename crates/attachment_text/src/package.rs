//! Archives of Office files and books, and how their parts refer to each other.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::Unreadable;
use crate::xml::{self, Node};

/// How many bytes all parts of a file that are read have in memory, one after the other. The text of the largest
/// spreadsheets takes some 100 MB as XML; an archive of 1 MB may claim a thousand times as much.
const MAX_UNPACKED: u64 = 256 << 20;

/// How many parts an archive has. Books with an image a page have some thousands.
const MAX_PARTS: usize = 65_536;

/// An open archive.
pub(crate) struct Package<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    left: u64,
}

impl<'a> Package<'a> {
    /// Opens an archive.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        // Office keeps a file with a password in the container of its old formats.
        if bytes.starts_with(&[0xd0, 0xcf, 0x11, 0xe0]) {
            let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
            let is_encrypted = bytes.windows(name.len()).any(|window| window == name);
            return Err(if is_encrypted {
                Unreadable::Encrypted
            } else {
                damaged("the file has an old format of Office")
            });
        }
        if !bytes.starts_with(b"PK") {
            return Err(damaged("it is no ZIP archive"));
        }
        let archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|_| damaged("the archive ends before its table of contents"))?;
        if archive.len() > MAX_PARTS {
            return Err(damaged("the archive has more parts than any document"));
        }
        Ok(Self { archive, left: MAX_UNPACKED })
    }

    /// Reads a part; `None` if there is none of that name.
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        let part = match self.archive.by_name(name) {
            Ok(part) => part,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
                return Err(Unreadable::Encrypted);
            }
            Err(_) => return Err(damaged("a part of the archive is damaged")),
        };
        // What a part claims to have is not believed: it is read up to what is left.
        let mut bytes = Vec::new();
        let read = part.take(self.left + 1).read_to_end(&mut bytes);
        let length = bytes.len() as u64;
        if length > self.left {
            return Err(damaged("the archive unpacks to more than any document has"));
        }
        self.left -= length;
        match read {
            Ok(_) => Ok(Some(bytes)),
            Err(_) => Err(damaged("a part of the archive is damaged")),
        }
    }

    /// Reads a part without which there is no text.
    pub(crate) fn need(&mut self, name: &str) -> Result<Vec<u8>, Unreadable> {
        self.read(name)?.ok_or_else(|| Unreadable::Damaged(format!("the archive has no part {name}")))
    }

    /// Returns the name of the main part of a file of Office, which is `usual` in most files.
    pub(crate) fn main_part(&mut self, usual: &str) -> Result<String, Unreadable> {
        let main = self.relations("")?.into_iter().find(|relation| relation.kind == "officeDocument");
        Ok(main.map_or_else(|| usual.to_owned(), |relation| relation.target))
    }

    /// Reads what a part of Office refers to: the parts by their ids.
    pub(crate) fn relations(&mut self, part: &str) -> Result<Vec<Relation>, Unreadable> {
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let of_part = format!("{folder}/_rels/{name}.rels");
        let Some(bytes) = self.read(of_part.trim_start_matches('/'))? else {
            return Ok(Vec::new());
        };
        let mut relations = Vec::new();
        xml::walk(&bytes, |node| {
            if let Node::Start(element) = node
                && element.name() == "Relationship"
                && element.attribute("TargetMode").as_deref() != Some("External")
                && let (Some(id), Some(target)) = (element.attribute("Id"), element.attribute("Target"))
            {
                let kind = element.attribute("Type").unwrap_or_default();
                let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
                relations.push(Relation { id, kind, target: resolve(folder, &target) });
            }
            true
        });
        Ok(relations)
    }
}

/// A reference from one part to another.
pub(crate) struct Relation {
    pub(crate) id: String,
    /// What it is, such as `notesSlide`.
    pub(crate) kind: String,
    /// The name of the part.
    pub(crate) target: String,
}

/// Returns the parts by their ids.
pub(crate) fn by_id(relations: Vec<Relation>) -> BTreeMap<String, String> {
    relations.into_iter().map(|relation| (relation.id, relation.target)).collect()
}

/// Returns the name of a part that is named relative to a folder.
pub(crate) fn resolve(folder: &str, target: &str) -> String {
    let whole = if target.starts_with('/') { target.to_owned() } else { format!("{folder}/{target}") };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.join("/")
}

pub(crate) fn damaged(what: &str) -> Unreadable {
    Unreadable::Damaged(what.to_owned())
}
