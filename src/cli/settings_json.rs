//! Settings files of other programs in JSON, also with comments and trailing commas: keys are set, and every other byte
//! stays. Which keys a program wants is not known here. The only user of jsonc-parser.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Value, json};
use sidenote_base::error::{Error, Result};

/// JSON with comments and trailing commas, and nothing else that JSON forbids.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Returns the value of a text in JSON, which may have comments and trailing commas; `None` if it is not JSON.
pub(super) fn value_of(text: &str) -> Option<Value> {
    CstRootNode::parse(text, &OPTIONS).ok()?.to_serde_value()
}

/// How a settings file lists the hooks of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookShape {
    /// `[{"hooks": [{"type": "command", "command"}]}]`.
    Grouped,
    /// `[{"command"}]`.
    Flat,
}

impl HookShape {
    /// Returns the entry of an event that runs a command.
    pub(super) fn entry(self, command: &str) -> Value {
        match self {
            Self::Grouped => json!({ "hooks": [{ "type": "command", "command": command }] }),
            Self::Flat => json!({ "command": command }),
        }
    }
}

/// The text of a settings file while it is edited.
pub(super) struct SettingsJson<'a> {
    file: &'a Path,
    byte_order_mark: bool,
    root: CstRootNode,
    top: CstObject,
}

impl<'a> SettingsJson<'a> {
    /// Parses the text of a file. An empty text is an empty object.
    ///
    /// # Errors
    /// `Invalid` if the text is not an object of JSON; comments and trailing commas are allowed.
    pub(super) fn parse(text: &str, file: &'a Path) -> Result<Self> {
        let stripped = text.strip_prefix('\u{feff}');
        let bare = stripped.unwrap_or(text);
        let bare = if bare.trim().is_empty() { "{}\n" } else { bare };
        let root = CstRootNode::parse(bare, &OPTIONS)
            .map_err(|error| unreadable(file, "is not valid JSON").with_source(error))?;
        let top = root.object_value().ok_or_else(|| unreadable(file, "has no JSON object at its top"))?;
        Ok(Self { file, byte_order_mark: stripped.is_some(), root, top })
    }

    /// Sets keys of the object at SECTION.NAME, which is made if it is missing. Its other keys stay.
    ///
    /// # Errors
    /// `Invalid` if the section or the entry is something else than an object, or named twice.
    pub(super) fn set_entry(&self, section: &str, name: &str, keys: &Value) -> Result<()> {
        let section = self.object(&self.top, section)?;
        let entry = self.object(&section, name)?;
        for (key, value) in keys.as_object().into_iter().flatten() {
            match self.property(&entry, key)? {
                Some(property) if property.to_serde_value().as_ref() == Some(value) => {}
                Some(property) => property.set_value(input(value)),
                None => drop(entry.append(key, input(value))),
            }
        }
        Ok(())
    }

    /// Sets a key at the top that is missing. A key that is there keeps its value.
    ///
    /// # Errors
    /// `Invalid` if the key is named twice.
    pub(super) fn set_missing(&self, key: &str, value: &Value) -> Result<()> {
        if self.property(&self.top, key)?.is_none() {
            self.top.append(key, input(value));
        }
        Ok(())
    }

    /// Sets the command of a hook: of the one under `hooks.EVENT` whose command `is_ours`, or of a new one. Other keys of
    /// the hook stay.
    ///
    /// # Errors
    /// `Invalid` if the hooks have another shape.
    pub(super) fn set_hook(
        &self,
        shape: HookShape,
        event: &str,
        command: &str,
        is_ours: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let hooks = self.object(&self.top, "hooks")?;
        let entries = self.array(&hooks, event)?;
        let wrong = || unreadable(self.file, &format!("has hooks of another shape under hooks.{event}"));
        for entry in entries.elements() {
            let entry = entry.as_object().ok_or_else(wrong)?;
            let handlers = match shape {
                HookShape::Flat => vec![entry],
                HookShape::Grouped => {
                    let Some(handlers) = self.property(&entry, "hooks")? else { return Err(wrong()) };
                    let handlers = handlers.array_value().ok_or_else(wrong)?.elements();
                    let handlers: Option<Vec<_>> =
                        handlers.iter().map(|handler| handler.as_object()).collect();
                    handlers.ok_or_else(wrong)?
                }
            };
            for handler in handlers {
                let Some(property) = self.property(&handler, "command")? else { continue };
                let Some(Value::String(found)) = property.to_serde_value() else { return Err(wrong()) };
                if found == command {
                    return Ok(());
                }
                if is_ours(&found) {
                    property.set_value(CstInputValue::from(command));
                    return Ok(());
                }
            }
        }
        entries.append(input(&shape.entry(command)));
        Ok(())
    }

    /// Returns the text with all changes.
    pub(super) fn text(&self) -> String {
        let mark = if self.byte_order_mark { "\u{feff}" } else { "" };
        format!("{mark}{}", self.root)
    }

    /// Returns the object under a key, which is made if the key is missing.
    fn object(&self, parent: &CstObject, key: &str) -> Result<CstObject> {
        let property = self.property(parent, key)?;
        let property = property.unwrap_or_else(|| parent.append(key, CstInputValue::Object(Vec::new())));
        property.object_value().ok_or_else(|| unreadable(self.file, &format!("has no object in {key}")))
    }

    /// Returns the array under a key, which is made if the key is missing.
    fn array(&self, parent: &CstObject, key: &str) -> Result<CstArray> {
        let property = self.property(parent, key)?;
        let property = property.unwrap_or_else(|| parent.append(key, CstInputValue::Array(Vec::new())));
        property.array_value().ok_or_else(|| unreadable(self.file, &format!("has no array in {key}")))
    }

    /// Returns the property of this name. Which of two a program reads is not known, so two are refused.
    fn property(&self, parent: &CstObject, key: &str) -> Result<Option<CstObjectProp>> {
        let same = |property: &CstObjectProp| property.decoded_name().as_deref() == Some(key);
        let mut found = parent.properties().into_iter().filter(same);
        let first = found.next();
        match found.next() {
            Some(_) => Err(unreadable(self.file, &format!("has the key {key} twice in one object"))),
            None => Ok(first),
        }
    }
}

fn unreadable(file: &Path, why: &str) -> Error {
    Error::invalid(format!("{} {why}", file.display()))
        .with_hint("run the command without --write, and paste what it prints")
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::from(text.as_str()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}
