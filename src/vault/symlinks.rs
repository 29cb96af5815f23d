//! Owns what symbolic links in a vault may lead to: which are followed, and which path of the vault a file goes by that
//! is reached in two ways.
//!
//! A link to a place in the vault is followed where that place is visible. One that leads out is followed only where
//! the user's own settings allow it, for a vault can be a download.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::safe_open;
use crate::text::path::NotePath;
use crate::vault::Vault;

/// What the user does to have links followed that lead out of the vault.
pub(crate) const HOW_TO_FOLLOW: &str = "the user's own settings can allow that: vault.follow_outside = true, or SIDENOTE_VAULT_FOLLOW_OUTSIDE=true";

/// Where a symbolic link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// To a visible place of the vault, by its path from the root, without links on the way; empty for the root.
    Inside(String),
    /// To a place of the vault where no note lies: a hidden folder, or a name that is no text.
    Hidden,
    /// Out of the vault, to this place.
    Outside(PathBuf),
}

/// Says where a path leads, all links followed. `root` has no links in it.
///
/// # Errors
/// Those of the system: `NotFound` for a link to what is not there.
pub(crate) fn target(root: &Path, disk: &Path) -> io::Result<Target> {
    let real = disk.canonicalize()?;
    Ok(match real.strip_prefix(root) {
        Ok(inner) => match inner.to_str() {
            Some("") => Target::Inside(String::new()),
            Some(inner) if NotePath::from_disk(inner).is_some() => Target::Inside(inner.to_owned()),
            _ => Target::Hidden,
        },
        Err(_) => Target::Outside(real),
    })
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

impl Vault {
    /// Opens a regular file of the vault to read. A link on the way is followed to a visible place of the vault, and out
    /// of the vault where that is allowed; what is opened is what was looked at, whoever changes links meanwhile.
    ///
    /// # Errors
    /// `InvalidInput` where it is no regular file, or a link leads to where none is followed; those of the system.
    pub(crate) fn open_file(&self, path: &NotePath) -> io::Result<File> {
        match self.open_without_links(path.as_str()) {
            Err(error) if safe_open::is_link_error(&error) => {}
            opened => return opened,
        }
        // The root may have got a link above it since it was opened.
        let root = self.root.canonicalize()?;
        match target(&root, &self.disk_path(path))? {
            Target::Inside(inner) => safe_open::open(&root, inner),
            Target::Hidden => Err(refused("a symbolic link leads to a hidden place of the vault (symlink)")),
            Target::Outside(real) if self.follow_outside => {
                safe_open::open(Path::new("/"), real.strip_prefix("/").unwrap_or(&real))
            }
            Target::Outside(_) => Err(refused(
                "a symbolic link leads out of the vault, which vault.follow_outside in the user's own settings would allow (symlink)",
            )),
        }
    }

    /// Opens a file whose path holds no symbolic link.
    fn open_without_links(&self, inner: &str) -> io::Result<File> {
        #[cfg(target_os = "linux")]
        match safe_open::open_at_once(&self.root.join(inner)) {
            // Kernels before 5.6, and some sandboxes, know no such call.
            Err(error) if safe_open::is_unknown_call(&error) => {}
            opened => return opened,
        }
        safe_open::open(&self.root, inner)
    }

    /// Gives the path that a file goes by, whose folder may be reached through a symbolic link: the one without links
    /// where the folder lies in the vault, else the one by the link that a look at everything follows.
    ///
    /// # Errors
    /// `Invalid` where a link leads to where none is followed; `Io` where the folder cannot be looked at.
    pub fn settle(&self, path: &NotePath) -> Result<NotePath> {
        let (mut there, mut rest) = (path.folder(), path.name().to_owned());
        let real = loop {
            if there.is_empty() {
                return Ok(path.clone());
            }
            match target(&self.root, &self.root.join(there)) {
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
            Target::Inside(inner) if inner == there => return Ok(path.clone()),
            Target::Inside(inner) if inner.is_empty() => rest,
            Target::Inside(inner) => format!("{inner}/{rest}"),
            Target::Hidden => return Err(link_to("a hidden place of the vault")),
            Target::Outside(_) if !self.follow_outside => {
                return Err(link_to("a place outside of the vault").with_hint(HOW_TO_FOLLOW));
            }
            Target::Outside(real) => match self.way_to(&real) {
                Some(way) => format!("{way}/{rest}"),
                None => return Ok(path.clone()),
            },
        };
        NotePath::from_disk(&settled)
            .ok_or_else(|| Error::invalid(format!("{path} leads to no place for a note")))
    }

    /// Gives the path from the root by which a folder outside of the vault is known; `None` where no link that is
    /// followed leads there, or it is not known which are.
    fn way_to(&self, real: &Path) -> Option<String> {
        let followed = self.followed.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        followed.iter().flatten().find_map(|link| {
            let rest = real.strip_prefix(&link.target).ok()?.to_str()?;
            Some(if rest.is_empty() { link.path.clone() } else { format!("{}/{rest}", link.path) })
        })
    }

    /// Says whether a look at everything would list what lies in a folder, as far as links are concerned.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn lists_folder(&self, folder: &str) -> io::Result<bool> {
        Ok(match target(&self.root, &self.root.join(folder))? {
            Target::Inside(inner) => inner == folder,
            Target::Hidden => false,
            Target::Outside(real) => {
                let is_known =
                    self.followed.read().unwrap_or_else(std::sync::PoisonError::into_inner).is_some();
                self.follow_outside && (!is_known || self.way_to(&real).as_deref() == Some(folder))
            }
        })
    }
}
