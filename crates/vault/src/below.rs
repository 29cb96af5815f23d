//! Tells whether a path lies in a folder.

/// Says whether a path is `folder` or is below it. Both are paths from the root; an empty `folder` contains nothing.
pub(crate) fn lies_in(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder).filter(|_| !folder.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
