//! Symbolic links in a vault: which are followed, and the canonical path of a file that is reachable by several.
//!
//! A link to a visible path of the vault is followed. A link that leads outside is followed only if the user's own
//! settings allow it, because a vault can be a download.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::{platform, safe_open};
use sidenote_markdown::path::{NotePath, to_nfc};

use crate::Vault;
use crate::fence::absent;

/// The hint on how to allow links that lead outside the vault.
pub(crate) const HOW_TO_FOLLOW: &str = "to allow it, set in the user's own settings vault.follow_outside = true, or SIDENOTE_VAULT_FOLLOW_OUTSIDE=true";

/// The target of a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkTarget {
    /// A visible path of the vault, canonical and relative to the root; empty for the root.
    Inside(String),
    /// A path of the vault that holds no notes: in a hidden folder, or with a name that is not UTF-8.
    Hidden,
    /// This canonical path outside the vault.
    Outside(PathBuf),
}

/// Follows all links of a path and says where it leads. `root` must be canonical.
///
/// # Errors
/// System errors, such as `NotFound` for a dangling link.
pub(crate) fn resolve_link(root: &Path, disk: &Path) -> io::Result<LinkTarget> {
    let real = platform::canonicalize(disk)?;
    Ok(match real.strip_prefix(root) {
        Ok(inner) => match platform::slash_path(inner) {
            Some(inner) if inner.is_empty() || NotePath::from_disk(&inner).is_some() => {
                LinkTarget::Inside(inner)
            }
            _ => LinkTarget::Hidden,
        },
        Err(_) => LinkTarget::Outside(real),
    })
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

impl Vault {
    /// Opens a regular file of the vault for reading. A link on the way is followed to a visible path of the vault, and
    /// outside the vault if that is allowed. The file that is opened is the one that was checked, even if links change
    /// meanwhile.
    ///
    /// # Errors
    /// `InvalidInput` if it is not a regular file or a link on the way must not be followed, and system errors.
    pub fn open_file(&self, path: &NotePath) -> io::Result<File> {
        self.refuse_withheld(path, self.open_to_read(path)?)
    }

    /// Does the same for a caller that reads the whole file, and looks then whether it says that it does not exist for agents.
    pub(crate) fn open_to_read(&self, path: &NotePath) -> io::Result<File> {
        if self.may_show(path) { self.open_any_file(path) } else { Err(absent()) }
    }

    fn open_any_file(&self, path: &NotePath) -> io::Result<File> {
        match self.open_without_links(path.as_str()) {
            Err(error) if safe_open::is_link_error(&error) => {}
            opened => return opened,
        }
        // A parent of the root may have become a link since the vault was opened.
        let root = platform::canonicalize(&self.root)?;
        match resolve_link(&root, &self.disk_path(path))? {
            LinkTarget::Inside(inner)
                if NotePath::from_disk(&inner).is_some_and(|to| !self.may_show(&to)) =>
            {
                Err(absent())
            }
            LinkTarget::Inside(inner) => safe_open::open(&root, inner),
            LinkTarget::Hidden => {
                Err(refused("a symbolic link leads to a hidden folder of the vault (symlink)"))
            }
            LinkTarget::Outside(real) if self.follow_outside => safe_open::open_absolute(&real),
            LinkTarget::Outside(_) => Err(refused(
                "a symbolic link leads outside the vault; vault.follow_outside in the user's own settings can allow it (symlink)",
            )),
        }
    }

    /// Opens a file whose path contains no symbolic link.
    fn open_without_links(&self, inner: &str) -> io::Result<File> {
        match safe_open::open_without_links(&self.root.join(inner)) {
            Some(opened) => opened,
            None => safe_open::open(&self.root, inner),
        }
    }

    /// Returns the canonical vault path of a file whose folder may be reached through a symbolic link: the path without
    /// links if the folder is in the vault, otherwise the path through the link that a full scan follows.
    ///
    /// # Errors
    /// `Invalid` if a link on the way must not be followed; `Io` if the folder cannot be read.
    pub fn canonical_path(&self, path: &NotePath) -> Result<NotePath> {
        let path = &match NotePath::from_disk(path.folder()) {
            Some(folder) if !folder.as_str().is_ascii() => {
                let folder = as_spelled_on_disk(self, &folder);
                NotePath::from_disk(&format!("{folder}/{}", path.name())).unwrap_or_else(|| path.clone())
            }
            _ => path.clone(),
        };
        let (mut there, mut rest) = (path.folder(), path.name().to_owned());
        let real = loop {
            if there.is_empty() {
                return Ok(path.clone());
            }
            match resolve_link(&self.root, &self.root.join(there)) {
                Ok(target) => break target,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound
                            | io::ErrorKind::NotADirectory
                            | io::ErrorKind::InvalidFilename
                    ) && !self.root.join(there).is_symlink() =>
                {
                    let (above, name) = there.rsplit_once('/').unwrap_or(("", there));
                    rest = format!("{name}/{rest}");
                    there = above;
                }
                Err(error) => return Err(Error::io("look into", self.root.join(there), error)),
            }
        };
        let link_to = |what: &str| {
            Error::new(
                ErrorKind::Invalid,
                format!("{there} leads through a symbolic link to {what} (symlink)"),
            )
        };
        let settled = match real {
            LinkTarget::Inside(inner) if inner == there => return Ok(path.clone()),
            LinkTarget::Inside(inner) if inner.is_empty() => rest,
            LinkTarget::Inside(inner) => format!("{inner}/{rest}"),
            LinkTarget::Hidden => return Err(link_to("a hidden folder of the vault")),
            LinkTarget::Outside(_) if !self.follow_outside => {
                return Err(link_to("a folder outside the vault").with_hint(HOW_TO_FOLLOW));
            }
            LinkTarget::Outside(real) => match self.vault_path_of_outside(&real) {
                Some(way) => format!("{way}/{rest}"),
                None => return Ok(path.clone()),
            },
        };
        NotePath::from_disk(&settled)
            .ok_or_else(|| Error::invalid(format!("{path} does not lead to a path that a note can have")))
    }

    /// Returns the vault path of a folder outside the vault; `None` if no followed link leads there, or if the followed
    /// links are not known yet.
    fn vault_path_of_outside(&self, real: &Path) -> Option<String> {
        let followed = self.followed.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        followed.iter().flatten().find_map(|link| {
            let rest = platform::slash_path(real.strip_prefix(&link.target).ok()?)?;
            Some(if rest.is_empty() { link.path.clone() } else { format!("{}/{rest}", link.path) })
        })
    }

    /// Returns whether links let a full scan list the files of a folder.
    ///
    /// # Errors
    /// System errors.
    pub(crate) fn lists_folder(&self, folder: &str) -> io::Result<bool> {
        Ok(match resolve_link(&self.root, &self.root.join(folder))? {
            LinkTarget::Inside(inner) => inner == folder,
            LinkTarget::Hidden => false,
            LinkTarget::Outside(real) => {
                let is_known =
                    self.followed.read().unwrap_or_else(std::sync::PoisonError::into_inner).is_some();
                self.follow_outside
                    && (!is_known || self.vault_path_of_outside(&real).as_deref() == Some(folder))
            }
        })
    }
}

/// Returns a path in the spelling of the disk, whose names can differ from the given ones in the encoding of accents (NFD in
/// place of NFC). Names that are not there stay as given.
pub fn as_spelled_on_disk(vault: &Vault, path: &NotePath) -> NotePath {
    let mut known = String::new();
    for name in path.as_str().split('/') {
        let spelled = if name.is_ascii() { None } else { spelled_in(&vault.root().join(&known), name) };
        if !known.is_empty() {
            known.push('/');
        }
        known.push_str(spelled.as_deref().unwrap_or(name));
    }
    NotePath::from_disk(&known).unwrap_or_else(|| path.clone())
}

/// Finds the one entry of a folder whose name is the same except for the encoding of accents.
fn spelled_in(folder: &Path, name: &str) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?;
    let wanted = to_nfc(name);
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut same: Vec<String> = names.filter(|held| to_nfc(held) == wanted).collect();
    let is_exact = same.iter().any(|held| held == name);
    if is_exact || same.len() != 1 { None } else { same.pop() }
}
