//! SARIF 2.1.0 (OASIS): the problems of a check for code scanning and editors.

use std::collections::HashMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sidenote_base::error::{Error, Result};
use sidenote_markdown::line_column::Region;

use super::{Report, worst_first};
use crate::store::{Fix, PROBLEM_CODES, Problem, Severity};

/// The most results of a run that GitHub accepts.
pub(super) const MAX_RESULTS: usize = 25_000;

/// The name of the folder that paths are relative to: the root of the repository.
const BASE: &str = "%SRCROOT%";

/// The characters of a path that are encoded in a URI: all but those that are never special, and the slash.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Formats a report. The worst problems come first, and what is beyond `limit` results is cut and said.
///
/// # Errors
/// `Internal` if the report cannot be written as JSON.
pub(super) fn format(report: &Report<'_>, limit: usize) -> Result<String> {
    let (of_vault, of_notes): (Vec<&Problem>, Vec<&Problem>) =
        worst_first(report.problems).into_iter().partition(|problem| problem.is_of_vault());
    let mut notifications: Vec<Value> = of_vault.into_iter().map(notification).collect();
    if of_notes.len() > limit {
        let text = format!("{} of {} problems are left out", of_notes.len() - limit, of_notes.len());
        notifications.push(json!({ "level": "warning", "message": { "text": text } }));
    }
    let mut seen = HashMap::new();
    let results: Vec<Value> =
        of_notes.into_iter().take(limit).map(|problem| result(report, problem, &mut seen)).collect();
    let rules: Vec<Value> = PROBLEM_CODES
        .iter()
        .map(|known| {
            json!({
                "id": known.code,
                "shortDescription": { "text": sentence(known.meaning) },
                "defaultConfiguration": { "level": level(known.severity) },
            })
        })
        .collect();
    let log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "sidenote",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": { BASE: { "description": { "text": "The root of the repository." } } },
            "invocations": [{ "executionSuccessful": true, "toolExecutionNotifications": notifications }],
            "results": results,
        }],
    });
    let text = serde_json::to_string_pretty(&log)
        .map_err(|error| Error::internal("cannot write the report as SARIF").with_source(error))?;
    Ok(format!("{text}\n"))
}

/// Returns a problem as a result. `seen` counts the problems of each file and fingerprint.
fn result<'p>(
    report: &Report<'_>,
    problem: &'p Problem,
    seen: &mut HashMap<(&'p str, &'p str), usize>,
) -> Value {
    let location = json!({ "uri": uri(&report.path_of(problem)), "uriBaseId": BASE });
    let mut place = json!({ "artifactLocation": location });
    if !problem.region().is_whole_file() {
        place["region"] = region(problem.region());
    }
    let number = seen.entry((&problem.path, &problem.fingerprint)).or_default();
    *number += 1;
    let mut result = json!({
        "ruleId": problem.code,
        "ruleIndex": PROBLEM_CODES.iter().position(|known| known.code == problem.code),
        "level": level(problem.severity),
        "message": { "text": plain_message(&problem.message) },
        "locations": [{ "physicalLocation": place }],
        // Code scanning on GitHub recognises an alert by `primaryLocationLineHash` alone, with a number behind it that
        // tells equal ones apart.
        "partialFingerprints": {
            "problem/v1": problem.fingerprint,
            "primaryLocationLineHash": format!("{}:{number}", problem.fingerprint),
        },
    });
    if !problem.fixes.is_empty() {
        result["fixes"] = problem.fixes.iter().map(|known| fix(known, &location)).collect();
    }
    result
}

fn fix(fix: &Fix, location: &Value) -> Value {
    let replacement = |edit: &crate::store::FixEdit| json!({ "deletedRegion": region(edit.region), "insertedContent": { "text": edit.text } });
    let replacements: Vec<Value> = fix.edits.iter().map(replacement).collect();
    json!({
        "description": { "text": plain_message(&fix.description) },
        "artifactChanges": [{ "artifactLocation": location, "replacements": replacements }],
    })
}

/// Returns a problem of the index or the records, which has no place in the repository.
fn notification(problem: &Problem) -> Value {
    json!({
        "descriptor": { "id": problem.code },
        "level": level(problem.severity),
        "message": { "text": plain_message(&format!("{}: {}", problem.path, problem.message)) },
    })
}

fn region(region: Region) -> Value {
    json!({
        "startLine": region.line,
        "startColumn": region.column,
        "endLine": region.end_line,
        "endColumn": region.end_column,
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// Returns a path with forward slashes as a relative URI.
fn uri(path: &str) -> String {
    utf8_percent_encode(path, ENCODED).to_string()
}

/// Returns a meaning as a sentence.
fn sentence(meaning: &str) -> String {
    let mut chars = meaning.chars();
    let first = chars.next().map(char::to_uppercase).into_iter().flatten();
    format!("{}.", first.chain(chars).collect::<String>())
}

/// Escapes what a message of SARIF gives a meaning: `[text](target)` is a link, and `{0}` a placeholder
/// (SARIF 2.1.0, 3.11.5 and 3.11.6).
fn plain_message(text: &str) -> String {
    let has_link = text.contains("](");
    let has_placeholder = text.split('{').skip(1).any(|rest| {
        let number = rest.split('}').next().unwrap_or_default();
        number.len() < rest.len() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '[' | ']' | '\\' if has_link => escaped.extend(['\\', c]),
            '{' | '}' if has_placeholder => escaped.extend([c, c]),
            c => escaped.push(c),
        }
    }
    escaped
}
