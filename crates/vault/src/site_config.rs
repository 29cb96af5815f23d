//! Values in the settings of site generators that are programs: they are read as text, and never run.

/// Lists the quoted strings that follow a key in the text of a program or of TOML, YAML or JSON, with the place behind each.
pub(super) fn quoted_values<'t>(text: &'t str, key: &'t str) -> impl Iterator<Item = (String, usize)> + 't {
    text.match_indices(key).filter_map(move |(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$')) {
            return None;
        }
        let rest = text.get(at + key.len()..)?;
        let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest).trim_start();
        let rest = rest.strip_prefix([':', '='])?.trim_start();
        let line = rest.lines().next().unwrap_or_default();
        let value = match rest.chars().next()? {
            quote @ ('"' | '\'' | '`') => line.get(1..)?.split_once(quote)?.0,
            // YAML needs no quotes.
            c if c.is_alphanumeric() || matches!(c, '.' | '/') => {
                line.split([' ', ',', '#', ')', '}']).next().unwrap_or_default()
            }
            _ => return None,
        };
        let end = text.len() - rest.len() + value.len();
        Some((value.to_owned(), end))
    })
}

/// Returns the address on a Docusaurus site of the pages whose path was read at a place of its settings, without slashes at its
/// ends. It is in the same object as the path.
pub(super) fn site_address(text: &str, at: usize, path: &str) -> String {
    let start = text.get(..at).and_then(|before| before.rfind('{')).unwrap_or(0);
    let end = text.get(at..).and_then(|rest| rest.find('}')).map_or(text.len(), |end| at + end);
    let said = text.get(start..end).and_then(|object| quoted_values(object, "routeBasePath").next());
    let default = if path.trim_end_matches('/').ends_with("blog") { "blog" } else { "docs" };
    said.map_or(default.to_owned(), |(value, _)| value.trim_matches('/').to_owned())
}
