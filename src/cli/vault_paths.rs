//! Paths of notes and folders as a person gives them: from the current folder, or from the root of the vault.

use std::path::{Component, Path, PathBuf};

use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use sidenote_markdown::path::NotePath;

use crate::cli::CommandContext;

/// Returns the canonical root of the vault.
pub(super) fn vault_root(context: &CommandContext) -> Result<PathBuf> {
    let root = context.location()?.root;
    platform::canonicalize(&root).map_err(|error| Error::io("open the vault", &root, error))
}

/// Returns the canonical current folder.
pub(super) fn current_folder() -> Result<PathBuf> {
    let here = std::env::current_dir().map_err(|error| Error::io("find", ".", error))?;
    platform::canonicalize(&here).map_err(|error| Error::io("find", &here, error))
}

/// Returns the arguments as paths from the root of the vault. Each is a path from the current folder, or else one from
/// the root. Paths that cannot be in a vault, such as hidden ones, are skipped with a notice.
pub(super) fn vault_paths(context: &CommandContext, paths: &[PathBuf]) -> Result<Option<Vec<String>>> {
    if paths.is_empty() {
        return Ok(None);
    }
    let (root, here) = (vault_root(context)?, current_folder()?);
    let mut inner_paths = Vec::new();
    for path in paths {
        let inner = path_in_vault(&root, &here, path)?;
        if inner.is_empty() || NotePath::from_disk(&inner).is_some() {
            inner_paths.push(inner);
        } else {
            context.out.message(&format!("notice: {} is hidden, so it is not checked", path.display()));
        }
    }
    Ok(Some(inner_paths))
}

fn path_in_vault(root: &Path, here: &Path, path: &Path) -> Result<String> {
    let below_root = |absolute: &Path| {
        let inner = normalized(absolute).strip_prefix(root).ok()?.to_owned();
        platform::slash_path(&inner)
    };
    let from_here = here.join(path);
    let real = || platform::canonicalize(&from_here).ok().and_then(|real| below_root(&real));
    let named = below_root(&from_here).or_else(real);
    // In a subfolder, a path from the root of the vault is meant only if there is nothing of this name.
    let from_root = below_root(&root.join(path)).filter(|_| path.is_relative());
    let is_there = |inner: &Option<String>| inner.as_ref().is_some_and(|inner| root.join(inner).exists());
    let inner = if is_there(&named) || !is_there(&from_root) { named.or(from_root) } else { from_root };
    inner.ok_or_else(|| {
        Error::invalid(format!("{} is not in the vault {}", path.display(), root.display()))
            .with_hint("name notes or folders of the vault, or another vault with --vault")
    })
}

/// Resolves `.` and `..` of an absolute path without looking at the disk.
fn normalized(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts
}
