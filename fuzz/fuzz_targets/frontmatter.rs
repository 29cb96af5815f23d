//! Any text may get a property, lose it, or get one more value: an edit that is planned reads back as what was asked
//! for, and the body keeps its bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use sidenote::markdown::edit::{Edit, apply};
use sidenote::markdown::frontmatter::{Frontmatter, edit, read};
use sidenote::markdown::path;

fn edited(text: &str, edits: &[Edit]) -> String {
    String::from_utf8(apply(text.as_bytes(), edits).expect("a plan can be carried out")).expect("it is UTF-8")
}

fn value(text: &str, key: &str) -> Option<Value> {
    Some(read(text).0?.get(key)?.value.clone())
}

/// Counts the properties of a name, for `a` and `A` are the same to Obsidian.
fn count(text: &str, key: &str) -> usize {
    let named = |found: Frontmatter| {
        found.properties.iter().filter(|property| path::key(&property.key) == path::key(key)).count()
    };
    read(text).0.map_or(0, named)
}

fn body(text: &str) -> &str {
    &text[read(text).1..]
}

/// Compares values as YAML and JavaScript do: `2.0` is the number `2`.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

fuzz_target!(|input: (&str, &str, &str)| {
    let (text, key, given) = input;
    let new = serde_json::from_str(given).unwrap_or_else(|_| Value::from(given));
    if let Ok(edits) = edit::set(text, key, &new) {
        let after = edited(text, &edits);
        let read = value(&after, key);
        assert!(read.as_ref().is_some_and(|read| same(read, &new)), "{text:?} -> {after:?} -> {read:?}");
        assert!(after.ends_with(body(text)));
    }
    if let Ok(edits) = edit::unset(text, key) {
        let after = edited(text, &edits);
        assert_eq!(count(&after, key), count(text, key).saturating_sub(1), "{text:?} -> {after:?}");
        assert_eq!(body(&after), body(text));
    }
    if let Ok(edits) = edit::add(text, key, std::slice::from_ref(&new)) {
        let after = edited(text, &edits);
        let last = value(&after, key).and_then(|list| list.as_array()?.last().cloned());
        assert!(last.as_ref().is_some_and(|last| same(last, &new)), "{text:?} -> {after:?}");
    }
});
