//! The rules that the name of a new file obeys.

use sidenote_base::error::{Error, Result};
use sidenote_base::platform;

use crate::path::is_forbidden;

/// The rules for the name of a new file or folder: every system must be able to store it, every link form to contain it,
/// and no reader may be misled by it (docs/spec/obsidian.md 1.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NameRules {
    /// Whether names are allowed that only Windows forbids.
    pub relaxed: bool,
    /// Whether names are allowed that links cannot contain.
    pub unlinkable: bool,
}

impl NameRules {
    /// Checks the name of a new file or folder.
    ///
    /// # Errors
    /// Returns `Invalid` with the reason. It contains the code `name-not-linkable` if links cannot contain the name.
    pub fn check(self, name: &str) -> Result<()> {
        let refuse = |why: &str| {
            Err(Error::invalid(format!("{name:?} is not a valid name for a new file or folder: {why}"))
                .with_hint("choose another name; existing files with such names can still be read"))
        };
        if let Some(bad) = name.chars().find(|&c| is_forbidden(c)) {
            return refuse(&format!("it contains {bad:?}"));
        }
        let is_unlinkable = name.contains(['#', '^', '[', ']', '|']) || name.contains("%%");
        if is_unlinkable && !self.unlinkable {
            return refuse(
                "links to it would break, because it contains `#`, `^`, `[`, `]`, `|` or `%%` (name-not-linkable)",
            );
        }
        if name.len() > 255 {
            return refuse("it has more than 255 bytes");
        }
        if name != name.trim() {
            return refuse("it begins or ends with a space");
        }
        if self.relaxed {
            return Ok(());
        }
        if let Some(bad) = name.chars().find(|c| matches!(c, '*' | '?' | '"' | '<' | '>')) {
            return refuse(&format!("Windows does not allow {bad:?} in it"));
        }
        if name.ends_with('.') {
            return refuse("Windows does not allow a dot at its end");
        }
        if platform::is_device_name(name) {
            return refuse("it is the name of a device on Windows");
        }
        Ok(())
    }
}
