//! Removes private passages and secrets from text before it is written.

use serde_json::Value;
use sidenote_memory::privacy::without_passages;
use sidenote_secrets::without_secrets;

use crate::Core;

/// The number of texts that were removed before writing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Texts that look like a secret.
    pub keys: usize,
    /// Passages between `<private>` and `</private>`.
    pub(crate) passages: usize,
    /// Whether the last passage had no end mark.
    pub(crate) is_open: bool,
}

impl std::ops::AddAssign for Cleaned {
    fn add_assign(&mut self, other: Self) {
        self.keys += other.keys;
        self.passages += other.passages;
        self.is_open |= other.is_open;
    }
}

impl std::iter::Sum for Cleaned {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        let mut sum = Self::default();
        all.for_each(|one| sum += one);
        sum
    }
}

impl Cleaned {
    /// Returns notices about what was removed.
    pub fn notices(self) -> Vec<String> {
        let mut told = Vec::new();
        if self.keys > 0 {
            let what = if self.keys == 1 {
                "something that looks like a key was".to_owned()
            } else {
                format!("{} texts that look like keys were", self.keys)
            };
            told.push(format!(
                "{what} removed before saving; set privacy.redact = false in your own settings to keep such text"
            ));
        }
        if self.passages > 0 {
            let what = if self.passages == 1 {
                "a private passage was".to_owned()
            } else {
                format!("{} private passages were", self.passages)
            };
            let end = if self.is_open {
                "; <private> was not closed, so everything after it was removed"
            } else {
                ""
            };
            told.push(format!("{what} removed before saving{end}"));
        }
        told
    }
}

impl Core {
    /// Removes private passages and secrets from a text.
    pub fn clean(&self, text: &mut String) -> Cleaned {
        let (kept, passages, is_open) = without_passages(text);
        let (clean, keys) =
            if self.config.privacy.redact { without_secrets(&kept) } else { (kept.as_ref().into(), 0) };
        if *clean != *text {
            *text = clean.into_owned();
        }
        Cleaned { keys, passages, is_open }
    }

    /// Removes private text and secrets from every string of a JSON value.
    pub fn clean_value(&self, value: &mut Value) -> Cleaned {
        match value {
            Value::String(text) => self.clean(text),
            Value::Array(items) => items.iter_mut().map(|item| self.clean_value(item)).sum(),
            Value::Object(map) => {
                let mut cleaned = Cleaned::default();
                // Names of properties can contain secrets too.
                for (mut name, mut value) in std::mem::take(map) {
                    cleaned += self.clean(&mut name);
                    cleaned += self.clean_value(&mut value);
                    map.insert(name, value);
                }
                cleaned
            }
            _ => Cleaned::default(),
        }
    }
}
