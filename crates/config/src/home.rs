//! The user's home folder, and paths that begin with it: `~/notes` and `$HOME/notes`.

use std::path::{Path, PathBuf};

use serde::{Deserialize as _, Deserializer};

/// The ways to write the home folder at the beginning of a path.
const FORMS: [&str; 3] = ["~", "$HOME", "${HOME}"];

/// Returns the user's home folder, if there is one.
pub fn home_folder() -> Option<PathBuf> {
    etcetera::home_dir().ok().filter(|home| home.is_absolute())
}

/// Replaces `~`, `$HOME` or `${HOME}` at the beginning of a path by the home folder. A shell does this for words without
/// quotes, but nobody does it for settings, environment variables and the arguments in a client's JSON.
#[must_use]
pub fn expand_home(path: &Path) -> PathBuf {
    let inner = path.to_str().and_then(|text| {
        let rest = FORMS.iter().find_map(|form| text.strip_prefix(form))?;
        rest.strip_prefix(['/', '\\']).or_else(|| rest.is_empty().then_some(""))
    });
    match (inner, home_folder()) {
        (Some(""), Some(home)) => home,
        (Some(inner), Some(home)) => home.join(inner.trim_start_matches('/')),
        _ => path.to_owned(),
    }
}

/// Reads a path of the settings, which may begin with the home folder.
pub(super) fn read_path<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    PathBuf::deserialize(from).map(|path| expand_home(&path))
}
