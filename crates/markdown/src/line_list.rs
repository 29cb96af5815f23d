//! Files that are lists of lines, such as `.gitignore` and `.gitattributes`: adding lines and replacing none.

/// Lists the lines that a text lacks, in order.
pub fn missing_lines<'l>(text: &str, lines: &[&'l str]) -> Vec<&'l str> {
    lines.iter().filter(|line| !text.lines().any(|known| known.trim() == **line)).copied().collect()
}

/// Appends lines to a text. They end as the other lines of the text do.
pub fn with_lines(text: &str, lines: &[&str]) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut all = text.to_owned();
    if !all.is_empty() && !all.ends_with('\n') && !lines.is_empty() {
        all.push_str(end);
    }
    for line in lines {
        all.push_str(line);
        all.push_str(end);
    }
    all
}
