//! JUnit XML: a test suite for each file with problems, for CI systems that show test reports.

use std::collections::BTreeMap;

use super::Report;
use crate::store::{Problem, Severity};

/// The name of the suite of problems that belong to no file, and of the report.
const NAME: &str = "sidenote check";

/// Formats a report. An error or a warning is a failed test; what is only information is a skipped one. A report without
/// problems has one passed test, because some systems refuse a report without tests.
pub(super) fn format(report: &Report<'_>) -> String {
    let mut suites: BTreeMap<String, Vec<&Problem>> = BTreeMap::new();
    for problem in report.problems {
        let suite = if problem.is_of_vault() { NAME.to_owned() } else { report.path_of(problem) };
        suites.entry(suite).or_default().push(problem);
    }
    let mut body = String::new();
    for (suite, problems) in &suites {
        let cases: String = problems.iter().map(|problem| case(suite, problem)).collect();
        body.push_str(&format!("  <testsuite {}>\n{cases}  </testsuite>\n", totals(suite, problems)));
    }
    let all: Vec<&Problem> = report.problems.iter().collect();
    let mut totals = totals(NAME, &all);
    if all.is_empty() {
        totals = format!("name=\"{NAME}\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\"");
        body = format!(
            "  <testsuite {totals}>\n    <testcase name=\"no problems\" classname=\"{NAME}\"/>\n  </testsuite>\n"
        );
    }
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {totals}>\n{body}</testsuites>\n")
}

fn totals(name: &str, problems: &[&Problem]) -> String {
    let skipped = problems.iter().filter(|problem| problem.severity == Severity::Info).count();
    format!(
        "name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{skipped}\"",
        escaped(name),
        problems.len(),
        problems.len() - skipped
    )
}

fn case(suite: &str, problem: &Problem) -> String {
    let region = problem.region();
    let (name, line) = match region.is_whole_file() {
        true => (problem.code.to_owned(), String::new()),
        false => (
            format!("{} at {}:{}", problem.code, region.line, region.column),
            format!(" line=\"{}\"", region.line),
        ),
    };
    let message = match problem.is_of_vault() {
        true => format!("{}: {}", problem.path, problem.message),
        false => problem.message.clone(),
    };
    let message = escaped(&message);
    let result = match problem.severity {
        Severity::Info => format!("<skipped message=\"{message}\"/>"),
        severity => format!(
            "<failure type=\"{}\" message=\"{message}\">{}: {message}</failure>",
            problem.code,
            severity.name()
        ),
    };
    let (suite, name) = (escaped(suite), escaped(&name));
    format!(
        "    <testcase name=\"{name}\" classname=\"{suite}\" file=\"{suite}\"{line}>\n      {result}\n    </testcase>\n"
    )
}

/// Escapes text for XML. Characters that XML 1.0 does not allow become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // A parser would replace these by spaces in an attribute.
            '\t' | '\n' | '\r' => out.push_str(&format!("&#{};", u32::from(c))),
            '\0'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}
