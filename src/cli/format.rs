//! Output formats of lists for other programs: a template for each item, or paths separated by NUL bytes.

use std::collections::BTreeSet;

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::cli::output;
use crate::cli::output::Output;
use crate::error::{Error, Result};

/// How the items of a list are printed.
#[derive(Debug, Default, Args)]
pub(super) struct ListFormat {
    /// Print each item by this template, such as '{path}\t{title}': any field that --json shows; \n, \t, \0 are signs.
    #[arg(long, value_name = "TEMPLATE")]
    format: Option<String>,
    /// Print the paths alone, each followed by a NUL byte, as `xargs -0` reads them.
    #[arg(short = '0', long = "print0", conflicts_with = "format")]
    print0: bool,
}

/// Fields that an item has where there is something to say, and that a list may lack altogether.
const OPTIONAL: [&str; 5] = ["type", "category", "cosine", "common", "explain"];

/// A piece of a template.
#[derive(Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Field(String),
}

impl ListFormat {
    /// Says whether the caller asked for a format of their own, as programs that read the output do.
    pub(super) fn is_given(&self) -> bool {
        self.format.is_some() || self.print0
    }

    /// Prints a reply with its items in the format that was asked for, else as `show` makes it.
    ///
    /// # Errors
    /// `Invalid` for a template that is none or names no field, and for paths of what has none.
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
            return Err(
                Error::invalid("--json has a shape of its own").with_hint("leave --format and -0 out")
            );
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
        // Other programs get every byte; a terminal gets no control character of a file's name.
        out.reply_exact(reply, |_| text)
    }
}

/// Writes the paths of items, each once where it stands several times in a row.
fn paths(items: &[Value]) -> Result<String> {
    let mut text = String::new();
    let mut last = "";
    for item in items {
        let path = item.get("path").and_then(Value::as_str);
        let path = path.ok_or_else(|| {
            Error::invalid("these items have no paths").with_hint("--format prints other fields of them")
        })?;
        if path != last {
            text.push_str(path);
            text.push('\0');
        }
        last = path;
    }
    Ok(text)
}

/// Fills a template for each item, a line each unless it ends otherwise.
fn filled(template: &str, items: &[Value]) -> Result<String> {
    let pieces = pieces(template)?;
    let fields = || {
        pieces
            .iter()
            .filter_map(|piece| if let TemplatePart::Field(name) = piece { Some(name) } else { None })
    };
    // A field that one item lacks is empty there; one that all lack is a mistake.
    let is_unknown = |name: &&String| {
        // Whether a list such as the tags holds anything is no question of the template.
        let outer = name.split('.').next().unwrap_or_default();
        !OPTIONAL.contains(&outer) && items.iter().all(|item| field(item, outer).is_none())
    };
    if let Some(unknown) = fields().find(is_unknown).filter(|_| !items.is_empty()) {
        let objects = items.iter().filter_map(Value::as_object);
        let known: BTreeSet<&str> = objects.flat_map(|object| object.keys().map(String::as_str)).collect();
        let known: Vec<&str> = known.into_iter().collect();
        return Err(Error::invalid(format!("--format names {{{unknown}}}, which is no field"))
            .with_hint(format!("fields are {}", known.join(", "))));
    }
    let mut text = String::new();
    for item in items {
        for piece in &pieces {
            match piece {
                TemplatePart::Text(literal) => text.push_str(literal),
                TemplatePart::Field(name) => text.push_str(&field(item, name).map(shown).unwrap_or_default()),
            }
        }
        if !text.ends_with(['\n', '\0']) {
            text.push('\n');
        }
    }
    Ok(text)
}

/// Gives a field by its name; `a.b` is the field `b` of `a`, and `a.0` the first item of `a`.
fn field<'a>(item: &'a Value, name: &str) -> Option<&'a Value> {
    name.split('.').try_fold(item, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        value => value.get(part),
    })
}

/// Writes a value as a person reads it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => output::plain(text),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => output::plain(&other.to_string()),
    }
}

/// Reads a template.
fn pieces(template: &str) -> Result<Vec<TemplatePart>> {
    let wrong = |why: &str| {
        Error::invalid(format!("--format {template:?}: {why}"))
            .with_hint(r"write '{path}\t{title}'; {{ and }} are braces")
    };
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut signs = template.chars().peekable();
    while let Some(sign) = signs.next() {
        match (sign, signs.peek()) {
            ('{', Some('{')) | ('}', Some('}')) => literal.extend(signs.next()),
            ('}', _) => return Err(wrong("a } closes nothing")),
            ('{', _) => {
                let mut name = String::new();
                loop {
                    match signs.next() {
                        Some('}') => break,
                        Some(sign) => name.push(sign),
                        None => return Err(wrong("a { is not closed")),
                    }
                }
                if name.trim().is_empty() {
                    return Err(wrong("{} names no field"));
                }
                pieces.push(TemplatePart::Text(std::mem::take(&mut literal)));
                pieces.push(TemplatePart::Field(name.trim().to_owned()));
            }
            ('\\', Some('n' | 't' | '0' | '\\')) => literal.extend(signs.next().map(|sign| match sign {
                'n' => '\n',
                't' => '\t',
                '0' => '\0',
                other => other,
            })),
            (sign, _) => literal.push(sign),
        }
    }
    pieces.push(TemplatePart::Text(literal));
    pieces.retain(|piece| *piece != TemplatePart::Text(String::new()));
    Ok(pieces)
}
