//! Derives titles, file names and slugs from text.

use serde_json::Value;
use sidenote_base::error::{Error, Result};
use sidenote_language::graphemes::beginning;
use sidenote_markdown::name_rules::NameRules;

/// Returns the path of a note in a folder.
pub(crate) fn placed(folder: &str, name: &str) -> String {
    if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") }
}

/// Returns the file name, without extension, of a note in the layout `memories`.
pub(super) fn memory_stem(category: Option<&str>, title: &str) -> Result<String> {
    let parts = category.filter(|category| !category.trim().is_empty()).into_iter().chain([title]);
    Ok(parts.map(slug).collect::<Result<Vec<_>>>()?.join("-"))
}

/// Converts a text to a part of a file name in the layout `memories`: lower-case letters, digits and hyphens.
pub fn slug(text: &str) -> Result<String> {
    /// The longest slug: with category, id and extension, the name stays below the limit of file systems.
    const LONGEST: usize = 80;
    let mut slug = slug::slugify(text);
    slug.truncate(LONGEST);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        return Err(Error::invalid(format!("{text:?} gives no file name"))
            .with_hint("give a title with a letter or digit in it"));
    }
    Ok(slug.to_owned())
}

/// Returns a title that is written as the name of a note's file, without the extension.
pub(crate) fn without_extension(title: &str) -> Option<&str> {
    let stem = title.len().checked_sub(3).and_then(|end| title.split_at_checked(end));
    stem.filter(|(stem, end)| end.eq_ignore_ascii_case(".md") && !stem.trim().is_empty())
        .map(|(stem, _)| stem)
}

/// Converts a title to a file name, without the characters that Obsidian forbids and those that break links.
pub fn file_name(title: &str) -> Result<String> {
    let title = without_extension(title.trim()).unwrap_or(title);
    let kept = |c: char| {
        !c.is_control()
            && !matches!(c, '\\' | '/' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | '#' | '^' | '[' | ']')
    };
    let plain: String = title.replace("%%", " ").chars().map(|c| if kept(c) { c } else { ' ' }).collect();
    let name = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut name = name.trim_matches(['.', ' ']).to_owned();
    while name.len() > 240 {
        name.pop();
    }
    if name.is_empty() {
        return Err(Error::invalid(format!("{title:?} gives no file name"))
            .with_hint("give a title with a letter or digit in it"));
    }
    Ok(name)
}

/// The longest title made from a text, in characters.
const TITLE: usize = 60;

/// The title of a text that gives no file name.
pub const UNNAMED: &str = "Memory";

/// Returns the title of a text, or [`UNNAMED`] if the title gives no file name.
pub fn named_after(text: &str) -> String {
    let title = title_of(text);
    let is_name =
        file_name(&title).is_ok_and(|name| NameRules::default().check(&format!("{name}.md")).is_ok());
    if is_name { title } else { UNNAMED.to_owned() }
}

/// Converts a number to JSON, a whole number without a decimal point.
pub fn number(number: f64) -> Value {
    if number.fract() == 0.0 { Value::from(number as i64) } else { Value::from(number) }
}

/// Returns the title of a text: its first heading, or its first words.
pub fn title_of(text: &str) -> String {
    let heading = text
        .lines()
        .find_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    let says = |line: &&str| line.contains(char::is_alphanumeric);
    let line = heading.or_else(|| text.lines().find(says)).unwrap_or("").trim();
    let mut title = String::new();
    for word in line.split_whitespace() {
        let length = title.chars().count() + usize::from(!title.is_empty()) + word.chars().count();
        if length > TITLE {
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
    }
    if title.is_empty() { beginning(line, TITLE).to_owned() } else { title }
}
