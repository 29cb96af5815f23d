//! Workflow commands of GitHub Actions: each problem is an annotation of a line.

use sidenote_markdown::control::plain_lines;

use super::{Report, worst_first};
use crate::store::{Problem, Severity};

/// Formats a report, the worst problems first, because GitHub shows only the first annotations of a step.
pub(super) fn format(report: &Report<'_>) -> String {
    worst_first(report.problems).into_iter().map(|problem| annotation(report, problem)).collect()
}

fn annotation(report: &Report<'_>, problem: &Problem) -> String {
    let command = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let mut properties = Vec::new();
    let mut message = problem.message.clone();
    problem.fixes.iter().for_each(|fix| message.push_str(&format!("\n{}", fix.description)));
    if problem.is_of_vault() {
        message = format!("{}: {message}", problem.path);
    } else {
        properties.push(format!("file={}", property(&report.path_of(problem))));
    }
    let region = problem.region();
    if !region.is_whole_file() {
        properties.push(format!("line={},endLine={}", region.line, region.end_line));
        properties.push(format!("col={}", region.column));
        // GitHub reads the column of the end as that of the last character, and only on one line.
        if region.end_line == region.line && region.end_column > region.column {
            properties.push(format!("endColumn={}", region.end_column - 1));
        }
    }
    properties.push(format!("title={}", property(problem.code)));
    format!("::{command} {}::{}\n", properties.join(","), data(&message))
}

/// Escapes the message of a workflow command. What notes and file names say controls no terminal.
fn data(text: &str) -> String {
    plain_lines(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
