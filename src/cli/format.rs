//! Output formats of lists for other programs: a template for each item, or paths separated by NUL bytes.

use std::collections::BTreeSet;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use sidenote_base::error::{Error, Result};

use crate::cli::output;
use crate::cli::output::Output;

/// How the items of a list are printed.
#[derive(Debug, Default, Args)]
pub(super) struct ListFormat {
    /// Print each item by this template: '{path}\t{title}'.
    ///
    /// Fields are those of --json; \n, \t and \0 are escapes.
    #[arg(long, value_name = "TEMPLATE")]
    format: Option<String>,
    /// Print only the paths, each followed by a NUL byte, for `xargs -0`.
    #[arg(short = '0', long = "print0", conflicts_with = "format", hide_short_help = true)]
    print0: bool,
}

/// Fields that items may lack, even all items of a list.
const OPTIONAL_FIELDS: [&str; 5] = ["type", "category", "cosine", "common", "explain"];

/// A piece of a template.
#[derive(Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Field(String),
}

impl ListFormat {
    /// Returns whether `--format` or `-0` is given, as by programs that read the output.
    pub(super) fn is_given(&self) -> bool {
        self.format.is_some() || self.print0
    }

    /// Prints the items of a reply in the given format, or the reply as `show` formats it.
    ///
    /// # Errors
    /// `Invalid` for a malformed template or an unknown field, and for `-0` if the items have no paths.
    pub(super) fn reply<R: Serialize, T: Serialize>(
        &self,
        out: Output,
        reply: &R,
        items: impl FnOnce(&R) -> &[T],
        show: impl FnOnce(&R) -> String,
    ) -> Result<()> {
        if !self.is_given() {
            return out.reply(reply, show);
        }
        if out.is_json() {
            return Err(Error::invalid("--json cannot be combined with --format or -0")
                .with_hint("leave out one of them"));
        }
        let items: Vec<Value> = items(reply)
            .iter()
            .map(serde_json::to_value)
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| Error::internal("an item cannot be written as JSON").with_source(error))?;
        let text = match &self.format {
            Some(template) => filled(template, &items)?,
            None => paths(&items)?,
        };
        // Other programs get every byte; on a terminal, control characters in file names are replaced.
        out.reply_exact(reply, |_| text)
    }
}

/// Formats the paths of items. Consecutive items with the same path are printed once.
fn paths(items: &[Value]) -> Result<String> {
    let mut text = String::new();
    let mut last = "";
    for item in items {
        let path = item.get("path").and_then(Value::as_str);
        let path = path.ok_or_else(|| {
            Error::invalid("these items have no paths").with_hint("use --format to print other fields")
        })?;
        if path != last {
            text.push_str(path);
            text.push('\0');
        }
        last = path;
    }
    Ok(text)
}

/// Formats each item by a template, and ends it with a newline unless the template ends with one or with NUL.
fn filled(template: &str, items: &[Value]) -> Result<String> {
    let pieces = parse_template(template)?;
    let fields = || {
        pieces
            .iter()
            .filter_map(|piece| if let TemplatePart::Field(name) = piece { Some(name) } else { None })
    };
    // A field that one item lacks is empty there. A field that all items lack is an error.
    let is_unknown = |name: &&String| {
        // For a nested field such as tags.0, only the outer field must exist: the list may be empty.
        let outer = name.split('.').next().unwrap_or_default();
        !OPTIONAL_FIELDS.contains(&outer) && items.iter().all(|item| field(item, outer).is_none())
    };
    if let Some(unknown) = fields().find(is_unknown).filter(|_| !items.is_empty()) {
        let objects = items.iter().filter_map(Value::as_object);
        let known: BTreeSet<&str> = objects.flat_map(|object| object.keys().map(String::as_str)).collect();
        let known: Vec<&str> = known.into_iter().collect();
        return Err(Error::invalid(format!("--format has the unknown field {{{unknown}}}"))
            .with_hint(format!("the fields are {}", known.join(", "))));
    }
    let mut text = String::new();
    for item in items {
        for piece in &pieces {
            match piece {
                TemplatePart::Text(literal) => text.push_str(literal),
                TemplatePart::Field(name) => {
                    text.push_str(&field(item, name).map(text_of).unwrap_or_default())
                }
            }
        }
        if !text.ends_with(['\n', '\0']) {
            text.push('\n');
        }
    }
    Ok(text)
}

/// Returns a field by its name: `a.b` is the field `b` of `a`, and `a.0` the first item of `a`.
fn field<'a>(item: &'a Value, name: &str) -> Option<&'a Value> {
    name.split('.').try_fold(item, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        value => value.get(part),
    })
}

/// Formats a value as text.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => output::plain(text),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join(", "),
        other => output::plain(&other.to_string()),
    }
}

/// Parses a template.
fn parse_template(template: &str) -> Result<Vec<TemplatePart>> {
    let wrong = |why: &str| {
        Error::invalid(format!("--format {template:?}: {why}"))
            .with_hint(r"write '{path}\t{title}'; {{ and }} stand for braces")
    };
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('{', Some('{')) | ('}', Some('}')) => literal.extend(chars.next()),
            ('}', _) => return Err(wrong("a } has no matching {")),
            ('{', _) => {
                let mut name = String::new();
                loop {
                    match chars.next() {
                        Some('}') => break,
                        Some(c) => name.push(c),
                        None => return Err(wrong("a { has no matching }")),
                    }
                }
                if name.trim().is_empty() {
                    return Err(wrong("{} has no field name"));
                }
                pieces.push(TemplatePart::Text(std::mem::take(&mut literal)));
                pieces.push(TemplatePart::Field(name.trim().to_owned()));
            }
            ('\\', Some('n' | 't' | '0' | '\\')) => literal.extend(chars.next().map(|escape| match escape {
                'n' => '\n',
                't' => '\t',
                '0' => '\0',
                other => other,
            })),
            (c, _) => literal.push(c),
        }
    }
    pieces.push(TemplatePart::Text(literal));
    pieces.retain(|piece| *piece != TemplatePart::Text(String::new()));
    Ok(pieces)
}
