//! Whether two notes say the same, line by line. A changed order can turn a fact around, so the words of each line of the
//! shorter note have to stand in the other one in the same order. Where that is in doubt, they are no duplicates.

use std::collections::BTreeMap;

use serde_json::Value;
use sidenote_markdown::name_date::day_in_name;

use super::Compared;

/// Names of files, in lower case, that have a meaning by their place.
const PLACED: &[&str] = &["agents", "claude", "gemini", "readme", "index", "memory"];

/// Properties in which duplicates may differ: those that tell the notes apart, and those that a merge joins.
const OWN_PROPERTIES: &[&str] = &[
    "id",
    "uid",
    "uuid",
    "created",
    "created_at",
    "updated",
    "updated_at",
    "modified",
    "tags",
    "tag",
    "aliases",
    "alias",
    "importance",
    "title",
];

/// Articles, which change nothing in what a line says.
const ARTICLES: &[&str] = &["the", "The", "THE", "a", "an"];

/// Words that change nothing in what a line says where only one of two lines has them.
const FILLERS: &[&str] = &["very", "really", "quite", "just", "on", "of"];

/// The lines of a text from which on two notes are compared as long ones: so much that is equal is no accident, and a line may be
/// worded a little differently.
const LONG: usize = 3;

/// Returns whether one of two notes can be merged into the other one, because it says nothing else.
pub(super) fn is_duplicate(one: &Compared, other: &Compared) -> bool {
    !is_placed(one)
        && !is_placed(other)
        && properties(one) == properties(other)
        && titles_agree(one, other)
        && has_lines(one.source.body(), other.source.body())
}

/// Returns whether a note means something by its place: one of a day, a template, or a file that programs read.
pub(super) fn is_placed(note: &Compared) -> bool {
    let path = &note.source.path;
    let name = path.stem().to_lowercase();
    let mut folders = path.as_str().split('/').rev().skip(1);
    day_in_name(path).is_some()
        || PLACED.contains(&name.as_str())
        || folders.any(|folder| folder.to_lowercase().contains("template"))
}

/// Returns the properties of a note that a merge does not join, by their names in lower case.
pub(super) fn properties(note: &Compared) -> BTreeMap<String, &Value> {
    let front = note.source.note.frontmatter.iter().flat_map(|front| &front.properties);
    let own = front.map(|property| (property.key.to_lowercase(), &property.value));
    own.filter(|(key, _)| !OWN_PROPERTIES.contains(&key.as_str())).collect()
}

/// Returns whether the titles say nothing in which the notes differ: they are equal but for the number of a copy, or the
/// texts have all of their words.
fn titles_agree(one: &Compared, other: &Compared) -> bool {
    // A title that begins so was made of a text that does.
    let title = |note: &Compared| words(note.memory.title.trim_start_matches("Note "));
    let (first, second) = (title(one), title(other));
    let (short, long) = if first.len() <= second.len() { (&first, &second) } else { (&second, &first) };
    let is_copy = |word: &String| word == "copy" || word.chars().all(char::is_numeric);
    if long.strip_prefix(short.as_slice()).is_some_and(|rest| rest.len() <= 2 && rest.iter().all(is_copy)) {
        return true;
    }
    let said = [words(one.source.body()), words(other.source.body())];
    let is_said = |word: &String| said.iter().all(|body| body.contains(word));
    first.iter().all(is_said) && second.iter().all(is_said)
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Returns whether each line of the shorter text is in the other one, in the same order.
fn has_lines(one: &str, other: &str) -> bool {
    let (first, second) = (lines(one), lines(other));
    let (short, long) = if first.len() <= second.len() { (first, second) } else { (second, first) };
    let is_long = short.len() >= LONG;
    let mut rest = long.iter();
    let mut has = |line: &Vec<String>| rest.any(|own| own == line || is_long && differ_in_fillers(own, line));
    !short.is_empty() && short.iter().all(&mut has)
}

/// Returns whether two lines have the same words but for some that change nothing. Lines with equal words in another order are
/// different: what stood for one thing may stand for another.
fn differ_in_fillers(one: &[String], other: &[String]) -> bool {
    let mut counts: BTreeMap<&str, i32> = BTreeMap::new();
    one.iter().for_each(|word| *counts.entry(word).or_default() += 1);
    other.iter().for_each(|word| *counts.entry(word).or_default() -= 1);
    counts.retain(|_, count| *count != 0);
    !counts.is_empty() && counts.keys().all(|word| FILLERS.contains(word))
}

/// Returns the lines of a text, each as its words in lower case. Code stays as it is.
fn lines(text: &str) -> Vec<Vec<String>> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        if is_fence {
            is_code = !is_code;
        }
        let words = if is_code || is_fence || line.contains('`') {
            vec![line.trim_end().to_owned()]
        } else {
            words_of(line)
        };
        if words.iter().any(|word| !word.is_empty()) {
            found.push(words);
        }
    }
    found
}

fn words_of(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches(['#', '>', ' ']);
    let line = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line);
    let line = line.strip_prefix("Note: ").unwrap_or(line);
    let word = |raw: &str| {
        let raw = raw.trim_matches(['"', '*', '_', '“', '”', '„']);
        raw.trim_end_matches(['.', ',', ';', ':', '!', '。', '、']).to_lowercase()
    };
    let words = line.split_whitespace().filter(|raw| !ARTICLES.contains(raw)).map(word);
    words.filter(|word| !word.is_empty()).collect()
}
